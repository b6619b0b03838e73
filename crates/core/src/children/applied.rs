//! Whether to apply a child would change anything.
//!
//! The server says in `managedFields` what a manager owns of an object: exactly what it applied last.
//! So if a manager owns the fields that it wants and no others, and each has the value that is wanted,
//! then it has applied this before, and nobody has changed any of it since.
//!
//! What is owned says how values are to be compared, too. A field that is owned by itself is compared
//! by itself, whatever the server or others put next to it. A map or list that is owned as a whole has
//! to be equal as a whole, but for what the server fills in by itself.

use super::group;
use crate::compare::Shape;
use serde_json::{Map, Value, json};

/// Whether a server that shows an object as `live` would change nothing, not even who owns what, if
/// `manager` applied `desired` to it.
///
/// When in doubt the answer is no: one request too many does no harm. It is always no if `live` comes
/// without its `managedFields`.
#[must_use]
pub fn is_applied(live: &Value, desired: &Value, manager: &str) -> bool {
    let entries = live["metadata"]["managedFields"].as_array();
    let mut entries = entries.into_iter().flatten();
    let entry = entries.find(|entry| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default().is_empty()
            && entry["apiVersion"] == desired["apiVersion"]
    });
    let Some(entry) = entry else {
        return false;
    };
    let api_version = desired["apiVersion"].as_str().unwrap_or_default();
    let place = Place {
        built_in: BUILT_IN.contains(&group(api_version)),
        parent: "",
        name: "",
    };
    holds(place, &entry["fieldsV1"], live, &owned_content(desired))
}

/// The groups whose kinds the server knows by itself. It rewrites quantities in them, leaves out what
/// is empty, and fills in some values by code.
const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The maps of built-in kinds whose values are quantities.
const OF_QUANTITIES: &[&str] = &[
    "capacity",
    "default",
    "defaultRequest",
    "hard",
    "limits",
    "max",
    "maxLimitRequestRatio",
    "min",
    "overhead",
    "requests",
];

/// The members of built-in kinds that are quantities.
const QUANTITIES: &[&str] = &["averageValue", "divisor", "sizeLimit"];

/// A place in an object: its name and that of the member around it. An element of a list has the names
/// of the list.
#[derive(Clone, Copy)]
struct Place<'a> {
    built_in: bool,
    parent: &'a str,
    name: &'a str,
}

// === impl Place ===

impl<'a> Place<'a> {
    fn member(self, name: &'a str) -> Self {
        Self {
            built_in: self.built_in,
            parent: self.name,
            name,
        }
    }

    fn is_quantity(self) -> bool {
        self.built_in
            && (OF_QUANTITIES.contains(&self.parent)
                || QUANTITIES.contains(&self.name)
                || (self.parent, self.name) == ("target", "value"))
    }

    /// Whether the server puts `value` here by itself, inside of what is owned as a whole.
    fn is_filled_in(self, value: &Value) -> bool {
        let default = match (self.parent, self.name) {
            ("fieldRef" | "volumeClaimTemplates", "apiVersion") => json!("v1"),
            ("resourceFieldRef", "divisor") => json!("0"),
            ("serviceAccountToken", "expirationSeconds") => json!(3600),
            ("ports", "protocol") => json!("TCP"),
            ("rules" | "resourceRules" | "excludeResourceRules", "scope") => json!("*"),
            ("roleRef" | "subjects", "apiGroup") => json!("rbac.authorization.k8s.io"),
            ("volumeClaimTemplates", "kind") => json!("PersistentVolumeClaim"),
            ("volumeClaimTemplates", "status") if is_empty(value) => json!({}),
            ("volumeClaimTemplates", "status") => json!({ "phase": "Pending" }),
            // The specification of one of them, or of a claim that a volume describes.
            ("spec", "volumeMode") => json!("Filesystem"),
            _ => return false,
        };
        self.built_in && *value == default
    }
}

/// What of an object can be owned: all but its identity, and what the server says itself.
fn owned_content(desired: &Value) -> Value {
    let mut content = desired.clone();
    let Some(members) = content.as_object_mut() else {
        return content;
    };
    members.retain(|name, _| !["apiVersion", "kind", "status"].contains(&name.as_str()));
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        let identity = ["name", "namespace", "uid", "resourceVersion"];
        metadata.retain(|name, _| !identity.contains(&name.as_str()));
        if metadata.is_empty() {
            members.remove("metadata");
        }
    }
    content
}

/// Whether `fields`, which are owned at a place, are those of `desired`, and have its values in `live`.
fn holds(place: Place<'_>, fields: &Value, live: &Value, desired: &Value) -> bool {
    let parts = fields.as_object().into_iter().flatten();
    let parts: Vec<(&String, &Value)> = parts.filter(|(name, _)| *name != ".").collect();
    match desired {
        // What is owned as a whole has no parts.
        _ if parts.is_empty() => is_same(place, live, desired),
        Value::Object(members) => holds_members(place, fields, parts.len(), live, members),
        Value::Array(elements) => holds_elements(place, &parts, live, elements),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn holds_members(
    place: Place<'_>,
    fields: &Value,
    owned: usize,
    live: &Value,
    desired: &Map<String, Value>,
) -> bool {
    let mut found = 0;
    let mut members = desired.iter().filter(|(_, value)| !value.is_null());
    members.all(|(name, value)| {
        let live = &live[name];
        match fields.get(format!("f:{name}")) {
            Some(fields) => {
                found += 1;
                holds(place.member(name), fields, live, value)
            }
            // An empty list or map has nothing in it to own, but custom resources keep it.
            None => is_empty(value) && (live == value || (place.built_in && is_empty(live))),
        }
    }) && found == owned
}

/// The same for the elements of a list. Their order counts: those of pods' environments depend on it,
/// and an apply carries it over.
fn holds_elements(
    place: Place<'_>,
    parts: &[(&String, &Value)],
    live: &Value,
    desired: &[Value],
) -> bool {
    let Some(live) = live.as_array() else {
        return false;
    };
    let mut order = Vec::new();
    let all = parts.iter().all(|(name, fields)| {
        let Some(key) = Key::read(name) else {
            return false;
        };
        let exact = desired.iter().position(|element| key.is_of(element));
        let wanted = exact.or_else(|| desired.iter().position(|element| key.is_told_by(element)));
        let found = live.iter().position(|element| key.is_of(element));
        let (Some(wanted), Some(found)) = (wanted, found) else {
            return false;
        };
        order.push((wanted, found));
        holds(place, fields, &live[found], &desired[wanted])
    });
    order.sort_unstable();
    all && order.len() == desired.len()
        && order
            .windows(2)
            .all(|pair| pair[0].0 != pair[1].0 && pair[0].1 < pair[1].1)
}

/// What tells an element of a list apart.
enum Key {
    /// Some of its members.
    Members(Map<String, Value>),
    /// Itself.
    Value(Value),
}

// === impl Key ===

impl Key {
    fn read(part: &str) -> Option<Self> {
        let (kind, text) = part.split_once(':')?;
        match (kind, serde_json::from_str(text).ok()?) {
            ("k", Value::Object(members)) => Some(Self::Members(members)),
            ("v", value) => Some(Self::Value(value)),
            _ => None,
        }
    }

    fn is_of(&self, element: &Value) -> bool {
        match self {
            Self::Members(members) => members.iter().all(|(name, key)| element[name] == *key),
            Self::Value(value) => element == value,
        }
    }

    /// The same for an element that need not tell the keys that have a default.
    fn is_told_by(&self, element: &Value) -> bool {
        match self {
            Self::Members(members) => members
                .iter()
                .all(|(name, key)| element[name].is_null() || element[name] == *key),
            Self::Value(value) => element == value,
        }
    }
}

/// Whether the server would store `desired` as `live`.
fn is_same(place: Place<'_>, live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut wanted = desired.iter().filter(|(_, value)| !value.is_null());
            let mut more = live.iter().filter(|(name, value)| {
                !value.is_null() && desired.get(*name).is_none_or(Value::is_null)
            });
            wanted.all(|(name, value)| {
                let live = live.get(name).unwrap_or(&Value::Null);
                is_same(place.member(name), live, value)
            }) && more.all(|(name, value)| place.member(name).is_filled_in(value))
        }
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len()
                && live
                    .iter()
                    .zip(desired)
                    .all(|(live, desired)| is_same(place, live, desired))
        }
        // Built-in kinds leave out what says nothing.
        (Value::Null, desired) => place.built_in && (is_empty(desired) || is_zero(desired)),
        (live, desired) => {
            let shape = Shape::plain();
            let shape = if place.is_quantity() {
                shape.quantity("")
            } else {
                shape
            };
            shape.equal(live, desired)
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_zero(value: &Value) -> bool {
    *value == json!(false) || *value == json!(0) || *value == json!("")
}
