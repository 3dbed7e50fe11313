//! Writes a small file so that it is either the old one or the new one, never a part.
//!
//! The new content goes to a temporary file in the same folder, which is then renamed over the old.

use std::io::{self, Write as _};
use std::path::Path;

/// Replaces or creates `path`.
///
/// # Errors
/// The folder is missing, read-only or full; `path` is as it was then.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".splatstage-");
    // Temporary files are private by default; what lands beside a shared scan is as readable as
    // any new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(|_| ()).map_err(|e| e.error)
}
