//! What can go wrong in a watch, said so that the reader knows of which kind, where, and what to do.

use super::source::{Failure, Target, Trouble, no_details};
use homeostat_core::watch::Phase;
use kube::core::Status;
use std::fmt;

/// What a [`watcher`](super::watcher()) could not do. It goes on after each of these by itself.
///
/// Errors of the server keep their [`Status`], with the message preceded by what was asked for, and
/// with `details.kind` and `details.group` filled in. All others are a `kube::Error::Service` whose
/// text says the same, and whose `source` is the error of kube's client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The initial list could not be had, in pages or as a stream.
    #[error("{}; {}", said(.0), advice(.0))]
    InitialListFailed(#[source] kube::Error),

    /// A watch from a known version could not be started.
    #[error("{}; {}", said(.0), watch_advice(.0))]
    WatchStartFailed(#[source] kube::Error),

    /// The server sent an error on an open watch.
    #[error("{}; {}", .0.message, advice_for(.0.code))]
    WatchError(#[source] Box<Status>),

    /// An open watch broke.
    #[error("{}; {}", said(.0), advice(.0))]
    WatchFailed(#[source] kube::Error),

    /// Not used: an answer without a version is one of the errors above, which say of what kind it
    /// is. It is here for programs that match all errors of kube's watcher.
    #[error("an answer of the server has no resourceVersion; check what is between it and here")]
    NoResourceVersion,

    /// One object could not be decoded. All others are delivered.
    #[error("{0}")]
    Undecodable(#[source] Box<Undecodable>),
}

/// An object that does not fit its Rust type.
///
/// In a list this comes instead of the object's `InitApply`: a cache should keep the state that it
/// has, not treat the object as gone. On a watch it comes instead of an `Apply`, or of a `Delete` if
/// [`deleted`](Self::deleted) says so. It comes once for each time that the server sends the object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecodable {
    /// The object's kind, like `Website`.
    pub kind: String,
    /// Its namespace, unless it has none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// The version that could not be decoded.
    pub resource_version: Option<String>,
    /// Where in the object, like `spec.containers[0].image`; `.` is the object itself.
    pub path: String,
    /// What does not fit there. It names types, never the value.
    pub message: String,
    /// Whether the object was deleted.
    pub deleted: bool,
    /// What was asked for when it came.
    pub(super) context: String,
}

/// A request without an answer that makes sense, and what it was for.
#[derive(Debug, thiserror::Error)]
#[error("{context}: {trouble}")]
struct Unanswered {
    context: String,
    #[source]
    trouble: Trouble,
}

/// What an error said to another follower of the same watch.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Retold(String);

// === impl Error ===

impl Error {
    /// An error that says the same, for one more follower of the same watch. Errors of kube's client cannot be
    /// copied; what they said is kept.
    pub(crate) fn retold(&self) -> Self {
        let retold = |error: &kube::Error| {
            if let kube::Error::Api(status) = error {
                return kube::Error::Api(status.clone());
            }
            kube::Error::Service(Box::new(Retold(said(error))))
        };
        match self {
            Self::InitialListFailed(error) => Self::InitialListFailed(retold(error)),
            Self::WatchStartFailed(error) => Self::WatchStartFailed(retold(error)),
            Self::WatchError(status) => Self::WatchError(status.clone()),
            Self::WatchFailed(error) => Self::WatchFailed(retold(error)),
            Self::NoResourceVersion => Self::NoResourceVersion,
            Self::Undecodable(object) => Self::Undecodable(object.clone()),
        }
    }

    /// Whether the server does not serve the kind that was asked for.
    pub(crate) fn is_not_served(&self) -> bool {
        match self {
            Self::InitialListFailed(kube::Error::Api(status))
            | Self::WatchStartFailed(kube::Error::Api(status)) => status.code == 404,
            Self::InitialListFailed(_)
            | Self::WatchStartFailed(_)
            | Self::WatchError(_)
            | Self::WatchFailed(_)
            | Self::NoResourceVersion
            | Self::Undecodable(_) => false,
        }
    }

    /// The error for a request that failed in `phase`.
    pub(super) fn new(failure: Failure, phase: Phase, target: &Target) -> Self {
        let error = match failure {
            Failure::Status(status) => {
                let status = explained(*status, phase, target).boxed();
                if phase == Phase::Watch {
                    return Self::WatchError(status);
                }
                kube::Error::Api(status)
            }
            Failure::Trouble(trouble) => {
                let context = target.context(phase);
                kube::Error::Service(Box::new(Unanswered { context, trouble }))
            }
        };
        match phase {
            Phase::List => Self::InitialListFailed(error),
            Phase::WatchStart => Self::WatchStartFailed(error),
            Phase::Watch => Self::WatchFailed(error),
        }
    }
}

/// The status with what was asked for in its message and details.
fn explained(mut status: Status, phase: Phase, target: &Target) -> Status {
    let message = match status.code {
        // A collection that is not there is one that is not served: an empty one is no error.
        404 => {
            let what = match phase {
                Phase::List => "",
                Phase::WatchStart | Phase::Watch => " to those who watch it",
            };
            format!("the server does not serve {}{what}", target.versioned())
        }
        code if status.message.is_empty() => format!("the server answered {code} and said no more"),
        _ => status.message,
    };
    status.message = format!("{}: {message}", target.context(phase));
    let details = status.details.get_or_insert_with(no_details);
    if details.kind.is_empty() {
        details.kind.clone_from(&target.plural);
        details.group.clone_from(&target.group);
    }
    status
}

/// What an error of kube says, without what it says about itself.
fn said(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        status.message.clone()
    } else if let kube::Error::Service(error) = error {
        error.to_string()
    } else {
        error.to_string()
    }
}

fn advice(error: &kube::Error) -> &'static str {
    if let kube::Error::Api(status) = error {
        advice_for(status.code)
    } else {
        "check the connection to the API server; it is tried again"
    }
}

/// The same for a watch of what was listed.
fn watch_advice(error: &kube::Error) -> &'static str {
    if matches!(error, kube::Error::Api(status) if status.code == 404) {
        "is its CustomResourceDefinition still installed? If it can be listed, what serves it does not support \
         the verb watch: until it does, it is listed from time to time"
    } else {
        advice(error)
    }
}

fn advice_for(code: u16) -> &'static str {
    match code {
        400 | 422 => "check the selectors of the watcher's Config; it is tried again",
        401 => "check the client's credentials; it is tried again",
        403 => "allow the verbs list and watch by a role; it is tried again",
        404 => "is its CustomResourceDefinition installed, with this version? it is tried again",
        405 => "this kind cannot be watched; it is listed from time to time",
        _ => "if this lasts, check the health of the API server; it is tried again",
    }
}

// === impl Undecodable ===

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            name,
            path,
            message,
            context,
            ..
        } = self;
        let namespace = namespace
            .as_deref()
            .map(|namespace| format!("{namespace}/"));
        write!(
            f,
            "{context}: {kind} {}{name} does not fit its type at {path}: {message}; correct the \
             object or the type, all other objects are delivered",
            namespace.unwrap_or_default(),
        )
    }
}

impl std::error::Error for Undecodable {}
