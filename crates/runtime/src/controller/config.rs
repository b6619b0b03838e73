//! What a controller can be told.

use crate::{Backoff, Identity, RateLimit};
use homeostat_core::{loops, queue};
use std::time::Duration;

/// Limits and delays of a controller. Every one has a default that suits most.
///
/// ```
/// use homeostat::{Backoff, Config};
/// use std::time::Duration;
///
/// let config = Config::default()
///     .concurrency(8)
///     .backoff(Backoff::exponential(Duration::from_secs(1), Duration::from_secs(300)))
///     .reconcile_timeout(Duration::from_secs(60));
/// # let _ = config;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub(super) queue: queue::Config,
    pub(super) reconcile_timeout: Option<Duration>,
    pub(super) shutdown_timeout: Option<Duration>,
    pub(super) managed_fields: bool,
    pub(super) wait_for_writes: Duration,
    pub(super) ignore_own_writes: bool,
    pub(super) loops: Option<loops::Config>,
    /// In whose name runs write; the controller is told, and not this.
    pub(super) identity: Option<Identity>,
}

impl Config {
    /// How many objects are reconciled at once: 16 by default, 0 for any number.
    ///
    /// Bounded, because a restart reconciles all objects and would flood the API server.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u16) -> Self {
        self.queue = self.queue.concurrency(concurrency.into());
        self
    }

    /// How long an object must be quiet before it is reconciled; zero by default.
    ///
    /// Each further event puts the run off, but no longer than ten times this delay. Requeues that
    /// a reconcile asked for are not put off.
    #[must_use]
    pub fn debounce(mut self, debounce: Duration) -> Self {
        self.queue = self.queue.debounce(debounce);
        self
    }

    /// The delays of [`Action::backoff`](super::Action::backoff), for each object by itself: from
    /// 1 s doubling to 5 min by default, with up to 20 % added by chance.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.queue = self.queue.backoff(backoff);
        self
    }

    /// How soon after each other an object that failed may be reconciled early because related objects change: at
    /// once, then after 1 s, doubling up to 30 s, by default. A success starts this over.
    ///
    /// What the object waits for may be done at any moment, and a child that changes all the time must not undo
    /// the backoff. Requests and changes of the object's desired state are not spaced. No jitter is added.
    #[must_use]
    pub fn early(mut self, pauses: Backoff) -> Self {
        self.queue = self.queue.early(pauses);
        self
    }

    /// How many reconciles may start per second, for all objects together; unlimited by default.
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.queue = self.queue.rate_limit(limit);
        self
    }

    /// How long one reconcile may take; unlimited by default.
    ///
    /// A run that takes longer is dropped at its next `await`, and counts as an error of its object
    /// ([`Error::ReconcileTimeout`](super::Error::ReconcileTimeout)).
    #[must_use]
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.reconcile_timeout = Some(timeout);
        self
    }

    /// How long runs may go on once the controller was told to stop; as long as they take by default.
    ///
    /// What still runs then is dropped at its next `await`, and each such run is an item of the
    /// stream ([`Error::ReconcileCancelled`](super::Error::ReconcileCancelled)). In a cluster 25 s
    /// are a good value: a pod is killed 30 s after SIGTERM unless its
    /// `terminationGracePeriodSeconds` says something else, and then nobody learns what was cut off.
    #[must_use]
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = Some(timeout);
        self
    }

    /// Whether the controller's store keeps `metadata.managedFields`; not by default.
    ///
    /// They are often the larger half of an object, and few reconcilers read them.
    #[must_use]
    pub fn managed_fields(mut self, keep: bool) -> Self {
        self.managed_fields = keep;
        self
    }

    /// How long the next run of an object waits until the controller's caches have seen what the run
    /// before wrote: 5 s by default, zero for not at all.
    ///
    /// Without that a reconciler can read a cache as it was before its own write, and write once
    /// more: create a second child, say. The wait is over as soon as the caches are there, most often
    /// within milliseconds, and other objects do not wait. Only writes through a
    /// [tracked client](crate::client) are known, and these caches: the store of the controller's own kind, its
    /// watches of owned and related kinds, and the stores that its runs
    /// [read](crate::reflector::Store#in-reconcilers). Objects that a watch does not select are not waited for.
    ///
    /// Bounded, because a watch may be down: a run that reads too little is better than none. How often that
    /// happened is counted ([`Counts::overdue_waits`](super::Counts::overdue_waits)), and such a run is followed by
    /// another one when the caches have caught up.
    #[must_use]
    pub fn wait_for_writes(mut self, longest: Duration) -> Self {
        self.wait_for_writes = longest;
        self
    }

    /// What counts as a reconcile loop and how it is slowed down; `None` switches both off.
    ///
    /// A loop is an object that is reconciled again and again because of what its own reconciles
    /// write, or because somebody else takes that back. It is looked for by default, in what is written
    /// through a [tracked client](crate::client), and otherwise in when events come: see [`loops`](crate::loops).
    #[must_use]
    pub fn loops(mut self, loops: impl Into<Option<loops::Config>>) -> Self {
        self.loops = loops.into();
        self
    }

    /// Whether events that show nothing but what the object's own runs have written are dropped; not by
    /// default.
    ///
    /// Reconcilers that do one step per run count on the event of each step to go on. One that does
    /// all its steps in one run, or says with [`Action::requeue`](super::Action::requeue) when it
    /// wants to go on, saves itself a run per write with this. An event is dropped only if it shows
    /// one single change and that change is known to be the object's own, so that of others none is
    /// lost. A run that began before the caches had seen the own write is followed by another all the same,
    /// unless [`wait_for_writes`](Self::wait_for_writes) is zero.
    #[must_use]
    pub fn ignore_own_writes(mut self, ignore: bool) -> Self {
        self.ignore_own_writes = ignore;
        self
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queue: queue::Config::default(),
            reconcile_timeout: None,
            shutdown_timeout: None,
            managed_fields: false,
            wait_for_writes: Duration::from_secs(5),
            ignore_own_writes: false,
            loops: Some(loops::Config::default()),
            identity: None,
        }
    }
}
