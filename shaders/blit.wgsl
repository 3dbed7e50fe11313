// Copies a finished picture into an output that shaders cannot write.

@group(0) @binding(0) var picture_in: texture_2d<f32>;

@vertex
fn corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {
    // One triangle that covers the picture.
    return vec4<f32>(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn blit(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    return textureLoad(picture_in, vec2<i32>(position.xy), 0);
}
