//! `stage.effect`, the `effects` of handles, and `stage.spread`: an author's WGSL with values from Lua.
//!
//! What an effect is and whether it is sound is [`crate::effect`]'s; here files are read, values are
//! checked by name against the author's `struct Uniforms`, and touches are handed to the wave that
//! spreads along a handle's splats. An error in a WGSL file stands at its own line, like one in Lua.

use super::api::{self, Binding};
use super::args;
use super::quota::{Quota, Share};
use super::splats::{Handle, SharedCast};
use super::vm::Host;
use crate::effect::spread::{NEVER_M, Spread};
use crate::effect::{self, EFFECTS_MAX, Effect, EffectUse};
use glam::Vec3;
use mlua::{AnyUserData, Error, Lua, Result, Table, UserData, UserDataRegistry, Value};
use std::rc::Rc;
use std::sync::Arc;

/// Effects that a scene may load.
const LOADED_MAX: usize = 64;
/// Splats that all spreads of a scene may go over (20 bytes each, and the cells).
const SPREAD_MAX: usize = 32 << 20;
/// What a cell that the wave passes costs, in interrupts.
const INTERRUPTS_PER_CELL: u64 = 4;
/// Furthest way of a spread, metres.
const WAY_M_MAX: f64 = 1e6;

/// The quota of [`LOADED_MAX`].
pub(super) fn loaded_quota() -> Quota {
    Quota::new(
        LOADED_MAX,
        &format!("a scene may load {LOADED_MAX} effects"),
    )
}

/// The quota of [`SPREAD_MAX`].
pub(super) fn spread_quota() -> Quota {
    Quota::new(
        SPREAD_MAX,
        &format!("the spreads of a scene may go over {SPREAD_MAX} splats"),
    )
}

/// An effect on a handle, as a script left it.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    handle: EffectHandle,
    values: Vec<f32>,
}

impl Planned {
    /// The effect with its values; the time is filled in with the picture's.
    pub(super) fn in_use(&self) -> EffectUse {
        EffectUse {
            effect: self.handle.effect.clone(),
            values: self.values.clone(),
            t_s: 0.0,
        }
    }
}

/// What a script holds of an effect.
#[derive(Clone, Debug)]
pub(super) struct EffectHandle {
    effect: Arc<Effect>,
    defaults: Vec<f32>,
    _share: Rc<Share>,
}

impl UserData for EffectHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::EFFECT);
        class.get("file", |_, e| Ok(e.effect.file().to_owned()));
        class.get("uniforms", |lua, e| {
            let names = e.effect.uniforms().iter().map(|u| u.name.as_str());
            lua.create_sequence_from(names)
        });
        class.finish();
    }
}

/// `stage.effect(path[, defaults])`.
pub(super) fn load(lua: &Lua, host: &Host, path: &Value, defaults: &Value) -> Result<EffectHandle> {
    host.only_while_loading("stage.effect")?;
    let path = args::text(path, "stage.effect: path")?;
    let share = host.effects.take(lua, 1, "stage.effect")?;
    let failed = |why: &str| Error::runtime(format!("stage.effect('{path}'): {why}"));
    let (chunk, bytes) = host
        .modules
        .effect(&path, effect::SOURCE_BYTES_MAX)
        .map_err(|why| failed(&why))?;
    let source = String::from_utf8(bytes).map_err(|_| failed("is no UTF-8 text"))?;
    // The message begins with the author's own file and line, which are then where the error is.
    let made = (host.budget).off_the_clock(|| Effect::new(&chunk, &source));
    let effect = made.map_err(|error| Error::runtime(error.to_string()))?;
    let mut values = vec![0.0; effect.floats()];
    if !defaults.is_nil() {
        let table = args::table(defaults, "stage.effect: defaults")?;
        let what = format!("stage.effect('{path}'): defaults");
        set_values(&effect, &mut values, table, &what)?;
    }
    check(&effect, &values)?;
    Ok(EffectHandle {
        effect: Arc::new(effect),
        defaults: values,
        _share: Rc::new(share),
    })
}

/// Refuses values with which a loop would not end.
fn check(effect: &Effect, values: &[f32]) -> Result<()> {
    effect
        .check(values)
        .map_err(|error| Error::runtime(error.to_string()))
}

/// Sets the uniforms that `table` names.
fn set_values(effect: &Effect, values: &mut [f32], table: &Table, what: &str) -> Result<()> {
    let uniforms = effect.uniforms();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        // The effect itself stands first in the list's entry.
        let Value::String(name) = &key else { continue };
        let name = name.to_string_lossy();
        let Some(uniform) = uniforms.iter().find(|u| u.name == name) else {
            let known: Vec<&str> = uniforms.iter().map(|u| u.name.as_str()).collect();
            return Err(Error::runtime(format!(
                "{what}: {} has no uniform '{name}'{}",
                effect.file(),
                args::suggestion(&name, &known)
            )));
        };
        let lanes = &mut values[uniform.at..uniform.at + uniform.lanes];
        read_lanes(lanes, &value, &format!("{what}.{name}"))?;
    }
    Ok(())
}

/// A number, a vector, a list of numbers, or a colour, for as many floats.
fn read_lanes(lanes: &mut [f32], value: &Value, what: &str) -> Result<()> {
    match (lanes.len(), value) {
        (1, Value::Boolean(on)) => lanes[0] = f32::from(u8::from(*on)),
        (1, _) => lanes[0] = args::number(value, what, "")? as f32,
        (3, Value::Vector(_)) => lanes.copy_from_slice(&args::vector(value, what, "")?.to_array()),
        (n @ (3 | 4), Value::String(_)) => {
            lanes.copy_from_slice(&args::colour(value, what, effect::COLOUR_MAX)?[..n]);
        }
        (n, Value::Table(list)) if list.raw_len() == n => {
            for (k, lane) in lanes.iter_mut().enumerate() {
                let value: Value = list.raw_get(k + 1)?;
                *lane = args::number(&value, &format!("{what}[{}]", k + 1), "")? as f32;
            }
        }
        (3, _) => return args::refuse(what, "a vector, a list of 3 numbers or '#rrggbb'", value),
        (n, _) => return args::refuse(what, &format!("a list of {n} numbers"), value),
    }
    if lanes.iter().all(|v| v.is_finite()) {
        return Ok(());
    }
    args::refuse(what, "a number that 32 bits hold", value)
}

/// A list of effects, each by itself or as `{effect, name = value, ...}`. `before` is what was there,
/// whose values need no second look.
pub(super) fn list_of(value: &Value, before: &[Planned], what: &str) -> Result<Vec<Planned>> {
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let list = args::table(value, what)?;
    if list.raw_len() > EFFECTS_MAX {
        return Err(Error::runtime(format!(
            "{what}: {EFFECTS_MAX} effects at most, got {}",
            list.raw_len()
        )));
    }
    (1..=list.raw_len())
        .map(|i| {
            let entry: Value = list.raw_get(i)?;
            let what = format!("{what}[{i}]");
            let (named, table) = match &entry {
                Value::Table(table) => (table.raw_get::<Value>(1)?, Some(table)),
                _ => (entry.clone(), None),
            };
            let handle = match &named {
                Value::UserData(data) => as_effect(data),
                _ => None,
            };
            let Some(handle) = handle else {
                return args::refuse(&what, "an effect or {effect, name = value}", &named);
            };
            let mut values = handle.defaults.clone();
            if let Some(table) = table {
                set_values(&handle.effect, &mut values, table, &what)?;
            }
            let is_known = before.get(i - 1).is_some_and(|old| {
                Arc::ptr_eq(&old.handle.effect, &handle.effect) && old.values == values
            });
            if handle.effect.has_loops() && !is_known && values != handle.defaults {
                check(&handle.effect, &values)?;
            }
            Ok(Planned { handle, values })
        })
        .collect()
}

fn as_effect(data: &AnyUserData) -> Option<EffectHandle> {
    data.borrow::<EffectHandle>().ok().map(|e| e.clone())
}

/// Effects as `handle.effects` gives them back: in the form in which they are set.
pub(super) fn list_to(lua: &Lua, planned: &[Planned]) -> Result<Table> {
    let list = lua.create_table_with_capacity(planned.len(), 0)?;
    for (i, one) in planned.iter().enumerate() {
        let entry = lua.create_table()?;
        entry.raw_set(1, one.handle.clone())?;
        for uniform in one.handle.effect.uniforms() {
            let lanes = &one.values[uniform.at..uniform.at + uniform.lanes];
            let value = match lanes {
                [v] => Value::Number(f64::from(*v)),
                [x, y, z] => Value::Vector(args::to_lua(Vec3::new(*x, *y, *z))),
                several => Value::Table(lua.create_sequence_from(several.iter().copied())?),
            };
            entry.raw_set(uniform.name.as_str(), value)?;
        }
        list.raw_set(i + 1, entry)?;
    }
    Ok(list)
}

/// A wave over a handle's splats, kept with the handle.
pub(super) struct Held {
    pub spread: Spread,
    _share: Share,
}

/// What a script holds of a spread.
pub(super) struct SpreadHandle {
    member: usize,
    cast: SharedCast,
    host: Rc<Host>,
}

/// `stage.spread(handle[, {cell =}])`, while loading: one a handle.
pub(super) fn spread(
    lua: &Lua,
    host: &Rc<Host>,
    handle: &Handle,
    options: &Value,
) -> Result<SpreadHandle> {
    let what = "stage.spread";
    handle.only_while_loading(what)?;
    let cell_m = match options {
        Value::Nil => None,
        value => {
            let table = args::table(value, &format!("{what}: options"))?;
            args::only_keys(table, &api::SPREAD_OPTIONS, &format!("{what}: options"))?;
            match table.raw_get::<Value>("cell")? {
                Value::Nil => None,
                value => {
                    let cell = args::within(&value, "stage.spread: cell", "metres", 1e-4, 1e4)?;
                    Some(cell as f32)
                }
            }
        }
    };
    let splats = handle.cast.borrow().splats(handle.index).clone();
    let share = host.spreads.take(lua, splats.len(), what)?;
    let spread = host.budget.off_the_clock(|| {
        let axes_m = |row: usize| {
            let is_seen = splats.is_drawable(row) && splats.opacities[row] > 1.0 / 255.0;
            is_seen.then(|| splats.axes_m(row))
        };
        Spread::new(&splats.means, axes_m, cell_m)
    });
    let mut cast = handle.cast.borrow_mut();
    if cast.spread_mut(handle.index).is_some() {
        return Err(Error::runtime(format!(
            "{what}: '{}' has a spread already: a handle has one",
            cast.name(handle.index)
        )));
    }
    cast.set_spread(
        handle.index,
        Held {
            spread,
            _share: share,
        },
    );
    Ok(SpreadHandle {
        member: handle.index,
        cast: handle.cast.clone(),
        host: host.clone(),
    })
}

impl SpreadHandle {
    fn with<T>(&self, act: impl FnOnce(&mut Spread, &[Vec3]) -> T) -> Result<T> {
        let mut cast = self.cast.borrow_mut();
        let splats = cast.splats(self.member).clone();
        match cast.spread_mut(self.member) {
            Some(held) => Ok(act(&mut held.spread, &splats.means)),
            None => Err(Error::runtime("this spread is gone")),
        }
    }

    /// A splat's number, from 1, or the splat nearest to a point of the handle's own space; from 0.
    fn row_of(&self, value: &Value, what: &str) -> Result<u32> {
        let count = self.cast.borrow().splats(self.member).len() as u32;
        if let Value::Vector(_) = value {
            let at = args::vector(value, what, "metres")?;
            let found = self
                .host
                .budget
                .off_the_clock(|| self.with(|spread, means| spread.nearest(means, at)))?;
            return match found {
                Some(row) => Ok(row),
                None => args::refuse(what, "near a splat", value),
            };
        }
        Ok(args::whole(value, what, 1, count.max(1))? - 1)
    }
}

impl UserData for SpreadHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::SPREAD);
        class.get("cell", |_, s| s.with(|spread, _| spread.cell_m()));
        class.get("count", |_, s| s.with(|spread, _| spread.cell_count()));
        class.get("reached", |_, s| s.with(|spread, _| spread.reached_m()));
        class.get("done", |_, s| s.with(|spread, _| spread.is_done()));
        class.method("begin", |_, s, (at, way): (Value, Value)| {
            let row = s.row_of(&at, "spread:begin: splat")?;
            let way_m = match way {
                Value::Nil => 0.0,
                value => args::within(&value, "spread:begin: way", "metres", 0.0, WAY_M_MAX)?,
            };
            s.with(|spread, means| spread.begin(means, row, way_m as f32))
        });
        class.method("reach", |_, s, way: Value| {
            let way_m = args::within(&way, "spread:reach: way", "metres", 0.0, WAY_M_MAX)? as f32;
            let budget = s.host.budget.clone();
            let passed =
                budget.off_the_clock(|| s.with(|spread, means| spread.reach(means, way_m)))?;
            budget.charge(passed as u64 * INTERRUPTS_PER_CELL);
            Ok(())
        });
        class.method("at", |_, s, row: Value| {
            let row = s.row_of(&row, "spread:at: splat")?;
            let way_m = s.with(|spread, _| spread.arrivals().row(row as usize))?;
            Ok((way_m < NEVER_M).then_some(way_m))
        });
        class.finish();
    }
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<EffectHandle>()?;
    lua.create_proxy::<SpreadHandle>()?;
    Ok(())
}
