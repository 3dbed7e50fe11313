//! What `cues(from, to)` returned, as the waist's [`Cue`]s.
//!
//! Every cue is checked here: its time lies in the interval that was asked for, so that whoever asks
//! for one interval after the other hears each of them once. Nothing plays here.

use super::{args, plain};
use crate::frame::Cue;
use mlua::{Error, Result, Table, Value};
use serde_json::{Map, Value as Json};

/// Cues of one interval.
const CUES_MAX: usize = 4096;

/// The cues with `from_s <= t < to_s`, in order of time.
///
/// # Errors
/// Something else than a list of `{t =, kind =, ...}`, a time outside of the interval.
pub(super) fn from_lua(value: &Value, from_s: f64, to_s: f64) -> Result<Vec<Cue>> {
    let list = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(list) => list,
        _ => return args::refuse("what cues returns", "a list or nothing", value),
    };
    let count = list.raw_len();
    if count > CUES_MAX {
        return Err(Error::runtime(format!(
            "cues: one interval may have {CUES_MAX} cues, got {count}"
        )));
    }
    let mut cues = Vec::with_capacity(count);
    for i in 1..=count {
        let what = format!("cues[{i}]");
        let entry: Value = list.raw_get(i)?;
        let cue = cue_of(args::table(&entry, &what)?, &what)?;
        if !(from_s..to_s).contains(&cue.t_s) {
            return Err(Error::runtime(format!(
                "{what}.t must be from {from_s} up to but without {to_s} (seconds), got {}",
                cue.t_s
            )));
        }
        cues.push(cue);
    }
    // Stable: of two at one time the script's first comes first.
    cues.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    Ok(cues)
}

fn cue_of(table: &Table, what: &str) -> Result<Cue> {
    let mut named = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Value::String(name) = &key else {
            return args::refuse(&format!("{what}: a field's name"), "a string", &key);
        };
        let name = name.to_string_lossy();
        if !matches!(name.as_str(), "t" | "kind") {
            named.push((name, value));
        }
    }
    // A table's own order differs from run to run; what is written down must not.
    named.sort_by(|a, b| a.0.cmp(&b.0));
    let mut fields = Map::new();
    for (name, value) in named {
        let json = field(&value, &format!("{what}.{name}"))?;
        fields.insert(name, json);
    }
    Ok(Cue {
        t_s: args::number(&table.raw_get("t")?, &format!("{what}.t"), "seconds")?,
        kind: args::text(&table.raw_get("kind")?, &format!("{what}.kind"))?,
        fields,
    })
}

/// A field's value. Vectors become lists of three numbers: cues go out, they do not come back.
fn field(value: &Value, what: &str) -> Result<Json> {
    match value {
        Value::Vector(_) => {
            let v = args::vector(value, what, "metres")?;
            Ok(Json::from(v.to_array().map(f64::from).to_vec()))
        }
        _ => plain::to_json(value, what),
    }
}
