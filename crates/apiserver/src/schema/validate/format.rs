//! Formats of strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::base64;

/// Whether a text has a format. One that is not known restricts nothing.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok() && text.contains(['T', 't']),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" => is_uuid(text),
        "byte" => base64::first_illegal(text).is_none(),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
                && !rest.contains(char::is_whitespace)
        }),
        "hostname" => is_hostname(text),
        "email" => text
            .rsplit_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && is_hostname(host)),
        "duration" => duration_nanoseconds(text).is_some(),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}

fn is_uuid(text: &str) -> bool {
    let hex: Vec<char> = text.chars().filter(|c| *c != '-').collect();
    hex.len() == 32 && hex.iter().all(char::is_ascii_hexdigit)
}

fn is_hostname(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text.trim_end_matches('.').split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// The nanoseconds that fit a number of 64 bits.
const MAX_DURATION: f64 = 9.2e18;

/// The units of durations, with their nanoseconds. A unit comes before its prefixes.
const DURATION_UNITS: [(&str, f64); 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
    ("w", 7.0 * 86_400e9),
];

/// Reads numbers with units, as Go writes them: `1h30m`. None for anything else, and for more than
/// 290 years.
pub(crate) fn duration_nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number: f64 = rest[..rest.len() - after.len()].parse().ok()?;
        let mut units = DURATION_UNITS.iter();
        let (unit, nanoseconds) = units.find(|(unit, _)| after.starts_with(unit))?;
        sum += number * nanoseconds;
        rest = &after[unit.len()..];
    }
    if sum >= MAX_DURATION {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is below the limit, and fractions of a nanosecond are dropped"
    )]
    let sum = sum as i64;
    Some(if negative { -sum } else { sum })
}
