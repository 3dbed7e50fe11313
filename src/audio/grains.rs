//! Granular loops: an endless texture from short pieces of one clip, without a seam.
//!
//! Pieces of one length start every half of it, each at a random place of the clip, under a window
//! whose squares add up to 1: pieces are unlike each other, so their powers add. Which place a piece
//! takes is a hash of its number, so any moment can be asked for.

use super::clip::Clip;
use super::{Error, RATE_HZ, within};
use crate::motion::noise::mix;
use std::f64::consts::PI;
use std::sync::Arc;

/// Lengths of pieces, seconds.
pub const GRAIN_S: std::ops::RangeInclusive<f64> = 0.01..=8.0;

/// A texture as plain data.
#[derive(Clone, Debug)]
pub struct Grains {
    /// Where pieces come from; held decoded.
    pub clip: Arc<Clip>,
    /// Length of a piece, seconds, in [`GRAIN_S`] and at most the clip's.
    pub grain_s: f64,
}

impl Grains {
    /// Checks every value.
    ///
    /// # Errors
    /// A length outside of its range, or a clip that is not held decoded.
    pub fn check(&self) -> Result<(), Error> {
        if !self.clip.is_held() {
            return Err(self.clip.too_long_for("grains"));
        }
        let most = (self.clip.length_samples() as f64 / f64::from(RATE_HZ)).min(*GRAIN_S.end());
        within("a grain in seconds", self.grain_s, *GRAIN_S.start(), most)
    }
}

/// A running texture.
#[derive(Debug)]
pub(super) struct Running {
    clip: Arc<Clip>,
    seed: u64,
    /// Samples from one piece to the next.
    hop: i64,
    /// Over two hops.
    window: Vec<f64>,
    /// Places where a piece may start.
    places: u64,
}

impl Running {
    pub(super) fn new(grains: &Grains, seed: u64) -> Self {
        let hop = ((grains.grain_s * f64::from(RATE_HZ) / 2.0) as i64).max(1);
        let length = 2 * hop;
        Self {
            clip: Arc::clone(&grains.clip),
            seed,
            hop,
            window: (0..length)
                .map(|i| (PI * (i as f64 + 0.5) / length as f64).sin())
                .collect(),
            places: (grains.clip.length_samples() - length).max(0) as u64 + 1,
        }
    }

    pub(super) fn fill(&self, first: i64, out: &mut [[f64; 2]]) {
        // `Grains::check` lets only held clips through.
        let Some(samples) = self.clip.held() else {
            return;
        };
        let mut at = first;
        let mut rest = out;
        while !rest.is_empty() {
            let (piece, inside) = (at.div_euclid(self.hop), at.rem_euclid(self.hop));
            let count = rest.len().min((self.hop - inside) as usize);
            let (now, after) = rest.split_at_mut(count);
            now.fill([0.0; 2]);
            // The piece that starts in this hop, and the one before in its second half.
            for (number, offset) in [(piece, inside), (piece - 1, inside + self.hop)] {
                let place = mix(self.seed ^ number.cast_unsigned()) % self.places;
                let from = place as usize + offset as usize;
                let source = samples.iter().skip(from);
                let window = &self.window[offset as usize..];
                for ((out, sample), weight) in now.iter_mut().zip(source).zip(window) {
                    out[0] += weight * f64::from(sample[0]);
                    out[1] += weight * f64::from(sample[1]);
                }
            }
            rest = after;
            at += count as i64;
        }
    }
}
