//! Ctrl-C during long work: the work stops between two pictures and cleans up after itself.
//!
//! A second Ctrl-C ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Exit code of a program that ends at once on the second Ctrl-C: 128 + SIGINT, as shells have it.
const EXIT_AT_ONCE: i32 = 130;

/// From here on Ctrl-C (and a request to terminate) lets [`check`] fail instead of ending the
/// program.
pub fn listen() {
    let heard = ctrlc::set_handler(|| {
        if STOPPED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_AT_ONCE);
        }
    });
    if let Err(error) = heard {
        tracing::debug!("no handler for Ctrl-C: {error}");
    }
}

/// # Errors
/// Somebody has pressed Ctrl-C.
pub fn check() -> anyhow::Result<()> {
    if STOPPED.load(Ordering::Relaxed) {
        anyhow::bail!("interrupted");
    }
    Ok(())
}
