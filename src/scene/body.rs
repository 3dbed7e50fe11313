//! What makes splats a body: bones, the weights that tie splats to them, blendshapes; and a pose.
//!
//! A [`Body`] belongs to one set of splats row by row: row i of weights and shapes is splat i.
//! Immutable after load, shared by `Arc`; a [`Pose`] is what changes from picture to picture. It
//! knows no file and no state: gains, names and limits are the business of scripts. Space: that of
//! the splats (y up, metres). Skinning is in [`super::rigid`], its twin on the GPU in
//! `shaders/deform.wgsl`.

use super::rigid::Rigid;
use glam::{Quat, Vec3};
use half::f16;
use std::sync::Arc;

/// Bones of one body.
pub const BONES_MAX: usize = 256;
/// Blendshapes of one body.
pub const SHAPES_MAX: usize = 1024;
/// Bones that move one splat: the heaviest ones.
pub const INFLUENCES: usize = 4;

/// One joint.
#[derive(Clone, Debug, PartialEq)]
pub struct Bone {
    /// As in the file, unique in a body.
    pub name: String,
    /// An earlier bone, or none for a root.
    pub parent: Option<u16>,
    /// Where the joint is at rest, metres. Rest rotations are the identity.
    pub rest: Vec3,
}

/// Which bones move each splat, and how much: rows of different lengths, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skin {
    /// First entry of each row, and the end: rows + 1 numbers.
    pub starts: Vec<u32>,
    /// Bones of all rows.
    pub bones: Vec<u8>,
    /// Their weights, above 0, as in the file.
    pub weights: Vec<f32>,
}

impl Skin {
    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// True without a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row; weights that are not above 0 are left out.
    pub fn push_row(&mut self, row: impl IntoIterator<Item = (u8, f32)>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        for (bone, weight) in row {
            if weight > 0.0 {
                self.bones.push(bone);
                self.weights.push(weight);
            }
        }
        self.starts.push(self.bones.len() as u32);
    }

    /// Bones and weights of one row; empty beyond the last.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u8, f32)> + '_ {
        let range = match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(first), Some(end)) => *first as usize..*end as usize,
            _ => 0..0,
        };
        let weights = self.weights[range.clone()].iter().copied();
        self.bones[range].iter().copied().zip(weights)
    }

    /// The heaviest bones of a row, made to sum to one. A row without weights follows bone 0, the
    /// root; unused places have bone 0 and weight 0.
    #[must_use]
    pub fn heaviest(&self, row: usize) -> ([u8; INFLUENCES], [f32; INFLUENCES]) {
        let mut all: Vec<(u8, f32)> = self.row(row).collect();
        // Stable: of equal weights the earlier bone.
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(INFLUENCES);
        // In f64: a script's weights may be as large as f32 goes.
        let sum: f64 = all.iter().map(|(_, w)| f64::from(*w)).sum();
        let (mut bones, mut weights) = ([0; INFLUENCES], [0.0; INFLUENCES]);
        if sum > 0.0 {
            for (i, (bone, weight)) in all.into_iter().enumerate() {
                bones[i] = bone;
                weights[i] = (f64::from(weight) / sum) as f32;
            }
        } else {
            weights[0] = 1.0;
        }
        (bones, weights)
    }
}

/// One displacement of one splat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShapeEntry {
    /// Number of the blendshape.
    pub shape: u16,
    /// Metres at coefficient 1.
    pub offset: [f16; 3],
}

/// Blendshapes: for each splat the shapes that move it, one row after the other. Splats that no
/// shape moves cost four bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shapes {
    /// Names, in the file's order.
    pub names: Vec<String>,
    /// First entry of each row, and the end: rows + 1 numbers.
    pub starts: Vec<u32>,
    /// Entries of all rows.
    pub entries: Vec<ShapeEntry>,
}

impl Shapes {
    /// Shapes without a row yet.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        Self {
            names,
            starts: vec![0],
            entries: Vec::new(),
        }
    }

    /// Rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// True without a row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a row; offsets that round to 0 in f16 are left out.
    pub fn push_row(&mut self, row: impl IntoIterator<Item = (u16, Vec3)>) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        for (shape, offset) in row {
            let offset = offset.to_array().map(f16::from_f32);
            if offset.iter().any(|v| *v != f16::ZERO && !v.is_nan()) {
                self.entries.push(ShapeEntry { shape, offset });
            }
        }
        self.starts.push(self.entries.len() as u32);
    }

    /// Appends a row of entries as they are, and one more offset unless it rounds to 0.
    pub fn push_entries(&mut self, entries: &[ShapeEntry], more: (u16, Vec3)) {
        self.entries.extend_from_slice(entries);
        self.push_row([more]);
    }

    /// Entries of one row; empty beyond the last.
    #[must_use]
    pub fn row(&self, row: usize) -> &[ShapeEntry] {
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(first), Some(end)) => &self.entries[*first as usize..*end as usize],
            _ => &[],
        }
    }

    /// Sum of all shapes at these coefficients, metres.
    #[must_use]
    pub fn offset(&self, row: usize, coefficients: &[f32]) -> Vec3 {
        self.row(row)
            .iter()
            .map(|entry| {
                let k = coefficients.get(usize::from(entry.shape)).copied();
                Vec3::from(entry.offset.map(f16::to_f32)) * k.unwrap_or(0.0)
            })
            .sum()
    }
}

/// Bones, skin and shapes of one set of splats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// Parents before children.
    pub bones: Vec<Bone>,
    /// Without it bones move nothing.
    pub skin: Option<Skin>,
    /// May have no shape.
    pub shapes: Shapes,
}

impl Body {
    /// The number of a bone.
    #[must_use]
    pub fn bone(&self, name: &str) -> Option<usize> {
        self.bones.iter().position(|bone| bone.name == name)
    }

    /// The number of a blendshape.
    #[must_use]
    pub fn shape(&self, name: &str) -> Option<usize> {
        self.shapes.names.iter().position(|known| known == name)
    }
}

/// What one bone does, seen from its parent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joint {
    /// Turn about the joint.
    pub rotation: Quat,
    /// Shift, metres, in the parent's turned space.
    pub shift: Vec3,
}

impl Default for Joint {
    fn default() -> Self {
        Self {
            rotation: Quat::IDENTITY,
            shift: Vec3::ZERO,
        }
    }
}

/// About which point bones turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pivot {
    /// Their joint; children are carried along.
    #[default]
    Joint,
    /// The origin of the splats' space, and joints stay where they are at rest: what Spark 2.0 to
    /// 2.1 does, and with it the web player for which public bundles were tuned.
    Origin,
}

/// A body in one moment: what renderers need, with nothing left to look up.
#[derive(Clone, Debug)]
pub struct Pose {
    /// Row by row the splats' own.
    pub body: Arc<Body>,
    /// `posed_from_rest` for each bone, in the splats' space.
    pub motions: Vec<Rigid>,
    /// Coefficient of each blendshape.
    pub coefficients: Vec<f32>,
}

impl PartialEq for Pose {
    /// Bodies are compared by identity: they are large and never change.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.body, &other.body)
            && self.motions == other.motions
            && self.coefficients == other.coefficients
    }
}

impl Pose {
    /// The pose of `joints` (one for each bone; missing ones are at rest).
    #[must_use]
    pub fn new(body: &Arc<Body>, joints: &[Joint], pivot: Pivot, coefficients: Vec<f32>) -> Self {
        let mut motions: Vec<Rigid> = Vec::with_capacity(body.bones.len());
        for (index, bone) in body.bones.iter().enumerate() {
            let joint = joints.get(index).copied().unwrap_or_default();
            let parent = bone
                .parent
                .and_then(|p| motions.get(usize::from(p)))
                .copied()
                .unwrap_or(Rigid::IDENTITY);
            motions.push(match pivot {
                Pivot::Joint => parent.after(&Rigid::about(bone.rest, joint.rotation, joint.shift)),
                Pivot::Origin => Rigid {
                    rotation: (parent.rotation * joint.rotation).normalize(),
                    translation: joint.shift,
                },
            });
        }
        Self {
            body: Arc::clone(body),
            motions,
            coefficients,
        }
    }

    /// True when nothing is moved: drawing the splats as they are gives the same picture.
    #[must_use]
    pub fn is_rest(&self) -> bool {
        (self.body.skin.is_none() || self.motions.iter().all(|m| *m == Rigid::IDENTITY))
            && (self.body.shapes.entries.is_empty() || self.coefficients.iter().all(|c| *c == 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_four_sum_to_one_and_a_row_of_zeros_follows_the_root() {
        let mut skin = Skin::default();
        skin.push_row([(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.0), (4, 0.25), (5, 0.15)]);
        skin.push_row([]);
        let (bones, weights) = skin.heaviest(0);
        assert_eq!(bones, [2, 4, 1, 5]);
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert_eq!(skin.heaviest(1), ([0; 4], [1.0, 0.0, 0.0, 0.0]));
        assert_eq!(skin.heaviest(9), ([0; 4], [1.0, 0.0, 0.0, 0.0]));
    }

    #[test]
    fn children_follow_with_joint_pivots_and_stay_with_origin_pivots() {
        let bone = |name: &str, parent, y| Bone {
            name: name.to_owned(),
            parent,
            rest: Vec3::new(0.0, y, 0.0),
        };
        let body = Arc::new(Body {
            bones: vec![bone("root", None, 0.0), bone("tip", Some(0), 1.0)],
            ..Body::default()
        });
        let turn = Joint {
            rotation: Quat::from_rotation_z(std::f32::consts::FRAC_PI_2),
            shift: Vec3::ZERO,
        };
        let carried = Pose::new(&body, &[turn], Pivot::Joint, Vec::new());
        let tip = carried.motions[1].apply(Vec3::Y);
        assert!((tip - Vec3::NEG_X).length() < 1e-6, "{tip}");
        let origin = Pose::new(&body, &[Joint::default(), turn], Pivot::Origin, Vec::new());
        let tip = origin.motions[1].apply(Vec3::Y);
        assert!((tip - Vec3::NEG_X).length() < 1e-6, "{tip}");
        let joint = Pose::new(&body, &[Joint::default(), turn], Pivot::Joint, Vec::new());
        assert!((joint.motions[1].apply(Vec3::Y) - Vec3::Y).length() < 1e-6);
    }
}
