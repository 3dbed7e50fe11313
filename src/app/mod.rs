//! Everything that touches the outside: files, clocks, the window, other programs.
//!
//! Layers below get time, paths and randomness handed in; this is where they come from. The command
//! line (`src/main.rs`) only parses and prints: what it asks for is done here.

pub mod assets;
pub mod atomic;
pub mod builtin;
pub mod check;
pub mod doctor;
pub mod filming;
pub mod gathered;
pub mod graph;
pub mod input;
pub mod interrupt;
pub mod live;
pub mod midi;
pub mod movie;
pub mod new_scene;
pub mod offline;
pub mod orientation;
pub mod osc;
pub mod overlay;
pub mod pack;
pub mod pads;
pub mod paths;
pub mod progress;
pub mod recent;
pub mod record;
pub mod repl;
pub mod replay;
pub mod scene_test;
pub mod screen;
pub mod senses;
pub mod session;
pub mod shot;
pub mod soundtrack;
pub mod stage_sound;
pub mod survey;
pub mod viewpoint;
pub mod watch;
pub mod window;
pub mod workbench;

pub use filming::FilmMode;
pub use offline::DrawOptions;
pub use session::{CameraOptions, SceneOptions, Session};
pub use soundtrack::{MicChoice, SoundOptions};
pub use survey::{SurveyOptions, survey};
pub use window::{PlayOptions, play};

/// The command line or a caller asked for something that makes no sense (exit code 2), as opposed
/// to work that failed (exit code 1).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Whether a window can be opened: everywhere but on a Unix without a display server.
#[must_use]
pub fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(all(unix, not(target_os = "macos"))) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// What keeps a window from being opened, without the place in winit's source that it starts with.
fn display_error(error: &winit::error::EventLoopError) -> String {
    let text = error.to_string();
    let said = text
        .split_once(".rs:")
        .and_then(|(_, rest)| rest.split_once(": "));
    said.map_or(text.clone(), |(_, said)| said.to_owned())
}
