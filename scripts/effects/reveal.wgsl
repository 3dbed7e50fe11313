// @stage/effects/reveal: splats that come, in a wave from the middle or as rain.

struct Uniforms {
    // 0 nothing is there, 1 all is.
    progress: f32,
    // 0 a wave from the centre, 1 rain.
    rain: f32,
    // Where the wave begins, world, and how far it has to go, metres.
    centre: vec3f,
    radius: f32,
    // Length of the wave, or time that a drop falls, as shares of the way.
    width: f32,
    // How high the wave lifts, or drops fall from, metres.
    height: f32,
    // Light of the wave, display space.
    glow: vec3f,
}

// A small round splat as the beginning of a large one.
fn dot_of(splat: Splat, share: f32) -> vec3f {
    let s = splat.scale_m;
    let size = 0.35 * pow(s.x * s.y * s.z, 1.0 / 3.0);
    return mix(vec3f(size), s, share);
}

fn wave(splat: Splat, u: Uniforms) -> Splat {
    var s = splat;
    let way = distance(splat.world_m, u.centre) / u.radius + 0.3 * u.width * random(splat.row, 1u);
    // Below 0 the wave is still to come; dots run before it.
    let x = (u.progress * (1.0 + 2.3 * u.width) - u.width - way) / u.width;
    if x >= 1.0 {
        return s;
    }
    if x <= -1.0 {
        s.opacity = 0.0;
        return s;
    }
    let grown = smoothstep(0.0, 1.0, x);
    s.scale_m = dot_of(splat, grown);
    s.opacity *= smoothstep(-1.0, -0.5, x);
    s.colour = mix(s.colour, u.glow, (1.0 - smoothstep(0.1, 1.0, x)) * 0.85);
    let lift = u.height * sin(3.14159265 * clamp(0.5 * (x + 1.0), 0.0, 1.0)) * (0.5 + random(splat.row, 2u));
    s.centre_m += own_from_world(splat, vec3f(0.0, lift, 0.0));
    return s;
}

fn drops(splat: Splat, u: Uniforms) -> Splat {
    var s = splat;
    // Showers: what stands together comes at about the same time, low things first.
    let shower = 0.5 + 0.5 * noise(splat.world_m * vec3f(2.5, 0.0, 2.5) / u.radius);
    let height = clamp((splat.world_m.y - u.centre.y) / u.radius * 0.5 + 0.5, 0.0, 1.0);
    let start = (0.35 * random(splat.row, 1u) + 0.3 * shower + 0.35 * height) * (1.0 - u.width);
    let x = (u.progress - start) / u.width;
    if x >= 1.0 {
        return s;
    }
    if x <= 0.0 {
        s.opacity = 0.0;
        return s;
    }
    // Falls faster and faster, and lights up where it lands.
    let landed = smoothstep(0.75, 1.0, x);
    s.scale_m = dot_of(splat, landed);
    s.opacity *= smoothstep(0.0, 0.15, x);
    s.colour = mix(mix(s.colour, u.glow, 0.55), s.colour, landed);
    s.centre_m += own_from_world(splat, vec3f(0.0, u.height * (1.0 - x * x), 0.0));
    return s;
}

fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {
    if u.rain > 0.5 {
        return drops(splat, u);
    }
    return wave(splat, u);
}
