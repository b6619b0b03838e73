//! What a scenario consists of.

use crate::state::State;
use futures::{future::LocalBoxFuture, stream::LocalBoxStream};
use kube::Client;
use serde_json::Value;
use std::{path::PathBuf, sync::Arc};

/// What a controller tells of a run.
pub(crate) type Outcome = Result<String, String>;

/// Starts the operator. It works as long as the stream is polled.
pub(crate) type Start<X> =
    Box<dyn Fn(Client, Arc<X>) -> LocalBoxStream<'static, Outcome> + Send + Sync>;

/// What a user does in a step. The text says why it failed.
pub(crate) type Deed<X> =
    Box<dyn Fn(Client, Arc<X>) -> LocalBoxFuture<'static, Result<(), String>> + Send + Sync>;

/// What is there outside of the cluster.
pub(crate) type Ledger<X> = Arc<dyn Fn(&X) -> Value + Send + Sync>;

/// Whether a property holds in a state. The text says why not.
pub(crate) type Property = Arc<dyn Fn(&State) -> Result<(), String> + Send + Sync>;

/// Whether a property holds between a state and the next one.
pub(crate) type Transition = Arc<dyn Fn(&State, &State) -> Result<(), String> + Send + Sync>;

/// A step of the user's.
pub(crate) struct Step<X> {
    pub(crate) name: String,
    pub(crate) deed: Deed<X>,
}

/// A scenario, ready to be run as often as needed.
pub(crate) struct Setup<X> {
    pub(crate) definitions: Vec<Value>,
    pub(crate) existing: Vec<Value>,
    pub(crate) given: Vec<Value>,
    pub(crate) start: Option<Start<X>>,
    pub(crate) external: Box<dyn Fn() -> X + Send + Sync>,
    pub(crate) ledger: Option<Ledger<X>>,
    pub(crate) steps: Vec<Step<X>>,
    pub(crate) invariants: Vec<(String, Property)>,
    pub(crate) transitions: Vec<(String, Transition)>,
    pub(crate) ignored: Vec<String>,
    pub(crate) expendable: Vec<String>,
    pub(crate) workloads: bool,
    pub(crate) deletion: bool,
    pub(crate) seed: u64,
    pub(crate) budget: usize,
    pub(crate) threads: usize,
    /// The only checks that are done, by the names of their detectors; all if it is empty.
    pub(crate) only: Vec<String>,
    /// Kinds of plans and oracles that are left out.
    pub(crate) without: Vec<String>,
    /// Resources whose replicas are an autoscaler's.
    pub(crate) autoscaled: Vec<String>,
    /// Whether writes without an effect are a fault.
    pub(crate) frugal: bool,
    /// The check whose first finding is enough: no more plans are started then.
    pub(crate) until: Option<String>,
    /// How many seeds are tried with some plans each, in place of one with all.
    pub(crate) seeds: u64,
    pub(crate) replay: Option<String>,
    /// The folder into which reports go.
    pub(crate) save: Option<PathBuf>,
}
