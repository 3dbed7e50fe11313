//! Saving the picture on stage as a PNG, under a name that says what it shows.

use crate::gpu::Picture;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The user's picture folder where there is one, else the working folder.
#[must_use]
pub fn folder() -> PathBuf {
    directories::UserDirs::new()
        .and_then(|dirs| dirs.picture_dir().map(Path::to_owned))
        .filter(|dir| dir.is_dir())
        .or_else(|| std::env::current_dir().ok())
        .unwrap_or_else(|| PathBuf::from("."))
}

/// Writes `picture` of the scene `scene` at `t_s` into `folder`, beside what is there. Returns the
/// file.
///
/// # Errors
/// The folder cannot be written to.
pub fn save(picture: Picture, folder: &Path, scene: &str, t_s: f64) -> anyhow::Result<PathBuf> {
    let [width, height] = picture.size;
    let path = free_name(folder, &stem(scene, t_s));
    let image = image::RgbaImage::from_raw(width, height, picture.rgba)
        .context("the picture is smaller than its size says")?;
    image
        .save(&path)
        .with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(path)
}

/// `garden-12.40s`: the scene's own name and the time on stage.
fn stem(scene: &str, t_s: f64) -> String {
    let name = Path::new(scene)
        .file_stem()
        .map_or_else(|| scene.to_owned(), |n| n.to_string_lossy().into_owned());
    let name: String = name
        .chars()
        .filter(|letter| letter.is_alphanumeric() || "-_.".contains(*letter))
        .collect();
    format!(
        "{}-{t_s:.2}s",
        if name.is_empty() { "scene" } else { &name }
    )
}

fn free_name(folder: &Path, stem: &str) -> PathBuf {
    let first = folder.join(format!("{stem}.png"));
    if !first.exists() {
        return first;
    }
    (2..10_000)
        .map(|number| folder.join(format!("{stem}-{number}.png")))
        .find(|path| !path.exists())
        .unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_named_after_scene_and_time_and_none_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let save = || {
            let picture = Picture {
                size: [2, 1],
                rgba: vec![1, 2, 3, 255, 4, 5, 6, 255],
            };
            super::save(picture, dir.path(), "scans/flat.ply", 1.5).unwrap()
        };
        assert_eq!(save(), dir.path().join("flat-1.50s.png"));
        assert_eq!(save(), dir.path().join("flat-1.50s-2.png"));
        let read = image::open(dir.path().join("flat-1.50s.png")).unwrap();
        assert_eq!(read.to_rgba8().as_raw()[4..], [4, 5, 6, 255], "as drawn");
        assert_eq!(stem("@hello", 0.0), "hello-0.00s");
    }
}
