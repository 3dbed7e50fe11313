//! What is written over the picture: errors, figures, recent scenes, help, progress, notes.
//!
//! Drawn with egui in a pass of its own after the picture, and only when there is something to say.
//! It decides nothing: clicks come back as an [`Action`]. Sizes are egui points.

use super::workbench::{Tools, Wish, Workbench};
use crate::gpu::{self, Context, Stats};
use egui::{Align2, Color32, FontId, RichText, Ui, vec2};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use winit::window::Window;

/// How long a note stays.
const NOTE: Duration = Duration::from_secs(5);
/// How long the time bar stays after the pointer has moved.
const BAR: Duration = Duration::from_millis(2500);
/// What the time bar leaves free beside its slider, points.
const BAR_REST: f32 = 340.0;

/// Frame times that the figures are taken over.
const FRAME_TIMES: usize = 120;

const BACK: Color32 = Color32::from_black_alpha(200);
const DIM: Color32 = Color32::from_gray(170);
const RED: Color32 = Color32::from_rgb(255, 120, 110);

/// The keys of the player, as the help shows them.
pub const KEYS: &[(&str, &str)] = &[
    ("F1", "figures: frame time, GPU stages, counts"),
    ("F2", "parameters: sliders, presets, MIDI"),
    ("F3", "state machines, the state that is on"),
    ("F4, `", "console: a line against the running scene"),
    ("F11", "full screen"),
    ("Esc", "leave full screen, then quit"),
    ("F12, p", "save a picture"),
    ("c", "copy the camera as flags"),
    ("o", "recent scenes; 1 to 9 opens one"),
    ("space", "stop and go on"),
    (
        "left, right",
        "a second back or on, with shift five; with the time bar any time",
    ),
    (", .", "a thirtieth of a second back or on"),
    ("Home, End", "to the start, to the end"),
    ("- +", "half and twice as fast"),
    ("r", "begin anew at the end, or no longer"),
    ("u", "sound off, and on again"),
    ("[ ]", "turn a scan about x by 90 degrees"),
    ("; '", "turn a scan about z by 90 degrees"),
    ("l", "level a scan: up in the picture is up"),
    ("g", "walk through a scan: w a s d, drag, stick"),
    ("b", "lay the way of a surveyed scan by hand"),
    ("h", "this help"),
];

/// What is wrong with the newest version, and what is shown instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `file:line: message`.
    pub text: String,
    /// Where it came from, innermost call first; may be empty.
    pub traceback: String,
    /// Which version is still running, as a sentence; empty where none is.
    pub running: String,
}

/// Everything the overlay may show in one picture.
pub struct Content<'a> {
    /// Figures of the last picture.
    pub stats: &'a Stats,
    /// The adapter's name and back end.
    pub adapter: &'a str,
    /// How splats are drawn.
    pub raster: gpu::RasterMethod,
    /// Picture size, px.
    pub size_px: [u32; 2],
    /// Time that the script took for the last picture, ms.
    pub script_ms: f64,
    /// Memory that the script holds, bytes.
    pub script_bytes: usize,
    /// Scene time, seconds.
    pub t_s: f64,
    /// Scene time stands still.
    pub is_paused: bool,
    /// How long the scene is, where its time can be set, seconds.
    pub seekable_s: Option<f64>,
    /// How fast scene time goes, against the clock.
    pub speed: f64,
    /// The scene begins anew at its end.
    pub is_looped: bool,
    /// What is wrong with the newest versions of scene and shaders.
    pub faults: Vec<&'a Fault>,
    /// Files being loaded, and how far each is, 0 to 1.
    pub progress: &'a [(String, f32)],
    /// Recent scenes, newest first.
    pub recent: &'a [String],
    /// What the panels of the workbench show; only made where one is open.
    pub tools: &'a Tools,
}

/// What a person asked for by clicking.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Open the recent scene of this index.
    OpenRecent(usize),
    /// Go to this scene time, seconds.
    Seek(f64),
    /// Let scene time go so many times as fast as the clock.
    Speed(f64),
    /// Begin anew at the end, or no longer.
    Loop,
    /// Stop scene time, or let it go on.
    Pause,
    /// What a panel of the workbench asks for.
    Bench(Wish),
}

/// State of everything over the picture.
pub struct Overlay {
    state: egui_winit::State,
    painter: Option<egui_wgpu::Renderer>,
    /// Textures that egui has handed out and no device has got yet: a picture may be skipped after
    /// it was laid out.
    textures: Vec<(egui::TextureId, egui::epaint::ImageDelta)>,
    /// Textures that are no longer needed once the next picture is painted.
    textures_done: Vec<egui::TextureId>,
    shows_figures: bool,
    /// Parameters, console and state machines.
    pub bench: Workbench,
    /// The help is shown.
    pub shows_help: bool,
    /// The recent scenes are shown.
    pub shows_recent: bool,
    /// The time bar is shown until then, and longer while time stands still.
    bar_until: Option<Instant>,
    notes: VecDeque<(String, Instant)>,
    frame_ms: VecDeque<f64>,
    last_frame_at: Option<Instant>,
    /// egui wants to be drawn again then, for instance while something fades.
    repaint_at: Option<Instant>,
    was_visible: bool,
}

/// Shapes of one picture, ready to be painted.
pub struct Shapes {
    jobs: Vec<egui::ClippedPrimitive>,
    screen: egui_wgpu::ScreenDescriptor,
}

impl Overlay {
    /// Nothing is shown at first.
    #[must_use]
    pub fn new(window: &Window) -> Self {
        Self {
            state: state(window),
            painter: None,
            textures: Vec::new(),
            textures_done: Vec::new(),
            shows_figures: false,
            bench: Workbench::default(),
            shows_help: false,
            shows_recent: false,
            bar_until: None,
            notes: VecDeque::new(),
            frame_ms: VecDeque::with_capacity(FRAME_TIMES),
            last_frame_at: None,
            repaint_at: None,
            was_visible: false,
        }
    }

    /// Starts over on a new device, with the same things shown.
    pub fn device_changed(&mut self, window: &Window) {
        self.state = state(window);
        self.painter = None;
        self.textures.clear();
        self.textures_done.clear();
    }

    /// Hands a window event to egui; true when it used the event up.
    pub fn on_event(&mut self, window: &Window, event: &winit::event::WindowEvent) -> bool {
        let response = self.state.on_window_event(window, event);
        if let winit::event::WindowEvent::CursorMoved { .. } = event {
            self.show_bar();
        }
        if response.repaint && self.was_visible {
            self.repaint_at = Some(Instant::now());
        }
        response.consumed && self.was_visible
    }

    /// Shows the time bar for a while, where there is one.
    pub fn show_bar(&mut self) {
        self.bar_until = Some(Instant::now() + BAR);
    }

    /// Shows a line for a few seconds.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push_back((text.into(), Instant::now() + NOTE));
        self.repaint_at = Some(Instant::now());
    }

    /// Puts text on the clipboard.
    pub fn copy(&mut self, text: String) {
        self.state.set_clipboard_text(text);
    }

    /// Figures are shown, so every picture is drawn.
    #[must_use]
    pub fn shows_figures(&self) -> bool {
        self.shows_figures
    }

    /// Asks for a new drawing because something that is shown has changed.
    pub fn changed(&mut self) {
        self.repaint_at = Some(Instant::now());
    }

    /// When it has to be drawn again although the picture may be the same.
    #[must_use]
    pub fn redraw_at(&self) -> Option<Instant> {
        let note_ends = self.notes.front().map(|(_, until)| *until);
        let ends = note_ends.into_iter().chain(self.bar_until);
        self.repaint_at.into_iter().chain(ends).min()
    }

    /// Shows or hides the figures, which start anew: a picture that did not change was not drawn, and
    /// the time in between says nothing.
    pub fn toggle_figures(&mut self) {
        self.shows_figures = !self.shows_figures;
        self.frame_ms.clear();
        self.last_frame_at = None;
    }

    /// Takes note of a picture that was presented.
    pub fn presented(&mut self, now: Instant) {
        if let Some(before) = self.last_frame_at.replace(now) {
            if self.frame_ms.len() == FRAME_TIMES {
                self.frame_ms.pop_front();
            }
            self.frame_ms
                .push_back(now.duration_since(before).as_secs_f64() * 1e3);
        }
    }

    /// Lays out what there is to show. `None` when there is nothing, which costs nothing.
    pub fn lay_out(
        &mut self,
        window: &Window,
        content: &Content<'_>,
    ) -> (Option<Shapes>, Option<Action>) {
        let now = Instant::now();
        self.notes.retain(|(_, until)| *until > now);
        self.repaint_at = None;
        self.bar_until = self.bar_until.filter(|until| *until > now);
        let bar_s = (content.seekable_s).filter(|_| content.is_paused || self.bar_until.is_some());
        let is_visible = self.shows_figures
            || bar_s.is_some()
            || self.bench.is_open()
            || self.shows_help
            || self.shows_recent
            || !content.faults.is_empty()
            || !content.progress.is_empty()
            || !self.notes.is_empty();
        self.was_visible = is_visible;
        let input = self.state.take_egui_input(window);
        if !is_visible {
            return (None, None);
        }
        let egui = self.state.egui_ctx().clone();
        let mut action = None;
        let mut output = egui.run_ui(input, |ui| {
            let is_modal = self.shows_help || self.shows_recent;
            if self.shows_figures && !is_modal {
                panel(ui, "figures", Align2::LEFT_TOP, vec2(6.0, 6.0), |ui| {
                    self.figures(ui, content);
                });
            }
            if self.shows_help {
                panel(ui, "help", Align2::CENTER_CENTER, vec2(0.0, 0.0), help);
            }
            if self.shows_recent {
                panel(ui, "recent", Align2::CENTER_CENTER, vec2(0.0, 0.0), |ui| {
                    action = recent(ui, content.recent);
                });
            }
            if !is_modal {
                let wish = self.workbench(ui, content.tools);
                action = wish.map(Action::Bench).or(action.take());
            }
            let foot = !content.faults.is_empty()
                || !content.progress.is_empty()
                || !self.notes.is_empty();
            if let (Some(duration_s), false) = (bar_s, is_modal) {
                panel(ui, "time", Align2::CENTER_BOTTOM, vec2(0.0, -6.0), |ui| {
                    action = time_bar(ui, content, duration_s).or(action.take());
                });
            }
            if foot && !is_modal {
                let above = if bar_s.is_some() { -40.0 } else { -6.0 };
                panel(ui, "foot", Align2::LEFT_BOTTOM, vec2(6.0, above), |ui| {
                    self.foot(ui, content);
                });
            }
        });
        let repaint = output
            .viewport_output
            .get(&egui::ViewportId::ROOT)
            .map(|viewport| viewport.repaint_delay);
        self.repaint_at = repaint.and_then(|delay| now.checked_add(delay));
        self.state
            .handle_platform_output(window, output.platform_output);
        #[allow(
            clippy::iter_over_hash_type,
            reason = "no texture depends on another, so their order does not matter"
        )]
        for (id, deltas) in output.textures_delta.set.drain() {
            let deltas = deltas.into_iter();
            self.textures.extend(deltas.map(|delta| (id, delta)));
        }
        self.textures_done
            .extend(output.textures_delta.free.drain());
        let shapes = Shapes {
            jobs: egui.tessellate(output.shapes, output.pixels_per_point),
            screen: egui_wgpu::ScreenDescriptor {
                size_in_pixels: content.size_px,
                pixels_per_point: output.pixels_per_point,
            },
        };
        (Some(shapes), action)
    }

    /// Paints over what `target` holds, and submits.
    pub fn paint(
        &mut self,
        context: &Context,
        shapes: &Shapes,
        target: &wgpu::TextureView,
        format: wgpu::TextureFormat,
    ) {
        let (device, queue) = (&context.device, &context.queue);
        let painter = self.painter.get_or_insert_with(|| {
            egui_wgpu::Renderer::new(device, format, egui_wgpu::RendererOptions::default())
        });
        for (id, delta) in self.textures.drain(..) {
            painter.update_texture(device, queue, id, &delta);
        }
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor {
            label: Some("overlay"),
        });
        let mut commands =
            painter.update_buffers(device, queue, &mut encoder, &shapes.jobs, &shapes.screen);
        {
            let mut pass = encoder
                .begin_render_pass(&wgpu::RenderPassDescriptor {
                    label: Some("overlay"),
                    color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                        view: target,
                        depth_slice: None,
                        resolve_target: None,
                        ops: wgpu::Operations {
                            load: wgpu::LoadOp::Load,
                            store: wgpu::StoreOp::Store,
                        },
                    })],
                    ..Default::default()
                })
                .forget_lifetime();
            painter.render(&mut pass, &shapes.jobs, &shapes.screen);
        }
        commands.push(encoder.finish());
        queue.submit(commands);
        for id in self.textures_done.drain(..) {
            painter.free_texture(&id);
        }
    }

    fn workbench(&mut self, ui: &mut Ui, tools: &Tools) -> Option<Wish> {
        let mut wish = None;
        if self.bench.shows_params {
            panel(ui, "params", Align2::RIGHT_TOP, vec2(-6.0, 6.0), |ui| {
                wish = self.bench.params(ui, tools);
            });
        }
        if self.bench.shows_states {
            panel(
                ui,
                "states",
                Align2::RIGHT_BOTTOM,
                vec2(-6.0, -40.0),
                |ui| {
                    self.bench.states(ui, tools);
                },
            );
        }
        if self.bench.shows_console {
            panel(ui, "console", Align2::LEFT_BOTTOM, vec2(6.0, -40.0), |ui| {
                wish = self.bench.console(ui).or(wish.take());
            });
        }
        wish
    }

    fn figures(&self, ui: &mut Ui, content: &Content<'_>) {
        let mut sorted: Vec<f64> = self.frame_ms.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
            sorted.get(index).copied().unwrap_or(0.0)
        };
        let median_ms = at(0.5);
        let per_s = if median_ms > 0.0 {
            1e3 / median_ms
        } else {
            0.0
        };
        let mut line = |text: String| {
            ui.monospace(text);
        };
        line(format!(
            "frame {median_ms:.1} ms  {per_s:.0}/s  worst {:.1} ms",
            at(1.0)
        ));
        line(format!(
            "t {:.2} s{}  script {:.2} ms  {:.1} MB",
            content.t_s,
            if content.is_paused { " (stopped)" } else { "" },
            content.script_ms,
            content.script_bytes as f64 / 1e6
        ));
        for (stage, ms) in &content.stats.stages {
            line(format!("{stage:>8} {ms:7.2} ms"));
        }
        if let Some(gpu_ms) = content.stats.gpu_ms {
            line(format!("{:>8} {gpu_ms:7.2} ms", "gpu"));
        }
        line(format!(
            "{} splats, {} sorted",
            grouped(content.stats.count),
            grouped(content.stats.sorted)
        ));
        let [width, height] = content.size_px;
        line(format!("{width}x{height}  {:?}", content.raster));
        line(content.adapter.to_owned());
    }

    fn foot(&self, ui: &mut Ui, content: &Content<'_>) {
        for (name, share) in content.progress {
            let bar = egui::ProgressBar::new(*share).desired_height(14.0);
            ui.add(bar.text(format!("{name}  {:.0} %", 100.0 * share)));
        }
        for (text, _) in &self.notes {
            ui.label(text);
        }
        for fault in &content.faults {
            egui::ScrollArea::vertical()
                .id_salt(&fault.text)
                .max_height(0.6 * ui.ctx().content_rect().height())
                .show(ui, |ui| {
                    let text = RichText::new(&fault.text).color(RED).monospace();
                    ui.add(egui::Label::new(text).wrap());
                    if !fault.traceback.is_empty() {
                        let text = RichText::new(&fault.traceback).color(DIM).monospace();
                        ui.add(egui::Label::new(text.size(10.0)).wrap());
                    }
                });
            if !fault.running.is_empty() {
                ui.add(egui::Label::new(RichText::new(&fault.running).color(DIM)).wrap());
            }
        }
    }
}

fn state(window: &Window) -> egui_winit::State {
    let context = egui::Context::default();
    context.set_theme(egui::Theme::Dark);
    context.all_styles_mut(|style| {
        for (text_style, font) in &mut style.text_styles {
            if *text_style == egui::TextStyle::Monospace {
                *font = FontId::monospace(12.0);
            }
        }
        // Nothing fades: a picture that does not change is not drawn again.
        style.animation_time = 0.0;
    });
    let scale = window.scale_factor() as f32;
    egui_winit::State::new(
        context,
        egui::ViewportId::ROOT,
        window,
        Some(scale),
        window.theme(),
        None,
    )
}

fn panel(ui: &Ui, id: &str, anchor: Align2, offset: egui::Vec2, add: impl FnOnce(&mut Ui)) {
    let screen = ui.ctx().content_rect();
    egui::Area::new(egui::Id::unique(id))
        .anchor(anchor, offset)
        .fade_in(false)
        .show(ui.ctx(), |ui| {
            ui.set_max_width(screen.width() - 28.0);
            egui::Frame::new()
                .fill(BACK)
                .corner_radius(4.0)
                .inner_margin(8.0)
                .show(ui, |ui| {
                    egui::ScrollArea::vertical()
                        .id_salt(id)
                        .max_height(screen.height() - 28.0)
                        // A panel that stands on the foot of the window has no room below it to grow into.
                        .min_scrolled_height(screen.height() - 28.0)
                        .show(ui, add);
                });
        });
}

fn help(ui: &mut Ui) {
    egui::Grid::new("keys")
        .num_columns(2)
        .spacing(vec2(14.0, 3.0))
        .show(ui, |ui| {
            for (key, does) in KEYS {
                ui.monospace(*key);
                ui.label(*does);
                ui.end_row();
            }
        });
}

/// Stop, loop and speed, and a slider over the scene's time as wide as the window.
fn time_bar(ui: &mut Ui, content: &Content<'_>, duration_s: f64) -> Option<Action> {
    let t_s = content.t_s;
    let mut asked_s = t_s.clamp(0.0, duration_s);
    let width = ui.ctx().content_rect().width();
    ui.horizontal(|ui| {
        let mut action = None;
        let go = if content.is_paused { "play" } else { "stop" };
        if ui.button(go).clicked() {
            action = Some(Action::Pause);
        }
        let is_asked = ui.selectable_label(content.is_looped, "loop").clicked();
        action = is_asked.then_some(Action::Loop).or(action);
        for (sign, factor) in [("-", 0.5), ("+", 2.0)] {
            if ui.small_button(sign).clicked() {
                action = Some(Action::Speed(content.speed * factor));
            }
        }
        ui.monospace(format!("{:>5}x", (content.speed * 1e3).round() / 1e3));
        ui.spacing_mut().slider_width = (width - BAR_REST).max(60.0);
        let slider = egui::Slider::new(&mut asked_s, 0.0..=duration_s).show_value(false);
        if ui.add(slider).changed() {
            action = Some(Action::Seek(asked_s));
        }
        ui.monospace(format!("{t_s:6.2} / {duration_s:.1} s"));
        action
    })
    .inner
}

fn recent(ui: &mut Ui, scenes: &[String]) -> Option<Action> {
    let mut action = None;
    ui.label(RichText::new("recent scenes").color(DIM));
    if scenes.is_empty() {
        ui.label("none yet: drop a file or a scene folder on the window");
    }
    for (index, scene) in scenes.iter().enumerate() {
        let text = RichText::new(format!("{}  {}", index + 1, tail(scene, 60))).monospace();
        if ui.add(egui::Button::new(text).frame(false)).clicked() {
            action = Some(Action::OpenRecent(index));
        }
    }
    action
}

/// The last `letters_max` letters, which of a path say most.
fn tail(text: &str, letters_max: usize) -> String {
    let letters = text.chars().count();
    if letters <= letters_max {
        return text.to_owned();
    }
    let end: String = text.chars().skip(letters - letters_max + 1).collect();
    format!("…{end}")
}

/// 1234567 as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_paths_are_shortened_for_reading() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(2_994_006), "2,994,006");
        assert_eq!(tail("short", 60), "short");
        assert_eq!(tail("0123456789", 4), "…789");
    }
}
