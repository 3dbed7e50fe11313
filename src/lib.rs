//! splatstage: a native player and live-coding stage for Gaussian splats. These pages are the
//! architecture; README says how to use the program.
//!
//! # One waist
//!
//! A scene is a Luau script. Asked for a time, it answers with a [`frame::Frame`]: plain data that
//! says which splats stand where, from which camera, on which background. Everything that shows
//! something consumes that one type, and nothing below it knows Lua:
//!
//! ```text
//!  file -> formats -> Splats (immutable, shared) -------------------+
//!                       | names, bounds                            v
//!  Input, t ---> script ---> Frame (plain data) --+--> gpu: deform > cull > project > sort > raster
//!    ^   (Luau: what happens)                     |        > compose, or film > finish
//!    |                                            |        -> window | PNG | GIF | video
//!    |                                            |        > pick -> what the pointer is over -+
//!    |                                            +--> reference: the same stages, slow, readable
//!    |                                            +--> trace: text                             |
//!  app (window, pads, OSC, files, clock) <-----------------------------------------------------+
//! ```
//!
//! Policy is in Luau, mechanism in Rust. An avatar shows the cut: bones, blendshapes, edits and hits
//! are host primitives; states, gaze, blinks and every gain are in `scripts/avatar.luau` and what it
//! requires.
//!
//! Time is an argument: `frame(t)` is asked for any t, in any order. What depends on live input
//! runs in `step(dt, input)` at a fixed 240 Hz. So a picture in the window, in a video and in a
//! test is the same picture: same scene, script, seed, input and t give the same `Frame`, and the
//! same `Frame` gives the same bytes on one adapter, driver and method.
//!
//! # Layers
//!
//! Lower ones first; a module names lower ones only, siblings never each other. `tests/it/tidy.rs`
//! holds this, and who may name which foreign crate.
//!
//! | layer | modules |
//! |---|---|
//! | maths | [`camera`] (lens, extrinsics), [`motion`] (easing, spring, spline, noise, track) |
//! | data | [`scene`]: splats, sheets of them, spherical harmonics, axes, placement; bodies, poses, edits. [`film`]: shutter, lens and sensor. [`effect`]: an author's WGSL for every splat, checked and run on the CPU; what spreads along a surface |
//! | waist | [`frame`]: `Frame` out of scripts, `Input` and `Event` into them; beside it [`survey`]: what a scan is like inside |
//! | sound | [`audio`]: a score of voices, and samples of it; below `script`, since what a script says of sound is voices |
//! | work | [`formats`] (bytes and splats), [`script`] (the only place that knows Lua), [`gpu`] (the only place that knows wgpu), [`reference`] (CPU twins of the GPU stages) |
//! | outside | [`app`]: window, files, clocks, threads, other programs; the binary's `cli` parses and prints |
//!
//! Editor and kiosk will be modules of their own between work and `app`. Sound is mixed at any time
//! from one list of voices, so playing, seeking and writing a file give the same samples. Which voices
//! there are a script says, as plain data like a frame: beds when it has loaded, the others for any
//! interval that it is asked for.
//!
//! # Invariants
//!
//! - Nothing below `app` opens a path of its own accord, asks for the time to decide what is drawn,
//!   or draws an unseeded random: files come through traits and containers, t is an argument.
//! - A splat's row number in its file is never lost: rows are not reordered, and rows that cannot
//!   be drawn stay in place and are skipped. Skin and blendshapes of a [`scene::Body`] rely on it.
//! - A file from outside cannot panic, hang or exhaust the host: sizes are checked in 64 bits
//!   before allocation, limits have names, and each reader has a fuzz target ([`formats`]).
//! - What is edited live keeps its last good version: script, shader, splat file.
//! - A script cannot stop the host: budgets, memory limit, quotas ([`script`]).
//! - A missing adapter feature, display, sound device or gamepad is a reported condition with a
//!   fallback.
//!
//! # Spaces and units
//!
//! World: right-handed, y up, metres; cameras look along -z at yaw 0. Files come in by their own
//! convention and are turned once, on load ([`scene::Axes`]). Inside, angles are radians; at the
//! doors (Lua, JSON, command line) they are degrees. Colours are blended in the stored display
//! space, as trained. Units stand last in a name: `_s _ms _m _px _rad _deg _db`.
//!
//! # Film
//!
//! A filmed picture ([`film::Film`]) collects light for a while: each row over its own exposure, from a
//! camera that moves. The splats are rendered once, with overscan, into two layers that are split where
//! near things stand before far ones; every pixel then asks at ten to 48 instants where its ray was and
//! what it met there, by the splats' own depth ([`gpu`]: `film`). The three poses come from the scene
//! itself ([`app::filming`]). `--film reference` renders every instant whole: the truth that the fast pass
//! is held to by `tests/it/film.rs`. What a phone does over time (exposure, focus, zoom) is policy, in
//! `scripts/phone.luau`.
//!
//! # Two rasterisers, one rule
//!
//! Compute tiles for GPUs, the fixed-function pipeline for software drivers and small GPUs; both
//! take the same records and are held to the same CPU reference by `tests/it/twins.rs`. The rule is
//! the trainers': dilation 0.3 px², alpha = min(0.99, o exp(p)), cut at 1/255, stop before the
//! transmittance falls under 1e-4 (fixed-function blending cannot stop; what it adds is under the
//! rounding of 8 bits). See [`gpu`] for packing: 32 bytes a splat and a compact SH codec.

pub mod app;
pub mod audio;
pub mod camera;
pub mod effect;
pub mod film;
pub mod formats;
pub mod frame;
pub mod gpu;
pub mod motion;
pub mod reference;
pub mod scene;
pub mod script;
pub mod survey;
