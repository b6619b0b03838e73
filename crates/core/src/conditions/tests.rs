use super::{
    Json, MAX_MESSAGE, MAX_REASON, MAX_TYPE, carried, fit_message, fit_reason, fit_type, overlaid,
    same_but_numbers, set,
};
use serde_json::{Value, json};

/// `Ready=True/Fine since 1`, and perhaps `: words`.
fn condition(text: &str) -> Value {
    let (head, message) = text.split_once(": ").unwrap_or((text, ""));
    let (statement, since) = head.split_once(" since ").expect("a time");
    let (type_, rest) = statement.split_once('=').expect("a status");
    let (status, reason) = rest.split_once('/').expect("a reason");
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since,
    })
}

fn conditions(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| condition(text)).collect()
}

/// T51, H4, H5, B22: the time changes with the status and with nothing else, and what is there
/// already is no change.
#[test]
fn setting_a_condition() {
    for (before, new, after, changed) in [
        // It is new.
        (
            &[][..],
            "Ready=True/Fine since 5",
            &["Ready=True/Fine since 5"][..],
            true,
        ),
        // It is the same.
        (
            &["Ready=True/Fine since 1"],
            "Ready=True/Fine since 5",
            &["Ready=True/Fine since 1"],
            false,
        ),
        // The status flips.
        (
            &["Ready=True/Fine since 1"],
            "Ready=False/Broken since 5",
            &["Ready=False/Broken since 5"],
            true,
        ),
        // Only the words change.
        (
            &["Ready=False/Broken since 1: a"],
            "Ready=False/Broken since 5: b",
            &["Ready=False/Broken since 1: b"],
            true,
        ),
        (
            &["Ready=False/Broken since 1"],
            "Ready=False/Slow since 5",
            &["Ready=False/Slow since 1"],
            true,
        ),
        // Others stay, and all are in order.
        (
            &["B=True/x since 1", "C=True/x since 2"],
            "A=True/x since 5",
            &["A=True/x since 5", "B=True/x since 1", "C=True/x since 2"],
            true,
        ),
        (
            &["C=True/x since 2", "A=True/x since 1"],
            "A=True/x since 5",
            &["A=True/x since 1", "C=True/x since 2"],
            false,
        ),
        // One of each type; the first counts.
        (
            &["A=True/x since 1", "A=False/y since 2"],
            "A=True/x since 5",
            &["A=True/x since 1"],
            true,
        ),
        (
            &["A=False/y since 2", "B=True/x since 3", "A=True/x since 1"],
            "A=True/x since 5",
            &["A=True/x since 5", "B=True/x since 3"],
            true,
        ),
    ] {
        let mut list = conditions(before);
        let answer = set::<Json, _>(&mut list, condition(new));
        assert_eq!(
            (list, answer),
            (conditions(after), changed),
            "{before:?} {new}"
        );
        let mut list = conditions(after);
        assert!(
            !set::<Json, _>(&mut list, condition(new)),
            "{after:?} {new}"
        );
    }
}

/// A member that only one of them has is a difference, one that is null is none.
#[test]
fn other_members_are_part_of_the_statement() {
    let mut list = conditions(&["A=True/x since 1"]);
    let mut new = condition("A=True/x since 5");
    new["observedGeneration"] = json!(null);
    assert!(!set::<Json, _>(&mut list, new.clone()));
    new["observedGeneration"] = json!(2);
    assert!(set::<Json, _>(&mut list, new));
    assert_eq!(list[0]["lastTransitionTime"], json!("1"));
}

/// H5: whoever says all anew in each run neither touches a time nor loses what others say.
#[test]
fn saying_it_anew() {
    let live = json!(conditions(&[
        "Mine=True/x since 1",
        "Other=False/y since 2"
    ]));
    for (desired, expected) in [
        (json!(null), live.clone()),
        (json!([]), live.clone()),
        (json!(conditions(&["Mine=True/x since 9"])), live.clone()),
        (
            json!(conditions(&["Mine=False/x since 9"])),
            json!(conditions(&[
                "Mine=False/x since 9",
                "Other=False/y since 2"
            ])),
        ),
        (
            json!(conditions(&["New=True/x since 9"])),
            json!(conditions(&[
                "Mine=True/x since 1",
                "New=True/x since 9",
                "Other=False/y since 2"
            ])),
        ),
    ] {
        assert_eq!(overlaid(&live, &desired), Some(expected), "{desired}");
    }
    assert_eq!(overlaid(&json!(null), &live), Some(live.clone()));
    assert_eq!(overlaid(&json!(null), &json!(null)), Some(json!([])));
    for odd in [
        json!({}),
        json!("x"),
        json!([1]),
        json!([{ "type": 1 }]),
        json!([{}]),
    ] {
        assert_eq!(overlaid(&live, &odd), None);
        assert_eq!(overlaid(&odd, &live), None);
    }
}

#[test]
fn speaking_of_ones_own() {
    let live = json!(conditions(&[
        "Mine=True/x since 1",
        "Other=False/y since 2"
    ]));
    for (desired, expected) in [
        (json!(null), json!([])),
        (json!([]), json!([])),
        (
            json!(conditions(&["New=True/x since 9", "Mine=True/z since 9"])),
            json!(conditions(&["Mine=True/z since 1", "New=True/x since 9"])),
        ),
    ] {
        assert_eq!(carried(&live, &desired), Some(expected), "{desired}");
    }
    assert_eq!(carried(&live, &json!("x")), None);
}

#[test]
fn types_and_reasons_fit() {
    let long = "x".repeat(2000);
    for (text, as_type, as_reason) in [
        ("Ready", "Ready", "Ready"),
        (
            "foo.example.com/Ready",
            "foo.example.com/Ready",
            "foo_example_com_Ready",
        ),
        (
            "Foo.example.com/Ready",
            "Foo.example.com_Ready",
            "Foo_example_com_Ready",
        ),
        ("a..b/Ready", "a..b_Ready", "a__b_Ready"),
        ("a/b/c", "a_b_c", "a_b_c"),
        ("with space", "with_space", "with_space"),
        (" trimmed! ", "trimmed", "trimmed"),
        ("Größe", "Gr__e", "Gr__e"),
        ("9lives", "9lives", "lives"),
        ("a,b:c", "a_b_c", "a,b:c"),
        ("a:", "a", "a"),
        ("a_", "a", "a_"),
        ("", "Unknown", "Unknown"),
        ("!?", "Unknown", "Unknown"),
        (&long, &long[..MAX_TYPE], &long[..MAX_REASON]),
        (&long[..MAX_TYPE], &long[..MAX_TYPE], &long[..MAX_TYPE]),
    ] {
        assert_eq!(
            (&*fit_type(text), &*fit_reason(text)),
            (as_type, as_reason),
            "{text}"
        );
        assert_eq!(fit_type(as_type), as_type);
        assert_eq!(fit_reason(as_reason), as_reason);
    }
}

/// The API counts characters, not bytes.
#[test]
fn messages_fit() {
    for letter in ["x", "ß", "漢", "🦀"] {
        let fits = letter.repeat(MAX_MESSAGE);
        assert_eq!(fit_message(&fits), fits);
        let too_long = letter.repeat(MAX_MESSAGE + 1);
        let cut = fit_message(&too_long);
        assert_eq!(cut.chars().count(), MAX_MESSAGE);
        assert_eq!(
            cut.strip_suffix('…'),
            Some(&*letter.repeat(MAX_MESSAGE - 1))
        );
    }
    assert_eq!(fit_message(""), "");
}

/// H1, H2: a message with a counter or a time in it is the same from run to run.
#[test]
fn numbers_make_no_other_message() {
    for (one, other, same) in [
        ("missing field: host", "missing field: host", true),
        ("missing field: host", "missing field: port", false),
        ("attempt 3 failed", "attempt 14 failed", true),
        (
            "since 2026-01-01T00:00:00Z",
            "since 2026-02-03T11:12:13.5Z",
            false,
        ),
        (
            "since 2026-01-01T00:00:00Z",
            "since 2026-02-03T11:12:13Z",
            true,
        ),
        ("pod web-x7k2p is gone", "pod web-9qq4z is gone", true),
        ("attempt 3", "attempt", false),
        ("3 failed", "4 left", false),
        ("a 1", "a 2", true),
        ("a1", "b2", true),
        ("", "", true),
        ("", "1", false),
    ] {
        assert_eq!(same_but_numbers(one, other), same, "{one} / {other}");
        assert_eq!(same_but_numbers(other, one), same, "{other} / {one}");
    }
}
