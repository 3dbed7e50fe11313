//! Centripetal Catmull-Rom splines, asked by arc length.
//!
//! Centripetal knots (exponent 1/2) give no cusps and no loops within a segment (Yuksel, Schaefer,
//! Keyser 2011); a point is evaluated with the Barry-Goldman pyramid. Arc length is a table of
//! chords, [`CHORDS`] per segment, with one step of correction inside a chord, so moving u evenly moves
//! the point at an even speed.

use glam::DVec3;

/// Chords per segment in the length table: a quarter circle's length comes out to 1e-4.
pub const CHORDS: usize = 64;

/// A curve through points, open or closed.
#[derive(Clone, Debug)]
pub struct Spline {
    /// Points with a neighbour added before the first and two after the last.
    points: Vec<DVec3>,
    segments: usize,
    /// Length from the start to chord end i; the first is 0.
    lengths: Vec<f64>,
}

impl Spline {
    /// A spline through `points`; points equal to the one before are dropped.
    ///
    /// # Errors
    /// Fewer than two distinct points, or a number that is not finite.
    pub fn new(points: &[DVec3], closed: bool) -> Result<Self, String> {
        if let Some(i) = points.iter().position(|p| !p.is_finite()) {
            return Err(format!("point {} is not finite", i + 1));
        }
        let mut own = points.to_vec();
        own.dedup();
        if closed && own.len() > 1 && own.first() == own.last() {
            own.pop();
        }
        let n = own.len();
        if n < 2 {
            return Err(format!(
                "a spline needs at least 2 different points, got {n}"
            ));
        }
        let padded: Vec<DVec3> = if closed {
            (0..n + 3).map(|i| own[(i + n - 1) % n]).collect()
        } else {
            // The phantom ends continue the first and last chords.
            let before = own[0] * 2.0 - own[1];
            let after = own[n - 1] * 2.0 - own[n - 2];
            std::iter::once(before)
                .chain(own.iter().copied())
                .chain(std::iter::once(after))
                .collect()
        };
        let mut spline = Self {
            segments: padded.len() - 3,
            points: padded,
            lengths: vec![0.0],
        };
        let mut length = 0.0;
        let mut last = spline.segment(0, 0.0);
        for i in 1..=spline.segments * CHORDS {
            let p = spline.segment(
                (i - 1) / CHORDS,
                ((i - 1) % CHORDS + 1) as f64 / CHORDS as f64,
            );
            length += p.distance(last);
            spline.lengths.push(length);
            last = p;
        }
        Ok(spline)
    }

    /// Length of the whole curve.
    #[must_use]
    pub fn length(&self) -> f64 {
        self.lengths.last().copied().unwrap_or(0.0)
    }

    /// The point at the share `u` (0..1, clamped) of the length.
    #[must_use]
    pub fn at(&self, u: f64) -> DVec3 {
        let wanted = u.clamp(0.0, 1.0) * self.length();
        let after = self
            .lengths
            .partition_point(|l| *l < wanted)
            .clamp(1, self.lengths.len() - 1);
        let (a, b) = (self.lengths[after - 1], self.lengths[after]);
        let share = if b > a { (wanted - a) / (b - a) } else { 0.0 };
        let segment = ((after - 1) / CHORDS).min(self.segments - 1);
        let chord = (after - 1 - segment * CHORDS) as f64;
        let point = |share: f64| self.segment(segment, (chord + share) / CHORDS as f64);
        // Within a chord the speed changes by some per cent: where the first guess comes out says
        // how to mend it.
        let guess = point(share);
        let missed = if b > a {
            share - guess.distance(point(0.0)) / (b - a)
        } else {
            0.0
        };
        point(share + missed)
    }

    /// Unit direction of travel at the share `u` of the length.
    #[must_use]
    pub fn tangent(&self, u: f64) -> DVec3 {
        // A thousandth of the length: longer than a chord's rounding, shorter than any bend seen.
        let u = u.clamp(0.0, 1.0);
        (self.at(u + 5e-4) - self.at(u - 5e-4)).normalize_or_zero()
    }

    /// Segment `i` (between padded points i+1 and i+2) at `s` in 0..1, by Barry and Goldman.
    fn segment(&self, i: usize, s: f64) -> DVec3 {
        let p = &self.points[i..i + 4];
        let knot = |a: DVec3, b: DVec3| a.distance(b).sqrt();
        let t1 = knot(p[0], p[1]);
        let t2 = t1 + knot(p[1], p[2]);
        let t3 = t2 + knot(p[2], p[3]);
        let t = t1 + s * (t2 - t1);
        let blend = |a: DVec3, b: DVec3, from: f64, to: f64| a.lerp(b, (t - from) / (to - from));
        let (a1, a2, a3) = (
            blend(p[0], p[1], 0.0, t1),
            blend(p[1], p[2], t1, t2),
            blend(p[2], p[3], t2, t3),
        );
        let (b1, b2) = (blend(a1, a2, 0.0, t2), blend(a2, a3, t1, t3));
        blend(b1, b2, t1, t2)
    }
}
