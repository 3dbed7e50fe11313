//! Where the camera is while the shutter is open: the poses of a filmed picture, and what a person has
//! asked for over the scene's head.
//!
//! A scene that is a pure function of time is asked three times a picture, at t - H, t and t + H. A
//! stepped one cannot go back, so its steps run ahead to t + H and what it shows after each is kept as
//! long as a shutter can be open. Either way the poses depend on t alone, not on how often pictures are
//! asked for. It draws nothing.

use crate::camera::Camera;
use crate::film::{Depth, Film, Plane};
use crate::frame::{Frame, Input};
use crate::script::{self, STEP_HZ, Script};
use glam::Vec3;
use std::collections::VecDeque;

/// What a person wants of the film pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilmMode {
    /// What the scene says.
    #[default]
    Scene,
    /// The picture as it is drawn.
    Off,
    /// Filmed, by the scene's numbers or the default ones.
    On,
    /// As `On`, with planes for depth.
    Proxy,
    /// As `On`, by brute force where pictures are written to files.
    Reference,
}

impl FilmMode {
    fn apply(self, frame: &mut Frame) {
        match self {
            Self::Scene => {}
            Self::Off => frame.film = None,
            Self::On | Self::Reference => {
                frame.film.get_or_insert_with(Box::default);
            }
            Self::Proxy => {
                let planes = ground_and_lid(frame);
                let film = frame.film.get_or_insert_with(Box::default);
                film.depth = Depth::Proxy;
                if film.planes.is_empty() {
                    film.planes = planes;
                }
            }
        }
    }
}

/// Height of the original's lid over the ground, metres.
const LID_M: f32 = 13.0;

/// What a proxy is made of where the scene names no planes.
fn ground_and_lid(frame: &Frame) -> Vec<Plane> {
    let Some(walker) = &frame.walker else {
        return Vec::new();
    };
    let ground = Vec3::new(0.0, walker.floor_m as f32, 0.0);
    let lid = ground + Vec3::new(0.0, LID_M, 0.0);
    vec![
        Plane {
            point: ground,
            normal: Vec3::Y,
        },
        Plane {
            point: lid,
            normal: Vec3::NEG_Y,
        },
    ]
}

/// Steps that are kept: the longest exposure and readout, and some.
const KEPT_MAX: usize = 300;

/// What a stepped scene showed after each of its last steps.
#[derive(Default)]
pub struct Record {
    /// Number of the step that was run last, and what was shown; steps in order.
    shown: VecDeque<(u64, Frame)>,
    /// How far ahead of a picture the shutter of the last one reached, seconds.
    ahead_s: f64,
}

impl Record {
    /// Runs the steps up to the end of the shutter of the picture at `t_s` (script time) and keeps what
    /// is shown after each of them.
    fn run(&mut self, script: &mut Script, t_s: f64, input: &Input) -> Result<(), script::Error> {
        let step = |t_s: f64| (t_s * f64::from(STEP_HZ) + 1e-6).floor().max(0.0) as u64;
        let end = step(t_s + self.ahead_s) + u64::from(self.ahead_s > 0.0);
        let last = self.shown.back().map(|(number, _)| *number);
        let first = last.map_or_else(|| step(t_s - self.ahead_s), |number| number + 1);
        // What no shutter can reach any more is stepped over.
        let first = first.max(end.saturating_sub(KEPT_MAX as u64 - 1));
        for number in first..=end {
            let at_s = number as f64 / f64::from(STEP_HZ);
            script.advance_to(at_s, input)?;
            if self.shown.len() >= KEPT_MAX {
                self.shown.pop_front();
            }
            let mut frame = script.frame(at_s)?;
            frame.t_s = at_s;
            self.shown.push_back((number, frame));
        }
        Ok(())
    }

    /// What was shown at `t_s`, the camera between two steps.
    fn at(&self, t_s: f64) -> Option<Frame> {
        let place = (t_s * f64::from(STEP_HZ) + 1e-6).max(0.0);
        let after = self.shown.iter().find(|(number, _)| *number as f64 > place);
        let before = self
            .shown
            .iter()
            .rev()
            .find(|(number, _)| *number as f64 <= place);
        let (number, frame) = before.or(after)?;
        let mut frame = frame.clone();
        if let Some((_, next)) = after {
            let u = (place - *number as f64).clamp(0.0, 1.0) as f32;
            frame.camera = between(&frame.camera, &next.camera, u);
        }
        frame.t_s = t_s;
        Some(frame)
    }
}

fn between(a: &Camera, b: &Camera, u: f32) -> Camera {
    Camera {
        position: a.position.lerp(b.position, u),
        rotation: a.rotation.slerp(b.rotation, u).normalize(),
        fov_y_rad: a.fov_y_rad + (b.fov_y_rad - a.fov_y_rad) * u,
    }
}

/// The picture at `t_s` of the script's own time, with the poses of its shutter.
///
/// # Errors
/// A runtime error of the script.
pub fn filmed(
    script: &mut Script,
    record: &mut Record,
    t_s: f64,
    mode: FilmMode,
    input: &Input,
) -> Result<Frame, script::Error> {
    let is_recorded = script.is_stepped() && mode != FilmMode::Off;
    let mut frame = if is_recorded && record.ahead_s > 0.0 {
        record.run(script, t_s, input)?;
        match record.at(t_s) {
            Some(frame) => frame,
            None => script.frame(t_s)?,
        }
    } else {
        script.advance_to(t_s, input)?;
        script.frame(t_s)?
    };
    mode.apply(&mut frame);
    let half_s = frame.film.as_ref().map_or(0.0, |film| film.half_span_s());
    if is_recorded && half_s != record.ahead_s {
        record.ahead_s = half_s;
        if half_s > 0.0 {
            record.run(script, t_s, input)?;
        } else {
            record.shown.clear();
        }
    }
    if frame.film.is_some() {
        let open = pose(script, record, &frame, -1.0)?;
        let close = pose(script, record, &frame, 1.0)?;
        if let Some(film) = &mut frame.film {
            film.shutter = [open, close];
        }
    }
    Ok(frame)
}

/// The camera of [`exposed`] alone.
fn pose(
    script: &mut Script,
    record: &Record,
    frame: &Frame,
    f: f64,
) -> Result<Camera, script::Error> {
    let t_s = exposed_at_s(frame, f);
    if !script.is_stepped()
        && let Some(camera) = script.camera(t_s)?
    {
        return Ok(camera);
    }
    Ok(exposed(script, record, frame, f)?.camera)
}

/// When `f` of the shutter of `frame` is, seconds. Nothing is before a scene's time 0, so the shutter of
/// its first pictures stands still until then.
fn exposed_at_s(frame: &Frame, f: f64) -> f64 {
    let half_s = frame.film.as_deref().map_or(0.0, Film::half_span_s);
    (frame.t_s + f * half_s).max(0.0)
}

/// What was before the camera at `f` of the shutter of `frame`, -1 to 1, which [`filmed`] has just made.
///
/// # Errors
/// A runtime error of the script.
pub fn exposed(
    script: &mut Script,
    record: &Record,
    frame: &Frame,
    f: f64,
) -> Result<Frame, script::Error> {
    let t_s = exposed_at_s(frame, f);
    if f == 0.0 || t_s == frame.t_s {
        return Ok(frame.clone());
    }
    let mut instant = if script.is_stepped() {
        record.at(t_s).unwrap_or_else(|| frame.clone())
    } else {
        script.frame(t_s)?
    };
    instant.t_s = t_s;
    Ok(instant)
}
