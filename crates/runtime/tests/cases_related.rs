//! Objects that have to do with others across namespaces, in the cluster, or at their end: what users of other
//! runtimes reported, in a whole controller against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use futures::StreamExt;
use homeostat::{
    Action, Classify, Controller, WatchStreamExt, error_policy,
    reflector::{self, ObjectRef},
    watcher,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;
use world::{MINUTE, SECOND, Widget, World, idle};

/// Something of the cluster, which has children in namespaces.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Fleet")]
struct FleetSpec {}

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error(transparent)]
    KubeApi(#[from] kube::Error),
}

/// The names of the objects that ran, in order.
type Order = Arc<Mutex<Vec<String>>>;

fn take(order: &Order) -> Vec<String> {
    std::mem::take(&mut *order.lock().unwrap())
}

/// Runs a controller in the background, and notes what it runs.
fn run<K>(controller: Controller<K>) -> (Order, JoinHandle<()>)
where
    K: Resource + Clone + std::fmt::Debug + Send + Sync + serde::de::DeserializeOwned + 'static,
    K::DynamicType: std::fmt::Debug + Eq + std::hash::Hash + Clone + Unpin + Send + Sync,
{
    let order = Order::default();
    let noted = Arc::clone(&order);
    let items = controller.run(
        move |obj: Arc<K>, _| {
            noted.lock().unwrap().push(obj.name_any());
            async { idle() }
        },
        error_policy::backoff,
        Arc::new(()),
    );
    let task = tokio::spawn(items.for_each(|item| {
        drop(item.unwrap());
        ready(())
    }));
    (order, task)
}

/// A config map in a namespace, with an owner or labels.
fn child(namespace: &str, name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some(namespace.into()),
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn namespace(world: &World, name: &str) -> Api<ConfigMap> {
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    let params = PostParams::default();
    namespaces.create(&params, &namespace).await.unwrap();
    Api::namespaced(world.client.clone(), name)
}

/// Section 11: an owner of the cluster with children in a namespace. Each change of a child is one run of that owner,
/// and of no namespaced object of the same name, for kinds known at compile time and at run time.
#[tokio::test(start_paused = true)]
async fn an_owner_of_the_cluster() {
    let world = World::new(&["a"]).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let params = PostParams::default();
    definitions.create(&params, &Fleet::crd()).await.unwrap();
    let fleets: Api<Fleet> = Api::all(world.client.clone());
    for name in ["a", "b"] {
        let fleet = Fleet::new(name, FleetSpec {});
        fleets.create(&params, &fleet).await.unwrap();
    }
    let maps = namespace(&world, "far").await;

    let all = watcher::Config::default;
    let kind = ApiResource::erase::<Fleet>(&());
    let dynamic: Api<DynamicObject> = Api::all_with(world.wire.client(), &kind);
    let dynamic = Controller::new_with(dynamic, all(), kind);
    let handle = world.controller_of_both();
    let (typed, _typed) =
        run(Controller::new(world.all::<Fleet>(), all()).owns(world.all::<ConfigMap>(), all()));
    let (erased, _erased) = run(dynamic.owns(world.all::<ConfigMap>(), all()));
    let (widgets, _widgets) = run(handle);
    world.until(1.0).await;
    for order in [&typed, &erased] {
        assert_eq!(take(order), ["a", "b"]);
    }
    assert_eq!(take(&widgets), ["a"]);

    let owner = fleets.get("a").await.unwrap();
    let mut map = child("far", "settings");
    map.metadata.owner_references = owner.owner_ref(&()).map(|owner| vec![owner]);
    let check = |what: &str| {
        for order in [&typed, &erased] {
            assert_eq!(take(order), ["a"], "{what}");
        }
        assert_eq!(take(&widgets), [""; 0], "{what}");
    };
    maps.create(&params, &map).await.unwrap();
    world.until(2.0).await;
    check("created");
    let patch = Patch::Merge(json!({ "data": { "value": "1" } }));
    maps.patch("settings", &PatchParams::default(), &patch)
        .await
        .unwrap();
    world.until(3.0).await;
    check("changed");
    maps.delete("settings", &DeleteParams::default())
        .await
        .unwrap();
    world.until(4.0).await;
    check("deleted");
}

/// Section 11: children in another namespace, which are related by a label. A change of the label to another parent
/// runs both parents, whether a watch or a list tells it.
#[tokio::test(start_paused = true)]
async fn children_in_another_namespace() {
    let world = World::new(&["a", "b", "c"]).await;
    let maps = namespace(&world, "far").await;
    let mut map = child("far", "settings");
    map.metadata.labels = Some([("widget".into(), "a".into())].into());
    maps.create(&PostParams::default(), &map).await.unwrap();
    let relabel = async |name: &str| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "widget": name } } }));
        let params = PatchParams::default();
        maps.patch("settings", &params, &patch).await.unwrap();
    };
    let parent = |map: ConfigMap| {
        let parent = map.labels().get("widget").cloned();
        parent.map(|parent| ObjectRef::<Widget>::new(&parent).within("default"))
    };
    let all = watcher::Config::default;
    let controller = world.controller();
    let (order, _task) = run(controller.watches(world.all::<ConfigMap>(), all(), parent));
    let sorted = || {
        let mut order = take(&order);
        order.sort();
        order
    };
    world.until(1.0).await;
    assert_eq!(sorted(), ["a", "b", "c"]);
    relabel("b").await;
    world.until(2.0).await;
    assert_eq!(sorted(), ["a", "b"]);

    // The watch does not tell this one.
    let _gap = world.gap("configmaps", 5 * SECOND);
    world.until(3.0).await;
    relabel("c").await;
    world.until(60.0).await;
    assert_eq!(sorted(), ["b", "c"], "after a list");
    maps.delete("settings", &DeleteParams::default())
        .await
        .unwrap();
    world.until(61.0).await;
    assert_eq!(sorted(), ["c"]);
}

/// Section 11: a clean-up that waits for the owner's pods runs as each one ends, and the object goes within a second of
/// the last.
#[tokio::test(start_paused = true)]
async fn a_finalizer_that_waits_for_pods() {
    let world = World::new(&["a"]).await;
    let owner = world.widgets.get("a").await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
    for nth in 0..3 {
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("pod-{nth}"),
                "finalizers": ["example.com/busy"],
                "ownerReferences": [owner.owner_ref(&()).unwrap()],
            },
            "spec": { "containers": [{ "name": "main", "image": "main" }] },
        });
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
    }
    let (store, writer) = reflector::store::<Pod>();
    let watch = watcher(world.all::<Pod>(), watcher::Config::default()).reflect(writer);
    tokio::spawn(watch.for_each(|_| ready(())));

    let cleanups = Arc::<Mutex<Vec<(Duration, usize)>>>::default();
    let noted = Arc::clone(&cleanups);
    let start = tokio::time::Instant::now() - world.elapsed();
    let own = Api::<Widget>::all(world.wire.tracked());
    let items = Controller::new(own, watcher::Config::default())
        .owns_shared_stream(store.subscribe())
        .finalizer("example.com/pods")
        .run(
            |_, _| async { Ok(Action::await_change()) },
            move |widget: Arc<Widget>, _| {
                let left = store.owned_by(&*widget).len();
                noted.lock().unwrap().push((start.elapsed(), left));
                // It relies on being told of each pod that ends.
                let action = if left > 0 {
                    Action::requeue(60 * MINUTE)
                } else {
                    Action::await_change()
                };
                async move { Ok::<_, Error>(action) }
            },
            error_policy::backoff,
            Arc::new(()),
        );
    tokio::spawn(items.for_each(|item| {
        drop(item.unwrap());
        ready(())
    }));
    world.until(1.0).await;
    world.delete("a").await;
    for nth in 0..3 {
        let name = format!("pod-{nth}");
        pods.delete(&name, &DeleteParams::default()).await.unwrap();
    }
    for nth in 0..3 {
        world.until(f64::from(10 * (nth + 1))).await;
        assert!(world.widgets.get_opt("a").await.unwrap().is_some());
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        let name = format!("pod-{nth}");
        pods.patch(&name, &PatchParams::default(), &free)
            .await
            .unwrap();
    }
    world.until(31.0).await;
    assert!(world.widgets.get_opt("a").await.unwrap().is_none());
    let ends = cleanups.lock().unwrap();
    for (left, seconds) in [(2, 10), (1, 20), (0, 30)] {
        let first = ends.iter().find(|(_, count)| *count == left).unwrap();
        assert_eq!(first.0.as_secs(), seconds, "{ends:?}");
    }
}
