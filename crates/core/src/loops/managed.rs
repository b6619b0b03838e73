//! Who owns which fields, according to an object's `managedFields`.

use super::path::{Path, Segment, reads};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// An entry of an object's `managedFields`, without its fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The field manager.
    pub name: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The subresource through which it writes, if any.
    pub subresource: Option<String>,
}

/// As in `kubectl-edit (Update)` or `hpa (Update of scale)`.
impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            operation,
            subresource,
        } = self;
        match subresource {
            Some(subresource) => write!(f, "{name} ({operation} of {subresource})"),
            None => write!(f, "{name} ({operation})"),
        }
    }
}

/// Whom `object` names as owners of what stands at `path`, or of something in it.
pub(super) fn owners(object: &Value, path: &Path) -> Vec<Manager> {
    let mut owners: Vec<Manager> = entries(object)
        .filter(|entry| {
            entry["fieldsV1"]
                .as_object()
                .is_some_and(|fields| covers(fields, path.segments()))
        })
        .filter_map(manager)
        .collect();
    owners.sort();
    owners.dedup();
    owners
}

/// When each manager has written last.
pub(super) fn times(object: &Value) -> BTreeMap<Manager, String> {
    let time = |entry: &Value| entry["time"].as_str().unwrap_or_default().to_owned();
    let times = entries(object).filter_map(|entry| Some((manager(entry)?, time(entry))));
    times.collect()
}

/// Who has written to an object since `before`, as far as the server tells: of the others first, and otherwise
/// `own` itself if it is the only one who can have.
pub(super) fn since(
    before: &BTreeMap<Manager, String>,
    object: &Value,
    own: Option<&str>,
) -> Option<Manager> {
    let now = times(object);
    let newer = |(manager, time): &(&Manager, &String)| before.get(manager) != Some(*time);
    let is_own = |manager: &Manager| Some(&*manager.name) == own;
    let mut wrote: Vec<_> = now.iter().filter(newer).collect();
    wrote.sort_by_key(|(_, time)| Reverse(time.as_str()));
    let mut wrote = wrote.into_iter().map(|(manager, _)| manager);
    let other = wrote.clone().find(|manager| !is_own(manager));
    let own_entry = || now.keys().find(|manager| is_own(manager));
    // The server counts time in seconds. If nobody's has moved on, it was somebody who has written before.
    let found = other.or_else(|| wrote.next());
    found
        .or_else(|| latest_other(&now, own))
        .or_else(own_entry)
        .cloned()
}

/// Who of the others has written last, if not before `own` did.
fn latest_other<'m>(
    times: &'m BTreeMap<Manager, String>,
    own: Option<&str>,
) -> Option<&'m Manager> {
    let is_own = |manager: &Manager| Some(&*manager.name) == own;
    let own_time = times
        .iter()
        .filter(|(manager, _)| is_own(manager))
        .map(|(_, time)| time)
        .max();
    let others = times.iter().filter(|(manager, _)| !is_own(manager));
    let others = others.filter(|(_, time)| own_time.is_none_or(|own| *time >= own));
    others
        .max_by_key(|(_, time)| time.as_str())
        .map(|(manager, _)| manager)
}

/// The members that tell apart the elements of the list at `path`, according to those who own some.
pub(super) fn list_keys(object: &Value, path: &Path) -> Option<Vec<String>> {
    entries(object).find_map(|entry| {
        let mut fields = entry["fieldsV1"].as_object()?;
        for segment in path.segments() {
            fields = step(fields, segment)?;
        }
        let name = fields.keys().find_map(|name| name.strip_prefix("k:"))?;
        let keys: Map<String, Value> = serde_json::from_str(name).ok()?;
        Some(keys.into_iter().map(|(key, _)| key).collect())
    })
}

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten()
}

fn manager(entry: &Value) -> Option<Manager> {
    Some(Manager {
        name: entry["manager"].as_str()?.to_owned(),
        operation: entry["operation"].as_str().unwrap_or("Update").to_owned(),
        subresource: entry["subresource"]
            .as_str()
            .filter(|name| !name.is_empty())
            .map(Into::into),
    })
}

fn covers(mut fields: &Map<String, Value>, path: &[Segment]) -> bool {
    for (at, segment) in path.iter().enumerate() {
        // What is owned as a whole has no parts: scalars, and maps and lists that are atomic.
        if at > 0 && fields.keys().all(|name| name == ".") {
            return true;
        }
        match step(fields, segment) {
            Some(below) => fields = below,
            None => return false,
        }
    }
    true
}

fn step<'v>(fields: &'v Map<String, Value>, segment: &Segment) -> Option<&'v Map<String, Value>> {
    let below = match segment {
        Segment::Member(name) => fields.get(&format!("f:{name}")),
        Segment::Index(index) => fields.get(&format!("i:{index}")),
        Segment::Keyed(keys) => fields.iter().find_map(|(name, below)| {
            let wanted: Map<String, Value> = serde_json::from_str(name.strip_prefix("k:")?).ok()?;
            // The path may name fewer keys than the server does, and never others.
            let same = |(key, text): &(String, String)| {
                wanted.get(key).is_some_and(|value| reads(value, text))
            };
            keys.iter().all(same).then_some(below)
        }),
    };
    below?.as_object()
}
