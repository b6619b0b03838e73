//! Children on the embedded server: what is written, what is not, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use homeostat::{
    Classify, ErrorClass, children,
    reflector::{self, Store, store::Writer},
    watcher::Event,
};
use homeostat_apiserver::{ApiServer, Fault, Request, Rule, Verb};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Namespace, Secret, Service},
        rbac::v1::{ClusterRole, RoleBinding},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt::Debug, time::Duration};
use tokio::time::sleep;

const MANAGER: &str = "site-operator";

/// A server, and an object that owns others.
struct World {
    server: ApiServer,
    client: Client,
    owner: ConfigMap,
}

fn from<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn map(name: &str, data: Value) -> ConfigMap {
    let mut object = json!({ "metadata": { "name": name } });
    object["data"] = data;
    from(object)
}

fn is_write(request: &Request) -> bool {
    use Verb::{Create, Delete, DeleteCollection, Patch, Update};
    [Create, Update, Patch, Delete, DeleteCollection].contains(&request.verb)
}

impl World {
    async fn new() -> Self {
        Self::on(ApiServer::builder().build()).await
    }

    async fn on(server: ApiServer) -> Self {
        let client = server.client();
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let owner = maps
            .create(&PostParams::default(), &map("owner", json!({})))
            .await
            .unwrap();
        let _setup = server.requests().take();
        Self {
            server,
            client,
            owner,
        }
    }

    fn set(&self) -> children::Set {
        children::Set::new(&self.client, &self.owner, MANAGER)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// The requests since the last look, as `patch` or `patch 409`.
    fn requests(&self) -> Vec<String> {
        let requests = self.server.requests().take().into_iter();
        requests
            .map(|request| {
                let verb = format!("{:?}", request.verb).to_lowercase();
                match request.status {
                    Some(200 | 201) => verb,
                    status => format!("{verb} {}", status.unwrap_or_default()),
                }
            })
            .collect()
    }

    /// Somebody else patches an object.
    async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone,
        K: Debug + DeserializeOwned,
    {
        let params = PatchParams {
            field_manager: Some("somebody".into()),
            ..PatchParams::default()
        };
        let api = self.api::<K>();
        api.patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap();
        let _theirs = self.server.requests().take();
    }

    async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone,
        K: Debug + DeserializeOwned,
    {
        let object = self.api::<K>().get(name).await.unwrap();
        let _read = self.server.requests().take();
        object
    }
}

/// A store with these objects in it.
fn store<K>(objects: Vec<K>) -> (Store<K>, Writer<K>)
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for object in objects {
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
    (store, writer)
}

fn deployment() -> Deployment {
    let labels = json!({ "app": "web" });
    from(json!({
        "metadata": { "name": "web", "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "automountServiceAccountToken": false,
                    "containers": [{
                        "name": "c", "image": "i", "args": ["--once"],
                        "ports": [{ "containerPort": 53 }, { "containerPort": 53, "protocol": "UDP" }],
                        "env": [
                            { "name": "EMPTY", "value": "" },
                            { "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
                        ],
                        "resources": { "limits": { "cpu": "1000m", "memory": "1024Mi" } },
                        "readinessProbe": { "httpGet": { "port": 80 } },
                    }],
                    "volumes": [
                        { "name": "scratch", "emptyDir": {} },
                        { "name": "page", "configMap": { "name": "page" } },
                    ],
                },
            },
        },
    }))
}

fn stateful_set() -> StatefulSet {
    let labels = json!({ "app": "db" });
    from(json!({
        "metadata": { "name": "db" },
        "spec": {
            "serviceName": "db",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": "1024Mi" } },
                },
            }],
        },
    }))
}

fn service() -> Service {
    from(json!({
        "metadata": { "name": "web" },
        "spec": {
            "type": "NodePort", "selector": { "app": "web" },
            "ports": [{ "name": "dns", "port": 53 }, { "name": "udp", "port": 53, "protocol": "UDP" }],
        },
    }))
}

fn secret() -> Secret {
    from(json!({
        "metadata": { "name": "login" },
        "data": { "user": "YWRtaW4=" }, "stringData": { "password": "geheim" },
    }))
}

fn role_binding() -> RoleBinding {
    from(json!({
        "metadata": { "name": "read" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "read" },
        "subjects": [],
    }))
}

/// Applies a child of each of these kinds. Returns the names of those that were written.
async fn apply_all(set: &children::Set) -> Vec<String> {
    async fn apply<K>(set: &children::Set, child: K) -> Option<String>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let applied = set.apply(child).await.unwrap();
        let written = applied.is_written();
        written.then(|| format!("{} {}", K::kind(&()), applied.name_any()))
    }
    let written = [
        apply(set, map("page", json!({ "index": "hello" }))).await,
        apply(set, deployment()).await,
        apply(set, stateful_set()).await,
        apply(set, service()).await,
        apply(set, secret()).await,
        apply(set, role_binding()).await,
    ];
    written.into_iter().flatten().collect()
}

/// H8, H11, H12, H13, H18, H20, H26, H27, A1, A2, B26: defaults, allocated addresses, plain texts of secrets, templates that cannot be changed, and lists that are empty are no
/// differences, however often they are looked at.
#[tokio::test(start_paused = true)]
async fn children_are_written_once() {
    let world = World::new().await;
    assert_eq!(apply_all(&world.set()).await.len(), 6);
    // The server did its part: whoever compares all of what is there finds a difference for ever.
    let live: Deployment = world.get("web").await;
    let spec = live.spec.unwrap();
    assert_eq!(spec.replicas, Some(1));
    let pod = spec.template.spec.unwrap();
    assert_eq!(pod.restart_policy.as_deref(), Some("Always"));
    let env = pod.containers[0].env.as_ref().unwrap();
    let field = env[1]
        .value_from
        .as_ref()
        .unwrap()
        .field_ref
        .as_ref()
        .unwrap();
    assert_eq!(field.api_version.as_deref(), Some("v1"));
    let live: Service = world.get("web").await;
    let address = live.spec.unwrap().cluster_ip;
    assert!(address.is_some());
    assert!(world.get::<Secret>("login").await.string_data.is_none());

    for _ in 0..100 {
        // A time that is written by mistake shows only when it moves.
        sleep(Duration::from_millis(1_100)).await;
        assert_eq!(apply_all(&world.set()).await, Vec::<String>::new());
        assert_eq!(world.requests(), ["get"; 6]);
    }

    // What is missing or was changed is written again, and nothing else.
    world
        .api::<Secret>()
        .delete("login", &DeleteParams::default())
        .await
        .unwrap();
    world
        .patch::<ConfigMap>("page", json!({ "data": { "index": "defaced" } }))
        .await;
    let error = world
        .set()
        .apply(map("page", json!({ "index": "hello" })))
        .await
        .unwrap_err();
    assert!(matches!(error, children::Error::Conflict { .. }), "{error}");
    let written = apply_all(&world.set().force()).await;
    assert_eq!(written, ["ConfigMap page", "Secret login"]);
    let live: Service = world.get("web").await;
    assert_eq!(live.spec.unwrap().cluster_ip, address);
}

/// H11, B26: with a cache that shows the child as it should be there is no request at all; one that
/// does not say who owns what is no help.
#[tokio::test(start_paused = true)]
async fn a_cache_spares_the_look() {
    let world = World::new().await;
    world.set().apply(deployment()).await.unwrap();
    let live: Deployment = world.get("web").await;
    let (cache, mut writer) = store(vec![live.clone()]);
    let set = || world.set().cache(&cache);
    let applied = set().apply(deployment()).await.unwrap();
    assert!(!applied.is_written() && !applied.is_leaving());
    assert_eq!(applied.spec.as_ref().unwrap().replicas, Some(1));
    assert_eq!(world.requests(), Vec::<String>::new());

    // A cache of another kind is none.
    world
        .set()
        .cache(&store(vec![map("web", json!({}))]).0)
        .apply(deployment())
        .await
        .unwrap();
    assert_eq!(world.requests(), ["get"]);

    let mut bare = live.clone();
    bare.metadata.managed_fields = None;
    bare.metadata.resource_version = Some("10001".into());
    writer.apply_watcher_event(&Event::Apply(bare));
    assert!(!set().apply(deployment()).await.unwrap().is_written());
    assert_eq!(world.requests(), ["get"]);

    // One that is behind: the server knows better.
    let mut stale = live.clone();
    stale.spec.as_mut().unwrap().replicas = Some(7);
    stale.metadata.owner_references = None;
    stale.metadata.resource_version = Some("10002".into());
    writer.apply_watcher_event(&Event::Apply(stale));
    assert!(!set().apply(deployment()).await.unwrap().is_written());
    let mut gone = live;
    gone.metadata.resource_version = Some("10003".into());
    writer.apply_watcher_event(&Event::Delete(gone));
    assert!(!set().apply(deployment()).await.unwrap().is_written());
    assert_eq!(world.requests(), ["get", "get"]);
}

/// H13, H15, A4: a field that was desired once is removed; what others say stays.
#[tokio::test(start_paused = true)]
async fn what_is_not_desired_any_more_is_removed() {
    let world = World::new().await;
    let child = |data: Value| map("page", data);
    world
        .set()
        .apply(child(json!({ "a": "1", "b": "2" })))
        .await
        .unwrap();
    let theirs = json!({
        "data": { "theirs": "x" },
        "metadata": { "annotations": { "theirs": "x" }, "labels": { "theirs": "x" } },
    });
    world.patch::<ConfigMap>("page", theirs).await;
    let applied = world
        .set()
        .apply(child(json!({ "a": "1", "b": "2" })))
        .await
        .unwrap();
    assert!(!applied.is_written(), "what others add is no difference");

    let applied = world.set().apply(child(json!({ "a": "1" }))).await.unwrap();
    assert!(applied.is_written());
    assert_eq!(json!(applied.data), json!({ "a": "1", "theirs": "x" }));
    assert_eq!(applied.annotations()["theirs"], "x");
    assert_eq!(applied.labels()["theirs"], "x");
    let applied = world.set().apply(child(json!({ "a": "1" }))).await.unwrap();
    assert!(!applied.is_written());
    // Somebody takes our field away altogether.
    world
        .patch::<ConfigMap>("page", json!({ "data": { "a": null } }))
        .await;
    let applied = world.set().apply(child(json!({ "a": "1" }))).await.unwrap();
    assert!(applied.is_written());
    assert_eq!(applied.into_object().data.as_ref().unwrap()["a"], "1");
}

/// A3: a field of somebody else's is told by name, with its manager, and taken over only if asked for.
#[tokio::test(start_paused = true)]
async fn conflicts_are_told_field_by_field() {
    let world = World::new().await;
    world
        .set()
        .apply(map("page", json!({ "a": "1", "b": "1" })))
        .await
        .unwrap();
    let theirs = map("page", json!({ "a": "2" }));
    let params = PatchParams::apply("kubectl-edit").force();
    world
        .api::<ConfigMap>()
        .patch("page", &params, &Patch::Apply(theirs))
        .await
        .unwrap();
    let _theirs = world.requests();

    let wanted = || map("page", json!({ "a": "1", "b": "2" }));
    let error = world.set().apply(wanted()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "other managers own fields of ConfigMap default/page: .data.a (kubectl-edit)"
    );
    assert_eq!(error.classify(), ErrorClass::Transient);
    let children::Error::Conflict { conflicts, .. } = error else {
        panic!("{error}");
    };
    let [conflict] = &*conflicts else {
        panic!("{conflicts:?}");
    };
    assert_eq!(
        (&*conflict.field, &*conflict.manager),
        (".data.a", "kubectl-edit")
    );
    assert_eq!(world.requests(), ["get", "patch 409"]);
    assert_eq!(
        json!(world.get::<ConfigMap>("page").await.data),
        json!({ "a": "2", "b": "1" })
    );

    let applied = world.set().force().apply(wanted()).await.unwrap();
    assert_eq!(json!(applied.data), json!({ "a": "1", "b": "2" }));
    assert!(!world.set().apply(wanted()).await.unwrap().is_written());
}

/// S1, D5: whose an object is decides what becomes of it.
#[tokio::test(start_paused = true)]
async fn objects_of_others_are_left_alone() {
    // Their owners do not exist, so it would collect them.
    let world = World::on(ApiServer::builder().garbage_collection(false).build()).await;
    let create = async |name: &str, owner: Value, finalizers: Value| {
        let object: ConfigMap = from(json!({ "metadata": {
            "name": name, "finalizers": finalizers, "ownerReferences": owner,
        } }));
        let maps = world.api::<ConfigMap>();
        maps.create(&PostParams::default(), &object).await.unwrap();
    };
    let owned = |kind: &str, name: &str| json!([{ "apiVersion": "v1", "kind": kind, "name": name, "uid": "u0", "controller": true }]);
    create("taken", owned("Pod", "x"), json!([])).await;
    create("earlier", owned("ConfigMap", "owner"), json!([])).await;
    create("nobodys", json!([]), json!([])).await;
    create("leaving", json!([]), json!(["example.com/x"])).await;
    world
        .set()
        .apply(from::<ConfigMap>(json!({
            "metadata": { "name": "ours", "finalizers": ["example.com/x"] },
        })))
        .await
        .unwrap();
    for name in ["leaving", "ours"] {
        let maps = world.api::<ConfigMap>();
        maps.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let _setup = world.requests();

    let apply = async |name: &str| world.set().apply(map(name, json!({ "a": "1" }))).await;
    let error = apply("taken").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap default/taken belongs to Pod/x"
    );
    assert_eq!(error.classify(), ErrorClass::Transient);
    let error = apply("leaving").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "another ConfigMap default/leaving is being deleted"
    );
    assert!(apply("earlier").await.unwrap().is_leaving());
    assert!(apply("ours").await.unwrap().is_leaving());
    assert_eq!(world.requests(), ["get"; 4]);

    let adopted = apply("nobodys").await.unwrap();
    assert!(adopted.is_written());
    let owners = adopted.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].uid, world.owner.uid().unwrap());
    assert_eq!(owners[0].controller, Some(true));
    assert_eq!(owners[0].block_owner_deletion, Some(true));
}

/// S1: an object that takes the name between the look and the write is looked at anew.
#[tokio::test(start_paused = true)]
async fn another_object_in_between() {
    let world = World::on(ApiServer::builder().garbage_collection(false).build()).await;
    let maps = world.api::<ConfigMap>();
    let theirs = |name: &str| -> ConfigMap {
        from(json!({ "metadata": { "name": name, "ownerReferences": [{
            "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u0", "controller": true,
        }] } }))
    };
    for (name, exists) in [("new", false), ("old", true)] {
        if exists {
            world
                .set()
                .apply(map(name, json!({ "a": "0" })))
                .await
                .unwrap();
        }
        let rule = Rule::any().verb(Verb::Patch).times(1);
        let delay = world
            .server
            .faults()
            .inject(rule, Fault::Delay(Duration::from_secs(1)));
        let set = world.set();
        let apply = tokio::spawn(async move { set.apply(map(name, json!({ "a": "1" }))).await });
        sleep(Duration::from_millis(500)).await;
        if exists {
            maps.delete(name, &DeleteParams::default()).await.unwrap();
        }
        maps.create(&PostParams::default(), &theirs(name))
            .await
            .unwrap();
        let error = apply.await.unwrap().unwrap_err();
        assert_eq!(delay.hits(), 1);
        assert!(
            matches!(error, children::Error::Taken { .. }),
            "{name}: {error}"
        );
        let live: ConfigMap = world.get(name).await;
        assert_eq!(
            (live.data, live.metadata.owner_references.unwrap().len()),
            (None, 1)
        );
    }
}

/// D5, section D 46: owners that the garbage collector would not find are refused with an explanation.
#[tokio::test(start_paused = true)]
async fn owners_elsewhere_are_refused() {
    let world = World::new().await;
    let other: ConfigMap = from(json!({ "metadata": { "name": "a", "namespace": "other" } }));
    let error = world.set().apply(other).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "ConfigMap other/a cannot be owned by ConfigMap default/owner: an owner is looked for in the \
         namespace of the child, and where it is not found the garbage collector deletes the child. Put \
         it into the namespace of its owner, or apply it without an owner and delete it with a finalizer"
    );
    assert_eq!(error.classify(), ErrorClass::permanent("InvalidChild"));
    let role: ClusterRole = from(json!({ "metadata": { "name": "a" }, "rules": [] }));
    let error = world.set().apply(role).await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("ClusterRole a cannot be owned by"),
        "{error}"
    );

    let cluster: Api<Namespace> = Api::all(world.client.clone());
    let cluster = cluster.get("default").await.unwrap();
    let _read = world.requests();
    let set = children::Set::new(&world.client, &cluster, MANAGER);
    let error = set.apply(map("a", json!({}))).await.unwrap_err();
    assert!(
        error.to_string().contains("Set metadata.namespace"),
        "{error}"
    );
    let error = set.apply(map("", json!({}))).await.unwrap_err();
    assert_eq!(error.classify(), ErrorClass::permanent("InvalidChild"));
    let nobody = map("draft", json!({}));
    let set = children::Set::new(&world.client, &nobody, MANAGER);
    let error = set.apply(map("a", json!({}))).await.unwrap_err();
    assert_eq!(error.classify(), ErrorClass::permanent("UnknownOwner"));
    assert_eq!(
        error.to_string(),
        "the owner has no uid, so it does not come from a server and can own nothing"
    );
    assert!(set.prune::<ConfigMap>().await.is_err());
    assert_eq!(world.requests(), Vec::<String>::new());

    // An object in no namespace owns others in whatever namespace, and those in none.
    let set = children::Set::new(&world.client, &cluster, MANAGER);
    let child: ConfigMap = from(json!({ "metadata": { "name": "a", "namespace": "default" } }));
    let applied = set.apply(child).await.unwrap();
    assert_eq!(applied.owner_references()[0].kind, "Namespace");
    let role: ClusterRole = from(json!({ "metadata": { "name": "a" }, "rules": [] }));
    assert!(set.apply(role).await.unwrap().is_written());
    let role: ClusterRole = from(json!({ "metadata": { "name": "a" }, "rules": [] }));
    assert!(!set.apply(role).await.unwrap().is_written());
    let set = children::Set::new(&world.client, &cluster, MANAGER);
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 1);
    assert_eq!(set.prune::<ClusterRole>().await.unwrap(), 1);
}

/// What is left over is deleted, and nothing else is.
#[tokio::test(start_paused = true)]
async fn pruning() {
    let world = World::on(ApiServer::builder().garbage_collection(false).build()).await;
    let set = world.set();
    for name in ["a", "b", "c"] {
        set.apply(map(name, json!({}))).await.unwrap();
    }
    let maps = world.api::<ConfigMap>();
    for (name, uid, controls) in [
        ("another-owners", "u0".to_owned(), true),
        ("also-owned", world.owner.uid().unwrap(), false),
    ] {
        let object: ConfigMap = from(json!({ "metadata": { "name": name, "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid,
            "controller": controls,
        }] } }));
        maps.create(&PostParams::default(), &object).await.unwrap();
    }
    assert_eq!(
        set.prune::<ConfigMap>().await.unwrap(),
        0,
        "all are desired"
    );

    let set = world.set();
    set.apply(map("b", json!({}))).await.unwrap();
    let _before = world.requests();
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 2);
    assert_eq!(world.requests(), ["list", "delete", "delete"]);
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 0);
    assert_eq!(world.requests(), ["list"]);
    let left = maps.list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["also-owned", "another-owners", "b", "owner"]);

    // A child that could not be applied is still desired.
    let set = world.set();
    let rule = Rule::any().verb(Verb::Get).name("b");
    let fault = world.server.faults().inject(rule, Fault::InternalError);
    set.apply(map("b", json!({}))).await.unwrap_err();
    drop(fault);
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 0);
}

/// What is kept is no surplus, although it was not asked for in this run; nothing is sent for it.
#[tokio::test(start_paused = true)]
async fn kept_children_are_not_pruned() {
    let world = World::on(ApiServer::builder().garbage_collection(false).build()).await;
    let set = world.set();
    for name in ["a", "b", "c"] {
        set.create(map(name, json!({}))).await.unwrap();
    }
    let set = world.set();
    let _before = world.requests();
    set.keep(&map("b", json!({}))).unwrap();
    assert_eq!(world.requests(), Vec::<String>::new());
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 2);
    assert!(
        world
            .api::<ConfigMap>()
            .get_opt("b")
            .await
            .unwrap()
            .is_some()
    );
    assert!(set.keep(&map("", json!({}))).is_err());
}

/// Objects that only look like children: labels and the name of the owner do not count.
#[tokio::test(start_paused = true)]
async fn foreign_objects_are_not_pruned() {
    for cached in [false, true] {
        let world = World::on(ApiServer::builder().garbage_collection(false).build()).await;
        let labels = json!({ "app.kubernetes.io/managed-by": MANAGER, "app": "web" });
        let uid = world.owner.uid().unwrap();
        let owner = |kind: &str, name: &str, uid: &str| json!([{ "apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": true }]);
        let mut objects = Vec::new();
        for (name, owners) in [
            ("labelled", json!([])),
            ("older", owner("ConfigMap", "owner", "0-older")),
            ("namesake", owner("Secret", "owner", "0-secret")),
            ("ours", owner("ConfigMap", "owner", &uid)),
        ] {
            let object: ConfigMap = from(json!({
                "metadata": { "name": name, "labels": labels, "ownerReferences": owners },
            }));
            let maps = world.api::<ConfigMap>();
            objects.push(maps.create(&PostParams::default(), &object).await.unwrap());
        }
        let (store, _writer) = store(objects);
        let set = if cached {
            world.set().cache(&store)
        } else {
            world.set()
        };
        assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 1);
        let left = world.api::<ConfigMap>().list(&ListParams::default()).await;
        let left: Vec<_> = left.unwrap().iter().map(ResourceExt::name_any).collect();
        assert_eq!(left, ["labelled", "namesake", "older", "owner"]);
    }
}

// === Children that are made once ===

/// A generated password: another one in each run.
fn password(word: &str) -> Secret {
    from(json!({ "metadata": { "name": "admin" }, "stringData": { "password": word } }))
}

fn text(secret: &Secret, key: &str) -> String {
    let data = secret.data.as_ref();
    let bytes = data
        .and_then(|data| data.get(key))
        .map(|bytes| bytes.0.clone());
    String::from_utf8(bytes.unwrap_or_default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_password_is_made_once() {
    let world = World::new().await;
    let made = world.set().create(password("first")).await.unwrap();
    assert!(made.is_written());
    assert_eq!(text(&made, "password"), "first");
    assert_eq!(made.owner_references()[0].controller, Some(true));
    assert_eq!(world.requests(), ["get 404", "create"]);

    // Not even a change by somebody else is taken back.
    world
        .patch::<Secret>(
            "admin",
            json!({ "stringData": { "password": "changed", "more": "1" } }),
        )
        .await;
    let kept = world.set().create(password("second")).await.unwrap();
    assert!(!kept.is_written());
    assert_eq!(text(&kept, "password"), "changed");
    assert_eq!(world.requests(), ["get"]);

    // A cache that knows it costs no request, and one that does not know it yet changes nothing.
    let (known, _writer) = store(vec![world.get::<Secret>("admin").await]);
    let (empty, _writer) = store::<Secret>(Vec::new());
    for (cache, requests) in [(known, &[][..]), (empty, &["get"])] {
        let set = world.set().cache(&cache);
        let kept = set.create(password("third")).await.unwrap();
        assert_eq!(
            (text(&kept, "password"), kept.is_written()),
            ("changed".into(), false)
        );
        assert_eq!(set.prune::<Secret>().await.unwrap(), 0);
        assert_eq!(world.requests(), requests);
    }

    // It goes when it is not asked for, and is another one then.
    assert_eq!(world.set().prune::<Secret>().await.unwrap(), 1);
    let made = world.set().create(password("fourth")).await.unwrap();
    assert_eq!(
        (text(&made, "password"), made.is_written()),
        ("fourth".into(), true)
    );
}

/// Two replicas make the child between each other's look and write: both get what the first has made.
#[tokio::test(start_paused = true)]
async fn two_replicas_agree_on_a_password() {
    for completing in [false, true] {
        let world = World::new().await;
        let rule = Rule::any().verb(Verb::Create).times(1);
        let delay = Fault::Delay(Duration::from_secs(1));
        let _guard = world.server.faults().inject(rule, delay);
        let set = world.set();
        let slow = tokio::spawn(async move {
            if completing {
                set.complete(password("slow")).await
            } else {
                set.create(password("slow")).await
            }
        });
        sleep(Duration::from_millis(500)).await;
        let fast = world.set().create(password("fast")).await.unwrap();
        let slow = slow.await.unwrap().unwrap();
        assert_eq!((fast.is_written(), slow.is_written()), (true, false));
        assert_eq!(
            (text(&fast, "password"), text(&slow, "password")),
            ("fast".into(), "fast".into())
        );
        let requests = world.requests();
        assert_eq!(
            requests,
            ["get 404", "get 404", "create", "create 409", "get"]
        );
    }
}

/// A Secret that others extend: what is there stays, and only what is missing is added.
#[tokio::test(start_paused = true)]
async fn missing_keys_are_added() {
    let world = World::new().await;
    let secret = |keys: Value| -> Secret {
        from(
            json!({ "metadata": { "name": "admin", "labels": { "app": "db" } }, "stringData": keys }),
        )
    };
    let made = world
        .set()
        .complete(secret(json!({ "user": "u1" })))
        .await
        .unwrap();
    assert!(made.is_written());
    world
        .patch::<Secret>(
            "admin",
            json!({ "stringData": { "theirs": "t", "password": "set by hand" } }),
        )
        .await;
    let _setup = world.requests();
    let keys = json!({ "user": "u2", "password": "p2", "token": "t2" });
    let completed = world.set().complete(secret(keys.clone())).await.unwrap();
    assert!(completed.is_written());
    let told = ["user", "password", "token", "theirs"].map(|key| text(&completed, key));
    assert_eq!(told, ["u1", "set by hand", "t2", "t"]);
    assert_eq!(world.requests(), ["get", "patch"]);
    let kept = world.set().complete(secret(keys.clone())).await.unwrap();
    assert!(!kept.is_written());
    assert_eq!(world.requests(), ["get"]);
    let (cache, _writer) = store(vec![kept.into_object().as_ref().clone()]);
    let set = world.set().cache(&cache);
    assert!(!set.complete(secret(keys)).await.unwrap().is_written());
    assert_eq!(world.requests(), [""; 0]);

    // A key that comes in between is not overwritten.
    let rule = Rule::any().verb(Verb::Patch).times(1);
    let delay = Fault::Delay(Duration::from_secs(1));
    let guard = world.server.faults().inject(rule, delay);
    let set = world.set();
    let late = secret(json!({ "late": "ours" }));
    let slow = tokio::spawn(async move { set.complete(late).await });
    sleep(Duration::from_millis(500)).await;
    let theirs = Patch::Merge(json!({ "stringData": { "late": "theirs" } }));
    let secrets = world.api::<Secret>();
    secrets
        .patch("admin", &PatchParams::default(), &theirs)
        .await
        .unwrap();
    let kept = slow.await.unwrap().unwrap();
    assert_eq!(
        (text(&kept, "late"), kept.is_written()),
        ("theirs".into(), false)
    );
    assert_eq!(guard.hits(), 1);
}

/// Whose an object is decides whether it is used, and nothing of it is overwritten or adopted.
#[tokio::test(start_paused = true)]
async fn what_is_there_is_not_overwritten() {
    let world = World::on(ApiServer::builder().garbage_collection(false).build()).await;
    let owned = |kind: &str, name: &str| json!([{ "apiVersion": "v1", "kind": kind, "name": name, "uid": "u0", "controller": true }]);
    for (name, owners) in [
        ("by-hand", json!([])),
        ("taken", owned("Pod", "x")),
        ("earlier", owned("ConfigMap", "owner")),
    ] {
        let secret: Secret = from(json!({
            "metadata": { "name": name, "ownerReferences": owners }, "stringData": { "password": name },
        }));
        let secrets = world.api::<Secret>();
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }
    let _setup = world.requests();
    let named = |name: &str| {
        let mut secret = password("ours");
        secret.metadata.name = Some(name.into());
        secret
    };
    let by_hand = world.set().create(named("by-hand")).await.unwrap();
    assert_eq!(
        (text(&by_hand, "password"), by_hand.owner_references().len()),
        ("by-hand".into(), 0)
    );
    assert!(
        world
            .set()
            .create(named("earlier"))
            .await
            .unwrap()
            .is_leaving()
    );
    assert!(
        world
            .set()
            .complete(named("earlier"))
            .await
            .unwrap()
            .is_leaving()
    );
    for error in [
        world.set().create(named("taken")).await.unwrap_err(),
        world.set().complete(named("taken")).await.unwrap_err(),
    ] {
        assert_eq!(error.to_string(), "Secret default/taken belongs to Pod/x");
    }
    assert_eq!(world.requests(), ["get"; 5]);
    // What the server says is said once, and not as Rust prints it.
    let rule = Rule::any().verb(Verb::Create);
    let _fault = world.server.faults().inject(rule, Fault::Forbidden);
    let error = world.set().create(password("x")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("Secret default/admin: "), "{text}");
    assert!(
        !text.contains("Status {") && !text.contains("ApiError"),
        "{text}"
    );
    assert_eq!(error.reason().as_deref(), Some("Forbidden"));
}

/// After the clean-up nothing is made that nobody cleans up.
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_being_deleted() {
    let mut world = World::new().await;
    let held = json!({ "metadata": { "finalizers": ["example.com/x"] } });
    world.patch::<ConfigMap>("owner", held).await;
    world.set().apply(map("before", json!({}))).await.unwrap();
    let maps = world.api::<ConfigMap>();
    maps.delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    world.owner = world.get("owner").await;
    let set = world.set();
    for error in [
        set.apply(map("page", json!({}))).await.unwrap_err(),
        set.create(password("x")).await.unwrap_err(),
        set.complete(password("x")).await.unwrap_err(),
    ] {
        assert!(
            error.to_string().ends_with("its owner is being deleted"),
            "{error}"
        );
        assert_eq!(error.classify(), ErrorClass::permanent("OwnerLeaving"));
    }
    assert_eq!(world.requests(), [""; 0]);
    // To take away is allowed, and so is what the clean-up needs itself.
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 1);
    let job = world
        .set()
        .for_cleanup()
        .apply(map("job", json!({})))
        .await
        .unwrap();
    assert!(job.is_written());
}

/// S1, S13: a cache that is behind deletes nothing that is not a child any more, and no other object.
#[tokio::test(start_paused = true)]
async fn pruning_by_a_stale_cache() {
    let world = World::new().await;
    let maps = world.api::<ConfigMap>();
    let mut cached = Vec::new();
    for name in [
        "changed",
        "given-away",
        "gone",
        "leaving",
        "replaced",
        "wanted",
    ] {
        world.set().apply(map(name, json!({}))).await.unwrap();
        cached.push(world.get::<ConfigMap>(name).await);
    }
    world
        .patch::<ConfigMap>("changed", json!({ "data": { "x": "y" } }))
        .await;
    let nobody = json!({ "metadata": { "ownerReferences": null } });
    world.patch::<ConfigMap>("given-away", nobody).await;
    let held = json!({ "metadata": { "finalizers": ["example.com/x"] } });
    world.patch::<ConfigMap>("leaving", held).await;
    for name in ["gone", "leaving", "replaced"] {
        maps.delete(name, &DeleteParams::default()).await.unwrap();
    }
    maps.create(&PostParams::default(), &map("replaced", json!({})))
        .await
        .unwrap();
    let _before = world.requests();

    let (cache, _writer) = store(cached);
    let set = world.set().cache(&cache);
    set.apply(map("wanted", json!({}))).await.unwrap();
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 1);
    let mut requests = world.requests();
    requests.sort();
    let expected = [
        "delete",
        "delete 404",
        "delete 409",
        "delete 409",
        "delete 409",
        "delete 409",
        "get",
        "get",
        "get",
        "get",
    ];
    assert_eq!(requests, expected);
    let left = maps.list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left.iter().map(ResourceExt::name_any).collect();
    let expected = ["given-away", "leaving", "owner", "replaced", "wanted"];
    assert_eq!(left, expected);
}

#[tokio::test(start_paused = true)]
async fn dynamic_children() {
    let world = World::new().await;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let child = || {
        let mut child = DynamicObject::new("page", &resource);
        child.types = None;
        child.data = json!({ "data": { "a": "1" } });
        child
    };
    let set = world.set();
    let applied = set.apply_with(child(), &resource).await.unwrap();
    assert!(applied.is_written());
    assert_eq!(applied.data["data"]["a"], "1");
    assert!(
        !set.apply_with(child(), &resource)
            .await
            .unwrap()
            .is_written()
    );
    assert_eq!(set.prune_with::<DynamicObject>(&resource).await.unwrap(), 0);
    assert_eq!(
        world
            .set()
            .prune_with::<DynamicObject>(&resource)
            .await
            .unwrap(),
        1
    );
}

/// Many children at once: a set can be shared.
#[tokio::test(start_paused = true)]
async fn children_at_the_same_time() {
    let world = World::new().await;
    let set = world.set();
    let names: Vec<String> = (0..20)
        .map(|number| children::name("owner", &number.to_string()))
        .collect();
    let applied = names
        .iter()
        .map(|name| set.apply(map(name, json!({ "a": "1" }))));
    let applied = futures::future::try_join_all(applied).await.unwrap();
    assert!(applied.iter().all(children::Applied::is_written));
    assert_eq!(set.prune::<ConfigMap>().await.unwrap(), 0);
    assert_eq!(world.server.requests().count(is_write), 20);
}
