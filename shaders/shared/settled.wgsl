// Splats as they are drawn where a draw has effects: as the stage "effects" left them. `plain.wgsl` is
// what stands here where there are none. The writer's side is rows.wgsl.

@group(1) @binding(0) var<storage, read> settled_place: array<vec4<f32>>;
@group(1) @binding(1) var<storage, read> settled_scale: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> settled_rotation: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> settled_colour: array<vec4<f32>>;

// A splat with its colour from where it is seen, before the handle's tint.
struct Drawn {
    splat: Splat,
    colour: vec3<f32>,
}

// Of what is not seen, nothing but the place is read.
fn drawn_splat(index: u32) -> Splat {
    let place = settled_place[index];
    var splat = Splat(place.xyz, vec3<f32>(0.0), vec4<f32>(0.0, 0.0, 0.0, 1.0), place.w, vec3<f32>(0.0));
    if place.w != 0.0 {
        splat.scale = settled_scale[index].xyz;
        splat.rotation = settled_rotation[index];
    }
    return splat;
}

fn drawn(index: u32) -> Drawn {
    return Drawn(drawn_splat(index), settled_colour[index].xyz);
}
