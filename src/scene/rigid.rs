//! Rigid motions as dual quaternions: what bones do to splats, blended without collapsing.
//!
//! A blend of matrices shrinks a twisted limb to the waist of a candy wrapper; a blend of dual
//! quaternions stays rigid. Source: Kavan, Collins, Zara, O'Sullivan, "Geometric Skinning with
//! Approximate Dual Quaternion Blending", 2008 (algorithm 1 with the sign test against the running
//! sum). Twin in `shaders/deform.wgsl`.

use glam::{Quat, Vec3};

/// `x -> rotation * x + translation`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rigid {
    /// Unit quaternion.
    pub rotation: Quat,
    /// Metres.
    pub translation: Vec3,
}

impl Rigid {
    /// What moves nothing.
    pub const IDENTITY: Self = Self {
        rotation: Quat::IDENTITY,
        translation: Vec3::ZERO,
    };

    /// A turn about `pivot`, then a shift by `shift`.
    #[must_use]
    pub fn about(pivot: Vec3, rotation: Quat, shift: Vec3) -> Self {
        Self {
            rotation,
            translation: pivot - rotation * pivot + shift,
        }
    }

    /// Where a point goes.
    #[must_use]
    pub fn apply(&self, p: Vec3) -> Vec3 {
        self.rotation * p + self.translation
    }

    /// `self` after `first`.
    #[must_use]
    pub fn after(&self, first: &Self) -> Self {
        Self {
            rotation: (self.rotation * first.rotation).normalize(),
            translation: self.apply(first.translation),
        }
    }

    /// The motion back.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let rotation = self.rotation.inverse();
        Self {
            rotation,
            translation: -(rotation * self.translation),
        }
    }

    /// True when every number is finite and the rotation is one.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.translation.is_finite() && self.rotation.is_finite() && self.rotation.is_normalized()
    }
}

/// A dual quaternion `real + e dual`, as two quaternions in (x, y, z, w).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualQuat {
    /// The rotation.
    pub real: Quat,
    /// Half the translation times the rotation.
    pub dual: Quat,
}

impl From<Rigid> for DualQuat {
    fn from(motion: Rigid) -> Self {
        let half = motion.translation * 0.5;
        Self {
            real: motion.rotation,
            dual: Quat::from_xyzw(half.x, half.y, half.z, 0.0) * motion.rotation,
        }
    }
}

/// The rigid motion nearest to a weighted blend. Weights need not sum to one; without any weight
/// above zero nothing moves.
#[must_use]
pub fn blend(motions: impl IntoIterator<Item = (f32, Rigid)>) -> Rigid {
    let mut real = Quat::from_xyzw(0.0, 0.0, 0.0, 0.0);
    let mut dual = real;
    for (weight, motion) in motions {
        let part = DualQuat::from(motion);
        // q and -q are one rotation; the one on this side of the sphere is the short way.
        let weight = if real.dot(part.real) < 0.0 {
            -weight
        } else {
            weight
        };
        real += part.real * weight;
        dual += part.dual * weight;
    }
    let length = real.length();
    let has_weight = length > 1e-6;
    if !has_weight {
        return Rigid::IDENTITY;
    }
    let real = real / length;
    let shift = (dual / length) * real.conjugate() * 2.0;
    Rigid {
        rotation: real,
        translation: Vec3::new(shift.x, shift.y, shift.z),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_about_a_joint_leaves_the_joint() {
        let joint = Vec3::new(0.1, -0.2, 0.3);
        let turn = Rigid::about(joint, Quat::from_rotation_x(0.7), Vec3::ZERO);
        assert!((turn.apply(joint) - joint).length() < 1e-6);
        let back = turn.inverse().after(&turn);
        assert!((back.apply(Vec3::ONE) - Vec3::ONE).length() < 1e-6);
    }

    #[test]
    fn a_blend_of_one_is_that_one_and_half_of_a_twist_is_rigid() {
        let a = Rigid::about(Vec3::X, Quat::from_rotation_y(0.4), Vec3::Y);
        let alone = blend([(0.3, a)]);
        assert!((alone.apply(Vec3::ONE) - a.apply(Vec3::ONE)).length() < 1e-6);
        // Half way between nothing and a half turn about x is a quarter turn, not a flat plate.
        let twist = Rigid::about(Vec3::ZERO, Quat::from_rotation_x(3.1), Vec3::ZERO);
        let half = blend([(0.5, Rigid::IDENTITY), (0.5, twist)]);
        assert!((half.apply(Vec3::Y).length() - 1.0).abs() < 1e-5);
        assert_eq!(blend([(0.0, a)]), Rigid::IDENTITY);
    }

    #[test]
    fn both_signs_of_a_quaternion_are_one_rotation() {
        let a = Rigid::about(Vec3::X, Quat::from_rotation_z(0.5), Vec3::ZERO);
        let negated = Rigid {
            rotation: -a.rotation,
            ..a
        };
        let blended = blend([(0.5, a), (0.5, negated)]);
        assert!((blended.apply(Vec3::Y) - a.apply(Vec3::Y)).length() < 1e-6);
    }
}
