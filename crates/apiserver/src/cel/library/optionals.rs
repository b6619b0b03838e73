use super::{Call, Room};
use crate::cel::fault::Fault;
use crate::cel::value::{Outcome, Value};

pub(super) const ROOM: [Room; 8] = [
    (&["optional.of"], |call| match call.args {
        [value] => Ok(Value::some(value.clone())),
        _ => call.no_overload(),
    }),
    (&["optional.ofNonZeroValue"], |call| match call.args {
        [value] if value.is_zero() => Ok(Value::none()),
        [value] => Ok(Value::some(value.clone())),
        _ => call.no_overload(),
    }),
    (&["optional.none"], |_| Ok(Value::none())),
    (&["value"], |call| match call.args {
        [Value::Optional(Some(held))] => Ok((**held).clone()),
        [Value::Optional(None)] => Err(Fault::new("optional.none() dereference")),
        _ => call.no_overload(),
    }),
    (&["hasValue"], |call| match call.args {
        [Value::Optional(held)] => Ok(Value::Bool(held.is_some())),
        _ => call.no_overload(),
    }),
    (&["or"], |call| match call.args {
        [Value::Optional(None), other @ Value::Optional(_)] => Ok(other.clone()),
        [one @ Value::Optional(Some(_)), _] => Ok(one.clone()),
        _ => call.no_overload(),
    }),
    (&["orValue"], |call| match call.args {
        [Value::Optional(Some(held)), _] => Ok((**held).clone()),
        [Value::Optional(None), other] => Ok(other.clone()),
        _ => call.no_overload(),
    }),
    (&["optional.unwrap", "unwrapOpt"], unwrap),
];

fn unwrap<'a>(call: &Call<'a, '_>) -> Outcome<'a> {
    let [Value::List(list)] = call.args else {
        return call.no_overload();
    };
    let mut held = Vec::new();
    for element in list.iter() {
        match element? {
            Value::Optional(Some(value)) => held.push((*value).clone()),
            Value::Optional(None) => {}
            _ => return call.no_overload(),
        }
    }
    Ok(Value::list(held))
}
