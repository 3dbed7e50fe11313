//! Splats into cells: each splat becomes samples over its extent, and cells add up what falls in.
//!
//! It asks nothing of the cells; that is `voxels`. A splat is cut into points on a grid along its own
//! axes, closer than a cell and weighted by its bell, so a wide flat splat fills the cells that it
//! covers and a small one its own. Work is shared out by blocks of space, and each block adds in the
//! order of rows: sums do not depend on the number of threads.

use super::voxels::{Block, Cell, Level, Placed, SUPER_CELLS};
use crate::scene::sh::SH_C0;
use glam::{IVec3, Mat3, Vec3};
use rayon::prelude::*;

/// Samples reach so many standard deviations from the centre.
const REACH_SIGMA: f32 = 2.2;
/// Distance of samples along an axis, in cells: below 1, so that a surface has no holes.
const SPACING_CELLS: f32 = 0.8;
/// An axis shorter than this is one sample, in cells (standard deviation).
const POINT_CELLS: f32 = 0.25;
/// Samples of one piece of a splat along each axis: a piece is smaller than a block of cells.
const PIECE: u32 = 16;
/// A splat with more samples than this belongs to a coarser level.
const SAMPLES_MAX: u64 = 8_192;
/// So does one that is a cloud to finer cells: that many samples along its shortest axis.
const CLOUD: u32 = 12;
/// Most pieces of splats that are kept at once (16 bytes each): beyond it cells are made larger.
const PIECES_MAX: u64 = 48 << 20;
/// Most samples of one level: some ten seconds of two cores. A scan in a unit ten times too small has more,
/// and gets larger cells.
const ALL_SAMPLES_MAX: u64 = 1_000_000_000;
/// Most cells of one level: twice those of a flat of eighteen rooms. What asks them needs some fifty bytes for
/// each.
const CELLS_MAX: usize = 48_000_000;
/// One block of so many tells how many cells there will be.
const PROBED: usize = 32;
/// Splats more transparent than this are not drawn, so they fill nothing.
const OPACITY_MIN: f32 = 1.0 / 255.0;
/// Rows that a thread takes at once.
const CHUNK: usize = 1 << 16;
/// Blocks are numbered within this distance of the origin on each axis; what is further out is
/// dropped. At 5 cm a cell that is 838 km.
const BLOCK_MAX: i32 = (1 << 20) - 1;

/// One splat as a grid of samples.
struct Plan {
    centre: Vec3,
    /// Steps between samples along the splat's own axes, world space, metres.
    steps: [Vec3; 3],
    /// Samples along each.
    counts: [u32; 3],
    /// Opacity that all samples share out.
    opacity: f32,
    /// Optical thickness that they share out.
    thickness: f32,
    /// Display space, 0 to 1.
    colour: Vec3,
}

/// A piece of a splat in a block of cells. Sorted, pieces of a block come by row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    block: u64,
    row: u32,
    /// Which piece of the splat: the one of the first axis fastest.
    index: u32,
}

/// How many samples a splat has along an axis of `sigma_m`.
fn count_along(sigma_m: f32, cell_m: f32) -> u32 {
    let sigma = sigma_m / cell_m;
    if sigma < POINT_CELLS {
        1
    } else {
        (2.0 * REACH_SIGMA * sigma / SPACING_CELLS).ceil() as u32
    }
}

/// All draws as one list of rows.
pub(super) struct Rows<'a> {
    draws: &'a [Placed<'a>],
    /// Row numbers at which draws begin, and the end.
    starts: Vec<usize>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(draws: &'a [Placed<'a>]) -> Self {
        let mut starts = vec![0];
        for draw in draws {
            starts.push(starts[starts.len() - 1] + draw.splats.len());
        }
        Self { draws, starts }
    }

    pub(super) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn find(&self, row: usize) -> (&Placed<'a>, usize) {
        let draw = self.starts.partition_point(|s| *s <= row) - 1;
        (&self.draws[draw], row - self.starts[draw])
    }

    /// How many samples the splat has at a cell size, along its axes; `None` for what is not drawn.
    fn counts(&self, row: usize, cell_m: f32) -> Option<[u32; 3]> {
        let (draw, index) = self.find(row);
        let splats = draw.splats;
        let opacity = splats.opacities[index] * draw.opacity;
        let log_scale = splats.log_scales[index];
        let is_drawn = opacity >= OPACITY_MIN
            && opacity.is_finite()
            && splats.means[index].is_finite()
            && splats.rotations[index].is_finite()
            && splats.dc[index].is_finite()
            && !log_scale.is_nan()
            // Wider than that is no splat but a mistake.
            && log_scale.max_element() < 20.0;
        is_drawn.then(|| {
            let sigma = log_scale.map(f32::exp) * draw.placement.scale;
            sigma.to_array().map(|s| count_along(s, cell_m))
        })
    }

    /// The samples of a splat that is drawn.
    fn plan(&self, row: usize, cell_m: f32) -> Option<Plan> {
        let counts = self.counts(row, cell_m)?;
        let (draw, index) = self.find(row);
        let splats = draw.splats;
        let opacity = (splats.opacities[index] * draw.opacity).min(0.99);
        let sigma = splats.log_scales[index].map(f32::exp) * draw.placement.scale;
        let axes = Mat3::from_quat(draw.placement.rotation * splats.rotations[index].normalize());
        let step = |axis: usize| {
            let length = 2.0 * REACH_SIGMA * sigma[axis] / counts[axis] as f32;
            axes.col(axis) * if counts[axis] > 1 { length } else { 0.0 }
        };
        // What it covers of a cell's face, seen along its shortest axis: the two longer ones count.
        let product = sigma.x * sigma.y * sigma.z;
        let shortest = sigma.min_element();
        let across = if shortest > 0.0 {
            product / shortest
        } else {
            // A splat without thickness: the product of the two others is the largest of the pairs.
            (sigma.x * sigma.y)
                .max(sigma.y * sigma.z)
                .max(sigma.x * sigma.z)
        };
        let area = std::f32::consts::TAU * across / (cell_m * cell_m);
        let o = opacity;
        // The mean over its area of -ln(1 - alpha), as a series: what it takes from light.
        let taken = o + o * o / 4.0 + o * o * o / 9.0 + o * o * o * o / 16.0;
        let base = Vec3::splat(0.5) + SH_C0 * splats.dc[index];
        Some(Plan {
            centre: draw.placement.apply(splats.means[index]),
            steps: [step(0), step(1), step(2)],
            counts,
            opacity: o * area.max(1.0),
            thickness: taken * area,
            colour: (base * draw.tint).clamp(Vec3::ZERO, Vec3::ONE),
        })
    }

    /// Of the rows `of` those that a level of `cell_m` can hold and those that are too large for it, in
    /// their order, and the number of pieces of the first. What is not drawn is in neither.
    pub(super) fn split(&self, of: &[u32], cell_m: f32) -> Split {
        let parts: Vec<Split> = of
            .par_chunks(CHUNK)
            .map(|rows| {
                let mut part = Split::default();
                for row in rows {
                    let Some(counts) = self.counts(*row as usize, cell_m) else {
                        continue;
                    };
                    if fits(&counts) {
                        part.here.push(*row);
                        part.samples += counts.iter().map(|n| u64::from(*n)).product::<u64>();
                        part.pieces += u64::from(pieces_of(&counts).iter().product::<u32>());
                    } else {
                        part.larger.push(*row);
                    }
                }
                part
            })
            .collect();
        let mut whole = Split::default();
        for part in parts {
            whole.here.extend(part.here);
            whole.larger.extend(part.larger);
            whole.pieces += part.pieces;
            whole.samples += part.samples;
        }
        whole
    }
}

/// What [`Rows::split`] returns.
#[derive(Default)]
pub(super) struct Split {
    pub here: Vec<u32>,
    pub larger: Vec<u32>,
    pub pieces: u64,
    pub samples: u64,
}

impl Split {
    /// Whether a level of these splats would take too long or hold too much.
    pub(super) fn is_too_much(&self) -> bool {
        self.pieces > PIECES_MAX || self.samples > ALL_SAMPLES_MAX
    }
}

/// Whether a splat of so many samples is small enough for a level.
fn fits(counts: &[u32; 3]) -> bool {
    let samples = counts
        .iter()
        .fold(1_u64, |n, c| n.saturating_mul(u64::from(*c)));
    let shortest = counts.iter().min().copied().unwrap_or(1);
    samples <= SAMPLES_MAX && shortest < CLOUD
}

fn pieces_of(counts: &[u32; 3]) -> [u32; 3] {
    counts.map(|c| c.div_ceil(PIECE))
}

/// The samples of one piece along one axis: first and last.
fn span(count: u32, piece: u32) -> (u32, u32) {
    (piece * PIECE, ((piece + 1) * PIECE).min(count) - 1)
}

/// Where sample `i` of `count` lies from the centre, in steps.
fn offset(count: u32, i: u32) -> f32 {
    i as f32 - 0.5 * (count - 1) as f32
}

/// The bell's weight of sample `i`, before it is made to sum up to 1.
fn weight(count: u32, i: u32) -> f32 {
    let sigma = offset(count, i) * (2.0 * REACH_SIGMA / count as f32);
    if count == 1 {
        1.0
    } else {
        (-0.5 * sigma * sigma).exp()
    }
}

/// The key of a block of cells, or `None` where it is too far out.
pub(super) fn key(block: IVec3) -> Option<u64> {
    let inside = |v: i32| (-BLOCK_MAX..=BLOCK_MAX).contains(&v);
    (inside(block.x) && inside(block.y) && inside(block.z)).then(|| {
        let lane = |v: i32| (v + (1 << 20)) as u64;
        (lane(block.z) << 42) | (lane(block.y) << 21) | lane(block.x)
    })
}

/// The block of a key.
pub(super) fn block_of(key: u64) -> IVec3 {
    let lane = |shift: u32| ((key >> shift) & 0x1f_ffff) as i32 - (1 << 20);
    IVec3::new(lane(0), lane(21), lane(42))
}

/// The pieces of one splat, into `out`.
fn cut(plan: &Plan, row: u32, super_m: f32, out: &mut Vec<Piece>) {
    let pieces = pieces_of(&plan.counts);
    for index in 0..pieces.iter().product::<u32>() {
        let (middle, reach) = extent(plan, &pieces, index);
        let low = ((middle - reach) / super_m).floor();
        let high = ((middle + reach) / super_m).floor();
        // A piece spans few blocks; far out, where floats are coarse, it is dropped below.
        let far = BLOCK_MAX as f32;
        if low.abs().max_element() > far || high.abs().max_element() > far {
            continue;
        }
        let (low, high) = (low.as_ivec3(), high.as_ivec3());
        for z in low.z..=high.z {
            for y in low.y..=high.y {
                for x in low.x..=high.x {
                    if let Some(block) = key(IVec3::new(x, y, z)) {
                        out.push(Piece { block, row, index });
                    }
                }
            }
        }
    }
}

/// The numbers of a piece along the three axes.
fn along(pieces: &[u32; 3], index: u32) -> [u32; 3] {
    [
        index % pieces[0],
        index / pieces[0] % pieces[1],
        index / pieces[0] / pieces[1],
    ]
}

/// Middle and half size of a piece's samples.
fn extent(plan: &Plan, pieces: &[u32; 3], index: u32) -> (Vec3, Vec3) {
    let (mut middle, mut reach) = (plan.centre, Vec3::ZERO);
    for (axis, piece) in along(pieces, index).into_iter().enumerate() {
        let (first, last) = span(plan.counts[axis], piece);
        let (low, high) = (
            offset(plan.counts[axis], first),
            offset(plan.counts[axis], last),
        );
        middle += plan.steps[axis] * (0.5 * (low + high));
        reach += plan.steps[axis].abs() * (0.5 * (high - low));
    }
    (middle, reach)
}

/// Cells of a block while they are summed up: opacity, thickness, and times thickness colour and place in the
/// cell (0 to 1 on each axis). Together, so that a sample touches one line of the cache.
struct Sums {
    cells: Vec<[f32; 8]>,
}

/// Fills a level with the splats `of`; `None` where it would have too many cells. `progress` is told shares of this
/// level's work, 0 to 1.
pub(super) fn fill(
    rows: &Rows<'_>,
    of: &[u32],
    cell_m: f32,
    progress: &(dyn Fn(f32) + Sync),
) -> Option<Level> {
    let super_m = cell_m * SUPER_CELLS as f32;
    let chunks: Vec<Vec<Piece>> = of
        .par_chunks(CHUNK)
        .map(|some| {
            let mut pieces = Vec::with_capacity(some.len());
            for row in some {
                if let Some(plan) = rows.plan(*row as usize, cell_m) {
                    cut(&plan, *row, super_m, &mut pieces);
                }
            }
            pieces
        })
        .collect();
    progress(0.2);
    let mut pieces = chunks.concat();
    drop(chunks);
    pieces.par_sort_unstable();
    progress(0.5);

    let groups: Vec<&[Piece]> = pieces.chunk_by(|a, b| a.block == b.block).collect();
    let probed: usize = groups
        .par_iter()
        .step_by(PROBED)
        .map_init(Sums::new, |sums, group| {
            sums.block(rows, cell_m, group).1.len()
        })
        .sum();
    if probed.saturating_mul(PROBED) > CELLS_MAX {
        return None;
    }
    let done = std::sync::atomic::AtomicUsize::new(0);
    let blocks: Vec<(Block, Vec<Cell>)> = groups
        .par_iter()
        .map_init(Sums::new, |sums, group| {
            let filled = sums.block(rows, cell_m, group);
            let count = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if count.is_multiple_of(256) {
                progress(0.5 + 0.5 * count as f32 / groups.len() as f32);
            }
            filled
        })
        .collect();
    Some(Level::new(cell_m, blocks))
}

impl Sums {
    fn new() -> Self {
        let cells = (SUPER_CELLS * SUPER_CELLS * SUPER_CELLS) as usize;
        Self {
            cells: vec![[0.0; 8]; cells],
        }
    }

    /// Adds up one block, and clears for the next one.
    fn block(&mut self, rows: &Rows<'_>, cell_m: f32, group: &[Piece]) -> (Block, Vec<Cell>) {
        let at = block_of(group[0].block);
        let corner = at * SUPER_CELLS;
        for piece in group {
            if let Some(plan) = rows.plan(piece.row as usize, cell_m) {
                self.add(&plan, piece.index, corner, cell_m);
            }
        }
        let mut block = Block::new(group[0].block);
        let mut cells = Vec::new();
        for (brick, sums) in self.cells.chunks_exact_mut(64).enumerate() {
            let mut mask = 0_u64;
            let first = cells.len() as u32;
            for (inner, sum) in sums.iter_mut().enumerate() {
                if sum[0] == 0.0 && sum[1] == 0.0 {
                    continue;
                }
                let [opacity, thickness, r, g, b, x, y, z] = std::mem::take(sum);
                let (colour, place) = (Vec3::new(r, g, b), Vec3::new(x, y, z));
                if let Some(cell) = Cell::new(opacity, thickness, colour, place) {
                    mask |= 1 << inner;
                    cells.push(cell);
                }
            }
            if mask != 0 {
                block.push(brick as u32, mask, first);
            }
        }
        (block, cells)
    }

    fn add(&mut self, plan: &Plan, index: u32, corner: IVec3, cell_m: f32) {
        // All in cells from the block's corner.
        let per_cell = 1.0 / cell_m;
        let centre = (plan.centre - corner.as_vec3() * cell_m) * per_cell;
        if plan.counts == [1, 1, 1] {
            // Most splats of a large scan are smaller than a cell: no weights are needed.
            // Rounding must not push the only sample over the edge.
            let last = IVec3::splat(SUPER_CELLS - 1);
            self.put(
                centre,
                centre.as_ivec3().clamp(IVec3::ZERO, last),
                plan,
                1.0,
            );
            return;
        }
        let steps = plan.steps.map(|step| step * per_cell);
        let pieces = pieces_of(&plan.counts);
        let numbers = along(&pieces, index);
        let mut weights = [[0.0_f32; PIECE as usize]; 3];
        let mut spans = [(0, 0); 3];
        for axis in 0..3 {
            let count = plan.counts[axis];
            spans[axis] = span(count, numbers[axis]);
            if count == 1 {
                weights[axis][0] = 1.0;
                continue;
            }
            let whole: f32 = (0..count).map(|i| weight(count, i)).sum();
            for i in spans[axis].0..=spans[axis].1 {
                weights[axis][(i % PIECE) as usize] = weight(count, i) / whole;
            }
        }
        let end = Vec3::splat(SUPER_CELLS as f32);
        for k in spans[2].0..=spans[2].1 {
            let p = centre + steps[2] * offset(plan.counts[2], k);
            for j in spans[1].0..=spans[1].1 {
                let p = p + steps[1] * offset(plan.counts[1], j);
                let weight = weights[2][(k % PIECE) as usize] * weights[1][(j % PIECE) as usize];
                for i in spans[0].0..=spans[0].1 {
                    let p = p + steps[0] * offset(plan.counts[0], i);
                    if p.cmplt(Vec3::ZERO).any() || p.cmpge(end).any() {
                        continue;
                    }
                    let weight = weight * weights[0][(i % PIECE) as usize];
                    // Above 0 a cast rounds down.
                    self.put(p, p.as_ivec3(), plan, weight);
                }
            }
        }
    }

    /// Adds a sample at `p` (in cells from the block's corner) that is in `cell`.
    fn put(&mut self, p: Vec3, cell: IVec3, plan: &Plan, weight: f32) {
        let thickness = weight * plan.thickness;
        let colour = thickness * plan.colour;
        let place = thickness * (p - cell.as_vec3()).clamp(Vec3::ZERO, Vec3::ONE);
        let sum = &mut self.cells[slot(cell)];
        let added = [
            weight * plan.opacity,
            thickness,
            colour.x,
            colour.y,
            colour.z,
            place.x,
            place.y,
            place.z,
        ];
        for (sum, added) in sum.iter_mut().zip(added) {
            *sum += added;
        }
    }
}

/// Number of a cell in its block: brick by brick, each brick's own cells together.
pub(super) fn slot(cell: IVec3) -> usize {
    // Both edges are 4: two bits of each axis for the brick, two for the cell in it.
    let bits = |v: i32| v as usize & 15;
    let (x, y, z) = (bits(cell.x), bits(cell.y), bits(cell.z));
    let number = |x: usize, y: usize, z: usize| x | y << 2 | z << 4;
    number(x >> 2, y >> 2, z >> 2) << 6 | number(x & 3, y & 3, z & 3)
}
