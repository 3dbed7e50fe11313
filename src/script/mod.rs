//! The only place that knows Lua. (Signatures others may code against; the body is being written.)

use crate::frame::{Event, Frame, Input};
use crate::scene::Splats;
use std::sync::Arc;

/// Text and data files of a scene, by relative path with `/`; never outside the scene.
pub trait Files {
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// Loads splat assets for scripts; implemented in `app` over `formats`, with a cache.
pub trait Assets {
    /// `path` is relative to the scene; `level`/`axes` as in `formats::LoadOptions`.
    fn splats(
        &self,
        path: &str,
        level: Option<u32>,
        axes: Option<&str>,
    ) -> Result<Arc<Splats>, String>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct Error {
    pub file: String,
    pub line: u32,
    pub message: String,
    pub traceback: String,
}

/// What a load needs from the host.
pub struct Setup<'a> {
    /// Chunk name prefix for messages, e.g. `scenes/hello` or the path that the user named.
    pub name: String,
    /// Entry file, usually `scene.luau`.
    pub entry: String,
    pub files: Arc<dyn Files>,
    pub assets: Arc<dyn Assets>,
    pub seed: u64,
    /// Live: budgets by clock; offline: budgets by count (deterministic).
    pub live: bool,
    /// Arguments for the script (`stage.args`), JSON: the viewer gets file, eye, target, up, fov, turn.
    pub args: serde_json::Value,
    /// Data that the former version handed over by `on_unload`, JSON.
    pub handed_over: Option<serde_json::Value>,
    /// Receives `log.info/warn/error` and print lines: level, text.
    pub log: &'a dyn Fn(&str, &str),
}

/// A loaded scene script: one VM.
pub struct Script {}

impl Script {
    pub fn load(_setup: Setup<'_>) -> Result<Self, Error> {
        todo!()
    }
    /// Duration that the scene names, seconds.
    pub fn duration_s(&self) -> Option<f64> {
        todo!()
    }
    /// Whether the scene has `step`.
    pub fn is_stepped(&self) -> bool {
        todo!()
    }
    /// Runs `step` at 240 Hz up to `t_s` (no-op without `step`), with the input held constant.
    pub fn advance_to(&mut self, _t_s: f64, _input: &Input) -> Result<(), Error> {
        todo!()
    }
    /// The frame at `t_s` (for stepped scenes: at or before the time advanced to).
    pub fn frame(&mut self, _t_s: f64) -> Result<Frame, Error> {
        todo!()
    }
    pub fn event(&mut self, _event: &Event) -> Result<(), Error> {
        todo!()
    }
    /// Calls `on_unload`.
    pub fn unload(&mut self) -> Result<Option<serde_json::Value>, Error> {
        todo!()
    }
    /// Every file that the load touched, also after a failed load (see `LoadError`).
    pub fn watched(&self) -> Vec<String> {
        todo!()
    }
    pub fn memory_bytes(&self) -> usize {
        todo!()
    }
}
