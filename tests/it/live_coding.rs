//! Parameters, tables that outlive a version, the console, and what is written back. No GPU.

use super::cli::{check_code, text};
use serde_json::{Value, json};
use splatstage::app::assets::AssetCache;
use splatstage::app::input::Devices;
use splatstage::app::live::Live;
use splatstage::app::session::{SceneOptions, Session};
use splatstage::frame::{Event, Input};
use splatstage::script::{Changed, Given, ParamValue};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A scene of which one parameter is read while loading and one while playing.
const SCENE: &str = r#"local made = param("made", 2, { min = 1, max = 4, step = 0.5, unit = "m", help = "how large" })
local kept = persist("kept", { loads = 0, place = vector.create(1, 2, 3), list = {} })
kept.loads += 1
table.insert(kept.list, made)
return {
	frame = function(t)
		local now = param("now", 1.5, { unit = "Hz" })
		local look = param("look", "warm", { choices = { "warm", "cold" } })
		return {
			camera = { position = vector.create(0, 0, 3), target = vector.zero },
			state = `{made} {now} {look} {param("lit", false)} {kept.loads} {kept.place} {table.concat(kept.list, ",")}`,
		}
	end,
}
"#;

fn folder(scene: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("scene.luau"), scene).expect("writes");
    folder
}

fn options(folder: &Path) -> SceneOptions {
    SceneOptions {
        scene: folder.to_str().expect("UTF-8").to_owned(),
        ..SceneOptions::default()
    }
}

fn open(options: SceneOptions) -> Session {
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    Session::open(options, cache, false).expect("opens")
}

fn state(session: &mut Session, t_s: f64) -> String {
    let frame = session.frame(t_s, &Input::default()).expect("plays");
    frame.state.expect("a state")
}

#[test]
fn parameters_are_declared_by_being_asked_for() {
    let folder = folder(SCENE);
    let mut session = open(options(folder.path()));
    assert_eq!(state(&mut session, 0.0), "2 1.5 warm false 1 1, 2, 3 2");
    let params = session.params();
    let names: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["made", "now", "look", "lit"]);
    assert!(params[0].loads && !params[1].loads);
    assert_eq!((params[0].line, params[1].line), (1, 7));
    assert_eq!(
        (params[0].unit.as_str(), params[0].help.as_str()),
        ("m", "how large")
    );

    let number = ParamValue::Number;
    assert_eq!(session.set_param("now", &number(3.0)), Ok(Changed::Now));
    assert_eq!(session.set_param("now", &number(3.0)), Ok(Changed::No));
    let cold = ParamValue::Text("cold".to_owned());
    assert_eq!(session.set_param("look", &cold), Ok(Changed::Now));
    assert_eq!(session.set_param("lit", &number(1.0)), Ok(Changed::Now));
    assert_eq!(state(&mut session, 0.0), "2 3 cold true 1 1, 2, 3 2");
    // Onto a step, and only with the next load.
    assert_eq!(
        session.set_param("made", &number(3.2)),
        Ok(Changed::ByLoading)
    );
    session.reload(0.0, &Input::default()).expect("loads");
    assert_eq!(state(&mut session, 0.0), "3 3 cold true 2 1, 2, 3 2,3");

    for (name, value, part) in [
        (
            "mad",
            number(1.0),
            "there is no parameter 'mad'; did you mean 'made'?",
        ),
        ("now", cold, "the parameter 'now' is a number, not cold"),
        (
            "look",
            ParamValue::Text("hot".to_owned()),
            "is one of warm, cold, not 'hot'",
        ),
        (
            "look",
            ParamValue::Flag(true),
            "the parameter 'look' is a text, not true",
        ),
        (
            "now",
            number(f64::NAN),
            "the parameter 'now' is a number, not NaN",
        ),
    ] {
        let error = session.set_param(name, &value).expect_err(part);
        assert!(error.contains(part), "{error}, expected: {part}");
    }
}

#[test]
fn what_a_script_says_anew_wins_over_what_was_set() {
    let folder = folder(SCENE);
    let mut session = open(options(folder.path()));
    state(&mut session, 0.0);
    session
        .set_param("now", &ParamValue::Number(9.0))
        .expect("sets");
    let text = SCENE.replace("\"now\", 1.5", "\"now\", 1.75");
    std::fs::write(folder.path().join("scene.luau"), text).expect("writes");
    session.reload(0.0, &Input::default()).expect("loads");
    assert!(state(&mut session, 0.0).starts_with("2 1.75 "));
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    for (scene, part) in [
        ("param('Pace', 1)", "param: name must be 1 to 64 of a-z"),
        ("param(3, 1)", "param: name must be a string, got 3"),
        (
            "param('a')",
            "param: default must be a number, true, false or a string",
        ),
        (
            "param('a', 0/0)",
            "param: default must be a number, got NaN",
        ),
        ("param('a', vector.one)", "got vector(1, 1, 1)"),
        (
            "param('a', 1, { mim = 2 })",
            "param: options has no field mim; did you mean 'min'?",
        ),
        (
            "param('a', 1, { min = 2, max = 1 })",
            "has min 2, which is not under max 1",
        ),
        (
            "param('a', 5, { max = 1 })",
            "begins at 5, outside of its range ... to 1",
        ),
        (
            "param('a', 1, { step = 0, unit = 'm' })",
            "param: options.step must be above 0 m, got 0",
        ),
        (
            "param('a', 'x', { choices = { 'y' } })",
            "begins at 'x', which is none of its choices",
        ),
        (
            "param('a', true, { min = 0 })",
            "min, max and step are for numbers",
        ),
        ("param('a', 1) param('a', 2)", "'a' begins at 1 in"),
        (
            "for i = 1, 300 do param(`p{i}`, 1) end",
            "a scene may have 256 parameters",
        ),
        ("persist('a', 3)", "persist: default must be a table"),
        ("persist('', {})", "persist: key must have 1 to 64 bytes"),
    ] {
        let folder = folder(&format!("{scene}\nreturn {{}}"));
        let mut session = open(options(folder.path()));
        let error = session.reload(0.0, &Input::default()).expect_err(scene);
        assert!(
            error.message.contains(part),
            "{scene}: {error}, expected: {part}"
        );
        assert_eq!(error.line, 1, "{error}");
    }
}

#[test]
fn tables_outlive_a_version_and_grow_with_their_default() {
    let folder = folder(SCENE);
    let mut session = open(options(folder.path()));
    state(&mut session, 0.0);
    let text = SCENE
        .replace("loads = 0,", "loads = 0, fresh = { deep = 7 },")
        .replace(
            "kept.loads += 1",
            "kept.loads += kept.fresh.deep kept.wrong = print",
        );
    std::fs::write(folder.path().join("scene.luau"), text).expect("writes");
    session.reload(0.0, &Input::default()).expect("loads");
    assert!(state(&mut session, 0.0).contains(" 8 1, 2, 3 2,2"));
    // A function cannot go over: that table starts anew, and says so.
    session.reload(0.0, &Input::default()).expect("loads");
    assert!(state(&mut session, 0.0).contains(" 7 1, 2, 3 2"));
}

#[test]
fn a_value_is_written_into_the_script_that_says_it() {
    let module =
        "-- param(\"now\", 1.5)\nreturn function() return param(\"now\", 1.5, { min = 0 }) end\n";
    let scene = "local now = require(\"./numbers\")\nreturn { frame = function() return { state = tostring(now()) } end }\n";
    let folder = folder(scene);
    std::fs::write(folder.path().join("numbers.luau"), module).expect("writes");
    let mut session = open(options(folder.path()));
    state(&mut session, 0.0);
    session
        .set_param("now", &ParamValue::Number(2.299_999_9))
        .expect("sets");
    let path = session.write_param("now").expect("writes");
    assert_eq!(path, folder.path().join("numbers.luau"));
    let written = std::fs::read_to_string(&path).expect("reads");
    assert_eq!(
        written,
        module.replace("return param(\"now\", 1.5", "return param(\"now\", 2.3")
    );
    session.reload(0.0, &Input::default()).expect("loads");
    assert_eq!(state(&mut session, 0.0), "2.3");
    assert!(session.write_param("nobody").is_err());
    // A built-in scene lies in the program.
    let mut builtin = open(SceneOptions {
        scene: "@hello".to_owned(),
        ..SceneOptions::default()
    });
    builtin.frame(0.0, &Input::default()).expect("plays");
    assert!(builtin.write_param("now").is_err());
}

#[test]
fn presets_are_saved_beside_the_scene_and_set_from_the_command_line() {
    let folder = folder(SCENE);
    let scene = folder.path().to_str().expect("UTF-8").to_owned();
    let mut session = open(options(folder.path()));
    state(&mut session, 0.0);
    session
        .set_param("now", &ParamValue::Number(4.0))
        .expect("sets");
    session.save_preset("evening").expect("saves");
    assert_eq!(session.presets(), ["evening"]);
    assert!(session.save_preset("../out").is_err());

    let trace = |flags: &[&str]| {
        let args = [&["trace", &scene, "--to", "0.1", "--step", "0.1"], flags].concat();
        let lines = text(&check_code(&args, 0).stdout);
        let line: Value =
            serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
        line["state"].as_str().expect("a state").to_owned()
    };
    assert!(trace(&["--preset", "evening"]).starts_with("2 4 warm"));
    let over = [
        "--preset", "evening", "--param", "now=5", "--param", "made=1", "--param", "lit=on",
    ];
    assert!(trace(&over).starts_with("1 5 warm true"));
    for (flags, part) in [
        (
            ["--param", "mad=5"],
            "there is no parameter 'mad'; did you mean 'made'?",
        ),
        (
            ["--param", "now=fast"],
            "the parameter 'now' is a number, not fast",
        ),
        (["--param", "look=hot"], "is one of warm, cold"),
    ] {
        let args = [&["trace", &scene, "--to", "0.1"][..], &flags].concat();
        let said = text(&check_code(&args, 2).stderr);
        assert!(said.contains(part), "{said}");
    }
    let said = text(&check_code(&["trace", &scene, "--preset", "noon", "--to", "1"], 1).stderr);
    assert!(said.contains("presets/noon.json"), "{said}");

    let listed = text(&check_code(&["params", &scene, "--json"], 0).stdout);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["presets"], json!(["evening"]));
    assert_eq!(listed["params"][0]["name"], "made");
    assert_eq!(listed["params"][0]["max"], 4.0);
    let listed = text(&check_code(&["params", &scene], 0).stdout);
    assert!(
        listed.contains("made") && listed.contains("1 to 4"),
        "{listed}"
    );
}

#[test]
fn a_slider_that_moves_shows_in_the_next_picture() {
    let folder = folder(SCENE);
    let zero = Instant::now();
    let mut live = Live::new(AssetCache::new(Arc::new(|_, _| ())), zero);
    let mut devices = Devices::default();
    live.open(options(folder.path()), devices.input(), zero)
        .expect("opens");
    let mut at = |devices: &mut Devices, ms: u64| {
        live.step(devices, None, zero + Duration::from_millis(ms));
        live.frame().state.clone().expect("a state")
    };
    assert!(at(&mut devices, 10).starts_with("2 1.5 "));
    // As many as there are moves between two pictures: one load.
    for value in [1.0, 3.0, 4.0] {
        devices.param("made", ParamValue::Number(value));
    }
    devices.param("now", ParamValue::Number(0.25));
    assert_eq!(at(&mut devices, 20), "4 0.25 warm false 2 1, 2, 3 2,4");
    assert_eq!(live.fault(), None);
}

#[test]
fn a_console_evaluates_against_the_running_scene() {
    let folder = folder(&SCENE.replace("return {\n\tframe", "return {\n\tname = \"me\",\n\tframe"));
    let mut session = open(options(folder.path()));
    state(&mut session, 2.0);
    let mut ask = |line: &str| session.evaluate(line, 2.0);
    for (line, comes_to) in [
        ("1 + t", Some("3")),
        ("scene.name", Some("\"me\"")),
        ("scene.frame(0).camera.position", Some("vector(0, 0, 3)")),
        (
            "{ 3, 2, b = 'x', a = { { { {} } } } }",
            Some("{3, 2, a = {{{...}}}, b = \"x\"}"),
        ),
        ("persist('kept', {}).loads", Some("1")),
        ("param('now', 1.5)", Some("1.5")),
        ("x = 5", None),
        ("x * 2", Some("10")),
        ("nil", Some("nil")),
        ("print", Some("function")),
        ("for i = 1, 2 do x += i end", None),
        ("x", Some("8")),
    ] {
        let answer = ask(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(answer.as_deref(), comes_to, "{line}");
    }
    for (line, part) in [
        ("1 +", "console:1: "),
        ("nobody.x", "console:1: 'nobody' is not defined"),
        ("error('own')", "own"),
        ("while true do end", "endless loop"),
        ("string.rep('x', 2^31)", "out of memory"),
        ("require('../x')", "leads outside of the scene"),
        ("math.pi = 3", "readonly"),
    ] {
        let error = ask(line).expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}, expected: {part}");
    }
    // It goes on after all of that.
    assert_eq!(ask("x").expect("evaluates").as_deref(), Some("8"));
    let long = ask("table.create(100000, 'long')").expect("evaluates");
    assert!(long.is_some_and(|text| text.len() < 20_000));
}

#[test]
fn values_given_to_a_first_load_fit_or_are_named() {
    let folder = folder(SCENE);
    let mut session = open(SceneOptions {
        params: [
            ("made", ParamValue::Number(9.0)),
            ("look", ParamValue::Text("hot".to_owned())),
            ("nobody", ParamValue::Flag(true)),
        ]
        .map(|(name, value)| (name.to_owned(), Given::always(value)))
        .into(),
        ..options(folder.path())
    });
    assert!(state(&mut session, 0.0).starts_with("4 1.5 warm"));
    let wrong = session.wrong_params();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("hot") && wrong[1].contains("nobody"));
}

#[test]
fn state_machines_are_drawn() {
    let dot = text(&check_code(&["graph", "@avatar"], 0).stdout);
    assert!(
        dot.starts_with("digraph") && dot.contains("->") && dot.contains("idle"),
        "{dot}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("states.svg");
    let path = path.to_str().expect("UTF-8");
    check_code(&["graph", "@avatar", "-o", path], 0);
    let picture = std::fs::read_to_string(path).expect("reads");
    assert!(picture.contains("<svg") && picture.contains("idle"));
    let machines = text(&check_code(&["graph", "@avatar", "--json"], 0).stdout);
    let machines: Value = serde_json::from_str(&machines).expect("JSON");
    assert!(
        machines["machines"][0]["states"]
            .as_array()
            .is_some_and(|s| s.len() > 2)
    );
    check_code(&["graph", "@hello", "-o", path], 1);
    check_code(&["graph", "@avatar", "-o", "x.pdf"], 2);
}

#[test]
fn state_machines_go_on_in_the_next_version() {
    let scene = r#"local states = require("@stage/states")
local machine = states.machine({
	built_in = false,
	dimensions = { glow = states.number(0) },
	states = { dim = { glow = 0 }, bright = { glow = 1 } },
	transitions = { ["dim->bright"] = { duration = 1, easing = "linear" } },
	initial = "dim",
})
return {
	step = function(dt) machine:advance(dt) end,
	event = function(e) machine:go("bright") end,
	frame = function() return { state = `{machine.target} {math.round(100 * machine:value("glow"))}` } end,
}
"#;
    let folder = folder(scene);
    let mut session = open(options(folder.path()));
    assert_eq!(state(&mut session, 0.5), "dim 0");
    let clicked = Event {
        kind: "click".to_owned(),
        name: String::new(),
        values: Vec::new(),
        target: None,
        row: None,
    };
    session.event(&clicked).expect("hears");
    assert_eq!(state(&mut session, 1.0), "bright 50");
    session.reload(1.0, &Input::default()).expect("loads");
    assert_eq!(state(&mut session, 1.0), "bright 50");
    assert_eq!(state(&mut session, 1.25), "bright 75");
    assert_eq!(state(&mut session, 3.0), "bright 100");
}

#[test]
fn a_callback_that_fails_is_suspended_and_the_rest_goes_on() {
    let folder = folder(
        r#"local steps, heard = 0, 0
return {
	step = function()
		steps += 1
		if steps == 10 then error("no more steps") end
	end,
	event = function(e)
		if e.kind == "key" and e.name == "x" then error("no such key") end
		if e.kind == "key" then heard += 1 end
	end,
	frame = function(t)
		if t > 1 then error("too late") end
		return { state = `{steps} {heard} {math.floor(100 * t)}` }
	end,
}
"#,
    );
    let zero = Instant::now();
    let mut live = Live::new(AssetCache::new(Arc::new(|_, _| ())), zero);
    let mut devices = Devices::default();
    live.open(options(folder.path()), devices.input(), zero)
        .expect("opens");
    let mut at = |devices: &mut Devices, ms: u64| {
        let moves = live.step(devices, None, zero + Duration::from_millis(ms));
        let fault = live.fault().map(|f| (f.text.clone(), f.running.clone()));
        (moves, live.frame().state.clone().expect("a state"), fault)
    };
    devices.key("a");
    assert_eq!(at(&mut devices, 20), (true, "4 1 2".to_owned(), None));
    // The tenth step fails: one error, and the picture goes on as the steps have left it.
    let (moves, state, fault) = at(&mut devices, 105);
    assert!(moves);
    assert_eq!(state, "10 1 10");
    let (text, running) = fault.expect("an error");
    assert!(text.contains("scene.luau:5: no more steps"), "{text}");
    assert!(running.ends_with("without its step"), "{running}");
    devices.key("b");
    let (moves, state, _) = at(&mut devices, 205);
    assert_eq!((moves, state.as_str()), (true, "10 2 20"));
    devices.key("x");
    let (moves, state, fault) = at(&mut devices, 305);
    assert_eq!((moves, state.as_str()), (true, "10 2 30"));
    let (text, running) = fault.expect("an error");
    assert!(text.contains("scene.luau:8: no such key"), "{text}");
    assert!(running.ends_with("without its step and event"), "{running}");
    devices.key("c");
    assert_eq!(at(&mut devices, 405).1, "10 2 40", "nobody hears it");
    // Without frame the last picture stays.
    let (moves, state, fault) = at(&mut devices, 1105);
    assert_eq!((moves, state.as_str()), (false, "10 2 40"));
    assert!(fault.expect("an error").0.contains("too late"));
    assert!(!at(&mut devices, 1205).0);
}
