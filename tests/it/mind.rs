//! The avatar's mind: the Lua library in `scripts/`, tested through itself.
//!
//! Each test runs one function of a file in `tests/it/mind/`, as a scene that requires the library,
//! in a VM of its own. Nothing is drawn; handles are plain tables there, save in the last part, where
//! a generated body stands for an avatar.

use serde_json::{Value as Json, json};
use splatstage::frame::{Frame, Input};
use splatstage::script::{Asset, Assets, Files, Script, Setup};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Files of `tests/it/mind/`, by the name that `require` knows.
const FILES: [(&str, &str); 5] = [
    ("avatar.luau", include_str!("mind/avatar.luau")),
    ("check.luau", include_str!("mind/check.luau")),
    ("fake.luau", include_str!("mind/fake.luau")),
    ("parts.luau", include_str!("mind/parts.luau")),
    ("states.luau", include_str!("mind/states.luau")),
];

/// A scene's files in memory.
struct Memory(BTreeMap<String, String>);

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let text = self.0.get(path).ok_or("not found")?;
        Ok(text.clone().into_bytes())
    }
}

/// No splat files.
struct Nothing;

impl Assets for Nothing {
    fn splats(&self, path: &str, _: Option<u32>, _: Option<&str>) -> Result<Asset, String> {
        Err(format!("{path}: not found"))
    }
}

/// Level and text of what a script said.
type Lines = Rc<RefCell<Vec<(String, String)>>>;

#[track_caller]
fn load(scene: &str, args: Json, handed_over: Option<Json>) -> (Script, Lines) {
    let lines = Lines::default();
    let said = lines.clone();
    let mut files: BTreeMap<String, String> = FILES
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    files.insert("scene.luau".into(), scene.into());
    let setup = Setup {
        name: "mind".into(),
        entry: "scene.luau".into(),
        files: Arc::new(Memory(files)),
        assets: Arc::new(Nothing),
        seed: 1,
        live: false,
        args,
        loop_s: None,
        reduced_motion: false,
        library: None,
        handed_over,
        log: Rc::new(move |level, text| said.borrow_mut().push((level.into(), text.into()))),
    };
    match Script::load(setup) {
        Ok(script) => (script, lines),
        Err(e) => panic!("{e}\n{}", e.error.traceback),
    }
}

/// Runs a function of a file and returns the lines that it logged.
#[track_caller]
fn run(file: &str, test: &str) -> Vec<(String, String)> {
    let (_, lines) = load(
        &format!("require('./{file}').{test}() return {{}}"),
        Json::Null,
        None,
    );
    lines.take()
}

/// One Rust test for each Lua function, and a test that none was forgotten.
macro_rules! lua_tests {
    ($($file:ident: $($test:ident)*;)*) => {
        $(mod $file {
            $(#[test]
            fn $test() {
                super::run(stringify!($file), stringify!($test));
            })*
        })*

        #[test]
        fn every_lua_test_is_run() {
            $({
                let listed = BTreeSet::from([$(stringify!($test)),*]);
                let name = concat!(stringify!($file), ".luau");
                let (_, text) = FILES.iter().find(|(n, _)| *n == name).unwrap();
                let written = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("function tests."))
                    .map(|rest| rest.trim_end_matches("()"))
                    .collect::<BTreeSet<_>>();
                assert_eq!(listed, written, "{name}");
            })*
        }
    };
}

lua_tests! {
    avatar:
        keys_drive_bones_in_the_units_of_the_file
        made_bones_are_those_of_the_page
        shapes_come_before_bones_and_have_aliases
        unknown_keys_are_told_once
        lids_close_by_shapes_or_fade
        avatars_without_a_rig_do_all_the_rest
        eyes_follow_the_pointer_and_heads_less
        bodies_and_objects_follow_too
        wobble_and_drift_add_to_the_rotation
        less_motion_stops_float_blink_and_darts
        events_reach_the_one_that_they_are_about
        avatars_have_places_and_minds_of_their_own
        a_mind_survives_a_reload
        a_loop_closes_in_everything
        pictures_between_steps_lie_between
        expression_keys_can_be_held
        layers_and_dimensions_reach_the_avatar
    ;
    parts:
        streams_are_even_and_unlike
        ghosts_float_as_the_page_says
        a_frequency_that_changes_moves_nothing_at_once
        ghosts_close_a_loop
        blinks_come_at_random_and_are_half_a_sine
        calm_lids_do_not_blink
        blinks_of_a_loop_repeat_and_none_is_cut
        the_dead_zone_rescales
        the_look_follows_smoothly_and_in_order_of_priority
        darts_are_small_even_and_random
        darts_rest_while_the_look_moves
        looks_close_a_loop
        eyes_and_necks_have_gains_and_limits
        eyes_converge_on_a_point
        a_fixed_look_stays
        cameras_stand_on_a_sphere
    ;
    states:
        easings_have_their_shapes
        springs_overshoot_and_rest
        an_unknown_easing_is_linear_and_told_once
        transitions_are_looked_up_from_the_last_state_reached
        snap_is_at_once_whatever_its_duration
        an_interruption_starts_from_the_frame_on_screen
        an_interruption_moves_nothing_suddenly
        a_soft_start_arrives_in_time
        expressions_join_and_missing_keys_are_zero
        missing_and_wrong_blocks_never_fail
        angles_and_rotations_go_the_short_way
        rotations_are_those_of_three_js
        authors_add_dimensions
        hover_leave_and_click_are_followed
        a_state_set_by_hand_holds_until_released
        conditions_triggers_and_exit_times_start_transitions
        states_can_hold_for_a_time
        layers_override_and_add_by_key
        a_machine_survives_as_plain_data
        states_can_be_replaced_while_they_play
        the_library_merges_a_file_with_the_built_in_states
    ;
}

fn warnings(lines: &[(String, String)]) -> Vec<&str> {
    let warned = lines.iter().filter(|(level, _)| level == "warn");
    warned.map(|(_, text)| text.as_str()).collect()
}

#[test]
fn an_unknown_easing_has_one_warning() {
    let lines = run("states", "an_unknown_easing_is_linear_and_told_once");
    let warned = warnings(&lines);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("no easing 'bouncy'"), "{}", warned[0]);
}

#[test]
fn unknown_keys_have_one_line() {
    let lines = run("avatar", "unknown_keys_are_told_once");
    let warned = warnings(&lines);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].ends_with("hornGlow, tailWag"), "{}", warned[0]);
}
