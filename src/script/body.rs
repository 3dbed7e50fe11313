//! Bodies as scripts hold them: bones and blendshapes of a handle, bones made by a script, and rigs
//! for generated splats.
//!
//! What a number means (gains, limits, which key drives what) is the script's business; here names
//! are looked up and values checked. Like handles, bones are indices and hold no Lua value.

use super::api::{self, Binding};
use super::args;
use super::splats::{Cast, Handle, SharedCast};
use crate::scene::body::{BONES_MAX, Body, Bone, Joint, Pivot, SHAPES_MAX, Shapes, Skin};
use crate::scene::{Edit, Pose};
use glam::{Quat, Vec3};
use mlua::{
    Error, Lua, MetaMethod, Result, Table, UserData, UserDataFields, UserDataMethods,
    UserDataRegistry, Value,
};
use std::sync::Arc;

/// Numbers that the weights and shapes of one generated rig may hold before rows of zeros are left
/// out: 256 MiB as floats.
const RIG_VALUES_MAX: usize = 64 << 20;
/// Largest coefficient of a blendshape. Faces use -2 to 2.
const COEFFICIENT_MAX: f64 = 16.0;
/// Largest factor of a made bone's weight.
const GAIN_MAX: f64 = 1000.0;
/// Groups of conditions of a made bone, and conditions of a group.
const GATES_MAX: usize = 64;

/// How a body stands, as a script left it.
#[derive(Clone, Debug, Default)]
pub(super) struct Posture {
    pub joints: Vec<Joint>,
    pub coefficients: Vec<f32>,
    pub pivot: Pivot,
}

impl Posture {
    /// A body at rest.
    pub(super) fn of(body: Option<&Arc<Body>>) -> Self {
        Self {
            joints: vec![Joint::default(); body.map_or(0, |b| b.bones.len())],
            coefficients: vec![0.0; body.map_or(0, |b| b.shapes.names.len())],
            pivot: Pivot::default(),
        }
    }

    /// The pose to draw; none where the splats can be drawn as they are.
    pub(super) fn pose(&self, body: &Arc<Body>) -> Option<Arc<Pose>> {
        let pose = Pose::new(body, &self.joints, self.pivot, self.coefficients.clone());
        (!pose.is_rest()).then(|| Arc::new(pose))
    }
}

/// Fields and methods of handles that only make sense with a body.
pub(super) fn bind(class: &mut Binding<'_, Handle>) {
    class.get("bones", |lua, h: &Handle| {
        let cast = h.cast.borrow();
        let body = cast.body(h.index);
        let names = body.map_or(&[][..], |b| &b.bones);
        let list = lua.create_sequence_from(names.iter().map(|b| b.name.as_str()))?;
        list.set_readonly(true);
        Ok(list)
    });
    class.get("shapes", |lua, h: &Handle| {
        let cast = h.cast.borrow();
        let names = cast.body(h.index).map_or(&[][..], |b| &b.shapes.names);
        let list = lua.create_sequence_from(names.iter().map(String::as_str))?;
        list.set_readonly(true);
        Ok(list)
    });
    for fact in ["states", "manifest", "asset_type"] {
        class.get(fact, move |lua, h: &Handle| {
            let cast = h.cast.borrow();
            match cast.facts(h.index).get(fact) {
                Some(value) => super::plain::to_lua(lua, value, true),
                None => Ok(Value::Nil),
            }
        });
    }
    class.get("pivot", |_, h: &Handle| {
        Ok(match h.cast.borrow().live(h.index).posture.pivot {
            Pivot::Joint => "joint",
            Pivot::Origin => "origin",
        })
    });
    class.set("pivot", |_, h: &mut Handle, value: Value| {
        let mut cast = h.cast.borrow_mut();
        let what = format!("pivot of '{}'", cast.name(h.index));
        let pivot = match args::text(&value, &what)?.as_str() {
            "joint" => Pivot::Joint,
            "origin" => Pivot::Origin,
            _ => return args::refuse(&what, "'joint' or 'origin'", &value),
        };
        cast.live_mut(h.index).posture.pivot = pivot;
        Ok(())
    });
    class.method("bone", |_, h, name: Value| {
        let name = args::text(&name, "handle:bone: name")?;
        let cast = h.cast.borrow();
        let index = cast.body(h.index).and_then(|b| b.bone(&name));
        Ok(index.map(|bone| BoneHandle {
            member: h.index,
            bone,
            cast: h.cast.clone(),
        }))
    });
    class.method("shape", |_, h, name: Value| {
        let name = args::text(&name, "handle:shape: name")?;
        let cast = h.cast.borrow();
        let index = shape_index(&cast, h.index, &name, "handle:shape")?;
        Ok(cast.live(h.index).posture.coefficients[index])
    });
    class.method("set_shape", |_, h, (name, value): (Value, Value)| {
        let mut cast = h.cast.borrow_mut();
        set_shape(&mut cast, h.index, &name, &value, "handle:set_shape")
    });
    class.method("set_shapes", |_, h, table: Value| {
        let table = args::table(&table, "handle:set_shapes: values")?;
        let mut cast = h.cast.borrow_mut();
        table.for_each(|name: Value, value: Value| {
            set_shape(&mut cast, h.index, &name, &value, "handle:set_shapes")
        })
    });
    class.method("add_bone", |_, h, table: Value| {
        h.only_while_loading("handle:add_bone")?;
        add_bone(h, args::table(&table, "handle:add_bone: bone")?)
    });
    class.method("add_shape", |_, h, table: Value| {
        h.only_while_loading("handle:add_shape")?;
        add_shape(h, args::table(&table, "handle:add_shape: shape")?)
    });
}

fn shape_index(cast: &Cast, member: usize, name: &str, what: &str) -> Result<usize> {
    let body = cast.body(member);
    if let Some(index) = body.and_then(|b| b.shape(name)) {
        return Ok(index);
    }
    let names: Vec<&str> = body.map_or_else(Vec::new, |b| {
        b.shapes.names.iter().map(String::as_str).collect()
    });
    Err(Error::runtime(format!(
        "{what}: '{}' has no blendshape '{name}'{}",
        cast.name(member),
        match names.as_slice() {
            [] => "; it has none at all".to_owned(),
            names => args::suggestion(name, names),
        }
    )))
}

fn set_shape(
    cast: &mut Cast,
    member: usize,
    name: &Value,
    value: &Value,
    what: &str,
) -> Result<()> {
    let name = args::text(name, &format!("{what}: name"))?;
    let index = shape_index(cast, member, &name, what)?;
    let value = args::within(
        value,
        &format!("{what}: value of '{name}'"),
        "",
        -COEFFICIENT_MAX,
        COEFFICIENT_MAX,
    )?;
    cast.live_mut(member).posture.coefficients[index] = value as f32;
    Ok(())
}

/// What a script holds of a bone.
pub(super) struct BoneHandle {
    member: usize,
    bone: usize,
    cast: SharedCast,
}

impl BoneHandle {
    fn with<T>(&self, f: impl FnOnce(&Bone) -> T) -> T {
        let cast = self.cast.borrow();
        // A bone handle is only made for a bone that is there, and bones are never taken away.
        let body = cast.body(self.member).map_or(&[][..], |b| &b.bones);
        f(&body[self.bone])
    }

    fn joint(&self) -> Joint {
        self.cast.borrow().live(self.member).posture.joints[self.bone]
    }

    fn change(&self, f: impl FnOnce(&mut Joint)) {
        f(&mut self.cast.borrow_mut().live_mut(self.member).posture.joints[self.bone]);
    }
}

impl UserData for BoneHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::BONE);
        class.get("name", |_, b| Ok(b.with(|bone| bone.name.clone())));
        class.get("parent", |_, b| {
            let cast = b.cast.borrow();
            let bones = cast.body(b.member).map_or(&[][..], |body| &body.bones);
            let parent = bones[b.bone].parent.and_then(|p| bones.get(usize::from(p)));
            Ok(parent.map(|bone| bone.name.clone()))
        });
        class.get("rest", |_, b| Ok(b.with(|bone| args::to_lua(bone.rest))));
        class.get("rotation", |lua, b| {
            lua.create_sequence_from(b.joint().rotation.to_array())
        });
        class.set("rotation", |_, b, value: Value| {
            let rotation = match args::rotation(&value, "rotation of a bone") {
                Ok(rotation) => rotation,
                Err(_) => {
                    let name = b.with(|bone| bone.name.clone());
                    args::rotation(&value, &format!("rotation of the bone '{name}'"))?
                }
            };
            b.change(|joint| joint.rotation = rotation);
            Ok(())
        });
        class.get("move", |_, b| Ok(args::to_lua(b.joint().shift)));
        class.set("move", |_, b, value: Value| {
            let shift = args::vector(&value, "move of a bone", "metres")?;
            b.change(|joint| joint.shift = shift);
            Ok(())
        });
        class.method("turn", |_, b, (x, y, z): (Value, Value, Value)| {
            let angle = |value: &Value, axis: &str| -> Result<f32> {
                if value.is_nil() {
                    return Ok(0.0);
                }
                Ok(args::angle(value, &format!("bone:turn: {axis}"))? as f32)
            };
            let (x, y, z) = (angle(&x, "x")?, angle(&y, "y")?, angle(&z, "z")?);
            let rotation =
                Quat::from_rotation_z(z) * Quat::from_rotation_y(y) * Quat::from_rotation_x(x);
            b.change(|joint| joint.rotation = rotation);
            Ok(())
        });
        class.operator(MetaMethod::ToString, |_, b, ()| {
            Ok(b.with(|bone| format!("bone '{}'", bone.name)))
        });
        class.finish();
    }
}

/// Something that must hold for a splat.
struct Condition {
    /// Bones whose largest weight is looked at; empty for a condition on the position.
    bones: Vec<u8>,
    above: Option<f32>,
    below: Option<f32>,
    below_y: Option<f32>,
}

impl Condition {
    fn holds(&self, p: Vec3, row: &[(u8, f32)]) -> bool {
        let weight = row
            .iter()
            .filter(|(bone, _)| self.bones.contains(bone))
            .fold(0.0_f32, |most, (_, w)| most.max(*w));
        self.above.is_none_or(|limit| weight > limit)
            && self.below.is_none_or(|limit| weight < limit)
            && self.below_y.is_none_or(|limit| p.y < limit)
    }
}

/// `handle:add_bone{...}`: a bone that the file does not have, with weights that fall off around it.
fn add_bone(handle: &Handle, table: &Table) -> Result<BoneHandle> {
    let what = "handle:add_bone";
    args::only_keys(table, &api::BONE_OPTIONS, what)?;
    let get = |key: &str| table.raw_get::<Value>(key);
    let name = args::text(&get("name")?, &format!("{what}: name"))?;
    let rest = args::vector(&get("position")?, &format!("{what}: position"), "metres")?;
    let sigma = sigma_of(&get("sigma")?, &format!("{what}: sigma"))?;
    let within = |key: &str, default: f64, high: f64| match get(key)? {
        Value::Nil => Ok(default as f32),
        value => args::within(&value, &format!("{what}: {key}"), "", 0.0, high).map(|v| v as f32),
    };
    let gain = within("gain", 1.0, GAIN_MAX)?;
    let floor = within("floor", 0.0, GAIN_MAX)?;
    let mut cast = handle.cast.borrow_mut();
    let member_name = cast.name(handle.index).to_owned();
    let Some(body) = cast.body(handle.index) else {
        return Err(Error::runtime(format!(
            "{what}: '{member_name}' has no bones to add to"
        )));
    };
    let parent = match get("parent")? {
        Value::Nil => None,
        value => Some(bone_named(body, &value, &format!("{what}: parent"))? as u16),
    };
    if body.bone(&name).is_some() {
        return Err(Error::runtime(format!(
            "{what}: '{member_name}' has a bone '{name}' already"
        )));
    }
    if body.bones.len() >= BONES_MAX {
        return Err(Error::runtime(format!(
            "{what}: a body may have {BONES_MAX} bones"
        )));
    }
    let gates = gates(body, &get("skip")?, what)?;
    let mut body = Body::clone(body);
    let bone = body.bones.len();
    if let Some(skin) = &body.skin {
        let means = &cast.splats(handle.index).means;
        let mut grown = Skin::default();
        for (row, p) in means.iter().enumerate() {
            let mut own: Vec<(u8, f32)> = skin.row(row).collect();
            let is_skipped = gates
                .iter()
                .any(|group| group.iter().all(|condition| condition.holds(*p, &own)));
            let d = (*p - rest) / sigma;
            let weight = gain * (-0.5 * d.length_squared()).exp();
            if !is_skipped && weight > floor {
                own.push((bone as u8, weight));
            }
            grown.push_row(own);
        }
        body.skin = Some(grown);
    }
    body.bones.push(Bone { name, parent, rest });
    cast.set_body(handle.index, body);
    drop(cast);
    Ok(BoneHandle {
        member: handle.index,
        bone,
        cast: handle.cast.clone(),
    })
}

/// Widths of a Gaussian: one for all axes, or one for each.
fn sigma_of(value: &Value, what: &str) -> Result<Vec3> {
    let sigma = match value {
        Value::Vector(_) => args::vector(value, what, "metres")?,
        _ => Vec3::splat(args::positive(value, what, "metres")? as f32),
    };
    if sigma.min_element() > 0.0 {
        return Ok(sigma);
    }
    args::refuse(what, "above 0 metres on every axis", value)
}

/// What a made shape does around one point.
struct Bump {
    centre: Vec3,
    sigma: Vec3,
    offset: Vec3,
}

/// Splats that a bump moves by less than this share of its offset stay.
const BUMP_SHARE_MIN: f32 = 0.01;
/// Bumps of one made shape.
const BUMPS_MAX: usize = 64;

/// `handle:add_shape{...}`: a blendshape that the file does not have, as a sum of Gaussian bumps.
fn add_shape(handle: &Handle, table: &Table) -> Result<()> {
    let what = "handle:add_shape";
    args::only_keys(table, &api::SHAPE_OPTIONS, what)?;
    let name = args::text(&table.raw_get("name")?, &format!("{what}: name"))?;
    let list: Value = table.raw_get("bumps")?;
    let list = args::table(&list, &format!("{what}: bumps"))?;
    if list.raw_len() > BUMPS_MAX {
        return Err(Error::runtime(format!(
            "{what}: a shape may have {BUMPS_MAX} bumps, got {}",
            list.raw_len()
        )));
    }
    let mut bumps = Vec::new();
    for i in 1..=list.raw_len() {
        let what = format!("{what}: bumps[{i}]");
        let entry: Value = list.raw_get(i)?;
        let entry = args::table(&entry, &what)?;
        args::only_keys(entry, &api::BUMP, &what)?;
        let vector = |key: &str| -> Result<Vec3> {
            args::vector(&entry.raw_get(key)?, &format!("{what}.{key}"), "metres")
        };
        bumps.push(Bump {
            centre: vector("centre")?,
            sigma: sigma_of(&entry.raw_get("sigma")?, &format!("{what}.sigma"))?,
            offset: vector("offset")?,
        });
    }
    let mut cast = handle.cast.borrow_mut();
    let member_name = cast.name(handle.index).to_owned();
    let Some(body) = cast.body(handle.index) else {
        return Err(Error::runtime(format!(
            "{what}: '{member_name}' has no body to shape"
        )));
    };
    if body.shape(&name).is_some() {
        return Err(Error::runtime(format!(
            "{what}: '{member_name}' has a shape '{name}' already"
        )));
    }
    let shape = body.shapes.names.len();
    if shape >= SHAPES_MAX {
        return Err(Error::runtime(format!(
            "{what}: a body may have {SHAPES_MAX} shapes"
        )));
    }
    let mut names = body.shapes.names.clone();
    names.push(name);
    let mut grown = Shapes::new(names);
    for (row, p) in cast.splats(handle.index).means.iter().enumerate() {
        let offset: Vec3 = bumps
            .iter()
            .filter_map(|bump| {
                let d = (*p - bump.centre) / bump.sigma;
                let share = (-0.5 * d.length_squared()).exp();
                (share > BUMP_SHARE_MIN).then_some(bump.offset * share)
            })
            .sum();
        grown.push_entries(body.shapes.row(row), (shape as u16, offset));
    }
    let body = Body {
        bones: body.bones.clone(),
        skin: body.skin.clone(),
        shapes: grown,
    };
    cast.set_body(handle.index, body);
    Ok(())
}

/// The number of the bone that a value names.
pub(super) fn bone_named(body: &Body, value: &Value, what: &str) -> Result<usize> {
    let name = args::text(value, what)?;
    body.bone(&name).ok_or_else(|| {
        let names: Vec<&str> = body.bones.iter().map(|b| b.name.as_str()).collect();
        Error::runtime(format!(
            "{what}: there is no bone '{name}'{}",
            match names.as_slice() {
                [] => String::new(),
                names => args::suggestion(&name, names),
            }
        ))
    })
}

/// `skip`: a splat is left out when all conditions of any group hold.
fn gates(body: &Body, value: &Value, what: &str) -> Result<Vec<Vec<Condition>>> {
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let list = |value: &Value, what: &str| -> Result<Vec<Value>> {
        let table = args::table(value, what)?;
        if table.raw_len() > GATES_MAX {
            return Err(Error::runtime(format!(
                "{what} may have {GATES_MAX} entries, got {}",
                table.raw_len()
            )));
        }
        (1..=table.raw_len()).map(|i| table.raw_get(i)).collect()
    };
    let mut groups = Vec::new();
    for (g, group) in list(value, &format!("{what}: skip"))?.iter().enumerate() {
        let group_name = format!("{what}: skip[{}]", g + 1);
        let mut conditions = Vec::new();
        for (c, value) in list(group, &group_name)?.iter().enumerate() {
            let name = format!("{group_name}[{}]", c + 1);
            let table = args::table(value, &name)?;
            args::only_keys(table, &api::CONDITION, &name)?;
            let mut bones = Vec::new();
            match table.raw_get::<Value>("bones")? {
                Value::Nil => {}
                value => {
                    for value in list(&value, &format!("{name}.bones"))? {
                        bones.push(bone_named(body, &value, &format!("{name}.bones"))? as u8);
                    }
                }
            }
            let limit = |key: &str, unit: &str| -> Result<Option<f32>> {
                Ok(args::optional_number(table, key, &name, unit)?.map(|v| v as f32))
            };
            conditions.push(Condition {
                bones,
                above: limit("above", "weight")?,
                below: limit("below", "weight")?,
                below_y: limit("below_y", "metres")?,
            });
        }
        // A group without conditions would leave out everything.
        if conditions.is_empty() {
            return Err(Error::runtime(format!("{group_name} has no condition")));
        }
        groups.push(conditions);
    }
    Ok(groups)
}

/// A rig on its way: `stage.rig` of the prelude fills it column by column.
pub(super) struct RigBuilder {
    handle: Handle,
    bones: Vec<Bone>,
    /// One column a bone, where given.
    weights: Vec<Option<Vec<f32>>>,
    shapes: Vec<(String, Vec<Vec3>)>,
    values: usize,
}

impl RigBuilder {
    /// `spec` is the table that `stage.rig` gets; its bones are read here.
    pub(super) fn new(handle: &Value, spec: &Value) -> Result<Self> {
        let handle = super::splats::handle(handle, "stage.rig: handle")?;
        handle.only_while_loading("stage.rig")?;
        if handle.cast.borrow().body(handle.index).is_some() {
            return Err(Error::runtime(format!(
                "stage.rig: '{}' has a body already",
                handle.cast.borrow().name(handle.index)
            )));
        }
        let mut body = Body::default();
        let spec = args::table(spec, "stage.rig: spec")?;
        args::only_keys(spec, &api::RIG_OPTIONS, "stage.rig: spec")?;
        for key in ["weights", "shapes"] {
            match spec.raw_get::<Value>(key)? {
                Value::Nil => {}
                value => {
                    args::table(&value, &format!("stage.rig: {key}"))?;
                }
            }
        }
        let bones = spec.raw_get::<Value>("bones")?;
        let list = match &bones {
            Value::Nil => None,
            value => Some(args::table(value, "stage.rig: bones")?),
        };
        let count = list.map_or(0, Table::raw_len);
        if count > BONES_MAX {
            return Err(Error::runtime(format!(
                "stage.rig: a body may have {BONES_MAX} bones, got {count}"
            )));
        }
        for (i, list) in (1..=count).zip(std::iter::repeat(list)) {
            let what = format!("stage.rig: bones[{i}]");
            let Some(list) = list else { continue };
            let entry: Value = list.raw_get(i)?;
            let entry = args::table(&entry, &what)?;
            args::only_keys(entry, &api::RIG_BONE, &what)?;
            let name = args::text(&entry.raw_get("name")?, &format!("{what}.name"))?;
            if body.bone(&name).is_some() {
                return Err(Error::runtime(format!("{what}: a second bone '{name}'")));
            }
            let parent = match entry.raw_get::<Value>("parent")? {
                Value::Nil => None,
                value => {
                    let what = format!("{what}.parent (it must come before)");
                    Some(bone_named(&body, &value, &what)? as u16)
                }
            };
            let position = entry.raw_get::<Value>("position")?;
            let rest = args::vector(&position, &format!("{what}.position"), "metres")?;
            body.bones.push(Bone { name, parent, rest });
        }
        Ok(Self {
            handle,
            weights: vec![None; body.bones.len()],
            bones: body.bones,
            shapes: Vec::new(),
            values: 0,
        })
    }

    /// A buffer of the splats' centres (three f32 each).
    fn positions(&self, lua: &Lua) -> Result<mlua::Buffer> {
        let cast = self.handle.cast.borrow();
        let means = &cast.splats(self.handle.index).means;
        let bytes: &[u8] = bytemuck::cast_slice(means);
        lua.create_buffer(bytes)
    }

    fn charge(&mut self, values: usize) -> Result<usize> {
        let rows = self.handle.cast.borrow().splats(self.handle.index).len();
        self.values = self.values.saturating_add(rows.saturating_mul(values));
        if self.values > RIG_VALUES_MAX {
            return Err(Error::runtime(format!(
                "stage.rig: weights and shapes of one body may hold {RIG_VALUES_MAX} numbers"
            )));
        }
        Ok(rows)
    }

    fn weights(&mut self, name: &Value, column: &Value) -> Result<()> {
        let body = Body {
            bones: std::mem::take(&mut self.bones),
            ..Body::default()
        };
        let bone = bone_named(&body, name, "stage.rig: weights");
        self.bones = body.bones;
        let bone = bone?;
        let rows = self.charge(1)?;
        let what = format!("stage.rig: weights of '{}'", self.bones[bone].name);
        let column = super::splats::lanes::<1>(column, &what, Some(rows))?;
        if let Some(row) = column.iter().position(|[w]| *w < 0.0) {
            return Err(Error::runtime(format!(
                "{what}[{}] must not be negative, got {}",
                row + 1,
                column[row][0]
            )));
        }
        self.weights[bone] = Some(column.into_iter().map(|[w]| w).collect());
        Ok(())
    }

    fn shape(&mut self, name: &Value, column: &Value) -> Result<()> {
        let name = args::text(name, "stage.rig: name of a shape")?;
        if self.shapes.iter().any(|(known, _)| *known == name) {
            return Err(Error::runtime(format!(
                "stage.rig: a second shape '{name}'"
            )));
        }
        if self.shapes.len() >= SHAPES_MAX {
            return Err(Error::runtime(format!(
                "stage.rig: a body may have {SHAPES_MAX} shapes"
            )));
        }
        let rows = self.charge(3)?;
        let what = format!("stage.rig: offset of the shape '{name}'");
        let column = super::splats::lanes::<3>(column, &what, Some(rows))?;
        self.shapes
            .push((name, column.into_iter().map(Vec3::from).collect()));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let rows = self.charge(0)?;
        let bones = std::mem::take(&mut self.bones);
        let columns = std::mem::take(&mut self.weights);
        let mut body = Body {
            bones,
            ..Body::default()
        };
        if columns.iter().any(Option::is_some) {
            let mut skin = Skin::default();
            for row in 0..rows {
                skin.push_row(
                    columns.iter().enumerate().filter_map(|(bone, column)| {
                        Some((bone as u8, *column.as_ref()?.get(row)?))
                    }),
                );
            }
            body.skin = Some(skin);
        }
        let shapes = std::mem::take(&mut self.shapes);
        body.shapes = Shapes::new(shapes.iter().map(|(name, _)| name.clone()).collect());
        for row in 0..rows {
            let entries = shapes.iter().zip(0_u16..);
            body.shapes
                .push_row(entries.map(|((_, column), shape)| (shape, column[row])));
        }
        let mut cast = self.handle.cast.borrow_mut();
        cast.set_body(self.handle.index, body);
        Ok(())
    }
}

impl UserData for RigBuilder {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "rig");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("positions", |lua, rig, ()| rig.positions(lua));
        methods.add_method_mut("weights", |_, rig, (name, column): (Value, Value)| {
            rig.weights(&name, &column)
        });
        methods.add_method("check_shape", |_, _, (shape, i): (Value, usize)| {
            let what = format!("stage.rig: shapes[{i}]");
            args::only_keys(args::table(&shape, &what)?, &api::RIG_SHAPE, &what)
        });
        methods.add_method_mut("shape", |_, rig, (name, column): (Value, Value)| {
            rig.shape(&name, &column)
        });
        methods.add_method_mut("finish", |_, rig, ()| rig.finish());
    }
}

/// Edits that a draw takes, bones applied.
pub(super) fn placed_edits(edits: &[super::edits::Planned], pose: Option<&Pose>) -> Vec<Edit> {
    edits.iter().filter_map(|e| e.placed(pose)).collect()
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<BoneHandle>()?;
    Ok(())
}
