//! Quantities and versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::semver;
use crate::cel::value::{Outcome, Value};
use crate::quantity;

pub(super) const ROOM: [Room; 8] = [
    (&["quantity", "isQuantity"], |call| match call.args {
        [Value::Text(text)] if call.function == "isQuantity" => {
            Ok(Value::Bool(quantity::nanos(text).is_some()))
        }
        [Value::Text(text)] => quantity::nanos(text)
            .map(Value::Quantity)
            .ok_or_else(|| Fault::new(quantity::PROBLEM)),
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
        [Value::Quantity(amount)] => Ok(Value::Int(sign(amount.cmp(&0)))),
        _ => call.no_overload(),
    }),
    (&["isInteger", "asInteger"], whole),
    (&["asApproximateFloat"], |call| match call.args {
        #[expect(clippy::cast_precision_loss, reason = "the function promises no more")]
        [Value::Quantity(amount)] => Ok(Value::Double(*amount as f64 / 1e9)),
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
    let whole = (amount % NANOS == 0).then(|| i64::try_from(amount / NANOS).ok());
    match (call.function, whole.flatten()) {
        ("isInteger", whole) => Ok(Value::Bool(whole.is_some())),
        (_, Some(whole)) => Ok(Value::Int(whole)),
        (_, None) => Err(Fault::new("cannot convert value to integer")),
    }
}

fn order<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let order = match call.args {
        [Value::Quantity(one), Value::Quantity(two)] => one.cmp(two),
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
        [Value::Quantity(one), Value::Int(two)] => (*one, i128::from(*two) * NANOS),
        _ => return call.no_overload(),
    };
    Ok(Value::Quantity(if call.function == "add" {
        one.saturating_add(two)
    } else {
        one.saturating_sub(two)
    }))
}
