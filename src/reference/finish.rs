//! From light to a picture, as lens, sensor and camera would.
//!
//! Twin of the shader `finish`, which says in which order and why.

use crate::film::Film;
use crate::frame::Frame;
use glam::{DVec2, DVec3};

const HALATION_TINT: DVec3 = DVec3::new(1.0, 0.35, 0.12);
const GRAIN_ROWS: f64 = 1080.0;
const GLOW_SHRINK: usize = 8;

/// Linear light and its size, px.
struct Light<'a> {
    size: [usize; 2],
    values: &'a [DVec3],
}

impl Light<'_> {
    fn at(&self, x: i64, y: i64) -> DVec3 {
        let [w, h] = self.size.map(|side| side as i64);
        self.values[(y.clamp(0, h - 1) * w + x.clamp(0, w - 1)) as usize]
    }
}

/// The picture of a filmed frame: 8-bit RGBA, opaque, rows top to bottom. `light` is that of
/// [`super::film::light`].
#[must_use]
pub fn finish(frame: &Frame, film: &Film, light: &[DVec3], size: [u32; 2]) -> Vec<u8> {
    let light = Light {
        size: size.map(|side| side as usize),
        values: light,
    };
    let [width, height] = light.size;
    let glow = (film.halation.strength > 0.0).then(|| glow(film, &light));
    let seed = film.noise_seed(frame.t_s);
    let developed: Vec<DVec3> = (0..width * height)
        .map(|i| developed(film, &light, glow.as_ref(), seed, [i % width, i / width]))
        .collect();
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, width as i64 - 1), y.clamp(0, height as i64 - 1));
        developed[(y * width as i64 + x) as usize]
    };
    let luma = DVec3::new(0.2126, 0.7152, 0.0722);
    (0..width * height)
        .flat_map(|i| {
            let (x, y) = ((i % width) as i64, (i / width) as i64);
            let around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
            let over = f64::from(film.sharpen) * luma.dot(at(x, y) - 0.25 * around);
            let byte = |v: f64| ((v + over).clamp(0.0, 1.0) * 255.0 + 0.5).floor() as u8;
            let colour = at(x, y);
            [byte(colour.x), byte(colour.y), byte(colour.z), 255]
        })
        .collect()
}

/// The encoded picture before sharpening.
fn developed(
    film: &Film,
    light: &Light<'_>,
    glow: Option<&(Vec<DVec3>, [usize; 2])>,
    seed: u32,
    [x, y]: [usize; 2],
) -> DVec3 {
    let size_px = DVec2::new(light.size[0] as f64, light.size[1] as f64);
    let at_px = DVec2::new(x as f64 + 0.5, y as f64 + 0.5);
    let from_centre = at_px - 0.5 * size_px;
    let mut value = light.at(x as i64, y as i64);
    let aberration = f64::from(film.aberration);
    if aberration != 0.0 {
        value.x = cubic(light, 0.5 * size_px + from_centre / (1.0 + aberration))
            .x
            .max(0.0);
        value.z = cubic(light, 0.5 * size_px + from_centre / (1.0 - aberration))
            .z
            .max(0.0);
    }
    let r2 = from_centre.length_squared() / (0.25 * size_px.length_squared());
    let corner = (1.0 - f64::from(film.falloff)).max(0.01).sqrt().recip() - 1.0;
    let dimming = (1.0 + corner * r2).powi(2);
    value *= balance(film) / dimming;
    if let Some((glow, size)) = glow {
        let strength = f64::from(film.halation.strength);
        value += strength * HALATION_TINT * bilinear(glow, *size, at_px / size_px);
    }
    if film.noise_shot > 0.0 || film.noise_read > 0.0 {
        let scale = GRAIN_ROWS / size_px.y;
        let grain = at_px * scale.min(1.0);
        let normal = deviates([grain.x as u32, grain.y as u32], seed);
        let variance = f64::from(film.noise_shot) * value + f64::from(film.noise_read);
        let deviation = variance.to_array().map(f64::sqrt);
        value += DVec3::from_array(deviation) / scale.max(1.0) * normal;
        value = value.max(DVec3::ZERO);
    }
    let shoulder = f64::from(film.shoulder);
    if shoulder > 0.0 {
        let knee = 1.0 - shoulder;
        let roll =
            |v: f64| v.min(knee) + shoulder * (1.0 - (-(v - knee).max(0.0) / shoulder).exp());
        value = DVec3::from_array(value.to_array().map(roll));
    }
    DVec3::from_array(value.to_array().map(encode)).min(DVec3::ONE)
}

fn balance(film: &Film) -> DVec3 {
    DVec3::from_array(film.balance.map(f64::from)) * f64::from(film.gain)
}

fn encode(v: f64) -> f64 {
    let v = v.max(0.0);
    if v <= 0.003_130_8 {
        v * 12.92
    } else {
        1.055 * v.powf(1.0 / 2.4) - 0.055
    }
}

fn cubic(light: &Light<'_>, at_px: DVec2) -> DVec3 {
    let base = (at_px - 0.5).floor();
    let along = at_px - 0.5 - base;
    let weights = |x: f64| {
        let (x2, x3) = (x * x, x * x * x);
        [
            -0.5 * x + x2 - 0.5 * x3,
            1.0 - 2.5 * x2 + 1.5 * x3,
            0.5 * x + 2.0 * x2 - 1.5 * x3,
            -0.5 * x2 + 0.5 * x3,
        ]
    };
    let (wx, wy) = (weights(along.x), weights(along.y));
    let mut sum = DVec3::ZERO;
    for (j, wy) in wy.iter().enumerate() {
        for (i, wx) in wx.iter().enumerate() {
            let place = (base.x as i64 + i as i64 - 1, base.y as i64 + j as i64 - 1);
            sum += wx * wy * light.at(place.0, place.1);
        }
    }
    sum
}

/// What is above the threshold, blurred, at an eighth of the size, and that size.
fn glow(film: &Film, light: &Light<'_>) -> (Vec<DVec3>, [usize; 2]) {
    let size = light.size.map(|side| side.div_ceil(GLOW_SHRINK));
    let threshold = f64::from(film.halation.threshold);
    let bright = |i: usize| {
        let (left, top) = ((i % size[0]) * GLOW_SHRINK, (i / size[0]) * GLOW_SHRINK);
        let mut sum = DVec3::ZERO;
        for y in top..top + GLOW_SHRINK {
            for x in left..left + GLOW_SHRINK {
                let value = light.at(x as i64, y as i64) * balance(film);
                sum += (value - threshold).max(DVec3::ZERO);
            }
        }
        sum / (GLOW_SHRINK * GLOW_SHRINK) as f64
    };
    let start: Vec<DVec3> = (0..size[0] * size[1]).map(bright).collect();
    let sigma = f64::from(film.halation.radius) * light.size[1] as f64 / GLOW_SHRINK as f64;
    let sigma = sigma.max(0.3);
    let reach = (2.5 * sigma).ceil().min(40.0) as i64;
    let blurred = |source: &[DVec3], along: [i64; 2]| -> Vec<DVec3> {
        let at = |i: usize, k: i64| {
            let x = (i % size[0]) as i64 + k * along[0];
            let y = (i / size[0]) as i64 + k * along[1];
            let (x, y) = (
                x.clamp(0, size[0] as i64 - 1),
                y.clamp(0, size[1] as i64 - 1),
            );
            source[(y * size[0] as i64 + x) as usize]
        };
        let weight = |k: i64| (-0.5 * (k * k) as f64 / (sigma * sigma)).exp();
        let total: f64 = (-reach..=reach).map(weight).sum();
        (0..source.len())
            .map(|i| {
                (-reach..=reach)
                    .map(|k| weight(k) * at(i, k))
                    .sum::<DVec3>()
                    / total
            })
            .collect()
    };
    (blurred(&blurred(&start, [1, 0]), [0, 1]), size)
}

/// `at` in shares of the picture.
fn bilinear(values: &[DVec3], size: [usize; 2], at: DVec2) -> DVec3 {
    let place = at * DVec2::new(size[0] as f64, size[1] as f64) - 0.5;
    let base = place.floor();
    let along = place - base;
    let get = |x: f64, y: f64| {
        let x = (x as i64).clamp(0, size[0] as i64 - 1);
        let y = (y as i64).clamp(0, size[1] as i64 - 1);
        values[(y * size[0] as i64 + x) as usize]
    };
    let top = get(base.x, base.y).lerp(get(base.x + 1.0, base.y), along.x);
    let bottom = get(base.x, base.y + 1.0).lerp(get(base.x + 1.0, base.y + 1.0), along.x);
    top.lerp(bottom, along.y)
}

/// Three normal deviates of a grain.
fn deviates(grain: [u32; 2], seed: u32) -> DVec3 {
    let a = pcg3d([grain[0], grain[1], seed]);
    let b = pcg3d([grain[0], grain[1], !seed]);
    let normal = |i: usize| {
        let u = (f64::from(a[i] >> 8) + 0.5) / 16_777_216.0;
        let v = f64::from(b[i] >> 8) / 16_777_216.0;
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    DVec3::new(normal(0), normal(1), normal(2))
}

fn pcg3d(seed: [u32; 3]) -> [u32; 3] {
    let mut v = seed.map(|s| s.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let mix = |v: &mut [u32; 3]| {
        v[0] = v[0].wrapping_add(v[1].wrapping_mul(v[2]));
        v[1] = v[1].wrapping_add(v[2].wrapping_mul(v[0]));
        v[2] = v[2].wrapping_add(v[0].wrapping_mul(v[1]));
    };
    mix(&mut v);
    v = v.map(|s| s ^ (s >> 16));
    mix(&mut v);
    v
}
