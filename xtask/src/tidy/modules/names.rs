//! The names that a file declares, imports and uses.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::tidy::source::{Source, close, words};

/// What a file says about names.
pub(super) struct Names<'a> {
    /// Modules in other files that this one declares.
    pub(super) modules: Vec<&'a str>,
    pub(super) imports: Vec<Import<'a>>,
    /// Paths outside of imports.
    paths: Vec<Reference<'a>>,
    defined: BTreeSet<&'a str>,
}

/// One name that a `use` brings in.
pub(super) struct Import<'a> {
    pub(super) path: Vec<&'a str>,
    /// The name in this file; `*` for all names, `_` for none.
    pub(super) alias: &'a str,
    /// Others can import it from here.
    public: bool,
    line: usize,
    /// It stands in code for tests.
    test: bool,
}

/// A path, and the line where it stands.
pub(super) struct Reference<'a> {
    pub(super) path: Vec<&'a str>,
    pub(super) line: usize,
}

/// The words in front of the name of an item.
const ITEMS: &[&str] = &[
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "fn",
    "const",
    "static",
    "mod",
    "macro_rules!",
];

// === impl Names ===

impl<'a> Names<'a> {
    pub(super) fn of(source: &'a Source) -> Self {
        let code = source.code.as_str();
        let declared = statements(code, "mod ");
        let modules = declared
            .map(|range| code[range].trim())
            .filter(|name| is_name(name))
            .collect();
        let inline = inline_modules(code);
        let mut imports = Vec::new();
        let mut used = Vec::new();
        for range in statements(code, "use ") {
            used.push(range.clone());
            let before = code[..range.start]
                .trim_end()
                .trim_end_matches("use")
                .trim_end();
            let public = before.ends_with("pub")
                || before.ends_with(')') && {
                    let open = before.rfind('(').unwrap_or_default();
                    before[..open].ends_with("pub")
                };
            let mut found = Vec::new();
            tree(&code[range.clone()], &[], &mut found);
            imports.extend(found.into_iter().filter_map(|(path, alias)| {
                Some(Import {
                    path: outside(path, depth(&inline, range.start))?,
                    alias,
                    public,
                    line: source.line(range.start),
                    test: !source.is_for_tests_only() && source.is_test(range.start),
                })
            }));
        }
        let mut paths = Vec::new();
        for (range, path) in all_paths(code) {
            let counts = source.is_for_tests_only() || !source.is_test(range.start);
            if !counts || used.iter().any(|used| used.contains(&range.start)) {
                continue;
            }
            paths.extend(
                outside(path, depth(&inline, range.start)).map(|path| Reference {
                    path,
                    line: source.line(range.start),
                }),
            );
        }
        Self {
            modules,
            imports,
            paths,
            defined: defined(code),
        }
    }

    /// Whether the file has an item of this name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Whether the file imports an item by this name.
    pub(super) fn imports(&self, name: &str) -> bool {
        self.imports.iter().any(|import| import.alias == name)
    }

    /// Every path by which the file needs another one. What it only passes on, it does not need.
    pub(super) fn references(&self) -> Vec<Reference<'a>> {
        let imports = self
            .imports
            .iter()
            .filter(|import| !import.test && !import.public);
        let imports = imports.map(|import| Reference {
            path: import.path.clone(),
            line: import.line,
        });
        let passed_on = |name| {
            self.imports
                .iter()
                .any(|import| import.public && import.alias == name)
        };
        // One word alone can be a variable, and what is imported counts already.
        let used = self
            .paths
            .iter()
            .filter(|reference| match reference.path[..] {
                [name] => passed_on(name),
                _ => true,
            });
        let used = used.map(|reference| Reference {
            path: reference.path.clone(),
            line: reference.line,
        });
        imports.chain(used).collect()
    }
}

/// What stands between the word and the semicolon after it.
fn statements<'a>(code: &'a str, word: &'static str) -> impl Iterator<Item = Range<usize>> + 'a {
    words(code, word.trim_end()).filter_map(move |start| {
        let start = start + word.len();
        let text = code.get(start..)?;
        // `use<..>` in types, and `mod name {`, end otherwise.
        let end = text.find([';', '=', '(', '>', '"'])?;
        let own = text.as_bytes()[end] == b';' && code[..start].ends_with(word);
        own.then_some(start..start + end)
    })
}

/// The blocks of modules that stand in this file.
fn inline_modules(code: &str) -> Vec<Range<usize>> {
    let starts = words(code, "mod").filter_map(|start| {
        let name = code[start + 3..].trim_start();
        let after = name
            .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
            .trim_start();
        after.starts_with('{').then(|| code.len() - after.len())
    });
    starts.map(|open| open..close(code, open)).collect()
}

fn depth(inline: &[Range<usize>], offset: usize) -> usize {
    inline
        .iter()
        .filter(|block| block.contains(&offset))
        .count()
}

/// The path as it reads at the top of the file; nothing if it does not leave an inline module.
fn outside(path: Vec<&str>, depth: usize) -> Option<Vec<&str>> {
    let supers = path.iter().take_while(|part| **part == "super").count();
    if depth == 0 || path.first() == Some(&"crate") {
        return Some(path);
    }
    if supers < depth {
        return None;
    }
    let rest = path[depth..].to_vec();
    if supers > depth {
        Some(rest)
    } else {
        Some([vec!["self"], rest].concat())
    }
}

/// The names of a use tree, each with its whole path.
fn tree<'a>(text: &'a str, before: &[&'a str], found: &mut Vec<(Vec<&'a str>, &'a str)>) {
    let text = text.trim();
    if let Some(open) = text.find('{') {
        let mut path = before.to_vec();
        path.extend(
            text[..open]
                .split("::")
                .map(str::trim)
                .filter(|part| !part.is_empty()),
        );
        let inner = &text[open + 1..close(text, open).saturating_sub(1).max(open + 1)];
        for part in at_commas(inner) {
            tree(part, &path, found);
        }
        return;
    }
    let (text, alias) = match text.split_once(" as ") {
        Some((text, alias)) => (text, Some(alias.trim())),
        None => (text, None),
    };
    let mut path = before.to_vec();
    path.extend(
        text.split("::")
            .map(str::trim)
            .filter(|part| !part.is_empty()),
    );
    // `a::{self}` is `a`, and `self::a` keeps its start.
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    let Some(&last) = path.last() else { return };
    if last == "*" {
        path.pop();
    }
    found.push((path, alias.unwrap_or(last)));
}

/// The text between the commas outside of braces.
fn at_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .collect()
}

/// Every word of the code with what follows it by `::`.
fn all_paths(code: &str) -> Vec<(Range<usize>, Vec<&str>)> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let length = word_length(rest);
        if length == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let start = at;
        let mut path = vec![&code[at..at + length]];
        at += length;
        while let Some(after) = code[at..].strip_prefix("::") {
            let length = word_length(after);
            if length == 0 {
                break;
            }
            path.push(&after[..length]);
            at += 2 + length;
        }
        // A field or method of this name is another thing.
        let before = code[..start].trim_end();
        let member = before.ends_with('.') && !before.ends_with("..") || before.ends_with("::");
        if !member {
            paths.push((start..at, path));
        }
    }
    paths
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && word_length(text) == text.len()
}

fn defined(code: &str) -> BTreeSet<&str> {
    let names = ITEMS.iter().flat_map(|item| {
        words(code, item).filter_map(move |start| {
            let text = code[start + item.len()..].trim_start();
            let text = text.strip_prefix("mut ").unwrap_or(text);
            let name = &text[..word_length(text)];
            // A module in another file is found by its path.
            let elsewhere = *item == "mod" && text[name.len()..].trim_start().starts_with(';');
            (!name.is_empty() && !elsewhere).then_some(name)
        })
    });
    names.collect()
}
