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
pub mod voxels;

pub use collision::Collision;
pub use floor::Floor;
pub use looks::Proposal;
pub use rooms::Rooms;
pub use route::{Route, Trouble};
pub use voxels::{Look, Matter, Placed, Voxels};

use crate::motion::Spline;
use crate::scene::Placement;
use glam::{Quat, Vec3};

/// Room that is kept to each side of a way where nobody asks for another, metres.
pub const CLEARANCE_M: f32 = 0.3;
/// Least and most that can be asked for, metres.
pub const CLEARANCE_M_RANGE: [f64; 2] = [0.1, 1.5];
/// Height of the eyes where nobody asks for another, metres: that of the walker.
pub const EYE_M: f32 = 1.58;
/// Heights of the floor are given this often along a way, metres.
pub const FLOOR_EVERY_M: f64 = 0.25;
/// Walls are given this often along a way, metres.
pub const WALLS_EVERY_M: f64 = 0.5;
/// Cells over this area become larger, m²: 16 million columns of cells are enough.
const AREA_M2_MAX: f32 = 40_000.0;
/// Heights above the floor at which a wall is looked for, metres.
const WALL_M: [f32; 7] = [0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7];
/// What is met at two heights at distances no further apart than this is upright, metres.
const WALL_FLAT_M: f32 = 0.03;
/// A wall goes on to both sides: so far and in such steps it is looked for along the way, metres.
const WALL_SIDE_M: f32 = 2.25;
const WALL_STEP_M: f32 = 0.15;
/// It is met so often on either side.
const WALL_HITS_MIN: usize = 3;
/// How far a door may lie behind it, or a thing before it, metres.
const WALL_DEEP_M: f32 = 0.6;
/// A wall that goes off from the way faster than this is another one.
const WALL_SLOPE: f32 = 0.5;
/// Furthest wall that is looked for, metres.
const WALL_FAR_M: f32 = 20.0;

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
    /// Distances of walls to the left and to the right every [`WALLS_EVERY_M`], metres; `None` where
    /// none is near.
    pub walls_m: Vec<[Option<f32>; 2]>,
    /// What is worth a look.
    pub looks: Vec<Proposal>,
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
    let walls_m = along(&curve, WALLS_EVERY_M)
        .map(|u| {
            let p = curve.at(u).as_vec3();
            let foot = Vec3::new(p.x, floor.height(p).unwrap_or(p.y), p.z);
            let tangent = curve.tangent(u).as_vec3();
            let ahead = Vec3::new(tangent.x, 0.0, tangent.z).normalize_or(Vec3::X);
            let left = Vec3::Y.cross(ahead);
            [left, -left].map(|way| wall(&voxels, foot, ahead, way))
        })
        .collect();
    Ok(Survey {
        up,
        rotation,
        voxels,
        floor,
        rooms,
        route,
        heights_m,
        walls_m,
        looks,
    })
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

/// Distance from an upright line over `foot` to the wall in the direction `way`, metres: the plane that goes
/// on to both sides along `ahead`. Doors and windows lie behind it, plants and pipes before it.
fn wall(voxels: &Voxels, foot: Vec3, ahead: Vec3, way: Vec3) -> Option<f32> {
    let own = upright(voxels, foot, way)?;
    let count = (WALL_SIDE_M / WALL_STEP_M) as i32;
    let met = |k: i32| {
        let along = k as f32 * WALL_STEP_M;
        upright(voxels, foot + ahead * along, way).map(|m| (along, m))
    };
    let before: Vec<(f32, f32)> = (-count..0).filter_map(met).collect();
    let behind: Vec<(f32, f32)> = (1..=count).filter_map(met).collect();
    let mut best: Option<(f32, f32, f32)> = None;
    for a in &before {
        for b in &behind {
            let slope = (b.1 - a.1) / (b.0 - a.0);
            let here = a.1 - slope * a.0;
            if slope.abs() > WALL_SLOPE || here < 0.0 || (here - own).abs() > WALL_DEEP_M {
                continue;
            }
            let on = |side: &[(f32, f32)]| {
                let off = |p: &&(f32, f32)| (here + slope * p.0 - p.1).abs() < WALL_FLAT_M * 0.5;
                side.iter().filter(off).count()
            };
            let (left, right) = (on(&before), on(&behind));
            if left.min(right) < WALL_HITS_MIN {
                continue;
            }
            // What a shoulder meets first counts for more.
            let nearer = if here < own - WALL_FLAT_M { 1.5 } else { 1.0 };
            let score = nearer * (left + right) as f32;
            if best.is_none_or(|(most, ..)| score > most) {
                best = Some((score, here, slope));
            }
        }
    }
    let Some((_, here, slope)) = best else {
        return Some(own);
    };
    // The mean of all that lies on it is better than two places.
    let off: Vec<f32> = before
        .iter()
        .chain(&behind)
        .map(|p| p.1 - here - slope * p.0)
        .filter(|off| off.abs() < WALL_FLAT_M * 0.5)
        .collect();
    Some(here + off.iter().sum::<f32>() / off.len().max(1) as f32)
}

/// Distance from an upright line over `foot` to what stands in a direction, metres: the nearest that is met
/// at two heights or more. Of where the splats are, not of cells.
fn upright(voxels: &Voxels, foot: Vec3, way: Vec3) -> Option<f32> {
    let mut found: Vec<f32> = WALL_M
        .iter()
        .filter_map(|height| {
            let origin = foot + Vec3::Y * *height;
            let met = voxels.look(origin, way, WALL_FAR_M).distance_m?;
            let cell = ((origin + way * met) / voxels.cell_m()).floor().as_ivec3();
            let (mut sum, mut places) = (0.0, Vec3::ZERO);
            for z in -1..=1 {
                for y in -1..=1 {
                    for x in -1..=1 {
                        let at = cell + glam::IVec3::new(x, y, z);
                        if let Some(matter) = voxels.matter_at(at) {
                            sum += matter.thickness;
                            places += matter.thickness * matter.place;
                        }
                    }
                }
            }
            (sum > 0.0).then(|| (places / sum - origin).dot(way))
        })
        .collect();
    // A thing at one height is no wall.
    if found.len() < WALL_M.len().div_ceil(2) {
        return None;
    }
    found.sort_by(f32::total_cmp);
    let first = found.windows(2).position(|w| w[1] - w[0] < WALL_FLAT_M);
    // Nothing upright, such as a hedge: the middle of it.
    let Some(first) = first else {
        return Some(found[found.len() / 2]);
    };
    let same = &found[first..];
    let count = same
        .iter()
        .take_while(|m| **m - same[0] < WALL_FLAT_M)
        .count();
    Some(same[..count].iter().sum::<f32>() / count as f32)
}
