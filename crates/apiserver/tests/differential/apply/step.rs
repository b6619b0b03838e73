//! What clients can ask for.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// Whether a second passes before it.
    pub(crate) late: bool,
    pub(crate) dry_run: bool,
    pub(crate) manager: &'static str,
    /// Whether it goes to the status.
    pub(crate) status: bool,
    pub(crate) verb: Verb,
}

#[derive(Clone, Debug)]
pub(crate) enum Verb {
    Apply {
        config: Value,
        force: bool,
        version: Version,
    },
    Create {
        body: Value,
    },
    Put {
        body: Value,
        version: Version,
        /// Whether it clears the managers.
        reset: bool,
    },
    Merge {
        patch: Value,
        reset: bool,
    },
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Unsaid,
    Current,
    Stale,
}

type Member = Option<(&'static str, Value)>;

/// A member that is there or not.
fn member(
    name: &'static str,
    weight: f64,
    values: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Member> {
    let values = values.prop_map(move |value| (name, value));
    prop::option::weighted(weight, values).boxed()
}

/// A member that is there.
fn always(
    name: &'static str,
    values: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Member> {
    values.prop_map(move |value| Some((name, value))).boxed()
}

fn object(members: Vec<BoxedStrategy<Member>>) -> BoxedStrategy<Value> {
    let object = |members: Vec<Member>| {
        let members = members.into_iter().flatten();
        let members = members.map(|(name, value)| (name.to_owned(), value));
        Value::Object(members.collect())
    };
    members.prop_map(object).boxed()
}

fn small() -> impl Strategy<Value = Value> {
    (0..2_u8).prop_map(|number| json!(number))
}

fn text() -> impl Strategy<Value = Value> {
    (0..2_u8).prop_map(|number| json!(number.to_string()))
}

/// A list of elements that differ in their keys, in any order.
fn distinct(
    element: impl Strategy<Value = Value>,
    key: impl Fn(&Value) -> String + 'static,
) -> impl Strategy<Value = Value> {
    prop::collection::vec(element, 0..4).prop_map(move |list| {
        let mut seen = Vec::new();
        let list = list.into_iter().filter(|value| {
            let key = key(value);
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        });
        list.collect()
    })
}

fn set(of: &[&str]) -> impl Strategy<Value = Value> + use<> {
    let of: Vec<Value> = of.iter().map(|value| json!(value)).collect();
    let length = of.len();
    let chosen = subsequence(of, 0..=length).prop_shuffle();
    chosen.prop_map(Value::Array)
}

fn tags() -> BoxedStrategy<Value> {
    object(vec![member("a", 0.5, text()), member("b", 0.5, text())])
}

fn ports() -> impl Strategy<Value = Value> {
    let port = (80..83_u8).prop_map(|port| json!(port));
    let protocol = select(vec![json!("TCP"), json!("UDP")]);
    let port = object(vec![
        always("port", port),
        member("protocol", 0.4, protocol),
        member("name", 0.4, text()),
        member("notes", 0.2, object(vec![member("a", 0.6, text())])),
    ]);
    distinct(port, |port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        format!("{protocol}{}", port["port"])
    })
}

fn free() -> BoxedStrategy<Value> {
    let values = prop_oneof![
        2 => small(),
        2 => small().prop_map(|value| json!({ "b": value })),
        1 => Just(json!({})),
        1 => small().prop_map(|value| json!([value])),
    ];
    object(vec![member("a", 0.8, values), member("c", 0.3, small())])
}

fn spec() -> BoxedStrategy<Value> {
    let note = prop_oneof![2 => text(), 1 => Just(Value::Null)];
    let two = |one, other| object(vec![member(one, 0.5, small()), member(other, 0.5, small())]);
    let steps = prop::collection::vec(small(), 0..2).prop_map(Value::Array);
    object(vec![
        member("size", 0.4, small()),
        member("note", 0.2, note),
        member("box", 0.3, two("x", "y")),
        member("frame", 0.2, two("w", "h")),
        member("tags", 0.3, tags()),
        member("ports", 0.4, ports()),
        member("colors", 0.3, set(&["r", "g", "b"])),
        member("steps", 0.2, steps),
        member("free", 0.2, free()),
    ])
}

fn status() -> BoxedStrategy<Value> {
    let condition = object(vec![
        always("type", select(vec![json!("A"), json!("B")])),
        member("status", 0.7, text()),
    ]);
    let conditions = distinct(condition, |condition| condition["type"].to_string());
    object(vec![
        member("seen", 0.5, small()),
        member("conditions", 0.5, conditions),
    ])
}

/// The members of an object beside its type and name.
fn body() -> BoxedStrategy<Value> {
    let finalizers = set(&["example.com/x", "example.com/y"]);
    let metadata = object(vec![
        member("labels", 0.3, tags()),
        member("finalizers", 0.2, finalizers),
    ]);
    object(vec![
        always("metadata", metadata),
        member("spec", 0.9, spec()),
        member("status", 0.4, status()),
    ])
}

/// What the schema cannot make sense of.
fn untyped() -> impl Strategy<Value = Value> {
    let specs = vec![
        json!({ "colors": ["r", "g", "r"] }),
        json!({ "ports": [{ "port": 80 }, { "port": 80, "protocol": "TCP" }] }),
        json!({ "other": 1 }),
        json!({ "ports": [{ "port": 80, "other": 1 }] }),
    ];
    select(specs).prop_map(|spec| json!({ "metadata": {}, "spec": spec }))
}

/// A merge patch: some members, and some that go.
fn patch() -> impl Strategy<Value = Value> {
    let gone: Vec<&[&str]> = vec![
        &["metadata", "labels", "a"],
        &["metadata", "finalizers"],
        &["spec"],
        &["spec", "size"],
        &["spec", "note"],
        &["spec", "box"],
        &["spec", "box", "x"],
        &["spec", "tags", "a"],
        &["spec", "ports"],
        &["spec", "colors"],
        &["spec", "free", "a"],
        &["status", "seen"],
        &["status", "conditions"],
    ];
    (body(), subsequence(gone, 0..4)).prop_map(|(mut patch, gone)| {
        for path in gone {
            let mut place = &mut patch;
            for name in path {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                place = &mut place[*name];
            }
            *place = Value::Null;
        }
        patch
    })
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![
        1 => Just(Version::Unsaid),
        9 => Just(Version::Current),
        1 => Just(Version::Stale),
    ]
}

fn verb() -> impl Strategy<Value = Verb> {
    let reset = || prop::bool::weighted(0.1);
    let of_apply = prop_oneof![
        9 => Just(Version::Unsaid),
        1 => Just(Version::Current),
        1 => Just(Version::Stale),
    ];
    let config = prop_oneof![19 => body(), 1 => untyped()];
    prop_oneof![
        9 => (config, prop::bool::weighted(0.4), of_apply).prop_map(
            |(config, force, version)| Verb::Apply { config, force, version }
        ),
        1 => body().prop_map(|body| Verb::Create { body }),
        3 => (body(), version(), reset())
            .prop_map(|(body, version, reset)| Verb::Put { body, version, reset }),
        3 => (patch(), reset()).prop_map(|(patch, reset)| Verb::Merge { patch, reset }),
        1 => Just(Verb::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let parts = (
        prop_oneof![5 => Just("a"), 1 => Just("b")],
        any::<bool>(),
        prop::bool::weighted(0.1),
        select(vec!["one", "two", "three"]),
        prop::bool::weighted(0.2),
        verb(),
    );
    parts.prop_map(|(name, late, dry_run, manager, status, verb)| Step {
        name,
        late,
        dry_run,
        manager,
        status,
        verb,
    })
}

/// Any requests, some of which come again, as those of controllers do.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let steps = prop::collection::vec((step(), prop::bool::weighted(0.2)), 1..40);
    steps.prop_map(|steps| {
        let mut all: Vec<Step> = Vec::new();
        for (step, again) in steps {
            let last = all.last().filter(|_| again).cloned();
            let late = step.late;
            all.push(last.map_or(step, |last| Step { late, ..last }));
        }
        all
    })
}
