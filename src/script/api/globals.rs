//! Globals that are functions, `log`, and what Luau has and a scene has not.

use super::{Kind, Namespace, Record, function, item, number, record, text};

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
        .gives(&[item("module", Kind::Any, "What the file returned")])
        .fails("No such file, a path out of the scene, files that require each other in a circle.")
        .example("expect(type(require(\"@stage/shapes\"))).equals(\"table\")"),
        function(
            "param",
            "What a parameter stands at. The first call declares it: a slider (F2 while it plays), \
             `--param NAME=VALUE`, an OSC address, a MIDI control, an entry of presets. What is read while \
             loading takes effect with the next load.",
        )
        .takes(&[
            text("name", "`a` to `z`, digits, `_` and `.`; up to 64 bytes").sample("unique()"),
            item(
                "default",
                Kind::Either(&[Kind::Number, Kind::Boolean, Kind::Text]),
                "What it stands at until it is turned",
            ),
            item("options", Kind::Record("param_options"), "Range, unit, help").or("any value of its kind"),
        ])
        .gives(&[item(
            "value",
            Kind::Either(&[Kind::Number, Kind::Boolean, Kind::Text]),
            "Of the default's kind",
        )])
        .fails("More than 256; another default for the same name; a default out of its own range.")
        .example("expect(param(\"cadence\", 1.3, { min = 0.5, max = 2, unit = \"Hz\" })).near(1.3)"),
        function(
            "persist",
            "A table that outlives a version of the script: what is in it is handed to the next one as plain \
             data. What the default has and the kept table has not is added.",
        )
        .takes(&[
            text("key", "1 to 64 bytes").sample("unique()"),
            item("default", Kind::Data, "A table: what it holds at first").sample("{ clicks = 0 }"),
        ])
        .gives(&[item("table", Kind::Data, "The table; the same for the same key")])
        .fails("More than 256 tables.")
        .example(
            "local score = persist(\"score\", { clicks = 0 })\n\
             score.clicks += 1\n\
             expect(persist(\"score\", {}).clicks).equals(1)",
        ),
        function("print", "Says a line, as `log.info` does.")
            .takes_more(Kind::Any)
            .example("print(\"t is\", 3)"),
    ],
};

/// `param(name, default, {...})`.
pub static PARAM_OPTIONS: Record = record(
    "param_options",
    "What a parameter can stand at. `min`, `max` and `step` are for numbers, `choices` for texts.",
    &[
        number("min", "", "Least").or("none"),
        number("max", "", "Largest, above `min`").or("none"),
        number(
            "step",
            "",
            "Values are whole multiples of it, from `min` on",
        )
        .above_zero()
        .or("none"),
        text("unit", "As it is shown: `Hz`, `m`").or("none"),
        text("help", "A sentence for who turns it").or("none"),
        item(
            "choices",
            Kind::List(&Kind::Text),
            "What a text can be, up to 64",
        )
        .sample("nil")
        .or("any text"),
    ],
)
.samples(&["{ min = -1e30, max = 1e30 }"]);

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
