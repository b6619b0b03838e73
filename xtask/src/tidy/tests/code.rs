use super::super::code::{HONEST_TESTS, LINT_REASON, PAUSED_TIME, PURE_CORE, TASK_OWNER};
use super::check;

#[test]
fn honest_tests() {
    let bad = "\
#[test]
#[ignore]
fn a() {}
#[test]
#[ignore = \"slow\"]
fn b() { std::thread::sleep(SECOND) }
#[should_panic(expected = \"x\")]
fn c() {}
#[cfg_attr(windows, ignore)]
fn d() {}
";
    check(
        &HONEST_TESTS,
        &[("a.rs", bad)],
        &["a.rs:2", "a.rs:5", "a.rs:6", "a.rs:7", "a.rs:9"],
    );

    let good = "\
//! No #[ignore], no #[should_panic], no thread::sleep.
#[derive(Arguments)]
struct S { #[arg(ignore)] ignore: bool }
#[test]
fn a() { assert_eq!(text, \"#[ignore] thread::sleep\") }
";
    check(&HONEST_TESTS, &[("a.rs", good)], &[]);
}

#[test]
fn paused_time() {
    let bad = "\
async fn product() { tokio::time::sleep(delay).await }
#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn a() {
        tokio::time::sleep(delay).await;
        time::sleep_until(then).await;
    }
}
";
    check(&PAUSED_TIME, &[("a.rs", bad)], &["a.rs:6", "a.rs:7"]);
    let integration = "#[tokio::test]\nasync fn a() { tokio::time::sleep(delay).await }";
    check(
        &PAUSED_TIME,
        &[("crates/a/tests/a.rs", integration)],
        &["crates/a/tests/a.rs:2"],
    );

    let good = "#[tokio::test(start_paused = true)]\nasync fn a() { tokio::time::sleep(d).await }";
    check(&PAUSED_TIME, &[("crates/a/tests/a.rs", good)], &[]);
    check(
        &PAUSED_TIME,
        &[("a.rs", "async fn a() { tokio::time::sleep(delay).await }")],
        &[],
    );
}

#[test]
fn lint_reason() {
    let bad = "\
#![allow(dead_code)]
#[expect(clippy::panic)]
fn a() {}
#[cfg_attr(test, allow(
    dead_code,
))]
fn b() {}
#[cfg_attr(test, allow(unused, reason = \"it is\"), expect(dead_code))]
fn c() {}
";
    check(
        &LINT_REASON,
        &[("a.rs", bad)],
        &["a.rs:1", "a.rs:2", "a.rs:4", "a.rs:8"],
    );

    let good = "\
#![allow(dead_code, reason = \"it lives\")]
#[expect(
    clippy::panic,
    reason = \"a ] in a text ends nothing\"
)]
fn a() { b.expect(\"no attribute\") }
#[command(about = text().expect(\"no lint level\"))]
#[deny(dead_code)]
struct B;
";
    check(&LINT_REASON, &[("a.rs", good)], &[]);
}

#[test]
fn pure_core() {
    let bad = "\
use std::time::{Duration, Instant};
use std::{collections::HashMap, time::SystemTime};
fn a() -> std::collections::HashSet<u8> { std::time::Instant::now() }
fn b(s: std::collections::hash_map::RandomState) {}
";
    let path = "crates/core/src/a.rs";
    let lines = [1, 2, 2, 3, 3, 4].map(|line| format!("{path}:{line}"));
    check(
        &PURE_CORE,
        &[(path, bad)],
        &lines.each_ref().map(String::as_str),
    );

    let good = "\
//! Without std::time::Instant.
use std::collections::{BTreeMap, hash_map::Entry};
use std::time::Duration;
use hashbrown::HashMap;
struct Instant(u64);
";
    check(
        &PURE_CORE,
        &[(path, good), ("crates/runtime/src/a.rs", bad)],
        &[],
    );
}

#[test]
fn task_owner() {
    let bad = "\
use tokio::spawn;
fn a() { tokio::spawn(async {}); task::spawn_blocking(|| ()); }
";
    let path = "crates/runtime/src/controller.rs";
    let line = |line| format!("{path}:{line}");
    check(&TASK_OWNER, &[(path, bad)], &[&line(1), &line(2), &line(2)]);

    let good = "\
/// Never calls tokio::spawn.
fn a() { crate::task::Owner::start(async {}) }
#[cfg(test)]
mod tests { fn b() { tokio::spawn(async {}); } }
";
    check(&TASK_OWNER, &[(path, good)], &[]);
    check(
        &TASK_OWNER,
        &[
            ("crates/runtime/src/task.rs", bad),
            ("crates/cli/src/a.rs", bad),
        ],
        &[],
    );
    check(
        &TASK_OWNER,
        &[
            ("crates/runtime/tests/a.rs", bad),
            ("examples/a/src/lib.rs", bad),
        ],
        &[],
    );
}
