//! Where named bytes come from: a folder, a zip, memory. Nothing is ever unpacked to disk.
//!
//! Names are checked by [`clean_name`] in all three, so that a hostile archive or manifest cannot
//! reach outside (bugs of the kind "zip slip"). A zip is read from memory; entries stored without
//! compression are lent out without a copy, deflated ones are inflated under a cap.

use super::{Code, ENTRY_BYTES_MAX, Error, Place};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// Named entries, read whole. Names use `/`, are relative and never lead outside.
pub trait Container: Send + Sync {
    /// What to call it in messages: the path as the user named it.
    fn name(&self) -> &str;
    /// All entries, sorted. May be empty for a folder that is too large to list.
    fn entries(&self) -> Vec<String>;
    /// Whether an entry is there.
    fn contains(&self, entry: &str) -> bool;
    /// The bytes of one entry, at most `bytes_max` of them.
    ///
    /// # Errors
    /// Not there, unsafe name, larger than `bytes_max`, or unreadable.
    fn read(&self, entry: &str, bytes_max: u64) -> Result<Cow<'_, [u8]>, Error>;
    /// The place of one entry, for messages.
    fn place(&self, entry: &str) -> Place {
        Place::file(self.name()).entry(entry)
    }
}
