//! Regular expressions by the rules of Go, which servers use: read here, and written again so that
//! the library at hand understands the same by them.

mod class;
mod fault;
mod machine;
mod reader;
#[cfg(test)]
mod tests;
mod unicode;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicodeRange, Hir, HirKind, Repetition};

use self::machine::Machine;
use crate::stack::with_large_stack;

/// What the library may compile, in states as [`states`] estimates them: a millisecond's work. A pattern that needs
/// more is matched step by step. That is slower for each text, but there is next to nothing to compile.
const MAX_STATES: usize = 10_000;

/// What a compiled pattern may take, for those whose estimate is too low.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;

/// The library's limit to nesting. Go's is 1000 levels.
const MAX_NESTING: u32 = 4000;

/// Deeper patterns need more stack than a thread of a server has.
const DEEP: usize = 100;

/// So many patterns are kept compiled for one definition.
const MAX_KEPT: usize = 2000;

/// A regular expression. It is compiled when it is first used.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// As the library reads it.
    translated: String,
    height: usize,
    compiled: OnceLock<Compiled>,
}

#[derive(Debug)]
enum Compiled {
    Regex(Regex),
    Machine(Machine),
    /// It is too large for both, and matches everything.
    Neither,
}

/// The patterns of one definition, each compiled once.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    known: Mutex<BTreeMap<String, Arc<Pattern>>>,
}

// === impl Pattern ===

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in the words of Go.
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        let (translated, height) = reader::translate(source)?;
        Ok(Self {
            translated,
            height,
            compiled: OnceLock::new(),
        })
    }

    /// Whether it matches some part of a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        match self.compiled() {
            Compiled::Regex(regex) => regex.is_match(text),
            Compiled::Machine(machine) => machine.is_match(text),
            Compiled::Neither => true,
        }
    }

    /// The first part of a text that it matches.
    pub(crate) fn find<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.find_all(text, 1).pop()
    }

    /// The parts that it matches, at most so many.
    pub(crate) fn find_all<'a>(&self, text: &'a str, most: usize) -> Vec<&'a str> {
        match self.compiled() {
            Compiled::Regex(regex) => {
                let found = regex.find_iter(text).map(|found| found.as_str());
                found.take(most).collect()
            }
            Compiled::Machine(machine) => machine.find_all(text, most),
            Compiled::Neither => Vec::new(),
        }
    }

    fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            if self.height > DEEP {
                with_large_stack(|| self.compile()).unwrap_or(Compiled::Neither)
            } else {
                self.compile()
            }
        })
    }

    fn compile(&self) -> Compiled {
        let mut parser = ParserBuilder::new().nest_limit(MAX_NESTING).build();
        let Ok(pattern) = parser.parse(&self.translated) else {
            return Compiled::Neither;
        };
        let by_library = || {
            let mut builder = RegexBuilder::new(&self.translated);
            builder
                .size_limit(MAX_COMPILED_BYTES)
                .nest_limit(MAX_NESTING);
            builder.build().ok().map(Compiled::Regex)
        };
        let by_machine = || Machine::new(&pattern).map(Compiled::Machine);
        let compiled = if states(&pattern) <= MAX_STATES {
            by_library().or_else(by_machine)
        } else {
            by_machine()
        };
        compiled.unwrap_or(Compiled::Neither)
    }
}

/// How many states the library would make of a pattern, about. It makes those of what is repeated for each time anew,
/// and of a range of characters beyond ASCII several.
fn states(pattern: &Hir) -> usize {
    let sum = |parts: &[Hir]| parts.iter().map(states).fold(1, usize::saturating_add);
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Class(Class::Unicode(class)) => {
            let of = |range: &ClassUnicodeRange| if range.end().is_ascii() { 1 } else { 4 };
            class.iter().map(of).sum()
        }
        HirKind::Repetition(Repetition { min, max, sub, .. }) => {
            let times = max.unwrap_or((*min).max(1));
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            states(sub).saturating_add(1).saturating_mul(times)
        }
        HirKind::Capture(capture) => states(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

// === impl Patterns ===

impl Patterns {
    /// The pattern of this text.
    ///
    /// # Errors
    ///
    /// As for [`Pattern::new`].
    pub(crate) fn get(&self, source: &str) -> Result<Arc<Pattern>, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pattern) = known.get(source) {
            return Ok(Arc::clone(pattern));
        }
        let pattern = Arc::new(Pattern::new(source)?);
        if known.len() >= MAX_KEPT {
            known.clear();
        }
        known.insert(source.to_owned(), Arc::clone(&pattern));
        Ok(pattern)
    }
}
