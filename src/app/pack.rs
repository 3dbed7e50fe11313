//! `pack`: one `.stage` file of all that a scene uses, which plays by itself.
//!
//! The scene is loaded and played through once, so that what it asks for is known; files that its scripts
//! name go in as well, whether or not the run came to them. Nothing else of the folder does. Scripts
//! that stood in for those of the library go into `@stage/`, where a scene brings its own. The new file
//! is loaded before it gets its name. It changes no file of the scene.

use super::Usage;
use super::check;
use super::offline;
use super::session::{PACKED_LIBRARY, SceneOptions, Session};
use crate::formats::container::{Container as _, Content, Folder, clean_name, write_zip};
use crate::frame::Input;
use crate::script::Reading;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes `scene` into `output` and reports `output, bytes, files[{name, bytes}]`.
///
/// # Errors
/// The scene does not load or play; a file of it is a link that leads out of its folder; the disk is
/// full. `output` is as it was then. [`Usage`] for a splat file, which is one file already.
pub fn pack(scene: &SceneOptions, output: &Path) -> anyhow::Result<Value> {
    if output.extension().is_none_or(|e| e != "stage") {
        let shown = output.display();
        bail!(Usage(format!("{shown}: the name of a pack ends in .stage")));
    }
    let mut session = Session::open(scene.clone(), offline::offline_cache(), false)?;
    if session.is_splat_file() {
        bail!(Usage(format!(
            "{} is one file already, and plays by itself",
            scene.scene
        )));
    }
    let input = Input {
        aspect: 16.0 / 9.0,
        ..Input::default()
    };
    session.reload(0.0, &input)?;
    check::play(&mut session, &input)?;
    let mut entries: BTreeMap<String, Content> = BTreeMap::new();
    for name in used(&session) {
        add(&session, &name, &mut entries)?;
    }
    for (name, bytes) in session.library_in_use() {
        entries.insert(format!("{PACKED_LIBRARY}{name}"), Content::Bytes(bytes));
    }
    let entries: Vec<(String, Content)> = entries.into_iter().collect();
    let folder = match output.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let unfinished = tempfile::Builder::new()
        .prefix(".splatstage-")
        .suffix(".stage")
        .tempfile_in(folder)
        .with_context(|| format!("{}: cannot be written", output.display()))?
        .into_temp_path();
    write_zip(&unfinished, &entries)?;
    let packed = SceneOptions {
        scene: unfinished.display().to_string(),
        scripts: None,
        ..scene.clone()
    };
    Session::open(packed, offline::offline_cache(), false)?
        .reload(0.0, &input)
        .with_context(|| format!("{}: the pack does not play by itself", output.display()))?;
    let bytes = std::fs::metadata(&unfinished)?.len();
    unfinished
        .persist(output)
        .with_context(|| format!("{}: cannot be written", output.display()))?;
    let files: Vec<Value> = (entries.iter())
        .map(|(name, content)| json!({ "name": name, "bytes": length(content) }))
        .collect();
    Ok(json!({ "output": output, "bytes": bytes, "files": files }))
}

fn length(content: &Content) -> u64 {
    match content {
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::File(path) => std::fs::metadata(path).map_or(0, |meta| meta.len()),
    }
}

/// Names of what the scene asked for and of what its scripts say that they may ask for.
fn used(session: &Session) -> Vec<String> {
    let mut names = session.asked_for();
    names.push(session.entry().to_owned());
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        if !(name.ends_with(".luau") || name.ends_with(".lua")) {
            continue;
        }
        let Ok(bytes) = session.read(&name) else {
            continue;
        };
        for call in Reading::of(&String::from_utf8_lossy(&bytes)).text_calls() {
            let found = match call.function.as_str() {
                "stage.splats" | "stage.data" | "stage.effect" | "sound.clip" => Some(call.text),
                "require" => check::required(session, &name, &call.text),
                _ => None,
            };
            if let Some(found) = found.filter(|found| !names.contains(found)) {
                names.push(found);
            }
        }
    }
    names
}

/// Adds a file, or all of a folder of splats. A name that nothing has is left out: a scene may ask
/// whether something is there.
fn add(
    session: &Session,
    name: &str,
    entries: &mut BTreeMap<String, Content>,
) -> anyhow::Result<()> {
    let (Ok(name), true) = (clean_name(name), session.has(name)) else {
        return Ok(());
    };
    let names = match name.rsplit_once('/') {
        // A manifest stands for what lies beside and below it.
        Some((folder, "meta.json" | "lod-meta.json" | "manifest.json")) => below(session, folder),
        None if name == "meta.json" || name == "lod-meta.json" => session.entries(),
        _ if session.read(&name).is_err() => below(session, &name),
        _ => vec![name],
    };
    for name in names {
        let content = match session.folder() {
            Some(folder) => Content::File(inside(folder, &name)?),
            None => Content::Bytes(session.read(&name).map_err(anyhow::Error::msg)?),
        };
        entries.insert(name, content);
    }
    Ok(())
}

/// Files in a folder of the scene, at any depth.
fn below(session: &Session, folder: &str) -> Vec<String> {
    match session.folder() {
        Some(scene) => (Folder::new(&scene.join(folder), "").entries().into_iter())
            .map(|name| format!("{folder}/{name}"))
            .collect(),
        None => (session.entries().into_iter())
            .filter(|name| name.starts_with(&format!("{folder}/")))
            .collect(),
    }
}

/// The file `name` of a folder, which must really lie in it.
fn inside(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    let reading = || format!("{}: cannot be read", path.display());
    let real = path.canonicalize().with_context(reading)?;
    if !real.starts_with(folder.canonicalize().with_context(reading)?) {
        bail!(
            "{}: is a link that leads out of the scene, to {}; put the file itself there",
            path.display(),
            real.display()
        );
    }
    Ok(path)
}
