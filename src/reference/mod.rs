//! The oracle: a slow, readable CPU twin of every GPU stage, from a [`Frame`] to a picture.
//!
//! It reads the unpacked f32 splats and computes in f64, so what separates a GPU picture from it is
//! the GPU's rounding and packing. The stages are those of `gpu`, one file each: [`deform`] (bodies),
//! [`effect`] (an author's own changes),
//! [`project`] (one splat to one [`Record`]), [`sort`], [`raster`], [`compose`], and [`pick`]; of filmed frames
//! [`film`] and [`finish`]. It knows neither wgpu nor the packed
//! layouts, and its results do not depend on the number of threads.
//!
//! Method: Kerbl et al., "3D Gaussian Splatting for Real-Time Radiance Field Rendering", 2023, with
//! the projection of Zwicker et al., "EWA Splatting", 2002. Where implementations differ, [`Rules`]
//! says which way is taken.

pub mod compose;
pub mod deform;
pub mod effect;
pub mod film;
pub mod finish;
pub mod pick;
pub mod project;
pub mod raster;
pub mod sort;

pub use compose::picture;
pub use pick::pick;
pub use project::{Record, View};

use crate::camera::NEAR_M;
use crate::frame::Frame;

/// The smallest alpha that is blended.
pub const ALPHA_MIN: f64 = 1.0 / 255.0;
/// The largest alpha of one splat, so that no splat hides what is behind it altogether.
pub const ALPHA_MAX: f64 = 0.99;
/// A pixel is finished when less than this share of what lies behind would be seen.
pub const TRANSMITTANCE_MIN: f64 = 1e-4;
/// Added to both diagonal entries of the 2D covariance, px squared: a splat is never thinner than
/// the pixel grid can show.
pub const DILATION_PX2: f64 = 0.3;
/// The Jacobian is taken no further out than this many half pictures from the axis; beyond, the
/// affine approximation makes splats explode.
pub const JACOBIAN_LIMIT: f64 = 1.3;

/// The points on which splat renderers disagree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Splats whose view depth is not above this are not drawn, metres.
    pub near_m: f64,
    /// How alpha falls off from a splat's centre.
    pub footprint: Footprint,
    /// When a pixel is finished.
    pub stop: Stop,
}

impl Rules {
    /// What the product draws.
    #[must_use]
    pub fn product() -> Self {
        Self {
            near_m: f64::from(NEAR_M),
            footprint: Footprint::Gaussian,
            stop: Stop::Before,
        }
    }

    /// What splat-transform 3.7 draws; its golden pictures check this renderer against another
    /// author's work.
    #[must_use]
    pub fn floor_subtracted() -> Self {
        Self {
            near_m: 0.2,
            footprint: Footprint::FloorSubtracted,
            stop: Stop::After,
        }
    }
}

/// How alpha falls off; `p` is the exponent, minus half the squared Mahalanobis distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// `opacity * exp(p)`, out to where that falls under [`ALPHA_MIN`].
    Gaussian,
    /// `opacity * (exp(p) - exp(-4.5))`: zero at three standard deviations, inside a square of that
    /// half side.
    FloorSubtracted,
}

/// exp(-4.5), the value of a Gaussian at three standard deviations.
const FLOOR: f64 = 0.011_108_996_538_242_306;

impl Footprint {
    /// Alpha of a splat of this opacity at exponent `power`, before the cut at [`ALPHA_MIN`].
    #[must_use]
    pub fn alpha(self, opacity: f64, power: f64) -> f64 {
        let falloff = match self {
            Self::Gaussian => power.exp(),
            Self::FloorSubtracted => (power.exp() - FLOOR).max(0.0),
        };
        (opacity * falloff).min(ALPHA_MAX)
    }

    /// The exponent at which alpha meets [`ALPHA_MIN`].
    #[must_use]
    pub fn power_min(self, opacity: f64) -> f64 {
        match self {
            Self::Gaussian => (ALPHA_MIN / opacity).ln(),
            Self::FloorSubtracted => (ALPHA_MIN / opacity + FLOOR).ln(),
        }
    }
}

/// When a pixel is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Before the splat that would take the transmittance under [`TRANSMITTANCE_MIN`].
    Before,
    /// After that splat.
    After,
    /// Never: everything is blended, as fixed-function blending does.
    Never,
}

/// What the rasteriser leaves: one entry per pixel in each vector, rows top to bottom.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Width and height, px.
    pub size: [u32; 2],
    /// Red, green, blue in display space, multiplied by coverage, without the background. Above
    /// coverage only where a splat's colour is above 1.
    pub colour: Vec<[f32; 3]>,
    /// Share of the background that is hidden, 0 to 1.
    pub coverage: Vec<f32>,
    /// View depth averaged with the blending weights, metres; 0 where nothing was blended.
    pub expected_depth_m: Vec<f32>,
    /// View depth of the splat at which coverage first passes one half, metres; 0 where it does
    /// not.
    pub median_depth_m: Vec<f32>,
}

/// Draws a frame: project, sort, raster. [`picture`] turns the result into bytes.
#[must_use]
pub fn render(frame: &Frame, size: [u32; 2], rules: &Rules) -> Target {
    let mut records = project::project(frame, size, rules);
    sort::sort(&mut records);
    raster::raster(&records, size, rules)
}

/// The picture of a frame, filmed where it says so: 8-bit RGBA as [`compose::picture`] leaves it.
#[must_use]
pub fn shown(frame: &Frame, size: [u32; 2], rules: &Rules) -> Vec<u8> {
    match (frame.film.as_deref(), film::light(frame, size, rules)) {
        (Some(film), Some(light)) => finish::finish(frame, film, &light, size),
        _ => compose::picture(&render(frame, size, rules), frame.background),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_gaussian_at_three_sigma() {
        assert!((FLOOR - (-4.5_f64).exp()).abs() < 1e-15);
    }

    #[test]
    fn alpha_meets_the_cut_where_power_min_says() {
        for footprint in [Footprint::Gaussian, Footprint::FloorSubtracted] {
            for opacity in [0.004, 0.1, 0.9, 1.0] {
                let power = footprint.power_min(opacity);
                let alpha = opacity
                    * match footprint {
                        Footprint::Gaussian => power.exp(),
                        Footprint::FloorSubtracted => power.exp() - FLOOR,
                    };
                assert!((alpha - ALPHA_MIN).abs() < 1e-12, "{footprint:?} {opacity}");
            }
        }
    }
}
