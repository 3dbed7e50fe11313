// What effects are written with: the splat that a scene's own WGSL changes, chance, and noise.
//
// An effect is `fn effect(splat: Splat, uniforms: Uniforms, t_s: f32) -> Splat`; its author calls
// `EffectSplat` by the name `Splat` (src/effect/wgsl.rs), and everything here is at hand, as are the
// rotations of shared/quaternion.wgsl. It runs once a splat and stage, after poses and edits, after
// spherical harmonics and before the handle's tint. The CPU twin (src/effect/interpreter.rs) runs
// this very text.

struct EffectSplat {
    // Centre in the handle's own space, metres.
    centre_m: vec3<f32>,
    // Standard deviations along its own axes, metres of the handle's space.
    scale_m: vec3<f32>,
    // Unit quaternion x, y, z, w.
    rotation: vec4<f32>,
    // Display space, as it would be drawn.
    colour: vec3<f32>,
    // Under 1/255 the splat is dropped before it is counted, sorted and filled.
    opacity: f32,

    // What follows is there to be read; changes to it are not drawn.

    // Centre as it was loaded: noise that is to stay on a moving body is asked for here.
    rest_m: vec3<f32>,
    // Centre in the world before the first effect, metres.
    world_m: vec3<f32>,
    // How the handle stands in the world: unit quaternion and factor.
    world_rotation: vec4<f32>,
    world_scale: f32,
    // Way along the surface from where the handle's spread began, metres of the handle's space;
    // NEVER where it has not come yet or there is none.
    spread_m: f32,
    // Number of the splat in its file, from 0.
    row: u32,
}

// An arrival that has not been.
const NEVER: f32 = 1e30;

// Turns of all loops that one effect may take for one splat. A shader that does not end would take
// the graphics device with it.
const EFFECT_TURNS_MAX: u32 = 1024u;
var<private> effect_turns: u32;

// Metres in the world to metres in the handle's own space.
fn own_from_world(splat: EffectSplat, v: vec3<f32>) -> vec3<f32> {
    return turned_back(splat.world_rotation, v) / splat.world_scale;
}

// Every bit of n reaches every bit of the result. Source: Wellons, "lowbias32".
fn hash(n: u32) -> u32 {
    var x = n;
    x = (x ^ (x >> 16u)) * 0x7feb352du;
    x = (x ^ (x >> 15u)) * 0x846ca68bu;
    return x ^ (x >> 16u);
}

// From 0 up to 1: a number that belongs to a row; another one for another salt.
fn random(row: u32, salt: u32) -> f32 {
    return f32(hash(row ^ hash(salt + 0x9e3779b9u)) >> 8u) * (1.0 / 16777216.0);
}

// -1 to 1 on each axis.
fn random3(row: u32, salt: u32) -> vec3<f32> {
    return 2.0 * vec3<f32>(random(row, salt), random(row, salt + 1u), random(row, salt + 2u)) - 1.0;
}

// Between -1 and 1: random numbers at whole coordinates, blended smoothly in between.
fn noise(p: vec3<f32>) -> f32 {
    let low = floor(p);
    let f = p - low;
    let u = f * f * (3.0 - 2.0 * f);
    let cell = vec3<i32>(low);
    let z = vec2<u32>(hash(u32(cell.z)), hash(u32(cell.z + 1)));
    let y = vec2<u32>(u32(cell.y), u32(cell.y + 1));
    let yz = vec4<u32>(hash(y.x ^ z.x), hash(y.y ^ z.x), hash(y.x ^ z.y), hash(y.y ^ z.y));
    let x = vec2<u32>(u32(cell.x), u32(cell.x + 1));
    let left = vec4<f32>(
        lattice(x.x ^ yz.x), lattice(x.x ^ yz.y), lattice(x.x ^ yz.z), lattice(x.x ^ yz.w),
    );
    let right = vec4<f32>(
        lattice(x.y ^ yz.x), lattice(x.y ^ yz.y), lattice(x.y ^ yz.z), lattice(x.y ^ yz.w),
    );
    let along_x = mix(left, right, vec4<f32>(u.x));
    let along_y = mix(along_x.xz, along_x.yw, vec2<f32>(u.y));
    return mix(along_y.x, along_y.y, u.z);
}

fn lattice(n: u32) -> f32 {
    return f32(hash(n) >> 8u) * (2.0 / 16777216.0) - 1.0;
}

// Between -1 and 1: `count` noises, each twice as fine and half as strong as the one before; 1 to 6.
fn octaves(p: vec3<f32>, count: u32) -> f32 {
    var sum = 0.0;
    var weight = 1.0;
    var total = 0.0;
    var at = p;
    for (var i = 0u; i < clamp(count, 1u, 6u); i++) {
        sum += weight * noise(at);
        total += weight;
        weight *= 0.5;
        // The shift keeps lattice points of one octave off those of the next.
        at = 2.0 * at + 17.3;
    }
    return sum / total;
}

// Three noises that have nothing to do with each other.
fn noise3(p: vec3<f32>) -> vec3<f32> {
    return vec3<f32>(noise(p), noise(p + 31.7), noise(p - 57.1));
}
