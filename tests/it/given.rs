//! What tests start from: sample data, where it is, and how to skip where it is not.
#![allow(dead_code, reason = "shared by all test modules")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A file or folder of the sample data, or `None` with a printed skip. With `REQUIRE_DATA=1` a
/// missing one fails the test.
pub fn data(relative: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(relative);
    if path.exists() {
        return Some(path);
    }
    assert!(
        std::env::var_os("REQUIRE_DATA").is_none(),
        "sample data missing: {relative}"
    );
    eprintln!("skipped: no sample data at {relative}");
    None
}

/// Whether there is an adapter to draw with, a software driver included; prints a skip where there
/// is none. With `REQUIRE_GPU=1` that fails the test.
pub fn has_gpu() -> bool {
    static COUNT: OnceLock<usize> = OnceLock::new();
    let count = *COUNT.get_or_init(|| splatstage::gpu::Context::adapters().len());
    assert!(
        count > 0 || std::env::var_os("REQUIRE_GPU").is_none(),
        "no graphics adapter"
    );
    if count == 0 {
        eprintln!("skipped: no graphics adapter");
    }
    count > 0
}
