//! A way over the floor: found or through given points, in the middle of free space, and smooth.
//!
//! What is checked is the curve that a walker takes, the centripetal Catmull-Rom through the points,
//! not the points. It turns no head and knows no time.

use super::floor::{BODY_M, Floor, OBSTACLE_OPACITY, STEP_OVER_M};
use super::rooms::Rooms;
use super::voxels::Voxels;
use crate::motion::Spline;
use glam::{DVec3, Vec3};
use std::collections::BinaryHeap;

/// With this much room a way is as good as it gets, metres.
const AT_EASE_M: f32 = 1.2;
/// How much longer a way may be to have room: cost of a metre without any.
const TIGHT_COST: f32 = 6.0;
/// Distance of waypoints, metres, most and least.
const APART_M: [f64; 2] = [1.4, 0.2];
/// The curve is checked this often, metres.
const CHECK_M: f64 = 0.02;
/// Rounds of mending a curve that comes too near to something.
const MENDS_MAX: usize = 24;
/// Times that a way is planned.
const PLANS_MAX: usize = 12;
/// A way that is planned again is kept if it has this share of the length of the one before.
const STILL_LONG: f64 = 0.8;
/// How much more room spots must have than the way keeps, metres: a curve leaves its points a little.
const MARGIN_M: f32 = 0.02;
/// Half width of the smoothing of a way, metres, widest first.
const SMOOTH_M: [f64; 4] = [1.0, 0.6, 0.3, 0.15];
/// A given point may be this far from the floor, metres.
const SNAP_M: f32 = 1.5;
/// Shortest way that is worth walking, metres.
pub const LENGTH_M_MIN: f64 = 2.0;

/// A way that was found.
#[derive(Clone, Debug)]
pub struct Route {
    /// Waypoints on the floor.
    pub points: Vec<Vec3>,
    /// Length of the curve, metres.
    pub length_m: f64,
    /// Least distance from the curve to what is in the way of a body, metres, sideways.
    pub clearance_m: f32,
    /// Rooms in the order in which they are entered, by number.
    pub rooms: Vec<u32>,
}

/// Why there is no way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A given point is not on the floor.
    #[error("{0} is not near the floor: give a point on it, in the axes of the levelled scan")]
    OffFloor(String),
    /// Two given points are not connected.
    #[error(
        "there is no way from {0} to {1} with {2} m to each side: choose other points, or a smaller \
         --clearance"
    )]
    NoWay(String, String, String),
    /// Nothing long enough was found.
    #[error(
        "no way of {LENGTH_M_MIN} m with {0} m to each side was found on a floor of {1}: try a smaller \
         --clearance, say where to go with --from and --to, or, where a unit of the scan is no metre, how \
         many metres it is with --scale"
    )]
    TooShort(String, String),
}

/// Costs and steps back from one or more starts.
struct Reached {
    cost: Vec<f32>,
    from: Vec<u32>,
}

struct Planner<'a> {
    floor: &'a Floor,
    clearance_m: f32,
    /// Spots that turned out to be too near to something.
    closed: Vec<bool>,
}

impl Planner<'_> {
    fn is_open(&self, spot: u32) -> bool {
        self.floor.spots()[spot as usize].room_m >= self.clearance_m && !self.closed[spot as usize]
    }

    /// Closes the spots near some places that are too near to something. False where there are none.
    fn close_near(&mut self, voxels: &Voxels, places: &[DVec3], clearance_m: f32) -> bool {
        let near_m = 2.0 * self.floor.cell_m() + clearance_m;
        let mut found = false;
        let mut last: Option<DVec3> = None;
        for place in places {
            // Places come one after the other; a few of them cover the same spots.
            if last.is_some_and(|l| l.distance(*place) < f64::from(clearance_m)) {
                continue;
            }
            last = Some(*place);
            for spot in self.floor.near(place.as_vec3(), near_m) {
                let at = self.floor.place(spot).as_dvec3();
                if !self.closed[spot as usize]
                    && self.is_open(spot)
                    && clearance_at(self.floor, voxels, at) < clearance_m + MARGIN_M
                {
                    self.closed[spot as usize] = true;
                    found = true;
                }
            }
        }
        found
    }

    /// What a metre costs at a spot: more where it is tight.
    fn price(&self, spot: u32) -> f32 {
        let room = self.floor.spots()[spot as usize].room_m.min(AT_EASE_M);
        let lack = 1.0 - room / AT_EASE_M;
        1.0 + TIGHT_COST * lack * lack
    }

    /// Dijkstra from `start` to every spot.
    fn reach(&self, start: u32) -> Reached {
        let count = self.floor.spots().len();
        let mut reached = Reached {
            cost: vec![f32::INFINITY; count],
            from: vec![u32::MAX; count],
        };
        let mut open = BinaryHeap::new();
        reached.cost[start as usize] = 0.0;
        open.push((std::cmp::Reverse(0_u32), start));
        while let Some((std::cmp::Reverse(bits), i)) = open.pop() {
            let cost = f32::from_bits(bits);
            if cost > reached.cost[i as usize] {
                continue;
            }
            for (j, step_m) in self.floor.neighbours(i) {
                if !self.is_open(j) {
                    continue;
                }
                let next = cost + step_m * self.price(j);
                if next < reached.cost[j as usize] {
                    reached.cost[j as usize] = next;
                    reached.from[j as usize] = i;
                    open.push((std::cmp::Reverse(next.to_bits()), j));
                }
            }
        }
        reached
    }

    /// The spots from the start of `reached` to `end`.
    fn back(reached: &Reached, end: u32) -> Vec<u32> {
        let mut way = vec![end];
        let mut at = end;
        while reached.from[at as usize] != u32::MAX {
            at = reached.from[at as usize];
            way.push(at);
        }
        way.reverse();
        way
    }

    /// The open spot nearest to a given point.
    fn snap(&self, p: Vec3) -> Option<u32> {
        let mut best: Option<(f32, u32)> = None;
        for i in 0..self.floor.spots().len() as u32 {
            if !self.is_open(i) {
                continue;
            }
            let off = self.floor.place(i) - p;
            // Who points at a place rarely knows its height to the centimetre.
            let far = off.x.hypot(off.z) + 0.5 * (off.y.abs() - 0.3).max(0.0);
            if far <= SNAP_M && best.is_none_or(|(known, _)| far < known) {
                best = Some((far, i));
            }
        }
        best.map(|(_, i)| i)
    }
}

/// A way through `given` points, two or more, or the longest sensible one where there are none.
/// `clearance_m` is kept to each side.
///
/// # Errors
/// See [`Trouble`].
pub fn find(
    floor: &Floor,
    rooms: &Rooms,
    voxels: &Voxels,
    given: &[Vec3],
    clearance_m: f32,
) -> Result<Route, Trouble> {
    let mut planner = Planner {
        floor,
        // A chamfer distance is up to 8 % long, and a column's middle is half a column from its side.
        clearance_m: clearance_m * 1.08 + 0.5 * floor.cell_m(),
        closed: vec![false; floor.spots().len()],
    };
    let mut best: Option<(f32, Spline, Vec<DVec3>)> = None;
    for _ in 0..PLANS_MAX {
        let way = if given.len() >= 2 {
            through(&planner, given, clearance_m)
        } else {
            longest(&planner, rooms, given.first().copied(), clearance_m)
        };
        let way = match (way, &best) {
            (Ok(way), _) => way,
            (Err(trouble), None) => return Err(trouble),
            // What is left is the clearest of the ways that there were.
            (Err(_), Some(_)) => break,
        };
        let line: Vec<DVec3> = way.iter().map(|i| floor.place(*i).as_dvec3()).collect();
        let points = smooth(floor, voxels, &line, clearance_m);
        let Ok(curve) = Spline::new(&points, false) else {
            break;
        };
        let tight: Vec<DVec3> = places(&curve, CHECK_M)
            .filter(|p| clearance_at(floor, voxels, *p) < clearance_m)
            .collect();
        let least = least_clearance(floor, voxels, &curve);
        match &best {
            // Where a narrow place is closed only a part of the floor is left: the long way through it
            // is better, and its clearance is told.
            Some((_, known, _)) if curve.length() < STILL_LONG * known.length() => break,
            Some((known, ..)) if least <= *known => {}
            _ => best = Some((least, curve, points)),
        }
        // Rooms of spots are counted in columns; where the way is too near to something, they are
        // measured exactly, and the way is planned again.
        if tight.is_empty() || !planner.close_near(voxels, &tight, clearance_m) {
            break;
        }
    }
    let (least, curve, points) = best.ok_or_else(|| too_short(floor, clearance_m))?;
    if curve.length() < LENGTH_M_MIN {
        return Err(too_short(floor, clearance_m));
    }
    let mut entered: Vec<u32> = Vec::new();
    for place in places(&curve, 0.1) {
        let room = floor
            .under(place.as_vec3())
            .map_or(u32::MAX, |i| rooms.of_spot[i as usize]);
        if room != u32::MAX && entered.last() != Some(&room) {
            entered.push(room);
        }
    }
    Ok(Route {
        length_m: curve.length(),
        clearance_m: least,
        points: points.iter().map(|p| p.as_vec3()).collect(),
        rooms: entered,
    })
}

fn too_short(floor: &Floor, clearance_m: f32) -> Trouble {
    let size = floor.size_m();
    let size = format!("{:.1} by {:.1} m", size.x, size.y);
    Trouble::TooShort(format!("{clearance_m:.2}"), size)
}

fn through(planner: &Planner<'_>, given: &[Vec3], clearance_m: f32) -> Result<Vec<u32>, Trouble> {
    let shown = |p: Vec3| format!("{:.2},{:.2},{:.2}", p.x, p.y, p.z);
    let mut spots = Vec::new();
    for p in given {
        let spot = planner.snap(*p);
        spots.push(spot.ok_or_else(|| Trouble::OffFloor(shown(*p)))?);
    }
    let mut way = vec![spots[0]];
    for (pair, ends) in spots.windows(2).zip(given.windows(2)) {
        let reached = planner.reach(pair[0]);
        if !reached.cost[pair[1] as usize].is_finite() {
            let width = format!("{clearance_m:.2}");
            return Err(Trouble::NoWay(shown(ends[0]), shown(ends[1]), width));
        }
        way.extend(Planner::back(&reached, pair[1]).into_iter().skip(1));
    }
    Ok(way)
}

/// The way between the two places that are furthest apart, of those where one would stand: middles of
/// rooms, and roomy places of wide floors.
fn longest(
    planner: &Planner<'_>,
    rooms: &Rooms,
    start: Option<Vec3>,
    clearance_m: f32,
) -> Result<Vec<u32>, Trouble> {
    let trouble = || too_short(planner.floor, clearance_m);
    let spots = planner.floor.spots();
    let roomiest = spots.iter().map(|s| s.room_m).fold(0.0, f32::max);
    let least = (0.4 * roomiest).clamp(planner.clearance_m, 1.5);
    let middles: Vec<u32> = rooms.rooms.iter().map(|r| r.middle).collect();
    let roomy = (0..spots.len() as u32).filter(|i| spots[*i as usize].room_m >= least);
    // Where doors are too tight for a way from room to room, one within the largest is better than none.
    let mut longest: Option<(f64, Vec<u32>)> = None;
    for mut ends in [middles, roomy.collect()] {
        ends.retain(|i| planner.is_open(*i));
        let few = longest.is_none() && ends.len() < 3;
        if few {
            continue;
        }
        if let Some(way) = furthest_apart(planner, &ends, start) {
            let places = way.iter().map(|i| planner.floor.place(*i).as_dvec3());
            let places: Vec<DVec3> = places.collect();
            let length_m: f64 = places.windows(2).map(|w| w[0].distance(w[1])).sum();
            if longest.as_ref().is_none_or(|(known, _)| length_m > *known) {
                longest = Some((length_m, way));
            }
        }
        if longest.as_ref().is_some_and(|(m, _)| *m >= LENGTH_M_MIN) {
            break;
        }
    }
    longest.map(|(_, way)| way).ok_or_else(trouble)
}

/// The way between those of `ends` that are furthest apart; from `start`, where it is given.
fn furthest_apart(planner: &Planner<'_>, ends: &[u32], start: Option<Vec3>) -> Option<Vec<u32>> {
    let furthest = |reached: &Reached| {
        let cost = |i: &u32| reached.cost[*i as usize];
        let there = ends.iter().copied().filter(|i| cost(i).is_finite());
        there.max_by(|a, b| cost(a).total_cmp(&cost(b)).then(b.cmp(a)))
    };
    let mut first = match start {
        Some(p) => planner.snap(p),
        None => ends.first().copied(),
    }?;
    if start.is_none() {
        // The widest room may be cut off from the rest: of all starts the one that reaches most.
        let mut seen = vec![false; planner.floor.spots().len()];
        let mut most = 0;
        for end in ends {
            if seen[*end as usize] {
                continue;
            }
            let reached = planner.reach(*end);
            let mut count = 0;
            for (seen, cost) in seen.iter_mut().zip(&reached.cost) {
                if cost.is_finite() {
                    *seen = true;
                    count += 1;
                }
            }
            if count > most {
                (most, first) = (count, *end);
            }
        }
        first = furthest(&planner.reach(first))?;
    }
    let reached = planner.reach(first);
    let last = furthest(&reached)?;
    Some(Planner::back(&reached, last))
}

/// Places along a curve, `every_m` metres apart, both ends with them.
fn places(curve: &Spline, every_m: f64) -> impl Iterator<Item = DVec3> {
    let count = (curve.length() / every_m).ceil().max(1.0);
    (0..=count as usize).map(move |i| curve.at(i as f64 / count))
}

/// Distance from a place on the floor to what is in the way of a body, metres, sideways; 0 beside the
/// floor.
fn clearance_at(floor: &Floor, voxels: &Voxels, place: DVec3) -> f32 {
    let p = place.as_vec3();
    let Some(height) = floor.height(p) else {
        return 0.0;
    };
    let foot = Vec3::new(p.x, height, p.z);
    voxels.clearance_of(foot, STEP_OVER_M, BODY_M, OBSTACLE_OPACITY)
}

fn least_clearance(floor: &Floor, voxels: &Voxels, curve: &Spline) -> f32 {
    places(curve, CHECK_M)
        .map(|p| clearance_at(floor, voxels, p))
        .fold(f32::INFINITY, f32::min)
}

/// Waypoints whose curve stays near a line of spots and clear of everything.
fn smooth(floor: &Floor, voxels: &Voxels, line: &[DVec3], clearance_m: f32) -> Vec<DVec3> {
    let line = evenly(line, 0.05);
    let softened: Vec<Vec<DVec3>> = SMOOTH_M.iter().map(|w| soften(&line, *w, 0.05)).collect();
    // Each place of the line is softened as far as it stays clear.
    let base: Vec<DVec3> = (0..line.len())
        .map(|i| {
            let soft = softened.iter().map(|s| s[i]);
            let mut clear = soft.filter(|p| clearance_at(floor, voxels, *p) >= clearance_m + 0.03);
            clear.next().unwrap_or(line[i])
        })
        .collect();
    // Where the choice changes, a last touch.
    let mut base: Vec<DVec3> = soften(&base, 0.15, 0.05);
    for (place, known) in base.iter_mut().zip(&line) {
        if clearance_at(floor, voxels, *place) < clearance_m {
            *place = *known;
        }
    }
    let on_floor = |i: usize| {
        let p = base[i];
        let height = floor.height(p.as_vec3()).map_or(p.y, f64::from);
        DVec3::new(p.x, height, p.z)
    };
    let last = base.len() - 1;
    let stride = (APART_M[0] / 0.05) as usize;
    let count = (last as f64 / stride as f64).round().max(1.0) as usize;
    let mut chosen: Vec<usize> = (0..=count).map(|k| k * last / count).collect();
    chosen.dedup();
    let least = (APART_M[1] / 0.05) as usize;
    let mut known = chosen.clone();
    for _ in 0..MENDS_MAX {
        let points: Vec<DVec3> = chosen.iter().map(|i| on_floor(*i)).collect();
        let Ok(curve) = Spline::new(&points, false) else {
            break;
        };
        known.clone_from(&chosen);
        // Gaps in which the curve comes too near get a point in their middle.
        let mut wanted = Vec::new();
        for place in places(&curve, CHECK_M) {
            if clearance_at(floor, voxels, place) >= clearance_m {
                continue;
            }
            let near = (0..base.len())
                .min_by(|a, b| {
                    let far = |i: usize| (base[i] - place).length_squared();
                    far(*a).total_cmp(&far(*b))
                })
                .unwrap_or(0);
            let gap = chosen
                .partition_point(|c| *c <= near)
                .clamp(1, chosen.len() - 1);
            let (a, b) = (chosen[gap - 1], chosen[gap]);
            if b - a >= 2 * least {
                wanted.push((a + b) / 2);
            }
        }
        if wanted.is_empty() {
            break;
        }
        chosen.extend(wanted);
        chosen.sort_unstable();
        chosen.dedup();
    }
    known.iter().map(|i| on_floor(*i)).collect()
}

/// A line as points `every_m` apart.
fn evenly(line: &[DVec3], every_m: f64) -> Vec<DVec3> {
    let mut lengths = vec![0.0];
    for pair in line.windows(2) {
        lengths.push(lengths[lengths.len() - 1] + pair[0].distance(pair[1]));
    }
    let whole = lengths[lengths.len() - 1];
    let count = (whole / every_m).ceil().max(1.0) as usize;
    (0..=count)
        .map(|i| {
            let at = whole * i as f64 / count as f64;
            let k = lengths
                .partition_point(|l| *l < at)
                .clamp(1, lengths.len().max(2) - 1);
            if k >= line.len() {
                return line[0];
            }
            let span = lengths[k] - lengths[k - 1];
            let share = if span > 0.0 {
                (at - lengths[k - 1]) / span
            } else {
                0.0
            };
            line[k - 1].lerp(line[k], share)
        })
        .collect()
}

/// Means under a Hann window of half width `reach_m`; at the ends the window shrinks, so they stay.
fn soften(line: &[DVec3], reach_m: f64, every_m: f64) -> Vec<DVec3> {
    let last = line.len() - 1;
    (0..line.len())
        .map(|i| {
            let reach = ((reach_m / every_m) as usize).min(i).min(last - i);
            let (mut sum, mut mean) = (0.0, DVec3::ZERO);
            for (k, place) in line[i - reach..=i + reach].iter().enumerate() {
                let off = (k as f64 - reach as f64) / (reach + 1) as f64;
                let weight = 0.5 + 0.5 * (std::f64::consts::PI * off).cos();
                sum += weight;
                mean += place * weight;
            }
            mean / sum
        })
        .collect()
}
