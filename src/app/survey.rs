//! `survey SCAN -o DIR`: finds floor, walls and a way in a scan, and writes them as a scene to edit.
//!
//! The finding is in [`crate::survey`]; here are the files: the scan, put beside the scene so that the
//! folder is whole, `scene.luau`, `walk.json`, which the scene reads, and collision voxels for other
//! programs. Those that a scan ships are read.

use super::assets::AssetCache;
use super::progress::Progress;
use super::session::{SceneOptions, Session};
use super::{Usage, atomic, gathered};
use crate::formats;
use crate::frame::SplatDraw;
use crate::scene::{Axes, Placement};
use crate::survey::{self, Collision, Options, Placed, Survey};
use anyhow::{Context as _, bail};
use glam::{Quat, Vec3};
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

/// How high a ceiling is, and from where on it is no room's, metres.
const CEILING_M_USUAL: [f32; 2] = [2.5, 9.0];

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
    draws: Vec<SplatDraw>,
    /// The file, where the scan is one that can be put beside the scene as it is.
    file: Option<PathBuf>,
    /// The axes that it was loaded with, where somebody said so.
    axes: Option<String>,
    /// The built-in scene that makes it: it is made again, not written.
    builtin: Option<String>,
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
        .map(|draw| Placed {
            placement: Placement {
                translation: draw.placement.translation * scale,
                scale: draw.placement.scale * scale,
                ..draw.placement
            },
            tint: Vec3::from_slice(&draw.tint[..3]),
            opacity: draw.tint[3],
            splats: &draw.splats,
        })
        .collect();
    let through: Vec<Vec3> = options
        .from
        .into_iter()
        .chain(options.via.iter().copied())
        .chain(options.to)
        .collect();
    let turn = scan.turn();
    let shipped = scan.collision.as_deref().map(read_collision).transpose()?;
    let wanted = Options {
        up: options.up,
        collision: shipped.map(|collision| (collision, turn, scan.unit_m(scale))),
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
    let (file, how) = put_scan(options, &scan, scale)?;
    timings.insert(
        "write".to_owned(),
        json!(round(since.elapsed().as_secs_f64())),
    );
    let place = scan.place(found.rotation, scale);
    let written = put_collision(options, &found, place.rotation, place.scale)?;
    let mut report = report(&found, timings, start);
    if let Some(ceiling_m) = found.ceiling_m.filter(|m| *m > CEILING_M_USUAL[1]) {
        // What a storey of the usual height would make of it.
        let times = f64::from(scale * CEILING_M_USUAL[0] / ceiling_m);
        report["hint"] = json!(format!(
            "ceilings are {ceiling_m:.1} m high: a hall, or a scan that is not in metres; a room would be as \
             high as rooms are with --scale {times:.2}"
        ));
    }
    report["collision"] = json!({
        "read": scan.collision.as_ref().and_then(|p| p.file_name()).map(|n| n.to_string_lossy()),
        "written": written,
    });
    let scan_facts = json!({
        "file": file,
        "axes": scan.file.as_ref().and(scan.axes.as_ref()),
        "scene": scan.builtin,
        "args": scan.builtin.as_ref().map(|_| &options.args),
        "rotation": place.rotation.to_array(),
        "scale": place.scale,
    });
    let data = data(&found, scan_facts, &report);
    let path = options.out.join(DATA_FILE);
    let bytes = serde_json::to_vec_pretty(&data)?;
    atomic::write(&path, &bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    let path = options.out.join(SCENE_FILE);
    atomic::write(&path, SCENE.as_bytes())
        .with_context(|| format!("{}: cannot write", path.display()))?;
    report["output"] = json!(options.out);
    report["scan"] = json!({ "file": file, "scene": scan.builtin, "how": how });
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
    let mut session = Session::open(scene, Arc::clone(&cache), false)?;
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
        let mut draw = SplatDraw::new(Arc::clone(&asset.splats));
        draw.placement = placement;
        return Ok(Scan {
            draws: vec![draw],
            collision: path.as_deref().and_then(find_collision),
            axes: options.axes.map(|axes| axes.to_string()),
            file: path.filter(is_one),
            builtin: None,
        });
    }
    let draws = gathered::draws(&mut session)?;
    // A scene round one file, such as this program writes.
    let known = match &draws[..] {
        [draw] if gathered::is_plain(draw) && draw.placement.translation == Vec3::ZERO => {
            cache.file_of(&draw.splats)
        }
        _ => None,
    };
    let (file, axes) = known.unzip();
    Ok(Scan {
        collision: file.as_deref().and_then(find_collision),
        file,
        axes: axes.flatten(),
        builtin: Some(options.scan.clone()).filter(|name| name.starts_with('@')),
        draws,
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

impl Scan {
    /// World from loaded, of what can be put beside the scene.
    fn turn(&self) -> Quat {
        self.draws
            .first()
            .map_or(Quat::IDENTITY, |d| d.placement.rotation)
    }

    /// Metres of one unit of a file.
    fn unit_m(&self, scale: f32) -> f32 {
        self.draws.first().map_or(1.0, |d| d.placement.scale) * scale
    }

    /// How the scene has to turn and scale what lies beside it; `levelled` is levelled from given.
    fn place(&self, levelled: Quat, scale: f32) -> Placement {
        let own = match (&self.file, self.draws.first()) {
            (Some(_), Some(draw)) => draw.placement,
            _ => Placement::default(),
        };
        // What is written anew is as large as it is wanted.
        let is_anew = self.file.is_none() && self.builtin.is_none();
        let scale = if is_anew { 1.0 } else { scale };
        Placement {
            translation: Vec3::ZERO,
            rotation: (levelled * own.rotation).normalize(),
            scale: own.scale * scale,
        }
    }
}

/// Puts the scan into the folder: its name there, where it is there, and how it came there.
fn put_scan(
    options: &SurveyOptions,
    scan: &Scan,
    scale: f32,
) -> anyhow::Result<(Option<String>, &'static str)> {
    if scan.builtin.is_some() {
        return Ok((None, "the scene makes it"));
    }
    if let Some(path) = &scan.file {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let name = format!("scan.{}", ending.to_ascii_lowercase());
        let to = options.out.join(&name);
        let is_same = match (to.canonicalize(), path.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        };
        if is_same {
            return Ok((Some(name), "it was there already"));
        }
        if to.exists() {
            fs::remove_file(&to).with_context(|| format!("{}: cannot replace", to.display()))?;
        }
        if fs::hard_link(path, &to).is_ok() {
            return Ok((Some(name), "a hard link to the file"));
        }
        fs::copy(path, &to).with_context(|| format!("{}: cannot copy", to.display()))?;
        return Ok((Some(name), "a copy of the file"));
    }
    let name = "scan.sog".to_owned();
    let to = options.out.join(&name);
    let bar = Progress::new("writing");
    let merged = gathered::as_one(&scan.draws, scale);
    formats::save(&merged, &to, &|share| bar.set(share))?;
    Ok((Some(name), "written anew"))
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
        "ceiling_m": found.ceiling_m.map(|m| round(f64::from(m))),
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
