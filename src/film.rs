//! How a picture is filmed: shutter, readout, lens and sensor of a simulated phone, and where the
//! camera is while the shutter is open.
//!
//! Plain data and maths, shared by the film pass, its CPU twin and the reference film. It draws
//! nothing and decides nothing: scripts choose the numbers (`scripts/phone.luau` has presets). The
//! time inside an exposure is `f`: -1 and 1 are the instants at which the first row begins and the
//! last one ends, 0 is the instant of the picture.
//!
//! Source: the film pass of splat-walk (times, three poses, rows); the thin lens and the noise model
//! are textbook optics.

use crate::camera::Camera;
use glam::{DQuat, DVec2, DVec3, Vec2, Vec3};

/// How one picture is filmed. Every length of time is in seconds, colours are linear light.
#[derive(Clone, Debug, PartialEq)]
pub struct Film {
    /// How long each row is open.
    pub exposure_s: f64,
    /// From the first row to the last one; 0 is a global shutter.
    pub readout_s: f64,
    /// Which way the readout goes.
    pub readout: Readout,
    /// Width and height of what is drawn, over those of the picture.
    pub overscan: f32,
    /// Where depth comes from.
    pub depth: Depth,
    /// What [`Depth::Proxy`] takes for the world, at most [`PLANES_MAX`].
    pub planes: Vec<Plane>,
    /// Moves the taps of each pixel inside their slots, by a hash of pixel and seed.
    pub jitter: bool,
    /// Factor on light before anything else.
    pub gain: f32,
    /// Factors on red, green and blue.
    pub balance: [f32; 3],
    /// Distance that is sharp, metres.
    pub focus_m: f32,
    /// Diameter of the lens's opening, metres; 0 is a pinhole.
    pub aperture_m: f32,
    /// Rays leave the lens at `1 + distortion r^2` of their slope, r from the middle in half
    /// diagonals: above 0 barrel, below 0 pincushion.
    pub distortion: f32,
    /// Red is this share larger than green, blue as much smaller.
    pub aberration: f32,
    /// Light lost in the corners, share.
    pub falloff: f32,
    /// Glow round highlights.
    pub halation: Halation,
    /// Overshoot of luma at edges; 0 is none, 1 is much.
    pub sharpen: f32,
    /// Highlights above `1 - shoulder` are rolled off towards white instead of clipped.
    pub shoulder: f32,
    /// Variance of a grain at linear level x is `noise_shot x + noise_read`.
    pub noise_shot: f32,
    /// See `noise_shot`.
    pub noise_read: f32,
    /// Of the noise, beside the picture's time.
    pub seed: u32,
    /// The cameras at f = -1 and f = 1; the frame's own is the one at f = 0.
    pub shutter: [Camera; 2],
}

/// Which way rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readout {
    /// From the top row to the bottom row.
    Down,
    /// From the bottom row to the top row.
    Up,
    /// From the right column to the left one: a phone held upright, turned to the left.
    Left,
    /// From the left column to the right one.
    Right,
}

impl Readout {
    /// All of them with the names that scripts use.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("down", Self::Down),
        ("up", Self::Up),
        ("left", Self::Left),
        ("right", Self::Right),
    ];

    /// Unit vector along which rows get later, in pixel space (x right, y down).
    #[must_use]
    pub fn direction(self) -> Vec2 {
        match self {
            Self::Down => Vec2::Y,
            Self::Up => Vec2::NEG_Y,
            Self::Left => Vec2::NEG_X,
            Self::Right => Vec2::X,
        }
    }
}

/// Glow of light that passes the sensor and comes back, mostly red.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Halation {
    /// Share of the light above `threshold` that comes back.
    pub strength: f32,
    /// How far it spreads, picture heights.
    pub radius: f32,
    /// Linear level from which there is any.
    pub threshold: f32,
}

/// Where the film pass takes depth from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The splats, in two layers that are split where near things stand before far ones: what they
    /// hide comes to light while the shutter is open.
    TwoLayers,
    /// The splats, one depth a pixel: cheaper, smears at the edges of near things.
    OneLayer,
    /// [`Film::planes`] instead of the splats, as the original has it; far where there is none.
    Proxy,
}

impl Depth {
    /// Taps for every pixel of a smear: the cheaper quality takes them farther apart.
    #[must_use]
    pub fn taps_per_px(self) -> f32 {
        match self {
            Self::OneLayer => 0.5,
            Self::TwoLayers | Self::Proxy => 1.0,
        }
    }
}

/// A plane of the world: through `point`, seen from the side of `normal`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// metres
    pub point: Vec3,
    /// Unit length.
    pub normal: Vec3,
}

/// Planes of a proxy.
pub const PLANES_MAX: usize = 8;
/// Longest exposure and readout, seconds.
pub const TIME_S_MAX: f64 = 0.5;
/// Most taps of a pixel.
pub const TAPS_MAX: u32 = 48;
/// Fewest taps of a pixel that moves.
pub const TAPS_MIN: u32 = 10;
/// Largest overscan.
pub const OVERSCAN_MAX: f32 = 2.0;

impl Default for Film {
    /// The shutter of the original, a perfect lens and a perfect sensor.
    fn default() -> Self {
        Self {
            exposure_s: 1.0 / 80.0,
            readout_s: 0.016,
            readout: Readout::Down,
            overscan: 1.1,
            depth: Depth::TwoLayers,
            planes: Vec::new(),
            jitter: false,
            gain: 1.0,
            balance: [1.0; 3],
            focus_m: 2.0,
            aperture_m: 0.0,
            distortion: 0.0,
            aberration: 0.0,
            falloff: 0.0,
            halation: Halation {
                strength: 0.0,
                radius: 0.02,
                threshold: 0.8,
            },
            sharpen: 0.0,
            shoulder: 0.0,
            noise_shot: 0.0,
            noise_read: 0.0,
            seed: 0,
            shutter: [Camera::default(); 2],
        }
    }
}

impl Film {
    /// Half of the time in which the picture collects light, seconds: H of the original.
    #[must_use]
    pub fn half_span_s(&self) -> f64 {
        0.5 * (self.exposure_s + self.readout_s)
    }

    /// The exposure of a row in units of f.
    #[must_use]
    pub fn exposure_f(&self) -> f64 {
        let half_s = self.half_span_s();
        if half_s > 0.0 {
            self.exposure_s / half_s
        } else {
            0.0
        }
    }

    /// The readout in units of f.
    #[must_use]
    pub fn readout_f(&self) -> f64 {
        let half_s = self.half_span_s();
        if half_s > 0.0 {
            self.readout_s / half_s
        } else {
            0.0
        }
    }

    /// Whether it can be drawn.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.shutter.iter().all(Camera::is_valid)
            && (0.0..=TIME_S_MAX).contains(&self.exposure_s)
            && (0.0..=TIME_S_MAX).contains(&self.readout_s)
            && (1.0..=OVERSCAN_MAX).contains(&self.overscan)
            && self.focus_m > 0.0
    }

    /// Pixels that are drawn beyond each edge of a picture of `size`: whole ones, so that a picture in
    /// which nothing moves is the clean one.
    #[must_use]
    pub fn margin_px(&self, size: [u32; 2]) -> [u32; 2] {
        // 1.1 is a little more as an f32.
        let share = 0.5 * (f64::from(self.overscan) - 1.0) - 1e-6;
        size.map(|side| (share.max(0.0) * f64::from(side)).ceil() as u32)
    }

    /// Size of what is drawn for a picture of `size`.
    #[must_use]
    pub fn wide_size(&self, size: [u32; 2]) -> [u32; 2] {
        let margin = self.margin_px(size);
        [size[0] + 2 * margin[0], size[1] + 2 * margin[1]]
    }

    /// A camera whose picture of [`Film::wide_size`] has that of `camera` in its middle, pixel on pixel.
    #[must_use]
    pub fn wide_camera(&self, camera: &Camera, size: [u32; 2]) -> Camera {
        let slope = (0.5 * f64::from(camera.fov_y_rad)).tan();
        let wider = f64::from(self.wide_size(size)[1]) / f64::from(size[1].max(1));
        Camera {
            fov_y_rad: (2.0 * (slope * wider).atan()) as f32,
            ..*camera
        }
    }

    /// Where the `k`th ray of a pixel or of a reference film goes through the lens, metres (x right, y
    /// down): a sequence that fills the disc evenly in each stretch of it (Roberts, "The unreasonable
    /// effectiveness of quasirandom sequences", 2018).
    #[must_use]
    pub fn lens_place(&self, k: usize) -> DVec2 {
        let k = k as f64 + 0.5;
        let radius =
            0.5 * f64::from(self.aperture_m) * (k * 0.754_877_666_246_692_8).fract().sqrt();
        let angle = std::f64::consts::TAU * (k * 0.569_840_290_998_053_3).fract();
        radius * DVec2::new(angle.cos(), angle.sin())
    }

    /// Seed of the noise of the picture at `t_s`: the same time, the same noise.
    #[must_use]
    pub fn noise_seed(&self, t_s: f64) -> u32 {
        // Microseconds keep pictures of any frame rate apart; the rest mixes (splitmix64).
        let mut x = ((t_s * 1e6).round() as i64 as u64) ^ (u64::from(self.seed) << 32);
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) as u32
    }
}

/// The way of a camera while the shutter is open, seen from the camera at f = 0. All polynomials in f
/// have no constant term: x(f) = f x.0 + f² x.1, through the three poses.
///
/// View space: x right, y down, z forward.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Turns a direction of the camera at f into the view space of f = 0: a rotation vector.
    pub turn: [DVec3; 2],
    /// The lens at f in the view space of f = 0, metres.
    pub shift_m: [DVec3; 2],
    /// Focal length over that of f = 0, less 1.
    pub zoom: [f64; 2],
}

impl Path {
    /// The way from `shutter[0]` through `middle` to `shutter[1]`.
    #[must_use]
    pub fn new(middle: &Camera, shutter: &[Camera; 2]) -> Self {
        // Flips y and z of a camera's own axes: view space.
        let to_view = |v: DVec3| DVec3::new(v.x, -v.y, -v.z);
        let inverse = middle.rotation.as_dquat().normalize().inverse();
        let turn_at = |camera: &Camera| -> DVec3 {
            let turn: DQuat = inverse * camera.rotation.as_dquat().normalize();
            // The short way round.
            let turn = if turn.w < 0.0 { -turn } else { turn };
            to_view(turn.to_scaled_axis())
        };
        let shift_at = |camera: &Camera| {
            to_view(inverse * (camera.position.as_dvec3() - middle.position.as_dvec3()))
        };
        let focal = |camera: &Camera| 1.0 / (0.5 * f64::from(camera.fov_y_rad)).tan();
        let zoom_at = |camera: &Camera| focal(camera) / focal(middle) - 1.0;
        let vectors = |at: &dyn Fn(&Camera) -> DVec3| {
            let (before, after) = (at(&shutter[0]), at(&shutter[1]));
            [0.5 * (after - before), 0.5 * (after + before)]
        };
        let (before, after) = (zoom_at(&shutter[0]), zoom_at(&shutter[1]));
        Self {
            turn: vectors(&turn_at),
            shift_m: vectors(&shift_at),
            zoom: [0.5 * (after - before), 0.5 * (after + before)],
        }
    }

    /// The ray that leaves the camera at `f` with `slope` (x/z and y/z), in the view space of f = 0: its
    /// own slope there, and by how much the slope under which a point on it is seen changes with the
    /// point's inverse depth. A point at depth z is seen under `slope + step / z`.
    #[must_use]
    pub fn ray(&self, slope: DVec2, f: f64) -> (DVec2, DVec2) {
        let turn = f * self.turn[0] + f * f * self.turn[1];
        let shift = f * self.shift_m[0] + f * f * self.shift_m[1];
        let zoom = 1.0 + f * self.zoom[0] + f * f * self.zoom[1];
        let d = (slope / zoom).extend(1.0);
        // The rotation's series to its second term: the rest is under 1e-5 for 2 degrees.
        let once = turn.cross(d);
        let turned = d + once + 0.5 * turn.cross(once);
        let seen = turned.truncate() / turned.z;
        (seen, shift.truncate() - shift.z * seen)
    }

    /// Farthest that the lens gets from where it is at f = 0, metres.
    #[must_use]
    pub fn reach_m(&self) -> f64 {
        let at = |f: f64| (f * self.shift_m[0] + f * f * self.shift_m[1]).length();
        at(-1.0).max(at(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ray_follows_the_poses() {
        let middle = Camera::from_angles(Vec3::new(1.0, 1.5, -2.0), 0.4, -0.1, 0.02, 0.9);
        let pose = |f: f32| Camera {
            position: middle.position + Vec3::new(0.01, 0.004, -0.016) * f,
            ..Camera::from_angles(Vec3::ZERO, 0.4 + 0.02 * f, -0.1 + 0.003 * f, 0.02, 0.9)
        };
        let path = Path::new(&middle, &[pose(-1.0), pose(1.0)]);
        for f in [-1.0_f32, -0.3, 0.0, 0.7, 1.0] {
            let camera = pose(f);
            // A point 3 m before the moved camera, off its axis.
            let slope = DVec2::new(0.3, -0.2);
            let z_m = 3.0;
            let own = DVec3::new(slope.x * z_m, -slope.y * z_m, -z_m);
            let world = camera.rotation.as_dquat() * own + camera.position.as_dvec3();
            let back = middle.rotation.as_dquat().inverse() * (world - middle.position.as_dvec3());
            let wanted = DVec2::new(back.x, -back.y) / -back.z;
            let (seen, step) = path.ray(slope, f64::from(f));
            let found = seen + step / -back.z;
            assert!((found - wanted).length() < 2e-5, "{f}: {found} {wanted}");
        }
    }

    #[test]
    fn the_wide_picture_has_the_narrow_one_in_its_middle() {
        let film = Film::default();
        assert_eq!(film.wide_size([1920, 1080]), [2112, 1188]);
        let camera = Camera::default();
        let wide = film.wide_camera(&camera, [1920, 1080]);
        let focal = camera.intrinsics([1920, 1080]).focal_px.x;
        let focal_wide = wide.intrinsics(film.wide_size([1920, 1080])).focal_px.x;
        assert!(
            (focal - focal_wide).abs() < 1e-3 * focal / 100.0,
            "{focal} {focal_wide}"
        );
        assert!((film.half_span_s() - 0.01425).abs() < 1e-12);
    }
}
