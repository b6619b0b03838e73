//! What calls cost, without what their arguments cost.

use std::sync::LazyLock;

use super::Amount;
use crate::cel::operators;
use crate::cel::types::{Opaque, Type};
use crate::cel::value::Value;

/// A character of a text costs a tenth of a step.
const TEXT: f64 = 0.1;

/// Some functions read a text twice.
const TEXT_TWICE: f64 = 0.2;

/// A character of a regular expression costs a quarter: four of them are taken for one instruction.
const PATTERN: f64 = 0.25;

/// A named format is taken for a regular expression of this cost.
const FORMAT: f64 = 32.0;

/// What a call costs that makes a list, whatever is in it.
const NEW_LIST: Amount = Amount::fixed(11);

/// Comparing two numbers, two texts.
const COMPARISON: f64 = 2.0;
const TEXT_COMPARISON: f64 = 2.1;

/// An argument of a call.
#[derive(Debug)]
pub(super) struct Operand<'a> {
    pub(super) kind: &'a Type,
    pub(super) size: Option<Amount>,
    /// How large the elements of a list are by the schema.
    pub(super) element: Option<Amount>,
    /// The number that it is.
    pub(super) literal: Option<i64>,
}

/// A call.
#[derive(Debug)]
struct Call<'a> {
    overload: &'a str,
    target: Option<&'a Operand<'a>>,
    args: &'a [Operand<'a>],
}

/// What a call costs, and how large its result is if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) cost: Amount,
    pub(super) size: Option<Amount>,
}

type Formula = fn(&Call<'_>) -> Option<Estimate>;

/// Formulas by the way of a function. They come first.
const BY_OVERLOAD: [(&[&str], Formula); 8] = [
    (
        &["list_sets_contains_list", "list_sets_intersects_list"],
        |call| sets(call, 1.0),
    ),
    (&["list_sets_equivalent_list"], |call| sets(call, 2.0)),
    (&["list_slice"], slice),
    (&["list_reverse", "list_flatten"], |call| {
        new_list(call.target()?.or_unknown(), 1)
    }),
    (&["list_flatten_int"], |call| {
        let depth = call.args.first()?.natural_or(u64::MAX);
        new_list(call.target()?.or_unknown(), depth)
    }),
    (&["lists_range"], |call| {
        new_list(Amount::fixed(call.args.first()?.natural_or(u64::MAX)), 1)
    }),
    (&["list_distinct"], |call| {
        let size = call.target()?.or_unknown();
        new_list(size * size, 2)
    }),
    (&["_sort", "_sortByAssociatedKeys"], sort),
];

/// Formulas by the name of a function.
const BY_NAME: [(&[&str], Formula); 17] = [
    (&["lowerAscii", "upperAscii", "substring", "trim"], |call| {
        let size = call.target()?.or_unknown();
        sized(size.times(TEXT), size)
    }),
    (&["replace"], replace),
    (&["split"], split),
    (&["join"], join),
    (SCANS, scan),
    (&["find", "findAll"], |call| {
        let text = call.target()?.or_unknown();
        let cost = search(text, call.args.first()?.or_unknown());
        sized(cost, Amount { min: 0, ..text })
    }),
    (&["url"], |call| {
        let size = call.args.first()?.or_unknown();
        sized(size.times(TEXT), size)
    }),
    (&["ip", "cidr", "isIP", "isCIDR"], read),
    (&["quantity", "isQuantity", "semver", "isSemver"], read),
    (&["ip.isCanonical"], |call| {
        cost(call.args.first()?.or_unknown().times(TEXT_TWICE))
    }),
    (&["containsIP"], |call| {
        contains_address(call, Amount { min: 1, max: 4 })
    }),
    (&["containsCIDR"], |call| {
        contains_address(call, Amount { min: 3, max: 7 })
    }),
    (&["validate"], |call| {
        let text = call.args.first()?.or_unknown().times(TEXT);
        cost(text.times(FORMAT))
    }),
    (&[operators::EQUALS], equals_of_library),
    (ONE, |_| cost(Amount::fixed(1))),
    (PARTS_OF_URLS, |_| cost(Amount::fixed(1))),
    (&["format.named"], |_| cost(Amount::fixed(1))),
];

const ONE: &[&str] = &[
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
];

/// The functions that look at each element of a list.
pub(super) const SCANS: &[&str] = &["isSorted", "sum", "min", "max", "indexOf", "lastIndexOf"];

const PARTS_OF_URLS: &[&str] = &[
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

/// The comparisons that look at all of their operands.
const COMPARISONS: [&str; 4] = ["less_", "less_equals_", "greater_", "greater_equals_"];

static TEXT_TYPE: Type = Type::Text;
static ANY_TYPE: Type = Type::Dyn;
static TEXTS_TYPE: LazyLock<Type> = LazyLock::new(|| Type::list(Type::Text));
static LIST_TYPE: LazyLock<Type> = LazyLock::new(|| Type::list(Type::Dyn));

/// An argument of which nothing is known.
pub(super) fn unknown() -> Operand<'static> {
    Operand {
        kind: &ANY_TYPE,
        size: None,
        element: None,
        literal: None,
    }
}

/// An argument that is there.
pub(super) fn given(value: &Value<'_>) -> Operand<'static> {
    let mut element = None;
    let kind = match value {
        Value::Text(_) => &TEXT_TYPE,
        Value::List(list) => {
            let texts = list.iter().filter_map(Result::ok);
            let texts = texts.filter(|one| matches!(one, Value::Text(_) | Value::Bytes(_)));
            element = texts.map(|text| text.size()).max();
            if element.is_some() {
                &*TEXTS_TYPE
            } else {
                &*LIST_TYPE
            }
        }
        _ => &ANY_TYPE,
    };
    let literal = match value {
        Value::Int(number) => Some(*number),
        _ => None,
    };
    Operand {
        kind,
        size: Some(Amount::fixed(value.size())),
        element: Some(Amount::fixed(element.unwrap_or(1))),
        literal,
    }
}

/// The steps that it takes to walk through all of a value.
pub(super) fn walked(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => list
            .iter()
            .map(|element| element.map_or(1, |element| walked(&element)))
            .sum(),
        _ => 1,
    }
}

pub(super) fn estimate(
    function: &str,
    overload: &str,
    target: Option<&Operand<'_>>,
    args: &[Operand<'_>],
) -> Estimate {
    let call = Call {
        overload,
        target,
        args,
    };
    let known = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| match name.strip_prefix('_') {
            Some(_) => overload.starts_with("list_") && overload.ends_with(name),
            None => overload == *name,
        })
    };
    let mut by_overload = BY_OVERLOAD.iter();
    let by_overload = by_overload.find(|(names, _)| known(names));
    let mut by_name = BY_NAME.iter();
    let by_name = by_name.find(|(names, _)| names.contains(&function));
    let formulas = by_overload.into_iter().chain(by_name);
    let mut estimates = formulas.filter_map(|(_, formula)| formula(&call));
    let estimate = estimates.next().or_else(|| core(&call));
    estimate.unwrap_or(Estimate {
        cost: Amount::fixed(1),
        size: None,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the form of every formula, some of which do not apply"
)]
fn cost(cost: Amount) -> Option<Estimate> {
    Some(Estimate { cost, size: None })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the form of every formula, some of which do not apply"
)]
fn sized(cost: Amount, size: Amount) -> Option<Estimate> {
    let size = Some(size);
    Some(Estimate { cost, size })
}

/// The language's own functions, by their ways.
fn core(call: &Call<'_>) -> Option<Estimate> {
    match (call.overload, call.target, call.args) {
        ("conditional", _, [_, first, second]) => {
            sized(Amount::ZERO, first.or_unknown().union(second.or_unknown()))
        }
        ("string_format", Some(target), _) => cost(target.or_unknown().times(TEXT)),
        ("string_to_bytes", _, [arg]) => {
            let size = arg.or_unknown();
            let max = size.max.wrapping_mul(4);
            sized(size.times(TEXT), Amount { max, ..size })
        }
        ("bytes_to_string", _, [arg]) => {
            let size = arg.or_unknown();
            let min = size.min / 4;
            sized(size.times(TEXT), Amount { min, ..size })
        }
        ("strings_quote", _, [arg]) => {
            let size = arg.or_unknown();
            let quoted = Amount {
                min: size.min.wrapping_add(2),
                max: size.max.wrapping_mul(2).wrapping_add(2),
            };
            sized(size.times(TEXT), quoted)
        }
        ("starts_with_string" | "ends_with_string", _, [arg]) => cost(arg.or_unknown().times(TEXT)),
        ("in_list", _, [_, list]) => cost(list.or_unknown().times(1.0)),
        ("matches_string", Some(target), [pattern]) => {
            cost(search(target.or_unknown(), pattern.or_unknown()))
        }
        ("contains_string", Some(target), [arg]) => {
            cost(target.or_unknown().times(TEXT) * arg.or_unknown().times(TEXT))
        }
        ("add_string" | "add_bytes", _, [one, two]) => {
            let size = one.or_unknown() + two.or_unknown();
            sized(size.times(TEXT), size)
        }
        ("add_list", _, [one, two]) => sized(Amount::fixed(1), one.or_unknown() + two.or_unknown()),
        (overload, _, [one, two]) if compares_contents(overload) => {
            let max = one.or_unknown().max.min(two.or_unknown().max);
            let least = Amount {
                min: max.min(1),
                max,
            };
            cost(least.times(TEXT))
        }
        _ => None,
    }
}

fn compares_contents(overload: &str) -> bool {
    let of_texts = COMPARISONS.iter().any(|prefix| {
        let kind = overload.strip_prefix(prefix);
        kind.is_some_and(|kind| ["string", "bytes"].contains(&kind))
    });
    of_texts || ["equals", "not_equals"].contains(&overload)
}

/// To look for a pattern in a text. An empty text counts as a character.
fn search(text: Amount, pattern: Amount) -> Amount {
    (text + Amount::fixed(1)).times(TEXT) * pattern.times(PATTERN)
}

fn read(call: &Call<'_>) -> Option<Estimate> {
    cost(call.args.first()?.or_unknown().times(TEXT))
}

fn sets(call: &Call<'_>, factor: f64) -> Option<Estimate> {
    let [one, two] = call.args else { return None };
    let pairs = one.or_unknown() * two.or_unknown();
    cost(pairs.times(factor) + Amount::fixed(1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the factors are small, or the largest number, which no product exceeds"
)]
fn new_list(size: Amount, factor: u64) -> Option<Estimate> {
    sized(size.times(factor as f64) + NEW_LIST, size)
}

fn slice(call: &Call<'_>) -> Option<Estimate> {
    let [start, end] = call.args else { return None };
    let size = call.target()?.or_unknown();
    let end = end.natural_or(size.max);
    new_list(Amount::fixed(end.wrapping_sub(start.natural_or(0))), 1)
}

fn sort(call: &Call<'_>) -> Option<Estimate> {
    let target = call.target()?;
    // Sorted by keys that stand beside, the keys are compared.
    let compared = call.args.first().unwrap_or(target);
    let factor = if compared.holds_texts() {
        TEXT_COMPARISON
    } else {
        COMPARISON
    };
    let pairs = target.or_unknown() * target.or_unknown();
    sized(pairs.times(factor) + NEW_LIST, pairs)
}

fn split(call: &Call<'_>) -> Option<Estimate> {
    let size = call.target()?.or_unknown();
    let parts = match call.args {
        [_, limit] if limit.literal.is_some() => {
            Amount::fixed(limit.literal.unwrap_or_default().cast_unsigned())
        }
        _ => Amount { min: 0, ..size },
    };
    sized(size.times(TEXT_TWICE), parts)
}

fn join(call: &Call<'_>) -> Option<Estimate> {
    let target = call.target()?;
    let count = target.or_unknown();
    let element = target.element.unwrap_or(Amount::UNKNOWN);
    let mut size = count * element;
    if let [separator] = call.args {
        let between = Amount {
            min: count.min.saturating_sub(1),
            max: count.max.saturating_sub(1),
        };
        size = size + between * separator.or_unknown();
    }
    sized(size.times(TEXT), size)
}

fn scan(call: &Call<'_>) -> Option<Estimate> {
    let target = call.target()?;
    if !matches!(target.kind, Type::List(_)) {
        return cost(target.or_unknown().times(TEXT));
    }
    let one = if target.holds_texts() {
        Amount::fixed(1) + target.element.unwrap_or(Amount::UNKNOWN).times(TEXT)
    } else {
        Amount::fixed(1)
    };
    cost(target.or_unknown() * one)
}

fn contains_address(call: &Call<'_>, own: Amount) -> Option<Estimate> {
    let arg = call.args.first()?;
    if matches!(arg.kind, Type::Text) {
        return cost(own + arg.or_unknown().times(TEXT));
    }
    cost(own)
}

/// Values of Kubernetes' own types are compared as a whole, if both are of the same type.
fn equals_of_library(call: &Call<'_>) -> Option<Estimate> {
    let [one, two] = call.args else { return None };
    match (one.kind, two.kind) {
        (Type::Opaque(one), Type::Opaque(other)) if one == other => match one {
            Opaque::Ip | Opaque::Cidr | Opaque::Quantity | Opaque::Semver => cost(Amount::fixed(1)),
            Opaque::Format => cost(Amount { min: 1, max: 7 }),
            Opaque::Url => cost(two.size.map_or(Amount::fixed(1), |size| size.times(TEXT))),
        },
        _ => None,
    }
}

fn replace(call: &Call<'_>) -> Option<Estimate> {
    let [from, to, ..] = call.args else {
        return None;
    };
    let size = call.target()?.or_unknown();
    let (from, to) = (from.or_unknown(), to.or_unknown());
    // Between all characters.
    let everywhere = |size: u64, to: u64| {
        let added = size.saturating_add(1).saturating_mul(to);
        added.saturating_add(size)
    };
    let max = if from.min == 0 {
        everywhere(size.max, to.max)
    } else if to.max <= from.min {
        size.max
    } else {
        size.max.div_ceil(from.min).saturating_mul(to.max)
    };
    let min = if from.max == 0 {
        everywhere(size.min, to.min)
    } else if from.max <= to.min {
        size.min
    } else {
        size.min.div_ceil(from.max).saturating_mul(to.min)
    };
    sized(size.times(TEXT_TWICE), Amount { min, max })
}

// === impl Call ===

impl<'a> Call<'a> {
    fn target(&self) -> Option<&'a Operand<'a>> {
        self.target
    }
}

// === impl Operand ===

impl Operand<'_> {
    fn or_unknown(&self) -> Amount {
        self.size.unwrap_or(Amount::UNKNOWN)
    }

    fn natural_or(&self, other: u64) -> u64 {
        self.literal.map_or(other, i64::cast_unsigned)
    }

    fn holds_texts(&self) -> bool {
        matches!(self.kind, Type::List(inner) if matches!(inner.kind, Type::Text | Type::Bytes))
    }
}
