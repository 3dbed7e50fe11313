// Stage "film proxy": depths of planes in the place of the splats', as the original of the walk has
// it. The nearest plane before the lens counts; where there is none, it is endlessly far.
// CPU twin: src/reference/film.rs. Joined with: shared/film.

@group(0) @binding(0) var<storage, read> film: Film;
@group(0) @binding(1) var depths_out: texture_storage_2d<r32uint, write>;

@compute @workgroup_size(16, 16)
fn film_proxy(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= textureDimensions(depths_out)) {
        return;
    }
    let at = vec2<f32>(id.xy) + 0.5 - film.margin_px;
    let direction = vec3<f32>((at - 0.5 * film.size_px) / film.focal_px, 1.0);
    var w = 0.0;
    for (var i = 0u; i < film.plane_count; i++) {
        // The ray meets the plane at z = -distance / (normal . direction).
        let plane = film.planes[i];
        w = max(w, -dot(plane.xyz, direction) / plane.w);
    }
    textureStore(depths_out, id.xy, vec4<u32>(pack2x16float(vec2<f32>(w, w)), 0u, 0u, 0u));
}
