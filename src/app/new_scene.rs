//! `new`: the folder of a scene of one's own: a scene that plays, a test that passes, and what an editor
//! needs to know of both.
//!
//! The editor's part is hidden: `.luau/stage/` holds the library as it is embedded, and the two files beside
//! it what the host gives (`script::api`), for completion and to read; nothing is loaded from there. It
//! writes over nothing.

use super::{Usage, atomic};
use crate::script;
use crate::script::api::{self, Format};
use anyhow::{Context as _, bail};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What a scene can begin as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Somebody looks at you.
    Avatar,
    /// Somebody walks and films.
    Walk,
    /// Some splats and a camera.
    Blank,
}

impl Template {
    /// Scene and test.
    fn files(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Avatar => [
                (
                    "scene.luau",
                    include_str!("../../templates/avatar/scene.luau"),
                ),
                (
                    "scene_test.luau",
                    include_str!("../../templates/avatar/scene_test.luau"),
                ),
            ],
            Self::Walk => [
                (
                    "scene.luau",
                    include_str!("../../templates/walk/scene.luau"),
                ),
                (
                    "scene_test.luau",
                    include_str!("../../templates/walk/scene_test.luau"),
                ),
            ],
            Self::Blank => [
                (
                    "scene.luau",
                    include_str!("../../templates/blank/scene.luau"),
                ),
                (
                    "scene_test.luau",
                    include_str!("../../templates/blank/scene_test.luau"),
                ),
            ],
        }
    }
}

/// What is for editors.
const HIDDEN: &str = ".luau";
/// Where the library lies for the editor.
const LIBRARY: &str = ".luau/stage";
/// What scenes can use, for luau-lsp and for lua-language-server.
const STUBS: [(Format, &str); 2] = [
    (Format::Luau, ".luau/splatstage.d.luau"),
    (Format::Lua, ".luau/splatstage.lua"),
];

/// Globals that no Luau tool knows of its own accord; `expect` is there in tests.
fn globals() -> Vec<&'static str> {
    let spaces = api::NAMESPACES.iter().map(|space| space.name);
    let of_tests = api::TESTING.functions.iter().map(|function| function.name);
    spaces
        .filter(|name| !name.is_empty())
        .chain(of_tests)
        .collect()
}

/// Makes a scene in `folder`, which may exist, and returns the files that it wrote.
///
/// # Errors
/// One of the files is there already ([`Usage`]; then none is written), or the disk refuses.
pub fn new_scene(folder: &Path, template: Template) -> anyhow::Result<Vec<PathBuf>> {
    let mut files: Vec<(PathBuf, String)> = (template.files().into_iter())
        .map(|(name, text)| (folder.join(name), text.to_owned()))
        .collect();
    let luau = json!({
        "languageMode": "nonstrict",
        "globals": globals(),
        "aliases": { "stage": LIBRARY },
    });
    let code = json!({
        "luau-lsp.platform.type": "standard",
        "luau-lsp.sourcemap.enabled": false,
        "luau-lsp.types.definitionFiles": { "@splatstage": STUBS[0].1 },
        "Lua.workspace.library": [HIDDEN],
        "files.associations": { "*.luau": "luau" },
        "files.exclude": { HIDDEN: true },
    });
    files.push((folder.join(".luaurc"), format!("{luau:#}\n")));
    files.push((folder.join(".vscode/settings.json"), format!("{code:#}\n")));
    for (format, name) in STUBS {
        files.push((folder.join(name), api::page(format)));
    }
    for (name, text) in script::library() {
        let path = folder.join(LIBRARY).join(format!("{name}.luau"));
        files.push((path, (*text).to_owned()));
    }
    if let Some((path, _)) = files
        .iter()
        .find(|(path, _)| path.symlink_metadata().is_ok())
    {
        bail!(Usage(format!(
            "{} is there already; 'new' writes over nothing",
            path.display()
        )));
    }
    for (path, text) in &files {
        let writing = || format!("{}: cannot be written", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(writing)?;
        }
        atomic::write(path, text.as_bytes()).with_context(writing)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}
