// Stage "effects", first half where it has two: poses, edits and colours splats for effects to find.
// Its text is the same for all effects, so a driver that takes long to compile has compiled it before.
// Joined with: shared/types, quaternion, splat_packed or splat_float, edit, sh, plain and rows.

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> page: Page;

@compute @workgroup_size(256)
fn stand(@builtin(global_invocation_id) id: vec3<u32>) {
    let index = id.x;
    if index >= page.count {
        return;
    }
    let d = drawn(index);
    row_place[index] = vec4<f32>(d.splat.mean, d.splat.opacity);
    row_scale[index] = vec4<f32>(d.splat.scale, 0.0);
    row_rotation[index] = d.splat.rotation;
    row_colour[index] = vec4<f32>(d.colour, 0.0);
}
