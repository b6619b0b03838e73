//! A command that reconciles what it is told to, once, and ends: its reconciler asks to run again nevertheless.

use super::runtime::{
    Config, applier,
    controller::Action,
    reflector::{self, ObjectRef},
    watcher::{self, Event},
};
use crate::{cluster::config_map, journal::Journal};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

async fn reconcile(map: Arc<ConfigMap>, output: Arc<Journal>) -> Result<Action, watcher::Error> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    output.say(map.name_any());
    Ok(Action::requeue(Duration::from_secs(3600)))
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_all_is_done() {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for name in ["a", "b", "c"] {
        writer.apply_watcher_event(&Event::InitApply(config_map(name, &[])));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let output = Journal::default();
    let wanted = ["a", "b", "c", "a"].map(|name| Ok::<_, watcher::Error>(ObjectRef::new(name)));
    // Somebody has to have a look at what is wanted before it ends.
    let end = stream::once(tokio::time::sleep(Duration::from_secs(1))).filter_map(async |()| None);
    let wanted = stream::iter(wanted).chain(end).boxed();
    let begin = Instant::now();
    let results = applier(
        |map, output| Box::pin(reconcile(map, output)),
        |_, _, _| Action::await_change(),
        Arc::new(output.clone()),
        store,
        wanted,
        Config::default(),
    );
    let results = timeout(Duration::from_secs(7200), results.count()).await;
    assert_eq!(results, Ok(3));
    let mut names = output.take();
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
}
