//! Reconcile loops: how they are told, and what a report says.
//!
//! A reconciler has converged when a run that nobody else caused writes nothing. One that writes each
//! time wakes itself with each write, or has somebody else undo it, and does so for ever; what is seen
//! of it from outside is load. A [`Controller`](crate::Controller) whose reconciler writes through a
//! [tracked client](crate::client) finds such objects and tells of each once:
//!
//! - the log has a warning with the whole [`Incident`],
//! - the object has a Kubernetes event with the reason `ReconcileLoop` and its
//!   [summary](Incident::summary) ([`Controller::recorder`](crate::Controller::recorder)),
//! - [`Handle::explain`](crate::controller::Handle::explain) tells of it, and
//!   [`Handle::counts`](crate::controller::Handle::counts) counts it.
//!
//! From then on the object is reconciled less and less often, from one second to one minute between two
//! runs, until somebody else changes what is wanted of it. [`Config`] says what counts as a loop, and
//! [`Config::loops`](crate::Config::loops) takes it or switches everything off.
//!
//! With another client nobody tells what is written. Then an object is found that changes whenever it is reconciled and
//! never while it is made to wait ([`Verdict::Untracked`]).
//!
//! How to read a report is told in the guide, `docs/guide/loops.md`, with three cases.

pub use homeostat_core::loops::{
    Change, Config, Finding, Incident, Manager, Object, Path, Segment, Verdict,
};
