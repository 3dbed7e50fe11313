//! The score: which voices sound, from which sample on, on which bus. Plain data, no samples.
//!
//! Voices are only ever added, stopped and faded, each at a stated sample, so a score that grew while
//! it was played is the score that is written to a file afterwards. How many may sound at once is
//! limited ([`VOICES_MAX`]), and who is left out depends on the score alone.

use super::filter::{FILTERS_MAX, Filter, memory_samples};
use super::space::Place;
use super::synth::{Shape, Source, Wander};
use super::{Error, RATE_HZ, SAMPLE_MAX, amplitude_from_db, sample_at, within};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Voices that sound at once.
pub const VOICES_MAX: usize = 256;

/// Voices of one score.
pub const SCORE_VOICES_MAX: usize = 100_000;

/// Buses of one score.
pub const BUSES_MAX: usize = 32;

/// Fades of one voice or bus.
const FADES_MAX: usize = 4096;

/// Points of one [`Levels`].
pub const LEVELS_MAX: usize = 4096;

/// The shortest fade of gains, stops and ends: shorter ones click.
pub const FADE_MIN_S: f64 = 0.005;

/// A bus by its place in the score's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusId(pub usize);

/// A voice by the number that [`Score::add`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VoiceId(pub u64);

/// A group of voices with one gain.
#[derive(Clone, Debug, PartialEq)]
pub struct Bus {
    /// What scripts and stems call it.
    pub name: String,
    /// Its gain before any fade, dB.
    pub gain_db: f64,
    /// Whether it is heard through the phone's microphone (sounds of the scene) or directly (music,
    /// clicks of a menu).
    pub is_through_mic: bool,
}

/// One voice as plain data. A sound of several layers is several voices.
#[derive(Clone, Debug)]
pub struct VoiceSpec {
    /// Sample of scene time at which it starts.
    pub start_sample: i64,
    /// What it is made of.
    pub source: Source,
    /// Loudness over its time, before the filters.
    pub shape: Shape,
    /// One after the other.
    pub filters: Vec<Filter>,
    /// dB.
    pub gain_db: f64,
    /// Change of the gain that is known beforehand, such as along a way.
    pub levels: Option<Arc<Levels>>,
    /// Slow random change of the gain.
    pub wander: Option<Wander>,
    /// Where it is.
    pub place: Place,
    /// Which bus it is on.
    pub bus: BusId,
    /// Rise from silence after the filters (half a cosine), seconds; 0 keeps the first sample.
    pub fade_in_s: f64,
    /// Fall to silence before the end, seconds; at least [`FADE_MIN_S`] is taken.
    pub fade_out_s: f64,
    /// How long it lasts, seconds; `None` lasts as long as source, shape and filters have something to
    /// give, which may be for ever.
    pub duration_s: Option<f64>,
    /// Decides all that is random in it.
    pub seed: u64,
}

impl VoiceSpec {
    /// A voice that is full from start to end, all around, at 0 dB on the first bus.
    #[must_use]
    pub fn new(start_sample: i64, source: Source) -> Self {
        Self {
            start_sample,
            source,
            shape: Shape::default(),
            filters: Vec::new(),
            gain_db: 0.0,
            levels: None,
            wander: None,
            place: Place::Around,
            bus: BusId(0),
            fade_in_s: 0.0,
            fade_out_s: 0.0,
            duration_s: None,
            seed: 0,
        }
    }

    /// Checks every value; `buses` is how many the score has.
    ///
    /// # Errors
    /// A value outside of its range, or a bus that is not there.
    pub fn check(&self, buses: usize) -> Result<(), Error> {
        within(
            "a voice's start in samples",
            self.start_sample as f64,
            -SAMPLE_MAX as f64,
            SAMPLE_MAX as f64,
        )?;
        self.source.check()?;
        self.shape.check()?;
        within(
            "the number of filters",
            self.filters.len() as f64,
            0.0,
            FILTERS_MAX as f64,
        )?;
        self.filters.iter().try_for_each(Filter::check)?;
        within("a voice's gain in dB", self.gain_db, -120.0, 40.0)?;
        self.wander.as_ref().map_or(Ok(()), Wander::check)?;
        self.place.check()?;
        within("a fade in seconds", self.fade_in_s, 0.0, 3600.0)?;
        within("a fade in seconds", self.fade_out_s, 0.0, 3600.0)?;
        if let Some(duration_s) = self.duration_s {
            within("a duration in seconds", duration_s, 0.0, 1e7)?;
        }
        if self.bus.0 >= buses {
            return Err(Error::Unknown(format!("bus {}", self.bus.0)));
        }
        Ok(())
    }

    /// The same voice, later (or earlier) by so many seconds.
    #[must_use]
    pub fn later_by(mut self, seconds: f64) -> Self {
        self.start_sample = self.start_sample.saturating_add(sample_at(seconds));
        if let Some(levels) = self.levels.as_ref().filter(|_| seconds != 0.0) {
            let points = levels.points.iter();
            let points = points.map(|(t_s, db)| (t_s + seconds, *db)).collect();
            self.levels = Some(Arc::new(Levels { points }));
        }
        self
    }

    /// Samples that it lasts, `None` for ever.
    #[must_use]
    pub fn length_samples(&self) -> Option<i64> {
        let own = match (self.source.length_samples(), self.shape.length_samples()) {
            (Some(source), Some(shape)) => Some(source.min(shape)),
            (source, shape) => source.or(shape),
        };
        // Filters ring on after their input has ended.
        let own = own.map(|own| own + memory_samples(&self.filters));
        let given = self
            .duration_s
            .map(|duration_s| (duration_s * f64::from(RATE_HZ)).round() as i64);
        match (own, given) {
            (Some(own), Some(given)) => Some(own.min(given)),
            (own, given) => own.or(given),
        }
    }
}

/// A gain at stated times; in between it goes in a straight line of dB, outside the nearest one holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Scene time in seconds, and dB; times rise.
    points: Vec<(f64, f64)>,
}

impl Levels {
    /// Of points of (scene time in seconds, dB).
    ///
    /// # Errors
    /// No point or more than [`LEVELS_MAX`], a time or gain out of range, times that do not rise.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, Error> {
        within(
            "the number of levels",
            points.len() as f64,
            1.0,
            LEVELS_MAX as f64,
        )?;
        let mut earliest_s = -1e9;
        for (t_s, db) in &points {
            within("the time of a level in seconds", *t_s, earliest_s, 1e9)?;
            within("a level in dB", *db, -120.0, 40.0)?;
            earliest_s = *t_s;
        }
        Ok(Self { points })
    }

    /// The gain at a scene time, dB.
    #[must_use]
    pub fn gain_db(&self, t_s: f64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at <= t_s);
        match (
            after.checked_sub(1).map(|i| self.points[i]),
            self.points.get(after),
        ) {
            (Some((from_s, from)), Some((to_s, to))) => {
                from + (to - from) * (t_s - from_s) / (to_s - from_s)
            }
            (Some((_, only)), None) | (None, Some(&(_, only))) => only,
            (None, None) => 0.0,
        }
    }
}

/// A gain that changes at stated samples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fades {
    start_amplitude: f64,
    /// Sorted by start: (start, length, aim).
    list: Vec<(i64, i64, f64)>,
}

impl Fades {
    fn new(gain_db: f64) -> Self {
        Self {
            start_amplitude: amplitude_from_db(gain_db),
            list: Vec::new(),
        }
    }

    fn add(&mut self, sample: i64, to_db: f64, fade_s: f64) -> Result<(), Error> {
        within(
            "a fade's start in samples",
            sample as f64,
            -SAMPLE_MAX as f64,
            SAMPLE_MAX as f64,
        )?;
        within("a fade in seconds", fade_s, 0.0, 3600.0)?;
        if to_db != f64::NEG_INFINITY {
            within("a fade's aim in dB", to_db, -200.0, 40.0)?;
        }
        if self.list.len() >= FADES_MAX {
            // The oldest one becomes where the rest starts from.
            let (_, _, aim) = self.list.remove(0);
            self.start_amplitude = aim;
        }
        let at = self.list.partition_point(|(start, ..)| *start <= sample);
        let length = (fade_s.max(FADE_MIN_S) * f64::from(RATE_HZ)) as i64;
        self.list
            .insert(at, (sample, length, amplitude_from_db(to_db)));
        Ok(())
    }

    /// The factor at a sample. A fade that starts during another goes on from where that one is.
    pub(super) fn amplitude(&self, sample: i64) -> f64 {
        let started = self.list.partition_point(|(start, ..)| *start < sample);
        let mut amplitude = self.start_amplitude;
        for (i, (start, length, aim)) in self.list[..started].iter().enumerate() {
            let until = self.list[..started]
                .get(i + 1)
                .map_or(sample, |next| next.0);
            let share = ((until - start) as f64 / *length as f64).min(1.0);
            amplitude += (aim - amplitude) * share * share * (3.0 - 2.0 * share);
        }
        amplitude
    }
}

/// A voice of the score.
#[derive(Clone, Debug)]
pub(super) struct Voice {
    pub(super) id: VoiceId,
    pub(super) spec: VoiceSpec,
    pub(super) fades: Fades,
    /// First sample after it, `None` for ever.
    pub(super) end: Option<i64>,
    /// Length of the fall before the end, samples.
    pub(super) fade_out: i64,
}

/// Voices and buses.
#[derive(Clone, Debug)]
pub struct Score {
    buses: Vec<Bus>,
    bus_fades: Vec<Fades>,
    /// Sorted by start, then by number.
    voices: Vec<Voice>,
    next_id: u64,
    revision: u64,
}

impl Score {
    /// A score without voices.
    ///
    /// # Errors
    /// No bus, more than [`BUSES_MAX`], or a gain out of range.
    pub fn new(buses: Vec<Bus>) -> Result<Self, Error> {
        within(
            "the number of buses",
            buses.len() as f64,
            1.0,
            BUSES_MAX as f64,
        )?;
        for bus in &buses {
            within("a bus's gain in dB", bus.gain_db, -120.0, 40.0)?;
        }
        Ok(Self {
            bus_fades: buses.iter().map(|bus| Fades::new(bus.gain_db)).collect(),
            buses,
            voices: Vec::new(),
            next_id: 0,
            revision: 0,
        })
    }

    /// The buses.
    #[must_use]
    pub fn buses(&self) -> &[Bus] {
        &self.buses
    }

    /// A bus by its name.
    #[must_use]
    pub fn bus(&self, name: &str) -> Option<BusId> {
        self.buses
            .iter()
            .position(|bus| bus.name == name)
            .map(BusId)
    }

    /// Number of voices, ended ones too.
    #[must_use]
    pub fn voice_count(&self) -> usize {
        self.voices.len()
    }

    /// First sample after the last voice that ends; `None` where one sounds for ever.
    #[must_use]
    pub fn end_sample(&self) -> Option<i64> {
        self.voices
            .iter()
            .try_fold(0, |latest, voice| Some(voice.end?.max(latest)))
    }

    /// Adds a voice.
    ///
    /// # Errors
    /// A value outside of its range, a bus that is not there, or a full score.
    pub fn add(&mut self, spec: VoiceSpec) -> Result<VoiceId, Error> {
        spec.check(self.buses.len())?;
        if self.voices.len() >= SCORE_VOICES_MAX {
            return Err(Error::Full {
                most: SCORE_VOICES_MAX,
            });
        }
        let id = VoiceId(self.next_id);
        self.next_id += 1;
        self.revision += 1;
        let end = spec
            .length_samples()
            .map(|length| spec.start_sample + length);
        let voice = Voice {
            id,
            fades: Fades::new(spec.gain_db),
            end,
            fade_out: (spec.fade_out_s.max(FADE_MIN_S) * f64::from(RATE_HZ)) as i64,
            spec,
        };
        let at = self
            .voices
            .partition_point(|v| v.spec.start_sample <= voice.spec.start_sample);
        self.voices.insert(at, voice);
        Ok(id)
    }

    /// Lets a voice fall to silence from a sample on, over at least [`FADE_MIN_S`]. One that ends
    /// earlier stays as it is.
    ///
    /// # Errors
    /// No such voice, or a time out of range.
    pub fn stop(&mut self, id: VoiceId, sample: i64, fade_s: f64) -> Result<(), Error> {
        within(
            "a stop in samples",
            sample as f64,
            -SAMPLE_MAX as f64,
            SAMPLE_MAX as f64,
        )?;
        within("a fade in seconds", fade_s, 0.0, 3600.0)?;
        let fade_out = (fade_s.max(FADE_MIN_S) * f64::from(RATE_HZ)) as i64;
        let voice = self.voice_mut(id)?;
        let end = sample.max(voice.spec.start_sample) + fade_out;
        if voice.end.is_none_or(|before| end < before) {
            voice.end = Some(end);
            voice.fade_out = fade_out;
            self.revision += 1;
        }
        Ok(())
    }

    /// Changes a voice's gain from a sample on.
    ///
    /// # Errors
    /// No such voice, or a value out of range.
    pub fn fade(&mut self, id: VoiceId, sample: i64, to_db: f64, fade_s: f64) -> Result<(), Error> {
        self.voice_mut(id)?.fades.add(sample, to_db, fade_s)
    }

    /// Changes a bus's gain from a sample on.
    ///
    /// # Errors
    /// No such bus, or a value out of range.
    pub fn fade_bus(
        &mut self,
        bus: BusId,
        sample: i64,
        to_db: f64,
        fade_s: f64,
    ) -> Result<(), Error> {
        self.bus_fades
            .get_mut(bus.0)
            .ok_or_else(|| Error::Unknown(format!("bus {}", bus.0)))?
            .add(sample, to_db, fade_s)
    }

    /// Takes out voices that have ended before a sample, for players that run for days.
    pub fn forget_before(&mut self, sample: i64) {
        let before = self.voices.len();
        self.voices.retain(|v| v.end.is_none_or(|end| end > sample));
        if self.voices.len() != before {
            self.revision += 1;
        }
    }

    fn voice_mut(&mut self, id: VoiceId) -> Result<&mut Voice, Error> {
        self.voices
            .iter_mut()
            .find(|voice| voice.id == id)
            .ok_or_else(|| Error::Unknown(format!("voice {}", id.0)))
    }

    /// Goes up whenever voices come, go or change their end.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn voices(&self) -> &[Voice] {
        &self.voices
    }

    pub(super) fn bus_fades(&self, bus: BusId) -> &Fades {
        &self.bus_fades[bus.0]
    }

    /// Who plays: indices into the voices, in order of start, and sentences about who does not.
    ///
    /// A voice plays if at its start fewer than [`VOICES_MAX`] of those before it still sound; of
    /// voices that start together the louder ones come first.
    pub(super) fn admitted(&self) -> (Vec<usize>, Vec<String>) {
        let mut order: Vec<usize> = (0..self.voices.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.voices[a], &self.voices[b]);
            let louder_first = b.spec.gain_db.total_cmp(&a.spec.gain_db);
            (a.spec.start_sample.cmp(&b.spec.start_sample))
                .then(louder_first)
                .then(a.id.cmp(&b.id))
        });
        let mut ends: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
        let mut left_out: Vec<(i64, usize)> = Vec::new();
        order.retain(|&i| {
            let voice = &self.voices[i];
            let start = voice.spec.start_sample;
            while ends.peek().is_some_and(|end| end.0 <= start) {
                ends.pop();
            }
            let is_admitted = ends.len() < VOICES_MAX;
            if is_admitted {
                ends.push(Reverse(voice.end.unwrap_or(i64::MAX)));
            } else {
                let second = start.div_euclid(i64::from(RATE_HZ));
                match left_out.last_mut() {
                    Some((at, count)) if *at == second => *count += 1,
                    _ => left_out.push((second, 1)),
                }
            }
            is_admitted
        });
        let messages = left_out
            .into_iter()
            .map(|(second, count)| {
                format!(
                    "sound: {count} voices that start in second {second} are left out: \
                     at most {VOICES_MAX} sound at once"
                )
            })
            .collect();
        (order, messages)
    }
}
