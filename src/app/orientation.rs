//! How a person has turned a wrongly oriented scan, remembered beside the file.
//!
//! `flat.ply` gets `flat.ply.stage.json` with `{"turn_xyzw": [x, y, z, w]}`: a unit quaternion that is
//! applied after the file's axes. The file itself is never changed.

use super::atomic;
use anyhow::{Context as _, bail};
use glam::Quat;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Where the note for `file` is kept.
#[must_use]
pub fn path_of(file: &Path) -> PathBuf {
    let mut name = file.components().as_path().as_os_str().to_owned();
    name.push(".stage.json");
    PathBuf::from(name)
}

/// The remembered turn of `file`, world from loaded world; identity where there is none.
///
/// # Errors
/// The note is there but is not what [`write`] writes.
pub fn read(file: &Path) -> anyhow::Result<Quat> {
    let path = path_of(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(Quat::IDENTITY);
    };
    let shown = path.display();
    let note: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{shown}: not JSON"))?;
    let turn: Option<Vec<f32>> = note["turn_xyzw"].as_array().map(|numbers| {
        numbers
            .iter()
            .filter_map(|v| v.as_f64().map(|v| v as f32))
            .collect()
    });
    match turn.as_deref() {
        Some(&[x, y, z, w]) if (x * x + y * y + z * z + w * w - 1.0).abs() < 1e-3 => {
            Ok(Quat::from_xyzw(x, y, z, w).normalize())
        }
        _ => bail!(
            "{shown}: expected {{\"turn_xyzw\": [x, y, z, w]}} with a unit quaternion; \
             delete the file to start from the file's own axes"
        ),
    }
}

/// Remembers `turn` for `file`; identity removes the note.
///
/// # Errors
/// The note cannot be written or removed.
pub fn write(file: &Path, turn: Quat) -> anyhow::Result<()> {
    let path = path_of(file);
    if turn.abs_diff_eq(Quat::IDENTITY, 1e-6) || turn.abs_diff_eq(-Quat::IDENTITY, 1e-6) {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{}: cannot remove", path.display()))
            }
            _ => Ok(()),
        };
    }
    let text = format!("{}\n", json!({ "turn_xyzw": turn.to_array() }));
    atomic::write(&path, text.as_bytes())
        .with_context(|| format!("{}: cannot write", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_remembered_beside_the_file_and_forgotten_when_undone() {
        let dir = tempfile::tempdir().unwrap();
        let scan = dir.path().join("flat.ply");
        assert_eq!(read(&scan).unwrap(), Quat::IDENTITY, "nothing noted");
        let turn = Quat::from_rotation_x(std::f32::consts::FRAC_PI_2);
        write(&scan, turn).unwrap();
        assert!(dir.path().join("flat.ply.stage.json").is_file(), "noted");
        assert!(
            read(&scan).unwrap().abs_diff_eq(turn, 1e-6),
            "the same turn"
        );
        write(&scan, Quat::IDENTITY).unwrap();
        assert!(!path_of(&scan).exists(), "identity needs no note");
        std::fs::write(path_of(&scan), "{\"turn_xyzw\": [1, 2, 3]}").unwrap();
        assert!(
            read(&scan).unwrap_err().to_string().contains("turn_xyzw"),
            "says what it expects"
        );
    }
}
