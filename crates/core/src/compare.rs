//! Comparing JSON as an API server stores it (rule R23).
//!
//! Whoever writes whenever two values differ, and compares them as text, writes for ever: the server
//! drops nulls, and nobody promises the order of what is a map by its meaning. Here two values are
//! equal if the server makes no difference between them; whatever may matter is a difference:
//!
//! - `null` and absent are equal as members of a map. As an element of a list, `null` is a value.
//! - Absent, `""`, `[]` and `{}` differ, because custom resources keep them apart.
//! - Numbers are compared by value: `1` is `1.0`. A number never equals a text.
//! - The order of a list counts, unless a [`Shape`] says that it is a map or a set.
//! - Texts are compared character by character, unless a [`Shape`] says that they are quantities.
//!
//! ```
//! use homeostat_core::compare::Shape;
//! use serde_json::json;
//!
//! let shape = Shape::of_status().quantity("/used/*");
//! let live = json!({ "used": { "cpu": "1" }, "phase": "Ready", "note": "old" });
//! let desired = json!({ "used": { "cpu": "1000m" }, "phase": "Ready", "note": null });
//! assert_eq!(shape.merge_patch(&live, &desired), Some(json!({ "note": null })));
//! assert_eq!(shape.merge_patch(&live, &live), None);
//! ```

mod ownership;
mod quantity;

pub use ownership::owns;

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a schema says about lists and texts that JSON itself does not: which lists are maps or sets,
/// and which texts are quantities.
///
/// A path leads from the value that is compared to a place in it: names of members with `/` before
/// each, and `*` for any member of a map or any element of a list, as in `/pools/*/addresses`. In
/// names `~1` stands for `/` and `~0` for `~`. The empty path is the value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    path: Vec<Segment>,
    form: Form,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Named(String),
    Any,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// A list of maps that these members tell apart.
    Map(Vec<String>),
    /// A list of scalars.
    Set,
    Quantity,
}

/// A place in a value: what is left of the paths of the rules that may hold below it.
struct Place<'a>(Vec<(&'a [Segment], &'a Form)>);

// === impl Shape ===

impl Shape {
    /// Nothing is known: every list is ordered, every text is a text.
    #[must_use]
    pub const fn plain() -> Self {
        Self { rules: Vec::new() }
    }

    /// The status of an object: `conditions` is a map by `type`.
    #[must_use]
    pub fn of_status() -> Self {
        Self::plain().list_map("/conditions", ["type"])
    }

    /// The list at `path` is a map: the members `keys` tell its elements apart, and their order does
    /// not count. A list in which that does not hold is compared as an ordered one.
    #[must_use]
    pub fn list_map<S: Into<String>>(self, path: &str, keys: impl IntoIterator<Item = S>) -> Self {
        self.with(path, Form::Map(keys.into_iter().map(Into::into).collect()))
    }

    /// The list at `path` is a set of scalars: their order does not count.
    #[must_use]
    pub fn set(self, path: &str) -> Self {
        self.with(path, Form::Set)
    }

    /// What stands at `path` is a quantity, as of memory or processors: `1000m` is `1` and `1Gi` is
    /// `1024Mi`. What cannot be read as one is compared as it is.
    ///
    /// The server only rewrites quantities of built-in kinds. In a custom resource the text stays as
    /// it was written; say so there if another notation is not worth a write.
    #[must_use]
    pub fn quantity(self, path: &str) -> Self {
        self.with(path, Form::Quantity)
    }

    fn with(mut self, path: &str, form: Form) -> Self {
        let segment = |name: &str| match name {
            "*" => Segment::Any,
            name => Segment::Named(name.replace("~1", "/").replace("~0", "~")),
        };
        let path = path.strip_prefix('/').map(|path| path.split('/'));
        let path = path.into_iter().flatten().map(segment).collect();
        self.rules.push(Rule { path, form });
        self
    }

    /// Whether the server makes no difference between the values.
    #[must_use]
    pub fn equal(&self, one: &Value, other: &Value) -> bool {
        equal(&self.top(), one, other)
    }

    /// Whether `live` has everything that `desired` says. It may have more: members that `desired`
    /// does not name, and elements of lists that are maps or sets.
    #[must_use]
    pub fn covers(&self, live: &Value, desired: &Value) -> bool {
        covers(&self.top(), live, desired)
    }

    /// The smallest JSON merge patch (RFC 7386) that makes `live` be `desired`; `None` if the server
    /// makes no difference between them.
    ///
    /// Members that `desired` does not have, or has as `null`, are removed. Maps are patched member
    /// by member; a list in which something differs is replaced as a whole.
    #[must_use]
    pub fn merge_patch(&self, live: &Value, desired: &Value) -> Option<Value> {
        merge_patch(&self.top(), live, desired)
    }

    fn top(&self) -> Place<'_> {
        let rules = self.rules.iter();
        Place(rules.map(|rule| (&*rule.path, &rule.form)).collect())
    }
}

// === impl Place ===

impl<'a> Place<'a> {
    fn member(&self, name: &str) -> Self {
        self.below(|segment| match segment {
            Segment::Named(wanted) => wanted == name,
            Segment::Any => true,
        })
    }

    fn element(&self) -> Self {
        self.below(|segment| *segment == Segment::Any)
    }

    fn below(&self, leads_there: impl Fn(&Segment) -> bool) -> Self {
        let rest = |&(path, form): &(&'a [Segment], &'a Form)| {
            let (first, rest) = path.split_first()?;
            leads_there(first).then_some((rest, form))
        };
        Self(self.0.iter().filter_map(rest).collect())
    }

    /// The last word on the place itself.
    fn form(&self) -> Option<&'a Form> {
        let here = self.0.iter().rfind(|(path, _)| path.is_empty());
        here.map(|&(_, form)| form)
    }
}

/// Drops the members of a map that are `null`, in all maps that a merge patch would look into.
#[must_use]
pub fn without_nulls(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return value.clone();
    };
    members
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), without_nulls(value)))
        .collect()
}

fn equal(place: &Place<'_>, one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            names
                .into_iter()
                .all(|name| equal(&place.member(name), member(one, name), member(other, name)))
        }
        (Value::Array(one), Value::Array(other)) => equal_lists(place, one, other),
        (one, other) => equal_scalars(place, one, other),
    }
}

fn equal_lists(place: &Place<'_>, one: &[Value], other: &[Value]) -> bool {
    let element = place.element();
    if one.len() != other.len() {
        return false;
    }
    match place.form() {
        Some(Form::Map(keys)) => {
            if let (Some(one), Some(other)) = (by_key(one, keys), by_key(other, keys)) {
                return one.iter().all(|(key, value)| {
                    let same = other.get(key);
                    same.is_some_and(|same| equal(&element, value, same))
                });
            }
        }
        Some(Form::Set) => {
            if let (Some(one), Some(other)) = (sorted(one), sorted(other)) {
                return one == other;
            }
        }
        Some(Form::Quantity) | None => {}
    }
    let mut pairs = one.iter().zip(other);
    pairs.all(|(one, other)| equal(&element, one, other))
}

fn equal_scalars(place: &Place<'_>, one: &Value, other: &Value) -> bool {
    if place.form() == Some(&Form::Quantity)
        && let (Some(one), Some(other)) = (quantity::of(one), quantity::of(other))
    {
        return one == other;
    }
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || whole(one).is_some_and(|number| Some(number) == whole(other))
        }
        (one, other) => one == other,
    }
}

fn covers(place: &Place<'_>, live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut wanted = desired.iter().filter(|(_, value)| !value.is_null());
            wanted.all(|(name, value)| covers(&place.member(name), member(live, name), value))
        }
        (Value::Array(live), Value::Array(desired)) => {
            equal_lists(place, live, desired) || covers_list(place, live, desired)
        }
        (live, desired) => equal_scalars(place, live, desired),
    }
}

/// Whether a list that is a map or a set has all that `desired` has.
fn covers_list(place: &Place<'_>, live: &[Value], desired: &[Value]) -> bool {
    let element = place.element();
    match place.form() {
        Some(Form::Map(keys)) => desired.iter().all(|wanted| {
            // A key that has a default need not be told, so only those that are count.
            let told = |live: &&Value| {
                let mut told = keys.iter().filter(|&key| !wanted[key].is_null());
                told.all(|key| live[key] == wanted[key])
            };
            let mut found = live.iter().filter(told);
            match (found.next(), found.next()) {
                (Some(live), None) => covers(&element, live, wanted),
                (None | Some(_), _) => false,
            }
        }),
        Some(Form::Set) => desired.iter().all(|wanted| {
            let mut live = live.iter();
            live.any(|live| equal_scalars(&element, live, wanted))
        }),
        Some(Form::Quantity) | None => false,
    }
}

fn merge_patch(place: &Place<'_>, live: &Value, desired: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (live, desired) else {
        return (!equal(place, live, desired)).then(|| without_nulls(desired));
    };
    let mut patch = Map::new();
    for (name, value) in after.iter().filter(|(_, value)| !value.is_null()) {
        let live = member(before, name);
        let change = if live.is_null() {
            Some(without_nulls(value))
        } else {
            merge_patch(&place.member(name), live, value)
        };
        patch.extend(change.map(|change| (name.clone(), change)));
    }
    for (name, value) in before {
        if !value.is_null() && member(after, name).is_null() {
            patch.insert(name.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// A member of a map; `null` if it is not there.
fn member<'v>(map: &'v Map<String, Value>, name: &str) -> &'v Value {
    map.get(name).unwrap_or(&Value::Null)
}

/// The elements of a list by their keys; `None` if the keys do not tell them apart.
fn by_key<'v>(list: &'v [Value], keys: &[String]) -> Option<BTreeMap<Vec<String>, &'v Value>> {
    let mut map = BTreeMap::new();
    for element in list {
        let members = element.as_object()?;
        let key: Vec<String> = keys
            .iter()
            .map(|key| member(members, key).to_string())
            .collect();
        if map.insert(key, element).is_some() {
            return None;
        }
    }
    Some(map)
}

/// The scalars of a list in an order that does not depend on theirs; `None` if there are others.
fn sorted(list: &[Value]) -> Option<Vec<String>> {
    let scalar = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Some(value.to_string())
        }
        Value::Array(_) | Value::Object(_) => None,
    };
    let mut scalars = list.iter().map(scalar).collect::<Option<Vec<_>>>()?;
    scalars.sort_unstable();
    Some(scalars)
}

/// A number that is whole and that a server holds exactly, whether it was written as `1` or `1.0`.
fn whole(number: &serde_json::Number) -> Option<i64> {
    /// From here on floating point numbers skip whole ones.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let exact = float.fract() == 0.0 && float.abs() < EXACT;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole, and far from the ends of the range"
        )]
        exact.then_some(float as i64)
    })
}

#[cfg(test)]
mod tests;
