//! Effects: the GPU against the interpreter, errors at the author's line, fire that spreads and leaves
//! nothing to sort, touches, and what a reload makes of a broken one.

use crate::bodies::{Chance, edits, head_camera, made_body, random_pose};
use crate::given;
use crate::mind::{Nothing, load_files};
use crate::picture::{Bound, assert_close, from_rgba};
use glam::{Quat, Vec3};
use serde_json::{Value as Json, json};
use splatstage::camera::Camera;
use splatstage::effect::spread::{NEVER_M, Spread};
use splatstage::effect::{Effect, EffectUse};
use splatstage::film::Film;
use splatstage::frame::{Event, Frame, SplatDraw};
use splatstage::gpu::{Packing, RasterMethod, Renderer, Settings};
use splatstage::reference::{self, Rules};
use splatstage::scene::edit::Solid;
use splatstage::scene::{Axes, Edit, Splats};
use splatstage::script::{LoadError, Script};
use std::collections::BTreeMap;
use std::sync::Arc;

const SIZE: [u32; 2] = [240, 240];
const BURN: &str = include_str!("../../scenes/burn/scene.luau");
const EFFECTS: &str = include_str!("../../scenes/effects/scene.luau");

/// GPU and twin run the same text: what is left is rounding.
const CLOSE: Bound = Bound {
    psnr_min_db: 55.0,
    outlier_steps: 4,
    outlier_share_max: 1e-3,
};
const PACKED: Bound = Bound {
    psnr_min_db: 45.0,
    outlier_steps: 8,
    outlier_share_max: 1e-3,
};

fn load(files: &[(&str, &str)], args: Json) -> Script {
    let files = files
        .iter()
        .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()));
    load_files(files.collect(), Arc::new(Nothing), args, None).0
}

fn frame(scene: &str, args: Json, t_s: f64) -> Frame {
    let mut script = load(&[("scene.luau", scene)], args);
    script.advance_to(t_s, &Default::default()).expect("steps");
    script.frame(t_s).expect("a picture")
}

/// Rasterisers and packings, each with the stage "effects" in one half or in two, and how near they come
/// to the twin.
const KINDS: [(RasterMethod, Packing, bool, Bound); 4] = [
    (RasterMethod::Quads, Packing::Float, true, CLOSE),
    (RasterMethod::Tiles, Packing::Float, false, CLOSE),
    (RasterMethod::Quads, Packing::Packed, true, PACKED),
    (RasterMethod::Tiles, Packing::Packed, false, PACKED),
];

fn renderer(
    context: &splatstage::gpu::Context,
    method: RasterMethod,
    packing: Packing,
    is_apart: bool,
) -> Renderer {
    let settings = Settings {
        raster: Some(method),
        packing,
        effects_apart: Some(is_apart),
        ..Default::default()
    };
    Renderer::new(context, &settings).expect("the embedded shaders build")
}

fn assert_twins(name: &str, frame: &Frame) {
    let Some(context) = given::gpu() else { return };
    let truth = reference::shown(frame, SIZE, &Rules::product());
    let truth = from_rgba(SIZE, truth);
    for (method, packing, is_apart, bound) in KINDS {
        let (picture, stats) = renderer(context, method, packing, is_apart)
            .picture(context, frame, SIZE)
            .expect("a picture");
        println!("{name}: {} of {} sorted", stats.sorted, stats.count);
        let found = from_rgba(SIZE, picture.rgba);
        assert_close(
            &format!("{name}-{method:?}-{packing:?}"),
            &found,
            &truth,
            bound,
        );
    }
}

#[test]
fn burning_equals_the_twin() {
    for t_s in [2.0, 4.5] {
        let frame = frame(BURN, json!({ "at": 0.2, "density": 0.2 }), t_s);
        let values = &frame.draws[0].effects[0].values;
        assert!(values[0] > 0.2, "{t_s}: the fire has come {} m", values[0]);
        assert_twins(&format!("burn-{t_s}"), &frame);
    }
}

#[test]
fn waves_rain_clouds_wind_and_changes_equal_the_twin() {
    for (effect, t_s) in [
        ("wave", 2.2),
        ("rain", 2.6),
        ("dissolve", 2.4),
        ("wind", 1.7),
        ("transition", 2.7),
    ] {
        let args = json!({ "effect": effect, "density": 0.2 });
        assert_twins(effect, &frame(EFFECTS, args, t_s));
    }
}

/// A ball of splats.
fn ball(count: usize) -> Arc<Splats> {
    let mut splats = Splats {
        sh_degree: 1,
        ..Splats::default()
    };
    for i in 0..count {
        let u = (i as f32 + 0.5) / count as f32;
        let (a, y) = (2.399_963 * i as f32, 1.0 - 2.0 * u);
        let r = (1.0 - y * y).sqrt();
        let at = Vec3::new(r * a.cos(), y, r * a.sin());
        splats.means.push(at);
        splats.log_scales.push(Vec3::new(-3.2, -3.2, -5.0));
        splats.rotations.push(Quat::from_rotation_arc(Vec3::Z, at));
        splats.opacities.push(0.9);
        splats.dc.push(at * 0.8);
        let waves = (0..9).map(|k| ((i + k) as f32 * 0.7).sin() * 0.1);
        splats.sh_rest.extend(waves);
    }
    Arc::new(splats)
}

fn effect(text: &str) -> Arc<Effect> {
    Arc::new(Effect::new("a.wgsl", text).unwrap_or_else(|e| panic!("{e}")))
}

fn used(effect: &Arc<Effect>, values: &[f32]) -> EffectUse {
    EffectUse {
        effect: Arc::clone(effect),
        values: values.to_vec(),
        t_s: 1.25,
    }
}

fn camera() -> Camera {
    Camera::look_at(Vec3::new(0.6, 0.8, 3.6), Vec3::ZERO, Vec3::Y, 0.8)
}

#[test]
fn effects_follow_poses_edits_and_each_other_wherever_a_handle_stands() {
    // Both have a `fn part`, and structs of one name.
    let first = effect(
        "struct Uniforms { share: f32, tint: vec3f }\n\
         fn part(x: f32) -> f32 { return 0.5 + 0.5 * sin(9.0 * x); }\n\
         fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat { var s = splat;\n\
         s.colour = mix(s.colour, u.tint, u.share * part(splat.world_m.y));\n\
         s.centre_m += own_from_world(splat, vec3f(0.0, 0.2 * part(splat.rest_m.x), 0.0)); return s; }",
    );
    let second = effect(
        "fn part(row: u32) -> f32 { return random(row, 4u); }\n\
         fn effect(splat: Splat, t_s: f32) -> Splat { var s = splat;\n\
         if part(splat.row) < 0.3 { s.opacity = 0.0; }\n\
         s.scale_m *= vec3f(1.0, 1.6, 1.0) * fract(t_s) * 4.0;\n\
         s.rotation = product(vec4f(0.0, 0.3, 0.0, 0.954), s.rotation);\n\
         s.colour = s.colour * (1.0 + octaves(3.0 * splat.rest_m, 4u)); return s; }",
    );
    let splats = ball(3000);
    let mut draw = SplatDraw::new(Arc::clone(&splats));
    draw.placement.translation = Vec3::new(0.2, -0.1, 0.3);
    draw.placement.rotation = Quat::from_euler(glam::EulerRot::XYZ, 0.4, 1.0, -0.7);
    draw.placement.scale = 0.7;
    draw.tint = [0.9, 1.1, 0.8, 0.85];
    draw.edits = vec![Edit {
        solid: Solid::Sphere { radius: 0.6 },
        local_from_solid: splatstage::scene::Rigid {
            rotation: Quat::IDENTITY,
            translation: Vec3::new(0.7, 0.3, 0.4),
        },
        soft_edge_m: 0.3,
        is_inverted: false,
        opacity: 0.5,
        tint: Vec3::new(0.4, 1.0, 1.0),
        displace: Vec3::new(0.3, 0.0, 0.0),
    }];
    draw.effects = vec![used(&first, &[0.8, 1.0, 0.3, 0.1]), used(&second, &[])];
    let plain = SplatDraw {
        effects: Vec::new(),
        placement: Default::default(),
        ..draw.clone()
    };
    let frame = Frame {
        camera: camera(),
        draws: vec![draw, plain],
        ..Frame::default()
    };
    assert_twins("placed", &frame);
    let turned = |yaw_rad: f32| Camera {
        rotation: frame.camera.rotation * Quat::from_rotation_y(yaw_rad),
        ..frame.camera
    };
    let filmed = Frame {
        film: Some(Box::new(Film {
            shutter: [turned(-0.01), turned(0.01)],
            ..Film::default()
        })),
        ..frame
    };
    assert_twins("filmed", &filmed);
}

#[test]
fn what_is_gone_is_neither_counted_nor_hit_and_its_arrivals_reach_every_page() {
    let text = "struct Uniforms { front: f32 }\n\
                fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat { var s = splat;\n\
                if splat.spread_m <= u.front { s.opacity = 0.0; } return s; }";
    let burn = effect(text);
    let splats = ball(20_000);
    let mut spread = Spread::new(
        &splats.means,
        |_| Some(glam::Mat3::from_diagonal(Vec3::splat(0.04))),
        None,
    );
    let top = spread.nearest(&splats.means, Vec3::Z).expect("there");
    spread.begin(&splats.means, top, 0.0);
    let Some(context) = given::gpu() else { return };
    let mut renderer = renderer(context, RasterMethod::Tiles, Packing::Packed, false);
    let mut last = u64::MAX;
    for front in [0.0_f32, 0.4, 0.8, 1.6, 4.0] {
        spread.reach(&splats.means, front);
        let mut draw = SplatDraw::new(Arc::clone(&splats));
        draw.effects = vec![used(&burn, &[front])];
        draw.arrivals = Some(spread.arrivals().clone());
        draw.target = Some(7);
        let frame = Frame {
            camera: Camera::look_at(Vec3::new(0.0, 0.0, 3.0), Vec3::ZERO, Vec3::Y, 1.0),
            draws: vec![draw],
            ..Frame::default()
        };
        let (_, stats) = renderer.picture(context, &frame, SIZE).expect("a picture");
        let left = (0..splats.len())
            .filter(|r| spread.arrivals().row(*r) > front)
            .count();
        assert_eq!(stats.sorted, left as u64, "front {front}");
        assert!(stats.sorted < last, "front {front}");
        last = stats.sorted;
        // The middle of the picture is where it began.
        let middle = SIZE.map(|side| side / 2);
        let touches = renderer
            .touches(context, &frame, SIZE, &[middle])
            .expect("ok");
        let on_gpu = splatstage::frame::front_most(&frame.targets(), touches[0].clone());
        let on_cpu = reference::pick(&frame, SIZE, middle);
        assert_eq!(
            on_gpu.map(|h| h.target),
            on_cpu.map(|h| h.target),
            "front {front}"
        );
        let (a, b) = (on_gpu.map(|h| h.row), on_cpu.map(|h| h.row));
        assert_eq!(a, b, "front {front}");
        let met = on_cpu.map(|h| splats.means[h.row as usize].z);
        match front {
            f if f < 0.01 => assert!(met.is_some_and(|z| z > 0.9), "{met:?}"),
            // Through the hole, onto the back of the ball from within.
            f if f < 2.0 => assert!(met.is_some_and(|z| z < -0.9), "{front}: {met:?}"),
            _ => assert_eq!(met, None),
        }
    }
    assert_eq!(last, 0, "nothing is left");
}

/// Each splat by itself: what the picture cannot tell apart.
#[test]
fn a_value_of_every_kind_comes_out_of_both_alike() {
    let Some(context) = given::gpu() else { return };
    // One row of splats far apart, coloured by what the functions give.
    let count = 48;
    let mut splats = Splats::default();
    for i in 0..count {
        splats.means.push(Vec3::new(i as f32 - 23.5, 0.0, 0.0));
        splats.log_scales.push(Vec3::splat(-0.4));
        splats.rotations.push(Quat::IDENTITY);
        splats.opacities.push(0.98);
        splats.dc.push(Vec3::ZERO);
    }
    let values = effect(
        "struct Uniforms { low: vec2f, all: vec4f }\n\
         struct Pair { a: f32, b: vec2u }\n\
         const STEPS = array<f32, 4>(0.1, 0.35, 0.6, 0.9);\n\
         fn of(row: u32) -> Pair { var p = Pair(0.5, vec2u(row, row * 7u)); p.b = p.b % vec2u(5u, 11u); return p; }\n\
         fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat { var s = splat; let p = of(splat.row);\n\
         var steps = STEPS; let n = i32(splat.row) - 24; var x = 0.0;\n\
         switch splat.row % 4u { case 0u: { x = steps[p.b.x % 4u]; } case 1u: { x = fract(f32(n) * 0.37); }\n\
         case 2u: { x = f32(extractBits(splat.row * 2654435761u, 8u, 8u)) / 255.0; } default: { x = abs(f32(n / 3)) / 9.0; } }\n\
         let m = mat2x2f(0.6, 0.8, -0.8, 0.6); let v = m * vec2f(x, u.low.y);\n\
         s.colour = vec3f(x, 0.5 + 0.5 * noise(splat.rest_m * 0.71 + 0.3), clamp(v.x + f32(p.b.y) / 22.0, 0.0, 1.0));\n\
         s.colour *= select(u.all.xyz, u.all.www, splat.row > 20u); return s; }",
    );
    let mut draw = SplatDraw::new(Arc::new(splats));
    draw.effects = vec![used(&values, &[0.3, 0.2, 1.0, 0.9, 0.8, 0.7])];
    let frame = Frame {
        camera: Camera::look_at(Vec3::new(0.0, 0.0, 60.0), Vec3::ZERO, Vec3::Y, 0.8),
        draws: vec![draw],
        ..Frame::default()
    };
    let size = [480, 480];
    let truth = reference::shown(&frame, size, &Rules::product());
    let (picture, _) = renderer(context, RasterMethod::Quads, Packing::Float, true)
        .picture(context, &frame, size)
        .expect("a picture");
    let (mut seen, mut colours) = (0, std::collections::BTreeSet::new());
    for (a, b) in truth.chunks_exact(4).zip(picture.rgba.chunks_exact(4)) {
        let off = a.iter().zip(b).map(|(x, y)| x.abs_diff(*y)).max();
        assert!(off <= Some(1), "{a:?} and {b:?}");
        if a.iter().take(3).any(|c| *c > 40) {
            seen += 1;
            colours.insert(a.to_vec());
        }
    }
    assert!(
        seen > 300 && colours.len() > 60,
        "{seen} pixels of {} colours",
        colours.len()
    );
}

/// Expressions of whole numbers and of what becomes one. The CPU says what each is, and the GPU whether it
/// finds the same, to the bit.
#[test]
fn whole_numbers_come_out_of_both_alike_to_the_bit() {
    let Some(context) = given::gpu() else { return };
    // Values stand in uniforms, so that nothing is computed when the text is read or compiled (Mesa 22.3
    // takes the upper half of a constant that is unpacked for 0).
    let values = [-7.5, 2.0, 0.0, 3e9, 33.0, 7.0];
    let before = "struct Uniforms { x: f32, two: f32, zero: f32, big: f32, many: f32, seven: f32 }\n\
        const LIST = array<u32, 4>(11u, 22u, 33u, 44u);\n\
        fn below(n: i32) -> u32 { switch n { case 1, 2: { return 5u; } case -7: { return 6u; } default: { return 7u; } } }\n\
        fn odd_sum(n: u32) -> u32 { var sum = 0u; for (var i = 0u; i < n; i++) { if i % 2u == 0u { continue; } sum += i; if sum > 20u { break; } } return sum; }\n\
        fn word(row: u32, u: Uniforms) -> u32 { let n = i32(u.x); let k = u32(u.two); let m = u32(u.many);\n\
        let least = bitcast<i32>(0x80000000u + u32(u.zero)); var list = LIST;\n";
    let expressions = [
        "bitcast<u32>(n)",
        "bitcast<u32>(n / i32(k))",
        "bitcast<u32>(n % i32(k))",
        "bitcast<u32>(n / i32(u.zero))",
        "bitcast<u32>(n % i32(u.zero))",
        "m / u32(u.zero)",
        "m % u32(u.zero)",
        "bitcast<u32>(least / (n + 6))",
        "bitcast<u32>(least % (n + 6))",
        "bitcast<u32>(-least)",
        "bitcast<u32>(abs(least))",
        "bitcast<u32>(least - 1)",
        "bitcast<u32>(n >> k)",
        "bitcast<u32>(n) >> k",
        "bitcast<u32>(n << 30u)",
        "k << (m % 32u)",
        "bitcast<u32>(i32(u.big))",
        "bitcast<u32>(i32(-u.big))",
        "u32(2.0 * u.big)",
        "u32(u.x)",
        "u32(u.big)",
        "u32(round(u.two + 0.5)) * 16u + u32(round(u.two + 1.5))",
        "bitcast<u32>(i32(floor(u.x)) * 1000 + i32(ceil(u.x)) * 10 + i32(trunc(u.x)))",
        "bitcast<u32>(extractBits(n, 0u, 4u))",
        "extractBits(bitcast<u32>(n), 28u, m)",
        "bitcast<u32>(extractBits(n, m, k))",
        "insertBits(0u, 0xffffu, 28u, m)",
        "insertBits(0xffffffffu, k, 8u, 4u)",
        "countLeadingZeros(k) * 64u + countTrailingZeros(k)",
        "countLeadingZeros(u32(u.zero)) * 64u + countTrailingZeros(u32(u.zero))",
        "countOneBits(bitcast<u32>(n))",
        "reverseBits(m)",
        "bitcast<u32>(max(n, -100)) + bitcast<u32>(min(n, 3))",
        "max(bitcast<u32>(n), m)",
        "bitcast<u32>(clamp(n, -3, 5))",
        "bitcast<u32>(sign(n))",
        "bitcast<u32>(dot(vec3i(n, 2, 3), vec3i(n, n, 1)))",
        "list[m]",
        "list[n + 5]",
        "vec4u(1u, 2u, 3u, 4u)[m]",
        "below(n) + 10u * below(n + 8) + 100u * below(n + 20)",
        "odd_sum(m)",
        "hash(m) ^ hash(bitcast<u32>(n))",
        "u32(any(vec3<bool>((n > 0), (k > 3u), m == 33u))) + 2u * u32(all(vec2<bool>((n < 0), (k > 3u))))",
        "u32(n < 0 && m / k == 16u) + 2u * u32(n > 0 || !(k == 2u))",
        "select(vec3u(1u, 2u, 3u), vec3u(4u, 5u, 6u), vec3<bool>((n < 0), (n > 0), true)).z",
        "vec4u(k, m, 3u, 4u).wzyx.xy.y",
        "u32(unpack4x8unorm(0xff804020u + u32(u.zero)).z * 255.0 + 0.5)",
        "u32(unpack2x16float(0x4900c000u + u32(u.zero)).y)",
        "u32(dot(transpose(mat3x2f(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))[1], vec3f(1.0, 10.0, 100.0)))",
        "u32(dot(mat3x2f(1.0, 2.0, 3.0, 4.0, 5.0, 6.0) * vec3f(1.0, 10.0, u.two), vec2f(1.0, 1000.0)))",
        "u32(dot(vec2f(u.two, 1.0) * mat3x2f(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), vec3f(1.0, 20.0, 400.0)))",
        "u32(dot((mat2x2f(1.0, 2.0, 3.0, u.two) * mat2x2f(5.0, 6.0, 7.0, 8.0))[1], vec2f(1.0, 1000.0)))",
        "u32(determinant(mat3x3f(2.0, 0.0, 1.0, 0.0, 3.0, 0.0, 1.0, 0.0, 4.0)))",
        "u32(dot(faceForward(vec3f(1.0, 2.0, 3.0), vec3f(u.x, 0.0, 0.0), vec3f(1.0)), vec3f(1.0, 10.0, 100.0)))",
        "u32(8.0 * fract(-1.25 * u.two + 0.25)) + 16u * u32(u.seven % u.two)",
        "u32(step(u.two, 2.0)) + 2u * u32(step(u.two, 1.9)) + 4u * u32(100.0 * smoothstep(0.0, 4.0, u.two))",
        "u32(saturate(u.x)) + u32(10.0 * mix(1.0, 3.0, 0.25 * u.two))",
    ];
    let cases: String = (expressions.iter().enumerate())
        .map(|(row, e)| format!("case {row}u: {{ return {e}; }}\n"))
        .collect();
    let text = |body: &str| {
        format!(
            "{before}switch row {{ {cases} default: {{ return 0u; }} }} }}\n\
             fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {{ var s = splat; let w = word(splat.row, u);\n\
             {body} return s; }}"
        )
    };
    let halves = effect(&text(
        "s.colour = vec3f(f32(w & 0xffffu), f32(w >> 16u), 0.0);",
    ));
    let count = expressions.len();
    let mut splats = Splats::default();
    let mut wanted = String::new();
    for (row, expression) in expressions.iter().enumerate() {
        let at = Vec3::new(row as f32 - 0.5 * (count - 1) as f32, 0.0, 0.0);
        splats.means.push(at);
        splats.log_scales.push(Vec3::splat(-1.2));
        splats.rotations.push(Quat::IDENTITY);
        splats.opacities.push(0.99);
        splats.dc.push(Vec3::ZERO);
        let splat = splatstage::effect::EffectSplat {
            centre_m: at,
            scale_m: Vec3::ONE,
            rotation: Quat::IDENTITY,
            colour: Vec3::ZERO,
            opacity: 1.0,
            rest_m: at,
            world_m: at,
            world_rotation: Quat::IDENTITY,
            world_scale: 1.0,
            spread_m: NEVER_M,
            row: row as u32,
        };
        let half = halves.apply(&splat, &values, 1.25).colour;
        let word = (half.y as u32) << 16 | half.x as u32;
        println!("{expression} = {word:#x}");
        wanted += &format!("{word}u, ");
    }
    let same = effect(&text(&format!(
        "let wanted = array<u32, {count}>({wanted}); var list = wanted;\n\
             s.colour = select(vec3f(1.0, 0.0, 0.0), vec3f(0.0, 1.0, 0.0), w == list[splat.row]);"
    )));
    let mut draw = SplatDraw::new(Arc::new(splats));
    draw.effects = vec![used(&same, &values)];
    let frame = Frame {
        camera: Camera::look_at(Vec3::new(0.0, 0.0, 60.0), Vec3::ZERO, Vec3::Y, 0.07),
        draws: vec![draw],
        ..Frame::default()
    };
    let size = [960, 64];
    let (picture, _) = renderer(context, RasterMethod::Quads, Packing::Float, true)
        .picture(context, &frame, size)
        .expect("a picture");
    let lens = frame.camera.intrinsics(size);
    for (row, expression) in expressions.iter().enumerate() {
        let x_m = row as f32 - 0.5 * (count - 1) as f32;
        let x = (lens.centre_px.x + lens.focal_px.x * x_m / 60.0) as usize;
        let at = 4 * (32 * size[0] as usize + x);
        let pixel = &picture.rgba[at..at + 4];
        assert!(
            pixel[1] > 100 && pixel[0] < 20,
            "{expression}: the GPU finds another number ({pixel:?})"
        );
    }
}

#[test]
fn an_effect_that_gives_no_number_draws_nothing_and_spoils_nothing() {
    let bad = effect(
        "fn effect(splat: Splat, t_s: f32) -> Splat { var s = splat; let no = sqrt(t_s - 100.0);\n\
         switch splat.row % 6u { case 0u: { s.centre_m.x = no; } case 1u: { s.scale_m.y = no; } case 2u: { s.opacity = no; }\n\
         case 3u: { s.colour.y = no; } case 4u: { s.rotation = vec4f(0.0); } default: { } } return s; }",
    );
    let splats = ball(2000);
    let mut draw = SplatDraw::new(splats);
    draw.effects = vec![used(&bad, &[])];
    let frame = Frame {
        camera: camera(),
        draws: vec![draw],
        ..Frame::default()
    };
    assert_twins("not-a-number", &frame);
}

/// Moves, turns, grows, tints and drops, by chance and noise that belong to the body.
const LIVELY: &str = "struct Uniforms { step_m: f32 }\n\
    fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat { var s = splat;\n\
    let n = noise3(40.0 * splat.rest_m);\n\
    s.colour = s.colour * (0.7 + 0.6 * n) + 0.2 * clamp(n.zxy, vec3f(0.0), vec3f(1.0));\n\
    s.centre_m += own_from_world(splat, u.step_m * vec3f(n.x, fract(t_s), n.z));\n\
    s.rotation = product(vec4f(0.0, 0.0, 0.6, 0.8), s.rotation);\n\
    s.scale_m *= 1.0 + 0.5 * n.y; if random(splat.row, 3u) < 0.2 { s.opacity = 0.0; } return s; }";

/// A body whose colours depend on where they are seen from.
fn bright_body(count: usize) -> (Arc<Splats>, Arc<splatstage::scene::Body>) {
    let (splats, body) = made_body(count, 12, 9);
    let mut splats = (*splats).clone();
    let mut chance = Chance(3);
    splats.sh_degree = 2;
    splats.sh_rest = (0..splats.len() * 24)
        .map(|_| 0.5 * chance.next())
        .collect();
    (Arc::new(splats), body)
}

/// One body in two poses, one of them edited, and once more as it was loaded; all with effects.
fn bodies_frame() -> Frame {
    use splatstage::scene::body::Pivot;
    let (splats, body) = bright_body(3000);
    let mut chance = Chance(17);
    let lively = effect(LIVELY);
    let at = |x: f32| {
        let mut draw = SplatDraw::new(Arc::clone(&splats));
        draw.placement.translation = Vec3::new(x, 0.0, 0.0);
        draw.placement.rotation = Quat::from_rotation_y(3.0 * x);
        draw.effects = vec![used(&lively, &[0.01 + x.abs() * 0.05])];
        draw
    };
    let mut draws = vec![at(-0.25), at(0.0), at(0.25)];
    draws[0].pose = Some(random_pose(&body, &mut chance, Pivot::Joint));
    draws[1].pose = Some(random_pose(&body, &mut chance, Pivot::Origin));
    draws[1].edits = edits();
    draws[2].edits = edits();
    Frame {
        camera: head_camera(0.9),
        draws,
        ..Frame::default()
    }
}

#[test]
fn effects_over_posed_and_edited_bodies_equal_the_twin() {
    let frame = bodies_frame();
    assert_twins("bodies", &frame);
    let turned = |yaw_rad: f32| Camera {
        rotation: frame.camera.rotation * Quat::from_rotation_y(yaw_rad),
        ..frame.camera
    };
    let filmed = Frame {
        film: Some(Box::new(Film {
            shutter: [turned(-0.015), turned(0.015)],
            ..Film::default()
        })),
        ..frame
    };
    assert_twins("bodies-filmed", &filmed);
}

/// The brute-force film: at every instant another place of the effects, another time, another camera.
#[test]
fn effects_in_a_reference_film_equal_the_mean_of_their_twins() {
    let Some(context) = given::gpu() else { return };
    let mut frame = bodies_frame();
    let film = Film {
        exposure_s: 0.02,
        readout_s: 0.0,
        shutter: [frame.camera; 2],
        noise_shot: 0.0,
        noise_read: 0.0,
        ..Film::default()
    };
    frame.film = Some(Box::new(film.clone()));
    let exposed: Vec<Frame> = (0..3)
        .map(|k| {
            let mut instant = frame.clone();
            instant.camera.position.x += 0.02 * k as f32;
            for draw in &mut instant.draws {
                draw.effects[0].t_s = 0.5 * k as f32;
                draw.effects[0].values[0] += 0.01 * k as f32;
            }
            instant
        })
        .collect();
    // The first and the last instant stand at the ends of the exposure: half of their steps is within.
    let weights = [0.25, 0.5, 0.25];
    let mut light = vec![glam::DVec3::ZERO; (SIZE[0] * SIZE[1]) as usize];
    for (instant, weight) in exposed.iter().zip(weights) {
        let still = Film {
            shutter: [instant.camera; 2],
            ..film.clone()
        };
        let instant = Frame {
            film: Some(Box::new(still)),
            ..instant.clone()
        };
        let own = reference::film::light(&instant, SIZE, &Rules::product()).expect("is filmed");
        for (sum, own) in light.iter_mut().zip(own) {
            *sum += weight * own;
        }
    }
    let truth = reference::finish::finish(&frame, &film, &light, SIZE);
    let truth = from_rgba(SIZE, truth);
    for (method, packing, is_apart, bound) in KINDS {
        let (picture, _) = renderer(context, method, packing, is_apart)
            .reference_film(context, &frame, SIZE, &exposed)
            .expect("films");
        let name = format!("bodies-reference-{method:?}-{packing:?}");
        assert_close(&name, &from_rgba(SIZE, picture.rgba), &truth, bound);
    }
}

#[test]
fn effects_spreads_and_poses_reach_every_page() {
    use splatstage::scene::body::Pivot;
    let Some(context) = given::gpu() else { return };
    let burn = effect(
        "struct Uniforms { front: f32 }\n\
         fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat { var s = splat;\n\
         s.colour = mix(vec3f(1.0, 0.3, 0.0), s.colour, clamp(abs(s.spread_m - u.front) * 4.0, 0.0, 1.0));\n\
         if random(splat.row, 1u) < 0.1 || splat.spread_m < u.front { s.opacity = 0.0; } return s; }",
    );
    let splats = ball(3000);
    let own_axes = |_| Some(glam::Mat3::from_diagonal(Vec3::splat(0.08)));
    let mut spread = Spread::new(&splats.means, own_axes, None);
    let top = spread.nearest(&splats.means, Vec3::Z).expect("there");
    spread.begin(&splats.means, top, 0.0);
    spread.reach(&splats.means, 2.0);
    let mut burning = SplatDraw::new(Arc::clone(&splats));
    burning.effects = vec![used(&burn, &[0.7])];
    burning.arrivals = Some(spread.arrivals().clone());
    let (body_splats, body) = bright_body(1500);
    let mut posed = SplatDraw::new(body_splats);
    posed.placement.translation = Vec3::new(0.0, 0.0, 1.6);
    posed.pose = Some(random_pose(&body, &mut Chance(5), Pivot::Joint));
    posed.effects = vec![used(&effect(LIVELY), &[0.02])];
    let frame = Frame {
        camera: camera(),
        draws: vec![burning, posed],
        ..Frame::default()
    };
    let truth = from_rgba(SIZE, reference::shown(&frame, SIZE, &Rules::product()));
    for (method, packing, is_apart, bound) in KINDS {
        let mut pictures = Vec::new();
        // 3000 and 1500 splats on 12 and 6 pages, and on one each.
        for page_rows_max in [Some(256), None] {
            let settings = Settings {
                raster: Some(method),
                packing,
                effects_apart: Some(is_apart),
                page_rows_max,
                ..Settings::default()
            };
            let mut renderer = Renderer::new(context, &settings).expect("shaders build");
            let (picture, stats) = renderer.picture(context, &frame, SIZE).expect("a picture");
            assert_eq!(stats.count, 4500);
            pictures.push((picture, stats.sorted));
        }
        let found = from_rgba(SIZE, pictures[0].0.rgba.clone());
        let name = format!("pages-{method:?}-{packing:?}");
        assert_close(&name, &found, &truth, bound);
        assert!(pictures[0] == pictures[1], "{name}: as on one page");
    }
}

/// The stage drops what surely is off the picture; culling decides about the rest.
#[test]
fn an_effect_that_changes_nothing_drops_and_moves_nothing() {
    let Some(context) = given::gpu() else { return };
    let same = effect("fn effect(splat: Splat, t_s: f32) -> Splat { return splat; }");
    // Needles and plates of all sizes, most of them beside or behind the camera, many across the edge.
    let mut splats = Splats::default();
    let mut chance = Chance(23);
    for i in 0..20_000 {
        let far = 10.0_f32.powf(1.5 * chance.next() + 0.3);
        splats.means.push(far * chance.vector());
        let size = 1.3 * chance.next() - 2.5;
        let shape = chance.vector() * if i % 3 == 0 { 3.0 } else { 0.5 };
        splats.log_scales.push(Vec3::splat(size) + shape);
        let turn = Quat::from_scaled_axis(3.0 * chance.vector());
        splats.rotations.push(turn);
        splats.opacities.push(0.5 + 0.49 * chance.next());
        splats.dc.push(chance.vector());
    }
    let splats = Arc::new(splats);
    for (i, fov_deg) in [20.0_f32, 75.0, 120.0].into_iter().enumerate() {
        let mut draw = SplatDraw::new(Arc::clone(&splats));
        draw.placement.scale = [1.0, 0.3, 4.0][i];
        draw.placement.rotation = Quat::from_rotation_x(i as f32);
        draw.tint[3] = [1.0, 0.05, 1.0][i];
        let eye = Vec3::new(0.1, 0.2, 0.3);
        let plain = Frame {
            camera: Camera::look_at(eye, Vec3::X, Vec3::Y, fov_deg.to_radians()),
            draws: vec![draw.clone()],
            ..Frame::default()
        };
        draw.effects = vec![used(&same, &[])];
        let frame = Frame {
            draws: vec![draw],
            ..plain.clone()
        };
        for (method, packing, is_apart, _) in KINDS {
            let mut renderer = renderer(context, method, packing, is_apart);
            let (wanted, bare) = renderer.picture(context, &plain, SIZE).expect("a picture");
            let (found, stats) = renderer.picture(context, &frame, SIZE).expect("a picture");
            let share = bare.sorted as f64 / bare.count as f64;
            println!("{fov_deg} degrees: {share:.3} of {} sorted", bare.count);
            assert!(share > 0.005 && share < 0.9, "{share}");
            assert_eq!(stats.sorted, bare.sorted, "{method:?} {packing:?}");
            let off = (found.rgba.iter().zip(&wanted.rgba)).map(|(a, b)| a.abs_diff(*b));
            assert!(off.max() <= Some(1), "{method:?} {packing:?}");
        }
    }
}

#[test]
fn a_broken_stage_leaves_the_last_good_one_and_a_mended_one_is_drawn() {
    use splatstage::gpu::ShaderSource;
    let Some(context) = given::gpu() else { return };
    let mut draw = SplatDraw::new(ball(500));
    draw.effects = vec![used(&effect(LIVELY), &[0.02])];
    let frame = Frame {
        camera: camera(),
        draws: vec![draw],
        ..Frame::default()
    };
    for is_apart in [false, true] {
        let mut renderer = renderer(context, RasterMethod::Quads, Packing::Packed, is_apart);
        let (before, _) = renderer.picture(context, &frame, SIZE).expect("a picture");
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, good, bad) in [
            ("effects.wgsl", "after.colour, 0.0", "after.color, 0.0"),
            ("shared/settled.wgsl", "place.w != 0.0", "place.q != 0.0"),
        ] {
            let text = ShaderSource::default();
            let text = text.text(name).expect("embedded");
            let broken = text.replace(good, bad);
            let line = broken.lines().position(|l| l.contains(bad)).expect("there") + 1;
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("written");
            std::fs::write(&path, broken).expect("written");
            let source = ShaderSource::from_dir(folder.path()).expect("a folder");
            let error = renderer
                .set_shaders(context, &source)
                .expect_err("is broken");
            let place = format!("{name}:{line}:");
            assert!(error.to_string().contains(&place), "{error}");
            let (picture, _) = renderer.picture(context, &frame, SIZE).expect("a picture");
            assert!(picture == before, "{name}: the last good one");
            std::fs::write(&path, text).expect("written");
        }
        let text = ShaderSource::default();
        let text = text.text("effects.wgsl").expect("embedded");
        let dark = text.replace("after.colour, 0.0", "0.5 * after.colour, 0.0");
        std::fs::write(folder.path().join("effects.wgsl"), dark).expect("written");
        let source = ShaderSource::from_dir(folder.path()).expect("a folder");
        renderer.set_shaders(context, &source).expect("builds");
        let (picture, _) = renderer.picture(context, &frame, SIZE).expect("a picture");
        let light = |p: &splatstage::gpu::Picture| {
            let pixels = p.rgba.chunks_exact(4);
            pixels
                .map(|c| u64::from(c[0]) + u64::from(c[1]))
                .sum::<u64>()
        };
        let share = light(&picture) as f64 / light(&before) as f64;
        assert!((share - 0.5).abs() < 0.03, "{share}");
    }
}

// --- scripts -------------------------------------------------------------------------------------

const SCENE: &str = "local ball, glow
return {
    load = function(stage)
        local b = stage.builder()
        for i = 0, 99 do b:add(vector.create(0.05 * (i % 10), 0.05 * (i // 10), 0), 0.03, { 1, 1, 1 }) end
        ball = b:build('ball')
        glow = stage.effect('glow.wgsl', { amount = 0.25, colour = '#ff8000' })
        BODY
    end,
    frame = function(t) FRAME end,
}";
const GLOW: &str = "struct Uniforms {\n    amount: f32,\n    colour: vec3f,\n    way: vec2f,\n}\n\
    fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {\n    var s = splat;\n    \
    s.colour = mix(s.colour, u.colour, u.amount);\n    return s;\n}\n";

fn scripted(body: &str, in_frame: &str, glow: &str) -> Result<Script, LoadError> {
    use splatstage::script::Setup;
    struct Files(BTreeMap<String, String>);
    impl splatstage::script::Files for Files {
        fn read(&self, path: &str) -> Result<Vec<u8>, String> {
            let text = self.0.get(path).ok_or("not found")?;
            Ok(text.clone().into_bytes())
        }
    }
    let scene = SCENE.replace("BODY", body).replace("FRAME", in_frame);
    let files = BTreeMap::from([
        ("scene.luau".to_owned(), scene),
        ("glow.wgsl".to_owned(), glow.to_owned()),
    ]);
    Script::load(Setup {
        name: "scenes/fx".into(),
        entry: "scene.luau".into(),
        files: Arc::new(Files(files)),
        assets: Arc::new(Nothing),
        seed: 1,
        live: false,
        is_first: false,
        args: Json::Null,
        loop_s: None,
        aspect: 1.0,
        reduced_motion: false,
        library: None,
        handed_over: None,
        kept: serde_json::Map::new(),
        params: std::collections::BTreeMap::new(),
        heard_only: false,
        log: std::rc::Rc::new(|_, _| {}),
    })
}

#[test]
fn values_come_by_name_and_what_frame_sets_holds_for_one_picture() {
    let mut script = scripted(
        "ball.effects = { glow }",
        "if t > 1 then ball.effects = { { glow, amount = t, way = { 3, 4 } } } end
         return { state = table.concat(glow.uniforms, ' ') .. ' ' .. #ball.effects .. ' ' .. tostring(ball.effects[1].colour) }",
        GLOW,
    )
    .expect("loads");
    for (t_s, values) in [
        (2.0, [2.0, 1.0, 128.0 / 255.0, 0.0, 3.0, 4.0]),
        (0.5, [0.25, 1.0, 128.0 / 255.0, 0.0, 0.0, 0.0]),
    ] {
        let frame = script.frame(t_s).expect("a picture");
        let used = &frame.draws[0].effects[0];
        for (found, wanted) in used.values.iter().zip(values) {
            assert!((found - wanted).abs() < 1e-6, "{:?}", used.values);
        }
        assert_eq!(used.t_s, t_s as f32);
        let state = frame.state.expect("set");
        assert!(state.starts_with("amount colour way 1 1, 0.50"), "{state}");
    }
    // An entry of draws may have its own.
    let frame = scripted(
        "",
        "return { draws = { { splats = ball, effects = { glow, glow } }, ball } }",
        GLOW,
    )
    .expect("loads")
    .frame(0.0)
    .expect("a picture");
    assert_eq!(
        (frame.draws[0].effects.len(), frame.draws[1].effects.len()),
        (2, 0)
    );
}

#[test]
fn wrong_values_and_wrong_files_are_said_with_names() {
    let wrong = |in_frame: &str| {
        let mut script = scripted("", in_frame, GLOW).expect("loads");
        script.frame(0.0).expect_err("is refused").message
    };
    for (in_frame, wanted) in [
        (
            "ball.effects = { { glow, amonut = 1 } }",
            "has no uniform 'amonut'; did you mean 'amount'",
        ),
        (
            "ball.effects = { { glow, amount = 0 / 0 } }",
            "effects of 'ball'[1].amount must be a number",
        ),
        (
            "ball.effects = { { glow, colour = 3 } }",
            "effects of 'ball'[1].colour must be a vector",
        ),
        (
            "ball.effects = { { glow, way = { 1, 2, 3 } } }",
            "a list of 2 numbers",
        ),
        (
            "ball.effects = { { glow, amount = 1e300 } }",
            "a number that 32 bits hold",
        ),
        (
            "ball.effects = { 7 }",
            "must be an effect or {effect, name = value}, got 7",
        ),
        (
            "ball.effects = { glow, glow, glow, glow, glow }",
            "4 effects at most",
        ),
        (
            "stage.effect('glow.wgsl')",
            "stage.effect works in the file's body and in load(stage) only",
        ),
        (
            "stage.spread(ball)",
            "stage.spread works in the file's body",
        ),
    ] {
        let message = wrong(in_frame);
        assert!(message.contains(wanted), "{in_frame}: {message}");
    }
    let at_load = |body: &str, glow: &str| {
        let Err(failed) = scripted(body, "", glow) else {
            panic!("{body} loads")
        };
        (
            failed.error.file,
            failed.error.line,
            failed.error.message,
            failed.watched,
        )
    };
    let (file, line, message, watched) = at_load("", &GLOW.replace("u.amount", "u.amuont"));
    assert_eq!(
        (file.as_str(), line),
        ("scenes/fx/glow.wgsl", 8),
        "{message}"
    );
    assert!(
        message.contains("amuont") && !message.contains("effect_0_"),
        "{message}"
    );
    assert!(watched.contains(&"glow.wgsl".to_owned()), "{watched:?}");
    let endless = GLOW.replace(
        "var s = splat;",
        "var s = splat; loop { s.opacity *= 0.5; }",
    );
    let (file, line, message, _) = at_load("", &endless);
    assert_eq!(
        (file.as_str(), line),
        ("scenes/fx/glow.wgsl", 7),
        "{message}"
    );
    assert!(message.contains("1024 turns"), "{message}");
    let (file, line, message, _) = at_load("stage.effect('none.wgsl')", GLOW);
    assert!(
        file == "scenes/fx/scene.luau" && line == 8,
        "{file}:{line} {message}"
    );
    assert!(
        message.contains("none.wgsl") && message.contains("not found"),
        "{message}"
    );
    let (_, _, message, _) = at_load("stage.effect('../x.wgsl')", GLOW);
    assert!(message.contains("leads outside of the scene"), "{message}");
    let (_, _, message, _) = at_load("stage.effect('@stage/effects/bern')", GLOW);
    assert!(message.contains("effects/burn.wgsl"), "{message}");
    let (_, _, message, _) = at_load(
        "local kept = {} for i = 1, 100 do kept[i] = stage.effect('glow.wgsl') end",
        GLOW,
    );
    assert!(message.contains("a scene may load 64 effects"), "{message}");
    let (_, _, message, _) = at_load("stage.spread(ball) stage.spread(ball)", GLOW);
    assert!(message.contains("has a spread already"), "{message}");
}

#[test]
fn a_spread_begins_at_splats_and_points_and_is_asked_from_lua() {
    let mut script = scripted(
        "local s = stage.spread(ball, { cell = 0.06 })
         assert(s:at(1) == nil and s.done and s.count > 20 and s.cell > 0.05)
         assert(s:begin(1)) s:reach(0.2)
         assert(s:at(1) == 0 and math.abs(s:at(4) - 0.15) < 0.03, tostring(s:at(4)))
         assert(not s.done and math.abs(s.reached - 0.2) < 1e-6)
         assert(s:begin(vector.create(0.45, 0.45, 0), 0.2) and math.abs(s:at(100) - 0.2) < 1e-6)
         assert(not pcall(s.begin, s, 101) and not pcall(s.begin, s, 0) and not pcall(s.reach, s, 0 / 0))
         ball.effects = { glow }",
        "",
        GLOW,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let frame = script.frame(0.0).expect("a picture");
    let arrivals = frame.draws[0].arrivals.as_ref().expect("a spread");
    assert_eq!(arrivals.len(), 100);
    assert_eq!(arrivals.row(0), 0.0);
    assert_eq!(arrivals.row(9), NEVER_M, "not reached");
}

#[test]
fn a_click_sets_the_splat_on_fire_that_it_met_and_the_fire_is_a_function_of_time() {
    let at = |clicks: &[(f64, u32)], t_s: f64| {
        let mut script = load(&[("scene.luau", BURN)], json!({ "density": 0.1 }));
        script.frame(0.0).expect("a picture");
        for (when_s, row) in clicks {
            script
                .advance_to(*when_s, &Default::default())
                .expect("steps");
            let click = Event {
                kind: "click".into(),
                name: "mouse_left".into(),
                values: vec![0.0, 0.0],
                target: Some(0),
                row: Some(*row),
            };
            script.event(&click).expect("taken");
        }
        script.advance_to(t_s, &Default::default()).expect("steps");
        let frame = script.frame(t_s).expect("a picture");
        let front = frame.draws[0].effects[0].values[0];
        let arrivals = frame.draws[0].arrivals.clone().expect("a spread");
        (front, arrivals, frame.state)
    };
    let (front, arrivals, state) = at(&[], 3.0);
    assert_eq!((front, state.as_deref()), (0.0, Some("whole")));
    assert!((0..arrivals.len()).all(|row| arrivals.row(row) == NEVER_M));
    let (front, once, state) = at(&[(1.0, 500)], 3.0);
    assert_eq!(state.as_deref(), Some("burning"));
    assert!(front > 0.0 && once.row(500) == 0.0);
    let (_, again, _) = at(&[(1.0, 500)], 3.0);
    assert!((0..once.len()).all(|row| once.row(row) == again.row(row)));
    let (_, twice, _) = at(&[(1.0, 500), (2.0, 1900)], 3.0);
    assert!(
        (twice.row(1900) - 0.5 * front).abs() < 1e-3,
        "{} of {front}",
        twice.row(1900)
    );
}

#[test]
fn a_real_statue_burns_from_the_touch_to_the_last_splat_that_hangs_together() {
    let (Some(context), Some(path)) = (given::gpu(), given::data("scenes/statues/narcissus.sog"))
    else {
        return;
    };
    let options = splatstage::formats::LoadOptions {
        axes: None::<Axes>,
        ..Default::default()
    };
    let loaded = splatstage::formats::load(&path, &options, &|_| {}).expect("loads");
    let splats = Arc::new(loaded.splats);
    let bounds = splats.percentile_bounds(0.02).expect("has splats");
    let axes_m = |row: usize| splats.is_drawable(row).then(|| splats.axes_m(row));
    let mut spread = Spread::new(&splats.means, axes_m, None);
    let start = spread
        .nearest(&splats.means, bounds.centre())
        .expect("there");
    spread.begin(&splats.means, start, 0.0);
    spread.reach(&splats.means, 1e6);
    let reached = (0..splats.len())
        .filter(|r| spread.arrivals().row(*r) < NEVER_M)
        .count();
    let share = reached as f64 / splats.len() as f64;
    println!(
        "{share:.4} of {} splats hang together, cells of {} m",
        splats.len(),
        spread.cell_m()
    );
    assert!(share > 0.98, "{share}");
    let burn =
        Effect::new("burn.wgsl", include_str!("../../scripts/effects/burn.wgsl")).expect("valid");
    let burn = Arc::new(burn);
    let radius = bounds.radius();
    let furthest = (0..splats.len())
        .map(|r| spread.arrivals().row(r))
        .filter(|m| *m < NEVER_M)
        .fold(0.0, f32::max);
    let mut renderer = renderer(context, RasterMethod::Tiles, Packing::Packed, true);
    let mut sorted = Vec::new();
    for step in 0..=6 {
        let front = (furthest + 3.0 * radius) * step as f32 / 6.0;
        // front, speed, ragged, grain, scorch, glow, char, ash, lift, drift, ember
        let r = radius;
        let values = [
            front,
            r,
            0.05 * r,
            0.07 * r,
            0.2,
            0.3,
            0.5,
            0.6,
            0.4 * r,
            0.0,
            0.0,
            0.0,
            1.5,
            0.5,
            0.1,
        ];
        let mut draw = SplatDraw::new(Arc::clone(&splats));
        draw.effects = vec![used(&burn, &values)];
        draw.arrivals = Some(spread.arrivals().clone());
        let eye = bounds.centre() + Vec3::new(0.3, 0.2, 2.6) * radius;
        let frame = Frame {
            camera: Camera::look_at(eye, bounds.centre(), Vec3::Y, 1.0),
            draws: vec![draw],
            ..Frame::default()
        };
        let (_, stats) = renderer.picture(context, &frame, SIZE).expect("a picture");
        sorted.push(stats.sorted);
    }
    println!("sorted as it burns: {sorted:?}");
    assert!(sorted[0] as f64 > 0.9 * splats.len() as f64, "{sorted:?}");
    assert!(sorted.windows(2).all(|w| w[1] <= w[0]), "{sorted:?}");
    assert!(
        sorted[6] as f64 <= (1.0 - share + 0.001) * splats.len() as f64,
        "{sorted:?}"
    );
}

#[test]
fn the_example_of_the_readme_is_an_effect() {
    let readme = include_str!("../../README.md");
    let blocks: Vec<&str> = (readme.split("```wgsl\n").skip(1))
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(blocks.len(), 1, "the README shows one effect");
    let effect = Effect::new("glow.wgsl", blocks[0]).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = effect.uniforms().iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["height", "light"]);
}
