//! Edits: soft solid shapes that fade, tint or push the splats inside them.
//!
//! A shape is a signed distance; what is inside takes the whole effect, what is outside none, and
//! between them lies an edge of a given width: `m = clamp(0.5 - d / soft_edge, 0, 1)`, the rule of
//! Spark's SplatEdit. Distances are taken at a splat's centre after skinning and before any edit
//! moves it, so the order of edits changes nothing but rounding. Twin in `shaders/shared/edit.wgsl`.
//!
//! Source: distance functions of Quilez, "Distance functions" (the ellipsoid is a bound, exact on
//! its surface).

use super::rigid::Rigid;
use glam::Vec3;

/// Edits of one draw.
pub const EDITS_MAX: usize = 16;

/// A shape about its own origin; sizes in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solid {
    /// A ball.
    Sphere {
        /// Above 0.
        radius: f32,
    },
    /// A cuboid along the axes.
    Box {
        /// From the middle to the faces, above 0.
        half: Vec3,
    },
    /// An ellipsoid along the axes.
    Ellipsoid {
        /// Half axes, above 0.
        radii: Vec3,
    },
    /// Everything below y = 0.
    Plane,
    /// All within `radius` of a stretch of the y axis.
    Capsule {
        /// Above 0.
        radius: f32,
        /// From the middle to either end of the stretch, not negative.
        half_length: f32,
    },
}

impl Solid {
    /// Distance to the surface, negative inside, metres.
    #[must_use]
    pub fn distance(&self, p: Vec3) -> f32 {
        match *self {
            Self::Sphere { radius } => p.length() - radius,
            Self::Box { half } => {
                let q = p.abs() - half;
                q.max(Vec3::ZERO).length() + q.max_element().min(0.0)
            }
            Self::Ellipsoid { radii } => {
                let k0 = (p / radii).length();
                let k1 = (p / (radii * radii)).length();
                if k1 > 0.0 {
                    k0 * (k0 - 1.0) / k1
                } else {
                    -radii.min_element()
                }
            }
            Self::Plane => p.y,
            Self::Capsule {
                radius,
                half_length,
            } => (p - Vec3::Y * p.y.clamp(-half_length, half_length)).length() - radius,
        }
    }
}

/// One edit, placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edit {
    /// The shape.
    pub solid: Solid,
    /// Where it stands in the splats' space, bone applied.
    pub local_from_solid: Rigid,
    /// Width of the edge, metres, not negative; the surface lies in its middle.
    pub soft_edge_m: f32,
    /// The effect is outside instead of inside.
    pub is_inverted: bool,
    /// Factor of opacity inside, 0 to 1.
    pub opacity: f32,
    /// Factor of colour inside.
    pub tint: Vec3,
    /// Shift of what is inside, metres, in the splats' space.
    pub displace: Vec3,
}

impl Edit {
    /// How much of the effect a splat at `p` takes, 0 to 1.
    #[must_use]
    pub fn amount(&self, p: Vec3) -> f32 {
        let d = self
            .solid
            .distance(self.local_from_solid.inverse().apply(p));
        let d = if self.is_inverted { -d } else { d };
        if self.soft_edge_m > 0.0 {
            (0.5 - d / self.soft_edge_m).clamp(0.0, 1.0)
        } else if d <= 0.0 {
            1.0
        } else {
            0.0
        }
    }

    /// True when it changes nothing anywhere.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.opacity == 1.0 && self.tint == Vec3::ONE && self.displace == Vec3::ZERO
    }
}

/// What all edits together do to one splat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edited {
    /// Factor of opacity.
    pub opacity: f32,
    /// Factor of colour.
    pub tint: Vec3,
    /// Shift, metres.
    pub displace: Vec3,
}

/// The sum of `edits` on a splat whose centre, skinned, is `p`.
#[must_use]
pub fn apply(edits: &[Edit], p: Vec3) -> Edited {
    let mut all = Edited {
        opacity: 1.0,
        tint: Vec3::ONE,
        displace: Vec3::ZERO,
    };
    for edit in edits {
        let m = edit.amount(p);
        all.opacity *= 1.0 + m * (edit.opacity - 1.0);
        all.tint *= Vec3::ONE + m * (edit.tint - Vec3::ONE);
        all.displace += m * edit.displace;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f32, b: f32) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }

    #[test]
    fn distances_are_those_of_the_shapes() {
        close(Solid::Sphere { radius: 1.0 }.distance(Vec3::X * 3.0), 2.0);
        let cuboid = Solid::Box {
            half: Vec3::new(1.0, 2.0, 3.0),
        };
        close(cuboid.distance(Vec3::new(4.0, 6.0, 0.0)), 5.0);
        close(cuboid.distance(Vec3::ZERO), -1.0);
        let ellipsoid = Solid::Ellipsoid {
            radii: Vec3::new(1.0, 2.0, 3.0),
        };
        close(ellipsoid.distance(Vec3::new(0.0, 2.0, 0.0)), 0.0);
        assert!(ellipsoid.distance(Vec3::ZERO) < 0.0);
        close(Solid::Plane.distance(Vec3::new(5.0, -2.0, 1.0)), -2.0);
        let capsule = Solid::Capsule {
            radius: 0.5,
            half_length: 1.0,
        };
        close(capsule.distance(Vec3::new(0.0, 3.0, 0.0)), 1.5);
        close(capsule.distance(Vec3::new(2.0, 0.5, 0.0)), 1.5);
    }

    #[test]
    fn the_edge_is_soft_about_the_surface() {
        let edit = Edit {
            solid: Solid::Sphere { radius: 1.0 },
            local_from_solid: Rigid::IDENTITY,
            soft_edge_m: 0.2,
            is_inverted: false,
            opacity: 0.0,
            tint: Vec3::ONE,
            displace: Vec3::ZERO,
        };
        close(edit.amount(Vec3::X), 0.5);
        close(edit.amount(Vec3::X * 0.9), 1.0);
        close(edit.amount(Vec3::X * 1.05), 0.25);
        close(edit.amount(Vec3::X * 1.2), 0.0);
        close(apply(&[edit], Vec3::X).opacity, 0.5);
        let inverted = Edit {
            is_inverted: true,
            ..edit
        };
        close(inverted.amount(Vec3::ZERO), 0.0);
        close(inverted.amount(Vec3::X * 2.0), 1.0);
    }
}
