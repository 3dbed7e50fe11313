//! The `film` table of a picture: how a phone films it. Numbers only; presets, focus and exposure are
//! the library's (`scripts/phone.luau`), the pass itself is `gpu::film`.

use super::api::{self, Record};
use super::args;
use crate::film::{Depth, Film, OVERSCAN_MAX, PLANES_MAX, Plane, Readout, TIME_S_MAX};
use mlua::{Error, Result, Table, Value};

/// Names of the ways to depth.
const DEPTHS: [(&str, Depth); 3] = [
    ("two_layers", Depth::TwoLayers),
    ("one_layer", Depth::OneLayer),
    ("proxy", Depth::Proxy),
];

/// Light is multiplied by at most two to this power, either way.
const STOPS_MAX: f64 = 12.0;

/// What `value` says, defaults for what it does not say: `false` and nil film nothing, `true` films as
/// [`Film::default`].
pub(super) fn film_of(value: &Value, what: &str) -> Result<Option<Box<Film>>> {
    let table = match value {
        Value::Nil | Value::Boolean(false) => return Ok(None),
        Value::Boolean(true) => return Ok(Some(Box::default())),
        Value::Table(table) => table,
        _ => return args::refuse(what, "a table, true or false", value),
    };
    args::only_keys(table, &api::FILM, what)?;
    let mut film = Film::default();
    let number =
        |table: &Table, key: &str, unit: &str, low: f64, high: f64| -> Result<Option<f64>> {
            match table.raw_get::<Value>(key)? {
                Value::Nil => Ok(None),
                value => args::within(&value, &format!("{what}.{key}"), unit, low, high).map(Some),
            }
        };
    let set = |slot: &mut f32, key: &str, unit: &str, low: f64, high: f64| -> Result<()> {
        if let Some(v) = number(table, key, unit, low, high)? {
            *slot = v as f32;
        }
        Ok(())
    };
    set(
        &mut film.overscan,
        "overscan",
        "times",
        1.0,
        f64::from(OVERSCAN_MAX),
    )?;
    set(&mut film.focus_m, "focus", "metres", 0.01, 1e6)?;
    set(&mut film.aperture_m, "aperture", "metres", 0.0, 0.1)?;
    set(&mut film.distortion, "distortion", "share", -0.3, 0.3)?;
    set(&mut film.aberration, "aberration", "share", -0.02, 0.02)?;
    set(&mut film.falloff, "falloff", "share", 0.0, 0.95)?;
    set(&mut film.sharpen, "sharpen", "share", 0.0, 4.0)?;
    set(&mut film.shoulder, "shoulder", "linear light", 0.0, 1.0)?;
    if let Some(v) = number(table, "exposure", "seconds", 0.0, TIME_S_MAX)? {
        film.exposure_s = v;
    }
    if let Some(v) = number(table, "readout", "seconds", 0.0, TIME_S_MAX)? {
        film.readout_s = v;
    }
    if let Some(stops) = number(table, "stops", "stops", -STOPS_MAX, STOPS_MAX)? {
        film.gain = stops.exp2() as f32;
    }
    if let Some(direction) = named(table, "direction", what, &Readout::NAMED)? {
        film.readout = direction;
    }
    if let Some(depth) = named(table, "depth", what, &DEPTHS)? {
        film.depth = depth;
    }
    match table.raw_get::<Value>("jitter")? {
        Value::Nil => {}
        value => film.jitter = args::boolean(&value, &format!("{what}.jitter"))?,
    }
    if let Some(values) = list(table, "balance", what)? {
        if values.len() != 3 {
            return Err(Error::runtime(format!(
                "{what}.balance must have three numbers, got {}",
                values.len()
            )));
        }
        for (slot, value) in film.balance.iter_mut().zip(&values) {
            *slot = args::within(value, &format!("{what}.balance"), "times", 0.0, 16.0)? as f32;
        }
    }
    if let Some(planes) = list(table, "planes", what)? {
        if planes.len() > PLANES_MAX {
            return Err(Error::runtime(format!(
                "{what}.planes: at most {PLANES_MAX}, got {}",
                planes.len()
            )));
        }
        film.planes = planes
            .iter()
            .enumerate()
            .map(|(i, plane)| plane_of(plane, &format!("{what}.planes[{}]", i + 1)))
            .collect::<Result<_>>()?;
    }
    let inner = |key: &str, known: &Record| -> Result<Option<Table>> {
        match table.raw_get::<Value>(key)? {
            Value::Nil => Ok(None),
            value => {
                let name = format!("{what}.{key}");
                let table = args::table(&value, &name)?;
                args::only_keys(table, known, &name)?;
                Ok(Some(table.clone()))
            }
        }
    };
    let inside =
        |table: &Table, of: &str, key: &str, unit: &str, high: f64| -> Result<Option<f64>> {
            match table.raw_get::<Value>(key)? {
                Value::Nil => Ok(None),
                value => {
                    args::within(&value, &format!("{what}.{of}.{key}"), unit, 0.0, high).map(Some)
                }
            }
        };
    if let Some(table) = inner("halation", &api::HALATION)? {
        let glow = &mut film.halation;
        for (slot, key, unit, high) in [
            (&mut glow.strength, "strength", "share", 4.0),
            (&mut glow.radius, "radius", "picture heights", 0.12),
            (&mut glow.threshold, "threshold", "linear light", 100.0),
        ] {
            if let Some(v) = inside(&table, "halation", key, unit, high)? {
                *slot = v as f32;
            }
        }
    }
    if let Some(table) = inner("noise", &api::NOISE)? {
        for (slot, key) in [
            (&mut film.noise_shot, "shot"),
            (&mut film.noise_read, "read"),
        ] {
            if let Some(v) = inside(&table, "noise", key, "variance", 1.0)? {
                *slot = v as f32;
            }
        }
    }
    Ok(Some(Box::new(film)))
}

/// The value of one of `names` that a field names.
fn named<T: Clone>(table: &Table, key: &str, what: &str, names: &[(&str, T)]) -> Result<Option<T>> {
    let value = table.raw_get::<Value>(key)?;
    if value.is_nil() {
        return Ok(None);
    }
    let what = format!("{what}.{key}");
    let text = args::text(&value, &what)?;
    if let Some((_, found)) = names.iter().find(|(name, _)| *name == text) {
        return Ok(Some(found.clone()));
    }
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    Err(Error::runtime(format!(
        "{what} must be one of {}, got '{}'",
        known.join(", "),
        args::beginning(text.as_bytes(), 40)
    )))
}

fn list(table: &Table, key: &str, what: &str) -> Result<Option<Vec<Value>>> {
    let value = table.raw_get::<Value>(key)?;
    if value.is_nil() {
        return Ok(None);
    }
    let list = args::table(&value, &format!("{what}.{key}"))?;
    if list.raw_len() > PLANES_MAX.max(3) {
        return args::refuse(&format!("{what}.{key}"), "a short list", &value);
    }
    let values = (1..=list.raw_len()).map(|i| list.raw_get(i));
    values.collect::<Result<_>>().map(Some)
}

fn plane_of(value: &Value, what: &str) -> Result<Plane> {
    let table = args::table(value, what)?;
    args::only_keys(table, &api::PLANE, what)?;
    let point = args::vector(&table.raw_get("point")?, &format!("{what}.point"), "metres")?;
    let name = format!("{what}.normal");
    let given: Value = table.raw_get("normal")?;
    match args::vector(&given, &name, "direction")?.try_normalize() {
        Some(normal) => Ok(Plane { point, normal }),
        None => args::refuse(&name, "a direction", &given),
    }
}
