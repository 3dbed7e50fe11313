//! Float PLY as the INRIA trainer and everyone after it writes it: read.
//!
//! Properties are found by exact name, whatever their order and type. `opacity` is a logit,
//! `scale_*` are logarithms, `rot_*` is (w, x, y, z) and not normalised, `f_rest_*` is
//! channel-major (all of red first). Older and simpler files are met half way: `red green blue`
//! instead of `f_dc_*`, no `scale_2` (2D splats), no opacity. What is no splat file at all is
//! refused with what is missing. Space: x right, y down, z forward unless a `comment axes RUB`
//! (which [`super::ply_write`] writes) says otherwise.

use super::ply_header::{Element, Header, Scalar};
use super::ply_rows::{Body, Column, Rows};
use super::rows::{self, Row};
use super::values::{opacity_from_logit, unit_quaternion};
use super::{Error, FileSplats, Place, Progress};
use crate::scene::{Axes, Splats, sh};
use glam::Vec3;

/// Log-scale of the axis that a 2D splat does not have: a micrometre.
const FLAT_LOG_SCALE: f32 = -13.815_511;
/// Slots of a row before the further coefficients: mean, scale, rotation, opacity, colour.
const FIXED: usize = 14;
const SCALE_2: usize = 5;
const OPACITY: usize = 10;
const COLOUR: usize = 11;
const NAMES: [&str; FIXED] = [
    "x", "y", "z", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3", "opacity",
    "f_dc_0", "f_dc_1", "f_dc_2",
];
const RGB: [&str; 3] = ["red", "green", "blue"];

/// How plain colours become coefficients: `dc = (value * scale - 0.5) / SH_C0`.
#[derive(Clone, Copy)]
enum Colour {
    Coefficients,
    Plain { scale: f32 },
}

/// Which property feeds which value of a splat.
struct Layout {
    /// Index in the element of each slot of [`NAMES`].
    fixed: [Option<usize>; FIXED],
    /// Indices of `f_rest_*` to read, coefficient-major.
    rest: Vec<usize>,
    plain_colour: bool,
    degree: u8,
    degree_in_file: u8,
    warnings: Vec<String>,
}

impl Layout {
    fn of(header: &Header, vertex: &Element, at: &Place) -> Result<Self, Error> {
        let mut fixed = NAMES.map(|name| vertex.find(name));
        let mut warnings = Vec::new();
        let lacking = |slot: usize| fixed.get(slot).is_some_and(Option::is_none);
        // The third scale, opacity and colour have a sensible stand-in; without the others there
        // are no splats, and then everything that is missing is named.
        if (0..OPACITY).any(|slot| slot != SCALE_2 && lacking(slot)) {
            let missing: Vec<&str> = NAMES
                .iter()
                .enumerate()
                .filter(|(slot, _)| lacking(*slot))
                .map(|(_, name)| *name)
                .collect();
            let kind = if header.element("face").is_some_and(|f| f.count > 0) {
                "a mesh"
            } else {
                "a point cloud"
            };
            return Err(at.not_splats(format!(
                "{kind}, not splats: the vertex element lacks {} (it has {}); train splats from \
                 it or take the trainer's own output",
                missing.join(", "),
                vertex.names()
            )));
        }
        if fixed.get(SCALE_2).is_some_and(Option::is_none) {
            warnings.push("no scale_2: read as 2D splats, flat along their third axis".into());
        }
        if fixed.get(OPACITY).is_some_and(Option::is_none) {
            warnings.push("no opacity: every splat is read as opaque".into());
        }
        let mut plain_colour = false;
        if fixed.iter().skip(COLOUR).any(Option::is_none) {
            let rgb = RGB.map(|name| vertex.find(name));
            plain_colour = rgb.iter().all(Option::is_some);
            if !plain_colour {
                warnings.push("no f_dc_0..2 and no red, green, blue: read as mid grey".into());
            }
            for (slot, index) in fixed.iter_mut().skip(COLOUR).zip(rgb) {
                *slot = index.filter(|_| plain_colour);
            }
        }
        let (rest, degree, degree_in_file) = rest_of(vertex, &mut warnings);
        Ok(Self {
            fixed,
            rest,
            plain_colour,
            degree,
            degree_in_file,
            warnings,
        })
    }
}

/// The `f_rest_*` properties in coefficient-major order, the degree that they fill and the degree
/// that the file holds.
fn rest_of(vertex: &Element, warnings: &mut Vec<String>) -> (Vec<usize>, u8, u8) {
    let mut found: Vec<(usize, usize)> = vertex
        .properties
        .iter()
        .enumerate()
        .filter_map(|(index, property)| {
            let digits = property.name.strip_prefix("f_rest_")?;
            let number: usize = digits.parse().ok()?;
            // `f_rest_07` or `f_rest_+7` is some other property.
            (property.list.is_none() && number.to_string() == digits).then_some((number, index))
        })
        .collect();
    found.sort_unstable();
    let count = found.len();
    if count == 0 {
        return (Vec::new(), 0, 0);
    }
    let complete = found
        .iter()
        .enumerate()
        .all(|(i, (number, _))| i == *number);
    let per_channel = count / 3;
    let in_file = (1..=10_u8)
        .take_while(|degree| sh::rest_count(*degree) <= per_channel)
        .last()
        .unwrap_or(0);
    if !complete || !count.is_multiple_of(3) || in_file == 0 {
        warnings.push(format!(
            "{count} f_rest properties that are no complete set: read without view-dependent \
             colour (expected f_rest_0 to 8, 23 or 44)"
        ));
        return (Vec::new(), 0, 0);
    }
    let degree = in_file.min(sh::DEGREE_MAX);
    if sh::rest_count(in_file) != per_channel {
        warnings.push(format!(
            "{count} f_rest properties are more than degree {in_file} needs: the further ones \
             are ignored"
        ));
    }
    if in_file > degree {
        warnings.push(format!(
            "spherical harmonics of degree {in_file}: drawn to degree {degree}"
        ));
    }
    let rest = (0..sh::rest_count(degree))
        .flat_map(|k| (0..3).map(move |channel| channel * per_channel + k))
        .filter_map(|number| found.get(number).map(|(_, index)| *index))
        .collect();
    (rest, degree, in_file)
}

/// Reads a float PLY.
///
/// # Errors
/// No PLY, no splats, cut short, or a value that is no number.
pub(crate) fn read(bytes: &[u8], at: &Place, progress: Progress<'_>) -> Result<FileSplats, Error> {
    let header = Header::parse(bytes, at)?;
    let vertex = header.element("vertex").ok_or_else(|| {
        let names: Vec<&str> = header.elements.iter().map(|e| e.name.as_str()).collect();
        at.not_splats(format!(
            "no element 'vertex' (it has {})",
            if names.is_empty() {
                "no elements".to_owned()
            } else {
                names.join(", ")
            }
        ))
    })?;
    let layout = Layout::of(&header, vertex, at)?;
    let mut body = Body::new(bytes, &header, at);
    let mut splats = None;
    while let Some(element) = body.element(|element| {
        if element.name == "vertex" {
            layout
                .fixed
                .iter()
                .flatten()
                .chain(&layout.rest)
                .copied()
                .collect()
        } else {
            Vec::new()
        }
    }) {
        let (element, rows, columns) = element?;
        if element.name == "vertex" {
            splats = Some(decode(element, &rows, &columns, &layout, progress));
        }
    }
    let mut warnings = layout.warnings;
    if body.left_over() > 0 {
        warnings.push(format!(
            "{} bytes after the last element were ignored",
            body.left_over()
        ));
    }
    let mut splats = splats.unwrap_or_default();
    splats.antialiased = is_antialiased(&header);
    if looks_activated(&splats) {
        warnings.push(
            "nearly all splats are larger than 1 unit along every axis: the exporter may have \
             stored activated scales where logarithms belong"
                .into(),
        );
    }
    let axes = axes_of(&header, &mut warnings);
    Ok(FileSplats {
        splats,
        axes,
        version: Some(header.version),
        sh_degree_in_file: layout.degree_in_file,
        warnings,
        ..FileSplats::default()
    })
}

fn decode(
    element: &Element,
    rows: &Rows<'_>,
    columns: &[Column],
    layout: &Layout,
    progress: Progress<'_>,
) -> Splats {
    // Columns come in the order fixed (present ones), rest.
    let mut next = columns.iter().copied();
    let fixed = layout.fixed.map(|index| index.and_then(|_| next.next()));
    let rest: Vec<Column> = next.collect();
    let count = usize::try_from(element.count).unwrap_or(0);
    let colour = colour_scale(rows, count, &fixed, layout);
    let plan = Plan {
        fixed,
        rest: &rest,
        colour,
    };
    // Nearly every file: floats in place, little endian. A reader without a branch per value is
    // then three times as fast.
    if let Some((bytes, stride)) = rows.plain_floats(columns) {
        rows::fill(count, layout.degree, progress, |row, out| {
            let start = row * stride;
            let row_bytes = bytes.get(start..start + stride).unwrap_or_default();
            plan.row(|column| column.plain_float(row_bytes), out)
        })
    } else {
        rows::fill(count, layout.degree, progress, |row, out| {
            plan.row(|column| rows.f32(row, column), out)
        })
    }
}

struct Plan<'a> {
    fixed: [Option<Column>; FIXED],
    rest: &'a [Column],
    colour: Colour,
}

impl Plan<'_> {
    #[inline]
    fn row(&self, value: impl Fn(Column) -> f32, rest: &mut [f32]) -> Row {
        for (out, column) in rest.iter_mut().zip(self.rest) {
            *out = value(*column);
        }
        let [x, y, z, sx, sy, sz, qw, qx, qy, qz, opacity, r, g, b] = self.fixed;
        let or = |column: Option<Column>, default| column.map_or(default, &value);
        let colour = Vec3::new(or(r, 0.0), or(g, 0.0), or(b, 0.0));
        Row {
            mean: Vec3::new(or(x, 0.0), or(y, 0.0), or(z, 0.0)),
            log_scale: Vec3::new(or(sx, 0.0), or(sy, 0.0), or(sz, FLAT_LOG_SCALE)),
            rotation: unit_quaternion(or(qw, 1.0), or(qx, 0.0), or(qy, 0.0), or(qz, 0.0)),
            opacity: opacity.map_or(1.0, |o| opacity_from_logit(value(o))),
            dc: match self.colour {
                Colour::Coefficients => colour,
                Colour::Plain { scale } => (colour * scale - 0.5) / sh::SH_C0,
            },
        }
    }
}

/// Integer colours span their type; float ones run to 1, or to 255 where one is above 1.
fn colour_scale(
    rows: &Rows<'_>,
    count: usize,
    fixed: &[Option<Column>; FIXED],
    layout: &Layout,
) -> Colour {
    let colours: Vec<Column> = fixed.iter().skip(COLOUR).flatten().copied().collect();
    if !layout.plain_colour {
        return Colour::Coefficients;
    }
    let scale = match colours.first().map(|c| c.scalar) {
        Some(Scalar::F32 | Scalar::F64) => {
            let above_one = (0..count).any(|row| colours.iter().any(|c| rows.f32(row, *c) > 1.0));
            if above_one { 1.0 / 255.0 } else { 1.0 }
        }
        Some(Scalar::U16) => 1.0 / 65535.0,
        _ => 1.0 / 255.0,
    };
    Colour::Plain { scale }
}

/// Trained with antialias compensation: Brush and Postshot say so in comments, and so do we.
fn is_antialiased(header: &Header) -> bool {
    header.comments.iter().any(|comment| {
        let mut words = comment.split(|c: char| c.is_whitespace() || c == ':' || c == '=');
        let (key, value) = (words.next(), words.find(|w| !w.is_empty()));
        matches!(
            (key, value),
            (Some("SplatRenderMode"), Some("mip")) | (Some("antialiased"), Some("1" | "true"))
        )
    })
}

/// `comment axes RUB`: the file's own axes, which a PLY otherwise cannot state.
fn axes_of(header: &Header, warnings: &mut Vec<String>) -> Option<Axes> {
    let text = header
        .comments
        .iter()
        .find_map(|c| c.strip_prefix("axes ").map(str::trim))?;
    text.parse()
        .map_err(|reason| warnings.push(format!("comment axes ignored: {reason}")))
        .ok()
}

/// True when nearly every scale would be above one unit if it is the logarithm that it should be.
fn looks_activated(splats: &Splats) -> bool {
    /// Fewer splats than this are an example or a test and say nothing.
    const COUNT_MIN: usize = 100;
    let above = splats
        .log_scales
        .iter()
        .filter(|s| s.min_element() > 0.0)
        .count();
    splats.len() >= COUNT_MIN && above * 100 >= splats.len() * 99
}
