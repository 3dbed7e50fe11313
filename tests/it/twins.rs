//! The GPU against its CPU twin: whole pictures by both rasterisers and both packings, depth,
//! layouts of shared structs, behaviour at the edges.

use crate::given;
use crate::picture::{Bound, assert_close, from_rgba};
use glam::Vec3;
use splatstage::camera::Camera;
use splatstage::formats::{self, LoadOptions};
use splatstage::frame::{Frame, SplatDraw};
use splatstage::gpu::{Context, Packing, RasterMethod, Renderer, Settings};
use splatstage::reference::{self, Rules};
use splatstage::scene::{Bounds, Splats};
use std::sync::Arc;

const SIZE: [u32; 2] = [640, 360];

/// How near a picture must be to the reference.
const PACKED: Bound = Bound {
    psnr_min_db: 45.0,
    outlier_steps: 4,
    outlier_share_max: 1e-4,
};
const FLOAT: Bound = Bound {
    psnr_min_db: 55.0,
    outlier_steps: 4,
    outlier_share_max: 1e-4,
};

fn load(path: &std::path::Path, level: Option<u32>) -> Arc<Splats> {
    let options = LoadOptions {
        level,
        ..Default::default()
    };
    let loaded = formats::load(path, &options, &|_| {}).expect("sample data loads");
    Arc::new(loaded.splats)
}

fn frame_of(splats: &Arc<Splats>, camera: Camera) -> Frame {
    Frame {
        camera,
        draws: vec![SplatDraw::new(Arc::clone(splats))],
        ..Default::default()
    }
}

/// Four views round the middle of a scene: a near one, a far one, one from above, one from within.
fn four_views(bounds: Bounds) -> [Camera; 4] {
    let (centre, radius) = (bounds.centre(), bounds.radius());
    let camera = |offset: Vec3, fov_deg: f32| {
        Camera::look_at(
            centre + offset * radius,
            centre,
            Vec3::Y,
            fov_deg.to_radians(),
        )
    };
    [
        camera(Vec3::new(0.3, 0.2, 1.3), 60.0),
        camera(Vec3::new(-2.0, 0.5, 2.5), 45.0),
        camera(Vec3::new(0.4, 1.6, -0.8), 60.0),
        camera(Vec3::new(0.15, 0.05, 0.1), 80.0),
    ]
}

fn renderer(context: &Context, method: RasterMethod, packing: Packing) -> Renderer {
    let settings = Settings {
        raster: Some(method),
        packing,
        depth: true,
        ..Default::default()
    };
    Renderer::new(context, &settings).expect("the embedded shaders build")
}

/// The frame as the reference draws it.
fn truth_of(frame: &Frame) -> image::RgbaImage {
    let target = reference::render(frame, SIZE, &Rules::product());
    from_rgba(SIZE, reference::picture(&target, frame.background))
}

fn check_scene(name: &str, path: &str, level: Option<u32>) {
    let (Some(context), Some(path)) = (given::gpu(), given::data(path)) else {
        return;
    };
    let splats = load(&path, level);
    let bounds = splats
        .percentile_bounds(0.02)
        .expect("the scene has splats");
    let mut renderers = Vec::new();
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        for (packing, bound) in [(Packing::Packed, PACKED), (Packing::Float, FLOAT)] {
            renderers.push((method, packing, bound, renderer(context, method, packing)));
        }
    }
    for (view, camera) in four_views(bounds).into_iter().enumerate() {
        let frame = frame_of(&splats, camera);
        let truth = truth_of(&frame);
        for (method, packing, bound, renderer) in &mut renderers {
            let (picture, _) = renderer.picture(context, &frame, SIZE).expect("a picture");
            let found = from_rgba(SIZE, picture.rgba);
            assert_close(
                &format!("{name}-{view}-{method:?}-{packing:?}"),
                &found,
                &truth,
                *bound,
            );
        }
    }
}

#[test]
fn playbot_level_2_equals_the_reference() {
    check_scene("playbot", "formats/engine/playbot/lod-meta.json", Some(2));
}

#[test]
fn godot_sh3_equals_the_reference() {
    check_scene("godot", "scenes/godot_demo_sh3.sog", None);
}

#[test]
fn statues_equal_the_reference() {
    check_scene("narcissus", "scenes/statues/narcissus.sog", None);
    check_scene("trumpet", "scenes/statues/trumpet.sog", None);
}

#[test]
fn guitar_equals_the_reference() {
    check_scene("guitar", "formats/engine/guitar.compressed.ply", None);
}

/// A few splats of every kind that a file may hold, generated.
fn odd_splats() -> Arc<Splats> {
    let mut splats = Splats {
        sh_degree: 1,
        ..Default::default()
    };
    let mut add = |mean: Vec3, log_scale: Vec3, opacity: f32| {
        let i = splats.means.len() as f32;
        splats.means.push(mean);
        splats.log_scales.push(log_scale);
        splats.rotations.push(glam::Quat::from_euler(
            glam::EulerRot::XYZ,
            i,
            2.0 * i,
            0.5 * i,
        ));
        splats.opacities.push(opacity);
        splats
            .dc
            .push(Vec3::new((i * 0.7).sin(), (i * 1.3).cos(), (i * 0.4).sin()));
        splats
            .sh_rest
            .extend((0..9).map(|k| ((i + k as f32) * 0.9).sin() * 0.2));
    };
    for i in 0..400 {
        let t = i as f32 * 0.618_034;
        let mean = Vec3::new((t * 2.3).sin(), (t * 3.1).cos(), (t * 1.7).sin()) * 1.5;
        // Needles, discs and balls from sub-pixel to larger than the picture.
        let log_scale = Vec3::new(
            (t * 5.0).sin() * 3.0 - 3.0,
            (t * 7.0).cos() * 3.0 - 3.0,
            -4.0 + (t % 3.0),
        );
        add(mean, log_scale, (t % 1.0).max(0.002));
    }
    // A needle of metres, one of no thickness, an absurd one, an opaque one, one behind the eye.
    add(Vec3::ZERO, Vec3::new(2.0, -9.0, -9.0), 0.9);
    add(
        Vec3::new(0.2, 0.1, 0.0),
        Vec3::new(-1.0, f32::NEG_INFINITY, -1.0),
        0.5,
    );
    add(Vec3::new(0.0, 0.0, -40.0), Vec3::splat(11.0), 0.3);
    add(Vec3::new(-0.4, 0.3, 0.5), Vec3::splat(-2.0), 1.0);
    add(Vec3::new(0.0, 0.0, 9.0), Vec3::splat(-1.0), 1.0);
    // Rows that are not finite.
    add(Vec3::new(f32::NAN, 0.0, 0.0), Vec3::splat(-1.0), 1.0);
    add(Vec3::ZERO, Vec3::splat(f32::INFINITY), 1.0);
    add(Vec3::ZERO, Vec3::splat(-1.0), f32::NAN);
    Arc::new(splats)
}

#[test]
fn odd_splats_placements_and_tints_equal_the_reference() {
    let Some(context) = given::gpu() else { return };
    let splats = odd_splats();
    let compensated = Arc::new(Splats {
        antialiased: true,
        ..(*splats).clone()
    });
    let mut frame = frame_of(
        &splats,
        Camera::look_at(Vec3::new(0.5, 0.6, 4.0), Vec3::ZERO, Vec3::Y, 1.0),
    );
    let mut second = SplatDraw::new(compensated);
    second.placement.translation = Vec3::new(0.8, -0.3, 0.4);
    second.placement.rotation = glam::Quat::from_euler(glam::EulerRot::XYZ, 0.4, 1.0, -0.7);
    second.placement.scale = 0.6;
    second.tint = [0.6, 1.2, 0.9, 0.8];
    frame.draws.push(second);
    frame.background = [0.1, 0.2, 0.4, 0.7];
    let truth = truth_of(&frame);
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let mut renderer = renderer(context, method, Packing::Float);
        let (picture, stats) = renderer.picture(context, &frame, SIZE).expect("a picture");
        assert!(stats.sorted > 300, "{method:?}: {} sorted", stats.sorted);
        let found = from_rgba(SIZE, picture.rgba);
        assert_close(&format!("odd-{method:?}"), &found, &truth, FLOAT);
    }
}

#[test]
fn depth_equals_the_reference() {
    let Some(context) = given::gpu() else { return };
    let frame = frame_of(
        &odd_splats(),
        Camera::look_at(Vec3::new(0.5, 0.6, 4.0), Vec3::ZERO, Vec3::Y, 1.0),
    );
    let truth = reference::render(&frame, SIZE, &Rules::product());
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let layers = renderer(context, method, Packing::Float)
            .layers(context, &frame, SIZE)
            .expect("layers");
        let (mut compared, mut off, mut half_off) = (0, 0, 0);
        for i in 0..layers.expected_depth_m.len() {
            if truth.coverage[i] < 0.1 {
                continue;
            }
            compared += 1;
            let relative = |a: f32, b: f32| (a - b).abs() / b.max(0.01);
            off += usize::from(
                relative(layers.expected_depth_m[i], truth.expected_depth_m[i]) > 0.002,
            );
            if let Some(half) = &layers.median_depth_m {
                half_off += usize::from(relative(half[i], truth.median_depth_m[i]) > 0.002);
            }
        }
        assert!(compared > 50_000, "only {compared} pixels are covered");
        assert!(
            off * 1000 <= compared,
            "{method:?}: {off} of {compared} depths are off"
        );
        assert!(
            half_off * 1000 <= compared,
            "{method:?}: {half_off} of {compared} half depths"
        );
    }
}

#[test]
fn equal_frames_give_equal_bytes() {
    let Some(context) = given::gpu() else { return };
    let frame = frame_of(&odd_splats(), Camera::default());
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let draw = || {
            renderer(context, method, Packing::Packed)
                .picture(context, &frame, SIZE)
                .expect("ok")
                .0
        };
        assert_eq!(draw(), draw(), "{method:?}");
    }
}

#[test]
fn nothing_to_draw_gives_the_background() {
    let Some(context) = given::gpu() else { return };
    let empty = Arc::new(Splats::default());
    for frame in [
        Frame {
            background: [1.0, 0.5, 0.0, 1.0],
            ..Default::default()
        },
        Frame {
            background: [1.0, 0.5, 0.0, 1.0],
            ..frame_of(&empty, Camera::default())
        },
    ] {
        for method in [RasterMethod::Quads, RasterMethod::Tiles] {
            let mut renderer = renderer(context, method, Packing::Packed);
            let (picture, stats) = renderer
                .picture(context, &frame, [33, 17])
                .expect("a picture");
            assert_eq!(stats.sorted, 0);
            assert!(
                picture
                    .rgba
                    .chunks_exact(4)
                    .all(|p| p == [255, 128, 0, 255]),
                "{method:?}"
            );
        }
    }
}

#[test]
fn survivors_beyond_the_first_capacity_are_drawn_too() {
    // 300,000 splats on screen: more than the buffers start with, so they must grow.
    let Some(context) = given::gpu() else { return };
    let mut splats = Splats::default();
    for i in 0..300_000_u32 {
        let (x, y) = ((i % 600) as f32, (i / 600) as f32);
        splats
            .means
            .push(Vec3::new(x / 300.0 - 1.0, y / 300.0 - 0.8, 0.0));
        splats.log_scales.push(Vec3::splat(-7.0));
        splats.rotations.push(glam::Quat::IDENTITY);
        splats.opacities.push(0.7);
        splats.dc.push(Vec3::new(1.0, 0.0, -1.0));
    }
    let frame = frame_of(&Arc::new(splats), Camera::default());
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let mut renderer = renderer(context, method, Packing::Packed);
        let (first, stats) = renderer
            .picture(context, &frame, [128, 128])
            .expect("a picture");
        assert_eq!(stats.sorted, 300_000, "{method:?}");
        let (again, _) = renderer
            .picture(context, &frame, [128, 128])
            .expect("a picture");
        assert_eq!(first, again, "{method:?}");
    }
}

#[test]
fn a_shader_error_names_file_and_line_and_keeps_the_old_one() {
    let Some(context) = given::gpu() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = splatstage::gpu::ShaderSource::default()
        .text("compose.wgsl")
        .expect("embedded")
        .replace(
            "let alpha = front.a + behind;",
            "let alpha = front.a + behnd;",
        );
    let line = text
        .lines()
        .position(|l| l.contains("behnd"))
        .expect("replaced")
        + 1;
    std::fs::write(folder.path().join("compose.wgsl"), text).expect("written");
    let source = splatstage::gpu::ShaderSource::from_dir(folder.path()).expect("a folder");
    let mut renderer = renderer(context, RasterMethod::Quads, Packing::Packed);
    let frame = frame_of(&odd_splats(), Camera::default());
    let before = renderer
        .picture(context, &frame, [64, 64])
        .expect("a picture")
        .0;
    let error = renderer
        .set_shaders(context, &source)
        .expect_err("does not validate")
        .to_string();
    assert!(error.contains(&format!("compose.wgsl:{line}:")), "{error}");
    assert_eq!(
        renderer
            .picture(context, &frame, [64, 64])
            .expect("a picture")
            .0,
        before
    );
}

#[test]
fn a_shader_that_does_not_fit_its_pipeline_is_an_error_too() {
    let Some(context) = given::gpu() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = splatstage::gpu::ShaderSource::default()
        .text("raster_quads.wgsl")
        .expect("embedded")
        .replace("@binding(3)", "@binding(9)");
    std::fs::write(folder.path().join("raster_quads.wgsl"), text).expect("written");
    let source = splatstage::gpu::ShaderSource::from_dir(folder.path()).expect("a folder");
    let mut renderer = renderer(context, RasterMethod::Quads, Packing::Packed);
    let frame = frame_of(&odd_splats(), Camera::default());
    let before = renderer
        .picture(context, &frame, [64, 64])
        .expect("a picture")
        .0;
    renderer
        .set_shaders(context, &source)
        .expect_err("does not fit");
    assert_eq!(
        renderer
            .picture(context, &frame, [64, 64])
            .expect("a picture")
            .0,
        before
    );
}

#[test]
fn uniform_structs_lie_as_the_shaders_read_them() {
    let text = splatstage::gpu::ShaderSource::default();
    let files = [
        "shared/types.wgsl",
        "shared/film.wgsl",
        "film_exposure.wgsl",
    ];
    let text: String = (files.iter())
        .map(|name| text.text(name).expect("embedded"))
        .collect();
    let module = naga::front::wgsl::parse_str(&text).expect("parses");
    let offsets = |name: &str| {
        let (_, ty) = module
            .types
            .iter()
            .find(|(_, t)| t.name.as_deref() == Some(name))
            .expect("is there");
        let naga::TypeInner::Struct { members, span } = &ty.inner else {
            panic!("a struct")
        };
        let members: Vec<_> = members
            .iter()
            .map(|m| (m.name.clone().unwrap_or_default(), m.offset))
            .collect();
        (members, *span)
    };
    for (name, expected) in splatstage::gpu::uniform_layouts() {
        let (members, span) = offsets(name);
        let expected_members: Vec<_> = expected
            .fields
            .iter()
            .map(|(n, o)| ((*n).to_owned(), *o))
            .collect();
        assert_eq!(members, expected_members, "{name}");
        assert_eq!(span, expected.size, "{name}");
    }
}
