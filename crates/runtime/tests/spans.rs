//! R20: why an object is reconciled stands in a tracing span, and nowhere else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use futures::{FutureExt, StreamExt, stream};
use homeostat::{
    Action, Controller, error_policy,
    reflector::{self, ObjectRef},
    watcher::{self, Event},
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Resource, api::ObjectMeta};
use std::{
    fmt::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;
use tracing::{
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{layer::SubscriberExt, registry::LookupSpan};

/// Notes each span that is made, and each event with the spans that it is in.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Notes {
    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        _: &span::Id,
        _: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = attributes.metadata().name();
        self.0.lock().unwrap().push(format!("{name}{}", fields.0));
    }

    fn on_event(
        &self,
        event: &tracing::Event<'_>,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let span = context.event_span(event).map(|span| span.name());
        let span = span.unwrap_or("no span");
        self.0
            .lock()
            .unwrap()
            .push(format!("in {span}:{}", fields.0));
    }
}

#[derive(Debug, thiserror::Error)]
#[error("not yet")]
struct NotYet;

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some("default".into()),
        uid: Some(format!("uid-of-{name}")),
        resource_version: Some("1".into()),
        ..ObjectMeta::default()
    }
}

/// B28: a run that a timer asked for is told from one that an event asked for.
#[tokio::test(start_paused = true)]
async fn reasons_stand_in_the_span() {
    let notes = Notes::default();
    let subscriber = tracing_subscriber::registry().with(notes.clone());
    let _guard = tracing::subscriber::set_default(subscriber);

    let map = ConfigMap {
        metadata: meta("a"),
        ..ConfigMap::default()
    };
    let secret = Secret {
        metadata: ObjectMeta {
            owner_references: map.owner_ref(&()).map(|owner| vec![owner]),
            ..meta("s")
        },
        ..Secret::default()
    };
    let (reader, mut writer) = reflector::store();
    for event in [Event::Init, Event::InitApply(map.clone()), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    let at = |seconds| sleep(Duration::from_secs(seconds));
    let mut runs = 0;
    let reconcile = |_: Arc<ConfigMap>, _: Arc<()>| {
        runs += 1;
        let run = runs;
        async move {
            tokio::task::yield_now().await;
            tracing::info!("working");
            match run {
                1 => Err(NotYet),
                2 => Ok(Action::requeue(Duration::from_secs(3))),
                _ => Ok(Action::await_change()),
            }
        }
    };
    let later =
        |seconds, obj: Secret| stream::once(at(seconds).map(|()| Ok::<_, watcher::Error>(obj)));
    Controller::for_stream(stream::iter([Ok(map)]), reader)
        .owns_stream(later(10, secret))
        .reconcile_on(stream::once(
            at(20).map(|()| ObjectRef::new("a").within("default")),
        ))
        .reconcile_all_on(stream::once(at(30)))
        .run(reconcile, error_policy::backoff, Arc::new(()))
        .for_each(|_| std::future::ready(()))
        .await;

    let notes = notes.0.lock().unwrap();
    let span = |reason: &str| {
        format!("reconciling object object.ref=ConfigMap.v1./a.default object.reason={reason}")
    };
    let event = "in reconciling object: message=working".to_owned();
    let expected: Vec<String> = [
        "object updated",
        "error policy requested retry",
        "reconciler requested retry",
        "related object updated: Secret.v1./s.default",
        "unknown",
        "bulk reconcile requested",
    ]
    .into_iter()
    .flat_map(|reason| [span(reason), event.clone()])
    .collect();
    assert_eq!(*notes, expected);
}
