//! The rows of PLY elements: binary ones in place, ASCII and list-bearing ones as a table.

use super::ply_header::{Element, Encoding, Header, Scalar};
use super::{Code, Error, Place};

/// Where a value of a row is found: a byte offset in place, or a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    position: usize,
    pub(crate) scalar: Scalar,
}

/// The rows of one element, only the wanted properties of it.
#[derive(Debug)]
pub(crate) enum Rows<'a> {
    /// Rows of equal size, as they lie in the file.
    InPlace {
        bytes: &'a [u8],
        stride: usize,
        big_endian: bool,
    },
    /// `columns` values a row, wanted properties only.
    Table { values: Vec<f64>, columns: usize },
}

impl Column {
    /// The little-endian float of this column in a row of [`Rows::plain_floats`].
    #[inline]
    pub(crate) fn plain_float(self, row: &[u8]) -> f32 {
        row.get(self.position..)
            .and_then(|b| b.first_chunk())
            .map_or(f32::NAN, |b| f32::from_le_bytes(*b))
    }
}

impl Rows<'_> {
    /// Bytes and row size when all of `columns` are little-endian floats in place.
    pub(crate) fn plain_floats(&self, columns: &[Column]) -> Option<(&[u8], usize)> {
        match self {
            Self::InPlace {
                bytes,
                stride,
                big_endian: false,
            } if columns.iter().all(|c| c.scalar == Scalar::F32) => Some((bytes, *stride)),
            _ => None,
        }
    }

    /// The value of `column` in row `row`; NaN outside, which callers rule out.
    #[inline]
    pub(crate) fn value(&self, row: usize, column: Column) -> f64 {
        match self {
            Self::InPlace {
                bytes,
                stride,
                big_endian,
            } => bytes
                .get(row * stride + column.position..)
                .map_or(f64::NAN, |b| column.scalar.value(b, *big_endian)),
            Self::Table { values, columns } => values
                .get(row * columns + column.position)
                .copied()
                .unwrap_or(f64::NAN),
        }
    }

    /// As [`Rows::value`], in the precision of the renderer.
    #[inline]
    pub(crate) fn f32(&self, row: usize, column: Column) -> f32 {
        self.value(row, column) as f32
    }

    /// As [`Rows::value`], for packed bits.
    #[inline]
    pub(crate) fn u32(&self, row: usize, column: Column) -> u32 {
        self.value(row, column) as u32
    }
}

/// An element, the rows of it and where in them the wanted properties are.
pub(crate) type ElementRows<'a> = (&'a Element, Rows<'a>, Vec<Column>);

/// Walks the elements of a file in order.
pub(crate) struct Body<'a> {
    header: &'a Header,
    rest: &'a [u8],
    at: &'a Place,
    next: usize,
}

impl<'a> Body<'a> {
    /// Stands before the first element.
    pub(crate) fn new(bytes: &'a [u8], header: &'a Header, at: &'a Place) -> Self {
        Self {
            header,
            rest: bytes.get(header.bytes..).unwrap_or_default(),
            at,
            next: 0,
        }
    }

    /// The next element with the values of its properties `wanted(element)` (indices); the columns
    /// come in the order of that list. `None` after the last element.
    pub(crate) fn element(
        &mut self,
        wanted: impl FnOnce(&Element) -> Vec<usize>,
    ) -> Option<Result<ElementRows<'a>, Error>> {
        let element = self.header.elements.get(self.next)?;
        self.next += 1;
        let wanted = wanted(element);
        Some(
            self.rows(element, &wanted)
                .map(|(rows, columns)| (element, rows, columns)),
        )
    }

    /// Bytes behind the last element, without white space in ASCII.
    pub(crate) fn left_over(&self) -> usize {
        match self.header.encoding {
            Encoding::Ascii => self.rest.trim_ascii().len(),
            _ => self.rest.len(),
        }
    }

    fn rows(
        &mut self,
        element: &Element,
        wanted: &[usize],
    ) -> Result<(Rows<'a>, Vec<Column>), Error> {
        let big_endian = self.header.encoding == Encoding::BigEndian;
        let table_columns: Vec<Column> = wanted
            .iter()
            .enumerate()
            .filter_map(|(position, &index)| {
                let scalar = element.properties.get(index)?.scalar;
                Some(Column { position, scalar })
            })
            .collect();
        let what = format!("element {} with {} rows", element.name, element.count);
        let present = self.rest.len() as u64;
        let row_bytes = match self.header.encoding {
            Encoding::Ascii => None,
            _ => element.row_bytes(),
        };
        if let Some(row_bytes) = row_bytes {
            let needed = element.count.saturating_mul(row_bytes);
            let (bytes, rest) = usize::try_from(needed)
                .ok()
                .and_then(|n| self.rest.split_at_checked(n))
                .ok_or_else(|| self.at.truncated(&what, needed, present))?;
            self.rest = rest;
            let mut offset = 0;
            let offsets: Vec<usize> = element
                .properties
                .iter()
                .map(|p| {
                    let start = offset;
                    offset += p.scalar.bytes() as usize;
                    start
                })
                .collect();
            let columns = wanted
                .iter()
                .zip(table_columns)
                .filter_map(|(index, column)| {
                    Some(Column {
                        position: *offsets.get(*index)?,
                        ..column
                    })
                })
                .collect();
            let rows = Rows::InPlace {
                bytes,
                stride: row_bytes as usize,
                big_endian,
            };
            return Ok((rows, columns));
        }
        // The least that a row can take, so that a lying count is seen before anything is
        // reserved: in ASCII two bytes a value (the last one has no separator), else list counts.
        let ascii = self.header.encoding == Encoding::Ascii;
        let least: u64 = element
            .properties
            .iter()
            .map(|p| {
                if ascii {
                    2
                } else {
                    p.list.unwrap_or(p.scalar).bytes()
                }
            })
            .sum();
        let needed = element.count.saturating_mul(least);
        if needed > present + u64::from(ascii) {
            return Err(self.at.truncated(&what, needed, present));
        }
        let count = if least == 0 { 0 } else { element.count };
        // `count` is below the bytes present from here on, so it fits.
        let mut values = vec![f64::NAN; count as usize * wanted.len()];
        let mut table = values.chunks_exact_mut(wanted.len().max(1));
        // Property index to table column.
        let mut column_of = vec![None; element.properties.len()];
        for (column, &index) in wanted.iter().enumerate() {
            if let Some(slot) = column_of.get_mut(index) {
                *slot = Some(column);
            }
        }
        for row in 0..count {
            let out = table.next().unwrap_or_default();
            for (property, column) in element.properties.iter().zip(&column_of) {
                let place = |error: Problem| error.at(self.at, element, row, &property.name);
                let value = match property.list {
                    None => take(&mut self.rest, property.scalar, self.header.encoding),
                    Some(count_type) => skip_list(
                        &mut self.rest,
                        count_type,
                        property.scalar,
                        self.header.encoding,
                    ),
                }
                .map_err(place)?;
                if let Some(slot) = column.and_then(|c| out.get_mut(c)) {
                    *slot = value;
                }
            }
        }
        let columns = wanted.len();
        Ok((Rows::Table { values, columns }, table_columns))
    }
}

/// What can be wrong with one value.
enum Problem {
    End,
    NoNumber(String),
    ListCount(f64),
}

impl Problem {
    fn at(self, at: &Place, element: &Element, row: u64, property: &str) -> Error {
        let place = format!("element {}, row {row}, property {property}", element.name);
        match self {
            Self::End => at.error(
                Code::Truncated,
                format!(
                    "{place}: the file ends here, {} rows are declared; it is cut short or its \
                     header is wrong",
                    element.count
                ),
            ),
            Self::NoNumber(word) => at.malformed(format!("{place}: '{word}' is no number")),
            Self::ListCount(count) => {
                at.malformed(format!("{place}: a list cannot have {count} items"))
            }
        }
    }
}

fn take(rest: &mut &[u8], scalar: Scalar, encoding: Encoding) -> Result<f64, Problem> {
    if encoding == Encoding::Ascii {
        return number(word(rest).ok_or(Problem::End)?);
    }
    let (bytes, after) = rest
        .split_at_checked(scalar.bytes() as usize)
        .ok_or(Problem::End)?;
    *rest = after;
    Ok(scalar.value(bytes, encoding == Encoding::BigEndian))
}

/// Steps over a list; its value is of no use to splats.
fn skip_list(
    rest: &mut &[u8],
    count_type: Scalar,
    scalar: Scalar,
    encoding: Encoding,
) -> Result<f64, Problem> {
    let count = take(rest, count_type, encoding)?;
    if !(count >= 0.0 && count.fract() == 0.0) {
        return Err(Problem::ListCount(count));
    }
    if encoding == Encoding::Ascii {
        // Each turn eats at least a byte, so a lying count ends with the file.
        let mut left = count;
        while left > 0.0 {
            word(rest).ok_or(Problem::End)?;
            left -= 1.0;
        }
    } else {
        let bytes = count * scalar.bytes() as f64;
        if bytes > rest.len() as f64 {
            return Err(Problem::End);
        }
        *rest = rest.get(bytes as usize..).unwrap_or_default();
    }
    Ok(f64::NAN)
}

fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.trim_ascii_start();
    let end = start
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(start.len());
    let (word, after) = start.split_at_checked(end)?;
    *rest = after;
    (!word.is_empty()).then_some(word)
}

fn number(word: &[u8]) -> Result<f64, Problem> {
    let text = std::str::from_utf8(word).ok();
    if let Some(value) = text.and_then(|t| t.parse().ok()) {
        return Ok(value);
    }
    // What C libraries print for values that are not finite: `-nan(ind)`, `1.#QNAN`, `-1.#INF`.
    let lower = String::from_utf8_lossy(word).to_ascii_lowercase();
    if lower.contains("nan") || lower.contains("#ind") {
        Ok(f64::NAN)
    } else if lower.contains("#inf") {
        Ok(if lower.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        })
    } else {
        // A word is as long as the file when that is no text at all; 24 characters show enough.
        let shown: String = lower.chars().take(24).collect();
        Err(Problem::NoNumber(shown))
    }
}
