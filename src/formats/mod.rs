//! Splat files: bytes in, [`Splats`] out, and back.
//!
//! One detection by content ([`detect`]), one loader over a [`Container`] (folder, zip, memory).
//! Readers return rows in FILE space and FILE order and never drop one; [`load`] turns them to
//! world space once. No reader may panic, hang or allocate more than the bytes present can back:
//! sizes are checked before allocation, arithmetic on sizes is 64-bit, every limit is a named
//! constant.
//!
//! Every reader of one file is `read(bytes, at, progress) -> Result<FileSplats, Error>`, every
//! reader of several entries is `read(container, entry, ...)`, and every writer is
//! `write(splats, out, at, progress) -> Result<Vec<String>, Error>`: rows come in the target
//! format's own axes and the strings say what was lost. What readers hand out:
//! opacities activated (0 to 1), log-scales as stored or `ln` of linear ones, rotations
//! normalised by [`values::unit_quaternion`], band 0 as coefficient, further bands
//! coefficient-major. A value that is not finite stays so; [`load`] counts such rows.
//!
//! Each reader has a fuzz target in `fuzz/`, which includes this module tree without the rest of
//! the crate: `cargo install cargo-fuzz --locked`, then
//! `cargo +nightly fuzz run ply -- -max_total_time=120` in the repository root (targets: `ply`,
//! `compressed_ply`, `spz`, `sog`, `lod_meta`, `dot_splat`, `ksplat`, `gltf`, `zip`, `splattie`).

pub(crate) mod bytes;
pub(crate) mod compressed_ply;
pub mod container;
pub mod convert;
mod detect;
pub(crate) mod dot_splat;
pub(crate) mod gltf;
pub mod inspect;
pub(crate) mod ksplat;
mod load;
pub(crate) mod lod_meta;
pub(crate) mod ply;
pub(crate) mod ply_header;
pub(crate) mod ply_rows;
pub(crate) mod ply_write;
pub(crate) mod rows;
pub(crate) mod sog;
pub(crate) mod sog_write;
pub mod splattie;
pub(crate) mod splattie_basis;
pub(crate) mod splattie_bundle;
pub(crate) mod splattie_make;
pub(crate) mod splattie_manifest;
pub(crate) mod splattie_skeleton;
pub(crate) mod splattie_states;
pub(crate) mod splattie_weights;
pub(crate) mod spz;
pub(crate) mod values;

use crate::scene::{Axes, Splats};
pub use container::{Container, open, open_with_limit};
pub use convert::{ConvertOptions, Converted, convert, save};
pub use detect::detect;
pub use load::{load, load_in, read, read_in};
pub use splattie::{AssetType, Avatar};
use std::fmt;
use std::sync::Arc;

/// What went wrong with a file from outside: a kind that a program can read, and a sentence that
/// says what was found, what was expected and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(entry) = &self.entry {
            write!(f, "{entry}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

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
    /// A point cloud, a mesh or a scene: not splats.
    NotSplats,
    /// A name in a container that leads outside of it.
    UnsafeName,
    /// The format cannot be written.
    NotWritable,
    /// A bundle without `manifest.json`.
    NoManifest,
    /// A `manifest.json` that is no `.splattie` manifest, or lacks a field that it needs.
    NotSplattie,
    /// A bundle of a version that is not read.
    VersionMismatch,
    /// A bundle's manifest names an entry that is not there.
    MissingEntry,
    /// Bones of a bundle that are no tree.
    BadSkeleton,
    /// Weights of a bundle that do not fit its splats or bones.
    BadWeights,
    /// A bundle's expression basis that does not fit its splats or itself.
    BadBasis,
    /// A bundle's states with a field of the wrong kind.
    BadStates,
}

impl Code {
    /// The word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::Io => "io",
            Self::IsUrl => "is-url",
            Self::UnknownFormat => "unknown-format",
            Self::UnsupportedVersion => "unsupported-version",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::TooLarge => "too-large",
            Self::NotSplats => "not-splats",
            Self::UnsafeName => "unsafe-name",
            Self::NotWritable => "not-writable",
            Self::NoManifest => "no-manifest",
            Self::NotSplattie => "not-splattie",
            Self::VersionMismatch => "version-mismatch",
            Self::MissingEntry => "missing-entry",
            Self::BadSkeleton => "bad-skeleton",
            Self::BadWeights => "bad-weights",
            Self::BadBasis => "bad-basis",
            Self::BadStates => "bad-states",
        }
    }
}

/// Where bytes came from, for messages; makes [`Error`]s about that place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file or folder as the user named it.
    pub file: String,
    /// The entry inside it.
    pub entry: Option<String>,
}

impl Place {
    /// A whole file or folder.
    #[must_use]
    pub fn file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            entry: None,
        }
    }

    /// An entry of this file or folder.
    #[must_use]
    pub fn entry(&self, entry: impl Into<String>) -> Self {
        Self {
            file: self.file.clone(),
            entry: Some(entry.into()),
        }
    }

    /// An error of any kind.
    #[must_use]
    pub fn error(&self, code: Code, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            file: self.file.clone(),
            entry: self.entry.clone(),
        }
    }

    /// Bytes end too early: `what` needs `needed` bytes and `present` are there.
    #[must_use]
    pub fn truncated(&self, what: &str, needed: u64, present: u64) -> Error {
        self.error(
            Code::Truncated,
            format!(
                "{what} needs {needed} bytes and only {present} are present; the file is cut \
                 short or its header is wrong"
            ),
        )
    }

    /// A value contradicts the format.
    #[must_use]
    pub fn malformed(&self, message: impl Into<String>) -> Error {
        self.error(Code::Malformed, message)
    }

    /// A count or size is over a limit.
    #[must_use]
    pub fn too_large(&self, message: impl Into<String>) -> Error {
        self.error(Code::TooLarge, message)
    }

    /// The content is something else than splats.
    #[must_use]
    pub fn not_splats(&self, message: impl Into<String>) -> Error {
        self.error(Code::NotSplats, message)
    }

    /// A version nobody here knows.
    #[must_use]
    pub fn unsupported_version(&self, message: impl Into<String>) -> Error {
        self.error(Code::UnsupportedVersion, message)
    }

    /// Input or output failed.
    #[must_use]
    pub fn io(&self, doing: &str, error: &std::io::Error) -> Error {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Code::NotFound,
            _ => Code::Io,
        };
        self.error(code, format!("{doing} failed: {error}"))
    }
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
    /// A `.splattie` bundle, a zip or a folder with `manifest.json`: splats with a body.
    Splattie,
    /// A zip of a scene folder, or such a folder: `scene.luau` is inside.
    Stage,
}

impl Format {
    /// The word for programs and for `inspect`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ply => "ply",
            Self::CompressedPly => "compressed-ply",
            Self::Spz => "spz",
            Self::Sog => "sog",
            Self::LodMeta => "lod-meta",
            Self::DotSplat => "splat",
            Self::Ksplat => "ksplat",
            Self::Gltf => "gltf",
            Self::Splattie => "splattie",
            Self::Stage => "stage",
        }
    }

    /// The convention of files that do not say otherwise.
    #[must_use]
    pub const fn axes(self) -> Axes {
        match self {
            Self::Ply
            | Self::CompressedPly
            | Self::Sog
            | Self::LodMeta
            | Self::DotSplat
            | Self::Ksplat => Axes::RDF,
            Self::Spz | Self::Gltf | Self::Splattie | Self::Stage => Axes::RUB,
        }
    }
}

/// Rows as a reader found them: file space, file order, and what was seen on the way.
#[derive(Debug, Clone, Default)]
pub struct FileSplats {
    /// The rows, in file space.
    pub splats: Splats,
    /// The file's own axes where it states them; `None` means the format's convention.
    pub axes: Option<Axes>,
    /// Version as the file spells it (`"4"`, `"2"`), where it has one.
    pub version: Option<String>,
    /// SH degree that the file holds, which may be above what is drawn.
    pub sh_degree_in_file: u8,
    /// What a person should know and need not act on, one sentence each.
    pub warnings: Vec<String>,
    /// Levels of a streamed scan, empty for anything else.
    pub levels: Vec<Level>,
    /// What makes the rows a body; only bundles have it.
    pub avatar: Option<Arc<Avatar>>,
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
    /// Appends a streamed scan's environment (sky, far surroundings) to the level. Off by default,
    /// so that the rows are those of the level and `count` is what the manifest says.
    pub environment: bool,
    /// Overrides the file's axes.
    pub axes: Option<Axes>,
    /// Most bytes that an archive may hold when unpacked, in all and in one entry. `None` takes the
    /// limits of [`container`] and [`splattie`]. A number replaces them, up or down, and with it
    /// the ratio of packed to unpacked is not looked at any more: what could be unpacked is bounded
    /// by the caller.
    pub unpacked_bytes_max: Option<u64>,
}

impl LoadOptions {
    /// Largest file or entry that these options let in, bytes.
    pub(crate) fn entry_bytes_max(&self) -> u64 {
        self.unpacked_bytes_max.unwrap_or(ENTRY_BYTES_MAX)
    }
}

/// Splats of a streamed scan that are taken when nobody says how many.
pub const LEVEL_BUDGET_DEFAULT: u64 = 4_000_000;

/// Largest entry of a container, or file inside a zip, that is read: 4 GiB, above any published
/// scene and below what a desktop machine can hold twice.
pub const ENTRY_BYTES_MAX: u64 = 4 << 30;

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
    /// As in [`FileSplats`], turned with the rows.
    pub avatar: Option<Arc<Avatar>>,
}

/// Told now and then how far a load is, 0 to 1.
pub type Progress<'a> = &'a (dyn Fn(f32) + Sync);
