// Stages "film depth" and "film layers" by the fixed-function pipeline, as raster_quads.wgsl is
// "raster": see film_depth.wgsl and film_tiles.wgsl for what they compute.
// CPU twin: src/reference/film.rs. Joined with: shared/types, raster_quads.

@group(2) @binding(0) var split_in: texture_2d<f32>;

// On a picture of half the size.
@fragment
fn blend_film_depth(fragment: Fragment) -> @location(0) vec4<f32> {
    let alpha = min(1.0, 2.0 * coverage_at(fragment, 2.0 * fragment.position.xy));
    return vec4<f32>(alpha / fragment.shape.z, alpha, 0.0, alpha);
}

struct TwoLayers {
    @location(0) front: vec4<f32>,
    // Inverse depth takes colour's place, so the same blending sums weight over depth.
    @location(1) front_depth: vec4<f32>,
    @location(2) back: vec4<f32>,
    @location(3) back_depth: vec4<f32>,
}

// Nothing is added to the layer that a splat is not in: blending 0 under a pixel leaves it.
@fragment
fn blend_film_layers(fragment: Fragment) -> TwoLayers {
    let alpha = coverage_at(fragment, fragment.position.xy);
    let edge = textureLoad(split_in, vec2<i32>(fragment.position.xy) / 2, 0).rg;
    let is_front = fragment.shape.z * (edge.x + edge.y) < 2.0;
    let front = select(0.0, alpha, is_front);
    let back = alpha - front;
    let w = 1.0 / fragment.shape.z;
    return TwoLayers(
        vec4<f32>(fragment.colour * front, front),
        vec4<f32>(w * front, 0.0, 0.0, front),
        vec4<f32>(fragment.colour * back, back),
        vec4<f32>(w * back, 0.0, 0.0, back),
    );
}
