//! Conversions of single values that several formats share. No I/O, no errors.

use glam::Quat;

/// Opacity of a stored logit; plus and minus infinity give 1 and 0, NaN stays.
#[must_use]
pub(crate) fn opacity_from_logit(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

/// Logit of an opacity, clamped so that 0 and 1 survive as finite numbers.
///
/// 1e-6 is the clamp of splat-transform's PLY export; it is far below the 1/255 that can be seen.
#[must_use]
pub(crate) fn logit_from_opacity(opacity: f32) -> f32 {
    // In f64: 1 - 1e-6 has only four significant bits of its logit left in f32.
    let a = f64::from(opacity).clamp(1e-6, 1.0 - 1e-6);
    if opacity.is_nan() {
        return f32::NAN;
    }
    (a / (1.0 - a)).ln() as f32
}

/// The unit quaternion along `(w, x, y, z)`. All zero gives the identity (exporters write it for
/// splats they never turned); a value that is not finite gives NaN, so that the row is not drawn.
#[must_use]
pub(crate) fn unit_quaternion(w: f32, x: f32, y: f32, z: f32) -> Quat {
    // Scaling by the largest magnitude first keeps the squares inside f32's range.
    let largest = w.abs().max(x.abs()).max(y.abs()).max(z.abs());
    if ![w, x, y, z].into_iter().all(f32::is_finite) {
        return Quat::from_xyzw(f32::NAN, f32::NAN, f32::NAN, f32::NAN);
    }
    if largest == 0.0 {
        return Quat::IDENTITY;
    }
    let (w, x, y, z) = (w / largest, x / largest, y / largest, z / largest);
    let length = (w * w + x * x + y * y + z * z).sqrt();
    Quat::from_xyzw(x / length, y / length, z / length, w / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opacities_survive_the_way_through_a_logit() {
        for a in [0.0, 1e-3, 0.5, 0.9, 254.0 / 255.0, 1.0] {
            let back = opacity_from_logit(logit_from_opacity(a));
            assert!((back - a).abs() < 2e-6, "{a} became {back}");
            assert!(logit_from_opacity(a).is_finite(), "{a} has no finite logit");
        }
        assert!(logit_from_opacity(f32::NAN).is_nan());
    }

    #[test]
    fn quaternions_become_unit_or_say_that_they_cannot() {
        assert_eq!(unit_quaternion(0.0, 0.0, 0.0, 0.0), Quat::IDENTITY);
        assert!(unit_quaternion(1e30, 1e30, 0.0, 0.0).is_normalized());
        assert!(unit_quaternion(3e38, 3e38, 3e38, 3e38).is_normalized());
        assert!(unit_quaternion(1e-42, 0.0, 0.0, 0.0).is_finite());
        assert!(!unit_quaternion(f32::NAN, 0.0, 0.0, 1.0).is_finite());
        assert!(!unit_quaternion(0.0, f32::INFINITY, 0.0, 1.0).is_finite());
    }
}
