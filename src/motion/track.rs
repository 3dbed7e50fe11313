//! A baked simulation: values at an even rate, asked for any t.
//!
//! Between samples it is the cubic Hermite curve with central differences (uniform Catmull-Rom), so
//! it passes through every sample and has a continuous velocity. Before the first and after the
//! last sample it holds.

/// Samples of one or more numbers each.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    rate_hz: f64,
    lanes: usize,
    values: Vec<f64>,
}

impl Track {
    /// Sample i holds `values[i * lanes..(i + 1) * lanes]` and lies at i / `rate_hz` seconds.
    ///
    /// # Errors
    /// No sample, a length that is no multiple of `lanes`, or a rate that is not above 0.
    pub fn new(rate_hz: f64, lanes: usize, values: Vec<f64>) -> Result<Self, String> {
        if !(rate_hz.is_finite() && rate_hz > 0.0) {
            return Err(format!("the rate must be above 0 Hz, got {rate_hz}"));
        }
        if lanes == 0 || values.is_empty() || !values.len().is_multiple_of(lanes) {
            return Err(format!(
                "a track needs at least 1 sample of {lanes} numbers, got {} numbers",
                values.len()
            ));
        }
        Ok(Self {
            rate_hz,
            lanes,
            values,
        })
    }

    /// Numbers per sample.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Time of the last sample, seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        (self.values.len() / self.lanes - 1) as f64 / self.rate_hz
    }

    /// Lane `lane` at `t_s`; lanes beyond the last read as the last.
    #[must_use]
    pub fn at(&self, lane: usize, t_s: f64) -> f64 {
        let last = self.values.len() / self.lanes - 1;
        let lane = lane.min(self.lanes - 1);
        let sample = |i: usize| self.values[i.min(last) * self.lanes + lane];
        let x = (t_s * self.rate_hz).clamp(0.0, last as f64);
        let i = x as usize;
        let f = x - i as f64;
        let (p1, p2) = (sample(i), sample(i + 1));
        if f == 0.0 {
            return p1;
        }
        let (p0, p3) = (sample(i.saturating_sub(1)), sample(i + 2));
        let (m1, m2) = (0.5 * (p2 - p0), 0.5 * (p3 - p1));
        let (f2, f3) = (f * f, f * f * f);
        (2.0 * f3 - 3.0 * f2 + 1.0) * p1
            + (f3 - 2.0 * f2 + f) * m1
            + (3.0 * f2 - 2.0 * f3) * p2
            + (f3 - f2) * m2
    }
}
