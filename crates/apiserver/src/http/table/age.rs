//! Spans of time as tables show them: coarser the longer they are.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago a time was; `<unknown>` if there is none, `<invalid>` if it is not a time.
pub(super) fn since(time: &Value, now: Timestamp) -> String {
    let Some(text) = time.as_str().filter(|text| !text.is_empty()) else {
        return "<unknown>".to_owned();
    };
    match text.parse::<Timestamp>() {
        Ok(time) => span(now.as_second() - time.as_second()),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// How long it took from one time to another. None unless both are there.
pub(super) fn between(start: &Value, end: &Value) -> Option<String> {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    Some(span(time(end)?.as_second() - time(start)?.as_second()))
}

/// A number of seconds in at most two units. Clocks that differ by a second are no reason to show
/// nonsense, more is.
pub(super) fn span(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    let (first, second) = (seconds / large, seconds % large / small);
    if second == 0 {
        format!("{first}{large_name}")
    } else {
        format!("{first}{large_name}{second}{small_name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_get_coarser() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (2 * HOUR + 59 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 61, "7h1m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (7 * DAY + 23 * HOUR, "7d23h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (8 * YEAR + 3 * DAY, "8y"),
        ] {
            assert_eq!(span(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn ages_of_times_and_of_what_is_none() {
        let now: Timestamp = "2026-01-01T00:01:05Z".parse().unwrap();
        assert_eq!(since(&json!("2026-01-01T00:00:00Z"), now), "65s");
        assert_eq!(since(&json!("2026-01-01T00:00:00.250000Z"), now), "65s");
        assert_eq!(since(&json!("yesterday"), now), "<invalid>");
        assert_eq!(since(&Value::Null, now), "<unknown>");
        let (start, end) = (json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:03:00Z"));
        assert_eq!(between(&start, &end).as_deref(), Some("3m"));
        assert_eq!(between(&Value::Null, &end), None);
    }
}
