//! The only place that knows wgpu: frames in, pictures out.
//!
//! Stages: [`front`] ([`deform`], [`effects`], cull, scan, compact, project, sort), [`raster`] (tiles or quads),
//! [`compose`], and [`pick`] where somebody asks what is under a pixel.
//! Each has a readable twin in [`crate::reference`] that tests compare it with. Splats are 32 bytes
//! here plus 12, 28 or 48 bytes of SH at degree 1, 2, 3 (see [`pack`]); buffers are split below the
//! adapter's binding limit. Nothing needs subgroups or a vendor's extension; timestamps, f32
//! blending and the sort library's native path are used where the adapter has them.

mod arrivals;
mod compose;
mod context;
mod deform;
mod effects;
mod film;
mod front;
mod layouts;
pub mod pack;
mod pick;
mod raster;
mod residency;
mod shaders;
mod sort;
mod timing;
mod uniforms;

use crate::frame::{Frame, Touch};
use compose::Compose;
pub use context::Context;
use film::FilmStage;
use front::Front;
use glam::{Quat, Vec3};
pub use pick::{AGE_MAX as PICK_AGE_MAX, Touches};
pub use raster::Method as RasterMethod;
use raster::{Raster, Target};
use residency::Residency;
pub use shaders::{EMBEDDED as EMBEDDED_SHADERS, ShaderSource};
use std::sync::mpsc::Receiver;
use std::time::Duration;
pub use timing::Counters;
use timing::{Reading, Timing};
use uniforms::InstantUniform;
pub use uniforms::{StructLayout, uniform_layouts};

/// What can go wrong with the GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no adapter to draw with, or not the one that was asked for.
    #[error("no graphics adapter: {0}")]
    NoAdapter(String),
    /// A WGSL text does not validate; the message starts with `file:line:`.
    #[error("{message}")]
    Shader {
        /// `file:line: what is wrong`.
        message: String,
    },
    /// The device was lost, ran out of memory or refused something.
    #[error("{0}")]
    Device(String),
}

/// How splats lie in GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Packing {
    /// 32 bytes and a compact SH codec.
    #[default]
    Packed,
    /// Plain floats: a debug switch that shows what packing costs.
    Float,
}

/// What a renderer is built with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `None` chooses by adapter type: quads on software drivers, else tiles.
    pub raster: Option<RasterMethod>,
    /// How splats lie in GPU memory.
    pub packing: Packing,
    /// WGSL texts.
    pub shaders: ShaderSource,
    /// Draw depth beside colour also where that costs extra (quads).
    pub depth: bool,
    /// Pose, edit and colour splats that have effects by a shader of its own: less to compile with every
    /// effect, more to write and read. `None` does so on software drivers.
    pub effects_apart: Option<bool>,
    /// Most splats of one page, cut to whole workgroups of 256; `None` for as many as the adapter binds
    /// at once.
    pub page_rows_max: Option<usize>,
}

/// What one picture cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Splats in the frame's draws.
    pub count: u64,
    /// Splats that survived culling and were sorted.
    pub sorted: u64,
    /// Milliseconds per stage by timestamp queries, in order; empty where the adapter has none.
    pub stages: Vec<(&'static str, f64)>,
    /// Sum over the stages.
    pub gpu_ms: Option<f64>,
}

/// 8-bit RGBA, straight alpha, rows top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width and height, px.
    pub size: [u32; 2],
    /// Four bytes a pixel.
    pub rgba: Vec<u8>,
}

/// What a rasteriser drew, before the background.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    /// Width and height, px.
    pub size: [u32; 2],
    /// Colour multiplied by coverage, and coverage.
    pub colour: Vec<[f32; 4]>,
    /// Expected depth, metres: sum of weight times depth over coverage; 0 where nothing is.
    pub expected_depth_m: Vec<f32>,
    /// Depth where coverage first passes one half, metres; 0 where it never does. Tiles only.
    pub median_depth_m: Option<Vec<f32>>,
}

/// Draws frames with one device.
pub struct Renderer {
    settings: Settings,
    method: RasterMethod,
    residency: Residency,
    front: Front,
    raster: Raster,
    compose: Compose,
    /// Built when the first filmed frame comes.
    film: Option<Box<FilmStage>>,
    target: Option<Target>,
    timing: Timing,
    /// The last reading and the splats of its frame.
    stats: Stats,
    /// Capacities that the last reading asked for.
    wanted: Counters,
    /// The pixel whose splats are asked for, from the top left corner.
    pick_at: Option<[u32; 2]>,
    /// Pictures submitted.
    pictures: u64,
}

impl Renderer {
    /// Builds all pipelines.
    ///
    /// # Errors
    /// A shader that does not validate.
    pub fn new(context: &Context, settings: &Settings) -> Result<Self, Error> {
        let method = settings.raster.unwrap_or(if context.is_software() {
            RasterMethod::Quads
        } else {
            RasterMethod::Tiles
        });
        let residency = Residency::new(&context.device, settings.packing, settings.page_rows_max);
        let is_apart = settings
            .effects_apart
            .unwrap_or_else(|| context.is_software());
        let scope = context
            .device
            .push_error_scope(wgpu::ErrorFilter::Validation);
        let renderer = Self {
            method,
            front: Front::new(
                context,
                &settings.shaders,
                settings.packing,
                is_apart,
                &residency,
            )?,
            raster: Raster::new(context, &settings.shaders, method)?,
            compose: Compose::new(context, &settings.shaders)?,
            film: None,
            target: None,
            timing: Timing::new(&context.device, &context.queue),
            stats: Stats::default(),
            wanted: Counters::default(),
            pick_at: None,
            pictures: 0,
            residency,
            settings: settings.clone(),
        };
        pipelines_built(scope)?;
        Ok(renderer)
    }

    /// The rasteriser in use.
    #[must_use]
    pub fn raster(&self) -> RasterMethod {
        self.method
    }

    /// Bytes of GPU memory per splat at an SH degree, in the current packing.
    #[must_use]
    pub fn bytes_per_splat(&self, sh_degree: u8) -> u64 {
        let packing = self.settings.packing;
        (pack::splat_words(packing) + pack::sh_words(packing, sh_degree)) as u64 * 4
    }

    /// Uploads the frame's splats, so that the first picture does not wait for it.
    ///
    /// # Errors
    /// The device ran out of memory.
    pub fn upload(&mut self, context: &Context, frame: &Frame) -> Result<(), Error> {
        for draw in &frame.draws {
            self.residency.pages(context, &draw.splats)?;
        }
        Ok(())
    }

    /// Draws `frame` into `target` (a view of `format`, not an sRGB format) and submits. The stats
    /// are those of the newest frame whose reading has come back: mostly the one before.
    ///
    /// A picture whose survivors or pairs did not fit the buffers is drawn with what fits; the next
    /// one has room.
    ///
    /// # Errors
    /// The device was lost or ran out of memory.
    pub fn draw(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
        target: &wgpu::TextureView,
        format: wgpu::TextureFormat,
    ) -> Result<Stats, Error> {
        if let Some(reading) = self.timing.take(&context.device, false)? {
            self.learn(reading);
        }
        self.submit(context, frame, size, Some((target, format)), false)?;
        Ok(self.stats.clone())
    }

    /// Draws `frame` and reads the picture back. Repeats until everything fits the buffers, so the
    /// result depends on the frame alone.
    ///
    /// # Errors
    /// The device was lost or ran out of memory.
    pub fn picture(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
    ) -> Result<(Picture, Stats), Error> {
        let output = picture_texture(context, size);
        let view = output.create_view(&Default::default());
        self.draw_until_it_fits(context, frame, size, Some((&view, PICTURE_FORMAT)), false)?;
        let rgba = read_texture(context, &output, 4)?;
        Ok((Picture { size, rgba }, self.stats.clone()))
    }

    /// Films `frame` by brute force: every instant of `exposed` is rendered whole, and each row of the
    /// picture is the mean of those in which it was open. `exposed` holds at equal distances from f = -1
    /// to f = 1 what there is to see (`frame.film` says how long that takes); each goes through the lens
    /// at a place of its own.
    ///
    /// # Errors
    /// As [`Renderer::picture`]; a frame that is not filmed.
    pub fn reference_film(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
        exposed: &[Frame],
    ) -> Result<(Picture, Stats), Error> {
        let Some(film) = frame.film.as_deref() else {
            return Err(Error::Device("this frame is not filmed".to_owned()));
        };
        let mut stage = match self.film.take() {
            Some(stage) => stage,
            None => Box::new(FilmStage::new(
                context,
                &self.settings.shaders,
                self.method,
            )?),
        };
        stage.prepare(context, frame, film, size, self.method);
        stage.clear_light(context, size);
        let count = exposed.len();
        for (k, instant) in exposed.iter().enumerate() {
            let mut instant = instant.clone();
            let lens_m = film.lens_place(k).as_vec2();
            let across = instant.camera.rotation * Vec3::new(lens_m.x, -lens_m.y, 0.0);
            instant.camera.position += across;
            instant.film = frame.film.clone();
            self.draw_until_it_fits(context, &instant, size, None, true)?;
            let step_f = 2.0 / (count.max(2) - 1) as f32;
            let uniform = InstantUniform {
                f: if count > 1 {
                    k as f32 * step_f - 1.0
                } else {
                    0.0
                },
                half_step_f: 0.5 * step_f,
                lens_m: lens_m.to_array(),
            };
            if let Some(target) = &self.target {
                stage.expose(context, uniform, target);
            }
        }
        let output = picture_texture(context, size);
        let view = output.create_view(&Default::default());
        stage.develop(context, film, (&view, PICTURE_FORMAT));
        self.film = Some(stage);
        let rgba = read_texture(context, &output, 4)?;
        Ok((Picture { size, rgba }, self.stats.clone()))
    }

    /// Draws `frame` and reads back what the rasteriser left: colour, coverage, depth.
    ///
    /// # Errors
    /// As [`Renderer::picture`]; with quads, [`Settings::depth`] must be set.
    pub fn layers(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
    ) -> Result<Layers, Error> {
        self.draw_until_it_fits(context, frame, size, None, false)?;
        let no_depth = || Error::Device("this renderer was built without depth".to_owned());
        let target = self.target.as_ref().ok_or_else(no_depth)?;
        let colour = read_floats(context, &target.colour)?;
        let depth = read_floats(context, target.depth.as_ref().ok_or_else(no_depth)?)?;
        let expected_depth_m = colour
            .iter()
            .zip(&depth)
            .map(|(c, d)| if c[3] > 0.0 { d[0] / c[3] } else { 0.0 })
            .collect();
        let median_depth_m =
            (self.method == RasterMethod::Tiles).then(|| depth.iter().map(|d| d[1]).collect());
        Ok(Layers {
            size,
            colour,
            expected_depth_m,
            median_depth_m,
        })
    }

    /// Swaps in new shader texts if all of them validate; else keeps the old ones.
    ///
    /// # Errors
    /// [`Error::Shader`] with `file:line:`.
    pub fn set_shaders(&mut self, context: &Context, shaders: &ShaderSource) -> Result<(), Error> {
        let scope = context
            .device
            .push_error_scope(wgpu::ErrorFilter::Validation);
        let front = self.front.rebuilt_pipelines(
            context,
            shaders,
            self.settings.packing,
            &self.residency,
        )?;
        let raster = Raster::new(context, shaders, self.method)?;
        let compose = Compose::new(context, shaders)?;
        let film = match &self.film {
            Some(_) => Some(Box::new(FilmStage::new(context, shaders, self.method)?)),
            None => None,
        };
        pipelines_built(scope)?;
        self.film = film;
        self.front.set_pipelines(front);
        self.raster = raster;
        self.compose = compose;
        self.settings.shaders = shaders.clone();
        Ok(())
    }

    /// From the next picture on, asks which splats blend into pixel `at` (from the top left corner);
    /// `None` asks no more. Answers come by [`Renderer::take_touches`].
    pub fn set_pick(&mut self, at: Option<[u32; 2]>) {
        self.pick_at = at;
    }

    /// The newest answer that has come since the last call, at most [`PICK_AGE_MAX`] pictures old
    /// ([`Touches::picture`] against [`Renderer::pictures`]).
    ///
    /// # Errors
    /// The device was lost.
    pub fn take_touches(&mut self, context: &Context) -> Result<Option<Touches>, Error> {
        self.front.pick.take(context, self.pictures + 1, false)
    }

    /// Pictures submitted so far; the first one has number 1.
    #[must_use]
    pub fn pictures(&self) -> u64 {
        self.pictures
    }

    /// Projects `frame` and waits for all splats that blend into each of `pixels`, without drawing.
    ///
    /// # Errors
    /// As [`Renderer::picture`].
    pub fn touches(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
        pixels: &[[u32; 2]],
    ) -> Result<Vec<Vec<Touch>>, Error> {
        // Earlier questions are not answered here, and this frame's survivors have to fit.
        self.front.pick.take(context, self.pictures, true)?;
        self.draw_until_it_fits(context, frame, size, None, false)?;
        let mut plan = self.front.plan(
            context,
            (&self.settings.shaders, self.settings.packing),
            &mut self.residency,
            frame,
            size,
        )?;
        let mut found = Vec::with_capacity(pixels.len());
        for at in pixels {
            // The list grows once where it was too short.
            loop {
                let capacity = self.front.pick.capacity();
                plan.view.pick_px = at.map(|v| v as f32 + 0.5);
                let mut encoder = context.device.create_command_encoder(&Default::default());
                self.front.write_pick(context, &plan.view);
                self.front
                    .record_pick(context, &mut self.residency, frame, &plan, &mut encoder)?;
                context.queue.submit([encoder.finish()]);
                self.front.pick.request(self.pictures);
                let touches = self.front.pick.take(context, self.pictures, true)?;
                if self.front.pick.capacity() == capacity {
                    found.push(touches.map_or_else(Vec::new, |t| t.list));
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Poses the bodies of `frame` and reads back, for each draw with a pose, centre and turn of every
    /// splat in its own space.
    ///
    /// # Errors
    /// As [`Renderer::picture`].
    pub fn posed(
        &mut self,
        context: &Context,
        frame: &Frame,
    ) -> Result<Vec<Vec<(Vec3, Quat)>>, Error> {
        let size = [16, 16];
        self.draw_until_it_fits(context, frame, size, None, false)?;
        let plan = self.front.plan(
            context,
            (&self.settings.shaders, self.settings.packing),
            &mut self.residency,
            frame,
            size,
        )?;
        let mut draws = Vec::new();
        for slot in plan.places().iter().filter(|p| p.page == 0) {
            let Some(slot) = slot.slot else { continue };
            let mut rows = Vec::new();
            for (buffer, count) in self.front.deform.posed(slot) {
                let mut encoder = context.device.create_command_encoder(&Default::default());
                let bytes = read_now(context, &mut encoder, buffer, u64::from(count) * 32)?;
                let floats: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
                rows.extend(floats.chunks_exact(8).map(|row| {
                    let turn = Quat::from_slice(&row[4..8]);
                    (Vec3::from_slice(&row[..3]), turn)
                }));
            }
            draws.push(rows);
        }
        Ok(draws)
    }

    /// Frees packed copies of splats and bodies that nobody else holds.
    pub fn release_unused(&mut self) {
        self.residency.release_unused();
        self.front.deform.release_unused();
        self.front.effects.release_unused();
        self.front.arrivals.release_unused();
    }

    fn draw_until_it_fits(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
        output: Option<(&wgpu::TextureView, wgpu::TextureFormat)>,
        exposes: bool,
    ) -> Result<(), Error> {
        // An earlier frame's reading must not be taken for this one's.
        if let Some(reading) = self.timing.take(&context.device, true)? {
            self.learn(reading);
        }
        // Survivors grow once, then pairs once; a third round draws.
        for _ in 0..3 {
            self.submit(context, frame, size, output, exposes)?;
            let Some(reading) = self.timing.take(&context.device, true)? else {
                return Ok(());
            };
            let counters = reading.counters;
            self.learn(reading);
            if counters.visible == counters.visible_total && counters.pairs == counters.pair_total {
                return Ok(());
            }
        }
        tracing::warn!(
            "{} of {} splats and {} of {} pairs drawn: the adapter binds no more at once",
            self.wanted.visible,
            self.wanted.visible_total,
            self.wanted.pairs,
            self.wanted.pair_total
        );
        Ok(())
    }

    fn learn(&mut self, reading: Reading) {
        self.stats.sorted = u64::from(reading.counters.visible);
        self.stats.gpu_ms =
            (!reading.stages.is_empty()).then(|| reading.stages.iter().map(|(_, ms)| ms).sum());
        self.stats.stages = reading.stages;
        self.wanted = reading.counters;
    }

    /// With `exposes`, a filmed frame is drawn as one instant of a reference film: wide, unfilmed.
    fn submit(
        &mut self,
        context: &Context,
        frame: &Frame,
        size: [u32; 2],
        output: Option<(&wgpu::TextureView, wgpu::TextureFormat)>,
        exposes: bool,
    ) -> Result<(), Error> {
        let scope = context
            .device
            .push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let film = frame.film.as_deref().filter(|_| !exposes);
        // What is drawn of a filmed frame is larger than its picture, and is drawn into layers.
        let (wide, drawn_px, margin_px) = match frame.film.as_deref() {
            Some(film) => (
                Some(Frame {
                    camera: film.wide_camera(&frame.camera, size),
                    ..frame.clone()
                }),
                film.wide_size(size),
                film.margin_px(size),
            ),
            None => (None, size, [0, 0]),
        };
        let drawn = wide.as_ref().unwrap_or(frame);
        let side_max = context.device.limits().max_texture_dimension_2d;
        if drawn_px.iter().any(|side| *side > side_max) {
            let overscan = if wide.is_some() {
                " with its overscan"
            } else {
                ""
            };
            return Err(Error::Device(format!(
                "a picture of {}x{}{overscan} is more than this adapter draws: at most {side_max} \
                 pixels a side",
                drawn_px[0], drawn_px[1]
            )));
        }
        if film.is_some() && self.film.is_none() {
            let stage = FilmStage::new(context, &self.settings.shaders, self.method)?;
            self.film = Some(Box::new(stage));
        }
        let fits = self.target.as_ref().is_some_and(|t| t.size_px == drawn_px);
        if film.is_none() && !fits {
            self.target = None;
            let depth = self.settings.depth;
            self.target = Some(Target::new(context, self.method, drawn_px, depth));
        }
        let mut plan = self.front.plan(
            context,
            (&self.settings.shaders, self.settings.packing),
            &mut self.residency,
            drawn,
            drawn_px,
        )?;
        self.stats.count = plan.count;
        self.front
            .grow_records(context, &plan, self.wanted.visible_total)?;
        self.raster
            .grow_pairs(context, &self.front, self.wanted.pair_total)?;
        plan.view.pair_capacity = self.raster.pair_capacity();
        plan.view.depth_bits = self.raster.depth_bits(&plan.view);
        let pick_at = self.pick_at.filter(|at| at[0] < size[0] && at[1] < size[1]);
        if let Some(at) = pick_at {
            let at = [at[0] + margin_px[0], at[1] + margin_px[1]];
            plan.view.pick_px = at.map(|v| v as f32 + 0.5);
        }
        let mut encoder = context.device.create_command_encoder(&Default::default());
        self.front.record(
            context,
            &mut self.residency,
            drawn,
            &mut plan,
            &mut encoder,
            &mut self.timing,
        )?;
        // Records may have grown on the way; pairs keep one block per 256 records.
        if self.raster.grow_pairs(context, &self.front, 0)? {
            plan.view.pair_capacity = self.raster.pair_capacity();
        }
        if let (Some(film), Some(stage)) = (film, &mut self.film) {
            let is_split = stage.prepare(context, frame, film, size, self.method);
            stage.record(
                context,
                &self.front,
                &mut self.raster,
                &plan.view,
                film,
                is_split,
                output,
                &mut encoder,
                &mut self.timing,
            )?;
        } else if let Some(target) = &self.target {
            self.raster.record(
                context,
                &self.front,
                &plan.view,
                target,
                &mut encoder,
                &mut self.timing,
            )?;
            if let Some((view, format)) = output {
                self.compose.record(
                    context,
                    target,
                    frame.background,
                    view,
                    format,
                    &mut encoder,
                );
                self.timing.mark(&mut encoder, "compose");
            }
        }
        if pick_at.is_some() {
            let residency = &mut self.residency;
            self.front
                .record_pick(context, residency, drawn, &plan, &mut encoder)?;
            self.timing.mark(&mut encoder, "pick");
        }
        let reads = self.timing.end(&mut encoder, &self.front.counters);
        context.queue.submit([encoder.finish()]);
        self.pictures += 1;
        self.front.pick.request(self.pictures);
        if reads {
            self.timing.request();
        }
        match pollster::block_on(scope.pop()) {
            Some(error) => Err(Error::Device(format!("out of graphics memory: {error}"))),
            None => Ok(()),
        }
    }
}

fn picture_texture(context: &Context, size: [u32; 2]) -> wgpu::Texture {
    context.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("picture"),
        size: wgpu::Extent3d {
            width: size[0],
            height: size[1],
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: PICTURE_FORMAT,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT
            | wgpu::TextureUsages::STORAGE_BINDING
            | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    })
}

const PICTURE_FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// Texts may each be valid and still not fit the bindings of their pipelines, which wgpu reports
/// apart.
fn pipelines_built(scope: wgpu::ErrorScopeGuard) -> Result<(), Error> {
    match pollster::block_on(scope.pop()) {
        None => Ok(()),
        Some(error) => {
            let text = error.to_string();
            let message = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            Err(Error::Shader {
                message: format!("shaders:1: {message}"),
            })
        }
    }
}

/// Waits until everything submitted is done.
fn wait(device: &wgpu::Device) -> Result<(), Error> {
    device
        .poll(wgpu::PollType::wait_indefinitely())
        .map(|_| ())
        .map_err(|error| Error::Device(format!("waiting for the graphics device: {error}")))
}

/// The bytes of a buffer that is mapped.
fn read_mapped(buffer: &wgpu::Buffer) -> Result<Vec<u8>, Error> {
    buffer
        .get_mapped_range(..)
        .map(|view| view.to_vec())
        .map_err(|error| Error::Device(format!("reading back: {error}")))
}

/// What a map callback says.
type MapResult = Result<(), wgpu::BufferAsyncError>;

/// Asks for `buffer` to be mapped for reading; the answer comes through the receiver.
fn map(buffer: &wgpu::Buffer) -> Receiver<MapResult> {
    let (answer, mapped) = std::sync::mpsc::channel();
    buffer.map_async(wgpu::MapMode::Read, .., move |result| {
        // Nobody waits any more when the receiver is gone.
        let _ = answer.send(result);
    });
    mapped
}

/// Waits for the answer to [`map`]. The end of the device's work is not enough: where several
/// threads share a device, another one's poll may still be about to call back.
fn wait_for_map(device: &wgpu::Device, mapped: &Receiver<MapResult>) -> Result<(), Error> {
    wait(device)?;
    match mapped.recv_timeout(CALL_BACK_MAX) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::Device(format!("reading back: {error}"))),
        Err(error) => Err(Error::Device(format!("reading back: no answer ({error})"))),
    }
}

/// A callback that has not come this long after the device's work ended never will.
const CALL_BACK_MAX: Duration = Duration::from_secs(10);

/// Maps `buffer` and copies it out.
fn map_and_read(device: &wgpu::Device, buffer: &wgpu::Buffer) -> Result<Vec<u8>, Error> {
    wait_for_map(device, &map(buffer))?;
    read_mapped(buffer)
}

fn readback_buffer(device: &wgpu::Device, size: u64) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("readback"),
        size,
        usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        mapped_at_creation: false,
    })
}

/// Submits what `encoder` holds and the copy of `bytes` of `buffer`, and leaves a fresh encoder.
fn read_now(
    context: &Context,
    encoder: &mut wgpu::CommandEncoder,
    buffer: &wgpu::Buffer,
    bytes: u64,
) -> Result<Vec<u8>, Error> {
    let read = readback_buffer(&context.device, bytes);
    encoder.copy_buffer_to_buffer(buffer, 0, &read, 0, bytes);
    let fresh = context.device.create_command_encoder(&Default::default());
    context
        .queue
        .submit([std::mem::replace(encoder, fresh).finish()]);
    map_and_read(&context.device, &read)
}

/// All bytes of a texture, rows without padding.
fn read_texture(
    context: &Context,
    texture: &wgpu::Texture,
    bytes_per_pixel: u32,
) -> Result<Vec<u8>, Error> {
    let (width, height) = (texture.width(), texture.height());
    let row = width * bytes_per_pixel;
    let padded = row.next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
    let read = readback_buffer(&context.device, u64::from(padded) * u64::from(height));
    let mut encoder = context.device.create_command_encoder(&Default::default());
    encoder.copy_texture_to_buffer(
        texture.as_image_copy(),
        wgpu::TexelCopyBufferInfo {
            buffer: &read,
            layout: wgpu::TexelCopyBufferLayout {
                offset: 0,
                bytes_per_row: Some(padded),
                rows_per_image: None,
            },
        },
        texture.size(),
    );
    context.queue.submit([encoder.finish()]);
    let bytes = map_and_read(&context.device, &read)?;
    Ok(bytes
        .chunks_exact(padded as usize)
        .flat_map(|r| &r[..row as usize])
        .copied()
        .collect())
}

/// A float texture as four f32 a pixel; channels that it lacks are 0.
fn read_floats(context: &Context, texture: &wgpu::Texture) -> Result<Vec<[f32; 4]>, Error> {
    let pixels = |bytes: &[u8], width: usize, value: fn(&[u8]) -> f32| {
        let channels = bytes.len() / width / (texture.width() * texture.height()) as usize;
        bytes
            .chunks_exact(width * channels)
            .map(|pixel| {
                let mut out = [0.0; 4];
                out.iter_mut()
                    .zip(pixel.chunks_exact(width))
                    .for_each(|(o, b)| *o = value(b));
                out
            })
            .collect()
    };
    let full = |b: &[u8]| bytemuck::pod_read_unaligned(b);
    let half = |b: &[u8]| bytemuck::pod_read_unaligned::<half::f16>(b).to_f32();
    match texture.format() {
        wgpu::TextureFormat::Rgba32Float => {
            Ok(pixels(&read_texture(context, texture, 16)?, 4, full))
        }
        wgpu::TextureFormat::Rg32Float => Ok(pixels(&read_texture(context, texture, 8)?, 4, full)),
        wgpu::TextureFormat::Rgba16Float => {
            Ok(pixels(&read_texture(context, texture, 8)?, 2, half))
        }
        other => Err(Error::Device(format!("{other:?} is not read back"))),
    }
}
