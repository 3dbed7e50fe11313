//! `persist(key, default)`: tables that outlive a version of the script.
//!
//! The table is the script's own, to be written at any time; when a new version loads, what is in it goes
//! over as plain data ([`super::plain`]). A default that has grown since adds what is new to what was kept.
//! Nothing goes to a disk: that is `stage.save`'s work.

use super::log::Sink;
use super::{args, plain};
use mlua::{Error, Lua, Result, Table, Value};
use serde_json::{Map, Value as Json};
use std::rc::Rc;

/// Tables that a scene may keep.
const KEYS_MAX: usize = 256;

/// The function; `tables` holds what it has handed out, by key.
pub(super) fn persist(
    tables: &Table,
    kept: Map<String, Json>,
) -> impl Fn(&Lua, (Value, Value)) -> Result<Table> + 'static {
    let tables = tables.clone();
    move |lua, (key, default)| {
        let key = args::text(&key, "persist: key")?;
        if key.is_empty() || key.len() > 64 {
            return Err(Error::runtime("persist: key must have 1 to 64 bytes"));
        }
        let Value::Table(default) = default else {
            let wanted = "a table (what is in it outlives a version of the script)";
            return args::refuse("persist: default", wanted, &default);
        };
        if let Some(known) = tables.raw_get::<Option<Table>>(key.as_str())? {
            return Ok(known);
        }
        if tables.pairs::<Value, Value>().count() >= KEYS_MAX {
            return Err(Error::runtime(format!(
                "persist: a scene may keep {KEYS_MAX} tables"
            )));
        }
        let table = match kept.get(&key) {
            Some(json) => match plain::to_lua(lua, json, false)? {
                Value::Table(table) => {
                    // An empty table is a list to JSON.
                    let has_names = (default.pairs::<Value, Value>())
                        .any(|pair| pair.is_ok_and(|(key, _)| key.is_string()));
                    if has_names || table.raw_len() == 0 {
                        add_missing(&table, &default, 0)?;
                    }
                    table
                }
                _ => default,
            },
            None => default,
        };
        tables.raw_set(key, &table)?;
        Ok(table)
    }
}

/// Puts what only `default` has into `table`: names, at every depth. Lists stay as they were kept.
fn add_missing(table: &Table, default: &Table, depth: usize) -> Result<()> {
    if depth > 32 {
        return Ok(());
    }
    for pair in default.pairs::<Value, Value>() {
        let (key, value) = pair?;
        if !key.is_string() {
            continue;
        }
        match (table.raw_get::<Value>(&key)?, value) {
            (Value::Nil, value) => table.raw_set(key, value)?,
            (Value::Table(inner), Value::Table(value)) => add_missing(&inner, &value, depth + 1)?,
            _ => {}
        }
    }
    Ok(())
}

/// Everything that was kept, for the next version. A table that is no plain data is said and starts anew.
pub(super) fn kept(tables: &Table, sink: &Rc<Sink>) -> Map<String, Json> {
    let mut kept = Map::new();
    for (key, value) in tables.pairs::<String, Value>().flatten() {
        match plain::to_json(&value, &format!("persist('{key}')")) {
            Ok(json) => {
                kept.insert(key, json);
            }
            Err(error) => sink.say(
                "warn",
                &format!(
                    "{}; the next version starts it anew",
                    super::blame::text_of_error(&error)
                ),
            ),
        }
    }
    kept
}
