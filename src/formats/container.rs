//! Where named bytes come from: a folder, a zip, memory. Nothing is ever unpacked to disk.
//!
//! Names are checked by [`clean_name`] in all three, so that a hostile archive or manifest cannot
//! reach outside (bugs of the kind "zip slip"). A zip is read from memory; entries stored without
//! compression are lent out without a copy, deflated ones are inflated under a cap.

use super::{Code, Error, Place};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write as _};
use std::path::{Path, PathBuf};

/// Named entries, read whole. Names use `/`, are relative and never lead outside.
pub trait Container: Send + Sync {
    /// What to call it in messages: the path as the user named it.
    fn name(&self) -> &str;
    /// All entries, sorted. May be empty for a folder that is too large to list.
    fn entries(&self) -> Vec<String>;
    /// Whether an entry is there.
    fn contains(&self, entry: &str) -> bool;
    /// The bytes of one entry, at most `bytes_max` of them.
    ///
    /// # Errors
    /// Not there, unsafe name, larger than `bytes_max`, or unreadable.
    fn read(&self, entry: &str, bytes_max: u64) -> Result<Cow<'_, [u8]>, Error>;
    /// The place of one entry, for messages.
    fn place(&self, entry: &str) -> Place {
        Place::file(self.name()).entry(entry)
    }
}

/// Entries that a container may have; a streamed scan of 100 million splats has some 1,500.
pub const ENTRIES_MAX: usize = 100_000;
/// How often larger than its compressed bytes an entry may be. Deflate ends at 1032:1 and only for
/// constant data; meshes, texts and splats stay below 50:1.
pub const INFLATE_RATIO_MAX: u64 = 250;
/// Bytes that the entries of one zip may hold in all, unpacked: far above any published scene, and
/// what stops archives whose entries share their compressed bytes.
pub const UNPACKED_BYTES_MAX: u64 = 16 << 30;
/// A raised limit of bytes lets in one entry more for each so many of them.
const BYTES_PER_ENTRY: u64 = 4096;
/// What to do about a limit, at the end of a message.
pub(crate) const RAISE_HINT: &str = "--max-unpacked BYTES raises the limit";
/// Entries up to this size may have any ratio: half a megabyte harms nobody.
pub const INFLATE_FLOOR_BYTES: u64 = 512 << 10;
/// Entries of a zip up to this size may have any ratio: weights of rigid parts and blendshapes full of
/// zeros shrink by thousands, and 16 MiB harm nobody.
pub const ZIP_FLOOR_BYTES: u64 = 16 << 20;
/// Folders inside folders that a listing follows.
const FOLDER_DEPTH_MAX: usize = 16;

/// The name without `.` parts, or the reason why it is refused: empty, absolute, with a drive
/// letter, a backslash, a zero byte or a `..` part.
///
/// # Errors
/// The reason, to stand after the name.
pub fn clean_name(name: &str) -> Result<String, &'static str> {
    if name.starts_with('/') {
        return Err("is an absolute path");
    }
    if name.contains('\\') {
        return Err("has a backslash");
    }
    if name.contains('\0') {
        return Err("has a zero byte");
    }
    if name.as_bytes().get(1) == Some(&b':') {
        return Err("starts with a drive letter");
    }
    let mut clean = String::with_capacity(name.len());
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err("leads outside with '..'"),
            _ => {
                if !clean.is_empty() {
                    clean.push('/');
                }
                clean.push_str(part);
            }
        }
    }
    if clean.is_empty() {
        return Err("is empty");
    }
    Ok(clean)
}

/// Files that systems and editors add to folders and archives and that hold nothing of the
/// author's: what macOS leaves behind, and dot files.
#[must_use]
pub fn is_system_litter(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    name.split('/').any(|part| part == "__MACOSX") || last.starts_with('.')
}

fn checked(place: &Place, entry: &str) -> Result<String, Error> {
    clean_name(entry).map_err(|reason| {
        place.error(
            Code::UnsafeName,
            format!("the name {reason}; names inside a folder or archive must stay inside it"),
        )
    })
}

/// The folder or zip at `path`.
///
/// # Errors
/// Not there, unreadable, or a zip that [`Zip::new`] refuses.
pub fn open(path: &Path) -> Result<Box<dyn Container>, Error> {
    open_with_limit(path, None)
}

/// As [`open`], with the limit of [`super::LoadOptions::unpacked_bytes_max`].
///
/// # Errors
/// As [`open`].
pub fn open_with_limit(
    path: &Path,
    unpacked_bytes_max: Option<u64>,
) -> Result<Box<dyn Container>, Error> {
    let name = path.display().to_string();
    if path.is_dir() {
        return Ok(Box::new(Folder::new(path, name)));
    }
    let bytes =
        std::fs::read(path).map_err(|e| Place::file(name.clone()).io("reading the file", &e))?;
    Ok(Box::new(Zip::with_limit(bytes, name, unpacked_bytes_max)?))
}

fn not_there(place: &Place) -> Error {
    place.error(Code::NotFound, "is named but not there")
}

fn over_limit(place: &Place, bytes: u64, bytes_max: u64) -> Error {
    place.too_large(format!(
        "holds {bytes} bytes where at most {bytes_max} are read"
    ))
}

/// A folder on disk.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    name: String,
}

impl Folder {
    /// The folder at `root`, called `name` in messages. Nothing is read yet.
    #[must_use]
    pub fn new(root: &Path, name: impl Into<String>) -> Self {
        Self {
            root: root.to_path_buf(),
            name: name.into(),
        }
    }

    fn list(&self, relative: &str, depth: usize, found: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(self.root.join(relative)) else {
            return;
        };
        for entry in entries.flatten() {
            if found.len() >= ENTRIES_MAX {
                return;
            }
            let (Ok(kind), Ok(last)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            let name = if relative.is_empty() {
                last
            } else {
                format!("{relative}/{last}")
            };
            // A link to a folder is not followed: it may lead back up and never end.
            if kind.is_dir() {
                if depth < FOLDER_DEPTH_MAX {
                    self.list(&name, depth + 1, found);
                }
            } else if !is_system_litter(&name) {
                found.push(name);
            }
        }
    }
}

impl Container for Folder {
    fn name(&self) -> &str {
        &self.name
    }

    fn entries(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.list("", 0, &mut found);
        found.sort_unstable();
        found
    }

    fn contains(&self, entry: &str) -> bool {
        clean_name(entry).is_ok_and(|entry| self.root.join(entry).is_file())
    }

    fn read(&self, entry: &str, bytes_max: u64) -> Result<Cow<'_, [u8]>, Error> {
        let place = self.place(entry);
        let path = self.root.join(checked(&place, entry)?);
        read_file(&path, bytes_max, &place, &|_| ()).map(Cow::Owned)
    }
}

/// Reads a regular file of at most `bytes_max` bytes, telling `progress` how far it is.
pub(crate) fn read_file(
    path: &Path,
    bytes_max: u64,
    place: &Place,
    progress: super::Progress<'_>,
) -> Result<Vec<u8>, Error> {
    // 16 MiB: large enough to run at the speed of the disk, small enough to show movement.
    const BLOCK_BYTES: u64 = 16 << 20;
    // Asked before opening: opening a named pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => place.error(Code::NotFound, "no such file"),
        _ => place.io("opening", &e),
    })?;
    if !metadata.is_file() {
        return Err(place.error(Code::NotFound, "is not a regular file"));
    }
    let length = metadata.len();
    if length > bytes_max {
        return Err(over_limit(place, length, bytes_max));
    }
    let mut file = std::fs::File::open(path).map_err(|e| place.io("opening", &e))?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    loop {
        let got = (&mut file)
            .take(BLOCK_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|e| place.io("reading", &e))?;
        let total = bytes.len() as u64;
        if total > bytes_max {
            return Err(over_limit(place, total, bytes_max));
        }
        if got == 0 {
            return Ok(bytes);
        }
        progress((total as f32 / length.max(1) as f32).min(1.0));
    }
}

/// Entries in memory, for scenes that are built in and for tests.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    name: String,
    entries: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    /// No entries yet; `name` is what messages call it.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            entries: BTreeMap::new(),
        }
    }

    /// Adds or replaces an entry. The name is not checked here: reading it is what is refused.
    #[must_use]
    pub fn with(mut self, entry: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.entries.insert(entry.into(), bytes.into());
        self
    }
}

impl Container for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn entries(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    fn contains(&self, entry: &str) -> bool {
        clean_name(entry).is_ok_and(|entry| self.entries.contains_key(&entry))
    }

    fn read(&self, entry: &str, bytes_max: u64) -> Result<Cow<'_, [u8]>, Error> {
        let place = self.place(entry);
        let clean = checked(&place, entry)?;
        let bytes = self.entries.get(&clean).ok_or_else(|| not_there(&place))?;
        if bytes.len() as u64 > bytes_max {
            return Err(over_limit(&place, bytes.len() as u64, bytes_max));
        }
        Ok(Cow::Borrowed(bytes))
    }
}

/// A zip archive in memory.
pub struct Zip {
    name: String,
    bytes: Vec<u8>,
    archive: std::sync::Arc<zip::read::ZipArchiveMetadata>,
    /// Clean name to index in the central directory, without folders and litter.
    entries: BTreeMap<String, usize>,
    /// What a caller allows instead of the limits above.
    unpacked_bytes_max: Option<u64>,
}

impl Zip {
    /// Reads the central directory and checks every name and declared size.
    ///
    /// # Errors
    /// Damaged, more entries than [`ENTRIES_MAX`], a name twice, a name that leads outside, a
    /// symbolic link, an entry that inflates beyond [`INFLATE_RATIO_MAX`], or more than
    /// [`UNPACKED_BYTES_MAX`] in all.
    pub fn new(bytes: Vec<u8>, name: impl Into<String>) -> Result<Self, Error> {
        Self::with_limit(bytes, name, None)
    }

    /// As [`Zip::new`], with the limit of [`super::LoadOptions::unpacked_bytes_max`].
    ///
    /// # Errors
    /// As [`Zip::new`].
    pub fn with_limit(
        bytes: Vec<u8>,
        name: impl Into<String>,
        unpacked_bytes_max: Option<u64>,
    ) -> Result<Self, Error> {
        let name = name.into();
        let at = Place::file(name.clone());
        let archive = zip::ZipArchive::new(Cursor::new(bytes.as_slice()))
            .map_err(|e| zip_error(&at, "the zip directory", &e))?
            .metadata();
        let allowed = unpacked_bytes_max.map_or(0, |bytes| bytes / BYTES_PER_ENTRY);
        let entries_max = ENTRIES_MAX.max(usize::try_from(allowed).unwrap_or(usize::MAX));
        if archive.len() > entries_max {
            return Err(at.too_large(format!(
                "the zip has {} entries where at most {entries_max} are read; {RAISE_HINT} by one \
                 entry for each {BYTES_PER_ENTRY} bytes",
                archive.len()
            )));
        }
        if archive.has_duplicate_names() {
            return Err(at.malformed("the zip holds two entries of one name"));
        }
        let mut entries = BTreeMap::new();
        let mut unpacked = 0_u64;
        for index in 0..archive.len() {
            let entry = archive
                .entry(index)
                .map_err(|e| zip_error(&at, "an entry of the zip directory", &e))?;
            let shown = String::from_utf8_lossy(entry.name_raw()).into_owned();
            let place = at.entry(shown.clone());
            let clean = checked(&place, &shown)?;
            if entry.is_symlink() {
                return Err(place.error(
                    Code::UnsafeName,
                    "is a symbolic link; links in archives are refused",
                ));
            }
            if entry.is_dir() || is_system_litter(&clean) {
                continue;
            }
            if unpacked_bytes_max.is_none() {
                check_ratio(&place, entry.size(), entry.compressed_size())?;
            }
            unpacked = unpacked.saturating_add(entry.size());
            if entries.insert(clean, index).is_some() {
                return Err(place.malformed("the zip holds two entries of this name"));
            }
        }
        let unpacked_max = unpacked_bytes_max.unwrap_or(UNPACKED_BYTES_MAX);
        if unpacked > unpacked_max {
            return Err(at.too_large(format!(
                "the zip's entries hold {unpacked} bytes unpacked where at most {unpacked_max} are \
                 read; {RAISE_HINT}"
            )));
        }
        Ok(Self {
            name,
            bytes,
            archive,
            entries,
            unpacked_bytes_max,
        })
    }
}

/// Whether an entry of these sizes is taken for a bomb.
pub(crate) fn is_bomb(size: u64, compressed: u64) -> bool {
    size > ZIP_FLOOR_BYTES && size > compressed.saturating_mul(INFLATE_RATIO_MAX)
}

fn check_ratio(place: &Place, size: u64, compressed: u64) -> Result<(), Error> {
    if is_bomb(size, compressed) {
        return Err(place.too_large(format!(
            "{compressed} compressed bytes are said to hold {size}; more than \
             {INFLATE_RATIO_MAX} to 1 is refused as a zip bomb; {RAISE_HINT}"
        )));
    }
    Ok(())
}

fn zip_error(place: &Place, what: &str, error: &zip::result::ZipError) -> Error {
    use zip::result::ZipError;
    match error {
        ZipError::Io(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => place.error(
            Code::Truncated,
            format!("{what} is cut short; the archive is incomplete"),
        ),
        ZipError::CompressionMethodNotSupported(method) => place.malformed(format!(
            "{what} uses zip method {method}; only stored (0) and deflated (8) entries are read"
        )),
        _ => place.malformed(format!("{what} cannot be read: {error}")),
    }
}

impl Container for Zip {
    fn name(&self) -> &str {
        &self.name
    }

    fn entries(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    fn contains(&self, entry: &str) -> bool {
        clean_name(entry).is_ok_and(|entry| self.entries.contains_key(&entry))
    }

    fn read(&self, entry: &str, bytes_max: u64) -> Result<Cow<'_, [u8]>, Error> {
        let place = self.place(entry);
        let clean = checked(&place, entry)?;
        let index = *self.entries.get(&clean).ok_or_else(|| not_there(&place))?;
        let found = self
            .archive
            .entry(index)
            .map_err(|e| zip_error(&place, "the entry", &e))?;
        let (size, compressed) = (found.size(), found.compressed_size());
        if size > bytes_max {
            return Err(over_limit(&place, size, bytes_max));
        }
        if compressed > self.bytes.len() as u64 {
            return Err(place.truncated("the entry", compressed, self.bytes.len() as u64));
        }
        if self.unpacked_bytes_max.is_none() {
            check_ratio(&place, size, compressed)?;
        }
        let mut source = Cursor::new(self.bytes.as_slice());
        let mut reader = found
            .with_reader(&mut source, zip::read::ZipReadOptions::new())
            .map_err(|e| zip_error(&place, "the entry", &e))?;
        // Deflate makes at most 1032 bytes of one: what is said beyond that is not reserved.
        let backed = size.min(compressed.saturating_mul(1032).saturating_add(1032));
        let mut bytes = Vec::with_capacity(usize::try_from(backed).unwrap_or(0));
        // One byte more than declared, so that a lying size is seen without inflating the rest.
        (&mut reader)
            .take(size + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => {
                    place.error(Code::Truncated, "the compressed bytes are cut short")
                }
                _ => place.malformed(format!("the compressed bytes are damaged: {e}")),
            })?;
        if bytes.len() as u64 != size {
            return Err(place.malformed(format!(
                "the zip directory says {size} bytes and the entry holds {}",
                if bytes.len() as u64 > size {
                    "more"
                } else {
                    "fewer"
                }
            )));
        }
        Ok(Cow::Owned(bytes))
    }
}

/// What goes into a new zip.
#[derive(Debug, Clone)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The file at this path, as it is when the zip is written.
    File(PathBuf),
}

/// Endings of files that are compressed already; they are stored, so that they can be lent out.
const COMPRESSED: [&str; 14] = [
    "sog", "spz", "webp", "png", "jpg", "jpeg", "splattie", "zip", "stage", "ogg", "mp3", "flac",
    "glb", "ksplat",
];

/// Writes a zip of these entries, in this order. `path` is the old file until the new one is whole. No
/// entry has a time, so the same entries give the same bytes.
///
/// # Errors
/// A name that [`clean_name`] refuses, a file that cannot be read, no room.
pub fn write_zip(path: &Path, entries: &[(String, Content)]) -> Result<(), Error> {
    let at = Place::file(path.display().to_string());
    super::convert::replace(path, &at, |out| {
        let mut zip = zip::write::ZipWriter::new_stream(out);
        for (name, content) in entries {
            let place = at.entry(name.clone());
            let clean = checked(&place, name)?;
            let is_small = clean
                .rsplit_once('.')
                .is_some_and(|(_, end)| COMPRESSED.contains(&end.to_ascii_lowercase().as_str()));
            let method = if is_small {
                zip::CompressionMethod::Stored
            } else {
                zip::CompressionMethod::Deflated
            };
            let failed = |e: zip::result::ZipError| place.io("writing", &std::io::Error::other(e));
            let options = zip::write::SimpleFileOptions::default()
                .last_modified_time(zip::DateTime::default())
                .compression_method(method)
                .large_file(true);
            zip.start_file(clean, options).map_err(failed)?;
            match content {
                Content::Bytes(bytes) => {
                    zip.write_all(bytes).map_err(|e| place.io("writing", &e))?
                }
                Content::File(from) => {
                    let source = Place::file(from.display().to_string());
                    let mut file =
                        std::fs::File::open(from).map_err(|e| source.io("opening", &e))?;
                    std::io::copy(&mut file, &mut zip).map_err(|e| source.io("copying", &e))?;
                }
            }
        }
        zip.finish()
            .map_err(|e| at.io("writing", &std::io::Error::other(e)))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_outside_are_refused() {
        assert_eq!(clean_name("./a//b.webp").as_deref(), Ok("a/b.webp"));
        assert_eq!(clean_name("a/..b/c").as_deref(), Ok("a/..b/c"));
        for name in [
            "",
            ".",
            "/a",
            "../a",
            "a/../b",
            "..",
            "C:x",
            "a\\b",
            "a\0b",
            "..././../x",
        ] {
            assert!(clean_name(name).is_err(), "{name:?} was accepted");
        }
    }
}
