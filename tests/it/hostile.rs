//! A scene of a stranger: every attempt is logged by the scene with what came of it, and has to come out as
//! `hostile/outcomes.txt` says. `UPDATE_GOLDEN=1` writes that file anew, to be read by a person.

use crate::cli::{check_code, text};
use std::path::Path;

const SCENE: &str = include_str!("hostile/scene.luau");

#[test]
fn every_attempt_of_a_hostile_scene_comes_to_what_is_known() {
    let world = tempfile::tempdir().expect("a folder");
    for name in ["secret.luau", "secret.json", "secret.ply"] {
        std::fs::write(world.path().join(name), "return 'the treasure'").expect("writes");
    }
    let folder = world.path().join("scene");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("scene.luau"), SCENE).expect("writes");
    // Luau's bytecode begins with its version.
    std::fs::write(folder.join("bytecode.luau"), b"\x06\x03\x01\x01x").expect("writes");
    let shown = folder.to_str().expect("UTF-8");
    let out = check_code(&["trace", shown, "--to", "0.1", "--step", "0.1"], 0);
    let said: String = text(&out.stderr)
        .lines()
        .filter(|line| line.contains(" -> "))
        .map(|line| {
            // Behind the level and the place of the call.
            let line = line.split_once(": ").map_or(line, |(_, rest)| rest);
            let line = line.replace(shown, "SCENE").replace('\0', "\\0");
            // The list of what the library has grows.
            let line = line.split("; there is @stage").next().unwrap_or_default();
            format!("{line}\n")
        })
        .collect();
    assert!(!said.contains("treasure"), "{said}");
    assert!(!said.contains("stranger's code"), "{said}");
    for attempt in SCENE.lines().filter_map(|line| line.strip_prefix("try(\"")) {
        let name = attempt.split('"').next().unwrap_or_default();
        assert!(
            said.contains(&format!("{name} -> ")),
            "{name} is not logged:\n{said}"
        );
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/hostile/outcomes.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &said).expect("writes");
    }
    let known = std::fs::read_to_string(&golden).expect("reads");
    for (line, known) in said.lines().zip(known.lines()) {
        assert_eq!(line, known);
    }
    assert_eq!(said.lines().count(), known.lines().count());
}
