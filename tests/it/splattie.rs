//! `.splattie` bundles: real ones, made ones for every error, hostile ones, saving, the command.

use crate::alloc::peak_bytes;
use crate::{cli, given};
use glam::Vec3;
use half::f16;
use serde_json::{Value, json};
use splatstage::formats::container::{Folder, Memory, Zip};
use splatstage::formats::splattie::{Bundle, BundleOptions, FormatVersion, bundle};
use splatstage::formats::{
    AssetType, Code, Container, ConvertOptions, Error, Format, LoadOptions, Loaded, convert, load,
    load_in, open,
};
use splatstage::scene::Axes;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn quiet(_: f32) {}

fn load_path(path: &Path) -> Loaded {
    load(path, &LoadOptions::default(), &quiet).unwrap_or_else(|e| panic!("{e}"))
}

// ---------------------------------------------------------------------------------------------
// made bundles

/// A bundle's files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Splats of degree 0 at these places, as a binary PLY.
fn ply(means: &[Vec3]) -> Vec<u8> {
    let mut bytes = format!(
        "ply\nformat binary_little_endian 1.0\nelement vertex {}\n",
        means.len()
    )
    .into_bytes();
    for name in [
        "x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
        "rot_0", "rot_1", "rot_2", "rot_3",
    ] {
        bytes.extend(format!("property float {name}\n").as_bytes());
    }
    bytes.extend(b"end_header\n");
    for mean in means {
        let row = [
            mean.x, mean.y, mean.z, 0.1, 0.2, 0.3, 2.0, -5.0, -5.0, -5.0, 1.0, 0.0, 0.0, 0.0,
        ];
        bytes.extend(row.iter().flat_map(|v: &f32| v.to_le_bytes()));
    }
    bytes
}

/// A basis with this magic, `EXPR` or `EXPH`; `at` gives the offset of a row and shape, metres.
fn basis(magic: &[u8; 4], rows: u32, shapes: u32, at: impl Fn(u32, u32) -> Vec3) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend(rows.to_le_bytes());
    bytes.extend(shapes.to_le_bytes());
    for row in 0..rows {
        for shape in 0..shapes {
            for v in at(row, shape).to_array() {
                if magic == b"EXPH" {
                    bytes.extend(f16::from_f32(v).to_le_bytes());
                } else {
                    bytes.extend(v.to_le_bytes());
                }
            }
        }
    }
    bytes
}

/// `LBSW` with one bone for each splat.
fn lbsw(rows: u32, bones: u32, per_row: u32, indices: &[u16], weights: &[f32]) -> Vec<u8> {
    let mut bytes = b"LBSW".to_vec();
    for word in [1, rows, bones, per_row] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(indices.iter().flat_map(|i| i.to_le_bytes()));
    bytes.extend(weights.iter().flat_map(|w| f16::from_f32(*w).to_le_bytes()));
    bytes
}

fn text(document: &Value) -> Vec<u8> {
    serde_json::to_vec(document).unwrap()
}

fn manifest() -> Value {
    json!({
        "format": "splattie",
        "formatVersion": "0.3.0",
        "assetType": "head",
        "generator": { "method": "made", "tool": "test", "createdAt": "2026-01-01T00:00:00Z" },
        "avatar": { "splat": { "file": "head.ply", "format": "ply", "numGaussians": 4,
                               "topology": "made" } },
        "animation": {
            "type": "lbs",
            "skeleton": { "file": "bone_tree.json", "rig": "flame" },
            "weights": { "file": "weights.json" },
            "expression": { "system": "arkit", "basis": "basis.bin" },
        },
        "widget": { "config": "states.json" },
        "x-unknown": { "kept": [1, 2.5, "three"] },
    })
}

/// Four splats, three bones, two shapes, one state.
fn made() -> Files {
    let means = [
        Vec3::ZERO,
        Vec3::new(0.0, 0.1, 0.0),
        Vec3::new(0.1, 0.0, 0.05),
        Vec3::new(-0.1, 0.0, 0.05),
    ];
    let tree = json!({ "bones": [{ "name": "root", "position": [0, -0.1, 0], "children": [
        { "name": "neck", "position": [0, -0.05, 0] , "children": [] },
        { "name": "jaw", "position": [0, -0.02, 0.01] },
    ] }] });
    let states = json!({
        "version": 1,
        "unknown": { "x": 1 },
        "states": { "idle": { "ghost": { "amplitude": 0.003 }, "rotation": [0, 0, 0] } },
        "transitions": { "idle->hover": { "duration": 0.3, "easing": "ease-out" } },
    });
    let shapes = |row: u32, shape: u32| Vec3::new(row as f32, shape as f32, 0.5) / 256.0;
    [
        ("manifest.json", text(&manifest())),
        ("head.ply", ply(&means)),
        ("bone_tree.json", text(&tree)),
        (
            "weights.json",
            b"[[1,0,0],[0.5,0.5,0],[0,0.25,0.75],[0,0,1]]".to_vec(),
        ),
        ("basis.bin", basis(b"EXPH", 4, 2, shapes)),
        (
            "basis.json",
            text(&json!({ "labels": ["jawOpen", "eyeBlinkLeft"] })),
        ),
        ("states.json", text(&states)),
        ("extra/notes.txt", b"kept byte for byte \x00\xff".to_vec()),
    ]
    .into_iter()
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .collect()
}

/// [`made`] with one file replaced.
/// A small bundle of which every version has other states.
pub fn small_bundle(version: u32) -> Vec<u8> {
    let states = json!({
        "version": 1,
        "states": { "idle": { "ghost": { "amplitude": 0.001 * f64::from(version) } } },
    });
    zipped(&made_with("states.json", text(&states)))
}

fn made_with(name: &str, bytes: impl Into<Vec<u8>>) -> Files {
    let mut files = made();
    files.insert(name.to_owned(), bytes.into());
    files
}

/// [`made`] with another manifest.
fn made_as(edit: impl FnOnce(&mut Value)) -> Files {
    let mut manifest = manifest();
    edit(&mut manifest);
    made_with("manifest.json", text(&manifest))
}

fn memory(files: &Files) -> Memory {
    files
        .iter()
        .fold(Memory::new("made.splattie"), |memory, (name, bytes)| {
            memory.with(name.as_str(), bytes.as_slice())
        })
}

fn load_files(files: &Files) -> Result<Loaded, Error> {
    load_in(&memory(files), None, &LoadOptions::default(), &quiet)
}

fn loaded(files: &Files) -> Loaded {
    load_files(files).unwrap_or_else(|e| panic!("{e}"))
}

fn zipped(files: &Files) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn written(files: &Files, folder: &Path) -> PathBuf {
    let path = folder.join("made.splattie");
    std::fs::write(&path, zipped(files)).unwrap();
    path
}

/// Loading fails with `code`, about `entry`, in a message that holds all of `words`.
#[track_caller]
fn check_refused(files: &Files, code: Code, entry: Option<&str>, words: &[&str]) {
    let error = load_files(files).expect_err("it should be refused");
    check_error(&error, code, entry, words);
}

#[track_caller]
fn check_error(error: &Error, code: Code, entry: Option<&str>, words: &[&str]) {
    assert_eq!(error.code, code, "{error}");
    assert_eq!(error.file, "made.splattie", "{error}");
    assert_eq!(error.entry.as_deref(), entry, "{error}");
    for word in words {
        assert!(error.message.contains(word), "no {word:?} in: {error}");
    }
}

// ---------------------------------------------------------------------------------------------
// real bundles

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

// ---------------------------------------------------------------------------------------------
// what is read

#[test]
fn a_made_bundle_is_read_whole() {
    let all = loaded(&made());
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    let avatar = all.avatar.expect("a bundle has one");
    let body = &avatar.body;
    let parents: Vec<Option<u16>> = body.bones.iter().map(|b| b.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0)]);
    let skin = body.skin.as_ref().expect("weights");
    assert_eq!(skin.row(0).collect::<Vec<_>>(), [(0, 1.0)]);
    assert_eq!(skin.row(2).collect::<Vec<_>>(), [(1, 0.25), (2, 0.75)]);
    assert_eq!(body.shapes.names, ["jawOpen", "eyeBlinkLeft"]);
    let offset = body.shapes.offset(3, &[0.0, 1.0]);
    assert_eq!(offset, Vec3::new(3.0, 1.0, 0.5) / 256.0);
    assert_eq!(avatar.manifest, manifest());
    assert_eq!(
        avatar.states.as_ref().map(|s| &s["unknown"]["x"]),
        Some(&json!(1))
    );
}

#[test]
fn a_plain_splat_file_has_no_avatar() {
    let file = Memory::new("m").with("head.ply", ply(&[Vec3::ZERO]));
    let all = load_in(&file, Some("head.ply"), &LoadOptions::default(), &quiet).unwrap();
    assert!(all.avatar.is_none());
}

#[test]
fn folders_zips_inner_folders_and_entries_of_scenes_give_the_same_avatar() {
    let want = loaded(&made());
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("unpacked");
    for (name, bytes) in &made() {
        let path = unpacked.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let wrapped: Files = made()
        .into_iter()
        .map(|(name, bytes)| (format!("anna/{name}"), bytes))
        .chain([("__MACOSX/anna/._head.ply".to_owned(), b"litter".to_vec())])
        .chain([("anna/.DS_Store".to_owned(), b"litter".to_vec())])
        .collect();
    let wrapped = Zip::new(zipped(&wrapped), "wrapped.splattie").unwrap();
    let stage = Memory::new("scene.stage")
        .with("scene.luau", "return {}")
        .with("anna.splattie", zipped(&made()));
    let unzipped_stage = made().iter().fold(
        Memory::new("scene.stage").with("scene.luau", "return {}"),
        |stage, (name, bytes)| stage.with(format!("anna/{name}"), bytes.as_slice()),
    );
    let options = LoadOptions::default();
    let zip = written(&made(), folder.path());
    for (what, got) in [
        ("zip", load(&zip, &options, &quiet)),
        ("folder", load(&unpacked, &options, &quiet)),
        (
            "manifest",
            load(&unpacked.join("manifest.json"), &options, &quiet),
        ),
        ("inner folder", load_in(&wrapped, None, &options, &quiet)),
        (
            "folder of a zipped scene",
            load_in(&unzipped_stage, Some("anna"), &options, &quiet),
        ),
        (
            "scene",
            load_in(&stage, Some("anna.splattie"), &options, &quiet),
        ),
        (
            "scene folder",
            load_in(
                &Folder::new(folder.path(), "f"),
                Some("made.splattie"),
                &options,
                &quiet,
            ),
        ),
    ] {
        let got = got.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(got.format, Format::Splattie, "{what}");
        assert_eq!(got.splats, want.splats, "{what}");
        assert_eq!(got.avatar, want.avatar, "{what}");
    }
}

#[test]
fn zip_comments_and_zip64_are_read() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.set_comment("made by hand").unwrap();
    let options = zip::write::SimpleFileOptions::default().large_file(true);
    for (name, bytes) in &made() {
        zip.start_file(name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    // More than 65,535 entries: the directory's end is a zip64 one.
    for i in 0..66_000 {
        zip.start_file(format!("n/{i}"), options).unwrap();
    }
    let bytes = zip.finish().unwrap().into_inner();
    let zip = Zip::new(bytes, "large.splattie").unwrap();
    let all = load_in(&zip, None, &LoadOptions::default(), &quiet).unwrap();
    assert_eq!(all.avatar, loaded(&made()).avatar);
}

#[test]
fn axes_turn_the_body_with_its_splats() {
    let options = LoadOptions {
        axes: Some(Axes::RFU),
        ..LoadOptions::default()
    };
    let turned = load_in(&memory(&made()), None, &options, &quiet).unwrap();
    let body = &turned.avatar.as_ref().unwrap().body;
    assert!((body.bones[0].rest - Vec3::new(0.0, 0.0, 0.1)).length() < 1e-6);
    let offset = body.shapes.offset(3, &[0.0, 1.0]);
    assert_eq!(offset, Vec3::new(3.0, 0.5, -1.0) / 256.0);
}

#[test]
fn each_optional_file_may_be_absent() {
    let avatar = |edit: &dyn Fn(&mut Value)| {
        let all = loaded(&made_as(edit));
        (all.avatar.unwrap(), all.warnings)
    };
    let (none, warnings) = avatar(&|m| {
        let fields = m.as_object_mut().unwrap();
        fields.remove("animation");
        fields.remove("widget");
    });
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(none.body.bones.is_empty() && none.body.skin.is_none());
    assert!(none.body.shapes.names.is_empty() && none.states.is_none());
    let (bones, warnings) = avatar(&|m| m["animation"]["skeleton"] = Value::Null);
    assert!(bones.body.bones.is_empty() && bones.body.skin.is_none());
    assert!(warnings[0].contains("no skeleton"), "{warnings:?}");
    let (weights, _) = avatar(&|m| m["animation"]["weights"] = Value::Null);
    assert!(weights.body.bones.len() == 3 && weights.body.skin.is_none());
    let (shapes, _) = avatar(&|m| m["animation"]["expression"] = Value::Null);
    assert!(shapes.body.shapes.names.is_empty() && shapes.body.skin.is_some());
    let (basis, _) = avatar(&|m| m["animation"]["expression"]["basis"] = Value::Null);
    assert!(basis.body.shapes.names.is_empty());
    // Named and not there: built-in states are for that.
    let (states, warnings) = avatar(&|m| m["widget"]["config"] = json!("gone.json"));
    assert!(states.states.is_none());
    assert!(warnings[0].contains("gone.json"), "{warnings:?}");
}

#[test]
fn types_and_newer_versions_are_read_with_a_word_where_needed() {
    for (word, want) in [
        ("head", AssetType::Head),
        ("body", AssetType::Body),
        ("object", AssetType::Object),
    ] {
        let all = loaded(&made_as(|m| m["assetType"] = json!(word)));
        assert_eq!(all.avatar.unwrap().asset_type, want);
        assert!(all.warnings.is_empty());
    }
    let all = loaded(&made_as(|m| m["assetType"] = json!("ghost")));
    assert_eq!(all.avatar.unwrap().asset_type, AssetType::Head);
    assert!(all.warnings[0].contains("\"ghost\""), "{:?}", all.warnings);
    for version in ["0.1.0", "0.1.1", "0.2.0", "0.3.1"] {
        let all = loaded(&made_as(|m| m["formatVersion"] = json!(version)));
        assert!(all.warnings.is_empty(), "{version}: {:?}", all.warnings);
    }
    let all = loaded(&made_as(|m| m["formatVersion"] = json!("0.7.2")));
    assert!(all.warnings[0].contains("0.7.2"), "{:?}", all.warnings);
    let all = loaded(&made_as(|m| {
        m["avatar"]["splat"]["numGaussians"] = json!(9)
    }));
    assert!(all.warnings[0].contains('9') && all.warnings[0].contains("4 rows"));
}

#[test]
fn the_splat_file_is_told_by_content_and_not_turned() {
    // A PLY whose name and manifest say SPZ.
    let mut files = made_as(|m| {
        m["avatar"]["splat"] = json!({ "file": "head.spz", "format": "spz" });
    });
    let bytes = files.remove("head.ply").unwrap();
    files.insert("head.spz".into(), bytes);
    let all = loaded(&files);
    assert_eq!(all.splats.means, loaded(&made()).splats.means);
    assert_eq!(all.axes, Axes::RUB);
}

#[test]
fn the_three_encodings_of_weights_say_the_same() {
    let want = loaded(&made()).avatar.unwrap().body.skin.clone().unwrap();
    let sparse = json!({
        "k": 2, "weights": [1, 0, 0.5, 0.5, 0.25, 0.75, 1, 0],
        "indices": [0, 0, 0, 1, 1, 2, 2, 0], "jointCount": 3, "numGaussians": 4, "more": [[{}]],
    });
    let binary = lbsw(
        4,
        3,
        2,
        &[0, 0, 0, 1, 1, 2, 2, 0],
        &[1.0, 0.0, 0.5, 0.5, 0.25, 0.75, 1.0, 0.0],
    );
    for bytes in [text(&sparse), binary] {
        let all = loaded(&made_with("weights.json", bytes));
        assert_eq!(all.avatar.unwrap().body.skin.as_ref(), Some(&want));
        assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    }
}

#[test]
fn lists_of_bones_are_read_for_bodies_and_objects() {
    let lists = json!({
        "rig": "smplx", "jointCount": 3, "names": ["pelvis", "spine", "hand"],
        "parents": [-1, 0, 1], "restPositions": [[0, 0.9, 0], [0, 1.1, 0], [0.4, 1.2, 0]],
    });
    let all = loaded(&made_with("bone_tree.json", text(&lists)));
    let body = &all.avatar.as_ref().unwrap().body;
    assert_eq!(body.bone("hand"), Some(2));
    assert_eq!(body.bones[2].parent, Some(1));
    assert_eq!(body.bones[1].rest, Vec3::new(0.0, 1.1, 0.0));
}

#[test]
fn rows_that_do_not_sum_to_one_are_normalised_with_one_warning() {
    let rows = "[[2,2,0],[0,0,0],[0.9991,0,0],[0,0,0.5]]";
    let all = loaded(&made_with("weights.json", rows));
    assert_eq!(all.warnings.len(), 1, "{:?}", all.warnings);
    let warning = &all.warnings[0];
    assert!(
        warning.contains("2 of 4") && warning.contains("1 of 4"),
        "{warning}"
    );
    let avatar = all.avatar.unwrap();
    let skin = avatar.body.skin.as_ref().unwrap();
    assert_eq!(skin.row(0).collect::<Vec<_>>(), [(0, 0.5), (1, 0.5)]);
    // Within the rounding of an exporter: as in the file.
    assert_eq!(skin.row(2).collect::<Vec<_>>(), [(0, 0.9991)]);
    assert_eq!(skin.row(1).count(), 0);
    assert_eq!(skin.heaviest(1), ([0; 4], [1.0, 0.0, 0.0, 0.0]), "the root");
}

// ---------------------------------------------------------------------------------------------
// shapes

#[test]
fn labels_beside_the_basis_count_only_if_there_is_one_for_each_shape() {
    let names = |labels: Option<Vec<u8>>| {
        let mut files = made();
        match labels {
            Some(bytes) => files.insert("basis.json".into(), bytes),
            None => files.remove("basis.json"),
        };
        let all = loaded(&files);
        let avatar = all.avatar.unwrap();
        (avatar.body.shapes.names.clone(), all.warnings)
    };
    let plain = ["expr_0", "expr_1"];
    let (found, warnings) = names(None);
    assert_eq!(found, plain);
    assert!(warnings.is_empty());
    for bad in [
        text(&json!({ "labels": ["jawOpen"] })),
        text(&json!({ "labels": ["jawOpen", 7] })),
        text(&json!({ "num_expressions": 2 })),
        b"no json".to_vec(),
    ] {
        let (found, warnings) = names(Some(bad));
        assert_eq!(found, plain);
        assert!(warnings[0].contains("labels"), "{warnings:?}");
    }
    // No ending .bin, no sidecar: nothing is guessed.
    let mut files = made_as(|m| m["animation"]["expression"]["basis"] = json!("basis"));
    let bytes = files.remove("basis.bin").unwrap();
    files.insert("basis".into(), bytes);
    assert_eq!(loaded(&files).avatar.unwrap().body.shapes.names, plain);
}

#[test]
fn components_without_a_meaning_are_enlarged_and_masked_and_named_shapes_are_not() {
    // By the jaw at y = -0.02 of the made bundle: half a fade below it, and half a fade behind.
    let means = [
        Vec3::new(0.0, 0.0, 0.0),
        Vec3::new(0.0, -0.0325, 0.0),
        Vec3::new(0.0, 0.0, -0.07),
        Vec3::new(0.0, -0.2, 0.0),
    ];
    let unit = Vec3::new(0.0, 0.25, 0.0);
    for (labels, want) in [
        (json!(["lipsUp", "noseL2"]), [3.0, 1.5, 1.5, 0.0]),
        (json!(["expr_0", "expr_1"]), [3.0, 1.5, 1.5, 0.0]),
        (json!(["jawOpen", "lipsUp"]), [1.0; 4]),
    ] {
        // The labels decide, whatever the manifest's system says.
        let mut files = made_as(|m| m["animation"]["expression"]["system"] = json!("flame-pca"));
        files.insert("head.ply".into(), ply(&means));
        files.insert("basis.bin".into(), basis(b"EXPR", 4, 2, |_, _| unit));
        files.insert("basis.json".into(), text(&json!({ "labels": labels })));
        let avatar = loaded(&files).avatar.unwrap();
        for (row, want) in want.into_iter().enumerate() {
            let got = avatar.body.shapes.offset(row, &[1.0, 0.0]).y / unit.y;
            assert!(
                (got - want).abs() < 2e-3,
                "{labels}, row {row}: {got}, not {want}"
            );
        }
        let has_row = !avatar.body.shapes.row(3).is_empty();
        assert_eq!(
            has_row,
            want[3] > 0.0,
            "splats outside the mask cost nothing"
        );
    }
}

#[test]
fn a_flame_basis_with_teeth_fits_splats_without() {
    const SPLATS: usize = 20_018;
    const ROWS: u32 = 20_426;
    let means = vec![Vec3::ZERO; SPLATS];
    let row_of = |row: u32| Vec3::new((row / 256) as f32, (row % 256) as f32, 1.0);
    let mut files = made_as(|m| {
        m["avatar"]["splat"]["numGaussians"] = json!(SPLATS);
        m["animation"]["weights"] = Value::Null;
    });
    files.insert("head.ply".into(), ply(&means));
    files.insert(
        "basis.bin".into(),
        basis(b"EXPH", ROWS, 1, |row, _| row_of(row)),
    );
    files.insert("basis.json".into(), text(&json!({ "labels": ["jawOpen"] })));
    let all = loaded(&files);
    assert!(all.warnings[0].contains("20426"), "{:?}", all.warnings);
    let avatar = all.avatar.unwrap();
    for (splat, row) in [(0, 0), (5_022, 5_022), (5_023, 5_143), (20_017, 20_137)] {
        assert_eq!(
            avatar.body.shapes.offset(splat, &[1.0]),
            row_of(row),
            "splat {splat}"
        );
    }
    // Any other pair is a mistake.
    files.insert(
        "basis.bin".into(),
        basis(b"EXPH", ROWS - 1, 1, |row, _| row_of(row)),
    );
    let words = ["20425", "20018", "numVertices"];
    check_refused(&files, Code::BadBasis, Some("basis.bin"), &words);
}

// ---------------------------------------------------------------------------------------------
// every error

#[test]
fn a_bundle_without_a_manifest_says_so() {
    let mut files = made();
    files.remove("manifest.json");
    check_refused(
        &files,
        Code::NoManifest,
        None,
        &["manifest.json", "7 entries"],
    );
}

#[test]
fn what_is_no_manifest_of_a_bundle_is_named() {
    let at = Some("manifest.json");
    let refused = |files: Files, words: &[&str]| {
        check_refused(&files, Code::NotSplattie, at, words);
    };
    refused(made_with("manifest.json", "{"), &["JSON"]);
    refused(
        made_with("manifest.json", "[".repeat(100_000)),
        &["JSON", "recursion"],
    );
    refused(
        made_as(|m| m["format"] = json!("glb")),
        &["format", "\"glb\"", "\"splattie\""],
    );
    refused(
        made_with("manifest.json", "{\"avatar\": 1}"),
        &["format", "null"],
    );
    refused(
        made_as(|m| m["avatar"] = Value::Null),
        &["avatar.splat.file", "missing"],
    );
    refused(
        made_as(|m| m["avatar"] = json!(7)),
        &["field avatar is 7", "object"],
    );
    refused(
        made_as(|m| m["animation"]["weights"]["file"] = json!([1, 2])),
        &["animation.weights.file", "a list of 2", "text"],
    );
    refused(
        made_as(|m| m["assetType"] = json!(3)),
        &["assetType", "3", "text"],
    );
}

#[test]
fn other_versions_are_refused_with_those_that_are_read() {
    for (version, shown) in [
        (json!("1.0.0"), "\"1.0.0\""),
        (json!("2"), "\"2\""),
        (json!(0.3), "0.3"),
        (Value::Null, "null"),
    ] {
        let files = made_as(|m| m["formatVersion"] = version);
        let words = ["formatVersion", shown, "0.1.x to 0.3.x"];
        check_refused(&files, Code::VersionMismatch, Some("manifest.json"), &words);
    }
}

#[test]
fn named_entries_that_are_not_there_are_named_with_their_field() {
    for (entry, field) in [
        ("head.ply", "avatar.splat.file"),
        ("bone_tree.json", "animation.skeleton.file"),
        ("weights.json", "animation.weights.file"),
        ("basis.bin", "animation.expression.basis"),
    ] {
        let mut files = made();
        files.remove(entry);
        let words = [field, "not in the bundle", "manifest.json"];
        check_refused(&files, Code::MissingEntry, Some(entry), &words);
    }
    let files = made_as(|m| m["avatar"]["splat"]["file"] = json!("../../etc/passwd"));
    let words = ["avatar.splat.file", "leads outside"];
    check_refused(&files, Code::UnsafeName, Some("../../etc/passwd"), &words);
    // A manifest that names itself ends.
    let files = made_as(|m| m["avatar"]["splat"]["file"] = json!("manifest.json"));
    check_refused(&files, Code::Malformed, Some("manifest.json"), &["nested"]);
}

#[test]
fn hostile_skeletons_are_refused() {
    let refused = |document: &str, words: &[&str]| {
        let files = made_with("bone_tree.json", document);
        check_refused(&files, Code::BadSkeleton, Some("bone_tree.json"), words);
    };
    let lists = |names: Value, parents: Value, rests: Value| {
        json!({ "names": names, "parents": parents, "restPositions": rests }).to_string()
    };
    let zeros = |count: usize| Value::Array(vec![json!([0, 0, 0]); count]);
    let numbered =
        |count: usize| Value::from((0..count).map(|i| format!("b{i}")).collect::<Vec<_>>());
    let chain = |count: i64| Value::from((-1..count - 1).collect::<Vec<_>>());
    refused("{}", &["bones", "names", "restPositions"]);
    refused("{\"bones\": 5}", &["field bones is 5", "list"]);
    refused("{\"bones\": []}", &["0 bones", "at least 1"]);
    refused(&"[".repeat(100_000), &["recursion"]);
    refused(&"{\"bones\":[".repeat(5_000), &["recursion"]);
    // Its own ancestor, by number and by name.
    let loop_ = lists(json!(["a", "b", "c"]), json!([-1, 2, 1]), zeros(3));
    refused(&loop_, &["\"b\"", "its own ancestor", "parents[1]"]);
    let own = lists(json!(["a", "b"]), json!([-1, 1]), zeros(2));
    refused(&own, &["its own ancestor"]);
    let late = lists(json!(["a", "b", "c"]), json!([-1, 2, 0]), zeros(3));
    refused(&late, &["parents[1]", "2", "before"]);
    let tree = r#"{"bones":[{"name":"a","position":[0,0,0],"children":[
        {"name":"b","position":[0,0,0],"children":[{"name":"a","position":[0,0,0]}]}]}]}"#;
    refused(tree, &["\"a\"", "its own ancestor"]);
    let twins = lists(json!(["a", "b", "b"]), json!([-1, 0, 0]), zeros(3));
    refused(&twins, &["\"b\"", "twice"]);
    // Counts.
    let many = lists(numbered(257), chain(257), zeros(257));
    refused(&many, &["257", "256"]);
    let children: Vec<Value> = (0..256)
        .map(|i| json!({ "name": format!("b{i}"), "position": [0, 0, 0] }))
        .collect();
    let wide = json!({ "bones": [{ "name": "r", "position": [0, 0, 0], "children": children }] });
    refused(&wide.to_string(), &["256"]);
    refused(
        &lists(json!(["a"]), json!([-1, 0]), zeros(1)),
        &["parents", "2", "1"],
    );
    refused(
        &lists(json!(["a"]), json!([-1]), zeros(3)),
        &["restPositions", "3", "1"],
    );
    refused(
        &lists(json!(["a"]), json!([5]), zeros(1)),
        &["parents[0]", "5"],
    );
    let said = json!({ "jointCount": 9, "names": ["a"], "parents": [-1],
                       "restPositions": [[0, 0, 0]] });
    refused(&said.to_string(), &["jointCount", "9", "1"]);
    // Numbers.
    refused(
        &lists(json!(["a"]), json!([-1]), json!([[0, 0]])),
        &["restPositions[0]", "three"],
    );
    refused(
        &lists(json!(["a"]), json!([-1]), json!([[0, 0, 1e300]])),
        &["finite"],
    );
    let nan = r#"{"bones":[{"name":"a","position":[0,NaN,0]}]}"#;
    refused(nan, &["JSON"]);
    let nameless = r#"{"bones":[{"name":1,"position":[0,0,0]}]}"#;
    refused(nameless, &["bones[0].name", "1"]);
}

#[test]
fn hostile_weights_are_refused() {
    let refused = |bytes: Vec<u8>, words: &[&str]| {
        let files = made_with("weights.json", bytes);
        check_refused(&files, Code::BadWeights, Some("weights.json"), words);
    };
    let dense = |rows: &str, words: &[&str]| refused(rows.as_bytes().to_vec(), words);
    dense("[[1,0,0],[1,0,0],[1,0,0]]", &["3 rows", "4"]);
    dense(
        "[[1,0,0],[1,0,0],[1,0,0],[1,0,0],[1,0,0]]",
        &["5 rows", "4"],
    );
    dense("[[1,0,0],[1,0]]", &["row 1", "2 columns", "3 bones"]);
    dense("[[1,0,0,0,0,0]]", &["row 0", "6 columns", "3 bones"]);
    dense("[[1,0,NaN]]", &["JSON", "line 1"]);
    dense("[[1,0,1e999]]", &["out of range"]);
    dense("[[1,0,1e200]]", &["row 0", "place 2", "finite"]);
    dense("[[1,0,-0.5]]", &["row 0", "-0.5", "not below 0"]);
    dense("[[1,0,\"a\"]]", &["JSON"]);
    dense("[[1,0,0],", &["JSON"]);
    dense("7", &["list of rows"]);
    dense("", &["JSON"]);
    dense(&"[".repeat(1 << 20), &["JSON"]);
    dense(&format!("[{}", "[[[[".repeat(1 << 18)), &["JSON"]);
    let sparse = |edit: &dyn Fn(&mut Value), words: &[&str]| {
        let mut document = json!({ "numGaussians": 4, "jointCount": 3, "k": 1,
                                   "indices": [0, 1, 2, 0], "weights": [1, 1, 1, 1] });
        edit(&mut document);
        refused(text(&document), words);
    };
    sparse(
        &|d| d["numGaussians"] = json!(5),
        &["numGaussians", "5", "4"],
    );
    sparse(
        &|d| d["jointCount"] = json!(8),
        &["jointCount", "8", "3 bones"],
    );
    sparse(&|d| d["k"] = json!(5), &["field k", "5", "1 to 4"]);
    sparse(&|d| d["k"] = json!(2), &["indices", "4 numbers", "8"]);
    sparse(
        &|d| d["indices"] = json!([0, 1, 2, 3]),
        &["bone 3", "3 bones"],
    );
    sparse(&|d| d["indices"] = json!([0, 1, 2, -1]), &["bone -1"]);
    sparse(
        &|d| d["weights"] = json!([1, 1, 1]),
        &["weights", "3 numbers", "4"],
    );
    sparse(
        &|d| drop(d.as_object_mut().unwrap().remove("weights")),
        &["weights", "missing"],
    );
    let good = lbsw(4, 3, 1, &[0, 1, 2, 0], &[1.0; 4]);
    assert!(load_files(&made_with("weights.json", good.clone())).is_ok());
    refused(good[..good.len() - 1].to_vec(), &["35 bytes", "exactly 36"]);
    refused(
        [good.as_slice(), b"x"].concat(),
        &["37 bytes", "exactly 36"],
    );
    refused(good[..12].to_vec(), &["12 bytes", "20"]);
    refused(
        lbsw(4, 9, 1, &[0, 1, 2, 0], &[1.0; 4]),
        &["jointCount", "9", "3 bones"],
    );
    refused(
        lbsw(u32::MAX, 3, 4, &[], &[]),
        &["numGaussians", "4294967295", "4"],
    );
    refused(lbsw(4, 3, 9, &[], &[]), &["field k", "9"]);
    refused(
        lbsw(4, 3, 1, &[0, 1, 3, 0], &[1.0; 4]),
        &["bone 3", "row 2"],
    );
    let nan = lbsw(4, 3, 1, &[0, 1, 2, 0], &[1.0, f32::NAN, 1.0, 1.0]);
    refused(nan, &["row 1", "NaN"]);
    let mut old = good;
    old[4] = 7;
    refused(old, &["version", "7", "1 is read"]);
}

#[test]
fn rows_too_many_are_counted_and_not_kept() {
    let rows = format!("[{}[0,0,1]]", "[1,0,0],".repeat(1 << 18));
    let files = made_with("weights.json", rows);
    let memory = memory(&files);
    let (result, peak) = peak_bytes(|| load_in(&memory, None, &LoadOptions::default(), &quiet));
    let error = result.expect_err("4 splats have 4 rows");
    check_error(
        &error,
        Code::BadWeights,
        Some("weights.json"),
        &["262145 rows"],
    );
    assert!(peak < 1 << 20, "{peak} bytes");
}

#[test]
fn hostile_bases_are_refused() {
    let refused = |bytes: Vec<u8>, words: &[&str]| {
        let files = made_with("basis.bin", bytes);
        let memory = memory(&files);
        let (result, peak) = peak_bytes(|| load_in(&memory, None, &LoadOptions::default(), &quiet));
        let error = result.expect_err("it should be refused");
        check_error(&error, Code::BadBasis, Some("basis.bin"), words);
        assert!(peak < 1 << 20, "{peak} bytes");
    };
    let zero = |_, _| Vec3::ZERO;
    refused(b"EXP".to_vec(), &["3 bytes", "12"]);
    refused(
        basis(b"EXPX", 4, 2, zero),
        &["magic", "EXPX", "EXPR", "EXPH"],
    );
    refused(basis(b"EXPH", 5, 2, zero), &["numVertices", "5", "4"]);
    refused(basis(b"EXPH", 3, 2, zero), &["numVertices", "3", "4"]);
    refused(
        basis(b"EXPR", 4, 2, zero)[..50].to_vec(),
        &["38 bytes", "exactly 96"],
    );
    refused(
        [basis(b"EXPR", 4, 2, zero), b"x".to_vec()].concat(),
        &["97 bytes", "exactly 96"],
    );
    let mut claim = b"EXPR".to_vec();
    claim.extend(u32::MAX.to_le_bytes());
    claim.extend(1024_u32.to_le_bytes());
    refused(claim, &["4294967295", "exactly 52776558120960"]);
    let mut claim = b"EXPH".to_vec();
    claim.extend([4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    refused(claim, &["numExpressions", "4294967295", "1024"]);
    let nan = |row, shape| {
        if (row, shape) == (2, 1) {
            Vec3::NAN
        } else {
            Vec3::ZERO
        }
    };
    refused(
        basis(b"EXPH", 4, 2, nan),
        &["row 2", "eyeBlinkLeft", "finite"],
    );
    refused(
        basis(b"EXPR", 4, 2, |_, _| Vec3::splat(1e9)),
        &["row 0", "jawOpen"],
    );
}

#[test]
fn states_of_the_wrong_kind_are_named_by_field() {
    let refused = |document: &str, words: &[&str]| {
        let files = made_with("states.json", document);
        check_refused(&files, Code::BadStates, Some("states.json"), words);
    };
    refused("[]", &["a list of 0", "object"]);
    refused("nope", &["JSON"]);
    refused(&"[".repeat(100_000), &["recursion"]);
    for (document, field) in [
        (json!({ "states": 5 }), "field states is 5"),
        (json!({ "states": { "idle": [] } }), "states.idle"),
        (
            json!({ "states": { "idle": { "ghost": 1 } } }),
            "states.idle.ghost",
        ),
        (
            json!({ "states": { "idle": { "ghost": { "amplitude": "a" } } } }),
            "states.idle.ghost.amplitude",
        ),
        (
            json!({ "states": { "idle": { "expression": { "jawOpen": [] } } } }),
            "states.idle.expression.jawOpen",
        ),
        (
            json!({ "states": { "idle": { "rotation": [1, 2] } } }),
            "states.idle.rotation",
        ),
        (
            json!({ "states": { "idle": { "pose": { "hip": [0, 0, 0] } } } }),
            "states.idle.pose.hip",
        ),
        (
            json!({ "states": { "idle": { "tracking": { "eyes": true } } } }),
            "states.idle.tracking.eyes",
        ),
        (
            json!({ "defaults": { "camera": { "fov": "x" } } }),
            "defaults.camera.fov",
        ),
        (
            json!({ "defaults": { "autoBlink": { "interval": [1] } } }),
            "defaults.autoBlink.interval",
        ),
        (
            json!({ "defaults": { "gaze": { "maxEyeYaw": -4 } } }),
            "defaults.gaze.maxEyeYaw",
        ),
        (
            json!({ "defaults": { "gaze": { "saccade": 5 } } }),
            "defaults.gaze.saccade",
        ),
        (
            json!({ "states": { "idle": { "expression": { "jawOpen": 1e300 } } } }),
            "states.idle.expression.jawOpen",
        ),
        (
            json!({ "transitions": { "a->b": { "duration": "x" } } }),
            "transitions.a->b.duration",
        ),
        (
            json!({ "transitions": { "a->b": { "easing": 1 } } }),
            "transitions.a->b.easing",
        ),
    ] {
        refused(&document.to_string(), &[field, "expected"]);
    }
    for fine in [
        json!({}),
        json!({ "states": {}, "x": [[[]]] }),
        json!({ "states": { "idle": { "ghost": null } }, "defaults": { "autoBlink": false } }),
        json!({ "defaults": { "camera": { "lookAt": "auto" } } }),
    ] {
        assert!(
            load_files(&made_with("states.json", text(&fine))).is_ok(),
            "{fine}"
        );
    }
}

// ---------------------------------------------------------------------------------------------
// archives that attack, and limits

#[test]
fn bombs_lying_sizes_and_too_many_entries_are_refused() {
    let with_entry = |name: &str, bytes: Vec<u8>| zipped(&made_with(name, bytes));
    let refused = |bytes: Vec<u8>, options: &LoadOptions| {
        let (result, peak) = peak_bytes(|| {
            Zip::with_limit(bytes, "made.splattie", options.unpacked_bytes_max)
                .and_then(|zip| load_in(&zip, None, options, &quiet))
        });
        (result.expect_err("it should be refused"), peak)
    };
    let usual = LoadOptions::default();
    let bomb = with_entry("weights.json", vec![b' '; 30 << 20]);
    let (error, peak) = refused(bomb.clone(), &usual);
    let words = ["31457280", "250 to 1", "--max-unpacked"];
    check_error(&error, Code::TooLarge, Some("weights.json"), &words);
    assert!(peak < 2 << 20, "{peak} bytes");
    // A caller who allows so much gets to the content.
    let raised = LoadOptions {
        unpacked_bytes_max: Some(64 << 20),
        ..LoadOptions::default()
    };
    let (error, _) = refused(bomb.clone(), &raised);
    check_error(&error, Code::BadWeights, Some("weights.json"), &["JSON"]);
    // And less than the usual is possible too.
    let lowered = LoadOptions {
        unpacked_bytes_max: Some(1000),
        ..LoadOptions::default()
    };
    let (error, _) = refused(zipped(&made()), &lowered);
    check_error(
        &error,
        Code::TooLarge,
        None,
        &["at most 1000", "--max-unpacked"],
    );
    // A directory that says less than there is.
    let size = (30_u32 << 20).to_le_bytes();
    let mut lying = bomb;
    let mut found = 0;
    for start in 0..lying.len() - 4 {
        if lying[start..start + 4] == size {
            lying[start..start + 4].copy_from_slice(&500_000_u32.to_le_bytes());
            found += 1;
        }
    }
    assert!(found > 0);
    let (error, peak) = refused(lying, &usual);
    check_error(&error, Code::Malformed, Some("weights.json"), &["larger"]);
    assert!(peak < 4 << 20, "{peak} bytes");
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for i in 0..100_001 {
        zip.start_file(i.to_string(), zip::write::SimpleFileOptions::default())
            .unwrap();
    }
    let (error, _) = refused(zip.finish().unwrap().into_inner(), &usual);
    check_error(
        &error,
        Code::TooLarge,
        None,
        &["100001", "100000", "--max-unpacked"],
    );
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("../manifest.json", zip::write::SimpleFileOptions::default())
        .unwrap();
    let (error, _) = refused(zip.finish().unwrap().into_inner(), &usual);
    check_error(
        &error,
        Code::UnsafeName,
        Some("../manifest.json"),
        &["leads outside"],
    );
}

#[test]
fn documents_that_would_become_large_trees_are_refused_by_size() {
    let padded = format!("{{\"states\": {{}}, \"x\": \"{}\"}}", "a".repeat(5 << 20));
    let files = made_with("states.json", padded);
    let words = ["5242", "4194304", "--max-unpacked"];
    check_refused(&files, Code::TooLarge, Some("states.json"), &words);
    let raised = LoadOptions {
        unpacked_bytes_max: Some(64 << 20),
        ..LoadOptions::default()
    };
    assert!(load_in(&memory(&files), None, &raised, &quiet).is_ok());
}

#[test]
fn mutated_bundles_are_an_answer_or_an_error() {
    // A fixed sequence (Knuth's MMIX constants), so that a failure can be repeated.
    let mut state = 7_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below
    };
    let original = made();
    let names: Vec<&String> = original.keys().collect();
    let mutate = |bytes: &mut Vec<u8>, random: &mut dyn FnMut(usize) -> usize| {
        for _ in 0..=random(4) {
            let at = random(bytes.len().max(1));
            match random(4) {
                0 if !bytes.is_empty() => bytes.truncate(at),
                1 => bytes.splice(at..at, [random(256) as u8; 3]).for_each(drop),
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = random(256) as u8;
                    }
                }
            }
        }
    };
    let mut read = 0;
    for round in 0..2_000 {
        let answer = if round % 4 == 0 {
            let mut bytes = zipped(&original);
            mutate(&mut bytes, &mut random);
            Zip::new(bytes, "made.splattie")
                .and_then(|zip| load_in(&zip, None, &LoadOptions::default(), &quiet))
        } else {
            // Past the checksums of the zip.
            let mut files = original.clone();
            let name = names[random(names.len())];
            mutate(files.get_mut(name).unwrap(), &mut random);
            let _ = Bundle::open(&memory(&files), None)
                .and_then(|mut bundle| bundle.set_version(FormatVersion::V0_1_0));
            load_files(&files)
        };
        match answer {
            Ok(all) => {
                read += 1;
                let Some(avatar) = &all.avatar else { continue };
                let body = &avatar.body;
                let rows = all.splats.len();
                assert!(body.skin.as_ref().is_none_or(|skin| skin.len() == rows));
                assert!(body.shapes.names.is_empty() || body.shapes.len() == rows);
                for (index, bone) in body.bones.iter().enumerate() {
                    assert!(bone.parent.is_none_or(|parent| usize::from(parent) < index));
                    assert!(bone.rest.is_finite());
                }
            }
            Err(error) => assert!(!error.message.is_empty()),
        }
    }
    assert!(read > 100, "only {read} of 2000 were read");
}

// ---------------------------------------------------------------------------------------------
// saving

fn files_in(container: &dyn Container) -> Files {
    container
        .entries()
        .into_iter()
        .map(|name| {
            let bytes = container.read(&name, u64::MAX).unwrap().into_owned();
            (name, bytes)
        })
        .collect()
}

#[test]
fn opened_and_saved_every_entry_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&made(), folder.path());
    let saved = folder.path().join("saved.splattie");
    Bundle::open_path(&path, None)
        .unwrap()
        .save(&saved)
        .unwrap();
    assert_eq!(files_in(open(&saved).unwrap().as_ref()), made());
    let again = folder.path().join("again.splattie");
    Bundle::open_path(&saved, None)
        .unwrap()
        .save(&again)
        .unwrap();
    assert_eq!(
        std::fs::read(&again).unwrap(),
        std::fs::read(&saved).unwrap()
    );
    // What shrinks so well that it could be a bomb comes back all the same.
    let mut empty = Bundle::open_path(&saved, None).unwrap();
    empty.set_entry("zeros.bin", vec![0; 8 << 20]).unwrap();
    empty.save(&again).unwrap();
    let zeros = files_in(open(&again).unwrap().as_ref())["zeros.bin"].len();
    assert_eq!(zeros, 8 << 20);
    for name in ["avatar/ict_head.splattie", "splattie/demo_arkit.splattie"] {
        let Some(real) = given::data(name) else {
            return;
        };
        Bundle::open_path(&real, None)
            .unwrap()
            .save(&saved)
            .unwrap();
        let before = files_in(open(&real).unwrap().as_ref());
        assert_eq!(files_in(open(&saved).unwrap().as_ref()), before, "{name}");
        assert_eq!(load_path(&saved).avatar, load_path(&real).avatar, "{name}");
    }
}

#[test]
fn edits_change_what_they_name_and_nothing_else() {
    let mut edited = Bundle::open(&memory(&made()), None).unwrap();
    let mut states = edited.states().unwrap().clone();
    states["states"]["idle"]["ghost"]["amplitude"] = json!(0.01);
    edited.set_states(states.clone()).unwrap();
    let after = files_in(&edited);
    for (name, bytes) in &made() {
        let is_same = &after[name] == bytes;
        assert_eq!(is_same, name != "states.json", "{name}");
    }
    let got: Value = serde_json::from_slice(&after["states.json"]).unwrap();
    assert_eq!(got, states, "unknown fields too");
    // What is refused leaves the bundle as it was.
    let before = files_in(&edited);
    let wrong = edited.set_states(json!({ "states": 1 })).unwrap_err();
    check_error(
        &wrong,
        Code::BadStates,
        Some("states.json"),
        &["states", "1"],
    );
    let wrong = edited.set_manifest(json!({ "format": "x" })).unwrap_err();
    check_error(&wrong, Code::NotSplattie, Some("manifest.json"), &["\"x\""]);
    for name in ["../x", "/x", "a//b", "manifest.json", "states.json"] {
        assert!(edited.set_entry(name, Vec::new()).is_err(), "{name}");
    }
    assert!(
        !edited.remove_entry("weights.json"),
        "the manifest names it"
    );
    assert_eq!(files_in(&edited), before);
    assert!(edited.remove_entry("extra/notes.txt"));
    edited.set_entry("more/b.bin", vec![1, 2]).unwrap();
    assert_eq!(edited.entry("more/b.bin"), Some(&[1, 2][..]));
    // States where there were none get a name in the manifest.
    let mut bare = Bundle::open(
        &memory(&made_as(|m| {
            drop(m.as_object_mut().unwrap().remove("widget"))
        })),
        None,
    )
    .unwrap();
    assert!(bare.states().is_none() && bare.remove_entry("states.json"));
    bare.set_states(json!({})).unwrap();
    assert_eq!(bare.manifest()["widget"]["config"], "states.json");
    assert_eq!(bare.manifest()["x-unknown"], manifest()["x-unknown"]);
}

#[test]
fn the_basis_follows_the_version_both_ways() {
    // f16 to f32 and back is the same file.
    let mut files = made_with(
        "basis.json",
        text(
            &json!({ "labels": ["jawOpen", "eyeBlinkLeft"], "format": "EXPH", "bytes": 60,
                      "indices": [3, 1] }),
        ),
    );
    let mut there = Bundle::open(&memory(&files), None).unwrap();
    assert_eq!(there.set_version(FormatVersion::V0_1_1), Ok(Vec::new()));
    assert_eq!(there.version(), "0.1.1");
    let wide = there.entry("basis.bin").unwrap().to_vec();
    assert_eq!((&wide[..4], wide.len()), (&b"EXPR"[..], 12 + 4 * 2 * 12));
    let labels: Value = serde_json::from_slice(there.entry("basis.json").unwrap()).unwrap();
    assert_eq!(labels["bytes"], wide.len());
    assert!(labels["format"].as_str().unwrap().contains("float32"));
    assert_eq!(labels["indices"], json!([3, 1]));
    let avatar = load_in(&there, None, &LoadOptions::default(), &quiet)
        .unwrap()
        .avatar
        .unwrap();
    assert_eq!(avatar.body, loaded(&files).avatar.unwrap().body);
    assert_eq!(there.set_version(FormatVersion::V0_3_0), Ok(Vec::new()));
    assert_eq!(
        there.entry("basis.bin"),
        Some(files["basis.bin"].as_slice())
    );
    // f32 to f16 is the nearest, and says by how much it is off.
    let third = |row: u32, shape: u32| Vec3::new(row as f32, shape as f32, -1.0) / 300.0;
    files.insert("basis.bin".into(), basis(b"EXPR", 4, 2, third));
    let mut bundle = Bundle::open(&memory(&files), None).unwrap();
    assert_eq!(
        bundle.set_version(FormatVersion::V0_1_0),
        Ok(Vec::new()),
        "as it is"
    );
    assert_eq!(
        bundle.entry("basis.bin"),
        Some(files["basis.bin"].as_slice())
    );
    let lost = bundle.set_version(FormatVersion::V0_2_0).unwrap();
    assert!(lost[0].contains("f16"), "{lost:?}");
    let nearest = basis(b"EXPH", 4, 2, third);
    assert_eq!(bundle.entry("basis.bin"), Some(nearest.as_slice()));
    // What f16 cannot hold is refused, and the bundle stays.
    files.insert(
        "basis.bin".into(),
        basis(b"EXPR", 4, 2, |_, _| Vec3::splat(1e6)),
    );
    let mut bundle = Bundle::open(&memory(&files), None).unwrap();
    let error = bundle.set_version(FormatVersion::V0_2_0).unwrap_err();
    check_error(
        &error,
        Code::BadBasis,
        Some("basis.bin"),
        &["1000000", "f16"],
    );
    assert_eq!(bundle.version(), "0.3.0");
    assert_eq!(
        bundle.entry("basis.bin"),
        Some(files["basis.bin"].as_slice())
    );
    // Older players know fewer encodings and types.
    let mut files = made_with("weights.json", lbsw(4, 3, 1, &[0; 4], &[1.0; 4]));
    files.insert(
        "bone_tree.json".into(),
        text(&json!({ "names": ["a"], "parents": [-1], "restPositions": [[0, 0, 0]] })),
    );
    let mut bundle = Bundle::open(&memory(&files), None).unwrap();
    assert_eq!(bundle.set_version(FormatVersion::V0_2_0), Ok(Vec::new()));
    let lost = bundle.set_version(FormatVersion::V0_1_0).unwrap();
    assert!(lost.len() == 2 && lost[0].contains("bones"), "{lost:?}");
    assert!(lost[1].contains("weights"), "{lost:?}");
    let mut body = Bundle::open(
        &memory(&made_as(|m| m["assetType"] = json!("object"))),
        None,
    )
    .unwrap();
    let lost = body.set_version(FormatVersion::V0_2_0).unwrap();
    assert!(
        lost[0].contains("object") && lost[0].contains("0.2.0"),
        "{lost:?}"
    );
}

#[test]
fn a_write_that_fails_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let bundle = Bundle::open(&memory(&made()), None).unwrap();
    let error = bundle.write(&mut Full).unwrap_err();
    check_error(&error, Code::Io, None, &["writing"]);
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no-folder/x.splattie");
    assert!(bundle.save(&nowhere).is_err());
    // A folder in the way: nothing is left beside it.
    let taken = folder.path().join("taken.splattie");
    std::fs::create_dir(&taken).unwrap();
    assert_eq!(bundle.save(&taken).unwrap_err().code, Code::Io);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

// ---------------------------------------------------------------------------------------------
// the command

fn utf8(path: &Path) -> &str {
    path.to_str().expect("temporary paths are Unicode")
}

fn write_files(files: &Files, folder: &Path) {
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// What an exporter leaves in its folder: no manifest, and something else.
fn export() -> Files {
    let mut files = made();
    files.remove("manifest.json");
    files.remove("extra/notes.txt");
    files.insert("preview.png".into(), b"\x89PNG".to_vec());
    files.insert("LICENSE.txt".into(), b"as you like".to_vec());
    files
}

#[test]
fn a_folder_of_an_exporter_becomes_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("export");
    write_files(&export(), &source);
    let out = folder.path().join("anna.splattie");
    let report = cli::check_json(
        &[
            "bundle",
            utf8(&source),
            "-o",
            utf8(&out),
            "--license",
            "MIT",
            "--json",
        ],
        0,
    );
    assert_eq!(report["count"], 4);
    assert_eq!(
        (&report["bones"], &report["shapes"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(report["format_version"], "0.3.0");
    assert!(
        report["warnings"][0]
            .as_str()
            .unwrap()
            .contains("preview.png")
    );
    let container = open(&out).unwrap();
    for name in [
        "head.ply",
        "bone_tree.json",
        "weights.json",
        "basis.bin",
        "states.json",
        "LICENSE.txt",
    ] {
        let bytes = container.read(name, u64::MAX).unwrap();
        assert_eq!(bytes.as_ref(), export()[name], "{name}");
    }
    let facts = cli::check_json(&["inspect", utf8(&out), "--json"], 0);
    assert_eq!(facts["asset_type"], "head");
    assert_eq!(facts["format_version"], "0.3.0");
    assert_eq!(facts["bones"][2]["name"], "jaw");
    assert_eq!(facts["bones"][2]["parent"], "root");
    assert_eq!(facts["shapes"], json!(["jawOpen", "eyeBlinkLeft"]));
    assert_eq!(facts["states"], json!(["idle"]));
    assert_eq!(facts["weights"], 4);
    let manifest = &facts["manifest"];
    assert_eq!(manifest["avatar"]["splat"]["numGaussians"], 4);
    assert_eq!(manifest["animation"]["expression"]["system"], "arkit");
    assert_eq!(manifest["metadata"]["license"], "MIT");
    assert!(manifest["generator"]["createdAt"].is_string());
    assert_eq!(
        loaded(&made()).avatar.unwrap().body,
        load_path(&out).avatar.unwrap().body
    );
}

#[test]
fn single_files_make_bundles_and_replace_parts_of_one() {
    let folder = tempfile::tempdir().unwrap();
    write_files(&export(), folder.path());
    let at = |name: &str| folder.path().join(name);
    let out = at("a.splattie");
    let options = BundleOptions::default();
    // A splat file alone is enough.
    let bare = bundle(&[at("head.ply")], &out, &options, &quiet).unwrap();
    assert_eq!((bare.count, bare.bones, bare.shapes), (4, 0, 0));
    assert!(bare.warnings.is_empty(), "{:?}", bare.warnings);
    // An old one, with a basis in f32.
    let old = BundleOptions {
        version: Some(FormatVersion::V0_1_0),
        asset_type: Some(AssetType::Head),
        ..BundleOptions::default()
    };
    let parts = [
        "head.ply",
        "bone_tree.json",
        "weights.json",
        "basis.bin",
        "basis.json",
    ];
    bundle(&parts.map(at), &out, &old, &quiet).unwrap();
    let saved = Bundle::open_path(&out, None).unwrap();
    assert_eq!(
        (saved.version(), saved.asset_type()),
        ("0.1.0", AssetType::Head)
    );
    assert!(saved.entry("basis.bin").unwrap().starts_with(b"EXPR"));
    let mine = Bundle::open(&memory(&made()), None).unwrap();
    mine.save(&at("mine.splattie")).unwrap();
    // Other states and another basis into a bundle; everything else stays.
    std::fs::write(at("calm.json"), b"{\"states\": {\"calm\": {}}}").unwrap();
    std::fs::write(at("other.bin"), basis(b"EXPR", 4, 1, |_, _| Vec3::X)).unwrap();
    let now = BundleOptions {
        now: Some("2026-02-03T04:05:06Z".to_owned()),
        ..BundleOptions::default()
    };
    let inputs = ["mine.splattie", "calm.json", "other.bin"].map(at);
    let done = bundle(&inputs, &out, &now, &quiet).unwrap();
    assert_eq!((done.shapes, done.version.as_str()), (1, "0.3.0"));
    let saved = Bundle::open_path(&out, None).unwrap();
    assert_eq!(
        saved.entry("states.json"),
        Some(&b"{\"states\": {\"calm\": {}}}"[..])
    );
    assert!(saved.entry("other.bin").unwrap().starts_with(b"EXPH"));
    assert!(saved.entry("basis.bin").is_none() && saved.entry("basis.json").is_none());
    assert_eq!(saved.entry("weights.json"), mine.entry("weights.json"));
    assert_eq!(
        saved.entry("extra/notes.txt"),
        mine.entry("extra/notes.txt")
    );
    assert_eq!(saved.manifest()["x-unknown"], manifest()["x-unknown"]);
    assert_eq!(
        saved.manifest()["metadata"]["lastEditedAt"],
        "2026-02-03T04:05:06Z"
    );
    // Nothing asked for, nothing changed.
    bundle(&[at("mine.splattie")], &out, &now, &quiet).unwrap();
    assert_eq!(files_in(open(&out).unwrap().as_ref()), made());
}

#[test]
fn what_makes_no_bundle_is_refused_and_the_old_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    write_files(&export(), folder.path());
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("two.ply"), ply(&[Vec3::ZERO; 2])).unwrap();
    std::fs::write(at("out.splattie"), b"the old file").unwrap();
    let names = |folder: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    let before = names(folder.path());
    for (inputs, code, words) in [
        (&["bone_tree.json"][..], "malformed", &["no splat file"][..]),
        (
            &["head.ply", "two.ply"],
            "malformed",
            &["two.ply", "second splat file", "head.ply"],
        ),
        (
            &["head.ply", "preview.png"],
            "unknown-format",
            &["preview.png"],
        ),
        (
            &["head.ply", "basis.json"],
            "malformed",
            &["basis.json", "no basis"],
        ),
        (
            &["two.ply", "bone_tree.json", "weights.json"],
            "bad-weights",
            &["weights.json", "4", "2"],
        ),
        (
            &["two.ply", "basis.bin"],
            "bad-basis",
            &["basis.bin", "4", "2"],
        ),
        (&["gone.ply"], "not-found", &["gone.ply"]),
    ] {
        let (paths, out): (Vec<PathBuf>, _) = (
            inputs.iter().map(|name| at(name)).collect(),
            at("out.splattie"),
        );
        let mut args = vec!["bundle", "--json", "-o", utf8(&out)];
        args.extend(paths.iter().map(|path| utf8(path)));
        let error = &cli::check_json(&args, 1)["error"];
        assert_eq!(error["code"], code, "{error}");
        let whole = error.to_string();
        for word in words {
            assert!(whole.contains(word), "{inputs:?}: no {word:?} in {whole}");
        }
        assert_eq!(std::fs::read(&out).unwrap(), b"the old file");
        assert_eq!(names(folder.path()), before, "{inputs:?}");
    }
    let ply = at("head.ply");
    cli::check_refused(&["bundle", utf8(&ply), "-o", "x.zip"], 1, &[".splattie"]);
    cli::check_refused(
        &[
            "bundle",
            utf8(&ply),
            "-o",
            "x.splattie",
            "--format-version",
            "0.9.0",
        ],
        2,
        &["0.9.0", "0.3.0"],
    );
    cli::check_refused(
        &["inspect", utf8(&ply), "--max-unpacked", "4GB"],
        2,
        &["4GiB"],
    );
    let out = at("x.splattie");
    cli::check_refused(
        &["convert", utf8(&ply), utf8(&out)],
        1,
        &["splatstage bundle"],
    );
}

#[test]
fn a_kill_while_saving_leaves_the_old_file_or_the_new_one() {
    let Some(real) = given::data("avatar/ict_head.splattie") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head.splattie");
    Bundle::open(&memory(&made()), None)
        .unwrap()
        .save(&out)
        .unwrap();
    let old = std::fs::read(&out).unwrap();
    let (mut stayed, mut replaced) = (0, 0);
    // From before anything is written; the last one is left to end by itself.
    let delays_ms = [1, 20, 60, 120, 200, 300, 500].map(Some);
    for delay_ms in delays_ms.into_iter().chain([None]) {
        std::fs::write(&out, &old).unwrap();
        let mut child = cli::splatstage(["bundle", utf8(&real), "-o", utf8(&out)])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        if let Some(delay_ms) = delay_ms {
            std::thread::sleep(Duration::from_millis(delay_ms));
            // It may have ended before.
            let _ = child.kill();
        }
        child.wait().unwrap();
        if std::fs::read(&out).unwrap() == old {
            stayed += 1;
        } else {
            replaced += 1;
            let all = load_path(&out);
            assert_eq!(all.splats.len(), 20_000, "whole after {delay_ms:?} ms");
        }
    }
    assert!(
        stayed > 0 && replaced > 0,
        "{stayed} stayed, {replaced} replaced"
    );
}

#[test]
fn an_spz_keeps_its_rows_and_is_not_turned() {
    let folder = tempfile::tempdir().unwrap();
    write_files(&export(), folder.path());
    let at = |name: &str| folder.path().join(name);
    let made_at = written(&made(), folder.path());
    let options = ConvertOptions::default();
    convert(&made_at, &at("small.spz"), &options, &quiet).unwrap();
    let parts = [
        "small.spz",
        "bone_tree.json",
        "weights.json",
        "basis.bin",
        "basis.json",
    ];
    let out = at("small.splattie");
    bundle(&parts.map(at), &out, &BundleOptions::default(), &quiet).unwrap();
    let (got, want) = (load_path(&out), loaded(&made()));
    for (got, want) in got.splats.means.iter().zip(&want.splats.means) {
        assert!((*got - *want).length() < 1e-3, "{got}, not {want}");
    }
    let avatar = got.avatar.unwrap();
    assert_eq!(avatar.body, want.avatar.unwrap().body);
    assert_eq!(avatar.manifest["avatar"]["splat"]["format"], "spz");
    // For players of 0.1 that is too new.
    let mut small = Bundle::open_path(&out, None).unwrap();
    let lost = small.set_version(FormatVersion::V0_1_1).unwrap();
    assert!(lost[0].contains("plain PLY"), "{lost:?}");
    // A PLY that says it lies otherwise is read as all players do, with a word.
    let turned = ConvertOptions {
        to_axes: Some(Axes::RFU),
        ..ConvertOptions::default()
    };
    convert(&made_at, &at("head.ply"), &turned, &quiet).unwrap();
    let done = bundle(&[at("head.ply")], &out, &BundleOptions::default(), &quiet).unwrap();
    assert!(done.warnings[0].contains("RFU"), "{:?}", done.warnings);
}

#[test]
fn labels_that_are_there_twice_are_warned_of() {
    let files = made_with(
        "basis.json",
        text(&json!({ "labels": ["jawOpen", "jawOpen"] })),
    );
    let all = loaded(&files);
    assert!(
        all.warnings[0].contains("\"jawOpen\""),
        "{:?}",
        all.warnings
    );
}

#[test]
fn converting_an_avatar_says_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&made(), folder.path());
    let out = folder.path().join("made.ply");
    let report = cli::check_json(&["convert", utf8(&path), utf8(&out), "--json"], 0);
    let lost = report["lost"].to_string();
    for word in ["bones", "weights", "blendshapes", "states"] {
        assert!(lost.contains(word), "no {word} in {lost}");
    }
    assert!(load_path(&out).avatar.is_none());
}

#[test]
fn scenes_obey_the_limit_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&made(), folder.path());
    for command in ["inspect", "trace"] {
        cli::check_refused(
            &[command, utf8(&path), "--max-unpacked", "1KiB"],
            1,
            &["at most 1024"],
        );
    }
    cli::check_json(
        &[
            "trace",
            utf8(&path),
            "--max-unpacked",
            "1MiB",
            "--to",
            "0.1",
            "--json",
        ],
        0,
    );
}
