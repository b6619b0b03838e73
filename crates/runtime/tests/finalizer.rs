//! Finalizers against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{StreamExt, future::join_all};
use homeostat::{
    Action, Controller, WatchStreamExt, error_policy,
    finalizer::{self, Event, finalizer},
    predicates, reflector, watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

const OURS: &str = "example.com/ours";
const OTHER: &str = "example.com/other";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("no luck")]
    NoLuck,
    #[error("{0}")]
    Finalizer(#[source] Box<finalizer::Error<Error>>),
}

type Outcome = Result<Action, finalizer::Error<Error>>;

fn map(name: &str, finalizers: &[&str]) -> ConfigMap {
    from(json!({ "metadata": { "name": name, "finalizers": finalizers } }))
}

fn from<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

async fn create(api: &Api<ConfigMap>, name: &str, finalizers: &[&str]) -> Arc<ConfigMap> {
    let (params, map) = (PostParams::default(), map(name, finalizers));
    Arc::new(api.create(&params, &map).await.unwrap())
}

/// Takes all finalizers off an object.
async fn release(api: &Api<ConfigMap>, name: &str) {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    let params = PatchParams::default();
    api.patch(name, &params, &patch).await.unwrap();
}

/// Deletes an object, and returns it as it is then.
async fn mark(api: &Api<ConfigMap>, name: &str) -> Arc<ConfigMap> {
    api.delete(name, &DeleteParams::default()).await.unwrap();
    Arc::new(api.get(name).await.unwrap())
}

/// Calls the finalizer with a reconciler that returns this, and tells what it was asked for.
async fn call(
    api: &Api<ConfigMap>,
    obj: &Arc<ConfigMap>,
    result: Result<Action, Error>,
) -> (Outcome, Option<&'static str>) {
    let mut asked = None;
    let outcome = finalizer(api, OURS, Arc::clone(obj), |event| {
        asked = Some(match event {
            Event::Apply(_) => "apply",
            Event::Cleanup(_) => "cleanup",
        });
        std::future::ready(result)
    })
    .await;
    (outcome, asked)
}

/// Section D 45: each step can be repeated with the object that it began with.
#[tokio::test(start_paused = true)]
async fn from_the_first_sight_of_an_object_to_its_end() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let new = create(&api, "a", &[OTHER]).await;

    for _ in 0..2 {
        // As in kube. A controller runs it again in a second, in case that nothing tells of the change.
        let (outcome, asked) = call(&api, &new, Err(Error::NoLuck)).await;
        assert_eq!(outcome.unwrap(), Action::await_change());
        assert_eq!(
            asked, None,
            "nothing is applied before the finalizer is there"
        );
        assert_eq!(api.get("a").await.unwrap().finalizers(), [OTHER, OURS]);
    }

    let held = Arc::new(api.get("a").await.unwrap());
    let requeue = Action::requeue(Duration::from_secs(60));
    let (outcome, asked) = call(&api, &held, Ok(requeue.clone())).await;
    assert_eq!((outcome.unwrap(), asked), (requeue, Some("apply")));

    let deleting = mark(&api, "a").await;
    for _ in 0..2 {
        let (outcome, asked) = call(&api, &deleting, Ok(Action::await_change())).await;
        assert_eq!(
            (outcome.unwrap(), asked),
            (Action::await_change(), Some("cleanup"))
        );
        assert_eq!(api.get("a").await.unwrap().finalizers(), [OTHER]);
    }

    let left = Arc::new(api.get("a").await.unwrap());
    let writes = server.requests().writes();
    let (outcome, asked) = call(&api, &left, Err(Error::NoLuck)).await;
    assert_eq!((outcome.unwrap(), asked), (Action::await_change(), None));
    assert_eq!(server.requests().writes(), writes);
}

/// T46: a cleanup that has to go on keeps the finalizer, and with it the object.
#[tokio::test(start_paused = true)]
async fn a_cleanup_that_asks_for_another_run_keeps_the_finalizer() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    create(&api, "a", &[OURS]).await;
    let deleting = mark(&api, "a").await;
    for action in [Action::requeue(Duration::ZERO), Action::backoff()] {
        let (outcome, asked) = call(&api, &deleting, Ok(action.clone())).await;
        assert_eq!((outcome.unwrap(), asked), (action, Some("cleanup")));
        assert_eq!(api.get("a").await.unwrap().finalizers(), [OURS]);
    }
    let (outcome, _) = call(&api, &deleting, Ok(Action::await_change())).await;
    assert_eq!(outcome.unwrap(), Action::await_change());
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_reconciler() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let held = create(&api, "a", &[OURS]).await;
    let (outcome, _) = call(&api, &held, Err(Error::NoLuck)).await;
    assert!(matches!(
        outcome,
        Err(finalizer::Error::ApplyFailed(Error::NoLuck))
    ));
    let deleting = mark(&api, "a").await;
    let (outcome, _) = call(&api, &deleting, Err(Error::NoLuck)).await;
    let error = outcome.unwrap_err();
    assert!(matches!(
        error,
        finalizer::Error::CleanupFailed(Error::NoLuck)
    ));
    assert_eq!(error.to_string(), "failed to clean up object: no luck");
    assert_eq!(api.get("a").await.unwrap().finalizers(), [OURS]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_reconciled() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let (outcome, asked) = call(&api, &Arc::default(), Ok(Action::await_change())).await;
    assert!(matches!(outcome, Err(finalizer::Error::UnnamedObject)));
    assert_eq!(asked, None);
    let reconcile = |_| std::future::ready(Ok::<_, Error>(Action::await_change()));
    let outcome = finalizer(&api, "not/a/name", Arc::new(map("a", &[])), reconcile).await;
    assert!(matches!(outcome, Err(finalizer::Error::InvalidFinalizer)));
    assert!(server.requests().all().is_empty());
}

/// T47: what is to be removed may be gone with the object.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_at_the_removal_is_success() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    create(&api, "a", &[OURS]).await;
    let deleting = mark(&api, "a").await;
    release(&api, "a").await;
    assert!(api.get_opt("a").await.unwrap().is_none());
    let (outcome, _) = call(&api, &deleting, Ok(Action::await_change())).await;
    assert_eq!(outcome.unwrap(), Action::await_change());
}

/// Section D 44: a finalizer for an object that has vanished.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_at_the_adding_is_success() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let new = create(&api, "a", &[]).await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let (outcome, asked) = call(&api, &new, Err(Error::NoLuck)).await;
    assert_eq!((outcome.unwrap(), asked), (Action::await_change(), None));
}

/// T50: a cache that does not know of the deletion yet.
#[tokio::test(start_paused = true)]
async fn nothing_is_applied_to_an_object_that_is_being_deleted() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let new = create(&api, "a", &[OTHER]).await;
    mark(&api, "a").await;
    let (outcome, asked) = call(&api, &new, Err(Error::NoLuck)).await;
    assert_eq!((outcome.unwrap(), asked), (Action::await_change(), None));
    assert_eq!(api.get("a").await.unwrap().finalizers(), [OTHER]);
}

/// Another object under the same name keeps its finalizer, for nobody has cleaned up after it.
#[tokio::test(start_paused = true)]
async fn the_next_object_of_a_name_is_left_alone() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let first = create(&api, "a", &[OURS]).await;
    let deleting = mark(&api, "a").await;
    release(&api, "a").await;
    let second = create(&api, "a", &[OURS]).await;
    assert_ne!(first.uid(), second.uid());
    let (outcome, _) = call(&api, &deleting, Ok(Action::await_change())).await;
    assert_eq!(outcome.unwrap(), Action::await_change());
    assert_eq!(api.get("a").await.unwrap().finalizers(), [OURS]);

    release(&api, "a").await;
    let unheld = Arc::new(map("a", &[]));
    let stale = Arc::new(ConfigMap {
        metadata: kube::api::ObjectMeta {
            uid: first.uid(),
            ..unheld.metadata.clone()
        },
        ..ConfigMap::default()
    });
    let (outcome, _) = call(&api, &stale, Err(Error::NoLuck)).await;
    assert_eq!(outcome.unwrap(), Action::await_change());
    assert!(api.get("a").await.unwrap().finalizers().is_empty());
}

/// Section D 44: edits at the same time lose none. All begin with the same state of the object, so
/// all but one are refused at first.
#[tokio::test(start_paused = true)]
async fn edits_at_the_same_time_lose_nothing() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let names: Vec<String> = (0..8)
        .map(|number| format!("example.com/f{number}"))
        .collect();
    let edit_all = |obj: Arc<ConfigMap>| {
        join_all(names.iter().map(|name| {
            let reconcile = |_| std::future::ready(Ok::<_, Error>(Action::await_change()));
            finalizer(&api, name, Arc::clone(&obj), reconcile)
        }))
    };

    let new = create(&api, "a", &[OTHER]).await;
    assert!(edit_all(new).await.iter().all(Result::is_ok));
    let held = api.get("a").await.unwrap();
    let present: BTreeSet<&str> = held.finalizers().iter().map(String::as_str).collect();
    let expected = names.iter().map(String::as_str).chain([OTHER]).collect();
    assert_eq!(present, expected);
    assert_eq!(held.finalizers().len(), 9, "and none is there twice");

    let deleting = mark(&api, "a").await;
    assert!(edit_all(deleting).await.iter().all(Result::is_ok));
    assert_eq!(api.get("a").await.unwrap().finalizers(), [OTHER]);
}

/// Conflicts are made up for in place; what is not allowed is not tried again.
#[tokio::test(start_paused = true)]
async fn faults_of_the_server() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let new = create(&api, "a", &[]).await;
    let any_patch = Rule::any().verb(Verb::Patch);
    let patched = || {
        server
            .requests()
            .count(|request| request.verb == Verb::Patch)
    };

    for (fault, tries) in [
        (Fault::Forbidden, 1),
        (Fault::Unavailable, 1),
        (Fault::Conflict, 8),
    ] {
        let before = patched();
        let fault = server.faults().inject(any_patch.clone(), fault);
        let (outcome, asked) = call(&api, &new, Err(Error::NoLuck)).await;
        assert!(matches!(outcome, Err(finalizer::Error::AddFinalizer(_))));
        assert_eq!((asked, patched() - before), (None, tries));
        drop(fault);
    }
    let fault = server
        .faults()
        .inject(any_patch.clone().times(3), Fault::Conflict);
    let (outcome, _) = call(&api, &new, Err(Error::NoLuck)).await;
    assert_eq!(outcome.unwrap(), Action::await_change());
    drop(fault);

    let deleting = mark(&api, "a").await;
    let fault = server
        .faults()
        .inject(any_patch.clone(), Fault::InternalError);
    let (outcome, asked) = call(&api, &deleting, Ok(Action::await_change())).await;
    assert!(matches!(outcome, Err(finalizer::Error::RemoveFinalizer(_))));
    assert_eq!(asked, Some("cleanup"));
    drop(fault);
    let fault = server.faults().inject(any_patch.times(3), Fault::Conflict);
    let (outcome, _) = call(&api, &deleting, Ok(Action::await_change())).await;
    assert_eq!(outcome.unwrap(), Action::await_change());
    assert!(api.get_opt("a").await.unwrap().is_none());
    drop(fault);
}

/// A server that refuses the object itself would refuse the same patch again.
#[tokio::test(start_paused = true)]
async fn an_invalid_object_is_an_error_at_once() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&requests);
    let object = json!({ "metadata": { "name": "a", "uid": "u" } });
    let answer = object.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        log.lock().unwrap().push(request.method().clone());
        let (code, body) = if request.method() == http::Method::PATCH {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "data: Too long", "reason": "Invalid", "code": 422,
            });
            (422, status)
        } else {
            (200, answer.clone())
        };
        let response = http::Response::builder().status(code);
        let response = response.body(Body::from(body.to_string().into_bytes()));
        std::future::ready(response)
    });
    let api: Api<ConfigMap> = Api::default_namespaced(Client::new(service, "default"));
    let (outcome, _) = call(&api, &Arc::new(from(object)), Err(Error::NoLuck)).await;
    assert!(matches!(outcome, Err(finalizer::Error::AddFinalizer(_))));
    assert_eq!(
        *requests.lock().unwrap(),
        [http::Method::PATCH, http::Method::GET]
    );
}

/// What a reconciler was asked for, and when.
struct Context {
    client: Client,
    asked: Mutex<Vec<(&'static str, String, Instant)>>,
}

impl Context {
    fn new(server: &ApiServer) -> Arc<Self> {
        Arc::new(Self {
            client: server.client(),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<(&'static str, String)> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .map(|(what, name, _)| (*what, name.clone()))
            .collect()
    }
}

async fn reconcile<K>(obj: Arc<K>, ctx: Arc<Context>) -> Result<Action, Error>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug,
{
    let namespace = obj.namespace().unwrap();
    let api = Api::<K>::namespaced(ctx.client.clone(), &namespace);
    let asked = |what, obj: &K| {
        ctx.asked
            .lock()
            .unwrap()
            .push((what, obj.name_any(), Instant::now()));
    };
    finalizer(&api, OURS, obj, |event| async {
        match event {
            Event::Apply(obj) => asked("apply", &obj),
            Event::Cleanup(obj) => asked("cleanup", &obj),
        }
        Ok(Action::await_change())
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

/// Section D 41: with a filter on the generation, which neither the finalizer nor a status changes.
#[tokio::test(start_paused = true)]
async fn a_life_under_a_generation_filter() {
    let server = ApiServer::builder().build();
    let api: Api<Deployment> = Api::default_namespaced(server.client());
    let ctx = Context::new(&server);
    let run = Controller::new(api.clone(), watcher::Config::default())
        .filter(predicates::generation)
        .run(
            reconcile::<Deployment>,
            error_policy::backoff,
            Arc::clone(&ctx),
        )
        .for_each(|result| async move { drop(result.unwrap()) });
    let run = tokio::spawn(run);

    let labels = json!({ "app": "a" });
    let deployment = from(json!({
        "metadata": { "name": "a" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    }));
    api.create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        ctx.asked(),
        [("apply", "a".into())],
        "before it is called again anyway"
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(ctx.asked().len(), 1, "and then there is rest");

    api.delete("a", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        ctx.asked(),
        [("apply", "a".into()), ("cleanup", "a".into())]
    );
    assert!(api.get_opt("a").await.unwrap().is_none());
    run.abort();
}

/// Whatever the user's own filter hides, `Apply` follows the adding.
#[tokio::test(start_paused = true)]
async fn apply_follows_though_the_change_of_finalizers_is_hidden() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let ctx = Context::new(&server);
    let (reader, writer) = reflector::store();
    let mut seen = BTreeSet::new();
    let stream = watcher(api.clone(), watcher::Config::default())
        .reflect(writer)
        .applied_objects()
        .filter(move |item| {
            let uid = item.as_ref().unwrap().uid();
            std::future::ready(seen.insert(uid))
        });
    let run = Controller::for_stream(stream, reader)
        .run(
            reconcile::<ConfigMap>,
            error_policy::backoff,
            Arc::clone(&ctx),
        )
        .for_each(|result| async move { drop(result.unwrap()) });
    let run = tokio::spawn(run);

    let begin = Instant::now();
    create(&api, "a", &[]).await;
    sleep(Duration::from_secs(60)).await;
    let asked = ctx.asked.lock().unwrap().clone();
    let [(what, _, at)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(*what, "apply");
    assert!(*at - begin < Duration::from_secs(2));
    run.abort();
}

/// T49, section D 47: an owner goes with its fifty children, and nothing goes wrong.
#[tokio::test(start_paused = true)]
async fn an_owner_goes_with_its_children() {
    let server = ApiServer::builder().build();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let ctx = Context::new(&server);
    let children = watcher::Config::default().labels("child");
    let run = Controller::new(api.clone(), watcher::Config::default().labels("!child"))
        .owns(api.clone(), children)
        .run(
            reconcile::<ConfigMap>,
            error_policy::backoff,
            Arc::clone(&ctx),
        )
        .for_each(|result| async move { drop(result.unwrap()) });
    let run = tokio::spawn(run);

    let owner = create(&api, "owner", &[]).await;
    for number in 0..50 {
        let mut child = map(&format!("child-{number}"), &[]);
        child.labels_mut().insert("child".into(), String::new());
        child
            .owner_references_mut()
            .push(owner.controller_owner_ref(&()).unwrap());
        api.create(&PostParams::default(), &child).await.unwrap();
    }
    sleep(Duration::from_secs(60)).await;
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        ctx.asked()
            .iter()
            .filter(|(what, _)| *what == "cleanup")
            .count(),
        1
    );
    assert_eq!(
        api.list(&ListParams::default()).await.unwrap().items.len(),
        0
    );
    assert!(!run.is_finished(), "no item was an error");
    run.abort();
}

/// Section D 43: a namespace that is being deleted waits for the finalizers of its objects, those
/// that are added at the last moment included, and goes.
#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_its_objects() {
    let server = ApiServer::builder().build();
    let namespaces: Api<Namespace> = Api::all(server.client());
    let namespace = from(json!({ "metadata": { "name": "shop" } }));
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let api: Api<ConfigMap> = Api::namespaced(server.client(), "shop");
    create(&api, "old", &[]).await;

    let ctx = Context::new(&server);
    let maps = watcher::Config::default().fields("metadata.name!=kube-root-ca.crt");
    let run = Controller::new(Api::<ConfigMap>::all(server.client()), maps)
        .run(
            reconcile::<ConfigMap>,
            error_policy::backoff,
            Arc::clone(&ctx),
        )
        .for_each(|result| async move { drop(result.unwrap()) });
    let run = tokio::spawn(run);
    sleep(Duration::from_secs(60)).await;
    create(&api, "new", &[]).await;
    namespaces
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    sleep(Duration::from_secs(60)).await;

    assert!(namespaces.get_opt("shop").await.unwrap().is_none());
    let asked = ctx.asked();
    let cleaned = asked.iter().filter(|(what, _)| *what == "cleanup");
    let applied = asked.iter().filter(|(what, _)| *what == "apply");
    let names = |asked: Vec<&(&str, String)>| -> BTreeSet<String> {
        asked.into_iter().map(|(_, name)| name.clone()).collect()
    };
    assert!(names(cleaned.clone().collect()).is_superset(&names(applied.collect())));
    assert!(names(cleaned.collect()).contains("old"));
    assert!(!run.is_finished(), "no item was an error");
    run.abort();
}
