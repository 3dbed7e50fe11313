//! PLY headers and elements of any kind: what float and compressed splat PLY have in common.
//!
//! Source: Greg Turk, "The PLY Polygon File Format" (1994), and what exporters write. It knows
//! nothing about splats. Every element is sized by its own properties, so elements around the
//! wanted one (camera data of ml-sharp, faces of a mesh) are stepped over, lists included.

use super::{Error, Place};

/// Longest header that is searched for `end_header`; real ones stay below 10 kB.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// Elements of one file; real ones have up to eight.
const ELEMENTS_MAX: usize = 1000;
/// Properties of one element; a degree 4 splat with normals has 91.
const PROPERTIES_MAX: usize = 4096;

/// Type of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
}

impl Scalar {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "char" | "int8" => Self::I8,
            "uchar" | "uint8" => Self::U8,
            "short" | "int16" => Self::I16,
            "ushort" | "uint16" => Self::U16,
            "int" | "int32" => Self::I32,
            "uint" | "uint32" => Self::U32,
            "float" | "float32" => Self::F32,
            "double" | "float64" => Self::F64,
            _ => return None,
        })
    }

    /// Bytes in a binary file.
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The value at the start of `bytes`; NaN when there are too few, which callers rule out.
    #[inline]
    pub(super) fn value(self, bytes: &[u8], big_endian: bool) -> f64 {
        fn first<const N: usize>(bytes: &[u8], big_endian: bool) -> Option<[u8; N]> {
            let mut array = *bytes.first_chunk::<N>()?;
            if big_endian {
                array.reverse();
            }
            Some(array)
        }
        let be = big_endian;
        match self {
            Self::I8 => first(bytes, be).map(|b| f64::from(i8::from_le_bytes(b))),
            Self::U8 => first(bytes, be).map(|b| f64::from(u8::from_le_bytes(b))),
            Self::I16 => first(bytes, be).map(|b| f64::from(i16::from_le_bytes(b))),
            Self::U16 => first(bytes, be).map(|b| f64::from(u16::from_le_bytes(b))),
            Self::I32 => first(bytes, be).map(|b| f64::from(i32::from_le_bytes(b))),
            Self::U32 => first(bytes, be).map(|b| f64::from(u32::from_le_bytes(b))),
            Self::F32 => first(bytes, be).map(|b| f64::from(f32::from_le_bytes(b))),
            Self::F64 => first(bytes, be).map(f64::from_le_bytes),
        }
        .unwrap_or(f64::NAN)
    }
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Ascii,
    LittleEndian,
    BigEndian,
}

/// One property of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) name: String,
    /// Type of the value, or of the items where `list` is set.
    pub(crate) scalar: Scalar,
    /// Type of the item count that precedes a list.
    pub(crate) list: Option<Scalar>,
}

/// One element: a table of `count` rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) properties: Vec<Property>,
}

impl Element {
    /// The property of exactly this name that is not a list: its index.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.properties
            .iter()
            .position(|p| p.list.is_none() && p.name == name)
    }

    /// Names of all properties, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.properties.iter().map(|p| p.name.as_str()).collect();
        names.join(", ")
    }

    /// Bytes of a binary row, or `None` where lists make rows differ.
    pub(super) fn row_bytes(&self) -> Option<u64> {
        self.properties
            .iter()
            .map(|p| p.list.is_none().then(|| p.scalar.bytes()))
            .sum()
    }
}

/// What stands before the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) encoding: Encoding,
    /// As the file spells it, always `1.0` in practice.
    pub(crate) version: String,
    pub(crate) elements: Vec<Element>,
    /// Texts of `comment` and `obj_info` lines.
    pub(crate) comments: Vec<String>,
    /// Bytes of the header with its last line end.
    pub(crate) bytes: usize,
}

/// True when the bytes begin like a PLY file of any kind.
pub(crate) fn is_ply(bytes: &[u8]) -> bool {
    matches!(bytes, [b'p', b'l', b'y', b'\n' | b'\r' | b' ', ..])
}

impl Header {
    /// The element of this name.
    pub(crate) fn element(&self, name: &str) -> Option<&Element> {
        self.elements.iter().find(|e| e.name == name)
    }

    /// Parses a header with line ends of any system.
    pub(crate) fn parse(bytes: &[u8], at: &Place) -> Result<Self, Error> {
        if !is_ply(bytes) {
            return Err(at.malformed("does not begin with the line 'ply'"));
        }
        // Only a file whose first line ends in a lone CR uses it: a body may begin with LF.
        let lone_cr = bytes
            .iter()
            .position(|b| matches!(b, b'\r' | b'\n'))
            .is_some_and(|end| {
                bytes
                    .get(end..end + 2)
                    .is_some_and(|e| e[0] == b'\r' && e[1] != b'\n')
            });
        let line_end = if lone_cr { b'\r' } else { b'\n' };
        let mut header = Self {
            encoding: Encoding::Ascii,
            version: String::new(),
            elements: Vec::new(),
            comments: Vec::new(),
            bytes: 0,
        };
        let searched = bytes.get(..HEADER_BYTES_MAX).unwrap_or(bytes);
        for (number, line) in searched.split_inclusive(|b| *b == line_end).enumerate() {
            header.bytes += line.len();
            let text = String::from_utf8_lossy(line);
            let text = text.trim();
            if number == 0 || text.is_empty() {
                continue;
            }
            if text == "end_header" && line.last() == Some(&line_end) {
                if header.version.is_empty() {
                    return Err(at.malformed("the header has no 'format' line"));
                }
                return Ok(header);
            }
            header.line(text).map_err(|reason| {
                at.malformed(format!("header line {}: {reason}: '{text}'", number + 1))
            })?;
        }
        Err(at.error(
            super::Code::Truncated,
            format!(
                "no 'end_header' line in the first {} bytes; the file is cut short or no PLY",
                searched.len()
            ),
        ))
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split_ascii_whitespace();
        match words.next().unwrap_or_default() {
            "format" => {
                self.encoding = match words.next() {
                    Some("ascii") => Encoding::Ascii,
                    Some("binary_little_endian") => Encoding::LittleEndian,
                    Some("binary_big_endian") => Encoding::BigEndian,
                    _ => {
                        return Err("expected ascii, binary_little_endian or \
                                    binary_big_endian"
                            .into());
                    }
                };
                self.version = words.next().unwrap_or("1.0").to_owned();
                if self.version != "1.0" {
                    return Err("expected version 1.0".into());
                }
            }
            "comment" | "obj_info" => {
                let comment = text.split_once(char::is_whitespace).map_or("", |(_, c)| c);
                self.comments.push(comment.trim().to_owned());
            }
            "element" => {
                let (Some(name), Some(count)) = (words.next(), words.next()) else {
                    return Err("expected 'element NAME COUNT'".into());
                };
                if self.element(name).is_some() {
                    return Err("this element was declared before".into());
                }
                if self.elements.len() >= ELEMENTS_MAX {
                    return Err(format!("more than {ELEMENTS_MAX} elements"));
                }
                self.elements.push(Element {
                    name: name.to_owned(),
                    count: count
                        .parse()
                        .map_err(|e| format!("'{count}' is no count of rows ({e})"))?,
                    properties: Vec::new(),
                });
            }
            "property" => self.property(&mut words)?,
            _ => return Err("expected format, comment, element, property or end_header".into()),
        }
        Ok(())
    }

    fn property<'a>(&mut self, words: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
        let element = self
            .elements
            .last_mut()
            .ok_or("a property before any element")?;
        let mut scalar = |what: &str| {
            let word = words.next().unwrap_or_default();
            match word {
                "list" if what == "type" => Ok(None),
                _ => Scalar::parse(word)
                    .map(Some)
                    .ok_or_else(|| format!("'{word}' is no PLY {what}")),
            }
        };
        let (list, scalar) = match scalar("type")? {
            Some(value) => (None, Some(value)),
            None => (scalar("list count type")?, scalar("list item type")?),
        };
        let (Some(scalar), Some(name)) = (scalar, words.next()) else {
            return Err("expected 'property TYPE NAME'".into());
        };
        if list.is_some_and(|l| matches!(l, Scalar::F32 | Scalar::F64)) {
            return Err("a list count cannot be a float".into());
        }
        if element.properties.iter().any(|p| p.name == name) {
            return Err(format!("element {} has this property twice", element.name));
        }
        if element.properties.len() >= PROPERTIES_MAX {
            return Err(format!(
                "more than {PROPERTIES_MAX} properties in one element"
            ));
        }
        element.properties.push(Property {
            name: name.to_owned(),
            scalar,
            list,
        });
        Ok(())
    }
}
