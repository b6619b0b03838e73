//! The functions that rules may call: CEL's own, Kubernetes', and those that the libraries lack.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Opaque, OptionalValue, Value};
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use super::kind::Kind;

/// Passes its second argument on, at the expense of the budget that is its first: each part of the
/// value is a step.
pub(super) const METER: &str = "@meter";

/// The same for a list that grows in a loop. The interpreter copies it in each round, which is
/// quicker than making its elements.
pub(super) const GROWTH_METER: &str = "@growth";

/// Makes a list of what an optional value holds.
pub(super) const LISTED: &str = "@listed";

/// Makes an optional value of the first element of a list.
pub(super) const UNLISTED: &str = "@unlisted";

/// The steps that one rule may take on one value. What it makes cannot have more parts.
const MAX_STEPS_PER_RULE: u64 = 1_000_000;

/// The steps that all rules of a definition may take on one object.
const MAX_STEPS_PER_OBJECT: u64 = 10_000_000;

/// Copying so many parts of a list that grows is one step.
const COPIES_PER_STEP: u64 = 64;

/// So many characters are one part of a value.
const CHARACTERS_PER_PART: usize = 16;

/// Every function and constant that rules can use.
pub(super) static LIBRARY: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    context.add_function(METER, |budget, value| meter(&budget, value, 1));
    context.add_function(GROWTH_METER, |budget, value| {
        meter(&budget, value, COPIES_PER_STEP)
    });
    context.add_function(LISTED, |optional| listed(&optional));
    context.add_function(UNLISTED, |list: Arc<Vec<Value>>| Ok(unlisted(&list)));
    context.add_function("type", |value| Ok(type_of(&value)));
    context.add_function("size", |This(value): This<Value>| size(&value));
    for name in TYPES {
        let value = Value::Opaque(Arc::new(TypeName(name)));
        context.add_variable_from_value(name, value);
    }
    context
});

/// The types that rules can name.
pub(super) const TYPES: [&str; 9] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
];

/// What a function answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    Any,
    Bool,
    Int,
    Double,
    Text,
    Texts,
    Bytes,
    Duration,
    Time,
    Type,
    Optional,
}

/// What each function answers, by kind of answer.
const ANSWERS: [(Answer, &[&str]); 11] = [
    (
        Answer::Bool,
        &[
            "contains",
            "startsWith",
            "endsWith",
            "matches",
            "hasValue",
            "bool",
            "isSorted",
            "isIP",
            "ip.isCanonical",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "isCIDR",
            "containsIP",
            "containsCIDR",
            "isURL",
            "isQuantity",
            "isInteger",
            "isGreaterThan",
            "isLessThan",
            "isSemver",
            "sets.contains",
            "sets.equivalent",
            "sets.intersects",
            "math.isFinite",
            "math.isInf",
            "math.isNaN",
        ],
    ),
    (
        Answer::Int,
        &[
            "size",
            "int",
            "indexOf",
            "lastIndexOf",
            "family",
            "prefixLength",
            "asInteger",
            "sign",
            "compareTo",
            "major",
            "minor",
            "patch",
            "getFullYear",
            "getMonth",
            "getDayOfYear",
            "getDayOfMonth",
            "getDate",
            "getDayOfWeek",
            "getHours",
            "getMinutes",
            "getSeconds",
            "getMilliseconds",
            "math.bitAnd",
            "math.bitNot",
            "math.bitOr",
            "math.bitShiftLeft",
            "math.bitShiftRight",
            "math.bitXor",
        ],
    ),
    (
        Answer::Double,
        &[
            "double",
            "asApproximateFloat",
            "math.ceil",
            "math.floor",
            "math.round",
            "math.sqrt",
            "math.trunc",
        ],
    ),
    (
        Answer::Text,
        &[
            "string",
            "charAt",
            "lowerAscii",
            "upperAscii",
            "replace",
            "substring",
            "trim",
            "join",
            "format",
            "find",
            "getScheme",
            "getHost",
            "getHostname",
            "getPort",
            "getEscapedPath",
            "strings.quote",
        ],
    ),
    (Answer::Texts, &["split", "findAll"]),
    (Answer::Bytes, &["bytes"]),
    (Answer::Duration, &["duration"]),
    (Answer::Time, &["timestamp"]),
    (Answer::Type, &["type"]),
    (
        Answer::Optional,
        &[
            "or",
            "first",
            "last",
            "validate",
            "optional.none",
            "optional.of",
            "optional.ofNonZeroValue",
            "format.named",
        ],
    ),
    (
        Answer::Any,
        &[
            "uint",
            "value",
            "orValue",
            "min",
            "max",
            "sum",
            "sort",
            "distinct",
            "flatten",
            "reverse",
            "slice",
            "lists.range",
            "ip",
            "cidr",
            "masked",
            "url",
            "getQuery",
            "quantity",
            "add",
            "sub",
            "semver",
            "math.abs",
            "math.greatest",
            "math.least",
            "math.sign",
            "format.byte",
            "format.date",
            "format.datetime",
            "format.dns1035Label",
            "format.dns1035LabelPrefix",
            "format.dns1123Label",
            "format.dns1123LabelPrefix",
            "format.dns1123Subdomain",
            "format.dns1123SubdomainPrefix",
            "format.labelValue",
            "format.qualifiedName",
            "format.uri",
            "format.uuid",
        ],
    ),
];

/// The steps that the rules of one object have taken and may take.
#[derive(Debug)]
pub(super) struct Budget {
    object: AtomicU64,
    rule: AtomicU64,
    max_object: u64,
    max_rule: u64,
}

/// A type as a value.
#[derive(Debug, PartialEq, Eq)]
struct TypeName(&'static str);

/// What a function of this name answers. None if there is no such function.
pub(super) fn answer_of(function: &str) -> Option<Answer> {
    let mut answers = ANSWERS.iter();
    let found = answers.find(|(_, names)| names.contains(&function));
    found.map(|(answer, _)| *answer)
}

/// Whether names of functions begin with this one and a dot.
pub(super) fn is_namespace(name: &str) -> bool {
    let mut names = ANSWERS.iter().flat_map(|(_, names)| *names);
    names.any(|function| {
        let rest = function.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('.'))
    })
}

/// Counts what a value costs.
fn meter(budget: &Value, value: Value, parts_per_step: u64) -> ResolveResult {
    if let Value::Opaque(budget) = budget
        && let Some(budget) = budget.downcast_ref::<Budget>()
    {
        budget.spend(parts(&value).div_ceil(parts_per_step))?;
    }
    Ok(value)
}

/// How many parts a value has.
fn parts(value: &Value) -> u64 {
    match value {
        Value::List(list) => 1 + list.iter().map(parts).sum::<u64>(),
        Value::Map(map) => 1 + map.map.values().map(parts).sum::<u64>(),
        Value::String(text) => 1 + (text.len() / CHARACTERS_PER_PART) as u64,
        Value::Bytes(bytes) => 1 + (bytes.len() / CHARACTERS_PER_PART) as u64,
        Value::Function(..)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Opaque(_)
        | Value::Null => 1,
    }
}

fn listed(value: &Value) -> ResolveResult {
    let optional: &OptionalValue = value.try_into()?;
    let list = optional.value().cloned().into_iter().collect();
    Ok(Value::List(Arc::new(list)))
}

fn unlisted(list: &[Value]) -> Value {
    let first = list.first().cloned();
    let optional = first.map_or_else(OptionalValue::none, OptionalValue::of);
    Value::Opaque(Arc::new(optional))
}

fn type_of(value: &Value) -> Value {
    let name = match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Null => "null_type",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Function(..) | Value::Opaque(_) => "dyn",
    };
    Value::Opaque(Arc::new(TypeName(name)))
}

/// In place of the interpreter's own, which counts the bytes of a text.
fn size(value: &Value) -> ResolveResult {
    let size = match value {
        Value::List(list) => list.len(),
        Value::Map(map) => map.map.len(),
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Function(..)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Opaque(_)
        | Value::Null => {
            let why = "only texts, bytes, lists and maps have a size";
            return Err(ExecutionError::function_error("size", why));
        }
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

// === impl Answer ===

impl Answer {
    /// The type of the answer; texts are not longer than `max`.
    pub(super) fn kind<'a>(self, max: u64) -> Kind<'a> {
        match self {
            Self::Any => Kind::Any,
            Self::Bool => Kind::Bool,
            Self::Int => Kind::Int,
            Self::Double => Kind::Double,
            Self::Text => Kind::Text(max),
            Self::Texts => Kind::List {
                items: Box::new(Kind::Text(max)),
                max,
            },
            Self::Bytes => Kind::Bytes,
            Self::Duration => Kind::Duration,
            Self::Time => Kind::Time,
            Self::Type => Kind::Type,
            Self::Optional => Kind::Optional(Box::new(Kind::Any)),
        }
    }
}

// === impl Budget ===

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_STEPS_PER_RULE, MAX_STEPS_PER_OBJECT)
    }
}

impl Budget {
    pub(super) fn new(max_rule: u64, max_object: u64) -> Self {
        Self {
            object: AtomicU64::new(0),
            rule: AtomicU64::new(0),
            max_object,
            max_rule,
        }
    }

    /// Another rule begins.
    pub(super) fn next_rule(&self) {
        self.rule.store(0, Ordering::Relaxed);
    }

    fn spend(&self, steps: u64) -> Result<(), ExecutionError> {
        let rule = self.rule.fetch_add(steps, Ordering::Relaxed) + steps;
        let object = self.object.fetch_add(steps, Ordering::Relaxed) + steps;
        if rule > self.max_rule || object > self.max_object {
            let why = "the rule takes more steps on this value than it may";
            return Err(ExecutionError::function_error("rule", why));
        }
        Ok(())
    }
}

impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Budget {}

impl Opaque for Budget {
    fn runtime_type_name(&self) -> &'static str {
        "budget"
    }
}

// === impl TypeName ===

impl Opaque for TypeName {
    fn runtime_type_name(&self) -> &'static str {
        "type"
    }
}
