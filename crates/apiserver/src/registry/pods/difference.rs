//! What differs between two texts, as programs for versions show it: the lines that go and that come, with three
//! lines around them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

/// So many lines are shown around each change.
const AROUND: usize = 3;

/// In a text of so many lines, those that are there often are no beginnings of what is the same.
const LONG: usize = 200;

/// Lines that are the same, or that stand in place of each other.
#[derive(Debug, Clone)]
struct Part {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// The difference, as empty text if there is none.
pub(super) fn unified(old: &[String], new: &[String]) -> String {
    let mut shown = String::new();
    for group in groups(parts(old, new)) {
        let range = |of: fn(&Part) -> &Range<usize>| {
            let first = group.first().map_or(0, |part| of(part).start);
            let last = group.last().map_or(0, |part| of(part).end);
            header(first..last)
        };
        // Writing to a text does not fail.
        let _ = writeln!(
            shown,
            "@@ -{} +{} @@",
            range(|part| &part.old),
            range(|part| &part.new)
        );
        for Part {
            same,
            old: gone,
            new: come,
        } in &group
        {
            let lines = |sign: char, lines: &[String], shown: &mut String| {
                for line in lines {
                    let _ = writeln!(shown, "{sign}{line}");
                }
            };
            if *same {
                lines(' ', &old[gone.clone()], &mut shown);
            } else {
                lines('-', &old[gone.clone()], &mut shown);
                lines('+', &new[come.clone()], &mut shown);
            }
        }
    }
    shown
}

/// The first line and the number of lines. One line needs no number, none is named by the line before.
fn header(lines: Range<usize>) -> String {
    match lines.len() {
        1 => (lines.start + 1).to_string(),
        0 => format!("{},0", lines.start),
        count => format!("{},{count}", lines.start + 1),
    }
}

/// Changes that lie close to each other, with what is around them.
fn groups(mut parts: Vec<Part>) -> Vec<Vec<Part>> {
    if let Some(first) = parts.first_mut().filter(|part| part.same) {
        let left_out = first.old.len().saturating_sub(AROUND);
        first.old.start += left_out;
        first.new.start += left_out;
    }
    if let Some(last) = parts.last_mut().filter(|part| part.same) {
        let left_out = last.old.len().saturating_sub(AROUND);
        last.old.end -= left_out;
        last.new.end -= left_out;
    }
    let mut groups = vec![Vec::new()];
    for part in parts {
        let count = part.old.len();
        let group = groups.last_mut();
        if part.same
            && count > 2 * AROUND
            && let Some(group) = group
        {
            let Part { old, new, .. } = &part;
            group.push(Part {
                same: true,
                old: old.start..old.start + AROUND,
                new: new.start..new.start + AROUND,
            });
            groups.push(vec![Part {
                same: true,
                old: old.end - AROUND..old.end,
                new: new.end - AROUND..new.end,
            }]);
        } else if let Some(group) = group {
            group.push(part);
        }
    }
    groups.retain(|group| group.iter().any(|part| !part.same));
    groups
}

/// Both texts as parts that are the same and others.
fn parts(old: &[String], new: &[String]) -> Vec<Part> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if new.len() >= LONG {
        let often = new.len() / 100 + 1;
        places.retain(|_, places| places.len() <= often);
    }
    let mut blocks = BTreeSet::new();
    let mut open = vec![(0..old.len(), 0..new.len())];
    while let Some((olds, news)) = open.pop() {
        let Some(block) = longest(old, new, &places, &olds, &news) else {
            continue;
        };
        let (start, other, size) = block;
        open.push((olds.start..start, news.start..other));
        open.push((start + size..olds.end, other + size..news.end));
        blocks.insert(block);
    }
    let (mut at, mut other) = (0, 0);
    let mut parts: Vec<Part> = Vec::new();
    for (old_start, new_start, size) in blocks.into_iter().chain([(old.len(), new.len(), 0)]) {
        if (at, other) != (old_start, new_start) {
            parts.push(Part {
                same: false,
                old: at..old_start,
                new: other..new_start,
            });
        }
        (at, other) = (old_start + size, new_start + size);
        let same = Part {
            same: true,
            old: old_start..at,
            new: new_start..other,
        };
        match parts.last_mut() {
            Some(last) if last.same => (last.old.end, last.new.end) = (at, other),
            _ if size > 0 => parts.push(same),
            _ => {}
        }
    }
    parts
}

/// The longest block of lines that both have within these bounds, of several the first. As places and
/// a size.
fn longest(
    old: &[String],
    new: &[String],
    places: &BTreeMap<&str, Vec<usize>>,
    olds: &Range<usize>,
    news: &Range<usize>,
) -> Option<(usize, usize, usize)> {
    let mut best = (olds.start, news.start, 0);
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for place in olds.clone() {
        let mut next = BTreeMap::new();
        let same = places.get(old[place].as_str()).into_iter().flatten();
        for other in same.filter(|other| news.contains(other)) {
            let before = other.checked_sub(1).and_then(|one| lengths.get(&one));
            let length = before.copied().unwrap_or_default() + 1;
            next.insert(*other, length);
            if length > best.2 {
                best = (place + 1 - length, other + 1 - length, length);
            }
        }
        lengths = next;
    }
    let (mut start, mut other, mut size) = best;
    // Lines that are there often belong to it at its ends.
    while start > olds.start && other > news.start && old[start - 1] == new[other - 1] {
        (start, other, size) = (start - 1, other - 1, size + 1);
    }
    while start + size < olds.end
        && other + size < news.end
        && old[start + size] == new[other + size]
    {
        size += 1;
    }
    (size > 0).then_some((start, other, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        let lines = |text: &str| -> Vec<String> { text.chars().map(String::from).collect() };
        assert_eq!(unified(&lines(old), &lines(new)), expected);
    }

    #[test]
    fn lines_around_changes() {
        check("abc", "abc", "");
        check("abc", "axc", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        check("", "a", "@@ -0,0 +1 @@\n+a\n");
        check("a", "", "@@ -1 +0,0 @@\n-a\n");
        check(
            "abcdefghij",
            "abcdXfghij",
            "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+X\n f\n g\n h\n",
        );
        // Six lines between two changes belong to both, seven part them.
        check(
            "1abcdef2",
            "3abcdef4",
            "@@ -1,8 +1,8 @@\n-1\n+3\n a\n b\n c\n d\n e\n f\n-2\n+4\n",
        );
        check(
            "1abcdefg2",
            "3abcdefg4",
            "@@ -1,4 +1,4 @@\n-1\n+3\n a\n b\n c\n@@ -6,4 +6,4 @@\n e\n f\n g\n-2\n+4\n",
        );
    }
}
