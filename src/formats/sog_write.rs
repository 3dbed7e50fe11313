//! Writes bundled SOG 2: a zip, not compressed, of lossless WebP images and `meta.json` last.
//!
//! Rows keep their order, so a splat keeps its index (the reference writer sorts them along a
//! Morton curve, which compresses better). Scales, colours and SH each go through a codebook of 256
//! values; SH through a palette of whole rows before that. All choices are deterministic.
//!
//! Source: the SOG specification of the PlayCanvas developer site. Codebooks: Lloyd 1982, started
//! at the cube root of the density (Panter and Dite 1951); palette: Linde, Buzo and Gray 1980,
//! started by splitting at means.

use super::rows::all_or_first_error;
use super::sog::PALETTE_COLUMNS;
use super::{Error, Place, Progress};
use crate::scene::{Splats, sh};
use glam::{Quat, Vec3};
use image_webp::{ColorType, WebPEncoder};
use rayon::prelude::*;
use serde_json::json;
use std::collections::BinaryHeap;
use std::f32::consts::SQRT_2;
use std::io::{Cursor, Write};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// Longest side of a WebP.
const SIDE_MAX: usize = 16_383;
/// Values of a codebook.
const CODES: usize = 256;
/// Rounds of the one-dimensional refinement; the error changes by under 1 % after ten.
const CODEBOOK_ROUNDS: usize = 16;
/// Bins of the density that places the first codes.
const DENSITY_BINS: usize = 4096;
/// Rounds of the palette's refinement.
const PALETTE_ROUNDS: usize = 4;
/// Multiplications that the palette's refinement may take, some ten seconds on two cores; larger
/// scenes keep the palette that splitting gives.
const PALETTE_WORK_MAX: usize = 40_000_000_000;
/// Smallest log-scale that is written: a thinner splat cannot be told from a flat one.
const LOG_SCALE_MIN: f32 = -30.0;
/// Largest log-scale that is written.
const LOG_SCALE_MAX: f32 = 30.0;

/// Writes `splats` (in x right, y down, z forward) and says what is lost.
pub(crate) fn write(
    splats: &Splats,
    out: &mut dyn Write,
    at: &Place,
    progress: Progress<'_>,
) -> Result<Vec<String>, Error> {
    let count = splats.len();
    // Multiples of four, as the reference writer has them.
    let width = ((count as f64).sqrt() / 4.0).ceil().max(1.0) as usize * 4;
    let height = count.div_ceil(width).div_ceil(4).max(1) * 4;
    if width > SIDE_MAX || height > SIDE_MAX {
        return Err(at.too_large(format!(
            "{count} splats, a SOG image holds at most {SIDE_MAX} by {SIDE_MAX}"
        )));
    }
    let drawable: Vec<bool> = (0..count)
        .into_par_iter()
        .map(|i| splats.is_drawable(i))
        .collect();
    let mut lost = Vec::new();
    let hidden = drawable.iter().filter(|d| !**d).count();
    if hidden > 0 {
        lost.push(format!(
            "{hidden} rows have values that are not finite; they are written invisible"
        ));
    }

    let plane = |texel: &(dyn Fn(usize) -> [u8; 4] + Sync)| Plane {
        width,
        height,
        texels: texels(width * height, count, texel),
    };
    let (min, span) = log_bounds(splats, &drawable);
    let q16 = |i: usize| {
        let v = log_position(if drawable[i] {
            splats.means[i]
        } else {
            Vec3::ZERO
        });
        ((v - min) / span * 65_535.0)
            .round()
            .clamp(Vec3::ZERO, Vec3::splat(65_535.0))
            .to_array()
            .map(|v| v as u16)
    };
    let mut planes = vec![
        (
            "means_l.webp",
            plane(&|i| {
                let [x, y, z] = q16(i).map(|v| v as u8);
                [x, y, z, 255]
            }),
        ),
        (
            "means_u.webp",
            plane(&|i| {
                let [x, y, z] = q16(i).map(|v| (v >> 8) as u8);
                [x, y, z, 255]
            }),
        ),
        ("quats.webp", plane(&|i| pack_rotation(splats.rotations[i]))),
    ];
    progress(0.1);

    let log_scale = |v: f32| v.clamp(LOG_SCALE_MIN, LOG_SCALE_MAX);
    let scales = Codebook::new(
        finite(&splats.log_scales, &drawable)
            .map(log_scale)
            .collect(),
    );
    planes.push((
        "scales.webp",
        plane(&|i| {
            let [x, y, z] = splats.log_scales[i]
                .to_array()
                .map(|v| scales.code(log_scale(v)));
            [x, y, z, 255]
        }),
    ));
    let colours = Codebook::new(finite(&splats.dc, &drawable).collect());
    planes.push((
        "sh0.webp",
        plane(&|i| {
            let [r, g, b] = splats.dc[i].to_array().map(|v| colours.code(v));
            let alpha = if drawable[i] {
                splats.opacities[i] * 255.0
            } else {
                0.0
            };
            [r, g, b, alpha.round() as u8]
        }),
    ));
    progress(0.3);

    let mut meta = json!({
        "version": 2,
        "asset": { "generator": concat!("splatstage ", env!("CARGO_PKG_VERSION")) },
        "count": count,
        "means": {
            "mins": min.to_array(),
            "maxs": (min + span).to_array(),
            "files": ["means_l.webp", "means_u.webp"],
        },
        "scales": { "codebook": scales.0, "files": ["scales.webp"] },
        "quats": { "files": ["quats.webp"] },
        "sh0": { "codebook": colours.0, "files": ["sh0.webp"] },
    });
    if splats.antialiased {
        meta["model"] = json!("antialiased");
    }
    let mut kept = String::new();
    if splats.sh_degree > 0 && count > 0 {
        let palette = Palette::new(splats, &drawable, progress);
        let entries = palette.centroids.len() / splats.sh_stride();
        let codes = Codebook::new(palette.centroids.clone());
        planes.push((
            "shN_centroids.webp",
            palette.plane(splats.sh_degree, &codes),
        ));
        planes.push((
            "shN_labels.webp",
            plane(&|i| {
                let [low, high] = (palette.labels[i] as u16).to_le_bytes();
                [low, high, 0, 255]
            }),
        ));
        meta["shN"] = json!({
            "count": entries,
            "bands": splats.sh_degree,
            "codebook": codes.0,
            "files": ["shN_centroids.webp", "shN_labels.webp"],
        });
        kept = format!(", higher SH coefficients a palette of {entries} rows");
    }
    progress(0.7);
    lost.push(format!(
        "positions are kept to 1/65535 of the scene's size on a logarithmic scale, rotations to \
         0.8 degrees, opacities to 8 bits; scales and colours share 256 values each{kept}"
    ));

    let bytes = bundle(&planes, &meta).map_err(|e| at.io("packing the SOG", &e))?;
    out.write_all(&bytes).map_err(|e| at.io("writing", &e))?;
    progress(1.0);
    Ok(lost)
}

/// An RGBA image.
struct Plane {
    width: usize,
    height: usize,
    texels: Vec<u8>,
}

/// Zips the images and, last, their `meta.json`.
fn bundle(planes: &[(&str, Plane)], meta: &serde_json::Value) -> std::io::Result<Vec<u8>> {
    let images = all_or_first_error(planes.par_iter().map(|(_, plane)| {
        let mut bytes = Vec::new();
        WebPEncoder::new(&mut bytes)
            .encode(
                &plane.texels,
                plane.width as u32,
                plane.height as u32,
                ColorType::Rgba8,
            )
            .map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(bytes)
    }))?;
    // Not compressed: the images are already, and readers can lend the bytes out as they are.
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for ((name, _), image) in planes.iter().zip(&images) {
        zip.start_file(*name, options)?;
        zip.write_all(image)?;
    }
    zip.start_file("meta.json", options)?;
    zip.write_all(&serde_json::to_vec(meta)?)?;
    Ok(zip.finish()?.into_inner())
}

fn texels(texels: usize, count: usize, texel: &(dyn Fn(usize) -> [u8; 4] + Sync)) -> Vec<u8> {
    let mut bytes = vec![0; texels * 4];
    bytes
        .par_chunks_exact_mut(4)
        .take(count)
        .enumerate()
        .for_each(|(i, out)| out.copy_from_slice(&texel(i)));
    bytes
}

/// Components of the drawable rows.
fn finite<'a>(rows: &'a [Vec3], drawable: &'a [bool]) -> impl Iterator<Item = f32> + 'a {
    rows.iter()
        .zip(drawable)
        .filter(|(_, drawable)| **drawable)
        .flat_map(|(row, _)| row.to_array())
}

/// The logarithmic domain that positions are stored in.
fn log_position(p: Vec3) -> Vec3 {
    Vec3::from_array(p.to_array().map(|v| v.abs().ln_1p().copysign(v)))
}

/// Smallest value and span per axis in the logarithmic domain; a span is never zero.
fn log_bounds(splats: &Splats, drawable: &[bool]) -> (Vec3, Vec3) {
    let mut bounds: Option<(Vec3, Vec3)> = None;
    for (p, _) in splats.means.iter().zip(drawable).filter(|(_, d)| **d) {
        let v = log_position(*p);
        let (low, high) = bounds.unwrap_or((v, v));
        bounds = Some((low.min(v), high.max(v)));
    }
    let (low, high) = bounds.unwrap_or((Vec3::ZERO, Vec3::ZERO));
    let span = high - low;
    let one = Vec3::from_array(span.to_array().map(|s| if s > 0.0 { s } else { 1.0 }));
    (low, one)
}

/// Three smallest components and 252 + the index of the largest among w, x, y, z.
fn pack_rotation(q: Quat) -> [u8; 4] {
    let unit = q.normalize();
    let q = if unit.is_finite() {
        unit
    } else {
        Quat::IDENTITY
    };
    let wxyz = [q.w, q.x, q.y, q.z];
    let largest = (1..4).fold(0, |l, i| if wxyz[i].abs() > wxyz[l].abs() { i } else { l });
    let sign = if wxyz[largest] < 0.0 { -1.0 } else { 1.0 };
    let mut texel = [0, 0, 0, 252 + largest as u8];
    let others = (0..4).filter(|i| *i != largest);
    for (out, i) in texel.iter_mut().zip(others) {
        *out = ((wxyz[i] * sign * SQRT_2 + 1.0) * 127.5).round() as u8;
    }
    texel
}

/// 256 ascending values.
struct Codebook(Vec<f32>);

impl Codebook {
    /// Values for `samples` (finite): the samples themselves while there are no more than 256
    /// different ones, else those of least squared error that Lloyd's rounds find.
    fn new(mut samples: Vec<f32>) -> Self {
        samples.par_sort_unstable_by(f32::total_cmp);
        let mut distinct: Vec<f32> = Vec::new();
        for &value in &samples {
            if distinct.last() != Some(&value) {
                distinct.push(value);
                if distinct.len() > CODES {
                    return Self::refined(&samples);
                }
            }
        }
        let last = distinct.last().copied().unwrap_or(0.0);
        distinct.resize(CODES, last);
        Self(distinct)
    }

    fn refined(sorted: &[f32]) -> Self {
        let mut codes = first_codes(sorted);
        let mut sums = vec![0.0_f64; sorted.len() + 1];
        for (i, value) in sorted.iter().enumerate() {
            sums[i + 1] = sums[i] + f64::from(*value);
        }
        for _ in 0..CODEBOOK_ROUNDS {
            let mut start = 0;
            for k in 0..CODES {
                let end = match codes.get(k + 1) {
                    Some(next) => {
                        let border = 0.5 * (codes[k] + next);
                        sorted.partition_point(|v| *v < border)
                    }
                    None => sorted.len(),
                };
                if end > start {
                    codes[k] = ((sums[end] - sums[start]) / (end - start) as f64) as f32;
                }
                start = end.max(start);
            }
        }
        codes.sort_unstable_by(f32::total_cmp);
        Self(codes)
    }

    /// The index of the value nearest to `value`.
    fn code(&self, value: f32) -> u8 {
        let above = self.0.partition_point(|code| *code < value).min(CODES - 1);
        let below = above.saturating_sub(1);
        if value - self.0[below] < self.0[above] - value {
            below as u8
        } else {
            above as u8
        }
    }
}

/// Codes spaced by the cube root of the density, which is the best spacing for many codes.
fn first_codes(sorted: &[f32]) -> Vec<f32> {
    let (low, high) = (
        f64::from(sorted.first().copied().unwrap_or(0.0)),
        f64::from(sorted.last().copied().unwrap_or(0.0)),
    );
    let step = (high - low) / DENSITY_BINS as f64;
    let mut cumulated = vec![0.0_f64; DENSITY_BINS + 1];
    let mut start = 0;
    for bin in 0..DENSITY_BINS {
        let edge = low + (bin + 1) as f64 * step;
        let end = if bin + 1 == DENSITY_BINS {
            sorted.len()
        } else {
            sorted.partition_point(|v| f64::from(*v) <= edge)
        };
        cumulated[bin + 1] = cumulated[bin] + ((end - start) as f64).cbrt();
        start = end;
    }
    let total = cumulated[DENSITY_BINS];
    (0..CODES)
        .map(|k| {
            let wanted = (k as f64 + 0.5) / CODES as f64 * total;
            let bin = cumulated
                .partition_point(|c| *c < wanted)
                .clamp(1, DENSITY_BINS);
            let (before, after) = (cumulated[bin - 1], cumulated[bin]);
            let part = (wanted - before) / (after - before).max(f64::MIN_POSITIVE);
            (low + (bin as f64 - 1.0 + part) * step) as f32
        })
        .collect()
}

/// Rows of higher coefficients that stand for all splats'.
struct Palette {
    /// Entries one after another, coefficient-major, channel inner.
    centroids: Vec<f32>,
    /// Entry of each splat.
    labels: Vec<u32>,
}

/// A set of splats that share an entry, ordered by its squared error.
struct Cell {
    error: f64,
    members: Vec<u32>,
    mean: Vec<f32>,
    /// Component of largest variance.
    widest: usize,
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Cell {}
impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Cell {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Cells never share a member, so their first members settle a tie the same way each time.
        self.error
            .total_cmp(&other.error)
            .then_with(|| other.members.first().cmp(&self.members.first()))
    }
}

impl Palette {
    /// The palette has as many entries as the reference writer's: 1,024 per doubling up to 65,536.
    fn new(splats: &Splats, drawable: &[bool], progress: Progress<'_>) -> Self {
        let count = splats.len();
        let stride = splats.sh_stride();
        let entries = match count / 1024 {
            0 => count,
            thousands => 1024 << thousands.ilog2().min(6),
        };
        let rest = |i: u32| splats.sh_rest_of(i as usize);
        let members = (0..count as u32)
            .filter(|i| drawable[*i as usize])
            .collect();
        let mut cells = BinaryHeap::from([Cell::new(members, stride, &rest)]);
        while cells.len() < entries {
            let Some(cell) = cells.pop() else { break };
            if cell.error <= 0.0 {
                cells.push(cell);
                break;
            }
            let border = cell.mean[cell.widest];
            let (low, high): (Vec<u32>, Vec<u32>) = cell
                .members
                .iter()
                .partition(|i| rest(**i)[cell.widest] < border);
            if low.is_empty() || high.is_empty() {
                // Rounding put the mean on the edge: the cell is as small as it gets.
                cells.push(Cell { error: 0.0, ..cell });
                continue;
            }
            cells.push(Cell::new(low, stride, &rest));
            cells.push(Cell::new(high, stride, &rest));
        }
        progress(0.5);
        let mut labels = vec![0; count];
        let mut centroids = Vec::with_capacity(cells.len() * stride);
        for (k, cell) in cells.into_sorted_vec().into_iter().enumerate() {
            for i in &cell.members {
                labels[*i as usize] = k as u32;
            }
            centroids.extend(cell.mean);
        }
        let mut palette = Self { centroids, labels };
        if count * palette.centroids.len() * PALETTE_ROUNDS <= PALETTE_WORK_MAX {
            for _ in 0..PALETTE_ROUNDS {
                palette.refine(splats, drawable);
            }
        }
        palette
    }

    /// One round of Lloyd's: each splat to its nearest entry, each entry to its splats' mean.
    fn refine(&mut self, splats: &Splats, drawable: &[bool]) {
        let stride = splats.sh_stride();
        let centroids = &self.centroids;
        self.labels
            .par_iter_mut()
            .enumerate()
            .for_each(|(i, label)| {
                if !drawable[i] {
                    return;
                }
                let row = splats.sh_rest_of(i);
                let distance = |entry: &[f32]| -> f32 {
                    entry.iter().zip(row).map(|(a, b)| (a - b) * (a - b)).sum()
                };
                let own = *label as usize * stride;
                let mut least = distance(&centroids[own..own + stride]);
                for (k, entry) in centroids.chunks_exact(stride).enumerate() {
                    let d = distance(entry);
                    if d < least {
                        (least, *label) = (d, k as u32);
                    }
                }
            });
        let mut sums = vec![0.0_f64; self.centroids.len()];
        let mut counts = vec![0_u32; self.centroids.len() / stride];
        for (i, label) in self.labels.iter().enumerate().filter(|(i, _)| drawable[*i]) {
            counts[*label as usize] += 1;
            let first = *label as usize * stride;
            for (sum, c) in sums[first..first + stride]
                .iter_mut()
                .zip(splats.sh_rest_of(i))
            {
                *sum += f64::from(*c);
            }
        }
        for (k, entry) in self.centroids.chunks_exact_mut(stride).enumerate() {
            if counts[k] > 0 {
                for (c, sum) in entry.iter_mut().zip(&sums[k * stride..]) {
                    *c = (sum / f64::from(counts[k])) as f32;
                }
            }
        }
    }

    /// The centroid image: 64 entries a row, a texel a coefficient.
    fn plane(&self, degree: u8, codes: &Codebook) -> Plane {
        let width = PALETTE_COLUMNS * sh::rest_count(degree);
        let texels_used = self.centroids.len() / 3;
        let height = texels_used.div_ceil(width).max(1);
        let texel = |i: usize| {
            let [r, g, b] = [0, 1, 2].map(|c| codes.code(self.centroids[3 * i + c]));
            [r, g, b, 255]
        };
        Plane {
            width,
            height,
            texels: texels(width * height, texels_used, &texel),
        }
    }
}

impl Cell {
    fn new<'a>(members: Vec<u32>, stride: usize, rest: &impl Fn(u32) -> &'a [f32]) -> Self {
        let (mut sums, mut squares) = (vec![0.0_f64; stride], vec![0.0_f64; stride]);
        for i in &members {
            for ((sum, square), c) in sums.iter_mut().zip(&mut squares).zip(rest(*i)) {
                *sum += f64::from(*c);
                *square += f64::from(*c) * f64::from(*c);
            }
        }
        let n = (members.len() as f64).max(1.0);
        let mut error = 0.0;
        let mut widest = (0, -1.0);
        for (k, (sum, square)) in sums.iter().zip(&squares).enumerate() {
            // Differences of sums round to a little above zero for equal rows: cut that off.
            let spread = square - sum * sum / n;
            let spread = if spread > 1e-12 * square { spread } else { 0.0 };
            error += spread;
            if spread > widest.1 {
                widest = (k, spread);
            }
        }
        Self {
            error,
            mean: sums.iter().map(|sum| (sum / n) as f32).collect(),
            widest: widest.0,
            members,
        }
    }
}
