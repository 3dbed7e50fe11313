//! Pieces of wall, made exact by the centres of the splats that lie on them.
//!
//! Rays see a wall only where nothing stands before it, and cells are centimetres wide; centres of splats
//! lie on the surface itself. So a piece that rays have found is laid where most centres are, goes on
//! behind what hides it, and ends where its splats end. Of two planes a finger apart, such as a wall and
//! a board on it, that with more face is the wall. It finds no piece of its own.

use super::voxels::Placed;
use super::walls::{GAP_M, HEIGHT_M, HEIGHTS, HEIGHTS_MIN, PART_M, Piece};
use glam::{IVec2, Mat3, Vec2, Vec3};
use rayon::prelude::*;
use std::collections::HashMap;

/// Centres are kept in squares of this edge on the plan, metres.
const SQUARE_M: f32 = 0.25;
/// So much of what is beyond the ends of a piece is looked at, metres.
const BEYOND_M: f32 = 2.0;
/// A line is moved by no more at either end, metres, and by these steps.
const MOVED_M: f32 = 0.025;
const STEP_M: f32 = 0.0025;
/// What is no further from a line than this counts for it, metres.
const NEAR_M: f32 = 0.006;
/// Another line has to gather so much more.
const BETTER: f32 = 1.05;
/// What is this far off to both sides is beside a piece, metres: where there is as much of it as on the piece
/// it is a cloud and no wall.
const BESIDE_M: [f32; 2] = [0.03, 0.05];
/// A splat on a wall faces across it by at least this much (cosine of 37 degrees).
const FACING_COS: f32 = 0.8;
/// Splats more transparent or wider than this (standard deviation, metres) tell little of where a wall is.
const OPACITY_MIN: f32 = 0.1;
const WIDE_M: f32 = 0.5;
/// An end lies so much before or behind where it was, metres, and has so many splats before it.
const END_M: f32 = 0.5;
const END_SPLATS: usize = 12;

/// A surface that is covered has its splats some 1.4 standard deviations apart: it ends half of that behind the
/// centres of the last ones.
const REACH_SIGMA: f32 = 0.7;

/// The centre of a splat.
#[derive(Clone, Copy)]
struct Centre {
    place: Vec3,
    /// Its covariance on the plan: x with x, z with z, x with z, m².
    spread: [f32; 3],
    /// Which way it faces on the plan; short where it faces up, none where it is as thick as wide.
    facing: Option<Vec2>,
}

/// Centres of splats about pieces of wall.
pub(super) struct Centres {
    /// First and one after the last by squares of the plan.
    squares: HashMap<IVec2, (usize, usize)>,
    all: Vec<Centre>,
}

fn square(p: Vec2) -> IVec2 {
    (p / SQUARE_M).floor().as_ivec2()
}

/// Squares about the line of a piece, ends included.
fn squares_about(piece: &Piece) -> Vec<IVec2> {
    let along = (piece.to - piece.from).normalize_or_zero();
    let length_m = piece.length_m() + 2.0 * BEYOND_M;
    let count = (length_m / (0.5 * SQUARE_M)).ceil() as usize;
    let mut found: Vec<IVec2> = (0..=count)
        .flat_map(|k| {
            let p = piece.from + along * (k as f32 * 0.5 * SQUARE_M - BEYOND_M);
            let reach = Vec2::splat(2.0 * BESIDE_M[1]);
            let (low, high) = (square(p - reach), square(p + reach));
            (low.y..=high.y).flat_map(move |y| (low.x..=high.x).map(move |x| IVec2::new(x, y)))
        })
        .collect();
    found.sort_unstable_by_key(|s| (s.x, s.y));
    found.dedup();
    found
}

impl Centres {
    /// Those about some pieces, in an order that is the same every time.
    pub(super) fn about(draws: &[Placed<'_>], pieces: &[Piece]) -> Self {
        let mut wanted: Vec<IVec2> = pieces.iter().flat_map(squares_about).collect();
        wanted.sort_unstable_by_key(|s| (s.x, s.y));
        wanted.dedup();
        let numbers: HashMap<IVec2, u32> = wanted.iter().copied().zip(0..).collect();
        let mut kept: Vec<(u32, Centre)> = Vec::new();
        for draw in draws {
            let splats = draw.splats;
            kept.par_extend((0..splats.len()).into_par_iter().filter_map(|i| {
                let place = draw.placement.apply(splats.means[i]);
                let number = *numbers.get(&square(Vec2::new(place.x, place.z)))?;
                if !splats.is_drawable(i) || splats.opacities[i] * draw.opacity < OPACITY_MIN {
                    return None;
                }
                let sigma = splats.log_scales[i].map(f32::exp) * draw.placement.scale;
                let (thin, wide) = (sigma.min_element(), sigma.max_element());
                if wide > WIDE_M {
                    return None;
                }
                let middle = sigma.element_sum() - thin - wide;
                let turn =
                    Mat3::from_quat(draw.placement.rotation * splats.rotations[i].normalize());
                let [x, z] = [turn.row(0) * sigma, turn.row(2) * sigma];
                let spread = [x.dot(x), z.dot(z), x.dot(z)];
                let facing = (thin < 0.5 * middle).then(|| {
                    let normal = turn.col(sigma.min_position());
                    Vec2::new(normal.x, normal.z)
                });
                let centre = Centre {
                    place,
                    spread,
                    facing,
                };
                Some((number, centre))
            }));
        }
        // Stable: rows stay in their order.
        kept.par_sort_by_key(|(number, _)| *number);
        let mut squares = HashMap::new();
        let mut from = 0;
        for group in kept.chunk_by(|a, b| a.0 == b.0) {
            squares.insert(wanted[group[0].0 as usize], (from, from + group.len()));
            from += group.len();
        }
        Self {
            squares,
            all: kept.into_iter().map(|(_, centre)| centre).collect(),
        }
    }
}

/// A centre beside a piece: metres along it and off it, and its height among those of rays.
struct Mark {
    along_m: f32,
    off_m: f32,
    height: u32,
    /// How far what it covers reaches along the piece, metres.
    reach_m: f32,
}

/// A place of a face: which part, which height, and how far off, in steps.
type FacePlace = (i32, u32, i32);
/// Where a line runs along a piece: how far off at its start and at its end, metres.
type Offs = [f32; 2];

/// A piece where its splats are; `foot_y` says how high the floor beside a place is.
pub(super) fn settled(
    piece: &Piece,
    centres: &Centres,
    foot_y: &dyn Fn(Vec2) -> f32,
    on_m: f32,
) -> Piece {
    let length_m = piece.length_m();
    let along = (piece.to - piece.from).normalize_or_zero();
    let normal = along.perp();
    let feet: Vec<f32> = (0..)
        .map(|k| k as f32 - BEYOND_M)
        .take_while(|s| *s < length_m + BEYOND_M + 1.0)
        .map(|s| foot_y(piece.from + along * s))
        .collect();
    let mut marks: Vec<Mark> = Vec::new();
    for at in squares_about(piece) {
        let Some((from, to)) = centres.squares.get(&at) else {
            continue;
        };
        for centre in &centres.all[*from..*to] {
            let d = Vec2::new(centre.place.x, centre.place.z) - piece.from;
            let (along_m, off_m) = (d.dot(along), d.dot(normal));
            if off_m.abs() > MOVED_M + BESIDE_M[1]
                || !(-BEYOND_M..length_m + BEYOND_M).contains(&along_m)
                || centre
                    .facing
                    .is_some_and(|f| f.dot(normal).abs() < FACING_COS)
            {
                continue;
            }
            let foot = feet[((along_m + BEYOND_M).round() as usize).min(feet.len() - 1)];
            let height = ((centre.place.y - foot - HEIGHT_M[0]) / HEIGHT_M[1]).round();
            if (0.0..HEIGHTS as f32).contains(&height) {
                let [xx, zz, xz] = centre.spread;
                let along_m2 =
                    along.x * along.x * xx + along.y * along.y * zz + 2.0 * along.x * along.y * xz;
                marks.push(Mark {
                    reach_m: REACH_SIGMA * along_m2.max(0.0).sqrt(),
                    along_m,
                    off_m,
                    height: height as u32,
                });
            }
        }
    }
    let offs = best_line(&marks, length_m);
    let off_at = |along_m: f32| offs[0] + (offs[1] - offs[0]) * along_m / length_m;
    for mark in &mut marks {
        mark.off_m -= off_at(mark.along_m);
    }
    let mut found = grown(piece, &marks, on_m);
    let at = |s: f32| piece.from + along * s + normal * off_at(s);
    (found.piece.from, found.piece.to) = (at(found.ends[0]), at(found.ends[1]));
    found.piece
}

/// The line near a piece on which most of its face lies.
fn best_line(marks: &[Mark], length_m: f32) -> Offs {
    // Each place of the face counts once, however many splats it has.
    let mut places: Vec<FacePlace> = marks
        .iter()
        .filter(|m| (0.0..length_m).contains(&m.along_m))
        .map(|m| {
            let part = (m.along_m / PART_M) as i32;
            (part, m.height, (m.off_m / STEP_M).round() as i32)
        })
        .collect();
    places.sort_unstable();
    places.dedup();
    let faces: Vec<(f32, &[FacePlace])> = places
        .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|face| ((face[0].0 as f32 + 0.5) * PART_M / length_m, face))
        .collect();
    let gathered = |offs: Offs| -> f32 {
        faces
            .iter()
            .map(|(share, face)| {
                let line = offs[0] + (offs[1] - offs[0]) * share;
                let far = face
                    .iter()
                    .map(|(_, _, off)| (*off as f32 * STEP_M - line).abs())
                    .fold(NEAR_M, f32::min);
                1.0 - far / NEAR_M
            })
            .sum()
    };
    let steps = (MOVED_M / STEP_M).round() as i32;
    let mut best = (BETTER * gathered([0.0; 2]), [0.0; 2]);
    for a in -steps..=steps {
        for b in -steps..=steps {
            let offs = [a as f32 * STEP_M, b as f32 * STEP_M];
            let sum = gathered(offs);
            if sum > best.0 {
                best = (sum, offs);
            }
        }
    }
    let mut offs = best.1;
    for _ in 0..4 {
        offs = refined(marks, length_m, offs).unwrap_or(offs);
    }
    offs
}

/// Least squares of what lies about a line: what is far off counts little (Tukey's biweight).
fn refined(marks: &[Mark], length_m: f32, offs: Offs) -> Option<Offs> {
    let (mut n, mut s, mut ss, mut o, mut os) = (0.0_f64, 0.0, 0.0, 0.0, 0.0);
    for mark in marks {
        if !(0.0..length_m).contains(&mark.along_m) {
            continue;
        }
        let share = mark.along_m / length_m;
        let far = mark.off_m - offs[0] - (offs[1] - offs[0]) * share;
        let w = (1.0 - (far / (1.5 * NEAR_M)).powi(2)).max(0.0);
        let (w, share, off) = (f64::from(w * w), f64::from(share), f64::from(mark.off_m));
        n += w;
        s += w * share;
        ss += w * share * share;
        o += w * off;
        os += w * off * share;
    }
    let determinant = n * ss - s * s;
    if determinant <= 1e-3 * n * n {
        return None;
    }
    let slope = (n * os - s * o) / determinant;
    let start = (o - slope * s) / n;
    let found = [start as f32, (start + slope) as f32];
    found
        .iter()
        .all(|off| off.abs() <= MOVED_M + NEAR_M)
        .then_some(found)
}

/// A piece and its ends, metres along what it was.
struct Grown {
    piece: Piece,
    ends: [f32; 2],
}

/// Lets a piece go on as far as splats on its line do, and ends it where they end.
fn grown(piece: &Piece, marks: &[Mark], on_m: f32) -> Grown {
    let length_m = piece.length_m();
    // Parts are counted from where those of the piece begin.
    let before = (BEYOND_M / PART_M) as usize;
    let count = piece.parts.len() + 2 * before;
    let part_of = |along_m: f32| ((along_m + piece.early_m) / PART_M + before as f32).floor();
    let (mut on, mut beside) = (vec![0_u32; count], vec![0_u32; count]);
    for mark in marks {
        let part = part_of(mark.along_m);
        if !(0.0..count as f32).contains(&part) {
            continue;
        }
        let off_m = mark.off_m.abs();
        if off_m < on_m {
            on[part as usize] |= 1 << mark.height;
        } else if (BESIDE_M[0]..BESIDE_M[1]).contains(&off_m) {
            beside[part as usize] |= 1 << mark.height;
        }
    }
    let known = before..before + piece.parts.len();
    let mut parts = vec![0_u32; count];
    for k in 0..count {
        if on[k].count_ones() > beside[k].count_ones() {
            parts[k] = on[k];
        }
        if known.contains(&k) {
            parts[k] |= piece.parts[k - before];
        }
    }
    let is_part = |k: usize| parts[k].count_ones() >= HEIGHTS_MIN;
    let gap = (GAP_M / PART_M).round() as usize;
    let inside: Vec<usize> = known.clone().filter(|k| is_part(*k)).collect();
    let (Some(mut first), Some(mut last)) = (inside.first().copied(), inside.last().copied())
    else {
        return Grown {
            piece: piece.clone(),
            ends: [0.0, length_m],
        };
    };
    while let Some(k) = (first.saturating_sub(gap)..first)
        .rev()
        .find(|k| is_part(*k))
    {
        first = k;
    }
    while let Some(k) = (last + 1..(last + 1 + gap).min(count)).find(|k| is_part(*k)) {
        last = k;
    }
    // What is left of a wall behind a gap is longer than the gap: less is a pipe before the next wall.
    let run = |from: usize, step: isize| {
        let is = |k: isize| (first as isize..=last as isize).contains(&k) && is_part(k as usize);
        let long = (0..).take_while(|n| is(from as isize + n * step)).count();
        let wide = (long as isize..)
            .take_while(|n| {
                let k = from as isize + n * step;
                (first as isize..=last as isize).contains(&k) && !is(k)
            })
            .count();
        (long, wide)
    };
    let (low, high) = (first, last);
    let (mut first, mut last) = (low, high);
    loop {
        let (long, wide) = run(first, 1);
        if wide > long && first + long + wide < last {
            first += long + wide;
        } else {
            break;
        }
    }
    loop {
        let (long, wide) = run(last, -1);
        if wide > long && last > first + long + wide {
            last -= long + wide;
        } else {
            break;
        }
    }
    let start_of = |k: usize| (k as f32 - before as f32) * PART_M - piece.early_m;
    let mut ends = [start_of(first), start_of(last + 1)];
    if known.start == first {
        ends[0] = ends[0].max(0.0);
    }
    if known.end == last + 1 {
        ends[1] = ends[1].min(length_m);
    }
    let near = || marks.iter().filter(|m| m.off_m.abs() < on_m);
    if ends[1] - ends[0] > END_M {
        let high = end_of(near().map(|m| m.along_m + m.reach_m - ends[1]));
        let low = end_of(near().map(|m| ends[0] - m.along_m + m.reach_m));
        ends = [ends[0] - low, ends[1] + high];
    }
    let first = (part_of(ends[0]).max(0.0) as usize).min(count - 1);
    let last = (part_of(ends[1]).max(0.0) as usize).min(count - 1);
    Grown {
        piece: Piece {
            from: piece.from,
            to: piece.to,
            parts: parts[first..=last].to_vec(),
            early_m: (ends[0] - start_of(first)).max(0.0),
        },
        ends,
    }
}

/// How far beyond 0 splats go on, by their places, metres: where it is most likely that a density changes to a
/// smaller one. 0 where too few tell.
fn end_of(places: impl Iterator<Item = f32>) -> f32 {
    let mut near: Vec<f32> = places.filter(|s| s.abs() < END_M).collect();
    if near.len() < END_SPLATS {
        return 0.0;
    }
    near.sort_unstable_by(f32::total_cmp);
    let whole = near.len() as f32;
    let likely = |count: f32, long_m: f32| count * (count.max(0.5) / long_m.max(1e-3)).ln();
    let mut best = (f32::NEG_INFINITY, 0.0);
    for (i, s) in near.iter().enumerate().skip(END_SPLATS / 2) {
        let (inside, outside) = (i as f32 + 1.0, whole - i as f32 - 1.0);
        let (long_m, left_m) = (s + END_M, END_M - s);
        // Fewer beyond than before it: an end, and no beginning.
        if outside * long_m > 0.5 * inside * left_m {
            continue;
        }
        let sum = likely(inside, long_m) + likely(outside, left_m);
        if sum > best.0 {
            best = (sum, *s);
        }
    }
    best.1
}
