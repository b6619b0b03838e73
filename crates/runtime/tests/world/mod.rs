//! A small world on the embedded server: widgets, their config maps, and a controller for them.

#![allow(dead_code, reason = "each file of cases uses its own part of this")]

pub(crate) mod running;
pub(crate) mod wire;

use self::{running::Running, wire::Wire};
use homeostat::{Action, Backoff, Config, Controller, error_policy, watcher};
use homeostat_apiserver::{ApiServer, Fault, FaultGuard, Request, Rule, Verb};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    jiff::Timestamp,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// What somebody wants, and what was last seen of it.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus"
)]
pub(crate) struct WidgetSpec {
    pub(crate) value: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WidgetStatus {
    pub(crate) seen: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_updated: Option<String>,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(pub(crate) &'static str);

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A server, what a test does on it, and the wire of the controller that is tested.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) wire: Wire,
    /// The test's own client, with no wire between it and the server.
    pub(crate) client: Client,
    pub(crate) widgets: Api<Widget>,
    pub(crate) maps: Api<ConfigMap>,
    start: Instant,
    /// The same by the server's clock.
    begin: Timestamp,
}

/// A request of the controller that is tested.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Since the world began.
    pub(crate) at: Duration,
    /// None if the connection was refused.
    pub(crate) status: Option<u16>,
    /// Whether a watch is to begin with the list.
    pub(crate) streams: bool,
    pub(crate) query: Vec<(String, String)>,
}

// === impl World ===

impl World {
    /// A server that serves widgets, with these ones; the value of each is 0.
    pub(crate) async fn new(names: &[&str]) -> Self {
        let world = Self::bare(ApiServer::builder().build());
        world.install().await;
        for name in names {
            world.create(name).await;
        }
        world
    }

    /// A server that does not know of widgets yet.
    pub(crate) fn bare(server: ApiServer) -> Self {
        // Makes the delays of watches and objects the same in each run.
        fastrand::seed(7);
        let client = server.client();
        Self {
            wire: Wire::new(&server),
            widgets: Api::default_namespaced(client.clone()),
            maps: Api::default_namespaced(client.clone()),
            client,
            begin: server.now(),
            server,
            start: Instant::now(),
        }
    }

    /// Makes the server serve widgets.
    pub(crate) async fn install(&self) {
        self.install_as(&Widget::crd()).await;
    }

    /// The same with another definition.
    pub(crate) async fn install_as(&self, definition: &CustomResourceDefinition) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let params = PostParams::default();
        definitions.create(&params, definition).await.unwrap();
    }

    /// Makes the server forget widgets.
    pub(crate) async fn uninstall(&self) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let params = DeleteParams::default();
        definitions
            .delete("widgets.example.com", &params)
            .await
            .unwrap();
    }

    pub(crate) async fn create(&self, name: &str) -> Widget {
        let widget = Widget::new(name, WidgetSpec::default());
        let params = PostParams::default();
        self.widgets.create(&params, &widget).await.unwrap()
    }

    /// Somebody wants something else.
    pub(crate) async fn set_value(&self, name: &str, value: u32) {
        self.patch(name, json!({ "spec": { "value": value } }))
            .await;
    }

    /// Somebody notes what was seen.
    pub(crate) async fn set_seen(&self, name: &str, seen: u32) {
        let patch = Patch::Merge(json!({ "status": { "seen": seen } }));
        let params = PatchParams::default();
        self.widgets
            .patch_status(name, &params, &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.widgets
            .patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        let params = DeleteParams::default();
        self.widgets.delete(name, &params).await.unwrap();
    }

    /// A config map that a widget owns.
    pub(crate) async fn create_child(&self, owner: &str, name: &str) {
        let owner = self.widgets.get(owner).await.unwrap();
        let child = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.into()),
                owner_references: owner.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let params = PostParams::default();
        self.maps.create(&params, &child).await.unwrap();
    }

    /// Somebody writes into a config map.
    pub(crate) async fn touch_child(&self, name: &str, value: u32) {
        let patch = Patch::Merge(json!({ "data": { "value": value.to_string() } }));
        let params = PatchParams::default();
        self.maps.patch(name, &params, &patch).await.unwrap();
    }

    pub(crate) async fn delete_child(&self, name: &str) {
        let params = DeleteParams::default();
        self.maps.delete(name, &params).await.unwrap();
    }

    /// All objects of a kind, as the controller that is tested sees them.
    pub(crate) fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.wire.client())
    }

    /// A controller for all widgets, on the wire.
    pub(crate) fn controller(&self) -> Controller<Widget> {
        Controller::new(self.all(), watcher::Config::default())
    }

    /// The same, which also watches the config maps that widgets own.
    pub(crate) fn controller_of_both(&self) -> Controller<Widget> {
        self.controller()
            .owns(self.all::<ConfigMap>(), watcher::Config::default())
    }

    /// Runs a controller in the background. `reconcile` is told the how manieth run of its object
    /// it is; failures are tried again after the object's backoff.
    pub(crate) fn run<E, Fut>(
        &self,
        controller: Controller<Widget>,
        reconcile: impl FnMut(Arc<Widget>, usize) -> Fut + Send + 'static,
    ) -> Running
    where
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: std::error::Error + Send + 'static,
    {
        self.run_with(controller, reconcile, error_policy::backoff)
    }

    /// The same with another error policy.
    pub(crate) fn run_with<E, Fut>(
        &self,
        controller: Controller<Widget>,
        reconcile: impl FnMut(Arc<Widget>, usize) -> Fut + Send + 'static,
        policy: impl Fn(Arc<Widget>, &E, Arc<()>) -> Action + Send + 'static,
    ) -> Running
    where
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: std::error::Error + Send + 'static,
    {
        Running::start(
            self.wire.client(),
            self.start,
            controller,
            reconcile,
            policy,
        )
    }

    /// Lets a fault meet the requests of the controller that is tested.
    pub(crate) fn inject(&self, rule: Rule, fault: Fault) -> FaultGuard {
        self.server
            .faults()
            .inject(rule.user_agent(wire::USER_AGENT), fault)
    }

    /// All watches end. That of a resource, of which there must be one alone, is answered after a
    /// while, and then by saying that its version is expired: what happens until then no watch tells.
    pub(crate) fn gap(&self, plural: &str, length: Duration) -> [FaultGuard; 2] {
        let faults = [Fault::Delay(length), Fault::Expired];
        let guards = faults.map(|fault| {
            let rule = rule(Verb::Watch, plural).times(1);
            self.inject(rule, fault)
        });
        self.server.faults().drop_watches();
        guards
    }

    /// What the controller asked for, oldest first.
    pub(crate) fn asked(&self, verb: Verb, plural: &str) -> Vec<Asked> {
        let requests = self.server.requests().all();
        requests
            .into_iter()
            .filter(|request| {
                request.user_agent == wire::USER_AGENT
                    && request.verb == verb
                    && request.resource == plural
            })
            .map(|request| Asked::new(request, self.begin))
            .collect()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for a moment, given in seconds since the world began.
    pub(crate) async fn until(&self, seconds: f64) {
        tokio::time::sleep_until(self.start + Duration::from_secs_f64(seconds)).await;
    }
}

/// A rule for one verb and resource.
pub(crate) fn rule(verb: Verb, plural: &str) -> Rule {
    Rule::any().verb(verb).resource(plural)
}

/// Delays of 1, 2, 4, ... seconds, up to a minute, without jitter, so that tests can name them.
pub(crate) fn even_backoff() -> Config {
    Config::default().backoff(Backoff::exponential(SECOND, MINUTE).jitter(0.0))
}

/// What a reconciler returns that has nothing to do.
#[expect(clippy::unnecessary_wraps, reason = "it is what a reconciler returns")]
pub(crate) fn idle() -> Result<Action, Failure> {
    Ok(Action::await_change())
}

/// The time from one moment to a later one.
pub(crate) fn delay(from: Duration, to: Duration) -> Duration {
    to.checked_sub(from).expect("time goes forward")
}

/// Whether a moment or delay is at least `least` seconds and less than half as much more, as with
/// the chance in the delays of a watch.
pub(crate) fn is_delay(delay: Duration, least: f64) -> bool {
    // A timer rounds up to milliseconds.
    let range = least..least * 1.5 + 0.005;
    range.contains(&delay.as_secs_f64())
}

/// The times between requests.
pub(crate) fn gaps(asked: &[Asked]) -> Vec<Duration> {
    asked
        .windows(2)
        .map(|pair| delay(pair[0].at, pair[1].at))
        .collect()
}

// === impl Asked ===

impl Asked {
    fn new(request: Request, begin: Timestamp) -> Self {
        let since = request.at.duration_since(begin).unsigned_abs();
        Self {
            at: since,
            status: request.status,
            streams: request
                .query
                .contains(&("sendInitialEvents".into(), "true".into())),
            query: request.query,
        }
    }

    /// The value of a parameter; empty if there is none.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }
}
