// Stage "pick": every projected splat that blends into one pixel, in no order; the host reads the
// list and puts it together. One thread a survivor of one page. CPU twin: src/reference/pick.rs.
// Joined with: shared/types.

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> page: Page;

struct Touches {
    // Touches, whether or not they fit.
    count: atomic<u32>,
    unused_a: u32,
    unused_b: u32,
    unused_c: u32,
    // Draw, row, bits of depth, bits of alpha.
    list: array<vec4<u32>>,
}

@group(2) @binding(0) var<storage, read> offsets: array<u32>;
@group(2) @binding(1) var<storage, read> record_shape: array<vec4<f32>>;
@group(2) @binding(2) var<storage, read> record_form: array<vec4<f32>>;
@group(2) @binding(3) var<storage, read> record_colour: array<vec4<f32>>;
@group(2) @binding(4) var<storage, read_write> touches: Touches;

@compute @workgroup_size(256)
fn pick(@builtin(global_invocation_id) id: vec3<u32>) {
    let group_end = page.first_group + (page.count + 255u) / 256u;
    let place = offsets[page.first_group] + id.x;
    if place >= min(offsets[group_end], view.visible_capacity) {
        return;
    }
    let shape = record_shape[place];
    let l = record_form[place].xyz;
    let d = view.pick_px - shape.xy;
    let u = l.x * d.x + l.y * d.y;
    let v = l.z * d.y;
    let alpha = min(ALPHA_MAX, shape.w * exp(-0.5 * (u * u + v * v)));
    if !(alpha >= ALPHA_MIN) {
        return;
    }
    let slot = atomicAdd(&touches.count, 1u);
    if slot < arrayLength(&touches.list) {
        let row = page.first_row + bitcast<u32>(record_colour[place].w);
        touches.list[slot] = vec4<u32>(page.draw, row, bitcast<u32>(shape.z), bitcast<u32>(alpha));
    }
}
