//! Quantities: numbers with a suffix, of which one value has many notations.

use serde_json::Value;

/// `mantissa * 10^exponent`, with the smallest mantissa that there is for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    mantissa: i128,
    exponent: i32,
}

/// Suffixes and what they stand for: powers of ten, then powers of two.
const SUFFIXES: &[(&str, i32, u32)] = &[
    ("", 0, 0),
    ("n", -9, 0),
    ("u", -6, 0),
    ("m", -3, 0),
    ("k", 3, 0),
    ("M", 6, 0),
    ("G", 9, 0),
    ("T", 12, 0),
    ("P", 15, 0),
    ("E", 18, 0),
    ("Ki", 0, 10),
    ("Mi", 0, 20),
    ("Gi", 0, 30),
    ("Ti", 0, 40),
    ("Pi", 0, 50),
    ("Ei", 0, 60),
];

/// The quantity that a text or a number says; `None` if it says none, or one that is out of all
/// proportion.
pub(super) fn of(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    // A second dot is no digit, and is refused here.
    let mantissa: i128 = digits.parse().ok()?;

    let (ten, two) = scale(suffix)?;
    let mantissa = mantissa.checked_mul(1 << two)?;
    let exponent = ten.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    Some(reduced(
        if negative { -mantissa } else { mantissa },
        exponent,
    ))
}

/// The powers of ten and of two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    if let Some((_, ten, two)) = SUFFIXES.iter().find(|(name, ..)| *name == suffix) {
        return Some((*ten, *two));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((exponent.parse().ok()?, 0))
}

fn reduced(mut mantissa: i128, mut exponent: i32) -> Quantity {
    if mantissa == 0 {
        exponent = 0;
    }
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent = exponent.saturating_add(1);
    }
    Quantity { mantissa, exponent }
}
