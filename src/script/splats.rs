//! Assets of a scene as scripts hold them: handles with a placement, and splats made by scripts.
//!
//! A handle is an index into the scene's [`Cast`]; it holds no Lua value, so it can neither keep a VM
//! alive nor be kept by one beyond its own.

use super::api::{self, Binding};
use super::body::{self, Posture};
use super::edits::{self, Planned};
use super::effects;
use super::quota::{Quota, Share};
use super::sheets::{self, TextureHandle};
use super::vm::Host;
use super::{Asset, args};
use crate::frame::SplatDraw;
use crate::scene::sh::SH_C0;
use crate::scene::{Body, Bounds, Placement, Sheet, Splats, sheet};
use crate::survey::Placed;
use glam::{Mat3, Quat, Vec3};
use mlua::{AnyUserData, Error, Lua, MetaMethod, Result, Table, UserData, UserDataRegistry, Value};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Splats that a script may generate one by one or from buffers, all sets together (56 bytes each before
/// packing, 236 with spherical harmonics). Sheets have a limit of their own, in bytes:
/// [`sheets::SHEETS_BYTES_MAX`].
pub(super) const GENERATED_MAX: usize = 4_000_000;
/// Assets of one scene.
const MEMBERS_MAX: usize = 4096;
/// Brightest tint: 16 times.
const TINT_MAX: f32 = 16.0;
/// Share of centres that a framing leaves out on each side of each axis.
const FRAMING_SHARE: f32 = 0.02;
/// A colour of a generated splat may overshoot white this far, for lamps.
const COLOUR_MAX: f32 = 4.0;

/// How an asset is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub placement: Placement,
    pub tint: [f32; 4],
    pub visible: bool,
    /// Takes part in hit tests.
    pub pickable: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            tint: [1.0; 4],
            visible: true,
            pickable: false,
        }
    }
}

/// How an asset stands in space, for [`crate::survey`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placing {
    placement: Placement,
    tint: [f32; 4],
}

impl Placing {
    pub(super) fn placed<'a>(&self, splats: &'a Splats) -> Placed<'a> {
        let [r, g, b, a] = self.tint;
        Placed {
            splats,
            placement: self.placement,
            tint: Vec3::new(r, g, b),
            opacity: a,
        }
    }
}

/// What a script may change of an asset at any time.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub look: Look,
    pub posture: Posture,
    pub edits: Vec<Planned>,
    pub effects: Vec<effects::Planned>,
}

/// One asset.
struct Member {
    name: String,
    splats: Arc<Splats>,
    body: Option<Arc<Body>>,
    facts: Arc<serde_json::Value>,
    bounds: OnceCell<Option<Bounds>>,
    live: Live,
    /// A wave that goes over its splats, where a script has begun one.
    spread: Option<effects::Held>,
    /// Of the quotas of generated splats and of sheets.
    _shares: Vec<Share>,
}

/// The quota of [`GENERATED_MAX`].
pub(super) fn quota() -> Quota {
    Quota::new(
        GENERATED_MAX,
        &format!("a scene may generate {GENERATED_MAX} splats"),
    )
}

/// All assets of a scene, in the order of their loading.
#[derive(Default)]
pub(super) struct Cast {
    members: Vec<Member>,
    /// Set once the scene plays: nothing is made from then on.
    is_complete: bool,
}

/// Shared by the stage and all handles.
pub(super) type SharedCast = Rc<RefCell<Cast>>;

impl Cast {
    /// Adds an asset.
    pub(super) fn add(
        cast: &SharedCast,
        name: String,
        asset: Asset,
        shares: Vec<Share>,
    ) -> Result<Handle> {
        let mut inner = cast.borrow_mut();
        if inner.members.len() >= MEMBERS_MAX {
            return Err(Error::runtime(format!(
                "a scene may have {MEMBERS_MAX} assets"
            )));
        }
        let live = Live {
            look: Look {
                pickable: asset.body.is_some(),
                ..Look::default()
            },
            posture: Posture::of(asset.body.as_ref()),
            edits: Vec::new(),
            effects: Vec::new(),
        };
        inner.members.push(Member {
            name,
            splats: asset.splats,
            body: asset.body,
            facts: asset.facts,
            bounds: OnceCell::new(),
            live,
            spread: None,
            _shares: shares,
        });
        Ok(Handle {
            index: inner.members.len() - 1,
            cast: cast.clone(),
        })
    }

    /// How everything stands, to be put back with [`Cast::restore`].
    pub(super) fn lives(&self) -> Vec<Live> {
        self.members.iter().map(|m| m.live.clone()).collect()
    }

    pub(super) fn restore(&mut self, lives: Vec<Live>) {
        for (member, live) in self.members.iter_mut().zip(lives) {
            member.live = live;
        }
    }

    /// Nothing is made from now on.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Refuses to make things while the scene plays, where every frame would make some.
    pub(super) fn only_while_loading(&self, what: &str) -> Result<()> {
        if !self.is_complete {
            return Ok(());
        }
        Err(Error::runtime(format!(
            "{what} works in the file's body and in load(stage) only"
        )))
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.members[index].name
    }

    pub(super) fn splats(&self, index: usize) -> &Arc<Splats> {
        &self.members[index].splats
    }

    pub(super) fn body(&self, index: usize) -> Option<&Arc<Body>> {
        self.members[index].body.as_ref()
    }

    /// Names and bodies of all that have one.
    pub(super) fn bodies(&self) -> Vec<(String, Arc<Body>)> {
        (self.members.iter())
            .filter_map(|m| Some((m.name.clone(), Arc::clone(m.body.as_ref()?))))
            .collect()
    }

    /// Gives an asset another body and lets it stand at rest, but for what bones of both do.
    pub(super) fn set_body(&mut self, index: usize, body: Body) {
        let member = &mut self.members[index];
        let body = Arc::new(body);
        let mut posture = Posture::of(Some(&body));
        let old = &member.live.posture;
        posture.pivot = old.pivot;
        for (new, old) in posture.joints.iter_mut().zip(&old.joints) {
            *new = *old;
        }
        for (new, old) in posture.coefficients.iter_mut().zip(&old.coefficients) {
            *new = *old;
        }
        member.live.look.pickable |= member.body.is_none();
        member.live.posture = posture;
        member.body = Some(body);
    }

    /// What a bundle says besides splats and body: an object, or null.
    pub(super) fn facts(&self, index: usize) -> &serde_json::Value {
        &self.members[index].facts
    }

    pub(super) fn live(&self, index: usize) -> &Live {
        &self.members[index].live
    }

    pub(super) fn live_mut(&mut self, index: usize) -> &mut Live {
        &mut self.members[index].live
    }

    pub(super) fn spread_mut(&mut self, index: usize) -> Option<&mut effects::Held> {
        self.members[index].spread.as_mut()
    }

    pub(super) fn set_spread(&mut self, index: usize, held: effects::Held) {
        self.members[index].spread = Some(held);
    }

    /// The handle of a member, where there is one of that number.
    pub(super) fn handle(cast: &SharedCast, index: u32) -> Option<Handle> {
        let index = index as usize;
        (index < cast.borrow().members.len()).then(|| Handle {
            index,
            cast: cast.clone(),
        })
    }

    /// Every visible asset as it is placed.
    pub(super) fn visible(&self) -> Vec<SplatDraw> {
        (0..self.members.len())
            .filter_map(|index| {
                let live = &self.members[index].live;
                self.draw(index, &live.look, &live.effects)
            })
            .collect()
    }

    /// How the assets `only` stand, or all visible ones.
    pub(super) fn placings(&self, only: Option<&[usize]>) -> Vec<(Arc<Splats>, Placing)> {
        let of = |member: &Member| {
            let look = &member.live.look;
            let placing = Placing {
                placement: look.placement,
                tint: look.tint,
            };
            (member.splats.clone(), placing)
        };
        match only {
            Some(indices) => indices.iter().map(|i| of(&self.members[*i])).collect(),
            None => {
                let visible = self.members.iter().filter(|m| m.live.look.visible);
                visible.map(of).collect()
            }
        }
    }

    /// The draw of an asset with a look; none when it cannot be seen.
    fn draw(&self, index: usize, look: &Look, effects: &[effects::Planned]) -> Option<SplatDraw> {
        let member = &self.members[index];
        if !look.visible || look.tint[3] <= 0.0 {
            return None;
        }
        let body = member.body.as_ref();
        let pose = body.and_then(|body| member.live.posture.pose(body));
        let edits = body::placed_edits(&member.live.edits, pose.as_deref());
        Some(SplatDraw {
            splats: member.splats.clone(),
            placement: look.placement,
            tint: look.tint,
            pose,
            edits,
            effects: effects.iter().map(effects::Planned::in_use).collect(),
            arrivals: (member.spread.as_ref())
                .filter(|_| !effects.is_empty())
                .map(|held| held.spread.arrivals().clone()),
            target: look.pickable.then_some(index as u32),
        })
    }

    /// World bounds of one asset, or of all visible ones.
    pub(super) fn bounds(&self, only: Option<usize>) -> Option<Bounds> {
        self.members
            .iter()
            .enumerate()
            .filter(|(i, m)| only.map_or(m.live.look.visible, |index| index == *i))
            .filter_map(|(_, m)| {
                let local = (*m
                    .bounds
                    .get_or_init(|| m.splats.percentile_bounds(FRAMING_SHARE)))?;
                let corners = (0..8).map(|i| {
                    let pick = |bit: i32, axis: usize| {
                        if i & bit == 0 {
                            local.min[axis]
                        } else {
                            local.max[axis]
                        }
                    };
                    let corner = Vec3::new(pick(1, 0), pick(2, 1), pick(4, 2));
                    let p = m.live.look.placement.apply(corner);
                    Bounds { min: p, max: p }
                });
                corners.reduce(union)
            })
            .reduce(union)
    }
}

fn union(a: Bounds, b: Bounds) -> Bounds {
    Bounds {
        min: a.min.min(b.min),
        max: a.max.max(b.max),
    }
}

/// What a script holds of an asset.
#[derive(Clone)]
pub(super) struct Handle {
    pub index: usize,
    pub cast: SharedCast,
}

impl Handle {
    /// The draw of this asset with the fields of `table` in place of its own.
    pub(super) fn draw_with(&self, table: Option<&Table>, what: &str) -> Result<Option<SplatDraw>> {
        let cast = self.cast.borrow();
        let live = cast.live(self.index);
        let mut look = live.look;
        let mut own_effects = None;
        if let Some(table) = table {
            for field in LOOK_FIELDS {
                let value: Value = table.raw_get(field)?;
                if !value.is_nil() {
                    set_look(&mut look, field, &value, &format!("{what}.{field}"))?;
                }
            }
            let value: Value = table.raw_get("effects")?;
            if !value.is_nil() {
                let what = format!("{what}.effects");
                own_effects = Some(effects::list_of(&value, &live.effects, &what)?);
            }
        }
        let effects = own_effects.as_ref().unwrap_or(&live.effects);
        Ok(cast.draw(self.index, &look, effects))
    }
}

/// Fields that handles and entries of `draws` share.
pub(super) const LOOK_FIELDS: [&str; 6] = [
    "position", "rotation", "scale", "tint", "visible", "pickable",
];

/// Sets one of [`LOOK_FIELDS`].
fn set_look(look: &mut Look, field: &str, value: &Value, what: &str) -> Result<()> {
    match field {
        "position" => look.placement.translation = args::vector(value, what, "metres")?,
        "rotation" => look.placement.rotation = args::rotation(value, what)?,
        "scale" => look.placement.scale = args::positive(value, what, "times")? as f32,
        "tint" => look.tint = args::colour(value, what, TINT_MAX)?,
        "visible" => look.visible = args::boolean(value, what)?,
        _ => look.pickable = args::boolean(value, what)?,
    }
    Ok(())
}

impl UserData for Handle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::HANDLE);
        class.get("name", |_, h| {
            Ok(h.cast.borrow().members[h.index].name.clone())
        });
        class.get("count", |_, h| {
            Ok(h.cast.borrow().members[h.index].splats.len())
        });
        class.get("position", |_, h| {
            Ok(args::to_lua(h.look().placement.translation))
        });
        class.get("rotation", |lua, h| {
            lua.create_sequence_from(h.look().placement.rotation.to_array())
        });
        class.get("scale", |_, h| Ok(h.look().placement.scale));
        class.get("tint", |lua, h| lua.create_sequence_from(h.look().tint));
        class.get("visible", |_, h| Ok(h.look().visible));
        class.get("pickable", |_, h| Ok(h.look().pickable));
        class.get("effects", |lua, h| {
            effects::list_to(lua, &h.cast.borrow().live(h.index).effects)
        });
        class.set("effects", |_, h, value: Value| {
            let mut cast = h.cast.borrow_mut();
            let what = format!("effects of '{}'", cast.name(h.index));
            let live = cast.live_mut(h.index);
            live.effects = effects::list_of(&value, &live.effects, &what)?;
            Ok(())
        });
        for field in LOOK_FIELDS {
            class.set(field, move |_, h, value: Value| {
                let mut cast = h.cast.borrow_mut();
                let member = &mut cast.members[h.index];
                let what = format!("{field} of '{}'", member.name);
                set_look(&mut member.live.look, field, &value, &what)
            });
        }
        body::bind(&mut class);
        edits::bind(&mut class);
        class.operator(MetaMethod::Eq, |_, h, other: Value| {
            let other = match &other {
                Value::UserData(data) => as_handle(data),
                _ => None,
            };
            Ok(other.is_some_and(|o| o.index == h.index && Rc::ptr_eq(&o.cast, &h.cast)))
        });
        class.operator(MetaMethod::ToString, |_, h, ()| {
            let cast = h.cast.borrow();
            let member = &cast.members[h.index];
            Ok(format!(
                "splats '{}' ({})",
                member.name,
                member.splats.len()
            ))
        });
        class.finish();
    }
}

impl Handle {
    fn look(&self) -> Look {
        self.cast.borrow().live(self.index).look
    }

    /// As [`Cast::only_while_loading`].
    pub(super) fn only_while_loading(&self, what: &str) -> Result<()> {
        self.cast.borrow().only_while_loading(what)
    }
}

/// The handle in a value.
pub(super) fn handle(value: &Value, what: &str) -> Result<Handle> {
    if let Value::UserData(data) = value
        && let Ok(handle) = data.borrow::<Handle>()
    {
        return Ok(handle.clone());
    }
    args::refuse(what, "a splats handle", value)
}

/// `stage.builder(n, degree)`: splats added one by one, then those of sheets.
pub(super) struct Builder {
    splats: Splats,
    share: Share,
    sheets: Vec<Sheet>,
    /// Splats that the sheets will become.
    pending: usize,
    /// Bytes of the sheets.
    sheets_share: Share,
    /// Their quota counts these; the sheets hold the texels themselves.
    textures: Vec<TextureHandle>,
    host: Rc<Host>,
}

impl Builder {
    /// A builder with room for its share, of splats with spherical harmonics of a degree.
    pub(super) fn new(share: Share, sheets_share: Share, degree: u8, host: Rc<Host>) -> Self {
        let mut splats = Splats {
            sh_degree: degree,
            ..Splats::default()
        };
        splats.means.reserve(share.count());
        splats.log_scales.reserve(share.count());
        splats.rotations.reserve(share.count());
        splats.opacities.reserve(share.count());
        splats.dc.reserve(share.count());
        splats.sh_rest.reserve(share.count() * splats.sh_stride());
        Self {
            splats,
            share,
            sheets: Vec::new(),
            pending: 0,
            sheets_share,
            textures: Vec::new(),
            host,
        }
    }

    fn sheet(&mut self, table: &Value) -> Result<()> {
        let table = args::table(table, "builder:sheet: sheet")?;
        // Each sheet of a scene's seed has chances of its own.
        let seed = self.host.seed ^ ((self.sheets.len() as u64 + 1) << 32);
        let degree = self.splats.sh_degree;
        let described = sheets::describe(table, degree, seed)?;
        let bytes = self.sheets_share.count() + described.bytes;
        self.sheets_share.resize(bytes, "builder:sheet")?;
        self.pending += described.sheet.count;
        self.sheets.push(described.sheet);
        if let Some(texture) = described.texture
            && !self.textures.iter().any(|held| held.is(&texture))
        {
            self.textures.push(texture);
        }
        Ok(())
    }

    /// What has been added, as an asset.
    fn build(&mut self, name: String) -> Result<Handle> {
        let added = self.splats.len();
        let mut splats = Splats {
            sh_degree: self.splats.sh_degree,
            ..Splats::default()
        };
        std::mem::swap(&mut splats, &mut self.splats);
        let sheets = std::mem::take(&mut self.sheets);
        self.host
            .budget
            .off_the_clock(|| sheet::append(&mut splats, &sheets));
        drop(sheets);
        self.textures.clear();
        self.pending = 0;
        let (none, no_bytes) = (self.share.empty(), self.sheets_share.empty());
        let mut share = std::mem::replace(&mut self.share, none);
        share.resize(added, "builder:build")?;
        let mut sheets_share = std::mem::replace(&mut self.sheets_share, no_bytes);
        let bytes = sheets::bytes_of(splats.len() - added, splats.sh_degree);
        sheets_share.resize(bytes, "builder:build")?;
        Cast::add(
            &self.host.cast,
            name,
            Asset::splats_alone(Arc::new(splats)),
            vec![share, sheets_share],
        )
    }

    fn add(
        &mut self,
        [position, scale, colour, opacity, facing, along]: [&Value; 6],
    ) -> Result<()> {
        if self.splats.len() >= self.share.count() {
            // As a Vec grows, so that the share is asked for rarely.
            let more = (2 * self.share.count()).clamp(64, self.share.count() + 65_536);
            self.share.resize(more, "builder:add")?;
        }
        let position = args::vector(position, "builder:add: position", "metres")?;
        let scale = scale_of(scale)?;
        let [r, g, b, _] = args::colour(colour, "builder:add: colour", COLOUR_MAX)?;
        let opacity = match opacity {
            Value::Nil => 1.0,
            value => args::within(value, "builder:add: opacity", "", 0.0, 1.0)? as f32,
        };
        let rotation = match facing {
            // Said and not read would be a trap.
            Value::Nil if !along.is_nil() => {
                return Err(Error::runtime(
                    "builder:add: along needs facing, a vector, before it",
                ));
            }
            Value::Nil => Quat::IDENTITY,
            Value::Vector(_) => facing_rotation(facing, along)?,
            value => args::rotation(value, "builder:add: facing")?,
        };
        let splats = &mut self.splats;
        splats.means.push(position);
        splats.log_scales.push(scale.map(f32::ln));
        splats.rotations.push(rotation);
        splats.opacities.push(opacity);
        splats.dc.push(dc_from_display(Vec3::new(r, g, b)));
        let rest = splats.sh_rest.len() + splats.sh_stride();
        splats.sh_rest.resize(rest, 0.0);
        Ok(())
    }
}

fn scale_of(value: &Value) -> Result<Vec3> {
    let what = "builder:add: scale";
    match value {
        Value::Vector(_) => {
            let scale = args::vector(value, what, "metres")?;
            if scale.min_element() > 0.0 {
                return Ok(scale);
            }
            args::refuse(what, "above 0 metres on every axis", value)
        }
        _ => Ok(Vec3::splat(args::positive(value, what, "metres")? as f32)),
    }
}

/// The rotation that turns a splat's own z along `facing` and its x as near to `along` as it goes.
fn facing_rotation(facing: &Value, along: &Value) -> Result<Quat> {
    let direction = |value: &Value, what: &str| -> Result<Vec3> {
        match args::vector(value, what, "direction")?.try_normalize() {
            Some(unit) => Ok(unit),
            None => args::refuse(what, "a direction that is not 0", value),
        }
    };
    let z = direction(facing, "builder:add: facing")?;
    let wish = match along {
        Value::Nil => None,
        value => Some(direction(value, "builder:add: along")?),
    };
    let x = wish
        .and_then(|w| w.reject_from_normalized(z).try_normalize())
        .unwrap_or_else(|| z.any_orthonormal_vector());
    Ok(Quat::from_mat3(&Mat3::from_cols(x, z.cross(x), z)).normalize())
}

/// Band 0 that shows as the display-space colour.
fn dc_from_display(colour: Vec3) -> Vec3 {
    (colour - Vec3::splat(0.5)) / SH_C0
}

impl UserData for Builder {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::BUILDER);
        class.get("count", |_, b| Ok(b.splats.len() + b.pending));
        class.method_mut(
            "add",
            |_, b, (p, s, c, o, f, a): (Value, Value, Value, Value, Value, Value)| {
                b.add([&p, &s, &c, &o, &f, &a])
            },
        );
        class.method_mut("sheet", |_, b, table: Value| b.sheet(&table));
        class.method_mut("build", |_, b, name: Value| {
            let name = match &name {
                Value::Nil => "generated".to_owned(),
                value => args::text(value, "builder:build: name")?,
            };
            b.build(name)
        });
        class.finish();
    }
}

/// `stage.generate{...}`: splats from buffers or lists.
pub(super) fn generate(
    lua: &Lua,
    cast: &SharedCast,
    quota: &Quota,
    table: &Table,
) -> Result<Handle> {
    args::only_keys(table, &api::GENERATE_OPTIONS, "stage.generate")?;
    let field = |name: &str| table.raw_get::<Value>(name);
    let positions = lanes::<3>(&field("positions")?, "stage.generate: positions", None)?;
    let n = positions.len();
    let share = quota.take(lua, n, "stage.generate")?;
    let scales = lanes_or_one::<3>(&field("scales")?, "stage.generate: scales", n, None)?;
    if let Some(i) = scales.iter().position(|s| s.iter().any(|v| *v <= 0.0)) {
        return Err(Error::runtime(format!(
            "stage.generate: scales[{}] must be above 0 metres on every axis, got {:?}",
            i + 1,
            scales[i]
        )));
    }
    let colours = lanes_or_one::<3>(&field("colours")?, "stage.generate: colours", n, None)?;
    let opacities = lanes_or_one::<1>(
        &field("opacities")?,
        "stage.generate: opacities",
        n,
        Some([1.0]),
    )?;
    if let Some(i) = opacities.iter().position(|o| !(0.0..=1.0).contains(&o[0])) {
        return Err(Error::runtime(format!(
            "stage.generate: opacities[{}] must be from 0 to 1, got {}",
            i + 1,
            opacities[i][0]
        )));
    }
    let rotations = lanes_or_one::<4>(
        &field("rotations")?,
        "stage.generate: rotations",
        n,
        Some([0.0, 0.0, 0.0, 1.0]),
    )?;
    let rotations = rotations
        .iter()
        .enumerate()
        .map(|(i, q)| {
            let q = Quat::from_array(*q);
            if q.length_squared() > 1e-12 {
                return Ok(q.normalize());
            }
            Err(Error::runtime(format!(
                "stage.generate: rotations[{}] must be a quaternion (x, y, z, w) that is not 0",
                i + 1
            )))
        })
        .collect::<Result<Vec<_>>>()?;
    let (sh_degree, sh_rest) = sh(&field("sh")?, n)?;
    let name = match field("name")? {
        Value::Nil => "generated".to_owned(),
        value => args::text(&value, "stage.generate: name")?,
    };
    let splats = Splats {
        means: positions.into_iter().map(Vec3::from).collect(),
        log_scales: scales
            .into_iter()
            .map(|s| Vec3::from(s).map(f32::ln))
            .collect(),
        rotations,
        opacities: opacities.into_iter().map(|[o]| o).collect(),
        dc: colours
            .into_iter()
            .map(|c| dc_from_display(Vec3::from(c)))
            .collect(),
        sh_degree,
        sh_rest,
        antialiased: false,
    };
    Cast::add(
        cast,
        name,
        Asset::splats_alone(Arc::new(splats)),
        vec![share],
    )
}

/// Further SH coefficients: 9, 24 or 45 floats a splat, coefficient-major, channel inner.
fn sh(value: &Value, n: usize) -> Result<(u8, Vec<f32>)> {
    if value.is_nil() || n == 0 {
        return Ok((0, Vec::new()));
    }
    let floats: Vec<f32> = lanes::<1>(value, "stage.generate: sh", None)?
        .into_iter()
        .map(|[c]| c)
        .collect();
    let degree = (1..=3).find(|d| floats.len() == n * crate::scene::sh::rest_count(*d) * 3);
    match degree {
        Some(degree) => Ok((degree, floats)),
        None => Err(Error::runtime(format!(
            "stage.generate: sh must hold 9, 24 or 45 floats for each of {n} splats, got {}",
            floats.len()
        ))),
    }
}

/// `n` rows of N floats, or one row that stands for all, or the default.
fn lanes_or_one<const N: usize>(
    value: &Value,
    what: &str,
    n: usize,
    default: Option<[f32; N]>,
) -> Result<Vec<[f32; N]>> {
    match (value, default) {
        (Value::Nil, Some(row)) => Ok(vec![row; n]),
        (Value::Vector(_) | Value::Number(_) | Value::Integer(_), _) => {
            Ok(vec![row::<N>(value, &|| what.to_owned())?; n])
        }
        _ => lanes(value, what, Some(n)),
    }
}

/// Rows of N floats from a buffer of f32 or a list.
pub(super) fn lanes<const N: usize>(
    value: &Value,
    what: &str,
    rows: Option<usize>,
) -> Result<Vec<[f32; N]>> {
    let out: Vec<[f32; N]> = match value {
        Value::Buffer(buffer) => {
            let bytes = buffer.to_vec();
            if !bytes.len().is_multiple_of(4 * N) {
                return args::refuse(what, &format!("a buffer of {N} f32 a splat"), value);
            }
            bytes
                .chunks_exact(4 * N)
                .map(|row| {
                    std::array::from_fn(|i| {
                        let mut float = [0; 4];
                        float.copy_from_slice(&row[4 * i..4 * i + 4]);
                        f32::from_le_bytes(float)
                    })
                })
                .collect()
        }
        Value::Table(table) => (1..=table.raw_len())
            .map(|i| row::<N>(&table.raw_get(i)?, &|| format!("{what}[{i}]")))
            .collect::<Result<_>>()?,
        _ => return args::refuse(what, "a buffer of f32 or a list", value),
    };
    if let Some(i) = out
        .iter()
        .position(|row| row.iter().any(|v| !v.is_finite()))
    {
        return Err(Error::runtime(format!(
            "{what}[{}] must be finite, got {:?}",
            i + 1,
            out[i]
        )));
    }
    match rows {
        Some(n) if n != out.len() => Err(Error::runtime(format!(
            "{what} must have one entry for each of {n} splats, got {}",
            out.len()
        ))),
        _ => Ok(out),
    }
}

/// One row: a vector for three floats, a number for one (or for three equal ones), a list else. The
/// name is only spelled out when there is something wrong.
fn row<const N: usize>(value: &Value, what: &dyn Fn() -> String) -> Result<[f32; N]> {
    let mut out = [0.0; N];
    match value {
        Value::Vector(v) if N == 3 => out.copy_from_slice(&[v.x(), v.y(), v.z()]),
        Value::Number(n) if N != 4 => out.fill(*n as f32),
        Value::Integer(n) if N != 4 => out.fill(*n as f32),
        Value::Table(list) if list.raw_len() == N => {
            for (i, slot) in out.iter_mut().enumerate() {
                *slot = match list.raw_get::<Value>(i + 1)? {
                    Value::Number(n) => n as f32,
                    Value::Integer(n) => n as f32,
                    other => {
                        return args::refuse(&format!("{}[{}]", what(), i + 1), "a number", &other);
                    }
                };
            }
        }
        _ => {
            let wanted = match N {
                1 => "a number".to_owned(),
                3 => "a vector".to_owned(),
                _ => format!("a list of {N} numbers"),
            };
            return args::refuse(&what(), &wanted, value);
        }
    }
    if out.iter().all(|v| v.is_finite()) {
        return Ok(out);
    }
    args::refuse(&what(), "finite", value)
}

/// A handle as a userdata value, for `draws`.
pub(super) fn as_handle(data: &AnyUserData) -> Option<Handle> {
    data.borrow::<Handle>().ok().map(|h| h.clone())
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<Handle>()?;
    lua.create_proxy::<Builder>()?;
    Ok(())
}
