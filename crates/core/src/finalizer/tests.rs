use super::{Edit, Held, Plan, Refusal, Verdict, is_valid_name};

const OURS: &str = "example.com/ours";

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn held(deleting: bool, finalizers: &[String]) -> Held<'_> {
    Held {
        uid: Some("u"),
        deleting,
        finalizers,
    }
}

/// T50: nothing is added to, or applied for, an object that is being deleted.
#[test]
fn plans() {
    for (deleting, finalizers, expected) in [
        (false, &[][..], Plan::Add),
        (false, &["other"], Plan::Add),
        (false, &[OURS], Plan::Apply),
        (false, &["other", OURS, "another"], Plan::Apply),
        (true, &[OURS], Plan::Cleanup),
        (true, &["other", OURS], Plan::Cleanup),
        (true, &[], Plan::Nothing),
        (true, &["other"], Plan::Nothing),
        // A part of a name is another name.
        (true, &["example.com/our"], Plan::Nothing),
    ] {
        let finalizers = list(finalizers);
        let plan = held(deleting, &finalizers).plan(OURS);
        assert_eq!(plan, expected, "{deleting} {finalizers:?}");
    }
}

#[test]
fn places_come_last_first() {
    let finalizers = list(&[OURS, "other", OURS, "another"]);
    let places: Vec<_> = held(true, &finalizers).places(OURS).collect();
    assert_eq!(places, [2, 0]);
    assert_eq!(held(true, &finalizers).places("absent").next(), None);
}

/// Every list of up to two others and ours before and after, with every identity: an edit is made
/// again only where it is still needed and can turn out differently.
#[test]
fn a_refused_edit_is_made_again_only_if_that_can_help() {
    let lists: Vec<_> = [
        &[][..],
        &["a"],
        &[OURS],
        &["a", OURS],
        &[OURS, "a"],
        &["a", "b"],
    ]
    .into_iter()
    .map(list)
    .collect();
    let mut verdicts = [0; 4];
    for before in &lists {
        for now in &lists {
            for (deleting, uid, edit, refusal) in combinations() {
                let now = Held {
                    uid,
                    deleting,
                    finalizers: now,
                };
                let edited = held(edit == Edit::Remove, before);
                let verdict = edit.refused(OURS, refusal, edited, Some(now));
                let wanted = edit == Edit::Add;
                let expected = if uid != Some("u") {
                    Verdict::Moot
                } else if now.has(OURS) == wanted {
                    Verdict::Done
                } else if wanted && deleting {
                    Verdict::Moot
                } else if refusal == Refusal::Invalid && now.finalizers == before.as_slice() {
                    Verdict::Refused
                } else {
                    Verdict::Again
                };
                assert_eq!(verdict, expected, "{edit:?} {refusal:?} {before:?} {now:?}");
                verdicts[verdict as usize] += 1;
            }
        }
    }
    assert!(verdicts.iter().all(|count| *count > 0), "{verdicts:?}");
}

fn combinations() -> impl Iterator<Item = (bool, Option<&'static str>, Edit, Refusal)> {
    let uids = [Some("u"), Some("v"), None];
    (0..24).map(move |number: usize| {
        let edit = [Edit::Add, Edit::Remove][number / 2 % 2];
        let refusal = [Refusal::Conflict, Refusal::Invalid][number / 4 % 2];
        (number.is_multiple_of(2), uids[number / 8], edit, refusal)
    })
}

#[test]
fn an_edit_of_an_object_that_is_gone_is_moot() {
    let finalizers = list(&[OURS]);
    for edit in [Edit::Add, Edit::Remove] {
        let before = held(false, &finalizers);
        let verdict = edit.refused(OURS, Refusal::Conflict, before, None);
        assert_eq!(verdict, Verdict::Moot);
    }
}

/// An object whose identity nobody knows is taken for the same one.
#[test]
fn without_a_uid_the_name_decides() {
    let finalizers = list(&[OURS]);
    let before = Held {
        uid: None,
        ..held(true, &finalizers)
    };
    let now = Some(held(true, &finalizers));
    let verdict = Edit::Remove.refused(OURS, Refusal::Conflict, before, now);
    assert_eq!(verdict, Verdict::Again);
}

#[test]
fn names() {
    let long = "a".repeat(64);
    let long_domain = format!("{}.com/x", "a".repeat(250));
    for valid in [
        "example.com/cleanup",
        "cleanup",
        "foregroundDeletion",
        "a/b",
        "9.example/My_name.v1-x",
        &long[..63],
    ] {
        assert!(is_valid_name(valid), "{valid}");
    }
    for invalid in [
        "",
        "/",
        "/x",
        "example.com/",
        "example.com/a/b",
        "Example.com/x",
        "example..com/x",
        "-example.com/x",
        "example.com/-x",
        "example.com/x-",
        "example.com/x y",
        "exämple.com/x",
        &long,
        &long_domain,
    ] {
        assert!(!is_valid_name(invalid), "{invalid}");
    }
}
