//! Error policies for [`Controller::run`](crate::Controller::run).
//!
//! An error policy is a function `Fn(Arc<K>, &Error, Arc<Ctx>) -> Action` that says when an object
//! is tried again after its reconcile failed.

use crate::{Action, Classify, ErrorClass};
use std::{sync::Arc, time::Duration};

/// The longest time for which a server is believed that it has too much to do. A figure that is out
/// of all proportion would stop an object for good.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// Tries again after the object's next delay: each object has delays of its own that grow from
/// failure to failure and start over after a success.
///
/// This is the policy to use unless errors differ in what should follow; for those there is
/// [`classified`]. [`Config::backoff`](crate::Config::backoff) sets the delays.
pub fn backoff<K, E, Ctx>(_object: Arc<K>, _error: &E, _context: Arc<Ctx>) -> Action
where
    E: ?Sized,
{
    Action::backoff()
}

/// Does what follows from the [class](ErrorClass) of the error:
///
/// | class | action |
/// |---|---|
/// | transient | [`Action::backoff`]: tried again after the object's next delay |
/// | throttled | the same, and not before what the server asked for, of which an hour counts at most |
/// | conflict | [`Action::soon`]: tried again in a moment; the delays neither grow nor start over |
/// | permanent | [`Action::await_change`]: tried again when somebody changes something; the delays start over |
///
/// ```
/// use homeostat::{Action, Classify, error_policy};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use std::sync::Arc;
///
/// #[derive(Debug, thiserror::Error, Classify)]
/// enum Error {
///     #[error("missing spec field: {0}")]
///     #[classify(permanent, reason = "InvalidSpec")]
///     MissingField(String),
/// }
///
/// let (map, error) = (Arc::new(ConfigMap::default()), Error::MissingField("host".into()));
/// assert_eq!(error_policy::classified(map, &error, Arc::new(())), Action::await_change());
/// ```
pub fn classified<K, E, Ctx>(_object: Arc<K>, error: &E, _context: Arc<Ctx>) -> Action
where
    E: Classify + ?Sized,
{
    match error.classify() {
        ErrorClass::Transient | ErrorClass::Throttled { retry_after: None } => Action::backoff(),
        ErrorClass::Throttled {
            retry_after: Some(retry_after),
        } => Action::backoff().at_least(retry_after.min(LONGEST_RETRY_AFTER)),
        ErrorClass::Conflict => Action::soon(),
        ErrorClass::Permanent { .. } => Action::await_change(),
    }
}
