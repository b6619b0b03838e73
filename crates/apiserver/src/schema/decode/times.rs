//! Times of built-in kinds: how they are stored, and what the server says of those that it cannot read.

use jiff::Timestamp;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// A time as it is stored: in UTC, with seconds or with exactly six digits of a second.
///
/// # Errors
///
/// What the server says of a text that it cannot read.
pub(super) fn stored(text: &str, micro: bool) -> Result<String, String> {
    if let Some(problem) = problem(text, micro) {
        return Err(problem);
    }
    let layout = if micro { MICRO_LAYOUT } else { LAYOUT };
    let time: Timestamp = text
        .parse()
        .map_err(|_| format!("parsing time {text:?} as {layout:?}: out of range"))?;
    let form = if micro {
        "%Y-%m-%dT%H:%M:%S%.6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(time.strftime(form).to_string())
}

/// A part of a layout: its name, how many digits it has, the largest value and what it is called.
const PARTS: [(&str, usize, u32, &str); 11] = [
    ("2006", 4, 9999, ""),
    ("-", 0, 0, ""),
    ("01", 2, 12, "month"),
    ("-", 0, 0, ""),
    ("02", 2, 31, "day"),
    ("T", 0, 0, ""),
    ("15", 2, 23, "hour"),
    (":", 0, 0, ""),
    ("04", 2, 59, "minute"),
    (":", 0, 0, ""),
    ("05", 2, 59, "second"),
];

/// What the server says of a text that is no time.
fn problem(text: &str, micro: bool) -> Option<String> {
    let layout = if micro { MICRO_LAYOUT } else { LAYOUT };
    let unreadable = |rest: &str, part: &str| {
        Some(format!(
            "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"
        ))
    };
    let mut rest = text;
    for (part, digits, most, name) in PARTS {
        if digits == 0 {
            match rest.strip_prefix(part) {
                Some(after) => rest = after,
                None => return unreadable(rest, part),
            }
            continue;
        }
        let number = rest.get(..digits);
        let number = number.filter(|text| text.bytes().all(|c| c.is_ascii_digit()));
        let Some(number) = number.and_then(|text| text.parse::<u32>().ok()) else {
            return unreadable(rest, part);
        };
        let least = u32::from(["month", "day"].contains(&name));
        if !(least..=most).contains(&number) {
            return Some(format!("parsing time {text:?}: {name} out of range"));
        }
        rest = &rest[digits..];
    }
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if micro {
        if digits < 6 {
            return unreadable(rest, ".000000");
        }
        rest = &rest[7..];
    } else if digits > 0 {
        rest = &rest[digits + 1..];
    }
    let Some(after) = zone(rest) else {
        return unreadable(rest, "Z07:00");
    };
    if !after.is_empty() {
        return Some(format!("parsing time {text:?}: extra text: {after:?}"));
    }
    // All parts are in range: what is left is a day that its month does not have.
    let is_time = text.parse::<Timestamp>().is_ok();
    (!is_time).then(|| format!("parsing time {text:?}: day out of range"))
}

/// What stands behind a zone.
fn zone(text: &str) -> Option<&str> {
    if let Some(after) = text.strip_prefix('Z') {
        return Some(after);
    }
    let offset = text.get(..6)?;
    let fits = offset.bytes().enumerate().all(|(place, c)| match place {
        0 => c == b'+' || c == b'-',
        3 => c == b':',
        _ => c.is_ascii_digit(),
    });
    fits.then(|| &text[6..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(
            stored(text, false).unwrap_or_else(|problem| problem),
            expected
        );
    }

    #[test]
    fn times_that_are_stored() {
        check("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z");
        check("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05Z");
        let micro = stored("2026-01-02T03:04:05.000006Z", true);
        assert_eq!(micro.as_deref(), Ok("2026-01-02T03:04:05.000006Z"));
    }

    #[test]
    fn what_is_said_of_others() {
        let layout = "2006-01-02T15:04:05Z07:00";
        check(
            "x",
            &format!("parsing time \"x\" as \"{layout}\": cannot parse \"x\" as \"2006\""),
        );
        check(
            "2026-01-02",
            &format!("parsing time \"2026-01-02\" as \"{layout}\": cannot parse \"\" as \"T\""),
        );
        check(
            "2026-13-02T03:04:05Z",
            "parsing time \"2026-13-02T03:04:05Z\": month out of range",
        );
        check(
            "2026-02-30T03:04:05Z",
            "parsing time \"2026-02-30T03:04:05Z\": day out of range",
        );
        check(
            "2026-01-02T03:04:05Zx",
            "parsing time \"2026-01-02T03:04:05Zx\": extra text: \"x\"",
        );
        let micro = "2006-01-02T15:04:05.000000Z07:00";
        assert_eq!(
            stored("2026-01-02T03:04:05Z", true),
            Err(format!(
                "parsing time \"2026-01-02T03:04:05Z\" as \"{micro}\": cannot parse \"Z\" as \
                 \".000000\""
            ))
        );
    }
}
