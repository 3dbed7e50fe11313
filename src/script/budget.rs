//! What a script may use up: time, interrupts, memory. Once over, it stays stopped until the call
//! returns.
//!
//! Luau calls the interrupt at every call and loop edge and inside pattern matching. Live, a call
//! has a budget by clock. Offline it has one by the count of interrupts, which is the same on every
//! run; the clock only stands behind it, far off, for library functions that are slow per call.
//! Time spent in the host (loading a file) is not counted.
//!
//! Memory has two lines. The soft one is looked at in the interrupt, where the script can be stopped
//! with a line number and with room left for the handler. The hard one, above it, is the
//! allocator's, and refuses single huge allocations.

use super::blame::{self, Place};
use mlua::{Lua, VmState};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Clock budget of a load (the file's body, `load`, `on_reload`), seconds.
pub const LOAD_S_MAX: f64 = 2.0;
/// The same where nothing plays yet, seconds: there is no picture that a slow machine would hold up, and a
/// built-in scene has to come up on it.
pub const LOAD_FIRST_S_MAX: f64 = 10.0;
/// Clock budget of any other call, seconds.
pub const CALL_S_MAX: f64 = 0.1;
/// Interrupts of a load when not live: about 2 s at the 20 ns that a short loop body takes.
pub const LOAD_INTERRUPTS_MAX: u64 = 100_000_000;
/// Interrupts of any other call when not live.
pub const CALL_INTERRUPTS_MAX: u64 = 4_000_000;
/// Clock limit of any call when not live, seconds: only a script that loops over huge library calls
/// gets here.
pub const DETERMINISTIC_S_MAX: f64 = 20.0;
/// What a script may hold, without splats: 256 MiB.
pub const MEMORY_BYTES_MAX: usize = 256 << 20;
/// Where the allocator says no.
const MEMORY_BYTES_HARD: usize = MEMORY_BYTES_MAX + (32 << 20);
/// What catching an error costs, in interrupts: it takes about 1 us.
pub(super) const INTERRUPTS_PER_ERROR: u64 = 40;
/// The clock is read once in so many interrupts (reading it takes as long as five of them).
const CLOCK_EVERY: u64 = 16;

/// Why a script was stopped, and where it was.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub place: Option<Place>,
    pub message: String,
    pub traceback: String,
}

/// Which budget a call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Load,
    Call,
}

pub(super) struct Budget {
    live: bool,
    /// Clock budget of a load, seconds.
    load_s: f64,
    count: Cell<u64>,
    count_max: Cell<u64>,
    kind: Cell<Kind>,
    deadline: Cell<Instant>,
    stopped: Cell<bool>,
    fault: RefCell<Option<Fault>>,
}

impl Budget {
    pub(super) fn new(live: bool, is_first: bool) -> Self {
        Self {
            live,
            load_s: if is_first {
                LOAD_FIRST_S_MAX
            } else {
                LOAD_S_MAX
            },
            count: Cell::new(0),
            count_max: Cell::new(u64::MAX),
            kind: Cell::new(Kind::Load),
            deadline: Cell::new(now()),
            stopped: Cell::new(false),
            fault: RefCell::new(None),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// Starts a call with a full budget.
    pub(super) fn begin(&self, kind: Kind) {
        self.kind.set(kind);
        self.count.set(0);
        self.count_max.set(match (self.live, kind) {
            (true, _) => u64::MAX,
            (false, Kind::Load) => LOAD_INTERRUPTS_MAX,
            (false, Kind::Call) => CALL_INTERRUPTS_MAX,
        });
        self.deadline.set(now() + self.allowed());
        self.stopped.set(false);
        *self.fault.borrow_mut() = None;
    }

    fn allowed(&self) -> Duration {
        Duration::from_secs_f64(match (self.live, self.kind.get()) {
            (false, _) => DETERMINISTIC_S_MAX,
            (true, Kind::Load) => self.load_s,
            (true, Kind::Call) => CALL_S_MAX,
        })
    }

    /// Runs host work whose time is not the script's.
    pub(super) fn off_the_clock<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = now();
        let result = work();
        self.deadline.set(self.deadline.get() + start.elapsed());
        result
    }

    /// The fault, once the script has been stopped.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault.borrow().clone()
    }

    /// Stops the script: every later interrupt and `check` raises, whatever catches it.
    pub(super) fn stop(&self, lua: &Lua, message: String) {
        if !self.stopped.replace(true) {
            *self.fault.borrow_mut() = Some(Fault {
                place: blame::place(lua),
                message,
                traceback: blame::traceback(lua),
            });
        }
    }

    /// Counts work that has no interrupts of its own.
    pub(super) fn charge(&self, interrupts: u64) {
        // Whole clock periods, so that the clock is still read.
        let periods = interrupts.next_multiple_of(CLOCK_EVERY);
        self.count.set(self.count.get().saturating_add(periods));
    }

    /// Raises when the script has been stopped.
    pub(super) fn check(&self) -> mlua::Result<()> {
        if self.stopped.get() {
            return Err(mlua::Error::runtime("stopped by the host"));
        }
        Ok(())
    }

    /// Sets limits and interrupt of a VM. The interrupt holds this budget, never the VM.
    pub(super) fn install(self: &std::rc::Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        lua.set_memory_limit(MEMORY_BYTES_HARD)?;
        let budget = self.clone();
        lua.set_interrupt(move |lua| budget.interrupt(lua).map(|()| VmState::Continue));
        Ok(())
    }

    fn interrupt(&self, lua: &Lua) -> mlua::Result<()> {
        self.check()?;
        let count = self.count.get().saturating_add(1);
        self.count.set(count);
        if count > self.count_max.get() {
            self.stop(
                lua,
                format!(
                    "stopped after {} calls and loop turns in one {}; is this an endless loop?",
                    self.count_max.get(),
                    self.noun()
                ),
            );
        } else if count.is_multiple_of(CLOCK_EVERY) && now() > self.deadline.get() {
            self.stop(
                lua,
                format!(
                    "stopped after {} s in one {}; is this an endless loop?",
                    self.allowed().as_secs_f64(),
                    self.noun()
                ),
            );
        } else if lua.used_memory() > MEMORY_BYTES_MAX {
            // Most of it may be garbage that the collector has not come to yet.
            lua.gc_collect()?;
            if lua.used_memory() > MEMORY_BYTES_MAX / 4 * 3 {
                self.stop(lua, out_of_memory());
            }
        }
        self.check()
    }

    fn noun(&self) -> &'static str {
        match self.kind.get() {
            Kind::Load => "load",
            Kind::Call => "call",
        }
    }
}

/// Says when a live script has used up a call's time over several calls.
pub(super) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    /// Never over when not live.
    pub(super) fn start(live: bool) -> Self {
        Self(live.then(now))
    }

    pub(super) fn is_over(&self) -> bool {
        self.0
            .is_some_and(|start| start.elapsed().as_secs_f64() > CALL_S_MAX)
    }
}

/// The sentence for both memory lines.
pub(super) fn out_of_memory() -> String {
    format!(
        "out of memory: a script may hold {} MiB",
        MEMORY_BYTES_MAX >> 20
    )
}

/// The watchdog's clock: the only one below `app`, and no script can read it.
fn now() -> Instant {
    Instant::now()
}
