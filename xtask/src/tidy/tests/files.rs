use super::super::files::{DOC_BLOCK, FILE_LENGTH, FILE_SIZE, LINK, MACHINE_PATH, MODULE_NAME};
use super::check;

#[test]
fn file_length() {
    let code = "let a = 1; // one\n".repeat(500);
    let with_more = |more: &str| format!("//! Module.\n\n{code}{more}");
    let bad = with_more("fn last() {}\n");
    check(&FILE_LENGTH, &[("a.rs", &bad)], &["a.rs:1"]);
    check(
        &FILE_LENGTH,
        &[("a.rs", &with_more("\"text\n// of a literal\"\n"))],
        &["a.rs:1"],
    );

    let good = with_more(
        "// Comments,\n/* in\nblocks */\n\n#[cfg(test)]\nmod tests {\n    fn tests() {}\n}\n",
    );
    check(&FILE_LENGTH, &[("a.rs", &good)], &[]);
    check(
        &FILE_LENGTH,
        &[("a/tests.rs", &bad), ("a/tests/b.rs", &bad), ("a.md", &bad)],
        &[],
    );
}

#[test]
fn module_name() {
    let named = [
        "a/utils.rs",
        "a/helpers/mod.rs",
        "tests/common/mod.rs",
        "misc.rs",
    ];
    for path in named {
        check(&MODULE_NAME, &[(path, "")], &[&format!("{path}:1")]);
    }
    check(
        &MODULE_NAME,
        &[("a.rs", "mod a {}\npub mod utils { }")],
        &["a.rs:2"],
    );

    let good = [
        ("crates/runtime/src/utils.rs", ""),
        ("crates/runtime/src/utils/backoff.rs", "pub mod utils;"),
        ("a/commons.rs", "mod miscellany {}"),
        ("docs/common.md", ""),
    ];
    check(&MODULE_NAME, &good, &[]);
    check(
        &MODULE_NAME,
        &[("crates/runtime/src/utils2/misc.rs", "")],
        &["crates/runtime/src/utils2/misc.rs:1"],
    );
}

#[test]
fn doc_block() {
    let rust = "\
//! ```ignore
//! let a = 1;
//! ```
/// ```rust,ignore
/// ```
/** ```no_run, ignore-windows
```
*/
fn a() {}
";
    let markdown = "text\n~~~ignore\n~~~\n> ```rust ignore\n> ```\n";
    let files = [("a.rs", rust), ("a.md", markdown)];
    check(
        &DOC_BLOCK,
        &files,
        &["a.md:2", "a.md:4", "a.rs:1", "a.rs:4", "a.rs:6"],
    );

    let rust = "//! ```no_run\n//! ```\n//! Do not ```ignore```.\nconst A: &str = \"\n```ignore\";";
    let markdown = "```text\nignore\n```\n`ignore`\n";
    check(
        &DOC_BLOCK,
        &[
            ("a.rs", rust),
            ("a.md", markdown),
            ("ignore.txt", "```ignore"),
        ],
        &[],
    );
}

#[test]
fn link() {
    let bad = "\
[a](gone.md) and [b](docs/gone.md \"title\"), ![c](<gone.png>)
`[code](gone.md)` [d](gone.md#part)

[e]: gone.md
[f](../outside.md) [g](/gone.md)
";
    check(
        &LINK,
        &[("README.md", bad)],
        &[
            "README.md:1",
            "README.md:1",
            "README.md:1",
            "README.md:2",
            "README.md:4",
            "README.md:5",
            "README.md:5",
        ],
    );

    let readme = "\
[a](docs/a.md#part), [b](docs/), [c](docs), [d](#here), [e](https://example.com/gone.md)
[f](mailto:a@example.com) [g](./docs/../docs/a.md) `[h](gone.md)`
```text
[i](gone.md)
```
[j]: <docs/a.md> \"title\"
";
    let below = "[a](../README.md), [b](/README.md), [c](a.md), [d](..)";
    check(
        &LINK,
        &[
            ("README.md", readme),
            ("docs/a.md", below),
            ("a.txt", "[a](gone.md)"),
        ],
        &[],
    );
}

#[test]
fn machine_path() {
    // In parts: this file must not name such a path either.
    let [work, temporary, shared] =
        [["/wo", "rk/main"], ["/t", "mp/x"], ["..", "/shared"]].map(|parts| parts.concat());
    let text = format!("//! See {work}.\n\"{temporary}\"\nsee ../{shared}/x");
    check(
        &MACHINE_PATH,
        &[("a.rs", &text)],
        &["a.rs:1", "a.rs:2", "a.rs:3"],
    );
    check(
        &MACHINE_PATH,
        &[(".ci/run", &text)],
        &[".ci/run:1", ".ci/run:2", ".ci/run:3"],
    );

    let good = format!("std::env::temp_dir() a{work} ./target{temporary} shared");
    check(&MACHINE_PATH, &[("a.rs", &good)], &[]);
}

#[test]
fn file_size() {
    let fits = "x".repeat(1024 * 1024);
    let big = format!("{fits}x");
    check(&FILE_SIZE, &[("data.json", &big)], &["data.json:1"]);
    check(
        &FILE_SIZE,
        &[("data.json", &fits), ("Cargo.lock", &big)],
        &[],
    );
}
