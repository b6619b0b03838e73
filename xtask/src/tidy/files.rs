//! Sizes, names and texts of files.

use super::source::words;
use super::tree::{File, Tree};
use super::{Finding, Rule};

pub(crate) const FILE_LENGTH: Rule = Rule {
    name: "file-length",
    why: "a file has at most 500 lines without comments and tests, so that it has one subject",
    check: file_length,
};

pub(crate) const MODULE_NAME: Rule = Rule {
    name: "module-name",
    why: "no module is called utils, helpers, common or misc; its name says its subject",
    check: module_name,
};

pub(crate) const DOC_BLOCK: Rule = Rule {
    name: "doc-block",
    why: "no code block is marked `ignore`; what the documentation shows compiles",
    check: doc_block,
};

pub(crate) const LINK: Rule = Rule {
    name: "link",
    why: "links from Markdown files to files of the repository lead somewhere",
    check: link,
};

pub(crate) const MACHINE_PATH: Rule = Rule {
    name: "machine-path",
    why: "no file names a folder of somebody's machine; the repository works on every one",
    check: machine_path,
};

pub(crate) const FILE_SIZE: Rule = Rule {
    name: "file-size",
    why: "no file but Cargo.lock is over 1 MiB; history keeps what was big for ever",
    check: file_size,
};

/// Lines with code.
const MAX_LINES: usize = 500;

const MAX_BYTES: usize = 1024 * 1024;

const EMPTY_NAMES: &[&str] = &["utils", "helpers", "common", "misc"];

/// Modules that may have such a name, with the reason.
const NAMED_BY_OTHERS: &[(&str, &str)] = &[
    (
        "crates/runtime/src/utils",
        "users import kube::runtime::utils and change only the crate",
    ),
    (
        "crates/runtime/src/compat",
        "it mirrors kube::runtime, which has a module utils",
    ),
];

/// Starts of paths that exist on one machine only. In parts, so that this file does not name them.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/t", "mp/"),
    concat!("..", "/shared"),
];

fn file_length(tree: &Tree) -> Vec<Finding> {
    let lengths = tree
        .sources()
        .map(|(path, source)| (path, source.lines_of_code()));
    let long = lengths.filter(|(_, lines)| *lines > MAX_LINES);
    long.map(|(path, lines)| {
        let advice = format!("{lines} lines of code, at most {MAX_LINES}: split it by subject");
        Finding {
            path: path.to_owned(),
            line: 1,
            advice,
        }
    })
    .collect()
}

fn module_name(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources() {
        let excepted = NAMED_BY_OTHERS.iter().any(|(module, _)| {
            path.strip_prefix(module)
                .is_some_and(|rest| rest.starts_with(['/', '.']))
        });
        let named = |name: &str| format!("name the module after its subject, not {name}");
        for name in EMPTY_NAMES {
            if !excepted
                && path
                    .trim_end_matches(".rs")
                    .split('/')
                    .any(|part| part == *name)
            {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: 1,
                    advice: named(name),
                });
            }
            findings.extend(
                words(&source.code, &format!("mod {name}")).filter_map(|offset| {
                    // A module in a file of its own is found by its path.
                    let after = source.code[offset + "mod ".len() + name.len()..].trim_start();
                    let line = source.line(offset);
                    (!excepted && after.starts_with('{')).then(|| Finding {
                        path: path.to_owned(),
                        line,
                        advice: named(name),
                    })
                }),
            );
        }
    }
    findings
}

fn doc_block(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        let text = match &file.source {
            Some(source) => &source.comments,
            None if is_markdown(file) => &file.text,
            None => continue,
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start_matches(['/', '!', '*', ' ', '>']);
            let Some(tags) = line
                .strip_prefix("```")
                .or_else(|| line.strip_prefix("~~~"))
            else {
                continue;
            };
            if tags
                .split([',', ' '])
                .any(|tag| tag.trim().starts_with("ignore"))
            {
                let advice = "let the block compile, or mark it as text".to_owned();
                findings.push(Finding {
                    path: file.path.clone(),
                    line: index + 1,
                    advice,
                });
            }
        }
    }
    findings
}

fn link(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| is_markdown(file)) {
        for (line, target) in links(&file.text) {
            let target = target.split(['#', '?']).next().unwrap_or_default();
            let elsewhere =
                target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !resolve(&file.path, target).is_some_and(|path| tree.has(&path)) {
                let advice = format!("{target} is no file of the repository: correct the link");
                findings.push(Finding {
                    path: file.path.clone(),
                    line,
                    advice,
                });
            }
        }
    }
    findings
}

/// The targets of the links outside code, with their lines.
fn links(markdown: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut in_block = false;
    for (index, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Every second piece is between backticks.
        let spans = line.split('`').collect::<Vec<_>>();
        let starts = spans.iter().scan(0, |end, span| {
            let start = *end;
            *end += span.len() + 1;
            Some(start..start + span.len())
        });
        let texts: Vec<_> = starts.step_by(2).collect();
        for (at, _) in line.match_indices("](") {
            if texts.iter().any(|text| text.contains(&at)) {
                links.push((index + 1, target(&line[at + 2..])));
            }
        }
        // `[name]: target`
        if let Some((name, rest)) = line.trim_start().split_once("]:")
            && name.starts_with('[')
        {
            links.push((index + 1, target(rest.trim_start())));
        }
    }
    links
}

/// The target that the text starts with, without its title.
fn target(text: &str) -> &str {
    match text.strip_prefix('<') {
        Some(text) => text.split('>').next().unwrap_or_default(),
        None => text.split([')', ' ']).next().unwrap_or_default(),
    }
}

/// The path that a link in this file leads to, unless that is outside of the repository.
fn resolve(file: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    if !target.starts_with('/') {
        parts.extend(file.split('/'));
        parts.pop();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn machine_path(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for path in MACHINE_PATHS {
            for (offset, _) in file.text.match_indices(path) {
                // `a/b/` names a part of a path and says nothing about where it starts.
                let before = file.text[..offset].chars().next_back();
                if path.starts_with('/') && before.is_some_and(|c| c.is_alphanumeric() || c == '.')
                {
                    continue;
                }
                let line = file.text[..offset].matches('\n').count() + 1;
                let advice = format!("do not name {path}; for a place to write, ask the system");
                findings.push(Finding {
                    path: file.path.clone(),
                    line,
                    advice,
                });
            }
        }
    }
    findings
}

fn file_size(tree: &Tree) -> Vec<Finding> {
    let big = tree
        .files()
        .filter(|file| file.bytes > MAX_BYTES && file.name() != "Cargo.lock");
    big.map(|file| {
        let advice = format!("{} bytes, at most {MAX_BYTES}: make it smaller", file.bytes);
        Finding {
            path: file.path.clone(),
            line: 1,
            advice,
        }
    })
    .collect()
}

fn is_markdown(file: &File) -> bool {
    file.has_ending("md")
}
