//! One splat of a posed body: blendshapes, then skinning; what the `deform` shader does.
//!
//! Offsets of the shapes are added at rest, then the splat takes the rigid motion that its four
//! heaviest bones blend to. In f64 and one splat at a time. Edits come after it, in [`super::project`].
//!
//! Source: Kavan et al. 2008 for the blend (see [`crate::scene::rigid`]).

use crate::scene::Pose;
use glam::{DQuat, DVec3};
use half::f16;

/// Where a splat has gone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deformed {
    /// Centre in the splats' space, metres.
    pub mean: DVec3,
    /// The turn that its rotation and its colours take.
    pub turn: DQuat,
}

/// Row `row` of a posed body, at rest at `rest`.
#[must_use]
pub fn deform(pose: &Pose, row: usize, rest: DVec3) -> Deformed {
    let mut mean = rest;
    for entry in pose.body.shapes.row(row) {
        let offset = DVec3::from(entry.offset.map(f16::to_f64));
        let coefficient = pose.coefficients.get(usize::from(entry.shape));
        mean += offset * coefficient.copied().map_or(0.0, f64::from);
    }
    let Some(skin) = &pose.body.skin else {
        return Deformed {
            mean,
            turn: DQuat::IDENTITY,
        };
    };
    let (bones, weights) = skin.heaviest(row);
    let zero = DQuat::from_xyzw(0.0, 0.0, 0.0, 0.0);
    let (mut real, mut dual) = (zero, zero);
    for (bone, weight) in bones.into_iter().zip(weights) {
        let Some(motion) = pose.motions.get(usize::from(bone)) else {
            continue;
        };
        let turn = motion.rotation.as_dquat();
        let half = motion.translation.as_dvec3() * 0.5;
        let shift = DQuat::from_xyzw(half.x, half.y, half.z, 0.0) * turn;
        let sign = if real.dot(turn) < 0.0 { -1.0 } else { 1.0 };
        real += turn * (sign * f64::from(weight));
        dual += shift * (sign * f64::from(weight));
    }
    let length = real.length();
    let is_blend = length > 1e-6;
    if !is_blend {
        return Deformed {
            mean,
            turn: DQuat::IDENTITY,
        };
    }
    let turn = real / length;
    let shift = (dual / length) * turn.conjugate() * 2.0;
    Deformed {
        mean: turn * mean + DVec3::new(shift.x, shift.y, shift.z),
        turn,
    }
}
