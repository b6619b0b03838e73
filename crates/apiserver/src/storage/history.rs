use std::cell::RefCell;
use std::collections::VecDeque;
use std::collections::vec_deque::Iter;
use std::sync::Arc;

use tokio::sync::watch;

use super::stored::WeakObject;
use super::{Key, Object, Text};

/// One write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) kind: ChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// What was asked for is no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest revision that is.
    pub(crate) oldest: u64,
}

/// What an object was from a revision on.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) revision: u64,
    /// What is held is then the last state.
    pub(super) removed: bool,
    pub(super) held: Held,
}

/// A state, as it is kept.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) text: Text,
    /// The same, as long as somebody uses it.
    pub(super) object: RefCell<WeakObject>,
}

/// The changes to one resource, and who waits for them.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) changes: VecDeque<Arc<Change>>,
    newest: watch::Sender<u64>,
}

// === impl Held ===

impl Held {
    pub(super) fn of(object: &Object) -> Self {
        Self {
            text: object.text().clone(),
            object: RefCell::new(object.downgrade()),
        }
    }
}

/// The version that was there at a revision.
pub(super) fn version_at(versions: &[Version], revision: u64) -> Option<&Version> {
    versions
        .iter()
        .rev()
        .find(|version| version.revision <= revision)
}

// === impl Feed ===

impl Default for Feed {
    fn default() -> Self {
        Self {
            changes: VecDeque::new(),
            newest: watch::Sender::new(0),
        }
    }
}

impl Feed {
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    pub(super) fn push(&mut self, change: Arc<Change>) {
        self.newest.send_replace(change.revision);
        self.changes.push_back(change);
    }
}

/// The changes after a revision, oldest first.
pub(super) fn after(changes: &VecDeque<Arc<Change>>, revision: u64) -> Iter<'_, Arc<Change>> {
    changes.range(changes.partition_point(|change| change.revision <= revision)..)
}
