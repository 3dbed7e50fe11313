//! What a scan is like inside: where matter is, where the floor is, where one can walk.
//!
//! Everything is found from placed splats alone and answered in world space: y up, metres. It reads
//! no file, asks no clock and knows no script; who needs progress hands in a function. The same
//! splats give the same answers on any number of threads.

mod fill;
pub mod voxels;

pub use voxels::{Look, Placed, Voxels};
