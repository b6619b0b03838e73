//! What waits for a follower, in little memory.

use super::super::{
    reason::ReconcileReason,
    source::{Happened, Signal},
};
use crate::reflector::ObjectKey;
use homeostat_core::queue::Priority;
use std::{collections::VecDeque, iter, mem};

/// For how many letters there is room when none waits.
const KEPT: usize = 256;

/// Letters in their order. Signals that follow each other and differ in their object only, as those for a list do, take
/// no more room than the names of the objects.
#[derive(Default)]
pub(super) struct Pile {
    letters: VecDeque<Heap>,
    len: usize,
}

pub(super) enum Letter {
    Signal(Signal),
    /// All up to this version was told before.
    Reached(u64),
}

enum Heap {
    Other(Letter),
    /// Triggers of at least one object.
    Triggers {
        template: Template,
        next: ObjectKey,
        later: VecDeque<ObjectKey>,
    },
}

/// All of a trigger but its object.
#[derive(Clone, PartialEq, Eq)]
struct Template {
    reason: ReconcileReason,
    priority: Priority,
    event: Option<Happened>,
}

// === impl Pile ===

impl Pile {
    /// How many letters wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, letter: Letter) {
        self.len += 1;
        let Letter::Signal(Signal::Trigger {
            key,
            reason,
            priority,
            event,
        }) = letter
        else {
            self.letters.push_back(Heap::Other(letter));
            return;
        };
        let now = Template {
            reason,
            priority,
            event,
        };
        match self.letters.back_mut() {
            Some(Heap::Triggers {
                template, later, ..
            }) if *template == now => later.push_back(key),
            Some(_) | None => self.letters.push_back(Heap::Triggers {
                template: now,
                next: key,
                later: VecDeque::new(),
            }),
        }
    }

    /// Notes that all up to this version was told before.
    pub(super) fn reached(&mut self, version: u64) {
        if let Some(Heap::Other(Letter::Reached(last))) = self.letters.back_mut() {
            *last = version;
        } else {
            self.push(Letter::Reached(version));
        }
    }

    pub(super) fn pop(&mut self) -> Option<Letter> {
        if let Some(Heap::Triggers {
            template,
            next,
            later,
        }) = self.letters.front_mut()
            && let Some(after) = later.pop_front()
        {
            self.len -= 1;
            let key = mem::replace(next, after);
            return Some(template.clone().of(key));
        }
        let Some(heap) = self.letters.pop_front() else {
            // The room for many is not needed again soon.
            if self.letters.capacity() > KEPT {
                self.letters = VecDeque::new();
            }
            return None;
        };
        self.len -= 1;
        Some(match heap {
            Heap::Other(letter) => letter,
            Heap::Triggers { template, next, .. } => template.of(next),
        })
    }

    /// Puts all letters of another pile behind these.
    pub(super) fn append(&mut self, mut other: Self) {
        if self.len == 0 {
            *self = other;
            return;
        }
        self.extend(other.take());
    }

    /// All letters; none is left.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Letter> + use<> {
        let mut all = mem::take(self);
        iter::from_fn(move || all.pop())
    }
}

// === impl Template ===

impl Template {
    fn of(self, key: ObjectKey) -> Letter {
        let Self {
            reason,
            priority,
            event,
        } = self;
        Letter::Signal(Signal::Trigger {
            key,
            reason,
            priority,
            event,
        })
    }
}

impl Extend<Letter> for Pile {
    fn extend<T: IntoIterator<Item = Letter>>(&mut self, letters: T) {
        for letter in letters {
            self.push(letter);
        }
    }
}

impl FromIterator<Letter> for Pile {
    fn from_iter<T: IntoIterator<Item = Letter>>(letters: T) -> Self {
        let mut pile = Self::default();
        pile.extend(letters);
        if let Some(Heap::Triggers { later, .. }) = pile.letters.back_mut() {
            later.shrink_to_fit();
        }
        pile
    }
}

#[cfg(test)]
mod tests {
    use super::{Heap, Letter, Pile};
    use crate::{
        controller::{
            ReconcileReason,
            reason::News,
            source::{EventVersion, Happened, Signal},
        },
        reflector::ObjectKey,
    };
    use homeostat_core::queue::Priority;

    fn key(number: u32) -> ObjectKey {
        ObjectKey::new(Some("default"), &format!("site-{number}"))
    }

    fn letters() -> impl Iterator<Item = Letter> {
        let trigger = |number: u32| {
            let listed = number % 100 != 7;
            Letter::Signal(Signal::Trigger {
                key: key(number),
                reason: ReconcileReason::ObjectUpdated,
                priority: Priority::Low,
                event: Some(Happened {
                    desired: true,
                    version: if listed {
                        EventVersion::Unknown
                    } else {
                        EventVersion::Step(number.into())
                    },
                    news: News::Listed,
                }),
            })
        };
        (0..1000).map(move |number| match number {
            500 => Letter::Signal(Signal::Gone(key(number))),
            501 => Letter::Reached(9),
            number => trigger(number),
        })
    }

    fn text(letter: &Letter) -> String {
        match letter {
            Letter::Signal(signal) => format!("{signal:?}"),
            Letter::Reached(version) => format!("reached {version}"),
        }
    }

    /// Whatever is alike comes out as it was put in, with other letters before, between and after.
    #[test]
    fn the_order_stays_and_what_is_alike_takes_little() {
        let mut pile: Pile = letters().collect();
        assert_eq!(pile.len(), 1000);
        // Two for each hundred, and a few around 500.
        assert!(pile.letters.len() < 30, "{}", pile.letters.len());
        assert!(
            pile.letters
                .iter()
                .any(|heap| matches!(heap, Heap::Other(_)))
        );
        for (number, expected) in letters().enumerate() {
            assert_eq!(pile.len(), 1000 - number);
            let letter = pile.pop();
            assert_eq!(letter.as_ref().map(text), Some(text(&expected)));
        }
        assert!(pile.pop().is_none());
        assert_eq!(pile.len(), 0);
        let mut pile: Pile = letters().collect();
        let taken: Vec<_> = pile.take().map(|letter| text(&letter)).collect();
        assert!(taken.into_iter().eq(letters().map(|letter| text(&letter))));
        assert!(pile.pop().is_none());
    }
}
