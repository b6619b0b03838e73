//! What can go wrong, and what follows from it.

use crate::{Context, Website, difference::Taken, dns::DnsError, validate::InvalidSpec};
use homeostat::{Action, finalizer};
use std::sync::Arc;

/// What can go wrong in a reconcile.
///
/// The variants are divided by what should follow, and nothing else: see [`error_policy`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Transient: the API server is away, busy, or somebody else was faster.
    #[error("Kubernetes API error: {0}")]
    KubeApi(#[from] kube::Error),
    /// Transient: the provider comes back, or the other site gives the host up.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// Transient: whoever owns the object may delete it.
    #[error(transparent)]
    Taken(#[from] Taken),
    /// Permanent: only a change of the spec helps.
    #[error(transparent)]
    Invalid(#[from] InvalidSpec),
    /// Permanent: an object that no API server hands out.
    #[error("{0}")]
    Malformed(String),
}

/// When a site is tried again after an error.
///
/// - Transient errors: after the delay of this site, which grows from failure to failure and starts
///   over after a success. Other sites do not notice.
/// - Conflicts: soon. Somebody else was faster, which is no failure; the next run sees what they wrote.
/// - Permanent errors: when somebody changes the site. Trying again would only make noise.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that the controller calls"
)]
pub fn error_policy(_site: Arc<Website>, error: &Error, ctx: Arc<Context>) -> Action {
    ctx.metrics.count_failure();
    match error {
        Error::KubeApi(kube::Error::Api(status)) if status.is_conflict() => Action::soon(),
        Error::KubeApi(_) | Error::Dns(_) | Error::Taken(_) => Action::backoff(),
        Error::Invalid(_) | Error::Malformed(_) => Action::await_change(),
    }
}

/// What went wrong is what counts, not whether it went wrong in the finalizer.
impl From<finalizer::Error<Self>> for Error {
    fn from(error: finalizer::Error<Self>) -> Self {
        use finalizer::Error as Finalizer;
        match error {
            Finalizer::ApplyFailed(error) | Finalizer::CleanupFailed(error) => error,
            Finalizer::AddFinalizer(error) | Finalizer::RemoveFinalizer(error) => {
                Self::KubeApi(error)
            }
            Finalizer::UnnamedObject | Finalizer::InvalidFinalizer => {
                Self::Malformed(error.to_string())
            }
        }
    }
}

impl Error {
    /// How the error is shown in the status of the site: a reason, and a message for people.
    ///
    /// Both are the same for each attempt that fails in the same way, so that the status is written
    /// once. That is why an API error is told by its code: its text may name a resource version or
    /// a time. `None` for errors of which the status could not be written either.
    #[must_use]
    pub fn condition(&self) -> Option<(&'static str, String)> {
        let reason = match self {
            Self::KubeApi(kube::Error::Api(status)) if is_refusal(status.code) => {
                let message = format!(
                    "the API server refused a request: {} {}",
                    status.code, status.reason
                );
                return Some(("Refused", message));
            }
            Self::KubeApi(_) | Self::Malformed(_) => return None,
            Self::Dns(DnsError::Unavailable(_)) => "DnsUnavailable",
            Self::Dns(DnsError::Taken(_)) => "HostTaken",
            Self::Taken(_) => "ChildTaken",
            Self::Invalid(_) => "InvalidSpec",
        };
        Some((reason, self.to_string()))
    }
}

/// Whether the server understood the request and said no: not a conflict, and not too many requests.
fn is_refusal(code: u16) -> bool {
    matches!(code, 400 | 403 | 404 | 422)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn api(code: u16) -> Error {
        let status = Status::failure("at revision 17", "SomeReason").with_code(code);
        Error::KubeApi(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn the_status_tells_what_a_person_can_act_upon() {
        let invalid = InvalidSpec {
            field: "spec.host",
            problem: "is bad".into(),
        };
        let taken = Taken {
            child: "Service",
            by: "Gateway/shop".into(),
        };
        for (error, reason) in [
            (api(403), Some("Refused")),
            (api(422), Some("Refused")),
            (api(409), None),
            (api(429), None),
            (api(500), None),
            (
                DnsError::Unavailable("x".into()).into(),
                Some("DnsUnavailable"),
            ),
            (DnsError::Taken("x".into()).into(), Some("HostTaken")),
            (taken.into(), Some("ChildTaken")),
            (invalid.into(), Some("InvalidSpec")),
        ] {
            let condition = error.condition();
            assert_eq!(
                condition.as_ref().map(|(reason, _)| *reason),
                reason,
                "{error}"
            );
            let message = condition.map(|(_, message)| message).unwrap_or_default();
            assert!(!message.contains("17"), "a message that changes: {message}");
        }
    }
}
