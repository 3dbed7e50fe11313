//! Binds Rust and Lua functions by their entries in the table, and refuses what the two do not share.
//!
//! Nothing is checked here but how many arguments come: what they are is for who reads them (`args`).

use super::{Class, Function, Namespace};
use crate::script::args;
use mlua::{
    Error, FromLuaMulti, IntoLua, IntoLuaMulti, Lua, MetaMethod, MultiValue, Result, Table,
    UserDataFields, UserDataMethods, UserDataRegistry, Value,
};
use std::collections::BTreeSet;

/// Arguments behind those that a function takes.
pub struct Surplus(usize);

impl FromLuaMulti for Surplus {
    #[inline(always)]
    fn from_lua_multi(values: MultiValue, _: &Lua) -> Result<Self> {
        Ok(Self(values.len()))
    }
}

/// What a bound closure takes: one `Value` for each parameter, or all of them as a `MultiValue`.
pub trait Arguments: Sized {
    /// What comes from Lua.
    type Given: FromLuaMulti;
    /// How many; `None` for any number.
    const COUNT: Option<usize>;
    /// What the closure gets, and how many more there were.
    fn split(given: Self::Given) -> (Self, usize);
}

impl Arguments for MultiValue {
    type Given = MultiValue;
    const COUNT: Option<usize> = None;
    #[inline(always)]
    fn split(given: MultiValue) -> (Self, usize) {
        (given, 0)
    }
}

impl Arguments for () {
    type Given = Surplus;
    const COUNT: Option<usize> = Some(0);
    #[inline(always)]
    fn split(given: Surplus) -> (Self, usize) {
        ((), given.0)
    }
}

impl Arguments for Value {
    type Given = (Value, Surplus);
    const COUNT: Option<usize> = Some(1);
    #[inline(always)]
    fn split((value, more): Self::Given) -> (Self, usize) {
        (value, more.0)
    }
}

macro_rules! arguments {
    ($count:literal: $($name:ident $kind:ident),+) => {
        impl Arguments for ($($kind,)+) {
            type Given = ($($kind,)+ Surplus);
            const COUNT: Option<usize> = Some($count);
            #[inline(always)]
            fn split(($($name,)+ more): Self::Given) -> (Self, usize) {
                (($($name,)+), more.0)
            }
        }
    };
}
arguments!(2: a Value, b Value);
arguments!(3: a Value, b Value, c Value);
arguments!(5: a Value, b Value, c Value, d Value, e Value);
arguments!(6: a Value, b Value, c Value, d Value, e Value, f Value);

/// `what` takes `count` arguments, got `more` more.
#[cold]
fn surplus(what: &str, count: usize, more: usize) -> Error {
    let takes = match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    };
    Error::runtime(format!("{what} takes {takes}, got {}", count + more))
}

/// Whether a closure with these arguments can be the function of an entry.
fn counts_differ<A: Arguments>(entry: &Function) -> bool {
    A::COUNT != entry.rest.is_none().then_some(entry.params.len())
}

/// A namespace that is being bound.
pub struct Space<'l> {
    lua: &'l Lua,
    table: Table,
    of: &'static Namespace,
    bound: BTreeSet<&'static str>,
}

impl<'l> Space<'l> {
    /// An empty one.
    pub fn new(lua: &'l Lua, of: &'static Namespace) -> Result<Self> {
        Ok(Self::into_table(lua, of, lua.create_table()?))
    }

    /// One that is bound into a table that is there: the globals.
    pub fn into_table(lua: &'l Lua, of: &'static Namespace, table: Table) -> Self {
        Self {
            lua,
            table,
            of,
            bound: BTreeSet::new(),
        }
    }

    fn entry(&mut self, name: &str) -> Result<&'static Function> {
        let entry = self.of.functions.iter().find(|f| f.name == name);
        let entry = entry.ok_or_else(|| self.stranger(name))?;
        self.bound.insert(entry.name);
        Ok(entry)
    }

    fn stranger(&self, name: &str) -> Error {
        Error::runtime(format!(
            "'{}' is bound and has no entry in the API's table",
            whole_name(self.of.name, name)
        ))
    }

    /// Binds a function that is written in Rust.
    pub fn function<A, R, F>(&mut self, name: &str, function: F) -> Result<()>
    where
        A: Arguments + 'static,
        R: IntoLuaMulti,
        F: Fn(&Lua, A) -> Result<R> + 'static,
    {
        let entry = self.entry(name)?;
        let what = whole_name(self.of.name, name);
        if counts_differ::<A>(entry) {
            return Err(Error::runtime(format!(
                "'{what}' is bound with another number of arguments than its entry has"
            )));
        }
        let count = entry.params.len();
        let bound = self.lua.create_function(move |lua, given: A::Given| {
            let (arguments, more) = A::split(given);
            if more > 0 {
                return Err(surplus(&what, count, more));
            }
            function(lua, arguments)
        })?;
        self.table.raw_set(name, bound)
    }

    /// Binds a function that is written in Lua (`prelude.luau`), which counts its arguments itself.
    pub fn lua_function(&mut self, name: &str, function: mlua::Function) -> Result<()> {
        self.entry(name)?;
        self.table.raw_set(name, function)
    }

    /// Binds a value.
    pub fn value(&mut self, name: &str, value: impl IntoLua) -> Result<()> {
        let entry = self.of.fields.iter().find(|field| field.name == name);
        let entry = entry.ok_or_else(|| self.stranger(name))?;
        self.bound.insert(entry.name);
        self.table.raw_set(name, value)
    }

    /// The table, once every entry is bound (not yet read-only).
    pub fn finish(self) -> Result<Table> {
        let functions = self.of.functions.iter().map(|f| f.name);
        let fields = self.of.fields.iter().map(|f| f.name);
        if let Some(name) = functions
            .chain(fields)
            .find(|name| !self.bound.contains(name))
        {
            return Err(Error::runtime(format!(
                "'{}' has an entry in the API's table and is not bound",
                whole_name(self.of.name, name)
            )));
        }
        Ok(self.table)
    }
}

fn whole_name(space: &str, name: &str) -> String {
    if space.is_empty() {
        name.to_owned()
    } else {
        format!("{space}.{name}")
    }
}

/// Classes that a VM has bound, by their names in the table.
#[derive(Default)]
struct BoundClasses(BTreeSet<&'static str>);

/// Binds all classes, each by a function that makes a proxy of its types, and refuses a table with more.
pub fn classes(lua: &Lua, all: &[fn(&Lua) -> Result<()>]) -> Result<()> {
    lua.set_app_data(BoundClasses::default());
    all.iter().try_for_each(|bind| bind(lua))?;
    let bound = lua.remove_app_data::<BoundClasses>().unwrap_or_default();
    match super::CLASSES
        .iter()
        .find(|class| !bound.0.contains(class.name))
    {
        Some(class) => Err(Error::runtime(format!(
            "the class '{}' has an entry in the API's table and is not bound",
            class.name
        ))),
        None => Ok(()),
    }
}

/// A class that is being bound.
pub struct Binding<'r, T: 'static> {
    registry: &'r mut UserDataRegistry<T>,
    of: &'static Class,
    /// Names of getters and methods, names of setters with ` =` behind them.
    bound: BTreeSet<String>,
    problem: Option<String>,
}

impl<'r, T: 'static> Binding<'r, T> {
    /// Begins; `finish` must be called, or the type has no name.
    pub fn new(registry: &'r mut UserDataRegistry<T>, of: &'static Class) -> Self {
        Self {
            registry,
            of,
            bound: BTreeSet::new(),
            problem: None,
        }
    }

    fn note(&mut self, name: &str, is_known: bool) {
        if !is_known {
            self.problem.get_or_insert(format!(
                "'{name}' of a {} is bound and has no such entry in the API's table",
                self.of.type_name
            ));
        }
        self.bound.insert(name.to_owned());
    }

    fn field(&self, name: &str) -> Option<&'static super::Item> {
        self.of.fields.iter().find(|field| field.name == name)
    }

    /// Binds the reading of a field.
    pub fn get<R, F>(&mut self, name: &str, get: F)
    where
        R: IntoLua,
        F: Fn(&Lua, &T) -> Result<R> + 'static,
    {
        self.note(name, self.field(name).is_some());
        self.registry.add_field_method_get(name, get);
    }

    /// Binds the setting of a field.
    pub fn set<F>(&mut self, name: &str, set: F)
    where
        F: FnMut(&Lua, &mut T, Value) -> Result<()> + 'static,
    {
        let is_writable = self.field(name).is_some_and(|field| field.is_writable);
        self.note(&format!("{name} ="), is_writable);
        self.registry.add_field_method_set(name, set);
    }

    fn entry<A: Arguments>(&mut self, name: &str) -> (String, usize) {
        let entry = self.of.methods.iter().find(|method| method.name == name);
        self.note(name, entry.is_some_and(|e| !counts_differ::<A>(e)));
        let count = entry.map_or(0, |entry| entry.params.len());
        (format!("{}:{name}", self.of.name), count)
    }

    /// Binds a method.
    pub fn method<A, R, F>(&mut self, name: &str, method: F)
    where
        A: Arguments + 'static,
        R: IntoLuaMulti,
        F: Fn(&Lua, &T, A) -> Result<R> + 'static,
    {
        let (what, count) = self.entry::<A>(name);
        self.registry
            .add_method(name, move |lua, this, given: A::Given| {
                let (arguments, more) = A::split(given);
                if more > 0 {
                    return Err(surplus(&what, count, more));
                }
                method(lua, this, arguments)
            });
    }

    /// Binds a method that changes the object.
    pub fn method_mut<A, R, F>(&mut self, name: &str, mut method: F)
    where
        A: Arguments + 'static,
        R: IntoLuaMulti,
        F: FnMut(&Lua, &mut T, A) -> Result<R> + 'static,
    {
        let (what, count) = self.entry::<A>(name);
        self.registry
            .add_method_mut(name, move |lua, this, given: A::Given| {
                let (arguments, more) = A::split(given);
                if more > 0 {
                    return Err(surplus(&what, count, more));
                }
                method(lua, this, arguments)
            });
    }

    /// Binds a metamethod.
    pub fn operator<A, R, F>(&mut self, operator: MetaMethod, method: F)
    where
        A: FromLuaMulti,
        R: IntoLuaMulti,
        F: Fn(&Lua, &T, A) -> Result<R> + 'static,
    {
        let name = operator.name();
        self.note(name, self.of.operators.contains(&name));
        self.registry.add_meta_method(operator, method);
    }

    /// Names the type, and refuses names that it has not. What does not fit the table is an error when
    /// the type is first used, which is when a VM is made.
    pub fn finish(mut self) {
        let of = self.of;
        let fields = of.fields.iter().map(|field| field.name.to_owned());
        let setters = of.fields.iter().filter(|field| field.is_writable);
        let setters = setters.map(|field| format!("{} =", field.name));
        let methods = of.methods.iter().map(|method| method.name.to_owned());
        let operators = of.operators.iter().map(|name| (*name).to_owned());
        let mut all = fields.chain(setters).chain(methods).chain(operators);
        if let Some(name) = all.find(|name| !self.bound.contains(name)) {
            self.problem.get_or_insert(format!(
                "'{name}' of a {} has an entry in the API's table and is not bound",
                of.type_name
            ));
        }
        let problem = self.problem.take();
        self.registry
            .add_meta_field_with(MetaMethod::Type, move |lua| match problem {
                Some(problem) => Err(Error::runtime(problem)),
                None => {
                    if let Some(mut bound) = lua.app_data_mut::<BoundClasses>() {
                        bound.0.insert(of.name);
                    }
                    Ok(of.type_name)
                }
            });
        // Reached only by names that are no field and no method.
        self.registry
            .add_meta_method(MetaMethod::Index, move |_, _, key: Value| {
                Err::<(), _>(unknown(of, &key))
            });
        self.registry.add_meta_method(
            MetaMethod::NewIndex,
            move |_, _, (key, _): (Value, Value)| Err::<(), _>(unknown(of, &key)),
        );
    }
}

/// The error for a name that an object has not, or that cannot be set.
fn unknown(of: &'static Class, key: &Value) -> Error {
    let name = match key {
        Value::String(name) => name.to_string_lossy(),
        other => args::describe(other),
    };
    let fields = of.fields.iter().map(|field| field.name);
    let known: Vec<&str> = fields.chain(of.methods.iter().map(|m| m.name)).collect();
    let article = if of.type_name.starts_with(['a', 'e', 'i', 'o']) {
        "an"
    } else {
        "a"
    };
    let kind = of.type_name;
    Error::runtime(if known.contains(&name.as_str()) {
        format!("'{name}' of {article} {kind} cannot be set")
    } else {
        let hint = args::suggestion(&name, &known);
        format!("{article} {kind} has no field '{name}'{hint}")
    })
}

/// Refuses a VM whose globals are not `luaus_own` and those of the table.
pub fn complete(globals: &Table, luaus_own: &BTreeSet<String>) -> Result<()> {
    let mut known: BTreeSet<&str> = luaus_own.iter().map(String::as_str).collect();
    known.extend(super::TESTING.functions.iter().map(|f| f.name));
    for space in super::NAMESPACES {
        if space.name.is_empty() {
            known.extend(space.functions.iter().map(|f| f.name));
        } else {
            known.insert(space.name);
            if !globals.raw_get::<Value>(space.name)?.is_table() {
                return Err(Error::runtime(format!(
                    "'{}' has an entry in the API's table and is not bound",
                    space.name
                )));
            }
        }
    }
    for pair in globals.pairs::<Value, Value>() {
        let (key, _) = pair?;
        let name = key.as_string().map(|name| name.to_string_lossy());
        if let Some(name) = name.filter(|name| !known.contains(name.as_str())) {
            return Err(Error::runtime(format!(
                "the global '{name}' is bound and has no entry in the API's table"
            )));
        }
    }
    Ok(())
}
