// @stage/effects/wind: what is rooted below sways above, in gusts that travel.

struct Uniforms {
    // Where the wind blows to and how far it bends the top, metres in the world.
    bend: vec3f,
    // Height in the world under which nothing moves, and above it how much bends in full, metres.
    root: f32,
    height: f32,
    // Metres between two gusts, and seconds in which one passes a place.
    gust: f32,
    period: f32,
    // How far single splats flutter, metres.
    flutter: f32,
}

fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {
    let free = clamp((splat.world_m.y - u.root) / u.height, 0.0, 1.0);
    if free <= 0.0 {
        return splat;
    }
    var s = splat;
    let strength = length(u.bend);
    let along = u.bend / max(strength, 1e-6);
    // Gusts come along the wind: the noise moves with it.
    let at = splat.world_m / u.gust - along * (t_s / u.period);
    let blow = 0.45 + 0.55 * noise(vec3f(at.x, 0.15 * at.y, at.z));
    let share = free * free * blow;
    let trembling = u.flutter * free * noise3(vec3f(splat.rest_m * (3.0 / u.gust)) + vec3f(2.3 * t_s, 0.0, 0.0));
    // Bent, not sheared: what goes aside comes down.
    let aside = u.bend * share;
    let down = -0.5 * dot(aside, aside) / max(u.height, 1e-6);
    s.centre_m += own_from_world(splat, aside + vec3f(0.0, down, 0.0) + trembling);
    // The splat leans as much as the curve that it stands on.
    let axis = turned_back(splat.world_rotation, vec3f(along.z, 0.0, -along.x));
    let half = strength * share / max(u.height, 1e-6);
    s.rotation = product(vec4f(axis * sin(half), cos(half)), s.rotation);
    return s;
}
