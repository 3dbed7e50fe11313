//! Bytes into the reader `lod_meta`: an answer or an error, nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::lod_meta(bytes));
