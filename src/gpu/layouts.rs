//! Bind groups in one line each: kinds of bindings in order, visible to the stages that need them.

/// One binding of a layout, numbered by its place in the list.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A uniform buffer.
    Uniform,
    /// A storage buffer that is read, bound with a dynamic offset, of this many bytes.
    ReadAt(u64),
    /// A storage buffer that is read.
    Read,
    /// A storage buffer that is written.
    Write,
    /// A texture that is read by `textureLoad`.
    Texture,
    /// A texture that is sampled.
    Filtered,
    /// A texture of whole numbers.
    Whole,
    /// A texture that is written by `textureStore`.
    Store(wgpu::TextureFormat),
    /// A sampler.
    Sampler,
    /// No binding of this number.
    Skip,
}

const READ: wgpu::BufferBindingType = wgpu::BufferBindingType::Storage { read_only: true };

/// A layout whose binding numbers are the places in `kinds`.
pub fn layout(
    device: &wgpu::Device,
    label: &str,
    visibility: wgpu::ShaderStages,
    kinds: &[Kind],
) -> wgpu::BindGroupLayout {
    let buffer = |ty, size: Option<u64>| wgpu::BindingType::Buffer {
        ty,
        has_dynamic_offset: size.is_some(),
        min_binding_size: size.and_then(std::num::NonZeroU64::new),
    };
    let sampled = |sample_type| wgpu::BindingType::Texture {
        sample_type,
        view_dimension: wgpu::TextureViewDimension::D2,
        multisampled: false,
    };
    let entries: Vec<_> = kinds
        .iter()
        .zip(0..)
        .filter(|(kind, _)| !matches!(kind, Kind::Skip))
        .map(|(kind, binding)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility,
            ty: match *kind {
                Kind::Uniform => buffer(wgpu::BufferBindingType::Uniform, None),
                Kind::ReadAt(size) => buffer(READ, Some(size)),
                Kind::Read => buffer(READ, None),
                Kind::Write => buffer(wgpu::BufferBindingType::Storage { read_only: false }, None),
                Kind::Texture => sampled(wgpu::TextureSampleType::Float { filterable: false }),
                Kind::Filtered => sampled(wgpu::TextureSampleType::Float { filterable: true }),
                // Gaps are gone by now.
                Kind::Whole | Kind::Skip => sampled(wgpu::TextureSampleType::Uint),
                Kind::Sampler => wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering),
                Kind::Store(format) => wgpu::BindingType::StorageTexture {
                    access: wgpu::StorageTextureAccess::WriteOnly,
                    format,
                    view_dimension: wgpu::TextureViewDimension::D2,
                },
            },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some(label),
        entries: &entries,
    })
}

/// A bind group whose binding numbers are the places in `resources`.
pub fn bind(
    device: &wgpu::Device,
    layout: &wgpu::BindGroupLayout,
    resources: &[wgpu::BindingResource<'_>],
) -> wgpu::BindGroup {
    let entries: Vec<_> = resources
        .iter()
        .zip(0..)
        .map(|(resource, binding)| wgpu::BindGroupEntry {
            binding,
            resource: resource.clone(),
        })
        .collect();
    device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout,
        entries: &entries,
    })
}

/// A compute pipeline over `layouts`.
pub fn compute(
    device: &wgpu::Device,
    module: &wgpu::ShaderModule,
    entry: &str,
    layouts: &[&wgpu::BindGroupLayout],
) -> wgpu::ComputePipeline {
    let groups: Vec<_> = layouts.iter().copied().map(Some).collect();
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(entry),
        bind_group_layouts: &groups,
        ..Default::default()
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(entry),
        layout: Some(&layout),
        module,
        entry_point: Some(entry),
        compilation_options: Default::default(),
        cache: None,
    })
}

/// A storage buffer of `words` four-byte words (one at least, so that nothing is never bound).
pub fn words_buffer(
    device: &wgpu::Device,
    label: &str,
    words: u64,
    more: wgpu::BufferUsages,
) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: words.max(4) * 4,
        usage: wgpu::BufferUsages::STORAGE | more,
        mapped_at_creation: false,
    })
}
