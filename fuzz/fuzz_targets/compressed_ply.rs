//! Bytes into the reader `compressed_ply`: an answer or an error, nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::compressed_ply(bytes));
