//! Weights of a `.splattie` bundle: which bones move each splat.
//!
//! Three encodings, told apart by content: a JSON list of rows with one number for each bone, a JSON
//! object `{numGaussians, jointCount?, k, indices, weights}`, and the binary `LBSW`. Row i belongs
//! to splat i of the file. JSON of hundreds of megabytes is read as a stream: nothing is held but
//! the weights above 0. Source: FORMAT.md of affromero/splattie-widget, v0.1.1 (rows) and v0.3.0
//! (the other two).

use super::splattie_manifest::shown;
use super::{Code, Error, Place};
use crate::scene::body::{INFLUENCES, Skin};
use half::f16;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// First bytes of the binary encoding.
pub(crate) const MAGIC: &[u8; 4] = b"LBSW";
/// Magic, version, numGaussians, jointCount, k.
const HEADER_BYTES: usize = 20;
const BINARY_VERSION: u32 = 1;
/// How far the sum of a row may be from 1, and a weight below 0, without a word: half a step of the
/// 8 bits to which the web player rounds weights. The rounding of four f16 weights (below 0.001) and
/// of five decimals in a text stays inside it.
const SUM_TOLERANCE: f64 = 0.5 / 255.0;

/// The weights of a file for `rows` splats and `bones` bones, and what a person should know. Rows
/// that do not sum to 1 are made to; a row of zeros stays empty, which is to say with the root.
///
/// # Errors
/// [`Code::BadWeights`]: none of the encodings, other counts than `rows` and `bones`, a bone that is
/// not there, a weight below 0 or not finite.
pub(crate) fn read(
    bytes: &[u8],
    rows: usize,
    bones: usize,
    at: &Place,
) -> Result<(Skin, Option<String>), Error> {
    let mut parse = Parse {
        rows,
        bones,
        skin: Skin::default(),
        count: 0,
        uneven: 0,
        zero: 0,
        failure: None,
        sparse: Sparse::default(),
    };
    let done = if bytes.starts_with(MAGIC) {
        parse.binary(bytes)
    } else {
        parse.text(bytes)
    };
    done.map_err(|message| at.error(Code::BadWeights, message))?;
    let warning = parse.warning();
    Ok((parse.skin, warning))
}

struct Parse {
    rows: usize,
    bones: usize,
    skin: Skin,
    /// Rows seen, which may be more than are kept.
    count: u64,
    uneven: usize,
    zero: usize,
    /// Why the parser was stopped, in words of this file.
    failure: Option<String>,
    sparse: Sparse,
}

/// The fields of the JSON object.
#[derive(Default)]
struct Sparse {
    rows: Option<Value>,
    bones: Option<Value>,
    per_row: Option<Value>,
    indices: Option<Flat>,
    weights: Option<Flat>,
}

/// A list of numbers, of which no more are kept than can belong to the splats.
#[derive(Default)]
struct Flat {
    kept: Vec<f64>,
    count: u64,
}

impl Parse {
    /// Adds the next row.
    fn push(&mut self, row: &mut [(u8, f32)]) -> Result<(), String> {
        let sum: f64 = row.iter().map(|(_, w)| f64::from(*w).max(0.0)).sum();
        if sum == 0.0 {
            self.zero += 1;
        } else if (sum - 1.0).abs() > SUM_TOLERANCE {
            self.uneven += 1;
            for (_, weight) in row.iter_mut() {
                *weight = (f64::from(*weight) / sum) as f32;
            }
        }
        if self.skin.bones.len() + row.len() > u32::MAX as usize {
            return Err(format!("holds more than {} weights above 0", u32::MAX));
        }
        self.skin.push_row(row.iter().copied());
        Ok(())
    }

    fn warning(&self) -> Option<String> {
        let uneven = (self.uneven > 0).then(|| {
            format!(
                "{} of {} weight rows do not sum to 1 and are normalised",
                self.uneven, self.rows
            )
        });
        let zero = (self.zero > 0).then(|| {
            format!(
                "{} of {} weight rows are all 0 and follow the root",
                self.zero, self.rows
            )
        });
        let parts: Vec<String> = uneven.into_iter().chain(zero).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// A weight that can be used; `row` and `column` are for the message.
    fn weight(value: f64, row: u64, column: usize) -> Result<f32, String> {
        let weight = value as f32;
        if weight.is_finite() && value >= -SUM_TOLERANCE {
            Ok(weight)
        } else {
            Err(format!(
                "row {row} holds the weight {value} in place {column} where a finite number not \
                 below 0 is expected"
            ))
        }
    }

    fn check_rows(&self, field: &str, found: u64) -> Result<(), String> {
        if found == self.rows as u64 {
            return Ok(());
        }
        Err(format!(
            "{field} {found} rows where the splat file has {}: row i belongs to splat i, so both \
             have to come from the same export",
            self.rows
        ))
    }

    fn check_bones(&self, field: &str, found: &Value) -> Result<(), String> {
        if found.as_u64() == Some(self.bones as u64) {
            return Ok(());
        }
        Err(format!(
            "the field {field} is {} where the skeleton has {} bones",
            shown(found),
            self.bones
        ))
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), String> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut parser = serde_json::Deserializer::from_slice(bytes);
        let parsed = Document(self)
            .deserialize(&mut parser)
            .and_then(|is_dense| parser.end().map(|()| is_dense));
        let is_dense = parsed.map_err(|e| {
            self.failure.take().unwrap_or_else(|| {
                format!(
                    "is neither LBSW nor JSON of weights: {e}; expected is a list of rows with {} \
                     numbers each, or an object with numGaussians, k, indices and weights",
                    self.bones
                )
            })
        })?;
        if is_dense {
            self.check_rows("holds", self.count)
        } else {
            self.sparse()
        }
    }

    /// Rows out of the fields of the JSON object.
    fn sparse(&mut self) -> Result<(), String> {
        let fields = std::mem::take(&mut self.sparse);
        if let Some(bones) = &fields.bones {
            self.check_bones("jointCount", bones)?;
        }
        let said = fields.rows.unwrap_or_default();
        let rows = said.as_u64().ok_or_else(|| {
            format!(
                "the field numGaussians is {} where the number of splats, {}, is expected",
                shown(&said),
                self.rows
            )
        })?;
        self.check_rows("the field numGaussians says", rows)?;
        let said = fields.per_row.unwrap_or_default();
        let per_row = said
            .as_u64()
            .and_then(|k| usize::try_from(k).ok())
            .filter(|k| (1..=INFLUENCES).contains(k))
            .ok_or_else(|| wrong_per_row(&shown(&said)))?;
        let whole = |name: &str, flat: Option<Flat>| {
            let flat = flat.ok_or_else(|| format!("the field {name} is missing"))?;
            if flat.count == self.rows as u64 * per_row as u64 {
                return Ok(flat.kept);
            }
            Err(format!(
                "the field {name} has {} numbers where {} splats of k = {per_row} need {}",
                flat.count,
                self.rows,
                self.rows * per_row
            ))
        };
        let indices = whole("indices", fields.indices)?;
        let weights = whole("weights", fields.weights)?;
        let mut row = Vec::with_capacity(per_row);
        for (number, (indices, weights)) in indices
            .chunks_exact(per_row)
            .zip(weights.chunks_exact(per_row))
            .enumerate()
        {
            row.clear();
            for (place, (index, weight)) in indices.iter().zip(weights).enumerate() {
                let bone = self.bone(*index, number as u64)?;
                row.push((bone, Self::weight(*weight, number as u64, place)?));
            }
            self.push(&mut row)?;
        }
        Ok(())
    }

    fn bone(&self, index: f64, row: u64) -> Result<u8, String> {
        if index >= 0.0 && index < self.bones as f64 && index.fract() == 0.0 {
            // Below 256 bones.
            return Ok(index as u8);
        }
        Err(format!(
            "row {row} names the bone {index} where the skeleton has {} bones",
            self.bones
        ))
    }

    fn binary(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut header = [0_u32; 4];
        let words = bytes.get(MAGIC.len()..HEADER_BYTES).ok_or_else(|| {
            format!(
                "has {} bytes where the header of LBSW needs {HEADER_BYTES}",
                bytes.len()
            )
        })?;
        for (value, word) in header.iter_mut().zip(words.as_chunks::<4>().0) {
            *value = u32::from_le_bytes(*word);
        }
        let [version, rows, bones, per_row] = header;
        if version != BINARY_VERSION {
            return Err(format!(
                "the field version of LBSW is {version} where {BINARY_VERSION} is read"
            ));
        }
        if !(1..=INFLUENCES).contains(&(per_row as usize)) {
            return Err(wrong_per_row(&per_row.to_string()));
        }
        self.check_bones("jointCount", &bones.into())?;
        self.check_rows("the field numGaussians says", rows.into())?;
        // Index and weight have two bytes each.
        let needed = HEADER_BYTES as u64 + u64::from(rows) * u64::from(per_row) * 4;
        if bytes.len() as u64 != needed {
            return Err(format!(
                "has {} bytes where {rows} splats of k = {per_row} need exactly {needed}",
                bytes.len()
            ));
        }
        let per_row = per_row as usize;
        let (indices, weights) = bytes[HEADER_BYTES..].split_at(self.rows * per_row * 2);
        let (indices, weights) = (indices.as_chunks::<2>().0, weights.as_chunks::<2>().0);
        let mut row = Vec::with_capacity(per_row);
        for (number, (indices, weights)) in indices
            .chunks_exact(per_row)
            .zip(weights.chunks_exact(per_row))
            .enumerate()
        {
            row.clear();
            for (place, (index, weight)) in indices.iter().zip(weights).enumerate() {
                let bone = self.bone(u16::from_le_bytes(*index).into(), number as u64)?;
                let weight = f16::from_le_bytes(*weight).to_f64();
                row.push((bone, Self::weight(weight, number as u64, place)?));
            }
            self.push(&mut row)?;
        }
        Ok(())
    }

    /// Ends the parse: `message` is what the caller is told.
    fn stop<E: serde::de::Error>(&mut self, message: String) -> E {
        let error = E::custom(&message);
        self.failure = Some(message);
        error
    }
}

fn wrong_per_row(found: &str) -> String {
    format!("the field k is {found} where 1 to {INFLUENCES} bones for each splat are expected")
}

/// The whole text; says whether it was a list of rows.
struct Document<'a>(&'a mut Parse);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<bool, A::Error> {
        let parse = self.0;
        let mut row = Vec::with_capacity(parse.bones);
        loop {
            // Rows too many are counted, so that the message can say both numbers, and not kept.
            let is_kept = parse.count < parse.rows as u64;
            let next = if is_kept {
                rows.next_element_seed(Row(parse, &mut row))?
            } else {
                rows.next_element::<IgnoredAny>()?.map(|_| ())
            };
            if next.is_none() {
                return Ok(true);
            }
            parse.count += 1;
            if is_kept {
                parse.push(&mut row).map_err(|e| parse.stop(e))?;
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let parse = self.0;
        // A longer list is wrong whatever k is.
        let kept_max = parse.rows.saturating_mul(INFLUENCES);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "numGaussians" => parse.sparse.rows = Some(fields.next_value_seed(Small)?),
                "jointCount" => parse.sparse.bones = Some(fields.next_value_seed(Small)?),
                "k" => parse.sparse.per_row = Some(fields.next_value_seed(Small)?),
                "indices" => {
                    parse.sparse.indices = Some(fields.next_value_seed(List(kept_max))?);
                }
                "weights" => {
                    parse.sparse.weights = Some(fields.next_value_seed(List(kept_max))?);
                }
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(false)
    }
}

/// One row of the list.
struct Row<'a>(&'a mut Parse, &'a mut Vec<(u8, f32)>);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a row of {} numbers", self.0.bones)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<(), A::Error> {
        let Row(parse, row) = self;
        row.clear();
        while row.len() < parse.bones {
            let Some(value) = numbers.next_element::<f64>()? else {
                break;
            };
            let weight = Parse::weight(value, parse.count, row.len()).map_err(|e| parse.stop(e))?;
            // At most 256 bones.
            row.push((row.len() as u8, weight));
        }
        let mut columns = row.len();
        while numbers.next_element::<IgnoredAny>()?.is_some() {
            columns += 1;
        }
        if columns != parse.bones {
            let message = format!(
                "row {} has {columns} columns where the skeleton has {} bones",
                parse.count, parse.bones
            );
            return Err(parse.stop(message));
        }
        Ok(())
    }
}

/// One number; anything else is kept as what it is called in messages.
struct Small;

impl<'de> DeserializeSeed<'de> for Small {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Small {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
}

/// A flat list of numbers, of which at most so many are kept.
struct List(usize);

impl<'de> DeserializeSeed<'de> for List {
    type Value = Flat;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Flat, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List {
    type Value = Flat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a flat list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Flat, A::Error> {
        let mut flat = Flat::default();
        while let Some(number) = numbers.next_element::<f64>()? {
            flat.count += 1;
            if flat.kept.len() < self.0 {
                flat.kept.push(number);
            }
        }
        Ok(flat)
    }
}
