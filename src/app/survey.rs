//! `survey SCAN -o DIR`: finds floor, walls and a way in a scan, and writes them as a scene to edit.
//!
//! The finding is in [`crate::survey`]; here are the files: the scan, put beside the scene so that the
//! folder is whole, `scene.luau`, `walk.json`, which the scene reads, and collision voxels for other
//! programs. Those that a scan ships are read.

use super::assets::AssetCache;
use super::progress::Progress;
use super::session::{SceneOptions, Session};
use super::{Usage, atomic};
use crate::formats;
use crate::frame::Input;
use crate::scene::{Axes, Placement, Splats, sh};
use crate::survey::{self, Collision, Options, Placed, Survey};
use anyhow::{Context as _, bail};
use glam::{Mat3, Quat, Vec3};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The scene that is written.
const SCENE: &str = include_str!("survey_scene.luau");
/// Its name, and that of the data that it reads.
const SCENE_FILE: &str = "scene.luau";
const DATA_FILE: &str = "walk.json";
/// The collision voxels that are written beside the scan.
const COLLISION_FILE: &str = "scan.voxel.json";
const COLLISION_TREE_FILE: &str = "scan.voxel.bin";
/// Largest file of collision voxels that is read: 2^24 nodes and as many blocks are 200 MB.
const COLLISION_BYTES_MAX: u64 = 256 << 20;
/// Version of the data.
const DATA_FORMAT: u32 = 1;
/// Speed of a walker who looks at nothing, metres a second, for the duration in the report.
const SPEED_M_S: f64 = 1.2;

/// What to survey, and where to put it.
#[derive(Clone, Debug, Default)]
pub struct SurveyOptions {
    /// A splat file, a streamed scan, or a scene.
    pub scan: String,
    /// The folder of the new scene.
    pub out: PathBuf,
    /// Level of a streamed scan.
    pub level: Option<u32>,
    /// Axes of the file, where it does not tell the truth.
    pub axes: Option<Axes>,
    /// As in [`survey::Options::up`].
    pub up: Option<Vec3>,
    /// Where the way begins, metres, in the axes of the levelled scan.
    pub from: Option<Vec3>,
    /// Where it ends.
    pub to: Option<Vec3>,
    /// Points between, in order.
    pub via: Vec<Vec3>,
    /// As in [`survey::Options::clearance_m`]; `None` is the default.
    pub clearance_m: Option<f32>,
    /// Times the scan's own size.
    pub scale: Option<f32>,
    /// What the script of a scene finds in `stage.args`.
    pub args: serde_json::Map<String, Value>,
    /// Writes over a scene that is there.
    pub force: bool,
    /// Most bytes that an archive may hold unpacked.
    pub unpacked_bytes_max: Option<u64>,
}

/// What is surveyed.
struct Scan {
    draws: Vec<(Arc<Splats>, Placement, [f32; 4])>,
    /// The file, where the scan is one that can be put beside the scene as it is.
    file: Option<PathBuf>,
    /// The description of its collision voxels, where it ships them.
    collision: Option<PathBuf>,
}

/// Surveys a scan, writes the scene and says what was found.
///
/// # Errors
/// The scan cannot be read, no floor or way was found, or the folder holds a scene already.
pub fn survey(options: &SurveyOptions) -> anyhow::Result<Value> {
    check(options)?;
    let start = Instant::now();
    let scan = {
        let bar = Progress::new("loading");
        read(options, bar)?
    };
    let load_s = start.elapsed().as_secs_f64();
    let scale = options.scale.unwrap_or(1.0);
    let placed: Vec<Placed<'_>> = scan
        .draws
        .iter()
        .map(|(splats, placement, tint)| Placed {
            placement: Placement {
                translation: placement.translation * scale,
                scale: placement.scale * scale,
                ..*placement
            },
            tint: Vec3::new(tint[0], tint[1], tint[2]),
            opacity: tint[3],
            splats,
        })
        .collect();
    let through: Vec<Vec3> = options
        .from
        .into_iter()
        .chain(options.via.iter().copied())
        .chain(options.to)
        .collect();
    let turn = scan.draws.first().map_or(Quat::IDENTITY, |d| d.1.rotation);
    let shipped = scan.collision.as_deref().map(read_collision).transpose()?;
    let wanted = Options {
        up: options.up,
        collision: shipped.map(|collision| (collision, turn, scale)),
        through,
        clearance_m: options.clearance_m.unwrap_or(survey::CLEARANCE_M),
        ..Options::default()
    };
    let mut timings = serde_json::Map::new();
    timings.insert("load".to_owned(), json!(round(load_s)));
    let begun = Mutex::new((0_usize, Instant::now(), timings));
    let bar = Progress::new("surveying");
    let found = survey::survey(&placed, &wanted, &|stage, share| {
        let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
        if stage > begun.0 {
            let name = survey::STAGES[begun.0].to_owned();
            let seconds = json!(round(begun.1.elapsed().as_secs_f64()));
            begun.2.insert(name, seconds);
            (begun.0, begun.1) = (stage, Instant::now());
        }
        bar.set((stage as f32 + share) / survey::STAGES.len() as f32);
    })
    .with_context(|| options.scan.clone())?;
    drop(bar);
    let (last, since, mut timings) = begun.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = json!(round(since.elapsed().as_secs_f64()));
    timings.insert(survey::STAGES[last].to_owned(), seconds);

    let since = Instant::now();
    fs::create_dir_all(&options.out)
        .with_context(|| format!("{}: cannot make the folder", options.out.display()))?;
    let (file, how, rotation) = put_scan(options, &scan, &found)?;
    timings.insert(
        "write".to_owned(),
        json!(round(since.elapsed().as_secs_f64())),
    );
    let scan_axes = match &scan.file {
        Some(_) => options.axes.map(|axes| axes.to_string()),
        None => None,
    };
    let written = put_collision(options, &found, rotation, scale_of(&scan, scale))?;
    let mut report = report(&found, timings, start);
    report["collision"] = json!({
        "read": scan.collision.as_ref().and_then(|p| p.file_name()).map(|n| n.to_string_lossy()),
        "written": written,
    });
    let scan_facts = json!({
        "file": file,
        "axes": scan_axes,
        "rotation": rotation.to_array(),
        "scale": scale_of(&scan, scale),
    });
    let data = data(&found, scan_facts, &report);
    let path = options.out.join(DATA_FILE);
    let bytes = serde_json::to_vec_pretty(&data)?;
    atomic::write(&path, &bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    let path = options.out.join(SCENE_FILE);
    atomic::write(&path, SCENE.as_bytes())
        .with_context(|| format!("{}: cannot write", path.display()))?;
    report["output"] = json!(options.out);
    report["scan"] = json!({ "file": file, "how": how });
    Ok(report)
}

/// Refuses what makes no sense, and a folder that holds somebody's work.
fn check(options: &SurveyOptions) -> anyhow::Result<()> {
    if options.from.is_none() && (options.to.is_some() || !options.via.is_empty()) {
        bail!(Usage(
            "--to and --via need a --from: where does the way begin?".to_owned()
        ));
    }
    if options.to.is_none() && !options.via.is_empty() {
        bail!(Usage(
            "--via needs a --to: where does the way end?".to_owned()
        ));
    }
    let is_there = [SCENE_FILE, DATA_FILE]
        .iter()
        .find(|name| options.out.join(name).exists());
    if let (Some(name), false) = (is_there, options.force) {
        bail!(
            "{}: a scene is there already ({name}): choose another folder, or --force to write over it",
            options.out.display()
        );
    }
    Ok(())
}

fn read(options: &SurveyOptions, bar: Progress) -> anyhow::Result<Scan> {
    let bar = Arc::new(bar);
    let cache = AssetCache::new(Arc::new(move |_, share| bar.set(share)));
    let scene = SceneOptions {
        scene: options.scan.clone(),
        level: options.level,
        axes: options.axes,
        args: options.args.clone(),
        unpacked_bytes_max: options.unpacked_bytes_max,
        ..SceneOptions::default()
    };
    let mut session = Session::open(scene, cache, false)?;
    if let Some(asset) = session.plain_asset() {
        let asset = asset?;
        let placement = Placement {
            rotation: session.turn(),
            ..Placement::default()
        };
        let path = session.plain_file().map(Path::to_owned);
        // What is several files becomes one.
        let is_one = |p: &PathBuf| {
            p.is_file()
                && p.extension()
                    .is_some_and(|e| !e.eq_ignore_ascii_case("json"))
        };
        return Ok(Scan {
            draws: vec![(Arc::clone(&asset.splats), placement, [1.0; 4])],
            collision: path.as_deref().and_then(find_collision),
            file: path.filter(is_one),
        });
    }
    let input = Input {
        aspect: 16.0 / 9.0,
        ..Input::default()
    };
    let frame = session.reload(0.0, &input)?;
    let draws = frame
        .draws
        .iter()
        .map(|draw| (Arc::clone(&draw.splats), draw.placement, draw.tint))
        .collect();
    Ok(Scan {
        draws,
        file: None,
        collision: None,
    })
}

/// The description of a scan's collision voxels: of the file's own name, or the only one in the folder of a
/// scan that is several files.
fn find_collision(scan: &Path) -> Option<PathBuf> {
    let own = scan.with_extension("voxel.json");
    if !scan.is_dir() && own.is_file() {
        return Some(own);
    }
    let is_several = scan.is_dir()
        || scan
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let folder = if scan.is_dir() {
        Some(scan)
    } else {
        scan.parent()
    };
    let inside = fs::read_dir(folder.filter(|_| is_several)?).ok()?;
    let mut all = inside
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".voxel.json"));
    all.next().filter(|_| all.next().is_none())
}

/// Reads both files of collision voxels.
fn read_collision(description: &Path) -> anyhow::Result<Collision> {
    let tree = description.with_extension("bin");
    let bytes = |path: &Path| -> anyhow::Result<Vec<u8>> {
        let size = fs::metadata(path).map(|m| m.len());
        let size = size.with_context(|| format!("{}: cannot read", path.display()))?;
        if size > COLLISION_BYTES_MAX {
            bail!(
                "{}: too large for collision voxels: {size} bytes",
                path.display()
            );
        }
        fs::read(path).with_context(|| format!("{}: cannot read", path.display()))
    };
    let (known, words) = (bytes(description)?, bytes(&tree)?);
    Collision::decode(&known, &words).with_context(|| {
        format!(
            "{} and {}: no collision voxels; move them away to survey the scan without them",
            description.display(),
            tree.display()
        )
    })
}

/// Writes the collision voxels of what was found beside the scan: the name of the description, or `None`
/// where there are too many for the format.
fn put_collision(
    options: &SurveyOptions,
    found: &Survey,
    rotation: Quat,
    scale: f32,
) -> anyhow::Result<Option<&'static str>> {
    let made = Collision::of(&found.voxels, rotation, scale);
    let Some((description, tree)) = made.and_then(|made| made.encode()) else {
        return Ok(None);
    };
    for (name, bytes) in [(COLLISION_FILE, description), (COLLISION_TREE_FILE, tree)] {
        let path = options.out.join(name);
        atomic::write(&path, &bytes)
            .with_context(|| format!("{}: cannot write", path.display()))?;
    }
    Ok(Some(COLLISION_FILE))
}

/// How much the scene has to scale the file that lies beside it.
fn scale_of(scan: &Scan, scale: f32) -> f32 {
    if scan.file.is_some() { scale } else { 1.0 }
}

/// Puts the scan into the folder: its name there, how it came there, and how the scene turns it.
fn put_scan(
    options: &SurveyOptions,
    scan: &Scan,
    found: &Survey,
) -> anyhow::Result<(String, &'static str, Quat)> {
    if let Some(path) = &scan.file {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let name = format!("scan.{}", ending.to_ascii_lowercase());
        let to = options.out.join(&name);
        let is_same = match (to.canonicalize(), path.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        };
        let turn = scan.draws.first().map_or(Quat::IDENTITY, |d| d.1.rotation);
        let rotation = (found.rotation * turn).normalize();
        if is_same {
            return Ok((name, "it was there already", rotation));
        }
        if to.exists() {
            fs::remove_file(&to).with_context(|| format!("{}: cannot replace", to.display()))?;
        }
        if fs::hard_link(path, &to).is_ok() {
            return Ok((name, "a hard link to the file", rotation));
        }
        fs::copy(path, &to).with_context(|| format!("{}: cannot copy", to.display()))?;
        return Ok((name, "a copy of the file", rotation));
    }
    let name = "scan.sog".to_owned();
    let to = options.out.join(&name);
    let bar = Progress::new("writing");
    let scale = options.scale.unwrap_or(1.0);
    let merged = merged(scan, scale);
    formats::save(&merged, &to, &|share| bar.set(share))?;
    Ok((name, "written anew", found.rotation))
}

/// All draws as one set of splats, where they stand.
fn merged(scan: &Scan, scale: f32) -> Splats {
    let degree = scan.draws.iter().map(|d| d.0.sh_degree).max().unwrap_or(0);
    let mut all = Splats {
        sh_degree: degree,
        antialiased: scan.draws.iter().any(|d| d.0.antialiased),
        ..Splats::default()
    };
    for (splats, placement, tint) in &scan.draws {
        let mut own = Splats::clone(splats);
        own.turn(Mat3::from_quat(placement.rotation));
        let factor = placement.scale * scale;
        let tint_rgb = Vec3::new(tint[0], tint[1], tint[2]);
        let white = Vec3::splat(0.5 / sh::SH_C0);
        for i in 0..own.len() {
            all.means
                .push(own.means[i] * factor + placement.translation * scale);
            all.log_scales.push(own.log_scales[i] + factor.ln());
            all.opacities.push(own.opacities[i] * tint[3]);
            // The colour is 0.5 + SH_C0 dc, and that is what the tint multiplies.
            all.dc.push((own.dc[i] + white) * tint_rgb - white);
            let rest = own.sh_rest_of(i);
            all.sh_rest
                .extend(rest.iter().enumerate().map(|(k, c)| c * tint[k % 3]));
            let missing = sh::rest_count(degree) * 3 - rest.len();
            all.sh_rest.extend(std::iter::repeat_n(0.0, missing));
        }
        all.rotations.append(&mut own.rotations);
    }
    all
}

/// To the millimetre, or millisecond.
fn round(v: f64) -> f64 {
    (v * 1000.0).round() / 1000.0
}

fn rounded(v: Vec3) -> [f64; 3] {
    v.to_array().map(|c| round(f64::from(c)))
}

fn report(found: &Survey, timings: serde_json::Map<String, Value>, start: Instant) -> Value {
    let heights = &found.heights_m;
    let (low, high) = heights
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), h| {
            (a.min(*h), b.max(*h))
        });
    let rooms: Vec<Value> = found
        .rooms
        .rooms
        .iter()
        .enumerate()
        .map(|(number, room)| {
            json!({
                "number": number,
                "middle": rounded(found.floor.place(room.middle)),
                "area_m2": round(f64::from(room.area_m2)),
            })
        })
        .collect();
    let entered = &found.route.rooms;
    let mut different = entered.clone();
    different.sort_unstable();
    different.dedup();
    let mut timings = timings;
    let whole_s = round(start.elapsed().as_secs_f64());
    timings.insert("whole".to_owned(), json!(whole_s));
    json!({
        "up": rounded(found.up),
        "cell_m": round(f64::from(found.voxels.cell_m())),
        "cells": found.voxels.count(),
        "floor_m2": round(f64::from(found.floor.area_m2())),
        "floor_m": {
            "lowest": round(f64::from(low)),
            "highest": round(f64::from(high)),
            "every_m": survey::FLOOR_EVERY_M,
            "along_the_way": heights.iter().map(|h| round(f64::from(*h))).collect::<Vec<_>>(),
        },
        "rooms": rooms,
        "rooms_on_the_way": entered,
        "rooms_visited": different.len(),
        "length_m": round(found.route.length_m),
        "duration_s": round(found.route.length_m / SPEED_M_S),
        "clearance_m": round(f64::from(found.route.clearance_m)),
        "waypoints": found.route.points.len(),
        "looks": found.looks.len(),
        "timings_s": timings,
    })
}

fn data(found: &Survey, scan: Value, report: &Value) -> Value {
    let looks: Vec<Value> = found
        .looks
        .iter()
        .map(|look| {
            json!({
                "target": rounded(look.target),
                "arc_m": round(look.arc_m),
                "salience": round(f64::from(look.salience)),
            })
        })
        .collect();
    let metres = |m: Option<f32>| m.map_or(Value::Null, |m| json!(round(f64::from(m))));
    let sides = |k: usize, of: &dyn Fn(&survey::walls::Side) -> Value| -> Vec<Value> {
        found.walls.sides.iter().map(|side| of(&side[k])).collect()
    };
    let plan = |p: glam::Vec2| p.to_array().map(|c| round(f64::from(c)));
    let pieces: Vec<Value> = found
        .walls
        .pieces
        .iter()
        .map(|piece| json!({ "from": plan(piece.from), "to": plan(piece.to) }))
        .collect();
    let route: Vec<[f64; 3]> = found.route.points.iter().map(|p| rounded(*p)).collect();
    let heights: Vec<f64> = found
        .heights_m
        .iter()
        .map(|h| round(f64::from(*h)))
        .collect();
    json!({
        "format": DATA_FORMAT,
        "scan": scan,
        "route": route,
        "floor": { "every_m": survey::FLOOR_EVERY_M, "heights_m": heights },
        "looks": looks,
        "clearance_m": round(f64::from(found.route.clearance_m)),
        "walls": {
            "every_m": survey::WALLS_EVERY_M,
            "left_m": sides(0, &|side| metres(side.wall_m)),
            "right_m": sides(1, &|side| metres(side.wall_m)),
            "left_is": sides(0, &|side| json!(side.kind.name())),
            "right_is": sides(1, &|side| json!(side.kind.name())),
            "left_free_m": sides(0, &|side| metres(side.free_m)),
            "right_free_m": sides(1, &|side| metres(side.free_m)),
            "pieces_xz": pieces,
        },
        "report": report,
    })
}
