//! What the fuzz targets call: each reader with one input, and the checks on what it hands out.
//!
//! The module tree of the readers is included by path. Run from the repository root:
//! `cargo +nightly fuzz run ply -- -max_total_time=120`.
#![allow(
    dead_code,
    reason = "the readers' tree is included whole, targets call a part of it"
)]

#[path = "../src/audio/mod.rs"]
pub mod audio;
#[path = "../src/camera.rs"]
pub mod camera;
#[path = "../src/formats/mod.rs"]
pub mod formats;
#[path = "../src/motion/mod.rs"]
pub mod motion;
#[path = "../src/scene/mod.rs"]
pub mod scene;

use formats::container::{Memory, Zip};
use formats::splattie::{Bundle, FormatVersion};
use formats::{Container, Error, FileSplats, LoadOptions, Place};

use audio::{Bus, Clip, Follower, Listener, Mixer, Score, Source, VoiceSpec};
use std::sync::Arc;

fn quiet(_: f32) {}

/// An answer must be whole; an error must say something.
fn check(result: Result<FileSplats, Error>) {
    match result {
        Ok(file) => assert_eq!(file.splats.check_lengths(), Ok(()), "lengths differ"),
        Err(error) => assert!(!error.message.is_empty(), "an error without a message"),
    }
}

fn place() -> Place {
    Place::file("fuzz")
}

/// Float PLY.
pub fn ply(bytes: &[u8]) {
    check(formats::ply::read(bytes, &place(), &quiet));
}

/// Compressed PLY.
pub fn compressed_ply(bytes: &[u8]) {
    check(formats::compressed_ply::read(bytes, &place(), &quiet));
}

/// SPZ 1 to 4.
pub fn spz(bytes: &[u8]) {
    check(formats::spz::read(bytes, &place(), &quiet));
}

/// `.splat`.
pub fn dot_splat(bytes: &[u8]) {
    check(formats::dot_splat::read(bytes, &place(), &quiet));
}

/// `.ksplat`.
pub fn ksplat(bytes: &[u8]) {
    check(formats::ksplat::read(bytes, &place(), &quiet));
}

/// Binary glTF.
pub fn gltf(bytes: &[u8]) {
    check(formats::gltf::read(bytes, &place(), &quiet));
}

/// SOG: the input holds `meta.json` and the images, each behind a 16-bit length.
pub fn sog(bytes: &[u8]) {
    let names = [
        "meta.json",
        "means_l.webp",
        "means_u.webp",
        "scales.webp",
        "quats.webp",
        "sh0.webp",
        "shN_centroids.webp",
        "shN_labels.webp",
    ];
    check(formats::sog::read(
        &parts(bytes, &names),
        "meta.json",
        &quiet,
    ));
}

/// Streamed SOG: the manifest, then one unit as in [`sog`].
pub fn lod_meta(bytes: &[u8]) {
    let names = [
        "lod-meta.json",
        "0_0/meta.json",
        "0_0/means_l.webp",
        "0_0/means_u.webp",
        "0_0/scales.webp",
        "0_0/quats.webp",
        "0_0/sh0.webp",
    ];
    let options = LoadOptions::default();
    check(formats::lod_meta::read(
        &parts(bytes, &names),
        "lod-meta.json",
        &options,
        &quiet,
    ));
}

/// The zip container, every entry of it, and whatever it holds.
pub fn zip(bytes: &[u8]) {
    if let Ok(zip) = Zip::new(bytes.to_vec(), "fuzz") {
        for entry in zip.entries() {
            // 16 MiB is far above what an input of a fuzzer can honestly hold.
            let _ = zip.read(&entry, 16 << 20);
        }
        check(formats::read_in(&zip, None, &LoadOptions::default(), &quiet).map(|(_, file)| file));
    }
}

/// A bundle: its files as they lie in a zip, each behind a 16-bit length; read, and made one of
/// another version.
pub fn splattie(bytes: &[u8]) {
    let names = [
        "manifest.json",
        "bone_tree.json",
        "weights.json",
        "basis.json",
        "states.json",
        "head.ply",
        "basis.bin",
    ];
    let files = parts(bytes, &names);
    check(formats::read_in(&files, None, &LoadOptions::default(), &quiet).map(|(_, file)| file));
    // Past the manifest, which a fuzzer seldom gets right.
    let files = files.with("manifest.json", MANIFEST);
    let answer = formats::read_in(&files, None, &LoadOptions::default(), &quiet);
    if let Ok((_, file)) = &answer {
        let body = &file.avatar.as_ref().expect("a bundle has one").body;
        let rows = file.splats.len();
        assert!(body.skin.as_ref().is_none_or(|skin| skin.len() == rows));
        assert!(body.shapes.names.is_empty() || body.shapes.len() == rows);
    }
    check(answer.map(|(_, file)| file));
    if let Ok(mut bundle) = Bundle::open(&files, None) {
        for version in FormatVersion::ALL {
            let _ = bundle.set_version(version);
        }
    }
}

/// Sound files: Ogg Vorbis, WAV, FLAC, MP3. What is read must play and be followed, streamed too.
pub fn clip(bytes: &[u8]) {
    // A long file is streamed; a tenth of a second makes a short one long.
    for held_max_s in [audio::clip::HELD_MAX_S, 0.1] {
        let clip = match Clip::decode_holding("fuzz", bytes.into(), held_max_s) {
            Ok(clip) => Arc::new(clip),
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error without a message");
                return;
            }
        };
        assert!(clip.length_samples() > 0, "an empty clip");
        if clip.is_held() {
            let heard = Follower::new(&clip).expect("held").at(0.01);
            assert!(heard.level_db.is_finite() && heard.centre_hz.is_finite());
        }
        let bus = Bus {
            name: "main".to_owned(),
            gain_db: 0.0,
            is_through_mic: false,
        };
        let mut score = Score::new(vec![bus]).expect("one bus");
        let source = Source::Clip {
            clip: Arc::clone(&clip),
            from_s: 0.0,
            speed: 1.0,
            is_looped: true,
        };
        score.add(VoiceSpec::new(0, source)).expect("in range");
        let mut mixer = Mixer::new(score, 1);
        let mut out = [[0.0; 2]; 960];
        for from in [0, clip.length_samples() / 2, clip.length_samples() - 480] {
            mixer.render(from, &Listener::default(), &mut out);
            assert!(out.iter().flatten().all(|v| v.abs() <= 1.0), "no number");
        }
    }
}

/// Names every file of the input.
const MANIFEST: &str = r#"{
    "format": "splattie",
    "formatVersion": "0.3.0",
    "avatar": { "splat": { "file": "head.ply" } },
    "animation": {
        "skeleton": { "file": "bone_tree.json" },
        "weights": { "file": "weights.json" },
        "expression": { "basis": "basis.bin" }
    },
    "widget": { "config": "states.json" }
}"#;

/// Cuts the input into named entries; the last one takes the rest.
fn parts(mut bytes: &[u8], names: &[&str]) -> Memory {
    let mut memory = Memory::new("fuzz");
    for name in names {
        let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
            break;
        };
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (part, after) = rest.split_at(length);
        memory = memory.with(*name, part);
        bytes = after;
    }
    memory
}
