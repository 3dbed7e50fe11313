//! The API's table (`script::api`) against what is bound, written and used: parity in both directions,
//! generated files, examples, refused arguments, and scenes or tests that use every call.

use serde_json::{Value as Json, json};
use splatstage::audio::Clip;
use splatstage::frame::{Event, Input};
use splatstage::scene::Splats;
use splatstage::script::api::{
    self, CALLBACKS, CLASSES, Class, Format, Function, Item, Kind, NAMESPACES, RECORDS, Range,
    Record, SCENE, TESTED_SCENE, TESTING, When,
};
use splatstage::script::{Asset, Assets, Files, Script, Setup, Subject, run_tests};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

mod refused;

/// Files in memory, which can be saved into.
struct Memory(BTreeMap<String, String>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let text = self.0.get(path).ok_or("not found")?;
        Ok(text.clone().into_bytes())
    }

    fn save(&self, _path: &str, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// `statue.ply`, 64 splats in a cube of 2 m; `bell.wav`, half a second.
struct Examples;

impl Assets for Examples {
    fn splats(&self, path: &str, _level: Option<u32>, axes: Option<&str>) -> Result<Asset, String> {
        if path != "statue.ply" {
            return Err(format!("{path}: not found"));
        }
        if axes.is_some_and(|axes| axes != "RDF") {
            return Err("no such axes".to_owned());
        }
        let place = |i: u32| {
            let of = |step: u32| 2.0 * ((i / step) % 4) as f32 / 3.0 - 1.0;
            glam::Vec3::new(of(1), of(4), of(16))
        };
        Ok(Asset::splats_alone(Arc::new(Splats {
            means: (0..64).map(place).collect(),
            log_scales: vec![glam::Vec3::splat(-2.0); 64],
            rotations: vec![glam::Quat::IDENTITY; 64],
            opacities: vec![0.9; 64],
            dc: vec![glam::Vec3::ZERO; 64],
            ..Splats::default()
        })))
    }

    fn clip(&self, path: &str) -> Result<Arc<Clip>, String> {
        if path != "bell.wav" {
            return Err(format!("{path}: not found"));
        }
        let tone = |i: u32| [0.2 * (f64::from(i) * 0.1).sin() as f32; 2];
        Ok(Arc::new(Clip::from_samples(
            path,
            (0..24_000).map(tone).collect(),
        )))
    }
}

fn setup(files: BTreeMap<String, String>) -> Setup {
    Setup {
        name: "scenes/api".into(),
        entry: "scene.luau".into(),
        files: Arc::new(Memory(files)),
        assets: Arc::new(Examples),
        seed: 1,
        live: false,
        is_first: true,
        args: Json::Null,
        loop_s: Some(4.0),
        aspect: 1.5,
        reduced_motion: false,
        heard_only: false,
        library: None,
        handed_over: Some(json!({ "clicks": 3 })),
        kept: Default::default(),
        params: BTreeMap::new(),
        log: Rc::new(|_, _| ()),
    }
}

fn scene(text: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("scene.luau".to_owned(), text.to_owned()),
        (
            "data.json".to_owned(),
            "{ \"name\": \"an example\" }".to_owned(),
        ),
    ])
}

#[track_caller]
fn load(text: &str) -> Script {
    match Script::load(setup(scene(text))) {
        Ok(script) => script,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// No scene to test.
struct Nobody;

impl Subject for Nobody {
    fn begin(&mut self) -> Result<f64, String> {
        Ok(1.0)
    }
    fn frame(&mut self, t_s: f64) -> Result<Json, String> {
        Ok(json!({ "t": t_s }))
    }
    fn cues(&mut self, from_s: f64, _to_s: f64) -> Result<Json, String> {
        Ok(json!([from_s]))
    }
    fn input(&mut self, _line: &Json) -> Result<(), String> {
        Ok(())
    }
    fn picture(&mut self, _t_s: f64, _size_px: [u32; 2]) -> Result<u32, String> {
        Ok(1)
    }
    fn compare(&mut self, _number: u32, _golden: &str, _least_db: f64) -> Result<(), String> {
        Ok(())
    }
}

/// Every function of the table with the name it is called by: `stage.splats`, `handle:bone`.
fn functions() -> Vec<(String, &'static Function)> {
    let mut all = Vec::new();
    for space in NAMESPACES.into_iter().chain([&TESTING]) {
        for function in space.functions {
            all.push((whole_name(space.name, function.name), function));
        }
    }
    for class in CLASSES {
        let methods = class.methods.iter();
        all.extend(methods.map(|method| (format!("{}:{}", class.name, method.name), method)));
    }
    all
}

fn whole_name(space: &str, name: &str) -> String {
    if space.is_empty() {
        name.to_owned()
    } else {
        format!("{space}.{name}")
    }
}

/// What is bound, as a script sees it, is the table; the bindings themselves refuse everything else when a
/// VM is made, so that any test that loads a scene holds the other direction too.
#[test]
fn what_is_bound_is_what_the_table_says() {
    let mut script = load(
        "local function names(t) local all = {} for name, value in t do \
         table.insert(all, `{name} {type(value)}`) end table.sort(all) return all end\n\
         return { on_unload = function() return { stage = names(stage), motion = names(motion), \
         sound = names(sound), log = names(log) } end }",
    );
    let found = script.unload().expect("unloads").expect("data");
    for space in NAMESPACES
        .into_iter()
        .filter(|space| !space.name.is_empty())
    {
        let mut wanted: Vec<String> = (space.functions.iter())
            .map(|function| format!("{} function", function.name))
            .collect();
        for field in space.fields {
            let kind = match field.kind {
                Kind::Number => "number",
                Kind::Boolean => "boolean",
                _ => "table",
            };
            wanted.push(format!("{} {kind}", field.name));
        }
        wanted.sort();
        assert_eq!(found[space.name], json!(wanted), "{}", space.name);
    }
    assert_eq!(
        found.as_object().map(|all| all.len()),
        Some(NAMESPACES.len() - 1)
    );
    // No global is there that is neither Luau's nor in the table.
    let globals = script.globals();
    for space in NAMESPACES {
        let names: Vec<&str> = match space.name {
            "" => space.functions.iter().map(|f| f.name).collect(),
            name => vec![name],
        };
        assert!(
            names.iter().all(|name| globals.contains(*name)),
            "{names:?}"
        );
    }
    for (name, _) in api::REMOVED {
        assert!(!globals.contains(name), "{name}");
    }
}

/// What test files have beside it.
#[test]
fn what_tests_have_is_what_the_table_says() {
    let list = |names: Vec<&str>| {
        let mut names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        names.sort();
        format!("{{ {} }}", names.join(", "))
    };
    let said = list(api::EXPECTATION.functions.iter().map(|f| f.name).collect());
    let asked = list(TESTED_SCENE.methods.iter().map(|f| f.name).collect());
    let text = format!(
        "local function names(t) local all = {{}} for name, value in t do \
         if type(value) == 'function' then table.insert(all, name) end end table.sort(all) return all end\n\
         return {{ parity = function(scene)\nexpect(names(expect(1))).equals({said})\n\
         expect(names(getmetatable(scene))).equals({asked})\nexpect(scene.duration).equals(1)\nend }}"
    );
    let subject: Rc<RefCell<dyn Subject>> = Rc::new(RefCell::new(Nobody));
    let outcomes = run_tests(setup(scene(&text)), subject, "", |_| ()).expect("the tests run");
    assert!(outcomes[0].error.is_none(), "{:?}", outcomes[0].error);
}

/// Tables that the host makes have the fields of their records.
#[test]
fn what_the_host_hands_over_is_what_the_table_says() {
    let mut script = load(
        "local seen = {}\n\
         local function note(name, t) local all = {} for key in t do table.insert(all, key) end \
         table.sort(all) seen[name] = all end\n\
         return { load = function(stage) note('framing', stage.framing(stage.splats('statue.ply'))) end, \
         step = function(dt, input) note('input', input) end, event = function(e) note('event', e) end, \
         on_unload = function() return seen end }",
    );
    let input = Input {
        over: Some(0),
        gyro_deg: Some(glam::Vec3::ONE),
        ..Input::default()
    };
    script.advance_to(0.1, &input).expect("steps");
    let event = Event {
        target: Some(0),
        row: Some(3),
        ..click()
    };
    script.event(&event).expect("an event");
    let seen = script.unload().expect("unloads").expect("data");
    for record in ["framing", "input", "event"] {
        let mut wanted = api::record_of(record).expect("a record").names();
        wanted.sort_unstable();
        assert_eq!(seen[record], json!(wanted), "{record}");
    }
}

#[test]
fn the_table_is_consistent() {
    let mut used = BTreeSet::from(["scene"]);
    let mut types = BTreeSet::new();
    let names = (CLASSES.iter().map(|c| c.name))
        .chain(RECORDS.iter().map(|r| r.name))
        .chain(NAMESPACES.iter().map(|s| s.name))
        .chain([TESTED_SCENE.name, api::EXPECTATION.name]);
    for name in names {
        assert!(types.insert(name), "two types are called {name}");
    }
    let mut items: Vec<(String, &Item)> = Vec::new();
    let mut of_function = |name: String, function: &'static Function| {
        assert!(function.doc.ends_with('.'), "{name}: {}", function.doc);
        assert!(
            function.fails.is_empty() || function.fails.ends_with('.'),
            "{name}"
        );
        let mut optional = false;
        for param in function.params {
            assert!(
                !optional || param.default.is_some() || name == "motion.spring_step",
                "{name}: {}",
                param.name
            );
            optional |= param.default.is_some();
        }
        let all = function.params.iter().chain(function.returns);
        items.extend(all.map(|item| (name.clone(), item)));
    };
    for (name, function) in functions() {
        of_function(name, function);
    }
    for callback in CALLBACKS {
        of_function(callback.name.to_owned(), callback);
    }
    for function in TESTED_SCENE
        .methods
        .iter()
        .chain(api::EXPECTATION.functions)
    {
        of_function(function.name.to_owned(), function);
    }
    for record in RECORDS {
        assert!(record.doc.ends_with('.'), "{}", record.name);
        items.extend(
            record
                .fields
                .iter()
                .map(|item| (record.name.to_owned(), item)),
        );
    }
    for class in CLASSES {
        assert!(class.doc.ends_with('.'), "{}", class.name);
        items.extend(
            class
                .fields
                .iter()
                .map(|item| (class.name.to_owned(), item)),
        );
    }
    for (owner, item) in &items {
        assert!(
            !item.doc.is_empty() && !item.doc.ends_with('.'),
            "{owner}.{}: {}",
            item.name,
            item.doc
        );
        let is_snake = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(item.name.chars().all(is_snake), "{owner}.{}", item.name);
        kinds(&item.kind, &mut |kind| match kind {
            Kind::Record(name) => {
                assert!(
                    api::record_of(name).is_some(),
                    "{owner}.{}: {name}",
                    item.name
                );
                used.insert(name);
            }
            Kind::Class(name) => {
                let is_space = NAMESPACES.iter().any(|space| space.name == *name);
                let is_test = *name == api::EXPECTATION.name;
                assert!(
                    is_space || is_test || api::class(name).is_some(),
                    "{owner}.{}: {name}",
                    item.name
                );
            }
            Kind::Rotation => {
                used.insert("euler");
            }
            _ => {}
        });
    }
    for record in RECORDS {
        if let Some(kind) = &record.items {
            kinds(kind, &mut |kind| {
                if let Kind::Record(name) = kind {
                    used.insert(name);
                }
            });
        }
    }
    for record in RECORDS {
        assert!(
            used.contains(record.name),
            "nothing takes or gives a {}",
            record.name
        );
    }
}

fn kinds(kind: &'static Kind, told: &mut dyn FnMut(&'static Kind)) {
    told(kind);
    match kind {
        Kind::List(kind) | Kind::Map(kind) => kinds(kind, told),
        Kind::Either(all) => all.iter().for_each(|kind| kinds(kind, told)),
        Kind::Function(takes, gives) => {
            takes.iter().for_each(|(_, kind)| kinds(kind, told));
            kinds(gives, told);
        }
        _ => {}
    }
}

#[test]
fn the_files_in_scripts_are_the_tables() {
    for (format, name) in Format::FILES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts")
            .join(name);
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == api::page(format),
            "scripts/{name} is old: 'splatstage api --write scripts' makes it anew"
        );
    }
}

/// Luau's own compiler reads the types; declarations are turned into types first, since it knows none.
#[test]
fn luau_understands_the_definitions() {
    let mut text = String::new();
    let mut in_class = false;
    for line in api::page(Format::Luau).lines() {
        let line = if let Some(head) = line.strip_prefix("declare extern type ") {
            in_class = true;
            format!("type {} = {{", head.trim_end_matches(" with"))
        } else if in_class && line == "end" {
            in_class = false;
            "}".to_owned()
        } else if let Some(method) = line.strip_prefix("\tfunction ").filter(|_| in_class) {
            let (name, rest) = method.split_once("(self").expect("a method");
            let (takes, gives) = rest.split_once("): ").expect("a result");
            format!("\t{name}: (self: any{takes}) -> {gives},")
        } else if let Some(declared) = line.strip_prefix("declare function ") {
            let (name, rest) = declared.split_once('(').expect("a function");
            format!(
                "type declared_{name} = ({}",
                rest.replacen("): ", ") -> ", 1)
            )
        } else if let Some(declared) = line.strip_prefix("declare ") {
            let (name, kind) = declared.split_once(": ").expect("a type");
            format!("type declared_{name} = {kind}")
        } else if in_class && !line.trim_start().starts_with("--") {
            format!("{line},")
        } else {
            line.replacen("export ", "", 1)
        };
        text.push_str(&line);
        text.push('\n');
    }
    load(&format!("{text}\nreturn {{}}"));
}

/// Every example is run, with `expect`.
#[test]
fn examples_run() {
    let mut tests = "return {\n".to_owned();
    let mut playing = Vec::new();
    let mut count = 0;
    let of_tests = TESTING.functions.iter().chain(api::EXPECTATION.functions);
    let all = functions()
        .into_iter()
        .chain(of_tests.map(|f| (f.name.to_owned(), f)));
    for (name, function) in all {
        if function.name == "looks_like" {
            continue;
        }
        assert!(!function.example.is_empty(), "{name} has no example");
        assert!(
            function.example.contains(function.name),
            "{name}: {}",
            function.example
        );
        if function.when == When::Playing {
            playing.push(function.example);
            continue;
        }
        count += 1;
        tests.push_str(&format!(
            "[\"{count}: {name}\"] = function()\n{}\nend,\n",
            function.example
        ));
    }
    tests.push('}');
    let subject: Rc<RefCell<dyn Subject>> = Rc::new(RefCell::new(Nobody));
    let outcomes = run_tests(setup(scene(&tests)), subject, "", |_| ()).expect("the tests run");
    assert_eq!(outcomes.len(), count);
    for outcome in outcomes {
        assert!(
            outcome.error.is_none(),
            "{}: {}",
            outcome.name,
            outcome.error.expect("said")
        );
    }
    let body = playing.join("\n");
    let mut script = load(&format!("return {{ event = function(e)\n{body}\nend }}"));
    script.event(&click()).expect("what plays runs");
    assert!(!playing.is_empty());
    for callback in CALLBACKS {
        let mut script = load(callback.example);
        let is_there = format!("{} = function", callback.name);
        assert!(callback.example.contains(&is_there), "{}", callback.example);
        script.advance_to(0.1, &Default::default()).expect("steps");
        script.frame(0.0).expect("a frame");
        script.cues(0.0, 2.0).expect("cues");
        script.voices(0.0, 1.0).expect("voices");
        script.ears(0.0).expect("ears");
        script.event(&click()).expect("events");
        script.unload().expect("unloads");
    }
}

fn click() -> Event {
    Event {
        kind: "click".to_owned(),
        name: String::new(),
        values: vec![0.0, 0.0],
        target: None,
        row: None,
    }
}

/// Every call is used by a scene, the library, a template or a test, beside this one and the examples.
#[test]
fn every_call_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for folder in ["scenes", "scripts", "templates", "tests"] {
        collect(&root.join(folder), &mut texts);
    }
    let of_tests = TESTED_SCENE
        .methods
        .iter()
        .map(|f| format!("scene:{}", f.name));
    let unused: Vec<String> = (functions().into_iter())
        .map(|(name, _)| name)
        .chain(of_tests)
        .filter(|name| !texts.iter().any(|text| is_called(text, name)))
        .collect();
    assert!(unused.is_empty(), "nobody uses {unused:?}");
    assert!(is_called("x = stage.splats(\"a\")", "stage.splats"));
    assert!(!is_called("my_stage.splats(\"a\")", "stage.splats"));
    assert!(!is_called("stage.splats_of(\"a\")", "stage.splats"));
    assert!(is_called("hero:bone('a')", "handle:bone"));
    assert!(!is_called("hero.bone('a')", "handle:bone"));
}

fn is_called(text: &str, name: &str) -> bool {
    let part = name.find(':').map_or(name, |at| &name[at..]);
    text.match_indices(part).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + part.len()..].trim_start().chars().next();
        let is_word = |c: char| c == '_' || c.is_alphanumeric();
        let is_whole = part.starts_with(':') || !before.is_some_and(|c| is_word(c) || c == '.');
        is_whole && matches!(after, Some('(' | '{' | '"' | '\''))
    })
}

/// The texts below a folder, without comments, this test and what the table prints.
fn collect(folder: &Path, texts: &mut Vec<String>) {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "api") {
                collect(&path, texts);
            }
            continue;
        }
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let is_own = name == "api.rs" || Format::FILES.iter().any(|(_, file)| *file == name);
        let is_source = name.ends_with(".luau") || name.ends_with(".rs");
        if is_own || !is_source {
            continue;
        }
        let mark = if name.ends_with(".rs") { "//" } else { "--" };
        let text = std::fs::read_to_string(&path).expect("a text");
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with(mark));
        texts.push(code.collect::<Vec<_>>().join("\n"));
    }
}
