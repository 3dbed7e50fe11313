// Splats as effects find them where stand.wgsl has been before: in the rows that effects then write.
// `plain.wgsl` is what stands here where the stage "effects" poses, edits and colours them itself.

// A splat with its colour from where it is seen, before the handle's tint.
struct Drawn {
    splat: Splat,
    colour: vec3<f32>,
}

fn drawn(index: u32) -> Drawn {
    let place = row_place[index];
    let scale = row_scale[index].xyz;
    let splat = Splat(place.xyz, scale, row_rotation[index], place.w, vec3<f32>(0.0));
    return Drawn(splat, row_colour[index].xyz);
}

// Culling asks more exactly; here it would be the most expensive part to compile.
fn is_off(s: EffectSplat) -> bool {
    return false;
}
