//! The last stage of a picture that is not filmed: splats over the background, rounded to the output's
//! 8 bits. Also what copies a filmed picture to a window.

use super::layouts::{Kind, bind, compute, layout};
use super::raster::Target;
use super::shaders::ShaderSource;
use super::{Context, Error};
use std::collections::HashMap;

/// Pipelines by output format.
pub struct Compose {
    module: wgpu::ShaderModule,
    layout: wgpu::BindGroupLayout,
    pipeline_layout: wgpu::PipelineLayout,
    pipelines: HashMap<wgpu::TextureFormat, wgpu::RenderPipeline>,
    stored: Stored,
    uniforms: wgpu::Buffer,
}

/// For outputs that a shader can write.
struct Stored {
    layout: wgpu::BindGroupLayout,
    pipeline: wgpu::ComputePipeline,
}

/// The one format that every adapter lets shaders write.
const STORED: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;
/// Side of a workgroup, px.
const GROUP_PX: u32 = 16;

impl Compose {
    /// Builds the stage.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn new(context: &Context, shaders: &ShaderSource) -> Result<Self, Error> {
        let device = &context.device;
        let module = shaders.module(device, "compose", &["compose.wgsl"])?;
        let layout = layout(
            device,
            "compose",
            wgpu::ShaderStages::FRAGMENT,
            &[Kind::Uniform, Kind::Texture],
        );
        let parts = ["compose.wgsl", "compose_store.wgsl"];
        let module_stored = shaders.module(device, "compose", &parts)?;
        let layout_stored = self::layout(
            device,
            "compose",
            wgpu::ShaderStages::COMPUTE,
            &[Kind::Uniform, Kind::Texture, Kind::Store(STORED)],
        );
        Ok(Self {
            stored: Stored {
                pipeline: compute(device, &module_stored, "compose_stored", &[&layout_stored]),
                layout: layout_stored,
            },
            pipeline_layout: device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some("compose"),
                bind_group_layouts: &[Some(&layout)],
                ..Default::default()
            }),
            module,
            layout,
            pipelines: HashMap::new(),
            uniforms: device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("compose"),
                size: 16,
                usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
        })
    }

    /// Records the stage into `output`, a view of `format` whose values are stored as they are
    /// (not an sRGB format: colours are in display space already).
    pub fn record(
        &mut self,
        context: &Context,
        splats: &Target,
        background: [f32; 4],
        output: &wgpu::TextureView,
        format: wgpu::TextureFormat,
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let device = &context.device;
        context
            .queue
            .write_buffer(&self.uniforms, 0, bytemuck::bytes_of(&background));
        let colour = splats.colour.create_view(&Default::default());
        // A software driver is quicker with the triangle.
        if is_stored(output, format) && !context.is_software() {
            let group = bind(
                device,
                &self.stored.layout,
                &[
                    self.uniforms.as_entire_binding(),
                    wgpu::BindingResource::TextureView(&colour),
                    wgpu::BindingResource::TextureView(output),
                ],
            );
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("compose"),
                timestamp_writes: None,
            });
            pass.set_pipeline(&self.stored.pipeline);
            pass.set_bind_group(0, &group, &[]);
            let [across, down] = splats.size_px.map(|side| side.div_ceil(GROUP_PX));
            pass.dispatch_workgroups(across, down, 1);
            return;
        }
        let group = bind(
            device,
            &self.layout,
            &[
                self.uniforms.as_entire_binding(),
                wgpu::BindingResource::TextureView(&colour),
            ],
        );
        let pipeline = self.pipelines.entry(format).or_insert_with(|| {
            triangle(
                device,
                &self.pipeline_layout,
                &self.module,
                "compose_pixel",
                format,
            )
        });
        draw_triangle(encoder, pipeline, &group, output);
    }
}

/// Whether a shader can write `output`, a view of `format`.
pub fn is_stored(output: &wgpu::TextureView, format: wgpu::TextureFormat) -> bool {
    let usage = output.texture().usage();
    format == STORED && usage.contains(wgpu::TextureUsages::STORAGE_BINDING)
}

/// A pipeline that draws one triangle over the whole picture; the module has `corner` for it.
fn triangle(
    device: &wgpu::Device,
    layout: &wgpu::PipelineLayout,
    module: &wgpu::ShaderModule,
    fragment: &str,
    format: wgpu::TextureFormat,
) -> wgpu::RenderPipeline {
    device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: Some(fragment),
        layout: Some(layout),
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
            entry_point: Some(fragment),
            compilation_options: Default::default(),
            targets: &[Some(format.into())],
        }),
        multiview_mask: None,
        cache: None,
    })
}

fn draw_triangle(
    encoder: &mut wgpu::CommandEncoder,
    pipeline: &wgpu::RenderPipeline,
    group: &wgpu::BindGroup,
    output: &wgpu::TextureView,
) {
    let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
        label: Some("triangle"),
        color_attachments: &[super::raster::cleared(output)],
        ..Default::default()
    });
    pass.set_pipeline(pipeline);
    pass.set_bind_group(0, group, &[]);
    pass.draw(0..3, 0..1);
}

/// Copies a finished picture into outputs that shaders cannot write.
pub struct Blit {
    module: wgpu::ShaderModule,
    layout: wgpu::BindGroupLayout,
    pipeline_layout: wgpu::PipelineLayout,
    pipelines: HashMap<wgpu::TextureFormat, wgpu::RenderPipeline>,
}

impl Blit {
    /// Builds the stage.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn new(context: &Context, shaders: &ShaderSource) -> Result<Self, Error> {
        let device = &context.device;
        let fragment = wgpu::ShaderStages::FRAGMENT;
        let layout = layout(device, "blit", fragment, &[Kind::Texture]);
        Ok(Self {
            module: shaders.module(device, "blit", &["blit.wgsl"])?,
            pipeline_layout: device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some("blit"),
                bind_group_layouts: &[Some(&layout)],
                ..Default::default()
            }),
            layout,
            pipelines: HashMap::new(),
        })
    }

    /// Records the copy of `picture` into `output`, of the same size.
    pub fn record(
        &mut self,
        context: &Context,
        picture: &wgpu::TextureView,
        output: &wgpu::TextureView,
        format: wgpu::TextureFormat,
        encoder: &mut wgpu::CommandEncoder,
    ) {
        let device = &context.device;
        let source = wgpu::BindingResource::TextureView(picture);
        let group = bind(device, &self.layout, &[source]);
        let pipeline = self.pipelines.entry(format).or_insert_with(|| {
            triangle(device, &self.pipeline_layout, &self.module, "blit", format)
        });
        draw_triangle(encoder, pipeline, &group, output);
    }
}
