//! Formats of strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a text has a format. One that is not known restricts nothing.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok() && text.contains(['T', 't']),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" => is_uuid(text),
        "byte" => decode_base64(text).is_some(),
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

/// Reads base64 with padding, as Go does: line breaks are skipped. None for anything else.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.bytes().filter(|c| !b"\r\n".contains(c)).collect();
    let padding = text.iter().rev().take_while(|c| **c == b'=').count();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in text[..text.len() - padding].chunks(4) {
        let mut bits = 0_u32;
        for place in 0..4 {
            let digit = group.get(place).map_or(Some(0), |c| base64_digit(*c))?;
            bits = bits << 6 | u32::from(digit);
        }
        let [_, three @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&three[..group.len() - 1]);
    }
    Some(bytes)
}

fn base64_digit(c: u8) -> Option<u8> {
    match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
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

/// The nanoseconds that fit a number of 64 bits.
const MAX_DURATION: f64 = 9.2e18;
