//! The scenes that were played last, for the list on `o`; kept in the user's configuration folder.
//!
//! A list that cannot be read or written never stops a scene from playing: it starts empty, and the
//! reason is logged.

use super::{atomic, paths};
use std::path::{Path, PathBuf};

/// As many as there are digit keys.
pub const RECENT_MAX: usize = 9;

/// Newest first, no scene twice.
#[derive(Debug, Default)]
pub struct Recent {
    scenes: Vec<String>,
    /// Where the list is kept; `None` where the system names no such folder.
    file: Option<PathBuf>,
}

impl Recent {
    /// The user's own list.
    #[must_use]
    pub fn of_user() -> Self {
        paths::config_folder().map_or_else(Self::default, |folder| {
            Self::read(&folder.join("recent.json"))
        })
    }

    /// The list kept in `file`; empty where there is none yet.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let scenes = match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!("{}: not a list of scenes: {error}", file.display());
                Vec::new()
            }),
            Err(_) => Vec::new(),
        };
        Self {
            scenes,
            file: Some(file.to_owned()),
        }
    }

    /// Newest first.
    #[must_use]
    pub fn scenes(&self) -> &[String] {
        &self.scenes
    }

    /// Puts `scene` first. Paths are kept absolute, so that they hold from any folder.
    pub fn add(&mut self, scene: &str) {
        let scene = if scene.starts_with('@') {
            scene.to_owned()
        } else {
            std::path::absolute(scene).map_or_else(
                |_| scene.to_owned(),
                |path| path.to_string_lossy().into_owned(),
            )
        };
        if self.scenes.first() == Some(&scene) {
            return;
        }
        self.scenes.retain(|known| *known != scene);
        self.scenes.insert(0, scene);
        self.scenes.truncate(RECENT_MAX);
        if let Some(file) = &self.file
            && let Err(error) = write(file, &self.scenes)
        {
            tracing::warn!(
                "{}: cannot keep the list of scenes: {error}",
                file.display()
            );
        }
    }
}

fn write(file: &Path, scenes: &[String]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    atomic::write(file, serde_json::json!(scenes).to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_first_none_is_double_and_the_list_survives() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config/recent.json");
        let mut recent = Recent::read(&file);
        for index in 0..12 {
            recent.add(&format!("@{index}"));
        }
        recent.add("@5");
        let again = Recent::read(&file);
        assert_eq!(again.scenes(), recent.scenes(), "kept");
        assert_eq!(again.scenes().len(), RECENT_MAX, "bounded");
        assert_eq!(again.scenes()[..2], ["@5", "@11"], "newest first");
        recent.add("some/scene");
        assert!(
            Path::new(&recent.scenes()[0]).is_absolute(),
            "paths hold from any folder"
        );
    }

    #[test]
    fn a_broken_list_starts_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("recent.json");
        std::fs::write(&file, "{ not a list").unwrap();
        assert!(Recent::read(&file).scenes().is_empty(), "empty");
    }
}
