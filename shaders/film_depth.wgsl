// Stage "film depth": a depth at half the size, by which the film pass finds edges. Each pixel takes
// the mean inverse depth of what covers it, with doubled alphas: they fill it twice as fast, so that it
// is the depth of what stands in front, near the one where half is covered, and blending alone can
// compute it. One workgroup a tile, four threads a half-size pixel, else as raster_tiles.wgsl.
// `film_depth` begins all lists, `film_depth_segments` and `film_depth_merge` end long ones
// (shared/segments.wgsl).
// CPU twin: src/reference/film.rs. Joined with: shared/types, shared/segments.

@group(0) @binding(0) var<uniform> view: View;

@group(1) @binding(0) var<storage, read> tile_ranges: array<u32>;
@group(1) @binding(1) var<storage, read> pair_values: array<u32>;
@group(1) @binding(2) var<storage, read> record_shape: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> record_form: array<vec4<f32>>;
// Sum of weights over depth, and sum of weights.
@group(2) @binding(4) var depth_out: texture_storage_2d<rg32float, write>;
// What a pixel got out of a stretch of its list: sum of weights over depth, and what is left open. Pixels
// of a tile lie one after the other.
@group(2) @binding(7) var<storage, read_write> parts_out: array<vec2<f32>>;
@group(2) @binding(9) var<storage, read> parts_in: array<vec2<f32>>;

const BATCH: u32 = 256u;
// Pixels of a tile here, and the records of a batch that each of four threads a pixel takes: what lies
// behind one another can be blended in stretches, since blending is associative.
const PIXELS: u32 = 64u;
const STRETCH: u32 = 64u;
// Less than this share of what lies behind would change the mean.
const DOUBLED_MIN: f32 = 1.0 / 64.0;

var<workgroup> batch_shape: array<vec4<f32>, BATCH>;
var<workgroup> batch_form: array<vec3<f32>, BATCH>;
// Of both blocks of pixels a bit for every splat of the batch that reaches it.
var<workgroup> hits: array<atomic<u32>, 16>;
// Of each block columns and rows in which a pixel is not finished, a bit each: a last gap in a wall must
// not cost what the wall did.
var<workgroup> gaps: array<atomic<u32>, 2>;
// Sum of weights over depth within a stretch, and what it leaves open.
var<workgroup> stretches: array<vec2<f32>, BATCH>;
var<workgroup> finished: atomic<u32>;
var<workgroup> finished_total: u32;

var<workgroup> claimed: u32;

// What a thread knows of its pixel. `total` is kept by the first thread of each: sum of weights over depth
// so far, and what is left open.
var<private> centre: vec2<f32>;
var<private> total: vec2<f32>;
var<private> is_counted: bool;

// Nothing seen yet. Pixels of a tile are two blocks of 8x4 one under the other.
fn begin_pixel(tile: u32, lane: u32) -> vec2<u32> {
    let own = lane % PIXELS;
    let corner = vec2<u32>(tile % view.tile_count.x, tile / view.tile_count.x) * (TILE_PX / 2u);
    let pixel = corner + vec2<u32>(own % 8u, own / 8u);
    centre = 2.0 * (vec2<f32>(pixel) + 0.5);
    total = vec2<f32>(0.0, 1.0);
    is_counted = lane < PIXELS && !all(centre < view.size_px + 1.0);
    return pixel;
}

// Blends entries `begin` up to `end` of the lists, nearest first; ends early when all pixels are full.
fn blend(tile: u32, lane: u32, begin: u32, end: u32) {
    let tile_px = vec2<f32>(vec2<u32>(tile % view.tile_count.x, tile / view.tile_count.x) * TILE_PX);
    let own = lane % PIXELS;
    let block = own / 32u;
    workgroupBarrier();
    if lane == 0u {
        atomicStore(&finished, 0u);
    }
    workgroupBarrier();
    if is_counted {
        atomicAdd(&finished, 1u);
    }
    // What the next batch needs is on its way while this one is blended: the longest lists of a picture
    // are as slow as their reads.
    var ahead_shape = vec4<f32>(0.0);
    var ahead_form = vec3<f32>(0.0);
    var ahead_record = 0u;
    if begin + lane < end {
        let record = pair_values[begin + lane];
        ahead_shape = record_shape[record];
        ahead_form = record_form[record].xyz;
    }
    if begin + BATCH + lane < end {
        ahead_record = pair_values[begin + BATCH + lane];
    }
    for (var start = begin; start < end; start += BATCH) {
        workgroupBarrier();
        if lane < 16u {
            atomicStore(&hits[lane], 0u);
        }
        if lane < 2u {
            atomicStore(&gaps[lane], 0u);
        }
        if lane == 0u {
            finished_total = atomicLoad(&finished);
        }
        if workgroupUniformLoad(&finished_total) == PIXELS {
            break;
        }
        if lane < PIXELS && !is_counted {
            let at = vec2<u32>(own % 8u, own / 8u);
            atomicOr(&gaps[block], (1u << at.x) | (0x10000u << at.y));
        }
        workgroupBarrier();
        let count = min(BATCH, end - start);
        if lane < count {
            batch_shape[lane] = ahead_shape;
            batch_form[lane] = ahead_form;
            let box = footprint_box(ahead_shape, ahead_form);
            let covered = covered_pixels(box, tile_px, 2.0);
            for (var b = 0u; b < 2u; b++) {
                if reaches(covered, atomicLoad(&gaps[b])) {
                    atomicOr(&hits[b * 8u + lane / 32u], 1u << (lane % 32u));
                }
            }
        }
        if start + BATCH + lane < end {
            ahead_shape = record_shape[ahead_record];
            ahead_form = record_form[ahead_record].xyz;
        }
        if start + 2u * BATCH + lane < end {
            ahead_record = pair_values[start + 2u * BATCH + lane];
        }
        workgroupBarrier();
        var stretch = vec2<f32>(0.0, 1.0);
        var word = (lane / PIXELS) * (STRETCH / 32u);
        let word_end = word + STRETCH / 32u;
        var bits = atomicLoad(&hits[block * 8u + word]);
        loop {
            if bits == 0u {
                word++;
                if word == word_end {
                    break;
                }
                bits = atomicLoad(&hits[block * 8u + word]);
                continue;
            }
            let k = word * 32u + firstTrailingBit(bits);
            bits &= bits - 1u;
            let shape = batch_shape[k];
            let l = batch_form[k];
            let d = centre - shape.xy;
            let u = l.x * d.x + l.y * d.y;
            let v = l.z * d.y;
            let alpha = min(ALPHA_MAX, shape.w * exp2(HALF_LOG2_E_NEGATIVE * (u * u + v * v)));
            if alpha < ALPHA_MIN {
                continue;
            }
            let doubled = min(1.0, 2.0 * alpha);
            stretch += vec2<f32>(doubled * stretch.y / shape.z, -doubled * stretch.y);
            if stretch.y < DOUBLED_MIN {
                break;
            }
        }
        stretches[lane] = stretch;
        workgroupBarrier();
        if lane < PIXELS && !is_counted {
            for (var i = lane; i < BATCH && total.y >= DOUBLED_MIN; i += PIXELS) {
                total = vec2<f32>(total.x + total.y * stretches[i].x, total.y * stretches[i].y);
            }
            if total.y < DOUBLED_MIN {
                is_counted = true;
                atomicAdd(&finished, 1u);
            }
        }
    }
}

fn write_depth(pixel: vec2<u32>, lane: u32) {
    if lane < PIXELS && all(pixel < textureDimensions(depth_out)) {
        textureStore(depth_out, pixel, vec4<f32>(total.x, 1.0 - total.y, 0.0, 0.0));
    }
}

@compute @workgroup_size(256)
fn film_depth(
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
            if atomicLoad(&finished) < PIXELS {
                claimed = claim(tile, end - stop, arrayLength(&parts_out) / PIXELS);
            }
        }
        let first_part = workgroupUniformLoad(&claimed);
        if first_part != NO_PART {
            if lane < PIXELS {
                parts_out[first_part * PIXELS + lane] = total;
            }
            return;
        }
        begin = stop;
        stop = end;
    }
    write_depth(pixel, lane);
}

@compute @workgroup_size(256)
fn film_depth_segments(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let segment = segments_in[group.x];
    _ = begin_pixel(segment.tile, lane);
    if lane < PIXELS {
        is_counted = is_counted || parts_out[segment.first_part * PIXELS + lane].y < DOUBLED_MIN;
    }
    let begin = segment_begin(segment, tile_ranges[segment.tile * 2u]);
    blend(segment.tile, lane, begin, min(begin + SEGMENT, tile_ranges[segment.tile * 2u + 1u]));
    if lane < PIXELS {
        parts_out[(segment.first_part + 1u + segment.number) * PIXELS + lane] = total;
    }
}

@compute @workgroup_size(64)
fn film_depth_merge(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let segment = segments_in[group.x];
    if segment.number > 0u {
        return;
    }
    let pixel = begin_pixel(segment.tile, lane);
    total = parts_in[segment.first_part * PIXELS + lane];
    for (var k = 1u; k <= segment.count && total.y >= DOUBLED_MIN; k++) {
        let next = parts_in[(segment.first_part + k) * PIXELS + lane];
        total = vec2<f32>(total.x + total.y * next.x, total.y * next.y);
    }
    write_depth(pixel, lane);
}
