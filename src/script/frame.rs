//! Between Lua tables and the waist: what `frame` returned to a [`Frame`], [`Input`] and [`Event`] to
//! what `step` and `event` get.

use super::api;
use super::args;
use super::film;
use super::splats::{self, Cast, SharedCast};
use super::stage::Framing;
use crate::camera::{Camera, FOV_DEFAULT_RAD};
use crate::film::Film;
use crate::frame::{BACKGROUND_DEFAULT, Event, Frame, Input, SplatDraw, Walker};
use glam::{Quat, Vec2, Vec3};
use mlua::{Error, Lua, Result, Table, Value};

/// Draws of one picture.
const DRAWS_MAX: usize = 4096;

/// What a scene's table says about pictures for which `frame` says nothing.
#[derive(Clone, Default)]
pub(super) struct Defaults {
    pub camera: Option<Camera>,
    pub background: Option<[f32; 4]>,
    pub film: Option<Box<Film>>,
}

/// The frame at `t_s` from what `frame` returned.
pub(super) fn from_lua(value: &Value, t_s: f64, defaults: &Defaults, cast: &Cast) -> Result<Frame> {
    let what = "frame";
    let mut frame = Frame {
        t_s,
        background: defaults.background.unwrap_or(BACKGROUND_DEFAULT),
        film: defaults.film.clone(),
        ..Frame::default()
    };
    let mut camera = defaults.camera;
    match value {
        Value::Nil => frame.draws = cast.visible(),
        Value::Table(table) => {
            args::only_keys(table, &api::FRAME, what)?;
            match table.raw_get::<Value>("camera")? {
                Value::Nil => {}
                value => camera = Some(camera_of(&value, "frame: camera")?),
            }
            match table.raw_get::<Value>("background")? {
                Value::Nil => {}
                value => frame.background = args::colour(&value, "frame: background", 1.0)?,
            }
            match table.raw_get::<Value>("state")? {
                Value::Nil => {}
                value => frame.state = Some(args::text(&value, "frame: state")?),
            }
            match table.raw_get::<Value>("walker")? {
                Value::Nil => {}
                value => frame.walker = Some(walker_of(&value)?),
            }
            match table.raw_get::<Value>("film")? {
                Value::Nil => {}
                value => frame.film = film::film_of(&value, "frame: film")?,
            }
            frame.draws = match table.raw_get::<Value>("draws")? {
                Value::Nil => cast.visible(),
                value => draws_of(&value)?,
            };
        }
        _ => return args::refuse("what frame returns", "a table or nothing", value),
    }
    for used in frame.draws.iter_mut().flat_map(|draw| &mut draw.effects) {
        used.t_s = t_s as f32;
    }
    frame.camera = camera.unwrap_or_else(|| {
        let framing = Framing::of(cast.bounds(None));
        Camera::look_at(framing.eye, framing.centre, Vec3::Y, FOV_DEFAULT_RAD)
    });
    Ok(frame)
}

fn draws_of(value: &Value) -> Result<Vec<SplatDraw>> {
    let list = args::table(value, "frame: draws")?;
    if list.raw_len() > DRAWS_MAX {
        return Err(Error::runtime(format!(
            "frame: a picture may have {DRAWS_MAX} draws, got {}",
            list.raw_len()
        )));
    }
    let mut draws = Vec::with_capacity(list.raw_len());
    for i in 1..=list.raw_len() {
        let entry: Value = list.raw_get(i)?;
        let what = format!("frame: draws[{i}]");
        let draw = match &entry {
            Value::UserData(data) => match splats::as_handle(data) {
                Some(handle) => handle.draw_with(None, &what)?,
                None => return args::refuse(&what, "a splats handle or a table", &entry),
            },
            Value::Table(table) => {
                args::only_keys(table, &api::DRAW, &what)?;
                let handle = splats::handle(&table.raw_get("splats")?, &format!("{what}.splats"))?;
                handle.draw_with(Some(table), &what)?
            }
            _ => return args::refuse(&what, "a splats handle or a table", &entry),
        };
        draws.extend(draw);
    }
    Ok(draws)
}

/// What a scene says of the one who carries the camera.
fn walker_of(value: &Value) -> Result<Walker> {
    let what = "frame: walker";
    let table = args::table(value, what)?;
    args::only_keys(table, &api::WALKER, what)?;
    let number = |key: &str, unit: &str| {
        let value: Value = table.raw_get(key)?;
        args::number(&value, &format!("{what}.{key}"), unit)
    };
    Ok(Walker {
        speed_m_s: number("speed", "metres a second")?,
        phase: number("phase", "steps")?,
        floor_m: number("floor", "metres")?,
        clearance_m: args::optional_number(table, "clearance", what, "metres")?,
        head_yaw_rad: number("head_yaw", "degrees")?.to_radians(),
        head_pitch_rad: number("head_pitch", "degrees")?.to_radians(),
    })
}

/// A camera table: see the contract in the module docs of `script`.
pub(super) fn camera_of(value: &Value, what: &str) -> Result<Camera> {
    let table = args::table(value, what)?;
    args::only_keys(table, &api::CAMERA, what)?;
    let get = |key: &str| table.raw_get::<Value>(key);
    let name = |key: &str| format!("{what}.{key}");
    let position = args::vector(&get("position")?, &name("position"), "metres")?;
    let fov_y_rad = match get("fov")? {
        Value::Nil => FOV_DEFAULT_RAD,
        // Beyond these the picture is one splat or all edge.
        value => (args::within(&value, &name("fov"), "degrees", 0.1, 179.0)?).to_radians() as f32,
    };
    let angle = |key: &str| -> Result<Option<f32>> {
        match table.raw_get::<Value>(key)? {
            Value::Nil => Ok(None),
            value => Ok(Some(args::angle(&value, &name(key))? as f32)),
        }
    };
    let (yaw, pitch, roll) = (angle("yaw")?, angle("pitch")?, angle("roll")?);
    let (target, up, rotation) = (get("target")?, get("up")?, get("rotation")?);
    let up = match up {
        Value::Nil => Vec3::Y,
        value => args::vector(&value, &name("up"), "direction")?,
    };
    let has_angles = yaw.is_some() || pitch.is_some();
    let ways = [!target.is_nil(), has_angles, !rotation.is_nil()];
    if ways.iter().filter(|w| **w).count() > 1 || (!rotation.is_nil() && roll.is_some()) {
        return Err(Error::runtime(format!(
            "{what} must have one of target, yaw and pitch, or rotation, not several"
        )));
    }
    let camera = if !rotation.is_nil() {
        Camera {
            position,
            rotation: args::rotation(&rotation, &name("rotation"))?,
            fov_y_rad,
        }
    } else if !target.is_nil() {
        let target = args::vector(&target, &name("target"), "metres")?;
        let mut camera = Camera::look_at(position, target, up, fov_y_rad);
        if let Some(roll_rad) = roll {
            camera.rotation *= Quat::from_rotation_z(-roll_rad);
        }
        camera
    } else {
        Camera::from_angles(
            position,
            yaw.unwrap_or(0.0),
            pitch.unwrap_or(0.0),
            roll.unwrap_or(0.0),
            fov_y_rad,
        )
    };
    if camera.is_valid() {
        return Ok(camera);
    }
    Err(Error::runtime(format!(
        "{what} is no camera that can see: position {position}, fov {} degrees",
        fov_y_rad.to_degrees()
    )))
}

/// The `input` table of `step`, with the drag and wheel of the first step.
pub(super) fn input_table(
    lua: &Lua,
    cast: &SharedCast,
    input: &Input,
    drag: Vec2,
    wheel: f32,
) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, 10)?;
    let flat = |v: Vec2| args::to_lua(finite(v).extend(0.0));
    table.raw_set("pointer", flat(input.pointer))?;
    table.raw_set("pointer_inside", input.pointer_inside)?;
    table.raw_set("aspect", input.aspect)?;
    let over = input.over.and_then(|target| Cast::handle(cast, target));
    table.raw_set("over", over)?;
    table.raw_set("stick", flat(input.stick))?;
    let gyro = input.gyro_deg.filter(|v| v.is_finite()).map(args::to_lua);
    table.raw_set("gyro", gyro)?;
    let held = lua.create_table_with_capacity(0, input.held.len())?;
    for key in &input.held {
        held.raw_set(key.as_str(), true)?;
    }
    table.raw_set("held", held)?;
    set_travel(&table, drag, wheel)?;
    Ok(table)
}

/// Sets what one step travels.
pub(super) fn set_travel(table: &Table, drag: Vec2, wheel: f32) -> Result<()> {
    table.raw_set("drag", args::to_lua(finite(drag).extend(0.0)))?;
    table.raw_set("wheel", if wheel.is_finite() { wheel } else { 0.0 })
}

/// A device that sends NaN sends nothing.
fn finite(v: Vec2) -> Vec2 {
    if v.is_finite() { v } else { Vec2::ZERO }
}

/// The table of `event`.
pub(super) fn event_table(lua: &Lua, cast: &SharedCast, event: &Event) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, 6)?;
    table.raw_set("kind", event.kind.as_str())?;
    table.raw_set("name", event.name.as_str())?;
    table.raw_set(
        "values",
        lua.create_sequence_from(event.values.iter().copied())?,
    )?;
    let target = event.target.and_then(|target| Cast::handle(cast, target));
    table.raw_set("target", target)?;
    // Counted from 1, as everything in Lua.
    table.raw_set("splat", event.row.map(|row| row + 1))?;
    for (key, value) in ["x", "y"].into_iter().zip(&event.values) {
        table.raw_set(key, *value)?;
    }
    Ok(table)
}
