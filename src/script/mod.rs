//! The only place that knows Lua: a scene script in a sandboxed Luau VM, asked for [`Frame`]s.
//!
//! One [`Script`] is one VM. It opens no file, asks no device and draws no unseeded random: text
//! comes through [`Files`], splats through [`Assets`], time and input as arguments. The one clock it
//! reads is the watchdog's (`budget`), which can stop a script and can do nothing else.
//!
//! # The contract of a scene
//! The file returns a table of data and at most these functions, all optional:
//!
//! - `load(stage)`: once a version.
//! - `step(dt, input)`: at a fixed [`STEP_HZ`], with whatever state the script likes to keep.
//! - `frame(t)`: returns nothing or a table with any of
//!   - `camera`: `{position, target, up, roll, fov}`, `{position, yaw, pitch, roll, fov}` or
//!     `{position, rotation, fov}`; angles in degrees, `fov` vertical, 60 when absent;
//!   - `background`: `'#rrggbb[aa]'`, `{r, g, b[, a]}` or a vector, display space;
//!   - `state`: a string;
//!   - `draws`: a list of handles or `{splats = handle, position, rotation, scale, tint, visible, effects}`;
//!   - `walker`: `{speed, phase, floor, clearance, head_yaw, head_pitch}` of the one who carries the
//!     camera, as in [`Walker`](crate::frame::Walker), angles in degrees; only `clearance` may be left
//!     out;
//!   - `film`: how it is filmed, as in [`Film`](crate::film::Film): `true` for the default, or a table
//!     with any of `exposure`, `readout` (s), `direction` (of the rows: `down`, `up`, `left`, `right`),
//!     `overscan`, `depth` (`two_layers`, `one_layer`, `proxy`), `planes` (`{{point, normal}, ...}`),
//!     `jitter`, `stops`, `balance` (`{r, g, b}`), `focus`, `aperture` (m), `distortion`, `aberration`,
//!     `falloff`, `halation` (`{strength, radius, threshold}`), `sharpen`, `shoulder`, `noise`
//!     (`{shot, read}`). The camera is then asked for at both ends of the shutter too.
//!
//!   Without `draws` every visible asset is drawn at its handle's placement. `frame` may also set
//!   handles (`hero.position = ...`): such changes hold for that one picture, so that asking for
//!   any t in any order gives the same pictures. Without `camera` here or in the scene's table,
//!   the camera frames what is drawn.
//! - `cues(from, to)`: returns nothing or a list of `{t =, kind =, ...}` with `from <= t < to`: what
//!   happens in that time, such as footsteps. Pure: asked for any interval, in any order.
//! - `beds()`: once a version, after `load`: returns a list of voices (see below) that are there from
//!   the beginning, of any length; `t` is 0 where it is left out.
//! - `voices(from, to)`: returns nothing or a list of voices with `from <= t < to`, none longer than
//!   [`VOICE_S_MAX`]. Where the scene has no `step` it is pure and asked for whole seconds, in any
//!   order; else for the time since it was asked last.
//! - `ears(t)`: who hears: a camera's table (`fov` means nothing), with `wind` (m/s of air over the
//!   microphone, 0) and `shake` (m/s² of the hands, 0). Without it the camera of `frame(t)` hears.
//! - `event(e)`: with `kind`, `name`, `values` as in [`Event`], `x`, `y` for the first two values,
//!   `target`, a handle, and for clicks `splat`, the number of the splat that was met, from 1.
//! - `on_unload() -> data`, and `on_reload(data)` in the next version, after its `load`.
//!
//! Data fields that mean something to the host: `duration` (s), `background`, `camera`, `film`. `camera`
//! may be a function of t: `frame` then leaves it out, and a shutter asks for it alone.
//! Degrees, seconds and metres in Lua; `vector` for every point.
//!
//! # What a scene can use
//! Luau's own libraries without io, os and whatever runs text, and:
//!
//! - `stage`: `splats(path[, {level, axes}])`, `generate{positions, scales, colours[, opacities,
//!   rotations, sh, name]}` (buffers of f32, lists, or one value for all), `builder([n[, degree]])` with
//!   `:add(position, scale, colour[, opacity[, facing[, along]]])`, `:sheet{points, across, count, ...}`
//!   (a surface of splats: see below) and `:build([name])`, `texture(pixels, across)`,
//!   `rig(handle, {bones, weights, shapes})`, `probe([handles[, {cell}]])`,
//!   `effect(path[, defaults])`, `spread(handle[, {cell}])`, `data(path)` (a JSON file of
//!   the scene, read-only), all while loading; `save(path, data)` (such a file, in a window only); `framing([handle])`, `args`, `seed`,
//!   `loop` (s or nil), `aspect` (of the first picture), `reduced_motion`.
//! - Handles: `position`, `rotation`, `scale`, `tint`, `visible`, `pickable`; `name` and `count` to
//!   read. Avatars also: `bones`, `shapes`, `states`, `manifest`, `asset_type` to read, `pivot`,
//!   `:bone(name)`, `:shape(name)`, `:set_shape(name, value)`, `:set_shapes{...}`, and while loading
//!   `:add_bone{...}` and `:add_shape{...}`. All: `:edit{...}` while loading.
//!   `effects`: a list of up to four effects, each as it is or as `{effect, uniform = value, ...}`.
//! - Effects, of `stage.effect`: WGSL with `fn effect(splat: Splat, uniforms: Uniforms, t_s: f32) -> Splat`,
//!   a file of the scene or of the library (`@stage/effects/burn`); see [`crate::effect`]. Values are
//!   given by the names in `struct Uniforms` (f32: a number or true and false; vec3f: a vector, a list, `#rrggbb`;
//!   others: lists). Fields `file`, `uniforms`.
//! - Spreads, of `stage.spread` (one a handle; metres of the handle's own space): `:begin(splat or vector[,
//!   way]) -> boolean` starts a wave along the surface from a splat, or from the one nearest to a point, whose
//!   way counts as `way` (0); `:reach(way)` lets it go on that far; `:at(splat) -> way or nil`; `cell`, `count`
//!   (cells), `reached`, `done` to read.
//! - Bones: `rotation`, `move`, `:turn(x, y, z)`; `name`, `parent`, `rest` to read.
//! - Edits: `opacity`, `tint`, `displace`, `centre`, `rotation`, `soft_edge`, `inverted`, `enabled`.
//! - Probes, of the splats as they stood when they were made (metres): `:look(position, direction, max)
//!   -> distance or nil, r, g, b, seen`, where half of the light is gone, the colour of what was met
//!   (add `(1 - seen)` times the background), and its share; `:ground(position) -> y or nil`;
//!   `:clearance(foot[, low, high])`, to the next wall between two heights above the foot, at most 2;
//!   `cell` and `count` to read.
//! - `motion`: `ease(name, u)`, `bezier(x1, y1, x2, y2, u)`, `noise(x[, seed[, octaves]])`,
//!   `spring{from, to, velocity, frequency, damping}:at(t)`, `spring_step(value, velocity, target,
//!   frequency, damping, dt)`, `spline{p1, p2, ..., closed}` with `:at(u)`, `:tangent(u)`, `.length`,
//!   `track(rate, count, function(t, i))` with `:at(t)`, `.duration`; `track(rate, buffer[, lanes])` of
//!   little-endian f64, whose `:at(t)` returns a number for each lane.
//! - `sound`, while loading: `clip(path)` (Ogg Vorbis, WAV, FLAC, MP3; fields `name`, `duration`,
//!   `channels`), `bus(name, {gain_db, mic})` (`main` is there; `mic = false` is heard directly),
//!   `mic(preset)` or `mic{preset, low_hz, high_hz, width, noise_db, wind_db, handling_db,
//!   gain = {aim_db, boost_db, cut_db}, compressor = {threshold_db, ratio, makeup_db}}` (`phone`,
//!   `old_phone`, `call`; `false`, as at first, is none), and `follow(clip)`, whose `:at(t)` returns
//!   level (dBFS), centre of the spectrum (Hz), and the levels of what is low, middle and high.
//! - A voice is a table: `t` (s); one of `noise` (`white`, `pink`, `brown`, `blue`, `violet`; -20 dBFS),
//!   `clicks` (a second), `impulse = true`, `tone = {hz, partials}`, `clip` (a clip, or `{clip, from,
//!   speed, loop}`), `grains = {clip, grain}`; `attack`, `hold`, `decay` (s; decay to -60 dB) before its
//!   `filters`, a list of `{kind = "low_pass" | "high_pass" | "band_pass" | "peak" | "low_shelf" |
//!   "high_shelf", hz, q, gain_db}` and `{kind = "modes", {hz, t60, gain_db}, ...}` one after the other;
//!   `gain_db`, `levels` (`{{t, db}, ...}`, scene time), `wander = {depth_db, rate_hz}`; `position` (m)
//!   with `reference` (m, 1) and `rolloff` (1), or `pan` (-1 to 1), or neither: all around; `fade_in`,
//!   `fade_out`, `duration` (s), `bus`, `seed`.
//! - `log.info`, `log.warn`, `log.error`, `print`.
//! - `require('./x')` inside the scene, `require('@stage/x')` for the library in `scripts/`: `avatar`
//!   (made of `states`, `ghost`, `blink`, `gaze`, `face`, `sphere_camera`, `avatar_sounds`, `speech`), `walker`
//!   (made of `walk_route`, `walk_pace`, `walk_gait`, `walk_attention`, `walk_head`), `footsteps`, `beds`, `ears`,
//!   `orbit`, `shapes`, `light`, `paint`, `phone`, `statue`, `street`, `stroll`, `walk_laying`; `effects/burn`,
//!   `effects/reveal`, `effects/dissolve`, `effects/wind`, `effects/transition`.
//!
//! # Sheets
//! `builder:sheet{points, across, count}` makes any number of splats on the surface that runs straight
//! between the points of a grid (row by row along u, `across` in a row; a list of vectors or a buffer of
//! f32). Optional: `texture` (of `stage.texture`: a buffer of red, green, blue, gloss bytes, rows from
//! v = 0 up) with `texture_from`, `texture_to` ({u, v} at the first and last point, repeated beyond 0 to
//! 1); `light` (factors of the display-space colour, three f32 each, `light_across` in a row) with
//! `light_from`, `light_to`; `tint`; `stretch` (1: width over height of a splat's cell), `jitter` (0.2
//! of a cell), `overlap` (0.7: standard deviation over distance), `thickness` (0.003 m), `opacity` (0.99),
//! `variation` (0: share of brightness), `depth` (0 m off the surface), `tilt` (0 degrees out of it),
//! `seed`; `gloss`: up to four of `{direction, colour, sharpness}`, lights mirrored in the surface, as
//! spherical harmonics of the builder's degree (`stage.builder(n, 3)`).
//!
//! `math.random` depends on the seed and on what is being asked (t, step, event), on nothing else.

mod args;
mod blame;
mod body;
mod budget;
mod cues;
mod edits;
mod effects;
mod film;
mod frame;
mod log;
mod modules;
mod motion;
mod plain;
mod probe;
mod quota;
mod reading;
mod sheets;
mod sound;
mod splats;
mod stage;
mod testing;
mod vm;

use crate::audio::{Clip, Listener, VoiceSpec};
use crate::camera::Camera;
use crate::frame::{Cue, Event, Frame, Input};
use crate::scene::{Body, Splats};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

pub use budget::{
    CALL_INTERRUPTS_MAX, CALL_S_MAX, DETERMINISTIC_S_MAX, LOAD_FIRST_S_MAX, LOAD_INTERRUPTS_MAX,
    LOAD_S_MAX, MEMORY_BYTES_MAX,
};
pub use modules::{library, required};
pub use reading::{Reading, TextCall};
pub use sound::{SoundPlan, VOICE_S_MAX};
pub use testing::{Outcome, Subject, run_tests};

/// Steps a second of scene time.
pub const STEP_HZ: u32 = 240;

/// After a longer gap than this (a debugger, a laptop's lid) a live scene skips steps instead of
/// catching up, seconds.
pub const LIVE_GAP_S_MAX: f64 = 0.25;

/// Text and data files of a scene, by relative path with `/`; never outside the scene.
pub trait Files {
    /// The bytes of one file.
    ///
    /// # Errors
    /// A sentence without the path: "not found", "larger than ...".
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Replaces or makes a data file, whole or not at all. Only a scene that plays from a folder in a
    /// window can be saved into.
    ///
    /// # Errors
    /// A sentence without the path: that this scene cannot be saved into, or what the disk says.
    fn save(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let _ = (path, bytes);
        Err(NOT_SAVED.to_owned())
    }
}

/// What [`Files::save`] says where nothing is saved.
pub const NOT_SAVED: &str =
    "only a scene that plays from a folder in a window (splatstage play DIR) can save";

/// Loads splat assets and sounds for scripts; implemented in `app` over `formats`, with a cache.
pub trait Assets {
    /// `path` is relative to the scene; `level`/`axes` as in `formats::LoadOptions`.
    ///
    /// # Errors
    /// A sentence that names file and entry.
    fn splats(&self, path: &str, level: Option<u32>, axes: Option<&str>) -> Result<Asset, String>;

    /// A sound file of the scene, decoded or ready to be.
    ///
    /// # Errors
    /// A sentence that names the file; whoever has no sounds says so.
    fn clip(&self, path: &str) -> Result<Arc<Clip>, String> {
        Err(format!("{path}: no sounds are read here"))
    }
}

/// A loaded splat file, or an avatar.
#[derive(Clone, Debug)]
pub struct Asset {
    /// What is drawn.
    pub splats: Arc<Splats>,
    /// Bones, skin and shapes of an avatar, row by row the splats' own.
    pub body: Option<Arc<Body>>,
    /// What else a bundle says: an object with `manifest`, `states` and `asset_type` (`head`,
    /// `body`, `object`), or null.
    pub facts: Arc<serde_json::Value>,
}

impl Asset {
    /// Splats that are no avatar.
    #[must_use]
    pub fn splats_alone(splats: Arc<Splats>) -> Self {
        Self {
            splats,
            body: None,
            facts: Arc::new(serde_json::Value::Null),
        }
    }
}

/// What went wrong in a script, and where in the author's files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct Error {
    /// The file, as `Setup::name` and the path inside the scene, joined by `/`.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// One sentence or more, without the place.
    pub message: String,
    /// Innermost call first, one `file:line in function` per line; may be empty.
    pub traceback: String,
}

/// A load that failed, and the files it touched before: the ones to watch for a mended version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct LoadError {
    /// What went wrong.
    pub error: Error,
    /// As [`Script::watched`].
    pub watched: Vec<String>,
}

impl From<LoadError> for Error {
    fn from(failed: LoadError) -> Self {
        failed.error
    }
}

/// Receives a level (`info`, `warn`, `error`) and one line of text.
pub type Log = Rc<dyn Fn(&str, &str)>;

/// What a load needs from the host.
pub struct Setup {
    /// Prefix of file names in messages, e.g. `scenes/hello` or the path that the user named.
    pub name: String,
    /// Entry file, usually `scene.luau`.
    pub entry: String,
    /// The scene's own files.
    pub files: Arc<dyn Files>,
    /// The scene's splats.
    pub assets: Arc<dyn Assets>,
    /// Seeds `math.random` and is handed to the script as `stage.seed`.
    pub seed: u64,
    /// Live: budgets by clock; offline: budgets by count (deterministic).
    pub live: bool,
    /// Nothing plays yet, so a load may take longer.
    pub is_first: bool,
    /// Arguments for the script (`stage.args`), a JSON object or null. The viewer gets `file` and
    /// optionally `eye`, `target`, `up` (three numbers each), `fov` (degrees), `turn` (xyzw),
    /// `background`, `level`, `axes`.
    pub args: serde_json::Value,
    /// Length after which a sequence of pictures has to close (`stage.loop`), seconds.
    pub loop_s: Option<f64>,
    /// Width over height of the pictures while loading (`stage.aspect`); `input.aspect` follows it.
    pub aspect: f32,
    /// The person asked for less motion (`stage.reduced_motion`).
    pub reduced_motion: bool,
    /// Files that stand in for those of the library of the same name.
    pub library: Option<Arc<dyn Files>>,
    /// Data that the former version handed over by `on_unload`, JSON.
    pub handed_over: Option<serde_json::Value>,
    /// Receives `log.info/warn/error` and `print` lines, now and later.
    pub log: Log,
}

/// A state machine of `@stage/states` as a graph.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Chart {
    /// Names of the states, sorted.
    pub states: Vec<String>,
    /// Where it begins.
    pub first: String,
    /// Ways that are taken without a script's asking.
    pub ways: Vec<Way>,
    /// Names that transitions and holds give and that are no state.
    pub strangers: Vec<String>,
}

/// An edge of a [`Chart`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Way {
    /// A state, or `*` for any.
    pub from: String,
    /// A state; may be one that there is not.
    pub to: String,
}

impl Chart {
    /// States that no way leads into, from where it begins; states that are `asked` for by name count as
    /// reached.
    #[must_use]
    pub fn unreached(&self, asked: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut reached: std::collections::BTreeSet<&str> = (self.states.iter())
            .map(String::as_str)
            .filter(|name| *name == self.first || asked(name))
            .collect();
        loop {
            let more: Vec<&str> = (self.ways.iter())
                .filter(|way| way.from == "*" || reached.contains(way.from.as_str()))
                .map(|way| way.to.as_str())
                .filter(|to| !reached.contains(to))
                .collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        let names = self.states.iter().map(String::as_str);
        names.filter(|name| !reached.contains(name)).collect()
    }
}

/// A loaded scene script: one VM.
pub struct Script {
    vm: vm::Vm,
    scene: vm::Scene,
    steps_done: u64,
    events_done: u64,
    /// Drag and wheel that no step has seen yet.
    pending: (glam::Vec2, f32),
    /// Live: steps that were not run; else those that are not to run.
    left_out: Vec<Range<u64>>,
}

impl Script {
    /// Runs the entry file, its `load` and, with `handed_over`, its `on_reload`.
    ///
    /// # Errors
    /// The first thing that went wrong, with the author's file and line.
    pub fn load(setup: Setup) -> Result<Self, LoadError> {
        let (vm, scene) = vm::Vm::load(setup)?;
        Ok(Self {
            vm,
            scene,
            steps_done: 0,
            events_done: 0,
            pending: Default::default(),
            left_out: Vec::new(),
        })
    }

    /// Duration that the scene names, seconds.
    #[must_use]
    pub fn duration_s(&self) -> Option<f64> {
        self.scene.duration_s
    }

    /// Whether the scene has `step`.
    #[must_use]
    pub fn is_stepped(&self) -> bool {
        self.scene.step.is_some()
    }

    /// Runs `step` at [`STEP_HZ`] up to `t_s` (no-op without `step` or when `t_s` is not later than
    /// the time advanced to). The input is held for all of them, except that drag and wheel reach
    /// the first step only; with no step to run they wait for the next call. Live, at most
    /// [`LIVE_GAP_S_MAX`] is caught up.
    ///
    /// # Errors
    /// As thrown by `step`; the time then counts as advanced to.
    pub fn advance_to(&mut self, t_s: f64, input: &Input) -> Result<(), Error> {
        let Some(step) = self.scene.step.clone() else {
            return Ok(());
        };
        self.pending.0 += input.drag;
        self.pending.1 += input.wheel;
        // A microstep of slack, so that t = k / 240 computed elsewhere is step k.
        let wanted = (t_s * f64::from(STEP_HZ) + 1e-6).floor().max(0.0) as u64;
        if wanted <= self.steps_done {
            return Ok(());
        }
        let gap_max = (LIVE_GAP_S_MAX * f64::from(STEP_HZ)) as u64;
        let first = if self.vm.is_live() {
            self.steps_done.max(wanted.saturating_sub(gap_max))
        } else {
            self.steps_done
        };
        if first > self.steps_done {
            self.left_out.push(self.steps_done..first);
        }
        self.steps_done = wanted;
        let (mut drag, mut wheel) = std::mem::take(&mut self.pending);
        if self.vm.is_live() {
            let end = self.vm.step(&step, first..wanted, input, drag, wheel)?;
            if end < wanted {
                self.left_out.push(end..wanted);
            }
            return Ok(());
        }
        let mut next = first;
        while next < wanted {
            if let Some(skipped) = self.left_out.iter().find(|r| r.contains(&next)) {
                next = skipped.end;
                continue;
            }
            let starts = self.left_out.iter().map(|r| r.start);
            let end = starts
                .filter(|s| *s > next)
                .min()
                .map_or(wanted, |s| s.min(wanted));
            self.vm.step(&step, next..end, input, drag, wheel)?;
            (drag, wheel) = (glam::Vec2::ZERO, 0.0);
            next = end;
        }
        self.left_out.retain(|r| r.end > wanted);
        // With no step to run they wait.
        self.pending = (drag, wheel);
        Ok(())
    }

    /// Steps that a live script had no time for, since the last call.
    pub fn take_left_out(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.left_out)
    }

    /// Leaves out steps that are to come, as a live script did that had no time for them.
    pub fn leave_out(&mut self, steps: impl IntoIterator<Item = Range<u64>>) {
        self.left_out.extend(steps);
    }

    /// The frame at `t_s` (for stepped scenes: at or before the time advanced to).
    ///
    /// # Errors
    /// As thrown by `frame`, or what is wrong with the table that it returned.
    pub fn frame(&mut self, t_s: f64) -> Result<Frame, Error> {
        self.vm.frame(&self.scene, t_s)
    }

    /// The camera at `t_s`, where the scene has a function for it: quicker than [`Script::frame`].
    ///
    /// # Errors
    /// As thrown by `camera`, or what is wrong with the table that it returned.
    pub fn camera(&mut self, t_s: f64) -> Result<Option<Camera>, Error> {
        self.vm.camera(&self.scene, t_s)
    }

    /// What happens at `from_s` or later and before `to_s`, in order of time; nothing where the scene
    /// has no `cues`. May be asked for any interval in any order; of intervals side by side each cue
    /// is in one.
    ///
    /// # Errors
    /// As thrown by `cues`, or what is wrong with the list that it returned.
    pub fn cues(&mut self, from_s: f64, to_s: f64) -> Result<Vec<Cue>, Error> {
        match &self.scene.cues {
            Some(callback) => self.vm.cues(callback, from_s, to_s),
            None => Ok(Vec::new()),
        }
    }

    /// What the scene has said of sound: buses, microphone, beds.
    #[must_use]
    pub fn sound(&self) -> SoundPlan {
        self.vm.sound()
    }

    /// Voices that start at `from_s` or later and before `to_s`, script time; nothing where the scene
    /// has no `voices`. As for [`Script::cues`], of intervals side by side each voice is in one.
    ///
    /// # Errors
    /// As thrown by `voices`, or what is wrong with the list that it returned.
    pub fn voices(&mut self, from_s: f64, to_s: f64) -> Result<Vec<VoiceSpec>, Error> {
        match &self.scene.voices {
            Some(callback) => self.vm.voices(callback, from_s, to_s),
            None => Ok(Vec::new()),
        }
    }

    /// Who hears at `t_s`, by the scene's `ears`; `None` where it has none: the camera hears.
    ///
    /// # Errors
    /// As thrown by `ears`, or what is wrong with the table that it returned.
    pub fn ears(&mut self, t_s: f64) -> Result<Option<Listener>, Error> {
        match &self.scene.ears {
            Some(callback) => self.vm.ears(callback, t_s).map(Some),
            None => Ok(None),
        }
    }

    /// Calls `event`; a no-op where the scene has none.
    ///
    /// # Errors
    /// As thrown by `event`.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        let Some(callback) = &self.scene.event else {
            return Ok(());
        };
        self.events_done += 1;
        self.vm.event(callback, event, self.events_done)
    }

    /// Calls `on_unload` and returns its data for the next version; `None` where there is none.
    ///
    /// # Errors
    /// As thrown by `on_unload`, or when its data is not plain.
    pub fn unload(&mut self) -> Result<Option<serde_json::Value>, Error> {
        match &self.scene.on_unload {
            Some(callback) => self.vm.unload(callback),
            None => Ok(None),
        }
    }

    /// Every file that the load touched or looked for: modules and assets, relative to the scene,
    /// sorted.
    #[must_use]
    pub fn watched(&self) -> Vec<String> {
        self.vm.watched()
    }

    /// The state machines that the script has made with `@stage/states`, in the order they were made.
    ///
    /// # Errors
    /// The library in use has no charts to give, or fails at it.
    pub fn charts(&mut self) -> Result<Vec<Chart>, Error> {
        self.vm.charts()
    }

    /// Names and bodies of the scene's avatars.
    #[must_use]
    pub fn bodies(&self) -> Vec<(String, Arc<Body>)> {
        self.vm.bodies()
    }

    /// Every name that a script can use without declaring it.
    #[must_use]
    pub fn globals(&self) -> std::collections::BTreeSet<String> {
        self.vm.globals()
    }

    /// Line of the entry's file, or of a module, on which `cues` begins; `None` where there is none.
    #[must_use]
    pub fn place_of_cues(&self) -> Option<(String, u32)> {
        self.scene.cues.as_ref().and_then(vm::place_of)
    }

    /// Bytes that the VM holds, without splats.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.vm.memory_bytes()
    }
}
