//! Objects as flat lists of their fields. What server-side apply does with trees is then a matter of
//! sets of paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Map, Value, json};

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    Member(String),
    /// What has these keys in a list, as JSON.
    Keys(String),
    /// A value in a set, as JSON.
    Item(String),
}

pub(crate) type Path = Vec<Element>;
pub(crate) type Paths = BTreeSet<Path>;

/// What is at a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// A value without parts, or whose parts nobody owns alone.
    Whole(Value),
    Map,
    /// With the order of its elements.
    List(Vec<Element>),
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields(pub(crate) BTreeMap<Path, Field>);

/// What the schema of the kind says of a place.
enum Shape {
    /// An object with these members.
    Struct(&'static [&'static str]),
    /// An object with members of any name, each owned alone.
    Map,
    Set,
    /// A list of objects that have these keys, some of them by default.
    Keyed(&'static [(&'static str, Option<&'static str>)]),
    /// Anything: objects are taken apart, lists are not.
    Free,
    Whole,
}

/// The schema. `play::definition` says the same in the language of definitions.
fn shape(path: &[Element]) -> Shape {
    let names: Vec<&str> = path
        .iter()
        .map(|element| match element {
            Element::Member(name) => name.as_str(),
            Element::Keys(_) | Element::Item(_) => "*",
        })
        .collect();
    match names[..] {
        [] => Shape::Struct(&["metadata", "spec", "status"]),
        ["metadata"] => Shape::Struct(&[
            "name",
            "labels",
            "finalizers",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ]),
        ["spec"] => Shape::Struct(&[
            "size", "note", "box", "frame", "tags", "ports", "colors", "steps", "free",
        ]),
        ["spec", "box"] => Shape::Struct(&["x", "y"]),
        ["spec", "ports", "*"] => Shape::Struct(&["port", "protocol", "name", "notes"]),
        ["status"] => Shape::Struct(&["seen", "conditions"]),
        ["status", "conditions", "*"] => Shape::Struct(&["type", "status"]),
        ["metadata", "labels"] | ["spec", "tags"] | ["spec", "ports", "*", "notes"] => Shape::Map,
        ["metadata", "finalizers"] | ["spec", "colors"] => Shape::Set,
        ["spec", "ports"] => Shape::Keyed(&[("port", None), ("protocol", Some("TCP"))]),
        ["status", "conditions"] => Shape::Keyed(&[("type", None)]),
        ["spec", "free", ..] => Shape::Free,
        _ => Shape::Whole,
    }
}

/// Whether the schema names what is at a path, as opposed to a key of a map or an element of a list.
fn is_named(path: &[Element]) -> bool {
    let Some((Element::Member(name), parent)) = path.split_last() else {
        return false;
    };
    matches!(shape(parent), Shape::Struct(names) if names.contains(&name.as_str()))
}

pub(crate) fn path(names: &[&str]) -> Path {
    let member = |name: &&str| Element::Member((*name).to_owned());
    names.iter().map(member).collect()
}

/// A path as conflicts name it.
pub(crate) fn show(path: &[Element]) -> String {
    let mut text = String::new();
    for element in path {
        let written = match element {
            Element::Member(name) => write!(text, ".{name}"),
            Element::Item(value) => write!(text, "[={value}]"),
            Element::Keys(keys) => {
                let keys: BTreeMap<String, Value> =
                    serde_json::from_str(keys).expect("it was made from such a map");
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                write!(text, "[{}]", keys.join(","))
            }
        };
        written.expect("a string takes everything");
    }
    text
}

/// With each path also those on the way to it that the schema names.
pub(crate) fn with_named(paths: &Paths) -> Paths {
    let ways = paths
        .iter()
        .flat_map(|path| (1..path.len()).map(|length| path[..length].to_vec()));
    let named = ways.filter(|way| is_named(way));
    named.chain(paths.iter().cloned()).collect()
}

// === impl Fields ===

impl Fields {
    pub(crate) fn of(object: &Value) -> Self {
        let mut fields = Self::default();
        fields.put(vec![], object);
        fields
    }

    fn put(&mut self, path: Path, value: &Value) {
        let mut parts: Vec<(Element, &Value)> = Vec::new();
        let own = match (shape(&path), value) {
            (Shape::Struct(_) | Shape::Map | Shape::Free, Value::Object(members)) => {
                let members = members.iter();
                parts.extend(members.map(|(name, value)| (Element::Member(name.clone()), value)));
                Field::Map
            }
            (Shape::Set, Value::Array(list)) => {
                let items = list.iter();
                parts.extend(items.map(|value| (Element::Item(value.to_string()), value)));
                Field::List(parts.iter().map(|(element, _)| element.clone()).collect())
            }
            (Shape::Keyed(keys), Value::Array(list)) => {
                for value in list {
                    let of = |(key, default): &(&'static str, Option<&str>)| {
                        let value = value.get(*key).cloned();
                        (*key, value.unwrap_or_else(|| json!(default)))
                    };
                    let keys: BTreeMap<&str, Value> = keys.iter().map(of).collect();
                    let keys = serde_json::to_string(&keys).expect("a map is JSON");
                    parts.push((Element::Keys(keys), value));
                }
                Field::List(parts.iter().map(|(element, _)| element.clone()).collect())
            }
            _ => Field::Whole(value.clone()),
        };
        for (element, value) in parts {
            let mut below = path.clone();
            below.push(element);
            self.put(below, value);
        }
        self.0.insert(path, own);
    }

    /// Whether it cannot be read by the schema: a list has an element twice, or a member is unknown.
    pub(crate) fn is_untyped(&self) -> bool {
        self.0.iter().any(|(path, field)| {
            let twice = match field {
                Field::List(order) => {
                    let different: BTreeSet<&Element> = order.iter().collect();
                    different.len() < order.len()
                }
                Field::Whole(_) | Field::Map => false,
            };
            let parent = path.split_last().map_or(&[][..], |(_, parent)| parent);
            let closed = matches!(shape(parent), Shape::Struct(_));
            twice || (closed && !path.is_empty() && !is_named(path))
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        self.to_json_at(&[])
    }

    pub(crate) fn to_json_at(&self, path: &[Element]) -> Value {
        match self.0.get(path) {
            None => Value::Null,
            Some(Field::Whole(value)) => value.clone(),
            Some(Field::Map) => {
                let mut members = Map::new();
                for below in self.children(path) {
                    if let Some(Element::Member(name)) = below.last() {
                        members.insert(name.clone(), self.to_json_at(&below));
                    }
                }
                Value::Object(members)
            }
            Some(Field::List(order)) => order
                .iter()
                .map(|element| self.to_json_at(&[path, std::slice::from_ref(element)].concat()))
                .collect(),
        }
    }

    fn children(&self, path: &[Element]) -> Vec<Path> {
        let below = self.0.keys();
        let below = below.filter(|below| below.len() == path.len() + 1 && below.starts_with(path));
        below.cloned().collect()
    }

    /// Takes out a path and all below it.
    fn cut(&mut self, path: &[Element]) {
        self.0.retain(|below, _| !below.starts_with(path));
        if let Some((last, parent)) = path.split_last()
            && let Some(Field::List(order)) = self.0.get_mut(parent)
        {
            order.retain(|element| element != last);
        }
    }

    /// Replaces all of a top-level member by that of another object.
    pub(crate) fn take(&mut self, member: &str, from: &Self) {
        let member = path(&[member]);
        self.cut(&member);
        let taken = from.0.iter().filter(|(path, _)| path.starts_with(&member));
        self.0
            .extend(taken.map(|(path, field)| (path.clone(), field.clone())));
    }

    /// The paths that an applier of this object owns.
    pub(crate) fn owned(&self) -> Paths {
        let is_owned = |(path, field): &(&Path, &Field)| match (path.last(), field) {
            (None, _) => false,
            (Some(Element::Keys(_) | Element::Item(_)), _) | (_, Field::Whole(_)) => true,
            (_, Field::Map) => !is_named(path) || self.children(path).is_empty(),
            (_, Field::List(_)) => !is_named(path),
        };
        let owned = self.0.iter().filter(is_owned);
        owned.map(|(path, _)| path.clone()).collect()
    }

    /// What is there in a new state and was not, or was another; and what is not there any more.
    pub(crate) fn changes(&self, new: &Self) -> (Paths, Paths) {
        let differs = |path: &Path| match (self.0.get(path), new.0.get(path)) {
            (Some(was), Some(is)) => {
                let both_lists = matches!((was, is), (Field::List(_), Field::List(_)));
                // Nothing in the place of something with parts is the end of the parts.
                let ended = is == &Field::Whole(Value::Null) && !self.children(path).is_empty();
                let began = was == &Field::Whole(Value::Null) && !new.children(path).is_empty();
                was != is && !both_lists && !ended && !began
            }
            (was, is) => was.is_some() != is.is_some(),
        };
        let gained = new.0.keys().filter(|path| differs(path));
        let lost = self.0.keys().filter(|path| !new.0.contains_key(*path));
        (gained.cloned().collect(), lost.cloned().collect())
    }

    /// This with what a configuration says.
    pub(crate) fn merged(&self, config: &Self) -> Self {
        let mut merged = self.clone();
        for (path, field) in &config.0 {
            let known = merged.0.get(path).cloned();
            let field = match (known, field) {
                (Some(Field::Map), Field::Map) => continue,
                (Some(Field::List(live)), Field::List(config)) => {
                    Field::List(merged_order(&live, config))
                }
                _ => {
                    merged.0.retain(|below, _| !below.starts_with(path));
                    field.clone()
                }
            };
            merged.0.insert(path.clone(), field);
        }
        merged
    }

    /// This without some paths and all below them. What loses all its parts in that way is null.
    pub(crate) fn without(&self, gone: &Paths) -> Self {
        let mut left = self.clone();
        for path in gone {
            left.cut(path);
        }
        // From the leaves on.
        let containers: Vec<Path> = left.0.keys().rev().cloned().collect();
        for path in containers {
            let has_parts = matches!(left.0[&path], Field::Map | Field::List(_));
            let touched = gone
                .iter()
                .any(|gone| gone.len() > path.len() && gone.starts_with(&path));
            // The type, which every object has, is left out here.
            let is_object = path.is_empty();
            if !is_object && has_parts && touched && left.children(&path).is_empty() {
                left.0.insert(path, Field::Whole(Value::Null));
            }
        }
        left
    }

    /// Drops nulls where the schema has none, and empty metadata; fills in defaults.
    pub(crate) fn settled(mut self) -> Self {
        let null = |path: &Path, field: &Field| {
            let free = self::path(&["spec", "free"]);
            let may_be = (path.len() > free.len() && path.starts_with(&free))
                || path == &self::path(&["spec", "note"]);
            field == &Field::Whole(Value::Null) && !may_be
        };
        self.0.retain(|path, field| !null(path, field));
        for member in ["labels", "finalizers"] {
            let path = path(&["metadata", member]);
            if self.children(&path).is_empty() {
                self.0.remove(&path);
            }
        }
        for mut port in self.children(&path(&["spec", "ports"])) {
            port.push(Element::Member("protocol".to_owned()));
            self.0.entry(port).or_insert(Field::Whole(json!("TCP")));
        }
        self
    }
}

/// Elements of both lists in the order of the configuration; what is only in the live list stays as
/// far in front as it can.
fn merged_order(live: &[Element], config: &[Element]) -> Vec<Element> {
    let shared = |element: &Element| live.contains(element) && config.contains(element);
    let mut live = live.to_vec();
    let mut merged: Vec<Element> = Vec::new();
    for (place, next) in config.iter().enumerate() {
        // A live element is passed over if its turn has been or is still to come, unless it is the
        // very next of those that both have.
        let next_shared = config[place..].iter().find(|element| shared(element));
        while let Some(first) = live.first() {
            if !config.contains(first) {
                merged.push(first.clone());
            } else if next_shared.is_none_or(|next| next == first) && !merged.contains(first) {
                break;
            }
            live.remove(0);
        }
        merged.push(next.clone());
    }
    let left = live.into_iter().filter(|element| !config.contains(element));
    merged.extend(left);
    merged
}
