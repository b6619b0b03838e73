//! Formats of strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::base64;
use crate::cel::times;

/// Whether a text has a format. One that is not known restricts nothing.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" => times::schema_timestamp(text).is_some(),
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
        "duration" => times::schema_duration(text).is_some(),
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
