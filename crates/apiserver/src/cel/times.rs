//! Durations and points in time, as Go reads and writes them.

use std::fmt::Write as _;

use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

pub(crate) const NANOSECONDS: i64 = 1_000_000_000;

/// The units of durations, with their nanoseconds. A unit comes before its prefixes.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", NANOSECONDS),
    ("m", 60 * NANOSECONDS),
    ("h", 3600 * NANOSECONDS),
];

/// The nanoseconds of a duration such as `1h30m`. None for anything else, and for what does not
/// fit.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let mut units = UNITS.iter();
        let (_, size) = units.find(|(known, _)| *known == unit)?;
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        sum = sum.checked_add(whole.checked_mul(i128::from(*size))?)?;
        sum = sum.checked_add(part_of(fraction, *size))?;
        rest = after;
    }
    i64::try_from(sum * sign).ok()
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// A fraction of a unit in nanoseconds, rounded down.
fn part_of(fraction: &str, size: i64) -> i128 {
    let (mut sum, mut scale) = (0i128, 1i128);
    // More digits make no difference of a nanosecond.
    for digit in fraction.bytes().take(18) {
        sum = sum * 10 + i128::from(digit - b'0');
        scale *= 10;
    }
    sum * i128::from(size) / scale
}

/// A duration as text: seconds with a fraction as short as it can be.
pub(crate) fn shown_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let whole = nanoseconds.unsigned_abs() / NANOSECONDS.unsigned_abs();
    let fraction = nanoseconds.unsigned_abs() % NANOSECONDS.unsigned_abs();
    if fraction == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{fraction:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}

/// A point in time as RFC 3339 writes it, in the form that Go reads.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let form = |place: usize, wanted: u8| bytes.get(place) == Some(&wanted);
    let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !text.is_ascii() || !signs.iter().all(|(place, sign)| form(*place, *sign)) {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i16> {
        let digits = text.get(from..to)?;
        let right = digits.bytes().all(|c| c.is_ascii_digit());
        right.then(|| digits.parse().ok()).flatten()
    };
    let two = |from: usize| number(from, from + 2).and_then(|number| i8::try_from(number).ok());
    let date = jiff::civil::Date::new(number(0, 4)?, two(5)?, two(8)?).ok()?;
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let rest = text.get(19..)?;
    let (nanosecond, zone) = match rest.strip_prefix(['.', ',']) {
        None => (0, rest),
        Some(after) => {
            let (fraction, zone) = digits(after);
            if fraction.is_empty() {
                return None;
            }
            (i32::try_from(part_of(fraction, NANOSECONDS)).ok()?, zone)
        }
    };
    let time = jiff::civil::Time::new(hour, minute, second, nanosecond).ok()?;
    let offset = if zone == "Z" {
        Offset::UTC
    } else {
        offset(zone)?
    };
    // Before the first year there is no time.
    let timestamp = offset.to_timestamp(date.to_datetime(time)).ok()?;
    is_allowed(timestamp).then_some(timestamp)
}

/// The years from 1 to 9999.
pub(crate) fn is_allowed(timestamp: Timestamp) -> bool {
    (1..=9999).contains(&timestamp.to_zoned(TimeZone::UTC).year())
}

/// `+02:00` and the like.
fn offset(text: &str) -> Option<Offset> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let number = |digits: &str, limit: i32| {
        let right = digits.len() == 2 && digits.bytes().all(|c| c.is_ascii_digit());
        let number = right.then(|| digits.parse::<i32>().ok()).flatten();
        number.filter(|number| *number <= limit)
    };
    let seconds = number(hours, 24)? * 3600 + number(minutes, 59)? * 60;
    Offset::from_seconds(sign * seconds).ok()
}

/// A point in time as text.
pub(crate) fn shown_timestamp(timestamp: Timestamp) -> String {
    let zoned = timestamp.to_zoned(TimeZone::UTC);
    let mut shown = zoned.strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let nanosecond = zoned.subsec_nanosecond();
    if nanosecond != 0 {
        let fraction = format!("{nanosecond:09}");
        // Writing to a text does not fail.
        let _ = write!(shown, ".{}", fraction.trim_end_matches('0'));
    }
    shown.push('Z');
    shown
}

/// A point in time as a clock in a place shows it: `Europe/Berlin`, `UTC`, `-07:00`.
pub(crate) fn in_zone(timestamp: Timestamp, zone: &str) -> Option<Zoned> {
    if zone.is_empty() || zone == "UTC" {
        return Some(timestamp.to_zoned(TimeZone::UTC));
    }
    let signed = if zone.starts_with(['+', '-']) {
        zone.to_owned()
    } else {
        format!("+{zone}")
    };
    let zone = match offset(&signed) {
        Some(offset) => TimeZone::fixed(offset),
        None => TimeZone::get(zone).ok()?,
    };
    Some(timestamp.to_zoned(zone))
}

/// A later point in time, or an earlier one.
pub(crate) fn shifted(timestamp: Timestamp, nanoseconds: i64) -> Option<Timestamp> {
    let by = SignedDuration::from_nanos(nanoseconds);
    let shifted = timestamp.checked_add(by).ok()?;
    is_allowed(shifted).then_some(shifted)
}

/// From a day to a time: the day's start.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    timestamp(&format!("{text}T00:00:00Z"))
}

/// The units that a schema's `duration` knows beside Go's, in words too.
const SCHEMA_UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano", "nanosecond"], 1),
    (&["us", "µs", "micro", "microsecond"], 1_000),
    (&["ms", "milli", "millisecond"], 1_000_000),
    (&["s", "sec", "second"], NANOSECONDS),
    (&["m", "min", "minute"], 60 * NANOSECONDS),
    (&["h", "hr", "hour"], 3600 * NANOSECONDS),
    (&["d", "day"], 24 * 3600 * NANOSECONDS),
    (&["w", "wk", "week"], 7 * 24 * 3600 * NANOSECONDS),
];

/// A text of the schema format `duration`: as Go has it, or numbers with units wherever they stand.
pub(crate) fn schema_duration(text: &str) -> Option<i64> {
    if let Some(duration) = duration(text) {
        return Some(duration);
    }
    let mut sum: Option<i64> = None;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (number, after) = digits(&rest[start..]);
        rest = after;
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic());
        let word = &after[..end.unwrap_or(after.len())];
        let word = word.to_lowercase();
        let one = word.strip_suffix('s').filter(|one| !one.is_empty());
        let mut units = SCHEMA_UNITS.iter();
        let unit = units.find(|(names, _)| {
            names.contains(&word.as_str()) || one.is_some_and(|one| names.contains(&one))
        });
        if let Some((_, size)) = unit {
            let part = number.parse::<i64>().ok()?.checked_mul(*size)?;
            sum = Some(sum.unwrap_or_default().checked_add(part)?);
        }
    }
    sum
}

/// A text of the schema format `date-time`, which may also have lower case letters.
pub(crate) fn schema_timestamp(text: &str) -> Option<Timestamp> {
    timestamp(&text.to_ascii_uppercase())
}
