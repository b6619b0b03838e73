//! Translations keep step with what they translate.

use super::tree::Tree;
use super::{Finding, Rule};

pub(crate) const TRANSLATION: Rule = Rule {
    name: "translation",
    why: "a translated page, as README.ko.md, has the headings and the code blocks of the page that it translates",
    check: translation,
};

/// What two pages in different languages have in common.
#[derive(PartialEq, Eq)]
enum Piece<'a> {
    /// A heading of this level.
    Heading(usize),
    /// A code block, line by line.
    Code(Vec<&'a str>),
}

fn translation(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        let Some(original) = original(&file.path) else {
            continue;
        };
        let mut complain = |line, advice| {
            findings.push(Finding {
                path: file.path.clone(),
                line,
                advice,
            });
        };
        let Some(original) = tree.file(&original) else {
            complain(1, format!("there is no {original} that it translates"));
            continue;
        };
        let (theirs, ours) = (pieces(&original.text), pieces(&file.text));
        let length = theirs.len().max(ours.len());
        let differing = (0..length).find(|&at| {
            let (theirs, ours) = (theirs.get(at), ours.get(at));
            theirs.map(|(_, piece)| piece) != ours.map(|(_, piece)| piece)
        });
        if let Some(at) = differing {
            let line =
                |all: &[(usize, Piece<'_>)]| all.get(at).or(all.last()).map_or(1, |one| one.0);
            let there = format!("{}:{}", original.path, line(&theirs));
            complain(line(&ours), format!("translate what {there} has here"));
        }
    }
    findings
}

/// The page that a path is a translation of, if it is one: `a.ko.md` translates `a.md`.
fn original(path: &str) -> Option<String> {
    let (page, language) = path.strip_suffix(".md")?.rsplit_once('.')?;
    let is_language = language.len() == 2 && language.bytes().all(|byte| byte.is_ascii_lowercase());
    is_language.then(|| format!("{page}.md"))
}

/// Headings and code blocks, each with the line where it begins.
fn pieces(text: &str) -> Vec<(usize, Piece<'_>)> {
    let mut pieces = Vec::new();
    let mut block: Option<(usize, Vec<&str>)> = None;
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.starts_with("```");
        match &mut block {
            Some((_, lines)) => lines.push(line),
            None if is_fence => block = Some((index + 1, vec![line])),
            None if line.starts_with('#') => {
                let level = line.bytes().take_while(|&byte| byte == b'#').count();
                pieces.push((index + 1, Piece::Heading(level)));
            }
            None => {}
        }
        let ends = is_fence && block.as_ref().is_some_and(|(_, lines)| lines.len() > 1);
        if ends && let Some((start, lines)) = block.take() {
            pieces.push((start, Piece::Code(lines)));
        }
    }
    pieces.extend(block.map(|(start, lines)| (start, Piece::Code(lines))));
    pieces
}
