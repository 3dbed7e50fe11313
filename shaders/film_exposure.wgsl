// Stage "film reference": one instant of the brute-force film, added to the light of each row that was
// open then. Every instant is a whole render; nothing is reprojected.
// CPU twin: none, it is the truth that the film pass is measured against. Joined with: shared/film.

struct Instant {
    f: f32,
    // Half of the distance to the next instant, in units of f.
    half_step_f: f32,
    // Where this render went through the lens, metres.
    lens_m: vec2<f32>,
}

@group(0) @binding(0) var<storage, read> film: Film;
@group(0) @binding(1) var<storage, read> instant: Instant;
// The wide picture: colour times coverage, coverage.
@group(0) @binding(2) var colour_in: texture_2d<f32>;
// Sum of weights times light, sum of weights, a pixel of the output each.
@group(0) @binding(3) var<storage, read_write> sums: array<vec4<f32>>;
@group(0) @binding(4) var light_out: texture_storage_2d<rgba16float, write>;

fn shown(at: vec2<i32>) -> vec3<f32> {
    let place = clamp(at, vec2<i32>(0), vec2<i32>(textureDimensions(colour_in)) - 1);
    let colour = textureLoad(colour_in, place, 0);
    return colour.rgb + (1.0 - colour.a) * film.background.rgb;
}

@compute @workgroup_size(16, 16)
fn film_expose(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = vec2<f32>(id.xy) + 0.5;
    if any(at >= film.size_px) {
        return;
    }
    let row_f = dot(at / film.size_px - 0.5, film.readout_f);
    // The part of this instant's step in which the row is open. An exposure shorter than a step takes a
    // step's length, so that there is always an instant in it.
    let half = max(0.5 * film.exposure_f, instant.half_step_f);
    let open = min(row_f + half, instant.f + instant.half_step_f)
        - max(row_f - half, instant.f - instant.half_step_f);
    if open <= 0.0 {
        return;
    }
    // The thin lens: what lies in the plane that is sharp is seen at the same place through all of it.
    let slope = pixel_slope(at, film.size_px, film.focal_px, film.distortion)
        - instant.lens_m * film.focus_w;
    let place = slope * film.focal_px + film.margin_px + 0.5 * film.size_px;
    let base = floor(place - 0.5);
    let along = place - 0.5 - base;
    let wx = cubic_weights(along.x);
    let wy = cubic_weights(along.y);
    var colour = vec3<f32>(0.0);
    for (var y = 0; y < 4; y++) {
        for (var x = 0; x < 4; x++) {
            colour += wx[x] * wy[y] * shown(vec2<i32>(base) + vec2<i32>(x - 1, y - 1));
        }
    }
    let i = id.y * u32(film.size_px.x) + id.x;
    sums[i] += open * vec4<f32>(decode(max(colour, vec3<f32>(0.0))), 1.0);
}

@compute @workgroup_size(16, 16)
fn film_exposed(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(vec2<f32>(id.xy) + 0.5 >= film.size_px) {
        return;
    }
    let sum = sums[id.y * u32(film.size_px.x) + id.x];
    textureStore(light_out, id.xy, vec4<f32>(sum.rgb / max(sum.a, 1e-9), 1.0));
}
