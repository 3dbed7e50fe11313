//! `manifest.json` of a `.splattie` bundle: its fields, its version, the entries that it names.
//!
//! It opens no entry. The document stays whole beside the fields that are read here, so that saving
//! keeps what nobody here knows. Source: FORMAT.md of affromero/splattie-widget, v0.1.0 to v0.3.0.

use super::{AssetType, Code, Error, Place};
use serde_json::Value;

/// Where the manifest is, in the bundle's folder.
pub(crate) const ENTRY: &str = "manifest.json";
/// Largest manifest, and largest document of states or bones, that becomes a tree of values: real
/// ones have some 2 kB, and a value takes up to 40 times the space of its text.
pub(crate) const JSON_BYTES_MAX: u64 = 4 << 20;
/// Minor versions of 0.x that are read without a word.
pub(crate) const MINORS: std::ops::RangeInclusive<u64> = 1..=3;
/// [`MINORS`] for messages.
pub(crate) const VERSIONS: &str = "0.1.x to 0.3.x";

/// An entry that the manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The field that names it, for messages.
    pub(crate) field: &'static str,
    /// Its name, from the manifest's folder.
    pub(crate) entry: String,
}

/// The fields that are read.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// The whole document.
    pub(crate) json: Value,
    pub(crate) version: String,
    pub(crate) asset_type: AssetType,
    pub(crate) splat: Named,
    /// `avatar.splat.numGaussians`.
    pub(crate) rows: Option<u64>,
    pub(crate) skeleton: Option<Named>,
    pub(crate) weights: Option<Named>,
    pub(crate) basis: Option<Named>,
    pub(crate) states: Option<Named>,
    /// What a person should know, one sentence each.
    pub(crate) warnings: Vec<String>,
}

/// A JSON document, with or without a byte order mark.
///
/// # Errors
/// What the parser says; NaN and infinity are no JSON, and nesting ends at 128.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, String> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(text).map_err(|e| format!("is no JSON that can be read: {e}"))
}

/// What a value is, for messages: small ones are shown.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.chars().count() <= 40 => format!("{text:?}"),
        Value::String(text) => format!("a text of {} bytes", text.len()),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(fields) => format!("an object of {} fields", fields.len()),
    }
}

impl Manifest {
    /// Reads the fields of a manifest.
    ///
    /// # Errors
    /// [`Code::NotSplattie`] for a document that is none or a field of the wrong kind,
    /// [`Code::VersionMismatch`] for a version that is not read.
    pub(crate) fn parse(bytes: &[u8], at: &Place) -> Result<Self, Error> {
        let json = json(bytes).map_err(|e| at.error(Code::NotSplattie, e))?;
        Self::of(json, at)
    }

    /// As [`Self::parse`], of a document.
    pub(crate) fn of(json: Value, at: &Place) -> Result<Self, Error> {
        let wrong = |message: String| at.error(Code::NotSplattie, message);
        if json["format"] != "splattie" {
            return Err(wrong(format!(
                "the field format is {} where a .splattie manifest says \"splattie\": this is the \
                 manifest of something else",
                shown(&json["format"])
            )));
        }
        let mut warnings = Vec::new();
        let version = match &json["formatVersion"] {
            Value::String(text) => text.clone(),
            other => {
                return Err(at.error(
                    Code::VersionMismatch,
                    format!(
                        "the field formatVersion is {} where a text such as \"0.3.0\" is expected; \
                         {VERSIONS} are read",
                        shown(other)
                    ),
                ));
            }
        };
        match check_version(&version) {
            Ok(warning) => warnings.extend(warning),
            Err(message) => return Err(at.error(Code::VersionMismatch, message)),
        }
        let asset_type = match text(&json, "assetType").map_err(wrong)? {
            None => AssetType::default(),
            Some(name) => AssetType::of(name).unwrap_or_else(|| {
                warnings.push(format!(
                    "the field assetType is {name:?} where head, body or object is expected: taken \
                     as head"
                ));
                AssetType::default()
            }),
        };
        let named = |field: &'static str| -> Result<Option<Named>, Error> {
            let entry = text(&json, field).map_err(wrong)?;
            Ok(entry.map(|entry| Named {
                field,
                entry: entry.to_owned(),
            }))
        };
        let splat = named("avatar.splat.file")?.ok_or_else(|| {
            wrong(
                "the field avatar.splat.file is missing: it has to name the splat file in the \
                 bundle"
                    .to_owned(),
            )
        })?;
        Ok(Self {
            version,
            asset_type,
            splat,
            rows: json["avatar"]["splat"]["numGaussians"].as_u64(),
            skeleton: named("animation.skeleton.file")?,
            weights: named("animation.weights.file")?,
            basis: named("animation.expression.basis")?,
            states: named("widget.config")?,
            warnings,
            json,
        })
    }
}

/// The text at a path of fields; absent and `null` are `None`.
fn text<'a>(json: &'a Value, path: &str) -> Result<Option<&'a str>, String> {
    let mut value = json;
    let mut walked = String::new();
    for name in path.split('.') {
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => value = fields.get(name).unwrap_or(&Value::Null),
            other => {
                return Err(format!(
                    "the field {walked} is {} where an object is expected",
                    shown(other)
                ));
            }
        }
        if !walked.is_empty() {
            walked.push('.');
        }
        walked.push_str(name);
    }
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(format!(
            "the field {path} is {} where a text is expected",
            shown(other)
        )),
    }
}

/// A warning for a version that is newer than those that are known, or why it is refused.
fn check_version(version: &str) -> Result<Option<String>, String> {
    let mut parts = version.split('.');
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let (Some(major), Some(minor)) = (number(), number()) else {
        return Err(format!(
            "the field formatVersion is {version:?} where a version such as \"0.3.0\" is expected; \
             {VERSIONS} are read"
        ));
    };
    match (major, minor) {
        (0, minor) if MINORS.contains(&minor) => Ok(None),
        (0, minor) if minor > *MINORS.end() => Ok(Some(format!(
            "the field formatVersion is {version:?}, newer than the {VERSIONS} that are known: read \
             all the same, and what is new in it is ignored"
        ))),
        _ => Err(format!(
            "the field formatVersion is {version:?} where {VERSIONS} are read: take a version of \
             this program that reads it, or have the bundle saved as 0.3.0"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_warned_of_or_refused() {
        for version in ["0.1.0", "0.1.1", "0.2.0", "0.3.0", "0.3.1"] {
            assert_eq!(check_version(version), Ok(None), "{version}");
        }
        assert!(check_version("0.4.0").is_ok_and(|w| w.is_some()));
        for version in ["0.0.9", "1.0.0", "2.1", "", "0", "v0.3.0", "0.x"] {
            let message = check_version(version).expect_err(version);
            assert!(message.contains(VERSIONS), "{message}");
            assert!(message.contains(&format!("{version:?}")), "{message}");
        }
    }
}
