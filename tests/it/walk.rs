//! The walker: the Lua library in `scripts/walk*.luau`, tested through itself, and the way of what
//! walks and sounds out of a script: `cues`, `walker`, `trace`.
//!
//! Each Lua test runs one function of a file in `tests/it/walk/`, as a scene that requires the
//! library. Nothing is drawn.

use crate::mind::{Nothing, load_files};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Files of `tests/it/walk/` and what they share with those of the mind, by the name that `require`
/// knows.
const FILES: [(&str, &str); 2] = [
    ("check.luau", include_str!("mind/check.luau")),
    ("layers.luau", include_str!("walk/layers.luau")),
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
}
