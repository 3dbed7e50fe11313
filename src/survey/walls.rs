//! Walls beside a way: upright planes, where they begin and end, and what stands in or before them.
//!
//! From the way rays go to both sides at many heights. What they meet is laid on the plan, and straight
//! pieces are grown along it: a piece that is long and high is a wall. A window, a door in its frame or a
//! shelf is none: it lies in the wall or before it, and is told as that. It plans no way. Lines are found
//! by votes (Hough 1962), then fitted by least squares.

use super::floor::Floor;
use super::upright::{self, Centres};
use super::voxels::{Placed, Voxels};
use crate::motion::Spline;
use glam::{IVec3, Vec2, Vec3};
use rayon::prelude::*;

/// Walls are given this often along a way, metres.
pub const WALLS_EVERY_M: f64 = 0.5;
/// Rays go to the sides this often along the way, metres.
const EVERY_M: f64 = 0.05;
/// So much further before its start and behind its end, metres.
const BEYOND_M: f64 = 2.5;
/// Most places that rays are sent from.
const PLACES_MAX: usize = 8_000;
/// Heights above the floor of the rays, metres: first, distance and number.
pub(super) const HEIGHT_M: [f32; 2] = [0.25, 0.1];
pub(super) const HEIGHTS: usize = 24;
/// Heights of a body among them: from and one after the last.
const BODY: [usize; 2] = [3, 15];
/// Furthest wall that is looked for, metres.
const FAR_M: f32 = 20.0;
/// What is no further from a line lies on it, in cells.
const ON_CELLS: f32 = 0.2;
/// What is further before or behind a wall is not the wall, in cells.
const APART_CELLS: f32 = 0.8;
/// What is further beside a ray is not asked where it is, in cells.
const ASIDE_CELLS: f32 = 0.75;
/// A line is looked for in what is met along so much of the way, metres.
const WINDOW_M: f64 = 2.5;
/// Directions of lines, of half a turn, and lines of one window.
const DIRECTIONS: usize = 180;
const LINES_MAX: usize = 6;
/// Least share of what is met in a window that makes a line of it.
const SHARE_MIN: f32 = 0.08;
/// A piece grows over gaps of this, metres: wider ones part two pieces, and two in line with this between
/// them are one wall with an opening.
pub(super) const GAP_M: f32 = 0.3;
const JOIN_M: f32 = 2.5;
/// A piece grows by this much at a time, metres, and so often.
const GROW_M: f32 = 0.5;
const ROUNDS_MAX: usize = 200;
/// Pieces are kept count of in parts of this length, metres.
pub(super) const PART_M: f32 = 0.1;
/// How much better in line two pieces have to be than what lies on one.
const JOIN_SHARE: f32 = 1.0;
/// A shorter piece takes in no other, metres.
const JOINING_M_MIN: f32 = 1.0;
/// A wall is no shorter, and reaches no less high over the floor, metres.
const LONG_M_MIN: f32 = 0.5;
const HIGH_M_MIN: f32 = 1.2;
/// One that is in line with no other is no shorter, metres: pillars and boards are things.
const ALONE_M_MIN: f32 = 0.8;
/// A wall that others lie behind has this much of a face: shorter is a board or a shelf before it, metres.
const FACE_M_MIN: f32 = 1.4;
/// Share of it that is there.
const FACE_MIN: f32 = 0.15;
/// A plane no further behind another one belongs to it: a door, a window, a recess, metres.
const DEEP_M: f32 = 0.6;
/// Ends of pieces are known to this, metres: about them what is there within so much decides.
const END_M: f32 = 0.4;
const ABOUT_M: f32 = 0.25;
/// What is this far along a piece from a place is at it, metres.
const AT_M: f32 = 0.06;
/// A ray that passes an end by no more than this meets it where nothing else is near, metres.
const PAST_M: f32 = 0.03;
/// With this share of it there a short piece is a wall.
const WHOLE_MIN: f32 = 0.5;
/// So many heights of a place make it wall.
pub(super) const HEIGHTS_MIN: u32 = 3;
/// An opening is no wider, metres: where walls are further apart, a place begins.
const OPENING_M: f32 = 4.0;
/// Walls whose directions differ by less are in line (cosine of 25 degrees).
const IN_LINE_COS: f32 = 0.9;

/// What is beside the way at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The wall itself.
    Wall,
    /// Something that is set back in the wall: a door, a window, a niche.
    Recess,
    /// The wall is open: a doorway, a window without glass, a side street.
    Opening,
    /// Something stands before the wall, or instead of one.
    Thing,
    /// Nothing within reach.
    Nothing,
}

impl Kind {
    /// Its name in data.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Recess => "recess",
            Self::Opening => "opening",
            Self::Thing => "thing",
            Self::Nothing => "nothing",
        }
    }
}

/// One side of the way at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// What is there.
    pub kind: Kind,
    /// Metres to the plane of the wall, straight to the side. At an opening that of the wall over it or
    /// behind it. `None` where there is none.
    pub wall_m: Option<f32>,
    /// Metres to what a body would meet first, whatever it is.
    pub free_m: Option<f32>,
}

/// A straight piece of wall on the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Its ends, x and z, metres.
    pub from: Vec2,
    /// See `from`.
    pub to: Vec2,
    /// Heights at which it is there, by parts of its length; the first part begins so much before `from`,
    /// metres.
    pub(super) parts: Vec<u32>,
    pub(super) early_m: f32,
}

/// What rays to one side met.
struct Hit {
    place: Vec2,
    station: u32,
    height: u8,
}

/// A straight line: all `p` with `p` dot `normal` = `offset`.
#[derive(Clone, Copy)]
struct Line {
    normal: Vec2,
    offset: f32,
}

impl Line {
    fn along(&self) -> Vec2 {
        self.normal.perp()
    }

    fn off(&self, p: Vec2) -> f32 {
        p.dot(self.normal) - self.offset
    }

    /// Least squares through places of some weight; `None` where they are one place.
    fn fit(places: impl Iterator<Item = (Vec2, f32)> + Clone) -> Option<Self> {
        let wide = |(p, weight): (Vec2, f32)| (p.as_dvec2(), f64::from(weight));
        let (mut sum, mut mean) = (0.0, glam::DVec2::ZERO);
        for (p, weight) in places.clone().map(wide) {
            (sum, mean) = (sum + weight, mean + p * weight);
        }
        mean /= sum;
        let (mut xx, mut xz, mut zz) = (0.0, 0.0, 0.0);
        for (p, weight) in places.map(wide) {
            let d = p - mean;
            xx += weight * d.x * d.x;
            xz += weight * d.x * d.y;
            zz += weight * d.y * d.y;
        }
        let spread = xx + zz;
        if spread.is_nan() || spread <= 0.0 {
            return None;
        }
        // The direction in which they are spread most.
        let turn = 0.5 * (2.0 * xz).atan2(xx - zz);
        let normal = glam::DVec2::new(-turn.sin(), turn.cos());
        Some(Self {
            normal: normal.as_vec2(),
            offset: normal.dot(mean) as f32,
        })
    }

    /// A better line of what lies on this one: what is far off counts little (Tukey's biweight).
    fn refined(&self, places: impl Iterator<Item = Vec2> + Clone, on_m: f32) -> Option<Self> {
        let share = |p: Vec2| (1.0 - (self.off(p) / on_m).powi(2)).max(0.0);
        Self::fit(places.map(|p| (p, share(p) * share(p))))
    }
}

/// One place of the way.
struct Station {
    foot: Vec3,
    left: Vec2,
}

/// Walls and sides along a way.
#[derive(Debug, Default)]
pub struct Walls {
    /// All pieces of wall.
    pub pieces: Vec<Piece>,
    /// Left and right every [`WALLS_EVERY_M`] of the way.
    pub sides: Vec<[Side; 2]>,
}

impl Walls {
    /// Finds what is beside a way.
    #[must_use]
    pub fn find(draws: &[Placed<'_>], voxels: &Voxels, floor: &Floor, curve: &Spline) -> Self {
        let length_m = curve.length();
        let every_m = EVERY_M.max(length_m / PLACES_MAX as f64);
        let station = |u: f64| {
            let p = curve.at(u).as_vec3();
            let tangent = curve.tangent(u).as_vec3();
            let ahead = Vec3::new(tangent.x, 0.0, tangent.z).normalize_or(Vec3::X);
            let left = Vec3::Y.cross(ahead);
            Station {
                foot: Vec3::new(p.x, floor.height(p).unwrap_or(p.y), p.z),
                left: Vec2::new(left.x, left.z),
            }
        };
        let mut stations: Vec<Station> = super::along(curve, every_m).map(station).collect();
        // A little further at both ends: the walls there do not end with the way.
        for (u, sign) in [(0.0, -1.0), (1.0, 1.0)] {
            for k in 1..=(BEYOND_M / every_m) as u32 {
                let mut beyond = station(u);
                let ahead = Vec3::new(-beyond.left.y, 0.0, beyond.left.x);
                beyond.foot += ahead * (sign * f64::from(k) * every_m) as f32;
                if sign < 0.0 {
                    stations.insert(0, beyond);
                } else {
                    stations.push(beyond);
                }
            }
        }
        let asked: Vec<Station> = super::along(curve, WALLS_EVERY_M).map(station).collect();
        let mut hits: Vec<Hit> = stations
            .par_iter()
            .enumerate()
            .flat_map_iter(|(number, station)| {
                [1.0, -1.0].into_iter().flat_map(move |side| {
                    column(voxels, station.foot, side * station.left)
                        .into_iter()
                        .enumerate()
                        .filter_map(move |(height, met)| {
                            Some(Hit {
                                place: met?.0,
                                station: number as u32 * 2 + u32::from(side < 0.0),
                                height: height as u8,
                            })
                        })
                })
            })
            .collect();
        // Sides apart, each in the order of the way.
        hits.sort_by_key(|hit| (hit.station % 2, hit.station));
        let on_m = voxels.cell_m() * ON_CELLS;
        let found = pieces(&hits, on_m, every_m);
        let pieces = settled(draws, &found, &stations, on_m);
        let gaps = gaps(&pieces);
        let sides: Vec<[Side; 2]> = asked
            .par_iter()
            .map(|station| {
                [1.0, -1.0].map(|side| {
                    let (foot, way) = (station.foot, side * station.left);
                    let mut found = beside(voxels, &pieces, foot, way);
                    let from = Vec2::new(foot.x, foot.z);
                    let nearest = gaps
                        .iter()
                        .filter_map(|[a, b]| crossed(*a, *b, from, way))
                        .map(|(far_m, _)| far_m)
                        .fold(FAR_M, f32::min);
                    if found.wall_m.unwrap_or(FAR_M) > nearest + DEEP_M {
                        found.kind = Kind::Opening;
                    }
                    found
                })
            })
            .collect();
        Self { pieces, sides }
    }
}

/// What rays from over `foot` meet, by height: where it is on the plan, and how far to the side.
fn column(voxels: &Voxels, foot: Vec3, way: Vec2) -> [Option<(Vec2, f32)>; HEIGHTS] {
    std::array::from_fn(|k| {
        let origin = foot + Vec3::Y * (HEIGHT_M[0] + k as f32 * HEIGHT_M[1]);
        let way = Vec3::new(way.x, 0.0, way.y);
        let met = voxels.look(origin, way, FAR_M).distance_m?;
        let place = surface(voxels, origin + way * met, way)?;
        Some((Vec2::new(place.x, place.z), (place - origin).dot(way)))
    })
}

/// Where the splats about a place that a ray `way` meets are on the whole: finer than cells. What is beside the
/// ray may be another wall.
fn surface(voxels: &Voxels, p: Vec3, way: Vec3) -> Option<Vec3> {
    let cell = (p / voxels.cell_m()).floor().as_ivec3();
    let aside = way.cross(Vec3::Y);
    let (mut sum, mut places) = (0.0, Vec3::ZERO);
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                if let Some(matter) = voxels.matter_at(cell + IVec3::new(x, y, z))
                    && (matter.place - p).dot(aside).abs() < ASIDE_CELLS * voxels.cell_m()
                {
                    sum += matter.thickness;
                    places += matter.thickness * matter.place;
                }
            }
        }
    }
    (sum > 0.0).then(|| places / sum)
}

/// All walls in what was met. What is no further than `on_m` from a line lies on it.
fn pieces(hits: &[Hit], on_m: f32, every_m: f64) -> Vec<Piece> {
    let window = (WINDOW_M / every_m) as u32 * 2;
    let last = hits.iter().map(|h| h.station).max().unwrap_or(0);
    let starts: Vec<u32> = (0..=last)
        .step_by((window / 4).max(2) as usize & !1)
        .collect();
    let mut seeds: Vec<(usize, Line, Vec2)> = starts
        .par_iter()
        .flat_map_iter(|start| {
            [0, 1].into_iter().flat_map(move |side| {
                let key = |h: &Hit| (h.station % 2, h.station);
                let from = hits.partition_point(|h| key(h) < (side, *start));
                let to = hits.partition_point(|h| key(h) < (side, *start + window));
                lines(&hits[from..to], on_m)
            })
        })
        .collect();
    // Those that gather most come first; of equals the first.
    seeds.sort_by_key(|seed| std::cmp::Reverse(seed.0));
    let mut taken = vec![false; hits.len()];
    let mut found = Vec::new();
    for (_, line, middle) in seeds {
        found.extend(grown(hits, &mut taken, line, middle, on_m));
    }
    joined(found, on_m)
}

/// The same pieces where their splats are.
fn settled(draws: &[Placed<'_>], pieces: &[Piece], stations: &[Station], on_m: f32) -> Vec<Piece> {
    let centres = Centres::about(draws, pieces);
    let foot_y = |p: Vec2| {
        let far = |s: &Station| p.distance_squared(Vec2::new(s.foot.x, s.foot.z));
        let nearest = stations.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        nearest.map_or(0.0, |s| s.foot.y)
    };
    let exact: Vec<Piece> = pieces
        .par_iter()
        .map(|piece| upright::settled(piece, &centres, &foot_y, on_m))
        .collect();
    let mut exact = joined(exact, on_m);
    exact.retain(|piece| piece.length_m() >= ALONE_M_MIN);
    exact
}

/// Lines in what was met along a stretch of the way: how much lies on each, and a place on it.
fn lines(hits: &[Hit], on_m: f32) -> Vec<(usize, Line, Vec2)> {
    let least = ((hits.len() as f32 * SHARE_MIN) as usize).max(12);
    let mut left: Vec<Vec2> = hits.iter().map(|h| h.place).collect();
    let mut found = Vec::new();
    let mut votes: Vec<u16> = Vec::new();
    while left.len() >= least && found.len() < LINES_MAX {
        let low = left.iter().copied().fold(Vec2::INFINITY, Vec2::min);
        let high = left.iter().copied().fold(Vec2::NEG_INFINITY, Vec2::max);
        let middle = 0.5 * (low + high);
        let reach = 0.5 * (high - low).length() + on_m;
        let rows = (2.0 * reach / on_m).ceil() as usize + 1;
        let mut best = (0_u16, 0_usize, 0_usize);
        for k in 0..DIRECTIONS {
            let normal = Vec2::from_angle(std::f32::consts::PI * k as f32 / DIRECTIONS as f32);
            votes.clear();
            votes.resize(rows, 0);
            for p in &left {
                votes[(((*p - middle).dot(normal) + reach) / on_m) as usize] += 1;
            }
            for (row, count) in votes.iter().enumerate() {
                if *count > best.0 {
                    best = (*count, k, row);
                }
            }
        }
        let normal = Vec2::from_angle(std::f32::consts::PI * best.1 as f32 / DIRECTIONS as f32);
        let mut line = Line {
            normal,
            offset: (best.2 as f32 + 0.5) * on_m - reach + middle.dot(normal),
        };
        for _ in 0..4 {
            let all = left.iter().copied();
            line = line.refined(all, on_m).unwrap_or(line);
        }
        let on: Vec<Vec2> = left
            .iter()
            .copied()
            .filter(|p| line.off(*p).abs() < on_m)
            .collect();
        if on.len() < least {
            break;
        }
        let mut along: Vec<f32> = on.iter().map(|p| p.dot(line.along())).collect();
        let half = along.len() / 2;
        let at = *along.select_nth_unstable_by(half, f32::total_cmp).1;
        found.push((
            on.len(),
            line,
            line.normal * line.offset + line.along() * at,
        ));
        left.retain(|p| line.off(*p).abs() >= on_m);
    }
    found
}

/// The wall that a line is a part of, grown to both sides from a place on it; `None` where it is too small,
/// or known already. What lies on it is taken.
fn grown(hits: &[Hit], taken: &mut [bool], seed: Line, middle: Vec2, on_m: f32) -> Option<Piece> {
    let mut line = seed;
    let half = 0.5 * WINDOW_M as f32;
    let mut ends = [-half, half];
    let mut on: Option<On> = None;
    for _ in 0..ROUNDS_MAX {
        let along = line.along();
        let from = along.dot(middle);
        let reach = [from + ends[0] - GROW_M, from + ends[1] + GROW_M];
        let next = On::new(hits, taken, line, reach, from, on_m)?;
        let known = on.as_ref().map_or(0, |on| on.members.len());
        line = line.refined(next.members.iter().map(|i| hits[*i].place), on_m)?;
        // Which way the line's own direction points may change.
        if line.along().dot(along) < 0.0 {
            line = Line {
                normal: -line.normal,
                offset: -line.offset,
            };
        }
        let is_still = next.members.len() == known;
        ends = [next.low_m - from, next.high_m - from];
        on = Some(next);
        if is_still {
            break;
        }
    }
    let on = on?;
    if on.high_m - on.low_m < LONG_M_MIN {
        return None;
    }
    let is_high = |mask: &&u32| {
        let top = HEIGHT_M[0] + HEIGHT_M[1] * (31 - mask.leading_zeros().min(31)) as f32;
        **mask != 0 && top >= HIGH_M_MIN
    };
    if on.parts.iter().filter(is_high).count() * 3 < on.parts.len() {
        return None;
    }
    for i in &on.members {
        taken[*i] = true;
    }
    let at = |s: f32| line.normal * line.offset + line.along() * s;
    Some(Piece {
        from: at(on.low_m),
        to: at(on.high_m),
        early_m: on.low_m - on.parts_m,
        parts: on.parts,
    })
}

/// What lies on a stretch of a line without a gap.
struct On {
    /// By numbers of hits.
    members: Vec<usize>,
    /// Where it begins and ends along the line, metres.
    low_m: f32,
    high_m: f32,
    /// Heights by parts, and where the first one begins.
    parts: Vec<u32>,
    parts_m: f32,
}

impl On {
    /// What lies on a line between `reach` and hangs together with what is at `from`.
    fn new(
        hits: &[Hit],
        taken: &[bool],
        line: Line,
        reach: [f32; 2],
        from: f32,
        on_m: f32,
    ) -> Option<Self> {
        let along = line.along();
        let near: Vec<(usize, usize)> = (0..hits.len())
            .filter(|i| !taken[*i] && line.off(hits[*i].place).abs() < on_m)
            .map(|i| (hits[i].place.dot(along), i))
            .filter(|(s, _)| (reach[0]..reach[1]).contains(s))
            .map(|(s, i)| (((s - reach[0]) / PART_M) as usize, i))
            .collect();
        let mut parts = vec![0_u32; ((reach[1] - reach[0]) / PART_M) as usize + 1];
        for (part, i) in &near {
            parts[*part] |= 1 << hits[*i].height;
        }
        let is_part = |k: usize| parts[k].count_ones() >= HEIGHTS_MIN;
        let middle = (((from - reach[0]) / PART_M) as usize).min(parts.len() - 1);
        let gap = (GAP_M / PART_M).round() as usize;
        let start = (0..parts.len())
            .filter(|k| is_part(*k))
            .min_by_key(|k| k.abs_diff(middle))?;
        let (mut first, mut last) = (start, start);
        while let Some(k) = (first.saturating_sub(gap)..first)
            .rev()
            .find(|k| is_part(*k))
        {
            first = k;
        }
        while let Some(k) = (last + 1..(last + 1 + gap).min(parts.len())).find(|k| is_part(*k)) {
            last = k;
        }
        let members: Vec<usize> = near
            .iter()
            .filter(|(part, _)| (first..=last).contains(part))
            .map(|(_, i)| *i)
            .collect();
        let places = || members.iter().map(|i| hits[*i].place.dot(along));
        Some(Self {
            low_m: places().fold(f32::INFINITY, f32::min),
            high_m: places().fold(f32::NEG_INFINITY, f32::max),
            parts_m: reach[0] + first as f32 * PART_M,
            parts: parts[first..=last].to_vec(),
            members,
        })
    }
}

/// Pieces that go on behind a gap become one.
fn joined(mut pieces: Vec<Piece>, on_m: f32) -> Vec<Piece> {
    // The longest takes in the others.
    pieces.sort_by(|a, b| b.length_m().total_cmp(&a.length_m()));
    let mut k = 0;
    while k < pieces.len() {
        let own = pieces[k].clone();
        let other = (k + 1..pieces.len())
            .filter_map(|i| Some((i, own.with(&pieces[i], on_m)?)))
            .min_by(|a, b| a.1.length_m().total_cmp(&b.1.length_m()));
        if let Some((i, both)) = other {
            pieces[k] = both;
            pieces.remove(i);
        } else {
            k += 1;
        }
    }
    pieces
}

/// A piece that a ray to the side crosses.
struct Crossing<'a> {
    piece: &'a Piece,
    far_m: f32,
    /// Metres from the start of the piece.
    along_m: f32,
    /// Share of what is there about the place.
    there: f32,
}

impl Crossing<'_> {
    /// Metres from the nearer end of the piece; below 0 beyond it.
    fn inside_m(&self) -> f32 {
        self.along_m.min(self.piece.length_m() - self.along_m)
    }

    /// Whether it is there all the way to a place.
    fn goes_on_to(&self, end: Vec2) -> bool {
        let here = self.piece.at(self.along_m);
        (1..=4).all(|k| self.piece.is_at(here.lerp(end, k as f32 / 4.0)))
    }

    fn is_face(&self) -> bool {
        self.piece.length_m() >= FACE_M_MIN && self.piece.face() >= FACE_MIN
    }
}

impl Piece {
    /// Metres from one end to the other.
    #[must_use]
    pub fn length_m(&self) -> f32 {
        self.from.distance(self.to)
    }

    fn crossed(&self, from: Vec2, way: Vec2) -> Option<Crossing<'_>> {
        let (far_m, along_m) = line_crossed(self.from, self.to, from, way)?;
        let inside = (-END_M..=self.length_m() + END_M).contains(&along_m);
        (inside && far_m > 0.0 && far_m < FAR_M).then(|| Crossing {
            piece: self,
            far_m,
            along_m,
            there: self.there(along_m),
        })
    }

    /// Share of its face that is there about a place of it.
    fn there(&self, along_m: f32) -> f32 {
        let part = |metres: f32| ((metres + self.early_m) / PART_M).floor() as i32;
        let (from, to) = (part(along_m - ABOUT_M), part(along_m + ABOUT_M));
        let count: u32 = (from..=to)
            .filter_map(|k| self.parts.get(usize::try_from(k).ok()?))
            .map(|mask| mask.count_ones())
            .sum();
        count as f32 / ((to - from + 1) as usize * HEIGHTS) as f32
    }

    fn at(&self, along_m: f32) -> Vec2 {
        self.from + (self.to - self.from).normalize_or_zero() * along_m
    }

    /// Whether it is there at a place, laid on its line.
    fn is_at(&self, place: Vec2) -> bool {
        let along = (self.to - self.from).normalize_or_zero();
        self.heights((place - self.from).dot(along)) >= HEIGHTS_MIN
    }

    /// Heights at which it is there about a place of it.
    fn heights(&self, along_m: f32) -> u32 {
        if !(-PART_M..=self.length_m() + PART_M).contains(&along_m) {
            return 0;
        }
        let part = |metres: f32| ((metres + self.early_m).max(0.0) / PART_M) as usize;
        let from = part(along_m - AT_M);
        let to = (part(along_m + AT_M) + 1).min(self.parts.len());
        self.parts[from.min(to)..to]
            .iter()
            .fold(0, |mask, part| mask | part)
            .count_ones()
    }

    /// Both as one, where they lie in line.
    fn with(&self, other: &Self, on_m: f32) -> Option<Self> {
        if self.length_m() < JOINING_M_MIN {
            return None;
        }
        let ends = [self.from, self.to, other.from, other.to];
        let line = Line::fit(ends.into_iter().map(|p| (p, 1.0)))?;
        if ends.iter().any(|p| line.off(*p).abs() > JOIN_SHARE * on_m) {
            return None;
        }
        let along = line.along() * line.along().dot(self.to - self.from).signum();
        let origin = self.from - line.normal * line.off(self.from);
        let at = |p: Vec2| (p - origin).dot(along);
        let (mut low, mut high) = (at(other.from), at(other.to));
        let mut parts = other.parts.clone();
        let mut early_m = other.early_m;
        if low > high {
            (low, high) = (high, low);
            parts.reverse();
            early_m = (parts.len() as f32 * PART_M - other.length_m() - early_m).max(0.0);
        }
        let length = self.length_m();
        if low - length > JOIN_M || -high > JOIN_M {
            return None;
        }
        let start = low.min(0.0);
        let end = high.max(length);
        let mut all = vec![0_u32; ((end - start) / PART_M).ceil() as usize + 1];
        for (from, early, parts) in [
            (0.0 - start, self.early_m, &self.parts),
            (low - start, early_m, &parts),
        ] {
            let first = ((from - early).max(0.0) / PART_M).round() as usize;
            for (slot, part) in all[first..].iter_mut().zip(parts) {
                *slot |= part;
            }
        }
        Some(Self {
            from: origin + along * start,
            to: origin + along * end,
            early_m: 0.0,
            parts: all,
        })
    }

    /// Share of its face that is there: the rest are openings, or hidden.
    #[must_use]
    pub fn face(&self) -> f32 {
        let there: u32 = self.parts.iter().map(|mask| mask.count_ones()).sum();
        there as f32 / (self.parts.len() * HEIGHTS) as f32
    }
}

/// The wall of those that a ray crosses, nearest first: the nearest face, and where faces meet that which is
/// nearer to what is met, `met_m`.
fn chosen<'a>(crossed: &'a [Crossing<'a>], met_m: f32) -> Option<&'a Crossing<'a>> {
    let mut inside = crossed.iter().find(|c| c.inside_m() >= 0.0);
    let past = crossed
        .iter()
        .filter(|c| c.inside_m() >= -PAST_M)
        .max_by(|a, b| {
            a.inside_m()
                .min(0.0)
                .total_cmp(&b.inside_m().min(0.0))
                .then(b.far_m.total_cmp(&a.far_m))
        });
    if let Some(past) = past
        && inside.is_none_or(|i| i.far_m > past.far_m + DEEP_M)
    {
        inside = Some(past);
    }
    let first = inside.or(crossed.first())?;
    let near = || {
        crossed
            .iter()
            .filter(|c| (c.far_m - first.far_m).abs() < DEEP_M)
    };
    let off = |c: &Crossing<'_>| (c.far_m - met_m).abs();
    // Where one ends the other goes on; what does not lies in it, as a window does.
    let is_better = |own: &Crossing<'_>, other: &Crossing<'_>| {
        let end = if own.along_m < own.piece.length_m() - own.along_m {
            own.piece.from
        } else {
            own.piece.to
        };
        other.inside_m() >= 0.0
            && off(other) < off(own)
            && (own.inside_m() < END_M || other.there > own.there)
            && other.goes_on_to(end)
    };
    let mut faces = near().filter(|c| c.is_face() && c.inside_m() >= 0.0);
    let face = faces.find(|c| !near().any(|o| is_better(c, o)));
    // No face: what is met.
    let other = || near().min_by(|a, b| off(a).total_cmp(&off(b)));
    face.or_else(|| near().find(|c| c.is_face() && inside.is_none_or(|i| i.there < WHOLE_MIN)))
        .or_else(other)
}

/// What is to one side of a place.
fn beside(voxels: &Voxels, pieces: &[Piece], foot: Vec3, way: Vec2) -> Side {
    let met = column(voxels, foot, way);
    let body: Vec<f32> = met[BODY[0]..BODY[1]]
        .iter()
        .flatten()
        .map(|m| m.1)
        .collect();
    let free_m = body.iter().copied().reduce(f32::min);
    let mut crossed: Vec<Crossing<'_>> = pieces
        .iter()
        .filter_map(|piece| piece.crossed(Vec2::new(foot.x, foot.z), way))
        .collect();
    crossed.sort_by(|a, b| a.far_m.total_cmp(&b.far_m));
    let on_m = voxels.cell_m() * APART_CELLS;
    let heights = BODY[1] - BODY[0];
    let open_at = |far_m: f32| {
        let beyond = body.iter().filter(|m| **m > far_m + DEEP_M).count();
        beyond + (heights - body.len())
    };
    // A gap of a wall, from the ground up, is none.
    let is_gap = |c: &Crossing<'_>| {
        c.piece.heights(c.along_m) < HEIGHTS_MIN && open_at(c.far_m) * 2 > heights
    };
    let is_open = crossed
        .iter()
        .take_while(|c| is_gap(c))
        .any(|c| c.inside_m() > 0.0);
    crossed.retain(|c| !is_gap(c));
    let mut sorted = body.clone();
    sorted.sort_by(f32::total_cmp);
    let met_m = sorted.get(sorted.len() / 2).copied().unwrap_or(FAR_M);
    let chosen = chosen(&crossed, met_m).map(|wall| (wall, open_at(wall.far_m)));
    let Some((wall, open)) = chosen else {
        let kind = if is_open {
            Kind::Opening
        } else if body.is_empty() {
            Kind::Nothing
        } else {
            Kind::Thing
        };
        return Side {
            kind,
            wall_m: None,
            free_m,
        };
    };
    let before = body.iter().filter(|m| **m < wall.far_m - on_m).count();
    let behind = body
        .iter()
        .filter(|m| **m > wall.far_m + on_m && **m <= wall.far_m + DEEP_M)
        .count();
    let on = heights - open - before - behind;
    let kind = if is_open || open * 2 > heights {
        Kind::Opening
    } else if behind > on.max(before) {
        Kind::Recess
    } else if before > 0 && before * 4 >= heights {
        Kind::Thing
    } else {
        Kind::Wall
    };
    Side {
        kind,
        wall_m: Some(wall.far_m),
        free_m,
    }
}

/// Where a ray crosses the line from `a` to `b`: metres of the ray and of the line.
fn line_crossed(a: Vec2, b: Vec2, from: Vec2, way: Vec2) -> Option<(f32, f32)> {
    let along = (b - a).try_normalize()?;
    let turn = way.perp_dot(along);
    if turn.abs() < 0.05 {
        return None;
    }
    let off = a - from;
    Some((off.perp_dot(along) / turn, off.perp_dot(way) / turn))
}

/// The same between the two alone, before the ray's start not at all.
fn crossed(a: Vec2, b: Vec2, from: Vec2, way: Vec2) -> Option<(f32, f32)> {
    line_crossed(a, b, from, way)
        .filter(|(far_m, along_m)| *far_m > 0.0 && (0.0..=a.distance(b)).contains(along_m))
}

/// Between two walls in line, such as the corners of a side street: both ends of each gap.
fn gaps(pieces: &[Piece]) -> Vec<[Vec2; 2]> {
    // Ends, and the directions in which their walls would go on.
    let ends: Vec<(Vec2, Vec2)> = pieces
        .iter()
        .flat_map(|piece| {
            let along = (piece.to - piece.from).normalize_or_zero();
            [(piece.from, -along), (piece.to, along)]
        })
        .collect();
    let mut gaps = Vec::new();
    for (i, (a, on_from_a)) in ends.iter().enumerate() {
        for (b, on_from_b) in &ends[i + 1..] {
            let way = *b - *a;
            let wide_m = way.length();
            if (LONG_M_MIN..OPENING_M).contains(&wide_m)
                && way.dot(*on_from_a) > IN_LINE_COS * wide_m
                && -way.dot(*on_from_b) > IN_LINE_COS * wide_m
            {
                gaps.push([*a, *b]);
            }
        }
    }
    gaps
}
