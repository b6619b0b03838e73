//! A client that knows what each reconcile writes.
//!
//! ```no_run
//! use homeostat::client::Tracked;
//!
//! # async fn connect() -> Result<(), kube::Error> {
//! // In place of `Client::try_default()`:
//! let client = Tracked::try_default().await?;
//! # let _ = client;
//! # Ok(())
//! # }
//! ```
//!
//! A reconciler that writes through such a client need not do anything else. Its controller then knows
//! which objects a run has written and in which versions, and so
//!
//! - the next run of an object begins only when the controller's caches have seen what the run before
//!   wrote ([`Config::wait_for_writes`](crate::Config::wait_for_writes));
//! - an event that tells of the object's own write is known as such: it does not cut a backoff short;
//! - the history of an object tells what its runs have written.
//!
//! # Guarantees
//!
//! - Nothing is kept of a request or an answer but what identifies the object and its version. Only
//!   answers to writes are looked at, and only the metadata in them, some at a time or at the end of the run;
//!   watches and other streams pass as they are.
//! - Outside of reconciles nothing is recorded.
//! - Other clients work as ever. The log says once that what goes through them is not known. What this crate
//!   itself writes for a reconciler ([children](crate::children), [status](crate::status), finalizers, conditions)
//!   is known in any case.
//!
//! # Caveats
//!
//! What a reconciler spawns with `tokio::spawn` is outside of its run; use [`spawn`](crate::spawn). What
//! is written after the run has ended does not count for it.

mod answer;
mod log;
mod request;
mod run;
mod scan;
mod service;
mod sight;
mod texts;
mod write;

pub use self::{request::Verb, service::TrackedService, write::Write};
pub(crate) use self::{
    run::{OwnRequest, Run, in_run, in_run_now, keeping_run, noting_requests, requests_noted},
    write::Known,
};

use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tower::Layer;

/// Records what reconciles write: a layer for kube's [`ClientBuilder`], and the ways to make a client
/// with it.
///
/// ```
/// use homeostat::client::Tracked;
/// use kube::{Client, client::ClientBuilder};
///
/// fn build(config: kube::Config) -> kube::Result<Client> {
///     Ok(ClientBuilder::try_from(config)?.with_layer(&Tracked).build())
/// }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracked;

// === impl Tracked ===

impl Tracked {
    /// A client with kube's usual layers and this one.
    ///
    /// # Errors
    ///
    /// As those of [`Client::try_from`].
    pub fn client(config: Config) -> kube::Result<Client> {
        Ok(ClientBuilder::try_from(config)?.with_layer(&Self).build())
    }

    /// The same for the configuration that the environment gives, as [`Client::try_default`].
    ///
    /// # Errors
    ///
    /// There is no configuration, or none that works.
    pub async fn try_default() -> kube::Result<Client> {
        let config = Config::infer().await;
        Self::client(config.map_err(kube::Error::InferConfig)?)
    }

    /// A client that sends through `client`. It costs a second queue of requests, so prefer the layer
    /// where you build the client yourself.
    ///
    /// It must be called in a tokio runtime.
    #[must_use]
    pub fn wrap(client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let valid_until = *client.valid_until();
        let send = tower::service_fn(move |request: http::Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(Self.layer(send), namespace).with_valid_until(valid_until)
    }
}

impl<S> Layer<S> for Tracked {
    type Service = TrackedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TrackedService::new(inner)
    }
}

#[cfg(test)]
mod tests;
