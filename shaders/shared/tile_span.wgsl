// Which 16 px tiles an ellipse touches: exact, row by row. A tile is touched when one of its pixel
// CENTRES may lie inside q <= q_max; per row of tiles the touched ones are one span.
// Idea: exact tile tests of StopThePop and Speedy-Splat; derivation on the Cholesky form is ours.

// Rows [first, end) of tiles.
fn tile_rows(mean_px: vec2<f32>, l: vec3<f32>, q_max: f32) -> vec2<u32> {
    let half_px = sqrt(q_max) / l.z;
    // Pixel centres lie at k + 0.5: first k with k + 0.5 >= low, one past last with <= high.
    let low = max(ceil(mean_px.y - half_px - 0.5), 0.0);
    let high = min(floor(mean_px.y + half_px - 0.5) + 1.0, view.size_px.y);
    if !(high > low) {
        return vec2<u32>(0u);
    }
    return vec2<u32>(u32(low) / TILE_PX, (u32(high) + TILE_PX - 1u) / TILE_PX);
}

// Tiles [first, end) in the row of tiles `row`.
fn tile_span(mean_px: vec2<f32>, l: vec3<f32>, q_max: f32, row: u32) -> vec2<u32> {
    let extent = sqrt(q_max);
    let half_px = extent / l.z;
    let top = max(f32(row * TILE_PX) + 0.5 - mean_px.y, -half_px);
    let bottom = min(f32(row * TILE_PX + TILE_PX) - 0.5 - mean_px.y, half_px);
    // x = (u - l.y dy) / l.x with u^2 + (l.z dy)^2 = q_max: the right edge is a concave function of
    // dy with its maximum at dy_right, the left edge is its mirror image.
    let shear = l.y / (l.x * l.z);
    let dy_right = -extent * shear / (sqrt(1.0 / (l.x * l.x) + shear * shear) * l.z);
    let at_right = clamp(dy_right, min(top, bottom), max(top, bottom));
    let at_left = clamp(-dy_right, min(top, bottom), max(top, bottom));
    let v_right = l.z * at_right;
    let v_left = l.z * at_left;
    let right = (sqrt(max(0.0, q_max - v_right * v_right)) - l.y * at_right) / l.x;
    let left = (-sqrt(max(0.0, q_max - v_left * v_left)) - l.y * at_left) / l.x;
    // A hundredth of a pixel more covers the rounding of the above.
    let low = max(ceil(mean_px.x + left - 0.51), 0.0);
    let high = min(floor(mean_px.x + right - 0.49) + 1.0, view.size_px.x);
    if !(high > low) {
        return vec2<u32>(0u);
    }
    return vec2<u32>(u32(low) / TILE_PX, (u32(high) + TILE_PX - 1u) / TILE_PX);
}

// Tiles that a visible splat touches.
fn tile_total(f: Footprint) -> u32 {
    let rows = tile_rows(f.mean_px, f.l, f.q_max);
    var total = 0u;
    for (var row = rows.x; row < rows.y; row++) {
        let span = tile_span(f.mean_px, f.l, f.q_max, row);
        total += span.y - span.x;
    }
    return total;
}
