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
//! - the history of an object tells what its runs have written;
//! - a run that has read a [store](crate::reflector::Store#in-reconcilers) before it was complete cannot write, and
//!   runs again when it is.
//!
//! # Guarantees
//!
//! - Nothing is kept of a request or an answer but what identifies the object and its version. Only
//!   answers to writes are looked at, and only the metadata in them, some at a time or at the end of the run;
//!   watches and other streams pass as they are.
//! - Outside of reconciles nothing is recorded.
//! - No request is without an end: one whose answer does not come, or does not go on, fails after 15 s
//!   ([`Settings::silence`]), except for watches and other streams.
//! - Other clients work as ever. The log says once that what goes through them is not known. What this crate
//!   itself writes for a reconciler ([children](crate::children), [status](crate::status), finalizers, conditions)
//!   is known in any case.
//!
//! # Caveats
//!
//! What a reconciler spawns with `tokio::spawn` or `spawn_blocking` is outside of its run; use
//! [`spawn`](crate::spawn). What is written after the run has ended does not count for it.

mod answer;
mod body;
mod flight;
mod heard;
mod log;
mod refused;
mod request;
mod run;
mod service;
mod settings;
mod sight;
mod texts;
mod traffic;
mod write;

#[cfg(feature = "metrics")]
pub(crate) use self::traffic::{BOUNDS as REQUEST_BOUNDS, Sums};
pub use self::{
    body::TrackedBody,
    refused::{Deposed, Refused},
    request::Verb,
    service::TrackedService,
    settings::Settings,
    write::Write,
};
pub(crate) use self::{
    heard::{Ending, How, is_unavailable},
    request::OwnPatience,
    run::{
        InRun, Noted, Outbox, OwnRequest, Run, check_run, identity, in_run, in_run_now,
        keeping_run, note_outboxes, note_requests, noting_requests, requests_noted,
        sign_by_default,
    },
    traffic::{Traffic, counted},
    write::Known,
};

use crate::Identity;
use kube::{Client, Config, client::Body};
use tower::Layer;

/// Records what reconciles write: a layer for kube's [`ClientBuilder`](kube::client::ClientBuilder), and the ways to
/// make a client with it. As a layer it bounds the silence of the server too, as [`Settings`] do by default.
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

/// [`Tracked`] in the name of a program; see [`Tracked::named`].
#[derive(Debug, Clone)]
pub struct Named {
    identity: Identity,
}

// === impl Tracked ===

impl Tracked {
    /// The same in the name of a program, as `site-operator`: the field manager of every write that names
    /// none, and the user agent. Without this it is the name of the executable. See [`Identity`].
    ///
    /// ```
    /// use homeostat::client::Tracked;
    /// use kube::{Client, client::ClientBuilder};
    ///
    /// fn build(config: kube::Config) -> kube::Result<Client> {
    ///     let named = Tracked::named("site-operator");
    ///     Ok(ClientBuilder::try_from(config)?.with_layer(&named).build())
    /// }
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Named {
        let identity = Identity::new(name);
        identity.give();
        Named { identity }
    }

    /// A client that is fit for controllers: kube's usual layers and this one, with two differences.
    ///
    /// - It does not send requests again by itself. The controller tries an object again after its own delays, and
    ///   not before the time that the server asked for (`Retry-After`). kube's client would try up to 15 times, which
    ///   takes minutes, and the object would hold one of the controller's slots all the while.
    /// - A request whose answer does not come, or does not go on, for 15 s has failed. Watches and other streams may
    ///   be silent.
    ///
    /// [`Settings::client`] has it otherwise.
    ///
    /// # Errors
    ///
    /// As those of [`Client::try_from`].
    pub fn client(config: Config) -> kube::Result<Client> {
        Settings::default().client(config)
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
    /// where you build the client yourself. Whether `client` sends requests again by itself is not known, so a
    /// controller warns of it once; a [layer of `Settings`](Settings) says that you know.
    ///
    /// It must be called in a tokio runtime.
    #[must_use]
    pub fn wrap(client: Client) -> Client {
        wrapped(identity(), client)
    }
}

impl<S> Layer<S> for Tracked {
    type Service = TrackedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Settings::default().layer_of(inner, false)
    }
}

// === impl Named ===

impl Named {
    /// See [`Tracked::client`].
    ///
    /// # Errors
    ///
    /// As those of [`Client::try_from`].
    pub fn client(&self, config: Config) -> kube::Result<Client> {
        Settings::of(self.identity.clone()).client(config)
    }

    /// See [`Tracked::try_default`].
    ///
    /// # Errors
    ///
    /// There is no configuration, or none that works.
    pub async fn try_default(&self) -> kube::Result<Client> {
        let config = Config::infer().await;
        self.client(config.map_err(kube::Error::InferConfig)?)
    }

    /// See [`Tracked::wrap`].
    #[must_use]
    pub fn wrap(&self, client: Client) -> Client {
        wrapped(self.identity.clone(), client)
    }
}

impl<S> Layer<S> for Named {
    type Service = TrackedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Settings::of(self.identity.clone()).layer_of(inner, false)
    }
}

/// A client that sends through `client`.
fn wrapped(identity: Identity, client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let valid_until = *client.valid_until();
    let send = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    let service = Settings::of(identity).layer_of(send, false);
    Client::new(service, namespace).with_valid_until(valid_until)
}

#[cfg(test)]
mod tests;
