//! A set of splats as it was loaded or generated: immutable after that, shared by `Arc`.
//!
//! Rows stay in file order and none is ever removed, so a row's number is the number it had in the
//! file; rows that cannot be drawn (a value that is not finite) are skipped by whoever draws.
//! Everything is f32 and unpacked: this is what the CPU reference draws, and what `gpu::pack`
//! compresses. Space: world (y up, metres), turned once on load from the file's axes.

use super::axes::Axes;
use super::sh;
use glam::{Mat3, Quat, Vec3};
use rayon::prelude::*;

/// Structure of arrays; every vector has one entry per splat unless its docs say otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Splats {
    /// Centres, world space, metres.
    pub means: Vec<Vec3>,
    /// Natural logarithm of the standard deviations along the splat's own axes, ln metres.
    pub log_scales: Vec<Vec3>,
    /// World from splat axes, unit quaternions (xyzw in memory).
    pub rotations: Vec<Quat>,
    /// Opacity at the centre, 0 to 1 (activated, not logit).
    pub opacities: Vec<f32>,
    /// Band 0 coefficients; the base colour is `0.5 + SH_C0 * dc` in display space.
    pub dc: Vec<Vec3>,
    /// Degree of `sh_rest`, 0 to 3.
    pub sh_degree: u8,
    /// Further coefficients: `sh::rest_count(sh_degree) * 3` per splat, coefficient-major, channel
    /// inner, in the same space as the means.
    pub sh_rest: Vec<f32>,
    /// The scene was trained with antialias compensation and must be drawn with it.
    pub antialiased: bool,
}

/// Where the drawable part of a set of splats lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Smallest coordinates of any finite centre.
    pub min: Vec3,
    /// Largest coordinates of any finite centre.
    pub max: Vec3,
}

impl Splats {
    /// Number of splats, drawable or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.means.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.means.is_empty()
    }

    /// Floats of `sh_rest` per splat.
    #[must_use]
    pub fn sh_stride(&self) -> usize {
        sh::rest_count(self.sh_degree) * 3
    }

    /// The further coefficients of splat `index` (empty at degree 0).
    #[must_use]
    pub fn sh_rest_of(&self, index: usize) -> &[f32] {
        let stride = self.sh_stride();
        &self.sh_rest[index * stride..(index + 1) * stride]
    }

    /// True when every number of row `index` is finite. A log-scale of minus infinity is a splat
    /// of no thickness, which float exporters do write, and counts as finite.
    #[must_use]
    pub fn is_drawable(&self, index: usize) -> bool {
        let scale = self.log_scales[index];
        self.means[index].is_finite()
            && self.rotations[index].is_finite()
            && self.opacities[index].is_finite()
            && self.dc[index].is_finite()
            && !scale.is_nan()
            && scale.max_element() < f32::INFINITY
            && self.sh_rest_of(index).iter().all(|c| c.is_finite())
    }

    /// Half axes of row `index`, one standard deviation long, metres.
    #[must_use]
    pub fn axes_m(&self, index: usize) -> Mat3 {
        let turn = Mat3::from_quat(self.rotations[index].normalize());
        turn * Mat3::from_diagonal(self.log_scales[index].exp())
    }

    /// How many rows are not drawable.
    #[must_use]
    pub fn count_non_finite(&self) -> usize {
        (0..self.len()).filter(|&i| !self.is_drawable(i)).count()
    }

    /// Bounds of the centres of all drawable rows; `None` when there is none.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds> {
        let mut found: Option<Bounds> = None;
        for index in (0..self.len()).filter(|&i| self.is_drawable(i)) {
            let p = self.means[index];
            found = Some(found.map_or(Bounds { min: p, max: p }, |b| Bounds {
                min: b.min.min(p),
                max: b.max.max(p),
            }));
        }
        found
    }

    /// Bounds that leave out the outermost share of centres on each side of each axis, so that
    /// floaters do not spoil a framing. `share` is in [0, 0.5); 0.02 cuts 2 % on each side.
    #[must_use]
    pub fn percentile_bounds(&self, share: f32) -> Option<Bounds> {
        // A quarter of a million samples place a 2 % quantile to better than 0.1 % of the count.
        const SAMPLES_MAX: usize = 262_144;
        let stride = self.len().div_ceil(SAMPLES_MAX).max(1);
        let sample: Vec<Vec3> = (0..self.len())
            .step_by(stride)
            .filter(|&i| self.is_drawable(i) && self.opacities[i] >= 1.0 / 255.0)
            .map(|i| self.means[i])
            .collect();
        if sample.is_empty() {
            return self.bounds();
        }
        let last = sample.len() - 1;
        let cut = ((last as f32) * share.clamp(0.0, 0.499)) as usize;
        let (mut min, mut max) = (Vec3::ZERO, Vec3::ZERO);
        for axis in 0..3 {
            let mut values: Vec<f32> = sample.iter().map(|p| p[axis]).collect();
            min[axis] = *values.select_nth_unstable_by(cut, f32::total_cmp).1;
            max[axis] = *values.select_nth_unstable_by(last - cut, f32::total_cmp).1;
        }
        Some(Bounds { min, max })
    }

    /// Turns every splat about the origin by `turn` (a rotation): centres, rotations and SH.
    pub fn turn(&mut self, turn: Mat3) {
        if turn == Mat3::IDENTITY {
            return;
        }
        let q = Quat::from_mat3(&turn);
        self.means.par_iter_mut().for_each(|p| *p = turn * *p);
        self.rotations.par_iter_mut().for_each(|r| *r = q * *r);
        let stride = self.sh_stride();
        if stride > 0 {
            let rotation = sh::Rotation::new(turn);
            self.sh_rest
                .par_chunks_exact_mut(stride)
                .for_each(|rest| rotation.apply(rest));
        }
    }

    /// Turns splats that are in file space `axes` into world space.
    pub fn turn_to_world(&mut self, axes: Axes) {
        self.turn(axes.world_from_file());
    }

    /// Checks that all vectors agree in length; readers call it before handing splats out.
    ///
    /// # Errors
    /// Names the first field whose length is wrong.
    pub fn check_lengths(&self) -> Result<(), String> {
        let n = self.len();
        let expect = [
            ("log_scales", self.log_scales.len(), n),
            ("rotations", self.rotations.len(), n),
            ("opacities", self.opacities.len(), n),
            ("dc", self.dc.len(), n),
            ("sh_rest", self.sh_rest.len(), n * self.sh_stride()),
        ];
        match expect
            .into_iter()
            .find(|(_, found, wanted)| found != wanted)
        {
            Some((field, found, wanted)) => Err(format!(
                "{field} holds {found} values where {wanted} were expected"
            )),
            None => Ok(()),
        }
    }
}

impl Bounds {
    /// The point in the middle.
    #[must_use]
    pub fn centre(&self) -> Vec3 {
        0.5 * (self.min + self.max)
    }

    /// Half the length of the diagonal, metres.
    #[must_use]
    pub fn radius(&self) -> f32 {
        0.5 * (self.max - self.min).length()
    }
}
