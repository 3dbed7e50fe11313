//! `builder:sheet{...}` and `stage.texture`: surfaces that a script describes and the host scatters.
//!
//! A script cannot add ten million splats one by one; it can describe some hundred surfaces. What is
//! described is checked here and made by [`crate::scene::sheet`] once the builder builds.

use super::api::{self, Binding};
use super::args;
use super::quota::{Quota, Share};
use super::splats::lanes;
use crate::scene::sh;
use crate::scene::sheet::{Gloss, Light, Sheet, Texture, Window};
use glam::{Vec2, Vec3};
use mlua::{Error, Lua, Result, Table, UserData, UserDataRegistry, Value};
use std::rc::Rc;
use std::sync::Arc;

/// Bytes that splats of sheets, textures and what describes them may hold, all together: 4 GiB, which
/// is 17.8 million splats of degree 3 or 71 million without spherical harmonics.
pub(super) const SHEETS_BYTES_MAX: usize = 4 << 30;
/// A splat without further coefficients: centre, scale, rotation, opacity, colour.
const SPLAT_BYTES: usize = 56;
/// A coefficient beyond the first: red, green, blue.
const COEFFICIENT_BYTES: usize = 12;
/// Splats of one sheet.
const COUNT_MAX: u32 = 50_000_000;
/// Lights that one sheet mirrors.
const GLOSS_MAX: usize = 4;
/// Texels along one side of a texture.
const TEXTURE_SIDE_MAX: u32 = 4096;
/// Brightest tint, light and gloss: 16 times.
const BRIGHTEST: f32 = 16.0;

/// The quota of [`SHEETS_BYTES_MAX`].
pub(super) fn quota() -> Quota {
    Quota::new(
        SHEETS_BYTES_MAX,
        &format!(
            "the sheets of a scene may hold {} MiB",
            SHEETS_BYTES_MAX >> 20
        ),
    )
}

/// Bytes of `count` splats of a degree.
pub(super) fn bytes_of(count: usize, degree: u8) -> usize {
    count.saturating_mul(SPLAT_BYTES + COEFFICIENT_BYTES * sh::rest_count(degree))
}

/// A texture and its part of the quota.
pub(super) struct Held {
    texture: Arc<Texture>,
    _share: Share,
}

/// What a script holds of a texture.
#[derive(Clone)]
pub(super) struct TextureHandle(Rc<Held>);

impl TextureHandle {
    /// The same texture.
    pub(super) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl UserData for TextureHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::TEXTURE);
        class.get("across", |_, t| Ok(t.0.texture.columns));
        class.get("up", |_, t| {
            Ok(t.0.texture.texels.len() / t.0.texture.columns)
        });
        class.finish();
    }
}

/// `stage.texture(pixels, across)`: a buffer of red, green, blue, gloss bytes, row by row.
pub(super) fn texture(
    lua: &Lua,
    quota: &Quota,
    pixels: &Value,
    across: &Value,
) -> Result<TextureHandle> {
    let across = args::whole(across, "stage.texture: across", 1, TEXTURE_SIDE_MAX)? as usize;
    let what = "stage.texture: pixels";
    let Value::Buffer(buffer) = pixels else {
        return args::refuse(what, "a buffer of four bytes a texel", pixels);
    };
    let most = 4 * across * TEXTURE_SIDE_MAX as usize;
    if buffer.is_empty() || buffer.len() > most || !buffer.len().is_multiple_of(4 * across) {
        let wanted =
            format!("whole rows of {across} texels of four bytes, 1 to {TEXTURE_SIDE_MAX} of them");
        return args::refuse(what, &wanted, pixels);
    }
    let share = quota.take(lua, buffer.len(), "stage.texture")?;
    let texels = buffer.to_vec();
    let texels = texels.chunks_exact(4).map(|t| [t[0], t[1], t[2], t[3]]);
    Ok(TextureHandle(Rc::new(Held {
        texture: Arc::new(Texture {
            texels: texels.collect(),
            columns: across,
        }),
        _share: share,
    })))
}

/// A checked sheet, and what it keeps alive.
pub(super) struct Described {
    pub sheet: Sheet,
    pub texture: Option<TextureHandle>,
    /// Bytes of its description and of the splats that it will become.
    pub bytes: usize,
}

/// Reads the argument of `builder:sheet` for splats of a degree; `seed` is the sheet's where it names
/// none.
pub(super) fn describe(table: &Table, degree: u8, seed: u64) -> Result<Described> {
    let what = "builder:sheet";
    args::only_keys(table, &api::SHEET_OPTIONS, what)?;
    let field = |name: &str| table.raw_get::<Value>(name);
    let within = |name: &str, unit: &str, low: f64, high: f64, default: f64| -> Result<f32> {
        Ok(match field(name)? {
            Value::Nil => default,
            value => args::within(&value, &format!("{what}: {name}"), unit, low, high)?,
        } as f32)
    };

    let points: Vec<Vec3> = lanes::<3>(&field("points")?, "builder:sheet: points", None)?
        .into_iter()
        .map(Vec3::from)
        .collect();
    let columns = args::whole(&field("across")?, "builder:sheet: across", 2, u32::MAX)? as usize;
    if points.len() < 2 * columns || !points.len().is_multiple_of(columns) {
        return Err(Error::runtime(format!(
            "{what}: points must be two or more rows of {columns}, got {}",
            points.len()
        )));
    }
    let count = args::whole(&field("count")?, "builder:sheet: count", 0, COUNT_MAX)? as usize;

    let (mut texture, mut held) = (None, None);
    match field("texture")? {
        Value::Nil => {}
        Value::UserData(data) if data.is::<TextureHandle>() => {
            let handle = data.borrow::<TextureHandle>()?.clone();
            texture = Some((handle.0.texture.clone(), window(table, "texture")?));
            held = Some(handle);
        }
        value => return args::refuse("builder:sheet: texture", "one of stage.texture", &value),
    }
    let light = match field("light")? {
        Value::Nil => None,
        value => Some(light_of(table, &value)?),
    };
    let tint = match field("tint")? {
        Value::Nil => Vec3::ONE,
        value => {
            let [r, g, b, _] = args::colour(&value, "builder:sheet: tint", BRIGHTEST)?;
            Vec3::new(r, g, b)
        }
    };
    let gloss = match field("gloss")? {
        Value::Nil => Vec::new(),
        value => gloss_of(&value, degree)?,
    };
    let thickness = match field("thickness")? {
        Value::Nil => 0.003,
        value => args::positive(&value, "builder:sheet: thickness", "metres")? as f32,
    };
    let lit = light.as_ref().map_or(0, |l: &Light| l.values.len());
    let bytes = bytes_of(count, degree)
        .saturating_add(size_of::<Sheet>() + size_of::<Vec3>() * (points.len() + lit));
    let sheet = Sheet {
        points,
        columns,
        count,
        texture,
        light,
        tint,
        stretch: within("stretch", "", 0.01, 100.0, 1.0)?,
        jitter: within("jitter", "", 0.0, 1.0, 0.2)?,
        overlap: within("overlap", "", 0.05, 10.0, 0.7)?,
        thickness_m: thickness,
        opacity: within("opacity", "", 0.0, 1.0, 0.99)?,
        variation: within("variation", "", 0.0, 1.0, 0.0)?,
        depth_m: within("depth", "metres", 0.0, 1e6, 0.0)?,
        tilt_rad: within("tilt", "degrees", 0.0, 180.0, 0.0)?.to_radians(),
        gloss,
        seed: match field("seed")? {
            Value::Nil => seed,
            value => args::seed(&value, "builder:sheet: seed")?,
        },
    };
    let size_m = sheet.size_m();
    if !(size_m.is_finite() && size_m.min_element() > 0.0) {
        return Err(Error::runtime(format!(
            "{what}: points must span a surface, got one of {} by {} metres",
            size_m.x, size_m.y
        )));
    }
    Ok(Described {
        sheet,
        texture: held,
        bytes,
    })
}

/// `NAME_from` and `NAME_to`: {u, v} at the first and the last point, {0, 0} and {1, 1} when absent.
fn window(table: &Table, name: &str) -> Result<Window> {
    let pair = |end: &str, default: f32| -> Result<Vec2> {
        let key = format!("{name}_{end}");
        Ok(match table.raw_get::<Value>(key.as_str())? {
            Value::Nil => Vec2::splat(default),
            value => {
                let [u, v] = args::pair(&value, &format!("builder:sheet: {key}"))?;
                Vec2::new(u as f32, v as f32)
            }
        })
    };
    Ok(Window {
        from: pair("from", 0.0)?,
        to: pair("to", 1.0)?,
    })
}

fn light_of(table: &Table, value: &Value) -> Result<Light> {
    let what = "builder:sheet: light";
    let values: Vec<Vec3> = lanes::<3>(value, what, None)?
        .into_iter()
        .map(Vec3::from)
        .collect();
    let across: Value = table.raw_get("light_across")?;
    let columns = args::whole(&across, "builder:sheet: light_across", 1, u32::MAX)? as usize;
    if values.is_empty() || !values.len().is_multiple_of(columns) {
        return Err(Error::runtime(format!(
            "{what} must be whole rows of {columns} values, got {}",
            values.len()
        )));
    }
    let is_light = |v: &Vec3| v.min_element() >= 0.0 && v.max_element() <= BRIGHTEST;
    if let Some(i) = values.iter().position(|v| !is_light(v)) {
        return Err(Error::runtime(format!(
            "{what}[{}] must be from 0 to {BRIGHTEST}, got {}",
            i + 1,
            values[i]
        )));
    }
    Ok(Light {
        values,
        columns,
        window: window(table, "light")?,
    })
}

/// A list of `{direction, colour, sharpness}`.
fn gloss_of(value: &Value, degree: u8) -> Result<Vec<Gloss>> {
    let what = "builder:sheet: gloss";
    if degree == 0 {
        return Err(Error::runtime(format!(
            "{what} needs spherical harmonics: make the builder by stage.builder(n, 3)"
        )));
    }
    let list = args::table(value, what)?;
    if list.raw_len() > GLOSS_MAX {
        return Err(Error::runtime(format!(
            "{what} may have {GLOSS_MAX} lights, got {}",
            list.raw_len()
        )));
    }
    (1..=list.raw_len())
        .map(|i| {
            let name = format!("{what}[{i}]");
            let entry: Value = list.raw_get(i)?;
            let entry = args::table(&entry, &name)?;
            args::only_keys(entry, &api::GLOSS, &name)?;
            let direction: Value = entry.raw_get("direction")?;
            let towards = args::vector(&direction, &format!("{name}.direction"), "direction")?;
            let Some(towards) = towards.try_normalize() else {
                return args::refuse(
                    &format!("{name}.direction"),
                    "a direction that is not 0",
                    &direction,
                );
            };
            let colour: Value = entry.raw_get("colour")?;
            let [r, g, b, _] = args::colour(&colour, &format!("{name}.colour"), BRIGHTEST)?;
            let sharpness = match entry.raw_get::<Value>("sharpness")? {
                Value::Nil => 4.0,
                value => args::within(&value, &format!("{name}.sharpness"), "", 0.1, 20.0)?,
            };
            Ok(Gloss {
                direction: towards,
                colour: Vec3::new(r, g, b),
                sharpness: sharpness as f32,
            })
        })
        .collect()
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<TextureHandle>()?;
    Ok(())
}
