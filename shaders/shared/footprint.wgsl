// A splat's ellipse on the picture: EWA projection with the trainers' clamp and dilation.
// Source: Zwicker et al., EWA Splatting (2002); Kerbl et al. (2023). CPU twin:
// src/reference/project.rs.

fn footprint(splat: Splat) -> Footprint {
    var f: Footprint;
    f.visible = false;
    let p = page.scale * (page.view_from_local * (splat.mean - page.eye_local));
    f.depth_m = p.z;
    f.opacity = splat.opacity * page.tint.a;
    if !(p.z > view.near_m) || !(f.opacity >= ALPHA_MIN) {
        return f;
    }
    // Rows of J * view_from_local * R * S, a 2x3 matrix M with covariance M M^T.
    let q = splat.rotation;
    let r = mat3x3<f32>(
        vec3<f32>(1.0 - 2.0 * (q.y * q.y + q.z * q.z), 2.0 * (q.x * q.y + q.w * q.z), 2.0 * (q.x * q.z - q.w * q.y)),
        vec3<f32>(2.0 * (q.x * q.y - q.w * q.z), 1.0 - 2.0 * (q.x * q.x + q.z * q.z), 2.0 * (q.y * q.z + q.w * q.x)),
        vec3<f32>(2.0 * (q.x * q.z + q.w * q.y), 2.0 * (q.y * q.z - q.w * q.x), 1.0 - 2.0 * (q.x * q.x + q.y * q.y)),
    );
    let s = splat.scale * page.scale;
    let w = page.view_from_local * r;
    let axes = mat3x3<f32>(w[0] * s.x, w[1] * s.y, w[2] * s.z);
    let inverse_z = 1.0 / p.z;
    let slope = clamp(p.xy * inverse_z, -view.slope_max, view.slope_max);
    let scale_px = view.focal_px * inverse_z;
    let row_x = vec3<f32>(axes[0].x, axes[1].x, axes[2].x);
    let row_y = vec3<f32>(axes[0].y, axes[1].y, axes[2].y);
    let row_z = vec3<f32>(axes[0].z, axes[1].z, axes[2].z);
    let m_x = scale_px.x * (row_x - slope.x * row_z);
    let m_y = scale_px.y * (row_y - slope.y * row_z);
    let xx = dot(m_x, m_x) + DILATION_PX2;
    let yy = dot(m_y, m_y) + DILATION_PX2;
    let xy = dot(m_x, m_y);
    // det / yy, the variance along x at fixed y, by Lagrange's identity
    // det = |m_x x m_y|^2 + d (|m_x|^2 + |m_y|^2) + d^2: every term is positive, where xx yy - xy^2
    // cancels to noise for a needle longer than a few hundred pixels. Divided early so that a splat
    // of kilometres does not overflow.
    let inverse_root = inverseSqrt(yy);
    let normal = cross(m_x, m_y * inverse_root);
    let bare = dot(normal, normal);
    let conditional = bare + DILATION_PX2 * (xx + yy - DILATION_PX2) * inverse_root * inverse_root;
    if page.antialiased != 0u {
        f.opacity *= sqrt(bare / conditional);
    }
    f.opacity = min(f.opacity, 1.0);
    if !(f.opacity >= ALPHA_MIN) {
        return f;
    }
    f.mean_px = view.focal_px * (p.xy * inverse_z) + view.centre_px;
    f.q_max = 2.0 * log(255.0 * f.opacity);
    // Half extents of the ellipse q = q_max; a splat is off the picture when its box is.
    let half_px = sqrt(f.q_max * vec2<f32>(xx, yy));
    f.visible = all(f.mean_px + half_px > vec2<f32>(0.5))
        && all(f.mean_px - half_px < view.size_px - 0.5);
    let l_x = inverseSqrt(conditional);
    f.l = vec3<f32>(l_x, -xy * inverse_root * inverse_root * l_x, inverse_root);
    return f;
}
