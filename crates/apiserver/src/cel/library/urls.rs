use std::collections::BTreeMap;
use std::rc::Rc;

use super::Room;
use crate::cel::fault::Fault;
use crate::cel::url::{Url, parse};
use crate::cel::value::{Key, Map, Value};
use crate::quoted::quoted;

pub(super) const ROOM: [Room; 4] = [
    (&["url"], |call| match call.args {
        [Value::Text(text)] => {
            let url = parse(text).map_err(|why| {
                Fault::new(format!(
                    "URL parse error during conversion from string: parse {}: {why}",
                    quoted(text)
                ))
            })?;
            Ok(Value::Url(Rc::new(url)))
        }
        _ => call.no_overload(),
    }),
    (&["isURL"], |call| match call.args {
        [Value::Text(text)] => Ok(Value::Bool(parse(text).is_ok())),
        _ => call.no_overload(),
    }),
    (
        &[
            "getScheme",
            "getHost",
            "getHostname",
            "getPort",
            "getEscapedPath",
        ],
        |call| match call.args {
            [Value::Url(url)] => Ok(Value::text(match call.function {
                "getScheme" => url.scheme.clone(),
                "getHost" => url.host.clone(),
                "getHostname" => url.hostname().to_owned(),
                "getPort" => url.port().to_owned(),
                _ => url.escaped_path(),
            })),
            _ => call.no_overload(),
        },
    ),
    (&["getQuery"], |call| match call.args {
        [Value::Url(url)] => Ok(Value::Map(members(url))),
        _ => call.no_overload(),
    }),
];

fn members<'a>(url: &Url) -> Map<'a> {
    let mut members: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
    for (key, value) in url.members() {
        members.entry(key).or_default().push(Value::text(value));
    }
    let entries = members.into_iter().map(|(key, values)| {
        let own = Key::Text(Rc::from(key.as_str()));
        (own, (Value::text(key), Value::list(values)))
    });
    Map::made(entries.collect())
}
