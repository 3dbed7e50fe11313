//! Which way is up in a scan, from its splats alone.
//!
//! Floors, ceilings and streets are the largest level planes that people scan, so up is the direction
//! along which most surface lies in few layers; it is the way from the layer that things stand on.
//! It turns nothing and finds no floor.

use super::voxels::Placed;
use crate::scene::sh::SH_C0;
use glam::{IVec2, Mat3, Quat, Vec2, Vec3};
use rayon::prelude::*;
use std::collections::HashMap;

/// Splats that are looked at: a hundred thousand show a plane as well as ten million.
const SAMPLES_MAX: usize = 120_000;
/// Directions that are tried besides the axes.
const DIRECTIONS: usize = 400;
/// Splats whose normals are nearer to a direction than this count for it (cosine of 14 degrees).
const NEAR_COS: f32 = 0.97;
/// A splat counts as no wider than this (standard deviation), metres: one of a square metre would outdo a
/// thousand of a floor.
const WIDE_M: f32 = 0.1;
/// Thickness of a layer, metres.
const LAYER_M: f32 = 0.05;
/// What is this near to a layer belongs to it, metres.
const MARGIN_M: f32 = 0.2;
/// The layer of the other half with this share of the strongest one is a ceiling or a floor to it.
const STRONG: f32 = 0.25;
/// Where tables, chairs and beds end above a floor, metres.
const TABLE_M: [f32; 2] = [0.3, 1.1];
/// What a difference of brightness says of up and down.
const LIGHT: f32 = 2.0;
/// What the axes of files say of it: a file may have been y up and read as y down, but z is up, which
/// is -z of a file that was read as y down.
const USUAL_Y: f32 = 0.5;
const USUAL_Z: f32 = 0.8;
/// How much better another direction must be than the file's own up, or that of a file with z up.
const USUAL_AXES: [(Vec3, f32); 2] = [(Vec3::Y, 1.4), (Vec3::Z, 1.3)];
/// Directions that are turned to their planes and compared, and how far apart they are (cosine of 20
/// degrees).
const TRIED: usize = 6;
const APART_COS: f32 = 0.94;
/// How much more surface a tilted direction has to gather than the one that it began with.
const LEVEL_BONUS: f32 = 1.05;
/// A floor that is tilted further against an axis is no rounding of it, degrees.
const TILT_DEG_MAX: f32 = 12.0;

/// Walls are what has no more of up in its normals than this, in turn.
const PLUMB_SIN: [f32; 4] = [0.17, 0.12, 0.07, 0.05];
/// Least share of walls of all surface that say what is upright, and how much they have to stand in two
/// directions (1/4 is evenly).
const WALLS_MIN: f32 = 0.1;
const WALLS_SPREAD_MIN: f32 = 0.02;
/// The ground slopes by so much before walls are believed instead of it, degrees.
const SLOPE_DEG: [f32; 2] = [0.75, 9.0];

/// Squares of the plan on which ground is looked for, metres.
const SQUARE_M: f32 = 0.25;
/// What is further out than this is no ground, in squares.
const FAR_SQUARES: f32 = 1e6;
/// Ground has nothing between these heights over it, metres, and a foot climbs so much to the next square.
const FREE_M: [f32; 2] = [0.35, 1.75];
const CLIMB_M: f32 = 0.3;
/// What is next to ground and bounds it is between these heights over it, metres, and no further, in squares.
const BESIDE_M: [f32; 2] = [0.4, 2.2];
const BESIDE: i32 = 2;
/// What ground counts that nothing bounds: the outside of a wall that lies is wide too, but nothing is above it. Of
/// the share that is bounded the square counts.
const OPEN: f32 = 0.05;
/// Another direction is up only where so many times as much ground lies across it.
const MORE_GROUND: f32 = 2.0;
/// Which side of it is up is told by this many times as much ground: where its layers are the strongest of all, and
/// where they are not, so that nothing else was told of it.
const FAR_MORE_GROUND: f32 = 3.0;
const SOME_MORE_GROUND: f32 = 1.25;

/// A splat as a piece of surface.
struct Facet {
    place: Vec3,
    normal: Vec3,
    /// Its two longer axes, one standard deviation each, metres.
    axes: [Vec3; 2],
    /// Opacity times area, m².
    weight: f32,
    /// Brightness, 0 to 1.
    light: f32,
}

/// The direction that is up (unit length), or `None` where nothing is flat.
pub(super) fn find(draws: &[Placed<'_>]) -> Option<Vec3> {
    let facets = facets(draws);
    if facets.is_empty() {
        return None;
    }
    let axes = [Vec3::Y, Vec3::Z, Vec3::X];
    let around = (0..DIRECTIONS).map(|i| {
        // A Fibonacci lattice over half a sphere (González 2010).
        let y = (i as f32 + 0.5) / DIRECTIONS as f32;
        let turn = i as f32 * 2.399_963;
        let flat = (1.0 - y * y).sqrt();
        Vec3::new(flat * turn.cos(), y, flat * turn.sin())
    });
    let candidates: Vec<Vec3> = axes.into_iter().chain(around).collect();
    let mut scores: Vec<f32> = candidates
        .par_iter()
        .map(|direction| layers(&facets, *direction).strength())
        .collect();
    // A tilted floor is smeared over many layers until its tilt is known, so the best few are turned to
    // their planes before they are compared.
    let mut tried: Vec<(f32, Vec3)> = Vec::with_capacity(TRIED);
    for _ in 0..TRIED {
        let first = (0..candidates.len())
            // Of equals the first.
            .max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a)))?;
        if scores[first] <= 0.0 {
            break;
        }
        let axis = refined(&facets, candidates[first]);
        let usual = USUAL_AXES
            .iter()
            .filter(|(along, _)| axis.dot(*along).abs() > NEAR_COS)
            .map(|(_, bonus)| *bonus)
            .fold(1.0, f32::max);
        let strength = usual * layers(&facets, axis).strength();
        tried.push((strength, axis));
        for (score, candidate) in scores.iter_mut().zip(&candidates) {
            if candidate.dot(candidates[first]).abs() > APART_COS {
                *score = 0.0;
            }
        }
    }
    // Of equals the first: the sort is stable.
    tried.sort_by(|a, b| b.0.total_cmp(&a.0));
    let upward = |axis: Vec3| {
        // What files are: y up or y down as they say, or z up. They tell more than the scan where that is
        // the same from both sides.
        let usual = (USUAL_Y * axis.y).clamp(-USUAL_Y, USUAL_Y) - USUAL_Z * axis.z;
        if layers(&facets, axis).lean() + usual >= 0.0 {
            axis
        } else {
            -axis
        }
    };
    // Seen from below ground is bounded by little: where one side has far more of it, that is up.
    let sided = |axis: Vec3, times: f32| {
        let (over_m2, under_m2) = (ground_m2(&facets, axis), ground_m2(&facets, -axis));
        let up = if over_m2 > times * under_m2 {
            axis
        } else if under_m2 > times * over_m2 {
            -axis
        } else {
            upward(axis)
        };
        (over_m2.max(under_m2), up)
    };
    let (mut most_m2, mut up) = sided(tried.first()?.1, FAR_MORE_GROUND);
    // Between high walls under the open sky there is more wall than ground. Where one can walk tells them
    // apart.
    let needed_m2 = MORE_GROUND * most_m2;
    for (_, axis) in &tried[1..] {
        let (found_m2, found) = sided(*axis, SOME_MORE_GROUND);
        if found_m2 > needed_m2.max(most_m2) {
            (most_m2, up) = (found_m2, found);
        }
    }
    Some(plumb(&facets, up).unwrap_or(up))
}

/// A rotation that makes `up` +y, the shortest one.
pub(super) fn levelling(up: Vec3) -> Quat {
    Quat::from_rotation_arc(up.normalize_or(Vec3::Y), Vec3::Y)
}

fn facets(draws: &[Placed<'_>]) -> Vec<Facet> {
    let count: usize = draws.iter().map(|d| d.splats.len()).sum();
    let stride = count.div_ceil(SAMPLES_MAX).max(1);
    let mut facets = Vec::new();
    for draw in draws {
        let splats = draw.splats;
        for i in (0..splats.len()).step_by(stride) {
            let opacity = splats.opacities[i] * draw.opacity;
            if !splats.is_drawable(i) || opacity < 0.2 {
                continue;
            }
            let sigma = splats.log_scales[i].map(f32::exp) * draw.placement.scale;
            let thin = sigma.min_element();
            let wide = sigma.max_element();
            let middle = sigma.element_sum() - thin - wide;
            // A needle or a ball has no normal; a huge one is no surface.
            if thin > 0.5 * middle || wide > 1.0 || middle <= 0.0 {
                continue;
            }
            let turn = Mat3::from_quat(draw.placement.rotation * splats.rotations[i].normalize());
            let thinnest = sigma.min_position();
            let normal = turn.col(thinnest);
            let axis = |step: usize| turn.col((thinnest + step) % 3) * sigma[(thinnest + step) % 3];
            facets.push(Facet {
                place: draw.placement.apply(splats.means[i]),
                normal,
                axes: [axis(1), axis(2)],
                weight: opacity * middle.min(WIDE_M) * wide.min(WIDE_M),
                light: (0.5 + SH_C0 * splats.dc[i].element_sum() / 3.0).clamp(0.0, 1.0),
            });
        }
    }
    facets
}

/// Surface that lies across a direction, by its place along it.
struct Layers {
    /// Square metres a layer (times what sampling left out), lowest first, after `low_m`.
    across: Vec<f32>,
    /// All surface, whichever way it faces.
    all: Vec<f32>,
    /// The same times its brightness.
    light: Vec<f32>,
}

fn layers(facets: &[Facet], direction: Vec3) -> Layers {
    let mut places: Vec<f32> = facets.iter().map(|f| f.place.dot(direction)).collect();
    let sorted = &mut places.clone();
    let last = sorted.len() - 1;
    // Floaters far off would make the table long and say nothing.
    let low = *sorted.select_nth_unstable_by(last / 200, f32::total_cmp).1 - 1.0;
    let high = *sorted
        .select_nth_unstable_by(last - last / 200, f32::total_cmp)
        .1
        + 1.0;
    let count = (((high - low) / LAYER_M).ceil() as usize).clamp(1, 1 << 16);
    let mut found = Layers {
        across: vec![0.0; count],
        all: vec![0.0; count],
        light: vec![0.0; count],
    };
    for (place, facet) in places.drain(..).zip(facets) {
        if place < low || place >= high {
            continue;
        }
        let i = (((place - low) / LAYER_M) as usize).min(count - 1);
        found.all[i] += facet.weight;
        found.light[i] += facet.weight * facet.light;
        if facet.normal.dot(direction).abs() > NEAR_COS {
            found.across[i] += facet.weight;
        }
    }
    found
}

impl Layers {
    /// How much surface lies in few layers: the root of the sum of squares, over neighbours too, so
    /// that a layer on the border of two entries counts whole.
    fn strength(&self) -> f32 {
        let pairs = self.across.windows(2).map(|w| (w[0] + w[1]).powi(2));
        pairs.sum::<f32>().sqrt()
    }

    /// How much rather things stand on the low side than hang from it: above 0 where the direction is
    /// up. The logarithm of a ratio.
    fn lean(&self) -> f32 {
        let count = self.across.len();
        let margin = (MARGIN_M / LAYER_M) as usize;
        let strongest = |from: usize, to: usize| {
            (from..to).max_by(|a, b| self.across[*a].total_cmp(&self.across[*b]).then(b.cmp(a)))
        };
        let sum = |values: &[f32], from: usize, to: usize| -> f32 {
            let to = to.min(count);
            values[from.min(to)..to].iter().sum::<f32>()
        };
        let (Some(low), Some(high)) = (strongest(0, count / 2), strongest(count / 2, count)) else {
            return 0.0;
        };
        let (weak, strong) = if self.across[low] < self.across[high] {
            (self.across[low], high)
        } else {
            (self.across[high], low)
        };
        let near = |metres: f32| (metres / LAYER_M) as usize;
        let is_room = weak > STRONG * self.across[strong] && high - low > 2 * near(TABLE_M[1]);
        let (below, above) = if is_room {
            // Floor and ceiling: tables and beds stand on the one, little that is level hangs under
            // the other.
            (
                sum(
                    &self.across,
                    high - near(TABLE_M[1]),
                    high - near(TABLE_M[0]),
                ),
                sum(&self.across, low + near(TABLE_M[0]), low + near(TABLE_M[1])),
            )
        } else {
            // Ground: everything is above it.
            (
                sum(&self.all, 0, strong.saturating_sub(margin)),
                sum(&self.all, strong + margin, count),
            )
        };
        let least = 0.01 * sum(&self.across, 0, count) + f32::MIN_POSITIVE;
        let clutter = ((above + least) / (below + least)).ln();
        // Ceilings and skies are brighter than floors.
        let light = |from: usize, to: usize| {
            sum(&self.light, from, to) / sum(&self.all, from, to).max(f32::MIN_POSITIVE)
        };
        clutter + LIGHT * (light(count / 2, count) - light(0, count / 2))
    }
}

/// The normal of the strongest layers across `direction`, where they are tilted a little.
fn refined(facets: &[Facet], direction: Vec3) -> Vec3 {
    let mut axis = direction;
    for near_cos in [0.95_f32, 0.98, 0.99] {
        // The mean of normals is good to a degree; the plane itself below is better.
        let mut sum = Vec3::ZERO;
        for facet in facets {
            let along = facet.normal.dot(axis);
            if along.abs() > near_cos {
                sum += facet.normal * (along.signum() * facet.weight);
            }
        }
        let Some(mean) = sum.try_normalize() else {
            return direction;
        };
        axis = mean;
    }
    let mut best = direction;
    let mut strongest = LEVEL_BONUS * layers(facets, direction).strength();
    for round in 0..8 {
        if axis.angle_between(direction).to_degrees() > TILT_DEG_MAX {
            break;
        }
        // Rooms have floors and ceilings at several heights, so a fit may be of none of them: it has to
        // gather more surface in its layers.
        let strength = layers(facets, axis).strength();
        if strength > strongest {
            (best, strongest) = (axis, strength);
        }
        if round == 0 {
            // Beside the mean of normals, the direction itself may be near a better plane.
            axis = direction;
        }
        axis = plane(facets, axis).unwrap_or(axis);
    }
    best
}

/// How much ground there would be if `up` were up, m²: level, with room for a body over it, connected, and bounded by
/// what stands beside it.
fn ground_m2(facets: &[Facet], up: Vec3) -> f32 {
    let u = up.any_orthonormal_vector();
    let v = up.cross(u);
    // Heights of what is in each square, and whether it is level.
    let mut columns: HashMap<IVec2, Vec<(f32, bool)>> = HashMap::new();
    for facet in facets {
        let is_level = facet.normal.dot(up).abs() > NEAR_COS;
        let counts = facet
            .axes
            .map(|axis| (axis.length().min(1.0) / SQUARE_M).ceil() as i32);
        for i in -counts[0]..=counts[0] {
            for j in -counts[1]..=counts[1] {
                let p = facet.place
                    + facet.axes[0] * (i as f32 / counts[0].max(1) as f32)
                    + facet.axes[1] * (j as f32 / counts[1].max(1) as f32);
                let square = (Vec2::new(p.dot(u), p.dot(v)) / SQUARE_M).floor();
                if square.abs().max_element() > FAR_SQUARES {
                    continue;
                }
                let square = square.as_ivec2();
                columns
                    .entry(square)
                    .or_default()
                    .push((p.dot(up), is_level));
            }
        }
    }
    // Where one can stand: a square, and a height in it.
    let mut squares: Vec<IVec2> = columns.keys().copied().collect();
    squares.sort_unstable_by_key(|s| (s.x, s.y));
    let mut spots: Vec<(IVec2, f32)> = Vec::new();
    for square in squares {
        let Some(column) = columns.get_mut(&square) else {
            continue;
        };
        column.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut last = f32::NEG_INFINITY;
        for (height, is_level) in column.iter() {
            if *is_level && *height > last + FREE_M[0] && !has(column, *height, FREE_M) {
                spots.push((square, *height));
                last = *height;
            }
        }
    }
    // By squares, and in each from the lowest up.
    let number = |square: IVec2, height: f32| {
        let lowest = (square.x, square.y, height - CLIMB_M);
        let i = spots.partition_point(|s| (s.0.x, s.0.y, s.1) < lowest);
        spots
            .get(i)
            .is_some_and(|s| s.0 == square && s.1 <= height + CLIMB_M)
            .then_some(i)
    };
    let is_bounded = |square: IVec2, height: f32, way: IVec2| {
        (1..=BESIDE).any(|k| {
            let column = columns.get(&(square + way * k));
            column.is_some_and(|column| has(column, height, BESIDE_M))
        })
    };
    let mut seen = vec![false; spots.len()];
    let mut most_m2 = 0.0_f32;
    for start in 0..spots.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut region = vec![start];
        let (mut edges, mut bounded) = (0_u32, 0_u32);
        let mut next = 0;
        while next < region.len() {
            let (square, height) = spots[region[next]];
            next += 1;
            for way in [IVec2::X, IVec2::NEG_X, IVec2::Y, IVec2::NEG_Y] {
                if let Some(i) = number(square + way, height) {
                    if !seen[i] {
                        seen[i] = true;
                        region.push(i);
                    }
                } else {
                    edges += 1;
                    bounded += u32::from(is_bounded(square, height, way));
                }
            }
        }
        let share = bounded as f32 / edges.max(1) as f32;
        let area_m2 = region.len() as f32 * SQUARE_M * SQUARE_M;
        most_m2 = most_m2.max(area_m2 * (OPEN + share * share));
    }
    most_m2
}

/// Whether a column, lowest first, has something so far over a height, metres.
fn has(column: &[(f32, bool)], height: f32, above_m: [f32; 2]) -> bool {
    let from = column.partition_point(|(h, _)| *h < height + above_m[0]);
    column
        .get(from)
        .is_some_and(|(h, _)| *h < height + above_m[1])
}

/// The direction along all walls, where they stand in more than one direction and say something else than the
/// ground: a square may slope, houses do not.
fn plumb(facets: &[Facet], axis: Vec3) -> Option<Vec3> {
    let mut found = axis;
    for near_sin in PLUMB_SIN {
        // Up is what the normals of walls have least of: the weakest direction of their scatter, found
        // beside the one that is known.
        let u = found.any_orthonormal_vector();
        let v = found.cross(u);
        let (mut uu, mut uv, mut vv, mut nu, mut nv, mut all) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        for facet in facets {
            let tilt = facet.normal.dot(found);
            if tilt.abs() > near_sin {
                continue;
            }
            let (a, b) = (facet.normal.dot(u), facet.normal.dot(v));
            let w = facet.weight;
            (uu, uv, vv) = (uu + w * a * a, uv + w * a * b, vv + w * b * b);
            (nu, nv) = (nu + w * tilt * a, nv + w * tilt * b);
            all += w;
        }
        let whole: f32 = facets.iter().map(|facet| facet.weight).sum();
        let determinant = uu * vv - uv * uv;
        // Walls of one direction say nothing of up across them.
        let spread = determinant / (all * all).max(f32::MIN_POSITIVE);
        if all < WALLS_MIN * whole || spread < WALLS_SPREAD_MIN {
            return None;
        }
        // Least squares of (axis + x u + y v) dot normal = 0.
        let x = (uv * nv - vv * nu) / determinant;
        let y = (uv * nu - uu * nv) / determinant;
        found = (found + u * x + v * y).normalize();
    }
    let off_deg = found.angle_between(axis).to_degrees();
    (SLOPE_DEG[0]..SLOPE_DEG[1])
        .contains(&off_deg)
        .then_some(found)
}

/// The normal of the plane through the strongest layer across `axis`.
fn plane(facets: &[Facet], axis: Vec3) -> Option<Vec3> {
    let found = layers(facets, axis);
    let strongest =
        (0..found.across.len()).max_by(|a, b| found.across[*a].total_cmp(&found.across[*b]))?;
    let mut places: Vec<f32> = facets.iter().map(|f| f.place.dot(axis)).collect();
    let last = places.len() - 1;
    let low = *places.select_nth_unstable_by(last / 200, f32::total_cmp).1 - 1.0;
    let height = low + (strongest as f32 + 0.5) * LAYER_M;
    // Least squares of height over the two directions across, by normal equations.
    let u = axis.any_orthonormal_vector();
    let v = axis.cross(u);
    let (mut m, mut r) = (glam::DMat3::ZERO, glam::DVec3::ZERO);
    for facet in facets {
        let off = facet.place.dot(axis) - height;
        if off.abs() > 1.5 * LAYER_M || facet.normal.dot(axis).abs() < NEAR_COS {
            continue;
        }
        let w = f64::from(facet.weight);
        let row = glam::DVec3::new(
            f64::from(facet.place.dot(u)),
            f64::from(facet.place.dot(v)),
            1.0,
        );
        for i in 0..3 {
            *m.col_mut(i) += row * (row[i] * w);
        }
        r += row * (w * f64::from(off));
    }
    if m.determinant().abs() < 1e-12 {
        return None;
    }
    let slope = m.inverse() * r;
    let normal = axis - u * slope.x as f32 - v * slope.y as f32;
    normal.try_normalize()
}
