//! A controller in a test of the user's own: a store that is full from the start, a stream of a few objects, and no
//! server.

use super::{
    HOMEOSTAT,
    runtime::{
        Controller,
        controller::{Action, Error},
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher::{self, Event},
    },
};
use crate::{cluster::config_map, journal::Journal};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use std::sync::Arc;

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("this is a bad one")]
struct Bad;

fn store_with(names: &[&str]) -> (Store<ConfigMap>, Writer<ConfigMap>) {
    let (reader, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for name in names {
        writer.apply_watcher_event(&Event::InitApply(config_map(name, &[])));
    }
    writer.apply_watcher_event(&Event::InitDone);
    (reader, writer)
}

fn objects(names: &'static [&str]) -> impl Stream<Item = watcher::Result<ConfigMap>> {
    stream::iter(names).map(|name| Ok(config_map(name, &[])))
}

async fn reconcile(map: Arc<ConfigMap>, output: Arc<Journal>) -> Result<Action, Bad> {
    output.say(map.name_any());
    if map.name_any() == "bad" {
        return Err(Bad);
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn each_object_runs_once() {
    let names = &["bad", "good", "other"];
    let (reader, _writer) = store_with(names);
    let output = Arc::new(Journal::default());
    let stream = objects(names).chain(stream::pending());
    let results: Vec<_> = Controller::for_stream(stream, reader)
        .run(
            reconcile,
            |_, _, _| Action::await_change(),
            Arc::clone(&output),
        )
        .take(3)
        .collect()
        .await;
    let mut said = output.take();
    said.sort();
    assert_eq!(said, names);
    let (done, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), failed.len()), (2, 1));
    for result in failed {
        match result {
            Err(Error::ReconcilerFailed(error, reference)) => {
                assert_eq!((error, reference.name.as_str()), (Bad, "bad"));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What fails comes out, and the objects around it run.
#[tokio::test(start_paused = true)]
async fn errors_of_the_stream_come_out() {
    let (reader, _writer) = store_with(&["good"]);
    let output = Arc::new(Journal::default());
    let stream = stream::iter([Err(watcher::Error::NoResourceVersion)])
        .chain(objects(&["good"]))
        .chain(stream::pending());
    let results: Vec<_> = Controller::for_stream(stream, reader)
        .run(
            reconcile,
            |_, _, _| Action::await_change(),
            Arc::clone(&output),
        )
        .take(2)
        .collect()
        .await;
    assert_eq!(output.take(), ["good"]);
    let errors = results.iter().filter(|result| {
        matches!(
            result,
            Err(Error::QueueError(watcher::Error::NoResourceVersion))
        )
    });
    assert_eq!((results.len(), errors.count()), (2, 1));
}

/// Streams of what a cluster may not have, for which the user puts one that says nothing.
#[tokio::test(start_paused = true)]
async fn streams_that_say_nothing_hold_nothing_up() {
    let (reader, _writer) = store_with(&["good"]);
    let output = Arc::new(Journal::default());
    let results: Vec<_> =
        Controller::for_stream(objects(&["good"]).chain(stream::pending()), reader)
            .owns_stream(stream::pending::<watcher::Result<Secret>>())
            .watches_stream(stream::pending::<watcher::Result<Secret>>(), |_| {
                None::<ObjectRef<ConfigMap>>
            })
            .owns_shared_stream(stream::pending::<Arc<Secret>>())
            .reconcile_all_on(stream::pending())
            .reconcile_on(stream::pending())
            .run(
                reconcile,
                |_, _, _| Action::await_change(),
                Arc::clone(&output),
            )
            .take(1)
            .collect()
            .await;
    assert_eq!((results.len(), output.take()), (1, vec!["good".into()]));
}

/// "a scheduler, and a controller with it, ends with its requests"
#[tokio::test(start_paused = true)]
async fn what_waits_when_the_stream_ends() {
    let names = &["good", "other"];
    let (reader, _writer) = store_with(names);
    let output = Arc::new(Journal::default());
    let results = Controller::for_stream(objects(names), reader).run(
        reconcile,
        |_, _, _| Action::await_change(),
        Arc::clone(&output),
    );
    assert_eq!(results.count().await, if HOMEOSTAT { 2 } else { 0 });
    let shared = stream::iter(names).map(|name| Arc::new(config_map(name, &[])));
    let (reader, _writer) = store_with(names);
    let results = Controller::for_shared_stream(shared, reader).run(
        reconcile,
        |_, _, _| Action::await_change(),
        Arc::clone(&output),
    );
    assert_eq!(results.count().await, if HOMEOSTAT { 2 } else { 0 });
}
