// Splats as they are drawn where a draw has effects: each goes through `effected`, which the host writes
// (src/gpu/effects.rs) out of the effects' own texts. Joined with shared/effect.wgsl. Twin:
// src/reference/effect.rs. `plain.wgsl` is what stands here where there are none.

// Way along the surface, one a splat. One entry where there is no spread.
@group(1) @binding(3) var<storage, read> arrivals: array<f32>;

// A splat with its colour from where it is seen, before the handle's tint.
struct Drawn {
    splat: Splat,
    colour: vec3<f32>,
}

fn drawn_splat(index: u32) -> Splat {
    return drawn(index).splat;
}

fn drawn(index: u32) -> Drawn {
    let standing = load_standing(index);
    let splat = standing.splat;
    let world = page.world_translation + turned(page.world_rotation, page.scale * splat.mean);
    var arrival = NEVER;
    if page.has_arrivals != 0u {
        arrival = arrivals[index];
    }
    let after = effected(EffectSplat(
        splat.mean,
        splat.scale,
        splat.rotation,
        seen_colour(index, standing),
        splat.opacity,
        load_splat(index).mean,
        world,
        page.world_rotation,
        page.scale,
        arrival,
        page.first_row + index,
    ));
    return Drawn(
        Splat(after.centre_m, after.scale_m, after.rotation, after.opacity, splat.dc),
        after.colour,
    );
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

// Brightest colour that an effect gives; as in src/effect/mod.rs.
const EFFECT_COLOUR_MAX: f32 = 64.0;
