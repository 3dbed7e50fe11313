//! What lies under one pixel: the twin of the `pick` shader, and the hit test of offline scenes,
//! which have to come out the same on every machine.
//!
//! Every splat that blends into the pixel is found and the list is read front to back. A target is
//! hit where its own splats cover half of the pixel or more, whatever their colour, and others
//! cover less than half of it in front.

use super::{ALPHA_MIN, Footprint, Record, Rules, View, project};
use crate::frame::{Frame, Hit, Touch};
use rayon::prelude::*;

/// The target under the centre of pixel (`x`, `y`), counted from the top left corner; none outside of
/// the picture.
#[must_use]
pub fn pick(frame: &Frame, size: [u32; 2], [x, y]: [u32; 2]) -> Option<Hit> {
    crate::frame::front_most(&frame.targets(), touches(frame, size, [x, y]))
}

/// Every splat that blends into one pixel, in order of draw and row.
#[must_use]
pub fn touches(frame: &Frame, size: [u32; 2], [x, y]: [u32; 2]) -> Vec<Touch> {
    if x >= size[0] || y >= size[1] {
        return Vec::new();
    }
    let rules = Rules::product();
    let view = View::new(&frame.camera, size);
    let pixel = glam::DVec2::new(f64::from(x) + 0.5, f64::from(y) + 0.5);
    let mut touches = Vec::new();
    for (index, draw) in frame.draws.iter().enumerate() {
        touches.par_extend((0..draw.splats.len()).into_par_iter().filter_map(|row| {
            let record = project::project_one(draw, row, &view, &rules)?;
            let alpha = alpha_at(&record, pixel);
            (alpha >= ALPHA_MIN).then_some(Touch {
                draw: index as u32,
                row: row as u32,
                depth_m: record.depth_m as f32,
                alpha: alpha as f32,
            })
        }));
    }
    touches
}

fn alpha_at(record: &Record, pixel: glam::DVec2) -> f64 {
    let d = pixel - record.mean_px;
    let [xx, xy, yy] = record.conic;
    let power = -0.5 * (xx * d.x * d.x + 2.0 * xy * d.x * d.y + yy * d.y * d.y);
    Footprint::Gaussian.alpha(record.opacity, power)
}
