//! What tests start from: sample data, where it is, and how to skip where it is not.
#![allow(dead_code, reason = "shared by all test modules")]

use std::path::{Path, PathBuf};

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

/// The adapter that all tests share, or `None` with a printed skip. With `REQUIRE_GPU=1` a missing
/// one fails the test.
pub fn gpu() -> Option<&'static splatstage::gpu::Context> {
    static CONTEXT: std::sync::OnceLock<Result<splatstage::gpu::Context, String>> =
        std::sync::OnceLock::new();
    let context =
        CONTEXT.get_or_init(|| splatstage::gpu::Context::headless(None).map_err(|e| e.to_string()));
    match context {
        Ok(context) => Some(context),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_GPU").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}
