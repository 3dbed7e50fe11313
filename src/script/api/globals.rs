//! Globals that are functions, `log`, and what Luau has and a scene has not.

use super::{Kind, Namespace, function, text};

/// Globals that no namespace holds.
pub static GLOBALS: Namespace = Namespace {
    name: "",
    doc: "Functions without a namespace.",
    fields: &[],
    functions: &[
        function(
            "require",
            "What another file returns: `./x` and `../x` inside the scene, `@stage/x` of the library. A file \
             runs once.",
        )
        .takes(&[text("path", "Without or with `.luau`").sample("\"@stage/shapes\"")])
        .gives(&[super::item("module", Kind::Any, "What the file returned")])
        .fails("No such file, a path out of the scene, files that require each other in a circle.")
        .example("expect(type(require(\"@stage/shapes\"))).equals(\"table\")"),
        function("print", "Says a line, as `log.info` does.")
            .takes_more(Kind::Any)
            .example("print(\"t is\", 3)"),
    ],
};

/// `log`.
pub static LOG: Namespace = Namespace {
    name: "log",
    doc: "Lines for the person, with the file and line that says them. 500 at once and 2 a call are let \
          through.",
    fields: &[],
    functions: &[
        function("info", "Says a line.")
            .takes_more(Kind::Any)
            .example("log.info(\"at\", vector.one)"),
        function("warn", "Warns.")
            .takes_more(Kind::Any)
            .example("log.warn(\"nobody is here\")"),
        function("error", "Complains; the scene goes on.")
            .takes_more(Kind::Any)
            .example("log.error(\"no way\")"),
    ],
};

/// Globals of Luau that no scene gets, and what to use instead.
pub static REMOVED: [(&str, &str); 12] = [
    ("getfenv", "environments are closed"),
    ("setfenv", "environments are closed"),
    ("loadstring", "use require"),
    ("load", "use require"),
    ("dofile", "use require"),
    ("collectgarbage", "the host collects"),
    ("gcinfo", "the host collects"),
    ("newproxy", "use tables"),
    ("os", "time is an argument: step(dt, input), frame(t)"),
    (
        "io",
        "a scene reads assets by stage.splats and code by require",
    ),
    ("_G", "globals are read-only; use local variables"),
    ("shared", "use local variables"),
];
