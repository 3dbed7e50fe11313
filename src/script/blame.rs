//! From a Lua stack or message to the author's file and line.
//!
//! Chunks are named `@<scene>/<path>` (the author's files) or `@@stage/<path>` (the embedded
//! library); host code in Lua is `=host`. An error is blamed on the innermost author's line, and on
//! the library only where no author's line is on the stack.

use mlua::{Lua, Value};
use std::fmt::Write;

/// Levels of the stack that are looked at; an endless recursion has 20,000.
const LEVELS_MAX: usize = 24;
/// Chunk name prefix of the embedded library.
pub(super) const LIBRARY: &str = "@stage/";
/// Longest message that is passed on, bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Chunk name without the leading `@`.
    pub file: String,
    pub line: u32,
}

/// One Lua function on the stack.
struct Level {
    place: Place,
    function: String,
}

fn level(lua: &Lua, index: usize) -> Option<Option<Level>> {
    lua.inspect_stack(index, |debug| {
        let source = debug.source();
        let file = source.source.as_deref()?.strip_prefix('@')?.to_owned();
        let line = u32::try_from(debug.current_line()?).ok()?;
        // Neither a file's body nor an unnamed function has a name, and Luau does not tell them apart.
        let function = debug
            .names()
            .name
            .map_or_else(String::new, |name| format!(" in function {name}"));
        Some(Level {
            place: Place { file, line },
            function,
        })
    })
}

fn levels(lua: &Lua) -> impl Iterator<Item = Level> + '_ {
    (0..LEVELS_MAX).map_while(|i| level(lua, i)).flatten()
}

/// The author's line that is running.
pub(super) fn place(lua: &Lua) -> Option<Place> {
    let mut fallback = None;
    for level in levels(lua) {
        if !level.place.file.starts_with(LIBRARY) {
            return Some(level.place);
        }
        fallback.get_or_insert(level.place);
    }
    fallback
}

/// Who called whom, innermost first.
pub(super) fn traceback(lua: &Lua) -> String {
    let mut text = String::new();
    for Level {
        place: Place { file, line },
        function,
        ..
    } in levels(lua)
    {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{file}:{line}{function}");
    }
    if lua.inspect_stack(LEVELS_MAX, |_| ()).is_some() {
        text.push_str("...\n");
    }
    text
}

/// Splits `file:line: message` when `file` is one of `files` (as Luau shortens it). An error that was
/// thrown on, by `error` or a coroutine, has several places before it: the last is where it began.
pub(super) fn split_place<'m>(message: &'m str, files: &[String]) -> Option<(Place, &'m str)> {
    let mut found = None;
    let mut rest = message;
    while let Some((place, text)) = files.iter().find_map(|file| split_one(rest, file)) {
        rest = text;
        found = Some((place, text));
    }
    found
}

fn split_one<'m>(message: &'m str, file: &str) -> Option<(Place, &'m str)> {
    let rest = message.strip_prefix(file).or_else(|| {
        // Luau keeps the end of a long chunk name, after "...".
        let (shown, _) = message.strip_prefix("...")?.split_once(':')?;
        let is_end = !shown.is_empty() && file.ends_with(shown);
        is_end.then(|| message.get(3 + shown.len()..)).flatten()
    })?;
    let (digits, text) = rest.strip_prefix(':')?.split_once(':')?;
    let place = Place {
        file: file.to_owned(),
        line: digits.parse().ok()?,
    };
    Some((place, text.trim_start()))
}

/// What an error value says, without mlua's wrapping.
pub(super) fn text_of(value: &Value) -> String {
    let text = match value {
        Value::Error(error) => text_of_error(error),
        Value::String(text) => {
            super::args::beginning(&text.as_bytes(), MESSAGE_BYTES_MAX + 1).into_owned()
        }
        Value::Nil => "error(nil)".to_owned(),
        Value::Number(n) => n.to_string(),
        Value::Integer(n) => n.to_string(),
        Value::Boolean(b) => b.to_string(),
        Value::Table(t) => match t.raw_get::<Value>("message") {
            Ok(Value::String(text)) => text.to_string_lossy(),
            _ => "error with a table as its value".to_owned(),
        },
        other => format!("error with a {} as its value", other.type_name()),
    };
    shorten(text)
}

/// The innermost cause's own words.
pub(super) fn text_of_error(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => text_of_error(cause),
        mlua::Error::WithContext { context, cause } => {
            format!("{context}: {}", text_of_error(cause))
        }
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => {
            text.clone()
        }
        mlua::Error::MemoryError(_) => super::budget::out_of_memory(),
        other => other.to_string(),
    }
}

/// Whether an error value is Luau's or mlua's out of memory.
pub(super) fn is_memory_error(value: &Value) -> bool {
    fn of_error(error: &mlua::Error) -> bool {
        match error {
            mlua::Error::MemoryError(_) => true,
            mlua::Error::RuntimeError(text) => text == "not enough memory",
            mlua::Error::CallbackError { cause, .. } => of_error(cause),
            _ => false,
        }
    }
    match value {
        Value::Error(error) => of_error(error),
        Value::String(text) => text.as_bytes() == b"not enough memory",
        _ => false,
    }
}

fn shorten(mut text: String) -> String {
    if text.len() > MESSAGE_BYTES_MAX {
        let cut = text.floor_char_boundary(MESSAGE_BYTES_MAX);
        text.truncate(cut);
        text.push_str("...");
    }
    text
}

/// The place that an error with `message` belongs to, and the message without it. `files` are the
/// chunks that have been loaded.
pub(super) fn locate(lua: &Lua, message: &str, files: &[String]) -> (Option<Place>, String) {
    let on_stack = place(lua);
    match split_place(message, files) {
        Some((found, text)) if found.file.starts_with(LIBRARY) => {
            (on_stack.or(Some(found)), text.to_owned())
        }
        Some((found, text)) => (Some(found), text.to_owned()),
        None => (on_stack, message.to_owned()),
    }
}

/// The innermost line, the library's included.
pub(super) fn innermost(lua: &Lua) -> Option<Place> {
    levels(lua).next().map(|level| level.place)
}

/// The innermost chunk, the library included.
pub(super) fn innermost_chunk(lua: &Lua) -> Option<String> {
    innermost(lua).map(|place| place.file)
}

/// Whether code of `chunk` is on the stack, at any depth.
pub(super) fn is_running(lua: &Lua, chunk: &str) -> bool {
    (0..)
        .map_while(|i| {
            lua.inspect_stack(i, |debug| {
                let source = debug.source().source;
                source.as_deref().and_then(|s| s.strip_prefix('@')) == Some(chunk)
            })
        })
        .any(|found| found)
}
