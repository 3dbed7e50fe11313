//! One splat to what the rasteriser needs of it: where it lands, how wide, how far, which colour.
//!
//! Twin of the `project` shader. It decides what is culled (behind the near plane, too faint, off
//! the picture, not finite) and nothing about order. Space: view is x right, y down, z forward;
//! pixels have their centres at +0.5.
//!
//! Source: Zwicker et al. 2002 for the affine approximation; Kerbl et al. 2023 for dilation and the
//! Jacobian's limit; Yu et al., "Mip-Splatting", 2024, for the antialias compensation.

use super::deform::{Deformed, deform};
use super::effect::effected;
use super::{ALPHA_MIN, DILATION_PX2, Footprint, JACOBIAN_LIMIT, Rules};
use crate::camera::Camera;
use crate::effect::EffectSplat;
use crate::effect::spread::NEVER_M;
use crate::frame::{Frame, SplatDraw};
use crate::scene::{edit, sh};
use glam::{DMat3, DQuat, DVec2, DVec3, Vec3};
use rayon::prelude::*;

/// Standard deviations are no longer than e^16 m (8.9e6 m, more than the Earth's radius): rows of
/// damaged files reach f32's limit, and their squares would leave any float's range.
pub const LOG_SCALE_MAX: f32 = 16.0;

/// A projected splat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Centre, px from the top left corner.
    pub mean_px: DVec2,
    /// Inverse of the dilated 2D covariance: xx, xy, yy, px^-2.
    pub conic: [f64; 3],
    /// Half width and half height of the box outside of which nothing is blended, px.
    pub extent_px: DVec2,
    /// View depth of the centre, metres.
    pub depth_m: f64,
    /// Display-space colour, not negative, tint applied.
    pub colour: [f64; 3],
    /// Opacity at the centre, tint and compensation applied, above [`ALPHA_MIN`], at most 1.
    pub opacity: f64,
    /// Which draw of the frame it belongs to.
    pub draw: u32,
    /// Its row there.
    pub row: u32,
}

/// The camera in f64, for a picture of one size.
#[derive(Clone, Copy, Debug)]
pub struct View {
    eye: DVec3,
    view_from_world: DMat3,
    focal_px: f64,
    size_px: DVec2,
}

impl View {
    /// A camera and the picture that it fills; square pixels, centred.
    #[must_use]
    pub fn new(camera: &Camera, size: [u32; 2]) -> Self {
        let world_from_camera = DMat3::from_quat(camera.rotation.as_dquat().normalize());
        let size_px = DVec2::new(f64::from(size[0]), f64::from(size[1]));
        Self {
            eye: camera.position.as_dvec3(),
            view_from_world: DMat3::from_diagonal(DVec3::new(1.0, -1.0, -1.0))
                * world_from_camera.transpose(),
            focal_px: 0.5 * size_px.y / (0.5 * f64::from(camera.fov_y_rad)).tan(),
            size_px,
        }
    }
}

/// Projects every splat of a frame; survivors come in order of draw, then row.
#[must_use]
pub fn project(frame: &Frame, size: [u32; 2], rules: &Rules) -> Vec<Record> {
    let view = View::new(&frame.camera, size);
    let mut records = Vec::new();
    for (index, draw) in frame.draws.iter().enumerate() {
        records.par_extend((0..draw.splats.len()).into_par_iter().filter_map(|row| {
            Some(Record {
                draw: index as u32,
                ..project_one(draw, row, &view, rules)?
            })
        }));
    }
    records
}

/// Projects row `row` of a draw; `None` when it leaves no trace on the picture. The record's `draw`
/// is 0.
#[must_use]
pub fn project_one(draw: &SplatDraw, row: usize, view: &View, rules: &Rules) -> Option<Record> {
    let splats = &draw.splats;
    if !splats.is_drawable(row) {
        return None;
    }

    let rest = splats.means[row].as_dvec3();
    let deformed = match &draw.pose {
        Some(pose) => deform(pose, row, rest),
        None => Deformed {
            mean: rest,
            turn: DQuat::IDENTITY,
        },
    };
    let edited = edit::apply(&draw.edits, deformed.mean.as_vec3());
    let mut mean = deformed.mean + edited.displace.as_dvec3();
    let turn = rotation(deformed.turn);

    let world_from_local = rotation(draw.placement.rotation.as_dquat());
    let placement_scale = f64::from(draw.placement.scale);
    let in_world = |mean: DVec3| {
        draw.placement.translation.as_dvec3() + world_from_local * (placement_scale * mean)
    };
    let seen_colour = |mean: DVec3| {
        // The coefficients turn with the splats, so it is the line of sight that is turned back.
        let world_from_rest = world_from_local * turn;
        let sight = in_world(mean) - view.eye;
        let direction = (world_from_rest.transpose() * sight).normalize().as_vec3();
        let colour = sh::colour(splats.dc[row], splats.sh_rest_of(row), direction);
        colour.max(Vec3::ZERO) * edited.tint
    };
    let mut deviations = (splats.log_scales[row])
        .min(Vec3::splat(LOG_SCALE_MAX))
        .as_dvec3()
        .exp();
    let mut local_from_splat = turn * rotation(splats.rotations[row].as_dquat());
    let mut own_opacity = f64::from(splats.opacities[row]) * f64::from(edited.opacity);
    let mut colour = None;
    if !draw.effects.is_empty() {
        let arrivals = draw.arrivals.as_ref();
        let splat = effected(
            &draw.effects,
            EffectSplat {
                centre_m: mean.as_vec3(),
                scale_m: deviations.as_vec3(),
                rotation: DQuat::from_mat3(&local_from_splat).as_quat(),
                colour: seen_colour(mean),
                opacity: own_opacity as f32,
                rest_m: splats.means[row],
                world_m: in_world(mean).as_vec3(),
                world_rotation: draw.placement.rotation,
                world_scale: draw.placement.scale,
                spread_m: arrivals.map_or(NEVER_M, |a| a.row(row)),
                row: row as u32,
            },
        );
        mean = splat.centre_m.as_dvec3();
        deviations = splat.scale_m.as_dvec3();
        local_from_splat = rotation(splat.rotation.as_dquat());
        own_opacity = f64::from(splat.opacity);
        colour = Some(splat.colour);
    }

    let sight = in_world(mean) - view.eye;
    let p_view = view.view_from_world * sight;
    // A depth that is not a number is not in front either.
    let in_front = p_view.z > rules.near_m;
    if !in_front {
        return None;
    }

    let view_from_splat = view.view_from_world * world_from_local * local_from_splat;
    let covariance = covariance_px2(p_view, view_from_splat, deviations * placement_scale, view);

    let mut opacity = own_opacity * f64::from(draw.tint[3]);
    if splats.antialiased {
        opacity *= (covariance.det / covariance.det_dilated()).sqrt();
    }
    let opacity = opacity.min(1.0);
    let visible = opacity > ALPHA_MIN;
    if !visible {
        return None;
    }

    let extent_px = extent_px(&covariance, opacity, rules.footprint);
    let mean_px = 0.5 * view.size_px + view.focal_px * p_view.truncate() / p_view.z;
    let on_picture = (mean_px + extent_px).cmpgt(DVec2::ZERO).all()
        && (mean_px - extent_px).cmplt(view.size_px).all();
    if !on_picture {
        return None;
    }

    let colour = colour.unwrap_or_else(|| seen_colour(mean)).as_dvec3();
    let tint = Vec3::from_slice(&draw.tint[..3]).as_dvec3();
    let colour = (colour * tint).max(DVec3::ZERO);
    let conic = covariance.conic();
    let finite = conic.iter().all(|v| v.is_finite()) && colour.is_finite();
    finite.then(|| Record {
        mean_px,
        conic,
        extent_px,
        depth_m: p_view.z,
        colour: colour.to_array(),
        opacity,
        draw: 0,
        row: row as u32,
    })
}

/// The rotation of a quaternion of any length; the zero quaternion of damaged files turns nothing.
fn rotation(q: DQuat) -> DMat3 {
    let length = q.length();
    if length > 0.0 {
        DMat3::from_quat(q / length)
    } else {
        DMat3::IDENTITY
    }
}

/// A projected 2D covariance before dilation, px squared.
struct Covariance {
    xx: f64,
    xy: f64,
    yy: f64,
    /// Determinant, px^4, not negative.
    det: f64,
}

/// The 2D covariance of a splat at `p_view` whose axes stand in the columns of `view_from_splat`.
fn covariance_px2(
    p_view: DVec3,
    view_from_splat: DMat3,
    deviations: DVec3,
    view: &View,
) -> Covariance {
    let limit = JACOBIAN_LIMIT * 0.5 * view.size_px / view.focal_px;
    let slope = (p_view.truncate() / p_view.z).clamp(-limit, limit);
    let focal_per_m = view.focal_px / p_view.z;
    // Rows of the Jacobian of the perspective projection.
    let jacobian_x = DVec3::new(focal_per_m, 0.0, -focal_per_m * slope.x);
    let jacobian_y = DVec3::new(0.0, focal_per_m, -focal_per_m * slope.y);
    // The two rows of J R S; the covariance is their Gram matrix.
    let root_x = (view_from_splat.transpose() * jacobian_x) * deviations;
    let root_y = (view_from_splat.transpose() * jacobian_y) * deviations;
    Covariance {
        xx: root_x.length_squared(),
        xy: root_x.dot(root_y),
        yy: root_y.length_squared(),
        // Cauchy-Binet: the sum of squared minors loses nothing to cancellation and is never
        // negative, which xx * yy - xy * xy is for needles.
        det: root_x.cross(root_y).length_squared(),
    }
}

impl Covariance {
    /// Determinant of the covariance plus dilation, at least the dilation's own.
    fn det_dilated(&self) -> f64 {
        self.det + DILATION_PX2 * (self.xx + self.yy) + DILATION_PX2 * DILATION_PX2
    }

    /// Inverse of the dilated covariance: xx, xy, yy.
    fn conic(&self) -> [f64; 3] {
        let det = self.det_dilated();
        [
            (self.yy + DILATION_PX2) / det,
            -self.xy / det,
            (self.xx + DILATION_PX2) / det,
        ]
    }
}

/// Half sides of the box that holds every pixel the footprint may touch, px.
fn extent_px(covariance: &Covariance, opacity: f64, footprint: Footprint) -> DVec2 {
    let dilated = DVec2::new(covariance.xx, covariance.yy) + DILATION_PX2;
    match footprint {
        // The box of the ellipse on which alpha is ALPHA_MIN.
        Footprint::Gaussian => {
            let sigmas = (-2.0 * footprint.power_min(opacity)).sqrt();
            DVec2::new(dilated.x.sqrt(), dilated.y.sqrt()) * sigmas
        }
        // splat-transform's: three standard deviations of the longer axis, rounded up.
        Footprint::FloorSubtracted => {
            let middle = 0.5 * (dilated.x + dilated.y);
            let spread = (middle * middle - covariance.det_dilated()).max(0.1).sqrt();
            DVec2::splat((3.0 * (middle + spread).sqrt()).ceil())
        }
    }
}
