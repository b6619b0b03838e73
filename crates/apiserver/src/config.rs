//! The limits of the server.

use std::time::Duration;

/// Every limit of the server, with its default and why it is that.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The largest request body in bytes. 3 MiB, as kube-apiserver: what etcd stores, twice over,
    /// so that a patch of a large object fits. A larger one is answered 413.
    pub max_request_bytes: usize,
    /// How deep a JSON body may nest. 120: deeper than any real object, and shallow enough that
    /// code which follows the nesting cannot overflow a thread's stack.
    pub max_json_depth: usize,
    /// The most operations in one JSON patch. 10,000, as kube-apiserver.
    pub max_json_patch_operations: usize,
    /// How many objects there may be. 1,000,000: more than etcd holds with its default quota. When it
    /// is reached, a creation is answered as with a full etcd: 500, `database space exceeded`.
    pub max_objects: usize,
    /// How many revisions of history are kept for watches, continue tokens and exact lists. 100,000:
    /// more than a test writes, and bounded for a server that runs for days.
    pub max_history: usize,
    /// How many events a watch may lag behind before it is disconnected. 20,000: a client that
    /// reads at all stays far below; one that does not read must list again.
    pub max_watch_lag: usize,
    /// How long a read waits for a resourceVersion that is in the future. 3 s, as kube-apiserver.
    pub fresh_read_timeout: Duration,
    /// The time after which a watch without `timeoutSeconds` ends. 30 to 60 minutes in
    /// kube-apiserver; 30 minutes here, because a random time would make runs differ.
    pub watch_timeout: Duration,
    /// How often a watch that allows bookmarks gets one. 1 minute, as kube-apiserver.
    pub bookmark_interval: Duration,
    /// How long an event is kept after it was last written. 1 hour, as kube-apiserver. It goes with the
    /// next write of anything.
    pub event_lifetime: Duration,
    /// How long connections may take to finish when a server that listens is stopped. 5 s: an answer
    /// takes far less, and a client that does not read must not hold up the end.
    pub shutdown_grace: Duration,
    /// How many requests the log keeps; the oldest go first. 100,000: all of a test's.
    pub max_logged_requests: usize,
    /// Whether lists and watches take `shardSelector`, as kube-apiserver 1.36 does behind its gate `ShardedListAndWatch`
    /// (KEP-5866): ranges of the FNV-1a hash of `object.metadata.uid` or `object.metadata.namespace`. A list says in
    /// `metadata.shardInfo` that it did. False, as in kube-apiserver, which then ignores the parameter.
    ///
    /// The grammar, the hash and the answers are those of Kubernetes' source and of its tests. What they do not tell is which
    /// status an invalid selector is answered with (here it is 400), and whether a streamed list says anything of shards (here
    /// it does not).
    pub sharded_list_and_watch: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_request_bytes: 3 * 1024 * 1024,
            max_json_depth: 120,
            max_json_patch_operations: 10_000,
            max_objects: 1_000_000,
            max_history: 100_000,
            max_watch_lag: 20_000,
            fresh_read_timeout: Duration::from_secs(3),
            watch_timeout: Duration::from_secs(30 * 60),
            bookmark_interval: Duration::from_secs(60),
            event_lifetime: Duration::from_secs(60 * 60),
            shutdown_grace: Duration::from_secs(5),
            max_logged_requests: 100_000,
            sharded_list_and_watch: false,
        }
    }
}
