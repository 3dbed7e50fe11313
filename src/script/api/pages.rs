//! The API's table as text: definitions for luau-lsp, a stub for lua-language-server, the reference
//! pages, and JSON.
//!
//! Nothing here adds a fact: what a page says is in the table, or is the first line of a library file.
//! Sources: the declaration syntax of Luau's parser (`declare extern type`), the annotations on luals.github.io.

use super::{
    CALLBACKS, CLASSES, Class, EXPECTATION, Function, Item, Kind, NAMESPACES, Namespace, RECORDS,
    REMOVED, Range, Record, SCENE, TESTED_SCENE, TESTING, When,
};
use crate::script::modules;
use serde_json::{Value as Json, json};
use std::fmt::Write;

/// What the API can be printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Definitions for luau-lsp, `splatstage.d.luau`.
    Luau,
    /// A stub for lua-language-server and other tools that read its annotations, `splatstage.lua`.
    Lua,
    /// The reference pages, `reference.md`.
    Markdown,
    /// Everything, for programs.
    Json,
}

impl Format {
    /// Those that lie in `scripts/`, with their names there.
    pub const FILES: [(Self, &'static str); 3] = [
        (Self::Luau, "splatstage.d.luau"),
        (Self::Lua, "splatstage.lua"),
        (Self::Markdown, "reference.md"),
    ];
}

/// The whole API in a format; ends with a line feed.
#[must_use]
pub fn page(format: Format) -> String {
    match format {
        Format::Luau => luau(),
        Format::Lua => lua(),
        Format::Markdown => markdown(),
        Format::Json => format!("{:#}\n", json_of_all()),
    }
}

/// The name of a type: `bone_options` is `BoneOptions`.
fn type_name(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        })
        .collect()
}

/// One of the two type languages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Luau,
    Annotations,
}

impl Language {
    fn kind(self, kind: &Kind) -> String {
        match kind {
            Kind::Any | Kind::Data => "any".to_owned(),
            Kind::Number => "number".to_owned(),
            Kind::Text => "string".to_owned(),
            Kind::Boolean => "boolean".to_owned(),
            Kind::Vector => "vector".to_owned(),
            Kind::Buffer => "buffer".to_owned(),
            Kind::Colour => "Colour".to_owned(),
            Kind::Rotation => "Rotation".to_owned(),
            Kind::False => "false".to_owned(),
            Kind::Class(name) | Kind::Record(name) => type_name(name),
            Kind::Choice(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                names.join(self.or())
            }
            Kind::List(kind) => match self {
                Self::Luau => format!("{{ {} }}", self.kind(kind)),
                Self::Annotations => format!("{}[]", self.single(kind)),
            },
            Kind::Numbers(_) => self.kind(&Kind::List(&Kind::Number)),
            Kind::Map(kind) => match self {
                Self::Luau => format!("{{ [string]: {} }}", self.kind(kind)),
                Self::Annotations => format!("table<string, {}>", self.kind(kind)),
            },
            Kind::Function(takes, gives) => {
                let takes: Vec<String> = (takes.iter())
                    .map(|(name, kind)| format!("{name}: {}", self.kind(kind)))
                    .collect();
                let takes = takes.join(", ");
                match self {
                    Self::Luau => format!("({takes}) -> {}", self.single(gives)),
                    Self::Annotations => format!("fun({takes}): {}", self.single(gives)),
                }
            }
            Kind::Either(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(|kind| self.single(kind)).collect();
                kinds.join(self.or())
            }
        }
    }

    fn or(self) -> &'static str {
        match self {
            Self::Luau => " | ",
            Self::Annotations => "|",
        }
    }

    /// In brackets where something that follows would belong to the last part alone.
    fn single(self, kind: &Kind) -> String {
        let text = self.kind(kind);
        let is_open = match kind {
            Kind::Either(kinds) => kinds.len() > 1,
            Kind::Choice(names) => names.len() > 1,
            Kind::Function(..) => true,
            _ => false,
        };
        if is_open { format!("({text})") } else { text }
    }

    fn item(self, item: &Item) -> String {
        match item.default {
            Some(_) => format!("{}?", self.single(&item.kind)),
            None => self.kind(&item.kind),
        }
    }

    /// A function's type, in Luau.
    fn function(self, function: &Function, owner: Option<&str>) -> String {
        let mut takes: Vec<String> = owner.map(|_| "self".to_owned()).into_iter().collect();
        for param in function.params {
            takes.push(format!("{}: {}", param.name, self.item(param)));
        }
        if let Some(kind) = &function.rest {
            takes.push(match owner {
                None => format!("...{}", self.kind(kind)),
                Some(_) => format!("...: {}", self.kind(kind)),
            });
        }
        let gives: Vec<String> = function
            .returns
            .iter()
            .map(|item| self.item(item))
            .collect();
        let gives = match gives.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        };
        match owner {
            None => format!("({}) -> {gives}", takes.join(", ")),
            Some(_) => format!("({}): {gives}", takes.join(", ")),
        }
    }
}

/// A number as people write it.
fn shown(n: f64) -> String {
    if n.abs() >= 1e6 && n.fract() == 0.0 {
        let digits = format!("{n:.0}");
        let tail = digits.trim_end_matches('0');
        if digits.len() - tail.len() >= 6 {
            return format!("{n:e}");
        }
    }
    n.to_string()
}

/// Which numbers are taken, in words; empty for all.
fn range(range: Range) -> String {
    // What a u32 or an f64 holds at most is no limit that anyone meets.
    let to = |high: f64| {
        if high >= f64::from(u32::MAX) {
            " or more".to_owned()
        } else {
            format!(" to {}", shown(high))
        }
    };
    match range {
        Range::Any => String::new(),
        Range::AboveZero => "above 0".to_owned(),
        Range::Within(low, high) => format!("{}{}", shown(low), to(high)),
        Range::Whole(low, high) => format!("whole, {}{}", shown(low), to(high)),
    }
}

/// What an item is, with unit, range and default behind it.
fn sentence(item: &Item) -> String {
    let mut facts: Vec<String> = Vec::new();
    if !item.unit.is_empty() {
        facts.push(item.unit.to_owned());
    }
    let range = range(item.range);
    if !range.is_empty() && range != item.unit {
        facts.push(range);
    }
    if let Some(default) = item.default.filter(|default| *default != "nil") {
        facts.push(format!("default {default}"));
    }
    match facts.as_slice() {
        [] => item.doc.to_owned(),
        facts => format!("{} ({})", item.doc, facts.join("; ")),
    }
}

fn when(when: When) -> &'static str {
    match when {
        When::Always => "",
        When::Loading => "While loading only.",
        When::Playing => "While the scene plays only.",
    }
}

// Writing to a String cannot fail.
macro_rules! line {
    ($out:expr) => { $out.push('\n') };
    ($out:expr, $($format:tt)+) => {{ let _ = writeln!($out, $($format)+); }};
}

fn records() -> impl Iterator<Item = &'static Record> {
    RECORDS
        .into_iter()
        .filter(|record| record.name != SCENE.name)
}

fn luau() -> String {
    let language = Language::Luau;
    let mut out = String::new();
    line!(
        out,
        "-- What splatstage gives to scenes, for luau-lsp: `splatstage api --format luau` prints it. Do not edit."
    );
    line!(
        out,
        "-- Seconds, metres and degrees; vectors are native ones."
    );
    line!(out);
    line!(
        out,
        "--- Display space: \"#rrggbb\", \"#rrggbbaa\", {{r, g, b}}, {{r, g, b, a}} or a vector, 0 to 1."
    );
    line!(out, "export type Colour = string | vector | {{ number }}");
    line!(
        out,
        "--- Angles in degrees, or a quaternion {{x, y, z, w}}."
    );
    line!(out, "export type Rotation = Euler | {{ number }}");
    for record in records() {
        line!(out);
        line!(out, "--- {}", record.doc);
        line!(out, "export type {} = {{", type_name(record.name));
        for field in record.fields {
            line!(out, "\t--- {}", sentence(field));
            line!(out, "\t{}: {},", field.name, language.item(field));
        }
        // A type has one indexer.
        match &record.items {
            Some(_) if record.is_open => line!(out, "\t[any]: any,"),
            Some(kind) => line!(out, "\t[number]: {},", language.kind(kind)),
            None if record.is_open => line!(out, "\t[string]: any,"),
            None => {}
        }
        line!(out, "}}");
    }
    for class in CLASSES.into_iter().chain([&TESTED_SCENE]) {
        line!(out);
        line!(out, "--- {}", class.doc);
        line!(out, "declare extern type {} with", type_name(class.name));
        for field in class.fields {
            let access = if field.is_writable { "" } else { "; to read" };
            line!(out, "\t--- {}{access}", sentence(field));
            line!(out, "\t{}: {}", field.name, language.item(field));
        }
        for method in class.methods {
            line!(
                out,
                "\t--- {}",
                [method.doc, when(method.when)].join(" ").trim()
            );
            line!(
                out,
                "\tfunction {}{}",
                method.name,
                language.function(method, Some(class.name))
            );
        }
        line!(out, "end");
    }
    let named = NAMESPACES
        .into_iter()
        .filter(|space| !space.name.is_empty());
    for space in named.clone().chain([&EXPECTATION]) {
        line!(out);
        line!(out, "--- {}", space.doc);
        line!(out, "export type {} = {{", type_name(space.name));
        for field in space.fields {
            line!(out, "\t--- {}", sentence(field));
            line!(out, "\t{}: {},", field.name, language.item(field));
        }
        for function in space.functions {
            line!(
                out,
                "\t--- {}",
                [function.doc, when(function.when)].join(" ").trim()
            );
            line!(
                out,
                "\t{}: {},",
                function.name,
                language.function(function, None)
            );
        }
        line!(out, "}}");
    }
    line!(out);
    line!(out, "--- {}", SCENE.doc);
    line!(out, "export type Scene = {{");
    for field in SCENE.fields {
        line!(out, "\t--- {}", sentence(field));
        line!(out, "\t{}: {},", field.name, language.item(field));
    }
    for callback in CALLBACKS {
        line!(out, "\t--- {}", callback.doc);
        line!(
            out,
            "\t{}: ({})?,",
            callback.name,
            language.function(callback, None)
        );
    }
    line!(out, "\t[string]: any,");
    line!(out, "}}");
    line!(out);
    for space in named {
        line!(out, "declare {}: {}", space.name, type_name(space.name));
    }
    for function in TESTING.functions {
        line!(out, "--- {} In test files only.", function.doc);
        let declared = language
            .function(function, None)
            .replacen(") -> ", "): ", 1);
        line!(out, "declare function {}{declared}", function.name);
    }
    out
}

/// Luau's vectors and buffers, which other tools do not know.
const LUAUS_OWN: &str = "\
---@class vector
---@field x number
---@field y number
---@field z number
---@operator add(vector): vector
---@operator sub(vector): vector
---@operator mul(number|vector): vector
---@operator div(number|vector): vector
---@operator unm: vector
vector = {}
---@type vector
vector.zero = nil
---@type vector
vector.one = nil
---@param x number
---@param y number
---@param z? number
---@return vector
function vector.create(x, y, z) end
---@param v vector
---@return number
function vector.magnitude(v) end
---@param v vector
---@return vector
function vector.normalize(v) end
---@param a vector
---@param b vector
---@return vector
function vector.cross(a, b) end
---@param a vector
---@param b vector
---@return number
function vector.dot(a, b) end

---@class buffer
";

fn annotated(out: &mut String, function: &Function, whole_name: &str) {
    let language = Language::Annotations;
    line!(
        out,
        "---{}",
        [function.doc, when(function.when)].join(" ").trim()
    );
    for param in function.params {
        let mark = if param.default.is_some() { "?" } else { "" };
        line!(
            out,
            "---@param {}{mark} {} {}",
            param.name,
            language.single(&param.kind),
            sentence(param)
        );
    }
    if let Some(kind) = &function.rest {
        line!(out, "---@param ... {}", language.kind(kind));
    }
    for item in function.returns {
        let mark = if item.default.is_some() { "?" } else { "" };
        line!(
            out,
            "---@return {}{mark} {} {}",
            language.single(&item.kind),
            item.name,
            sentence(item)
        );
    }
    let mut names: Vec<&str> = function.params.iter().map(|param| param.name).collect();
    if function.rest.is_some() {
        names.push("...");
    }
    line!(out, "function {whole_name}({}) end", names.join(", "));
}

fn annotated_fields(out: &mut String, fields: &[Item]) {
    let language = Language::Annotations;
    for field in fields {
        let mark = if field.default.is_some() { "?" } else { "" };
        line!(
            out,
            "---@field {}{mark} {} {}",
            field.name,
            language.single(&field.kind),
            sentence(field)
        );
    }
}

fn lua() -> String {
    let language = Language::Annotations;
    let mut out = String::new();
    line!(out, "---@meta splatstage");
    line!(
        out,
        "-- What splatstage gives to scenes, for lua-language-server and other tools that read its annotations:"
    );
    line!(
        out,
        "-- `splatstage api --format lua` prints it. Do not edit. Scenes are Luau: tools for Lua understand a part."
    );
    line!(out);
    out.push_str(LUAUS_OWN);
    line!(out);
    line!(out, "---@alias Colour string|vector|number[]");
    line!(out, "---@alias Rotation Euler|number[]");
    for record in records() {
        line!(out);
        line!(out, "---{}", record.doc);
        line!(out, "---@class {}", type_name(record.name));
        annotated_fields(&mut out, record.fields);
        if let Some(kind) = &record.items {
            line!(out, "---@field [integer] {}", language.single(kind));
        }
        if record.is_open {
            line!(out, "---@field [string] any");
        }
    }
    for class in CLASSES.into_iter().chain([&TESTED_SCENE]) {
        let name = type_name(class.name);
        line!(out);
        line!(out, "---{}", class.doc);
        line!(out, "---@class {name}");
        annotated_fields(&mut out, class.fields);
        line!(out, "local {name} = {{}}");
        for method in class.methods {
            annotated(&mut out, method, &format!("{name}:{}", method.name));
        }
    }
    let named = NAMESPACES
        .into_iter()
        .filter(|space| !space.name.is_empty());
    for space in named.chain([&EXPECTATION]) {
        let name = type_name(space.name);
        line!(out);
        line!(out, "---{}", space.doc);
        line!(out, "---@class {name}");
        annotated_fields(&mut out, space.fields);
        let is_test = space.name == EXPECTATION.name;
        let owner = if is_test { &name } else { space.name };
        line!(out, "{}{owner} = {{}}", if is_test { "local " } else { "" });
        for function in space.functions {
            annotated(&mut out, function, &format!("{owner}.{}", function.name));
        }
    }
    line!(out);
    line!(out, "---{}", SCENE.doc);
    line!(out, "---@class Scene");
    annotated_fields(&mut out, SCENE.fields);
    for callback in CALLBACKS {
        let takes: Vec<String> = (callback.params.iter())
            .map(|item| format!("{}: {}", item.name, language.kind(&item.kind)))
            .collect();
        let gives: Vec<String> = callback
            .returns
            .iter()
            .map(|item| language.item(item))
            .collect();
        let gives = if gives.is_empty() {
            String::new()
        } else {
            format!(": {}", gives.join(", "))
        };
        line!(
            out,
            "---@field {}? fun({}){gives} {}",
            callback.name,
            takes.join(", "),
            callback.doc
        );
    }
    line!(out, "---@field [string] any");
    line!(out);
    for function in TESTING.functions {
        annotated(&mut out, function, function.name);
    }
    out
}

/// How a kind is called on the pages, with links.
fn words(kind: &Kind) -> String {
    match kind {
        Kind::Any => "anything".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Text => "string".to_owned(),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Vector => "vector".to_owned(),
        Kind::Buffer => "buffer".to_owned(),
        Kind::Colour => "[colour](#conventions)".to_owned(),
        Kind::Rotation => "[rotation](#conventions)".to_owned(),
        Kind::Data => "[data](#conventions)".to_owned(),
        Kind::False => "false".to_owned(),
        Kind::Choice(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            names.join(", ")
        }
        Kind::Class(name) | Kind::Record(name) => format!("[{name}](#{name})"),
        Kind::List(kind) => format!("list of {}", words(kind)),
        Kind::Numbers(count) => format!("list of {count} numbers"),
        Kind::Map(kind) => format!("by name: {}", words(kind)),
        Kind::Function(takes, gives) => {
            let names: Vec<&str> = takes.iter().map(|(name, _)| *name).collect();
            format!("function({}) → {}", names.join(", "), words(gives))
        }
        Kind::Either(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(words).collect();
            kinds.join(" or ")
        }
    }
}

/// A column's head, and what it says of an item.
type Column<'c> = (&'c str, &'c dyn Fn(&Item) -> String);

/// A table of parameters or fields, with the columns that say something.
fn rows(out: &mut String, head: &str, items: &[Item], is_class: bool) {
    if items.is_empty() {
        return;
    }
    let last = |item: &Item| match (is_class, item.is_writable) {
        (true, true) => "yes".to_owned(),
        (true, false) => String::new(),
        _ => item.default.unwrap_or("needed").to_owned(),
    };
    let columns: [Column<'_>; 6] = [
        (head, &|item| format!("`{}`", item.name)),
        ("is", &|item| words(&item.kind)),
        ("unit", &|item| item.unit.to_owned()),
        ("range", &|item| range(item.range)),
        (if is_class { "set" } else { "default" }, &last),
        ("", &|item| item.doc.to_owned()),
    ];
    let said = |column: &dyn Fn(&Item) -> String| items.iter().any(|item| !column(item).is_empty());
    let columns: Vec<_> = (columns.into_iter())
        .filter(|(_, column)| said(column))
        .collect();
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    line!(out);
    line!(out, "| {} |", heads.join(" | "));
    line!(out, "|{}", "---|".repeat(heads.len()));
    for item in items {
        let cells: Vec<String> = columns.iter().map(|(_, column)| column(item)).collect();
        line!(out, "| {} |", cells.join(" | "));
    }
}

fn results(out: &mut String, items: &[Item]) {
    if items.is_empty() {
        return;
    }
    line!(out);
    let returned: Vec<String> = (items.iter())
        .map(|item| {
            let unit = match item.unit {
                "" => String::new(),
                unit => format!(", {unit}"),
            };
            let nil = if item.default.is_some() {
                ", or nil"
            } else {
                ""
            };
            format!(
                "{} `{}`{unit}{nil}: {}",
                words(&item.kind),
                item.name,
                item.doc
            )
        })
        .collect();
    line!(out, "Returns {}.", returned.join("; "));
}

fn entry(out: &mut String, function: &Function, before: &str) {
    let mut names: Vec<String> = (function.params.iter())
        .map(|param| match param.default {
            Some(_) => format!("[{}]", param.name),
            None => param.name.to_owned(),
        })
        .collect();
    if function.rest.is_some() {
        names.push("...".to_owned());
    }
    let gives: Vec<&str> = function.returns.iter().map(|item| item.name).collect();
    let arrow = if gives.is_empty() { "" } else { " → " };
    line!(out);
    line!(
        out,
        "### `{before}{}({})`{arrow}{}",
        function.name,
        names.join(", "),
        gives.join(", ")
    );
    line!(out);
    line!(
        out,
        "{}",
        [function.doc, when(function.when)].join(" ").trim()
    );
    rows(out, "argument", function.params, false);
    results(out, function.returns);
    if !function.fails.is_empty() {
        line!(out);
        line!(out, "Refused: {}", function.fails);
    }
    if !function.example.is_empty() {
        line!(out);
        line!(out, "```luau\n{}\n```", function.example);
    }
}

/// The opening comment of a library file, behind its name: up to the end of the sentence.
#[must_use]
fn opening(source: &str) -> String {
    let mut text = String::new();
    for line in source.lines().skip_while(|line| line.starts_with("--!")) {
        let Some(words) = line.strip_prefix("--").map(str::trim) else {
            break;
        };
        if words.is_empty() {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(words);
    }
    let text = text
        .split_once(": ")
        .map_or(text.as_str(), |(_, rest)| rest);
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].to_owned()
}

const CONVENTIONS: &str = "\
Names are in snake_case. Times are in seconds, lengths in metres, angles in degrees, levels in dB. World: y up,
right-handed; a camera at yaw 0 looks along -z.

- A **vector** is Luau's native one: `vector.create(x, y, z)`. Every place, direction and size is one.
- A **colour** is display space: `\"#rrggbb\"`, `\"#rrggbbaa\"`, `{r, g, b}`, `{r, g, b, a}` or a vector, 0 to 1 where
  nothing else is said.
- A **rotation** is a table of angles ([euler](#euler)) or a quaternion `{x, y, z, w}`; it is read as a quaternion.
- **Data** is what JSON holds, and vectors: numbers, strings, booleans, lists, tables by name.

What is wrong is refused where it is said, with the line, the function, the argument, its unit and the value:
`motion.ease: u must be a number (0 to 1), got NaN`. NaN and infinities are refused everywhere, so are arguments that a
function does not take and names that a table does not know.
";

fn class_page(out: &mut String, class: &Class) {
    line!(out);
    line!(out, "## {}", class.name);
    line!(out);
    line!(out, "{}", class.doc);
    rows(out, "field", class.fields, true);
    for method in class.methods {
        entry(out, method, &format!("{}:", class.name));
    }
}

fn space_page(out: &mut String, space: &Namespace, title: &str) {
    line!(out);
    line!(out, "## {title}");
    line!(out);
    line!(out, "{}", space.doc);
    rows(out, "field", space.fields, false);
    for function in space.functions {
        let before = match space.name {
            "" => String::new(),
            name if name == EXPECTATION.name => "expect(value).".to_owned(),
            name => format!("{name}."),
        };
        entry(out, function, &before);
    }
}

fn markdown() -> String {
    let mut out = String::new();
    line!(out, "# What scenes can use");
    line!(out);
    line!(
        out,
        "`splatstage api --format markdown` prints these pages. Do not edit."
    );
    line!(out);
    line!(
        out,
        "- [Conventions](#conventions), [the scene's table](#scene)"
    );
    let spaces: Vec<String> = (NAMESPACES.iter())
        .map(|space| match space.name {
            "" => "[globals](#globals)".to_owned(),
            name => format!("[{name}](#{name})"),
        })
        .collect();
    line!(out, "- {}", spaces.join(", "));
    let link = |name: &str| format!("[{name}](#{name})");
    let classes: Vec<String> = CLASSES.iter().map(|class| link(class.name)).collect();
    line!(out, "- Objects: {}", classes.join(", "));
    let tables: Vec<String> = records().map(|record| link(record.name)).collect();
    line!(out, "- Tables: {}", tables.join(", "));
    line!(
        out,
        "- [Tests](#tests), [the library](#library), [what is not there](#removed)"
    );
    line!(out);
    line!(out, "## Conventions");
    line!(out);
    out.push_str(CONVENTIONS);
    line!(out);
    line!(out, "## scene");
    line!(out);
    line!(out, "{}", SCENE.doc);
    rows(&mut out, "field", SCENE.fields, false);
    for callback in CALLBACKS {
        entry(&mut out, callback, "");
    }
    for space in NAMESPACES {
        let title = if space.name.is_empty() {
            "globals"
        } else {
            space.name
        };
        space_page(&mut out, space, title);
    }
    for class in CLASSES {
        class_page(&mut out, class);
    }
    for record in records() {
        line!(out);
        line!(out, "## {}", record.name);
        line!(out);
        line!(out, "{}", record.doc);
        if let Some(kind) = &record.items {
            line!(out);
            line!(out, "At 1, 2, 3, ...: {}.", words(kind));
        }
        rows(&mut out, "field", record.fields, false);
    }
    space_page(&mut out, &TESTING, "tests");
    space_page(&mut out, &EXPECTATION, EXPECTATION.name);
    class_page(&mut out, &TESTED_SCENE);
    line!(out);
    line!(out, "## library");
    line!(out);
    line!(
        out,
        "`require(\"@stage/NAME\")`. Each file says at its beginning how it is used; `splatstage new` puts them beside"
    );
    line!(out, "a scene, in `.luau/stage`.");
    line!(out);
    line!(out, "| name | |");
    line!(out, "|---|---|");
    for (name, source) in modules::library() {
        line!(out, "| [`{name}`]({name}.luau) | {} |", opening(source));
    }
    line!(out);
    line!(out, "## removed");
    line!(out);
    line!(
        out,
        "What Luau or Lua has and scenes have not. All other libraries of Luau are there."
    );
    line!(out);
    line!(out, "| name | instead |");
    line!(out, "|---|---|");
    for (name, why) in REMOVED {
        line!(out, "| `{name}` | {why} |");
    }
    out
}

fn json_of_item(item: &Item) -> Json {
    json!({
        "name": item.name,
        "type": Language::Luau.kind(&item.kind),
        "unit": item.unit,
        "range": range(item.range),
        "default": item.default,
        "writable": item.is_writable,
        "doc": item.doc,
    })
}

fn json_of_items(items: &[Item]) -> Json {
    items.iter().map(json_of_item).collect()
}

fn json_of_functions(functions: &[Function]) -> Json {
    let of = |function: &Function| {
        json!({
            "name": function.name,
            "params": json_of_items(function.params),
            "rest": function.rest.as_ref().map(|kind| Language::Luau.kind(kind)),
            "returns": json_of_items(function.returns),
            "when": when(function.when),
            "doc": function.doc,
            "refused": function.fails,
            "example": function.example,
        })
    };
    functions.iter().map(of).collect()
}

fn json_of_all() -> Json {
    let space = |space: &Namespace| {
        json!({
            "name": space.name,
            "doc": space.doc,
            "fields": json_of_items(space.fields),
            "functions": json_of_functions(space.functions),
        })
    };
    let class = |class: &Class| {
        json!({
            "name": class.name,
            "doc": class.doc,
            "fields": json_of_items(class.fields),
            "methods": json_of_functions(class.methods),
        })
    };
    let record = |record: &Record| {
        json!({
            "name": record.name,
            "doc": record.doc,
            "fields": json_of_items(record.fields),
            "items": record.items.as_ref().map(|kind| Language::Luau.kind(kind)),
        })
    };
    let library = |(name, source): &(&str, &str)| json!({ "name": name, "doc": opening(source) });
    let removed = |(name, why): (&str, &str)| json!({ "name": name, "instead": why });
    json!({
        "namespaces": NAMESPACES.into_iter().map(space).collect::<Vec<_>>(),
        "classes": CLASSES.into_iter().map(class).collect::<Vec<_>>(),
        "records": RECORDS.into_iter().map(record).collect::<Vec<_>>(),
        "callbacks": json_of_functions(CALLBACKS),
        "tests": { "globals": space(&TESTING), "expectation": space(&EXPECTATION), "scene": class(&TESTED_SCENE) },
        "library": modules::library().iter().map(library).collect::<Vec<_>>(),
        "removed": REMOVED.into_iter().map(removed).collect::<Vec<_>>(),
    })
}
