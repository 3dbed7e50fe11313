//! `.splattie` bundles: real ones, made ones for every error, hostile ones, saving, the command.

use crate::given;
use glam::Vec3;
use splatstage::formats::{AssetType, Format, LoadOptions, Loaded, load};
use std::path::Path;

fn quiet(_: f32) {}

fn load_path(path: &Path) -> Loaded {
    load(path, &LoadOptions::default(), &quiet).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_real_head_has_bones_weights_and_named_shapes() {
    let Some(path) = given::data("avatar/ict_head.splattie") else {
        return;
    };
    let loaded = load_path(&path);
    let avatar = loaded.avatar.as_ref().expect("a bundle has one");
    assert_eq!(loaded.format, Format::Splattie);
    assert_eq!(loaded.version.as_deref(), Some("0.3.0"));
    assert_eq!(avatar.asset_type, AssetType::Head);
    let names: Vec<&str> = avatar.body.bones.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(names, ["root", "neck", "jaw", "leftEye", "rightEye"]);
    let parents: Vec<Option<u16>> = avatar.body.bones.iter().map(|b| b.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), Some(1), Some(1)]);
    let skin = avatar.body.skin.as_ref().expect("weights");
    assert_eq!(skin.len(), 20_000);
    let row: Vec<(u8, f32)> = skin.row(2).collect();
    assert_eq!(row, [(1, 0.9671), (2, 0.0329)]);
    assert_eq!(avatar.body.shapes.len(), 20_000);
    assert_eq!(avatar.body.shapes.names.len(), 53);
    // Labelled shapes are used as they are: the greatest way of a jaw that opens is centimetres.
    let jaw = avatar.body.shape("jawOpen").expect("an ARKit name");
    let mut coefficients = vec![0.0; 53];
    coefficients[jaw] = 1.0;
    let way = |row| avatar.body.shapes.offset(row, &coefficients);
    let most = (0..20_000).map(|row| way(row).length()).fold(0.0, f32::max);
    assert!((0.005..0.05).contains(&most), "{most}");
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert!(
        avatar
            .states
            .as_ref()
            .is_some_and(|s| s["states"]["idle"].is_object())
    );
    assert_eq!(avatar.manifest["metadata"]["license"], "MIT");
}

#[test]
fn the_public_demos_load_with_their_versions() {
    for (name, version, shapes) in [
        ("splattie/demo_HEAD.splattie", "0.1.0", 0),
        ("splattie/demo_arkit.splattie", "0.1.1", 51),
    ] {
        let Some(path) = given::data(name) else {
            return;
        };
        let loaded = load_path(&path);
        let avatar = loaded.avatar.as_ref().expect("a bundle has one");
        assert_eq!(loaded.version.as_deref(), Some(version));
        assert_eq!(avatar.body.shapes.names.len(), shapes);
        assert_eq!(avatar.body.skin.as_ref().map(|s| s.len()), Some(20_018));
        let eye = &avatar.body.bones[3];
        assert_eq!(eye.name, "leftEye");
        assert!((eye.rest - Vec3::new(0.0317, 0.0230, 0.0237)).length() < 1e-4);
    }
}
