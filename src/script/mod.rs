//! The only place that knows Lua: a scene script in a sandboxed Luau VM, asked for [`Frame`]s.
//!
//! One [`Script`] is one VM. It opens no file, asks no device and draws no unseeded random: text
//! comes through [`Files`], splats through [`Assets`], time and input as arguments. The one clock it
//! reads is the watchdog's (`budget`), which can stop a script and can do nothing else.
//!
//! # The contract of a scene
//! The file returns a table: functions that the host calls, and fields that it reads, all optional. What
//! they are, what they return and everything that a script can use is one table in [`api`], which binds
//! it too; `scripts/reference.md` is that table to read. What a table cannot say:
//!
//! - `frame`, `cues`, `ears` and, where there is no `step`, `voices` are pure: asked for any time, in any
//!   order, they give the same. What `frame` does to handles holds for that one picture.
//! - `step` runs at a fixed [`STEP_HZ`], in order, with whatever state the script likes to keep.
//! - `load` runs once a version; everything is made in it or in the file's body, and nothing later.
//!   `on_unload` hands plain data to `on_reload` of the next version, after its `load`.
//! - `math.random` depends on the seed and on what is being asked (t, step, event), on nothing else.
//! - Functions of the library (`@stage/...`, in `scripts/`) are policy in Luau, made of nothing but this.
//!
//! Degrees, seconds and metres in Lua; `vector` for every point.

pub mod api;
mod args;
mod blame;
mod body;
mod budget;
mod console;
mod cues;
mod edits;
mod effects;
mod film;
mod frame;
mod keep;
mod log;
mod modules;
mod motion;
mod params;
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
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

pub use budget::{
    CALL_INTERRUPTS_MAX, CALL_S_MAX, DETERMINISTIC_S_MAX, LOAD_FIRST_S_MAX, LOAD_INTERRUPTS_MAX,
    LOAD_S_MAX, MEMORY_BYTES_MAX,
};
pub use modules::{library, required};
pub use params::{Changed, Given, PARAMS_MAX, Param, ParamValue};
pub use reading::{Reading, TextCall, rewrite_param};
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

    /// All splats that a built-in scene, such as `@alley`, draws in its first picture. `args` is what its
    /// script finds in `stage.args`.
    ///
    /// # Errors
    /// A sentence that names the scene.
    fn scene(&self, name: &str, args: &serde_json::Value) -> Result<Asset, String> {
        let _ = args;
        Err(format!("{name}: no other scene is played here"))
    }

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
    /// Only sound is asked for (`stage.heard_only`).
    pub heard_only: bool,
    /// Files that stand in for those of the library of the same name.
    pub library: Option<Arc<dyn Files>>,
    /// Data that the former version handed over by `on_unload`, JSON.
    pub handed_over: Option<serde_json::Value>,
    /// What `persist` kept in the former version, by its keys.
    pub kept: serde_json::Map<String, serde_json::Value>,
    /// Parameters that were set.
    pub params: BTreeMap<String, Given>,
    /// Receives `log.info/warn/error` and `print` lines, now and later.
    pub log: Log,
}

/// A state machine of `@stage/states` as a graph.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
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
    /// Lines of a console.
    lines_done: u64,
    /// Drag and wheel that no step has seen yet.
    pending: (glam::Vec2, f32),
    /// Live: steps that were not run; else those that are not to run.
    left_out: Vec<Range<u64>>,
    /// Live: callbacks that have failed and are not called again.
    suspended: Vec<&'static str>,
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
            lines_done: 0,
            pending: Default::default(),
            left_out: Vec::new(),
            suspended: Vec::new(),
        })
    }

    /// Duration that the scene names, seconds.
    #[must_use]
    pub fn duration_s(&self) -> Option<f64> {
        self.scene.duration_s
    }

    /// Live: callbacks that have failed, in the order in which they did. Each is called no more by this version,
    /// so that one mistake is one message and the rest goes on: without `step` or `event` the picture goes on
    /// as they left it, without `frame` (which stands for `camera` too) there is no other picture.
    #[must_use]
    pub fn suspended(&self) -> &[&'static str] {
        &self.suspended
    }

    fn is_suspended(&self, callback: &str) -> bool {
        self.suspended.contains(&callback)
    }

    /// A callback that fails while it plays live is not called again.
    fn heard<T>(&mut self, callback: &'static str, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() && self.vm.is_live() && !self.is_suspended(callback) {
            self.suspended.push(callback);
        }
        result
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
        if self.is_suspended("step") {
            return Ok(());
        }
        if self.vm.is_live() {
            let run = self.vm.step(&step, first..wanted, input, drag, wheel);
            let end = self.heard("step", run)?;
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
        let frame = self.vm.frame(&self.scene, t_s);
        self.heard("frame", frame)
    }

    /// The camera at `t_s`, where the scene has a function for it: quicker than [`Script::frame`].
    ///
    /// # Errors
    /// As thrown by `camera`, or what is wrong with the table that it returned.
    pub fn camera(&mut self, t_s: f64) -> Result<Option<Camera>, Error> {
        let camera = self.vm.camera(&self.scene, t_s);
        self.heard("frame", camera)
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

    /// Whether the scene says who hears.
    #[must_use]
    pub fn has_ears(&self) -> bool {
        self.scene.ears.is_some()
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
        let Some(callback) = self.scene.event.clone() else {
            return Ok(());
        };
        if self.is_suspended("event") {
            return Ok(());
        }
        self.events_done += 1;
        let told = self.vm.event(&callback, event, self.events_done);
        self.heard("event", told)
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

    /// What `persist` keeps for the next version. What cannot be kept is said once in the script's log.
    #[must_use]
    pub fn kept(&self) -> serde_json::Map<String, serde_json::Value> {
        self.vm.kept()
    }

    /// The parameters that the script has asked for so far, in the order of their first asking.
    #[must_use]
    pub fn params(&self) -> Vec<Param> {
        self.vm.params()
    }

    /// Sentences about values of [`Setup::params`] that do not fit what the script declares.
    #[must_use]
    pub fn refused_params(&self) -> Vec<String> {
        self.vm.refused_params()
    }

    /// That there is no such parameter, and which one may be meant.
    #[must_use]
    pub fn no_param(&self, name: &str) -> String {
        self.vm.no_param(name)
    }

    /// Sets a parameter of the running version; whoever calls it sees to it that the next version is set
    /// too.
    ///
    /// # Errors
    /// No such parameter, or a value of another kind: a sentence.
    pub fn set_param(&mut self, name: &str, value: &ParamValue) -> Result<Changed, String> {
        self.vm.set_param(name, value)
    }

    /// What a line of a console comes to: an expression's value, as text, or nothing for a statement. It
    /// sees what scenes see, and `scene` (the scene's table), `t` and the variables of earlier lines.
    ///
    /// # Errors
    /// As thrown by the line, or what is wrong with its text.
    pub fn evaluate(&mut self, line: &str, t_s: f64) -> Result<Option<String>, Error> {
        self.lines_done += 1;
        self.vm.evaluate(&self.scene, line, t_s, self.lines_done)
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
