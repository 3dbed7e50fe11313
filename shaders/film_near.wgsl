// Stage "film near": the nearest and the farthest depth of each tile of 16x16 px and its neighbours,
// from which taps start and by which they are counted.
// CPU twin: src/reference/film.rs.

@group(0) @binding(0) var depths_in: texture_2d<u32>;
@group(0) @binding(1) var tiles_in: texture_2d<f32>;
// Inverse depths: nearest, farthest.
@group(0) @binding(2) var tiles_out: texture_storage_2d<rg32float, write>;

// Floats above 0 are ordered as their bits.
var<workgroup> near: atomic<u32>;
var<workgroup> far: atomic<u32>;

@compute @workgroup_size(16, 16)
fn film_near(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if lane == 0u {
        atomicStore(&near, 0u);
        atomicStore(&far, 0x7f800000u);
    }
    workgroupBarrier();
    if all(id.xy < textureDimensions(depths_in)) {
        let depths = unpack2x16float(textureLoad(depths_in, id.xy, 0).r);
        atomicMax(&near, bitcast<u32>(max(depths.x, depths.y)));
        atomicMin(&far, bitcast<u32>(depths.y));
    }
    workgroupBarrier();
    if lane == 0u {
        let tile = vec4<f32>(bitcast<f32>(atomicLoad(&near)), bitcast<f32>(atomicLoad(&far)), 0.0, 0.0);
        textureStore(tiles_out, group.xy, tile);
    }
}

@compute @workgroup_size(16, 16)
fn film_around(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = vec2<i32>(textureDimensions(tiles_in));
    let at = vec2<i32>(id.xy);
    if any(at >= size) {
        return;
    }
    var around = textureLoad(tiles_in, at, 0).rg;
    for (var y = -1; y <= 1; y++) {
        for (var x = -1; x <= 1; x++) {
            let tile = textureLoad(tiles_in, clamp(at + vec2<i32>(x, y), vec2<i32>(0), size - 1), 0).rg;
            around = vec2<f32>(max(around.x, tile.x), min(around.y, tile.y));
        }
    }
    textureStore(tiles_out, id.xy, vec4<f32>(around, 0.0, 0.0));
}
