//! What differs between two states of an object, and what a server has not kept of a request.

use super::managed;
use super::path::{Path, Segment, has};
use crate::compare::Shape;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What tells apart the elements of a list in most kinds, in the order in which it is tried.
const USUAL_KEYS: [&str; 6] = ["name", "type", "key", "id", "uid", "ip"];

/// What the server keeps in the metadata of every object by itself.
const SERVERS_OWN: [&str; 7] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "deletionTimestamp",
    "uid",
];

/// What of the metadata a client decides on.
const CLIENTS_OWN: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

/// A place at which two states of an object differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) path: Path,
    /// Whether the same elements are there in another order.
    pub(super) reordered: bool,
}

/// The places, as deep as possible, at which an object differs; of lists that are maps by their keys.
/// What the server itself keeps in the metadata is left out. That the object came or went is one
/// difference, at the empty path.
pub(super) fn differences(before: Option<&Value>, after: Option<&Value>) -> Vec<Difference> {
    let (Some(before), Some(after)) = (before, after) else {
        let path = Path::default();
        let came_or_went = before.is_some() || after.is_some();
        let reordered = false;
        return came_or_went
            .then_some(Difference { path, reordered })
            .into_iter()
            .collect();
    };
    let mut walk = Walk {
        object: after,
        found: Vec::new(),
    };
    walk.values(&Path::default(), before, after);
    let metadata = Path::default().member("metadata");
    let servers_own: Vec<Path> = SERVERS_OWN
        .iter()
        .map(|name| metadata.member(name))
        .collect();
    let own = |path: &Path| {
        let mut own = servers_own.iter();
        own.any(|own| path.segments().starts_with(own.segments()))
    };
    walk.found.retain(|difference| !own(&difference.path));
    walk.found
}

/// The places at which the server's object is not as it was sent.
pub(super) fn not_kept(sent: &Value, after: &Value) -> Vec<Path> {
    let mut walk = Walk {
        object: after,
        found: Vec::new(),
    };
    if let (Value::Object(sent), Value::Object(after)) = (sent, after) {
        for (name, value) in sent {
            match name.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    let path = Path::default().member(name);
                    for name in CLIENTS_OWN {
                        if let Some(value) = value.get(name) {
                            let after = after.get("metadata").and_then(|after| after.get(name));
                            walk.kept(&path.member(name), value, after);
                        }
                    }
                }
                name => walk.kept(&Path::default().member(name), value, after.get(name)),
            }
        }
    }
    walk.found
        .into_iter()
        .map(|difference| difference.path)
        .collect()
}

/// The places that a request for the whole object leaves out and that have kept their values all the same: the
/// server has put them back.
pub(super) fn put_back(sent: &Value, before: &Value, after: &Value) -> Vec<Path> {
    let mut walk = Walk {
        object: after,
        found: Vec::new(),
    };
    if let Value::Object(sent) = sent {
        for (name, sent) in sent {
            let [before, after] = [before, after].map(|object| object.get(name));
            if let (Some(before), Some(after)) = (before, after)
                && !["apiVersion", "kind"].contains(&name.as_str())
            {
                let path = Path::default().member(name);
                if name != "metadata" {
                    walk.put_back(&path, sent, before, after);
                    continue;
                }
                for name in CLIENTS_OWN {
                    let [sent, before, after] = [sent, before, after]
                        .map(|metadata| metadata.get(name).unwrap_or(&Value::Null));
                    walk.put_back(&path.member(name), sent, before, after);
                }
            }
        }
    }
    walk.found
        .into_iter()
        .map(|difference| difference.path)
        .collect()
}

/// The innermost place that holds all that a request says.
pub(super) fn place(sent: &Value) -> Path {
    let (mut path, mut value) = (Path::default(), sent);
    while let Value::Object(members) = value {
        let in_metadata = matches!(path.segments(), [Segment::Member(name)] if name == "metadata");
        let is_said = |(name, below): &(&String, &Value)| match name.as_str() {
            "apiVersion" | "kind" => !path.segments().is_empty(),
            "metadata" if path.segments().is_empty() => {
                CLIENTS_OWN.iter().any(|name| below.get(name).is_some())
            }
            name => !name.starts_with('$') && (!in_metadata || CLIENTS_OWN.contains(&name)),
        };
        let mut said = members.iter().filter(is_said);
        let (Some((name, below)), None) = (said.next(), said.next()) else {
            break;
        };
        path = path.member(name);
        value = below;
    }
    path
}

/// A walk through two values.
struct Walk<'v> {
    /// The object whose `managedFields` tell which lists are maps.
    object: &'v Value,
    found: Vec<Difference>,
}

// === impl Walk ===

impl Walk<'_> {
    fn add(&mut self, path: &Path, reordered: bool) {
        self.found.push(Difference {
            path: path.clone(),
            reordered,
        });
    }

    fn values(&mut self, path: &Path, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(old), Value::Object(new)) => {
                let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
                for name in names {
                    let [old, new] = [old, new].map(|map| map.get(name).unwrap_or(&Value::Null));
                    self.values(&path.member(name), old, new);
                }
            }
            // A map that came or went is what came or went in it.
            (Value::Object(map), Value::Null) | (Value::Null, Value::Object(map))
                if !map.is_empty() =>
            {
                let came = old.is_null();
                for (name, value) in map {
                    let [old, new] = if came {
                        [&Value::Null, value]
                    } else {
                        [value, &Value::Null]
                    };
                    self.values(&path.member(name), old, new);
                }
            }
            (Value::Array(old), Value::Array(new)) => self.lists(path, old, new),
            (Value::String(old), Value::String(new)) => {
                let reordered = same_words(old, new);
                self.add(path, reordered);
            }
            _ => self.add(path, false),
        }
    }

    fn lists(&mut self, path: &Path, old: &[Value], new: &[Value]) {
        if multiset(old) == multiset(new) {
            return self.add(path, true);
        }
        if let Some(keys) = self.keys(path, &[old, new])
            && let (Some(one), Some(other)) = (by_key(old, &keys), by_key(new, &keys))
        {
            let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for key in all {
                let path = path.then(Segment::Keyed(key.clone()));
                match (one.get(key), other.get(key)) {
                    (Some((_, old)), Some((_, new))) => self.values(&path, old, new),
                    (Some(_), None) | (None, Some(_)) => self.add(&path, false),
                    (None, None) => {}
                }
            }
            let mut common: Vec<_> = one
                .iter()
                .filter_map(|(key, (at, _))| Some((*at, other.get(key)?.0)))
                .collect();
            common.sort_unstable();
            if !common.is_sorted_by_key(|(_, at)| *at) {
                self.add(path, true);
            }
            return;
        }
        let maps = |list: &[Value]| list.iter().all(Value::is_object);
        if old.len() == new.len() && maps(old) && maps(new) {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                self.values(&path.then(Segment::Index(at)), old, new);
            }
        } else {
            self.add(path, false);
        }
    }

    /// Whether all of `sent` is in `after`.
    fn kept(&mut self, path: &Path, sent: &Value, after: Option<&Value>) {
        let present = after.filter(|after| !after.is_null());
        match (sent, present) {
            (Value::Null, None) => {}
            (Value::Object(sent), Some(Value::Object(after))) => {
                // Names with a `$` are directives of a strategic merge patch.
                for (name, value) in sent.iter().filter(|(name, _)| !name.starts_with('$')) {
                    self.kept(&path.member(name), value, after.get(name));
                }
            }
            // What is empty and what is absent is the same to many kinds.
            (Value::Object(sent), None) => {
                let sent: Vec<_> = sent
                    .iter()
                    .filter(|(name, _)| !name.starts_with('$'))
                    .collect();
                for (name, value) in sent {
                    self.kept(&path.member(name), value, None);
                }
            }
            (Value::Array(sent), None) if sent.is_empty() => {}
            (Value::Array(sent), Some(Value::Array(after))) => self.kept_list(path, sent, after),
            (sent, Some(after)) if Shape::plain().equal(sent, after) => {}
            _ => self.add(path, false),
        }
    }

    fn kept_list(&mut self, path: &Path, sent: &[Value], after: &[Value]) {
        if let Some(keys) = self.keys(path, &[sent, after])
            && let (Some(one), Some(other)) = (by_key(sent, &keys), by_key(after, &keys))
        {
            for (key, (_, value)) in one {
                // Keys that have defaults need not be sent.
                let mut found = other.values().map(|(_, after)| *after);
                let after = found.find(|after| has(after, &key));
                self.kept(&path.then(Segment::Keyed(key)), value, after);
            }
        } else if sent.len() == after.len() {
            for (at, (sent, after)) in sent.iter().zip(after).enumerate() {
                self.kept(&path.then(Segment::Index(at)), sent, Some(after));
            }
        } else if !sent.iter().all(|element| after.contains(element)) {
            self.add(path, false);
        }
    }

    /// What is not in `sent`, and in both others.
    fn put_back(&mut self, path: &Path, sent: &Value, before: &Value, after: &Value) {
        match (sent, before, after) {
            (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
                for (name, after) in after {
                    let before = before.get(name).unwrap_or(&Value::Null);
                    let sent = sent.get(name).unwrap_or(&Value::Null);
                    self.put_back(&path.member(name), sent, before, after);
                }
            }
            (Value::Array(sent), Value::Array(before), Value::Array(after)) => {
                let Some(keys) = self.keys(path, &[sent, before, after]) else {
                    return;
                };
                for element in after {
                    let key = element.as_object().and_then(|element| key(element, &keys));
                    let Some(key) = key else { continue };
                    let mut lists = [sent, before].map(|list| list.iter());
                    let [sent, before] =
                        lists.each_mut().map(|list| list.find(|one| has(one, &key)));
                    if let (Some(sent), Some(before)) = (sent, before) {
                        self.put_back(&path.then(Segment::Keyed(key)), sent, before, element);
                    }
                }
            }
            (Value::Null, before, after) if before == after && !is_empty(after) => {
                self.add(path, false);
            }
            _ => {}
        }
    }

    /// The members that tell apart the elements of lists.
    fn keys(&self, path: &Path, lists: &[&[Value]]) -> Option<Vec<String>> {
        let tell_apart = |keys: &Vec<String>| {
            let mut lists = lists.iter();
            lists.all(|list| by_key(list, keys).is_some())
        };
        let told = managed::list_keys(self.object, path).filter(tell_apart);
        told.or_else(|| {
            let mut usual = USUAL_KEYS.iter().map(|&name| vec![name.to_owned()]);
            usual.find(tell_apart)
        })
    }
}

/// Whether a value says no more than its absence to many kinds.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

type ByKey<'v> = BTreeMap<Vec<(String, String)>, (usize, &'v Value)>;

/// The elements of a list, and their positions, by their keys; `None` if these do not tell them apart.
fn by_key<'v>(list: &'v [Value], keys: &[String]) -> Option<ByKey<'v>> {
    let mut map = BTreeMap::new();
    for (at, element) in list.iter().enumerate() {
        let key = key(element.as_object()?, keys)?;
        if map.insert(key, (at, element)).is_some() {
            return None;
        }
    }
    Some(map)
}

/// The keys that the element has; `None` if it has none of them.
fn key(element: &Map<String, Value>, keys: &[String]) -> Option<Vec<(String, String)>> {
    let value = |key: &String| Some((key.clone(), element.get(key)?.to_string()));
    let key: Vec<_> = keys.iter().filter_map(value).collect();
    (!key.is_empty()).then_some(key)
}

fn multiset(list: &[Value]) -> Vec<u64> {
    let mut digests: Vec<u64> = list.iter().map(digest).collect();
    digests.sort_unstable();
    digests
}

/// Whether two texts list the same words in another order: `a=1,b=2` and `b=2,a=1`, or JSON.
fn same_words(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let part_of_word = |c: char| c.is_alphanumeric() || "._-/".contains(c);
        let words = text
            .split(|c| !part_of_word(c))
            .filter(|word| !word.is_empty());
        let mut words: Vec<String> = words.map(Into::into).collect();
        words.sort_unstable();
        words
    };
    let (one, other) = (words(one), words(other));
    one.len() > 1 && one == other
}

/// A number that is the same for equal values, whatever the order of their members.
pub(super) fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher, value, &|text| text.to_owned());
    hasher.finish()
}

/// Like [`digest`], but all times are the same.
pub(super) fn likeness(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(&mut hasher, value, &without_times);
    hasher.finish()
}

fn feed(hasher: &mut DefaultHasher, value: &Value, text: &dyn Fn(&str) -> String) {
    match value {
        Value::Null => 0u8.hash(hasher),
        Value::Bool(value) => (1u8, value).hash(hasher),
        Value::Number(value) => (2u8, value.to_string()).hash(hasher),
        Value::String(value) => (3u8, text(value)).hash(hasher),
        Value::Array(elements) => {
            (4u8, elements.len()).hash(hasher);
            for element in elements {
                feed(hasher, element, text);
            }
        }
        Value::Object(members) => {
            (5u8, members.len()).hash(hasher);
            let members: BTreeMap<_, _> = members.iter().collect();
            for (name, value) in members {
                name.hash(hasher);
                feed(hasher, value, text);
            }
        }
    }
}

/// A text without what looks like `2026-01-01T00:00:00Z`, with whatever fraction and zone.
fn without_times(text: &str) -> String {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    let is_time = |bytes: &[u8]| {
        let same = |(form, byte): (&u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte == form,
        };
        bytes.len() >= FORM.len() && FORM.iter().zip(bytes).all(same)
    };
    let mut rest = text;
    let mut kept = String::new();
    while let Some(first) = rest.chars().next() {
        if is_time(rest.as_bytes()) {
            let end = |c: char| !c.is_ascii_digit() && !".:+-Z".contains(c);
            rest = rest
                .get(FORM.len()..)
                .unwrap_or_default()
                .trim_start_matches(|c| !end(c));
        } else {
            kept.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    kept
}
