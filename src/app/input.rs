//! Window events, gamepads and messages to what scripts see: [`Input`] for `step`, [`Event`]s for
//! `event`.
//!
//! It keeps the state between steps (keys held, pointer) and knows no script. Keys are remembered
//! by their place on the keyboard, so that `shift` pressed or let go in between leaves none stuck,
//! and everything is let go when the window loses the focus.

use crate::frame::{Event, Input};
use crate::script::ParamValue;
use glam::{DVec2, Vec2, Vec3};
use std::collections::BTreeMap;
use winit::dpi::PhysicalPosition;
use winit::event::{ElementState, MouseButton, MouseScrollDelta, Touch, TouchPhase, WindowEvent};
use winit::keyboard::{Key, PhysicalKey};

/// A press and release further apart than this is a drag and no click, px.
const CLICK_TRAVEL_PX_MAX: f64 = 4.0;

/// The name of a finger on the screen, as a button.
pub const TOUCH: &str = "touch";

/// Pixels of a touchpad's scrolling that make one wheel notch.
const PX_PER_NOTCH: f64 = 40.0;

/// Something that came in, as far as a log has to know it to make it come in again.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// The picture has this size, px.
    Size([u32; 2]),
    /// The pointer came onto the picture.
    Enter,
    /// It is here (x right, y up, -1 to 1 on the picture, further while it is dragged), or has left.
    Pointer(Option<[f64; 2]>),
    /// It does not travel to where it is next.
    Jump,
    /// A button of the mouse, or a finger, went down.
    Press(String),
    /// It was let go, which may be a click.
    Release(String),
    /// A key or a pad's button went down.
    Hold(String),
    /// It is no longer held, and that is no click.
    LetGo(String),
    /// Nothing is held any more.
    LetGoAll,
    /// Notches of the wheel.
    Wheel(f32),
    /// The left stick.
    Stick([f32; 2]),
    /// A phone's turn, degrees.
    Gyro(Option<[f32; 3]>),
    /// A message: name and values.
    Message(String, Vec<f64>),
    /// A parameter was set.
    Param(String, ParamValue),
}

/// The devices of one window.
#[derive(Debug, Default)]
pub struct Devices {
    input: Input,
    held: BTreeMap<PhysicalKey, String>,
    /// Buttons of mouse, finger and pad, and where the pointer was when they went down.
    buttons: BTreeMap<String, Option<PhysicalPosition<f64>>>,
    /// The first finger on the screen; the others are not followed.
    finger: Option<u64>,
    size_px: [u32; 2],
    pointer_px: Option<PhysicalPosition<f64>>,
    events: Vec<Event>,
    /// Parameters that were set since the last step.
    params: Vec<(String, ParamValue)>,
    /// What came in since it was taken, where somebody writes it down.
    tape: Option<Vec<Arrival>>,
}

impl Devices {
    /// Remembers from now on what comes in, for [`Devices::take_tape`].
    pub fn record(&mut self) {
        self.tape = Some(Vec::new());
    }

    /// What came in since the last call, in order; nothing where nobody records.
    pub fn take_tape(&mut self) -> Vec<Arrival> {
        self.tape.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn note(&mut self, arrival: impl FnOnce() -> Arrival) {
        if let Some(tape) = &mut self.tape {
            tape.push(arrival());
        }
    }

    /// The picture's size, px; sides of 0 are ignored.
    pub fn resize(&mut self, size_px: [u32; 2]) {
        if size_px.contains(&0) || size_px == self.size_px {
            return;
        }
        self.size_px = size_px;
        self.note(|| Arrival::Size(size_px));
        let [width, height] = size_px.map(f64::from);
        self.input.aspect = (width / height) as f32;
        self.push("resize", "", vec![width, height]);
    }

    /// The picture's size, px; 0 before there is one.
    #[must_use]
    pub fn size_px(&self) -> [u32; 2] {
        self.size_px
    }

    /// Takes in one event that nothing above the picture has used.
    pub fn on(&mut self, event: &WindowEvent) {
        match event {
            WindowEvent::KeyboardInput { event, .. } => {
                let name = key_name(&event.logical_key);
                if event.state == ElementState::Released {
                    if let Some(name) = self.held.remove(&event.physical_key) {
                        self.note(|| Arrival::LetGo(name));
                    }
                } else if let Some(name) = name.filter(|_| !event.repeat) {
                    self.held.insert(event.physical_key, name.clone());
                    self.note(|| Arrival::Hold(name.clone()));
                    self.push("key", &name, Vec::new());
                }
            }
            WindowEvent::CursorMoved { position, .. } => self.move_pointer(*position),
            WindowEvent::CursorEntered { .. } => self.enter(),
            WindowEvent::CursorLeft { .. } => {
                self.note(|| Arrival::Pointer(None));
                self.input.pointer_inside = false;
                self.pointer_px = None;
                self.push("pointer_leave", "", Vec::new());
            }
            WindowEvent::MouseInput { state, button, .. } => {
                if let Some(name) = button_name(*button) {
                    self.press(name, *state == ElementState::Pressed);
                }
            }
            WindowEvent::MouseWheel { delta, .. } => {
                self.turn_wheel(match delta {
                    MouseScrollDelta::LineDelta(_, y) => *y,
                    MouseScrollDelta::PixelDelta(p) => (p.y / PX_PER_NOTCH) as f32,
                });
            }
            WindowEvent::Touch(touch) => self.touch(touch),
            WindowEvent::Focused(false) => self.release_all(),
            _ => {}
        }
    }

    /// Puts the pointer somewhere on the picture (x right, y up, -1 to 1).
    pub fn point(&mut self, at: DVec2) {
        if at.is_finite() {
            let [width, height] = self.size_px.map(|side| f64::from(side.max(1)));
            self.move_pointer(PhysicalPosition {
                x: 0.5 * (at.x + 1.0) * width,
                y: 0.5 * (1.0 - at.y) * height,
            });
        }
    }

    /// The pointer has come onto the picture.
    pub fn enter(&mut self) {
        self.note(|| Arrival::Enter);
        self.input.pointer_inside = true;
        self.push_at_pointer("pointer_enter", "");
    }

    /// The pointer does not travel to where it is next, as a finger that comes down elsewhere.
    pub fn jump(&mut self) {
        if self.pointer_px.take().is_some() {
            self.note(|| Arrival::Jump);
        }
    }

    /// A key or a pad's button goes down, by the name that scripts use.
    pub fn hold(&mut self, name: &str) {
        self.note(|| Arrival::Hold(name.to_owned()));
        self.buttons.insert(name.to_owned(), None);
        self.push("key", name, Vec::new());
    }

    /// It is held no longer; for a button of the mouse or a finger that is no click.
    pub fn let_go(&mut self, name: &str) {
        if self.buttons.remove(name).is_some() {
            self.note(|| Arrival::LetGo(name.to_owned()));
        }
    }

    /// The pointer has left the picture.
    pub fn point_away(&mut self) {
        if std::mem::take(&mut self.input.pointer_inside) {
            self.note(|| Arrival::Pointer(None));
            self.pointer_px = None;
            self.push("pointer_leave", "", Vec::new());
        }
    }

    /// Presses or releases a mouse button by its name.
    pub fn mouse_button(&mut self, name: &str, is_down: bool) {
        self.press(name, is_down);
    }

    /// A key was struck, by the name that scripts use.
    pub fn key(&mut self, name: &str) {
        self.push("key", name, Vec::new());
    }

    /// Notches of the wheel, positive away from the user.
    pub fn turn_wheel(&mut self, notches: f32) {
        self.note(|| Arrival::Wheel(notches));
        self.input.wheel += notches;
    }

    /// The gamepad's left stick, -1 to 1, y up.
    pub fn stick(&mut self, stick: Vec2) {
        if stick != self.input.stick {
            self.note(|| Arrival::Stick(stick.to_array()));
        }
        self.input.stick = stick;
    }

    /// A gamepad's button by its name; pressing one is a key event too.
    pub fn pad_button(&mut self, name: &'static str, is_down: bool) {
        if !is_down {
            self.let_go(name);
        } else if !self.buttons.contains_key(name) {
            self.hold(name);
        }
    }

    /// The gamepad was pulled out.
    pub fn pad_lost(&mut self) {
        self.stick(Vec2::ZERO);
        let held: Vec<String> = self.buttons.keys().cloned().collect();
        for name in held.iter().filter(|name| name.starts_with("pad_")) {
            self.let_go(name);
        }
    }

    /// A phone's turn against its first reading, degrees; `None` once it is gone.
    pub fn gyro(&mut self, turn_deg: impl Into<Option<Vec3>>) {
        let turn_deg = turn_deg.into();
        if turn_deg != self.input.gyro_deg {
            self.note(|| Arrival::Gyro(turn_deg.map(|v| v.to_array())));
        }
        self.input.gyro_deg = turn_deg;
    }

    /// Something that was sent from outside.
    pub fn message(&mut self, event: Event) {
        self.note(|| Arrival::Message(event.name.clone(), event.values.clone()));
        self.events.push(event);
    }

    /// A parameter was set, by a slider, a message or a controller.
    pub fn param(&mut self, name: &str, value: ParamValue) {
        self.note(|| Arrival::Param(name.to_owned(), value.clone()));
        self.params.retain(|(known, _)| known != name);
        self.params.push((name.to_owned(), value));
    }

    /// The parameters that were set since the last call, each once.
    pub fn take_params(&mut self) -> Vec<(String, ParamValue)> {
        std::mem::take(&mut self.params)
    }

    /// The target that the pointer is over.
    pub fn over(&mut self, target: Option<u32>) {
        self.input.over = target;
    }

    /// The pixel under the pointer, from the top left corner; `None` while it is outside.
    #[must_use]
    pub fn pointer_pixel(&self) -> Option<[u32; 2]> {
        let at = self.pointer_px.filter(|_| self.input.pointer_inside)?;
        let [width, height] = self.size_px;
        let inside = at.x >= 0.0 && at.y >= 0.0;
        let pixel = [at.x as u32, at.y as u32];
        (inside && pixel[0] < width && pixel[1] < height).then_some(pixel)
    }

    /// The pixel of the last click that no script has seen yet.
    #[must_use]
    pub fn clicked_pixel(&self) -> Option<[u32; 2]> {
        let click = self.events.iter().rfind(|event| event.kind == "click")?;
        let [x, y] = click.values.as_slice() else {
            return None;
        };
        let [width, height] = self.size_px.map(f64::from);
        // As `move_pointer` made them.
        let at = [0.5 * (x + 1.0) * width, 0.5 * (1.0 - y) * height];
        let pixel = [0, 1].map(|i| (at[i] as u32).min(self.size_px[i].saturating_sub(1)));
        Some(pixel)
    }

    /// The first finger is a pointer with a button that is down; when it is lifted the pointer goes
    /// back to the middle.
    fn touch(&mut self, touch: &Touch) {
        // Only a finger that comes down can be the first.
        if self.finger.is_none() && touch.phase == TouchPhase::Started {
            self.finger = Some(touch.id);
        }
        if self.finger != Some(touch.id) {
            return;
        }
        match touch.phase {
            TouchPhase::Started => {
                // A finger does not travel between two touches.
                self.jump();
                self.move_pointer(touch.location);
                self.press(TOUCH, true);
            }
            TouchPhase::Moved => self.move_pointer(touch.location),
            TouchPhase::Ended | TouchPhase::Cancelled => {
                if touch.phase == TouchPhase::Cancelled {
                    self.let_go(TOUCH);
                }
                self.lift_finger();
            }
        }
    }

    /// The finger is lifted: a click where it did not travel, and the pointer is back in the middle.
    pub fn lift_finger(&mut self) {
        self.press(TOUCH, false);
        self.finger = None;
        self.pointer_px = None;
        self.input.pointer = Vec2::ZERO;
        self.input.pointer_inside = false;
        self.push("pointer_leave", "", Vec::new());
    }

    /// Lets go of everything that is held: the window will not hear of the release.
    pub fn release_all(&mut self) {
        self.note(|| Arrival::LetGoAll);
        self.held.clear();
        self.buttons.clear();
        self.finger = None;
        self.input.stick = Vec2::ZERO;
    }

    /// The state now. Travel and wheel are those since the last [`Devices::step_done`].
    pub fn input(&mut self) -> &Input {
        let mut held: Vec<String> = self.held.values().cloned().collect();
        held.extend(self.buttons.keys().cloned());
        held.sort_unstable();
        held.dedup();
        self.input.held = held;
        &self.input
    }

    /// The script has seen travel and wheel.
    pub fn step_done(&mut self) {
        self.input.drag = Vec2::ZERO;
        self.input.wheel = 0.0;
    }

    /// Events since the last call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn move_pointer(&mut self, position: PhysicalPosition<f64>) {
        let [width, height] = self.size_px.map(|side| f64::from(side.max(1)));
        self.note(|| {
            let x = 2.0 * position.x / width - 1.0;
            Arrival::Pointer(Some([x, 1.0 - 2.0 * position.y / height]))
        });
        if let Some(before) = self.pointer_px {
            let travel = Vec2::new(
                ((position.x - before.x) / height) as f32,
                ((before.y - position.y) / height) as f32,
            );
            self.input.drag += travel;
        }
        self.pointer_px = Some(position);
        self.input.pointer_inside = true;
        // A drag may leave the window; the pointer on the picture stays on it.
        self.input.pointer = Vec2::new(
            (2.0 * position.x / width - 1.0) as f32,
            (1.0 - 2.0 * position.y / height) as f32,
        )
        .clamp(Vec2::NEG_ONE, Vec2::ONE);
    }

    fn press(&mut self, name: &str, is_down: bool) {
        if is_down {
            self.note(|| Arrival::Press(name.to_owned()));
            self.buttons.insert(name.to_owned(), self.pointer_px);
            return;
        }
        self.note(|| Arrival::Release(name.to_owned()));
        let pressed_px = self.buttons.remove(name).flatten();
        let is_click = match (pressed_px, self.pointer_px) {
            (Some(a), Some(b)) => (a.x - b.x).hypot(a.y - b.y) <= CLICK_TRAVEL_PX_MAX,
            _ => false,
        };
        if is_click {
            self.push_at_pointer("click", name);
        }
    }

    fn push_at_pointer(&mut self, kind: &str, name: &str) {
        let pointer = self.input.pointer;
        self.push(kind, name, vec![pointer.x.into(), pointer.y.into()]);
    }

    fn push(&mut self, kind: &str, name: &str, values: Vec<f64>) {
        self.events.push(Event {
            kind: kind.to_owned(),
            name: name.to_owned(),
            values,
            target: None,
            row: None,
        });
    }
}

fn button_name(button: MouseButton) -> Option<&'static str> {
    match button {
        MouseButton::Left => Some("mouse_left"),
        MouseButton::Right => Some("mouse_right"),
        MouseButton::Middle => Some("mouse_middle"),
        MouseButton::Back => Some("mouse_back"),
        MouseButton::Forward => Some("mouse_forward"),
        MouseButton::Other(_) => None,
    }
}

/// What a script calls a key: the character in lower case, or winit's name in snake_case
/// (`arrow_up`, `shift`, `f1`). `None` for keys that have no name of their own.
#[must_use]
pub fn key_name(key: &Key) -> Option<String> {
    match key {
        Key::Character(text) => Some(text.to_lowercase()),
        Key::Named(named) => {
            let mut name = String::new();
            for (index, letter) in format!("{named:?}").chars().enumerate() {
                if index > 0 && letter.is_ascii_uppercase() {
                    name.push('_');
                }
                name.push(letter.to_ascii_lowercase());
            }
            Some(name)
        }
        Key::Unidentified(_) | Key::Dead(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use winit::event::DeviceId;
    use winit::keyboard::NamedKey;

    #[test]
    fn keys_have_the_names_that_scripts_use() {
        let named = |key| key_name(&Key::Named(key)).unwrap();
        assert_eq!(named(NamedKey::ArrowUp), "arrow_up");
        assert_eq!(named(NamedKey::Shift), "shift");
        assert_eq!(named(NamedKey::F11), "f11");
        assert_eq!(named(NamedKey::PageDown), "page_down");
        assert_eq!(key_name(&Key::Character("W".into())).unwrap(), "w");
        assert_eq!(key_name(&Key::Dead(None)), None);
    }

    fn moved(x: f64, y: f64) -> WindowEvent {
        WindowEvent::CursorMoved {
            device_id: DeviceId::dummy(),
            position: PhysicalPosition { x, y },
        }
    }

    fn button(state: ElementState) -> WindowEvent {
        WindowEvent::MouseInput {
            device_id: DeviceId::dummy(),
            state,
            button: MouseButton::Left,
        }
    }

    #[test]
    fn the_pointer_is_on_the_picture_and_a_drag_is_in_picture_heights() {
        let mut devices = Devices::default();
        devices.resize([200, 100]);
        devices.on(&moved(0.0, 0.0));
        assert_eq!(devices.input().pointer, Vec2::new(-1.0, 1.0), "top left");
        devices.on(&moved(200.0, 50.0));
        let input = devices.input().clone();
        assert_eq!(input.pointer, Vec2::new(1.0, 0.0), "right edge");
        assert_eq!(input.drag, Vec2::new(2.0, -0.5), "right and down");
        assert!((input.aspect - 2.0).abs() < 1e-6, "aspect");
        devices.step_done();
        assert_eq!(devices.input().drag, Vec2::ZERO, "seen once");
    }

    #[test]
    fn a_click_is_a_press_that_stays_where_it_was() {
        let mut devices = Devices::default();
        devices.resize([200, 100]);
        devices.on(&moved(100.0, 50.0));
        devices.take_events();
        devices.on(&button(ElementState::Pressed));
        assert_eq!(devices.input().held, ["mouse_left"], "held");
        devices.on(&button(ElementState::Released));
        let clicks = devices.take_events();
        assert_eq!(clicks.len(), 1, "one click");
        assert_eq!(clicks[0].name, "mouse_left");
        devices.on(&button(ElementState::Pressed));
        devices.on(&moved(120.0, 50.0));
        devices.on(&button(ElementState::Released));
        assert!(devices.take_events().is_empty(), "a drag is no click");
    }

    #[test]
    fn a_finger_points_while_it_is_down_and_a_tap_is_a_click() {
        let mut devices = Devices::default();
        devices.resize([200, 100]);
        let finger = |phase, x: f64, id| {
            WindowEvent::Touch(Touch {
                device_id: DeviceId::dummy(),
                phase,
                location: PhysicalPosition { x, y: 25.0 },
                force: None,
                id,
            })
        };
        devices.take_events();
        devices.on(&finger(TouchPhase::Started, 150.0, 1));
        devices.on(&finger(TouchPhase::Started, 20.0, 2));
        assert_eq!(
            devices.input().pointer,
            Vec2::new(0.5, 0.5),
            "the first one"
        );
        assert_eq!(devices.input().held, ["touch"]);
        assert_eq!(devices.pointer_pixel(), Some([150, 25]));
        devices.on(&finger(TouchPhase::Ended, 151.0, 1));
        assert_eq!(
            devices.clicked_pixel(),
            Some([150, 25]),
            "where it came down"
        );
        assert_eq!(devices.input().pointer, Vec2::ZERO, "back to the middle");
        assert!(!devices.input().pointer_inside && devices.pointer_pixel().is_none());
        let kinds: Vec<String> = devices.take_events().into_iter().map(|e| e.kind).collect();
        assert_eq!(kinds, ["click", "pointer_leave"]);
    }

    #[test]
    fn a_pad_that_is_pulled_out_lets_go() {
        let mut devices = Devices::default();
        devices.stick(Vec2::new(0.5, -1.0));
        devices.pad_button("pad_south", true);
        devices.pad_button("pad_south", true);
        assert_eq!(devices.take_events().len(), 1, "pressed once");
        assert_eq!(devices.input().held, ["pad_south"]);
        devices.pad_lost();
        assert_eq!(devices.input().stick, Vec2::ZERO);
        assert!(devices.input().held.is_empty());
    }

    #[test]
    fn nothing_stays_held_when_the_focus_goes() {
        let mut devices = Devices::default();
        devices.resize([200, 100]);
        devices.on(&button(ElementState::Pressed));
        devices.on(&WindowEvent::Focused(false));
        assert!(devices.input().held.is_empty(), "let go");
    }
}
