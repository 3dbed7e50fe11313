// What the stages of the film pass share: its numbers, the way of a ray, colour spaces.
//
// Space: view space of the camera at f = 0 (x right, y down, z forward, metres); "wide" pixels are
// those of the overscanned picture. Depth is kept as its inverse, 1/metres, 0 being endlessly far:
// where a point is seen from elsewhere is linear in it. The Rust mirror is src/gpu/film.rs, the maths
// is that of src/film.rs.

struct Film {
    // The way of the camera: x(f) = f x_1 + f^2 x_2.
    turn_1: vec3<f32>,
    exposure_f: f32,
    turn_2: vec3<f32>,
    focal_px: f32,
    shift_1: vec3<f32>,
    aperture_m: f32,
    shift_2: vec3<f32>,
    // Inverse of the distance that is sharp.
    focus_w: f32,
    background: vec4<f32>,
    zoom: vec2<f32>,
    // Direction in which rows get later, times the readout in units of f.
    readout_f: vec2<f32>,
    // Of the picture, and the margin round it on the wide one.
    size_px: vec2<f32>,
    margin_px: vec2<f32>,
    // Gain and white balance.
    balance: vec3<f32>,
    distortion: f32,
    halation_strength: f32,
    halation_threshold: f32,
    // Standard deviation, px of the glow's own small picture.
    halation_sigma_px: f32,
    aberration: f32,
    // (1 + falloff r^2)^-2, r in half diagonals.
    falloff: f32,
    sharpen: f32,
    shoulder: f32,
    noise_shot: f32,
    noise_read: f32,
    // Largest way of the lens (shutter and opening) times the focal length, px m: times an inverse
    // depth it is the farthest that a thing at that depth moves.
    reach_px_m: f32,
    // How far a split reaches from its edge at most, half-size px.
    split_reach_px: u32,
    seed: u32,
    // 1 where taps are moved inside their slots.
    jitter: u32,
    plane_count: u32,
    // Taps for every px of a smear.
    taps_per_px: f32,
    taps_max: u32,
    // view-space normal, and the lens's distance from the plane along it.
    planes: array<vec4<f32>, 8>,
    // Where each tap goes through the lens (x, y): a sequence that fills the disc evenly however many there
    // are, and is no order of time.
    lens_m: array<vec4<f32>, 48>,
}

// Slope of the ray of an output pixel at f = own time, before the camera moves.
fn pixel_slope(at_px: vec2<f32>, film_size: vec2<f32>, focal_px: f32, distortion: f32) -> vec2<f32> {
    let from_centre = at_px - 0.5 * film_size;
    let r2 = dot(from_centre, from_centre) / (0.25 * dot(film_size, film_size));
    return from_centre * (1.0 + distortion * r2) / focal_px;
}

// sRGB to linear light and back; above 1 the curve goes on.
fn decode(v: vec3<f32>) -> vec3<f32> {
    let c = max(v, vec3<f32>(0.0));
    return select(pow((c + 0.055) / 1.055, vec3<f32>(2.4)), c / 12.92, c <= vec3<f32>(0.04045));
}

fn encode(v: vec3<f32>) -> vec3<f32> {
    let c = max(v, vec3<f32>(0.0));
    return select(1.055 * pow(c, vec3<f32>(1.0 / 2.4)) - 0.055, c * 12.92, c <= vec3<f32>(0.0031308));
}

// Weights of the four samples round a place that lies `x` after the second one (Catmull-Rom).
fn cubic_weights(x: f32) -> vec4<f32> {
    let x2 = x * x;
    let x3 = x2 * x;
    return vec4<f32>(
        -0.5 * x + x2 - 0.5 * x3,
        1.0 - 2.5 * x2 + 1.5 * x3,
        0.5 * x + 2.0 * x2 - 1.5 * x3,
        -0.5 * x2 + 0.5 * x3,
    );
}
