//! Smooth value noise: random numbers at whole coordinates, blended in between.
//!
//! The blend is the quintic of Perlin 2002 (continuous second derivative), the random numbers are
//! the SplitMix64 finaliser of coordinate and seed, so they are the same on every machine. Values
//! lie in -1..1 with mean 0.

use glam::DVec3;

/// Octaves beyond this add detail below f64 at any usable x.
pub const OCTAVES_MAX: u32 = 16;

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): every input bit reaches every output bit.
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in -1..1 that belongs to a lattice point.
fn lattice(cell: [i64; 3], seed: u64) -> f64 {
    let hash = cell
        .into_iter()
        .fold(mix(seed), |h, c| mix(h ^ c.cast_unsigned()));
    (hash >> 11) as f64 * (2.0 / (1_u64 << 53) as f64) - 1.0
}

fn fade(f: f64) -> f64 {
    f * f * f * (f * (6.0 * f - 15.0) + 10.0)
}

/// Noise along a line.
#[must_use]
pub fn line(x: f64, seed: u64) -> f64 {
    let cell = x.floor();
    let (a, i) = (fade(x - cell), cell as i64);
    let (left, right) = (
        lattice([i, 0, 0], seed),
        lattice([i.wrapping_add(1), 0, 0], seed),
    );
    left + a * (right - left)
}

/// Noise in space.
#[must_use]
pub fn space(p: DVec3, seed: u64) -> f64 {
    let cell = p.floor();
    let f = p - cell;
    let (u, v, w) = (fade(f.x), fade(f.y), fade(f.z));
    let corner = |dx: i64, dy: i64, dz: i64| {
        let at = |c: f64, d: i64| (c as i64).wrapping_add(d);
        lattice([at(cell.x, dx), at(cell.y, dy), at(cell.z, dz)], seed)
    };
    let blend = |a: f64, b: f64, t: f64| a + t * (b - a);
    let edge = |dy, dz| blend(corner(0, dy, dz), corner(1, dy, dz), u);
    blend(
        blend(edge(0, 0), edge(1, 0), v),
        blend(edge(0, 1), edge(1, 1), v),
        w,
    )
}

/// A sum of `octaves` noises, each twice as fine and half as strong, scaled back to -1..1.
#[must_use]
pub fn octaves(octaves: u32, seed: u64, noise: impl Fn(f64, u64) -> f64) -> f64 {
    let (mut sum, mut weight, mut total) = (0.0, 1.0, 0.0);
    for octave in 0..octaves.clamp(1, OCTAVES_MAX) {
        // The first octave is the plain noise of that seed.
        let seed = if octave == 0 {
            seed
        } else {
            mix(seed ^ u64::from(octave))
        };
        sum += weight * noise(f64::from(1_u32 << octave), seed);
        total += weight;
        weight *= 0.5;
    }
    sum / total
}
