//! Filters: second-order sections and banks of ringing modes.
//!
//! Sections are those of Robert Bristow-Johnson's Audio EQ Cookbook, run in transposed direct form 2
//! with f64 state; modes are two-pole resonators whose impulse response peaks at about 1. Each filter
//! knows how long it remembers, so that whoever restarts one knows how much warm-up makes the restart
//! inaudible. Two lanes (left, right) are filtered alike.

use super::{Error, RATE_HZ, amplitude_from_db, within};
use std::f64::consts::PI;

/// The lowest frequency that a filter may have, hertz: below it a filter remembers for seconds.
pub const FREQUENCY_MIN_HZ: f64 = 10.0;

/// The highest one: bilinear filters bend towards half the sample rate.
pub const FREQUENCY_MAX_HZ: f64 = 22_000.0;

/// Modes of one bank.
pub const MODES_MAX: usize = 64;

/// The longest ringing of a mode down to -60 dB, seconds.
pub const T60_MAX_S: f64 = 6.0;

/// Filters of one voice.
pub const FILTERS_MAX: usize = 16;

/// Time constants after which a state counts as forgotten: e^-28 is -243 dB, under the last bit of
/// f32 samples by 90 dB.
const FORGOTTEN: f64 = 28.0;

/// Goes in with every sample, -400 dB: states that ring out into silence would else end in numbers
/// too small for the processor to be fast with.
const NEARLY_NOTHING: f64 = 1e-20;

/// One filter as plain data.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Lets lows through; -3 dB at `hz` with `q` 0.7071.
    LowPass {
        /// Corner, hertz.
        hz: f64,
        /// Resonance, 0.1 to 30.
        q: f64,
    },
    /// Lets highs through.
    HighPass {
        /// Corner, hertz.
        hz: f64,
        /// Resonance, 0.1 to 30.
        q: f64,
    },
    /// Lets a band through, 0 dB at its middle.
    BandPass {
        /// Middle, hertz.
        hz: f64,
        /// Middle over width.
        q: f64,
    },
    /// Lifts or lowers a band.
    Peak {
        /// Middle, hertz.
        hz: f64,
        /// Middle over width.
        q: f64,
        /// At the middle, dB.
        gain_db: f64,
    },
    /// Lifts or lowers everything below a corner.
    LowShelf {
        /// Corner (half the gain in dB), hertz.
        hz: f64,
        /// Far below, dB.
        gain_db: f64,
    },
    /// Lifts or lowers everything above a corner.
    HighShelf {
        /// Corner (half the gain in dB), hertz.
        hz: f64,
        /// Far above, dB.
        gain_db: f64,
    },
    /// A bank of ringing modes side by side: what a struck thing sounds like. Only the ringing comes
    /// out, not what goes in.
    Modes(Vec<Mode>),
}

/// One way in which a struck thing rings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// Frequency, hertz.
    pub hz: f64,
    /// Time down to -60 dB, seconds.
    pub t60_s: f64,
    /// Level against the other modes, dB.
    pub gain_db: f64,
}

impl Filter {
    /// Checks every value.
    ///
    /// # Errors
    /// A value that is not finite or outside of its range.
    pub fn check(&self) -> Result<(), Error> {
        let frequency = |hz| {
            within(
                "a filter's frequency in Hz",
                hz,
                FREQUENCY_MIN_HZ,
                FREQUENCY_MAX_HZ,
            )
        };
        let resonance = |q| within("a filter's q", q, 0.1, 30.0);
        let gain = |db| within("a filter's gain in dB", db, -60.0, 40.0);
        match self {
            Self::LowPass { hz, q } | Self::HighPass { hz, q } | Self::BandPass { hz, q } => {
                frequency(*hz)?;
                resonance(*q)
            }
            Self::Peak { hz, q, gain_db } => {
                frequency(*hz)?;
                resonance(*q)?;
                gain(*gain_db)
            }
            Self::LowShelf { hz, gain_db } | Self::HighShelf { hz, gain_db } => {
                frequency(*hz)?;
                gain(*gain_db)
            }
            Self::Modes(modes) => {
                within(
                    "the number of modes",
                    modes.len() as f64,
                    1.0,
                    MODES_MAX as f64,
                )?;
                for mode in modes {
                    frequency(mode.hz)?;
                    within("a mode's t60 in seconds", mode.t60_s, 0.001, T60_MAX_S)?;
                    gain(mode.gain_db)?;
                }
                Ok(())
            }
        }
    }

    /// Samples after which the filter has forgotten what went in.
    #[must_use]
    pub fn memory_samples(&self) -> i64 {
        let seconds = match self {
            // Poles of a section fall by e in q / (pi hz) or, below q 1/2, as the slower of two
            // real poles: about 1 / (2 pi hz q).
            Self::LowPass { hz, q } | Self::HighPass { hz, q } | Self::BandPass { hz, q } => {
                FORGOTTEN * q.max(0.5 / q) / (PI * hz)
            }
            Self::Peak { hz, q, gain_db } => {
                // The poles' own q is q times the amplitude for a lift, see the cookbook's `alpha / A`.
                let pole_q = q * amplitude_from_db(gain_db.max(0.0) / 2.0);
                FORGOTTEN * pole_q.max(0.5 / pole_q) / (PI * hz)
            }
            // A shelf's poles lie below its corner by at most the square root of its amplitude.
            Self::LowShelf { hz, gain_db } | Self::HighShelf { hz, gain_db } => {
                FORGOTTEN * amplitude_from_db(gain_db.abs() / 2.0) / (PI * hz)
            }
            // -60 dB is ln 1000 time constants.
            Self::Modes(modes) => modes.iter().fold(0.0, |longest: f64, mode| {
                longest.max(FORGOTTEN * mode.t60_s / 1000_f64.ln())
            }),
        };
        (seconds * f64::from(RATE_HZ)).ceil() as i64
    }
}

/// The two filters that make a fourth-order Butterworth low-pass.
#[must_use]
pub fn butterworth_4_low(hz: f64) -> [Filter; 2] {
    // 1 / (2 cos(pi/8)) and 1 / (2 cos(3 pi/8)).
    [0.541_196_1, 1.306_563].map(|q| Filter::LowPass { hz, q })
}

/// Sections of a chain that are worked out in one pass: one waits for its own last sample, and meanwhile
/// the processor has the others to do.
const SECTIONS_AT_ONCE: usize = 4;

/// Running filters.
#[derive(Clone, Debug)]
enum Running {
    /// One after the other.
    Sections(Vec<Section>),
    /// Side by side.
    Modes(Vec<Resonator>),
}

impl Running {
    /// Back to rest.
    fn reset(&mut self) {
        match self {
            Self::Sections(sections) => {
                for section in sections {
                    section.state = [[0.0; 2]; 2];
                }
            }
            Self::Modes(modes) => {
                for mode in modes {
                    mode.state = [[0.0; 2]; 2];
                }
            }
        }
    }

    /// Filters in place; with `is_mono` only the left lane.
    fn run(&mut self, samples: &mut [[f64; 2]], is_mono: bool) {
        match self {
            Self::Sections(sections) => {
                for some in sections.chunks_mut(SECTIONS_AT_ONCE) {
                    match (some.len(), is_mono) {
                        (1, true) => run_sections::<1, 1>(some, samples),
                        (1, false) => run_sections::<1, 2>(some, samples),
                        (2, true) => run_sections::<2, 1>(some, samples),
                        (2, false) => run_sections::<2, 2>(some, samples),
                        (3, true) => run_sections::<3, 1>(some, samples),
                        (3, false) => run_sections::<3, 2>(some, samples),
                        (_, true) => run_sections::<SECTIONS_AT_ONCE, 1>(some, samples),
                        (_, false) => run_sections::<SECTIONS_AT_ONCE, 2>(some, samples),
                    }
                }
            }
            Self::Modes(modes) => {
                for lane in 0..if is_mono { 1 } else { 2 } {
                    run_modes(modes, samples, lane);
                }
            }
        }
    }
}

/// One second-order section.
#[derive(Clone, Debug)]
struct Section {
    b: [f64; 3],
    a: [f64; 2],
    /// The two delays, each by lane.
    state: [[f64; 2]; 2],
}

impl Section {
    fn new(filter: &Filter) -> Self {
        let angle = |hz: f64| 2.0 * PI * hz / f64::from(RATE_HZ);
        let (b, a) = match *filter {
            Filter::LowPass { hz, q } => {
                let (cos, alpha) = (angle(hz).cos(), angle(hz).sin() / (2.0 * q));
                let b1 = 1.0 - cos;
                (
                    [b1 / 2.0, b1, b1 / 2.0],
                    [1.0 + alpha, -2.0 * cos, 1.0 - alpha],
                )
            }
            Filter::HighPass { hz, q } => {
                let (cos, alpha) = (angle(hz).cos(), angle(hz).sin() / (2.0 * q));
                let b1 = 1.0 + cos;
                (
                    [b1 / 2.0, -b1, b1 / 2.0],
                    [1.0 + alpha, -2.0 * cos, 1.0 - alpha],
                )
            }
            Filter::BandPass { hz, q } => {
                let (cos, alpha) = (angle(hz).cos(), angle(hz).sin() / (2.0 * q));
                ([alpha, 0.0, -alpha], [1.0 + alpha, -2.0 * cos, 1.0 - alpha])
            }
            Filter::Peak { hz, q, gain_db } => {
                let (cos, alpha) = (angle(hz).cos(), angle(hz).sin() / (2.0 * q));
                let gain = amplitude_from_db(gain_db / 2.0);
                (
                    [1.0 + alpha * gain, -2.0 * cos, 1.0 - alpha * gain],
                    [1.0 + alpha / gain, -2.0 * cos, 1.0 - alpha / gain],
                )
            }
            Filter::LowShelf { hz, gain_db } => shelf(angle(hz), gain_db, 1.0),
            Filter::HighShelf { hz, gain_db } => shelf(angle(hz), gain_db, -1.0),
            // A bank is no section; `Chain::new` sends it elsewhere. Passing through is harmless.
            Filter::Modes(_) => ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        };
        Self {
            b: b.map(|value| value / a[0]),
            a: [a[1] / a[0], a[2] / a[0]],
            state: [[0.0; 2]; 2],
        }
    }
}

/// Runs `N` sections over the first `LANES` lanes.
fn run_sections<const N: usize, const LANES: usize>(
    sections: &mut [Section],
    samples: &mut [[f64; 2]],
) {
    let b: [[f64; 3]; N] = std::array::from_fn(|i| sections[i].b);
    let a: [[f64; 2]; N] = std::array::from_fn(|i| sections[i].a);
    let mut state: [[[f64; 2]; 2]; N] = std::array::from_fn(|i| sections[i].state);
    for sample in samples {
        let mut value: [f64; LANES] = std::array::from_fn(|lane| sample[lane]);
        for i in 0..N {
            // Lane beside lane in the innermost loop: the processor does both at once.
            let [s1, s2] = &mut state[i];
            for lane in 0..LANES {
                let x = value[lane] + NEARLY_NOTHING;
                value[lane] = b[i][0] * x + s1[lane];
                s1[lane] = b[i][1] * x - a[i][0] * value[lane] + s2[lane];
                s2[lane] = b[i][2] * x - a[i][1] * value[lane];
            }
        }
        sample[..LANES].copy_from_slice(&value);
    }
    for (section, state) in sections.iter_mut().zip(state) {
        section.state = state;
    }
}

/// The cookbook's shelves with slope 1; `side` is 1 for the low one, -1 for the high one.
fn shelf(angle: f64, gain_db: f64, side: f64) -> ([f64; 3], [f64; 3]) {
    let gain = amplitude_from_db(gain_db / 2.0);
    let cos = angle.cos();
    let root = 2.0 * gain.sqrt() * (angle.sin() / 2.0 * 2_f64.sqrt());
    let (up, down) = (gain + 1.0, gain - 1.0);
    (
        [
            gain * (up - side * down * cos + root),
            side * 2.0 * gain * (down - side * up * cos),
            gain * (up - side * down * cos - root),
        ],
        [
            up + side * down * cos + root,
            -side * 2.0 * (down + side * up * cos),
            up + side * down * cos - root,
        ],
    )
}

/// One ringing mode.
#[derive(Clone, Debug)]
struct Resonator {
    input: f64,
    feedback: [f64; 2],
    /// By lane.
    state: [[f64; 2]; 2],
}

impl Resonator {
    fn new(mode: &Mode) -> Self {
        let angle = 2.0 * PI * mode.hz / f64::from(RATE_HZ);
        let radius = 10_f64.powf(-3.0 / (mode.t60_s * f64::from(RATE_HZ)));
        Self {
            // The impulse response is r^n sin((n + 1) angle) / sin(angle).
            input: amplitude_from_db(mode.gain_db) * angle.sin(),
            feedback: [2.0 * radius * angle.cos(), -radius * radius],
            state: [[0.0; 2]; 2],
        }
    }
}

fn run_modes(modes: &mut [Resonator], samples: &mut [[f64; 2]], lane: usize) {
    // Mode by mode over short stretches: the sums stay in the nearest cache.
    const STRETCH: usize = 64;
    for stretch in samples.chunks_mut(STRETCH) {
        let mut input = [0.0; STRETCH];
        for (x, sample) in input.iter_mut().zip(&mut *stretch) {
            *x = std::mem::take(&mut sample[lane]) + NEARLY_NOTHING;
        }
        for mode in modes.iter_mut() {
            let [mut y1, mut y2] = mode.state[lane];
            for (sample, x) in stretch.iter_mut().zip(input) {
                let y = mode.input * x + mode.feedback[0] * y1 + mode.feedback[1] * y2;
                (y1, y2) = (y, y1);
                sample[lane] += y;
            }
            mode.state[lane] = [y1, y2];
        }
    }
}

/// Filters one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain(Vec<Running>);

impl Chain {
    /// All at rest.
    /// The values must have passed [`Filter::check`].
    pub(super) fn new(filters: &[Filter]) -> Self {
        let mut chain = Vec::new();
        for filter in filters {
            match (filter, chain.last_mut()) {
                (Filter::Modes(modes), _) => {
                    chain.push(Running::Modes(modes.iter().map(Resonator::new).collect()));
                }
                (section, Some(Running::Sections(sections))) => {
                    sections.push(Section::new(section));
                }
                (section, _) => chain.push(Running::Sections(vec![Section::new(section)])),
            }
        }
        Self(chain)
    }

    /// Back to rest.
    pub(super) fn reset(&mut self) {
        self.0.iter_mut().for_each(Running::reset);
    }

    /// Filters in place; with `is_mono` only the left lane.
    pub(super) fn run(&mut self, samples: &mut [[f64; 2]], is_mono: bool) {
        for filter in &mut self.0 {
            filter.run(samples, is_mono);
        }
    }
}

/// Samples after which filters in a row have forgotten what went in.
pub(super) fn memory_samples(filters: &[Filter]) -> i64 {
    filters.iter().map(Filter::memory_samples).sum()
}
