//! Quantities and versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::semver;
use crate::cel::value::{Amount, Outcome, Value};
use crate::quantity;

pub(super) const ROOM: [Room; 8] = [
    (&["quantity", "isQuantity"], |call| match call.args {
        [Value::Text(text)] if call.function == "isQuantity" => {
            Ok(Value::Bool(quantity::nanos(text).is_some()))
        }
        [Value::Text(text)] => match quantity::nanos(text) {
            Some(nanos) => {
                let part = text.ends_with(['n', 'u', 'm']) || text.contains(['.', 'e', 'E']);
                let whole = !part || is_large_exponent(text);
                Ok(Value::Quantity(Amount { nanos, whole }))
            }
            None => Err(Fault::new(quantity::PROBLEM)),
        },
        _ => call.no_overload(),
    }),
    (&["semver", "isSemver"], |call| {
        let (text, lenient) = match call.args {
            [Value::Text(text)] => (text, false),
            [Value::Text(text), Value::Bool(lenient)] => (text, *lenient),
            _ => return call.no_overload(),
        };
        let read = semver::parse(text, lenient);
        if call.function == "isSemver" {
            return Ok(Value::Bool(read.is_ok()));
        }
        Ok(Value::Semver(Rc::new(read.map_err(Fault::new)?)))
    }),
    (&["sign"], |call| match call.args {
        [Value::Quantity(amount)] => Ok(Value::Int(sign(amount.nanos.cmp(&0)))),
        _ => call.no_overload(),
    }),
    (&["isInteger", "asInteger"], whole),
    (&["asApproximateFloat"], |call| match call.args {
        #[expect(clippy::cast_precision_loss, reason = "the function promises no more")]
        [Value::Quantity(amount)] => Ok(Value::Double(amount.nanos as f64 / 1e9)),
        _ => call.no_overload(),
    }),
    (&["isGreaterThan", "isLessThan", "compareTo"], order),
    (&["add", "sub"], sum),
    (&["major", "minor", "patch"], |call| match call.args {
        [Value::Semver(version)] => {
            let number = match call.function {
                "major" => version.major,
                "minor" => version.minor,
                _ => version.patch,
            };
            Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
        }
        _ => call.no_overload(),
    }),
];

/// The smallest part of an amount.
const NANOS: i128 = 1_000_000_000;

fn sign(order: Ordering) -> i64 {
    order as i64
}

fn whole<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Quantity(amount)] = call.args else {
        return call.no_overload();
    };
    let Amount { nanos, whole } = amount;
    let number = whole.then(|| i64::try_from(nanos / NANOS).ok());
    // The largest amount stands for all that are larger.
    let number = number.flatten().filter(|number| *number < i64::MAX);
    match (call.function, number) {
        ("isInteger", whole) => Ok(Value::Bool(whole.is_some())),
        (_, Some(whole)) => Ok(Value::Int(whole)),
        (_, None) => Err(Fault::new("cannot convert value to integer")),
    }
}

fn order<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let order = match call.args {
        [Value::Quantity(one), Value::Quantity(two)] => one.nanos.cmp(&two.nanos),
        [Value::Semver(one), Value::Semver(two)] => one.precedence(two),
        _ => return call.no_overload(),
    };
    Ok(match call.function {
        "isGreaterThan" => Value::Bool(order == Ordering::Greater),
        "isLessThan" => Value::Bool(order == Ordering::Less),
        _ => Value::Int(sign(order)),
    })
}

fn sum<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (one, two) = match call.args {
        [Value::Quantity(one), Value::Quantity(two)] => (*one, *two),
        [Value::Quantity(one), Value::Int(two)] => {
            let nanos = i128::from(*two) * NANOS;
            (*one, Amount { nanos, whole: true })
        }
        _ => return call.no_overload(),
    };
    let nanos = if call.function == "add" {
        one.nanos.saturating_add(two.nanos)
    } else {
        one.nanos.saturating_sub(two.nanos)
    };
    let whole = one.whole && two.whole;
    Ok(Value::Quantity(Amount { nanos, whole }))
}

/// Whether an amount has no fraction and is written with an exponent that adds none: `1e3`, `1E`.
fn is_large_exponent(text: &str) -> bool {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "-"));
    !number.contains('.') && !exponent.starts_with('-')
}
