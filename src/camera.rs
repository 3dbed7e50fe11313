//! Cameras: where the lens stands, where it looks, and how rays map to pixels.
//!
//! Pure data and maths. It does not know time, scripts or the GPU.
//!
//! Space: world is right-handed, y up, metres. A camera with yaw 0 looks along -z; yaw turns left
//! (counter-clockwise seen from above), pitch looks up, roll tips the picture's right side down.
//! Pixels: x right, y down, pixel centres at +0.5. Angles are radians here, degrees only at the
//! doors (Lua, JSON, command line). `fov` is vertical.

use glam::{EulerRot, Mat3, Quat, Vec2, Vec3};

/// Splats nearer to the lens than this are not drawn, metres.
pub const NEAR_M: f32 = 0.01;

/// Vertical field of view of a camera that nobody has set, radians (60 degrees).
pub const FOV_DEFAULT_RAD: f32 = std::f32::consts::FRAC_PI_3;

/// Extrinsics and lens of one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Centre of projection in world space, metres.
    pub position: Vec3,
    /// `world_from_camera` rotation; the camera looks along its own -z with +y up.
    pub rotation: Quat,
    /// Vertical field of view, radians, in (0, pi).
    pub fov_y_rad: f32,
}

impl Default for Camera {
    fn default() -> Self {
        Self {
            position: Vec3::new(0.0, 0.0, 3.0),
            rotation: Quat::IDENTITY,
            fov_y_rad: FOV_DEFAULT_RAD,
        }
    }
}

/// Focal lengths and principal point in pixels of a picture of a given size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Intrinsics {
    /// Focal lengths, px.
    pub focal_px: Vec2,
    /// Principal point, px from the top left corner.
    pub centre_px: Vec2,
    /// Picture size, px.
    pub size_px: [u32; 2],
}

impl Camera {
    /// A camera at `eye` looking at `target`. `up` need not be orthogonal; where it is parallel to
    /// the view, some other up is taken, so the result is always a rotation.
    #[must_use]
    pub fn look_at(eye: Vec3, target: Vec3, up: Vec3, fov_y_rad: f32) -> Self {
        let forward = (target - eye).try_normalize().unwrap_or(Vec3::NEG_Z);
        let right = forward
            .cross(up)
            .try_normalize()
            .unwrap_or_else(|| forward.any_orthonormal_vector());
        let true_up = right.cross(forward);
        Self {
            position: eye,
            rotation: Quat::from_mat3(&Mat3::from_cols(right, true_up, -forward)).normalize(),
            fov_y_rad,
        }
    }

    /// A camera from yaw, pitch and roll (radians, signs as in the module docs).
    #[must_use]
    pub fn from_angles(
        position: Vec3,
        yaw_rad: f32,
        pitch_rad: f32,
        roll_rad: f32,
        fov_y_rad: f32,
    ) -> Self {
        Self {
            position,
            rotation: Quat::from_euler(EulerRot::YXZ, yaw_rad, pitch_rad, -roll_rad),
            fov_y_rad,
        }
    }

    /// Yaw, pitch and roll, radians: the inverse of [`Camera::from_angles`], with pitch in
    /// [-pi/2, pi/2].
    #[must_use]
    pub fn angles_rad(&self) -> [f32; 3] {
        let (yaw, pitch, roll) = self.rotation.to_euler(EulerRot::YXZ);
        [yaw, pitch, -roll]
    }

    /// Unit vector along which the camera looks, world space.
    #[must_use]
    pub fn forward(&self) -> Vec3 {
        self.rotation * Vec3::NEG_Z
    }

    /// Rotation into the space the rasterisers work in: x right, y down, z forward (OpenCV).
    ///
    /// Apply it to `p_world - position`. Subtracting the position first keeps f32 exact far from
    /// the origin.
    #[must_use]
    pub fn view_from_world(&self) -> Mat3 {
        let r = Mat3::from_quat(self.rotation).transpose();
        Mat3::from_diagonal(Vec3::new(1.0, -1.0, -1.0)) * r
    }

    /// Pinhole intrinsics for a picture of `size_px`: square pixels, centred.
    #[must_use]
    pub fn intrinsics(&self, size_px: [u32; 2]) -> Intrinsics {
        let [w, h] = size_px.map(|v| v as f32);
        let f = 0.5 * h / (0.5 * self.fov_y_rad).tan();
        Intrinsics {
            focal_px: Vec2::splat(f),
            centre_px: Vec2::new(0.5 * w, 0.5 * h),
            size_px,
        }
    }

    /// True when every number is finite and the lens is a lens.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.position.is_finite()
            && self.rotation.is_finite()
            && self.rotation.is_normalized()
            && self.fov_y_rad > 0.0
            && self.fov_y_rad < std::f32::consts::PI
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_have_the_documented_signs() {
        let yawed = Camera::from_angles(Vec3::ZERO, 0.1, 0.0, 0.0, 1.0);
        assert!(yawed.forward().x < 0.0, "yaw turns left");
        let pitched = Camera::from_angles(Vec3::ZERO, 0.0, 0.1, 0.0, 1.0);
        assert!(pitched.forward().y > 0.0, "pitch looks up");
        let rolled = Camera::from_angles(Vec3::ZERO, 0.0, 0.0, 0.1, 1.0);
        // A rolled camera's own right axis points below the world's horizon.
        assert!(
            (rolled.rotation * Vec3::X).y < 0.0,
            "roll tips the right side down"
        );
    }

    #[test]
    fn look_at_survives_a_parallel_up() {
        let camera = Camera::look_at(Vec3::ZERO, Vec3::Y, Vec3::Y, 1.0);
        assert!(camera.is_valid());
        assert!((camera.forward() - Vec3::Y).length() < 1e-6);
    }
}
