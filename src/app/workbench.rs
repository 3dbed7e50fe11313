//! Panels for who works on a scene while it plays: sliders of its parameters, a console, its state machines.
//!
//! Drawn with egui into the overlay ([`super::overlay`]), which also decides when. Nothing is done here: what
//! a person asks for comes back as a [`Wish`].

use super::midi::Control;
use crate::script::{Chart, Param, ParamValue};
use egui::{Color32, RichText, Ui, vec2};
use std::collections::{BTreeMap, VecDeque};

/// Lines of the console that are kept.
const LINES_MAX: usize = 200;
/// Width of a slider, points.
const SLIDER: f32 = 170.0;
const DIM: Color32 = Color32::from_gray(170);
const RED: Color32 = Color32::from_rgb(255, 120, 110);
const LIT: Color32 = Color32::from_rgb(255, 200, 90);

/// What a person asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Set a parameter.
    Set(String, ParamValue),
    /// Write what a parameter stands at into the script.
    Write(String),
    /// The next control of a MIDI controller that moves is this parameter's.
    Learn(String),
    /// Set what the preset sets.
    LoadPreset(String),
    /// Keep what all parameters stand at.
    SavePreset(String),
    /// Evaluate a line.
    Evaluate(String),
}

/// What there is to show.
#[derive(Debug, Default)]
pub struct Tools {
    /// The scene's parameters.
    pub params: Vec<Param>,
    /// The control of each.
    pub controls: BTreeMap<String, Control>,
    /// The one that waits for a control.
    pub learning: Option<String>,
    /// Names of the scene's presets.
    pub presets: Vec<String>,
    /// The scene's state machines, and the state that its frame says.
    pub charts: Vec<Chart>,
    /// The state of the last frame.
    pub state: Option<String>,
}

/// A line of the console.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Asked(String),
    Said(String),
    Wrong(String),
}

/// Which panels are open, and what is typed into them.
#[derive(Debug, Default)]
pub struct Workbench {
    /// The parameters are shown.
    pub shows_params: bool,
    /// The console is shown.
    pub shows_console: bool,
    /// The state machines are shown.
    pub shows_states: bool,
    lines: VecDeque<Line>,
    typed: String,
    /// Lines that were typed, oldest first, and the one that is shown again.
    history: Vec<String>,
    recalled: Option<usize>,
    preset: String,
    takes_focus: bool,
}

impl Workbench {
    /// Whether anything is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.shows_params || self.shows_console || self.shows_states
    }

    /// Opens or closes the console; opened, it takes the keys.
    pub fn toggle_console(&mut self) {
        self.shows_console = !self.shows_console;
        self.takes_focus = self.shows_console;
    }

    /// Closes all.
    pub fn close(&mut self) {
        self.shows_params = false;
        self.shows_console = false;
        self.shows_states = false;
    }

    /// What a line has come to.
    pub fn answer(&mut self, answer: Result<Option<String>, String>) {
        match answer {
            Ok(Some(text)) => self.add(Line::Said(text)),
            Ok(None) => {}
            Err(text) => self.add(Line::Wrong(text)),
        }
    }

    fn add(&mut self, line: Line) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The parameters.
    pub fn params(&mut self, ui: &mut Ui, tools: &Tools) -> Option<Wish> {
        let mut wish = None;
        if tools.params.is_empty() {
            ui.label(
                "the scene has no parameters: param(\"name\", 1.3, { min = 0, max = 2 }) makes one",
            );
        }
        egui::Grid::new("params")
            .num_columns(4)
            .spacing(vec2(10.0, 4.0))
            .show(ui, |ui| {
                for param in &tools.params {
                    let label = ui.label(RichText::new(&param.name).monospace());
                    if !param.help.is_empty() {
                        label.on_hover_text(&param.help);
                    }
                    if let Some(value) = control(ui, param) {
                        wish = Some(Wish::Set(param.name.clone(), value));
                    }
                    let is_other = param.value != param.default;
                    ui.horizontal(|ui| {
                        let back = egui::Button::new("reset");
                        let back = ui.add_enabled(is_other, back).on_hover_text(format!(
                            "{} as {}:{} says",
                            param.default, param.file, param.line
                        ));
                        if back.clicked() {
                            wish = Some(Wish::Set(param.name.clone(), param.default.clone()));
                        }
                        let write = egui::Button::new("write");
                        let write = ui
                            .add_enabled(is_other, write)
                            .on_hover_text(format!("into {}:{}", param.file, param.line));
                        if write.clicked() {
                            wish = Some(Wish::Write(param.name.clone()));
                        }
                    });
                    let is_learning = tools.learning.as_ref() == Some(&param.name);
                    let text = match (is_learning, tools.controls.get(&param.name)) {
                        (true, _) => RichText::new("move a control").color(LIT),
                        (false, Some(control)) => {
                            RichText::new(format!("{}.{}", control.channel + 1, control.number))
                        }
                        (false, None) => RichText::new("learn").color(DIM),
                    };
                    let can_learn = param.at_share(0.0).is_some();
                    let learn = ui.add_enabled(can_learn, egui::Button::new(text));
                    let learn = learn.on_hover_text("the MIDI control that moves next turns this");
                    let why = "a control needs min and max";
                    if learn.on_disabled_hover_text(why).clicked() {
                        wish = Some(Wish::Learn(param.name.clone()));
                    }
                    ui.end_row();
                }
            });
        if !tools.params.is_empty() {
            ui.separator();
            ui.horizontal_wrapped(|ui| {
                ui.label(RichText::new("presets").color(DIM));
                for name in &tools.presets {
                    if ui.button(name).clicked() {
                        wish = Some(Wish::LoadPreset(name.clone()));
                    }
                }
                let field = egui::TextEdit::singleline(&mut self.preset)
                    .hint_text("name")
                    .desired_width(90.0);
                ui.add(field);
                let is_named = !self.preset.trim().is_empty();
                if ui
                    .add_enabled(is_named, egui::Button::new("save"))
                    .clicked()
                {
                    wish = Some(Wish::SavePreset(self.preset.trim().to_owned()));
                }
            });
        }
        wish
    }

    /// The console.
    pub fn console(&mut self, ui: &mut Ui) -> Option<Wish> {
        let mut wish = None;
        egui::ScrollArea::vertical()
            .id_salt("console lines")
            .max_height(0.3 * ui.ctx().content_rect().height())
            .stick_to_bottom(true)
            .show(ui, |ui| {
                for line in &self.lines {
                    let text = match line {
                        Line::Asked(text) => RichText::new(format!("> {text}")).color(DIM),
                        Line::Said(text) => RichText::new(text),
                        Line::Wrong(text) => RichText::new(text).color(RED),
                    };
                    ui.add(egui::Label::new(text.monospace()).wrap());
                }
            });
        let width = (0.7 * ui.ctx().content_rect().width()).min(700.0);
        let field = egui::TextEdit::singleline(&mut self.typed)
            .hint_text("an expression: scene, t, stage, motion, persist(\"...\", {}) ...")
            .font(egui::TextStyle::Monospace)
            .desired_width(width);
        let field = ui.add(field);
        if std::mem::take(&mut self.takes_focus) {
            field.request_focus();
        }
        if field.has_focus() {
            let (up, down) = ui.input(|input| {
                (
                    input.key_pressed(egui::Key::ArrowUp),
                    input.key_pressed(egui::Key::ArrowDown),
                )
            });
            self.recall(up, down);
        }
        let is_entered =
            field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        if is_entered {
            let line = std::mem::take(&mut self.typed);
            self.takes_focus = true;
            if !line.trim().is_empty() {
                self.history.retain(|known| *known != line);
                self.history.push(line.clone());
                self.recalled = None;
                self.add(Line::Asked(line.clone()));
                wish = Some(Wish::Evaluate(line));
            }
        }
        wish
    }

    /// Shows a line that was typed before, or the one after it.
    fn recall(&mut self, up: bool, down: bool) {
        let last = self.history.len();
        let at = self.recalled.unwrap_or(last);
        let wanted = match (up, down) {
            (true, _) => at.checked_sub(1),
            (_, true) => Some(at + 1),
            _ => return,
        };
        let Some(at) = wanted.filter(|at| *at <= last) else {
            return;
        };
        self.recalled = (at < last).then_some(at);
        self.typed = self.history.get(at).cloned().unwrap_or_default();
    }

    /// The state machines, the state that is on lit.
    pub fn states(&self, ui: &mut Ui, tools: &Tools) {
        if tools.charts.is_empty() {
            ui.label("the scene has made no state machine of @stage/states");
        }
        for chart in &tools.charts {
            draw_chart(ui, chart, tools.state.as_deref());
        }
    }
}

/// What sets a parameter; the value that it was set to.
fn control(ui: &mut Ui, param: &Param) -> Option<ParamValue> {
    match &param.value {
        ParamValue::Flag(flag) => {
            let mut flag = *flag;
            let is_changed = ui.checkbox(&mut flag, "").changed();
            is_changed.then_some(ParamValue::Flag(flag))
        }
        ParamValue::Number(number) => {
            let mut number = *number;
            let suffix = if param.unit.is_empty() {
                String::new()
            } else {
                format!(" {}", param.unit)
            };
            let is_changed = match (param.min, param.max) {
                (Some(min), Some(max)) => {
                    ui.spacing_mut().slider_width = SLIDER;
                    let mut slider = egui::Slider::new(&mut number, min..=max).suffix(suffix);
                    if let Some(step) = param.step {
                        slider = slider.step_by(step);
                    }
                    ui.add(slider).changed()
                }
                _ => {
                    let speed = param.step.unwrap_or(0.01 * number.abs().max(0.1));
                    let range = param.min.unwrap_or(f64::MIN)..=param.max.unwrap_or(f64::MAX);
                    let field = egui::DragValue::new(&mut number);
                    ui.add(field.speed(speed).range(range).suffix(suffix))
                        .changed()
                }
            };
            is_changed.then_some(ParamValue::Number(number))
        }
        ParamValue::Text(text) if param.choices.is_empty() => {
            let mut text = text.clone();
            let field = ui.add(egui::TextEdit::singleline(&mut text).desired_width(SLIDER));
            field.changed().then_some(ParamValue::Text(text))
        }
        ParamValue::Text(text) => {
            let mut chosen = text.clone();
            egui::ComboBox::from_id_salt(&param.name)
                .selected_text(text)
                .show_ui(ui, |ui| {
                    for choice in &param.choices {
                        ui.selectable_value(&mut chosen, choice.clone(), choice);
                    }
                });
            (chosen != *text).then_some(ParamValue::Text(chosen))
        }
    }
}

/// States on a circle, ways as arrows.
fn draw_chart(ui: &mut Ui, chart: &Chart, state: Option<&str>) {
    let count = chart.states.len().max(1);
    let radius = (26.0 * count as f32 / std::f32::consts::PI).clamp(50.0, 150.0);
    let size = vec2(2.0 * radius + 150.0, 2.0 * radius + 40.0);
    let (area, _) = ui.allocate_exact_size(size, egui::Sense::hover());
    let painter = ui.painter_at(area);
    let at = |index: usize| {
        let angle =
            std::f32::consts::TAU * index as f32 / count as f32 - std::f32::consts::FRAC_PI_2;
        area.center() + radius * vec2(angle.cos(), angle.sin())
    };
    let find = |name: &str| chart.states.iter().position(|known| known == name);
    for way in &chart.ways {
        let Some(end) = find(&way.to).map(at) else {
            continue;
        };
        // From any state is from the middle.
        let start = match find(&way.from) {
            Some(index) => at(index),
            None => area.center(),
        };
        if start == end {
            continue;
        }
        let along = (end - start).normalized();
        let aside = vec2(-along.y, along.x) * 3.0;
        let (start, end) = (start + 14.0 * along + aside, end - 14.0 * along + aside);
        painter.arrow(start, end - start, egui::Stroke::new(1.0, DIM));
    }
    for (index, name) in chart.states.iter().enumerate() {
        let is_on = state == Some(name.as_str());
        let colour = if is_on { LIT } else { DIM };
        let place = at(index);
        painter.circle(
            place,
            if is_on { 7.0 } else { 5.0 },
            if is_on { colour } else { Color32::TRANSPARENT },
            egui::Stroke::new(1.0, colour),
        );
        let is_right = place.x >= area.center().x;
        let (anchor, side) = if is_right {
            (egui::Align2::LEFT_CENTER, 12.0)
        } else {
            (egui::Align2::RIGHT_CENTER, -12.0)
        };
        let text = if *name == chart.first {
            format!("{name} (first)")
        } else {
            name.clone()
        };
        let font = egui::FontId::monospace(12.0);
        painter.text(place + vec2(side, 0.0), anchor, text, font, colour);
    }
}
