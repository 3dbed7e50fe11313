//! The built-in passage `@alley`: what it promises to those who film it, and the sheets it is made of.
//!
//! Pictures are for people to look at; here are counts, the walk at 240 Hz, and the truth of the plan
//! (ground, walls) against the centres of the splats.

use crate::mind::{Lines, Nothing, load_files};
use glam::{Vec2, Vec3};
use serde_json::{Value as Json, json};
use splatstage::frame::Frame;
use splatstage::scene::{Splats, sh};
use splatstage::script::Script;
use std::sync::Arc;
use std::time::Instant;

const PLAN: &str = include_str!("../../scenes/alley/plan.luau");
const SCENE: &str = include_str!("../../scenes/alley/scene.luau");
const SOUNDS: &str = include_str!("../../scenes/alley/sounds.luau");
/// Samples a second.
const RATE_HZ: f64 = 240.0;
/// Splats of the tests that need few.
const FEW: usize = 20_000;

fn load(scene: &str, args: Json) -> (Script, Lines) {
    let files = [
        ("scene.luau", scene),
        ("plan.luau", PLAN),
        ("sounds.luau", SOUNDS),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    load_files(files.into(), Arc::new(Nothing), args, None)
}

fn alley(args: Json) -> Script {
    load(SCENE, args).0
}

fn splats(script: &mut Script) -> Arc<Splats> {
    let frame = script.frame(0.0).expect("a picture");
    assert_eq!(frame.draws.len(), 1);
    frame.draws[0].splats.clone()
}

/// The rows of numbers that a script's body puts into `rows`.
pub fn numbers(body: &str) -> Vec<Vec<f32>> {
    let scene = format!(
        "local rows = {{}}
         local function row(...) table.insert(rows, table.concat({{ ... }}, ' ')) end
         {body}
         return {{ frame = function() return {{ draws = {{}}, state = table.concat(rows, ';') }} end }}"
    );
    let frame = load(&scene, Json::Null).0.frame(0.0).expect("a picture");
    let parse = |row: &str| {
        row.split(' ')
            .map(|n| n.parse().expect("a number"))
            .collect()
    };
    let text = frame.state.expect("rows");
    text.split(';').map(parse).collect()
}

#[test]
fn it_has_as_many_splats_as_asked_for() {
    let start = Instant::now();
    let mut script = alley(Json::Null);
    eprintln!("loaded in {:.2} s", start.elapsed().as_secs_f64());
    assert_eq!(splats(&mut script).len(), 300_000);
    for count in [1, 777, 123_457] {
        let made = splats(&mut alley(json!({ "count": count })));
        assert_eq!(made.len(), count);
        made.check_lengths().unwrap();
        assert_eq!(made.count_non_finite(), 0);
        assert_eq!(made.sh_degree, 3);
    }
}

#[test]
fn a_seed_is_a_passage() {
    let made = |seed: u64| splats(&mut alley(json!({ "count": FEW, "seed": seed })));
    let (first, again, other) = (made(4), made(4), made(5));
    assert!(*first == *again, "the same seed gives the same splats");
    assert!(first.means != other.means, "another seed gives others");
}

/// Difference of two angles in degrees, the short way.
fn turned_deg(a: f64, b: f64) -> f64 {
    ((a - b + 540.0).rem_euclid(360.0) - 180.0).abs()
}

#[test]
fn nothing_jumps_or_touches_on_the_whole_walk() {
    let mut script = alley(json!({ "count": FEW }));
    let end_s = script.duration_s().expect("it ends");
    assert!((67.0..69.0).contains(&end_s), "{end_s} s");
    let mut before: Option<Frame> = None;
    let (mut nearest_m, mut fastest_deg_s, mut quickest_deg) = (f64::MAX, 0.0_f64, 0.0_f64);
    let mut slowest_ms = 0.0_f64;
    let start = Instant::now();
    let count = (end_s * RATE_HZ) as u32;
    for k in 0..count {
        let frame_start = Instant::now();
        let frame = script.frame(f64::from(k) / RATE_HZ).expect("a picture");
        slowest_ms = slowest_ms.max(frame_start.elapsed().as_secs_f64() * 1e3);
        let walker = frame.walker.expect("somebody walks");
        let clearance_m = walker.clearance_m.expect("the plan knows");
        nearest_m = nearest_m.min(clearance_m);
        let height_m = f64::from(frame.camera.position.y) - walker.floor_m;
        // Bob 2.5 cm with its variety, strike, breath and hands another centimetre each.
        assert!((height_m - 1.58).abs() < 0.05, "{height_m} m at {k}");
        if let Some(old) = &before {
            let old_walker = old.walker.expect("somebody walks");
            let faster = (walker.speed_m_s - old_walker.speed_m_s).abs();
            assert!(faster <= 0.03, "{faster} m/s at {k}");
            let angles = |f: &Frame| {
                let (yaw, pitch, roll) = f.camera.rotation.to_euler(glam::EulerRot::YXZ);
                [yaw, pitch, roll].map(|a| f64::from(a).to_degrees())
            };
            for (a, b) in angles(&frame).into_iter().zip(angles(old)) {
                quickest_deg = quickest_deg.max(turned_deg(a, b));
            }
            let head_deg_s = f64::hypot(
                walker.head_yaw_rad - old_walker.head_yaw_rad,
                walker.head_pitch_rad - old_walker.head_pitch_rad,
            )
            .to_degrees()
                * RATE_HZ;
            fastest_deg_s = fastest_deg_s.max(head_deg_s);
        }
        before = Some(frame);
    }
    let mean_ms = start.elapsed().as_secs_f64() * 1e3 / f64::from(count);
    eprintln!(
        "{end_s:.1} s; nearest wall {nearest_m:.2} m; {quickest_deg:.2} degrees a sample; head \
         {fastest_deg_s:.0} degrees/s; {mean_ms:.3} ms a frame, at most {slowest_ms:.2}"
    );
    assert!(nearest_m >= 0.25, "{nearest_m} m");
    assert!(quickest_deg <= 0.5, "{quickest_deg} degrees a sample");
    assert!(fastest_deg_s <= 240.0, "{fastest_deg_s} degrees/s");
    // Four times the aim of a release build on a quiet machine.
    assert!(mean_ms < 1.0, "{mean_ms} ms");
}

#[test]
fn the_walk_is_as_long_as_the_original_and_has_its_looks() {
    let rows = numbers(
        "local plan, walker = require('./plan'), require('@stage/walker')
         local w = walker.bake({ route = plan.waypoints, looks = plan.looks() })
         row(#plan.waypoints, #plan.looks(), w.length, #w.looks)",
    );
    let [waypoints, looks, length_m, seen] = rows[0][..] else {
        panic!("four numbers");
    };
    assert_eq!((waypoints, looks, seen), (19.0, 10.0, 10.0));
    assert!((60.5..62.0).contains(&length_m), "{length_m} m");
}

#[test]
fn the_ground_is_where_the_plan_says() {
    let places = numbers(
        "local plan = require('./plan')
        for at = 0.5, plan.way.length - 0.5, 0.5 do
            for aside = -0.8, 0.8, 0.4 do
                local p = plan.way:middle(at, aside)
                row(p.x, plan.floor(p.x, p.z), p.z)
            end
        end",
    );
    let made = splats(&mut alley(json!({ "count": 300_000 })));
    // What looks up and lies low enough to be walked on.
    let ground: Vec<Vec3> = (0..made.len())
        .filter(|&i| (made.rotations[i] * Vec3::Z).y.abs() > 0.99)
        .map(|i| made.means[i])
        .filter(|p| p.y < 0.3)
        .collect();
    let mut nearest = 0;
    for place in places {
        let [x, y, z] = place[..] else {
            panic!("three numbers")
        };
        let near = ground
            .iter()
            .filter(|p| Vec2::new(p.x - x, p.z - z).length() < 0.15);
        let off: Vec<f32> = near.map(|p| (p.y - y).abs()).collect();
        assert!(!off.is_empty(), "no ground at {x}, {z}");
        nearest = nearest.max(off.len());
        // Feet of pots and bollards are flat as well.
        let on = off.iter().filter(|d| **d < 0.01).count();
        assert!(
            on * 10 >= off.len() * 9,
            "{on} of {} at {x}, {z}",
            off.len()
        );
    }
    assert!(nearest > 5, "{nearest}");
}

#[test]
fn walls_are_where_the_plan_says() {
    let walls = numbers(
        "local plan = require('./plan')
        for _, w in plan.street(16).walls do
            if not w.thin then row(w[1], w[2], w[3], w[4], w[5], w[6]) end
        end",
    );
    let made = splats(&mut alley(json!({ "count": 300_000 })));
    let (mut total, mut tested) = (0, 0);
    for wall in walls {
        let [ax, az, bx, bz, low, high] = wall[..] else {
            panic!("six numbers")
        };
        let (a, b) = (Vec2::new(ax, az), Vec2::new(bx, bz));
        let (along, length) = ((b - a).normalize(), a.distance(b));
        let normal = Vec3::new(-along.y, 0.0, along.x);
        if length < 1.5 || high - low < 2.0 {
            continue;
        }
        // Splats that face as the wall does, near its plane, inside of its outline.
        let off: Vec<f32> = (0..made.len())
            .filter(|&i| (made.rotations[i] * Vec3::Z).dot(normal).abs() > 0.999)
            .filter_map(|i| {
                let p = made.means[i];
                let from = Vec2::new(p.x, p.z) - a;
                let inside = (0.1..length - 0.1).contains(&from.dot(along));
                let distance = Vec3::new(from.x, 0.0, from.y).dot(normal);
                let is_near = inside && p.y > low && p.y < high && distance.abs() < 0.08;
                is_near.then_some(distance.abs())
            })
            .collect();
        let on = off.iter().filter(|d| **d < 0.03).count();
        assert!(on > 100, "{on} splats on the wall from {a} to {b}");
        // The rest are boards and sills in front of it and shop windows behind, which are denser.
        assert!(on * 10 >= off.len() * 4, "{on} of {} from {a}", off.len());
        total += on;
        tested += 1;
    }
    assert!(
        tested > 30 && total > 60_000,
        "{tested} walls, {total} splats"
    );
}

#[test]
fn its_colours_depend_on_where_they_are_seen_from() {
    let made = splats(&mut alley(json!({ "count": FEW })));
    let along = Vec3::new(0.2, -0.2, -1.0).normalize();
    let across = Vec3::new(1.0, 0.1, -0.2).normalize();
    let change = |i: usize| {
        let seen = |d: Vec3| sh::colour(made.dc[i], made.sh_rest_of(i), d);
        (seen(along) - seen(across)).abs().max_element()
    };
    let changes: Vec<f32> = (0..made.len()).map(change).collect();
    let strong = changes.iter().filter(|c| **c > 0.08).count();
    let some = changes.iter().filter(|c| **c > 0.01).count();
    assert!(strong > FEW / 50, "{strong}");
    assert!(some > FEW / 2, "{some}");
    // All three bands take part.
    for band in [0..3, 3..8, 8..15] {
        let largest = (0..made.len())
            .flat_map(|i| &made.sh_rest_of(i)[3 * band.start..3 * band.end])
            .fold(0.0_f32, |most, c| most.max(c.abs()));
        assert!(largest > 0.02, "{band:?}: {largest}");
    }
}

#[test]
fn the_sky_is_brighter_than_white_and_the_covered_part_dark() {
    let made = splats(&mut alley(json!({ "count": 100_000 })));
    let colour = |i: usize| Vec3::splat(0.5) + sh::SH_C0 * made.dc[i];
    let sky: Vec<f32> = (0..made.len())
        .filter(|&i| made.means[i].y > 50.0)
        .map(|i| colour(i).min_element())
        .collect();
    assert!(sky.len() > 500 && sky.iter().all(|c| *c > 1.0));
    let ground = |from: f32, to: f32| {
        let on: Vec<f32> = (0..made.len())
            .filter(|&i| (made.rotations[i] * Vec3::Z).y.abs() > 0.99)
            .filter(|&i| made.means[i].y < 0.3 && (from..to).contains(&made.means[i].z))
            .map(|i| colour(i).y)
            .collect();
        on.iter().sum::<f32>() / on.len() as f32
    };
    let (open, covered) = (ground(-5.0, 0.0), ground(-38.0, -34.5));
    assert!(covered < 0.6 * open, "{covered} and {open}");
}

/// The example of `street.luau`, with a bollard.
#[test]
fn a_street_of_ones_own() {
    let scene = "local street = require('@stage/street')
         local s = street.new({ floor = function(x, z) return 0.01 * z end })
         local way = street.spine({ { x = 0, z = 0, left = 1.5, right = 2 }, { x = 0, z = -20, left = 1.5, right = 2 } })
         s:run(way, { side = 'left', from = 0, to = 20, high = 9, look = 'brick_stock',
             openings = { { at = 5, wide = 1, low = 1, high = 2.5, look = 'sash' } } })
         s:run(way, { side = 'right', from = 0, to = 20, high = 9, look = 'plaster' })
         s:ground(way, { from = 0, to = 20, look = 'paving' })
         s:bollard(0, -10)
         return {
             load = function(stage) s:build(stage.builder(0, 3), 5000, stage.seed):build() end,
             frame = function(t)
                 return { walker = { speed = 0, phase = 0, head_yaw = 0, head_pitch = 0,
                     floor = s.floor_at(0, -t), clearance = s:clearance(vector.create(0.2, 0.5, -t)) } }
             end,
         }";
    let mut script = load(scene, Json::Null).0;
    let mut at = |t_s: f64| {
        let frame = script.frame(t_s).expect("a picture");
        assert_eq!(frame.draws[0].splats.len(), 5000);
        let walker = frame.walker.expect("the truth");
        (walker.floor_m, walker.clearance_m.expect("the nearest"))
    };
    let is_near = |(floor_m, clearance_m): (f64, f64), wanted: (f64, f64)| {
        assert!((floor_m - wanted.0).abs() < 1e-5, "{floor_m} m");
        assert!((clearance_m - wanted.1).abs() < 1e-5, "{clearance_m} m");
    };
    // The wall on the left is 1.7 m away, that on the right 1.8; a bollard of 10 cm is nearer.
    is_near(at(3.0), (-0.03, 1.7));
    is_near(at(10.0), (-0.1, 0.1));
    is_near(at(11.0), (-0.11, f64::hypot(0.2, 1.0) - 0.1));
}

#[test]
fn sheets_are_checked() {
    let build = |sheet: &str| {
        format!(
            "local b = stage.builder(0, 3)
             local corners = {{ vector.zero, vector.create(1, 0, 0), vector.create(0, 1, 0), vector.one }}
             local ok, why = pcall(b.sheet, b, {sheet})
             print(if ok then b:build().count else why) return {{}}"
        )
    };
    for (sheet, part) in [
        ("{ points = corners, across = 2, count = 12 }", "12"),
        ("{ points = corners, across = 2, count = 0 }", "0"),
        (
            "{ points = corners, across = 3, count = 9 }",
            "two or more rows of 3, got 4",
        ),
        (
            "{ points = corners, across = 2, count = 1.5 }",
            "count must be a whole number",
        ),
        (
            "{ points = corners, across = 2, cuont = 1 }",
            "did you mean 'count'?",
        ),
        (
            "{ points = table.create(4, vector.zero), across = 2, count = 1 }",
            "must span a surface",
        ),
        (
            "{ points = corners, across = 2, count = 1, light = buffer.create(12), light_across = 2 }",
            "whole rows of 2 values, got 1",
        ),
        (
            "{ points = corners, across = 2, count = 1, texture = 'brick' }",
            "texture must be one of stage.texture",
        ),
        (
            "{ points = corners, across = 2, count = 1, gloss = { { direction = vector.zero, colour = vector.one } } }",
            "direction must be a direction that is not 0",
        ),
        (
            "{ points = corners, across = 2, count = 5e7 }",
            "the sheets of a scene may hold 4096 MiB",
        ),
    ] {
        let (_, lines) = load(&build(sheet), Json::Null);
        let said = lines.borrow()[0].1.clone();
        assert!(said.contains(part), "{sheet}: {said}");
    }
    for (body, part) in [
        ("stage.texture(buffer.create(12), 2)", "whole rows of 2 texels"),
        ("stage.texture('x', 2)", "a buffer of four bytes a texel"),
        ("stage.builder(0, 4)", "degree must be a whole number from 0 to 3"),
        (
            "stage.builder(0):sheet({ points = { vector.zero, vector.create(1, 0, 0), vector.create(0, 1, 0), vector.one },
               across = 2, count = 1, gloss = {} })",
            "make the builder by stage.builder(n, 3)",
        ),
    ] {
        let text = format!("local ok, why = pcall(function() {body} end) print(ok, why) return {{}}");
        let (_, lines) = load(&text, Json::Null);
        let said = lines.borrow()[0].1.clone();
        assert!(said.contains("false ") && said.contains(part), "{body}: {said}");
    }
}
