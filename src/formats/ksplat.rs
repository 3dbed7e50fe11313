//! mkkellogg's `.ksplat`: read, all three compression levels, several sections.
//!
//! A 4096-byte header, a 1024-byte header for each section, then the sections: lengths of partly
//! filled buckets, bucket centres, rows. Level 0 stores floats; levels 1 and 2 store positions as
//! 16 bits about their bucket's centre and the rest as halves, level 2 coefficients as bytes.
//! Scales are linear, rotations (w, x, y, z), coefficients channel-major within each band.
//! Source: mkkellogg/GaussianSplats3D, `SplatBuffer`. Space: x right, y down, z forward.

use super::bytes::Cursor;
use super::rows::{self, Row};
use super::values::unit_quaternion;
use super::{Error, FileSplats, Place, Progress};
use crate::scene::{Splats, sh};
use glam::Vec3;
use half::f16;

const HEADER_BYTES: u64 = 4096;
const SECTION_HEADER_BYTES: u64 = 1024;
/// Range of 8-bit coefficients in files that state none.
const SH_RANGE_DEFAULT: f32 = 1.5;

/// The file header.
struct Header {
    version: [u8; 2],
    sections_max: u32,
    level: u16,
    sh_min: f32,
    sh_max: f32,
}

/// One section with its bytes.
struct Section<'a> {
    count: u32,
    degree: u8,
    /// Rows in each bucket that is full.
    bucket_capacity: u32,
    full_buckets: u32,
    /// Row at which each partly filled bucket ends.
    partial_ends: Vec<u64>,
    centres: &'a [u8],
    /// Metres per step of a 16-bit position, and the step that is zero.
    step: f32,
    zero: f32,
    rows: &'a [u8],
    row_bytes: usize,
}

fn header(cursor: &mut Cursor<'_>, at: &Place) -> Result<Header, Error> {
    let whole = cursor.take(HEADER_BYTES, "the .ksplat header")?;
    let mut fields = Cursor::new(whole, at);
    let version = [fields.u8("version")?, fields.u8("version")?];
    if version[0] != 0 || version[1] == 0 {
        return Err(at.unsupported_version(format!(
            ".ksplat version {}.{}, expected 0.1 or a later 0.x",
            version[0], version[1]
        )));
    }
    fields.u16("padding")?;
    let sections_max = fields.u32("section count")?;
    fields.take(12, "counts")?;
    let level = fields.u16("compression level")?;
    if level > 2 {
        return Err(at.unsupported_version(format!(
            ".ksplat compression level {level}, expected 0, 1 or 2"
        )));
    }
    fields.take(14, "scene centre")?;
    let (sh_min, sh_max) = (fields.f32("SH minimum")?, fields.f32("SH maximum")?);
    let unset = sh_min == 0.0 && sh_max == 0.0;
    Ok(Header {
        version,
        sections_max,
        level,
        sh_min: if unset { -SH_RANGE_DEFAULT } else { sh_min },
        sh_max: if unset { SH_RANGE_DEFAULT } else { sh_max },
    })
}

fn section<'a>(
    head: &[u8],
    header: &Header,
    data: &mut Cursor<'a>,
    at: &Place,
) -> Result<Section<'a>, Error> {
    let mut fields = Cursor::new(head, at);
    let count = fields.u32("splat count")?;
    let count_max = fields.u32("splat capacity")?;
    let bucket_capacity = fields.u32("bucket capacity")?;
    let buckets = fields.u32("bucket count")?;
    let block_m = fields.f32("bucket block size")?;
    let bucket_bytes = fields.u16("bucket bytes")?;
    fields.u16("padding")?;
    let range = match fields.u32("quantisation range")? {
        0 if header.level == 0 => 1,
        0 => 32767,
        given => given,
    };
    fields.u32("padding")?;
    let full_buckets = fields.u32("full bucket count")?;
    let partial_buckets = fields.u32("partial bucket count")?;
    let degree = fields.u16("SH degree")?;
    let degree = u8::try_from(degree)
        .ok()
        .filter(|d| *d <= sh::DEGREE_MAX)
        .ok_or_else(|| at.malformed(format!("SH degree {degree}, expected 0 to 3")))?;
    if count > count_max {
        return Err(at.malformed(format!(
            "a section with {count} splats has room for {count_max}"
        )));
    }
    let coefficients = sh::rest_count(degree) * 3;
    let row_bytes = match header.level {
        0 => 44 + 4 * coefficients,
        1 => 24 + 2 * coefficients,
        _ => 24 + coefficients,
    };
    let lengths = data.take(u64::from(partial_buckets) * 4, "bucket lengths")?;
    let centres = data.take(
        u64::from(bucket_bytes) * u64::from(buckets),
        "bucket centres",
    )?;
    let rows = data.take(u64::from(count_max) * row_bytes as u64, "a section's rows")?;
    let mut end = u64::from(full_buckets) * u64::from(bucket_capacity);
    let partial_ends: Vec<u64> = lengths
        .as_chunks::<4>()
        .0
        .iter()
        .map(|length| {
            end += u64::from(u32::from_le_bytes(*length));
            end
        })
        .collect();
    if header.level > 0 {
        let covered = partial_ends.last().copied().unwrap_or(end);
        let used = u64::from(full_buckets) + u64::from(partial_buckets);
        if bucket_bytes != 12 || covered < u64::from(count) || used > u64::from(buckets) {
            return Err(at.malformed(format!(
                "{buckets} buckets of {bucket_bytes} bytes ({full_buckets} full, \
                 {partial_buckets} partial) cover {covered} of {count} splats"
            )));
        }
    }
    Ok(Section {
        count,
        degree,
        bucket_capacity,
        full_buckets,
        partial_ends,
        centres,
        step: block_m / 2.0 / range as f32,
        zero: range as f32,
        rows,
        row_bytes,
    })
}

impl Section<'_> {
    fn bucket_of(&self, row: usize) -> usize {
        let full = self.full_buckets as usize;
        let capacity = self.bucket_capacity as usize;
        // `checked_div`: a capacity of zero is a file whose buckets are all partial.
        match row.checked_div(capacity) {
            Some(bucket) if bucket < full => bucket,
            _ => full + self.partial_ends.partition_point(|end| *end <= row as u64),
        }
    }

    fn centre_of(&self, row: usize) -> Vec3 {
        let (centres, _) = self.centres.as_chunks::<12>();
        centres.get(self.bucket_of(row)).map_or(Vec3::NAN, |bytes| {
            let (floats, _) = bytes.as_chunks::<4>();
            let mut values = floats.iter().map(|b| f32::from_le_bytes(*b));
            Vec3::from_array([0; 3].map(|_| values.next().unwrap_or(f32::NAN)))
        })
    }

    fn decode(&self, row: usize, header: &Header, rest: &mut [f32]) -> Row {
        let start = row * self.row_bytes;
        let bytes = self
            .rows
            .get(start..start + self.row_bytes)
            .unwrap_or_default();
        let half = |first: usize| {
            bytes
                .get(first..)
                .and_then(|b| b.first_chunk())
                .map_or(f32::NAN, |b| f16::from_le_bytes(*b).to_f32())
        };
        let float = |first: usize| {
            bytes
                .get(first..)
                .and_then(|b| b.first_chunk())
                .map_or(f32::NAN, |b| f32::from_le_bytes(*b))
        };
        let offset = |first: usize| {
            let raw = bytes.get(first..).and_then(|b| b.first_chunk());
            raw.map_or(f32::NAN, |b| {
                (f32::from(u16::from_le_bytes(*b)) - self.zero) * self.step
            })
        };
        let byte = |first: usize| bytes.get(first).copied().unwrap_or(0);
        let (mean, scale, turn, colour_at);
        if header.level == 0 {
            mean = Vec3::new(float(0), float(4), float(8));
            scale = Vec3::new(float(12), float(16), float(20));
            turn = [24, 28, 32, 36].map(float);
            colour_at = 40;
        } else {
            mean = self.centre_of(row) + Vec3::new(offset(0), offset(2), offset(4));
            scale = Vec3::new(half(6), half(8), half(10));
            turn = [12, 14, 16, 18].map(half);
            colour_at = 20;
        }
        let [r, g, b, a] = [0, 1, 2, 3].map(|k| f32::from(byte(colour_at + k)) / 255.0);
        let first = colour_at + 4;
        for (index, out) in rest
            .iter_mut()
            .enumerate()
            .take(sh::rest_count(self.degree) * 3)
        {
            let k = channel_major_in_band(index);
            *out = match header.level {
                0 => float(first + 4 * k),
                1 => half(first + 2 * k),
                _ => {
                    let unit = f32::from(byte(first + k)) / 255.0;
                    header.sh_min + unit * (header.sh_max - header.sh_min)
                }
            };
        }
        let [w, x, y, z] = turn;
        Row {
            mean,
            log_scale: scale.map(f32::ln),
            rotation: unit_quaternion(w, x, y, z),
            opacity: a,
            dc: (Vec3::new(r, g, b) - 0.5) / sh::SH_C0,
        }
    }
}

/// Where the file keeps value `index` of our coefficient-major order: bands one after the other,
/// in each band all of red first.
fn channel_major_in_band(index: usize) -> usize {
    let (coefficient, channel) = (index / 3, index % 3);
    let (first, size) = match coefficient {
        0..3 => (0, 3),
        3..8 => (3, 5),
        _ => (8, 7),
    };
    first * 3 + channel * size + (coefficient - first)
}

/// True when the header and the section headers fit the number of bytes present.
pub(crate) fn is_plausible(bytes: &[u8]) -> bool {
    let at = Place::file("");
    sections(bytes, &at).is_ok_and(|(_, sections)| sections.iter().any(|s| s.count > 0))
}

fn sections<'a>(bytes: &'a [u8], at: &'a Place) -> Result<(Header, Vec<Section<'a>>), Error> {
    let mut heads = Cursor::new(bytes, at);
    let header = header(&mut heads, at)?;
    let heads_bytes = u64::from(header.sections_max) * SECTION_HEADER_BYTES;
    let heads = heads.take(heads_bytes, "the section headers")?;
    let data_start = (HEADER_BYTES + heads_bytes) as usize;
    let mut data = Cursor::new(bytes.get(data_start..).unwrap_or_default(), at);
    let mut sections = Vec::new();
    for head in heads.chunks_exact(SECTION_HEADER_BYTES as usize) {
        sections.push(section(head, &header, &mut data, at)?);
    }
    Ok((header, sections))
}

/// Reads a `.ksplat`.
///
/// # Errors
/// Unknown version, cut short, or section headers that contradict each other.
pub(crate) fn read(bytes: &[u8], at: &Place, progress: Progress<'_>) -> Result<FileSplats, Error> {
    let (header, sections) = sections(bytes, at)?;
    let degree = sections.iter().map(|s| s.degree).max().unwrap_or(0);
    // Section of each row, by the row at which it ends; every row is backed by bytes taken above.
    let mut total = 0;
    let ends: Vec<usize> = sections
        .iter()
        .map(|section| {
            total += section.count as usize;
            total
        })
        .collect();
    let splats: Splats = rows::fill(total, degree, progress, |row, rest| {
        let index = ends.partition_point(|end| *end <= row);
        let start = index
            .checked_sub(1)
            .and_then(|i| ends.get(i))
            .copied()
            .unwrap_or(0);
        match sections.get(index) {
            Some(section) => section.decode(row - start, &header, rest),
            None => Row::NOTHING,
        }
    });
    Ok(FileSplats {
        splats,
        version: Some(format!("{}.{}", header.version[0], header.version[1])),
        sh_degree_in_file: degree,
        ..FileSplats::default()
    })
}
