//! Which controllers still run what has moved to other members.

use crate::term::Duty;
use homeostat_core::shard::{Share, hash};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

/// How long the first list waits for the group to be known. A cache that is not needed then is better than none.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the controllers of a member say of themselves.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Inner>);

#[derive(Default)]
struct Inner {
    entries: watch::Sender<BTreeMap<u64, Entry>>,
    next: AtomicU64,
    /// How many runs there are in all controllers.
    running: watch::Sender<usize>,
}

/// What one controller says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The share that it starts runs by.
    view: u64,
    /// How many runs there are that this share has not.
    moved: usize,
}

/// A controller's part of the ledger, and its view of the member's share.
#[derive(Clone)]
pub(crate) struct Account {
    ledger: Ledger,
    shares: watch::Receiver<Arc<Share>>,
    duty: watch::Receiver<Duty>,
    hand_over: Duration,
}

/// The share of a member, as it changes.
#[derive(Clone)]
pub(crate) struct Shares {
    shares: watch::Receiver<Arc<Share>>,
    duty: watch::Receiver<Duty>,
}

/// An account that was opened. It is closed when this is dropped.
pub(crate) struct Open {
    account: Account,
    number: u64,
    /// What runs are started by.
    share: Arc<Share>,
}

// === impl Ledger ===

impl Ledger {
    /// How many runs there are in all controllers.
    pub(super) fn running(&self) -> &watch::Sender<usize> {
        &self.0.running
    }

    /// Completes when all controllers start runs by the share with this view or a later one, and nothing runs besides.
    pub(super) async fn released(&self, view: u64) {
        let mut entries = self.0.entries.subscribe();
        let is_released = |entries: &BTreeMap<u64, Entry>| {
            let mut entries = entries.values();
            entries.all(|entry| entry.view >= view && entry.moved == 0)
        };
        // Its sender is here.
        let _gone = entries.wait_for(is_released).await;
    }

    /// Completes when nothing runs.
    pub(super) async fn idle(&self) {
        let mut running = self.0.running.subscribe();
        let _gone = running.wait_for(|running| *running == 0).await;
    }

    fn set(&self, number: u64, entry: Entry) {
        self.0
            .entries
            .send_if_modified(|entries| entries.insert(number, entry) != Some(entry));
    }
}

// === impl Account ===

impl Account {
    pub(super) fn new(
        ledger: Ledger,
        shares: watch::Receiver<Arc<Share>>,
        duty: watch::Receiver<Duty>,
        hand_over: Duration,
    ) -> Self {
        Self {
            ledger,
            shares,
            duty,
            hand_over,
        }
    }

    /// The member's share, as it changes.
    pub(crate) fn shares(&self) -> Shares {
        Shares {
            shares: self.shares.clone(),
            duty: self.duty.clone(),
        }
    }

    /// Enters one more controller.
    pub(crate) fn open(mut self) -> Open {
        let number = self.ledger.0.next.fetch_add(1, Ordering::Relaxed);
        let share = Arc::clone(&self.shares.borrow_and_update());
        let open = Open {
            account: self,
            number,
            share,
        };
        open.tell(0);
        open
    }
}

// === impl Shares ===

impl Shares {
    /// Waits until something is known of the group, but not for long.
    pub(crate) async fn known(&mut self) {
        let Self { shares, duty } = self;
        let known = async {
            tokio::select! {
                _ = shares.wait_for(|share| share.view() > 0) => {}
                _ = duty.wait_for(|duty| *duty == Duty::Work) => {}
            }
        };
        drop(timeout(PATIENCE, known).await);
    }

    /// The share as it is now.
    pub(crate) fn now(&mut self) -> Arc<Share> {
        Arc::clone(&self.shares.borrow_and_update())
    }

    /// Completes when it is another one than was last seen.
    pub(crate) async fn changed(&mut self) {
        if self.shares.changed().await.is_err() {
            // The member is gone, and its share stays as it is.
            std::future::pending::<()>().await;
        }
    }
}

// === impl Open ===

impl Open {
    /// Whether the object with this uid belongs to the share that runs are started by.
    pub(crate) fn owns(&self, uid: &str) -> bool {
        self.share.owns(hash(uid))
    }

    /// Completes when there is another share than the one that runs are started by.
    pub(crate) async fn changed(&mut self) {
        let view = self.share.view();
        let changed = self.account.shares.wait_for(|share| share.view() != view);
        if changed.await.is_err() {
            // The member is gone, and its term ends with it.
            std::future::pending::<()>().await;
        }
    }

    /// Takes up the share as it is now; returns the one before, if it is another one.
    pub(crate) fn take_up(&mut self) -> Option<Arc<Share>> {
        let now = Arc::clone(&self.account.shares.borrow_and_update());
        (now.view() != self.share.view()).then(|| std::mem::replace(&mut self.share, now))
    }

    /// Says how many runs there are that the share has not.
    pub(crate) fn tell(&self, moved: usize) {
        let view = self.share.view();
        let entry = Entry { view, moved };
        self.account.ledger.set(self.number, entry);
    }

    /// How long these may go on.
    pub(crate) fn hand_over(&self) -> Duration {
        self.account.hand_over
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let entries = &self.account.ledger.0.entries;
        entries.send_modify(|entries| {
            entries.remove(&self.number);
        });
    }
}
