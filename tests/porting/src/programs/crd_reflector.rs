//! A program that installs a kind and answers questions about its objects from a store.

use super::runtime::{
    WatchStreamExt, conditions, reflector,
    reflector::{ObjectRef, Store},
    wait::await_condition,
    watcher,
};
use crate::{
    cluster::{Cluster, create, delete, during, merge, merge_status},
    journal::Journal,
};
use futures::{StreamExt, future};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource, CustomResourceExt, ResourceExt,
    api::PostParams,
    core::{Expression, Selector},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Printer",
    namespaced,
    status = "PrinterStatus"
)]
struct PrinterSpec {
    room: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct PrinterStatus {
    jobs: u32,
}

/// What can be asked.
#[derive(Clone)]
struct Directory {
    printers: Store<Printer>,
}

impl Directory {
    fn room_of(&self, name: &str) -> Option<u32> {
        let reference = ObjectRef::<Printer>::new(name).within("default");
        Some(self.printers.get(&reference)?.spec.room)
    }

    /// The busiest printer of those with color.
    fn busiest(&self) -> Option<Arc<Printer>> {
        let color = Selector::from(Expression::Equal("color".into(), "yes".into()));
        let printers = self.printers.state_filter_selector(&color);
        let jobs = |printer: &Arc<Printer>| printer.status.as_ref().map(|status| status.jobs);
        printers.into_iter().max_by_key(jobs)
    }

    fn idle(&self) -> usize {
        let idle = |printer: &Printer| printer.status.as_ref().is_none_or(|it| it.jobs == 0);
        self.printers.state_filter(idle).len()
    }
}

/// Installs the kind and starts to watch. The future keeps the directory up to date.
async fn open(
    client: Client,
    output: Journal,
) -> Result<(Directory, impl Future<Output = ()>), Box<dyn std::error::Error>> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let definition = Printer::crd();
    let params = PostParams::default();
    definitions.create(&params, &definition).await?;
    let established = conditions::is_crd_established();
    await_condition(definitions, &definition.name_any(), established).await?;

    let (printers, writer) = reflector::store();
    let events = watcher(Api::<Printer>::all(client), watcher::Config::default());
    let keep = reflector(writer, events.default_backoff())
        .touched_objects()
        .for_each(move |printer| {
            output.say(match printer {
                Ok(printer) => printer.name_any(),
                Err(error) => error.to_string(),
            });
            future::ready(())
        });
    Ok((Directory { printers }, keep))
}

#[tokio::test(start_paused = true)]
async fn the_directory_is_up_to_date() {
    let cluster = Cluster::start();
    let output = Journal::default();
    let opened = open(cluster.program(), output.clone()).await;
    let (directory, keep) = opened.expect("the kind is installed");
    assert!(directory.printers.is_empty());
    let api = cluster.api::<Printer>();
    let printer = |name: &str, room, color: bool| {
        let mut printer = Printer::new(name, PrinterSpec { room });
        if color {
            printer.labels_mut().insert("color".into(), "yes".into());
        }
        printer
    };
    create(&api, &printer("inky", 1, true)).await;
    create(&api, &printer("dusty", 2, false)).await;

    during(keep, async {
        directory
            .printers
            .wait_until_ready()
            .await
            .expect("it is filled");
        output.until_count(2).await;
        assert_eq!(directory.printers.len(), 2);
        assert_eq!(
            (directory.room_of("inky"), directory.room_of("gone")),
            (Some(1), None)
        );

        create(&api, &printer("shiny", 3, true)).await;
        merge_status(&api, "shiny", json!({ "status": { "jobs": 4 } })).await;
        merge_status(&api, "dusty", json!({ "status": { "jobs": 9 } })).await;
        output.until_count(5).await;
        let busiest = directory.busiest().map(|printer| printer.name_any());
        assert_eq!(busiest.as_deref(), Some("shiny"));
        assert_eq!(directory.idle(), 1);

        merge(&api, "inky", json!({ "spec": { "room": 7 } })).await;
        delete(&api, "shiny").await;
        output.until_count(7).await;
        assert_eq!(directory.room_of("inky"), Some(7));
        assert_eq!(directory.room_of("shiny"), None);
        let found = directory.printers.find(|printer| printer.spec.room == 2);
        assert_eq!(
            found.map(|printer| printer.name_any()).as_deref(),
            Some("dusty")
        );
        assert_eq!(directory.printers.state().len(), 2);
    })
    .await;
}
