// Stage "compose": splats over the background, rounded to 8 bits here, since adapters differ in how
// they round what is stored.
// The background's alpha is kept; the result's alpha is straight (not multiplied in).
// Joined with compose_store.wgsl where a shader can write the output. CPU twin:
// src/reference/compose.rs.

struct Compose {
    // Display space, straight alpha.
    background: vec4<f32>,
}

@group(0) @binding(0) var<uniform> compose: Compose;
@group(0) @binding(1) var splats_in: texture_2d<f32>;

@vertex
fn corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {
    // One triangle that covers the picture.
    return vec4<f32>(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn compose_pixel(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    return composed(vec2<i32>(position.xy));
}

fn composed(at: vec2<i32>) -> vec4<f32> {
    let front = textureLoad(splats_in, at, 0);
    let behind = compose.background.a * (1.0 - front.a);
    let alpha = front.a + behind;
    let colour = front.rgb + compose.background.rgb * behind;
    let straight = vec4<f32>(select(colour / alpha, vec3<f32>(0.0), alpha <= 0.0), alpha);
    return floor(saturate(straight) * 255.0 + 0.5) / 255.0;
}
