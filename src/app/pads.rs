//! Gamepads: the left stick and the buttons of whichever pad was used last, into [`Devices`].
//!
//! A pad that is pulled out lets everything go. A machine on which gamepads cannot be read is said so
//! once in the log and plays without.

use super::input::Devices;
use gilrs::{Axis, Button, EventType, GamepadId, Gilrs};
use glam::Vec2;

/// Share of the stick's way around its middle that counts as rest: worn sticks drift by a tenth.
const DEAD_ZONE: f32 = 0.15;

/// All pads of the machine.
#[derive(Debug)]
pub struct Pads {
    gilrs: Option<Gilrs>,
    active: Option<GamepadId>,
}

impl Pads {
    /// Starts listening.
    #[must_use]
    pub fn new() -> Self {
        let gilrs = match Gilrs::new() {
            Ok(gilrs) => Some(gilrs),
            // No driver, but pads that are fed by hand would work.
            Err(gilrs::Error::NotImplemented(gilrs)) => Some(gilrs),
            Err(error) => {
                tracing::info!("gamepads cannot be read: {error}");
                None
            }
        };
        Self {
            gilrs,
            active: None,
        }
    }

    /// Takes in what has happened since the last call.
    pub fn poll(&mut self, devices: &mut Devices) {
        let Some(gilrs) = &mut self.gilrs else { return };
        while let Some(event) = gilrs.next_event() {
            match event.event {
                EventType::Connected => {
                    tracing::info!("gamepad: {}", gilrs.gamepad(event.id).name());
                }
                EventType::Disconnected => {
                    tracing::info!("a gamepad is gone");
                    if self.active == Some(event.id) {
                        self.active = None;
                    }
                    // Whichever it was: a button that stays down for ever is worse than one that
                    // has to be pressed again.
                    devices.pad_lost();
                }
                EventType::ButtonPressed(button, _) => {
                    self.active = Some(event.id);
                    if let Some(name) = button_name(button) {
                        devices.pad_button(name, true);
                    }
                }
                EventType::ButtonReleased(button, _) => {
                    if let Some(name) = button_name(button) {
                        devices.pad_button(name, false);
                    }
                }
                EventType::AxisChanged(Axis::LeftStickX | Axis::LeftStickY, ..) => {
                    self.active = Some(event.id);
                    let pad = gilrs.gamepad(event.id);
                    let stick = Vec2::new(pad.value(Axis::LeftStickX), pad.value(Axis::LeftStickY));
                    devices.stick(without_dead_zone(stick));
                }
                _ => {}
            }
        }
    }
}

impl Default for Pads {
    fn default() -> Self {
        Self::new()
    }
}

/// The stick's place with rest at exactly 0 and the rim at exactly 1.
fn without_dead_zone(stick: Vec2) -> Vec2 {
    let length = stick.length();
    if !stick.is_finite() || length <= DEAD_ZONE {
        return Vec2::ZERO;
    }
    stick / length * ((length - DEAD_ZONE) / (1.0 - DEAD_ZONE)).min(1.0)
}

/// What scripts call a button; places, not letters, since makers disagree on those.
fn button_name(button: Button) -> Option<&'static str> {
    Some(match button {
        Button::South => "pad_south",
        Button::East => "pad_east",
        Button::North => "pad_north",
        Button::West => "pad_west",
        Button::LeftTrigger => "pad_left_shoulder",
        Button::RightTrigger => "pad_right_shoulder",
        Button::LeftTrigger2 => "pad_left_trigger",
        Button::RightTrigger2 => "pad_right_trigger",
        Button::Select => "pad_select",
        Button::Start => "pad_start",
        Button::LeftThumb => "pad_left_stick",
        Button::RightThumb => "pad_right_stick",
        Button::DPadUp => "pad_up",
        Button::DPadDown => "pad_down",
        Button::DPadLeft => "pad_left",
        Button::DPadRight => "pad_right",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worn_stick_rests_at_nothing_and_a_full_one_is_one() {
        assert_eq!(without_dead_zone(Vec2::new(0.1, -0.05)), Vec2::ZERO);
        assert!((without_dead_zone(Vec2::Y) - Vec2::Y).length() < 1e-6);
        // Corners of square gates lie beyond the circle.
        assert!((without_dead_zone(Vec2::ONE).length() - 1.0).abs() < 1e-6);
        assert_eq!(without_dead_zone(Vec2::new(f32::NAN, 0.0)), Vec2::ZERO);
        assert!(
            without_dead_zone(Vec2::X * 0.16).x < 0.02,
            "no jump at the edge"
        );
    }
}
