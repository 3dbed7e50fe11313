//! The walker and its phone: the Lua library in `scripts/walk*.luau` and `phone.luau`, tested through itself, and the way of what
//! walks and sounds out of a script: `cues`, `walker`, `trace`.
//!
//! Each Lua test runs one function of a file in `tests/it/walk/`, as a scene that requires the
//! library. Nothing is drawn.

use crate::cli::splatstage;
use crate::mind::{Nothing, load_files};
use serde_json::Value as Json;
use splatstage::frame::Walker;
use splatstage::script::Script;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Most script time that baking a walk of a minute may take here, milliseconds. A release build on a
/// slow core has to stay under 60.
const LIMIT_MS: f64 = 120.0;

/// Files of `tests/it/walk/` and what they share with those of the mind, by the name that `require`
/// knows.
const FILES: [(&str, &str); 4] = [
    ("check.luau", include_str!("mind/check.luau")),
    ("layers.luau", include_str!("walk/layers.luau")),
    ("phone.luau", include_str!("walk/phone.luau")),
    ("whole.luau", include_str!("walk/whole.luau")),
];

/// Runs a function of a file and returns the lines that it logged.
#[track_caller]
fn run(file: &str, test: &str) -> Vec<(String, String)> {
    let scene = format!("require('./{file}').{test}() return {{}}");
    let files = FILES.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let files = files.into_iter().chain([("scene.luau".into(), scene)]);
    let (_, lines) = load_files(files.collect(), Arc::new(Nothing), Json::Null, None);
    lines.take()
}

lua_tests! {
    layers:
        a_straight_way_is_asked_by_metres
        headings_turn_left_and_never_jump
        the_floor_is_smoothed_over_about_a_metre_and_a_half
        ways_refuse_what_is_no_way
        the_speed_machine_takes_the_times_of_the_page
        any_length_is_walked
        the_drift_is_slow_and_within_its_share
        looks_slow_the_walk_while_they_last
        the_cadence_law_gives_the_steps_of_the_page
        bob_and_sway_are_as_high_and_wide_as_on_the_page
        a_heel_strike_is_worst_after_fifty_milliseconds
        trunk_nod_and_roll_have_their_sizes_and_rates
        no_two_steps_are_alike_and_none_jumps
        breath_and_hands_move_at_their_own_rates
        gaits_differ_as_their_names_say
        glances_have_the_shares_of_the_page
        looks_are_drawn_within_the_numbers_of_the_page
        goals_point_at_what_is_looked_at
        turns_come_out_as_in_the_table
        three_poses_hardly_stray_from_the_turn
        heads_are_never_faster_than_they_can_be
        a_phone_can_be_fixed_or_in_a_gimbal;
    phone:
        a_look_into_the_light_is_exposed_anew_within_a_second
        white_balance_follows_slowly_and_not_all_the_way
        focus_waits_hunts_and_settles
        zoom_glides_in_factors
        a_steady_phone_shakes_less_and_goes_along
        a_phone_is_a_function_of_time_and_can_be_overridden;
    whole:
        a_whole_walk_takes_its_time
        nothing_jumps_on_the_whole_way
        any_instant_can_be_asked_for_in_any_order
        a_seed_is_a_walk
        without_drift_and_looks_the_times_are_those_of_the_page
        the_stop_fades_instead_of_snapping
        footsteps_are_the_heel_strikes
        the_camera_stands_over_the_floor
        gaits_show_in_the_whole
        layers_can_be_exchanged
        a_scene_can_be_made_of_it;
}

// With the host.

/// A scene of the files and the given text.
fn scene(text: &str) -> Script {
    let files = FILES.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let files = files
        .into_iter()
        .chain([("scene.luau".into(), text.to_owned())]);
    load_files(files.collect(), Arc::new(Nothing), Json::Null, None).0
}

/// The whole walk as a scene.
const WALK: &str = "return require('./whole').scene()";

#[test]
fn frames_carry_the_walker() {
    let mut script = scene(WALK);
    let frame = script.frame(30.0).unwrap();
    let walker = frame.walker.expect("somebody walks");
    assert!((1.0..1.3).contains(&walker.speed_m_s), "{walker:?}");
    assert!((40.0..60.0).contains(&walker.phase), "{walker:?}");
    assert_eq!(walker.clearance_m, None);
    let height_m = f64::from(frame.camera.position.y) - walker.floor_m;
    assert!((height_m - 1.58).abs() < 0.05, "{height_m}");
    assert!(walker.head_yaw_rad.abs() < 1.2 && walker.head_pitch_rad.abs() < 0.6);

    // The camera follows head and hands: turned as the angles say.
    let mut script = scene(
        "return { frame = function() return { draws = {}, walker = {
           speed = 1, phase = 2.5, floor = -3, clearance = 0.4, head_yaw = 90, head_pitch = -45 } } end }",
    );
    let walker = script.frame(0.0).unwrap().walker.unwrap();
    assert_eq!(
        walker,
        Walker {
            speed_m_s: 1.0,
            phase: 2.5,
            floor_m: -3.0,
            clearance_m: Some(0.4),
            head_yaw_rad: std::f64::consts::FRAC_PI_2,
            head_pitch_rad: -std::f64::consts::FRAC_PI_4,
        }
    );
    for (walker, part) in [
        ("{ speed = 1 }", "frame: walker.phase must be a number"),
        ("{ sped = 1 }", "has no field sped; did you mean 'speed'?"),
        ("5", "frame: walker must be a table"),
    ] {
        let text = format!("return {{ frame = function() return {{ walker = {walker} }} end }}");
        let error = scene(&text).frame(0.0).unwrap_err();
        assert!(error.message.contains(part), "{walker}: {error}");
    }
}

#[test]
fn cues_lie_in_the_interval_that_is_asked_for() {
    let mut script = scene(WALK);
    let end_s = script.duration_s().unwrap();
    let all = script.cues(0.0, end_s).unwrap();
    assert!(all.len() > 90, "{}", all.len());
    assert!(all.is_sorted_by(|a, b| a.t_s < b.t_s));
    let cue = &all[1];
    assert_eq!(cue.kind, "footstep");
    assert_eq!(cue.fields["side"], "right");
    assert_eq!(cue.fields["surface"], "stone");
    assert_eq!(cue.fields["position"].as_array().map(Vec::len), Some(3));
    // Backwards, in parts.
    let mut parts = Vec::new();
    for k in (0..200).rev() {
        let bound = |k: i32| f64::from(k) * 0.4;
        let mut part = script.cues(bound(k), bound(k + 1)).unwrap();
        part.append(&mut parts);
        parts = part;
    }
    assert_eq!(parts, all);
    // A frame in between changes nothing.
    script.frame(12.0).unwrap();
    assert_eq!(script.cues(0.0, end_s).unwrap(), all);
    assert!(scene("return {}").cues(0.0, 9.0).unwrap().is_empty());
    assert!(
        scene("return { cues = function() end }")
            .cues(0.0, 9.0)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn cues_are_checked() {
    let cues = |body: &str| {
        let text = format!(
            "return {{ cues = function(from, to)
return {body} end }}"
        );
        scene(&text).cues(1.0, 2.0)
    };
    let cue = cues("{ { t = 1.5, kind = 'b', n = 2 }, { t = 1, kind = 'a', at = vector.one } }");
    let cue = cue.unwrap();
    assert_eq!((cue[0].t_s, cue[0].kind.as_str()), (1.0, "a"));
    assert_eq!(cue[0].fields["at"], serde_json::json!([1.0, 1.0, 1.0]));
    assert_eq!(cue[1].fields["n"], 2.0);
    for (body, part) in [
        (
            "{ { t = 2, kind = 'a' } }",
            "cues[1].t must be from 1 up to but without 2",
        ),
        (
            "{ { t = 0.9, kind = 'a' } }",
            "cues[1].t must be from 1 up to but without 2",
        ),
        (
            "{ { kind = 'a' } }",
            "cues[1].t must be a number (seconds), got nothing",
        ),
        ("{ { t = 1 } }", "cues[1].kind must be a string"),
        (
            "{ { t = 1, kind = 'a', f = print } }",
            "cues[1].f must be plain data",
        ),
        ("{ 7 }", "cues[1] must be a table"),
        ("'a'", "what cues returns must be a list or nothing"),
        (
            "table.create(5000, { t = 1, kind = 'a' })",
            "4096 cues, got 5000",
        ),
    ] {
        let error = cues(body).unwrap_err();
        assert!(error.message.contains(part), "{body}: {error}");
    }
    let error = scene(
        "return { cues = function(a, b)
error('no cues today') end }",
    )
    .cues(0.0, 1.0);
    let error = error.unwrap_err();
    assert_eq!((error.line, error.message.as_str()), (2, "no cues today"));
}

#[test]
fn tracks_can_be_made_of_a_buffer() {
    // Two lanes: t and its square, ten times a second.
    scene(
        "local b = buffer.create(16 * 21)
         for i = 0, 20 do
           buffer.writef64(b, 16 * i, i / 10)
           buffer.writef64(b, 16 * i + 8, (i / 10) ^ 2)
         end
         local track = motion.track(10, b, 2)
         assert(track.duration == 2)
         local a, square, none = track:at(1.05)
         assert(math.abs(a - 1.05) < 1e-9 and math.abs(square - 1.05 ^ 2) < 1e-6 and none == nil)
         assert(select(2, track:at(9)) == 4)
         assert(motion.track(1, buffer.create(16)):at(0.5) == 0)
         return {}",
    );
    for (arguments, part) in [
        (
            "10, buffer.create(12)",
            "samples of 1 f64 numbers, got 12 bytes",
        ),
        (
            "10, buffer.create(24), 2",
            "at least 1 sample of 2 numbers, got 3 numbers",
        ),
        ("10, buffer.create(0)", "at least 1 sample"),
        ("0, buffer.create(8)", "rate must be above 0 Hz"),
        (
            "10, buffer.create(8), 0",
            "lanes must be a whole number from 1 to 64",
        ),
        ("10, b, 1", "number 1 of sample 0 must be finite, got NaN"),
    ] {
        let text = format!(
            "local b = buffer.create(8) buffer.writef64(b, 0, 0 / 0)
             local ok, message = pcall(motion.track, {arguments})
             assert(not ok and string.find(message, '{part}', 1, true), message)
             return {{}}"
        );
        scene(&text);
    }
}

/// Times and fields of the cues, and the walker, in the lines of `trace`.
#[test]
fn trace_tells_steps_and_walker() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in FILES.into_iter().chain([("scene.luau", WALK)]) {
        std::fs::write(folder.path().join(name), text).expect("writes");
    }
    let lines = |arguments: &[&str]| -> Vec<Json> {
        let path = folder.path().to_str().expect("a plain path");
        let output = splatstage(["trace", path].iter().chain(arguments))
            .output()
            .expect("the program starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a JSON line"))
            .collect()
    };
    let coarse = lines(&["--from", "1", "--to", "12", "--step", "0.5"]);
    assert_eq!(coarse.len(), 22);
    for line in &coarse {
        let walker = &line["walker"];
        for name in [
            "speed_m_s",
            "phase",
            "floor_m",
            "head_yaw_deg",
            "head_pitch_deg",
        ] {
            assert!(walker[name].is_f64(), "{name} in {line}");
        }
        assert!(walker["clearance_m"].is_null(), "{line}");
        let t_s = line["t"].as_f64().unwrap();
        for cue in line["cues"].as_array().unwrap() {
            let cue_s = cue["t"].as_f64().unwrap();
            assert!((t_s..t_s + 0.5).contains(&cue_s), "{line}");
            assert_eq!(cue["kind"], "footstep");
            assert!(cue["side"] == "left" || cue["side"] == "right", "{cue}");
        }
    }
    // However finely it is asked, each step is told once.
    let steps = |lines: &[Json]| -> Vec<Json> {
        let cues = lines.iter().flat_map(|line| line["cues"].as_array());
        cues.flatten().cloned().collect()
    };
    let fine = lines(&["--from", "1", "--to", "12", "--step", "0.013"]);
    let (fine, coarse) = (steps(&fine), steps(&coarse));
    assert!(coarse.len() > 12, "{}", coarse.len());
    // The last step of the finer one ends beyond 12 s by less than itself.
    assert_eq!(fine[..coarse.len()], coarse[..]);
}

/// Baking must not be felt when a scene is saved. The limit is wide, since tests rarely have a
/// processor to themselves; on an idle one it takes a third.
#[test]
fn baking_a_walk_costs_little() {
    let bakes = 10;
    let text = format!("return require('./whole').scene({bakes})");
    let time = |text: &str| {
        let start = Instant::now();
        scene(text);
        start.elapsed().as_secs_f64()
    };
    let once = time(WALK);
    let bake_ms = (time(&text) - once) / f64::from(bakes) * 1e3;
    eprintln!("{bake_ms:.1} ms of script for a walk");
    assert!(bake_ms < LIMIT_MS, "{bake_ms} ms");
}
