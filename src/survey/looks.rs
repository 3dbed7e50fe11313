//! What is worth a look beside a way: places that differ from what is round them, and can be seen.
//!
//! Salience is contrast of colour against the surroundings, colourfulness, and structure, in blocks of
//! less than half a metre. It is a proposal that an author edits, not a judgement. After the idea of
//! centre and surround (Itti, Koch, Niebur 1998).

use super::floor::Floor;
use super::voxels::Voxels;
use crate::motion::Spline;
use glam::{DVec3, IVec3, Vec3};
use std::collections::BTreeMap;

/// Edge of a block, metres.
const BLOCK_M: f32 = 0.4;
/// Surroundings reach so many blocks.
const AROUND: i32 = 3;
/// Heights above the floor that are looked at, metres.
const HEIGHT_M: [f32; 2] = [0.4, 3.0];
/// Distances from the eyes, metres.
const FAR_M: [f32; 2] = [1.2, 6.0];
/// Angles against the way, degrees: straight ahead is no look, and behind is too late.
const ASIDE_DEG: [f32; 2] = [12.0, 58.0];
/// Metres of the way for each look.
const EVERY_M: f64 = 5.0;
/// Distance of two targets, metres.
const APART_M: f32 = 2.0;
/// No look begins this near to either end of the way, metres.
const ENDS_M: f64 = 0.8;
/// Weights of contrast, colourfulness and structure.
const WEIGHTS: [f32; 3] = [1.0, 0.4, 0.5];
/// Blocks with less matter than this have no colour of their own (sum of thickness).
const MATTER_MIN: f32 = 4.0;

/// Something to look at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposal {
    /// Where it is, metres.
    pub target: Vec3,
    /// Metres of the way after which the walker looks there.
    pub arc_m: f64,
    /// How far it stands out; above 0.
    pub salience: f32,
}

/// What is in a block.
#[derive(Clone, Copy, Default)]
struct Block {
    thickness: f32,
    colour: Vec3,
    squares: Vec3,
    place: Vec3,
}

impl Block {
    fn mean(&self) -> Vec3 {
        self.colour / self.thickness
    }

    fn spread(&self) -> f32 {
        let mean = self.mean();
        let variance = self.squares / self.thickness - mean * mean;
        variance.max(Vec3::ZERO).element_sum().sqrt()
    }
}

/// Proposes looks along a way over a floor, in order of the way.
#[must_use]
pub fn propose(voxels: &Voxels, floor: &Floor, curve: &Spline, eye_m: f32) -> Vec<Proposal> {
    let count = (curve.length() / 0.25).ceil().max(1.0) as usize;
    let eyes: Vec<(f64, Vec3, Vec3)> = (0..=count)
        .map(|i| {
            let u = i as f64 / count as f64;
            let p: DVec3 = curve.at(u);
            let y = floor.height(p.as_vec3()).unwrap_or(p.y as f32);
            let eye = Vec3::new(p.x as f32, y + eye_m, p.z as f32);
            (u * curve.length(), eye, curve.tangent(u).as_vec3())
        })
        .collect();
    let blocks = blocks(voxels, &eyes, eye_m);
    let mut ranked: Vec<(f32, Vec3)> = blocks
        .iter()
        .filter(|(_, block)| block.thickness >= MATTER_MIN)
        .filter_map(|(at, block)| {
            let score = salience(&blocks, *at, block)?;
            Some((score, block.place / block.thickness))
        })
        .collect();
    ranked.sort_by(|a, b| {
        let order = |v: &Vec3| v.to_array().map(f32::to_bits);
        b.0.total_cmp(&a.0).then(order(&a.1).cmp(&order(&b.1)))
    });
    let wanted = (curve.length() / EVERY_M).floor() as usize;
    let mut looks: Vec<Proposal> = Vec::new();
    for (salience, target) in ranked {
        if looks.len() >= wanted {
            break;
        }
        if looks.iter().any(|l| l.target.distance(target) < APART_M) {
            continue;
        }
        let seen = eyes.iter().find(|(arc_m, eye, ahead)| {
            *arc_m >= ENDS_M
                && *arc_m <= curve.length() - ENDS_M
                && looks
                    .iter()
                    .all(|l| (l.arc_m - arc_m).abs() >= 0.8 * EVERY_M)
                && is_seen(voxels, *eye, *ahead, target)
        });
        if let Some((arc_m, ..)) = seen {
            looks.push(Proposal {
                target,
                arc_m: *arc_m,
                salience,
            });
        }
    }
    looks.sort_by(|a, b| a.arc_m.total_cmp(&b.arc_m));
    looks
}

/// Blocks of matter that eyes on the way could see.
fn blocks(voxels: &Voxels, eyes: &[(f64, Vec3, Vec3)], eye_m: f32) -> BTreeMap<[i32; 3], Block> {
    // A coarse map of where the way is: cells of the greatest distance, with the heights of its floor.
    let mut near: BTreeMap<[i32; 2], [f32; 2]> = BTreeMap::new();
    let coarse = |p: Vec3| {
        [
            (p.x / FAR_M[1]).floor() as i32,
            (p.z / FAR_M[1]).floor() as i32,
        ]
    };
    for (_, eye, _) in eyes {
        let [x, z] = coarse(*eye);
        let y = eye.y - eye_m;
        for dx in -1..=1 {
            for dz in -1..=1 {
                let heights = near.entry([x + dx, z + dz]).or_insert([y, y]);
                *heights = [heights[0].min(y), heights[1].max(y)];
            }
        }
    }
    let mut blocks: BTreeMap<[i32; 3], Block> = BTreeMap::new();
    for matter in voxels.matter() {
        let p = matter.place;
        let Some([low, high]) = near.get(&coarse(p)) else {
            continue;
        };
        if p.y < low + HEIGHT_M[0] || p.y > high + HEIGHT_M[1] {
            continue;
        }
        let at = (p / BLOCK_M).floor().as_ivec3();
        let block = blocks.entry(at.to_array()).or_default();
        block.thickness += matter.thickness;
        block.colour += matter.thickness * matter.colour;
        block.squares += matter.thickness * matter.colour * matter.colour;
        block.place += matter.thickness * p;
    }
    blocks
}

/// How far a block stands out; `None` where nothing is round it.
fn salience(blocks: &BTreeMap<[i32; 3], Block>, at: [i32; 3], block: &Block) -> Option<f32> {
    let (mut thickness, mut colour) = (0.0, Vec3::ZERO);
    for z in -AROUND..=AROUND {
        for y in -AROUND..=AROUND {
            for x in -AROUND..=AROUND {
                // The neighbours next to it may show the same thing.
                if x.abs() <= 1 && y.abs() <= 1 && z.abs() <= 1 {
                    continue;
                }
                let there = IVec3::from_array(at) + IVec3::new(x, y, z);
                if let Some(other) = blocks.get(&there.to_array()) {
                    thickness += other.thickness;
                    colour += other.colour;
                }
            }
        }
    }
    if thickness < MATTER_MIN {
        return None;
    }
    let mean = block.mean();
    let contrast = (mean - colour / thickness).length();
    let colourfulness = mean.max_element() - mean.min_element();
    Some(WEIGHTS[0] * contrast + WEIGHTS[1] * colourfulness + WEIGHTS[2] * block.spread())
}

/// Whether eyes that go `ahead` would turn to a target, and see it.
fn is_seen(voxels: &Voxels, eye: Vec3, ahead: Vec3, target: Vec3) -> bool {
    let way = target - eye;
    let far = way.length();
    if !(FAR_M[0]..=FAR_M[1]).contains(&far) {
        return false;
    }
    let flat = |v: Vec3| Vec3::new(v.x, 0.0, v.z);
    let aside = flat(way).angle_between(flat(ahead)).to_degrees();
    if !(ASIDE_DEG[0]..=ASIDE_DEG[1]).contains(&aside) {
        return false;
    }
    let look = voxels.look(eye, way, far);
    look.distance_m.is_none_or(|met| met >= far - BLOCK_M)
}
