// What both rasterisers of the film pass leave: two layers and their depths.
// Joined with: shared/film. CPU twin: src/reference/film.rs.

// A layer as it was blended: colour times coverage, coverage, and sum of weights over depth.
struct Layer {
    colour: vec3<f32>,
    cover: f32,
    depth_sum: f32,
}

struct Layers {
    front: vec4<f32>,
    back: vec4<f32>,
    // Inverse depths of both as halves; 0 is endlessly far.
    depths: u32,
}

// Under these covers a layer has no depth: that of a front that is hardly there would be nobody's, and
// haze before the sky does not make the sky near.
const FRONT_COVER_MIN: f32 = 0.01;
const BACK_COVER_MIN: f32 = 0.25;

fn layer_depth(layer: Layer, cover_min: f32, otherwise: f32) -> f32 {
    return select(otherwise, layer.depth_sum / max(layer.cover, 1e-6), layer.cover > cover_min);
}

// `edge` holds the inverse depths of the near and the far thing of the pixel's edge, 0 where there is none.
// A front that is not there has the depth of the near thing, so that a tap that just misses it is led
// back. Where there is no split, the whole picture is the front and has alpha 1, and the back is a copy: at
// the seam between both kinds of pixels, sampling mixes two halves of the same colour.
//
// Where nothing can be split at all (`is_root`), the picture is kept as the root of its light: as evenly
// spread as display space, and a square is cheaper than a power for every tap.
fn finish_layers(
    front: Layer,
    back: Layer,
    edge: vec2<f32>,
    background: vec3<f32>,
    is_root: bool,
) -> Layers {
    if edge.x <= 0.0 {
        let shown = front.colour + (1.0 - front.cover) * background;
        let whole = vec4<f32>(select(shown, sqrt(decode(shown)), is_root), 1.0);
        let w = layer_depth(front, BACK_COVER_MIN, 0.0);
        return Layers(whole, whole, pack2x16float(vec2<f32>(w, w)));
    }
    let behind = vec4<f32>(back.colour + (1.0 - back.cover) * background, 1.0);
    return Layers(
        vec4<f32>(front.colour, front.cover),
        behind,
        pack2x16float(vec2<f32>(
            layer_depth(front, FRONT_COVER_MIN, edge.x),
            layer_depth(back, BACK_COVER_MIN, 0.0),
        )),
    );
}
