//! A rasterised [`Target`] over the frame's background, as bytes.
//!
//! Twin of the last pass. Everything is in display space: no transfer function is applied. Alpha is
//! the background's wherever splats do not cover it, and comes out straight (not multiplied in), as
//! PNG has it.

use super::Target;

/// 8-bit RGBA, straight alpha, rows top to bottom. `background` is red, green, blue, alpha, 0 to 1,
/// alpha not multiplied in; a pixel of alpha 0 is all zero.
#[must_use]
pub fn picture(target: &Target, background: [f32; 4]) -> Vec<u8> {
    let [red, green, blue, background_alpha] = background.map(f64::from);
    target
        .colour
        .iter()
        .zip(&target.coverage)
        .flat_map(|(colour, &coverage)| {
            let coverage = f64::from(coverage);
            let shown = (1.0 - coverage) * background_alpha;
            let alpha = coverage + shown;
            let channel = |front: f32, back: f64| {
                if alpha > 0.0 {
                    unorm8((f64::from(front) + shown * back) / alpha)
                } else {
                    0
                }
            };
            [
                channel(colour[0], red),
                channel(colour[1], green),
                channel(colour[2], blue),
                unorm8(alpha),
            ]
        })
        .collect()
}

/// The nearest of the 256 steps from 0 to 1.
fn unorm8(value: f64) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}
