//! The value of an expression.

use std::collections::BTreeMap;

use super::ast::{Entry, Literal, Loop, Node, NodeId};
use super::fault::Fault;
use super::library::{Call, Function};
use super::program::{Program, Step};
use super::value::{Key, List, Map, Outcome, Text, Value};
use super::{cost, operators};
use crate::pattern::Patterns;

/// Making a list or a map that is not always the same.
const LIST_STEPS: u64 = 10;
const MAP_STEPS: u64 = 30;

/// A variable and its value. A loop goes on with an error, which another round may absorb.
type Variable<'a> = (&'a str, Outcome<'a>);

struct Evaluation<'a, 'p> {
    program: &'a Program,
    variables: Vec<Variable<'a>>,
    patterns: &'p Patterns,
    /// The steps that were taken, and how many may be.
    steps: u64,
    limit: u64,
}

/// The value of an expression, and the steps that it took.
pub(crate) fn evaluate<'a>(
    program: &'a Program,
    variables: &[(&'a str, Value<'a>)],
    patterns: &Patterns,
    limit: u64,
) -> (Outcome<'a>, u64) {
    let variables = variables.iter().cloned();
    let mut evaluation = Evaluation {
        program,
        variables: variables.map(|(name, value)| (name, Ok(value))).collect(),
        patterns,
        steps: 0,
        limit,
    };
    let outcome = evaluation.value(program.root);
    (outcome, evaluation.steps)
}

// === impl Evaluation ===

impl<'a> Evaluation<'a, '_> {
    fn spend(&mut self, steps: u64) -> Result<(), Fault> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limit {
            return Err(Fault::Cost);
        }
        Ok(())
    }

    fn value(&mut self, id: NodeId) -> Outcome<'a> {
        let program = self.program;
        match program.ast.node(id) {
            Node::Literal(literal) => Ok(constant(literal)),
            Node::Ident(name) => {
                self.spend(1)?;
                self.variable(name)
            }
            Node::Select {
                operand,
                field,
                test,
            } => {
                let operand = self.value(*operand)?;
                if *test {
                    return Ok(Value::Bool(has(&operand, field)?));
                }
                self.spend(1)?;
                select(&operand, field)
            }
            Node::Call {
                function,
                target,
                args,
            } => self.call(id, function, *target, args),
            Node::List { elements, optional } => self.list(elements, optional),
            Node::Map(entries) => self.map(entries),
            Node::Message(_) => Err(Fault::no_overload()),
            Node::Loop(inner) => self.looped(inner),
        }
    }

    fn variable(&self, name: &'a str) -> Outcome<'a> {
        let mut variables = self.variables.iter().rev();
        if let Some((_, value)) = variables.find(|(known, _)| *known == name) {
            return value.clone();
        }
        if super::functions::named_type(name).is_some() {
            return Ok(Value::Type(name));
        }
        Err(Fault::new(format!("no such attribute(s): {name}")))
    }

    fn call(
        &mut self,
        id: NodeId,
        name: &'a str,
        target: Option<NodeId>,
        args: &'a [NodeId],
    ) -> Outcome<'a> {
        match (self.program.steps[id.index()], args) {
            (Step::And, [one, two]) => self.logical(*one, *two, false),
            (Step::Or, [one, two]) => self.logical(*one, *two, true),
            (Step::Conditional, [condition, first, second]) => match self.value(*condition)? {
                Value::Bool(true) => self.value(*first),
                Value::Bool(false) => self.value(*second),
                _ => Err(Fault::no_overload()),
            },
            (Step::NotStrictlyFalse, [arg]) => match self.value(*arg) {
                Err(Fault::Cost) => Err(Fault::Cost),
                outcome => Ok(Value::Bool(!matches!(outcome, Ok(Value::Bool(false))))),
            },
            (Step::Index, [operand, index]) => {
                let operand = self.value(*operand)?;
                let index = self.value(*index)?;
                self.spend(1)?;
                indexed(&operand, &index)
            }
            (Step::OptionalIndex, [operand, index]) => {
                let operand = self.value(*operand)?;
                let index = self.value(*index)?;
                self.spend(1)?;
                optional(&operand, |operand| index_of(operand, &index))
            }
            (Step::OptionalSelect, [operand, field]) => {
                let operand = self.value(*operand)?;
                self.spend(1)?;
                let Node::Literal(Literal::Text(field)) = self.program.ast.node(*field) else {
                    return Err(Fault::no_overload());
                };
                optional(&operand, |operand| field_of(operand, field))
            }
            (Step::MapInsert, _) => self.insert(args),
            (Step::Grow(function), [_, added]) => self.grow(function, *added),
            (Step::Call { function, overload }, _) => {
                self.library(name, function, overload, target, args)
            }
            _ => Err(Fault::no_overload()),
        }
    }

    fn library(
        &mut self,
        name: &'a str,
        function: Function,
        overload: Option<&str>,
        target: Option<NodeId>,
        args: &'a [NodeId],
    ) -> Outcome<'a> {
        let mut values = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            values.push(self.value(target)?);
        }
        for arg in args {
            values.push(self.value(*arg)?);
        }
        self.spend(match overload {
            None => 1,
            Some(overload) => cost::actual(name, overload, target.is_some(), &values).max(1),
        })?;
        function(&Call {
            function: name,
            args: &values,
            patterns: self.patterns,
        })
    }

    /// `&&` and `||`: one term of the deciding value is enough, whatever the other is.
    #[expect(
        clippy::match_same_arms,
        reason = "the arms are in the order in which they count"
    )]
    fn logical(&mut self, one: NodeId, two: NodeId, deciding: bool) -> Outcome<'a> {
        let first = self.value(one);
        match &first {
            Ok(Value::Bool(flag)) if *flag == deciding => return Ok(Value::Bool(deciding)),
            Err(Fault::Cost) => return first,
            _ => {}
        }
        let second = self.value(two);
        match (&second, first) {
            (Ok(Value::Bool(flag)), _) if *flag == deciding => Ok(Value::Bool(deciding)),
            (Err(Fault::Cost), _) => second,
            (_, Err(fault)) => Err(fault),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!deciding)),
            (Err(_), Ok(Value::Bool(_))) => second,
            _ => Err(Fault::no_overload()),
        }
    }

    fn is_constant(&self, id: NodeId) -> bool {
        matches!(self.program.ast.node(id), Node::Literal(_))
    }

    fn list(&mut self, elements: &[NodeId], optional: &[usize]) -> Outcome<'a> {
        if !elements.iter().all(|element| self.is_constant(*element)) {
            self.spend(LIST_STEPS)?;
        }
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let value = self.value(*element)?;
            if optional.contains(&index) {
                values.extend(held(value)?);
            } else {
                values.push(value);
            }
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &[Entry]) -> Outcome<'a> {
        let constant = |entry: &Entry| self.is_constant(entry.key) && self.is_constant(entry.value);
        if !entries.iter().all(constant) {
            self.spend(MAP_STEPS)?;
        }
        let mut made = BTreeMap::new();
        for entry in entries {
            let key = self.value(entry.key)?;
            let mut value = self.value(entry.value)?;
            if entry.optional {
                match held(value)? {
                    None => continue,
                    Some(inner) => value = inner,
                }
            }
            let Some(own) = Key::of(&key) else {
                let kind = key.type_name();
                return Err(Fault::new(format!("unsupported key type: {kind}")));
            };
            if made.insert(own, (key, value)).is_some() {
                return Err(Fault::new("Failed with repeated key"));
            }
        }
        Ok(Value::Map(Map::made(made)))
    }

    /// What a loop has gathered, taken so that it can grow in place: the step that asks for it puts
    /// the larger one back.
    fn gathered(&mut self) -> Outcome<'a> {
        let mut variables = self.variables.iter_mut().rev();
        match variables.find(|(name, _)| *name == operators::ACCUMULATOR) {
            Some((_, gathered)) if gathered.is_ok() => std::mem::replace(gathered, Ok(Value::Null)),
            Some((_, fault)) => fault.clone(),
            None => Err(Fault::no_overload()),
        }
    }

    fn grow(&mut self, function: Function, added: NodeId) -> Outcome<'a> {
        let gathered = self.gathered()?;
        let added = self.value(added)?;
        // The variable, the sum.
        self.spend(2)?;
        match (gathered, added) {
            (Value::List(gathered), Value::List(added)) => Ok(Value::List(gathered.plus(&added)?)),
            (gathered, added) => function(&Call {
                function: operators::ADD,
                args: &[gathered, added],
                patterns: self.patterns,
            }),
        }
    }

    /// Adds an entry, or those of a map, to the map that a loop makes.
    fn insert(&mut self, args: &[NodeId]) -> Outcome<'a> {
        let gathered = self.gathered()?;
        let mut added = Vec::new();
        match args {
            [_, key, value] => {
                let key = self.value(*key)?;
                added.push((key, self.value(*value)?));
            }
            [_, entries] => {
                let Value::Map(entries) = self.value(*entries)? else {
                    return Err(Fault::no_overload());
                };
                for (key, value) in entries.entries() {
                    added.push((key, value?));
                }
            }
            _ => return Err(Fault::no_overload()),
        }
        self.spend(2)?;
        let Value::Map(map) = gathered else {
            return Err(Fault::no_overload());
        };
        let mut entries = map.into_entries()?;
        for (key, value) in added {
            let Some(own) = Key::of(&key) else {
                let kind = key.type_name();
                return Err(Fault::new(format!("unsupported key type: {kind}")));
            };
            let shown = own.to_string();
            if entries.insert(own, (key, value)).is_some() {
                return Err(Fault::new(format!(
                    "insert failed: key {shown} already exists"
                )));
            }
        }
        Ok(Value::Map(Map::made(entries)))
    }

    fn looped(&mut self, inner: &'a Loop) -> Outcome<'a> {
        let range = self.value(inner.range)?;
        let rounds = rounds_of(&range)?;
        let init = self.value(inner.init);
        let outside = self.variables.len();
        self.variables.push((&inner.accumulator, init));
        let outcome = self
            .rounds(inner, &rounds, outside)
            .and_then(|()| self.value(inner.result));
        self.variables.truncate(outside);
        outcome
    }

    fn rounds(
        &mut self,
        inner: &'a Loop,
        rounds: &Rounds<'a>,
        accumulator: usize,
    ) -> Result<(), Fault> {
        let within = self.variables.len();
        for index in 0..rounds.len() {
            let (first, second) = rounds.at(index, inner.second.is_some());
            self.variables.push((&inner.variable, first));
            if let Some(name) = &inner.second {
                self.variables.push((name, second));
            }
            let goes_on = self.value(inner.condition)?;
            if matches!(goes_on, Value::Bool(false)) {
                self.variables.truncate(within);
                break;
            }
            let step = self.value(inner.step);
            self.variables.truncate(within);
            if matches!(step, Err(Fault::Cost)) {
                return Err(Fault::Cost);
            }
            self.variables[accumulator].1 = step;
        }
        Ok(())
    }
}

/// What a loop goes over.
enum Rounds<'a> {
    List(List<'a>),
    Map(Vec<(Value<'a>, Outcome<'a>)>),
}

fn rounds_of<'a>(range: &Value<'a>) -> Result<Rounds<'a>, Fault> {
    match range {
        Value::List(list) => Ok(Rounds::List(list.clone())),
        Value::Map(map) => Ok(Rounds::Map(map.entries())),
        _ => Err(Fault::no_overload()),
    }
}

// === impl Rounds ===

impl<'a> Rounds<'a> {
    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Map(entries) => entries.len(),
        }
    }

    /// The variables of a round.
    fn at(&self, index: usize, two: bool) -> (Outcome<'a>, Outcome<'a>) {
        let nothing = || Err(Fault::no_overload());
        match self {
            Self::List(list) => {
                let element = list.get(index).unwrap_or_else(nothing);
                if two {
                    let index = i64::try_from(index).unwrap_or(i64::MAX);
                    (Ok(Value::Int(index)), element)
                } else {
                    (element, nothing())
                }
            }
            Self::Map(entries) => match entries.get(index) {
                Some((key, value)) => (Ok(key.clone()), value.clone()),
                None => (nothing(), nothing()),
            },
        }
    }
}

fn constant(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::Text(text) => Value::Text(Text::Kept(text)),
        Literal::Bytes(bytes) => Value::Bytes((&**bytes).into()),
    }
}

/// A member, if it is there.
fn field_of<'a>(value: &Value<'a>, field: &str) -> Result<Option<Value<'a>>, Fault> {
    match value {
        Value::Object(object) => object.field(field).transpose(),
        Value::Map(map) => map.get(&Value::Text(Text::Kept(field))).transpose(),
        _ => Err(Fault::no_overload()),
    }
}

fn select<'a>(value: &Value<'a>, field: &str) -> Outcome<'a> {
    match value {
        Value::Optional(_) => optional(value, |held| field_of(held, field)),
        value => field_of(value, field)?.ok_or_else(|| Fault::no_key(field)),
    }
}

fn has(value: &Value<'_>, field: &str) -> Result<bool, Fault> {
    match value {
        Value::Optional(None) => Ok(false),
        Value::Optional(Some(held)) => has(held, field),
        value => Ok(field_of(value, field)?.is_some()),
    }
}

/// What an optional value or a plain one has, as an optional value.
fn optional<'a>(
    value: &Value<'a>,
    part: impl Fn(&Value<'a>) -> Result<Option<Value<'a>>, Fault>,
) -> Outcome<'a> {
    let found = match value {
        Value::Optional(None) => None,
        Value::Optional(Some(held)) => part(held)?,
        value => part(value)?,
    };
    Ok(found.map_or_else(Value::none, Value::some))
}

/// What stands at a place or a key, if something does.
fn index_of<'a>(value: &Value<'a>, index: &Value<'_>) -> Result<Option<Value<'a>>, Fault> {
    match value {
        Value::List(list) => match Key::of(index) {
            Some(Key::Number(place)) => {
                let place = usize::try_from(place).ok();
                place.and_then(|place| list.get(place)).transpose()
            }
            _ => Err(Fault::no_overload()),
        },
        Value::Map(map) => map.get(index).transpose(),
        Value::Object(object) => match index {
            Value::Text(name) => object.field(name).transpose(),
            _ => Err(Fault::no_overload()),
        },
        _ => Err(Fault::no_overload()),
    }
}

fn indexed<'a>(value: &Value<'a>, index: &Value<'_>) -> Outcome<'a> {
    if let Value::Optional(_) = value {
        return optional(value, |held| index_of(held, index));
    }
    index_of(value, index)?.ok_or_else(|| {
        let shown = Key::of(index).map_or_else(String::new, |key| key.to_string());
        match value {
            Value::List(_) => Fault::new(format!("index out of bounds: {shown}")),
            _ => Fault::no_key(shown),
        }
    })
}

/// What an optional part holds.
fn held(value: Value<'_>) -> Result<Option<Value<'_>>, Fault> {
    match value {
        Value::Optional(held) => Ok(held.map(|held| (*held).clone())),
        other => {
            let kind = other.type_name();
            Err(Fault::new(format!(
                "cannot initialize optional entry from non-optional value {kind}"
            )))
        }
    }
}
