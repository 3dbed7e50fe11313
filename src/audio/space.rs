//! Where sounds are and who hears them: pan and distance by the camera's own ears.
//!
//! The listener is the camera: its right axis is the line through both ears. A voice at a place is
//! panned by the sine of its angle to that axis under the constant-power law, loses level with
//! distance, and a little behind the head. No delays between the ears: a phone's microphones are a
//! hand apart. Space: world, metres.

use super::{Error, within};
use crate::camera::Camera;
use glam::Vec3;
use std::f64::consts::FRAC_PI_4;

/// Nearer than this a voice has no side: it is at the head, metres.
const HEAD_M: f64 = 0.15;

/// Level of what is straight behind, dB.
const BEHIND_DB: f64 = -3.0;

/// Where a voice is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// All around: left and right as the source has them.
    Around,
    /// Between left (-1) and right (1) whatever the camera does: the source made mono, of the same
    /// power everywhere (-3 dB on each side in the middle).
    Pan(f64),
    /// Somewhere in the world; the source made mono.
    At {
        /// World space, metres.
        position_m: Vec3,
        /// Distance at which the voice has its own level, metres; nearer it gets no louder.
        reference_m: f64,
        /// Power of the fall: 1 loses 6 dB with each doubling of the distance, 0 none.
        rolloff: f64,
    },
}

impl Place {
    /// Checks every value.
    ///
    /// # Errors
    /// A value that is not finite or outside of its range.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Around => Ok(()),
            Self::Pan(side) => within("a pan", *side, -1.0, 1.0),
            Self::At {
                position_m,
                reference_m,
                rolloff,
            } => {
                for axis in position_m.to_array() {
                    within("a voice's position in metres", f64::from(axis), -1e6, 1e6)?;
                }
                within("a reference distance in metres", *reference_m, 0.01, 1e4)?;
                within("a rolloff", *rolloff, 0.0, 4.0)
            }
        }
    }

    /// Factors on left and right.
    #[must_use]
    pub fn gains(&self, listener: &Listener) -> [f64; 2] {
        match *self {
            Self::Around => [1.0; 2],
            Self::Pan(side) => pan(side),
            Self::At {
                position_m,
                reference_m,
                rolloff,
            } => {
                let way = (position_m - listener.position_m).as_dvec3();
                let distance = way.length();
                // At the head every direction is as good as another.
                let direction = way / distance.max(HEAD_M);
                let side = direction.dot(listener.right.as_dvec3()).clamp(-1.0, 1.0);
                let ahead = direction.dot(listener.forward.as_dvec3());
                let behind = 10_f64.powf(BEHIND_DB / 20.0 * (0.5 - 0.5 * ahead.clamp(-1.0, 1.0)));
                let level = (reference_m / distance.max(reference_m)).powf(rolloff) * behind;
                let gains = pan(side).map(|gain| gain * level);
                if gains.iter().all(|gain| gain.is_finite()) {
                    gains
                } else {
                    [0.0; 2]
                }
            }
        }
    }
}

/// The constant-power law.
fn pan(side: f64) -> [f64; 2] {
    let (right, left) = ((side + 1.0) * FRAC_PI_4).sin_cos();
    [left, right]
}

/// The camera as one who hears, and what its microphone is exposed to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listener {
    /// World space, metres.
    pub position_m: Vec3,
    /// Unit vector out of the right ear, world space.
    pub right: Vec3,
    /// Unit vector of view, world space.
    pub forward: Vec3,
    /// Air over the microphone, from walking and from weather, m/s.
    pub wind_m_s: f32,
    /// How much the hands shake the phone: its acceleration without gravity, m/s².
    pub shake_m_s2: f32,
}

impl Default for Listener {
    fn default() -> Self {
        Self::from_camera(&Camera::default())
    }
}

impl From<&Camera> for Listener {
    fn from(camera: &Camera) -> Self {
        Self::from_camera(camera)
    }
}

impl Listener {
    /// A camera that rests in still air.
    #[must_use]
    pub fn from_camera(camera: &Camera) -> Self {
        Self {
            position_m: camera.position,
            right: camera.rotation * Vec3::X,
            forward: camera.rotation * Vec3::NEG_Z,
            wind_m_s: 0.0,
            shake_m_s2: 0.0,
        }
    }

    fn blend(&self, other: &Self, share: f32) -> Self {
        let turn = |a: Vec3, b: Vec3| a.lerp(b, share).try_normalize().unwrap_or(b);
        let number = |a: f32, b: f32| a + share * (b - a);
        Self {
            position_m: self.position_m.lerp(other.position_m, share),
            right: turn(self.right, other.right),
            forward: turn(self.forward, other.forward),
            wind_m_s: number(self.wind_m_s, other.wind_m_s),
            shake_m_s2: number(self.shake_m_s2, other.shake_m_s2),
        }
    }
}

/// Who hears at any time. Must give the same answer whenever it is asked.
pub trait Ears {
    /// The listener at a scene time.
    fn listener(&self, t_s: f64) -> Listener;
}

impl<F: Fn(f64) -> Listener> Ears for F {
    fn listener(&self, t_s: f64) -> Listener {
        self(t_s)
    }
}

impl Ears for Listener {
    fn listener(&self, _t_s: f64) -> Listener {
        *self
    }
}

/// Listeners at known times; in between they are blended, outside the nearest one holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListenerTrack {
    points: Vec<(f64, Listener)>,
}

impl ListenerTrack {
    /// Adds the listener at a time. A time before ones that are there replaces those: what was known
    /// of the future no longer holds after a jump back.
    pub fn push(&mut self, t_s: f64, listener: Listener) {
        let keep = self.points.partition_point(|(at, _)| *at < t_s);
        self.points.truncate(keep);
        self.points.push((t_s, listener));
    }

    /// Lets go of what lies before a time, but for the last point there.
    pub fn forget_before(&mut self, t_s: f64) {
        let before = self.points.partition_point(|(at, _)| *at < t_s);
        self.points.drain(..before.saturating_sub(1));
    }
}

impl Ears for ListenerTrack {
    fn listener(&self, t_s: f64) -> Listener {
        let after = self.points.partition_point(|(at, _)| *at <= t_s);
        match (
            after.checked_sub(1).map(|i| self.points[i]),
            self.points.get(after),
        ) {
            (Some((from_s, from)), Some((to_s, to))) => {
                from.blend(to, ((t_s - from_s) / (to_s - from_s)) as f32)
            }
            (Some((_, only)), None) | (None, Some(&(_, only))) => only,
            (None, None) => Listener::default(),
        }
    }
}
