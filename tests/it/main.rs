//! The integration tests, one binary: `cargo test`. `REQUIRE_GPU=1` and `REQUIRE_DATA=1` turn a
//! skip for a missing adapter or missing data into a failure.

mod alley;
mod alloc;
mod api;
mod avatars;
mod bodies;
mod cli;
mod effects;
mod film;
mod formats;
mod given;
#[macro_use]
mod mind;
mod hostile;
mod live_coding;
mod motion;
mod picture;
mod reference;
mod reload;
mod script;
mod sog_spz;
mod sound;
mod sounding;
mod splattie;
mod survey;
mod tidy;
mod tools;
mod twins;
mod walk;
#[cfg(target_os = "linux")]
mod window;
