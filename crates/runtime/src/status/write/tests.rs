use super::{completed, is_applied, merge_body};
use homeostat_core::compare::Shape;
use serde_json::{Value, json};

fn live(status: &Value) -> Value {
    let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7", "labels": {} });
    json!({ "apiVersion": "v1", "kind": "Site", "metadata": metadata, "status": status })
}

/// The body says what differs, and names the version that it was made from.
#[test]
fn what_a_merge_patch_holds_for() {
    let before = json!({ "phase": "Busy", "conditions": [{ "type": "A" }, { "type": "B" }] });
    for (desired, body) in [
        (before.clone(), None),
        (
            json!({ "phase": "Busy", "conditions": [{ "type": "B" }, { "type": "A" }] }),
            None,
        ),
        (
            json!({ "phase": "Ready", "conditions": before["conditions"] }),
            Some(json!({ "metadata": { "resourceVersion": "7" }, "status": { "phase": "Ready" } })),
        ),
        (
            json!({ "phase": "Busy", "conditions": [{ "type": "A" }] }),
            Some(json!({
                "metadata": { "resourceVersion": "7" },
                "status": { "conditions": [{ "type": "A" }] },
            })),
        ),
        (
            json!(null),
            Some(json!({ "metadata": { "resourceVersion": "7" }, "status": null })),
        ),
    ] {
        let patch = merge_body(&Shape::of_status(), &live(&before), &desired);
        assert_eq!(patch, body, "{desired}");
    }
    // Of an object that was never on a server nothing is known.
    let patch = merge_body(
        &Shape::of_status(),
        &json!({}),
        &json!({ "conditions": [] }),
    );
    assert_eq!(
        patch,
        Some(json!({ "metadata": {}, "status": { "conditions": [] } }))
    );
}

#[test]
fn a_status_is_completed_with_the_conditions_of_others() {
    let other = json!({ "type": "Other", "status": "True", "lastTransitionTime": "1" });
    let mine = json!({ "type": "Mine", "status": "True", "lastTransitionTime": "9" });
    for (live, desired, expected) in [
        (json!(null), json!({}), json!({})),
        (json!({ "conditions": [] }), json!({}), json!({})),
        (
            json!(null),
            json!({ "conditions": [] }),
            json!({ "conditions": [] }),
        ),
        (
            json!({ "conditions": [other] }),
            json!({ "phase": "x" }),
            json!({ "phase": "x", "conditions": [other] }),
        ),
        (
            json!({ "conditions": [other] }),
            json!({ "conditions": [mine] }),
            json!({ "conditions": [mine, other] }),
        ),
        // These are not the conditions that everybody knows.
        (
            json!({ "conditions": [other] }),
            json!({ "conditions": { "a": 1 } }),
            json!({ "conditions": { "a": 1 } }),
        ),
        // Whoever wants no status wants none.
        (json!({ "conditions": [other] }), json!(null), json!(null)),
    ] {
        assert_eq!(
            completed(&live, desired.clone()),
            expected,
            "{live} {desired}"
        );
    }
}

#[test]
fn when_an_apply_is_left_out() {
    let entry = |manager: &str, operation: &str, subresource: &str, fields: Value| {
        json!({
            "manager": manager, "operation": operation, "subresource": subresource,
            "fieldsV1": { "f:status": fields },
        })
    };
    let mine = json!({ "f:phase": {} });
    let all = json!({ "f:phase": {}, "f:size": {} });
    let desired = json!({ "phase": "Ready" });
    let status = json!({ "phase": "Ready", "size": 1 });
    for (entries, status, applied) in [
        (
            json!([entry("me", "Apply", "status", mine.clone())]),
            &status,
            true,
        ),
        (
            json!([
                entry("other", "Apply", "status", all.clone()),
                entry("me", "Update", "status", all.clone()),
                entry("me", "Apply", "status", mine.clone()),
            ]),
            &status,
            true,
        ),
        // What is there is not what is desired.
        (
            json!([entry("me", "Apply", "status", mine.clone())]),
            &json!({ "phase": "Busy" }),
            false,
        ),
        // There is something to be taken back.
        (
            json!([entry("me", "Apply", "status", all.clone())]),
            &status,
            false,
        ),
        // It belongs to somebody else.
        (
            json!([entry("other", "Apply", "status", mine.clone())]),
            &status,
            false,
        ),
        (
            json!([entry("me", "Update", "status", mine.clone())]),
            &status,
            false,
        ),
        (
            json!([entry("me", "Apply", "", mine.clone())]),
            &status,
            false,
        ),
        // Nobody knows whose it is.
        (json!([]), &status, false),
        (json!([]), &desired, true),
        (json!(null), &desired, true),
    ] {
        let mut live = live(status);
        live["metadata"]["managedFields"] = entries;
        let answer = is_applied(&Shape::of_status(), &live, &desired, "me");
        assert_eq!(answer, applied, "{live}");
    }
}
