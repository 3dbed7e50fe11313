//! Every splat file of the sample data and many made ones: counts, rows against the reference
//! decodes, world axes, hostile bytes, round trips.

use crate::alloc::peak_bytes;
use crate::given;
use glam::{Mat3, Quat, Vec3};
use splatstage::formats::container::{Folder, Memory, Zip};
use splatstage::formats::{
    Code, Container, ConvertOptions, Error, FileSplats, Format, LoadOptions, Loaded, convert,
    detect, inspect, load, load_in, read, read_in,
};
use splatstage::scene::{Axes, Splats, sh};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

fn quiet(_: f32) {}

fn load_path(path: &Path) -> Result<Loaded, Error> {
    load(path, &LoadOptions::default(), &quiet)
}

/// Rows of a file, in file space.
fn rows_of(path: &Path) -> FileSplats {
    match read(path, &LoadOptions::default(), &quiet) {
        Ok((_, file)) => file,
        Err(error) => panic!("{error}"),
    }
}

fn read_bytes(name: &str, bytes: &[u8]) -> Result<FileSplats, Error> {
    let memory = Memory::new("memory").with(name, bytes);
    read_in(&memory, Some(name), &LoadOptions::default(), &quiet).map(|(_, file)| file)
}

fn load_bytes(name: &str, bytes: &[u8]) -> Result<Loaded, Error> {
    let memory = Memory::new("memory").with(name, bytes);
    load_in(&memory, Some(name), &LoadOptions::default(), &quiet)
}

// ---------------------------------------------------------------------------------------------
// counts and degrees

/// Path, format, count that `inspect` prints, SH degree in the file.
const FILES: &[(&str, &str, u64, u64)] = &[
    ("formats/engine/biker.spz", "spz", 152_746, 0),
    (
        "formats/engine/biker.compressed.ply",
        "compressed-ply",
        152_746,
        0,
    ),
    (
        "formats/engine/guitar.compressed.ply",
        "compressed-ply",
        90_854,
        0,
    ),
    ("formats/engine/playcanvas-logo", "sog", 307_128, 0),
    (
        "formats/engine/playcanvas-logo/meta.json",
        "sog",
        307_128,
        0,
    ),
    ("formats/engine/playbot", "lod-meta", 500_000, 2),
    (
        "formats/engine/playbot/lod-meta.json",
        "lod-meta",
        500_000,
        2,
    ),
    ("formats/engine/playbot/1_0/meta.json", "sog", 250_000, 2),
    ("formats/engine/playbot/2_0", "sog", 125_000, 2),
    ("formats/engine/playbot/3_0/meta.json", "sog", 31_000, 2),
    ("formats/engine/playbot/4_0/meta.json", "sog", 8_406, 2),
    ("formats/engine/playbot/5_0/meta.json", "sog", 3_000, 2),
    ("formats/engine/playbot/6_0/meta.json", "sog", 1_873, 2),
    (
        "formats/engine/decoded_first2000/playbot_0.ply",
        "ply",
        2_000,
        2,
    ),
    (
        "formats/engine/decoded_first2000/biker_spz.ply",
        "ply",
        2_000,
        0,
    ),
    ("formats/generated/playbot_l6.ply", "ply", 1_873, 2),
    ("formats/generated/playbot_l6.glb", "gltf", 1_873, 2),
    ("formats/generated/playbot_l6.sog", "sog", 1_873, 2),
    ("formats/generated/playbot_l6_sh0.sog", "sog", 1_873, 0),
    (
        "formats/generated/playbot_l6.compressed.ply",
        "compressed-ply",
        1_873,
        2,
    ),
    ("formats/generated/playbot_l6_v3.spz", "spz", 1_873, 2),
    ("formats/generated/playbot_l6_v4.spz", "spz", 1_873, 2),
    ("formats/generated/lod4", "lod-meta", 31_000, 1),
    ("formats/generated/lod4/0_0/meta.json", "sog", 8_507, 1),
    ("formats/generated/lod4/env/meta.json", "sog", 1_873, 0),
    (
        "formats/splat-transform-fixtures/minimal-raw.spz",
        "spz",
        4,
        0,
    ),
    (
        "formats/splat-transform-fixtures/minimal-v2.spz",
        "spz",
        4,
        0,
    ),
    (
        "formats/splat-transform-fixtures/minimal-v3.spz",
        "spz",
        4,
        0,
    ),
    (
        "formats/splat-transform-fixtures/minimal-v4.spz",
        "spz",
        4,
        0,
    ),
    (
        "formats/splat-transform-fixtures/minimal.ksplat",
        "ksplat",
        4,
        0,
    ),
    (
        "formats/splat-transform-fixtures/minimal.splat",
        "splat",
        4,
        0,
    ),
    ("tiny/chair.ksplat", "ksplat", 14_068, 0),
    ("tiny/khr_conformance_matrix.glb", "gltf", 15, 3),
    (
        "tiny/metalsplatter_test-splat.3-points-from-train.ply",
        "ply",
        3,
        3,
    ),
    (
        "tiny/metalsplatter_test-splat.3-points-from-train.splat",
        "splat",
        3,
        0,
    ),
    (
        "tiny/metalsplatter_test-splat.3-points-from-train.spz",
        "spz",
        3,
        3,
    ),
    ("tiny/minimal_ascii.ply", "ply", 3, 0),
    ("tiny/minimal_binary.ply", "ply", 3, 0),
    ("tiny/minimal_v4_degree0.spz", "spz", 8, 0),
    ("tiny/pc_short.ply", "ply", 100, 3),
    ("tiny/splatapult_test.ply", "ply", 16, 3),
    ("tiny/train-1000.ply", "ply", 1_000, 3),
    ("tiny/wgpu3dgs_model.ply", "ply", 9, 3),
    ("tiny/wgpu3dgs_model.spz", "spz", 9, 3),
    ("scenes/godot_demo_sh3.sog", "sog", 271_123, 3),
    ("scenes/statues/angel-kneeling.sog", "sog", 83_547, 0),
    (
        "scenes/statues/angel-with-candlestick.sog",
        "sog",
        80_821,
        0,
    ),
    ("scenes/statues/angel.sog", "sog", 71_359, 0),
    ("scenes/statues/massa.sog", "sog", 58_649, 0),
    ("scenes/statues/narcissus.sog", "sog", 101_275, 0),
    ("scenes/statues/st-peter.sog", "sog", 133_618, 0),
    ("scenes/statues/trumpet.sog", "sog", 89_292, 0),
    ("scenes/lacadiere/environment.sog", "sog", 35_445, 0),
    ("scenes/lacadiere/3_1/meta.json", "sog", 213_189, 0),
    ("scenes/lacadiere", "lod-meta", 12_006_253, 0),
    ("splattie/demo_HEAD.splattie", "splattie", 20_018, 0),
    ("splattie/demo_arkit.splattie", "splattie", 20_018, 0),
    ("avatar/ict_head.splattie", "splattie", 20_000, 0),
];

#[test]
fn every_sample_has_its_count_and_degree() {
    for (path, format, count, degree) in FILES {
        let Some(file) = given::data(path) else {
            continue;
        };
        let options = LoadOptions {
            // The coarsest level of the big scan says as much as its finest, in less time.
            level: path.ends_with("lacadiere").then_some(3),
            ..LoadOptions::default()
        };
        let loaded = load(&file, &options, &quiet).unwrap_or_else(|e| panic!("{e}"));
        let facts = inspect::report(&loaded);
        assert_eq!(facts["format"], *format, "{path}");
        assert_eq!(facts["count"], *count, "{path}");
        assert_eq!(facts["sh_degree"], *degree, "{path}");
        assert_eq!(facts["non_finite"], 0, "{path}");
        assert!(facts["bounds"]["min"][0].is_number(), "{path}: {facts}");
        if *format == "lod-meta" {
            assert!(
                facts["levels"][1]["count"].as_u64() < Some(*count),
                "{path}: {facts}"
            );
        }
    }
}

#[test]
fn every_sample_is_told_by_content_alone() {
    for (path, format, ..) in FILES {
        let Some(file) = given::data(path).filter(|f| f.is_file()) else {
            continue;
        };
        let bytes = std::fs::read(&file).unwrap();
        let found = detect(&bytes, "without-an-ending").map(Format::as_str);
        assert_eq!(found, Some(*format), "{path}");
    }
}

// ---------------------------------------------------------------------------------------------
// rows

/// Largest difference of each kind between the rows of `got` and the first rows of `want`.
#[derive(Debug, Default)]
struct Difference {
    /// Of positions, relative to the diagonal of the scene.
    position: f32,
    rotation: f32,
    log_scale: f32,
    colour: f32,
    opacity: f32,
    sh: f32,
}

fn difference(got: &Splats, want: &Splats, size: f32) -> Difference {
    let mut d = Difference::default();
    // Equal infinities have no difference; a NaN on one side only is as wrong as can be.
    let off = |a: f32, b: f32| match a == b || (a.is_nan() && b.is_nan()) {
        true => 0.0,
        false if (a - b).is_nan() => f32::INFINITY,
        false => (a - b).abs(),
    };
    let off3 = |a: Vec3, b: Vec3| (0..3).map(|k| off(a[k], b[k])).fold(0.0, f32::max);
    for i in 0..want.len() {
        let (q, r) = (got.rotations[i], want.rotations[i]);
        let sign = if q.dot(r) < 0.0 { -1.0 } else { 1.0 };
        let turn = (0..4)
            .map(|k| off(q.to_array()[k] * sign, r.to_array()[k]))
            .fold(0.0, f32::max);
        d.position = d.position.max(off3(got.means[i], want.means[i]) / size);
        d.rotation = d.rotation.max(turn);
        d.log_scale = d.log_scale.max(off3(got.log_scales[i], want.log_scales[i]));
        d.colour = d.colour.max(off3(got.dc[i], want.dc[i]) * sh::SH_C0);
        d.opacity = d.opacity.max(off(got.opacities[i], want.opacities[i]));
        d.sh = got
            .sh_rest_of(i)
            .iter()
            .zip(want.sh_rest_of(i))
            .map(|(a, b)| off(*a, *b))
            .fold(d.sh, f32::max);
    }
    d
}

fn size_of(splats: &Splats) -> f32 {
    splats.bounds().map_or(1.0, |b| (b.max - b.min).length())
}

/// The rows of `got` are those of the reference decode, which may stop earlier.
fn check_rows(label: &str, got: &Splats, want: &Splats) {
    assert!(got.len() >= want.len(), "{label}: {} rows", got.len());
    assert_eq!(got.sh_degree, want.sh_degree, "{label}");
    let d = difference(got, want, size_of(want));
    let good = d.position <= 1e-5
        && d.rotation <= 1e-4
        && d.log_scale <= 1e-4
        && d.colour <= 1.0 / 255.0
        && d.opacity <= 1.0 / 255.0
        && d.sh <= 1e-4;
    assert!(good, "{label}: {d:?}");
}

#[test]
fn rows_agree_with_the_reference_decodes() {
    let pairs = [
        (
            "generated/playbot_l6.compressed.ply",
            "generated/playbot_l6.compressed.ply.decoded.ply",
        ),
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
        (
            "engine/biker.compressed.ply",
            "engine/decoded_first2000/biker_cply.ply",
        ),
        ("engine/biker.spz", "engine/decoded_first2000/biker_spz.ply"),
        (
            "engine/guitar.compressed.ply",
            "engine/decoded_first2000/guitar_cply.ply",
        ),
        (
            "engine/playcanvas-logo/meta.json",
            "engine/decoded_first2000/logo_v1.ply",
        ),
        (
            "engine/playbot/0_0/meta.json",
            "engine/decoded_first2000/playbot_0.ply",
        ),
        (
            "engine/playbot/1_0/meta.json",
            "engine/decoded_first2000/playbot_1.ply",
        ),
        (
            "engine/playbot/2_0/meta.json",
            "engine/decoded_first2000/playbot_2.ply",
        ),
        (
            "engine/playbot/3_0/meta.json",
            "engine/decoded_first2000/playbot_3.ply",
        ),
        (
            "generated/lod4/0_0/meta.json",
            "generated/lod4_decoded/0_0.ply",
        ),
        (
            "generated/lod4/0_1/meta.json",
            "generated/lod4_decoded/0_1.ply",
        ),
        (
            "generated/lod4/0_2/meta.json",
            "generated/lod4_decoded/0_2.ply",
        ),
        (
            "generated/lod4/0_3/meta.json",
            "generated/lod4_decoded/0_3.ply",
        ),
        (
            "generated/lod4/1_0/meta.json",
            "generated/lod4_decoded/1_0.ply",
        ),
        (
            "generated/lod4/2_0/meta.json",
            "generated/lod4_decoded/2_0.ply",
        ),
        (
            "generated/lod4/3_0/meta.json",
            "generated/lod4_decoded/3_0.ply",
        ),
        (
            "generated/lod4/env/meta.json",
            "generated/lod4_decoded/env.ply",
        ),
    ];
    for (file, decoded) in pairs {
        let (Some(file), Some(decoded)) = (
            given::data(&format!("formats/{file}")),
            given::data(&format!("formats/{decoded}")),
        ) else {
            continue;
        };
        let (got, want) = (rows_of(&file), rows_of(&decoded));
        check_rows(&file.display().to_string(), &got.splats, &want.splats);
    }
}

/// Rows of splat-transform's CSV export, through an ASCII PLY of the same numbers.
fn csv_rows(path: &Path) -> Splats {
    let text = std::fs::read_to_string(path).unwrap();
    let (names, body) = text.split_once('\n').unwrap();
    let mut ply = format!(
        "ply\nformat ascii 1.0\nelement vertex {}\n",
        body.lines().count()
    );
    for name in names.trim().split(',') {
        let _ = writeln!(ply, "property float {name}");
    }
    ply.push_str("end_header\n");
    ply.push_str(&body.replace(',', " "));
    read_bytes("rows.ply", ply.as_bytes()).unwrap().splats
}

#[test]
fn fixture_rows_agree_with_the_exported_tables() {
    for (file, table) in [
        (
            "splat-transform-fixtures/minimal-v2.spz",
            "generated/fixtures_decoded/minimal-v2.spz.csv",
        ),
        (
            "splat-transform-fixtures/minimal-v3.spz",
            "generated/fixtures_decoded/minimal-v3.spz.csv",
        ),
        (
            "splat-transform-fixtures/minimal-v4.spz",
            "generated/fixtures_decoded/minimal-v4.spz.csv",
        ),
        (
            "splat-transform-fixtures/minimal.ksplat",
            "generated/fixtures_decoded/minimal.ksplat.csv",
        ),
        (
            "splat-transform-fixtures/minimal.splat",
            "generated/fixtures_decoded/minimal.splat.csv",
        ),
        ("generated/playbot_l6.ply", "generated/playbot_l6.csv"),
    ] {
        let (Some(file), Some(table)) = (
            given::data(&format!("formats/{file}")),
            given::data(&format!("formats/{table}")),
        ) else {
            continue;
        };
        check_rows(
            &file.display().to_string(),
            &rows_of(&file).splats,
            &csv_rows(&table),
        );
    }
}

#[test]
fn ascii_and_binary_forms_of_one_file_are_equal() {
    let (Some(ascii), Some(binary)) = (
        given::data("tiny/minimal_ascii.ply"),
        given::data("tiny/minimal_binary.ply"),
    ) else {
        return;
    };
    check_rows("minimal", &rows_of(&ascii).splats, &rows_of(&binary).splats);
}

#[test]
fn several_glb_primitives_and_number_types_join() {
    let Some(path) = given::data("tiny/khr_conformance_matrix.glb") else {
        return;
    };
    let splats = rows_of(&path).splats;
    assert_eq!(splats.sh_degree, 3);
    assert!((0..splats.len()).all(|i| splats.is_drawable(i)));
    assert!(splats.rotations.iter().all(|q| q.is_normalized()));
    assert!(splats.opacities.iter().all(|o| (0.0..=1.0).contains(o)));
}

// ---------------------------------------------------------------------------------------------
// made PLY files

const FIELDS: [&str; 14] = [
    "x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
    "rot_0", "rot_1", "rot_2", "rot_3",
];

/// Value of field `name` of row `row`: small, different, and exact in every scalar type.
fn value(name: &str, row: usize) -> f64 {
    let number = name.bytes().map(u64::from).sum::<u64>() % 17;
    (number + row as u64 % 5) as f64
}

/// A PLY whose rows hold [`value`] under the given types, names and encoding.
fn made_ply(encoding: &str, properties: &[(&str, &str)], rows: usize) -> Vec<u8> {
    let mut header = format!("ply\nformat {encoding} 1.0\nelement vertex {rows}\n");
    for (kind, name) in properties {
        let _ = writeln!(header, "property {kind} {name}");
    }
    header.push_str("end_header\n");
    let mut bytes = header.into_bytes();
    for row in 0..rows {
        for (kind, name) in properties {
            push(&mut bytes, encoding, kind, value(name, row));
        }
        if encoding == "ascii" {
            bytes.push(b'\n');
        }
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, encoding: &str, kind: &str, value: f64) {
    if encoding == "ascii" {
        let _ = write!(bytes, "{value} ");
        return;
    }
    let mut raw = match kind {
        "char" | "int8" => (value as i8).to_le_bytes().to_vec(),
        "uchar" | "uint8" => (value as u8).to_le_bytes().to_vec(),
        "short" | "int16" => (value as i16).to_le_bytes().to_vec(),
        "ushort" | "uint16" => (value as u16).to_le_bytes().to_vec(),
        "int" | "int32" => (value as i32).to_le_bytes().to_vec(),
        "uint" | "uint32" => (value as u32).to_le_bytes().to_vec(),
        "double" | "float64" => value.to_le_bytes().to_vec(),
        _ => (value as f32).to_le_bytes().to_vec(),
    };
    if encoding == "binary_big_endian" {
        raw.reverse();
    }
    bytes.extend(raw);
}

fn floats() -> Vec<(&'static str, &'static str)> {
    FIELDS.map(|name| ("float", name)).to_vec()
}

#[test]
fn scalar_types_orders_and_encodings_read_the_same() {
    let want = read_bytes("a.ply", &made_ply("binary_little_endian", &floats(), 7)).unwrap();
    assert_eq!(want.splats.means[3].x, value("x", 3) as f32);
    for encoding in ["ascii", "binary_little_endian", "binary_big_endian"] {
        for kind in [
            "char", "int8", "uchar", "uint8", "short", "int16", "ushort", "uint16", "int", "int32",
            "uint", "uint32", "float", "float32", "double", "float64",
        ] {
            let mut properties = FIELDS.map(|name| (kind, name)).to_vec();
            properties.reverse();
            let got = read_bytes("a.ply", &made_ply(encoding, &properties, 7)).unwrap();
            assert_eq!(got.splats, want.splats, "{encoding} {kind}");
        }
    }
}

#[test]
fn other_elements_lists_and_line_ends_are_stepped_over() {
    let want = read_bytes("a.ply", &made_ply("binary_little_endian", &floats(), 3)).unwrap();
    let properties: String = FIELDS
        .iter()
        .map(|n| format!("property float {n}\n"))
        .collect();
    let row = |bytes: &mut Vec<u8>, encoding: &str, i: usize| {
        for name in FIELDS {
            push(bytes, encoding, "float", value(name, i));
        }
    };
    for encoding in ["ascii", "binary_little_endian", "binary_big_endian"] {
        for line_end in ["\n", "\r\n", "\r"] {
            let header = format!(
                "ply\nformat {encoding} 1.0\ncomment made\nobj_info made\n\
                 element extrinsic 2\nproperty double m\n\
                 element face 2\nproperty list uchar int vertex_indices\nproperty uchar flag\n\
                 element vertex 3\n{properties}property list uchar short extra\n\
                 element version 3\nproperty uchar version\nend_header\n"
            );
            let mut bytes = header.replace('\n', line_end).into_bytes();
            let mut put = |kind: &str, v: f64| push(&mut bytes, encoding, kind, v);
            put("double", 10.0);
            put("double", 11.0);
            for face in 0..2 {
                put("uchar", 3.0);
                (0..3).for_each(|k| put("int", f64::from(k + face)));
                put("uchar", 1.0);
            }
            for i in 0..3 {
                row(&mut bytes, encoding, i);
                push(&mut bytes, encoding, "uchar", i as f64);
                (0..i).for_each(|_| push(&mut bytes, encoding, "short", 7.0));
            }
            (0..3).for_each(|_| push(&mut bytes, encoding, "uchar", 10.0));
            let got = read_bytes("a.ply", &bytes).unwrap_or_else(|e| panic!("{line_end:?} {e}"));
            assert_eq!(got.splats, want.splats, "{encoding} {line_end:?}");
            assert_eq!(got.warnings, Vec::<String>::new());
        }
    }
}

/// Names of `count` further coefficients, in an order that is not theirs.
fn with_rest(count: usize) -> FileSplats {
    let names: Vec<String> = (0..count).rev().map(|k| format!("f_rest_{k}")).collect();
    let mut properties = floats();
    properties.extend(names.iter().map(|n| ("float", n.as_str())));
    read_bytes("a.ply", &made_ply("binary_little_endian", &properties, 2)).unwrap()
}

#[test]
fn further_coefficients_are_found_by_name_and_number() {
    for (count, degree, in_file, warns) in [
        (0, 0, 0, false),
        (9, 1, 1, false),
        (24, 2, 2, false),
        (45, 3, 3, false),
        (72, 3, 4, true),
        (12, 1, 1, true),
        (44, 0, 0, true),
    ] {
        let file = with_rest(count);
        assert_eq!(file.splats.sh_degree, degree, "{count}");
        assert_eq!(file.sh_degree_in_file, in_file, "{count}");
        assert_eq!(
            !file.warnings.is_empty(),
            warns,
            "{count}: {:?}",
            file.warnings
        );
        for (index, got) in file.splats.sh_rest_of(1).iter().enumerate() {
            // Channel-major in the file, coefficient-major here.
            let name = format!("f_rest_{}", (index % 3) * (count / 3) + index / 3);
            assert_eq!(*got, value(&name, 1) as f32, "{count}, {index}");
        }
    }
    let mut twice = floats();
    twice.extend([("float", "f_rest_0"), ("float", "f_rest_0")]);
    let error = read_bytes("a.ply", &made_ply("ascii", &twice, 1)).unwrap_err();
    assert!(error.message.contains("twice"), "{error}");
}

fn without(missing: &[&str], added: &[(&'static str, &'static str)]) -> Result<FileSplats, Error> {
    let properties: Vec<_> = floats()
        .into_iter()
        .filter(|(_, name)| !missing.contains(name))
        .chain(added.iter().copied())
        .collect();
    read_bytes("a.ply", &made_ply("binary_little_endian", &properties, 2))
}

#[test]
fn stand_ins_are_used_and_named() {
    let dc = ["f_dc_0", "f_dc_1", "f_dc_2"];
    let rgb = without(
        &dc,
        &[("uchar", "red"), ("uchar", "green"), ("uchar", "blue")],
    )
    .unwrap();
    let want = (value("green", 1) as f32 / 255.0 - 0.5) / sh::SH_C0;
    assert!(
        (rgb.splats.dc[1].y - want).abs() < 1e-5,
        "{:?}",
        rgb.splats.dc
    );
    let float = without(
        &dc,
        &[("float", "red"), ("float", "green"), ("float", "blue")],
    )
    .unwrap();
    assert_eq!(float.splats.dc, rgb.splats.dc, "floats above 1 run to 255");
    let flat = without(&["scale_2"], &[]).unwrap();
    assert!(flat.splats.log_scales[0].z < -10.0 && flat.warnings[0].contains("2D"));
    let opaque = without(&["opacity"], &[]).unwrap();
    assert!(opaque.splats.opacities == [1.0, 1.0] && opaque.warnings[0].contains("opacity"));
}

#[test]
fn antialias_and_axes_comments_are_honoured() {
    let with = |comment: &str| {
        let bytes = made_ply("ascii", &floats(), 1);
        let text = String::from_utf8(bytes).unwrap();
        let text = text.replacen("element", &format!("comment {comment}\nelement"), 1);
        load_bytes("a.ply", text.as_bytes()).unwrap()
    };
    assert!(with("SplatRenderMode: mip").splats.antialiased);
    assert!(with("antialiased 1").splats.antialiased);
    assert!(!with("antialiased 0").splats.antialiased);
    assert!(!with("SplatRenderMode: default").splats.antialiased);
    assert_eq!(with("made").axes, Axes::RDF);
    assert_eq!(with("axes RUB").axes, Axes::RUB);
    let bad = with("axes RUF");
    assert!(
        bad.axes == Axes::RDF && bad.warnings[0].contains("mirrored"),
        "{bad:?}"
    );
}

#[test]
fn point_clouds_and_meshes_are_refused_with_what_is_missing() {
    let cloud = [
        ("float", "x"),
        ("float", "y"),
        ("float", "z"),
        ("uchar", "red"),
    ];
    let error = read_bytes("points3D.ply", &made_ply("ascii", &cloud, 2)).unwrap_err();
    assert_eq!(error.code, Code::NotSplats);
    assert!(
        error.message.contains("point cloud") && error.message.contains("rot_0"),
        "{error}"
    );
    if let Some(mesh) = given::data("tiny/mesh_beetle.ascii.ply") {
        let error = load_path(&mesh).unwrap_err();
        assert_eq!(error.code, Code::NotSplats);
        assert!(
            error.message.contains("a mesh") && error.message.contains("scale_0, scale_1, scale_2"),
            "{error}"
        );
        assert!(error.file.ends_with("mesh_beetle.ascii.ply"), "{error}");
    }
}

#[test]
fn rows_that_are_not_finite_keep_their_place_and_are_counted() {
    let mut text = String::from_utf8(made_ply("ascii", &floats(), 4)).unwrap();
    let start = text.find("end_header\n").unwrap() + "end_header\n".len();
    let mut rows: Vec<String> = text[start..].lines().map(str::to_owned).collect();
    rows[0] = rows[0].replacen(&value("x", 0).to_string(), "nan", 1);
    rows[2] = rows[2].replacen(&value("x", 2).to_string(), "-1.#INF", 1);
    text.replace_range(start.., &rows.join("\n"));
    let loaded = load_bytes("a.ply", text.as_bytes()).unwrap();
    assert_eq!((loaded.splats.len(), loaded.non_finite), (4, 2));
    assert!(!loaded.splats.is_drawable(0) && loaded.splats.is_drawable(1));
    let warning = loaded
        .warnings
        .iter()
        .find(|w| w.contains("not finite"))
        .unwrap();
    assert!(
        warning.contains("2 of 4") && warning.contains("row 0"),
        "{warning}"
    );
    let facts = inspect::report(&loaded);
    assert_eq!(facts["non_finite"], 2);
    assert_eq!(facts["bounds"]["min"][0], value("x", 1).min(value("x", 3)));
}

#[test]
fn a_scene_of_no_splats_loads() {
    let loaded = load_bytes("a.ply", &made_ply("binary_little_endian", &floats(), 0)).unwrap();
    assert!(loaded.splats.is_empty());
    assert!(inspect::report(&loaded)["bounds"]["min"].is_null());
}

#[test]
fn zero_quaternions_become_the_identity() {
    let text = String::from_utf8(made_ply("ascii", &floats(), 0)).unwrap();
    let text = text.replace("vertex 0", "vertex 1") + "1 2 3 0 0 0 0 0 0 0 0 0 0 0\n";
    let file = read_bytes("a.ply", text.as_bytes()).unwrap();
    assert_eq!(file.splats.rotations, [Quat::IDENTITY]);
}

#[test]
fn activated_and_absurd_scales_are_warned_about() {
    let mut text = String::from_utf8(made_ply("ascii", &floats(), 0)).unwrap();
    text = text.replace("vertex 0", "vertex 200");
    for i in 0..200 {
        let _ = writeln!(
            text,
            "{i} 0 0 0 0 0 0 {s} {s} {s} 1 0 0 0",
            s = if i == 7 { 30 } else { 1 }
        );
    }
    let warnings = load_bytes("a.ply", text.as_bytes())
        .unwrap()
        .warnings
        .join("\n");
    assert!(
        warnings.contains("activated") && warnings.contains("1 splats are more"),
        "{warnings}"
    );
}

// ---------------------------------------------------------------------------------------------
// world space

#[test]
fn the_biker_stands_the_same_way_in_both_formats() {
    let (Some(spz), Some(ply)) = (
        given::data("formats/engine/biker.spz"),
        given::data("formats/engine/biker.compressed.ply"),
    ) else {
        return;
    };
    let (a, b) = (
        load_path(&spz).unwrap().splats,
        load_path(&ply).unwrap().splats,
    );
    // Rows are in another order, so clouds are compared: the mean, and the third moments, which
    // change sign with every turn by half a circle.
    let moments = |s: &Splats| {
        let n = s.len() as f32;
        let mean = s.means.iter().sum::<Vec3>() / n;
        let third = s.means.iter().map(|p| (*p - mean).powf(3.0)).sum::<Vec3>() / n;
        (mean, third)
    };
    let ((mean_a, third_a), (mean_b, third_b)) = (moments(&a), moments(&b));
    let size = size_of(&a);
    assert!(
        (mean_a - mean_b).length() < 1e-2 * size,
        "{mean_a} {mean_b}"
    );
    for axis in 0..3 {
        let (x, y) = (third_a[axis].cbrt(), third_b[axis].cbrt());
        assert!((x - y).abs() < 0.03 * size, "axis {axis}: {x} {y}");
    }
    // Upright: the scene stands on y = 0 and is some 3 m high.
    for splats in [&a, &b] {
        let bounds = splats.percentile_bounds(0.02).unwrap();
        assert!(bounds.min.y.abs() < 0.2 && bounds.max.y > 2.0, "{bounds:?}");
    }
}

/// What a splat looks like, free of the choice among the rotations that give the same ellipsoid.
fn covariance(splats: &Splats, i: usize) -> Mat3 {
    let turn = Mat3::from_quat(splats.rotations[i]);
    let variance = Mat3::from_diagonal((2.0 * splats.log_scales[i]).map(f32::exp));
    turn * variance * turn.transpose()
}

/// Largest difference of covariances, each relative to the size of the one wanted.
fn covariance_difference(got: &Splats, want: &Splats) -> f32 {
    let norm = |m: Mat3| m.to_cols_array().iter().map(|v| v * v).sum::<f32>().sqrt();
    (0..want.len())
        .map(|i| {
            let wanted = covariance(want, i);
            norm(covariance(got, i) - wanted) / norm(wanted)
        })
        .fold(0.0, f32::max)
}

#[test]
fn three_files_of_the_same_splats_agree_in_world_space() {
    let stem = "tiny/metalsplatter_test-splat.3-points-from-train";
    let Some(ply) = given::data(&format!("{stem}.ply")) else {
        return;
    };
    let want = load_path(&ply).unwrap().splats;
    for ending in ["splat", "spz"] {
        let Some(path) = given::data(&format!("{stem}.{ending}")) else {
            continue;
        };
        let got = load_path(&path).unwrap().splats;
        assert_eq!(got.len(), want.len(), "{ending}");
        let d = difference(&got, &want, size_of(&want));
        // Steps of the two byte formats: 8-bit colours, 1/16 in scale, 8-bit rotations.
        assert!(d.position < 1e-3 && d.log_scale < 0.04, "{ending}: {d:?}");
        assert!(d.opacity < 0.01 && d.sh < 0.1, "{ending}: {d:?}");
        assert!(covariance_difference(&got, &want) < 0.08, "{ending}");
        let shown = |s: &Splats, i: usize| (s.dc[i] * sh::SH_C0 + 0.5).clamp(Vec3::ZERO, Vec3::ONE);
        for i in 0..3 {
            assert!(
                (shown(&got, i) - shown(&want, i)).abs().max_element() < 0.02,
                "{ending} {i}"
            );
        }
    }
}

#[test]
fn the_glb_and_the_ply_of_one_scene_are_half_a_turn_apart() {
    let (Some(glb), Some(ply)) = (
        given::data("formats/generated/playbot_l6.glb"),
        given::data("formats/generated/playbot_l6.ply"),
    ) else {
        return;
    };
    let (got, want) = (
        load_path(&glb).unwrap().splats,
        load_path(&ply).unwrap().splats,
    );
    // The exporter turned PLY to glTF about z where this crate turns PLY to world about x, so the
    // two stand upright and face opposite ways: half a turn about y apart.
    let mut want = want;
    want.turn(Mat3::from_diagonal(Vec3::new(-1.0, 1.0, -1.0)));
    let d = difference(&got, &want, size_of(&want));
    assert!(
        d.position < 1e-5 && d.log_scale < 1e-4 && d.opacity < 1e-4,
        "{d:?}"
    );
    assert!(d.colour < 1e-4 && d.sh < 1e-4, "{d:?}");
    assert!(covariance_difference(&got, &want) < 1e-3);
}

#[test]
fn avatars_are_not_turned_and_axes_can_be_overridden() {
    let Some(path) = given::data("avatar/ict_head.splattie") else {
        return;
    };
    let (format, file) = read(&path, &LoadOptions::default(), &quiet).unwrap();
    let loaded = load_path(&path).unwrap();
    assert_eq!((format, loaded.axes), (Format::Splattie, Axes::RUB));
    assert_eq!(loaded.splats.means, file.splats.means);
    let options = LoadOptions {
        axes: Some(Axes::RFU),
        ..LoadOptions::default()
    };
    let turned = load(&path, &options, &quiet).unwrap();
    let p = file.splats.means[5];
    assert!((turned.splats.means[5] - Vec3::new(p.x, p.z, -p.y)).length() < 1e-6);
}

// ---------------------------------------------------------------------------------------------
// containers and refusals

#[test]
fn urls_scenes_and_unknown_files_are_refused_by_name() {
    for url in [
        "http://host/a.ply",
        "https://host/a.ply",
        "s3+x://bucket/a",
        "data:text/plain,a",
    ] {
        let error = load_path(Path::new(url)).unwrap_err();
        assert_eq!(error.code, Code::IsUrl, "{url}");
        assert!(error.message.contains("download it first"), "{error}");
    }
    let error = load_path(Path::new("no/such/file.ply")).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.file.as_str()),
        ("not-found", "no/such/file.ply")
    );
    let facts = inspect::error_report(&error);
    assert_eq!(facts["error"]["code"], "not-found");
    let scene = Memory::new("scene")
        .with("scene.luau", "return {}")
        .with("a.ply", "ply\n");
    let error = load_in(&scene, None, &LoadOptions::default(), &quiet).unwrap_err();
    assert_eq!(error.code, Code::NotSplats, "{error}");
    for bytes in [&b""[..], b"{}", b"hello, world", &[0; 40]] {
        let error = load_bytes("thing", bytes).unwrap_err();
        assert_eq!(error.code, Code::UnknownFormat, "{error}");
        assert_eq!(error.entry.as_deref(), Some("thing"));
    }
}

/// A zip of stored or deflated entries.
fn zipped(entries: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn a_zip_of_one_splat_file_is_read_past_system_litter() {
    let ply = made_ply("binary_little_endian", &floats(), 3);
    for method in [
        zip::CompressionMethod::Stored,
        zip::CompressionMethod::Deflated,
    ] {
        let bytes = zipped(
            &[
                ("__MACOSX/x/._offset.ply", b"junk"),
                (".DS_Store", b"junk"),
                ("x/._offset.ply", b"junk"),
                ("x/offset.ply", &ply),
            ],
            method,
        );
        assert_eq!(read_bytes("lam.zip", &bytes).unwrap().splats.len(), 3);
    }
    let two = zipped(
        &[("a.ply", &ply), ("b.ply", &ply)],
        zip::CompressionMethod::Stored,
    );
    let error = read_bytes("two.zip", &two).unwrap_err();
    assert!(
        error.message.contains("a.ply") && error.message.contains("name one"),
        "{error}"
    );
}

#[test]
fn names_that_lead_out_of_a_zip_are_refused() {
    // Names of equal length, so that the archive stays whole when the bytes are exchanged.
    for name in [
        "../x.ply",
        "/abs.ply",
        "a/../../",
        "C:/x.ply",
        "..\\x.ply",
        "a\\b\\.ply",
    ] {
        let whole = zipped(
            &[("harmless", b"x"), ("nnnnnnnn", b"x")],
            zip::CompressionMethod::Stored,
        );
        let mut bytes = whole.clone();
        for start in 0..whole.len() - 8 {
            if &whole[start..start + 8] == b"nnnnnnnn" {
                bytes[start..start + 8].copy_from_slice(name.as_bytes());
            }
        }
        let error = read_bytes("evil.zip", &bytes).unwrap_err();
        assert_eq!(error.code, Code::UnsafeName, "{error}");
        assert_eq!(error.entry.as_deref(), Some(name), "{error}");
        assert!(error.file.contains("evil.zip"), "{error}");
    }
    let memory = Memory::new("memory").with("a.ply", "ply\n");
    let error = memory.read("../a.ply", 10).unwrap_err();
    assert_eq!(error.code, Code::UnsafeName);
    let folder = Folder::new(Path::new("."), ".");
    assert_eq!(
        folder.read("/etc/hosts", 1 << 20).unwrap_err().code,
        Code::UnsafeName
    );
}

#[test]
fn symbolic_links_in_a_zip_are_refused() {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    writer
        .add_symlink("meta.json", "/etc/passwd", options)
        .unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let error = read_bytes("link.zip", &bytes).unwrap_err();
    assert_eq!(error.code, Code::UnsafeName, "{error}");
    assert!(error.message.contains("symbolic link"), "{error}");
}

#[test]
fn zip_bombs_and_lying_sizes_are_errors_without_the_memory() {
    let zeros = vec![0_u8; 20 << 20];
    let bytes = zipped(&[("a.ply", &zeros)], zip::CompressionMethod::Deflated);
    drop(zeros);
    let (result, peak) = peak_bytes(|| read_bytes("bomb.zip", &bytes));
    let error = result.unwrap_err();
    assert_eq!(error.code, Code::TooLarge, "{error}");
    assert!(peak < 1 << 20, "{peak} bytes");
    // The same with a directory that declares 600 kB: the ratio is fair, the size a lie.
    let size = (20_u32 << 20).to_le_bytes();
    let mut lying = bytes.clone();
    for start in 0..bytes.len() - 4 {
        if bytes[start..start + 4] == size {
            lying[start..start + 4].copy_from_slice(&500_000_u32.to_le_bytes());
        }
    }
    assert_ne!(lying, bytes);
    let (result, peak) = peak_bytes(|| read_bytes("bomb.zip", &lying));
    let error = result.unwrap_err();
    assert_eq!(error.code, Code::Malformed, "{error}");
    assert!(peak < 2 << 20, "{peak} bytes");
    // Within a caller's own limit or not at all.
    let zip = Zip::new(
        zipped(&[("a", &[1; 100])], zip::CompressionMethod::Stored),
        "z",
    )
    .unwrap();
    assert_eq!(zip.read("a", 99).unwrap_err().code, Code::TooLarge);
    assert_eq!(zip.read("a", 100).unwrap().len(), 100);
}

#[test]
fn files_of_forty_bytes_that_claim_two_billion_splats_are_refused() {
    let ply = b"ply\nformat ascii 1.0\nelement vertex 2000000000\n".as_slice();
    let properties: String = FIELDS
        .iter()
        .map(|n| format!("property float {n}\n"))
        .collect();
    let ascii = [ply, properties.as_bytes(), b"end_header\n1 2 3"].concat();
    let binary = String::from_utf8(ascii.clone()).unwrap();
    let binary = binary.replace("ascii", "binary_little_endian").into_bytes();
    let packed = b"ply\nformat binary_little_endian 1.0\nelement chunk 8000000\n\
        property float min_x\nelement vertex 2000000000\nproperty uint packed_position\nend_header\n"
        .to_vec();
    let spz = |version: u32| {
        let mut bytes = b"NGSP".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(2_000_000_000_u32.to_le_bytes());
        bytes.extend([3, 12, 0, 6]);
        bytes.extend(32_u32.to_le_bytes());
        bytes.resize(40, 0);
        bytes
    };
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut ksplat = vec![0_u8; 4096 + 1024];
    ksplat[1] = 1;
    ksplat[4] = 1;
    ksplat[4096..4104].copy_from_slice(&[0, 148, 53, 119, 0, 148, 53, 119]);
    let json = br#"{"version":2,"count":2000000000,"means":{"mins":[0,0,0],"maxs":[1,1,1],
        "files":["means_l.webp","means_u.webp"]}}"#;
    let glb = {
        let json = br#"{"asset":{"version":"2.0"},"nodes":[{"mesh":0}],"meshes":[{"primitives":
            [{"attributes":{"POSITION":0,"_ROTATION":0,"_SCALE":0},"extensions":
            {"KHR_gaussian_splatting":{}}}]}],"accessors":[{"bufferView":0,"componentType":5126,
            "type":"VEC4","count":2000000000}],"bufferViews":[{"buffer":0,"byteLength":32000000000}]}"#;
        let mut bytes = b"glTF\x02\0\0\0\0\0\0\0".to_vec();
        bytes.extend((json.len() as u32).to_le_bytes());
        bytes.extend(b"JSON");
        bytes.extend(json);
        bytes
    };
    for (name, bytes) in [
        ("a.ply", ascii),
        ("b.ply", binary),
        ("c.compressed.ply", packed),
        ("v1.spz", gzip(&spz(1))),
        ("v2.spz", gzip(&spz(2))),
        ("v3.spz", gzip(&spz(3))),
        ("v4.spz", spz(4)),
        ("raw.spz", spz(3)),
        ("a.ksplat", ksplat),
        ("meta.json", json.to_vec()),
        ("a.glb", glb),
        ("a.splat", vec![0; 40]),
    ] {
        let (result, peak) = peak_bytes(|| read_bytes(name, &bytes));
        let error = result.unwrap_err();
        assert!(peak < 1 << 20, "{name}: {peak} bytes for {error}");
        assert!(error.entry.is_some(), "{name}: {error}");
    }
}

// ---------------------------------------------------------------------------------------------
// hostile bytes

/// Fixtures small enough to be cut at every length.
const SMALL: &[&str] = &[
    "formats/splat-transform-fixtures/minimal-raw.spz",
    "formats/splat-transform-fixtures/minimal-v2.spz",
    "formats/splat-transform-fixtures/minimal-v3.spz",
    "formats/splat-transform-fixtures/minimal-v4.spz",
    "formats/splat-transform-fixtures/minimal.ksplat",
    "formats/splat-transform-fixtures/minimal.splat",
    "tiny/khr_conformance_matrix.glb",
    "tiny/metalsplatter_test-splat.3-points-from-train.ply",
    "tiny/metalsplatter_test-splat.3-points-from-train.splat",
    "tiny/metalsplatter_test-splat.3-points-from-train.spz",
    "tiny/minimal_ascii.ply",
    "tiny/minimal_binary.ply",
    "tiny/minimal_v4_degree0.spz",
    "tiny/splatapult_test.ply",
    "tiny/wgpu3dgs_model.ply",
    "tiny/wgpu3dgs_model.spz",
];
/// Bytes at the start of a file that are flipped one by one: every header here, and some rows.
const FLIPPED_BYTES: usize = 6000;
/// What a reader may hold for any of the small files. The largest honest need is zstd's window.
const PEAK_BYTES_MAX: u64 = 16 << 20;

/// Reads `bytes` and judges how: an answer, an error with a place, never more memory than allowed.
fn survive(name: &str, what: &str, bytes: &[u8]) {
    let (result, peak) = peak_bytes(|| read_bytes(name, bytes));
    assert!(peak < PEAK_BYTES_MAX, "{name}, {what}: {peak} bytes");
    match result {
        Ok(file) => file.splats.check_lengths().unwrap(),
        Err(error) => {
            assert!(
                !error.message.is_empty() && error.file.starts_with("memory"),
                "{name}, {what}: {error:?}"
            );
        }
    }
}

fn small_fixtures() -> Vec<(String, Vec<u8>)> {
    let mut fixtures: Vec<(String, Vec<u8>)> = SMALL
        .iter()
        .filter_map(|path| given::data(path).map(|p| ((*path).to_owned(), p)))
        .map(|(path, p)| (path.replace('/', "_"), std::fs::read(p).unwrap()))
        .collect();
    let ply = made_ply("binary_little_endian", &floats(), 3);
    fixtures.push((
        "made.zip".to_owned(),
        zipped(&[("x/offset.ply", &ply)], zip::CompressionMethod::Deflated),
    ));
    let listed: Vec<_> = floats()
        .into_iter()
        .chain([("list uchar short", "extra")])
        .collect();
    fixtures.push((
        "listed.ply".to_owned(),
        made_ply("binary_big_endian", &listed, 0),
    ));
    fixtures
}

#[test]
fn every_cut_of_every_small_file_is_an_answer_or_an_error() {
    for (name, bytes) in small_fixtures() {
        for length in 0..bytes.len() {
            survive(&name, &format!("cut at {length}"), &bytes[..length]);
        }
    }
}

#[test]
fn every_flipped_byte_of_every_small_file_is_an_answer_or_an_error() {
    for (name, bytes) in small_fixtures() {
        for at in 0..bytes.len().min(FLIPPED_BYTES) {
            for mask in [0xff, 0x01, 0x80] {
                let mut flipped = bytes.clone();
                flipped[at] ^= mask;
                survive(&name, &format!("byte {at} ^ {mask:#x}"), &flipped);
            }
        }
    }
}

#[test]
fn truncated_files_say_so_with_place_and_sizes() {
    let whole = made_ply("binary_little_endian", &floats(), 100);
    let error = read_bytes("cut.ply", &whole[..whole.len() - 1]).unwrap_err();
    assert_eq!(error.code, Code::Truncated);
    assert!(
        error.message.contains("5600") && error.message.contains("5599"),
        "{error}"
    );
}

// ---------------------------------------------------------------------------------------------
// writing

/// A scene with turned, scaled, coloured splats of degree 3 in every writer's range.
fn varied(count: usize) -> Splats {
    let mut state = 12_345_u32;
    let mut random = || {
        // Numerical Recipes' linear congruential generator: any fixed sequence will do here.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0
    };
    let mut splats = Splats {
        sh_degree: 3,
        ..Splats::default()
    };
    for i in 0..count {
        let mut vec = |scale: f32| Vec3::new(random(), random(), random()) * scale - scale * 0.5;
        splats.means.push(vec(8.0));
        splats.log_scales.push(vec(2.0) - 3.0);
        splats.dc.push(vec(2.0));
        let axis = vec(2.0).normalize_or_zero();
        splats
            .rotations
            .push(Quat::from_xyzw(axis.x, axis.y, axis.z, 0.7).normalize());
        splats.opacities.push(match i {
            0 => 0.0,
            1 => 1.0,
            _ => random(),
        });
        splats.sh_rest.extend((0..45).map(|_| random() - 0.5));
    }
    splats
}

/// Writes a PLY of `varied` rows into `folder` by hand of the crate's own writer.
fn source(folder: &Path, count: usize) -> std::path::PathBuf {
    let splats = varied(count);
    let mut properties: Vec<String> = FIELDS.iter().map(|f| (*f).to_owned()).collect();
    properties.extend((0..45).map(|k| format!("f_rest_{k}")));
    let mut bytes = format!("ply\nformat binary_little_endian 1.0\nelement vertex {count}\n");
    for name in &properties {
        let _ = writeln!(bytes, "property float {name}");
    }
    let mut bytes = (bytes + "end_header\n").into_bytes();
    for i in 0..count {
        let q = splats.rotations[i];
        let logit = match splats.opacities[i] {
            0.0 => f32::NEG_INFINITY,
            1.0 => f32::INFINITY,
            a => (a / (1.0 - a)).ln(),
        };
        let rest = splats.sh_rest_of(i);
        let row = splats.means[i]
            .to_array()
            .into_iter()
            .chain(splats.dc[i].to_array())
            .chain([logit])
            .chain(splats.log_scales[i].to_array())
            .chain([q.w, q.x, q.y, q.z])
            .chain((0..45).map(|k| rest[k % 15 * 3 + k / 15]));
        bytes.extend(row.flat_map(f32::to_le_bytes));
    }
    let path = folder.join("source.ply");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn converted(from: &Path, to: &Path, to_axes: Option<Axes>) -> splatstage::formats::Converted {
    let options = ConvertOptions {
        to_axes,
        ..ConvertOptions::default()
    };
    convert(from, to, &options, &quiet).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_ply_survives_the_way_through_a_ply() {
    let folder = tempfile::tempdir().unwrap();
    let from = source(folder.path(), 300);
    let to = folder.path().join("out.ply");
    let report = converted(&from, &to, None);
    assert!(report.lost.is_empty() && report.count == 300, "{report:?}");
    let (got, want) = (rows_of(&to), rows_of(&from));
    assert_eq!(got.axes, None, "a file in the usual axes says nothing");
    check_rows("ply", &got.splats, &want.splats);
    assert!(got.splats.opacities[0] < 1e-5 && got.splats.opacities[1] > 1.0 - 1e-5);
}

#[test]
fn a_ply_in_other_axes_is_the_same_scene() {
    let folder = tempfile::tempdir().unwrap();
    let from = source(folder.path(), 300);
    let to = folder.path().join("out.ply");
    for axes in [Axes::RUB, Axes::RFU, "BLU".parse().unwrap_or(Axes::RFU)] {
        converted(&from, &to, Some(axes));
        let (got, want) = (load_path(&to).unwrap(), load_path(&from).unwrap());
        assert_eq!(got.axes, axes);
        check_rows("turned ply", &got.splats, &want.splats);
        assert_ne!(rows_of(&to).splats.means, rows_of(&from).splats.means);
    }
}

#[test]
fn every_writer_keeps_the_scene_within_its_steps() {
    let folder = tempfile::tempdir().unwrap();
    let from = source(folder.path(), 3000);
    let want = load_path(&from).unwrap();
    for (ending, limits) in [
        // position (of the scene), rotation, log-scale, colour, opacity, SH
        ("spz", [2e-5, 0.01, 0.04, 0.01, 0.003, 0.07]),
        ("splat", [1e-6, 0.012, 1e-5, 0.003, 0.003, 1.0]),
        ("sog", [1e-4, 0.012, 0.1, 0.06, 0.005, 1.0]),
    ] {
        let to = folder.path().join(format!("out.{ending}"));
        let report = converted(&from, &to, None);
        assert!(
            !report.lost.is_empty(),
            "{ending} loses something and says so"
        );
        let got = load_path(&to).unwrap();
        assert_eq!((got.format, got.splats.len()), (report.to, 3000));
        let mut want = want.splats.clone();
        if got.splats.sh_degree == 0 {
            (want.sh_degree, want.sh_rest) = (0, Vec::new());
        }
        // Formats of bytes clamp colours to what can be shown at band 0.
        if ending == "splat" {
            let range = 0.5 / sh::SH_C0;
            want.dc
                .iter_mut()
                .for_each(|c| *c = c.clamp(Vec3::splat(-range), Vec3::splat(range)));
        }
        let d = difference(&got.splats, &want, size_of(&want));
        let found = [
            d.position,
            d.rotation,
            d.log_scale,
            d.colour,
            d.opacity,
            d.sh,
        ];
        assert!(
            found.iter().zip(limits).all(|(f, limit)| *f <= limit),
            "{ending}: {d:?}, allowed {limits:?}"
        );
    }
}

#[test]
fn converting_keeps_file_space_for_ply_and_says_which() {
    let Some(spz) = given::data("formats/generated/playbot_l6_v4.spz") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("out.ply");
    assert_eq!(converted(&spz, &to, None).axes, Axes::RUB);
    let (got, want) = (rows_of(&to), rows_of(&spz));
    assert_eq!(got.axes, Some(Axes::RUB));
    check_rows("spz to ply", &got.splats, &want.splats);
}

#[test]
fn what_cannot_be_written_is_refused_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let from = source(folder.path(), 3);
    for (name, axes) in [
        ("out.glb", None),
        ("out.compressed.ply", None),
        ("out", None),
        ("out.spz", Some(Axes::RDF)),
    ] {
        let options = ConvertOptions {
            to_axes: axes,
            ..ConvertOptions::default()
        };
        let error = convert(&from, &folder.path().join(name), &options, &quiet).unwrap_err();
        assert_eq!(error.code, Code::NotWritable, "{error}");
    }
    let bad = folder.path().join("bad.ply");
    std::fs::write(&bad, "ply\n").unwrap();
    let options = ConvertOptions::default();
    assert!(convert(&bad, &folder.path().join("out.ply"), &options, &quiet).is_err());
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 2, "source.ply and bad.ply");
}
