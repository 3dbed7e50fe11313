// Rotations as unit quaternions (x, y, z, w).

fn turned(q: vec4<f32>, v: vec3<f32>) -> vec3<f32> {
    let across = 2.0 * cross(q.xyz, v);
    return v + q.w * across + cross(q.xyz, across);
}

fn turned_back(q: vec4<f32>, v: vec3<f32>) -> vec3<f32> {
    return turned(vec4<f32>(-q.xyz, q.w), v);
}

// a after b.
fn product(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        a.w * b.xyz + b.w * a.xyz + cross(a.xyz, b.xyz),
        a.w * b.w - dot(a.xyz, b.xyz),
    );
}
