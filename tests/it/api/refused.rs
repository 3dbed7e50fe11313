//! What arguments must not be: every parameter and every field of the table is handed nothing, NaN,
//! infinities, values out of its range and of other kinds, and the message has to name the function, the
//! parameter, its unit and the value, on the line of the script. Numbers that are only just taken must
//! give results that are finite.

use super::*;

/// A call that must be refused, or one that may be taken.
struct Case {
    /// What it is, for a failure's text.
    name: String,
    /// Luau expressions; one of them must do as it should.
    calls: Vec<String>,
    /// What the message must hold.
    parts: Vec<String>,
    /// It may also be taken; what it then returns is finite.
    may_be_taken: bool,
    when: When,
}

/// What Luau can hand over.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    Number,
    Text,
    True,
    Vector,
    Buffer,
    Thread,
    Function,
    Object,
}

/// Values of each kind, and how a message shows them.
const GIVEN: [(Given, &str, &str); 8] = [
    (Given::Number, "7.5", "7.5"),
    (Given::Text, "'1'", "'1'"),
    (Given::True, "true", "true"),
    (Given::Vector, "vector.one", "vector(1, 1, 1)"),
    (Given::Buffer, "buffer.create(7)", "a buffer of 7 bytes"),
    (Given::Thread, "coroutine.create(print)", "a thread"),
    (Given::Function, "function() end", "a function"),
    (Given::Object, "stranger", "a spring"),
];

/// Whether such a value may be one of this kind.
fn takes(kind: &Kind, given: Given) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Number => given == Given::Number,
        // Texts that are no name are tried by `wrong`.
        Kind::Text | Kind::Choice(_) => given == Given::Text,
        Kind::Boolean => given == Given::True,
        Kind::Vector => given == Given::Vector,
        Kind::Buffer => given == Given::Buffer,
        Kind::Colour => matches!(given, Given::Text | Given::Vector),
        Kind::Data => matches!(
            given,
            Given::Number | Given::Text | Given::True | Given::Vector
        ),
        Kind::Class("spring") => given == Given::Object,
        Kind::Function(..) => given == Given::Function,
        Kind::Either(kinds) => kinds.iter().any(|kind| takes(kind, given)),
        Kind::Rotation
        | Kind::False
        | Kind::Class(_)
        | Kind::Record(_)
        | Kind::List(_)
        | Kind::Numbers(_)
        | Kind::Map(_) => false,
    }
}

fn holds(kind: &Kind, wanted: impl Fn(&Kind) -> bool + Copy) -> bool {
    match kind {
        Kind::Either(kinds) => kinds.iter().any(|kind| holds(kind, wanted)),
        kind => wanted(kind),
    }
}

/// As messages show a number.
fn shown(n: f64) -> String {
    if n != 0.0 && n.is_finite() && !(1e-6..1e17).contains(&n.abs()) {
        format!("{n:e}")
    } else {
        n.to_string()
    }
}

/// Values that an item must refuse.
fn wrong(item: &Item) -> Vec<(String, String)> {
    let kind = &item.kind;
    let mut all: Vec<(String, String)> = (GIVEN.iter())
        .filter(|(given, ..)| !takes(kind, *given))
        .map(|(_, text, shown)| ((*text).to_owned(), (*shown).to_owned()))
        .collect();
    let mut push = |text: &str, shown: &str| all.push((text.to_owned(), shown.to_owned()));
    if item.default.is_none() && *kind != Kind::Any && *kind != Kind::Data {
        push("nil", "nothing (nil)");
    }
    if holds(kind, |kind| matches!(kind, Kind::Number)) {
        push("0/0", "NaN");
        push("1/0", "inf");
        push("-1/0", "-inf");
        let numbers = match item.range {
            Range::Any => vec![],
            Range::AboveZero => vec![0.0, -1.0],
            Range::Within(low, high) => vec![low - 1.0, 1.25 * high + 1.0],
            Range::Whole(low, high) => vec![low - 1.0, low + 0.5, high + 1.0],
        };
        for n in numbers.into_iter().filter(|n| n.is_finite()) {
            push(&format!("{n:?}"), &shown(n));
        }
    }
    if holds(kind, |kind| matches!(kind, Kind::Vector)) {
        push("vector.create(0, 0/0, 1)", "vector(0, NaN, 1)");
        push("vector.create(1/0, 0, 0)", "vector(inf, 0, 0)");
    }
    if holds(kind, |kind| matches!(kind, Kind::Choice(_))) && !holds(kind, |k| *k == Kind::Text) {
        push("'no such name'", "'no such name'");
    }
    if *kind == Kind::Colour {
        push("'#12345'", "'#12345'");
        push("{ 1, 0/0, 1 }", "NaN");
        push("{ 1, 1 }", "a table");
        push("vector.create(0/0, 0, 0)", "NaN");
        push("vector.create(-1, 0, 0)", "-1");
    }
    if *kind == Kind::Rotation {
        push("{ yaw = 0/0 }", "NaN");
        push("{ yaw = '90' }", "'90'");
        push("{ 0, 0, 0, 0 }", "0");
        push("{ 0, 0, 1/0, 1 }", "inf");
        push("{ 1, 2 }", "a table");
        push("{ jaw = 1 }", "jaw");
    }
    all
}

/// Numbers at the edges of what numbers are.
const EDGES: [f64; 12] = [
    -0.0,
    5e-324,
    1e-40,
    1e39,
    -1e39,
    9_007_199_254_740_992.0,
    -9_007_199_254_740_994.0,
    9.3e18,
    -1e19,
    2e19,
    1.7e308,
    -1.7e308,
];

/// A value that is taken.
fn sample(item: &Item) -> String {
    if item.sample.is_empty() {
        sample_of(&item.kind, item.range)
    } else {
        item.sample.to_owned()
    }
}

fn sample_of(kind: &Kind, range: Range) -> String {
    match kind {
        Kind::Any | Kind::Data => "{ 1 }".to_owned(),
        Kind::Number => match range {
            Range::Any => "0.5".to_owned(),
            Range::AboveZero => "1".to_owned(),
            Range::Within(low, high) => format!("{:?}", low.max(0.5_f64.min(high))),
            Range::Whole(low, high) => format!("{:?}", low.max(1_f64.min(high))),
        },
        Kind::Text => "\"root\"".to_owned(),
        Kind::Boolean => "true".to_owned(),
        Kind::Vector => "vector.one".to_owned(),
        Kind::Buffer => "buffer.create(8)".to_owned(),
        Kind::Colour => "\"#ff8800\"".to_owned(),
        Kind::Rotation => "{ yaw = 10 }".to_owned(),
        Kind::Choice(names) => format!("\"{}\"", names[0]),
        Kind::False => "false".to_owned(),
        Kind::Class(name) => (*name).to_owned(),
        Kind::Record(name) => samples(name)[0].clone(),
        Kind::List(kind) => format!("{{ {} }}", sample_of(kind, range)),
        Kind::Numbers(count) => format!("{{ {} }}", vec!["1"; *count].join(", ")),
        Kind::Map(kind) => format!("{{ x = {} }}", sample_of(kind, range)),
        Kind::Function(..) => "function() return 1 end".to_owned(),
        Kind::Either(kinds) => sample_of(&kinds[0], range),
    }
}

fn record(name: &str) -> &'static Record {
    api::record_of(name).expect("a record of the table")
}

fn samples(name: &str) -> Vec<String> {
    let samples = record(name).samples;
    assert!(!samples.is_empty(), "{name} has no sample");
    samples.iter().map(|sample| (*sample).to_owned()).collect()
}

/// Puts a value where it belongs: an argument, a field of a table that is one.
type Hole<'h> = &'h dyn Fn(&str) -> Vec<String>;

/// Every case of one item and of what is in it. `owner` is the function that a message names.
fn cases_of(owner: &str, item: &'static Item, when: When, hole: Hole<'_>, all: &mut Vec<Case>) {
    let name = format!("{owner}, {}", item.name);
    let label = item.name.to_owned();
    for (value, shown) in wrong(item) {
        let mut parts = vec![owner.to_owned(), label.clone(), shown];
        if holds(&item.kind, |kind| {
            matches!(kind, Kind::Number | Kind::Vector)
        }) && !item.unit.is_empty()
        {
            parts.push(item.unit.to_owned());
        }
        all.push(Case {
            name: format!("{name} = {value}"),
            calls: hole(&value),
            parts,
            may_be_taken: false,
            when,
        });
    }
    if holds(&item.kind, |kind| matches!(kind, Kind::Number)) {
        for edge in EDGES {
            all.push(Case {
                name: format!("{name} = {edge:e}"),
                calls: hole(&format!("{edge:e}")),
                parts: vec![owner.to_owned(), label.clone()],
                may_be_taken: true,
                when,
            });
        }
    }
    inside(owner, &item.kind, when, hole, all);
}

/// Cases of what is in a value of this kind.
fn inside(owner: &str, kind: &'static Kind, when: When, hole: Hole<'_>, all: &mut Vec<Case>) {
    match kind {
        Kind::Either(kinds) => {
            for kind in *kinds {
                inside(owner, kind, when, hole, all);
            }
        }
        Kind::Record(name) => {
            let bases = samples(name);
            for field in record(name).fields {
                let filled = |value: &str| -> Vec<String> {
                    let with = bases
                        .iter()
                        .map(|base| format!("with({base}, \"{}\", {value})", field.name));
                    with.flat_map(|table| hole(&table)).collect()
                };
                cases_of(owner, field, when, &filled, all);
            }
            if let Some(items) = &record(name).items {
                let filled = |value: &str| -> Vec<String> {
                    bases
                        .iter()
                        .flat_map(|base| hole(&format!("with({base}, 1, {value})")))
                        .collect()
                };
                element(owner, items, when, &filled, all);
            }
            if !record(name).is_open {
                let slips = bases
                    .iter()
                    .flat_map(|base| hole(&format!("with({base}, \"colr\", 1)")));
                all.push(Case {
                    name: format!("{owner}, {name} with a stranger"),
                    calls: slips.collect(),
                    parts: vec![owner.to_owned(), "has no field colr".to_owned()],
                    may_be_taken: false,
                    when,
                });
            }
        }
        Kind::List(kind) => {
            let filled = |value: &str| hole(&format!("{{ {value} }}"));
            element(owner, kind, when, &filled, all);
        }
        Kind::Numbers(count) => {
            let filled = |value: &str| hole(&format!("{{ {}{value} }}", "1, ".repeat(count - 1)));
            element(owner, &Kind::Number, when, &filled, all);
        }
        Kind::Map(kind) if !matches!(kind, Kind::Either(_)) => {
            let filled = |value: &str| hole(&format!("{{ smile = {value} }}"));
            element(owner, kind, when, &filled, all);
        }
        _ => {}
    }
}

/// Cases of an entry of a list.
fn element(owner: &str, kind: &'static Kind, when: When, hole: Hole<'_>, all: &mut Vec<Case>) {
    for (given, value, shown) in GIVEN {
        // A row of numbers may be one number.
        let is_row = *kind == Kind::Vector && given == Given::Number;
        if !takes(kind, given) && !is_row {
            all.push(Case {
                name: format!("{owner}, an entry {value}"),
                calls: hole(value),
                parts: vec![owner.to_owned(), shown.to_owned()],
                may_be_taken: false,
                when,
            });
        }
    }
    inside(owner, kind, when, hole, all);
}

/// All cases of a function. `receiver` and what joins it to the name come before.
fn cases_of_function(name: &str, call: &str, function: &'static Function, all: &mut Vec<Case>) {
    let taken: Vec<String> = function.params.iter().map(sample).collect();
    // Where nothing can be made, with what was made before.
    let there = function.params.iter().map(|item| match item.kind {
        Kind::Class(name) => name.to_owned(),
        _ => sample(item),
    });
    let there: Vec<String> = there.collect();
    for (i, item) in function.params.iter().enumerate() {
        let hole = |value: &str| {
            let mut arguments = taken.clone();
            arguments[i] = value.to_owned();
            vec![format!("{call}({})", arguments.join(", "))]
        };
        cases_of(name, item, function.when, &hole, all);
    }
    if function.rest.is_none() {
        let mut arguments = taken.clone();
        arguments.push("1".to_owned());
        all.push(Case {
            name: format!("{name} with one argument more"),
            calls: vec![format!("{call}({})", arguments.join(", "))],
            parts: vec![format!("{name} takes "), format!("got {}", arguments.len())],
            may_be_taken: false,
            when: function.when,
        });
    }
    if function.when == When::Loading {
        all.push(Case {
            name: format!("{name} while playing"),
            calls: vec![format!("{call}({})", there.join(", "))],
            parts: vec![name.to_owned(), "load(stage) only".to_owned()],
            may_be_taken: false,
            when: When::Playing,
        });
    }
    // The samples themselves are taken: nothing above is refused for another reason.
    all.push(Case {
        name: format!("{name} with its samples"),
        calls: vec![format!("{call}({})", taken.join(", "))],
        parts: vec!["(it must be taken)".to_owned()],
        may_be_taken: true,
        when: function.when,
    });
}

/// What scripts of cases begin with: an object of each class, `fresh` for a handle that nobody has
/// changed, and `with`.
const OBJECTS: &str = r#"
local function fresh()
	local handle = stage.generate({ positions = { vector.zero }, scales = 0.1, colours = vector.one })
	return stage.rig(handle, {
		bones = { { name = "root", position = vector.zero } },
		shapes = { smile = function(position) return position end },
	})
end
local handle = fresh()
local bone = handle:bone("root")
local effect = stage.effect("@stage/effects/dissolve")
local spread = stage.spread(handle)
local made = 0
local function unique()
	made += 1
	return `n{made}`
end
local edit = handle:edit({ shape = "sphere", radius = 1 })
local builder = stage.builder(0, 3)
local texture = stage.texture(buffer.create(16), 2)
local probe = stage.probe(stage.splats("statue.ply"))
local clip = sound.clip("bell.wav")
local follower = sound.follow(clip)
local stranger = motion.spring({})
local spring = stranger
local spline = motion.spline({ vector.zero, vector.one })
local track = motion.track(10, 3, function(t) return t end)
local function with(base, key, value)
	local copy = table.clone(base)
	copy[key] = value
	return copy
end
local function sane(value)
	if type(value) == "number" then
		return value - value == 0
	elseif type(value) == "vector" then
		return sane(value.x) and sane(value.y) and sane(value.z)
	elseif type(value) == "table" then
		for _, item in value do
			if not sane(item) then
				return false
			end
		end
	end
	return true
end
local function outcome(...)
	local ok, why = ...
	if not ok then
		return why
	end
	for _, value in { select(2, ...) } do
		if not sane(value) then
			return "NOT FINITE"
		end
	end
	for _, value in { handle.position, handle.rotation, handle.scale, handle.tint, bone.rotation, bone.move,
		edit.rotation, edit.centre, edit.displace, edit.soft_edge, edit.opacity, edit.tint } do
		if not sane(value) then
			return "NOT FINITE INSIDE"
		end
	end
	return "TAKEN"
end
"#;

/// The outcomes of calls: messages, `TAKEN`, `NOT FINITE`.
fn outcomes(loading: &[String], playing: &[String]) -> (Vec<String>, Vec<String>) {
    let list = |calls: &[String]| -> String {
        let closures = calls
            .iter()
            .map(|call| format!("function() return {call} end,\n"));
        format!("{{\n{}}}", closures.collect::<String>())
    };
    let text = format!(
        "{OBJECTS}\nlocal said, later = {{}}, {{}}\nfor i, call in {} do said[i] = outcome(pcall(call)) end\n\
         local playing = {}\nreturn {{ event = function() for i, call in playing do later[i] = \
         outcome(pcall(call)) end end, on_unload = function() return {{ said = said, later = later }} end }}",
        list(loading),
        list(playing)
    );
    let mut script = load(&text);
    script.event(&click()).expect("the calls run");
    let found = script.unload().expect("unloads").expect("data");
    let texts = |name: &str| -> Vec<String> {
        let list = found[name].as_array().expect("a list");
        list.iter()
            .map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    };
    (texts("said"), texts("later"))
}

fn judge(case: &Case, outcome: &str) -> Result<(), String> {
    let is_named = case
        .parts
        .iter()
        .all(|part| outcome.contains(part.as_str()));
    let is_fine = match outcome {
        "TAKEN" => case.may_be_taken,
        "NOT FINITE" | "NOT FINITE INSIDE" => false,
        _ => is_named,
    };
    if is_fine {
        return Ok(());
    }
    Err(format!(
        "{}\n    got  {outcome}\n    want {:?}",
        case.name, case.parts
    ))
}

/// Every case of one time, judged; of a case's calls one must do.
fn failures(cases: &[&Case], outcomes: &[String]) -> Vec<String> {
    let mut outcomes = outcomes.iter();
    let mut failed = Vec::new();
    for case in cases {
        let own: Vec<&String> = outcomes.by_ref().take(case.calls.len()).collect();
        assert_eq!(own.len(), case.calls.len(), "{}", case.name);
        let judged: Vec<_> = own.iter().map(|outcome| judge(case, outcome)).collect();
        let is_sane = own.iter().all(|outcome| !outcome.starts_with("NOT FINITE"));
        if !is_sane || judged.iter().all(Result::is_err) {
            failed.extend(judged.into_iter().filter_map(Result::err).next());
        }
    }
    failed
}

#[track_caller]
fn check(cases: &[Case]) {
    let (playing, loading): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.when == When::Playing);
    let calls = |cases: &[&Case]| -> Vec<String> {
        cases
            .iter()
            .flat_map(|case| case.calls.iter().cloned())
            .collect()
    };
    let (said, later) = outcomes(&calls(&loading), &calls(&playing));
    let mut failed = failures(&loading, &said);
    failed.extend(failures(&playing, &later));
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

#[test]
fn every_argument_of_a_function_is_checked() {
    let mut all = Vec::new();
    for space in NAMESPACES {
        for function in space.functions {
            let name = whole_name(space.name, function.name);
            cases_of_function(&name, &name, function, &mut all);
        }
    }
    assert!(all.len() > 800, "{}", all.len());
    check(&all);
}

#[test]
fn every_argument_of_a_method_is_checked() {
    let mut all = Vec::new();
    for class in CLASSES {
        for method in class.methods {
            // What a handle gets while loading, another call would find there.
            let is_kept = method.when == When::Loading;
            let receiver = if is_kept { "fresh()" } else { class.name };
            let name = format!("{}:{}", class.name, method.name);
            cases_of_function(
                &name,
                &format!("{receiver}:{}", method.name),
                method,
                &mut all,
            );
            if is_kept {
                // `fresh` makes things, which is refused by itself: the handle that is there will do.
                let last = all
                    .iter_mut()
                    .rfind(|case| case.when == When::Playing)
                    .expect("the one before");
                last.calls = vec![last.calls[0].replacen("fresh()", "handle", 1)];
            }
        }
    }
    assert!(all.len() > 500, "{}", all.len());
    check(&all);
}

fn setter(class: &Class, field: &str, value: &str) -> String {
    format!("(function() {}.{field} = {value} end)()", class.name)
}

#[test]
fn every_field_that_is_set_is_checked() {
    let mut all = Vec::new();
    for class in CLASSES {
        for field in class.fields {
            let case = |value: &str, parts: Vec<String>| Case {
                name: format!("{}.{} = {value}", class.name, field.name),
                calls: vec![setter(class, field.name, value)],
                parts,
                may_be_taken: false,
                when: When::Always,
            };
            if field.is_writable {
                let hole = |value: &str| vec![setter(class, field.name, value)];
                cases_of("", field, When::Always, &hole, &mut all);
            } else {
                let parts = vec![field.name.to_owned(), "cannot be set".to_owned()];
                all.push(case("1", parts));
            }
        }
        let parts = vec![class.type_name.to_owned(), "has no field 'nmae'".to_owned()];
        for call in [setter(class, "nmae", "1"), format!("{}.nmae", class.name)] {
            all.push(Case {
                name: call.clone(),
                calls: vec![call],
                parts: parts.clone(),
                may_be_taken: false,
                when: When::Always,
            });
        }
    }
    assert!(all.len() > 150, "{}", all.len());
    check(&all);
}

/// What callbacks return, asked for by the host.
#[test]
fn every_field_that_a_callback_returns_is_checked() {
    let mut failed = Vec::new();
    for callback in CALLBACKS {
        let Some(returned) = callback.returns.first() else {
            continue;
        };
        if returned.kind == Kind::Data {
            continue;
        }
        let mut cases = Vec::new();
        inside(
            callback.name,
            &returned.kind,
            When::Always,
            &|value| vec![value.to_owned()],
            &mut cases,
        );
        if callback.name == "beds" {
            // They are asked for once, while loading, and read as voices are: some will do.
            let mut number = 0;
            cases.retain(|_| {
                number += 1;
                number % 40 == 1
            });
        }
        assert!(cases.len() > 2, "{}: {}", callback.name, cases.len());
        let calls: Vec<&String> = cases.iter().flat_map(|case| &case.calls).collect();
        let closures: String = calls
            .iter()
            .map(|call| format!("function() return {call} end,\n"))
            .collect();
        let text = |body: &str| {
            format!(
                "{OBJECTS}\nlocal calls = {{\n{closures}}}\nreturn {{ {} = function({body} end }}",
                callback.name
            )
        };
        // Beds are asked for once, while loading.
        let mut script = (callback.name != "beds").then(|| load(&text("t) return calls[t]()")));
        let said: Vec<String> = (1..=calls.len())
            .map(|i| {
                let t_s = i as f64;
                let error = match (&mut script, callback.name) {
                    (None, _) => {
                        let files = scene(&text(&format!(") return calls[{i}]()")));
                        Script::load(setup(files)).err().map(|failed| failed.error)
                    }
                    (Some(script), "frame") => match script.frame(t_s) {
                        Ok(frame)
                            if format!("{:?} {:?}", frame.camera, frame.film).contains("NaN") =>
                        {
                            return "NOT FINITE".to_owned();
                        }
                        answer => answer.err(),
                    },
                    (Some(script), "cues") => script.cues(t_s, t_s + 0.5).err(),
                    (Some(script), "voices") => script.voices(t_s, t_s + 0.5).err(),
                    (Some(script), _) => script.ears(t_s).err(),
                };
                match error {
                    // It was read, and is not of the time that was asked for.
                    Some(error) if error.message.contains("up to but without") => {
                        "TAKEN".to_owned()
                    }
                    Some(error) => error.message,
                    None => "TAKEN".to_owned(),
                }
            })
            .collect();
        let cases: Vec<&Case> = cases.iter().collect();
        failed.extend(failures(&cases, &said));
    }
    assert!(
        failed.is_empty(),
        "{}:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// The scene's own fields.
#[test]
fn every_field_of_a_scene_is_checked() {
    let mut failed = Vec::new();
    for field in SCENE.fields {
        for (value, shown) in wrong(field) {
            let files = scene(&format!("{OBJECTS}\nreturn {{ {} = {value} }}", field.name));
            let message = match Script::load(setup(files)) {
                Ok(_) => "TAKEN".to_owned(),
                Err(error) => error.error.message,
            };
            let parts = [field.name, &shown, field.unit];
            // A function is a callback that the host never calls.
            let is_function = shown == "a function" && message.contains(field.name);
            if !parts.iter().all(|part| message.contains(part)) && !is_function {
                failed.push(format!("{} = {value}: {message}", field.name));
            }
        }
    }
    for callback in CALLBACKS {
        let files = scene(&format!("return {{ {} = 1 }}", callback.name));
        let message = Script::load(setup(files))
            .err()
            .map(|error| error.error.message)
            .unwrap_or_default();
        if !message.contains(callback.name) || !message.contains("got 1") {
            failed.push(format!("{} = 1: {message}", callback.name));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A message is blamed on the line that calls, in words that a person can act on.
#[test]
fn a_refused_argument_is_blamed_on_its_line() {
    let files = scene("local x = 1\nlocal y = motion.ease(\"in_sine\", 0/0)\nreturn {}");
    let error = Script::load(setup(files)).err().expect("refused").error;
    assert_eq!(
        (error.line, error.file.as_str()),
        (2, "scenes/api/scene.luau")
    );
    assert_eq!(
        error.message,
        "motion.ease: u must be a number (0 to 1), got NaN"
    );
    let files = scene("return { load = function(stage)\nstage.framing(nil, 2, 3)\nend }");
    let error = Script::load(setup(files)).err().expect("refused").error;
    assert_eq!(
        (error.line, error.message.as_str()),
        (2, "stage.framing takes 1 argument, got 3")
    );
}
