//! The tools of a scene's author: `new`, `check`, `test`, `pack`, and input logs that are recorded.

use crate::cli::{check_code, check_json, check_refused, text, utf8};
use crate::given;
use serde_json::Value;
use splatstage::app::assets::AssetCache;
use splatstage::app::input::Devices;
use splatstage::app::live::Live;
use splatstage::app::record::Recorder;
use splatstage::app::replay::{Log, Player};
use splatstage::app::{SceneOptions, Session};
use splatstage::frame::Frame;
use splatstage::script::ParamValue;
use splatstage::script::api;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
    std::fs::write(path, text).expect("writes");
}

/// Puts `new` in the place of `old` in a file.
#[track_caller]
fn edit(file: &Path, old: &str, new: &str) {
    let before = std::fs::read_to_string(file).expect("reads");
    assert!(before.contains(old), "no '{old}' in {}", file.display());
    std::fs::write(file, before.replacen(old, new, 1)).expect("writes");
}

#[track_caller]
fn findings(scene: &Path, code: i32) -> Vec<(u64, String, String)> {
    let report = check_json(&["check", utf8(scene), "--json"], code);
    let found = report["findings"].as_array().expect("findings");
    let text = |finding: &Value, name: &str| finding[name].as_str().expect("text").to_owned();
    found
        .iter()
        .map(|f| {
            (
                f["line"].as_u64().expect("a line"),
                text(f, "severity"),
                text(f, "message"),
            )
        })
        .collect()
}

fn trace(scene: &Path) -> Vec<u8> {
    check_code(&["trace", utf8(scene), "--to", "8", "--step", "0.25"], 0).stdout
}

#[test]
fn a_new_author_gets_from_new_to_a_pack_that_plays() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = folder.path().join("lane");
    check_code(&["new", utf8(&scene), "--template", "walk"], 0);
    let script = scene.join("scene.luau");
    for (format, name) in &api::Format::FILES[..2] {
        let stub = std::fs::read_to_string(scene.join(".luau").join(name)).expect("for editors");
        assert!(stub == api::page(*format), "{name}");
        let settings = std::fs::read_to_string(scene.join(".vscode/settings.json"));
        assert!(
            settings
                .expect("for editors")
                .contains(".luau/splatstage.d.luau")
        );
    }
    assert_eq!(findings(&scene, 0), []);
    let tested = check_json(&["test", utf8(&scene), "--json"], 0);
    assert_eq!(
        (&tested["passed"], &tested["failed"]),
        (&4.into(), &0.into())
    );

    // A number of the gait.
    let before = trace(&scene);
    edit(&script, "bob_m = 0.019", "bob_m = 0.05");
    assert_ne!(trace(&scene), before, "another gait is another walk");

    // A state, and nothing that leads into it; then something that does.
    edit(
        &script,
        "bright = { glow = 1 },",
        "bright = { glow = 1 },\n\t\tout = { glow = 0 },",
    );
    let source = std::fs::read_to_string(&script).expect("reads");
    let line = 1 + source
        .lines()
        .position(|l| l.contains("out = { glow"))
        .expect("there");
    let message = "nothing leads into the state 'out'".to_owned();
    assert_eq!(
        findings(&scene, 0),
        [(line as u64, "warning".to_owned(), message)]
    );
    edit(&script, "pressed = \"bright\"", "pressed = \"out\"");
    assert_eq!(findings(&scene, 0), []);

    // Broken, and mended.
    edit(
        &script,
        "local function step(dt, input)",
        "local function step(dt, input))",
    );
    let report = check_code(&["check", utf8(&scene)], 1);
    let broken = text(&report.stdout);
    let line = 1 + source
        .lines()
        .position(|l| l.contains("function step"))
        .expect("there");
    assert!(broken.contains(&format!("scene.luau:{line}: ")), "{broken}");
    edit(
        &script,
        "local function step(dt, input))",
        "local function step(dt, input)",
    );
    assert_eq!(findings(&scene, 0), []);
    check_code(&["test", utf8(&scene)], 0);

    // A pack, somewhere else, with the folder gone.
    let pack = folder.path().join("lane.stage");
    check_code(&["pack", utf8(&scene), "-o", utf8(&pack)], 0);
    let wanted = trace(&scene);
    let hashes = |scene: &Path| {
        let args = [
            "render",
            utf8(scene),
            "--json",
            "--frames",
            "0..3",
            "--fps",
            "1",
            "--size",
            "96x54",
        ];
        let report = check_json(&args, 0);
        let frames = report["frames"].as_array().expect("frames").clone();
        frames.iter().map(|f| f["hash"].clone()).collect::<Vec<_>>()
    };
    let pictures = given::gpu().map(|_| hashes(&scene));
    let elsewhere = tempfile::tempdir().expect("a folder");
    let moved = elsewhere.path().join("moved.stage");
    std::fs::rename(&pack, &moved).expect("moves");
    std::fs::remove_dir_all(&scene).expect("removes");
    assert_eq!(trace(&moved), wanted);
    if let Some(pictures) = pictures {
        assert_eq!(hashes(&moved), pictures);
    }
}

#[test]
fn every_template_is_without_finding_and_passes_its_tests() {
    for template in ["avatar", "walk", "blank"] {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = folder.path().join("s");
        let made = check_json(&["new", utf8(&scene), "--template", template, "--json"], 0);
        for file in made["files"].as_array().expect("files") {
            assert!(
                Path::new(file.as_str().expect("a path")).is_file(),
                "{file}"
            );
        }
        assert_eq!(findings(&scene, 0), [], "{template}");
        let tested = check_json(&["test", utf8(&scene), "--json"], 0);
        assert_eq!(tested["failed"], 0, "{template}: {tested:#}");
        assert!(tested["passed"].as_u64() > Some(1), "{template}");
    }
}

#[test]
fn new_writes_over_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "scene_test.luau", "-- mine");
    check_refused(
        &["new", utf8(folder.path())],
        2,
        &["scene_test.luau", "is there already"],
    );
    let names = std::fs::read_dir(folder.path()).expect("lists").count();
    assert_eq!(names, 1, "nothing else was written");
    let kept = std::fs::read_to_string(folder.path().join("scene_test.luau"));
    assert_eq!(kept.expect("reads"), "-- mine");
}

#[test]
fn the_scenes_of_the_program_are_without_finding() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::fs::read_dir(root.join("scenes")).expect("lists");
    let mut scenes: Vec<String> = (folders.flatten())
        .map(|entry| utf8(&entry.path()).to_owned())
        .collect();
    assert!(scenes.len() >= 5, "{scenes:?}");
    scenes.extend(["@avatar", "@alley", "@room", "@hello"].map(str::to_owned));
    scenes.push(utf8(&root.join("benches/body")).to_owned());
    for scene in scenes {
        assert_eq!(findings(Path::new(&scene), 0), [], "{scene}");
    }
}

/// A scene's script, the line of its one finding, the start of its severity, and words of the message.
const MISTAKES: [(&str, u64, &str, &str); 12] = [
    (
        "return { frame = function(t)\n\treturn nil + t\nend }",
        2,
        "error",
        "arithmetic",
    ),
    (
        "return {\n\tevent = function(e)\n\t\tmissing(e)\n\tend,\n}",
        3,
        "error",
        "'missing' is not defined",
    ),
    (
        "return {\n\tdurration = 4,\n}",
        2,
        "warning",
        "is it 'duration'?",
    ),
    (
        "return { frame = function()\n\treturn { backgrund = \"#000000\" }\nend }",
        1,
        "error",
        "backgrund",
    ),
    (
        "local late = false\nreturn { load = function(stage)\n\tif late then\n\t\tstage.splats(\"flat.sog\")\n\tend\nend }",
        4,
        "error",
        "no such splat file: 'flat.sog'",
    ),
    (
        "if false then\n\tsound.clip(\"bell.ogg\")\nend\nreturn {}",
        2,
        "error",
        "no such sound file",
    ),
    (
        "if false then\n\trequire(\"./parts\")\nend\nreturn {}",
        2,
        "error",
        "no such module: './parts'",
    ),
    (
        "return {\n\tduration = 4,\n\tcues = function(from, to)\n\t\treturn if from <= 5.5 and 5.5 < to then { { t = 5.5, kind = \"bell\" } } else {}\n\tend,\n}",
        4,
        "warning",
        "the cue 'bell' at 5.500 s is outside the film of 4 s",
    ),
    (
        "local n = table.getn({ 1 })\nreturn { duration = n }",
        1,
        "warning",
        "table.getn is deprecated",
    ),
    (
        "local states = require(\"@stage/states\")\nstates.machine({\n\tbuilt_in = false,\n\tstates = { a = {}, b = {} },\n\tinitial = \"a\",\n})\nreturn {}",
        4,
        "warning",
        "nothing leads into the state 'b'",
    ),
    (
        "local states = require(\"@stage/states\")\nstates.machine({\n\tbuilt_in = false,\n\tstates = { a = {} },\n\ttransitions = {\n\t\t[\"a->gone\"] = { exit_time = 1 },\n\t},\n})\nreturn {}",
        6,
        "error",
        "'gone', which is no state",
    ),
    (
        "local character = require(\"@stage/character\")\nlocal hero\nreturn { load = function(stage)\n\thero = character.build(stage, { density = 0.02 })\nend, event = function(e)\n\tif e.kind == \"never\" then\n\t\thero:bone(\"nekc\"):turn(0, 0, 0)\n\tend\nend }",
        7,
        "error",
        "no avatar of this scene has a bone 'nekc'",
    ),
];

#[test]
fn check_finds_mistakes_at_their_lines() {
    for (script, line, severity, words) in MISTAKES {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "scene.luau", script);
        let code = i32::from(severity == "error");
        let found = findings(folder.path(), code);
        assert_eq!(found.len(), 1, "{script}: {found:?}");
        let (at, how, message) = &found[0];
        assert_eq!((*at, how.as_str()), (line, severity), "{script}: {message}");
        assert!(message.contains(words), "{script}: {message}");
    }
}

#[test]
fn check_finds_shaders_that_do_not_build() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let original = include_str!("../../shaders/compose.wgsl");
    let lines = original.lines().count() as u64;
    write(
        folder.path(),
        "compose.wgsl",
        format!("{original}\nfn broken() -> u32 {{ return behnd; }}\n"),
    );
    write(folder.path(), "compsoe.wgsl", original);
    let args = [
        "check",
        "@hello",
        "--json",
        "--shaders",
        utf8(folder.path()),
    ];
    let report = check_json(&args, 1);
    let found = report["findings"].as_array().expect("findings");
    let is_broken = |f: &&Value| f["message"].as_str().is_some_and(|m| m.contains("behnd"));
    let broken = found.iter().find(is_broken).expect("the broken one");
    assert_eq!(broken["line"].as_u64(), Some(lines + 2), "{broken}");
    assert_eq!(broken["file"], utf8(&folder.path().join("compose.wgsl")));
    let is_misnamed = |f: &&Value| f["file"] == utf8(&folder.path().join("compsoe.wgsl"));
    assert_eq!(
        found.iter().find(is_misnamed).expect("the misnamed one")["severity"],
        "warning"
    );
}

const MOVING: &str = "-- a camera that moves, and a state that changes
return {
	duration = 4,
	frame = function(t)
		return { state = if t < 2 then \"early\" else \"late\", camera = { position = vector.create(t, 0, 3), target = vector.zero } }
	end,
}
";

#[test]
fn a_test_that_fails_says_where_and_what() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "scene.luau", MOVING);
    let test = "return {
	[\"holds\"] = function(scene)
		expect(scene.duration).equals(4)
		expect(scene:frame(1)).differs(scene:frame(3))
		expect(scene:frame(1).camera.position).near(vector.create(1, 0, 3))
		expect(scene:frame(1).state).contains(\"ear\")
		expect(function() error(\"so it is\") end).fails(\"so it is\")
	end,
	[\"does not hold\"] = function(scene)
		expect(scene:frame(1).state).equals(\"late\")
	end,
	[\"asks for nonsense\"] = function(scene)
		scene:frame(\"soon\")
	end,
}
";
    write(folder.path(), "scene_test.luau", test);
    let report = check_json(&["test", utf8(folder.path()), "--json"], 1);
    assert_eq!(
        (&report["passed"], &report["failed"]),
        (&1.into(), &2.into()),
        "{report:#}"
    );
    let tests = report["tests"].as_array().expect("tests");
    let names: Vec<&str> = tests.iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(
        names,
        ["holds", "does not hold", "asks for nonsense"],
        "as they stand there"
    );
    let error = &tests[1]["error"];
    assert_eq!(error["line"], 10, "{error}");
    assert_eq!(error["message"], "expected 'late', got 'early'");
    assert_eq!(tests[2]["error"]["line"], 13, "{}", tests[2]);
    let shown = text(&check_code(&["test", utf8(folder.path()), "--only", "does not"], 1).stdout);
    assert!(
        shown.contains("FAILED  scene_test.luau: does not hold"),
        "{shown}"
    );
    assert!(
        shown.contains("scene_test.luau:10: expected 'late'"),
        "{shown}"
    );
    check_code(&["test", utf8(folder.path()), "--only", "holds"], 0);
    std::fs::remove_file(folder.path().join("scene_test.luau")).expect("removes");
    check_refused(&["test", utf8(folder.path())], 1, &["_test.luau"]);
}

#[test]
fn pictures_are_held_to_golden_ones() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let scene = folder.path();
    write(
        scene,
        "scene.luau",
        "local SIZE = 0.4
return {
	duration = 4,
	load = function(stage)
		local one = stage.builder(1)
		one:add(vector.zero, SIZE, { 1, 0.5, 0.2 })
		one:build(\"one\")
	end,
	camera = { position = vector.create(0, 0, 3), target = vector.zero },
}
",
    );
    write(
        scene,
        "scene_test.luau",
        "return {
	[\"looks as it did\"] = function(scene)
		expect(scene:picture(1, { size = { 64, 48 } })).looks_like(\"goldens/one.png\", 45)
	end,
}
",
    );
    let first = check_json(&["test", utf8(scene), "--json"], 1);
    let message = first["tests"][0]["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(message.contains("--update"), "{message}");
    check_code(&["test", utf8(scene), "--update"], 0);
    let golden = scene.join("goldens/one.png");
    assert_eq!(image::image_dimensions(&golden).ok(), Some((64, 48)));
    check_code(&["test", utf8(scene)], 0);
    edit(&scene.join("scene.luau"), "SIZE = 0.4", "SIZE = 0.5");
    let other = check_json(&["test", utf8(scene), "--json"], 1);
    let error = &other["tests"][0]["error"];
    assert_eq!(error["line"], 3, "{error}");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|m| m.contains("dB from")),
        "{error}"
    );
    assert!(scene.join("goldens/one.new.png").is_file());
}

#[test]
fn a_pack_holds_what_is_used_and_the_library_that_stood_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let (scene, library) = (folder.path().join("s"), folder.path().join("library"));
    let blink = "-- another blink\nreturn { stand_in = 42 }\n";
    write(&library, "blink.luau", blink);
    write(&library, "ghost.luau", "-- not required\nreturn {}\n");
    write(&scene, "parts/one.luau", "return 1\n");
    write(&scene, "unused.luau", "return 2\n");
    write(&scene, "scene_test.luau", "return {}\n");
    write(&scene, "numbers.json", "{ \"n\": 7 }");
    write(
        &scene,
        "scene.luau",
        "local blink = require(\"@stage/blink\")
local one = require(\"./parts/one\")
local n = stage.data(\"numbers.json\").n
return { frame = function()
	return { state = `{blink.stand_in} {one} {n}` }
end }
",
    );
    let pack = folder.path().join("s.stage");
    let args = [
        "pack",
        utf8(&scene),
        "-o",
        utf8(&pack),
        "--scripts",
        utf8(&library),
        "--json",
    ];
    let report = check_json(&args, 0);
    let files = report["files"].as_array().expect("files");
    let names: Vec<&str> = files.iter().filter_map(|f| f["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "@stage/blink.luau",
            "numbers.json",
            "parts/one.luau",
            "scene.luau"
        ]
    );
    let first = std::fs::read(&pack).expect("reads");
    check_json(&args, 0);
    assert_eq!(
        std::fs::read(&pack).expect("reads"),
        first,
        "the same every time"
    );
    std::fs::remove_dir_all(&scene).expect("removes");
    std::fs::remove_dir_all(&library).expect("removes");
    let shown = text(&check_code(&["trace", utf8(&pack), "--to", "0.1"], 0).stdout);
    assert!(shown.contains("\"state\":\"42 1 7\""), "{shown}");
    let left = std::fs::read_dir(folder.path()).expect("lists").count();
    assert_eq!(left, 1, "no temporary file");
    check_refused(
        &["pack", "@hello", "-o", utf8(&folder.path().join("x.zip"))],
        2,
        &[".stage"],
    );
    let hello = folder.path().join("hello.stage");
    check_code(&["pack", "@hello", "-o", utf8(&hello)], 0);
    assert_eq!(
        trace(&hello),
        trace(Path::new("@hello")),
        "built-in scenes too"
    );
}

#[test]
fn splats_go_into_a_pack_and_links_out_of_the_folder_do_not() {
    let Some(scan) = given::data("splattie/demo_HEAD.splattie") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let scene = folder.path().join("s");
    write(
        &scene,
        "scene.luau",
        "local hero
return { load = function(stage)
	hero = stage.splats(\"a.splattie\")
end, frame = function()
	return { state = tostring(hero.count) }
end }
",
    );
    std::fs::copy(&scan, scene.join("a.splattie")).expect("copies");
    let pack = folder.path().join("s.stage");
    check_code(&["pack", utf8(&scene), "-o", utf8(&pack)], 0);
    assert_eq!(trace(&pack), trace(&scene));
    #[cfg(unix)]
    {
        std::fs::remove_file(&pack).expect("removes");
        std::fs::rename(scene.join("a.splattie"), folder.path().join("b.splattie")).expect("moves");
        std::os::unix::fs::symlink("../b.splattie", scene.join("a.splattie")).expect("links");
        check_refused(
            &["pack", utf8(&scene), "-o", utf8(&pack)],
            1,
            &["a.splattie", "leads out"],
        );
        assert!(!pack.exists());
    }
}

/// A scene that keeps everything that it hears and sees: if one bit of it differs, so does its state.
const EAR: &str = "local heard, drag, wheel, steps = {}, vector.zero, 0, 0
local kept = persist(\"kept\", { loads = 0 })
kept.loads += 1
local size = param(\"size\", 0.5, { min = 0.1, max = 1 })
local ball
return {
	load = function(stage)
		local builder = stage.builder(1)
		builder:add(vector.zero, size, { 1, 1, 1 })
		ball = builder:build(\"ball\")
		ball.pickable = true
	end,
	step = function(dt, input)
		steps += 1
		heard.gain = (heard.gain or 0) + param(\"gain\", 1, { max = 9 })
		heard.loads = `{kept.loads} {size}`
		drag += input.drag
		wheel += input.wheel * steps
		for name in input.held do
			heard[`held {name}`] = (heard[`held {name}`] or 0) + steps
		end
		heard.over = if input.over == ball then \"ball\" else \"nothing\"
		heard.pointer = `{input.pointer}`
		heard.travel = (heard.travel or 0) + steps * vector.magnitude(drag)
	end,
	event = function(e)
		heard.last = `{e.kind} {e.name} {e.x} {e.y} at {steps}`
		heard.count = (heard.count or 0) + 1
	end,
	frame = function(t)
		local parts = {}
		for key, value in heard do
			table.insert(parts, `{key}={value}`)
		end
		table.sort(parts)
		return { state = `{steps} {drag} {wheel} ` .. table.concat(parts, \"; \"), camera = { position = vector.create(0, 0, 3), target = vector.zero } }
	end,
}
";

/// Plays a scene as a window does, irregularly, with all devices at work; returns the frames.
fn recorded(scene: &SceneOptions, log: &Path) -> Vec<Frame> {
    let zero = Instant::now();
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    let mut live = Live::new(cache, zero);
    let mut devices = Devices::default();
    let mut recorder = Recorder::create(log).expect("a file");
    devices.record();
    devices.resize([640, 360]);
    live.open(scene.clone(), devices.input(), zero)
        .expect("opens");
    let mut frames = Vec::new();
    let mut t_s = 0.0_f64;
    for k in 0..160_u32 {
        // Pictures take between 1 and 40 ms, and one takes longer than a script catches up with.
        t_s += 0.001 + 0.013 * f64::from(k % 4) + if k == 60 { 0.7 } else { 0.0 };
        let u = f64::from(k);
        match k % 20 {
            2 => devices.enter(),
            3..=9 => devices.point(glam::DVec2::new(
                (0.37 * u).sin() * 1.2,
                (0.21 * u).cos() / 3.0,
            )),
            10 => devices.mouse_button("mouse_left", true),
            11 if k < 80 => devices.mouse_button("mouse_left", false),
            11 => devices.release_all(),
            12 => devices.turn_wheel(0.3),
            13 => devices.hold("w"),
            14 => devices.let_go("w"),
            15 => devices.pad_button("pad_south", k % 40 == 15),
            16 => devices.stick(glam::Vec2::new(0.1 * u as f32 % 1.0, -0.3)),
            17 => devices.gyro(glam::Vec3::new(u as f32, 1.0 / 3.0, 0.0)),
            18 => devices.point_away(),
            19 => devices.jump(),
            _ => {}
        }
        if k == 100 {
            devices.resize([500, 400]);
        }
        match k {
            // Read while playing, and read while loading.
            25 | 118 => devices.param("gain", ParamValue::Number(f64::from(k))),
            70 => devices.param("size", ParamValue::Number(0.75)),
            71 => devices.param("nobody", ParamValue::Flag(true)),
            _ => {}
        }
        let seen = (k % 3 == 0).then_some((k % 20 > 4 && k % 20 < 12).then_some((0, k)));
        let now = zero + Duration::from_secs_f64(t_s);
        let arrivals = devices.take_tape();
        recorder
            .arrived(arrivals, seen, live.now_s(now), live.hears())
            .expect("writes");
        let has_picture = live.step(&mut devices, seen, now);
        assert!(has_picture, "{:?}", live.fault());
        recorder
            .stepped(
                Some(live.frame().t_s),
                &live.take_left_out(),
                live.take_loaded_s(),
                live.version_number(),
            )
            .expect("writes");
        frames.push(live.frame().clone());
    }
    frames
}

#[test]
fn a_recorded_log_makes_everything_come_in_again_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "scene.luau", EAR);
    let scene = SceneOptions {
        scene: utf8(folder.path()).to_owned(),
        ..SceneOptions::default()
    };
    let path: PathBuf = folder.path().join("act.log");
    let frames = recorded(&scene, &path);
    let written = std::fs::read_to_string(&path).expect("reads");
    assert!(
        written.contains("left_out"),
        "one gap is longer than a script catches up with"
    );
    let last = frames
        .last()
        .and_then(|f| f.state.clone())
        .expect("a state");
    assert!(!written.contains("# loaded anew"), "the log repeats it");
    for word in ["count=", "over=", "travel=", "gain=", "loads=2 0.75"] {
        assert!(last.contains(word), "the scene heard: {last}");
    }
    let log = Log::read(&path).expect("a log");
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    let session = Session::open(scene.clone(), cache, false).expect("opens");
    // Another size: the recorded one counts.
    let mut player = Player::new(session, log, [64, 64]);
    player.load().expect("loads");
    for (k, live) in frames.iter().enumerate() {
        let again = player.frame(live.t_s).expect("plays");
        assert_eq!(again.state, live.state, "picture {k} at {} s", live.t_s);
    }
    // And as the command line plays it, with other pictures between.
    let args = [
        "trace",
        &scene.scene,
        "--input",
        utf8(&path),
        "--to",
        "5",
        "--step",
        "0.05",
    ];
    let lines = text(&check_code(&args, 0).stdout);
    let end: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    let count = |state: &str| {
        let (_, rest) = state.split_once("count=")?;
        Some(rest.split_once(';')?.0.to_owned())
    };
    let end = end["state"].as_str().expect("a state");
    assert_eq!(count(end), count(&last), "{end} / {last}");
}

#[test]
fn the_tools_have_help_with_examples() {
    for command in ["new", "check", "test", "pack"] {
        let help = text(&check_code(&[command, "--help"], 0).stdout);
        assert!(help.contains("Examples:"), "{command}");
    }
    let help = text(&check_code(&["play", "--help"], 0).stdout);
    assert!(help.contains("--record"), "{help}");
}
