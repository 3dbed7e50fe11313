// Splats as they are drawn where a draw has no effects, and as effects find them. `settled.wgsl` is what
// stands here where a draw has effects.

// A splat with its colour from where it is seen, before the handle's tint.
struct Drawn {
    splat: Splat,
    colour: vec3<f32>,
}

// Where it stands and how large it is: all that culling asks for.
fn drawn_splat(index: u32) -> Splat {
    return load_standing(index).splat;
}

fn drawn(index: u32) -> Drawn {
    let standing = load_standing(index);
    return Drawn(standing.splat, seen_colour(index, standing));
}
