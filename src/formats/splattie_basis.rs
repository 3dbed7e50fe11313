//! `expression_basis.bin` of a `.splattie` bundle: how far each blendshape moves each splat.
//!
//! Layout: a magic of four bytes (`EXPR` for f32, `EXPH` for f16), u32 rows, u32 shapes, then for
//! each row and shape x, y and z in metres, little endian throughout, nothing behind. Row i belongs
//! to splat i of the file, with the one exception of [`FLAME_ROWS`]. Names come from a JSON file of
//! labels beside it. Source: FORMAT.md and ExpressionBasis of affromero/splattie-widget, v0.1.1
//! (`EXPR`) and v0.3.0 (`EXPH`).

use super::splattie_manifest::json;
use super::{Code, Error, Place};
use crate::scene::body::{SHAPES_MAX, Shapes};
use glam::Vec3;
use half::f16;
use rayon::prelude::*;

/// Magic, rows, shapes.
pub(crate) const HEADER_BYTES: usize = 12;

/// Encoding of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// `EXPR`, f32: what 0.1.x reads.
    Float,
    /// `EXPH`, f16: what 0.2 and later read.
    Half,
}

impl Numbers {
    pub(crate) const fn magic(self) -> &'static [u8; 4] {
        match self {
            Self::Float => b"EXPR",
            Self::Half => b"EXPH",
        }
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Float => 4,
            Self::Half => 2,
        }
    }
}

/// A basis as it lies in its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis<'a> {
    pub(crate) numbers: Numbers,
    pub(crate) rows: usize,
    pub(crate) shapes: usize,
    /// Behind the header, of exactly the right length.
    payload: &'a [u8],
}

impl<'a> Basis<'a> {
    /// Reads the header and checks it against the bytes that are there.
    ///
    /// # Errors
    /// [`Code::BadBasis`].
    pub(crate) fn parse(bytes: &'a [u8], at: &Place) -> Result<Self, Error> {
        let bad = |message| at.error(Code::BadBasis, message);
        let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(bad(format!(
                "has {} bytes where the header needs {HEADER_BYTES}",
                bytes.len()
            )));
        };
        let numbers = [Numbers::Float, Numbers::Half]
            .into_iter()
            .find(|numbers| header.starts_with(numbers.magic()))
            .ok_or_else(|| {
                bad(format!(
                    "the field magic is \"{}\" where \"EXPR\" (f32) or \"EXPH\" (f16) is expected",
                    header[..4].escape_ascii()
                ))
            })?;
        let word = |from: usize| {
            let bytes = header[from..from + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        let (rows, shapes) = (word(4), word(8));
        if shapes as usize > SHAPES_MAX {
            return Err(bad(format!(
                "the field numExpressions is {shapes} where at most {SHAPES_MAX} are read"
            )));
        }
        // Below 2^32 * 2^10 * 12.
        let needed = u64::from(rows) * u64::from(shapes) * 3 * numbers.bytes() as u64;
        if payload.len() as u64 != needed {
            return Err(bad(format!(
                "has {} bytes behind the header where numVertices {rows} and numExpressions \
                 {shapes} need exactly {needed}; the file is cut short or its header is wrong",
                payload.len()
            )));
        }
        Ok(Self {
            numbers,
            rows: rows as usize,
            shapes: shapes as usize,
            payload,
        })
    }

    /// Numbers of one row, x, y and z of each shape. No row beyond the last one may be asked for.
    fn row(&self, row: usize) -> impl Iterator<Item = Vec3> + '_ {
        let size = self.numbers.bytes();
        let length = self.shapes * 3 * size;
        let bytes = &self.payload[row * length..(row + 1) * length];
        bytes.chunks_exact(3 * size).map(move |xyz| {
            let number = |axis: usize| {
                let bytes = &xyz[axis * size..(axis + 1) * size];
                match self.numbers {
                    Numbers::Float => f32::from_le_bytes(bytes.try_into().unwrap_or_default()),
                    Numbers::Half => {
                        f16::from_le_bytes(bytes.try_into().unwrap_or_default()).to_f32()
                    }
                }
            };
            Vec3::new(number(0), number(1), number(2))
        })
    }
}

/// The labels of a sidecar, if there is one for each of so many shapes; else why they are not used.
pub(crate) fn labels(bytes: &[u8], shapes: usize) -> Result<Vec<String>, String> {
    let document = json(bytes)?;
    let items = document["labels"]
        .as_array()
        .ok_or("holds no list in the field labels")?;
    if items.len() != shapes {
        return Err(format!(
            "has {} labels where the basis has {shapes} shapes",
            items.len()
        ));
    }
    items
        .iter()
        .map(|label| label.as_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(|| "holds a label that is no text".to_owned())
}

/// Names of shapes without labels: `expr_0`, `expr_1`, ...
pub(crate) fn plain_names(shapes: usize) -> Vec<String> {
    (0..shapes).map(|shape| format!("expr_{shape}")).collect()
}

/// Whether names say what a shape does. Principal components of a face model do not: they are
/// `expr_N`, or the part of the face that a component moves most and where to (`lipsUp`, `noseUp2`).
/// All of them have to look so, since one could be chance.
pub(crate) fn are_semantic(names: &[String]) -> bool {
    !names.iter().all(|name| is_component(name))
}

fn is_component(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem == "expr_" {
        return stem.len() < name.len();
    }
    ["L", "R", "Up", "Down", "Fwd", "Back"].iter().any(|way| {
        stem.strip_suffix(way).is_some_and(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        })
    })
}

/// How much the player enlarges principal components: `ExpressionBasis` of splattie-widget.
pub(crate) const COMPONENT_SCALE: f32 = 3.0;
/// Height of the jaw where there is no bone of that name, metres: as above.
const JAW_Y_DEFAULT_M: f32 = -0.016;
/// Below the jaw components fade over so much, metres: as above.
const JAW_FADE_M: f32 = 0.025;
/// The back of the head starts here, metres: as above.
const BACK_Z_M: f32 = -0.06;
/// Behind that components fade over so much, metres: as above.
const BACK_FADE_M: f32 = 0.02;
/// Splats with a smaller mask stay where they are: as above.
const MASK_MIN: f32 = 0.001;

/// How much principal components move a splat at `p` (metres, the file's space): all in the face,
/// nothing at the neck and the back of the head.
pub(crate) fn component_mask(p: Vec3, jaw_y_m: Option<f32>) -> f32 {
    let below_m = jaw_y_m.unwrap_or(JAW_Y_DEFAULT_M) - p.y;
    let behind_m = BACK_Z_M - p.z;
    let fade = |beyond_m: f32, over_m: f32| {
        if beyond_m < 0.0 {
            1.0
        } else {
            (1.0 - beyond_m / over_m).max(0.0)
        }
    };
    let mask = fade(below_m, JAW_FADE_M) * fade(behind_m, BACK_FADE_M);
    if mask < MASK_MIN { 0.0 } else { mask }
}

/// Splats of an avatar that LAM made on FLAME without teeth: 5,023 vertices of the mesh and 14,995
/// midpoints of its edges.
pub(crate) const FLAME_SPLATS: usize = 20_018;
/// Rows of a basis that was exported with teeth: `5023 | 120 of the teeth | 14995 | 288 of the
/// teeth`. The rows behind the first teeth belong to splats that come that much earlier.
pub(crate) const FLAME_ROWS: usize = 20_426;
const FLAME_VERTICES: usize = 5_023;
const FLAME_TEETH: usize = 120;

/// The row of the basis for each splat, or why there is none.
fn row_of(basis_rows: usize, splats: usize) -> Result<fn(usize) -> usize, String> {
    if basis_rows == splats {
        return Ok(|splat| splat);
    }
    if (basis_rows, splats) == (FLAME_ROWS, FLAME_SPLATS) {
        return Ok(|splat| {
            if splat < FLAME_VERTICES {
                splat
            } else {
                splat + FLAME_TEETH
            }
        });
    }
    Err(format!(
        "the field numVertices is {basis_rows} where the splat file has {splats} rows: row i \
         belongs to splat i, so both have to come from the same export"
    ))
}

/// The shapes for splats at `means` (the file's space), with the scale and the mask of principal
/// components folded in where `names` are no names; and what a person should know.
///
/// # Errors
/// [`Code::BadBasis`]: other counts, or a number that is not finite or beyond f16.
pub(crate) fn shapes(
    basis: &Basis<'_>,
    names: Vec<String>,
    means: &[Vec3],
    jaw_y_m: Option<f32>,
    at: &Place,
) -> Result<(Shapes, Option<String>), Error> {
    let bad = |message| at.error(Code::BadBasis, message);
    let row_of = row_of(basis.rows, means.len()).map_err(bad)?;
    let warning = (basis.rows != means.len()).then(|| {
        format!(
            "the basis has {FLAME_ROWS} rows for {FLAME_SPLATS} splats: it was made with teeth and \
             the splats without; rows from {FLAME_VERTICES} on are taken {FLAME_TEETH} further on"
        )
    });
    let is_semantic = are_semantic(&names);
    let gain = |splat: usize| {
        if is_semantic {
            1.0
        } else {
            COMPONENT_SCALE * component_mask(means[splat], jaw_y_m)
        }
    };
    let largest = f32::from(f16::MAX);
    let wrong = (0..means.len()).into_par_iter().find_map_first(|splat| {
        // The number itself, whatever the mask makes of it.
        basis.row(row_of(splat)).enumerate().find_map(|(shape, d)| {
            let is_fine = d.abs().max_element() * COMPONENT_SCALE <= largest && d.is_finite();
            (!is_fine).then_some((splat, shape, d))
        })
    });
    if let Some((splat, shape, d)) = wrong {
        return Err(bad(format!(
            "row {} of shape {shape} ({}) is {d} where three finite numbers, metres, are expected",
            row_of(splat),
            names[shape]
        )));
    }
    let mut shapes = Shapes::new(names);
    for splat in 0..means.len() {
        if shapes.entries.len() + basis.shapes > u32::MAX as usize {
            return Err(at.too_large(format!(
                "holds more than {} displacements that are not 0",
                u32::MAX
            )));
        }
        let gain = gain(splat);
        let row = basis.row(row_of(splat)).enumerate();
        if gain > 0.0 {
            shapes.push_row(row.map(|(shape, d)| (shape as u16, d * gain)));
        } else {
            shapes.push_row([]);
        }
    }
    Ok((shapes, warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_components_are_told_from_names() {
        let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert!(!are_semantic(&plain_names(3)));
        assert!(!are_semantic(&names(&[
            "lipsBack", "noseUp2", "jawDown", "lipsL", "expr_7"
        ])));
        assert!(are_semantic(&names(&["jawOpen"])));
        assert!(are_semantic(&names(&["browInnerUp"])));
        assert!(are_semantic(&names(&["lipsUp", "eyeBlinkLeft"])));
        assert!(are_semantic(&names(&["mouthLeft", "jawRight"])));
    }

    #[test]
    fn the_mask_is_one_in_the_face_and_fades() {
        let mask = |y, z| component_mask(Vec3::new(0.0, y, z), Some(-0.016));
        assert_eq!(mask(0.0, 0.0), 1.0);
        assert_eq!(mask(-0.041, 0.0), 0.0);
        assert!((mask(-0.0285, 0.0) - 0.5).abs() < 1e-5);
        assert!((mask(0.0, -0.07) - 0.5).abs() < 1e-5);
        assert_eq!(mask(0.0, -0.08), 0.0);
        assert!((component_mask(Vec3::new(0.0, -0.0285, 0.0), None) - 0.5).abs() < 1e-5);
    }
}
