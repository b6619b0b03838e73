//! The schedules of cron jobs.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

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

/// When something is due, again and again. It reads what [`problem`] finds nothing wrong with.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    times: Times,
    zone: TimeZone,
}

#[derive(Debug, Clone)]
enum Times {
    /// Sets of minutes, hours, days of the month, months and days of the week, as bits, and whether both kinds of days
    /// are restricted: then one of them is enough.
    Fields {
        sets: [u64; 5],
        either_day: bool,
    },
    Every(SignedDuration),
}

/// How far ahead there is a day for every schedule that has one: the 29th of February, at the end of a century.
const FURTHEST_DAYS: usize = 8 * 366 + 1;

/// What named schedules stand for.
const MEANINGS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

// === impl Schedule ===

impl Schedule {
    /// Reads a schedule whose times are those of a zone. None if one of them is not known.
    pub(crate) fn parse(text: &str, zone: &str) -> Option<Self> {
        if problem(text).is_some() {
            return None;
        }
        let zone = if ["", "UTC"].contains(&zone) {
            TimeZone::UTC
        } else {
            TimeZone::get(zone).ok()?
        };
        if let Some(every) = text.strip_prefix("@every ") {
            let every = SignedDuration::from_secs(whole_seconds(every)?.max(1));
            return Some(Self {
                times: Times::Every(every),
                zone,
            });
        }
        let named = MEANINGS.iter().find(|(name, _)| *name == text);
        let text = named.map_or(text, |(_, meaning)| meaning);
        let mut sets = [0; 5];
        let mut open_days = 0;
        for (index, (field, bounds)) in text.split_whitespace().zip(FIELDS).enumerate() {
            for part in field.split(',') {
                sets[index] |= set(part, bounds)?;
            }
            let is_open = field.split(',').any(|part| ["*", "?"].contains(&part));
            open_days += u32::from(is_open && [2, 4].contains(&index));
        }
        Some(Self {
            times: Times::Fields {
                sets,
                either_day: open_days == 0,
            },
            zone,
        })
    }

    /// The first time after `now` of a schedule that counts from `since`.
    pub(crate) fn next(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if let Times::Every(every) = self.times {
            let last = self.last(since, now).unwrap_or(since);
            return last.checked_add(every).ok();
        }
        let mut date = now.to_zoned(self.zone.clone()).date();
        for _ in 0..FURTHEST_DAYS {
            if let Some(found) = self.on(date).find(|time| *time > now) {
                return Some(found);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The last time after `since` that is not after `now`.
    pub(crate) fn last(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if let Times::Every(every) = self.times {
            let times = now.duration_since(since).as_secs() / every.as_secs();
            let times = i32::try_from(times).ok().filter(|times| *times > 0)?;
            return since.checked_add(every.checked_mul(times)?).ok();
        }
        let first = since.to_zoned(self.zone.clone()).date();
        let mut date = now.to_zoned(self.zone.clone()).date();
        while date >= first {
            let due = self.on(date).filter(|time| *time > since && *time <= now);
            if let Some(found) = due.last() {
                return Some(found);
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    /// The times of a day, in order. Those that a change of the clocks leaves out are left out.
    fn on(&self, date: Date) -> impl Iterator<Item = Timestamp> {
        let (sets, either_day) = match self.times {
            Times::Fields { sets, either_day } => (sets, either_day),
            Times::Every(_) => ([0; 5], false),
        };
        let has = |set: u64, number: i8| u32::try_from(number).is_ok_and(|one| set >> one & 1 == 1);
        let [minutes, hours, days, months, weekdays] = sets;
        let by_month = has(days, date.day());
        let by_week = has(weekdays, date.weekday().to_sunday_zero_offset());
        let is_day = if either_day {
            by_month || by_week
        } else {
            by_month && by_week
        };
        let hours = if is_day && has(months, date.month()) {
            hours
        } else {
            0
        };
        let hours = (0..24).filter(move |hour| has(hours, *hour));
        hours
            .flat_map(move |hour| (0..60).map(move |minute| (hour, minute)))
            .filter(move |(_, minute)| has(minutes, *minute))
            .filter_map(move |(hour, minute)| {
                let wanted = date.at(hour, minute, 0, 0);
                let time = wanted.to_zoned(self.zone.clone()).ok()?;
                (time.datetime() == wanted).then(|| time.timestamp())
            })
    }
}

/// The numbers that `*`, `?`, `a`, `a-b`, and each with `/step`, stand for.
fn set(part: &str, (name, low, high): (&str, u32, u32)) -> Option<u64> {
    let (range, step) = part.split_once('/').unwrap_or((part, "1"));
    let step: usize = step.parse().ok().filter(|step| *step > 0)?;
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (value(name, first)?, value(name, last)?),
        None if range == "*" || range == "?" => (low, high),
        None if part.contains('/') => (value(name, range)?, high),
        None => (value(name, range)?, value(name, range)?),
    };
    Some(
        (first..=last.min(63))
            .step_by(step)
            .fold(0, |set, number| set | 1 << number),
    )
}

/// How long a span of time is.
fn whole_seconds(text: &str) -> Option<i64> {
    let (mut rest, mut seconds) = (text, 0_i64);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        // Fractions of a second make no difference.
        let whole: i64 = number.split('.').next()?.parse().ok()?;
        let units = [
            ("ns", 0),
            ("us", 0),
            ("µs", 0),
            ("ms", 0),
            ("s", 1),
            ("m", 60),
            ("h", 3600),
        ];
        let unit = units
            .into_iter()
            .filter(|(unit, _)| after.starts_with(unit));
        let (unit, each) = unit.max_by_key(|(unit, _)| unit.len())?;
        seconds = seconds.checked_add(whole.checked_mul(each)?)?;
        rest = &after[unit.len()..];
    }
    Some(seconds)
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

    #[track_caller]
    fn check(schedule: &str, zone: &str, from: &str, expected: &[&str]) {
        let at = |text: &str| -> Timestamp { text.parse().expect("it is a time") };
        let schedule = Schedule::parse(schedule, zone).expect("it is a schedule");
        let mut now = at(from);
        for next in expected {
            let found = schedule.next(at(from), now);
            assert_eq!(found, Some(at(next)), "{schedule:?} after {now}");
            assert_eq!(schedule.last(now, at(next)), found, "{schedule:?}");
            now = at(next);
        }
    }

    /// From midnight of 2026-01-01, a Thursday.
    #[test]
    fn times() {
        let check = |schedule: &str, expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|text| format!("{text}:00Z")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(schedule, "UTC", "2026-01-01T00:00:00Z", &expected);
        };
        check("*/20 * * * *", &["2026-01-01T00:20", "2026-01-01T00:40"]);
        check("30 8-9,20 * * *", &["2026-01-01T08:30", "2026-01-01T09:30"]);
        check("0 0 ? feb *", &["2026-02-01T00:00", "2026-02-02T00:00"]);
        check("0 0 29 2 *", &["2028-02-29T00:00", "2032-02-29T00:00"]);
        check(
            "0 12 * * mon-tue",
            &["2026-01-05T12:00", "2026-01-06T12:00"],
        );
        // If both kinds of days are restricted, one is enough.
        check("0 0 3 * sun", &["2026-01-03T00:00", "2026-01-04T00:00"]);
        check("@weekly", &["2026-01-04T00:00", "2026-01-11T00:00"]);
        check("@every 1h30m", &["2026-01-01T01:30", "2026-01-01T03:00"]);
        check("5/25 0 * * *", &["2026-01-01T00:05", "2026-01-01T00:30"]);
    }

    #[test]
    fn zones() {
        assert!(Schedule::parse("@daily", "Nowhere/Else").is_none());
        // Without the database of zones nobody has any but UTC.
        if TimeZone::get("Europe/Berlin").is_ok() {
            let start = "2026-03-27T12:00:00Z";
            let days = ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"];
            // On the 29th the clocks leave out that hour.
            check("30 2 * * *", "Europe/Berlin", start, &days);
        }
    }

    #[test]
    fn one_that_never_comes() {
        let never = Schedule::parse("0 0 30 2 *", "UTC").expect("it is a schedule");
        assert_eq!(
            never.next(Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH),
            None
        );
    }
}
