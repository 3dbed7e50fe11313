// Display-space colour of a splat along a direction: band 0 plus bands 1 to 3.
// Basis constants of the INRIA trainer; Rust twin src/scene/sh.rs.

fn splat_colour(index: u32, dc: vec3<f32>, d: vec3<f32>) -> vec3<f32> {
    var colour = vec3<f32>(0.5) + 0.28209479177387814 * dc;
    let degree = page.sh_degree;
    if degree == 0u {
        return colour;
    }
    let x = d.x;
    let y = d.y;
    let z = d.z;
    colour += 0.4886025119029199 * (z * load_sh(index, degree, 1u) - y * load_sh(index, degree, 0u)
        - x * load_sh(index, degree, 2u));
    if degree == 1u {
        return colour;
    }
    let xx = x * x;
    let yy = y * y;
    let zz = z * z;
    colour += 1.0925484305920792 * x * y * load_sh(index, degree, 3u)
        - 1.0925484305920792 * y * z * load_sh(index, degree, 4u)
        + 0.31539156525252005 * (2.0 * zz - xx - yy) * load_sh(index, degree, 5u)
        - 1.0925484305920792 * x * z * load_sh(index, degree, 6u)
        + 0.5462742152960396 * (xx - yy) * load_sh(index, degree, 7u);
    if degree == 2u {
        return colour;
    }
    colour += -0.5900435899266435 * y * (3.0 * xx - yy) * load_sh(index, degree, 8u)
        + 2.890611442640554 * x * y * z * load_sh(index, degree, 9u)
        - 0.4570457994644658 * y * (4.0 * zz - xx - yy) * load_sh(index, degree, 10u)
        + 0.3731763325901154 * z * (2.0 * zz - 3.0 * xx - 3.0 * yy) * load_sh(index, degree, 11u)
        - 0.4570457994644658 * x * (4.0 * zz - xx - yy) * load_sh(index, degree, 12u)
        + 1.445305721320277 * z * (xx - yy) * load_sh(index, degree, 13u)
        - 0.5900435899266435 * x * (xx - 3.0 * yy) * load_sh(index, degree, 14u);
    return colour;
}

// The colour of a splat as it stands, from where it is seen, before the handle's tint.
fn seen_colour(index: u32, standing: Standing) -> vec3<f32> {
    // Coefficients turn with the bones, so it is the line of sight that is turned back.
    let direction = turned_back(standing.turn, normalize(standing.splat.mean - page.eye_local));
    return max(splat_colour(index, standing.splat.dc, direction), vec3<f32>(0.0)) * standing.tint;
}
