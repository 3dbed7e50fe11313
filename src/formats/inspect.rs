//! What `inspect` says about a file: facts as JSON, for people and programs.

use super::{Avatar, Error, Format, Loaded};
use crate::scene::body::Skin;
use serde_json::{Value, json};

/// The facts: `format, version, count, sh_degree, axes, antialiased, bounds.min, bounds.max` (world
/// space, `null` without a drawable splat), `non_finite, warnings[]`, and for streamed scans
/// `levels[{level, count, present}]`, where `count` above is that of the finest level. For avatars
/// also `format_version, asset_type, bones[{name, parent, position}], weights` (rows of them),
/// `shapes[], states[]` (names) `, manifest`.
#[must_use]
pub fn report(loaded: &Loaded) -> Value {
    let bounds = loaded.splats.bounds();
    let corner = |p: glam::Vec3| p.to_array().map(f64::from);
    let finest = loaded.levels.iter().min_by_key(|l| l.level);
    let count = match finest {
        Some(level) if loaded.format == Format::LodMeta => level.count,
        _ => loaded.splats.len() as u64,
    };
    let mut facts = json!({
        "format": loaded.format.as_str(),
        "version": loaded.version,
        "count": count,
        "sh_degree": loaded.sh_degree_in_file,
        "axes": loaded.axes.to_string(),
        "antialiased": loaded.splats.antialiased,
        "bounds": {
            "min": bounds.map(|b| corner(b.min)),
            "max": bounds.map(|b| corner(b.max)),
        },
        "non_finite": loaded.non_finite,
        "warnings": loaded.warnings,
    });
    if loaded.format == Format::LodMeta {
        let levels: Vec<Value> = loaded
            .levels
            .iter()
            .map(|l| json!({"level": l.level, "count": l.count, "present": l.present}))
            .collect();
        facts["levels"] = Value::Array(levels);
    }
    if let Some(avatar) = &loaded.avatar {
        add_avatar(&mut facts, avatar);
    }
    facts
}

fn add_avatar(facts: &mut Value, avatar: &Avatar) {
    let bones = &avatar.body.bones;
    let shown: Vec<Value> = bones
        .iter()
        .map(|bone| {
            let parent = bone.parent.and_then(|p| bones.get(usize::from(p)));
            json!({
                "name": bone.name,
                "parent": parent.map(|parent| &parent.name),
                "position": bone.rest.to_array(),
            })
        })
        .collect();
    let states = avatar.states.as_ref().and_then(|s| s["states"].as_object());
    let states: Vec<&String> = states.into_iter().flatten().map(|(name, _)| name).collect();
    facts["format_version"] = avatar.manifest["formatVersion"].clone();
    facts["asset_type"] = avatar.asset_type.as_str().into();
    facts["bones"] = Value::Array(shown);
    facts["weights"] = avatar.body.skin.as_ref().map_or(0, Skin::len).into();
    facts["shapes"] = json!(avatar.body.shapes.names);
    facts["states"] = json!(states);
    facts["manifest"] = avatar.manifest.clone();
}

/// A refused file: `{"error": {"code", "message", "file", "entry"}}`.
#[must_use]
pub fn error_report(error: &Error) -> Value {
    json!({"error": {
        "code": error.code.as_str(),
        "message": error.message,
        "file": error.file,
        "entry": error.entry,
    }})
}
