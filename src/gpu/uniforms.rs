//! Rust mirrors of the structs in `shaders/shared/types.wgsl`. A test compares the layouts.

use crate::camera::{Camera, NEAR_M};
use crate::frame::SplatDraw;
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
    /// Pads to a multiple of 8.
    pub unused: u32,
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
            unused: 0,
        }
    }
}

impl Page {
    /// One page of `draw` as seen by `camera`. The eye is brought into the splats' space in f64, so
    /// that a shader subtracts near numbers only.
    pub fn new(camera: &Camera, draw: &SplatDraw, first_group: u32, count: u32) -> Self {
        let rotation = draw.placement.rotation;
        let view_from_local = camera.view_from_world() * Mat3::from_quat(rotation);
        let eye = rotation.as_dquat().inverse()
            * (camera.position.as_dvec3() - draw.placement.translation.as_dvec3())
            / f64::from(draw.placement.scale);
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
                unused,
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
            }),
        ),
    ]
}
