//! Stage "effects": what each effect makes of splats, before culling. One pipeline for every list of
//! effects in use, and rows for what they leave, which culling and projection read.
//!
//! The text of a pipeline is the product's, the effects' own, and a few lines that call one after the
//! other. A pipeline is built when a frame first asks for its list and kept as long as frames do. What
//! follows the stage is built once, whatever the effects are: somebody waits for a saved effect to be
//! compiled, and Mesa's software driver takes 30 ms over the smallest shader.
//!
//! The stage poses, edits and colours splats itself, or finds that done by [`Ready`]'s `stand`
//! (`is_apart`): more to write and read again (64 bytes a splat each), less to compile.

use super::front::{Layouts, splat_shader};
use super::layouts::{Kind, bind, compute, layout, words_buffer};
use super::residency::{PageBuffers, Residency};
use super::shaders::{Part, ShaderSource, module_of};
use super::uniforms::GROUP;
use super::{Context, Error, Packing, pipelines_built};
use crate::effect::EffectUse;
use crate::scene::Splats;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Lists of effects whose pipelines are kept.
const KEPT: usize = 32;
/// Pictures without a draw after which its rows are freed.
const IDLE_MAX: u32 = 120;
/// Words of a splat in each of the arrays of rows.wgsl.
const ROW_WORDS: u64 = 4;

/// Culling and projection of draws of one kind: with effects, or without.
pub struct ProjectPipelines {
    pub cull: wgpu::ComputePipeline,
    pub project: wgpu::ComputePipeline,
}

/// Pipelines that draws with effects need whatever the effects are.
pub struct Ready {
    settled: ProjectPipelines,
    /// Where the stage has two halves, the first.
    stand: Option<wgpu::ComputePipeline>,
}

struct Variant {
    hashes: Vec<[u8; 32]>,
    pipeline: wgpu::ComputePipeline,
    used_at: u64,
}

/// What effects leave of one draw.
struct Slot {
    splats: Weak<Splats>,
    is_taken: bool,
    /// Pictures since it was last taken.
    idle: u32,
    pages: Vec<SlotPage>,
}

struct SlotPage {
    /// Group 2 of the stage.
    write: wgpu::BindGroup,
    /// Group 1 of the front end, with the rows in place of the splats.
    read: wgpu::BindGroup,
}

/// Which pipeline and rows a draw with effects has in this picture.
#[derive(Clone, Copy)]
pub struct Settling {
    variant: usize,
    slot: usize,
}

/// All effects of one renderer.
pub struct Effects {
    is_apart: bool,
    layout: wgpu::BindGroupLayout,
    /// Built for the first draw with effects.
    ready: Option<Ready>,
    variants: Vec<Variant>,
    slots: Vec<Slot>,
    clock: u64,
}

/// What pipelines are made of.
#[derive(Clone, Copy)]
pub struct Making<'m> {
    pub context: &'m Context,
    pub shaders: &'m ShaderSource,
    pub packing: Packing,
    pub residency: &'m Residency,
    pub layouts: &'m Layouts,
}

impl Effects {
    /// Without an effect. With `is_apart` the stage has two halves.
    pub fn new(device: &wgpu::Device, is_apart: bool) -> Self {
        Self {
            is_apart,
            layout: layout(
                device,
                "effects",
                wgpu::ShaderStages::COMPUTE,
                &[Kind::Write, Kind::Write, Kind::Write, Kind::Write],
            ),
            ready: None,
            variants: Vec::new(),
            slots: Vec::new(),
            clock: 0,
        }
    }

    /// Forgets which rows the last picture took, and frees those that no picture took in a while.
    pub fn begin(&mut self) {
        for slot in &mut self.slots {
            slot.idle = if slot.is_taken { 0 } else { slot.idle + 1 };
            slot.is_taken = false;
        }
        self.slots.retain(|slot| slot.idle <= IDLE_MAX);
    }

    /// Pipeline and rows for a draw of `splats` with these effects; the pipeline is built where it is
    /// new. `pages` are the splats' own.
    ///
    /// # Errors
    /// [`Error::Shader`] at the author's line, where an effect does not build beside the others.
    pub fn prepare(
        &mut self,
        making: Making<'_>,
        splats: &Arc<Splats>,
        pages: &[PageBuffers],
        effects: &[EffectUse],
    ) -> Result<Option<Settling>, Error> {
        if effects.is_empty() {
            return Ok(None);
        }
        let variant = self.variant(making, effects)?;
        let is_free =
            |slot: &Slot| !slot.is_taken && std::ptr::eq(slot.splats.as_ptr(), Arc::as_ptr(splats));
        let slot = match self.slots.iter().position(is_free) {
            Some(slot) => slot,
            None => {
                let pages = pages.iter().map(|page| self.slot_page(making, page));
                self.slots.push(Slot {
                    splats: Arc::downgrade(splats),
                    is_taken: false,
                    idle: 0,
                    pages: pages.collect(),
                });
                self.slots.len() - 1
            }
        };
        self.slots[slot].is_taken = true;
        Ok(Some(Settling { variant, slot }))
    }

    fn variant(&mut self, making: Making<'_>, effects: &[EffectUse]) -> Result<usize, Error> {
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
                // A driver takes its time over each.
                let (ready, pipeline) = rayon::join(
                    || match self.ready {
                        Some(_) => Ok(None),
                        None => self.built(making).map(Some),
                    },
                    || self.pipeline(making, effects),
                );
                let pipeline = pipeline?;
                if let Some(ready) = ready? {
                    self.ready = Some(ready);
                }
                tracing::debug!(
                    "a pipeline for {} effects built in {:.1} ms",
                    effects.len(),
                    begun.elapsed().as_secs_f64() * 1e3
                );
                self.variants.push(Variant {
                    hashes: effects.iter().map(|e| e.effect.hash()).collect(),
                    pipeline,
                    used_at: self.clock,
                });
                self.variants.len() - 1
            }
        };
        self.variants[index].used_at = self.clock;
        Ok(index)
    }

    fn slot_page(&self, making: Making<'_>, page: &PageBuffers) -> SlotPage {
        let device = &making.context.device;
        let words = u64::from(page.count) * ROW_WORDS;
        let buffers = ["place", "scale", "rotation", "colour"]
            .map(|name| words_buffer(device, name, words, wgpu::BufferUsages::empty()));
        let bound = buffers.each_ref().map(wgpu::Buffer::as_entire_binding);
        SlotPage {
            write: bind(device, &self.layout, &bound),
            read: bind(device, &making.residency.layout, &bound),
        }
    }

    /// Runs the stage for one page. Group 0 is bound; `splats` is group 1 of the front end with pose and
    /// arrivals in place.
    pub fn record(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        splats: &wgpu::BindGroup,
        settling: Settling,
        page: usize,
        count: u32,
    ) {
        pass.set_bind_group(1, splats, &[]);
        pass.set_bind_group(2, &self.slots[settling.slot].pages[page].write, &[]);
        let stand = self.ready.as_ref().and_then(|ready| ready.stand.as_ref());
        let own = &self.variants[settling.variant].pipeline;
        for pipeline in stand.into_iter().chain([own]) {
            pass.set_pipeline(pipeline);
            pass.dispatch_workgroups(count.div_ceil(GROUP), 1, 1);
        }
    }

    /// What effects left of one page: group 1 of the front end after this stage.
    pub fn settled(&self, settling: Settling, page: usize) -> &wgpu::BindGroup {
        &self.slots[settling.slot].pages[page].read
    }

    /// Culling and projection of draws with effects; there once one is prepared.
    pub fn pipelines(&self) -> Option<&ProjectPipelines> {
        self.ready.as_ref().map(|ready| &ready.settled)
    }

    /// What depends on no effect, built anew from other texts; `None` where no draw had effects yet. The
    /// stage itself is only tried, with no effect in it.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn rebuilt(&self, making: Making<'_>) -> Result<Option<Ready>, Error> {
        self.pipeline(making, &[])?;
        match self.ready {
            Some(_) => self.built(making).map(Some),
            None => Ok(None),
        }
    }

    /// Takes what [`Effects::rebuilt`] made, and forgets all other pipelines: they are built anew from
    /// other texts.
    pub fn set_ready(&mut self, ready: Option<Ready>) {
        self.ready = ready;
        self.variants.clear();
    }

    /// Frees rows that the last picture did not take, and pipelines that were not asked for in a long
    /// time.
    pub fn release_unused(&mut self) {
        self.slots
            .retain(|slot| slot.is_taken && slot.splats.strong_count() > 0);
        while self.variants.len() > KEPT {
            let oldest = (0..self.variants.len()).min_by_key(|i| self.variants[*i].used_at);
            self.variants.remove(oldest.unwrap_or(0));
        }
    }

    fn built(&self, making: Making<'_>) -> Result<Ready, Error> {
        let Making {
            context: Context { device, .. },
            shaders,
            packing,
            ..
        } = making;
        let settled = [
            TYPES,
            "shared/footprint.wgsl",
            "shared/tile_span.wgsl",
            "shared/settled.wgsl",
            "project.wgsl",
        ];
        let settled = shaders.module(device, "project settled", &settled)?;
        let stand = if self.is_apart {
            let names = [&STANDING[..], &["shared/rows.wgsl", "stand.wgsl"]].concat();
            let module = shaders.module(device, "stand", &with_packing(&names, packing))?;
            Some(self.stage(making, &module, "stand")?)
        } else {
            None
        };
        Ok(Ready {
            settled: ProjectPipelines::new(device, &settled, making.residency, making.layouts)?,
            stand,
        })
    }

    /// The stage for these effects.
    fn pipeline(
        &self,
        making: Making<'_>,
        effects: &[EffectUse],
    ) -> Result<wgpu::ComputePipeline, Error> {
        let shaders = making.shaders;
        let before = if self.is_apart {
            vec![TYPES, QUATERNION, SPLAT, "shared/stood.wgsl"]
        } else {
            [&STANDING[..], &["shared/off.wgsl"]].concat()
        };
        let mut parts = Vec::new();
        for name in with_packing(&before, making.packing) {
            parts.push(shaders.part(name)?);
        }
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
        parts.push(shaders.part("shared/rows.wgsl")?);
        parts.push(shaders.part("effects.wgsl")?);
        let module = module_of(&making.context.device, "effects", &parts)?;
        self.stage(making, &module, "effects")
    }

    fn stage(
        &self,
        making: Making<'_>,
        module: &wgpu::ShaderModule,
        entry: &str,
    ) -> Result<wgpu::ComputePipeline, Error> {
        let device = &making.context.device;
        // Errors belong to the thread that made them.
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let groups = [
            &making.layouts.uniforms,
            &making.residency.layout,
            &self.layout,
        ];
        let pipeline = compute(device, module, entry, &groups);
        pipelines_built(scope).map(|()| pipeline)
    }
}

const TYPES: &str = "shared/types.wgsl";
const QUATERNION: &str = "shared/quaternion.wgsl";
/// Stands for the shader that reads splats of a packing.
const SPLAT: &str = "";
/// Texts of splats as they stand: posed, edited, coloured.
const STANDING: [&str; 6] = [
    TYPES,
    QUATERNION,
    SPLAT,
    "shared/edit.wgsl",
    "shared/sh.wgsl",
    "shared/plain.wgsl",
];

fn with_packing<'n>(names: &[&'n str], packing: Packing) -> Vec<&'n str> {
    let name = |name: &&'n str| match *name {
        SPLAT => splat_shader(packing),
        other => other,
    };
    names.iter().map(name).collect()
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

/// The module of culling and projection for draws without effects.
///
/// # Errors
/// A shader that does not validate.
pub fn plain_module(
    device: &wgpu::Device,
    shaders: &ShaderSource,
    packing: Packing,
) -> Result<wgpu::ShaderModule, Error> {
    let after = [
        "shared/footprint.wgsl",
        "shared/tile_span.wgsl",
        "project.wgsl",
    ];
    let names = with_packing(&[&STANDING[..], &after].concat(), packing);
    shaders.module(device, "project", &names)
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
