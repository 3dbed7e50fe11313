//! Sound: a score of voices in, 48 kHz stereo samples out.
//!
//! What sounds is plain data: a [`Score`] lists voices ([`VoiceSpec`]: source, filters, place, start in
//! samples of scene time) on named buses. A [`Mixer`] is asked for any range of samples of it, in any
//! order, and gives the same bits for the same range: noise is a hash of the sample's number, grains
//! lie on a grid, and whatever has a memory (filters, the phone's automatic gain) is restarted at
//! fixed places on that grid, from a warm-up of stated length. So playing, seeking and writing a file
//! agree, and beds too. [`live`] feeds a sound device from the same mixer on a thread of its own.
//!
//! ```text
//!  Score (voices, buses) --+                       through_mic
//!  Listener at t ----------+--> voices -> buses --+----------> mic (wind, handling, band, gain) --+
//!  Clips (decoded files) --+                      +-----------------------------------------------+-> limiter -> WAV | device
//! ```
//!
//! Not here: which sounds a scene makes (scripts decide), clocks, paths (files come in as bytes),
//! pictures. Nothing here knows Lua or a window.
//!
//! Units: times are seconds or samples of scene time (`_s`, `_sample`), levels dB (`_db`; of a signal:
//! against full scale), frequencies hertz. Inside voices and filters numbers are f64, at the doors f32.

pub mod clip;
pub mod device;
mod dynamics;
pub mod filter;
pub mod follower;
pub mod grains;
pub mod live;
pub mod loudness;
pub mod mic;
pub mod mixer;
pub mod score;
pub mod space;
pub mod synth;
mod voice;
pub mod wav;

pub use clip::Clip;
pub use device::{Device, SystemDevice};
pub use dynamics::Compressor;
pub use filter::{Filter, Mode};
pub use follower::{Follower, Hearing};
pub use grains::Grains;
pub use live::Live;
pub use mic::{AutomaticGain, Mic};
pub use mixer::Mixer;
pub use score::{Bus, BusId, Levels, Score, VoiceId, VoiceSpec};
pub use space::{Listener, ListenerTrack, Place};
pub use synth::{Colour, Shape, Source, Wander};

/// Samples a second, everywhere inside.
pub const RATE_HZ: u32 = 48_000;

/// Samples of the grid on which places, gains and the phone's controls are worked out: 10 ms.
pub const BLOCK_SAMPLES: usize = 480;

/// Left and right, each -1 to 1 at full scale.
pub type Stereo = [f32; 2];

/// The last sample that anything may be scheduled at: 265 days.
pub const SAMPLE_MAX: i64 = 1 << 40;

/// The sample at a scene time, to the nearest; within [`SAMPLE_MAX`] of 0.
#[must_use]
pub fn sample_at(t_s: f64) -> i64 {
    ((t_s * f64::from(RATE_HZ)).round() as i64).clamp(-SAMPLE_MAX, SAMPLE_MAX)
}

/// Scene time of a sample, seconds.
#[must_use]
pub fn seconds_at(sample: i64) -> f64 {
    sample as f64 / f64::from(RATE_HZ)
}

/// The factor on samples that a gain makes; minus infinity is 0.
#[must_use]
pub fn amplitude_from_db(db: f64) -> f64 {
    10_f64.powf(db / 20.0)
}

/// The gain that a factor makes, dB; 0 is minus infinity.
#[must_use]
pub fn db_from_amplitude(amplitude: f64) -> f64 {
    20.0 * amplitude.log10()
}

/// What is wrong with a sound, as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value of a voice, filter or bus is outside of what it may be.
    #[error("{what} must be {expected}, got {found}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: f64,
    },
    /// A bus or voice that is not there.
    #[error("there is no {0}")]
    Unknown(String),
    /// The score is full.
    #[error("a score holds at most {most} voices")]
    Full {
        /// The limit.
        most: usize,
    },
    /// No reader knows this content.
    #[error("{file}: not a sound that is read here (Ogg Vorbis, WAV, FLAC, MP3): {found}")]
    UnknownFormat {
        /// The file as the user named it.
        file: String,
        /// What was found.
        found: String,
    },
    /// A header contradicts the bytes, or the format.
    #[error("{file}: {what} says {found}, expected {expected}")]
    Malformed {
        /// The file as the user named it.
        file: String,
        /// The place in the file.
        what: String,
        /// What it says.
        found: String,
        /// What it could say.
        expected: String,
    },
    /// Over a named limit.
    #[error("{file}: {what} is {found}, at most {most} is read")]
    TooLarge {
        /// The file as the user named it.
        file: String,
        /// Which size.
        what: &'static str,
        /// The size.
        found: String,
        /// The limit.
        most: String,
    },
    /// A clip that cannot be used in this way.
    #[error("{file}: {why}")]
    Unfit {
        /// The file as the user named it.
        file: String,
        /// Why, and what to do.
        why: String,
    },
    /// The system gave no thread or no memory.
    #[error("sound: {0}")]
    System(String),
    /// Writing failed.
    #[error("writing sound: {0}")]
    Write(String),
}

/// Checks a value against an inclusive range; what is not finite is refused.
fn within(what: &'static str, value: f64, low: f64, high: f64) -> Result<(), Error> {
    if value.is_finite() && (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what,
        expected: format!("{low} to {high}"),
        found: value,
    })
}
