//! `param` and `persist`: numbers that a person turns while the scene plays, and tables that outlive a
//! version of the script.
//!
//! A parameter is declared by being asked for: `param("cadence", 1.3, {min = 0.5, max = 2})` returns what
//! it stands at. The same call is a slider, an OSC address, a MIDI control and an entry of a preset: those
//! are made of [`Param`] elsewhere, this file knows of none of them. What the script read while it loaded
//! is baked into what it made of it, so such a parameter takes effect with the next load; what is read
//! while playing takes effect with the next picture.
//!
//! A value that was set holds for as long as the script's own default stays what it was: who edits the
//! number in the script wants to see that number.

use super::api;
use super::args;
use super::blame::{self, Place};
use mlua::{Error, Lua, Result, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters of a scene: an overlay of more helps nobody.
pub const PARAMS_MAX: usize = 256;
/// Longest name, bytes; it has to fit an OSC address.
const NAME_BYTES_MAX: usize = 64;
/// Longest text that a parameter can stand at, bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Choices of one parameter.
const CHOICES_MAX: usize = 64;

/// What a parameter stands at.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// On or off.
    Flag(bool),
    /// A finite number.
    Number(f64),
    /// A text, where there are choices one of them.
    Text(String),
}

impl ParamValue {
    fn kind(&self) -> &'static str {
        match self {
            Self::Flag(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
        }
    }

    /// What a person has typed, as a value of the same kind as `self`; `None` where it is none.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<Self> {
        match self {
            Self::Flag(_) => match text {
                "true" | "on" | "1" => Some(Self::Flag(true)),
                "false" | "off" | "0" => Some(Self::Flag(false)),
                _ => None,
            },
            Self::Number(_) => {
                let number: f64 = text.trim().parse().ok()?;
                number.is_finite().then_some(Self::Number(number))
            }
            Self::Text(_) => Some(Self::Text(text.to_owned())),
        }
    }
}

impl std::fmt::Display for ParamValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A declared parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Param {
    /// `a` to `z`, digits, `_` and `.`; an OSC address with `/param/` before it.
    pub name: String,
    /// What it stands at.
    pub value: ParamValue,
    /// What the script says.
    pub default: ParamValue,
    /// Least number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Numbers are whole multiples of this, from `min` (or 0) on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// The field's own word: `Hz`, `m`, `degrees`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// One sentence for who turns it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Texts that it can stand at; any where empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The script read it while it loaded: another value takes another load.
    pub loads: bool,
    /// The script's file that declares it.
    pub file: String,
    /// Its line there, from 1.
    pub line: u32,
}

impl Param {
    /// The value that `wanted` means here: numbers are brought into range and onto a step.
    ///
    /// # Errors
    /// A value of another kind, or a text that is no choice: a sentence with the parameter's name.
    pub fn accept(&self, wanted: &ParamValue) -> std::result::Result<ParamValue, String> {
        let name = &self.name;
        match (&self.default, wanted) {
            (ParamValue::Number(_), ParamValue::Number(number)) if number.is_finite() => {
                Ok(ParamValue::Number(self.fitted(*number)))
            }
            // A switch of a MIDI or OSC controller is a number.
            (ParamValue::Flag(_), ParamValue::Number(number)) => {
                Ok(ParamValue::Flag(*number >= 0.5))
            }
            (ParamValue::Flag(_), ParamValue::Flag(_)) => Ok(wanted.clone()),
            (ParamValue::Text(_), ParamValue::Text(text)) => {
                if self.choices.is_empty() && text.len() <= TEXT_BYTES_MAX
                    || self.choices.contains(text)
                {
                    return Ok(wanted.clone());
                }
                let choices = self.choices.join(", ");
                Err(format!(
                    "the parameter '{name}' is one of {choices}, not '{text}'"
                ))
            }
            (default, other) => Err(format!(
                "the parameter '{name}' is {}, not {other}",
                default.kind()
            )),
        }
    }

    /// `share` (0 to 1) of the way from `min` to `max`, as a fader stands; for flags its upper half is on,
    /// for choices each has an equal part. `None` for a number without both ends and a text without choices.
    #[must_use]
    pub fn at_share(&self, share: f64) -> Option<ParamValue> {
        let share = share.clamp(0.0, 1.0);
        match &self.default {
            ParamValue::Number(_) => {
                let (min, max) = (self.min?, self.max?);
                Some(ParamValue::Number(self.fitted(min + share * (max - min))))
            }
            ParamValue::Flag(_) => Some(ParamValue::Flag(share >= 0.5)),
            ParamValue::Text(_) => {
                let last = self.choices.len().checked_sub(1)?;
                let index = (share * self.choices.len() as f64) as usize;
                Some(ParamValue::Text(self.choices[index.min(last)].clone()))
            }
        }
    }

    fn fitted(&self, number: f64) -> f64 {
        let stepped = match self.step {
            Some(step) => {
                let from = self.min.unwrap_or(0.0);
                from + ((number - from) / step).round() * step
            }
            None => number,
        };
        let least = self.min.unwrap_or(f64::MIN);
        stepped.clamp(least, self.max.unwrap_or(f64::MAX))
    }
}

/// A value that was set, and the default that stood in the script then; without one, whatever stands there.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// What it was set to.
    pub value: ParamValue,
    /// The script's default at that time.
    pub default: Option<ParamValue>,
}

impl Given {
    /// A value that holds whatever the script begins with.
    #[must_use]
    pub fn always(value: ParamValue) -> Self {
        Self {
            value,
            default: None,
        }
    }
}

/// What a change of a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Nothing: it stood there.
    No,
    /// The next picture shows it.
    Now,
    /// The script has to be loaded anew.
    ByLoading,
}

/// Parameters of one VM.
#[derive(Debug, Default)]
pub(super) struct Params {
    given: BTreeMap<String, Given>,
    known: Vec<Param>,
    by_name: BTreeMap<String, usize>,
    /// Sentences about values that do not fit, each said once.
    refused: Vec<String>,
}

impl Params {
    pub(super) fn new(given: BTreeMap<String, Given>) -> Self {
        Self {
            given,
            ..Self::default()
        }
    }

    pub(super) fn known(&self) -> &[Param] {
        &self.known
    }

    /// Values that were handed in and do not fit what the script declares.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Sets a parameter. `wanted` must be of its kind.
    pub(super) fn set(
        &mut self,
        name: &str,
        wanted: &ParamValue,
    ) -> std::result::Result<Changed, String> {
        let Some(&index) = self.by_name.get(name) else {
            return Err(self.unknown(name));
        };
        let param = &mut self.known[index];
        let value = param.accept(wanted)?;
        if param.value == value {
            return Ok(Changed::No);
        }
        param.value = value;
        Ok(if param.loads {
            Changed::ByLoading
        } else {
            Changed::Now
        })
    }

    pub(super) fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.known.iter().map(|p| p.name.as_str()).collect();
        if names.is_empty() {
            return format!("there is no parameter '{name}': the scene declares none");
        }
        format!(
            "there is no parameter '{name}'{}",
            args::suggestion(name, &names)
        )
    }

    /// `param(name, default, options)`.
    pub(super) fn ask(
        &mut self,
        lua: &Lua,
        arguments: (&Value, &Value, &Value),
        is_loading: bool,
    ) -> Result<Value> {
        let (name, default, options) = arguments;
        let Value::String(text) = name else {
            return args::refuse("param: name", "a string", name);
        };
        let text = text.as_bytes();
        let known = std::str::from_utf8(&text)
            .ok()
            .and_then(|name| self.by_name.get(name));
        let index = match known {
            Some(&index) => {
                let param = &self.known[index];
                if !is_same(default, &param.default) {
                    return Err(Error::runtime(format!(
                        "param: '{}' begins at {} in {}:{} and at {} here; ask for it in one place, or with the \
                         same value",
                        param.name,
                        param.default,
                        param.file,
                        param.line,
                        args::describe(default)
                    )));
                }
                index
            }
            None => {
                let name = args::text(name, "param: name")?;
                self.declare(&name, default, options, blame::innermost(lua))?
            }
        };
        let param = &mut self.known[index];
        param.loads |= is_loading;
        match &param.value {
            ParamValue::Flag(flag) => Ok(Value::Boolean(*flag)),
            ParamValue::Number(number) => Ok(Value::Number(*number)),
            ParamValue::Text(text) => lua.create_string(text).map(Value::String),
        }
    }

    fn declare(
        &mut self,
        name: &str,
        default: &Value,
        options: &Value,
        place: Option<Place>,
    ) -> Result<usize> {
        if self.known.len() == PARAMS_MAX {
            return Err(Error::runtime(format!(
                "param: a scene may have {PARAMS_MAX} parameters"
            )));
        }
        let is_plain =
            |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'.';
        let is_named = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && name.as_bytes()[0].is_ascii_lowercase()
            && name.bytes().all(is_plain);
        if !is_named {
            return Err(Error::runtime(format!(
                "param: name must be 1 to {NAME_BYTES_MAX} of a-z, 0-9, _ and ., beginning with a letter (it is an \
                 OSC address too), got '{name}'"
            )));
        }
        let default = match default {
            Value::Boolean(flag) => ParamValue::Flag(*flag),
            Value::String(text) if text.as_bytes().len() <= TEXT_BYTES_MAX => {
                ParamValue::Text(text.to_string_lossy())
            }
            Value::Integer(_) | Value::Number(_) => {
                ParamValue::Number(args::number(default, "param: default", "")?)
            }
            other => {
                let wanted =
                    format!("a number, true, false or a string of at most {TEXT_BYTES_MAX} bytes");
                return args::refuse("param: default", &wanted, other);
            }
        };
        let (file, line) = place.map_or_else(Default::default, |p| (p.file, p.line));
        let mut param = Param {
            name: name.to_owned(),
            value: default.clone(),
            default,
            min: None,
            max: None,
            step: None,
            unit: String::new(),
            help: String::new(),
            choices: Vec::new(),
            loads: false,
            file,
            line,
        };
        read_options(&mut param, options)?;
        // What a person has set, unless the script says something else by now.
        if let Some(given) = self.given.get(name)
            && given.default.as_ref().is_none_or(|d| *d == param.default)
        {
            // A command line has texts only.
            let value = match (&given.value, &param.default) {
                (ParamValue::Text(text), ParamValue::Flag(_) | ParamValue::Number(_)) => {
                    param.default.read(text)
                }
                _ => None,
            };
            match param.accept(value.as_ref().unwrap_or(&given.value)) {
                Ok(value) => param.value = value,
                Err(why) => self.refused.push(why),
            }
        }
        self.by_name.insert(name.to_owned(), self.known.len());
        self.known.push(param);
        Ok(self.known.len() - 1)
    }
}

/// Whether a script's value is the one that it declared.
fn is_same(value: &Value, default: &ParamValue) -> bool {
    match (value, default) {
        (Value::Boolean(a), ParamValue::Flag(b)) => a == b,
        (Value::Integer(a), ParamValue::Number(b)) => *a as f64 == *b,
        (Value::Number(a), ParamValue::Number(b)) => a == b,
        (Value::String(a), ParamValue::Text(b)) => a.as_bytes() == b.as_bytes(),
        _ => false,
    }
}

fn read_options(param: &mut Param, options: &Value) -> Result<()> {
    if options.is_nil() {
        return Ok(());
    }
    let what = "param: options";
    let table = args::table(options, what)?;
    args::only_keys(table, &api::PARAM_OPTIONS, what)?;
    let text = |key: &str| match table.raw_get::<Value>(key)? {
        Value::Nil => Ok(String::new()),
        value => args::text(&value, &format!("{what}.{key}")),
    };
    (param.unit, param.help) = (text("unit")?, text("help")?);
    let number = |key: &str| args::optional_number(table, key, what, &param.unit);
    (param.min, param.max) = (number("min")?, number("max")?);
    param.step = match table.raw_get::<Value>("step")? {
        Value::Nil => None,
        value => Some(args::positive(
            &value,
            &format!("{what}.step"),
            &param.unit,
        )?),
    };
    let choices = table.raw_get::<Value>("choices")?;
    if !choices.is_nil() {
        let list = args::table(&choices, &format!("{what}.choices"))?;
        if list.raw_len() > CHOICES_MAX {
            return Err(Error::runtime(format!(
                "{what}.choices must be at most {CHOICES_MAX}, got {}",
                list.raw_len()
            )));
        }
        for (i, choice) in (1..).zip(list.sequence_values::<Value>()) {
            param
                .choices
                .push(args::text(&choice?, &format!("{what}.choices[{i}]"))?);
        }
    }
    let name = &param.name;
    let refuse = |why: String| Err(Error::runtime(format!("param: '{name}' {why}")));
    match &param.default {
        ParamValue::Number(number) => {
            if !param.choices.is_empty() {
                return refuse("is a number, and choices are texts".to_owned());
            }
            if let (Some(min), Some(max)) = (param.min, param.max)
                && min >= max
            {
                return refuse(format!("has min {min}, which is not under max {max}"));
            }
            let is_out = param.min.is_some_and(|min| *number < min)
                || param.max.is_some_and(|max| *number > max);
            if is_out {
                let end = |end: Option<f64>| end.map_or("...".to_owned(), args::number_text);
                return refuse(format!(
                    "begins at {}, outside of its range {} to {}: default must be from min to max",
                    args::number_text(*number),
                    end(param.min),
                    end(param.max)
                ));
            }
        }
        ParamValue::Text(text) if !param.choices.is_empty() && !param.choices.contains(text) => {
            return refuse(format!("begins at '{text}', which is none of its choices"));
        }
        _ if param.min.or(param.max).or(param.step).is_some() => {
            return refuse("is no number, and min, max and step are for numbers".to_owned());
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(min: Option<f64>, max: Option<f64>, step: Option<f64>) -> Param {
        Param {
            name: "n".to_owned(),
            value: ParamValue::Number(1.0),
            default: ParamValue::Number(1.0),
            min,
            max,
            step,
            unit: String::new(),
            help: String::new(),
            choices: Vec::new(),
            loads: false,
            file: String::new(),
            line: 0,
        }
    }

    #[test]
    fn numbers_come_into_range_and_onto_steps() {
        let param = number(Some(0.5), Some(2.0), Some(0.25));
        for (wanted, stands) in [(0.0, 0.5), (0.7, 0.75), (9.0, 2.0), (1.12, 1.0)] {
            let value = param.accept(&ParamValue::Number(wanted)).unwrap();
            assert_eq!(value, ParamValue::Number(stands), "{wanted}");
        }
        assert!(param.accept(&ParamValue::Number(f64::NAN)).is_err());
        assert!(param.accept(&ParamValue::Text("1".to_owned())).is_err());
        assert_eq!(param.at_share(0.5), Some(ParamValue::Number(1.25)));
        assert_eq!(number(None, Some(2.0), None).at_share(0.5), None);
    }

    #[test]
    fn typed_values_are_of_the_parameters_kind() {
        let flag = ParamValue::Flag(false);
        assert_eq!(flag.read("on"), Some(ParamValue::Flag(true)));
        assert_eq!(flag.read("maybe"), None);
        let number = ParamValue::Number(1.0);
        assert_eq!(number.read("2.5"), Some(ParamValue::Number(2.5)));
        assert_eq!(number.read("inf"), None);
    }
}
