//! Whether an error says that the API server could not be reached, or was not able to do its work.

use crate::client::is_unavailable;
use kube::core::Status;
use std::{error::Error as StdError, time::Duration};

/// Whether an API server that did not answer is the cause of an error; `None` if the error tells of no server.
pub(super) fn is_cause_of(error: &(dyn StdError + 'static)) -> Option<bool> {
    find(error, |error| {
        if let Some(status) = status(error) {
            return Some(of_status(status));
        }
        error.downcast_ref::<kube::Error>().map(of_error)
    })
}

/// Whether an answer broke off in the middle.
pub(super) fn is_half(error: &(dyn StdError + 'static)) -> bool {
    let half = find(error, |error| {
        if let Some(kube::Error::SerdeError(error)) = error.downcast_ref() {
            return Some(error.is_eof());
        }
        None
    });
    half.unwrap_or_default()
}

/// When the server wants to be asked again.
pub(super) fn retry_after(error: &(dyn StdError + 'static)) -> Option<Duration> {
    let seconds = find(error, |error| {
        let status = match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => Some(&**status),
            _ => status(error),
        };
        Some(status?.details.as_ref()?.retry_after_seconds)
    });
    let seconds = seconds.filter(|&seconds| seconds > 0)?;
    Some(Duration::from_secs(seconds.into()).min(Duration::from_secs(3600)))
}

/// The first thing that `f` finds in an error or its sources.
fn find<T>(
    error: &(dyn StdError + 'static),
    f: impl Fn(&(dyn StdError + 'static)) -> Option<T>,
) -> Option<T> {
    let mut error = Some(error);
    // An error that is its own source is a mistake, and no reason to hang.
    for _ in 0..32 {
        let this = error?;
        if let Some(found) = f(this) {
            return Some(found);
        }
        error = this.source();
    }
    None
}

/// An answer of the server, as it is the source of kube's error and of the watcher's.
fn status<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Status> {
    let boxed = error.downcast_ref::<Box<Status>>().map(|status| &**status);
    boxed.or_else(|| error.downcast_ref())
}

fn of_error(error: &kube::Error) -> bool {
    if let kube::Error::Api(status) = error {
        return of_status(status);
    }
    if let kube::Error::SerdeError(error) = error {
        return error.is_eof();
    }
    matches!(
        error,
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_)
    )
}

fn of_status(status: &Status) -> bool {
    let details = status.details.as_ref();
    // A budget that forbids an eviction says nothing of the server.
    let is_refusal = details.is_some_and(|details| {
        let mut causes = details.causes.iter();
        causes.any(|cause| cause.reason == "DisruptionBudget")
    });
    is_unavailable(status.code) && !is_refusal
}

#[cfg(test)]
mod tests {
    use super::{is_cause_of, is_half, retry_after};
    use kube::core::Status;
    use serde_json::json;
    use std::{error::Error as StdError, io, time::Duration};

    #[derive(Debug, thiserror::Error)]
    enum Error {
        #[error("said and kept: {0}")]
        Kept(#[source] kube::Error),
        #[error(transparent)]
        Passed(kube::Error),
        #[error("{0}")]
        Lost(String),
    }

    fn api(code: u16, details: &serde_json::Value) -> kube::Error {
        let status = json!({ "status": "Failure", "code": code, "reason": "", "message": "", "details": details });
        let status: Status = serde_json::from_value(status).unwrap();
        kube::Error::Api(status.boxed())
    }

    fn half() -> kube::Error {
        kube::Error::SerdeError(serde_json::from_str::<String>("\"a").unwrap_err())
    }

    #[test]
    fn what_an_error_says_of_the_server() {
        let refused =
            || kube::Error::Service(Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)));
        let budget =
            json!({ "causes": [{ "reason": "DisruptionBudget", "message": "", "field": "" }] });
        let none = || json!({});
        let cases: Vec<(Box<dyn StdError>, Option<bool>)> = vec![
            (Box::new(refused()), Some(true)),
            (Box::new(Error::Kept(refused())), Some(true)),
            (Box::new(Error::Kept(api(503, &none()))), Some(true)),
            (Box::new(Error::Passed(api(429, &none()))), Some(true)),
            (Box::new(Error::Kept(api(429, &budget))), Some(false)),
            (Box::new(Error::Kept(api(404, &none()))), Some(false)),
            (Box::new(Error::Kept(api(500, &none()))), Some(false)),
            (Box::new(Error::Kept(half())), Some(true)),
            (Box::new(Error::Kept(kube::Error::TlsRequired)), Some(false)),
            (Box::new(Error::Lost(refused().to_string())), None),
        ];
        for (error, expected) in cases {
            assert_eq!(is_cause_of(&*error), expected, "{error:?}");
        }
        assert!(is_half(&Error::Kept(half())) && !is_half(&Error::Kept(refused())));
        let asking = Error::Kept(api(429, &json!({ "retryAfterSeconds": 7 })));
        assert_eq!(retry_after(&asking), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&Error::Kept(api(429, &none()))), None);
    }
}
