//! Plain data across the border: JSON to Lua and back.
//!
//! Tables with keys 1..n become arrays, tables with string keys objects; an empty table is an empty
//! array. A native vector is the object `{"$vector": [x, y, z]}`. Functions, userdata, NaN, mixed
//! keys and cycles are refused by name.

use super::args::describe;
use mlua::{Error, Lua, Result, Table, Value};
use serde_json::{Map, Number, Value as Json};

/// Deepest nesting of tables.
const DEPTH_MAX: usize = 32;
/// Most values in one document.
const VALUES_MAX: usize = 100_000;
const VECTOR: &str = "$vector";

/// JSON as Lua data; tables are read-only when `frozen`.
pub(super) fn to_lua(lua: &Lua, json: &Json, frozen: bool) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(b) => Value::Boolean(*b),
        Json::Number(n) => Value::Number(n.as_f64().unwrap_or(0.0)),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (i, item) in items.iter().enumerate() {
                table.raw_set(i + 1, to_lua(lua, item, frozen)?)?;
            }
            table.set_readonly(frozen);
            Value::Table(table)
        }
        Json::Object(fields) => {
            if let Some(Json::Array(xyz)) = fields.get(VECTOR)
                && let [x, y, z] = xyz.as_slice()
            {
                let lane = |v: &Json| v.as_f64().unwrap_or(0.0) as f32;
                return Ok(Value::Vector(mlua::Vector::new(lane(x), lane(y), lane(z))));
            }
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, item) in fields {
                table.raw_set(key.as_str(), to_lua(lua, item, frozen)?)?;
            }
            table.set_readonly(frozen);
            Value::Table(table)
        }
    })
}

/// Lua data as JSON; `what` names it in messages.
pub(super) fn to_json(value: &Value, what: &str) -> Result<Json> {
    let mut left = VALUES_MAX;
    convert(value, what, 0, &mut left)
}

fn convert(value: &Value, what: &str, depth: usize, left: &mut usize) -> Result<Json> {
    if depth > DEPTH_MAX {
        return Err(Error::runtime(format!(
            "{what} is nested deeper than {DEPTH_MAX} tables, or contains itself"
        )));
    }
    *left = left.checked_sub(1).ok_or_else(|| {
        Error::runtime(format!(
            "{what}: more than {VALUES_MAX} values are too many"
        ))
    })?;
    let number = |n: f64| {
        Number::from_f64(n)
            .map(Json::Number)
            .ok_or_else(|| Error::runtime(format!("{what} must be a finite number, got {n}")))
    };
    match value {
        Value::Nil => Ok(Json::Null),
        Value::Boolean(b) => Ok(Json::Bool(*b)),
        Value::Integer(n) => Ok(Json::from(*n)),
        Value::Number(n) => number(*n),
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(Json::String(text.to_owned())),
            Err(_) => Err(Error::runtime(format!("{what} must be UTF-8 text"))),
        },
        Value::Vector(v) => {
            let lanes = [v.x(), v.y(), v.z()];
            let xyz = lanes.map(|c| number(f64::from(c)));
            let xyz = xyz.into_iter().collect::<Result<Vec<_>>>()?;
            Ok(Json::Object(Map::from_iter([(
                VECTOR.to_owned(),
                Json::Array(xyz),
            )])))
        }
        Value::Table(table) => convert_table(table, what, depth, left),
        other => Err(Error::runtime(format!(
            "{what} must be plain data (numbers, strings, booleans, vectors, tables), got {}",
            describe(other)
        ))),
    }
}

fn convert_table(table: &Table, what: &str, depth: usize, left: &mut usize) -> Result<Json> {
    let length = table.raw_len();
    let mut items = Vec::new();
    let mut fields = Map::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, item) = pair?;
        let index = match &key {
            Value::Integer(i) => Some(*i as f64),
            Value::Number(n) => Some(*n),
            _ => None,
        };
        match (&key, index) {
            // Array slots come in order, 1 to n, before everything else.
            (_, Some(n)) if n == (items.len() + 1) as f64 => {
                items.push(convert(&item, &format!("{what}[{n}]"), depth + 1, left)?);
            }
            (Value::String(name), _) => {
                let name = name.to_string_lossy();
                let path = format!("{what}.{name}");
                fields.insert(name, convert(&item, &path, depth + 1, left)?);
            }
            _ => {
                return Err(Error::runtime(format!(
                    "{what} must have keys 1, 2, 3, ... or strings, got the key {}",
                    describe(&key)
                )));
            }
        }
    }
    match (items.is_empty(), fields.is_empty()) {
        (_, true) => Ok(Json::Array(items)),
        (true, false) => Ok(Json::Object(fields)),
        (false, false) => Err(Error::runtime(format!(
            "{what} must be a list or have string keys, not both ({length} list items)"
        ))),
    }
}
