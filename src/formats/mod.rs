//! Splat files: bytes in, [`Splats`] out, and back.
//!
//! One detection by content ([`detect`]), one loader over a [`Container`] (folder, zip, memory).
//! Readers return rows in FILE space and FILE order; [`load`] turns them to world space once. No
//! reader may panic, hang or allocate more than the bytes present can back: sizes are checked
//! before allocation, arithmetic on sizes is 64-bit, every limit is a named constant.

pub mod container;

use crate::scene::{Axes, Splats};
pub use container::Container;
use std::path::Path;

/// What went wrong with a file from outside: a kind that a program can read, and a sentence that
/// says what was found, what was expected and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}{message}", .entry.as_ref().map(|e| format!("{e}: ")).unwrap_or_default())]
pub struct Error {
    /// The kind.
    pub code: Code,
    /// The sentence: lower case, no full stop, no file name.
    pub message: String,
    /// The file (or folder) it is about, as the user named it.
    pub file: String,
    /// The entry inside it (`meta.json`, `means_l.webp`), where there is one.
    pub entry: Option<String>,
}

/// Kinds of [`Error`]; `as_str` gives the kebab-case word that `--json` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// The file or entry is not there or cannot be opened.
    NotFound,
    /// Input or output failed half way.
    Io,
    /// A URL was given where a file is needed.
    IsUrl,
    /// No reader knows this content.
    UnknownFormat,
    /// The format is known, this version of it is not.
    UnsupportedVersion,
    /// Bytes end before what the header promises.
    Truncated,
    /// A value contradicts the format or another value.
    Malformed,
    /// A count or size is over a named limit or over what the bytes present can back.
    TooLarge,
    /// A point cloud or a mesh, not splats.
    NotSplats,
    /// A name in a container that leads outside of it.
    UnsafeName,
    /// The format cannot be written.
    NotWritable,
}

/// The formats that are told apart by content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Float PLY.
    Ply,
    /// PlayCanvas compressed PLY.
    CompressedPly,
    /// SPZ 1 to 4.
    Spz,
    /// SOG 1 and 2, a `.sog` zip or a folder's `meta.json`.
    Sog,
    /// Streamed SOG, `lod-meta.json`.
    LodMeta,
    /// antimatter15's 32-byte rows.
    DotSplat,
    /// mkkellogg's `.ksplat`.
    Ksplat,
    /// glTF binary with KHR_gaussian_splatting.
    Gltf,
    /// A `.splattie` bundle: a zip with `manifest.json`. Told apart here, read by the avatar loader.
    Splattie,
    /// A zip of a scene folder, or such a folder: `scene.luau` is inside.
    Stage,
}

/// Rows as a reader found them: file space, file order, and what was seen on the way.
#[derive(Debug, Clone, Default)]
pub struct FileSplats {
    /// The rows, in file space.
    pub splats: Splats,
    /// The format's or file's own axes; `None` means the format's convention.
    pub axes: Option<Axes>,
    /// Version as the file spells it (`"4"`, `"2"`), where it has one.
    pub version: Option<String>,
    /// SH degree that the file holds, which may be above what is drawn.
    pub sh_degree_in_file: u8,
    /// What a person should know and need not act on, one sentence each.
    pub warnings: Vec<String>,
    /// Levels of a streamed scan, empty for anything else.
    pub levels: Vec<Level>,
}

/// One level of detail of a streamed scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// 0 is the finest.
    pub level: u32,
    /// Splats that the level has by the manifest.
    pub count: u64,
    /// Whether every unit of the level is on disk.
    pub present: bool,
}

/// What a caller may ask of [`load`].
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Level of a streamed scan; `None` takes the finest that fits `budget`.
    pub level: Option<u32>,
    /// Most splats to take of a streamed scan when no level is named; `None` is
    /// [`LEVEL_BUDGET_DEFAULT`].
    pub budget: Option<u64>,
    /// Overrides the file's axes.
    pub axes: Option<Axes>,
}

/// Splats of a streamed scan that are taken when nobody says how many.
pub const LEVEL_BUDGET_DEFAULT: u64 = 4_000_000;

/// Splats in world space, with what was learned while loading them.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// World space, file order.
    pub splats: Splats,
    /// What the file is.
    pub format: Format,
    /// The axes that were applied: the override, the file's or the format's.
    pub axes: Axes,
    /// As in [`FileSplats`].
    pub version: Option<String>,
    /// As in [`FileSplats`].
    pub sh_degree_in_file: u8,
    /// As in [`FileSplats`], and one for rows that are not finite.
    pub warnings: Vec<String>,
    /// As in [`FileSplats`].
    pub levels: Vec<Level>,
    /// Rows that are never drawn because a value is not finite.
    pub non_finite: usize,
}

/// Told now and then how far a load is, 0 to 1.
pub type Progress<'a> = &'a (dyn Fn(f32) + Sync);

/// Loads any splat file or folder into world space.
///
/// # Errors
/// See [`Code`]; every error names the file and, where there is one, the entry.
pub fn load(
    _path: &Path,
    _options: &LoadOptions,
    _progress: Progress<'_>,
) -> Result<Loaded, Error> {
    todo!("formats helper")
}

/// [`load`] of one entry of an opened container.
pub fn load_entry(
    _container: &dyn Container,
    _entry: &str,
    _options: &LoadOptions,
    _progress: Progress<'_>,
) -> Result<Loaded, Error> {
    todo!("formats helper")
}

/// What a file or folder is, by content.
pub fn detect(_path: &Path) -> Result<Format, Error> {
    todo!("formats helper")
}

/// Opens a folder or a zip as a container.
pub fn open(_path: &Path) -> Result<Box<dyn Container>, Error> {
    todo!("formats helper")
}

/// True for `http://...` and the like.
pub fn is_url(_path: &Path) -> bool {
    todo!("formats helper")
}
