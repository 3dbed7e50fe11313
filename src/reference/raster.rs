//! Sorted records to pixels, front to back.
//!
//! Twin of both rasterisers. A band of rows is one task; inside it each tile walks the band's
//! records in order until all of its pixels are finished. Bands and tiles only save work: which
//! splats a pixel sees depends on the pixel alone.

use super::{ALPHA_MIN, Record, Rules, Stop, TRANSMITTANCE_MIN, Target};
use rayon::prelude::*;
use std::ops::Range;

/// Side of a tile and height of a band, px.
const TILE_PX: usize = 16;

/// A pixel on the way.
#[derive(Clone, Copy)]
struct Pixel {
    transmittance: f64,
    colour: [f64; 3],
    /// Sum of weight times depth, metres.
    depth_sum_m: f64,
    median_depth_m: f64,
    finished: bool,
}

const CLEAR: Pixel = Pixel {
    transmittance: 1.0,
    colour: [0.0; 3],
    depth_sum_m: 0.0,
    median_depth_m: 0.0,
    finished: false,
};

/// Blends `records`, which are sorted front to back, into a picture of `size` px.
#[must_use]
pub fn raster(records: &[Record], size: [u32; 2], rules: &Rules) -> Target {
    let [width, height] = size.map(|v| v as usize);
    let mut pixels = vec![CLEAR; width * height];
    if !pixels.is_empty() {
        pixels
            .par_chunks_mut(width * TILE_PX)
            .enumerate()
            .for_each(|(band, rows)| raster_band(records, rows, width, band * TILE_PX, rules));
    }
    Target {
        size,
        colour: pixels.iter().map(|p| p.colour.map(|c| c as f32)).collect(),
        coverage: pixels
            .iter()
            .map(|p| (1.0 - p.transmittance) as f32)
            .collect(),
        expected_depth_m: pixels
            .iter()
            .map(|p| {
                let weight = 1.0 - p.transmittance;
                if weight > 0.0 {
                    (p.depth_sum_m / weight) as f32
                } else {
                    0.0
                }
            })
            .collect(),
        median_depth_m: pixels.iter().map(|p| p.median_depth_m as f32).collect(),
    }
}

/// A record that touches a band, and where.
struct Touch<'a> {
    record: &'a Record,
    power_min: f64,
    columns: Range<usize>,
    rows: Range<usize>,
}

/// Rasters the rows from `top` on that `pixels` holds.
fn raster_band(records: &[Record], pixels: &mut [Pixel], width: usize, top: usize, rules: &Rules) {
    let bottom = top + pixels.len() / width;
    let touches: Vec<Touch<'_>> = records
        .iter()
        .map(|record| Touch {
            record,
            power_min: rules.footprint.power_min(record.opacity),
            columns: pixels_within(record.mean_px.x, record.extent_px.x, 0..width),
            rows: pixels_within(record.mean_px.y, record.extent_px.y, top..bottom),
        })
        .filter(|touch| !touch.columns.is_empty() && !touch.rows.is_empty())
        .collect();
    for left in (0..width).step_by(TILE_PX) {
        let right = (left + TILE_PX).min(width);
        let mut unfinished = (right - left) * (bottom - top);
        for touch in &touches {
            let columns = touch.columns.start.max(left)..touch.columns.end.min(right);
            if columns.is_empty() {
                continue;
            }
            for y in touch.rows.clone() {
                for x in columns.clone() {
                    let pixel = &mut pixels[(y - top) * width + x];
                    if !pixel.finished {
                        blend(pixel, touch, [x, y], rules);
                        unfinished -= usize::from(pixel.finished);
                    }
                }
            }
            if unfinished == 0 {
                break;
            }
        }
    }
}

/// Which of the pixels in `limits` have their centres within `extent_px` of `mean_px`.
fn pixels_within(mean_px: f64, extent_px: f64, limits: Range<usize>) -> Range<usize> {
    // Float to integer conversion saturates, so far-away splats give empty or full ranges.
    let first = (mean_px - extent_px - 0.5).ceil() as usize;
    let end = ((mean_px + extent_px - 0.5).floor() + 1.0) as usize;
    first.max(limits.start)..end.min(limits.end)
}

/// Blends one splat behind what pixel `x`, `y` has so far.
fn blend(pixel: &mut Pixel, touch: &Touch<'_>, [x, y]: [usize; 2], rules: &Rules) {
    let record = touch.record;
    let dx = x as f64 + 0.5 - record.mean_px.x;
    let dy = y as f64 + 0.5 - record.mean_px.y;
    let [xx, xy, yy] = record.conic;
    let power = -0.5 * (xx * dx * dx + yy * dy * dy) - xy * dx * dy;
    // Saves an exponential; the slack leaves the decision to the test of alpha itself.
    if power < touch.power_min - 1e-9 {
        return;
    }
    let alpha = rules.footprint.alpha(record.opacity, power.min(0.0));
    if alpha < ALPHA_MIN {
        return;
    }
    let behind = pixel.transmittance * (1.0 - alpha);
    if behind < TRANSMITTANCE_MIN && rules.stop != Stop::Never {
        pixel.finished = true;
        if rules.stop == Stop::Before {
            return;
        }
    }
    let weight = alpha * pixel.transmittance;
    for (sum, c) in pixel.colour.iter_mut().zip(record.colour) {
        *sum += weight * c;
    }
    pixel.depth_sum_m += weight * record.depth_m;
    if pixel.transmittance >= 0.5 && behind < 0.5 {
        pixel.median_depth_m = record.depth_m;
    }
    pixel.transmittance = behind;
}
