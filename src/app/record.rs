//! `play --record`: writes what comes in, so that `--input` makes it come in again exactly.
//!
//! One line for each arrival, at the scene time up to which the script had run then, and one for each
//! time that the window looked ([`super::replay`] has the format). The log is whole up to the last
//! picture whenever the program ends. It decides nothing. What a scene does that is saved anew while it
//! is recorded, or whose time is set by hand, is not repeated by the log; a comment says where.

use super::input::Arrival;
use super::replay::{Line, Tick};
use super::senses::Met;
use anyhow::Context as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A log that is being written.
pub struct Recorder {
    path: PathBuf,
    out: BufWriter<File>,
    /// Scene time of the last picture, seconds: what comes in now comes in then.
    t_s: f64,
    version: u64,
    /// The tick that is under way.
    tick: Option<Tick>,
    /// What was last seen under the pointer, and what the log says of it.
    seen: Option<Met>,
    written: Option<Met>,
    has_written: bool,
}

impl Recorder {
    /// Begins the log at `path`; a file that is there is written over.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let file =
            File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            t_s: 0.0,
            version: 1,
            tick: None,
            seen: None,
            written: None,
            has_written: false,
        })
    }

    /// The window is about to step: what came in since the last time, what is `seen` under the pointer
    /// where that is known anew, the window's time in seconds, and whether a script `hears` it.
    ///
    /// # Errors
    /// The disk is full.
    pub fn arrived(
        &mut self,
        arrivals: Vec<Arrival>,
        seen: Option<Option<Met>>,
        now_s: f64,
        hears: bool,
    ) -> anyhow::Result<()> {
        self.seen = seen.unwrap_or(self.seen);
        // Which splat it is matters to clicks only.
        let target = |met: Option<Met>| met.map(|(target, _)| target);
        let is_news = target(self.seen) != target(self.written)
            || (self.seen != self.written && !arrivals.is_empty());
        if is_news {
            self.written = self.seen;
        }
        let is_quiet = arrivals.is_empty() && !is_news;
        for arrival in arrivals {
            self.write(&Line::of(self.t_s, arrival))?;
        }
        self.tick = Some(Tick {
            now: now_s,
            seen: is_news.then_some(self.seen),
            unheard: !hears,
            left_out: Vec::new(),
            loaded: None,
        });
        // Nothing new: a line only where steps are left out.
        self.has_written = !is_quiet;
        Ok(())
    }

    /// The window has stepped to scene time `t_s` (`None`: there was no picture), without the steps
    /// `left_out`, by the `version` of the scene, counted from 1. `loaded_s` is the scene time at which a
    /// parameter has made it load anew.
    ///
    /// # Errors
    /// The disk is full.
    pub fn stepped(
        &mut self,
        t_s: Option<f64>,
        left_out: &[Range<u64>],
        loaded_s: Option<f64>,
        version: u64,
    ) -> anyhow::Result<()> {
        // A load that a parameter has caused is repeated by the log.
        let is_saved_anew = version > self.version && loaded_s.is_none();
        if let Some(mut tick) = self.tick.take()
            && (self.has_written || !left_out.is_empty() || loaded_s.is_some())
        {
            tick.loaded = loaded_s;
            if loaded_s.is_some() {
                // The window forgets it too, and takes it for news the next time.
                self.seen = None;
            }
            tick.left_out = left_out.iter().map(|r| [r.start, r.end]).collect();
            let line = Line {
                t: self.t_s,
                tick: Some(tick),
                ..Line::default()
            };
            self.write(&line)?;
            self.out.flush().with_context(|| self.failed())?;
        }
        if version > self.version {
            self.version = version;
        }
        if is_saved_anew {
            writeln!(self.out, "# loaded anew at {} s", self.t_s).with_context(|| self.failed())?;
        }
        // Time in a log never falls.
        self.t_s = t_s.map_or(self.t_s, |t_s| t_s.max(self.t_s));
        Ok(())
    }

    /// Writes something down that the log does not repeat.
    pub fn comment(&mut self, text: &str) {
        let text = text.replace(['\n', '\r'], " ");
        // A disk that is full is said by the next line.
        let _ = writeln!(self.out, "# {text}");
    }

    fn write(&mut self, line: &Line) -> anyhow::Result<()> {
        let text = serde_json::to_string(line)?;
        writeln!(self.out, "{text}").with_context(|| self.failed())
    }

    fn failed(&self) -> String {
        format!("{}: cannot be written", self.path.display())
    }
}
