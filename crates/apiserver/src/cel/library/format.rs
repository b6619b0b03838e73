//! `'..%s..'.format([..])`.

use std::fmt::Write as _;

use super::convert::shown_double;
use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::format_string::{Piece, pieces, wanted_of};
use crate::cel::times::{shown_duration, shown_timestamp};
use crate::cel::value::{Outcome, Value};

pub(super) const ROOM: [Room; 1] = [(&["format"], format)];

/// No longer text is made.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The digits behind the point where a clause does not say how many.
const PRECISION: u32 = 6;

fn format<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(format), Value::List(list)] = call.args else {
        return call.no_overload();
    };
    let mut made = String::new();
    let mut index = 0;
    for piece in pieces(format).map_err(Fault::new)? {
        match piece {
            Piece::Text(text) => made.push_str(&text),
            Piece::Clause { kind, precision } => {
                let Some(value) = list.get(index) else {
                    return Err(Fault::new(format!("index {index} out of range")));
                };
                clause(&mut made, kind, precision, &value?)?;
                if made.len() > MAX_BYTES {
                    return Err(Fault::Cost);
                }
                index += 1;
            }
        }
    }
    if index < list.len() {
        let given = list.len();
        return Err(Fault::new(format!(
            "too many arguments supplied to string.format (expected {index}, got {given})"
        )));
    }
    Ok(Value::text(made))
}

fn clause(
    made: &mut String,
    kind: char,
    precision: Option<u32>,
    value: &Value<'_>,
) -> Result<(), Fault> {
    let digits = precision.unwrap_or(PRECISION) as usize;
    // Writing to a text does not fail.
    let written = match (kind, value) {
        ('s', value) => {
            made.push_str(&shown(value)?);
            Ok(())
        }
        ('d', Value::Int(number)) => write!(made, "{number}"),
        ('d', Value::Uint(number)) => write!(made, "{number}"),
        ('d' | 'f' | 'e', Value::Double(number)) if !number.is_finite() => {
            made.push_str(infinite(*number));
            Ok(())
        }
        ('f', Value::Double(number)) => write!(made, "{number:.digits$}"),
        ('e', Value::Double(number)) => {
            made.push_str(&scientific(*number, digits));
            Ok(())
        }
        ('b', Value::Int(number)) if *number < 0 => write!(made, "-{:b}", number.unsigned_abs()),
        ('b', Value::Int(number)) => write!(made, "{number:b}"),
        ('b', Value::Uint(number)) => write!(made, "{number:b}"),
        ('b', Value::Bool(flag)) => write!(made, "{}", u8::from(*flag)),
        ('o', Value::Int(number)) if *number < 0 => write!(made, "-{:o}", number.unsigned_abs()),
        ('o', Value::Int(number)) => write!(made, "{number:o}"),
        ('o', Value::Uint(number)) => write!(made, "{number:o}"),
        ('x' | 'X', value) => {
            let text = match value {
                Value::Int(number) if *number < 0 => format!("-{:x}", number.unsigned_abs()),
                Value::Int(number) => format!("{number:x}"),
                Value::Uint(number) => format!("{number:x}"),
                Value::Text(text) => hexadecimal(text.as_bytes()),
                Value::Bytes(bytes) => hexadecimal(bytes),
                other => return wrong(kind, other),
            };
            made.push_str(&if kind == 'X' {
                text.to_uppercase()
            } else {
                text
            });
            Ok(())
        }
        (kind, value) => return wrong(kind, value),
    };
    written.map_err(|_| Fault::new("the text cannot be written"))
}

fn wrong(kind: char, value: &Value<'_>) -> Result<(), Fault> {
    let wanted = wanted_of(kind).unwrap_or_default();
    let found = value.type_name();
    Err(Fault::new(format!(
        "error during formatting: {wanted}, was given {found}"
    )))
}

fn infinite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// At least two digits in the exponent, and its sign.
fn scientific(number: f64, digits: usize) -> String {
    let shown = format!("{number:.digits$e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A value within a list or a map: so that its type can be seen.
fn inner(value: &Value<'_>) -> Result<String, Fault> {
    let plain = shown(value)?;
    Ok(match value {
        Value::Text(_) => format!("{plain:?}"),
        Value::Bytes(_) => format!("b{plain:?}"),
        Value::Duration(_) => format!("duration({plain:?})"),
        Value::Timestamp(_) => format!("timestamp({plain:?})"),
        Value::Double(number) if number.is_finite() => format!("{number:.6}"),
        _ => plain,
    })
}

/// A value as `%s` shows it.
fn shown(value: &Value<'_>) -> Result<String, Fault> {
    Ok(match value {
        Value::Text(text) => text.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) if !number.is_finite() => infinite(*number).to_owned(),
        Value::Double(number) => shown_double(*number),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Duration(duration) => shown_duration(*duration),
        Value::Timestamp(time) => shown_timestamp(*time),
        Value::Type(name) => (*name).to_owned(),
        Value::List(list) => {
            let mut parts = Vec::with_capacity(list.len());
            let mut length = 0;
            for element in list.iter() {
                let part = inner(&element?)?;
                length += part.len();
                if length > MAX_BYTES {
                    return Err(Fault::Cost);
                }
                parts.push(part);
            }
            format!("[{}]", parts.join(", "))
        }
        Value::Map(map) => {
            let mut parts = Vec::with_capacity(map.len());
            for (key, value) in map.entries() {
                parts.push(format!("{}:{}", inner(&key)?, inner(&value?)?));
            }
            parts.sort();
            format!("{{{}}}", parts.join(", "))
        }
        Value::Object(_)
        | Value::Optional(_)
        | Value::Ip(_)
        | Value::Cidr(_)
        | Value::Url(_)
        | Value::Quantity(_)
        | Value::Semver(_)
        | Value::Format(_) => {
            let found = value.type_name();
            return Err(Fault::new(format!(
                "error during formatting: string clause can only be used on strings, bools, bytes, \
                 ints, doubles, maps, lists, types, durations, and timestamps, was given {found}"
            )));
        }
    })
}
