// Which splats the stage "effects" need not write: those off the picture. It saves memory traffic where
// splats are many; `stood.wgsl` does without it.

// Whether a splat surely leaves nothing on the picture: its largest sphere against what `footprint`
// (shared/footprint.wgsl) keeps, with more room than rounding takes.
fn is_off(s: EffectSplat) -> bool {
    let p = page.scale * (page.view_from_local * (s.centre_m - page.eye_local));
    let rounding_m = 1e-5 * (abs(p.x) + abs(p.y) + abs(p.z));
    if p.z <= view.near_m + rounding_m {
        return p.z < view.near_m - rounding_m;
    }
    let sigma = max(abs(s.scale_m.x), max(abs(s.scale_m.y), abs(s.scale_m.z))) * page.scale;
    let scale_px = view.focal_px / p.z;
    let sigma_px = sigma * scale_px;
    // The faintest contribution lies sqrt(2 ln 255) standard deviations out.
    let reach_px = 3.34 * sqrt(sigma_px * sigma_px * (1.0 + view.slope_max * view.slope_max) + DILATION_PX2);
    let mean_px = scale_px * p.xy + view.centre_px;
    let room_px = reach_px + 1.0 + 1e-4 * abs(mean_px);
    // What is no number is left to `footprint`.
    return any(mean_px + room_px < vec2<f32>(0.0)) || any(mean_px - room_px > view.size_px);
}
