//! Matches a pattern step by step, as Go does. The library makes a state of each part of each repetition: a
//! class of all letters that is repeated a thousand times takes it a hundred megabytes. Here the
//! repetitions share the class.

use std::ops::Range;
use std::sync::Arc;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// Larger programs are not made. Go's limit is of the same kind, and higher.
const MAX_STEPS: usize = 1_000_000;

type Ranges = Arc<[(char, char)]>;

#[derive(Debug)]
enum Step {
    /// A character within one of these, which are sorted.
    One(Ranges),
    /// Both ways, the first of them rather.
    Fork(usize, usize),
    Jump(usize),
    Look(Look),
    Done,
}

/// A pattern as a program that is run over a text.
#[derive(Debug)]
pub(super) struct Machine {
    steps: Vec<Step>,
    /// The classes in it, each once.
    classes: Vec<Ranges>,
}

/// What a text is matched with, from its left to its right.
#[derive(Debug)]
struct Run<'m> {
    machine: &'m Machine,
    /// The places in the program, those that are preferred first, and where the match of each began.
    threads: Vec<(usize, usize)>,
    /// For each place, the last character at which a thread was there.
    seen: Vec<usize>,
    /// Places that a thread still has to go to.
    stack: Vec<usize>,
}

/// What lies around a place in a text.
#[derive(Debug, Clone, Copy)]
struct Around {
    before: Option<char>,
    after: Option<char>,
}

// === impl Machine ===

impl Machine {
    /// Makes a program of a pattern as the library reads it. None if it would be too large.
    pub(super) fn new(pattern: &Hir) -> Option<Self> {
        let mut machine = Self {
            steps: Vec::new(),
            classes: Vec::new(),
        };
        machine.add(pattern)?;
        machine.push(Step::Done)?;
        Some(machine)
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.run(text, 0, true).is_some()
    }

    /// The parts of a text that match, at most so many. None is empty just behind another.
    pub(super) fn find_all<'a>(&self, text: &'a str, most: usize) -> Vec<&'a str> {
        let mut found = Vec::new();
        let mut from = 0;
        let mut last = None;
        while found.len() < most {
            let Some((start, end)) = self.run(text, from, false) else {
                break;
            };
            if start < end || last != Some(start) {
                found.push(&text[start..end]);
            }
            last = Some(end);
            from = end;
            if start == end {
                let Some(c) = text[end..].chars().next() else {
                    break;
                };
                from += c.len_utf8();
            }
        }
        found
    }

    fn run(&self, text: &str, from: usize, any: bool) -> Option<(usize, usize)> {
        let mut run = Run {
            machine: self,
            threads: Vec::new(),
            seen: vec![usize::MAX; self.steps.len()],
            stack: Vec::new(),
        };
        let mut before = text[..from].chars().next_back();
        let mut found = None;
        let mut rest = text[from..].chars();
        let mut place = from;
        loop {
            let after = rest.next();
            let around = Around { before, after };
            // What began further left is preferred, and so it comes first.
            run.advance_into(place, around, found.is_none());
            let best = run.finished();
            if let Some(start) = best {
                found = Some((start, place));
                if any {
                    return found;
                }
            }
            let Some(c) = after else { return found };
            run.take(c);
            if run.threads.is_empty() && found.is_some() {
                return found;
            }
            place += c.len_utf8();
            before = after;
        }
    }

    fn push(&mut self, step: Step) -> Option<usize> {
        if self.steps.len() >= MAX_STEPS {
            return None;
        }
        self.steps.push(step);
        Some(self.steps.len() - 1)
    }

    fn add(&mut self, pattern: &Hir) -> Option<()> {
        match pattern.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                for c in text.chars() {
                    self.push(Step::One(Arc::from([(c, c)])))?;
                }
            }
            HirKind::Class(class) => {
                let class = self.shared(ranges(class)?);
                self.push(Step::One(class))?;
            }
            HirKind::Look(look) => {
                self.push(Step::Look(*look))?;
            }
            HirKind::Repetition(repetition) => self.repeat(repetition)?,
            HirKind::Capture(capture) => self.add(&capture.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part)?;
                }
            }
            HirKind::Alternation(branches) => self.either(branches)?,
        }
        Some(())
    }

    /// The class as it is kept already, or else kept from now on.
    fn shared(&mut self, class: Ranges) -> Ranges {
        if let Some(known) = self.classes.iter().find(|known| **known == class) {
            return Arc::clone(known);
        }
        self.classes.push(Arc::clone(&class));
        class
    }

    fn either(&mut self, branches: &[Hir]) -> Option<()> {
        let mut ends = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                self.add(branch)?;
                break;
            }
            let fork = self.push(Step::Done)?;
            self.add(branch)?;
            ends.push(self.push(Step::Done)?);
            self.steps[fork] = Step::Fork(fork + 1, self.steps.len());
        }
        for end in ends {
            self.steps[end] = Step::Jump(self.steps.len());
        }
        Some(())
    }

    fn repeat(&mut self, repetition: &Repetition) -> Option<()> {
        let Repetition {
            min,
            max,
            greedy,
            sub,
        } = repetition;
        // Reading a class takes longer than its steps, so it is read once.
        let mut made = None;
        for _ in 0..*min {
            let steps = self.add_once_more(sub, &mut made)?;
            // What takes no step can be repeated for ever.
            if steps == 0 {
                return Some(());
            }
        }
        let Some(max) = max else {
            // All of the first time can be left out, also where it takes nothing.
            let fork = self.push(Step::Done)?;
            self.add_once_more(sub, &mut made)?;
            let again = self.push(Step::Done)?;
            self.fork(fork, *greedy);
            self.steps[again] = if *greedy {
                Step::Fork(fork + 1, again + 1)
            } else {
                Step::Fork(again + 1, fork + 1)
            };
            return Some(());
        };
        let mut forks = Vec::new();
        for _ in *min..*max {
            forks.push(self.push(Step::Done)?);
            self.add_once_more(sub, &mut made)?;
        }
        for fork in forks {
            self.fork(fork, *greedy);
        }
        Some(())
    }

    /// Adds the steps of a pattern, as a copy of those that were `made` of it before, and answers how many.
    fn add_once_more(&mut self, sub: &Hir, made: &mut Option<Range<usize>>) -> Option<usize> {
        let begin = self.steps.len();
        let Some(made) = made else {
            self.add(sub)?;
            *made = Some(begin..self.steps.len());
            return Some(self.steps.len() - begin);
        };
        let by = begin - made.start;
        for at in made.clone() {
            let step = match &self.steps[at] {
                Step::One(ranges) => Step::One(Arc::clone(ranges)),
                Step::Fork(rather, or) => Step::Fork(rather + by, or + by),
                Step::Jump(to) => Step::Jump(to + by),
                Step::Look(look) => Step::Look(*look),
                Step::Done => Step::Done,
            };
            self.push(step)?;
        }
        Some(made.len())
    }

    /// Either on from here, or to what comes next.
    fn fork(&mut self, fork: usize, greedy: bool) {
        let next = self.steps.len();
        self.steps[fork] = if greedy {
            Step::Fork(fork + 1, next)
        } else {
            Step::Fork(next, fork + 1)
        };
    }
}

/// A class of the library as ranges of characters.
fn ranges(class: &Class) -> Option<Ranges> {
    Some(match class {
        Class::Unicode(class) => class
            .iter()
            .map(|range| (range.start(), range.end()))
            .collect(),
        Class::Bytes(class) => {
            let characters = class.iter().map(|range| (range.start(), range.end()));
            let ascii = |(start, end): (u8, u8)| {
                end.is_ascii()
                    .then_some((char::from(start), char::from(end)))
            };
            characters.map(ascii).collect::<Option<_>>()?
        }
    })
}

// === impl Run ===

impl Run<'_> {
    /// Goes on from each thread to where a character is awaited, and begins a new one if asked to.
    fn advance_into(&mut self, place: usize, around: Around, begin: bool) {
        let threads = std::mem::take(&mut self.threads);
        for (at, start) in threads {
            self.go(at, start, place, around);
        }
        if begin {
            self.go(0, place, place, around);
        }
    }

    fn go(&mut self, at: usize, start: usize, place: usize, around: Around) {
        self.stack.push(at);
        while let Some(at) = self.stack.pop() {
            if self.seen[at] == place {
                continue;
            }
            self.seen[at] = place;
            match &self.machine.steps[at] {
                Step::One(_) | Step::Done => self.threads.push((at, start)),
                Step::Jump(to) => self.stack.push(*to),
                Step::Fork(rather, or) => self.stack.extend([*or, *rather]),
                Step::Look(look) => {
                    if around.holds(*look) {
                        self.stack.push(at + 1);
                    }
                }
            }
        }
    }

    /// Where the most preferred match began. Threads that are preferred less end.
    fn finished(&mut self) -> Option<usize> {
        let steps = &self.machine.steps;
        let mut threads = self.threads.iter();
        let index = threads.position(|(at, _)| matches!(steps[*at], Step::Done))?;
        let (_, start) = self.threads[index];
        self.threads.truncate(index);
        Some(start)
    }

    /// Keeps the threads that this character lets on.
    fn take(&mut self, c: char) {
        let steps = &self.machine.steps;
        self.threads.retain_mut(|(at, _)| match &steps[*at] {
            Step::One(ranges) if within(ranges, c) => {
                *at += 1;
                true
            }
            Step::One(_) | Step::Fork(..) | Step::Jump(_) | Step::Look(_) | Step::Done => false,
        });
    }
}

fn within(ranges: &[(char, char)], c: char) -> bool {
    let after = ranges.partition_point(|(start, _)| *start <= c);
    after
        .checked_sub(1)
        .is_some_and(|index| c <= ranges[index].1)
}

// === impl Around ===

impl Around {
    /// Whether what a pattern says of a place holds here. A translated pattern has no others.
    fn holds(self, look: Look) -> bool {
        let Self { before, after } = self;
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let at_boundary = is_word(before) != is_word(after);
        let breaks = |c: Option<char>| c.is_none_or(|c| c == '\n');
        match look {
            Look::Start => before.is_none(),
            Look::End => after.is_none(),
            Look::StartLF => breaks(before),
            Look::EndLF => breaks(after),
            Look::WordAscii => at_boundary,
            Look::WordAsciiNegate => !at_boundary,
            Look::StartCRLF
            | Look::EndCRLF
            | Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartAscii
            | Look::WordEndAscii
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfAscii
            | Look::WordEndHalfAscii
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode => false,
        }
    }
}
