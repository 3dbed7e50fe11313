//! The sound of the scene in the window: keeps [`audio::Live`] to the version that plays and its time.
//!
//! Called once a picture, after the scene has made it; hands over the voices that start soon, the time
//! and who hears. Nothing waits here: mixing and the device are on the sound thread. A version that is
//! loaded anew, and a jump in time, put another score in place of the old one, under a short fade.

use super::live::Live as Stage;
use super::soundtrack::{self, MicChoice};
use crate::audio::{self, Device, Listener, Mic, Score, VoiceSpec};
use crate::script::{SoundPlan, VOICE_S_MAX};

/// Voices are asked for so long before they start, seconds, where a scene can say that beforehand.
const AHEAD_S: f64 = 0.5;

/// The scene's time may go on by this much from one picture to the next, seconds; what goes further, or
/// back, is a jump.
const STRIDE_MAX_S: f64 = 2.0;

/// The gain of what is muted, dB.
const MUTED_DB: f64 = -200.0;

/// Makes a device; called when the first scene with sound comes on stage.
pub type NewDevice = Box<dyn Fn() -> Box<dyn Device>>;

/// Sound beside a stage.
pub struct StageSound {
    new_device: NewDevice,
    mic: MicChoice,
    seed: u64,
    live: Option<audio::Live>,
    /// The microphone that the thread was given last.
    heard_through: Option<Mic>,
    is_muted: bool,
    /// Number of the version whose score plays; 0 is none.
    version: u64,
    /// The version that plays has anything to be heard.
    has_sound: bool,
    /// Voices that start before this time have been asked for, seconds.
    asked_s: f64,
    /// Scene time of the last picture.
    t_s: f64,
}

impl StageSound {
    /// Silence, until a scene with sound comes on stage.
    #[must_use]
    pub fn new(new_device: NewDevice, mic: MicChoice, seed: u64, is_muted: bool) -> Self {
        Self {
            new_device,
            mic,
            seed,
            live: None,
            heard_through: None,
            is_muted,
            version: 0,
            has_sound: false,
            asked_s: 0.0,
            t_s: 0.0,
        }
    }

    /// The stage has made a picture: keeps to it.
    pub fn follow(&mut self, stage: &mut Stage) {
        let t_s = stage.frame().t_s;
        let stride_s = t_s - self.t_s;
        let is_jump = !(0.0..=STRIDE_MAX_S).contains(&stride_s);
        if stage.version_number() != self.version || is_jump {
            self.begin(stage, t_s);
        }
        self.t_s = t_s;
        if !self.has_sound {
            return;
        }
        // At another speed sound would be another sound.
        if !stage.moves() || stage.speed() != 1.0 {
            if let Some(live) = &self.live {
                live.pause();
            }
            return;
        }
        for voice in self.ask(stage, t_s) {
            if let Some(live) = &mut self.live
                && let Err(error) = live.add(voice)
            {
                tracing::debug!("sound: {error}");
            }
        }
        let listener = stage
            .ears(t_s)
            .unwrap_or_else(|| Listener::from_camera(&stage.frame().camera));
        if let Some(live) = &self.live {
            live.at(t_s, listener);
        }
    }

    /// Takes up the version that plays now, as if it had played up to `t_s`.
    fn begin(&mut self, stage: &mut Stage, t_s: f64) {
        self.version = stage.version_number();
        let plan = stage.session().map(|s| s.sound()).unwrap_or_default();
        self.has_sound = !plan.is_silent();
        if self.live.is_none() && !self.has_sound {
            return;
        }
        let is_stepped = stage.session().is_some_and(|s| s.is_stepped());
        self.asked_s = if is_stepped {
            t_s
        } else {
            (t_s - VOICE_S_MAX).max(t_s.min(0.0)).floor()
        };
        let score = soundtrack::score_of(&plan).and_then(|mut score| {
            for voice in self.ask(stage, t_s) {
                score.add(voice)?;
            }
            Ok(score)
        });
        let started = score.and_then(|score| self.play(score, &plan));
        if let Err(error) = started {
            tracing::warn!("no sound: {error}");
            self.has_sound = false;
        }
    }

    fn play(&mut self, score: Score, plan: &SoundPlan) -> Result<(), audio::Error> {
        let mic = self.mic.of(plan.mic.clone());
        match &mut self.live {
            Some(live) => {
                if mic != self.heard_through {
                    live.set_mic(mic.clone())?;
                }
                live.set_score(score);
            }
            None => {
                let device = (self.new_device)();
                let live = audio::Live::start(device, score, mic.clone(), self.seed)?;
                if self.is_muted {
                    live.set_gain_db(MUTED_DB);
                }
                self.live = Some(live);
            }
        }
        self.heard_through = mic;
        Ok(())
    }

    /// Voices that nobody has asked for yet and that are due.
    fn ask(&mut self, stage: &mut Stage, t_s: f64) -> Vec<VoiceSpec> {
        let is_stepped = stage.session().is_some_and(|s| s.is_stepped());
        let mut voices = Vec::new();
        if is_stepped {
            if t_s > self.asked_s {
                voices = stage.voices(self.asked_s, t_s);
                self.asked_s = t_s;
            }
            return voices;
        }
        while self.asked_s < t_s + AHEAD_S {
            voices.extend(stage.voices(self.asked_s, self.asked_s + 1.0));
            self.asked_s += 1.0;
        }
        voices
    }

    /// Turns sound off or on again; true when it is off then.
    pub fn toggle_mute(&mut self) -> bool {
        self.is_muted = !self.is_muted;
        if let Some(live) = &self.live {
            live.set_gain_db(if self.is_muted { MUTED_DB } else { 0.0 });
        }
        self.is_muted
    }

    /// What the sound thread does; `None` where no scene has had any sound.
    #[must_use]
    pub fn report(&self) -> Option<audio::live::Report> {
        self.live.as_ref().map(audio::Live::report)
    }
}
