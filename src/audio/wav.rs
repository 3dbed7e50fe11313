//! Writing sound to a WAV file, block by block: any length at the memory of one block.
//!
//! Samples are 16-bit or 24-bit whole numbers or f32. 24 bits are 144 dB, under any noise that is in
//! the mix, so rounding needs no dither. 16 bits get one (triangular, two steps wide) that is a hash of
//! the sample's number: the same samples give the same bytes. Silence stays silence.

use super::mixer::Mixer;
use super::space::Ears;
use super::{BLOCK_SAMPLES, Error, RATE_HZ, Stereo};
use crate::motion::noise::mix;
use std::io::{Seek, Write};

/// How a sample is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// 16-bit whole numbers, what every program reads.
    Int16,
    /// 24-bit whole numbers.
    #[default]
    Int24,
    /// 32-bit floats.
    Float32,
}

/// The longest file, samples: a WAV file's sizes are 32-bit.
pub const LENGTH_MAX_SAMPLES: i64 = (u32::MAX as i64 - 4096) / 8;

/// Writes samples `from..to` of a mixer's score. `each` is told how many samples are written, and
/// sees them: for progress and for loudness.
///
/// # Errors
/// A range that no WAV file can hold, or a failing writer.
pub fn write(
    mixer: &mut Mixer,
    [from, to]: [i64; 2],
    ears: &dyn Ears,
    depth: Depth,
    out: impl Write + Seek,
    mut each: impl FnMut(i64, &[Stereo]) -> Result<(), Error>,
) -> Result<(), Error> {
    if to - from > LENGTH_MAX_SAMPLES || to < from {
        return Err(Error::Write(format!(
            "{} samples; a WAV file holds 0 to {LENGTH_MAX_SAMPLES}",
            to - from
        )));
    }
    let failed = |error: hound::Error| Error::Write(error.to_string());
    let layout = hound::WavSpec {
        channels: 2,
        sample_rate: RATE_HZ,
        bits_per_sample: match depth {
            Depth::Int16 => 16,
            Depth::Int24 => 24,
            Depth::Float32 => 32,
        },
        sample_format: match depth {
            Depth::Int16 | Depth::Int24 => hound::SampleFormat::Int,
            Depth::Float32 => hound::SampleFormat::Float,
        },
    };
    let mut writer = hound::WavWriter::new(out, layout).map_err(failed)?;
    let mut block = [[0.0; 2]; BLOCK_SAMPLES];
    let mut at = from;
    while at < to {
        let count = (to - at).min(BLOCK_SAMPLES as i64) as usize;
        let samples = &mut block[..count];
        mixer.render(at, ears, samples);
        if depth == Depth::Int16 {
            // Whole blocks of this depth go several times faster.
            let mut block = writer.get_i16_writer(2 * count as u32);
            for (number, sample) in (at..).zip(samples.iter()) {
                for (lane, value) in (0..).zip(sample) {
                    block.write_sample(int_16(*value, number, lane));
                }
            }
            block.flush().map_err(failed)?;
        } else {
            for value in samples.iter().flatten() {
                match depth {
                    Depth::Float32 => writer.write_sample(*value),
                    Depth::Int16 | Depth::Int24 => writer.write_sample(int_24(*value)),
                }
                .map_err(failed)?;
            }
        }
        at += count as i64;
        each(at - from, samples)?;
    }
    writer.finalize().map_err(failed)
}

fn int_16(value: f32, number: i64, lane: u64) -> i16 {
    const FULL: f64 = 32_767.0;
    // -140 dB: what filters leave of silence.
    if value.abs() < 1e-7 {
        return 0;
    }
    let hash = mix(mix(number.cast_unsigned()) ^ lane);
    // The sum of two even numbers, each one step wide, about 0.
    let share = |bits: u64| (bits & 0xFFFF_FFFF) as f64 / 4_294_967_296.0 - 0.5;
    let dither = share(hash) + share(hash >> 32);
    (f64::from(value) * FULL + dither)
        .round()
        .clamp(-FULL, FULL) as i16
}

fn int_24(value: f32) -> i32 {
    const FULL: f64 = 8_388_607.0;
    (f64::from(value) * FULL).round().clamp(-FULL, FULL) as i32
}
