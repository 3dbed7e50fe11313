//! Splats as the GPU reads them: 32 bytes each and a compact SH codec, or plain floats.
//!
//! Packed, per splat (little endian words; the reader is `shaders/shared/splat_packed.wgsl`):
//!
//! | word | bits | holds |
//! |---|---|---|
//! | 0..2 | 32 each | mean, f32: positions stay exact |
//! | 3 | 0..14, 15..29, 30..31 | smallest three: first, second, number of the largest (xyzw) |
//! | 4 | 0..14, 16..31 | third of the smallest three; opacity, unorm16 |
//! | 5 | 0..15, 16..31 | log scale x, y as f16 |
//! | 6 | 0..15, 16..31 | log scale z, band 0 red as f16 |
//! | 7 | 0..15, 16..31 | band 0 green, blue as f16 |
//!
//! SH of degree 1, 2, 3: 12, 28, 48 bytes: f16 of the largest magnitude, then one signed byte a
//! value. So a splat of degree 3 is 80 bytes where its floats are 236.
//!
//! A row that is not drawable is written with opacity 0, which culling drops.

use super::Packing;
use crate::scene::{Splats, sh};
use glam::Quat;
use half::f16;
use rayon::prelude::*;

/// Words (4 bytes) per splat without SH.
pub const fn splat_words(packing: Packing) -> usize {
    match packing {
        Packing::Packed => 8,
        Packing::Float => 14,
    }
}

/// Words (4 bytes) of SH per splat.
pub const fn sh_words(packing: Packing, degree: u8) -> usize {
    match (packing, degree) {
        (_, 0) => 0,
        (Packing::Packed, 1) => 3,
        (Packing::Packed, 2) => 7,
        (Packing::Packed, _) => 12,
        (Packing::Float, degree) => sh::rest_count(degree) * 3,
    }
}

/// A splat of more than e^16 m (8,900 km) or less than e^-30 m is drawn as one of that size: the
/// squares of what follows stay inside f32.
const LOG_SCALE_RANGE: (f32, f32) = (-30.0, 16.0);

/// Rows `first..first + count` of `splats` as GPU words.
pub fn pack(splats: &Splats, packing: Packing, first: usize, count: usize) -> Vec<u32> {
    let stride = splat_words(packing);
    let mut words = vec![0_u32; count * stride];
    words
        .par_chunks_mut(stride * ROWS_PER_TASK)
        .enumerate()
        .for_each(|(task, chunk)| {
            for (row, out) in chunk.chunks_exact_mut(stride).enumerate() {
                let index = first + task * ROWS_PER_TASK + row;
                match packing {
                    Packing::Packed => pack_row(splats, index, out),
                    Packing::Float => float_row(splats, index, out),
                }
            }
        });
    words
}

/// SH of rows `first..first + count` as GPU words; empty at degree 0.
pub fn pack_sh(splats: &Splats, packing: Packing, first: usize, count: usize) -> Vec<u32> {
    let stride = sh_words(packing, splats.sh_degree);
    if stride == 0 {
        return Vec::new();
    }
    let mut words = vec![0_u32; count * stride];
    words
        .par_chunks_mut(stride * ROWS_PER_TASK)
        .enumerate()
        .for_each(|(task, chunk)| {
            for (row, out) in chunk.chunks_exact_mut(stride).enumerate() {
                let rest = splats.sh_rest_of(first + task * ROWS_PER_TASK + row);
                match packing {
                    Packing::Packed => pack_sh_row(rest, out),
                    Packing::Float => {
                        out.iter_mut()
                            .zip(rest)
                            .for_each(|(word, value)| *word = value.to_bits());
                    }
                }
            }
        });
    words
}

/// Rows a worker takes at a time.
const ROWS_PER_TASK: usize = 4096;

fn pack_row(splats: &Splats, index: usize, out: &mut [u32]) {
    if !splats.is_drawable(index) {
        return;
    }
    let mean = splats.means[index];
    let (largest, three) = smallest_three(splats.rotations[index]);
    let scale = splats.log_scales[index].clamp(
        glam::Vec3::splat(LOG_SCALE_RANGE.0),
        glam::Vec3::splat(LOG_SCALE_RANGE.1),
    );
    let dc = splats.dc[index];
    let opacity = (splats.opacities[index].clamp(0.0, 1.0) * 65535.0).round() as u32;
    out[0] = mean.x.to_bits();
    out[1] = mean.y.to_bits();
    out[2] = mean.z.to_bits();
    out[3] = three[0] | three[1] << 15 | largest << 30;
    out[4] = three[2] | opacity << 16;
    out[5] = halves(scale.x, scale.y);
    out[6] = halves(scale.z, dc.x);
    out[7] = halves(dc.y, dc.z);
}

fn halves(low: f32, high: f32) -> u32 {
    // The largest finite f16; colours beyond it do not occur outside of broken files.
    let bits = |v: f32| u32::from(f16::from_f32(v.clamp(-65504.0, 65504.0)).to_bits());
    bits(low) | bits(high) << 16
}

/// Number of the largest component (of xyzw), and the other three as 15-bit codes.
fn smallest_three(rotation: Quat) -> (u32, [u32; 3]) {
    let q = rotation.to_array();
    let mut largest = 0;
    for k in 1..4 {
        if q[k].abs() > q[largest].abs() {
            largest = k;
        }
    }
    let sign = if q[largest] < 0.0 { -1.0 } else { 1.0 };
    let mut codes = [0; 3];
    let rest = (0..4).filter(|k| *k != largest);
    for (code, k) in codes.iter_mut().zip(rest) {
        let unit = sign * q[k] * std::f32::consts::SQRT_2;
        *code = ((unit.clamp(-1.0, 1.0) + 1.0) * 0.5 * 32767.0).round() as u32;
    }
    (largest as u32, codes)
}

fn pack_sh_row(rest: &[f32], out: &mut [u32]) {
    let largest = rest
        .iter()
        .filter(|v| v.is_finite())
        .fold(0.0_f32, |m, v| m.max(v.abs()));
    // Rounded to f16 first, so that the reader divides by what the writer multiplied with.
    let scale = f16::from_f32(largest.min(65504.0));
    let step = scale.to_f32() / 127.0;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
    bytes[..2].copy_from_slice(&scale.to_le_bytes());
    for (byte, value) in bytes[2..].iter_mut().zip(rest) {
        let code = if step > 0.0 && value.is_finite() {
            (value / step).round()
        } else {
            0.0
        };
        *byte = (code.clamp(-127.0, 127.0) as i8).cast_unsigned();
    }
}

fn float_row(splats: &Splats, index: usize, out: &mut [u32]) {
    if !splats.is_drawable(index) {
        return;
    }
    let scale = splats.log_scales[index].clamp(
        glam::Vec3::splat(LOG_SCALE_RANGE.0),
        glam::Vec3::splat(LOG_SCALE_RANGE.1),
    );
    let values = [splats.means[index].to_array(), scale.to_array()]
        .concat()
        .into_iter()
        .chain(splats.rotations[index].to_array())
        .chain([splats.opacities[index]])
        .chain(splats.dc[index].to_array());
    out.iter_mut()
        .zip(values)
        .for_each(|(word, value)| *word = value.to_bits());
}
