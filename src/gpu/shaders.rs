//! WGSL texts: the embedded set, files on disk over it, and errors at the author's own line.
//!
//! A module is a list of files joined in order; there is no import syntax to learn. Validation
//! errors are mapped back to file and line of the part they are in.

use super::Error;
use crate::effect::Effect;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// Every WGSL file of the product, by its name below `shaders/`.
        pub const EMBEDDED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../shaders/", $name)))),*];
    };
}

embedded![
    "shared/types.wgsl",
    "shared/splat_packed.wgsl",
    "shared/splat_float.wgsl",
    "shared/footprint.wgsl",
    "shared/tile_span.wgsl",
    "shared/sh.wgsl",
    "shared/quaternion.wgsl",
    "shared/edit.wgsl",
    "shared/plain.wgsl",
    "shared/effect.wgsl",
    "shared/off.wgsl",
    "shared/rows.wgsl",
    "shared/settled.wgsl",
    "shared/stood.wgsl",
    "effects.wgsl",
    "stand.wgsl",
    "deform.wgsl",
    "project.wgsl",
    "scan.wgsl",
    "tiles.wgsl",
    "raster_tiles.wgsl",
    "raster_quads.wgsl",
    "compose.wgsl",
    "compose_store.wgsl",
    "pick.wgsl",
    "shared/film.wgsl",
    "shared/film_layers.wgsl",
    "shared/segments.wgsl",
    "film_depth.wgsl",
    "film_split.wgsl",
    "film_tiles.wgsl",
    "film_quads.wgsl",
    "film_resolve.wgsl",
    "film_proxy.wgsl",
    "film_near.wgsl",
    "film.wgsl",
    "film_exposure.wgsl",
    "finish.wgsl",
    "blit.wgsl",
];

/// WGSL texts by file name. The default is the embedded set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShaderSource {
    /// Texts that stand in for embedded ones.
    overrides: BTreeMap<String, String>,
    /// How to name the folder in messages.
    folder: String,
}

impl ShaderSource {
    /// The embedded set, with every file of that set that `dir` has taken from there.
    ///
    /// # Errors
    /// `dir` is no folder, or a file in it cannot be read as text.
    pub fn from_dir(dir: &Path) -> std::io::Result<Self> {
        if !dir.is_dir() {
            return Err(std::io::Error::new(
                std::io::ErrorKind::NotFound,
                format!("{} is not a folder", dir.display()),
            ));
        }
        let mut overrides = BTreeMap::new();
        for (name, _) in EMBEDDED {
            match std::fs::read_to_string(dir.join(name)) {
                Ok(text) => {
                    overrides.insert((*name).to_owned(), text);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(std::io::Error::new(
                        error.kind(),
                        format!("{}: {error}", dir.join(name).display()),
                    ));
                }
            }
        }
        Ok(Self {
            overrides,
            folder: dir.display().to_string(),
        })
    }

    /// The text of one file.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.overrides.get(name).map(String::as_str).or_else(|| {
            EMBEDDED
                .iter()
                .find(|(embedded, _)| *embedded == name)
                .map(|(_, text)| *text)
        })
    }

    /// Builds the module that joins `parts` (file names, or literal text where it holds a line
    /// break).
    ///
    /// # Errors
    /// [`Error::Shader`] with `file:line:` of the part that does not validate.
    pub(super) fn module(
        &self,
        device: &wgpu::Device,
        label: &str,
        parts: &[&str],
    ) -> Result<wgpu::ShaderModule, Error> {
        let mut texts = Vec::with_capacity(parts.len());
        for part in parts {
            texts.push(if part.contains('\n') {
                Part {
                    file: "generated declarations".to_owned(),
                    text: Cow::Borrowed(*part),
                    place: None,
                }
            } else {
                self.part(part)?
            });
        }
        module_of(device, label, &texts)
    }

    /// A file of the product, as a part of a module.
    ///
    /// # Errors
    /// There is none of that name.
    pub(super) fn part(&self, name: &str) -> Result<Part<'_>, Error> {
        let text = self.text(name).ok_or_else(|| Error::Shader {
            message: format!("{name}:1: there is no such shader file"),
        })?;
        let file = if self.overrides.contains_key(name) {
            format!("{}/{name}", self.folder)
        } else {
            format!("shaders/{name}")
        };
        Ok(Part {
            file,
            text: Cow::Borrowed(text),
            place: None,
        })
    }
}

/// A piece of a module's text.
pub(super) struct Part<'t> {
    /// How messages name it.
    pub file: String,
    /// WGSL.
    pub text: Cow<'t, str>,
    /// Number of the effect that it is the text of.
    pub place: Option<usize>,
}

/// Builds the module that joins `parts`.
///
/// # Errors
/// [`Error::Shader`] with `file:line:` of the part that does not validate.
pub(super) fn module_of(
    device: &wgpu::Device,
    label: &str,
    parts: &[Part<'_>],
) -> Result<wgpu::ShaderModule, Error> {
    let mut joined = String::new();
    // First line (from 1) of each part in the joined text.
    let mut starts: Vec<(u32, &Part<'_>)> = Vec::new();
    let mut first = 1;
    for part in parts {
        starts.push((first, part));
        first += u32::try_from(part.text.lines().count()).unwrap_or(0);
        joined.push_str(&part.text);
        if !joined.ends_with('\n') {
            joined.push('\n');
        }
    }
    let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(label),
        source: wgpu::ShaderSource::Wgsl(Cow::Owned(joined)),
    });
    let failure = pollster::block_on(scope.pop());
    let Some(failure) = failure else {
        return Ok(module);
    };
    let info = pollster::block_on(module.get_compilation_info());
    let message = info
        .messages
        .iter()
        .find(|m| m.message_type == wgpu::CompilationMessageType::Error)
        .map_or_else(
            || format!("{label}: {failure}"),
            |m| {
                let line = m.location.map_or(1, |l| l.line_number);
                let at = starts.iter().rev().find(|(first, _)| *first <= line);
                let text = one_line(&m.message);
                match at {
                    Some((first, part)) => {
                        let text = match part.place {
                            Some(place) => Effect::own_words(&text, place),
                            None => text,
                        };
                        format!("{}:{}: {text}", part.file, line - first + 1)
                    }
                    None => format!("{label}:{line}: {text}"),
                }
            },
        );
    Err(Error::Shader { message })
}

/// A report of naga's on one line: what is wrong and its notes, without the excerpt of the joined
/// text, whose line numbers would be those of no file.
fn one_line(report: &str) -> String {
    let mut lines = report
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("does not validate");
    let what = first
        .split_once("parsing error: ")
        .map_or(first, |(_, what)| what);
    let notes = lines.filter_map(|line| line.strip_prefix("= "));
    std::iter::once(what)
        .chain(notes)
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn reports_become_one_line() {
        let report = "\nShader 'compose' parsing error: no definition in scope for `behnd`\n  \
                      ┌─ wgsl:7:3\n  │\n7 │ behnd\n  │ ^^^^^ unknown identifier\n  = note: spelling\n";
        assert_eq!(
            one_line(report),
            "no definition in scope for `behnd`; note: spelling"
        );
        assert_eq!(one_line(""), "does not validate");
    }
}
