//! The embedded server as a scenario sees it: what is there, and what the program asked for.

use homeostat_apiserver::{ApiServer, Faults, Request, Verb};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    client::Body,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    fmt::Debug,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tower::ServiceBuilder;

use futures::TryStreamExt;

/// What the requests of programs have in their `User-Agent`; those of scenarios have none.
const PROGRAM: &str = "program";

/// How long anything that is waited for may take, on the paused clock.
const DEADLINE: Duration = Duration::from_secs(3600);

/// A server and the requests of the program that runs against it.
pub(crate) struct Cluster {
    server: ApiServer,
    accepted: Arc<Mutex<Vec<String>>>,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn start() -> Self {
        Self {
            server: ApiServer::builder().build(),
            accepted: Arc::default(),
        }
    }

    /// The client of the scenario.
    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    /// The client of the program.
    pub(crate) fn program(&self) -> Client {
        let accepted = Arc::clone(&self.accepted);
        let service = ServiceBuilder::new()
            .map_request(move |mut request: http::Request<Body>| {
                let agent = http::HeaderValue::from_static(PROGRAM);
                request
                    .headers_mut()
                    .insert(http::header::USER_AGENT, agent);
                let accept = request.headers().get(http::header::ACCEPT);
                let accept = accept.and_then(|value| value.to_str().ok());
                let mut accepted = accepted.lock().unwrap_or_else(PoisonError::into_inner);
                accepted.push(accept.unwrap_or_default().to_owned());
                request
            })
            .service(self.server.service());
        Client::new(service, "default")
    }

    /// A typed client of the scenario for the namespace `default`.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client())
    }

    /// The `Accept` headers of the program's requests.
    pub(crate) fn accepted(&self) -> Vec<String> {
        self.accepted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn faults(&self) -> Faults {
        self.server.faults()
    }

    /// Ends all watches, and forgets what they could go on from, as a server that restarts does.
    pub(crate) fn restart(&self) {
        self.server.compact();
        self.server.faults().drop_watches();
    }

    /// The requests of the program.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let mut all = self.server.requests().all();
        all.retain(|request| request.user_agent == PROGRAM);
        all
    }

    /// How many watches of a resource the program has opened.
    pub(crate) fn watches_of(&self, resource: &str) -> usize {
        let requests = self.requests();
        let watches = requests
            .iter()
            .filter(|request| request.verb == Verb::Watch && request.resource == resource);
        watches.count()
    }

    /// What the program has stored or removed since this was last asked, as `update secrets a/b`.
    /// An object that is created has no name in its request.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        let requests = self.server.requests().take();
        let writes = requests
            .iter()
            .filter(|request| request.user_agent == PROGRAM && request.changed);
        writes.map(write).collect()
    }
}

fn write(request: &Request) -> String {
    let verb = format!("{:?}", request.verb).to_lowercase();
    let place = [&request.namespace, &request.name, &request.subresource];
    let place: Vec<&str> = place
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    format!("{verb} {} {}", request.resource, place.join("/"))
}

/// Runs a program while a scenario goes on. The program must not end before.
pub(crate) async fn during<T>(
    program: impl Future<Output = ()>,
    scenario: impl Future<Output = T>,
) -> T {
    tokio::select! {
        () = program => panic!("the program ended"),
        result = timeout(DEADLINE * 24, scenario) => result.expect("the scenario comes to its end"),
    }
}

/// Lets an hour go by, in which everything that is under way comes to its end.
pub(crate) async fn an_hour() {
    sleep(Duration::from_secs(3600)).await;
}

/// Waits until there is such an object, and fails with what was there instead.
pub(crate) async fn until<K>(api: &Api<K>, name: &str, wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut last = None;
    let found = follow(api, name, |state: Option<&K>| {
        last = state.cloned();
        state.is_some_and(&wanted)
    });
    let found = timeout(DEADLINE, found).await;
    let found = found.unwrap_or_else(|_| panic!("{name} is not as wanted: {last:#?}"));
    found.expect("a missing object is not as wanted")
}

/// Waits until any object is as wanted.
pub(crate) async fn until_any<K>(api: &Api<K>, wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let found = follow(api, "", |state: Option<&K>| state.is_some_and(&wanted));
    let found = timeout(DEADLINE, found).await;
    let found = found.expect("an object becomes as wanted");
    found.expect("a missing object is not as wanted")
}

/// Waits until there is no such object.
pub(crate) async fn until_gone<K>(api: &Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let gone = timeout(DEADLINE, follow(api, name, |state| state.is_none())).await;
    gone.unwrap_or_else(|_| panic!("{name} is still there"));
}

/// Follows an object, with nothing but kube's client, to the first state that is as wanted. Without a
/// name, all of them.
async fn follow<K>(
    api: &Api<K>,
    name: &str,
    mut wanted: impl FnMut(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let selector = if name.is_empty() {
        String::new()
    } else {
        format!("metadata.name={name}")
    };
    loop {
        let list = ListParams::default().fields(&selector);
        let list = api.list(&list).await.expect("the server lists");
        let version = list.metadata.resource_version.unwrap_or_default();
        let found = list.items.iter().find(|object| wanted(Some(object)));
        if found.is_some() || (list.items.is_empty() && wanted(None)) {
            return found.cloned();
        }
        let params = WatchParams::default().fields(&selector);
        let events = api.watch(&params, &version).await;
        let mut events = pin!(events.expect("the server lets watch"));
        // The server ends a watch after a while.
        while let Ok(Some(event)) = events.try_next().await {
            let state = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(object),
                WatchEvent::Deleted(_) => None,
                WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
            };
            if wanted(state.as_ref()) {
                return state;
            }
        }
    }
}

/// Stores an object in the namespace of `api`.
pub(crate) async fn create<K>(api: &Api<K>, object: &K) -> K
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
{
    let created = api.create(&PostParams::default(), object).await;
    created.expect("the server takes the object")
}

/// Changes an object as a merge patch says.
pub(crate) async fn merge<K>(api: &Api<K>, name: &str, patch: Value) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let params = PatchParams::default();
    let merged = api.patch(name, &params, &Patch::Merge(patch)).await;
    merged.expect("the server takes the patch")
}

/// Changes the status of an object as a merge patch says.
pub(crate) async fn merge_status<K>(api: &Api<K>, name: &str, patch: Value) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let params = PatchParams::default();
    let merged = api.patch_status(name, &params, &Patch::Merge(patch)).await;
    merged.expect("the server takes the status")
}

/// Deletes an object; finalizers may keep it.
pub(crate) async fn delete<K>(api: &Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let deleted = api.delete(name, &DeleteParams::default()).await;
    deleted.expect("the server takes the deletion");
}

/// Makes the server serve a kind.
pub(crate) async fn serve<K: CustomResourceExt>(cluster: &Cluster) {
    let definitions = Api::<CustomResourceDefinition>::all(cluster.client());
    create(&definitions, &K::crd()).await;
}

/// An object as its JSON says.
pub(crate) fn from<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("the object fits its type")
}

/// A config map with this data.
pub(crate) fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let entries = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let mut map = ConfigMap {
        data: Some(entries.collect()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name.to_owned());
    map
}

/// What a config map says under a key.
pub(crate) fn entry<'a>(map: &'a ConfigMap, key: &str) -> Option<&'a str> {
    map.data.as_ref()?.get(key).map(String::as_str)
}

/// The value of a label.
pub(crate) fn label<'a>(object: &'a impl ResourceExt, key: &str) -> Option<&'a str> {
    object.labels().get(key).map(String::as_str)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(object: &'a impl ResourceExt, key: &str) -> Option<&'a str> {
    object.annotations().get(key).map(String::as_str)
}
