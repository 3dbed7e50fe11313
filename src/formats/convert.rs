//! Any splat file in, one of the writable formats out: PLY, SPZ 4, `.splat`, bundled SOG 2.
//!
//! Rows keep their order where the format allows. PLY can state its axes, so rows stay in the
//! source's own space unless another one is asked for; the others have one convention and rows
//! are turned to it, rotations and coefficients with them. The output appears whole or not at
//! all: it is written beside its place and renamed.

use super::{
    Avatar, Code, Error, Format, LoadOptions, Place, Progress, dot_splat, load, ply_write,
    sog_write, spz,
};
use crate::scene::body::Skin;
use crate::scene::{Axes, Splats};
use std::io::Write;
use std::path::Path;

/// Share of the progress that reading takes.
const READING: f32 = 0.5;
/// Bytes collected before they go to disk.
const BUFFER_BYTES: usize = 1 << 20;

/// What a caller may ask of [`convert`].
#[derive(Debug, Clone, Default)]
pub struct ConvertOptions {
    /// How the input is read; its `axes` say what space the input's rows are in.
    pub load: LoadOptions,
    /// Axes of the written rows; `None` keeps the source's where the format can state them.
    pub to_axes: Option<Axes>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// Format of the input.
    pub from: Format,
    /// Format of the output.
    pub to: Format,
    /// Rows written.
    pub count: usize,
    /// Axes of the written rows.
    pub axes: Axes,
    /// What was seen while reading, one sentence each.
    pub warnings: Vec<String>,
    /// What the output does not hold any more, one sentence each.
    pub lost: Vec<String>,
}

/// The writable format that a file name asks for.
fn target(output: &Path, at: &Place) -> Result<Format, Error> {
    let name = output.to_string_lossy().to_ascii_lowercase();
    if name.ends_with(".splattie") {
        return Err(at.error(
            Code::NotWritable,
            "is not made by convert: `splatstage bundle IN... -o OUT.splattie` makes an avatar of \
             a splat file and its bones, weights, shapes and states",
        ));
    }
    let found = [
        (".compressed.ply", None),
        (".ply", Some(Format::Ply)),
        (".spz", Some(Format::Spz)),
        (".splat", Some(Format::DotSplat)),
        (".sog", Some(Format::Sog)),
    ]
    .into_iter()
    .find(|(ending, _)| name.ends_with(ending))
    .and_then(|(_, format)| format);
    found.ok_or_else(|| {
        at.error(
            Code::NotWritable,
            "cannot be written: the name must end in .ply, .spz, .splat or .sog",
        )
    })
}

/// Reads `input` and writes `output` in the format that its name asks for.
///
/// # Errors
/// Those of reading; [`Code::NotWritable`] for a format, or axes of it, that are not written;
/// [`Code::Io`]. On any error `output` is as it was.
pub fn convert(
    input: &Path,
    output: &Path,
    options: &ConvertOptions,
    progress: Progress<'_>,
) -> Result<Converted, Error> {
    let at = Place::file(output.display().to_string());
    let to = target(output, &at)?;
    let (from, mut file) = load::read(input, &options.load, &|s| progress(READING * s))?;
    let source = options
        .load
        .axes
        .or(file.axes)
        .unwrap_or_else(|| from.axes());
    let axes = match (to, options.to_axes) {
        (Format::Ply, wanted) => wanted.unwrap_or(source),
        (_, Some(wanted)) if wanted != to.axes() => {
            return Err(at.error(
                Code::NotWritable,
                format!(
                    "{} files are always {}, not {wanted}",
                    to.as_str(),
                    to.axes()
                ),
            ));
        }
        _ => to.axes(),
    };
    file.splats.turn(source.turn_to(axes));
    let rest = |share: f32| progress(READING + (1.0 - READING) * share);
    let mut lost = Vec::new();
    if file.sh_degree_in_file > file.splats.sh_degree {
        lost.push(format!(
            "spherical harmonics above degree {} are left out",
            file.splats.sh_degree
        ));
    }
    if let Some(avatar) = &file.avatar {
        lost.extend(lost_of_avatar(avatar));
    }
    let splats = &file.splats;
    lost.extend(replace(output, &at, |out| match to {
        Format::Spz => spz::write(splats, out, &at, &rest),
        Format::DotSplat => dot_splat::write(splats, out, &at, &rest),
        Format::Sog => sog_write::write(splats, out, &at, &rest),
        _ => ply_write::write(splats, axes, out, &at, &rest),
    })?);
    progress(1.0);
    Ok(Converted {
        from,
        to,
        count: splats.len(),
        axes,
        warnings: file.warnings,
        lost,
    })
}

/// Writes splats that are in world space, in the format that the file's name asks for (axes and all),
/// and says what is lost.
///
/// # Errors
/// [`Code::NotWritable`], [`Code::Io`]. On any error `output` is as it was.
pub fn save(splats: &Splats, output: &Path, progress: Progress<'_>) -> Result<Vec<String>, Error> {
    let at = Place::file(output.display().to_string());
    let to = target(output, &at)?;
    let mut turned = splats.clone();
    turned.turn(Axes::RUB.turn_to(to.axes()));
    replace(output, &at, |out| match to {
        Format::Spz => spz::write(&turned, out, &at, progress),
        Format::DotSplat => dot_splat::write(&turned, out, &at, progress),
        Format::Sog => sog_write::write(&turned, out, &at, progress),
        _ => ply_write::write(&turned, to.axes(), out, &at, progress),
    })
}

/// What splats without a body do not hold any more.
fn lost_of_avatar(avatar: &Avatar) -> Vec<String> {
    let body = &avatar.body;
    let weights = body.skin.as_ref().map_or(0, Skin::len);
    let states = avatar.states.as_ref().and_then(|s| s["states"].as_object());
    [
        (body.bones.len(), "bones"),
        (weights, "rows of weights"),
        (body.shapes.names.len(), "blendshapes"),
        (states.map_or(0, serde_json::Map::len), "states"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{what} of the avatar are left out: {count}"))
    .collect()
}

/// Writes a file beside `output` and renames it into place.
pub(crate) fn replace<T>(
    output: &Path,
    at: &Place,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Error>,
) -> Result<T, Error> {
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".splatstage-");
    #[cfg(unix)]
    {
        // Temporary files are private by default; this one becomes an ordinary file.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder
        .tempfile_in(folder)
        .map_err(|e| at.io("creating a file in its folder", &e))?;
    let mut buffered = std::io::BufWriter::with_capacity(BUFFER_BYTES, file.as_file_mut());
    let result = write(&mut buffered)?;
    buffered.flush().map_err(|e| at.io("writing", &e))?;
    drop(buffered);
    file.persist(output)
        .map_err(|e| at.io("renaming into place", &e.error))?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("old.bin");
        std::fs::write(&path, b"old").expect("writes");
        let at = Place::file("old.bin");
        let failed: Result<(), Error> = replace(&path, &at, |out| {
            out.write_all(b"half of the new")
                .map_err(|e| at.io("writing", &e))?;
            Err(at.error(Code::Io, "the disk is full"))
        });
        assert_eq!(failed.map_err(|e| e.code), Err(Code::Io));
        assert_eq!(std::fs::read(&path).ok().as_deref(), Some(&b"old"[..]));
        let left = std::fs::read_dir(folder.path()).expect("lists").count();
        assert_eq!(left, 1, "the temporary file is gone");
        let done = replace(&path, &at, |out| {
            out.write_all(b"new").map_err(|e| at.io("w", &e))
        });
        assert!(done.is_ok() && std::fs::read(&path).is_ok_and(|bytes| bytes == b"new"));
    }
}
