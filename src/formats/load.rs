//! From a path, or an entry of a container, to splats: in file space ([`read`]), or turned to
//! world space with what a person should know about them ([`load`]).

use super::container::{Folder, Zip, read_file};
use super::detect::{self, Found, Sniffed};
use super::{
    Code, Container, Error, FileSplats, Format, LoadOptions, Loaded, Place, Progress,
    compressed_ply, dot_splat, gltf, ksplat, lod_meta, ply, sog, splattie, spz,
};
use crate::scene::Splats;
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::Path;

/// Share of a load's progress that reading the file from disk takes.
const READING: f32 = 0.3;
/// Zips inside zips that are opened; a `.sog` in a `.stage` needs two.
const NESTING_MAX: usize = 3;
/// A standard deviation above this many scene radii is reported: it covers every picture.
const SCALE_RADII_MAX: f32 = 10.0;
/// Share of centres on each side that the scene radius leaves out.
const RADIUS_CUT: f32 = 0.02;

/// Loads any splat file or folder into world space.
///
/// # Errors
/// See [`Code`]; every error names the file and, where there is one, the entry.
pub fn load(path: &Path, options: &LoadOptions, progress: Progress<'_>) -> Result<Loaded, Error> {
    let (format, file) = read(path, options, progress)?;
    to_world(
        format,
        file,
        options,
        &Place::file(path.display().to_string()),
    )
}

/// As [`load`], for an entry of a container, or for what the container as a whole is (`None`).
///
/// # Errors
/// As [`load`].
pub fn load_in(
    container: &dyn Container,
    entry: Option<&str>,
    options: &LoadOptions,
    progress: Progress<'_>,
) -> Result<Loaded, Error> {
    let (format, file) = read_in(container, entry, options, progress)?;
    to_world(format, file, options, &Place::file(container.name()))
}

/// Reads any splat file or folder without turning it: rows in file space.
///
/// # Errors
/// As [`load`].
pub fn read(
    path: &Path,
    options: &LoadOptions,
    progress: Progress<'_>,
) -> Result<(Format, FileSplats), Error> {
    let name = path.display().to_string();
    let at = Place::file(name.clone());
    if is_url(&name) {
        return Err(at.error(
            Code::IsUrl,
            "is a URL; nothing is fetched from the network: download it first and name the file",
        ));
    }
    if path.is_dir() {
        return read_in(&Folder::new(path, name), None, options, progress);
    }
    let bytes = read_file(path, options.entry_bytes_max(), &at, &|share| {
        progress(READING * share)
    })?;
    let rest = |share: f32| progress(READING + (1.0 - READING) * share);
    match sniff(&bytes, &at)? {
        Sniffed::File(format) => Ok((format, read_file_of(format, &bytes, &at, &rest)?)),
        Sniffed::Zip => {
            let zip = Zip::with_limit(bytes, name, options.unpacked_bytes_max)?;
            read_found(&zip, options, &rest, 0)
        }
        Sniffed::Manifest(format) => {
            let folder = path.parent().unwrap_or(Path::new(""));
            let entry = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            // Called by the manifest's own name, as the user named it; about the manifest itself
            // there is then no entry to add.
            read_manifest(
                format,
                &Folder::new(folder, name),
                &entry,
                options,
                &rest,
                0,
            )
            .map(|file| (format, file))
            .map_err(|e| Error {
                entry: e.entry.filter(|named| *named != entry),
                ..e
            })
        }
    }
}

/// As [`read`], for an entry of a container, or for what the container as a whole is (`None`).
///
/// # Errors
/// As [`load`].
pub fn read_in(
    container: &dyn Container,
    entry: Option<&str>,
    options: &LoadOptions,
    progress: Progress<'_>,
) -> Result<(Format, FileSplats), Error> {
    match entry {
        Some(entry) => {
            let entry = manifest_of(container, entry);
            read_entry_of(container, &entry, options, progress, 0)
        }
        None => read_found(container, options, progress, 0),
    }
}

/// What stands for an entry: itself, or, where it is a folder, the manifest in it, as for a folder
/// on disk.
fn manifest_of<'a>(container: &dyn Container, entry: &'a str) -> Cow<'a, str> {
    if container.contains(entry) {
        return Cow::Borrowed(entry);
    }
    let folder = entry.trim_end_matches('/');
    detect::MANIFESTS
        .iter()
        .map(|(_, name)| format!("{folder}/{name}"))
        .find(|manifest| container.contains(manifest))
        .map_or(Cow::Borrowed(entry), Cow::Owned)
}

fn read_found(
    container: &dyn Container,
    options: &LoadOptions,
    progress: Progress<'_>,
    depth: usize,
) -> Result<(Format, FileSplats), Error> {
    let Found { format, entry } = detect::find(container)?;
    match format {
        Format::Stage => Err(Place::file(container.name()).not_splats(format!(
            "is a scene ({entry}), not a splat file: play it, or name a splat file inside it"
        ))),
        Format::Sog | Format::LodMeta | Format::Splattie => {
            read_manifest(format, container, &entry, options, progress, depth)
                .map(|file| (format, file))
        }
        _ => read_entry_of(container, &entry, options, progress, depth + 1),
    }
}

fn read_entry_of(
    container: &dyn Container,
    entry: &str,
    options: &LoadOptions,
    progress: Progress<'_>,
    depth: usize,
) -> Result<(Format, FileSplats), Error> {
    let at = container.place(entry);
    if depth > NESTING_MAX {
        return Err(at.malformed(format!("archives are nested deeper than {NESTING_MAX}")));
    }
    let bytes = container.read(entry, options.entry_bytes_max())?;
    match sniff(&bytes, &at)? {
        Sniffed::File(format) => Ok((format, read_file_of(format, &bytes, &at, progress)?)),
        Sniffed::Manifest(format) => {
            read_manifest(format, container, entry, options, progress, depth)
                .map(|file| (format, file))
        }
        Sniffed::Zip => {
            let name = format!("{}/{entry}", container.name());
            let zip = Zip::with_limit(bytes.into_owned(), name, options.unpacked_bytes_max)?;
            read_found(&zip, options, progress, depth + 1)
        }
    }
}

fn read_file_of(
    format: Format,
    bytes: &[u8],
    at: &Place,
    progress: Progress<'_>,
) -> Result<FileSplats, Error> {
    match format {
        Format::Ply => ply::read(bytes, at, progress),
        Format::CompressedPly => compressed_ply::read(bytes, at, progress),
        Format::Spz => spz::read(bytes, at, progress),
        Format::DotSplat => dot_splat::read(bytes, at, progress),
        Format::Ksplat => ksplat::read(bytes, at, progress),
        Format::Gltf => gltf::read(bytes, at, progress),
        Format::Sog | Format::LodMeta | Format::Splattie | Format::Stage => {
            Err(at.error(Code::UnknownFormat, "needs the files that lie beside it"))
        }
    }
}

fn read_manifest(
    format: Format,
    container: &dyn Container,
    entry: &str,
    options: &LoadOptions,
    progress: Progress<'_>,
    depth: usize,
) -> Result<FileSplats, Error> {
    match format {
        Format::LodMeta => lod_meta::read(container, entry, options, progress),
        Format::Splattie => {
            let bundle = splattie::Reader::open(container, entry, options)?;
            let splat = bundle.splat_entry()?;
            // One level deeper: a manifest may name itself.
            let (_, file) = read_entry_of(bundle.source(), &splat, options, progress, depth + 1)?;
            bundle.finish(file)
        }
        _ => sog::read(container, entry, progress),
    }
}

fn is_url(name: &str) -> bool {
    name.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    }) || name.starts_with("data:")
}

fn sniff(bytes: &[u8], at: &Place) -> Result<Sniffed, Error> {
    let name = at.entry.as_ref().unwrap_or(&at.file);
    detect::sniff(bytes, name).ok_or_else(|| {
        let found = match bytes {
            [] => "the file is empty".to_owned(),
            [b'{' | b'[', ..] => "JSON that is no SOG meta.json and no lod-meta.json".to_owned(),
            _ => {
                let start: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
                format!("begins with the bytes {}", start.join(" "))
            }
        };
        at.error(
            Code::UnknownFormat,
            format!(
                "{found}; known are PLY, compressed PLY, SPZ, SOG, lod-meta.json, .splat, \
                 .ksplat, GLB with KHR_gaussian_splatting and .splattie"
            ),
        )
    })
}

fn to_world(
    format: Format,
    file: FileSplats,
    options: &LoadOptions,
    at: &Place,
) -> Result<Loaded, Error> {
    let FileSplats {
        mut splats,
        mut warnings,
        ..
    } = file;
    splats.check_lengths().map_err(|e| at.malformed(e))?;
    let (non_finite, first) = non_finite(&splats);
    if let Some(first) = first {
        warnings.push(format!(
            "{non_finite} of {} rows hold a value that is not finite (the first is row {first}): \
             they keep their place and are never drawn",
            splats.len()
        ));
    }
    warnings.extend(absurd_scales(&splats));
    let axes = options.axes.or(file.axes).unwrap_or_else(|| format.axes());
    splats.turn_to_world(axes);
    let avatar = file.avatar.map(|avatar| avatar.turned(axes));
    Ok(Loaded {
        splats,
        format,
        axes,
        version: file.version,
        sh_degree_in_file: file.sh_degree_in_file,
        warnings,
        levels: file.levels,
        non_finite,
        avatar,
    })
}

/// How many rows are not drawable and which is the first.
pub(crate) fn non_finite(splats: &Splats) -> (usize, Option<usize>) {
    (0..splats.len())
        .into_par_iter()
        .filter(|row| !splats.is_drawable(*row))
        .fold(
            || (0, None),
            |(count, first), row| (count + 1, first.or(Some(row))),
        )
        .reduce(
            || (0, None),
            |(a, first), (b, second)| (a + b, [first, second].into_iter().flatten().min()),
        )
}

/// Says so when splats are far larger than the scene: files whose scales were exponentiated twice
/// have stopped whole machines, so a person should know before drawing them.
fn absurd_scales(splats: &Splats) -> Option<String> {
    let radius = splats.percentile_bounds(RADIUS_CUT)?.radius();
    if radius <= 0.0 {
        return None;
    }
    let limit = (radius * SCALE_RADII_MAX).ln();
    let (count, largest) = splats
        .log_scales
        .par_iter()
        .map(|s| s.max_element())
        .filter(|s| *s > limit && *s < f32::INFINITY)
        .fold(|| (0_usize, limit), |(n, m), s| (n + 1, m.max(s)))
        .reduce(|| (0, limit), |(a, m), (b, n)| (a + b, m.max(n)));
    (count > 0).then(|| {
        format!(
            "{count} splats are more than {SCALE_RADII_MAX} times larger than the scene (the \
             largest standard deviation is {:.3e}, the scene's radius {radius:.3e}): the scales \
             may be wrong",
            largest.exp()
        )
    })
}
