use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::value::{Outcome, Value};

pub(super) const ROOM: [Room; 11] = [
    (&["contains", "startsWith", "endsWith"], part),
    (&["matches"], matches),
    (&["find", "findAll"], find),
    (&["charAt"], char_at),
    (&["lowerAscii", "upperAscii", "trim"], changed),
    (&["replace"], replace),
    (&["split"], split),
    (&["substring"], substring),
    (&["join"], join),
    (&["strings.quote"], quote),
    (&["indexOf", "lastIndexOf"], index_of),
];

/// What is no number of times means every time.
fn times(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn part<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text), Value::Text(part)] = call.args else {
        return call.no_overload();
    };
    Ok(Value::Bool(match call.function {
        "contains" => text.contains(&**part),
        "startsWith" => text.starts_with(&**part),
        _ => text.ends_with(&**part),
    }))
}

fn matches<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text), Value::Text(pattern)] = call.args else {
        return call.no_overload();
    };
    let pattern = call.patterns.get(pattern).map_err(Fault::new)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn find<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text), Value::Text(pattern), rest @ ..] = call.args else {
        return call.no_overload();
    };
    let pattern = call.patterns.get(pattern).map_err(Fault::new)?;
    if call.function == "find" {
        return Ok(Value::text(pattern.find(text).unwrap_or_default()));
    }
    let most = match rest {
        [] => usize::MAX,
        [Value::Int(most)] => times(*most),
        _ => return call.no_overload(),
    };
    let found = pattern.find_all(text, most).into_iter().map(Value::text);
    Ok(Value::list(found.collect()))
}

fn out_of_range(index: i64) -> Fault {
    Fault::new(format!("index out of range: {index}"))
}

fn char_at<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text), Value::Int(index)] = call.args else {
        return call.no_overload();
    };
    let place = usize::try_from(*index).map_err(|_| out_of_range(*index))?;
    let mut characters = text.chars().skip(place);
    match characters.next() {
        Some(c) => Ok(Value::text(c.to_string())),
        None if place == text.chars().count() => Ok(Value::text("")),
        None => Err(out_of_range(*index)),
    }
}

fn changed<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text)] = call.args else {
        return call.no_overload();
    };
    Ok(Value::text(match call.function {
        "lowerAscii" => text.to_ascii_lowercase(),
        "upperAscii" => text.to_ascii_uppercase(),
        _ => text.trim().to_owned(),
    }))
}

fn replace<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Text(text), Value::Text(from), Value::Text(to)] => {
            Ok(Value::text(text.replace(&**from, to)))
        }
        [
            Value::Text(text),
            Value::Text(from),
            Value::Text(to),
            Value::Int(most),
        ] => Ok(Value::text(text.replacen(&**from, to, times(*most)))),
        _ => call.no_overload(),
    }
}

fn split<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (text, separator, most) = match call.args {
        [Value::Text(text), Value::Text(separator)] => (text, separator, usize::MAX),
        [Value::Text(text), Value::Text(separator), Value::Int(most)] => {
            (text, separator, times(*most))
        }
        _ => return call.no_overload(),
    };
    let parts: Vec<Value<'a>> = if most == 0 {
        Vec::new()
    } else if separator.is_empty() {
        // Each character is a part, and the last one all that is left.
        let mut places = text.char_indices().map(|(place, _)| place);
        let starts: Vec<usize> = places.by_ref().take(most).collect();
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        let pairs = starts.iter().zip(ends);
        pairs
            .map(|(start, end)| Value::text(&text[*start..end]))
            .collect()
    } else {
        text.splitn(most, &**separator).map(Value::text).collect()
    };
    Ok(Value::list(parts))
}

fn substring<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (text, start, end) = match call.args {
        [Value::Text(text), Value::Int(start)] => (text, *start, None),
        [Value::Text(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return call.no_overload(),
    };
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let last = end.unwrap_or(length);
    if last < start && end.is_some() {
        return Err(Fault::new(format!(
            "invalid substring range. start: {start}, end: {last}"
        )));
    }
    for place in [start, last] {
        if !(0..=length).contains(&place) {
            return Err(out_of_range(place));
        }
    }
    let characters = text.chars().skip(times(start));
    let part: String = characters.take(times(last - start)).collect();
    Ok(Value::text(part))
}

fn join<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (list, separator) = match call.args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::Text(separator)] => (list, &**separator),
        _ => return call.no_overload(),
    };
    let mut joined = String::new();
    for (index, element) in list.iter().enumerate() {
        let Value::Text(text) = element? else {
            return call.no_overload();
        };
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text);
    }
    Ok(Value::text(joined))
}

fn quote<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::Text(text)] = call.args else {
        return call.no_overload();
    };
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(Value::text(quoted))
}

/// The place of a part, in characters. Lists have the same functions for their elements.
fn index_of<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (text, part, from) = match call.args {
        [Value::List(list), value] => return super::lists::index_of(call, list, value),
        [Value::Text(text), Value::Text(part)] => (text, part, None),
        [Value::Text(text), Value::Text(part), Value::Int(from)] => (text, part, Some(*from)),
        _ => return call.no_overload(),
    };
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(from) = from.filter(|from| !(0..=length).contains(from)) {
        return Err(out_of_range(from));
    }
    let byte_of = |place: i64| {
        let mut places = text.char_indices().map(|(place, _)| place);
        places.nth(times(place)).unwrap_or(text.len())
    };
    let found = if call.function == "indexOf" {
        let start = from.map_or(0, byte_of);
        text[start..].find(&**part).map(|place| start + place)
    } else {
        // The part may begin at the place and go on behind it.
        let end = from.map_or(text.len(), |from| {
            byte_of(from).saturating_add(part.len()).min(text.len())
        });
        let end = (0..=end).rev().find(|end| text.is_char_boundary(*end));
        text[..end.unwrap_or_default()].rfind(&**part)
    };
    let place = found.map(|place| text[..place].chars().count());
    let place = place.and_then(|place| i64::try_from(place).ok());
    Ok(Value::Int(place.unwrap_or(-1)))
}
