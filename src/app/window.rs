//! The window: winit's loop, what its events do, and when a picture is drawn.
//!
//! Nothing here waits: scans load on other threads, saved files arrive as events, and the loop
//! sleeps until the next picture is due. What plays is decided in [`Live`], how it is drawn in
//! [`Screen`], what is written over it in [`Overlay`].

use super::assets::AssetCache;
use super::input::{Devices, key_name};
use super::live::{Live, RELOAD, looks_the_same};
use super::midi::{Heard, Midi};
use super::offline::DrawOptions;
use super::osc::Osc;
use super::overlay::{Action, Content, Fault, Overlay};
use super::pads::Pads;
use super::recent::Recent;
use super::record::Recorder;
use super::repl::{self, Answer};
use super::screen::{Outcome, Screen};
use super::senses::{Met, met};
use super::session::{CameraOptions, SceneOptions};
use super::soundtrack::MicChoice;
use super::stage_sound::StageSound;
use super::watch::{Change, Watch, WatchSet};
use super::workbench::{Tools, Wish};
use super::{shot, viewpoint};
use crate::audio::SystemDevice;
use crate::frame::Frame;
use crate::gpu::{self, Settings, ShaderSource, Stats};
use anyhow::Context as _;
use glam::{Quat, Vec3};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{ElementState, KeyEvent, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop, EventLoopProxy};
use winit::keyboard::{Key, ModifiersState, NamedKey};
use winit::window::{Fullscreen, Window, WindowId};

/// One step of `,` and `.`: a picture of a film, seconds.
const PICTURE_S: f64 = 1.0 / 30.0;

/// Splats that a click may be looked for in without being felt.
const CLICK_SPLATS_MAX: usize = 200_000;

/// Refresh rate of a monitor that does not say, Hz.
const REFRESH_DEFAULT_HZ: f64 = 60.0;

/// What `play` is asked for.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// What is played.
    pub scene: SceneOptions,
    /// How it is drawn; `size` is the window's first size, px.
    pub draw: DrawOptions,
    /// Start on the whole screen.
    pub fullscreen: bool,
    /// Index of the monitor as `doctor` lists them.
    pub monitor: Option<usize>,
    /// Reload what is saved while it plays.
    pub watch: bool,
    /// At most this many pictures a second; `None` follows the monitor.
    pub fps_cap: Option<f64>,
    /// UDP port on which OSC is listened for; `None` listens to nobody.
    pub osc: Option<u16>,
    /// Start without sound.
    pub is_muted: bool,
    /// The input log that is written while it plays.
    pub record: Option<PathBuf>,
    /// What sound is heard through.
    pub mic: MicChoice,
    /// Evaluate lines of the terminal against the scene.
    pub repl: bool,
}

/// There is no display to open a window on; a caller may render to files instead.
#[derive(Debug, thiserror::Error)]
#[error("no display to open a window on: {0}")]
pub struct NoDisplay(String);

/// Plays a scene in a window until it is closed.
///
/// # Errors
/// [`NoDisplay`]; a scene that cannot be found; no graphics adapter; a device that stays lost.
pub fn play(options: PlayOptions) -> anyhow::Result<()> {
    let started = Instant::now();
    let event_loop = EventLoop::<Wake>::with_user_event()
        .build()
        .map_err(|error| NoDisplay(super::display_error(&error)))?;
    let proxy = event_loop.create_proxy();
    let handler = ctrlc::set_handler(move || {
        let _ = proxy.send_event(Wake::Quit);
    });
    if let Err(error) = handler {
        tracing::debug!("no handler for Ctrl-C: {error}");
    }
    if options.repl {
        let proxy = event_loop.create_proxy();
        repl::start(move |line, answer_to| proxy.send_event(Wake::Line(line, answer_to)).is_ok())?;
    }
    let mut app = App::new(options, event_loop.create_proxy(), started)?;
    event_loop.run_app(&mut app).context("the window's loop")?;
    app.fatal.map_or(Ok(()), Err)
}

/// What other threads tell the loop.
enum Wake {
    Changed(Vec<Change>),
    AssetsEnded,
    Progress,
    Saved(Result<PathBuf, String>),
    /// A line of the terminal, and who waits for what it comes to.
    Line(String, SyncSender<Answer>),
    Quit,
}

/// How far each load is, shared with the threads that load.
type Loads = Arc<Mutex<BTreeMap<String, f32>>>;

struct App {
    options: PlayOptions,
    /// For the renderer that the window will get.
    settings: Settings,
    proxy: EventLoopProxy<Wake>,
    live: Live,
    sound: StageSound,
    loads: Loads,
    devices: Devices,
    pads: Pads,
    osc: Option<Osc>,
    midi: Midi,
    recorder: Option<Recorder>,
    watch: Option<Watch>,
    recent: Recent,
    view: Option<View>,
    modifiers: ModifiersState,
    /// The earliest instant of the next picture.
    due_at: Instant,
    /// A redraw was asked for and has not come.
    is_redraw_asked: bool,
    is_occluded: bool,
    /// The picture has to be drawn although the frame is the same.
    must_draw: bool,
    /// What was drawn last.
    drawn: Option<Frame>,
    stats: Stats,
    /// The renderer's last complaint, which is not repeated every frame.
    draw_error: Option<String>,
    /// What is wrong with the newest shaders.
    shader_fault: Option<Fault>,
    fatal: Option<anyhow::Error>,
}

/// All that exists once there is a window.
struct View {
    window: Arc<Window>,
    screen: Screen,
    overlay: Overlay,
    adapter: String,
    refresh: Duration,
}

impl App {
    fn new(
        options: PlayOptions,
        proxy: EventLoopProxy<Wake>,
        started: Instant,
    ) -> anyhow::Result<Self> {
        let loads = Loads::default();
        let cache = AssetCache::new_behind(
            {
                let (loads, proxy) = (Arc::clone(&loads), proxy.clone());
                Arc::new(move |name: &str, share: f32| {
                    let mut loads = loads.lock().unwrap_or_else(PoisonError::into_inner);
                    let known = loads.entry(name.to_owned()).or_insert(-1.0);
                    // A whole percent is all that can be seen.
                    if (share - *known).abs() >= 0.01 {
                        *known = share;
                        let _ = proxy.send_event(Wake::Progress);
                    }
                })
            },
            {
                let proxy = proxy.clone();
                Arc::new(move || {
                    let _ = proxy.send_event(Wake::AssetsEnded);
                })
            },
        );
        let watch = if options.watch {
            let proxy = proxy.clone();
            // An event that comes after the loop has ended has nobody to tell.
            let report = move |changes| {
                let _ = proxy.send_event(Wake::Changed(changes));
            };
            Some(Watch::new(report).context("cannot start the thread that watches files")?)
        } else {
            None
        };
        let mut recent = Recent::of_user();
        let mut live = Live::new(cache, started);
        let mut devices = Devices::default();
        let recorder = options.record.as_deref().map(Recorder::create);
        let recorder = recorder.transpose()?;
        if recorder.is_some() {
            devices.record();
        }
        devices.resize(options.draw.size);
        live.open(options.scene.clone(), devices.input(), Instant::now())?;
        recent.add(&options.scene.scene);
        let settings = options.draw.settings()?;
        let osc = options.osc.map(Osc::listen).transpose()?;
        let sound = StageSound::new(
            Box::new(|| Box::new(SystemDevice)),
            options.mic.clone(),
            options.scene.seed,
            options.is_muted,
        );
        let app = Self {
            options,
            settings,
            proxy,
            live,
            sound,
            loads,
            devices,
            pads: Pads::new(),
            osc,
            midi: Midi::of_user(),
            recorder,
            watch,
            recent,
            view: None,
            modifiers: ModifiersState::empty(),
            due_at: started,
            is_redraw_asked: false,
            is_occluded: false,
            must_draw: true,
            drawn: None,
            stats: Stats::default(),
            draw_error: None,
            shader_fault: None,
            fatal: None,
        };
        app.watch_again();
        Ok(app)
    }

    fn watch_again(&self) {
        let Some(watch) = &self.watch else {
            return;
        };
        let mut set: WatchSet = self.live.watch_set();
        if let Some(folder) = &self.options.draw.shaders {
            set.trees.push((folder.clone(), "wgsl"));
        }
        watch.set(set);
    }

    fn open_window(&mut self, event_loop: &ActiveEventLoop) -> anyhow::Result<View> {
        let [width, height] = self.options.draw.size;
        let mut attributes = Window::default_attributes()
            .with_title(self.title())
            .with_inner_size(PhysicalSize::new(width, height));
        if self.options.fullscreen {
            attributes = attributes.with_fullscreen(Some(self.fullscreen(event_loop)?));
        }
        let window = Arc::new(
            event_loop
                .create_window(attributes)
                .map_err(|error| NoDisplay(error.to_string()))?,
        );
        let screen = Screen::new(
            Arc::clone(&window),
            self.options.draw.gpu,
            self.settings.clone(),
        )?;
        let info = &screen.context().info;
        let adapter = format!("{} ({:?})", info.name, info.backend);
        tracing::info!("drawing with {adapter}, {:?}", screen.renderer().raster());
        let refresh_hz = window
            .current_monitor()
            .and_then(|monitor| monitor.refresh_rate_millihertz())
            .map_or(REFRESH_DEFAULT_HZ, |mhz| f64::from(mhz) / 1e3);
        self.devices.resize(screen.size_px());
        Ok(View {
            overlay: Overlay::new(&window),
            window,
            screen,
            adapter,
            refresh: Duration::from_secs_f64(1.0 / refresh_hz.max(1.0)),
        })
    }

    fn fullscreen(&self, event_loop: &ActiveEventLoop) -> anyhow::Result<Fullscreen> {
        let Some(index) = self.options.monitor else {
            return Ok(Fullscreen::Borderless(None));
        };
        let monitors: Vec<_> = event_loop.available_monitors().collect();
        let count = monitors.len();
        let monitor = monitors.into_iter().nth(index).with_context(|| {
            format!("no monitor {index}: there are {count}, counted from 0 (see doctor)")
        })?;
        Ok(Fullscreen::Borderless(Some(monitor)))
    }

    fn title(&self) -> String {
        let scene = &self.options.scene.scene;
        let name = Path::new(scene)
            .file_name()
            .map_or_else(|| scene.clone(), |n| n.to_string_lossy().into_owned());
        format!("{name} - splatstage")
    }

    /// Puts another scene on stage, as the command line would without further flags.
    fn switch_to(&mut self, scene: String) {
        let options = SceneOptions {
            scene: scene.clone(),
            camera: CameraOptions::default(),
            axes: None,
            level: None,
            ..self.options.scene.clone()
        };
        let opened = self
            .live
            .open(options.clone(), self.devices.input(), Instant::now());
        match opened {
            Ok(()) => {
                self.recent.add(&scene);
                self.options.scene = options;
                if let Some(view) = &self.view {
                    view.window.set_title(&self.title());
                }
            }
            Err(error) => self.live.complain(&format!("{error:#}")),
        }
        self.after_load();
    }

    /// Whatever was loaded or failed to: watch what it touched, and show it without delay.
    fn after_load(&mut self) {
        self.watch_again();
        if let Some(view) = &mut self.view {
            view.overlay.changed();
        }
        if self.live.is_fresh() {
            if let Some(view) = &mut self.view {
                view.screen.forget_hits();
            }
            self.draw();
            if let Some(view) = &mut self.view {
                view.screen.release_unused();
            }
        }
    }

    fn reload_shaders(&mut self, folder: &Path) {
        let shown = format!("{}", folder.display());
        let Some(view) = &mut self.view else {
            return;
        };
        let outcome = ShaderSource::from_dir(folder)
            .map_err(|error| format!("{shown}: {error}"))
            .and_then(|shaders| {
                view.screen
                    .set_shaders(shaders)
                    .map_err(|error| error.to_string())
            });
        match outcome {
            Ok(()) => {
                self.shader_fault = None;
                tracing::info!(target: RELOAD, "shaders loaded from {shown}");
                view.overlay.note("shaders loaded");
            }
            Err(text) => {
                // The first line has file, line and message; the rest draws the place.
                let (text, detail) = text.split_once('\n').unwrap_or((&text, ""));
                tracing::error!(target: RELOAD, "{text}");
                self.shader_fault = Some(Fault {
                    text: text.to_owned(),
                    traceback: detail.trim().to_owned(),
                    running: "drawing with the last good shaders".to_owned(),
                });
            }
        }
        view.overlay.changed();
        self.must_draw = true;
        self.draw();
    }

    fn on_changes(&mut self, changes: &[Change]) {
        let now = Instant::now();
        // A scene has shaders too: its effects are the scene's own files.
        let folder = self.options.draw.shaders.as_ref();
        let is_shader = |change: &Change| {
            let is_wgsl = change.path.extension().is_some_and(|e| e == "wgsl");
            is_wgsl && folder.is_some_and(|folder| change.path.starts_with(folder))
        };
        let (shaders, files): (Vec<Change>, Vec<Change>) =
            (changes.iter().cloned()).partition(is_shader);
        if !files.is_empty() {
            self.live.on_changes(&files, self.devices.input(), now);
            self.after_load();
        }
        if let (false, Some(folder)) = (shaders.is_empty(), self.options.draw.shaders.clone()) {
            self.reload_shaders(&folder);
        }
    }

    /// Asks the scene for the picture of this instant, and draws it if it is another one.
    fn tick(&mut self) {
        let now = Instant::now();
        let wait = match (&self.view, self.options.fps_cap) {
            (_, Some(cap)) => Duration::from_secs_f64(1.0 / cap.max(0.1)),
            // Presenting paces the loop; where it does not, this does. A little short of the
            // monitor's period, so that the two do not beat.
            (Some(view), None) => view.refresh.mul_f64(0.9),
            (None, None) => return,
        };
        self.due_at = now + wait;
        self.pads.poll(&mut self.devices);
        if let Some(osc) = &mut self.osc {
            osc.poll(&mut self.devices);
        }
        self.poll_midi(now);
        let seen = self.seen_by_click().or_else(|| self.seen());
        self.step(seen, now);
        self.sound.follow(&mut self.live);
        let Some(view) = &self.view else {
            return;
        };
        let asks_elsewhere = self.live.frame().has_targets()
            && self.devices.pointer_pixel() != view.screen.asked_at();
        self.must_draw |= asks_elsewhere;
        let is_same = (self.drawn.as_ref()).is_some_and(|d| looks_the_same(d, self.live.frame()));
        let overlay_due = view.overlay.redraw_at().is_some_and(|at| at <= now);
        if self.must_draw || !is_same || overlay_due || view.overlay.shows_figures() {
            self.draw();
        }
    }

    /// Lets the scene go on to `now`, and writes down what came in where that is asked for.
    fn step(&mut self, seen: Option<Option<Met>>, now: Instant) {
        let mut written = Ok(());
        if let Some(recorder) = &mut self.recorder {
            let arrivals = self.devices.take_tape();
            let now_s = self.live.now_s(now);
            written = recorder.arrived(arrivals, seen, now_s, self.live.hears());
        }
        let has_picture = self.live.step(&mut self.devices, seen, now);
        let left_out = self.live.take_left_out();
        let loaded_s = self.live.take_loaded_s();
        if loaded_s.is_some() {
            self.after_load();
        }
        if let Some(recorder) = &mut self.recorder {
            let t_s = has_picture.then(|| self.live.frame().t_s);
            let version = self.live.version_number();
            written = written.and_then(|()| recorder.stepped(t_s, &left_out, loaded_s, version));
        }
        if let Err(error) = written {
            self.recorder = None;
            self.live.complain(&format!("{error:#}"));
        }
    }

    /// The target of a click on a pixel for which no picture has answered yet: a tap may be over
    /// before one does. The CPU looks, as it does offline, unless there is too much to look through.
    fn seen_by_click(&mut self) -> Option<Option<Met>> {
        let pixel = self.devices.clicked_pixel()?;
        let screen = &self.view.as_ref()?.screen;
        let frame = self.live.frame();
        let splats: usize = frame.draws.iter().map(|draw| draw.splats.len()).sum();
        if screen.answered_at() == Some(pixel) || !frame.has_targets() || splats > CLICK_SPLATS_MAX
        {
            return None;
        }
        let hit = crate::reference::pick(frame, screen.size_px(), pixel);
        Some(met(hit))
    }

    /// The target under the pointer, where that is known anew.
    fn seen(&mut self) -> Option<Option<Met>> {
        let hit = self.view.as_mut()?.screen.take_hit();
        if self.devices.pointer_pixel().is_none() || !self.live.frame().has_targets() {
            // Nothing is asked, so nobody answers.
            return Some(None);
        }
        hit.map(met)
    }

    /// Draws the last good frame with the overlay over it.
    fn draw(&mut self) {
        let Some(view) = &mut self.view else {
            return;
        };
        if self.is_occluded && !self.live.is_fresh() {
            return;
        }
        let loads: Vec<(String, f32)> = {
            let loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            loads.iter().map(|(n, s)| (n.clone(), *s)).collect()
        };
        let tools = if view.overlay.bench.is_open() {
            tools(&mut self.live, &self.midi)
        } else {
            Tools::default()
        };
        let content = Content {
            stats: &self.stats,
            adapter: &view.adapter,
            raster: view.screen.renderer().raster(),
            size_px: view.screen.size_px(),
            script_ms: self.live.script_ms(),
            script_bytes: (self.live.session())
                .and_then(|s| s.script())
                .map_or(0, crate::script::Script::memory_bytes),
            t_s: self.live.frame().t_s,
            is_paused: self.live.is_paused(),
            seekable_s: self.live.seekable_s(),
            speed: self.live.speed(),
            is_looped: self.live.is_looped(),
            faults: (self.live.fault().into_iter())
                .chain(&self.shader_fault)
                .collect(),
            progress: &loads,
            recent: self.recent.scenes(),
            tools: &tools,
        };
        let (shapes, action) = view.overlay.lay_out(&view.window, &content);
        let frame = self.live.frame().clone();
        let (live, overlay) = (&mut self.live, &mut view.overlay);
        let outcome = view.screen.present(
            &frame,
            self.devices.pointer_pixel(),
            |context, target, format| {
                if let Some(shapes) = &shapes {
                    overlay.paint(context, shapes, target, format);
                }
            },
            || live.submitted(Instant::now()),
        );
        match outcome {
            Ok(Outcome::Presented(stats)) => {
                view.overlay.presented(Instant::now());
                self.stats = stats;
                self.drawn = Some(frame);
                self.must_draw = false;
                self.draw_error = None;
            }
            Ok(Outcome::Skipped) => self.must_draw = true,
            Ok(Outcome::DeviceReplaced) => {
                view.overlay.device_changed(&view.window);
                self.must_draw = true;
            }
            Ok(Outcome::Failed(error)) => self.draw_failed(&error),
            Err(error) => self.fatal = Some(error),
        }
        match action {
            Some(Action::OpenRecent(index)) => self.open_recent(index),
            Some(Action::Seek(t_s)) => self.seek(t_s),
            Some(Action::Speed(speed)) => {
                self.live.set_speed(speed, Instant::now());
                self.must_draw = true;
            }
            Some(Action::Loop) => {
                self.live.toggle_loop(Instant::now());
                self.must_draw = true;
            }
            Some(Action::Pause) => {
                self.pause();
            }
            Some(Action::Bench(wish)) => self.grant(wish),
            None => {}
        }
    }

    /// Does what a panel of the workbench asked for.
    fn grant(&mut self, wish: Wish) {
        let said = match wish {
            Wish::Set(name, value) => {
                self.devices.param(&name, value);
                Ok(None)
            }
            Wish::Learn(name) => {
                self.midi.learn(&name);
                let found = self.midi.controllers();
                Ok(found
                    .is_empty()
                    .then(|| "no MIDI controller is plugged in yet".to_owned()))
            }
            Wish::Evaluate(line) => {
                let answer = self.evaluate(&line);
                if let Some(view) = &mut self.view {
                    view.overlay.bench.answer(answer);
                }
                Ok(None)
            }
            Wish::Write(name) => {
                let session = self.live.session_mut().context("no scene is loaded");
                let written = session.and_then(|session| session.write_param(&name));
                written.map(|path| Some(format!("written into {}", path.display())))
            }
            Wish::SavePreset(name) => {
                let session = self.live.session().context("no scene is loaded");
                let saved = session.and_then(|session| session.save_preset(&name));
                saved.map(|path| Some(format!("saved {}", path.display())))
            }
            Wish::LoadPreset(name) => {
                let session = self.live.session().context("no scene is loaded");
                session
                    .and_then(|session| session.preset(&name))
                    .map(|values| {
                        for (name, value) in values {
                            self.devices.param(&name, value);
                        }
                        None
                    })
            }
        };
        self.must_draw = true;
        let note = said.unwrap_or_else(|error| Some(format!("{error:#}")));
        if let (Some(note), Some(view)) = (note, &mut self.view) {
            view.overlay.note(note);
        }
    }

    /// What a line of a console comes to. What it did to the scene is seen at once.
    fn evaluate(&mut self, line: &str) -> Result<Option<String>, String> {
        self.must_draw = true;
        if let Some(recorder) = &mut self.recorder {
            recorder.comment(&format!("the console was asked: {line}"));
        }
        self.live.evaluate(line, Instant::now())
    }

    /// Controls that have moved set their parameters.
    fn poll_midi(&mut self, now: Instant) {
        let Some(session) = self.live.session() else {
            return;
        };
        let heard = self.midi.poll(&session.name(), now);
        if heard.is_empty() {
            return;
        }
        let params = session.params();
        for heard in heard {
            match heard {
                Heard::Learnt(control, name) => {
                    if let Some(view) = &mut self.view {
                        view.overlay.note(format!("{control} turns {name}"));
                    }
                }
                Heard::Turned(name, share) => {
                    let param = params.iter().find(|param| param.name == name);
                    if let Some(value) = param.and_then(|param| param.at_share(share)) {
                        self.devices.param(&name, value);
                    }
                }
            }
        }
    }

    fn draw_failed(&mut self, error: &gpu::Error) {
        let text = error.to_string();
        if self.draw_error.as_ref() != Some(&text) {
            self.live.complain(&text);
            self.draw_error = Some(text);
        }
        // The frame is as good as drawn: asking again would fail again.
        self.drawn = Some(self.live.frame().clone());
        self.must_draw = false;
    }

    fn open_recent(&mut self, index: usize) {
        if let Some(scene) = self.recent.scenes().get(index).cloned() {
            if let Some(view) = &mut self.view {
                view.overlay.shows_recent = false;
            }
            self.switch_to(scene);
        }
    }

    /// Does what a key of the player does; false for keys that are the scene's.
    fn on_key(&mut self, event_loop: &ActiveEventLoop, event: &KeyEvent) -> bool {
        let is_shortcut = self.modifiers.control_key() || self.modifiers.super_key();
        let (false, Some(name)) = (is_shortcut, key_name(&event.logical_key)) else {
            return false;
        };
        let Some(view) = &mut self.view else {
            return false;
        };
        let overlay = &mut view.overlay;
        match name.as_str() {
            "f1" => overlay.toggle_figures(),
            "f2" => overlay.bench.shows_params = !overlay.bench.shows_params,
            "f3" => overlay.bench.shows_states = !overlay.bench.shows_states,
            "f4" | "`" => overlay.bench.toggle_console(),
            "h" => {
                overlay.shows_help = !overlay.shows_help;
                overlay.shows_recent = false;
            }
            "o" => {
                overlay.shows_recent = !overlay.shows_recent;
                overlay.shows_help = false;
            }
            "f11" => {
                let change = match view.window.fullscreen() {
                    Some(_) => None,
                    // A monitor that is gone since the start: whichever the window is on.
                    None => Some(
                        self.fullscreen(event_loop)
                            .unwrap_or(Fullscreen::Borderless(None)),
                    ),
                };
                if let Some(view) = &self.view {
                    view.window.set_fullscreen(change);
                }
            }
            "escape" if overlay.shows_help || overlay.shows_recent => {
                (overlay.shows_help, overlay.shows_recent) = (false, false);
            }
            "escape" if overlay.bench.is_open() => overlay.bench.close(),
            "escape" if view.window.fullscreen().is_some() => view.window.set_fullscreen(None),
            "escape" => event_loop.exit(),
            "f12" | "p" => self.save_picture(),
            "c" => self.copy_camera(),
            "space" => return self.pause(),
            "arrow_left" | "arrow_right" | "," | "." | "home" | "end" => {
                let Some(duration_s) = self.live.seekable_s() else {
                    return false;
                };
                let second_s = if self.modifiers.shift_key() { 5.0 } else { 1.0 };
                let t_s = self.live.frame().t_s;
                self.seek(match name.as_str() {
                    "arrow_left" => t_s - second_s,
                    "arrow_right" => t_s + second_s,
                    "," => t_s - PICTURE_S,
                    "." => t_s + PICTURE_S,
                    "home" => 0.0,
                    _ => duration_s,
                });
            }
            "-" | "+" | "=" | "r" if self.live.seekable_s().is_some() => {
                let now = Instant::now();
                match name.as_str() {
                    "r" => self.live.toggle_loop(now),
                    "-" => self.live.set_speed(0.5 * self.live.speed(), now),
                    _ => self.live.set_speed(2.0 * self.live.speed(), now),
                }
                overlay.show_bar();
            }
            "u" => {
                let is_off = self.sound.toggle_mute();
                overlay.note(if is_off { "sound off" } else { "sound on" });
            }
            "[" => return self.turn(Quat::from_rotation_x(-std::f32::consts::FRAC_PI_2)),
            "]" => return self.turn(Quat::from_rotation_x(std::f32::consts::FRAC_PI_2)),
            ";" => return self.turn(Quat::from_rotation_z(-std::f32::consts::FRAC_PI_2)),
            "'" => return self.turn(Quat::from_rotation_z(std::f32::consts::FRAC_PI_2)),
            "l" => {
                let up = self.live.frame().camera.rotation * Vec3::Y;
                return self.turn(Quat::from_rotation_arc(up.normalize_or(Vec3::Y), Vec3::Y));
            }
            digit if overlay.shows_recent => match digit.parse::<usize>() {
                Ok(number @ 1..) => self.open_recent(number - 1),
                _ => return false,
            },
            _ => return false,
        }
        self.must_draw = true;
        true
    }

    fn seek(&mut self, t_s: f64) {
        self.live.seek(t_s, Instant::now());
        if let Some(view) = &mut self.view {
            view.overlay.show_bar();
        }
        self.must_draw = true;
    }

    fn pause(&mut self) -> bool {
        // A scan has no time of its own to stop; its viewer still needs one to be moved around in.
        let has_time = (self.live.session()).is_some_and(|s| s.plain_file().is_none());
        if has_time {
            self.live.toggle_pause(Instant::now());
            self.must_draw = true;
        }
        has_time
    }

    /// Turns the scan, keeps that beside its file, and shows it.
    fn turn(&mut self, turn: Quat) -> bool {
        let Some(session) = self.live.session_mut().filter(|s| s.plain_file().is_some()) else {
            return false;
        };
        let turned = (turn * session.turn()).normalize();
        let kept = session.set_turn(turned);
        self.live
            .reload("turn", self.devices.input(), Instant::now());
        if let (Err(error), Some(view)) = (kept, &mut self.view) {
            tracing::warn!("{error:#}");
            view.overlay.note(format!("not remembered: {error:#}"));
        }
        self.after_load();
        true
    }

    fn copy_camera(&mut self) {
        let flags = viewpoint::flags(self.live.frame());
        tracing::info!("camera: {flags}");
        if let Some(view) = &mut self.view {
            view.overlay.copy(flags.clone());
            view.overlay.note(format!("copied: {flags}"));
        }
    }

    fn save_picture(&mut self) {
        let Some(view) = &mut self.view else {
            return;
        };
        let frame = self.live.frame();
        match view.screen.picture(frame) {
            Ok(picture) => {
                let (name, t_s) = (self.options.scene.scene.clone(), frame.t_s);
                let proxy = self.proxy.clone();
                let spawned = std::thread::Builder::new()
                    .name("picture".to_owned())
                    .spawn(move || {
                        let saved = shot::save(picture, &shot::folder(), &name, t_s);
                        let saved = saved.map_err(|error| format!("{error:#}"));
                        let _ = proxy.send_event(Wake::Saved(saved));
                    });
                if let Err(error) = spawned {
                    view.overlay.note(format!("no picture saved: {error}"));
                }
            }
            Err(error) => view.overlay.note(format!("no picture saved: {error:#}")),
        }
    }

    fn on_saved(&mut self, saved: Result<PathBuf, String>) {
        let text = match saved {
            Ok(path) => {
                tracing::info!("saved {}", path.display());
                format!("saved {}", path.display())
            }
            Err(error) => {
                tracing::warn!("no picture saved: {error}");
                format!("no picture saved: {error}")
            }
        };
        if let Some(view) = &mut self.view {
            view.overlay.note(text);
        }
    }

    fn on_window_event(&mut self, event_loop: &ActiveEventLoop, event: &WindowEvent) {
        let Some(view) = &mut self.view else {
            return;
        };
        let is_used = view.overlay.on_event(&view.window, event);
        match event {
            WindowEvent::CloseRequested => event_loop.exit(),
            WindowEvent::Resized(size) => {
                let size_px = [size.width, size.height];
                view.screen.resize(size_px);
                self.devices.resize(size_px);
                self.must_draw = true;
            }
            WindowEvent::ScaleFactorChanged { .. } => {
                let size = view.window.inner_size();
                view.screen.resize([size.width, size.height]);
                self.must_draw = true;
            }
            WindowEvent::Occluded(is_occluded) => {
                self.is_occluded = *is_occluded;
                self.must_draw |= !is_occluded;
            }
            WindowEvent::ModifiersChanged(modifiers) => self.modifiers = modifiers.state(),
            WindowEvent::DroppedFile(path) => self.switch_to(path.to_string_lossy().into_owned()),
            WindowEvent::RedrawRequested => {
                // The window system may ask for its own reasons, for instance after an expose.
                self.must_draw |= !self.is_redraw_asked;
                self.is_redraw_asked = false;
                self.tick();
            }
            WindowEvent::KeyboardInput { event: key, .. } => {
                // Held arrows go on through time.
                let repeats = matches!(
                    key.logical_key,
                    Key::Named(NamedKey::ArrowLeft | NamedKey::ArrowRight)
                ) && self.live.seekable_s().is_some();
                let is_press = key.state == ElementState::Pressed && (!key.repeat || repeats);
                if !(is_press && (is_used || self.on_key(event_loop, key))) {
                    self.devices.on(event);
                }
            }
            _ if !is_used => self.devices.on(event),
            _ => {}
        }
    }

    /// Sleeps until the next picture is due, or until something happens.
    fn schedule(&mut self, event_loop: &ActiveEventLoop) {
        let Some(view) = &self.view else {
            return;
        };
        let is_hidden = self.is_occluded || view.screen.size_px().contains(&0);
        let needs_picture = self.live.moves() || self.must_draw || view.overlay.shows_figures();
        let wake_at = match (needs_picture, view.overlay.redraw_at()) {
            _ if is_hidden => None,
            (true, _) => Some(self.due_at),
            (false, overlay_at) => overlay_at.map(|at| at.max(self.due_at)),
        };
        let now = Instant::now();
        event_loop.set_control_flow(match wake_at {
            Some(at) if at > now => ControlFlow::WaitUntil(at),
            Some(_) => {
                if !self.is_redraw_asked {
                    self.is_redraw_asked = true;
                    view.window.request_redraw();
                }
                ControlFlow::Wait
            }
            None => ControlFlow::Wait,
        });
    }
}

impl ApplicationHandler<Wake> for App {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        if self.view.is_some() {
            return;
        }
        match self.open_window(event_loop) {
            Ok(view) => {
                self.view = Some(view);
                self.draw();
            }
            Err(error) => {
                self.fatal = Some(error);
                event_loop.exit();
            }
        }
    }

    fn user_event(&mut self, event_loop: &ActiveEventLoop, event: Wake) {
        match event {
            Wake::Changed(changes) => self.on_changes(&changes),
            Wake::AssetsEnded => {
                // Those that still run will report again.
                self.loads
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
                self.live.on_assets(self.devices.input(), Instant::now());
                self.after_load();
            }
            Wake::Progress => {
                if let Some(view) = &mut self.view {
                    view.overlay.changed();
                }
            }
            Wake::Saved(saved) => self.on_saved(saved),
            Wake::Line(line, answer_to) => {
                // Whoever no longer waits has ended.
                let _ = answer_to.send(self.evaluate(&line));
            }
            Wake::Quit => event_loop.exit(),
        }
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _id: WindowId, event: WindowEvent) {
        self.on_window_event(event_loop, &event);
    }

    fn about_to_wait(&mut self, event_loop: &ActiveEventLoop) {
        if self.fatal.is_some() {
            event_loop.exit();
            return;
        }
        self.schedule(event_loop);
    }
}

/// What the panels of the workbench show of a scene.
fn tools(live: &mut Live, midi: &Midi) -> Tools {
    let state = live.frame().state.clone();
    let Some(session) = live.session_mut() else {
        return Tools::default();
    };
    // A library that gives no charts is said by `check`.
    let charts = session.script_mut().and_then(|script| script.charts().ok());
    Tools {
        params: session.params(),
        controls: midi.controls(&session.name()),
        learning: midi.learning().map(str::to_owned),
        presets: session.presets(),
        charts: charts.unwrap_or_default(),
        state,
    }
}
