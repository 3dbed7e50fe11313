//! The survey: cells over splats and what is asked of them, floors, walls, ways, the command and the
//! scene that it writes.

mod world;

use crate::given;
use crate::mind::{Nothing, load_files};
use glam::{Quat, Vec3};
use serde_json::Value as Json;
use splatstage::scene::{Placement, Splats};
use splatstage::survey::{Placed, Voxels, voxels};
use std::sync::Arc;
use std::time::Instant;
use world::World;

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
