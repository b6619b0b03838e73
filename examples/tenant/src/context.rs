//! What the reconciler needs besides the object.

use kube::Client;
use std::time::Duration;

/// What the reconciler needs besides the object.
#[expect(missing_debug_implementations, reason = "a client cannot be shown")]
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// How often the operator looks again while it waits for something that no watch tells of: a namespace of somebody
    /// else to go. 30 seconds by default.
    pub poll: Duration,
}

// === impl Context ===

impl Context {
    /// A context with the defaults.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            poll: Duration::from_secs(30),
        }
    }
}
