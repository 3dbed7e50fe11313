//! The scenes that are part of the program: `@avatar`, `@alley`, `@burn`, `@effects`, `@hello`,
//! `@room`, `@viewer`.
//!
//! They are the files under `scenes/`, embedded, and generate their splats, so that nothing has to
//! be downloaded. `splatstage scenes/hello` plays the same scene from disk with reloading.

/// Name without the `@`, and the files by relative path.
pub type Builtin = (&'static str, &'static [(&'static str, &'static [u8])]);

/// All built-in scenes.
pub const BUILTINS: &[Builtin] = &[
    (
        AVATAR,
        &[(
            "scene.luau",
            include_bytes!("../../scenes/avatar/scene.luau"),
        )],
    ),
    (
        "alley",
        &[
            (
                "scene.luau",
                include_bytes!("../../scenes/alley/scene.luau"),
            ),
            ("plan.luau", include_bytes!("../../scenes/alley/plan.luau")),
            (
                "sounds.luau",
                include_bytes!("../../scenes/alley/sounds.luau"),
            ),
        ],
    ),
    (
        "burn",
        &[("scene.luau", include_bytes!("../../scenes/burn/scene.luau"))],
    ),
    (
        "effects",
        &[(
            "scene.luau",
            include_bytes!("../../scenes/effects/scene.luau"),
        )],
    ),
    (
        "room",
        &[("scene.luau", include_bytes!("../../scenes/room/scene.luau"))],
    ),
    (
        "hello",
        &[(
            "scene.luau",
            include_bytes!("../../scenes/hello/scene.luau"),
        )],
    ),
    (
        VIEWER,
        &[(
            "scene.luau",
            include_bytes!("../../scenes/viewer/scene.luau"),
        )],
    ),
];

/// The scene that plays bundles, and the built-in character where none is named.
pub const AVATAR: &str = "avatar";

/// The scene that plays plain splat files.
pub const VIEWER: &str = "viewer";

/// The files of the built-in scene `name` (without the `@`).
#[must_use]
pub fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|(n, _)| *n == name)
}
