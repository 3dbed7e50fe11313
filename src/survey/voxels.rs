//! A sparse grid of cells over placed splats, and questions to it: what does a ray meet, where is the
//! ground, how far is the next wall.
//!
//! It finds no floor and no way; that is the rest of `survey`. A cell holds the summed opacity and the
//! optical thickness of what lies in it, its mean colour (band 0, display space) and where in the
//! cell it lies. Cells hang in bricks of 4x4x4, bricks in blocks of 4x4x4, blocks in a hash table, so
//! rays cross what is empty in long strides. Splats that would fill too many cells, such as a painted
//! sky, go to coarser grids, which rays cross at the same time. Bodies are taken at rest and edits
//! are not applied.

use super::fill::{self, Rows};
use crate::scene::{Placement, Splats};
use glam::{IVec3, Vec3};
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Edge of a cell where nobody asks for another, metres.
pub const CELL_M: f32 = 0.05;
/// Smallest and largest edge that can be asked for, metres.
pub const CELL_M_RANGE: [f64; 2] = [0.01, 10.0];
/// From this summed opacity on a cell is in the way of a body.
pub const SOLID_OPACITY: f32 = 0.5;
/// Furthest that [`Voxels::clearance`] looks, metres.
pub const CLEARANCE_M_MAX: f32 = 2.0;
/// How far below a point [`Voxels::ground`] looks, metres.
pub const GROUND_M_MAX: f32 = 50.0;
/// A ray ends where less than this is left of the light: under the rounding of 8 bits.
const LIGHT_MIN: f32 = 1.0 / 512.0;

/// Cells of a brick along an edge.
pub(super) const SIDE_CELLS: i32 = 4;
/// Cells of a block along an edge.
pub(super) const SUPER_CELLS: i32 = 16;
/// How much larger the cells of the next grid are.
const COARSER: f32 = 4.0;
/// Grids: the fifth has cells 256 times as large as the first.
const LEVELS_MAX: usize = 5;
/// Cells are not made larger than this, metres.
const CELL_M_LAST: f32 = 1e4;
/// Steps of stored opacity and thickness: 1/512 up to 128.
const STORED: f32 = 512.0;

/// Splats as they stand in the world.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// What is there.
    pub splats: &'a Splats,
    /// Where.
    pub placement: Placement,
    /// Times colour.
    pub tint: Vec3,
    /// Times opacity.
    pub opacity: f32,
}

impl<'a> Placed<'a> {
    /// Splats that stand as they are.
    #[must_use]
    pub fn plain(splats: &'a Splats) -> Self {
        Self {
            splats,
            placement: Placement::default(),
            tint: Vec3::ONE,
            opacity: 1.0,
        }
    }
}

/// What a ray met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Where half of the light is gone, metres from the origin; `None` where more than half gets
    /// through.
    pub distance_m: Option<f32>,
    /// What is seen of the splats, display space: add `(1 - seen)` times the background.
    pub colour: Vec3,
    /// Share of the picture that is splats, 0 to 1.
    pub seen: f32,
}

/// What is in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matter {
    /// The cell's corner, in cells from the origin.
    pub at: IVec3,
    /// Summed opacity of its splats.
    pub opacity: f32,
    /// Optical thickness of a whole cell.
    pub thickness: f32,
    /// Mean colour, display space.
    pub colour: Vec3,
    /// Where its splats are on the whole, metres.
    pub place: Vec3,
}

/// Sparse cells over splats: see the module docs.
#[derive(Debug)]
pub struct Voxels {
    /// Finest first.
    levels: Vec<Level>,
}

/// One cell, packed in 10 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    opacity: u16,
    thickness: u16,
    colour: [u8; 3],
    place: [u8; 3],
}

impl Cell {
    /// A cell of sums; `None` where nothing is left after rounding. `colour` and `place` are times
    /// thickness.
    pub(super) fn new(opacity: f32, thickness: f32, colour: Vec3, place: Vec3) -> Option<Self> {
        // A cast of floats saturates, which is what is wanted of a heap of a million splats.
        let stored = |v: f32| (v * STORED).round() as u16;
        let (o, t) = (stored(opacity), stored(thickness));
        if o == 0 && t == 0 {
            return None;
        }
        let share = 255.0 / thickness.max(f32::MIN_POSITIVE);
        Some(Self {
            opacity: o,
            thickness: t,
            colour: (colour * share).to_array().map(|c| c.round() as u8),
            place: (place * share).to_array().map(|c| c.round() as u8),
        })
    }

    fn opacity(self) -> f32 {
        f32::from(self.opacity) / STORED
    }

    fn thickness(self) -> f32 {
        f32::from(self.thickness) / STORED
    }

    fn colour(self) -> Vec3 {
        Vec3::from(self.colour.map(f32::from)) / 255.0
    }

    /// Where in the cell it is on the whole, in cells.
    fn place(self) -> Vec3 {
        Vec3::from(self.place.map(f32::from)) / 255.0
    }
}

/// 4x4x4 bricks.
#[derive(Debug)]
pub(super) struct Block {
    key: u64,
    /// Which bricks are there.
    mask: u64,
    bricks: Vec<Brick>,
}

/// 4x4x4 cells.
#[derive(Clone, Copy, Debug)]
struct Brick {
    /// Which cells are there.
    mask: u64,
    /// Of its cells.
    first: u32,
}

impl Block {
    pub(super) fn new(key: u64) -> Self {
        Self {
            key,
            mask: 0,
            bricks: Vec::new(),
        }
    }

    /// Adds brick `number`, larger than those before, whose cells begin at `first`.
    pub(super) fn push(&mut self, number: u32, mask: u64, first: u32) {
        self.mask |= 1 << number;
        self.bricks.push(Brick { mask, first });
    }

    fn brick(&self, number: u32) -> Option<Brick> {
        ranked(self.mask, number).map(|rank| self.bricks[rank])
    }
}

/// Where `bit` stands among the bits that are set, where it is.
fn ranked(mask: u64, bit: u32) -> Option<usize> {
    let below = (1_u64 << bit) - 1;
    (mask >> bit & 1 == 1).then(|| (mask & below).count_ones() as usize)
}

/// Spreads the bits of a block's key: the same on every run, unlike the standard one.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte) ^ self.0);
        }
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// One grid.
#[derive(Debug)]
pub(super) struct Level {
    cell_m: f32,
    numbers: HashMap<u64, u32, BuildHasherDefault<KeyHasher>>,
    /// In order of keys.
    blocks: Vec<Block>,
    cells: Vec<Cell>,
    /// Cells that may be there: first and one after the last, by axis.
    bounds: [IVec3; 2],
}

/// Where a ray is in one grid.
struct Cursor {
    /// Until where what was found holds, metres along the ray.
    until_m: f32,
    cell: Option<Cell>,
    /// The block that was looked up last, and its number.
    block: (IVec3, Option<u32>),
    /// The part of the ray that crosses the grid at all.
    inside_m: [f32; 2],
}

impl Level {
    /// A grid of blocks in order of their keys, each with its own cells.
    pub(super) fn new(cell_m: f32, filled: Vec<(Block, Vec<Cell>)>) -> Self {
        let mut level = Self {
            cell_m,
            numbers: HashMap::default(),
            blocks: Vec::with_capacity(filled.len()),
            cells: Vec::with_capacity(filled.iter().map(|(_, cells)| cells.len()).sum()),
            bounds: [IVec3::MAX, IVec3::MIN],
        };
        for (mut block, cells) in filled {
            if block.mask == 0 {
                continue;
            }
            let start = level.cells.len() as u32;
            for brick in &mut block.bricks {
                brick.first += start;
            }
            level.cells.extend(cells);
            let low = fill::block_of(block.key) * SUPER_CELLS;
            level.bounds[0] = level.bounds[0].min(low);
            level.bounds[1] = level.bounds[1].max(low + SUPER_CELLS);
            level.numbers.insert(block.key, level.blocks.len() as u32);
            level.blocks.push(block);
        }
        level
    }

    fn cell(&self, at: IVec3) -> Option<Cell> {
        let block = at.div_euclid(IVec3::splat(SUPER_CELLS));
        let number = *self.numbers.get(&fill::key(block)?)?;
        let slot = fill::slot(at - block * SUPER_CELLS);
        let brick = self.blocks[number as usize].brick((slot / 64) as u32)?;
        let rank = ranked(brick.mask, (slot % 64) as u32)?;
        Some(self.cells[brick.first as usize + rank])
    }

    fn is_solid(&self, at: IVec3) -> bool {
        self.cell(at)
            .is_some_and(|cell| cell.opacity() >= SOLID_OPACITY)
    }

    fn cursor(&self, origin: Vec3, inverse: Vec3, max_m: f32) -> Cursor {
        let mut inside_m = [0.0_f32, max_m];
        if self.blocks.is_empty() {
            inside_m = [f32::INFINITY; 2];
        } else {
            let low = (self.bounds[0].as_vec3() * self.cell_m - origin) * inverse;
            let high = (self.bounds[1].as_vec3() * self.cell_m - origin) * inverse;
            inside_m[0] = inside_m[0].max(low.min(high).max_element());
            inside_m[1] = inside_m[1].min(low.max(high).min_element());
            if inside_m[0] >= inside_m[1] {
                inside_m = [f32::INFINITY; 2];
            }
        }
        Cursor {
            until_m: 0.0,
            cell: None,
            block: (IVec3::MAX, None),
            inside_m,
        }
    }

    /// Looks up what lies `at_m` along a ray and until where that holds.
    fn step(&self, cursor: &mut Cursor, origin: Vec3, way: Vec3, inverse: Vec3, at_m: f32) {
        cursor.cell = None;
        if at_m < cursor.inside_m[0] {
            cursor.until_m = cursor.inside_m[0];
            return;
        }
        if at_m >= cursor.inside_m[1] {
            cursor.until_m = f32::INFINITY;
            return;
        }
        // A little further, so that a ray on a face is in the cell that it enters.
        // Far out that is what rounding leaves.
        let coarse_m = (at_m.max(origin.abs().max_element())) * 1e-6;
        let slack_m = (self.cell_m * 1e-3).max(coarse_m);
        let at = ((origin + way * (at_m + slack_m)) / self.cell_m).floor();
        let cell = at.as_ivec3();
        let block = cell >> 4_i32;
        if block != cursor.block.0 {
            let number = fill::key(block).and_then(|key| self.numbers.get(&key).copied());
            cursor.block = (block, number);
        }
        // The largest empty box, or the cell.
        let mut size = SUPER_CELLS;
        if let Some(number) = cursor.block.1 {
            let slot = fill::slot(cell - (block << 4_i32));
            size = SIDE_CELLS;
            if let Some(brick) = self.blocks[number as usize].brick((slot / 64) as u32) {
                size = 1;
                if let Some(rank) = ranked(brick.mask, (slot % 64) as u32) {
                    cursor.cell = Some(self.cells[brick.first as usize + rank]);
                }
            }
        }
        let low = IVec3::new(
            cell.x & !(size - 1),
            cell.y & !(size - 1),
            cell.z & !(size - 1),
        );
        let near = (low.as_vec3() * self.cell_m - origin) * inverse;
        let far = ((low + size).as_vec3() * self.cell_m - origin) * inverse;
        cursor.until_m = near.max(far).min_element().max(at_m + slack_m);
    }
}

impl Voxels {
    /// Fills cells of `cell_m` (metres, held in [`CELL_M_RANGE`]) with splats. Where that would be too
    /// many, they are made twice as large, and again. `progress` is told shares of the work, 0 to 1.
    #[must_use]
    pub fn build(draws: &[Placed<'_>], cell_m: f32, progress: &(dyn Fn(f32) + Sync)) -> Self {
        let rows = Rows::new(draws);
        let mut cell_m = cell_m.clamp(CELL_M_RANGE[0] as f32, CELL_M_RANGE[1] as f32);
        let mut levels = Vec::new();
        if u32::try_from(rows.len()).is_err() {
            return Self { levels };
        }
        let all: Vec<u32> = (0..rows.len() as u32).collect();
        let split = loop {
            let split = rows.split(&all, cell_m);
            let is_last = cell_m >= CELL_M_LAST;
            if (is_last || !split.is_too_much())
                && let Some(level) = fill::fill(&rows, &split.here, cell_m, progress)
            {
                levels.push(level);
                break split;
            }
            if is_last {
                // Millions of huge splats are no scan.
                return Self { levels };
            }
            cell_m *= 2.0;
        };
        drop(all);
        let mut larger = split.larger;
        while !larger.is_empty() && levels.len() < LEVELS_MAX {
            cell_m *= COARSER;
            let split = rows.split(&larger, cell_m);
            if split.is_too_much() {
                break;
            }
            let Some(level) = fill::fill(&rows, &split.here, cell_m, &|_| ()) else {
                break;
            };
            levels.push(level);
            larger = split.larger;
        }
        Self { levels }
    }

    /// Edge of the finest cells, metres.
    #[must_use]
    pub fn cell_m(&self) -> f32 {
        self.levels.first().map_or(CELL_M, |level| level.cell_m)
    }

    /// Cells that hold anything.
    #[must_use]
    pub fn count(&self) -> usize {
        self.levels.iter().map(|level| level.cells.len()).sum()
    }

    /// Every cell of the finest grid, in an order that is the same every time.
    pub fn matter(&self) -> impl Iterator<Item = Matter> {
        self.levels.first().into_iter().flat_map(Level::matter)
    }

    /// What is in the finest cell `at`, where there is anything.
    #[must_use]
    pub fn matter_at(&self, at: IVec3) -> Option<Matter> {
        let level = self.levels.first()?;
        level.cell(at).map(|cell| level.matter_of(at, cell))
    }

    /// Follows a ray for `max_m` metres at most. `direction` may have any length; one of no length
    /// meets nothing.
    #[must_use]
    pub fn look(&self, origin: Vec3, direction: Vec3, max_m: f32) -> Look {
        let mut look = Look {
            distance_m: None,
            colour: Vec3::ZERO,
            seen: 0.0,
        };
        let Some(way) = direction.try_normalize() else {
            return look;
        };
        // An axis along which nothing moves is never the one that is left.
        let inverse = way.map(|c| if c.abs() < 1e-9 { 1e9 } else { 1.0 / c });
        let mut cursors: Vec<Cursor> = Vec::with_capacity(LEVELS_MAX);
        cursors.extend(
            self.levels
                .iter()
                .map(|level| level.cursor(origin, inverse, max_m)),
        );
        let (mut at_m, mut thickness, mut light) = (0.0_f32, 0.0_f32, 1.0_f32);
        while at_m < max_m {
            let mut next_m = max_m;
            let (mut dense, mut mixed) = (0.0_f32, Vec3::ZERO);
            for (level, cursor) in self.levels.iter().zip(&mut cursors) {
                if cursor.until_m <= at_m {
                    level.step(cursor, origin, way, inverse, at_m);
                }
                next_m = next_m.min(cursor.until_m);
                if let Some(cell) = cursor.cell {
                    let own = cell.thickness() / level.cell_m;
                    dense += own;
                    mixed += own * cell.colour();
                }
            }
            if dense > 0.0 {
                let added = dense * (next_m - at_m);
                if look.distance_m.is_none() && thickness + added >= std::f32::consts::LN_2 {
                    look.distance_m = Some(at_m + (std::f32::consts::LN_2 - thickness) / dense);
                }
                thickness += added;
                let left = (-thickness).exp();
                look.colour += mixed * ((light - left) / dense);
                light = left;
                if light < LIGHT_MIN {
                    break;
                }
            }
            at_m = next_m;
        }
        look.seen = 1.0 - light;
        look
    }

    /// Height of the first solid thing straight below `p`, metres: the level of its splats, not of
    /// cells. `None` where there is none within [`GROUND_M_MAX`].
    #[must_use]
    pub fn ground(&self, p: Vec3) -> Option<f32> {
        self.levels.iter().find_map(|level| level.ground(p))
    }

    /// How far from the upright line over `foot` the next solid cell is, between `low_m` and `high_m`
    /// above it: metres, sideways, 0 inside of one, at most [`CLEARANCE_M_MAX`].
    #[must_use]
    pub fn clearance(&self, foot: Vec3, low_m: f32, high_m: f32) -> f32 {
        self.clearance_of(foot, low_m, high_m, SOLID_OPACITY)
    }

    /// The same with another summed opacity than [`SOLID_OPACITY`].
    #[must_use]
    pub fn clearance_of(&self, foot: Vec3, low_m: f32, high_m: f32, opacity: f32) -> f32 {
        self.levels.first().map_or(CLEARANCE_M_MAX, |level| {
            level.clearance(foot, low_m, high_m, opacity)
        })
    }
}

impl Voxels {
    /// Sets what is in the way of a body by others' word: `is_solid` says it of the middle of a finest cell,
    /// `None` where it does not know. Cells at `places` are solid even where no splat is.
    pub(super) fn set_solid(
        &mut self,
        is_solid: &(dyn Fn(Vec3) -> Option<bool> + Sync),
        places: &[Vec3],
    ) {
        if let Some(level) = self.levels.first_mut() {
            level.set_solid(is_solid, places);
        }
    }
}

impl Level {
    fn set_solid(&mut self, is_solid: &(dyn Fn(Vec3) -> Option<bool> + Sync), places: &[Vec3]) {
        // A cell of which others know only that it is solid: so thin that what splats say counts.
        let told = Cell {
            opacity: STORED as u16,
            thickness: 1,
            colour: [128; 3],
            place: [128; 3],
        };
        let mut more: Vec<(u64, usize)> = places
            .iter()
            .map(|p| (*p / self.cell_m).floor().as_ivec3())
            .filter(|at| self.cell(*at).is_none())
            .filter_map(|at| {
                let block = at >> 4_i32;
                Some((fill::key(block)?, fill::slot(at - (block << 4_i32))))
            })
            .collect();
        more.sort_unstable();
        more.dedup();
        let mut keys: Vec<u64> = self.blocks.iter().map(|b| b.key).collect();
        keys.extend(more.iter().map(|m| m.0));
        keys.sort_unstable();
        keys.dedup();
        let filled: Vec<(Block, Vec<Cell>)> = keys
            .par_iter()
            .map(|key| {
                let corner = fill::block_of(*key) << 4_i32;
                let known = self
                    .numbers
                    .get(key)
                    .map(|number| &self.blocks[*number as usize]);
                let from = more.partition_point(|m| m.0 < *key);
                let to = more.partition_point(|m| m.0 <= *key);
                let mut added = more[from..to].iter().map(|m| m.1).peekable();
                let (mut block, mut cells) = (Block::new(*key), Vec::new());
                for number in 0..64_u32 {
                    let brick = known.and_then(|b| b.brick(number));
                    let (mut mask, first) = (0_u64, cells.len() as u32);
                    for inner in 0..64_u32 {
                        let slot = (number * 64 + inner) as usize;
                        let is_added = added.next_if_eq(&slot).is_some();
                        let rank = brick.and_then(|b| ranked(b.mask, inner).map(|r| (b, r)));
                        let cell = if let Some((brick, rank)) = rank {
                            let mut cell = self.cells[brick.first as usize + rank];
                            let at = corner + corner_of(number) * SIDE_CELLS + corner_of(inner);
                            match is_solid((at.as_vec3() + 0.5) * self.cell_m) {
                                Some(true) => cell.opacity = cell.opacity.max(told.opacity),
                                Some(false) => cell.opacity = 0,
                                None => {}
                            }
                            cell
                        } else if is_added {
                            told
                        } else {
                            continue;
                        };
                        mask |= 1 << inner;
                        cells.push(cell);
                    }
                    if mask != 0 {
                        block.push(number, mask, first);
                    }
                }
                (block, cells)
            })
            .collect();
        *self = Self::new(self.cell_m, filled);
    }

    fn matter(&self) -> impl Iterator<Item = Matter> {
        self.blocks.iter().flat_map(move |block| {
            let corner = fill::block_of(block.key) << 4_i32;
            let bricks = bits(block.mask).zip(&block.bricks);
            bricks.flat_map(move |(number, brick)| {
                let corner = corner + corner_of(number) * SIDE_CELLS;
                bits(brick.mask).enumerate().map(move |(rank, inner)| {
                    let cell = self.cells[brick.first as usize + rank];
                    self.matter_of(corner + corner_of(inner), cell)
                })
            })
        })
    }

    fn matter_of(&self, at: IVec3, cell: Cell) -> Matter {
        Matter {
            at,
            opacity: cell.opacity(),
            thickness: cell.thickness(),
            colour: cell.colour(),
            place: (at.as_vec3() + cell.place()) * self.cell_m,
        }
    }

    fn ground(&self, p: Vec3) -> Option<f32> {
        let at = p / self.cell_m;
        if self.blocks.is_empty() || at.abs().max_element() >= (i32::MAX / 2) as f32 {
            return None;
        }
        let start = at.floor().as_ivec3();
        let top = start.y.min(self.bounds[1].y - 1);
        let lowest = start
            .y
            .saturating_sub((GROUND_M_MAX / self.cell_m) as i32)
            .max(self.bounds[0].y);
        let mut y = top;
        while y >= lowest {
            let here = IVec3::new(start.x, y, start.z);
            let block = here >> 4_i32;
            if fill::key(block).is_none_or(|key| !self.numbers.contains_key(&key)) {
                y = (block.y << 4) - 1;
                continue;
            }
            if self.is_solid(here) {
                return Some(self.surface(here));
            }
            y -= 1;
        }
        None
    }

    /// Height of the surface in a solid cell: a layer of splats may lie in two cells, one above the
    /// other.
    fn surface(&self, at: IVec3) -> f32 {
        let (mut sum, mut heights) = (0.0, 0.0);
        for up in -1..=1 {
            let here = at + IVec3::new(0, up, 0);
            if let Some(cell) = self.cell(here) {
                let thickness = cell.thickness();
                sum += thickness;
                heights += thickness * (here.y as f32 + cell.place().y);
            }
        }
        if sum > 0.0 {
            heights / sum * self.cell_m
        } else {
            (at.y as f32 + 0.5) * self.cell_m
        }
    }

    fn clearance(&self, foot: Vec3, low_m: f32, high_m: f32, opacity: f32) -> f32 {
        let far = (i32::MAX / 2) as f32;
        let low = Vec3::new(
            foot.x - CLEARANCE_M_MAX,
            foot.y + low_m,
            foot.z - CLEARANCE_M_MAX,
        ) / self.cell_m;
        let high = Vec3::new(
            foot.x + CLEARANCE_M_MAX,
            foot.y + high_m,
            foot.z + CLEARANCE_M_MAX,
        ) / self.cell_m;
        if self.blocks.is_empty()
            || low.abs().max_element() >= far
            || high.abs().max_element() >= far
        {
            return CLEARANCE_M_MAX;
        }
        let low = low.floor().as_ivec3().max(self.bounds[0]);
        let high = high.floor().as_ivec3().min(self.bounds[1] - 1);
        let mut nearest = CLEARANCE_M_MAX;
        // Sideways distance of a box of cells from the line.
        let distance = |corner: IVec3, size: i32| {
            let near = corner.as_vec3() * self.cell_m;
            let far = (corner + size).as_vec3() * self.cell_m;
            let dx = (near.x - foot.x).max(foot.x - far.x).max(0.0);
            let dz = (near.z - foot.z).max(foot.z - far.z).max(0.0);
            dx.hypot(dz)
        };
        let (first, last) = (low >> 4_i32, high >> 4_i32);
        for z in first.z..=last.z {
            for y in first.y..=last.y {
                for x in first.x..=last.x {
                    let at = IVec3::new(x, y, z);
                    let corner = at << 4_i32;
                    if distance(corner, SUPER_CELLS) >= nearest {
                        continue;
                    }
                    let Some(number) = fill::key(at).and_then(|key| self.numbers.get(&key)) else {
                        continue;
                    };
                    let block = &self.blocks[*number as usize];
                    for (brick_number, brick) in bits(block.mask).zip(&block.bricks) {
                        let brick_corner = corner + corner_of(brick_number) * SIDE_CELLS;
                        if distance(brick_corner, SIDE_CELLS) >= nearest {
                            continue;
                        }
                        for (rank, inner) in bits(brick.mask).enumerate() {
                            let cell = brick_corner + corner_of(inner);
                            if cell.y >= low.y
                                && cell.y <= high.y
                                && self.cells[brick.first as usize + rank].opacity() >= opacity
                            {
                                nearest = nearest.min(distance(cell, 1));
                            }
                        }
                    }
                }
            }
        }
        nearest
    }
}

/// The bits that are set, lowest first.
fn bits(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros();
            mask &= mask - 1;
            bit
        })
    })
}

/// Place of brick or cell `number` of 4x4x4.
fn corner_of(number: u32) -> IVec3 {
    IVec3::new(
        (number & 3) as i32,
        (number >> 2 & 3) as i32,
        (number >> 4) as i32,
    )
}
