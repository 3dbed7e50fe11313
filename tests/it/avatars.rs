//! Avatars as they are played: states under an input log, loops that close, pictures with alpha, what
//! a missing part does, and that all of it comes out the same twice.

use crate::given;
use serde_json::Value;
use splatstage::app::assets::AssetCache;
use splatstage::app::replay::{Log, Player};
use splatstage::app::{SceneOptions, Session};
use splatstage::frame::Frame;
use splatstage::scene::Pose;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const SIZE: [u32; 2] = [320, 320];

fn options(scene: &str) -> SceneOptions {
    SceneOptions {
        scene: scene.to_owned(),
        ..SceneOptions::default()
    }
}

fn player(options: SceneOptions, log: &str) -> Player {
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    let session = Session::open(options, cache, false).expect("the scene opens");
    let log = Log::parse(log, "test.log").expect("a log");
    let mut player = Player::new(session, log, SIZE);
    player.load().expect("the scene loads");
    player
}

fn scene(relative: &str) -> Option<String> {
    if relative.starts_with('@') {
        return Some(relative.to_owned());
    }
    Some(given::data(relative)?.to_str().expect("Unicode").to_owned())
}

fn state(player: &mut Player, t_s: f64) -> String {
    let frame = player.frame(t_s).expect("a frame");
    frame.state.expect("avatars have states")
}

#[test]
fn a_pointer_in_a_log_hovers_clicks_and_leaves() {
    for name in ["@avatar", "splattie/demo_HEAD.splattie"] {
        let Some(scene) = scene(name) else { continue };
        // In a corner, then on the face, a click there, and away.
        let log = r#"
            {"t": 0.5, "pointer": [-0.98, 0.98]}
            {"t": 1.0, "pointer": [0.0, 0.0]}
            {"t": 2.0, "press": "mouse_left"}
            {"t": 2.05, "release": "mouse_left"}
            {"t": 5.0, "pointer": [-0.98, 0.98]}
        "#;
        let mut player = player(options(&scene), log);
        assert_eq!(state(&mut player, 0.9), "idle", "{name}: beside it");
        assert_eq!(state(&mut player, 1.2), "hover", "{name}: over it");
        assert_eq!(state(&mut player, 2.2), "click", "{name}: clicked");
        assert_eq!(
            state(&mut player, 2.9),
            "click",
            "{name}: held about a second"
        );
        assert_eq!(state(&mut player, 3.6), "hover", "{name}: still over it");
        assert_eq!(state(&mut player, 5.5), "idle", "{name}: left");
    }
}

#[test]
fn a_quick_tap_is_a_click_and_a_lifted_finger_leaves() {
    let log = r#"{"t": 1.001, "pointer": [0.0, 0.0], "press": "touch"}
        {"t": 1.012, "release": "touch"}"#;
    let mut player = player(options("@avatar"), log);
    assert_eq!(state(&mut player, 1.1), "click");
    assert_eq!(state(&mut player, 3.5), "idle", "nobody points any more");
}

#[test]
fn hits_do_not_depend_on_how_many_pictures_are_asked_for() {
    let log = r#"{"t": 0.2, "pointer": [0.0, 0.0]}
        {"t": 0.7, "press": "mouse_left"}
        {"t": 0.75, "release": "mouse_left"}"#;
    let mut often = player(options("@avatar"), log);
    let mut seldom = player(options("@avatar"), log);
    let mut last = None;
    for k in 0..=40 {
        last = Some(often.frame(f64::from(k) / 40.0).expect("a frame"));
    }
    let (a, b) = (last.expect("frames"), seldom.frame(1.0).expect("a frame"));
    assert_eq!(a.state, b.state);
    assert_eq!(a.camera, b.camera);
    assert!(furthest(pose(&a), pose(&b)) == 0.0, "the same pose");
}

fn pose(frame: &Frame) -> &Pose {
    let draw = frame.draws.iter().find(|draw| draw.pose.is_some());
    draw.and_then(|draw| draw.pose.as_deref())
        .expect("the avatar is posed")
}

/// The largest difference of two poses, metres and coefficients.
fn furthest(a: &Pose, b: &Pose) -> f32 {
    let motions = a.motions.iter().zip(&b.motions).map(|(a, b)| {
        let turned = (a.rotation - b.rotation).length();
        turned.max((a.translation - b.translation).length())
    });
    let shapes = a.coefficients.iter().zip(&b.coefficients);
    motions
        .chain(shapes.map(|(a, b)| (a - b).abs()))
        .fold(0.0, f32::max)
}

#[test]
fn loops_close() {
    for (name, loop_s) in [
        ("@avatar", 4.0),
        ("@avatar", 1.3),
        ("splattie/demo_HEAD.splattie", 6.0),
    ] {
        let Some(scene) = scene(name) else { continue };
        let looped = SceneOptions {
            loop_s: Some(loop_s),
            ..options(&scene)
        };
        let mut player = player(looped, "");
        let mut first = Vec::new();
        let (mut worst, mut moved) = (0.0_f32, 0.0_f32);
        let settled_s = (4.0 / loop_s).ceil() * loop_s;
        let steps = 24;
        for k in 0..=steps {
            let t_s = settled_s + loop_s * f64::from(k) / f64::from(steps);
            first.push(player.frame(t_s).expect("a frame"));
        }
        for (k, before) in first.iter().enumerate() {
            let t_s = settled_s + loop_s * (1.0 + k as f64 / f64::from(steps));
            let after = player.frame(t_s).expect("a frame");
            let (a, b) = (&before.draws[0], &after.draws[0]);
            let placed = (a.placement.translation - b.placement.translation).length();
            let turned = (a.placement.rotation - b.placement.rotation).length();
            worst = worst.max(placed).max(turned);
            if let (Some(a), Some(b)) = (&a.pose, &b.pose) {
                worst = worst.max(furthest(a, b));
            }
            assert_eq!(
                before.draws[0].edits.len(),
                after.draws[0].edits.len(),
                "{name}"
            );
            let start = &first[0].draws[0];
            moved = moved.max((start.placement.translation - a.placement.translation).length());
        }
        assert!(worst < 1e-4, "{name}: {worst} off after {loop_s} s");
        assert!(moved > 1e-4, "{name} floats at all");
    }
}

fn splatstage(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_splatstage"))
        .args(args)
        .output()
        .expect("the program runs")
}

fn render_json(args: &[&str]) -> Option<Value> {
    given::gpu()?;
    let output = splatstage(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {text}");
    serde_json::from_slice(&output.stdout).ok()
}

#[test]
fn equal_seeds_give_equal_pictures_and_others_blink_elsewhere() {
    let hashes = |seed: &str| -> Option<Vec<String>> {
        let report = render_json(&[
            "render", "@avatar", "--json", "--size", "96x96", "--from", "2", "--to", "3", "--fps",
            "4", "--seed", seed,
        ])?;
        let frames = report["frames"].as_array()?.iter();
        frames
            .map(|f| Some(f["hash"].as_str()?.to_owned()))
            .collect()
    };
    let (Some(a), Some(b), Some(c)) = (hashes("1"), hashes("1"), hashes("2")) else {
        return;
    };
    assert_eq!(a, b);
    assert_ne!(a, c, "another seed is another performance");
}

#[test]
fn loops_for_web_pages_keep_alpha() {
    if given::gpu().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("Unicode")
            .to_owned()
    };
    for name in ["a.webp", "a.gif", "a-%02d.png"] {
        let out = path(name);
        let output = splatstage(&[
            "render",
            "@avatar",
            "-o",
            &out,
            "--loop",
            "1",
            "--fps",
            "5",
            "--size",
            "64x64",
            "--background",
            "#00000000",
        ]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let still = image::open(path("a-00.png"))
        .expect("the first of the sequence")
        .to_rgba8();
    assert!(Path::new(&path("a-04.png")).exists() && !Path::new(&path("a-05.png")).exists());
    let gif = image::open(path("a.gif")).expect("a GIF").to_rgba8();
    assert_eq!(gif.get_pixel(0, 0).0[3], 0, "clear in GIF too");
    assert!(gif.pixels().any(|p| p.0[3] == 255), "and solid");
    assert_eq!(still.get_pixel(0, 0).0[3], 0, "nothing in the corner");
    assert!(
        still.pixels().any(|p| p.0[3] == 255),
        "something in the middle"
    );
}

#[test]
fn a_state_that_is_not_there_and_a_bad_log_say_so() {
    let output = splatstage(&["trace", "@avatar", "--to", "0.1", "--arg", "state=nonsense"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("no state 'nonsense'") && text.contains("idle"),
        "{text}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("a.log");
    std::fs::write(&log, "{\"t\": 0}\n{\"t\": 1, \"pointr\": [0, 0]}\n").expect("written");
    let log = log.to_str().expect("Unicode");
    let output = splatstage(&["trace", "@avatar", "--to", "0.1", "--input", log]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("a.log:2: unknown field `pointr`"), "{text}");
    let output = splatstage(&["trace", "@avatar", "--arg", "nonsense"]);
    assert_eq!(output.status.code(), Some(2), "usage");
}
