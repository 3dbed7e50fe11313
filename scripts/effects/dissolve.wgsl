// @stage/effects/dissolve: the splats go cloud by cloud, with an edge of light.

struct Uniforms {
    // 0 all is there, 1 all is gone.
    progress: f32,
    // Size of the clouds, metres.
    grain: f32,
    // Share of the way that one splat takes to go.
    edge: f32,
    // Light of the edge, display space.
    glow: vec3f,
    // Where splats go while they go, metres in the world, and how far they sway.
    lift: vec3f,
    sway: f32,
}

fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {
    var s = splat;
    // Noise has most of its values about 0: spread out, so that the clouds go at an even pace.
    let cloud = clamp(0.5 + 0.85 * octaves(splat.rest_m / u.grain, 3u), 0.0, 1.0);
    let gone = u.progress * (1.0 + u.edge) - cloud;
    if gone <= 0.0 {
        return s;
    }
    if gone >= u.edge {
        s.opacity = 0.0;
        return s;
    }
    let k = gone / u.edge;
    let own = random(splat.row, 1u);
    s.colour = mix(s.colour, u.glow, smoothstep(0.0, 0.35, k)) * (1.0 + 0.6 * k);
    let size = pow(s.scale_m.x * s.scale_m.y * s.scale_m.z, 1.0 / 3.0);
    s.scale_m = mix(s.scale_m, vec3f(size), k) * (1.0 - 0.75 * k);
    let swayed = u.sway * noise3(2.0 * splat.rest_m / u.grain + vec3f(0.0, 0.8 * t_s, 5.0 * own));
    s.centre_m += own_from_world(splat, (u.lift * k + swayed) * k * (0.4 + own));
    s.opacity *= 1.0 - smoothstep(0.5, 1.0, k);
    return s;
}
