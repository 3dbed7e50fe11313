//! Gains that follow the signal: the phone's compressor and the limiter at the very end.
//!
//! Both work on hops of 1 ms and in whole thousandths of a dB. Their fall-back is a straight line, so
//! what a peak does is over after a known time, and whole numbers add up to the same sum in any order:
//! started earlier or later, they come to the same bits. The limiter looks ahead by one block and
//! measures peaks between samples at four times the rate (ITU-R BS.1770-5, annex 2).

use super::clip::{kaiser, sinc};
use super::{BLOCK_SAMPLES, amplitude_from_db};
use std::collections::VecDeque;

/// Samples of a hop, 1 ms.
const HOP: usize = 48;

/// Hops of a block.
const HOPS: usize = BLOCK_SAMPLES / HOP;

/// A running block of samples.
pub(super) type Block = [[f64; 2]; BLOCK_SAMPLES];

/// A reduction that falls back in a straight line, thousandths of a dB.
#[derive(Clone, Debug)]
struct Follower {
    fall: i32,
    now: i32,
}

impl Follower {
    fn next(&mut self, wanted: i32) -> i32 {
        self.now = wanted.max(self.now - self.fall).max(0);
        self.now
    }
}

/// A mean over the last `N` reductions, as a factor.
#[derive(Clone, Debug)]
struct Mean<const N: usize> {
    recent: [i32; N],
    at: usize,
}

impl<const N: usize> Mean<N> {
    fn new() -> Self {
        Self {
            recent: [0; N],
            at: 0,
        }
    }

    fn next(&mut self, reduction: i32) -> f64 {
        self.recent[self.at] = reduction;
        self.at = (self.at + 1) % N;
        let sum: i32 = self.recent.iter().sum();
        amplitude_from_db(-f64::from(sum) / (1000.0 * N as f64))
    }
}

/// Multiplies by a line from one factor to another.
pub(super) fn glide(samples: &mut [[f64; 2]], from: f64, to: f64) {
    let step = (to - from) / samples.len() as f64;
    for (i, sample) in samples.iter_mut().enumerate() {
        let gain = from + step * i as f64;
        sample[0] *= gain;
        sample[1] *= gain;
    }
}

fn peak(samples: &[[f64; 2]]) -> f64 {
    samples.iter().fold(0.0, |peak: f64, [left, right]| {
        peak.max(left.abs()).max(right.abs())
    })
}

/// How far levels are brought nearer to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compressor {
    /// Peaks over this are reduced, dBFS.
    pub threshold_db: f64,
    /// dB in for one dB out, over the threshold.
    pub ratio: f64,
    /// Gain after it, dB.
    pub makeup_db: f64,
}

impl Compressor {
    /// Reduction is at most this, thousandths of a dB.
    const MOST: f64 = 30_000.0;
    /// Falls back by 150 dB/s.
    const FALL: i32 = 150;
    /// Blocks after which a peak has no effect.
    pub(super) const MEMORY_BLOCKS: i64 = 22;

    fn wanted(&self, peak: f64) -> i32 {
        let over_db = 20.0 * peak.max(1e-9).log10() - self.threshold_db;
        let reduction = over_db.max(0.0) * (1.0 - 1.0 / self.ratio);
        (reduction * 1000.0).min(Self::MOST).round() as i32
    }
}

#[derive(Clone, Debug)]
pub(super) struct RunningCompressor {
    settings: Compressor,
    follower: Follower,
    mean: Mean<5>,
    edge: f64,
}

impl RunningCompressor {
    pub(super) fn new(settings: Compressor) -> Self {
        Self {
            settings,
            follower: Follower {
                fall: Compressor::FALL,
                now: 0,
            },
            mean: Mean::new(),
            edge: 1.0,
        }
    }

    pub(super) fn run(&mut self, block: &mut Block) {
        let makeup = amplitude_from_db(self.settings.makeup_db);
        for hop in block.chunks_mut(HOP) {
            let wanted = self.settings.wanted(peak(hop));
            let edge = self.mean.next(self.follower.next(wanted));
            glide(hop, makeup * self.edge, makeup * edge);
            self.edge = edge;
        }
    }
}

/// Nothing leaves over this, dB under full scale between samples (dBTP). The promise is -1; gains
/// that change within a hop bend a peak by less than the rest.
const CEILING_DB: f64 = -1.3;

/// The limiter: what comes out is one block behind what went in.
#[derive(Clone, Debug)]
pub(super) struct Limiter {
    follower: Follower,
    mean: Mean<{ Self::AHEAD + 1 }>,
    edge: f64,
    /// Wanted reductions, the last one that of the newest hop.
    wanted: VecDeque<i32>,
    /// The end of the block before the newest one, then the newest one.
    seen: Vec<[f64; 2]>,
    phases: [[f64; Self::TAPS]; 3],
}

impl Limiter {
    /// Hops that a gain goes down ahead of a peak.
    const AHEAD: usize = 8;
    /// Reduction is at most this, thousandths of a dB.
    const MOST: f64 = 60_000.0;
    /// Falls back by 100 dB/s.
    const FALL: i32 = 100;
    /// Blocks after which a peak has no effect.
    pub(super) const MEMORY_BLOCKS: i64 = 64;
    /// Samples that a value between two samples is worked out from.
    const TAPS: usize = 16;

    pub(super) fn new() -> Self {
        let half = Self::TAPS as f64 / 2.0;
        let phases = [1.0, 2.0, 3.0].map(|quarter| {
            std::array::from_fn(|tap| {
                // The value lies between taps 7 and 8.
                let x = tap as f64 - (half - 1.0) - quarter / 4.0;
                sinc(x) * kaiser(x / half, 6.0)
            })
        });
        Self {
            follower: Follower {
                fall: Self::FALL,
                now: 0,
            },
            mean: Mean::new(),
            edge: 1.0,
            wanted: VecDeque::from(vec![0; 2 * HOPS + 2]),
            seen: vec![[0.0; 2]; Self::TAPS + 2 * BLOCK_SAMPLES],
            phases,
        }
    }

    /// Takes in a block and gives the one before it, limited.
    pub(super) fn run(&mut self, newest: &Block) -> Block {
        self.seen.drain(..BLOCK_SAMPLES);
        self.seen.extend_from_slice(newest);
        // Hops are looked at half a filter late, so that no sample beyond the newest is needed.
        let first = self.seen.len() - BLOCK_SAMPLES - Self::TAPS / 2;
        for hop in 0..HOPS {
            let wanted = self.wanted_at(first + hop * HOP);
            self.wanted.pop_front();
            self.wanted.push_back(wanted);
        }
        // The block that goes out ends where the newest begins.
        let begin = self.seen.len() - 2 * BLOCK_SAMPLES;
        let mut out = [[0.0; 2]; BLOCK_SAMPLES];
        out.copy_from_slice(&self.seen[begin..begin + BLOCK_SAMPLES]);
        for (i, hop) in out.chunks_mut(HOP).enumerate() {
            // The edge at this hop's end: the largest wish from one hop before it to nine after.
            let at = self.wanted.len() - 2 * HOPS + i;
            let reach = at..=at + Self::AHEAD + 2;
            let largest = self.wanted.range(reach).copied().max().unwrap_or(0);
            let edge = self.mean.next(self.follower.next(largest));
            glide(hop, self.edge, edge);
            self.edge = edge;
        }
        out
    }

    /// The reduction that the hop from `at` on needs.
    fn wanted_at(&self, at: usize) -> i32 {
        let ceiling = amplitude_from_db(CEILING_DB);
        let hop = &self.seen[at..at + HOP];
        let mut highest = peak(hop);
        // Between samples a signal rises over them, but hardly by more than 9 dB.
        if highest < 0.35 * ceiling {
            return 0;
        }
        let half = Self::TAPS / 2;
        for i in at..at + HOP {
            let around = &self.seen[i + 1 - half..=i + half];
            for phase in &self.phases {
                let mut between = [0.0; 2];
                for (weight, sample) in phase.iter().zip(around) {
                    between[0] += weight * sample[0];
                    between[1] += weight * sample[1];
                }
                highest = highest.max(between[0].abs()).max(between[1].abs());
            }
        }
        let over_db = 20.0 * (highest / ceiling).log10();
        (over_db.max(0.0) * 1000.0).min(Self::MOST).ceil() as i32
    }
}
