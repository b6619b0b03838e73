//! How errors are answered.

use crate::finalizer;
use kube::core::Status;
use std::{borrow::Cow, convert::Infallible, error::Error as StdError, sync::Arc, time::Duration};

/// What follows from an error.
///
/// [`error_policy::classified`](crate::error_policy::classified) and
/// [`Controller::status_conditions`](crate::Controller::status_conditions) act on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// It passes by itself: try again after a delay that grows from failure to failure.
    ///
    /// When in doubt, an error is transient. What is tried again in vain costs a run every few
    /// minutes; what is not tried again stays broken.
    Transient,

    /// Somebody else was faster: read again, and try again in a moment. It is no failure.
    Conflict,

    /// A server has too much to do: the same as [`Transient`](Self::Transient), but not before the
    /// time that it asked for, if it did.
    Throttled {
        /// From now.
        retry_after: Option<Duration>,
    },

    /// Trying again changes nothing; only somebody who changes the object, or something that it needs,
    /// does.
    Permanent {
        /// Why, for the condition of the object: a word in CamelCase, the same each time.
        reason: Cow<'static, str>,
    },
}

/// An error that knows how it is answered.
///
/// ```
/// use homeostat::{Classify, ErrorClass};
/// use std::borrow::Cow;
///
/// #[derive(Debug, thiserror::Error, Classify)]
/// enum Error {
///     // As the error that it comes from: kube's are classified.
///     #[error("Kubernetes API error: {0}")]
///     KubeApi(#[from] kube::Error),
///
///     #[error("missing spec field: {0}")]
///     #[classify(permanent, reason = "InvalidSpec")]
///     MissingField(String),
///
///     #[error("external service: {0}")]
///     #[classify(transient)]
///     External(String),
/// }
///
/// let reason = Cow::Borrowed("InvalidSpec");
/// let missing = Error::MissingField("host".into());
/// assert_eq!(missing.classify(), ErrorClass::Permanent { reason });
/// assert_eq!(Error::External("timeout".into()).classify(), ErrorClass::Transient);
/// assert_eq!(Error::from(kube::Error::TlsRequired).classify(), kube::Error::TlsRequired.classify());
/// ```
///
/// The derive macro takes, on each variant of an enum or on a struct,
///
/// | attribute | class |
/// |---|---|
/// | `#[classify(transient)]` | [`ErrorClass::Transient`] |
/// | `#[classify(transient, reason = "InventoryDown")]` | the same, with a [reason](Classify::reason) for its condition |
/// | `#[classify(conflict)]` | [`ErrorClass::Conflict`] |
/// | `#[classify(permanent, reason = "InvalidSpec")]` | [`ErrorClass::Permanent`] |
/// | none | that of the error that it comes from |
///
/// The error that a variant comes from is its field with `#[from]` or `#[source]`, the one that is
/// called `source`, or the only one under `#[error(transparent)]`. An attribute takes precedence. A
/// variant with neither does not compile:
///
/// ```compile_fail
/// #[derive(Debug, thiserror::Error, homeostat::Classify)]
/// enum Error {
///     #[error("external service: {0}")]
///     External(String),
/// }
/// ```
///
/// What an attribute cannot say is said by hand:
///
/// ```
/// use homeostat::{Classify, ErrorClass};
/// use std::time::Duration;
///
/// struct Busy {
///     seconds: u64,
/// }
///
/// impl Classify for Busy {
///     fn classify(&self) -> ErrorClass {
///         let retry_after = Some(Duration::from_secs(self.seconds));
///         ErrorClass::Throttled { retry_after }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "nothing says how `{Self}` is answered",
    label = "not classified",
    note = "where it is the source of a variant of your error, write `#[classify(transient)]`, `#[classify(conflict)]` or `#[classify(permanent, reason = \"..\")]` on that variant",
    note = "where it is your error, derive `homeostat::Classify` for it"
)]
pub trait Classify {
    /// How the error is answered.
    fn classify(&self) -> ErrorClass;

    /// Why, for the condition of the object: a word in CamelCase, the same each time. `None` if there is
    /// nothing to say but that it failed.
    ///
    /// A permanent error has one by its [class](ErrorClass::Permanent). Of an error that passes by itself it
    /// tells people what is waited for.
    fn reason(&self) -> Option<Cow<'static, str>> {
        match self.classify() {
            ErrorClass::Permanent { reason } => Some(reason),
            ErrorClass::Transient | ErrorClass::Conflict | ErrorClass::Throttled { .. } => None,
        }
    }
}

// === impl ErrorClass ===

impl ErrorClass {
    /// A permanent error with this reason.
    #[must_use]
    pub const fn permanent(reason: &'static str) -> Self {
        Self::Permanent {
            reason: Cow::Borrowed(reason),
        }
    }
}

// === impl Classify ===

/// | error | class | because |
/// |---|---|---|
/// | no connection, timeout, broken answer | transient | networks recover |
/// | 429; any answer that says when to come back | throttled | it asks for it |
/// | 409 `Conflict` | conflict | a newer version is there to be read |
/// | 409 `Conflict` of field managers | transient | another manager owns the field until it gives it up |
/// | 409 `AlreadyExists` | transient | the cache is behind, or the old object is still going away |
/// | 401, 403 | transient | no watch tells when somebody grants a permission |
/// | 403 in a namespace that is going away | permanent, `NamespaceTerminating` | nothing can be created there any more |
/// | 404, 410 | transient | what is not there may come |
/// | 422 `Invalid` | permanent, `Invalid` | the object asks for something that is not allowed |
/// | 422 `Invalid` without causes | transient | a JSON patch that was made for another state |
/// | 400, 405, 406, 413, 415 | permanent, the server's reason | the same request gets the same answer |
/// | 5xx, and whatever else a server or a proxy answers | transient | it may be repaired |
/// | an answer that cannot be decoded | transient | it may have been cut off, or the object be mended |
/// | a request that cannot be built | permanent, `InvalidRequest` | it was made from the object |
/// | TLS or proxy not supported | permanent, `ClientMisconfigured` | only another build helps |
/// | all else, as credentials and discovery | transient | the world may be mended |
impl Classify for kube::Error {
    fn classify(&self) -> ErrorClass {
        if let Self::Api(status) = self {
            return of_status(status);
        }
        if matches!(self, Self::HttpError(_) | Self::BuildRequest(_)) {
            return ErrorClass::permanent("InvalidRequest");
        }
        let misconfigured = matches!(
            self,
            Self::TlsRequired
                | Self::ProxyProtocolUnsupported { .. }
                | Self::ProxyProtocolDisabled { .. }
        );
        if misconfigured {
            return ErrorClass::permanent("ClientMisconfigured");
        }
        ErrorClass::Transient
    }

    /// That of its class, or the one that the server gives.
    fn reason(&self) -> Option<Cow<'static, str>> {
        if let ErrorClass::Permanent { reason } = self.classify() {
            return Some(reason);
        }
        let Self::Api(status) = self else {
            return None;
        };
        let reason = Some(&status.reason).filter(|reason| is_word(reason));
        reason.map(|reason| Cow::Owned(reason.clone()))
    }
}

/// Whether it is a word in CamelCase.
fn is_word(reason: &str) -> bool {
    reason.starts_with(|c: char| c.is_ascii_uppercase())
        && reason.chars().all(|c| c.is_ascii_alphanumeric())
}

/// How an answer of the API server is answered.
fn of_status(status: &Status) -> ErrorClass {
    let details = status.details.as_ref();
    let causes = details.map_or(&[][..], |details| &details.causes);
    let is_caused_by = |reason: &str| causes.iter().any(|cause| cause.reason == reason);

    let retry_after = details
        .map(|details| details.retry_after_seconds)
        .filter(|&seconds| seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()));
    if status.code == 429 || retry_after.is_some() {
        return ErrorClass::Throttled { retry_after };
    }
    if is_caused_by("NamespaceTerminating") {
        return ErrorClass::permanent("NamespaceTerminating");
    }
    if status.is_already_exists() || is_caused_by("FieldManagerConflict") {
        return ErrorClass::Transient;
    }
    if status.code == 409 {
        return ErrorClass::Conflict;
    }
    if status.code == 422 && !causes.is_empty() {
        return ErrorClass::permanent("Invalid");
    }
    // By reason and not by code: what stands in between answers with the same codes.
    match &*status.reason {
        "BadRequest"
        | "MethodNotAllowed"
        | "NotAcceptable"
        | "RequestEntityTooLarge"
        | "UnsupportedMediaType" => ErrorClass::Permanent {
            reason: Cow::Owned(status.reason.clone()),
        },
        _ => ErrorClass::Transient,
    }
}

/// As the error of the reconciler, or of the API; a name that no server takes is permanent.
impl<E> Classify for finalizer::Error<E>
where
    E: Classify + StdError + 'static,
{
    fn classify(&self) -> ErrorClass {
        match self {
            Self::ApplyFailed(error) | Self::CleanupFailed(error) => error.classify(),
            Self::AddFinalizer(error) | Self::RemoveFinalizer(error) => error.classify(),
            Self::UnnamedObject => ErrorClass::permanent("UnnamedObject"),
            Self::InvalidFinalizer => ErrorClass::permanent("InvalidFinalizer"),
        }
    }

    fn reason(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::ApplyFailed(error) | Self::CleanupFailed(error) => error.reason(),
            Self::AddFinalizer(error) | Self::RemoveFinalizer(error) => error.reason(),
            Self::UnnamedObject => Some(Cow::Borrowed("UnnamedObject")),
            Self::InvalidFinalizer => Some(Cow::Borrowed("InvalidFinalizer")),
        }
    }
}

impl Classify for Infallible {
    fn classify(&self) -> ErrorClass {
        match *self {}
    }
}

impl<E: Classify + ?Sized> Classify for Box<E> {
    fn classify(&self) -> ErrorClass {
        (**self).classify()
    }

    fn reason(&self) -> Option<Cow<'static, str>> {
        (**self).reason()
    }
}

impl<E: Classify + ?Sized> Classify for Arc<E> {
    fn classify(&self) -> ErrorClass {
        (**self).classify()
    }

    fn reason(&self) -> Option<Cow<'static, str>> {
        (**self).reason()
    }
}

impl<E: Classify + ?Sized> Classify for &E {
    fn classify(&self) -> ErrorClass {
        (**self).classify()
    }

    fn reason(&self) -> Option<Cow<'static, str>> {
        (**self).reason()
    }
}
