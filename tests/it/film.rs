//! The film pass: against its CPU twin, against brute force, and the article's measurements of shear,
//! smear and parallax, by the fast pass and by the reference film.

use crate::given;
use crate::picture::{from_rgba, psnr_db};
use glam::{Quat, Vec3};
use image::RgbaImage;
use splatstage::app::assets::AssetCache;
use splatstage::app::offline::Studio;
use splatstage::app::{DrawOptions, FilmMode, SceneOptions, Session};
use splatstage::camera::Camera;
use splatstage::film::{Depth, Film, Halation, Plane};
use splatstage::frame::{Frame, Input, SplatDraw};
use splatstage::gpu::{RasterMethod, Renderer, Settings};
use splatstage::reference::{self, Rules};
use splatstage::scene::Splats;
use splatstage::scene::sh::SH_C0;
use std::f64::consts::PI;
use std::sync::Arc;

/// Vertical field of view of the article: 1158 px of focal length on 1080 rows.
const FOV_DEG: f32 = 50.0;
/// The fastest turn of the walk, degrees a second.
const TURN_DEG_S: f64 = 100.5;
const HD: [u32; 2] = [1920, 1080];
const SMALL: [u32; 2] = [320, 180];
/// Of the passage, px: as large as the prototype that the bounds are from.
const PASSAGE: [u32; 2] = [640, 360];

fn push(splats: &mut Splats, mean: Vec3, sigma: Vec3, colour: Vec3, opacity: f32) {
    splats.means.push(mean);
    splats.log_scales.push(sigma.map(f32::ln));
    splats.rotations.push(Quat::IDENTITY);
    splats.opacities.push(opacity);
    splats.dc.push((colour - 0.5) / SH_C0);
}

/// How a camera moves: its pose at the picture's time, and how fast it turns and goes.
#[derive(Clone, Copy)]
struct Motion {
    middle: Camera,
    turn_deg_s: f64,
    velocity_m_s: Vec3,
}

impl Motion {
    fn at(&self, dt_s: f64) -> Camera {
        let yaw = (self.turn_deg_s * dt_s).to_radians() as f32;
        Camera {
            position: self.middle.position + self.velocity_m_s * dt_s as f32,
            rotation: Quat::from_rotation_y(yaw) * self.middle.rotation,
            ..self.middle
        }
    }

    fn frame(&self, splats: &Arc<Splats>, film: Film) -> Frame {
        let half_s = film.half_span_s();
        Frame {
            camera: self.middle,
            draws: vec![SplatDraw::new(Arc::clone(splats))],
            film: Some(Box::new(Film {
                shutter: [self.at(-half_s), self.at(half_s)],
                ..film
            })),
            ..Frame::default()
        }
    }
}

fn still(position: Vec3) -> Motion {
    Motion {
        middle: Camera {
            position,
            rotation: Quat::IDENTITY,
            fov_y_rad: FOV_DEG.to_radians(),
        },
        turn_deg_s: 0.0,
        velocity_m_s: Vec3::ZERO,
    }
}

fn renderer(method: Option<RasterMethod>) -> Option<(&'static splatstage::gpu::Context, Renderer)> {
    let context = given::gpu()?;
    let settings = Settings {
        raster: method,
        ..Settings::default()
    };
    Some((
        context,
        Renderer::new(context, &settings).expect("shaders build"),
    ))
}

fn fast(motion: Motion, splats: &Arc<Splats>, film: Film, size: [u32; 2]) -> Option<RgbaImage> {
    let (context, mut renderer) = renderer(None)?;
    let frame = motion.frame(splats, film);
    let (picture, _) = renderer.picture(context, &frame, size).expect("draws");
    Some(from_rgba(size, picture.rgba))
}

fn brute(
    motion: Motion,
    splats: &Arc<Splats>,
    film: Film,
    size: [u32; 2],
    count: usize,
) -> Option<RgbaImage> {
    let (context, mut renderer) = renderer(None)?;
    let half_s = film.half_span_s();
    let frame = motion.frame(splats, film);
    let exposed: Vec<Frame> = (0..count)
        .map(|k| Frame {
            camera: motion.at(half_s * (2.0 * k as f64 / (count - 1) as f64 - 1.0)),
            ..frame.clone()
        })
        .collect();
    let (picture, _) = renderer
        .reference_film(context, &frame, size, &exposed)
        .expect("films");
    Some(from_rgba(size, picture.rgba))
}

/// Green in linear light along a row, between two columns.
fn row(picture: &RgbaImage, y: u32, columns: std::ops::Range<u32>) -> Vec<f64> {
    columns
        .map(|x| {
            let v = f64::from(picture.get_pixel(x, y)[1]) / 255.0;
            if v <= 0.04045 {
                v / 12.92
            } else {
                ((v + 0.055) / 1.055).powf(2.4)
            }
        })
        .collect()
}

/// Centre and variance of what is lit in a row, px.
fn moments(values: &[f64]) -> (f64, f64) {
    let total: f64 = values.iter().sum();
    let places = || values.iter().enumerate().map(|(x, v)| (x as f64, v));
    let mean = places().map(|(x, v)| x * v).sum::<f64>() / total;
    let variance = places().map(|(x, v)| (x - mean).powi(2) * v).sum::<f64>() / total;
    (mean, variance)
}

/// One white pole 20 m away, as high as the picture and a little more, 4.9 px wide.
fn pole() -> Arc<Splats> {
    let mut splats = Splats::default();
    for k in -120..=120 {
        let mean = Vec3::new(0.0, 0.09 * k as f32, -20.0);
        push(
            &mut splats,
            mean,
            Vec3::new(0.036, 0.09, 0.036),
            Vec3::splat(0.9),
            0.9,
        );
    }
    Arc::new(splats)
}

fn timed(exposure_s: f64, readout_s: f64) -> Film {
    Film {
        exposure_s,
        readout_s,
        ..Film::default()
    }
}

/// Shear from the first row to the last one and variance in the middle row, px.
fn shear_and_variance(picture: &RgbaImage) -> (f64, f64) {
    let [width, height] = HD;
    let around = width / 2 - 60..width / 2 + 60;
    let (top, _) = moments(&row(picture, 0, around.clone()));
    let (bottom, _) = moments(&row(picture, height - 1, around.clone()));
    let (_, variance) = moments(&row(picture, height / 2, around));
    (bottom - top, variance)
}

type Filmed<'a> = &'a dyn Fn(Motion, &Arc<Splats>, Film) -> Option<RgbaImage>;

fn poles_lean_and_smear(filmed: Filmed<'_>, times: &[(f64, f64)]) {
    let motion = Motion {
        turn_deg_s: TURN_DEG_S,
        ..still(Vec3::ZERO)
    };
    let splats = pole();
    let focal_px = 540.0 / (f64::from(FOV_DEG) / 2.0 * PI / 180.0).tan();
    let speed_px_s = focal_px * TURN_DEG_S.to_radians();
    let Some(clean) = filmed(motion, &splats, timed(0.0, 0.0)) else {
        return;
    };
    let (shear, variance) = shear_and_variance(&clean);
    assert!(shear.abs() < 0.05, "{shear}");
    for &(exposure_s, readout_s) in times {
        let picture = filmed(motion, &splats, timed(exposure_s, readout_s)).expect("an adapter");
        let (found_shear, found_variance) = shear_and_variance(&picture);
        let wanted_shear = if readout_s > 0.0 { 32.5 } else { 0.0 };
        let smear_px = speed_px_s * exposure_s;
        let wanted_variance = smear_px * smear_px / 12.0;
        println!(
            "exposure {exposure_s:.4} s, readout {readout_s} s: shear {found_shear:.2} px, \
             variance added {:.2} px²",
            found_variance - variance
        );
        // The bottom goes to the right when the camera turns left.
        assert!((found_shear - wanted_shear).abs() < 0.5, "{found_shear}");
        let added = found_variance - variance;
        assert!(
            (added - wanted_variance).abs() < 0.1 * wanted_variance + 0.5,
            "{added} against {wanted_variance}"
        );
    }
}

#[test]
fn poles_lean_and_smear_by_the_fast_pass() {
    let times = [(0.0, 0.016), (1.0 / 80.0, 0.0), (1.0 / 80.0, 0.016)];
    poles_lean_and_smear(
        &|motion, splats, film| fast(motion, splats, film, HD),
        &times,
    );
}

#[test]
fn poles_lean_and_smear_by_brute_force() {
    let filmed =
        |motion: Motion, splats: &Arc<Splats>, film: Film| brute(motion, splats, film, HD, 33);
    poles_lean_and_smear(&filmed, &[(0.0, 0.016), (1.0 / 80.0, 0.016)]);
}

/// A post that stands at (x, z), with a bright stripe of its own or nothing else.
fn post(splats: &mut Splats, x: f32, z: f32, width_m: f32, colour: Vec3) {
    let columns = (width_m / 0.004).ceil() as i32;
    for c in 0..columns {
        for k in -60..=60 {
            let across = (c as f32 + 0.5) / columns as f32 - 0.5;
            let mean = Vec3::new(x + across * width_m, 0.01 * k as f32, z);
            push(splats, mean, Vec3::new(0.0015, 0.007, 0.0015), colour, 0.95);
        }
    }
}

/// Smear of the one lit thing between two columns, px: a box of that width has its added variance.
fn smear_px(clean: &RgbaImage, filmed: &RgbaImage, around_px: f32) -> f64 {
    let columns = (around_px - 30.0) as u32..(around_px + 30.0) as u32;
    let (_, before) = moments(&row(clean, HD[1] / 2, columns.clone()));
    let (_, after) = moments(&row(filmed, HD[1] / 2, columns));
    (12.0 * (after - before).max(0.0)).sqrt()
}

#[test]
fn near_things_smear_by_their_own_depth() {
    let focal_px = 1158.0;
    let middle_px = HD[0] as f32 / 2.0;
    let motion = Motion {
        velocity_m_s: Vec3::new(0.0, 0.0, -1.2),
        ..still(Vec3::ZERO)
    };
    let film = || timed(1.0 / 80.0, 0.0);
    // A stripe on a wall 1.5 m aside, seen 6 m ahead.
    let mut wall = Splats::default();
    post(&mut wall, -1.5, -6.0, 0.016, Vec3::splat(0.9));
    // A bollard 1 m aside and 1.5 m ahead: dark, as wide as a hand, with a stripe on it.
    let mut bollard = wall.clone();
    post(&mut bollard, 1.0, -1.5, 0.09, Vec3::splat(0.02));
    post(&mut bollard, 1.0, -1.495, 0.005, Vec3::splat(0.9));
    // A bare pole of 4 px at its place.
    let mut bare = wall.clone();
    post(&mut bare, 1.0, -1.5, 0.005, Vec3::splat(0.9));
    for (name, splats) in [("bollard", bollard), ("pole", bare)] {
        let splats = Arc::new(splats);
        let Some(clean) = fast(still(Vec3::ZERO), &splats, film(), HD) else {
            return;
        };
        let filmed = fast(motion, &splats, film(), HD).expect("an adapter");
        let near = smear_px(&clean, &filmed, middle_px + focal_px * 1.0 / 1.5);
        let far = smear_px(&clean, &filmed, middle_px - focal_px * 1.5 / 6.0);
        println!("{name}: {near:.2} px, wall {far:.2} px");
        assert!((near - 7.7).abs() < 0.5, "{name} moves {near} px");
        assert!((far - 0.7).abs() < 0.5, "wall moves {far} px");
        if name == "bollard" {
            // The original gives it the depth of the wall behind it.
            let wall = Plane {
                point: Vec3::new(1.5, 0.0, 0.0),
                normal: Vec3::NEG_X,
            };
            let proxy = Film {
                depth: Depth::Proxy,
                planes: vec![wall],
                ..film()
            };
            let under = smear_px(
                &clean,
                &fast(motion, &splats, proxy, HD).expect("an adapter"),
                middle_px + focal_px * 1.0 / 1.5,
            );
            println!("by proxy: {under:.2} px");
            assert!(under < near - 1.5, "{under}");
        }
    }
}

/// Numbers in 0..1 from the linear congruential generator of Numerical Recipes.
fn dice() -> impl FnMut() -> f32 {
    let mut state = 7_u32;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    }
}

/// Thin leaning poles 1 m away before a textured wall 4.6 m away: the stress of the film pass.
fn fence() -> Arc<Splats> {
    let mut splats = Splats::default();
    let mut next = dice();
    for y in -60..=60 {
        for x in -110..=110 {
            let mean = Vec3::new(0.03 * x as f32, 0.03 * y as f32, -4.6 + 0.04 * next());
            let patch = (i32::div_euclid(x, 8) + i32::div_euclid(y, 6)) % 2;
            let v = (0.3 + 0.4 * next()) * if patch == 0 { 0.6 } else { 1.0 };
            let colour = Vec3::new(v, 0.8 * v, 0.6 * v + 0.1);
            push(
                &mut splats,
                mean,
                Vec3::new(0.02, 0.02, 0.003),
                colour,
                0.95,
            );
        }
    }
    for p in 0..34 {
        let (x, z) = ((p as f32 - 16.5) * 0.09, -1.0 - 0.35 * next());
        let lean = 0.12 * (next() - 0.5);
        let colour = Vec3::new(0.2 + 0.6 * next(), 0.3, 0.2 + 0.6 * next());
        for k in -130..=130 {
            let y = 0.006 * k as f32;
            let mean = Vec3::new(x + lean * y, y, z);
            push(
                &mut splats,
                mean,
                Vec3::new(0.004, 0.005, 0.004),
                colour,
                0.97,
            );
        }
    }
    Arc::new(splats)
}

fn walks() -> [(&'static str, Motion); 5] {
    let motion = |turn_deg_s: f64, velocity_m_s: Vec3| Motion {
        turn_deg_s,
        velocity_m_s,
        ..still(Vec3::ZERO)
    };
    [
        ("turn", motion(TURN_DEG_S, Vec3::ZERO)),
        ("sideways", motion(0.0, Vec3::X * 1.2)),
        ("forward", motion(0.0, Vec3::NEG_Z * 1.2)),
        ("both, doubled", motion(2.0 * TURN_DEG_S, Vec3::X * 2.4)),
        ("slow walk", motion(6.0, Vec3::new(0.3, 0.02, -0.8))),
    ]
}

/// Pixels within 6 px of an edge of depth, as an eye at the origin that looks along -z sees it: nearest
/// splats as discs of two standard deviations, an edge where depths side by side differ by over 6 %.
/// Apart from the depths of the film pass.
fn near_edges(splats: &Splats, [width, height]: [u32; 2]) -> Vec<bool> {
    let (width, height) = (i64::from(width), i64::from(height));
    let focal_px = 0.5 * height as f64 / f64::from(0.5 * FOV_DEG.to_radians()).tan();
    let mut depth = vec![f64::INFINITY; (width * height) as usize];
    for (mean, log_scale) in splats.means.iter().zip(&splats.log_scales) {
        let far = f64::from(-mean.z);
        let x = 0.5 * width as f64 + focal_px * f64::from(mean.x) / far;
        let y = 0.5 * height as f64 - focal_px * f64::from(mean.y) / far;
        let radius = 2.0 * focal_px * f64::from(log_scale.x.exp()) / far;
        for v in (y - radius).floor() as i64..=(y + radius).ceil() as i64 {
            for u in (x - radius).floor() as i64..=(x + radius).ceil() as i64 {
                let off = (u as f64 + 0.5 - x).hypot(v as f64 + 0.5 - y);
                if off <= radius && (0..width).contains(&u) && (0..height).contains(&v) {
                    let at = &mut depth[(v * width + u) as usize];
                    *at = at.min(far);
                }
            }
        }
    }
    let is_edge = |u: i64, v: i64| {
        let here = depth[(v * width + u) as usize];
        [(1, 0), (0, 1)].iter().any(|(du, dv)| {
            let (u, v) = (u + du, v + dv);
            u < width && v < height && {
                let there = depth[(v * width + u) as usize];
                here.max(there) > 1.06 * here.min(there)
            }
        })
    };
    within_6_px([width, height], is_edge)
}

/// Pixels within 6 px of those that are chosen.
fn within_6_px([width, height]: [i64; 2], is_chosen: impl Fn(i64, i64) -> bool) -> Vec<bool> {
    const NEAR_PX: i64 = 6;
    let mut near = vec![false; (width * height) as usize];
    for v in 0..height {
        for u in 0..width {
            if !is_chosen(u, v) {
                continue;
            }
            for dv in -NEAR_PX..=NEAR_PX {
                for du in -NEAR_PX..=NEAR_PX {
                    let (u, v) = (u + du, v + dv);
                    let inside = (0..width).contains(&u) && (0..height).contains(&v);
                    if inside && du * du + dv * dv <= NEAR_PX * NEAR_PX {
                        near[(v * width + u) as usize] = true;
                    }
                }
            }
        }
    }
    near
}

/// Pixels of the passage at some instant within 6 px of an edge of depth: where depths of the reference
/// renderer side by side differ by over 6 %, and by more than twice what the two pixels before or behind
/// say of a slanted plane, on which inverse depth is linear.
fn alley_edges(t_s: f64) -> Vec<bool> {
    let scene = alley_scene(FilmMode::Scene);
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    let mut session = Session::open(scene, cache, false).expect("opens");
    let [width, height] = PASSAGE.map(i64::from);
    let input = Input {
        aspect: width as f32 / height as f32,
        ..Input::default()
    };
    session.reload(t_s, &input).expect("plays");
    let frame = session.frame(t_s, &input).expect("a picture");
    let depth_m = reference::render(&frame, PASSAGE, &Rules::product()).median_depth_m;
    let inverse = |u: i64, v: i64| {
        let inside = (0..width).contains(&u) && (0..height).contains(&v);
        let metres = inside.then(|| f64::from(depth_m[(v * width + u) as usize]))?;
        (metres > 0.0).then(|| 1.0 / metres)
    };
    within_6_px([width, height], |u, v| {
        [(1, 0), (0, 1)].iter().any(|(du, dv)| {
            let at = |k: i64| inverse(u + k * du, v + k * dv);
            let (Some(here), Some(there)) = (at(0), at(1)) else {
                return at(0).is_some() != at(1).is_some();
            };
            let slope = there - here;
            let is_plane = [at(-1).map(|w| here - w), at(2).map(|w| w - there)]
                .into_iter()
                .flatten()
                .any(|beside| beside * slope > 0.0 && slope.abs() <= 2.0 * beside.abs());
            here.max(there) > 1.06 * here.min(there) && !is_plane
        })
    })
}

/// The PSNR of the pixels that are chosen.
fn psnr_where(found: &RgbaImage, wanted: &RgbaImage, is_chosen: &[bool]) -> f64 {
    let pixels = found.pixels().zip(wanted.pixels()).zip(is_chosen);
    let (mut squares, mut count) = (0.0, 0);
    for ((a, b), _) in pixels.filter(|(_, chosen)| **chosen) {
        for k in 0..3 {
            squares += (f64::from(a[k]) - f64::from(b[k])).powi(2);
            count += 1;
        }
    }
    10.0 * (255.0 * 255.0 * f64::from(count) / squares).log10()
}

#[test]
fn the_fast_pass_reaches_brute_force_on_a_fence() {
    let splats = fence();
    let size = [640, 360];
    let edges = near_edges(&splats, size);
    let share = edges.iter().filter(|near| **near).count() as f64 / edges.len() as f64;
    assert!((0.3..0.9).contains(&share), "{share} is near an edge");
    for (name, motion) in walks() {
        let Some(found) = fast(motion, &splats, Film::default(), size) else {
            return;
        };
        let wanted = brute(motion, &splats, Film::default(), size, 65).expect("an adapter");
        let db = psnr_db(&found, &wanted);
        let at_edges_db = psnr_where(&found, &wanted, &edges);
        println!("{name}: {db:.2} dB, within 6 px of edges of depth {at_edges_db:.2} dB");
        assert!(db >= 43.0, "{name}: {db:.2} dB");
        assert!(at_edges_db >= 42.0, "{name}: {at_edges_db:.2} dB at edges");
    }
}

#[test]
fn a_lens_out_of_focus_reaches_brute_force() {
    let splats = fence();
    let film = || Film {
        focus_m: 1.1,
        aperture_m: 0.012,
        distortion: 0.03,
        ..Film::default()
    };
    for (name, motion) in &walks()[4..5] {
        let Some(found) = fast(*motion, &splats, film(), SMALL) else {
            return;
        };
        let wanted = brute(*motion, &splats, film(), SMALL, 129).expect("an adapter");
        let db = psnr_db(&found, &wanted);
        println!("{name}: {db:.2} dB");
        assert!(db >= 40.0, "{name}: {db:.2} dB");
    }
}

#[test]
fn the_gpu_films_as_its_twin_does() {
    let splats = fence();
    let lens = Film {
        focus_m: 1.3,
        aperture_m: 0.006,
        distortion: -0.04,
        aberration: 0.002,
        falloff: 0.4,
        halation: Halation {
            strength: 0.6,
            radius: 0.04,
            threshold: 0.2,
        },
        sharpen: 0.5,
        shoulder: 0.3,
        gain: 1.4,
        balance: [1.1, 1.0, 0.8],
        noise_shot: 2e-3,
        noise_read: 1e-5,
        ..Film::default()
    };
    let proxy = Film {
        depth: Depth::Proxy,
        planes: vec![Plane {
            point: Vec3::new(0.0, 0.0, -3.0),
            normal: Vec3::Z,
        }],
        ..Film::default()
    };
    let one_layer = Film {
        depth: Depth::OneLayer,
        ..Film::default()
    };
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let Some((context, mut renderer)) = renderer(Some(method)) else {
            return;
        };
        let films = [
            ("default", Film::default()),
            ("lens", lens.clone()),
            ("proxy", proxy.clone()),
            ("one layer", one_layer.clone()),
        ];
        for (name, film) in films {
            for (walk, motion) in [walks()[3], walks()[4]] {
                let frame = motion.frame(&splats, film.clone());
                let (picture, _) = renderer.picture(context, &frame, SMALL).expect("draws");
                let found = from_rgba(SMALL, picture.rgba);
                let twin = reference::shown(&frame, SMALL, &Rules::product());
                let db = psnr_db(&found, &from_rgba(SMALL, twin));
                println!("{method:?}, {name}, {walk}: {db:.2} dB");
                assert!(db >= 45.0, "{method:?}, {name}, {walk}: {db:.2} dB");
            }
        }
    }
}

/// The fence with 30,000 faint splats down one line of sight: no pixel there is ever full.
fn hazy_fence() -> Arc<Splats> {
    let mut splats = Splats::clone(&fence());
    let mut next = dice();
    for i in 0..30_000 {
        let depth_m = 0.8 + 3.6 * (i as f32 / 30_000.0);
        let (angle, radius) = (std::f32::consts::TAU * next(), 0.035 * next().sqrt());
        let mean = depth_m * Vec3::new(radius * angle.cos(), radius * angle.sin(), -1.0);
        let colour = Vec3::new(next(), next(), next());
        push(
            &mut splats,
            mean,
            Vec3::splat(0.004 * depth_m),
            colour,
            0.012,
        );
    }
    Arc::new(splats)
}

/// `shared/segments.wgsl` cuts lists after 3072 splats.
#[test]
fn long_lists_are_blended_in_segments_as_if_they_were_whole() {
    let splats = hazy_fence();
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let Some((context, mut renderer)) = renderer(Some(method)) else {
            return;
        };
        for depth in [Depth::TwoLayers, Depth::OneLayer] {
            let film = Film {
                depth,
                ..Film::default()
            };
            let frame = walks()[1].1.frame(&splats, film);
            let (picture, _) = renderer.picture(context, &frame, SMALL).expect("draws");
            let twin = reference::shown(&frame, SMALL, &Rules::product());
            let largest = picture.rgba.iter().zip(&twin).map(|(a, b)| a.abs_diff(*b));
            let db = psnr_db(
                &from_rgba(SMALL, picture.rgba.clone()),
                &from_rgba(SMALL, twin.clone()),
            );
            let largest = largest.max();
            println!("{method:?}, {depth:?}: {db:.2} dB, at most {largest:?}");
            assert!(db >= 55.0, "{method:?}, {depth:?}: {db:.2} dB");
            let (again, _) = renderer.picture(context, &frame, SMALL).expect("draws");
            assert_eq!(picture, again, "{method:?}, {depth:?}");
        }
    }
}

#[test]
fn a_film_in_which_nothing_moves_is_the_clean_picture() {
    let splats = fence();
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let Some((context, mut renderer)) = renderer(Some(method)) else {
            return;
        };
        let filmed = still(Vec3::ZERO).frame(&splats, Film::default());
        let clean = Frame {
            film: None,
            ..filmed.clone()
        };
        let (found, _) = renderer.picture(context, &filmed, SMALL).expect("draws");
        let (wanted, _) = renderer.picture(context, &clean, SMALL).expect("draws");
        let largest = (found.rgba.iter().zip(&wanted.rgba))
            .map(|(a, b)| a.abs_diff(*b))
            .max();
        assert!(largest <= Some(1), "{method:?}: {largest:?}");
        let (again, _) = renderer.picture(context, &filmed, SMALL).expect("draws");
        assert_eq!(found, again);
    }
}

#[test]
fn noise_is_seeded_by_time_and_stronger_in_light() {
    // A wall of one colour, half of it dark.
    let mut splats = Splats::default();
    for (x, v) in [(-2.0, 0.1), (2.0, 0.8)] {
        push(
            &mut splats,
            Vec3::new(x, 0.0, -4.0),
            Vec3::new(0.6, 9.0, 0.01),
            Vec3::splat(v),
            0.99,
        );
        push(
            &mut splats,
            Vec3::new(x, 0.0, -4.1),
            Vec3::new(0.6, 9.0, 0.01),
            Vec3::splat(v),
            0.99,
        );
    }
    let Some((context, mut renderer)) = renderer(None) else {
        return;
    };
    let film = Film {
        noise_shot: 1e-3,
        noise_read: 1e-6,
        ..Film::default()
    };
    let mut at = |t_s: f64, size: [u32; 2]| {
        let frame = Frame {
            t_s,
            ..still(Vec3::ZERO).frame(&Arc::new(splats.clone()), film.clone())
        };
        from_rgba(
            size,
            renderer
                .picture(context, &frame, size)
                .expect("draws")
                .0
                .rgba,
        )
    };
    let (a, again, b) = (at(1.0, HD), at(1.0, HD), at(1.1, HD));
    assert_eq!(a, again, "the same time has the same noise");
    assert_ne!(a, b);
    // In linear light the variance grows with the level; a grain is a pixel of 1080 rows.
    let spread = |picture: &RgbaImage, x: u32| {
        let values: Vec<f64> = (0..400).flat_map(|y| row(picture, y, x..x + 1)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        (mean, variance / values.len() as f64)
    };
    let focal_px = 1158.0;
    let column = |x: f32| (960.0 + focal_px * x / 4.0) as u32;
    for x in [-2.0, 2.0] {
        let (mean, variance) = spread(&a, column(x));
        let wanted = 1e-3 * mean + 1e-6;
        assert!(
            (variance / wanted - 1.0).abs() < 0.3,
            "{x}: {variance} against {wanted}"
        );
    }
    // At half the rows four grains share a pixel: half the deviation.
    let half = at(1.0, [960, 540]);
    let (mean, variance) = spread(&half, column(2.0) / 2);
    let wanted = 0.25 * 1e-3 * mean;
    assert!(
        (variance / wanted - 1.0).abs() < 0.35,
        "{variance} against {wanted}"
    );
}

/// The passage as it is filmed here, without noise.
fn alley_scene(mode: FilmMode) -> SceneOptions {
    SceneOptions {
        scene: "@alley".to_owned(),
        film: mode,
        args: serde_json::json!({"phone": "article", "noise": 0})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        ..SceneOptions::default()
    }
}

/// The passage at some instant, 65 renders where it is by brute force.
fn alley(mode: FilmMode, t_s: f64) -> Option<RgbaImage> {
    given::gpu()?;
    let scene = alley_scene(mode);
    let draw = DrawOptions {
        film_samples: 33,
        ..DrawOptions::of_size(PASSAGE)
    };
    let mut studio = Studio::open(&scene, &draw).expect("opens");
    let shot = studio.picture(t_s).expect("draws");
    Some(from_rgba(PASSAGE, shot.picture.rgba))
}

#[test]
fn the_fast_pass_reaches_brute_force_in_the_passage() {
    // Within the fastest turn, and at a walk past near things; or where one wants to see it, "3,10,17".
    let asked = std::env::var("FILM_INSTANTS").unwrap_or_else(|_| "21,40".to_owned());
    for t_s in asked.split(',').map(|t| t.parse().expect("seconds")) {
        let Some(found) = alley(FilmMode::Scene, t_s) else {
            return;
        };
        let wanted = alley(FilmMode::Reference, t_s).expect("an adapter");
        let db = psnr_db(&found, &wanted);
        let edges = alley_edges(t_s);
        let share = edges.iter().filter(|near| **near).count() as f64 / edges.len() as f64;
        assert!((0.02..0.9).contains(&share), "{share} is near an edge");
        let at_edges_db = psnr_where(&found, &wanted, &edges);
        println!(
            "t {t_s}: {db:.2} dB, within 6 px of edges of depth ({share:.2} of it) {at_edges_db:.2} dB"
        );
        assert!(db >= 43.0, "t {t_s}: {db:.2} dB");
        assert!(at_edges_db >= 42.0, "t {t_s}: {at_edges_db:.2} dB at edges");
    }
}
