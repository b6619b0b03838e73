//! What Rust code of this repository does not say.

use super::source::{Source, close, words};
use super::tree::Tree;
use super::{Finding, Rule};

pub(crate) const HONEST_TESTS: Rule = Rule {
    name: "honest-tests",
    why: "no `#[ignore]`, `#[should_panic]` or `thread::sleep`; tests run, look at errors and wait for events",
    check: honest_tests,
};

pub(crate) const PAUSED_TIME: Rule = Rule {
    name: "paused-time",
    why: "tests that sleep run under paused time; they are fast and do not depend on the machine",
    check: paused_time,
};

pub(crate) const LINT_REASON: Rule = Rule {
    name: "lint-reason",
    why: "`allow` and `expect` of a lint have a reason; the reader wants to know it",
    check: lint_reason,
};

pub(crate) const PURE_CORE: Rule = Rule {
    name: "pure-core",
    why: "core uses no clock and no HashMap of std; time is an argument, and no seed chooses an order",
    check: pure_core,
};

pub(crate) const TASK_OWNER: Rule = Rule {
    name: "task-owner",
    why: "only a few files start tasks; each task has an owner that ends it",
    check: task_owner,
};

/// Where tasks may start, besides tests: files and folders of code that owns what it starts.
const TASK_OWNERS: &[&str] = &[
    "bench/",
    "crates/apiserver/benches/",
    "crates/apiserver/src/task.rs",
    "crates/cli/",
    "crates/runtime/benches/manager/",
    "crates/runtime/benches/outage.rs",
    "crates/runtime/src/task.rs",
    "crates/testing/src/task.rs",
    "examples/",
    "xtask/",
];

/// The names in `std` that core must not use.
const IMPURE: &[(&str, &str)] = &[
    ("Instant", "take `now` as an argument"),
    ("SystemTime", "take `now` as an argument"),
    ("HashMap", "use BTreeMap, or hashbrown with a fixed hasher"),
    ("HashSet", "use BTreeSet, or hashbrown with a fixed hasher"),
    ("RandomState", "use a fixed hasher"),
];

fn honest_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for offset in source.occurrences("thread::sleep") {
            findings.push(at(path, source, offset, "wait for an event, not for time"));
        }
        for attribute in &source.attributes {
            let text = &source.code[attribute.clone()];
            // `ignore` also means something to derive macros, e.g. in `#[serde(ignore)]`.
            let name = text.trim_start_matches(['#', '!', '[', ' ']);
            let conditional = name.starts_with("cfg_attr");
            let says = |word: &str| {
                words(name, word)
                    .next()
                    .is_some_and(|offset| conditional || offset == 0)
            };
            if says("ignore") {
                findings.push(at(
                    path,
                    source,
                    attribute.start,
                    "repair the test or delete it",
                ));
            }
            if says("should_panic") {
                let advice = "catch the panic and look at it, or return an error to look at";
                findings.push(at(path, source, attribute.start, advice));
            }
        }
    }
    findings
}

fn paused_time(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let paused = ["start_paused", "time::pause"];
        let says = |word| source.occurrences(word).next().is_some();
        // What tests share has no clock of its own; the tests that use it are looked at where they are.
        if paused.into_iter().any(says) || !(says("#[test]") || says("#[tokio::test")) {
            continue;
        }
        for word in ["time::sleep", "time::sleep_until"] {
            let sleeps = source
                .occurrences(word)
                .filter(|&offset| source.is_test(offset));
            findings.extend(sleeps.map(|offset| {
                at(
                    path,
                    source,
                    offset,
                    "run the test with `start_paused = true`",
                )
            }));
        }
    }
    findings
}

fn lint_reason(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        for attribute in &source.attributes {
            let text = &source.code[attribute.clone()];
            let lists = ["allow", "expect"].into_iter().flat_map(|level| {
                words(text, level).filter_map(move |offset| {
                    let open = offset + level.len();
                    let list = text[open..].starts_with('(') && !text[..offset].ends_with('.');
                    list.then(|| &text[open..close(text, open)])
                })
            });
            if lists
                .into_iter()
                .any(|list| words(list, "reason").next().is_none())
            {
                findings.push(at(path, source, attribute.start, "add `reason = \"..\"`"));
            }
        }
    }
    findings
}

fn pure_core(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree
        .sources()
        .filter(|(path, _)| path.starts_with("crates/core/"))
    {
        for start in source.occurrences("std::") {
            let tail = path_tail(&source.code[start..]);
            for (name, advice) in IMPURE {
                findings.extend(words(tail, name).map(|offset| {
                    at(
                        path,
                        source,
                        start + offset,
                        &format!("std's {name}: {advice}"),
                    )
                }));
            }
        }
    }
    findings
}

/// The path that the code starts with, a group in braces at its end included.
fn path_tail(code: &str) -> &str {
    let end = code
        .find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
        .unwrap_or(code.len());
    match code.as_bytes().get(end) {
        Some(b'{') => &code[..close(code, end)],
        _ => &code[..end],
    }
}

fn task_owner(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        if TASK_OWNERS.iter().any(|owner| path.starts_with(owner)) {
            continue;
        }
        for word in [
            "tokio::spawn",
            "task::spawn",
            "task::spawn_local",
            "task::spawn_blocking",
        ] {
            let starts = source
                .occurrences(word)
                .filter(|&offset| !source.is_test(offset));
            findings.extend(starts.map(|offset| {
                let advice = "start it through the crate's task module, or add the file to \
                              TASK_OWNERS of xtask/src/tidy/code.rs";
                at(path, source, offset, advice)
            }));
        }
    }
    findings
}

fn at(path: &str, source: &Source, offset: usize, advice: &str) -> Finding {
    Finding {
        path: path.to_owned(),
        line: source.line(offset),
        advice: advice.to_owned(),
    }
}
