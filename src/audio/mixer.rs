//! The mixer: any range of samples of a score, as one listener hears it.
//!
//! Work goes block by block on a fixed grid. Gains and places are worked out at the edges of blocks
//! and go in a line from edge to edge, so nothing clicks. A jump starts [`Mixer::look_back_blocks`]
//! earlier and throws that away; all that has a memory has forgotten by then how it was started, so
//! the samples after a jump are, bit for bit, those that playing up to there gives.

use super::dynamics::{Block, Limiter, glide};
use super::mic::{LOOK_BACK_BLOCKS, Mic, Restarted, RunningMic, without_direct_current};
use super::score::{BusId, Score, Voice, VoiceId};
use super::space::{Ears, Listener};
use super::voice::RunningVoice;
use super::{BLOCK_SAMPLES, Error, SAMPLE_MAX, Stereo, amplitude_from_db, seconds_at};
use crate::motion::noise::mix;
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::PI;

const BLOCK: i64 = BLOCK_SAMPLES as i64;

/// A score being played or written.
#[derive(Debug)]
pub struct Mixer {
    score: Score,
    mic: Option<Mic>,
    seed: u64,
    gain_db: f64,
    solo: Option<BusId>,
    state: State,
    warned: BTreeSet<String>,
    warnings: Vec<String>,
}

/// What changes from block to block.
#[derive(Debug)]
struct State {
    /// The block that is mixed next; `None` before the first and after a change of settings.
    next: Option<i64>,
    mic: Option<RunningMic>,
    direct_current: Restarted,
    /// The factor of everything at the end of the last block.
    gain: Option<f64>,
    limiter: Limiter,
    /// The block that came out last: the one before the last mixed.
    ready: Vec<Stereo>,
    voices: BTreeMap<VoiceId, RunningVoice>,
    /// The revision of the score that the two lists are of.
    revision: Option<u64>,
    /// Voices of the score that may play, by start.
    admitted: Vec<usize>,
    /// Place in `admitted` of the first that has not started.
    waiting: usize,
    /// Those of `admitted` that sound.
    sounding: Vec<usize>,
    scratch: Box<Block>,
}

impl Mixer {
    /// A mixer without a microphone: everything is heard directly. `seed` decides the microphone's
    /// own noises; voices have seeds of their own.
    #[must_use]
    pub fn new(score: Score, seed: u64) -> Self {
        Self {
            state: State::new(None),
            score,
            mic: None,
            seed,
            gain_db: 0.0,
            solo: None,
            warned: BTreeSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Puts a microphone between the scene and whoever listens, or takes it away.
    ///
    /// # Errors
    /// A value of the microphone outside of its range.
    pub fn set_mic(&mut self, mic: Option<Mic>) -> Result<(), Error> {
        mic.as_ref().map_or(Ok(()), Mic::check)?;
        self.mic = mic;
        self.restart();
        Ok(())
    }

    /// Gain of everything, before the limiter, dB. While playing it is reached over one block.
    ///
    /// # Errors
    /// A gain that is no number or over 40 dB.
    pub fn set_gain_db(&mut self, gain_db: f64) -> Result<(), Error> {
        super::within("the gain of everything in dB", gain_db, -200.0, 40.0)?;
        self.gain_db = gain_db;
        Ok(())
    }

    /// Plays one bus alone, or all again. Microphone and limiter act on what is left: a stem is what
    /// would be heard if there were nothing else.
    pub fn set_solo(&mut self, bus: Option<BusId>) {
        self.solo = bus;
        self.restart();
    }

    /// The score.
    #[must_use]
    pub fn score(&self) -> &Score {
        &self.score
    }

    /// The score, to add to. What changes before the samples that are asked for next is heard from
    /// there on; for the bits that a fresh mixer gives call [`Mixer::restart`] too.
    pub fn score_mut(&mut self) -> &mut Score {
        &mut self.score
    }

    /// Puts another score in place of this one.
    pub fn set_score(&mut self, score: Score) {
        self.score = score;
        self.restart();
    }

    /// Forgets what was played, as after a jump.
    pub fn restart(&mut self) {
        self.state = State::new(None);
    }

    /// Blocks before a moment that are mixed for a jump there.
    #[must_use]
    pub fn look_back_blocks(&self) -> i64 {
        let before_limiter = if self.mic.is_some() {
            LOOK_BACK_BLOCKS
        } else {
            Restarted::MEMORY_BLOCKS
        };
        before_limiter + Limiter::MEMORY_BLOCKS + 2
    }

    /// What a person should know, each sentence once: voices that were left out.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Writes samples `first..` of the score into `out`; `first` is within [`SAMPLE_MAX`] of 0.
    pub fn render(&mut self, first: i64, ears: &dyn Ears, out: &mut [Stereo]) {
        let mut at = first.clamp(-SAMPLE_MAX, SAMPLE_MAX);
        let mut rest = out;
        while !rest.is_empty() {
            let (number, inside) = (at.div_euclid(BLOCK), at.rem_euclid(BLOCK) as usize);
            self.make_ready(number, ears);
            let count = rest.len().min(BLOCK_SAMPLES - inside);
            let (piece, after) = rest.split_at_mut(count);
            piece.copy_from_slice(&self.state.ready[inside..inside + count]);
            rest = after;
            at += count as i64;
        }
    }

    /// Mixes until block `number` is the one that came out last.
    fn make_ready(&mut self, number: i64, ears: &dyn Ears) {
        // A block comes out when the one after it goes in.
        let must_mix = number + 1;
        let is_near = self
            .state
            .next
            .is_some_and(|next| next - 1 <= must_mix && must_mix - next < self.look_back_blocks());
        if !is_near {
            self.state = State::new(
                self.mic
                    .as_ref()
                    .map(|mic| RunningMic::new(mic, mix(self.seed))),
            );
            self.state.next = Some(must_mix - self.look_back_blocks());
        }
        while let Some(next) = self.state.next.filter(|next| *next <= must_mix) {
            self.mix(next, ears);
            self.state.next = Some(next + 1);
        }
    }

    fn mix(&mut self, number: i64, ears: &dyn Ears) {
        let first = number * BLOCK;
        let listeners = [first, first + BLOCK].map(|edge| ears.listener(seconds_at(edge)));
        self.choose_voices(first);
        let state = &mut self.state;
        // What the microphone hears, and what is heard without it.
        let mut air = [[0.0; 2]; BLOCK_SAMPLES];
        let mut direct = [[0.0; 2]; BLOCK_SAMPLES];
        for &index in &state.sounding {
            let voice = &self.score.voices()[index];
            if self.solo.is_some_and(|bus| bus != voice.spec.bus) {
                continue;
            }
            let running = state
                .voices
                .entry(voice.id)
                .or_insert_with(|| RunningVoice::new(&voice.spec));
            let bus = &self.score.buses()[voice.spec.bus.0];
            let is_through_mic = bus.is_through_mic && state.mic.is_some();
            let sum = if is_through_mic {
                &mut air
            } else {
                &mut direct
            };
            add_voice(
                &self.score,
                voice,
                running,
                first,
                &listeners,
                &mut state.scratch,
                sum,
            );
        }
        if let Some(mic) = &mut state.mic {
            mic.run(number, &mut air, [&listeners[0], &listeners[1]]);
        }
        state.direct_current.run(number, &mut direct, false);
        let gain = amplitude_from_db(self.gain_db);
        for (sum, heard) in direct.iter_mut().zip(&air) {
            sum[0] += heard[0];
            sum[1] += heard[1];
        }
        glide(&mut direct, state.gain.unwrap_or(gain), gain);
        state.gain = Some(gain);
        let limited = state.limiter.run(&direct);
        state.ready.clear();
        state.ready.extend(limited.iter().map(|sample| {
            // The limiter holds up to 60 dB over full scale; nobody's ears should test it.
            sample.map(|value| (value as f32).clamp(-1.0, 1.0))
        }));
    }

    /// Brings the list of sounding voices up to the block that begins with sample `first`.
    fn choose_voices(&mut self, first: i64) {
        let state = &mut self.state;
        if state.revision != Some(self.score.revision()) {
            let (admitted, messages) = self.score.admitted();
            state.admitted = admitted;
            state.revision = Some(self.score.revision());
            state.waiting = 0;
            state.sounding.clear();
            let left: BTreeSet<VoiceId> = self.score.voices().iter().map(|v| v.id).collect();
            state.voices.retain(|id, _| left.contains(id));
            for message in messages {
                if self.warned.insert(message.clone()) {
                    self.warnings.push(message);
                }
            }
        }
        let voices = self.score.voices();
        let has_ended = |index: usize| voices[index].end.is_some_and(|end| end <= first);
        while let Some(&index) = state.admitted.get(state.waiting) {
            if voices[index].spec.start_sample >= first + BLOCK {
                break;
            }
            if !has_ended(index) {
                state.sounding.push(index);
            }
            state.waiting += 1;
        }
        state.sounding.retain(|&index| {
            if has_ended(index) {
                state.voices.remove(&voices[index].id);
            }
            !has_ended(index)
        });
    }
}

impl State {
    fn new(mic: Option<RunningMic>) -> Self {
        Self {
            next: None,
            mic,
            direct_current: without_direct_current(),
            gain: None,
            limiter: Limiter::new(),
            ready: Vec::with_capacity(BLOCK_SAMPLES),
            voices: BTreeMap::new(),
            revision: None,
            admitted: Vec::new(),
            waiting: 0,
            sounding: Vec::new(),
            scratch: Box::new([[0.0; 2]; BLOCK_SAMPLES]),
        }
    }
}

/// Adds the part of a voice that lies in the block that begins with sample `first`.
fn add_voice(
    score: &Score,
    voice: &Voice,
    running: &mut RunningVoice,
    first: i64,
    listeners: &[Listener; 2],
    scratch: &mut Block,
    sum: &mut Block,
) {
    let spec = &voice.spec;
    let from = spec.start_sample.max(first);
    let to = voice.end.unwrap_or(i64::MAX).min(first + BLOCK);
    if from >= to {
        return;
    }
    let samples = &mut scratch[..(to - from) as usize];
    running.fill(from - spec.start_sample, samples);
    fade_in(voice, from, samples);
    fade_out(voice, from, samples);
    let edges: [[f64; 2]; 2] = std::array::from_fn(|i| {
        let edge = first + BLOCK * i as i64;
        let wander_db = spec.wander.map_or(0.0, |wander| {
            wander.gain_db(seconds_at(edge), mix(spec.seed ^ 5))
        });
        let levels_db = (spec.levels.as_ref()).map_or(0.0, |l| l.gain_db(seconds_at(edge)));
        let level = voice.fades.amplitude(edge)
            * score.bus_fades(spec.bus).amplitude(edge)
            * amplitude_from_db(wander_db + levels_db);
        spec.place.gains(&listeners[i]).map(|gain| gain * level)
    });
    let offset = (from - first) as usize;
    let right = usize::from(!running.is_mono());
    let step = [0, 1].map(|lane| (edges[1][lane] - edges[0][lane]) / BLOCK as f64);
    for (i, (out, sample)) in (offset..).zip(sum[offset..].iter_mut().zip(samples)) {
        out[0] += sample[0] * (edges[0][0] + step[0] * i as f64);
        out[1] += sample[right] * (edges[0][1] + step[1] * i as f64);
    }
}

fn fade_in(voice: &Voice, from: i64, samples: &mut [[f64; 2]]) {
    let length = (voice.spec.fade_in_s * f64::from(super::RATE_HZ)).round() as i64;
    let begun = from - voice.spec.start_sample;
    for (n, sample) in (begun..length).zip(samples) {
        let gain = 0.5 - 0.5 * (PI * n as f64 / length as f64).cos();
        sample[0] *= gain;
        sample[1] *= gain;
    }
}

fn fade_out(voice: &Voice, from: i64, samples: &mut [[f64; 2]]) {
    let Some(end) = voice.end else { return };
    let length = voice.fade_out.min(end - voice.spec.start_sample);
    let skip = usize::try_from(end - length - from).unwrap_or(0);
    for (n, sample) in (from..).zip(samples).skip(skip) {
        let gain = 0.5 - 0.5 * (PI * (end - n) as f64 / length as f64).cos();
        sample[0] *= gain;
        sample[1] *= gain;
    }
}
