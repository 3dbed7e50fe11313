//! A cursor over bytes from outside: little-endian values, bounds checked, errors with a place.

use super::{Error, Place};

/// Reads forward; every read that would pass the end is an error that names what was wanted.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    all: &'a [u8],
    rest: &'a [u8],
    at: &'a Place,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8], at: &'a Place) -> Self {
        Self {
            all: bytes,
            rest: bytes,
            at,
        }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        (self.all.len() - self.rest.len()) as u64
    }

    /// Bytes that are left.
    pub(crate) fn remaining(&self) -> u64 {
        self.rest.len() as u64
    }

    /// The next `count` bytes; `what` names them in the error. Sizes from headers go in as u64.
    pub(crate) fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], Error> {
        let split = usize::try_from(count)
            .ok()
            .and_then(|count| self.rest.split_at_checked(count));
        let (taken, rest) =
            split.ok_or_else(|| self.at.truncated(what, count, self.remaining()))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes as an array.
    pub(crate) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or_else(|| self.at.truncated(what, N as u64, self.remaining()))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    /// Two bytes, little endian.
    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    /// Four bytes, little endian.
    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    /// Eight bytes, little endian.
    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Four bytes, little endian.
    pub(crate) fn f32(&mut self, what: &str) -> Result<f32, Error> {
        Ok(f32::from_le_bytes(self.array(what)?))
    }
}
