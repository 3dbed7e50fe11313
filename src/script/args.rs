//! Lua values to numbers, vectors, colours, rotations: checked, with messages that name function,
//! argument, unit and the value given. NaN and infinities are refused here.

use super::api::{self, Record};
use glam::{EulerRot, Quat, Vec3};
use mlua::{Error, Result, Table, Value};

/// Largest angle: beyond it an f32 has no fractions left anyway, degrees.
const ANGLE_DEG_MAX: f64 = 1e9;

/// What a value is, for "got ...".
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "nothing (nil)".to_owned(),
        Value::Boolean(b) => b.to_string(),
        Value::Integer(n) => n.to_string(),
        Value::Number(n) => number_text(*n),
        Value::Vector(v) => format!("vector({}, {}, {})", v.x(), v.y(), v.z()),
        Value::String(text) => {
            let bytes = text.as_bytes();
            let shown = beginning(&bytes, 40);
            let dots = if bytes.len() > 40 { "..." } else { "" };
            format!("'{shown}{dots}'")
        }
        Value::Buffer(buffer) => format!("a buffer of {} bytes", buffer.len()),
        Value::UserData(data) => match data.type_name() {
            Ok(name) => format!("a {}", name.to_string_lossy()),
            Err(_) => "a host object".to_owned(),
        },
        other => format!("a {}", other.type_name()),
    }
}

/// A number in few digits.
pub(super) fn number_text(n: f64) -> String {
    // Display has no exponents: the largest numbers would have 309 digits.
    if n != 0.0 && n.is_finite() && !(1e-6..1e17).contains(&n.abs()) {
        return format!("{n:e}");
    }
    n.to_string()
}

/// The first `bytes_max` bytes of a text that may be very long.
pub(super) fn beginning(bytes: &[u8], bytes_max: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(bytes_max)])
}

/// `what` must be `wanted`, got `value`.
pub(super) fn refuse<T>(what: &str, wanted: &str, value: &Value) -> Result<T> {
    Err(Error::runtime(format!(
        "{what} must be {wanted}, got {}",
        describe(value)
    )))
}

/// A finite number.
pub(super) fn number(value: &Value, what: &str, unit: &str) -> Result<f64> {
    let wanted = || {
        if unit.is_empty() {
            "a number".to_owned()
        } else {
            format!("a number ({unit})")
        }
    };
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Number(n) if n.is_finite() => Ok(*n),
        _ => refuse(what, &wanted(), value),
    }
}

/// A number above 0, also once it is an f32.
pub(super) fn positive(value: &Value, what: &str, unit: &str) -> Result<f64> {
    let n = number(value, what, unit)?;
    if n as f32 > 0.0 && (n as f32).is_finite() {
        return Ok(n);
    }
    refuse(what, format!("above 0 {unit}").trim_end(), value)
}

/// A number in `low..=high`.
pub(super) fn within(value: &Value, what: &str, unit: &str, low: f64, high: f64) -> Result<f64> {
    let n = number(value, what, unit)?;
    if (low..=high).contains(&n) {
        return Ok(n);
    }
    let wanted = format!("from {} to {} {unit}", number_text(low), number_text(high));
    refuse(what, wanted.trim_end(), value)
}

/// Degrees as radians, also once they are an f32.
pub(super) fn angle(value: &Value, what: &str) -> Result<f64> {
    Ok(within(value, what, "degrees", -ANGLE_DEG_MAX, ANGLE_DEG_MAX)?.to_radians())
}

/// A seed: any whole number that fits 64 bits, with or without a sign; what is behind the point is
/// dropped.
pub(super) fn seed(value: &Value, what: &str) -> Result<u64> {
    let n = within(value, what, "", i64::MIN as f64, u64::MAX as f64)?;
    Ok(if n < 0.0 {
        (n as i64).cast_unsigned()
    } else {
        n as u64
    })
}

/// A whole number in `low..=high`.
pub(super) fn whole(value: &Value, what: &str, low: u32, high: u32) -> Result<u32> {
    let n = number(value, what, "")?;
    if n.fract() == 0.0 && (f64::from(low)..=f64::from(high)).contains(&n) {
        return Ok(n as u32);
    }
    refuse(what, &format!("a whole number from {low} to {high}"), value)
}

/// Text.
pub(super) fn text(value: &Value, what: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.to_string_lossy()),
        _ => refuse(what, "a string", value),
    }
}

/// True or false.
pub(super) fn boolean(value: &Value, what: &str) -> Result<bool> {
    match value {
        Value::Boolean(b) => Ok(*b),
        _ => refuse(what, "true or false", value),
    }
}

/// A table.
pub(super) fn table<'v>(value: &'v Value, what: &str) -> Result<&'v Table> {
    match value {
        Value::Table(table) => Ok(table),
        _ => refuse(what, "a table", value),
    }
}

/// A finite native vector, metres or as `unit` says.
pub(super) fn vector(value: &Value, what: &str, unit: &str) -> Result<Vec3> {
    match value {
        Value::Vector(v) => {
            let v = Vec3::new(v.x(), v.y(), v.z());
            if v.is_finite() {
                return Ok(v);
            }
            refuse(what, &format!("finite ({unit})"), value)
        }
        _ => refuse(what, &format!("a vector ({unit})"), value),
    }
}

/// Three or four numbers in a list.
fn list<const N: usize>(table: &Table, what: &str, unit: &str) -> Result<[f64; N]> {
    let mut out = [0.0; N];
    for (i, slot) in out.iter_mut().enumerate() {
        let value: Value = table.raw_get(i + 1)?;
        *slot = number(&value, &format!("{what}[{}]", i + 1), unit)?;
    }
    Ok(out)
}

/// Two numbers in a list.
pub(super) fn pair(value: &Value, what: &str) -> Result<[f64; 2]> {
    match value {
        Value::Table(table) if table.raw_len() == 2 => list::<2>(table, what, ""),
        _ => refuse(what, "a list of two numbers", value),
    }
}

/// A display-space colour with alpha: `'#rrggbb[aa]'`, `{r, g, b[, a]}` or a vector. Red, green and
/// blue lie in 0 to `high`, alpha in 0 to 1 (1 when absent).
pub(super) fn colour(value: &Value, what: &str, high: f32) -> Result<[f32; 4]> {
    let wanted = "a colour ('#rrggbb', '#rrggbbaa', {r, g, b}, {r, g, b, a} or a vector, 0 to 1)";
    let rgba = match value {
        Value::Vector(v) => [v.x(), v.y(), v.z(), 1.0],
        Value::String(text) => match hex_colour(&text.to_string_lossy()) {
            Some(rgba) => rgba,
            None => return refuse(what, wanted, value),
        },
        Value::Table(t) if t.raw_len() == 3 => {
            let [r, g, b] = list::<3>(t, what, "0 to 1")?.map(|c| c as f32);
            [r, g, b, 1.0]
        }
        Value::Table(t) if t.raw_len() == 4 => list::<4>(t, what, "0 to 1")?.map(|c| c as f32),
        _ => return refuse(what, wanted, value),
    };
    let [r, g, b, a] = rgba;
    if [r, g, b].iter().all(|c| (0.0..=high).contains(c)) && (0.0..=1.0).contains(&a) {
        return Ok(rgba);
    }
    Err(Error::runtime(format!(
        "{what} must have red, green and blue from 0 to {high} and alpha from 0 to 1, got \
         {{{r}, {g}, {b}, {a}}}"
    )))
}

fn hex_colour(text: &str) -> Option<[f32; 4]> {
    let digits = text.strip_prefix('#')?;
    if !matches!(digits.len(), 6 | 8) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut rgba = [1.0; 4];
    for (i, channel) in rgba.iter_mut().enumerate().take(digits.len() / 2) {
        let byte = u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok()?;
        *channel = f32::from(byte) / 255.0;
    }
    Some(rgba)
}

/// A rotation: `{yaw =, pitch =, roll =}` in degrees (each 0 when absent) or a quaternion
/// `{x, y, z, w}` of any length but 0.
pub(super) fn rotation(value: &Value, what: &str) -> Result<Quat> {
    let wanted = "{yaw =, pitch =, roll =} in degrees or a quaternion {x, y, z, w}";
    let Value::Table(t) = value else {
        return refuse(what, wanted, value);
    };
    match t.raw_len() {
        4 => {
            let [x, y, z, w] = list::<4>(t, what, "quaternion")?;
            let q = glam::DQuat::from_xyzw(x, y, z, w);
            let length = q.length();
            if !(1e-9..1e9).contains(&length) {
                return Err(Error::runtime(format!(
                    "{what} must be a quaternion that is not 0, got {{{x}, {y}, {z}, {w}}}"
                )));
            }
            // A unit quaternion passes through untouched, so that it stays bit for bit.
            let q = if (length - 1.0).abs() < 1e-7 {
                q
            } else {
                q / length
            };
            Ok(q.as_quat())
        }
        0 => {
            only_keys(t, &api::EULER, what)?;
            let angle = |key: &str| -> Result<f32> {
                match t.raw_get::<Value>(key)? {
                    Value::Nil => Ok(0.0),
                    value => Ok(angle(&value, &format!("{what}.{key}"))? as f32),
                }
            };
            let (yaw, pitch, roll) = (angle("yaw")?, angle("pitch")?, angle("roll")?);
            // The signs of `camera::Camera::from_angles`.
            Ok(Quat::from_euler(EulerRot::YXZ, yaw, pitch, -roll))
        }
        _ => refuse(what, wanted, value),
    }
}

/// The number under `key`, when there is one.
pub(super) fn optional_number(
    table: &Table,
    key: &str,
    what: &str,
    unit: &str,
) -> Result<Option<f64>> {
    match table.raw_get::<Value>(key)? {
        Value::Nil => Ok(None),
        value => number(&value, &format!("{what}.{key}"), unit).map(Some),
    }
}

/// Refuses keys that the record has not; what stands at 1, 2, 3, ... only where it has items.
pub(super) fn only_keys(table: &Table, record: &Record, what: &str) -> Result<()> {
    only_named(table, what, record, |name| record.has(name))
}

/// As [`only_keys`], where only some of the record's fields may be there.
pub(super) fn only_named(
    table: &Table,
    what: &str,
    record: &Record,
    is_known: impl Fn(&str) -> bool,
) -> Result<()> {
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair?;
        let name = match &key {
            Value::String(name) => name.to_string_lossy(),
            Value::Integer(_) | Value::Number(_) if record.items.is_some() => continue,
            other => describe(other),
        };
        if !is_known(&name) {
            let mut known = record.names();
            known.retain(|name| is_known(name));
            return Err(Error::runtime(format!(
                "{what} has no field {name}{}",
                suggestion(&name, &known)
            )));
        }
    }
    Ok(())
}

/// `; did you mean X?` or the list of what there is.
pub(super) fn suggestion(name: &str, known: &[&str]) -> String {
    match near(name, known) {
        Some(best) => format!("; did you mean '{best}'?"),
        None => format!("; there is {}", known.join(", ")),
    }
}

/// The known name that `name` is a slip of the finger away from.
pub(super) fn near<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|candidate| (edits(name, candidate), *candidate))
        .min()
        .filter(|(distance, best)| *distance <= 2 && *distance * 2 < best.chars().count())
        .map(|(_, best)| best)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(32).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(32).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A glam vector as Luau's.
pub(super) fn to_lua(v: Vec3) -> mlua::Vector {
    mlua::Vector::new(v.x, v.y, v.z)
}
