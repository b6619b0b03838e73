//! What the reconciler needs besides the object.

use homeostat::clock;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use std::time::Duration;

/// What the reconciler needs besides the object. A test can hand in another one.
#[expect(missing_debug_implementations, reason = "a client cannot be shown")]
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// Makes the password of a new database; 16 random bytes in hexadecimal by default.
    pub make_password: fn() -> String,
    /// The time of day, by which backups are due.
    pub now: fn() -> Timestamp,
    /// After what time a backup that failed is tried again; 10 minutes by default. This is for backups that something
    /// waits for. A scheduled one that failed is followed by the next one of the schedule.
    pub retry: Duration,
    /// How often the operator looks again while it waits for something that no watch tells of; 10 seconds by default.
    pub poll: Duration,
}

// === impl Context ===

impl Context {
    /// A context with the defaults.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            make_password: random_password,
            now: clock::now,
            retry: Duration::from_secs(600),
            poll: Duration::from_secs(10),
        }
    }
}

/// 16 bytes from the operating system's source of randomness.
fn random_password() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("every platform that runs this has a source of randomness");
    format!("{:032x}", u128::from_be_bytes(bytes))
}
