//! A line of a console against the running scene: compiled as an expression, else as statements; and what
//! a value looks like as text.
//!
//! A line sees everything that a scene sees, and besides it `scene` (the table that the scene returned), `t`
//! (seconds) and the names that earlier lines have given values. It has the budget of any other call. Local
//! variables of the scene's files cannot be seen: Luau keeps no names of them.

use super::args;
use mlua::chunk::ChunkMode;
use mlua::{Error, Function, Lua, Result, Table, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Chunk name of a console's lines, without `@`.
pub(super) const CHUNK: &str = "console";
/// Longest line, bytes.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Nested tables that are shown, entries of each, and letters of all.
const DEPTH_MAX: usize = 3;
const ENTRIES_MAX: usize = 40;
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The variables of a console: what lines set, then the globals.
pub(super) fn environment(lua: &Lua) -> Result<Table> {
    let names = lua.create_table()?;
    let below = lua.create_table()?;
    below.raw_set("__index", lua.globals())?;
    names.set_metatable(Some(below))?;
    Ok(names)
}

/// A line as a function, and whether it is an expression, whose value is worth showing.
pub(super) fn compile(lua: &Lua, line: &str, names: &Table) -> Result<(Function, bool)> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Error::runtime(format!(
            "a line of {} bytes; at most {LINE_BYTES_MAX} are taken",
            line.len()
        )));
    }
    let chunk = |text: String| {
        lua.load(text)
            .set_mode(ChunkMode::Text)
            .set_name(format!("@{CHUNK}"))
            .set_environment(names.clone())
            .into_function()
    };
    match chunk(format!("return {line}")) {
        Ok(function) => Ok((function, true)),
        // What is wrong is said of the line as it was typed.
        Err(_) => chunk(line.to_owned()).map(|function| (function, false)),
    }
}

/// A value as a person would write it.
pub(super) fn show(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, &mut text);
    if text.len() > TEXT_BYTES_MAX {
        let mut end = TEXT_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

fn write_value(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Nil => text.push_str("nil"),
        Value::String(content) => {
            // Writing to a String cannot fail, here and below.
            let _ = write!(text, "{:?}", content.to_string_lossy());
        }
        Value::Function(function) => {
            let name = function.info().name;
            let _ = write!(text, "function {}", name.unwrap_or_default());
            *text = text.trim_end().to_owned();
        }
        Value::Table(table) => write_table(table, depth, text),
        other => text.push_str(&args::describe(other)),
    }
}

fn write_table(table: &Table, depth: usize, text: &mut String) {
    if depth == DEPTH_MAX {
        text.push_str("{...}");
        return;
    }
    let length = table.raw_len();
    let items = (1..=length).filter_map(|i| table.raw_get::<Value>(i).ok());
    // Sorted, since a table has no order.
    let fields: BTreeMap<String, Value> = (table.pairs::<Value, Value>().flatten())
        .filter(|(key, _)| {
            !matches!(key, Value::Number(n) if *n >= 1.0 && *n <= length as f64 && n.fract() == 0.0)
                && !matches!(key, Value::Integer(n) if *n >= 1 && *n as usize <= length)
        })
        .map(|(key, value)| match key {
            Value::String(name) => (name.to_string_lossy(), value),
            key => (format!("[{}]", args::describe(&key)), value),
        })
        .take(10 * ENTRIES_MAX)
        .collect();
    let count = length + fields.len();
    let entries = items
        .map(|value| (None, value))
        .chain(fields.into_iter().map(|(name, value)| (Some(name), value)));
    text.push('{');
    for (number, (name, value)) in entries.take(ENTRIES_MAX).enumerate() {
        text.push_str(if number == 0 { "" } else { ", " });
        if let Some(name) = name {
            let _ = write!(text, "{name} = ");
        }
        write_value(&value, depth + 1, text);
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
    }
    if count > ENTRIES_MAX {
        let _ = write!(text, ", ... ({} more)", count - ENTRIES_MAX);
    }
    text.push('}');
}
