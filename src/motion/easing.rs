//! Easing curves: progress in, eased progress out.
//!
//! Names and shapes are those of easings.net (after Robert Penner) in snake_case, the CSS names, and
//! the two smoothsteps. Progress is clamped to 0..1; every curve maps 0 to 0 and 1 to 1.

use std::f64::consts::{FRAC_PI_2, TAU};

/// A curve with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ease {
    side: Side,
    curve: Curve,
}

/// Which end of the curve is bent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    In,
    Out,
    InOut,
}

/// The bend, in its "in" form: slow at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Curve {
    Power(i32),
    Sine,
    Expo,
    Circ,
    Back,
    Elastic,
    Bounce,
    Smoothstep,
    Smootherstep,
    Bezier([f64; 4]),
}

/// Every name that [`Ease::named`] takes, except the `in_`, `out_` and `in_out_` forms.
const WHOLE_NAMES: [(&str, Curve); 7] = [
    ("linear", Curve::Power(1)),
    ("smoothstep", Curve::Smoothstep),
    ("smootherstep", Curve::Smootherstep),
    // CSS Easing Functions Level 1, section 2.2.1.
    ("ease", Curve::Bezier([0.25, 0.1, 0.25, 1.0])),
    ("ease_in", Curve::Bezier([0.42, 0.0, 1.0, 1.0])),
    ("ease_out", Curve::Bezier([0.0, 0.0, 0.58, 1.0])),
    ("ease_in_out", Curve::Bezier([0.42, 0.0, 0.58, 1.0])),
];

/// The curves that come in three forms.
const SIDED_NAMES: [(&str, Curve); 10] = [
    ("quad", Curve::Power(2)),
    ("cubic", Curve::Power(3)),
    ("quart", Curve::Power(4)),
    ("quint", Curve::Power(5)),
    ("sine", Curve::Sine),
    ("expo", Curve::Expo),
    ("circ", Curve::Circ),
    ("back", Curve::Back),
    ("elastic", Curve::Elastic),
    ("bounce", Curve::Bounce),
];

impl Ease {
    /// The curve called `name`, such as `linear`, `smoothstep`, `ease_in_out`, `out_cubic`,
    /// `in_out_sine`, `out_back`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let find = |list: &[(&str, Curve)], key: &str| {
            list.iter().find(|(n, _)| *n == key).map(|(_, c)| *c)
        };
        if let Some(curve) = find(&WHOLE_NAMES, name) {
            return Some(Self {
                side: Side::In,
                curve,
            });
        }
        // `in_out_` first: `in_` is a prefix of it.
        [
            ("in_out_", Side::InOut),
            ("in_", Side::In),
            ("out_", Side::Out),
        ]
        .into_iter()
        .find_map(|(prefix, side)| {
            let curve = find(&SIDED_NAMES, name.strip_prefix(prefix)?)?;
            Some(Self { side, curve })
        })
    }

    /// Every name there is, for messages and documentation.
    #[must_use]
    pub fn names() -> Vec<String> {
        let sided = SIDED_NAMES.iter().flat_map(|(name, _)| {
            ["in_", "out_", "in_out_"].map(|prefix| format!("{prefix}{name}"))
        });
        WHOLE_NAMES
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .chain(sided)
            .collect()
    }

    /// Eased progress at progress `u`.
    #[must_use]
    pub fn at(self, u: f64) -> f64 {
        let u = u.clamp(0.0, 1.0);
        let bend = |v| self.curve.bend(v);
        match self.side {
            Side::In => bend(u),
            Side::Out => 1.0 - bend(1.0 - u),
            Side::InOut if u < 0.5 => 0.5 * bend(2.0 * u),
            Side::InOut => 1.0 - 0.5 * bend(2.0 - 2.0 * u),
        }
    }
}

impl Curve {
    fn bend(self, u: f64) -> f64 {
        match self {
            Self::Power(n) => u.powi(n),
            Self::Sine => 1.0 - (u * FRAC_PI_2).cos(),
            Self::Expo if u <= 0.0 => 0.0,
            // 2^-10 at the start, made to begin at exactly 0.
            Self::Expo => ((10.0 * (u - 1.0)).exp2() - 1.0 / 1024.0) / (1.0 - 1.0 / 1024.0),
            Self::Circ => 1.0 - (1.0 - u * u).max(0.0).sqrt(),
            // 1.70158 overshoots by 10 %.
            Self::Back => u * u * (2.70158 * u - 1.70158),
            Self::Elastic if u <= 0.0 || u >= 1.0 => u,
            Self::Elastic => -(10.0 * (u - 1.0)).exp2() * ((u - 1.075) * TAU / 0.3).sin(),
            Self::Bounce => 1.0 - bounce_out(1.0 - u),
            Self::Smoothstep => u * u * (3.0 - 2.0 * u),
            Self::Smootherstep => u * u * u * (u * (6.0 * u - 15.0) + 10.0),
            Self::Bezier([x1, y1, x2, y2]) => cubic_bezier(x1, y1, x2, y2, u),
        }
    }
}

/// Four parabolas, each a bounce lower than the one before.
fn bounce_out(u: f64) -> f64 {
    let (a, b) = (7.5625, 2.75);
    let arc = |centre: f64, floor: f64| a * (u - centre / b).powi(2) + floor;
    match u * b {
        x if x < 1.0 => a * u * u,
        x if x < 2.0 => arc(1.5, 0.75),
        x if x < 2.5 => arc(2.25, 0.9375),
        _ => arc(2.625, 0.984_375),
    }
}

/// A CSS timing curve through (0, 0), (x1, y1), (x2, y2), (1, 1), asked at x = `u`. `x1` and `x2`
/// are clamped to 0..1, which makes x rise along the curve, so the answer is unique.
#[must_use]
pub fn cubic_bezier(x1: f64, y1: f64, x2: f64, y2: f64, u: f64) -> f64 {
    let (x1, x2, u) = (x1.clamp(0.0, 1.0), x2.clamp(0.0, 1.0), u.clamp(0.0, 1.0));
    let point = |a: f64, b: f64, s: f64| {
        let r = 1.0 - s;
        3.0 * r * r * s * a + 3.0 * r * s * s * b + s * s * s
    };
    if u <= 0.0 || u >= 1.0 {
        return u;
    }
    // Bisection halves the interval 52 times, down to the last bit of f64, for any shape of curve.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..52 {
        let middle = 0.5 * (low + high);
        if point(x1, x2, middle) < u {
            low = middle;
        } else {
            high = middle;
        }
    }
    point(y1, y2, 0.5 * (low + high))
}
