//! Motion maths against closed forms.

use glam::DVec3;
use splatstage::motion::{Ease, Spline, Spring, Track, cubic_bezier, noise};
use std::f64::consts::{PI, TAU};

#[track_caller]
fn near(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b} +- {tolerance}");
}

#[test]
fn every_easing_starts_at_0_and_ends_at_1() {
    let names = Ease::names();
    assert_eq!(names.len(), 37);
    for name in names {
        let ease = Ease::named(&name).unwrap();
        near(ease.at(0.0), 0.0, 1e-12);
        near(ease.at(1.0), 1.0, 1e-12);
        near(ease.at(-3.0), 0.0, 1e-12);
        near(ease.at(7.0), 1.0, 1e-12);
        // No jumps: a thousandth of the way is never more than a fiftieth of the range.
        let mut last = 0.0;
        for i in 1..=1000 {
            let next = ease.at(f64::from(i) / 1000.0);
            assert!((next - last).abs() < 0.06, "{name} jumps at {i}");
            last = next;
        }
    }
    assert_eq!(Ease::named("in_out"), None);
}

#[test]
fn easings_are_their_formulas() {
    let at = |name: &str, u: f64| Ease::named(name).unwrap().at(u);
    near(at("in_cubic", 0.3), 0.027, 1e-12);
    near(at("out_quad", 0.3), 1.0 - 0.49, 1e-12);
    near(at("in_out_quad", 0.25), 0.125, 1e-12);
    near(at("in_out_sine", 0.2), 0.5 - 0.5 * (0.2 * PI).cos(), 1e-12);
    near(at("smoothstep", 0.4), 0.16 * 2.2, 1e-12);
    assert!(at("out_back", 0.7) > 1.0 && at("out_elastic", 0.15) > 1.0);
    // CSS `ease-in-out` is symmetric; a diagonal curve is the identity.
    near(at("ease_in_out", 0.3) + at("ease_in_out", 0.7), 1.0, 1e-12);
    near(cubic_bezier(0.2, 0.2, 0.7, 0.7, 0.37), 0.37, 1e-12);
    // At its parameter 1/2, x = 3/8 (x1 + x2) + 1/8, and y alike.
    let (x, y) = (0.375 * 0.9 + 0.125, 0.375 * 1.3 + 0.125);
    near(cubic_bezier(0.6, 0.2, 0.3, 1.1, x), y, 1e-12);
}

#[test]
fn springs_solve_their_equation() {
    for damping in [0.0, 0.2, 0.999_999_9, 1.0, 1.000_01, 3.0] {
        let spring = Spring {
            frequency_hz: 1.7,
            damping,
        };
        let w = TAU * 1.7;
        let (x0, v0) = (2.0, -3.0);
        assert_eq!(spring.at(x0, v0, 0.0), (x0, v0));
        let h = 1e-4;
        for i in 1..40 {
            let t = f64::from(i) * 0.05;
            let [a, b, c] = [t - h, t, t + h].map(|t| spring.at(x0, v0, t));
            near((c.0 - a.0) / (2.0 * h), b.1, 2e-4);
            let acceleration = (c.1 - a.1) / (2.0 * h);
            near(acceleration, -w * w * b.0 - 2.0 * damping * w * b.1, 2e-2);
            // Stepping is the same as asking.
            let half = spring.at(x0, v0, t / 2.0);
            let stepped = spring.at(half.0, half.1, t / 2.0);
            near(stepped.0, b.0, 1e-6);
        }
    }
    let undamped = Spring {
        frequency_hz: 0.5,
        damping: 0.0,
    };
    near(undamped.at(1.0, 0.0, 1.0).0, -1.0, 1e-12);
    let long = Spring {
        frequency_hz: 4.0,
        damping: 1.0,
    };
    near(long.at(1.0, 0.0, 1e6).0, 0.0, 1e-12);
}

#[test]
fn noise_is_smooth_bounded_and_repeats() {
    let (mut sum, mut last) = (0.0, noise::line(0.0, 3));
    for i in 0..20_000 {
        let x = f64::from(i) * 0.01;
        let n = noise::line(x, 3);
        assert!((-1.0..=1.0).contains(&n));
        // The quintic's steepest slope is 15/8 over a range of 2.
        assert!((n - last).abs() <= 0.01 * 3.75 + 1e-12);
        (sum, last) = (sum + n, n);
        assert_eq!(n, noise::line(x, 3));
    }
    near(sum / 20_000.0, 0.0, 0.15);
    assert_ne!(noise::line(0.5, 3), noise::line(0.5, 4));
    // Across zero and far away it is still continuous.
    near(noise::line(-1e-9, 3), noise::line(1e-9, 3), 1e-8);
    near(noise::line(1e9, 3), noise::line(1e9 + 1e-6, 3), 1e-3);
    let p = DVec3::new(0.3, -4.2, 9.7);
    assert!((-1.0..=1.0).contains(&noise::space(p, 1)));
    near(noise::space(p, 1), noise::space(p + 1e-9, 1), 1e-7);
    let many = noise::octaves(8, 5, |scale, seed| noise::line(0.3 * scale, seed));
    assert!((-1.0..=1.0).contains(&many));
    assert_eq!(
        noise::octaves(1, 5, |s, seed| noise::line(0.3 * s, seed)),
        noise::line(0.3, 5)
    );
}

#[test]
fn splines_pass_their_points_at_an_even_speed() {
    let straight = [0.0, 1.0, 3.0, 4.0].map(|x| DVec3::new(x, 2.0 * x, 0.0));
    let line = Spline::new(&straight, false).unwrap();
    near(line.length(), 4.0 * 5.0_f64.sqrt(), 1e-9);
    near(line.at(0.5).x, 2.0, 1e-3);
    assert_eq!(line.at(-1.0), straight[0]);
    assert!((line.at(2.0) - straight[3]).length() < 1e-9);
    assert!((line.tangent(0.0) - DVec3::new(1.0, 2.0, 0.0).normalize()).length() < 1e-6);

    // Chords of very different lengths side by side: hardly a change of speed between them.
    let uneven =
        [0.0, 3.2, 6.6, 9.0, 13.4, 14.6, 18.0].map(|x: f64| DVec3::new(x, (0.7 * x).sin(), 0.0));
    let uneven = Spline::new(&uneven, false).unwrap();
    let steps = 4000;
    for i in 0..steps {
        let [a, b] = [i, i + 1].map(|k| uneven.at(f64::from(k) / f64::from(steps)));
        let speed = a.distance(b) / uneven.length() * f64::from(steps);
        near(speed, 1.0, 2e-3);
    }

    // Sixteen points of a circle.
    let points: Vec<DVec3> = (0..16)
        .map(|i| (TAU * f64::from(i) / 16.0).sin_cos())
        .map(|(s, c)| DVec3::new(c, s, 0.0))
        .collect();
    let circle = Spline::new(&points, true).unwrap();
    near(circle.length(), TAU, 2e-3);
    for i in 0..=200 {
        let u = f64::from(i) / 200.0;
        let p = circle.at(u);
        near(p.length(), 1.0, 1e-3);
        near(
            p.distance(DVec3::new((TAU * u).cos(), (TAU * u).sin(), 0.0)),
            0.0,
            2e-3,
        );
    }
    assert!(Spline::new(&points[..1], false).is_err());
    assert!(Spline::new(&[DVec3::ONE, DVec3::ONE], false).is_err());
    assert!(Spline::new(&[DVec3::ONE, DVec3::NAN], false).is_err());
    // A doubled point is one point.
    let doubled = Spline::new(&[DVec3::ZERO, DVec3::ZERO, DVec3::X], false).unwrap();
    near(doubled.length(), 1.0, 1e-12);
}

#[test]
fn tracks_hold_their_samples_and_run_smoothly_between() {
    let values: Vec<f64> = (0..240)
        .flat_map(|i| {
            let t = f64::from(i) / 60.0;
            [(2.0 * t).sin(), t]
        })
        .collect();
    let track = Track::new(60.0, 2, values.clone()).unwrap();
    near(track.duration_s(), 239.0 / 60.0, 1e-12);
    for i in 0..240 {
        let t = f64::from(i) / 60.0;
        near(track.at(0, t), values[2 * i as usize], 1e-9);
    }
    for i in 10..200 {
        let t = (f64::from(i) + 0.37) / 60.0;
        near(track.at(0, t), (2.0 * t).sin(), 1e-6);
        near(track.at(1, t), t, 1e-12);
    }
    assert_eq!(track.at(0, -5.0), values[0]);
    assert_eq!(track.at(1, 1e9), values[479]);
    assert!(Track::new(60.0, 2, vec![1.0; 3]).is_err());
    assert!(Track::new(0.0, 1, vec![1.0]).is_err());
    assert!(Track::new(60.0, 1, vec![]).is_err());
}
