//! The survey: cells over splats and what is asked of them, floors, walls, ways, the command and the
//! scene that it writes.

mod world;

use crate::alley::numbers;
use crate::cli::splatstage;
use crate::given;
use crate::mind::{Nothing, load_files};
use glam::{IVec3, Mat3, Quat, Vec3};
use serde_json::Value as Json;
use splatstage::app::assets::AssetCache;
use splatstage::app::{CameraOptions, SceneOptions, Session};
use splatstage::frame::{Event, Input};
use splatstage::motion::Spline;
use splatstage::scene::{Placement, Splats};
use splatstage::survey::{
    self, Collision, Failure, Kind, Options, Placed, Survey, Voxels, survey, voxels,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use world::{World, passage_floor, plaza_floor, stairs_floor};

const RED: Vec3 = Vec3::new(0.8, 0.2, 0.1);
const BLUE: Vec3 = Vec3::new(0.1, 0.2, 0.8);
/// Spacing and noise of generated surfaces, metres.
const FINE: [f32; 2] = [0.03, 0.004];

fn voxels(splats: &Splats) -> Voxels {
    Voxels::build(&[Placed::plain(splats)], voxels::CELL_M, &|_| ())
}

/// A floor at 0.123 m with a wall at z = -3 and a tilted one at x = 2.
fn corner() -> World {
    let mut world = World::default();
    let floor = Vec3::new(-4.0, 0.123, -4.0);
    world.patch(floor, Vec3::X * 8.0, Vec3::Z * 8.0, FINE, BLUE);
    let wall = Vec3::new(-4.0, 0.0, -3.0);
    world.patch(wall, Vec3::X * 8.0, Vec3::Y * 3.0, FINE, RED);
    let side = Vec3::new(2.0, 0.0, -4.0);
    let tilted = Vec3::new(0.6, 0.0, 8.0);
    world.patch(side, tilted, Vec3::Y * 3.0, FINE, RED);
    world
}

#[test]
fn a_look_ends_at_the_surface_that_it_meets() {
    let world = corner();
    let cells = voxels(&world.splats);
    let eye = Vec3::new(0.0, 1.6, 0.0);
    let mut worst_m = 0.0_f32;
    for i in 0..200 {
        let yaw = (i as f32 / 199.0 - 0.5) * 1.4;
        let way = Vec3::new(-yaw.sin(), 0.2 * (i as f32).sin(), -yaw.cos());
        // Where the wall, the tilted wall or the floor is met first, by planes.
        let wall = 3.0 / -way.z;
        let tilted = (2.0 + 4.0 * 0.075) / (way.x - 0.075 * way.z);
        let floor = if way.y < 0.0 { 1.477 / -way.y } else { 1e9 };
        let mut wanted = wall.min(floor);
        if tilted > 0.0 {
            wanted = wanted.min(tilted);
        }
        // The same along a unit direction.
        let wanted = wanted * way.length();
        let look = cells.look(eye, way, 50.0);
        let found = look.distance_m.expect("a wall is met");
        // A surface is as thick as a cell; seen askance it begins earlier.
        worst_m = worst_m.max((found - wanted).abs());
        assert!(look.seen > 0.7, "{look:?}");
        if wanted == wall * way.length() {
            let colour = look.colour / look.seen;
            assert!((colour - 0.95 * RED).length() < 0.08, "{colour}");
        }
    }
    assert!(worst_m < 0.12, "{worst_m}");
    let up = cells.look(eye, Vec3::Y, 50.0);
    assert_eq!((up.distance_m, up.seen), (None, 0.0));
    assert_eq!(cells.look(eye, Vec3::ZERO, 50.0).distance_m, None);
    assert_eq!(cells.look(eye, Vec3::NEG_Z, 2.0).distance_m, None);
}

#[test]
fn ground_and_clearance_are_those_of_the_surfaces() {
    let mut world = corner();
    let table = [Vec3::new(-3.4, 0.7, 1.4), Vec3::new(-2.6, 0.75, 2.6)];
    world.block(table[0], table[1], FINE, RED);
    let cells = voxels(&world.splats);
    let on_table = cells.ground(Vec3::new(-3.0, 1.6, 2.0)).expect("a table");
    assert!((on_table - 0.75).abs() < 0.03, "{on_table}");
    for i in 0..50 {
        let p = Vec3::new(-1.9 + 0.07 * i as f32, 1.7, -1.8 + 0.05 * i as f32);
        let ground = cells.ground(p).expect("there is a floor");
        assert!((ground - 0.123).abs() < 0.006, "{ground} at {p}");
    }
    assert_eq!(cells.ground(Vec3::new(0.0, 1.0, 9.0)), None);
    assert_eq!(cells.ground(Vec3::new(0.0, -1.0, 0.0)), None);
    for away in [0.2_f32, 0.5, 0.9, 1.5] {
        let foot = Vec3::new(-1.0, 0.123, -3.0 + away);
        let found = cells.clearance(foot, 0.3, 1.7);
        assert!((found - away).abs() < 0.06, "{found} for {away}");
    }
    assert_eq!(
        cells.clearance(Vec3::new(-0.3, 0.123, 2.0), 0.3, 1.7),
        voxels::CLEARANCE_M_MAX
    );
}

/// A placed set gives the answers of one that was built where it stands.
#[test]
fn splats_are_asked_where_they_stand() {
    let world = corner();
    let placement = Placement {
        translation: Vec3::new(10.0, -2.0, 5.0),
        rotation: Quat::from_rotation_y(0.7),
        scale: 0.5,
    };
    let placed = Placed {
        placement,
        ..Placed::plain(&world.splats)
    };
    let cells = Voxels::build(&[placed], 0.025, &|_| ());
    let eye = placement.apply(Vec3::new(0.0, 1.6, 0.0));
    let way = placement.rotation * Vec3::NEG_Z;
    let found = cells.look(eye, way, 10.0).distance_m.expect("the wall");
    assert!((found - 1.5).abs() < 0.04, "{found}");
    let ground = cells.ground(eye).expect("the floor");
    assert!((ground - (-2.0 + 0.0615)).abs() < 0.006, "{ground}");
}

#[test]
fn wide_splats_fill_what_they_cover_and_wild_ones_do_no_harm() {
    let mut world = World::default();
    // One splat is a wall, three metres across and a centimetre thick.
    let wide = Vec3::new(0.7, 0.7, 0.01);
    world.splat(Vec3::new(0.0, 1.0, -2.0), wide, Quat::IDENTITY, 0.99, RED);
    // A sky 300 m off, too wide for fine cells.
    let sky = Vec3::new(150.0, 150.0, 0.5);
    world.splat(Vec3::new(0.0, 0.0, 300.0), sky, Quat::IDENTITY, 0.99, BLUE);
    for wild in [f32::NAN, f32::INFINITY, f32::MAX, -1e30] {
        let one = Vec3::ONE;
        world.splat(Vec3::splat(wild), one, Quat::IDENTITY, 0.9, RED);
        world.splat(Vec3::ZERO, Vec3::splat(wild), Quat::IDENTITY, 0.9, RED);
        world.splat(
            Vec3::ZERO,
            one,
            Quat::from_xyzw(wild, 0.0, 0.0, 1.0),
            0.9,
            RED,
        );
        world.splat(Vec3::ZERO, one, Quat::IDENTITY, wild, RED);
    }
    let rows = world.splats.len();
    // Rows of wild sizes and opacities stand at the origin: only the first two are looked at here.
    let keep: Vec<usize> = (0..rows)
        .filter(|i| *i < 2 || !world.splats.is_drawable(*i))
        .collect();
    let mut splats = Splats::default();
    for i in keep {
        splats.means.push(world.splats.means[i]);
        splats.log_scales.push(world.splats.log_scales[i]);
        splats.rotations.push(world.splats.rotations[i]);
        splats.opacities.push(world.splats.opacities[i]);
        splats.dc.push(world.splats.dc[i]);
    }
    let cells = voxels(&splats);
    for x in [-0.6, 0.0, 0.3, 0.5] {
        let look = cells.look(Vec3::new(x, 1.0, 0.0), Vec3::NEG_Z, 10.0);
        let found = look.distance_m.expect("the wide splat");
        assert!((found - 2.0).abs() < 0.06, "{found}");
    }
    let sky = cells.look(Vec3::new(0.0, 1.0, 0.0), Vec3::Z, 1000.0);
    let far = sky.distance_m.expect("the sky");
    assert!((280.0..320.0).contains(&far), "{far}");
    assert!((sky.colour / sky.seen - BLUE).length() < 0.02, "{sky:?}");
    // All of them, sizes and places beyond any scan: it ends, and soon.
    let start = Instant::now();
    let wild = voxels(&world.splats);
    assert!(start.elapsed().as_secs_f64() < 5.0);
    let _ = wild.look(Vec3::splat(1e30), Vec3::NEG_ONE, 1e4);
    let _ = wild.ground(Vec3::splat(-1e30));
    let _ = wild.clearance(Vec3::splat(1e30), 0.3, 1.7);
    assert_eq!(voxels(&Splats::default()).count(), 0);
}

#[test]
fn cells_do_not_depend_on_the_number_of_threads() {
    let mut world = corner();
    let (low, high) = (Vec3::new(-3.0, 0.5, -2.5), Vec3::new(1.5, 2.5, 3.0));
    world.floaters(low, high, 2000, 0.4);
    let answers = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        pool.install(|| {
            let cells = voxels(&world.splats);
            let looks: Vec<_> = (0..500)
                .map(|i| {
                    let a = i as f32 * 0.31;
                    let way = Vec3::new(a.sin(), 0.3 * (1.7 * a).sin(), a.cos());
                    cells.look(Vec3::new(0.0, 1.5, 0.0), way, 20.0)
                })
                .collect();
            (cells.count(), looks)
        })
    };
    assert_eq!(answers(1), answers(5));
}

/// Half a metre to some metres of room and a wall: what exposure and focus ask thousands of times.
#[test]
fn a_metre_of_a_look_takes_about_a_microsecond() {
    let mut world = corner();
    let (low, high) = (Vec3::new(-3.0, 0.5, -2.5), Vec3::new(1.5, 2.5, 3.0));
    world.floaters(low, high, 500, 0.1);
    let cells = voxels(&world.splats);
    let mut metres = 0.0_f64;
    let start = Instant::now();
    for i in 0..20_000 {
        let a = i as f32 * 0.31;
        let way = Vec3::new(a.sin(), 0.3 * (1.7 * a).sin(), a.cos());
        let look = cells.look(Vec3::new(0.0, 1.5, 0.0), way, 6.0);
        metres += f64::from(look.distance_m.unwrap_or(6.0));
    }
    let each_us = start.elapsed().as_secs_f64() * 1e6 / metres;
    eprintln!("{each_us:.3} us a metre");
    // A debug build on a busy machine; a release build takes a fraction.
    assert!(each_us < 8.0, "{each_us} us a metre");
}

#[test]
fn scripts_ask_probes() {
    let scene = r#"
        return { load = function(stage)
            local b = stage.builder(20000)
            for x = -50, 50 do
                for z = -50, 50 do
                    b:add(vector.create(x * 0.04, 0.2, z * 0.04), 0.03, { 0.2, 0.6, 0.3 })
                end
            end
            local ground = b:build("ground")
            local w = stage.builder(20000)
            for x = -50, 50 do
                for y = 0, 60 do
                    w:add(vector.create(x * 0.04, y * 0.04, -1.5), 0.03, { 0.7, 0.1, 0.1 })
                end
            end
            local wall = w:build("wall")
            wall.position = vector.create(0, 0, -0.5)
            local all = stage.probe()
            local d, r, g, bl, seen = all:look(vector.create(0, 1.5, 0), vector.create(0, 0, -2), 10)
            log.info(string.format("%.2f %.2f %.2f %.2f %.2f", d, r, g, bl, seen))
            log.info(string.format("%.2f", all:ground(vector.create(0, 1.5, 0))))
            log.info(string.format("%.1f", all:clearance(vector.create(0, 0.2, -1))))
            local own = stage.probe(ground, { cell = 0.1 })
            local none = own:look(vector.create(0, 1.5, 0), vector.create(0, 0, -1), 10)
            log.info(tostring(none) .. " " .. tostring(own.cell > 0.09))
            log.info(tostring(stage.probe({ ground, wall }).count == all.count))
            for _, bad in { function() own:look(1) end, function() own:look(vector.zero, vector.zero, 1) end,
                function() stage.probe("x") end, function() stage.probe(nil, { cell = 99 }) end,
                function() return own.nothing end } do
                local ok, why = pcall(bad)
                log.info(tostring(ok) .. " " .. why)
            end
        end }
    "#;
    let files = [("scene.luau".to_owned(), scene.to_owned())];
    let (_, lines) = load_files(files.into(), Arc::new(Nothing), Json::Null, None);
    // Each begins with the place that logged it.
    let lines = lines.take().into_iter();
    let lines: Vec<String> = lines
        .map(|(_, text)| text.split_once(": ").expect("a place").1.to_owned())
        .collect();
    let far: f32 = lines[0][..4].parse().expect("a distance");
    assert!((far - 2.0).abs() < 0.08, "{lines:?}");
    assert!(
        lines[0].contains("0.70 0.10 0.10") || lines[0].contains("0.69 0.10 0.10"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "0.20");
    assert_eq!(lines[2], "1.0");
    assert_eq!(lines[3], "nil true");
    assert_eq!(lines[4], "true");
    for (line, part) in lines[5..].iter().zip([
        "position must be a vector",
        "direction must be longer than 0",
        "must be a splats handle",
        "from 0.01",
        "a probe has no field 'nothing'",
    ]) {
        assert!(line.starts_with("false") && line.contains(part), "{line}");
    }
}

#[test]
fn a_real_scan_is_filled_and_asked() {
    let Some(path) = given::data("scenes/lacadiere/lod-meta.json") else {
        return;
    };
    let options = splatstage::formats::LoadOptions {
        level: Some(3),
        ..Default::default()
    };
    let loaded = splatstage::formats::load(&path, &options, &|_| ()).expect("the scan loads");
    let start = Instant::now();
    let cells = voxels(&loaded.splats);
    eprintln!(
        "{} splats, {} cells, {:.2} s",
        loaded.splats.len(),
        cells.count(),
        start.elapsed().as_secs_f64()
    );
    assert!(cells.count() > 100_000);
}

/// The least distance from a curve to any 5 cm cell whose centres sum up to more than half, between 0.3
/// and 1.7 m above the floor under the curve: written apart from the survey, with centres alone.
fn least_distance(
    splats: &Splats,
    turn: Quat,
    route: &[Vec3],
    heights: &[f32],
    every_m: f64,
) -> f32 {
    let mut sums: BTreeMap<[i32; 3], f32> = BTreeMap::new();
    for i in 0..splats.len() {
        if splats.is_drawable(i) {
            let p = turn * splats.means[i];
            let cell = (p / 0.05).floor().as_ivec3().to_array();
            *sums.entry(cell).or_default() += splats.opacities[i];
        }
    }
    // What is in one square of two metres lies together.
    let square_of = |p: Vec3| [(p.x / 2.0).floor() as i32, (p.z / 2.0).floor() as i32];
    let mut solid: BTreeMap<[i32; 2], Vec<Vec3>> = BTreeMap::new();
    for (cell, sum) in &sums {
        if *sum > 0.5 {
            let p = (IVec3::from_array(*cell).as_vec3() + 0.5) * 0.05;
            solid.entry(square_of(p)).or_default().push(p);
        }
    }
    let points: Vec<_> = route.iter().map(|p| p.as_dvec3()).collect();
    let curve = Spline::new(&points, false).expect("a way");
    let mut least = f32::INFINITY;
    let count = (curve.length() / 0.05).ceil() as usize;
    for i in 0..=count {
        let u = i as f64 / count as f64;
        let p = curve.at(u).as_vec3();
        let at = u * curve.length() / every_m;
        let k = (at as usize).min(heights.len() - 2);
        let floor = heights[k] + (heights[k + 1] - heights[k]) * (at - k as f64) as f32;
        let [x, z] = square_of(p);
        for square in (x - 1..=x + 1).flat_map(|x| (z - 1..=z + 1).map(move |z| [x, z])) {
            for cell in solid.get(&square).into_iter().flatten() {
                let up = cell.y - floor;
                if (0.3..=1.7).contains(&up) {
                    least = least.min((cell.x - p.x).hypot(cell.z - p.z));
                }
            }
        }
    }
    least
}

fn survey_of(splats: &Splats, options: &Options) -> Result<Survey, Failure> {
    survey(&[Placed::plain(splats)], options, &|_, _| ())
}

#[test]
fn the_floor_and_the_walls_of_a_passage_are_where_they_were_built() {
    let world = World::passage();
    let found = survey_of(&world.splats, &Options::default()).expect("a way");
    assert!(found.up.distance(Vec3::Y) < 2e-3, "{}", found.up);
    // The way is in the axes of the levelled scan, which are nearly those of the world.
    let back = found.rotation.inverse();
    let points: Vec<_> = found.route.points.iter().map(|p| p.as_dvec3()).collect();
    let curve = Spline::new(&points, false).expect("a way");
    assert!(curve.length() > 8.0, "{} m", curve.length());
    assert!(found.rooms.rooms.len() >= 2 && found.route.rooms.len() >= 2);
    let (mut worst_floor, mut worst_wall, mut walls) = (0.0_f32, 0.0_f32, 0);
    for (i, height) in found.heights_m.iter().enumerate() {
        let u = (i as f64 * survey::FLOOR_EVERY_M / curve.length()).min(1.0);
        let p = back * curve.at(u).as_vec3();
        if (p.x - 7.0).abs() > 0.1 {
            worst_floor = worst_floor.max((height - passage_floor(p.x)).abs());
        }
    }
    for (i, sides) in found.walls.sides.iter().enumerate() {
        let u = (i as f64 * survey::WALLS_EVERY_M / curve.length()).min(1.0);
        let p = back * curve.at(u).as_vec3();
        let ahead = curve.tangent(u).as_vec3();
        if !(5.4..8.6).contains(&p.x) {
            continue;
        }
        // To the left of +x lies -z.
        let (left, right) = if ahead.x > 0.0 {
            (1.3, 2.7)
        } else {
            (2.7, 1.3)
        };
        for (side, z) in sides.iter().zip([left, right]) {
            let wanted = (z - p.z).abs() / ahead.x.abs();
            let known = side.wall_m.expect("a wall");
            assert_eq!(side.kind, Kind::Wall, "{side:?} at {p}");
            worst_wall = worst_wall.max((known - wanted).abs());
            walls += 1;
        }
    }
    eprintln!("floor within {worst_floor} m, walls within {worst_wall} m");
    assert!(worst_floor < 0.01, "{worst_floor}");
    assert!(walls >= 8 && worst_wall < 0.03, "{walls}: {worst_wall}");
    assert!(found.route.clearance_m >= survey::CLEARANCE_M);
    let apart = least_distance(
        &world.splats,
        found.rotation,
        &found.route.points,
        &found.heights_m,
        survey::FLOOR_EVERY_M,
    );
    assert!(apart > 0.2, "{apart}");
    // The red chest stands out.
    assert!(
        found.looks.iter().any(|l| {
            let p = back * l.target;
            p.x > 11.5 && p.z < 1.5
        }),
        "{:?}",
        found.looks
    );
}

/// Rows of houses that the survey was not made by: walls are where they were built, what is set back is told
/// as that, and so is what is open.
#[test]
fn walls_are_told_from_what_is_in_them_and_before_them() {
    for (seed, width_m) in [(1, 2.4), (2, 3.2), (3, 5.0), (4, 7.5)] {
        let (world, houses) = World::street(seed, width_m);
        let options = Options {
            up: Some(Vec3::Y),
            through: vec![Vec3::new(1.0, 0.0, 0.0), Vec3::new(22.0, 0.0, 0.0)],
            ..Options::default()
        };
        let found = survey_of(&world.splats, &options).expect("a way");
        let points: Vec<_> = found.route.points.iter().map(|p| p.as_dvec3()).collect();
        let curve = Spline::new(&points, false).expect("a way");
        let (mut near, mut all, mut named, mut holes) = (0, 0, 0, 0);
        for (i, sides) in found.walls.sides.iter().enumerate() {
            let u = (i as f64 * survey::WALLS_EVERY_M / curve.length()).min(1.0);
            let foot = curve.at(u).as_vec3();
            let left = Vec3::Y.cross(curve.tangent(u).as_vec3()).normalize();
            for (side, way) in sides.iter().zip([left, -left]) {
                // A hand from a corner either of the two is right.
                let met = houses.iter().find_map(|house| {
                    let far = (house.wall - foot.z) / way.z;
                    let x = foot.x + way.x * far;
                    let inside = (house.from + 0.1..house.to - 0.1).contains(&x);
                    (far > 0.0 && inside).then_some((house, far, x))
                });
                let Some((house, far, x)) = met else {
                    continue;
                };
                all += 1;
                let is_near = side.wall_m.is_some_and(|m| (m - far).abs() < 0.03);
                near += usize::from(is_near);
                if !is_near {
                    eprintln!("{seed}: {side:?} for {far} at {foot} to {way}");
                }
                let hole = house
                    .holes
                    .iter()
                    .find(|h| (h[0] + 0.15..h[1] - 0.15).contains(&x));
                if hole.is_some() {
                    holes += 1;
                    named += usize::from(matches!(side.kind, Kind::Recess | Kind::Thing));
                }
            }
        }
        eprintln!("{seed}: {near} of {all} walls within 3 cm, {named} of {holes} recesses");
        assert!(all > 60 && near == all, "{seed}: {near} of {all}");
        assert!(
            holes > 10 && named * 10 >= holes * 9,
            "{seed}: {named} of {holes}"
        );
        // Lanes are openings.
        for pair in houses.windows(2).filter(|p| p[0].side == p[1].side) {
            let gap = [pair[0].to + 0.3, pair[1].from - 0.3];
            for (i, sides) in found.walls.sides.iter().enumerate() {
                let u = (i as f64 * survey::WALLS_EVERY_M / curve.length()).min(1.0);
                let foot = curve.at(u).as_vec3();
                let left = Vec3::Y.cross(curve.tangent(u).as_vec3()).normalize();
                let side = if left.z * pair[0].side > 0.0 {
                    sides[0]
                } else {
                    sides[1]
                };
                if (gap[0]..gap[1]).contains(&foot.x) && left.x.abs() < 0.05 {
                    assert_eq!(side.kind, Kind::Opening, "{seed}: {side:?} at {foot}");
                }
            }
        }
    }
}

/// However the file lies, up is found and the same way comes out.
#[test]
fn scans_that_lie_on_their_side_are_set_upright() {
    let world = World::passage();
    for turn in [
        Quat::from_rotation_x(std::f32::consts::FRAC_PI_2),
        Quat::from_rotation_x(-std::f32::consts::FRAC_PI_2),
        Quat::from_rotation_x(std::f32::consts::PI),
        Quat::from_rotation_z(std::f32::consts::FRAC_PI_2),
        Quat::from_rotation_z(0.05) * Quat::from_rotation_x(0.03),
    ] {
        let mut splats = world.splats.clone();
        splats.turn(Mat3::from_quat(turn));
        let found = survey_of(&splats, &Options::default()).expect("a way");
        let wanted = turn * Vec3::Y;
        let off_deg = found.up.angle_between(wanted).to_degrees();
        assert!(
            off_deg < 0.3,
            "{off_deg} degrees: {} for {wanted}",
            found.up
        );
        assert!(found.route.length_m > 8.0);
    }
}

/// A lane between high walls, up stairs, under the open sky: walls are larger than the ground, and no ceiling helps.
#[test]
fn ground_is_told_from_walls_that_are_larger() {
    let world = World::stairs();
    let half = std::f32::consts::FRAC_PI_2;
    for turn in [
        Quat::IDENTITY,
        Quat::from_rotation_x(half),
        Quat::from_rotation_x(2.0 * half),
        Quat::from_rotation_x(-half),
        Quat::from_rotation_z(half),
        Quat::from_rotation_z(-half),
    ] {
        let mut splats = world.splats.clone();
        splats.turn(Mat3::from_quat(turn));
        let found = survey_of(&splats, &Options::default()).expect("a way");
        let back = turn.inverse() * found.rotation.inverse();
        let off_deg = (back * Vec3::Y).angle_between(Vec3::Y).to_degrees();
        assert!(off_deg < 0.3, "{turn}: {off_deg} degrees, {}", found.up);
        assert!(found.route.length_m > 12.0, "{}", found.route.length_m);
        let points: Vec<_> = found.route.points.iter().map(|p| p.as_dvec3()).collect();
        let curve = Spline::new(&points, false).expect("a way");
        for (i, height) in found.heights_m.iter().enumerate() {
            let u = (i as f64 * survey::FLOOR_EVERY_M / curve.length()).min(1.0);
            let p = curve.at(u).as_vec3();
            let p = back * Vec3::new(p.x, *height, p.z);
            // A hand from an edge of a stair either of the two is right.
            let off_m = [-0.1, 0.0, 0.1]
                .map(|by| (p.y - stairs_floor(p.x + by)).abs())
                .into_iter()
                .fold(f32::INFINITY, f32::min);
            // The walker's floor is a slope over stairs: half a stair.
            let is_stairs = (5.5..9.9).contains(&p.x);
            assert!(
                off_m < if is_stairs { 0.09 } else { 0.02 },
                "{off_m} m at {p}"
            );
        }
    }
}

/// More surface than memory: cells become larger until there are few enough.
#[test]
fn cells_of_a_scan_that_is_far_too_large_are_larger() {
    let world = World::storeys(30, 50.0, 3.0);
    let cells = voxels(&world.splats);
    eprintln!("{} cells of {} m", cells.count(), cells.cell_m());
    assert!(cells.cell_m() > 1.5 * voxels::CELL_M, "{}", cells.cell_m());
    assert!((1_000_000..60_000_000).contains(&cells.count()));
    let ground = cells.ground(Vec3::new(20.0, 32.0, 20.0)).expect("a floor");
    assert!((ground - 30.0).abs() < 0.05, "{ground}");
}

/// Streets between houses that are higher than the street is wide, and a place.
#[test]
fn large_places_are_walked_across() {
    for (length_m, width_m, least_m) in [(100.0, 9.0, 90.0), (40.0, 50.0, 30.0)] {
        let world = World::place(length_m, width_m);
        let start = Instant::now();
        let found = survey_of(&world.splats, &Options::default()).expect("a way");
        let worst_m = found.heights_m.iter().map(|m| m.abs()).fold(0.0, f32::max);
        eprintln!(
            "{length_m} by {width_m} m: cells of {} m, {:.0} m long, floor within {worst_m:.3} m, {:.1} s",
            found.voxels.cell_m(),
            found.route.length_m,
            start.elapsed().as_secs_f64()
        );
        assert!(found.up.distance(Vec3::Y) < 2e-3, "{}", found.up);
        assert!(found.route.length_m > least_m, "{}", found.route.length_m);
        assert!(worst_m < 0.03, "{worst_m}");
        assert_eq!(found.ceiling_m, None);
    }
}

#[test]
fn a_way_goes_through_the_points_that_are_given() {
    let world = World::passage();
    let through = vec![
        Vec3::new(13.0, 0.25, 3.2),
        Vec3::new(9.6, 0.25, 3.4),
        Vec3::new(1.0, 0.1, 0.7),
    ];
    let options = Options {
        up: Some(Vec3::Y),
        through: through.clone(),
        ..Options::default()
    };
    let found = survey_of(&world.splats, &options).expect("a way");
    let points: Vec<_> = found.route.points.iter().map(|p| p.as_dvec3()).collect();
    let curve = Spline::new(&points, false).expect("a way");
    for p in &through {
        let near = (0..=1000)
            .map(|i| curve.at(i as f64 / 1000.0).as_vec3().distance(*p))
            .fold(f32::INFINITY, f32::min);
        assert!(near < 0.5, "{p} is passed at {near} m");
    }
    assert!(found.route.clearance_m >= survey::CLEARANCE_M);
    let nowhere = Options {
        through: vec![through[0], Vec3::new(30.0, 0.0, 0.0)],
        ..options.clone()
    };
    let error = survey_of(&world.splats, &nowhere).expect_err("no floor there");
    assert!(error.to_string().contains("30.00,0.00,0.00"), "{error}");
    let wide = Options {
        clearance_m: 0.9,
        ..options
    };
    let error = survey_of(&world.splats, &wide).expect_err("the passage is 1.4 m wide");
    assert!(error.to_string().contains("--clearance"), "{error}");
}

/// Scans that no program means to write: each ends in a second or two of a release build, with a way or a reason.
#[test]
fn scans_that_are_none_end_soon() {
    let flat = Vec3::new(0.05, 0.05, 0.005);
    let many = |place: &dyn Fn(f32) -> Vec3| {
        let mut world = World::default();
        for i in 0..50_000 {
            world.splat(place(i as f32), flat, Quat::IDENTITY, 0.9, RED);
        }
        world.splats
    };
    let mut clear = World::passage().splats;
    clear.opacities.fill(0.003);
    for (name, splats) in [
        ("one place", many(&|_| Vec3::ONE)),
        ("an upright line", many(&|i| Vec3::Y * i * 1e-4)),
        ("a level line", many(&|i| Vec3::X * i * 1e-3)),
        (
            "without end",
            many(&|i| Vec3::new(i.sin(), (1.7 * i).sin(), i.cos()) * i.powi(6)),
        ),
        ("clear", clear),
    ] {
        for up in [None, Some(Vec3::Y)] {
            let start = Instant::now();
            let options = Options {
                up,
                ..Options::default()
            };
            let error = survey_of(&splats, &options).expect_err(name).to_string();
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("{name}: {seconds:.2} s, {error}");
            assert!(seconds < 30.0, "{name}: {seconds} s");
        }
    }
    // Floaters beyond the horizon and a million of one splat change nothing of a place that is there.
    let mut world = World::passage();
    for i in 0..1000 {
        let i = i as f32;
        let p = Vec3::new(i.sin(), (1.7 * i).sin(), i.cos()) * 1e7 * i;
        world.splat(p, Vec3::splat(i + 0.1), Quat::IDENTITY, 0.9, RED);
    }
    for _ in 0..300_000 {
        world.splat(Vec3::new(2.0, 1.0, 0.05), flat, Quat::IDENTITY, 0.9, RED);
    }
    let found = survey_of(&world.splats, &Options::default()).expect("a way");
    assert!(found.up.distance(Vec3::Y) < 2e-3, "{}", found.up);
    assert!(found.route.length_m > 8.0, "{}", found.route.length_m);
    let ceiling_m = found.ceiling_m.expect("a ceiling");
    assert!((2.2..2.9).contains(&ceiling_m), "{ceiling_m}");
}

#[test]
fn what_has_no_floor_says_so() {
    let empty = survey_of(&Splats::default(), &Options::default());
    assert_eq!(empty.err(), Some(Failure::Empty));
    let mut ball = World::default();
    ball.floaters(Vec3::ZERO, Vec3::ONE, 3000, 0.9);
    let up = Options {
        up: Some(Vec3::Y),
        ..Options::default()
    };
    let error = survey_of(&ball.splats, &up).expect_err("a ball of dust");
    assert!(
        error.to_string().contains("floor") || error.to_string().contains("way"),
        "{error}"
    );
}

/// A flat of many rooms, as it was scanned: z up in the file.
#[test]
fn a_real_flat_is_walked_through() {
    let Some(path) = given::data("scenes/lacadiere/lod-meta.json") else {
        return;
    };
    let level = std::env::var("SURVEY_LEVEL").map_or(3, |v| v.parse().expect("a level"));
    let options = splatstage::formats::LoadOptions {
        level: Some(level),
        ..Default::default()
    };
    let loaded = splatstage::formats::load(&path, &options, &|_| ()).expect("the scan loads");
    let start = Instant::now();
    let found = survey_of(&loaded.splats, &Options::default()).expect("a way");
    let apart = least_distance(
        &loaded.splats,
        found.rotation,
        &found.route.points,
        &found.heights_m,
        survey::FLOOR_EVERY_M,
    );
    let mut visited = found.route.rooms.clone();
    visited.sort_unstable();
    visited.dedup();
    eprintln!(
        "level {level}: up {}, {:.1} m through rooms {:?}, clear {:.3} m, centres {apart:.3} m, {:.1} s",
        found.up,
        found.route.length_m,
        found.route.rooms,
        found.route.clearance_m,
        start.elapsed().as_secs_f64()
    );
    assert!(found.up.distance(Vec3::NEG_Z) < 0.03, "{}", found.up);
    assert!(found.route.length_m >= 15.0 && visited.len() >= 3);
    assert!(apart > 0.2, "{apart}");
    // Its floors are level: within a room, thresholds aside, the heights of the way differ by less than
    // 2 cm, and none is a step.
    let points: Vec<_> = found.route.points.iter().map(|p| p.as_dvec3()).collect();
    let curve = Spline::new(&points, false).expect("a way");
    let mut spans: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
    for (i, height) in found.heights_m.iter().enumerate() {
        let room_at = |metres: f64| {
            let u = (metres / curve.length()).clamp(0.0, 1.0);
            let spot = found.floor.under(curve.at(u).as_vec3());
            spot.map(|spot| found.rooms.of_spot[spot as usize])
        };
        let metres = i as f64 * survey::FLOOR_EVERY_M;
        let around = [metres - 0.5, metres, metres + 0.5].map(room_at);
        if let [Some(a), Some(b), Some(c)] = around
            && a == b
            && b == c
        {
            spans.entry(b).or_default().push(*height);
        }
    }
    for (room, heights) in &spans {
        let low = heights.iter().copied().fold(f32::INFINITY, f32::min);
        let high = heights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        eprintln!(
            "room {room}: {low:.3} to {high:.3} m at {} places",
            heights.len()
        );
        assert!(high - low < 0.02, "room {room}: {low} to {high}");
    }
    assert!(spans.len() >= 3, "{spans:?}");
    for pair in found.heights_m.windows(2) {
        assert!((pair[1] - pair[0]).abs() < 0.04, "{pair:?}");
    }
    // What carries there, seen apart from the survey: in the middle of half of the strongest layers, by the
    // centres of what lies level.
    let mut near = 0;
    for (i, height) in found.heights_m.iter().enumerate() {
        let u = (i as f64 * survey::FLOOR_EVERY_M / curve.length()).min(1.0);
        let p = curve.at(u).as_vec3();
        let mut layers = [0.0_f32; 12];
        for k in 0..loaded.splats.len() {
            let q = found.rotation * loaded.splats.means[k];
            let up = q.y - height + 0.3;
            if (q.x - p.x).hypot(q.z - p.z) < 0.3 && (0.0..0.6).contains(&up) {
                layers[(up / 0.05) as usize] += loaded.splats.opacities[k];
            }
        }
        let strongest = (0..12).max_by(|a, b| layers[*a].total_cmp(&layers[*b]));
        near += usize::from(strongest.is_some_and(|k| (4..8).contains(&k)));
    }
    let share = near as f32 / found.heights_m.len() as f32;
    eprintln!("the strongest layer is within 10 cm at {share:.2} of the places");
    assert!(share > 0.7, "{share}");
}

/// A square under the open sky, however the file lies: a way of many metres past lamps and benches, on the
/// ground, and not through the dust under it.
#[test]
fn a_plaza_without_a_ceiling_is_walked_across() {
    let world = World::plaza();
    for turn in [
        Quat::IDENTITY,
        // y down, and z up.
        Quat::from_rotation_x(std::f32::consts::PI),
        Quat::from_rotation_x(std::f32::consts::FRAC_PI_2) * Quat::from_rotation_y(0.6),
    ] {
        let mut splats = world.splats.clone();
        splats.turn(Mat3::from_quat(turn));
        let start = Instant::now();
        let found = survey_of(&splats, &Options::default()).expect("a way");
        // The way and its heights, in the axes of the plaza.
        let back = turn.inverse() * found.rotation.inverse();
        let points: Vec<_> = found.route.points.iter().map(|p| p.as_dvec3()).collect();
        let curve = Spline::new(&points, false).expect("a way");
        let mut worst_m = 0.0_f32;
        for (i, height) in found.heights_m.iter().enumerate() {
            let u = (i as f64 * survey::FLOOR_EVERY_M / curve.length()).min(1.0);
            let p = curve.at(u).as_vec3();
            let p = back * Vec3::new(p.x, *height, p.z);
            worst_m = worst_m.max((p.y - plaza_floor(p.x)).abs());
        }
        let survey_s = start.elapsed().as_secs_f64();
        let apart = least_distance(
            &splats,
            found.rotation,
            &found.route.points,
            &found.heights_m,
            survey::FLOOR_EVERY_M,
        );
        let off_deg = (back * Vec3::Y).angle_between(Vec3::Y).to_degrees();
        eprintln!(
            "{} splats: {:.1} m, floor within {worst_m:.3} m, clear {:.2} m, centres {apart:.2} m, up {off_deg:.2} degrees off, {:.1} s",
            splats.len(),
            found.route.length_m,
            found.route.clearance_m,
            survey_s
        );
        // The ground slopes by 2 degrees; the houses round it do not.
        assert!(off_deg < 0.3, "{off_deg}");
        assert!(found.route.length_m > 30.0, "{}", found.route.length_m);
        assert!(worst_m < 0.03, "{worst_m}");
        assert!(
            found.route.clearance_m >= survey::CLEARANCE_M && apart > 0.2,
            "{apart}"
        );
    }
}

/// What is written in `walk.json` as a list of numbers.
fn list(value: &Json) -> Vec<Option<f32>> {
    let all = value.as_array().expect("a list").iter();
    all.map(|v| v.as_f64().map(|v| v as f32)).collect()
}

/// The way of `walk.json`.
fn way_of(data: &Json) -> Spline {
    let points: Vec<_> = data["route"]
        .as_array()
        .expect("a way")
        .iter()
        .map(|p| {
            let p = list(p);
            Vec3::new(p[0].expect("x"), p[1].expect("y"), p[2].expect("z")).as_dvec3()
        })
        .collect();
    Spline::new(&points, false).expect("a way")
}

/// How far the walls of a surveyed `@alley` are from those of its plan, sorted, metres.
fn walls_off_m(data: &Json) -> Vec<f32> {
    let curve = way_of(data);
    let at = |metres: f64| curve.at((metres / curve.length()).min(1.0)).as_vec3();
    let walls = numbers(
        "local plan = require('./plan')
        for _, w in plan.street(16).walls do
            if not w.thin then row(w[1], w[2], w[3], w[4], w[5], w[6]) end
        end",
    );
    let [left, right] = ["left_m", "right_m"].map(|side| list(&data["walls"][side]));
    let cross = |a: Vec3, b: Vec3| a.x * b.z - a.z * b.x;
    // The nearest wall of the plan at the height of a body, straight to a side.
    let planned_at = |foot: Vec3, way: Vec3| {
        walls
            .iter()
            .filter(|w| w[4] < foot.y + 1.0 && w[5] > foot.y + 1.2)
            .filter_map(|w| {
                let along = Vec3::new(w[2] - w[0], 0.0, w[3] - w[1]);
                let from = Vec3::new(w[0] - foot.x, 0.0, w[1] - foot.z);
                let turn = cross(way, along);
                let (far, share) = (cross(from, along) / turn, cross(from, way) / turn);
                (far > 0.0 && (0.0..=1.0).contains(&share)).then_some(far)
            })
            .min_by(f32::total_cmp)
    };
    let mut off_m = Vec::new();
    for (i, sides) in left.iter().zip(&right).enumerate() {
        let metres = i as f64 * survey::WALLS_EVERY_M;
        let foot = at(metres);
        let ahead = curve.tangent((metres / curve.length()).min(1.0)).as_vec3();
        let to_left = Vec3::Y.cross(ahead).normalize();
        for (k, (found, way)) in [(sides.0, to_left), (sides.1, -to_left)]
            .into_iter()
            .enumerate()
        {
            let wanted = planned_at(foot, way);
            let is = &data["walls"][["left_is", "right_is"][k]][i];
            let (Some(found), Some(wanted)) = (found, wanted) else {
                // No wall is made up, and one that is there is missed only where the way is open.
                assert!(
                    wanted.is_none_or(|m| m > 6.0) || is == "opening",
                    "{metres} m: {is} {wanted:?}"
                );
                continue;
            };
            let off = (found - wanted).abs();
            if off > 0.03 {
                eprintln!("{metres} m: {found} for {wanted}, {is}, at {foot}");
            }
            off_m.push(off);
        }
    }
    off_m.sort_by(f32::total_cmp);
    off_m
}

/// The built-in passage, through the command: against its plan, which the survey never sees.
#[test]
fn the_alley_is_surveyed_as_it_was_planned() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("walk");
    let out = out.to_str().expect("text");
    let (code, report, errors) = run(&["survey", "@alley", "-o", out, "--json"]);
    assert_eq!(code, 0, "{errors}");
    let length_m = report["length_m"].as_f64().expect("metres");
    assert!(length_m > 55.0, "{report}");
    // The passage is made again, not written.
    assert_eq!(report["scan"]["scene"], "@alley");
    assert!(!Path::new(out).join("scan.sog").exists());
    let (code, trace, errors) = run(&["trace", out, "--json", "--to", "2", "--step", "0.5"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(trace["frames"].as_array().map_or(0, Vec::len), 4);
    let data = saved(Path::new(out));
    let curve = way_of(&data);
    let at = |metres: f64| curve.at((metres / curve.length()).min(1.0)).as_vec3();
    let heights = list(&data["floor"]["heights_m"]);
    let asked: String = (0..heights.len())
        .map(|i| {
            let p = at(i as f64 * survey::FLOOR_EVERY_M);
            format!("row(plan.floor({}, {}))\n", p.x, p.z)
        })
        .collect();
    let planned = numbers(&format!("local plan = require('./plan')\n{asked}"));
    let worst_m = heights
        .iter()
        .zip(&planned)
        .map(|(found, planned)| (found.expect("a height") - planned[0]).abs())
        .fold(0.0, f32::max);
    let off_m = walls_off_m(&data);
    let near = off_m.iter().filter(|m| **m < 0.03).count();
    eprintln!(
        "{length_m:.1} m, floor within {worst_m:.4} m; of {} walls {near} within 3 cm, half within {:.4} m",
        off_m.len(),
        off_m[off_m.len() / 2]
    );
    assert!(worst_m < 0.01, "{worst_m}");
    assert!(
        off_m.len() > 250 && off_m[off_m.len() / 2] < 0.005,
        "{off_m:?}"
    );
    assert_eq!(near, off_m.len(), "walls within 3 cm");
    // What the script is asked for is passed on.
    let (code, _, errors) = run(&["survey", "@alley", "-o", out, "--force", "--arg", "count=0"]);
    assert!(code == 1 && errors.contains("count"), "{code}: {errors}");
}

/// Other seeds lay other splats on the same plan, and the way runs otherwise: steps between houses, pipes, signs
/// on walls and shop windows are met elsewhere.
#[test]
fn walls_of_other_alleys_are_as_planned_too() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 1..=6 {
        let out = folder.path().join(seed.to_string());
        let out = out.to_str().expect("text");
        let seed = format!("seed={seed}");
        let (code, _, errors) = run(&["survey", "@alley", "-o", out, "--json", "--arg", &seed]);
        assert_eq!(code, 0, "{errors}");
        let off_m = walls_off_m(&saved(Path::new(out)));
        let near = off_m.iter().filter(|m| **m < 0.03).count();
        eprintln!("{seed}: of {} walls {near} within 3 cm", off_m.len());
        assert!(off_m.len() > 250, "{seed}: {}", off_m.len());
        assert_eq!(near, off_m.len(), "{seed}: walls within 3 cm");
    }
}

/// What another program wrote and what this one writes: the same cells.
#[test]
fn collision_voxels_go_out_and_come_back() {
    let world = World::passage();
    let cells = voxels(&world.splats);
    for (turn, scale) in [
        (Quat::IDENTITY, 1.0),
        (Quat::from_rotation_x(std::f32::consts::FRAC_PI_2), 2.0),
        (Quat::from_rotation_z(0.01), 1.0),
    ] {
        let made = Collision::of(&cells, turn, scale).expect("something is solid");
        let (description, tree) = made.encode().expect("few nodes");
        let read = Collision::decode(&description, &tree).expect("reads");
        assert_eq!(made, read);
        let solid: Vec<_> = cells.matter().filter(|m| m.opacity >= 0.5).collect();
        assert!(read.count() >= solid.len() as u64 && solid.len() > 10_000);
        for matter in &solid {
            let middle = (matter.at.as_vec3() + 0.5) * cells.cell_m();
            let place = turn.inverse() * middle / scale;
            assert_eq!(read.is_solid(place), Some(true), "{place}");
        }
        // In the air of a room nothing is.
        let air = turn.inverse() * Vec3::new(2.5, 1.5, 2.0) / scale;
        assert_eq!(read.is_solid(air), Some(false));
    }
    // Written by hand, in the axes of the file: a solid block of four cells, and beside it, on x, one cell.
    let text = |version: &str, nodes: usize| {
        format!(
            r#"{{"version":"{version}","gridBounds":{{"min":[0,0,0],"max":[0.8,0.4,0.4]}},"voxelResolution":0.1,
            "leafSize":4,"treeDepth":1,"nodeCount":{nodes},"leafDataCount":2}}"#
        )
    };
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let tree = words(&[0x0300_0001, 0xff00_0000, 0, 1 << 5, 0]);
    let read = Collision::decode(text("1.0", 3).as_bytes(), &tree).expect("reads");
    assert_eq!(read.count(), 65);
    // The file is y down: its y and z are turned.
    for (place, wanted) in [
        (Vec3::new(0.05, -0.05, -0.05), Some(true)),
        (Vec3::new(0.55, -0.15, -0.05), Some(true)),
        (Vec3::new(0.45, -0.15, -0.05), Some(false)),
        (Vec3::new(0.05, 0.05, -0.05), None),
    ] {
        assert_eq!(read.is_solid(place), wanted, "{place}");
    }
    let engine = Collision::decode(text("1.1", 3).as_bytes(), &tree).expect("reads");
    assert_eq!(engine.is_solid(Vec3::new(-0.55, 0.15, -0.05)), Some(true));
    // Hostile trees end in words.
    let refused = |version: &str, nodes: usize, tree: &[u32], said: &str| {
        let error = Collision::decode(text(version, nodes).as_bytes(), &words(tree));
        let error = error.expect_err(said).to_string();
        assert!(error.contains(said), "{error}: {said}");
    };
    refused("2.0", 1, &[0, 0, 0], "version 2.0");
    refused("1.1", 3, &[0, 0, 0], "not as long");
    refused("1.1", 1, &[0x0100_0000, 0, 0], "child is not there");
    refused("1.1", 1, &[0x0100_0009, 0, 0], "child is not there");
    refused("1.1", 2, &[0x0100_0001, 0x0100_0002, 0, 0], "deeper");
    refused("1.1", 2, &[0x0300_0001, 0, 0, 0], "child is not there");
    refused("1.1", 2, &[0x0100_0001, 5, 0, 0], "no cells");
    refused("1.1", 1, &[0, 0, 0], "not at the bottom");
    let deep = text("1.1", 1).replace(r#""treeDepth":1"#, r#""treeDepth":16"#);
    let error = Collision::decode(deep.as_bytes(), &words(&[0xff00_0000, 0, 0]));
    assert!(error.expect_err("huge").to_string().contains("too many"));
    for broken in ["", "[]", "{", &text("1.1", 1).replace("0.1", "-1")] {
        assert!(Collision::decode(broken.as_bytes(), &[]).is_err());
    }
}

/// A scan that ships its collision voxels is walked by them: what they leave out is in nobody's way.
#[test]
fn the_command_writes_collision_voxels_and_reads_those_that_are_there() {
    let (folder, scan) = passage_file();
    let out = folder.path().join("walk");
    let [scan_text, out_text] = [&scan, &out].map(|p| p.to_str().expect("text"));
    let (code, report, errors) = run(&["survey", scan_text, "-o", out_text, "--json"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(report["collision"]["read"], Json::Null);
    assert_eq!(report["collision"]["written"], "scan.voxel.json");
    let [description, tree] =
        ["json", "bin"].map(|e| std::fs::read(out.join(format!("scan.voxel.{e}"))).expect("reads"));
    let collision = Collision::decode(&description, &tree).expect("it is fine");
    assert!(collision.count() > 10_000);
    // The same scan with dust in the way of the passage, and the voxels of the one without it beside it.
    let mut world = World::passage();
    world.floaters(
        Vec3::new(6.0, 0.6, 1.3),
        Vec3::new(6.4, 1.6, 2.7),
        4000,
        0.9,
    );
    let dusty = folder.path().join("dusty.ply");
    splatstage::formats::save(&world.splats, &dusty, &|_| ()).expect("writes");
    let dusty_text = dusty.to_str().expect("text");
    let survey = |name: &str| {
        let out = folder.path().join(name);
        run(&[
            "survey",
            dusty_text,
            "-o",
            out.to_str().expect("text"),
            "--json",
        ])
    };
    let (_, blocked, _) = survey("blocked");
    assert!(
        blocked["length_m"].as_f64().unwrap_or(0.0) < 8.0,
        "{blocked}"
    );
    for (ending, bytes) in [("json", &description), ("bin", &tree)] {
        std::fs::write(folder.path().join(format!("dusty.voxel.{ending}")), bytes).expect("writes");
    }
    let (code, free, errors) = survey("free");
    assert_eq!(code, 0, "{errors}");
    assert_eq!(free["collision"]["read"], "dusty.voxel.json");
    assert!(free["length_m"].as_f64() > Some(8.0), "{free}");
    std::fs::write(folder.path().join("dusty.voxel.bin"), [0; 7]).expect("writes");
    let (code, _, errors) = survey("broken");
    assert!(code == 1 && errors.contains("dusty.voxel.bin"), "{errors}");
}

/// A folder with the passage as a PLY file.
fn passage_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("passage.ply");
    let world = World::passage();
    splatstage::formats::save(&world.splats, &path, &|_| ()).expect("writes");
    (folder, path)
}

fn run(args: &[&str]) -> (i32, Json, String) {
    let output = splatstage(args).output().expect("the program starts");
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Json::Null);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), json, errors)
}

#[test]
fn the_command_writes_a_scene_that_plays_and_keeps_what_is_there() {
    let (folder, scan) = passage_file();
    let (scan, out) = (scan.to_str().expect("text"), folder.path().join("walk"));
    let out_text = out.to_str().expect("text");
    let (code, report, errors) = run(&["survey", scan, "-o", out_text, "--json"]);
    assert_eq!(code, 0, "{errors}");
    assert!(report["length_m"].as_f64() > Some(8.0), "{report}");
    assert!(report["clearance_m"].as_f64() >= Some(0.3), "{report}");
    assert_eq!(report["scan"]["file"], "scan.ply");
    assert_eq!(report["scan"]["how"], "a hard link to the file");
    assert!(report["timings_s"]["voxels"].is_number(), "{report}");
    // It plays: the eyes stay at their height over the floor.
    let (code, trace, errors) = run(&["trace", out_text, "--json", "--step", "0.5"]);
    assert_eq!(code, 0, "{errors}");
    let frames = trace["frames"].as_array().expect("frames");
    assert!(frames.len() > 20);
    let mut crossed = false;
    for frame in frames {
        let p = &frame["camera"]["position"];
        let [x, y] = [0, 1].map(|i| p[i].as_f64().expect("a number") as f32);
        crossed |= (x - 7.0).abs() < 0.6;
        if (x - 7.0).abs() > 1.6 {
            let eye = y - passage_floor(x);
            assert!((eye - 1.58).abs() < 0.08, "{eye} at {p}");
        }
    }
    assert!(crossed, "the way goes through the passage");
    // Four times as large it is said to be no room's height.
    assert!(report["hint"].is_null(), "{report}");
    let large = folder.path().join("large");
    let large = large.to_str().expect("text");
    let (code, large, errors) = run(&["survey", scan, "-o", large, "--scale", "4", "--json"]);
    assert_eq!(code, 0, "{errors}");
    let hint = large["hint"].as_str().expect("a hint");
    assert!(
        hint.contains("10.") && hint.contains("--scale 0.9"),
        "{hint}"
    );
    // What an author may have edited is not written over.
    let scene = out.join("scene.luau");
    std::fs::write(&scene, "-- mine").expect("writes");
    let (code, _, errors) = run(&["survey", scan, "-o", out_text]);
    assert!(code == 1 && errors.contains("--force"), "{code}: {errors}");
    assert_eq!(std::fs::read_to_string(&scene).expect("reads"), "-- mine");
    let (code, ..) = run(&["survey", scan, "-o", out_text, "--force"]);
    assert_eq!(code, 0);
    assert!(
        std::fs::read_to_string(&scene)
            .expect("reads")
            .contains("walker")
    );
    // The same again, from the scene that was written: its file is found. A scene that draws more than a file
    // is put together anew.
    let again = folder.path().join("again");
    let again = again.to_str().expect("text");
    let (code, second, errors) = run(&["survey", out_text, "-o", again, "--json"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(second["scan"]["how"], "a hard link to the file");
    let twice = folder.path().join("twice");
    std::fs::create_dir(&twice).expect("makes");
    std::fs::copy(out.join("scan.ply"), twice.join("scan.ply")).expect("copies");
    let text = "local a, b = stage.splats('scan.ply'), stage.splats('scan.ply')
        b.tint = { 1, 0.5, 0.5 }
        return {}";
    std::fs::write(twice.join("scene.luau"), text).expect("writes");
    let third = folder.path().join("third");
    let [twice, third] = [&twice, &third].map(|p| p.to_str().expect("text"));
    let (code, third, errors) = run(&["survey", twice, "-o", third, "--json"]);
    assert_eq!(code, 0, "{errors}");
    assert_eq!(third["scan"]["how"], "written anew");
    let lengths = [&report, &second, &third].map(|r| r["length_m"].as_f64().expect("metres"));
    for length in lengths {
        assert!((length - lengths[0]).abs() < 0.5, "{lengths:?}");
    }
}

#[test]
fn the_command_refuses_what_it_cannot_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dust.ply");
    let mut dust = World::default();
    dust.floaters(Vec3::ZERO, Vec3::ONE, 500, 0.3);
    splatstage::formats::save(&dust.splats, &path, &|_| ()).expect("writes");
    let out = folder.path().join("walk");
    let [scan, out_text] = [&path, &out].map(|p| p.to_str().expect("text"));
    let (code, _, errors) = run(&["survey", scan, "-o", out_text]);
    assert!(code == 1 && errors.contains("--up"), "{code}: {errors}");
    assert!(!out.exists(), "nothing is left behind");
    for (flags, said) in [
        (&["--to", "1,0,0"][..], "--from"),
        (&["--from", "0,0,0", "--via", "1,0,0"], "--to"),
        (&["--up", "w"], "expected x"),
        (&["--clearance", "9"], "expected metres"),
    ] {
        let mut args = vec!["survey", scan, "-o", out_text];
        args.extend(flags);
        let (code, _, errors) = run(&args);
        assert!(
            code == 2 && errors.contains(said),
            "{flags:?} {code}: {errors}"
        );
    }
}

/// A surveyed scene in a session, as the window plays it.
fn live_session(folder: &Path) -> Session {
    let options = SceneOptions {
        scene: folder.to_str().expect("text").to_owned(),
        ..SceneOptions::default()
    };
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    Session::open(options, cache, true).expect("opens")
}

fn event(kind: &str, name: &str, values: &[f64]) -> Event {
    Event {
        kind: kind.into(),
        name: name.into(),
        values: values.to_vec(),
        target: None,
        row: None,
    }
}

fn saved(folder: &Path) -> Json {
    let bytes = std::fs::read(folder.join("walk.json")).expect("reads");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn clicks_lay_a_way_that_is_saved_and_baked_again() {
    let (folder, scan) = passage_file();
    let out = folder.path().join("walk");
    let args = [
        "survey",
        scan.to_str().expect("text"),
        "-o",
        out.to_str().expect("text"),
    ];
    let (code, _, errors) = run(&args);
    assert_eq!(code, 0, "{errors}");
    let mut session = live_session(&out);
    let input = Input {
        aspect: 1.0,
        ..Input::default()
    };
    session.reload(0.0, &input).expect("plays");
    let found = saved(&out);
    let count = |data: &Json, what: &str| data[what].as_array().map_or(0, Vec::len);
    session.event(&event("key", "b", &[])).expect("laying");
    let laying = session.frame(0.1, &input).expect("a picture");
    let eye = laying.camera.position;
    // Everything anew: two waypoints on the floor before the eyes, and something to look at.
    session.event(&event("key", "n", &[])).expect("anew");
    assert_eq!(count(&saved(&out), "route"), 0);
    let reload = |session: &mut Session, t_s: f64| {
        session.reload(t_s, &input).expect("plays");
        session.frame(t_s + 0.1, &input).expect("a picture")
    };
    let again = reload(&mut session, 0.2);
    assert!(again.camera.position.distance(eye) < 0.05, "laying goes on");
    for (i, pointer) in [[0.0, -0.9], [0.0, -0.35]].iter().enumerate() {
        session
            .event(&event("click", "mouse_left", pointer))
            .expect("a click");
        let data = saved(&out);
        assert_eq!(count(&data, "route"), i + 1);
        let p = &data["route"][i];
        let [x, y] = [0, 1].map(|k| p[k].as_f64().expect("a number") as f32);
        assert!((y - passage_floor(x)).abs() < 0.02, "{p}");
        reload(&mut session, 1.0 + i as f64);
    }
    session
        .event(&event("click", "mouse_right", &[0.2, 0.0]))
        .expect("a look");
    assert_eq!(count(&saved(&out), "looks"), 1);
    assert!(saved(&out)["floor"].is_null() && !found["floor"].is_null());
    reload(&mut session, 4.0);
    assert!(session.duration_s() > Some(5.0), "a short walk");
    session
        .event(&event("key", "backspace", &[]))
        .expect("back");
    assert_eq!(count(&saved(&out), "route"), 1);
    // One waypoint is no way yet, and still plays.
    reload(&mut session, 5.0);
}

#[test]
fn data_is_read_and_saved_only_where_it_may_be() {
    let scene = r#"
        local data = stage.data("d.json")
        log.info(data.a[2] .. " " .. tostring(pcall(function() data.a = 1 end)))
        for _, bad in { "none.json", "../d.json", "broken.json" } do
            log.info(select(2, pcall(stage.data, bad)))
        end
        log.info(select(2, pcall(stage.save, "d.json", {})))
        return { event = function(e)
            log.info(select(2, pcall(stage.save, e.name, { 1 })))
            log.info(select(2, pcall(stage.data, "d.json")))
        end }
    "#;
    let files = [
        ("scene.luau", scene),
        ("d.json", r#"{"a": [1, "two"]}"#),
        ("broken.json", "{"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()));
    let (mut script, lines) = load_files(files.into(), Arc::new(Nothing), Json::Null, None);
    script.event(&event("key", "d.json", &[])).expect("runs");
    script.event(&event("key", "d.luau", &[])).expect("runs");
    let lines: Vec<String> = lines.take().into_iter().map(|(_, text)| text).collect();
    for (line, said) in lines.iter().zip([
        "two false",
        "not found",
        "leads outside",
        "EOF",
        "not while it loads",
        "only a scene that plays from a folder",
        "works in the file's body",
        "must end in .json",
    ]) {
        assert!(line.contains(said), "{line}: {said}");
    }
    assert_eq!(lines.len(), 9);
}

/// The viewer's walker: comes down to the floor, goes as far as the wall lets it, and no further.
#[test]
fn a_person_walks_on_the_floor_and_out_of_walls() {
    let (_folder, scan) = passage_file();
    let options = SceneOptions {
        scene: scan.to_str().expect("text").to_owned(),
        camera: CameraOptions {
            eye: Some([2.5, 2.0, 2.6]),
            target: Some([3.5, 2.0, 2.6]),
            ..CameraOptions::default()
        },
        ..SceneOptions::default()
    };
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    let mut session = Session::open(options, cache, false).expect("opens");
    let still = Input {
        aspect: 1.0,
        ..Input::default()
    };
    session.reload(0.0, &still).expect("plays");
    session.event(&event("key", "g", &[])).expect("walks");
    let at_rest = session
        .frame(1.0, &still)
        .expect("a picture")
        .camera
        .position;
    assert!((at_rest.y - 1.68).abs() < 0.02, "{at_rest}");
    // Towards +x, past the corner of the wall at x = 5, z = 2.7.
    let ahead = Input {
        held: vec!["w".into()],
        ..still.clone()
    };
    let mut t_s = 1.0;
    let mut last = at_rest;
    for _ in 0..200 {
        t_s += 0.1;
        let p = session
            .frame(t_s, &ahead)
            .expect("a picture")
            .camera
            .position;
        let in_room = p.x < 4.8 && (0.2..3.8).contains(&p.z);
        let in_passage = p.x >= 4.7 && (1.5..2.5).contains(&p.z);
        let behind = p.x > 9.2 && (0.2..3.8).contains(&p.z) && p.x < 13.8;
        assert!(in_room || in_passage || behind, "{p}");
        assert!(p.distance(last) < 0.2, "{last} {p}");
        last = p;
    }
    assert!(last.x > 3.5, "{last}");
    assert!(
        (last.y - 1.58 - passage_floor(last.x)).abs() < 0.03,
        "{last}"
    );
    // With z free: into the passage and up the step.
    let stick = Input {
        stick: glam::Vec2::new(0.0, 1.0),
        ..still.clone()
    };
    let aside = Input {
        held: vec!["a".into()],
        ..still.clone()
    };
    for _ in 0..5 {
        t_s += 0.1;
        session.frame(t_s, &aside).expect("a picture");
    }
    for _ in 0..100 {
        t_s += 0.1;
        last = session
            .frame(t_s, &stick)
            .expect("a picture")
            .camera
            .position;
    }
    assert!(last.x > 9.0, "{last}");
    assert!((last.y - 1.58 - 0.25).abs() < 0.03, "{last}");
}
