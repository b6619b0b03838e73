//! What is wrong with an expression, and how that is shown.

/// Something wrong at one place of a source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Issue {
    /// In characters.
    pub(crate) offset: u32,
    pub(crate) message: String,
}

/// More issues than these are not told.
const MAX_ISSUES: usize = 100;

/// The issues with the lines that they are about, in the order of their places.
pub(crate) fn shown(source: &str, mut issues: Vec<Issue>) -> String {
    issues.sort_by_key(|issue| issue.offset);
    issues.truncate(MAX_ISSUES);
    let blocks: Vec<String> = issues.iter().map(|issue| block(source, issue)).collect();
    blocks.join("\n")
}

fn block(source: &str, issue: &Issue) -> String {
    let (mut line, mut column) = (1, 0);
    for c in source.chars().take(issue.offset as usize) {
        if c == '\n' {
            line += 1;
            column = 0;
        } else {
            column += 1;
        }
    }
    let text = source.split('\n').nth(line - 1).unwrap_or_default();
    let text = text.replace('\t', " ");
    // A mark is as wide as the character above it.
    let mut marks: String = text
        .chars()
        .take(column)
        .map(|c| if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' })
        .collect();
    let under = text.chars().nth(column);
    let wide = under.is_some_and(|c| c.len_utf8() > 1);
    marks.push(if wide { '\u{ff3e}' } else { '^' });
    format!(
        "ERROR: <input>:{line}:{}: {}\n | {text}\n | {marks}",
        column + 1,
        issue.message
    )
}
