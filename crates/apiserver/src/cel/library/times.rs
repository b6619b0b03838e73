use jiff::civil::Weekday;

use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::times::{NANOSECONDS, in_zone};
use crate::cel::value::{Outcome, Value};

pub(super) const ROOM: [Room; 1] = [(
    &[
        "getFullYear",
        "getMonth",
        "getDayOfYear",
        "getDayOfMonth",
        "getDate",
        "getDayOfWeek",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ],
    part,
)];

fn part<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (time, zone) = match call.args {
        [Value::Duration(duration)] => return duration_part(call, *duration),
        [Value::Timestamp(time)] => (time, ""),
        [Value::Timestamp(time), Value::Text(zone)] => (time, &**zone),
        _ => return call.no_overload(),
    };
    let Some(time) = in_zone(*time, zone) else {
        return Err(Fault::new(format!("unknown time zone {zone}")));
    };
    let number = match call.function {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month()) - 1,
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDate" => i64::from(time.day()),
        "getDayOfWeek" => i64::from(time.weekday().since(Weekday::Sunday)),
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        _ => i64::from(time.subsec_nanosecond() / 1_000_000),
    };
    Ok(Value::Int(number))
}

/// All of a duration in one unit.
fn duration_part<'a>(call: &Call<'a, '_>, duration: i64) -> Outcome<'a> {
    Ok(Value::Int(match call.function {
        "getHours" => duration / (3600 * NANOSECONDS),
        "getMinutes" => duration / (60 * NANOSECONDS),
        "getSeconds" => duration / NANOSECONDS,
        "getMilliseconds" => duration / 1_000_000,
        _ => return call.no_overload(),
    }))
}
