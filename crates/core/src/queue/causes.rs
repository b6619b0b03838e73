//! Why a key runs.

use std::slice;

/// The causes that led to a run, each once, in the order in which they first came.
///
/// The first [`Causes::LIMIT`] different ones are kept, and what comes after them is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Causes<C> {
    /// Nearly always the only one, so it needs no memory of its own.
    first: Option<C>,
    rest: Option<Box<Rest<C>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rest<C> {
    kept: Vec<C>,
    omitted: u32,
}

impl<C> Causes<C> {
    /// How many different causes are kept. A message does not get clearer by naming more.
    pub const LIMIT: usize = 16;

    /// The causes that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        let rest: slice::Iter<'_, C> = match &self.rest {
            Some(rest) => rest.kept.iter(),
            None => [].iter(),
        };
        self.first.iter().chain(rest)
    }

    /// True if nothing has caused a run: it is a timer that leads to it, if anything does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// How many triggers came with a cause that is not kept, because there were too many.
    #[must_use]
    pub fn omitted(&self) -> u32 {
        self.rest.as_ref().map_or(0, |rest| rest.omitted)
    }
}

impl<C> Causes<C> {
    pub(super) fn new(cause: C) -> Self {
        Self {
            first: Some(cause),
            rest: None,
        }
    }
}

impl<C: Eq> Causes<C> {
    pub(super) fn add(&mut self, cause: C) {
        let Some(first) = &self.first else {
            self.first = Some(cause);
            return;
        };
        if *first == cause {
            return;
        }
        let rest = self.rest.get_or_insert_with(|| {
            Box::new(Rest {
                kept: Vec::new(),
                omitted: 0,
            })
        });
        if rest.kept.contains(&cause) {
            return;
        }
        if rest.kept.len() + 1 < Self::LIMIT {
            rest.kept.push(cause);
        } else {
            rest.omitted = rest.omitted.saturating_add(1);
        }
    }
}

impl<C> Default for Causes<C> {
    fn default() -> Self {
        Self {
            first: None,
            rest: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Causes;

    fn causes(list: impl IntoIterator<Item = u32>) -> Causes<u32> {
        let mut causes = Causes::default();
        for cause in list {
            causes.add(cause);
        }
        causes
    }

    #[test]
    fn equal_causes_are_kept_once_in_order() {
        assert!(causes([]).is_empty());
        let causes = causes([3, 1, 3, 2, 1, 2]);
        assert_eq!(causes.iter().copied().collect::<Vec<_>>(), [3, 1, 2]);
        assert_eq!(causes.omitted(), 0);
    }

    #[test]
    fn a_flood_is_counted_not_kept() {
        let causes = causes((0..20).chain(0..20));
        assert!(causes.iter().copied().eq(0..16));
        // Four that do not fit, twice.
        assert_eq!(causes.omitted(), 8);
    }
}
