//! When which slot is due.

use super::paged::Paged;
use super::segmented::Segmented;
use crate::time::Time;

/// Children per node. Four of them fill one cache line, and the tree is half as deep as with two.
const ARITY: usize = 4;

/// The position of a slot that has no timer.
const ABSENT: u32 = u32::MAX;

/// At most one timer per slot, in the order of time, and in the order of setting within a moment.
///
/// A heap that knows where each slot's timer is, so that moving or cancelling a timer takes it out
/// at once: there are never more entries than slots with a timer. All operations take O(log n).
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    heap: Segmented<Entry>,
    /// Where in the heap the timer of a slot is, by slot. Apart from the slots themselves, so that
    /// moving entries around stays within a small piece of memory.
    positions: Paged<u32>,
    /// Counts the settings. It wraps around, which can only swap timers of the same moment.
    sequence: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    sequence: u32,
    slot: u32,
}

impl Timers {
    /// The time of the timer that comes first.
    pub(super) fn first(&self) -> Option<Time> {
        self.heap.first().map(|entry| entry.at)
    }

    /// Sets the timer of `slot`, in place of the one that it may have.
    pub(super) fn set(&mut self, slot: u32, at: Time) {
        let entry = Entry {
            at,
            sequence: self.sequence,
            slot,
        };
        self.sequence = self.sequence.wrapping_add(1);

        let position = *self.positions.reach(slot, || ABSENT);
        if position == ABSENT {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1, entry);
        } else {
            self.settle(position as usize, entry);
        }
    }

    /// Removes the timer of `slot`, if it has one.
    pub(super) fn cancel(&mut self, slot: u32) {
        let Some(position) = self.positions.get_mut(slot) else {
            return;
        };
        let position = std::mem::replace(position, ABSENT);
        if position != ABSENT {
            self.remove(position as usize);
        }
    }

    /// Gives back the memory for a page of slots, none of which has a timer.
    pub(super) fn give_back(&mut self, page: u32) {
        self.positions.give_back(page);
    }

    /// Takes the timer that comes first, if its time is not after `now`.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(u32, Time)> {
        let &Entry {
            at,
            slot,
            sequence: _,
        } = self.heap.first()?;
        if at > now {
            return None;
        }
        self.positions[slot] = ABSENT;
        self.remove(0);
        Some((slot, at))
    }

    /// Fills the gap at `position`.
    fn remove(&mut self, position: usize) {
        let Some(last) = self.heap.pop() else { return };
        if position < self.heap.len() {
            self.settle(position, last);
        }
    }

    /// Puts `entry` where it belongs, starting from the gap at `position`.
    fn settle(&mut self, position: usize, entry: Entry) {
        if position > 0 && entry < self.heap[(position - 1) / ARITY] {
            self.rise(position, entry);
        } else {
            self.sink(position, entry);
        }
    }

    /// Moves the gap at `position` up until `entry` fits in.
    fn rise(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if self.heap[parent] < entry {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, entry);
    }

    /// Moves the gap at `position` down until `entry` fits in.
    fn sink(&mut self, mut position: usize, entry: Entry) {
        loop {
            let children = position * ARITY + 1;
            let end = (children + ARITY).min(self.heap.len());
            let Some(least) = (children..end).min_by_key(|&child| self.heap[child]) else {
                break;
            };
            if entry < self.heap[least] {
                break;
            }
            self.put(position, self.heap[least]);
            position = least;
        }
        self.put(position, entry);
    }

    fn put(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.positions[entry.slot] = position_number(position);
    }
}

/// A heap position as it is stored. There are fewer entries than slots, whose numbers are `u32`.
fn position_number(position: usize) -> u32 {
    u32::try_from(position).expect("a heap has no more entries than there are slots")
}

#[cfg(test)]
mod tests {
    use super::{ABSENT, Timers};
    use crate::time::Time;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl Timers {
        #[track_caller]
        fn assert_consistent(&self) {
            for (position, entry) in self.heap.iter().enumerate() {
                assert_eq!(self.positions[entry.slot] as usize, position);
                assert!(position == 0 || self.heap[(position - 1) / super::ARITY] < *entry);
            }
            let present = self
                .positions
                .iter()
                .filter(|&(_, &position)| position != ABSENT)
                .count();
            assert_eq!(present, self.heap.len());
        }
    }

    proptest! {
        /// Against a sorted map: same order, and no entry for what was cancelled or moved.
        #[test]
        fn behaves_like_a_sorted_map(
            steps in prop::collection::vec((0_u8..4, 0_u32..40, 0_u64..60), 1..300),
        ) {
            let mut timers = Timers::default();
            let mut model: BTreeMap<(u64, usize), u32> = BTreeMap::new();
            for (number, (step, slot, time)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        model.retain(|_, other| *other != slot);
                        model.insert((time, number), slot);
                        timers.set(slot, Time::from_nanos(time));
                    }
                    2 => {
                        model.retain(|_, other| *other != slot);
                        timers.cancel(slot);
                    }
                    _ => {
                        let due = model.first_key_value().filter(|((at, _), _)| *at <= time);
                        let due = due.map(|((at, _), slot)| (*slot, Time::from_nanos(*at)));
                        if due.is_some() {
                            model.pop_first();
                        }
                        prop_assert_eq!(timers.pop_due(Time::from_nanos(time)), due);
                    }
                }
                timers.assert_consistent();
                prop_assert_eq!(timers.heap.len(), model.len());
                let first = model.keys().next().map(|(at, _)| Time::from_nanos(*at));
                prop_assert_eq!(timers.first(), first);
            }
        }
    }
}
