//! The schedules of cron jobs.

/// The parts of a schedule in order: name, smallest and largest value.
const FIELDS: [(&str, u32, u32); 5] = [
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 6),
];

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Names of schedules.
const NAMED: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// What is wrong with a schedule, if anything is.
pub(super) fn problem(schedule: &str) -> Option<String> {
    if let Some(duration) = schedule.strip_prefix("@every ") {
        return (!is_duration(duration)).then(|| {
            format!("failed to parse duration {schedule}: time: invalid duration {duration:?}")
        });
    }
    if schedule.starts_with('@') {
        let known = NAMED.contains(&schedule);
        return (!known).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let list = fields.join(" ");
        let count = fields.len();
        return Some(format!(
            "expected exactly 5 fields, found {count}: [{list}]"
        ));
    }
    fields
        .iter()
        .zip(FIELDS)
        .flat_map(|(field, bounds)| field.split(',').map(move |part| (part, bounds)))
        .find_map(|(part, bounds)| part_problem(part, bounds))
}

/// What is wrong with `*`, `?`, `a`, `a-b`, and each with `/step`.
fn part_problem(part: &str, (name, low, high): (&str, u32, u32)) -> Option<String> {
    let (range, step) = match part.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (part, None),
    };
    if let Some(step) = step {
        match step.parse::<u32>() {
            Ok(0) => return Some(format!("step of range should be a positive number: {part}")),
            Ok(_) => {}
            Err(_) => return Some(format!("failed to parse int from {step}: {part}")),
        }
    }
    if range == "*" || range == "?" {
        return None;
    }
    let (start, end) = range.split_once('-').unwrap_or((range, range));
    let (Some(start), Some(end)) = (value(name, start), value(name, end)) else {
        return Some(format!("failed to parse int from {range}: {part}"));
    };
    if start < low {
        return Some(format!(
            "beginning of range ({start}) below minimum ({low}): {part}"
        ));
    }
    if end > high {
        return Some(format!(
            "end of range ({end}) above maximum ({high}): {part}"
        ));
    }
    (start > end)
        .then(|| format!("beginning of range ({start}) beyond end of range ({end}): {part}"))
}

/// A number, or a name that stands for one.
fn value(field: &str, text: &str) -> Option<u32> {
    let names: &[&str] = match field {
        "month" => &MONTHS,
        "day of week" => &DAYS,
        _ => &[],
    };
    let first = u32::from(field == "month");
    let index = names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    match index {
        Some(index) => Some(u32::try_from(index).ok()? + first),
        None => text.parse().ok(),
    }
}

/// Whether a text is a span of time: `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|unit| after.starts_with(unit))
            .max_by_key(|unit| unit.len());
        let (Ok(_), Some(unit)) = (number.parse::<f64>(), unit) else {
            return false;
        };
        rest = &after[unit.len()..];
    }
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for (schedule, why) in [
            ("0 0 1 1 *", None),
            ("*/5 0-12/2 ? JAN-mar mon,WED", None),
            ("@hourly", None),
            ("@every 1h30m", None),
            ("often", Some("expected exactly 5 fields, found 1: [often]")),
            (
                "* * * * * *",
                Some("expected exactly 5 fields, found 6: [* * * * * *]"),
            ),
            (
                "60 * * * *",
                Some("end of range (60) above maximum (59): 60"),
            ),
            (
                "* * 0 * *",
                Some("beginning of range (0) below minimum (1): 0"),
            ),
            (
                "5-1 * * * *",
                Some("beginning of range (5) beyond end of range (1): 5-1"),
            ),
            (
                "*/0 * * * *",
                Some("step of range should be a positive number: */0"),
            ),
            ("a * * * *", Some("failed to parse int from a: a")),
            ("@often", Some("unrecognized descriptor: @often")),
            (
                "@every often",
                Some("failed to parse duration @every often: time: invalid duration \"often\""),
            ),
        ] {
            assert_eq!(problem(schedule).as_deref(), why, "{schedule}");
        }
    }
}
