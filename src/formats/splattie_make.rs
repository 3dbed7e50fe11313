//! Makes a `.splattie` bundle out of single files, a folder that an exporter wrote, or a bundle.
//!
//! Files are told apart by content, names only where that says nothing. The splat file's bytes are
//! kept as they are, so row i of weights and basis stays the row of splat i. The whole is read as
//! the loader will read it before anything is written. No clock is asked: the caller says when.

use super::container::{is_system_litter, read_file};
use super::detect::{Sniffed, sniff};
use super::splattie::sidecar_of;
use super::splattie::{Bundle, FormatVersion};
use super::splattie_basis::{self, FLAME_SPLATS, Numbers};
use super::splattie_bundle::set_field;
use super::splattie_manifest::{ENTRY, json};
use super::splattie_weights::MAGIC as WEIGHTS_MAGIC;
use super::{
    AssetType, Code, Container, Error, Format, LoadOptions, Place, Progress, load, splattie,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};

/// What a caller may ask of [`bundle`].
#[derive(Debug, Clone, Default)]
pub struct BundleOptions {
    /// What the avatar is; `None` keeps what a bundle says, else follows the skeleton's rig.
    pub asset_type: Option<AssetType>,
    /// Version to write; `None` keeps that of a bundle, else takes the newest.
    pub version: Option<FormatVersion>,
    /// `metadata.license`.
    pub license: Option<String>,
    /// `metadata.attribution`.
    pub attribution: Option<String>,
    /// `metadata.author`.
    pub author: Option<String>,
    /// The present, as `2026-01-31T12:00:00Z`, for the fields that say when; `None` leaves them out.
    pub now: Option<String>,
    /// As [`LoadOptions::unpacked_bytes_max`].
    pub unpacked_bytes_max: Option<u64>,
}

impl BundleOptions {
    fn load(&self) -> LoadOptions {
        LoadOptions {
            unpacked_bytes_max: self.unpacked_bytes_max,
            ..LoadOptions::default()
        }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundled {
    /// Splats.
    pub count: usize,
    /// Version of the bundle.
    pub version: String,
    /// What it is.
    pub asset_type: AssetType,
    /// Bones.
    pub bones: usize,
    /// Rows of weights.
    pub weights: usize,
    /// Blendshapes.
    pub shapes: usize,
    /// Entries and their bytes, unpacked.
    pub entries: Vec<(String, u64)>,
    /// What was seen, one sentence each.
    pub warnings: Vec<String>,
    /// What the output does not hold any more, one sentence each.
    pub lost: Vec<String>,
}

/// What a file is in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Splats,
    Skeleton,
    Weights,
    Basis,
    Labels,
    States,
    /// Kept as it is.
    Licence,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Splats => "splat file",
            Self::Skeleton => "skeleton",
            Self::Weights => "file of weights",
            Self::Basis => "expression basis",
            Self::Labels => "file of labels",
            Self::States => "file of states",
            Self::Licence => "licence",
        })
    }
}

/// One file that goes in.
struct Part {
    role: Role,
    path: PathBuf,
    name: String,
    bytes: Vec<u8>,
}

/// What [`collect`] found in the inputs.
#[derive(Default)]
struct Inputs {
    base: Option<Bundle>,
    parts: Vec<Part>,
    warnings: Vec<String>,
}

/// Makes the bundle `output` of `inputs`: splat file, skeleton, weights, basis with labels, states,
/// folders of such, or a bundle, whose parts the single files then replace.
///
/// # Errors
/// Those of reading and of the loader; [`Code::UnknownFormat`] for a file that has no place in a
/// bundle; [`Code::Malformed`] for two files of one kind or none of splats; [`Code::NotWritable`]
/// for an output that is not called `.splattie`; [`Code::Io`]. On any error `output` is as it was.
pub fn bundle(
    inputs: &[PathBuf],
    output: &Path,
    options: &BundleOptions,
    progress: Progress<'_>,
) -> Result<Bundled, Error> {
    // Shares of the progress: reading the files, then decoding them as a check.
    const READING: f32 = 0.3;
    const CHECKED: f32 = 0.8;
    let at = Place::file(output.display().to_string());
    if !at.file.to_ascii_lowercase().ends_with(".splattie") {
        return Err(at.error(
            Code::NotWritable,
            "cannot be written: the name of a bundle must end in .splattie",
        ));
    }
    let Inputs {
        base,
        parts,
        mut warnings,
    } = collect(inputs, options)?;
    progress(READING);
    let is_new = base.is_none();
    let is_edited = !parts.is_empty();
    let has_new_basis = parts.iter().any(|part| part.role == Role::Basis);
    let mut bundle = match base {
        Some(base) => base,
        None => Bundle::new(at.file.clone(), first_manifest(&parts, options, &at)?)?,
    };
    let former = bundle.manifest().clone();
    put_in(&mut bundle, parts)?;
    let mut lost = Vec::new();
    describe(&mut bundle, is_new, options)?;
    let version = match options.version {
        Some(version) => Some(version),
        None if is_new => Some(FormatVersion::default()),
        // A basis of the other encoding would not be read by players of this version.
        None if has_new_basis => bundle.version().parse().ok(),
        None => None,
    };
    if let Some(version) = version {
        lost = bundle.set_version(version)?;
    }
    if !is_new && (is_edited || *bundle.manifest() != former) {
        let mut manifest = bundle.manifest().clone();
        if let Some(now) = &options.now {
            set_field(
                &mut manifest,
                "metadata",
                "lastEditedAt",
                now.as_str().into(),
            );
        }
        set_field(&mut manifest, "metadata", "editedBy", TOOL.into());
        bundle.set_manifest(manifest)?;
    }
    let (_, file) = load::read_in(&bundle, None, &options.load(), &|share| {
        progress(READING + (CHECKED - READING) * share);
    })?;
    warnings.extend(file.warnings);
    bundle.save(output)?;
    progress(1.0);
    let body = file.avatar.map(|avatar| avatar.body.clone());
    let body = body.unwrap_or_default();
    Ok(Bundled {
        count: file.splats.len(),
        version: bundle.version().to_owned(),
        asset_type: bundle.asset_type(),
        bones: body.bones.len(),
        weights: body.skin.as_ref().map_or(0, |skin| skin.len()),
        shapes: body.shapes.names.len(),
        entries: bundle
            .entries()
            .into_iter()
            .map(|name| {
                let bytes = bundle.entry(&name).map_or(0, <[u8]>::len);
                (name, bytes as u64)
            })
            .collect(),
        warnings,
        lost,
    })
}

/// Reads all inputs and says what each file is.
fn collect(inputs: &[PathBuf], options: &BundleOptions) -> Result<Inputs, Error> {
    let bytes_max = options
        .unpacked_bytes_max
        .unwrap_or(splattie::ENTRY_BYTES_MAX);
    let mut found = Inputs::default();
    for input in inputs {
        let at = Place::file(input.display().to_string());
        if input.is_dir() && !input.join(ENTRY).is_file() {
            let mut skipped = Vec::new();
            for path in files_of(input, &at)? {
                let at = Place::file(path.display().to_string());
                let bytes = read_file(&path, bytes_max, &at, &|_| ())?;
                match role_of(&path, &bytes) {
                    Some(role) => found.add(role, path, bytes)?,
                    None => skipped.push(name_of(&path)),
                }
            }
            if !skipped.is_empty() {
                found.warnings.push(format!(
                    "{}: left out, since nothing in a bundle is like that: {}",
                    at.file,
                    skipped.join(", ")
                ));
            }
            continue;
        }
        let is_bundle = input.is_dir() || {
            let bytes = read_file(input, bytes_max, &at, &|_| ())?;
            match role_of(input, &bytes) {
                Some(role) => {
                    found.add(role, input.clone(), bytes)?;
                    false
                }
                None if bytes.starts_with(b"PK") => true,
                None => {
                    return Err(at.error(
                        Code::UnknownFormat,
                        "is nothing that goes into a bundle: expected a splat file (PLY, \
                         compressed PLY, SPZ; convert others first), bone_tree.json or \
                         skeleton.json, weights (JSON or LBSW), expression_basis.bin with its \
                         .json, states.json, a licence, or a .splattie",
                    ));
                }
            }
        };
        if is_bundle {
            if let Some(first) = &found.base {
                return Err(at.malformed(format!(
                    "is a second bundle where {} is one already: name one",
                    first.name()
                )));
            }
            found.base = Some(Bundle::open_path(input, options.unpacked_bytes_max)?);
        }
    }
    Ok(found)
}

impl Inputs {
    fn add(&mut self, role: Role, path: PathBuf, bytes: Vec<u8>) -> Result<(), Error> {
        let at = Place::file(path.display().to_string());
        let name = name_of(&path);
        if let Some(other) = self
            .parts
            .iter()
            .find(|part| part.name == name || (part.role == role && role != Role::Licence))
        {
            let (what, other) = (other.role, other.path.display());
            return Err(at.malformed(format!(
                "is a second {role} where {other} is the {what} already: name one of each, with \
                 names of their own"
            )));
        }
        self.parts.push(Part {
            role,
            path,
            name,
            bytes,
        });
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The files in a folder, by name; what lies in folders inside is not looked at.
fn files_of(folder: &Path, at: &Place) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(|e| at.io("listing the folder", &e))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && !is_system_litter(&name_of(path)))
        .collect();
    paths.sort();
    Ok(paths)
}

/// The fields by which documents are told apart; values are skipped, not kept.
#[derive(Deserialize)]
struct Keys {
    bones: Option<IgnoredAny>,
    names: Option<IgnoredAny>,
    parents: Option<IgnoredAny>,
    indices: Option<IgnoredAny>,
    weights: Option<IgnoredAny>,
    labels: Option<IgnoredAny>,
    num_expressions: Option<IgnoredAny>,
    defaults: Option<IgnoredAny>,
    states: Option<IgnoredAny>,
    transitions: Option<IgnoredAny>,
}

fn role_of(path: &Path, bytes: &[u8]) -> Option<Role> {
    let name = name_of(path).to_ascii_lowercase();
    let magic = |magic: &[u8]| bytes.starts_with(magic);
    if magic(Numbers::Float.magic()) || magic(Numbers::Half.magic()) {
        return Some(Role::Basis);
    }
    if magic(WEIGHTS_MAGIC) {
        return Some(Role::Weights);
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match text.trim_ascii_start().first() {
        Some(b'[') => return Some(Role::Weights),
        Some(b'{') => {
            let Ok(keys) = serde_json::from_slice::<Keys>(text) else {
                return by_name(&name);
            };
            return if keys.bones.is_some() || (keys.names.is_some() && keys.parents.is_some()) {
                Some(Role::Skeleton)
            } else if keys.weights.is_some() && keys.indices.is_some() {
                Some(Role::Weights)
            } else if keys.labels.is_some() || keys.num_expressions.is_some() {
                Some(Role::Labels)
            } else if keys.states.is_some() || keys.defaults.is_some() || keys.transitions.is_some()
            {
                Some(Role::States)
            } else {
                by_name(&name)
            };
        }
        _ => {}
    }
    match sniff(bytes, &name) {
        Some(Sniffed::File(Format::Ply | Format::CompressedPly | Format::Spz)) => {
            return Some(Role::Splats);
        }
        Some(_) => return None,
        None => {}
    }
    by_name(&name)
}

/// For documents that say nothing of themselves, and broken ones: their reader says what is wrong.
fn by_name(name: &str) -> Option<Role> {
    let stem = name.split('.').next().unwrap_or(name);
    match name {
        "states.json" => Some(Role::States),
        "bone_tree.json" | "skeleton.json" => Some(Role::Skeleton),
        "expression_basis.bin" => Some(Role::Basis),
        "expression_basis.json" => Some(Role::Labels),
        _ if name.starts_with("lbs_weight") => Some(Role::Weights),
        _ if ["license", "licence", "notice", "attribution"].contains(&stem) => Some(Role::Licence),
        _ => None,
    }
}

/// What `generator.tool` and `metadata.editedBy` say.
const TOOL: &str = concat!("splatstage ", env!("CARGO_PKG_VERSION"));

/// The manifest of a new bundle, as far as it is known before its parts are in.
fn first_manifest(parts: &[Part], options: &BundleOptions, at: &Place) -> Result<Value, Error> {
    let splats = parts.iter().find(|part| part.role == Role::Splats);
    let splats = splats.ok_or_else(|| {
        at.malformed(
            "there is no splat file among the inputs, and a bundle needs one: name a PLY, a \
             compressed PLY, an SPZ or a .splattie",
        )
    })?;
    let mut generator = json!({ "method": "bundle", "tool": TOOL });
    if let Some(now) = &options.now {
        generator["createdAt"] = now.as_str().into();
    }
    Ok(json!({
        "format": "splattie",
        "formatVersion": FormatVersion::default().as_str(),
        "assetType": AssetType::default().as_str(),
        "generator": generator,
        "avatar": { "splat": { "file": splats.name } },
        // Always there, with the states: the web player stops at a manifest without them.
        "animation": { "type": "lbs", "expression": null },
        "widget": { "config": "states.json" },
    }))
}

/// Puts the files in, each in the place of what the manifest named before.
fn put_in(bundle: &mut Bundle, mut parts: Vec<Part>) -> Result<(), Error> {
    // The basis before its labels, which follow its name.
    parts.sort_by_key(|part| part.role == Role::Labels);
    for part in parts {
        let Part {
            role,
            path,
            name,
            bytes,
        } = part;
        let at = Place::file(path.display().to_string());
        let mut manifest = bundle.manifest().clone();
        let former = match role {
            Role::Splats => manifest["avatar"]["splat"]["file"].clone(),
            Role::Skeleton => manifest["animation"]["skeleton"]["file"].clone(),
            Role::Weights => manifest["animation"]["weights"]["file"].clone(),
            Role::Basis => manifest["animation"]["expression"]["basis"].clone(),
            Role::States => {
                bundle.set_states_file(bytes).map_err(|e| Error {
                    file: at.file.clone(),
                    entry: None,
                    ..e
                })?;
                continue;
            }
            Role::Labels => {
                let basis = manifest["animation"]["expression"]["basis"].as_str();
                let sidecar = basis.and_then(sidecar_of).ok_or_else(|| {
                    at.malformed("holds labels of an expression basis, and there is no basis")
                })?;
                bundle.set_entry(&sidecar, bytes)?;
                continue;
            }
            Role::Licence => {
                bundle.set_entry(&name, bytes)?;
                continue;
            }
        };
        let former = former.as_str().unwrap_or_default().to_owned();
        // Labels are found by the ending.
        let name = match role {
            Role::Basis if sidecar_of(&name).is_none() => format!("{name}.bin"),
            _ => name,
        };
        if name != former && bundle.contains(&name) {
            return Err(at.malformed(format!(
                "is called {name}, as another entry of the bundle is: give it a name of its own"
            )));
        }
        name_part(&mut manifest, role, &name, &bytes);
        bundle.set_entry(&name, bytes)?;
        bundle.set_manifest(manifest)?;
        if former != name {
            bundle.remove_entry(&former);
        }
        if let (Role::Basis, Some(labels)) = (role, sidecar_of(&former)) {
            // They belonged to the other basis.
            bundle.remove_entry(&labels);
        }
    }
    Ok(())
}

/// Names a file in the manifest.
fn name_part(manifest: &mut Value, role: Role, name: &str, bytes: &[u8]) {
    let animation = |manifest: &mut Value, field: &str, value: Value| {
        set_field(manifest, "animation", field, value);
    };
    match role {
        Role::Splats => {
            let is_spz = matches!(sniff(bytes, name), Some(Sniffed::File(Format::Spz)));
            set_field(manifest, "avatar", "splat", {
                let mut splat = manifest["avatar"]["splat"].clone();
                splat["file"] = name.into();
                splat["format"] = if is_spz { "spz" } else { "ply" }.into();
                splat
            });
        }
        Role::Skeleton => animation(
            manifest,
            "skeleton",
            json!({ "file": name, "rig": rig_of(bytes) }),
        ),
        Role::Weights if bytes.starts_with(WEIGHTS_MAGIC) => animation(
            manifest,
            "weights",
            json!({ "file": name, "format": "lbsw-v1" }),
        ),
        Role::Weights => animation(manifest, "weights", json!({ "file": name })),
        // What system it is shows once its labels are there.
        Role::Basis => animation(manifest, "expression", json!({ "basis": name })),
        Role::Labels | Role::States | Role::Licence => {}
    }
}

/// The word for a skeleton's kind: its own, or that of the five bones of a head.
fn rig_of(bytes: &[u8]) -> String {
    let document = json(bytes).unwrap_or_default();
    match (document["rig"].as_str(), document.get("bones")) {
        (Some(rig), _) => rig.to_owned(),
        (None, Some(_)) => "flame".to_owned(),
        (None, None) => "custom".to_owned(),
    }
}

/// Fills in what the manifest says of the whole.
fn describe(bundle: &mut Bundle, is_new: bool, options: &BundleOptions) -> Result<(), Error> {
    let mut manifest = bundle.manifest().clone();
    let splat = manifest["avatar"]["splat"]["file"]
        .as_str()
        .unwrap_or_default();
    let rows = {
        let (_, file) = load::read_in(bundle, Some(splat), &options.load(), &|_| ())?;
        file.splats.len()
    };
    let mut splat = manifest["avatar"]["splat"].clone();
    splat["numGaussians"] = rows.into();
    if is_new {
        let topology = if rows == FLAME_SPLATS {
            "flame-20k"
        } else {
            "custom"
        };
        splat["topology"] = topology.into();
    }
    set_field(&mut manifest, "avatar", "splat", splat);
    let expression = &manifest["animation"]["expression"];
    if let (Some(basis), Value::Null) = (expression["basis"].as_str(), &expression["system"]) {
        let labels = sidecar_of(basis).and_then(|name| bundle.entry(&name));
        let labels = labels.and_then(|bytes| json(bytes).ok());
        let names: Vec<String> = labels
            .as_ref()
            .and_then(|document| document["labels"].as_array())
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let is_named = !names.is_empty() && splattie_basis::are_semantic(&names);
        let system = if is_named { "arkit" } else { "flame-pca" };
        let whole = json!({ "system": system, "basis": basis });
        set_field(&mut manifest, "animation", "expression", whole);
    }
    if is_new {
        let animation = &manifest["animation"];
        let is_rigged = !animation["skeleton"].is_null();
        let has_basis = animation["expression"].is_object();
        let kind = if has_basis && !is_rigged {
            "blendshape"
        } else {
            "lbs"
        };
        set_field(&mut manifest, "animation", "type", kind.into());
    }
    let by_rig = match manifest["animation"]["skeleton"]["rig"].as_str() {
        Some("smplx") => AssetType::Body,
        Some("puppeteer-object") => AssetType::Object,
        _ => AssetType::Head,
    };
    if let Some(asset_type) = options.asset_type.or(is_new.then_some(by_rig)) {
        manifest["assetType"] = asset_type.as_str().into();
    }
    for (field, value) in [
        ("license", &options.license),
        ("attribution", &options.attribution),
        ("author", &options.author),
    ] {
        if let Some(value) = value {
            set_field(&mut manifest, "metadata", field, value.as_str().into());
        }
    }
    bundle.set_manifest(manifest)?;
    if is_new && bundle.states().is_none() {
        // The built-in states, by an entry that web players find.
        bundle.set_states(json!({}))?;
    }
    Ok(())
}
