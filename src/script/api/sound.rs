//! `sound`, and the voices that `beds` and `voices` return.

use super::{
    Function, Item, Kind, Namespace, Record, flag, function, item, number, record, text, vector,
};

const CLIP: Item = item("clip", Kind::Class("clip"), "A clip of `sound.clip`");

/// The microphones that are there by name.
const MICS: Kind = Kind::Choice(&crate::audio::Mic::PRESETS);

/// `sound.bus(name, {...})`.
pub static BUS_OPTIONS: Record = record(
    "bus_options",
    "A group of voices.",
    &[
        number("gain_db", "dB", "Louder or softer")
            .within(-120.0, 40.0)
            .or("0"),
        flag("mic", "Whether it goes through the microphone").or("true"),
    ],
)
.samples(&["{ gain_db = -3 }"]);

/// `sound.mic{...}`.
pub static MICROPHONE: Record = record(
    "microphone",
    "What everything is heard through. Where no default is said, it is the preset's.",
    &[
        item("preset", MICS, "What it begins as").or("`phone`"),
        number("low_hz", "Hz", "What is below is cut")
            .within(20.0, 1000.0)
            .or("the preset's"),
        number("high_hz", "Hz", "What is above is cut")
            .within(1000.0, 20_000.0)
            .or("the preset's"),
        number("width", "", "0 is mono, 1 as wide as the ears")
            .within(0.0, 1.0)
            .or("the preset's"),
        number("noise_db", "dBFS", "Of its own")
            .within(-200.0, 0.0)
            .or("the preset's"),
        number("wind_db", "dBFS", "At 1 m/s of air")
            .within(-200.0, 0.0)
            .or("the preset's"),
        number("handling_db", "dBFS", "At 1 m/s² of shaking")
            .within(-200.0, 0.0)
            .or("the preset's"),
        item(
            "gain",
            Kind::Either(&[Kind::Record("automatic_gain"), Kind::False]),
            "Automatic gain; false for none",
        )
        .or("the preset's"),
        item(
            "compressor",
            Kind::Either(&[Kind::Record("compressor"), Kind::False]),
            "A compressor; false for none",
        )
        .or("the preset's"),
    ],
)
.samples(&["{ preset = \"phone\" }"]);

/// `sound.mic{gain = {...}}`.
pub static AUTOMATIC_GAIN: Record = record(
    "automatic_gain",
    "How a microphone finds its level.",
    &[
        number("aim_db", "dBFS", "The level it aims at")
            .within(-60.0, 0.0)
            .or("the preset's"),
        number("boost_db", "dB", "How much louder it makes things at most")
            .within(0.0, 60.0)
            .or("the preset's"),
        number("cut_db", "dB", "How much softer it makes things at most")
            .within(0.0, 60.0)
            .or("the preset's"),
    ],
)
.samples(&["{ aim_db = -20 }"]);

/// `sound.mic{compressor = {...}}`.
pub static COMPRESSOR: Record = record(
    "compressor",
    "How loud moments are held down.",
    &[
        number("threshold_db", "dBFS", "Above it")
            .within(-60.0, 0.0)
            .or("the preset's"),
        number("ratio", "", "Decibels in for one out")
            .within(1.0, 20.0)
            .or("the preset's"),
        number("makeup_db", "dB", "Everything is louder by this")
            .within(0.0, 20.0)
            .or("the preset's"),
    ],
)
.samples(&["{ ratio = 3 }"]);

/// `sound`.
pub static SOUND: Namespace = Namespace {
    name: "sound",
    doc: "What a scene is heard with. What sounds is said by the scene's `beds` and `voices`.",
    fields: &[],
    functions: &[
        function("clip", "Loads a sound file: Ogg Vorbis, WAV, FLAC or MP3.")
            .takes(&[text("path", "Relative to the scene's folder").sample("\"bell.wav\"")])
            .gives(&[CLIP])
            .loading()
            .fails("No such file, or one that cannot be decoded.")
            .example("expect(sound.clip(\"bell.wav\").duration).above(0)"),
        function(
            "bus",
            "Makes a group of voices, or changes one; `main` is there, and voices that name none are in it.",
        )
        .takes(&[
            text("name", "1 to 64 bytes").sample("\"steps\""),
            item("options", Kind::Record("bus_options"), "Gain and microphone").or("0 dB, through the microphone"),
        ])
        .loading()
        .fails("More than 32 buses.")
        .example("sound.bus(\"steps\", { gain_db = -6 })"),
        function("mic", "What everything is heard through; at first directly.")
            .takes(&[item(
                "microphone",
                Kind::Either(&[Kind::Record("microphone"), MICS, Kind::False]),
                "A preset's name or a table; false for none",
            )])
            .loading()
            .fails("There is no microphone of that name.")
            .example("sound.mic({ preset = \"phone\", noise_db = -70 })"),
        function("follow", "What a clip sounds like at any time, for mouths that move with it.")
            .takes(&[CLIP])
            .gives(&[item("follower", Kind::Class("follower"), "Ask it for a time")])
            .loading()
            .fails("More than about four hours together.")
            .example("expect(sound.follow(sound.clip(\"bell.wav\")).duration).above(0)"),
    ],
};

/// `follower`.
pub(super) const FOLLOWER_METHODS: &[Function] =
    &[function("at", "How the clip sounds at a time.")
        .takes(&[number("t", "seconds", "From the clip's beginning")])
        .gives(&[
            number("level", "dBFS", "How loud"),
            number("centre", "Hz", "The middle of its spectrum: how bright"),
            number("low", "dBFS", "The level of what is low"),
            number("middle", "dBFS", "The level of what is between"),
            number("high", "dBFS", "The level of what is high"),
        ])
        .example("expect((sound.follow(sound.clip(\"bell.wav\")):at(0.1))).below(0)")];

/// A voice of `beds` and `voices`.
pub static VOICE: Record = record(
    "voice",
    "Something that sounds: one source, its shape in time, filters, a place. It has exactly one of \
     `noise`, `clicks`, `impulse`, `tone`, `clip`, `grains`; `position` or `pan` or neither (all around).",
    &[
        number("t", "seconds", "When it begins; in beds it may be left out")
            .within(-1e6, 1e7)
            .or("0, in beds"),
        item("noise", Kind::Choice(&crate::script::sound::NOISES), "Noise of -20 dBFS").or("none"),
        number("clicks", "clicks a second", "Single samples by chance").within(0.01, 8000.0).or("none"),
        item("impulse", Kind::Boolean, "True: one sample, for filters to ring").sample("true").or("none"),
        item("tone", Kind::Record("tone"), "A tone and its partials").or("none"),
        item("clip", Kind::Either(&[Kind::Class("clip"), Kind::Record("clip_source")]), "A sound file").or("none"),
        item("grains", Kind::Record("grains"), "A sound file in pieces by chance, without end").or("none"),
        text("bus", "The group that it is in").sample("\"main\"").or("`main`"),
        number("gain_db", "dB", "Louder or softer").within(-120.0, 40.0).or("0"),
        item(
            "levels",
            Kind::List(&Kind::Numbers(2)),
            "{t, db} in order: louder and softer by the scene's time (seconds, dB)",
        )
        .sample("{ { 0, 0 }, { 1, -6 } }")
        .or("none"),
        number("attack", "seconds", "From nothing to full").within(0.0, 3600.0).or("0"),
        number("hold", "seconds", "At full").within(0.0, 3600.0).or("0"),
        number("decay", "seconds", "From full to -60 dB").within(0.0001, 3600.0).or("it stays"),
        item("filters", Kind::List(&Kind::Either(&[Kind::Record("filter"), Kind::Record("ringing")])), "One after the other").or("none"),
        item("wander", Kind::Record("wander"), "A level that drifts").or("none"),
        vector("position", "metres", "Where it is").or("all around"),
        number("reference", "metres", "Where it is as loud as it says; with a position").within(0.01, 1e4).or("1"),
        number("rolloff", "", "1: by the inverse of the distance; with a position").within(0.0, 4.0).or("1"),
        number("pan", "", "-1 left, 1 right").within(-1.0, 1.0).or("all around"),
        number("fade_in", "seconds", "At its beginning").within(0.0, 3600.0).or("0"),
        number("fade_out", "seconds", "At its end").within(0.0, 3600.0).or("0"),
        number("duration", "seconds", "After this it ends").within(0.0, 1e7).or("as its source and decay say"),
        number("seed", "", "Of chance").within(-9.007e15, 9.007e15).or("0"),
    ],
)
.samples(&[
    "{ t = 0, noise = \"pink\", decay = 1, position = vector.one }",
    "{ t = 0, clicks = 3, decay = 1 }",
    "{ t = 0, impulse = true, decay = 1 }",
    "{ t = 0, tone = { hz = 440 }, decay = 1 }",
    "{ t = 0, clip = clip, decay = 1 }",
    "{ t = 0, grains = { clip = clip }, decay = 1 }",
]);

/// A voice's `tone`.
pub static TONE: Record = record(
    "tone",
    "A tone.",
    &[
        number("hz", "Hz", "Its pitch").within(1.0, 20_000.0),
        item(
            "partials",
            Kind::List(&Kind::Number),
            "Strengths of its 1st, 2nd, 3rd, ... partial (-10 to 10)",
        )
        .sample("{ 1, 0.5 }")
        .or("{1}"),
    ],
)
.samples(&["{ hz = 440 }"]);

/// A voice's `clip`, where it is more than a clip.
pub static CLIP_SOURCE: Record = record(
    "clip_source",
    "A sound file as a voice's source.",
    &[
        CLIP,
        number("from", "seconds", "Where in the file it begins")
            .within(0.0, 1e6)
            .or("0"),
        number("speed", "", "2 is an octave higher")
            .within(0.25, 4.0)
            .or("1"),
        flag("loop", "Whether it begins again at its end").or("false"),
    ],
)
.samples(&["{ clip = clip }"]);

/// A voice's `grains`.
pub static GRAINS: Record = record(
    "grains",
    "A sound file in pieces by chance.",
    &[
        CLIP,
        number("grain", "seconds", "Length of a piece")
            .within(0.01, 8.0)
            .or("0.5"),
    ],
)
.samples(&["{ clip = clip }"]);

/// A voice's `wander`.
pub static WANDER: Record = record(
    "wander",
    "A level that drifts by chance.",
    &[
        number("depth_db", "dB", "How far").within(0.0, 40.0),
        number("rate_hz", "Hz", "How fast").within(0.001, 20.0),
    ],
)
.samples(&["{ depth_db = 3, rate_hz = 1 }"]);

/// One of a voice's `filters`.
pub static FILTER: Record = record(
    "filter",
    "A filter; `peak`, `low_shelf` and `high_shelf` need `gain_db`.",
    &[
        item(
            "kind",
            Kind::Choice(&crate::script::sound::FILTERS),
            "What it does",
        )
        .sample("\"peak\""),
        number("hz", "Hz", "Where").within(10.0, 22_000.0),
        number("q", "", "How narrow")
            .within(0.1, 30.0)
            .or("0.71 of passes, 1 of `band_pass` and `peak`"),
        number("gain_db", "dB", "How much")
            .within(-60.0, 40.0)
            .or("none, of passes"),
    ],
)
.samples(&["{ kind = \"peak\", hz = 400, q = 1, gain_db = 3 }"]);

/// One of a voice's `filters` that is a list.
pub static RINGING: Record = record(
    "ringing",
    "A filter that is a list of what rings in it.",
    &[item(
        "kind",
        Kind::Choice(&[crate::script::sound::MODES]),
        "`modes`",
    )],
)
.items(Kind::Record("mode"))
.samples(&["{ kind = \"modes\", { hz = 300, t60 = 0.2 } }"]);

/// What rings in [`RINGING`].
pub static MODE: Record = record(
    "mode",
    "Something that rings.",
    &[
        number("hz", "Hz", "Its pitch").within(10.0, 22_000.0),
        number("t60", "seconds", "How long it rings, to -60 dB").within(0.001, 6.0),
        number("gain_db", "dB", "How strong")
            .within(-60.0, 40.0)
            .or("0"),
    ],
)
.samples(&["{ hz = 300, t60 = 0.2 }"]);

/// What `ears` returns.
pub static EARS: Record = record(
    "ears",
    "Who hears: a camera, the air and the hands.",
    &[
        super::scene::POSITION,
        super::scene::TARGET,
        super::scene::UP,
        super::scene::YAW,
        super::scene::PITCH,
        super::scene::ROLL,
        super::scene::TURN,
        super::scene::FOV,
        number("wind", "metres a second", "Air over the microphone")
            .within(0.0, 50.0)
            .or("0"),
        number("shake", "metres a second squared", "Of the hands")
            .within(0.0, 100.0)
            .or("0"),
    ],
)
.samples(super::scene::CAMERA_SAMPLES);
