//! The CPU reference against other authors' renderers, and what must hold of any splat picture.

use crate::given;
use crate::picture::{self, Bound};
use glam::{Quat, Vec3};
use splatstage::camera::{Camera, FOV_DEFAULT_RAD};
use splatstage::formats::{self, LoadOptions};
use splatstage::frame::{Frame, SplatDraw};
use splatstage::reference::{self, Rules, Stop, Target};
use splatstage::scene::{Placement, Splats, sh};
use std::sync::Arc;

const SIZE: [u32; 2] = [64, 48];
/// The pixel whose centre is half a pixel right of and below the axis of a [`SIZE`] picture.
const MIDDLE: usize = 24 * 64 + 32;
/// One pixel's width at 1 m in a [`SIZE`] picture, metres: 2 tan(fov / 2) / 48.
const PIXEL_AT_1_M: f32 = 0.024_056_261;

/// Adds a round splat; `colour` is in display space.
fn push(splats: &mut Splats, mean: Vec3, deviation_m: f32, opacity: f32, colour: Vec3) {
    splats.means.push(mean);
    splats.log_scales.push(Vec3::splat(deviation_m.ln()));
    splats.rotations.push(Quat::IDENTITY);
    splats.opacities.push(opacity);
    splats.dc.push((colour - 0.5) / sh::SH_C0);
}

/// One red splat 2 m before the camera of [`view`].
fn one() -> Splats {
    let mut splats = Splats::default();
    push(&mut splats, Vec3::new(0.0, 0.0, -2.0), 0.1, 0.8, Vec3::X);
    splats
}

/// Splats of every shape, opacity and colour, with SH, within 1 m of (0, 0, -3).
fn cloud(count: usize) -> Splats {
    let mut splats = Splats {
        sh_degree: 3,
        ..Splats::default()
    };
    // Numbers in -1..1 from the linear congruential generator of Numerical Recipes.
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    for _ in 0..count {
        let mean = Vec3::new(next(), next(), next() - 3.0);
        push(
            &mut splats,
            mean,
            1.0,
            0.5 + 0.49 * next(),
            Vec3::splat(0.5),
        );
        let row = splats.len() - 1;
        splats.dc[row] = Vec3::new(next(), next(), next());
        splats.log_scales[row] = Vec3::new(next(), next(), next()) - 2.5;
        splats.rotations[row] = Quat::from_xyzw(next(), next(), next(), 1.1).normalize();
        splats.sh_rest.extend((0..45).map(|_| 0.2 * next()));
    }
    splats
}

/// Splats as they are, seen from the origin along -z.
fn view(splats: Splats) -> Frame {
    Frame {
        camera: Camera {
            position: Vec3::ZERO,
            ..Camera::default()
        },
        draws: vec![SplatDraw::new(Arc::new(splats))],
        ..Frame::default()
    }
}

fn render(frame: &Frame) -> Target {
    reference::render(frame, SIZE, &Rules::product())
}

fn is_clear(target: &Target) -> bool {
    target.coverage.iter().all(|c| *c == 0.0) && target.colour.iter().all(|c| *c == [0.0; 3])
}

fn largest_difference(a: &Target, b: &Target) -> f32 {
    let colours = a.colour.as_flattened().iter().zip(b.colour.as_flattened());
    colours
        .chain(a.coverage.iter().zip(&b.coverage))
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

#[test]
fn splat_transforms_pictures_come_out_by_its_footprint_rule() {
    let Some(folder) = given::data("formats/splat-transform-fixtures") else {
        return;
    };
    let scenes = [
        ("tiny", 20, 1.0, 0.1, Vec3::new(0.0, 5.0, -8.0)),
        ("mid", 220, 0.3, 0.05, Vec3::new(0.0, 10.0, -15.0)),
    ];
    for (name, side, spacing, scale, eye) in scenes {
        let wanted = picture::load(&folder.join(format!("{name}.webp")));
        let mut splats = Splats::default();
        for row in 0..side * side {
            let (column, line) = ((row % side) as f32, (row / side) as f32);
            let half = side as f32 / 2.0;
            let mean = Vec3::new(column - half, 0.0, line - half) * spacing;
            let colour = Vec3::new(
                (column + 1.0) / (side as f32 + 1.0),
                (line + 1.0) / (side as f32 + 1.0),
                0.5,
            );
            push(&mut splats, mean, scale, 0.9, colour);
        }
        let frame = Frame {
            camera: Camera::look_at(eye, Vec3::ZERO, Vec3::Y, FOV_DEFAULT_RAD),
            ..view(splats)
        };
        let size = [wanted.width(), wanted.height()];
        let target = reference::render(&frame, size, &Rules::floor_subtracted());
        let found = picture::from_rgba(size, reference::picture(&target, frame.background));
        let bound = Bound {
            psnr_min_db: 70.0,
            outlier_steps: 2,
            outlier_share_max: 0.0,
        };
        picture::assert_close(&format!("reference_{name}"), &found, &wanted, bound);
    }
}

#[test]
fn gsplats_pictures_come_out_at_70_db() {
    let z_up = [0.0, 0.0, 1.0];
    let y_down = [0.0, -1.0, 0.0];
    let lacadiere = "scenes/lacadiere/lod-meta.json";
    // Picture, scene, level, eye, target, up: the table of the pictures' README.
    #[rustfmt::skip]
    let views = [
        ("playbot_sh2", "formats/engine/playbot/lod-meta.json", 0, [1.2, -0.9, -1.6], [0.0, -0.3, 0.0], y_down),
        ("godot_sh3", "scenes/godot_demo_sh3.sog", 0, [0.0, 0.3, -0.6], [-0.2, 0.9, 2.6], y_down),
        ("narcissus", "scenes/statues/narcissus.sog", 0, [0.0, -0.8, -4.0], [0.0, -0.7, 0.0], y_down),
        ("dining", lacadiere, 1, [-0.8, -9.75, 0.8], [0.1, -13.0, 0.2], z_up),
        ("living_room", lacadiere, 1, [-0.8, -3.25, 0.8], [5.2, -4.75, 0.4], z_up),
    ];
    for (name, scene, level, eye, target, up) in views {
        let (Some(scene), Some(wanted)) = (
            given::data(scene),
            given::data(&format!("views/{name}.png")),
        ) else {
            return;
        };
        let streamed = scene.ends_with("lod-meta.json");
        let options = LoadOptions {
            level: streamed.then_some(level),
            ..LoadOptions::default()
        };
        let loaded = formats::load(&scene, &options, &|_| ())
            .unwrap_or_else(|error| panic!("{}: {error:?}", scene.display()));
        let turn = loaded.axes.world_from_file();
        let [eye, target, up] = [eye, target, up].map(|v| turn * Vec3::from(v));
        let wanted = picture::load(&wanted);
        let size = [wanted.width(), wanted.height()];
        let frame = Frame {
            camera: Camera::look_at(eye, target, up, FOV_DEFAULT_RAD),
            ..view(loaded.splats)
        };
        let target = reference::render(&frame, size, &Rules::product());
        let found = picture::from_rgba(size, reference::picture(&target, frame.background));
        // gsplat sorts by f32 depth: a few dozen pixels see two near-equal depths the other way.
        let bound = Bound {
            psnr_min_db: 70.0,
            outlier_steps: 4,
            outlier_share_max: 1e-4,
        };
        picture::assert_close(&format!("reference_{name}"), &found, &wanted, bound);
    }
}

#[test]
fn nothing_to_draw_gives_the_background_with_its_alpha() {
    let background = [0.2, 0.4, 1.0, 0.6];
    for draws in [Vec::new(), view(Splats::default()).draws] {
        let target = render(&Frame {
            draws,
            ..Frame::default()
        });
        assert!(is_clear(&target));
        let bytes = reference::picture(&target, background);
        assert_eq!(bytes, [51, 102, 255, 153].repeat(64 * 48));
        assert_eq!(
            reference::picture(&target, [1.0, 1.0, 1.0, 0.0]),
            [0; 4].repeat(64 * 48)
        );
    }
}

#[test]
fn alpha_is_straight_where_splats_and_background_are_both_half_there() {
    let frame = view(one());
    let target = render(&frame);
    let coverage = target.coverage[MIDDLE];
    assert!((0.5..0.8).contains(&coverage));
    let bytes = reference::picture(&target, [0.0, 0.0, 1.0, 0.5]);
    let alpha = coverage + 0.5 * (1.0 - coverage);
    let wanted = [coverage / alpha, 0.0, 0.5 * (1.0 - coverage) / alpha, alpha];
    for (found, wanted) in bytes[4 * MIDDLE..].iter().zip(wanted) {
        assert!((f32::from(*found) - 255.0 * wanted).abs() < 0.51);
    }
}

#[test]
fn a_picture_of_no_pixels_is_empty() {
    for size in [[0, 0], [8, 0], [0, 8]] {
        assert!(
            reference::render(&view(one()), size, &Rules::product())
                .colour
                .is_empty()
        );
    }
}

#[test]
fn splats_behind_or_too_near_leave_no_trace() {
    for z in [2.0, 0.0, -0.009] {
        let mut splats = one();
        splats.means[0].z = z;
        assert!(is_clear(&render(&view(splats))), "z = {z}");
    }
}

#[test]
fn faint_splats_leave_no_trace() {
    for (opacity, tint) in [
        (0.0039, 1.0),
        (0.0, 1.0),
        (-1.0, 1.0),
        (0.8, 0.004),
        (0.8, 0.0),
    ] {
        let mut splats = one();
        splats.opacities[0] = opacity;
        let mut frame = view(splats);
        frame.draws[0].tint[3] = tint;
        assert!(is_clear(&render(&frame)), "opacity {opacity}, tint {tint}");
    }
}

#[test]
fn coincident_splats_blend_in_order_of_row_then_draw() {
    let mean = Vec3::new(0.0, 0.0, -2.0);
    let mut rows = Splats::default();
    let mut draws = Vec::new();
    for colour in [Vec3::X, Vec3::Y, Vec3::Z] {
        let mut single = Splats::default();
        push(&mut rows, mean, 0.2, 0.5, colour);
        push(&mut single, mean, 0.2, 0.5, colour);
        draws.push(SplatDraw::new(Arc::new(single)));
    }
    let by_row = render(&view(rows));
    let [red, green, blue] = by_row.colour[MIDDLE];
    assert!(
        red > 1.9 * green && green > 1.9 * blue && blue > 0.1,
        "{red} {green} {blue}"
    );
    let by_draw = render(&Frame {
        draws,
        ..view(Splats::default())
    });
    assert_eq!(by_row, by_draw);
}

#[test]
fn nearer_splats_hide_farther_ones_whatever_their_draw() {
    let mut far = one();
    far.means[0].z = -3.0;
    let mut frame = view(far);
    frame.draws.extend(view(one()).draws);
    frame.draws[0].tint = [0.0, 1.0, 1.0, 1.0];
    let near_alone = render(&view(one()));
    assert_eq!(
        render(&frame).colour[MIDDLE][0],
        near_alone.colour[MIDDLE][0]
    );
}

#[test]
fn rows_that_are_not_finite_are_never_drawn() {
    type Break = fn(&mut Splats, f32);
    let breaks: [(&str, Break); 6] = [
        ("mean", |s, v| s.means[0].y = v),
        ("scale", |s, v| s.log_scales[0].x = v.abs()),
        ("rotation", |s, v| s.rotations[0].w = v),
        ("opacity", |s, v| s.opacities[0] = v),
        ("dc", |s, v| s.dc[0].z = v),
        ("sh_rest", |s, v| {
            s.sh_degree = 1;
            s.sh_rest = vec![v; 9];
        }),
    ];
    for (field, break_row) in breaks {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut splats = one();
            break_row(&mut splats, value);
            assert!(is_clear(&render(&view(splats))), "{field} = {value}");
        }
    }
}

#[test]
fn absurd_rows_give_finite_pictures() {
    type Break = fn(&mut Splats);
    let breaks: [(&str, Break); 6] = [
        ("huge", |s| s.log_scales[0] = Vec3::splat(f32::MAX)),
        ("a needle", |s| {
            s.log_scales[0] = Vec3::new(f32::MAX, f32::NEG_INFINITY, -1e9)
        }),
        ("a point", |s| s.log_scales[0] = Vec3::NEG_INFINITY),
        ("no rotation", |s| {
            s.rotations[0] = Quat::from_xyzw(0.0, 0.0, 0.0, 0.0)
        }),
        ("opacity over 1", |s| s.opacities[0] = 1e9),
        ("far away", |s| s.means[0].z = -f32::MAX),
    ];
    for (what, break_row) in breaks {
        let mut splats = one();
        break_row(&mut splats);
        let target = render(&view(splats));
        assert!(!is_clear(&target), "{what} is still drawn");
        assert!(
            target.coverage.iter().all(|c| (0.0..=0.9901).contains(c)),
            "{what}"
        );
        assert!(
            target.colour.as_flattened().iter().all(|c| c.is_finite()),
            "{what}"
        );
    }
}

#[test]
fn both_depths_of_one_splat_are_its_view_depth() {
    let mut splats = one();
    splats.opacities[0] = 1.0;
    splats.log_scales[0] = Vec3::splat(0.3_f32.ln());
    let target = render(&view(splats));
    for (pixel, coverage) in target.coverage.iter().enumerate() {
        let expected_m = if *coverage > 0.0 { 2.0 } else { 0.0 };
        let median_m = if *coverage > 0.5 { 2.0 } else { 0.0 };
        assert!((target.expected_depth_m[pixel] - expected_m).abs() < 1e-6);
        assert_eq!(target.median_depth_m[pixel], median_m);
    }
    assert!(target.coverage.iter().any(|c| *c > 0.5));
    assert!(target.coverage.iter().any(|c| *c > 0.0 && *c < 0.5));
    assert!(target.coverage.contains(&0.0));
}

#[test]
fn median_depth_is_that_of_the_splat_that_passes_one_half() {
    let mut splats = Splats::default();
    for (z, opacity) in [(-4.0, 0.9), (-1.0, 0.3), (-2.0, 0.4)] {
        push(
            &mut splats,
            Vec3::new(0.0, 0.0, z),
            10.0,
            opacity,
            Vec3::ONE,
        );
    }
    let target = render(&view(splats));
    // Front to back: coverage 0.3, 0.58, 0.958; weights 0.3, 0.28, 0.378.
    assert_eq!(target.median_depth_m[MIDDLE], 2.0);
    let wanted = (0.3 + 0.28 * 2.0 + 0.378 * 4.0) / 0.958;
    assert!((target.expected_depth_m[MIDDLE] - wanted).abs() < 1e-4);
}

#[test]
fn a_pixel_stops_where_less_than_one_ten_thousandth_would_be_seen() {
    let mut splats = Splats::default();
    for row in 0..20 {
        let mean = Vec3::new(0.0, 0.0, -2.0 - 0.1 * row as f32);
        push(&mut splats, mean, 10.0, 0.95, Vec3::ONE);
    }
    let frame = view(splats);
    // 0.05^3 = 1.25e-4 is kept, 0.05^4 = 6.25e-6 is too little, 0.05^20 is nothing.
    for (stop, wanted) in [
        (Stop::Before, 1.25e-4),
        (Stop::After, 6.25e-6),
        (Stop::Never, 0.0),
    ] {
        let rules = Rules {
            stop,
            ..Rules::product()
        };
        let target = reference::render(&frame, SIZE, &rules);
        let transmittance = 1.0 - target.coverage[MIDDLE];
        assert!(
            (transmittance - wanted).abs() < 1e-6,
            "{stop:?}: {transmittance}"
        );
    }
}

#[test]
fn compensation_keeps_a_small_splats_total_of_light() {
    let deviation_px = 0.4;
    let mut splats = Splats {
        antialiased: true,
        ..Splats::default()
    };
    let mean = Vec3::new(0.5, -0.5, -1.0) * PIXEL_AT_1_M - Vec3::Z * (1.0 - PIXEL_AT_1_M);
    push(
        &mut splats,
        mean,
        deviation_px * PIXEL_AT_1_M,
        0.9,
        Vec3::ONE,
    );
    let total: f32 = render(&view(splats.clone())).coverage.iter().sum();
    let wanted = 0.9 * std::f32::consts::TAU * deviation_px * deviation_px;
    // The cut at 1/255 loses a few hundredths of it.
    assert!((total / wanted - 1.0).abs() < 0.05, "{total} {wanted}");
    splats.antialiased = false;
    let dilated: f32 = render(&view(splats)).coverage.iter().sum();
    assert!(dilated > 1.5 * total);
}

#[test]
fn turning_moving_and_scaling_all_changes_nothing_but_depth() {
    let still = view(cloud(1000));
    let placement = Placement {
        translation: Vec3::new(5.0, -3.0, 2.0),
        rotation: Quat::from_rotation_y(2.0) * Quat::from_rotation_x(0.7),
        scale: 2.5,
    };
    let mut moved = still.clone();
    moved.draws[0].placement = placement;
    moved.camera.position = placement.apply(still.camera.position);
    moved.camera.rotation = placement.rotation * still.camera.rotation;
    let (still, moved) = (render(&still), render(&moved));
    let covered = |pixel: &usize| still.coverage[*pixel] > 0.5;
    assert!((0..still.coverage.len()).filter(covered).count() > 500);
    let difference = largest_difference(&still, &moved);
    assert!(difference < 1e-3, "{difference}");
    for pixel in (0..still.coverage.len()).filter(covered) {
        let wanted_m = 2.5 * still.expected_depth_m[pixel];
        assert!((moved.expected_depth_m[pixel] - wanted_m).abs() < 0.01);
    }
}

#[test]
fn tint_multiplies_colour_and_opacity() {
    let mut frame = view(one());
    let plain = render(&frame).colour[MIDDLE][0];
    frame.draws[0].tint = [0.5, 1.0, 1.0, 0.5];
    let tinted = render(&frame).colour[MIDDLE][0];
    assert!((tinted - 0.25 * plain).abs() < 1e-6);
}

#[test]
fn pictures_do_not_depend_on_the_number_of_threads() {
    let frame = view(cloud(500));
    let single = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("one thread");
    let several = rayon::ThreadPoolBuilder::new()
        .num_threads(5)
        .build()
        .expect("five threads");
    assert_eq!(
        single.install(|| render(&frame)),
        several.install(|| render(&frame))
    );
}
