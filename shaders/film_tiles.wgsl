// Stage "film layers", by compute: raster_tiles.wgsl with two layers. Splats nearer than the split of
// a pixel go to the front, the others to the back as if nothing stood before them.
//
// `film_tiles` begins all lists, `film_segments` and `film_merge` end long ones (shared/segments.wgsl).
// CPU twin: src/reference/film.rs. Joined with: shared/types, shared/segments, shared/film,
// shared/film_layers.

@group(0) @binding(0) var<uniform> view: View;

@group(1) @binding(0) var<storage, read> tile_ranges: array<u32>;
@group(1) @binding(1) var<storage, read> pair_values: array<u32>;
@group(1) @binding(2) var<storage, read> record_shape: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> record_form: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> record_colour: array<vec4<f32>>;

@group(2) @binding(0) var<storage, read> film: Film;
@group(2) @binding(1) var split_in: texture_2d<f32>;
@group(2) @binding(2) var front_out: texture_storage_2d<rgba16float, write>;
@group(2) @binding(3) var back_out: texture_storage_2d<rgba16float, write>;
@group(2) @binding(4) var depths_out: texture_storage_2d<r32uint, write>;
@group(2) @binding(7) var<storage, read_write> parts_out: array<Part>;
@group(2) @binding(9) var<storage, read> parts_in: array<Part>;

// What a pixel got out of a stretch of its list: colours and what they leave open, sums of weights over
// depth. Pixels of a tile lie one after the other.
struct Part {
    front: vec4<f32>,
    back: vec4<f32>,
    depth_sums: vec2<f32>,
    flags: u32,
    unused: u32,
}

const IS_DONE: u32 = 1u;
const IS_FULL: u32 = 2u;
const IS_BEHIND: u32 = 4u;

const BATCH: u32 = 256u;

var<workgroup> batch_shape: array<vec4<f32>, BATCH>;
var<workgroup> batch_form: array<vec3<f32>, BATCH>;
var<workgroup> batch_colour: array<vec3<f32>, BATCH>;
// Of each block of pixels a bit for every splat of the batch that reaches it.
var<workgroup> hits: array<atomic<u32>, 64>;
// Of each block columns and rows in which a pixel is not finished, a bit each: a last gap in a wall must
// not cost what the wall did.
var<workgroup> gaps: array<atomic<u32>, 8>;
var<workgroup> finished: atomic<u32>;
var<workgroup> finished_total: u32;
var<workgroup> claimed: u32;

// What a thread knows of its pixel.
var<private> centre: vec2<f32>;
var<private> split_m: f32;
var<private> is_split: bool;
// The layer that is being filled, and the front once the back is.
var<private> layer: Layer;
var<private> front: Layer;
var<private> transmittance: f32;
var<private> in_front: bool;
// The front is full; what follows up to the split is not seen.
var<private> full: bool;
var<private> done: bool;

// Nothing seen yet.
fn begin_pixel(tile: u32, lane: u32) -> vec2<u32> {
    let pixel = vec2<u32>(tile % view.tile_count.x, tile / view.tile_count.x) * TILE_PX + block_pixel(lane);
    centre = vec2<f32>(pixel) + 0.5;
    let edge = textureLoad(split_in, vec2<i32>(pixel / 2u), 0).rg;
    is_split = edge.x > 0.0;
    split_m = select(3e38, 2.0 / (edge.x + edge.y), is_split);
    layer = Layer(vec3<f32>(0.0), 0.0, 0.0);
    front = layer;
    transmittance = 1.0;
    in_front = true;
    full = false;
    done = !all(centre < view.size_px);
    return pixel;
}

// Blends entries `begin` up to `end` of the lists, nearest first; ends early when all pixels are done.
fn blend(tile: u32, lane: u32, begin: u32, end: u32) {
    let tile_px = vec2<f32>(vec2<u32>(tile % view.tile_count.x, tile / view.tile_count.x) * TILE_PX);
    let block = lane / 32u;
    workgroupBarrier();
    if lane == 0u {
        atomicStore(&finished, 0u);
    }
    workgroupBarrier();
    if done {
        atomicAdd(&finished, 1u);
    }
    // What the next batch needs is on its way while this one is blended: the longest lists of a picture
    // are as slow as their reads.
    var ahead_shape = vec4<f32>(0.0);
    var ahead_form = vec3<f32>(0.0);
    var ahead_colour = vec3<f32>(0.0);
    var ahead_record = 0u;
    if begin + lane < end {
        let record = pair_values[begin + lane];
        ahead_shape = record_shape[record];
        ahead_form = record_form[record].xyz;
        ahead_colour = record_colour[record].xyz;
    }
    if begin + BATCH + lane < end {
        ahead_record = pair_values[begin + BATCH + lane];
    }
    for (var start = begin; start < end; start += BATCH) {
        workgroupBarrier();
        if lane < 64u {
            atomicStore(&hits[lane], 0u);
        }
        if lane < 8u {
            atomicStore(&gaps[lane], 0u);
        }
        if lane == 0u {
            finished_total = atomicLoad(&finished);
        }
        if workgroupUniformLoad(&finished_total) == BATCH {
            break;
        }
        if !done {
            let at = block_pixel(lane);
            atomicOr(&gaps[block], (1u << at.x) | (0x10000u << at.y));
        }
        workgroupBarrier();
        let count = min(BATCH, end - start);
        if lane < count {
            batch_shape[lane] = ahead_shape;
            batch_form[lane] = ahead_form;
            batch_colour[lane] = ahead_colour;
            let box = footprint_box(ahead_shape, ahead_form);
            let covered = covered_pixels(box, tile_px, 1.0);
            for (var b = 0u; b < 8u; b++) {
                if reaches(covered, atomicLoad(&gaps[b])) {
                    atomicOr(&hits[b * 8u + lane / 32u], 1u << (lane % 32u));
                }
            }
        }
        if start + BATCH + lane < end {
            ahead_shape = record_shape[ahead_record];
            ahead_form = record_form[ahead_record].xyz;
            ahead_colour = record_colour[ahead_record].xyz;
        }
        if start + 2u * BATCH + lane < end {
            ahead_record = pair_values[start + 2u * BATCH + lane];
        }
        workgroupBarrier();
        // Behind a full front nothing is seen up to the split.
        if done || (full && batch_shape[count - 1u].z < split_m) {
            continue;
        }
        var word = 0u;
        var bits = atomicLoad(&hits[block * 8u]);
        loop {
            if bits == 0u {
                word++;
                if word == 8u {
                    break;
                }
                bits = atomicLoad(&hits[block * 8u + word]);
                continue;
            }
            let k = word * 32u + firstTrailingBit(bits);
            bits &= bits - 1u;
            let shape = batch_shape[k];
            if in_front && shape.z >= split_m {
                // Lists are sorted by depth: from here on everything is the back.
                layer.cover = 1.0 - transmittance;
                front = layer;
                layer = Layer(vec3<f32>(0.0), 0.0, 0.0);
                transmittance = 1.0;
                in_front = false;
                full = false;
            }
            if full {
                continue;
            }
            let l = batch_form[k];
            let d = centre - shape.xy;
            let u = l.x * d.x + l.y * d.y;
            let v = l.z * d.y;
            let alpha = min(ALPHA_MAX, shape.w * exp2(HALF_LOG2_E_NEGATIVE * (u * u + v * v)));
            if alpha < ALPHA_MIN {
                continue;
            }
            let next = transmittance * (1.0 - alpha);
            if next < TRANSMITTANCE_MIN {
                full = true;
                if !in_front || !is_split {
                    done = true;
                    atomicAdd(&finished, 1u);
                    break;
                }
                continue;
            }
            let weight = alpha * transmittance;
            layer.colour += weight * batch_colour[k];
            layer.depth_sum += weight / shape.z;
            transmittance = next;
        }
    }
}

// What a pixel got; where the back has not begun, all is front.
fn own_part() -> Part {
    let open = Part(vec4<f32>(0.0, 0.0, 0.0, 1.0), vec4<f32>(0.0, 0.0, 0.0, 1.0), vec2<f32>(0.0), 0u, 0u);
    var part = open;
    let flags = select(0u, IS_DONE, done) | select(0u, IS_FULL, full) | select(IS_BEHIND, 0u, in_front);
    part.flags = flags;
    let filled = vec4<f32>(layer.colour, transmittance);
    if in_front {
        part.front = filled;
        part.depth_sums.x = layer.depth_sum;
    } else {
        part.front = vec4<f32>(front.colour, 1.0 - front.cover);
        part.back = filled;
        part.depth_sums = vec2<f32>(front.depth_sum, layer.depth_sum);
    }
    return part;
}

fn write_layers(pixel: vec2<u32>, part: Part) {
    if any(centre >= view.size_px) {
        return;
    }
    let edge = textureLoad(split_in, vec2<i32>(pixel / 2u), 0).rg;
    let layers = finish_layers(
        Layer(part.front.rgb, 1.0 - part.front.a, part.depth_sums.x),
        Layer(part.back.rgb, 1.0 - part.back.a, part.depth_sums.y),
        edge,
        film.background.rgb,
        film.split_reach_px == 0u,
    );
    textureStore(front_out, pixel, layers.front);
    textureStore(back_out, pixel, layers.back);
    textureStore(depths_out, pixel, vec4<u32>(layers.depths, 0u, 0u, 0u));
}

@compute @workgroup_size(16, 16)
fn film_tiles(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * view.tile_count.x + group.x;
    let pixel = begin_pixel(tile, lane);
    var begin = tile_ranges[tile * 2u];
    let end = tile_ranges[tile * 2u + 1u];
    var stop = min(end, begin + LIST_FIRST);
    loop {
        blend(tile, lane, begin, stop);
        if stop == end {
            break;
        }
        workgroupBarrier();
        if lane == 0u {
            // Without a place the list goes on here.
            claimed = NO_PART;
            finished_total = atomicLoad(&finished);
            if finished_total < 256u {
                claimed = claim(tile, end - stop, arrayLength(&parts_out) / 256u);
            }
        }
        let first_part = workgroupUniformLoad(&claimed);
        if first_part != NO_PART {
            parts_out[first_part * 256u + lane] = own_part();
            return;
        }
        begin = stop;
        stop = end;
    }
    write_layers(pixel, own_part());
}

@compute @workgroup_size(16, 16)
fn film_segments(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let segment = segments_in[group.x];
    _ = begin_pixel(segment.tile, lane);
    let left = parts_out[segment.first_part * 256u + lane].flags;
    done = (left & IS_DONE) != 0u;
    full = (left & IS_FULL) != 0u;
    in_front = (left & IS_BEHIND) == 0u;
    let begin = segment_begin(segment, tile_ranges[segment.tile * 2u]);
    blend(segment.tile, lane, begin, min(begin + SEGMENT, tile_ranges[segment.tile * 2u + 1u]));
    parts_out[(segment.first_part + 1u + segment.number) * 256u + lane] = own_part();
}

@compute @workgroup_size(16, 16)
fn film_merge(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let segment = segments_in[group.x];
    if segment.number > 0u {
        return;
    }
    let pixel = begin_pixel(segment.tile, lane);
    var total = parts_in[segment.first_part * 256u + lane];
    for (var k = 1u; k <= segment.count; k++) {
        let next = parts_in[(segment.first_part + k) * 256u + lane];
        total.depth_sums += vec2<f32>(total.front.a, total.back.a) * next.depth_sums;
        total.front = vec4<f32>(total.front.rgb + total.front.a * next.front.rgb, total.front.a * next.front.a);
        total.back = vec4<f32>(total.back.rgb + total.back.a * next.back.rgb, total.back.a * next.back.a);
    }
    write_layers(pixel, total);
}
