// Reads packed splats: 32 bytes each, and 12, 28 or 48 bytes of SH at degree 1, 2 or 3.
// The writer and the table of fields is src/gpu/pack.rs. `splat_float.wgsl` is the unpacked twin.

@group(1) @binding(0) var<storage, read> splats: array<vec4<u32>>;
@group(1) @binding(1) var<storage, read> sh: array<u32>;

fn load_splat(index: u32) -> Splat {
    let a = splats[index * 2u];
    let b = splats[index * 2u + 1u];
    // Smallest three at 15 bits: each is in [-1/sqrt(2), 1/sqrt(2)].
    let three = (vec3<f32>(vec3<u32>(a.w & 0x7fffu, (a.w >> 15u) & 0x7fffu, b.x & 0x7fffu))
        * (2.0 / 32767.0) - 1.0) * 0.7071067811865476;
    let largest = sqrt(max(0.0, 1.0 - dot(three, three)));
    var rotation: vec4<f32>;
    switch a.w >> 30u {
        case 0u: { rotation = vec4<f32>(largest, three); }
        case 1u: { rotation = vec4<f32>(three.x, largest, three.yz); }
        case 2u: { rotation = vec4<f32>(three.xy, largest, three.z); }
        default: { rotation = vec4<f32>(three, largest); }
    }
    let scale_xy = unpack2x16float(b.y);
    let scale_z_dc_r = unpack2x16float(b.z);
    let dc_gb = unpack2x16float(b.w);
    return Splat(
        bitcast<vec3<f32>>(a.xyz),
        exp(vec3<f32>(scale_xy, scale_z_dc_r.x)),
        rotation,
        f32(b.x >> 16u) * (1.0 / 65535.0),
        vec3<f32>(scale_z_dc_r.y, dc_gb),
    );
}

// Words of SH per splat: two bytes of f16 scale, then one signed byte a value.
fn sh_words(degree: u32) -> u32 {
    return select(select(3u, 7u, degree == 2u), 12u, degree == 3u);
}

fn load_sh_byte(word_base: u32, byte: u32) -> f32 {
    let word = sh[word_base + (byte >> 2u)];
    return f32(extractBits(i32(word), (byte & 3u) * 8u, 8u));
}

// Coefficient `k` (0 is the first of band 1) of splat `index`, all three channels.
fn load_sh(index: u32, degree: u32, k: u32) -> vec3<f32> {
    let base = index * sh_words(degree);
    let scale = unpack2x16float(sh[base]).x * (1.0 / 127.0);
    let byte = 2u + k * 3u;
    return scale * vec3<f32>(
        load_sh_byte(base, byte),
        load_sh_byte(base, byte + 1u),
        load_sh_byte(base, byte + 2u),
    );
}
