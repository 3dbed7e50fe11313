//! Effects on the GPU: a pair of pipelines for every list of effects in use, and arrivals of spreads.
//!
//! The text of a pipeline is the product's, the effects' own, and a few lines that call one after the
//! other. A pipeline is built when a frame first asks for its list and kept as long as frames do; of
//! arrivals only chunks that have changed are sent.

use super::front::{Layouts, splat_shader};
use super::layouts::{compute, words_buffer};
use super::residency::Residency;
use super::shaders::{Part, ShaderSource, module_of};
use super::{Context, Error, Packing, pipelines_built};
use crate::effect::EffectUse;
use crate::effect::spread::{Arrivals, CHUNK_ROWS};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Lists of effects whose pipelines are kept.
const KEPT: usize = 32;

/// Pipelines of the front end that depend on effects.
pub struct ProjectPipelines {
    pub cull: wgpu::ComputePipeline,
    pub project: wgpu::ComputePipeline,
}

struct Variant {
    hashes: Vec<[u8; 32]>,
    pipelines: ProjectPipelines,
    used_at: u64,
}

/// Arrivals of one spread.
struct Resident {
    identity: Weak<()>,
    page_rows: Vec<u32>,
    pages: Vec<wgpu::Buffer>,
    /// What lies in the buffers.
    sent: Vec<Arc<Vec<f32>>>,
}

/// All pipelines with effects, and all arrivals.
#[derive(Default)]
pub struct Effects {
    variants: Vec<Variant>,
    residents: Vec<Resident>,
    clock: u64,
}

impl Effects {
    /// The number of the pipelines for these effects, which are built where they are new.
    ///
    /// # Errors
    /// [`Error::Shader`] at the author's line, where an effect does not build beside the others.
    pub fn prepare(
        &mut self,
        context: &Context,
        shaders: &ShaderSource,
        packing: Packing,
        residency: &Residency,
        layouts: &Layouts,
        effects: &[EffectUse],
    ) -> Result<Option<usize>, Error> {
        if effects.is_empty() {
            return Ok(None);
        }
        self.clock += 1;
        let is_it = |v: &Variant| {
            v.hashes.len() == effects.len()
                && v.hashes
                    .iter()
                    .zip(effects)
                    .all(|(h, e)| *h == e.effect.hash())
        };
        let index = match self.variants.iter().position(is_it) {
            Some(index) => index,
            None => {
                let begun = Instant::now();
                let device = &context.device;
                let module = project_module(device, shaders, packing, effects)?;
                let pipelines = ProjectPipelines::new(device, &module, residency, layouts)?;
                tracing::debug!(
                    "pipelines for {} effects built in {:.1} ms",
                    effects.len(),
                    begun.elapsed().as_secs_f64() * 1e3
                );
                let variant = Variant {
                    hashes: effects.iter().map(|e| e.effect.hash()).collect(),
                    pipelines,
                    used_at: self.clock,
                };
                self.variants.push(variant);
                self.variants.len() - 1
            }
        };
        self.variants[index].used_at = self.clock;
        Ok(Some(index))
    }

    /// Pipelines by their number.
    pub fn pipelines(&self, variant: usize) -> &ProjectPipelines {
        &self.variants[variant].pipelines
    }

    /// Forgets all pipelines: they are built anew from other texts.
    pub fn forget_pipelines(&mut self) {
        self.variants.clear();
    }

    /// Brings arrivals up to date and returns their number. `page_rows` are rows of the pages that the
    /// splats lie in.
    pub fn send(&mut self, context: &Context, arrivals: &Arrivals, page_rows: &[u32]) -> usize {
        let known = self.residents.iter().position(|r| {
            std::ptr::eq(r.identity.as_ptr(), Arc::as_ptr(arrivals.identity()))
                && r.page_rows == page_rows
        });
        let index = known.unwrap_or_else(|| {
            let buffer = |rows: &u32| {
                let usage = wgpu::BufferUsages::COPY_DST;
                words_buffer(&context.device, "arrivals", u64::from(*rows), usage)
            };
            self.residents.push(Resident {
                identity: Arc::downgrade(arrivals.identity()),
                page_rows: page_rows.to_vec(),
                pages: page_rows.iter().map(buffer).collect(),
                sent: Vec::new(),
            });
            self.residents.len() - 1
        });
        let resident = &mut self.residents[index];
        for (k, chunk) in arrivals.chunks().iter().enumerate() {
            if resident
                .sent
                .get(k)
                .is_some_and(|old| Arc::ptr_eq(old, chunk))
            {
                continue;
            }
            // A chunk may lie on both sides of a page's end.
            let (begin, end) = (k * CHUNK_ROWS, k * CHUNK_ROWS + chunk.len());
            let mut page_begin = 0;
            for (rows, buffer) in page_rows.iter().zip(&resident.pages) {
                let page_end = page_begin + *rows as usize;
                let (from, to) = (begin.max(page_begin), end.min(page_end));
                if from < to {
                    let floats = &chunk[from - begin..to - begin];
                    let at = (from - page_begin) as u64 * 4;
                    context
                        .queue
                        .write_buffer(buffer, at, bytemuck::cast_slice(floats));
                }
                page_begin = page_end;
            }
        }
        resident.sent = arrivals.chunks().to_vec();
        index
    }

    /// Arrivals of one page.
    pub fn arrivals(&self, index: usize, page: usize) -> &wgpu::Buffer {
        &self.residents[index].pages[page]
    }

    /// Frees arrivals that nobody holds any more, and pipelines that were not asked for in a long time.
    pub fn release_unused(&mut self) {
        self.residents.retain(|r| r.identity.strong_count() > 0);
        while self.variants.len() > KEPT {
            let oldest = (0..self.variants.len()).min_by_key(|i| self.variants[*i].used_at);
            self.variants.remove(oldest.unwrap_or(0));
        }
    }
}

impl ProjectPipelines {
    /// Builds both at once: a driver takes its time over each.
    ///
    /// # Errors
    /// The module does not fit its bindings.
    pub fn new(
        device: &wgpu::Device,
        module: &wgpu::ShaderModule,
        residency: &Residency,
        layouts: &Layouts,
    ) -> Result<Self, Error> {
        let build = |entry, own| {
            // Errors belong to the thread that made them.
            let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
            let groups = [&layouts.uniforms, &residency.layout, own];
            let pipeline = compute(device, module, entry, &groups);
            pipelines_built(scope).map(|()| pipeline)
        };
        let (cull, project) = rayon::join(
            || build("cull", &layouts.cull),
            || build("project", &layouts.project),
        );
        Ok(Self {
            cull: cull?,
            project: project?,
        })
    }
}

/// The module of culling and projection for draws with these effects, or with none.
///
/// # Errors
/// A shader that does not validate.
pub fn project_module(
    device: &wgpu::Device,
    shaders: &ShaderSource,
    packing: Packing,
    effects: &[EffectUse],
) -> Result<wgpu::ShaderModule, Error> {
    let mut parts = Vec::new();
    for name in [
        "shared/types.wgsl",
        "shared/quaternion.wgsl",
        splat_shader(packing),
        "shared/edit.wgsl",
        "shared/footprint.wgsl",
        "shared/tile_span.wgsl",
        "shared/sh.wgsl",
    ] {
        parts.push(shaders.part(name)?);
    }
    if effects.is_empty() {
        parts.push(shaders.part("shared/plain.wgsl")?);
    } else {
        parts.push(shaders.part("shared/effect.wgsl")?);
        for (place, used) in effects.iter().enumerate() {
            parts.push(Part {
                file: used.effect.file().to_owned(),
                text: Cow::Owned(used.effect.wgsl(place)),
                place: Some(place),
            });
        }
        parts.push(Part {
            file: "generated declarations".to_owned(),
            text: Cow::Owned(calls(effects)),
            place: None,
        });
        parts.push(shaders.part("shared/effected.wgsl")?);
    }
    parts.push(shaders.part("project.wgsl")?);
    module_of(device, "project", &parts)
}

/// The function that runs effects one after the other.
fn calls(effects: &[EffectUse]) -> String {
    let mut text =
        "fn effected(before: EffectSplat) -> EffectSplat {\n    var s = before;\n".to_owned();
    for (place, used) in effects.iter().enumerate() {
        let float = |n: usize| {
            let lane = ["x", "y", "z", "w"][n % 4];
            format!("page.effects[{place}].values[{}].{lane}", n / 4)
        };
        let t_s = format!("page.effects[{place}].t_s");
        let call = used.effect.call(place, "s", &t_s, &float);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    effect_turns = 0u;\n    s = settled(s, {call});");
    }
    text.push_str("    return s;\n}\n");
    text
}
