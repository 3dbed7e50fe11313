// Stage "film": every pixel over its own slice of time. Each tap asks where its ray was at that
// instant, finds in the layers what it met, and the light of all taps is averaged.
// Result: linear light, before exposure and sensor (finish.wgsl).
// CPU twin: src/reference/film.rs. Joined with: shared/film.

@group(0) @binding(0) var<storage, read> film: Film;
@group(0) @binding(1) var front_in: texture_2d<f32>;
@group(0) @binding(2) var back_in: texture_2d<f32>;
@group(0) @binding(3) var depths_in: texture_2d<u32>;
@group(0) @binding(4) var tiles_in: texture_2d<f32>;
@group(0) @binding(5) var linear: sampler;
@group(0) @binding(6) var light_out: texture_storage_2d<rgba16float, write>;

// Parallax below this is not worth reading depth, px.
const PARALLAX_MIN_PX: f32 = 0.25;
// A tap is off by more than this only where it met nothing, px.
const BESIDE_PX: f32 = 0.5;
// Less than this of what lies behind is not looked for.
const OPEN_MIN: f32 = 0.001;
// Inverse depths this near to each other are those of one surface.
const SAME_SHARE: f32 = 0.05;
// Smears under this are one tap, px.
const STILL_PX: f32 = 0.02;
// Sampled by cubics below this, where a smear does not hide the softness of bilinear taps, px.
const CUBIC_BELOW_PX: f32 = 4.0;
// Fewest taps of a pixel that moves; as in src/film.rs.
const TAPS_MIN: f32 = 10.0;
// Taps that a disc out of focus needs, per square px of its box.
const TAPS_PER_DISC_PX2: f32 = 0.6;

struct Ray {
    // Wide pixel of a thing endlessly far away, and by how many px it moves per inverse metre.
    far_px: vec2<f32>,
    step_px_m: vec2<f32>,
}

// As `Path::ray` of src/film.rs, in wide pixels. `f` does not leave -1 to 1 but for rounding.
fn ray(slope: vec2<f32>, f: f32) -> Ray {
    let f2 = f * f;
    let turn = f * film.turn_1 + f2 * film.turn_2;
    let shift = f * film.shift_1 + f2 * film.shift_2;
    let zoom = 1.0 + f * film.zoom.x + f2 * film.zoom.y;
    let d = vec3<f32>(slope / zoom, 1.0);
    let once = cross(turn, d);
    let turned = d + once + 0.5 * cross(turn, once);
    let seen = turned.xy / turned.z;
    let step = shift.xy - shift.z * seen;
    let centre = film.margin_px + 0.5 * film.size_px;
    return Ray(seen * film.focal_px + centre, step * film.focal_px);
}

fn depths(at_px: vec2<f32>) -> vec2<f32> {
    let size = vec2<i32>(textureDimensions(depths_in));
    let at = clamp(vec2<i32>(floor(at_px)), vec2<i32>(0), size - 1);
    return unpack2x16float(textureLoad(depths_in, at, 0).r);
}

// Catmull-Rom by five bilinear samples instead of sixteen reads.
fn cubic(image: texture_2d<f32>, at_px: vec2<f32>, texel: vec2<f32>) -> vec4<f32> {
    let base = floor(at_px - 0.5) + 0.5;
    let along = at_px - base;
    let wx = cubic_weights(along.x);
    let wy = cubic_weights(along.y);
    let middle = vec2<f32>(wx.y + wx.z, wy.y + wy.z);
    let inner = (base + vec2<f32>(wx.z, wy.z) / middle) * texel;
    let before = (base - 1.0) * texel;
    let after = (base + 2.0) * texel;
    var sum = textureSampleLevel(image, linear, inner, 0.0) * (middle.x * middle.y);
    sum += textureSampleLevel(image, linear, vec2<f32>(before.x, inner.y), 0.0) * (wx.x * middle.y);
    sum += textureSampleLevel(image, linear, vec2<f32>(after.x, inner.y), 0.0) * (wx.w * middle.y);
    sum += textureSampleLevel(image, linear, vec2<f32>(inner.x, before.y), 0.0) * (middle.x * wy.x);
    sum += textureSampleLevel(image, linear, vec2<f32>(inner.x, after.y), 0.0) * (middle.x * wy.w);
    // The four corners are left out; the rest is made to sum to 1.
    let corners = (wx.x + wx.w) * (wy.x + wy.w);
    return max(sum / (1.0 - corners), vec4<f32>(0.0));
}

fn sampled(image: texture_2d<f32>, at_px: vec2<f32>, texel: vec2<f32>, is_cubic: bool) -> vec4<f32> {
    if is_cubic {
        return cubic(image, at_px, texel);
    }
    return textureSampleLevel(image, linear, at_px * texel, 0.0);
}

// As `decode`, within 0.03 of a 255th: powers would be a third of the stage's time. The polynomial is
// fitted to 1.3; what is brighter is rare.
fn decode_quickly(v: vec3<f32>) -> vec3<f32> {
    let c = max(v, vec3<f32>(0.0));
    if max(c.r, max(c.g, c.b)) > 1.3 {
        return decode(c);
    }
    var p = c * 0.05784235 - 0.24748182;
    p = c * p + 0.62803923;
    p = c * p + 0.52852508;
    p = c * p + 0.03212954;
    p = c * p + 0.00092168;
    return select(p, c / 12.92, c <= vec3<f32>(0.04045));
}

fn hash(at: vec2<u32>, seed: u32) -> f32 {
    var x = at.x * 0x9e3779b9u ^ at.y * 0x85ebca6bu ^ seed;
    x = (x ^ (x >> 16u)) * 0x7feb352du;
    x = (x ^ (x >> 15u)) * 0x846ca68bu;
    x = x ^ (x >> 16u);
    return f32(x >> 8u) / 16777216.0;
}

@compute @workgroup_size(16, 16)
fn film_taps(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = vec2<f32>(id.xy) + 0.5;
    if any(at >= film.size_px) {
        return;
    }
    let slope = pixel_slope(at, film.size_px, film.focal_px, film.distortion);
    let row_f = dot(at / film.size_px - 0.5, film.readout_f);
    let half_f = 0.5 * film.exposure_f;
    let texel = 1.0 / vec2<f32>(textureDimensions(front_in));

    // Around where the pixel's light comes from half-way through its exposure.
    let middle = ray(slope, row_f);
    let tile_size = vec2<i32>(textureDimensions(tiles_in));
    let tile = clamp(vec2<i32>(floor(middle.far_px / 16.0)), vec2<i32>(0), tile_size - 1);
    let found = textureLoad(tiles_in, tile, 0).rg;
    let is_split = found.y < 0.0;
    let around = vec2<f32>(found.x, select(found.y, -1.0 - found.y, is_split));
    let first = ray(slope, row_f - half_f);
    let last = ray(slope, row_f + half_f);
    let far_way = last.far_px - first.far_px;
    let step_way = last.step_px_m - first.step_px_m;
    let smear = max(length(far_way + around.x * step_way), length(far_way + around.y * step_way));
    let blur = film.aperture_m * film.focal_px
        * max(abs(around.x - film.focus_w), abs(around.y - film.focus_w));
    var taps = 1u;
    if max(smear, blur) > STILL_PX {
        let wanted = max(ceil(smear * film.taps_per_px) + 1.0, TAPS_PER_DISC_PX2 * blur * blur);
        taps = u32(clamp(wanted, TAPS_MIN, f32(film.taps_max)));
    }
    let step_max = max(length(middle.step_px_m), max(length(first.step_px_m), length(last.step_px_m)))
        + 0.5 * film.aperture_m * film.focal_px;
    let has_parallax = (around.x - around.y) * step_max > PARALLAX_MIN_PX;
    let is_cubic = max(smear, blur) < CUBIC_BELOW_PX;
    // Where nothing is split, inverse depth runs straight from one end of the smear to the other, as it
    // does over planes: two places say it all.
    var ends = vec2<f32>(0.5 * (around.x + around.y));
    if has_parallax && !is_split {
        for (var k = 0; k < 2; k++) {
            ends = vec2<f32>(
                depths(first.far_px + ends.x * first.step_px_m).x,
                depths(last.far_px + ends.y * last.step_px_m).x,
            );
        }
    }
    var inside = 0.5;
    if film.jitter == 1u {
        inside = hash(id.xy, film.seed);
    }

    // Between the ends of an exposure a ray goes by a parabola: a tap needs no rotation of its own.
    let far_1 = 0.5 * (last.far_px - first.far_px);
    let far_2 = 0.5 * (last.far_px + first.far_px) - middle.far_px;
    let step_1 = 0.5 * (last.step_px_m - first.step_px_m);
    let step_2 = 0.5 * (last.step_px_m + first.step_px_m) - middle.step_px_m;
    let slot = 2.0 / f32(taps);
    let has_lens = film.aperture_m > 0.0 && taps > 1u;
    var light = vec3<f32>(0.0);
    if !is_split {
        // All in one: the place of a tap is a cubic of its time. The back is whole everywhere, also where a
        // long smear leaves the tiles that were asked.
        let w = 0.5 * (ends.x + ends.y);
        let w_1 = 0.5 * (ends.y - ends.x);
        let place_0 = middle.far_px + w * middle.step_px_m;
        let place_1 = far_1 + w * step_1 + w_1 * middle.step_px_m;
        let place_2 = far_2 + w * step_2 + w_1 * step_1;
        let place_3 = w_1 * step_2;
        let is_root = film.split_reach_px == 0u;
        if is_root && !has_lens && !is_cubic {
            // As below, without all that costs.
            let at_0 = place_0 * texel;
            let at_1 = place_1 * texel;
            let at_2 = place_2 * texel;
            let at_3 = place_3 * texel;
            var u = inside * slot - 1.0;
            for (var i = 0u; i < taps; i++) {
                let place = at_0 + u * (at_1 + u * (at_2 + u * at_3));
                let root = textureSampleLevel(back_in, linear, place, 0.0).rgb;
                light += root * root;
                u += slot;
            }
            textureStore(light_out, id.xy, vec4<f32>(light / f32(taps), 1.0));
            return;
        }
        for (var i = 0u; i < taps; i++) {
            let u = (f32(i) + inside) * slot - 1.0;
            var place = place_0 + u * (place_1 + u * (place_2 + u * place_3));
            if has_lens {
                place += (w + u * w_1 - film.focus_w) * film.focal_px * film.lens_m[i].xy;
            }
            let shown = sampled(back_in, place, texel, is_cubic).rgb;
            if is_root {
                light += shown * shown;
            } else {
                light += decode_quickly(shown);
            }
        }
        textureStore(light_out, id.xy, vec4<f32>(light / f32(taps), 1.0));
        return;
    }
    for (var i = 0u; i < taps; i++) {
        let u = (f32(i) + inside) * slot - 1.0;
        var r = Ray(
            middle.far_px + u * (far_1 + u * far_2),
            middle.step_px_m + u * (step_1 + u * step_2),
        );
        if has_lens {
            let through_px_m = film.focal_px * film.lens_m[i].xy;
            r.far_px -= film.focus_w * through_px_m;
            r.step_px_m += through_px_m;
        }
        var w = ends.x;
        if has_parallax {
            // From the nearest thing about and only ever farther away: the first depth that meets
            // itself is what the ray meets first.
            w = around.x;
            for (var k = 0; k < 2; k++) {
                w = min(w, depths(r.far_px + w * r.step_px_m).x);
            }
        }
        let place = r.far_px + w * r.step_px_m;
        var here = vec2<f32>(w);
        if has_parallax {
            here = depths(place);
        }
        // A front of another depth is not what the ray meets: it hides that from the one picture there
        // is, or belongs to the other side of a split's rim. The back layer has it.
        let is_beside = abs(here.x - w) * length(r.step_px_m) > BESIDE_PX;
        var front = vec4<f32>(0.0);
        if !is_beside {
            front = sampled(front_in, place, texel, is_cubic);
        }
        var colour = front.rgb;
        var open = 1.0 - front.a;
        if open > OPEN_MIN {
            // What lies behind. Where another split runs, that may be the front.
            let behind = depths(r.far_px + here.y * r.step_px_m);
            if behind.x != behind.y && abs(behind.x - here.y) <= SAME_SHARE * here.y {
                let second = sampled(front_in, r.far_px + behind.x * r.step_px_m, texel, is_cubic);
                colour += open * second.rgb;
                open *= 1.0 - second.a;
            }
            if open > OPEN_MIN {
                let last = sampled(back_in, r.far_px + behind.y * r.step_px_m, texel, is_cubic);
                colour += open * last.rgb;
            }
        }
        light += decode_quickly(colour);
    }
    textureStore(light_out, id.xy, vec4<f32>(light / f32(taps), 1.0));
}
