//! A `.splattie` bundle in memory, to be edited and saved.
//!
//! Whatever is not edited is saved byte for byte: entries that nobody here knows, weights, basis,
//! the manifest and the states with their unknown fields. A bundle is a [`Container`], so the loader
//! reads it as it would be saved. It decodes no splats; rows are never reordered.

use super::container::{Folder, Zip, clean_name, is_bomb};
use super::splattie::{Bounded, entry_of, json_bytes_max, sidecar_of};
use super::splattie_basis::{Basis, HEADER_BYTES, Numbers};
use super::splattie_manifest::{ENTRY, JSON_BYTES_MAX, Manifest, Named, json};
use super::{AssetType, Code, Container, Error, Format, Place, convert, detect, splattie_states};
use half::f16;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;
use std::str::FromStr;
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, ZipArchive};

/// A version that can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FormatVersion {
    /// 0.1.0: heads, basis in f32.
    V0_1_0,
    /// 0.1.1: the same.
    V0_1_1,
    /// 0.2.0: bodies too, basis in f16.
    V0_2_0,
    /// 0.3.0: objects too.
    #[default]
    V0_3_0,
}

impl FormatVersion {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V0_1_0, Self::V0_1_1, Self::V0_2_0, Self::V0_3_0];

    /// As the manifest spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_1_0 => "0.1.0",
            Self::V0_1_1 => "0.1.1",
            Self::V0_2_0 => "0.2.0",
            Self::V0_3_0 => "0.3.0",
        }
    }

    const fn numbers(self) -> Numbers {
        match self {
            Self::V0_1_0 | Self::V0_1_1 => Numbers::Float,
            Self::V0_2_0 | Self::V0_3_0 => Numbers::Half,
        }
    }

    /// Whether players of this version know the type.
    const fn knows(self, asset_type: AssetType) -> bool {
        match asset_type {
            AssetType::Head => true,
            AssetType::Body => matches!(self, Self::V0_2_0 | Self::V0_3_0),
            AssetType::Object => matches!(self, Self::V0_3_0),
        }
    }
}

impl FromStr for FormatVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| {
                format!("{text:?} cannot be written: expected 0.1.0, 0.1.1, 0.2.0 or 0.3.0")
            })
    }
}

/// An opened bundle.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The file or folder as the user named it.
    name: String,
    manifest: Manifest,
    states: Option<Value>,
    /// Every entry, the manifest among them, as it will be saved.
    entries: BTreeMap<String, Vec<u8>>,
}

impl Bundle {
    /// Opens the bundle that a zip or folder holds. Limits are those of the loader, or
    /// `unpacked_bytes_max`.
    ///
    /// # Errors
    /// [`Code::NoManifest`] where there is none, [`Code::NotSplattie`], [`Code::VersionMismatch`],
    /// [`Code::MissingEntry`], [`Code::BadStates`], [`Code::TooLarge`], and those of reading. Bones,
    /// weights and basis are not looked at: loading is what checks them.
    pub fn open(container: &dyn Container, unpacked_bytes_max: Option<u64>) -> Result<Self, Error> {
        let found = detect::find(container)?;
        if found.format != Format::Splattie {
            return Err(Place::file(container.name()).error(
                Code::NoManifest,
                format!("is {} and no .splattie bundle", found.format.as_str()),
            ));
        }
        let source = Bounded::new(container, unpacked_bytes_max);
        let folder = found.entry.strip_suffix(ENTRY).unwrap_or_default();
        let mut entries = BTreeMap::new();
        for whole in source.entries() {
            let Some(entry) = whole.strip_prefix(folder) else {
                continue;
            };
            let bytes = source.read(&whole, u64::MAX)?.into_owned();
            entries.insert(entry.to_owned(), bytes);
        }
        let at = container.place(&found.entry);
        let bytes = entries.get(ENTRY).map(Vec::as_slice).unwrap_or_default();
        let json_max = json_bytes_max(unpacked_bytes_max);
        let check_size = |bytes: &[u8], at: &Place| {
            if bytes.len() as u64 > json_max {
                return Err(at.too_large(format!(
                    "holds {} bytes where at most {json_max} are read",
                    bytes.len()
                )));
            }
            Ok(())
        };
        check_size(bytes, &at)?;
        let manifest = Manifest::parse(bytes, &at)?;
        let states = match manifest.states.as_ref() {
            Some(named) => match entries.get(&named.entry) {
                Some(bytes) => {
                    let at = container.place(&format!("{folder}{}", named.entry));
                    check_size(bytes, &at)?;
                    Some(splattie_states::read(bytes, &at)?)
                }
                None => None,
            },
            None => None,
        };
        let bundle = Self {
            name: container.name().to_owned(),
            manifest,
            states,
            entries,
        };
        for named in bundle.named() {
            if named.field != "widget.config" {
                entry_of(&bundle, "", named)?;
            }
        }
        Ok(bundle)
    }

    /// Opens the bundle at `path`, a `.splattie` or a folder.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_path(path: &Path, unpacked_bytes_max: Option<u64>) -> Result<Self, Error> {
        let name = path.display().to_string();
        if path.is_dir() {
            return Self::open(&Folder::new(path, name), unpacked_bytes_max);
        }
        let at = Place::file(name.clone());
        let bytes_max = unpacked_bytes_max.unwrap_or(super::ENTRY_BYTES_MAX);
        let bytes = super::container::read_file(path, bytes_max, &at, &|_| ())?;
        Self::open(
            &Zip::with_limit(bytes, name, unpacked_bytes_max)?,
            unpacked_bytes_max,
        )
    }

    /// A bundle of this manifest alone; entries are added by [`Self::set_entry`]. `name` is what
    /// messages call it.
    ///
    /// # Errors
    /// [`Code::NotSplattie`], [`Code::VersionMismatch`].
    pub fn new(name: impl Into<String>, manifest: Value) -> Result<Self, Error> {
        let name = name.into();
        let at = Place::file(name.clone()).entry(ENTRY);
        let entries = BTreeMap::from([(ENTRY.to_owned(), pretty(&manifest))]);
        Ok(Self {
            name,
            manifest: Manifest::of(manifest, &at)?,
            states: None,
            entries,
        })
    }

    /// `manifest.json`, whole.
    #[must_use]
    pub fn manifest(&self) -> &Value {
        &self.manifest.json
    }

    /// Replaces the manifest.
    ///
    /// # Errors
    /// [`Code::NotSplattie`], [`Code::VersionMismatch`]; the bundle is as it was then.
    pub fn set_manifest(&mut self, manifest: Value) -> Result<(), Error> {
        if manifest == self.manifest.json {
            return Ok(());
        }
        let parsed = Manifest::of(manifest, &self.place(ENTRY))?;
        self.entries.insert(ENTRY.to_owned(), pretty(&parsed.json));
        self.manifest = parsed;
        Ok(())
    }

    /// `states.json`, whole; `None` where there is none.
    #[must_use]
    pub fn states(&self) -> Option<&Value> {
        self.states.as_ref()
    }

    /// Replaces the states, under the name in the manifest, which gets one if it has none.
    ///
    /// # Errors
    /// [`Code::BadStates`] names the field; the bundle is as it was then.
    pub fn set_states(&mut self, states: Value) -> Result<(), Error> {
        if self.states.as_ref() == Some(&states) {
            return Ok(());
        }
        let text = pretty(&states);
        self.put_states(states, text)
    }

    /// As [`Self::set_states`], of a file, whose bytes are kept.
    ///
    /// # Errors
    /// As [`Self::set_states`]; [`Code::TooLarge`].
    pub fn set_states_file(&mut self, bytes: Vec<u8>) -> Result<(), Error> {
        let at = Place::file(self.name.clone());
        if bytes.len() as u64 > JSON_BYTES_MAX {
            return Err(at.too_large(format!(
                "holds {} bytes where at most {JSON_BYTES_MAX} are read as states",
                bytes.len()
            )));
        }
        let states = json(&bytes).map_err(|e| at.error(Code::BadStates, e))?;
        self.put_states(states, bytes)
    }

    fn put_states(&mut self, states: Value, text: Vec<u8>) -> Result<(), Error> {
        const NAME: &str = "states.json";
        let named = self.manifest.states.as_ref();
        let entry = named.map_or(NAME, |named| &named.entry).to_owned();
        splattie_states::check(&states)
            .map_err(|message| self.place(&entry).error(Code::BadStates, message))?;
        self.check_name(&entry)?;
        if self.manifest.states.is_none() {
            let mut manifest = self.manifest.json.clone();
            set_field(&mut manifest, "widget", "config", NAME.into());
            self.set_manifest(manifest)?;
        }
        self.entries.insert(entry, text);
        self.states = Some(states);
        Ok(())
    }

    /// What the avatar is.
    #[must_use]
    pub fn asset_type(&self) -> AssetType {
        self.manifest.asset_type
    }

    /// The version, as the manifest spells it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.manifest.version
    }

    /// The bytes of an entry, as they will be saved.
    #[must_use]
    pub fn entry(&self, entry: &str) -> Option<&[u8]> {
        self.entries.get(entry).map(Vec::as_slice)
    }

    /// Adds or replaces an entry; the manifest and the states have functions of their own.
    ///
    /// # Errors
    /// [`Code::UnsafeName`] for a name that leads outside, and for that of the manifest or states.
    pub fn set_entry(&mut self, entry: &str, bytes: Vec<u8>) -> Result<(), Error> {
        self.check_name(entry)?;
        let is_own = entry == ENTRY
            || self
                .manifest
                .states
                .as_ref()
                .is_some_and(|states| states.entry == entry);
        if is_own {
            return Err(self.place(entry).error(
                Code::UnsafeName,
                "is the bundle's own manifest or states, which are set as documents",
            ));
        }
        self.entries.insert(entry.to_owned(), bytes);
        Ok(())
    }

    /// Takes an entry out that the manifest does not name (any more). True if it was there.
    pub fn remove_entry(&mut self, entry: &str) -> bool {
        let is_named = entry == ENTRY || self.named().any(|named| named.entry == entry);
        !is_named && self.entries.remove(entry).is_some()
    }

    /// Makes it a bundle of another version: the basis becomes f32 for 0.1 and f16 from 0.2 on.
    /// Returns what is lost by that, one sentence each.
    ///
    /// # Errors
    /// [`Code::BadBasis`] for a basis that is none or does not fit f16; the bundle is as it was then.
    pub fn set_version(&mut self, version: FormatVersion) -> Result<Vec<String>, Error> {
        let mut lost = Vec::new();
        if let Some((entry, bytes)) = self.transcoded(version.numbers(), &mut lost)? {
            self.set_basis(&entry, bytes, version.numbers());
        }
        let asset_type = self.asset_type();
        if !version.knows(asset_type) {
            lost.push(format!(
                "players of version {} do not know the type {} and take it for a head",
                version.as_str(),
                asset_type.as_str()
            ));
        }
        if version.numbers() == Numbers::Float {
            lost.extend(self.unknown_to_first_players());
        }
        let mut manifest = self.manifest.json.clone();
        manifest["formatVersion"] = version.as_str().into();
        self.set_manifest(manifest)?;
        Ok(lost)
    }

    /// What players of 0.1 cannot read: it came with 0.2 and 0.3. The files stay as they are.
    fn unknown_to_first_players(&self) -> Vec<String> {
        let m = &self.manifest;
        let bytes = |named: &Named| self.entries.get(&named.entry).map(Vec::as_slice);
        let starts = |named: &Option<Named>, with: u8| {
            let bytes = named.as_ref().and_then(bytes).unwrap_or_default();
            bytes.trim_ascii_start().first() == Some(&with)
        };
        let skeleton = m
            .skeleton
            .as_ref()
            .and_then(bytes)
            .and_then(|b| json(b).ok());
        let splats = bytes(&m.splat).and_then(|b| detect::sniff(b, &m.splat.entry));
        [
            (
                splats != Some(detect::Sniffed::File(Format::Ply)),
                "splat files other than a plain PLY",
            ),
            (
                skeleton.is_some_and(|s| s.get("bones").is_none()),
                "bones that are no tree as in bone_tree.json",
            ),
            (
                m.weights.is_some() && !starts(&m.weights, b'['),
                "weights that are no list of rows",
            ),
        ]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, what)| format!("players of version 0.1 do not read {what}"))
        .collect()
    }

    /// The basis in these numbers, where it has others.
    fn transcoded(
        &self,
        numbers: Numbers,
        lost: &mut Vec<String>,
    ) -> Result<Option<(String, Vec<u8>)>, Error> {
        let Some(entry) = self.manifest.basis.as_ref().map(|named| &named.entry) else {
            return Ok(None);
        };
        let Some(bytes) = self.entries.get(entry) else {
            return Ok(None);
        };
        let at = self.place(entry);
        let basis = Basis::parse(bytes, &at)?;
        if basis.numbers == numbers {
            return Ok(None);
        }
        let (out, largest_m) =
            transcode(bytes, numbers).map_err(|message| at.error(Code::BadBasis, message))?;
        if largest_m > 0.0 {
            lost.push(format!(
                "the basis is rounded from f32 to f16, by at most {largest_m:.1e} m"
            ));
        }
        Ok(Some((entry.clone(), out)))
    }

    /// Puts in a transcoded basis; the labels beside it say how it is encoded, where they did.
    fn set_basis(&mut self, entry: &str, bytes: Vec<u8>, numbers: Numbers) {
        let length = bytes.len();
        self.entries.insert(entry.to_owned(), bytes);
        let Some(sidecar) = sidecar_of(entry) else {
            return;
        };
        let Some(Ok(mut labels)) = self.entries.get(&sidecar).map(|bytes| json(bytes)) else {
            return;
        };
        let encoding = match numbers {
            Numbers::Float => "float32_le, shape (num_vertices, num_expressions, 3)",
            Numbers::Half => "float16_le, shape (num_vertices, num_expressions, 3)",
        };
        let mut is_changed = false;
        for (field, value) in [("format", encoding.into()), ("bytes", length.into())] {
            if let Some(known) = labels.get_mut(field) {
                *known = value;
                is_changed = true;
            }
        }
        if is_changed {
            self.entries.insert(sidecar, pretty(&labels));
        }
    }

    /// Writes the zip, the manifest first. The same bundle gives the same bytes.
    ///
    /// # Errors
    /// [`Code::Io`].
    pub fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let at = Place::file(self.name.clone());
        let zipped = self
            .zipped()
            .map_err(|e| at.error(Code::Io, format!("zipping failed: {e}")))?;
        out.write_all(&zipped).map_err(|e| at.io("writing", &e))
    }

    fn zipped(&self) -> std::io::Result<Vec<u8>> {
        let bytes = self.zipped_except(&[])?;
        // What shrinks too well (a basis of zeros) would be refused as a bomb when it is read.
        let mut archive = ZipArchive::new(Cursor::new(bytes.as_slice()))?;
        let mut stored = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index)?;
            if is_bomb(entry.size(), entry.compressed_size()) {
                stored.push(entry.name()?.into_owned());
            }
        }
        if stored.is_empty() {
            return Ok(bytes);
        }
        self.zipped_except(&stored)
    }

    /// The zip, with these entries as they are.
    fn zipped_except(&self, stored: &[String]) -> std::io::Result<Vec<u8>> {
        let options = SimpleFileOptions::default();
        let mut zip = ZipWriter::new(Cursor::new(Vec::new())).set_auto_large_file();
        let manifest = self.entries.get_key_value(ENTRY);
        let others = self.entries.iter().filter(|(name, _)| *name != ENTRY);
        for (name, bytes) in manifest.into_iter().chain(others) {
            let method = if stored.contains(name) {
                CompressionMethod::Stored
            } else {
                CompressionMethod::Deflated
            };
            zip.start_file(name, options.compression_method(method))?;
            zip.write_all(bytes)?;
        }
        Ok(zip.finish()?.into_inner())
    }

    /// Saves the bundle: `path` is the old file until the new one is whole.
    ///
    /// # Errors
    /// [`Code::Io`], [`Code::NotFound`]; `path` is as it was then.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let at = Place::file(path.display().to_string());
        convert::replace(path, &at, |out| self.write(out))
    }

    /// Entries that the manifest names.
    fn named(&self) -> impl Iterator<Item = &Named> {
        let m = &self.manifest;
        [&m.skeleton, &m.weights, &m.basis, &m.states]
            .into_iter()
            .flatten()
            .chain([&m.splat])
    }

    fn check_name(&self, entry: &str) -> Result<(), Error> {
        match clean_name(entry) {
            Ok(clean) if clean == entry => Ok(()),
            Ok(clean) => Err(self.place(entry).error(
                Code::UnsafeName,
                format!("is no plain name; it should be {clean}"),
            )),
            Err(reason) => Err(self.place(entry).error(
                Code::UnsafeName,
                format!("the name {reason}; names have to stay inside the bundle"),
            )),
        }
    }
}

impl Container for Bundle {
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
        let at = self.place(entry);
        let bytes = clean_name(entry)
            .ok()
            .and_then(|entry| self.entries.get(&entry))
            .ok_or_else(|| at.error(Code::NotFound, "is named but not there"))?;
        if bytes.len() as u64 > bytes_max {
            return Err(at.too_large(format!(
                "holds {} bytes where at most {bytes_max} are read",
                bytes.len()
            )));
        }
        Ok(Cow::Borrowed(bytes))
    }
}

/// Sets a field of an object in a document; what is no object there becomes one.
pub(crate) fn set_field(document: &mut Value, object: &str, field: &str, value: Value) {
    if !document[object].is_object() {
        document[object] = Value::Object(serde_json::Map::new());
    }
    document[object][field] = value;
}

/// A document as it is saved.
fn pretty(document: &Value) -> Vec<u8> {
    let mut text = format!("{document:#}").into_bytes();
    text.push(b'\n');
    text
}

/// A basis (whole, checked by [`Basis::parse`]) in other numbers, and by how much the nearest of
/// them are off at most, metres.
fn transcode(bytes: &[u8], numbers: Numbers) -> Result<(Vec<u8>, f64), String> {
    let (header, payload) = bytes.split_at(HEADER_BYTES);
    let mut out = Vec::with_capacity(HEADER_BYTES + payload.len() * 2);
    out.extend_from_slice(numbers.magic());
    out.extend_from_slice(&header[4..]);
    let mut largest_m = 0.0_f64;
    match numbers {
        // Every f16 is an f32.
        Numbers::Float => out.extend(
            payload
                .as_chunks::<2>()
                .0
                .iter()
                .flat_map(|b| f16::from_le_bytes(*b).to_f32().to_le_bytes()),
        ),
        Numbers::Half => {
            for (index, value) in payload.as_chunks::<4>().0.iter().enumerate() {
                let exact = f32::from_le_bytes(*value);
                let half = f16::from_f32(exact);
                if !half.is_finite() {
                    return Err(format!(
                        "the number {index} of the basis is {exact} m, which has no nearest f16; at \
                         most {} fits: use --format-version 0.1.1, or mend the basis",
                        f16::MAX
                    ));
                }
                largest_m = largest_m.max((half.to_f64() - f64::from(exact)).abs());
                out.extend_from_slice(&half.to_le_bytes());
            }
        }
    }
    Ok((out, largest_m))
}
