//! PlayCanvas compressed PLY: read.
//!
//! Recognised by its packed properties, not by a comment. 256 splats share a chunk of bounds;
//! positions and scales are 11-10-11 bits within them, rotations the smallest three of (w, x, y,
//! z), colours 8 bits a channel with linear opacity. Source: playcanvas/splat-transform and
//! supersplat; the decode agrees with splat-transform's.

use super::ply_header::{Element, Header};
use super::ply_rows::{Body, Column, Rows};
use super::rows::{self, Row};
use super::{Error, FileSplats, Place, Progress};
use crate::scene::sh;
use glam::{Quat, Vec3};

const CHUNK_SPLATS: usize = 256;
const PACKED: [&str; 4] = [
    "packed_position",
    "packed_rotation",
    "packed_scale",
    "packed_color",
];
const BOUNDS: [&str; 12] = [
    "min_x",
    "min_y",
    "min_z",
    "max_x",
    "max_y",
    "max_z",
    "min_scale_x",
    "min_scale_y",
    "min_scale_z",
    "max_scale_x",
    "max_scale_y",
    "max_scale_z",
];
const COLOUR_BOUNDS: [&str; 6] = ["min_r", "min_g", "min_b", "max_r", "max_g", "max_b"];

/// Bounds that 256 splats share.
#[derive(Clone, Copy)]
struct Chunk {
    position: [Vec3; 2],
    log_scale: [Vec3; 2],
    colour: [Vec3; 2],
}

/// True when a PLY header declares packed splats.
pub(crate) fn is_compressed(header: &Header) -> bool {
    header
        .element("vertex")
        .is_some_and(|vertex| vertex.find("packed_position").is_some())
}

fn indices(element: &Element, names: &[&str], at: &Place) -> Result<Vec<usize>, Error> {
    let missing: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| element.find(name).is_none())
        .collect();
    if !missing.is_empty() {
        return Err(at.malformed(format!(
            "compressed PLY, but element {} lacks {}",
            element.name,
            missing.join(", ")
        )));
    }
    Ok(names.iter().filter_map(|name| element.find(name)).collect())
}

/// `f_rest_*` of the `sh` element, coefficient-major, and their degree.
fn coefficients(element: &Element, warnings: &mut Vec<String>) -> (Vec<usize>, u8) {
    let names: Vec<String> = (0..element.properties.len())
        .map(|k| format!("f_rest_{k}"))
        .collect();
    let found: Vec<usize> = names.iter().map_while(|name| element.find(name)).collect();
    let degree = match found.len() {
        9 => 1,
        24 => 2,
        45 => 3,
        other => {
            warnings.push(format!(
                "element sh holds {other} coefficients where 9, 24 or 45 were expected: read \
                 without view-dependent colour"
            ));
            return (Vec::new(), 0);
        }
    };
    let per_channel = sh::rest_count(degree);
    let order = (0..per_channel)
        .flat_map(|k| (0..3).map(move |channel| channel * per_channel + k))
        .filter_map(|number| found.get(number).copied())
        .collect();
    (order, degree)
}

/// Reads a compressed PLY.
///
/// # Errors
/// Cut short, or elements that do not fit together.
pub(crate) fn read(bytes: &[u8], at: &Place, progress: Progress<'_>) -> Result<FileSplats, Error> {
    let header = Header::parse(bytes, at)?;
    let declared = |name: &str| {
        header.element(name).ok_or_else(|| {
            at.malformed(format!("compressed PLY, but there is no element '{name}'"))
        })
    };
    let (vertex, chunk) = (declared("vertex")?, declared("chunk")?);
    let packed = indices(vertex, &PACKED, at)?;
    let mut bounds = indices(chunk, &BOUNDS, at)?;
    // Files before 2024 have no colour bounds.
    let has_colour = COLOUR_BOUNDS.iter().all(|name| chunk.find(name).is_some());
    if has_colour {
        bounds.extend(indices(chunk, &COLOUR_BOUNDS, at)?);
    }
    let mut warnings = Vec::new();
    let (rest, degree) = header
        .element("sh")
        .map_or((Vec::new(), 0), |sh| coefficients(sh, &mut warnings));
    let fits = |element: &Element, rows: u64| {
        if element.count < rows {
            return Err(at.malformed(format!(
                "element {} has {} rows where {} splats need {rows}",
                element.name, element.count, vertex.count
            )));
        }
        Ok(())
    };
    fits(chunk, vertex.count.div_ceil(CHUNK_SPLATS as u64))?;
    if let Some(sh) = header.element("sh").filter(|_| degree > 0) {
        fits(sh, vertex.count)?;
    }
    let mut body = Body::new(bytes, &header, at);
    let (mut chunks, mut vertices, mut harmonics) = (Vec::new(), None, None);
    while let Some(element) = body.element(|element| match element.name.as_str() {
        "chunk" => bounds.clone(),
        "vertex" => packed.clone(),
        "sh" => rest.clone(),
        _ => Vec::new(),
    }) {
        let (element, rows, columns) = element?;
        match element.name.as_str() {
            "chunk" => chunks = chunk_table(&rows, &columns, element.count),
            "vertex" => vertices = Some((rows, columns)),
            "sh" => harmonics = Some((rows, columns)),
            _ => {}
        }
    }
    if body.left_over() > 0 {
        warnings.push(format!(
            "{} bytes after the last element were ignored",
            body.left_over()
        ));
    }
    let count = usize::try_from(vertex.count).unwrap_or(0);
    let splats = vertices.map_or_else(Default::default, |(rows, columns)| {
        rows::fill(count, degree, progress, |row, out| {
            if let Some((rows, columns)) = &harmonics {
                for (out, column) in out.iter_mut().zip(columns) {
                    *out = coefficient(rows.u32(row, *column));
                }
            }
            decode(&rows, &columns, row, chunks.get(row / CHUNK_SPLATS))
        })
    });
    Ok(FileSplats {
        splats,
        version: Some(header.version),
        sh_degree_in_file: degree,
        warnings,
        ..FileSplats::default()
    })
}

fn chunk_table(rows: &Rows<'_>, columns: &[Column], count: u64) -> Vec<Chunk> {
    let row_count = usize::try_from(count).unwrap_or(0);
    (0..row_count)
        .map(|row| {
            let vec = |first: usize| {
                let value = |k: usize| columns.get(first + k).map(|c| rows.f32(row, *c));
                match (value(0), value(1), value(2)) {
                    (Some(x), Some(y), Some(z)) => Some(Vec3::new(x, y, z)),
                    _ => None,
                }
            };
            let pair = |first: usize| {
                [
                    vec(first).unwrap_or(Vec3::ZERO),
                    vec(first + 3).unwrap_or(Vec3::ONE),
                ]
            };
            Chunk {
                position: pair(0),
                log_scale: pair(6),
                colour: pair(12),
            }
        })
        .collect()
}

fn decode(rows: &Rows<'_>, columns: &[Column], row: usize, chunk: Option<&Chunk>) -> Row {
    let (Some(chunk), [position, rotation, scale, colour]) = (chunk, columns) else {
        return Row::NOTHING;
    };
    let mix = |[min, max]: [Vec3; 2], t: Vec3| min + (max - min) * t;
    let packed_colour = rows.u32(row, *colour);
    let [r, g, b, a] = packed_colour
        .to_be_bytes()
        .map(|byte| f32::from(byte) / 255.0);
    Row {
        mean: mix(chunk.position, unpack_11_10_11(rows.u32(row, *position))),
        log_scale: mix(chunk.log_scale, unpack_11_10_11(rows.u32(row, *scale))),
        rotation: unpack_rotation(rows.u32(row, *rotation)),
        opacity: a,
        dc: (mix(chunk.colour, Vec3::new(r, g, b)) - 0.5) / sh::SH_C0,
    }
}

fn unpack_11_10_11(bits: u32) -> Vec3 {
    Vec3::new(
        (bits >> 21) as f32 / 2047.0,
        ((bits >> 11) & 0x3ff) as f32 / 1023.0,
        (bits & 0x7ff) as f32 / 2047.0,
    )
}

/// Smallest three of (w, x, y, z), the largest dropped and positive.
fn unpack_rotation(bits: u32) -> Quat {
    let part =
        |shift: u32| (((bits >> shift) & 0x3ff) as f32 / 1023.0 - 0.5) * std::f32::consts::SQRT_2;
    let (a, b, c) = (part(20), part(10), part(0));
    let largest = (1.0 - (a * a + b * b + c * c)).max(0.0).sqrt();
    let (w, x, y, z) = match bits >> 30 {
        0 => (largest, a, b, c),
        1 => (a, largest, b, c),
        2 => (a, b, largest, c),
        _ => (a, b, c, largest),
    };
    super::values::unit_quaternion(w, x, y, z)
}

/// 0 and 255 stand for the ends exactly, the bytes between for the middle of their interval.
fn coefficient(byte: u32) -> f32 {
    let n = match byte {
        0 => 0.0,
        255.. => 1.0,
        b => (b as f32 + 0.5) / 256.0,
    };
    (n - 0.5) * 8.0
}
