//! What test files have beside a scene's API. It is bound in Lua (`testing.luau`).

use super::{Class, Kind, Namespace, Record, function, item, number, record, text};

/// Globals of test files.
pub static TESTING: Namespace = Namespace {
    name: "",
    doc: "In test files (`NAME_test.luau`) alone. Such a file returns a table of functions; each gets a \
          scene of its own and runs by `splatstage test`.",
    fields: &[],
    functions: &[function(
        "expect",
        "What a test says of a value; the first that does not hold ends the test.",
    )
    .takes(&[item("value", Kind::Any, "What there is")])
    .gives(&[item(
        "expectation",
        Kind::Class("expectation"),
        "What should hold",
    )])
    .example("expect(1 + 1).equals(2)")],
};

/// What `expect` returns; its functions are called with a point.
pub static EXPECTATION: Namespace = Namespace {
    name: "expectation",
    doc: "What should hold for a value.",
    fields: &[],
    functions: &[
        function("equals", "The same value; tables with the same entries.")
            .takes(&[item("wanted", Kind::Any, "The value")])
            .example("expect({ 1, 2 }).equals({ 1, 2 })"),
        function("differs", "Another value.")
            .takes(&[item("other", Kind::Any, "The value")])
            .example("expect(1).differs(2)"),
        function(
            "near",
            "Numbers, vectors or lists of them, not further off than `by`.",
        )
        .takes(&[
            item("wanted", Kind::Any, "The value"),
            number("by", "", "How far it may be off").or("1e-6"),
        ])
        .example("expect(0.1 + 0.2).near(0.3)"),
        function("above", "A number above another.")
            .takes(&[number("least", "", "The other")])
            .example("expect(2).above(1)"),
        function("below", "A number below another.")
            .takes(&[number("most", "", "The other")])
            .example("expect(1).below(2)"),
        function("contains", "A text with a part, a table with a value.")
            .takes(&[item("part", Kind::Any, "The part")])
            .example("expect(\"a scene\").contains(\"scene\")"),
        function("fails", "A function that raises an error.")
            .takes(&[text("part", "In the error's text").or("anything")])
            .example("expect(function() motion.ease(\"no curve\", 0) end).fails(\"no curve\")"),
        function(
            "looks_like",
            "A picture of `scene:picture` that is like a file beside the scene.",
        )
        .takes(&[
            text("file", "A PNG"),
            number("db", "dB", "How like, as PSNR")
                .above_zero()
                .or("40"),
        ])
        .fails("No such file; `splatstage test --update` makes it."),
    ],
};

/// What each test gets.
pub static TESTED_SCENE: Class = Class {
    name: "tested_scene",
    type_name: "table",
    doc: "The scene that is tested, from its beginning.",
    fields: &[number("duration", "seconds", "How long it is")],
    methods: &[
        function("frame", "What it shows at a time, as `trace` prints it.")
            .takes(&[number("t", "seconds", "When")])
            .gives(&[item(
                "frame",
                Kind::Data,
                "Camera, state, walker, film; vectors for places",
            )]),
        function("cues", "What happens in a time.")
            .takes(&[
                number("from", "seconds", "At this time or later"),
                number("to", "seconds", "Before this time"),
            ])
            .gives(&[item("cues", Kind::List(&Kind::Record("cue")), "In order")]),
        function("input", "Something comes in.").takes(&[item(
            "line",
            Kind::Data,
            "A line of an input log as a table, or the name of a log beside the scene",
        )]),
        function("picture", "The picture at a time, for `looks_like`.")
            .takes(&[
                number("t", "seconds", "When"),
                item("options", Kind::Record("picture_options"), "How large").or("320 by 180"),
            ])
            .gives(&[item("picture", Kind::Any, "For `expect`")]),
    ],
    operators: &[],
};

/// `scene:picture(t, {...})`.
pub static PICTURE_OPTIONS: Record = record(
    "picture_options",
    "A picture of a test.",
    &[item("size", Kind::Numbers(2), "Width and height, px")
        .sample("{ 32, 18 }")
        .or("{320, 180}")],
)
.samples(&["{ size = { 32, 18 } }"]);
