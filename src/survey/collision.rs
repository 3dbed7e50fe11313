//! Collision voxels: which cells of a scan are solid, as `.voxel.json` and `.voxel.bin` say it.
//!
//! It opens no file and finds no floor; bytes come in and go out. The format is that of SplatTransform
//! (PlayCanvas): a sparse octree of nodes after Laine and Karras 2010, in breadth-first order, over
//! blocks of 4x4x4 cells. Version 1.0 lies in the axes of the splat file (x right, y down), 1.1 in those
//! of the engine (x left, y up). 1.1 is written, both are read.

use super::voxels::{SOLID_OPACITY, Voxels};
use glam::{IVec3, Quat, Vec3};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// The whole block below is solid. No node has its first child at 0, so this is no inner one.
const SOLID: u32 = 0xff00_0000;
/// Largest number that a node can hold.
const OFFSET_MAX: u32 = 0x00ff_ffff;
/// Deepest tree: 2^16 blocks along an edge are 13 km of 5 cm cells.
const DEPTH_MAX: u32 = 16;
/// Most blocks that are unpacked.
const BLOCKS_MAX: usize = 4 << 20;
/// Cells along an edge of a block.
const SIDE: i32 = 4;
/// Places of a cell that are looked at, in cells from its middle: a turned grid has no holes then.
const INSIDE: f32 = 0.25;

/// Why collision voxels are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The description is not one.
    #[error("the description is broken: {0}")]
    Description(String),
    /// The tree does not hold together.
    #[error("the tree is broken: {0}")]
    Tree(&'static str),
    /// It is fine, but too large.
    #[error("there are too many blocks: more than {0}")]
    TooLarge(usize),
}

/// Solid cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Collision {
    /// World axes (y up, x right) from those of the grid.
    turn: Quat,
    /// Corner of the grid, in its own axes, units of the scan.
    low: Vec3,
    /// Cells along each axis.
    size: IVec3,
    /// Edge of a cell, units of the scan.
    cell: f32,
    /// Which cells of a block are solid, x fastest, by the interleaved bits of its place.
    blocks: BTreeMap<u64, u64>,
}

/// Part of the tree while it is written.
enum Node {
    Solid,
    Mixed(u64),
    Inner(Vec<(u32, Node)>),
}

/// Axes of version 1.1.
fn engine() -> Quat {
    Quat::from_rotation_y(std::f32::consts::PI)
}

/// The bits of a place, interleaved, x lowest.
fn interleaved(block: IVec3) -> u64 {
    let spread = |v: i32| -> u64 { (0..21).map(|k| ((v as u64 >> k) & 1) << (3 * k)).sum() };
    spread(block.x) | spread(block.y) << 1 | spread(block.z) << 2
}

/// The place of interleaved bits.
fn place_of(bits: u64) -> IVec3 {
    let gather = |shift: u32| -> i32 {
        (0..21)
            .map(|k| ((bits >> (3 * k + shift)) & 1) << k)
            .sum::<u64>() as i32
    };
    IVec3::new(gather(0), gather(1), gather(2))
}

/// Number of a cell in its block.
fn slot(cell: IVec3) -> u32 {
    let inner = cell & (SIDE - 1);
    (inner.x + SIDE * (inner.y + SIDE * inner.z)) as u32
}

/// Levels of a tree over so many blocks along the longest edge.
fn depth_of(blocks: i32) -> u32 {
    (blocks.max(2) as u32).next_power_of_two().trailing_zeros()
}

/// Eight places of a cell about its middle.
fn places_in(middle: Vec3, cell: f32) -> impl Iterator<Item = Vec3> {
    (0..8).map(move |i| {
        let pick = |bit: i32| if i & bit == 0 { -INSIDE } else { INSIDE };
        middle + cell * Vec3::new(pick(1), pick(2), pick(4))
    })
}

impl Collision {
    /// The solid cells of a levelled scan of `scale` metres a unit, in the axes of its file: `rotation` is
    /// levelled from loaded. `None` where nothing is solid, or too much for a tree.
    #[must_use]
    pub fn of(voxels: &Voxels, rotation: Quat, scale: f32) -> Option<Self> {
        let turn = engine();
        let to_grid = (rotation * turn).inverse();
        let cell = voxels.cell_m() / scale;
        let mut cells: Vec<IVec3> = Vec::new();
        for matter in voxels.matter() {
            if matter.opacity < SOLID_OPACITY {
                continue;
            }
            let middle = (matter.at.as_vec3() + 0.5) * voxels.cell_m();
            let known = cells.len();
            for place in places_in(middle, voxels.cell_m()) {
                let at = (to_grid * place / voxels.cell_m()).floor().as_ivec3();
                if !cells[known..].contains(&at) {
                    cells.push(at);
                }
            }
        }
        let low = cells.iter().copied().reduce(IVec3::min)?;
        let high = cells.iter().copied().reduce(IVec3::max)?;
        let first = low.div_euclid(IVec3::splat(SIDE)) * SIDE;
        let count = (high - first).div_euclid(IVec3::splat(SIDE)) + 1;
        if depth_of(count.max_element()) > DEPTH_MAX {
            return None;
        }
        let mut blocks = BTreeMap::new();
        for at in cells {
            let at = at - first;
            *blocks.entry(interleaved(at >> 2_i32)).or_insert(0) |= 1 << slot(at);
        }
        (blocks.len() <= BLOCKS_MAX).then(|| Self {
            turn,
            low: first.as_vec3() * cell,
            size: count * SIDE,
            cell,
            blocks,
        })
    }

    /// Number of solid cells.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.blocks
            .values()
            .map(|m| u64::from(m.count_ones()))
            .sum()
    }

    /// Whether a place (world axes, units of the scan) is solid; `None` outside of the grid.
    #[must_use]
    pub fn is_solid(&self, place: Vec3) -> Option<bool> {
        let at = ((self.turn.inverse() * place - self.low) / self.cell).floor();
        let inside = at.min_element() >= 0.0 && at.cmplt(self.size.as_vec3()).all();
        inside.then(|| {
            let at = at.as_ivec3();
            let mask = self.blocks.get(&interleaved(at >> 2_i32)).copied();
            mask.unwrap_or(0) >> slot(at) & 1 == 1
        })
    }

    /// Takes over what is solid: cells of the levelled scan that are not in here are in nobody's way any
    /// more, and those that are in here are. `rotation` and `scale` are as in [`Collision::of`]. Heights
    /// and colours stay those of the splats.
    pub fn apply(&self, voxels: &mut Voxels, rotation: Quat, scale: f32) {
        let back = rotation.inverse();
        let cell_m = voxels.cell_m();
        let is_solid = |middle: Vec3| {
            let mut known = None;
            for place in places_in(middle, cell_m) {
                match self.is_solid(back * place / scale) {
                    Some(true) => return Some(true),
                    Some(false) => known = Some(false),
                    None => {}
                }
            }
            known
        };
        let to_level = rotation * self.turn;
        let mut places = Vec::new();
        for (bits, mask) in &self.blocks {
            let block = place_of(*bits);
            // What is in the middle of a massive is in nobody's way.
            let is_full = |at: IVec3| {
                at.min_element() >= 0 && self.blocks.get(&interleaved(at)) == Some(&u64::MAX)
            };
            let around = [IVec3::X, IVec3::Y, IVec3::Z];
            if is_full(block)
                && around
                    .iter()
                    .all(|d| is_full(block + *d) && is_full(block - *d))
            {
                continue;
            }
            for number in (0..64).filter(|n| mask >> n & 1 == 1) {
                let inner = IVec3::new(number & 3, number >> 2 & 3, number >> 4);
                let middle = (block * SIDE + inner).as_vec3() + 0.5;
                let middle = self.low + middle * self.cell;
                places.push(to_level * middle * scale);
            }
        }
        voxels.set_solid(&is_solid, &places);
    }

    /// The two files: description and tree. `None` where the tree has more nodes than the format can
    /// number.
    #[must_use]
    pub fn encode(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let depth = depth_of(self.size.max_element() / SIDE);
        let blocks: Vec<(u64, u64)> = self.blocks.iter().map(|(b, m)| (*b, *m)).collect();
        let (mut nodes, mut leaves): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut inner = 0;
        if !blocks.is_empty() {
            let root = tree(&blocks, depth);
            let mut open = VecDeque::from([&root]);
            // Of nodes that are numbered: those that are written and those that wait.
            let mut numbered = 1;
            while let Some(node) = open.pop_front() {
                match node {
                    Node::Solid => nodes.push(SOLID),
                    Node::Mixed(mask) => {
                        nodes.push((leaves.len() / 2) as u32);
                        leaves.extend([*mask as u32, (*mask >> 32) as u32]);
                    }
                    Node::Inner(children) => {
                        inner += 1;
                        let mask: u32 = children.iter().map(|(octant, _)| 1 << octant).sum();
                        nodes.push(mask << 24 | numbered);
                        numbered += children.len() as u32;
                        if numbered > OFFSET_MAX {
                            return None;
                        }
                        open.extend(children.iter().map(|(_, child)| child));
                    }
                }
            }
        }
        let high = self.low + self.size.as_vec3() * self.cell;
        let bounds = json!({ "min": self.low.to_array(), "max": high.to_array() });
        let description = json!({
            "version": "1.1",
            "gridBounds": bounds,
            "sceneBounds": bounds,
            "voxelResolution": self.cell,
            "leafSize": SIDE,
            "treeDepth": depth,
            "numInteriorNodes": inner,
            "numMixedLeaves": leaves.len() / 2,
            "nodeCount": nodes.len(),
            "leafDataCount": leaves.len(),
        });
        let words = nodes.iter().chain(&leaves);
        let tree = words.flat_map(|word| word.to_le_bytes()).collect();
        Some((description.to_string().into_bytes(), tree))
    }

    /// Reads the two files.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn decode(description: &[u8], tree: &[u8]) -> Result<Self, Refused> {
        let wrong = |text: String| Refused::Description(text);
        let known: Value = serde_json::from_slice(description).map_err(|e| wrong(e.to_string()))?;
        let number = |name: &str| {
            known[name]
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .ok_or_else(|| wrong(format!("{name} is no number")))
        };
        let turn = match known["version"].as_str() {
            // The file's own axes: y down.
            Some("1.0") => Quat::from_rotation_x(std::f32::consts::PI),
            Some("1.1") => engine(),
            other => {
                return Err(wrong(format!(
                    "version {} is not 1.0 or 1.1",
                    other.unwrap_or("?")
                )));
            }
        };
        if number("leafSize")? != SIDE as u32 {
            return Err(wrong("leafSize is not 4".to_owned()));
        }
        let depth = number("treeDepth")?;
        if depth > DEPTH_MAX {
            return Err(wrong(format!("treeDepth is over {DEPTH_MAX}")));
        }
        let cell = known["voxelResolution"].as_f64().unwrap_or(0.0) as f32;
        if !(1e-4..=1e3).contains(&cell) {
            return Err(wrong("voxelResolution is no length".to_owned()));
        }
        let corner = |name: &str| {
            let at = |i: usize| known["gridBounds"][name][i].as_f64().map(|v| v as f32);
            match (at(0), at(1), at(2)) {
                (Some(x), Some(y), Some(z)) if Vec3::new(x, y, z).abs().max_element() < 1e7 => {
                    Ok(Vec3::new(x, y, z))
                }
                _ => Err(wrong(format!("gridBounds.{name} is no place"))),
            }
        };
        let (low, high) = (corner("min")?, corner("max")?);
        let size = ((high - low) / cell).round();
        let widest = (SIDE << depth) as f32;
        if size.min_element() < 0.0 || size.max_element() > widest {
            return Err(wrong("gridBounds do not fit treeDepth".to_owned()));
        }
        let (node_count, leaf_count) = (number("nodeCount")?, number("leafDataCount")?);
        let whole = (u64::from(node_count) + u64::from(leaf_count)) * 4;
        if tree.len() as u64 != whole {
            return Err(Refused::Tree("it is not as long as the description says"));
        }
        let words: Vec<u32> = tree
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let (nodes, leaves) = words.split_at(node_count as usize);
        let blocks = unpacked(nodes, leaves, depth)?;
        Ok(Self {
            turn,
            low,
            size: size.as_ivec3(),
            cell,
            blocks,
        })
    }
}

/// The tree over sorted blocks that share all bits above `level`.
fn tree(blocks: &[(u64, u64)], level: u32) -> Node {
    if level == 0 {
        let mask = blocks[0].1;
        return if mask == u64::MAX {
            Node::Solid
        } else {
            Node::Mixed(mask)
        };
    }
    let octant = |bits: u64| (bits >> (3 * (level - 1)) & 7) as u32;
    let children: Vec<(u32, Node)> = blocks
        .chunk_by(|a, b| octant(a.0) == octant(b.0))
        .map(|part| (octant(part[0].0), tree(part, level - 1)))
        .collect();
    let is_solid = |(_, child): &(u32, Node)| matches!(child, Node::Solid);
    if children.len() == 8 && children.iter().all(is_solid) {
        Node::Solid
    } else {
        Node::Inner(children)
    }
}

/// All blocks of a tree of `depth` levels.
fn unpacked(nodes: &[u32], leaves: &[u32], depth: u32) -> Result<BTreeMap<u64, u64>, Refused> {
    let mut blocks = BTreeMap::new();
    let mut seen = vec![false; nodes.len()];
    // Node, levels below it, and the bits of its place.
    let mut open: Vec<(usize, u32, u64)> = Vec::new();
    if !nodes.is_empty() {
        open.push((0, depth, 0));
    }
    while let Some((index, level, bits)) = open.pop() {
        let node = nodes[index];
        let (mask, offset) = (node >> 24, (node & OFFSET_MAX) as usize);
        if std::mem::replace(&mut seen[index], true) {
            return Err(Refused::Tree("a node has two parents"));
        }
        if node == SOLID {
            let count = 1_u64 << (3 * level);
            if blocks.len() as u64 + count > BLOCKS_MAX as u64 {
                return Err(Refused::TooLarge(BLOCKS_MAX));
            }
            blocks.extend((0..count).map(|k| (bits << (3 * level) | k, u64::MAX)));
        } else if mask == 0 {
            if level != 0 {
                return Err(Refused::Tree("a block is not at the bottom"));
            }
            let pair = leaves.get(2 * offset..2 * offset + 2);
            let pair = pair.ok_or(Refused::Tree("a block has no cells"))?;
            if blocks.len() >= BLOCKS_MAX {
                return Err(Refused::TooLarge(BLOCKS_MAX));
            }
            blocks.insert(bits, u64::from(pair[0]) | u64::from(pair[1]) << 32);
        } else {
            if level == 0 {
                return Err(Refused::Tree("it is deeper than the description says"));
            }
            let children = (0..8_u64).filter(|octant| mask >> octant & 1 == 1);
            for (k, octant) in children.enumerate() {
                let child = offset + k;
                // Children come after their parents, so there is no circle.
                if child <= index || child >= nodes.len() {
                    return Err(Refused::Tree("a child is not there"));
                }
                open.push((child, level - 1, bits << 3 | octant));
            }
        }
    }
    Ok(blocks)
}
