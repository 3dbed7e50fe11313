//! A bar on standard error for whatever takes more than a second; nothing where that is no
//! terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const QUIET: Duration = Duration::from_secs(1);

/// Steps of the bar; finer than any terminal is wide.
const STEPS: u64 = 1000;

/// One piece of work. The bar goes when this is dropped or the work is whole.
pub struct Progress {
    label: &'static str,
    start: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// Starts the clock.
    #[must_use]
    pub fn new(label: &'static str) -> Self {
        Self {
            label,
            start: Instant::now(),
            bar: OnceLock::new(),
        }
    }

    /// Says how far the work is, 0 to 1.
    pub fn set(&self, share: f32) {
        if self.start.elapsed() < QUIET {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let bar = ProgressBar::new(STEPS).with_message(self.label);
            let style = ProgressStyle::with_template("{msg} {bar:40} {percent}% {eta}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        bar.set_position((share.clamp(0.0, 1.0) * STEPS as f32) as u64);
        if share >= 1.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
