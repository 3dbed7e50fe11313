//! The two rasterisers behind one interface: records in, colour, coverage and depth out.
//!
//! `Tiles` is a compute path for GPUs; `Quads` uses the fixed-function pipeline and suits software
//! drivers and small GPUs. Both follow one rule: alpha = min(0.99, o e^p), cut at 1/255.

use super::front::{Front, PAIR_DISPATCH, VISIBLE_DISPATCH};
use super::layouts::{Kind, bind, compute, layout, words_buffer};
use super::shaders::ShaderSource;
use super::sort::Sorter;
use super::timing::Timing;
use super::uniforms::View;
use super::{Context, Error};
use wgpu::BufferUsages as Usage;

/// What a rasteriser draws into.
pub struct Target {
    /// Size, px.
    pub size_px: [u32; 2],
    /// Colour multiplied by coverage, and coverage.
    pub colour: wgpu::Texture,
    /// Red: sum of weight times depth, metres. Green: depth where coverage passes one half (tiles).
    pub depth: Option<wgpu::Texture>,
}

impl Target {
    /// Textures of `size_px` as `method` writes them.
    pub fn new(context: &Context, method: Method, size_px: [u32; 2], depth: bool) -> Self {
        let texture = |label, format, usage| {
            context.device.create_texture(&wgpu::TextureDescriptor {
                label: Some(label),
                size: wgpu::Extent3d {
                    width: size_px[0],
                    height: size_px[1],
                    depth_or_array_layers: 1,
                },
                mip_level_count: 1,
                sample_count: 1,
                dimension: wgpu::TextureDimension::D2,
                format,
                usage: usage | wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_SRC,
                view_formats: &[],
            })
        };
        match method {
            Method::Tiles => Self {
                size_px,
                colour: texture("colour", TILE_COLOUR, wgpu::TextureUsages::STORAGE_BINDING),
                depth: Some(texture(
                    "depth",
                    TILE_DEPTH,
                    wgpu::TextureUsages::STORAGE_BINDING,
                )),
            },
            Method::Quads => {
                let format = quad_format(context);
                let attachment = wgpu::TextureUsages::RENDER_ATTACHMENT;
                Self {
                    size_px,
                    colour: texture("colour", format, attachment),
                    depth: depth.then(|| texture("depth", format, attachment)),
                }
            }
        }
    }
}

const TILE_COLOUR: wgpu::TextureFormat = wgpu::TextureFormat::Rgba32Float;
const TILE_DEPTH: wgpu::TextureFormat = wgpu::TextureFormat::Rg32Float;

/// f32 where it can be blended: f16 keeps 11 bits, and a hundred blends cost two of them.
pub fn quad_format(context: &Context) -> wgpu::TextureFormat {
    if context
        .device
        .features()
        .contains(wgpu::Features::FLOAT32_BLENDABLE)
    {
        wgpu::TextureFormat::Rgba32Float
    } else {
        wgpu::TextureFormat::Rgba16Float
    }
}

/// How records become pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// One triangle a splat, blended by the pipeline.
    Quads,
    /// One workgroup a tile.
    Tiles,
}

/// A rasteriser.
pub enum Raster {
    /// See [`Method::Quads`].
    Quads(Quads),
    /// See [`Method::Tiles`].
    Tiles(Box<Tiles>),
}

impl Raster {
    /// Builds the rasteriser.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn new(context: &Context, shaders: &ShaderSource, method: Method) -> Result<Self, Error> {
        Ok(match method {
            Method::Quads => Self::Quads(Quads::new(context, shaders)?),
            Method::Tiles => Self::Tiles(Box::new(Tiles::new(context, shaders)?)),
        })
    }

    /// Bits of depth in the keys that are sorted here; 0 where records have to come sorted by depth.
    pub fn depth_bits(&self, view: &View) -> u32 {
        match self {
            Self::Quads(_) => 0,
            Self::Tiles(_) => depth_bits(view.tile_count),
        }
    }

    /// Makes room for `pairs` (tile, splat) pairs; returns whether buffers grew. Quads need none.
    ///
    /// # Errors
    /// The sort library refused.
    pub fn grow_pairs(
        &mut self,
        context: &Context,
        front: &Front,
        pairs: u32,
    ) -> Result<bool, Error> {
        match self {
            Self::Quads(_) => Ok(false),
            Self::Tiles(tiles) => tiles.grow(context, front, pairs),
        }
    }

    /// Pairs that fit, for the `View`.
    pub fn pair_capacity(&self) -> u32 {
        match self {
            Self::Quads(_) => 0,
            Self::Tiles(tiles) => tiles.pairs.capacity,
        }
    }

    /// Records the stage.
    ///
    /// # Errors
    /// The sort library refused.
    pub fn record(
        &mut self,
        context: &Context,
        front: &Front,
        view: &View,
        target: &Target,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        self.record_lists(context, front, view, encoder, timing)?;
        match self {
            Self::Quads(quads) => quads.record(context, front, target, encoder),
            Self::Tiles(tiles) => tiles.record(context, front, view, target, encoder)?,
        }
        timing.mark(encoder, "raster");
        Ok(())
    }

    /// Records what comes before pixels: for tiles the sorted list of each; quads need nothing.
    ///
    /// # Errors
    /// The sort library refused.
    pub fn record_lists(
        &mut self,
        context: &Context,
        front: &Front,
        view: &View,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        match self {
            Self::Quads(_) => Ok(()),
            Self::Tiles(tiles) => tiles.record_lists(context, front, view, encoder, timing),
        }
    }
}

/// Fixed-function rasteriser.
pub struct Quads {
    view_layout: wgpu::BindGroupLayout,
    layout: wgpu::BindGroupLayout,
    colour: wgpu::RenderPipeline,
    colour_and_depth: wgpu::RenderPipeline,
}

impl Quads {
    fn new(context: &Context, shaders: &ShaderSource) -> Result<Self, Error> {
        let device = &context.device;
        let module =
            shaders.module(device, "quads", &["shared/types.wgsl", "raster_quads.wgsl"])?;
        let view_layout = layout(
            device,
            "quads view",
            wgpu::ShaderStages::VERTEX,
            &[Kind::Uniform],
        );
        let records = layout(
            device,
            "quads records",
            wgpu::ShaderStages::VERTEX,
            &[Kind::Read; 5],
        );
        let format = quad_format(context);
        let layouts = [&view_layout, &records];
        let pipeline =
            |entry, targets| quads_pipeline(device, &module, entry, &layouts, format, targets);
        Ok(Self {
            colour: pipeline("blend_colour", 1),
            colour_and_depth: pipeline("blend_colour_and_depth", 2),
            view_layout,
            layout: records,
        })
    }

    fn record(
        &self,
        context: &Context,
        front: &Front,
        target: &Target,
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let device = &context.device;
        let view = bind(device, &self.view_layout, &[front.view()]);
        let records = bind(device, &self.layout, &quad_records(front));
        let colour = target.colour.create_view(&Default::default());
        let depth = target
            .depth
            .as_ref()
            .map(|d| d.create_view(&Default::default()));
        let attachments: Vec<_> = std::iter::once(&colour)
            .chain(depth.as_ref())
            .map(cleared)
            .collect();
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("raster"),
            color_attachments: &attachments,
            ..Default::default()
        });
        pass.set_pipeline(if depth.is_some() {
            &self.colour_and_depth
        } else {
            &self.colour
        });
        pass.set_bind_group(0, &view, &[]);
        pass.set_bind_group(1, &records, &[]);
        pass.draw_indirect(front.arguments(), 0);
    }
}

/// A pipeline that blends splats into `count` targets, nearest first, each under what is there:
/// dst += (1 - dst.a) src.
pub fn quads_pipeline(
    device: &wgpu::Device,
    module: &wgpu::ShaderModule,
    entry: &str,
    layouts: &[&wgpu::BindGroupLayout],
    format: wgpu::TextureFormat,
    count: usize,
) -> wgpu::RenderPipeline {
    let groups: Vec<_> = layouts.iter().copied().map(Some).collect();
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(entry),
        bind_group_layouts: &groups,
        ..Default::default()
    });
    let under = wgpu::BlendComponent {
        src_factor: wgpu::BlendFactor::OneMinusDstAlpha,
        dst_factor: wgpu::BlendFactor::One,
        operation: wgpu::BlendOperation::Add,
    };
    let target = Some(wgpu::ColorTargetState {
        format,
        blend: Some(wgpu::BlendState {
            color: under,
            alpha: under,
        }),
        write_mask: wgpu::ColorWrites::ALL,
    });
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some(entry),
        layout: Some(&layout),
        vertex: wgpu::VertexState {
            module,
            entry_point: Some("corner"),
            compilation_options: Default::default(),
            buffers: &[],
        },
        primitive: wgpu::PrimitiveState::default(),
        depth_stencil: None,
        multisample: wgpu::MultisampleState::default(),
        fragment: Some(wgpu::FragmentState {
            module,
            entry_point: Some(entry),
            compilation_options: Default::default(),
            targets: &vec![target; count],
        }),
        multiview_mask: None,
        cache: None,
    })
}

/// What the vertices of splats read.
pub fn quad_records(front: &Front) -> [wgpu::BindingResource<'_>; 5] {
    [
        front.records.order.as_entire_binding(),
        front.records.shape.as_entire_binding(),
        front.records.form.as_entire_binding(),
        front.records.colour.as_entire_binding(),
        front.counters.as_entire_binding(),
    ]
}

/// A target that starts empty.
pub fn cleared(view: &wgpu::TextureView) -> Option<wgpu::RenderPassColorAttachment<'_>> {
    Some(wgpu::RenderPassColorAttachment {
        view,
        depth_slice: None,
        resolve_target: None,
        ops: wgpu::Operations {
            load: wgpu::LoadOp::Clear(wgpu::Color::TRANSPARENT),
            store: wgpu::StoreOp::Store,
        },
    })
}

/// Buffers whose size follows the number of pairs.
struct Pairs {
    capacity: u32,
    /// Tile numbers.
    keys: wgpu::Buffer,
    /// Record numbers.
    values: wgpu::Buffer,
    /// Counts, then offsets, per block of 256 records.
    blocks: wgpu::Buffer,
    block_capacity: u32,
}

/// Compute rasteriser.
pub struct Tiles {
    view_layout: wgpu::BindGroupLayout,
    emit_layout: wgpu::BindGroupLayout,
    scan_layout: wgpu::BindGroupLayout,
    range_layout: wgpu::BindGroupLayout,
    raster_layout: wgpu::BindGroupLayout,
    count: wgpu::ComputePipeline,
    scan: wgpu::ComputePipeline,
    emit: wgpu::ComputePipeline,
    ranges: wgpu::ComputePipeline,
    raster: wgpu::ComputePipeline,
    sorter: Sorter,
    pairs: Pairs,
    /// First and one past last pair of each tile.
    tile_ranges: wgpu::Buffer,
}

/// Pairs that the buffers hold before anything is known of a scene.
const PAIRS_START: u32 = 1 << 20;

/// Fewest bits of depth in a pair's key. With fewer, splats 1e-4 of their depth apart would trade
/// places, so larger pictures (over 16,383 tiles, 2304x1792) sort twice.
const DEPTH_BITS_MIN: u32 = 18;
/// Most: all that `depth_code` in tiles.wgsl tells apart.
const DEPTH_BITS_MAX: u32 = 28;

/// Bits of depth that fit a key beside the number of a tile, or 0 where that are too few.
fn depth_bits([across, down]: [u32; 2]) -> u32 {
    // One number more than there are tiles: the last one means none.
    let tile_bits = u32::BITS - across.saturating_mul(down).leading_zeros();
    let bits = (u32::BITS - tile_bits).min(DEPTH_BITS_MAX);
    if bits >= DEPTH_BITS_MIN { bits } else { 0 }
}

impl Tiles {
    fn new(context: &Context, shaders: &ShaderSource) -> Result<Self, Error> {
        let device = &context.device;
        let stage = wgpu::ShaderStages::COMPUTE;
        let view_layout = layout(device, "tiles view", stage, &[Kind::Uniform]);
        let emit_layout = layout(
            device,
            "pairs",
            stage,
            &[
                Kind::Read,
                Kind::Read,
                Kind::Read,
                Kind::Read,
                Kind::Write,
                Kind::Write,
                Kind::Write,
            ],
        );
        let scan_layout = layout(
            device,
            "pair scan",
            stage,
            &[Kind::Write, Kind::Write, Kind::Write, Kind::Read],
        );
        let range_layout = layout(
            device,
            "ranges",
            stage,
            &[Kind::Read, Kind::Read, Kind::Write, Kind::Write, Kind::Read],
        );
        let raster_layout = layout(
            device,
            "raster",
            stage,
            &[
                Kind::Read,
                Kind::Read,
                Kind::Read,
                Kind::Read,
                Kind::Read,
                Kind::Store(TILE_COLOUR),
                Kind::Store(TILE_DEPTH),
            ],
        );
        let tiles = shaders.module(
            device,
            "tiles",
            &["shared/types.wgsl", "shared/tile_span.wgsl", "tiles.wgsl"],
        )?;
        let scan = shaders.module(device, "scan", &["shared/types.wgsl", "scan.wgsl"])?;
        let raster = shaders.module(
            device,
            "raster",
            &["shared/types.wgsl", "raster_tiles.wgsl"],
        )?;
        Ok(Self {
            count: compute(device, &tiles, "count_pairs", &[&view_layout, &emit_layout]),
            emit: compute(device, &tiles, "emit_pairs", &[&view_layout, &emit_layout]),
            ranges: compute(
                device,
                &tiles,
                "find_ranges",
                &[&view_layout, &range_layout],
            ),
            scan: compute(device, &scan, "scan_pairs", &[&view_layout, &scan_layout]),
            raster: compute(
                device,
                &raster,
                "raster_tiles",
                &[&view_layout, &raster_layout],
            ),
            // The library on every adapter: the lists are sorted by tile where they lie.
            sorter: Sorter::library(context),
            pairs: Pairs::new(device, 0, 0),
            tile_ranges: words_buffer(device, "tile ranges", 0, Usage::COPY_DST),
            view_layout,
            emit_layout,
            scan_layout,
            range_layout,
            raster_layout,
        })
    }

    fn grow(&mut self, context: &Context, front: &Front, pairs: u32) -> Result<bool, Error> {
        let limits = context.device.limits();
        let bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size);
        let most = u32::try_from(bytes / 4).unwrap_or(u32::MAX);
        let blocks = front.records.capacity.div_ceil(256);
        let wanted = pairs.saturating_add(pairs / 4).max(PAIRS_START).min(most);
        let grows = pairs > self.pairs.capacity && wanted > self.pairs.capacity;
        if !grows && blocks <= self.pairs.block_capacity && self.pairs.capacity > 0 {
            return Ok(false);
        }
        let capacity = if grows {
            wanted
        } else {
            self.pairs.capacity.max(PAIRS_START.min(most))
        };
        self.pairs = Pairs::new(&context.device, capacity, blocks);
        self.sorter.prepare(
            &self.pairs.keys,
            &self.pairs.values,
            &front.counters,
            3,
            capacity,
        )?;
        Ok(true)
    }

    /// What the kernels that walk the lists read.
    pub fn lists<'a>(&'a self, front: &'a Front) -> [wgpu::BindingResource<'a>; 5] {
        [
            self.tile_ranges.as_entire_binding(),
            self.pairs.values.as_entire_binding(),
            front.records.shape.as_entire_binding(),
            front.records.form.as_entire_binding(),
            front.records.colour.as_entire_binding(),
        ]
    }

    fn record_lists(
        &mut self,
        context: &Context,
        front: &Front,
        view: &View,
        encoder: &mut wgpu::CommandEncoder,
        timing: &mut Timing,
    ) -> Result<(), Error> {
        let device = &context.device;
        let [across, down] = view.tile_count;
        let range_bytes = u64::from(across) * u64::from(down) * 8;
        if self.tile_ranges.size() < range_bytes {
            self.tile_ranges =
                words_buffer(device, "tile ranges", range_bytes / 4, Usage::COPY_DST);
        }
        let whole = wgpu::Buffer::as_entire_binding;
        let (records, pairs) = (&front.records, &self.pairs);
        let group_view = bind(device, &self.view_layout, &[front.view()]);
        let group_emit = bind(
            device,
            &self.emit_layout,
            &[
                whole(&front.counters),
                whole(&records.order),
                whole(&records.shape),
                whole(&records.form),
                whole(&pairs.blocks),
                whole(&pairs.keys),
                whole(&pairs.values),
            ],
        );
        // The scan writes dispatch sizes beside those of the front end, which are spent by now.
        let group_scan = bind(
            device,
            &self.scan_layout,
            &[
                whole(&pairs.blocks),
                whole(&front.counters),
                whole(front.arguments()),
                whole(&self.tile_ranges),
            ],
        );
        let group_ranges = bind(
            device,
            &self.range_layout,
            &[
                whole(&front.counters),
                whole(&pairs.keys),
                whole(&self.tile_ranges),
                whole(&pairs.values),
                whole(&records.shape),
            ],
        );
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_bind_group(0, &group_view, &[]);
            pass.set_bind_group(1, &group_emit, &[]);
            pass.set_pipeline(&self.count);
            pass.dispatch_workgroups_indirect(front.arguments(), VISIBLE_DISPATCH);
            pass.set_bind_group(1, &group_scan, &[]);
            pass.set_pipeline(&self.scan);
            pass.dispatch_workgroups(1, 1, 1);
            pass.set_bind_group(1, &group_emit, &[]);
            pass.set_pipeline(&self.emit);
            pass.dispatch_workgroups_indirect(front.arguments(), VISIBLE_DISPATCH);
        }
        timing.mark(encoder, "tiles");
        self.sorter.record(
            encoder,
            &pairs.keys,
            &pairs.values,
            &front.counters,
            3,
            pairs.capacity,
        )?;
        timing.mark(encoder, "tile sort");
        encoder.clear_buffer(&self.tile_ranges, 0, None);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_bind_group(0, &group_view, &[]);
        pass.set_bind_group(1, &group_ranges, &[]);
        pass.set_pipeline(&self.ranges);
        pass.dispatch_workgroups_indirect(front.arguments(), PAIR_DISPATCH);
        Ok(())
    }

    fn record(
        &self,
        context: &Context,
        front: &Front,
        view: &View,
        target: &Target,
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), Error> {
        let device = &context.device;
        let [across, down] = view.tile_count;
        let colour = target.colour.create_view(&Default::default());
        let depth = target
            .depth
            .as_ref()
            .ok_or_else(|| Error::Device("tiles draw depth, and no target was given".to_owned()))?
            .create_view(&Default::default());
        let mut resources = self.lists(front).to_vec();
        resources.push(wgpu::BindingResource::TextureView(&colour));
        resources.push(wgpu::BindingResource::TextureView(&depth));
        let group_view = bind(device, &self.view_layout, &[front.view()]);
        let group_raster = bind(device, &self.raster_layout, &resources);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_bind_group(0, &group_view, &[]);
        pass.set_bind_group(1, &group_raster, &[]);
        pass.set_pipeline(&self.raster);
        pass.dispatch_workgroups(across, down, 1);
        Ok(())
    }
}

impl Pairs {
    fn new(device: &wgpu::Device, capacity: u32, blocks: u32) -> Self {
        let n = u64::from(capacity);
        Self {
            capacity,
            keys: words_buffer(device, "pair tiles", n, Usage::empty()),
            values: words_buffer(device, "pair records", n, Usage::empty()),
            blocks: words_buffer(device, "pair blocks", u64::from(blocks) + 1, Usage::empty()),
            block_capacity: blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::depth_bits;

    #[test]
    fn depth_fits_beside_the_tile_up_to_large_pictures() {
        assert_eq!(depth_bits([1, 1]), 28);
        assert_eq!(depth_bits([64, 64]), 19, "1024x1024");
        assert_eq!(depth_bits([120, 68]), 19, "1920x1080");
        assert_eq!(depth_bits([128, 127]), 18);
        assert_eq!(depth_bits([128, 128]), 0, "one number must be left over");
        assert_eq!(depth_bits([240, 135]), 0, "3840x2160");
    }
}
