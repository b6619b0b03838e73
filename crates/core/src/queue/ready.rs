//! Who runs next.

use super::Priority;
use super::paged::Paged;
use crate::time::Time;
use std::time::Duration;

/// No slot: the end of a lane.
const END: u32 = u32::MAX;

/// The slots that are ready, in two lanes, one per priority, each first in, first out.
///
/// Of the two heads, the one that is ready for longer goes first, where a low one counts as ready
/// only when `ageing` has passed. So no slot is overtaken by one that became ready later, except
/// that normal ones overtake low ones that became ready less than `ageing` before.
///
/// The lanes are lists that run through an array by slot: a slot can leave a lane from the middle
/// and leaves nothing behind. All operations take O(1).
#[derive(Clone, Debug)]
pub(super) struct Ready {
    ageing: Duration,
    normal: Lane,
    low: Lane,
    nodes: Paged<Node>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    after: u32,
    since: Time,
}

impl Ready {
    pub(super) fn new(ageing: Duration) -> Self {
        let empty = Lane {
            head: END,
            tail: END,
        };
        Self {
            ageing,
            normal: empty,
            low: empty,
            nodes: Paged::default(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Since when `slot`, which is in a lane, has been ready.
    pub(super) fn since(&self, slot: u32) -> Time {
        self.nodes[slot].since
    }

    /// Since when the longest waiting slot has been ready.
    ///
    /// A slot that was raised stands behind others which became ready after it, so this can be too
    /// late by less than `ageing`.
    pub(super) fn oldest(&self) -> Option<Time> {
        let heads = [self.normal.head, self.low.head];
        heads
            .into_iter()
            .filter(|&head| head != END)
            .map(|head| self.since(head))
            .min()
    }

    /// The slot to run next.
    pub(super) fn front(&self) -> Option<u32> {
        match (self.normal.head, self.low.head) {
            (END, END) => None,
            (END, low) => Some(low),
            (normal, END) => Some(normal),
            (normal, low) if self.since(normal) <= self.since(low) + self.ageing => Some(normal),
            (_, low) => Some(low),
        }
    }

    /// Puts `slot`, which is in no lane, at the end of a lane. Calls have to come in order of time.
    pub(super) fn push(&mut self, slot: u32, priority: Priority, since: Time) {
        let node = Node {
            before: END,
            after: END,
            since,
        };
        *self.nodes.reach(slot, || node) = node;
        self.append(slot, priority);
        self.len += 1;
    }

    /// Moves `slot` from the low lane to the end of the normal one, unless its age has already
    /// brought it further. True if it was moved.
    ///
    /// Among normal slots it counts from now on, as anything that becomes ready now does. One that
    /// has aged already goes before all of those, so moving it would set it back.
    pub(super) fn raise(&mut self, slot: u32, now: Time) -> bool {
        let aged = self.since(slot) + self.ageing <= now;
        if !aged {
            self.unlink(slot, Priority::Low);
            self.append(slot, Priority::Normal);
        }
        !aged
    }

    /// Gives back the memory for a page of slots, none of which is in a lane.
    pub(super) fn give_back(&mut self, page: u32) {
        self.nodes.give_back(page);
    }

    /// Takes `slot` out of the lane that it is in.
    pub(super) fn remove(&mut self, slot: u32, priority: Priority) {
        self.unlink(slot, priority);
        self.len -= 1;
    }

    fn append(&mut self, slot: u32, priority: Priority) {
        let lane = self.lane(priority);
        let before = std::mem::replace(&mut lane.tail, slot);
        if before == END {
            lane.head = slot;
        } else {
            self.nodes[before].after = slot;
        }
        let node = &mut self.nodes[slot];
        (node.before, node.after) = (before, END);
    }

    fn unlink(&mut self, slot: u32, priority: Priority) {
        let Node {
            before,
            after,
            since: _,
        } = self.nodes[slot];
        if before == END {
            debug_assert_eq!(
                self.lane(priority).head,
                slot,
                "the slot is in another lane"
            );
            self.lane(priority).head = after;
        } else {
            self.nodes[before].after = after;
        }
        if after == END {
            debug_assert_eq!(
                self.lane(priority).tail,
                slot,
                "the slot is in another lane"
            );
            self.lane(priority).tail = before;
        } else {
            self.nodes[after].before = before;
        }
    }

    fn lane(&mut self, priority: Priority) -> &mut Lane {
        match priority {
            Priority::Normal => &mut self.normal,
            Priority::Low => &mut self.low,
        }
    }
}
