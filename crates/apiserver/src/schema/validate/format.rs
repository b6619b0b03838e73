//! Formats of strings, as the server's library reads them.

mod codes;
mod links;
mod times;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;

use crate::cel::times::schema_duration;

/// Formats that the server knows, without dashes. Some of them say nothing about a text.
const KNOWN: [&str; 31] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "",
];

/// Whether the server knows a format. What it does not know it does not check.
pub(crate) fn is_known(format: &str) -> bool {
    KNOWN.contains(&&*plain(format))
}

/// The format that a server checks of a schema; empty if it is none, or none for values of its type.
pub(super) fn checked(schema: &Value) -> &str {
    let Some(format) = schema["format"].as_str() else {
        return "";
    };
    let name = plain(format);
    let own = schema["type"].as_str().unwrap_or_default();
    let fits = match own {
        _ if schema["x-kubernetes-int-or-string"] == true => is_of_texts(&name),
        "" | "string" => is_of_texts(&name),
        "integer" => INTEGERS.contains(&format),
        "number" => NUMBERS.contains(&format),
        _ => false,
    };
    if fits { format } else { "" }
}

const INTEGERS: [&str; 2] = ["int32", "int64"];
const NUMBERS: [&str; 2] = ["float", "double"];

fn is_of_texts(name: &str) -> bool {
    KNOWN.contains(&name) && !INTEGERS.contains(&name) && !NUMBERS.contains(&name)
}

/// Formats are told apart without their dashes.
fn plain(format: &str) -> Cow<'_, str> {
    if format.contains('-') {
        format.replace('-', "").into()
    } else {
        format.into()
    }
}

/// Whether a text has a format. One that is not known restricts nothing.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match &*plain(format) {
        "datetime" => times::is_date_time(text),
        "date" => times::is_date(text),
        "duration" => schema_duration(text).is_some(),
        "ipv4" => text.contains('.') && lenient_address(text).is_some(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uri" => links::is_uri(text),
        "hostname" => links::is_hostname(text),
        "email" => links::is_email(text),
        "uuid" => codes::is_uuid(text, None),
        "uuid3" => codes::is_uuid(text, Some('3')),
        "uuid4" => codes::is_uuid(text, Some('4')),
        "uuid5" => codes::is_uuid(text, Some('5')),
        "byte" => codes::is_base64(text),
        "mac" => codes::is_mac(text),
        "bsonobjectid" => text.len() == 24 && codes::is_hex(text),
        "isbn" => codes::is_isbn10(text) || codes::is_isbn13(text),
        "isbn10" => codes::is_isbn10(text),
        "isbn13" => codes::is_isbn13(text),
        "creditcard" => codes::is_credit_card(text),
        "ssn" => codes::is_ssn(text),
        "hexcolor" => codes::is_hex_color(text),
        "rgbcolor" => codes::is_rgb_color(text),
        "k8sshortname" => is_label(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_part),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let max = match lenient_address(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let is_number = !bits.is_empty() && bits.bytes().all(|c| c.is_ascii_digit());
    is_number && bits.parse::<u8>().is_ok_and(|bits| bits <= max)
}

/// An address, also with zeros in front of the numbers of version 4.
fn lenient_address(text: &str) -> Option<IpAddr> {
    let numbers: Vec<&str> = text.split('.').collect();
    let is_plain =
        |number: &&str| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    if text.contains(':') || !numbers.iter().all(is_plain) {
        return text.parse().ok();
    }
    let numbers = numbers.iter().map(|number| number.trim_start_matches('0'));
    let numbers: Vec<&str> = numbers
        .map(|number| if number.is_empty() { "0" } else { number })
        .collect();
    numbers.join(".").parse().ok()
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

fn is_part(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, taken: &[&str], refused: &[&str]) {
        for text in taken {
            assert!(fits(format, text), "{format} {text:?}");
        }
        for text in refused {
            assert!(!fits(format, text), "{format} {text:?}");
        }
    }

    #[test]
    fn times_and_durations() {
        check(
            "date-time",
            &["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5+01:00"],
            &[
                "2024-02-29T12:00:00",
                "2023-02-29T12:00:00Z",
                "2024-02-29T24:00:00Z",
                "",
            ],
        );
        check("date", &["2024-02-29"], &["2024-2-9", "2023-02-29", ""]);
        check(
            "duration",
            &["1h2m3.5s", "5 minutes", "P1D", "2w", "-1h", "0", "10 µs"],
            &["1", "h", "1y", ""],
        );
    }

    #[test]
    fn addresses() {
        let both = ["010.0.0.1", "::ffff:1.2.3.4", "1.2.3.4"];
        check(
            "ipv4",
            &both,
            &["1.2.3", "256.1.1.1", "::1", "1.2.3.4 ", ""],
        );
        check(
            "ipv6",
            &["::1", "::ffff:1.2.3.4"],
            &["1.2.3.4", "::1%a", ""],
        );
        check(
            "cidr",
            &["010.0.0.0/8", "10.0.0.0/08", "::/128"],
            &["10.0.0.0/33", "10.0.0.0", "::/129", "10.0.0/8"],
        );
    }

    #[test]
    fn hosts_links_and_mail() {
        check(
            "hostname",
            &["a.example.com", "a"],
            &["a.", "1.2.3.4", "a_b.example.com", ""],
        );
        check(
            "uri",
            &[
                "https://x/y?z#f",
                "/p",
                "urn:a:b",
                "//h/p",
                "*",
                "http://h:80/",
            ],
            &[
                "rel",
                "http://a b",
                "http://[::1",
                "http://h:x/",
                "/%zz",
                ":a",
                "",
            ],
        );
        check(
            "email",
            &[
                "me@example.com",
                "Me <me@example.com>",
                "me@localhost",
                "me@[1.2.3.4]",
            ],
            &["me@", "@x", "a b@x.com", "", "a..b@x", ".a@x"],
        );
    }

    #[test]
    fn codes_and_numbers() {
        check("byte", &["YWJj", "YWI="], &["YWI", "", "YW*j", "__4="]);
        check(
            "isbn",
            &["0-306-40615-2", "978-0-306-40615-7"],
            &["0-306-40615-3", "x"],
        );
        check(
            "creditcard",
            &["4111 1111 1111 1111"],
            &["4111 1111 1111 1112", ""],
        );
        check("hexcolor", &["#fff", "a0b1c2"], &["#ff", "red"]);
        check(
            "rgbcolor",
            &["rgb(0, 255,9)"],
            &["rgb(256,0,0)", "rgb(0,0)", "rgb(01,0,0)"],
        );
        check("ssn", &["111-22-3333", "111 22 3333"], &["111223333", ""]);
        check("k8s-short-name", &["a-b"], &["A_b", "a.b", ""]);
        check("k8s-long-name", &["a.b"], &["a,b", ""]);
        assert!(is_known("date-time") && is_known("int32") && !is_known("uint32"));
    }
}
