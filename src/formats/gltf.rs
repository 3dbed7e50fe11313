//! Binary glTF with KHR_gaussian_splatting: read.
//!
//! Point primitives with the extension; attributes may be floats or (normalised) integers,
//! rotations are (x, y, z, w), scales linear, opacities 0 to 1, coefficients `SH_DEGREE_l_COEF_n`
//! under either spelling (`KHR_gaussian_splatting:ROTATION`, the draft's `_ROTATION`). Primitives
//! of all nodes of the scene are joined in order, placed by their node's transform, which must be
//! a rotation, a uniform scale and a translation. Source: KhronosGroup/glTF, the extension's
//! README. Not read: `.gltf` with outside buffers, sparse accessors, the SPZ compression draft.

use super::rows::{self, Row};
use super::values::unit_quaternion;
use super::{Error, FileSplats, Place, Progress};
use crate::scene::{Splats, sh};
use glam::{Mat3, Mat4, Quat, Vec3};
use serde_json::Value;
use std::collections::BTreeSet;

const EXTENSION: &str = "KHR_gaussian_splatting";
/// Nodes inside nodes that are followed; a deeper tree is a loop or an attack.
const DEPTH_MAX: usize = 64;
/// How far from orthonormal a node's axes may be, relative, before it is refused as sheared.
const SHEAR_MAX: f32 = 1e-3;

/// True for the magic of binary glTF.
pub(crate) fn is_glb(bytes: &[u8]) -> bool {
    bytes.starts_with(b"glTF")
}

fn chunks<'a>(bytes: &'a [u8], at: &'a Place) -> Result<(Value, &'a [u8]), Error> {
    let mut cursor = super::bytes::Cursor::new(bytes, at);
    cursor.take(4, "the glTF magic")?;
    let version = cursor.u32("the glTF version")?;
    if version != 2 {
        return Err(at.unsupported_version(format!("binary glTF version {version}, expected 2")));
    }
    cursor.u32("the glTF length")?;
    let (mut json, mut binary) = (None, &[][..]);
    while cursor.remaining() > 0 {
        let length = cursor.u32("a chunk length")?;
        let kind: [u8; 4] = cursor.array("a chunk type")?;
        let chunk = cursor.take(u64::from(length), "a glTF chunk")?;
        match &kind {
            b"JSON" if json.is_none() => {
                json = Some(
                    serde_json::from_slice(chunk)
                        .map_err(|e| at.malformed(format!("the JSON chunk: {e}")))?,
                );
            }
            b"BIN\0" if binary.is_empty() => binary = chunk,
            _ => {}
        }
    }
    let json = json.ok_or_else(|| at.malformed("binary glTF without a JSON chunk"))?;
    Ok((json, binary))
}

/// An array of vectors in the binary chunk.
#[derive(Clone, Copy)]
struct Accessor<'a> {
    bytes: &'a [u8],
    stride: usize,
    kind: Component,
    components: usize,
    count: usize,
}

#[derive(Clone, Copy)]
enum Component {
    I8(f32),
    U8(f32),
    I16(f32),
    U16(f32),
    F32,
}

impl Component {
    const fn bytes(self) -> usize {
        match self {
            Self::I8(_) | Self::U8(_) => 1,
            Self::I16(_) | Self::U16(_) => 2,
            Self::F32 => 4,
        }
    }
}

impl Accessor<'_> {
    /// Component `component` of element `index`; NaN outside, which `accessor` rules out.
    fn get(&self, index: usize, component: usize) -> f32 {
        let start = index * self.stride + component * self.kind.bytes();
        let bytes = self.bytes.get(start..).unwrap_or_default();
        let value = match self.kind {
            Component::I8(unit) => bytes
                .first_chunk()
                .map(|b| f32::from(i8::from_le_bytes(*b)) * unit),
            Component::U8(unit) => bytes.first().map(|b| f32::from(*b) * unit),
            Component::I16(unit) => bytes
                .first_chunk()
                .map(|b| f32::from(i16::from_le_bytes(*b)) * unit),
            Component::U16(unit) => bytes
                .first_chunk()
                .map(|b| f32::from(u16::from_le_bytes(*b)) * unit),
            Component::F32 => bytes.first_chunk().map(|b| f32::from_le_bytes(*b)),
        };
        value.unwrap_or(f32::NAN)
    }

    fn vec3(&self, index: usize) -> Vec3 {
        Vec3::new(self.get(index, 0), self.get(index, 1), self.get(index, 2))
    }
}

/// A primitive's attributes and where its node puts it.
struct Part<'a> {
    place: Mat4,
    mean: Accessor<'a>,
    rotation: Accessor<'a>,
    scale: Accessor<'a>,
    opacity: Option<Accessor<'a>>,
    dc: Option<Accessor<'a>>,
    colour: Option<Accessor<'a>>,
    rest: Vec<Accessor<'a>>,
    degree: u8,
}

struct File<'a> {
    json: Value,
    binary: &'a [u8],
    at: &'a Place,
    warnings: Vec<String>,
    /// Nodes that were visited: glTF's nodes are a strict tree, and a file in which one is reached
    /// twice could make the walk endless.
    visited: BTreeSet<usize>,
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|i| usize::try_from(i).ok())
}

impl<'a> File<'a> {
    fn accessor(
        &self,
        number: &Value,
        name: &str,
        components: usize,
    ) -> Result<Accessor<'a>, Error> {
        let wrong = |why: &str| self.at.malformed(format!("accessor of {name}: {why}"));
        let accessor = index(number)
            .and_then(|i| self.json["accessors"].get(i))
            .ok_or_else(|| wrong("is not there"))?;
        if accessor.get("sparse").is_some() {
            return Err(wrong(
                "is sparse, which is not read; store it as a plain accessor",
            ));
        }
        let found = match accessor["type"].as_str() {
            Some("SCALAR") => 1,
            Some("VEC3") => 3,
            Some("VEC4") => 4,
            _ => 0,
        };
        if found < components {
            return Err(wrong(&format!(
                "type {} where {components} components are needed",
                accessor["type"]
            )));
        }
        let normalized = accessor["normalized"].as_bool().unwrap_or(false);
        let unit = |max: f32| if normalized { 1.0 / max } else { 1.0 };
        let kind = match accessor["componentType"].as_u64() {
            Some(5120) => Component::I8(unit(127.0)),
            Some(5121) => Component::U8(unit(255.0)),
            Some(5122) => Component::I16(unit(32767.0)),
            Some(5123) => Component::U16(unit(65535.0)),
            Some(5126) => Component::F32,
            _ => {
                return Err(wrong(&format!(
                    "component type {} is none of 5120 to 5123 and 5126",
                    accessor["componentType"]
                )));
            }
        };
        let view = index(&accessor["bufferView"])
            .and_then(|i| self.json["bufferViews"].get(i))
            .ok_or_else(|| wrong("has no buffer view"))?;
        let buffer = &view["buffer"];
        if buffer.as_u64() != Some(0)
            || self.json["buffers"]
                .get(0)
                .is_some_and(|b| b.get("uri").is_some())
        {
            return Err(wrong(
                "lies in an outside buffer; only the GLB's own is read",
            ));
        }
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let size = found as u64 * kind.bytes() as u64;
        let stride = match number(&view["byteStride"]) {
            0 => size,
            stride => stride,
        };
        if stride < size {
            return Err(wrong("has a stride below the size of its elements"));
        }
        let count = number(&accessor["count"]);
        let length = number(&view["byteLength"]);
        let inner = number(&accessor["byteOffset"]);
        let needed = count
            .checked_sub(1)
            .map_or(0, |last| last.saturating_mul(stride).saturating_add(size));
        if inner.saturating_add(needed) > length {
            return Err(self.at.truncated(
                &format!("accessor of {name} with {count} elements"),
                needed,
                length.saturating_sub(inner),
            ));
        }
        let start = number(&view["byteOffset"]).saturating_add(inner);
        let bytes = usize::try_from(start)
            .ok()
            .zip(usize::try_from(start.saturating_add(needed)).ok())
            .and_then(|(start, end)| self.binary.get(start..end))
            .ok_or_else(|| {
                let present = (self.binary.len() as u64).saturating_sub(start);
                self.at
                    .truncated(&format!("the data of {name}"), needed, present)
            })?;
        Ok(Accessor {
            bytes,
            stride: stride as usize,
            kind,
            components: found,
            count: count as usize,
        })
    }

    fn part(&self, primitive: &Value, place: Mat4) -> Result<Part<'a>, Error> {
        let attributes = &primitive["attributes"];
        let find = |name: &str| {
            attributes
                .get(format!("{EXTENSION}:{name}"))
                .or_else(|| attributes.get(format!("_{name}")))
        };
        let optional = |value: Option<&Value>, name: &str, components| {
            value
                .map(|v| self.accessor(v, name, components))
                .transpose()
        };
        let needed = |value: Option<&Value>, name: &str, components| {
            let value = value.ok_or_else(|| {
                self.at
                    .malformed(format!("a {EXTENSION} primitive lacks {name}"))
            })?;
            self.accessor(value, name, components)
        };
        let mean = needed(attributes.get("POSITION"), "POSITION", 3)?;
        let mut rest = Vec::new();
        let mut degree = 0;
        'bands: for band in 1..=sh::DEGREE_MAX {
            let mut found = Vec::new();
            for k in 0..=2 * band {
                let name = format!("SH_DEGREE_{band}_COEF_{k}");
                match optional(find(&name), &name, 3)? {
                    Some(accessor) => found.push(accessor),
                    None => break 'bands,
                }
            }
            rest.extend(found);
            degree = band;
        }
        let part = Part {
            place,
            mean,
            rotation: needed(find("ROTATION"), "ROTATION", 4)?,
            scale: needed(find("SCALE"), "SCALE", 3)?,
            opacity: optional(find("OPACITY"), "OPACITY", 1)?,
            dc: optional(find("SH_DEGREE_0_COEF_0"), "SH_DEGREE_0_COEF_0", 3)?,
            colour: optional(attributes.get("COLOR_0"), "COLOR_0", 3)?,
            rest,
            degree,
        };
        let others = [
            Some(part.rotation),
            Some(part.scale),
            part.opacity,
            part.dc,
            part.colour,
        ];
        if others
            .iter()
            .flatten()
            .chain(&part.rest)
            .any(|accessor| accessor.count != mean.count)
        {
            return Err(self
                .at
                .malformed("the attributes of a primitive differ in length"));
        }
        Ok(part)
    }

    fn node(
        &mut self,
        number: usize,
        parent: Mat4,
        depth: usize,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(self
                .at
                .malformed(format!("nodes are nested deeper than {DEPTH_MAX}")));
        }
        if !self.visited.insert(number) {
            return Err(self.at.malformed(format!("node {number} is reached twice")));
        }
        let Some(node) = self.json["nodes"].get(number).cloned() else {
            return Err(self.at.malformed(format!("node {number} is not there")));
        };
        let place = parent * local(&node);
        let mesh = index(&node["mesh"]).and_then(|m| self.json["meshes"].get(m));
        let primitives = mesh.map_or(&Value::Null, |m| &m["primitives"]);
        let mut found = Vec::new();
        for primitive in primitives.as_array().into_iter().flatten() {
            let extension = &primitive["extensions"][EXTENSION];
            if extension.is_null() {
                continue;
            }
            if let Some(draft) = extension["extensions"]
                .as_object()
                .and_then(|e| e.keys().next())
            {
                return Err(self.at.unsupported_version(format!(
                    "the splats are compressed by {draft}, which is not read; export without it"
                )));
            }
            found.push((
                self.part(primitive, place)?,
                extension["colorSpace"].clone(),
            ));
        }
        for (part, colour_space) in found {
            if colour_space == "lin_rec709_display" {
                self.warn(
                    "colours are declared as linear light (lin_rec709_display): drawn as stored",
                );
            }
            if (0..part.mean.count).any(|row| part.scale.vec3(row).min_element() < 0.0) {
                self.warn(
                    "negative scales: their sign is ignored; the file may follow an early draft of \
                     the extension, which stored logarithms",
                );
            }
            // A mesh named by many nodes must not grow beyond what its bytes can back.
            let rows: usize = parts.iter().map(|p| p.mean.count).sum();
            if rows + part.mean.count > self.binary.len() / part.mean.kind.bytes() / 3 {
                return Err(self.at.too_large(
                    "the nodes repeat their splats more often than the file's bytes can back",
                ));
            }
            parts.push(part);
        }
        for child in node["children"].as_array().into_iter().flatten() {
            let child = index(child)
                .ok_or_else(|| self.at.malformed(format!("node {number} has a bad child")))?;
            self.node(child, place, depth + 1, parts)?;
        }
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        if !self.warnings.iter().any(|w| w == text) {
            self.warnings.push(text.to_owned());
        }
    }
}

/// A node's own transform: a matrix, or translation, rotation and scale.
fn local(node: &Value) -> Mat4 {
    let floats = |name: &str| -> Vec<f32> {
        node[name]
            .as_array()
            .into_iter()
            .flatten()
            .map(|v| v.as_f64().unwrap_or(f64::NAN) as f32)
            .collect()
    };
    if let Ok(matrix) = <[f32; 16]>::try_from(floats("matrix")) {
        return Mat4::from_cols_array(&matrix);
    }
    let vec = |name, default| <[f32; 3]>::try_from(floats(name)).map_or(default, Vec3::from_array);
    let rotation = <[f32; 4]>::try_from(floats("rotation"))
        .map_or(Quat::IDENTITY, |[x, y, z, w]| unit_quaternion(w, x, y, z));
    Mat4::from_scale_rotation_translation(
        vec("scale", Vec3::ONE),
        rotation,
        vec("translation", Vec3::ZERO),
    )
}

impl Part<'_> {
    /// Rotation and uniform scale of the node, or what it is instead.
    fn similarity(&self) -> Option<(Mat3, f32)> {
        let m = Mat3::from_mat4(self.place);
        let scale = m.determinant().cbrt();
        let turn = m * (1.0 / scale);
        let off = (turn * turn.transpose() - Mat3::IDENTITY).to_cols_array();
        (scale > 0.0 && off.iter().all(|v| v.abs() < SHEAR_MAX)).then_some((turn, scale))
    }

    fn row(&self, row: usize, degree: u8, rest: &mut [f32]) -> Row {
        let mut values = self.rest.iter().map(|a| a.vec3(row));
        for out in rest.chunks_exact_mut(3).take(sh::rest_count(degree)) {
            out.copy_from_slice(&values.next().unwrap_or(Vec3::ZERO).to_array());
        }
        let plain = self.colour.map(|c| c.vec3(row));
        let alpha = self
            .colour
            .filter(|c| c.components == 4)
            .map(|c| c.get(row, 3));
        let q = &self.rotation;
        Row {
            mean: self.mean.vec3(row),
            // The sign of a scale changes nothing: the covariance has its square.
            log_scale: self.scale.vec3(row).abs().map(f32::ln),
            rotation: unit_quaternion(q.get(row, 3), q.get(row, 0), q.get(row, 1), q.get(row, 2)),
            opacity: self.opacity.map(|o| o.get(row, 0)).or(alpha).unwrap_or(1.0),
            dc: match (&self.dc, plain) {
                (Some(dc), _) => dc.vec3(row),
                (None, Some(plain)) => (plain - 0.5) / sh::SH_C0,
                (None, None) => Vec3::ZERO,
            },
        }
    }

    fn splats(&self, degree: u8, at: &Place, progress: Progress<'_>) -> Result<Splats, Error> {
        let (turn, scale) = self.similarity().ok_or_else(|| {
            at.malformed(
                "a node mirrors, shears or stretches its splats unevenly; apply the transform in \
                 the exporter",
            )
        })?;
        let mut splats = rows::fill(self.mean.count, degree, progress, |row, rest| {
            self.row(row, degree, rest)
        });
        splats.turn(turn);
        let translation = self.place.w_axis.truncate();
        if (scale, translation) != (1.0, Vec3::ZERO) {
            for mean in &mut splats.means {
                *mean = *mean * scale + translation;
            }
            for log_scale in &mut splats.log_scales {
                *log_scale += scale.ln();
            }
        }
        Ok(splats)
    }
}

/// Reads a GLB.
///
/// # Errors
/// No splats in it, damaged, or one of the things that are not read.
pub(crate) fn read(bytes: &[u8], at: &Place, progress: Progress<'_>) -> Result<FileSplats, Error> {
    let (json, binary) = chunks(bytes, at)?;
    let scene = index(&json["scene"]).unwrap_or(0);
    let roots: Vec<usize> = match json["scenes"].get(scene) {
        Some(scene) => scene["nodes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(index)
            .collect(),
        None => (0..json["nodes"].as_array().map_or(0, Vec::len)).collect(),
    };
    let version = json["asset"]["version"].as_str().map(str::to_owned);
    let mut file = File {
        json,
        binary,
        at,
        warnings: Vec::new(),
        visited: BTreeSet::new(),
    };
    let mut parts = Vec::new();
    for root in roots {
        file.node(root, Mat4::IDENTITY, 0, &mut parts)?;
    }
    if parts.is_empty() {
        return Err(at.not_splats(format!(
            "binary glTF without a {EXTENSION} primitive in its scene: a mesh, not splats"
        )));
    }
    let degree = parts.iter().map(|p| p.degree).max().unwrap_or(0);
    let mut all = Splats {
        sh_degree: degree,
        ..Splats::default()
    };
    let count = parts.len() as f32;
    for (number, part) in parts.iter().enumerate() {
        let inner = |share: f32| progress((number as f32 + share) / count);
        let splats = part.splats(degree, at, &inner)?;
        all.means.extend(splats.means);
        all.log_scales.extend(splats.log_scales);
        all.rotations.extend(splats.rotations);
        all.opacities.extend(splats.opacities);
        all.dc.extend(splats.dc);
        all.sh_rest.extend(splats.sh_rest);
    }
    Ok(FileSplats {
        splats: all,
        version,
        sh_degree_in_file: degree,
        warnings: file.warnings,
        ..FileSplats::default()
    })
}
