//! Everything that touches the outside: files, clocks, the window, other programs.
//!
//! Layers below get time, paths and randomness handed in; this is where they come from. The command
//! line (`src/main.rs`) only parses and prints: what it asks for is done here.

pub mod assets;
pub mod atomic;
pub mod builtin;
pub mod input;
pub mod live;
pub mod orientation;
pub mod overlay;
pub mod recent;
pub mod screen;
pub mod session;
pub mod shot;
pub mod viewpoint;
pub mod watch;
pub mod window;

pub use session::{CameraOptions, SceneOptions, Session};

/// The command line or a caller asked for something that makes no sense (exit code 2), as opposed
/// to work that failed (exit code 1).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);
