//! `motion`: easing, noise, springs, splines, tracks.

use super::{Function, Item, Kind, Namespace, Record, function, item, number, record, vector};
use crate::script::motion::SAMPLES_MAX;

const AMOUNT: Kind = Kind::Either(&[Kind::Number, Kind::Vector]);

const fn amount(name: &'static str, doc: &'static str) -> Item {
    item(name, AMOUNT, doc)
}

/// `motion.spring{...}`.
pub static SPRING_OPTIONS: Record = record(
    "spring_options",
    "A spring's way from one value to another: all numbers, or all vectors.",
    &[
        amount("from", "Where it begins").or("0"),
        amount("to", "Where it comes to rest").or("1"),
        amount("velocity", "At the beginning, a second").or("0"),
        number("frequency", "Hz", "Swings a second without damping")
            .above_zero()
            .or("1"),
        number(
            "damping",
            "ratio",
            "1 comes to rest soonest, below it swings, above it creeps",
        )
        .within(0.0, 100.0)
        .or("1"),
    ],
)
.samples(&["{ from = 0, to = 1, velocity = 0, frequency = 2, damping = 0.5 }"]);

/// `motion.spline{...}`.
pub static SPLINE_OPTIONS: Record = record(
    "spline_options",
    "The points of a curve, in order (metres).",
    &[super::flag("closed", "Whether it ends where it began").or("false")],
)
.items(Kind::Vector)
.samples(&["{ vector.zero, vector.one, vector.create(2, 0, 0) }"]);

/// `motion`.
pub static MOTION: Namespace = Namespace {
    name: "motion",
    doc: "Movement as a function of time: what is asked for any t, in any order, is the same.",
    fields: &[],
    functions: &[
        function(
            "ease",
            "How far something has come at `u` of its time, by a curve: `linear`, `smoothstep`, \
             `smootherstep`, CSS's `ease`, `ease_in`, `ease_out`, `ease_in_out`, and `in_`, `out_` and \
             `in_out_` of `sine`, `quad`, `cubic`, `quart`, `quint`, `expo`, `circ`, `back`, `elastic`, \
             `bounce`.",
        )
        .takes(&[
            super::text("name", "The curve").sample("\"in_sine\""),
            number("u", "0 to 1", "The time gone, as a share; held at the ends beyond"),
        ])
        .gives(&[number("share", "", "0 at 0, 1 at 1")])
        .fails("There is no curve of that name.")
        .example("expect(motion.ease(\"in_cubic\", 0.3)).near(0.027)"),
        function("bezier", "CSS's `cubic-bezier(x1, y1, x2, y2)` at `u`.")
            .takes(&[
                number("x1", "", "First handle"),
                number("y1", "", "First handle"),
                number("x2", "", "Second handle"),
                number("y2", "", "Second handle"),
                number("u", "", "The time gone, as a share"),
            ])
            .gives(&[number("share", "", "0 at 0, 1 at 1")])
            .example("expect(motion.bezier(0.2, 0.2, 0.7, 0.7, 0.37)).near(0.37, 1e-6)"),
        function(
            "noise",
            "Smooth noise from -1 to 1, along a line or in space: the same for the same place and seed.",
        )
        .takes(&[
            amount("x", "The place: a number or a vector"),
            number("seed", "", "Another noise for another one").or("0"),
            number("octaves", "", "How many finer noises are added")
                .whole(1.0, crate::motion::noise::OCTAVES_MAX as f64)
                .or("1"),
        ])
        .gives(&[number("value", "", "-1 to 1")])
        .example("expect(motion.noise(0.5, 3)).equals(motion.noise(0.5, 3))"),
        function("spring", "A spring that was let go at 0 s, asked for any time.")
            .takes(&[item(
                "options",
                Kind::Record("spring_options"),
                "From where to where, how stiff",
            )])
            .gives(&[item("spring", Kind::Class("spring"), "The spring")])
            .fails("Numbers and vectors together.")
            .example(
                "local spring = motion.spring({ from = 2, to = 5, frequency = 3 })\n\
                 expect((spring:at(0))).equals(2)\n\
                 expect((spring:at(4))).near(5)",
            ),
        function(
            "spring_step",
            "A spring's value and velocity after `dt` seconds: for what follows live input.",
        )
        .takes(&[
            amount("value", "Where it is"),
            amount("velocity", "How fast it goes, a second").sample("0"),
            amount("target", "Where it is drawn to").sample("1"),
            number("frequency", "Hz", "Swings a second without damping")
                .above_zero()
                .or("1"),
            number("damping", "ratio", "1 comes to rest soonest")
                .within(0.0, 100.0)
                .or("1"),
            number("dt", "seconds", "The time that goes by").within(0.0, 1e9),
        ])
        .gives(&[
            amount("value", "Where it is then"),
            amount("velocity", "How fast it goes then, a second"),
        ])
        .fails("Numbers and vectors together.")
        .example(
            "local value, velocity = motion.spring_step(0, 0, 1, 2, 1, 10)\n\
             expect(value).near(1)\n\
             expect(velocity).near(0)",
        ),
        function(
            "spline",
            "A curve through points, at an even speed. All motion objects of a scene share a limit of \
             numbers.",
        )
        .takes(&[item(
            "points",
            Kind::Record("spline_options"),
            "Two points or more, three where it is closed",
        )])
        .gives(&[item("spline", Kind::Class("spline"), "The curve")])
        .fails("Too few points, points in the same place, the limit.")
        .example(
            "local line = motion.spline({ vector.zero, vector.create(2, 0, 0) })\n\
             expect(line.length).near(2)\n\
             expect(line:at(0.5)).near(vector.create(1, 0, 0), 1e-3)",
        ),
        function(
            "track",
            "Values at an even rate, asked for any time between: what a function says, called once for \
             each sample in order, or the numbers of a buffer (little-endian f64), several a sample.",
        )
        .takes(&[
            number("rate", "Hz", "Samples a second").above_zero().sample("10"),
            item(
                "count",
                Kind::Either(&[Kind::Number, Kind::Buffer]),
                "How many samples, or the buffer",
            )
            .whole(1.0, SAMPLES_MAX as f64)
            .sample("2"),
            item(
                "sample",
                Kind::Either(&[
                    Kind::Function(&[("t", Kind::Number), ("i", Kind::Number)], &AMOUNT),
                    Kind::Number,
                ]),
                "What says the value at t (seconds) of sample i (from 0); behind a buffer the numbers a \
                 sample (1)",
            )
            .or("1, behind a buffer")
            .sample("function() return 1 end"),
        ])
        .gives(&[item("track", Kind::Class("track"), "The track")])
        .fails("A sample of another kind than the first, one that is not finite, a buffer with another number of bytes, the limit.")
        .example(
            "local track = motion.track(10, 21, function(t) return 2 * t end)\n\
             expect(track.duration).equals(2)\n\
             expect(track:at(0.5)).near(1)",
        ),
    ],
};

/// `spring`.
pub(super) const SPRING_METHODS: &[Function] = &[function("at", "Value and velocity at a time.")
    .takes(&[number("t", "seconds", "Since it was let go").within(-1e9, 1e9)])
    .gives(&[
        amount("value", "Where it is"),
        amount("velocity", "How fast it goes, a second"),
    ])
    .example("expect((motion.spring({ to = 3 }):at(9))).near(3)")];

/// `spline`.
pub(super) const SPLINE_METHODS: &[Function] = &[
    function("at", "The place at a share of the length.")
        .takes(&[number(
            "u",
            "0 to 1",
            "The share; held at the ends, or round again where it is closed",
        )])
        .gives(&[vector("place", "metres", "The place")])
        .example(
            "local line = motion.spline({ vector.zero, vector.one, vector.create(3, 0, 0) })\n\
             expect(line:at(0)).equals(vector.zero)",
        ),
    function("tangent", "The direction at a share of the length.")
        .takes(&[number("u", "0 to 1", "The share")])
        .gives(&[vector("direction", "length 1", "Along the curve")])
        .example(
            "local line = motion.spline({ vector.zero, vector.create(2, 0, 0) })\n\
             expect(line:tangent(0.5)).near(vector.create(1, 0, 0), 1e-3)",
        ),
];

/// `track`.
pub(super) const TRACK_METHODS: &[Function] = &[function(
    "at",
    "The value at a time, between samples on a smooth curve: a number or a vector, or a number for each \
     lane of a buffer.",
)
.takes(&[number("t", "seconds", "The first and last values hold beyond the ends")])
.gives(&[amount("value", "The value; of a buffer's track as many as it has lanes")])
.example("expect(motion.track(4, 9, function(t) return t end):at(1)).near(1)")];
