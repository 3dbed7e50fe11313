// Stage "raster", by the fixed-function pipeline: one triangle a splat, nearest first, blended
// under what is there: dst += (1 - dst.a) src. For software drivers and small GPUs.
// A triangle round the ellipse has 1.65 times its area where a quad has 1.27, but half the set-up,
// and a software driver spends its time on set-up: most splats are a few pixels wide.
// CPU twin: src/reference/raster.rs. Joined with: shared/types.

@group(0) @binding(0) var<uniform> view: View;

@group(1) @binding(0) var<storage, read> order: array<u32>;
@group(1) @binding(1) var<storage, read> record_shape: array<vec4<f32>>;
@group(1) @binding(2) var<storage, read> record_form: array<vec4<f32>>;
@group(1) @binding(3) var<storage, read> record_colour: array<vec4<f32>>;
@group(1) @binding(4) var<storage, read> counters: Counters;

struct Fragment {
    @builtin(position) position: vec4<f32>,
    // mean_px, depth, opacity
    @location(0) @interpolate(flat, first) shape: vec4<f32>,
    @location(1) @interpolate(flat, first) l: vec3<f32>,
    @location(2) @interpolate(flat, first) colour: vec3<f32>,
}

@vertex
fn corner(
    @builtin(vertex_index) vertex: u32,
    @builtin(instance_index) instance: u32,
) -> Fragment {
    let place = instance * SPLATS_PER_INSTANCE + vertex / 3u;
    if place >= counters.visible {
        // The last instance is seldom full; what is left of it lies outside of the picture.
        return Fragment(vec4<f32>(2.0, 2.0, 0.0, 1.0), vec4<f32>(0.0), vec3<f32>(0.0), vec3<f32>(0.0));
    }
    let record = order[place];
    let shape = record_shape[record];
    let l = record_form[record].xyz;
    // Corners of an equilateral triangle round the unit circle, in the space where the ellipse is
    // that circle. A hundredth of a pixel more than needed covers the rasteriser's snapping.
    var uv = array<vec2<f32>, 3>(
        vec2<f32>(0.0, 2.0),
        vec2<f32>(-1.7320508075688772, -1.0),
        vec2<f32>(1.7320508075688772, -1.0),
    )[vertex % 3u] * sqrt(2.0 * log(255.0 * shape.w));
    let dy = uv.y / l.z;
    let dx = (uv.x - l.y * dy) / l.x;
    let ndc = (shape.xy + vec2<f32>(dx, dy)) / view.size_px * 2.0 - 1.0;
    return Fragment(
        vec4<f32>(ndc.x, -ndc.y, 0.0, 1.0),
        shape,
        l,
        record_colour[record].xyz,
    );
}

fn coverage(fragment: Fragment) -> f32 {
    return coverage_at(fragment, fragment.position.xy);
}

fn coverage_at(fragment: Fragment, at_px: vec2<f32>) -> f32 {
    let d = at_px - fragment.shape.xy;
    let u = fragment.l.x * d.x + fragment.l.y * d.y;
    let v = fragment.l.z * d.y;
    let alpha = min(ALPHA_MAX, fragment.shape.w * exp2(HALF_LOG2_E_NEGATIVE * (u * u + v * v)));
    // Nothing is blended under 1/255. No `discard`: it costs a software driver 12 % of the frame.
    return select(0.0, alpha, alpha >= ALPHA_MIN);
}

@fragment
fn blend_colour(fragment: Fragment) -> @location(0) vec4<f32> {
    let alpha = coverage(fragment);
    return vec4<f32>(fragment.colour * alpha, alpha);
}

struct ColourAndDepth {
    @location(0) colour: vec4<f32>,
    // Depth takes colour's place, so the same blending sums weight times depth.
    @location(1) depth: vec4<f32>,
}

@fragment
fn blend_colour_and_depth(fragment: Fragment) -> ColourAndDepth {
    let alpha = coverage(fragment);
    return ColourAndDepth(
        vec4<f32>(fragment.colour * alpha, alpha),
        vec4<f32>(fragment.shape.z * alpha, 0.0, 0.0, alpha),
    );
}
