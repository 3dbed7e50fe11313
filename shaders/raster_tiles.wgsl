// Stage "raster", by compute: one workgroup a tile of 16x16 px, one thread a pixel, front to back.
// Stops per pixel before the transmittance falls under 1e-4 and per tile when all pixels have.
// For GPUs; a software driver is several times faster with raster_quads.wgsl.
// CPU twin: src/reference/raster.rs. Joined with: shared/types.

@group(0) @binding(0) var<uniform> view: View;

@group(1) @binding(0) var<storage, read> tile_ranges: array<u32>;
@group(1) @binding(1) var<storage, read> pair_values: array<u32>;
@group(1) @binding(2) var<storage, read> record_shape: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> record_form: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> record_colour: array<vec4<f32>>;
// Colour multiplied by coverage, and coverage.
@group(1) @binding(5) var colour_out: texture_storage_2d<rgba32float, write>;
// Sum of weight times depth (metres), and the depth where coverage passes one half (0: never).
@group(1) @binding(6) var depth_out: texture_storage_2d<rg32float, write>;

const BATCH: u32 = 256u;

var<workgroup> batch_shape: array<vec4<f32>, BATCH>;
var<workgroup> batch_form: array<vec3<f32>, BATCH>;
var<workgroup> batch_colour: array<vec3<f32>, BATCH>;
// Of each block of pixels a bit for every splat of the batch that reaches it.
var<workgroup> hits: array<atomic<u32>, 64>;
var<workgroup> finished: atomic<u32>;
var<workgroup> finished_total: u32;

// The first splat of the batch from `k` on that reaches a block; BATCH or more where there is none.
fn next_hit(block: u32, k: u32) -> u32 {
    for (var word = k / 32u; word < 8u; word++) {
        var bits = atomicLoad(&hits[block * 8u + word]);
        if word == k / 32u {
            bits &= 0xffffffffu << (k % 32u);
        }
        if bits != 0u {
            return word * 32u + firstTrailingBit(bits);
        }
    }
    return BATCH;
}

@compute @workgroup_size(16, 16)
fn raster_tiles(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tile = group.y * view.tile_count.x + group.x;
    let pixel = group.xy * TILE_PX + block_pixel(lane);
    let tile_px = vec2<f32>(group.xy * TILE_PX);
    let block = lane / 32u;
    let centre = vec2<f32>(pixel) + 0.5;
    let first = tile_ranges[tile * 2u];
    let end = tile_ranges[tile * 2u + 1u];

    var colour = vec3<f32>(0.0);
    var transmittance = 1.0;
    var depth_sum = 0.0;
    var depth_half = 0.0;
    var done = !all(centre < view.size_px);
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
    if first + lane < end {
        let record = pair_values[first + lane];
        ahead_shape = record_shape[record];
        ahead_form = record_form[record].xyz;
        ahead_colour = record_colour[record].xyz;
    }
    if first + BATCH + lane < end {
        ahead_record = pair_values[first + BATCH + lane];
    }
    for (var start = first; start < end; start += BATCH) {
        workgroupBarrier();
        if lane < 64u {
            atomicStore(&hits[lane], 0u);
        }
        if lane == 0u {
            finished_total = atomicLoad(&finished);
        }
        if workgroupUniformLoad(&finished_total) == BATCH {
            break;
        }
        let count = min(BATCH, end - start);
        if lane < count {
            batch_shape[lane] = ahead_shape;
            batch_form[lane] = ahead_form;
            batch_colour[lane] = ahead_colour;
            let box = footprint_box(ahead_shape, ahead_form);
            for (var b = 0u; b < 8u; b++) {
                if block_hit(tile_px + vec2<f32>(block_pixel(b * 32u)), box, 1.0) {
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
        if done {
            continue;
        }
        for (var k = next_hit(block, 0u); k < count; k = next_hit(block, k + 1u)) {
            let shape = batch_shape[k];
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
                done = true;
                atomicAdd(&finished, 1u);
                break;
            }
            let weight = alpha * transmittance;
            colour += weight * batch_colour[k];
            depth_sum += weight * shape.z;
            if transmittance >= 0.5 && next < 0.5 {
                depth_half = shape.z;
            }
            transmittance = next;
        }
    }
    if all(centre < view.size_px) {
        textureStore(colour_out, pixel, vec4<f32>(colour, 1.0 - transmittance));
        textureStore(depth_out, pixel, vec4<f32>(depth_sum, depth_half, 0.0, 0.0));
    }
}
