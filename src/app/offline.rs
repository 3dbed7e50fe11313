//! Playing a scene without a window, at a fixed step: `render`, `trace`, `bench`.
//!
//! Frame `k` lies at `from + k / fps` in f64, so nothing drifts. Input comes from a log or there is
//! none, budgets of the script are counted by work, and the raster method follows the adapter's type or the flag: the
//! same build, adapter, driver and method give equal pictures every time.

use super::assets::{AssetCache, LoadProgress};
use super::interrupt;
use super::movie::{Kind, Movie, write_png};
use super::replay::{LOOK_HZ, Log, Player};
use super::session::{SceneOptions, Session};
use super::soundtrack::{self, MicChoice, Recording, SoundOptions};
use super::{FilmMode, Usage, progress::Progress};
use crate::camera::Camera;
use crate::film::Film;
use crate::frame::{Cue, Frame, Walker};
use crate::gpu::{Context, Packing, Picture, RasterMethod, Renderer, Settings, ShaderSource};
use anyhow::{Context as _, bail};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Length of a scene that names none, seconds.
pub const DURATION_DEFAULT_S: f64 = 10.0;

/// Time in which eased motions of a scene have forgotten their start: twenty times the longest time
/// constant of the avatars' gaze.
const SETTLE_S: f64 = 4.0;

/// How pictures are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawOptions {
    /// Width and height, px.
    pub size: [u32; 2],
    /// `None` chooses by the adapter's type.
    pub raster: Option<RasterMethod>,
    /// Index of the adapter as `doctor` lists them.
    pub gpu: Option<usize>,
    /// Packed splats, or all floats for comparisons.
    pub packing: Packing,
    /// A folder whose shaders replace the built-in ones of the same name.
    pub shaders: Option<PathBuf>,
    /// Whole renders of each picture of a reference film.
    pub film_samples: usize,
}

/// See [`DrawOptions::film_samples`]; 65 against 129 instants: 68.9 dB.
pub const FILM_SAMPLES_DEFAULT: usize = 65;

impl DrawOptions {
    /// Pictures of this size, everything else as it comes.
    #[must_use]
    pub fn of_size(size: [u32; 2]) -> Self {
        Self {
            size,
            raster: None,
            gpu: None,
            packing: Packing::default(),
            shaders: None,
            film_samples: FILM_SAMPLES_DEFAULT,
        }
    }

    /// Settings for a [`Renderer`].
    ///
    /// # Errors
    /// The shader folder cannot be read.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            raster: self.raster,
            packing: self.packing,
            shaders: match &self.shaders {
                Some(folder) => ShaderSource::from_dir(folder)
                    .with_context(|| format!("{}: cannot read shaders", folder.display()))?,
                None => ShaderSource::default(),
            },
            depth: false,
            ..Settings::default()
        })
    }
}

/// Which instants of a scene.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// One, seconds.
    At(f64),
    /// From a time up to, not including, another; `None` is the scene's end. Seconds.
    Range {
        /// First instant.
        from_s: f64,
        /// First instant that no longer belongs to it.
        to_s: Option<f64>,
    },
    /// Pictures `first..end` counted from time 0.
    Frames {
        /// First number.
        first: u64,
        /// First number that no longer belongs to it.
        end: u64,
    },
}

/// Distance of two pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Pictures a second.
    PerSecond(f64),
    /// Seconds between pictures.
    Every(f64),
}

impl Rate {
    fn instant_s(self, from_s: f64, k: u64) -> f64 {
        match self {
            Self::PerSecond(fps) => from_s + k as f64 / fps,
            Self::Every(step_s) => from_s + k as f64 * step_s,
        }
    }
}

/// Pictures one command may ask for; 28 hours at 100 a second.
const PICTURES_MAX: u64 = 10_000_000;

/// The numbers and instants that `span` means for a scene of `duration_s`.
///
/// # Errors
/// There is none, or more than anybody can want ([`Usage`]).
pub fn instants(span: Span, rate: Rate, duration_s: Option<f64>) -> Result<Vec<(u64, f64)>, Usage> {
    let (from_s, numbers) = match span {
        Span::At(t_s) => return Ok(vec![(0, t_s)]),
        Span::Frames { first, end } => (0.0, first..end),
        Span::Range { from_s, to_s } => {
            let to_s = to_s.unwrap_or(duration_s.unwrap_or(DURATION_DEFAULT_S));
            let guess = match rate {
                Rate::PerSecond(fps) => (to_s - from_s) * fps,
                Rate::Every(step_s) => (to_s - from_s) / step_s,
            };
            // The guess can be one off either way by rounding; the comparison decides.
            let mut count = guess.ceil().clamp(0.0, PICTURES_MAX as f64 + 1.0) as u64;
            while count > 0 && rate.instant_s(from_s, count - 1) >= to_s {
                count -= 1;
            }
            while count <= PICTURES_MAX && rate.instant_s(from_s, count) < to_s {
                count += 1;
            }
            if count == 0 {
                return Err(Usage(format!(
                    "no picture between {from_s} s and {to_s} s: the end is not after the start"
                )));
            }
            (from_s, 0..count)
        }
    };
    if numbers.is_empty() {
        return Err(Usage("no picture in this range of frames".to_owned()));
    }
    if numbers.end - numbers.start > PICTURES_MAX {
        return Err(Usage(format!("more than {PICTURES_MAX} pictures")));
    }
    Ok(numbers.map(|k| (k, rate.instant_s(from_s, k))).collect())
}

/// A scene, and what draws it.
pub struct Studio {
    player: Player,
    context: Context,
    renderer: Renderer,
    size: [u32; 2],
    /// Instants of each picture of a reference film.
    film_samples: usize,
    /// Time that finding, reading and running the scene took.
    loading: Duration,
}

impl Studio {
    /// Opens the scene, then the adapter.
    ///
    /// # Errors
    /// No such scene, a script that fails, no adapter, shaders that do not build.
    pub fn open(scene: &SceneOptions, draw: &DrawOptions) -> anyhow::Result<Self> {
        let start = Instant::now();
        // Before the adapter is woken: a mistake in a script should cost no second.
        let player = load(scene, draw.size, &offline_cache())?;
        let loading = start.elapsed();
        let context = Context::headless(draw.gpu)?;
        let renderer = Renderer::new(&context, &draw.settings()?)?;
        Ok(Self {
            player,
            context,
            renderer,
            size: draw.size,
            film_samples: draw.film_samples,
            loading,
        })
    }

    /// The picture at `t_s`, and the frame that it shows.
    ///
    /// # Errors
    /// The script or the adapter fails.
    pub fn picture(&mut self, t_s: f64) -> anyhow::Result<Shot> {
        let frame = self.player.frame(t_s)?;
        let mode = self.player.session().options().film;
        let (picture, stats) = if mode == FilmMode::Reference {
            let last = self.film_samples.max(2) - 1;
            let exposed = (0..=last).map(|k| {
                let f = 2.0 * k as f64 / last as f64 - 1.0;
                self.player.exposed(&frame, f)
            });
            let exposed: Vec<Frame> = exposed.collect::<Result<_, _>>()?;
            self.renderer
                .reference_film(&self.context, &frame, self.size, &exposed)?
        } else {
            self.renderer.picture(&self.context, &frame, self.size)?
        };
        Ok(Shot {
            keep_alpha: frame.background[3] < 1.0,
            picture,
            gpu_ms: stats.gpu_ms,
            sorted: stats.sorted,
        })
    }

    /// Loads the scene anew as a sequence that closes after `loop_s`, and returns the time to begin
    /// at.
    ///
    /// # Errors
    /// As [`Studio::open`].
    fn close_after(&mut self, loop_s: f64) -> anyhow::Result<f64> {
        let options = SceneOptions {
            loop_s: Some(loop_s),
            ..self.player.session().options().clone()
        };
        self.player = load(&options, self.size, self.player.session().cache())?;
        Ok(preroll_s(self.player.session(), loop_s))
    }

    fn about(&self) -> Map<String, Value> {
        let info = &self.context.info;
        let mut about = Map::new();
        about.insert("adapter".into(), json!(adapter_name(info)));
        about.insert("raster".into(), json!(raster_name(self.renderer.raster())));
        about.insert("size".into(), json!(self.size));
        about
    }
}

/// Pictures that a script's time is measured over: two seconds.
const SCRIPT_LOOKS: u32 = 120;

/// Whole loops that a stepped scene runs before its first picture, so that what glides has settled.
fn preroll_s(session: &Session, loop_s: f64) -> f64 {
    if session.is_stepped() {
        (SETTLE_S / loop_s).ceil() * loop_s
    } else {
        0.0
    }
}

/// A scene that has loaded, with its input log.
fn load(scene: &SceneOptions, size: [u32; 2], cache: &Arc<AssetCache>) -> anyhow::Result<Player> {
    let log = match &scene.input {
        Some(path) => Log::read(path)?,
        None => Log::default(),
    };
    let session = Session::open(scene.clone(), Arc::clone(cache), false)?;
    let mut player = Player::new(session, log, size);
    player.load()?;
    let wrong = player.session().wrong_params();
    if !wrong.is_empty() {
        bail!(Usage(wrong.join("\n")));
    }
    Ok(player)
}

/// One drawn picture.
#[derive(Clone, Debug)]
pub struct Shot {
    /// Final pixels.
    pub picture: Picture,
    /// The background lets something through.
    pub keep_alpha: bool,
    /// Time of the stages, where the adapter can tell.
    pub gpu_ms: Option<f64>,
    /// Splats that survived culling.
    pub sorted: u64,
}

/// Hash of a picture: SHA-256 over width and height (32-bit little endian) and the RGBA bytes, in
/// hexadecimal.
#[must_use]
pub fn picture_hash(picture: &Picture) -> String {
    let mut state = Sha256::new();
    for side in picture.size {
        state.update(side.to_le_bytes());
    }
    state.update(&picture.rgba);
    state
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Draws the pictures of `span` into `output` (nothing is written where it is `None`) and reports
/// them: `adapter, raster, size, fps, output, frames[{t, hash, gpu_ms, sorted}]`, and `sound` (see
/// [`Recording::write`]) where a WAV file is written: of that name alone, or beside a video of a scene
/// that makes any sound.
///
/// # Errors
/// What [`Studio`], [`Movie`] and [`Recording`] say, an interrupt, [`Usage`] for a still picture of
/// many instants and for sound of what has none.
pub fn render(
    scene: &SceneOptions,
    draw: &DrawOptions,
    span: Span,
    fps: f64,
    output: Option<&Path>,
    sound: &SoundOptions,
) -> anyhow::Result<Value> {
    // Before anything is loaded: a wrong ending should not cost a minute of work.
    let kind = match output {
        Some(path) => Some(Kind::of(path).map_err(Usage)?),
        None => None,
    };
    let is_sound_asked = sound.stem.is_some() || sound.mic != MicChoice::Scene;
    if is_sound_asked && !kind.is_some_and(Kind::has_sound) {
        bail!(Usage(
            "--stem and --mic are for sound: give a name that ends in .wav, .y4m, .mp4, .mkv or \
             .webm"
                .to_owned()
        ));
    }
    if let (Some(path), Some(Kind::Wav)) = (output, kind) {
        return render_sound(scene, draw, span, fps, path, sound);
    }
    let mut studio = Studio::open(scene, draw)?;
    let rate = Rate::PerSecond(fps);
    let instants = instants(span, rate, studio.player.session().duration_s())?;
    let is_loop = kind.is_some_and(Kind::is_loop) && instants.len() > 1;
    let preroll_s = if is_loop && scene.loop_s.is_none() {
        studio.close_after(instants.len() as f64 / fps)?
    } else {
        (scene.loop_s).map_or(0.0, |loop_s| {
            self::preroll_s(studio.player.session(), loop_s)
        })
    };
    if let (Some(path), true) = (
        output,
        instants.len() > 1 && kind.is_some_and(Kind::is_still),
    ) {
        bail!(Usage(format!(
            "{} is one picture and {} are asked for: use --at, or a name such as frame-%05d.png",
            path.display(),
            instants.len()
        )));
    }
    let mut heard = None;
    // A scene that can make no sound may be of any length.
    let is_off = sound.is_off || studio.player.session().sound().is_silent();
    if let (Some(path), Some(true), false) = (output, kind.map(Kind::has_sound), is_off) {
        // First, since what muxes it wants it whole; the scene plays twice, drawn once.
        let cache = studio.player.session().cache();
        let listened = SceneOptions {
            heard_only: true,
            ..studio.player.session().options().clone()
        };
        let mut player = load(&listened, draw.size, cache)?;
        let from_s = instants[0].1 + preroll_s;
        let range = soundtrack::range_of(from_s, instants.len(), fps)?;
        let recording = Recording::of(&mut player, range, sound)?;
        if !recording.is_silent() {
            let beside = path.with_extension("wav");
            heard = Some((recording.write(&beside)?, beside));
        }
    }
    let mut movie = match output {
        Some(path) => {
            let beside = heard.as_ref().map(|(_, beside)| beside.as_path());
            Some(Movie::create_with_sound(path, draw.size, fps, beside)?)
        }
        None => None,
    };
    let mut frames = Vec::with_capacity(instants.len());
    let bar = Progress::new("rendering");
    for (done, &(number, t_s)) in instants.iter().enumerate() {
        interrupt::check()?;
        let shot = studio.picture(t_s + preroll_s)?;
        if let Some(movie) = &mut movie {
            movie.add(&shot.picture, number, shot.keep_alpha)?;
        }
        frames.push(json!({
            "t": t_s,
            "hash": picture_hash(&shot.picture),
            "gpu_ms": shot.gpu_ms,
            "sorted": shot.sorted,
        }));
        bar.set((done + 1) as f32 / instants.len() as f32);
    }
    if let Some(movie) = movie {
        movie.finish()?;
    }
    let mut report = studio.about();
    report.insert("fps".into(), json!(fps));
    report.insert("output".into(), json!(output));
    if let Some((sound, _)) = heard {
        report.insert("sound".into(), sound);
    }
    report.insert("frames".into(), Value::Array(frames));
    Ok(Value::Object(report))
}

/// Writes the sound that belongs to the pictures of `span`, without drawing any.
fn render_sound(
    scene: &SceneOptions,
    draw: &DrawOptions,
    span: Span,
    fps: f64,
    path: &Path,
    sound: &SoundOptions,
) -> anyhow::Result<Value> {
    let scene = &SceneOptions {
        heard_only: true,
        ..scene.clone()
    };
    let mut player = load(scene, draw.size, &offline_cache())?;
    let instants = instants(span, Rate::PerSecond(fps), player.session().duration_s())?;
    let preroll_s = (scene.loop_s).map_or(0.0, |loop_s| preroll_s(player.session(), loop_s));
    let range = soundtrack::range_of(instants[0].1 + preroll_s, instants.len(), fps)?;
    let recording = Recording::of(&mut player, range, sound)?;
    if recording.is_silent() {
        tracing::warn!("{} makes no sound: the file is silent", scene.scene);
    }
    Ok(json!({
        "fps": fps,
        "output": path,
        "sound": recording.write(path)?,
    }))
}

/// Length of what is shown where there is no display, seconds.
pub const SAMPLE_S: f64 = 3.0;

/// Draws the first [`SAMPLE_S`] seconds of a scene into `folder`: a GIF loop, and its middle picture
/// as PNG. Returns the files.
///
/// # Errors
/// What [`render`] says.
pub fn render_sample(
    scene: &SceneOptions,
    draw: &DrawOptions,
    folder: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    // GIF counts in hundredths of a second, so 25 a second come out even.
    const FPS: f64 = 25.0;
    let stem = Path::new(scene.scene.trim_start_matches('@'))
        .file_stem()
        .map_or_else(|| "scene".into(), std::ffi::OsStr::to_os_string);
    let path = |extension| folder.join(&stem).with_extension(extension);
    let (still, animation) = (path("png"), path("gif"));
    let mut studio = Studio::open(scene, draw)?;
    let span = Span::Range {
        from_s: 0.0,
        to_s: Some(SAMPLE_S),
    };
    let instants = instants(span, Rate::PerSecond(FPS), None)?;
    let preroll_s = studio.close_after(SAMPLE_S)?;
    let mut movie = Movie::create(&animation, draw.size, FPS)?;
    let bar = Progress::new("rendering");
    for &(number, t_s) in &instants {
        interrupt::check()?;
        let shot = studio.picture(t_s + preroll_s)?;
        if number as usize == instants.len() / 2 {
            write_png(&still, &shot.picture, shot.keep_alpha)?;
        }
        movie.add(&shot.picture, number, shot.keep_alpha)?;
        bar.set((number + 1) as f32 / instants.len() as f32);
    }
    movie.finish()?;
    Ok(vec![still, animation])
}

/// Draws a plain splat file, framed by the viewer, into a PNG.
///
/// # Errors
/// What [`Studio`] says; the file cannot be written.
pub fn thumbnail(scene: &SceneOptions, draw: &DrawOptions, output: &Path) -> anyhow::Result<()> {
    let shot = Studio::open(scene, draw)?.picture(0.0)?;
    write_png(output, &shot.picture, shot.keep_alpha)
}

/// Runs the scene without drawing and hands `line` one JSON object for each instant: `t`,
/// `camera.{position, yaw_deg, pitch_deg, roll_deg, fov_deg}`, `state`, `cues[{t, kind, ...}]` (what
/// happens from this instant up to the next one); where somebody carries the camera
/// `walker.{speed_m_s, phase, floor_m, clearance_m, head_yaw_deg, head_pitch_deg}`, and where it is
/// filmed `film.{exposure_s, readout_s, stops, balance, focus_m, aperture_m}`.
///
/// # Errors
/// No such scene, a script that fails, whatever `line` says.
pub fn trace(
    scene: &SceneOptions,
    draw: &DrawOptions,
    span: Span,
    rate: Rate,
    mut line: impl FnMut(&Value) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut player = load(scene, draw.size, &offline_cache())?;
    let instants = instants(span, rate, player.session().duration_s())?;
    for (i, &(_, t_s)) in instants.iter().enumerate() {
        interrupt::check()?;
        let frame = player.frame(t_s)?;
        // One line's end is the next one's start, to the bit: no cue is lost or told twice.
        let next_s = instants
            .get(i + 1)
            .map_or_else(|| rate.instant_s(t_s, 1), |&(_, next_s)| next_s);
        let cues = player.cues(t_s, next_s)?;
        line(&frame_json(t_s, &frame, &cues))?;
    }
    Ok(())
}

/// One line of [`trace`].
pub(super) fn frame_json(t_s: f64, frame: &Frame, cues: &[Cue]) -> Value {
    let mut json = json!({
        "t": t_s,
        "camera": camera_json(&frame.camera),
        "state": frame.state,
        "cues": cues.iter().map(cue_json).collect::<Vec<_>>(),
    });
    if let Some(walker) = &frame.walker {
        json["walker"] = walker_json(walker);
    }
    if let Some(film) = &frame.film {
        json["film"] = film_json(film);
    }
    json
}

/// A cue as [`trace`] prints it.
pub(super) fn cue_json(cue: &Cue) -> Value {
    let mut json = Map::new();
    json.insert("t".into(), json!(cue.t_s));
    json.insert("kind".into(), json!(cue.kind));
    json.extend(cue.fields.clone());
    Value::Object(json)
}

fn walker_json(walker: &Walker) -> Value {
    json!({
        "speed_m_s": walker.speed_m_s,
        "phase": walker.phase,
        "floor_m": walker.floor_m,
        "clearance_m": walker.clearance_m,
        "head_yaw_deg": walker.head_yaw_rad.to_degrees(),
        "head_pitch_deg": walker.head_pitch_rad.to_degrees(),
    })
}

fn film_json(film: &Film) -> Value {
    json!({
        "exposure_s": film.exposure_s,
        "readout_s": film.readout_s,
        "stops": film.gain.log2(),
        "balance": film.balance,
        "focus_m": film.focus_m,
        "aperture_m": film.aperture_m,
    })
}

fn camera_json(camera: &Camera) -> Value {
    let [yaw, pitch, roll] = camera.angles_rad().map(|a| f64::from(a).to_degrees());
    json!({
        "position": camera.position.to_array(),
        "yaw_deg": yaw,
        "pitch_deg": pitch,
        "roll_deg": roll,
        "fov_deg": f64::from(camera.fov_y_rad).to_degrees(),
    })
}

/// Pictures drawn before any is counted: shader compilation, first allocations, clocks of the GPU.
const WARM_UP: usize = 5;

/// Draws the picture at `t_s` again and again and reports medians over `count` of them:
/// `adapter, raster, count, visible, size, stages{name: ms}, gpu_ms, total_ms, cpu_ms,
/// bytes_per_splat, frames`.
///
/// Where the frame has targets, each picture is asked what lies under its middle, as in a window.
/// `stages` and their sum `gpu_ms` come from timestamp queries (empty and null where the adapter
/// has none). `cpu_ms` is the script and the recording of commands; `total_ms` is by the clock
/// from the start of the script's work until the adapter has finished, without reading back.
///
/// # Errors
/// What [`Studio`] says, an interrupt.
pub fn bench(
    scene: &SceneOptions,
    draw: &DrawOptions,
    t_s: f64,
    count: usize,
) -> anyhow::Result<Value> {
    let mut studio = Studio::open(scene, draw)?;
    let start = Instant::now();
    let frame = studio.player.frame(t_s)?;
    studio.renderer.upload(&studio.context, &frame)?;
    if frame.has_targets() {
        // As in a window with the pointer on it.
        studio
            .renderer
            .set_pick(Some(draw.size.map(|side| side / 2)));
    }
    let load_ms = (studio.loading + start.elapsed()).as_secs_f64() * 1e3;
    let target = offscreen(&studio.context, draw.size);
    let bar = Progress::new("measuring");
    let mut stages: Vec<(&'static str, Vec<f64>)> = Vec::new();
    let (mut gpu, mut total, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    // One more than counted, since a picture's GPU times come with the next one.
    for round in 0..=WARM_UP + count {
        interrupt::check()?;
        let start = Instant::now();
        let frame = studio.player.frame(t_s)?;
        let stats = studio
            .renderer
            .draw(&studio.context, &frame, draw.size, &target, OFFSCREEN)?;
        studio.renderer.take_touches(&studio.context)?;
        let recorded = start.elapsed();
        studio
            .context
            .device
            .poll(wgpu::PollType::wait_indefinitely())?;
        let finished = start.elapsed();
        if round > WARM_UP {
            total.push(finished.as_secs_f64() * 1e3);
            cpu.push(recorded.as_secs_f64() * 1e3);
            gpu.extend(stats.gpu_ms);
            for &(name, ms) in &stats.stages {
                match stages.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, values)) => values.push(ms),
                    None => stages.push((name, vec![ms])),
                }
            }
        }
        last = Some((frame, stats));
        bar.set(round as f32 / (WARM_UP + count) as f32);
    }
    // What the script takes as time goes on, as in a window: steps, and all cameras of a shutter.
    let mut script = Vec::new();
    for look in 1..=SCRIPT_LOOKS {
        interrupt::check()?;
        let start = Instant::now();
        studio
            .player
            .frame(t_s + f64::from(look) / f64::from(LOOK_HZ))?;
        script.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let (frame, stats) = last.context("nothing was drawn")?;
    let mut report = studio.about();
    report.insert("count".into(), json!(stats.count));
    report.insert("visible".into(), json!(stats.sorted));
    let medians: Map<String, Value> = stages
        .into_iter()
        .map(|(name, values)| (name.to_owned(), json!(median(values))))
        .collect();
    report.insert("stages".into(), Value::Object(medians));
    report.insert("gpu_ms".into(), json!(median(gpu)));
    report.insert("total_ms".into(), json!(median(total)));
    report.insert("cpu_ms".into(), json!(median(cpu)));
    report.insert("script_ms".into(), json!(median(script)));
    report.insert(
        "bytes_per_splat".into(),
        json!(studio.renderer.bytes_per_splat(sh_degree(&frame))),
    );
    report.insert("frames".into(), json!(count));
    // From disk to GPU memory, without starting the adapter.
    report.insert("load_ms".into(), json!(load_ms));
    Ok(Value::Object(report))
}

fn sh_degree(frame: &Frame) -> u8 {
    let degrees = frame.draws.iter().map(|draw| draw.splats.sh_degree);
    degrees.max().unwrap_or(0)
}

/// Middle value, or the mean of the middle two; `None` of nothing.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    Some(match values.len() % 2 {
        0 => 0.5 * (values[middle - 1] + upper),
        _ => *upper,
    })
}

const OFFSCREEN: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// A texture that stands for the window's.
fn offscreen(context: &Context, [width, height]: [u32; 2]) -> wgpu::TextureView {
    let texture = context.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("offscreen"),
        size: wgpu::Extent3d {
            width,
            height,
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: OFFSCREEN,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT
            | wgpu::TextureUsages::STORAGE_BINDING
            | wgpu::TextureUsages::COPY_SRC,
        view_formats: &[],
    });
    texture.create_view(&wgpu::TextureViewDescriptor::default())
}

/// `NVIDIA H200 (Vulkan)`.
#[must_use]
pub fn adapter_name(info: &wgpu::AdapterInfo) -> String {
    format!("{} ({:?})", info.name, info.backend)
}

/// The word of the command line for a raster method.
#[must_use]
pub fn raster_name(method: RasterMethod) -> &'static str {
    match method {
        RasterMethod::Quads => "quads",
        RasterMethod::Tiles => "tiles",
    }
}

/// A cache that shows a bar for loads that take more than a second.
#[must_use]
pub fn offline_cache() -> std::sync::Arc<AssetCache> {
    AssetCache::new(load_progress())
}

/// A bar for each load that takes more than a second.
fn load_progress() -> LoadProgress {
    let bar = Progress::new("loading");
    std::sync::Arc::new(move |_, share| bar.set(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(from_s: f64, to_s: f64, rate: Rate) -> Vec<f64> {
        let span = Span::Range {
            from_s,
            to_s: Some(to_s),
        };
        let all = instants(span, rate, None).expect("some");
        all.into_iter().map(|(_, t_s)| t_s).collect()
    }

    #[test]
    fn ranges_are_half_open_and_do_not_drift() {
        assert_eq!(
            times(0.0, 1.0, Rate::PerSecond(4.0)),
            [0.0, 0.25, 0.5, 0.75]
        );
        let hour = times(0.0, 3600.0, Rate::PerSecond(30.0));
        assert_eq!(hour.len(), 108_000);
        assert_eq!(hour[107_999], 107_999.0 / 30.0);
        // 0.1 * 3 lies above 0.3 by rounding: the comparison decides, not the division.
        assert_eq!(times(0.0, 0.3, Rate::Every(0.1)).len(), 3);
        assert_eq!(times(0.7, 1.0, Rate::PerSecond(10.0)).len(), 3);
    }

    #[test]
    fn frame_numbers_count_from_time_zero() {
        let span = Span::Frames { first: 3, end: 5 };
        let found = instants(span, Rate::PerSecond(2.0), None).expect("two");
        assert_eq!(found, [(3, 1.5), (4, 2.0)]);
    }

    #[test]
    fn the_default_end_is_the_scenes_or_ten_seconds() {
        let span = Span::Range {
            from_s: 0.0,
            to_s: None,
        };
        let count = |duration_s| instants(span, Rate::PerSecond(1.0), duration_s).map(|v| v.len());
        assert_eq!(count(Some(3.0)).ok(), Some(3));
        assert_eq!(count(None).ok(), Some(10));
        assert!(count(Some(0.0)).is_err());
    }

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
