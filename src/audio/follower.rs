//! What a clip sounds like at any time of it: loudness, centre of the spectrum, three bands. Lips follow
//! it.
//!
//! A clip is listened to once; after that every answer is a function of time, so live and offline are the
//! same. The bands are octaves (second-order band-passes at 125 Hz to 8 kHz), the centre is the mean of
//! their middles weighted by power, over windows of [`WINDOW_S`]. Nothing is played here.

use super::clip::Clip;
use super::filter::{Chain, Filter};
use super::{BLOCK_SAMPLES, Error, RATE_HZ, seconds_at};
use std::f64::consts::FRAC_1_SQRT_2;

/// One answer for each 10 ms.
const STEP_SAMPLES: usize = BLOCK_SAMPLES;

/// Of what is heard around a moment, seconds: three steps, under a window that falls to both sides.
pub const WINDOW_S: f64 = 0.03;

/// Middles of the octaves, hertz.
const OCTAVES_HZ: [f64; 7] = [125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0];

/// The octaves of the low, the middle and the high band: up to 350 Hz, to 2800 Hz, above.
const BANDS: [std::ops::Range<usize>; 3] = [0..2, 2..5, 5..7];

/// Quieter than this is silence, dBFS.
pub const FLOOR_DB: f64 = -100.0;

/// What is heard at a moment. Levels are root mean squares against full scale, at least [`FLOOR_DB`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hearing {
    /// Of everything, dBFS.
    pub level_db: f64,
    /// Centre of the spectrum, hertz; 0 in silence.
    pub centre_hz: f64,
    /// Of the low, the middle and the high band, dBFS.
    pub bands_db: [f64; 3],
}

/// A clip that was listened to.
#[derive(Clone, Debug)]
pub struct Follower {
    duration_s: f64,
    /// For each step the mean power of everything, then of each octave.
    steps: Vec<[f64; 1 + OCTAVES_HZ.len()]>,
}

impl Follower {
    /// Listens to a clip.
    ///
    /// # Errors
    /// A clip that is too long to be held decoded.
    pub fn new(clip: &Clip) -> Result<Self, Error> {
        let samples = clip.held().ok_or_else(|| clip.too_long_for("following"))?;
        let mut octaves = OCTAVES_HZ.map(|hz| {
            // Middle over width of an octave.
            Chain::new(&[Filter::BandPass {
                hz,
                q: 2.0 * FRAC_1_SQRT_2,
            }])
        });
        let mut steps = Vec::with_capacity(samples.len().div_ceil(STEP_SAMPLES));
        let mut scratch = [[0.0; 2]; STEP_SAMPLES];
        for piece in samples.chunks(STEP_SAMPLES) {
            let mono = |sample: &[f32; 2]| 0.5 * (f64::from(sample[0]) + f64::from(sample[1]));
            let power = |values: &mut dyn Iterator<Item = f64>| {
                values.map(|v| v * v).sum::<f64>() / piece.len() as f64
            };
            let mut step = [0.0; 1 + OCTAVES_HZ.len()];
            step[0] = power(&mut piece.iter().map(mono));
            for (octave, out) in octaves.iter_mut().zip(&mut step[1..]) {
                let filtered = &mut scratch[..piece.len()];
                for (slot, sample) in filtered.iter_mut().zip(piece) {
                    slot[0] = mono(sample);
                }
                octave.run(filtered, true);
                *out = power(&mut filtered.iter().map(|sample| sample[0]));
            }
            steps.push(step);
        }
        Ok(Self {
            duration_s: seconds_at(samples.len() as i64),
            steps,
        })
    }

    /// Length of the clip, seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.duration_s
    }

    /// How many numbers are held.
    #[must_use]
    pub fn numbers(&self) -> usize {
        self.steps.len() * (1 + OCTAVES_HZ.len())
    }

    /// What is heard at a time of the clip, seconds; silence before and after it.
    #[must_use]
    pub fn at(&self, t_s: f64) -> Hearing {
        // In steps, so that a whole number is the middle of one.
        let at = t_s * f64::from(RATE_HZ) / STEP_SAMPLES as f64 - 0.5;
        let nearest = at.round();
        let mut sum = [0.0; 1 + OCTAVES_HZ.len()];
        let reach = 0.5 * WINDOW_S * f64::from(RATE_HZ) / STEP_SAMPLES as f64;
        let mut weights = 0.0;
        for offset in [-2.0, -1.0, 0.0, 1.0, 2.0] {
            let number = nearest + offset;
            let weight = (1.0 - (number - at).abs() / reach).max(0.0);
            weights += weight;
            let is_inside = number >= 0.0 && number < self.steps.len() as f64;
            if is_inside {
                for (sum, power) in sum.iter_mut().zip(&self.steps[number as usize]) {
                    *sum += weight * power;
                }
            }
        }
        let sum = sum.map(|power| power / weights);
        let db = |power: f64| (10.0 * power.log10()).max(FLOOR_DB);
        let octaves = &sum[1..];
        let all: f64 = octaves.iter().sum();
        let moment: f64 = octaves.iter().zip(OCTAVES_HZ).map(|(p, hz)| p * hz).sum();
        Hearing {
            level_db: db(sum[0]),
            centre_hz: if db(all) > FLOOR_DB {
                moment / all
            } else {
                0.0
            },
            bands_db: BANDS.map(|band| db(octaves[band].iter().sum())),
        }
    }
}
