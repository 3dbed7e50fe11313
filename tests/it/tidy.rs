//! The repository checks itself: layers, owners of foreign crates, headers, leftovers.
//!
//! The layers are those of the crate docs: a module may name lower ones, never a sibling or a
//! higher one. Comments are not looked at, so docs may link anywhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Modules by layer, lowest first. The binary (`main`, `cli`) is above all of them.
const LAYERS: [&[&str]; 7] = [
    &["camera", "motion"],
    &["scene", "film", "effect"],
    &["frame", "survey"],
    &["audio"],
    &["formats", "script", "gpu", "reference"],
    &["editor", "kiosk"],
    &["app"],
];

/// Foreign crates that only some modules may name.
const OWNERS: [(&str, &[&str]); 14] = [
    ("mlua", &["script"]),
    ("wgpu", &["gpu", "app"]),
    ("lampshade", &["gpu"]),
    ("naga", &["effect"]),
    ("winit", &["app"]),
    ("gilrs", &["app"]),
    ("notify", &["app"]),
    ("egui", &["editor", "app"]),
    ("egui_wgpu", &["editor", "app"]),
    ("egui_winit", &["editor", "app"]),
    // `doctor` lists sound devices.
    ("rodio", &["audio", "app"]),
    ("zip", &["formats"]),
    // Decoding is in formats, encoding of what was drawn in app.
    ("image", &["formats", "app"]),
    ("clap", &["main", "cli"]),
];

/// Where a clock may be asked; everybody else gets the time as an argument.
const CLOCKS: &[&str] = &["app", "cli", "main", "gpu", "script"];

/// Where a path may be opened: scene files, shaders under work, and everything in app.
const FILES: &[&str] = &["app", "cli", "main", "formats", "gpu"];

#[test]
fn modules_name_lower_layers_only() {
    for source in sources("src", "rs") {
        let Some(own_layer) = layer(&source.module) else {
            continue;
        };
        for name in crate_names(&source.code) {
            if name == source.module {
                continue;
            }
            let Some(other_layer) = layer(&name) else {
                continue;
            };
            assert!(
                other_layer < own_layer,
                "{}: {} must not name crate::{name}",
                source.path.display(),
                source.module
            );
        }
    }
}

#[test]
fn every_module_has_a_layer() {
    let known: BTreeSet<&str> = LAYERS.iter().flat_map(|l| l.iter().copied()).collect();
    for source in sources("src", "rs") {
        let module = source.module.as_str();
        let is_above = matches!(module, "lib" | "main" | "cli");
        assert!(
            is_above || known.contains(module),
            "{}: {module} is in no layer",
            source.path.display()
        );
    }
}

#[test]
fn foreign_crates_have_owners() {
    for source in sources("src", "rs") {
        for (name, owners) in OWNERS {
            let is_named = words_before(&source.code, "::").contains(name);
            assert!(
                !is_named || owners.contains(&source.module.as_str()),
                "{}: {name} belongs to {owners:?}",
                source.path.display()
            );
        }
    }
}

#[test]
fn time_files_and_chance_are_handed_in() {
    for source in sources("src", "rs") {
        let module = source.module.as_str();
        let refuse = |needles: &[&str], allowed: &[&str]| {
            for needle in needles {
                assert!(
                    allowed.contains(&module) || !source.code.contains(needle),
                    "{}: {needle} in {module}",
                    source.path.display()
                );
            }
        };
        refuse(&["Instant::now", "SystemTime::now"], CLOCKS);
        refuse(&["std::fs", "File::open", "File::create"], FILES);
        refuse(&["thread_rng", "rand::random", "RandomState"], &[]);
    }
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let kinds = [
        ("src", "rs", "//!"),
        ("tests", "rs", "//!"),
        ("shaders", "wgsl", "//"),
        ("scripts", "luau", "--"),
        ("scenes", "luau", "--"),
    ];
    for (folder, extension, opening) in kinds {
        for source in sources(folder, extension) {
            let first = source.text.lines().find(|l| !l.starts_with("--!"));
            assert!(
                first.is_some_and(|line| line.starts_with(opening)),
                "{}: the first line should start with {opening}",
                source.path.display()
            );
        }
    }
}

#[test]
fn nothing_is_left_over() {
    // Split, so that this file does not find itself.
    let leftovers = [
        concat!("FIX", "ME"),
        concat!("dbg", "!("),
        concat!("XX", "X:"),
    ];
    for (folder, extension) in [
        ("src", "rs"),
        ("tests", "rs"),
        ("shaders", "wgsl"),
        ("scripts", "luau"),
        ("scenes", "luau"),
    ] {
        for source in sources(folder, extension) {
            for leftover in leftovers {
                assert!(
                    !source.text.contains(leftover),
                    "{}: {leftover}",
                    source.path.display()
                );
            }
        }
    }
}

struct Source {
    path: PathBuf,
    /// First folder below `src`, or the file's own name there.
    module: String,
    text: String,
    /// The text without comment lines.
    code: String,
}

fn sources(folder: &str, extension: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths = Vec::new();
    collect(&root, extension, &mut paths);
    paths.sort();
    assert!(
        folder != "src" || paths.len() > 10,
        "the sources were not found at {}",
        root.display()
    );
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let below = path.strip_prefix(&root).expect("found below the root");
            let first = below.iter().next().expect("a name").to_string_lossy();
            let is_comment = |line: &&str| !line.trim_start().starts_with("//");
            let code = text
                .lines()
                .filter(is_comment)
                .collect::<Vec<_>>()
                .join("\n");
            Source {
                module: first.trim_end_matches(".rs").to_owned(),
                path,
                text,
                code,
            }
        })
        .collect()
}

fn collect(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) {
    // A folder that is not there holds no file to complain of.
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, extension, paths);
        } else if path.extension().is_some_and(|e| e == extension) {
            paths.push(path);
        }
    }
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&module))
}

/// Modules named as `crate::name` or in `crate::{...}`.
fn crate_names(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => {
                names.insert(leading_word(rest));
            }
            Some(group) => {
                let mut depth = 0;
                let mut is_first = true;
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => is_first = true,
                        _ if c.is_whitespace() => {}
                        _ if is_first => {
                            names.insert(leading_word(&group[at..]));
                            is_first = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

fn leading_word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Every word that stands directly before `mark`, and is no part of a longer path.
fn words_before(code: &str, mark: &str) -> BTreeSet<String> {
    code.match_indices(mark)
        .map(|(at, _)| &code[..at])
        .filter_map(|before| {
            let start = before
                .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(0, |i| i + 1);
            let is_path = before[..start].ends_with("::");
            (!is_path).then(|| before[start..].to_owned())
        })
        .collect()
}

#[test]
fn the_scanner_finds_what_it_should() {
    let code = "use crate::{a::{x, y}, b,\n c::d};\nlet _ = crate::e::f();";
    let names: Vec<String> = crate_names(code).into_iter().collect();
    assert_eq!(names, ["a", "b", "c", "e"]);
    let words = words_before("use wgpu::Device; a::zip::b; [wgpu_x::y]", "::");
    assert!(words.contains("wgpu") && words.contains("wgpu_x") && !words.contains("zip"));
}
