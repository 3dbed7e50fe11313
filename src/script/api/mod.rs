//! The API as one table: every function, class, record and callback that a scene can name.
//!
//! From it come
//! - the bindings: a function, field or method is bound by its entry (`bind`); a binding without an
//!   entry, an entry that nothing binds and a binding with another number of arguments are errors when a
//!   VM is made, so every test shows them;
//! - the names that a table with fields may have (`args::only_keys`), and the hints at slips;
//! - what `splatstage api` prints (`pages`), which lies in `scripts/` as `splatstage.d.luau`,
//!   `splatstage.lua` and `reference.md`. `cargo test --test it -- api::` says when they are old, and
//!   `splatstage api --write scripts` makes them anew.
//!
//! The tests in `tests/it/api.rs` go through the table too: they run every example, hand every parameter
//! and field what it must refuse, and look for a scene or test that uses each function.
//!
//! # To add to it
//! - A function: an entry in its namespace (`motion.rs`, `stage.rs`, `sound.rs`, `globals.rs`), and
//!   `space.function("name", closure)` where that namespace is bound. The closure takes one `Value` for
//!   each parameter. An example that runs, with `expect(...)` as in test files; `stage.splats("statue.ply")`
//!   and the other files of `tests/it/api.rs` are there for it.
//! - A method or a field of a class: an entry in `classes.rs`, and `class.method`, `class.get`, `class.set`
//!   where the type is bound.
//! - A class: an entry in `classes.rs` and its line in [`CLASSES`]; `UserData::register` of the type binds it
//!   through a `Binding`, and `classes` in the type's file names the type.
//! - A table with fields: a [`Record`] and a line in [`RECORDS`]; the code that reads it says
//!   `args::only_keys(table, &api::RECORD, what)`.
//! - A callback or a field of the scene's own table: an entry in `scene.rs`.
//!
//! The table holds words and numbers only; it does nothing. Names of units are those of the messages.

mod bind;
mod classes;
mod globals;
mod motion;
mod pages;
mod scene;
mod sound;
mod stage;
mod testing;

pub(super) use bind::{Binding, Space, classes, complete};
pub use classes::*;
pub use globals::{GLOBALS, LOG, PARAM_OPTIONS, REMOVED};
pub use motion::*;
pub use pages::{Format, page};
pub use scene::*;
pub use sound::*;
pub use stage::*;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Anything at all.
    Any,
    /// A finite number.
    Number,
    /// A string.
    Text,
    /// True or false.
    Boolean,
    /// A native vector, finite.
    Vector,
    /// A buffer.
    Buffer,
    /// A display-space colour: `"#rrggbb[aa]"`, `{r, g, b[, a]}` or a vector.
    Colour,
    /// `{yaw =, pitch =, roll =}` in degrees or a quaternion `{x, y, z, w}`.
    Rotation,
    /// Plain data, as JSON holds it, and vectors.
    Data,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// `false` and no other boolean.
    False,
    /// A host object, by the name of its [`Class`].
    Class(&'static str),
    /// A table with fields, by the name of its [`Record`].
    Record(&'static str),
    /// A table with values at 1, 2, 3, ...
    List(&'static Kind),
    /// A list of so many numbers.
    Numbers(usize),
    /// A table with values under strings.
    Map(&'static Kind),
    /// A function that the script hands over.
    Function(&'static [(&'static str, Kind)], &'static Kind),
    /// Any of these.
    Either(&'static [Kind]),
}

/// Which numbers are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// All finite ones.
    Any,
    /// Those above 0.
    AboveZero,
    /// From the first to the second.
    Within(f64, f64),
    /// Whole ones from the first to the second.
    Whole(f64, f64),
}

/// A parameter, a result, a field.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// As it is written; for a result, what it is.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// As messages say it: `seconds`, `metres`, `degrees`; empty where there is none.
    pub unit: &'static str,
    /// Of numbers.
    pub range: Range,
    /// What is taken where it is nil; `None` where it must not be.
    pub default: Option<&'static str>,
    /// A field of a class that can be set.
    pub is_writable: bool,
    /// One sentence without its end.
    pub doc: &'static str,
    /// A Luau expression that is taken, where none follows from the kind.
    pub sample: &'static str,
}

impl Item {
    const fn new(name: &'static str, kind: Kind, unit: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            unit,
            range: Range::Any,
            default: None,
            is_writable: false,
            doc,
            sample: "",
        }
    }

    const fn above_zero(mut self) -> Self {
        self.range = Range::AboveZero;
        self
    }

    const fn within(mut self, low: f64, high: f64) -> Self {
        self.range = Range::Within(low, high);
        self
    }

    const fn whole(mut self, low: f64, high: f64) -> Self {
        self.range = Range::Whole(low, high);
        self
    }

    /// May be left out; `default` says what is then taken.
    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn writable(mut self) -> Self {
        self.is_writable = true;
        self
    }

    const fn sample(mut self, sample: &'static str) -> Self {
        self.sample = sample;
        self
    }
}

const fn number(name: &'static str, unit: &'static str, doc: &'static str) -> Item {
    Item::new(name, Kind::Number, unit, doc)
}

const fn text(name: &'static str, doc: &'static str) -> Item {
    Item::new(name, Kind::Text, "", doc)
}

const fn flag(name: &'static str, doc: &'static str) -> Item {
    Item::new(name, Kind::Boolean, "", doc)
}

const fn vector(name: &'static str, unit: &'static str, doc: &'static str) -> Item {
    Item::new(name, Kind::Vector, unit, doc)
}

const fn item(name: &'static str, kind: Kind, doc: &'static str) -> Item {
    Item::new(name, kind, "", doc)
}

/// When a function can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// In the file's body and in `load(stage)`.
    Loading,
    /// In `step` and `event`, in a window.
    Playing,
}

/// A function of a namespace, a method of a class, or a callback.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its name alone.
    pub name: &'static str,
    /// In order.
    pub params: &'static [Item],
    /// More of these may follow.
    pub rest: Option<Kind>,
    /// In order.
    pub returns: &'static [Item],
    /// When it can be called.
    pub when: When,
    /// Sentences.
    pub doc: &'static str,
    /// What it refuses beside wrong arguments; may be empty.
    pub fails: &'static str,
    /// Luau that runs and expects; of callbacks, a scene.
    pub example: &'static str,
}

impl Function {
    const fn new(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            params: &[],
            rest: None,
            returns: &[],
            when: When::Always,
            doc,
            fails: "",
            example: "",
        }
    }

    const fn takes(mut self, params: &'static [Item]) -> Self {
        self.params = params;
        self
    }

    const fn takes_more(mut self, kind: Kind) -> Self {
        self.rest = Some(kind);
        self
    }

    const fn gives(mut self, returns: &'static [Item]) -> Self {
        self.returns = returns;
        self
    }

    const fn loading(mut self) -> Self {
        self.when = When::Loading;
        self
    }

    const fn playing(mut self) -> Self {
        self.when = When::Playing;
        self
    }

    const fn fails(mut self, fails: &'static str) -> Self {
        self.fails = fails;
        self
    }

    const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }
}

const fn function(name: &'static str, doc: &'static str) -> Function {
    Function::new(name, doc)
}

/// A global table.
#[derive(Clone, Copy, Debug)]
pub struct Namespace {
    /// The global's name; empty for the globals themselves.
    pub name: &'static str,
    /// Sentences.
    pub doc: &'static str,
    /// Values that are there.
    pub fields: &'static [Item],
    /// Functions.
    pub functions: &'static [Function],
}

/// A host object.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its name in this table and, with a capital, in types.
    pub name: &'static str,
    /// What `typeof` and messages call it.
    pub type_name: &'static str,
    /// Sentences.
    pub doc: &'static str,
    /// Fields; [`Item::is_writable`] says which can be set.
    pub fields: &'static [Item],
    /// Called with a colon.
    pub methods: &'static [Function],
    /// Metamethods: `__eq`, `__tostring`.
    pub operators: &'static [&'static str],
}

/// A table that is read or made by named fields.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Its name in this table and, with a capital, in types.
    pub name: &'static str,
    /// Sentences.
    pub doc: &'static str,
    /// Its fields. A function's record is read from the script; nothing else may be in it.
    pub fields: &'static [Item],
    /// What stands at 1, 2, 3, ... in it.
    pub items: Option<Kind>,
    /// The script may put what it likes in it beside the fields.
    pub is_open: bool,
    /// Luau expressions of it that are taken, which together need every field.
    pub samples: &'static [&'static str],
}

impl Record {
    const fn new(name: &'static str, doc: &'static str, fields: &'static [Item]) -> Self {
        Self {
            name,
            doc,
            fields,
            items: None,
            is_open: false,
            samples: &[],
        }
    }

    const fn items(mut self, kind: Kind) -> Self {
        self.items = Some(kind);
        self
    }

    const fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    const fn samples(mut self, samples: &'static [&'static str]) -> Self {
        self.samples = samples;
        self
    }

    /// Whether it has a field of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// The names of its fields.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }
}

const fn record(name: &'static str, doc: &'static str, fields: &'static [Item]) -> Record {
    Record::new(name, doc, fields)
}

/// Every namespace; the globals that are functions come first.
pub static NAMESPACES: [&Namespace; 5] = [&GLOBALS, &STAGE, &MOTION, &SOUND, &LOG];

/// What only test files have (`splatstage test`).
pub use testing::{EXPECTATION, TESTED_SCENE, TESTING};

/// The class of this name.
#[must_use]
pub fn class(name: &str) -> Option<&'static Class> {
    CLASSES.into_iter().find(|class| class.name == name)
}

/// The record of this name.
#[must_use]
pub fn record_of(name: &str) -> Option<&'static Record> {
    RECORDS.into_iter().find(|record| record.name == name)
}
