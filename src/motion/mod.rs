//! Pure functions of time: easing, spring, spline, noise, track.
