//! Watches as streams of bytes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::Body;
use super::presentation::Presentation;
use super::table;
use crate::registry::{ListOptions, Registry, Target, blank_of, parse_version, present};
use crate::state::Core;
use crate::status::Status;
use crate::storage::{Change, ChangeKind, Object, Store};

/// How long before its end a watch says how far it has come, as kube-apiserver does.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Marks the bookmark behind the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Kinds that an empty object of counts no replicas, which is written.
const COUNTING: [&str; 4] = [
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
];

/// One watch.
struct Watch {
    core: Arc<Core>,
    target: Target,
    options: ListOptions,
    presentation: Presentation,
    /// When the server was last asked for changes.
    now: Timestamp,
    /// Whether an event was sent: of tables only the first says what the columns are.
    began: bool,
    /// Everything up to this revision was sent.
    revision: u64,
    /// The revision that the initial events have to have.
    awaited: Option<u64>,
    /// Bytes that are ready.
    frames: VecDeque<Bytes>,
    /// Send what is ready, then end.
    closing: bool,
    feed: watch::Receiver<u64>,
    /// Counts the orders to drop all watches.
    drops: watch::Receiver<u64>,
    deadline: Instant,
    next_bookmark: Instant,
}

/// Why a watch goes on.
enum Wake {
    Change,
    Bookmark,
    End,
}

/// Opens a watch.
///
/// # Errors
///
/// Parameters that cannot be understood.
pub(super) fn open(
    core: &Arc<Core>,
    target: Target,
    options: ListOptions,
    presentation: Presentation,
) -> Result<Body, Status> {
    options.check_watch()?;
    let drops = core.drops.subscribe();
    let config = &core.config;
    let seconds = options.timeout_seconds.filter(|seconds| *seconds > 0);
    let longest = seconds.map_or(config.watch_timeout, Duration::from_secs);
    let now = Instant::now();
    let watch = core.stage.with(|registry| {
        let feed = registry.store.feed(&target.resource.storage);
        let mut watch = Watch {
            core: Arc::clone(core),
            target,
            options,
            presentation,
            now: registry.timestamp(),
            began: false,
            revision: 0,
            awaited: None,
            frames: VecDeque::new(),
            closing: false,
            feed,
            drops,
            deadline: now + longest,
            next_bookmark: next_bookmark(now, now + longest, config.bookmark_interval),
        };
        watch.start(registry);
        watch
    });
    let frames = stream::unfold(watch, |mut watch| async move {
        let bytes = watch.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), watch))
    });
    Ok(StreamBody::new(frames).boxed_unsync())
}

// === impl Watch ===

impl Watch {
    /// Where the stream starts, and the events that stand for the present state.
    fn start(&mut self, registry: &Registry) {
        let asked = parse_version(&self.options.resource_version).unwrap_or_default();
        let current = registry.store.revision();
        let initial = match self.options.send_initial_events {
            Some(initial) => initial,
            None => asked == 0,
        };
        if !initial {
            self.revision = if asked == 0 { current } else { asked };
            return;
        }
        if self.options.send_initial_events == Some(true) && asked > current {
            self.awaited = Some(asked);
            return;
        }
        self.begin(registry);
    }

    /// Sends what is there.
    fn begin(&mut self, registry: &Registry) {
        let current = registry.store.revision();
        self.revision = current;
        let namespace = self.namespace().map(str::to_owned);
        let storage = &self.target.resource.storage;
        let objects: Vec<Object> = registry
            .store
            .scan(storage, namespace.as_deref(), current, None)
            .map(|(_, object)| object)
            .filter(|object| {
                let shown = present(&self.target.resource, object);
                self.options.selection.takes(&self.target.resource, &shown)
            })
            .collect();
        for object in objects {
            self.push("ADDED", &object);
        }
        if self.options.send_initial_events == Some(true) && self.options.allow_bookmarks {
            self.push_bookmark(true);
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(frame);
            }
            if self.closing {
                return None;
            }
            if let Some(awaited) = self.awaited.take() {
                self.reach(awaited).await;
                continue;
            }
            self.feed.mark_unchanged();
            let core = Arc::clone(&self.core);
            core.stage.with(|registry| self.read(registry));
            if !self.frames.is_empty() || self.closing {
                continue;
            }
            match self.wake().await {
                Wake::Change => {}
                Wake::Bookmark => self.push_bookmark(false),
                Wake::End => self.closing = true,
            }
        }
    }

    /// Waits for a version that is not there yet, but not for long.
    async fn reach(&mut self, awaited: u64) {
        let core = Arc::clone(&self.core);
        let mut revisions = core.stage.with(|registry| registry.store.revisions());
        let reached = revisions.wait_for(|revision| *revision >= awaited);
        let _ = timeout(core.config.fresh_read_timeout, reached).await;
        core.stage.with(|registry| {
            let current = registry.store.revision();
            if awaited <= current {
                self.begin(registry);
                return;
            }
            let body = Status::future_version(awaited, current).body().to_string();
            self.frames.push_back(frame("ERROR", body.as_bytes()));
            self.closing = true;
        });
    }

    async fn wake(&mut self) -> Wake {
        let Self {
            feed,
            drops,
            deadline,
            next_bookmark,
            options,
            ..
        } = self;
        tokio::select! {
            biased;
            _ = drops.changed() => Wake::End,
            changed = feed.changed() => if changed.is_ok() { Wake::Change } else { Wake::End },
            () = sleep_until(*deadline) => Wake::End,
            () = sleep_until(*next_bookmark), if options.allow_bookmarks => {
                let interval = self.core.config.bookmark_interval;
                *next_bookmark = self::next_bookmark(*next_bookmark, *deadline, interval);
                Wake::Bookmark
            }
        }
    }

    /// Takes in what happened since the last time.
    fn read(&mut self, registry: &Registry) {
        self.now = registry.timestamp();
        let current = registry.store.revision();
        let storage = &self.target.resource.storage;
        let changes: Vec<Arc<Change>> = match registry.store.changes_after(storage, self.revision) {
            // Whoever is too far behind must start again: the stream never leaves events out.
            Ok(changes) if changes.len() > self.core.config.max_watch_lag => {
                self.closing = true;
                return;
            }
            Ok(changes) => changes.map(Arc::clone).collect(),
            Err(compacted) => {
                let status = Status::expired(format!(
                    "too old resource version: {} ({})",
                    self.revision, compacted.oldest
                ));
                let body = status.body().to_string();
                self.frames.push_back(frame("ERROR", body.as_bytes()));
                self.closing = true;
                return;
            }
        };
        for change in changes {
            self.take_in(&registry.store, &change);
        }
        self.revision = self.revision.max(current);
    }

    /// Sends a change as the selectors see it: what leaves the selection is deleted for the client.
    fn take_in(&mut self, store: &Store, change: &Change) {
        if self
            .namespace()
            .is_some_and(|namespace| change.key.namespace != namespace)
        {
            return;
        }
        let resource = &self.target.resource;
        let selection = &self.options.selection;
        let takes = |object: Option<Object>| {
            object.is_some_and(|object| selection.takes(resource, &present(resource, &object)))
        };
        let before = change.kind != ChangeKind::Added && takes(store.previous_of(change));
        let after = change.kind != ChangeKind::Deleted && takes(store.object_of(change));
        let (kind, object) = match (before, after) {
            (false, false) => return,
            (false, true) => ("ADDED", store.object_of(change)),
            (true, true) => ("MODIFIED", store.object_of(change)),
            (true, false) => ("DELETED", store.last_of(change)),
        };
        if let Some(object) = object {
            self.push(kind, &object);
        }
    }

    fn namespace(&self) -> Option<&str> {
        (!self.target.namespace.is_empty()).then_some(self.target.namespace.as_str())
    }

    fn push(&mut self, kind: &str, object: &Object) {
        let shown = present(&self.target.resource, object);
        let shown = self.core.faults.corrupted(&self.target.resource, shown);
        if self.presentation == Presentation::Object {
            self.frames.push_back(frame(kind, shown.text().whole()));
        } else {
            self.push_presented(kind, &shown);
        }
    }

    fn push_bookmark(&mut self, initial_events_end: bool) {
        let resource = &self.target.resource;
        let mut bookmark = json!({
            "kind": resource.kind,
            "apiVersion": resource.api_version(),
            "metadata": { "resourceVersion": self.revision.to_string() },
        });
        if self.presentation == Presentation::Object
            && let Some(empty) = blank_of(resource).as_object()
        {
            // As a typed server writes an object of which only the version is known.
            for (name, value) in empty {
                if bookmark.get(name).is_none() {
                    bookmark[name] = value.clone();
                }
            }
            if COUNTING.contains(&resource.kind.as_str()) && !resource.is_custom() {
                bookmark["spec"]["replicas"] = json!(0);
            }
        }
        if initial_events_end {
            bookmark["metadata"]["annotations"] = json!({ INITIAL_EVENTS_END: "true" });
        }
        self.push_presented("BOOKMARK", &bookmark);
    }

    fn push_presented(&mut self, kind: &str, object: &Value) {
        let resource = &self.target.resource;
        let mut shown = self.presentation.of_event(resource, object, self.now);
        if self.began && matches!(self.presentation, Presentation::Table(_)) {
            shown = table::without_definitions(shown);
        }
        self.began = true;
        self.frames
            .push_back(frame(kind, shown.to_string().as_bytes()));
    }
}

/// When a watch that ends at the deadline says again how far it has come.
fn next_bookmark(now: Instant, deadline: Instant, interval: Duration) -> Instant {
    let next = now + interval;
    let last = deadline.checked_sub(LAST_BOOKMARK);
    last.filter(|last| now < *last && *last < next)
        .unwrap_or(next)
}

/// A line of the stream with the JSON of an object in it.
fn frame(kind: &str, object: &[u8]) -> Bytes {
    let head = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
    Bytes::from([&head, object, b"}\n"].concat())
}
