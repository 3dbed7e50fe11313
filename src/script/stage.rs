//! The `stage` table: what a scene is made of.

use super::api::{self, Space};
use super::args;
use super::effects;
use super::probe::Probe;
use super::sheets;
use super::splats::{self, Builder, Cast, GENERATED_MAX};
use super::vm::Host;
use crate::camera::FOV_DEFAULT_RAD;
use crate::scene::Bounds;
use crate::scene::sh::DEGREE_MAX;
use glam::Vec3;
use mlua::{Error, Lua, Result, Table, Value};
use std::rc::Rc;

/// Longest data file, bytes.
const DATA_BYTES_MAX: usize = 4 << 20;
/// Room round what is framed: the share of centres that bounds leave out is mostly floaters, but
/// also the top of a head and the soles of its shoes.
const FRAMING_MARGIN: f32 = 1.25;
/// How far above the horizontal a framing looks from, as a slope.
const FRAMING_SLOPE: f32 = 0.15;

/// Builds the table (not yet read-only); `rig` is the prelude's.
pub(super) fn table(
    lua: &Lua,
    host: &Rc<Host>,
    args_json: &serde_json::Value,
    rig: mlua::Function,
) -> Result<Table> {
    let mut stage = Space::new(lua, &api::STAGE)?;
    let empty = serde_json::Value::Array(Vec::new());
    let given = if args_json.is_null() {
        &empty
    } else {
        args_json
    };
    stage.value("args", super::plain::to_lua(lua, given, true)?)?;
    stage.value("seed", host.seed as f64)?;
    stage.value("loop", host.loop_s)?;
    stage.value("aspect", host.aspect)?;
    stage.value("reduced_motion", host.reduced_motion)?;
    stage.value("heard_only", host.heard_only)?;

    let own = host.clone();
    // The file that the host named itself may lie anywhere; the host's `Assets` knows it.
    let named = args_json
        .get("file")
        .and_then(|f| f.as_str())
        .map(str::to_owned);
    let load = move |_: &Lua, (path, options): (Value, Value)| {
        own.only_while_loading("stage.splats")?;
        let path = args::text(&path, "stage.splats: path")?;
        if path.starts_with('@') {
            let given = scene_options(&options)?;
            let found = own
                .budget
                .off_the_clock(|| own.assets.scene(&path, &given))
                .map_err(|why| Error::runtime(format!("stage.splats('{path}'): {why}")))?;
            return Cast::add(&own.cast, path, found, Vec::new());
        }
        let (level, axes) = splats_options(&options)?;
        let inside = if named.as_ref() == Some(&path) {
            path.clone()
        } else {
            super::modules::asset_path(&path)
                .map_err(|why| Error::runtime(format!("stage.splats('{path}'): {why}")))?
        };
        own.modules.watch(&inside);
        let found = own
            .budget
            .off_the_clock(|| own.assets.splats(&inside, level, axes.as_deref()))
            .map_err(|why| Error::runtime(format!("stage.splats('{path}'): {why}")))?;
        Cast::add(&own.cast, path, found, Vec::new())
    };
    stage.function("splats", load)?;

    let own = host.clone();
    let generate = move |lua: &Lua, table: Value| {
        own.only_while_loading("stage.generate")?;
        let table = args::table(&table, "stage.generate: columns")?;
        splats::generate(lua, &own.cast, &own.splats, table)
    };
    stage.function("generate", generate)?;

    let own = host.clone();
    let builder = move |lua: &Lua, (capacity, degree): (Value, Value)| {
        own.only_while_loading("stage.builder")?;
        let capacity = match capacity {
            Value::Nil => 0,
            value => args::whole(&value, "stage.builder: capacity", 0, GENERATED_MAX as u32)?,
        };
        let degree = match degree {
            Value::Nil => 0,
            value => args::whole(&value, "stage.builder: degree", 0, DEGREE_MAX.into())? as u8,
        };
        let share = own.splats.take(lua, capacity as usize, "stage.builder")?;
        let sheets = own.sheets.take(lua, 0, "stage.builder")?;
        Ok(Builder::new(share, sheets, degree, own.clone()))
    };
    stage.function("builder", builder)?;

    let own = host.clone();
    let texture = move |lua: &Lua, (pixels, across): (Value, Value)| {
        own.only_while_loading("stage.texture")?;
        sheets::texture(lua, &own.sheets, &pixels, &across)
    };
    stage.function("texture", texture)?;

    let own = host.clone();
    let framing = move |lua: &Lua, what: Value| {
        let only = match what {
            Value::Nil => None,
            value => Some(splats::handle(&value, "stage.framing: handle")?.index),
        };
        let bounds = own.budget.off_the_clock(|| own.cast.borrow().bounds(only));
        let framing = Framing::of(bounds);
        let table = lua.create_table()?;
        table.raw_set("centre", args::to_lua(framing.centre))?;
        table.raw_set("radius", framing.radius)?;
        table.raw_set("eye", args::to_lua(framing.eye))?;
        table.raw_set("target", args::to_lua(framing.centre))?;
        Ok(table)
    };
    stage.function("framing", framing)?;

    let own = host.clone();
    let probe = move |_: &Lua, (of, options): (Value, Value)| Probe::new(&own, &of, &options);
    stage.function("probe", probe)?;

    let own = host.clone();
    let effect = move |lua: &Lua, (path, defaults): (Value, Value)| {
        effects::load(lua, &own, &path, &defaults)
    };
    stage.function("effect", effect)?;

    let own = host.clone();
    let spread = move |lua: &Lua, (of, options): (Value, Value)| {
        let handle = splats::handle(&of, "stage.spread: handle")?;
        effects::spread(lua, &own, &handle, &options)
    };
    stage.function("spread", spread)?;

    let own = host.clone();
    let data = move |lua: &Lua, path: Value| {
        own.only_while_loading("stage.data")?;
        let path = args::text(&path, "stage.data: path")?;
        let failed = |why: &str| Error::runtime(format!("stage.data('{path}'): {why}"));
        let inside = super::modules::asset_path(&path).map_err(failed)?;
        let bytes = own
            .modules
            .data(&inside, DATA_BYTES_MAX)
            .map_err(|why| failed(&why))?;
        let json: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|why| failed(&why.to_string()))?;
        super::plain::to_lua(lua, &json, true)
    };
    stage.function("data", data)?;

    let own = host.clone();
    let save = move |_: &Lua, (path, value): (Value, Value)| {
        if own.only_while_loading("").is_ok() {
            // What is saved is loaded anew, so that would never end.
            return Err(Error::runtime(
                "stage.save works while the scene plays: in step and event, not while it loads",
            ));
        }
        let path = args::text(&path, "stage.save: path")?;
        let failed = |why: &str| Error::runtime(format!("stage.save('{path}'): {why}"));
        let inside = super::modules::asset_path(&path).map_err(failed)?;
        if !inside.ends_with(".json") {
            return Err(failed("only data is saved: the name must end in .json"));
        }
        args::table(&value, "stage.save: data")?;
        let json = super::plain::to_json(&value, "stage.save: data")?;
        let mut bytes = serde_json::to_vec_pretty(&json).map_err(|why| failed(&why.to_string()))?;
        bytes.push(b'\n');
        if bytes.len() > DATA_BYTES_MAX {
            return Err(failed(&format!(
                "{} bytes are more than the {DATA_BYTES_MAX} that a data file may have",
                bytes.len()
            )));
        }
        own.budget
            .off_the_clock(|| own.modules.save(&inside, &bytes))
            .map_err(|why| failed(&why))
    };
    stage.function("save", save)?;
    stage.lua_function("rig", rig)?;
    stage.finish()
}

/// What a scene that is drawn from finds in `stage.args`.
fn scene_options(options: &Value) -> Result<serde_json::Value> {
    if options.is_nil() {
        return Ok(serde_json::Value::Null);
    }
    let table = args::table(options, "stage.splats: options")?;
    args::only_keys(table, &api::SPLATS_OPTIONS, "stage.splats: options")?;
    for name in ["level", "axes"] {
        let value = table.raw_get::<Value>(name)?;
        if !value.is_nil() {
            let wanted = "nil for a built-in scene (it takes args)";
            return args::refuse(&format!("stage.splats: {name}"), wanted, &value);
        }
    }
    match table.raw_get::<Value>("args")? {
        Value::Nil => Ok(serde_json::Value::Null),
        value => super::plain::to_json(&value, "stage.splats: args"),
    }
}

fn splats_options(options: &Value) -> Result<(Option<u32>, Option<String>)> {
    if options.is_nil() {
        return Ok((None, None));
    }
    let table = args::table(options, "stage.splats: options")?;
    args::only_keys(table, &api::SPLATS_OPTIONS, "stage.splats: options")?;
    let given = table.raw_get::<Value>("args")?;
    if !given.is_nil() {
        super::plain::to_json(&given, "stage.splats: args")?;
        return Err(Error::runtime(
            "stage.splats: args are for built-in scenes; a file takes level and axes",
        ));
    }
    let level = match table.raw_get::<Value>("level")? {
        Value::Nil => None,
        value => Some(args::whole(&value, "stage.splats: level", 0, 64)?),
    };
    let axes = match table.raw_get::<Value>("axes")? {
        Value::Nil => None,
        value => Some(args::text(&value, "stage.splats: axes")?),
    };
    Ok((level, axes))
}

/// Where to stand to see a thing whole.
pub(super) struct Framing {
    pub centre: Vec3,
    pub radius: f32,
    pub eye: Vec3,
}

impl Framing {
    /// From the front (+z) and a little above, so far away that a ball of the bounds' radius and
    /// [`FRAMING_MARGIN`] fills the default lens's height. Without bounds, a metre around the origin.
    pub(super) fn of(bounds: Option<Bounds>) -> Self {
        let centre = bounds.map_or(Vec3::ZERO, |b| b.centre());
        let radius = bounds.map_or(1.0, |b| b.radius()).clamp(1e-3, 1e6);
        let direction = Vec3::new(0.0, FRAMING_SLOPE, 1.0).normalize();
        Self {
            centre,
            radius,
            eye: centre + direction * (FRAMING_MARGIN * radius / (0.5 * FOV_DEFAULT_RAD).tan()),
        }
    }
}
