//! What all requests to one server share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::access::Access;
use crate::actors::Stage;
use crate::config::Config;
use crate::faults::Faults;
use crate::requests::Requests;

/// Everything of the server that requests share.
pub(crate) struct Core {
    pub(crate) stage: Arc<Stage>,
    pub(crate) config: Config,
    pub(crate) faults: Faults,
    pub(crate) requests: Requests,
    /// Counts the orders to drop all watches.
    pub(crate) drops: watch::Sender<u64>,
    pub(crate) debug: Option<Debug>,
    pub(crate) access: Arc<Access>,
}

/// Moves the server's time forward.
pub(crate) type Advance = Box<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// What a server that can be debugged does.
pub(crate) struct Debug {
    /// None where time goes by itself.
    pub(crate) advance: Option<Advance>,
}

// === impl Core ===

impl Core {
    pub(crate) fn now(&self) -> Timestamp {
        self.stage.with(|registry| registry.timestamp())
    }

    /// Forgets the history, and answers up to which revision.
    pub(crate) fn compact(&self) -> u64 {
        self.stage.with(|registry| {
            let revision = registry.store.revision();
            registry.store.compact(revision);
            revision
        })
    }
}

// === impl Debug ===

impl fmt::Debug for Debug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Debug").finish_non_exhaustive()
    }
}
