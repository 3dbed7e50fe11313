// "compose" by one thread a pixel, for outputs that a shader can write: data-centre GPUs have little
// hardware for the triangle of compose.wgsl (0.15 ms against 0.02 at 1024x1024 on an H200).
// Joined with: compose.

@group(0) @binding(2) var picture_out: texture_storage_2d<rgba8unorm, write>;

@compute @workgroup_size(16, 16)
fn compose_stored(@builtin(global_invocation_id) id: vec3<u32>) {
    if all(id.xy < textureDimensions(picture_out)) {
        let at = vec2<i32>(id.xy);
        textureStore(picture_out, at, composed(at));
    }
}
