// Stage "film layers", by compute: raster_tiles.wgsl with two layers. Splats nearer than the split of
// a pixel go to the front, the others to the back as if nothing stood before them.
// CPU twin: src/reference/film.rs. Joined with: shared/types, shared/film, shared/film_layers.

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

@compute @workgroup_size(16, 16)
fn film_tiles(
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
    let edge = textureLoad(split_in, vec2<i32>(pixel / 2u), 0).rg;
    let is_split = edge.x > 0.0;
    let split_m = select(3e38, 2.0 / (edge.x + edge.y), is_split);

    var layer = Layer(vec3<f32>(0.0), 0.0, 0.0);
    var front = layer;
    var transmittance = 1.0;
    var in_front = true;
    // The front is full; what follows up to the split is not seen.
    var full = false;
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
    if all(centre < view.size_px) {
        layer.cover = 1.0 - transmittance;
        var back = layer;
        if in_front {
            front = layer;
            back = Layer(vec3<f32>(0.0), 0.0, 0.0);
        }
        let layers = finish_layers(front, back, edge, film.background.rgb);
        textureStore(front_out, pixel, layers.front);
        textureStore(back_out, pixel, layers.back);
        textureStore(depths_out, pixel, vec4<u32>(layers.depths, 0u, 0u, 0u));
    }
}
