//! A controller that tells people about config maps that it cannot use.

use super::runtime::{
    Controller,
    controller::Action,
    events::{Event, EventType, Recorder, Reporter},
    watcher,
};
use crate::cluster::{Cluster, config_map, create, during, entry, merge, until_any};
use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{ConfigMap, ObjectReference},
    events::v1::Event as Recorded,
};
use kube::{Api, Client, Resource};
use serde_json::json;
use std::{sync::Arc, time::Duration};

struct Context {
    recorder: Recorder,
    team: ObjectReference,
}

fn complaint(map: &ConfigMap) -> Option<String> {
    let size = entry(map, "size").unwrap_or("nothing");
    match size.parse::<u32>() {
        Ok(_) => None,
        Err(_) => Some(format!("size must be a number, not {size}")),
    }
}

async fn reconcile(map: Arc<ConfigMap>, ctx: Arc<Context>) -> Result<Action, kube::Error> {
    let complaint = complaint(&map);
    let healthy = complaint.is_none();
    let event = Event {
        type_: if healthy {
            EventType::Normal
        } else {
            EventType::Warning
        },
        reason: if healthy { "SizeTaken" } else { "BadSize" }.into(),
        note: Some(complaint.unwrap_or_else(|| "all is well".into())),
        action: "Resizing".into(),
        secondary: Some(ctx.team.clone()),
    };
    let reference = map.object_ref(&());
    ctx.recorder.publish(&event, &reference).await?;
    Ok(if healthy {
        Action::await_change()
    } else {
        Action::requeue(Duration::from_secs(20))
    })
}

async fn run(client: Client) {
    let reporter = Reporter {
        controller: "example.com/resizer".into(),
        instance: Some("resizer-0".into()),
    };
    let team = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Namespace".into()),
        name: Some("default".into()),
        ..ObjectReference::default()
    };
    let ctx = Context {
        recorder: Recorder::new(client.clone(), reporter),
        team,
    };
    let config = watcher::Config::default().fields("metadata.name=sizes");
    Controller::new(Api::<ConfigMap>::all(client), config)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(60)),
            Arc::new(ctx),
        )
        .for_each(async |_| {})
        .await;
}

#[tokio::test(start_paused = true)]
async fn people_are_told_once_and_how_often() {
    let cluster = Cluster::start();
    let maps = cluster.api::<ConfigMap>();
    let events = cluster.api::<Recorded>();
    let map = create(&maps, &config_map("sizes", &[("size", "huge")])).await;
    let because =
        |reason: &'static str| move |event: &Recorded| event.reason.as_deref() == Some(reason);

    during(run(cluster.program()), async {
        let event = until_any(&events, because("BadSize")).await;
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(
            event.note.as_deref(),
            Some("size must be a number, not huge")
        );
        assert_eq!(event.action.as_deref(), Some("Resizing"));
        assert_eq!(
            event.reporting_controller.as_deref(),
            Some("example.com/resizer")
        );
        assert_eq!(event.reporting_instance.as_deref(), Some("resizer-0"));
        let regarding = event.regarding.expect("it is about something");
        assert_eq!(regarding.kind.as_deref(), Some("ConfigMap"));
        assert_eq!(
            (regarding.name, regarding.uid),
            (map.metadata.name, map.metadata.uid)
        );
        let related = event.related.and_then(|related| related.name);
        assert_eq!(related.as_deref(), Some("default"));

        let again = |event: &Recorded| event.series.as_ref().is_some_and(|it| it.count == 4);
        let counted = until_any(&events, again).await;
        assert_eq!(counted.metadata.name, event.metadata.name);
        merge(&maps, "sizes", json!({ "data": { "size": "3" } })).await;
        let healthy = until_any(&events, because("SizeTaken")).await;
        assert_eq!(healthy.type_.as_deref(), Some("Normal"));
        assert_eq!(healthy.series, None);
    })
    .await;
}
