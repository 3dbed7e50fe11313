//! What is drawn: splats, their spherical harmonics, axes, placement (immutable after load), bodies,
//! poses, edits.
//!
//! It knows no file format, no GPU and no script. Spaces and units are those of [`crate::camera`].

pub mod axes;
pub mod body;
pub mod edit;
pub mod rigid;
pub mod sh;
pub mod sheet;
pub mod splats;

pub use axes::Axes;
pub use body::{Body, Pose};
pub use edit::Edit;
pub use rigid::Rigid;
pub use sheet::Sheet;
pub use splats::{Bounds, Splats};

use glam::{Quat, Vec3};

/// A placement: rotation, uniform scale, translation, applied in that order as
/// `p_world = translation + rotation * (scale * p_local)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// Where the local origin lands, metres.
    pub translation: Vec3,
    /// Unit quaternion, world from local.
    pub rotation: Quat,
    /// Uniform scale, above 0. Splats have no shear, so neither has a placement.
    pub scale: f32,
}

impl Default for Placement {
    fn default() -> Self {
        Self {
            translation: Vec3::ZERO,
            rotation: Quat::IDENTITY,
            scale: 1.0,
        }
    }
}

impl Placement {
    /// Maps a local point to world space.
    #[must_use]
    pub fn apply(&self, p_local: Vec3) -> Vec3 {
        self.translation + self.rotation * (self.scale * p_local)
    }

    /// Maps a world point to local space.
    #[must_use]
    pub fn apply_inverse(&self, p_world: Vec3) -> Vec3 {
        self.rotation.inverse() * (p_world - self.translation) / self.scale
    }

    /// True when every number is finite, the rotation is one and the scale is above 0.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.translation.is_finite()
            && self.rotation.is_finite()
            && self.rotation.is_normalized()
            && self.scale.is_finite()
            && self.scale > 0.0
    }
}
