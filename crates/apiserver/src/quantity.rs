//! Amounts of resources: `500m`, `1Gi`, `1e3`. One amount can be written in many ways; objects show
//! the shortest one without a fraction.

/// The smallest part of one that is told apart.
const NANOS: i128 = 1_000_000_000;

/// The largest amount.
const MAX: i128 = i64::MAX as i128 * NANOS;

/// What an amount that cannot be read is told.
pub(crate) const PROBLEM: &str = "quantities must match the regular expression \
                                  '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Suffixes of powers of ten, by their exponent.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Suffixes of powers of two, by their exponent.
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// The largest binary suffix that can stand without digits.
const MAX_BARE_SHIFT: u32 = 40;

/// How an amount is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Decimal,
    Binary,
    Exponent,
}

/// The one way to write an amount that objects show. None for what is no amount.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (nanos, style) = parse(text)?;
    let small = nanos.abs() < 1024 * NANOS;
    Some(match style {
        Style::Binary if !small && nanos % NANOS == 0 => binary(nanos / NANOS),
        Style::Binary | Style::Decimal => decimal(nanos, |exponent| {
            let known = DECIMAL.iter().find(|(_, power)| *power == exponent);
            known.map_or_else(String::new, |(suffix, _)| (*suffix).to_owned())
        }),
        Style::Exponent => decimal(nanos, |exponent| match exponent {
            0 => String::new(),
            power => format!("e{power}"),
        }),
    })
}

/// An amount in billionths. None for what is no amount.
pub(crate) fn nanos(text: &str) -> Option<i128> {
    parse(text).map(|(nanos, _)| nanos)
}

/// Whether an amount is more than nothing.
pub(crate) fn is_positive(text: &str) -> bool {
    parse(text).is_some_and(|(nanos, _)| nanos > 0)
}

/// Whether an amount has no fraction. What is no amount has none.
pub(crate) fn is_whole(text: &str) -> bool {
    parse(text).is_none_or(|(nanos, _)| nanos % NANOS == 0)
}

/// Whether one amount is less than another. What is no amount is not less than anything.
pub(crate) fn is_less(one: &str, other: &str) -> bool {
    match (parse(one), parse(other)) {
        (Some((one, _)), Some((other, _))) => one < other,
        (None, _) | (_, None) => false,
    }
}

/// An amount in billionths, and how it was written. What is finer is rounded away from zero, what is
/// larger than the largest is that.
fn parse(text: &str) -> Option<(i128, Style)> {
    let (negative, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if text.is_empty() || fraction.contains('.') {
        return None;
    }
    let (style, power, shift) = scale(suffix)?;
    // Without digits it is nothing of that. Servers do not get to that for the largest suffixes.
    let is_bare = whole.is_empty() && fraction.is_empty();
    if is_bare && shift > MAX_BARE_SHIFT {
        return None;
    }
    // Trailing zeros say nothing, and would only make the numbers large.
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let power = power
        .checked_add(9)?
        .checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let nanos = if digits.is_empty() {
        0
    } else {
        scaled(digits, power, shift).map_or(MAX, |nanos| nanos.min(MAX))
    };
    Some((if negative { -nanos } else { nanos }, style))
}

/// What a suffix stands for: a power of ten and a power of two.
fn scale(suffix: &str) -> Option<(Style, i32, u32)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Style::Decimal, *power, 0));
    }
    if let Some((_, shift)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some((Style::Binary, 0, *shift));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let power: i32 = exponent.parse().ok()?;
    Some((Style::Exponent, power, 0))
}

/// `digits * 10^power * 2^shift`, rounded up. None if that is too large.
fn scaled(digits: &str, power: i32, shift: u32) -> Option<i128> {
    let mut number: i128 = digits.parse().ok()?;
    number = number.checked_mul(1 << shift)?;
    if power >= 0 {
        return number.checked_mul(10_i128.checked_pow(power.unsigned_abs())?);
    }
    match 10_i128.checked_pow(power.unsigned_abs()) {
        Some(divisor) => Some(number / divisor + i128::from(number % divisor != 0)),
        None => Some(1),
    }
}

/// An integer with the largest suffix of powers of ten that leaves it one.
fn decimal(nanos: i128, suffix: impl Fn(i32) -> String) -> String {
    let (mut number, mut exponent) = (nanos, -9);
    while number != 0 && number % 1000 == 0 && exponent < 18 {
        number /= 1000;
        exponent += 3;
    }
    if number == 0 {
        return "0".to_owned();
    }
    format!("{number}{}", suffix(exponent))
}

/// An integer with the largest suffix of powers of two that leaves it one.
fn binary(amount: i128) -> String {
    let (mut number, mut suffix) = (amount, "");
    for (next, _) in BINARY {
        if number % 1024 != 0 {
            break;
        }
        number /= 1024;
        suffix = next;
    }
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_one_form() {
        for (text, expected) in [
            ("0", "0"),
            ("0.0", "0"),
            ("0Ki", "0"),
            ("1", "1"),
            ("+1", "1"),
            ("-1.5", "-1500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("100000", "100k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("0.5Ki", "512"),
            ("0.0001Ki", "102400u"),
            ("1025.5Ki", "1050112"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e4", "120e3"),
            ("1E", "1E"),
            ("1Ei", "1Ei"),
            ("0.1n", "1n"),
            ("1e-30", "1e-9"),
            ("99999999999999999999", "9223372036854775807"),
            ("100E", "9223372036854775807"),
            ("1e99", "9223372036854775807"),
            ("Gi", "0"),
            ("-Ti", "0"),
            ("m", "0"),
            ("E", "0"),
            ("e3", "0"),
            (".", "0"),
            ("-", "0"),
            (".Ki", "0"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount() {
        for text in [
            "", "a", "e", "K", "1x", "1.2.3", "1 Gi", "1ki", "1e", "1e1.5", "--1", "Pi", "Ei",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_compared_by_value() {
        assert!(is_less("500m", "1") && !is_less("1000m", "1") && !is_less("x", "1"));
        assert!(is_positive("1n") && !is_positive("0Gi") && !is_positive("-1"));
    }
}
