//! What a scan is like inside: where matter is, where the floor is, where one can walk.
//!
//! Everything is found from placed splats alone and answered in world space: y up, metres. It reads
//! no file, asks no clock and knows no script; who needs progress hands in a function. The same
//! splats give the same answers on any number of threads.

pub mod collision;
mod fill;
pub mod floor;
pub mod looks;
pub mod rooms;
pub mod route;
mod up;
mod upright;
pub mod voxels;
pub mod walls;

pub use collision::Collision;
pub use floor::Floor;
pub use looks::Proposal;
pub use rooms::Rooms;
pub use route::{Route, Trouble};
pub use voxels::{Look, Matter, Placed, Voxels};
pub use walls::{Kind, WALLS_EVERY_M, Walls};

use crate::motion::Spline;
use crate::scene::Placement;
use glam::{Quat, Vec3};
use rayon::prelude::*;

/// Room that is kept to each side of a way where nobody asks for another, metres.
pub const CLEARANCE_M: f32 = 0.3;
/// Least and most that can be asked for, metres.
pub const CLEARANCE_M_RANGE: [f64; 2] = [0.1, 1.5];
/// Height of the eyes where nobody asks for another, metres: that of the walker.
pub const EYE_M: f32 = 1.58;
/// Heights of the floor are given this often along a way, metres.
pub const FLOOR_EVERY_M: f64 = 0.25;
/// Cells over this area become larger, m²: 16 million columns of cells are enough.
const AREA_M2_MAX: f32 = 40_000.0;
/// Ceilings are looked for over so many places of the floor, and no higher, metres.
const CEILINGS_MAX: usize = 4_000;
const CEILING_M_MAX: f32 = 100.0;

/// What a caller may ask for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The direction that is up, world space, instead of the one that is found.
    pub up: Option<Vec3>,
    /// Points that the way goes through, in the axes of the levelled scan: none for a way that is
    /// found, one for where it begins.
    pub through: Vec<Vec3>,
    /// Room to each side, metres.
    pub clearance_m: f32,
    /// Height of the eyes, metres.
    pub eye_m: f32,
    /// What is solid, where the scan came with it; world from loaded, and how many metres one unit of it
    /// is.
    pub collision: Option<(Collision, Quat, f32)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            up: None,
            through: Vec::new(),
            clearance_m: CLEARANCE_M,
            eye_m: EYE_M,
            collision: None,
        }
    }
}

/// What was found. All places are in the axes of the levelled scan.
#[derive(Debug)]
pub struct Survey {
    /// Up before levelling, unit length.
    pub up: Vec3,
    /// Levelled from given: what the scan is turned by.
    pub rotation: Quat,
    /// Cells of the levelled scan.
    pub voxels: Voxels,
    /// Where one can stand.
    pub floor: Floor,
    /// Its rooms.
    pub rooms: Rooms,
    /// The way.
    pub route: Route,
    /// Heights of the floor every [`FLOOR_EVERY_M`] of the way from its start, metres.
    pub heights_m: Vec<f32>,
    /// What is to the left and to the right of the way.
    pub walls: Walls,
    /// What is worth a look.
    pub looks: Vec<Proposal>,
    /// How high ceilings are over most of the floor, metres; `None` under the open sky. Much more than a storey
    /// is a hall, or a scan in another unit.
    pub ceiling_m: Option<f32>,
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No splat can be seen.
    #[error("there are no splats to survey")]
    Empty,
    /// Nothing is flat.
    #[error("no direction is up: nothing in the scan is flat; say which way is up with --up")]
    NoUp,
    /// No floor.
    #[error(
        "no floor of a square metre with room for a person above it was found; is another direction \
         up (--up), or is the scan not in metres (--scale)?"
    )]
    NoFloor,
    /// No way.
    #[error(transparent)]
    NoRoute(#[from] Trouble),
}

/// Stages of a survey, for progress.
pub const STAGES: [&str; 5] = ["up", "voxels", "floor", "route", "looks"];

/// Surveys placed splats. `progress` is told the stage, an index of [`STAGES`], and how far it is, 0 to 1.
///
/// # Errors
/// See [`Failure`].
pub fn survey(
    draws: &[Placed<'_>],
    options: &Options,
    progress: &(dyn Fn(usize, f32) + Sync),
) -> Result<Survey, Failure> {
    progress(0, 0.0);
    if draws.iter().all(|d| d.splats.is_empty()) {
        return Err(Failure::Empty);
    }
    let up = match options.up.and_then(Vec3::try_normalize) {
        Some(up) => up,
        None => up::find(draws).ok_or(Failure::NoUp)?,
    };
    let rotation = up::levelling(up);
    let level: Vec<Placed<'_>> = draws.iter().map(|d| turned(d, rotation)).collect();
    progress(1, 0.0);
    let mut voxels = Voxels::build(&level, cell_for(&level), &|share| progress(1, share));
    if let Some((collision, turn, scale)) = &options.collision {
        collision.apply(&mut voxels, rotation * *turn, *scale);
    }
    progress(2, 0.0);
    let mut floor = Floor::find(&voxels).ok_or(Failure::NoFloor)?;
    progress(2, 0.6);
    let rooms = Rooms::find(&floor);
    floor.level(rooms.rooms.len(), &rooms.of_spot, &voxels);
    progress(3, 0.0);
    let route = route::find(
        &floor,
        &rooms,
        &voxels,
        &options.through,
        options.clearance_m,
    )?;
    progress(4, 0.0);
    let points: Vec<_> = route.points.iter().map(|p| p.as_dvec3()).collect();
    let curve = Spline::new(&points, false).map_err(|_| Failure::NoFloor)?;
    let looks = looks::propose(&voxels, &floor, &curve, options.eye_m);
    let heights_m = along(&curve, FLOOR_EVERY_M)
        .map(|u| {
            let p = curve.at(u).as_vec3();
            floor.height(p).unwrap_or(p.y)
        })
        .collect();
    let ceiling_m = ceiling_m(&voxels, &floor);
    let walls = Walls::find(&level, &voxels, &floor, &curve);
    Ok(Survey {
        up,
        rotation,
        voxels,
        floor,
        rooms,
        route,
        heights_m,
        walls,
        looks,
        ceiling_m,
    })
}

/// The middle one of the heights of ceilings, where most of the floor has one.
fn ceiling_m(voxels: &Voxels, floor: &Floor) -> Option<f32> {
    let count = floor.spots().len();
    let every = count.div_ceil(CEILINGS_MAX).max(1);
    let asked: Vec<u32> = (0..count as u32).step_by(every).collect();
    let mut met: Vec<f32> = asked
        .par_iter()
        .filter_map(|spot| {
            let eye = floor.place(*spot) + Vec3::Y * EYE_M;
            let far_m = voxels.look(eye, Vec3::Y, CEILING_M_MAX).distance_m?;
            Some(EYE_M + far_m)
        })
        .collect();
    if met.len() * 2 < asked.len() {
        return None;
    }
    let middle = met.len() / 2;
    Some(*met.select_nth_unstable_by(middle, f32::total_cmp).1)
}

/// Shares of a curve's length, `every_m` metres apart; the last may be a little beyond its end.
fn along(curve: &Spline, every_m: f64) -> impl Iterator<Item = f64> {
    let length_m = curve.length();
    let count = (length_m / every_m).ceil() as usize;
    (0..=count).map(move |i| i as f64 * every_m / length_m)
}

/// A draw turned about the origin.
fn turned<'a>(draw: &Placed<'a>, rotation: Quat) -> Placed<'a> {
    let placement = Placement {
        translation: rotation * draw.placement.translation,
        rotation: (rotation * draw.placement.rotation).normalize(),
        ..draw.placement
    };
    Placed { placement, ..*draw }
}

/// Cells that make a grid of this scan not too large.
fn cell_for(draws: &[Placed<'_>]) -> f32 {
    let mut cell_m = voxels::CELL_M;
    let (mut low, mut high) = (Vec3::INFINITY, Vec3::NEG_INFINITY);
    for draw in draws {
        let Some(bounds) = draw.splats.percentile_bounds(0.005) else {
            continue;
        };
        for i in 0..8 {
            let pick = |bit: i32, a: f32, b: f32| if i & bit == 0 { a } else { b };
            let corner = Vec3::new(
                pick(1, bounds.min.x, bounds.max.x),
                pick(2, bounds.min.y, bounds.max.y),
                pick(4, bounds.min.z, bounds.max.z),
            );
            let p = draw.placement.apply(corner);
            (low, high) = (low.min(p), high.max(p));
        }
    }
    let size = (high - low).max(Vec3::ZERO);
    let area_m2 = size.x * size.z;
    while area_m2.is_finite() && area_m2 * (voxels::CELL_M / cell_m).powi(2) > AREA_M2_MAX {
        cell_m *= 2.0;
    }
    cell_m
}
