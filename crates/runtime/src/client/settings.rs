//! How a client for controllers sends requests.

use super::{run::identity, service::TrackedService};
use crate::Identity;
use kube::{Client, Config, client::ClientBuilder};
use std::time::Duration;
use tower::Layer;

/// How long a server may be silent by default. It is longer than the ten seconds that a server gives an admission
/// webhook by default, and short enough that a server that accepts connections and says nothing is noticed soon.
pub(super) const SILENCE: Duration = Duration::from_secs(15);

/// How a client sends requests, where it is to be otherwise than [`Tracked::client`](super::Tracked::client) has it.
///
/// ```
/// use homeostat::client::Settings;
/// use kube::{Client, client::ClientBuilder};
/// use std::time::Duration;
///
/// // A server whose admission webhooks may take 30 s.
/// fn patient(config: kube::Config) -> kube::Result<Client> {
///     Settings::default().silence(Duration::from_secs(40)).client(config)
/// }
///
/// // As a layer, in a client that you put together yourself.
/// fn build(mut config: kube::Config) -> kube::Result<Client> {
///     config.default_retry = false;
///     Ok(ClientBuilder::try_from(config)?.with_layer(&Settings::default()).build())
/// }
/// ```
///
/// Used as a layer it says that you know how the client below it retries, so a controller does not warn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub(super) silence: Option<Duration>,
    hidden_retries: bool,
    identity: Option<Identity>,
}

impl Settings {
    /// How long the server may be silent before a request fails: until its answer begins, and then between the parts
    /// of the answer. 15 s by default; `None` for any time.
    ///
    /// Watches, logs and connections such as `exec` are not bounded by it. What waits in vain holds one of the
    /// controller's slots ([`Config::concurrency`](crate::Config::concurrency)).
    #[must_use]
    pub fn silence(mut self, longest: impl Into<Option<Duration>>) -> Self {
        self.silence = longest.into();
        self
    }

    /// Whether kube's client answers 429, 503 and 504 by sending the request again by itself; not by default.
    ///
    /// It does so up to 15 times with delays that double, so that one request can take some minutes, and the
    /// controller has one slot less for as long. [`silence`](Self::silence) bounds that too.
    #[must_use]
    pub fn hidden_retries(mut self, retries: bool) -> Self {
        self.hidden_retries = retries;
        self
    }

    /// The name by which the program is known; see [`Tracked::named`](super::Tracked::named).
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let identity = Identity::new(name);
        identity.give();
        self.identity = Some(identity);
        self
    }

    /// The same for a name that was given before.
    pub(super) fn of(identity: Identity) -> Self {
        Self {
            identity: Some(identity),
            ..Self::default()
        }
    }

    /// The layer's service; `settled` says whether it is known how the client below sends requests again.
    pub(super) fn layer_of<S>(&self, inner: S, settled: bool) -> TrackedService<S> {
        let identity = self.identity.clone().unwrap_or_else(identity);
        TrackedService::new(inner, self.silence, settled, identity)
    }

    /// A client with kube's usual layers and the one that records what reconciles write.
    ///
    /// # Errors
    ///
    /// As those of [`Client::try_from`].
    pub fn client(&self, mut config: Config) -> kube::Result<Client> {
        /// As long as kube waits for a connection by default.
        const CONNECT: Duration = Duration::from_secs(30);
        config.default_retry = self.hidden_retries;
        if let Some(silence) = self.silence
            && config.connect_timeout == Some(CONNECT)
        {
            config.connect_timeout = Some(silence.min(CONNECT));
        }
        Ok(ClientBuilder::try_from(config)?.with_layer(self).build())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            silence: Some(SILENCE),
            hidden_retries: false,
            identity: None,
        }
    }
}

impl<S> Layer<S> for Settings {
    type Service = TrackedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        self.layer_of(inner, true)
    }
}
