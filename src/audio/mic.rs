//! The phone's microphone: what a recording sounds like, as opposed to the scene.
//!
//! In this order: the two holes stand close together (narrow stereo or mono); wind, handling and the
//! capsule's own noise come in; the band is limited; automatic gain brings the level to an aim; peaks
//! are compressed. Wind goes with the square of the air's speed over the microphone and handling with
//! the hands' acceleration; both come with the [`Listener`], so they follow gait and motion.
//!
//! Whatever has a memory is bounded, so that a recording can be begun anywhere ([`LOOK_BACK_BLOCKS`]):
//! filters restart on a grid of 1 s from 0.5 s of warm-up, the automatic gain is worked out anew for
//! each block from the levels of the last 3 s, the compressor falls back in a straight line.

use super::dynamics::{Block, Compressor, RunningCompressor, glide};
use super::filter::{Chain, Filter, butterworth_4_low, memory_samples};
use super::space::Listener;
use super::synth::{Colour, NOISE_RMS, RunningSource, Source};
use super::{BLOCK_SAMPLES, Error, amplitude_from_db, seconds_at, within};
use crate::motion::noise::{line, mix, octaves};
use std::collections::VecDeque;

/// Blocks from one restart of the filters to the next, 1 s.
const SEGMENT_BLOCKS: i64 = 100;

/// Blocks of warm-up before a restart, 0.5 s.
const WARM_UP_BLOCKS: i64 = 50;

/// Blocks of which levels the automatic gain is made, 3 s.
const GAIN_BLOCKS: usize = 300;

/// Blocks of those whose mean level the gain starts from, 1 s.
const GAIN_START_BLOCKS: usize = 100;

/// Blocks before a moment that have an effect on it, 5.7 s: filters of the noises, then one segment
/// more for the band that they go through, then the levels, then the compressor.
pub const LOOK_BACK_BLOCKS: i64 =
    2 * SEGMENT_BLOCKS + WARM_UP_BLOCKS + GAIN_BLOCKS as i64 + 1 + Compressor::MEMORY_BLOCKS;

/// Corner below which no microphone and no mix lets anything through, hertz.
const DIRECT_CURRENT_HZ: f64 = 15.0;

/// Peaks of gusts over the mean, dB, and gusts a second.
const GUST_DB: f64 = 9.0;
const GUST_HZ: f64 = 0.7;

/// A microphone and what follows it, as plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Mic {
    /// The band, -3 dB at both ends, hertz: from 20 to 1000, up to 1000 to 20,000.
    pub band_hz: [f64; 2],
    /// How much of the difference between left and right is left, 0 (mono) to 1.
    pub width: f64,
    /// The capsule's own noise before the automatic gain, dBFS.
    pub noise_db: f64,
    /// Wind noise at 1 m/s before the band limits, dBFS.
    pub wind_db: f64,
    /// Handling noise at 1 m/s² before the band limits, dBFS.
    pub handling_db: f64,
    /// Automatic gain, where there is one.
    pub gain: Option<AutomaticGain>,
    /// Compression, where there is one.
    pub compressor: Option<Compressor>,
}

/// Gain that brings the level to an aim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutomaticGain {
    /// Level that is aimed at, root mean square, dBFS.
    pub aim_db: f64,
    /// Largest gain up, dB.
    pub boost_db: f64,
    /// Largest gain down, dB.
    pub cut_db: f64,
}

impl AutomaticGain {
    /// Time constant when it gets too loud. A step of 20 dB up is within 3 dB after
    /// [`AutomaticGain::LOUDER_S`].
    const ATTACK_S: f64 = 0.12;
    /// Time constant when it gets too quiet.
    const RELEASE_S: f64 = 0.6;
    /// After a step of 20 dB up the level is within 3 dB of where it settles, seconds.
    pub const LOUDER_S: f64 = 0.3;
    /// After a step of 20 dB down, seconds.
    pub const QUIETER_S: f64 = 1.3;
    /// Levels under this are no signal; the gain stays, dBFS.
    const GATE_DB: f64 = -75.0;

    /// The gain after the given levels (dBFS, block by block, the last one the newest), dB.
    fn gain_db(&self, levels: &VecDeque<f64>) -> f64 {
        let block_s = seconds_at(BLOCK_SAMPLES as i64);
        let attack = 1.0 - (-block_s / Self::ATTACK_S).exp();
        let release = 1.0 - (-block_s / Self::RELEASE_S).exp();
        let wanted = |level: f64| (self.aim_db - level).clamp(-self.cut_db, self.boost_db);
        // Silence wants nothing: a recording that begins in it is not turned up beforehand.
        let is_signal = |level: &&f64| **level >= Self::GATE_DB;
        let start = levels.iter().take(GAIN_START_BLOCKS).filter(is_signal);
        let mut gain = start.map(|level| wanted(*level)).sum::<f64>() / GAIN_START_BLOCKS as f64;
        for level in levels.iter().skip(GAIN_START_BLOCKS) {
            if is_signal(&level) {
                let step = wanted(*level) - gain;
                gain += step * if step < 0.0 { attack } else { release };
            }
        }
        gain
    }
}

impl Mic {
    /// A phone of today filming: narrow stereo.
    #[must_use]
    pub fn phone() -> Self {
        Self {
            band_hz: [90.0, 14_000.0],
            width: 0.35,
            noise_db: -84.0,
            wind_db: -50.0,
            handling_db: -58.0,
            gain: Some(AutomaticGain {
                aim_db: -22.0,
                boost_db: 18.0,
                cut_db: 18.0,
            }),
            compressor: Some(Compressor {
                threshold_db: -14.0,
                ratio: 3.0,
                makeup_db: 2.0,
            }),
        }
    }

    /// A phone of ten years ago filming: mono, narrower, noisier.
    #[must_use]
    pub fn old_phone() -> Self {
        Self {
            band_hz: [160.0, 8_000.0],
            width: 0.0,
            noise_db: -74.0,
            wind_db: -44.0,
            handling_db: -52.0,
            gain: Some(AutomaticGain {
                aim_db: -20.0,
                boost_db: 20.0,
                cut_db: 18.0,
            }),
            compressor: Some(Compressor {
                threshold_db: -16.0,
                ratio: 4.0,
                makeup_db: 3.0,
            }),
        }
    }

    /// The other end of a telephone call.
    #[must_use]
    pub fn call() -> Self {
        Self {
            band_hz: [300.0, 3_400.0],
            ..Self::old_phone()
        }
    }

    /// Names of the presets.
    pub const PRESETS: [&str; 3] = ["phone", "old_phone", "call"];

    /// A preset by its name, one of [`Mic::PRESETS`].
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "phone" => Some(Self::phone()),
            "old_phone" => Some(Self::old_phone()),
            "call" => Some(Self::call()),
            _ => None,
        }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// A value outside of its range.
    pub fn check(&self) -> Result<(), Error> {
        within(
            "the low end of a microphone's band in Hz",
            self.band_hz[0],
            20.0,
            1000.0,
        )?;
        within(
            "the high end of a microphone's band in Hz",
            self.band_hz[1],
            1000.0,
            20_000.0,
        )?;
        within("a microphone's width", self.width, 0.0, 1.0)?;
        for noise_db in [self.noise_db, self.wind_db, self.handling_db] {
            within("a microphone's noise in dB", noise_db, -200.0, 0.0)?;
        }
        if let Some(gain) = &self.gain {
            within(
                "the aim of an automatic gain in dB",
                gain.aim_db,
                -60.0,
                0.0,
            )?;
            within(
                "the boost of an automatic gain in dB",
                gain.boost_db,
                0.0,
                60.0,
            )?;
            within("the cut of an automatic gain in dB", gain.cut_db, 0.0, 60.0)?;
        }
        if let Some(compressor) = &self.compressor {
            within(
                "a compressor's threshold in dB",
                compressor.threshold_db,
                -60.0,
                0.0,
            )?;
            within("a compressor's ratio", compressor.ratio, 1.0, 20.0)?;
            within(
                "a compressor's makeup in dB",
                compressor.makeup_db,
                0.0,
                20.0,
            )?;
        }
        Ok(())
    }

    /// The filters of the band, second order below and fourth above.
    fn band(&self) -> Vec<Filter> {
        let low = Filter::HighPass {
            hz: self.band_hz[0],
            q: std::f64::consts::FRAC_1_SQRT_2,
        };
        let mut filters = vec![low];
        filters.extend(butterworth_4_low(self.band_hz[1]));
        filters
    }
}

/// The filter that takes direct current out of a mix.
pub(super) fn without_direct_current() -> Restarted {
    Restarted::new(&[Filter::HighPass {
        hz: DIRECT_CURRENT_HZ,
        q: std::f64::consts::FRAC_1_SQRT_2,
    }])
}

/// Filters that are restarted on a grid of blocks, so that a stretch of their output has the same
/// bits wherever the run began. A second set warms up on the same samples before it takes over.
#[derive(Clone, Debug)]
pub(super) struct Restarted {
    now: Chain,
    coming: Chain,
}

impl Restarted {
    /// Blocks before a moment that have an effect on it.
    pub(super) const MEMORY_BLOCKS: i64 = SEGMENT_BLOCKS + WARM_UP_BLOCKS;

    fn new(filters: &[Filter]) -> Self {
        debug_assert!(
            memory_samples(filters) <= WARM_UP_BLOCKS * BLOCK_SAMPLES as i64,
            "filters must forget within the warm-up"
        );
        Self {
            now: Chain::new(filters),
            coming: Chain::new(filters),
        }
    }

    pub(super) fn run(&mut self, number: i64, block: &mut Block, is_mono: bool) {
        let in_segment = number.rem_euclid(SEGMENT_BLOCKS);
        if in_segment == 0 {
            std::mem::swap(&mut self.now, &mut self.coming);
        }
        if in_segment == SEGMENT_BLOCKS - WARM_UP_BLOCKS {
            self.coming.reset();
        }
        if in_segment >= SEGMENT_BLOCKS - WARM_UP_BLOCKS {
            let mut same = *block;
            self.coming.run(&mut same, is_mono);
        }
        self.now.run(block, is_mono);
    }
}

/// A noise of the microphone itself: white noise, filtered, at a level that the listener decides.
#[derive(Debug)]
struct Hiss {
    source: RunningSource,
    filters: Option<Restarted>,
    /// Brings the filtered noise to root mean square 1.
    scale: f64,
    is_mono: bool,
    scratch: Box<Block>,
}

impl Hiss {
    fn new(filters: &[Filter], seed: u64, is_mono: bool) -> Self {
        Self {
            source: RunningSource::new(&Source::Noise(Colour::White), seed, 0),
            filters: (!filters.is_empty()).then(|| Restarted::new(filters)),
            scale: 1.0 / (NOISE_RMS * power(filters).sqrt()),
            is_mono,
            scratch: Box::new([[0.0; 2]; BLOCK_SAMPLES]),
        }
    }

    /// Adds the noise of a block, at levels (factors on root mean square 1) that go from edge to edge.
    fn add(&mut self, number: i64, block: &mut Block, [from, to]: [f64; 2]) {
        let samples = &mut *self.scratch;
        self.source
            .fill(number * BLOCK_SAMPLES as i64, samples, self.is_mono);
        if let Some(filters) = &mut self.filters {
            filters.run(number, samples, self.is_mono);
        }
        if from == 0.0 && to == 0.0 {
            return;
        }
        glide(samples, self.scale * from, self.scale * to);
        let right = usize::from(!self.is_mono);
        for (out, noise) in block.iter_mut().zip(samples) {
            out[0] += noise[0];
            out[1] += noise[right];
        }
    }
}

/// What filters leave of the power of white noise: the energy of their impulse response.
fn power(filters: &[Filter]) -> f64 {
    let mut response = vec![[0.0; 2]; memory_samples(filters).max(1) as usize];
    response[0][0] = 1.0;
    Chain::new(filters).run(&mut response, true);
    response.iter().map(|[left, _]| left * left).sum()
}

/// A running microphone.
#[derive(Debug)]
pub(super) struct RunningMic {
    mic: Mic,
    seed: u64,
    band: Restarted,
    own: Hiss,
    wind: Hiss,
    handling: Hiss,
    levels: VecDeque<f64>,
    gain: f64,
    compressor: Option<RunningCompressor>,
}

impl RunningMic {
    pub(super) fn new(mic: &Mic, seed: u64) -> Self {
        let is_mono = mic.width == 0.0;
        // Turbulence has most of its power below 100 Hz; a hand on glass knocks and rubs higher up.
        let wind = [Filter::LowPass { hz: 110.0, q: 0.5 }];
        let handling = [
            Filter::HighPass { hz: 60.0, q: 0.7 },
            Filter::LowPass { hz: 420.0, q: 0.6 },
        ];
        let seed_of = |number: u64| mix(seed ^ mix(number));
        Self {
            band: Restarted::new(&mic.band()),
            own: Hiss::new(&[], seed_of(1), is_mono),
            // Each hole has its own turbulence, but both are on one case.
            wind: Hiss::new(&wind, seed_of(2), is_mono),
            handling: Hiss::new(&handling, seed_of(3), true),
            levels: VecDeque::from(vec![AutomaticGain::GATE_DB; GAIN_BLOCKS]),
            gain: 1.0,
            compressor: mic.compressor.map(RunningCompressor::new),
            mic: mic.clone(),
            seed,
        }
    }

    /// Records a block in place; `ears` are the listeners at both edges.
    pub(super) fn run(&mut self, number: i64, block: &mut Block, ears: [&Listener; 2]) {
        let is_mono = self.mic.width == 0.0;
        for [left, right] in block.iter_mut() {
            let middle = 0.5 * (*left + *right);
            let side = 0.5 * self.mic.width * (*left - *right);
            (*left, *right) = (middle + side, middle - side);
        }
        let first = number * BLOCK_SAMPLES as i64;
        let edges_s = [seconds_at(first), seconds_at(first + BLOCK_SAMPLES as i64)];
        let own = amplitude_from_db(self.mic.noise_db);
        self.own.add(number, block, [own; 2]);
        let wind = [0, 1].map(|i| self.wind_level(edges_s[i], ears[i].wind_m_s));
        self.wind.add(number, block, wind);
        let handling =
            ears.map(|ears| amplitude_from_db(self.mic.handling_db) * positive(ears.shake_m_s2));
        self.handling.add(number, block, handling);
        self.band.run(number, block, is_mono);
        if let Some(gain) = self.mic.gain {
            let energy: f64 = block
                .iter()
                .map(|[left, right]| {
                    if is_mono {
                        left * left
                    } else {
                        0.5 * (left * left + right * right)
                    }
                })
                .sum();
            let level = 10.0 * (energy / BLOCK_SAMPLES as f64).max(1e-20).log10();
            self.levels.pop_front();
            self.levels.push_back(level);
            let after = amplitude_from_db(gain.gain_db(&self.levels));
            glide(block, self.gain, after);
            self.gain = after;
        }
        if is_mono {
            for sample in block.iter_mut() {
                sample[1] = sample[0];
            }
        }
        if let Some(compressor) = &mut self.compressor {
            compressor.run(block);
        }
    }

    fn wind_level(&self, t_s: f64, wind_m_s: f32) -> f64 {
        let gust = octaves(3, mix(self.seed ^ 4), |scale, seed| {
            line(t_s * GUST_HZ * scale, seed)
        });
        amplitude_from_db(self.mic.wind_db + GUST_DB * gust) * positive(wind_m_s).powi(2)
    }
}

/// A speed or acceleration as handed in, made usable: at least 0, at most 100.
fn positive(value: f32) -> f64 {
    if value.is_finite() {
        f64::from(value).clamp(0.0, 100.0)
    } else {
        0.0
    }
}
