use super::{Decoded, Failure, Line, Page, Reading, Text, line as read_line, version};
use bytes::Bytes;
use homeostat_core::watch::Change;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{ResourceExt, core::DynamicObject};
use serde::Deserialize;
use serde_json::{Value, json};

fn line<K: Text>(text: &[u8]) -> Result<Line<K>, super::Trouble> {
    read_line(text, &Reading::all(), false)
}

fn page(list: &Value) -> Page {
    Page::open(&Bytes::from(list.to_string())).unwrap()
}

fn objects<K: Text>(mut page: Page) -> Vec<Decoded<K>> {
    std::iter::from_fn(|| page.next(&Reading::all())).collect()
}

#[test]
fn page_is_opened_without_decoding_its_objects() {
    let list = json!({
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": { "resourceVersion": "7", "continue": "next", "remainingItemCount": 3 },
        "items": [
            { "metadata": { "name": "a", "namespace": "x", "resourceVersion": "5" } },
            { "metadata": { "name": "b", "namespace": "x", "resourceVersion": "6" }, "spec": 1 },
            { "metadata": { "name": "c", "namespace": "x" } },
        ],
    });
    let page = page(&list);
    assert_eq!(
        (&*page.version, page.continue_token.as_deref()),
        ("7", Some("next"))
    );
    let pods = objects::<Pod>(page);
    assert_eq!(pods[0].as_ref().unwrap().name_any(), "a");
    let unfit = pods[1].as_ref().unwrap_err();
    assert_eq!(unfit.kind.as_deref(), Some("Pod"));
    assert_eq!(unfit.meta.name.as_deref(), Some("b"));
    assert_eq!(unfit.meta.namespace.as_deref(), Some("x"));
    assert_eq!(version(&pods[1]), "6");
    assert_eq!(unfit.path, "spec");
    assert_eq!(unfit.message, "invalid type: integer, expected PodSpec");
    assert_eq!(pods[2].as_ref().unwrap().name_any(), "c");
}

#[test]
fn page_without_objects() {
    for items in [json!([]), Value::Null] {
        let list =
            json!({ "metadata": { "resourceVersion": "7", "continue": "" }, "items": items });
        let page = page(&list);
        assert_eq!(page.continue_token, None);
        assert!(objects::<Pod>(page).is_empty());
    }
}

#[test]
fn page_that_is_none() {
    for (body, message) in [
        (
            "",
            "the list cannot be read: EOF while parsing a value at line 1 column 0",
        ),
        (
            "<html>",
            "the list cannot be read: expected value at line 1 column 1",
        ),
        ("{}", "the list has no resourceVersion"),
        (
            r#"{"metadata":{"resourceVersion":"1"},"items":"hunter2"}"#,
            "the list cannot be read: invalid type: string, expected a sequence",
        ),
    ] {
        let Err(Failure::Trouble(error)) = Page::open(&Bytes::from(body)) else {
            panic!("{body} is no page");
        };
        assert_eq!(error.to_string(), message);
    }
}

// Built-in kinds leave the types of objects out in lists, others do not.
#[test]
fn objects_of_any_kind_get_their_types_from_the_list() {
    let list = json!({
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": { "resourceVersion": "7" },
        "items": [
            { "metadata": { "name": "a" }, "spec": { "nodeName": "n" } },
            { "metadata": { "name": "b" }, "apiVersion": "v2", "kind": "Other" },
            { "metadata": {} },
            {},
        ],
    });
    let mut seen = Vec::new();
    for object in objects::<DynamicObject>(page(&list)) {
        let object = object.unwrap();
        let types = object
            .types
            .as_ref()
            .map(|types| format!("{} {}", types.api_version, types.kind));
        seen.push((object.name_any(), types));
    }
    let types = |name: &str, types: Option<&str>| (name.to_owned(), types.map(str::to_owned));
    assert_eq!(
        seen,
        [
            types("a", Some("v1 Pod")),
            types("b", Some("v2 Other")),
            types("", None),
            types("", None)
        ]
    );
    let object = objects::<DynamicObject>(page(&list))
        .swap_remove(0)
        .unwrap();
    assert_eq!(object.data, json!({ "spec": { "nodeName": "n" } }));
}

fn line_of(kind: &str, object: &Value) -> Result<Line<Secret>, String> {
    let event = json!({ "type": kind, "object": object }).to_string();
    line(event.as_bytes()).map_err(|trouble| trouble.to_string())
}

#[test]
fn lines() {
    let secret = json!({
        "kind": "Secret", "apiVersion": "v1", "metadata": { "name": "a", "resourceVersion": "5" },
    });
    for (kind, expected) in [
        ("ADDED", Change::Applied),
        ("MODIFIED", Change::Applied),
        ("DELETED", Change::Deleted),
    ] {
        let Ok(Line::Object(change, Ok(object))) = line_of(kind, &secret) else {
            panic!("{kind} is an object");
        };
        assert_eq!((change, object.name_any()), (expected, "a".to_owned()));
    }
    for (annotations, end) in [
        (json!(null), false),
        (json!({ "other": "true" }), false),
        (json!({ "k8s.io/initial-events-end": "true" }), true),
    ] {
        let object = json!({ "metadata": { "resourceVersion": "9", "annotations": annotations } });
        let Ok(Line::Bookmark {
            version,
            initial_events_end,
        }) = line_of("BOOKMARK", &object)
        else {
            panic!("this is a bookmark");
        };
        assert_eq!((&*version, initial_events_end), ("9", end));
    }
    let status = json!({ "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired" });
    assert!(matches!(line_of("ERROR", &status), Ok(Line::Error(status)) if status.code == 410));
    let bare = line::<Secret>(status.to_string().as_bytes());
    assert!(matches!(bare, Ok(Line::Error(status)) if status.code == 410));
}

#[test]
fn lines_that_make_no_sense() {
    let nameless = json!({ "metadata": {}, "data": "hunter2" });
    let messages = [
        line_of("ADDED", &nameless).unwrap_err(),
        line_of("hunter2", &nameless).unwrap_err(),
        line_of("BOOKMARK", &nameless).unwrap_err(),
        line_of("ERROR", &json!("hunter2")).unwrap_err(),
        line::<Secret>(br#"{"hunter2":1}"#).unwrap_err().to_string(),
        line::<Secret>(b"hunter2").unwrap_err().to_string(),
    ];
    assert_eq!(
        messages,
        [
            "an object has no resourceVersion",
            "an event has a type that is not known",
            "a bookmark cannot be read: missing field `resourceVersion`",
            "an error cannot be read: invalid type: string, expected struct Status",
            "an event cannot be read: missing field `type`",
            "an event cannot be read: expected value at line 1 column 1",
        ]
    );
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only what cannot be decoded is looked at")]
struct Strict {
    number: Option<u8>,
    choice: Option<Choice>,
    pair: Option<(u8, u8)>,
    address: Option<std::net::IpAddr>,
    nested: Option<Vec<Strict>>,
    #[serde(default)]
    character: char,
}

#[derive(Debug, Deserialize)]
enum Choice {
    One,
    Two,
}

// R13: what does not fit is told without the value, which may be a secret, whatever is in it.
#[test]
fn values_are_not_told() {
    let tricky = "hunter2, expected hunter2 `hunter2` \"hunter2\" at line 1 column 1";
    let told = |object: &Value| {
        let text = object.to_string();
        let unfit = super::object::<Strict>(text.as_bytes()).unwrap_err();
        format!("{}: {}", unfit.path, unfit.message)
    };
    let messages = [
        told(&json!({ "number": tricky })),
        told(&json!({ "number": 1234 })),
        told(&json!({ "number": -5.5 })),
        told(&json!({ "number": true })),
        told(&json!({ "number": [] })),
        told(&json!({ "nested": [{ "number": 1 }, { "number": {} }] })),
        told(&json!({ "choice": tricky })),
        told(&json!({ "pair": [1] })),
        told(&json!({ "address": tricky })),
        told(&json!({ "character": tricky })),
        told(&json!({ "colour": tricky })),
        told(&json!(tricky)),
    ];
    assert_eq!(
        messages,
        [
            "number: invalid type: string, expected u8",
            "number: invalid value: integer, expected u8",
            "number: invalid type: floating point, expected u8",
            "number: invalid type: boolean, expected u8",
            "number: invalid type: sequence, expected u8",
            "nested[1].number: invalid type: map, expected u8",
            "choice: unknown variant, expected `One` or `Two`",
            "pair: invalid length: 1, expected a tuple of size 2",
            "address: the value is not one of its type",
            "character: invalid value: string, expected a character",
            "colour: unknown field, expected one of `number`, `choice`, `pair`, `address`, `nested`, \
             `character`",
            ".: invalid type: string, expected struct Strict",
        ]
    );
}
