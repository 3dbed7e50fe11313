//! A scene's own tests: files of functions that ask the scene for frames, cues and pictures, and say
//! what they expect.
//!
//! A test file returns a table of functions by name. Each gets a `scene` of its own and the global
//! `expect` (`testing.luau`), and runs in a VM like a scene's, which is not the scene's. What the scene
//! answers comes through [`Subject`]; how it is played is not known here.

use super::vm::Vm;
use super::{Error, Setup, args, plain};
use mlua::chunk::ChunkMode;
use mlua::{Function, Result, Table, Value};
use serde_json::Value as Json;
use std::cell::RefCell;
use std::rc::Rc;

/// Host code in Lua: `expect`, and the `scene` that tests see.
const TESTING: &str = include_str!("testing.luau");

/// The scene that is tested. Errors are sentences, with file and line where a script is at fault.
pub trait Subject {
    /// Starts anew: time 0, no input. Returns the length of the scene, seconds.
    ///
    /// # Errors
    /// The scene does not load.
    fn begin(&mut self) -> std::result::Result<f64, String>;
    /// What the scene shows at `t_s`, as `trace` prints it; vectors as [`plain`] writes them.
    ///
    /// # Errors
    /// The scene fails.
    fn frame(&mut self, t_s: f64) -> std::result::Result<Json, String>;
    /// What happens from `from_s` on and before `to_s`, a list.
    ///
    /// # Errors
    /// The scene fails.
    fn cues(&mut self, from_s: f64, to_s: f64) -> std::result::Result<Json, String>;
    /// Something comes in: a line of an input log, or the name of a log among the scene's files.
    ///
    /// # Errors
    /// No such log, or a line that is not understood.
    fn input(&mut self, line: &Json) -> std::result::Result<(), String>;
    /// Draws the picture at `t_s` and keeps it; `size_px` is width and height. Returns its number.
    ///
    /// # Errors
    /// The scene or the adapter fails.
    fn picture(&mut self, t_s: f64, size_px: [u32; 2]) -> std::result::Result<u32, String>;
    /// Whether the kept picture `number` is within `least_db` of the file `golden` of the scene.
    ///
    /// # Errors
    /// It is not, and by how much; there is no such file.
    fn compare(
        &mut self,
        number: u32,
        golden: &str,
        least_db: f64,
    ) -> std::result::Result<(), String>;
}

/// How one test went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its key in the file's table.
    pub name: String,
    /// What was wrong, where it was; `None` when all was as expected.
    pub error: Option<Error>,
}

/// Sides of a picture, px.
const SIDE_PX_MAX: u32 = 4096;

/// Runs the tests of the file that `setup` names as its entry, in the order in which they stand there:
/// those with `only` in their names. `told` hears of each as it ends.
///
/// # Errors
/// The file does not run, or returns no table of functions.
pub fn run_tests(
    setup: Setup,
    subject: Rc<RefCell<dyn Subject>>,
    only: &str,
    mut told: impl FnMut(&Outcome),
) -> std::result::Result<Vec<Outcome>, Error> {
    let entry = setup.entry.clone();
    let new_scene: Rc<RefCell<Option<Function>>> = Rc::default();
    let kept = Rc::clone(&new_scene);
    let vm = Vm::for_tests(setup, move |lua, globals, budget| {
        let host = lua.create_table()?;
        // Each answer of the scene costs its own time, not the test's.
        let (own, budget_of_begin) = (Rc::clone(&subject), Rc::clone(budget));
        host.raw_set(
            "begin",
            lua.create_function(move |_, ()| {
                let said = budget_of_begin.off_the_clock(|| own.borrow_mut().begin());
                said.map_err(mlua::Error::runtime)
            })?,
        )?;
        let (own, budget_of_frame) = (Rc::clone(&subject), Rc::clone(budget));
        host.raw_set(
            "frame",
            lua.create_function(move |lua, t: Value| {
                let t_s = args::number(&t, "scene:frame: t", "seconds")?;
                let said = budget_of_frame.off_the_clock(|| own.borrow_mut().frame(t_s));
                plain::to_lua(lua, &said.map_err(mlua::Error::runtime)?, false)
            })?,
        )?;
        let (own, budget_of_cues) = (Rc::clone(&subject), Rc::clone(budget));
        host.raw_set(
            "cues",
            lua.create_function(move |lua, (from, to): (Value, Value)| {
                let from_s = args::number(&from, "scene:cues: from", "seconds")?;
                let to_s = args::number(&to, "scene:cues: to", "seconds")?;
                let said = budget_of_cues.off_the_clock(|| own.borrow_mut().cues(from_s, to_s));
                plain::to_lua(lua, &said.map_err(mlua::Error::runtime)?, false)
            })?,
        )?;
        let own = Rc::clone(&subject);
        host.raw_set(
            "input",
            lua.create_function(move |_, line: Value| {
                let line = plain::to_json(&line, "scene:input: the line")?;
                let said = own.borrow_mut().input(&line);
                said.map_err(mlua::Error::runtime)
            })?,
        )?;
        let (own, budget_of_picture) = (Rc::clone(&subject), Rc::clone(budget));
        host.raw_set(
            "picture",
            lua.create_function(move |_, (t, width, height): (Value, Value, Value)| {
                let t_s = args::number(&t, "scene:picture: t", "seconds")?;
                let width = args::whole(&width, "scene:picture: width", 1, SIDE_PX_MAX)?;
                let height = args::whole(&height, "scene:picture: height", 1, SIDE_PX_MAX)?;
                let said = budget_of_picture
                    .off_the_clock(|| own.borrow_mut().picture(t_s, [width, height]));
                said.map_err(mlua::Error::runtime)
            })?,
        )?;
        let (own, budget_of_compare) = (Rc::clone(&subject), Rc::clone(budget));
        host.raw_set(
            "compare",
            lua.create_function(move |_, (number, golden, db): (u32, Value, Value)| {
                let golden = args::text(&golden, "looks_like: the golden picture")?;
                let least_db = args::positive(&db, "looks_like: the least likeness", "dB")?;
                let said = budget_of_compare
                    .off_the_clock(|| own.borrow_mut().compare(number, &golden, least_db));
                said.map_err(mlua::Error::runtime)
            })?,
        )?;
        let testing: Table = lua
            .load(TESTING)
            .set_name("=host")
            .set_mode(ChunkMode::Text)
            .call(host)?;
        globals.raw_set("expect", testing.raw_get::<Function>("expect")?)?;
        *kept.borrow_mut() = Some(testing.raw_get("scene")?);
        Ok(())
    })?;
    let returned = vm.run_file(&entry)?;
    let tests = tests_of(&returned).map_err(|e| vm.refuse(None, &e.to_string()))?;
    let Some(new_scene) = new_scene.borrow_mut().take() else {
        return Err(vm.refuse(None, "the host's part of the tests is missing"));
    };
    let mut outcomes = Vec::new();
    for (name, function) in tests.into_iter().filter(|(name, _)| name.contains(only)) {
        let run = vm
            .call(&new_scene, ())
            .map_err(|error| match super::vm::place_of(&function) {
                // The scene did not load: that is no line of a test.
                Some((file, line)) => Error {
                    file,
                    line,
                    ..error
                },
                None => error,
            })
            .and_then(|scene| vm.call(&function, scene));
        let outcome = Outcome {
            name,
            error: run.err(),
        };
        told(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// The functions of a test file, in the order of their lines.
fn tests_of(returned: &Value) -> Result<Vec<(String, Function)>> {
    let what = "what a test file returns";
    let table = args::table(returned, what)?;
    let mut tests = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let name = args::text(&key, &format!("{what}: a key"))?;
        let Value::Function(function) = value else {
            return args::refuse(&format!("{what}: '{name}'"), "a function", &value);
        };
        tests.push((function.info().line_defined, name, function));
    }
    if tests.is_empty() {
        return args::refuse(what, "a table of functions", returned);
    }
    tests.sort_by(|(a_line, a, _), (b_line, b, _)| (a_line, a).cmp(&(b_line, b)));
    Ok(tests.into_iter().map(|(_, name, f)| (name, f)).collect())
}
