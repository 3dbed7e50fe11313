//! Where one can stand: a height for every column of cells, on as many storeys as there are.
//!
//! A spot is the top of something solid with room for a body above it. Spots side by side whose
//! heights a foot can climb are connected; of all connected regions the lowest large one is the
//! floor, so neither table tops nor the upper sides of ceilings are. Small holes are filled, heights
//! are medians. It plans no way. The idea of spans and climbs is that of Recast (Mononen 2009).

use super::voxels::{Matter, Voxels};
use glam::{IVec2, IVec3, Vec3};
use rayon::prelude::*;
use std::collections::{BinaryHeap, VecDeque};

/// A step that is climbed without a thought, metres.
pub const CLIMB_M: f32 = 0.22;
/// What is lower than this above the floor is stepped over, metres.
pub const STEP_OVER_M: f32 = 0.3;
/// What is higher than this above the floor is not in the way, metres.
pub const BODY_M: f32 = 1.75;
/// How much further up and down a body is kept free than it reaches, metres: the floor is smoothed after
/// that.
const MARGIN_M: f32 = 0.06;
/// Summed opacity from which a cell is in the way of a body. Less than of a floor: a grid that lies
/// otherwise would cut the same splats into other cells.
pub const OBSTACLE_OPACITY: f32 = 0.4;
/// Summed opacity from which a cell carries.
const FLOOR_OPACITY: f32 = 0.5;
/// Holes up to about twice this wide are filled, metres.
const HOLE_M: f32 = 0.3;
/// A region this rich in strong level spots, against the richest one, may be the floor.
const LARGE: f32 = 0.32;
/// Smallest floor, m².
const AREA_M2_MIN: f32 = 1.0;
/// Columns of the largest grid.
const COLUMNS_MAX: usize = 24 << 20;
/// Share of the matter that is left out on each side: floaters far off.
const OUTSIDE: f64 = 0.002;
/// A spot stronger than this is no better a floor for it.
const STRONG: f32 = 4.0;
/// A spot is level where three of the four beside it are no further up or down than this, metres. Haze
/// below a shiny floor is wide, but not level.
const LEVEL_M: f32 = 0.02;
/// Half width of the window of medians, in columns.
const MEDIAN: i32 = 4;
/// Heights further apart than this are two steps of a stair, metres.
const TREAD_M: f32 = 0.1;
/// Under a roof a floor is level: what is no further from it up or down is a rug, or a layer that the
/// scan has twice, metres.
const RUG_M: f32 = 0.08;
/// What is further from it, and this large, is a step, m².
const STEP_M2_MIN: f32 = 0.5;
/// A roof is looked for this high above the floor, metres.
const ROOF_M: [f32; 2] = [1.9, 6.0];
/// Share of a room that has a roof, from which on it is indoors.
const ROOFED: f32 = 0.6;
/// Every so many columns are asked for a roof.
const ROOF_EVERY: i32 = 4;
/// The level of a room is where most of it lies within this much up and down, metres.
const LAYER_M: f32 = 0.02;
/// Half width of a threshold, where one room's level becomes the next one's, in columns.
const THRESHOLD: i32 = 6;

/// Columns beside a column, straight ones first.
const AROUND: [IVec2; 8] = [
    IVec2::new(1, 0),
    IVec2::new(-1, 0),
    IVec2::new(0, 1),
    IVec2::new(0, -1),
    IVec2::new(1, 1),
    IVec2::new(1, -1),
    IVec2::new(-1, 1),
    IVec2::new(-1, -1),
];

/// A spot to stand on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Column, in cells from the floor's corner.
    pub column: IVec2,
    /// Height of the floor, metres.
    pub y: f32,
    /// How far the next spot is where nobody can stand, metres.
    pub room_m: f32,
    /// Optical thickness of what carries.
    pub strength: f32,
}

/// All spots of one connected floor.
#[derive(Debug)]
pub struct Floor {
    cell_m: f32,
    /// Column 0, 0 in cells from the origin.
    corner: IVec2,
    size: IVec2,
    /// Where the spots of a column begin, by number of column, and the end.
    starts: Vec<u32>,
    spots: Vec<Spot>,
}

impl Floor {
    /// Finds the floor; `None` where there is none of a square metre.
    #[must_use]
    pub fn find(voxels: &Voxels) -> Option<Self> {
        let mut all = Self::everywhere(voxels)?;
        let region = all.floor_region()?;
        all.keep(|i, _| region[i]);
        all.fill_holes(voxels);
        all.smooth();
        all.measure();
        Some(all)
    }

    /// Every spot of the scan, connected or not.
    fn everywhere(voxels: &Voxels) -> Option<Self> {
        let cell_m = voxels.cell_m();
        let mut matter: Vec<Matter> = voxels
            .matter()
            .filter(|m| m.opacity >= OBSTACLE_OPACITY)
            .collect();
        if matter.is_empty() {
            return None;
        }
        let bounds = |axis: usize| {
            let mut values: Vec<i32> = matter.iter().map(|m| m.at[axis]).collect();
            let last = values.len() - 1;
            let cut = (last as f64 * OUTSIDE) as usize;
            let low = *values.select_nth_unstable(cut).1;
            let high = *values.select_nth_unstable(last - cut).1;
            let margin = (0.5 / cell_m) as i32;
            (low - margin, high + margin)
        };
        let ((x0, x1), (z0, z1)) = (bounds(0), bounds(2));
        let size = IVec2::new(x1 - x0 + 1, z1 - z0 + 1);
        if size.x as i64 * size.y as i64 > COLUMNS_MAX as i64 {
            return None;
        }
        let corner = IVec2::new(x0, z0);
        let column_of = |at: IVec3| {
            let c = IVec2::new(at.x, at.z) - corner;
            (c.min_element() >= 0 && c.x < size.x && c.y < size.y)
                .then(|| (c.y * size.x + c.x) as u32)
        };
        matter.retain(|m| column_of(m.at).is_some());
        let key = |m: &Matter| (column_of(m.at).unwrap_or(0), m.at.y);
        matter.par_sort_unstable_by_key(key);

        let count = (size.x * size.y) as usize;
        let mut floor = Self {
            cell_m,
            corner,
            size,
            starts: Vec::with_capacity(count + 1),
            spots: Vec::new(),
        };
        let mut from = 0;
        for number in 0..count as u32 {
            floor.starts.push(floor.spots.len() as u32);
            let to = from + matter[from..].partition_point(|m| key(m).0 <= number);
            if to > from {
                let column = IVec2::new(number as i32 % size.x, number as i32 / size.x);
                floor.column(column, &matter[from..to]);
            }
            from = to;
        }
        floor.starts.push(floor.spots.len() as u32);
        Some(floor)
    }

    /// Adds the spots of a column. `matter` is all that is in its way, lowest first.
    fn column(&mut self, column: IVec2, matter: &[Matter]) {
        let cells = |metres: f32| metres / self.cell_m;
        let mut best: Option<(usize, Spot)> = None;
        for (i, m) in matter.iter().enumerate() {
            if m.opacity < FLOOR_OPACITY {
                continue;
            }
            let (mut sum, mut heights) = (0.0, 0.0);
            for near in &matter[i.saturating_sub(1)..(i + 2).min(matter.len())] {
                if (near.at.y - m.at.y).abs() <= 1 {
                    sum += near.thickness;
                    heights += near.thickness * near.place.y;
                }
            }
            let y = if sum > 0.0 { heights / sum } else { m.place.y };
            // Cells whose lower side is above what is stepped over and whose top reaches into a body.
            let is_free = matter[i + 1..].iter().all(|above| {
                let bottom = above.at.y as f32 - cells(y);
                bottom + 1.0 <= cells(STEP_OVER_M - MARGIN_M) || bottom >= cells(BODY_M + MARGIN_M)
            });
            if !is_free {
                continue;
            }
            let spot = Spot {
                column,
                y,
                room_m: 0.0,
                strength: m.thickness,
            };
            match best {
                // Of layers closer than what is stepped over, the densest: neither dust on the floor
                // nor a ghost of it below.
                Some((strongest, known)) if y - known.y < STEP_OVER_M => {
                    if m.thickness > matter[strongest].thickness {
                        best = Some((i, spot));
                    }
                }
                Some((_, known)) => {
                    self.spots.push(known);
                    best = Some((i, spot));
                }
                None => best = Some((i, spot)),
            }
        }
        self.spots.extend(best.map(|(_, spot)| spot));
    }

    /// Edge of a column, metres.
    #[must_use]
    pub fn cell_m(&self) -> f32 {
        self.cell_m
    }

    /// All spots.
    #[must_use]
    pub fn spots(&self) -> &[Spot] {
        &self.spots
    }

    /// Where a spot is in the world: the middle of its column, on the floor.
    #[must_use]
    pub fn place(&self, spot: u32) -> Vec3 {
        let spot = self.spots[spot as usize];
        let c = (spot.column + self.corner).as_vec2() + 0.5;
        Vec3::new(c.x * self.cell_m, spot.y, c.y * self.cell_m)
    }

    /// The spot under a point of the world (or above it, within a climb).
    #[must_use]
    pub fn under(&self, p: Vec3) -> Option<u32> {
        let column = (glam::Vec2::new(p.x, p.z) / self.cell_m).floor().as_ivec2() - self.corner;
        let range = self.range(column)?;
        range
            .rev()
            .find(|i| self.spots[*i as usize].y <= p.y + CLIMB_M)
    }

    /// The spots round a place, sideways, on its storey.
    pub(super) fn near(&self, p: Vec3, far_m: f32) -> Vec<u32> {
        let middle = (glam::Vec2::new(p.x, p.z) / self.cell_m).floor().as_ivec2() - self.corner;
        let reach = (far_m / self.cell_m).ceil() as i32;
        let mut found = Vec::new();
        for dz in -reach..=reach {
            for dx in -reach..=reach {
                if dx * dx + dz * dz <= reach * reach {
                    let column = middle + IVec2::new(dx, dz);
                    found.extend(self.at(column, p.y, 2.0 * CLIMB_M));
                }
            }
        }
        found
    }

    /// Height of the floor at a point between columns: the mean of the four round it.
    #[must_use]
    pub fn height(&self, p: Vec3) -> Option<f32> {
        let at = glam::Vec2::new(p.x, p.z) / self.cell_m - 0.5;
        let first = at.floor();
        let share = at - first;
        let first = first.as_ivec2() - self.corner;
        let (mut sum, mut heights) = (0.0, 0.0);
        for (dx, dz) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let column = first + IVec2::new(dx, dz);
            let weight = (if dx == 0 { 1.0 - share.x } else { share.x })
                * (if dz == 0 { 1.0 - share.y } else { share.y });
            if let Some(i) = self.at(column, p.y, STEP_OVER_M) {
                sum += weight;
                heights += weight * self.spots[i as usize].y;
            }
        }
        (sum > 0.0).then(|| heights / sum)
    }

    /// Square metres of floor.
    #[must_use]
    pub fn area_m2(&self) -> f32 {
        self.spots.len() as f32 * self.cell_m * self.cell_m
    }

    /// How far it reaches along x and z, metres.
    #[must_use]
    pub fn size_m(&self) -> glam::Vec2 {
        let columns = || self.spots.iter().map(|spot| spot.column);
        match (columns().reduce(IVec2::min), columns().reduce(IVec2::max)) {
            (Some(low), Some(high)) => (high - low + 1).as_vec2() * self.cell_m,
            _ => glam::Vec2::ZERO,
        }
    }

    fn range(&self, column: IVec2) -> Option<std::ops::Range<u32>> {
        let inside = column.min_element() >= 0 && column.x < self.size.x && column.y < self.size.y;
        inside.then(|| {
            let number = (column.y * self.size.x + column.x) as usize;
            self.starts[number]..self.starts[number + 1]
        })
    }

    /// The spot of a column that is nearest to a height, within `climb_m`.
    fn at(&self, column: IVec2, y: f32, climb_m: f32) -> Option<u32> {
        let off = |i: &u32| (self.spots[*i as usize].y - y).abs();
        self.range(column)?
            .filter(|i| off(i) <= climb_m)
            .min_by(|a, b| off(a).total_cmp(&off(b)))
    }

    /// The spot that a foot reaches from `spot` in one of the eight directions of [`AROUND`].
    fn beside(&self, spot: u32, way: IVec2) -> Option<u32> {
        let from = self.spots[spot as usize];
        self.at(from.column + way, from.y, CLIMB_M)
    }

    /// The spots beside one, with their distance, metres.
    pub(super) fn neighbours(&self, spot: u32) -> impl Iterator<Item = (u32, f32)> {
        AROUND.iter().enumerate().filter_map(move |(k, way)| {
            let length = if k < 4 { 1.0 } else { std::f32::consts::SQRT_2 };
            self.beside(spot, *way).map(|i| (i, length * self.cell_m))
        })
    }

    /// Which spots belong to the floor, by number.
    fn floor_region(&self) -> Option<Vec<bool>> {
        let count = self.spots.len();
        let mut region = vec![u32::MAX; count];
        // Spots, strength of the level ones and mean height of each.
        let mut regions: Vec<(usize, f32, f64)> = Vec::new();
        let mut open = Vec::new();
        for start in 0..count as u32 {
            if region[start as usize] != u32::MAX {
                continue;
            }
            let number = regions.len() as u32;
            let (mut size, mut level, mut heights) = (0, 0.0_f32, 0.0);
            region[start as usize] = number;
            open.push(start);
            while let Some(i) = open.pop() {
                size += 1;
                let y = self.spots[i as usize].y;
                heights += f64::from(y);
                let mut even = 0;
                for way in &AROUND[..4] {
                    let Some(j) = self.beside(i, *way) else {
                        continue;
                    };
                    even += usize::from((self.spots[j as usize].y - y).abs() <= LEVEL_M);
                    if region[j as usize] == u32::MAX {
                        region[j as usize] = number;
                        open.push(j);
                    }
                }
                if even >= 3 {
                    level += self.spots[i as usize].strength.min(STRONG);
                }
            }
            regions.push((size, level, heights / size as f64));
        }
        let largest = regions.iter().map(|r| r.0).max()?;
        if largest as f32 * self.cell_m * self.cell_m < AREA_M2_MIN {
            return None;
        }
        // Strength times its mean: wide haze is weaker than a floor wherever one looks.
        let rich = |r: &(usize, f32, f64)| r.1 * r.1 / r.0 as f32;
        let richest = regions.iter().map(rich).fold(0.0, f32::max);
        let is_large = |r: &(usize, f32, f64)| rich(r) >= LARGE * richest;
        let floor = (0..regions.len())
            .filter(|i| is_large(&regions[*i]))
            .min_by(|a, b| regions[*a].2.total_cmp(&regions[*b].2))?;
        Some(region.iter().map(|r| *r == floor as u32).collect())
    }

    fn keep(&mut self, is_kept: impl Fn(usize, &Spot) -> bool) {
        let spots: Vec<Spot> = self
            .spots
            .iter()
            .enumerate()
            .filter(|(i, spot)| is_kept(*i, spot))
            .map(|(_, spot)| *spot)
            .collect();
        self.set(spots);
    }

    /// Takes `spots` in any order.
    fn set(&mut self, mut spots: Vec<Spot>) {
        let number = |spot: &Spot| spot.column.y * self.size.x + spot.column.x;
        spots.par_sort_by(|a, b| number(a).cmp(&number(b)).then(a.y.total_cmp(&b.y)));
        let count = (self.size.x * self.size.y) as usize;
        let mut starts = vec![0_u32; count + 1];
        for spot in &spots {
            starts[number(spot) as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        self.starts = starts;
        self.spots = spots;
    }

    /// True when nothing is in the way of a body that stands there.
    fn is_free(&self, voxels: &Voxels, column: IVec2, y: f32) -> bool {
        let at = column + self.corner;
        let low = ((y + STEP_OVER_M - MARGIN_M) / self.cell_m).floor() as i32;
        let high = ((y + BODY_M + MARGIN_M) / self.cell_m).ceil() as i32;
        (low..high).all(|level| {
            voxels
                .matter_at(IVec3::new(at.x, level, at.y))
                .is_none_or(|m| m.opacity < OBSTACLE_OPACITY)
        })
    }

    /// Spots in holes of the floor: grown inwards from the edge, and taken back where that led out.
    fn fill_holes(&mut self, voxels: &Voxels) {
        let reach = (HOLE_M / self.cell_m).round().max(1.0) as u32;
        let real = self.spots.len();
        let mut spots = self.spots.clone();
        let mut front: Vec<Spot> = spots.clone();
        for _ in 0..reach {
            let mut grown: Vec<Spot> = Vec::new();
            for spot in &front {
                for way in AROUND {
                    let column = spot.column + way;
                    let is_new =
                        self.range(column).is_some() && self.at(column, spot.y, CLIMB_M).is_none();
                    if is_new {
                        grown.push(Spot { column, ..*spot });
                    }
                }
            }
            // Several edges reach the same column: the mean of their heights.
            let number = |spot: &Spot| spot.column.y * self.size.x + spot.column.x;
            grown.sort_by(|a, b| number(a).cmp(&number(b)).then(a.y.total_cmp(&b.y)));
            front = grown
                .chunk_by(|a, b| a.column == b.column && b.y - a.y < CLIMB_M)
                .map(|same| Spot {
                    y: same.iter().map(|s| s.y).sum::<f32>() / same.len() as f32,
                    ..same[0]
                })
                .collect();
            front = front
                .into_par_iter()
                .filter(|spot| self.is_free(voxels, spot.column, spot.y))
                .collect();
            if front.is_empty() {
                break;
            }
            spots.extend(front.iter().copied());
            self.set(spots.clone());
        }
        if spots.len() == real {
            return;
        }
        // What is nearer to the outside than it was grown leads out of the floor.
        let grown: std::collections::HashSet<_, std::hash::BuildHasherDefault<Fixed>> = spots
            [real..]
            .iter()
            .map(|s| (s.column.x, s.column.y, s.y.to_bits()))
            .collect();
        let out = self.steps_to_outside(reach);
        self.keep(|i, s| {
            out[i] > reach || !grown.contains(&(s.column.x, s.column.y, s.y.to_bits()))
        });
    }

    /// How many steps each spot is from the edge of the floor, walls and voids alike; counted up to
    /// `reach + 1`.
    fn steps_to_outside(&self, reach: u32) -> Vec<u32> {
        let mut steps = vec![reach + 1; self.spots.len()];
        let mut open = VecDeque::new();
        for i in 0..self.spots.len() as u32 {
            if AROUND.iter().any(|way| self.beside(i, *way).is_none()) {
                steps[i as usize] = 1;
                open.push_back(i);
            }
        }
        while let Some(i) = open.pop_front() {
            let next = steps[i as usize] + 1;
            if next > reach {
                continue;
            }
            for way in AROUND {
                if let Some(j) = self.beside(i, way)
                    && steps[j as usize] > next
                {
                    steps[j as usize] = next;
                    open.push_back(j);
                }
            }
        }
        steps
    }

    /// Heights become medians of what is round them.
    fn smooth(&mut self) {
        let heights: Vec<f32> = (0..self.spots.len())
            .into_par_iter()
            .map(|i| {
                let spot = self.spots[i];
                let mut near = Vec::with_capacity(((MEDIAN + 1) * (MEDIAN + 1)) as usize);
                // Every second one says as much.
                for dz in (-MEDIAN..=MEDIAN).step_by(2) {
                    for dx in (-MEDIAN..=MEDIAN).step_by(2) {
                        let column = spot.column + IVec2::new(dx, dz);
                        if let Some(j) = self.at(column, spot.y, TREAD_M) {
                            near.push(self.spots[j as usize].y);
                        }
                    }
                }
                let middle = near.len() / 2;
                *near.select_nth_unstable_by(middle, f32::total_cmp).1
            })
            .collect();
        for (spot, y) in self.spots.iter_mut().zip(heights) {
            spot.y = y;
        }
    }

    /// Makes floors of rooms under a roof level: rugs, and layers that a scan has twice, are not stepped
    /// on one by one. What is a step stays. `of_spot` is the room of each spot, by number, as
    /// [`super::Rooms`] has it; spots of no room take part in the room that they border on.
    pub(super) fn level(&mut self, rooms: usize, of_spot: &[u32], voxels: &Voxels) {
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); rooms];
        for (i, room) in of_spot.iter().enumerate() {
            if let Some(own) = members.get_mut(*room as usize) {
                own.push(i as u32);
            }
        }
        let levels: Vec<Option<f32>> = members
            .par_iter()
            .map(|own| {
                self.has_roof(own, voxels)
                    .then(|| self.usual_height(own))
                    .flatten()
            })
            .collect();
        if levels.iter().all(Option::is_none) {
            return;
        }
        // The level that is meant for each spot, and the room that it is of.
        let mut meant: Vec<Option<(u32, f32)>> = of_spot
            .iter()
            .map(|room| Some((*room, (*levels.get(*room as usize)?)?)))
            .collect();
        let mut open: VecDeque<u32> = (0..meant.len() as u32)
            .filter(|i| meant[*i as usize].is_some())
            .collect();
        while let Some(i) = open.pop_front() {
            for way in AROUND {
                if let Some(j) = self.beside(i, way)
                    && of_spot[j as usize] as usize >= rooms
                    && meant[j as usize].is_none()
                {
                    meant[j as usize] = meant[i as usize];
                    open.push_back(j);
                }
            }
        }
        let steps = self.steps(&meant);
        let mut heights: Vec<f32> = self.spots.iter().map(|s| s.y).collect();
        for (i, y) in heights.iter_mut().enumerate() {
            if let (Some((_, level)), false) = (meant[i], steps[i]) {
                *y = level;
            }
        }
        // Thresholds: the mean of what is round them.
        let smoothed: Vec<f32> = (0..self.spots.len())
            .into_par_iter()
            .map(|i| {
                let own = meant[i].map(|(room, _)| room);
                let (mut sum, mut count, mut is_border) = (0.0, 0.0, false);
                for dz in -THRESHOLD..=THRESHOLD {
                    for dx in -THRESHOLD..=THRESHOLD {
                        let column = self.spots[i].column + IVec2::new(dx, dz);
                        if let Some(j) = self.at(column, self.spots[i].y, CLIMB_M) {
                            let j = j as usize;
                            if (heights[j] - heights[i]).abs() > TREAD_M {
                                continue;
                            }
                            is_border |= meant[j].map(|(room, _)| room) != own;
                            sum += heights[j];
                            count += 1.0;
                        }
                    }
                }
                if is_border { sum / count } else { heights[i] }
            })
            .collect();
        for (spot, y) in self.spots.iter_mut().zip(smoothed) {
            spot.y = y;
        }
    }

    /// Whether most of some spots have something over them.
    fn has_roof(&self, spots: &[u32], voxels: &Voxels) -> bool {
        let (mut asked, mut roofed) = (0, 0);
        for i in spots {
            let column = self.spots[*i as usize].column;
            if column.x % ROOF_EVERY != 0 || column.y % ROOF_EVERY != 0 {
                continue;
            }
            let from = self.place(*i) + Vec3::Y * ROOF_M[0];
            asked += 1;
            let look = voxels.look(from, Vec3::Y, ROOF_M[1] - ROOF_M[0]);
            roofed += usize::from(look.distance_m.is_some());
        }
        asked > 0 && roofed as f32 >= ROOFED * asked as f32
    }

    /// The height at which most of some spots are.
    fn usual_height(&self, spots: &[u32]) -> Option<f32> {
        let mut known: Vec<(f32, f32)> = spots
            .iter()
            .map(|i| self.spots[*i as usize])
            .map(|s| (s.y, s.strength.min(STRONG)))
            .collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A window slides over them.
        let (mut from, mut sum, mut heights) = (0, 0.0_f64, 0.0_f64);
        let mut best: Option<(f64, f32)> = None;
        for to in 0..known.len() {
            let (y, strength) = known[to];
            sum += f64::from(strength);
            heights += f64::from(y * strength);
            while y - known[from].0 > 2.0 * LAYER_M {
                sum -= f64::from(known[from].1);
                heights -= f64::from(known[from].0 * known[from].1);
                from += 1;
            }
            if sum > 0.0 && best.is_none_or(|(most, _)| sum > most) {
                best = Some((sum, (heights / sum) as f32));
            }
        }
        best.map(|(_, y)| y)
    }

    /// Which spots are on a step: connected, far from the level that is meant, and many.
    fn steps(&self, meant: &[Option<(u32, f32)>]) -> Vec<bool> {
        let is_off = |i: u32| {
            meant[i as usize].is_some_and(|(_, y)| (self.spots[i as usize].y - y).abs() > RUG_M)
        };
        let least = (STEP_M2_MIN / (self.cell_m * self.cell_m)) as usize;
        let mut steps = vec![false; meant.len()];
        let mut seen = vec![false; meant.len()];
        for start in 0..meant.len() as u32 {
            if seen[start as usize] || !is_off(start) {
                continue;
            }
            let mut group = vec![start];
            seen[start as usize] = true;
            let mut next = 0;
            while next < group.len() {
                let i = group[next];
                next += 1;
                for way in &AROUND[..4] {
                    if let Some(j) = self.beside(i, *way)
                        && !seen[j as usize]
                        && is_off(j)
                    {
                        seen[j as usize] = true;
                        group.push(j);
                    }
                }
            }
            if group.len() >= least {
                for i in group {
                    steps[i as usize] = true;
                }
            }
        }
        steps
    }

    /// How far each spot is from where nobody can stand.
    fn measure(&mut self) {
        let mut room: Vec<f32> = vec![f32::INFINITY; self.spots.len()];
        let mut open = BinaryHeap::new();
        for i in 0..self.spots.len() as u32 {
            let missing = AROUND.iter().position(|way| self.beside(i, *way).is_none());
            if let Some(k) = missing {
                // From the middle of this column to the side of the other.
                let first = if k < 4 {
                    0.5
                } else {
                    0.5 * std::f32::consts::SQRT_2
                };
                room[i as usize] = first * self.cell_m;
                open.push((std::cmp::Reverse(room[i as usize].to_bits()), i));
            }
        }
        // Dijkstra; bits of floats above 0 are in the order of the floats.
        while let Some((std::cmp::Reverse(bits), i)) = open.pop() {
            let far = f32::from_bits(bits);
            if far > room[i as usize] {
                continue;
            }
            for (j, step) in self.neighbours(i) {
                if far + step < room[j as usize] {
                    room[j as usize] = far + step;
                    open.push((std::cmp::Reverse((far + step).to_bits()), j));
                }
            }
        }
        for (spot, room_m) in self.spots.iter_mut().zip(room) {
            spot.room_m = room_m;
        }
    }
}

/// A hasher that is the same on every run.
#[derive(Default)]
struct Fixed(u64);

impl std::hash::Hasher for Fixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
