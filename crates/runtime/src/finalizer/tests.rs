use super::{Edit, Held, operations};
use serde_json::json;

const OURS: &str = "example.com/ours";

/// The patches are those that kube sends, so that tests which expect those go on to pass; the uid is
/// tested as well where it is known.
#[test]
fn patches_test_what_they_were_made_from() {
    let add = |list: serde_json::Value, edited: serde_json::Value| {
        json!([
            { "op": "test", "path": "/metadata/finalizers", "value": list },
            { "op": "add", "path": "/metadata/finalizers", "value": edited },
        ])
    };
    let remove = |place: usize| {
        let path = format!("/metadata/finalizers/{place}");
        json!([
            { "op": "test", "path": path, "value": OURS },
            { "op": "remove", "path": path },
        ])
    };
    for (edit, finalizers, expected) in [
        (Edit::Add, &[][..], add(json!(null), json!([OURS]))),
        (
            Edit::Add,
            &["a", "b"],
            add(json!(["a", "b"]), json!(["a", "b", OURS])),
        ),
        (Edit::Remove, &[OURS], remove(0)),
        (Edit::Remove, &["a", OURS, "b"], remove(1)),
    ] {
        let finalizers: Vec<String> = finalizers.iter().map(|&name| name.into()).collect();
        let held = |uid| Held {
            uid,
            deleting: edit == Edit::Remove,
            finalizers: &finalizers,
        };
        assert_eq!(operations(edit, OURS, held(None)), expected);
        let with_uid = operations(edit, OURS, held(Some("u")));
        let test = json!({ "op": "test", "path": "/metadata/uid", "value": "u" });
        let (first, rest) = with_uid.as_array().unwrap().split_first().unwrap();
        assert_eq!((first, rest), (&test, &expected.as_array().unwrap()[..]));
    }
}

/// kube#964: a list that has the name twice loses both in one patch, the last one first, so that the
/// places stay right.
#[test]
fn a_name_that_is_there_twice_is_removed_twice() {
    let finalizers = [OURS, "a", OURS].map(String::from);
    let held = Held {
        uid: None,
        deleting: true,
        finalizers: &finalizers,
    };
    assert_eq!(
        operations(Edit::Remove, OURS, held),
        json!([
            { "op": "test", "path": "/metadata/finalizers/2", "value": OURS },
            { "op": "remove", "path": "/metadata/finalizers/2" },
            { "op": "test", "path": "/metadata/finalizers/0", "value": OURS },
            { "op": "remove", "path": "/metadata/finalizers/0" },
        ])
    );
}
