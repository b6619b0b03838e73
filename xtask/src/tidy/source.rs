//! A Rust file in views that a plain text search can trust.
//!
//! Rules look for words such as `thread::sleep`. In the text as it is they would also find them in
//! comments and literals, so each view keeps one part and blanks the rest, byte for byte: offsets
//! and lines are the same in both.

use std::ops::Range;

/// The views of one file.
pub(crate) struct Source {
    /// Blanks for comments, quotation marks for everything in a literal.
    pub(crate) code: String,
    /// Blanks for everything but comments.
    pub(crate) comments: String,
    /// The attributes as ranges of `code`, brackets included.
    pub(crate) attributes: Vec<Range<usize>>,
    /// The modules in other files that are declared under `#[cfg(test)]`.
    pub(crate) test_modules: Vec<String>,
    /// Ranges of `code` that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Code,
    Comment,
    Literal,
}

// === impl Source ===

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let (code, comments) = views(text);
        let attributes = attributes(&code);
        let mut tests = Vec::new();
        let mut test_modules = Vec::new();
        for attribute in &attributes {
            let text: String = code[attribute.clone()]
                .chars()
                .filter(|c| !c.is_whitespace())
                .collect();
            if text.starts_with("#![cfg(test)") {
                tests.push(0..code.len());
            } else if text == "#[cfg(test)]" || text.starts_with("#[cfg(all(test,") {
                let item = attribute.end..item_end(&code, attribute.end);
                if let Some(name) = declared_module(&code[item.clone()]) {
                    test_modules.push(name.to_owned());
                }
                tests.push(attribute.start..item.end);
            }
        }
        Self {
            code,
            comments,
            attributes,
            test_modules,
            tests,
        }
    }

    /// Counts the whole file as test code.
    pub(crate) fn mark_as_test(&mut self) {
        self.tests.push(0..self.code.len());
    }

    /// Whether the whole file is compiled for tests only.
    pub(crate) fn is_for_tests_only(&self) -> bool {
        self.tests.contains(&(0..self.code.len()))
    }

    /// Whether the code at this offset is compiled for tests only.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|test| test.contains(&offset))
    }

    /// The line of an offset, counted from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// The offsets where the word stands in the code, and not as a part of a longer one.
    pub(crate) fn occurrences(&self, word: &str) -> impl Iterator<Item = usize> {
        words(&self.code, word)
    }

    /// The number of lines with code that is not for tests.
    pub(crate) fn lines_of_code(&self) -> usize {
        let mut offset = 0;
        let mut count = 0;
        for line in self.code.split_inclusive('\n') {
            let indent = line.len() - line.trim_start().len();
            if !line.trim().is_empty() && !self.is_test(offset + indent) {
                count += 1;
            }
            offset += line.len();
        }
        count
    }
}

/// The offsets where the word stands in the text, and not as a part of a longer one.
pub(crate) fn words(text: &str, word: &str) -> impl Iterator<Item = usize> {
    text.match_indices(word)
        .map(|(offset, _)| offset)
        .filter(move |&start| {
            let end = start + word.len();
            !(continues(word.chars().next(), text[..start].chars().next_back())
                || continues(word.chars().next_back(), text[end..].chars().next()))
        })
}

/// The offset after the bracket that closes the one at `open`, or the end of the code.
pub(crate) fn close(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, c) in code[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return open + offset + c.len_utf8();
        }
    }
    code.len()
}

/// Whether two neighbours belong to one word.
fn continues(a: Option<char>, b: Option<char>) -> bool {
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    in_word(a) && in_word(b)
}

/// The code without comments, and the comments without code.
fn views(text: &str) -> (String, String) {
    let mut code = String::with_capacity(text.len());
    let mut comments = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (token, length) = next_token(rest);
        let (this, after) = rest.split_at(length);
        match token {
            Token::Code => code.push_str(this),
            Token::Comment => cover(&mut code, this, ' '),
            Token::Literal => cover(&mut code, this, '"'),
        }
        match token {
            Token::Comment => comments.push_str(this),
            Token::Code | Token::Literal => cover(&mut comments, this, ' '),
        }
        rest = after;
    }
    (code, comments)
}

/// Appends as many bytes as the text has, with the same lines.
fn cover(view: &mut String, text: &str, with: char) {
    view.extend(
        text.bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { with }),
    );
}

/// What the text starts with, and how many bytes of it belong together. The text is not empty.
fn next_token(text: &str) -> (Token, usize) {
    if text.starts_with("//") {
        return (Token::Comment, text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return (Token::Comment, block_comment(text));
    }
    if let Some(length) = raw_string(text) {
        return (Token::Literal, length);
    }
    if text.starts_with('"') {
        return (Token::Literal, quoted(text, '"'));
    }
    if is_char_literal(text) {
        return (Token::Literal, quoted(text, '\''));
    }
    let word = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (
        Token::Code,
        word.max(text.chars().next().map_or(1, char::len_utf8)),
    )
}

/// The length of the block comment that the text starts with; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the raw string that the text starts with.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(['"', '#']))
    })?;
    let rest = &text[prefix.len()..];
    let content = rest.trim_start_matches('#');
    let hashes = rest.len() - content.len();
    // `r#name` is a name.
    let content = content.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = content
        .find(&end)
        .map_or(content.len(), |found| found + end.len());
    Some(text.len() - content.len() + length)
}

/// The length of the literal that the text starts with, up to the same mark again.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (offset, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == mark => return offset + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('\'')
        && match chars.next() {
            Some('\\') => true,
            Some(_) => chars.next() == Some('\''),
            None => false,
        }
}

fn attributes(code: &str) -> Vec<Range<usize>> {
    let starts = code.match_indices('#').filter_map(|(start, _)| {
        let after = &code[start + 1..];
        let open = after.strip_prefix('!').unwrap_or(after);
        open.starts_with('[')
            .then(|| start..close(code, code.len() - open.len()))
    });
    starts.collect()
}

/// The offset after the item that stands at `start`: after its block or its semicolon.
fn item_end(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(offset) = code[at..].find(['(', '[', '{', '}', ';', ',']) {
        at += offset;
        match code.as_bytes()[at] {
            b'{' => return close(code, at),
            b'(' | b'[' => at = close(code, at),
            _ => return at + 1,
        }
    }
    code.len()
}

/// The name in `mod name;`.
fn declared_module(item: &str) -> Option<&str> {
    let (_, name) = item.strip_suffix(';')?.rsplit_once("mod ")?;
    Some(name.trim())
}
