//! Where named bytes come from: a folder, a zip, memory.

use super::Error;
use std::borrow::Cow;

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
}
