//! Window events to what scripts see: [`Input`] for `step`, [`Event`]s for `event`.
//!
//! It keeps the state between steps (keys held, pointer) and knows no script. Keys are remembered
//! by their place on the keyboard, so that `shift` pressed or let go in between leaves none stuck,
//! and everything is let go when the window loses the focus.

use crate::frame::{Event, Input};
use glam::Vec2;
use std::collections::BTreeMap;
use winit::dpi::PhysicalPosition;
use winit::event::{ElementState, MouseButton, MouseScrollDelta, WindowEvent};
use winit::keyboard::{Key, PhysicalKey};

/// A press and release further apart than this is a drag and no click, px.
const CLICK_TRAVEL_PX_MAX: f64 = 4.0;

/// Pixels of a touchpad's scrolling that make one wheel notch.
const PX_PER_NOTCH: f64 = 40.0;

/// The devices of one window.
#[derive(Debug, Default)]
pub struct Devices {
    input: Input,
    held: BTreeMap<PhysicalKey, String>,
    buttons: BTreeMap<&'static str, Vec2>,
    size_px: [u32; 2],
    pointer_px: Option<PhysicalPosition<f64>>,
    pressed_px: Option<PhysicalPosition<f64>>,
    events: Vec<Event>,
}

impl Devices {
    /// The picture's size, px; sides of 0 are ignored.
    pub fn resize(&mut self, size_px: [u32; 2]) {
        if size_px.contains(&0) || size_px == self.size_px {
            return;
        }
        self.size_px = size_px;
        let [width, height] = size_px.map(f64::from);
        self.input.aspect = (width / height) as f32;
        self.push("resize", "", vec![width, height]);
    }

    /// Takes in one event that nothing above the picture has used.
    pub fn on(&mut self, event: &WindowEvent) {
        match event {
            WindowEvent::KeyboardInput { event, .. } => {
                let name = key_name(&event.logical_key);
                if event.state == ElementState::Released {
                    self.held.remove(&event.physical_key);
                } else if let Some(name) = name.filter(|_| !event.repeat) {
                    self.held.insert(event.physical_key, name.clone());
                    self.push("key", &name, Vec::new());
                }
            }
            WindowEvent::CursorMoved { position, .. } => self.move_pointer(*position),
            WindowEvent::CursorEntered { .. } => {
                self.input.pointer_inside = true;
                self.push_at_pointer("hover", "");
            }
            WindowEvent::CursorLeft { .. } => {
                self.input.pointer_inside = false;
                self.pointer_px = None;
                self.push("leave", "", Vec::new());
            }
            WindowEvent::MouseInput { state, button, .. } => {
                if let Some(name) = button_name(*button) {
                    self.press(name, *state);
                }
            }
            WindowEvent::MouseWheel { delta, .. } => {
                self.input.wheel += match delta {
                    MouseScrollDelta::LineDelta(_, y) => *y,
                    MouseScrollDelta::PixelDelta(p) => (p.y / PX_PER_NOTCH) as f32,
                };
            }
            WindowEvent::Focused(false) => self.release_all(),
            _ => {}
        }
    }

    /// Lets go of everything that is held: the window will not hear of the release.
    pub fn release_all(&mut self) {
        self.held.clear();
        self.buttons.clear();
        self.pressed_px = None;
    }

    /// The state now. Travel and wheel are those since the last [`Devices::step_done`].
    pub fn input(&mut self) -> &Input {
        let mut held: Vec<String> = self.held.values().cloned().collect();
        held.extend(self.buttons.keys().map(|name| (*name).to_owned()));
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

    fn press(&mut self, name: &'static str, state: ElementState) {
        if state == ElementState::Pressed {
            self.buttons.insert(name, self.input.pointer);
            self.pressed_px = self.pointer_px;
            return;
        }
        let was_held = self.buttons.remove(name).is_some();
        let is_click = match (self.pressed_px.take(), self.pointer_px) {
            (Some(a), Some(b)) => (a.x - b.x).hypot(a.y - b.y) <= CLICK_TRAVEL_PX_MAX,
            _ => false,
        };
        if was_held && is_click {
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
    fn nothing_stays_held_when_the_focus_goes() {
        let mut devices = Devices::default();
        devices.resize([200, 100]);
        devices.on(&button(ElementState::Pressed));
        devices.on(&WindowEvent::Focused(false));
        assert!(devices.input().held.is_empty(), "let go");
    }
}
