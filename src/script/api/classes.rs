//! Host objects: handles, bones, edits and what the namespaces make, with the tables that they read.

use super::{
    Class, Item, Kind, Record, flag, function, item, motion, number, record, sound, stage, text,
    vector,
};

/// `handle:edit{...}`.
pub static EDIT_OPTIONS: Record = record(
    "edit_options",
    "A solid, and what it does to the splats inside.",
    &[
        item(
            "shape",
            Kind::Choice(&["sphere", "box", "ellipsoid", "plane", "capsule"]),
            "The solid. A sphere has `radius`, a box `half`, an ellipsoid `radii`, a capsule `radius` and \
             `half_length`; a plane takes what is below it",
        ),
        text("bone", "What carries it").sample("\"root\"").or("the asset itself"),
        number("radius", "metres", "Of a sphere or capsule").above_zero().or("none, of others"),
        vector("half", "metres", "Half the sides of a box, above 0").or("none, of others"),
        vector("radii", "metres", "Of an ellipsoid, above 0").or("none, of others"),
        number("half_length", "metres", "From the middle of a capsule to the middle of its caps").within(0.0, 1e6).or("none, of others"),
        OPACITY.or("1"),
        TINT.or("white"),
        DISPLACE.or("none"),
        CENTRE.or("the origin"),
        ROTATION.sample("{ yaw = 10 }").or("none"),
        SOFT_EDGE.or("0"),
        INVERTED.or("false"),
        ENABLED.or("true"),
    ],
)
.samples(&[
    "{ shape = \"sphere\", radius = 1 }",
    "{ shape = \"box\", half = vector.one }",
    "{ shape = \"ellipsoid\", radii = vector.one }",
    "{ shape = \"capsule\", radius = 1, half_length = 1 }",
]);

const OPACITY: Item = number("opacity", "", "Factor of opacity").within(0.0, 1.0);
const TINT: Item = item("tint", Kind::Colour, "Factor of the colour, up to 16");
const DISPLACE: Item = vector("displace", "metres", "How far splats are moved");
const CENTRE: Item = vector("centre", "metres", "The middle of the solid");
const ROTATION: Item = item(
    "rotation",
    Kind::Rotation,
    "How it is turned; read as a quaternion",
);
const SOFT_EDGE: Item = number("soft_edge", "metres", "How wide its edge is").within(0.0, 1e6);
const INVERTED: Item = flag("inverted", "Whether it takes what is outside");
const ENABLED: Item = flag("enabled", "Whether it does anything");

/// `handle:add_bone{...}`.
pub static BONE_OPTIONS: Record = record(
    "bone_options",
    "A bone that the file does not have, with weights that fall off around it.",
    &[
        text("name", "What it is called").sample("\"new bone\""),
        text("parent", "A bone that carries it")
            .sample("\"root\"")
            .or("none"),
        vector("position", "metres", "Where it turns, at rest"),
        item(
            "sigma",
            SIGMA,
            "How far it reaches: the widths of a Gaussian (metres), above 0",
        )
        .sample("0.1"),
        number("gain", "", "Factor of its weight")
            .within(0.0, 1000.0)
            .or("1"),
        number("floor", "", "Weights up to this are none")
            .within(0.0, 1000.0)
            .or("0"),
        item(
            "skip",
            Kind::List(&Kind::List(&Kind::Record("condition"))),
            "Splats for which all conditions of any group hold are left out",
        )
        .or("none"),
    ],
)
.samples(&["{ name = \"new bone\", position = vector.zero, sigma = 0.1 }"]);

const SIGMA: Kind = Kind::Either(&[Kind::Number, Kind::Vector]);

/// A condition of `handle:add_bone{skip = {{...}}}`.
pub static CONDITION: Record = record(
    "condition",
    "Something that may hold for a splat; all that is named must.",
    &[
        item(
            "bones",
            Kind::List(&Kind::Text),
            "Whose largest weight is looked at",
        )
        .sample("{ \"root\" }")
        .or("none"),
        number("above", "weight", "The weight is above it").or("anything"),
        number("below", "weight", "The weight is below it").or("anything"),
        number("below_y", "metres", "The splat is below it").or("anything"),
    ],
)
.samples(&["{ below_y = 0 }"]);

/// `handle:add_shape{...}`.
pub static SHAPE_OPTIONS: Record = record(
    "shape_options",
    "A blendshape that the file does not have.",
    &[
        text("name", "What it is called").sample("\"new shape\""),
        item("bumps", Kind::List(&Kind::Record("bump")), "What it does at a value of 1; up to 64"),
    ],
)
.samples(&["{ name = \"new shape\", bumps = { { centre = vector.zero, sigma = 0.1, offset = vector.one } } }"]);

/// A bump of `handle:add_shape{bumps = {...}}`.
pub static BUMP: Record = record(
    "bump",
    "How splats around a point move.",
    &[
        vector("centre", "metres", "The point"),
        item(
            "sigma",
            SIGMA,
            "How far it reaches: the widths of a Gaussian (metres), above 0",
        )
        .sample("0.1"),
        vector("offset", "metres", "How far the point moves"),
    ],
)
.samples(&["{ centre = vector.zero, sigma = 0.1, offset = vector.one }"]);

/// A rotation by angles.
pub static EULER: Record = record(
    "euler",
    "A rotation: yaw, then pitch, then roll, with the signs of a camera.",
    &[
        number("yaw", "degrees", "To the left").or("0"),
        number("pitch", "degrees", "Up").or("0"),
        number("roll", "degrees", "Clockwise").or("0"),
    ],
)
.samples(&["{ yaw = 10 }"]);

/// An example with a handle `hero` that has a body.
macro_rules! rigged {
    ($text:literal) => {
        concat!(
            "local hero = stage.rig(stage.splats(\"statue.ply\"), {\n",
            "\tbones = { { name = \"head\", position = vector.zero } },\n",
            "\tshapes = { smile = function(position) return vector.create(0, 0.1, 0) end },\n",
            "})\n",
            $text
        )
    };
}

/// An asset.
pub static HANDLE: Class = Class {
    name: "handle",
    type_name: "splats handle",
    doc: "An asset of the scene: what to draw, where and how. Two handles of one asset are equal.",
    fields: &[
        text("name", "The file's, or what it was made under"),
        number("count", "", "Splats"),
        vector("position", "metres", "Where it stands").writable(),
        item("rotation", Kind::Rotation, "How it is turned; read as a quaternion").writable(),
        number("scale", "times", "How large it is").above_zero().writable(),
        item("tint", Kind::Colour, "Factor of the colour, up to 16, and of opacity; read as a list of four").writable(),
        flag("visible", "Whether it is drawn").writable(),
        flag("pickable", "Whether the pointer meets it; at first true for avatars").writable(),
        item("bones", Kind::List(&Kind::Text), "Names of its bones"),
        item("shapes", Kind::List(&Kind::Text), "Names of its blendshapes"),
        item("states", Kind::Data, "What an avatar's file says of states").or("nil"),
        item("manifest", Kind::Data, "What an avatar's file says of itself").or("nil"),
        text("asset_type", "`head`, `body` or `object`, of an avatar").or("nil"),
        stage::EFFECTS.or("none").writable(),
        item("pivot", Kind::Choice(&["joint", "origin"]), "What bones turn around").writable(),
    ],
    methods: &[
        function("bone", "The bone of this name, or nil.")
            .takes(&[text("name", "One of `bones`")])
            .gives(&[item("bone", Kind::Class("bone"), "To turn and move it").or("nil")])
            .example(rigged!("expect(hero:bone(\"head\").name).equals(\"head\")")),
        function("shape", "The value of a blendshape.")
            .takes(&[text("name", "One of `shapes`").sample("\"smile\"")])
            .gives(&[number("value", "", "0 at rest")])
            .fails("It has no blendshape of this name.")
            .example(rigged!("expect(hero:shape(\"smile\")).equals(0)")),
        function("set_shape", "Sets the value of a blendshape.")
            .takes(&[
                text("name", "One of `shapes`").sample("\"smile\""),
                number("value", "", "0 at rest, 1 as it was made").within(-16.0, 16.0),
            ])
            .fails("It has no blendshape of this name.")
            .example(rigged!("hero:set_shape(\"smile\", 0.5)\nexpect(hero:shape(\"smile\")).near(0.5)")),
        function("set_shapes", "Sets several at once.")
            .takes(&[item("values", Kind::Map(&Kind::Number), "Values by name (-16 to 16)").sample("{ smile = 1 }")])
            .fails("It has no blendshape of one of these names.")
            .example(rigged!("hero:set_shapes({ smile = 1 })\nexpect(hero:shape(\"smile\")).equals(1)")),
        function("add_bone", "Gives it a bone that the file does not have.")
            .takes(&[item("bone", Kind::Record("bone_options"), "Where it is and what it carries")])
            .gives(&[item("bone", Kind::Class("bone"), "The new one")])
            .loading()
            .fails("It has no bones, or one of this name.")
            .example(rigged!(
                "local ear = hero:add_bone({ name = \"ear\", parent = \"head\", position = vector.one, sigma = 0.2 })\n\
                 ear:turn(0, 20, 0)\n\
                 expect(ear.parent).equals(\"head\")"
            )),
        function("add_shape", "Gives it a blendshape that the file does not have.")
            .takes(&[item("shape", Kind::Record("shape_options"), "What moves, and how far")])
            .loading()
            .fails("It has no body, or a blendshape of this name.")
            .example(rigged!(
                "hero:add_shape({ name = \"nod\", bumps = { { centre = vector.zero, sigma = 0.2, offset = vector.one } } })\n\
                 expect(hero:shape(\"nod\")).equals(0)"
            )),
        function("edit", "Hides, tints or moves the splats in a solid.")
            .takes(&[item("edit", Kind::Record("edit_options"), "The solid, and what it does")])
            .gives(&[item("edit", Kind::Class("edit"), "To change it at any time")])
            .loading()
            .fails("More than 16 edits.")
            .example(
                "local hole = stage.splats(\"statue.ply\"):edit({ shape = \"sphere\", radius = 0.5, opacity = 0 })\n\
                 hole.centre = vector.create(0, 1, 0)\n\
                 expect(hole.opacity).equals(0)",
            ),
    ],
    operators: &["__eq", "__tostring"],
};

/// A bone.
pub static BONE: Class = Class {
    name: "bone",
    type_name: "bone",
    doc: "A bone of an asset.",
    fields: &[
        text("name", "What it is called"),
        text("parent", "The bone that carries it").or("nil"),
        vector("rest", "metres", "Where it turns, at rest"),
        item(
            "rotation",
            Kind::Rotation,
            "How it is turned against rest; read as a quaternion",
        )
        .writable(),
        vector("move", "metres", "How far it is moved from rest").writable(),
    ],
    methods: &[
        function("turn", "Sets its rotation: about x, then y, then z.")
            .takes(&[
                number("x", "degrees", "About x").or("0"),
                number("y", "degrees", "About y").or("0"),
                number("z", "degrees", "About z").or("0"),
            ])
            .example(rigged!(
                "local head = hero:bone(\"head\")\n\
             head:turn(0, 90, 0)\n\
             expect(head.rotation[2]).near(math.sin(math.rad(45)))"
            )),
    ],
    operators: &["__tostring"],
};

/// An edit.
pub static EDIT: Class = Class {
    name: "edit",
    type_name: "edit",
    doc: "What `handle:edit` made.",
    fields: &[
        OPACITY.writable(),
        TINT.writable(),
        DISPLACE.writable(),
        CENTRE.writable(),
        ROTATION.writable(),
        SOFT_EDGE.writable(),
        INVERTED.writable(),
        ENABLED.writable(),
    ],
    methods: &[],
    operators: &[],
};

/// A builder.
pub static BUILDER: Class = Class {
    name: "builder",
    type_name: "splats builder",
    doc: "Splats on their way, of `stage.builder`.",
    fields: &[number("count", "", "Splats that it would build")],
    methods: stage::BUILDER_METHODS,
    operators: &[],
};

/// A texture.
pub static TEXTURE: Class = Class {
    name: "texture",
    type_name: "texture",
    doc: "A picture for sheets, of `stage.texture`.",
    fields: &[
        number("across", "", "Texels in a row"),
        number("up", "", "Rows"),
    ],
    methods: &[],
    operators: &[],
};

/// A probe.
pub static PROBE: Class = Class {
    name: "probe",
    type_name: "probe",
    doc: "Splats as they stood when it was made, in cells, of `stage.probe`.",
    fields: &[
        number("cell", "metres", "Side of a cell"),
        number("count", "", "Cells with something in them"),
    ],
    methods: &[
        function("look", "What a ray meets: where half of the light is gone.")
            .takes(&[
                vector("position", "metres", "Where it begins"),
                vector("direction", "any length", "Where it goes, longer than 0"),
                number("max", "metres", "How far it goes").within(0.0, 10_000.0),
            ])
            .gives(&[
                number(
                    "distance",
                    "metres",
                    "How far the thing is; nil where nothing is met",
                )
                .or("nil"),
                number(
                    "r",
                    "",
                    "Red of what was met; add (1 - seen) times the background",
                ),
                number("g", "", "Green"),
                number("b", "", "Blue"),
                number("seen", "", "The share of the light that was met"),
            ])
            .example(
                "local probe = stage.probe(stage.splats(\"statue.ply\"))\n\
                 local distance = probe:look(vector.create(0, 9, 0), vector.create(0, 1, 0), 5)\n\
                 expect(distance).equals(nil)",
            ),
        function("ground", "The height of the ground under a place.")
            .takes(&[vector("position", "metres", "The place")])
            .gives(&[number("y", "metres", "nil where there is none").or("nil")])
            .example(
                "local probe = stage.probe(stage.splats(\"statue.ply\"))\n\
                 expect(probe:ground(vector.create(50, 0, 0))).equals(nil)",
            ),
        function(
            "clearance",
            "How far the next wall is, at most 2 m, between two heights above a foot.",
        )
        .takes(&[
            vector("position", "metres", "The foot"),
            number("low", "metres", "From this height")
                .within(-100.0, 100.0)
                .or("0.3"),
            number("high", "metres", "To this height")
                .within(-100.0, 100.0)
                .or("1.7"),
        ])
        .gives(&[number("distance", "metres", "0 to 2")])
        .example(
            "local probe = stage.probe(stage.splats(\"statue.ply\"))\n\
                 expect(probe:clearance(vector.create(50, 0, 0))).equals(2)",
        ),
    ],
    operators: &["__tostring"],
};

/// A clip.
pub static CLIP: Class = Class {
    name: "clip",
    type_name: "clip",
    doc: "A sound file, of `sound.clip`.",
    fields: &[
        text("name", "The file's"),
        number("duration", "seconds", "How long it is"),
        number("channels", "", "1 or 2"),
    ],
    methods: &[],
    operators: &[],
};

/// A follower.
pub static FOLLOWER: Class = Class {
    name: "follower",
    type_name: "follower",
    doc: "What a clip sounds like over time, of `sound.follow`.",
    fields: &[number("duration", "seconds", "How long the clip is")],
    methods: sound::FOLLOWER_METHODS,
    operators: &[],
};

/// A spring.
pub static SPRING: Class = Class {
    name: "spring",
    type_name: "spring",
    doc: "A spring that was let go at 0 s, of `motion.spring`.",
    fields: &[],
    methods: motion::SPRING_METHODS,
    operators: &[],
};

/// A spline.
pub static SPLINE: Class = Class {
    name: "spline",
    type_name: "spline",
    doc: "A curve through points, of `motion.spline`.",
    fields: &[number("length", "metres", "Of the whole curve")],
    methods: motion::SPLINE_METHODS,
    operators: &[],
};

/// A track.
pub static TRACK: Class = Class {
    name: "track",
    type_name: "track",
    doc: "Values at an even rate, of `motion.track`.",
    fields: &[number(
        "duration",
        "seconds",
        "From the first sample to the last",
    )],
    methods: motion::TRACK_METHODS,
    operators: &[],
};

/// An effect.
pub static EFFECT: Class = Class {
    name: "effect",
    type_name: "effect",
    doc: "WGSL that changes each splat before it is drawn, of `stage.effect`.",
    fields: &[
        text("file", "The file's name"),
        item("uniforms", Kind::List(&Kind::Text), "Names of its values"),
    ],
    methods: &[],
    operators: &[],
};

/// A spread.
pub static SPREAD: Class = Class {
    name: "spread",
    type_name: "spread",
    doc: "A wave along the splats of a handle, of `stage.spread`.",
    fields: &[
        number("cell", "metres", "Side of its cells"),
        number("count", "", "Cells with splats in them"),
        number("reached", "metres", "How far it was let go"),
        flag("done", "Whether it has been everywhere"),
    ],
    methods: stage::SPREAD_METHODS,
    operators: &[],
};

/// Every class.
pub static CLASSES: [&Class; 13] = [
    &HANDLE, &EFFECT, &SPREAD, &BONE, &EDIT, &BUILDER, &TEXTURE, &PROBE, &CLIP, &FOLLOWER, &SPRING,
    &SPLINE, &TRACK,
];
