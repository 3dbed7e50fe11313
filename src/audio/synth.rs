//! Raw material of synthesised voices: noise of five colours, sparse clicks, tones, envelopes.
//!
//! A source is asked for samples by their number since the voice's start. White noise, clicks, tones
//! and envelopes are functions of that number alone; the other colours filter white noise and say
//! how long they remember ([`Source::memory_samples`]). All noises have the same power
//! ([`NOISE_RMS`]), so colours can be exchanged at one gain.
//!
//! Pink noise is Paul Kellet's filter ("refined": within 0.05 dB of -3 dB an octave above 9 Hz at
//! 44.1 kHz; used as it is, at 48 kHz all of that lies 9 % higher).

use super::clip::{Clip, Reader};
use super::grains::{Grains, Running as RunningGrains};
use super::{Error, RATE_HZ, within};
use crate::motion::noise::{line, mix};
use std::f64::consts::PI;
use std::sync::Arc;

/// Root mean square of every noise, -20 dBFS. Of brown noise 2.6 dB and of pink noise 1.1 dB lie
/// below 15 Hz and are taken out of the mix.
pub const NOISE_RMS: f64 = 0.1;

/// Partials of a tone.
pub const PARTIALS_MAX: usize = 32;

/// Below this level against its top an envelope counts as over: -120 dB.
const OVER_DB: f64 = 120.0;

/// Corner under which brown noise no longer rises, hertz.
const BROWN_CORNER_HZ: f64 = 20.0;

/// Colours of noise, by how power per hertz goes with frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Even.
    White,
    /// -3 dB an octave.
    Pink,
    /// -6 dB an octave, flat below 20 Hz.
    Brown,
    /// +3 dB an octave.
    Blue,
    /// +6 dB an octave.
    Violet,
}

/// What a voice is made of.
#[derive(Clone, Debug)]
pub enum Source {
    /// One sample of 1 at the start: to strike [`super::Filter::Modes`] with.
    Impulse,
    /// Noise; left and right are independent where the voice is placed all around.
    Noise(Colour),
    /// Single clicks at random times, one in each 1 / `rate_hz` seconds, of random size (up to 1) and
    /// sign: gravel, rain, crackle.
    Clicks {
        /// Clicks a second, 0.01 to 8000.
        rate_hz: f64,
    },
    /// Sines at multiples of a frequency, all starting at phase 0.
    Tone {
        /// Of the first partial, hertz.
        hz: f64,
        /// Amplitudes of the multiples 1, 2, 3, ...; those over half the sample rate are left out.
        partials: Vec<f64>,
    },
    /// A file.
    Clip {
        /// The file.
        clip: Arc<Clip>,
        /// Where in it the voice starts, seconds.
        from_s: f64,
        /// Speed and with it pitch, 0.25 to 4. Other than 1 needs a clip that is held decoded.
        speed: f64,
        /// Goes on from the beginning after the end, blended over [`super::clip::LOOP_FADE_S`].
        is_looped: bool,
    },
    /// An endless texture from short pieces of a file.
    Grains(Grains),
}

impl Source {
    /// Checks every value.
    ///
    /// # Errors
    /// A value outside of its range, or a clip that cannot be used in this way.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Impulse | Self::Noise(_) => Ok(()),
            Self::Clicks { rate_hz } => within("clicks a second", *rate_hz, 0.01, 8000.0),
            Self::Tone { hz, partials } => {
                within("a tone's frequency in Hz", *hz, 1.0, 20_000.0)?;
                within(
                    "the number of partials",
                    partials.len() as f64,
                    1.0,
                    PARTIALS_MAX as f64,
                )?;
                partials
                    .iter()
                    .try_for_each(|&a| within("a partial's amplitude", a, -10.0, 10.0))
            }
            Self::Clip {
                clip,
                from_s,
                speed,
                ..
            } => {
                within(
                    "where in its clip a voice starts, in seconds",
                    *from_s,
                    0.0,
                    1e6,
                )?;
                within("a clip's speed", *speed, 0.25, 4.0)?;
                if *speed != 1.0 && !clip.is_held() {
                    return Err(clip.too_long_for("a speed other than 1"));
                }
                Ok(())
            }
            Self::Grains(grains) => grains.check(),
        }
    }

    /// Samples until the source has nothing more to give, `None` for an endless one.
    #[must_use]
    pub fn length_samples(&self) -> Option<i64> {
        match self {
            Self::Impulse => Some(1),
            Self::Clip {
                clip,
                from_s,
                speed,
                is_looped: false,
            } => {
                let left = clip.length_samples() as f64 - from_s * f64::from(RATE_HZ);
                Some((left / speed).ceil().max(0.0) as i64)
            }
            _ => None,
        }
    }

    /// Samples after which a restart is forgotten.
    #[must_use]
    pub fn memory_samples(&self) -> i64 {
        match self {
            // The slowest pole of the pink filter, 0.99895, is forgotten (-243 dB) after 26,700.
            Self::Noise(Colour::Pink | Colour::Blue) => 27_000,
            // 28 time constants of the 20 Hz corner.
            Self::Noise(Colour::Brown) => {
                (28.0 * f64::from(RATE_HZ) / (2.0 * PI * BROWN_CORNER_HZ)).ceil() as i64
            }
            Self::Noise(Colour::Violet) => 1,
            _ => 0,
        }
    }

    /// Whether left and right differ where the voice is placed all around.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        match self {
            Self::Noise(_) | Self::Clicks { .. } => true,
            Self::Impulse | Self::Tone { .. } => false,
            Self::Clip { clip, .. } => clip.channels() > 1,
            Self::Grains(grains) => grains.clip.channels() > 1,
        }
    }
}

/// Loudness over a voice's time, applied before its filters: a strike, a gust.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Time of the rise (half a cosine), seconds.
    pub attack_s: f64,
    /// Time at the top, seconds.
    pub hold_s: f64,
    /// Time of the exponential fall down to -60 dB, seconds; infinity holds for ever.
    pub decay_s: f64,
}

impl Default for Shape {
    /// Full from the first sample to the last.
    fn default() -> Self {
        Self {
            attack_s: 0.0,
            hold_s: 0.0,
            decay_s: f64::INFINITY,
        }
    }
}

impl Shape {
    /// Checks every value.
    ///
    /// # Errors
    /// A time that is negative, not a number or over an hour.
    pub fn check(&self) -> Result<(), Error> {
        within("an attack in seconds", self.attack_s, 0.0, 3600.0)?;
        within("a hold in seconds", self.hold_s, 0.0, 3600.0)?;
        if self.decay_s == f64::INFINITY {
            return Ok(());
        }
        within("a decay in seconds", self.decay_s, 0.000_1, 3600.0)
    }

    /// Samples until it is over, `None` where it holds.
    #[must_use]
    pub fn length_samples(&self) -> Option<i64> {
        let seconds = self.attack_s + self.hold_s + self.decay_s * OVER_DB / 60.0;
        (seconds.is_finite()).then(|| (seconds * f64::from(RATE_HZ)).ceil() as i64)
    }
}

/// Slow random change of a voice's gain: traffic that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wander {
    /// Largest change up and down, dB.
    pub depth_db: f64,
    /// New aims a second.
    pub rate_hz: f64,
}

impl Wander {
    /// Checks every value.
    ///
    /// # Errors
    /// A value outside of its range.
    pub fn check(&self) -> Result<(), Error> {
        within("a wander's depth in dB", self.depth_db, 0.0, 40.0)?;
        within("a wander's rate in Hz", self.rate_hz, 0.001, 20.0)
    }

    /// Gain at a time, dB.
    #[must_use]
    pub fn gain_db(&self, t_s: f64, seed: u64) -> f64 {
        self.depth_db * line(t_s * self.rate_hz, seed)
    }
}

/// A running envelope: exact at any sample, one exponential for each [`RunningShape::STRETCH`].
#[derive(Clone, Debug)]
pub(super) struct RunningShape {
    attack: f64,
    hold_end: f64,
    /// Natural logarithm of the fall of one sample.
    fall: f64,
    /// The fall of 0, 1, 2, ... samples.
    powers: Vec<f64>,
}

impl RunningShape {
    const STRETCH: i64 = 64;

    pub(super) fn new(shape: &Shape) -> Self {
        let rate = f64::from(RATE_HZ);
        let attack = shape.attack_s * rate;
        let fall = -(1000_f64.ln()) / (shape.decay_s * rate);
        Self {
            attack,
            hold_end: attack + shape.hold_s * rate,
            fall,
            powers: (0..Self::STRETCH)
                .map(|i| (fall * i as f64).exp())
                .collect(),
        }
    }

    /// Multiplies samples, the first of which is number `first` of the voice.
    pub(super) fn run(&self, first: i64, samples: &mut [[f64; 2]]) {
        if self.attack == 0.0 && self.fall == 0.0 {
            return;
        }
        let mut stretch = i64::MIN;
        let mut base = 1.0;
        for (i, sample) in samples.iter_mut().enumerate() {
            let n = first + i as i64;
            let level = if (n as f64) < self.attack {
                0.5 - 0.5 * (PI * n as f64 / self.attack).cos()
            } else if self.fall == 0.0 || (n as f64) < self.hold_end {
                1.0
            } else {
                let at = n.div_euclid(Self::STRETCH);
                if at != stretch {
                    stretch = at;
                    base = (self.fall * ((at * Self::STRETCH) as f64 - self.hold_end)).exp();
                }
                // A stretch that the fall starts in has a base over 1; the product is still right.
                base * self.powers[n.rem_euclid(Self::STRETCH) as usize]
            };
            sample[0] *= level;
            sample[1] *= level;
        }
    }
}

/// A running source.
#[derive(Debug)]
pub(super) enum RunningSource {
    Impulse,
    Noise(Colour, [NoiseLane; 2]),
    Clicks(f64, [u64; 2]),
    Tone(RunningTone),
    Clip {
        reader: Reader,
        from: f64,
        speed: f64,
        is_looped: bool,
    },
    Grains(RunningGrains),
}

impl RunningSource {
    /// At rest; `back` is how far a restart goes back, samples.
    pub(super) fn new(source: &Source, seed: u64, back: i64) -> Self {
        // Left and right are told apart by a second mixing.
        let seeds = [mix(seed), mix(mix(seed) ^ 1)];
        match source {
            Source::Impulse => Self::Impulse,
            Source::Noise(colour) => Self::Noise(*colour, seeds.map(NoiseLane::new)),
            Source::Clicks { rate_hz } => Self::Clicks(f64::from(RATE_HZ) / rate_hz, seeds),
            Source::Tone { hz, partials } => Self::Tone(RunningTone::new(*hz, partials)),
            Source::Clip {
                clip,
                from_s,
                speed,
                is_looped,
            } => Self::Clip {
                reader: clip.reader(back),
                from: from_s * f64::from(RATE_HZ),
                speed: *speed,
                is_looped: *is_looped,
            },
            Source::Grains(grains) => Self::Grains(RunningGrains::new(grains, seeds[0])),
        }
    }

    /// Back to rest.
    pub(super) fn reset(&mut self) {
        if let Self::Noise(_, lanes) = self {
            lanes.iter_mut().for_each(NoiseLane::reset);
        }
    }

    /// Samples from number `first` on; with `is_mono` the left lane holds the mean of both.
    pub(super) fn fill(&mut self, first: i64, out: &mut [[f64; 2]], is_mono: bool) {
        match self {
            Self::Impulse => {
                for (i, sample) in out.iter_mut().enumerate() {
                    *sample = [f64::from(u8::from(first + i as i64 == 0)); 2];
                }
            }
            Self::Noise(colour, lanes) => {
                lanes[0].fill(*colour, first, out, 0);
                if !is_mono {
                    lanes[1].fill(*colour, first, out, 1);
                }
            }
            Self::Clicks(every, seeds) => {
                fill_clicks(*every, seeds[0], first, out, 0);
                if !is_mono {
                    fill_clicks(*every, seeds[1], first, out, 1);
                }
            }
            Self::Tone(tone) => tone.fill(first, out),
            Self::Clip {
                reader,
                from,
                speed,
                is_looped,
            } => {
                reader.fill(*from, *speed, *is_looped, first, out);
                if is_mono {
                    fold(out);
                }
            }
            Self::Grains(grains) => {
                grains.fill(first, out);
                if is_mono {
                    fold(out);
                }
            }
        }
    }
}

/// The mean of both lanes into the left one.
fn fold(samples: &mut [[f64; 2]]) {
    for sample in samples {
        sample[0] = 0.5 * (sample[0] + sample[1]);
    }
}

/// White noise of root mean square 1 at a sample: the sum of four even 16-bit numbers is close to a
/// bell curve, and one hash holds four.
fn white(seed: u64, n: i64) -> f64 {
    let hash = mix(seed ^ n.cast_unsigned());
    let sum = (hash & 0xFFFF) + (hash >> 16 & 0xFFFF) + (hash >> 32 & 0xFFFF) + (hash >> 48);
    // Mean 2 * 65535; each has the variance 65536^2 / 12. The sum has 18 bits, and 32 of them become a float
    // in one instruction.
    (f64::from(sum as u32) - 131_070.0) * (3_f64.sqrt() / 65_536.0)
}

/// One channel of noise.
#[derive(Clone, Debug)]
pub(super) struct NoiseLane {
    seed: u64,
    pink: [f64; 6],
    /// The white sample before, which comes in late.
    late: f64,
    before: f64,
    brown: f64,
}

/// Kellet's poles at 44.1 kHz, gains, and the undelayed and delayed direct parts.
const PINK_POLES: [f64; 6] = [0.99886, 0.99332, 0.969, 0.8665, 0.55, -0.7616];
const PINK_GAINS: [f64; 6] = [
    0.055_517_9,
    0.075_075_9,
    0.153_852,
    0.310_485_6,
    0.532_952_2,
    -0.016_898,
];
const PINK_DIRECT: f64 = 0.5362;
const PINK_LATE: f64 = 0.115_926;

/// Gains that bring pink noise and its difference to root mean square 1: one over the root of the
/// energy of the impulse response.
const PINK_LEVEL: f64 = 0.327_597;
const BLUE_LEVEL: f64 = 0.551_225;

impl NoiseLane {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            pink: [0.0; 6],
            late: 0.0,
            before: 0.0,
            brown: 0.0,
        }
    }

    fn reset(&mut self) {
        *self = Self::new(self.seed);
    }

    fn fill(&mut self, colour: Colour, first: i64, out: &mut [[f64; 2]], lane: usize) {
        let numbered = (first..).zip(out);
        match colour {
            Colour::White => {
                for (n, sample) in numbered {
                    sample[lane] = NOISE_RMS * white(self.seed, n);
                }
            }
            Colour::Pink => {
                for (n, sample) in numbered {
                    sample[lane] = NOISE_RMS * PINK_LEVEL * self.pink(n);
                }
            }
            Colour::Blue => {
                for (n, sample) in numbered {
                    let pink = self.pink(n);
                    sample[lane] = NOISE_RMS * BLUE_LEVEL * (pink - self.before);
                    self.before = pink;
                }
            }
            Colour::Brown => {
                let keep = (-2.0 * PI * BROWN_CORNER_HZ / f64::from(RATE_HZ)).exp();
                // Power of y = keep y + x is 1 / (1 - keep^2).
                let level = NOISE_RMS * (1.0 - keep * keep).sqrt();
                for (n, sample) in numbered {
                    self.brown = keep * self.brown + white(self.seed, n);
                    sample[lane] = level * self.brown;
                }
            }
            Colour::Violet => {
                for (n, sample) in numbered {
                    // The difference of two independent numbers has twice the power.
                    let difference = white(self.seed, n) - white(self.seed, n - 1);
                    sample[lane] = NOISE_RMS * 0.5_f64.sqrt() * difference;
                }
            }
        }
    }

    fn pink(&mut self, n: i64) -> f64 {
        let white = white(self.seed, n);
        for ((value, pole), gain) in self.pink.iter_mut().zip(PINK_POLES).zip(PINK_GAINS) {
            *value = pole * *value + gain * white;
        }
        // In pairs, so that no addition waits for all of the others.
        let [a, b, c, d, e, f] = self.pink;
        let sum = (a + b) + (c + d) + ((e + f) + (PINK_DIRECT * white + self.late));
        self.late = PINK_LATE * white;
        sum
    }
}

fn fill_clicks(every: f64, seed: u64, first: i64, out: &mut [[f64; 2]], lane: usize) {
    for sample in &mut *out {
        sample[lane] = 0.0;
    }
    let last = first + out.len() as i64 - 1;
    let cell_of = |n: i64| (n as f64 / every).floor() as i64;
    // One cell more on each side: rounding may bring a click of theirs in here.
    for cell in cell_of(first) - 1..=cell_of(last) + 1 {
        let hash = mix(seed ^ cell.cast_unsigned());
        let share = |bits: u64| (bits & 0xFFFF_FFFF) as f64 / f64::from(u32::MAX);
        let n = ((cell as f64 + share(hash)) * every) as i64;
        if (first..=last).contains(&n) {
            // Squared: many small ones, few large ones. The lowest bit of the other half is the sign.
            let size = share(hash >> 32).powi(2);
            out[(n - first) as usize][lane] += if hash >> 32 & 1 == 0 { size } else { -size };
        }
    }
}

/// Sines in unison, exact at any sample: one sine for each [`RunningTone::STRETCH`], turned from there.
#[derive(Clone, Debug)]
pub(super) struct RunningTone {
    hz: f64,
    partials: Vec<f64>,
    /// Sine and cosine of the turn over 0, 1, 2, ... samples.
    turns: Vec<[f64; 2]>,
}

impl RunningTone {
    const STRETCH: i64 = 64;

    fn new(hz: f64, partials: &[f64]) -> Self {
        let below_half = (f64::from(RATE_HZ) / 2.0 / hz) as usize;
        let turn = |n: i64| {
            let (sin, cos) = angle(hz, n).sin_cos();
            [sin, cos]
        };
        Self {
            hz,
            partials: partials[..partials.len().min(below_half)].to_vec(),
            turns: (0..Self::STRETCH).map(turn).collect(),
        }
    }

    fn fill(&self, first: i64, out: &mut [[f64; 2]]) {
        let (mut stretch, mut base) = (i64::MIN, (0.0, 1.0));
        for (n, sample) in (first..).zip(out) {
            let at = n.div_euclid(Self::STRETCH);
            if at != stretch {
                stretch = at;
                base = angle(self.hz, at * Self::STRETCH).sin_cos();
            }
            let [turn_sin, turn_cos] = self.turns[n.rem_euclid(Self::STRETCH) as usize];
            let sin = base.0 * turn_cos + base.1 * turn_sin;
            let cos = base.1 * turn_cos - base.0 * turn_sin;
            // sin(k x) = 2 cos(x) sin((k - 1) x) - sin((k - 2) x): one sine for all partials.
            let (mut before, mut now, mut level) = (0.0, sin, 0.0);
            for amplitude in &self.partials {
                level += amplitude * now;
                (before, now) = (now, 2.0 * cos * now - before);
            }
            *sample = [level; 2];
        }
    }
}

/// The phase of a sine at sample `n`, radians. Whole turns are taken out, so that an hour in is as exact as
/// the start.
fn angle(hz: f64, n: i64) -> f64 {
    2.0 * PI * (n as f64 * hz / f64::from(RATE_HZ)).fract()
}
