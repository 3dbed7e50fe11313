//! SOG, streamed SOG and SPZ: rows against reference decodes, round trips, and hostile files.
//!
//! Reference decodes are float PLY files by another program; they are read here by a reader of a
//! few lines, so that no reader of the crate stands in for the truth.

use crate::given;
use glam::{Mat3, Quat, Vec3};
use serde_json::{Value, json};
use splatstage::formats::container::{Container, Folder, Memory, Zip};
use splatstage::formats::convert::{ConvertOptions, convert};
use splatstage::formats::{Code, Error, FileSplats, LoadOptions, read_in};
use splatstage::scene::Splats;
use std::path::Path;

const QUIET: &(dyn Fn(f32) + Sync) = &|_| ();

/// Rows of a file or folder that holds them, in file space.
fn rows(path: &Path) -> Result<FileSplats, Error> {
    rows_with(path, &LoadOptions::default())
}

fn rows_with(path: &Path, options: &LoadOptions) -> Result<FileSplats, Error> {
    splatstage::formats::read(path, options, QUIET).map(|(_, rows)| rows)
}

/// Rows of a bundle or single file in memory.
fn rows_of(name: &str, bytes: &[u8]) -> Result<FileSplats, Error> {
    let memory = Memory::new(name).with(name, bytes);
    read_in(&memory, Some(name), &LoadOptions::default(), QUIET).map(|(_, rows)| rows)
}

/// Columns of a binary float PLY.
struct Reference {
    names: Vec<String>,
    values: Vec<f32>,
}

impl Reference {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the reference decode is there");
        let end = b"end_header\n";
        let start = bytes
            .windows(end.len())
            .position(|w| w == end)
            .expect("the reference decode is a PLY")
            + end.len();
        let header = std::str::from_utf8(&bytes[..start]).expect("PLY headers are text");
        let names = header
            .lines()
            .filter_map(|line| line.strip_prefix("property float "))
            .map(str::to_owned)
            .collect();
        let values = bytes[start..]
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        Self { names, values }
    }

    fn len(&self) -> usize {
        self.values.len() / self.names.len()
    }

    fn get(&self, row: usize, name: &str) -> f32 {
        let column = self.names.iter().position(|n| n == name);
        self.values[row * self.names.len() + column.expect("the reference has the column")]
    }

    fn vec3(&self, row: usize, names: [&str; 3]) -> Vec3 {
        Vec3::from_array(names.map(|n| self.get(row, n)))
    }

    /// Further coefficients per channel.
    fn coefficients(&self) -> usize {
        self.names
            .iter()
            .filter(|n| n.starts_with("f_rest_"))
            .count()
            / 3
    }
}

/// Holds rows `first..` of `splats` against a reference decode, at the tolerances of the project:
/// position 1e-5 of the scene's size, rotation 1e-4 up to sign, log-scale 1e-4, colour and opacity
/// 1/255, SH 1e-4.
fn agree(splats: &Splats, first: usize, reference: &Reference, what: &str) {
    let size = splats.bounds().expect("there are splats").radius() * 2.0;
    let per_channel = reference.coefficients();
    assert_eq!(splats.sh_stride(), per_channel * 3, "{what}: SH degree");
    assert!(splats.check_lengths().is_ok(), "{what}");
    for row in 0..reference.len() {
        let i = first + row;
        let at = || format!("{what}, row {row}");
        let near = |a: Vec3, b: Vec3, tolerance: f32, field: &str| {
            let off = (a - b).abs().max_element();
            assert!(
                off <= tolerance,
                "{}: {field} {a} is off {b} by {off}",
                at()
            );
        };
        near(
            splats.means[i],
            reference.vec3(row, ["x", "y", "z"]),
            1e-5 * size,
            "position",
        );
        near(
            splats.log_scales[i],
            reference.vec3(row, ["scale_0", "scale_1", "scale_2"]),
            1e-4,
            "log-scale",
        );
        let dc = reference.vec3(row, ["f_dc_0", "f_dc_1", "f_dc_2"]);
        near(
            splats.dc[i] * 0.282_095,
            dc * 0.282_095,
            1.0 / 255.0,
            "colour",
        );
        let [w, x, y, z] = [0, 1, 2, 3].map(|k| reference.get(row, &format!("rot_{k}")));
        let q = Quat::from_xyzw(x, y, z, w).normalize();
        let q = if q.dot(splats.rotations[i]) < 0.0 {
            -q
        } else {
            q
        };
        let off = (splats.rotations[i] - q).length();
        assert!(
            off <= 1e-4,
            "{}: rotation {:?} is off {q:?}",
            at(),
            splats.rotations[i]
        );
        let opacity = 1.0 / (1.0 + (-reference.get(row, "opacity")).exp());
        assert!(
            (splats.opacities[i] - opacity).abs() <= 1.0 / 255.0,
            "{}: opacity",
            at()
        );
        for (k, rgb) in splats.sh_rest_of(i).chunks_exact(3).enumerate() {
            for (c, value) in rgb.iter().enumerate() {
                let wanted = reference.get(row, &format!("f_rest_{}", c * per_channel + k));
                assert!((value - wanted).abs() <= 1e-4, "{}: SH {k} {c}", at());
            }
        }
    }
}

#[test]
fn rows_agree_with_the_reference_decodes() {
    let cases = [
        (
            "generated/playbot_l6.sog",
            "generated/playbot_l6.sog.decoded.ply",
        ),
        (
            "generated/playbot_l6_sh0.sog",
            "generated/playbot_l6_sh0.sog.decoded.ply",
        ),
        (
            "generated/playbot_l6_v3.spz",
            "generated/playbot_l6_v3.spz.decoded.ply",
        ),
        (
            "generated/playbot_l6_v4.spz",
            "generated/playbot_l6_v4.spz.decoded.ply",
        ),
        ("generated/lod4/0_0", "generated/lod4_decoded/0_0.ply"),
        ("generated/lod4/2_0", "generated/lod4_decoded/2_0.ply"),
        ("generated/lod4/env", "generated/lod4_decoded/env.ply"),
        (
            "engine/playbot/0_0",
            "engine/decoded_first2000/playbot_0.ply",
        ),
        (
            "engine/playbot/3_0",
            "engine/decoded_first2000/playbot_3.ply",
        ),
        (
            "engine/playcanvas-logo",
            "engine/decoded_first2000/logo_v1.ply",
        ),
        ("engine/biker.spz", "engine/decoded_first2000/biker_spz.ply"),
    ];
    for (file, reference) in cases {
        let Some(path) = given::data(&format!("formats/{file}")) else {
            return;
        };
        let Some(reference) = given::data(&format!("formats/{reference}")) else {
            return;
        };
        let found = rows(&path).unwrap_or_else(|e| panic!("{e}"));
        agree(&found.splats, 0, &Reference::read(&reference), file);
    }
}

#[test]
fn small_spz_files_of_each_version_hold_what_the_reference_says() {
    for (file, table) in [
        ("minimal-raw.spz", "minimal-v2.spz.csv"),
        ("minimal-v2.spz", "minimal-v2.spz.csv"),
        ("minimal-v3.spz", "minimal-v3.spz.csv"),
        ("minimal-v4.spz", "minimal-v4.spz.csv"),
    ] {
        let Some(path) = given::data(&format!("formats/splat-transform-fixtures/{file}")) else {
            return;
        };
        let Some(table) = given::data(&format!("formats/generated/fixtures_decoded/{table}"))
        else {
            return;
        };
        let text = std::fs::read_to_string(table).expect("the reference is there");
        let mut lines = text.lines();
        let names = lines
            .next()
            .unwrap_or_default()
            .split(',')
            .map(str::to_owned)
            .collect();
        let values = lines
            .flat_map(|line| line.split(','))
            .map(|v| v.parse().expect("the reference holds numbers"))
            .collect();
        let found = rows(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.splats.len(), 4, "{file}");
        agree(&found.splats, 0, &Reference { names, values }, file);
    }
}

#[test]
fn a_level_of_a_streamed_scan_is_its_units_in_order() {
    let Some(scan) = given::data("formats/generated/lod4/lod-meta.json") else {
        return;
    };
    let Some(decoded) = given::data("formats/generated/lod4_decoded") else {
        return;
    };
    let options = |level, environment| LoadOptions {
        level: Some(level),
        environment,
        ..LoadOptions::default()
    };
    let finest = rows_with(&scan, &options(0, false)).unwrap_or_else(|e| panic!("{e}"));
    let counts: Vec<u64> = finest.levels.iter().map(|l| l.count).collect();
    assert_eq!(counts, [31_000, 8_406, 3_000, 1_873]);
    assert!(finest.levels.iter().all(|l| l.present));
    assert!(finest.warnings.is_empty(), "{:?}", finest.warnings);
    assert_eq!(finest.splats.len(), 31_000);
    let mut first = 0;
    for unit in ["0_0", "0_1", "0_2", "0_3"] {
        let reference = Reference::read(&decoded.join(format!("{unit}.ply")));
        agree(&finest.splats, first, &reference, unit);
        first += reference.len();
    }
    let coarse = rows_with(&scan, &options(1, true)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        coarse.splats.len(),
        8_406 + 1_873,
        "the environment follows the level"
    );
    let by_budget = LoadOptions {
        budget: Some(5_000),
        ..LoadOptions::default()
    };
    assert_eq!(
        rows_with(&scan, &by_budget).map(|r| r.splats.len()),
        Ok(3_000)
    );
    let error = rows_with(&scan, &options(9, false)).expect_err("there is no level 9");
    assert!(error.message.contains("levels 0 (finest) to 3"), "{error}");
}

#[test]
fn a_missing_unit_is_drawn_coarser_with_one_warning() {
    let Some(scan) = given::data("formats/generated/lod4") else {
        return;
    };
    let folder = Folder::new(&scan, "lod4");
    let mut memory = Memory::new("lod4");
    for entry in folder.entries() {
        // One unit without its folder, one with an image gone.
        if !entry.starts_with("0_1/") && entry != "0_2/quats.webp" {
            let bytes = folder
                .read(&entry, u64::MAX)
                .unwrap_or_else(|e| panic!("{e}"));
            memory = memory.with(entry.clone(), bytes.into_owned());
        }
    }
    let options = LoadOptions {
        level: Some(0),
        ..LoadOptions::default()
    };
    let (_, found) =
        read_in(&memory, Some("lod-meta.json"), &options, QUIET).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.warnings.len(), 1, "{:?}", found.warnings);
    assert!(
        found.warnings[0].contains("2 of 4 units are missing"),
        "{:?}",
        found.warnings
    );
    let present: Vec<bool> = found.levels.iter().map(|l| l.present).collect();
    assert_eq!(present, [false, true, true, true]);
    assert!(found.splats.len() > 8_406 && found.splats.len() < 31_000);
    // The scan keeps its extent: the holes are filled.
    let whole = rows_with(&scan.join("lod-meta.json"), &options).unwrap_or_else(|e| panic!("{e}"));
    let (a, b) = (found.splats.bounds(), whole.splats.bounds());
    let (a, b) = (a.expect("not empty"), b.expect("not empty"));
    assert!(
        (a.radius() - b.radius()).abs() < 0.05 * b.radius(),
        "{a:?} {b:?}"
    );
}

#[test]
fn the_flat_loads_at_level_1_and_falls_back_from_level_0() {
    let Some(scan) = given::data("scenes/lacadiere/lod-meta.json") else {
        return;
    };
    let found = rows(&scan).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        found.splats.len(),
        2_994_006,
        "level 1 is the finest that fits the budget"
    );
    let levels: Vec<_> = found.levels.iter().map(|l| (l.count, l.present)).collect();
    assert_eq!(
        levels,
        [
            (12_006_253, false),
            (2_994_006, true),
            (1_495_636, true),
            (746_973, true)
        ]
    );
    let options = LoadOptions {
        level: Some(0),
        ..LoadOptions::default()
    };
    let mixed = rows_with(&scan, &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(mixed.warnings.len(), 1, "{:?}", mixed.warnings);
    assert!(
        mixed.warnings[0].contains("17 of 22 units are missing"),
        "{:?}",
        mixed.warnings
    );
    assert!(mixed.splats.len() > 2_994_006);
}

#[test]
fn the_same_scene_stands_the_same_in_spz_and_ply() {
    let Some(folder) = given::data("") else {
        return;
    };
    let world = |file: &str| {
        splatstage::formats::load(&folder.join(file), &LoadOptions::default(), QUIET)
            .unwrap_or_else(|e| panic!("{e}"))
            .splats
    };
    let a = world("formats/engine/biker.spz")
        .percentile_bounds(0.01)
        .expect("not empty");
    let b = world("formats/engine/biker.compressed.ply")
        .percentile_bounds(0.01)
        .expect("not empty");
    let off = (a.min - b.min).length().max((a.max - b.max).length());
    assert!(off < 0.02 * b.radius(), "{a:?} {b:?}");
    let three = |kind: &str| {
        world(&format!(
            "tiny/metalsplatter_test-splat.3-points-from-train.{kind}"
        ))
    };
    let (ply, spz, dot) = (three("ply"), three("spz"), three("splat"));
    for i in 0..3 {
        assert!(
            (ply.means[i] - spz.means[i]).length() < 2e-3,
            "{} {}",
            ply.means[i],
            spz.means[i]
        );
        assert!((ply.means[i] - dot.means[i]).length() < 1e-5);
        // Quaternions of one splat may differ by a half turn about its own axes: compare shapes.
        let shape = |q: Quat| {
            let axes = Mat3::from_quat(q);
            let variance =
                ply.log_scales[i] * 2.0 - Vec3::splat(ply.log_scales[i].max_element() * 2.0);
            let variance = Vec3::from_array(variance.to_array().map(f32::exp));
            axes * Mat3::from_diagonal(variance) * axes.transpose()
        };
        let a = shape(ply.rotations[i]);
        for (other, tolerance) in [(&spz, 4e-3), (&dot, 2e-2)] {
            let b = shape(other.rotations[i]);
            assert!(a.abs_diff_eq(b, tolerance), "{i}: {a} {b}");
            let off = (ply.log_scales[i] - other.log_scales[i])
                .abs()
                .max_element();
            assert!(off < 0.51 / 16.0, "{i}: {off}");
            assert!((ply.opacities[i] - other.opacities[i]).abs() < 1.0 / 255.0);
        }
    }
    for (a, b) in ply.sh_rest.iter().zip(&spz.sh_rest) {
        // The library keeps 4 bits of the upper bands.
        assert!((a - b).abs() < 0.07, "{a} {b}");
    }
}

/// A float PLY of `count` splats of degree 3 that fill a box, with 300 different sets of higher
/// coefficients, and the values that it holds.
fn made(count: usize) -> (Vec<u8>, Splats) {
    let mut state = 1_u64;
    let mut random = move || {
        // Knuth's 64-bit congruential generator; the top bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u32 << 24) as f32 * 2.0 - 1.0
    };
    let sets: Vec<[f32; 45]> = (0..300)
        .map(|_| std::array::from_fn(|_| 0.4 * random()))
        .collect();
    let mut names = vec!["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity"];
    names.extend([
        "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3",
    ]);
    let mut bytes = format!("ply\nformat binary_little_endian 1.0\nelement vertex {count}\n");
    for name in &names {
        bytes += &format!("property float {name}\n");
    }
    for k in 0..45 {
        bytes += &format!("property float f_rest_{k}\n");
    }
    let mut bytes = (bytes + "end_header\n").into_bytes();
    let mut splats = Splats {
        sh_degree: 3,
        ..Splats::default()
    };
    for i in 0..count {
        let set = &sets[i * 7 % sets.len()];
        let mean = Vec3::new(random(), random(), random()) * Vec3::new(3.0, 1.0, 20.0);
        let dc = Vec3::new(random(), random(), random()) * 2.0;
        let scale = Vec3::new(random(), random(), random()) * 3.0 - 4.0;
        let logit = random() * 6.0;
        let q = Quat::from_xyzw(random(), random(), random(), random()).normalize();
        splats.means.push(mean);
        splats.dc.push(dc);
        splats.log_scales.push(scale);
        splats.opacities.push(1.0 / (1.0 + (-logit).exp()));
        splats.rotations.push(q);
        splats
            .sh_rest
            .extend((0..45).map(|j| set[j % 3 * 15 + j / 3]));
        let row = [mean.to_array(), dc.to_array(), [logit, scale.x, scale.y]];
        let rest = [scale.z, q.w, q.x, q.y, q.z];
        for value in row.as_flattened().iter().chain(&rest).chain(set) {
            bytes.extend(value.to_le_bytes());
        }
    }
    (bytes, splats)
}

/// The bytes of `made(count)` written as a file of this ending.
fn written(count: usize, ending: &str) -> (Vec<u8>, Splats) {
    let (ply, splats) = made(count);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (from, to) = (
        folder.path().join("in.ply"),
        folder.path().join(format!("out.{ending}")),
    );
    std::fs::write(&from, ply).expect("writes to the temporary folder");
    convert(&from, &to, &ConvertOptions::default(), QUIET).unwrap_or_else(|e| panic!("{e}"));
    (std::fs::read(&to).expect("convert wrote it"), splats)
}

#[test]
fn a_written_sog_keeps_order_and_values() {
    let (bytes, made) = written(3000, "sog");
    let read = rows_of("out.sog", &bytes)
        .unwrap_or_else(|e| panic!("{e}"))
        .splats;
    assert_eq!(read.len(), made.len());
    for i in 0..made.len() {
        // Half a step of the logarithmic domain, whose longest axis spans 2 ln 21.
        let off = (read.means[i] - made.means[i]).abs();
        let limit = (made.means[i].abs() + 1.0) * (21.0_f32.ln() / 65_535.0 + 1e-6);
        assert!(
            off.cmple(limit).all(),
            "{i}: {} {}",
            read.means[i],
            made.means[i]
        );
        // 0.8 degrees: the cosine of half of it is 1 - 2.4e-5.
        let dot = read.rotations[i].dot(made.rotations[i]).abs();
        assert!(1.0 - dot < 2.5e-5, "{i}: {dot}");
        assert!(
            (read.opacities[i] - made.opacities[i]).abs() <= 0.51 / 255.0,
            "{i}"
        );
        // 256 codes over spans of 6 and 4, twice as wide at the ends as even ones.
        assert!(
            (read.log_scales[i] - made.log_scales[i])
                .abs()
                .max_element()
                < 6.0 / 256.0
        );
        assert!((read.dc[i] - made.dc[i]).abs().max_element() < 4.0 / 256.0);
        for (a, b) in read.sh_rest_of(i).iter().zip(made.sh_rest_of(i)) {
            assert!((a - b).abs() < 0.8 / 256.0, "{i}: {a} {b}");
        }
    }
}

#[test]
fn what_came_from_a_sog_goes_back_with_the_same_codes() {
    let Some(path) = given::data("formats/generated/playbot_l6.sog") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let again = folder.path().join("again.sog");
    convert(&path, &again, &ConvertOptions::default(), QUIET).unwrap_or_else(|e| panic!("{e}"));
    let (a, b) = (rows(&path), rows(&again));
    let (a, b) = (a.expect("reads").splats, b.expect("reads").splats);
    assert_eq!(a.dc, b.dc);
    assert_eq!(a.log_scales, b.log_scales);
    assert_eq!(a.opacities, b.opacities);
    for (p, q) in a.means.iter().zip(&b.means) {
        // The bounds are those of the rows, not the first file's: half a step of 2 ln 2 / 65535.
        assert!((*p - *q).length() < 3e-5, "{p} {q}");
    }
}

#[test]
fn a_written_spz_keeps_values_to_its_steps() {
    let (bytes, made) = written(3000, "spz");
    let read = rows_of("out.spz", &bytes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(read.version.as_deref(), Some("4"));
    let mut splats = read.splats;
    // Rows are stored with y up and z back; the source had them down and forward.
    splats.turn(Mat3::from_diagonal(Vec3::new(1.0, -1.0, -1.0)));
    assert_eq!(splats.len(), made.len());
    for i in 0..made.len() {
        // A reach of 20 leaves 18 bits behind the point.
        assert!(
            (splats.means[i] - made.means[i]).abs().max_element() < 2.1e-6,
            "{i}"
        );
        assert!(
            1.0 - splats.rotations[i].dot(made.rotations[i]).abs() < 2e-6,
            "{i}"
        );
        assert!(
            (splats.opacities[i] - made.opacities[i]).abs() <= 0.51 / 255.0,
            "{i}"
        );
        assert!(
            (splats.log_scales[i] - made.log_scales[i])
                .abs()
                .max_element()
                <= 0.51 / 16.0
        );
        assert!((splats.dc[i] - made.dc[i]).abs().max_element() <= 0.51 / 255.0 / 0.15);
        for (a, b) in splats.sh_rest_of(i).iter().zip(made.sh_rest_of(i)) {
            assert!((a - b).abs() <= 0.51 / 128.0, "{i}: {a} {b}");
        }
    }
}

/// The entries of a bundle, with its `meta.json` changed.
fn unbundled(bundle: &[u8], change: impl FnOnce(&mut Value)) -> Memory {
    let zip = Zip::new(bundle.to_vec(), "made.sog").unwrap_or_else(|e| panic!("{e}"));
    let mut memory = Memory::new("made");
    for entry in zip.entries() {
        let bytes = zip
            .read(&entry, u64::MAX)
            .unwrap_or_else(|e| panic!("{e}"))
            .into_owned();
        if entry != "meta.json" {
            memory = memory.with(entry, bytes);
        }
    }
    let meta = zip
        .read("meta.json", u64::MAX)
        .unwrap_or_else(|e| panic!("{e}"));
    let mut meta = serde_json::from_slice(&meta).expect("meta.json is JSON");
    change(&mut meta);
    memory.with("meta.json", meta.to_string())
}

fn read_meta(memory: &Memory) -> Result<FileSplats, Error> {
    read_in(memory, Some("meta.json"), &LoadOptions::default(), QUIET).map(|(_, rows)| rows)
}

#[test]
fn older_and_partial_sog_metas_are_understood() {
    let (bundle, _) = written(64, "sog");
    let plain = read_meta(&unbundled(&bundle, |_| ()))
        .expect("reads")
        .splats;
    let inferred = unbundled(&bundle, |m| {
        m["shN"].as_object_mut().expect("an object").remove("bands");
    });
    assert_eq!(read_meta(&inferred).expect("reads").splats, plain);
    let nulled = read_meta(&unbundled(&bundle, |m| {
        m["sh0"]["codebook"][0] = Value::Null
    }));
    let nulled = nulled.expect("early writers left a null in front").splats;
    assert!(nulled.dc.iter().all(|c| c.is_finite()));
    let short = read_meta(&unbundled(&bundle, |m| m["shN"]["count"] = json!(1))).expect("reads");
    let empty = (0..64).filter(|&i| short.splats.sh_rest_of(i).iter().all(|c| *c == 0.0));
    assert_eq!(empty.count(), 63, "labels past the palette give zeros");
    let smooth = read_meta(&unbundled(&bundle, |m| m["model"] = json!("antialiased")));
    assert!(smooth.expect("reads").splats.antialiased);
}

#[test]
fn images_may_be_png() {
    let (bundle, _) = written(64, "sog");
    let webp = unbundled(&bundle, |_| ());
    let mut png = unbundled(&bundle, |_| ());
    for entry in webp.entries().into_iter().filter(|e| e.ends_with(".webp")) {
        let bytes = webp.read(&entry, u64::MAX).expect("it was listed");
        let image = image::load_from_memory(&bytes).expect("decodes");
        let mut bytes = Vec::new();
        image
            .to_rgba8()
            .write_to(
                &mut std::io::Cursor::new(&mut bytes),
                image::ImageFormat::Png,
            )
            .expect("encodes");
        png = png.with(entry, bytes);
    }
    assert_eq!(
        read_meta(&png).expect("reads").splats,
        read_meta(&webp).expect("reads").splats
    );
}

#[test]
fn an_spz_of_degree_4_is_drawn_to_degree_3_with_a_note() {
    let mut bytes = b"NGSP".to_vec();
    for word in [3_u32, 2] {
        bytes.extend(word.to_le_bytes());
    }
    // Degree 4, 12 fractional bits, trained with antialias compensation.
    bytes.extend([4, 12, 1, 0]);
    bytes.extend([0; 2 * (9 + 1 + 3 + 3 + 4)]);
    bytes.extend((0..2 * 72).map(|i| i as u8));
    let read = rows_of("four.spz", &bytes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((read.sh_degree_in_file, read.splats.sh_degree), (4, 3));
    assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
    assert!(read.splats.antialiased);
    let expected: Vec<f32> = (0..45).map(|i| (72.0 + i as f32 - 128.0) / 128.0).collect();
    assert_eq!(read.splats.sh_rest_of(1), expected);
    bytes.push(0);
    let error = rows_of("four.spz", &bytes).expect_err("a byte too many");
    assert!(error.message.contains("1 bytes follow"), "{error}");
}

#[test]
fn hostile_sog_metas_are_refused_with_entry_and_field() {
    let (bundle, _) = written(64, "sog");
    type Change = fn(&mut Value);
    let cases: [(Change, Code, &str, &str); 12] = [
        (
            |m| m["count"] = json!(2_000_000_000_u64),
            Code::TooLarge,
            "meta.json",
            "count",
        ),
        (
            |m| m["count"] = json!(200_000_000),
            Code::TooLarge,
            "meta.json",
            "count",
        ),
        (
            |m| m["count"] = json!(65),
            Code::Malformed,
            "means_l.webp",
            "65 splats",
        ),
        (
            |m| m["count"] = json!(-1),
            Code::Malformed,
            "meta.json",
            "count",
        ),
        (
            |m| m["version"] = json!(3),
            Code::UnsupportedVersion,
            "meta.json",
            "version 3",
        ),
        (
            |m| m["means"]["files"][0] = json!("../x.webp"),
            Code::UnsafeName,
            "meta.json",
            "../x",
        ),
        (
            |m| m["quats"]["files"] = json!(["/etc/passwd"]),
            Code::UnsafeName,
            "meta.json",
            "/etc",
        ),
        (
            |m| m["sh0"]["codebook"] = json!([1, 2]),
            Code::Malformed,
            "meta.json",
            "sh0.codebook",
        ),
        (
            |m| m["means"]["mins"] = Value::Null,
            Code::Malformed,
            "meta.json",
            "means.mins",
        ),
        (
            |m| m["shN"]["count"] = json!(1_000_000),
            Code::TooLarge,
            "meta.json",
            "shN.count",
        ),
        (
            |m| m["shN"]["bands"] = json!(2),
            Code::Malformed,
            "shN_centroids.webp",
            "960",
        ),
        (
            |m| m["scales"]["files"][0] = json!("gone.webp"),
            Code::NotFound,
            "gone.webp",
            "",
        ),
    ];
    for (i, (change, code, entry, words)) in cases.into_iter().enumerate() {
        let error = read_meta(&unbundled(&bundle, change)).expect_err("hostile");
        assert_eq!(error.code, code, "{i}: {error}");
        assert_eq!(error.entry.as_deref(), Some(entry), "{i}: {error}");
        assert!(error.message.contains(words), "{i}: {error}");
    }
}

#[test]
fn hostile_lod_metas_are_refused_with_the_place() {
    let (bundle, _) = written(64, "sog");
    let scan = |files: Value, lods: Value| {
        let manifest = json!({
            "lodLevels": 2, "filenames": files,
            "tree": { "bound": { "min": [0, 0, 0], "max": [1, 1, 1] }, "lods": lods },
        });
        let memory = Memory::new("scan").with("a.sog", bundle.clone());
        let memory = memory.with("lod-meta.json", manifest.to_string());
        read_in(
            &memory,
            Some("lod-meta.json"),
            &LoadOptions::default(),
            QUIET,
        )
        .map(|(_, rows)| rows)
    };
    let rows = |file, offset, count| json!({ "file": file, "offset": offset, "count": count });
    let good = scan(json!(["a.sog"]), json!({ "0": rows(0, 8, 40) })).expect("reads");
    assert_eq!(good.splats.len(), 40);
    // Past a leaf's coarsest level there is nothing, before it the next finer one.
    assert_eq!(good.levels[1].count, 0);
    let cases = [
        (
            json!(["a.sog"]),
            json!({ "0": rows(1, 0, 4) }),
            Code::Malformed,
            "file 1 of 1",
        ),
        (
            json!(["a.sog"]),
            json!({ "0": rows(0, -1, 4) }),
            Code::Malformed,
            "-1",
        ),
        (
            json!(["a.sog"]),
            json!({ "0": rows(0, 60, 5) }),
            Code::Malformed,
            "which has 64",
        ),
        (
            json!(["a.sog"]),
            json!({ "2": rows(0, 0, 4) }),
            Code::Malformed,
            "'2'",
        ),
        (
            json!(["../a.sog"]),
            json!({ "0": rows(0, 0, 4) }),
            Code::UnsafeName,
            "../a.sog",
        ),
        (
            json!(["b.sog"]),
            json!({ "0": rows(0, 0, 4) }),
            Code::NotFound,
            "b.sog",
        ),
    ];
    for (files, lods, code, words) in cases {
        let error = scan(files, lods).expect_err("hostile");
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    let deep = format!(
        r#"{{"lodLevels":1,"filenames":[],"tree":{}{}}}"#,
        r#"{"children":["#.repeat(100_000),
        "]}".repeat(100_000)
    );
    let memory = Memory::new("scan").with("lod-meta.json", deep);
    let error = read_in(
        &memory,
        Some("lod-meta.json"),
        &LoadOptions::default(),
        QUIET,
    );
    let code = error.expect_err("too deep").code;
    assert!(
        matches!(code, Code::Malformed | Code::UnknownFormat),
        "{code:?}"
    );
}

#[test]
fn an_spz_states_its_axes_or_is_mirrored_back() {
    let (bytes, _) = written(20, "spz");
    let with_axes = |value: u32| {
        let mut changed = bytes[..32].to_vec();
        changed[14] |= 2;
        changed[16] += 12;
        for word in [0xADBE_0003, 4, value] {
            changed.extend(word.to_le_bytes());
        }
        changed.extend(&bytes[32..]);
        rows_of("axes.spz", &changed)
    };
    let plain = rows_of("plain.spz", &bytes).expect("reads").splats;
    assert_eq!(with_axes(0).map(|r| r.axes), Ok(None));
    let down = with_axes(6).expect("RDF is known");
    assert_eq!(down.axes.map(|a| a.to_string()).as_deref(), Some("RDF"));
    assert_eq!(down.splats, plain, "rows stay in the file's space");
    assert_eq!(
        with_axes(12)
            .expect("reads")
            .axes
            .map(|a| a.to_string())
            .as_deref(),
        Some("RFU")
    );
    let mirrored = with_axes(8).expect("RUF is known");
    assert_eq!(mirrored.axes.map(|a| a.to_string()).as_deref(), Some("RUB"));
    assert_eq!(mirrored.warnings.len(), 1);
    // A mirrored splat has the mirrored colour seen along the mirrored direction.
    let flip = Vec3::new(1.0, 1.0, -1.0);
    for (i, d) in [
        Vec3::X,
        Vec3::new(0.3, -0.4, 0.866),
        Vec3::new(-0.6, 0.64, -0.48),
    ]
    .iter()
    .enumerate()
    {
        let seen = |s: &Splats, d| splatstage::scene::sh::colour(s.dc[i], s.sh_rest_of(i), d);
        let (a, b) = (seen(&plain, *d), seen(&mirrored.splats, *d * flip));
        assert!((a - b).length() < 1e-5, "{a} {b}");
        assert_eq!(mirrored.splats.means[i], plain.means[i] * flip);
        let axis = plain.rotations[i] * Vec3::Z * flip;
        let other = mirrored.splats.rotations[i] * Vec3::Z;
        assert!(axis.dot(other).abs() > 0.9999, "{axis} {other}");
    }
    assert_eq!(
        with_axes(17).expect_err("there are 16").code,
        Code::Malformed
    );
}

/// Reads `bytes` cut at every length and with each of the first `header` bytes flipped; each must
/// end in rows or an error.
fn batter(bytes: &[u8], header: usize, read: impl Fn(&[u8]) -> Result<FileSplats, Error>) {
    for end in 0..bytes.len() {
        let _ = read(&bytes[..end]);
    }
    let mut changed = bytes.to_vec();
    for i in 0..bytes.len().min(header) {
        for flip in [0x01, 0x80, 0xff] {
            changed[i] ^= flip;
            let _ = read(&changed);
            changed[i] ^= flip;
        }
    }
}

#[test]
fn cut_and_flipped_files_end_in_rows_or_an_error() {
    let (spz, _) = written(20, "spz");
    batter(&spz, 200, |bytes| rows_of("x.spz", bytes));
    for file in [
        "formats/splat-transform-fixtures/minimal-raw.spz",
        "formats/splat-transform-fixtures/minimal-v2.spz",
        "formats/splat-transform-fixtures/minimal-v3.spz",
        "formats/splat-transform-fixtures/minimal-v4.spz",
        "tiny/minimal_v4_degree0.spz",
        "tiny/wgpu3dgs_model.spz",
    ] {
        let Some(path) = given::data(file) else { break };
        let bytes = std::fs::read(path).expect("the fixture is there");
        batter(&bytes, 400, |bytes| rows_of("x.spz", bytes));
    }
    let (sog, _) = written(20, "sog");
    let whole = unbundled(&sog, |_| ());
    let entry = |name: &String| {
        let bytes = whole.read(name, u64::MAX).expect("it was listed");
        (name.clone(), bytes.into_owned())
    };
    let entries: Vec<(String, Vec<u8>)> = whole.entries().iter().map(entry).collect();
    for (name, bytes) in &entries {
        // One number in a codebook reads like another: the start has all fields of a meta.json.
        let (start, rest) = bytes.split_at(bytes.len().min(2_000));
        batter(start, 300, |changed| {
            let memory = entries
                .iter()
                .fold(Memory::new("made"), |memory, (other, bytes)| {
                    if other == name {
                        memory.with(name.clone(), [changed, rest].concat())
                    } else {
                        memory.with(other.clone(), bytes.clone())
                    }
                });
            read_meta(&memory)
        });
    }
}

#[test]
fn forty_bytes_that_claim_two_billion_splats_are_refused() {
    let mut header = b"NGSP".to_vec();
    for (version, code) in [
        (2_u32, Code::TooLarge),
        (4, Code::TooLarge),
        (5, Code::UnsupportedVersion),
    ] {
        header.truncate(4);
        header.extend(version.to_le_bytes());
        header.extend(2_000_000_000_u32.to_le_bytes());
        header.extend([3, 12, 0, 6]);
        header.resize(40, 0);
        assert_eq!(rows_of("x.spz", &header).expect_err("a lie").code, code);
    }
}
