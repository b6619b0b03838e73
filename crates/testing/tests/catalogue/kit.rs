//! What the sample reconcilers are made of.

use futures::{StreamExt, future::BoxFuture};
use homeostat::{
    Action, Controller, WatchStreamExt, error_policy,
    reflector::{self, Store},
    watcher,
};
use homeostat_testing::{Scenario, State};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service},
    },
};
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex},
};

/// What somebody wants.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Thing",
    namespaced,
    status = "ThingStatus"
)]
pub(crate) struct ThingSpec {
    pub(crate) size: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ThingStatus {
    pub(crate) step: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) child: Option<String>,
    pub(crate) list: Option<Vec<String>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("{0}")]
    Text(&'static str),
}

/// Whether a reconciler has its mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Faulty,
    Twin,
}

pub(crate) type Done = Result<Action, Failure>;
pub(crate) type Property = fn(&State) -> Result<(), String>;
pub(crate) type Work = fn(Arc<Hands>, Arc<Thing>) -> BoxFuture<'static, Done>;

/// What is outside of the cluster: things with an owner. It survives the operator.
#[derive(Debug, Default)]
pub(crate) struct Cloud {
    things: Mutex<BTreeMap<String, String>>,
    made: Mutex<u32>,
}

/// What a reconciler works with. Each process has its own.
pub(crate) struct Hands {
    pub(crate) client: Client,
    pub(crate) side: Side,
    pub(crate) cloud: Arc<Cloud>,
    /// What the process remembers.
    pub(crate) memory: Mutex<BTreeMap<String, String>>,
    /// Another number in each process.
    pub(crate) chance: u64,
    /// The config maps, as a cache shows them.
    pub(crate) maps: Store<ConfigMap>,
}

/// A sample reconciler.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of the sample that has nothing to do with the others"
)]
pub(crate) struct Case {
    /// Its row in the literature, or what it is about.
    pub(crate) name: &'static str,
    /// The check that finds its mistake.
    pub(crate) detector: &'static str,
    pub(crate) work: Work,
    /// What the user changes in the spec, one after the other.
    pub(crate) steps: &'static [&'static str],
    /// Whether something is outside of the cluster.
    pub(crate) cloud: bool,
    /// What the faulty one does not watch.
    pub(crate) blind: bool,
    /// Whether the faulty one takes its cache for the present.
    pub(crate) trusting: bool,
    /// A property that holds always.
    pub(crate) always: Option<Property>,
    /// Whether an autoscaler has the replicas of the deployments.
    pub(crate) autoscaled: bool,
    /// Whether writes in vain count.
    pub(crate) frugal: bool,
}

/// The finalizer of the samples.
const FINALIZER: &str = "example.com/cleanup";

// === impl Case ===

impl Case {
    pub(crate) const fn new(name: &'static str, detector: &'static str, work: Work) -> Self {
        Self {
            name,
            detector,
            work,
            steps: &[],
            cloud: false,
            blind: false,
            trusting: false,
            always: None,
            autoscaled: false,
            frugal: false,
        }
    }

    pub(crate) const fn steps(mut self, steps: &'static [&'static str]) -> Self {
        self.steps = steps;
        self
    }

    pub(crate) const fn cloud(mut self) -> Self {
        self.cloud = true;
        self
    }

    pub(crate) const fn blind(mut self) -> Self {
        self.blind = true;
        self
    }

    pub(crate) const fn trusting(mut self) -> Self {
        self.trusting = true;
        self
    }

    pub(crate) const fn autoscaled(mut self) -> Self {
        self.autoscaled = true;
        self
    }

    pub(crate) const fn frugal(mut self) -> Self {
        self.frugal = true;
        self
    }

    pub(crate) const fn always(mut self, holds: Property) -> Self {
        self.always = Some(holds);
        self
    }

    pub(crate) fn scenario(self, side: Side) -> Scenario<Cloud> {
        let mut scenario = Scenario::with_external(Cloud::default)
            .crd::<Thing>()
            .controller_with(move |client, cloud| run(self, side, client, cloud))
            .given(
                "{ apiVersion: example.com/v1, kind: Thing, metadata: { name: a }, \
                 spec: { size: '1', mode: 'on' } }",
            )
            .threads(1);
        for step in self.steps {
            let spec: Value = serde_json::from_str(step).unwrap();
            scenario = scenario.step(step, move |client| patch_spec(client, spec.clone()));
        }
        if self.autoscaled {
            scenario = scenario.autoscaled("deployments.apps");
        }
        scenario = scenario.frugal(self.frugal);
        if self.cloud {
            scenario = scenario.ledger(Cloud::shown);
        }
        if let Some(holds) = self.always {
            scenario = scenario.invariant("always", holds);
        }
        scenario
    }
}

async fn patch_spec(client: Client, spec: Value) -> kube::Result<()> {
    let things: Api<Thing> = Api::default_namespaced(client);
    // A list is of changes shortly after each other.
    let changes = if let Value::Array(changes) = spec {
        changes
    } else {
        vec![spec]
    };
    for change in changes {
        let patch = Patch::Merge(json!({ "spec": change }));
        things.patch("a", &PatchParams::default(), &patch).await?;
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    }
    Ok(())
}

fn run(
    case: Case,
    side: Side,
    client: Client,
    cloud: Arc<Cloud>,
) -> impl futures::Stream<Item = Result<String, String>> {
    let all = watcher::Config::default;
    let (maps, writer) = reflector::store();
    let stream = watcher(Api::<ConfigMap>::all(client.clone()), all())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    let hands = Hands {
        client: client.clone(),
        side,
        cloud,
        memory: Mutex::default(),
        chance: RandomState::new().hash_one(0),
        maps,
    };
    let mut controller = Controller::new(Api::<Thing>::all(client.clone()), all());
    if !(case.blind && side == Side::Faulty) {
        controller = controller
            .owns_stream(stream)
            .owns(Api::<Secret>::all(client.clone()), all())
            .owns(Api::<Service>::all(client.clone()), all())
            .owns(Api::<Deployment>::all(client), all());
    }
    let trusting = case.trusting && side == Side::Faulty;
    let reconcile = move |thing: Arc<Thing>, hands: Arc<Hands>| async move {
        if !trusting && !is_deleting(&thing) {
            hands.expect_present(&thing).await?;
        }
        (case.work)(hands, thing).await
    };
    controller
        .run(reconcile, error_policy::backoff, Arc::new(hands))
        .map(|item| {
            item.map(|done| format!("{done:?}"))
                .map_err(|error| error.to_string())
        })
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a reconciler returns")]
pub(crate) fn done() -> Done {
    Ok(Action::await_change())
}

/// A text of a config map.
pub(crate) fn text<'a>(map: &'a ConfigMap, key: &str) -> &'a str {
    let data = map.data.as_ref();
    data.and_then(|data| data.get(key))
        .map_or("", String::as_str)
}

/// A step that a status tells.
pub(crate) fn step(thing: &Thing) -> &str {
    let status = thing.status.as_ref();
    status
        .and_then(|status| status.step.as_deref())
        .unwrap_or_default()
}

/// Whether an error is of this reason.
pub(crate) fn is(error: &kube::Error, reason: &str) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == reason)
}

pub(crate) fn is_deleting(thing: &Thing) -> bool {
    thing.metadata.deletion_timestamp.is_some()
}

// === impl Cloud ===

impl Cloud {
    pub(crate) fn make(&self, id: &str, owner: &str) {
        self.things.lock().unwrap().insert(id.into(), owner.into());
    }

    /// Makes something, and says how it is called.
    pub(crate) fn make_any(&self, owner: &str) -> String {
        let mut made = self.made.lock().unwrap();
        *made += 1;
        let id = format!("thing-{made}");
        self.make(&id, owner);
        id
    }

    pub(crate) fn remove_of(&self, owner: &str) {
        self.things.lock().unwrap().retain(|_, of| of != owner);
    }

    pub(crate) fn remove(&self, id: &str) {
        self.things.lock().unwrap().remove(id);
    }

    fn shown(&self) -> Value {
        let things = self.things.lock().unwrap();
        json!({ "count": things.len(), "owners": things.values().collect::<Vec<_>>() })
    }
}

// === impl Hands ===

impl Hands {
    pub(crate) fn is_faulty(&self) -> bool {
        self.side == Side::Faulty
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn get<K>(&self, name: &str) -> Result<Option<K>, Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        Ok(self.api::<K>().get_opt(name).await?)
    }

    /// Fails if this object is not the one that is there: what is done for it would be done to another one.
    pub(crate) async fn expect_present(&self, thing: &Thing) -> Result<(), Failure> {
        match self.get::<Thing>(&thing.name_any()).await? {
            Some(live) if live.uid() == thing.uid() => Ok(()),
            Some(_) | None => Err(Failure::Text("the cache shows an object that is gone")),
        }
    }

    pub(crate) async fn map(&self, name: &str) -> Result<Option<ConfigMap>, Failure> {
        self.get(name).await
    }

    /// Creates an object that the thing owns.
    pub(crate) async fn create<K>(&self, thing: &Thing, body: Value) -> Result<K, Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let child: K = owned(thing, body);
        Ok(self
            .api::<K>()
            .create(&PostParams::default(), &child)
            .await?)
    }

    pub(crate) async fn create_map(
        &self,
        thing: &Thing,
        name: &str,
        data: Value,
    ) -> Result<(), Failure> {
        let body = json!({ "metadata": { "name": name }, "data": data });
        self.create::<ConfigMap>(thing, body).await.map(drop)
    }

    /// Makes an object be like this, and leaves what is not said to others.
    pub(crate) async fn apply<K>(&self, thing: &Thing, body: Value) -> Result<(), Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned + Serialize,
    {
        let name = body["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut body = body;
        body["apiVersion"] = K::api_version(&()).into();
        body["kind"] = K::kind(&()).into();
        body["metadata"]["ownerReferences"] = json!([thing.owner_ref(&())]);
        let params = PatchParams::apply("op").force();
        self.api::<K>()
            .patch(&name, &params, &Patch::Apply(body))
            .await?;
        Ok(())
    }

    pub(crate) async fn apply_map(
        &self,
        thing: &Thing,
        name: &str,
        data: Value,
    ) -> Result<(), Failure> {
        let body = json!({ "metadata": { "name": name }, "data": data });
        self.apply::<ConfigMap>(thing, body).await
    }

    pub(crate) async fn set(&self, name: &str, data: Value) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({ "data": data }));
        self.api::<ConfigMap>()
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub(crate) async fn delete<K>(&self, name: &str) -> Result<(), Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + DeserializeOwned,
    {
        match self.api::<K>().delete(name, &DeleteParams::default()).await {
            Err(error) if is(&error, "NotFound") => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    /// Deletes this very object.
    pub(crate) async fn delete_exactly(&self, map: &ConfigMap) -> Result<(), Failure> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: map.uid(),
                resource_version: map.resource_version(),
            }),
            ..DeleteParams::default()
        };
        match self
            .api::<ConfigMap>()
            .delete(&map.name_any(), &params)
            .await
        {
            Err(error) if is(&error, "NotFound") => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    pub(crate) async fn list(&self) -> Result<Vec<ConfigMap>, Failure> {
        let params = ListParams::default().labels("of=a");
        Ok(self.api::<ConfigMap>().list(&params).await?.items)
    }

    /// Writes the status, if it says something new.
    pub(crate) async fn status(&self, thing: &Thing, status: Value) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({ "status": status }));
        let params = PatchParams::default();
        let name = thing.name_any();
        match self
            .api::<Thing>()
            .patch_status(&name, &params, &patch)
            .await
        {
            Err(error) if is(&error, "NotFound") => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    pub(crate) fn has_finalizer(thing: &Thing) -> bool {
        thing.finalizers().iter().any(|name| name == FINALIZER)
    }

    /// Adds or removes the samples' finalizer, and leaves others'.
    pub(crate) async fn hold(&self, thing: &Thing, held: bool) -> Result<(), Failure> {
        let mut finalizers = thing.finalizers().to_vec();
        finalizers.retain(|name| name != FINALIZER);
        if held {
            finalizers.push(FINALIZER.into());
        }
        let version = thing.resource_version();
        self.set_finalizers(thing, json!(finalizers), version).await
    }

    pub(crate) async fn set_finalizers(
        &self,
        thing: &Thing,
        finalizers: Value,
        version: Option<String>,
    ) -> Result<(), Failure> {
        let mut metadata = json!({ "finalizers": finalizers });
        if let Some(version) = version {
            metadata["resourceVersion"] = version.into();
        }
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let things = self.api::<Thing>();
        match things
            .patch(&thing.name_any(), &PatchParams::default(), &patch)
            .await
        {
            // What is gone needs none any more; what goes on without one leaks.
            Err(error) if is_deleting(thing) && is(&error, "NotFound") => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }

    pub(crate) fn recall(&self, key: &str) -> Option<String> {
        self.memory.lock().unwrap().get(key).cloned()
    }

    pub(crate) fn remember(&self, key: &str, value: &str) -> Option<String> {
        self.memory.lock().unwrap().insert(key.into(), value.into())
    }
}

/// An object of this content, owned by a thing.
pub(crate) fn owned<K: DeserializeOwned>(thing: &Thing, mut body: Value) -> K {
    body["metadata"]["ownerReferences"] = json!([thing.owner_ref(&())]);
    serde_json::from_value(body).unwrap()
}
