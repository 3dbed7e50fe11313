//! The damped harmonic oscillator, in closed form.
//!
//! `x'' = -w^2 (x - target) - 2 z w x'` with w = 2 pi frequency and damping ratio z: below 1 it
//! swings, at 1 it arrives fastest without swinging, above 1 it creeps. Being exact it can be asked
//! at any t and stepped with any dt, and never explodes.

use std::f64::consts::TAU;

/// Stiffness and damping of a spring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spring {
    /// Swings a second when undamped, Hz, above 0.
    pub frequency_hz: f64,
    /// Damping ratio, 0 or more.
    pub damping: f64,
}

impl Spring {
    /// Offset from the target and velocity after `t_s` seconds, for a start at `offset` with
    /// `velocity` (units per second). Before the start (t below 0) it rests at the start.
    #[must_use]
    pub fn at(self, offset: f64, velocity: f64, t_s: f64) -> (f64, f64) {
        if t_s <= 0.0 {
            return (offset, velocity);
        }
        let w = TAU * self.frequency_hz;
        let z = self.damping;
        // Near z = 1 both general forms divide by almost nothing; the critical form is within
        // 1e-6 of them there.
        if (z - 1.0).abs() < 1e-6 {
            let decay = (-w * t_s).exp();
            let slope = velocity + w * offset;
            (
                (offset + slope * t_s) * decay,
                (velocity - w * slope * t_s) * decay,
            )
        } else if z < 1.0 {
            let wd = w * (1.0 - z * z).sqrt();
            let (sin, cos) = (wd * t_s).sin_cos();
            let decay = (-z * w * t_s).exp();
            let b = (velocity + z * w * offset) / wd;
            let x = decay * (offset * cos + b * sin);
            let v = decay * ((b * wd - z * w * offset) * cos - (offset * wd + z * w * b) * sin);
            (x, v)
        } else {
            let root = (z * z - 1.0).sqrt();
            let (fast, slow) = (-w * (z + root), -w * (z - root));
            let a = (velocity - slow * offset) / (fast - slow);
            let b = offset - a;
            let (ea, eb) = ((fast * t_s).exp(), (slow * t_s).exp());
            (a * ea + b * eb, a * fast * ea + b * slow * eb)
        }
    }
}
