//! Rust mirrors of the structs in `shaders/shared/types.wgsl`. A test compares the layouts.

use crate::camera::{Camera, NEAR_M};
use crate::frame::SplatDraw;
use crate::scene::edit::{self, EDITS_MAX, Solid};
use bytemuck::{Pod, Zeroable};
use glam::{Mat3, Vec3};

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
        }
    }
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
    ]
}
