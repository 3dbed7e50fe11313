//! Bytes into the reader `dot_splat`: an answer or an error, nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::dot_splat(bytes));
