//! How loud a mix is: EBU R 128 by the ebur128 crate, fed block by block.

use super::{Error, RATE_HZ, Stereo};
use ebur128::{EbuR128, Mode};

/// A meter that samples are shown to.
pub struct Meter(EbuR128);

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

/// What a meter has read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loudness {
    /// Integrated loudness, LUFS; minus infinity for silence.
    pub integrated_lufs: f64,
    /// Loudness range, LU.
    pub range_lu: f64,
    /// Highest peak between samples, dBTP; minus infinity for silence.
    pub true_peak_dbtp: f64,
}

impl Meter {
    /// A meter that has seen nothing.
    ///
    /// # Errors
    /// Memory.
    pub fn new() -> Result<Self, Error> {
        EbuR128::new(2, RATE_HZ, Mode::I | Mode::LRA | Mode::TRUE_PEAK)
            .map(Self)
            .map_err(failed)
    }

    /// Shows samples, in order.
    ///
    /// # Errors
    /// Memory.
    pub fn add(&mut self, samples: &[Stereo]) -> Result<(), Error> {
        self.0
            .add_frames_f32(samples.as_flattened())
            .map_err(failed)
    }

    /// What was seen so far.
    ///
    /// # Errors
    /// None that this meter's modes can have; handed on as they come.
    pub fn read(&self) -> Result<Loudness, Error> {
        let peak = |channel| self.0.true_peak(channel).map_err(failed);
        Ok(Loudness {
            integrated_lufs: self.0.loudness_global().map_err(failed)?,
            range_lu: self.0.loudness_range().map_err(failed)?,
            true_peak_dbtp: super::db_from_amplitude(peak(0)?.max(peak(1)?)),
        })
    }
}

fn failed(error: ebur128::Error) -> Error {
    Error::System(format!("measuring loudness: {error}"))
}
