//! Sound while a scene plays: a thread that mixes ahead of a device and keeps to the scene's time.
//!
//! The window says each frame what time it is and where the camera stands ([`Live::at`]), and adds
//! voices; nothing of that waits for anything. The thread mixes [`BEHIND_SAMPLES`] behind the scene's
//! time, so that a voice added for this very frame still starts on its own sample, and keeps a short
//! store ahead of the device. What is heard is therefore the score that a file would get, about 60 ms
//! and the device's own buffer late, never early. Where the scene's time jumps, sound fades out and in
//! over one block.
//!
//! A device that cannot be opened or goes away is said once; everything goes on silently and the
//! thread looks for one each second; one that is there but does not open is tried ever more seldom,
//! up to twice a minute, since drivers print when they fail. There is no clock here: the device's pace is the clock.

use super::device::{Device, Feed, Playing, Status};
use super::mic::Mic;
use super::mixer::Mixer;
use super::score::{BusId, SCORE_VOICES_MAX, Score, VoiceId, VoiceSpec};
use super::space::{Listener, ListenerTrack};
use super::{BLOCK_SAMPLES, Error, RATE_HZ, Stereo, sample_at, seconds_at};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Mixing is this far behind the scene's time, 20 ms: more than a frame's distance at 60 Hz.
pub const BEHIND_SAMPLES: i64 = 2 * BLOCK_SAMPLES as i64;

/// Samples that are kept ready for the device at first, 40 ms; each time it runs dry 10 ms more.
const STORE_SAMPLES: usize = 4 * BLOCK_SAMPLES;

/// The most that is kept ready, 200 ms.
const STORE_MAX_SAMPLES: usize = 20 * BLOCK_SAMPLES;

/// Off the scene's time by more than this, sound jumps, 80 ms.
const OFF_MAX_SAMPLES: i64 = 8 * BLOCK_SAMPLES as i64;

/// A voice added at most this late is moved to start at once instead of losing its beginning, 0.25 s.
const LATE_MAX_SAMPLES: i64 = 12_000;

/// Blocks that sound goes on for when the window says nothing, 2 s.
const ALONE_BLOCKS: u32 = 200;

/// Voices from which on ended ones are forgotten.
const VOICES_KEPT: usize = SCORE_VOICES_MAX / 4;

/// How long the thread sleeps between looks at its store.
const TICK: Duration = Duration::from_millis(4);

/// Listeners of the past that are kept: a jump back mixes some seconds from before it.
const TRACK_S: f64 = 60.0;

/// Looks from one attempt to open a device to the next, about 1 s.
const RETRY_TICKS: u32 = 250;

/// Looks without a sample taken after which a device that says nothing counts as gone, about 3 s.
const STUCK_TICKS: u32 = 750;

/// What the window tells the thread.
enum Command {
    At(i64, Box<Listener>),
    Pause,
    Add(Box<VoiceSpec>),
    Stop(VoiceId, i64, f64),
    Fade(VoiceId, i64, f64, f64),
    FadeBus(BusId, i64, f64, f64),
    Forget(i64),
    Score(Box<Score>),
    Mic(Box<Option<Mic>>),
    Gain(f64),
}

/// What is going on, for overlays and `doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether a device plays.
    pub is_playing: bool,
    /// Devices opened so far: over 1 means that one was lost and came back.
    pub opened: u64,
    /// Samples that were missing when a device wanted them.
    pub missed_samples: u64,
    /// Voices that were added late and moved.
    pub late_voices: u64,
}

#[derive(Debug, Default)]
struct Shared {
    /// The sample that is mixed next.
    head: AtomicI64,
    is_playing: AtomicBool,
    opened: AtomicU64,
    missed: AtomicU64,
}

/// Sound that plays. Dropping it stops the thread.
#[derive(Debug)]
pub struct Live {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// The same score as the thread's: what a file of this performance would be made of.
    score: Score,
    late: u64,
}

impl Live {
    /// Starts the thread. It is silent until [`Live::at`] is called.
    ///
    /// # Errors
    /// A microphone with values out of range, or a system that gives no thread.
    pub fn start(
        device: Box<dyn Device>,
        score: Score,
        mic: Option<Mic>,
        seed: u64,
    ) -> Result<Self, Error> {
        let mut mixer = Mixer::new(score.clone(), seed);
        mixer.set_mic(mic)?;
        let (commands, received) = channel();
        let shared = Arc::new(Shared::default());
        let shared_there = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sound".to_owned())
            .spawn(move || Worker::new(device, mixer, shared_there).run(&received))
            .map_err(|error| Error::System(format!("no thread: {error}")))?;
        Ok(Self {
            commands: Some(commands),
            thread: Some(thread),
            shared,
            score,
            late: 0,
        })
    }

    /// The scene's time now, and who hears. Call it each frame while the scene plays at its own speed.
    pub fn at(&self, t_s: f64, listener: Listener) {
        self.send(Command::At(sample_at(t_s), Box::new(listener)));
    }

    /// Falls silent until [`Live::at`] is called again.
    pub fn pause(&self) {
        self.send(Command::Pause);
    }

    /// Adds a voice. One that should have started up to a quarter of a second ago starts now.
    ///
    /// # Errors
    /// As [`Score::add`].
    pub fn add(&mut self, mut spec: VoiceSpec) -> Result<VoiceId, Error> {
        // Two blocks: the thread goes on while the command is under way.
        let soonest = self.shared.head.load(Ordering::Acquire) + BEHIND_SAMPLES;
        let is_late = spec.start_sample < soonest - BEHIND_SAMPLES
            && spec.start_sample >= soonest - LATE_MAX_SAMPLES;
        if is_late && self.shared.is_playing.load(Ordering::Acquire) {
            spec.start_sample = soonest;
            self.late += 1;
        }
        if self.score.voice_count() >= VOICES_KEPT {
            // Players run for days. What has ended a minute ago is no longer needed for a jump back.
            let sample = soonest - 60 * i64::from(RATE_HZ);
            self.score.forget_before(sample);
            self.send(Command::Forget(sample));
        }
        let id = self.score.add(spec.clone())?;
        self.send(Command::Add(Box::new(spec)));
        Ok(id)
    }

    /// See [`Score::stop`].
    ///
    /// # Errors
    /// As there.
    pub fn stop(&mut self, id: VoiceId, t_s: f64, fade_s: f64) -> Result<(), Error> {
        self.score.stop(id, sample_at(t_s), fade_s)?;
        self.send(Command::Stop(id, sample_at(t_s), fade_s));
        Ok(())
    }

    /// See [`Score::fade`].
    ///
    /// # Errors
    /// As there.
    pub fn fade(&mut self, id: VoiceId, t_s: f64, to_db: f64, fade_s: f64) -> Result<(), Error> {
        self.score.fade(id, sample_at(t_s), to_db, fade_s)?;
        self.send(Command::Fade(id, sample_at(t_s), to_db, fade_s));
        Ok(())
    }

    /// See [`Score::fade_bus`].
    ///
    /// # Errors
    /// As there.
    pub fn fade_bus(&mut self, bus: BusId, t_s: f64, to_db: f64, fade_s: f64) -> Result<(), Error> {
        self.score.fade_bus(bus, sample_at(t_s), to_db, fade_s)?;
        self.send(Command::FadeBus(bus, sample_at(t_s), to_db, fade_s));
        Ok(())
    }

    /// Another score in place of this one: a scene that was loaded again.
    pub fn set_score(&mut self, score: Score) {
        self.score = score.clone();
        self.send(Command::Score(Box::new(score)));
    }

    /// Another microphone, or none.
    ///
    /// # Errors
    /// A value out of range.
    pub fn set_mic(&self, mic: Option<Mic>) -> Result<(), Error> {
        mic.as_ref().map_or(Ok(()), Mic::check)?;
        self.send(Command::Mic(Box::new(mic)));
        Ok(())
    }

    /// Gain of everything, dB.
    pub fn set_gain_db(&self, gain_db: f64) {
        self.send(Command::Gain(gain_db));
    }

    /// The score as it has been played.
    #[must_use]
    pub fn score(&self) -> &Score {
        &self.score
    }

    /// What is going on.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            is_playing: self.shared.is_playing.load(Ordering::Acquire),
            opened: self.shared.opened.load(Ordering::Relaxed),
            missed_samples: self.shared.missed.load(Ordering::Relaxed),
            late_voices: self.late,
        }
    }

    fn send(&self, command: Command) {
        // The thread ends only when this end hangs up.
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own side.
struct Worker {
    device: Box<dyn Device>,
    mixer: Mixer,
    shared: Arc<Shared>,
    track: ListenerTrack,
    output: Option<Output>,
    /// Samples that are kept ready.
    store: usize,
    /// Looks until the next attempt to open a device.
    wait_ticks: u32,
    /// Attempts in a row to open a device that is there.
    failed: u32,
    /// Whether the lack of a device was said.
    is_lack_said: bool,
    head: i64,
    /// Where the head should go, once.
    jump_to: Option<i64>,
    /// Whether the scene plays.
    is_running: bool,
    /// Whether the last block was heard, so that stopping needs a fade.
    is_heard: bool,
    alone_blocks: u32,
    block: Vec<Stereo>,
    /// What cannot be done while something is heard, and what came after it.
    deferred: Vec<Command>,
}

/// An open device.
struct Output {
    samples: rtrb::Producer<Stereo>,
    status: Arc<Status>,
    playing: Box<dyn Playing>,
    taken: u64,
    missed: u64,
    stuck_ticks: u32,
}

impl Worker {
    fn new(device: Box<dyn Device>, mixer: Mixer, shared: Arc<Shared>) -> Self {
        Self {
            device,
            mixer,
            shared,
            track: ListenerTrack::default(),
            output: None,
            store: STORE_SAMPLES,
            wait_ticks: 0,
            failed: 0,
            is_lack_said: false,
            head: 0,
            jump_to: None,
            is_running: false,
            is_heard: false,
            alone_blocks: 0,
            block: vec![[0.0; 2]; BLOCK_SAMPLES],
            deferred: Vec::new(),
        }
    }

    fn run(mut self, commands: &Receiver<Command>) {
        loop {
            match commands.recv_timeout(TICK) {
                Ok(command) => {
                    self.obey(command);
                    commands.try_iter().for_each(|command| self.obey(command));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.wait_ticks = self.wait_ticks.saturating_sub(1);
                    self.watch();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.keep_open();
            self.fill();
            for warning in self.mixer.take_warnings() {
                tracing::warn!("{warning}");
            }
        }
    }

    /// Does what the window wants. Another score or microphone starts the mix over, so it waits for
    /// the end of a fade, and changes of the score that come later wait behind it.
    fn obey(&mut self, command: Command) {
        let is_moving = matches!(command, Command::At(..) | Command::Pause | Command::Gain(_));
        let is_cut = matches!(command, Command::Score(_) | Command::Mic(_));
        if self.is_heard && (is_cut || !(is_moving || self.deferred.is_empty())) {
            self.deferred.push(command);
        } else {
            self.obey_now(command);
        }
    }

    fn obey_deferred(&mut self) {
        for command in std::mem::take(&mut self.deferred) {
            self.obey_now(command);
        }
    }

    fn obey_now(&mut self, command: Command) {
        let score = self.mixer.score_mut();
        // What the window's own score took, this one takes.
        let taken = match command {
            Command::At(sample, listener) => {
                self.at(sample, *listener);
                Ok(())
            }
            Command::Pause => {
                self.is_running = false;
                Ok(())
            }
            Command::Add(spec) => score.add(*spec).map(|_| ()),
            Command::Stop(id, sample, fade_s) => score.stop(id, sample, fade_s),
            Command::Fade(id, sample, to_db, fade_s) => score.fade(id, sample, to_db, fade_s),
            Command::FadeBus(bus, sample, to_db, fade_s) => {
                score.fade_bus(bus, sample, to_db, fade_s)
            }
            Command::Forget(sample) => {
                score.forget_before(sample);
                Ok(())
            }
            Command::Score(score) => {
                self.mixer.set_score(*score);
                Ok(())
            }
            Command::Mic(mic) => self.mixer.set_mic(*mic),
            Command::Gain(gain_db) => self.mixer.set_gain_db(gain_db),
        };
        if let Err(error) = taken {
            tracing::warn!("sound: {error}");
        }
    }

    fn at(&mut self, sample: i64, listener: Listener) {
        self.track.push(seconds_at(sample), listener);
        self.track.forget_before(seconds_at(sample) - TRACK_S);
        let wanted = sample - BEHIND_SAMPLES;
        let is_off = (self.head - wanted).abs() > OFF_MAX_SAMPLES;
        if is_off || !self.is_running {
            self.jump_to = Some(wanted);
        }
        self.is_running = true;
        self.alone_blocks = 0;
    }

    /// Opens a device where there is none and it is time to try, and lets go of a lost one.
    fn keep_open(&mut self) {
        let lost = self.output.as_ref().and_then(|output| {
            let is_lost = output.status.is_lost.load(Ordering::Acquire);
            is_lost.then(|| output.status.why_lost())
        });
        if let Some(why) = lost {
            tracing::warn!("the sound device is gone ({why}); going on silently");
            self.close();
            self.wait_ticks = RETRY_TICKS;
        }
        if self.output.is_some() || self.wait_ticks > 0 {
            return;
        }
        self.wait_ticks = RETRY_TICKS;
        let status = Arc::new(Status::default());
        let (samples, feed) = rtrb::RingBuffer::new(STORE_MAX_SAMPLES);
        let opened = if self.device.is_there() {
            self.wait_ticks = RETRY_TICKS << self.failed.min(5);
            self.failed += 1;
            self.device.open(Feed::new(feed, Arc::clone(&status)))
        } else {
            self.failed = 0;
            Err("no device".to_owned())
        };
        match opened {
            Ok(playing) => {
                tracing::info!("sound: {}", playing.name());
                self.is_lack_said = true;
                self.failed = 0;
                self.output = Some(Output {
                    samples,
                    status,
                    playing,
                    taken: 0,
                    missed: 0,
                    stuck_ticks: 0,
                });
                self.shared.opened.fetch_add(1, Ordering::Relaxed);
                self.shared.is_playing.store(true, Ordering::Release);
                // The head stood still meanwhile; the next frame says where it should be.
                self.is_running = false;
                self.is_heard = false;
            }
            Err(why) if !self.is_lack_said => {
                tracing::info!("no sound: {why}; playing silently");
                self.is_lack_said = true;
            }
            Err(_) => {}
        }
    }

    fn close(&mut self) {
        self.output = None;
        self.is_heard = false;
        self.obey_deferred();
        self.shared.is_playing.store(false, Ordering::Release);
    }

    /// Counts what the device took and missed, and notices one that takes nothing any more.
    fn watch(&mut self) {
        let Some(output) = &mut self.output else {
            return;
        };
        let taken = output.status.taken.load(Ordering::Relaxed);
        let missed = output.status.missed.load(Ordering::Relaxed);
        if missed > output.missed {
            self.shared
                .missed
                .fetch_add(missed - output.missed, Ordering::Relaxed);
            output.missed = missed;
            self.store = (self.store + BLOCK_SAMPLES).min(STORE_MAX_SAMPLES);
        }
        output.stuck_ticks = if taken == output.taken {
            output.stuck_ticks + 1
        } else {
            0
        };
        output.taken = taken;
        if output.stuck_ticks > STUCK_TICKS {
            let name = output.playing.name();
            output
                .status
                .lose(format!("{name}: it takes no more samples"));
        }
    }

    /// Mixes until the store is full.
    fn fill(&mut self) {
        loop {
            let Some(output) = &self.output else { return };
            let stored = STORE_MAX_SAMPLES - output.samples.slots();
            if stored + BLOCK_SAMPLES > self.store {
                return;
            }
            self.next_block();
            let Some(output) = &mut self.output else {
                return;
            };
            for sample in &self.block {
                // There is room: only the device takes, and it takes away.
                let _ = output.samples.push(*sample);
            }
        }
    }

    /// The next block for the device: of the score, with fades where it starts, jumps or stops.
    fn next_block(&mut self) {
        if self.alone_blocks >= ALONE_BLOCKS {
            self.is_running = false;
        }
        let is_cut = self.jump_to.is_some() || !self.deferred.is_empty();
        let is_leaving = self.is_heard && (is_cut || !self.is_running);
        if !is_leaving {
            self.obey_deferred();
        }
        if !self.is_running && !self.is_heard {
            self.block.fill([0.0; 2]);
            return;
        }
        if !is_leaving && let Some(to) = self.jump_to.take() {
            self.head = to;
        }
        self.mixer.render(self.head, &self.track, &mut self.block);
        self.head += BLOCK_SAMPLES as i64;
        self.shared.head.store(self.head, Ordering::Release);
        self.alone_blocks += 1;
        let length = BLOCK_SAMPLES as f32;
        if is_leaving || !self.is_heard {
            for (i, sample) in self.block.iter_mut().enumerate() {
                let up = (i as f32 + 0.5) / length;
                let gain = if is_leaving { 1.0 - up } else { up };
                *sample = sample.map(|value| value * gain);
            }
        }
        self.is_heard = !is_leaving;
    }
}
