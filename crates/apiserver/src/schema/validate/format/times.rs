//! Times and spans of time.

/// A day and a time of day with its zone.
pub(super) fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let Some((date, time)) = text.split_once('t') else {
        return false;
    };
    let (Some(clock), Some(rest)) = (time.get(..8), time.get(8..)) else {
        return false;
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return false;
    };
    let in_range = two_digits(hours, 23) && two_digits(minutes, 59) && two_digits(seconds, 59);
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    is_date(date) && in_range && is_zone(zone)
}

fn is_zone(zone: &str) -> bool {
    let Some((hours, minutes)) = zone
        .strip_prefix(['+', '-'])
        .and_then(|offset| offset.split_once(':'))
    else {
        return zone == "z";
    };
    two_digits(hours, 99) && two_digits(minutes, 99)
}

fn two_digits(text: &str, most: u8) -> bool {
    text.len() == 2
        && text.bytes().all(|c| c.is_ascii_digit())
        && text.parse::<u8>().is_ok_and(|number| number <= most)
}

pub(super) fn is_date(text: &str) -> bool {
    let digits = |c: (usize, u8)| match c.0 {
        4 | 7 => c.1 == b'-',
        _ => c.1.is_ascii_digit(),
    };
    text.len() == 10
        && text.bytes().enumerate().all(digits)
        && text.parse::<jiff::civil::Date>().is_ok()
}
