//! What can go wrong, and what follows from it.

use crate::{Context, Website, dns::DnsError, validate::InvalidSpec};
use homeostat::{Action, Classify, children, error_policy::classified};
use std::sync::Arc;

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
#[must_use]
pub fn error_policy(site: Arc<Website>, error: &Error, ctx: Arc<Context>) -> Action {
    ctx.metrics.failures.inc();
    classified(site, error, ctx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homeostat::ErrorClass;

    /// What the condition of a site says.
    #[test]
    fn each_error_has_its_reason() {
        let invalid = InvalidSpec {
            field: "spec.host",
            problem: "is wrong".into(),
        };
        for (error, permanent, reason) in [
            (
                Error::from(DnsError::Unavailable("x".into())),
                false,
                "DnsUnavailable",
            ),
            (Error::from(DnsError::Taken("x".into())), false, "HostTaken"),
            (Error::from(invalid), true, "InvalidSpec"),
            (Error::NoUid, true, "NoUid"),
        ] {
            let is_permanent = matches!(error.classify(), ErrorClass::Permanent { .. });
            assert_eq!(is_permanent, permanent, "{error}");
            assert_eq!(error.reason().as_deref(), Some(reason), "{error}");
        }
    }
}
