//! A window's surface and device: drawn on, resized, minimised, lost and built anew. Runs itself a second
//! time under Xvfb, since a display is chosen by the environment.

use super::reload::Xvfb;
use splatstage::app::screen::{Outcome, Screen};
use splatstage::frame::Frame;
use splatstage::gpu::Settings;
use std::process::Command;
use std::sync::Arc;
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, EventLoop};
use winit::platform::x11::EventLoopBuilderExtX11;
use winit::window::{Window, WindowId};

#[test]
fn a_surface_survives_resizing_minimising_and_the_loss_of_its_device() {
    let Some(display) = Xvfb::start() else {
        return;
    };
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "window::on_a_display",
            "--ignored",
            "--nocapture",
        ])
        .env("DISPLAY", &display.display)
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "the second run: {text}"
    );
}

#[test]
#[ignore = "needs a display of its own; the test above starts it"]
fn on_a_display() {
    let event_loop = EventLoop::builder().with_any_thread(true).build().unwrap();
    let mut check = Check { is_done: false };
    event_loop.run_app(&mut check).unwrap();
    assert!(check.is_done, "the window came");
}

struct Check {
    is_done: bool,
}

impl ApplicationHandler for Check {
    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        let size = PhysicalSize::new(64, 48);
        let attributes = Window::default_attributes().with_inner_size(size);
        let window = Arc::new(event_loop.create_window(attributes).unwrap());
        check_screen(Screen::new(window, None, Settings::default()).unwrap());
        self.is_done = true;
        event_loop.exit();
    }

    fn window_event(&mut self, _: &ActiveEventLoop, _: WindowId, _: WindowEvent) {}
}

fn check_screen(mut screen: Screen) {
    let present = |screen: &mut Screen| {
        let mut is_submitted = false;
        let outcome = screen
            .present(
                &Frame::default(),
                None,
                |_, _, _| (),
                || is_submitted = true,
            )
            .unwrap();
        let is_presented = matches!(outcome, Outcome::Presented(_));
        assert_eq!(is_submitted, is_presented, "submitted means drawn");
        outcome
    };
    assert!(
        matches!(present(&mut screen), Outcome::Presented(_)),
        "drawn"
    );
    screen.resize([0, 0]);
    assert!(
        matches!(present(&mut screen), Outcome::Skipped),
        "nothing to draw on"
    );
    screen.resize([64, 48]);
    assert!(
        matches!(present(&mut screen), Outcome::Presented(_)),
        "back again"
    );
    for _ in 0..3 {
        lose_device(&screen);
        // The loss is told with the device's next work, so a picture may be skipped first.
        let is_replaced = (0..3).any(|_| matches!(present(&mut screen), Outcome::DeviceReplaced));
        assert!(is_replaced, "built anew");
        assert!(
            matches!(present(&mut screen), Outcome::Presented(_)),
            "drawn on the new device"
        );
    }
    lose_device(&screen);
    let given_up = (0..3).find_map(|_| {
        let outcome = screen.present(&Frame::default(), None, |_, _, _| (), || ());
        outcome.err().map(|error| error.to_string())
    });
    let text = given_up.unwrap_or_default();
    assert!(text.contains("lost 4 times"), "not for ever: {text}");
}

fn lose_device(screen: &Screen) {
    screen.context().device.destroy();
}
