//! Waits until an object is as wanted.

pub mod conditions;
pub mod delete;

use crate::watcher::{self, watch_object};
use futures::{Stream, StreamExt};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::{fmt, fmt::Debug, pin::pin, time::Duration};
use tokio::time::timeout;

/// Why nobody waits any longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object cannot be looked at, and waiting does not help. See
    /// [`await_condition`](await_condition#errors).
    #[error("failed to probe for whether the condition is fulfilled yet: {0}")]
    ProbeFailed(#[source] watcher::Error),
    /// The time of [`await_condition_within`] is over.
    #[error("{path} did not fulfil the condition within {limit:?}: {seen}")]
    DeadlineExceeded {
        /// The path of the object on the server.
        path: String,
        /// The time that was allowed.
        limit: Duration,
        /// What the object was like.
        seen: LastSeen,
        /// Why it was not seen since, if it could not be.
        #[source]
        trouble: Option<Box<watcher::Error>>,
    },
}

/// What was last known of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LastSeen {
    /// Nothing: the server has not answered.
    #[default]
    Never,
    /// There was no such object.
    Missing,
    /// It was there.
    Existing {
        /// Its `metadata.resourceVersion`.
        resource_version: Option<String>,
    },
}

/// A question about an object, which may be missing.
///
/// Functions `Fn(Option<&K>) -> bool` are conditions; those in [`conditions`] cover the usual
/// questions.
///
/// ```
/// use homeostat::wait::{Condition, conditions};
/// use k8s_openapi::api::core::v1::Pod;
///
/// fn scheduled() -> impl Condition<Pod> {
///     |pod: Option<&Pod>| pod.and_then(|pod| pod.spec.as_ref()?.node_name.as_ref()).is_some()
/// }
///
/// let waiting = scheduled().and(conditions::is_pod_running().not());
/// assert!(!waiting.matches_object(None));
/// ```
pub trait Condition<K> {
    /// Whether the object is as wanted. `None` means that there is no such object.
    fn matches_object(&self, obj: Option<&K>) -> bool;

    /// The opposite.
    fn not(self) -> conditions::Not<Self>
    where
        Self: Sized,
    {
        conditions::Not(self)
    }

    /// Both this condition and `other`.
    fn and<Other: Condition<K>>(self, other: Other) -> conditions::And<Self, Other>
    where
        Self: Sized,
    {
        conditions::And(self, other)
    }

    /// This condition, or `other`, or both.
    fn or<Other: Condition<K>>(self, other: Other) -> conditions::Or<Self, Other>
    where
        Self: Sized,
    {
        conditions::Or(self, other)
    }
}

impl<K, F: Fn(Option<&K>) -> bool> Condition<K> for F {
    fn matches_object(&self, obj: Option<&K>) -> bool {
        self(obj)
    }
}

/// What is known while somebody waits.
#[derive(Debug, Default)]
struct Probe {
    seen: LastSeen,
    /// Refusals since the object was seen.
    refusals: u32,
    /// The latest error since the object was seen.
    trouble: Option<watcher::Error>,
}

/// How often in a row the server may refuse to show the object. The pauses of a watch between them
/// add up to at least 12 s, in which a role that was just granted takes effect, and a kind that was
/// just installed is served.
const REFUSALS: u32 = 5;

/// Waits until an object fulfils a condition, and returns it as it was then: `None` if the condition
/// is fulfilled by there being none.
///
/// ```no_run
/// use homeostat::wait::{await_condition, conditions};
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
/// use kube::{Api, Client};
///
/// # async fn install(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let crds: Api<CustomResourceDefinition> = Api::all(client);
/// // Create or apply it here, then
/// let established = await_condition(crds, "websites.example.com", conditions::is_crd_established());
/// tokio::time::timeout(std::time::Duration::from_secs(10), established).await??;
/// # Ok(())
/// # }
/// ```
///
/// # Flow
///
/// The object is watched by its name. The condition is asked about its state at first, and about
/// each state after that which the watch tells of; a state that did not last may be missed.
///
/// # Guarantees
///
/// A watch that breaks, a server that is down, and one that does not serve the kind yet do not end
/// the waiting: they are tried again, with growing pauses.
///
/// # Caveats
///
/// It waits as long as it takes. [`await_condition_within`] does not, and says what it last saw.
///
/// # Errors
///
/// [`Error::ProbeFailed`] when waiting does not help:
///
/// - the server has refused to show the object five times in a row, over at least 12 s: with 401
///   and 403, or 404 because it does not serve the kind, or 400 and 422;
/// - the object does not fit the type `K`.
///
/// That there is no such object is no error.
pub async fn await_condition<K>(
    api: Api<K>,
    name: &str,
    cond: impl Condition<K>,
) -> Result<Option<K>, Error>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    let states = watch_object(api, name);
    Probe::default().until(states, cond).await
}

/// The same as [`await_condition`], but not for longer than `limit`.
///
/// ```no_run
/// use homeostat::wait::{await_condition_within, conditions};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::{Api, Client};
/// use std::time::Duration;
///
/// # async fn start(client: Client) -> Result<(), homeostat::wait::Error> {
/// let pods: Api<Pod> = Api::default_namespaced(client);
/// let running = conditions::is_pod_running();
/// let pod = await_condition_within(pods, "web-0", running, Duration::from_secs(60)).await?;
/// # let _ = pod;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`await_condition`], and [`Error::DeadlineExceeded`], which says whether the object was
/// there and in which version, or why it could not be seen.
pub async fn await_condition_within<K>(
    api: Api<K>,
    name: &str,
    cond: impl Condition<K>,
    limit: Duration,
) -> Result<Option<K>, Error>
where
    K: Clone + Debug + Send + DeserializeOwned + Resource + 'static,
{
    let path = format!("{}/{name}", api.resource_url());
    let states = watch_object(api, name);
    let mut probe = Probe::default();
    match timeout(limit, probe.until(states, cond)).await {
        Ok(result) => result,
        Err(_) => Err(Error::DeadlineExceeded {
            path,
            limit,
            seen: probe.seen,
            trouble: probe.trouble.map(Box::new),
        }),
    }
}

// === impl Probe ===

impl Probe {
    async fn until<K: Resource>(
        &mut self,
        states: impl Stream<Item = watcher::Result<Option<K>>>,
        cond: impl Condition<K>,
    ) -> Result<Option<K>, Error> {
        let mut states = pin!(states);
        loop {
            match states.next().await.expect("a watch goes on for ever") {
                Ok(state) => {
                    self.saw(state.as_ref());
                    if cond.matches_object(state.as_ref()) {
                        return Ok(state);
                    }
                }
                Err(error) => self.failed(error)?,
            }
        }
    }

    fn saw<K: Resource>(&mut self, state: Option<&K>) {
        let seen = match state {
            None => LastSeen::Missing,
            Some(object) => LastSeen::Existing {
                resource_version: object.resource_version(),
            },
        };
        *self = Self {
            seen,
            ..Self::default()
        };
    }

    fn failed(&mut self, error: watcher::Error) -> Result<(), Error> {
        self.refusals += u32::from(is_refusal(&error));
        let hopeless = matches!(error, watcher::Error::Undecodable(_));
        if hopeless || self.refusals >= REFUSALS {
            return Err(Error::ProbeFailed(error));
        }
        self.trouble = Some(error);
        Ok(())
    }
}

/// Whether the server could answer and did not want to.
fn is_refusal(error: &watcher::Error) -> bool {
    use watcher::Error;
    let status = match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status))
        | Error::WatchError(status) => status,
        Error::InitialListFailed(_)
        | Error::WatchStartFailed(_)
        | Error::WatchFailed(_)
        | Error::NoResourceVersion
        | Error::Undecodable(_) => return false,
    };
    matches!(status.code, 400 | 401 | 403 | 404 | 422)
}

// === impl LastSeen ===

impl fmt::Display for LastSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("it was not seen at all"),
            Self::Missing => f.write_str("it does not exist"),
            Self::Existing { resource_version } => {
                let version = resource_version.as_deref().unwrap_or("unknown");
                write!(f, "it exists, with resourceVersion {version}")
            }
        }
    }
}

#[cfg(test)]
mod tests;
