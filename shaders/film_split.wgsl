// Stage "film split": where near things stand before far ones, and at which depth to part them.
// `film_edges` finds edges on the half-size depth, `film_spread_rows` and `film_spread_columns` carry
// each as far as the near thing moves. What they leave are the inverse depths of near and far, 0 for
// none; the split is half-way between them (the harmonic middle of the depths).
// CPU twin: src/reference/film.rs. Joined with: shared/film.

@group(0) @binding(0) var<storage, read> film: Film;
// Edges: sum of weights over depth, sum of weights. Spreads: inverse depths of near and far.
@group(0) @binding(1) var source: texture_2d<f32>;
@group(0) @binding(2) var result: texture_storage_2d<rg32float, write>;

// A thing counts as near when what is behind it is this much farther.
const RATIO_MIN: f32 = 1.06;
// A plane's inverse depth runs straight over the picture; at an edge it bends by this share of the step.
const BEND_MIN: f32 = 0.3;
// Splits that would move things by less than this are not worth their second layer.
const MOVE_MIN_PX: f32 = 0.3;
// Pixels that are covered less have no depth of their own.
const COVER_MIN: f32 = 0.5;

fn inverse_depth(at: vec2<i32>) -> f32 {
    let v = textureLoad(source, clamp(at, vec2<i32>(0), vec2<i32>(textureDimensions(source)) - 1), 0).rg;
    return select(0.0, v.r / max(v.g, 1e-6), v.g >= COVER_MIN);
}

// The stronger of `best` and the edge across three pixels in a row.
fn edge_across(best: vec2<f32>, before: f32, here: f32, after: f32) -> vec2<f32> {
    let near = max(here, max(before, after));
    let far = min(here, min(before, after));
    let step = near - far;
    let bend = abs(before - 2.0 * here + after);
    let is_edge = near > RATIO_MIN * far && bend > BEND_MIN * step
        && step * film.reach_px_m > MOVE_MIN_PX;
    return select(best, vec2<f32>(near, far), is_edge && step > best.x - best.y);
}

@compute @workgroup_size(16, 16)
fn film_edges(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= textureDimensions(source)) {
        return;
    }
    let at = vec2<i32>(id.xy);
    let here = inverse_depth(at);
    var edge = edge_across(
        vec2<f32>(0.0),
        inverse_depth(at - vec2<i32>(1, 0)),
        here,
        inverse_depth(at + vec2<i32>(1, 0)),
    );
    edge = edge_across(
        edge,
        inverse_depth(at - vec2<i32>(0, 1)),
        here,
        inverse_depth(at + vec2<i32>(0, 1)),
    );
    textureStore(result, id.xy, vec4<f32>(edge, 0.0, 0.0));
}

// Edges of a stretch and a rim on both sides, in eight lines: near and far; strength and what it loses with
// every pixel of distance.
const STRETCH: u32 = 32u;
const REACH_MAX: u32 = 16u;
const LINE: u32 = 64u;
var<workgroup> edges: array<vec2<f32>, 512>;
var<workgroup> strengths: array<vec2<f32>, 512>;

// The strongest edge along a line through pixel `own` of the stretch, each weaker with its distance and gone
// where its near thing does not get to. `first` is the first pixel of the group's first line.
fn strongest(lane: u32, own: vec2<u32>, first: vec2<i32>, along: vec2<i32>) -> vec2<f32> {
    let size = vec2<i32>(textureDimensions(source));
    for (var i = lane; i < 8u * LINE; i += 256u) {
        let place = first + (i32(i % LINE) - i32(REACH_MAX)) * along + i32(i / LINE) * along.yx;
        var edge = vec2<f32>(0.0);
        if all(place >= vec2<i32>(0)) && all(place < size) {
            edge = textureLoad(source, place, 0).rg;
        }
        let strength = edge.x - edge.y;
        edges[i] = edge;
        strengths[i] = vec2<f32>(strength, strength / (0.5 * film.reach_px_m * edge.x + 2.0));
    }
    workgroupBarrier();
    let reach = min(film.split_reach_px, REACH_MAX);
    let middle = own.y * LINE + own.x + REACH_MAX;
    var best = middle;
    var best_score = 0.0;
    for (var i = 0u; i <= 2u * reach; i++) {
        let at = middle - reach + i;
        let strength = strengths[at];
        let score = strength.x - abs(f32(i) - f32(reach)) * strength.y;
        if score > best_score {
            best_score = score;
            best = at;
        }
    }
    return select(vec2<f32>(0.0), edges[best], best_score > 0.0);
}

@compute @workgroup_size(32, 8)
fn film_spread_rows(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let own = vec2<u32>(lane % STRETCH, lane / STRETCH);
    let first = group.xy * vec2<u32>(STRETCH, 8u);
    let found = strongest(lane, own, vec2<i32>(first), vec2<i32>(1, 0));
    let at = first + own;
    if all(at < textureDimensions(source)) {
        textureStore(result, at, vec4<f32>(found, 0.0, 0.0));
    }
}

@compute @workgroup_size(8, 32)
fn film_spread_columns(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let own = vec2<u32>(lane / 8u, lane % 8u);
    let first = group.xy * vec2<u32>(8u, STRETCH);
    let found = strongest(lane, own, vec2<i32>(first), vec2<i32>(0, 1));
    let at = first + own.yx;
    if all(at < textureDimensions(source)) {
        textureStore(result, at, vec4<f32>(found, 0.0, 0.0));
    }
}
