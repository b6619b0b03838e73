//! Reads Go's syntax. Groups are kept on a list instead of the stack: they can nest without limit.

use super::class::{self, Class};
use super::fault::{Fault, Read, before, fault};
use super::unicode::table_of;

/// A group may have so many levels of parts within each other.
const MAX_HEIGHT: usize = 1000;

/// A part may be repeated so often, all repetitions around it counted.
const MAX_REPEAT: i64 = 1000;

/// Numbers from here on are too large to be counted.
const MAX_COUNT: i64 = 100_000_000;

/// A part of a pattern, translated.
#[derive(Debug)]
struct Item {
    text: String,
    /// Whether a repetition behind it is about all of it.
    single: bool,
    /// How often the repetitions in it repeat something at most.
    repeats: i64,
    height: usize,
}

#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each stands for one flag of the syntax"
)]
struct Flags {
    fold: bool,
    lines: bool,
    dot_all: bool,
    lazy: bool,
}

/// A group that is not closed yet.
#[derive(Debug, Default)]
struct Group {
    /// The alternatives that are complete.
    branches: Vec<Item>,
    items: Vec<Item>,
    /// The flags outside of it.
    outer: Flags,
    captures: bool,
}

#[derive(Debug)]
struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    flags: Flags,
    groups: Vec<Group>,
}

/// Translates a pattern. Answers it with the levels that it has.
///
/// # Errors
///
/// What Go says about a pattern that it refuses.
pub(super) fn translate(source: &str) -> Result<(String, usize), String> {
    let mut reader = Reader {
        whole: source,
        rest: source,
        flags: Flags::default(),
        groups: vec![Group::default()],
    };
    let read = reader.read();
    read.map(|item| (item.text, item.height))
        .map_err(|Fault { code, part }| format!("error parsing regexp: {code}: `{part}`"))
}

// === impl Item ===

impl Item {
    fn single(text: String) -> Self {
        Self {
            text,
            single: true,
            repeats: 1,
            height: 1,
        }
    }

    /// The item as one that a repetition can stand behind.
    fn enclosed(self) -> String {
        if self.single {
            self.text
        } else {
            format!("(?:{})", self.text)
        }
    }
}

// === impl Group ===

impl Group {
    fn end_branch(&mut self) {
        let mut items = std::mem::take(&mut self.items);
        let branch = if items.len() == 1 {
            items.remove(0)
        } else {
            let height = items.iter().map(|item| item.height).max();
            let repeats = items.iter().map(|item| item.repeats).max();
            Item {
                height: height.unwrap_or_default() + 1,
                repeats: repeats.unwrap_or(1),
                single: false,
                text: items.into_iter().map(|item| item.text).collect(),
            }
        };
        self.branches.push(branch);
    }

    fn finish(mut self) -> Item {
        self.end_branch();
        let mut item = if self.branches.len() == 1 {
            self.branches.remove(0)
        } else {
            let height = self.branches.iter().map(|item| item.height).max();
            let repeats = self.branches.iter().map(|item| item.repeats).max();
            let branches: Vec<String> = self.branches.into_iter().map(|item| item.text).collect();
            Item {
                text: format!("(?:{})", branches.join("|")),
                single: true,
                repeats: repeats.unwrap_or(1),
                height: height.unwrap_or_default() + 1,
            }
        };
        if self.captures {
            item.height += 1;
        }
        item
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn read(&mut self) -> Read<Item> {
        // The repetition just before, which no other may follow.
        let mut repeated: Option<&str> = None;
        while let Some(first) = self.rest.chars().next() {
            let here = self.rest;
            let last = repeated.take();
            match first {
                '(' if here.starts_with("(?") => self.flagged_group()?,
                '(' => {
                    self.rest = &here[1..];
                    self.open(true);
                }
                ')' => self.close()?,
                '|' => {
                    self.rest = &here[1..];
                    self.group().end_branch();
                }
                '*' | '+' | '?' => {
                    self.rest = &here[1..];
                    let bounds = match first {
                        '*' => (0, -1),
                        '+' => (1, -1),
                        _ => (0, 1),
                    };
                    self.repeat(bounds, &here[..1], here, last)?;
                    repeated = Some(here);
                }
                '{' => {
                    if let Some((bounds, rest)) = counts(here) {
                        self.rest = rest;
                        self.counted(bounds, here, last)?;
                        repeated = Some(here);
                    } else {
                        self.literal('{');
                    }
                }
                '[' => {
                    let (class, rest) = class::read(here)?;
                    self.rest = rest;
                    self.class(&class);
                }
                '\\' => self.escape()?,
                _ => self.character(first),
            }
        }
        if self.groups.len() > 1 {
            return fault("missing closing )", self.whole);
        }
        let item = std::mem::take(self.group()).finish();
        self.checked_height(item)
    }

    fn checked_height(&self, item: Item) -> Read<Item> {
        if item.height > MAX_HEIGHT {
            return fault("expression nests too deeply", self.whole);
        }
        Ok(item)
    }

    fn group(&mut self) -> &mut Group {
        // The first group is the whole pattern, which nothing closes.
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn add(&mut self, item: Item) {
        self.group().items.push(item);
    }

    /// Adds what is sensitive to the flag for upper and lower case.
    fn add_foldable(&mut self, text: String) {
        let text = if self.flags.fold {
            format!("(?i:{text})")
        } else {
            text
        };
        self.add(Item::single(text));
    }

    fn character(&mut self, c: char) {
        let Flags { lines, dot_all, .. } = self.flags;
        let text = match c {
            '^' if lines => "(?m:^)",
            '^' => r"\A",
            '$' if lines => "(?m:$)",
            '$' => r"\z",
            '.' if dot_all => "(?s:.)",
            '.' => r"[^\n]",
            _ => return self.literal(c),
        };
        self.rest = &self.rest[1..];
        self.add(Item::single(text.to_owned()));
    }

    fn literal(&mut self, c: char) {
        self.rest = &self.rest[c.len_utf8()..];
        self.add_foldable(class::shown(c));
    }

    fn class(&mut self, class: &Class) {
        self.add_foldable(class.text());
    }

    fn open(&mut self, captures: bool) {
        let outer = self.flags;
        self.groups.push(Group {
            outer,
            captures,
            ..Group::default()
        });
    }

    fn close(&mut self) -> Read<()> {
        if self.groups.len() == 1 {
            return fault("unexpected )", self.whole);
        }
        self.rest = &self.rest[1..];
        if let Some(group) = self.groups.pop() {
            self.flags = group.outer;
            let item = self.checked_height(group.finish())?;
            self.add(item);
        }
        Ok(())
    }

    /// A group with a name or with flags, or flags alone.
    fn flagged_group(&mut self) -> Read<()> {
        let here = self.rest;
        let name = ["(?P<", "(?<"]
            .into_iter()
            .find_map(|start| here.strip_prefix(start));
        // A name needs at least one more character.
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            return self.named_group(name);
        }
        let mut rest = &here[2..];
        let mut flags = self.flags;
        let (mut on, mut seen) = (true, false);
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                'i' => flags.fold = on,
                'm' => flags.lines = on,
                's' => flags.dot_all = on,
                'U' => flags.lazy = on,
                '-' if on => {
                    (on, seen) = (false, false);
                    continue;
                }
                ':' | ')' if on || seen => {
                    self.rest = rest;
                    if c == ':' {
                        self.open(false);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return fault(PERL, before(here, rest)),
            }
            seen = true;
        }
        fault(PERL, here)
    }

    fn named_group(&mut self, after: &str) -> Read<()> {
        let here = self.rest;
        let Some(length) = after.find('>') else {
            return fault("invalid named capture", here);
        };
        let (name, rest) = (&after[..length], &after[length + 1..]);
        let right = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(right) {
            return fault("invalid named capture", before(here, rest));
        }
        self.rest = &here[here.len() - rest.len()..];
        self.open(true);
        Ok(())
    }

    fn counted(&mut self, bounds: (i64, i64), here: &str, last: Option<&str>) -> Read<()> {
        let (min, max) = bounds;
        if !(0..=MAX_REPEAT).contains(&min) || max > MAX_REPEAT || (max >= 0 && min > max) {
            return fault("invalid repeat count", before(here, self.rest));
        }
        let shown = before(here, self.rest).to_owned();
        self.repeat(bounds, &shown, here, last)
    }

    /// Repeats the item before. `here` is the pattern from the repetition on, and `last` the same
    /// for a repetition just before it.
    fn repeat(
        &mut self,
        bounds: (i64, i64),
        shown: &str,
        here: &str,
        last: Option<&str>,
    ) -> Read<()> {
        let mut lazy = self.flags.lazy;
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
            lazy = !lazy;
        }
        if let Some(last) = last {
            return fault(
                "invalid nested repetition operator",
                before(last, self.rest),
            );
        }
        let rest = self.rest;
        let Some(item) = self.group().items.pop() else {
            return fault(
                "missing argument to repetition operator",
                before(here, rest),
            );
        };
        let (min, max) = bounds;
        let times = if max < 0 { min } else { max };
        let repeats = if max == 0 {
            1
        } else {
            item.repeats * times.max(1)
        };
        if (min >= 2 || max >= 2) && repeats > MAX_REPEAT {
            return fault("invalid repeat count", before(here, rest));
        }
        let height = item.height + 1;
        let mark = if lazy { "?" } else { "" };
        let text = format!("{}{shown}{mark}", item.enclosed());
        let item = self.checked_height(Item {
            text,
            single: false,
            repeats,
            height,
        })?;
        self.add(item);
        Ok(())
    }

    fn escape(&mut self) -> Read<()> {
        let here = self.rest;
        let mut characters = here.chars();
        characters.next();
        let look = match characters.next() {
            Some('A') => Some(r"\A"),
            Some('z') => Some(r"\z"),
            Some('b') => Some(r"(?-u:\b)"),
            Some('B') => Some(r"(?-u:\B)"),
            _ => None,
        };
        if let Some(look) = look {
            self.rest = &here[2..];
            self.add(Item::single(look.to_owned()));
            return Ok(());
        }
        if here.starts_with(r"\C") {
            return fault("invalid escape sequence", r"\C");
        }
        if let Some(quoted) = here.strip_prefix(r"\Q") {
            let (text, rest) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            for c in text.chars() {
                self.add_foldable(class::shown(c));
            }
            self.rest = rest_of(here, rest);
            return Ok(());
        }
        if let Some((class, rest)) = class::escaped_class(here, table_of)? {
            self.rest = rest;
            self.class(&class);
            return Ok(());
        }
        let (code, rest) = class::escaped(here)?;
        self.rest = rest;
        let mut class = Class::default();
        class.add(code, code);
        self.class(&class);
        Ok(())
    }
}

const PERL: &str = "invalid or unsupported Perl syntax";

/// The end of a text that is as long as this rest.
fn rest_of<'a>(text: &'a str, rest: &str) -> &'a str {
    &text[text.len() - rest.len()..]
}

/// The bounds of a repetition such as `{2,5}`, and what follows it. There is no upper bound in a
/// negative one. None if it is none: then the bracket is a character like others.
fn counts(text: &str) -> Option<((i64, i64), &str)> {
    let (mut min, rest) = count(text.strip_prefix('{')?)?;
    let Some(rest) = rest.strip_prefix(',') else {
        return Some(((min, min), rest.strip_prefix('}')?));
    };
    if let Some(rest) = rest.strip_prefix('}') {
        return Some(((min, -1), rest));
    }
    let (max, rest) = count(rest)?;
    if max < 0 {
        min = -1;
    }
    Some(((min, max), rest.strip_prefix('}')?))
}

/// A number without zeros in front; a negative one stands for one that is too large.
fn count(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    let number = digits.parse().ok().filter(|number| *number < MAX_COUNT);
    Some((number.unwrap_or(-1), rest))
}
