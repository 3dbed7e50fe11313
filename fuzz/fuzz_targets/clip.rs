//! Bytes into the readers of sound files: an answer or an error, nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::clip(bytes));
