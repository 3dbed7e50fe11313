//! Edits as scripts hold them: `handle:edit{...}` while loading, fields to set at any time.
//!
//! The shapes themselves are in [`crate::scene::edit`]; here they are read from tables, kept with
//! the handle, and placed by the bone that carries them.

use super::api::{self, Binding};
use super::args;
use super::splats::{Handle, SharedCast};
use crate::scene::edit::{EDITS_MAX, Solid};
use crate::scene::{Edit, Pose, Rigid};
use glam::{Quat, Vec3};
use mlua::{Error, Lua, Result, Table, UserData, UserDataRegistry, Value};

/// Names of the shapes, and the sizes that each takes.
const SHAPES: [(&str, &[&str]); 5] = [
    ("sphere", &["radius"]),
    ("box", &["half"]),
    ("ellipsoid", &["radii"]),
    ("plane", &[]),
    ("capsule", &["radius", "half_length"]),
];
/// Fields that every shape takes, and that can be set later.
const SETTABLE: [&str; 8] = [
    "opacity",
    "tint",
    "displace",
    "centre",
    "rotation",
    "soft_edge",
    "inverted",
    "enabled",
];
/// Brightest tint of an edit.
const TINT_MAX: f32 = 16.0;

/// An edit as a script left it.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    solid: Solid,
    centre: Vec3,
    rotation: Quat,
    bone: Option<usize>,
    soft_edge_m: f32,
    is_inverted: bool,
    opacity: f32,
    tint: Vec3,
    displace: Vec3,
    is_enabled: bool,
}

impl Planned {
    /// The edit where its bone carries it; none when it changes nothing.
    pub(super) fn placed(&self, pose: Option<&Pose>) -> Option<Edit> {
        if !self.is_enabled {
            return None;
        }
        let own = Rigid {
            rotation: self.rotation,
            translation: self.centre,
        };
        let motion = self
            .bone
            .and_then(|bone| pose?.motions.get(bone))
            .copied()
            .unwrap_or(Rigid::IDENTITY);
        let edit = Edit {
            solid: self.solid,
            local_from_solid: motion.after(&own),
            soft_edge_m: self.soft_edge_m,
            is_inverted: self.is_inverted,
            opacity: self.opacity,
            tint: self.tint,
            displace: motion.rotation * self.displace,
        };
        (!edit.is_idle()).then_some(edit)
    }

    fn set(&mut self, field: &str, value: &Value, what: &str) -> Result<()> {
        match field {
            "opacity" => self.opacity = args::within(value, what, "", 0.0, 1.0)? as f32,
            "tint" => {
                let [r, g, b, _] = args::colour(value, what, TINT_MAX)?;
                self.tint = Vec3::new(r, g, b);
            }
            "displace" => self.displace = args::vector(value, what, "metres")?,
            "centre" => self.centre = args::vector(value, what, "metres")?,
            "rotation" => self.rotation = args::rotation(value, what)?,
            "soft_edge" => {
                self.soft_edge_m = args::within(value, what, "metres", 0.0, 1e6)? as f32;
            }
            "inverted" => self.is_inverted = args::boolean(value, what)?,
            _ => self.is_enabled = args::boolean(value, what)?,
        }
        Ok(())
    }
}

/// Methods of handles.
pub(super) fn bind(class: &mut Binding<'_, Handle>) {
    class.method("edit", |_, h, table: Value| {
        h.only_while_loading("handle:edit")?;
        make(h, args::table(&table, "handle:edit: edit")?)
    });
}

fn make(handle: &Handle, table: &Table) -> Result<EditHandle> {
    let what = "handle:edit";
    let get = |key: &str| table.raw_get::<Value>(key);
    let shape = args::text(&get("shape")?, &format!("{what}: shape"))?;
    let Some((_, sizes)) = SHAPES.iter().find(|(name, _)| *name == shape) else {
        let names: Vec<&str> = SHAPES.iter().map(|(name, _)| *name).collect();
        return Err(Error::runtime(format!(
            "{what}: there is no shape '{shape}'{}",
            args::suggestion(&shape, &names)
        )));
    };
    let is_known = |name: &str| {
        matches!(name, "shape" | "bone") || sizes.contains(&name) || SETTABLE.contains(&name)
    };
    args::only_named(table, what, &api::EDIT_OPTIONS, is_known)?;
    let length = |key: &str| -> Result<f32> {
        Ok(args::positive(&get(key)?, &format!("{what}: {key}"), "metres")? as f32)
    };
    let lengths = |key: &str| -> Result<Vec3> {
        let value = get(key)?;
        let v = args::vector(&value, &format!("{what}: {key}"), "metres")?;
        if v.min_element() > 0.0 {
            return Ok(v);
        }
        args::refuse(
            &format!("{what}: {key}"),
            "above 0 metres on every axis",
            &value,
        )
    };
    let solid = match shape.as_str() {
        "sphere" => Solid::Sphere {
            radius: length("radius")?,
        },
        "box" => Solid::Box {
            half: lengths("half")?,
        },
        "ellipsoid" => Solid::Ellipsoid {
            radii: lengths("radii")?,
        },
        "plane" => Solid::Plane,
        _ => Solid::Capsule {
            radius: length("radius")?,
            half_length: args::within(
                &get("half_length")?,
                &format!("{what}: half_length"),
                "metres",
                0.0,
                1e6,
            )? as f32,
        },
    };
    let mut cast = handle.cast.borrow_mut();
    let bone = match get("bone")? {
        Value::Nil => None,
        value => match cast.body(handle.index) {
            Some(body) => Some(super::body::bone_named(
                body,
                &value,
                &format!("{what}: bone"),
            )?),
            None => {
                return Err(Error::runtime(format!(
                    "{what}: bone: '{}' has no bones",
                    cast.name(handle.index)
                )));
            }
        },
    };
    let mut planned = Planned {
        solid,
        centre: Vec3::ZERO,
        rotation: Quat::IDENTITY,
        bone,
        soft_edge_m: 0.0,
        is_inverted: false,
        opacity: 1.0,
        tint: Vec3::ONE,
        displace: Vec3::ZERO,
        is_enabled: true,
    };
    for field in SETTABLE {
        let value = get(field)?;
        if !value.is_nil() {
            planned.set(field, &value, &format!("{what}: {field}"))?;
        }
    }
    let edits = &mut cast.live_mut(handle.index).edits;
    if edits.len() >= EDITS_MAX {
        return Err(Error::runtime(format!(
            "{what}: a handle may have {EDITS_MAX} edits"
        )));
    }
    edits.push(planned);
    Ok(EditHandle {
        member: handle.index,
        edit: edits.len() - 1,
        cast: handle.cast.clone(),
    })
}

/// What a script holds of an edit.
pub(super) struct EditHandle {
    member: usize,
    edit: usize,
    cast: SharedCast,
}

impl UserData for EditHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::EDIT);
        for field in SETTABLE {
            class.set(field, move |_, e, value: Value| {
                let mut cast = e.cast.borrow_mut();
                let planned = &mut cast.live_mut(e.member).edits[e.edit];
                planned.set(field, &value, &format!("{field} of an edit"))
            });
        }
        class.get("opacity", |_, e| Ok(e.get().opacity));
        class.get("tint", |lua, e| {
            lua.create_sequence_from(e.get().tint.to_array())
        });
        class.get("displace", |_, e| Ok(args::to_lua(e.get().displace)));
        class.get("centre", |_, e| Ok(args::to_lua(e.get().centre)));
        class.get("rotation", |lua, e| {
            lua.create_sequence_from(e.get().rotation.to_array())
        });
        class.get("soft_edge", |_, e| Ok(e.get().soft_edge_m));
        class.get("inverted", |_, e| Ok(e.get().is_inverted));
        class.get("enabled", |_, e| Ok(e.get().is_enabled));
        class.finish();
    }
}

impl EditHandle {
    fn get(&self) -> Planned {
        self.cast.borrow().live(self.member).edits[self.edit].clone()
    }
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<EditHandle>()?;
    Ok(())
}
