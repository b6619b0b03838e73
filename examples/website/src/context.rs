//! What the reconciler needs besides the object.

use crate::dns::Dns;
use kube::Client;
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use std::{sync::Arc, time::Duration};

/// What the reconciler needs besides the object. Tests and the demo hand in another one.
#[expect(missing_debug_implementations, reason = "a client cannot be shown")]
pub struct Context {
    /// The cluster.
    pub client: Client,
    /// The external dependency, behind a trait.
    pub dns: Arc<dyn Dns>,
    /// Counts what happens.
    pub metrics: Metrics,
    /// What does not change while the operator runs.
    pub config: Config,
}

/// What the operator can be told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The domain in which hosts can be registered; `example.com` by default.
    pub domain: String,
    /// How often a site is looked at without being told of a change; 5 minutes by default.
    ///
    /// Kubernetes tells of every change of an object. The DNS provider tells of nothing, so a record
    /// that somebody removes there is only noticed by looking.
    pub resync: Duration,
    /// Limits and delays of the controller. Its defaults suit most.
    pub controller: homeostat::Config,
    /// Makes the token of a new site; 16 random bytes in hexadecimal by default.
    pub make_token: fn() -> String,
}

/// Counts what happens, for a metrics endpoint, a test or a demo. The runtime has counters of its own for what every
/// controller does; these are the operator's.
#[derive(Debug, Default)]
pub struct Metrics {
    /// How many reconciles were started.
    pub reconciles: Counter,
    /// How many reconciles failed.
    pub failures: Counter,
}

// === impl Context ===

impl Context {
    /// A context with counters at zero.
    #[must_use]
    pub fn new(client: Client, dns: Arc<dyn Dns>, config: Config) -> Self {
        Self {
            client,
            dns,
            metrics: Metrics::default(),
            config,
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// The counters under their names, for [`Server::metrics`](homeostat::manager::Server::metrics).
    #[must_use]
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("website");
        for (name, help, counter) in [
            (
                "attempts",
                "Attempts to make a site as it should be",
                &self.reconciles,
            ),
            (
                "failed_attempts",
                "Attempts that have failed",
                &self.failures,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        registry
    }
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            domain: "example.com".into(),
            resync: Duration::from_secs(300),
            controller: homeostat::Config::default(),
            make_token: random_token,
        }
    }
}

/// 16 bytes from the operating system's source of randomness.
fn random_token() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("every platform that runs this has a source of randomness");
    format!("{:032x}", u128::from_be_bytes(bytes))
}
