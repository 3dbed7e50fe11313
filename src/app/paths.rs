//! Where this program keeps things of its own.

use directories::ProjectDirs;
use std::path::PathBuf;

fn folders() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "splatstage")
}

/// Settings and lists that a person would miss; `None` where the system names no home.
#[must_use]
pub fn config_folder() -> Option<PathBuf> {
    folders().map(|found| found.config_dir().to_owned())
}

/// What can be made again.
#[must_use]
pub fn cache_folder() -> Option<PathBuf> {
    folders().map(|found| found.cache_dir().to_owned())
}
