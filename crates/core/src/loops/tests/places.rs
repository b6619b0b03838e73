//! Paths, owners and differences.

use crate::loops::difference::{differences, not_kept, place, put_back};
use crate::loops::managed::{owners, since, times};
use crate::loops::{Path, Segment};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::fmt::Write as _;

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better at the many calls"
)]
fn differ(before: Value, after: Value, expected: Expect) {
    let differences = differences(Some(&before), Some(&after));
    let lines = differences.iter().map(|difference| {
        let order = if difference.reordered { " (order)" } else { "" };
        let [old, new] = [&before, &after].map(|object| difference.path.find(object).is_some());
        format!("{}{order} {old} {new}\n", difference.path)
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn what_differs() {
    differ(
        json!({ "a": 1, "b": { "c": 1 }, "d": null }),
        json!({ "a": 2, "b": {}, "e": null }),
        expect![[r#"
            .a true true
            .b.c true false
        "#]],
    );
    // The server's own metadata does not count.
    differ(
        json!({ "metadata": { "resourceVersion": "1", "uid": "a", "labels": { "a/b": "c" } } }),
        json!({ "metadata": { "resourceVersion": "2", "generation": 1, "managedFields": [{}] } }),
        expect![[r#"
            .metadata.labels["a/b"] true false
        "#]],
    );
    // A map that came is what came in it; an empty one is something, too.
    differ(
        json!({ "metadata": {} }),
        json!({ "metadata": { "annotations": { "b": "c" } }, "spec": {} }),
        expect![[r#"
            .metadata.annotations.b false true
            .spec false true
        "#]],
    );
}

#[test]
fn what_differs_in_lists() {
    // By what usually tells elements apart.
    differ(
        json!({ "list": [{ "name": "a", "value": 1 }, { "name": "b" }] }),
        json!({ "list": [{ "name": "c" }, { "name": "a", "value": 2 }] }),
        expect![[r#"
            .list[name=a].value true true
            .list[name=b] true false
            .list[name=c] false true
        "#]],
    );
    // By their positions.
    differ(
        json!({ "list": [{ "x": 1 }, { "x": 2 }] }),
        json!({ "list": [{ "x": 1 }, { "x": 3 }] }),
        expect![[r#"
            .list[1].x true true
        "#]],
    );
    differ(
        json!({ "list": ["a", "b"] }),
        json!({ "list": ["a", "c"] }),
        expect![[r#"
            .list true true
        "#]],
    );
    differ(
        json!({ "list": [{ "x": 1 }] }),
        json!({ "list": [] }),
        expect![[r#"
            .list true true
        "#]],
    );
    // Order.
    differ(
        json!({ "list": [1, 2, 2] }),
        json!({ "list": [2, 1, 2] }),
        expect![[r#"
            .list (order) true true
        "#]],
    );
    differ(
        json!({ "list": [{ "name": "a" }, { "name": "b", "x": 1 }] }),
        json!({ "list": [{ "name": "b", "x": 2 }, { "name": "a" }] }),
        expect![[r#"
            .list[name=b].x true true
            .list (order) true true
        "#]],
    );
    differ(
        json!({ "text": "a=1,b=2", "word": "a", "time": "10:00" }),
        json!({ "text": "b=2, a=1", "word": "b", "time": "11:00" }),
        expect![[r#"
            .text (order) true true
            .time true true
            .word true true
        "#]],
    );
}

/// The keys of a list that managers own elements of.
#[test]
fn the_keys_that_the_server_names() {
    let ports = |node_port: u64| {
        json!({
            "metadata": { "managedFields": [{
                "manager": "one",
                "fieldsV1": { "f:spec": { "f:ports": {
                    r#"k:{"port":53,"protocol":"UDP"}"#: { ".": {}, "f:port": {} },
                } } },
            }] },
            "spec": { "ports": [
                { "port": 53, "protocol": "TCP", "nodePort": node_port },
                { "port": 53, "protocol": "UDP" },
            ] },
        })
    };
    differ(
        ports(1),
        ports(2),
        expect![[r#"
        .spec.ports[port=53,protocol=TCP].nodePort true true
    "#]],
    );
}

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better at the many calls"
)]
fn lost(sent: Value, after: Value, expected: Expect) {
    let lost = not_kept(&sent, &after);
    let lines = lost.iter().map(|path| format!("{path}\n"));
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn what_the_server_has_put_back() {
    let live = |replicas: u64| {
        json!({
            "metadata": { "labels": { "theirs": "x" } },
            "spec": {
                "replicas": replicas, "colour": "red", "volumes": [],
                "containers": [{ "name": "app", "image": "a", "policy": "Always" }, { "name": "theirs", "policy": "x" }],
            },
            "status": { "ready": 1 },
        })
    };
    // Without a default, an element's default, an element and the status.
    let sent = json!({
        "apiVersion": "v1", "metadata": {},
        "spec": { "colour": null, "containers": [{ "name": "app", "image": "a" }] },
    });
    let check = |before: &Value, expected: Expect| {
        let found = put_back(&sent, before, &live(1));
        let lines = found.iter().map(|path| format!("{path}\n"));
        expected.assert_eq(&lines.collect::<String>());
    };
    check(
        &live(1),
        expect![[r#"
            .metadata.labels
            .spec.colour
            .spec.containers[name=app].policy
            .spec.replicas
        "#]],
    );
    // What was another value before was set anew.
    check(
        &live(2),
        expect![[r#"
            .metadata.labels
            .spec.colour
            .spec.containers[name=app].policy
        "#]],
    );
}

#[test]
fn where_all_is_that_is_sent() {
    for (sent, expected) in [
        (json!({ "status": { "a": 1 } }), ".status.a"),
        (json!({ "status": { "a": 1, "b": 1 } }), ".status"),
        (
            json!({ "apiVersion": "v1", "kind": "Site", "metadata": { "name": "a", "uid": "x" }, "spec": { "list": [{ "a": 1 }] } }),
            ".spec.list",
        ),
        (
            json!({ "metadata": { "name": "a", "annotations": { "a/b": "c" } } }),
            ".metadata.annotations[\"a/b\"]",
        ),
        (
            json!({ "metadata": { "labels": {} }, "spec": { "a": 1 } }),
            "the whole object",
        ),
        (
            json!({ "spec": { "kind": "x", "$patch": "merge" } }),
            ".spec.kind",
        ),
        (Value::Null, "the whole object"),
    ] {
        assert_eq!(place(&sent).to_string(), expected);
    }
    let path = place(&json!({ "spec": { "a": { "b": 1 } } }));
    assert_eq!(
        path.common(&place(&json!({ "spec": { "a": { "c": 1 } } })))
            .to_string(),
        ".spec.a"
    );
}

#[test]
fn what_the_server_has_not_kept() {
    lost(
        json!({
            "apiVersion": "v1", "kind": "Site",
            "metadata": { "name": "a", "resourceVersion": "1", "labels": { "a": "b" } },
            "spec": { "cpu": "1000m", "n": 1, "gone": { "deep": 1, "none": null }, "nothing": null, "empty": [], "none": {} },
        }),
        json!({
            "metadata": { "resourceVersion": "2" },
            "spec": { "cpu": "1", "n": 1.0, "more": true, "nothing": 1 },
        }),
        expect![[r#"
            .metadata.labels.a
            .spec.cpu
            .spec.gone.deep
            .spec.nothing
        "#]],
    );
    lost(
        json!({ "list": [{ "name": "a", "x": 1, "y": 1 }], "set": ["a", "b"], "pairs": [{ "x": 1 }, { "x": 2 }], "$setElementOrder/list": [] }),
        json!({ "list": [{ "name": "b" }, { "name": "a", "x": 1 }], "set": ["b"], "pairs": [{ "x": 1, "y": 1 }, { "x": 3 }] }),
        expect![[r#"
            .list[name=a].y
            .pairs[1].x
            .set
        "#]],
    );
}

#[test]
fn who_owns_what() {
    let object = json!({ "metadata": { "managedFields": [
        {
            "manager": "one", "operation": "Apply", "time": "2026-01-01T00:00:02Z",
            "fieldsV1": {
                "f:spec": { "f:replicas": {}, "f:whole": {}, "f:tags": { ".": {}, r#"v:"a""#: {} } },
                "f:status": { "f:conditions": {
                    r#"k:{"type":"Ready"}"#: { ".": {}, "f:status": {}, "f:type": {} },
                } },
            },
        },
        {
            "manager": "two", "operation": "Update", "subresource": "scale", "time": "2026-01-01T00:00:01Z",
            "fieldsV1": { "f:spec": { "f:replicas": {} } },
        },
        { "manager": "three" },
        { "fieldsV1": { "f:spec": { "f:replicas": {} } } },
        "nonsense",
    ] } });
    let spec = Path::default().member("spec");
    let element = |list: &Path, name: &str, text: &str| {
        list.then(Segment::Keyed(vec![(name.to_owned(), text.to_owned())]))
    };
    let conditions = Path::default().member("status").member("conditions");
    let ready = element(&conditions, "type", r#""Ready""#);
    let mut told = String::new();
    for path in [
        spec.member("replicas"),
        spec.member("whole").member("part"),
        spec.member("tags"),
        spec.member("other"),
        ready.member("status"),
        ready.member("message"),
        element(&conditions, "type", r#""Synced""#),
        Path::default(),
    ] {
        let owners: Vec<String> = owners(&object, &path)
            .iter()
            .map(ToString::to_string)
            .collect();
        writeln!(told, "{path}: {}.", owners.join(", ")).expect("a string takes all");
    }
    expect![[r#"
        .spec.replicas: one (Apply), two (Update of scale).
        .spec.whole.part: one (Apply).
        .spec.tags: one (Apply).
        .spec.other: .
        .status.conditions[type=Ready].status: one (Apply).
        .status.conditions[type=Ready].message: .
        .status.conditions[type=Synced]: .
        the whole object: one (Apply), two (Update of scale).
    "#]]
    .assert_eq(&told);
}

/// Who has written since: whose time has moved on, others before oneself.
#[test]
fn who_has_written_since() {
    let object = |times: &[(&str, u32)]| {
        let entries = times.iter().map(|(manager, second)| {
            json!({
                "manager": manager, "operation": "Update", "time": format!("2026-01-01T00:00:{second:02}Z"),
                "fieldsV1": {},
            })
        });
        json!({ "metadata": { "managedFields": entries.collect::<Vec<_>>() } })
    };
    let before = times(&object(&[("me", 5), ("other", 3), ("creator", 1)]));
    for (now, expected) in [
        (
            &[("me", 5), ("other", 6), ("creator", 1)][..],
            Some("other"),
        ),
        (&[("me", 6), ("other", 6), ("creator", 1)], Some("other")),
        (&[("me", 6), ("other", 3), ("creator", 1)], Some("me")),
        (&[("me", 5), ("other", 3), ("new", 5)], Some("new")),
        // Within a second it can only be guessed: not somebody whose last write is long ago.
        (&[("me", 5), ("other", 3), ("creator", 1)], Some("me")),
        (&[("me", 5), ("other", 5), ("creator", 1)], Some("other")),
        (&[("other", 3)], Some("other")),
        (&[], None),
    ] {
        let found = since(&before, &object(now), Some("me"));
        assert_eq!(
            found.map(|manager| manager.name).as_deref(),
            expected,
            "{now:?}"
        );
    }
    assert_eq!(since(&before, &json!(1), Some("me")), None);
}

#[test]
fn how_paths_are_written() {
    let path = Path::default().member("metadata").member("annotations");
    assert_eq!(
        path.member("a.b/c").to_string(),
        r#".metadata.annotations["a.b/c"]"#
    );
    assert_eq!(
        path.then(Segment::Index(3)).to_string(),
        ".metadata.annotations[3]"
    );
    let keys = [
        ("port", "53"),
        ("protocol", r#""UDP""#),
        ("host", r#""a.b""#),
    ];
    let keys = keys.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let list = Path::default()
        .member("ports")
        .then(Segment::Keyed(keys.to_vec()));
    assert_eq!(
        list.to_string(),
        r#".ports[port=53,protocol=UDP,host="a.b"]"#
    );
    assert_eq!(Path::default().to_string(), "the whole object");
}
