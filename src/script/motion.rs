//! The `motion` table: [`crate::motion`] for scripts, in numbers and vectors.

use super::api::{self, Binding, Space};
use super::args;
use super::quota::{Quota, Share};
use crate::motion::spline::CHORDS;
use crate::motion::{Ease, Spline, Spring, Track, cubic_bezier, noise};
use glam::{DVec3, Vec3};
use mlua::{Error, Lua, MultiValue, Result, Table, UserData, UserDataRegistry, Value};

/// Samples of one track: 68 s at 240 Hz are 16,320.
pub(super) const SAMPLES_MAX: u32 = 2_000_000;

/// Numbers that all splines and tracks of a VM may hold: 128 MiB that Luau's own limit does not see.
const NUMBERS_MAX: usize = 16 << 20;

/// The quota of [`NUMBERS_MAX`].
pub(super) fn quota() -> Quota {
    let rule = format!("all motion objects together may hold {NUMBERS_MAX} numbers");
    Quota::new(NUMBERS_MAX, &rule)
}

/// Builds the table (not yet read-only); `track` is the prelude's.
pub(super) fn table(lua: &Lua, quota: &Quota, track: mlua::Function) -> Result<Table> {
    let mut motion = Space::new(lua, &api::MOTION)?;
    motion.function("ease", |_, (name, u): (Value, Value)| ease(&name, &u))?;
    motion.function(
        "bezier",
        |_, (x1, y1, x2, y2, u): (Value, Value, Value, Value, Value)| {
            let n = |v: &Value, what: &str| args::number(v, &format!("motion.bezier: {what}"), "");
            Ok(cubic_bezier(
                n(&x1, "x1")?,
                n(&y1, "y1")?,
                n(&x2, "x2")?,
                n(&y2, "y2")?,
                n(&u, "u")?,
            ))
        },
    )?;
    motion.function("noise", |_, (x, seed, octaves): (Value, Value, Value)| {
        noise_at(&x, &seed, &octaves)
    })?;
    motion.function("spring", |_, options: Value| SpringPath::new(&options))?;
    motion.function(
        "spring_step",
        |_,
         (value, velocity, target, frequency, damping, dt): (
            Value,
            Value,
            Value,
            Value,
            Value,
            Value,
        )| {
            // Asked for at every step of every follower: names are spelled out here, not put together.
            let what = "motion.spring_step";
            let spring = spring_of(
                &frequency,
                &damping,
                [
                    "motion.spring_step: frequency",
                    "motion.spring_step: damping",
                ],
            )?;
            let dt_what = "motion.spring_step: dt";
            let dt_s = args::within(&dt, dt_what, "seconds", 0.0, SPRING_S_MAX)?;
            let path = SpringPath {
                spring,
                from: Amount::of(&value, "motion.spring_step: value")?,
                velocity: Amount::of(&velocity, "motion.spring_step: velocity")?,
                to: Amount::of(&target, "motion.spring_step: target")?,
            };
            Ok(path.checked(what)?.at(dt_s))
        },
    )?;
    let quota = quota.clone();
    motion.function("spline", move |lua, options: Value| {
        SplinePath::new(lua, &options, &quota)
    })?;
    motion.lua_function("track", track)?;
    motion.finish()
}

fn ease(name: &Value, u: &Value) -> Result<f64> {
    let name = args::text(name, "motion.ease: name")?;
    let u = args::number(u, "motion.ease: u", "0 to 1")?;
    match Ease::named(&name) {
        Some(ease) => Ok(ease.at(u)),
        None => {
            let names = Ease::names();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(Error::runtime(format!(
                "motion.ease: there is no curve '{name}'{}",
                args::suggestion(&name, &names)
            )))
        }
    }
}

fn noise_at(x: &Value, seed: &Value, octaves: &Value) -> Result<f64> {
    let seed = match seed {
        Value::Nil => 0,
        value => args::seed(value, "motion.noise: seed")?,
    };
    let octaves = match octaves {
        Value::Nil => 1,
        value => args::whole(value, "motion.noise: octaves", 1, noise::OCTAVES_MAX)?,
    };
    Ok(match x {
        Value::Vector(_) => {
            let p = args::vector(x, "motion.noise: x", "")?.as_dvec3();
            noise::octaves(octaves, seed, |scale, seed| noise::space(p * scale, seed))
        }
        _ => {
            let x = args::number(x, "motion.noise: x", "")?;
            noise::octaves(octaves, seed, |scale, seed| noise::line(x * scale, seed))
        }
    })
}

/// Largest number that springs and tracks move: no sum or product of theirs overflows.
const AMOUNT_MAX: f64 = 1e30;
/// Longest time of a spring, seconds.
const SPRING_S_MAX: f64 = 1e9;

/// A number or a vector: what springs and tracks move.
#[derive(Clone, Copy)]
enum Amount {
    Number(f64),
    Vector(DVec3),
}

impl Amount {
    fn of(value: &Value, what: &str) -> Result<Self> {
        match value {
            Value::Vector(_) => Ok(Self::Vector(args::vector(value, what, "")?.as_dvec3())),
            Value::Number(_) | Value::Integer(_) => {
                let (low, high) = (-AMOUNT_MAX, AMOUNT_MAX);
                Ok(Self::Number(args::within(value, what, "", low, high)?))
            }
            _ => args::refuse(what, "a number or a vector", value),
        }
    }

    fn lanes(self) -> usize {
        match self {
            Self::Number(_) => 1,
            Self::Vector(_) => 3,
        }
    }

    fn lane(self, i: usize) -> f64 {
        match self {
            Self::Number(n) => n,
            Self::Vector(v) => v[i],
        }
    }

    /// A value of `lanes` numbers, for Lua.
    fn to_value(lanes: usize, lane: impl Fn(usize) -> f64) -> Value {
        if lanes == 1 {
            Value::Number(lane(0))
        } else {
            let v = DVec3::new(lane(0), lane(1), lane(2)).as_vec3();
            Value::Vector(args::to_lua(v))
        }
    }
}

/// `names` are those of frequency and damping in messages.
fn spring_of(frequency: &Value, damping: &Value, names: [&str; 2]) -> Result<Spring> {
    let frequency_hz = match frequency {
        Value::Nil => 1.0,
        value => args::positive(value, names[0], "Hz")?,
    };
    let damping = match damping {
        Value::Nil => 1.0,
        value => args::within(value, names[1], "ratio", 0.0, 100.0)?,
    };
    Ok(Spring {
        frequency_hz,
        damping,
    })
}

/// `motion.spring{from, to, velocity, frequency, damping}`.
struct SpringPath {
    spring: Spring,
    from: Amount,
    to: Amount,
    velocity: Amount,
}

impl SpringPath {
    fn new(options: &Value) -> Result<Self> {
        let what = "motion.spring";
        let table = args::table(options, &format!("{what}: options"))?;
        args::only_keys(table, &api::SPRING_OPTIONS, what)?;
        let amount = |key: &str, default: f64| {
            match table.raw_get::<Value>(key)? {
                Value::Nil => Ok(None),
                value => Amount::of(&value, &format!("{what}: {key}")).map(Some),
            }
            .map(|found: Option<Amount>| (found, default))
        };
        let (from, to, velocity) = (
            amount("from", 0.0)?,
            amount("to", 1.0)?,
            amount("velocity", 0.0)?,
        );
        let is_vector = [from.0, to.0, velocity.0]
            .iter()
            .flatten()
            .any(|a| a.lanes() == 3);
        // What is not named takes the kind of what is: `to` is then the only vector that must be.
        let fill = |(found, default): (Option<Amount>, f64)| {
            found.unwrap_or(if is_vector {
                Amount::Vector(DVec3::splat(default))
            } else {
                Amount::Number(default)
            })
        };
        Self {
            spring: spring_of(
                &table.raw_get("frequency")?,
                &table.raw_get("damping")?,
                ["motion.spring: frequency", "motion.spring: damping"],
            )?,
            from: fill(from),
            to: fill(to),
            velocity: fill(velocity),
        }
        .checked(what)
    }

    fn checked(self, what: &str) -> Result<Self> {
        let lanes = self.from.lanes();
        if self.to.lanes() != lanes || self.velocity.lanes() != lanes {
            return Err(Error::runtime(format!(
                "{what}: values and velocity must all be numbers or all be vectors"
            )));
        }
        Ok(self)
    }

    /// Value and velocity.
    fn at(&self, t_s: f64) -> (Value, Value) {
        let mut out = [(0.0, 0.0); 3];
        for (i, slot) in out.iter_mut().enumerate().take(self.from.lanes()) {
            let to = self.to.lane(i);
            let (x, v) = self
                .spring
                .at(self.from.lane(i) - to, self.velocity.lane(i), t_s);
            *slot = (to + x, v);
        }
        let lanes = self.from.lanes();
        (
            Amount::to_value(lanes, |i| out[i].0),
            Amount::to_value(lanes, |i| out[i].1),
        )
    }
}

impl UserData for SpringPath {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::SPRING);
        class.method("at", |_, s, t: Value| {
            let t_s = args::within(&t, "spring:at: t", "seconds", -SPRING_S_MAX, SPRING_S_MAX)?;
            Ok(s.at(t_s))
        });
        class.finish();
    }
}

/// `motion.spline{p1, p2, ..., closed = true}`.
struct SplinePath {
    spline: Spline,
    _share: Share,
}

impl SplinePath {
    fn new(lua: &Lua, options: &Value, quota: &Quota) -> Result<Self> {
        let what = "motion.spline";
        let table = args::table(options, &format!("{what}: points"))?;
        args::only_keys(table, &api::SPLINE_OPTIONS, what)?;
        let closed = match table.raw_get::<Value>("closed")? {
            Value::Nil => false,
            value => args::boolean(&value, &format!("{what}: closed"))?,
        };
        let share = quota.take(lua, table.raw_len() * (CHORDS + 3), what)?;
        let points = (1..=table.raw_len())
            .map(|i| {
                let point: Value = table.raw_get(i)?;
                Ok(args::vector(&point, &format!("{what}: point {i}"), "metres")?.as_dvec3())
            })
            .collect::<Result<Vec<_>>>()?;
        match Spline::new(&points, closed) {
            Ok(spline) => Ok(Self {
                spline,
                _share: share,
            }),
            Err(why) => Err(Error::runtime(format!("{what}: {why}"))),
        }
    }
}

impl UserData for SplinePath {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::SPLINE);
        class.get("length", |_, s| Ok(s.spline.length()));
        let narrow = |v: DVec3| -> Vec3 { v.as_vec3() };
        class.method("at", move |_, s, u: Value| {
            let u = args::number(&u, "spline:at: u", "0 to 1")?;
            Ok(args::to_lua(narrow(s.spline.at(u))))
        });
        class.method("tangent", move |_, s, u: Value| {
            let u = args::number(&u, "spline:tangent: u", "0 to 1")?;
            Ok(args::to_lua(narrow(s.spline.tangent(u))))
        });
        class.finish();
    }
}

/// Checks the arguments of `motion.track` and makes the table that it fills.
pub(super) fn track_check(lua: &Lua, rate: &Value, count: &Value, f: &Value) -> Result<Table> {
    args::positive(rate, "motion.track: rate", "Hz")?;
    let count = args::whole(count, "motion.track: count", 1, SAMPLES_MAX)?;
    if !f.is_function() {
        return args::refuse("motion.track: sample", "a function of t (seconds)", f);
    }
    lua.create_table_with_capacity(count as usize, 0)
}

/// Bakes the table into a track.
pub(super) fn track_bake(
    lua: &Lua,
    rate: &Value,
    samples: &Table,
    quota: &Quota,
) -> Result<BakedTrack> {
    let rate_hz = args::number(rate, "motion.track: rate", "Hz")?;
    let what = |i: usize| {
        format!(
            "motion.track: value at sample {i} (t = {} s)",
            i as f64 / rate_hz
        )
    };
    let first = Amount::of(&samples.raw_get(1)?, &what(0))?;
    let lanes = first.lanes();
    let count = samples.raw_len();
    let share = quota.take(lua, count * lanes, "motion.track")?;
    let mut values = Vec::with_capacity(count * lanes);
    for i in 0..count {
        let value: Value = samples.raw_get(i + 1)?;
        // The name of a sample is only spelled out when there is something to say about it.
        match (&value, lanes) {
            (Value::Number(n), 1) if n.abs() <= AMOUNT_MAX => values.push(*n),
            (Value::Vector(v), 3) if [v.x(), v.y(), v.z()].iter().all(|c| c.is_finite()) => {
                values.extend([v.x(), v.y(), v.z()].map(f64::from));
            }
            (Value::Number(_) | Value::Integer(_), 1) | (Value::Vector(_), 3) => {
                let amount = Amount::of(&value, &what(i))?;
                values.extend((0..lanes).map(|lane| amount.lane(lane)));
            }
            _ => return args::refuse(&what(i), "of the same kind as the first", &value),
        }
    }
    Track::new(rate_hz, lanes, values)
        .map(|track| BakedTrack {
            track,
            is_listed: false,
            _share: share,
        })
        .map_err(|why| Error::runtime(format!("motion.track: {why}")))
}

/// Most numbers per sample of a track that is made of a buffer.
const LANES_MAX: u32 = 64;

/// Makes a track of a buffer of f64, little-endian: `lanes` (1 when nil) numbers a sample.
pub(super) fn track_of(
    lua: &Lua,
    rate: &Value,
    samples: &mlua::Buffer,
    lanes: &Value,
    quota: &Quota,
) -> Result<BakedTrack> {
    let what = "motion.track";
    let rate_hz = args::positive(rate, "motion.track: rate", "Hz")?;
    let lanes = match lanes {
        Value::Nil => 1,
        value => args::whole(value, "motion.track: lanes", 1, LANES_MAX)? as usize,
    };
    let bytes_max = SAMPLES_MAX as usize * 8 * lanes;
    if samples.len() > bytes_max || !samples.len().is_multiple_of(8) {
        return Err(Error::runtime(format!(
            "{what}: the buffer must hold at most {SAMPLES_MAX} samples of {lanes} f64 numbers, got {} bytes",
            samples.len()
        )));
    }
    let share = quota.take(lua, samples.len() / 8, what)?;
    let values: Vec<f64> = samples
        .to_vec()
        .chunks_exact(8)
        .map(|bytes| f64::from_le_bytes(std::array::from_fn(|i| bytes[i])))
        .collect();
    if let Some(i) = values.iter().position(|v| !v.is_finite()) {
        return Err(Error::runtime(format!(
            "{what}: number {} of sample {} must be finite, got {}",
            i % lanes + 1,
            i / lanes,
            values[i]
        )));
    }
    Track::new(rate_hz, lanes, values)
        .map(|track| BakedTrack {
            track,
            is_listed: true,
            _share: share,
        })
        .map_err(|why| Error::runtime(format!("{what}: {why}")))
}

/// What `motion.track` returns.
pub(super) struct BakedTrack {
    track: Track,
    /// Asked for a time it answers with a number a lane, not with a number or a vector.
    is_listed: bool,
    _share: Share,
}

impl UserData for BakedTrack {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::TRACK);
        class.get("duration", |_, t| Ok(t.track.duration_s()));
        class.method("at", |_, baked, t: Value| {
            let t_s = args::number(&t, "track:at: t", "seconds")?;
            let lane = |lane| baked.track.at(lane, t_s);
            let lanes = baked.track.lanes();
            Ok(if baked.is_listed {
                (0..lanes).map(|i| Value::Number(lane(i))).collect()
            } else {
                MultiValue::from_iter([Amount::to_value(lanes, lane)])
            })
        });
        class.finish();
    }
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<SpringPath>()?;
    lua.create_proxy::<SplinePath>()?;
    lua.create_proxy::<BakedTrack>()?;
    Ok(())
}
