//! The sound of a scene as a file: its score over a stretch of time, who hears it, a WAV file.
//!
//! A scene without `step` is asked for whole seconds from [`VOICE_S_MAX`] before the stretch on, and
//! for its listener on a fixed grid, so that any stretch has the samples that playing up to it gives. A
//! stepped scene runs from its beginning. Mixing is [`crate::audio`]'s; what sounds is the script's.

use super::movie;
use super::progress::Progress;
use super::replay::{LOOK_HZ, Player};
use super::{Usage, interrupt};
use crate::audio::loudness::Meter;
use crate::audio::wav::{self, Depth};
use crate::audio::{
    BLOCK_SAMPLES, Error, ListenerTrack, Mic, Mixer, RATE_HZ, Score, VoiceSpec, seconds_at,
};
use crate::script::{SoundPlan, VOICE_S_MAX};
use anyhow::bail;
use serde_json::{Value, json};
use std::io::BufWriter;
use std::path::Path;

/// What everything is heard through.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MicChoice {
    /// What the scene says.
    #[default]
    Scene,
    /// Everything is heard directly.
    Off,
    /// This preset, whatever the scene says.
    Preset(String),
}

impl MicChoice {
    /// The microphone for a scene that wants `own`.
    #[must_use]
    pub fn of(&self, own: Option<Mic>) -> Option<Mic> {
        match self {
            Self::Scene => own,
            Self::Off => None,
            Self::Preset(name) => Mic::preset(name),
        }
    }
}

/// How sound is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoundOptions {
    /// What it is heard through.
    pub mic: MicChoice,
    /// One bus alone.
    pub stem: Option<String>,
    /// No sound beside a video.
    pub is_off: bool,
}

/// A score, who hears it, and through what.
#[derive(Debug)]
pub struct Recording {
    mixer: Mixer,
    ears: ListenerTrack,
    /// First sample and the one after the last.
    range: [i64; 2],
    warnings: Vec<String>,
}

impl Recording {
    /// Runs a scene for samples `range` of its time.
    ///
    /// # Errors
    /// A script that fails, a stem that is not there ([`Usage`]), an interrupt.
    pub fn of(
        player: &mut Player,
        range: [i64; 2],
        options: &SoundOptions,
    ) -> anyhow::Result<Self> {
        let plan = player.session().sound();
        let mut score = score_of(&plan)?;
        let stem = match &options.stem {
            Some(name) => Some(score.bus(name).ok_or_else(|| {
                let names: Vec<&str> = plan.buses.iter().map(|bus| bus.name.as_str()).collect();
                Usage(format!("no stem '{name}': there is {}", names.join(", ")))
            })?),
            None => None,
        };
        let mut mixer = Mixer::new(
            Score::new(plan.buses.clone())?,
            player.session().options().seed,
        );
        mixer.set_mic(options.mic.of(plan.mic.clone()))?;
        let look_back = mixer.look_back_blocks() * BLOCK_SAMPLES as i64;
        let mut ears = ListenerTrack::default();
        let [from_s, to_s] = range.map(seconds_at);
        let mut warnings = Vec::new();
        let mut add = |voices: Vec<VoiceSpec>| -> anyhow::Result<()> {
            for voice in voices {
                match score.add(voice) {
                    Ok(_) => {}
                    Err(error @ Error::Full { .. }) => {
                        let warning = format!("sound: {error}; later ones are left out");
                        if !warnings.contains(&warning) {
                            warnings.push(warning);
                        }
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        };
        let is_stepped = player.session().is_stepped();
        let hears_from_s = (from_s - seconds_at(look_back)).max(from_s.min(0.0));
        let first_look = if is_stepped {
            0
        } else {
            (hears_from_s * f64::from(LOOK_HZ)).floor() as i64
        };
        if !is_stepped {
            let from = (from_s - VOICE_S_MAX - seconds_at(look_back)).max(from_s.min(0.0));
            for second in from.floor() as i64..to_s.ceil() as i64 {
                interrupt::check()?;
                add(player.voices(second as f64, (second + 1) as f64)?)?;
            }
        }
        // Where nothing can be heard nobody has to listen.
        let is_asked = is_stepped || !plan.is_silent();
        let last_look = (to_s * f64::from(LOOK_HZ)).ceil() as i64;
        let mut before_s = first_look as f64 / f64::from(LOOK_HZ);
        for look in first_look..=last_look {
            if !is_asked {
                break;
            }
            interrupt::check()?;
            let t_s = look as f64 / f64::from(LOOK_HZ);
            if is_stepped {
                player.frame(t_s)?;
                if t_s > before_s {
                    add(player.voices(before_s, t_s)?)?;
                }
                before_s = t_s;
            }
            if t_s >= hears_from_s - 1.0 {
                ears.push(t_s, player.listener(t_s)?);
            }
        }
        mixer.set_score(score);
        mixer.set_solo(stem);
        Ok(Self {
            mixer,
            ears,
            range,
            warnings,
        })
    }

    /// Whether there is no voice at all.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.mixer.score().voice_count() == 0
    }

    /// Writes it as 16-bit stereo at [`RATE_HZ`] and says what it is: `output, hz, channels, samples,
    /// seconds, voices, lufs, range_lu, true_peak_dbtp, warnings[]`; levels of silence are null.
    ///
    /// # Errors
    /// The file cannot be written, or an interrupt.
    pub fn write(mut self, path: &Path) -> anyhow::Result<Value> {
        let [from, to] = self.range;
        let mut meter = Meter::new()?;
        let bar = Progress::new("sound");
        let mut file = BufWriter::new(movie::temporary(path)?);
        let mut stopped = Ok(());
        let written = wav::write(
            &mut self.mixer,
            self.range,
            &self.ears,
            Depth::Int16,
            &mut file,
            |done, samples| {
                meter.add(samples)?;
                bar.set(done as f32 / (to - from) as f32);
                stopped = interrupt::check();
                match &stopped {
                    Ok(()) => Ok(()),
                    Err(error) => Err(Error::Write(error.to_string())),
                }
            },
        );
        stopped?;
        written?;
        movie::persist(file, path)?;
        self.warnings.extend(self.mixer.take_warnings());
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
        let loudness = meter.read()?;
        let level = |db: f64| db.is_finite().then_some(db);
        Ok(json!({
            "output": path,
            "hz": RATE_HZ,
            "channels": 2,
            "samples": to - from,
            "seconds": seconds_at(to - from),
            "voices": self.mixer.score().voice_count(),
            "lufs": level(loudness.integrated_lufs),
            "range_lu": level(loudness.range_lu),
            "true_peak_dbtp": level(loudness.true_peak_dbtp),
            "warnings": self.warnings,
        }))
    }
}

/// The score that a scene begins with.
///
/// # Errors
/// A plan that no score can be made of.
pub fn score_of(plan: &SoundPlan) -> Result<Score, Error> {
    let mut score = Score::new(plan.buses.clone())?;
    for bed in &plan.beds {
        score.add(bed.clone())?;
    }
    Ok(score)
}

/// Samples of `count` pictures, `fps` of them a second, the first at `from_s`.
///
/// # Errors
/// Longer than a WAV file can be ([`Usage`]).
pub fn range_of(from_s: f64, count: usize, fps: f64) -> anyhow::Result<[i64; 2]> {
    let from = crate::audio::sample_at(from_s);
    let length = (count as f64 / fps * f64::from(RATE_HZ)).round();
    if length > wav::LENGTH_MAX_SAMPLES as f64 {
        let hours = length / f64::from(RATE_HZ) / 3600.0;
        bail!(Usage(format!(
            "{hours:.1} hours are longer than a WAV file can be"
        )));
    }
    Ok([from, from + length as i64])
}
