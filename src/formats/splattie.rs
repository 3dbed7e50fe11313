//! `.splattie` bundles: splats with bones, weights, blendshapes and states; a zip or a folder.
//!
//! `manifest.json` names the files and nothing is guessed, save the labels beside a basis
//! (`expression_basis.json` for `expression_basis.bin`), which no manifest names. The splat file
//! may be any that is read here, told by content. Space: y up, metres, whatever the splat file's own
//! convention; nothing is turned. Optional files may be absent: without bones nothing but splats,
//! without weights bones move nothing, without a basis there are no shapes, without states a script
//! has its own. One file a part: `splattie_manifest`, `splattie_skeleton`,
//! `splattie_weights`, `splattie_basis`, `splattie_states`. Editing and
//! saving is [`Bundle`], making one out of single files [`bundle()`].
//!
//! Source: FORMAT.md, the loader and its constants in affromero/splattie-widget, v0.1.0 to v0.3.0
//! (MIT). Where the original is ambiguous or wrong this reader differs and says so at the place.

pub use super::splattie_bundle::{Bundle, FormatVersion};
pub use super::splattie_make::{BundleOptions, Bundled, bundle};

use super::container::{RAISE_HINT, clean_name};
use super::splattie_basis::{self, Basis};
use super::splattie_manifest::{JSON_BYTES_MAX, Manifest, Named};
use super::{
    Code, Container, Error, FileSplats, LoadOptions, Place, splattie_skeleton, splattie_states,
    splattie_weights,
};
use crate::scene::Axes;
use crate::scene::body::{Body, Bone, Shapes};
use glam::{Mat3, Vec3};
use half::f16;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest entry of a bundle, bytes unpacked. Weights of 200,000 splats and 55 bones as text, the
/// longest that is known of, have 220 MB.
pub const ENTRY_BYTES_MAX: u64 = 1 << 30;
/// What is read of one bundle in all, bytes unpacked.
pub const UNPACKED_BYTES_MAX: u64 = 2 << 30;

/// What an avatar is, which decides how scripts move it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AssetType {
    /// A head with neck, jaw and eyes. What a bundle is that does not say.
    #[default]
    Head,
    /// A whole person.
    Body,
    /// Anything else with bones.
    Object,
}

impl AssetType {
    /// The word of the manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Body => "body",
            Self::Object => "object",
        }
    }

    /// The type of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Head, Self::Body, Self::Object]
            .into_iter()
            .find(|known| known.as_str() == word)
    }
}

/// What a bundle adds to its splats.
#[derive(Clone, Debug, PartialEq)]
pub struct Avatar {
    /// Row by row the splats': no bones without a skeleton, no skin without weights, no shapes
    /// without a basis.
    pub body: Arc<Body>,
    /// `manifest.json`, whole.
    pub manifest: Value,
    /// `states.json`, whole; its known fields are of the right kind.
    pub states: Option<Value>,
    /// What it is.
    pub asset_type: AssetType,
}

impl Avatar {
    /// The avatar with its body turned from `axes` to world space, as its splats are.
    pub(crate) fn turned(self: Arc<Self>, axes: Axes) -> Arc<Self> {
        let turn = axes.world_from_file();
        if turn == Mat3::IDENTITY {
            return self;
        }
        let mut body = (*self.body).clone();
        for bone in &mut body.bones {
            bone.rest = turn * bone.rest;
        }
        for entry in &mut body.shapes.entries {
            let offset = turn * Vec3::from(entry.offset.map(f16::to_f32));
            entry.offset = offset.to_array().map(f16::from_f32);
        }
        Arc::new(Self {
            body: Arc::new(body),
            ..(*self).clone()
        })
    }
}

/// A bundle's files under the limits for bundles. Names are those of the whole container.
pub(crate) struct Bounded<'a> {
    inner: &'a dyn Container,
    entry_bytes_max: u64,
    /// Bytes that may still be read.
    left: AtomicU64,
}

impl<'a> Bounded<'a> {
    pub(crate) fn new(inner: &'a dyn Container, unpacked_bytes_max: Option<u64>) -> Self {
        Self {
            inner,
            entry_bytes_max: unpacked_bytes_max.unwrap_or(ENTRY_BYTES_MAX),
            left: AtomicU64::new(unpacked_bytes_max.unwrap_or(UNPACKED_BYTES_MAX)),
        }
    }
}

impl Container for Bounded<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn entries(&self) -> Vec<String> {
        self.inner.entries()
    }

    fn contains(&self, entry: &str) -> bool {
        self.inner.contains(entry)
    }

    fn read(&self, entry: &str, bytes_max: u64) -> Result<Cow<'_, [u8]>, Error> {
        let left = self.left.load(Ordering::Relaxed);
        let bytes_max = bytes_max.min(self.entry_bytes_max).min(left);
        let bytes = self.inner.read(entry, bytes_max).map_err(|mut error| {
            if error.code == Code::TooLarge && !error.message.contains(RAISE_HINT) {
                error.message = format!("{}; {RAISE_HINT}", error.message);
            }
            error
        })?;
        let length = bytes.len() as u64;
        self.left.fetch_sub(length.min(left), Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Reads one bundle: the manifest first, then, once the caller has the splats, everything else.
pub(crate) struct Reader<'a> {
    source: Bounded<'a>,
    /// Of the manifest, with a slash at the end, or empty.
    folder: String,
    manifest: Manifest,
    json_bytes_max: u64,
}

impl<'a> Reader<'a> {
    /// Reads the manifest at `entry`.
    ///
    /// # Errors
    /// [`Code::NotSplattie`], [`Code::VersionMismatch`], and those of reading.
    pub(crate) fn open(
        container: &'a dyn Container,
        entry: &str,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let source = Bounded::new(container, options.unpacked_bytes_max);
        let json_bytes_max = json_bytes_max(options.unpacked_bytes_max);
        let manifest = {
            let bytes = source.read(entry, json_bytes_max)?;
            Manifest::parse(&bytes, &container.place(entry))?
        };
        let folder = entry.rfind('/').and_then(|end| entry.get(..=end));
        Ok(Self {
            folder: folder.unwrap_or_default().to_owned(),
            source,
            manifest,
            json_bytes_max,
        })
    }

    /// The bundle's files.
    pub(crate) fn source(&self) -> &Bounded<'a> {
        &self.source
    }

    /// The entry of the splat file.
    ///
    /// # Errors
    /// [`Code::MissingEntry`], [`Code::UnsafeName`].
    pub(crate) fn splat_entry(&self) -> Result<String, Error> {
        self.entry(&self.manifest.splat)
    }

    fn entry(&self, named: &Named) -> Result<String, Error> {
        entry_of(&self.source, &self.folder, named)
    }

    /// The bytes of a named entry with the place for messages; `None` where none is named.
    fn part(&self, named: Option<&Named>, bytes_max: u64) -> Result<Option<Part<'_>>, Error> {
        let Some(named) = named else {
            return Ok(None);
        };
        let entry = self.entry(named)?;
        let bytes = self.source.read(&entry, bytes_max)?;
        Ok(Some((bytes, self.source.place(&entry))))
    }

    /// Adds the avatar to the bundle's splats.
    ///
    /// # Errors
    /// [`Code::MissingEntry`], [`Code::BadSkeleton`], [`Code::BadWeights`], [`Code::BadBasis`],
    /// [`Code::BadStates`], and those of reading.
    pub(crate) fn finish(self, mut file: FileSplats) -> Result<FileSplats, Error> {
        let manifest = &self.manifest;
        let rows = file.splats.len();
        let mut warnings = manifest.warnings.clone();
        if let Some(said) = manifest.rows.filter(|said| *said != rows as u64) {
            warnings.push(format!(
                "the field avatar.splat.numGaussians is {said} and the splat file has {rows} rows"
            ));
        }
        if let Some(axes) = file.axes.filter(|axes| *axes != Axes::RUB) {
            warnings.push(format!(
                "the splat file says that its axes are {axes} and is read as {} all the same, as \
                 every player of bundles does: `splatstage convert --to-axes RUB` turns it",
                Axes::RUB
            ));
        }
        let bones = self.bones(&mut warnings)?;
        let skin = match self.part(manifest.weights.as_ref(), ENTRY_BYTES_MAX_ANY)? {
            Some((bytes, at)) if !bones.is_empty() => {
                let (skin, warning) = splattie_weights::read(&bytes, rows, bones.len(), &at)?;
                warnings.extend(warning);
                Some(skin)
            }
            Some(_) => {
                warnings.push(
                    "the manifest names weights and no skeleton: they move nothing".to_owned(),
                );
                None
            }
            None => None,
        };
        let shapes = self.shapes(&file.splats.means, &bones, &mut warnings)?;
        let states = self.states(&mut warnings)?;
        // Before what the splat file's own reader saw: this is about the whole.
        warnings.append(&mut file.warnings);
        file.warnings = warnings;
        // Avatars are y up whatever their splat file says.
        file.axes = None;
        file.version = Some(manifest.version.clone());
        file.avatar = Some(Arc::new(Avatar {
            body: Arc::new(Body {
                bones,
                skin,
                shapes,
            }),
            asset_type: manifest.asset_type,
            manifest: self.manifest.json,
            states,
        }));
        Ok(file)
    }

    fn bones(&self, warnings: &mut Vec<String>) -> Result<Vec<Bone>, Error> {
        let Some((bytes, at)) = self.part(self.manifest.skeleton.as_ref(), self.json_bytes_max)?
        else {
            return Ok(Vec::new());
        };
        let (bones, more) = splattie_skeleton::read(&bytes, &at)?;
        warnings.extend(more);
        Ok(bones)
    }

    fn shapes(
        &self,
        means: &[Vec3],
        bones: &[Bone],
        warnings: &mut Vec<String>,
    ) -> Result<Shapes, Error> {
        let Some((bytes, at)) = self.part(self.manifest.basis.as_ref(), ENTRY_BYTES_MAX_ANY)?
        else {
            return Ok(Shapes::default());
        };
        let basis = Basis::parse(&bytes, &at)?;
        let names = match self.labels(&at, basis.shapes)? {
            Some(Ok(labels)) => labels,
            Some(Err(reason)) => {
                warnings.push(format!(
                    "the labels beside the basis are not used, shapes are called expr_0, expr_1, \
                     ...: the file {reason}"
                ));
                splattie_basis::plain_names(basis.shapes)
            }
            None => splattie_basis::plain_names(basis.shapes),
        };
        let mut known = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
            warnings.push(format!(
                "the label {twice:?} is there more than once: it means the first such shape"
            ));
        }
        let jaw = bones.iter().find(|bone| bone.name == "jaw");
        let jaw_y_m = jaw.map(|bone| bone.rest.y);
        let (shapes, warning) = splattie_basis::shapes(&basis, names, means, jaw_y_m, &at)?;
        warnings.extend(warning);
        Ok(shapes)
    }

    /// Labels out of the sidecar of the basis at `at`.
    fn labels(
        &self,
        at: &Place,
        shapes: usize,
    ) -> Result<Option<Result<Vec<String>, String>>, Error> {
        let sidecar = at.entry.as_deref().and_then(sidecar_of);
        let Some(sidecar) = sidecar.filter(|entry| self.source.contains(entry)) else {
            return Ok(None);
        };
        let bytes = self.source.read(&sidecar, self.json_bytes_max)?;
        Ok(Some(splattie_basis::labels(&bytes, shapes)))
    }

    /// The states. A named entry that is not there is no error, as in the original: built-in states
    /// are there for that.
    fn states(&self, warnings: &mut Vec<String>) -> Result<Option<Value>, Error> {
        match self.part(self.manifest.states.as_ref(), self.json_bytes_max) {
            Ok(None) => Ok(None),
            Ok(Some((bytes, at))) => splattie_states::read(&bytes, &at).map(Some),
            Err(error) if error.code == Code::MissingEntry => {
                warnings.push(format!(
                    "{} is named as widget.config and not in the bundle: the built-in states are \
                     used",
                    error.entry.unwrap_or_default()
                ));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// An entry's bytes, and where they are from.
type Part<'a> = (Cow<'a, [u8]>, Place);

/// For entries that are read as they are: the limits of [`Bounded`] alone count.
const ENTRY_BYTES_MAX_ANY: u64 = u64::MAX;

/// Largest document that becomes a tree of values under this limit.
pub(crate) fn json_bytes_max(unpacked_bytes_max: Option<u64>) -> u64 {
    unpacked_bytes_max.map_or(JSON_BYTES_MAX, |max| max.max(JSON_BYTES_MAX))
}

/// The name of the labels of a basis: the original replaces `.bin` by `.json`.
pub(crate) fn sidecar_of(basis: &str) -> Option<String> {
    basis
        .strip_suffix(".bin")
        .map(|stem| format!("{stem}.json"))
}

/// The whole name of an entry that a manifest in `folder` names.
pub(crate) fn entry_of(
    container: &dyn Container,
    folder: &str,
    named: &Named,
) -> Result<String, Error> {
    let Named { field, entry } = named;
    let whole = format!("{folder}{entry}");
    let at = container.place(&whole);
    if let Err(reason) = clean_name(entry) {
        return Err(container.place(entry).error(
            Code::UnsafeName,
            format!(
                "the name in the manifest's field {field} {reason}; names have to stay inside the \
                 bundle"
            ),
        ));
    }
    if container.contains(&whole) {
        return Ok(whole);
    }
    Err(at.error(
        Code::MissingEntry,
        format!(
            "the manifest's field {field} names it and it is not in the bundle, whose entries are \
             {}: add it, or take the field out",
            listed(&container.entries())
        ),
    ))
}

/// The first names of a list, for messages.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
