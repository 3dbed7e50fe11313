//! `require`: relative paths inside the scene, `@stage/...` for the embedded library.
//!
//! Bytes come through [`Files`](super::Files); nothing here can name a file outside the scene, since
//! a path that leads out of it is refused before it is asked for. Text chunks only: bytecode is never
//! loaded. A module runs once per VM.

use super::Files;
use super::blame::{self, LIBRARY};
use mlua::chunk::ChunkMode;
use mlua::{Error, Function, Lua, Result};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Longest script file, bytes.
const SOURCE_BYTES_MAX: usize = 4 << 20;

/// The Lua standard library, by the path after `@stage/`.
const STANDARD: &[(&str, &str)] = &[
    ("avatar", include_str!("../../scripts/avatar.luau")),
    (
        "avatar_sounds",
        include_str!("../../scripts/avatar_sounds.luau"),
    ),
    (
        "avatar_states",
        include_str!("../../scripts/avatar_states.luau"),
    ),
    ("beds", include_str!("../../scripts/beds.luau")),
    ("blink", include_str!("../../scripts/blink.luau")),
    ("chance", include_str!("../../scripts/chance.luau")),
    ("character", include_str!("../../scripts/character.luau")),
    (
        "character_states",
        include_str!("../../scripts/character_states.luau"),
    ),
    ("curves", include_str!("../../scripts/curves.luau")),
    ("ears", include_str!("../../scripts/ears.luau")),
    (
        "effects/burn",
        include_str!("../../scripts/effects/burn.luau"),
    ),
    (
        "effects/dissolve",
        include_str!("../../scripts/effects/dissolve.luau"),
    ),
    (
        "effects/reveal",
        include_str!("../../scripts/effects/reveal.luau"),
    ),
    (
        "effects/transition",
        include_str!("../../scripts/effects/transition.luau"),
    ),
    (
        "effects/wind",
        include_str!("../../scripts/effects/wind.luau"),
    ),
    ("face", include_str!("../../scripts/face.luau")),
    ("footsteps", include_str!("../../scripts/footsteps.luau")),
    ("gaze", include_str!("../../scripts/gaze.luau")),
    ("ghost", include_str!("../../scripts/ghost.luau")),
    ("light", include_str!("../../scripts/light.luau")),
    ("orbit", include_str!("../../scripts/orbit.luau")),
    ("paint", include_str!("../../scripts/paint.luau")),
    ("phone", include_str!("../../scripts/phone.luau")),
    ("shapes", include_str!("../../scripts/shapes.luau")),
    ("speech", include_str!("../../scripts/speech.luau")),
    (
        "sphere_camera",
        include_str!("../../scripts/sphere_camera.luau"),
    ),
    ("states", include_str!("../../scripts/states.luau")),
    ("street", include_str!("../../scripts/street.luau")),
    ("statue", include_str!("../../scripts/statue.luau")),
    ("stroll", include_str!("../../scripts/stroll.luau")),
    (
        "walk_attention",
        include_str!("../../scripts/walk_attention.luau"),
    ),
    ("walk_gait", include_str!("../../scripts/walk_gait.luau")),
    ("walk_head", include_str!("../../scripts/walk_head.luau")),
    (
        "walk_laying",
        include_str!("../../scripts/walk_laying.luau"),
    ),
    ("walk_pace", include_str!("../../scripts/walk_pace.luau")),
    ("walk_route", include_str!("../../scripts/walk_route.luau")),
    ("walker", include_str!("../../scripts/walker.luau")),
];

/// The effects of the library, by the path after `@stage/`.
const EFFECTS: &[(&str, &str)] = &[
    (
        "effects/burn.wgsl",
        include_str!("../../scripts/effects/burn.wgsl"),
    ),
    (
        "effects/dissolve.wgsl",
        include_str!("../../scripts/effects/dissolve.wgsl"),
    ),
    (
        "effects/reveal.wgsl",
        include_str!("../../scripts/effects/reveal.wgsl"),
    ),
    (
        "effects/wind.wgsl",
        include_str!("../../scripts/effects/wind.wgsl"),
    ),
];

/// The library as it is embedded: names after `@stage/`, and sources.
#[must_use]
pub fn library() -> &'static [(&'static str, &'static str)] {
    STANDARD
}

/// Source files of one VM.
pub(super) struct Modules {
    /// Prefix of chunk names: the scene's name and a slash.
    prefix: String,
    files: Arc<dyn Files>,
    /// Asked before the embedded library.
    library: Option<Arc<dyn Files>>,
    /// Chunk names that have been loaded, without `@`.
    loaded: RefCell<BTreeSet<String>>,
    /// Chunk names whose bodies run now, outermost first.
    running: RefCell<Vec<String>>,
    watched: RefCell<BTreeSet<String>>,
}

/// What `require` found.
pub(super) struct Found {
    /// Chunk name without `@`.
    pub chunk: String,
    source: Vec<u8>,
}

impl Modules {
    pub(super) fn new(name: &str, files: Arc<dyn Files>, library: Option<Arc<dyn Files>>) -> Self {
        Self {
            prefix: format!("{}/", name.trim_end_matches('/')),
            files,
            library,
            loaded: RefCell::default(),
            running: RefCell::default(),
            watched: RefCell::default(),
        }
    }

    /// Chunk name of a file of the scene, without `@`.
    pub(super) fn chunk(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// Chunk names that messages may begin with, longest first.
    pub(super) fn chunks(&self) -> Vec<String> {
        let mut chunks: Vec<String> = self.loaded.borrow().iter().cloned().collect();
        chunks.sort_by_key(|c| std::cmp::Reverse(c.len()));
        chunks
    }

    /// Notes a chunk that messages may begin with.
    pub(super) fn note(&self, chunk: &str) {
        let mut loaded = self.loaded.borrow_mut();
        if !loaded.contains(chunk) {
            loaded.insert(chunk.to_owned());
        }
    }

    /// Notes a file that the load touched.
    pub(super) fn watch(&self, path: &str) {
        self.watched.borrow_mut().insert(path.to_owned());
    }

    pub(super) fn watched(&self) -> Vec<String> {
        self.watched.borrow().iter().cloned().collect()
    }

    /// Reads a file of the scene.
    pub(super) fn read(&self, path: &str) -> std::result::Result<Found, String> {
        self.watch(path);
        let source = self.files.read(path)?;
        if source.len() > SOURCE_BYTES_MAX {
            return Err(format!(
                "larger than the {SOURCE_BYTES_MAX} bytes that a script may have"
            ));
        }
        Ok(Found {
            chunk: self.chunk(path),
            source,
        })
    }

    /// Reads a data file of the scene.
    pub(super) fn data(
        &self,
        path: &str,
        bytes_max: usize,
    ) -> std::result::Result<Vec<u8>, String> {
        self.watch(path);
        let bytes = self.files.read(path)?;
        if bytes.len() > bytes_max {
            return Err(format!(
                "larger than the {bytes_max} bytes that a data file may have"
            ));
        }
        Ok(bytes)
    }

    /// Reads an effect, of the scene or of the library: its name in messages, and its bytes.
    pub(super) fn effect(
        &self,
        path: &str,
        bytes_max: usize,
    ) -> std::result::Result<(String, Vec<u8>), String> {
        let (chunk, bytes) = if let Some(name) = path.strip_prefix(LIBRARY) {
            let name = name.strip_suffix(".wgsl").unwrap_or(name);
            let name = format!("{name}.wgsl");
            let replaced = (self.library.as_ref()).and_then(|files| files.read(&name).ok());
            let embedded = EFFECTS.iter().find(|(n, _)| *n == name);
            let source = replaced.or_else(|| embedded.map(|(_, s)| s.as_bytes().to_vec()));
            let source = source.ok_or_else(|| {
                let names: Vec<String> = (EFFECTS.iter())
                    .map(|(n, _)| format!("{LIBRARY}{n}"))
                    .collect();
                format!("there is no such effect; there is {}", names.join(", "))
            })?;
            (format!("{LIBRARY}{name}"), source)
        } else {
            let inside = asset_path(path)?;
            (self.chunk(&inside), self.data(&inside, bytes_max)?)
        };
        // Messages about it begin with its name.
        self.loaded.borrow_mut().insert(chunk.clone());
        Ok((chunk, bytes))
    }

    /// Writes a data file of the scene.
    pub(super) fn save(&self, path: &str, bytes: &[u8]) -> std::result::Result<(), String> {
        self.files.save(path, bytes)
    }

    /// Finds what `path` means to the chunk `requirer`.
    pub(super) fn find(&self, path: &str, requirer: &str) -> Result<Found> {
        if let Some(name) = path.strip_prefix(LIBRARY) {
            let name = name.strip_suffix(".luau").unwrap_or(name);
            let replaced = self
                .library
                .as_ref()
                .and_then(|files| files.read(&format!("{name}.luau")).ok());
            let embedded = STANDARD.iter().find(|(n, _)| *n == name);
            let Some(source) = replaced.or_else(|| embedded.map(|(_, s)| s.as_bytes().to_vec()))
            else {
                let names: Vec<String> = STANDARD
                    .iter()
                    .map(|(n, _)| format!("{LIBRARY}{n}"))
                    .collect();
                return Err(Error::runtime(format!(
                    "require('{path}'): there is no such library; there is {}",
                    names.join(", ")
                )));
            };
            return Ok(Found {
                chunk: format!("{LIBRARY}{name}.luau"),
                source,
            });
        }
        if !path.starts_with("./") && !path.starts_with("../") {
            return Err(Error::runtime(format!(
                "require('{path}'): a path must begin with './', '../' or '@stage/'"
            )));
        }
        let Some(from) = requirer.strip_prefix(&self.prefix) else {
            return Err(Error::runtime(format!(
                "require('{path}'): the library can only require '@stage/...'"
            )));
        };
        let inside = inside(from, path)
            .map_err(|why| Error::runtime(format!("require('{path}'): {why}")))?;
        let candidates = candidates(inside);
        let mut first_error = None;
        for candidate in &candidates {
            match self.read(candidate) {
                Ok(found) => return Ok(found),
                Err(why) => first_error.get_or_insert(why),
            };
        }
        Err(Error::runtime(format!(
            "require('{path}'): {}: {}",
            candidates.first().map_or("", String::as_str),
            first_error.unwrap_or_default()
        )))
    }

    /// Compiles a chunk and notes that its body is about to run.
    pub(super) fn compile(&self, lua: &Lua, found: Found) -> Result<Function> {
        let Found { chunk, source } = found;
        let mut running = self.running.borrow_mut();
        if let Some(at) = running.iter().position(|c| *c == chunk) {
            // A body that failed inside a pcall is still in the list, but not on the stack.
            if blame::is_running(lua, &chunk) {
                let mut circle = running[at..].to_vec();
                circle.push(chunk);
                return Err(Error::runtime(format!(
                    "modules require each other in a circle: {}",
                    circle.join(" -> ")
                )));
            }
            running.truncate(at);
        }
        self.loaded.borrow_mut().insert(chunk.clone());
        let function = lua
            .load(source)
            .set_mode(ChunkMode::Text)
            .set_name(format!("@{chunk}"))
            .into_function()?;
        running.push(chunk);
        Ok(function)
    }

    /// Notes that the body of `chunk` has run.
    pub(super) fn done(&self, chunk: &str) {
        let mut running = self.running.borrow_mut();
        if let Some(at) = running.iter().rposition(|c| c == chunk) {
            running.truncate(at);
        }
    }
}

/// Files that a path means, in the order in which they are looked for.
fn candidates(inside: String) -> Vec<String> {
    if inside.ends_with(".luau") || inside.ends_with(".lua") {
        return vec![inside];
    }
    // `init` as in Luau's own require.
    ["", "/init"]
        .iter()
        .flat_map(|middle| ["luau", "lua"].map(|ext| format!("{inside}{middle}.{ext}")))
        .collect()
}

/// Files of a scene that `require(path)` in the file `from` may mean, in the order in which they are
/// looked for; none where the path leads out of the scene or is the library's.
#[must_use]
pub fn required(from: &str, path: &str) -> Vec<String> {
    let is_own = path.starts_with("./") || path.starts_with("../");
    match inside(from, path) {
        Ok(inside) if is_own => candidates(inside),
        _ => Vec::new(),
    }
}

/// Joins `path` to the folder of the file `from`, both inside the scene.
fn inside(from: &str, path: &str) -> std::result::Result<String, &'static str> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err("leads outside of the scene");
                }
            }
            // A backslash, a colon or a NUL means something else to some file system.
            name if name.contains(['\\', ':', '\0']) => return Err("is not a plain relative path"),
            name => parts.push(name),
        }
    }
    if parts.is_empty() {
        return Err("names no file");
    }
    Ok(parts.join("/"))
}

/// Checks an asset's path as `require` checks a module's; plain names are allowed.
pub(super) fn asset_path(path: &str) -> std::result::Result<String, &'static str> {
    if path.starts_with('/') {
        return Err("is not a relative path");
    }
    inside("", path)
}
