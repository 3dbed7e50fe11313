//! SPZ 1 to 4: quantised splats, in one gzip stream (1 to 3) or one zstd stream a field (4).
//!
//! Reads and writes bytes in memory. Stored axes are x right, y up, z back (RUB) unless the
//! coordinate-system extension names others; some exporters store another space without saying so,
//! which only the `--axes` override can mend. A body without its gzip wrapper is read too.
//! The writer uses version 4, all 8 bits of the SH bytes (the format's own library keeps 5 or 4 to
//! compress better) and as many fractional bits of the positions as the scene's size leaves.
//!
//! Source: <https://github.com/nianticlabs/spz> (`load-spz.cc`, `splat-types.h`,
//! `extensions/README.md`).

use super::bytes::Cursor;
use super::container::{INFLATE_FLOOR_BYTES, INFLATE_RATIO_MAX};
use super::rows::all_or_first_error;
use super::values::unit_quaternion;
use super::{Error, FileSplats, Place, Progress};
use crate::scene::{Axes, Splats, sh};
use glam::{Quat, Vec3};
use half::f16;
use rayon::prelude::*;
use std::f32::consts::FRAC_1_SQRT_2;
use std::io::{Read, Write};

/// `NGSP`, little endian.
const MAGIC: u32 = 0x5053_474e;
/// Header of a body in gzip.
const HEADER_BYTES: u64 = 16;
/// Header of version 4.
const HEADER_4_BYTES: u64 = 32;
/// Most points: the library counts them in an i32.
const POINTS_MAX: u64 = i32::MAX as u64;
/// Most bytes of extension records.
const EXTENSIONS_BYTES_MAX: u64 = 1 << 20;
/// The file was trained with antialias compensation.
const FLAG_ANTIALIASED: u8 = 1;
/// Extension records follow.
const FLAG_EXTENSIONS: u8 = 2;
/// Record that names the stored axes (Adobe's vendor id, third extension).
const EXTENSION_AXES: u32 = 0xADBE_0003;
/// Stored colour per unit of the band 0 coefficient.
const COLOUR_SCALE: f32 = 0.15;
/// The library's axis conventions in the order of its enum, from 1 on.
const CONVENTIONS: [&str; 16] = [
    "LDB", "RDB", "LUB", "RUB", "LDF", "RDF", "LUF", "RUF", "LFD", "RFD", "LFU", "RFU", "LBD",
    "RBD", "LBU", "RBU",
];
/// Most bits behind the binary point of a 24-bit position that make sense.
const FRACTIONAL_BITS_MAX: u8 = 24;
/// Most that are written: a step of a micrometre, finer than anything that is drawn.
const FRACTIONAL_BITS_WRITTEN_MAX: i32 = 20;
/// Largest stored coordinate.
const POSITION_MAX: f64 = 8_388_607.0;
/// Largest magnitude of a stored quaternion component.
const COMPONENT_MAX: f32 = 511.0;
/// zstd level of the writer: beyond it files shrink by under 2 % at several times the time.
const ZSTD_LEVEL: i32 = 9;
/// Splats that one task unpacks.
const ROWS_PER_TASK: usize = 1 << 13;

/// What both headers say.
struct Header {
    version: u32,
    points: u64,
    degree: u8,
    fractional_bits: u8,
    flags: u8,
}

/// The fields' bytes, one after another per point.
struct Fields<'a> {
    positions: &'a [u8],
    alphas: &'a [u8],
    colours: &'a [u8],
    scales: &'a [u8],
    rotations: &'a [u8],
    higher: &'a [u8],
}

/// Names of the fields in stored order, for messages.
const FIELD_NAMES: [&str; 6] = ["positions", "alphas", "colors", "scales", "rotations", "sh"];

impl Header {
    fn read(cursor: &mut Cursor<'_>, file_bytes: u64, at: &Place) -> Result<Self, Error> {
        let magic = cursor.u32("the header")?;
        if magic != MAGIC {
            return Err(at.malformed(format!("starts with {magic:#010x}, expected NGSP of SPZ")));
        }
        let header = Self {
            version: cursor.u32("the header")?,
            points: u64::from(cursor.u32("the header")?),
            degree: cursor.u8("the header")?,
            fractional_bits: cursor.u8("the header")?,
            flags: cursor.u8("the header")?,
        };
        if !(1..=4).contains(&header.version) {
            return Err(at.unsupported_version(format!(
                "version {} of SPZ is not known here, expected 1 to 4",
                header.version
            )));
        }
        if header.degree > 4 {
            return Err(at.malformed(format!(
                "SH degree {} is out of range, expected 0 to 4",
                header.degree
            )));
        }
        if header.fractional_bits > FRACTIONAL_BITS_MAX {
            return Err(at.malformed(format!(
                "{} fractional bits of a 24-bit position, expected at most {FRACTIONAL_BITS_MAX}",
                header.fractional_bits
            )));
        }
        // zstd packs a run of one byte tens of thousands to one, so a small file can claim, and
        // hold, far more than a machine has; real ones come to 1.5 to 5.
        let unpacked = header.field_bytes().iter().sum::<u64>() * header.points;
        let backed = (file_bytes * INFLATE_RATIO_MAX).max(INFLATE_FLOOR_BYTES);
        if header.points > POINTS_MAX || unpacked > backed {
            return Err(at.too_large(format!(
                "the header says {} points, more than a file of {file_bytes} bytes may hold",
                header.points
            )));
        }
        Ok(header)
    }

    /// Bytes of each field for one point.
    fn field_bytes(&self) -> [u64; 6] {
        let position = if self.version == 1 { 6 } else { 9 };
        let rotation = if self.version < 3 { 3 } else { 4 };
        let higher = 3 * sh::rest_count(self.degree) as u64;
        [position, 1, 3, 3, rotation, higher]
    }
}

/// Reads a file of any version.
pub(crate) fn read(bytes: &[u8], at: &Place, progress: Progress<'_>) -> Result<FileSplats, Error> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let body = inflate(bytes, at)?;
        progress(0.5);
        return read_body(&body, bytes.len() as u64, at, progress);
    }
    let header = Header::read(&mut Cursor::new(bytes, at), bytes.len() as u64, at)?;
    if header.version == 4 {
        read_4(bytes, &header, at, progress)
    } else {
        read_body(bytes, bytes.len() as u64, at, progress)
    }
}

/// Unpacks gzip, no further than its own header promises.
fn inflate(bytes: &[u8], at: &Place) -> Result<Vec<u8>, Error> {
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => at.error(
            super::Code::Truncated,
            "the gzip stream ends early; the file is cut short",
        ),
        _ => at.malformed(format!("the gzip stream is damaged: {e}")),
    };
    let mut decoder = flate2::bufread::GzDecoder::new(bytes);
    let mut body = Vec::new();
    decoder
        .by_ref()
        .take(HEADER_BYTES)
        .read_to_end(&mut body)
        .map_err(failed)?;
    let header = Header::read(&mut Cursor::new(&body, at), bytes.len() as u64, at)?;
    let fields: u64 = header.field_bytes().iter().sum::<u64>() * header.points;
    let extensions = if header.flags & FLAG_EXTENSIONS == 0 {
        0
    } else {
        EXTENSIONS_BYTES_MAX
    };
    // One byte more, to see whether the stream goes on; the buffer grows with what arrives.
    decoder
        .by_ref()
        .take(fields + extensions + 1)
        .read_to_end(&mut body)
        .map_err(failed)?;
    if body.len() as u64 > HEADER_BYTES + fields + extensions {
        return Err(at.malformed(format!(
            "the gzip stream goes on after the {fields} bytes of its {} points",
            header.points
        )));
    }
    match decoder.into_inner() {
        [] => Ok(body),
        rest => Err(at.malformed(format!("{} bytes follow the gzip stream", rest.len()))),
    }
}

/// Reads the body of versions 1 to 3.
fn read_body(
    body: &[u8],
    file_bytes: u64,
    at: &Place,
    progress: Progress<'_>,
) -> Result<FileSplats, Error> {
    let mut cursor = Cursor::new(body, at);
    let header = Header::read(&mut cursor, file_bytes, at)?;
    if header.version > 3 {
        return Err(at.malformed("version 4 inside gzip; it has a container of its own"));
    }
    cursor.u8("the header")?;
    let sizes = header.field_bytes();
    let mut field = |i: usize| cursor.take(sizes[i] * header.points, FIELD_NAMES[i]);
    let fields = Fields {
        positions: field(0)?,
        alphas: field(1)?,
        colours: field(2)?,
        scales: field(3)?,
        rotations: field(4)?,
        higher: field(5)?,
    };
    let rest = cursor.take(cursor.remaining(), "the rest")?;
    if header.flags & FLAG_EXTENSIONS == 0 && !rest.is_empty() {
        return Err(at.malformed(format!("{} bytes follow the last field", rest.len())));
    }
    let convention = read_extensions(rest, &header, at)?;
    unpack(&header, &fields, convention, at, progress)
}

/// Reads version 4, whose header is `header`.
fn read_4(
    bytes: &[u8],
    header: &Header,
    at: &Place,
    progress: Progress<'_>,
) -> Result<FileSplats, Error> {
    let mut cursor = Cursor::new(bytes, at);
    cursor.take(HEADER_BYTES - 1, "the header")?;
    let streams = u64::from(cursor.u8("the header")?);
    let table = u64::from(cursor.u32("the header")?);
    let needed = if header.degree == 0 { 5..=6 } else { 6..=6 };
    if !needed.contains(&streams) {
        return Err(at.malformed(format!(
            "{streams} streams, expected {} for SH degree {}",
            needed.start(),
            header.degree
        )));
    }
    let extensions = table.checked_sub(HEADER_4_BYTES).ok_or_else(|| {
        at.malformed(format!(
            "the stream table starts at byte {table}, inside the header of {HEADER_4_BYTES} bytes"
        ))
    })?;
    cursor.take(HEADER_4_BYTES - cursor.offset(), "the header")?;
    let extensions = cursor.take(extensions, "the extensions")?;
    let convention = read_extensions(extensions, header, at)?;
    let sizes = header.field_bytes();
    let mut entries = Vec::new();
    for (i, name) in FIELD_NAMES.iter().enumerate().take(streams as usize) {
        let packed = cursor.u64("the stream table")?;
        let unpacked = cursor.u64("the stream table")?;
        let expected = sizes[i] * header.points;
        if unpacked != expected {
            return Err(at.malformed(format!(
                "stream {name} is said to hold {unpacked} bytes, expected {expected} for {} \
                 points",
                header.points
            )));
        }
        entries.push((*name, packed, expected));
    }
    let mut packed = Vec::new();
    for (name, bytes, expected) in entries {
        packed.push((
            name,
            cursor.take(bytes, &format!("stream {name}"))?,
            expected,
        ));
    }
    if cursor.remaining() > 0 {
        return Err(at.malformed(format!(
            "{} bytes follow the last stream",
            cursor.remaining()
        )));
    }
    let streams = all_or_first_error(
        packed
            .into_par_iter()
            .map(|(name, bytes, expected)| decompress(name, bytes, expected, at)),
    )?;
    progress(0.5);
    let field = |i: usize| streams.get(i).map_or(&[][..], Vec::as_slice);
    let fields = Fields {
        positions: field(0),
        alphas: field(1),
        colours: field(2),
        scales: field(3),
        rotations: field(4),
        higher: field(5),
    };
    unpack(header, &fields, convention, at, progress)
}

/// Unpacks one zstd stream, which must hold exactly `expected` bytes.
fn decompress(name: &str, packed: &[u8], expected: u64, at: &Place) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if expected == 0 {
        return Ok(bytes);
    }
    let failed = |e: std::io::Error| at.malformed(format!("stream {name} is damaged: {e}"));
    // The buffer grows with what arrives, not with what the header says.
    zstd::stream::read::Decoder::with_buffer(packed)
        .map_err(failed)?
        .take(expected + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 == expected {
        Ok(bytes)
    } else {
        Err(at.malformed(format!(
            "stream {name} holds {} {} bytes, expected {expected}",
            if bytes.len() as u64 > expected {
                "over"
            } else {
                "only"
            },
            bytes.len().min(expected as usize)
        )))
    }
}

/// The convention that the extension records name, if one does.
fn read_extensions(
    records: &[u8],
    header: &Header,
    at: &Place,
) -> Result<Option<&'static str>, Error> {
    let mut convention = None;
    if header.flags & FLAG_EXTENSIONS == 0 {
        return Ok(convention);
    }
    let mut cursor = Cursor::new(records, at);
    while cursor.remaining() > 0 {
        let kind = cursor.u32("an extension record")?;
        let length = u64::from(cursor.u32("an extension record")?);
        let mut payload = Cursor::new(cursor.take(length, "an extension record")?, at);
        if kind == EXTENSION_AXES {
            let value = payload.u32("the coordinate-system extension")?;
            convention = match value {
                0 => None,
                _ => Some(*CONVENTIONS.get(value as usize - 1).ok_or_else(|| {
                    at.malformed(format!(
                        "coordinate system {value} is out of range, expected 0 to {}",
                        CONVENTIONS.len()
                    ))
                })?),
            };
        }
    }
    Ok(convention)
}

fn unpack(
    header: &Header,
    fields: &Fields<'_>,
    convention: Option<&'static str>,
    at: &Place,
    progress: Progress<'_>,
) -> Result<FileSplats, Error> {
    let degree = header.degree.min(sh::DEGREE_MAX);
    let mut warnings = Vec::new();
    if header.degree > degree {
        warnings.push(format!(
            "the file holds SH degree {}, drawn up to degree {degree}",
            header.degree
        ));
    }
    let scale = (-f32::from(header.fractional_bits)).exp2();
    let mut splats = Splats {
        means: if header.version == 1 {
            rows::<6, _>(fields.positions, |b| {
                Vec3::from_array([0, 2, 4].map(|i| f16::from_le_bytes([b[i], b[i + 1]]).to_f32()))
            })
        } else {
            rows::<9, _>(fields.positions, |b| {
                Vec3::from_array([0, 3, 6].map(|i| signed_24([b[i], b[i + 1], b[i + 2]]) * scale))
            })
        },
        log_scales: rows::<3, _>(fields.scales, |b| {
            Vec3::from_array(b.map(|b| f32::from(b) / 16.0 - 10.0))
        }),
        rotations: if header.version < 3 {
            rows::<3, _>(fields.rotations, first_three)
        } else {
            rows::<4, _>(fields.rotations, |b| smallest_three(u32::from_le_bytes(*b)))
        },
        opacities: rows::<1, _>(fields.alphas, |b| f32::from(b[0]) / 255.0),
        dc: rows::<3, _>(fields.colours, |b| {
            Vec3::from_array(b.map(|b| (f32::from(b) / 255.0 - 0.5) / COLOUR_SCALE))
        }),
        sh_degree: degree,
        sh_rest: higher(fields.higher, header.degree, degree),
        antialiased: header.flags & FLAG_ANTIALIASED != 0,
    };
    progress(0.9);
    let axes = match convention {
        None => None,
        Some(name) => Some(match name.parse::<Axes>() {
            Ok(axes) => axes,
            Err(_) => {
                let (axes, turned) = mirror(&mut splats, name, at)?;
                warnings.push(format!(
                    "the file is stored mirrored ({name}); its third axis is negated on reading, \
                     so that rows are in {turned}"
                ));
                axes
            }
        }),
    };
    splats
        .check_lengths()
        .map_err(|message| at.malformed(message))?;
    progress(1.0);
    Ok(FileSplats {
        splats,
        axes,
        version: Some(header.version.to_string()),
        sh_degree_in_file: header.degree,
        warnings,
        ..FileSplats::default()
    })
}

/// Every `N` bytes through `row`, in parallel.
fn rows<const N: usize, T: Send>(
    bytes: &[u8],
    row: impl Fn(&[u8; N]) -> T + Send + Sync,
) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks
        .par_iter()
        .with_min_len(ROWS_PER_TASK)
        .map(row)
        .collect()
}

/// Coefficients up to `degree` of a file of degree `stored`.
fn higher(bytes: &[u8], stored: u8, degree: u8) -> Vec<f32> {
    let (stored, kept) = (3 * sh::rest_count(stored), 3 * sh::rest_count(degree));
    if kept == 0 {
        return Vec::new();
    }
    let mut out = vec![0.0; bytes.len() / stored * kept];
    out.par_chunks_exact_mut(kept)
        .with_min_len(ROWS_PER_TASK)
        .zip(bytes.par_chunks_exact(stored))
        .for_each(|(out, bytes)| {
            for (value, byte) in out.iter_mut().zip(bytes) {
                *value = (f32::from(*byte) - 128.0) / 128.0;
            }
        });
    out
}

fn signed_24([a, b, c]: [u8; 3]) -> f32 {
    // Shifted down again by the arithmetic shift, which keeps the sign.
    (i32::from_le_bytes([0, a, b, c]) >> 8) as f32
}

/// Versions 1 and 2: x, y, z of a unit quaternion whose w is not negative.
fn first_three(bytes: &[u8; 3]) -> Quat {
    let [x, y, z] = bytes.map(|b| f32::from(b) / 127.5 - 1.0);
    let w = (1.0 - x * x - y * y - z * z).max(0.0).sqrt();
    unit_quaternion(w, x, y, z)
}

/// Versions 3 and 4: the index of the largest of x, y, z, w on top, below it the others from the
/// first (highest bits) to the last, each a sign and 9 bits.
fn smallest_three(mut packed: u32) -> Quat {
    let largest = (packed >> 30) as usize;
    let mut q = [0.0_f32; 4];
    let mut sum = 0.0;
    for i in (0..4).rev().filter(|i| *i != largest) {
        let magnitude = (packed & 511) as f32 / COMPONENT_MAX * FRAC_1_SQRT_2;
        q[i] = if packed & 512 == 0 {
            magnitude
        } else {
            -magnitude
        };
        sum += magnitude * magnitude;
        packed >>= 10;
    }
    q[largest] = (1.0 - sum).max(0.0).sqrt();
    unit_quaternion(q[3], q[0], q[1], q[2])
}

/// Turns rows of the left-handed convention `name` into the right-handed one that differs in the
/// third axis: z of the means, x and y of the rotations, and the odd functions of z change sign.
fn mirror(splats: &mut Splats, name: &str, at: &Place) -> Result<(Axes, String), Error> {
    let opposite = |letter| match letter {
        'F' => 'B',
        'B' => 'F',
        'U' => 'D',
        'D' => 'U',
        other => other,
    };
    let turned: String = name
        .chars()
        .enumerate()
        .map(|(i, letter)| if i == 2 { opposite(letter) } else { letter })
        .collect();
    let axes = turned.parse().map_err(|e: String| at.malformed(e))?;
    for p in &mut splats.means {
        p.z = -p.z;
    }
    for q in &mut splats.rotations {
        (q.x, q.y) = (-q.x, -q.y);
    }
    // Y_l^m is odd in z where l + m is; m runs from -l to l inside a band.
    let signs: Vec<f32> = (1..=i32::from(splats.sh_degree))
        .flat_map(|l| (-l..=l).map(move |m| if (l + m) % 2 == 0 { 1.0 } else { -1.0 }))
        .flat_map(|sign| [sign; 3])
        .collect();
    if !signs.is_empty() {
        for rest in splats.sh_rest.chunks_exact_mut(signs.len()) {
            for (value, sign) in rest.iter_mut().zip(&signs) {
                *value *= sign;
            }
        }
    }
    Ok((axes, turned))
}

/// Writes version 4; `splats` are in RUB.
pub(crate) fn write(
    splats: &Splats,
    out: &mut dyn Write,
    at: &Place,
    progress: Progress<'_>,
) -> Result<Vec<String>, Error> {
    let points = splats.len();
    if points as u64 > POINTS_MAX {
        return Err(at.too_large(format!("{points} splats, SPZ holds at most {POINTS_MAX}")));
    }
    let mut lost = Vec::new();
    let hidden = splats.count_non_finite();
    if hidden > 0 {
        lost.push(format!(
            "{hidden} rows have values that are not finite; they are written invisible at the \
             origin"
        ));
    }
    let drawable = |i: usize| splats.is_drawable(i);
    let reach = (0..points)
        .filter(|&i| drawable(i))
        .map(|i| f64::from(splats.means[i].abs().max_element()))
        .fold(0.0, f64::max);
    let fractional_bits = (0..=FRACTIONAL_BITS_WRITTEN_MAX)
        .rev()
        .find(|bits| reach * f64::from(*bits).exp2() <= POSITION_MAX)
        .unwrap_or(0);
    let step = f64::from(-fractional_bits).exp2();
    lost.push(format!(
        "positions are kept to {step:.1e} m, scales to 3 %, rotations to 0.2 degrees, colours and \
         opacities to 8 bits, higher SH coefficients to 1/128"
    ));
    let out_of = [
        (
            "positions beyond 8,388 km",
            count_rows(splats, |i| {
                f64::from(splats.means[i].abs().max_element())
                    > POSITION_MAX / f64::from(fractional_bits).exp2()
            }),
        ),
        (
            "scales outside 0.000045 to 380 m",
            count_rows(splats, |i| {
                let s = splats.log_scales[i];
                s.min_element() < -10.0 - 1.0 / 32.0 || s.max_element() > 5.94 + 1.0 / 32.0
            }),
        ),
        (
            "colours outside the stored range",
            count_rows(splats, |i| {
                splats.dc[i].abs().max_element() > 0.5 / COLOUR_SCALE + 0.014
            }),
        ),
        (
            "higher SH coefficients outside -1 to 1",
            count_rows(splats, |i| {
                splats.sh_rest_of(i).iter().any(|c| c.abs() > 1.0)
            }),
        ),
    ];
    for (what, count) in out_of {
        if count > 0 {
            lost.push(format!("{count} splats have {what}, which are clamped"));
        }
    }

    let scale = f64::from(fractional_bits).exp2();
    let fields: [Vec<u8>; 6] = [
        (0..points)
            .flat_map(|i| {
                let p = if drawable(i) {
                    splats.means[i]
                } else {
                    Vec3::ZERO
                };
                p.to_array().into_iter().flat_map(move |v| {
                    let fixed = (f64::from(v) * scale)
                        .round()
                        .clamp(-POSITION_MAX, POSITION_MAX);
                    let [a, b, c, _] = (fixed as i32).to_le_bytes();
                    [a, b, c]
                })
            })
            .collect(),
        (0..points)
            .map(|i| {
                if drawable(i) {
                    byte(splats.opacities[i] * 255.0)
                } else {
                    0
                }
            })
            .collect(),
        (0..points)
            .flat_map(|i| {
                splats.dc[i]
                    .to_array()
                    .map(|c| byte((c * COLOUR_SCALE + 0.5) * 255.0))
            })
            .collect(),
        (0..points)
            .flat_map(|i| {
                splats.log_scales[i]
                    .to_array()
                    .map(|s| byte((s + 10.0) * 16.0))
            })
            .collect(),
        (0..points)
            .flat_map(|i| pack_smallest_three(splats.rotations[i]).to_le_bytes())
            .collect(),
        splats
            .sh_rest
            .iter()
            .map(|c| byte(c * 128.0 + 128.0))
            .collect(),
    ];
    progress(0.3);
    let streams = if splats.sh_degree == 0 { 5 } else { 6 };
    let packed = all_or_first_error(fields[..streams].par_iter().map(
        |field| match field.as_slice() {
            [] => Ok(Vec::new()),
            bytes => zstd::bulk::compress(bytes, ZSTD_LEVEL),
        },
    ))
    .map_err(|e| at.io("compressing", &e))?;
    progress(0.9);
    let mut bytes = Vec::new();
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(4_u32.to_le_bytes());
    bytes.extend((points as u32).to_le_bytes());
    let flags = if splats.antialiased {
        FLAG_ANTIALIASED
    } else {
        0
    };
    bytes.extend([
        splats.sh_degree,
        fractional_bits as u8,
        flags,
        streams as u8,
    ]);
    bytes.extend((HEADER_4_BYTES as u32).to_le_bytes());
    bytes.resize(HEADER_4_BYTES as usize, 0);
    for (packed, field) in packed.iter().zip(&fields) {
        bytes.extend((packed.len() as u64).to_le_bytes());
        bytes.extend((field.len() as u64).to_le_bytes());
    }
    for stream in std::iter::once(&bytes).chain(&packed) {
        out.write_all(stream).map_err(|e| at.io("writing", &e))?;
    }
    progress(1.0);
    Ok(lost)
}

fn count_rows(splats: &Splats, odd: impl Fn(usize) -> bool) -> usize {
    (0..splats.len())
        .filter(|&i| splats.is_drawable(i) && odd(i))
        .count()
}

/// The nearest byte; what is not a number becomes 0.
fn byte(value: f32) -> u8 {
    // A float cast saturates at both ends.
    value.round() as u8
}

/// The inverse of [`smallest_three`]; what is not finite becomes the identity.
fn pack_smallest_three(q: Quat) -> u32 {
    let q = if q.is_finite() {
        q.normalize()
    } else {
        Quat::IDENTITY
    };
    let q = if q.is_finite() {
        q.to_array()
    } else {
        Quat::IDENTITY.to_array()
    };
    let largest = (1..4).fold(0, |l, i| if q[i].abs() > q[l].abs() { i } else { l });
    let negate = q[largest] < 0.0;
    let mut packed = largest as u32;
    for i in (0..4).filter(|i| *i != largest) {
        let magnitude = (COMPONENT_MAX * q[i].abs() / FRAC_1_SQRT_2)
            .round()
            .min(COMPONENT_MAX);
        let negative = u32::from((q[i] < 0.0) != negate);
        packed = packed << 10 | negative << 9 | magnitude as u32;
    }
    packed
}
