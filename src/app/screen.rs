//! The window's surface, and the device and renderer behind it: one frame in, one picture presented.
//!
//! Whatever a window system does to a surface (minimised to nothing, resized, lost, taken away with
//! its device) ends here as "no picture this time": nothing panics, and the next frame tries again.
//! A lost device is built anew with everything on it, a few times at most.

use crate::frame::{Frame, Hit, front_most};
use crate::gpu::{self, Context, Picture, Renderer, Settings, ShaderSource, Stats};
use anyhow::{Context as _, bail};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wgpu::CurrentSurfaceTexture as Current;
use winit::window::Window;

/// A device that is lost more often than this within [`REBUILD_SPAN`] will not come back.
const REBUILDS_MAX: usize = 3;

/// See [`REBUILDS_MAX`].
const REBUILD_SPAN: Duration = Duration::from_secs(60);

/// Pictures whose targets are remembered for an answer.
const ASKED_MAX: usize = 16;

/// Surface, device and renderer of one window.
pub struct Screen {
    window: Arc<Window>,
    adapter: Option<usize>,
    settings: Settings,
    device: Device,
    size_px: [u32; 2],
    /// The surface has to be configured before it gives out a picture.
    is_stale: bool,
    rebuilt_at: Vec<Instant>,
    /// The pixel that the last picture was asked about.
    asked_at: Option<[u32; 2]>,
    /// Pictures whose answers may still come: number, pixel, targets.
    asked: VecDeque<(u64, [u32; 2], Vec<Option<u32>>)>,
    /// The pixel that the last answer was about.
    answered_at: Option<[u32; 2]>,
}

/// All that goes when the device goes.
struct Device {
    surface: wgpu::Surface<'static>,
    context: Context,
    renderer: Renderer,
    /// As configured; what is drawn into is the same without sRGB.
    config: wgpu::SurfaceConfiguration,
}

/// What became of one frame.
pub enum Outcome {
    /// On its way to the screen.
    Presented(Stats),
    /// There was nothing to draw on; try again with the next frame.
    Skipped,
    /// Skipped, and everything that lived on the device is gone.
    DeviceReplaced,
    /// The renderer cannot draw this frame; the next may be better.
    Failed(gpu::Error),
}

impl Screen {
    /// A surface for `window` on an adapter that can present to it.
    ///
    /// # Errors
    /// No such adapter, or the renderer cannot be built on it.
    pub fn new(
        window: Arc<Window>,
        adapter: Option<usize>,
        settings: Settings,
    ) -> anyhow::Result<Self> {
        let device = Device::new(&window, adapter, &settings)?;
        let size = window.inner_size();
        Ok(Self {
            window,
            adapter,
            settings,
            device,
            size_px: [size.width, size.height],
            is_stale: true,
            rebuilt_at: Vec::new(),
            asked_at: None,
            asked: VecDeque::new(),
            answered_at: None,
        })
    }

    /// The window has another size, or its surface went stale for some other reason.
    pub fn resize(&mut self, size_px: [u32; 2]) {
        self.size_px = size_px;
        self.is_stale = true;
    }

    /// Size of the picture, px; a side of 0 means minimised.
    #[must_use]
    pub fn size_px(&self) -> [u32; 2] {
        self.size_px
    }

    /// Device and queue.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.device.context
    }

    /// The renderer.
    #[must_use]
    pub fn renderer(&self) -> &Renderer {
        &self.device.renderer
    }

    /// Format of the view that is drawn into.
    fn format(&self) -> wgpu::TextureFormat {
        self.device.config.format.remove_srgb_suffix()
    }

    /// The pixel that the last picture was asked about.
    #[must_use]
    pub fn asked_at(&self) -> Option<[u32; 2]> {
        self.asked_at
    }

    /// Another version plays: answers about the pictures so far are about somebody else.
    pub fn forget_hits(&mut self) {
        self.asked.clear();
        self.answered_at = None;
    }

    /// The pixel that the last answer was about.
    #[must_use]
    pub fn answered_at(&self) -> Option<[u32; 2]> {
        self.answered_at
    }

    /// What was under the pixel of the newest picture that has answered since the last call: a
    /// target, or none. `None` while there is no answer.
    pub fn take_hit(&mut self) -> Option<Option<Hit>> {
        let Device {
            context, renderer, ..
        } = &mut self.device;
        let touches = match renderer.take_touches(context) {
            Ok(touches) => touches?,
            // A device that is lost is seen to with the next frame.
            Err(_) => return None,
        };
        while let Some((picture, pixel, targets)) = self.asked.pop_front() {
            if picture == touches.picture {
                self.answered_at = Some(pixel);
                return Some(front_most(&targets, touches.list));
            }
        }
        None
    }

    /// Draws `frame` and then whatever `over` paints on it, and presents both. `submitted` runs as
    /// soon as the frame is with the device. Where the frame has targets, the picture is asked what
    /// lies under the pixel `pointer`.
    ///
    /// # Errors
    /// Surface or device were lost and cannot be had again.
    pub fn present(
        &mut self,
        frame: &Frame,
        pointer: Option<[u32; 2]>,
        over: impl FnOnce(&Context, &wgpu::TextureView, wgpu::TextureFormat),
        submitted: impl FnOnce(),
    ) -> anyhow::Result<Outcome> {
        if self.size_px.contains(&0) {
            return Ok(Outcome::Skipped);
        }
        // A device tells of its loss only when it is asked how its work goes; the answer itself is
        // that work may still be running, or the loss.
        let _ = self.device.context.device.poll(wgpu::PollType::Poll);
        if self.device.context.is_lost() {
            self.rebuild()?;
            return Ok(Outcome::DeviceReplaced);
        }
        if self.is_stale {
            self.configure();
        }
        let texture = match self.device.surface.get_current_texture() {
            Current::Success(texture) => texture,
            Current::Suboptimal(texture) => {
                self.is_stale = true;
                texture
            }
            Current::Timeout | Current::Occluded => return Ok(Outcome::Skipped),
            Current::Outdated | Current::Validation => {
                self.is_stale = true;
                return Ok(Outcome::Skipped);
            }
            Current::Lost => {
                self.renew_surface()?;
                return Ok(Outcome::Skipped);
            }
        };
        let format = self.format();
        let view = texture.texture.create_view(&wgpu::TextureViewDescriptor {
            label: Some("screen"),
            format: Some(format),
            ..Default::default()
        });
        let Device {
            context, renderer, ..
        } = &mut self.device;
        let pick_at = pointer.filter(|_| frame.has_targets());
        renderer.set_pick(pick_at);
        let stats = match renderer.draw(context, frame, self.size_px, &view, format) {
            Ok(stats) => stats,
            // A device that is lost is seen to with the next frame.
            Err(_) if context.is_lost() => return Ok(Outcome::Skipped),
            Err(error) => return Ok(Outcome::Failed(error)),
        };
        self.asked_at = pick_at;
        if let Some(pixel) = pick_at {
            self.asked
                .push_back((renderer.pictures(), pixel, frame.targets()));
            // Answers come within a few pictures or, after a lost device, never.
            while self.asked.len() > ASKED_MAX {
                self.asked.pop_front();
            }
        }
        submitted();
        over(context, &view, format);
        self.window.pre_present_notify();
        context.queue.present(texture);
        Ok(Outcome::Presented(stats))
    }

    /// Draws `frame` once more, without anything over it, and reads it back.
    ///
    /// # Errors
    /// The renderer cannot draw it.
    pub fn picture(&mut self, frame: &Frame) -> anyhow::Result<Picture> {
        if self.size_px.contains(&0) {
            bail!("the window is minimised: there is no picture to save");
        }
        let Device {
            context, renderer, ..
        } = &mut self.device;
        Ok(renderer.picture(context, frame, self.size_px)?.0)
    }

    /// Swaps in shaders, if all of them build.
    ///
    /// # Errors
    /// Where and why they do not; the old ones stay.
    pub fn set_shaders(&mut self, shaders: ShaderSource) -> Result<(), gpu::Error> {
        let Device {
            context, renderer, ..
        } = &mut self.device;
        renderer.set_shaders(context, &shaders)?;
        self.settings.shaders = shaders;
        Ok(())
    }

    /// Forgets packed splats that no frame holds any more.
    pub fn release_unused(&mut self) {
        self.device.renderer.release_unused();
    }

    fn configure(&mut self) {
        let Device {
            surface,
            context,
            config,
            ..
        } = &mut self.device;
        let side_max = context.device.limits().max_texture_dimension_2d;
        [config.width, config.height] = self.size_px.map(|side| side.min(side_max));
        surface.configure(&context.device, config);
        self.is_stale = false;
    }

    fn renew_surface(&mut self) -> anyhow::Result<()> {
        tracing::warn!("the window's surface was lost: making a new one");
        let instance = &self.device.context.instance;
        self.device.surface = instance
            .create_surface(Arc::clone(&self.window))
            .context("cannot make a surface for the window again")?;
        self.is_stale = true;
        Ok(())
    }

    fn rebuild(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        self.rebuilt_at
            .retain(|at| now.duration_since(*at) < REBUILD_SPAN);
        if self.rebuilt_at.len() >= REBUILDS_MAX {
            bail!(
                "the graphics device was lost {} times within a minute: giving up \
                 (driver reset or out of memory?)",
                REBUILDS_MAX + 1
            );
        }
        self.rebuilt_at.push(now);
        tracing::warn!("the graphics device was lost: building it anew");
        self.device = Device::new(&self.window, self.adapter, &self.settings)?;
        self.asked.clear();
        self.is_stale = true;
        Ok(())
    }
}

impl Device {
    fn new(
        window: &Arc<Window>,
        adapter: Option<usize>,
        settings: &Settings,
    ) -> anyhow::Result<Self> {
        let instance = Context::instance();
        let surface = instance
            .create_surface(Arc::clone(window))
            .context("cannot make a surface for the window")?;
        let context = Context::for_surface(instance, &surface, adapter)?;
        let renderer = Renderer::new(&context, settings)?;
        let config = configuration(&surface, &context)?;
        Ok(Self {
            surface,
            context,
            renderer,
            config,
        })
    }
}

/// Eight bits a channel, shown when the screen is ready for it.
fn configuration(
    surface: &wgpu::Surface<'_>,
    context: &Context,
) -> anyhow::Result<wgpu::SurfaceConfiguration> {
    let mut config = surface
        .get_default_config(&context.adapter, 1, 1)
        .with_context(|| format!("{} cannot present to this window", context.info.name))?;
    let can = surface.get_capabilities(&context.adapter);
    // Pictures are encoded for display already, so the surface must not encode them again.
    let eight_bits = [
        wgpu::TextureFormat::Bgra8Unorm,
        wgpu::TextureFormat::Rgba8Unorm,
        wgpu::TextureFormat::Bgra8UnormSrgb,
        wgpu::TextureFormat::Rgba8UnormSrgb,
    ];
    if let Some(format) = eight_bits.into_iter().find(|f| can.formats.contains(f)) {
        config.format = format;
    }
    // A software driver is slow enough that a queue of pictures would be felt as lag.
    if context.is_software() {
        config.desired_maximum_frame_latency = 1;
    }
    let plain = config.format.remove_srgb_suffix();
    if plain != config.format {
        config.view_formats = vec![plain];
    }
    config.present_mode = match can.present_modes.as_slice() {
        modes if modes.contains(&wgpu::PresentMode::Fifo) => wgpu::PresentMode::Fifo,
        modes => *modes.first().context("the window has no way to present")?,
    };
    Ok(config)
}
