// Reads unpacked splats (debug switch `--packing float`): 14 f32 each (mean, log scale, rotation
// xyzw, opacity, dc), SH as f32, coefficient-major. Twin of `splat_packed.wgsl`.

@group(1) @binding(0) var<storage, read> splats: array<f32>;
@group(1) @binding(1) var<storage, read> sh: array<f32>;

fn load_splat(index: u32) -> Splat {
    let base = index * 14u;
    return Splat(
        vec3<f32>(splats[base], splats[base + 1u], splats[base + 2u]),
        exp(vec3<f32>(splats[base + 3u], splats[base + 4u], splats[base + 5u])),
        vec4<f32>(splats[base + 6u], splats[base + 7u], splats[base + 8u], splats[base + 9u]),
        splats[base + 10u],
        vec3<f32>(splats[base + 11u], splats[base + 12u], splats[base + 13u]),
    );
}

fn load_sh(index: u32, degree: u32, k: u32) -> vec3<f32> {
    let rest = (degree + 1u) * (degree + 1u) - 1u;
    let base = (index * rest + k) * 3u;
    return vec3<f32>(sh[base], sh[base + 1u], sh[base + 2u]);
}
