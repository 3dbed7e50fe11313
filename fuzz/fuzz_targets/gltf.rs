//! Bytes into the reader `gltf`: an answer or an error, nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::gltf(bytes));
