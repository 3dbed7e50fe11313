//! `stage`: what a scene is made of.

use super::{
    Function, Item, Kind, Namespace, Record, flag, function, item, number, record, text, vector,
};
use crate::script::splats::GENERATED_MAX;
use crate::survey::voxels::CELL_M_RANGE;

/// Three floats a splat.
const ROWS_3: Kind = Kind::Either(&[Kind::Buffer, Kind::List(&Kind::Vector)]);
/// The same, or one for all.
const ROWS_3_OR_ONE: Kind = Kind::Either(&[
    Kind::Buffer,
    Kind::List(&Kind::Vector),
    Kind::Vector,
    Kind::Number,
]);
/// One float a splat, or one for all.
const ROWS_1_OR_ONE: Kind = Kind::Either(&[Kind::Buffer, Kind::List(&Kind::Number), Kind::Number]);

/// `stage.splats(path, {...})`.
pub static SPLATS_OPTIONS: Record = record(
    "splats_options",
    "How a file of splats is read.",
    &[
        number(
            "level",
            "",
            "Level of detail of a file that has several; 0 is the finest",
        )
        .whole(0.0, 64.0)
        .or("the finest"),
        text(
            "axes",
            "Which way the file's axes point, such as `RDF`, `y-up`, `z-up`",
        )
        .sample("\"RDF\"")
        .or("what the format or the file says"),
        item(
            "args",
            Kind::Data,
            "For a built-in scene: what its script finds in `stage.args`",
        )
        .sample("{}")
        .or("nothing"),
    ],
)
.samples(&["{ level = 0 }"]);

/// `stage.generate{...}`.
pub static GENERATE_OPTIONS: Record = record(
    "generate_options",
    "Splats in columns: a buffer of f32, a list with an entry for each, or one value for all.",
    &[
        item("positions", ROWS_3, "Centres (metres): how many there are says how many splats")
            .sample("{ vector.zero, vector.one }"),
        item("scales", ROWS_3_OR_ONE, "Standard deviations along the own axes (metres), above 0")
            .sample("0.1"),
        item("colours", ROWS_3_OR_ONE, "Display-space red, green, blue (0 to 1)").sample("vector.one"),
        item("opacities", ROWS_1_OR_ONE, "0 to 1").sample("1").or("1"),
        item(
            "rotations",
            Kind::Either(&[Kind::Buffer, Kind::List(&Kind::Numbers(4))]),
            "Quaternions x, y, z, w",
        )
        .sample("{ { 0, 0, 0, 1 }, { 0, 0, 0, 1 } }")
        .or("none is turned"),
        item(
            "sh",
            Kind::Either(&[Kind::Buffer, Kind::List(&Kind::Number)]),
            "Further spherical harmonics: 9, 24 or 45 floats a splat, coefficient by coefficient, red, \
             green, blue in each",
        )
        .sample("buffer.create(72)")
        .or("none"),
        text("name", "What the handle is called").or("`generated`"),
    ],
)
.samples(&["{ positions = { vector.zero, vector.one }, scales = 0.1, colours = vector.one }"]);

/// What `stage.framing` returns.
pub static FRAMING: Record = record(
    "framing",
    "Where to stand to see a thing whole.",
    &[
        vector("centre", "metres", "The middle of what is framed"),
        number("radius", "metres", "Of a ball round it"),
        vector(
            "eye",
            "metres",
            "In front (+z) and a little above, where a lens of 60 degrees sees it whole",
        ),
        vector(
            "target",
            "metres",
            "The centre again: the table is a camera",
        ),
    ],
);

/// `stage.probe(splats, {...})`.
pub static PROBE_OPTIONS: Record = record(
    "probe_options",
    "How fine a probe is.",
    &[number("cell", "metres", "Side of its cells")
        .within(CELL_M_RANGE[0], CELL_M_RANGE[1])
        .or("0.05")],
)
.samples(&["{ cell = 0.1 }"]);

/// A bone of `stage.rig`.
pub static RIG_BONE: Record = record(
    "rig_bone",
    "A bone that a generated body has.",
    &[
        text("name", "What it is called"),
        text("parent", "A bone before it in the list")
            .sample("nil")
            .or("none"),
        vector("position", "metres", "Where it turns, at rest"),
    ],
)
.samples(&["{ name = \"root\", position = vector.zero }"]);

/// A shape of `stage.rig`, where their order matters.
pub static RIG_SHAPE: Record = record(
    "rig_shape",
    "A blendshape that a generated body has.",
    &[
        text("name", "What it is called"),
        item(
            "offset",
            Kind::Either(&[
                Kind::Function(
                    &[("position", Kind::Vector), ("i", Kind::Number)],
                    &Kind::Vector,
                ),
                Kind::Buffer,
                Kind::List(&Kind::Vector),
            ]),
            "How far each splat moves (metres) at a value of 1: asked for each, or for all at once",
        )
        .sample("function(position) return position end"),
    ],
)
.samples(&["{ name = \"smile\", offset = function(position) return position end }"]);

/// `stage.rig(handle, {...})`.
pub static RIG_OPTIONS: Record = record(
    "rig_options",
    "What moves generated splats.",
    &[
        item("bones", Kind::List(&Kind::Record("rig_bone")), "Parents before children").or("none"),
        item(
            "weights",
            Kind::Map(&Kind::Either(&[
                Kind::Function(&[("position", Kind::Vector), ("i", Kind::Number)], &Kind::Number),
                Kind::Buffer,
                Kind::List(&Kind::Number),
            ])),
            "By the bone's name: how much each splat follows it; asked for each (nil is 0), or for all at \
             once",
        )
        .sample("{ root = function() return 1 end }")
        .or("none"),
        item(
            "shapes",
            Kind::Either(&[
                Kind::List(&Kind::Record("rig_shape")),
                Kind::Map(&Kind::Either(&[
                    Kind::Function(&[("position", Kind::Vector), ("i", Kind::Number)], &Kind::Vector),
                    Kind::Buffer,
                    Kind::List(&Kind::Vector),
                ])),
            ]),
            "Blendshapes: a list, or offsets by name",
        )
        .sample("{ smile = function(position) return position end }")
        .or("none"),
    ],
)
.samples(&["{ bones = { { name = \"root\", position = vector.zero } } }"]);

/// `stage.spread(handle, {...})`.
pub static SPREAD_OPTIONS: Record = record(
    "spread_options",
    "How fine a spread is.",
    &[number("cell", "metres", "Side of its cells")
        .within(1e-4, 1e4)
        .or("by the splats' sizes")],
)
.samples(&["{ cell = 0.1 }"]);

/// An entry of `handle.effects`, where an effect has values of its own.
pub static EFFECT_USE: Record = record(
    "effect_use",
    "An effect, first in the table, and values for it by their names in its `struct Uniforms`: numbers, true \
     or false, vectors, colours, lists of numbers.",
    &[],
)
.items(Kind::Class("effect"))
.open()
.samples(&["{ effect }"]);

/// What a uniform can be set to.
const UNIFORM: Kind = Kind::Either(&[
    Kind::Number,
    Kind::Boolean,
    Kind::Vector,
    Kind::Colour,
    Kind::List(&Kind::Number),
]);

/// Effects of a handle or a draw.
pub(super) const EFFECTS: Item = item(
    "effects",
    Kind::List(&Kind::Either(&[
        Kind::Class("effect"),
        Kind::Record("effect_use"),
    ])),
    "What changes its splats, one after the other; up to four",
);

/// `spread`.
pub(super) const SPREAD_METHODS: &[Function] = &[
    function(
        "begin",
        "Lets the wave begin at a splat; it may begin at several.",
    )
    .takes(&[
        SPLAT,
        number("way", "metres", "How far it has gone already")
            .within(0.0, 1e6)
            .or("0"),
    ])
    .example("stage.spread(stage.splats(\"statue.ply\")):begin(vector.zero)"),
    function(
        "reach",
        "Lets the wave go on to this way, no further than it has been let before.",
    )
    .takes(&[number("way", "metres", "Along the splats").within(0.0, 1e6)])
    .example(
        "local wave = stage.spread(stage.splats(\"statue.ply\"))\n\
             wave:begin(1)\n\
             wave:reach(1)\n\
             expect(wave.reached).near(1, 1e-3)",
    ),
    function("at", "When the wave arrives at a splat: the way to it.")
        .takes(&[SPLAT])
        .gives(&[number("way", "metres", "nil where it has not arrived").or("nil")])
        .example("expect(stage.spread(stage.splats(\"statue.ply\")):at(1)).equals(nil)"),
];

const SPLAT: Item = item(
    "splat",
    Kind::Either(&[Kind::Number, Kind::Vector]),
    "Its number, from 1, or a place near it in the handle's own space",
)
.whole(1.0, u32::MAX as f64);

const HANDLE: Item = item("handle", Kind::Class("handle"), "What to draw, and where");
const PATH: Item = text("path", "Relative to the scene's folder");

/// `stage`.
pub static STAGE: Namespace = Namespace {
    name: "stage",
    doc: "What a scene is made of. `load(stage)` gets it too.",
    fields: &[
        item("args", Kind::Data, "What was handed over by `--arg name=value`; read-only"),
        number("seed", "", "What `--seed` says; `math.random` follows it"),
        number("loop", "seconds", "After this the pictures repeat; nil where they do not").or("nil"),
        number("aspect", "", "Width over height of the first picture"),
        flag("reduced_motion", "The person asked for less motion"),
        flag("heard_only", "Only a sound file is asked for: a scene with `ears` may leave out what is only seen"),
    ],
    functions: &[
        function(
            "splats",
            "Loads a file of splats, or an avatar; or, by `@name`, all that a built-in scene draws in its first \
             picture.",
        )
            .takes(&[
                PATH.sample("\"statue.ply\""),
                item("options", Kind::Record("splats_options"), "How to read it").or("as the file says"),
            ])
            .gives(&[HANDLE])
            .loading()
            .fails("No such file, or one that cannot be read; its sentence names file and entry.")
            .example(
                "local statue = stage.splats(\"statue.ply\")\n\
                 statue.position = vector.create(0, 1, 0)\n\
                 expect(statue.count).above(0)",
            ),
        function("generate", "Makes splats from columns.")
            .takes(&[item("columns", Kind::Record("generate_options"), "Columns of the splats")])
            .gives(&[HANDLE])
            .loading()
            .fails("Columns of different lengths; more than 4,000,000 splats, those of builders included.")
            .example(
                "local pair = stage.generate({\n\
                 \tpositions = { vector.zero, vector.one },\n\
                 \tscales = 0.05,\n\
                 \tcolours = { vector.create(1, 0, 0), vector.create(0, 0, 1) },\n\
                 })\n\
                 expect(pair.count).equals(2)",
            ),
        function("builder", "Makes splats one by one, and surfaces of them.")
            .takes(&[
                number("capacity", "", "Splats that will be added one by one; it grows by itself")
                    .whole(0.0, GENERATED_MAX as f64)
                    .or("0"),
                number("degree", "", "Of spherical harmonics").whole(0.0, 3.0).or("0"),
            ])
            .gives(&[item("builder", Kind::Class("builder"), "Add to it, then build")])
            .loading()
            .fails("More than 4,000,000 splats.")
            .example(
                "local builder = stage.builder(2)\n\
                 builder:add(vector.zero, 0.1, \"#ff8800\")\n\
                 expect(builder:build(\"spark\").count).equals(1)",
            ),
        function("texture", "A picture for sheets.")
            .takes(&[
                item("pixels", Kind::Buffer, "Red, green, blue, gloss: four bytes a texel, row by row")
                    .sample("buffer.create(16)"),
                number("across", "", "Texels in a row").whole(1.0, 4096.0).sample("2"),
            ])
            .gives(&[item("texture", Kind::Class("texture"), "For `builder:sheet`")])
            .loading()
            .fails("No whole rows, more than 4096 of them; more bytes than sheets and textures may have.")
            .example("expect(stage.texture(buffer.create(4 * 6), 3).up).equals(2)"),
        function("framing", "Where to stand to see an asset, or all that is visible, whole.")
            .takes(&[item("handle", Kind::Class("handle"), "What to see").or("all that is visible")])
            .gives(&[item("framing", Kind::Record("framing"), "Centre, radius, eye and target")])
            .example(
                "local statue = stage.splats(\"statue.ply\")\n\
                 local framing = stage.framing(statue)\n\
                 expect(framing.eye.z).above(framing.target.z)",
            ),
        function(
            "probe",
            "Cells over splats as they stand now: what rays meet, where the ground is, how far walls are.",
        )
        .takes(&[
            item(
                "splats",
                Kind::Either(&[Kind::Class("handle"), Kind::List(&Kind::Class("handle"))]),
                "What to look at",
            )
            .or("all that is visible"),
            item("options", Kind::Record("probe_options"), "How fine").or("cells of 0.05 m"),
        ])
        .gives(&[item("probe", Kind::Class("probe"), "It does not follow what moves later")])
        .loading()
        .fails("More cells than 128 Mi, which is said at the first question.")
        .example(
            "local probe = stage.probe(stage.splats(\"statue.ply\"), { cell = 0.1 })\n\
             expect(probe.cell).near(0.1)",
        ),
        function(
            "effect",
            "Loads an effect: WGSL that changes each splat before it is drawn, with values from Lua \
             (`handle.effects`).",
        )
        .takes(&[
            text("path", "A `.wgsl` of the scene, or `@stage/effects/NAME` of the library")
                .sample("\"@stage/effects/dissolve\""),
            item("defaults", Kind::Map(&UNIFORM), "Values by the names of the file's `struct Uniforms`")
                .sample("{}")
                .or("all 0"),
        ])
        .gives(&[item("effect", Kind::Class("effect"), "For `handle.effects`")])
        .loading()
        .fails("No such file, WGSL that is not sound, by its own line; a name that it has not; more than 64.")
        .example(
            "local dissolve = stage.effect(\"@stage/effects/dissolve\")\n\
             local statue = stage.splats(\"statue.ply\")\n\
             statue.effects = { dissolve }\n\
             expect(#statue.effects).equals(1)",
        ),
        function(
            "spread",
            "A wave along a handle's splats, from a touched one on: when it arrives at each is what effects \
             see as `arrival`. A handle has one.",
        )
        .takes(&[
            item("handle", Kind::Class("handle"), "What it goes along").sample("fresh()"),
            item("options", Kind::Record("spread_options"), "How fine").or("by the splats' sizes"),
        ])
        .gives(&[item("spread", Kind::Class("spread"), "To begin it and let it go on")])
        .loading()
        .fails("A handle that has one; more than 32 Mi splats together.")
        .example(
            "local wave = stage.spread(stage.splats(\"statue.ply\"))\n\
             wave:begin(1)\n\
             wave:reach(0.5)\n\
             expect(wave:at(1)).equals(0)",
        ),
        function("rig", "Gives generated splats bones, weights and blendshapes.")
            .takes(&[
                item("handle", Kind::Class("handle"), "Splats without a body").sample(
                    "stage.generate({ positions = { vector.zero }, scales = 0.1, colours = vector.one })",
                ),
                item("spec", Kind::Record("rig_options"), "Bones, weights, shapes"),
            ])
            .gives(&[item("handle", Kind::Class("handle"), "The same")])
            .loading()
            .fails("A handle that has a body; more than 256 bones, 1024 shapes or 64 Mi numbers.")
            .example(
                "local fish = stage.generate({\n\
                 \tpositions = { vector.zero, vector.create(0, 0, 1) },\n\
                 \tscales = 0.1,\n\
                 \tcolours = vector.one,\n\
                 })\n\
                 stage.rig(fish, {\n\
                 \tbones = { { name = \"tail\", position = vector.zero } },\n\
                 \tweights = { tail = function(position) return position.z end },\n\
                 })\n\
                 expect(fish.bones).equals({ \"tail\" })",
            ),
        function("data", "Reads a JSON file of the scene; objects with `$vector` become vectors.")
            .takes(&[PATH.sample("\"data.json\"")])
            .gives(&[item("data", Kind::Data, "Read-only tables")])
            .loading()
            .fails("No such file, no JSON, more than 4 MiB.")
            .example("expect(stage.data(\"data.json\").name).equals(\"an example\")"),
        function("save", "Writes a JSON file of the scene, in a window that plays a folder.")
            .takes(&[
                text("path", "Relative to the scene's folder, ending in `.json`")
                    .sample("\"saved.json\""),
                item("data", Kind::Data, "A table of plain data").sample("{ 1, 2 }"),
            ])
            .playing()
            .fails("While loading; where nothing can be saved; more than 4 MiB.")
            .example("stage.save(\"saved.json\", { way = { vector.zero, vector.one } })"),
    ],
};

/// `builder:sheet{...}`.
pub static SHEET_OPTIONS: Record = record(
    "sheet_options",
    "A surface that runs straight between the points of a grid, and the splats that are scattered on it.",
    &[
        item("points", ROWS_3, "Row by row (metres), two rows or more")
            .sample("{ vector.zero, vector.create(1, 0, 0), vector.create(0, 1, 0), vector.create(1, 1, 0) }"),
        number("across", "", "Points in a row").whole(2.0, u32::MAX as f64),
        number("count", "", "Splats").whole(0.0, 50_000_000.0).sample("10"),
        item("texture", Kind::Class("texture"), "Colour and gloss").or("white"),
        item("texture_from", UV, "{u, v} at the first point").sample("{ 0, 0 }").or("{0, 0}"),
        item(
            "texture_to",
            UV,
            "{u, v} at the last point; the picture repeats beyond 0 to 1",
        )
        .sample("{ 1, 1 }")
        .or("{1, 1}"),
        item("light", ROWS_3, "Factors of the display-space colour (0 to 16), row by row")
            .sample("{ vector.one, vector.one }")
            .or("1"),
        number("light_across", "", "Of `light` in a row; needed with it")
            .whole(1.0, u32::MAX as f64)
            .or("none"),
        item("light_from", UV, "{u, v} at the first point").sample("{ 0, 0 }").or("{0, 0}"),
        item("light_to", UV, "{u, v} at the last point").sample("{ 1, 1 }").or("{1, 1}"),
        item("tint", Kind::Colour, "Factor of the colour, up to 16").or("white"),
        number("stretch", "", "Width over height of a splat's cell").within(0.01, 100.0).or("1"),
        number("jitter", "", "How far splats stand off a grid, in cells").within(0.0, 1.0).or("0.2"),
        number("overlap", "", "Standard deviation over distance").within(0.05, 10.0).or("0.7"),
        number("thickness", "metres", "Standard deviation across the surface").above_zero().or("0.003"),
        number("opacity", "", "Of each splat").within(0.0, 1.0).or("0.99"),
        number("variation", "", "Of brightness from splat to splat, a share").within(0.0, 1.0).or("0"),
        number("depth", "metres", "How far splats stand off the surface").within(0.0, 1e6).or("0"),
        number("tilt", "degrees", "How far they are turned out of it").within(0.0, 180.0).or("0"),
        item(
            "gloss",
            Kind::List(&Kind::Record("gloss")),
            "Up to four lights that it mirrors; the builder needs a degree above 0",
        )
        .or("none"),
        number("seed", "", "Of chance").or("the scene's and the number of the sheet"),
    ],
)
.samples(&[
    "{ points = { vector.zero, vector.create(1, 0, 0), vector.create(0, 1, 0), vector.create(1, 1, 0) }, \
     across = 2, count = 10, texture = texture, light = { vector.one, vector.one }, light_across = 1 }",
]);

const UV: Kind = Kind::Numbers(2);

/// A light of `builder:sheet{gloss = {...}}`.
pub static GLOSS: Record = record(
    "gloss",
    "A light that a sheet mirrors, as spherical harmonics.",
    &[
        vector("direction", "direction", "Towards the light"),
        item("colour", Kind::Colour, "Its colour, up to 16"),
        number("sharpness", "", "How narrow its mirror image is")
            .within(0.1, 20.0)
            .or("4"),
    ],
)
.samples(&["{ direction = vector.one, colour = vector.one }"]);

/// `builder`.
pub(super) const BUILDER_METHODS: &[Function] = &[
    function("add", "Adds one splat.")
        .takes(&[
            vector("position", "metres", "Its centre"),
            item(
                "scale",
                Kind::Either(&[Kind::Number, Kind::Vector]),
                "Standard deviations along its own axes, or one for all (metres)",
            )
            .above_zero()
            .sample("0.1"),
            item("colour", Kind::Colour, "Display space, up to 4 for lamps"),
            number("opacity", "", "0 to 1").within(0.0, 1.0).or("1"),
            item(
                "facing",
                Kind::Either(&[Kind::Vector, Kind::Rotation]),
                "Where its own z points, or a rotation",
            )
            .sample("vector.create(0, 0, 1)")
            .or("none"),
            vector("along", "direction", "Where its own x points, as near as it goes").or("anywhere"),
        ])
        .fails("More splats than a scene may generate.")
        .example(
            "local builder = stage.builder()\n\
             builder:add(vector.zero, vector.create(0.2, 0.1, 0.01), \"#804020\", 0.9, vector.create(0, 0, 1))\n\
             expect(builder.count).equals(1)",
        ),
    function("sheet", "Adds a surface of splats; they are made when it builds.")
        .takes(&[item("sheet", Kind::Record("sheet_options"), "Points, how many splats, how they look")])
        .fails("Points that span no surface; more bytes than sheets may have.")
        .example(
            "local builder = stage.builder()\n\
             builder:sheet({\n\
             \tpoints = { vector.zero, vector.create(2, 0, 0), vector.create(0, 1, 0), vector.create(2, 1, 0) },\n\
             \tacross = 2,\n\
             \tcount = 50,\n\
             \ttint = \"#cc9966\",\n\
             })\n\
             expect(builder:build(\"wall\").count).equals(50)",
        ),
    function("build", "Makes an asset of what was added; the builder is empty then.")
        .takes(&[text("name", "What the handle is called").or("`generated`")])
        .gives(&[HANDLE])
        .example(
            "local builder = stage.builder()\n\
             builder:add(vector.zero, 0.1, vector.one)\n\
             expect(builder:build().name).equals(\"generated\")",
        ),
];
