//! A scene that is played and edited at the same time: which version runs, what is wrong with the
//! newest one, what time it is on stage.
//!
//! A saved file becomes the running version only after it has loaded and made one picture; until
//! then, and for ever if it cannot, the last good version plays on. Each version has at most one
//! error. It knows no window and has no clock: instants are handed in. Files are read by
//! [`Session`], splats by [`AssetCache`] on threads of their own, so that nothing here waits.

use super::assets::AssetCache;
use super::input::Devices;
use super::overlay::Fault;
use super::senses::{Met, Senses};
use super::session::{SceneOptions, Session};
use super::watch::{Change, ContentHash, Loaded, WatchSet};
use crate::audio::{Listener, VoiceSpec};
use crate::frame::{Event, Frame, Input};
use crate::script::{self, Changed};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The slowest that scene time can go, against the clock.
pub const SPEED_MIN: f64 = 1.0 / 16.0;
/// The fastest.
pub const SPEED_MAX: f64 = 8.0;

/// Target of the log lines that tell a reload's story.
pub const RELOAD: &str = "splatstage::reload";

/// Where the window's scene time comes from: the monotonic clock, which can be stopped.
#[derive(Debug)]
struct Clock {
    /// Scene time at `since`.
    t_s: f64,
    since: Instant,
    is_paused: bool,
    /// Scene seconds for each second.
    speed: f64,
    /// Goes on from the beginning after so many seconds.
    loop_s: Option<f64>,
}

impl Clock {
    fn at(t_s: f64, now: Instant) -> Self {
        Self {
            t_s,
            since: now,
            is_paused: false,
            speed: 1.0,
            loop_s: None,
        }
    }

    fn t_s(&self, now: Instant) -> f64 {
        if self.is_paused {
            self.t_s
        } else {
            let t_s =
                self.t_s + self.speed * now.saturating_duration_since(self.since).as_secs_f64();
            match self.loop_s {
                Some(loop_s) if t_s >= loop_s => t_s.rem_euclid(loop_s),
                _ => t_s,
            }
        }
    }

    fn set(&mut self, t_s: f64, now: Instant) {
        (self.t_s, self.since) = (t_s, now);
    }
}

/// A version that runs: what a log line and the error overlay say of it.
#[derive(Clone, Debug)]
pub struct Version {
    /// Counts loads that succeeded, over all scenes of a run.
    pub number: u64,
    /// The file that made it new, and the hash of its content where there is one.
    pub cause: String,
    /// Time of day when it was loaded.
    pub loaded_at: String,
}

/// The scene on stage, and the one that is to follow.
pub struct Live {
    cache: Arc<AssetCache>,
    current: Option<Session>,
    /// Opened and not shown yet: its splats are still loading, or it has an error.
    next: Option<Session>,
    /// What follows is the running scene again, so its time goes on.
    is_next_a_version: bool,
    clock: Clock,
    fault: Option<Fault>,
    version: Option<Version>,
    versions: u64,
    frame: Frame,
    /// The running version failed while making a picture and is not asked again.
    is_halted: bool,
    /// The running version failed while asked for sound and is not asked again.
    is_mute: bool,
    /// The running scene's load was put off: what it is about. It is tried again when splats have
    /// arrived.
    reload_waits: Option<String>,
    /// The same for the scene that is to follow.
    next_waits: Option<String>,
    /// Loaded, and not yet in any submitted frame.
    fresh: Option<Version>,
    script_ms: f64,
    /// A parameter has made the scene load anew, at this scene time, seconds.
    loaded_s: Option<f64>,
    senses: Senses,
    started: Instant,
}

impl Live {
    /// An empty stage. `started` is the zero of the log's `at_ms`.
    #[must_use]
    pub fn new(cache: Arc<AssetCache>, started: Instant) -> Self {
        Self {
            cache,
            current: None,
            next: None,
            is_next_a_version: false,
            clock: Clock::at(0.0, started),
            fault: None,
            version: None,
            versions: 0,
            frame: Frame::default(),
            is_halted: false,
            is_mute: false,
            reload_waits: None,
            next_waits: None,
            fresh: None,
            script_ms: 0.0,
            loaded_s: None,
            senses: Senses::default(),
            started,
        }
    }

    /// Brings a scene on stage, at once or when its splats are there. What plays now plays on
    /// until then.
    ///
    /// # Errors
    /// Nothing on disk that could be a scene; see [`Session::open`].
    pub fn open(
        &mut self,
        options: SceneOptions,
        input: &Input,
        now: Instant,
    ) -> anyhow::Result<()> {
        self.next = Some(Session::open(options, Arc::clone(&self.cache), true)?);
        self.is_next_a_version = false;
        self.try_next("", input, now);
        Ok(())
    }

    /// Opens the running scene anew, as another version of itself.
    fn reopen(&mut self, cause: &str, input: &Input, now: Instant) {
        let Some(session) = &self.current else {
            return;
        };
        match Session::open(session.options().clone(), Arc::clone(&self.cache), true) {
            Ok(session) => {
                self.next = Some(session);
                self.is_next_a_version = true;
                self.try_next(cause, input, now);
            }
            Err(error) => self.complain(&format!("{error:#}")),
        }
    }

    /// Says what is wrong with something that did not even open.
    pub fn complain(&mut self, text: &str) {
        tracing::error!(target: RELOAD, "{text}");
        self.fault = Some(Fault {
            text: text.to_owned(),
            traceback: String::new(),
            running: self.running(),
        });
    }

    /// Files have changed on disk.
    pub fn on_changes(&mut self, changes: &[Change], input: &Input, now: Instant) {
        let cause = self.log_changes(changes);
        let concerns = |session: &Session| {
            let watched = session.watched();
            changes.iter().any(|c| watched.contains_key(&c.path))
        };
        if self.next.as_ref().is_some_and(concerns) {
            self.try_next(&cause, input, now);
        }
        if let Some(session) = self.current.as_ref().filter(|s| concerns(s)) {
            // A zip is opened once and its listing kept, so a new zip is a new scene.
            if is_one_file(session, changes) {
                self.reopen(&cause, input, now);
            } else {
                self.reload(&cause, input, now);
            }
        }
    }

    /// Splats have arrived, or could not be loaded.
    pub fn on_assets(&mut self, input: &Input, now: Instant) {
        if let Some(cause) = self.next_waits.take() {
            self.try_next(&cause, input, now);
        }
        if let Some(cause) = self.reload_waits.take() {
            self.reload(&cause, input, now);
        }
    }

    /// Loads the running scene's files as they are now.
    pub fn reload(&mut self, cause: &str, input: &Input, now: Instant) {
        let t_s = self.clock.t_s(now);
        let Some(session) = &mut self.current else {
            return;
        };
        self.reload_waits = None;
        // Forgets what an earlier picture may have asked for.
        self.cache.take_put_off();
        let asked_at = Instant::now();
        let outcome = session.reload(t_s, input);
        self.script_ms = asked_at.elapsed().as_secs_f64() * 1e3;
        match outcome {
            Ok(frame) => self.loaded(frame, cause, now),
            Err(_) if self.cache.take_put_off() => self.reload_waits = Some(cause.to_owned()),
            Err(error) => self.fail(&error),
        }
    }

    /// Makes the picture for `now`. False when there is none but the last. `seen` is the target
    /// under the pointer, where a picture has answered.
    pub fn step(&mut self, devices: &mut Devices, seen: Option<Option<Met>>, now: Instant) -> bool {
        let mut events = match seen {
            Some(met) => {
                let pointer = devices.input().pointer.as_dvec2().to_array();
                self.senses.see(met, pointer)
            }
            None => Vec::new(),
        };
        self.set_params(devices, now);
        let now_s = self.now_s(now);
        events.extend(self.senses.complete(devices.take_events(), now_s));
        devices.over(self.senses.over());
        let Some(session) = self.current.as_mut().filter(|_| !self.is_halted) else {
            devices.step_done();
            return false;
        };
        let t_s = self.clock.t_s(now);
        let asked_at = Instant::now();
        let told = events.iter().try_for_each(|event| session.event(event));
        let mut outcome = session.frame(t_s, devices.input());
        let mut failed: Vec<script::Error> = told.err().into_iter().collect();
        let suspended = session.script().map_or(&[][..], |s| s.suspended());
        if let Err(error) = &outcome
            && suspended.contains(&"step")
            && !suspended.contains(&"frame")
        {
            // `step` is not called again; what it has left can still be seen.
            failed.push(error.clone());
            outcome = session.frame(t_s, devices.input());
        }
        devices.step_done();
        for error in &failed {
            self.fail(error);
        }
        self.script_ms = asked_at.elapsed().as_secs_f64() * 1e3;
        match outcome {
            Ok(frame) => {
                self.frame = frame;
                true
            }
            // Splats asked for while playing: the last picture stays until they are there.
            Err(_) if self.cache.take_put_off() => false,
            Err(error) => {
                self.is_halted = true;
                self.fail(&error);
                false
            }
        }
    }

    /// Hands on the parameters that came in. What the script read while it loaded takes a load.
    fn set_params(&mut self, devices: &mut Devices, now: Instant) {
        let mut loads = Vec::new();
        for (name, value) in devices.take_params() {
            let Some(session) = &mut self.current else {
                continue;
            };
            match session.set_param(&name, &value) {
                Ok(Changed::ByLoading) => loads.push(name),
                Ok(Changed::Now | Changed::No) => {}
                Err(why) => tracing::warn!("{why}"),
            }
        }
        if !loads.is_empty() {
            self.loaded_s = Some(self.clock.t_s(now));
            let cause = format!("parameter {}", loads.join(", "));
            self.reload(&cause, devices.input(), now);
        }
    }

    /// The scene time at which a parameter has made the scene load anew since the last call.
    pub fn take_loaded_s(&mut self) -> Option<f64> {
        self.loaded_s.take()
    }

    /// What a line of a console comes to.
    ///
    /// # Errors
    /// No scene is there, or what the line throws: a sentence with its place.
    pub fn evaluate(&mut self, line: &str, now: Instant) -> Result<Option<String>, String> {
        let t_s = self.clock.t_s(now);
        let Some(session) = &mut self.current else {
            return Err("no scene is loaded".to_owned());
        };
        session
            .evaluate(line, t_s)
            .map_err(|error| error.to_string())
    }

    /// `now` as scripts' clicks are timed, seconds.
    #[must_use]
    pub fn now_s(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.started).as_secs_f64()
    }

    /// Whether a script hears what comes in.
    #[must_use]
    pub fn hears(&self) -> bool {
        self.current.is_some() && !self.is_halted
    }

    /// Steps that the running script had no time for, since the last call.
    pub fn take_left_out(&mut self) -> Vec<std::ops::Range<u64>> {
        let script = self.current.as_mut().and_then(Session::script_mut);
        script
            .map(script::Script::take_left_out)
            .unwrap_or_default()
    }

    /// Hands the running script an event.
    pub fn event(&mut self, event: &Event) {
        let Some(session) = self.current.as_mut().filter(|_| !self.is_halted) else {
            return;
        };
        if let Err(error) = session.event(event) {
            self.fail(&error);
        }
    }

    /// Voices of the running version that start at `from_s` or later and before `to_s`.
    pub fn voices(&mut self, from_s: f64, to_s: f64) -> Vec<VoiceSpec> {
        let asked = self.sounding().map(|session| session.voices(from_s, to_s));
        self.heard(asked).unwrap_or_default()
    }

    /// Who hears at `t_s`, where the running version says so.
    pub fn ears(&mut self, t_s: f64) -> Option<Listener> {
        let asked = self.sounding().map(|session| session.ears(t_s));
        self.heard(asked).flatten()
    }

    /// The scene on stage, as long as it can be asked for sound.
    fn sounding(&mut self) -> Option<&mut Session> {
        let is_asked = !(self.is_halted || self.is_mute);
        self.current.as_mut().filter(|_| is_asked)
    }

    /// A version that fails when asked for sound plays on silently, with its error.
    fn heard<T>(&mut self, asked: Option<Result<T, script::Error>>) -> Option<T> {
        match asked? {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.is_mute = true;
                self.fail(&error);
                None
            }
        }
    }

    /// Counts the versions that have come on stage; 0 before the first.
    #[must_use]
    pub fn version_number(&self) -> u64 {
        self.version.as_ref().map_or(0, |version| version.number)
    }

    /// A frame of [`Live::frame`] was submitted: the version it is the first of, if it is.
    pub fn submitted(&mut self, now: Instant) {
        if let Some(version) = self.fresh.take() {
            tracing::info!(
                target: RELOAD,
                at_ms = %self.at_ms(now),
                unix_ms = %unix_ms(),
                version = version.number,
                cause = %version.cause,
                "first frame submitted"
            );
        }
    }

    /// The last good picture.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// A version is loaded of which no frame was submitted yet.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.fresh.is_some()
    }

    /// The scene on stage.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.current.as_ref()
    }

    /// The scene on stage, to be turned.
    pub fn session_mut(&mut self) -> Option<&mut Session> {
        self.current.as_mut()
    }

    /// What is wrong with the newest version.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Time that the script took for the last picture, ms.
    #[must_use]
    pub fn script_ms(&self) -> f64 {
        self.script_ms
    }

    /// Scene time stands still.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.clock.is_paused
    }

    /// Stops scene time, or lets it go on.
    pub fn toggle_pause(&mut self, now: Instant) {
        let t_s = self.clock.t_s(now);
        self.clock.set(t_s, now);
        self.clock.is_paused = !self.clock.is_paused;
    }

    /// How fast scene time goes, against the clock.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.clock.speed
    }

    /// Scene time goes `speed` times as fast as the clock, [`SPEED_MIN`] to [`SPEED_MAX`]. Nothing happens
    /// where time cannot be set.
    pub fn set_speed(&mut self, speed: f64, now: Instant) {
        if self.seekable_s().is_some() && speed.is_finite() {
            self.clock.set(self.clock.t_s(now), now);
            self.clock.speed = speed.clamp(SPEED_MIN, SPEED_MAX);
        }
    }

    /// Whether a scene that ends begins anew.
    #[must_use]
    pub fn is_looped(&self) -> bool {
        self.clock.loop_s.is_some()
    }

    /// Lets a scene that ends begin anew, or go on after its end. Nothing happens where time cannot be set.
    pub fn toggle_loop(&mut self, now: Instant) {
        let duration_s = self.seekable_s().filter(|_| self.clock.loop_s.is_none());
        self.clock.set(self.clock.t_s(now), now);
        self.clock.loop_s = duration_s.filter(|duration_s| *duration_s > 0.0);
    }

    /// Length of a scene whose pictures depend on time alone, seconds: its time can be set. A stepped
    /// scene cannot go back.
    #[must_use]
    pub fn seekable_s(&self) -> Option<f64> {
        let session = self.session()?;
        session.duration_s().filter(|_| !session.is_stepped())
    }

    /// Sets scene time, kept within the scene. Nothing happens where time cannot be set.
    pub fn seek(&mut self, t_s: f64, now: Instant) {
        if let Some(duration_s) = self.seekable_s() {
            self.clock.set(t_s.clamp(0.0, duration_s), now);
        }
    }

    /// Whether asking for another picture can bring another one.
    #[must_use]
    pub fn moves(&self) -> bool {
        self.current.is_some() && !self.is_halted && !self.clock.is_paused
    }

    /// Every file of the version that runs and of the one that does not yet.
    #[must_use]
    pub fn watch_set(&self) -> WatchSet {
        let mut set = WatchSet::default();
        for session in self.current.iter().chain(&self.next) {
            for (path, read) in session.watched() {
                if path.is_dir() {
                    // A folder of splats is known by its manifest.
                    for manifest in ["meta.json", "lod-meta.json", "manifest.json"] {
                        set.files.insert(path.join(manifest), Loaded::Unknown);
                    }
                } else {
                    set.files.insert(path, read);
                }
            }
        }
        set
    }

    /// Loads the scene that is to follow; on stage with it if all is there.
    fn try_next(&mut self, cause: &str, input: &Input, now: Instant) {
        let Some(next) = &mut self.next else {
            return;
        };
        let t_s = if self.is_next_a_version {
            self.clock.t_s(now)
        } else {
            0.0
        };
        self.next_waits = None;
        self.cache.take_put_off();
        match next.reload(t_s, input) {
            Ok(frame) => {
                self.current = self.next.take();
                self.reload_waits = None;
                if !self.is_next_a_version {
                    self.clock = Clock::at(0.0, now);
                }
                self.loaded(frame, cause, now);
            }
            Err(_) if self.cache.take_put_off() => self.next_waits = Some(cause.to_owned()),
            Err(error) => self.fail(&error),
        }
    }

    fn loaded(&mut self, frame: Frame, cause: &str, now: Instant) {
        self.versions += 1;
        let cause = if cause.is_empty() {
            self.current
                .as_ref()
                .map(|session| session.options().scene.clone())
                .unwrap_or_default()
        } else {
            cause.to_owned()
        };
        let version = Version {
            number: self.versions,
            cause,
            loaded_at: jiff::Zoned::now().strftime("%H:%M:%S").to_string(),
        };
        tracing::info!(
            target: RELOAD,
            at_ms = %self.at_ms(Instant::now().max(now)),
            version = version.number,
            cause = %version.cause,
            "version loaded"
        );
        self.frame = frame;
        // A new version has not been told what the pointer is over, nor does it know old numbers.
        self.senses = Senses::default();
        self.fault = None;
        self.is_halted = false;
        self.is_mute = false;
        if self.clock.loop_s.is_some() {
            // The new version may be of another length, or of none.
            self.clock.loop_s = self.seekable_s().filter(|duration_s| *duration_s > 0.0);
        }
        self.version = Some(version.clone());
        self.fresh = Some(version);
    }

    fn fail(&mut self, error: &script::Error) {
        let text = error_text(error);
        tracing::error!(target: RELOAD, "{text}");
        if !error.traceback.is_empty() {
            tracing::debug!(target: RELOAD, "{}", error.traceback);
        }
        self.fault = Some(Fault {
            text: text.clone(),
            traceback: error.traceback.clone(),
            running: self.running(),
        });
        self.tell_error(text);
    }

    /// Lets the version that plays on know what is wrong with the newest, by an `error` event.
    fn tell_error(&mut self, text: String) {
        let Some(session) = self.current.as_mut().filter(|_| !self.is_halted) else {
            return;
        };
        let event = Event {
            kind: "error".to_owned(),
            name: text,
            values: Vec::new(),
            target: None,
            row: None,
        };
        if let Err(error) = session.event(&event) {
            tracing::warn!("the scene's answer to an error failed itself: {error}");
        }
    }

    fn running(&self) -> String {
        match &self.version {
            Some(version) if self.is_halted => {
                format!(
                    "stopped at the last picture of the version of {}",
                    version.loaded_at
                )
            }
            Some(version) => {
                let script = self.current.as_ref().and_then(Session::script);
                let suspended = script.map_or(&[][..], script::Script::suspended);
                let without = if suspended.is_empty() {
                    String::new()
                } else {
                    format!(" without its {}", suspended.join(" and "))
                };
                format!("running the version of {}{without}", version.loaded_at)
            }
            None => String::new(),
        }
    }

    /// Logs one line a file, and returns what to call the version that follows.
    fn log_changes(&self, changes: &[Change]) -> String {
        let mut cause = String::new();
        for change in changes {
            let file = change.path.display();
            let hash = change
                .hash
                .map_or_else(|| "gone".to_owned(), |h: ContentHash| h.to_string());
            tracing::info!(
                target: RELOAD,
                at_ms = %self.at_ms(change.seen_at),
                %file,
                %hash,
                "change seen"
            );
            if !cause.is_empty() {
                cause.push_str(", ");
            }
            let name = change.path.file_name().map(PathBuf::from);
            // Writing to a String cannot fail.
            let _ = write!(cause, "{}@{hash}", name.unwrap_or_default().display());
        }
        cause
    }

    fn at_ms(&self, at: Instant) -> String {
        let ms = at.saturating_duration_since(self.started).as_secs_f64() * 1e3;
        format!("{ms:.3}")
    }
}

/// The time of day, so that a log can be compared with what another program did when.
fn unix_ms() -> String {
    let since = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default();
    format!("{:.3}", since.as_secs_f64() * 1e3)
}

/// `file:line: message`; without the line where there is none.
#[must_use]
pub fn error_text(error: &script::Error) -> String {
    if error.line == 0 && error.message.starts_with(&error.file) {
        error.message.clone()
    } else if error.line == 0 {
        format!("{}: {}", error.file, error.message)
    } else {
        error.to_string()
    }
}

/// Whether two frames give the same picture on one renderer, whatever their times.
#[must_use]
pub fn looks_the_same(a: &Frame, b: &Frame) -> bool {
    // Noise changes with time alone; a filmed scene that stands still is still worth its grain.
    let is_noisy = |frame: &Frame| {
        (frame.film.as_ref()).is_some_and(|f| f.noise_shot > 0.0 || f.noise_read > 0.0)
    };
    !(is_noisy(a) && a.t_s != b.t_s)
        && a.film == b.film
        && a.camera == b.camera
        && a.background == b.background
        && a.draws.len() == b.draws.len()
        && (a.draws.iter().zip(&b.draws)).all(|(a, b)| {
            Arc::ptr_eq(&a.splats, &b.splats)
                && a.placement == b.placement
                && a.tint == b.tint
                && a.pose == b.pose
                && a.edits == b.edits
                && a.effects == b.effects
                && a.arrivals == b.arrivals
        })
}

/// The scene itself is one of the files that changed, and is a file: a `.stage`.
fn is_one_file(session: &Session, changes: &[Change]) -> bool {
    session.plain_file().is_none()
        && changes.iter().any(|change| {
            change.path.as_os_str() == session.options().scene.as_str()
                && change
                    .path
                    .extension()
                    .is_some_and(|e| e == "stage" || e == "zip")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn scene_time_stops_and_goes_on_where_it_was() {
        let zero = Instant::now();
        let at = |s: f64| zero + Duration::from_secs_f64(s);
        let mut live = Live::new(AssetCache::new(Arc::new(|_, _| ())), zero);
        assert!((live.clock.t_s(at(2.0)) - 2.0).abs() < 1e-9, "runs");
        live.toggle_pause(at(2.0));
        assert!((live.clock.t_s(at(9.0)) - 2.0).abs() < 1e-9, "stands");
        live.toggle_pause(at(9.0));
        assert!((live.clock.t_s(at(10.0)) - 3.0).abs() < 1e-9, "goes on");
    }

    #[test]
    fn an_error_without_a_line_names_the_file_once() {
        let error = |line, message: &str| script::Error {
            file: "a.ply".to_owned(),
            line,
            message: message.to_owned(),
            traceback: String::new(),
        };
        assert_eq!(error_text(&error(0, "broken")), "a.ply: broken");
        assert_eq!(error_text(&error(0, "a.ply: broken")), "a.ply: broken");
        assert_eq!(error_text(&error(7, "broken")), "a.ply:7: broken");
    }
}
