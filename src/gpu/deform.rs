//! Stage "deform": bodies to posed splats, before culling. Centres and turns go into a buffer of their
//! own, 32 bytes a splat, so that one set of splats can stand in several poses at once.
//!
//! It packs skin and shapes once per body (16 bytes a splat, and 8 for each shape that moves the most
//! moved splat of its block of 32) and writes bones and coefficients once per picture. Twin:
//! [`crate::reference::deform`].

use super::layouts::{Kind, bind, compute, layout, words_buffer};
use super::residency::{PageBuffers, Residency};
use super::shaders::ShaderSource;
use super::uniforms::GROUP;
use super::{Context, Error, Packing};
use crate::scene::body::BONES_MAX;
use crate::scene::rigid::DualQuat;
use crate::scene::{Body, Pose, Splats};
use std::ops::Range;
use std::sync::{Arc, Weak};
use wgpu::BufferUsages as Usage;

/// Words of one row in `rows` of deform.wgsl.
const ROW_WORDS: usize = 4;
/// Words of one entry in `entries`.
const ENTRY_WORDS: usize = 2;
/// Rows whose entries lie side by side; as in deform.wgsl.
const ENTRY_STRIDE: usize = 32;
/// Words of one splat in the posed buffer.
const POSED_WORDS: u64 = 8;

/// A stretch of a page's rows whose entries fit one binding.
struct Part {
    bindings: wgpu::BindGroup,
    count: u32,
}

/// Skin and shapes on the GPU.
struct ResidentBody {
    body: Weak<Body>,
    /// Rows of each page, which follow the splats' pages.
    page_rows: Vec<u32>,
    pages: Vec<Vec<Part>>,
}

/// One posed draw: what it is posed by and where the result goes.
struct Slot {
    body: Weak<Body>,
    splats: Weak<Splats>,
    is_taken: bool,
    resident: usize,
    pose: wgpu::Buffer,
    pages: Vec<SlotPage>,
}

struct SlotPage {
    /// Group 2 of the deform pipeline.
    write: wgpu::BindGroup,
    /// Group 1 of the front end, with the posed buffer in place.
    read: wgpu::BindGroup,
    posed: wgpu::Buffer,
    count: u32,
}

/// All bodies and posed draws of one renderer.
pub struct Deform {
    part_layout: wgpu::BindGroupLayout,
    pose_layout: wgpu::BindGroupLayout,
    bodies: Vec<ResidentBody>,
    slots: Vec<Slot>,
}

impl Deform {
    /// Without a body.
    pub fn new(device: &wgpu::Device) -> Self {
        let stage = wgpu::ShaderStages::COMPUTE;
        Self {
            part_layout: layout(
                device,
                "deform part",
                stage,
                &[Kind::Read, Kind::Read, Kind::Read],
            ),
            pose_layout: layout(device, "pose", stage, &[Kind::Read, Kind::Write]),
            bodies: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// The pipeline.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn pipeline(
        &self,
        device: &wgpu::Device,
        shaders: &ShaderSource,
        packing: Packing,
        residency: &Residency,
    ) -> Result<wgpu::ComputePipeline, Error> {
        let module = shaders.module(
            device,
            "deform",
            &[
                "shared/types.wgsl",
                "shared/quaternion.wgsl",
                super::front::splat_shader(packing),
                "deform.wgsl",
            ],
        )?;
        let layouts = [&self.part_layout, &residency.layout, &self.pose_layout];
        Ok(compute(device, &module, "deform", &layouts))
    }

    /// Forgets which slots the last picture took.
    pub fn begin(&mut self) {
        for slot in &mut self.slots {
            slot.is_taken = false;
        }
    }

    /// Uploads what is not resident yet, writes the pose, and returns the slot of this draw.
    ///
    /// # Errors
    /// A body of more bones than a skin can name.
    pub fn prepare(
        &mut self,
        context: &Context,
        residency: &Residency,
        splats: &Arc<Splats>,
        pages: &[PageBuffers],
        pose: &Pose,
    ) -> Result<usize, Error> {
        let bones = bone_count(&pose.body);
        if bones > BONES_MAX || pose.motions.len() < bones {
            return Err(Error::Device(format!(
                "a body of {bones} bones in a pose of {}: at most {BONES_MAX} can be drawn",
                pose.motions.len()
            )));
        }
        let resident = self.resident(context, &pose.body, pages);
        let same = |slot: &Slot| {
            !slot.is_taken
                && std::ptr::eq(slot.body.as_ptr(), Arc::as_ptr(&pose.body))
                && std::ptr::eq(slot.splats.as_ptr(), Arc::as_ptr(splats))
        };
        let index = match self.slots.iter().position(same) {
            Some(index) => index,
            None => {
                let slot = self.slot(context, residency, splats, pages, pose, resident);
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[index];
        slot.is_taken = true;
        slot.resident = resident;
        context
            .queue
            .write_buffer(&slot.pose, 0, bytemuck::cast_slice(&pose_words(pose)));
        Ok(index)
    }

    fn slot(
        &self,
        context: &Context,
        residency: &Residency,
        splats: &Arc<Splats>,
        pages: &[PageBuffers],
        pose: &Pose,
        resident: usize,
    ) -> Slot {
        let device = &context.device;
        let words = pose_words(pose).len() as u64;
        let buffer = words_buffer(device, "pose", words, Usage::COPY_DST);
        let pages = pages
            .iter()
            .map(|page| {
                let posed = words_buffer(
                    device,
                    "posed splats",
                    u64::from(page.count) * POSED_WORDS,
                    Usage::COPY_SRC,
                );
                SlotPage {
                    write: bind(
                        device,
                        &self.pose_layout,
                        &[buffer.as_entire_binding(), posed.as_entire_binding()],
                    ),
                    read: residency.bind_posed(device, page, &posed),
                    posed,
                    count: page.count,
                }
            })
            .collect();
        Slot {
            body: Arc::downgrade(&pose.body),
            splats: Arc::downgrade(splats),
            is_taken: false,
            resident,
            pose: buffer,
            pages,
        }
    }

    /// Group 1 of the front end for one page of a slot.
    pub fn bindings(&self, slot: usize, page: usize) -> &wgpu::BindGroup {
        &self.slots[slot].pages[page].read
    }

    /// Posed splats of one page of a slot.
    pub fn posed_page(&self, slot: usize, page: usize) -> &wgpu::Buffer {
        &self.slots[slot].pages[page].posed
    }

    /// Posed buffers of a slot with their rows, for tests.
    pub fn posed(&self, slot: usize) -> impl Iterator<Item = (&wgpu::Buffer, u32)> {
        self.slots[slot].pages.iter().map(|p| (&p.posed, p.count))
    }

    /// Poses one page of a slot.
    pub fn record(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        splats: &wgpu::BindGroup,
        slot: usize,
        page: usize,
    ) {
        let slot = &self.slots[slot];
        pass.set_bind_group(1, splats, &[]);
        pass.set_bind_group(2, &slot.pages[page].write, &[]);
        for part in &self.bodies[slot.resident].pages[page] {
            pass.set_bind_group(0, &part.bindings, &[]);
            pass.dispatch_workgroups(part.count.div_ceil(GROUP), 1, 1);
        }
    }

    /// Frees what belongs to bodies and splats that nobody holds any more.
    pub fn release_unused(&mut self) {
        // Slots name bodies by number, which each picture's `prepare` looks up anew.
        self.bodies.retain(|b| b.body.strong_count() > 0);
        self.slots
            .retain(|s| s.body.strong_count() > 0 && s.splats.strong_count() > 0);
    }

    fn resident(&mut self, context: &Context, body: &Arc<Body>, pages: &[PageBuffers]) -> usize {
        let page_rows: Vec<u32> = pages.iter().map(|p| p.count).collect();
        let found = self.bodies.iter().position(|known| {
            std::ptr::eq(known.body.as_ptr(), Arc::as_ptr(body)) && known.page_rows == page_rows
        });
        if let Some(index) = found {
            return index;
        }
        let limits = context.device.limits();
        let bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size);
        let entries_max = bytes as usize / (4 * ENTRY_WORDS);
        let mut resident = ResidentBody {
            body: Arc::downgrade(body),
            pages: Vec::new(),
            page_rows,
        };
        let mut first = 0;
        for page in pages {
            let rows = first..first + page.count as usize;
            let parts = split(body, rows.clone(), entries_max)
                .into_iter()
                .map(|range| self.part(context, body, range, rows.start))
                .collect();
            resident.pages.push(parts);
            first = rows.end;
        }
        self.bodies.push(resident);
        self.bodies.len() - 1
    }

    fn part(&self, context: &Context, body: &Body, rows: Range<usize>, page_start: usize) -> Part {
        let (row_words, entry_words) = pack(body, rows.clone());
        let buffer = |label, words: &[u32], usage| {
            let buffer = context.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size: (words.len().max(4) * 4) as u64,
                usage: usage | Usage::COPY_DST,
                mapped_at_creation: false,
            });
            context
                .queue
                .write_buffer(&buffer, 0, bytemuck::cast_slice(words));
            buffer
        };
        let header = [
            (rows.start - page_start) as u32,
            rows.len() as u32,
            bone_count(body) as u32,
            0,
        ];
        let header = buffer("deform part", &header, Usage::STORAGE);
        let packed_rows = buffer("skin", &row_words, Usage::STORAGE);
        let entries = buffer("shapes", &entry_words, Usage::STORAGE);
        Part {
            bindings: bind(
                &context.device,
                &self.part_layout,
                &[
                    header.as_entire_binding(),
                    packed_rows.as_entire_binding(),
                    entries.as_entire_binding(),
                ],
            ),
            count: rows.len() as u32,
        }
    }
}

/// Bones that move splats.
fn bone_count(body: &Body) -> usize {
    body.skin.as_ref().map_or(0, |_| body.bones.len())
}

/// Bones as dual quaternions, then coefficients, as deform.wgsl reads them.
fn pose_words(pose: &Pose) -> Vec<f32> {
    let mut words: Vec<f32> = pose.motions[..bone_count(&pose.body)]
        .iter()
        .flat_map(|motion| {
            let DualQuat { real, dual } = DualQuat::from(*motion);
            [real.to_array(), dual.to_array()]
        })
        .flatten()
        .collect();
    words.extend(&pose.coefficients);
    words.resize(words.len().next_multiple_of(4).max(4), 0.0);
    words
}

/// Cuts rows where their entries would exceed one binding. One block of rows always fits: it has no
/// more entries than there are shapes, times its rows.
fn split(body: &Body, rows: Range<usize>, entries_max: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut entries) = (rows.start, 0);
    let mut block = rows.start;
    while block < rows.end {
        let end = (block + ENTRY_STRIDE).min(rows.end);
        let own = longest(body, block..end) * ENTRY_STRIDE;
        if entries + own > entries_max && block > start {
            parts.push(start..block);
            (start, entries) = (block, 0);
        }
        entries += own;
        block = end;
    }
    if start < rows.end {
        parts.push(start..rows.end);
    }
    parts
}

/// Entries of the row that has most.
fn longest(body: &Body, rows: Range<usize>) -> usize {
    rows.map(|row| body.shapes.row(row).len())
        .max()
        .unwrap_or(0)
}

/// Rows and entries of deform.wgsl.
fn pack(body: &Body, rows: Range<usize>) -> (Vec<u32>, Vec<u32>) {
    let mut row_words = Vec::with_capacity(rows.len() * ROW_WORDS);
    let mut entry_words: Vec<u32> = Vec::new();
    let mut block = rows.start;
    while block < rows.end {
        let end = (block + ENTRY_STRIDE).min(rows.end);
        let first = entry_words.len() / ENTRY_WORDS;
        let length = longest(body, block..end);
        entry_words.resize((first + length * ENTRY_STRIDE) * ENTRY_WORDS, 0);
        for (lane, row) in (block..end).enumerate() {
            let (bones, weights) = match &body.skin {
                Some(skin) => skin.heaviest(row),
                None => ([0; 4], [1.0, 0.0, 0.0, 0.0]),
            };
            let [a, b, c, _] = weights.map(|w| (w.clamp(0.0, 1.0) * 65_535.0).round() as u32);
            let entries = body.shapes.row(row);
            row_words.extend([
                (first + lane) as u32,
                u32::from_le_bytes(bones),
                a | b << 16,
                c | (entries.len() as u32) << 16,
            ]);
            for (i, entry) in entries.iter().enumerate() {
                let [x, y, z] = entry.offset.map(|v| u32::from(v.to_bits()));
                let at = (first + lane + i * ENTRY_STRIDE) * ENTRY_WORDS;
                entry_words[at] = x | y << 16;
                entry_words[at + 1] = z | u32::from(entry.shape) << 16;
            }
        }
        block = end;
    }
    (row_words, entry_words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::body::Shapes;
    use glam::Vec3;

    #[test]
    fn rows_are_cut_where_entries_would_not_fit() {
        let mut shapes = Shapes::new(vec!["a".into(), "b".into()]);
        for _ in 0..100 {
            shapes.push_row([(0, Vec3::X), (1, Vec3::Y)]);
        }
        let body = Body {
            shapes,
            ..Body::default()
        };
        let block = ENTRY_STRIDE;
        assert_eq!(
            split(&body, 0..100, 2 * 2 * block),
            [0..2 * block, 2 * block..100]
        );
        assert_eq!(split(&body, 1..3, 1000), vec![1..3; 1]);
        assert_eq!(split(&body, 2..2, 1000), Vec::<Range<usize>>::new());
        let (rows, entries) = pack(&body, 30..70);
        assert_eq!(rows.len(), 40 * ROW_WORDS);
        assert_eq!(entries.len(), 2 * 2 * block * ENTRY_WORDS, "two blocks");
        let second = &rows[33 * ROW_WORDS..34 * ROW_WORDS];
        assert_eq!(second[0] as usize, 2 * block + 1, "second row of block 2");
        assert_eq!(second[3] >> 16, 2, "two entries");
        let at = (second[0] as usize + block) * ENTRY_WORDS;
        assert_eq!(entries[at + 1] >> 16, 1, "the second entry is shape 1");
    }
}
