//! One running voice: source, shape and filters, asked for samples by their number since its start.
//!
//! What has a memory is restarted at every multiple of a segment, after a warm-up as long as that
//! memory, whether the samples before were asked for or not. So any stretch of a bed has the same bits
//! however it was reached, and the seam lies below the last bit of what is heard. Voices shorter than
//! a segment have no seam.

use super::filter::{Chain, memory_samples};
use super::score::VoiceSpec;
use super::space::Place;
use super::synth::{RunningShape, RunningSource};
use super::{BLOCK_SAMPLES, RATE_HZ};

/// The shortest segment, samples; a voice with a long memory has one of four times its memory.
const SEGMENT_MIN_SAMPLES: i64 = 2 * RATE_HZ as i64;

#[derive(Debug)]
pub(super) struct RunningVoice {
    source: RunningSource,
    shape: RunningShape,
    chain: Chain,
    memory: i64,
    segment: i64,
    /// Only the left lane is worked out; the right one is the same.
    is_mono: bool,
    /// The sample that the state stands before; `None` at rest.
    next: Option<i64>,
}

impl RunningVoice {
    pub(super) fn new(spec: &VoiceSpec) -> Self {
        let memory = spec.source.memory_samples() + memory_samples(&spec.filters);
        Self {
            source: RunningSource::new(&spec.source, spec.seed, memory),
            shape: RunningShape::new(&spec.shape),
            chain: Chain::new(&spec.filters),
            memory,
            segment: SEGMENT_MIN_SAMPLES.max(4 * memory),
            is_mono: spec.place != Place::Around || !spec.source.is_wide(),
            next: None,
        }
    }

    /// Samples from number `first` on, before gains and fades.
    pub(super) fn fill(&mut self, first: i64, out: &mut [[f64; 2]]) {
        let mut at = first;
        let mut rest = out;
        while !rest.is_empty() {
            let in_segment = at.rem_euclid(self.segment);
            let is_seam = in_segment == 0 && self.memory > 0;
            if self.next != Some(at) || is_seam {
                self.restart(at);
            }
            let count = rest.len().min((self.segment - in_segment) as usize);
            let (piece, after) = rest.split_at_mut(count);
            self.run(at, piece);
            rest = after;
            at += count as i64;
        }
    }

    /// Whether the right lane is to be read from the left one.
    pub(super) fn is_mono(&self) -> bool {
        self.is_mono
    }

    /// Comes to the state before sample `at` as everybody must: from the segment's warm-up.
    fn restart(&mut self, at: i64) {
        self.source.reset();
        self.chain.reset();
        if self.memory == 0 {
            return;
        }
        let segment_start = at - at.rem_euclid(self.segment);
        let mut from = (segment_start - self.memory).max(0);
        let mut scratch = [[0.0; 2]; BLOCK_SAMPLES];
        while from < at {
            let count = (at - from).min(BLOCK_SAMPLES as i64) as usize;
            self.run(from, &mut scratch[..count]);
            from += count as i64;
        }
    }

    fn run(&mut self, first: i64, out: &mut [[f64; 2]]) {
        self.source.fill(first, out, self.is_mono);
        self.shape.run(first, out);
        self.chain.run(out, self.is_mono);
        self.next = Some(first + out.len() as i64);
    }
}
