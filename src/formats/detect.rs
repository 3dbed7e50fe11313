//! Tells formats apart by content. A name decides nothing but the formats without a magic number.

use super::container::Zip;
use super::ply_header::Header;
use super::{Code, Container, Error, Format, Place};
use super::{compressed_ply, dot_splat, gltf, ksplat, ply_header, splattie_manifest};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Largest JSON that is looked into; the manifest of a 100 million splat scan has some 2 MB.
const JSON_BYTES_MAX: usize = 256 << 20;
/// What a scene folder holds.
const SCENE_ENTRIES: [&str; 2] = ["scene.luau", "scene.lua"];
/// Manifests by which a folder is known.
pub(crate) const MANIFESTS: [(Format, &str); 3] = [
    (Format::LodMeta, "lod-meta.json"),
    (Format::Sog, "meta.json"),
    (Format::Splattie, splattie_manifest::ENTRY),
];
/// Endings of files that hold splats, for a folder or zip that says nothing else.
const SPLAT_ENDINGS: [&str; 7] = [
    ".ply",
    ".spz",
    ".splat",
    ".ksplat",
    ".sog",
    ".glb",
    ".splattie",
];

/// What bytes are at first sight; a zip has to be opened to know more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sniffed {
    /// Bytes of one file.
    File(Format),
    /// `meta.json`, `lod-meta.json` or a bundle's `manifest.json`, whose files lie beside it.
    Manifest(Format),
    Zip,
}

/// The format of a file's bytes; `name` is asked only where the bytes carry no mark.
#[must_use]
pub fn detect(bytes: &[u8], name: &str) -> Option<Format> {
    match sniff(bytes, name)? {
        Sniffed::File(format) | Sniffed::Manifest(format) => Some(format),
        Sniffed::Zip => {
            let zip = Zip::new(bytes.to_vec(), name).ok()?;
            find(&zip).ok().map(|found| found.format)
        }
    }
}

pub(crate) fn sniff(bytes: &[u8], name: &str) -> Option<Sniffed> {
    let place = Place::file(name);
    let lower = name.to_ascii_lowercase();
    if ply_header::is_ply(bytes) {
        let packed = Header::parse(bytes, &place).is_ok_and(|h| compressed_ply::is_compressed(&h));
        return Some(Sniffed::File(if packed {
            Format::CompressedPly
        } else {
            Format::Ply
        }));
    }
    match bytes {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => return Some(Sniffed::Zip),
        // SPZ 4 is plain, 1 to 3 are gzip; no other splat file is.
        [b'N', b'G', b'S', b'P', ..] | [0x1f, 0x8b, ..] => {
            return Some(Sniffed::File(Format::Spz));
        }
        _ if gltf::is_glb(bytes) => return Some(Sniffed::File(Format::Gltf)),
        _ => {}
    }
    if let Some(format) = json_format(bytes) {
        return Some(Sniffed::Manifest(format));
    }
    // The rest has no magic number. A name that says so is believed, so that a damaged file is
    // reported as a damaged one; without it the content must be plausible through and through.
    let named = |ending| lower.ends_with(ending) && !bytes.is_empty();
    if named(".ksplat") || ksplat::is_plausible(bytes) {
        return Some(Sniffed::File(Format::Ksplat));
    }
    if named(".splat") || dot_splat::is_plausible(bytes) {
        return Some(Sniffed::File(Format::DotSplat));
    }
    // Cut or damaged files of the known kinds: let their reader say what is wrong.
    [
        (".ply", Format::Ply),
        (".spz", Format::Spz),
        (".glb", Format::Gltf),
    ]
    .into_iter()
    .find(|(ending, _)| named(ending))
    .map(|(_, format)| Sniffed::File(format))
}

/// The keys by which manifests are told apart; values are skipped, not kept.
#[derive(Deserialize)]
struct Keys {
    #[serde(rename = "lodLevels")]
    lod_levels: Option<IgnoredAny>,
    tree: Option<IgnoredAny>,
    filenames: Option<IgnoredAny>,
    means: Option<IgnoredAny>,
    avatar: Option<IgnoredAny>,
}

fn json_format(bytes: &[u8]) -> Option<Format> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if text.trim_ascii_start().first() != Some(&b'{') || text.len() > JSON_BYTES_MAX {
        return None;
    }
    let keys: Keys = serde_json::from_slice(text).ok()?;
    if keys.lod_levels.is_some() || (keys.tree.is_some() && keys.filenames.is_some()) {
        Some(Format::LodMeta)
    } else {
        let sog = keys.means.map(|_| Format::Sog);
        sog.or(keys.avatar.map(|_| Format::Splattie))
    }
}

/// What a container holds and which entry of it to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) format: Format,
    /// The manifest, or the one splat file.
    pub(crate) entry: String,
}

/// Finds what a folder or zip is: by the names that the formats prescribe, at its root or in the
/// one folder that an archive often wraps around everything; else by the one splat file in it.
pub(crate) fn find(container: &dyn Container) -> Result<Found, Error> {
    let mut by_name: Vec<(Format, &str)> = SCENE_ENTRIES
        .iter()
        .map(|entry| (Format::Stage, *entry))
        .chain(MANIFESTS)
        .collect();
    let is_bundle = container.name().to_ascii_lowercase().ends_with(".splattie");
    if is_bundle {
        // Whatever else its author put in, a bundle is one.
        by_name.rotate_right(1);
    }
    if let Some((format, entry)) = by_name.iter().find(|(_, e)| container.contains(e)) {
        return Ok(Found {
            format: *format,
            entry: (*entry).to_owned(),
        });
    }
    let entries = container.entries();
    for (format, name) in &by_name {
        let inner: Vec<&String> = entries
            .iter()
            .filter(|entry| {
                entry.strip_suffix(name).is_some_and(|folder| {
                    folder.ends_with('/') && entries.iter().all(|e| e.starts_with(folder))
                })
            })
            .collect();
        if let [entry] = inner.as_slice() {
            return Ok(Found {
                format: *format,
                entry: (*entry).clone(),
            });
        }
    }
    let splats: Vec<&String> = entries
        .iter()
        .filter(|e| {
            let lower = e.to_ascii_lowercase();
            SPLAT_ENDINGS.iter().any(|ending| lower.ends_with(ending))
        })
        .collect();
    let at = Place::file(container.name());
    if is_bundle {
        return Err(at.error(
            Code::NoManifest,
            format!(
                "holds no manifest.json among its {} entries, which every .splattie bundle needs; \
                 `splatstage bundle` makes a whole one from the files",
                entries.len()
            ),
        ));
    }
    match splats.as_slice() {
        [entry] => Ok(Found {
            // The reader looks at the content; this is only the best name for it until then.
            format: Format::Ply,
            entry: (*entry).clone(),
        }),
        [] => Err(at.error(
            Code::UnknownFormat,
            "holds no meta.json, lod-meta.json, scene.luau or manifest.json and no splat file",
        )),
        [first, second, ..] => Err(at.error(
            Code::UnknownFormat,
            format!(
                "holds {} splat files ({first}, {second}, ...) and nothing that says which to \
                 take: name one of them",
                splats.len()
            ),
        )),
    }
}
