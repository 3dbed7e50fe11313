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

// The strongest edge along a line through `at`, each weaker with its distance and gone where its near
// thing does not get to.
fn strongest(at: vec2<i32>, along: vec2<i32>) -> vec2<f32> {
    let reach = i32(film.split_reach_px);
    let size = vec2<i32>(textureDimensions(source));
    var best = vec2<f32>(0.0);
    var best_score = 0.0;
    for (var i = -reach; i <= reach; i++) {
        let place = at + i * along;
        if any(place < vec2<i32>(0)) || any(place >= size) {
            continue;
        }
        let edge = textureLoad(source, place, 0).rg;
        let radius = 0.5 * film.reach_px_m * edge.x + 2.0;
        let score = (edge.x - edge.y) * (1.0 - f32(abs(i)) / radius);
        if score > best_score {
            best_score = score;
            best = edge;
        }
    }
    return best;
}

@compute @workgroup_size(64, 4)
fn film_spread_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= textureDimensions(source)) {
        return;
    }
    textureStore(result, id.xy, vec4<f32>(strongest(vec2<i32>(id.xy), vec2<i32>(1, 0)), 0.0, 0.0));
}

@compute @workgroup_size(64, 4)
fn film_spread_columns(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= textureDimensions(source)) {
        return;
    }
    textureStore(result, id.xy, vec4<f32>(strongest(vec2<i32>(id.xy), vec2<i32>(0, 1)), 0.0, 0.0));
}
