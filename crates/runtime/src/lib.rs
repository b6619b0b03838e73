//! A controller runtime for Kubernetes.
//!
//! You write a reconciler,
//!
//! ```
//! # use homeostat::Action;
//! # use std::sync::Arc;
//! # struct K;
//! # struct Context;
//! # #[derive(Debug, thiserror::Error)]
//! # enum Error {}
//! async fn reconcile(obj: Arc<K>, ctx: Arc<Context>) -> Result<Action, Error> {
//!     // Look at the present state, compare it with the wanted one, write what differs.
//!     # let _ = (obj, ctx);
//!     Ok(Action::await_change())
//! }
//! ```
//!
//! and a [`Controller`] decides when to call it, with what, and how often to try again. It has the
//! names and signatures of `kube::runtime`, so that porting a program is changing its imports.
//!
//! # Where to find what
//!
//! - [`Manager`] runs several controllers as one program, with leader election and an orderly end.
//! - [`Controller`] runs a reconciler; [`Action`] says when to run it again, [`error_policy`] when
//!   after an error, and [`Config`] bounds and paces it all.
//! - [`watcher()`] is a reliable stream of what happens to the objects of a kind, and
//!   [`WatchStreamExt`] what can be done with it.
//! - [`predicates`] say which changes matter.
//! - [`reflector()`] keeps a [store](reflector::Store) of objects up to date.
//! - [`Classify`](trait@Classify) says of an error how it is answered, [`conditions`] say what is
//!   observed of an object, and [`status`] writes that down when it is new.
//! - [`prelude`] brings the traits into scope, and [`compat`] has the exact signatures of
//!   kube-runtime 5 where they differ.
//! - [`children`] keeps the objects that an object owns as they should be, and [`finalizer()`] cleans up
//!   after what it does not own. [`events`] tell people what happens,
//!   and [`wait`] waits until an object is as wanted.
//!
//! # What it promises
//!
//! - **Exactly scheduled.** One run per object at a time; no wake-up is lost; backoff for each object
//!   by itself; fair; everything is bounded.
//! - **Watches that recover by themselves**, each at its own pace. A relist is compared with what is
//!   known and causes only true changes, deletions that nobody saw included. An object that cannot be
//!   decoded is reported by name, and the others are delivered.
//! - **Under paused time.** Only tokio's clock is used, so a whole controller runs in a test with
//!   `tokio::time::pause`.
//!
//! # Features
//!
//! - `server`: a [`Manager`] answers probes over HTTP.
//! - `metrics`: it exposes what it measures on the same port.
//! - `tracing-subscriber`: the time of a test in its log.
//!
//! # What it does not do yet
//!
//! Where several replicas share the objects, the page and the metrics of a [`Manager`] do not show it.

// T37: every example in the documents compiles, and runs where it asserts something.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/porting.md")]
#[doc = include_str!("../../../docs/guide/reconciler.md")]
#[doc = include_str!("../../../docs/guide/errors.md")]
#[doc = include_str!("../../../docs/guide/outages.md")]
#[doc = include_str!("../../../docs/guide/status.md")]
#[doc = include_str!("../../../docs/guide/loops.md")]
#[doc = include_str!("../../../docs/guide/children.md")]
#[doc = include_str!("../../../docs/guide/finalizers.md")]
#[doc = include_str!("../../../docs/guide/several-controllers.md")]
#[doc = include_str!("../../../docs/guide/production.md")]
mod documents {}

pub mod children;
mod classify;
pub mod client;
pub mod clock;
pub mod compat;
pub mod conditions;
pub mod controller;
pub mod error_policy;
pub mod events;
pub mod finalizer;
mod identity;
pub mod leadership;
pub mod loops;
pub mod manager;
mod notes;
mod predicate;
pub mod prelude;
mod progress;
mod readable;
mod recovery;
pub mod reflector;
mod scan;
pub mod scheduler;
pub mod sharding;
mod signal;
pub mod status;
mod target;
mod task;
mod term;
pub mod utils;
pub mod wait;
pub mod watcher;

#[expect(deprecated, reason = "programs written for kube may still have it")]
pub use self::watcher::metadata_watcher;
pub use self::{
    classify::{Classify, ErrorClass},
    controller::{Action, Config, Controller, applier},
    finalizer::finalizer,
    identity::Identity,
    manager::Manager,
    predicate::{Predicate, PredicateConfig, predicates},
    readable::readable,
    reflector::reflector,
    scheduler::scheduler,
    task::spawn_in_run as spawn,
    utils::WatchStreamExt,
    watcher::watcher,
};
pub use homeostat_core::{backoff::Backoff, queue::RateLimit};
/// Implements [`Classify`](trait@Classify).
///
/// ```
/// use homeostat::{Classify, ErrorClass};
///
/// #[derive(Debug, thiserror::Error, Classify)]
/// enum Error {
///     #[error("Kubernetes API error: {0}")]
///     KubeApi(#[from] kube::Error),
///     #[error("missing spec field: {0}")]
///     #[classify(permanent, reason = "InvalidSpec")]
///     MissingField(String),
///     #[error("external service: {0}")]
///     #[classify(transient)]
///     External(String),
/// }
///
/// let error = Error::MissingField("host".into());
/// assert_eq!(error.classify(), ErrorClass::permanent("InvalidSpec"));
/// ```
pub use homeostat_derive::Classify;
