//! What an object does not have yet.

use serde_json::{Map, Value};

/// The part of `desired` that is not in `live`, as a merge patch; `None` if all of it is there, whatever its values
/// are.
///
/// Maps are looked into, and everything else counts as a whole. Of the metadata only labels and annotations count.
#[must_use]
pub fn absent(live: &Value, desired: &Value) -> Option<Value> {
    let (live, desired) = (live.as_object()?, desired.as_object()?);
    let mut patch = Map::new();
    for (name, desired) in desired {
        let there = live.get(name).unwrap_or(&Value::Null);
        let part = match name.as_str() {
            "apiVersion" | "kind" | "status" => None,
            "metadata" => metadata(there, desired),
            _ => part(there, desired),
        };
        patch.extend(part.map(|part| (name.clone(), part)));
    }
    (!patch.is_empty()).then(|| patch.into())
}

fn metadata(live: &Value, desired: &Value) -> Option<Value> {
    let both = ["labels", "annotations"].into_iter();
    let parts =
        both.filter_map(|name| Some((name.to_owned(), part(&live[name], desired.get(name)?)?)));
    let patch: Map<_, _> = parts.collect();
    (!patch.is_empty()).then(|| patch.into())
}

/// What is missing at one place.
fn part(live: &Value, desired: &Value) -> Option<Value> {
    match (live, desired) {
        (_, Value::Null) => None,
        (Value::Object(live), Value::Object(desired)) => {
            let parts = desired.iter().filter_map(|(name, desired)| {
                let there = live.get(name).unwrap_or(&Value::Null);
                Some((name.clone(), part(there, desired)?))
            });
            let patch: Map<_, _> = parts.collect();
            (!patch.is_empty()).then(|| patch.into())
        }
        // An empty map says nothing that its absence does not.
        (Value::Null, Value::Object(desired)) if desired.is_empty() => None,
        (Value::Null, desired) => Some(desired.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::absent;
    use serde_json::{Value, json};

    #[test]
    fn only_what_is_not_there() {
        let desired = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": "db", "labels": { "app": "db" }, "ownerReferences": [{ "uid": "u1" }],
            },
            "data": { "password": "cA==", "user": "dQ==" },
        });
        for (live, expected) in [
            (desired.clone(), None),
            (
                json!({ "type": "other", "metadata": { "labels": { "app": "x" } },
                    "data": { "password": "", "user": "eA==", "more": "eQ==" } }),
                None,
            ),
            (
                json!({ "type": "Opaque", "metadata": { "labels": { "team": "x" } }, "data": { "user": "eA==" } }),
                Some(
                    json!({ "metadata": { "labels": { "app": "db" } }, "data": { "password": "cA==" } }),
                ),
            ),
            (
                json!({ "type": "Opaque", "metadata": { "labels": { "app": "db" } }, "data": null }),
                Some(json!({ "data": { "password": "cA==", "user": "dQ==" } })),
            ),
            (
                json!({ "type": "Opaque", "metadata": { "labels": { "app": "db" } }, "data": { "user": null, "password": "" } }),
                Some(json!({ "data": { "user": "dQ==" } })),
            ),
        ] {
            assert_eq!(absent(&live, &desired), expected, "{live}");
        }
    }

    /// Lists and scalars are there or not.
    #[test]
    fn what_has_no_names_counts_as_a_whole() {
        let live = json!({ "spec": { "a": [], "b": 0, "c": "" } });
        let desired = json!({ "spec": { "a": [1], "b": 1, "c": { "d": 1 }, "e": null, "f": {} } });
        assert_eq!(absent(&live, &desired), None);
        assert_eq!(absent(&live, &Value::Null), None);
    }
}
