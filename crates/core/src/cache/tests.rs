//! Scripts, and all small worlds against a map that is simply overwritten.

use super::{Cache, Change, Versioned};
use expect_test::{Expect, expect};
use std::{borrow::Cow, collections::BTreeMap, fmt::Write};

/// A version of an object, written `uid:version`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct V(&'static str);

impl V {
    fn part(&self, index: usize) -> Option<Cow<'_, str>> {
        let part = self.0.split(':').nth(index)?;
        (!part.is_empty()).then_some(Cow::Borrowed(part))
    }
}

impl Versioned for V {
    fn uid(&self) -> Option<Cow<'_, str>> {
        self.part(0)
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        self.part(1)
    }
}

/// One line a step: `apply a u:1`, `delete a u:2`, `remove a`, `begin`, `stage a u:1`, `keep a`,
/// `commit`.
#[track_caller]
fn check(script: &'static str, expected: &Expect) {
    let mut cache = Cache::default();
    let mut seen = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let mut changes = Vec::new();
        let words: Vec<&'static str> = line.split(' ').collect();
        match *words.as_slice() {
            ["apply", key, value] => cache.apply(key, V(value), &mut changes),
            ["delete", key, value] => cache.delete(key, V(value), &mut changes),
            ["begin"] => cache.begin(),
            ["stage", key, value] => cache.stage(key, V(value)),
            ["commit"] => cache.commit(&mut changes),
            ["keep", key] => cache.keep(&key),
            ["remove", key] => cache.remove(&key, &mut changes),
            _ => panic!("unknown step: {line}"),
        }
        let changes: Vec<String> = changes.iter().map(show).collect();
        writeln!(seen, "{line} -> {}", changes.join(", ")).unwrap();
    }
    expected.assert_eq(&seen);
}

fn show(change: &Change<&'static str, V>) -> String {
    match change {
        Change::Added { key, new } => format!("added {key} {}", new.0),
        Change::Modified { key, old, new } => format!("modified {key} {} {}", old.0, new.0),
        Change::Deleted { key, old, last } if old == last => format!("deleted {key} {}", last.0),
        Change::Deleted { key, old, last } => format!("deleted {key} {} {}", old.0, last.0),
    }
}

#[test]
fn events_become_true_changes() {
    check(
        "
        apply a u:1
        apply a u:1
        apply a u:3
        apply a u:2
        delete b v:4
        delete a u:5
        delete a u:5
        ",
        &expect![[r"
            apply a u:1 -> added a u:1
            apply a u:1 -> 
            apply a u:3 -> modified a u:1 u:3
            apply a u:2 -> 
            delete b v:4 -> 
            delete a u:5 -> deleted a u:3 u:5
            delete a u:5 -> 
        "]],
    );
}

/// R13: of an object that cannot be decoded, the last state that could be stays.
#[test]
fn an_object_without_a_state_keeps_the_known_one() {
    check(
        "
        apply a u:1
        apply b v:2
        apply c w:3
        keep a
        begin
        keep a
        keep x
        stage c w:3
        remove c
        commit
        remove a
        remove a
        ",
        &expect![[r"
            apply a u:1 -> added a u:1
            apply b v:2 -> added b v:2
            apply c w:3 -> added c w:3
            keep a -> 
            begin -> 
            keep a -> 
            keep x -> 
            stage c w:3 -> 
            remove c -> 
            commit -> deleted b v:2, deleted c w:3
            remove a -> deleted a u:1
            remove a -> 
        "]],
    );
}

#[test]
fn another_uid_is_another_object() {
    check(
        "
        apply a u:7
        apply a v:3
        begin
        stage a w:9
        commit
        ",
        &expect![[r"
            apply a u:7 -> added a u:7
            apply a v:3 -> deleted a u:7, added a v:3
            begin -> 
            stage a w:9 -> 
            commit -> deleted a v:3, added a w:9
        "]],
    );
}

#[test]
fn without_versions_everything_is_a_change() {
    check(
        "
        apply a u:
        apply a u:
        apply b u:x
        apply b u:x
        apply b u:y
        ",
        &expect![[r"
            apply a u: -> added a u:
            apply a u: -> modified a u: u:
            apply b u:x -> added b u:x
            apply b u:x -> 
            apply b u:y -> modified b u:x u:y
        "]],
    );
}

/// R14: a relist is a diff that takes effect when it is complete.
#[test]
fn a_list_is_a_diff() {
    check(
        "
        begin
        stage a u:1
        stage b v:2
        commit
        begin
        stage b v:2
        stage c w:4
        commit
        ",
        &expect![[r"
            begin -> 
            stage a u:1 -> 
            stage b v:2 -> 
            commit -> added a u:1, added b v:2
            begin -> 
            stage b v:2 -> 
            stage c w:4 -> 
            commit -> deleted a u:1, added c w:4
        "]],
    );
}

/// T16: what an interrupted list delivered leaves no trace.
#[test]
fn an_interrupted_list_leaves_no_ghosts() {
    check(
        "
        apply a u:1
        begin
        stage b v:2
        begin
        stage a u:1
        commit
        ",
        &expect![[r"
            apply a u:1 -> added a u:1
            begin -> 
            stage b v:2 -> 
            begin -> 
            stage a u:1 -> 
            commit -> 
        "]],
    );
}

#[test]
fn a_list_may_show_an_older_version_than_an_event_did() {
    check(
        "
        apply a u:9
        begin
        stage a u:5
        commit
        ",
        &expect![[r"
            apply a u:9 -> added a u:9
            begin -> 
            stage a u:5 -> 
            commit -> modified a u:9 u:5
        "]],
    );
}

#[test]
fn readers_see_the_state_before_until_the_list_is_complete() {
    let mut cache = Cache::default();
    let mut changes = Vec::new();
    cache.apply("a", V("u:1"), &mut changes);
    assert!(!cache.is_synced());
    cache.begin();
    cache.stage("b", V("v:2"));
    cache.apply("c", V("w:3"), &mut changes);
    cache.stage("d", V("x:4"));
    cache.delete("d", V("x:5"), &mut changes);
    assert_eq!(cache.iter().collect::<Vec<_>>(), [(&"a", &V("u:1"))]);
    cache.commit(&mut changes);
    assert!(cache.is_synced());
    let objects: Vec<_> = cache.iter().map(|(key, value)| (*key, value.0)).collect();
    assert_eq!(objects, [("b", "v:2"), ("c", "w:3")]);
    assert_eq!((cache.len(), cache.is_empty()), (2, false));
    assert_eq!((cache.get("b"), cache.get("a")), (Some(&V("v:2")), None));
}

/// All sequences of six steps: the changes always add up to the cache, and the cache is what was
/// told last.
#[test]
fn changes_add_up_in_all_small_worlds() {
    const STEPS: [&str; 9] = [
        "apply a u:1",
        "apply a u:2",
        "apply a v:3",
        "delete a u:4",
        "begin",
        "stage a u:1",
        "stage b w:1",
        "apply b w:1",
        "commit",
    ];
    let mut worlds = 0;
    for number in 0..STEPS.len().pow(6) {
        let steps = (0..6).map(|digit| STEPS[number / STEPS.len().pow(digit) % STEPS.len()]);
        if play(steps.clone(), false) && play(steps, true) {
            worlds += 1;
        }
    }
    assert!(worlds > 100_000, "only {worlds} worlds make sense");
}

/// Plays one world; false if its steps make no sense. What a list shows may be confirmed, where that does, in place of
/// being staged.
fn play(steps: impl Iterator<Item = &'static str>, confirms: bool) -> bool {
    let mut cache: Cache<&str, V> = Cache::default();
    let mut told: BTreeMap<&str, V> = BTreeMap::new();
    let mut list: Option<BTreeMap<&str, V>> = None;
    let mut sum: BTreeMap<&str, V> = BTreeMap::new();
    for step in steps {
        let mut changes = Vec::new();
        let words: Vec<&'static str> = step.split(' ').collect();
        match (words.as_slice(), &mut list) {
            (["begin"], list) => {
                cache.begin();
                *list = Some(BTreeMap::new());
            }
            (["commit"], Some(objects)) => {
                told = std::mem::take(objects);
                list = None;
                cache.commit(&mut changes);
            }
            (["stage", key, value], Some(objects)) => {
                objects.insert(key, V(value));
                let is_known = confirms && cache.confirm(key, |known| *known == V(value));
                if !is_known {
                    cache.stage(key, V(value));
                }
            }
            (["commit"] | ["stage", ..], None) => return false,
            (["apply", key, value], list) => {
                let newer = |known: &V| known.uid() != V(value).uid() || known.0 < *value;
                if list.is_some() || told.get(key).is_none_or(newer) {
                    list.as_mut().unwrap_or(&mut told).insert(key, V(value));
                }
                cache.apply(key, V(value), &mut changes);
            }
            (["delete", key, value], list) => {
                list.as_mut().unwrap_or(&mut told).remove(key);
                cache.delete(key, V(value), &mut changes);
            }
            _ => unreachable!("{step}"),
        }
        for change in changes {
            match change {
                Change::Added { key, new } => assert!(sum.insert(key, new).is_none()),
                Change::Modified { key, old, new } => assert_eq!(sum.insert(key, new), Some(old)),
                Change::Deleted { key, old, .. } => assert_eq!(sum.remove(key), Some(old)),
            }
        }
        let now: BTreeMap<&str, V> = cache.iter().map(|(k, v)| (*k, v.clone())).collect();
        assert_eq!(now, told, "after {step}");
        assert_eq!(sum, told, "changes after {step}");
    }
    true
}
