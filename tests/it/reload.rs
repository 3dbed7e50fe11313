//! Saving a scene while it plays: seen whatever way it is saved, never worse than the last good
//! version, one error a version. Drives the program itself under Xvfb and reads its log.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

/// Until a step of the program must have shown in its log. Generous: a machine that tests is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a log is listened to for lines that must not come.
const SILENCE: Duration = Duration::from_millis(700);

/// An X server without a screen, ended when dropped.
pub struct Xvfb {
    child: Child,
    /// For `DISPLAY`.
    pub display: String,
}

impl Xvfb {
    /// `None` with a printed skip where there is none; with `REQUIRE_GPU=1` that is a failure.
    pub fn start() -> Option<Self> {
        let spawned = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "640x480x24",
                "-nolisten",
                "tcp",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                assert!(
                    std::env::var_os("REQUIRE_GPU").is_none(),
                    "Xvfb does not start: {error}"
                );
                eprintln!("skipped: no Xvfb ({error})");
                return None;
            }
        };
        let mut number = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut number)
            .unwrap();
        Some(Self {
            child,
            display: format!(":{}", number.trim()),
        })
    }
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program playing one scene, and its log so far.
struct Play {
    child: Child,
    lines: Receiver<String>,
    /// Of the scene's folder and the program's own configuration.
    dir: tempfile::TempDir,
    /// Good versions saved so far.
    saves: u32,
    _display: Xvfb,
}

impl Drop for Play {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Play {
    fn start(flags: &[&str]) -> Option<Self> {
        let display = Xvfb::start()?;
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("scene")).unwrap();
        std::fs::write(dir.path().join("scene/scene.luau"), good(0)).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_splatstage"))
            .arg("play")
            .arg(dir.path().join("scene"))
            .args(["--size", "320x180"])
            .args(flags)
            .env("DISPLAY", &display.display)
            .env("XDG_CONFIG_HOME", dir.path().join("config"))
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("RUST_LOG")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut play = Self {
            child,
            lines,
            dir,
            saves: 0,
            _display: display,
        };
        play.wait_for("first frame submitted");
        Some(play)
    }

    fn scene(&self) -> PathBuf {
        self.dir.path().join("scene/scene.luau")
    }

    /// The first line from here on that holds `text`.
    fn wait_for(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(until - Instant::now().min(until)) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no line with '{text}' in the log:\n{}", seen.join("\n"))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the program ended before '{text}':\n{}", seen.join("\n"))
                }
            }
        }
    }

    /// Lines that come within [`SILENCE`].
    fn lines_that_follow(&mut self) -> Vec<String> {
        let until = Instant::now() + SILENCE;
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(until - Instant::now().min(until)) {
            lines.push(line);
        }
        lines
    }

    /// Saves a new good version and waits until it is on stage.
    fn heal(&mut self, why: &str) {
        self.saves += 1;
        let text = good(self.saves);
        std::fs::write(self.scene(), &text).unwrap();
        let line = self.wait_for("first frame submitted");
        assert!(line.contains(&hash(&text)), "{why}: {line}");
    }

    /// Saves `broken`: one error that names `place`, the last picture stays, a good save heals.
    fn check_broken(&mut self, broken: &str, place: &str) {
        std::fs::write(self.scene(), broken).unwrap();
        let line = self.wait_for("ERROR");
        assert!(line.contains(place), "file and line: {line}");
        let more = self.lines_that_follow();
        assert!(
            !more
                .iter()
                .any(|l| l.contains("ERROR") || l.contains("submitted")),
            "one error, and the last good version stays: {more:?}"
        );
        self.heal(place);
        let more = self.lines_that_follow();
        assert!(
            !more.iter().any(|l| l.contains("ERROR")),
            "healed: {more:?}"
        );
    }
}

/// A scene of a few splats before a colour that says which version it is.
fn good(version: u32) -> String {
    format!(
        "local scene = {{}}\n\
         function scene.load(stage)\n\
         \tlocal dots = stage.builder(200)\n\
         \tfor i = 1, 200 do\n\
         \t\tdots:add(vector.create(math.cos(i), i / 100 - 1, math.sin(i)), 0.05, {{ 1, 0.5, i / 200 }})\n\
         \tend\n\
         \tdots:build()\n\
         end\n\
         function scene.frame(t)\n\
         \treturn {{ background = {{ {:.3}, 0.2, 0.3 }} }}\n\
         end\n\
         return scene\n",
        f64::from(version % 50) / 50.0
    )
}

/// An ASCII PLY of `count` splats on a line.
fn ply(count: usize) -> String {
    let mut text = format!("ply\nformat ascii 1.0\nelement vertex {count}\n");
    for name in [
        "x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
        "rot_0", "rot_1", "rot_2", "rot_3",
    ] {
        text += &format!("property float {name}\n");
    }
    text += "end_header\n";
    for index in 0..count {
        text += &format!("{index} 0 0 1 1 1 2 -2 -2 -2 1 0 0 0\n");
    }
    text
}

/// As the log prints it.
fn hash(content: impl AsRef<[u8]>) -> String {
    splatstage::app::watch::ContentHash::of(content.as_ref()).to_string()
}

fn field(line: &str, name: &str) -> f64 {
    let start = line
        .find(name)
        .unwrap_or_else(|| panic!("no {name} in {line}"))
        + name.len();
    let digits = line[start..].split_whitespace().next().unwrap();
    digits.parse().unwrap()
}

fn now_unix_ms() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() * 1e3
}

/// The ways in which editors save.
fn save(way: u32, file: &Path, content: impl AsRef<[u8]>) {
    match way % 3 {
        0 => std::fs::write(file, content).unwrap(),
        1 => {
            let fresh = file.with_extension("tmp");
            std::fs::write(&fresh, content).unwrap();
            std::fs::rename(&fresh, file).unwrap();
        }
        _ => {
            let backup = file.with_extension("saved~");
            std::fs::rename(file, &backup).unwrap();
            std::fs::write(file, content).unwrap();
            std::fs::remove_file(&backup).unwrap();
        }
    }
}

#[test]
fn every_save_is_on_stage_soon_whatever_way_it_is_saved() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    let mut from_save_ms = Vec::new();
    let mut in_log_ms = Vec::new();
    for version in 1..=20 {
        let text = good(version);
        save(version, &play.scene(), &text);
        let saved_at_ms = now_unix_ms();
        let seen = play.wait_for("change seen");
        assert!(
            seen.contains(&hash(&text)),
            "the content that was saved: {seen}"
        );
        play.wait_for("version loaded");
        let shown = play.wait_for("first frame submitted");
        assert!(
            shown.contains(&hash(&text)),
            "the version that was saved: {shown}"
        );
        from_save_ms.push(field(&shown, "unix_ms=") - saved_at_ms);
        in_log_ms.push(field(&shown, " at_ms=") - field(&seen, " at_ms="));
    }
    for (what, times_ms) in [("save", &mut from_save_ms), ("change seen", &mut in_log_ms)] {
        times_ms.sort_by(f64::total_cmp);
        eprintln!(
            "from {what} to first frame submitted: median {:.1} ms, worst {:.1} ms of 20",
            times_ms[10], times_ms[19]
        );
    }
}

#[test]
fn two_seds_in_a_row_are_both_on_stage() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    let sed = |play: &Play, script: &str| {
        let mut sed = Command::new("sed");
        let status = sed.arg("-i").arg(script).arg(play.scene()).status();
        assert!(status.unwrap().success(), "sed runs");
    };
    // At once: the first content may be gone before anybody can read it, but what both did shows.
    let mut text = good(0);
    sed(&play, "s/0.2, 0.3/0.9, 0.3/");
    sed(&play, "s/0.9, 0.3/0.9, 0.8/");
    text = text.replace("0.2, 0.3", "0.9, 0.8");
    let shown = loop {
        let line = play.wait_for("first frame submitted");
        if line.contains(&hash(&text)) {
            break line;
        }
    };
    let more = play.lines_that_follow();
    assert!(more.is_empty(), "nothing after {shown}: {more:?}");
    // One by one: a rename over the file does not end the watch.
    for (script, from, to) in [
        ("s/0.9, 0.8/0.1, 0.8/", "0.9, 0.8", "0.1, 0.8"),
        ("s/0.1, 0.8/0.1, 0.1/", "0.1, 0.8", "0.1, 0.1"),
    ] {
        sed(&play, script);
        text = text.replace(from, to);
        let line = play.wait_for("first frame submitted");
        assert!(line.contains(&hash(&text)), "{script}: {line}");
    }
}

#[test]
fn a_broken_version_gives_one_error_and_the_next_good_one_heals() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    play.check_broken("local scene = {}\nreturn {{\n", "scene.luau:");
    play.check_broken(
        "return { frame = function(t)\n  local nothing = nil\n  return nothing.camera\nend }\n",
        "scene.luau:3:",
    );
    play.check_broken(
        "return { frame = function(t)\n\
           while true do\n\
             pcall(function() while true do end end)\n\
           end\n\
         end }\n",
        "scene.luau:",
    );
    play.check_broken(
        "return { load = function()\n\
           local heap = {}\n\
           while true do heap[#heap + 1] = string.rep('x', 1000) .. #heap end\n\
         end }\n",
        "scene.luau:3:",
    );
    play.check_broken("return 7\n", "scene.luau:");
}

#[test]
fn a_version_that_fails_while_it_plays_stops_at_its_last_picture() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    // Scene time goes on over reloads, so "later" is counted from the version's own first picture.
    let late = "local first\n\
                return { frame = function(t)\n\
                  first = first or t\n\
                  if t > first + 0.3 then error('too late') end\n\
                  return { background = { t % 1, 0, 0 } }\n\
                end }\n";
    std::fs::write(play.scene(), late).unwrap();
    play.wait_for("first frame submitted");
    let line = play.wait_for("ERROR");
    assert!(
        line.contains("scene.luau:4:") && line.contains("too late"),
        "file, line and message: {line}"
    );
    let more = play.lines_that_follow();
    assert!(more.is_empty(), "asked no more: {more:?}");
    play.heal("after a runtime error");
}

#[test]
fn a_module_that_is_missing_heals_when_it_comes() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    let scene = "local colour = require('./lib/colour')\n\
                 return { frame = function(t) return { background = colour } end }\n";
    std::fs::write(play.scene(), scene).unwrap();
    let line = play.wait_for("ERROR");
    assert!(
        line.contains("scene.luau:1:"),
        "where it was asked for: {line}"
    );
    let lib = play.dir.path().join("scene/lib");
    std::fs::create_dir(&lib).unwrap();
    std::fs::write(lib.join("colour.luau"), "return { 0.5, 0.5, 0.1 }\n").unwrap();
    play.wait_for("first frame submitted");
    // A change in the module alone is a new version too.
    std::fs::write(lib.join("colour.luau"), "return { 0.1, 0.5, 0.1 }\n").unwrap();
    play.wait_for("colour.luau");
    play.wait_for("first frame submitted");
}

#[test]
fn nothing_reloads_without_a_watch() {
    let Some(mut play) = Play::start(&["--no-watch"]) else {
        return;
    };
    std::fs::write(play.scene(), good(7)).unwrap();
    let more = play.lines_that_follow();
    assert!(more.is_empty(), "not watched: {more:?}");
}

#[test]
fn a_saved_asset_is_reloaded_and_a_broken_one_leaves_the_last_good() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    let asset = play.dir.path().join("scene/dots.ply");
    std::fs::write(&asset, ply(3)).unwrap();
    let scene = "return { load = function(stage) stage.splats('dots.ply') end }\n";
    std::fs::write(play.scene(), scene).unwrap();
    play.wait_for(&hash(scene));
    play.wait_for("first frame submitted");
    let check_shown = |play: &mut Play, content: &str, why: &str| {
        std::fs::write(&asset, content).unwrap();
        play.wait_for(&format!("hash={}", hash(content)));
        let line = play.wait_for("first frame submitted");
        assert!(line.contains(&hash(content)), "{why}: {line}");
    };
    check_shown(&mut play, &ply(5), "another file");
    std::fs::write(&asset, &ply(5)[..300]).unwrap();
    let line = play.wait_for("ERROR");
    assert!(
        line.contains("scene.luau:1:") && line.contains("dots.ply"),
        "the line that asks for it, and the file: {line}"
    );
    let more = play.lines_that_follow();
    assert!(more.is_empty(), "one error: {more:?}");
    check_shown(&mut play, &ply(4), "healed");
}

#[test]
fn broken_shaders_leave_the_last_good_ones() {
    let shaders = tempfile::tempdir().unwrap();
    let folder = shaders.path().display().to_string();
    let Some(mut play) = Play::start(&["--shaders", &folder]) else {
        return;
    };
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/compose.wgsl");
    let good = std::fs::read_to_string(original).unwrap();
    let file = shaders.path().join("compose.wgsl");
    std::fs::write(&file, format!("// Mine.\nthis is no shader\n{good}")).unwrap();
    let line = play.wait_for("ERROR");
    assert!(line.contains("compose.wgsl:2:"), "file and line: {line}");
    let more = play.lines_that_follow();
    assert!(more.is_empty(), "one error: {more:?}");
    std::fs::write(&file, format!("// Mine.\n{good}")).unwrap();
    play.wait_for("shaders loaded");
}

/// An effect that says which version it is.
fn effect(version: u32) -> String {
    format!(
        "// Version {version}.\nfn effect(splat: Splat, t_s: f32) -> Splat {{\n    var s = splat;\n    \
         s.colour = vec3f({:.3}, 0.5, 0.2) + 0.1 * noise(9.0 * s.rest_m);\n    return s;\n}}\n",
        f64::from(version % 50) / 50.0
    )
}

#[test]
fn a_saved_effect_is_drawn_soon_and_a_broken_one_leaves_the_last_good() {
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    let file = play.dir.path().join("scene/glow.wgsl");
    std::fs::write(&file, effect(0)).unwrap();
    let scene = good(1).replace(
        "\tdots:build()\n",
        "\tdots:build().effects = { stage.effect('glow.wgsl') }\n",
    );
    assert!(scene.contains("stage.effect"));
    std::fs::write(play.scene(), &scene).unwrap();
    play.wait_for(&hash(&scene));
    play.wait_for("first frame submitted");
    let mut from_save_ms = Vec::new();
    for version in 1..=12 {
        let text = effect(version);
        save(version, &file, &text);
        let saved_at_ms = now_unix_ms();
        let shown = play.wait_for("first frame submitted");
        assert!(
            shown.contains(&hash(&text)),
            "the effect that was saved: {shown}"
        );
        from_save_ms.push(field(&shown, "unix_ms=") - saved_at_ms);
    }
    from_save_ms.sort_by(f64::total_cmp);
    eprintln!(
        "from the save of an effect to its first frame: median {:.1} ms, worst {:.1} ms of 12",
        from_save_ms[6], from_save_ms[11]
    );
    for (broken, place) in [
        (effect(1).replace("s.rest_m", "s.rest"), "glow.wgsl:4: "),
        (
            effect(1).replace("return s;", "loop { s.opacity *= 0.5; }\n    return s;"),
            "glow.wgsl:5: this loop takes more than 1024 turns",
        ),
    ] {
        std::fs::write(&file, &broken).unwrap();
        let line = play.wait_for("ERROR");
        assert!(line.contains(place), "file and line: {line}");
        let more = play.lines_that_follow();
        assert!(
            !more
                .iter()
                .any(|l| l.contains("ERROR") || l.contains("submitted")),
            "one error, and the last good version stays: {more:?}"
        );
    }
    let text = effect(30);
    std::fs::write(&file, &text).unwrap();
    let shown = play.wait_for("first frame submitted");
    assert!(shown.contains(&hash(&text)), "mended: {shown}");
}

#[test]
#[ignore = "prints figures: cargo test --test it -- --ignored --nocapture reload::figures"]
fn figures() {
    const SAVES: u32 = 50;
    let Some(mut play) = Play::start(&[]) else {
        return;
    };
    let folder = play.dir.path().join("scene");
    let bundle = crate::splattie::small_bundle;
    std::fs::write(folder.join("glow.wgsl"), effect(0)).unwrap();
    std::fs::write(folder.join("head.splattie"), bundle(0)).unwrap();
    let scene = |version: u32| {
        good(version).replace(
            "\tdots:build()\n",
            "\tdots:build().effects = { stage.effect('glow.wgsl') }\n\tstage.splats('head.splattie')\n",
        )
    };
    std::fs::write(play.scene(), scene(0)).unwrap();
    play.wait_for(&hash(scene(0)));
    play.wait_for("first frame submitted");
    type Content = Box<dyn Fn(u32) -> Vec<u8>>;
    let kinds: [(&str, &str, Content); 3] = [
        (
            "script",
            "scene.luau",
            Box::new(move |v| scene(v).into_bytes()),
        ),
        ("shader", "glow.wgsl", Box::new(|v| effect(v).into_bytes())),
        ("bundle", "head.splattie", Box::new(bundle)),
    ];
    let mut version = 0;
    for (what, name, content) in kinds {
        for (way, how) in ["write", "rename", "backup"].into_iter().enumerate() {
            let mut times_ms = Vec::new();
            for _ in 0..SAVES {
                version += 1;
                let content = content(version);
                let file = folder.join(name);
                save(way as u32, &file, &content);
                let saved_at_ms = now_unix_ms();
                // A version in between would be a half-written file.
                let shown = play.wait_for("first frame submitted");
                assert!(shown.contains(&hash(&content)), "{what} by {how}: {shown}");
                times_ms.push(field(&shown, "unix_ms=") - saved_at_ms);
            }
            times_ms.sort_by(f64::total_cmp);
            println!(
                "{what} by {how}: median {:.1} ms, worst {:.1} ms of {SAVES}",
                times_ms[SAVES as usize / 2],
                times_ms[SAVES as usize - 1]
            );
        }
    }
}
