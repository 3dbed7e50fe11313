//! Bodies: skinning figures that were published, the deform stage against its twin, posed and edited
//! pictures against the reference, hit tests.

use crate::given;
use crate::picture::{Bound, assert_close, from_rgba};
use glam::{Quat, Vec3};
use half::f16;
use splatstage::camera::Camera;
use splatstage::formats::{self, LoadOptions, Loaded};
use splatstage::frame::{Frame, HIT_COVERAGE, SplatDraw, Touch, front_most};
use splatstage::gpu::{PICK_AGE_MAX, Packing, RasterMethod, Renderer, Settings};
use splatstage::motion::noise::mix;
use splatstage::reference::{self, Rules};
use splatstage::scene::body::{Joint, Pivot, ShapeEntry};
use splatstage::scene::edit::{Edit, Solid};
use splatstage::scene::{Body, Pose, Rigid, Splats};
use std::sync::Arc;

const BUNDLES: [&str; 3] = [
    "avatar/ict_head.splattie",
    "splattie/demo_HEAD.splattie",
    "splattie/demo_arkit.splattie",
];

fn bundle(path: &str) -> Option<(Arc<Splats>, Arc<Body>)> {
    let loaded: Loaded =
        formats::load(&given::data(path)?, &LoadOptions::default(), &|_| {}).expect("a bundle");
    let avatar = loaded.avatar.expect("bundles have bodies");
    Some((Arc::new(loaded.splats), Arc::clone(&avatar.body)))
}

/// Numbers from -1 to 1 that are the same on every run.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> f32 {
        self.0 = mix(self.0.wrapping_add(1));
        (self.0 >> 40) as f32 / 8_388_608.0 - 1.0
    }

    pub fn vector(&mut self) -> Vec3 {
        Vec3::new(self.next(), self.next(), self.next())
    }
}

/// Every bone turned by up to half a radian and shifted by up to 2 cm, every shape anywhere.
pub fn random_pose(body: &Arc<Body>, chance: &mut Chance, pivot: Pivot) -> Arc<Pose> {
    let joints: Vec<Joint> = body
        .bones
        .iter()
        .map(|_| Joint {
            rotation: Quat::from_scaled_axis(0.5 * chance.vector()),
            shift: 0.02 * chance.vector(),
        })
        .collect();
    let shapes = body.shapes.names.iter().map(|_| chance.next());
    Arc::new(Pose::new(body, &joints, pivot, shapes.collect()))
}

pub fn head_camera(distance_m: f32) -> Camera {
    let eye = Vec3::new(0.1, 0.05, 1.0) * distance_m;
    Camera::look_at(eye, Vec3::ZERO, Vec3::Y, 45_f32.to_radians())
}

/// Mean of one coordinate's change over some rows, millimetres, by the transforms of one bone.
fn mean_change_mm(splats: &Splats, rows: &[usize], motion: Rigid, axis: usize) -> f64 {
    let sum: f64 = rows
        .iter()
        .map(|row| {
            let p = splats.means[*row];
            f64::from(motion.apply(p)[axis]) - f64::from(p[axis])
        })
        .sum();
    sum / rows.len() as f64 * 1000.0
}

#[test]
fn pivots_move_the_demo_head_as_published() {
    let Some((splats, body)) = bundle("splattie/demo_HEAD.splattie") else {
        return;
    };
    let skin = body.skin.as_ref().expect("the head has weights");
    let (jaw, eye) = (
        body.bone("jaw").expect("a jaw"),
        body.bone("leftEye").expect("an eye"),
    );
    let weight = |row: usize, bone: usize| {
        skin.row(row)
            .find(|(b, _)| usize::from(*b) == bone)
            .map_or(0.0, |(_, w)| w)
    };
    let motion = |bone: usize, rotation: Quat, pivot: Pivot| {
        let mut joints = vec![Joint::default(); body.bones.len()];
        joints[bone].rotation = rotation;
        Pose::new(&body, &joints, pivot, Vec::new()).motions[bone]
    };
    let jaw_rows: Vec<usize> = (0..splats.len())
        .filter(|r| weight(*r, jaw) > 0.9)
        .collect();
    let open = Quat::from_rotation_x(0.15);
    for (pivot, expected_mm) in [(Pivot::Origin, -6.89), (Pivot::Joint, -15.76)] {
        let found_mm = mean_change_mm(&splats, &jaw_rows, motion(jaw, open, pivot), 1);
        assert!(
            (found_mm - expected_mm).abs() < 0.05,
            "jaw {pivot:?}: {found_mm} mm"
        );
    }
    // The front fifth of the eye's own splats.
    let mut eye_rows: Vec<usize> = (0..splats.len())
        .filter(|r| weight(*r, eye) > 0.9)
        .collect();
    eye_rows.sort_by(|a, b| splats.means[*b].z.total_cmp(&splats.means[*a].z));
    eye_rows.truncate(eye_rows.len() / 5);
    let gaze = Quat::from_rotation_y(0.09);
    for (pivot, expected_mm) in [(Pivot::Origin, 3.17), (Pivot::Joint, 1.17)] {
        let found_mm = mean_change_mm(&splats, &eye_rows, motion(eye, gaze, pivot), 0);
        assert!(
            (found_mm - expected_mm).abs() < 0.05,
            "eye {pivot:?}: {found_mm} mm"
        );
    }
}

#[test]
fn the_gpu_deforms_as_its_twin_does() {
    let Some(context) = given::gpu() else { return };
    let mut renderer = Renderer::new(context, &Settings::default()).expect("a renderer");
    let mut bodies: Vec<(String, Arc<Splats>, Arc<Body>)> = BUNDLES
        .iter()
        .filter_map(|name| bundle(name).map(|(s, b)| ((*name).to_owned(), s, b)))
        .collect();
    let (splats, body) = made_body(3000, 256, 40);
    bodies.push(("256 bones".to_owned(), splats, body));
    let mut chance = Chance(7);
    for (name, splats, body) in &bodies {
        for pivot in [Pivot::Joint, Pivot::Origin, Pivot::Joint] {
            let pose = random_pose(body, &mut chance, pivot);
            let draw = SplatDraw {
                pose: Some(Arc::clone(&pose)),
                ..SplatDraw::new(Arc::clone(splats))
            };
            let frame = Frame {
                draws: vec![SplatDraw::new(Arc::clone(splats)), draw],
                ..Frame::default()
            };
            let posed = renderer.posed(context, &frame).expect("posed splats");
            assert_eq!(posed.len(), 1, "{name}: one draw has a pose");
            assert_eq!(posed[0].len(), splats.len(), "{name}: all rows");
            let (mut far, mut turned) = (0.0_f64, 0.0_f64);
            for (row, (mean, turn)) in posed[0].iter().enumerate() {
                let truth = reference::deform::deform(&pose, row, splats.means[row].as_dvec3());
                far = far.max((mean.as_dvec3() - truth.mean).length());
                // q and -q are one turn.
                let turn = turn.as_dquat();
                let difference = (turn - truth.turn)
                    .length()
                    .min((turn + truth.turn).length());
                turned = turned.max(difference);
            }
            println!("{name} {pivot:?}: {far:.2e} m, {turned:.2e}");
            assert!(far < 1e-4, "{name} {pivot:?}: {far} m from the twin");
            assert!(turned < 1e-3, "{name} {pivot:?}: turned by {turned}");
        }
    }
}

/// A chain of bones up the y axis, splats around it, and shapes that each move a third of them.
pub fn made_body(count: usize, bones: usize, shapes: usize) -> (Arc<Splats>, Arc<Body>) {
    let mut chance = Chance(42);
    let mut splats = Splats::default();
    let mut body = Body::default();
    for bone in 0..bones {
        body.bones.push(splatstage::scene::body::Bone {
            name: format!("bone {bone}"),
            parent: (bone % 8 > 0).then(|| bone as u16 - 1),
            rest: Vec3::Y * (bone as f32 / bones as f32 - 0.5) * 0.4,
        });
    }
    let mut skin = splatstage::scene::body::Skin::default();
    let names = (0..shapes).map(|i| format!("shape {i}")).collect();
    body.shapes = splatstage::scene::body::Shapes::new(names);
    for row in 0..count {
        let p = chance.vector() * Vec3::new(0.1, 0.2, 0.1);
        splats.means.push(p);
        splats
            .log_scales
            .push(Vec3::splat(-4.6) + 0.3 * chance.vector());
        splats
            .rotations
            .push(Quat::from_scaled_axis(chance.vector()));
        splats.opacities.push(0.75 + 0.25 * chance.next());
        splats.dc.push(chance.vector());
        let own: Vec<(u8, f32)> = (0..5)
            .map(|_| {
                let bone = ((chance.next() * 0.5 + 0.5) * bones as f32) as usize;
                (bone.min(bones - 1) as u8, chance.next().abs())
            })
            .collect();
        skin.push_row(own);
        let moved = (0..shapes)
            .filter(|shape| (shape + row) % 3 == 0)
            .map(|shape| (shape as u16, 0.02 * chance.vector()));
        let entries: Vec<(u16, Vec3)> = moved.collect();
        body.shapes.push_row(entries);
    }
    body.skin = Some(skin);
    (Arc::new(splats), Arc::new(body))
}

pub fn edits() -> Vec<Edit> {
    let at = |x: f32, y: f32, z: f32| Rigid {
        rotation: Quat::from_rotation_z(0.3),
        translation: Vec3::new(x, y, z),
    };
    let solids = [
        Solid::Sphere { radius: 0.05 },
        Solid::Box {
            half: Vec3::new(0.03, 0.02, 0.1),
        },
        Solid::Ellipsoid {
            radii: Vec3::new(0.05, 0.02, 0.08),
        },
        Solid::Capsule {
            radius: 0.02,
            half_length: 0.04,
        },
        Solid::Plane,
    ];
    solids
        .into_iter()
        .enumerate()
        .map(|(i, solid)| Edit {
            solid,
            local_from_solid: at(0.05 * i as f32 - 0.1, 0.04 - 0.03 * i as f32, 0.03),
            soft_edge_m: 0.01,
            is_inverted: false,
            opacity: [0.1, 1.0, 0.6, 0.0, 1.0][i],
            tint: [
                Vec3::ONE,
                Vec3::new(1.0, 0.2, 0.3),
                Vec3::ONE,
                Vec3::ONE,
                Vec3::splat(0.7),
            ][i],
            displace: if i == 2 { Vec3::Z * 0.02 } else { Vec3::ZERO },
        })
        .collect()
}

#[test]
fn posed_and_edited_pictures_equal_the_reference() {
    let Some(context) = given::gpu() else { return };
    let size = [320, 240];
    let mut scenes: Vec<(String, Arc<Splats>, Arc<Body>)> = BUNDLES
        .iter()
        .filter_map(|name| bundle(name).map(|(s, b)| ((*name).to_owned(), s, b)))
        .collect();
    let (splats, body) = made_body(4000, 12, 9);
    // View-dependent colour has to turn with the bones.
    let mut chance = Chance(3);
    let mut with_sh = (*splats).clone();
    with_sh.sh_degree = 2;
    with_sh.sh_rest = (0..with_sh.len() * 24)
        .map(|_| 0.5 * chance.next())
        .collect();
    scenes.push(("made".to_owned(), Arc::new(with_sh), body));
    for method in [RasterMethod::Quads, RasterMethod::Tiles] {
        let settings = Settings {
            raster: Some(method),
            packing: Packing::Float,
            ..Settings::default()
        };
        let mut renderer = Renderer::new(context, &settings).expect("a renderer");
        for (name, splats, body) in &scenes {
            let draw = SplatDraw {
                pose: Some(random_pose(body, &mut chance, Pivot::Joint)),
                edits: edits(),
                ..SplatDraw::new(Arc::clone(splats))
            };
            let frame = Frame {
                camera: head_camera(0.7),
                draws: vec![draw],
                ..Frame::default()
            };
            let target = reference::render(&frame, size, &Rules::product());
            let truth = from_rgba(size, reference::picture(&target, frame.background));
            let (picture, _) = renderer.picture(context, &frame, size).expect("a picture");
            let bound = Bound {
                psnr_min_db: 55.0,
                outlier_steps: 4,
                outlier_share_max: 1e-4,
            };
            let found = from_rgba(size, picture.rgba);
            let label = name.replace('/', "-");
            assert_close(&format!("posed-{label}-{method:?}"), &found, &truth, bound);
        }
    }
}

#[test]
fn hits_are_the_coverage_of_the_reference_at_a_thousand_pixels() {
    let Some(context) = given::gpu() else { return };
    let size = [400, 400];
    let mut renderer = Renderer::new(context, &Settings::default()).expect("a renderer");
    let mut chance = Chance(11);
    for name in BUNDLES {
        let Some((splats, body)) = bundle(name) else {
            continue;
        };
        let draw = SplatDraw {
            pose: Some(random_pose(&body, &mut chance, Pivot::Joint)),
            target: Some(5),
            ..SplatDraw::new(Arc::clone(&splats))
        };
        let frame = Frame {
            camera: head_camera(0.7),
            draws: vec![draw],
            ..Frame::default()
        };
        let coverage = reference::render(&frame, size, &Rules::product()).coverage;
        let (mut hits, mut left_out) = (0, 0);
        let pixels: Vec<[u32; 2]> = (0..1000)
            .map(|_| [chance.next(), chance.next()].map(|v| ((v * 0.5 + 0.5) * 399.0) as u32))
            .collect();
        let all = renderer
            .touches(context, &frame, size, &pixels)
            .expect("touches");
        for (at, touches) in pixels.into_iter().zip(all) {
            let covered = coverage[(at[1] * size[0] + at[0]) as usize];
            // What 8 bits cannot tell apart.
            if (covered - HIT_COVERAGE).abs() < 2.0 / 255.0 {
                left_out += 1;
                continue;
            }
            let hit = front_most(&frame.targets(), touches);
            assert_eq!(
                hit.is_some(),
                covered > HIT_COVERAGE,
                "{name} at {at:?}: {covered}"
            );
            if let Some(hit) = hit {
                hits += 1;
                assert_eq!(hit.target, 5);
                assert!(
                    (hit.coverage - covered).abs() < 2.0 / 255.0,
                    "{name} at {at:?}"
                );
            }
        }
        assert!(
            hits > 100 && left_out < 50,
            "{name}: {hits} hits, {left_out} left out"
        );
    }
}

#[test]
fn what_the_gpu_touches_the_reference_touches() {
    let Some(context) = given::gpu() else { return };
    let size = [120, 90];
    let settings = Settings {
        packing: Packing::Float,
        ..Settings::default()
    };
    let mut renderer = Renderer::new(context, &settings).expect("a renderer");
    let (splats, body) = made_body(6000, 12, 9);
    let mut chance = Chance(5);
    let draws = (0..2).map(|i| SplatDraw {
        pose: (i == 0).then(|| random_pose(&body, &mut chance, Pivot::Joint)),
        target: Some(i),
        ..SplatDraw::new(Arc::clone(&splats))
    });
    let frame = Frame {
        draws: draws.collect(),
        camera: head_camera(0.6),
        ..Frame::default()
    };
    let pixels = [[60, 45], [40, 30], [70, 60], [0, 0], [119, 89]];
    let all = renderer
        .touches(context, &frame, size, &pixels)
        .expect("touches");
    for (at, found) in pixels.into_iter().zip(all) {
        let by_depth = |mut list: Vec<Touch>| {
            list.retain(|t| t.alpha > 1.05 / 255.0);
            list.sort_by_key(|t| (t.draw, t.row));
            list
        };
        let found = by_depth(found);
        let truth = by_depth(reference::pick::touches(&frame, size, at));
        assert!(
            found.len().abs_diff(truth.len()) <= 1,
            "{at:?}: {} {}",
            found.len(),
            truth.len()
        );
        let same = found.iter().zip(&truth).filter(|(a, b)| {
            (a.draw, a.row) == (b.draw, b.row)
                && (a.depth_m - b.depth_m).abs() < 1e-4
                && (a.alpha - b.alpha).abs() < 1e-3
        });
        assert!(same.count() + 2 > truth.len(), "{at:?}");
        assert_eq!(
            front_most(&frame.targets(), found).map(|h| h.target),
            reference::pick(&frame, size, at).map(|h| h.target),
            "{at:?}"
        );
    }
}

#[test]
fn answers_are_at_most_two_pictures_old_and_a_dark_thing_on_black_is_hit() {
    let Some(context) = given::gpu() else { return };
    let size = [64, 48];
    let mut renderer = Renderer::new(context, &Settings::default()).expect("a renderer");
    let black = Splats {
        means: vec![Vec3::ZERO],
        log_scales: vec![Vec3::splat(-2.0)],
        rotations: vec![Quat::IDENTITY],
        opacities: vec![0.9],
        // Black on the black of the default background.
        dc: vec![Vec3::splat(-0.5 / splatstage::scene::sh::SH_C0)],
        ..Splats::default()
    };
    let frame = Frame {
        camera: head_camera(1.0),
        draws: vec![SplatDraw {
            target: Some(1),
            ..SplatDraw::new(Arc::new(black))
        }],
        ..Frame::default()
    };
    let texture = context.device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d {
            width: size[0],
            height: size[1],
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT,
        view_formats: &[],
    });
    let view = texture.create_view(&Default::default());
    renderer.set_pick(Some([32, 24]));
    let mut answers = 0;
    for _ in 0..12 {
        let format = texture.format();
        renderer
            .draw(context, &frame, size, &view, format)
            .expect("a picture");
        if let Some(touches) = renderer.take_touches(context).expect("no lost device") {
            answers += 1;
            let age = renderer.pictures() - touches.picture;
            assert!(age <= PICK_AGE_MAX, "{age} pictures old");
            assert_eq!(
                front_most(&frame.targets(), touches.list).map(|h| h.target),
                Some(1)
            );
        }
    }
    assert!(answers >= 9, "{answers} answers to 12 pictures");
    renderer.set_pick(None);
    renderer
        .draw(context, &frame, size, &view, texture.format())
        .expect("a picture");
}

#[test]
fn a_target_behind_a_wall_is_not_hit_and_the_nearer_of_two_is() {
    let touch = |draw, depth_m, alpha| Touch {
        draw,
        row: 0,
        depth_m,
        alpha,
    };
    let draw = |target| SplatDraw {
        target,
        ..SplatDraw::new(Arc::new(Splats::default()))
    };
    let frame = Frame {
        draws: vec![draw(None), draw(Some(7)), draw(Some(8))],
        ..Frame::default()
    };
    let hit = |list: &[Touch]| front_most(&frame.targets(), list.to_vec()).map(|h| h.target);
    assert_eq!(
        hit(&[touch(1, 2.0, 0.9), touch(0, 1.0, 0.9)]),
        None,
        "hidden"
    );
    assert_eq!(
        hit(&[touch(1, 2.0, 0.9), touch(0, 1.0, 0.3)]),
        Some(7),
        "seen through a veil"
    );
    assert_eq!(
        hit(&[touch(1, 2.0, 0.9), touch(2, 1.0, 0.9)]),
        Some(8),
        "the nearer one"
    );
    assert_eq!(
        hit(&[touch(1, 2.0, 0.3), touch(2, 1.0, 0.3)]),
        None,
        "neither covers half"
    );
    assert_eq!(
        hit(&[touch(1, 2.0, 0.3), touch(1, 1.0, 0.3)]),
        Some(7),
        "half together"
    );
    assert_eq!(hit(&[]), None);
}

#[test]
fn shapes_keep_halves() {
    let entry = ShapeEntry {
        shape: 1,
        offset: [1.0, -2.0, 0.5].map(f16::from_f32),
    };
    let mut body = Body::default();
    body.shapes
        .push_row([(1, Vec3::new(1.0, -2.0, 0.5)), (0, Vec3::splat(1e-9))]);
    assert_eq!(body.shapes.row(0), [entry], "what rounds to 0 is left out");
    assert_eq!(
        body.shapes.offset(0, &[9.0, 2.0]),
        Vec3::new(2.0, -4.0, 1.0)
    );
}
