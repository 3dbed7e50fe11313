//! antimatter15's `.splat`: read and write.
//!
//! 32 bytes a row: position 3 x f32, LINEAR scale 3 x f32, colour and opacity 4 x u8, rotation
//! (w, x, y, z) 4 x u8 with `byte / 255 * 2 - 1` (as splat-transform decodes it; antimatter15's
//! own `(byte - 128) / 128` differs by half a step). No magic, no header, no further coefficients.

use super::rows::{self, Row};
use super::values::unit_quaternion;
use super::{Error, FileSplats, Place, Progress};
use crate::scene::{Splats, sh};
use glam::Vec3;
use std::io::Write;

const ROW_BYTES: usize = 32;
/// Rows that [`is_plausible`] looks at.
const SAMPLE_ROWS: usize = 1000;
/// Coordinates and scales beyond this are no scene.
const EXTENT_MAX: f32 = 1e7;

fn float(row: &[u8; ROW_BYTES], first: usize) -> f32 {
    row.get(first..)
        .and_then(|b| b.first_chunk())
        .map_or(f32::NAN, |b| f32::from_le_bytes(*b))
}

fn decode(row: &[u8; ROW_BYTES]) -> Row {
    let vec = |first| {
        Vec3::new(
            float(row, first),
            float(row, first + 4),
            float(row, first + 8),
        )
    };
    let [.., r, g, b, a, qw, qx, qy, qz] = row.map(|byte| f32::from(byte) / 255.0);
    let signed = |unit: f32| unit * 2.0 - 1.0;
    Row {
        mean: vec(0),
        log_scale: vec(12).map(f32::ln),
        rotation: unit_quaternion(signed(qw), signed(qx), signed(qy), signed(qz)),
        opacity: a,
        dc: (Vec3::new(r, g, b) - 0.5) / sh::SH_C0,
    }
}

/// True when bytes without any other mark read like rows of this format.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    let (rows, rest) = bytes.as_chunks::<ROW_BYTES>();
    // A bare array of anything could be of this size, so every sampled row must hold up: finite,
    // of a scene's size, and with a quaternion that was a unit one before it was cut to bytes.
    rest.is_empty()
        && !rows.is_empty()
        && rows
            .iter()
            .step_by(rows.len().div_ceil(SAMPLE_ROWS))
            .all(|row| {
                let [.., qw, qx, qy, qz] = row.map(|byte| f32::from(byte) / 127.5 - 1.0);
                let length = qw * qw + qx * qx + qy * qy + qz * qz;
                (0..3).all(|k| float(row, k * 4).abs() <= EXTENT_MAX)
                    && (3..6).all(|k| (0.0..=EXTENT_MAX).contains(&float(row, k * 4)))
                    && (0.9..1.1).contains(&length)
            })
}

/// Reads a `.splat`.
///
/// # Errors
/// The size is no multiple of 32.
pub(crate) fn read(bytes: &[u8], at: &Place, progress: Progress<'_>) -> Result<FileSplats, Error> {
    let (rows, rest) = bytes.as_chunks::<ROW_BYTES>();
    if !rest.is_empty() {
        return Err(at.truncated(
            &format!(".splat row {} of {ROW_BYTES} bytes", rows.len()),
            ROW_BYTES as u64,
            rest.len() as u64,
        ));
    }
    let splats = rows::fill(rows.len(), 0, progress, |index, _| {
        decode(rows.get(index).unwrap_or(&[0; ROW_BYTES]))
    });
    Ok(FileSplats {
        splats,
        ..FileSplats::default()
    })
}

/// Writes rows that are x right, y down, z forward. Returns what is lost.
pub(crate) fn write(
    splats: &Splats,
    out: &mut dyn Write,
    at: &Place,
    progress: Progress<'_>,
) -> Result<Vec<String>, Error> {
    let mut lost = vec![
        "colours and opacities are rounded to 8 bits, rotations to 8 bits a component".to_owned(),
    ];
    if splats.sh_degree > 0 {
        lost.push(format!(
            "view-dependent colour (degree {}) cannot be stored",
            splats.sh_degree
        ));
    }
    if splats.antialiased {
        lost.push("the mark for antialias compensation cannot be stored".to_owned());
    }
    let byte = |unit: f32| (unit * 255.0).round().clamp(0.0, 255.0) as u8;
    let count = splats.len();
    let rows = splats
        .means
        .iter()
        .zip(&splats.log_scales)
        .zip(&splats.rotations)
        .zip(&splats.opacities)
        .zip(&splats.dc);
    for (index, ((((mean, log_scale), rotation), opacity), dc)) in rows.enumerate() {
        let mut row = [0_u8; ROW_BYTES];
        let floats = mean
            .to_array()
            .into_iter()
            .chain(log_scale.map(f32::exp).to_array());
        let colour = (*dc * sh::SH_C0 + 0.5)
            .extend(*opacity)
            .to_array()
            .map(byte);
        let turn = [rotation.w, rotation.x, rotation.y, rotation.z].map(|c| byte(c * 0.5 + 0.5));
        let bytes = floats.flat_map(f32::to_le_bytes).chain(colour).chain(turn);
        row.iter_mut()
            .zip(bytes)
            .for_each(|(slot, value)| *slot = value);
        out.write_all(&row).map_err(|e| at.io("writing", &e))?;
        if index % 65_536 == 0 {
            progress(index as f32 / count as f32);
        }
    }
    Ok(lost)
}
