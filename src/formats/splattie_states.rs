//! `states.json` of a `.splattie` bundle: checks the fields that are known, keeps everything.
//!
//! What the states do is the business of scripts; here is only whether the fields that they read
//! are of the right kind. Unknown fields, absent ones and `null` are all right. Source: FORMAT.md
//! and StateConfig of affromero/splattie-widget, v0.1.1 and v0.3.0.

use super::splattie_manifest::{json, shown};
use super::{Code, Error, Place};
use serde_json::Value;

/// The document, whole.
///
/// # Errors
/// [`Code::BadStates`]: no JSON, no object, or a known field of the wrong kind, which is named.
pub(crate) fn read(bytes: &[u8], at: &Place) -> Result<Value, Error> {
    let document = json(bytes).map_err(|e| at.error(Code::BadStates, e))?;
    check(&document).map_err(|e| at.error(Code::BadStates, e))?;
    Ok(document)
}

/// Numbers of a camera; `lookAt` is a word or a point.
const CAMERA: &[&str] = &["theta", "phi", "radius", "fov"];
/// Numbers of the floating motion.
const GHOST: &[&str] = &["amplitude", "frequency", "wobble", "phase", "driftYaw"];
/// Numbers of following the cursor.
const TRACKING: &[&str] = &["eyes", "head", "torso"];

/// Numbers of the gaze, which must not be negative, and those of its darts.
const GAZE: &[&str] = &[
    "intensity",
    "smoothingTau",
    "deadzone",
    "maxEyeYaw",
    "maxEyePitch",
    "maxNeckYaw",
    "maxNeckPitch",
];
const SACCADE: &[&str] = &["amplitude", "moveMs"];
/// Largest number of any field: beyond, products leave what a float holds.
const NUMBER_MAX: f64 = 1e9;

/// The first known field of the wrong kind.
pub(crate) fn check(document: &Value) -> Result<(), String> {
    if !document.is_object() {
        return Err(format!(
            "is {} where an object with the fields defaults, states and transitions is expected",
            shown(document)
        ));
    }
    let defaults = &document["defaults"];
    object(defaults, "defaults")?;
    numbers(&defaults["camera"], "defaults.camera", CAMERA)?;
    let blink = &defaults["autoBlink"];
    if !blink.is_boolean() {
        numbers(blink, "defaults.autoBlink", &["duration"])?;
        list(&blink["interval"], "defaults.autoBlink.interval", 2)?;
    }
    let gaze = &defaults["gaze"];
    not_negative(gaze, "defaults.gaze", GAZE)?;
    let saccade = &gaze["saccade"];
    if !saccade.is_boolean() {
        let field = "defaults.gaze.saccade";
        not_negative(saccade, field, SACCADE)?;
        list(&saccade["intervalMs"], &format!("{field}.intervalMs"), 2)?;
        let enabled = &saccade["enabled"];
        if !(enabled.is_null() || enabled.is_boolean()) {
            return Err(expected(
                &format!("{field}.enabled"),
                enabled,
                "true or false",
            ));
        }
    }
    object(&document["states"], "states")?;
    for (name, state) in document["states"].as_object().into_iter().flatten() {
        let field = |part: &str| format!("states.{name}.{part}");
        object(state, &format!("states.{name}"))?;
        numbers(&state["ghost"], &field("ghost"), GHOST)?;
        numbers(&state["camera"], &field("camera"), CAMERA)?;
        numbers(&state["tracking"], &field("tracking"), TRACKING)?;
        list(&state["rotation"], &field("rotation"), 3)?;
        object(&state["expression"], &field("expression"))?;
        for (key, value) in state["expression"].as_object().into_iter().flatten() {
            number(value, &format!("{}.{key}", field("expression")))?;
        }
        object(&state["pose"], &field("pose"))?;
        for (joint, value) in state["pose"].as_object().into_iter().flatten() {
            list(value, &format!("{}.{joint}", field("pose")), 4)?;
        }
    }
    object(&document["transitions"], "transitions")?;
    for (name, transition) in document["transitions"].as_object().into_iter().flatten() {
        let field = format!("transitions.{name}");
        numbers(transition, &field, &["duration"])?;
        let easing = &transition["easing"];
        if !(easing.is_null() || easing.is_string()) {
            return Err(expected(&format!("{field}.easing"), easing, "a name"));
        }
    }
    Ok(())
}

fn expected(field: &str, found: &Value, what: &str) -> String {
    format!(
        "the field {field} is {} where {what} is expected",
        shown(found)
    )
}

fn object(value: &Value, field: &str) -> Result<(), String> {
    if value.is_null() || value.is_object() {
        Ok(())
    } else {
        Err(expected(field, value, "an object"))
    }
}

fn number(value: &Value, field: &str) -> Result<(), String> {
    match value.as_f64() {
        Some(number) if number.abs() <= NUMBER_MAX => Ok(()),
        None if value.is_null() => Ok(()),
        _ => Err(expected(field, value, "a number (up to 1e9)")),
    }
}

/// As [`numbers`], none of them below 0.
fn not_negative(value: &Value, field: &str, names: &[&str]) -> Result<(), String> {
    numbers(value, field, names)?;
    for name in names {
        let number = &value[*name];
        if number.as_f64().is_some_and(|n| n < 0.0) {
            let field = format!("{field}.{name}");
            return Err(expected(&field, number, "a number that is not negative"));
        }
    }
    Ok(())
}

/// An object whose fields of these names are numbers.
fn numbers(value: &Value, field: &str, names: &[&str]) -> Result<(), String> {
    object(value, field)?;
    for name in names {
        number(&value[*name], &format!("{field}.{name}"))?;
    }
    Ok(())
}

fn is_tame(value: &Value) -> bool {
    value.as_f64().is_some_and(|n| n.abs() <= NUMBER_MAX)
}

/// A list of so many numbers.
fn list(value: &Value, field: &str, count: usize) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::Array(items) if items.len() == count && items.iter().all(is_tame) => Ok(()),
        _ => Err(expected(
            field,
            value,
            &format!("a list of {count} numbers"),
        )),
    }
}
