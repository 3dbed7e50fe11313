// Stage "film near": the nearest and the farthest depth of each tile of 16x16 px and its neighbours,
// from which taps start and by which they are counted.
// CPU twin: src/reference/film.rs.

@group(0) @binding(0) var depths_in: texture_2d<u32>;
@group(0) @binding(1) var tiles_in: texture_2d<f32>;
// Inverse depths: nearest, farthest; the latter less than 0, as -1 - w, where any pixel is split.
@group(0) @binding(2) var tiles_out: texture_storage_2d<rg32float, write>;

// Floats above 0 are ordered as their bits.
var<workgroup> near: atomic<u32>;
var<workgroup> far: atomic<u32>;
var<workgroup> splits: atomic<u32>;

@compute @workgroup_size(16, 16)
fn film_near(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if lane == 0u {
        atomicStore(&near, 0u);
        atomicStore(&far, 0x7f800000u);
        atomicStore(&splits, 0u);
    }
    workgroupBarrier();
    if all(id.xy < textureDimensions(depths_in)) {
        let depths = unpack2x16float(textureLoad(depths_in, id.xy, 0).r);
        atomicMax(&near, bitcast<u32>(max(depths.x, depths.y)));
        atomicMin(&far, bitcast<u32>(depths.y));
        if depths.x != depths.y {
            atomicStore(&splits, 1u);
        }
    }
    workgroupBarrier();
    if lane == 0u {
        let w = bitcast<f32>(atomicLoad(&far));
        let marked = select(w, -1.0 - w, atomicLoad(&splits) == 1u);
        textureStore(tiles_out, group.xy, vec4<f32>(bitcast<f32>(atomicLoad(&near)), marked, 0.0, 0.0));
    }
}

@compute @workgroup_size(16, 16)
fn film_around(@builtin(global_invocation_id) id: vec3<u32>) {
    let size = vec2<i32>(textureDimensions(tiles_in));
    let at = vec2<i32>(id.xy);
    if any(at >= size) {
        return;
    }
    var near_w = 0.0;
    var far_w = 3e38;
    var is_split = false;
    for (var y = -1; y <= 1; y++) {
        for (var x = -1; x <= 1; x++) {
            let tile = textureLoad(tiles_in, clamp(at + vec2<i32>(x, y), vec2<i32>(0), size - 1), 0).rg;
            near_w = max(near_w, tile.x);
            far_w = min(far_w, select(tile.y, -1.0 - tile.y, tile.y < 0.0));
            is_split = is_split || tile.y < 0.0;
        }
    }
    textureStore(tiles_out, id.xy, vec4<f32>(near_w, select(far_w, -1.0 - far_w, is_split), 0.0, 0.0));
}
