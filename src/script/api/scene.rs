//! The scene's own table: its callbacks and fields, and the tables that they return or are given.

use super::{Function, Item, Kind, Record, flag, function, item, number, record, text, vector};
use crate::film::{OVERSCAN_MAX, TIME_S_MAX};

pub(super) const POSITION: Item = vector("position", "metres", "Where it stands");
pub(super) const TARGET: Item =
    vector("target", "metres", "What it looks at; instead of angles").or("none");
pub(super) const UP: Item = vector(
    "up",
    "direction",
    "What is up in the picture; with a target",
)
.or("+y");
pub(super) const YAW: Item = number("yaw", "degrees", "Turned to the left, from -z").or("0");
pub(super) const PITCH: Item = number("pitch", "degrees", "Turned up").or("0");
pub(super) const ROLL: Item = number("roll", "degrees", "Turned clockwise").or("0");
pub(super) const TURN: Item = item("rotation", Kind::Rotation, "Instead of target and angles")
    .sample("{ yaw = 10 }")
    .or("none");
pub(super) const FOV: Item = number("fov", "degrees", "What the lens sees from bottom to top")
    .within(0.1, 179.0)
    .or("60");
pub(super) const CAMERA_SAMPLES: &[&str] = &[
    "{ position = vector.one }",
    "{ position = vector.one, target = vector.zero }",
];

/// A camera.
pub static CAMERA: Record = record(
    "camera",
    "From where to look: by a target, by angles or by a rotation.",
    &[POSITION, TARGET, UP, YAW, PITCH, ROLL, TURN, FOV],
)
.samples(CAMERA_SAMPLES);

/// What `frame` returns.
pub static FRAME: Record = record(
    "frame",
    "A picture. Without `draws` every visible asset is drawn where its handle says; without `camera` here \
     or in the scene's table, the camera sees what is drawn whole.",
    &[
        item("camera", Kind::Record("camera"), "From where").or("the scene's, or one that sees all"),
        item("background", Kind::Colour, "Behind everything").or("the scene's, or near black"),
        text("state", "What is going on, for `trace`").or("none"),
        item(
            "draws",
            Kind::List(&Kind::Either(&[Kind::Class("handle"), Kind::Record("draw")])),
            "What is drawn",
        )
        .or("all that is visible"),
        item("walker", Kind::Record("walker"), "Who carries the camera, for `trace`").or("none"),
        item(
            "film",
            Kind::Either(&[Kind::Record("film"), Kind::Boolean]),
            "How it is filmed; true for the default, false for not at all",
        )
        .or("the scene's"),
    ],
)
.samples(&["{}"]);

/// An entry of `draws`.
pub static DRAW: Record = record(
    "draw",
    "An asset in one picture. What is left out is the handle's own.",
    &[
        item("splats", Kind::Class("handle"), "Which asset"),
        vector("position", "metres", "Where").or("the handle's"),
        item("rotation", Kind::Rotation, "How turned")
            .sample("{ yaw = 10 }")
            .or("the handle's"),
        number("scale", "times", "How large")
            .above_zero()
            .or("the handle's"),
        item(
            "tint",
            Kind::Colour,
            "Factor of the colour, up to 16, and of opacity",
        )
        .or("the handle's"),
        flag("visible", "Whether it is drawn").or("the handle's"),
        flag("pickable", "Whether the pointer meets it").or("the handle's"),
        super::stage::EFFECTS.or("the handle's"),
    ],
)
.samples(&["{ splats = handle }"]);

/// `frame`'s `walker`.
pub static WALKER: Record = record(
    "walker",
    "Who carries the camera.",
    &[
        number("speed", "metres a second", "Along the way"),
        number(
            "phase",
            "steps",
            "Steps taken: a whole number at every heel strike",
        ),
        number("floor", "metres", "Height of the ground underfoot"),
        number("clearance", "metres", "From the camera to the nearest wall")
            .or("nobody has measured"),
        number(
            "head_yaw",
            "degrees",
            "The head against the heading, left positive",
        ),
        number("head_pitch", "degrees", "The head, up positive"),
    ],
)
.samples(&["{ speed = 1, phase = 0, floor = 0, head_yaw = 0, head_pitch = 0 }"]);

const fn share(
    name: &'static str,
    low: f64,
    high: f64,
    default: &'static str,
    doc: &'static str,
) -> Item {
    number(name, "share", doc).within(low, high).or(default)
}

/// `film`.
pub static FILM: Record = record(
    "film",
    "How a phone films the picture. The camera is then asked for at both ends of the shutter too.",
    &[
        number("exposure", "seconds", "How long each row is open")
            .within(0.0, TIME_S_MAX)
            .or("1/80"),
        number("readout", "seconds", "From the first row to the last")
            .within(0.0, TIME_S_MAX)
            .or("0.016"),
        item(
            "direction",
            Kind::Choice(&["down", "up", "left", "right"]),
            "Which way rows are read",
        )
        .or("`down`"),
        number(
            "overscan",
            "times",
            "How much larger it is drawn than it is",
        )
        .within(1.0, OVERSCAN_MAX as f64)
        .or("1.1"),
        item(
            "depth",
            Kind::Choice(&["two_layers", "one_layer", "proxy"]),
            "Where depth comes from",
        )
        .or("`two_layers`"),
        item(
            "planes",
            Kind::List(&Kind::Record("plane")),
            "What `proxy` takes for the world, up to eight",
        )
        .or("none"),
        flag("jitter", "Moves the instants of each pixel by chance").or("false"),
        number("stops", "stops", "Light, as a power of two")
            .within(-12.0, 12.0)
            .or("0"),
        item(
            "balance",
            Kind::Numbers(3),
            "Factors of red, green and blue (0 to 16)",
        )
        .sample("{ 1, 1, 1 }")
        .or("{1, 1, 1}"),
        number("focus", "metres", "What is sharp")
            .within(0.01, 1e6)
            .or("2"),
        number(
            "aperture",
            "metres",
            "Diameter of the opening; 0 is a pinhole",
        )
        .within(0.0, 0.1)
        .or("0"),
        share(
            "distortion",
            -0.3,
            0.3,
            "0",
            "Above 0 barrel, below 0 pincushion",
        ),
        share(
            "aberration",
            -0.02,
            0.02,
            "0",
            "How much larger red is than green",
        ),
        share("falloff", 0.0, 0.95, "0", "Light that corners lose"),
        item(
            "halation",
            Kind::Record("halation"),
            "Glow round highlights",
        )
        .or("none"),
        share("sharpen", 0.0, 4.0, "0", "Overshoot at edges"),
        number(
            "shoulder",
            "linear light",
            "Highlights are rolled off above 1 less this",
        )
        .within(0.0, 1.0)
        .or("0"),
        item("noise", Kind::Record("noise"), "Grain").or("none"),
    ],
)
.samples(&["{ exposure = 0.01 }"]);

/// A plane of `film`.
pub static PLANE: Record = record(
    "plane",
    "A plane of a film's `planes`.",
    &[
        vector("point", "metres", "On it"),
        vector("normal", "direction", "Out of it"),
    ],
)
.samples(&["{ point = vector.zero, normal = vector.one }"]);

/// `film`'s `halation`.
pub static HALATION: Record = record(
    "halation",
    "Glow round highlights.",
    &[
        share("strength", 0.0, 4.0, "0", "How much"),
        number("radius", "picture heights", "How far")
            .within(0.0, 0.12)
            .or("0.02"),
        number("threshold", "linear light", "From where on")
            .within(0.0, 100.0)
            .or("0.8"),
    ],
)
.samples(&["{ strength = 0.1 }"]);

/// `film`'s `noise`.
pub static NOISE: Record = record(
    "noise",
    "Grain: its variance at light x is `shot` x + `read`.",
    &[
        number("shot", "variance", "With the light")
            .within(0.0, 1.0)
            .or("0"),
        number("read", "variance", "Everywhere")
            .within(0.0, 1.0)
            .or("0"),
    ],
)
.samples(&["{ shot = 0.001 }"]);

/// An entry of what `cues` returns.
pub static CUE: Record = record(
    "cue",
    "Something that happens at an instant. Other fields are the author's own, plain data.",
    &[
        number("t", "seconds", "When: `from` or later, before `to`").sample("0"),
        text("kind", "What happens, such as `footstep`"),
    ],
)
.open()
.samples(&["{ t = 0, kind = \"click\" }"]);

/// `step`'s `input`.
pub static INPUT: Record = record(
    "input",
    "What hands do. Flat vectors have z = 0.",
    &[
        vector("pointer", "-1 to 1", "On the picture: x right, y up"),
        flag("pointer_inside", "Whether the pointer is over the picture"),
        item(
            "over",
            Kind::Class("handle"),
            "The asset that the pointer is over",
        )
        .or("nil"),
        vector("stick", "-1 to 1", "The left stick of a gamepad"),
        vector("gyro", "degrees", "How a phone is turned about x, y, z").or("nil"),
        vector(
            "drag",
            "picture heights",
            "What the pointer travelled, in the first step of a picture",
        ),
        number(
            "wheel",
            "notches",
            "Away from the person, in the first step of a picture",
        ),
        item(
            "held",
            Kind::Map(&Kind::Boolean),
            "Keys and buttons: `input.held.arrow_up`, `input.held.mouse_left`",
        ),
        number("aspect", "", "Width over height of the picture"),
    ],
);

/// `event`'s `e`.
pub static EVENT: Record = record(
    "event",
    "Something that happened once.",
    &[
        text(
            "kind",
            "`hover`, `leave`, `click`, `double_click`, `pointer_enter`, `pointer_leave`, `key`, `resize`, \
             `message`, `error`",
        ),
        text("name", "The key, button or message; or empty"),
        item(
            "values",
            Kind::List(&Kind::Number),
            "Numbers that come with it",
        ),
        number("x", "", "The first of them").or("nil"),
        number("y", "", "The second of them").or("nil"),
        item(
            "target",
            Kind::Class("handle"),
            "The asset that it is about",
        )
        .or("nil"),
        number(
            "splat",
            "",
            "The number of the splat that was met, from 1, of clicks",
        )
        .or("nil"),
    ],
);

const T: Item = number("t", "seconds", "Scene time");
const FROM: Item = number("from", "seconds", "At this time or later");
const TO: Item = number("to", "seconds", "Before this time");
const VOICES: Kind = Kind::List(&Kind::Record("voice"));

/// Functions that the host calls; all optional.
pub const CALLBACKS: &[Function] = &[
    function("load", "Once a version, after the file's body: makes what the scene is made of.")
        .takes(&[item("stage", Kind::Class("stage"), "The global `stage`")])
        .example("return { load = function(stage) stage.splats(\"statue.ply\") end }"),
    function(
        "step",
        "240 times a second of scene time, in order: what depends on live input. A scene without it can be \
         asked for any t.",
    )
    .takes(&[
        number("dt", "seconds", "1/240"),
        item("input", Kind::Record("input"), "What hands do"),
    ])
    .example(
        "local x = 0\n\
         return {\n\
         \tstep = function(dt, input) x += dt * input.stick.x end,\n\
         \tframe = function(t) return { camera = { position = vector.create(x, 0, 3) } } end,\n\
         }",
    ),
    function(
        "frame",
        "The picture at a time. What it does to handles holds for that picture only, so that asking for \
         any t in any order gives the same pictures.",
    )
    .takes(&[T])
    .gives(&[item("frame", Kind::Record("frame"), "What is different from the defaults").or("nil")])
    .example(
        "return {\n\
         \tframe = function(t)\n\
         \t\treturn { camera = { position = vector.create(0, 1, 3 + t), target = vector.zero, fov = 50 } }\n\
         \tend,\n\
         }",
    ),
    function("cues", "What happens in a time, such as footsteps: pure, asked for any interval in any order.")
        .takes(&[FROM, TO])
        .gives(&[item("cues", Kind::List(&Kind::Record("cue")), "In that time").or("nil")])
        .example(
            "return {\n\
             \tcues = function(from, to)\n\
             \t\treturn if from <= 1 and 1 < to then { { t = 1, kind = \"click\" } } else nil\n\
             \tend,\n\
             }",
        ),
    function("beds", "Once a version, after `load`: voices that are there from the beginning, of any length.")
        .gives(&[item("voices", VOICES, "Up to 64").or("nil")])
        .example("return { beds = function() return { { noise = \"pink\", gain_db = -30 } } end }"),
    function(
        "voices",
        "What begins to sound in a time, none longer than 30 s. Without `step` it is pure and asked for \
         whole seconds in any order; else for the time since it was asked last.",
    )
    .takes(&[FROM, TO])
    .gives(&[item("voices", VOICES, "With `from <= t < to`").or("nil")])
    .example(
        "return {\n\
         \tvoices = function(from, to)\n\
         \t\treturn { { t = from, tone = { hz = 440 }, decay = 0.5, gain_db = -20 } }\n\
         \tend,\n\
         }",
    ),
    function("ears", "Who hears at a time; without it the camera of `frame` does.")
        .takes(&[T])
        .gives(&[item("ears", Kind::Record("ears"), "Where the ears are")])
        .example("return { ears = function(t) return { position = vector.create(0, 1.6, t), wind = 1 } end }"),
    function("event", "Something happened once: a click, a key, a message.")
        .takes(&[item("e", Kind::Record("event"), "What happened")])
        .example("return { event = function(e) if e.kind == \"click\" then log.info(e.x, e.y) end end }"),
    function("on_unload", "The last call of a version: what the next one should know.")
        .gives(&[item("data", Kind::Data, "Plain data").or("nil")])
        .example("return { on_unload = function() return { clicks = 3 } end }"),
    function("on_reload", "In the next version, after its `load`.")
        .takes(&[item("data", Kind::Data, "What `on_unload` of the version before returned")])
        .example("return { on_reload = function(data) log.info(data.clicks) end }"),
];

/// What the entry file returns: fields that mean something to the host, beside [`CALLBACKS`].
pub static SCENE: Record = record(
    "scene",
    "What a scene's file returns: its callbacks, and fields that the host reads. Others are the author's.",
    &[
        number("duration", "seconds", "How long it is").above_zero().or("it has no end"),
        item("background", Kind::Colour, "Where `frame` says none").or("near black"),
        item(
            "camera",
            Kind::Either(&[
                Kind::Record("camera"),
                Kind::Function(&[("t", Kind::Number)], &Kind::Record("camera")),
            ]),
            "Where `frame` says none. A function of t (seconds) is what a shutter asks alone",
        )
        .or("one that sees all"),
        item(
            "film",
            Kind::Either(&[Kind::Record("film"), Kind::Boolean]),
            "Where `frame` says none",
        )
        .or("not filmed"),
    ],
)
.open()
.samples(&["{}"]);

/// Every table with fields.
pub static RECORDS: [&Record; 46] = [
    &SCENE,
    &FRAME,
    &CAMERA,
    &DRAW,
    &WALKER,
    &FILM,
    &PLANE,
    &HALATION,
    &NOISE,
    &CUE,
    &INPUT,
    &EVENT,
    &super::SPLATS_OPTIONS,
    &super::GENERATE_OPTIONS,
    &super::FRAMING,
    &super::PROBE_OPTIONS,
    &super::SPREAD_OPTIONS,
    &super::EFFECT_USE,
    &super::PARAM_OPTIONS,
    &super::RIG_OPTIONS,
    &super::RIG_BONE,
    &super::RIG_SHAPE,
    &super::SHEET_OPTIONS,
    &super::GLOSS,
    &super::EDIT_OPTIONS,
    &super::BONE_OPTIONS,
    &super::CONDITION,
    &super::SHAPE_OPTIONS,
    &super::BUMP,
    &super::SPRING_OPTIONS,
    &super::SPLINE_OPTIONS,
    &super::BUS_OPTIONS,
    &super::MICROPHONE,
    &super::AUTOMATIC_GAIN,
    &super::COMPRESSOR,
    &super::VOICE,
    &super::TONE,
    &super::CLIP_SOURCE,
    &super::GRAINS,
    &super::WANDER,
    &super::FILTER,
    &super::RINGING,
    &super::MODE,
    &super::EARS,
    &super::EULER,
    &super::testing::PICTURE_OPTIONS,
];
