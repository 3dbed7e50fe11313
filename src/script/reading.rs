//! What a script's text says, without running it: names, texts and numbers with their lines.
//!
//! Enough of Luau's grammar for a check of what a run does not reach: a name that nothing declares, a
//! file that is named and not there, a function that is on its way out. It knows no scopes, so a name
//! that is declared anywhere in a file counts as known in all of it: it may miss a mistake and does not
//! make one up. Source: the grammar on luau.org.

use super::ParamValue;
use std::collections::BTreeSet;

/// Luau's words that are no names.
const KEYWORDS: [&str; 23] = [
    "and", "break", "continue", "do", "else", "elseif", "end", "export", "false", "for",
    "function", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then", "true",
    "until", "while",
];
/// Types that every script knows, and what else stands where names do.
const TYPES: [&str; 13] = [
    "any", "boolean", "buffer", "never", "nil", "number", "self", "string", "thread", "type",
    "typeof", "unknown", "vector",
];

/// Functions that still work and have a better way, with what to write instead.
const DEPRECATED: [(&str, &str); 4] = [
    ("table.foreach", "write 'for key, value in t do'"),
    ("table.foreachi", "write 'for i, value in t do'"),
    ("table.getn", "write '#t'"),
    ("unpack", "write 'table.unpack'"),
];

/// One word of a script.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(f64),
    Symbol(char),
}

/// The words of one script.
pub struct Reading {
    /// Each with its line, from 1.
    tokens: Vec<(Token, u32)>,
}

/// A call with a text as its first argument, such as `stage.splats("flat.sog")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextCall {
    /// `stage.splats`, `:bone` (of whatever stands before it), `require`.
    pub function: String,
    /// The text.
    pub text: String,
    /// Line of the text, from 1.
    pub line: u32,
}

impl Reading {
    /// Reads a script. Text that is not Luau gives words all the same; running it says what is wrong.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Reader::new(text).read()
    }

    fn symbol(&self, at: usize, wanted: char) -> bool {
        matches!(self.tokens.get(at), Some((Token::Symbol(c), _)) if *c == wanted)
    }

    fn name(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some((Token::Name(name), _)) => Some(name),
            _ => None,
        }
    }

    fn text(&self, at: usize) -> Option<(&str, u32)> {
        match self.tokens.get(at) {
            Some((Token::Text(text), line)) => Some((text, *line)),
            _ => None,
        }
    }

    /// Whether the word at `at` is the key of a table's entry: `name =`, `["name"] =`.
    fn is_key(&self, at: usize) -> bool {
        let equals = |at: usize| self.symbol(at, '=') && !self.symbol(at + 1, '=');
        match self.tokens.get(at) {
            Some((Token::Name(_), _)) => equals(at + 1),
            Some((Token::Text(_), _)) => {
                at > 0 && self.symbol(at - 1, '[') && self.symbol(at + 1, ']') && equals(at + 2)
            }
            _ => false,
        }
    }

    /// Whether the name at `at` only says what something in a type is called: `(dt: number) -> ()`.
    fn is_typed_field(&self, at: usize) -> bool {
        let is_method = self.name(at + 2).is_some()
            && (self.symbol(at + 3, '(')
                || self.symbol(at + 3, '{')
                || self.text(at + 3).is_some());
        self.symbol(at + 1, ':') && !is_method
    }

    /// Every call whose first argument is a text.
    #[must_use]
    pub fn text_calls(&self) -> Vec<TextCall> {
        let mut calls = Vec::new();
        for at in 0..self.tokens.len() {
            let Some(name) = self.name(at) else { continue };
            let is_bracketed = self.symbol(at + 1, '(');
            let argument = at + 1 + usize::from(is_bracketed);
            let Some((text, line)) = self.text(argument) else {
                continue;
            };
            // A text that something is joined to is only a part of what is meant.
            let ends = self.symbol(argument + 1, ')') || self.symbol(argument + 1, ',');
            if is_bracketed && !ends {
                continue;
            }
            let is_after = |c| at > 0 && self.symbol(at - 1, c);
            let function = if is_after('.') {
                let owner = at.checked_sub(2).and_then(|before| self.name(before));
                format!("{}.{name}", owner.unwrap_or_default())
            } else if is_after(':') {
                format!(":{name}")
            } else {
                name.to_owned()
            };
            calls.push(TextCall {
                function,
                text: text.to_owned(),
                line,
            });
        }
        calls
    }

    /// The line on which a table gets the entry `name`.
    #[must_use]
    pub fn line_of_key(&self, name: &str) -> Option<u32> {
        let is_it =
            |at: usize| self.name(at) == Some(name) || self.text(at).is_some_and(|t| t.0 == name);
        let at = (0..self.tokens.len()).find(|at| is_it(*at) && self.is_key(*at))?;
        Some(self.tokens[at].1)
    }

    /// The first line with this word, as a name or a text.
    #[must_use]
    pub fn line_of_word(&self, word: &str) -> Option<u32> {
        let found = self.tokens.iter().find(|(token, _)| match token {
            Token::Name(name) => name == word,
            Token::Text(text) => text == word,
            _ => false,
        });
        found.map(|(_, line)| *line)
    }

    /// The first line with this number.
    #[must_use]
    pub fn line_of_number(&self, wanted: f64) -> Option<u32> {
        let is_it = |token: &Token| matches!(token, Token::Number(n) if *n == wanted);
        let found = self.tokens.iter().find(|(token, _)| is_it(token));
        found.map(|(_, line)| *line)
    }

    /// The first line with a text that has `part` in it.
    #[must_use]
    pub fn line_of_text_with(&self, part: &str) -> Option<u32> {
        let is_it = |token: &Token| matches!(token, Token::Text(text) if text.contains(part));
        let found = self.tokens.iter().find(|(token, _)| is_it(token));
        found.map(|(_, line)| *line)
    }

    /// Whether the script says `owner.name`.
    #[must_use]
    pub fn says_member(&self, owner: &str, name: &str) -> bool {
        (0..self.tokens.len()).any(|at| {
            self.name(at) == Some(owner)
                && self.symbol(at + 1, '.')
                && self.name(at + 2) == Some(name)
        })
    }

    /// Whether the script says this text anywhere but as the key of an entry.
    #[must_use]
    pub fn says(&self, text: &str) -> bool {
        (0..self.tokens.len())
            .any(|at| self.text(at).is_some_and(|t| t.0 == text) && !self.is_key(at))
    }

    /// All words, but for the values of `param("name", VALUE`.
    fn without_value(&self, name: &str) -> Vec<&Token> {
        let mut words = Vec::with_capacity(self.tokens.len());
        let mut at = 0;
        while let Some((token, _)) = self.tokens.get(at) {
            words.push(token);
            at += 1;
            let is_call = self.name(at - 1) == Some("param")
                && self.symbol(at, '(')
                && self.text(at + 1).is_some_and(|text| text.0 == name)
                && self.symbol(at + 2, ',');
            if is_call {
                words.extend(self.tokens[at..at + 3].iter().map(|(token, _)| token));
                at += 3;
                while self.symbol(at, '-') {
                    at += 1;
                }
                at += 1;
            }
        }
        words
    }

    /// Calls on their way out: the line, the function, what to write instead.
    #[must_use]
    pub fn deprecated(&self) -> Vec<(u32, &'static str, &'static str)> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            let Some(name) = self.name(at) else { continue };
            let is_member = at > 0 && (self.symbol(at - 1, '.') || self.symbol(at - 1, ':'));
            let whole = match (
                is_member,
                at.checked_sub(2).and_then(|before| self.name(before)),
            ) {
                (true, Some(owner)) => format!("{owner}.{name}"),
                (true, None) => continue,
                (false, _) => name.to_owned(),
            };
            let is_called = self.symbol(at + 1, '(');
            let known = DEPRECATED
                .iter()
                .find(|(old, _)| is_called && *old == whole);
            found.extend(known.map(|(old, instead)| (self.tokens[at].1, *old, *instead)));
        }
        found
    }

    /// Names that are read and that neither the script nor `globals` declare, with their lines; each
    /// once.
    #[must_use]
    pub fn undeclared(&self, globals: &BTreeSet<String>) -> Vec<(u32, String)> {
        let declared = self.declared();
        let mut found: Vec<(u32, String)> = Vec::new();
        for (at, (token, line)) in self.tokens.iter().enumerate() {
            let Token::Name(name) = token else { continue };
            let is_part = at > 0 && (self.symbol(at - 1, '.') || self.symbol(at - 1, ':'));
            let is_known = declared.contains(name.as_str())
                || globals.contains(name)
                || KEYWORDS.contains(&name.as_str())
                || TYPES.contains(&name.as_str());
            let is_other = self.is_key(at) || self.is_typed_field(at);
            if !is_part && !is_known && !is_other && !found.iter().any(|(_, n)| n == name) {
                found.push((*line, name.clone()));
            }
        }
        found
    }

    /// Names that some part of the script declares.
    fn declared(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for at in 0..self.tokens.len() {
            match self.name(at) {
                Some("local") if self.name(at + 1) == Some("function") => {
                    names.extend(self.name(at + 2));
                }
                Some("local" | "for") => self.declared_in_list(at + 1, &mut names),
                Some("function") => self.declared_by_function(at + 1, &mut names),
                Some("type") => {
                    names.extend(self.name(at + 1));
                    self.declared_by_generics(at + 2, &mut names);
                }
                _ => {}
            }
        }
        names
    }

    /// `a, b: T, c`, up to where something else begins.
    fn declared_in_list<'s>(&'s self, mut at: usize, names: &mut BTreeSet<&'s str>) {
        while let Some(name) = self.name(at) {
            names.insert(name);
            at += 1;
            if self.symbol(at, ':') {
                at = self.after_type(at + 1);
            }
            if !self.symbol(at, ',') {
                return;
            }
            at += 1;
        }
    }

    /// `name<T>(a, b: T, ...)`.
    fn declared_by_function<'s>(&'s self, mut at: usize, names: &mut BTreeSet<&'s str>) {
        while self.name(at).is_some() || self.symbol(at, '.') || self.symbol(at, ':') {
            at += 1;
        }
        at = self.declared_by_generics(at, names);
        if self.symbol(at, '(') {
            self.declared_in_list(at + 1, names);
        }
    }

    fn declared_by_generics<'s>(&'s self, mut at: usize, names: &mut BTreeSet<&'s str>) -> usize {
        if !self.symbol(at, '<') {
            return at;
        }
        while at < self.tokens.len() && !self.symbol(at, '>') {
            names.extend(self.name(at));
            at += 1;
        }
        at + 1
    }

    /// Behind a type that begins at `at`: at the next comma, bracket or `=` that is not part of it.
    fn after_type(&self, mut at: usize) -> usize {
        let mut depth = 0_u32;
        while let Some((token, _)) = self.tokens.get(at) {
            match token {
                Token::Symbol('(' | '{' | '[' | '<') => depth += 1,
                Token::Symbol(')' | '}' | ']') if depth == 0 => return at,
                // The arrow of a function's type is no bracket.
                Token::Symbol('>') if self.symbol(at.wrapping_sub(1), '-') => {}
                Token::Symbol(')' | '}' | ']' | '>') => depth = depth.saturating_sub(1),
                Token::Symbol(',' | '=') if depth == 0 => return at,
                Token::Name(name)
                    if depth == 0 && name != "nil" && KEYWORDS.contains(&name.as_str()) =>
                {
                    return at;
                }
                _ => {}
            }
            at += 1;
        }
        at
    }
}

/// `text` with the value of `param("name", VALUE, ...)` written as `value`: of the calls with that name the one
/// nearest to `line` whose value stands there as a number, a text, true or false. Nothing else changes, comments
/// and blanks included.
///
/// # Errors
/// There is no such call: a sentence.
pub fn rewrite_param(
    text: &str,
    name: &str,
    line: u32,
    value: &ParamValue,
) -> Result<String, String> {
    let written = match value {
        ParamValue::Flag(flag) => flag.to_string(),
        ParamValue::Number(number) => short(*number),
        ParamValue::Text(text) => format!("{text:?}"),
    };
    let before = Reading::of(text);
    let mut best: Option<(u32, String)> = None;
    for (at, _) in text.match_indices("param") {
        let Some(literal) = literal_of_call(text, at + "param".len(), name) else {
            continue;
        };
        let line_here = 1 + text[..literal.start].matches('\n').count() as u32;
        let after = format!(
            "{}{written}{}",
            &text[..literal.start],
            &text[literal.end..]
        );
        // What stands in a comment or in a text reads the same, or differs in another place.
        let reading = Reading::of(&after);
        let (old, new) = (before.without_value(name), reading.without_value(name));
        let is_call = old == new && reading.tokens != before.tokens || after == text;
        let distance = line_here.abs_diff(line);
        if is_call && best.as_ref().is_none_or(|(least, _)| distance < *least) {
            best = Some((distance, after));
        }
    }
    best.map(|(_, text)| text).ok_or_else(|| {
        format!(
            "no call param(\"{name}\", VALUE, ...) stands there with a number, a text, true or false as its value"
        )
    })
}

/// Where the value of a call stands whose arguments begin behind byte `at`, if its name is `name`.
fn literal_of_call(text: &str, at: usize, name: &str) -> Option<std::ops::Range<usize>> {
    let rest = text[at..].trim_start().strip_prefix('(')?.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let rest = rest[1..].strip_prefix(name)?.strip_prefix(quote)?;
    let rest = rest.trim_start().strip_prefix(',')?.trim_start();
    let start = text.len() - rest.len();
    let length = match rest.chars().next()? {
        quote @ ('"' | '\'') => {
            let mut is_escaped = false;
            let end = rest[1..].char_indices().find(|(_, c)| {
                let ends = *c == quote && !is_escaped;
                is_escaped = *c == '\\' && !is_escaped;
                ends || *c == '\n'
            });
            end.filter(|(_, c)| *c == quote)?.0 + 2
        }
        _ => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
            let digits = rest.trim_start_matches(['-', ' ']);
            let sign = rest.len() - digits.len();
            let bytes = digits.as_bytes();
            let mut end = digits.find(|c| !is_part(c)).unwrap_or(digits.len());
            // The sign of an exponent.
            let is_exponent = end > 1
                && matches!(bytes[end - 1], b'e' | b'E')
                && bytes[0].is_ascii_digit()
                && !digits.starts_with("0x");
            if is_exponent && matches!(bytes.get(end), Some(b'+' | b'-')) {
                end += 1 + digits[end + 1..]
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(digits.len() - end - 1);
            }
            let word = &digits[..end];
            let is_number = word.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            (is_number || sign == 0 && matches!(word, "true" | "false")).then_some(sign + end)?
        }
    };
    // A value that is only the beginning of an expression is not one.
    let ends = rest[length..].trim_start().starts_with([',', ')']);
    ends.then_some(start..start + length)
}

/// A number in as few digits as say it to a millionth: what a slider gives has many.
fn short(number: f64) -> String {
    let tolerance = 1e-6 * number.abs().max(1e-3);
    (0..=12)
        .map(|digits| format!("{number:.digits$}"))
        .find(|text| (text.parse::<f64>()).is_ok_and(|parsed| (parsed - number).abs() <= tolerance))
        .unwrap_or_else(|| number.to_string())
}

/// Cuts a text into words.
struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    line: u32,
    tokens: Vec<(Token, u32)>,
    /// Open braces, innermost last: true for one inside an interpolated text.
    braces: Vec<bool>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            rest: text.chars().peekable(),
            line: 1,
            tokens: Vec::new(),
            braces: Vec::new(),
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next();
        self.line += u32::from(c == Some('\n'));
        c
    }

    fn push(&mut self, token: Token, line: u32) {
        self.tokens.push((token, line));
    }

    fn read(mut self) -> Reading {
        while let Some(c) = self.next() {
            let line = self.line;
            match c {
                '-' if self.rest.peek() == Some(&'-') => self.skip_comment(),
                '"' | '\'' => {
                    let text = self.quoted(c);
                    self.push(Token::Text(text), line);
                }
                '[' if matches!(self.rest.peek(), Some('[' | '=')) => match self.long_text() {
                    Some(text) => self.push(Token::Text(text), line),
                    None => self.push(Token::Symbol('['), line),
                },
                '`' => self.interpolated(),
                '{' => {
                    self.braces.push(false);
                    self.push(Token::Symbol('{'), line);
                }
                '}' => {
                    if self.braces.pop() == Some(true) {
                        self.push(Token::Symbol(')'), line);
                        self.interpolated();
                    } else {
                        self.push(Token::Symbol('}'), line);
                    }
                }
                c if c.is_ascii_digit() => self.number(c, line),
                c if c == '_' || c.is_alphabetic() => {
                    let mut name = String::from(c);
                    while let Some(c) = self.rest.next_if(|c| *c == '_' || c.is_alphanumeric()) {
                        name.push(c);
                    }
                    self.push(Token::Name(name), line);
                }
                c if c.is_whitespace() => {}
                c => self.push(Token::Symbol(c), line),
            }
        }
        Reading {
            tokens: self.tokens,
        }
    }

    fn number(&mut self, first: char, line: u32) {
        let mut digits = String::from(first);
        let mut rest = self.rest.clone();
        while let Some(c) = rest.next() {
            let is_sign =
                matches!(c, '+' | '-') && digits.ends_with(['e', 'E']) && !digits.starts_with("0x");
            // Two points are a concatenation.
            let is_point = c == '.' && rest.peek() != Some(&'.');
            if !(c.is_ascii_alphanumeric() || c == '_' || is_point || is_sign) {
                break;
            }
            digits.push(c);
            self.next();
        }
        let digits = digits.replace('_', "");
        let value = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as f64),
            None => digits.parse().ok(),
        };
        self.push(Token::Number(value.unwrap_or(f64::NAN)), line);
    }

    /// From the second dash on.
    fn skip_comment(&mut self) {
        self.next();
        if self.rest.next_if_eq(&'[').is_some() && self.long_text().is_some() {
            return;
        }
        while self.rest.next_if(|c| *c != '\n').is_some() {}
    }

    /// `[=[...]=]` from behind the first bracket; `None`, with nothing taken, where it is none.
    fn long_text(&mut self) -> Option<String> {
        let mut ahead = self.rest.clone();
        let mut level = 0;
        while ahead.next_if_eq(&'=').is_some() {
            level += 1;
        }
        ahead.next_if_eq(&'[')?;
        for _ in 0..=level {
            self.next();
        }
        let end = format!("]{}]", "=".repeat(level));
        let mut text = String::new();
        while let Some(c) = self.next() {
            text.push(c);
            if text.ends_with(&end) {
                text.truncate(text.len() - end.len());
                break;
            }
        }
        Some(text)
    }

    fn quoted(&mut self, quote: char) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\\' => text.extend(self.next()),
                c if c == quote || c == '\n' => break,
                c => text.push(c),
            }
        }
        text
    }

    /// A piece of an interpolated text, up to its end or to a brace, behind which words follow.
    fn interpolated(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => {
                    self.next();
                }
                '`' => return,
                '{' => {
                    self.braces.push(true);
                    let line = self.line;
                    self.push(Token::Symbol('('), line);
                    return;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r##"--!strict
-- a comment with stage.splats("no.ply")
local shapes = require("@stage/shapes") --[[ long
comment ]]
type Place = { x: number }
local function add<T>(a: number, f: (T) -> string?, ...): Place
	local text: string, at = `{a + 1} of {shapes["one"]} \{none}`, 0x10
	for i, v in f do
		at += i + v
	end
	return { glow = at, ["dim"] = missing, other = text }
end
hero:bone("neck")
hero:bone("ear" .. add)
stage.splats "flat.sog"
table.getn(add)
return add ~= nil and 12.5e1 == 125 .. [==[long "text"]==]
"##;

    #[test]
    fn calls_names_and_numbers_have_their_lines() {
        let reading = Reading::of(SCRIPT);
        let calls: Vec<(String, String, u32)> = reading
            .text_calls()
            .into_iter()
            .map(|call| (call.function, call.text, call.line))
            .collect();
        let call = |f: &str, t: &str, line| (f.to_owned(), t.to_owned(), line);
        assert_eq!(
            calls,
            [
                call("require", "@stage/shapes", 3),
                call(":bone", "neck", 13),
                call("stage.splats", "flat.sog", 15),
            ]
        );
        assert_eq!(reading.line_of_key("dim"), Some(11));
        assert_eq!(reading.line_of_key("glow"), Some(11));
        assert_eq!(reading.line_of_key("neck"), None);
        assert_eq!(reading.line_of_number(125.0), Some(17));
        assert!(reading.says("one") && !reading.says("dim"));
        assert!(reading.says("long \"text\""));
    }

    #[test]
    fn only_the_value_of_a_parameter_is_rewritten() {
        let text = "-- param(\"pace\", 1)\nlocal s = 'param(\"pace\", 1)'\nlocal a = param( \"pace\" , -1.5e-3, {\n\tmax = 2 })\nlocal b = param('pace', 1.3) -- 1.3\n";
        let number = ParamValue::Number(0.7);
        let first = rewrite_param(text, "pace", 3, &number).unwrap();
        assert_eq!(first, text.replace("-1.5e-3", "0.7"));
        let second = rewrite_param(text, "pace", 5, &ParamValue::Number(-2.0)).unwrap();
        assert_eq!(second, text.replace("'pace', 1.3", "'pace', -2"));
        let flags = "local f = param(\"on\", false, { help = \"false\" })";
        assert_eq!(
            rewrite_param(flags, "on", 1, &ParamValue::Flag(true)).unwrap(),
            flags.replace("\"on\", false", "\"on\", true")
        );
        let texts = "param(\"look\", \"a \\\" b\", {})";
        assert_eq!(
            rewrite_param(texts, "look", 1, &ParamValue::Text("c".to_owned())).unwrap(),
            "param(\"look\", \"c\", {})"
        );
        // An expression is not a value that can be written over.
        for text in [
            "param(\"pace\", 2 * x)",
            "param(\"pace\", speed)",
            "-- param(\"pace\", 1)",
        ] {
            assert!(rewrite_param(text, "pace", 1, &number).is_err(), "{text}");
        }
        assert_eq!(short(1.299_999_952_316_284_2), "1.3");
        assert_eq!(short(1200.0), "1200");
    }

    #[test]
    fn what_nothing_declares_and_what_is_on_its_way_out_is_found() {
        let reading = Reading::of(SCRIPT);
        let globals = ["require", "stage", "table"].map(str::to_owned);
        let found = reading.undeclared(&globals.into_iter().collect());
        let names: Vec<(u32, &str)> = found.iter().map(|(l, n)| (*l, n.as_str())).collect();
        assert_eq!(names, [(11, "missing"), (13, "hero")]);
        let old = reading.deprecated();
        assert_eq!(old.len(), 1);
        assert_eq!((old[0].0, old[0].1), (16, "table.getn"));
    }
}
