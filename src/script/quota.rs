//! What a script may hold in the host's memory, which Luau's own limit does not see.

use mlua::{Error, Lua, Result};
use std::cell::Cell;
use std::rc::Rc;

/// A number of things that all holders share.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    left: Rc<Cell<usize>>,
    /// What the sentence in the error says: "a scene may ...".
    rule: Rc<str>,
}

/// A holder's part, given back on drop.
#[derive(Debug)]
pub(super) struct Share {
    count: usize,
    quota: Quota,
}

impl Quota {
    pub(super) fn new(max: usize, rule: &str) -> Self {
        Self {
            left: Rc::new(Cell::new(max)),
            rule: rule.into(),
        }
    }

    /// Takes a share for `what`, the function that a message names.
    pub(super) fn take(&self, lua: &Lua, count: usize, what: &str) -> Result<Share> {
        if self.left.get() < count {
            // Some may be held by garbage.
            lua.gc_collect()?;
        }
        let mut share = Share {
            count: 0,
            quota: self.clone(),
        };
        share.resize(count, what)?;
        Ok(share)
    }
}

impl Share {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A share of nothing in the same quota.
    pub(super) fn empty(&self) -> Self {
        Self {
            count: 0,
            quota: self.quota.clone(),
        }
    }

    /// Makes the share larger or smaller.
    pub(super) fn resize(&mut self, count: usize, what: &str) -> Result<()> {
        let Some(left) = (self.quota.left.get() + self.count).checked_sub(count) else {
            return Err(Error::runtime(format!("{what}: {}", self.quota.rule)));
        };
        self.quota.left.set(left);
        self.count = count;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.quota.left.set(self.quota.left.get() + self.count);
    }
}
