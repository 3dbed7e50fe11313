//! Device and queue: which adapter, with which features, and what happens when it goes away.
//!
//! Asks for all limits that the adapter has and for optional features only where they are there;
//! nothing here is required beyond WebGPU's core. An error that wgpu does not tie to a call is
//! logged, never a panic.

use super::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Device, queue and what they can do.
pub struct Context {
    /// Makes surfaces.
    pub instance: wgpu::Instance,
    /// The chosen adapter.
    pub adapter: wgpu::Adapter,
    /// Makes buffers, textures, pipelines.
    pub device: wgpu::Device,
    /// Takes command buffers.
    pub queue: wgpu::Queue,
    /// Name, type and driver of the adapter.
    pub info: wgpu::AdapterInfo,
    lost: Arc<AtomicBool>,
}

/// Features that are used where the adapter has them.
const FEATURES_USED: wgpu::Features = wgpu::Features::TIMESTAMP_QUERY
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS)
    .union(wgpu::Features::FLOAT32_BLENDABLE)
    .union(wgpu::Features::SUBGROUP);

impl Context {
    /// The instance that both constructors use. Backends follow `WGPU_BACKEND` where it is set;
    /// OpenGL is not asked otherwise, since it finds the same devices a second time.
    #[must_use]
    pub fn instance() -> wgpu::Instance {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::PRIMARY;
        wgpu::Instance::new(descriptor.with_env())
    }

    /// Everything wgpu finds on this machine, in the order that `adapter_index` counts.
    #[must_use]
    pub fn adapters() -> Vec<wgpu::AdapterInfo> {
        let instance = Self::instance();
        pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()))
            .iter()
            .map(wgpu::Adapter::get_info)
            .collect()
    }

    /// A context for files, without a window. `adapter_index` counts in [`Context::adapters`].
    ///
    /// # Errors
    /// No adapter, no such adapter, or a device that cannot be had.
    pub fn headless(adapter_index: Option<usize>) -> Result<Self, Error> {
        Self::new(Self::instance(), None, adapter_index)
    }

    /// A context that can present to `surface`.
    ///
    /// # Errors
    /// As [`Context::headless`], and an adapter that cannot present to the surface.
    pub fn for_surface(
        instance: wgpu::Instance,
        surface: &wgpu::Surface<'_>,
        adapter_index: Option<usize>,
    ) -> Result<Self, Error> {
        Self::new(instance, Some(surface), adapter_index)
    }

    /// True once the device was lost; the caller builds a new context and renderer.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// True for drivers that run on the processor.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.info.device_type == wgpu::DeviceType::Cpu
    }

    fn new(
        instance: wgpu::Instance,
        surface: Option<&wgpu::Surface<'_>>,
        adapter_index: Option<usize>,
    ) -> Result<Self, Error> {
        let adapter = choose(&instance, surface, adapter_index)?;
        let info = adapter.get_info();
        let wanted = FEATURES_USED & adapter.features();
        // The sort library's fast path wants larger workgroups than the defaults allow; asking for
        // all that the adapter has covers it.
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("splatstage"),
            required_features: wanted,
            required_limits: adapter.limits(),
            ..Default::default()
        }))
        .map_err(|error| Error::NoAdapter(format!("{}: {error}", info.name)))?;
        let lost = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                tracing::error!("graphics device lost ({reason:?}): {message}");
            }
            flag.store(true, Ordering::Release);
        });
        device.on_uncaptured_error(Arc::new(|error: wgpu::Error| {
            tracing::error!("graphics error: {error}");
        }));
        tracing::debug!(
            "adapter {} ({:?}, {:?})",
            info.name,
            info.device_type,
            info.backend
        );
        Ok(Self {
            instance,
            adapter,
            device,
            queue,
            info,
            lost,
        })
    }
}

fn choose(
    instance: &wgpu::Instance,
    surface: Option<&wgpu::Surface<'_>>,
    adapter_index: Option<usize>,
) -> Result<wgpu::Adapter, Error> {
    let Some(index) = adapter_index else {
        return pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            compatible_surface: surface,
            ..Default::default()
        }))
        .map_err(|error| {
            Error::NoAdapter(format!(
                "{error}; a machine without a GPU needs a software Vulkan driver \
                 (Debian and Ubuntu: mesa-vulkan-drivers), which .ci/setup installs"
            ))
        });
    };
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let count = adapters.len();
    let adapter = adapters.into_iter().nth(index).ok_or_else(|| {
        Error::NoAdapter(format!(
            "there is no adapter {index}: {count} found, see `splatstage doctor`"
        ))
    })?;
    match surface {
        Some(surface) if !adapter.is_surface_supported(surface) => Err(Error::NoAdapter(format!(
            "adapter {index} ({}) cannot show this window",
            adapter.get_info().name
        ))),
        _ => Ok(adapter),
    }
}
