//! The front end: deform, effects, cull, scan, compact, project, sort. From a frame to projected records, in
//! order of depth unless the rasteriser puts them in order itself (`depth_bits` of the view).
//!
//! Everything is ordered by draw, page and row until the sort, which is stable, so equal frames
//! give equal records in an equal order whatever the adapter's timing.

use super::arrivals::AllArrivals;
use super::deform::Deform;
use super::effects::{Effects, Making, ProjectPipelines, Ready, Settling, plain_module};
use super::layouts::{Kind, bind, compute, layout, words_buffer};
use super::pick::{self, Pick};
use super::residency::{PageBuffers, Residency};
use super::shaders::ShaderSource;
use super::sort::Sorter;
use super::timing::{Counters, Timing};
use super::uniforms::{GROUP, Page, View};
use super::{Context, Error, Packing};
use crate::effect::EFFECTS_MAX;
use crate::frame::Frame;
use wgpu::BufferUsages as Usage;

/// Distance between two `Page`s, bytes: a multiple of the largest alignment that WebGPU allows. They
/// are bound as storage although all threads read the same: Mesa's software driver compiles a shader
/// anew for each value of a uniform that a branch depends on, here with every blink (0.7 s each).
const UNIFORM_STRIDE: u64 = (size_of::<Page>() as u64).next_multiple_of(256);
/// Words of `arguments` before the first page's dispatch; `PAGE_ARGUMENTS` in scan.wgsl.
const PAGE_ARGUMENTS: u64 = 12;
/// Offset of the dispatch over survivors in `arguments`, bytes.
pub const VISIBLE_DISPATCH: u64 = 16;
/// Offset of the dispatch over pairs in `arguments`, bytes.
pub const PAIR_DISPATCH: u64 = 28;
/// Survivors that the buffers hold before anything is known of a scene.
const VISIBLE_START: u32 = 262_144;

/// Buffers whose size follows the number of survivors.
pub struct Records {
    /// Survivors that fit.
    pub capacity: u32,
    /// Row in page of each survivor.
    visible: wgpu::Buffer,
    /// mean_px, depth, opacity
    pub shape: wgpu::Buffer,
    /// Cholesky factor, tiles touched
    pub form: wgpu::Buffer,
    /// colour, row in page
    pub colour: wgpu::Buffer,
    /// Depth bits.
    keys: wgpu::Buffer,
    /// Record numbers; by depth after the sort, where there is one.
    pub order: wgpu::Buffer,
}

/// Buffers whose size follows the number of splats and pages.
struct Groups {
    group_capacity: u32,
    page_capacity: u32,
    masks: wgpu::Buffer,
    /// Counts of survivors per workgroup, then their offsets and the total.
    counts: wgpu::Buffer,
    ranges: wgpu::Buffer,
    uniforms: wgpu::Buffer,
    /// Indirect arguments; see scan.wgsl.
    arguments: wgpu::Buffer,
}

/// Bind group layouts of the stages.
pub struct Layouts {
    pub uniforms: wgpu::BindGroupLayout,
    pub cull: wgpu::BindGroupLayout,
    scan_view: wgpu::BindGroupLayout,
    scan: wgpu::BindGroupLayout,
    pub compact: wgpu::BindGroupLayout,
    pub project: wgpu::BindGroupLayout,
}

struct Pipelines {
    deform: wgpu::ComputePipeline,
    scan: wgpu::ComputePipeline,
    compact: wgpu::ComputePipeline,
    pick: wgpu::ComputePipeline,
    /// Of draws without effects.
    plain: ProjectPipelines,
}

struct Bindings {
    uniforms: wgpu::BindGroup,
    cull: wgpu::BindGroup,
    scan_view: wgpu::BindGroup,
    scan: wgpu::BindGroup,
    compact: wgpu::BindGroup,
    project: wgpu::BindGroup,
}

/// The front end of one renderer.
pub struct Front {
    layouts: Layouts,
    pipelines: Pipelines,
    sorter: Sorter,
    pub deform: Deform,
    pub effects: Effects,
    pub arrivals: AllArrivals,
    pub pick: Pick,
    groups: Groups,
    /// Records of the last frame.
    pub records: Records,
    /// Sizes of the last frame; see [`Counters`].
    pub counters: wgpu::Buffer,
    bindings: Bindings,
}

/// What a frame needs, before buffers are known to be large enough.
pub struct Plan {
    /// The view with all counts but the capacities.
    pub view: View,
    pages: Vec<Page>,
    /// Draw, page number and slot of the deform stage of each entry of `pages`.
    places: Vec<Place>,
    /// Group 1 of each entry of `pages` that has arrivals.
    arrivals: Vec<Option<wgpu::BindGroup>>,
    /// Splats of all draws.
    pub count: u64,
}

/// Where a page of the frame comes from.
#[derive(Clone, Copy)]
pub struct Place {
    /// Number of the draw.
    pub draw: usize,
    /// Page of its splats.
    pub page: usize,
    /// Slot in [`Deform`] where it is posed.
    pub slot: Option<usize>,
    /// Pipeline and rows in [`Effects`] where it has effects.
    pub settling: Option<Settling>,
}

impl Plan {
    /// See [`Place`].
    pub fn places(&self) -> &[Place] {
        &self.places
    }
}

impl Front {
    /// Builds layouts, pipelines and small buffers.
    ///
    /// With `is_apart` the stage "effects" has two halves.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn new(
        context: &Context,
        shaders: &ShaderSource,
        packing: Packing,
        is_apart: bool,
        residency: &Residency,
    ) -> Result<Self, Error> {
        let device = &context.device;
        let stage = wgpu::ShaderStages::COMPUTE;
        let layouts = Layouts {
            uniforms: layout(
                device,
                "view and page",
                stage,
                &[Kind::Uniform, Kind::ReadAt(size_of::<Page>() as u64)],
            ),
            cull: layout(device, "cull", stage, &[Kind::Write, Kind::Write]),
            scan_view: layout(device, "scan view", stage, &[Kind::Uniform]),
            scan: layout(
                device,
                "scan",
                stage,
                &[Kind::Write, Kind::Write, Kind::Write, Kind::Read],
            ),
            compact: layout(
                device,
                "compact",
                stage,
                &[Kind::Read, Kind::Read, Kind::Write],
            ),
            project: layout(
                device,
                "project",
                stage,
                &[
                    Kind::Read,
                    Kind::Read,
                    Kind::Write,
                    Kind::Write,
                    Kind::Write,
                    Kind::Write,
                    Kind::Write,
                ],
            ),
        };
        let (deform, pick) = (Deform::new(device), Pick::new(device));
        let stages = (&deform, &pick);
        let pipelines = Pipelines::new(device, shaders, packing, residency, &layouts, stages)?;
        let counters = words_buffer(device, "counters", 4, Usage::COPY_SRC);
        let groups = Groups::new(device, 0, 0);
        let mut sorter = Sorter::new(context);
        let records = Records::new(device, VISIBLE_START);
        sorter.prepare(
            &records.keys,
            &records.order,
            &counters,
            1,
            records.capacity,
        )?;
        let bindings = Bindings::new(device, &layouts, &groups, &records, &counters);
        Ok(Self {
            layouts,
            pipelines,
            sorter,
            deform,
            effects: Effects::new(device, is_apart),
            arrivals: AllArrivals::default(),
            pick,
            groups,
            records,
            counters,
            bindings,
        })
    }

    /// Builds the pipelines anew from other shader texts; on error nothing changes.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn rebuilt_pipelines(
        &self,
        context: &Context,
        shaders: &ShaderSource,
        packing: Packing,
        residency: &Residency,
    ) -> Result<FrontPipelines, Error> {
        let stages = (&self.deform, &self.pick);
        let layouts = &self.layouts;
        let pipelines = Pipelines::new(
            &context.device,
            shaders,
            packing,
            residency,
            layouts,
            stages,
        )?;
        let ready = self.effects.rebuilt(Making {
            context,
            shaders,
            packing,
            residency,
            layouts,
        })?;
        Ok(FrontPipelines(pipelines, ready))
    }

    /// Takes pipelines made by [`Front::rebuilt_pipelines`].
    pub fn set_pipelines(&mut self, pipelines: FrontPipelines) {
        self.pipelines = pipelines.0;
        self.effects.set_ready(pipelines.1);
    }

    /// Uploads what is not resident yet, builds pipelines of effects that are new, and lays out pages and
    /// workgroups.
    ///
    /// # Errors
    /// The device ran out of memory; an effect that does not build.
    pub fn plan(
        &mut self,
        context: &Context,
        (shaders, packing): (&ShaderSource, Packing),
        residency: &mut Residency,
        frame: &Frame,
        size_px: [u32; 2],
    ) -> Result<Plan, Error> {
        let mut view = View::new(&frame.camera, size_px);
        let (mut pages, mut places, mut arrivals) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0;
        self.deform.begin();
        self.effects.begin();
        for (draw_index, draw) in frame.draws.iter().enumerate() {
            residency.pages(context, &draw.splats)?;
            let resident = residency.resident(&draw.splats);
            let slot = match &draw.pose {
                Some(pose) => {
                    let splats = &draw.splats;
                    let deform = &mut self.deform;
                    Some(deform.prepare(context, residency, splats, resident, pose)?)
                }
                None => None,
            };
            let effects = &draw.effects[..draw.effects.len().min(EFFECTS_MAX)];
            let making = Making {
                context,
                shaders,
                packing,
                residency,
                layouts: &self.layouts,
            };
            let settling = self
                .effects
                .prepare(making, &draw.splats, resident, effects)?;
            let sent = draw.arrivals.as_ref().map(|arrivals| {
                let rows: Vec<u32> = resident.iter().map(|page| page.count).collect();
                self.arrivals.send(context, arrivals, &rows)
            });
            let mut first_row = 0;
            for (page_index, page) in resident.iter().enumerate() {
                let draw = (draw_index, draw);
                let (group, rows) = (view.group_count, page.count);
                pages.push(Page::new(&frame.camera, draw, first_row, group, rows));
                places.push(Place {
                    draw: draw_index,
                    page: page_index,
                    slot,
                    settling,
                });
                arrivals.push(sent.map(|sent| {
                    let posed = slot.map(|slot| self.deform.posed_page(slot, page_index));
                    let own = self.arrivals.page(sent, page_index);
                    residency.bind_arrivals(&context.device, page, posed, own)
                }));
                first_row += rows;
                view.group_count += rows.div_ceil(GROUP);
                count += u64::from(rows);
            }
        }
        view.page_count = pages.len() as u32;
        Ok(Plan {
            view,
            pages,
            places,
            arrivals,
            count,
        })
    }

    /// Grows the record buffers so that `visible` survivors fit, if the binding limit allows.
    /// Returns whether they grew.
    ///
    /// # Errors
    /// The sort library refused the buffers.
    pub fn grow_records(
        &mut self,
        context: &Context,
        plan: &Plan,
        visible: u32,
    ) -> Result<bool, Error> {
        let limits = context.device.limits();
        let bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size);
        let most = u32::try_from(bytes / 16).unwrap_or(u32::MAX);
        // A quarter more than needed, so that a slow walk does not reallocate every frame.
        let wanted = visible
            .saturating_add(visible / 4)
            .min(plan.count as u32)
            .min(most);
        if visible <= self.records.capacity || wanted <= self.records.capacity {
            return Ok(false);
        }
        self.records = Records::new(&context.device, wanted);
        self.sorter.prepare(
            &self.records.keys,
            &self.records.order,
            &self.counters,
            1,
            self.records.capacity,
        )?;
        self.bindings = Bindings::new(
            &context.device,
            &self.layouts,
            &self.groups,
            &self.records,
            &self.counters,
        );
        Ok(true)
    }

    /// Writes uniforms and records the front end. On adapters where the library sorts, everything
    /// stays on the GPU; where the host sorts, this submits, waits and leaves a fresh encoder.
    ///
    /// # Errors
    /// The device was lost, or the sort library refused.
    pub fn record(
        &mut self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &mut Plan,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        self.fit_groups(context, &plan.view);
        timing.begin(encoder);
        if plan.places.iter().any(|place| place.slot.is_some()) {
            self.record_deform(context, residency, frame, plan, encoder)?;
            timing.mark(encoder, "deform");
        }
        self.write_pages(context, plan);
        if plan.places.iter().any(|place| place.settling.is_some()) {
            self.record_effects(context, residency, frame, plan, encoder)?;
            timing.mark(encoder, "effects");
        }
        if self.sorter.is_host() {
            // The host waits for the counts anyway, so survivors always get the room they need.
            self.record_cull(context, residency, frame, plan, encoder, timing)?;
            let counters: Counters = self.counters_now(context, encoder)?;
            if self.grow_records(context, plan, counters.visible_total)? {
                timing.begin(encoder);
                self.write_pages(context, plan);
                self.record_cull(context, residency, frame, plan, encoder, timing)?;
            }
        } else {
            self.record_cull(context, residency, frame, plan, encoder, timing)?;
        }
        self.record_project(context, residency, frame, plan, encoder)?;
        timing.mark(encoder, "project");
        if plan.view.depth_bits > 0 {
            // The rasteriser sorts by tile and depth at once.
            return Ok(());
        }
        if self.sorter.is_host() {
            let visible = self.counters_now(context, encoder)?.visible;
            self.sorter.sort_on_host(
                context,
                encoder,
                &self.records.keys,
                &self.records.order,
                visible,
            )?;
        } else {
            self.sorter.record(
                encoder,
                &self.records.keys,
                &self.records.order,
                &self.counters,
                1,
                self.records.capacity,
            )?;
        }
        timing.mark(encoder, "sort");
        Ok(())
    }

    /// The `View`: the first bytes of the uniform buffer.
    pub fn view(&self) -> wgpu::BindingResource<'_> {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.groups.uniforms,
            offset: 0,
            size: std::num::NonZeroU64::new(size_of::<View>() as u64),
        })
    }

    /// Indirect arguments; see [`VISIBLE_DISPATCH`] and [`PAIR_DISPATCH`].
    pub fn arguments(&self) -> &wgpu::Buffer {
        &self.groups.arguments
    }

    fn fit_groups(&mut self, context: &Context, view: &View) {
        if view.group_count <= self.groups.group_capacity
            && view.page_count <= self.groups.page_capacity
        {
            return;
        }
        self.groups = Groups::new(
            &context.device,
            view.group_count.max(self.groups.group_capacity),
            view.page_count.max(self.groups.page_capacity),
        );
        self.bindings = Bindings::new(
            &context.device,
            &self.layouts,
            &self.groups,
            &self.records,
            &self.counters,
        );
    }

    /// Writes what shaders are told of the view and of all pages.
    fn write_pages(&self, context: &Context, plan: &mut Plan) {
        plan.view.visible_capacity = self.records.capacity;
        let mut bytes = vec![0_u8; (UNIFORM_STRIDE as usize) * (plan.pages.len() + 1)];
        bytes[..size_of::<View>()].copy_from_slice(bytemuck::bytes_of(&plan.view));
        let ranges: Vec<[u32; 2]> = plan
            .pages
            .iter()
            .map(|p| [p.first_group, p.count.div_ceil(GROUP)])
            .collect();
        for (page, slot) in plan
            .pages
            .iter()
            .zip(bytes.chunks_exact_mut(UNIFORM_STRIDE as usize).skip(1))
        {
            slot[..size_of::<Page>()].copy_from_slice(bytemuck::bytes_of(page));
        }
        context.queue.write_buffer(&self.groups.uniforms, 0, &bytes);
        context
            .queue
            .write_buffer(&self.groups.ranges, 0, bytemuck::cast_slice(&ranges));
    }

    fn record_cull(
        &self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &Plan,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        {
            let mut pass = encoder.begin_compute_pass(&pass_named("cull"));
            pass.set_bind_group(2, &self.bindings.cull, &[]);
            self.each_page(
                context,
                residency,
                frame,
                plan,
                &mut pass,
                |pass, page, index| {
                    pass.set_pipeline(&self.project_pipelines(plan, index).cull);
                    pass.dispatch_workgroups(page.count.div_ceil(GROUP), 1, 1);
                },
            )?;
        }
        timing.mark(encoder, "cull");
        {
            let mut pass = encoder.begin_compute_pass(&pass_named("scan"));
            pass.set_pipeline(&self.pipelines.scan);
            pass.set_bind_group(0, &self.bindings.scan_view, &[]);
            pass.set_bind_group(1, &self.bindings.scan, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
        timing.mark(encoder, "scan");
        Ok(())
    }

    fn record_deform(
        &self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &Plan,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), Error> {
        let mut pass = encoder.begin_compute_pass(&pass_named("deform"));
        pass.set_pipeline(&self.pipelines.deform);
        for place in &plan.places {
            if let Some(slot) = place.slot {
                let splats = &frame.draws[place.draw].splats;
                let bindings = &residency.pages(context, splats)?[place.page].bindings;
                self.deform.record(&mut pass, bindings, slot, place.page);
            }
        }
        Ok(())
    }

    fn record_effects(
        &self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &Plan,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), Error> {
        let mut pass = encoder.begin_compute_pass(&pass_named("effects"));
        for (index, (page, place)) in plan.pages.iter().zip(&plan.places).enumerate() {
            let Some(settling) = place.settling else {
                continue;
            };
            let pages = residency.pages(context, &frame.draws[place.draw].splats)?;
            let splats = self.standing(plan, index, pages);
            pass.set_bind_group(0, &self.bindings.uniforms, &[page_offset(index)]);
            self.effects
                .record(&mut pass, splats, settling, place.page, page.count);
        }
        Ok(())
    }

    /// Group 1 of the front end for an entry of the plan whose splats lie in `pages`, before effects.
    fn standing<'s>(
        &'s self,
        plan: &'s Plan,
        index: usize,
        pages: &'s [PageBuffers],
    ) -> &'s wgpu::BindGroup {
        let place = plan.places[index];
        match (&plan.arrivals[index], place.slot) {
            (Some(bindings), _) => bindings,
            (None, Some(slot)) => self.deform.bindings(slot, place.page),
            (None, None) => &pages[place.page].bindings,
        }
    }

    /// Asks about another pixel of the picture that was projected last.
    pub fn write_pick(&self, context: &Context, view: &View) {
        let at = std::mem::offset_of!(View, pick_px) as u64;
        let bytes = bytemuck::bytes_of(&view.pick_px);
        context.queue.write_buffer(&self.groups.uniforms, at, bytes);
    }

    /// Lists the splats of `plan.view.pick_px`; the answer comes by [`Pick::take`].
    ///
    /// # Errors
    /// The device ran out of memory.
    pub fn record_pick(
        &mut self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &Plan,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), Error> {
        let records = pick::Records {
            offsets: &self.groups.counts,
            shape: &self.records.shape,
            form: &self.records.form,
            colour: &self.records.colour,
        };
        let bindings = self.pick.begin(&context.device, encoder, &records);
        {
            let mut pass = encoder.begin_compute_pass(&pass_named("pick"));
            pass.set_pipeline(&self.pipelines.pick);
            pass.set_bind_group(2, &bindings, &[]);
            let arguments = &self.groups.arguments;
            self.each_page(
                context,
                residency,
                frame,
                plan,
                &mut pass,
                |pass, _, index| {
                    pass.dispatch_workgroups_indirect(arguments, (PAGE_ARGUMENTS + index * 3) * 4);
                },
            )?;
        }
        self.pick.copy(&context.device, encoder);
        Ok(())
    }

    fn record_project(
        &self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &Plan,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), Error> {
        let mut pass = encoder.begin_compute_pass(&pass_named("project"));
        pass.set_pipeline(&self.pipelines.compact);
        pass.set_bind_group(2, &self.bindings.compact, &[]);
        self.each_page(
            context,
            residency,
            frame,
            plan,
            &mut pass,
            |pass, page, _| {
                pass.dispatch_workgroups(page.count.div_ceil(GROUP), 1, 1);
            },
        )?;
        pass.set_bind_group(2, &self.bindings.project, &[]);
        self.each_page(
            context,
            residency,
            frame,
            plan,
            &mut pass,
            |pass, _, index| {
                let at = (PAGE_ARGUMENTS + index * 3) * 4;
                pass.set_pipeline(&self.project_pipelines(plan, index).project);
                pass.dispatch_workgroups_indirect(&self.groups.arguments, at);
            },
        )
    }

    fn project_pipelines(&self, plan: &Plan, index: u64) -> &ProjectPipelines {
        let settled = match plan.places[index as usize].settling {
            Some(_) => self.effects.pipelines(),
            None => None,
        };
        settled.unwrap_or(&self.pipelines.plain)
    }

    fn each_page(
        &self,
        context: &Context,
        residency: &mut Residency,
        frame: &Frame,
        plan: &Plan,
        pass: &mut wgpu::ComputePass<'_>,
        mut dispatch: impl FnMut(&mut wgpu::ComputePass<'_>, &Page, u64),
    ) -> Result<(), Error> {
        for (index, (page, place)) in plan.pages.iter().zip(&plan.places).enumerate() {
            let pages = residency.pages(context, &frame.draws[place.draw].splats)?;
            let splats = match place.settling {
                Some(settling) => self.effects.settled(settling, place.page),
                None => self.standing(plan, index, pages),
            };
            pass.set_bind_group(0, &self.bindings.uniforms, &[page_offset(index)]);
            pass.set_bind_group(1, splats, &[]);
            dispatch(pass, page, index as u64);
        }
        Ok(())
    }

    /// Submits what is recorded, waits, and reads the counters.
    fn counters_now(
        &self,
        context: &Context,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<Counters, Error> {
        let bytes = super::read_now(
            context,
            encoder,
            &self.counters,
            size_of::<Counters>() as u64,
        )?;
        Ok(bytemuck::pod_read_unaligned(&bytes))
    }
}

/// Where an entry of the plan lies in the uniform buffer, bytes.
fn page_offset(index: usize) -> u32 {
    (UNIFORM_STRIDE * (index as u64 + 1)) as u32
}

/// The shader that reads splats of this packing.
pub fn splat_shader(packing: Packing) -> &'static str {
    match packing {
        Packing::Packed => "shared/splat_packed.wgsl",
        Packing::Float => "shared/splat_float.wgsl",
    }
}

/// Pipelines made from new shader texts and not yet in use.
pub struct FrontPipelines(Pipelines, Option<Ready>);

impl Pipelines {
    fn new(
        device: &wgpu::Device,
        shaders: &ShaderSource,
        packing: Packing,
        residency: &Residency,
        layouts: &Layouts,
        (deform, pick): (&Deform, &Pick),
    ) -> Result<Self, Error> {
        let project = plain_module(device, shaders, packing)?;
        let scan = shaders.module(device, "scan", &["shared/types.wgsl", "scan.wgsl"])?;
        Ok(Self {
            deform: deform.pipeline(device, shaders, packing, residency)?,
            pick: pick.pipeline(device, shaders, &layouts.uniforms, &residency.layout)?,
            compact: compute(
                device,
                &project,
                "compact",
                &[&layouts.uniforms, &residency.layout, &layouts.compact],
            ),
            plain: ProjectPipelines::new(device, &project, residency, layouts)?,
            scan: compute(
                device,
                &scan,
                "scan_visible",
                &[&layouts.scan_view, &layouts.scan],
            ),
        })
    }
}

impl Records {
    fn new(device: &wgpu::Device, capacity: u32) -> Self {
        let n = u64::from(capacity);
        Self {
            capacity,
            visible: words_buffer(device, "visible", n, Usage::empty()),
            shape: words_buffer(device, "record shape", n * 4, Usage::empty()),
            form: words_buffer(device, "record form", n * 4, Usage::empty()),
            colour: words_buffer(device, "record colour", n * 4, Usage::empty()),
            keys: words_buffer(device, "depth keys", n, Usage::COPY_SRC),
            order: words_buffer(device, "depth order", n, Usage::COPY_DST),
        }
    }
}

impl Groups {
    fn new(device: &wgpu::Device, group_capacity: u32, page_capacity: u32) -> Self {
        let (groups, pages) = (u64::from(group_capacity), u64::from(page_capacity));
        Self {
            group_capacity,
            page_capacity,
            masks: words_buffer(device, "cull masks", groups * 8, Usage::empty()),
            counts: words_buffer(device, "cull counts", groups + 1, Usage::empty()),
            ranges: words_buffer(device, "page ranges", pages * 2, Usage::COPY_DST),
            uniforms: device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("view and pages"),
                size: UNIFORM_STRIDE * (pages + 2),
                usage: Usage::UNIFORM | Usage::STORAGE | Usage::COPY_DST,
                mapped_at_creation: false,
            }),
            arguments: words_buffer(
                device,
                "indirect arguments",
                PAGE_ARGUMENTS + pages * 3,
                Usage::INDIRECT,
            ),
        }
    }
}

impl Bindings {
    fn new(
        device: &wgpu::Device,
        layouts: &Layouts,
        groups: &Groups,
        records: &Records,
        counters: &wgpu::Buffer,
    ) -> Self {
        let whole = wgpu::Buffer::as_entire_binding;
        let at_start = |size: usize| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: &groups.uniforms,
                offset: 0,
                size: std::num::NonZeroU64::new(size as u64),
            })
        };
        Self {
            uniforms: bind(
                device,
                &layouts.uniforms,
                &[at_start(size_of::<View>()), at_start(size_of::<Page>())],
            ),
            cull: bind(
                device,
                &layouts.cull,
                &[whole(&groups.masks), whole(&groups.counts)],
            ),
            scan_view: bind(device, &layouts.scan_view, &[at_start(size_of::<View>())]),
            scan: bind(
                device,
                &layouts.scan,
                &[
                    whole(&groups.counts),
                    whole(counters),
                    whole(&groups.arguments),
                    whole(&groups.ranges),
                ],
            ),
            compact: bind(
                device,
                &layouts.compact,
                &[
                    whole(&groups.masks),
                    whole(&groups.counts),
                    whole(&records.visible),
                ],
            ),
            project: bind(
                device,
                &layouts.project,
                &[
                    whole(&records.visible),
                    whole(&groups.counts),
                    whole(&records.shape),
                    whole(&records.form),
                    whole(&records.colour),
                    whole(&records.keys),
                    whole(&records.order),
                ],
            ),
        }
    }
}

fn pass_named(label: &str) -> wgpu::ComputePassDescriptor<'_> {
    wgpu::ComputePassDescriptor {
        label: Some(label),
        timestamp_writes: None,
    }
}
