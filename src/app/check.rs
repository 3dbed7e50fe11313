//! `check`: what is wrong with a scene, found without a window and without a picture.
//!
//! The scripts are read (names that nothing declares, files that are not there, calls on their way out),
//! then the scene runs: it loads, plays from its beginning to its end, and is clicked on and typed at.
//! What the host refuses or warns of on the way is a finding, and so are states that nothing leads into,
//! bones and shapes that no avatar of the scene has, and cues beyond the film. It mends nothing, and
//! says nothing about how a scene looks; `test` does.

use super::offline::{self, DURATION_DEFAULT_S, DrawOptions};
use super::session::{SceneOptions, Session};
use crate::formats::container::{Container as _, Folder};
use crate::frame::{Event, Input};
use crate::gpu::{self, Context, EMBEDDED_SHADERS, RasterMethod, Renderer};
use crate::script::{self, Reading};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// Instants of a scene that are asked for.
const INSTANTS: usize = 48;
/// How far before and behind the film cues are looked for, seconds.
const BEYOND_S: f64 = 3600.0;
/// More cues beyond the film than this are a rhythm that never ends, and no mistake.
const BEYOND_CUES_MAX: usize = 32;

/// Something that is wrong, or looks so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// As the person named the scene, with the file inside it.
    pub file: String,
    /// From 1; 0 where it is about no line.
    pub line: u32,
    /// What it is.
    pub message: String,
    /// The scene does not do what it says, as opposed to what may be meant.
    pub is_error: bool,
}

impl Finding {
    /// `file:line: message`.
    #[must_use]
    pub fn text(&self) -> String {
        let warning = if self.is_error { "" } else { "warning: " };
        match self.line {
            0 => format!("{}: {warning}{}", self.file, self.message),
            line => format!("{}:{line}: {warning}{}", self.file, self.message),
        }
    }

    /// `{file, line, severity, message}`.
    #[must_use]
    pub fn json(&self) -> Value {
        let severity = if self.is_error { "error" } else { "warning" };
        json!({
            "file": self.file,
            "line": self.line,
            "severity": severity,
            "message": self.message,
        })
    }
}

/// Checks a scene, and the shaders of `draw` where it names a folder of them. Sorted by file and line,
/// nothing twice.
///
/// # Errors
/// There is no such scene, or no adapter that shaders could be built for. A scene that does not load is
/// a finding.
pub fn check(scene: &SceneOptions, draw: &DrawOptions) -> anyhow::Result<Vec<Finding>> {
    let mut session = Session::open(scene.clone(), offline::offline_cache(), false)?;
    let mut found = Findings {
        scene: session.name(),
        entry: session.entry().to_owned(),
        scripts: scripts_of(&session),
        all: BTreeSet::new(),
    };
    let said: Rc<RefCell<Vec<(String, String)>>> = Rc::default();
    let sink = Rc::clone(&said);
    session.set_log(Rc::new(move |level, text| {
        if level != "info" {
            sink.borrow_mut().push((level.to_owned(), text.to_owned()));
        }
    }));
    let input = Input {
        aspect: draw.size[0] as f32 / draw.size[1] as f32,
        ..Input::default()
    };
    match session.reload(0.0, &input) {
        Ok(_) => {
            if let Err(error) = play(&mut session, &input) {
                found.script_error(&error);
            }
            charts(&mut session, &mut found);
            cues(&mut session, &mut found);
            bodies(&session, &mut found);
            let globals = session.script().map(script::Script::globals);
            found.undeclared(&globals.unwrap_or_default());
        }
        Err(error) => found.script_error(&error),
    }
    for (level, text) in said.take() {
        found.said(&text, level == "error");
    }
    found.files(&session);
    if let Some(folder) = &draw.shaders {
        shaders(folder, draw, &mut found)?;
    }
    Ok(found.all.into_iter().collect())
}

/// The scripts that belong to the scene, by name: the entry, what they require, and test files.
fn scripts_of(session: &Session) -> BTreeMap<String, Reading> {
    let mut scripts = BTreeMap::new();
    let tests = session.entries().into_iter();
    let mut waiting: Vec<String> = tests.filter(|name| is_test(name)).collect();
    waiting.push(session.entry().to_owned());
    while let Some(name) = waiting.pop() {
        if scripts.contains_key(&name) {
            continue;
        }
        let Ok(bytes) = session.read(&name) else {
            continue;
        };
        let reading = Reading::of(&String::from_utf8_lossy(&bytes));
        for call in reading.text_calls() {
            if call.function == "require" {
                waiting.extend(required(session, &name, &call.text));
            }
        }
        scripts.insert(name, reading);
    }
    scripts
}

/// Whether a file of a scene holds tests.
#[must_use]
pub fn is_test(name: &str) -> bool {
    name.ends_with("_test.luau") && !name.split('/').any(|part| part.starts_with('.'))
}

/// The file that `require(path)` in the file `from` means, where there is one.
pub(super) fn required(session: &Session, from: &str, path: &str) -> Option<String> {
    script::required(from, path)
        .into_iter()
        .find(|name| session.has(name))
}

/// Plays the scene through, and does to it what a person would.
pub(super) fn play(session: &mut Session, input: &Input) -> Result<(), script::Error> {
    let duration_s = session.duration_s().unwrap_or(DURATION_DEFAULT_S);
    let step_s = duration_s / INSTANTS as f64;
    let has_sound = session.sound().has_voices;
    for k in 0..INSTANTS {
        let t_s = k as f64 * step_s;
        let frame = session.frame(t_s, input)?;
        if has_sound {
            session.voices(t_s, t_s + step_s)?;
        }
        session.ears(t_s)?;
        session.cues(t_s, t_s + step_s)?;
        if k == INSTANTS / 2 {
            let targets: BTreeSet<u32> = frame.draws.iter().filter_map(|d| d.target).collect();
            for event in visit(&targets) {
                session.event(&event)?;
            }
        }
    }
    Ok(())
}

/// Somebody comes, points at everything, clicks, strikes keys, and leaves.
fn visit(targets: &BTreeSet<u32>) -> Vec<Event> {
    let event = |kind: &str, name: &str, target: Option<u32>| Event {
        kind: kind.to_owned(),
        name: name.to_owned(),
        values: if kind == "key" {
            Vec::new()
        } else {
            vec![0.0, 0.0]
        },
        target,
        row: target.filter(|_| kind.ends_with("click")).map(|_| 0),
    };
    let mut events = vec![event("pointer_enter", "", None)];
    for target in targets.iter().map(|t| Some(*t)).chain([None]) {
        if target.is_some() {
            events.push(event("hover", "", target));
        }
        events.push(event("click", "mouse_left", target));
        events.push(event("double_click", "mouse_left", target));
        if target.is_some() {
            events.push(event("leave", "", target));
        }
    }
    let keys = ["1", "2", "0", "m", "w", "enter", "arrow_left"];
    events.extend(keys.map(|name| event("key", name, None)));
    events.push(event("pointer_leave", "", None));
    events
}

/// States that nothing leads into, and names that are no state.
fn charts(session: &mut Session, found: &mut Findings) {
    let Some(script) = session.script_mut() else {
        return;
    };
    let charts = match script.charts() {
        Ok(charts) => charts,
        Err(error) => return found.script_error(&error),
    };
    for chart in charts {
        // A name that some script writes down may be what it asks for; one that goes through all states
        // may ask for any.
        let asks_any = found.asks_by_variable();
        let unreached = chart
            .unreached(|name| asks_any || found.in_order().any(|(_, reading)| reading.says(name)));
        for name in unreached {
            // What comes with the library or a bundle is there to be used or not.
            let is_own = found
                .in_order()
                .any(|(_, reading)| reading.line_of_key(name).is_some());
            if is_own {
                let message = format!("nothing leads into the state '{name}'");
                found.at_key(name, &message, false);
            }
        }
        for name in &chart.strangers {
            let message = format!("a transition names '{name}', which is no state");
            found.at_word(name, &message, true);
        }
    }
}

/// Cues before the beginning of the film and behind its end.
fn cues(session: &mut Session, found: &mut Findings) {
    let Some(duration_s) = session.duration_s() else {
        return;
    };
    let place = session.script().and_then(script::Script::place_of_cues);
    for (from_s, to_s) in [(-BEYOND_S, 0.0), (duration_s, duration_s + BEYOND_S)] {
        // Whoever cannot answer for an hour at once keeps a rhythm.
        let Ok(cues) = session.cues(from_s, to_s) else {
            continue;
        };
        if cues.len() > BEYOND_CUES_MAX {
            continue;
        }
        for cue in cues {
            let (t_s, kind) = (cue.t_s, &cue.kind);
            let message =
                format!("the cue '{kind}' at {t_s:.3} s is outside the film of {duration_s} s");
            found.at_number(t_s, place.as_ref(), &message);
        }
    }
}

/// Bones and shapes that scripts name and no avatar of the scene has.
fn bodies(session: &Session, found: &mut Findings) {
    let bodies = session
        .script()
        .map(script::Script::bodies)
        .unwrap_or_default();
    if bodies.is_empty() {
        return;
    }
    let mut missing = Vec::new();
    for (file, reading) in &found.scripts {
        for call in reading.text_calls() {
            let (noun, is_there) = match call.function.as_str() {
                ":bone" => (
                    "bone",
                    bodies.iter().any(|(_, b)| b.bone(&call.text).is_some()),
                ),
                ":shape" | ":set_shape" => (
                    "shape",
                    bodies.iter().any(|(_, b)| b.shape(&call.text).is_some()),
                ),
                _ => continue,
            };
            if !is_there {
                let message = format!("no avatar of this scene has a {noun} '{}'", call.text);
                missing.push((file.clone(), call.line, message));
            }
        }
    }
    for (file, line, message) in missing {
        found.add(&file, line, message, true);
    }
}

/// Shaders of a folder that do not build, and files that stand in for nothing.
fn shaders(folder: &Path, draw: &DrawOptions, found: &mut Findings) -> anyhow::Result<()> {
    let settings = draw.settings()?;
    let context = Context::headless(draw.gpu)?;
    for raster in [RasterMethod::Quads, RasterMethod::Tiles] {
        let settings = gpu::Settings {
            raster: Some(raster),
            ..settings.clone()
        };
        match Renderer::new(&context, &settings) {
            Ok(_) => {}
            Err(gpu::Error::Shader { message }) => found.whole(&message, true),
            Err(other) => found.whole(&format!("{}: {other}", folder.display()), true),
        }
    }
    for name in Folder::new(folder, "").entries() {
        if name.ends_with(".wgsl") && !EMBEDDED_SHADERS.iter().any(|(known, _)| *known == name) {
            let file = folder.join(&name).display().to_string();
            found.all.insert(Finding {
                file,
                line: 1,
                message: "there is no shader of this name to stand in for".to_owned(),
                is_error: false,
            });
        }
    }
    Ok(())
}

/// What was found so far, and where things stand in the scripts.
struct Findings {
    /// Prefix of the scene's files in messages.
    scene: String,
    entry: String,
    scripts: BTreeMap<String, Reading>,
    all: BTreeSet<Finding>,
}

impl Findings {
    fn add(&mut self, file: &str, line: u32, message: String, is_error: bool) {
        self.all.insert(Finding {
            file: format!("{}/{file}", self.scene.trim_end_matches('/')),
            line,
            message,
            is_error,
        });
    }

    /// `file:line: message`, as the host and scripts say it.
    fn whole(&mut self, text: &str, is_error: bool) {
        let parts = text
            .split_once(".luau:")
            .map(|(f, rest)| (format!("{f}.luau"), rest));
        let parts = parts.or_else(|| {
            let (file, rest) = text.split_once(".wgsl:")?;
            Some((format!("{file}.wgsl"), rest))
        });
        let placed = parts.and_then(|(file, rest)| {
            let (line, message) = rest.split_once(": ")?;
            Some((file, line.parse().ok()?, message.to_owned()))
        });
        let (file, line, message) =
            placed.unwrap_or_else(|| (self.scene.clone(), 0, text.to_owned()));
        self.all.insert(Finding {
            file,
            line,
            message,
            is_error,
        });
    }

    fn script_error(&mut self, error: &script::Error) {
        self.all.insert(Finding {
            file: error.file.clone(),
            line: error.line,
            message: error.message.clone(),
            is_error: true,
        });
    }

    /// A line of the log. What the host says of the scene's table has no place; the word that it quotes
    /// has one.
    fn said(&mut self, text: &str, is_error: bool) {
        // Quotes may also be apostrophes: what stands between is a word where it looks like one.
        let is_word =
            |part: &&str| !part.is_empty() && part.chars().all(|c| c == '_' || c.is_alphanumeric());
        let quoted = text.split('\'').skip(1).find(is_word);
        let quoted = quoted.filter(|_| !text.contains(".luau:"));
        match quoted {
            Some(word) => self.at_key(word, text, is_error),
            None => self.whole(text, is_error),
        }
    }

    /// The scripts, the entry first.
    fn in_order(&self) -> impl Iterator<Item = (&String, &Reading)> {
        let entry = self.scripts.get_key_value(&self.entry);
        let others = self.scripts.iter().filter(|(name, _)| **name != self.entry);
        entry
            .into_iter()
            .chain(others.filter(|(name, _)| !is_test(name)))
    }

    fn at(&mut self, find: impl Fn(&Reading) -> Option<u32>, message: &str, is_error: bool) {
        let found = self
            .in_order()
            .find_map(|(file, reading)| Some((file.clone(), find(reading)?)));
        let (file, line) = found.unwrap_or_else(|| (self.entry.clone(), 1));
        self.add(&file, line, message.to_owned(), is_error);
    }

    fn at_key(&mut self, name: &str, message: &str, is_error: bool) {
        self.at(
            |reading| {
                reading
                    .line_of_key(name)
                    .or_else(|| reading.line_of_word(name))
            },
            message,
            is_error,
        );
    }

    /// Where a text has `name` in it, such as the key of a transition.
    fn at_word(&mut self, name: &str, message: &str, is_error: bool) {
        self.at(|reading| reading.line_of_text_with(name), message, is_error);
    }

    fn at_number(&mut self, number: f64, place: Option<&(String, u32)>, message: &str) {
        let said = self.in_order().find_map(|(file, reading)| {
            Some((file.clone(), reading.line_of_number(number.abs())?))
        });
        match (said, place) {
            (Some((file, line)), _) => self.add(&file, line, message.to_owned(), false),
            (None, Some((file, line))) => {
                self.all.insert(Finding {
                    file: file.clone(),
                    line: *line,
                    message: message.to_owned(),
                    is_error: false,
                });
            }
            (None, None) => self.add(&self.entry.clone(), 1, message.to_owned(), false),
        }
    }

    /// Whether some script goes through the list of all states, as one does that has a key for each.
    fn asks_by_variable(&self) -> bool {
        let lists = [("library", "states"), ("machine", "names")];
        self.in_order().any(|(_, reading)| {
            lists
                .iter()
                .any(|(owner, name)| reading.says_member(owner, name))
        })
    }

    fn undeclared(&mut self, globals: &BTreeSet<String>) {
        let mut with_expect = globals.clone();
        with_expect.insert("expect".to_owned());
        let mut names = Vec::new();
        for (file, reading) in &self.scripts {
            let globals = if is_test(file) { &with_expect } else { globals };
            for (line, name) in reading.undeclared(globals) {
                names.push((file.clone(), line, format!("'{name}' is not defined")));
            }
        }
        for (file, line, message) in names {
            self.add(&file, line, message, true);
        }
    }

    /// Files that are named and not there, and calls on their way out.
    fn files(&mut self, session: &Session) {
        let mut found = Vec::new();
        for (file, reading) in &self.scripts {
            for call in reading.text_calls() {
                let noun = match call.function.as_str() {
                    "stage.splats" => "no such splat file",
                    "stage.data" => "no such data file",
                    "stage.effect" if !call.text.starts_with('@') => "no such effect",
                    "sound.clip" => "no such sound file",
                    _ => continue,
                };
                if !session.has(&call.text) {
                    found.push((file, call.line, format!("{noun}: '{}'", call.text), true));
                }
            }
            for call in reading.text_calls() {
                let is_own = call.text.starts_with('.');
                if call.function == "require"
                    && is_own
                    && required(session, file, &call.text).is_none()
                {
                    let message = format!("no such module: '{}'", call.text);
                    found.push((file, call.line, message, true));
                }
            }
            for (line, old, instead) in reading.deprecated() {
                found.push((file, line, format!("{old} is deprecated: {instead}"), false));
            }
        }
        let found: Vec<_> = (found.into_iter())
            .map(|(file, line, message, is_error)| (file.clone(), line, message, is_error))
            .collect();
        for (file, line, message, is_error) in found {
            // The host's own words about the same line say more.
            let shown = format!("{}/{file}", self.scene.trim_end_matches('/'));
            let is_known = self
                .all
                .iter()
                .any(|f| f.is_error && f.file == shown && f.line == line);
            if !is_known || !is_error {
                self.add(&file, line, message, is_error);
            }
        }
    }
}
