// One splat of a posed body: blendshapes at rest, then the rigid motion of its four heaviest bones.
// Dual quaternion blending by Kavan et al., 2008. CPU twin: src/reference/deform.rs.
// Joined with: shared/types, shared/quaternion, splat_packed or splat_float.

struct Part {
    // First row of this part in its page, and rows.
    first: u32,
    count: u32,
    // 0 where no bone moves anything.
    bone_count: u32,
    unused: u32,
}

@group(0) @binding(0) var<storage, read> part: Part;
// A row: first entry of its shapes; four bones (a byte each); three weights and the number of
// entries (16 bits each). The fourth weight is what is left of one.
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
// An entry: offset x and y, offset z and number of the shape; halves. The entries of ENTRY_STRIDE
// rows lie side by side, so that threads that go together read together.
@group(0) @binding(2) var<storage, read> entries: array<vec2<u32>>;

const ENTRY_STRIDE: u32 = 32u;

// Eight a bone: real and dual part of posed_from_rest. Then the coefficients.
@group(2) @binding(0) var<storage, read> pose: array<f32>;
// Two a splat: centre; turn.
@group(2) @binding(1) var<storage, read_write> posed: array<vec4<f32>>;

fn pose_part(first: u32) -> vec4<f32> {
    return vec4<f32>(pose[first], pose[first + 1u], pose[first + 2u], pose[first + 3u]);
}

@compute @workgroup_size(256)
fn deform(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= part.count {
        return;
    }
    let index = part.first + id.x;
    let row = rows[id.x];
    var mean = load_splat(index).mean;
    let coefficients = 8u * part.bone_count;
    let count = row.w >> 16u;
    for (var i = 0u; i < count; i++) {
        let entry = entries[row.x + i * ENTRY_STRIDE];
        let k = pose[coefficients + (entry.y >> 16u)];
        mean += k * vec3<f32>(unpack2x16float(entry.x), unpack2x16float(entry.y).x);
    }
    var turn = vec4<f32>(0.0, 0.0, 0.0, 1.0);
    if part.bone_count > 0u {
        let three = vec3<f32>(unpack2x16unorm(row.z), unpack2x16unorm(row.w).x);
        let weights = vec4<f32>(three, max(0.0, 1.0 - three.x - three.y - three.z));
        var real = vec4<f32>(0.0);
        var dual = vec4<f32>(0.0);
        for (var i = 0u; i < 4u; i++) {
            let bone = extractBits(row.y, 8u * i, 8u);
            let part_real = pose_part(8u * bone);
            // q and -q are one rotation: the one on this side is the short way.
            let weight = select(weights[i], -weights[i], dot(real, part_real) < 0.0);
            real += weight * part_real;
            dual += weight * pose_part(8u * bone + 4u);
        }
        let length_squared = dot(real, real);
        if length_squared > 1e-12 {
            let inverse_length = inverseSqrt(length_squared);
            turn = real * inverse_length;
            dual *= inverse_length;
            let shift = 2.0 * (turn.w * dual.xyz - dual.w * turn.xyz + cross(turn.xyz, dual.xyz));
            mean = turned(turn, mean) + shift;
        }
    }
    posed[2u * index] = vec4<f32>(mean, 0.0);
    posed[2u * index + 1u] = turn;
}
