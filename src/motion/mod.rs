//! Pure functions of time: easing, springs, noise, splines and baked tracks.
//!
//! Nothing here knows scripts, splats or a clock, and nothing keeps state between calls: a value at
//! t is the same whenever and in whatever order it is asked for. Numbers are f64, points are
//! [`glam::DVec3`]; the Lua side narrows to its native f32 vectors.

pub mod easing;
pub mod noise;
pub mod spline;
pub mod spring;
pub mod track;

pub use easing::{Ease, cubic_bezier};
pub use spline::Spline;
pub use spring::Spring;
pub use track::Track;
