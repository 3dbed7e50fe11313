// Stage "finish": from light to a picture, as lens, sensor and camera would. In this order: lateral
// chromatic aberration, exposure and white balance, falloff, halation, noise, shoulder, encoding,
// sharpening, 8 bits. `glow_bright` and `glow_blur_*` make the small picture of what halation adds.
// CPU twin: src/reference/finish.rs. Joined with: shared/film.

@group(0) @binding(0) var<storage, read> film: Film;
@group(0) @binding(1) var light_in: texture_2d<f32>;
@group(0) @binding(2) var glow_in: texture_2d<f32>;
@group(0) @binding(3) var linear: sampler;
@group(0) @binding(4) var picture_out: texture_storage_2d<rgba8unorm, write>;

// Halation is light that came back through the red layer first.
const HALATION_TINT: vec3<f32> = vec3<f32>(1.0, 0.35, 0.12);
// A grain is a pixel of a picture with so many rows.
const GRAIN_ROWS: f32 = 1080.0;

// Light at a place of the picture, px: Catmull-Rom by five bilinear samples.
fn cubic_light(at_px: vec2<f32>) -> vec3<f32> {
    let texel = 1.0 / film.size_px;
    let base = floor(at_px - 0.5) + 0.5;
    let along = at_px - base;
    let wx = cubic_weights(along.x);
    let wy = cubic_weights(along.y);
    let middle = vec2<f32>(wx.y + wx.z, wy.y + wy.z);
    let inner = (base + vec2<f32>(wx.z, wy.z) / middle) * texel;
    let before = (base - 1.0) * texel;
    let after = (base + 2.0) * texel;
    var sum = light_at(inner) * (middle.x * middle.y);
    sum += light_at(vec2<f32>(before.x, inner.y)) * (wx.x * middle.y);
    sum += light_at(vec2<f32>(after.x, inner.y)) * (wx.w * middle.y);
    sum += light_at(vec2<f32>(inner.x, before.y)) * (middle.x * wy.x);
    sum += light_at(vec2<f32>(inner.x, after.y)) * (middle.x * wy.w);
    let corners = (wx.x + wx.w) * (wy.x + wy.w);
    return max(sum / (1.0 - corners), vec3<f32>(0.0));
}

fn light_at(share: vec2<f32>) -> vec3<f32> {
    return textureSampleLevel(light_in, linear, share, 0.0).rgb;
}

// PCG in three dimensions: Jarzynski and Olano, "Hash Functions for GPU Rendering", 2020.
fn pcg3d(seed: vec3<u32>) -> vec3<u32> {
    var v = seed * 1664525u + 1013904223u;
    v.x += v.y * v.z;
    v.y += v.z * v.x;
    v.z += v.x * v.y;
    v ^= v >> vec3<u32>(16u);
    v.x += v.y * v.z;
    v.y += v.z * v.x;
    v.z += v.x * v.y;
    return v;
}

// Three normal deviates of a grain (Box and Muller).
fn deviates(grain: vec2<u32>) -> vec3<f32> {
    let a = pcg3d(vec3<u32>(grain, film.seed));
    let b = pcg3d(vec3<u32>(grain, ~film.seed));
    let u = (vec3<f32>(a >> vec3<u32>(8u)) + 0.5) / 16777216.0;
    let v = vec3<f32>(b >> vec3<u32>(8u)) / 16777216.0;
    return sqrt(-2.0 * log(u)) * cos(6.2831853 * v);
}

// The encoded picture before sharpening.
fn developed(at: vec2<i32>) -> vec3<f32> {
    let size = vec2<i32>(film.size_px);
    let place = clamp(at, vec2<i32>(0), size - 1);
    let px = vec2<f32>(place) + 0.5;
    var light = textureLoad(light_in, place, 0).rgb;
    let from_centre = px - 0.5 * film.size_px;
    if film.aberration != 0.0 {
        light.r = cubic_light(0.5 * film.size_px + from_centre / (1.0 + film.aberration)).r;
        light.b = cubic_light(0.5 * film.size_px + from_centre / (1.0 - film.aberration)).b;
    }
    let r2 = dot(from_centre, from_centre) / (0.25 * dot(film.size_px, film.size_px));
    let dimming = 1.0 + film.falloff * r2;
    light *= film.balance / (dimming * dimming);
    if film.halation_strength > 0.0 {
        let glow = textureSampleLevel(glow_in, linear, px / film.size_px, 0.0).rgb;
        light += film.halation_strength * HALATION_TINT * glow;
    }
    if film.noise_shot > 0.0 || film.noise_read > 0.0 {
        // On a smaller picture a pixel is the mean of several grains; on a larger one several share one.
        let scale = GRAIN_ROWS / film.size_px.y;
        let grain = vec2<u32>(px * min(scale, 1.0));
        let deviation = sqrt(film.noise_shot * light + film.noise_read) / max(scale, 1.0);
        light = max(light + deviation * deviates(grain), vec3<f32>(0.0));
    }
    if film.shoulder > 0.0 {
        let over = max(light - (1.0 - film.shoulder), vec3<f32>(0.0)) / film.shoulder;
        light = min(light, vec3<f32>(1.0 - film.shoulder)) + film.shoulder * (1.0 - exp(-over));
    }
    return min(encode(light), vec3<f32>(1.0));
}

// A group makes so many pixels a side, and a rim of one for the sharpening of others' neighbours.
const SIDE: u32 = 32u;
const EDGE: u32 = 34u;
var<workgroup> tile: array<vec3<f32>, 1156>;

@compute @workgroup_size(16, 16)
fn finish(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var i = lane; i < EDGE * EDGE; i += 256u) {
        tile[i] = developed(vec2<i32>(group.xy * SIDE) + vec2<i32>(i32(i % EDGE), i32(i / EDGE)) - 1);
    }
    workgroupBarrier();
    for (var i = 0u; i < 4u; i++) {
        let own = local.xy + 16u * vec2<u32>(i & 1u, i >> 1u);
        let at = group.xy * SIDE + own;
        if any(vec2<f32>(at) >= film.size_px) {
            continue;
        }
        let here = (own.y + 1u) * EDGE + own.x + 1u;
        var colour = tile[here];
        if film.sharpen > 0.0 {
            let luma = vec3<f32>(0.2126, 0.7152, 0.0722);
            let around = tile[here - 1u] + tile[here + 1u] + tile[here - EDGE] + tile[here + EDGE];
            colour += film.sharpen * dot(luma, colour - 0.25 * around);
        }
        textureStore(picture_out, at, vec4<f32>(floor(saturate(colour) * 255.0 + 0.5) / 255.0, 1.0));
    }
}

// --- glow: what is brighter than the threshold, at an eighth of the size ------------------------

@group(0) @binding(0) var<storage, read> glow_film: Film;
@group(0) @binding(1) var glow_source: texture_2d<f32>;
@group(0) @binding(2) var glow_out: texture_storage_2d<rgba16float, write>;

const GLOW_SHRINK: i32 = 8;

var<workgroup> rows: array<vec3<f32>, 256>;

// Pixels of the glow by rows of eight: each thread adds up one row of one pixel.
@compute @workgroup_size(8, 8, 4)
fn glow_bright(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let size = vec2<i32>(textureDimensions(glow_source));
    let own = group.xy * vec2<u32>(8u, 4u) + local.xz;
    let first = vec2<i32>(own) * GLOW_SHRINK + vec2<i32>(0, i32(local.y));
    var sum = vec3<f32>(0.0);
    for (var x = 0; x < GLOW_SHRINK; x++) {
        let place = min(first + vec2<i32>(x, 0), size - 1);
        let light = textureLoad(glow_source, place, 0).rgb * glow_film.balance;
        sum += max(light - glow_film.halation_threshold, vec3<f32>(0.0));
    }
    rows[lane] = sum;
    workgroupBarrier();
    if local.y > 0u || any(own >= textureDimensions(glow_out)) {
        return;
    }
    for (var y = 1u; y < 8u; y++) {
        sum += rows[lane + 8u * y];
    }
    textureStore(glow_out, own, vec4<f32>(sum / f32(GLOW_SHRINK * GLOW_SHRINK), 1.0));
}

fn blurred(at: vec2<i32>, along: vec2<i32>) -> vec3<f32> {
    let size = vec2<i32>(textureDimensions(glow_source));
    let sigma = glow_film.halation_sigma_px;
    let reach = i32(min(ceil(2.5 * sigma), 40.0));
    var sum = vec3<f32>(0.0);
    var weights = 0.0;
    for (var i = -reach; i <= reach; i++) {
        let weight = exp(-0.5 * f32(i * i) / (sigma * sigma));
        sum += weight * textureLoad(glow_source, clamp(at + i * along, vec2<i32>(0), size - 1), 0).rgb;
        weights += weight;
    }
    return sum / weights;
}

@compute @workgroup_size(8, 8)
fn glow_blur_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if all(id.xy < textureDimensions(glow_out)) {
        textureStore(glow_out, id.xy, vec4<f32>(blurred(vec2<i32>(id.xy), vec2<i32>(1, 0)), 1.0));
    }
}

@compute @workgroup_size(8, 8)
fn glow_blur_columns(@builtin(global_invocation_id) id: vec3<u32>) {
    if all(id.xy < textureDimensions(glow_out)) {
        textureStore(glow_out, id.xy, vec4<f32>(blurred(vec2<i32>(id.xy), vec2<i32>(0, 1)), 1.0));
    }
}
