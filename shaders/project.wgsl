// Stage "project": which splats are seen, and what they look like on the picture.
// Three kernels: `cull` marks survivors, `compact` lists them in order, `project` writes records.
// The list keeps page and row order (no atomics decide a place), so equal frames give equal
// buffers and equal pictures. CPU twin: src/reference/project.rs.
// Joined with: shared/types, footprint, tile_span, and either quaternion, splat_packed or splat_float, edit, sh
// and plain, or settled.

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> page: Page;

// --- cull: one thread a splat -----------------------------------------------------------------

@group(2) @binding(0) var<storage, read_write> cull_masks: array<u32>;
@group(2) @binding(1) var<storage, read_write> cull_counts: array<u32>;

var<workgroup> group_mask: array<atomic<u32>, 8>;

@compute @workgroup_size(256)
fn cull(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group.x * 256u + lane;
    if lane < 8u {
        atomicStore(&group_mask[lane], 0u);
    }
    workgroupBarrier();
    if index < page.count {
        if footprint(drawn_splat(index)).visible {
            atomicOr(&group_mask[lane >> 5u], 1u << (lane & 31u));
        }
    }
    workgroupBarrier();
    let slot = page.first_group + group.x;
    if lane < 8u {
        cull_masks[slot * 8u + lane] = atomicLoad(&group_mask[lane]);
    }
    if lane == 0u {
        var count = 0u;
        for (var i = 0u; i < 8u; i++) {
            count += countOneBits(atomicLoad(&group_mask[i]));
        }
        cull_counts[slot] = count;
    }
}

// --- compact: the same thread writes its number at its rank -------------------------------------

@group(2) @binding(0) var<storage, read> compact_masks: array<u32>;
@group(2) @binding(1) var<storage, read> compact_offsets: array<u32>;
@group(2) @binding(2) var<storage, read_write> compact_visible: array<u32>;

@compute @workgroup_size(256)
fn compact(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let slot = page.first_group + group.x;
    let word = lane >> 5u;
    let bit = lane & 31u;
    let mask = compact_masks[slot * 8u + word];
    if (mask & (1u << bit)) == 0u {
        return;
    }
    var rank = countOneBits(mask & ((1u << bit) - 1u));
    for (var i = 0u; i < word; i++) {
        rank += countOneBits(compact_masks[slot * 8u + i]);
    }
    let place = compact_offsets[slot] + rank;
    if place < view.visible_capacity {
        compact_visible[place] = group.x * 256u + lane;
    }
}

// --- project: one thread a survivor of this page ------------------------------------------------

@group(2) @binding(0) var<storage, read> project_visible: array<u32>;
@group(2) @binding(1) var<storage, read> project_offsets: array<u32>;
@group(2) @binding(2) var<storage, read_write> record_shape: array<vec4<f32>>;
@group(2) @binding(3) var<storage, read_write> record_form: array<vec4<f32>>;
@group(2) @binding(4) var<storage, read_write> record_colour: array<vec4<f32>>;
@group(2) @binding(5) var<storage, read_write> sort_keys: array<u32>;
@group(2) @binding(6) var<storage, read_write> sort_values: array<u32>;

@compute @workgroup_size(256)
fn project(@builtin(global_invocation_id) id: vec3<u32>) {
    // Offsets hold one more entry than there are groups: the total.
    let group_end = page.first_group + (page.count + 255u) / 256u;
    let place = project_offsets[page.first_group] + id.x;
    if place >= min(project_offsets[group_end], view.visible_capacity) {
        return;
    }
    let index = project_visible[place];
    let splat = drawn(index);
    let f = footprint(splat.splat);
    let colour = splat.colour * page.tint.rgb;
    record_shape[place] = vec4<f32>(f.mean_px, f.depth_m, f.opacity);
    record_form[place] = vec4<f32>(f.l, bitcast<f32>(tile_total(f)));
    record_colour[place] = vec4<f32>(colour, bitcast<f32>(index));
    // Depth is positive, so its bits order as it does.
    sort_keys[place] = bitcast<u32>(f.depth_m);
    sort_values[place] = place;
}
