//! An object with many values, each of which has to match a pattern, and requests beside it.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::definitions::{Beside, PATH, beside};
use crate::requests::{JSON, p99, per_second};
use crate::way::Way;
use crate::{Figure, Target};

pub(crate) const OPERATION: &str = "patterns";

const PATTERNS: usize = 50;
const ENTRIES: usize = 1_000;
const ROUNDS: usize = 20;

/// Patterns as definitions have them: names, amounts, addresses, durations.
const KINDS: [(&str, &str); 5] = [
    (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "shop-1.example.com",
    ),
    (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "1.5Gi",
    ),
    (
        r"^(([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])$",
        "192.168.10.201",
    ),
    (r"^([0-9]{1,5}(h|m|s|ms)){1,4}$", "1h30m"),
    (
        r"^([\p{L}0-9-]{1,63}\.){1,4}[a-z]{2,8}$",
        "kaffee-é.example.com",
    ),
];

/// A definition with so many patterns, no two of which are the same.
fn definition() -> String {
    let member = |index: usize| {
        let (pattern, _) = KINDS[index % KINDS.len()];
        let pattern = format!("{pattern}|^only{index}$");
        (
            format!("m{index}"),
            json!({ "type": "string", "pattern": pattern }),
        )
    };
    let members: Map<String, Value> = (0..PATTERNS).map(member).collect();
    let entries = json!({ "type": "array", "items": { "type": "object", "properties": members } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "lists.patterns.example.com" },
        "spec": {
            "group": "patterns.example.com",
            "scope": "Namespaced",
            "names": { "plural": "lists", "kind": "Listing" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": { "entries": entries } } },
                } },
            }],
        },
    })
    .to_string()
}

/// An object whose entries go through the patterns in turn.
fn object(number: usize) -> String {
    let entry = |index: usize| {
        let member = index % PATTERNS;
        json!({ format!("m{member}"): KINDS[member % KINDS.len()].1 })
    };
    let entries: Vec<Value> = (0..ENTRIES).map(entry).collect();
    json!({
        "apiVersion": "patterns.example.com/v1",
        "kind": "Listing",
        "metadata": { "name": format!("list{number}") },
        "spec": { "entries": entries },
    })
    .to_string()
}

/// The creations, and the small requests beside them.
pub(crate) async fn measure(way: Way) -> [Figure; 2] {
    way.lane()
        .await
        .send("POST", PATH, JSON, &definition())
        .await;
    let path = "/apis/patterns.example.com/v1/namespaces/default/lists";
    let start = Instant::now();
    let times = beside(&way, path, (0..ROUNDS).map(object).collect()).await;
    let Beside {
        mut large,
        mut small,
    } = times;
    let figure = |operation, times: &mut Vec<Duration>, most| Figure {
        way: way.name,
        operation,
        per_second: per_second(times.len(), start.elapsed()),
        p99: p99(times),
        target: Some(Target::P99(Duration::from_millis(most))),
    };
    [
        figure(OPERATION, &mut large, 50),
        figure("beside-patterns", &mut small, 5),
    ]
}
