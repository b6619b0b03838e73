use std::cmp::Ordering;

use super::operators::plus;
use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::operators::SORT_BY_KEYS;
use crate::cel::value::{Key, List, Outcome, Value, compare, equal};

pub(super) const ROOM: [Room; 14] = [
    (&["isSorted"], is_sorted),
    (&["sum"], sum),
    (&["min", "max"], extreme),
    (&["first", "last"], end),
    (&["slice"], slice),
    (&["flatten"], flatten),
    (&["lists.range"], range),
    (&["distinct"], distinct),
    (&["reverse"], reverse),
    (&["sort"], sort),
    (&[SORT_BY_KEYS], sort_by_keys),
    (&["sets.contains"], |call| {
        let (one, two) = two_lists(call)?;
        Ok(Value::Bool(has_all(&one, &two)))
    }),
    (&["sets.equivalent"], |call| {
        let (one, two) = two_lists(call)?;
        Ok(Value::Bool(has_all(&one, &two) && has_all(&two, &one)))
    }),
    (&["sets.intersects"], |call| {
        let (one, two) = two_lists(call)?;
        let both = |value| two.iter().any(|other| equal(value, other));
        Ok(Value::Bool(one.iter().any(both)))
    }),
];

/// `lists.range` makes no longer lists.
const MAX_RANGE: i64 = 1_000_000;

/// `flatten` makes no longer ones.
const MAX_FLAT: usize = 1_000_000;

fn list_of<'a>(call: &Call<'a, '_>) -> Result<Vec<Value<'a>>, Fault> {
    match call.args.first() {
        Some(Value::List(list)) => list.to_vec(),
        _ => call.no_overload().map(|_| Vec::new()),
    }
}

fn two_lists<'a>(call: &Call<'a, '_>) -> Result<(Vec<Value<'a>>, Vec<Value<'a>>), Fault> {
    match call.args {
        [Value::List(one), Value::List(two)] => Ok((one.to_vec()?, two.to_vec()?)),
        _ => call.no_overload().map(|_| (Vec::new(), Vec::new())),
    }
}

fn has_all(values: &[Value<'_>], wanted: &[Value<'_>]) -> bool {
    let has = |wanted| values.iter().any(|value| equal(value, wanted));
    wanted.iter().all(has)
}

fn is_sorted<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let list = list_of(call)?;
    for pair in list.windows(2) {
        match compare(&pair[0], &pair[1]) {
            None => return call.no_overload(),
            Some(Ordering::Greater) => return Ok(Value::Bool(false)),
            Some(_) => {}
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let mut list = list_of(call)?.into_iter();
    // Of no elements nothing is known but that it is no text.
    let Some(mut sum) = list.next() else {
        return Ok(Value::Int(0));
    };
    for value in list {
        sum = plus(call, &sum, &value)?;
    }
    Ok(sum)
}

fn extreme<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let mut list = list_of(call)?.into_iter();
    let Some(mut found) = list.next() else {
        let function = call.function;
        return Err(Fault::new(format!("{function} called on empty list")));
    };
    let better = if call.function == "min" {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    for value in list {
        match compare(&value, &found) {
            None => return call.no_overload(),
            Some(order) if order == better => found = value,
            Some(_) => {}
        }
    }
    Ok(found)
}

fn end<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::List(list)] = call.args else {
        return call.no_overload();
    };
    let index = if call.function == "first" {
        Some(0)
    } else {
        list.len().checked_sub(1)
    };
    match index.and_then(|index| list.get(index)) {
        Some(element) => Ok(Value::some(element?)),
        None => Ok(Value::none()),
    }
}

/// Where a value is in a list.
pub(super) fn index_of<'a>(call: &Call<'a, '_>, list: &List<'a>, value: &Value<'a>) -> Outcome<'a> {
    let list = list.to_vec()?;
    let same = |element: &Value<'a>| equal(element, value);
    let place = if call.function == "indexOf" {
        list.iter().position(same)
    } else {
        list.iter().rposition(same)
    };
    let place = place.and_then(|place| i64::try_from(place).ok());
    Ok(Value::Int(place.unwrap_or(-1)))
}

fn slice<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = call.args else {
        return call.no_overload();
    };
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let why = if *start < 0 || *end < 0 {
        format!("cannot slice({start}, {end}), negative indexes not supported")
    } else if start > end {
        format!("cannot slice({start}, {end}), start index must be less than or equal to end index")
    } else if length < *end {
        format!("cannot slice({start}, {end}), list is length {length}")
    } else {
        let part = list.to_vec()?;
        let places = |index: i64| usize::try_from(index).unwrap_or_default();
        return Ok(Value::list(part[places(*start)..places(*end)].to_vec()));
    };
    Err(Fault::new(why))
}

fn flatten<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (list, depth) = match call.args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return call.no_overload(),
    };
    if depth < 0 {
        return Err(Fault::new("level must be non-negative"));
    }
    let mut list = list.to_vec()?;
    for _ in 0..depth {
        if !list.iter().any(|value| matches!(value, Value::List(_))) {
            break;
        }
        let mut flat = Vec::with_capacity(list.len());
        for value in list {
            if flat.len() > MAX_FLAT {
                return Err(Fault::Cost);
            }
            match value {
                Value::List(inner) => flat.extend(inner.to_vec()?),
                other => flat.push(other),
            }
        }
        list = flat;
    }
    Ok(Value::list(list))
}

fn range<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    match call.args {
        [Value::Int(count)] if *count > MAX_RANGE => Err(Fault::Cost),
        [Value::Int(count)] => Ok(Value::list((0..*count).map(Value::Int).collect())),
        _ => call.no_overload(),
    }
}

fn distinct<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let mut found: Vec<Value<'a>> = Vec::new();
    let mut keys = std::collections::BTreeSet::new();
    for value in list_of(call)? {
        let new = match Key::of(&value) {
            Some(key) => keys.insert(key),
            None => !found.iter().any(|known| equal(known, &value)),
        };
        if new {
            found.push(value);
        }
    }
    Ok(Value::list(found))
}

fn reverse<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let mut list = list_of(call)?;
    list.reverse();
    Ok(Value::list(list))
}

fn sort<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let list = list_of(call)?;
    sorted(
        call,
        list.iter()
            .map(|value| (value.clone(), value.clone()))
            .collect(),
    )
}

fn sort_by_keys<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let (list, keys) = two_lists(call)?;
    sorted(call, keys.into_iter().zip(list).collect())
}

/// Values in the order of their keys, if these have one.
fn sorted<'a>(call: &Call<'a, '_>, mut pairs: Vec<(Value<'a>, Value<'a>)>) -> Outcome<'a> {
    let mut ordered = true;
    pairs.sort_by(|(one, _), (two, _)| {
        compare(one, two).unwrap_or_else(|| {
            ordered = false;
            Ordering::Equal
        })
    });
    if !ordered {
        return call.no_overload();
    }
    Ok(Value::list(
        pairs.into_iter().map(|(_, value)| value).collect(),
    ))
}
