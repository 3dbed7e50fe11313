// What every stage shares: the view, one page of splats placed in it, and the projected record.
//
// Spaces: "local" is the splats' own space, "view" is x right, y down, z forward, in metres.
// Pixels: x right, y down, centres at +0.5. The Rust mirror is src/gpu/uniforms.rs; a test compares
// the layouts.

struct View {
    focal_px: vec2<f32>,
    centre_px: vec2<f32>,
    size_px: vec2<f32>,
    // |x/z| and |y/z| are clamped to this in the Jacobian: 1.3 tan(fov/2), as the INRIA trainer does.
    slope_max: vec2<f32>,
    near_m: f32,
    // Workgroups of the culling pass over all pages, and pages.
    group_count: u32,
    page_count: u32,
    // Most survivors that the buffers hold; more are dropped and the host is told.
    visible_capacity: u32,
    // Tiles across and down.
    tile_count: vec2<u32>,
    // Most (tile, splat) pairs that the buffers hold.
    pair_capacity: u32,
    // Low bits of a pair's key that hold its depth; 0 where records are sorted by depth beforehand.
    depth_bits: u32,
    // Centre of the pixel whose splats are asked for.
    pick_px: vec2<f32>,
}

// A soft solid that fades, tints or pushes what is inside it; in the splats' space.
struct Edit {
    // local_from_solid: turn and centre.
    rotation: vec4<f32>,
    centre: vec3<f32>,
    // 0 sphere, 1 box, 2 ellipsoid, 3 plane, 4 capsule.
    kind: u32,
    // Radius or half sides; of a capsule radius and half length.
    size: vec3<f32>,
    soft_edge_m: f32,
    tint: vec3<f32>,
    opacity: f32,
    displace: vec3<f32>,
    // -1 where the effect is outside.
    side: f32,
}

const EDITS_MAX: u32 = 16u;

// One of a draw's effects: what Lua says of it.
struct PageEffect {
    // Floats of its uniforms, one after the other.
    values: array<vec4<f32>, 8>,
    t_s: f32,
    unused_a: f32,
    unused_b: f32,
    unused_c: f32,
}

const EFFECTS_MAX: u32 = 4u;

// One page of one draw. A draw whose splats exceed a binding is split over pages.
struct Page {
    // Rotation only; `p_view = scale * view_from_local * (p_local - eye_local)`.
    view_from_local: mat3x3<f32>,
    eye_local: vec3<f32>,
    scale: f32,
    tint: vec4<f32>,
    // First workgroup of this page in the culling pass.
    first_group: u32,
    // Splats in this page.
    count: u32,
    sh_degree: u32,
    // 1 when opacity is compensated for the dilation.
    antialiased: u32,
    // 1 when centres and turns come from the deform stage.
    is_posed: u32,
    edit_count: u32,
    // Number of this page's draw in the frame, and of its first splat there.
    draw: u32,
    first_row: u32,
    edits: array<Edit, EDITS_MAX>,
    // World from the splats' space, for effects.
    world_rotation: vec4<f32>,
    world_translation: vec3<f32>,
    // 1 when there are arrivals of a spread.
    has_arrivals: u32,
    effects: array<PageEffect, EFFECTS_MAX>,
}

// A splat as it was loaded, activated.
struct Splat {
    mean: vec3<f32>,
    scale: vec3<f32>,
    rotation: vec4<f32>,
    opacity: f32,
    dc: vec3<f32>,
}

// A projected splat. With (dx, dy) from `mean_px`:
//   q = (l.x dx + l.y dy)^2 + (l.z dy)^2,   alpha = min(0.99, opacity exp(-q / 2)).
// `l` is the Cholesky factor of the inverse covariance: a sum of squares keeps needles exact in
// f32, where the three entries of the inverse itself would cancel.
struct Footprint {
    mean_px: vec2<f32>,
    l: vec3<f32>,
    depth_m: f32,
    opacity: f32,
    // q at which alpha reaches 1/255: 2 ln(255 opacity).
    q_max: f32,
    visible: bool,
}

// Added to the projected covariance, px^2: the trainers' low-pass.
const DILATION_PX2: f32 = 0.3;
const ALPHA_MAX: f32 = 0.99;
const ALPHA_MIN: f32 = 1.0 / 255.0;
// A pixel is finished before its transmittance falls under this.
const TRANSMITTANCE_MIN: f32 = 1e-4;
// exp(-q / 2) = exp2(q * HALF_LOG2_E_NEGATIVE).
const HALF_LOG2_E_NEGATIVE: f32 = -0.7213475204444817;
const TILE_PX: u32 = 16u;
// Splats that the quads rasteriser draws as one instance: a software driver shades the vertices of
// each instance by themselves, so one splat an instance leaves most of a vector idle, while all in
// one instance leaves the caches. Measured on llvmpipe with 152,746 splats at 640x360: 1, 8, 32, 64,
// 256, all: 286, 193, 197, 192, 223, 337 ms.
const SPLATS_PER_INSTANCE: u32 = 32u;

// Sizes that the host reads back and that the next stages take. Mirrored in src/gpu/timing.rs.
struct Counters {
    // Survivors of culling, whether or not they fit.
    visible_total: u32,
    // Survivors that are drawn.
    visible: u32,
    // (tile, splat) pairs, whether or not they fit.
    pair_total: u32,
    // Pairs that are drawn.
    pairs: u32,
}

// The box outside of which a splat leaves nothing, px: left, right, top, bottom. A hundredth of a pixel
// more than it needs, for the rounding here.
fn footprint_box(shape: vec4<f32>, l: vec3<f32>) -> vec4<f32> {
    let q = sqrt(2.0 * log(255.0 * shape.w));
    let reach_y = q / l.z + 0.01;
    let reach_x = q * sqrt(1.0 + (l.y * l.y) / (l.z * l.z)) / l.x + 0.01;
    return vec4<f32>(shape.x - reach_x, shape.x + reach_x, shape.y - reach_y, shape.y + reach_y);
}

// A tile's pixels in eight blocks of 8x4: threads that run in step look at the same splats.
fn block_pixel(lane: u32) -> vec2<u32> {
    let block = lane / 32u;
    return vec2<u32>(block % 2u, block / 2u) * vec2<u32>(8u, 4u) + vec2<u32>(lane % 8u, (lane % 32u) / 8u);
}

// A bit for each of 16 pixels in a row whose centre lies between `low` and `high`, pixels from the first
// one's edge.
fn covered_bits(low: f32, high: f32) -> u32 {
    let first = clamp(ceil(low - 0.5), 0.0, 16.0);
    let last = clamp(floor(high - 0.5), -1.0, 15.0);
    return select(0u, (2u << u32(max(last, 0.0))) - (1u << u32(first)), last >= first);
}

// Columns (low half) and rows (high half) of a tile that a splat's box reaches. `pixel_px` is what a pixel
// measures.
fn covered_pixels(box: vec4<f32>, tile_px: vec2<f32>, pixel_px: f32) -> u32 {
    let at = (box - tile_px.xxyy) / pixel_px;
    return covered_bits(at.x, at.y) | (covered_bits(at.z, at.w) << 16u);
}

// Whether a splat can reach any of the pixels whose columns and rows are in `gaps`.
fn reaches(covered: u32, gaps: u32) -> bool {
    let both = covered & gaps;
    return (both & 0xffffu) != 0u && (both >> 16u) != 0u;
}
