// @stage/effects/burn: fire that spreads along the surface from where it was touched.
//
// A splat scorches, glows, stands as char with embers that cool, lifts as ash, and is gone: opacity 0,
// so that it costs no sorting and no filling. burn.luau says how far the fire has come.

struct Uniforms {
    // How far the fire has come, metres along the surface, and how fast it goes (m/s).
    front: f32,
    speed: f32,
    // How far its edge strays, and the size of what it strays by, metres.
    ragged: f32,
    grain: f32,
    // Seconds: scorched before it burns, aglow, char, ash in the air.
    scorch: f32,
    glow: f32,
    char: f32,
    ash: f32,
    // Metres that ash rises, and where it drifts meanwhile (metres, world).
    lift: f32,
    drift: vec3f,
    // Colour of the embers, display space; above 1 outshines white.
    ember: vec3f,
}

// From dull red over the ember's own colour to nearly white.
fn fire(heat: f32, ember: vec3f) -> vec3f {
    let dull = ember * vec3f(0.5, 0.12, 0.05);
    let white = ember + vec3f(0.5, 0.6, 0.35);
    return mix(mix(dull, ember, smoothstep(0.0, 0.55, heat)), white, smoothstep(0.6, 1.0, heat));
}

fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {
    var s = splat;
    // Seconds since the fire came, if its edge did not stray.
    let smooth_age = (u.front - splat.spread_m) / u.speed;
    let stray = u.ragged / u.speed;
    if smooth_age + stray < -u.scorch {
        return s;
    }
    if smooth_age - stray > u.glow + 1.4 * u.char + 1.5 * u.ash {
        s.opacity = 0.0;
        return s;
    }
    let p = splat.rest_m / u.grain;
    let coarse = noise(p);
    let fine = noise(3.1 * p + 11.0);
    let age = smooth_age - stray * (0.65 * coarse + 0.35 * fine);
    if age < -u.scorch {
        return s;
    }
    let own = random(splat.row, 1u);
    let char_end = u.glow + u.char * (0.6 + 0.8 * own);
    let ash_end = char_end + u.ash * (0.5 + random(splat.row, 2u));
    if age >= ash_end {
        s.opacity = 0.0;
        return s;
    }

    // Scorched, then char.
    let scorched = smoothstep(-u.scorch, 0.0, age);
    s.colour *= mix(vec3f(1.0), vec3f(0.34, 0.2, 0.12), scorched);
    let grey = dot(splat.colour, vec3f(0.3, 0.6, 0.1));
    let coal = vec3f(0.022, 0.02, 0.019) + 0.07 * grey * (0.6 + 0.4 * fine);
    s.colour = mix(s.colour, coal, smoothstep(0.0, 0.8 * u.glow, age));

    // The edge glows; behind it embers are left in the cracks, and cool.
    let edge = smoothstep(-0.3 * u.scorch, 0.08 * u.glow, age) * (1.0 - smoothstep(0.25 * u.glow, u.glow, age));
    let cooling = 1.0 - smoothstep(u.glow, char_end, age);
    let crack = smoothstep(0.1, 0.55, fine - 0.35 * coarse);
    let flicker = 0.75 + 0.25 * sin(t_s * (7.0 + 6.0 * own) + 40.0 * own);
    let heat = max(edge * (0.72 + 0.38 * fine), 0.62 * crack * cooling * step(0.0, age)) * flicker;
    s.colour += fire(clamp(heat, 0.0, 1.0), u.ember) * smoothstep(0.02, 0.4, heat);

    // Ash: one in three flakes away, some of them still aglow; the others crumble.
    let flight = clamp((age - char_end) / (ash_end - char_end), 0.0, 1.0);
    if flight > 0.0 {
        let kind = random(splat.row, 3u);
        let pale = vec3f(0.4, 0.39, 0.38) * (0.6 + 0.6 * own);
        s.colour = mix(s.colour, pale, smoothstep(0.0, 0.3, flight));
        if kind < 0.34 {
            let sway = noise3(0.35 * p + vec3f(0.0, -0.6 * t_s, 9.0 * own));
            let rise = u.lift * flight * flight * (0.6 + 0.8 * own);
            let moved = vec3f(0.0, rise, 0.0) + 0.3 * u.lift * flight * sway + u.drift * flight * flight;
            s.centre_m += own_from_world(splat, moved);
            // Flakes are small and round.
            let size = min(pow(s.scale_m.x * s.scale_m.y * s.scale_m.z, 1.0 / 3.0), 0.12 * u.grain);
            s.scale_m = mix(s.scale_m, vec3f(size), smoothstep(0.0, 0.25, flight));
            s.opacity *= 1.0 - smoothstep(0.45, 1.0, flight);
            if kind < 0.05 {
                s.colour = fire(1.0 - flight, u.ember) * flicker;
            }
        } else {
            s.scale_m *= 1.0 - 0.6 * flight;
            s.opacity *= 1.0 - smoothstep(0.0, 0.45, flight);
        }
    }
    return s;
}
