//! An operator that waits for a secret, which it hears of in each of the ways that a controller can hear of something.

use super::{
    HOMEOSTAT,
    runtime::{
        self, Controller, WatchStreamExt,
        controller::Action,
        reflector::{self, ObjectRef},
        watcher,
    },
};
use crate::{
    cluster::{Cluster, an_hour, annotation, config_map, create, during, from, merge},
    journal::Journal,
};
use futures::{StreamExt, channel::mpsc, future};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, Resource};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// How the controller hears of the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Watches,
    WatchesStream,
    WatchesSharedStream,
    Owns,
    OwnsStream,
    OwnsSharedStream,
    Asked,
    AllAsked,
}

const RELATED: [Way; 6] = [
    Way::Watches,
    Way::WatchesStream,
    Way::WatchesSharedStream,
    Way::Owns,
    Way::OwnsStream,
    Way::OwnsSharedStream,
];

/// What the error policy answers.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Wait,
    AwaitChange,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the secret is missing")]
    Missing,
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

struct Context {
    secrets: Api<Secret>,
    begin: Instant,
    policy: Policy,
    output: Journal,
}

/// The other ends of what the controller listens to.
struct Requests {
    one: mpsc::UnboundedReceiver<ObjectRef<ConfigMap>>,
    all: mpsc::UnboundedReceiver<()>,
}

async fn reconcile(_: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, Error> {
    let secret = ctx.secrets.get_opt("s").await?;
    let ready = secret.filter(|secret| annotation(secret, "ready") != Some("no"));
    let at = ctx.begin.elapsed().as_secs();
    let word = if ready.is_some() { "found" } else { "missing" };
    ctx.output.say(format!("{word} {at}"));
    ready.map(|_| Action::await_change()).ok_or(Error::Missing)
}

fn on_error(_: Arc<ConfigMap>, _: &Error, ctx: Arc<Context>) -> Action {
    match ctx.policy {
        Policy::Wait => Action::requeue(Duration::from_secs(300)),
        Policy::AwaitChange => Action::await_change(),
    }
}

fn wanted_by(secret: &Secret) -> Option<ObjectRef<ConfigMap>> {
    let map = annotation(secret, "map")?;
    Some(ObjectRef::new(map).within("default"))
}

async fn run(client: Client, way: Way, policy: Policy, output: Journal, requests: Requests) {
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let ctx = Context {
        secrets: secrets.clone(),
        begin: Instant::now(),
        policy,
        output,
    };
    let all = watcher::Config::default;
    let (_reader, writer) = reflector::store_shared(16);
    let shared = writer.subscribe().expect("the store is shared");
    let stream = || runtime::watcher(secrets.clone(), all()).default_backoff();
    let feed = stream()
        .reflect_shared(writer)
        .for_each(|_| future::ready(()));
    let touched = stream().touched_objects();
    let secrets = secrets.clone();

    let controller = Controller::new(maps, all());
    let controller = match way {
        Way::Watches => controller.watches(secrets, all(), |secret| wanted_by(&secret)),
        Way::WatchesStream => controller.watches_stream(touched, |secret| wanted_by(&secret)),
        Way::WatchesSharedStream => {
            controller.watches_shared_stream(shared, |secret| wanted_by(&secret))
        }
        Way::Owns => controller.owns(secrets, all()),
        Way::OwnsStream => controller.owns_stream(touched),
        Way::OwnsSharedStream => controller.owns_shared_stream(shared),
        Way::Asked => controller.reconcile_on(requests.one),
        Way::AllAsked => controller.reconcile_all_on(requests.all),
    };
    let runs = controller
        .run(reconcile, on_error, Arc::new(ctx))
        .for_each(|_| future::ready(()));
    future::join(runs, feed).await;
}

/// The map whose operator waits, and the secret that it waits for.
async fn scene(cluster: &Cluster, ready: &str) -> Secret {
    let map = create(&cluster.api::<ConfigMap>(), &config_map("a", &[])).await;
    let owner = map.owner_ref(&()).expect("it comes from a server");
    let annotations = json!({ "map": "a", "ready": ready });
    from(json!({
        "metadata": { "name": "s", "annotations": annotations, "ownerReferences": [owner] }
    }))
}

/// Whatever the error policy has said, the map runs when the secret appears.
#[tokio::test(start_paused = true)]
async fn each_way_ends_the_wait() {
    for policy in [Policy::Wait, Policy::AwaitChange] {
        for way in RELATED.into_iter().chain([Way::Asked, Way::AllAsked]) {
            let cluster = Cluster::start();
            let secret = scene(&cluster, "yes").await;
            let output = Journal::default();
            let ((ask, one), (ask_all, all)) = (mpsc::unbounded(), mpsc::unbounded());
            let requests = Requests { one, all };
            let program = run(cluster.program(), way, policy, output.clone(), requests);
            during(program, async {
                output.until_count(1).await;
                sleep(Duration::from_secs(100)).await;
                create(&cluster.api(), &secret).await;
                if way == Way::Asked {
                    let map = ObjectRef::new("a").within("default");
                    ask.unbounded_send(map).expect("the controller listens");
                } else if way == Way::AllAsked {
                    ask_all.unbounded_send(()).expect("the controller listens");
                }
                output.until_count(2).await;
                an_hour().await;
            })
            .await;
            assert_eq!(
                output.take(),
                ["missing 0", "found 100"],
                "{way:?} {policy:?}"
            );
        }
    }
}

/// "an object that failed is run early by any event": a secret that changes twice each second for a minute, and is not
/// ready.
#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_all_the_time() {
    for way in RELATED {
        let cluster = Cluster::start();
        let secret = scene(&cluster, "no").await;
        let output = Journal::default();
        let ((_ask, one), (_ask_all, all)) = (mpsc::unbounded(), mpsc::unbounded());
        let requests = Requests { one, all };
        let program = run(
            cluster.program(),
            way,
            Policy::Wait,
            output.clone(),
            requests,
        );
        during(program, async {
            output.until_count(1).await;
            create(&cluster.api(), &secret).await;
            for number in 0..120 {
                let data = json!({ "stringData": { "n": number.to_string() } });
                merge(&cluster.api::<Secret>(), "s", data).await;
                sleep(Duration::from_millis(500)).await;
            }
            // The last change arrives, at the latest 30 s after it.
            let annotations = json!({ "metadata": { "annotations": { "ready": "yes" } } });
            merge(&cluster.api::<Secret>(), "s", annotations).await;
            sleep(Duration::from_secs(31)).await;
        })
        .await;
        let lines = output.take();
        assert!(
            lines.last().is_some_and(|line| line.starts_with("found")),
            "{way:?}: {lines:?}"
        );
        let few = if HOMEOSTAT { 3..=9 } else { 100..=123 };
        assert!(few.contains(&lines.len()), "{way:?}: {lines:?}");
    }
}
