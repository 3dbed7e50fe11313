// What effects make of a page's splats, as it is written: four rows a splat. `settled.wgsl` reads them.
// Four arrays, so that none is larger than the page's own splats and a reader takes what it needs.

// Centre and opacity. Where the opacity is 0, nothing of the other three need be true.
@group(2) @binding(0) var<storage, read_write> row_place: array<vec4<f32>>;
// Standard deviations.
@group(2) @binding(1) var<storage, read_write> row_scale: array<vec4<f32>>;
@group(2) @binding(2) var<storage, read_write> row_rotation: array<vec4<f32>>;
// Before the handle's tint.
@group(2) @binding(3) var<storage, read_write> row_colour: array<vec4<f32>>;
