//! Runs an effect on the CPU: what the twin draws by, and how an endless loop is found before a
//! graphics device meets it.
//!
//! It interprets naga's form of the very text that the GPU compiles, in f32, as WGSL says. Values lie
//! in one row of words, without padding: a vector is its components, a struct its members, a pointer
//! the place of the first word. It knows scalars, vectors, matrices, arrays, structs, functions and
//! all control flow; what it does not know (textures, derivatives, atomics, ...) means nothing for one
//! splat and is refused with its name.

use naga::{
    BinaryOperator as Binary, Block, Expression, Handle, Literal, MathFunction as Math, Module,
    RelationalFunction as Relational, ScalarKind, Span, Statement, SwitchValue, TypeInner,
    UnaryOperator as Unary,
};

/// What words of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    F32,
    I32,
    U32,
    Bool,
    /// Several, or a pointer.
    Other,
}

/// Where a value lies in its function's frame, and what it is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    at: u32,
    words: u32,
    kind: Kind,
    /// Of a matrix, whose columns lie one after the other; else 0.
    rows: u32,
}

/// How an expression is computed.
#[derive(Clone, Debug)]
enum Op {
    /// Stands in the frame from the beginning.
    Fixed,
    Compose(Vec<Slot>),
    /// Words of another value, from this place of the frame on.
    Part(u32),
    /// One of `count` parts of a value, by number.
    Element {
        base: Slot,
        index: Slot,
        count: u32,
    },
    /// A pointer, moved.
    Shift {
        pointer: Slot,
        by: u32,
    },
    /// A pointer to one of `count` parts of `stride` words.
    Pick {
        pointer: Slot,
        index: Slot,
        stride: u32,
        count: u32,
    },
    Load(Slot),
    Swizzle(Slot, [u8; 4]),
    Unary(Unary, Slot),
    Binary(Binary, Slot, Slot),
    Select(Slot, Slot, Slot),
    Relational(Relational, Slot),
    Math(Math, Vec<Slot>),
    Convert(Slot),
    Bits(Slot),
}

/// One function, ready to run.
#[derive(Debug)]
struct Function {
    /// A frame as a call finds it: constants, and local variables as they begin.
    frame: Vec<u32>,
    /// By expression.
    slots: Vec<Slot>,
    ops: Vec<Op>,
    /// Slots that hold places of local variables, and where these lie in the frame.
    addresses: Vec<(u32, u32)>,
    /// Slots of the arguments.
    arguments: Vec<Slot>,
    body: Block,
}

/// A module that can be run.
#[derive(Debug)]
pub(super) struct Program {
    functions: Vec<Function>,
    /// Words of variables outside of functions, as they begin.
    globals: Vec<u32>,
    entry: usize,
}

/// Something that has no meaning for one splat, or is too much.
pub(super) struct Unknown {
    pub message: String,
    pub span: Span,
}

impl Unknown {
    fn new(what: &str, span: Span) -> Self {
        let message = format!("{what} means nothing in an effect");
        Self { message, span }
    }

    /// Of values and variables.
    fn too_much(span: Span) -> Self {
        let message = "variables and values of more than a million numbers in all".to_owned();
        Self { message, span }
    }
}

/// Why a run was broken off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Endless(pub Span);

/// Memory of runs, to be used again.
#[derive(Debug, Default)]
pub(super) struct Memory {
    words: Vec<u32>,
    returned: Vec<u32>,
    /// Turns that loops have taken, and may take.
    turns: u32,
    turns_max: u32,
}

enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

/// Words of a type; none where it cannot be held.
fn words_of(module: &Module, ty: &TypeInner) -> Option<u32> {
    let of = |handle: Handle<naga::Type>| words_of(module, &module.types[handle].inner);
    match ty {
        TypeInner::Scalar(_) | TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => {
            Some(1)
        }
        TypeInner::Vector { size, .. } => Some(*size as u32),
        TypeInner::Matrix { columns, rows, .. } => Some(*columns as u32 * *rows as u32),
        TypeInner::Array {
            base,
            size: naga::ArraySize::Constant(count),
            ..
        } => of(*base)?.checked_mul(count.get()),
        TypeInner::Struct { members, .. } => {
            (members.iter()).try_fold(0_u32, |sum, member| sum.checked_add(of(member.ty)?))
        }
        _ => None,
    }
}

fn kind_of(kind: ScalarKind) -> Kind {
    match kind {
        ScalarKind::Float => Kind::F32,
        ScalarKind::Sint => Kind::I32,
        ScalarKind::Uint => Kind::U32,
        ScalarKind::Bool => Kind::Bool,
        _ => Kind::Other,
    }
}

/// Most words of one value: an array of a million entries is no effect.
const VALUE_WORDS_MAX: u32 = 1 << 16;
/// Most words of all frames, and of all constants. No function is in itself, so all frames are more than
/// any run needs at once.
const FRAMES_WORDS_MAX: u32 = 1 << 20;
/// Most calls that one run of the entry holds, each counted once wherever its turn comes: functions that
/// call each other twice are a million calls after twenty of them, and a driver writes all of them out.
const CALLS_MAX: u64 = 1 << 14;

impl Program {
    /// Makes a valid module ready; `entry` is the function that is run.
    ///
    /// # Errors
    /// What it uses that no effect can.
    pub(super) fn new(
        module: &Module,
        info: &naga::valid::ModuleInfo,
        entry: Handle<naga::Function>,
    ) -> Result<Self, Unknown> {
        let constants = constants(module, info)?;
        let mut globals = Vec::new();
        let mut places = Vec::new();
        for (handle, variable) in module.global_variables.iter() {
            let span = module.global_variables.get_span(handle);
            let inner = &module.types[variable.ty].inner;
            let words = words_of(module, inner).filter(|w| *w <= VALUE_WORDS_MAX);
            let Some(words) = words.filter(|_| variable.space == naga::AddressSpace::Private)
            else {
                return Err(Unknown::new("a variable outside of functions", span));
            };
            places.push(globals.len() as u32);
            globals.resize(globals.len() + words as usize, 0);
        }
        let mut functions: Vec<Function> = Vec::new();
        let (mut words, mut calls) = (0, Vec::new());
        for (handle, function) in module.functions.iter() {
            // A function is declared before those that call it.
            let own = calls_in(&function.body, &calls);
            if own > CALLS_MAX {
                let message = format!("this function makes more than {CALLS_MAX} calls in all");
                let span = module.functions.get_span(handle);
                return Err(Unknown { message, span });
            }
            calls.push(own);
            let compiled = Compiler {
                module,
                info: &info[handle],
                function,
                constants: &constants,
                globals: &places,
                room: FRAMES_WORDS_MAX - words,
                span: module.functions.get_span(handle),
                slots: Vec::new(),
            };
            let compiled = compiled.compile()?;
            words += compiled.frame.len() as u32;
            functions.push(compiled);
        }
        Ok(Self {
            functions,
            globals,
            entry: entry.index(),
        })
    }

    /// Runs the entry on these words, its arguments one after the other. What it returns lies in the
    /// memory until the next run.
    ///
    /// # Errors
    /// A loop that takes more than `turns_max` turns.
    pub(super) fn run<'m>(
        &self,
        memory: &'m mut Memory,
        arguments: &[u32],
        turns_max: u32,
    ) -> Result<&'m [u32], Endless> {
        memory.words.clear();
        memory.words.extend(&self.globals);
        (memory.turns, memory.turns_max) = (0, turns_max);
        let base = memory.words.len();
        let function = &self.functions[self.entry];
        enter(memory, function, base);
        let mut from = 0;
        for slot in &function.arguments {
            let (at, words) = (base + slot.at as usize, slot.words as usize);
            memory.words[at..at + words].copy_from_slice(&arguments[from..from + words]);
            from += words;
        }
        self.block(memory, function, base, &function.body)?;
        Ok(&memory.returned)
    }

    fn block(
        &self,
        memory: &mut Memory,
        function: &Function,
        base: usize,
        block: &Block,
    ) -> Result<Flow, Endless> {
        let slot = |handle: &Handle<Expression>| function.slots[handle.index()];
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::Emit(range) => {
                    for handle in range.clone() {
                        let at = handle.index();
                        evaluate(
                            &function.ops[at],
                            function.slots[at],
                            &mut memory.words,
                            base,
                        );
                    }
                }
                Statement::Block(inner) => match self.block(memory, function, base, inner)? {
                    Flow::Next => {}
                    flow => return Ok(flow),
                },
                Statement::If {
                    condition,
                    accept,
                    reject,
                } => {
                    let is_met = memory.words[base + slot(condition).at as usize] != 0;
                    let taken = if is_met { accept } else { reject };
                    match self.block(memory, function, base, taken)? {
                        Flow::Next => {}
                        flow => return Ok(flow),
                    }
                }
                Statement::Switch { selector, cases } => {
                    let chosen = memory.words[base + slot(selector).at as usize];
                    let is_it = |value: &SwitchValue| match value {
                        SwitchValue::I32(v) => v.cast_unsigned() == chosen,
                        SwitchValue::U32(v) => *v == chosen,
                        SwitchValue::Default => false,
                    };
                    let first = (cases.iter().position(|case| is_it(&case.value)))
                        .or_else(|| (cases.iter()).position(|c| c.value == SwitchValue::Default));
                    for case in cases.iter().skip(first.unwrap_or(cases.len())) {
                        match self.block(memory, function, base, &case.body)? {
                            Flow::Next if case.fall_through => continue,
                            Flow::Next | Flow::Break => break,
                            flow => return Ok(flow),
                        }
                    }
                }
                Statement::Loop {
                    body,
                    continuing,
                    break_if,
                } => loop {
                    memory.turns += 1;
                    if memory.turns > memory.turns_max {
                        return Err(Endless(*span));
                    }
                    match self.block(memory, function, base, body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                    }
                    self.block(memory, function, base, continuing)?;
                    let is_over =
                        break_if.is_some_and(|c| memory.words[base + slot(&c).at as usize] != 0);
                    if is_over {
                        break;
                    }
                },
                Statement::Break => return Ok(Flow::Break),
                Statement::Continue => return Ok(Flow::Continue),
                Statement::Return { value } => {
                    memory.returned.clear();
                    if let Some(value) = value {
                        let slot = slot(value);
                        let at = base + slot.at as usize;
                        memory
                            .returned
                            .extend_from_slice(&memory.words[at..at + slot.words as usize]);
                    }
                    return Ok(Flow::Return);
                }
                Statement::Store { pointer, value } => {
                    let (to, value) = (slot(pointer), slot(value));
                    let to = memory.words[base + to.at as usize] as usize;
                    let from = base + value.at as usize;
                    memory
                        .words
                        .copy_within(from..from + value.words as usize, to);
                }
                Statement::Call {
                    function: called,
                    arguments,
                    result,
                } => {
                    let called = &self.functions[called.index()];
                    let inner = base + function.frame.len();
                    enter(memory, called, inner);
                    for (argument, to) in arguments.iter().zip(&called.arguments) {
                        let from = base + slot(argument).at as usize;
                        let to_at = inner + to.at as usize;
                        memory
                            .words
                            .copy_within(from..from + to.words as usize, to_at);
                    }
                    self.block(memory, called, inner, &called.body)?;
                    if let Some(result) = result {
                        let to = slot(result);
                        let at = base + to.at as usize;
                        memory.words[at..at + to.words as usize]
                            .copy_from_slice(&memory.returned[..to.words as usize]);
                    }
                }
                // Everything else was refused when the program was made.
                _ => {}
            }
        }
        Ok(Flow::Next)
    }
}

/// Calls that a block holds, and those that the called functions hold, which `known` says of each.
fn calls_in(block: &Block, known: &[u64]) -> u64 {
    let of = |block: &Block| calls_in(block, known);
    let counts = block.iter().map(|statement| match statement {
        Statement::Call { function, .. } => 1 + known.get(function.index()).unwrap_or(&0),
        Statement::Block(inner) => of(inner),
        Statement::If { accept, reject, .. } => of(accept) + of(reject),
        Statement::Switch { cases, .. } => cases.iter().map(|case| of(&case.body)).sum(),
        Statement::Loop {
            body, continuing, ..
        } => of(body) + of(continuing),
        _ => 0,
    });
    counts.sum()
}

/// Lays out the frame of a call.
fn enter(memory: &mut Memory, function: &Function, base: usize) {
    let end = base + function.frame.len();
    if memory.words.len() < end {
        memory.words.resize(end, 0);
    }
    memory.words[base..end].copy_from_slice(&function.frame);
    for (slot, local) in &function.addresses {
        memory.words[base + *slot as usize] = (base + *local as usize) as u32;
    }
}

/// Values of the module's constants, in their order.
fn constants(module: &Module, info: &naga::valid::ModuleInfo) -> Result<Vec<Vec<u32>>, Unknown> {
    let mut slots = Vec::new();
    let mut words: Vec<u32> = Vec::new();
    for (handle, expression) in module.global_expressions.iter() {
        let span = module.global_expressions.get_span(handle);
        let unknown = |what: &str| Unknown::new(what, span);
        let ty = info[handle].inner_with(&module.types);
        let slot =
            slot_of(module, ty, words.len() as u32).ok_or_else(|| unknown("such a constant"))?;
        if slot.at + slot.words > FRAMES_WORDS_MAX {
            return Err(Unknown::too_much(span));
        }
        words.resize(words.len() + slot.words as usize, 0);
        let at = slot.at as usize;
        let slot_at = |h: &Handle<Expression>| slots[h.index()];
        match expression {
            Expression::Literal(literal) => {
                words[at] =
                    literal_word(*literal).ok_or_else(|| unknown("a number of this type"))?;
            }
            Expression::ZeroValue(_) => {}
            Expression::Constant(constant) => {
                let from: Slot = slot_at(&module.constants[*constant].init);
                words.copy_within(from.at as usize..(from.at + from.words) as usize, at);
            }
            Expression::Compose { components, .. } => {
                let parts: Vec<Slot> = components.iter().map(slot_at).collect();
                evaluate(&Op::Compose(parts), slot, &mut words, 0);
            }
            Expression::Splat { value, .. } => {
                evaluate(&Op::Swizzle(slot_at(value), [0; 4]), slot, &mut words, 0);
            }
            _ => return Err(unknown("a constant that is computed")),
        }
        slots.push(slot);
    }
    let value = |slot: Slot| words[slot.at as usize..(slot.at + slot.words) as usize].to_vec();
    Ok((module.constants.iter())
        .map(|(_, constant)| value(slots[constant.init.index()]))
        .collect())
}

fn slot_of(module: &Module, ty: &TypeInner, at: u32) -> Option<Slot> {
    let words = words_of(module, ty).filter(|w| *w <= VALUE_WORDS_MAX)?;
    let (scalar, rows) = match ty {
        TypeInner::Scalar(scalar) | TypeInner::Vector { scalar, .. } => (Some(*scalar), 0),
        TypeInner::Matrix { scalar, rows, .. } => (Some(*scalar), *rows as u32),
        _ => (None, 0),
    };
    // f64 and f16 are no part of what every adapter has.
    let is_held = scalar.is_none_or(|s| s.width == 4 || s.kind == ScalarKind::Bool);
    is_held.then_some(Slot {
        at,
        words,
        kind: scalar.map_or(Kind::Other, |s| kind_of(s.kind)),
        rows,
    })
}

fn literal_word(literal: Literal) -> Option<u32> {
    Some(match literal {
        Literal::F32(v) => v.to_bits(),
        Literal::U32(v) => v,
        Literal::I32(v) => v.cast_unsigned(),
        Literal::Bool(v) => u32::from(v),
        _ => return None,
    })
}

struct Compiler<'m> {
    module: &'m Module,
    info: &'m naga::valid::FunctionInfo,
    function: &'m naga::Function,
    constants: &'m [Vec<u32>],
    globals: &'m [u32],
    /// Words that the frame may take.
    room: u32,
    /// Of the function's name.
    span: Span,
    slots: Vec<Slot>,
}

impl Compiler<'_> {
    fn compile(mut self) -> Result<Function, Unknown> {
        let (module, function) = (self.module, self.function);
        let mut next = 0;
        for (handle, _) in function.expressions.iter() {
            let ty = self.info[handle].ty.inner_with(&module.types);
            let slot = slot_of(module, ty, next);
            let slot = slot.ok_or_else(|| self.unknown(handle, "a value of this type"))?;
            next = slot.at + slot.words;
            if next > self.room {
                return Err(Unknown::too_much(self.span_of(handle)));
            }
            self.slots.push(slot);
        }
        let mut locals = Vec::new();
        for (handle, local) in function.local_variables.iter() {
            let words = words_of(module, &module.types[local.ty].inner);
            let words = words.filter(|w| *w <= VALUE_WORDS_MAX);
            let span = function.local_variables.get_span(handle);
            let words = words.ok_or_else(|| Unknown::new("a variable of this type", span))?;
            locals.push((next, words));
            next += words;
            if next > self.room {
                return Err(Unknown::too_much(span));
            }
        }
        let mut frame = vec![0; next as usize];
        let mut ops = Vec::with_capacity(function.expressions.len());
        let mut addresses = Vec::new();
        let mut arguments = vec![None; function.arguments.len()];
        // Values that are the same in every call: what variables begin with is among them.
        let mut is_known: Vec<bool> = Vec::new();
        for (handle, expression) in function.expressions.iter() {
            let slot = self.slots[handle.index()];
            let at = slot.at as usize;
            let mut fixed = true;
            match expression {
                Expression::Literal(literal) => {
                    frame[at] = literal_word(*literal)
                        .ok_or_else(|| self.unknown(handle, "a number of this type"))?;
                }
                Expression::Constant(constant) => {
                    let value = &self.constants[constant.index()];
                    frame[at..at + value.len()].copy_from_slice(value);
                }
                Expression::ZeroValue(_) => {}
                Expression::GlobalVariable(variable) => frame[at] = self.globals[variable.index()],
                Expression::LocalVariable(local) => {
                    addresses.push((slot.at, locals[local.index()].0));
                    fixed = false;
                }
                Expression::FunctionArgument(number) => {
                    arguments[*number as usize] = Some(slot);
                    fixed = false;
                }
                Expression::CallResult(_) => fixed = false,
                _ => {
                    let op = self.op(handle, expression)?;
                    fixed = matches!(
                        expression,
                        Expression::Compose { .. } | Expression::Splat { .. }
                    ) && operands(expression).iter().all(|h| is_known[h.index()]);
                    if fixed {
                        evaluate(&op, slot, &mut frame, 0);
                    }
                    ops.push(op);
                    is_known.push(fixed);
                    continue;
                }
            }
            ops.push(Op::Fixed);
            is_known.push(fixed);
        }
        for ((_, local), (at, words)) in function.local_variables.iter().zip(&locals) {
            if let Some(init) = local.init {
                if !is_known[init.index()] {
                    return Err(self.unknown(init, "a variable that begins so"));
                }
                let from = self.slots[init.index()].at as usize;
                frame.copy_within(from..from + *words as usize, *at as usize);
            }
        }
        self.check(&function.body)?;
        // An argument that nobody reads still takes its words.
        let mut silent = Vec::new();
        for (argument, slot) in function.arguments.iter().zip(&arguments) {
            silent.push(match slot {
                Some(slot) => *slot,
                None => {
                    let ty = &module.types[argument.ty].inner;
                    let slot = slot_of(module, ty, frame.len() as u32)
                        .ok_or_else(|| Unknown::new("an argument of this type", self.span))?;
                    frame.resize(frame.len() + slot.words as usize, 0);
                    if frame.len() > self.room as usize {
                        return Err(Unknown::too_much(self.span));
                    }
                    slot
                }
            });
        }
        Ok(Function {
            frame,
            slots: self.slots,
            ops,
            addresses,
            arguments: silent,
            body: function.body.clone(),
        })
    }

    fn unknown(&self, handle: Handle<Expression>, what: &str) -> Unknown {
        Unknown::new(what, self.span_of(handle))
    }

    /// Where an expression stands; where that is not known, the function's name.
    fn span_of(&self, handle: Handle<Expression>) -> Span {
        let span = self.function.expressions.get_span(handle);
        if span.is_defined() { span } else { self.span }
    }

    /// Refuses statements that have no meaning for one splat.
    fn check(&self, block: &Block) -> Result<(), Unknown> {
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::Emit(_)
                | Statement::Break
                | Statement::Continue
                | Statement::Return { .. }
                | Statement::Store { .. }
                | Statement::Call { .. } => {}
                Statement::Block(inner) => self.check(inner)?,
                Statement::If { accept, reject, .. } => {
                    self.check(accept)?;
                    self.check(reject)?;
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().try_for_each(|case| self.check(&case.body))?;
                }
                Statement::Loop {
                    body, continuing, ..
                } => {
                    self.check(body)?;
                    self.check(continuing)?;
                }
                other => {
                    let what = match other {
                        Statement::Kill => "discard",
                        Statement::ControlBarrier(_) | Statement::MemoryBarrier(_) => "a barrier",
                        Statement::Atomic { .. } => "an atomic",
                        Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => "a texture",
                        _ => "a statement of this kind",
                    };
                    return Err(Unknown::new(what, *span));
                }
            }
        }
        Ok(())
    }

    fn slot(&self, handle: Handle<Expression>) -> Slot {
        self.slots[handle.index()]
    }

    fn inner(&self, handle: Handle<Expression>) -> &TypeInner {
        self.info[handle].ty.inner_with(&self.module.types)
    }

    /// Words of each part of what `ty` holds, and how many there are; of a struct, words before part
    /// `index`.
    fn parts(&self, ty: &TypeInner, index: u32) -> Option<(u32, u32)> {
        let module = self.module;
        Some(match ty {
            TypeInner::Vector { size, .. } => (index, *size as u32),
            TypeInner::ValuePointer {
                size: Some(size), ..
            } => (index, *size as u32),
            TypeInner::Matrix { columns, rows, .. } => (index * *rows as u32, *columns as u32),
            TypeInner::Array { base, size, .. } => {
                let naga::ArraySize::Constant(count) = size else {
                    return None;
                };
                let words = words_of(module, &module.types[*base].inner)?;
                (index.checked_mul(words)?, count.get())
            }
            TypeInner::Struct { members, .. } => {
                let before = members.iter().take(index as usize);
                let words = before.map(|m| words_of(module, &module.types[m.ty].inner));
                (words.sum::<Option<u32>>()?, members.len() as u32)
            }
            TypeInner::Pointer { base, .. } => {
                return self.parts(&module.types[*base].inner, index);
            }
            _ => return None,
        })
    }

    fn op(&self, handle: Handle<Expression>, expression: &Expression) -> Result<Op, Unknown> {
        let slot = |h: &Handle<Expression>| self.slot(*h);
        let is_pointer = |h: Handle<Expression>| {
            matches!(
                self.inner(h),
                TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. }
            )
        };
        let no_parts = || self.unknown(handle, "a part of such a value");
        Ok(match expression {
            Expression::Compose { components, .. } => {
                Op::Compose(components.iter().map(slot).collect())
            }
            Expression::Splat { value, .. } => Op::Swizzle(slot(value), [0; 4]),
            Expression::Swizzle {
                vector, pattern, ..
            } => Op::Swizzle(slot(vector), pattern.map(|c| c as u8)),
            Expression::AccessIndex { base, index } => {
                let (before, _) = self.parts(self.inner(*base), *index).ok_or_else(no_parts)?;
                if is_pointer(*base) {
                    Op::Shift {
                        pointer: slot(base),
                        by: before,
                    }
                } else {
                    Op::Part(slot(base).at + before)
                }
            }
            Expression::Access { base, index } => {
                let (stride, count) = self.parts(self.inner(*base), 1).ok_or_else(no_parts)?;
                if is_pointer(*base) {
                    Op::Pick {
                        pointer: slot(base),
                        index: slot(index),
                        stride,
                        count,
                    }
                } else {
                    Op::Element {
                        base: slot(base),
                        index: slot(index),
                        count,
                    }
                }
            }
            Expression::Load { pointer } => Op::Load(slot(pointer)),
            Expression::Unary { op, expr } => Op::Unary(*op, slot(expr)),
            Expression::Binary { op, left, right } => Op::Binary(*op, slot(left), slot(right)),
            Expression::Select {
                condition,
                accept,
                reject,
            } => Op::Select(slot(condition), slot(accept), slot(reject)),
            Expression::Relational { fun, argument } => Op::Relational(*fun, slot(argument)),
            Expression::As { expr, convert, .. } => match convert {
                Some(_) => Op::Convert(slot(expr)),
                None => Op::Bits(slot(expr)),
            },
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                arg3,
            } => {
                if !is_supported(*fun, slot(arg).kind) {
                    let name = format!("{fun:?}").to_lowercase();
                    return Err(self.unknown(handle, &format!("the function {name} of this type")));
                }
                let all = [Some(*arg), *arg1, *arg2, *arg3];
                Op::Math(*fun, all.iter().flatten().map(slot).collect())
            }
            Expression::Derivative { .. } => {
                return Err(self.unknown(handle, "a derivative"));
            }
            Expression::ImageSample { .. }
            | Expression::ImageLoad { .. }
            | Expression::ImageQuery { .. } => return Err(self.unknown(handle, "a texture")),
            _ => return Err(self.unknown(handle, "an expression of this kind")),
        })
    }
}

/// What a composed value is made of.
fn operands(expression: &Expression) -> Vec<Handle<Expression>> {
    match expression {
        Expression::Compose { components, .. } => components.clone(),
        Expression::Splat { value, .. } => vec![*value],
        _ => Vec::new(),
    }
}

fn is_supported(fun: Math, kind: Kind) -> bool {
    use Math as M;
    match fun {
        M::Abs | M::Min | M::Max | M::Clamp | M::Sign | M::Dot => kind != Kind::Bool,
        M::CountTrailingZeros
        | M::CountLeadingZeros
        | M::CountOneBits
        | M::ReverseBits
        | M::ExtractBits
        | M::InsertBits => matches!(kind, Kind::I32 | Kind::U32),
        M::Unpack4x8unorm | M::Unpack2x16float | M::Unpack2x16unorm => true,
        M::Modf
        | M::Frexp
        | M::Ldexp
        | M::Outer
        | M::Inverse
        | M::QuantizeToF16
        | M::FirstTrailingBit
        | M::FirstLeadingBit
        | M::Dot4I8Packed
        | M::Dot4U8Packed
        | M::Pack4x8snorm
        | M::Pack4x8unorm
        | M::Pack2x16snorm
        | M::Pack2x16unorm
        | M::Pack2x16float
        | M::Pack4xI8
        | M::Pack4xU8
        | M::Pack4xI8Clamp
        | M::Pack4xU8Clamp
        | M::Unpack4x8snorm
        | M::Unpack2x16snorm
        | M::Unpack4xI8
        | M::Unpack4xU8 => false,
        _ => kind == Kind::F32,
    }
}

fn f(word: u32) -> f32 {
    f32::from_bits(word)
}

fn i(word: u32) -> i32 {
    word.cast_signed()
}

/// Computes one expression into its slot.
fn evaluate(op: &Op, out: Slot, m: &mut [u32], base: usize) {
    let at = |slot: Slot| base + slot.at as usize;
    let to = at(out);
    let lanes = out.words as usize;
    // A scalar stands for every lane of a vector.
    let lane = |m: &[u32], slot: Slot, k: usize| m[at(slot) + if slot.words == 1 { 0 } else { k }];
    match op {
        Op::Fixed => {}
        Op::Compose(parts) => {
            let mut next = to;
            for part in parts {
                let from = at(*part);
                m.copy_within(from..from + part.words as usize, next);
                next += part.words as usize;
            }
        }
        Op::Part(from) => {
            let from = base + *from as usize;
            m.copy_within(from..from + lanes, to);
        }
        Op::Element { base, index, count } => {
            let index = m[at(*index)].min(count - 1) as usize;
            let from = at(*base) + index * lanes;
            m.copy_within(from..from + lanes, to);
        }
        Op::Shift { pointer, by } => m[to] = m[at(*pointer)] + by,
        Op::Pick {
            pointer,
            index,
            stride,
            count,
        } => m[to] = m[at(*pointer)] + stride * m[at(*index)].min(count - 1),
        Op::Load(pointer) => {
            let from = m[at(*pointer)] as usize;
            m.copy_within(from..from + lanes, to);
        }
        Op::Swizzle(vector, pattern) => {
            let mut values = [0; 4];
            for (value, k) in values.iter_mut().zip(pattern) {
                *value = *m.get(at(*vector) + usize::from(*k)).unwrap_or(&0);
            }
            m[to..to + lanes].copy_from_slice(&values[..lanes]);
        }
        Op::Unary(op, a) => {
            for k in 0..lanes {
                let v = lane(m, *a, k);
                m[to + k] = match (op, a.kind) {
                    (Unary::Negate, Kind::F32) => (-f(v)).to_bits(),
                    (Unary::Negate, _) => i(v).wrapping_neg().cast_unsigned(),
                    (Unary::LogicalNot, _) => u32::from(v == 0),
                    (Unary::BitwiseNot, _) => !v,
                };
            }
        }
        Op::Binary(Binary::Multiply, a, b) if a.rows > 0 || b.rows > 0 => {
            matrix_product(*a, *b, out, m, base);
        }
        Op::Binary(op, a, b) => {
            for k in 0..lanes {
                m[to + k] = binary(*op, a.kind, lane(m, *a, k), lane(m, *b, k));
            }
        }
        Op::Select(condition, accept, reject) => {
            for k in 0..lanes {
                let from = if lane(m, *condition, k) != 0 {
                    accept
                } else {
                    reject
                };
                m[to + k] = m[at(*from) + k];
            }
        }
        Op::Relational(fun, a) => {
            let word = |k: usize| m[at(*a) + k];
            let count = a.words as usize;
            match fun {
                Relational::All => m[to] = u32::from((0..count).all(|k| word(k) != 0)),
                Relational::Any => m[to] = u32::from((0..count).any(|k| word(k) != 0)),
                Relational::IsNan => {
                    (0..lanes).for_each(|k| m[to + k] = f(lane(m, *a, k)).is_nan().into())
                }
                Relational::IsInf => {
                    (0..lanes).for_each(|k| m[to + k] = f(lane(m, *a, k)).is_infinite().into());
                }
            }
        }
        Op::Convert(a) => {
            for k in 0..lanes {
                m[to + k] = converted(lane(m, *a, k), a.kind, out.kind);
            }
        }
        Op::Bits(a) => {
            let from = at(*a);
            m.copy_within(from..from + lanes, to);
        }
        Op::Math(fun, args) => math(*fun, args, out, m, base),
    }
}

fn binary(op: Binary, kind: Kind, a: u32, b: u32) -> u32 {
    use Binary as B;
    let float = |v: f32| v.to_bits();
    let int = |v: i32| v.cast_unsigned();
    match (op, kind) {
        (B::Add, Kind::F32) => float(f(a) + f(b)),
        (B::Subtract, Kind::F32) => float(f(a) - f(b)),
        (B::Multiply, Kind::F32) => float(f(a) * f(b)),
        (B::Divide, Kind::F32) => float(f(a) / f(b)),
        (B::Modulo, Kind::F32) => float(f(a) % f(b)),
        (B::Add, _) => a.wrapping_add(b),
        (B::Subtract, _) => a.wrapping_sub(b),
        (B::Multiply, _) => a.wrapping_mul(b),
        // As naga makes every backend do it: x / 0 is x, x % 0 is 0.
        (B::Divide, Kind::I32) if b == 0 => a,
        (B::Divide, Kind::I32) => int(i(a).wrapping_div(i(b))),
        (B::Divide, _) => a.checked_div(b).unwrap_or(a),
        (B::Modulo, Kind::I32) if b == 0 => 0,
        (B::Modulo, Kind::I32) => int(i(a).wrapping_rem(i(b))),
        (B::Modulo, _) => a.checked_rem(b).unwrap_or(0),
        (B::Equal, Kind::F32) => u32::from(f(a) == f(b)),
        (B::NotEqual, Kind::F32) => u32::from(f(a) != f(b)),
        (B::Less, Kind::F32) => u32::from(f(a) < f(b)),
        (B::LessEqual, Kind::F32) => u32::from(f(a) <= f(b)),
        (B::Greater, Kind::F32) => u32::from(f(a) > f(b)),
        (B::GreaterEqual, Kind::F32) => u32::from(f(a) >= f(b)),
        (B::Equal, _) => u32::from(a == b),
        (B::NotEqual, _) => u32::from(a != b),
        (B::Less, Kind::I32) => u32::from(i(a) < i(b)),
        (B::LessEqual, Kind::I32) => u32::from(i(a) <= i(b)),
        (B::Greater, Kind::I32) => u32::from(i(a) > i(b)),
        (B::GreaterEqual, Kind::I32) => u32::from(i(a) >= i(b)),
        (B::Less, _) => u32::from(a < b),
        (B::LessEqual, _) => u32::from(a <= b),
        (B::Greater, _) => u32::from(a > b),
        (B::GreaterEqual, _) => u32::from(a >= b),
        (B::And | B::LogicalAnd, _) => a & b,
        (B::InclusiveOr | B::LogicalOr, _) => a | b,
        (B::ExclusiveOr, _) => a ^ b,
        (B::ShiftLeft, _) => a.wrapping_shl(b),
        (B::ShiftRight, Kind::I32) => int(i(a).wrapping_shr(b)),
        (B::ShiftRight, _) => a.wrapping_shr(b),
    }
}

/// WGSL's clamp; what is no number becomes `low`, as most drivers have it.
fn within(value: f32, low: f32, high: f32) -> f32 {
    value.max(low).min(high)
}

fn converted(word: u32, from: Kind, to: Kind) -> u32 {
    let is_true = |v: bool| if v { 1.0_f32 } else { 0.0 };
    match (from, to) {
        // What lies outside of the range becomes the last number that both types hold.
        (Kind::F32, Kind::I32) => {
            (within(f(word), -2_147_483_648.0, 2_147_483_520.0) as i32).cast_unsigned()
        }
        (Kind::F32, Kind::U32) => within(f(word), 0.0, 4_294_967_040.0) as u32,
        (Kind::F32, Kind::Bool) => u32::from(f(word) != 0.0),
        (Kind::I32, Kind::F32) => (i(word) as f32).to_bits(),
        (Kind::U32, Kind::F32) => (word as f32).to_bits(),
        (Kind::Bool, Kind::F32) => is_true(word != 0).to_bits(),
        (_, Kind::Bool) => u32::from(word != 0),
        _ => word,
    }
}

/// A product with a matrix in it: with a scalar, a vector on either side, or another matrix.
fn matrix_product(a: Slot, b: Slot, out: Slot, m: &mut [u32], base: usize) {
    let value = |slot: Slot, k: u32| f(m[base + (slot.at + k) as usize]);
    let words: Vec<u32> = if a.words == 1 {
        (0..b.words)
            .map(|k| (value(a, 0) * value(b, k)).to_bits())
            .collect()
    } else if b.words == 1 {
        (0..a.words)
            .map(|k| (value(a, k) * value(b, 0)).to_bits())
            .collect()
    } else {
        // As matrices of columns: a vector on the left is one row, on the right one column.
        let rows = if a.rows > 0 { a.rows } else { 1 };
        let inner = a.words / rows;
        (0..out.words)
            .map(|k| {
                let (column, row) = (k / rows, k % rows);
                let sum: f32 = (0..inner)
                    .map(|j| value(a, j * rows + row) * value(b, column * inner + j))
                    .sum();
                sum.to_bits()
            })
            .collect()
    };
    let to = base + out.at as usize;
    m[to..to + words.len()].copy_from_slice(&words);
}

/// The built-in functions.
fn math(fun: Math, args: &[Slot], out: Slot, m: &mut [u32], base: usize) {
    use Math as M;
    let at = |slot: Slot| base + slot.at as usize;
    let (to, lanes) = (at(out), out.words as usize);
    let word = |m: &[u32], n: usize, k: usize| {
        args.get(n)
            .map_or(0, |slot| m[at(*slot) + if slot.words == 1 { 0 } else { k }])
    };
    let kind = args[0].kind;
    let count = args[0].words as usize;
    // Without the heap: lanes that are not there are 0.
    let vector = |m: &[u32], n: usize| -> [f32; 4] {
        std::array::from_fn(|k| if k < count { f(word(m, n, k)) } else { 0.0 })
    };
    let dot = |a: &[f32; 4], b: &[f32; 4]| -> f32 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let write = |m: &mut [u32], values: &[f32]| {
        for (slot, value) in m[to..to + lanes].iter_mut().zip(values) {
            *slot = value.to_bits();
        }
    };
    match fun {
        M::Dot if kind != Kind::F32 => {
            m[to] = (0..count).fold(0_u32, |sum, k| {
                sum.wrapping_add(word(m, 0, k).wrapping_mul(word(m, 1, k)))
            });
        }
        M::Dot => m[to] = dot(&vector(m, 0), &vector(m, 1)).to_bits(),
        M::Length => {
            let a = vector(m, 0);
            m[to] = dot(&a, &a).sqrt().to_bits();
        }
        M::Distance => {
            let (a, b) = (vector(m, 0), vector(m, 1));
            let between = std::array::from_fn(|k| a[k] - b[k]);
            m[to] = dot(&between, &between).sqrt().to_bits();
        }
        M::Normalize => {
            let a = vector(m, 0);
            let length = dot(&a, &a).sqrt();
            write(m, &a.map(|v| v / length));
        }
        M::Cross => {
            let (a, b) = (vector(m, 0), vector(m, 1));
            let product = [
                a[1] * b[2] - a[2] * b[1],
                a[2] * b[0] - a[0] * b[2],
                a[0] * b[1] - a[1] * b[0],
            ];
            write(m, &product);
        }
        M::FaceForward => {
            let (a, b, c) = (vector(m, 0), vector(m, 1), vector(m, 2));
            let sign = if dot(&c, &b) < 0.0 { 1.0 } else { -1.0 };
            write(m, &a.map(|v| v * sign));
        }
        M::Reflect => {
            let (a, b) = (vector(m, 0), vector(m, 1));
            let by = 2.0 * dot(&b, &a);
            let back: [f32; 4] = std::array::from_fn(|k| a[k] - by * b[k]);
            write(m, &back);
        }
        M::Refract => {
            let (a, b, eta) = (vector(m, 0), vector(m, 1), f(word(m, 2, 0)));
            let cosine = dot(&b, &a);
            let k = 1.0 - eta * eta * (1.0 - cosine * cosine);
            let bent: [f32; 4] = std::array::from_fn(|n| {
                if k < 0.0 {
                    0.0
                } else {
                    eta * a[n] - (eta * cosine + k.sqrt()) * b[n]
                }
            });
            write(m, &bent);
        }
        M::Transpose => {
            let (rows, columns) = (args[0].rows as usize, count / args[0].rows as usize);
            let turned: Vec<u32> = (0..count)
                .map(|k| word(m, 0, (k % columns) * rows + k / columns))
                .collect();
            m[to..to + lanes].copy_from_slice(&turned);
        }
        M::Determinant => {
            let columns: Vec<f32> = (0..count).map(|k| f(word(m, 0, k))).collect();
            m[to] = determinant(&columns, args[0].rows as usize).to_bits();
        }
        M::Unpack4x8unorm => {
            let bytes = word(m, 0, 0).to_le_bytes();
            write(m, &bytes.map(|b| f32::from(b) / 255.0));
        }
        M::Unpack2x16unorm => {
            let v = word(m, 0, 0);
            write(m, &[v & 0xffff, v >> 16].map(|h| h as f32 / 65_535.0));
        }
        M::Unpack2x16float => {
            let v = word(m, 0, 0);
            write(
                m,
                &[v as u16, (v >> 16) as u16].map(|h| half::f16::from_bits(h).to_f32()),
            );
        }
        _ => {
            for k in 0..lanes {
                let words = [0, 1, 2, 3].map(|n| word(m, n, k));
                m[to + k] = match kind {
                    Kind::F32 => float_function(fun, words.map(f)).to_bits(),
                    _ => whole_function(fun, kind, words),
                };
            }
        }
    }
}

fn determinant(columns: &[f32], rows: usize) -> f32 {
    match rows {
        2 => glam::Mat2::from_cols_slice(columns).determinant(),
        3 => glam::Mat3::from_cols_slice(columns).determinant(),
        _ => glam::Mat4::from_cols_slice(columns).determinant(),
    }
}

/// Functions of one lane, by WGSL's formulas.
fn float_function(fun: Math, [a, b, c, _]: [f32; 4]) -> f32 {
    use Math as M;
    match fun {
        M::Abs => a.abs(),
        M::Min => a.min(b),
        M::Max => a.max(b),
        M::Clamp => within(a, b, c),
        M::Saturate => within(a, 0.0, 1.0),
        M::Cos => a.cos(),
        M::Cosh => a.cosh(),
        M::Sin => a.sin(),
        M::Sinh => a.sinh(),
        M::Tan => a.tan(),
        M::Tanh => a.tanh(),
        M::Acos => a.acos(),
        M::Asin => a.asin(),
        M::Atan => a.atan(),
        M::Atan2 => a.atan2(b),
        M::Asinh => a.asinh(),
        M::Acosh => a.acosh(),
        M::Atanh => a.atanh(),
        M::Radians => a.to_radians(),
        M::Degrees => a.to_degrees(),
        M::Ceil => a.ceil(),
        M::Floor => a.floor(),
        M::Round => a.round_ties_even(),
        M::Fract => a - a.floor(),
        M::Trunc => a.trunc(),
        M::Exp => a.exp(),
        M::Exp2 => a.exp2(),
        M::Log => a.ln(),
        M::Log2 => a.log2(),
        // exp2(b log2(a)), which is no number below 0.
        M::Pow if a < 0.0 => f32::NAN,
        M::Pow => a.powf(b),
        M::Sign if a > 0.0 => 1.0,
        M::Sign if a < 0.0 => -1.0,
        M::Sign => 0.0,
        M::Fma => a.mul_add(b, c),
        M::Mix => a * (1.0 - c) + b * c,
        M::Step => f32::from(u8::from(a <= b)),
        M::SmoothStep => {
            let t = within((c - a) / (b - a), 0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }
        M::Sqrt => a.sqrt(),
        M::InverseSqrt => a.sqrt().recip(),
        // The others are refused, or have no lanes.
        _ => 0.0,
    }
}

fn whole_function(fun: Math, kind: Kind, [a, b, c, d]: [u32; 4]) -> u32 {
    use Math as M;
    let signed = kind == Kind::I32;
    let least = |a: u32, b: u32| {
        if signed {
            i(a).min(i(b)).cast_unsigned()
        } else {
            a.min(b)
        }
    };
    let most = |a: u32, b: u32| {
        if signed {
            i(a).max(i(b)).cast_unsigned()
        } else {
            a.max(b)
        }
    };
    // A field of bits that lies within the word.
    let field = |offset: u32, count: u32| {
        let offset = offset.min(32);
        (offset, count.min(32 - offset))
    };
    let mask = |count: u32| {
        if count >= 32 {
            u32::MAX
        } else {
            (1_u32 << count) - 1
        }
    };
    match fun {
        M::Abs if signed => i(a).wrapping_abs().cast_unsigned(),
        M::Abs => a,
        M::Min => least(a, b),
        M::Max => most(a, b),
        M::Clamp => least(most(a, b), c),
        M::Sign => i(a).signum().cast_unsigned(),
        M::CountTrailingZeros => a.trailing_zeros(),
        M::CountLeadingZeros => a.leading_zeros(),
        M::CountOneBits => a.count_ones(),
        M::ReverseBits => a.reverse_bits(),
        M::ExtractBits => {
            let (offset, count) = field(b, c);
            if count == 0 {
                0
            } else if signed {
                let left = 32 - offset - count;
                (i(a << left) >> (32 - count)).cast_unsigned()
            } else {
                (a >> offset) & mask(count)
            }
        }
        M::InsertBits => {
            let (offset, count) = field(c, d);
            if count == 0 {
                a
            } else {
                let mask = mask(count) << offset;
                (a & !mask) | ((b << offset) & mask)
            }
        }
        // The others are refused.
        _ => 0,
    }
}
