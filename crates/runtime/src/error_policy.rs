//! Error policies for [`Controller::run`](crate::Controller::run).
//!
//! An error policy is a function `Fn(Arc<K>, &Error, Arc<Ctx>) -> Action` that says when an object
//! is tried again after its reconcile failed.

use crate::Action;
use std::sync::Arc;

/// Tries again after the object's next delay: each object has delays of its own that grow from
/// failure to failure and start over after a success.
///
/// This is the policy to use unless errors differ in what should follow.
/// [`Config::backoff`](crate::Config::backoff) sets the delays.
pub fn backoff<K, E, Ctx>(_object: Arc<K>, _error: &E, _context: Arc<Ctx>) -> Action
where
    E: ?Sized,
{
    Action::backoff()
}
