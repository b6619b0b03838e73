use super::{Identity, NAME, Occurrence, Told, body, cut, name, series};
use crate::events::{Event, EventType, Reporter};
use homeostat_core::finalizer::is_valid_name;
use k8s_openapi::{api::core::v1::ObjectReference, jiff::Timestamp};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

fn reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        name: Some(name.into()),
        namespace: Some("shop".into()),
        uid: Some("u".into()),
        resource_version: Some("7".into()),
        ..ObjectReference::default()
    }
}

fn event(note: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: "Failed".into(),
        note: Some(note.into()),
        action: "Trying".into(),
        secondary: Some(reference("other")),
    }
}

fn told(event: &Event, regarding: &ObjectReference, serial: u64, count: u64) -> Told {
    let occurrence = |second: i64, version: &str| Occurrence {
        time: Timestamp::from_second(second).unwrap(),
        resource_version: Some(version.into()),
    };
    Told {
        key: Arc::new(Identity::new(event, regarding)),
        serial,
        known: false,
        count,
        first: occurrence(0, "7"),
        last: occurrence(9, "8"),
    }
}

fn reporter() -> Reporter {
    Reporter {
        controller: "example.com/c".into(),
        instance: Some("pod-1".into()),
    }
}

#[test]
fn a_body_has_all_that_a_server_wants() {
    let told = told(&event("no luck"), &reference("a"), 0, 3);
    let body = serde_json::to_value(body(&told, &reporter(), Timestamp::UNIX_EPOCH)).unwrap();
    let name = name(&told, &reporter(), Timestamp::UNIX_EPOCH);
    let object = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "shop", "uid": "u",
        })
    };
    let mut regarding = object("a");
    regarding["resourceVersion"] = "7".into();
    let expected = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": "shop" },
        "regarding": regarding,
        "related": object("other"),
        "type": "Warning",
        "reason": "Failed",
        "action": "Trying",
        "note": "no luck",
        "eventTime": "1970-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "pod-1",
        "series": { "count": 3, "lastObservedTime": "1970-01-01T00:00:09.000000Z" },
    });
    assert_eq!(body, expected);
}

#[test]
fn one_occurrence_is_no_series_and_many_are_no_overflow() {
    let of = |count| series(&told(&event("x"), &reference("a"), 0, count));
    assert!(of(1).is_none());
    assert_eq!(of(2).map(|series| series.count), Some(2));
    assert_eq!(of(u64::MAX).map(|series| series.count), Some(i32::MAX));
}

#[test]
fn a_reporter_without_an_instance_is_its_own() {
    let told = told(&event("x"), &reference("a"), 0, 1);
    let body = body(
        &told,
        &Reporter::from(String::from("c")),
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(body.reporting_instance.as_deref(), Some("c"));
}

/// The version of the object makes no difference, anything else does.
#[test]
fn what_makes_an_event_the_same() {
    let same = Identity::new(&event("x"), &reference("a"));
    let newer = ObjectReference {
        resource_version: Some("8".into()),
        ..reference("a")
    };
    assert_eq!(Identity::new(&event("x"), &newer), same);

    let another = ObjectReference {
        uid: Some("v".into()),
        ..reference("a")
    };
    let change = |change: fn(&mut Event)| {
        let mut event = event("x");
        change(&mut event);
        Identity::new(&event, &reference("a"))
    };
    let others = [
        Identity::new(&event("x"), &another),
        Identity::new(&event("x"), &reference("b")),
        change(|event| event.note = Some("y".into())),
        change(|event| event.note = None),
        change(|event| event.type_ = EventType::Normal),
        change(|event| event.reason = "y".into()),
        change(|event| event.action = "y".into()),
        change(|event| event.secondary = None),
    ];
    let all: BTreeSet<_> = others.iter().chain([&same]).collect();
    assert_eq!(all.len(), 9);
}

/// kube#2122: names differ between events, between the events of one name that was taken, and
/// between reporters and their lives.
#[test]
fn names_differ() {
    let at = Timestamp::from_second;
    let (a, b) = (event("x"), event("y"));
    let object = reference("a");
    let other = Reporter {
        instance: Some("pod-2".into()),
        ..reporter()
    };
    let names: BTreeSet<String> = [
        name(&told(&a, &object, 0, 1), &reporter(), at(0).unwrap()),
        name(&told(&b, &object, 0, 1), &reporter(), at(0).unwrap()),
        name(&told(&a, &object, 1, 1), &reporter(), at(0).unwrap()),
        name(&told(&a, &object, 0, 1), &reporter(), at(1).unwrap()),
        name(&told(&a, &object, 0, 1), &other, at(0).unwrap()),
    ]
    .into();
    assert_eq!(names.len(), 5);
    assert!(names.iter().all(|name| name.starts_with("a.")), "{names:?}");
}

/// Whatever the object is called, the event has a name that servers take: that of a domain.
#[test]
fn names_are_valid() {
    let long = "a".repeat(NAME);
    let dotted = "a.".repeat(200);
    for (object, beginning) in [
        ("web-0.shop", "web-0.shop."),
        ("system:node", "system-node."),
        ("Ärger", "rger."),
        ("UPPER", "upper."),
        ("-.-", "event."),
        ("", "event."),
        (&long, "aaaa"),
        (&dotted, "a.a."),
    ] {
        let told = told(&event("x"), &reference(object), 0, 1);
        let name = name(&told, &reporter(), Timestamp::UNIX_EPOCH);
        assert!(name.starts_with(beginning), "{name}");
        // The part before the slash of a finalizer's name is a domain as well.
        assert!(is_valid_name(&format!("{name}/x")), "{name}");
    }
}

#[test]
fn texts_are_cut_between_letters() {
    assert_eq!(cut("short", 5), "short");
    assert_eq!(cut("longer", 5), "lo...");
    assert_eq!(cut("ääää", 7), "ää...");
    assert_eq!(cut("äääää", 8), "ää...");
    let event = Event {
        reason: "r".repeat(200),
        action: "a".repeat(200),
        ..event(&"ä".repeat(1000))
    };
    let told = told(&event, &reference("a"), 0, 1);
    let reporter = Reporter {
        instance: Some("i".repeat(200)),
        ..reporter()
    };
    let body = body(&told, &reporter, Timestamp::UNIX_EPOCH);
    let length = |text: &Option<String>| text.as_ref().map(String::len);
    assert_eq!(length(&body.reason), Some(128));
    assert_eq!(length(&body.action), Some(128));
    assert_eq!(length(&body.reporting_instance), Some(128));
    assert_eq!(length(&body.note), Some(1023));
}

#[test]
fn events_of_the_cluster_are_in_the_default_namespace() {
    for (namespace, expected) in [
        (Some("shop"), "shop"),
        (Some(""), "default"),
        (None, "default"),
    ] {
        let regarding = ObjectReference {
            namespace: namespace.map(Into::into),
            ..reference("a")
        };
        assert_eq!(Identity::new(&event("x"), &regarding).namespace(), expected);
    }
}
