//! How far along a surface every splat is from where it was touched: what a fire spreads by.
//!
//! The splats are put into cells, and a wave goes from cell to occupied neighbour cell in order of its
//! way (Dijkstra), from middle to middle of the splats in them; every splat near a cell takes the
//! cell's way and its own distance from it, if that is shorter than what it has. The wave goes on only
//! as far as it is asked for, so its cost is spread over the pictures, and what it has found up to
//! there is final: it depends on the touches and the distance, not on how often somebody asked.
//!
//! It knows no splats but their centres and sizes, and no time.

use glam::{Mat3, Vec3};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// An arrival that has not been, metres; `NEVER` in `shaders/shared/effect.wgsl`.
pub const NEVER_M: f32 = 1e30;
/// Rows that are copied and sent together.
pub const CHUNK_ROWS: usize = 4096;
/// A cell's side where none is given, in standard deviations of the usual splat along its longest
/// axis: splats of a closed surface stand one or two apart.
const CELL_SIGMAS: f32 = 3.0;
/// How far from its centre a splat counts as there, standard deviations, and most places along a half axis.
const REACH_SIGMAS: f32 = 1.3;
const PLACES_MAX: i32 = 4;
/// Places besides centres, a row on average, and in small sets.
const FURTHER_PER_ROW: usize = 2;
const FURTHER_ALWAYS: usize = 10_000;
/// Splats that are asked for their size.
const SIZED: usize = 4096;
/// A row that is in no cell.
const NOWHERE: u32 = u32::MAX;

/// Arrivals of all rows as they were at some time. Cheap to copy: what did not change is shared.
#[derive(Clone, Debug)]
pub struct Arrivals {
    chunks: Arc<Vec<Arc<Vec<f32>>>>,
    rows: usize,
    identity: Arc<()>,
}

impl PartialEq for Arrivals {
    /// Whether both are the same memory.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks)
    }
}

impl Arrivals {
    fn new(rows: usize) -> Self {
        let chunk = |first: usize| Arc::new(vec![NEVER_M; CHUNK_ROWS.min(rows - first)]);
        Self {
            chunks: Arc::new((0..rows).step_by(CHUNK_ROWS).map(chunk).collect()),
            rows,
            identity: Arc::new(()),
        }
    }

    /// Of one row, metres; [`NEVER_M`] where the wave has not come.
    #[must_use]
    pub fn row(&self, row: usize) -> f32 {
        let chunk = self.chunks.get(row / CHUNK_ROWS);
        (chunk.and_then(|c| c.get(row % CHUNK_ROWS)).copied()).unwrap_or(NEVER_M)
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// All of them, [`CHUNK_ROWS`] at a time. A chunk that changes becomes another `Arc`.
    #[must_use]
    pub fn chunks(&self) -> &[Arc<Vec<f32>>] {
        &self.chunks
    }

    /// The same for all states of one [`Spread`].
    #[must_use]
    pub fn identity(&self) -> &Arc<()> {
        &self.identity
    }
}

/// A wave over the splats of one handle. Lengths are in the handle's own space.
#[derive(Debug)]
pub struct Spread {
    cell_m: f32,
    /// By row.
    cell_of: Vec<u32>,
    /// Rows, cell by cell, and where each cell's begin. A large splat lies in several.
    rows: Vec<u32>,
    first: Vec<u32>,
    /// By cell: where it lies, the middle of its splats, and the way there as far as known.
    keys: Vec<[i32; 3]>,
    middles: Vec<Vec3>,
    ways_m: Vec<f32>,
    cells: HashMap<[i32; 3], u32>,
    /// Ways that are to be gone on from, shortest first; bits of positive floats are in their order.
    open: BinaryHeap<Reverse<(u32, u32)>>,
    reached_m: f32,
    arrivals: Arrivals,
}

impl Spread {
    /// Over splats with these centres; `axes_m` are the half axes of a row, one standard deviation long,
    /// or none where it takes no part. `cell_m` is chosen by the splats' size where it is not given.
    #[must_use]
    pub fn new(
        means: &[Vec3],
        axes_m: impl Fn(usize) -> Option<Mat3>,
        cell_m: Option<f32>,
    ) -> Self {
        let cell_m = cell_m.unwrap_or_else(|| usual_cell_m(means.len(), &axes_m));
        let mut cells = HashMap::new();
        let mut keys = Vec::new();
        let mut counts: Vec<u32> = Vec::new();
        let mut middles: Vec<Vec3> = Vec::new();
        let mut cell_of = vec![NOWHERE; means.len()];
        // Cells of rows that lie in several, beyond the one of their centre.
        let mut further: Vec<(u32, u32)> = Vec::new();
        for (row, mean) in means.iter().enumerate() {
            let Some(axes) = axes_m(row) else { continue };
            let mut enter = |at: Vec3| {
                let key = (at / cell_m).floor().as_ivec3().to_array();
                let cell = *cells.entry(key).or_insert_with(|| {
                    keys.push(key);
                    counts.push(0);
                    middles.push(Vec3::ZERO);
                    keys.len() as u32 - 1
                });
                counts[cell as usize] += 1;
                middles[cell as usize] += at;
                cell
            };
            cell_of[row] = enter(*mean);
            // With cells much smaller than splats this would be without an end.
            if further.len() > FURTHER_PER_ROW * means.len() + FURTHER_ALWAYS {
                continue;
            }
            for place in places(axes, cell_m) {
                further.push((enter(*mean + place), row as u32));
            }
        }
        for (middle, count) in middles.iter_mut().zip(&counts) {
            *middle /= *count as f32;
        }
        let mut first = Vec::with_capacity(keys.len() + 1);
        let mut sum = 0;
        for count in &counts {
            first.push(sum);
            sum += count;
        }
        first.push(sum);
        let mut next = first.clone();
        let mut rows = vec![0; sum as usize];
        let own = (0..).zip(&cell_of).filter(|(_, cell)| **cell != NOWHERE);
        for (row, cell) in own
            .map(|(row, cell)| (row, *cell))
            .chain((further.iter()).map(|(cell, row)| (*row, *cell)))
        {
            rows[next[cell as usize] as usize] = row;
            next[cell as usize] += 1;
        }
        Self {
            cell_m,
            ways_m: vec![NEVER_M; keys.len()],
            cell_of,
            rows,
            first,
            keys,
            middles,
            cells,
            open: BinaryHeap::new(),
            reached_m: 0.0,
            arrivals: Arrivals::new(means.len()),
        }
    }

    /// Side of a cell, metres.
    #[must_use]
    pub fn cell_m(&self) -> f32 {
        self.cell_m
    }

    /// Cells with splats in them.
    #[must_use]
    pub fn cell_count(&self) -> usize {
        self.keys.len()
    }

    /// How far the wave was asked for, metres.
    #[must_use]
    pub fn reached_m(&self) -> f32 {
        self.reached_m
    }

    /// Whether there is nowhere left to go.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// What every splat has by now.
    #[must_use]
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// The row nearest to `at` that takes part; none where there is no splat.
    #[must_use]
    pub fn nearest(&self, means: &[Vec3], at: Vec3) -> Option<u32> {
        let distance = |row: u32| means[row as usize].distance_squared(at);
        (self.rows.iter().copied()).min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
    }

    /// Begins at `row`, whose way counts as `way_m` already: one that is touched later begins with what
    /// the wave has covered meanwhile. False where the row takes no part. `means` are those of
    /// [`Spread::new`].
    pub fn begin(&mut self, means: &[Vec3], row: u32, way_m: f32) -> bool {
        let Some(cell) = self
            .cell_of
            .get(row as usize)
            .copied()
            .filter(|c| *c != NOWHERE)
        else {
            return false;
        };
        let at = means[row as usize];
        self.pass(means, cell, at, way_m);
        for near in self.around(cell).into_iter().flatten() {
            self.relax(near, way_m + at.distance(self.middles[near as usize]));
        }
        // A touch behind the wave's front is news for what lies there.
        if way_m < self.reached_m {
            self.reach(means, self.reached_m);
        }
        true
    }

    /// Lets the wave go on to `way_m`. What lies nearer is final, as long as nothing begins anew.
    /// Returns the number of cells that were passed.
    pub fn reach(&mut self, means: &[Vec3], way_m: f32) -> usize {
        self.reached_m = self.reached_m.max(way_m);
        let mut passed = 0;
        while let Some(Reverse((bits, cell))) = self.open.peek().copied() {
            let own_m = f32::from_bits(bits);
            if own_m > way_m {
                break;
            }
            self.open.pop();
            // A shorter way was found since.
            if own_m > self.ways_m[cell as usize] {
                continue;
            }
            passed += 1;
            let middle = self.middles[cell as usize];
            self.pass(means, cell, middle, own_m);
            for neighbour in self.around(cell).into_iter().flatten() {
                let further_m = own_m + middle.distance(self.middles[neighbour as usize]);
                self.relax(neighbour, further_m);
            }
        }
        passed
    }

    fn relax(&mut self, cell: u32, way_m: f32) {
        if way_m < self.ways_m[cell as usize] {
            self.ways_m[cell as usize] = way_m;
            self.open.push(Reverse((way_m.to_bits(), cell)));
        }
    }

    /// Tells the splats in and around `cell` that there is a way of `way_m` to `from`.
    fn pass(&mut self, means: &[Vec3], cell: u32, from: Vec3, way_m: f32) {
        let around = self.around(cell);
        let chunks = Arc::make_mut(&mut self.arrivals.chunks);
        for near in around.into_iter().flatten() {
            let near = near as usize;
            for row in &self.rows[self.first[near] as usize..self.first[near + 1] as usize] {
                let row = *row as usize;
                let own_m = way_m + from.distance(means[row]);
                let chunk = &mut chunks[row / CHUNK_ROWS];
                if own_m < chunk[row % CHUNK_ROWS] {
                    Arc::make_mut(chunk)[row % CHUNK_ROWS] = own_m;
                }
            }
        }
    }

    /// The cell itself and its occupied neighbours.
    fn around(&self, cell: u32) -> [Option<u32>; 27] {
        let [x, y, z] = self.keys[cell as usize];
        std::array::from_fn(|k| {
            let step = |n: usize| (k / n % 3) as i32 - 1;
            let key = [
                x.checked_add(step(1))?,
                y.checked_add(step(3))?,
                z.checked_add(step(9))?,
            ];
            self.cells.get(&key).copied()
        })
    }
}

/// Where a splat lies besides its centre, from there: a large one is a piece of surface that a fire goes
/// over, and must not be left behind because its middle is far from everything.
fn places(axes_m: Mat3, cell_m: f32) -> Vec<Vec3> {
    let counts = [axes_m.x_axis, axes_m.y_axis, axes_m.z_axis].map(|axis| {
        let cells = axis.length() * REACH_SIGMAS / cell_m;
        // Within a cell of the centre the wave finds it anyway.
        if cells > 1.0 {
            (cells.ceil() as i32).min(PLACES_MAX)
        } else {
            0
        }
    });
    if counts == [0; 3] {
        return Vec::new();
    }
    let share = |k: i32, count: i32| REACH_SIGMAS * k as f32 / count.max(1) as f32;
    let [x, y, z] = counts;
    let mut found = Vec::new();
    for i in -x..=x {
        for j in -y..=y {
            for k in -z..=z {
                let at = Vec3::new(share(i, x), share(j, y), share(k, z));
                if (i, j, k) != (0, 0, 0) && at.length() <= REACH_SIGMAS * 1.01 {
                    found.push(axes_m * at);
                }
            }
        }
    }
    found
}

/// A side of cells that holds a closed surface together.
fn usual_cell_m(rows: usize, axes_m: &impl Fn(usize) -> Option<Mat3>) -> f32 {
    let step = (rows / SIZED).max(1);
    let size_m = |axes: Mat3| {
        axes.x_axis
            .length()
            .max(axes.y_axis.length())
            .max(axes.z_axis.length())
    };
    let mut sizes: Vec<f32> = (0..rows)
        .step_by(step)
        .filter_map(axes_m)
        .map(size_m)
        .collect();
    sizes.sort_by(f32::total_cmp);
    let usual_m = sizes.get(sizes.len() / 2).copied().unwrap_or(1.0);
    (CELL_SIGMAS * usual_m).clamp(1e-4, 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sheets of splats every 5 cm, 2 m by 2 m, joined along one edge: an L, and a third one that
    /// is joined to nothing.
    fn sheets() -> Vec<Vec3> {
        let mut means = Vec::new();
        for i in 0..40 {
            for j in 0..40 {
                let (u, v) = (i as f32 * 0.05, j as f32 * 0.05);
                means.push(Vec3::new(u, 0.0, v));
                means.push(Vec3::new(0.0, u + 0.05, v));
                means.push(Vec3::new(u + 10.0, 0.0, v));
            }
        }
        means
    }

    #[test]
    fn the_way_goes_along_the_surface_and_not_over_gaps() {
        let means = sheets();
        let mut spread = Spread::new(
            &means,
            |_| Some(Mat3::from_diagonal(Vec3::splat(0.05))),
            None,
        );
        assert!((spread.cell_m() - 0.15).abs() < 1e-6);
        let start = spread
            .nearest(&means, Vec3::new(1.0, 0.0, 1.0))
            .expect("there");
        assert!(spread.begin(&means, start, 0.0));
        spread.reach(&means, 100.0);
        assert!(spread.is_done());
        let at = |p: Vec3| {
            spread
                .arrivals()
                .row(spread.nearest(&means, p).expect("there") as usize)
        };
        // Flat: no shorter than the straight way, and little longer.
        let flat = at(Vec3::new(1.9, 0.0, 1.9));
        let straight = 0.9 * 2.0_f32.sqrt();
        assert!(
            (straight - 0.02..straight * 1.1).contains(&flat),
            "{flat} for {straight}"
        );
        // Up the other sheet it is 1 m to the edge and 1 m up, not the 1.41 m through the air.
        let up = at(Vec3::new(0.0, 1.0, 1.0));
        assert!((1.85..2.15).contains(&up), "{up}");
        assert_eq!(at(Vec3::new(11.0, 0.0, 1.0)), NEVER_M);
    }

    #[test]
    fn a_large_splat_burns_with_what_lies_on_it_and_carries_the_fire_on() {
        // A board of one splat, 1 m long, with crumbs on both ends and nothing in between.
        let mut means = vec![Vec3::ZERO];
        for i in 0..12 {
            means.push(Vec3::new(-1.0 - 0.02 * i as f32, 0.0, 0.0));
            means.push(Vec3::new(1.0 + 0.02 * i as f32, 0.0, 0.0));
        }
        let axes = |row: usize| {
            let size = if row == 0 {
                Vec3::new(0.8, 0.05, 0.05)
            } else {
                Vec3::splat(0.06)
            };
            Some(Mat3::from_diagonal(size))
        };
        let mut spread = Spread::new(&means, axes, Some(0.3));
        assert!(spread.begin(&means, 1, 0.0));
        spread.reach(&means, 10.0);
        let way = |row: usize| spread.arrivals().row(row);
        assert!((way(0) - 1.0).abs() < 0.15, "{}", way(0));
        assert!((way(2) - 2.0).abs() < 0.3, "{}", way(2));
    }

    #[test]
    fn small_steps_and_one_large_one_find_the_same() {
        let means = sheets();
        let mut steps = Spread::new(
            &means,
            |_| Some(Mat3::from_diagonal(Vec3::splat(0.05))),
            None,
        );
        let mut once = Spread::new(
            &means,
            |_| Some(Mat3::from_diagonal(Vec3::splat(0.05))),
            None,
        );
        steps.begin(&means, 0, 0.0);
        once.begin(&means, 0, 0.0);
        for k in 1..=90 {
            steps.reach(&means, k as f32 * 0.01);
        }
        once.reach(&means, 0.9);
        for row in 0..means.len() {
            let (a, b) = (steps.arrivals().row(row), once.arrivals().row(row));
            assert!(a == b || a.min(b) > 0.9, "row {row}: {a} and {b}");
        }
        let near = (0..means.len())
            .filter(|r| once.arrivals().row(*r) <= 0.9)
            .count();
        assert!(near > 300, "{near} splats are that near");
    }

    #[test]
    fn a_second_touch_begins_with_the_way_of_the_first() {
        let means = sheets();
        let mut spread = Spread::new(
            &means,
            |_| Some(Mat3::from_diagonal(Vec3::splat(0.05))),
            None,
        );
        spread.begin(&means, 0, 0.0);
        spread.reach(&means, 0.5);
        let far = spread
            .nearest(&means, Vec3::new(1.9, 0.0, 1.9))
            .expect("there");
        spread.begin(&means, far, 0.5);
        assert_eq!(spread.arrivals().row(far as usize), 0.5);
        spread.reach(&means, 0.7);
        let beside = spread
            .nearest(&means, Vec3::new(1.8, 0.0, 1.9))
            .expect("there");
        let way = spread.arrivals().row(beside as usize);
        assert!((0.58..0.63).contains(&way), "{way}");
    }

    #[test]
    fn what_did_not_change_is_shared_between_two_states() {
        let mut means = sheets();
        means.resize(3 * CHUNK_ROWS, Vec3::new(500.0, 0.0, 0.0));
        let mut spread = Spread::new(
            &means,
            |row| (row < 4000).then_some(Mat3::from_diagonal(Vec3::splat(0.05))),
            None,
        );
        let before = spread.arrivals().clone();
        spread.begin(&means, 0, 0.0);
        spread.reach(&means, 0.3);
        let after = spread.arrivals();
        assert!(*after != before && Arc::ptr_eq(after.identity(), before.identity()));
        let same = |k: usize| Arc::ptr_eq(&after.chunks()[k], &before.chunks()[k]);
        assert!(!same(0) && same(1) && same(2));
        assert_eq!(
            before.row(0),
            NEVER_M,
            "what was handed out stays as it was"
        );
        assert!(!spread.begin(&means, 5000, 0.0), "takes no part");
    }
}
