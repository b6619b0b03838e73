//! What can go wrong, and what follows from it.

use crate::{Context, Website, dns::DnsError, validate::InvalidSpec};
use homeostat::{Action, Classify, children, error_policy::classified};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// What can go wrong in a reconcile. Each error says how it is answered.
#[derive(Debug, thiserror::Error, Classify)]
pub enum Error {
    /// The API server is away, busy, or somebody else was faster.
    #[error("Kubernetes API error: {0}")]
    KubeApi(#[from] kube::Error),
    /// A child could not be made as it should be.
    #[error(transparent)]
    Child(#[from] children::Error),
    /// The provider comes back, or the other site gives the host up.
    #[error(transparent)]
    #[classify(transient)]
    Dns(#[from] DnsError),
    /// Only a change of the spec helps.
    #[error(transparent)]
    #[classify(permanent, reason = "InvalidSpec")]
    Invalid(#[from] InvalidSpec),
    /// An object that no API server hands out.
    #[error("the website has no uid")]
    #[classify(permanent, reason = "NoUid")]
    NoUid,
}

/// When a site is tried again after an error: what passes by itself after the delay of this site,
/// conflicts soon, and what is permanent when somebody changes the site.
pub fn error_policy(site: Arc<Website>, error: &Error, ctx: Arc<Context>) -> Action {
    ctx.metrics.failures.fetch_add(1, Relaxed);
    classified(site, error, ctx)
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
            Self::KubeApi(source) | Self::Child(children::Error::Api { source, .. }) => {
                return refusal(source);
            }
            Self::Dns(DnsError::Unavailable(_)) => "DnsUnavailable",
            Self::Dns(DnsError::Taken(_)) => "HostTaken",
            Self::Child(_) => "ChildTaken",
            Self::Invalid(_) => "InvalidSpec",
            Self::NoUid => return None,
        };
        Some((reason, self.to_string()))
    }
}

/// What the server understood and said no to: not a conflict, and not too many requests.
fn refusal(error: &kube::Error) -> Option<(&'static str, String)> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    let (code, reason) = (status.code, &status.reason);
    let message = format!("the API server refused a request: {code} {reason}");
    matches!(code, 400 | 403 | 404 | 422).then_some(("Refused", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn api(code: u16) -> Error {
        let status = Status::failure("at revision 17", "SomeReason").with_code(code);
        kube::Error::Api(status.boxed()).into()
    }

    #[test]
    fn the_status_tells_what_a_person_can_act_upon() {
        let dns = |error: DnsError| Error::from(error);
        for (error, reason) in [
            (api(403), Some("Refused")),
            (api(422), Some("Refused")),
            (api(409), None),
            (api(500), None),
            (
                dns(DnsError::Unavailable("x".into())),
                Some("DnsUnavailable"),
            ),
            (dns(DnsError::Taken("x".into())), Some("HostTaken")),
            (Error::NoUid, None),
        ] {
            let (told, message) = error.condition().unzip();
            assert_eq!(told, reason, "{error}");
            let message = message.unwrap_or_default();
            assert!(!message.contains("17"), "a message that changes: {message}");
        }
    }
}
