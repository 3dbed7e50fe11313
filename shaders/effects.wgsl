// Stage "effects": what a draw's effects make of its splats, before culling. One thread a splat.
// The host writes `effected` (src/gpu/effects.rs) out of the effects' own texts. CPU twin:
// src/reference/effect.rs.
// Joined with: shared/types, quaternion, splat_packed or splat_float, effect, the effects' own texts,
// rows, and either edit, sh, plain and off, or stood.

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> page: Page;
// Way along the surface, one a splat. One entry where there is no spread.
@group(1) @binding(3) var<storage, read> arrivals: array<f32>;

// Brightest colour that an effect gives; as in src/effect/mod.rs.
const EFFECT_COLOUR_MAX: f32 = 64.0;

@compute @workgroup_size(256)
fn effects(@builtin(global_invocation_id) id: vec3<u32>) {
    let index = id.x;
    if index >= page.count {
        return;
    }
    let before = drawn(index);
    let splat = before.splat;
    var arrival = NEVER;
    if page.has_arrivals != 0u {
        arrival = arrivals[index];
    }
    let after = effected(EffectSplat(
        splat.mean,
        splat.scale,
        splat.rotation,
        before.colour,
        splat.opacity,
        load_splat(index).mean,
        page.world_translation + turned(page.world_rotation, page.scale * splat.mean),
        page.world_rotation,
        page.scale,
        arrival,
        page.first_row + index,
    ));
    // What is not drawn costs one row.
    if !(after.opacity * page.tint.a >= ALPHA_MIN) || is_off(after) {
        row_place[index] = vec4<f32>(after.centre_m, 0.0);
        return;
    }
    row_place[index] = vec4<f32>(after.centre_m, after.opacity);
    row_scale[index] = vec4<f32>(after.scale_m, 0.0);
    row_rotation[index] = after.rotation;
    row_colour[index] = vec4<f32>(after.colour, 0.0);
}

// What an effect may change, within what can be drawn.
fn settled(before: EffectSplat, after: EffectSplat) -> EffectSplat {
    var s = before;
    s.centre_m = after.centre_m;
    // The largest splat, as in src/gpu/pack.rs.
    s.scale_m = min(after.scale_m, vec3<f32>(8886110.5));
    let length_squared = dot(after.rotation, after.rotation);
    s.rotation = select(vec4<f32>(0.0, 0.0, 0.0, 1.0), after.rotation * inverseSqrt(length_squared), length_squared > 1e-12);
    s.colour = clamp(after.colour, vec3<f32>(0.0), vec3<f32>(EFFECT_COLOUR_MAX));
    // What is no number is not drawn. Written so that a comparison with one fails.
    let most = vec3<f32>(1e30);
    let is_number = all(abs(after.centre_m) < most) && all(abs(after.scale_m) < most)
        && abs(after.opacity) < most.x && length_squared < most.x;
    s.opacity = select(0.0, after.opacity, is_number);
    return s;
}
