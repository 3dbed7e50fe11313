//! The last stage: splats over the background, rounded to the output's 8 bits.

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
        let usage = output.texture().usage();
        let can_store = usage.contains(wgpu::TextureUsages::STORAGE_BINDING);
        // A software driver is quicker with the triangle.
        if format == STORED && can_store && !context.is_software() {
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
            device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: Some("compose"),
                layout: Some(&self.pipeline_layout),
                vertex: wgpu::VertexState {
                    module: &self.module,
                    entry_point: Some("corner"),
                    compilation_options: Default::default(),
                    buffers: &[],
                },
                primitive: wgpu::PrimitiveState::default(),
                depth_stencil: None,
                multisample: wgpu::MultisampleState::default(),
                fragment: Some(wgpu::FragmentState {
                    module: &self.module,
                    entry_point: Some("compose_pixel"),
                    compilation_options: Default::default(),
                    targets: &[Some(format.into())],
                }),
                multiview_mask: None,
                cache: None,
            })
        });
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            label: Some("compose"),
            color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                view: output,
                depth_slice: None,
                resolve_target: None,
                ops: wgpu::Operations {
                    load: wgpu::LoadOp::Clear(wgpu::Color::TRANSPARENT),
                    store: wgpu::StoreOp::Store,
                },
            })],
            ..Default::default()
        });
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.draw(0..3, 0..1);
    }
}
