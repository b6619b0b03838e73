use std::cmp::Ordering;

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::operators::{
    ADD, DIVIDE, EQUALS, GREATER, GREATER_EQUALS, IN, LESS, LESS_EQUALS, MODULO, MULTIPLY, NEGATE,
    NOT, NOT_EQUALS, NOT_STRICTLY_FALSE, SUBTRACT,
};
use crate::cel::times;
use crate::cel::value::{Outcome, Value, compare, equal};

pub(super) const ROOM: [Room; 8] = [
    (&[EQUALS, NOT_EQUALS], equality),
    (&[LESS, LESS_EQUALS, GREATER, GREATER_EQUALS], ordering),
    (&[ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO], arithmetic),
    (&[NOT], not),
    (&[NEGATE], negate),
    (&[IN], contained),
    (&[NOT_STRICTLY_FALSE], not_strictly_false),
    (&["size"], size),
];

const OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";

fn equality<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [one, two] = call.args else {
        return call.no_overload();
    };
    Ok(Value::Bool(equal(one, two) == (call.function == EQUALS)))
}

fn ordering<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [one, two] = call.args else {
        return call.no_overload();
    };
    let nan = |value: &Value<'_>| matches!(value, Value::Double(number) if number.is_nan());
    if nan(one) || nan(two) {
        return Err(Fault::new("NaN values cannot be ordered"));
    }
    let Some(order) = compare(one, two) else {
        return call.no_overload();
    };
    Ok(Value::Bool(match call.function {
        LESS => order == Ordering::Less,
        LESS_EQUALS => order != Ordering::Greater,
        GREATER => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

fn arithmetic<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Int(one), Value::Int(two)] => ints(call.function, *one, *two).map(Value::Int),
        [Value::Uint(one), Value::Uint(two)] => uints(call.function, *one, *two).map(Value::Uint),
        [Value::Double(one), Value::Double(two)] => match call.function {
            ADD => Ok(Value::Double(one + two)),
            SUBTRACT => Ok(Value::Double(one - two)),
            MULTIPLY => Ok(Value::Double(one * two)),
            DIVIDE => Ok(Value::Double(one / two)),
            _ => call.no_overload(),
        },
        [one, two] if call.function == ADD => added(call, one, two),
        [one, two] if call.function == SUBTRACT => subtracted(call, one, two),
        _ => call.no_overload(),
    }
}

/// The sum of two values, whatever the function is that needs it.
pub(super) fn plus<'a>(call: &Call<'a, '_>, one: &Value<'a>, two: &Value<'a>) -> Outcome<'a> {
    let args = [one.clone(), two.clone()];
    let sum = Call {
        function: ADD,
        args: &args,
        ..*call
    };
    arithmetic(&sum)
}

fn ints(function: &str, one: i64, two: i64) -> Result<i64, Fault> {
    let result = match function {
        ADD => one.checked_add(two),
        SUBTRACT => one.checked_sub(two),
        MULTIPLY => one.checked_mul(two),
        DIVIDE if two == 0 => return Err(Fault::new("division by zero")),
        DIVIDE => one.checked_div(two),
        _ if two == 0 => return Err(Fault::new("modulus by zero")),
        _ => one.checked_rem(two),
    };
    result.ok_or_else(|| Fault::new(OVERFLOW))
}

fn uints(function: &str, one: u64, two: u64) -> Result<u64, Fault> {
    let result = match function {
        ADD => one.checked_add(two),
        SUBTRACT => one.checked_sub(two),
        MULTIPLY => one.checked_mul(two),
        DIVIDE if two == 0 => return Err(Fault::new("division by zero")),
        DIVIDE => one.checked_div(two),
        _ if two == 0 => return Err(Fault::new("modulus by zero")),
        _ => one.checked_rem(two),
    };
    result.ok_or_else(|| Fault::new(UINT_OVERFLOW))
}

fn added<'a>(call: &Call<'a, '_>, one: &Value<'a>, two: &Value<'a>) -> Outcome<'a> {
    match (one, two) {
        (Value::Text(one), Value::Text(two)) => Ok(Value::text([&**one, &**two].concat())),
        (Value::Bytes(one), Value::Bytes(two)) => {
            Ok(Value::Bytes([&**one, &**two].concat().into()))
        }
        (Value::List(one), Value::List(two)) => Ok(Value::List(one.clone().plus(two)?)),
        (Value::Duration(one), Value::Duration(two)) => one
            .checked_add(*two)
            .map(Value::Duration)
            .ok_or_else(|| Fault::new(OVERFLOW)),
        (Value::Timestamp(time), Value::Duration(by))
        | (Value::Duration(by), Value::Timestamp(time)) => times::shifted(*time, *by)
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::new("timestamp overflow")),
        _ => call.no_overload(),
    }
}

fn subtracted<'a>(call: &Call<'a, '_>, one: &Value<'a>, two: &Value<'a>) -> Outcome<'a> {
    match (one, two) {
        (Value::Duration(one), Value::Duration(two)) => one
            .checked_sub(*two)
            .map(Value::Duration)
            .ok_or_else(|| Fault::new(OVERFLOW)),
        (Value::Timestamp(time), Value::Duration(by)) => by
            .checked_neg()
            .and_then(|by| times::shifted(*time, by))
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::new("timestamp overflow")),
        (Value::Timestamp(one), Value::Timestamp(two)) => {
            let nanoseconds = one.as_nanosecond() - two.as_nanosecond();
            i64::try_from(nanoseconds)
                .map(Value::Duration)
                .map_err(|_| Fault::new(OVERFLOW))
        }
        _ => call.no_overload(),
    }
}

fn not<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Bool(flag)] => Ok(Value::Bool(!flag)),
        _ => call.no_overload(),
    }
}

fn negate<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Int(number)] => number
            .checked_neg()
            .map(Value::Int)
            .ok_or_else(|| Fault::new(OVERFLOW)),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        _ => call.no_overload(),
    }
}

fn contained<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value, Value::List(list)] => {
            for element in list.iter() {
                if equal(&element?, value) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        [value, Value::Map(map)] => Ok(Value::Bool(map.get(value).is_some())),
        [Value::Text(name), Value::Object(object)] => Ok(Value::Bool(object.field(name).is_some())),
        _ => call.no_overload(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form of every function")]
fn not_strictly_false<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    Ok(Value::Bool(!matches!(call.args, [Value::Bool(false)])))
}

fn size<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value @ (Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => call.no_overload(),
    }
}
