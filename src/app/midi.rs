//! Knobs, faders and switches of MIDI controllers, to the parameters of a scene.
//!
//! Which control turns which parameter a person teaches: [`Midi::learn`] waits for the next control that
//! moves. What was taught is kept for each scene in the user's configuration folder. Controllers that are
//! plugged in later are found. It sets no parameter itself: a control that moves comes back as the
//! parameter's name and how far up it stands. A machine without MIDI is said so once in the log.
//!
//! Only control changes are read (status 0xB0, MIDI 1.0, table 3): 7 bits, 16 channels.

use super::{atomic, paths};
use midir::{Ignore, MidiInput, MidiInputConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How often somebody looks for controllers that were plugged in.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Moves that wait for a picture; more are dropped.
const QUEUE_MAX: usize = 1024;
/// Longest file of what was taught, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Through which ALSA reads controllers.
const SEQUENCER: &str = "/dev/snd/seq";

/// One control of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Control {
    /// From 0.
    pub channel: u8,
    /// Its number, 0 to 127.
    pub number: u8,
}

impl std::fmt::Display for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Channels are counted from 1 on every controller's display.
        write!(f, "channel {} control {}", self.channel + 1, self.number)
    }
}

/// A control and how far up it stands, 0 to 1; `None` for any other message.
fn moved(message: &[u8]) -> Option<(Control, f64)> {
    let &[status, number, value] = message else {
        return None;
    };
    let is_control = status & 0xF0 == 0xB0 && number < 120 && value < 128;
    let control = Control {
        channel: status & 0x0F,
        number,
    };
    is_control.then(|| (control, f64::from(value) / 127.0))
}

/// What was taught: by scene, the parameter of each control, written `CHANNEL.NUMBER` from 0.
type Taught = BTreeMap<String, BTreeMap<String, String>>;

/// Something that came of a move.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The control is this parameter's from now on.
    Learnt(Control, String),
    /// The parameter's control stands here, 0 to 1.
    Turned(String, f64),
}

/// All controllers of the machine.
pub struct Midi {
    open: Vec<(String, MidiInputConnection<()>)>,
    refused: BTreeSet<String>,
    said: SyncSender<(Control, f64)>,
    moves: Receiver<(Control, f64)>,
    look_at: Instant,
    is_there: bool,
    learning: Option<String>,
    taught: Taught,
    file: Option<PathBuf>,
}

impl std::fmt::Debug for Midi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.open.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Midi").field("open", &names).finish()
    }
}

impl Midi {
    /// Listens to whatever is plugged in, with what the user has taught.
    #[must_use]
    pub fn of_user() -> Self {
        let file = paths::config_folder().map(|folder| folder.join("midi.json"));
        let mut midi = Self {
            is_there: true,
            ..Self::without_devices(file.as_deref())
        };
        midi.look();
        midi
    }

    /// Hears only what [`Midi::hear`] is handed; what is taught is kept in `file`.
    #[must_use]
    pub fn without_devices(file: Option<&Path>) -> Self {
        let (said, moves) = sync_channel(QUEUE_MAX);
        Self {
            open: Vec::new(),
            refused: BTreeSet::new(),
            said,
            moves,
            look_at: Instant::now() + LOOK_EVERY,
            is_there: false,
            learning: None,
            taught: file.map(read).unwrap_or_default(),
            file: file.map(Path::to_owned),
        }
    }

    /// The control that moves next is this parameter's; a second call for the same name takes that back.
    pub fn learn(&mut self, param: &str) {
        let is_waiting = self.learning.as_deref() == Some(param);
        self.learning = (!is_waiting).then(|| param.to_owned());
    }

    /// The parameter that waits for a control.
    #[must_use]
    pub fn learning(&self) -> Option<&str> {
        self.learning.as_deref()
    }

    /// Names of the controllers that are listened to.
    #[must_use]
    pub fn controllers(&self) -> Vec<&str> {
        self.open.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The control of each parameter of a scene.
    #[must_use]
    pub fn controls(&self, scene: &str) -> BTreeMap<String, Control> {
        let taught = self.taught.get(scene).into_iter().flatten();
        taught
            .filter_map(|(key, param)| Some((param.clone(), control_of(key)?)))
            .collect()
    }

    /// One message as a controller sends it.
    pub fn hear(&self, message: &[u8]) {
        if let Some(moved) = moved(message) {
            // Full: the network of a controller would drop it as well.
            let _ = self.said.try_send(moved);
        }
    }

    /// What has moved since the last call, for the scene of this name.
    pub fn poll(&mut self, scene: &str, now: Instant) -> Vec<Heard> {
        if self.is_there && now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            self.look();
        }
        let mut heard = Vec::new();
        while let Ok((control, share)) = self.moves.try_recv() {
            let key = format!("{}.{}", control.channel, control.number);
            if let Some(param) = self.learning.take() {
                let taught = self.taught.entry(scene.to_owned()).or_default();
                // A parameter has one control.
                taught.retain(|_, known| *known != param);
                taught.insert(key.clone(), param.clone());
                self.keep();
                heard.push(Heard::Learnt(control, param));
            }
            let param = self.taught.get(scene).and_then(|taught| taught.get(&key));
            if let Some(param) = param {
                heard.push(Heard::Turned(param.clone(), share));
            }
        }
        heard
    }

    /// Opens what is plugged in and lets go of what is gone.
    fn look(&mut self) {
        // ALSA complains on standard error, and by itself, where the kernel has no sequencer.
        if cfg!(target_os = "linux") && !Path::new(SEQUENCER).exists() {
            tracing::info!("MIDI controllers cannot be read: there is no {SEQUENCER}");
            self.is_there = false;
            return;
        }
        let found = match MidiInput::new("splatstage") {
            Ok(found) => found,
            Err(error) => {
                tracing::info!("MIDI controllers cannot be read: {error}");
                self.is_there = false;
                return;
            }
        };
        let ports = found.ports();
        let named: Vec<_> = (ports.into_iter())
            .filter_map(|port| Some((found.port_name(&port).ok()?, port)))
            .collect();
        self.open
            .retain(|(name, _)| named.iter().any(|(n, _)| n == name));
        for (name, port) in named {
            let is_own = name.contains("splatstage") || name.starts_with("Midi Through");
            let is_known = self.open.iter().any(|(n, _)| *n == name);
            if is_own || is_known || self.refused.contains(&name) {
                continue;
            }
            let Ok(mut input) = MidiInput::new("splatstage") else {
                continue;
            };
            input.ignore(Ignore::All);
            let said = self.said.clone();
            let hear = move |_: u64, message: &[u8], _: &mut ()| {
                if let Some(moved) = moved(message) {
                    let _ = said.try_send(moved);
                }
            };
            match input.connect(&port, "parameters", hear, ()) {
                Ok(connection) => {
                    tracing::info!("MIDI: {name}");
                    self.open.push((name, connection));
                }
                Err(error) => {
                    tracing::warn!("MIDI: {name} cannot be opened: {error}");
                    self.refused.insert(name);
                }
            }
        }
    }

    fn keep(&self) {
        let Some(file) = &self.file else { return };
        let written = file
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| {
                atomic::write(file, serde_json::json!(self.taught).to_string().as_bytes())
            });
        if let Err(error) = written {
            tracing::warn!("{}: cannot keep what was taught: {error}", file.display());
        }
    }
}

fn control_of(key: &str) -> Option<Control> {
    let (channel, number) = key.split_once('.')?;
    Some(Control {
        channel: channel.parse().ok().filter(|c| *c < 16)?,
        number: number.parse().ok().filter(|n| *n < 128)?,
    })
}

fn read(file: &Path) -> Taught {
    let is_small = std::fs::metadata(file).is_ok_and(|m| m.len() <= FILE_BYTES_MAX);
    let Some(bytes) = std::fs::read(file).ok().filter(|_| is_small) else {
        return Taught::new();
    };
    serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        tracing::warn!("{}: not what was taught: {error}", file.display());
        Taught::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_is_taught_turns_and_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config/midi.json");
        let mut midi = Midi::without_devices(Some(&file));
        let now = Instant::now();
        midi.hear(&[0xB2, 74, 127]);
        assert!(midi.poll("@a", now).is_empty(), "nobody has taught it");
        midi.learn("pace");
        assert_eq!(midi.learning(), Some("pace"));
        // Notes, clocks and half messages teach nothing.
        for message in [&[0x92, 60, 100][..], &[0xF8], &[0xB2, 74], &[0xB2, 123, 0]] {
            midi.hear(message);
        }
        assert!(midi.poll("@a", now).is_empty());
        midi.hear(&[0xB2, 74, 127]);
        let control = Control {
            channel: 2,
            number: 74,
        };
        assert_eq!(
            midi.poll("@a", now),
            [
                Heard::Learnt(control, "pace".to_owned()),
                Heard::Turned("pace".to_owned(), 1.0)
            ]
        );
        assert_eq!(midi.learning(), None);
        midi.hear(&[0xB2, 74, 0]);
        assert!(midi.poll("@b", now).is_empty(), "another scene's");
        let mut again = Midi::without_devices(Some(&file));
        again.hear(&[0xB2, 74, 0]);
        let turned = again.poll("@a", now);
        assert_eq!(turned, [Heard::Turned("pace".to_owned(), 0.0)]);
        assert_eq!(again.controls("@a").get("pace"), Some(&control));
    }
}
