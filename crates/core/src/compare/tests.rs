use super::{Shape, owns, quantity, without_nulls};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Takes a table: on each line what is live, what is desired, and the patch from one to the other, or
/// `-` if there is no difference.
#[track_caller]
fn check(shape: &Shape, table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let cells: Vec<_> = line.split(" | ").map(str::trim).collect();
        let &[live, desired, patch] = &*cells else {
            panic!("a line has three cells: {line}")
        };
        let (live, desired) = (parsed(live), parsed(desired));
        let same = patch == "-";
        let patch = (!same).then(|| parsed(patch));
        assert_eq!(shape.merge_patch(&live, &desired), patch, "{line}");
        assert_eq!(shape.equal(&live, &desired), same, "{line}");
        assert_eq!(shape.equal(&desired, &live), same, "{line}");
        assert!(!same || shape.covers(&live, &desired), "{line}");
    }
}

#[track_caller]
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// B26, and what was recorded from a server: null is absent, but nothing else that is empty.
#[test]
fn null_absent_and_empty() {
    check(
        &Shape::plain(),
        r#"
        {"a": 1}         | {"a": 1}           | -
        {"a": 1}         | {"a": 2}           | {"a": 2}
        {}               | {"a": 1}           | {"a": 1}
        {"a": 1, "b": 2} | {"b": 2}           | {"a": null}
        {}               | {"a": null}        | -
        {"a": null}      | {}                 | -
        {"a": 1}         | {"a": null}        | {"a": null}
        {"a": null}      | {"a": 1}           | {"a": 1}
        [{"a": null}]    | [{}]               | -
        {"a": [1]}       | {"a": [1, null]}   | {"a": [1, null]}
        null             | null               | -
        null             | {}                 | {}
        {}               | null               | null
        {}               | {"a": ""}          | {"a": ""}
        {}               | {"a": []}          | {"a": []}
        {}               | {"a": {}}          | {"a": {}}
        {"a": []}        | {"a": {}}          | {"a": {}}
        {"a": []}        | {}                 | {"a": null}
        "#,
    );
}

#[test]
fn numbers_and_texts() {
    check(
        &Shape::plain(),
        r#"
        1                | 1.0                | -
        0                | -0.0               | -
        -1               | -1e0               | -
        1                | 1.5                | 1.5
        1.5              | 1.5                | -
        1                | "1"                | "1"
        1                | true               | true
        "1"              | "1000m"            | "1000m"
        "1"              | "1 "               | "1 "
        18446744073709551615 | 18446744073709551614 | 18446744073709551614
        18446744073709551615 | 18446744073709551615 | -
        9007199254740993 | 9007199254740992.0 | 9007199254740992.0
        "#,
    );
}

#[test]
fn maps_and_lists() {
    check(
        &Shape::plain(),
        r#"
        {"a": {"b": 1, "c": 2}}   | {"a": {"b": 1, "c": 3}}         | {"a": {"c": 3}}
        {"a": {"b": 1}}           | {"a": {}}                       | {"a": {"b": null}}
        {}                        | {"a": {"b": null, "c": {"d": null}}} | {"a": {"c": {}}}
        {"a": [1]}                | {"a": {"b": 1}}                 | {"a": {"b": 1}}
        {"a": [1, 2]}             | {"a": [1, 2.0]}                 | -
        {"a": [1, 2]}             | {"a": [2, 1]}                   | {"a": [2, 1]}
        {"a": [{"b": 1, "c": 1}]} | {"a": [{"b": 2, "c": 1}]}       | {"a": [{"b": 2, "c": 1}]}
        "#,
    );
}

/// H9, B23: the order of lists that are maps or sets does not count; that of others does.
#[test]
fn order_of_lists() {
    let shape = Shape::of_status()
        .list_map("/ports", ["port", "protocol"])
        .list_map("/pools/*/members", ["name"])
        .set("/zones");
    check(
        &shape,
        r#"
        {"conditions": [{"type": "A"}, {"type": "B"}] } | {"conditions": [{"type": "B"}, {"type": "A"}] } | -
        {"conditions": [{"type": "A"}, {"type": "B"}] } | {"conditions": [{"type": "A"}]}   | {"conditions": [{"type": "A"}]}
        {"conditions": [{"type": "A", "x": 1}]} | {"conditions": [{"type": "A", "x": 2}]}   | {"conditions": [{"type": "A", "x": 2}]}
        {"other": [{"type": "A"}, {"type": "B"}] } | {"other": [{"type": "B"}, {"type": "A"}] } | {"other": [{"type": "B"}, {"type": "A"}]}
        {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]} | {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": null}]} | -
        {"pools": {"p": {"members": [{"name": "a"}, {"name": "b"}]}}} | {"pools": {"p": {"members": [{"name": "b"}, {"name": "a"}]}}} | -
        {"pools": [{"members": [{"name": "a"}, {"name": "b"}]}]} | {"pools": [{"members": [{"name": "b"}, {"name": "a"}]}]} | -
        {"zones": ["a", "b", 1]} | {"zones": ["b", 1, "a"]} | -
        {"zones": ["a", "a", "b"]} | {"zones": ["a", "b", "b"]} | {"zones": ["a", "b", "b"]}
        "#,
    );
    check(&Shape::plain().set(""), r#"["a", "b"] | ["b", "a"] | -"#);
}

/// Where a list is not what it should be, its order counts.
#[test]
fn lists_that_are_no_maps() {
    check(
        &Shape::of_status().set("/zones"),
        r#"
        {"conditions": [{"type": "A"}, {"type": "A"}]} | {"conditions": [{"type": "A"}, {"type": "A"}]} | -
        {"conditions": [{"x": 1}, {"x": 2}]} | {"conditions": [{"x": 2}, {"x": 1}]} | {"conditions": [{"x": 2}, {"x": 1}]}
        {"conditions": [1, 2]} | {"conditions": [2, 1]} | {"conditions": [2, 1]}
        {"conditions": "x"}    | {"conditions": "x"}    | -
        {"zones": [{}, []]}    | {"zones": [[], {}]}    | {"zones": [[], {}]}
        "#,
    );
}

#[test]
fn names_with_slashes() {
    let shape = Shape::plain().set("/a~1b/c~0d");
    let (one, other) = (
        json!({ "a/b": { "c~d": [1, 2] } }),
        json!({ "a/b": { "c~d": [2, 1] } }),
    );
    assert!(shape.equal(&one, &other));
}

/// B26: notations of one quantity, and texts that look alike.
#[test]
fn quantities() {
    let same = r#"
        "1" "1000m"     "1" 1           "0.5" "500m"    ".5" "5e-1"     "1." "+1"
        "1Gi" "1024Mi"  "0.5Gi" "512Mi" "1G" "1000M"    "1k" "1e3"      "1E" "1E18"
        "1000000u" "1000000000n"        "-0" "0Gi"      "-100m" "-0.1"
    "#;
    let other = r#"
        "1G" "1Gi"      "1" "-1"        "1" "1001m"     "1M" "1m"
        "1K" "1000"     "1.0.0" "1.00"  "--1" "-1"      "" "0"          "." "0"
        "m" "0"         "1e" "1"        "1\t" "1"       "\uff11" "1"    true "1"
        null "0"        "1e99999999999" "1e99999999998"
        "99999999999999999999999999999999999999999" "9999999999999999999999999999999999999999e1"
    "#;
    let shape = Shape::plain().quantity("/cpu");
    for (pairs, same) in [(same, true), (other, false)] {
        let words: Vec<&str> = pairs.split_whitespace().collect();
        for pair in words.chunks(2) {
            let (one, other) = (
                json!({ "cpu": parsed(pair[0]) }),
                json!({ "cpu": parsed(pair[1]) }),
            );
            assert_eq!(shape.equal(&one, &other), same, "{one} {other}");
            assert!(shape.equal(&one, &one), "{one}");
        }
    }
    let extreme = json!(format!("1.{}e{}", "0".repeat(10), i32::MIN));
    assert_eq!(quantity::of(&extreme), None);
}

#[test]
fn what_covers() {
    let shape = Shape::of_status()
        .list_map("/ports", ["port", "protocol"])
        .set("/zones");
    let live = json!({
        "phase": "Ready",
        "extra": 1,
        "ports": [
            { "port": 80, "protocol": "TCP", "open": true },
            { "port": 80, "protocol": "UDP" },
            { "port": 443, "protocol": "TCP" },
        ],
        "zones": ["a", "b"],
        "steps": [{ "run": "x", "shell": "sh" }],
        "nothing": null,
    });
    for (desired, covered) in [
        (json!({}), true),
        (json!({ "phase": "Ready", "gone": null }), true),
        (json!({ "phase": "Busy" }), false),
        (json!({ "absent": 1 }), false),
        (json!({ "absent": {} }), false),
        (json!({ "ports": [{ "port": 443 }] }), true),
        (
            json!({ "ports": [{ "port": 80, "protocol": "TCP", "open": true }] }),
            true,
        ),
        (
            json!({ "ports": [{ "port": 80, "protocol": "TCP", "open": false }] }),
            false,
        ),
        // It is not said which.
        (json!({ "ports": [{ "port": 80 }] }), false),
        (json!({ "ports": [{ "port": 8080 }] }), false),
        (json!({ "ports": [] }), true),
        (json!({ "zones": ["b"] }), true),
        (json!({ "zones": ["c"] }), false),
        // An ordinary list is owned as a whole.
        (json!({ "steps": [{ "run": "x" }] }), false),
        (json!({ "steps": [{ "run": "x", "shell": "sh" }] }), true),
        (json!({ "phase": { "a": 1 } }), false),
    ] {
        assert_eq!(shape.covers(&live, &desired), covered, "{desired}");
    }
}

/// A1: an apply is only left out if it would change no owner either.
#[test]
fn what_is_owned() {
    let fields = json!({
        "f:phase": {},
        "f:limits": {},
        "f:used": { ".": {}, "f:cpu": {} },
        "f:zones": { "v:\"a\"": {}, "v:1": {} },
        "f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} },
            "k:{\"port\":81,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {}, "f:open": {} },
        },
    });
    let applied = json!({
        "phase": "Ready",
        "limits": { "any": ["thing"] },
        "used": { "cpu": "1" },
        "zones": ["a", 1],
        "ports": [{ "port": 81, "open": true }, { "port": 80 }],
        "gone": null,
    });
    assert!(owns(&fields, &applied));

    let with = |pointer: &str, value: Value| {
        let mut changed = applied.clone();
        *changed.pointer_mut(pointer).expect("the place exists") = value;
        changed
    };
    for unlike in [
        with("/phase", json!(null)),
        with("/gone", json!("new")),
        with("/used", json!({})),
        with("/used", json!({ "cpu": "1", "memory": "1" })),
        with("/used", json!("all")),
        with("/zones", json!(["a"])),
        with("/zones", json!(["a", 2])),
        with("/zones", json!(["a", 1, 2])),
        with("/ports", json!([{ "port": 80 }])),
        with("/ports", json!([{ "port": 80 }, { "port": 81 }])),
        with(
            "/ports",
            json!([{ "port": 80 }, { "port": 82, "open": true }]),
        ),
        with(
            "/ports",
            json!([{ "port": 80, "open": true }, { "port": 81, "open": true }]),
        ),
    ] {
        assert!(!owns(&fields, &unlike), "{unlike}");
    }
    // What an apply does not say any more is removed by it, so it must be sent.
    assert!(!owns(&fields, &json!({ "phase": "Ready" })));
    assert!(!owns(&json!(null), &json!({})));
    assert!(!owns(&json!({ "i:0": {}, "odd": {} }), &json!([1, 2])));
    assert!(!owns(&json!({ "k:not json": {} }), &json!([{ "a": 1 }])));
    assert!(owns(&json!({}), &json!({})));
}

#[test]
fn nulls_are_dropped_where_a_merge_patch_looks() {
    let value = json!({ "a": null, "b": { "c": null, "d": 1 }, "e": [null, { "f": null }] });
    let expected = json!({ "b": { "d": 1 }, "e": [null, { "f": null }] });
    assert_eq!(without_nulls(&value), expected);
}

/// RFC 7386, as naive as it is there.
fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut target = target.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        let before = target.remove(name).unwrap_or(Value::Null);
        if !value.is_null() {
            target.insert(name.clone(), merged(&before, value));
        }
    }
    Value::Object(target)
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        Just(json!(1.0)),
        prop::sample::select(&["", "1", "1000m"][..]).prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        let names = prop::sample::select(&["a", "b", "set", "type"][..]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The patch does what it is for, and once it has been carried out there is none.
    #[test]
    fn a_patch_leads_to_what_is_desired(live in value(), desired in value()) {
        let shape = Shape::plain()
            .set("/set")
            .list_map("/a", ["type"])
            .quantity("/b/*");
        match shape.merge_patch(&live, &desired) {
            None => {
                prop_assert!(shape.equal(&live, &desired));
                prop_assert!(shape.covers(&live, &desired));
            }
            Some(patch) => {
                prop_assert!(!shape.equal(&live, &desired));
                let live = merged(&live, &patch);
                prop_assert!(shape.equal(&live, &desired), "{patch} led to {live}");
                prop_assert_eq!(shape.merge_patch(&live, &desired), None);
            }
        }
    }

    /// Nobody is surprised by a text.
    #[test]
    fn any_text_may_be_a_quantity(text in "[-+.0-9eEmkKMGi]{0,12}") {
        let shape = Shape::plain().quantity("");
        let text = json!(text);
        prop_assert!(shape.equal(&text, &text));
    }
}
