use std::cmp::Ordering;

use super::Value;

/// So many parts of values are compared. Lists that hold each other many times over would take for
/// ever.
const MAX_PARTS: u32 = 2_000_000;

/// Whether two values are the same. Values of different types are not, but for numbers.
pub(crate) fn equal(one: &Value<'_>, two: &Value<'_>) -> bool {
    same(one, two, &mut MAX_PARTS.clone())
}

/// The same, as long as parts are left to compare.
#[expect(
    clippy::match_same_arms,
    reason = "each arm is about other types of Rust's"
)]
pub(super) fn same(one: &Value<'_>, two: &Value<'_>, left: &mut u32) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match (one, two) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(one), Value::Bool(two)) => one == two,
        (Value::Text(one), Value::Text(two)) => **one == **two,
        (Value::Bytes(one), Value::Bytes(two)) => one == two,
        (Value::Duration(one), Value::Duration(two)) => one == two,
        (Value::Timestamp(one), Value::Timestamp(two)) => one == two,
        (Value::List(one), Value::List(two)) => one.equals(two, left),
        (Value::Map(one), Value::Map(two)) => one.equals(two, left),
        (Value::Object(one), Value::Object(two)) => one.equals(two, left),
        (Value::Optional(Some(one)), Value::Optional(Some(two))) => same(one, two, left),
        (Value::Optional(None), Value::Optional(None)) => true,
        (Value::Type(one), Value::Type(two)) | (Value::Format(one), Value::Format(two)) => {
            one == two
        }
        (Value::Ip(one), Value::Ip(two)) => one == two,
        (Value::Cidr(one), Value::Cidr(two)) => one == two,
        (Value::Url(one), Value::Url(two)) => one.text == two.text,
        (Value::Quantity(one), Value::Quantity(two)) => one.nanos == two.nanos,
        (Value::Semver(one), Value::Semver(two)) => one.precedence(two) == Ordering::Equal,
        _ => numbers(one, two) == Some(Ordering::Equal),
    }
}

/// The order of two values. None if they have none.
pub(crate) fn compare(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    match (one, two) {
        (Value::Bool(one), Value::Bool(two)) => Some(one.cmp(two)),
        (Value::Text(one), Value::Text(two)) => Some((**one).cmp(&**two)),
        (Value::Bytes(one), Value::Bytes(two)) => Some(one.cmp(two)),
        (Value::Duration(one), Value::Duration(two)) => Some(one.cmp(two)),
        (Value::Timestamp(one), Value::Timestamp(two)) => Some(one.cmp(two)),
        _ => numbers(one, two),
    }
}

/// The order of two numbers of whatever types. A number that is none has no place.
fn numbers(one: &Value<'_>, two: &Value<'_>) -> Option<Ordering> {
    match (one, two) {
        (Value::Int(one), Value::Int(two)) => Some(one.cmp(two)),
        (Value::Uint(one), Value::Uint(two)) => Some(one.cmp(two)),
        (Value::Int(one), Value::Uint(two)) => Some(i128::from(*one).cmp(&i128::from(*two))),
        (Value::Uint(one), Value::Int(two)) => Some(i128::from(*one).cmp(&i128::from(*two))),
        (Value::Double(one), Value::Double(two)) => one.partial_cmp(two),
        (Value::Double(one), Value::Int(two)) => with_whole(*one, i128::from(*two)),
        (Value::Double(one), Value::Uint(two)) => with_whole(*one, i128::from(*two)),
        (Value::Int(one), Value::Double(two)) => {
            with_whole(*two, i128::from(*one)).map(Ordering::reverse)
        }
        (Value::Uint(one), Value::Double(two)) => {
            with_whole(*two, i128::from(*one)).map(Ordering::reverse)
        }
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what is too large becomes the largest number, which is beyond every whole one here"
)]
fn with_whole(double: f64, whole: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    let floor = double.floor();
    let order = (floor as i128).cmp(&whole);
    Some(if order == Ordering::Equal && double > floor {
        Ordering::Greater
    } else {
        order
    })
}
