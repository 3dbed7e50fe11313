//! Effects: an author's own WGSL that changes every splat of a handle, checked before anything is
//! drawn with it.
//!
//! An effect is one file with `fn effect(splat: Splat, uniforms: Uniforms, t_s: f32) -> Splat` (or
//! without the uniforms) and whatever structs, constants and functions of its own; what it finds is in
//! `shaders/shared/effect.wgsl`. [`Effect::new`] parses and validates it, and runs it on a few splats,
//! so that an error names the author's line and a loop without an end never reaches a graphics device.
//! The GPU gets the text ([`Effect::wgsl`]); the CPU twin runs it ([`Effect::apply`]).
//!
//! [`spread`] says how far along a surface every splat is from where it was touched.
//!
//! It knows no Lua and no device.

mod interpreter;
pub mod spread;
mod wgsl;

use glam::{Quat, Vec3};
use interpreter::{Memory, Program};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{Handle, Module, ScalarKind, TypeInner};
use sha2::{Digest, Sha256};
use spread::NEVER_M;
use std::cell::RefCell;
use std::sync::Arc;

/// Effects of one draw, which follow each other.
pub const EFFECTS_MAX: usize = 4;
/// Floats that the uniforms of one effect hold.
pub const UNIFORM_FLOATS_MAX: usize = 32;
/// Turns of all loops of one effect for one splat; as in `shaders/shared/effect.wgsl`.
pub const TURNS_MAX: u32 = 1024;
/// Longest file, bytes.
pub const SOURCE_BYTES_MAX: usize = 256 << 10;
/// Brightest colour that an effect may give: embers outshine white.
pub const COLOUR_MAX: f32 = 64.0;

/// What stands before an author's text.
const LIBRARY: [&str; 2] = [
    include_str!("../../shaders/shared/quaternion.wgsl"),
    include_str!("../../shaders/shared/effect.wgsl"),
];
/// Of the text that is checked; any other number would do.
const OWN_PREFIX: &str = "effect_0_";
/// Words of an `EffectSplat`.
const SPLAT_WORDS: usize = 27;
/// Members of `EffectSplat` in their order, for the test that compares them.
#[cfg(test)]
const SPLAT_MEMBERS: [&str; 10] = [
    "centre_m",
    "scale_m",
    "rotation",
    "colour",
    "opacity",
    "rest_m",
    "world_m",
    "world_rotation",
    "world_scale",
    "spread_m",
];

/// What is wrong with an effect, and on which line of its file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct Error {
    /// As it was named to [`Effect::new`].
    pub file: String,
    /// From 1.
    pub line: u32,
    /// One line, without the place.
    pub message: String,
}

/// One member of an author's `struct Uniforms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uniform {
    /// As the author calls it.
    pub name: String,
    /// Floats: 1 to 4.
    pub lanes: usize,
    /// First float in the list of values.
    pub at: usize,
}

/// A splat as an effect finds and leaves it: `EffectSplat` in `shaders/shared/effect.wgsl`, where the
/// fields are explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectSplat {
    /// Handle's own space, metres.
    pub centre_m: Vec3,
    /// Standard deviations, metres.
    pub scale_m: Vec3,
    /// Unit.
    pub rotation: Quat,
    /// Display space.
    pub colour: Vec3,
    /// 0 to 1.
    pub opacity: f32,
    /// As loaded, metres.
    pub rest_m: Vec3,
    /// World, metres.
    pub world_m: Vec3,
    /// World from the handle's space.
    pub world_rotation: Quat,
    /// World from the handle's space.
    pub world_scale: f32,
    /// Metres along the surface.
    pub spread_m: f32,
    /// From 0.
    pub row: u32,
}

/// A checked effect.
pub struct Effect {
    file: String,
    source: String,
    hash: [u8; 32],
    uniforms: Vec<Uniform>,
    /// Whether `effect` takes uniforms.
    has_uniforms: bool,
    has_loops: bool,
    program: Program,
}

/// An effect on a draw, with the values of this picture.
#[derive(Clone, Debug)]
pub struct EffectUse {
    /// What is done.
    pub effect: Arc<Effect>,
    /// [`Effect::floats`] of them.
    pub values: Vec<f32>,
    /// Time of the scene, seconds.
    pub t_s: f32,
}

impl PartialEq for EffectUse {
    /// Whether both give the same picture.
    fn eq(&self, other: &Self) -> bool {
        self.effect.hash == other.effect.hash
            && self.values == other.values
            && self.t_s == other.t_s
    }
}

impl std::fmt::Debug for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Effect").field(&self.file).finish()
    }
}

thread_local! {
    /// The interpreter's memory, which one thread uses for one splat after the other.
    static MEMORY: RefCell<Memory> = RefCell::default();
}

impl Effect {
    /// Checks a file; `file` is how messages name it.
    ///
    /// # Errors
    /// The text does not parse or validate, is no effect, uses what means nothing for a splat, or does
    /// not end for a splat that it is tried on.
    pub fn new(file: &str, source: &str) -> Result<Self, Error> {
        let fail = |line: u32, message: &str| Error {
            file: file.to_owned(),
            line,
            message: wgsl::unprefixed(message, OWN_PREFIX),
        };
        if source.len() > SOURCE_BYTES_MAX {
            return Err(fail(
                1,
                &format!("larger than the {SOURCE_BYTES_MAX} bytes that an effect may have"),
            ));
        }
        if let Some(name) = (wgsl::declared(source).into_iter()).find(|n| *n == "Splat") {
            return Err(fail(
                1,
                &format!("{name} is the host's: call this struct otherwise"),
            ));
        }
        let before: String = LIBRARY.concat();
        let text = before.clone() + &wgsl::prefixed(source, OWN_PREFIX);
        let lines_before = before.lines().count() as u32;
        let line = |span: naga::Span| {
            let place = span.is_defined().then(|| span.location(&text));
            place.map_or(1, |p| p.line_number.saturating_sub(lines_before).max(1))
        };
        let module = naga::front::wgsl::parse_str(&text).map_err(|error| {
            let notes: String = error.notes().map(|n| format!("; {n}")).collect();
            let place = error.location(&text);
            let at = place.map_or(1, |p| p.line_number.saturating_sub(lines_before).max(1));
            fail(at, &one_line(&format!("{}{notes}", error.message())))
        })?;
        // Two halves in one word: splats come so.
        let can = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        let info = Validator::new(ValidationFlags::all(), can)
            .validate(&module)
            .map_err(|error| {
                // The innermost place stands last.
                let span = error
                    .spans()
                    .last()
                    .map_or(naga::Span::UNDEFINED, |(s, _)| *s);
                let mut message = error.as_inner().to_string();
                let mut cause = std::error::Error::source(error.as_inner());
                while let Some(inner) = cause {
                    message.push_str(": ");
                    message.push_str(&inner.to_string());
                    cause = inner.source();
                }
                fail(line(span), &one_line(&message))
            })?;
        if !module.entry_points.is_empty() {
            return Err(fail(
                1,
                "an effect has no entry points: the host calls fn effect",
            ));
        }
        // The host's own counter of turns comes first.
        if let Some((handle, _)) = module.global_variables.iter().nth(1) {
            let at = line(module.global_variables.get_span(handle));
            return Err(fail(
                at,
                "an effect has no variables outside of functions: use const, or struct Uniforms",
            ));
        }
        let entry =
            (module.functions.iter()).find(|(_, f)| f.name.as_deref() == Some("effect_0_effect"));
        let Some((entry, function)) = entry else {
            return Err(fail(
                1,
                &format!("there is no fn effect: it must be {SIGNATURE}"),
            ));
        };
        let declared_at = source
            .lines()
            .position(|l| l.contains("fn effect") && !l.trim_start().starts_with("//"))
            .map_or(1, |at| at as u32 + 1);
        let (uniforms, has_uniforms) =
            signature(&module, function).map_err(|why| fail(declared_at, &why))?;
        let program = Program::new(&module, &info, entry)
            .map_err(|unknown| fail(line(unknown.span), &unknown.message))?;
        let effect = Self {
            file: file.to_owned(),
            hash: Sha256::digest(source).into(),
            source: source.to_owned(),
            uniforms,
            has_uniforms,
            has_loops: wgsl::has_loops(source),
            program,
        };
        effect
            .try_on(&vec![0.0; effect.floats()])
            .map_err(|span| fail(line(span), &endless()))?;
        Ok(effect)
    }

    /// Runs it with these values on a few splats, here and there and at several times.
    ///
    /// # Errors
    /// A loop takes more than [`TURNS_MAX`] turns.
    pub fn check(&self, values: &[f32]) -> Result<(), Error> {
        self.try_on(values).map_err(|span| {
            let before = LIBRARY.concat();
            let text = before.clone() + &wgsl::prefixed(&self.source, OWN_PREFIX);
            let line = span.location(&text).line_number;
            Error {
                file: self.file.clone(),
                line: line.saturating_sub(before.lines().count() as u32).max(1),
                message: endless(),
            }
        })
    }

    fn try_on(&self, values: &[f32]) -> Result<(), naga::Span> {
        let tried = [
            (Vec3::ZERO, 0.0, NEVER_M),
            (Vec3::new(1.3, -0.4, 2.1), 0.5, 0.0),
            (Vec3::new(-20.0, 3.0, -7.5), 4.0, 2.5),
            (Vec3::new(310.0, 0.01, 77.0), 1000.0, 40.0),
        ];
        for (row, (at, t_s, spread_m)) in (0..).zip(tried) {
            let splat = EffectSplat {
                centre_m: at,
                scale_m: Vec3::new(0.02, 0.01, 0.003),
                rotation: Quat::IDENTITY,
                colour: Vec3::new(0.6, 0.5, 0.4),
                opacity: 0.9,
                rest_m: at,
                world_m: at,
                world_rotation: Quat::IDENTITY,
                world_scale: 1.0,
                spread_m,
                row,
            };
            MEMORY.with_borrow_mut(|memory| {
                let arguments = self.arguments(&splat, values, t_s);
                (self.program)
                    .run(memory, &arguments, TURNS_MAX)
                    .map(|_| ())
                    .map_err(|endless| endless.0)
            })?;
        }
        Ok(())
    }

    /// How messages name its file.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// SHA-256 of its text: two effects of one hash do the same.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// Its uniforms, in the order of their declaration.
    #[must_use]
    pub fn uniforms(&self) -> &[Uniform] {
        &self.uniforms
    }

    /// Floats that its uniforms take.
    #[must_use]
    pub fn floats(&self) -> usize {
        self.uniforms.iter().map(|u| u.lanes).sum()
    }

    /// Whether values can make it go on without an end.
    #[must_use]
    pub fn has_loops(&self) -> bool {
        self.has_loops
    }

    /// Its text for a shader in which it is number `place`: line n is the author's line n, and its
    /// own names begin with [`Effect::prefix`].
    #[must_use]
    pub fn wgsl(&self, place: usize) -> String {
        wgsl::prefixed(&self.source, &Self::prefix(place))
    }

    /// What stands before the names of effect number `place` of a shader.
    #[must_use]
    pub fn prefix(place: usize) -> String {
        format!("effect_{place}_")
    }

    /// A message about [`Effect::wgsl`] in the author's own words.
    #[must_use]
    pub fn own_words(message: &str, place: usize) -> String {
        wgsl::unprefixed(message, &Self::prefix(place))
    }

    /// A WGSL expression that calls it, as number `place` of a shader, on `splat`; `float` writes the
    /// expression of uniform float n, and `t_s` is the time.
    #[must_use]
    pub fn call(
        &self,
        place: usize,
        splat: &str,
        t_s: &str,
        float: &dyn Fn(usize) -> String,
    ) -> String {
        let prefix = Self::prefix(place);
        if !self.has_uniforms {
            return format!("{prefix}effect({splat}, {t_s})");
        }
        let members: Vec<String> = (self.uniforms.iter())
            .map(|u| {
                let floats: Vec<String> = (u.at..u.at + u.lanes).map(float).collect();
                match u.lanes {
                    1 => floats.concat(),
                    n => format!("vec{n}<f32>({})", floats.join(", ")),
                }
            })
            .collect();
        format!(
            "{prefix}effect({splat}, {prefix}Uniforms({}), {t_s})",
            members.join(", ")
        )
    }

    /// The splat as the effect leaves it. Values that are left out are 0.
    #[must_use]
    pub fn apply(&self, splat: &EffectSplat, values: &[f32], t_s: f32) -> EffectSplat {
        MEMORY.with_borrow_mut(|memory| {
            let arguments = self.arguments(splat, values, t_s);
            // The text itself leaves a loop that goes on for too long, as on the GPU.
            match self.program.run(memory, &arguments, u32::MAX) {
                Ok(words) => returned(splat, words),
                Err(_) => *splat,
            }
        })
    }

    fn arguments(&self, splat: &EffectSplat, values: &[f32], t_s: f32) -> Vec<u32> {
        let mut words = Vec::with_capacity(SPLAT_WORDS + UNIFORM_FLOATS_MAX + 1);
        let mut push = |floats: &[f32]| words.extend(floats.iter().map(|v| v.to_bits()));
        push(&splat.centre_m.to_array());
        push(&splat.scale_m.to_array());
        push(&splat.rotation.to_array());
        push(&splat.colour.to_array());
        push(&[splat.opacity]);
        push(&splat.rest_m.to_array());
        push(&splat.world_m.to_array());
        push(&splat.world_rotation.to_array());
        push(&[splat.world_scale, splat.spread_m]);
        words.push(splat.row);
        let floats = self.floats();
        words.extend((0..floats).map(|k| values.get(k).copied().unwrap_or(0.0).to_bits()));
        words.push(t_s.to_bits());
        words
    }
}

/// What `effect` must look like.
const SIGNATURE: &str = "fn effect(splat: Splat, uniforms: Uniforms, t_s: f32) -> Splat, or without \
                         the uniforms";

fn endless() -> String {
    format!("this loop takes more than {TURNS_MAX} turns for one splat")
}

fn one_line(text: &str) -> String {
    let parts: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    parts.join("; ")
}

/// What an effect may have changed.
fn returned(before: &EffectSplat, words: &[u32]) -> EffectSplat {
    let float = |at: usize| words.get(at).map_or(0.0, |w| f32::from_bits(*w));
    let vector = |at: usize| Vec3::new(float(at), float(at + 1), float(at + 2));
    EffectSplat {
        centre_m: vector(0),
        scale_m: vector(3),
        rotation: Quat::from_xyzw(float(6), float(7), float(8), float(9)),
        colour: vector(10),
        opacity: float(13),
        ..*before
    }
}

/// The uniforms that `effect` takes, and whether it takes any.
fn signature(module: &Module, function: &naga::Function) -> Result<(Vec<Uniform>, bool), String> {
    let wrong = || format!("fn effect must be {SIGNATURE}");
    let name = |ty: Handle<naga::Type>| module.types[ty].name.as_deref();
    let is_splat = |ty: Handle<naga::Type>| name(ty) == Some("EffectSplat");
    let arguments: Vec<Handle<naga::Type>> = function.arguments.iter().map(|a| a.ty).collect();
    let (splat, uniforms, t_s) = match arguments[..] {
        [splat, t_s] => (splat, None, t_s),
        [splat, uniforms, t_s] => (splat, Some(uniforms), t_s),
        _ => return Err(wrong()),
    };
    let is_time = matches!(
        module.types[t_s].inner,
        TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Float && scalar.width == 4
    );
    let gives_splat = function.result.as_ref().is_some_and(|r| is_splat(r.ty));
    if !is_splat(splat) || !is_time || !gives_splat {
        return Err(wrong());
    }
    let Some(uniforms) = uniforms else {
        return Ok((Vec::new(), false));
    };
    let TypeInner::Struct { members, .. } = &module.types[uniforms].inner else {
        return Err(wrong());
    };
    if name(uniforms) != Some("effect_0_Uniforms") {
        return Err(wrong());
    }
    let mut found: Vec<Uniform> = Vec::new();
    let mut at = 0;
    for member in members {
        let member_name = member.name.clone().unwrap_or_default();
        let lanes = match module.types[member.ty].inner {
            TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Float => 1,
            TypeInner::Vector { size, scalar } if scalar.kind == ScalarKind::Float => size as usize,
            _ => {
                return Err(format!(
                    "struct Uniforms: {member_name} must be f32, vec2f, vec3f or vec4f"
                ));
            }
        };
        found.push(Uniform {
            name: member_name,
            lanes,
            at,
        });
        at += lanes;
    }
    if at > UNIFORM_FLOATS_MAX {
        return Err(format!(
            "struct Uniforms holds {at} floats: {UNIFORM_FLOATS_MAX} are the most"
        ));
    }
    Ok((found, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> EffectSplat {
        EffectSplat {
            centre_m: Vec3::new(1.0, 2.0, 3.0),
            scale_m: Vec3::splat(0.1),
            rotation: Quat::IDENTITY,
            colour: Vec3::new(0.5, 0.25, 0.125),
            opacity: 0.8,
            rest_m: Vec3::new(-1.0, -2.0, -3.0),
            world_m: Vec3::new(4.0, 5.0, 6.0),
            world_rotation: Quat::from_rotation_z(std::f32::consts::FRAC_PI_2),
            world_scale: 2.0,
            spread_m: 0.75,
            row: 7,
        }
    }

    fn run(body: &str) -> EffectSplat {
        let text = format!(
            "fn effect(splat: Splat, t_s: f32) -> Splat {{ var s = splat;\n{body}\nreturn s; }}"
        );
        let effect = Effect::new("a.wgsl", &text).expect("valid");
        effect.apply(&one(), &[], 1.5)
    }

    #[test]
    fn the_host_and_the_shader_agree_on_a_splat() {
        let module = naga::front::wgsl::parse_str(&LIBRARY.concat()).expect("parses");
        let (_, ty) = (module.types.iter())
            .find(|(_, t)| t.name.as_deref() == Some("EffectSplat"))
            .expect("is there");
        let TypeInner::Struct { members, .. } = &ty.inner else {
            panic!("a struct");
        };
        let names: Vec<_> = members.iter().filter_map(|m| m.name.as_deref()).collect();
        assert_eq!(names[..10], SPLAT_MEMBERS);
        assert_eq!(names[10..], ["row"]);
        let text = LIBRARY[1];
        assert!(text.contains(&format!("EFFECT_TURNS_MAX: u32 = {TURNS_MAX}u")));
        // What every member holds comes out of the right one.
        let s = run(
            "s.colour = vec3f(s.world_m.y, s.rest_m.z, s.spread_m); s.opacity = f32(s.row) * t_s;",
        );
        assert_eq!(s.colour, Vec3::new(5.0, -3.0, 0.75));
        assert!((s.opacity - 10.5).abs() < 1e-6);
        let s = run("s.centre_m = own_from_world(s, vec3f(0.0, 2.0, 0.0));");
        assert!((s.centre_m - Vec3::X).length() < 1e-6, "{s:?}");
    }

    #[test]
    fn control_flow_runs_as_written() {
        let s = run(
            "var sum = 0; for (var i = 0; i < 10; i++) { if i == 3 { continue; } if i > 6 { break; } sum += i; }\n\
             s.opacity = f32(sum);",
        );
        assert_eq!(s.opacity, 18.0, "0 + 1 + 2 + 4 + 5 + 6");
        let s = run("var n = 0u; while n < 5u { n += 2u; }\n\
             switch n { case 4u: { s.opacity = 0.1; } case 5u, 6u: { s.opacity = 0.2; } default: { } }");
        assert_eq!(s.opacity, 0.2);
        let s = run(
            "var a = array<f32, 3>(1.0, 2.0, 3.0); let p = &a[1]; *p += 5.0; var i = 1;\n\
             s.opacity = a[i] * a[2]; s.colour[2] = 9.0; s.centre_m.y -= 1.0;",
        );
        assert_eq!((s.opacity, s.colour.z, s.centre_m.y), (21.0, 9.0, 1.0));
    }

    #[test]
    fn numbers_are_what_wgsl_says() {
        let s = run(
            "s.opacity = f32(select(-7 / 2, 9, s.row == 8u)); s.colour = vec3f(fract(-1.25), \
                     f32(hash(1u) & 255u), smoothstep(0.0, 2.0, t_s));",
        );
        assert_eq!(s.opacity, -3.0);
        assert_eq!(s.colour.x, 0.75);
        let mut x = 1_u32;
        x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
        x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
        x ^= x >> 16;
        assert_eq!(s.colour.y, (x & 255) as f32);
        assert!((s.colour.z - 0.84375).abs() < 1e-6);
        let s = run(
            "let m = mat3x3f(vec3f(0.0, 1.0, 0.0), vec3f(-1.0, 0.0, 0.0), vec3f(0.0, 0.0, 1.0));\n\
                     s.centre_m = m * s.centre_m; s.colour = s.rest_m * m; s.opacity = determinant(m);",
        );
        assert_eq!(s.centre_m, Vec3::new(-2.0, 1.0, 3.0));
        assert_eq!(s.colour, Vec3::new(-2.0, 1.0, -3.0));
        assert_eq!(s.opacity, 1.0);
        let s = run(
            "s.centre_m = normalize(cross(vec3f(1.0, 0.0, 0.0), vec3f(0.0, 2.0, 0.0))); \
                     s.opacity = noise(vec3f(2.0, 3.0, 4.0)) - noise(vec3f(2.0, 3.0, 4.00001));",
        );
        assert_eq!(s.centre_m, Vec3::Z);
        assert!(s.opacity.abs() < 1e-3, "noise is smooth: {}", s.opacity);
    }

    fn error_of(text: &str) -> (u32, String) {
        let error = Effect::new("a.wgsl", text).expect_err("is wrong");
        assert_eq!(error.file, "a.wgsl");
        (error.line, error.message)
    }

    #[test]
    fn errors_stand_at_the_authors_line_in_the_authors_words() {
        let (line, message) = error_of(
            "// one\nfn effect(splat: Splat, t_s: f32) -> Splat {\n  var s = splat;\n  s.opacity = flame;\n  return s;\n}",
        );
        assert_eq!(line, 4, "{message}");
        assert!(
            message.contains("flame") && !message.contains("effect_0_"),
            "{message}"
        );
        let (line, message) = error_of(
            "fn heat(x: f32) -> f32 { return x; }\nfn effect(splat: Splat, t_s: f32) -> Splat {\n  \
             var s = splat;\n  s.centre_m = heat(t_s);\n  return s; }",
        );
        assert_eq!(line, 4, "{message}");
        let (line, message) = error_of(
            "fn effect(splat: Splat, t_s: f32) -> Splat {\n var i = 0;\n\n  loop { i = 1; }\n return splat; }",
        );
        assert_eq!(line, 4, "{message}");
        assert!(message.contains("1024 turns"), "{message}");
        let (line, message) = error_of(
            "fn effect(splat: Splat, t_s: f32) -> Splat {\n var s = splat;\n s.opacity = dpdx(t_s);\n return s; }",
        );
        assert!(
            line == 3 && message.contains("derivative"),
            "{line} {message}"
        );
        let (_, message) = error_of("fn efect(splat: Splat, t_s: f32) -> Splat { return splat; }");
        assert!(message.contains("there is no fn effect"), "{message}");
        let (line, message) = error_of("\nfn effect(splat: Splat) -> Splat { return splat; }");
        assert!(
            line == 2 && message.contains("fn effect must be"),
            "{line} {message}"
        );
        let (line, message) = error_of(
            "struct Uniforms { n: u32 }\nfn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat { return splat; }",
        );
        assert!(message.contains("n must be f32"), "{line} {message}");
        let (line, message) = error_of(
            "fn effect(splat: Splat, t_s: f32) -> Splat { return splat; }\nvar<private> kept: f32;",
        );
        assert!(
            line == 2 && message.contains("variables outside"),
            "{line} {message}"
        );
        let (line, message) =
            error_of("fn effect(splat: Splat, t_s: f32) -> Splat {\n return page; }");
        assert!(line == 2 && message.contains("page"), "{line} {message}");
        let (_, message) = error_of("\u{0}");
        assert!(!message.is_empty());
    }

    #[test]
    fn what_would_take_all_memory_or_all_time_is_refused_at_its_line() {
        // Every name is a copy of 65,536 numbers.
        let copies: String = (0..3000).map(|i| format!("  let b{i} = a;\n")).collect();
        let text = format!(
            "// Much.\nfn effect(splat: Splat, t_s: f32) -> Splat {{\n  var a: array<f32, 65536>;\n{copies}  return splat; }}"
        );
        let (line, message) = error_of(&text);
        assert!(
            line == 2 && message.contains("more than a million numbers"),
            "{line} {message}"
        );
        let constants: String = (0..3000)
            .map(|i| format!("const C{i} = array<f32, 65536>();\n"))
            .collect();
        let (_, message) = error_of(&format!(
            "{constants}fn effect(splat: Splat, t_s: f32) -> Splat {{ return splat; }}"
        ));
        assert!(message.contains("more than a million numbers"), "{message}");
        // Forty functions that each call the one before twice: 2^40 calls, and no loop.
        let calls: String = (1..40)
            .map(|i| {
                format!(
                    "fn twice{i}(x: f32) -> f32 {{ return twice{}(x) + twice{}(x + 1.0); }}\n",
                    i - 1,
                    i - 1
                )
            })
            .collect();
        let (line, message) = error_of(&format!(
            "fn twice0(x: f32) -> f32 {{ return sin(x); }}\n{calls}\
             fn effect(splat: Splat, t_s: f32) -> Splat {{ var s = splat; s.opacity = twice39(t_s); return s; }}"
        ));
        assert!(message.contains("more than 16384 calls"), "{message}");
        assert_eq!(line, 15, "twice14 is the first that makes them");
    }

    #[test]
    fn numbers_at_the_edges_are_what_wgsl_says() {
        let number = |expression: &str| {
            // What comes in is not known when the text is read.
            let s = run(&format!(
                "let inf = 1.0 / (t_s - 1.5); let nan = inf - inf; let two = t_s + 0.5;\ns.opacity = {expression};"
            ));
            s.opacity
        };
        for (expression, wanted) in [
            ("f32(i32(two * 2e9))", 2_147_483_520.0),
            ("f32(i32(-two * 2e9))", -2_147_483_648.0),
            ("f32(u32(two * 4e9))", 4_294_967_040.0),
            ("f32(u32(-two))", 0.0),
            ("f32(i32(-t_s))", -1.0),
            ("saturate(nan)", 0.0),
            ("clamp(nan, 2.0, 3.0)", 2.0),
            ("smoothstep(two, two, two)", 0.0),
            ("sign(nan)", 0.0),
            ("sign(-two)", -1.0),
            ("min(nan, two)", 2.0),
            ("pow(two, 10.0)", 1024.0),
            ("f32(pow(-two, two) == 4.0)", 0.0),
            ("round(two + 0.5)", 2.0),
            ("-3.0 * two % 4.0", -2.0),
        ] {
            let found = number(expression);
            assert!(
                (found - wanted).abs() <= wanted.abs() * 1e-6,
                "{expression} is {found}"
            );
        }
    }

    #[test]
    fn uniforms_come_by_name_and_place() {
        let effect = Effect::new(
            "a.wgsl",
            "struct Uniforms { front: f32, glow: vec3f, way: vec2f }\n\
             fn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {\n\
             var s = splat; s.colour = u.glow * u.front; s.opacity = u.way.y; return s; }",
        )
        .expect("valid");
        let found: Vec<_> = (effect.uniforms().iter())
            .map(|u| (u.name.as_str(), u.lanes, u.at))
            .collect();
        assert_eq!(found, [("front", 1, 0), ("glow", 3, 1), ("way", 2, 4)]);
        let s = effect.apply(&one(), &[2.0, 0.1, 0.2, 0.3, 8.0, 9.0], 0.0);
        assert_eq!((s.colour, s.opacity), (Vec3::new(0.2, 0.4, 0.6), 9.0));
        let call = effect.call(1, "s", "t", &|n| format!("v{n}"));
        assert_eq!(
            call,
            "effect_1_effect(s, effect_1_Uniforms(v0, vec3<f32>(v1, v2, v3), vec2<f32>(v4, v5)), t)"
        );
    }

    #[test]
    fn a_loop_that_a_value_makes_endless_is_left_and_can_be_found() {
        let effect = Effect::new(
            "a.wgsl",
            "struct Uniforms { n: f32 }\nfn effect(splat: Splat, u: Uniforms, t_s: f32) -> Splat {\n\
             var s = splat; s.opacity = 0.0;\n for (var i = 0.0; i < u.n; i += 1.0) { s.opacity += 1.0; }\n return s; }",
        )
        .expect("ends where n is 0");
        effect.check(&[100.0]).expect("ends");
        let error = effect.check(&[1e9]).expect_err("does not end");
        assert_eq!(error.line, 4);
        // As on the GPU, which has no other way out.
        let s = effect.apply(&one(), &[1e9], 0.0);
        assert_eq!(s.opacity, TURNS_MAX as f32);
    }
}
