use jiff::Timestamp;

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::times::{self, NANOSECONDS};
use crate::cel::value::{Outcome, Value};

pub(super) const ROOM: [Room; 10] = [
    (&["type"], type_of),
    (&["dyn"], itself),
    (&["bool"], to_bool),
    (&["bytes"], to_bytes),
    (&["double"], to_double),
    (&["duration"], to_duration),
    (&["int"], to_int),
    (&["string"], to_text),
    (&["timestamp"], to_timestamp),
    (&["uint"], to_uint),
];

/// 2 to the power of 63 and of 64: no whole number of 64 bits is as large.
const BEYOND_INT: f64 = 9_223_372_036_854_775_808.0;
const BEYOND_UINT: f64 = 18_446_744_073_709_551_616.0;

fn wrong<'a>(value: &Value<'a>, wanted: &str) -> Outcome<'a> {
    let found = value.type_name();
    Err(Fault::new(format!(
        "type conversion error from '{found}' to '{wanted}'"
    )))
}

fn type_of<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value] => Ok(Value::Type(value.type_name())),
        _ => call.no_overload(),
    }
}

fn itself<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value] => Ok(value.clone()),
        _ => call.no_overload(),
    }
}

fn to_bool<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Bool(flag)] => Ok(Value::Bool(*flag)),
        [value @ Value::Text(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => wrong(value, "bool"),
        },
        _ => call.no_overload(),
    }
}

fn to_bytes<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value @ Value::Bytes(_)] => Ok(value.clone()),
        [Value::Text(text)] => Ok(Value::Bytes(text.as_bytes().into())),
        _ => call.no_overload(),
    }
}

fn to_double<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the nearest number that there is"
    )]
    match call.args {
        [value @ Value::Double(_)] => Ok(value.clone()),
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [value @ Value::Text(text)] => match text.parse() {
            Ok(number) => Ok(Value::Double(number)),
            Err(_) => wrong(value, "double"),
        },
        _ => call.no_overload(),
    }
}

fn to_duration<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value @ Value::Duration(_)] => Ok(value.clone()),
        [Value::Int(number)] => Ok(Value::Duration(*number)),
        [value @ Value::Text(text)] => match times::duration(text) {
            Some(duration) => Ok(Value::Duration(duration)),
            None => wrong(value, "google.protobuf.Duration"),
        },
        _ => call.no_overload(),
    }
}

fn to_int<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let overflow = || Fault::new("integer overflow");
    match call.args {
        [value @ Value::Int(_)] => Ok(value.clone()),
        [Value::Uint(number)] => i64::try_from(*number)
            .map(Value::Int)
            .map_err(|_| overflow()),
        #[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off")]
        [Value::Double(number)] if number.abs() < BEYOND_INT => Ok(Value::Int(*number as i64)),
        [Value::Double(_)] => Err(overflow()),
        [Value::Duration(number)] => Ok(Value::Int(*number)),
        [Value::Timestamp(time)] => Ok(Value::Int(
            time.as_nanosecond()
                .div_euclid(i128::from(NANOSECONDS))
                .try_into()
                .unwrap_or(i64::MAX),
        )),
        [value @ Value::Text(text)] => match text.parse() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => wrong(value, "int"),
        },
        _ => call.no_overload(),
    }
}

fn to_uint<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let overflow = || Fault::new("unsigned integer overflow");
    match call.args {
        [value @ Value::Uint(_)] => Ok(value.clone()),
        [Value::Int(number)] => u64::try_from(*number)
            .map(Value::Uint)
            .map_err(|_| overflow()),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the fraction is cut off"
        )]
        [Value::Double(number)] if *number >= 0.0 && *number < BEYOND_UINT => {
            Ok(Value::Uint(*number as u64))
        }
        [Value::Double(_)] => Err(overflow()),
        [value @ Value::Text(text)] => match text.parse() {
            Ok(number) => Ok(Value::Uint(number)),
            Err(_) => wrong(value, "uint"),
        },
        _ => call.no_overload(),
    }
}

fn to_text<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value @ Value::Text(_)] => Ok(value.clone()),
        [Value::Bool(flag)] => Ok(Value::text(flag.to_string())),
        [Value::Int(number)] => Ok(Value::text(number.to_string())),
        [Value::Uint(number)] => Ok(Value::text(number.to_string())),
        [Value::Double(number)] => Ok(Value::text(shown_double(*number))),
        [Value::Bytes(bytes)] => {
            let why = "invalid UTF-8 in bytes, cannot convert to string";
            let text = std::str::from_utf8(bytes).map_err(|_| Fault::new(why))?;
            Ok(Value::text(text))
        }
        [Value::Duration(duration)] => Ok(Value::text(times::shown_duration(*duration))),
        [Value::Timestamp(time)] => Ok(Value::text(times::shown_timestamp(*time))),
        [Value::Ip(address)] => Ok(Value::text(address.to_string())),
        [Value::Cidr(cidr)] => Ok(Value::text(format!("{}/{}", cidr.address, cidr.bits))),
        _ => call.no_overload(),
    }
}

fn to_timestamp<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [value @ Value::Timestamp(_)] => Ok(value.clone()),
        [Value::Int(seconds)] => Timestamp::from_second(*seconds)
            .ok()
            .filter(|time| times::is_allowed(*time))
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::new("timestamp overflow")),
        [value @ Value::Text(text)] => match times::timestamp(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => wrong(value, "google.protobuf.Timestamp"),
        },
        _ => call.no_overload(),
    }
}

/// A number with as few digits as tell it apart; with an exponent where it is very large or small.
pub(super) fn shown_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let shown = format!("{number:e}");
        if let Some((digits, exponent)) = shown.split_once('e') {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            return format!("{digits}e{sign}{exponent:0>2}");
        }
    }
    number.to_string()
}
