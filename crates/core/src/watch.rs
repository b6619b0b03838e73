//! The list+watch protocol of Kubernetes, decided in values (rules R10 to R13).
//!
//! A [`Machine`] follows one collection of objects. It says what to do next ([`Machine::action`]),
//! is told what came of it ([`Machine::on`]), and answers with what that means for whoever follows
//! the collection: a sequence of [`Output`]s in which
//!
//! - an initial list is `Init`, any number of `InitApply`, `InitDone`, and a list that broke off
//!   begins anew with another `Init`;
//! - after `InitDone` each change is one `Apply` or `Delete`;
//! - a map kept by these rules equals the server's objects whenever the watch has caught up: no
//!   object is missing and none stays that is gone.
//!
//! The machine never sees an object: those stay with the driver, and an output says what becomes of
//! the one that its input was about. It has no clock, no source of chance and no end: whatever
//! fails is tried again, more and more slowly.
//!
//! ```text
//! state      asks for           goes on to
//! Unlisted   a streaming list   Streaming; Paging where the server does not stream lists. A machine
//!                               that is told never to stream begins in Paging
//! Streaming  (reads)            Watching when the list is complete; Unlisted when it breaks off;
//!                               Paging when it never ends
//! Paging     a page             Paging, and Listed after the last one
//! Listed     a watch            Watching; Unlisted or Paging when the version is too old
//! Watching   (reads)            Listed when the watch ends; as there when the version is too old
//! ```

mod machine;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

pub use self::machine::Machine;

use crate::backoff::Backoff;
use crate::time::Time;
use std::time::Duration;

/// What a [`Machine`] may ask of the server, and how patient it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Objects in a page of a list; `None`: the whole list in one answer.
    ///
    /// 500 by default, as in client-go: some megabytes for usual objects.
    pub page_size: Option<u32>,
    /// Whether a list may come out of the server's cache, at any version, which spares its
    /// database. Off by default: such a list can be older than what was seen before a restart.
    ///
    /// A server ignores the page size of such a list, so none is sent; pages that it sends
    /// nevertheless are followed. A list that replaces an earlier one is asked to be no older.
    pub any_version: bool,
    /// When the initial list is streamed.
    pub streaming: Streaming,
    /// Whether the server may send bookmarks. On by default: they keep the version of a quiet watch
    /// young. A streaming list ends with a bookmark, so without them nothing is streamed.
    pub bookmarks: bool,
    /// After how long the server is asked to end a watch; 290 s by default, below the five minutes
    /// after which many load balancers drop a connection.
    pub watch_timeout: Duration,
    /// How much longer than `watch_timeout` a watch may be silent before it counts as dead; 5 s by
    /// default, for the server's answer to arrive.
    pub idle_margin: Duration,
    /// How long a list may take to begin, and then to go on; 70 s by default: a server itself gives
    /// up after 60 s.
    pub list_timeout: Duration,
    /// How long a watch may take to begin; 30 s by default, as long as it takes to connect at most.
    /// A server answers at once.
    pub start_timeout: Duration,
    /// How long a streaming list may be silent; 10 s by default, and a server that knows it takes
    /// at most 3 s to get up to date. One that does not know it sends all objects and falls silent.
    pub streaming_idle: Duration,
    /// Below which age a watch that ended without an event was of no use; 1 s by default.
    pub short_watch: Duration,
    /// After how long of watching without trouble the next failure counts as the first; 30 s by
    /// default, the longest delay without chance: then a source works for longer than it waits.
    pub healthy: Duration,
    /// The delay after each failure in a row; from 800 ms, doubling, to 30 s, and up to half of
    /// that by chance, so that not all watches of a cluster come back at the same moment.
    pub backoff: Backoff,
    /// The longest delay that a server can ask for (`Retry-After`); 5 min by default. More than that
    /// is more likely a mistake than a wish.
    pub longest_retry_after: Duration,
}

/// When an initial list is streamed (`sendInitialEvents`) and when it comes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
    /// Streamed, until the server turns out not to do it; then always in pages.
    Auto,
    /// Tried for each initial list; where the server does not do it, that one comes in pages.
    Always,
    /// Always in pages.
    Never,
}

/// What to do next. Each action is answered by one [`Input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for a list or its next page. Answer: `Page` or `Failed`.
    List {
        /// The page size to ask for.
        limit: Option<u32>,
        /// The page to go on with. The version must not be sent together with it.
        continue_token: Option<String>,
        /// The list must not be older than this (`resourceVersionMatch=NotOlderThan`; `0` means any
        /// version); `None`: the most recent state.
        resource_version: Option<String>,
        /// How long the answer may take to begin, and then to go on.
        timeout: Duration,
    },
    /// Ask for a watch. Answer: `Opened` or `Failed`.
    Watch {
        /// Events after this version; with `send_initial_events` the state at this version or a
        /// later one, where `0` means any and nothing means the most recent one.
        resource_version: String,
        /// Whether the watch begins with the state of the collection.
        send_initial_events: bool,
        /// Whether the server may send bookmarks.
        bookmarks: bool,
        /// After how long the server is to end the watch.
        timeout: Duration,
        /// How long the watch may take to begin.
        start_timeout: Duration,
    },
    /// Read the open watch. Answer: `Event`, `Bookmark`, `Closed` or `Failed`; the latter with
    /// [`Fault::Silent`] when nothing has come until the deadline.
    Read {
        /// When an open watch counts as dead.
        deadline: Time,
    },
    /// Do nothing. Answer: `Awake`.
    Sleep {
        /// When to go on.
        until: Time,
    },
}

/// What came of an [`Action`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A list or a page of it arrived.
    Page {
        /// The version of the list.
        version: &'a str,
        /// What to ask the next page with; `None`: this was the last.
        continue_token: Option<&'a str>,
    },
    /// The server accepted the watch.
    Opened,
    /// An object came on the watch. Whether it could be decoded makes no difference.
    Event {
        /// What became of the object.
        change: Change,
        /// The object's version.
        version: &'a str,
    },
    /// A bookmark came on the watch.
    Bookmark {
        /// The version up to which there are no further events.
        version: &'a str,
        /// Whether it ends the initial events.
        initial_events_end: bool,
    },
    /// The watch came to its end.
    Closed,
    /// The action failed.
    Failed(Fault),
    /// The time of a sleep is over.
    Awake,
}

/// What an event says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was added or modified.
    Applied,
    /// It was deleted.
    Deleted,
}

/// The kinds of failure that the protocol tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server does not take such a request (400, 405 or 422).
    Refused,
    /// The request is not allowed (403).
    Forbidden,
    /// The server does not serve such a request (404).
    Missing,
    /// The server cannot go on from the version or page that it was asked for: it no longer knows
    /// it (410), or does not know it yet, as after a restore from a backup.
    Expired,
    /// No answer, or nothing more of it, came in time.
    Silent,
    /// Anything else: no connection, another status, an answer that makes no sense.
    Other {
        /// How long the server asks to be left alone. The delay is at least that.
        retry_after: Option<Duration>,
    },
}

/// What an input means for whoever follows the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A list begins; one that was under way is void.
    Init,
    /// The objects of the page are part of the list: an `InitApply` for each.
    Objects,
    /// The object is part of the list.
    InitApply,
    /// The list is complete. After this come the deletes of the objects held back.
    InitDone,
    /// The object was added or modified.
    Apply,
    /// The object was deleted.
    Delete,
    /// The object was deleted while the list was under way, after the list mentioned it. A follower
    /// who collects the list has no way to take it out again, so the delete is to be held back
    /// until `InitDone`, and forgotten if the object appears once more, or with the list.
    Hold,
    /// The failure is for the follower to know.
    Report(Phase),
}

/// What a source was doing when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was getting the initial list, in pages or as a stream.
    List,
    /// It was asking for a watch from a known version.
    WatchStart,
    /// It was reading a watch.
    Watch,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        let backoff = Backoff::exponential(Duration::from_millis(800), Duration::from_secs(30));
        Self {
            page_size: Some(500),
            any_version: false,
            streaming: Streaming::Auto,
            bookmarks: true,
            watch_timeout: Duration::from_secs(290),
            idle_margin: Duration::from_secs(5),
            list_timeout: Duration::from_secs(70),
            start_timeout: Duration::from_secs(30),
            streaming_idle: Duration::from_secs(10),
            short_watch: Duration::from_secs(1),
            healthy: Duration::from_secs(30),
            backoff: backoff.jitter(0.5),
            longest_retry_after: Duration::from_secs(300),
        }
    }
}

// === impl Fault ===

impl Fault {
    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Other { retry_after } => retry_after,
            Self::Refused | Self::Forbidden | Self::Missing | Self::Expired | Self::Silent => None,
        }
    }
}
