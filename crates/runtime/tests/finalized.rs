//! `.finalizer` of a controller, against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use futures::{StreamExt, stream::BoxStream};
use homeostat::{
    Action, Classify, Controller, WatchStreamExt, children, controller, error_policy, predicates,
    reflector::{self, ObjectRef},
    watcher,
};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    future::ready,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};
use world::{Asked, MINUTE, SECOND, Widget, WidgetSpec, World};

const OURS: &str = "example.com/ours";
const OTHER: &str = "example.com/other";

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error("{0}")]
    KubeApi(#[from] kube::Error),
    #[error("{0}")]
    Child(#[from] children::Error),
    #[error("no luck")]
    #[classify(transient)]
    NoLuck,
    #[error("no sense")]
    #[classify(permanent, reason = "NoSense")]
    NoSense,
}

type Outcome = Result<Action, Error>;
type Item = Result<(ObjectRef<Widget>, Action), controller::Error<Error, watcher::Error>>;

/// What a controller called, with the finalizers that the object had on the server then.
struct Calls {
    client: Client,
    log: Mutex<Vec<String>>,
    /// How the next clean-ups end; the last one then goes on.
    cleanups: Mutex<Vec<fn() -> Outcome>>,
}

impl Calls {
    fn new(client: Client, cleanups: &[fn() -> Outcome]) -> Arc<Self> {
        Arc::new(Self {
            client,
            log: Mutex::default(),
            cleanups: Mutex::new(cleanups.to_vec()),
        })
    }

    async fn note(&self, what: &str, widget: &Widget) {
        let namespace = widget.namespace().unwrap();
        let widgets: Api<Widget> = Api::namespaced(self.client.clone(), &namespace);
        let live = widgets.get(&widget.name_any()).await.unwrap();
        let finalizers = live.finalizers().join(" ");
        let entry = format!("{what} {} [{finalizers}]", widget.name_any());
        self.log.lock().unwrap().push(entry);
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

async fn reconcile(widget: Arc<Widget>, calls: Arc<Calls>) -> Outcome {
    calls.note("reconcile", &widget).await;
    Ok(Action::await_change())
}

async fn clean_up(widget: Arc<Widget>, calls: Arc<Calls>) -> Outcome {
    calls.note("clean up", &widget).await;
    let ending = {
        let mut cleanups = calls.cleanups.lock().unwrap();
        if cleanups.len() > 1 {
            cleanups.remove(0)
        } else {
            cleanups[0]
        }
    };
    ending()
}

#[expect(clippy::unnecessary_wraps, reason = "it is how a clean-up ends")]
fn done() -> Outcome {
    Ok(Action::await_change())
}

/// Runs a controller until this is dropped. Keeps its errors.
struct Running {
    task: JoinHandle<()>,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(items: impl futures::Stream<Item = Item> + Send + 'static) -> Self {
        let errors = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&errors);
        let task = tokio::spawn(items.for_each(move |item| {
            if let Err(error) = item {
                log.lock().unwrap().push(error.to_string());
            }
            ready(())
        }));
        Self { task, errors }
    }

    fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    /// A widget that others hold, too.
    async fn held(&self, name: &str, finalizers: &[&str]) {
        let mut widget = Widget::new(name, WidgetSpec::default());
        widget.metadata.finalizers = Some(finalizers.iter().map(|&name| name.into()).collect());
        let params = PostParams::default();
        self.widgets.create(&params, &widget).await.unwrap();
    }

    async fn finalizers(&self, name: &str) -> Option<Vec<String>> {
        let widget = self.widgets.get_opt(name).await.unwrap();
        widget.map(|widget| widget.finalizers().to_vec())
    }
}

/// D1, D2: the finalizer is there before the first reconcile, once, next to those of others, and goes
/// last; though every change of it passes a filter on the generation.
#[tokio::test(start_paused = true)]
async fn from_the_first_sight_to_the_end() {
    let world = World::new(&[]).await;
    world.held("a", &[OTHER]).await;
    let calls = Calls::new(world.client.clone(), &[done]);
    let running = Running::start(
        world
            .controller()
            .filter(predicates::generation)
            .finalizer(OURS)
            .run(
                reconcile,
                clean_up,
                error_policy::backoff,
                Arc::clone(&calls),
            ),
    );
    sleep(MINUTE).await;
    let begin = format!("reconcile a [{OTHER} {OURS}]");
    assert_eq!(calls.log(), [&*begin]);
    world.set_seen("a", 1).await;
    sleep(MINUTE).await;
    assert_eq!(calls.log().len(), 1, "the filter holds");
    world.set_value("a", 1).await;
    sleep(MINUTE).await;
    assert_eq!(calls.log().len(), 2);

    world.delete("a").await;
    sleep(MINUTE).await;
    let end = format!("clean up a [{OTHER} {OURS}]");
    assert_eq!(calls.log(), [&*begin, &begin, &end]);
    assert_eq!(world.finalizers("a").await.unwrap(), [OTHER]);
    world
        .patch("a", json!({ "metadata": { "finalizers": null } }))
        .await;
    assert_eq!(world.finalizers("a").await, None);
    sleep(MINUTE).await;
    assert_eq!((calls.log().len(), running.errors()), (3, vec![]));
}

/// What a controller can be told comes before or after its condition and its finalizer.
#[tokio::test(start_paused = true)]
async fn the_order_makes_no_difference() {
    type Build = fn(Controller<Widget>, Arc<Calls>) -> BoxStream<'static, Item>;
    let builds: [Build; 4] = [
        |controller, calls| {
            let controller = controller.filter(predicates::generation).finalizer(OURS);
            let policy = error_policy::backoff;
            controller.run(reconcile, clean_up, policy, calls).boxed()
        },
        |controller, calls| {
            let controller = controller.finalizer(OURS).filter(predicates::generation);
            let policy = error_policy::backoff;
            controller.run(reconcile, clean_up, policy, calls).boxed()
        },
        |controller, calls| {
            let controller = controller.status_conditions("Reconciled");
            let controller = controller.filter(predicates::generation).finalizer(OURS);
            let policy = error_policy::backoff;
            controller.run(reconcile, clean_up, policy, calls).boxed()
        },
        |controller, calls| {
            let controller = controller.finalizer(OURS).status_conditions("Reconciled");
            let controller = controller.filter(predicates::generation);
            let policy = error_policy::backoff;
            controller.run(reconcile, clean_up, policy, calls).boxed()
        },
    ];
    for build in builds {
        let world = World::new(&["a"]).await;
        let calls = Calls::new(world.client.clone(), &[done]);
        let running = Running::start(build(world.controller(), Arc::clone(&calls)));
        sleep(MINUTE).await;
        world.set_seen("a", 1).await;
        sleep(MINUTE).await;
        assert_eq!(calls.log(), [format!("reconcile a [{OURS}]")]);
        world.delete("a").await;
        sleep(MINUTE).await;
        assert_eq!(calls.log().len(), 2);
        assert_eq!(world.finalizers("a").await, None);
        assert_eq!(running.errors(), Vec::<String>::new());
    }
}

/// D1: two programs with the same finalizer, as in a rollout, add it once.
#[tokio::test(start_paused = true)]
async fn two_programs_at_once() {
    let world = World::new(&[]).await;
    let calls = Calls::new(world.client.clone(), &[done]);
    let start = || {
        let controller = world.controller().finalizer(OURS);
        Running::start(controller.run(reconcile, clean_up, error_policy::backoff, calls.clone()))
    };
    let running = [start(), start()];
    sleep(SECOND).await;
    for name in ["a", "b", "c"] {
        world.create(name).await;
    }
    sleep(MINUTE).await;
    for name in ["a", "b", "c"] {
        assert_eq!(world.finalizers(name).await.unwrap(), [OURS]);
        world.delete(name).await;
    }
    sleep(MINUTE).await;
    assert!(
        world
            .widgets
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    for running in running {
        assert_eq!(running.errors(), Vec::<String>::new());
    }
}

/// D3, T50: an object that is being deleted is never reconciled, and gets no finalizer.
#[tokio::test(start_paused = true)]
async fn objects_that_are_being_deleted() {
    let world = World::new(&[]).await;
    world.held("seen", &[OTHER]).await;
    world.delete("seen").await;
    let calls = Calls::new(world.client.clone(), &[done]);
    let controller = world.controller().finalizer(OURS);
    let running =
        Running::start(controller.run(reconcile, clean_up, error_policy::backoff, calls.clone()));
    sleep(MINUTE).await;
    assert!(
        world.asked(Verb::Patch, "widgets").is_empty(),
        "not even tried"
    );

    // The controller does not know of the deletion yet when it adds the finalizer.
    let rule = Rule::any().verb(Verb::Patch).resource("widgets").times(1);
    let late = world.inject(rule, Fault::Delay(SECOND));
    world.held("late", &[OTHER]).await;
    sleep(SECOND / 2).await;
    world.delete("late").await;
    sleep(MINUTE).await;
    assert_eq!(late.hits(), 1);
    assert_eq!(calls.log(), Vec::<String>::new());
    for name in ["seen", "late"] {
        assert_eq!(world.finalizers(name).await.unwrap(), [OTHER]);
    }
    assert_eq!(running.errors(), Vec::<String>::new());
}

/// T46: the finalizer stays until the clean-up is done. One that fails is tried again, whatever the
/// policy says: nobody will change the object.
#[tokio::test(start_paused = true)]
async fn a_cleanup_that_takes_long() {
    let world = World::new(&["a"]).await;
    let calls = Calls::new(
        world.client.clone(),
        &[
            || Ok(Action::requeue(SECOND)),
            || Ok(Action::backoff()),
            || Err(Error::NoLuck),
            || Err(Error::NoSense),
            done,
        ],
    );
    let controller = world.controller().finalizer(OURS);
    let running = Running::start(controller.run(
        reconcile,
        clean_up,
        error_policy::classified,
        calls.clone(),
    ));
    sleep(MINUTE).await;
    world.delete("a").await;
    sleep(MINUTE).await;
    assert_eq!(calls.log()[1..], vec![format!("clean up a [{OURS}]"); 5]);
    assert_eq!(world.finalizers("a").await, None);
    assert_eq!(running.errors().len(), 2);
}

/// T47: what is to be removed may be gone, and so may what it is to be added to.
#[tokio::test(start_paused = true)]
async fn objects_that_vanish() {
    let world = World::new(&["a"]).await;
    let calls = Calls::new(world.client.clone(), &[done]);
    let controller = world.controller().finalizer(OURS);
    let running =
        Running::start(controller.run(reconcile, clean_up, error_policy::backoff, calls.clone()));
    sleep(MINUTE).await;
    let slow = || {
        let rule = Rule::any().verb(Verb::Patch).resource("widgets").times(1);
        world.inject(rule, Fault::Delay(SECOND))
    };
    let (removal, released) = (slow(), json!({ "metadata": { "finalizers": null } }));
    world.delete("a").await;
    sleep(SECOND / 2).await;
    world.patch("a", released).await;
    sleep(MINUTE).await;
    assert_eq!((removal.hits(), world.finalizers("a").await), (1, None));

    let adding = slow();
    world.create("b").await;
    sleep(SECOND / 2).await;
    world.delete("b").await;
    sleep(MINUTE).await;
    assert_eq!((adding.hits(), world.finalizers("b").await), (1, None));
    assert_eq!(
        calls.log(),
        [
            format!("reconcile a [{OURS}]"),
            format!("clean up a [{OURS}]")
        ]
    );
    assert_eq!(running.errors(), Vec::<String>::new());
}

/// Applies children whose owner is a widget, wherever that is.
async fn with_child(widget: Arc<Widget>, calls: Arc<Calls>) -> Outcome {
    calls.note("reconcile", &widget).await;
    let children = children::Set::new(&calls.client, &*widget, "widgets");
    let child = ConfigMap {
        metadata: ObjectMeta {
            name: Some(children::name(&widget.name_any(), "map")),
            ..ObjectMeta::default()
        },
        data: Some([("value".to_owned(), widget.spec.value.to_string())].into()),
        ..ConfigMap::default()
    };
    children.apply(child).await?;
    Ok(Action::await_change())
}

/// D7, section D 43: in a namespace that is being deleted what cannot be created is no error loop, and
/// the namespace goes, with what came at the last moment.
#[tokio::test(start_paused = true)]
async fn a_namespace_goes() {
    // The test says when it goes on.
    let server = ApiServer::builder().namespace_deletion(false).build();
    let world = World::bare(server);
    world.install().await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("shop".into());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let widgets: Api<Widget> = Api::namespaced(world.client.clone(), "shop");
    let widget = |name: &str| Widget::new(name, WidgetSpec::default());
    widgets
        .create(&PostParams::default(), &widget("old"))
        .await
        .unwrap();

    let calls = Calls::new(world.wire.client(), &[done]);
    let running = Running::start(world.controller_of_both().finalizer(OURS).run(
        with_child,
        clean_up,
        error_policy::classified,
        calls.clone(),
    ));
    sleep(MINUTE).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "shop");
    assert!(maps.get_opt("old-map").await.unwrap().is_some());

    let terminating = namespaces.delete("shop", &DeleteParams::default()).await;
    terminating.unwrap();
    maps.delete("old-map", &DeleteParams::default())
        .await
        .unwrap();
    sleep(10 * MINUTE).await;
    let refused = |asked: Vec<Asked>| {
        let refused = asked.into_iter().filter(|asked| asked.status == Some(403));
        refused.count()
    };
    assert_eq!(
        refused(world.asked(Verb::Patch, "configmaps")),
        1,
        "once, and then it waits"
    );
    assert_eq!(running.errors().len(), 1);

    while world.server.step_namespaces() {
        sleep(SECOND).await;
    }
    sleep(MINUTE).await;
    while world.server.step_namespaces() {
        sleep(SECOND).await;
    }
    assert!(namespaces.get_opt("shop").await.unwrap().is_none());
    assert_eq!(
        *calls.log().last().unwrap(),
        format!("clean up old [{OURS}]")
    );
    assert_eq!(running.errors().len(), 1, "the clean-up went well");
}

/// T49: an owner with a finalizer goes with its fifty children, and no item is an error.
#[tokio::test(start_paused = true)]
async fn an_owner_of_many() {
    let world = World::new(&["a"]).await;
    let calls = Calls::new(world.client.clone(), &[done]);
    let running = Running::start(world.controller_of_both().finalizer(OURS).run(
        reconcile,
        clean_up,
        error_policy::backoff,
        calls.clone(),
    ));
    for number in 0..50 {
        world.create_child("a", &format!("child-{number}")).await;
    }
    sleep(MINUTE).await;
    world.delete("a").await;
    sleep(MINUTE).await;
    assert!(
        world
            .maps
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(world.finalizers("a").await, None);
    let cleanups = calls
        .log()
        .into_iter()
        .filter(|line| line.starts_with("clean up"));
    assert_eq!((cleanups.count(), running.errors()), (1, vec![]));
}

/// With a condition: it tells of nothing before the first reconcile, and of what is in the way of the
/// finalizer. (Widgets have no conditions; config maps with a status neither, so this is a definition
/// of its own.)
mod with_conditions {
    use super::*;
    use homeostat::conditions;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use kube::{CustomResource, CustomResourceExt};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Site", namespaced)]
    #[kube(status = "SiteStatus")]
    struct SiteSpec {}

    #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
    struct SiteStatus {
        #[serde(default)]
        conditions: Vec<Condition>,
    }

    async fn reconcile(_: Arc<Site>, _: Arc<()>) -> Outcome {
        sleep(10 * SECOND).await;
        Ok(Action::await_change())
    }

    async fn clean_up(_: Arc<Site>, _: Arc<()>) -> Outcome {
        Err(Error::NoSense)
    }

    #[tokio::test(start_paused = true)]
    async fn the_condition_tells_of_reconciles() {
        let server = ApiServer::builder().build();
        let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
        definitions
            .create(&PostParams::default(), &Site::crd())
            .await
            .unwrap();
        let sites: Api<Site> = Api::default_namespaced(server.client());
        let controller = Controller::new(sites.clone(), watcher::Config::default())
            .filter(predicates::generation)
            .status_conditions("Ready")
            .finalizer(OURS);
        let items = controller.run(reconcile, clean_up, error_policy::classified, Arc::new(()));
        let task = tokio::spawn(items.for_each(|_| ready(())));
        sites
            .create(&PostParams::default(), &Site::new("a", SiteSpec {}))
            .await
            .unwrap();
        let ready = async || {
            let site = sites.get("a").await.unwrap();
            let conditions = site.status.unwrap_or_default().conditions;
            let ready = conditions::get(&conditions, "Ready");
            ready.map(|ready| format!("{} {}", ready.status, ready.reason))
        };
        sleep(5 * SECOND).await;
        assert_eq!(sites.get("a").await.unwrap().finalizers(), [OURS]);
        assert_eq!(ready().await, None, "the reconcile goes on");
        sleep(10 * SECOND).await;
        assert_eq!(ready().await.as_deref(), Some("True Reconciled"));
        sites.delete("a", &DeleteParams::default()).await.unwrap();
        sleep(10 * SECOND).await;
        assert_eq!(ready().await.as_deref(), Some("False NoSense"));
        task.abort();

        // What keeps the finalizer from being added is told, too.
        let rule = Rule::any().verb(Verb::Patch).name("b").subresource("");
        let _forbidden = server.faults().inject(rule, Fault::Forbidden);
        let controller = Controller::new(sites.clone(), watcher::Config::default())
            .status_conditions("Ready")
            .finalizer(OURS);
        let items = controller.run(reconcile, clean_up, error_policy::classified, Arc::new(()));
        let task = tokio::spawn(items.for_each(|_| std::future::ready(())));
        sites
            .create(&PostParams::default(), &Site::new("b", SiteSpec {}))
            .await
            .unwrap();
        sleep(5 * SECOND).await;
        let site = sites.get("b").await.unwrap();
        let conditions = site.status.unwrap().conditions;
        assert_eq!(conditions[0].reason, "Forbidden");
        task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_work_is_an_error_of_each_run() {
    let world = World::new(&["a"]).await;
    let calls = Calls::new(world.client.clone(), &[done]);
    let controller = world.controller().finalizer("not a name");
    let running = Running::start(controller.run(
        reconcile,
        clean_up,
        error_policy::classified,
        calls.clone(),
    ));
    sleep(MINUTE).await;
    let [error] = &*running.errors() else {
        panic!("once: {:?}", running.errors());
    };
    assert!(error.contains("Widget"), "{error}");

    // From a stream nobody knows the client.
    let (reader, writer) = reflector::store();
    let stream = watcher(world.widgets.clone(), watcher::Config::default())
        .reflect(writer)
        .applied_objects();
    let controller = Controller::for_stream(stream, reader).finalizer(OURS);
    let items = controller.run(reconcile, clean_up, error_policy::classified, calls.clone());
    let running = Running::start(items);
    sleep(MINUTE).await;
    assert_eq!(running.errors().len(), 1);
    assert_eq!(calls.log(), Vec::<String>::new());

    let (reader, writer) = reflector::store();
    let stream = watcher(world.widgets.clone(), watcher::Config::default())
        .reflect(writer)
        .applied_objects();
    let controller = Controller::for_stream(stream, reader)
        .finalizer(OURS)
        .client(world.client.clone());
    let items = controller.run(reconcile, clean_up, error_policy::classified, calls.clone());
    let _running = Running::start(items);
    sleep(MINUTE).await;
    assert_eq!(calls.log(), [format!("reconcile a [{OURS}]")]);
}

#[tokio::test(start_paused = true)]
async fn objects_in_no_namespace() {
    let world = World::new(&[]).await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let items = Controller::new(
        namespaces.clone(),
        watcher::Config::default().labels("ours"),
    )
    .finalizer(OURS)
    .run(
        |_, _| ready(Ok::<_, kube::Error>(Action::await_change())),
        |_, _| ready(Ok(Action::await_change())),
        error_policy::backoff,
        Arc::new(()),
    );
    let task = tokio::spawn(items.for_each(|item| async move { drop(item.unwrap()) }));
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "ours": "" } } }));
    namespaces
        .patch("default", &PatchParams::default(), &patch)
        .await
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    let namespace = namespaces.get("default").await.unwrap();
    assert_eq!(namespace.finalizers(), [OURS]);
    assert!(!task.is_finished());
    task.abort();
}
