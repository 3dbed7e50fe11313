//! Real spherical harmonics as Gaussian splatting uses them: basis, colour, rotation.
//!
//! Basis constants and signs are those of the INRIA trainer (Kerbl et al. 2023), degrees 0 to 3.
//! The colour of a splat seen along unit direction `d` (from the eye to the splat) is
//! `0.5 + sum_k Y_k(d) c_k`, clamped at 0 by whoever blends it. Shaders have their own copy of the
//! basis; `tests/it/twins.rs` holds the two together.

use glam::{Mat3, Vec3};

/// Y_0: constant band.
pub const SH_C0: f32 = 0.282_094_79;
/// Degrees above this are read from files but not drawn.
pub const DEGREE_MAX: u8 = 3;
/// Basis functions of degrees 0 to 3.
pub const BASIS_MAX: usize = 16;

/// Coefficients per channel beyond band 0: 0, 3, 8, 15, 24.
#[must_use]
pub const fn rest_count(degree: u8) -> usize {
    let n = degree as usize + 1;
    n * n - 1
}

/// All 16 basis functions at the unit direction `d`.
#[must_use]
pub fn basis(d: Vec3) -> [f32; BASIS_MAX] {
    let Vec3 { x, y, z } = d;
    let (xx, yy, zz, xy, yz, xz) = (x * x, y * y, z * z, x * y, y * z, x * z);
    [
        SH_C0,
        -0.488_602_5 * y,
        0.488_602_5 * z,
        -0.488_602_5 * x,
        1.092_548_4 * xy,
        -1.092_548_4 * yz,
        0.315_391_57 * (2.0 * zz - xx - yy),
        -1.092_548_4 * xz,
        0.546_274_2 * (xx - yy),
        -0.590_043_6 * y * (3.0 * xx - yy),
        2.890_611_4 * xy * z,
        -0.457_045_8 * y * (4.0 * zz - xx - yy),
        0.373_176_34 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy),
        -0.457_045_8 * x * (4.0 * zz - xx - yy),
        1.445_305_7 * z * (xx - yy),
        -0.590_043_6 * x * (xx - 3.0 * yy),
    ]
}

/// Display-space colour (not clamped) of band 0 `dc` and the further coefficients `rest`
/// (coefficient-major, channel inner) along the unit direction `d`.
#[must_use]
pub fn colour(dc: Vec3, rest: &[f32], d: Vec3) -> Vec3 {
    let y = basis(d);
    let mut sum = Vec3::splat(0.5) + dc * SH_C0;
    for (y_k, c) in y.iter().skip(1).zip(rest.chunks_exact(3)) {
        sum += Vec3::from_slice(c) * *y_k;
    }
    sum
}

/// Bands 0 to 3 of a round highlight: the coefficient of basis function `k` in band `l` is the value for
/// `l` times `Y_k` of the direction that the highlight lies in, and its colour 1 there.
///
/// It is a Gaussian on the sphere (the heat kernel), of `sharpness` 1 over its variance in radians
/// squared, cut after band 3. Lanczos factors take the edge off that cut (Sloan, "Stupid spherical
/// harmonics tricks", 2008): without them a highlight of sharpness 5 would be answered on the far side
/// by a tenth of its strength, with them by a fiftieth.
#[must_use]
pub fn lobe(sharpness: f32) -> [f32; 4] {
    let bands: [f32; 4] = std::array::from_fn(|l| {
        let l = l as f32;
        let x = std::f32::consts::PI * l / 4.0;
        let window = if l > 0.0 { x.sin() / x } else { 1.0 };
        window * (-0.5 * l * (l + 1.0) / sharpness).exp()
    });
    // By the addition theorem the squares of a band's functions sum to (2l + 1) / 4 pi everywhere.
    let peak: f32 = bands
        .iter()
        .enumerate()
        .map(|(l, band)| band * (2 * l + 1) as f32 / (4.0 * std::f32::consts::PI))
        .sum();
    bands.map(|band| band / peak)
}

/// Rotates coefficients so that a turned splat keeps the colours it had.
///
/// For each band the matrix is found by evaluating the basis at enough directions before and after
/// the turn and solving the square system, which is exact for any rotation up to rounding and
/// needs no table per band (method: Kautz, Snyder, Sloan 2002, section on rotation by projection).
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Row-major (2l+1) x (2l+1) for l = 1, 2, 3.
    bands: [Vec<f32>; 3],
    /// The diagonal, where nothing else is: half turns about an axis, which most files need, only
    /// change signs.
    signs: Option<[f32; BASIS_MAX - 1]>,
}

impl Rotation {
    /// The rotation of coefficients that belongs to turning splats by `turn` (determinant +1).
    #[must_use]
    pub fn new(turn: Mat3) -> Self {
        let bands = [1, 2, 3].map(|l| band_matrix(l, turn));
        let mut signs = [0.0; BASIS_MAX - 1];
        let mut slot = signs.iter_mut();
        let mut only_signs = true;
        for (l, matrix) in bands.iter().enumerate() {
            for (index, value) in matrix.iter().enumerate() {
                // Rounding of the solve stays below 1e-6, and a turn that is within 1e-5 of one
                // that changes only signs cannot be told from it.
                if index % (2 * l + 4) == 0 {
                    only_signs &= (value.abs() - 1.0).abs() < 1e-5;
                    if let Some(sign) = slot.next() {
                        *sign = value.signum();
                    }
                } else {
                    only_signs &= value.abs() < 1e-5;
                }
            }
        }
        Self {
            bands,
            signs: only_signs.then_some(signs),
        }
    }

    /// Turns one splat's coefficients (coefficient-major, channel inner, at most 15 * 3) in place.
    pub fn apply(&self, rest: &mut [f32]) {
        if let Some(signs) = &self.signs {
            for (coefficient, sign) in rest.chunks_exact_mut(3).zip(signs) {
                coefficient.iter_mut().for_each(|value| *value *= sign);
            }
            return;
        }
        let mut first = 0;
        for (l, matrix) in self.bands.iter().enumerate() {
            let n = 2 * l + 3;
            let Some(band) = rest.get_mut(first * 3..(first + n) * 3) else {
                return;
            };
            let mut old = [0.0_f32; 21];
            old[..n * 3].copy_from_slice(band);
            for (row, out) in band.chunks_exact_mut(3).enumerate() {
                for (channel, value) in out.iter_mut().enumerate() {
                    *value = (0..n)
                        .map(|k| matrix[row * n + k] * old[k * 3 + channel])
                        .sum();
                }
            }
            first += n;
        }
    }
}

/// Solves `Y(d_i)^T M = Y(turn^-1 d_i)^T` for the band `l` at 2l+1 directions in general position.
fn band_matrix(l: usize, turn: Mat3) -> Vec<f32> {
    let n = 2 * l + 1;
    let first = l * l;
    // Directions on a golden spiral are in general position for every band used here.
    let direction = |i: usize| {
        let z = 0.9 - 1.7 * (i as f32 + 0.5) / n as f32;
        let (s, c) = (i as f32 * 2.399_963).sin_cos();
        let r = (1.0 - z * z).sqrt();
        Vec3::new(r * c, r * s, z)
    };
    // f64 elimination with partial pivoting on [A | B]; n is at most 7.
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let d = direction(i);
            let (a, b) = (basis(d), basis(turn.transpose() * d));
            (0..n)
                .map(|k| f64::from(a[first + k]))
                .chain((0..n).map(|k| f64::from(b[first + k])))
                .collect()
        })
        .collect();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))
            .unwrap_or(column);
        rows.swap(column, pivot);
        let scale = rows[column][column].recip();
        rows[column].iter_mut().for_each(|v| *v *= scale);
        let pivot_row = rows[column].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            if i != column {
                row.iter_mut()
                    .zip(&pivot_row)
                    .for_each(|(v, p)| *v -= factor * p);
            }
        }
    }
    // Rounded to the exact integers and simple fractions that axis turns have, as near as f32 goes.
    rows.iter()
        .flat_map(|row| row[n..].iter().map(|v| *v as f32))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Quat;

    #[test]
    fn a_turned_splat_keeps_its_colours() {
        let rest: Vec<f32> = (0..45)
            .map(|i| ((i * 37 % 19) as f32 - 9.0) * 0.05)
            .collect();
        for turn in [
            Mat3::from_diagonal(Vec3::new(1.0, -1.0, -1.0)),
            Mat3::from_quat(Quat::from_rotation_x(1.2) * Quat::from_rotation_z(0.7)),
        ] {
            let mut turned = rest.clone();
            Rotation::new(turn).apply(&mut turned);
            for i in 0..50 {
                let d = Vec3::new(
                    (i as f32).sin(),
                    (i as f32 * 1.7).cos(),
                    (i as f32 * 0.3).sin(),
                )
                .normalize();
                let before = colour(Vec3::ZERO, &rest, d);
                let after = colour(Vec3::ZERO, &turned, turn * d);
                assert!((before - after).length() < 1e-5, "{before} {after}");
            }
        }
    }
}
