// Stage "tiles": from records to one depth-sorted list a tile. `count_pairs` sums the tiles of each
// block of 256 records, `emit_pairs` writes (key, record) pairs; a stable sort by key follows, then
// `find_ranges` marks where each tile's list lies and puts splats of one key in order. The key is tile and depth together where both fit
// 32 bits; else it is the tile alone, and records come sorted by depth.
// Joined with: shared/types, shared/tile_span.

@group(0) @binding(0) var<uniform> view: View;

@group(1) @binding(0) var<storage, read> counters: Counters;
// Record numbers; by depth, nearest first, where view.depth_bits is 0.
@group(1) @binding(1) var<storage, read> order: array<u32>;
@group(1) @binding(2) var<storage, read> record_shape: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> record_form: array<vec4<f32>>;
// Per block of 256 records: counts, then (after the scan) offsets.
@group(1) @binding(4) var<storage, read_write> block_pairs: array<u32>;
@group(1) @binding(5) var<storage, read_write> pair_keys: array<u32>;
@group(1) @binding(6) var<storage, read_write> pair_values: array<u32>;

var<workgroup> scanned: array<u32, 256>;
var<workgroup> large: array<u32, 256>;
var<workgroup> large_count: atomic<u32>;
var<workgroup> large_total: u32;
// Of each large splat the end of its rows of tiles among those of all, its first row, and where its next pair
// goes.
var<workgroup> row_scanned: array<u32, 256>;
var<workgroup> row_first: array<u32, 256>;
var<workgroup> next_place: array<atomic<u32>, 256>;

// Splats that touch more tiles than this are emitted by the whole workgroup.
// Measured on an H200, "tiles" in ms with 32, 64, 96, 192: a passage of 300,000 splats at 1920x1080 0.187, 0.194,
// 0.199, 0.205; an avatar of 20,750 at 1024x1024 0.051 to 0.056 with all of them.
const LARGE_TILES: u32 = 32u;
// Sorts behind every tile; fills a place that two kernels rounded differently.
const NO_TILE: u32 = 0xffffffffu;

// Inclusive scan over the workgroup.
fn scan_workgroup(value: u32, lane: u32) -> u32 {
    scanned[lane] = value;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step <<= 1u) {
        var before = 0u;
        if lane >= step {
            before = scanned[lane - step];
        }
        workgroupBarrier();
        scanned[lane] += before;
        workgroupBarrier();
    }
    return scanned[lane];
}

@compute @workgroup_size(256)
fn count_pairs(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = group.x * 256u + lane;
    var count = 0u;
    if i < counters.visible {
        count = bitcast<u32>(record_form[order[i]].w);
    }
    let sum = scan_workgroup(count, lane);
    if lane == 255u {
        block_pairs[group.x] = sum;
    }
}

// Depth as steps of equal ratio: the float's bits above the near plane's, of which 28 last to 4e7 m.
// With 18 bits, the fewest that are used, a step is 1.2e-4 of the depth.
fn depth_code(depth_m: f32) -> u32 {
    let above = bitcast<u32>(depth_m) - bitcast<u32>(view.near_m);
    return min(above, 0xfffffffu) >> (28u - view.depth_bits);
}

fn pair_key(tile: u32, depth: u32) -> u32 {
    return select((tile << view.depth_bits) | depth, tile, view.depth_bits == 0u);
}

fn write_pair(place: u32, key: u32, record: u32) {
    if place < view.pair_capacity {
        pair_keys[place] = key;
        pair_values[place] = record;
    }
}

@compute @workgroup_size(256)
fn emit_pairs(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    if lane == 0u {
        atomicStore(&large_count, 0u);
    }
    let i = group.x * 256u + lane;
    var record = 0u;
    var count = 0u;
    if i < counters.visible {
        record = order[i];
        count = bitcast<u32>(record_form[record].w);
    }
    let base = block_pairs[group.x];
    // Ends with a barrier, so `large_count` is set for all.
    let end = base + scan_workgroup(count, lane);
    if count > LARGE_TILES {
        large[atomicAdd(&large_count, 1u)] = lane;
    } else if count > 0u {
        let shape = record_shape[record];
        let l = record_form[record].xyz;
        let q_max = 2.0 * log(255.0 * shape.w);
        let rows = tile_rows(shape.xy, l, q_max);
        let depth = depth_code(shape.z);
        var place = end - count;
        for (var row = rows.x; row < rows.y; row++) {
            let span = tile_span(shape.xy, l, q_max, row);
            for (var x = span.x; x < span.y && place < end; x++) {
                write_pair(place, pair_key(row * view.tile_count.x + x, depth), record);
                place++;
            }
        }
        for (; place < end; place++) {
            write_pair(place, NO_TILE, record);
        }
    }
    workgroupBarrier();
    if lane == 0u {
        large_total = atomicLoad(&large_count);
    }
    let total = workgroupUniformLoad(&large_total);
    if total > 0u {
        emit_large(group.x * 256u, base, total, lane);
    }
}

// The `total` splats of `large`, all at once: an item of work is one row of tiles of one splat. Places
// within a splat are taken as rows come to it: its keys all differ, so the sort leaves no trace of that.
fn emit_large(block: u32, base: u32, total: u32, lane: u32) {
    var count = 0u;
    if lane < total {
        let owner = large[lane];
        let record = order[block + owner];
        let shape = record_shape[record];
        let rows = tile_rows(shape.xy, record_form[record].xyz, 2.0 * log(255.0 * shape.w));
        count = rows.y - rows.x;
        row_first[lane] = rows.x;
        let before = select(0u, scanned[max(owner, 1u) - 1u], owner > 0u);
        atomicStore(&next_place[lane], base + before);
    }
    row_scanned[lane] = count;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step <<= 1u) {
        var before = 0u;
        if lane >= step {
            before = row_scanned[lane - step];
        }
        workgroupBarrier();
        row_scanned[lane] += before;
        workgroupBarrier();
    }
    let items = row_scanned[255];
    for (var item = lane; item < items; item += 256u) {
        // The first splat whose rows go beyond the item.
        var k = 0u;
        for (var step = 128u; step > 0u; step >>= 1u) {
            k += select(0u, step, row_scanned[k + step - 1u] <= item);
        }
        let before = select(0u, row_scanned[max(k, 1u) - 1u], k > 0u);
        let row = row_first[k] + item - before;
        let record = order[block + large[k]];
        let shape = record_shape[record];
        let span = tile_span(shape.xy, record_form[record].xyz, 2.0 * log(255.0 * shape.w), row);
        let end = base + scanned[large[k]];
        var place = atomicAdd(&next_place[k], span.y - span.x);
        let depth = depth_code(shape.z);
        for (var x = span.x; x < span.y && place < end; x++) {
            write_pair(place, pair_key(row * view.tile_count.x + x, depth), record);
            place++;
        }
    }
    workgroupBarrier();
    if lane < total {
        let end = base + scanned[large[lane]];
        for (var place = atomicLoad(&next_place[lane]); place < end; place++) {
            write_pair(place, NO_TILE, order[block + large[lane]]);
        }
    }
}

// --- find_ranges: where each tile's list begins and ends ---------------------------------------

@group(1) @binding(0) var<storage, read> range_counters: Counters;
@group(1) @binding(1) var<storage, read> sorted_keys: array<u32>;
// First and one past last, two words a tile; zeroed before.
@group(1) @binding(2) var<storage, read_write> tile_ranges: array<u32>;
@group(1) @binding(3) var<storage, read_write> sorted_records: array<u32>;
@group(1) @binding(4) var<storage, read> range_shape: array<vec4<f32>>;

// Splats of one tile and one step of depth that are put in order. Longer runs are left as they are: they
// lie in one plane before the camera, or within a ten-thousandth of their depth, and to sort them took 3 ms
// of a passage of 5 million splats on an H200.
const RUN_MAX: u32 = 24u;

// Sorts the run of equal keys that begins at `first` by exact depth; equal depths keep their order.
fn sort_run(first: u32, key: u32) {
    let end = min(first + RUN_MAX, range_counters.pairs);
    if end < range_counters.pairs && end == first + RUN_MAX && sorted_keys[end] == key {
        return;
    }
    for (var i = first + 1u; i < end && sorted_keys[i] == key; i++) {
        let record = sorted_records[i];
        let depth_m = range_shape[record].z;
        var j = i;
        while j > first {
            let before = sorted_records[j - 1u];
            if range_shape[before].z <= depth_m {
                break;
            }
            sorted_records[j] = before;
            j--;
        }
        sorted_records[j] = record;
    }
}

@compute @workgroup_size(256)
fn find_ranges(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (group.y * 32768u + group.x) * 256u + lane;
    if i >= range_counters.pairs {
        return;
    }
    let key = sorted_keys[i];
    if view.depth_bits > 0u && (i == 0u || sorted_keys[i - 1u] != key) {
        sort_run(i, key);
    }
    let tile = key >> view.depth_bits;
    let tiles = view.tile_count.x * view.tile_count.y;
    if tile < tiles && (i == 0u || sorted_keys[i - 1u] >> view.depth_bits != tile) {
        tile_ranges[tile * 2u] = i;
    }
    let is_last = i + 1u == range_counters.pairs;
    if tile < tiles && (is_last || sorted_keys[i + 1u] >> view.depth_bits != tile) {
        tile_ranges[tile * 2u + 1u] = i + 1u;
    }
}
