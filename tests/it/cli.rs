//! The command line as programs see it: exit codes, standard output, files that appear or do not.

use crate::given;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The program, without a display and without the settings of whoever runs the tests.
pub fn splatstage<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_splatstage"));
    command
        .args(args)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("RUST_LOG")
        .env_remove("SPLATSTAGE_SHADERS");
    command
}

fn run(args: &[&str]) -> Output {
    splatstage(args).output().expect("the program starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}

#[track_caller]
pub fn check_code(args: &[&str], code: i32) -> Output {
    let output = run(args);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{args:?}: {}",
        text(&output.stderr)
    );
    output
}

#[track_caller]
pub fn check_json(args: &[&str], code: i32) -> Value {
    let output = check_code(args, code);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", text(&output.stdout)))
}

/// Fails with `code`, one line on standard error that holds all of `words`, nothing on standard
/// output.
#[track_caller]
pub fn check_refused(args: &[&str], code: i32, words: &[&str]) {
    let output = check_code(args, code);
    let message = text(&output.stderr);
    for word in words {
        assert!(message.contains(word), "{args:?}: no '{word}' in {message}");
    }
    assert!(output.stdout.is_empty(), "{args:?}: nothing on stdout");
}

pub fn utf8(path: &Path) -> &str {
    path.to_str().expect("temporary paths are Unicode")
}

/// Three splats of degree 0, one of them with a mean that is no number.
const PLY: &str = "ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
property float f_dc_0
property float f_dc_1
property float f_dc_2
property float opacity
property float scale_0
property float scale_1
property float scale_2
property float rot_0
property float rot_1
property float rot_2
property float rot_3
end_header
0 1 2 0.5 0.5 0.5 2 -3 -3 -3 1 0 0 0
1 2 4 0.5 -0.5 0 2 -3 -4 -5 1 0 0 0
nan 0 0 0 0 0 0 -3 -3 -3 1 0 0 0
";

fn ply_in(folder: &Path) -> String {
    let path = folder.join("three.ply");
    std::fs::write(&path, PLY).expect("writes");
    utf8(&path).to_owned()
}

#[test]
fn wrong_usage_exits_2_and_says_what_is_expected() {
    for (args, word) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["render", "@hello"], "--out"),
        (&["render", "@hello", "-o", "a.bmp"], ".png"),
        (&["render", "@hello", "-o", "a.png", "--size", "0x9"], "WxH"),
        (
            &["render", "@hello", "-o", "a.png", "--fps", "0"],
            "above 0",
        ),
        (
            &["render", "@hello", "-o", "a.png", "--fov", "180"],
            "degrees",
        ),
        (
            &["render", "@hello", "-o", "a.gif", "--frames", "5..5"],
            "A..B",
        ),
        (
            &["render", "@hello", "-o", "a.png", "--axes", "RUF"],
            "mirrored",
        ),
        (
            &["render", "@hello", "-o", "a.png", "--background", "red"],
            "#rrggbb",
        ),
        (
            &["trace", "@hello", "--from", "3", "--to", "3"],
            "no picture",
        ),
        (&["trace", "@hello", "--eye", "0,0,1"], "own camera"),
    ] {
        check_refused(args, 2, &[word]);
    }
}

#[test]
fn what_is_not_there_is_named_and_exits_1() {
    check_refused(
        &["trace", "no/such.ply"],
        1,
        &["no/such.ply", "no such file"],
    );
    check_refused(&["trace", "@nothing"], 1, &["@nothing", "@hello"]);
    let folder = tempfile::tempdir().expect("a folder");
    check_refused(&["trace", utf8(folder.path())], 1, &["scene.luau"]);
}

#[test]
fn a_url_is_refused_by_name() {
    let url = "https://example.com/flat.sog";
    check_refused(&["trace", url], 1, &[url, "download it first"]);
    check_refused(&["inspect", url], 1, &[url, "download it first"]);
    let error = &check_json(&["inspect", "--json", url], 1)["error"];
    assert_eq!(error["code"], "is-url");
    assert_eq!(error["file"], url);
}

#[test]
fn inspect_reports_a_ply() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = check_json(&["inspect", "--json", &ply_in(folder.path())], 0);
    assert_eq!(report["format"], "ply");
    assert_eq!(report["count"], 3);
    assert_eq!(report["sh_degree"], 0);
    assert_eq!(report["non_finite"], 1);
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1));
    // PLY is y down and z forward: the world's y and z are the negatives.
    assert_eq!(
        report["bounds"]["min"],
        serde_json::json!([0.0, -2.0, -4.0])
    );
    assert_eq!(
        report["bounds"]["max"],
        serde_json::json!([1.0, -1.0, -2.0])
    );
    let shown = text(&check_code(&["inspect", &ply_in(folder.path())], 0).stdout);
    assert!(shown.contains("count: 3"), "{shown}");
}

#[test]
fn inspect_refuses_what_is_no_splat_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "hello, this is no splat file").expect("writes");
    let error = &check_json(&["inspect", "--json", utf8(&path)], 1)["error"];
    assert_eq!(error["code"], "unknown-format");
    assert_eq!(error["file"], utf8(&path));
    assert!(error["message"].is_string() && error["entry"].is_null());
}

#[test]
fn convert_keeps_the_count_through_every_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = ply_in(folder.path());
    for name in ["a.ply", "a.spz", "a.splat", "a.sog"] {
        let output = folder.path().join(name);
        check_code(&["convert", &input, utf8(&output)], 0);
        let report = check_json(&["inspect", "--json", utf8(&output)], 0);
        assert_eq!(report["count"], 3, "{name}");
    }
    check_refused(
        &["convert", &input, utf8(&folder.path().join("a.xyz"))],
        1,
        &["a.xyz", ".ply"],
    );
    assert!(!folder.path().join("a.xyz").exists());
}

#[test]
fn completions_and_help_know_every_command() {
    let commands = [
        "play", "render", "trace", "inspect", "convert", "bench", "doctor",
    ];
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = text(&check_code(&["completions", shell], 0).stdout);
        for command in commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    for command in commands {
        let help = text(&check_code(&[command, "--help"], 0).stdout);
        assert!(help.contains("Examples:"), "{command}");
    }
}

#[test]
fn the_version_names_the_libraries_of_a_bug_report() {
    let shown = text(&check_code(&["--version"], 0).stdout);
    for word in [env!("CARGO_PKG_VERSION"), "wgpu ", "luau "] {
        assert!(shown.contains(word), "no {word} in {shown}");
    }
}

#[test]
fn trace_prints_one_line_an_instant() {
    let output = check_code(
        &[
            "trace", "@hello", "--from", "0", "--to", "1", "--step", "0.25",
        ],
        0,
    );
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect();
    let times: Vec<f64> = lines.iter().filter_map(|l| l["t"].as_f64()).collect();
    assert_eq!(times, [0.0, 0.25, 0.5, 0.75]);
    for line in &lines {
        let camera = &line["camera"];
        assert_eq!(camera["position"].as_array().map(Vec::len), Some(3));
        for name in ["yaw_deg", "pitch_deg", "roll_deg", "fov_deg"] {
            assert!(camera[name].is_f64(), "{name} in {line}");
        }
        assert!(line["cues"].is_array(), "{line}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = splatstage(["trace", "@hello", "--step", "0.001"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_script_error_names_file_and_line_and_exits_1() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("scene.luau"),
        "-- broken\nlocal x = = 1\n",
    )
    .expect("writes");
    check_refused(&["trace", utf8(folder.path())], 1, &["scene.luau:2:"]);
}

#[test]
fn doctor_always_answers() {
    let report = check_json(&["doctor", "--json"], 0);
    for name in [
        "adapters",
        "monitors",
        "sound",
        "gamepads",
        "paths",
        "versions",
        "variables",
    ] {
        assert!(!report[name].is_null(), "{name}");
    }
    assert!(
        report["monitors"]["error"].is_string(),
        "no display was given"
    );
    check_code(&["doctor"], 0);
}

#[test]
fn renders_are_equal_picture_by_picture() {
    if given::gpu().is_none() {
        return;
    }
    for raster in ["quads", "tiles"] {
        let args = [
            "render", "@hello", "--json", "--to", "3", "--fps", "1", "--size", "96x64", "--raster",
            raster,
        ];
        let (first, second) = (check_json(&args, 0), check_json(&args, 0));
        let frames = first["frames"].as_array().expect("frames");
        assert_eq!(frames.len(), 3);
        assert_eq!(first["raster"], raster);
        for (a, b) in frames
            .iter()
            .zip(second["frames"].as_array().expect("frames"))
        {
            assert_eq!(a["hash"].as_str().map(str::len), Some(64));
            assert_eq!((&a["t"], &a["hash"]), (&b["t"], &b["hash"]), "{raster}");
            assert!(a["sorted"].is_u64());
        }
        assert_ne!(frames[0]["hash"], frames[2]["hash"], "@hello moves");
    }
}

#[test]
fn every_kind_of_output_is_written_whole() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.png", "b-%03d.png", "c.gif", "d.webp", "e.y4m"] {
        let path = folder.path().join(name);
        let span: &[&str] = match name {
            "a.png" => &["--at", "0.5"],
            _ => &["--from", "1", "--to", "1.1", "--fps", "20"],
        };
        let args = [
            &["render", "@hello", "--size", "33x17", "-o", utf8(&path)],
            span,
        ]
        .concat();
        check_code(&args, 0);
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .expect("lists")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let expected = [
        "a.png",
        "b-000.png",
        "b-001.png",
        "c.gif",
        "d.webp",
        "e.y4m",
    ];
    assert_eq!(names, expected, "and no temporary file");
    let size = |name: &str| image::image_dimensions(folder.path().join(name)).ok();
    for name in ["a.png", "b-001.png", "c.gif", "d.webp"] {
        assert_eq!(size(name), Some((33, 17)), "{name}");
    }
    let y4m = std::fs::read(folder.path().join("e.y4m")).expect("reads");
    assert!(y4m.starts_with(b"YUV4MPEG2 W33 H17 F20:1 Ip A1:1 C444"));
    let header = y4m.iter().position(|b| *b == b'\n').expect("a header") + 1;
    assert_eq!(y4m.len(), header + 2 * (6 + 3 * 33 * 17));
}

#[test]
fn alpha_is_kept_where_the_background_has_it() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.png");
    for (background, has_alpha) in [("#00000000", true), ("#203040", false)] {
        check_code(
            &[
                "render",
                "@hello",
                "--size",
                "32x32",
                "--background",
                background,
                "-o",
                utf8(&path),
            ],
            0,
        );
        let picture = image::open(&path).expect("a picture");
        assert_eq!(picture.color().has_alpha(), has_alpha, "{background}");
    }
}

#[test]
fn a_picture_of_many_instants_is_wrong_usage() {
    check_refused(
        &[
            "render",
            "@hello",
            "-o",
            "never.png",
            "--from",
            "0",
            "--to",
            "1",
        ],
        2,
        &["%05d"],
    );
}

#[test]
fn without_a_display_a_sample_is_rendered_and_named() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = splatstage(["--size", "32x24"])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no display"));
    for line in text(&output.stdout).lines() {
        assert!(folder.path().join(line).is_file(), "{line}");
    }
    assert!(folder.path().join("out/avatar.png").is_file());
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_no_file() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.y4m");
    let mut child = splatstage([
        "render", "@hello", "--to", "100000", "--size", "64x64", "-o",
    ])
    .arg(&path)
    .stderr(std::process::Stdio::null())
    .spawn()
    .expect("the program starts");
    let list = || std::fs::read_dir(folder.path()).expect("lists").count();
    while list() == 0 && child.try_wait().expect("asks").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.is_ok_and(|s| s.success()), "it was running");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
    assert_eq!(list(), 0, "neither the file nor a temporary one");
}

#[test]
fn the_scenes_of_the_readme_play() {
    let readme = include_str!("../../README.md");
    let scenes: Vec<&str> = readme
        .split("```lua\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .map(|(script, _)| script)
        .collect();
    assert_eq!(scenes.len(), 3, "the README shows three scenes");
    for script in scenes {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("scene.luau"), script).expect("writes");
        if script.contains("anna.splattie") {
            let Some(head) = given::data("splattie/demo_HEAD.splattie") else {
                continue;
            };
            std::fs::copy(head, folder.path().join("anna.splattie")).expect("copies");
        }
        let output = check_code(&["trace", utf8(folder.path()), "--step", "1"], 0);
        assert_eq!(text(&output.stdout).lines().count(), 10, "its duration");
        let out = folder.path().join("x.wav");
        let args = [
            "render",
            utf8(folder.path()),
            "-o",
            utf8(&out),
            "--to",
            "4",
            "--json",
        ];
        let voices = check_json(&args, 0)["sound"]["voices"].as_u64();
        // A hum, and three drips.
        let wanted = if script.contains("voices =") { 4 } else { 0 };
        assert_eq!(voices, Some(wanted), "voices that it names");
    }
}

#[test]
fn convert_turns_rows_to_the_axes_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let ply = ply_in(folder.path());
    let at = |name: &str| utf8(&folder.path().join(name)).to_owned();
    let (spz, kept, turned) = (at("a.spz"), at("kept.ply"), at("turned.ply"));
    check_code(&["convert", &ply, &spz], 0);
    check_code(&["convert", &spz, &kept], 0);
    check_code(&["convert", &spz, &turned, "--to-axes", "RDF"], 0);
    let header = |file: &str| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    assert!(header(&kept).contains("comment axes RUB"));
    assert!(!header(&turned).contains("comment axes"));
    let bounds = |file: &str| check_json(&["inspect", "--json", file], 0)["bounds"].clone();
    assert_eq!(bounds(&kept), bounds(&turned));
}
