//! One Luau VM with the sandbox closed, and every way into it.
//!
//! Globals: Luau's own without debug.info and those of [`api::REMOVED`], plus those of the API's table,
//! which must all be bound and nothing else. All are read-only; reading a name that is
//! not there or writing one is an error. Every entry reseeds `math.random` from the seed and what is
//! being asked (t, step, event number), so that results depend on nothing else.

use super::api::{self, Space};
use super::budget::{self, Budget, Kind};
use super::film;
use super::frame::{self as convert, Defaults};
use super::modules::Modules;
use super::params::Params;
use super::quota::Quota;
use super::splats::SharedCast;
use super::{
    Assets, Changed, Chart, Error, LoadError, Param, ParamValue, STEP_HZ, Setup, SoundPlan, args,
    blame, body, console, cues, edits, effects, keep, log, motion, plain, probe, sheets, sound,
    splats, stage,
};
use crate::audio::{Listener, VoiceSpec};
use crate::camera::Camera;
use crate::frame::{Cue, Event, Frame, Input};
use crate::motion::noise::mix;
use glam::Vec2;
use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, Result, StdLib, Table, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

const PRELUDE: &str = include_str!("prelude.luau");

/// What callbacks of the VM share. It holds no Lua value, or the VM would keep itself alive.
pub(super) struct Host {
    pub assets: Arc<dyn Assets>,
    pub modules: Modules,
    pub budget: Rc<Budget>,
    pub cast: SharedCast,
    /// Splats that the script may generate.
    pub splats: Quota,
    /// Bytes of sheets and textures.
    pub sheets: Quota,
    /// Cells that its probes may hold.
    pub cells: Quota,
    /// Effects that it may load.
    pub effects: Quota,
    /// Splats that its spreads may go over.
    pub spreads: Quota,
    /// What the scene has said of sound.
    pub sound: RefCell<SoundPlan>,
    pub params: RefCell<Params>,
    pub seed: u64,
    pub loop_s: Option<f64>,
    pub aspect: f32,
    pub reduced_motion: bool,
    pub heard_only: bool,
    failure: RefCell<Option<Error>>,
    /// `name/entry`, for errors that have no line of their own.
    entry: String,
}

impl Host {
    /// As [`Cast::only_while_loading`](splats::Cast::only_while_loading).
    pub(super) fn only_while_loading(&self, what: &str) -> Result<()> {
        self.cast.borrow().only_while_loading(what)
    }

    /// An error that is blamed on `place`, or on the entry file.
    fn error(&self, place: Option<blame::Place>, message: String, traceback: String) -> Error {
        let (file, line) = place.map_or_else(|| (self.entry.clone(), 1), |p| (p.file, p.line));
        Error {
            file,
            line,
            message,
            traceback,
        }
    }

    /// Sees an error where it happens: memory errors stop the script, host errors get a place.
    fn note(&self, lua: &Lua, value: &Value) -> Option<String> {
        self.budget.charge(budget::INTERRUPTS_PER_ERROR);
        if blame::is_memory_error(value) {
            self.budget.stop(lua, budget::out_of_memory());
        }
        matches!(value, Value::Error(_)).then(|| {
            let text = blame::text_of(value);
            let (place, text) = blame::locate(lua, &text, &self.modules.chunks());
            match place {
                Some(p) => format!("{}:{}: {text}", p.file, p.line),
                None => text,
            }
        })
    }

    /// Sees the error that ends a call, with the stack as it was.
    fn failed(&self, lua: &Lua, value: &Value) {
        if blame::is_memory_error(value) {
            self.budget.stop(lua, budget::out_of_memory());
        }
        if self.budget.fault().is_some() {
            return;
        }
        let text = blame::text_of(value);
        let (place, message) = blame::locate(lua, &text, &self.modules.chunks());
        let error = self.error(place, message, blame::traceback(lua));
        *self.failure.borrow_mut() = Some(error);
    }
}

/// What the entry file returned.
pub(super) struct Scene {
    /// As it is.
    table: Table,
    pub duration_s: Option<f64>,
    defaults: Defaults,
    /// Where `camera` is a function instead of data.
    camera: Option<Function>,
    frame: Option<Function>,
    pub step: Option<Function>,
    pub cues: Option<Function>,
    beds: Option<Function>,
    pub voices: Option<Function>,
    pub ears: Option<Function>,
    pub event: Option<Function>,
    pub on_unload: Option<Function>,
}

/// A VM and the way in.
pub(super) struct Vm {
    lua: Lua,
    host: Rc<Host>,
    sink: Rc<log::Sink>,
    /// `prelude.enter`: calls with the error handler that keeps the place.
    enter: Function,
    randomseed: Function,
    /// What modules have returned, by chunk name.
    values: Table,
    /// What `persist` has handed out, by key.
    kept: Table,
    /// The variables of a console, once it was used.
    console: RefCell<Option<Table>>,
}

/// What an entry's random numbers depend on besides the seed.
enum Draw {
    Load,
    Step(u64),
    Frame(f64),
    Event(u64),
    Unload,
    Cues(f64),
    Beds,
    Voices(f64),
    Ears(f64),
    Console(u64),
}

impl Vm {
    pub(super) fn load(mut setup: Setup) -> std::result::Result<(Self, Scene), LoadError> {
        let entry = setup.entry.clone();
        let handed_over = setup.handed_over.take();
        let kept = std::mem::take(&mut setup.kept);
        let (host, sink, args) = Self::parts(setup);
        let loaded = Self::build(&host, sink, &args, kept, |_, _, _| Ok(()))
            .map_err(|e| host.error(None, blame::text_of_error(&e), String::new()))
            .and_then(|vm| {
                let scene = vm.run(&entry, handed_over.as_ref())?;
                Ok((vm, scene))
            });
        host.cast.borrow_mut().complete();
        loaded.map_err(|error| LoadError {
            error,
            watched: host.modules.watched(),
        })
    }

    /// What a VM is made of.
    fn parts(setup: Setup) -> (Rc<Host>, Rc<log::Sink>, serde_json::Value) {
        let host = Rc::new(Host {
            assets: setup.assets,
            modules: Modules::new(&setup.name, setup.files, setup.library),
            budget: Rc::new(Budget::new(setup.live, setup.is_first)),
            cast: SharedCast::default(),
            splats: splats::quota(),
            sheets: sheets::quota(),
            cells: probe::quota(),
            effects: effects::loaded_quota(),
            spreads: effects::spread_quota(),
            sound: RefCell::default(),
            seed: setup.seed,
            loop_s: setup.loop_s,
            aspect: setup.aspect,
            reduced_motion: setup.reduced_motion,
            heard_only: setup.heard_only,
            params: RefCell::new(Params::new(setup.params)),
            failure: RefCell::new(None),
            entry: format!("{}/{}", setup.name.trim_end_matches('/'), setup.entry),
        });
        (host, Rc::new(log::Sink::new(setup.log)), setup.args)
    }

    /// A VM for a file of tests: the same sandbox, with what `join` adds to the globals.
    pub(super) fn for_tests(
        setup: Setup,
        join: impl FnOnce(&Lua, &Table, &Rc<Budget>) -> Result<()>,
    ) -> std::result::Result<Self, Error> {
        let (host, sink, args) = Self::parts(setup);
        Self::build(&host, sink, &args, serde_json::Map::new(), join)
            .map_err(|e| host.error(None, blame::text_of_error(&e), String::new()))
    }

    /// Runs a file and returns what it returned.
    pub(super) fn run_file(&self, entry: &str) -> std::result::Result<Value, Error> {
        let host = &self.host;
        let found = host
            .modules
            .read(entry)
            .map_err(|why| host.error(None, why, String::new()))?;
        let chunk = found.chunk.clone();
        let blamed = |e: mlua::Error| self.error_of(&e, None);
        let body = host.modules.compile(&self.lua, found).map_err(blamed)?;
        let returned = self.call(&body, ())?;
        host.modules.done(&chunk);
        Ok(returned)
    }

    /// Calls a function with the budget of a load.
    pub(super) fn call(
        &self,
        function: &Function,
        arguments: impl mlua::IntoLuaMulti,
    ) -> std::result::Result<Value, Error> {
        self.begin(Kind::Load, &Draw::Load)
            .map_err(|e| self.error_of(&e, Some(function)))?;
        self.enter(function, arguments)
    }

    /// As [`Host::error`], blamed on where `function` begins.
    pub(super) fn refuse(&self, function: Option<&Function>, why: &str) -> Error {
        self.error_of(&mlua::Error::runtime(why), function)
    }

    fn build(
        host: &Rc<Host>,
        sink: Rc<log::Sink>,
        args_json: &serde_json::Value,
        kept: serde_json::Map<String, serde_json::Value>,
        join: impl FnOnce(&Lua, &Table, &Rc<Budget>) -> Result<()>,
    ) -> Result<Self> {
        let libraries = StdLib::COROUTINE
            | StdLib::TABLE
            | StdLib::STRING
            | StdLib::UTF8
            | StdLib::BIT
            | StdLib::MATH
            | StdLib::BUFFER
            | StdLib::VECTOR
            | StdLib::DEBUG;
        // Luau's own pcall lets coroutines yield through; panics are caught at the entries.
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let globals = lua.globals();
        let randomseed: Function = globals.get::<Table>("math")?.get("randomseed")?;

        let quota = motion::quota();
        let values = lua.create_table()?;
        let prelude: Table = lua
            .load(PRELUDE)
            .set_name("=host")
            .set_mode(ChunkMode::Text)
            .call(host_functions(&lua, host, &quota, &values)?)?;
        let enter: Function = prelude.raw_get("enter")?;
        for name in ["pcall", "xpcall", "coroutine"] {
            globals.raw_set(name, prelude.raw_get::<Value>(name)?)?;
        }
        let string: Table = globals.get("string")?;
        for name in ["find", "split", "rep"] {
            string.raw_set(name, prelude.raw_get::<Function>(name)?)?;
        }
        let table: Table = globals.get("table")?;
        table.raw_set("move", prelude.raw_get::<Function>("move")?)?;
        let debug: Table = globals.get("debug")?;
        debug.raw_set("info", Value::Nil)?;
        for (name, _) in api::REMOVED {
            globals.raw_set(name, Value::Nil)?;
        }

        let luaus_own = names_of(&globals)?;
        globals.raw_set(
            api::STAGE.name,
            stage::table(&lua, host, args_json, prelude.raw_get("rig")?)?,
        )?;
        globals.raw_set(
            api::MOTION.name,
            motion::table(&lua, &quota, prelude.raw_get("track")?)?,
        )?;
        globals.raw_set(api::SOUND.name, sound::table(&lua, host)?)?;
        let mut own = Space::into_table(&lua, &api::GLOBALS, globals.clone());
        globals.raw_set(api::LOG.name, log::bind(&lua, &sink, &mut own)?)?;
        own.lua_function("require", prelude.raw_get("require")?)?;
        let tables = lua.create_table()?;
        own.function("persist", keep::persist(&tables, kept))?;
        let asked = host.clone();
        own.function(
            "param",
            move |lua, (name, default, options): (Value, Value, Value)| {
                let is_loading = asked.only_while_loading("").is_ok();
                let mut params = asked.params.borrow_mut();
                params.ask(lua, (&name, &default, &options), is_loading)
            },
        )?;
        own.finish()?;
        classes(&lua)?;

        join(&lua, &globals, &host.budget)?;
        api::complete(&globals, &luaus_own)?;
        close(&lua, &globals)?;
        host.budget.install(&lua)?;
        Ok(Self {
            lua,
            host: host.clone(),
            sink,
            enter,
            randomseed,
            values,
            kept: tables,
            console: RefCell::new(None),
        })
    }

    /// Runs the entry file, `load` and `on_reload`.
    fn run(
        &self,
        entry: &str,
        handed_over: Option<&serde_json::Value>,
    ) -> std::result::Result<Scene, Error> {
        let host = &self.host;
        let found = host
            .modules
            .read(entry)
            .map_err(|why| host.error(None, why, String::new()))?;
        let chunk = found.chunk.clone();
        let body = host
            .modules
            .compile(&self.lua, found)
            .map_err(|e| self.error_of(&e, None))?;
        self.begin(Kind::Load, &Draw::Load)
            .map_err(|e| self.error_of(&e, None))?;
        let returned = self.enter(&body, ())?;
        host.modules.done(&chunk);
        let (scene, load, on_reload) =
            scene_of(&returned, &self.sink).map_err(|e| self.error_of(&e, None))?;
        if let Some(load) = load {
            let stage: Value = self
                .lua
                .globals()
                .get("stage")
                .map_err(|e| self.error_of(&e, Some(&load)))?;
            self.enter(&load, stage)?;
        }
        if let (Some(on_reload), Some(data)) = (on_reload, handed_over) {
            let data = plain::to_lua(&self.lua, data, false)
                .map_err(|e| self.error_of(&e, Some(&on_reload)))?;
            self.enter(&on_reload, data)?;
        }
        self.host.sound.borrow_mut().has_voices = scene.voices.is_some();
        if let Some(beds) = &scene.beds {
            let blamed = |e: mlua::Error| self.error_of(&e, Some(beds));
            self.begin(Kind::Load, &Draw::Beds).map_err(blamed)?;
            let returned = self.enter(beds, ())?;
            let buses = self.host.sound.borrow().buses.clone();
            let found = sound::beds_of(&returned, &buses).map_err(blamed)?;
            self.host.sound.borrow_mut().beds = found;
        }
        Ok(scene)
    }

    pub(super) fn sound(&self) -> SoundPlan {
        self.host.sound.borrow().clone()
    }

    pub(super) fn voices(
        &self,
        callback: &Function,
        from_s: f64,
        to_s: f64,
    ) -> std::result::Result<Vec<VoiceSpec>, Error> {
        let blamed = |e: mlua::Error| self.error_of(&e, Some(callback));
        let returned = self.ask(callback, &Draw::Voices(from_s), (from_s, to_s))?;
        let buses = self.host.sound.borrow().buses.clone();
        sound::voices_of(&returned, from_s, to_s, &buses).map_err(blamed)
    }

    pub(super) fn ears(
        &self,
        callback: &Function,
        t_s: f64,
    ) -> std::result::Result<Listener, Error> {
        let returned = self.ask(callback, &Draw::Ears(t_s), t_s)?;
        sound::ears_of(&self.lua, &returned).map_err(|e| self.error_of(&e, Some(callback)))
    }

    /// Calls something that is asked for a time; as for `frame`, what it does to handles is undone.
    fn ask(
        &self,
        callback: &Function,
        draw: &Draw,
        arguments: impl mlua::IntoLuaMulti,
    ) -> std::result::Result<Value, Error> {
        self.begin(Kind::Call, draw)
            .map_err(|e| self.error_of(&e, Some(callback)))?;
        let cast = &self.host.cast;
        let lives = cast.borrow().lives();
        let result = self.enter(callback, arguments);
        cast.borrow_mut().restore(lives);
        result
    }

    /// Runs steps; returns the number of the first that there was no time for, or their end.
    pub(super) fn step(
        &self,
        step: &Function,
        steps: Range<u64>,
        input: &Input,
        drag: Vec2,
        wheel: f32,
    ) -> std::result::Result<u64, Error> {
        let blamed = |e: mlua::Error| self.error_of(&e, Some(step));
        let Range { start: first, end } = steps;
        let catching_up = budget::Stopwatch::start(self.host.budget.is_live());
        let table =
            convert::input_table(&self.lua, &self.host.cast, input, drag, wheel).map_err(blamed)?;
        for index in first..end {
            if index == first + 1 {
                convert::set_travel(&table, Vec2::ZERO, 0.0).map_err(blamed)?;
            }
            self.begin(Kind::Call, &Draw::Step(index)).map_err(blamed)?;
            self.enter(step, (1.0 / f64::from(STEP_HZ), table.clone()))?;
            // Live, a machine that cannot keep up shows the scene slower instead of standing still.
            if catching_up.is_over() {
                return Ok(index + 1);
            }
        }
        Ok(end)
    }

    /// The camera at `t_s`, where the scene has a function for it.
    pub(super) fn camera(
        &self,
        scene: &Scene,
        t_s: f64,
    ) -> std::result::Result<Option<Camera>, Error> {
        let Some(function) = &scene.camera else {
            return Ok(None);
        };
        let cast = &self.host.cast;
        let lives = cast.borrow().lives();
        let result = self.ask(function, &Draw::Frame(t_s), t_s);
        cast.borrow_mut().restore(lives);
        convert::camera_of(&result?, "camera")
            .map(Some)
            .map_err(|e| self.error_of(&e, Some(function)))
    }

    pub(super) fn frame(&self, scene: &Scene, t_s: f64) -> std::result::Result<Frame, Error> {
        let cast = &self.host.cast;
        let mut defaults = scene.defaults.clone();
        if let Some(camera) = self.camera(scene, t_s)? {
            defaults.camera = Some(camera);
        }
        let Some(function) = &scene.frame else {
            return convert::from_lua(&Value::Nil, t_s, &defaults, &cast.borrow())
                .map_err(|e| self.error_of(&e, None));
        };
        let blamed = |e: mlua::Error| self.error_of(&e, Some(function));
        self.begin(Kind::Call, &Draw::Frame(t_s)).map_err(blamed)?;
        // What `frame` does to handles holds for this picture only.
        let lives = cast.borrow().lives();
        let result = self.enter(function, t_s).and_then(|value| {
            convert::from_lua(&value, t_s, &defaults, &cast.borrow()).map_err(blamed)
        });
        cast.borrow_mut().restore(lives);
        result
    }

    pub(super) fn event(
        &self,
        callback: &Function,
        event: &Event,
        number: u64,
    ) -> std::result::Result<(), Error> {
        let blamed = |e: mlua::Error| self.error_of(&e, Some(callback));
        self.begin(Kind::Call, &Draw::Event(number))
            .map_err(blamed)?;
        let table = convert::event_table(&self.lua, &self.host.cast, event).map_err(blamed)?;
        self.enter(callback, table).map(|_| ())
    }

    pub(super) fn cues(
        &self,
        callback: &Function,
        from_s: f64,
        to_s: f64,
    ) -> std::result::Result<Vec<Cue>, Error> {
        let returned = self.ask(callback, &Draw::Cues(from_s), (from_s, to_s))?;
        cues::from_lua(&returned, from_s, to_s).map_err(|e| self.error_of(&e, Some(callback)))
    }

    pub(super) fn unload(
        &self,
        callback: &Function,
    ) -> std::result::Result<Option<serde_json::Value>, Error> {
        let blamed = |e: mlua::Error| self.error_of(&e, Some(callback));
        self.begin(Kind::Call, &Draw::Unload).map_err(blamed)?;
        match self.enter(callback, ())? {
            Value::Nil => Ok(None),
            value => plain::to_json(&value, "what on_unload returns")
                .map(Some)
                .map_err(blamed),
        }
    }

    pub(super) fn kept(&self) -> serde_json::Map<String, serde_json::Value> {
        // State machines are put down by their library.
        let chunk = format!("{}states.luau", blame::LIBRARY);
        if let Ok(Value::Table(module)) = self.values.raw_get::<Value>(chunk)
            && let Ok(Value::Function(keep)) = module.raw_get::<Value>("keep")
            && let Err(error) = self
                .begin(Kind::Call, &Draw::Unload)
                .map_err(|e| self.error_of(&e, None))
                .and_then(|()| self.enter(&keep, ()))
        {
            self.sink
                .say("warn", &format!("{error}; states begin anew"));
        }
        keep::kept(&self.kept, &self.sink)
    }

    pub(super) fn params(&self) -> Vec<Param> {
        self.host.params.borrow().known().to_vec()
    }

    pub(super) fn refused_params(&self) -> Vec<String> {
        self.host.params.borrow().refused().to_vec()
    }

    pub(super) fn no_param(&self, name: &str) -> String {
        self.host.params.borrow().unknown(name)
    }

    pub(super) fn set_param(
        &self,
        name: &str,
        value: &ParamValue,
    ) -> std::result::Result<Changed, String> {
        self.host.params.borrow_mut().set(name, value)
    }

    pub(super) fn evaluate(
        &self,
        scene: &Scene,
        line: &str,
        t_s: f64,
        number: u64,
    ) -> std::result::Result<Option<String>, Error> {
        let blamed = |e: mlua::Error| self.error_of(&e, None);
        let ready = || -> Result<(Function, bool)> {
            let mut names = self.console.borrow_mut();
            let names = match names.as_ref() {
                Some(names) => names,
                None => names.insert(console::environment(&self.lua)?),
            };
            names.raw_set("scene", &scene.table)?;
            names.raw_set("t", t_s)?;
            console::compile(&self.lua, line, names)
        };
        self.host.modules.note(console::CHUNK);
        self.begin(Kind::Call, &Draw::Console(number))
            .map_err(blamed)?;
        let (function, has_value) = ready().map_err(blamed)?;
        let value = self.enter(&function, ())?;
        Ok(has_value.then(|| console::show(&value)))
    }

    pub(super) fn charts(&self) -> std::result::Result<Vec<Chart>, Error> {
        let blamed = |e: mlua::Error| self.error_of(&e, None);
        let chunk = format!("{}states.luau", blame::LIBRARY);
        let module: Value = self.values.raw_get(chunk).map_err(blamed)?;
        let Value::Table(module) = module else {
            return Ok(Vec::new());
        };
        let charts: Function = module.raw_get("charts").map_err(blamed)?;
        self.begin(Kind::Call, &Draw::Unload).map_err(blamed)?;
        let charts = self.enter(&charts, ())?;
        let charts = plain::to_json(&charts, "states.charts").map_err(blamed)?;
        serde_json::from_value(charts).map_err(|e| blamed(mlua::Error::external(e)))
    }

    pub(super) fn bodies(&self) -> Vec<(String, Arc<crate::scene::Body>)> {
        self.host.cast.borrow().bodies()
    }

    pub(super) fn globals(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        // The sandbox's own table stands before the one with the names.
        let mut tables = vec![self.lua.globals()];
        while let Some(table) = tables.pop() {
            let keys = table.pairs::<Value, Value>().flatten();
            names.extend(keys.filter_map(|(key, _)| Some(key.as_string()?.to_string_lossy())));
            let below = table.metatable().map(|m| m.raw_get::<Value>("__index"));
            if let Some(Ok(Value::Table(below))) = below {
                tables.push(below);
            }
        }
        names
    }

    pub(super) fn is_live(&self) -> bool {
        self.host.budget.is_live()
    }

    pub(super) fn watched(&self) -> Vec<String> {
        self.host.modules.watched()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// A fresh budget, a fresh line allowance and the random numbers that belong to `draw`.
    fn begin(&self, kind: Kind, draw: &Draw) -> Result<()> {
        self.sink.refill();
        let (stream, number) = match draw {
            Draw::Load => (0, 0),
            Draw::Step(index) => (1, *index),
            Draw::Frame(t_s) => (2, t_s.to_bits()),
            Draw::Event(number) => (3, *number),
            Draw::Unload => (4, 0),
            Draw::Cues(from_s) => (5, from_s.to_bits()),
            Draw::Beds => (6, 0),
            Draw::Voices(from_s) => (7, from_s.to_bits()),
            Draw::Ears(t_s) => (8, t_s.to_bits()),
            Draw::Console(number) => (9, *number),
        };
        self.host.budget.begin(kind);
        // Luau's generator takes 31 bits of seed.
        let seed = mix(mix(self.host.seed ^ mix(stream)) ^ number) >> 33;
        self.randomseed.call::<()>(seed as f64)
    }

    /// Calls into the script; the one place where Rust runs Lua.
    fn enter(
        &self,
        function: &Function,
        arguments: impl mlua::IntoLuaMulti,
    ) -> std::result::Result<Value, Error> {
        let host = &self.host;
        host.failure.borrow_mut().take();
        let outcome = catch_unwind(AssertUnwindSafe(|| -> Result<(bool, Value)> {
            let mut all = arguments.into_lua_multi(&self.lua)?;
            all.push_front(Value::Function(function.clone()));
            let mut results: MultiValue = self.enter.call(all)?;
            let ok = matches!(results.pop_front(), Some(Value::Boolean(true)));
            Ok((ok, results.pop_front().unwrap_or(Value::Nil)))
        }));
        let fault = host.budget.fault();
        let failure = host.failure.borrow_mut().take();
        let error = match (outcome, fault, failure) {
            (Ok(Ok((true, value))), None, _) => return Ok(value),
            (_, Some(fault), _) => {
                let place = fault.place.or_else(|| defined_at(function));
                host.error(place, fault.message, fault.traceback)
            }
            (_, None, Some(error)) => error,
            // The handler could not run: out of memory, or an error in error handling.
            (Ok(Ok((_, value))), ..) => {
                let text = if blame::is_memory_error(&value) {
                    budget::out_of_memory()
                } else {
                    blame::text_of(&value)
                };
                self.error_of(&mlua::Error::runtime(text), Some(function))
            }
            (Ok(Err(error)), ..) => self.error_of(&error, Some(function)),
            (Err(_), ..) => host.error(
                defined_at(function),
                "the host panicked in a call from here (a bug of the host)".to_owned(),
                String::new(),
            ),
        };
        // A VM at its memory limit stays there until it is collected. That this could fail too
        // changes nothing about the error.
        if self.lua.used_memory() > budget::MEMORY_BYTES_MAX / 2 {
            let _ = self.lua.gc_collect();
        }
        Err(error)
    }

    /// An error found outside of a running script, blamed on where `function` is defined.
    fn error_of(&self, error: &mlua::Error, function: Option<&Function>) -> Error {
        let text = blame::text_of_error(error);
        match blame::split_place(&text, &self.host.modules.chunks()) {
            Some((place, message)) => {
                self.host
                    .error(Some(place), message.to_owned(), String::new())
            }
            None => {
                let place = function.and_then(defined_at);
                self.host.error(place, text, String::new())
            }
        }
    }
}

/// File and line of where a function of the script begins.
pub(super) fn place_of(function: &Function) -> Option<(String, u32)> {
    defined_at(function).map(|place| (place.file, place.line))
}

/// Where a function of the script begins.
fn defined_at(function: &Function) -> Option<blame::Place> {
    let info = function.info();
    Some(blame::Place {
        file: info.source?.strip_prefix('@')?.to_owned(),
        line: u32::try_from(info.line_defined?).ok()?,
    })
}

/// What the prelude gets from Rust.
fn host_functions(lua: &Lua, host: &Rc<Host>, quota: &Quota, values: &Table) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("memory_bytes", budget::MEMORY_BYTES_MAX)?;
    let own = host.clone();
    table.raw_set(
        "note",
        lua.create_function(move |lua, value: Value| match own.note(lua, &value) {
            Some(text) => lua.create_string(text).map(Value::String),
            None => Ok(value),
        })?,
    )?;
    let own = host.clone();
    table.raw_set(
        "failed",
        lua.create_function(move |lua, value: Value| {
            own.failed(lua, &value);
            Ok(())
        })?,
    )?;
    let own = host.clone();
    table.raw_set(
        "check",
        lua.create_function(move |_, ()| own.budget.check())?,
    )?;

    let (own, known) = (host.clone(), values.clone());
    table.raw_set(
        "resolve",
        lua.create_function(move |lua, path: Value| {
            let path = args::text(&path, "require: path")?;
            let mut requirer = blame::innermost_chunk(lua).unwrap_or_default();
            if requirer == console::CHUNK {
                // A console stands in the scene's folder.
                requirer = own.modules.chunk(console::CHUNK);
            }
            let found = own.modules.find(&path, &requirer)?;
            let value: Value = known.raw_get(found.chunk.as_str())?;
            let chunk = found.chunk.clone();
            let body = match value {
                Value::Nil => Some(own.modules.compile(lua, found)?),
                _ => None,
            };
            Ok((chunk, value, body))
        })?,
    )?;
    let (own, values) = (host.clone(), values.clone());
    table.raw_set(
        "keep",
        lua.create_function(move |_, (chunk, value): (String, Value)| {
            if value.is_nil() {
                return Err(mlua::Error::runtime(format!(
                    "the module {chunk} must return a value, such as a table of functions"
                )));
            }
            own.modules.done(&chunk);
            values.raw_set(chunk, value)
        })?,
    )?;
    table.raw_set(
        "track_check",
        lua.create_function(|lua, (rate, count, f): (Value, Value, Value)| {
            motion::track_check(lua, &rate, &count, &f)
        })?,
    )?;
    table.raw_set(
        "rig",
        lua.create_function(|_, (handle, spec): (Value, Value)| {
            body::RigBuilder::new(&handle, &spec)
        })?,
    )?;
    let own = quota.clone();
    table.raw_set(
        "track_bake",
        lua.create_function(move |lua, (rate, samples): (Value, Table)| {
            motion::track_bake(lua, &rate, &samples, &own)
        })?,
    )?;
    let own = quota.clone();
    table.raw_set(
        "track_of",
        lua.create_function(
            move |lua, (rate, samples, lanes): (Value, mlua::Buffer, Value)| {
                motion::track_of(lua, &rate, &samples, &lanes, &own)
            },
        )?,
    )?;
    Ok(table)
}

/// Names of a table's entries.
fn names_of(table: &Table) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair?;
        names.extend(key.as_string().map(|name| name.to_string_lossy()));
    }
    Ok(names)
}

/// Binds every class, so that what does not fit the API's table shows before a script runs.
fn classes(lua: &Lua) -> Result<()> {
    let all = [
        splats::classes,
        body::classes,
        edits::classes,
        effects::classes,
        sheets::classes,
        probe::classes,
        sound::classes,
        motion::classes,
    ];
    api::classes(lua, &all)
}

/// Makes every table read-only and unknown names errors.
fn close(lua: &Lua, globals: &Table) -> Result<()> {
    let undefined = lua.create_function(|_, (_, name): (Value, Value)| -> Result<()> {
        let name = match &name {
            Value::String(name) => name.to_string_lossy(),
            other => args::describe(other),
        };
        let hint = api::REMOVED
            .iter()
            .find(|(removed, _)| *removed == name)
            .map_or_else(String::new, |(_, why)| format!(" ({why})"));
        Err(mlua::Error::runtime(format!(
            "'{name}' is not defined{hint}"
        )))
    })?;
    let refuse = lua.create_function(|_, (_, name, _): (Value, Value, Value)| -> Result<()> {
        let name = match &name {
            Value::String(name) => name.to_string_lossy(),
            other => args::describe(other),
        };
        Err(mlua::Error::runtime(format!(
            "'{name}' is not a local variable, and globals are read-only; write 'local {name}' or \
             'local function {name}'"
        )))
    })?;
    let locked = lua.create_table()?;
    locked.raw_set("__index", undefined)?;
    locked.raw_set("__metatable", "locked")?;
    locked.set_readonly(true);
    globals.set_metatable(Some(locked))?;
    lua.sandbox(true)?;
    // The sandbox put a writable table before the globals; it gets a lid.
    let lid = lua.create_table()?;
    lid.raw_set("__index", globals.clone())?;
    lid.raw_set("__newindex", refuse)?;
    lid.raw_set("__metatable", "locked")?;
    lid.set_readonly(true);
    lua.globals().set_metatable(Some(lid))
}

type Parts = (Scene, Option<Function>, Option<Function>);

/// Reads the scene's table; `load` and `on_reload` come back beside it, since they run once.
fn scene_of(returned: &Value, sink: &log::Sink) -> Result<Parts> {
    let Value::Table(table) = returned else {
        return args::refuse("what a scene file returns", "a table", returned);
    };
    let callbacks: Vec<&str> = api::CALLBACKS.iter().map(|f| f.name).collect();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Value::String(name) = &key else { continue };
        let name = name.to_string_lossy();
        let is_callback = callbacks.contains(&name.as_str());
        if value.is_function() && !is_callback && name != "camera" {
            return Err(mlua::Error::runtime(format!(
                "the scene's table has a function '{name}' that the host never calls{}",
                args::suggestion(&name, &callbacks)
            )));
        }
        if !is_callback
            && !api::SCENE.has(&name)
            && let Some(close) = args::near(&name, &api::SCENE.names())
        {
            sink.say(
                "warn",
                &format!("the scene's field '{name}' means nothing to the host; is it '{close}'?"),
            );
        }
    }
    let callback = |name: &str| match table.raw_get::<Value>(name)? {
        Value::Nil => Ok(None),
        Value::Function(f) => Ok(Some(f)),
        value => args::refuse(&format!("the scene's field {name}"), "a function", &value),
    };
    let data = |name: &str| table.raw_get::<Value>(name);
    let duration_s = match data("duration")? {
        Value::Nil => None,
        value => Some(args::positive(&value, "the scene's duration", "seconds")?),
    };
    let film = film::film_of(&data("film")?, "film")?;
    let background = match data("background")? {
        Value::Nil => None,
        value => Some(args::colour(&value, "the scene's background", 1.0)?),
    };
    let mut camera_function = None;
    let camera = match data("camera")? {
        Value::Nil => None,
        Value::Function(function) => {
            camera_function = Some(function);
            None
        }
        value => Some(convert::camera_of(&value, "the scene's camera")?),
    };
    let scene = Scene {
        table: table.clone(),
        duration_s,
        defaults: Defaults {
            camera,
            background,
            film,
        },
        camera: camera_function,
        frame: callback("frame")?,
        step: callback("step")?,
        cues: callback("cues")?,
        beds: callback("beds")?,
        voices: callback("voices")?,
        ears: callback("ears")?,
        event: callback("event")?,
        on_unload: callback("on_unload")?,
    };
    Ok((scene, callback("load")?, callback("on_reload")?))
}
