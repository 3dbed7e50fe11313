//! `log.info`, `log.warn`, `log.error` and `print`, with a limit on how much a script may say.
//!
//! The limit is a bucket of lines that every call into the script refills a little, so it needs no
//! clock and a run says the same lines every time.

use super::Log;
use super::api::{self, Space};
use super::blame;
use mlua::{Lua, MultiValue, Result, Table, Value};
use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

/// Lines that a script may say in one burst.
const LINES_BURST: u32 = 500;
/// Lines that each call into the script adds to what it may say.
const LINES_PER_CALL: u32 = 2;
/// Longest line, bytes.
const LINE_BYTES_MAX: usize = 2048;

/// The way out of the VM, for lines of text.
pub(super) struct Sink {
    log: Log,
    lines_left: Cell<u32>,
    said_full: Cell<bool>,
}

impl Sink {
    pub(super) fn new(log: Log) -> Self {
        Self {
            log,
            lines_left: Cell::new(LINES_BURST),
            said_full: Cell::new(false),
        }
    }

    /// A call into the script begins.
    pub(super) fn refill(&self) {
        let lines = (self.lines_left.get() + LINES_PER_CALL).min(LINES_BURST);
        self.lines_left.set(lines);
        // Room for a burst again: the next flood is worth a warning of its own.
        if lines == LINES_BURST {
            self.said_full.set(false);
        }
    }

    /// One line from the script.
    pub(super) fn say(&self, level: &str, text: &str) {
        match self.lines_left.get() {
            0 if !self.said_full.replace(true) => (self.log)(
                "warn",
                &format!(
                    "the script says more than {LINES_BURST} lines at once or {LINES_PER_CALL} a \
                     call; the rest is dropped"
                ),
            ),
            0 => {}
            left => {
                self.lines_left.set(left - 1);
                (self.log)(level, text);
            }
        }
    }
}

/// The `log` table (not yet read-only), and `print` among the globals.
pub(super) fn bind(lua: &Lua, sink: &Rc<Sink>, globals: &mut Space<'_>) -> Result<Table> {
    let sayer = |level: &'static str| {
        let sink = sink.clone();
        move |lua: &Lua, values: MultiValue| {
            // A dropped line costs no formatting.
            if sink.lines_left.get() == 0 {
                sink.say(level, "");
            } else {
                sink.say(level, &line(lua, &values));
            }
            Ok(())
        }
    };
    let mut log = Space::new(lua, &api::LOG)?;
    for level in ["info", "warn", "error"] {
        log.function(level, sayer(level))?;
    }
    globals.function("print", sayer("info"))?;
    log.finish()
}

/// The values as one line, with the author's place before it.
fn line(lua: &Lua, values: &MultiValue) -> String {
    let mut text = String::new();
    if let Some(place) = blame::place(lua) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}:{}: ", place.file, place.line);
    }
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(' ');
        }
        match value {
            Value::String(s) => {
                text.push_str(&super::args::beginning(&s.as_bytes(), LINE_BYTES_MAX + 1));
            }
            Value::Nil => text.push_str("nil"),
            other => text.push_str(&super::args::describe(other)),
        }
        if text.len() > LINE_BYTES_MAX {
            text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
            text.push_str("...");
            break;
        }
    }
    text
}
