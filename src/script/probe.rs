//! `stage.probe`: what a ray meets, where the ground is and how far walls are, for scripts.
//!
//! A probe is [`Voxels`] over the splats as they stand when it is made; it does not follow them. The
//! cells are filled when the first question comes, off the script's clock. A scene that is loaded anew
//! with the same splats in the same places gets the same cells again.

use super::api::{self, Binding};
use super::args;
use super::quota::{Quota, Share};
use super::splats::{self, Placing, SharedCast};
use super::vm::Host;
use crate::scene::Splats;
use crate::survey::voxels::{CELL_M, CELL_M_RANGE, CLEARANCE_M_MAX};
use crate::survey::{Placed, Voxels};
use mlua::{Lua, MetaMethod, Result, UserData, UserDataRegistry, Value};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// Cells of all probes of a scene (8 bytes each).
const CELLS_MAX: usize = 128 << 20;
/// Furthest that a ray goes, metres.
const LOOK_M_MAX: f64 = 10_000.0;
/// Where a body is in the way, metres above its feet: what is lower is stepped over.
const BODY_M: [f64; 2] = [0.3, 1.7];
/// Probes of this thread that are kept for the next version of a scene.
const KEPT: usize = 2;
/// What following a ray costs, in interrupts a metre, and asking for clearance.
const INTERRUPTS_PER_M: f64 = 20.0;
const INTERRUPTS_CLEARANCE: u64 = 1_000;

/// The quota of [`CELLS_MAX`].
pub(super) fn quota() -> Quota {
    Quota::new(
        CELLS_MAX,
        &format!("all probes of a scene may hold {CELLS_MAX} cells; make cells larger by cell ="),
    )
}

/// What a probe was made of.
struct Made {
    of: Vec<(Weak<Splats>, Placing)>,
    cell_m: f32,
    voxels: Arc<Voxels>,
}

thread_local! {
    static MADE: RefCell<Vec<Made>> = const { RefCell::new(Vec::new()) };
}

/// The cells of these splats: those of the version before, where nothing has changed.
fn voxels(of: &[(Arc<Splats>, Placing)], cell_m: f32) -> Arc<Voxels> {
    MADE.with_borrow_mut(|made| {
        made.retain(|m| m.of.iter().all(|(splats, _)| splats.strong_count() > 0));
        let known = made.iter().position(|m| {
            m.cell_m == cell_m
                && m.of.len() == of.len()
                && m.of.iter().zip(of).all(|((old, was), (new, is))| {
                    Weak::as_ptr(old) == Arc::as_ptr(new) && was == is
                })
        });
        if let Some(at) = known {
            // The one that was asked for last stays longest.
            let found = made.remove(at);
            let voxels = found.voxels.clone();
            made.push(found);
            return voxels;
        }
        let placed: Vec<Placed<'_>> = of
            .iter()
            .map(|(splats, placing)| placing.placed(splats))
            .collect();
        let voxels = Arc::new(Voxels::build(&placed, cell_m, &|_| ()));
        if made.len() >= KEPT {
            made.remove(0);
        }
        made.push(Made {
            of: of
                .iter()
                .map(|(splats, placing)| (Arc::downgrade(splats), *placing))
                .collect(),
            cell_m,
            voxels: voxels.clone(),
        });
        voxels
    })
}

/// What `stage.probe` returns.
pub(super) struct Probe {
    of: Vec<(Arc<Splats>, Placing)>,
    cell_m: f32,
    filled: OnceCell<(Arc<Voxels>, Share)>,
    host: Rc<Host>,
}

impl Probe {
    /// `stage.probe([handles], [{cell =}])`: a handle, a list of them, or nil for all that is visible.
    pub(super) fn new(host: &Rc<Host>, of: &Value, options: &Value) -> Result<Self> {
        host.only_while_loading("stage.probe")?;
        let cell_m = match options {
            Value::Nil => CELL_M,
            value => {
                let table = args::table(value, "stage.probe: options")?;
                args::only_keys(table, &api::PROBE_OPTIONS, "stage.probe: options")?;
                match table.raw_get::<Value>("cell")? {
                    Value::Nil => CELL_M,
                    value => {
                        let [low, high] = CELL_M_RANGE;
                        args::within(&value, "stage.probe: cell", "metres", low, high)? as f32
                    }
                }
            }
        };
        let cast: &SharedCast = &host.cast;
        let only = match of {
            Value::Nil => None,
            Value::Table(list) => {
                let mut indices = Vec::new();
                for i in 1..=list.raw_len() {
                    let value: Value = list.raw_get(i)?;
                    let name = format!("stage.probe: splats[{i}]");
                    indices.push(splats::handle(&value, &name)?.index);
                }
                Some(indices)
            }
            value => Some(vec![splats::handle(value, "stage.probe: splats")?.index]),
        };
        let of = cast.borrow().placings(only.as_deref());
        Ok(Self {
            of,
            cell_m,
            filled: OnceCell::new(),
            host: host.clone(),
        })
    }

    /// The cells.
    fn voxels(&self, lua: &Lua) -> Result<&Voxels> {
        if let Some((voxels, _)) = self.filled.get() {
            return Ok(voxels);
        }
        let voxels = (self.host.budget).off_the_clock(|| voxels(&self.of, self.cell_m));
        let share = self.host.cells.take(lua, voxels.count(), "stage.probe")?;
        Ok(&self.filled.get_or_init(|| (voxels, share)).0)
    }
}

impl UserData for Probe {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::PROBE);
        class.get("cell", |lua, p| Ok(p.voxels(lua)?.cell_m()));
        class.get("count", |lua, p| Ok(p.voxels(lua)?.count()));
        class.method(
            "look",
            |lua, p, (position, direction, max): (Value, Value, Value)| {
                let origin = args::vector(&position, "probe:look: position", "metres")?;
                let way = args::vector(&direction, "probe:look: direction", "any length")?;
                let max_m = args::within(&max, "probe:look: max", "metres", 0.0, LOOK_M_MAX)?;
                if way.try_normalize().is_none() {
                    return args::refuse("probe:look: direction", "longer than 0", &direction);
                }
                let look = p.voxels(lua)?.look(origin, way, max_m as f32);
                let far_m = f64::from(look.distance_m.unwrap_or(max_m as f32));
                p.host.budget.charge((far_m * INTERRUPTS_PER_M) as u64);
                let [r, g, b] = look.colour.to_array();
                Ok((look.distance_m, r, g, b, look.seen))
            },
        );
        class.method("ground", |lua, p, position: Value| {
            let at = args::vector(&position, "probe:ground: position", "metres")?;
            Ok(p.voxels(lua)?.ground(at))
        });
        class.method(
            "clearance",
            |lua, p, (position, low, high): (Value, Value, Value)| {
                let foot = args::vector(&position, "probe:clearance: position", "metres")?;
                let height = |value: &Value, name: &str, default: f64| match value {
                    Value::Nil => Ok(default),
                    value => args::within(
                        value,
                        &format!("probe:clearance: {name}"),
                        "metres",
                        -100.0,
                        100.0,
                    ),
                };
                let low_m = height(&low, "low", BODY_M[0])?;
                let high_m = height(&high, "high", BODY_M[1])?;
                p.host.budget.charge(INTERRUPTS_CLEARANCE);
                Ok(p.voxels(lua)?.clearance(foot, low_m as f32, high_m as f32))
            },
        );
        class.operator(MetaMethod::ToString, |lua, p, ()| {
            let voxels = p.voxels(lua)?;
            Ok(format!(
                "probe ({} cells of {} m, walls up to {CLEARANCE_M_MAX} m off)",
                voxels.count(),
                voxels.cell_m()
            ))
        });
        class.finish();
    }
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<Probe>()?;
    Ok(())
}
