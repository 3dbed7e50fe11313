//! Fills [`Splats`] row by row on all cores. Knows no format: a reader hands in how row `i` is
//! decoded, after it has checked that the bytes for all rows are there. Also the one way in which
//! readers collect what cores made side by side.

use super::Progress;
use crate::scene::{Splats, sh};
use glam::{Quat, Vec3};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All of `results`, or the error that stands first among them. rayon's own collecting into a
/// `Result` returns the error that a core happened to meet first, so the same broken file would be
/// reported in different words from one run to the next.
pub(crate) fn all_or_first_error<T: Send, E: Send>(
    results: impl IndexedParallelIterator<Item = Result<T, E>>,
) -> Result<Vec<T>, E> {
    results.collect::<Vec<_>>().into_iter().collect()
}

/// One splat without its further coefficients; fields as in [`Splats`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) mean: Vec3,
    pub(crate) log_scale: Vec3,
    pub(crate) rotation: Quat,
    pub(crate) opacity: f32,
    pub(crate) dc: Vec3,
}

impl Row {
    /// Never drawn, and counted as not finite: for what checks before decoding rule out.
    pub(crate) const NOTHING: Self = Self {
        mean: Vec3::NAN,
        log_scale: Vec3::ZERO,
        rotation: Quat::IDENTITY,
        opacity: 0.0,
        dc: Vec3::ZERO,
    };
}

/// Rows that one task decodes: 4,096 rows of degree 3 are 1 MB, a core's share of cache.
const BLOCK_ROWS: usize = 4096;

struct Block<'a> {
    first: usize,
    means: &'a mut [Vec3],
    log_scales: &'a mut [Vec3],
    rotations: &'a mut [Quat],
    opacities: &'a mut [f32],
    dc: &'a mut [Vec3],
    sh_rest: &'a mut [f32],
}

/// `count` rows of degree `degree`; `decode(i, rest)` returns row `i` and fills its further
/// coefficients (coefficient-major, channel inner, zero on entry).
///
/// Allocates for `count` rows at once: the caller has checked that the file can back them.
pub(crate) fn fill(
    count: usize,
    degree: u8,
    progress: Progress<'_>,
    decode: impl Fn(usize, &mut [f32]) -> Row + Sync,
) -> Splats {
    let stride = sh::rest_count(degree) * 3;
    let mut splats = Splats {
        means: vec![Vec3::ZERO; count],
        log_scales: vec![Vec3::ZERO; count],
        rotations: vec![Quat::IDENTITY; count],
        opacities: vec![0.0; count],
        dc: vec![Vec3::ZERO; count],
        sh_degree: degree,
        sh_rest: vec![0.0; count * stride],
        antialiased: false,
    };
    // Blocks are cut by hand: zipping six parallel chunk iterators cannot have a stride of zero.
    let mut blocks = Vec::with_capacity(count.div_ceil(BLOCK_ROWS));
    let mut rest = splats.sh_rest.as_mut_slice();
    for (index, ((((means, log_scales), rotations), opacities), dc)) in splats
        .means
        .chunks_mut(BLOCK_ROWS)
        .zip(splats.log_scales.chunks_mut(BLOCK_ROWS))
        .zip(splats.rotations.chunks_mut(BLOCK_ROWS))
        .zip(splats.opacities.chunks_mut(BLOCK_ROWS))
        .zip(splats.dc.chunks_mut(BLOCK_ROWS))
        .enumerate()
    {
        let (sh_rest, others) = std::mem::take(&mut rest).split_at_mut(means.len() * stride);
        rest = others;
        blocks.push(Block {
            first: index * BLOCK_ROWS,
            means,
            log_scales,
            rotations,
            opacities,
            dc,
            sh_rest,
        });
    }
    let done = AtomicUsize::new(0);
    blocks.into_par_iter().for_each(|block| {
        let rows = block.means.len();
        let mut coefficients = block.sh_rest.chunks_exact_mut(stride.max(1));
        for (offset, ((((mean, log_scale), rotation), opacity), dc)) in block
            .means
            .iter_mut()
            .zip(block.log_scales)
            .zip(block.rotations)
            .zip(block.opacities)
            .zip(block.dc)
            .enumerate()
        {
            let row = decode(
                block.first + offset,
                coefficients.next().unwrap_or_default(),
            );
            *mean = row.mean;
            *log_scale = row.log_scale;
            *rotation = row.rotation;
            *opacity = row.opacity;
            *dc = row.dc;
        }
        let sum = done.fetch_add(rows, Ordering::Relaxed) + rows;
        progress(sum as f32 / count as f32);
    });
    splats
}
