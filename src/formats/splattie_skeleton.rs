//! Bones of a `.splattie` bundle: `bone_tree.json` of heads, `skeleton.json` of bodies and objects.
//!
//! Told apart by their fields, not by name. A bone's number is its column in the weights: in
//! `bone_tree.json` depth first, a bone before its children; in `skeleton.json` the order of the
//! file. Positions are absolute, metres, in the splats' space; no rest rotations. Source: FORMAT.md
//! of affromero/splattie-widget, v0.1.1 (tree) and v0.3.0 (lists).

use super::splattie_manifest::{json, shown};
use super::{Code, Error, Place};
use crate::scene::body::{BONES_MAX, Bone};
use glam::Vec3;
use serde_json::Value;
use std::collections::HashSet;

/// The bones of a file, parents before children, and what a person should know.
///
/// # Errors
/// [`Code::BadSkeleton`]: neither of the two documents, a field of the wrong kind, no bone or more
/// than [`BONES_MAX`], a name twice, a bone that is its own ancestor or comes before its parent, a
/// position that is not finite.
pub(crate) fn read(bytes: &[u8], at: &Place) -> Result<(Vec<Bone>, Vec<String>), Error> {
    let bad = |message| at.error(Code::BadSkeleton, message);
    let document = json(bytes).map_err(bad)?;
    let mut warnings = Vec::new();
    let bones = if let Some(roots) = document.get("bones") {
        let roots = roots
            .as_array()
            .ok_or_else(|| bad(expected("bones", roots, "a list of bones")))?;
        if roots.len() > 1 {
            warnings.push(format!(
                "the field bones of the skeleton holds {} roots where one is used: the first",
                roots.len()
            ));
        }
        let mut bones = Vec::new();
        if let Some(root) = roots.first() {
            add_tree(root, "bones[0]", None, &mut bones).map_err(bad)?;
        }
        bones
    } else if document.get("names").is_some() || document.get("parents").is_some() {
        from_lists(&document).map_err(bad)?
    } else {
        return Err(bad(
            "holds neither the field bones (a tree, as in bone_tree.json) nor the fields names, \
             parents and restPositions (as in skeleton.json)"
                .to_owned(),
        ));
    };
    if bones.is_empty() {
        return Err(bad("holds 0 bones where at least 1 is expected".to_owned()));
    }
    let mut names = HashSet::new();
    if let Some(twice) = bones.iter().find(|bone| !names.insert(bone.name.as_str())) {
        return Err(bad(format!(
            "the bone {:?} is there twice; each name has to be unique",
            twice.name
        )));
    }
    Ok((bones, warnings))
}

fn expected(field: &str, found: &Value, what: &str) -> String {
    format!(
        "the field {field} is {} where {what} is expected",
        shown(found)
    )
}

fn too_many(found: usize) -> String {
    format!("holds {found} bones where at most {BONES_MAX} are read")
}

/// Adds a bone and what hangs on it. The parser's nesting limit bounds the depth of the calls.
fn add_tree(
    value: &Value,
    field: &str,
    parent: Option<u16>,
    bones: &mut Vec<Bone>,
) -> Result<(), String> {
    if bones.len() >= BONES_MAX {
        return Err(format!(
            "holds more than {BONES_MAX} bones where at most {BONES_MAX} are read"
        ));
    }
    let name = name(&value["name"], &format!("{field}.name"))?;
    let mut ancestor = parent;
    while let Some(bone) = ancestor.and_then(|index| bones.get(usize::from(index))) {
        if bone.name == name {
            return Err(format!(
                "the bone {name:?} is its own ancestor ({field}); each bone hangs on another one"
            ));
        }
        ancestor = bone.parent;
    }
    let rest = position(&value["position"], &format!("{field}.position"))?;
    let own = bones.len() as u16;
    bones.push(Bone { name, parent, rest });
    match &value["children"] {
        Value::Null => Ok(()),
        Value::Array(children) => {
            for (index, child) in children.iter().enumerate() {
                let field = format!("{field}.children[{index}]");
                add_tree(child, &field, Some(own), bones)?;
            }
            Ok(())
        }
        other => Err(expected(
            &format!("{field}.children"),
            other,
            "a list of bones",
        )),
    }
}

fn from_lists(document: &Value) -> Result<Vec<Bone>, String> {
    let list = |field: &str| {
        document[field]
            .as_array()
            .ok_or_else(|| expected(field, &document[field], "a list"))
    };
    let (names, parents, rests) = (list("names")?, list("parents")?, list("restPositions")?);
    let count = names.len();
    if count > BONES_MAX {
        return Err(too_many(count));
    }
    for (field, found) in [("parents", parents), ("restPositions", rests)] {
        if found.len() != count {
            return Err(format!(
                "the field {field} has {} items where names has {count}",
                found.len()
            ));
        }
    }
    match &document["jointCount"] {
        Value::Null => {}
        said if said.as_u64() == Some(count as u64) => {}
        said => {
            return Err(format!(
                "the field jointCount is {} where names has {count}",
                shown(said)
            ));
        }
    }
    let parents = parents
        .iter()
        .enumerate()
        .map(|(index, value)| match value.as_i64() {
            Some(-1) => Ok(None),
            Some(parent) if (0..count as i64).contains(&parent) => Ok(Some(parent as usize)),
            _ => Err(format!(
                "the field parents[{index}] is {} where -1 (a root) or a bone below {count} is \
                 expected",
                shown(value)
            )),
        })
        .collect::<Result<Vec<Option<usize>>, String>>()?;
    let mut bones = Vec::with_capacity(count);
    for (index, parent) in parents.iter().copied().enumerate() {
        let name = name(&names[index], &format!("names[{index}]"))?;
        if let Some(parent) = parent.filter(|parent| *parent >= index) {
            return Err(if is_own_ancestor(index, &parents) {
                format!(
                    "the bone {name:?} (number {index}) is its own ancestor by the field \
                     parents[{index}], which is {parent}; parents have to lead to a root, -1"
                )
            } else {
                format!(
                    "the field parents[{index}] is {parent} where a bone before {index} is \
                     expected: parents come before their children"
                )
            });
        }
        bones.push(Bone {
            name,
            parent: parent.map(|parent| parent as u16),
            rest: position(&rests[index], &format!("restPositions[{index}]"))?,
        });
    }
    Ok(bones)
}

fn is_own_ancestor(bone: usize, parents: &[Option<usize>]) -> bool {
    let mut at = bone;
    // Any way that leads back does so within as many steps as there are bones.
    for _ in 0..parents.len() {
        match parents[at] {
            None => return false,
            Some(parent) if parent == bone => return true,
            Some(parent) => at = parent,
        }
    }
    false
}

fn name(value: &Value, field: &str) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| expected(field, value, "a bone's name"))
}

fn position(value: &Value, field: &str) -> Result<Vec3, String> {
    let wrong = || expected(field, value, "three finite numbers, metres,");
    let numbers = value.as_array().ok_or_else(wrong)?;
    let numbers: Vec<f32> = numbers
        .iter()
        .filter_map(|v| v.as_f64().map(|v| v as f32))
        .collect();
    match (numbers.as_slice(), value.as_array().map(Vec::len)) {
        ([x, y, z], Some(3)) => {
            let rest = Vec3::new(*x, *y, *z);
            if rest.is_finite() {
                Ok(rest)
            } else {
                Err(format!(
                    "the field {field} is {rest} where three finite numbers, metres, are expected"
                ))
            }
        }
        _ => Err(wrong()),
    }
}
