//! A camera as command-line flags, so that a view found by hand can be named again.

use crate::frame::Frame;
use glam::Vec3;

/// Share of centres left out on each side when the middle of a scene is looked for: floaters must
/// not become the point that is orbited.
const FLOATERS: f32 = 0.05;

/// `--eye X,Y,Z --target X,Y,Z --up X,Y,Z --fov DEG` of a frame's camera, world space. The target
/// lies on the view ray, as far away as the middle of what is drawn.
#[must_use]
pub fn flags(frame: &Frame) -> String {
    let camera = &frame.camera;
    let eye = camera.position.as_dvec3();
    let forward = camera.forward().as_dvec3();
    let target = eye + f64::from(distance_m(frame)) * forward;
    let up = (camera.rotation * Vec3::Y).as_dvec3();
    let numbers = |v: glam::DVec3| v.to_array().map(number).join(",");
    format!(
        "--eye {} --target {} --up {} --fov {}",
        numbers(eye),
        numbers(target),
        numbers(up),
        // The angle is f32 radians, which leaves no more than these digits of a degree.
        number((f64::from(camera.fov_y_rad).to_degrees() * 1e5).round() / 1e5)
    )
}

/// From the eye to the target, metres.
fn distance_m(frame: &Frame) -> f32 {
    let mut nearest: Option<f32> = None;
    for draw in &frame.draws {
        let Some(bounds) = draw.splats.percentile_bounds(FLOATERS) else {
            continue;
        };
        let radius_m = bounds.radius() * draw.placement.scale;
        let centre = draw.placement.apply(bounds.centre());
        let along_m = (centre - frame.camera.position).dot(frame.camera.forward());
        // From within a scene its middle may be beside or behind the lens.
        let distance_m = if along_m > 0.1 * radius_m {
            along_m
        } else {
            radius_m
        };
        nearest = Some(nearest.map_or(distance_m, |known| known.min(distance_m)));
    }
    nearest.filter(|d| d.is_finite() && *d > 0.0).unwrap_or(1.0)
}

/// Six decimals (a micrometre) without the zeros at their end.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::Camera;

    #[test]
    fn the_flags_name_the_camera_in_world_space() {
        let camera = Camera::look_at(
            Vec3::new(1.0, 2.0, 3.0),
            Vec3::new(1.0, 2.0, 0.0),
            Vec3::Y,
            40_f32.to_radians(),
        );
        let frame = Frame {
            camera,
            ..Frame::default()
        };
        assert_eq!(
            flags(&frame),
            "--eye 1,2,3 --target 1,2,2 --up 0,1,0 --fov 40"
        );
    }

    #[test]
    fn numbers_are_short_and_exact_enough() {
        assert_eq!(number(-0.000_000_1), "0");
        assert_eq!(number(1.5), "1.5");
        assert_eq!(number(-12.345_678_9), "-12.345679");
        assert_eq!(number(100.0), "100");
    }
}
