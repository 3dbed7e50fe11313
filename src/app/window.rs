//! Stand-in until the branch with the window is merged.

use super::{DrawOptions, SceneOptions};

/// What `play` is asked for.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// What is played.
    pub scene: SceneOptions,
    /// How it is drawn; `size` is the window's first size, px.
    pub draw: DrawOptions,
    /// Start on the whole screen.
    pub fullscreen: bool,
    /// Index of the monitor as `doctor` lists them.
    pub monitor: Option<usize>,
    /// Reload what is saved while it plays.
    pub watch: bool,
    /// At most this many pictures a second; `None` follows the monitor.
    pub fps_cap: Option<f64>,
}

/// Opens a window.
pub fn play(_options: PlayOptions) -> anyhow::Result<()> {
    todo!("window")
}
