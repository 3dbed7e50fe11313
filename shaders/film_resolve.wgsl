// Stage "film layers", after blending: what film_quads.wgsl left becomes what film_tiles.wgsl leaves.
// Joined with: shared/film, shared/film_layers.

@group(0) @binding(0) var<storage, read> film: Film;
@group(0) @binding(1) var split_in: texture_2d<f32>;
@group(0) @binding(2) var front_in: texture_2d<f32>;
@group(0) @binding(3) var front_depth_in: texture_2d<f32>;
@group(0) @binding(4) var back_in: texture_2d<f32>;
@group(0) @binding(5) var back_depth_in: texture_2d<f32>;
@group(0) @binding(6) var front_out: texture_storage_2d<rgba16float, write>;
@group(0) @binding(7) var back_out: texture_storage_2d<rgba16float, write>;
@group(0) @binding(8) var depths_out: texture_storage_2d<r32uint, write>;

@compute @workgroup_size(16, 16)
fn film_resolve(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= textureDimensions(front_out)) {
        return;
    }
    let at = vec2<i32>(id.xy);
    let edge = textureLoad(split_in, at / 2, 0).rg;
    let front = textureLoad(front_in, at, 0);
    let back = textureLoad(back_in, at, 0);
    let layers = finish_layers(
        Layer(front.rgb, front.a, textureLoad(front_depth_in, at, 0).r),
        Layer(back.rgb, back.a, textureLoad(back_depth_in, at, 0).r),
        edge,
        film.background.rgb,
        film.split_reach_px == 0u,
    );
    textureStore(front_out, id.xy, layers.front);
    textureStore(back_out, id.xy, layers.back);
    textureStore(depths_out, id.xy, vec4<u32>(layers.depths, 0u, 0u, 0u));
}
