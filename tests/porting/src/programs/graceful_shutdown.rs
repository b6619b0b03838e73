//! A controller that finishes what it has begun when it is told to stop.

use super::runtime::{Controller, controller::Action, watcher};
use crate::{
    cluster::{Cluster, an_hour, annotation, config_map, create},
    journal::Journal,
};
use futures::{StreamExt, channel::oneshot, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::timeout};

/// A backup service that takes its time.
struct Backups {
    api: Api<ConfigMap>,
    tapes: Arc<Semaphore>,
    output: Journal,
}

async fn back_up(map: Arc<ConfigMap>, backups: Arc<Backups>) -> Result<Action, kube::Error> {
    if annotation(&*map, "example.com/saved").is_some() {
        return Ok(Action::requeue(Duration::from_secs(3600)));
    }
    let name = map.name_any();
    backups.output.say(format!("begin {name}"));
    if let Ok(tape) = backups.tapes.acquire().await {
        tape.forget();
    }
    let patch = json!({ "metadata": { "annotations": { "example.com/saved": "yes" } } });
    let params = PatchParams::default();
    backups
        .api
        .patch(&name, &params, &Patch::Merge(patch))
        .await?;
    backups.output.say(format!("end {name}"));
    Ok(Action::requeue(Duration::from_secs(3600)))
}

async fn run(client: Client, backups: Backups, stop: oneshot::Receiver<()>) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let output = backups.output.clone();
    Controller::new(maps, watcher::Config::default())
        .graceful_shutdown_on(async {
            // A sender that is gone cannot ask for anything else.
            let _ = stop.await;
        })
        .run(
            back_up,
            |_, _, _| Action::requeue(Duration::from_secs(60)),
            Arc::new(backups),
        )
        .for_each(|_| future::ready(()))
        .await;
    output.say("stopped");
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_is_finished() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let maps = cluster.api::<ConfigMap>();
    create(&maps, &config_map("early", &[])).await;
    let tapes = Arc::new(Semaphore::new(0));
    let backups = Backups {
        api: Api::default_namespaced(cluster.program()),
        tapes: Arc::clone(&tapes),
        output: output.clone(),
    };
    let (stop, stopped) = oneshot::channel();
    let scenario = async {
        output.until_said("begin early").await;
        stop.send(()).expect("the program runs");
        // It hears of this before the next object comes, and waits for the tape.
        an_hour().await;
        create(&maps, &config_map("late", &[])).await;
        an_hour().await;
        assert_eq!(output.lines(), ["begin early"]);
        tapes.add_permits(2);
    };
    let both = future::join(run(cluster.program(), backups, stopped), scenario);
    let stopped = timeout(Duration::from_secs(24 * 3600), both).await;
    assert!(stopped.is_ok(), "the program ends by itself");
    assert_eq!(output.lines(), ["begin early", "end early", "stopped"]);
    assert_eq!(cluster.take_writes(), ["patch configmaps default/early"]);
    let late = maps.get("late").await.expect("it is there");
    assert_eq!(annotation(&late, "example.com/saved"), None);
}

/// A controller that has nothing to do stops at once.
#[tokio::test(start_paused = true)]
async fn an_idle_controller_stops() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let backups = Backups {
        api: Api::default_namespaced(cluster.program()),
        tapes: Arc::new(Semaphore::new(0)),
        output: output.clone(),
    };
    let (stop, stopped) = oneshot::channel();
    let scenario = async {
        an_hour().await;
        stop.send(()).expect("the program runs");
    };
    let both = future::join(run(cluster.program(), backups, stopped), scenario);
    let stopped = timeout(Duration::from_secs(3601), both).await;
    assert!(stopped.is_ok());
    assert_eq!(output.lines(), ["stopped"]);
}
