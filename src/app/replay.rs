//! Input from a file instead of a hand: what happens when, in scene time, for `--input LOG`.
//!
//! A log is text, one JSON object a line: `t` (seconds, never falling) and any of `pointer` ([x, y],
//! -1 to 1, y up, or null when it leaves), `press` and `release` (`mouse_left`, `touch`, ...), `key`
//! (struck once), `wheel` (notches), `stick` ([x, y]), `gyro` ([x, y, z] degrees, or null), `message`
//! ({name, values}), `param` ({name, value}). Empty lines and lines that start with `#` are skipped.
//!
//! What `play --record` writes ([`super::record`]) says more, so that it comes in exactly as it did: `size`
//! ([width, height], px), `enter`, `jump`, `hold` and `let_go` (keys and pads), `let_go_all`, and `tick`: here
//! the window looked at all of the lines before, at `now` (s by its own clock), when `seen` (a target's
//! number and the row of its splat, or null) was under the pointer; `left_out` are ranges of steps ([first, end]) for which it had no
//! time. A log with ticks is not looked at by itself.
//!
//! A [`Player`] runs a scene under such a log. What the pointer is over is worked out by the CPU
//! reference at a fixed [`LOOK_HZ`] of scene time, so that it depends neither on the machine nor on
//! how many pictures are asked for.

use super::input::{Arrival, Devices, TOUCH};
use super::senses::{Met, Senses, met};
use super::session::Session;
use crate::audio::{Listener, VoiceSpec};
use crate::frame::{Cue, Event, Frame, Input};
use crate::script::{Changed, ParamValue};
use crate::{reference, script};
use anyhow::{Context as _, bail};
use glam::{DVec2, Vec2, Vec3};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::Path;

/// How often a replay looks what the pointer is over, as a window does on most monitors.
pub const LOOK_HZ: u32 = 60;
/// Largest log that is read, bytes: hours of a moving pointer.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// One line of a log.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub t: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<[u32; 2]>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enter: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub jump: bool,
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub pointer: Option<Option<[f64; 2]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub press: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub let_go: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_go_all: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wheel: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stick: Option<[f32; 2]>,
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub gyro: Option<Option<[f32; 3]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<SetParam>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Tick>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetParam {
    name: String,
    value: ParamValue,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    name: String,
    #[serde(default)]
    values: Vec<f64>,
}

/// The window made a picture.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tick {
    /// By the window's clock, seconds.
    pub now: f64,
    /// What is under the pointer, where that is known anew.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub seen: Option<Option<Met>>,
    /// No script was there to hear of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheard: bool,
    /// Steps that were not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<[u64; 2]>,
    /// The scene was loaded anew for a parameter, at this scene time, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<f64>,
}

impl Line {
    /// The line that makes this come in again.
    pub(super) fn of(t_s: f64, arrival: Arrival) -> Self {
        let mut line = Self {
            t: t_s,
            ..Self::default()
        };
        match arrival {
            Arrival::Size(size_px) => line.size = Some(size_px),
            Arrival::Enter => line.enter = true,
            Arrival::Pointer(at) => line.pointer = Some(at),
            Arrival::Jump => line.jump = true,
            Arrival::Press(name) => line.press = Some(name),
            Arrival::Release(name) => line.release = Some(name),
            Arrival::Hold(name) => line.hold = Some(name),
            Arrival::LetGo(name) => line.let_go = Some(name),
            Arrival::LetGoAll => line.let_go_all = true,
            Arrival::Wheel(notches) => line.wheel = Some(notches),
            Arrival::Stick(at) => line.stick = Some(at),
            Arrival::Gyro(turn_deg) => line.gyro = Some(turn_deg),
            Arrival::Message(name, values) => line.message = Some(Message { name, values }),
            Arrival::Param(name, value) => line.param = Some(SetParam { name, value }),
        }
        line
    }
}

/// Buttons that a line can press.
const BUTTONS: [&str; 6] = [
    "mouse_left",
    "mouse_right",
    "mouse_middle",
    "mouse_back",
    "mouse_forward",
    TOUCH,
];

impl Line {
    /// What no hand could do.
    fn check(&self) -> Result<(), String> {
        for name in self.press.iter().chain(&self.release) {
            if !BUTTONS.contains(&name.as_str()) {
                let known = BUTTONS.join(", ");
                return Err(format!("no button '{name}'; there is {known}"));
            }
        }
        let [x, y] = self.pointer.flatten().unwrap_or_default();
        let [stick_x, stick_y] = self.stick.unwrap_or_default().map(f64::from);
        let numbers = [
            ("wheel", [self.wheel.unwrap_or(0.0).into(), 0.0, 0.0]),
            ("pointer", [x, y, 0.0]),
            ("stick", [stick_x, stick_y, 0.0]),
            (
                "gyro",
                self.gyro.flatten().unwrap_or_default().map(f64::from),
            ),
        ];
        for (field, values) in numbers {
            let is_wild = |v: &&f64| !v.is_finite() || v.abs() > NUMBER_MAX;
            if let Some(value) = values.iter().find(is_wild) {
                return Err(format!("{field}: {value} is beyond {NUMBER_MAX}"));
            }
        }
        Ok(())
    }
}

/// Times that are as close as this are one, seconds: a number that was written and read may differ in its
/// last bit, and no window makes two pictures in a nanosecond.
const SAME_S: f64 = 1e-9;

/// Largest number of a line.
const NUMBER_MAX: f64 = 1e6;

/// Tells `null` from a field that is not there.
fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Everything that comes in, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    lines: Vec<Line>,
}

impl Log {
    /// Reads a log from disk.
    ///
    /// # Errors
    /// Not there, too large, or a line that says nothing understood: `file:line: why`.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let reading = || format!("{shown}: cannot be read");
        // A pipe or device does not say how long it is.
        let file = std::fs::File::open(path).with_context(reading)?;
        let mut text = String::new();
        let mut bounded = file.take(LOG_BYTES_MAX + 1);
        bounded.read_to_string(&mut text).with_context(reading)?;
        if text.len() as u64 > LOG_BYTES_MAX {
            bail!("{shown}: more than the {LOG_BYTES_MAX} bytes that an input log may have");
        }
        Self::parse(&text, &shown.to_string())
    }

    /// Reads a log; `name` is what messages call it.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn parse(text: &str, name: &str) -> anyhow::Result<Self> {
        let mut lines: Vec<Line> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line: Line = serde_json::from_str(line).map_err(|error| {
                // The column is right, the line would always be 1.
                let why = error.to_string();
                let why = why.split(" at line ").next().unwrap_or_default();
                anyhow::anyhow!("{name}:{number}: {why}")
            })?;
            line.check()
                .map_err(|why| anyhow::anyhow!("{name}:{number}: {why}"))?;
            if lines.last().is_some_and(|before| line.t < before.t) {
                bail!(
                    "{name}:{number}: t falls to {} s; lines come in order of time",
                    line.t
                );
            }
            lines.push(line);
        }
        Ok(Self { lines })
    }

    /// Whether it says when its window looked.
    fn is_recorded(&self) -> bool {
        self.lines.iter().any(|line| line.tick.is_some())
    }

    /// True when nothing comes in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A scene and the log that it runs under.
pub struct Player {
    session: Session,
    log: Log,
    /// Lines that have been taken in.
    done: usize,
    devices: Devices,
    senses: Senses,
    /// Looks that have been taken.
    looks: u64,
    /// Of a recorded log: lines of a tick have been taken in, and the tick has not come.
    is_in_tick: bool,
}

impl Player {
    /// A scene, its log (may be empty), and the size of the pictures, px.
    #[must_use]
    pub fn new(session: Session, log: Log, size: [u32; 2]) -> Self {
        let mut devices = Devices::default();
        // What was recorded began at a size of its own.
        let first_size = log.lines.first().and_then(|line| line.size);
        devices.resize(first_size.unwrap_or(size));
        if log.is_empty() {
            // Nobody is there: a scene sees no pointer and no event at all.
            devices.take_events();
        }
        Self {
            session,
            log,
            done: 0,
            devices,
            senses: Senses::default(),
            looks: 0,
            is_in_tick: false,
        }
    }

    /// The scene.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Loads the scene.
    ///
    /// # Errors
    /// As [`Session::reload`].
    pub fn load(&mut self) -> Result<Frame, script::Error> {
        let input = self.devices.input().clone();
        self.session.reload(0.0, &input)
    }

    /// The frame at `t_s`. With a log, times must not go backwards.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn frame(&mut self, t_s: f64) -> Result<Frame, script::Error> {
        if self.log.is_recorded() {
            self.take_in_ticks(t_s)?;
        } else if !self.log.is_empty() {
            loop {
                let look_s = self.looks as f64 / f64::from(LOOK_HZ);
                if look_s > t_s {
                    break;
                }
                self.take_in(look_s)?;
                self.look(look_s)?;
                self.looks += 1;
            }
            self.take_in(t_s)?;
        }
        let frame = self.session.frame(t_s, self.devices.input())?;
        self.devices.step_done();
        Ok(frame)
    }

    /// As [`Session::exposed`], of the frame that [`Player::frame`] returned last.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn exposed(&mut self, frame: &Frame, f: f64) -> Result<Frame, script::Error> {
        self.session.exposed(frame, f)
    }

    /// As [`Session::cues`].
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn cues(&mut self, from_s: f64, to_s: f64) -> Result<Vec<Cue>, script::Error> {
        self.session.cues(from_s, to_s)
    }

    /// As [`Session::voices`].
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn voices(&mut self, from_s: f64, to_s: f64) -> Result<Vec<VoiceSpec>, script::Error> {
        self.session.voices(from_s, to_s)
    }

    /// Who hears at `t_s`: the scene's ears, or its camera.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn listener(&mut self, t_s: f64) -> Result<Listener, script::Error> {
        match self.session.ears(t_s)? {
            Some(listener) => Ok(listener),
            None => self
                .frame(t_s)
                .map(|frame| Listener::from_camera(&frame.camera)),
        }
    }

    /// Applies all lines up to `t_s`, each at its own time.
    fn take_in(&mut self, t_s: f64) -> Result<(), script::Error> {
        while let Some(line) = self.log.lines.get(self.done).filter(|line| line.t <= t_s) {
            let line = line.clone();
            self.done += 1;
            self.session.advance_to(line.t, self.devices.input())?;
            self.devices.step_done();
            apply(&mut self.devices, &line);
            if line.press.is_some() {
                // A tap may end before the next look.
                self.look(line.t)?;
            }
            if self.set_params()? {
                let input = self.devices.input().clone();
                self.session.reload(line.t, &input)?;
            }
            let events = self.devices.take_events();
            self.tell(events, line.t)?;
        }
        Ok(())
    }

    /// Makes everything before `t_s` come in as a window had it come in: up to each tick's time the steps
    /// have run, then all its lines arrive at once, the script hears of them, and time goes on.
    fn take_in_ticks(&mut self, t_s: f64) -> Result<(), script::Error> {
        let is_due = |line: &&Line| line.t < t_s - SAME_S;
        while let Some(line) = self.log.lines.get(self.done).filter(is_due) {
            let line = line.clone();
            self.done += 1;
            if !std::mem::replace(&mut self.is_in_tick, true) {
                self.session.advance_to(line.t, self.devices.input())?;
                self.devices.step_done();
            }
            apply(&mut self.devices, &line);
            let Some(tick) = line.tick else { continue };
            self.is_in_tick = false;
            let mut events = match tick.seen {
                Some(met) => {
                    let pointer = self.devices.input().pointer.as_dvec2().to_array();
                    self.senses.see(met, pointer)
                }
                None => Vec::new(),
            };
            events.extend(self.senses.complete(self.devices.take_events(), tick.now));
            self.devices.over(self.senses.over());
            let loads = self.set_params()?;
            if let (true, Some(loaded_s)) = (loads, tick.loaded) {
                let input = self.devices.input().clone();
                match self.session.reload(loaded_s, &input) {
                    // A new version has not been told what the pointer is over.
                    Ok(_) => self.senses = Senses::default(),
                    // The former version played on, here as there.
                    Err(error) => tracing::warn!("{error}"),
                }
            }
            if tick.unheard {
                self.devices.step_done();
                continue;
            }
            if let Some(script) = self.session.script_mut() {
                script.leave_out(tick.left_out.iter().map(|[first, end]| *first..*end));
            }
            events
                .iter()
                .try_for_each(|event| self.session.event(event))?;
        }
        Ok(())
    }

    /// Hands on the parameters that came in; true where one of them takes a load.
    fn set_params(&mut self) -> Result<bool, script::Error> {
        let mut loads = false;
        for (name, value) in self.devices.take_params() {
            match self.session.set_param(&name, &value) {
                Ok(changed) => loads |= changed == Changed::ByLoading,
                // In a window that is a line of its own, and the scene plays on.
                Err(why) => tracing::warn!("{why}"),
            }
        }
        Ok(loads)
    }

    fn look(&mut self, t_s: f64) -> Result<(), script::Error> {
        let Some(pixel) = self.devices.pointer_pixel() else {
            return self.saw(None);
        };
        let frame = self.session.frame(t_s, self.devices.input())?;
        self.devices.step_done();
        let hit = if frame.has_targets() {
            reference::pick(&frame, self.devices.size_px(), pixel)
        } else {
            None
        };
        self.saw(met(hit))
    }

    fn saw(&mut self, met: Option<Met>) -> Result<(), script::Error> {
        let pointer = self.devices.input().pointer.as_dvec2().to_array();
        self.devices.over(met.map(|(target, _)| target));
        let events = self.senses.see(met, pointer);
        events
            .iter()
            .try_for_each(|event| self.session.event(event))
    }

    fn tell(&mut self, events: Vec<Event>, t_s: f64) -> Result<(), script::Error> {
        let events = self.senses.complete(events, t_s);
        events
            .iter()
            .try_for_each(|event| self.session.event(event))
    }

    /// The devices as they are.
    pub fn input(&mut self) -> &Input {
        self.devices.input()
    }
}

fn apply(devices: &mut Devices, line: &Line) {
    if let Some(size_px) = line.size {
        devices.resize(size_px);
    }
    if line.enter {
        devices.enter();
    }
    if line.jump {
        devices.jump();
    }
    match line.pointer {
        Some(Some(at)) => devices.point(DVec2::from(at)),
        Some(None) => devices.point_away(),
        None => {}
    }
    if let Some(name) = &line.press {
        devices.mouse_button(name, true);
    }
    match &line.release {
        Some(name) if name == TOUCH => devices.lift_finger(),
        Some(name) => devices.mouse_button(name, false),
        None => {}
    }
    if let Some(name) = &line.key {
        devices.key(name);
    }
    if let Some(name) = &line.hold {
        devices.hold(name);
    }
    if let Some(name) = &line.let_go {
        devices.let_go(name);
    }
    if line.let_go_all {
        devices.release_all();
    }
    if let Some(notches) = line.wheel {
        devices.turn_wheel(notches);
    }
    if let Some(stick) = line.stick {
        devices.stick(Vec2::from(stick).clamp_length_max(1.0));
    }
    if let Some(gyro) = line.gyro {
        devices.gyro(gyro.map(Vec3::from));
    }
    if let Some(SetParam { name, value }) = &line.param {
        devices.param(name, value.clone());
    }
    if let Some(message) = &line.message {
        devices.message(Event {
            kind: "message".to_owned(),
            name: message.name.clone(),
            values: message.values.clone(),
            target: None,
            row: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_mean_or_where_they_are_wrong() {
        let log =
            "# a comment\n\n{\"t\": 0.5, \"pointer\": [0, 1]}\n{\"t\": 1, \"pointer\": null}\n";
        let log = Log::parse(log, "a.log").unwrap();
        assert_eq!(log.lines[0].pointer, Some(Some([0.0, 1.0])));
        assert_eq!(log.lines[1].pointer, Some(None));
        assert_eq!(log.lines[1].gyro, None);
        let wrong = |text: &str| Log::parse(text, "a.log").unwrap_err().to_string();
        assert!(wrong("{\"t\": 0}\n{\"t\": -1}").starts_with("a.log:2: t falls"));
        assert!(
            wrong("\n{\"t\": 0, \"pointr\": 1}").starts_with("a.log:2: unknown field `pointr`")
        );
        let button = "{\"t\": 0, \"press\": \"zzz\"}";
        assert!(wrong(button).starts_with("a.log:1: no button 'zzz'"));
        assert!(wrong("{\"t\": 0, \"stick\": [1e9, 0]}").starts_with("a.log:1: stick"));
        assert!(wrong("{}").starts_with("a.log:1: missing field `t`"));
    }
}
