//! Rust mirrors of the structs in `shaders/shared/types.wgsl`. A test compares the layouts.

use crate::camera::{Camera, NEAR_M};
use crate::effect::{EFFECTS_MAX, EffectUse, UNIFORM_FLOATS_MAX};
use crate::film::{Depth, Film, PLANES_MAX, Path, TAPS_MAX};
use crate::frame::{Frame, SplatDraw};
use crate::scene::edit::{self, EDITS_MAX, Solid};
use bytemuck::{Pod, Zeroable};
use glam::{DVec3, Mat3, Vec3};

/// Width and height of a tile, px.
pub const TILE_PX: u32 = 16;
/// Threads of a workgroup in the front end.
pub const GROUP: u32 = 256;

/// `View` in WGSL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct View {
    /// px
    pub focal_px: [f32; 2],
    /// px
    pub centre_px: [f32; 2],
    /// px
    pub size_px: [f32; 2],
    /// Clamp of |x/z| and |y/z| in the Jacobian.
    pub slope_max: [f32; 2],
    /// metres
    pub near_m: f32,
    /// Workgroups of the culling pass over all pages.
    pub group_count: u32,
    /// Pages over all draws.
    pub page_count: u32,
    /// Survivors that the buffers hold.
    pub visible_capacity: u32,
    /// Tiles across and down.
    pub tile_count: [u32; 2],
    /// (tile, splat) pairs that the buffers hold.
    pub pair_capacity: u32,
    /// Low bits of a pair's key that hold its depth; 0 where records are sorted by depth.
    pub depth_bits: u32,
    /// Centre of the pixel whose splats are asked for, px.
    pub pick_px: [f32; 2],
}

/// `Edit` in WGSL.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Edit {
    /// `local_from_solid`, xyzw.
    pub rotation: [f32; 4],
    /// metres
    pub centre: [f32; 3],
    /// Number of the shape.
    pub kind: u32,
    /// metres
    pub size: [f32; 3],
    /// metres
    pub soft_edge_m: f32,
    /// Factor.
    pub tint: [f32; 3],
    /// Factor.
    pub opacity: f32,
    /// metres
    pub displace: [f32; 3],
    /// -1 where the effect is outside, else 1.
    pub side: f32,
}

impl From<&edit::Edit> for Edit {
    fn from(edit: &edit::Edit) -> Self {
        let (kind, size) = match edit.solid {
            Solid::Sphere { radius } => (0, Vec3::splat(radius)),
            Solid::Box { half } => (1, half),
            Solid::Ellipsoid { radii } => (2, radii),
            Solid::Plane => (3, Vec3::ONE),
            Solid::Capsule {
                radius,
                half_length,
            } => (4, Vec3::new(radius, half_length, 0.0)),
        };
        Self {
            rotation: edit.local_from_solid.rotation.to_array(),
            centre: edit.local_from_solid.translation.to_array(),
            kind,
            size: size.to_array(),
            soft_edge_m: edit.soft_edge_m,
            tint: edit.tint.to_array(),
            opacity: edit.opacity,
            displace: edit.displace.to_array(),
            side: if edit.is_inverted { -1.0 } else { 1.0 },
        }
    }
}

/// `Page` in WGSL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Page {
    /// Columns of a rotation, each padded to 16 bytes.
    pub view_from_local: [[f32; 4]; 3],
    /// Eye in the splats' own space.
    pub eye_local: [f32; 3],
    /// Placement scale.
    pub scale: f32,
    /// Colour and opacity factors.
    pub tint: [f32; 4],
    /// First workgroup of this page in the culling pass.
    pub first_group: u32,
    /// Splats in this page.
    pub count: u32,
    /// 0 to 3
    pub sh_degree: u32,
    /// 0 or 1
    pub antialiased: u32,
    /// 0 or 1
    pub is_posed: u32,
    /// Entries of `edits` in use.
    pub edit_count: u32,
    /// Number of the draw in the frame.
    pub draw: u32,
    /// Row of this page's first splat in the draw.
    pub first_row: u32,
    /// Soft solids.
    pub edits: [Edit; EDITS_MAX],
    /// World from the splats' space, xyzw.
    pub world_rotation: [f32; 4],
    /// metres
    pub world_translation: [f32; 3],
    /// 0 or 1
    pub has_arrivals: u32,
    /// What is said of the draw's effects.
    pub effects: [PageEffect; EFFECTS_MAX],
}

/// `PageEffect` in WGSL.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct PageEffect {
    /// Floats of its uniforms.
    pub values: [[f32; 4]; UNIFORM_FLOATS_MAX / 4],
    /// Seconds.
    pub t_s: f32,
    /// Not read.
    pub unused_a: f32,
    /// Not read.
    pub unused_b: f32,
    /// Not read.
    pub unused_c: f32,
}

impl From<&EffectUse> for PageEffect {
    fn from(used: &EffectUse) -> Self {
        let mut values = [[0.0; 4]; UNIFORM_FLOATS_MAX / 4];
        for (slot, value) in values.as_flattened_mut().iter_mut().zip(&used.values) {
            *slot = *value;
        }
        Self {
            values,
            t_s: used.t_s,
            ..Self::default()
        }
    }
}

impl View {
    /// The view of `camera` on a picture of `size_px`; counts and capacities are filled in later.
    pub fn new(camera: &Camera, size_px: [u32; 2]) -> Self {
        let lens = camera.intrinsics(size_px);
        let [width, height] = size_px.map(|v| v as f32);
        // 1.3 tan(fov / 2) per axis, the clamp of the INRIA rasteriser.
        let slope_max = [
            1.3 * 0.5 * width / lens.focal_px.x,
            1.3 * 0.5 * height / lens.focal_px.y,
        ];
        Self {
            focal_px: lens.focal_px.into(),
            centre_px: lens.centre_px.into(),
            size_px: [width, height],
            slope_max,
            near_m: NEAR_M,
            group_count: 0,
            page_count: 0,
            visible_capacity: 0,
            tile_count: size_px.map(|v| v.div_ceil(TILE_PX)),
            pair_capacity: 0,
            depth_bits: 0,
            pick_px: [0.0; 2],
        }
    }
}

impl Page {
    /// One page of `draw` as seen by `camera`. The eye is brought into the splats' space in f64, so
    /// that a shader subtracts near numbers only.
    pub fn new(
        camera: &Camera,
        (draw_index, draw): (usize, &SplatDraw),
        first_row: u32,
        first_group: u32,
        count: u32,
    ) -> Self {
        let rotation = draw.placement.rotation;
        let view_from_local = camera.view_from_world() * Mat3::from_quat(rotation);
        let eye = rotation.as_dquat().inverse()
            * (camera.position.as_dvec3() - draw.placement.translation.as_dvec3())
            / f64::from(draw.placement.scale);
        let mut edits = [Edit::default(); EDITS_MAX];
        for (slot, edit) in edits.iter_mut().zip(&draw.edits) {
            *slot = edit.into();
        }
        let mut effects = [PageEffect::default(); EFFECTS_MAX];
        for (slot, used) in effects.iter_mut().zip(&draw.effects) {
            *slot = used.into();
        }
        let column = |v: Vec3| [v.x, v.y, v.z, 0.0];
        Self {
            view_from_local: [
                column(view_from_local.x_axis),
                column(view_from_local.y_axis),
                column(view_from_local.z_axis),
            ],
            eye_local: eye.as_vec3().into(),
            scale: draw.placement.scale,
            tint: draw.tint,
            first_group,
            count,
            sh_degree: u32::from(draw.splats.sh_degree),
            antialiased: u32::from(draw.splats.antialiased),
            is_posed: u32::from(draw.pose.is_some()),
            edit_count: draw.edits.len().min(EDITS_MAX) as u32,
            draw: draw_index as u32,
            first_row,
            edits,
            world_rotation: rotation.to_array(),
            world_translation: draw.placement.translation.to_array(),
            has_arrivals: u32::from(draw.arrivals.is_some()),
            effects,
        }
    }
}

/// `Film` in WGSL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct FilmUniform {
    /// Rotation vector per f.
    pub turn_1: [f32; 3],
    /// Exposure in units of f.
    pub exposure_f: f32,
    /// Rotation vector per f².
    pub turn_2: [f32; 3],
    /// px
    pub focal_px: f32,
    /// Metres per f.
    pub shift_1: [f32; 3],
    /// metres
    pub aperture_m: f32,
    /// Metres per f².
    pub shift_2: [f32; 3],
    /// Inverse metres.
    pub focus_w: f32,
    /// RGBA, display space.
    pub background: [f32; 4],
    /// Per f and f².
    pub zoom: [f32; 2],
    /// Direction times readout in units of f.
    pub readout_f: [f32; 2],
    /// px
    pub size_px: [f32; 2],
    /// px
    pub margin_px: [f32; 2],
    /// Factors.
    pub balance: [f32; 3],
    /// Of slopes, per squared half diagonal.
    pub distortion: f32,
    /// Share.
    pub halation_strength: f32,
    /// Linear level.
    pub halation_threshold: f32,
    /// px of the glow's picture.
    pub halation_sigma_px: f32,
    /// Share.
    pub aberration: f32,
    /// Of (1 + falloff r²)^-2.
    pub falloff: f32,
    /// Share of the difference to the neighbours.
    pub sharpen: f32,
    /// Linear level below white.
    pub shoulder: f32,
    /// Variance per linear level.
    pub noise_shot: f32,
    /// Variance.
    pub noise_read: f32,
    /// px m
    pub reach_px_m: f32,
    /// px of the half-size picture.
    pub split_reach_px: u32,
    /// Of the noise.
    pub seed: u32,
    /// 0 or 1
    pub jitter: u32,
    /// Entries of `planes` in use.
    pub plane_count: u32,
    /// 1/px
    pub taps_per_px: f32,
    /// Most taps.
    pub taps_max: u32,
    /// View-space normal, and the lens's distance from the plane along it.
    pub planes: [[f32; 4]; PLANES_MAX],
    /// metres; the last two are not read.
    pub lens_m: [[f32; 4]; TAPS_MAX as usize],
}

/// Splits reach no farther from their edges, px of the half-size picture.
const SPLIT_REACH_MAX_PX: f64 = 16.0;
/// Things nearer to the lens than this may lose the outermost part of their split, metres.
const SPLIT_NEAR_M: f64 = 0.35;
/// Nothing is worth splitting that moves less, px; as MOVE_MIN_PX in film_split.wgsl.
const SPLIT_MOVE_MIN_PX: f64 = 0.3;
/// How much smaller the glow's picture is.
const GLOW_SHRINK: f32 = 8.0;

impl FilmUniform {
    /// The numbers of `film` for a picture of `size`, whose camera takes `path`.
    pub fn new(frame: &Frame, film: &Film, path: &Path, size: [u32; 2]) -> Self {
        let lens = frame.camera.intrinsics(size);
        let focal_px = f64::from(lens.focal_px.y);
        let f32s = |v: DVec3| v.as_vec3().to_array();
        let reach_px_m = focal_px * (path.reach_m() + 0.5 * f64::from(film.aperture_m));
        let near_px = reach_px_m / SPLIT_NEAR_M;
        let split_reach_px = if film.depth == Depth::TwoLayers && near_px > SPLIT_MOVE_MIN_PX {
            (0.5 * near_px + 2.0).ceil().min(SPLIT_REACH_MAX_PX) as u32
        } else {
            0
        };
        let view_from_world = frame.camera.view_from_world();
        let mut planes = [[0.0; 4]; PLANES_MAX];
        for (slot, plane) in planes.iter_mut().zip(&film.planes) {
            let distance_m = (frame.camera.position - plane.point).dot(plane.normal);
            *slot = (view_from_world * plane.normal)
                .extend(distance_m)
                .to_array();
        }
        let readout_f = film.readout.direction() * film.readout_f() as f32;
        Self {
            turn_1: f32s(path.turn[0]),
            exposure_f: film.exposure_f() as f32,
            turn_2: f32s(path.turn[1]),
            focal_px: focal_px as f32,
            shift_1: f32s(path.shift_m[0]),
            aperture_m: film.aperture_m,
            shift_2: f32s(path.shift_m[1]),
            focus_w: 1.0 / film.focus_m,
            background: frame.background,
            zoom: path.zoom.map(|v| v as f32),
            readout_f: readout_f.to_array(),
            size_px: size.map(|v| v as f32),
            margin_px: film.margin_px(size).map(|v| v as f32),
            balance: film.balance.map(|v| v * film.gain),
            distortion: film.distortion,
            halation_strength: film.halation.strength,
            halation_threshold: film.halation.threshold,
            halation_sigma_px: (film.halation.radius * size[1] as f32 / GLOW_SHRINK).max(0.3),
            aberration: film.aberration,
            // The corner, at r = 1, keeps 1 - falloff.
            falloff: (1.0 - film.falloff).max(0.01).sqrt().recip() - 1.0,
            sharpen: film.sharpen,
            shoulder: film.shoulder,
            noise_shot: film.noise_shot,
            noise_read: film.noise_read,
            reach_px_m: if split_reach_px > 0 {
                reach_px_m as f32
            } else {
                0.0
            },
            split_reach_px,
            seed: film.noise_seed(frame.t_s),
            jitter: u32::from(film.jitter),
            plane_count: film.planes.len().min(PLANES_MAX) as u32,
            taps_per_px: film.depth.taps_per_px(),
            taps_max: TAPS_MAX,
            planes,
            lens_m: std::array::from_fn(|k| {
                let place = film.lens_place(k).as_vec2();
                [place.x, place.y, 0.0, 0.0]
            }),
        }
    }
}

/// `Instant` in WGSL: one render of a reference film.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct InstantUniform {
    /// -1 to 1
    pub f: f32,
    /// Half of the distance to the next instant, in units of f.
    pub half_step_f: f32,
    /// Where it went through the lens, metres, x right, y down.
    pub lens_m: [f32; 2],
}

/// Where a struct's fields lie, for the test that compares them with WGSL's.
#[derive(Debug)]
pub struct StructLayout {
    /// Name and offset in bytes.
    pub fields: Vec<(&'static str, u32)>,
    /// Bytes.
    pub size: u32,
}

macro_rules! struct_layout {
    ($type:ty { $($field:ident),* $(,)? }) => {
        StructLayout {
            fields: vec![$((stringify!($field), std::mem::offset_of!($type, $field) as u32)),*],
            size: size_of::<$type>() as u32,
        }
    };
}

/// Layouts of all mirrored structs by their name in WGSL.
#[must_use]
pub fn uniform_layouts() -> Vec<(&'static str, StructLayout)> {
    vec![
        (
            "View",
            struct_layout!(View {
                focal_px,
                centre_px,
                size_px,
                slope_max,
                near_m,
                group_count,
                page_count,
                visible_capacity,
                tile_count,
                pair_capacity,
                depth_bits,
                pick_px,
            }),
        ),
        (
            "Page",
            struct_layout!(Page {
                view_from_local,
                eye_local,
                scale,
                tint,
                first_group,
                count,
                sh_degree,
                antialiased,
                is_posed,
                edit_count,
                draw,
                first_row,
                edits,
                world_rotation,
                world_translation,
                has_arrivals,
                effects,
            }),
        ),
        (
            "PageEffect",
            struct_layout!(PageEffect {
                values,
                t_s,
                unused_a,
                unused_b,
                unused_c,
            }),
        ),
        (
            "Edit",
            struct_layout!(Edit {
                rotation,
                centre,
                kind,
                size,
                soft_edge_m,
                tint,
                opacity,
                displace,
                side,
            }),
        ),
        (
            "Film",
            struct_layout!(FilmUniform {
                turn_1,
                exposure_f,
                turn_2,
                focal_px,
                shift_1,
                aperture_m,
                shift_2,
                focus_w,
                background,
                zoom,
                readout_f,
                size_px,
                margin_px,
                balance,
                distortion,
                halation_strength,
                halation_threshold,
                halation_sigma_px,
                aberration,
                falloff,
                sharpen,
                shoulder,
                noise_shot,
                noise_read,
                reach_px_m,
                split_reach_px,
                seed,
                jitter,
                plane_count,
                taps_per_px,
                taps_max,
                planes,
                lens_m,
            }),
        ),
        (
            "Instant",
            struct_layout!(InstantUniform {
                f,
                half_step_f,
                lens_m,
            }),
        ),
    ]
}
