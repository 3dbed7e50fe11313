//! SOG 1 and 2 ("spatially ordered Gaussians"): a `meta.json` and lossless images, one texel a splat.
//!
//! Reads one unit from any [`Container`] (a folder, the zip of a `.sog`, memory) into rows of the
//! file's own space (x right, y down, z forward) in texel order. It does not write (see
//! [`super::sog_write`]) and knows nothing of levels of detail (see [`super::lod_meta`]).
//! Version 1 and 2 differ in how a byte becomes a number; here both become tables of 256 floats, so
//! that unpacking is one path. Images are decoded without premultiplying, since alpha is data.
//!
//! Source: the SOG specification of the PlayCanvas developer site, and for version 1 (which has no
//! `version` key) the loader of the PlayCanvas engine.

use super::container::clean_name;
use super::rows::all_or_first_error;
use super::{Code, Container, Error, FileSplats, Place, Progress};
use crate::scene::{Splats, sh};
use glam::{Quat, Vec3};
use rayon::prelude::*;
use serde_json::Value;
use std::borrow::Cow;
use std::f64::consts::FRAC_1_SQRT_2;
use std::io::Cursor;
use std::ops::Range;

/// Largest `meta.json`; three codebooks of 256 numbers take 16 kB.
const META_BYTES_MAX: u64 = 4 << 20;
/// Largest single image file.
const PLANE_BYTES_MAX: u64 = 1 << 30;
/// Most splats of one unit: the texels of the largest WebP.
const SPLATS_MAX: u64 = 16_383 * 16_383;
/// Splats that one byte of the images may stand for. Images compress without a bound (one colour
/// takes 60 bytes at any size), while real units hold 0.08 to 0.2 splats a byte.
const SPLATS_PER_BYTE_MAX: u64 = 32;
/// Splats that any unit may have, whatever its bytes: they take a few megabytes.
const SPLATS_FLOOR: u64 = 1 << 16;
/// Texels that an image may have beyond two for each splat: sides are rounded up, and writers
/// differ in how.
const TEXELS_SPARE: u64 = 1 << 16;
/// Most entries of the palette of higher coefficients: a label has 16 bits.
const PALETTE_MAX: u64 = 1 << 16;
/// Palette entries in one row of the centroid image.
pub(super) const PALETTE_COLUMNS: usize = 64;
/// Rows that one task unpacks, enough to hide the cost of a task.
const ROWS_PER_TASK: usize = 1 << 13;
/// From this many splats on, positions come out of a table of all 65,536 values per axis.
const POSITION_TABLE_FROM: usize = 1 << 16;

/// What a byte stands for.
type Table = [f32; 256];

/// One unit whose `meta.json` was read and checked; its images are not read yet.
pub(super) struct Unit {
    /// The entry of its `meta.json`.
    pub entry: String,
    /// Splats.
    pub count: usize,
    /// SH degree, 0 to 3.
    pub degree: u8,
    /// `model` says that it was trained with antialias compensation.
    pub antialiased: bool,
    /// 1 or 2.
    pub version: u8,
    /// What is odd about it.
    pub warnings: Vec<String>,
    /// Paths in the container: means low, means high, scales, quats, sh0.
    planes: [String; 5],
    /// Smallest value and span of each axis, in the logarithmic domain.
    means: [(f64, f64); 3],
    scales: [Table; 3],
    dc: [Table; 3],
    opacity: Table,
    higher: Option<Higher>,
}

/// The palette of higher coefficients.
struct Higher {
    /// Palette entries, where the file says how many.
    count: Option<usize>,
    codebook: Table,
    /// Path of the centroid image.
    centroids: String,
    /// Path of the label image.
    labels: String,
}

/// Reads one unit whose `meta.json` is the entry `meta`.
pub(crate) fn read(
    container: &dyn Container,
    meta: &str,
    progress: Progress<'_>,
) -> Result<FileSplats, Error> {
    let unit = Unit::open(container, meta)?;
    progress(0.05);
    let decoded = unit.decode(container)?;
    progress(0.7);
    let mut splats = Splats {
        sh_degree: unit.degree,
        antialiased: unit.antialiased,
        ..Splats::default()
    };
    decoded.append(std::slice::from_ref(&(0..unit.count)), &mut splats);
    progress(1.0);
    Ok(FileSplats {
        splats,
        version: Some(unit.version.to_string()),
        sh_degree_in_file: unit.degree,
        warnings: unit.warnings,
        ..FileSplats::default()
    })
}

impl Unit {
    /// Reads and checks `meta.json`.
    pub fn open(container: &dyn Container, meta: &str) -> Result<Self, Error> {
        let bytes = container.read(meta, META_BYTES_MAX)?;
        let at = container.place(meta);
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|e| at.malformed(format!("not JSON that can be read: {e}")))?;
        let fields = Fields {
            value: &value,
            at: &at,
        };
        let version = match &value["version"] {
            Value::Null => 1,
            other => match other.as_u64() {
                Some(v @ 1..=2) => v as u8,
                _ => {
                    return Err(at.unsupported_version(format!(
                        "version {other} of SOG is not known here, expected 1 or 2"
                    )));
                }
            },
        };
        let count = match version {
            1 => fields.integer("/means/shape/0", SPLATS_MAX)?,
            _ => fields.integer("/count", SPLATS_MAX)?,
        } as usize;
        let folder = meta.rfind('/').map_or("", |slash| &meta[..=slash]);
        let mins = fields.numbers::<3>("/means/mins")?;
        let maxs = fields.numbers::<3>("/means/maxs")?;
        let [means_l, means_u] = fields.files(folder, "/means/files")?;
        let [scales_file] = fields.files(folder, "/scales/files")?;
        let [quats_file] = fields.files(folder, "/quats/files")?;
        let [sh0_file] = fields.files(folder, "/sh0/files")?;
        let (scales, dc, opacity);
        if version == 1 {
            let (low, high) = (
                fields.numbers::<3>("/scales/mins")?,
                fields.numbers::<3>("/scales/maxs")?,
            );
            scales = [0, 1, 2].map(|k| ramp(low[k], high[k]));
            let (low, high) = (
                fields.numbers::<4>("/sh0/mins")?,
                fields.numbers::<4>("/sh0/maxs")?,
            );
            dc = [0, 1, 2].map(|k| ramp(low[k], high[k]));
            // Version 1 stores the opacity before its activation.
            opacity = ramp(low[3], high[3]).map(|logit| 1.0 / (1.0 + (-logit).exp()));
        } else {
            scales = [fields.codebook("/scales/codebook")?; 3];
            dc = [fields.codebook("/sh0/codebook")?; 3];
            opacity = ramp(0.0, 1.0);
        }
        let mut warnings = Vec::new();
        let antialiased = match &value["model"] {
            Value::Null => false,
            Value::String(s) if s == "antialiased" => true,
            Value::String(s) if s == "2dgs" => {
                warnings.push(
                    "the file holds 2D Gaussians (model 2dgs), which are drawn as thin 3D ones"
                        .into(),
                );
                false
            }
            other => {
                warnings.push(format!("model {other} is not known and is drawn as usual"));
                false
            }
        };
        let mut unit = Self {
            entry: meta.to_owned(),
            count,
            degree: 0,
            antialiased,
            version,
            warnings,
            planes: [means_l, means_u, scales_file, quats_file, sh0_file],
            means: [0, 1, 2].map(|k| (mins[k], maxs[k] - mins[k])),
            scales,
            dc,
            opacity,
            higher: None,
        };
        if !value["shN"].is_null() {
            unit.open_higher(container, &fields, folder)?;
        }
        Ok(unit)
    }

    /// Reads the `shN` part; the number of bands may have to come from the centroid image's width.
    fn open_higher(
        &mut self,
        container: &dyn Container,
        fields: &Fields<'_>,
        folder: &str,
    ) -> Result<(), Error> {
        let codebook = if self.version == 1 {
            let [low] = fields.numbers::<1>("/shN/mins")?;
            let [high] = fields.numbers::<1>("/shN/maxs")?;
            ramp(low, high)
        } else {
            fields.codebook("/shN/codebook")?
        };
        let [centroids, labels] = fields.files(folder, "/shN/files")?;
        let count = match fields.value["shN"]["count"] {
            Value::Null => None,
            _ => Some(fields.integer("/shN/count", PALETTE_MAX)? as usize),
        };
        self.degree = match fields.value["shN"]["bands"] {
            Value::Null => {
                let at = container.place(&centroids);
                let bytes = container.read(&centroids, PLANE_BYTES_MAX)?;
                let (width, _) = dimensions(&bytes, &at)?;
                (1..=3)
                    .find(|&d| width as usize == PALETTE_COLUMNS * sh::rest_count(d))
                    .ok_or_else(|| {
                        at.malformed(format!(
                            "the centroid image is {width} texels wide, expected 192, 512 or \
                                 960 for 1, 2 or 3 bands"
                        ))
                    })?
            }
            _ => fields.integer("/shN/bands", 3)? as u8,
        };
        if self.degree > 0 {
            self.higher = Some(Higher {
                count,
                codebook,
                centroids,
                labels,
            });
        }
        Ok(())
    }

    /// Whether every image is there.
    pub fn is_complete(&self, container: &dyn Container) -> bool {
        let higher = self.higher.iter().flat_map(|h| [&h.centroids, &h.labels]);
        self.planes
            .iter()
            .chain(higher)
            .all(|name| container.contains(name))
    }

    /// Reads and decodes the images, in parallel.
    pub fn decode(&self, container: &dyn Container) -> Result<Decoded<'_>, Error> {
        let mut names: Vec<&str> = self.planes.iter().map(String::as_str).collect();
        if let Some(higher) = &self.higher {
            names.extend([higher.labels.as_str(), higher.centroids.as_str()]);
        }
        let files: Vec<Cow<'_, [u8]>> = all_or_first_error(
            names
                .par_iter()
                .map(|name| container.read(name, PLANE_BYTES_MAX)),
        )?;
        let bytes: u64 = files.iter().map(|f| f.len() as u64).sum();
        if self.count as u64 > SPLATS_FLOOR.max(bytes * SPLATS_PER_BYTE_MAX) {
            return Err(container.place(&self.entry).too_large(format!(
                "count says {} splats, more than {bytes} bytes of images may hold",
                self.count
            )));
        }
        let mut images: Vec<Image> =
            all_or_first_error(names.par_iter().zip(files).enumerate().map(
                |(i, (name, file))| {
                    let at = container.place(name);
                    if i < 6 {
                        self.plane(&file, &at)
                    } else {
                        self.centroids(&file, &at)
                    }
                },
            ))?;
        let palette = match &self.higher {
            Some(higher) => {
                let (centroids, labels) = (images.pop(), images.pop());
                centroids.zip(labels).map(|(centroids, labels)| Palette {
                    higher,
                    count: higher
                        .count
                        .unwrap_or(usize::MAX)
                        .min(PALETTE_COLUMNS * centroids.height as usize),
                    centroids,
                    labels,
                })
            }
            None => None,
        };
        let planes = images.try_into().map_err(|_| {
            container
                .place(&self.entry)
                .malformed("an image is missing")
        })?;
        Ok(Decoded {
            unit: self,
            planes,
            palette,
            positions: (self.count >= POSITION_TABLE_FROM)
                .then(|| (0..3).map(|axis| self.position_table(axis)).collect()),
        })
    }

    /// Decodes an image that has a texel for each splat.
    fn plane(&self, bytes: &[u8], at: &Place) -> Result<Image, Error> {
        let image = decode_image(bytes, 2 * self.count as u64 + TEXELS_SPARE, at)?;
        if (image.texels.len() / image.stride) < self.count {
            return Err(at.malformed(format!(
                "an image of {}x{} has too few texels for {} splats",
                image.width, image.height, self.count
            )));
        }
        Ok(image)
    }

    /// Decodes the centroid image.
    fn centroids(&self, bytes: &[u8], at: &Place) -> Result<Image, Error> {
        let width = PALETTE_COLUMNS * sh::rest_count(self.degree);
        let rows_max = PALETTE_MAX as usize / PALETTE_COLUMNS;
        let image = decode_image(bytes, (width * rows_max) as u64, at)?;
        let count = self.higher.as_ref().and_then(|h| h.count).unwrap_or(0);
        let rows = count.div_ceil(PALETTE_COLUMNS);
        if image.width as usize != width || (image.height as usize) < rows {
            return Err(at.malformed(format!(
                "the centroid image is {}x{}, expected {width} by at least {rows} for {} \
                     bands and {count} entries",
                image.width, image.height, self.degree
            )));
        }
        Ok(image)
    }

    /// Coordinate of the 16-bit value `q` along `axis`, metres.
    fn position(&self, axis: usize, q: u32) -> f32 {
        let (min, span) = self.means[axis];
        let v = min + span * f64::from(q) / 65_535.0;
        (v.abs().exp_m1().copysign(v)) as f32
    }

    fn position_table(&self, axis: usize) -> Vec<f32> {
        (0..65_536_u32)
            .into_par_iter()
            .with_min_len(ROWS_PER_TASK)
            .map(|q| self.position(axis, q))
            .collect()
    }
}

/// A unit with its images decoded.
pub(super) struct Decoded<'a> {
    unit: &'a Unit,
    planes: [Image; 5],
    palette: Option<Palette<'a>>,
    /// All positions of each axis, for units that are large enough to be worth it.
    positions: Option<Vec<Vec<f32>>>,
}

struct Palette<'a> {
    higher: &'a Higher,
    count: usize,
    centroids: Image,
    labels: Image,
}

impl Decoded<'_> {
    /// Appends the rows of `ranges` (each inside the unit) to `out`, whose degree may be above the
    /// unit's own: what the unit lacks becomes zeros.
    pub fn append(&self, ranges: &[Range<usize>], out: &mut Splats) {
        let [low, high, scales, quats, sh0] = &self.planes;
        let unit = self.unit;
        let total: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let first = out.sh_rest.len();
        let stride = out.sh_stride();
        out.sh_rest.resize(first + total * stride, 0.0);
        let mut rest = &mut out.sh_rest[first..];
        for range in ranges {
            let rows = || range.clone().into_par_iter().with_min_len(ROWS_PER_TASK);
            out.means.par_extend(rows().map(|i| {
                let (l, u) = (low.rgba(i), high.rgba(i));
                let value = |k: usize| {
                    let q = usize::from(l[k]) | usize::from(u[k]) << 8;
                    match &self.positions {
                        Some(table) => table[k][q],
                        None => unit.position(k, q as u32),
                    }
                };
                Vec3::new(value(0), value(1), value(2))
            }));
            out.log_scales
                .par_extend(rows().map(|i| look_up(&unit.scales, scales.rgba(i))));
            let smallest = ramp(-FRAC_1_SQRT_2, FRAC_1_SQRT_2);
            out.rotations
                .par_extend(rows().map(|i| rotation(&smallest, quats.rgba(i))));
            out.opacities
                .par_extend(rows().map(|i| unit.opacity[usize::from(sh0.rgba(i)[3])]));
            out.dc
                .par_extend(rows().map(|i| look_up(&unit.dc, sh0.rgba(i))));
            let (mine, others) = rest.split_at_mut(range.len() * stride);
            rest = others;
            if let Some(palette) = &self.palette {
                mine.par_chunks_exact_mut(stride)
                    .with_min_len(ROWS_PER_TASK)
                    .zip(range.clone())
                    .for_each(|(out, i)| palette.fill(i, unit.degree, out));
            }
        }
    }
}

impl Palette<'_> {
    /// Writes the higher coefficients of splat `i`; a label past the palette leaves zeros.
    fn fill(&self, i: usize, degree: u8, out: &mut [f32]) {
        let texel = self.labels.rgba(i);
        let label = usize::from(texel[0]) | usize::from(texel[1]) << 8;
        if label >= self.count {
            return;
        }
        let coefficients = sh::rest_count(degree);
        let (row, column) = (label / PALETTE_COLUMNS, label % PALETTE_COLUMNS);
        let first = row * self.centroids.width as usize + column * coefficients;
        for (k, rgb) in out.chunks_exact_mut(3).take(coefficients).enumerate() {
            let texel = self.centroids.rgba(first + k);
            for (value, byte) in rgb.iter_mut().zip(texel) {
                *value = self.higher.codebook[usize::from(byte)];
            }
        }
    }
}

fn look_up(tables: &[Table; 3], texel: [u8; 4]) -> Vec3 {
    Vec3::new(
        tables[0][usize::from(texel[0])],
        tables[1][usize::from(texel[1])],
        tables[2][usize::from(texel[2])],
    )
}

/// The quaternion of three smallest components (r, g, b, through `smallest`) and the index of the
/// dropped one among w, x, y, z (alpha, 252 to 255); another alpha means no rotation.
fn rotation(smallest: &Table, texel: [u8; 4]) -> Quat {
    let [a, b, c] = [texel[0], texel[1], texel[2]].map(|byte| smallest[usize::from(byte)]);
    let dropped = (1.0 - a * a - b * b - c * c).max(0.0).sqrt();
    match texel[3] {
        252 => Quat::from_xyzw(a, b, c, dropped),
        253 => Quat::from_xyzw(dropped, b, c, a),
        254 => Quat::from_xyzw(b, dropped, c, a),
        255 => Quat::from_xyzw(b, c, dropped, a),
        _ => Quat::IDENTITY,
    }
    .normalize()
}

/// The table of 256 even steps from `low` to `high`.
fn ramp(low: f64, high: f64) -> Table {
    std::array::from_fn(|byte| (low + (high - low) * byte as f64 / 255.0) as f32)
}

/// Access to `meta.json` whose errors name the field.
struct Fields<'a> {
    value: &'a Value,
    at: &'a Place,
}

impl Fields<'_> {
    fn wrong(&self, pointer: &str, expected: &str) -> Error {
        // The start is enough to recognise a value, which may be as long as the file.
        let found = self.value.pointer(pointer).map_or_else(
            || "nothing".to_owned(),
            |v| v.to_string().chars().take(40).collect(),
        );
        let field = pointer.trim_start_matches('/').replace('/', ".");
        self.at
            .malformed(format!("{field}: found {found}, expected {expected}"))
    }

    fn integer(&self, pointer: &str, max: u64) -> Result<u64, Error> {
        let found = self.value.pointer(pointer).and_then(Value::as_u64);
        match found {
            Some(n) if n <= max => Ok(n),
            Some(n) => Err(self.at.too_large(format!(
                "{}: {n} is over the limit of {max}",
                pointer.trim_start_matches('/').replace('/', ".")
            ))),
            None => Err(self.wrong(pointer, &format!("a whole number from 0 to {max}"))),
        }
    }

    /// `N` numbers; a lone number counts as a list of one.
    fn numbers<const N: usize>(&self, pointer: &str) -> Result<[f64; N], Error> {
        let value = self.value.pointer(pointer);
        let list = match value {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
        numbers
            .and_then(|n| n.try_into().ok())
            .ok_or_else(|| self.wrong(pointer, &format!("{N} numbers")))
    }

    /// 256 numbers; early writers left a null in front, which is the step before the first.
    fn codebook(&self, pointer: &str) -> Result<Table, Error> {
        let wrong = || self.wrong(pointer, "256 numbers");
        let list = self
            .value
            .pointer(pointer)
            .and_then(Value::as_array)
            .filter(|list| list.len() == 256)
            .ok_or_else(wrong)?;
        let mut table = [0.0; 256];
        for (out, value) in table.iter_mut().zip(list).skip(1) {
            *out = value.as_f64().ok_or_else(wrong)? as f32;
        }
        table[0] = match &list[0] {
            Value::Null => table[1] + (table[1] - table[255]) / 255.0,
            value => value.as_f64().ok_or_else(wrong)? as f32,
        };
        Ok(table)
    }

    /// `N` file names, relative to `folder` in the container.
    fn files<const N: usize>(&self, folder: &str, pointer: &str) -> Result<[String; N], Error> {
        let names = self
            .value
            .pointer(pointer)
            .and_then(Value::as_array)
            .filter(|list| list.len() == N)
            .and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
        let paths = names
            .unwrap_or_default()
            .into_iter()
            .map(|name| join(folder, name, self.at))
            .collect::<Result<Vec<_>, _>>()?;
        paths
            .try_into()
            .map_err(|_| self.wrong(pointer, &format!("{N} file names")))
    }
}

/// `name` inside `folder` (empty or ending in `/`).
///
/// # Errors
/// The name is absolute, empty or leads outside.
pub(super) fn join(folder: &str, name: &str, at: &Place) -> Result<String, Error> {
    clean_name(name)
        .map(|name| format!("{folder}{name}"))
        .map_err(|reason| {
            let name: String = name.chars().take(80).collect();
            at.error(
                Code::UnsafeName,
                format!("the file name '{name}' {reason}; expected a path inside the folder"),
            )
        })
}

/// A decoded image, rows from the top.
struct Image {
    width: u32,
    height: u32,
    /// Bytes of a texel: 3 where the file has no alpha.
    stride: usize,
    texels: Vec<u8>,
}

impl Image {
    /// Texel `i`, alpha 255 where there is none.
    fn rgba(&self, i: usize) -> [u8; 4] {
        match self.texels.get(i * self.stride..(i + 1) * self.stride) {
            Some(&[r, g, b, a]) => [r, g, b, a],
            Some(&[r, g, b]) => [r, g, b, 255],
            // Sizes are checked after decoding; nothing is read past the end.
            _ => [0, 0, 0, 255],
        }
    }
}

fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG")
}

/// Width and height by the image's header.
fn dimensions(bytes: &[u8], at: &Place) -> Result<(u32, u32), Error> {
    if is_png(bytes) {
        let mut reader = image::ImageReader::new(Cursor::new(bytes));
        reader.set_format(image::ImageFormat::Png);
        reader.into_dimensions().map_err(|e| bad_image(at, &e))
    } else {
        image_webp::WebPDecoder::new(Cursor::new(bytes))
            .map(|d| d.dimensions())
            .map_err(|e| bad_image(at, &e))
    }
}

fn bad_image(at: &Place, error: &dyn std::fmt::Display) -> Error {
    at.malformed(format!(
        "not a lossless WebP or a PNG that can be decoded: {error}"
    ))
}

/// Decodes a lossless WebP or a PNG of at most `texels_max` texels, not premultiplied.
fn decode_image(bytes: &[u8], texels_max: u64, at: &Place) -> Result<Image, Error> {
    let (width, height) = dimensions(bytes, at)?;
    if u64::from(width) * u64::from(height) > texels_max {
        return Err(at.too_large(format!(
            "an image of {width}x{height} is over the {texels_max} texels that it may have"
        )));
    }
    if is_png(bytes) {
        let mut reader = image::ImageReader::new(Cursor::new(bytes));
        reader.set_format(image::ImageFormat::Png);
        let texels = reader
            .decode()
            .map_err(|e| bad_image(at, &e))?
            .into_rgba8()
            .into_raw();
        return Ok(Image {
            width,
            height,
            stride: 4,
            texels,
        });
    }
    let mut decoder =
        image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(|e| bad_image(at, &e))?;
    if decoder.is_lossy() || decoder.is_animated() {
        return Err(bad_image(at, &"it is lossy or animated"));
    }
    let size = decoder
        .output_buffer_size()
        .ok_or_else(|| bad_image(at, &"it has no size"))?;
    let mut texels = vec![0; size];
    decoder
        .read_image(&mut texels)
        .map_err(|e| bad_image(at, &e))?;
    Ok(Image {
        width,
        height,
        stride: if decoder.has_alpha() { 4 } else { 3 },
        texels,
    })
}
