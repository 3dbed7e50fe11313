//! The film pass: two layers of the overscanned picture in, a filmed picture out.
//!
//! Stages in order: "film depth" and "film split" find where near things stand before far ones,
//! "film layers" rasters both sides of them, "film near" summarises tiles, "film" reprojects every
//! pixel's taps, "glow" and "finish" are lens and sensor. `reference` adds up whole renders instead.
//! What the numbers mean is in [`crate::film`], how the stages work in their shaders.

use super::compose::{Blit, is_stored};
use super::front::Front;
use super::layouts::{Kind, bind, compute, layout, words_buffer};
use super::raster::{Method, Raster, Target, Tiles};
use super::shaders::ShaderSource;
use super::timing::Timing;
use super::uniforms::{FilmUniform, InstantUniform, View};
use super::{Context, Error};
use crate::film::{Depth, Film, Path};
use crate::frame::Frame;
use std::cell::Cell;
use wgpu::util::DeviceExt;

/// Side of a workgroup, px.
const GROUP_PX: u32 = 16;
/// Side of what a workgroup of `finish` makes, px; `SIDE` in finish.wgsl.
const FINISH_PX: u32 = 32;
/// How much smaller the picture of the glow is.
const GLOW_SHRINK: u32 = 8;

/// Splats of a segment of a long list; `SEGMENT` in shared/segments.wgsl.
const SEGMENT: u32 = 1536;
/// Most segments: workgroups of one dispatch.
const SEGMENTS_MAX: u64 = 65_535;
/// Bytes that a tile's pixels leave of a segment: `Part`s in film_tiles.wgsl, pairs in film_depth.wgsl.
const LAYERS_PART_BYTES: u64 = 256 * 48;
const DEPTH_PART_BYTES: u64 = 64 * 8;

const LAYER: wgpu::TextureFormat = wgpu::TextureFormat::Rgba16Float;
const DEPTHS: wgpu::TextureFormat = wgpu::TextureFormat::R32Uint;
const MAP: wgpu::TextureFormat = wgpu::TextureFormat::Rg32Float;
const PICTURE: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// The stage and what it draws into.
pub struct FilmStage {
    depth: ListSteps,
    edges: Step,
    spread_rows: Step,
    spread_columns: Step,
    layers: ListSteps,
    /// What `Segments::claims` start from.
    no_claims: wgpu::Buffer,
    resolve: Step,
    proxy: Step,
    near: Step,
    around: Step,
    taps: Step,
    glow_bright: Step,
    glow_rows: Step,
    glow_columns: Step,
    finish: Step,
    expose: Step,
    exposed: Step,
    quads: Option<QuadPipelines>,
    view_layout: wgpu::BindGroupLayout,
    records_layout: wgpu::BindGroupLayout,
    sampler: wgpu::Sampler,
    film: wgpu::Buffer,
    instant: wgpu::Buffer,
    blit: Blit,
    targets: Option<Targets>,
    /// Light of the reference film, four floats a pixel.
    sums: Option<wgpu::Buffer>,
}

/// One compute shader with bindings of its own (after those of the records, where it has them).
struct Step {
    layout: wgpu::BindGroupLayout,
    pipeline: wgpu::ComputePipeline,
}

/// A stage that walks the lists of tiles: their beginnings, segments of long ones, and all together.
struct ListSteps {
    steps: [Step; 3],
    room: Segments,
    /// Bytes that a tile leaves of a segment.
    part_bytes: u64,
}

/// Where long lists are cut; sized by the pairs that there is room for.
struct Segments {
    /// `Claims` in film_tiles.wgsl, whose first words are a dispatch.
    claims: wgpu::Buffer,
    segments: wgpu::Buffer,
    parts: wgpu::Buffer,
    /// Segments, and tiles of parts, that there is room for.
    capacity: u64,
}

/// Fixed-function ways to the half-size depth and the two layers.
struct QuadPipelines {
    view_layout: wgpu::BindGroupLayout,
    records_layout: wgpu::BindGroupLayout,
    split_layout: wgpu::BindGroupLayout,
    depth: wgpu::RenderPipeline,
    layers: wgpu::RenderPipeline,
    format: wgpu::TextureFormat,
}

/// Textures for one size of picture.
struct Targets {
    /// Of the filmed picture, px.
    size_px: [u32; 2],
    /// With overscan, px.
    wide_px: [u32; 2],
    half_depth: wgpu::TextureView,
    /// Edges and splits, which are written in turns.
    split: [wgpu::TextureView; 2],
    front: wgpu::TextureView,
    back: wgpu::TextureView,
    depths: wgpu::TextureView,
    tiles: [wgpu::TextureView; 2],
    light: wgpu::TextureView,
    glow: [wgpu::TextureView; 2],
    picture: wgpu::TextureView,
    /// No pixel of the split has any.
    is_unsplit: Cell<bool>,
    /// What quads blend into: front, its depth, back, its depth.
    blended: Option<[wgpu::TextureView; 4]>,
}

impl FilmStage {
    /// Builds all pipelines.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn new(context: &Context, shaders: &ShaderSource, method: Method) -> Result<Self, Error> {
        let device = &context.device;
        let stage = wgpu::ShaderStages::COMPUTE;
        let module = |label: &str, parts: &[&str]| shaders.module(device, label, parts);
        let shared = "shared/film.wgsl";
        let layers = "shared/film_layers.wgsl";
        let depth_module = module(
            "film depth",
            &[
                "shared/types.wgsl",
                "shared/segments.wgsl",
                "film_depth.wgsl",
            ],
        )?;
        let split_module = module("film split", &[shared, "film_split.wgsl"])?;
        let tiles_module = module(
            "film layers",
            &[
                "shared/types.wgsl",
                "shared/segments.wgsl",
                shared,
                layers,
                "film_tiles.wgsl",
            ],
        )?;
        let resolve_module = module("film layers", &[shared, layers, "film_resolve.wgsl"])?;
        let proxy_module = module("film proxy", &[shared, "film_proxy.wgsl"])?;
        let near_module = module("film near", &["film_near.wgsl"])?;
        let film_module = module("film", &[shared, "film.wgsl"])?;
        let finish_module = module("finish", &[shared, "finish.wgsl"])?;
        let exposure_module = module("film reference", &[shared, "film_exposure.wgsl"])?;

        let view_layout = layout(device, "film view", stage, &[Kind::Uniform]);
        let records_layout = layout(device, "film records", stage, &[Kind::Read; 5]);
        let step = |module: &wgpu::ShaderModule, entry: &str, kinds: &[Kind]| {
            let layout = layout(device, entry, stage, kinds);
            let pipeline = compute(device, module, entry, &[&layout]);
            Step { layout, pipeline }
        };
        let split_kinds = [Kind::Read, Kind::Texture, Kind::Store(MAP)];
        let glow_kinds = [Kind::Read, Kind::Texture, Kind::Store(LAYER)];
        let layers_kinds = [
            Kind::Read,
            Kind::Texture,
            Kind::Store(LAYER),
            Kind::Store(LAYER),
            Kind::Store(DEPTHS),
        ];
        let skip = Kind::Skip;
        let depth_kinds = [skip, skip, skip, skip, Kind::Store(MAP)];
        // `own` are what a stage reads and writes of pictures, `seen` those of them that segments read.
        let over_lists = |module, names: [&str; 3], own: [Kind; 5], seen: [Kind; 5], part_bytes| {
            let step = |entry: &str, own: [Kind; 5], lists: [Kind; 5]| {
                let layout = layout(device, entry, stage, &[own, lists].concat());
                let layouts = [&view_layout, &records_layout, &layout];
                let pipeline = compute(device, module, entry, &layouts);
                Step { layout, pipeline }
            };
            let [first, middle, last] = names;
            ListSteps {
                steps: [
                    step(
                        first,
                        own,
                        [Kind::Write, Kind::Write, Kind::Write, skip, skip],
                    ),
                    step(middle, seen, [skip, skip, Kind::Write, Kind::Read, skip]),
                    step(last, own, [skip, skip, skip, Kind::Read, Kind::Read]),
                ],
                room: Segments::new(device, 0, part_bytes),
                part_bytes,
            }
        };
        let expose_kinds = [Kind::Read, Kind::Read, Kind::Texture, Kind::Write];
        Ok(Self {
            depth: over_lists(
                &depth_module,
                ["film_depth", "film_depth_segments", "film_depth_merge"],
                depth_kinds,
                [skip; 5],
                DEPTH_PART_BYTES,
            ),
            edges: step(&split_module, "film_edges", &split_kinds),
            spread_rows: step(&split_module, "film_spread_rows", &split_kinds),
            spread_columns: step(&split_module, "film_spread_columns", &split_kinds),
            layers: over_lists(
                &tiles_module,
                ["film_tiles", "film_segments", "film_merge"],
                layers_kinds,
                [skip, Kind::Texture, skip, skip, skip],
                LAYERS_PART_BYTES,
            ),
            no_claims: device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
                label: Some("no claims"),
                contents: bytemuck::cast_slice(&[0_u32, 1, 1, 0]),
                usage: wgpu::BufferUsages::COPY_SRC,
            }),
            resolve: step(
                &resolve_module,
                "film_resolve",
                &[
                    Kind::Read,
                    Kind::Texture,
                    Kind::Texture,
                    Kind::Texture,
                    Kind::Texture,
                    Kind::Texture,
                    Kind::Store(LAYER),
                    Kind::Store(LAYER),
                    Kind::Store(DEPTHS),
                ],
            ),
            proxy: step(
                &proxy_module,
                "film_proxy",
                &[Kind::Read, Kind::Store(DEPTHS)],
            ),
            near: step(
                &near_module,
                "film_near",
                &[Kind::Whole, Kind::Skip, Kind::Store(MAP)],
            ),
            around: step(
                &near_module,
                "film_around",
                &[Kind::Skip, Kind::Texture, Kind::Store(MAP)],
            ),
            taps: step(
                &film_module,
                "film_taps",
                &[
                    Kind::Read,
                    Kind::Filtered,
                    Kind::Filtered,
                    Kind::Whole,
                    Kind::Texture,
                    Kind::Sampler,
                    Kind::Store(LAYER),
                ],
            ),
            glow_bright: step(&finish_module, "glow_bright", &glow_kinds),
            glow_rows: step(&finish_module, "glow_blur_rows", &glow_kinds),
            glow_columns: step(&finish_module, "glow_blur_columns", &glow_kinds),
            finish: step(
                &finish_module,
                "finish",
                &[
                    Kind::Read,
                    Kind::Filtered,
                    Kind::Filtered,
                    Kind::Sampler,
                    Kind::Store(PICTURE),
                ],
            ),
            expose: step(&exposure_module, "film_expose", &expose_kinds),
            exposed: step(
                &exposure_module,
                "film_exposed",
                &[
                    Kind::Read,
                    Kind::Skip,
                    Kind::Skip,
                    Kind::Write,
                    Kind::Store(LAYER),
                ],
            ),
            quads: match method {
                Method::Quads => Some(QuadPipelines::new(context, shaders)?),
                Method::Tiles => None,
            },
            view_layout,
            records_layout,
            sampler: device.create_sampler(&wgpu::SamplerDescriptor {
                label: Some("film"),
                mag_filter: wgpu::FilterMode::Linear,
                min_filter: wgpu::FilterMode::Linear,
                ..Default::default()
            }),
            film: storage(device, "film", size_of::<FilmUniform>() as u64),
            instant: storage(device, "instant", size_of::<InstantUniform>() as u64),
            blit: Blit::new(context, shaders)?,
            targets: None,
            sums: None,
        })
    }

    /// Makes textures for pictures of `size` and writes the numbers of `film`. Returns whether the
    /// layers have to be parted: nothing is hidden by near things where the lens stays in its place.
    pub fn prepare(
        &mut self,
        context: &Context,
        frame: &Frame,
        film: &Film,
        size: [u32; 2],
        method: Method,
    ) -> bool {
        let wide_px = film.wide_size(size);
        let fits =
            (self.targets.as_ref()).is_some_and(|t| t.size_px == size && t.wide_px == wide_px);
        if !fits {
            self.targets = None;
            self.targets = Some(Targets::new(
                context,
                self.quads.as_ref(),
                method,
                size,
                wide_px,
            ));
        }
        let path = Path::new(&frame.camera, &film.shutter);
        let uniform = FilmUniform::new(frame, film, &path, size);
        context
            .queue
            .write_buffer(&self.film, 0, bytemuck::bytes_of(&uniform));
        film.depth == Depth::TwoLayers && uniform.split_reach_px > 0
    }

    /// Records everything from the records of the wide picture to `output`.
    ///
    /// # Errors
    /// The rasteriser refused.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a renderer, which owns this one"
    )]
    pub fn record(
        &mut self,
        context: &Context,
        front: &Front,
        raster: &mut Raster,
        view: &View,
        film: &Film,
        is_split: bool,
        output: Option<(&wgpu::TextureView, wgpu::TextureFormat)>,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        raster.record_lists(context, front, view, encoder, timing)?;
        for lists in [&mut self.depth, &mut self.layers] {
            lists.fit(context, raster.pair_capacity());
        }
        let Some(targets) = &self.targets else {
            return Ok(());
        };
        let pass = Recorder {
            device: &context.device,
            stage: self,
            targets,
        };
        pass.layers(front, raster, view, is_split, encoder, timing);
        if film.depth == Depth::Proxy {
            pass.run(
                &self.proxy,
                &[self.film.as_entire_binding(), texture(&targets.depths)],
                targets.wide_px,
                encoder,
            );
        }
        pass.taps(encoder);
        timing.mark(encoder, "film");
        if let Some(output) = output {
            self.finish(context, film, output, encoder);
            timing.mark(encoder, "finish");
        }
        Ok(())
    }

    /// Starts a reference film: no light yet.
    pub fn clear_light(&mut self, context: &Context, size: [u32; 2]) {
        let bytes = u64::from(size[0]) * u64::from(size[1]) * 16;
        if self.sums.as_ref().is_none_or(|sums| sums.size() != bytes) {
            self.sums = None;
            self.sums = Some(storage(&context.device, "light", bytes));
        }
        if let Some(sums) = &self.sums {
            let mut encoder = context.device.create_command_encoder(&Default::default());
            encoder.clear_buffer(sums, 0, None);
            context.queue.submit([encoder.finish()]);
        }
    }

    /// Adds the light of one instant, which has been drawn into `target`, to the rows that were open.
    pub fn expose(&self, context: &Context, instant: InstantUniform, target: &Target) {
        let (Some(targets), Some(sums)) = (&self.targets, &self.sums) else {
            return;
        };
        context
            .queue
            .write_buffer(&self.instant, 0, bytemuck::bytes_of(&instant));
        let colour = target.colour.create_view(&Default::default());
        let mut encoder = context.device.create_command_encoder(&Default::default());
        let pass = Recorder {
            device: &context.device,
            stage: self,
            targets,
        };
        pass.run(
            &self.expose,
            &[
                self.film.as_entire_binding(),
                self.instant.as_entire_binding(),
                texture(&colour),
                sums.as_entire_binding(),
            ],
            targets.size_px,
            &mut encoder,
        );
        context.queue.submit([encoder.finish()]);
    }

    /// Ends a reference film: what was exposed becomes `output`.
    pub fn develop(
        &mut self,
        context: &Context,
        film: &Film,
        output: (&wgpu::TextureView, wgpu::TextureFormat),
    ) {
        let (Some(targets), Some(sums)) = (&self.targets, &self.sums) else {
            return;
        };
        let mut encoder = context.device.create_command_encoder(&Default::default());
        let pass = Recorder {
            device: &context.device,
            stage: self,
            targets,
        };
        let entries = [
            entry(0, self.film.as_entire_binding()),
            entry(3, sums.as_entire_binding()),
            entry(4, texture(&targets.light)),
        ];
        let count = groups(targets.size_px, [GROUP_PX; 2]);
        pass.run_entries(&self.exposed, &entries, count, &mut encoder);
        self.finish(context, film, output, &mut encoder);
        context.queue.submit([encoder.finish()]);
    }

    /// Light to `output`, by way of a picture of its own where shaders cannot write that.
    fn finish(
        &mut self,
        context: &Context,
        film: &Film,
        (view, format): (&wgpu::TextureView, wgpu::TextureFormat),
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let Some(targets) = &self.targets else {
            return;
        };
        let pass = Recorder {
            device: &context.device,
            stage: self,
            targets,
        };
        if is_stored(view, format) {
            pass.finish(film, view, encoder);
        } else {
            pass.finish(film, &targets.picture, encoder);
            self.blit
                .record(context, &targets.picture, view, format, encoder);
        }
    }
}

impl ListSteps {
    /// Makes room for the segments of all lists that `pairs` can be.
    fn fit(&mut self, context: &Context, pairs: u32) {
        let limits = context.device.limits();
        let bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size);
        // What goes before a list is cut is two segments long and takes one part: a part for each segment's
        // worth of splats is always enough, the last one's being shorter.
        let capacity = u64::from(pairs / SEGMENT)
            .min(bytes / self.part_bytes)
            .min(SEGMENTS_MAX);
        if self.room.capacity != capacity {
            self.room = Segments::new(&context.device, capacity, self.part_bytes);
        }
    }
}

/// Records steps into one set of textures.
struct Recorder<'a> {
    device: &'a wgpu::Device,
    stage: &'a FilmStage,
    targets: &'a Targets,
}

impl Recorder<'_> {
    fn layers(
        &self,
        front: &Front,
        raster: &Raster,
        view: &View,
        is_split: bool,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) {
        let (stage, targets) = (self.stage, self.targets);
        if is_split {
            targets.is_unsplit.set(false);
            match (raster, &stage.quads) {
                (Raster::Tiles(tiles), _) => {
                    let depth = [entry(4, texture(&targets.half_depth))];
                    self.over_lists(&stage.depth, front, tiles, view, (&depth, &[]), encoder);
                }
                (Raster::Quads(_), Some(quads)) => {
                    quads.record_depth(self.device, front, &targets.half_depth, encoder);
                }
                (Raster::Quads(_), None) => {}
            }
            let half_px = targets.wide_px.map(|side| side.div_ceil(2));
            let [a, b] = &targets.split;
            let film = || stage.film.as_entire_binding();
            let edges = [film(), texture(&targets.half_depth), texture(a)];
            self.run(&stage.edges, &edges, half_px, encoder);
            for (step, from, to) in [(&stage.spread_rows, a, b), (&stage.spread_columns, b, a)] {
                let resources = [film(), texture(from), texture(to)];
                self.run_groups(step, &resources, groups(half_px, [64, 4]), encoder);
            }
            timing.mark(encoder, "film split");
        } else if !targets.is_unsplit.replace(true) {
            // With a reach of 0 nothing is an edge.
            let resources = [
                stage.film.as_entire_binding(),
                texture(&targets.half_depth),
                texture(&targets.split[0]),
            ];
            let half_px = targets.wide_px.map(|side| side.div_ceil(2));
            self.run(&stage.edges, &resources, half_px, encoder);
        }
        match (raster, &stage.quads, &targets.blended) {
            (Raster::Tiles(tiles), ..) => {
                let split = entry(1, texture(&targets.split[0]));
                let pixels = [
                    whole_buffer(0, &stage.film),
                    split.clone(),
                    entry(2, texture(&targets.front)),
                    entry(3, texture(&targets.back)),
                    entry(4, texture(&targets.depths)),
                ];
                let pixels = (&pixels[..], &[split][..]);
                self.over_lists(&stage.layers, front, tiles, view, pixels, encoder);
            }
            (Raster::Quads(_), Some(quads), Some(blended)) => {
                quads.record_layers(self.device, front, &targets.split[0], blended, encoder);
                let film = stage.film.as_entire_binding();
                let mut resources = vec![film, texture(&targets.split[0])];
                resources.extend(blended.iter().map(texture));
                resources.extend([&targets.front, &targets.back, &targets.depths].map(texture));
                self.run(&stage.resolve, &resources, targets.wide_px, encoder);
            }
            (Raster::Quads(_), ..) => {}
        }
        timing.mark(encoder, "film layers");
    }

    /// Runs a stage that walks the lists of tiles. `own` are its bindings beside those of the lists, `seen`
    /// those that segments need.
    fn over_lists(
        &self,
        lists: &ListSteps,
        front: &Front,
        tiles: &Tiles,
        view: &View,
        (own, seen): (&[wgpu::BindGroupEntry<'_>], &[wgpu::BindGroupEntry<'_>]),
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let Segments {
            claims,
            segments,
            parts,
            ..
        } = &lists.room;
        let [first, middle, last] = &lists.steps;
        let group = |step: &Step, entries: [&[wgpu::BindGroupEntry<'_>]; 2]| {
            self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &step.layout,
                entries: &entries.concat(),
            })
        };
        let written = [
            whole_buffer(5, claims),
            whole_buffer(6, segments),
            whole_buffer(7, parts),
        ];
        let turned = [whole_buffer(7, parts), whole_buffer(8, segments)];
        let read = [whole_buffer(8, segments), whole_buffer(9, parts)];
        let groups = [
            group(first, [own, &written]),
            group(middle, [seen, &turned]),
            group(last, [own, &read]),
        ];
        encoder.copy_buffer_to_buffer(&self.stage.no_claims, 0, claims, 0, None);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        let group_view = bind(self.device, &self.stage.view_layout, &[front.view()]);
        let records = bind(self.device, &self.stage.records_layout, &tiles.lists(front));
        pass.set_bind_group(0, &group_view, &[]);
        pass.set_bind_group(1, &records, &[]);
        let [across, down] = view.tile_count;
        for (k, (step, group)) in lists.steps.iter().zip(&groups).enumerate() {
            pass.set_pipeline(&step.pipeline);
            pass.set_bind_group(2, group, &[]);
            if k == 0 {
                pass.dispatch_workgroups(across, down, 1);
            } else {
                pass.dispatch_workgroups_indirect(claims, 0);
            }
        }
    }

    fn taps(&self, encoder: &mut wgpu::CommandEncoder) {
        let (stage, targets) = (self.stage, self.targets);
        let [tiles, around] = &targets.tiles;
        let tile_count = groups(targets.wide_px, [GROUP_PX; 2]);
        let near = [entry(0, texture(&targets.depths)), entry(2, texture(tiles))];
        self.run_entries(&stage.near, &near, tile_count, encoder);
        let spread = [entry(1, texture(tiles)), entry(2, texture(around))];
        self.run_entries(
            &stage.around,
            &spread,
            groups(tile_count, [GROUP_PX; 2]),
            encoder,
        );
        self.run(
            &stage.taps,
            &[
                stage.film.as_entire_binding(),
                texture(&targets.front),
                texture(&targets.back),
                texture(&targets.depths),
                texture(around),
                wgpu::BindingResource::Sampler(&stage.sampler),
                texture(&targets.light),
            ],
            targets.size_px,
            encoder,
        );
    }

    fn finish(&self, film: &Film, picture: &wgpu::TextureView, encoder: &mut wgpu::CommandEncoder) {
        let (stage, targets) = (self.stage, self.targets);
        let numbers = || stage.film.as_entire_binding();
        let [a, b] = &targets.glow;
        if film.halation.strength > 0.0 {
            let glow_px = targets.size_px.map(|side| side.div_ceil(GLOW_SHRINK));
            for (step, from, to, group_px) in [
                (&stage.glow_bright, &targets.light, a, [8, 4]),
                (&stage.glow_rows, a, b, [8, 8]),
                (&stage.glow_columns, b, a, [8, 8]),
            ] {
                let resources = [numbers(), texture(from), texture(to)];
                self.run_groups(step, &resources, groups(glow_px, group_px), encoder);
            }
        }
        self.run_groups(
            &stage.finish,
            &[
                numbers(),
                texture(&targets.light),
                texture(a),
                wgpu::BindingResource::Sampler(&stage.sampler),
                texture(picture),
            ],
            groups(targets.size_px, [FINISH_PX; 2]),
            encoder,
        );
    }

    /// One thread a pixel of `size_px`.
    fn run(
        &self,
        step: &Step,
        resources: &[wgpu::BindingResource<'_>],
        size_px: [u32; 2],
        encoder: &mut wgpu::CommandEncoder,
    ) {
        self.run_groups(step, resources, groups(size_px, [GROUP_PX; 2]), encoder);
    }

    /// So many workgroups across and down.
    fn run_groups(
        &self,
        step: &Step,
        resources: &[wgpu::BindingResource<'_>],
        groups: [u32; 2],
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let entries: Vec<_> = (0..)
            .zip(resources)
            .map(|(i, resource)| entry(i, resource.clone()))
            .collect();
        self.run_entries(step, &entries, groups, encoder);
    }

    fn run_entries(
        &self,
        step: &Step,
        entries: &[wgpu::BindGroupEntry<'_>],
        [across, down]: [u32; 2],
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &step.layout,
            entries,
        });
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&step.pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(across, down, 1);
    }
}

/// Workgroups of `group_px` that cover a picture.
fn groups(size_px: [u32; 2], group_px: [u32; 2]) -> [u32; 2] {
    [0, 1].map(|axis| size_px[axis].div_ceil(group_px[axis]))
}

fn entry(binding: u32, resource: wgpu::BindingResource<'_>) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry { binding, resource }
}

fn whole_buffer(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    entry(binding, buffer.as_entire_binding())
}

fn texture(view: &wgpu::TextureView) -> wgpu::BindingResource<'_> {
    wgpu::BindingResource::TextureView(view)
}

fn storage(device: &wgpu::Device, label: &str, bytes: u64) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: bytes.max(16),
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

impl Segments {
    fn new(device: &wgpu::Device, capacity: u64, part_bytes: u64) -> Self {
        use wgpu::BufferUsages as Usage;
        Self {
            claims: words_buffer(device, "claims", 4, Usage::INDIRECT | Usage::COPY_DST),
            segments: words_buffer(device, "segments", capacity * 4, Usage::empty()),
            parts: words_buffer(device, "parts", capacity * part_bytes / 4, Usage::empty()),
            capacity,
        }
    }
}

impl Targets {
    fn new(
        context: &Context,
        quads: Option<&QuadPipelines>,
        method: Method,
        size_px: [u32; 2],
        wide_px: [u32; 2],
    ) -> Self {
        use wgpu::TextureUsages as Usage;
        let texture = |label, [width, height]: [u32; 2], format, more| {
            let texture = context.device.create_texture(&wgpu::TextureDescriptor {
                label: Some(label),
                size: wgpu::Extent3d {
                    width,
                    height,
                    depth_or_array_layers: 1,
                },
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format,
                usage: Usage::TEXTURE_BINDING | more,
                view_formats: &[],
            });
            texture.create_view(&wgpu::TextureViewDescriptor::default())
        };
        let stored = |label, size, format| texture(label, size, format, Usage::STORAGE_BINDING);
        let half_px = wide_px.map(|side| side.div_ceil(2));
        let tile_px = wide_px.map(|side| side.div_ceil(GROUP_PX));
        let glow_px = size_px.map(|side| side.div_ceil(GLOW_SHRINK));
        let split = || {
            let more = Usage::STORAGE_BINDING | Usage::COPY_DST;
            texture("film split", half_px, MAP, more)
        };
        let attached = |label, size, format| texture(label, size, format, Usage::RENDER_ATTACHMENT);
        Self {
            size_px,
            wide_px,
            half_depth: match (method, quads) {
                (Method::Quads, Some(quads)) => attached("film depth", half_px, quads.format),
                _ => stored("film depth", half_px, MAP),
            },
            split: [split(), split()],
            front: stored("film front", wide_px, LAYER),
            back: stored("film back", wide_px, LAYER),
            depths: stored("film depths", wide_px, DEPTHS),
            tiles: ["film near", "film around"].map(|label| stored(label, tile_px, MAP)),
            light: stored("light", size_px, LAYER),
            glow: ["glow", "glow blur"].map(|label| stored(label, glow_px, LAYER)),
            picture: stored("filmed", size_px, PICTURE),
            is_unsplit: Cell::new(false),
            blended: quads.map(|quads| {
                ["front", "front depth", "back", "back depth"]
                    .map(|label| attached(label, wide_px, quads.format))
            }),
        }
    }
}

impl QuadPipelines {
    fn new(context: &Context, shaders: &ShaderSource) -> Result<Self, Error> {
        let device = &context.device;
        let parts = ["shared/types.wgsl", "raster_quads.wgsl", "film_quads.wgsl"];
        let module = shaders.module(device, "film quads", &parts)?;
        let vertex = wgpu::ShaderStages::VERTEX;
        let view_layout = layout(device, "film quads view", vertex, &[Kind::Uniform]);
        let records_layout = layout(device, "film quads records", vertex, &[Kind::Read; 5]);
        let split_layout = layout(
            device,
            "film quads split",
            wgpu::ShaderStages::FRAGMENT,
            &[Kind::Texture],
        );
        // Four targets of f32 are 64 bytes a pixel, more than every adapter has.
        let full = super::raster::quad_format(context);
        let is_room = context
            .device
            .limits()
            .max_color_attachment_bytes_per_sample
            >= 64;
        let format = if is_room { full } else { LAYER };
        let pipeline = |entry: &str, layouts: &[&wgpu::BindGroupLayout], count: usize| {
            super::raster::quads_pipeline(device, &module, entry, layouts, format, count)
        };
        Ok(Self {
            depth: pipeline("blend_film_depth", &[&view_layout, &records_layout], 1),
            layers: pipeline(
                "blend_film_layers",
                &[&view_layout, &records_layout, &split_layout],
                4,
            ),
            view_layout,
            records_layout,
            split_layout,
            format,
        })
    }

    fn record_depth(
        &self,
        device: &wgpu::Device,
        front: &Front,
        target: &wgpu::TextureView,
        encoder: &mut wgpu::CommandEncoder,
    ) {
        self.draw(device, front, &self.depth, None, &[target], encoder);
    }

    fn record_layers(
        &self,
        device: &wgpu::Device,
        front: &Front,
        split: &wgpu::TextureView,
        targets: &[wgpu::TextureView; 4],
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let targets = targets.each_ref();
        self.draw(device, front, &self.layers, Some(split), &targets, encoder);
    }

    fn draw(
        &self,
        device: &wgpu::Device,
        front: &Front,
        pipeline: &wgpu::RenderPipeline,
        split: Option<&wgpu::TextureView>,
        targets: &[&wgpu::TextureView],
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let view = bind(device, &self.view_layout, &[front.view()]);
        let records = bind(
            device,
            &self.records_layout,
            &super::raster::quad_records(front),
        );
        let split = split.map(|split| bind(device, &self.split_layout, &[texture(split)]));
        let attachments: Vec<_> = targets
            .iter()
            .map(|view| super::raster::cleared(view))
            .collect();
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("film layers"),
            color_attachments: &attachments,
            ..Default::default()
        });
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &view, &[]);
        pass.set_bind_group(1, &records, &[]);
        if let Some(split) = &split {
            pass.set_bind_group(2, split, &[]);
        }
        pass.draw_indirect(front.arguments(), 0);
    }
}
