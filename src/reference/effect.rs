//! Effects on one splat, one after the other: what `effects.wgsl` does, by the interpreter.

use crate::effect::{COLOUR_MAX, EFFECTS_MAX, EffectSplat, EffectUse};
use glam::{Quat, Vec3};

/// The splat after all effects of a draw, within what can be drawn.
#[must_use]
pub fn effected(effects: &[EffectUse], before: EffectSplat) -> EffectSplat {
    let in_use = effects.iter().take(EFFECTS_MAX);
    in_use.fold(before, |splat, used| {
        settled(used.effect.apply(&splat, &used.values, used.t_s))
    })
}

/// Largest standard deviation, metres: as [`super::project::LOG_SCALE_MAX`].
const SCALE_MAX_M: f32 = 8_886_110.5;

fn settled(after: EffectSplat) -> EffectSplat {
    let is_turn = after.rotation.length_squared() > 1e-12;
    let held = |v: f32| v.abs() < 1e30;
    let is_number = (after.centre_m.to_array().into_iter())
        .chain(after.scale_m.to_array())
        .chain([after.opacity, after.rotation.length_squared()])
        .all(held);
    EffectSplat {
        scale_m: after.scale_m.min(Vec3::splat(SCALE_MAX_M)),
        rotation: if is_turn {
            after.rotation.normalize()
        } else {
            Quat::IDENTITY
        },
        opacity: if is_number { after.opacity } else { 0.0 },
        colour: Vec3::from(after.colour.to_array().map(colour)),
        ..after
    }
}

/// Not a number becomes 0.
fn colour(value: f32) -> f32 {
    if value > 0.0 {
        value.min(COLOUR_MAX)
    } else {
        0.0
    }
}
