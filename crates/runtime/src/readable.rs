//! Errors as people should read them.

use homeostat_core::readable as text;
use std::fmt::{self, Display};

/// An error as people should read it: with the server's message in place of what kube writes about an
/// error of the API.
///
/// kube's text of `kube::Error::Api` has the message, the reason, and the whole `Status` once more as Rust
/// writes it for debugging. Errors that wrap it have all of that in their texts. This crate leaves it out
/// wherever it shows an error: in conditions, events, its log, and the texts of its own errors. For a log of
/// your own there is this.
///
/// ```
/// use homeostat::readable;
/// use kube::core::Status;
///
/// #[derive(Debug, thiserror::Error)]
/// enum Error {
///     #[error("Kubernetes API error: {0}")]
///     KubeApi(#[from] kube::Error),
/// }
///
/// let status = Status::failure("secrets \"db\" not found", "NotFound").with_code(404);
/// let error = Error::from(kube::Error::Api(status.boxed()));
/// assert_eq!(readable(&error).to_string(), "Kubernetes API error: secrets \"db\" not found");
/// ```
pub fn readable<E: Display + ?Sized>(error: &E) -> impl Display + '_ {
    Readable(error)
}

struct Readable<'e, E: ?Sized>(&'e E);

// === impl Readable ===

impl<E: Display + ?Sized> Display for Readable<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::readable(&self.0.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::readable;
    use kube::core::{
        Status,
        response::{StatusCause, StatusDetails},
    };

    /// The texts of kube are what is looked for.
    #[test]
    fn errors_of_kube() {
        let mut status =
            Status::failure("it is \"forbidden\": {no} (at all)", "Forbidden").with_code(403);
        status.details = Some(StatusDetails {
            name: "a".into(),
            group: "apps".into(),
            kind: "deployments".into(),
            uid: String::new(),
            causes: vec![StatusCause {
                reason: "x".into(),
                message: "}\" (Status { status: ".into(),
                field: "spec".into(),
            }],
            retry_after_seconds: 1,
        });
        let message = status.message.clone();
        assert_eq!(
            readable(&kube::Error::Api(status.boxed())).to_string(),
            message
        );
        for (code, said, expected) in [
            (
                502,
                "<html>bad</html>",
                "the server answered 502, and said nothing that Kubernetes would say",
            ),
            (
                404,
                "404 page not found",
                "the server answered 404, and said nothing that Kubernetes would say",
            ),
        ] {
            // As kube makes it of an answer that is no Status.
            let status = Status::failure(said, "Failed to parse error data").with_code(code);
            assert_eq!(
                readable(&kube::Error::Api(status.boxed())).to_string(),
                expected
            );
        }
        let plain = kube::Error::TlsRequired;
        assert_eq!(readable(&plain).to_string(), plain.to_string());
    }
}
