//! Sets of numbers, as a job's status writes them: `0,2-4`.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// The parts of a job's work that are done or in hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<i64>);

// === impl Indexes ===

impl Indexes {
    /// Those below a limit; what cannot be read is left out.
    pub(super) fn parse(text: &str, limit: i64) -> Self {
        let mut found = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
                found.extend(first.max(0)..=last.min(limit - 1));
            }
        }
        Self(found)
    }

    pub(super) fn extend(&mut self, indexes: impl IntoIterator<Item = i64>) {
        self.0.extend(indexes);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The numbers below a limit that are not among them.
    pub(super) fn free(&self, limit: i64) -> impl Iterator<Item = i64> {
        (0..limit).filter(|index| !self.0.contains(index))
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(i64, i64)> = Vec::new();
        for index in &self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == *index => *last = *index,
                Some(_) | None => runs.push((*index, *index)),
            }
        }
        for (place, (first, last)) in runs.into_iter().enumerate() {
            if place > 0 {
                f.write_char(',')?;
            }
            match last - first {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for text in ["", "0", "0,1", "0-2", "0,2-4,7,8"] {
            assert_eq!(Indexes::parse(text, 10).to_string(), text);
        }
        assert_eq!(Indexes::parse("0-999999999999,x", 3).to_string(), "0-2");
        let free: Vec<i64> = Indexes::parse("1-3", 9).free(6).collect();
        assert_eq!(free, [0, 4, 5]);
    }
}
