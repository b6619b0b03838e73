//! What is known of a store, whatever its objects are.

use crate::{
    progress::Progress,
    watcher::{Heard, Origin},
};
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, watch};

/// Whether a store is complete, what fills it, and how far that has come.
pub(crate) struct Status {
    id: u64,
    group: String,
    /// The name of the kind of its objects in paths.
    plural: String,
    pub(super) progress: Progress,
    /// The same as in the condition, for those who ask at every read.
    ready: AtomicBool,
    condition: watch::Sender<Condition>,
    source: Mutex<Feed>,
    bells: Mutex<Vec<Weak<Bell>>>,
    /// Whether the log has told that it was read too early.
    told: AtomicBool,
}

/// How a store is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Whether the first list is complete.
    pub(crate) ready: bool,
    /// Whether its writer is gone, so that it stays as it is.
    pub(crate) closed: bool,
    /// Whether it has become a part of another store, so that nothing happens here any more.
    pub(crate) joined: bool,
    /// Why what fills it does not work at present.
    pub(crate) error: Option<Arc<str>>,
}

/// What fills a store.
#[derive(Debug, Clone)]
enum Feed {
    Unknown,
    Watch(Arc<Origin>),
    Several,
}

/// Rings when something about a store has changed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: AtomicBool,
    notify: Notify,
}

static IDS: AtomicU64 = AtomicU64::new(1);

// === impl Status ===

impl Status {
    pub(super) fn new(group: &str, plural: &str) -> Self {
        Self {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            group: group.to_owned(),
            plural: plural.to_owned(),
            progress: Progress::default(),
            ready: AtomicBool::new(false),
            condition: watch::Sender::default(),
            source: Mutex::new(Feed::Unknown),
            bells: Mutex::default(),
            told: AtomicBool::new(false),
        }
    }

    /// Tells this store from all others of the process. Never zero.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    pub(crate) fn plural(&self) -> &str {
        &self.plural
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(crate) fn condition(&self) -> Condition {
        self.condition.borrow().clone()
    }

    /// Whether it will never be complete.
    pub(crate) fn is_lost(&self) -> bool {
        let condition = self.condition.borrow();
        condition.closed && !condition.ready
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The watch that fills it, if it is one alone.
    pub(crate) fn origin(&self) -> Option<Arc<Origin>> {
        match &*self.feed() {
            Feed::Watch(origin) => Some(Arc::clone(origin)),
            Feed::Unknown | Feed::Several => None,
        }
    }

    /// Rings `bell` at each change from now on.
    pub(crate) fn ring(&self, bell: &Arc<Bell>) {
        let mut bells = self.bells();
        bells.retain(|other| other.strong_count() > 0);
        bells.push(Arc::downgrade(bell));
    }

    /// Waits until the store is in a condition like this.
    pub(super) async fn wait_for(&self, is_it: impl Fn(&Condition) -> bool) -> Condition {
        let mut condition = self.condition.subscribe();
        match condition.wait_for(is_it).await {
            Ok(condition) => condition.clone(),
            // The other end is `self`.
            Err(_) => self.condition(),
        }
    }

    /// Whether the log may tell that the store was read too early: once.
    pub(crate) fn tell_once(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }

    /// Takes in that a list is complete.
    pub(super) fn set_ready(&self) {
        if !self.ready.swap(true, Ordering::AcqRel) {
            self.change(|condition| condition.ready = true);
            self.tell();
        }
    }

    pub(super) fn close(&self) {
        if self.change(|condition| condition.closed = true) {
            self.tell();
        }
    }

    /// Takes in that the store has become a part of another one.
    pub(super) fn set_joined(&self) {
        if self.change(|condition| condition.joined = true) {
            self.tell();
        }
    }

    /// Takes in that what fills the store works, or why it does not.
    pub(super) fn set_error(&self, error: Option<Arc<str>>) {
        if self.change(|condition| condition.error = error) {
            self.tell();
        }
    }

    /// Takes in which watches a poll of what fills the store came to.
    pub(super) fn heard(&self, heard: Heard) {
        let mut feed = self.feed();
        let now = match (&*feed, heard) {
            (Feed::Unknown, Heard::One(origin)) => Feed::Watch(origin),
            (Feed::Watch(before), Heard::One(origin)) if !Arc::ptr_eq(before, &origin) => {
                Feed::Several
            }
            (Feed::Unknown | Feed::Watch(_), Heard::Several) => Feed::Several,
            (Feed::Unknown | Feed::Watch(_), Heard::Nothing | Heard::One(_))
            | (Feed::Several, _) => return,
        };
        *feed = now;
        drop(feed);
        self.tell();
    }

    /// Changes the condition, and returns whether it differs now.
    fn change(&self, change: impl FnOnce(&mut Condition)) -> bool {
        self.condition.send_if_modified(|condition| {
            let before = condition.clone();
            change(condition);
            before != *condition
        })
    }

    fn tell(&self) {
        for bell in self.bells().iter().filter_map(Weak::upgrade) {
            bell.ring();
        }
    }

    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bells(&self) -> MutexGuard<'_, Vec<Weak<Bell>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is in the store, for people: `secrets in all namespaces`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.feed() {
            Feed::Watch(origin) => write!(f, "{origin}"),
            Feed::Unknown | Feed::Several => {
                let dot = if self.group.is_empty() { "" } else { "." };
                write!(f, "{}{dot}{}", self.plural, self.group)
            }
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("id", &self.id)
            .field("store", &format_args!("{self}"))
            .field("condition", &*self.condition.borrow())
            .finish_non_exhaustive()
    }
}

// === impl Bell ===

impl Bell {
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Whether it has rung since it was last silenced.
    pub(crate) fn has_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    pub(crate) fn silence(&self) {
        self.rung.store(false, Ordering::Release);
    }

    /// Completes when it rings, or has rung since the last time.
    pub(crate) async fn heard(&self) {
        self.notify.notified().await;
    }
}
