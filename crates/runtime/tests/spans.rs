//! What the log tells: why an object is reconciled (R20), in a tracing span and nowhere else, and a controller's life.
//!
//! Nothing else runs in this process, because what is logged in one thread depends on who listens in others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use futures::{FutureExt, StreamExt, stream};
use homeostat::{
    Action, Controller, WatchStreamExt, error_policy,
    reflector::{self, ObjectRef},
    watcher::{self, Event},
};
use homeostat_apiserver::{Fault, Rule, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta};
use std::{
    fmt::{self, Write},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;
use tracing::{
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{layer::SubscriberExt, registry::LookupSpan};
use world::{Failure, MINUTE, SECOND, Widget, World, even_backoff, idle, rule};

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

/// A map, and a secret that it owns.
fn owner_and_owned() -> (ConfigMap, Secret) {
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
    (map, secret)
}

/// A store with this map alone.
fn store_of(map: &ConfigMap) -> reflector::Store<ConfigMap> {
    let (reader, mut writer) = reflector::store();
    for event in [Event::Init, Event::InitApply(map.clone()), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    reader
}

/// B28: a run that a timer asked for is told from one that an event asked for.
#[tokio::test(start_paused = true)]
async fn reasons_stand_in_the_span() {
    let notes = Notes::default();
    let subscriber = tracing_subscriber::registry().with(notes.clone());
    let _guard = tracing::subscriber::set_default(subscriber);

    let (map, secret) = owner_and_owned();
    let reader = store_of(&map);
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

    // What the controller tells of itself, and of each run, is not what this is about.
    let mut notes = notes.0.lock().unwrap();
    notes.retain(|note| !note.starts_with("in no span") && !note.contains("outcome="));
    notes.retain(|note| !note.starts_with("event "));
    let span = |reason: &str| {
        let attempt = 1 + u32::from(reason == "error policy requested retry");
        let object = "object.ref=ConfigMap.v1./a.default";
        format!("reconciling object {object} object.reason={reason} attempt={attempt}")
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

/// Notes which span is inside of which other, and which follows from which.
#[derive(Clone, Default)]
struct Kinship(Arc<Mutex<Vec<String>>>);

/// A span by its name, and that of an event by what the event is about.
struct Called(String);

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Kinship {
    fn on_new_span(
        &self,
        attributes: &span::Attributes<'_>,
        id: &span::Id,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let span = context.span(id).unwrap();
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = match span.name() {
            "event" => fields.0.trim_start().to_owned(),
            name => name.to_owned(),
        };
        let parent = span.parent().map(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Called>().unwrap().0.clone()
        });
        span.extensions_mut().insert(Called(name.clone()));
        let parent = parent.unwrap_or("nothing".into());
        self.0.lock().unwrap().push(format!("{name} in {parent}"));
    }

    fn on_follows_from(
        &self,
        id: &span::Id,
        from: &span::Id,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        let called = |id| {
            let span = context.span(id).unwrap();
            let extensions = span.extensions();
            extensions.get::<Called>().unwrap().0.clone()
        };
        let note = format!("{} after {}", called(id), called(from));
        self.0.lock().unwrap().push(note);
    }
}

/// A run is inside of the first event that it answers, and follows from the others. One that no event asks for is in
/// none.
#[tokio::test(start_paused = true)]
async fn runs_are_inside_of_the_events_that_they_answer() {
    let kinship = Kinship::default();
    let subscriber = tracing_subscriber::registry().with(kinship.clone());
    let _guard = tracing::subscriber::set_default(subscriber);

    let (map, secret) = owner_and_owned();
    let reader = store_of(&map);
    let later = sleep(SECOND / 2).map(|()| Ok::<_, watcher::Error>(secret));
    let reconcile =
        |_: Arc<ConfigMap>, _: Arc<()>| std::future::ready(Ok::<_, NotYet>(Action::await_change()));
    Controller::for_stream(stream::iter([Ok(map)]), reader)
        .owns_stream(stream::once(later))
        .reconcile_all_on(stream::once(sleep(5 * SECOND)))
        .with_config(homeostat::controller::Config::default().debounce(SECOND))
        .run(reconcile, error_policy::backoff, Arc::new(()))
        .for_each(|_| std::future::ready(()))
        .await;

    let own = "object.key=default/a object.reason=object updated";
    let related = "object.key=default/a object.reason=related object updated: Secret.v1./s.default";
    let expected = [
        format!("{own} in nothing"),
        format!("{related} in nothing"),
        format!("reconciling object in {own}"),
        format!("reconciling object after {related}"),
        "reconciling object in nothing".to_owned(),
    ];
    assert_eq!(*kinship.0.lock().unwrap(), expected);
}

/// What was logged, line by line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Takes out the lines so far of the library's own, up to a level.
    fn take(&self, levels: &[&str]) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().map(|line| line.trim_start().to_owned());
        let ours = |line: &String| {
            let level = levels.iter().find(|level| line.starts_with(**level));
            level.is_some() && line.contains(" homeostat::")
        };
        lines.filter(ours).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks that there are as many lines as texts, and that each line has the parts of its text.
#[track_caller]
fn check_lines(lines: &[String], expected: &[&[&str]]) {
    let has = |(line, parts): (&String, &&[&str])| parts.iter().all(|part| line.contains(part));
    let all = lines.iter().zip(expected).all(has);
    assert!(all && lines.len() == expected.len(), "{lines:#?}");
}

/// Section 6: the log of a whole life. At `info` it tells of the start, of the caches, of a watch that fails and works
/// again, and of the end; at `debug` of each run; and of nothing twice.
#[expect(
    clippy::too_many_lines,
    reason = "it is told from the start to the end"
)]
#[tokio::test(start_paused = true)]
async fn the_log_of_a_life() {
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .without_time()
        .with_ansi(false)
        .with_writer(move || written.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let world = World::new(&["a", "b"]).await;
    let _slow = world.inject(
        rule(Verb::Watch, "widgets").times(1),
        Fault::Delay(25 * SECOND),
    );
    let own = Api::<Widget>::all(world.wire.tracked());
    let selected = watcher::Config::default().labels("app=web");
    let controller = Controller::new(own, watcher::Config::default())
        .owns(Api::<ConfigMap>::all(world.wire.tracked()), selected)
        .with_config(even_backoff().shutdown_timeout(5 * SECOND))
        .graceful_shutdown_on(sleep(200 * SECOND));
    let running = world.run(controller, |obj, nth| async move {
        match (&*obj.name_any(), nth) {
            ("a", 1) => Err(Failure("not yet")),
            ("a", _) => Ok(Action::requeue(60 * MINUTE)),
            (_, 1) => idle(),
            _ => {
                sleep(60 * MINUTE).await;
                idle()
            }
        }
    });
    world.until(1.0).await;
    let started = "controller started controller=\"Widget\" sources=\"widgets.example.com in all namespaces; \
                   configmaps in all namespaces, labels app=web\"";
    check_lines(&lines.take(&["INFO", "WARN", "ERROR"]), &[&[started]]);

    world.until(20.0).await;
    let waiting: [&[&str]; 1] = [&[
        "WARN",
        "no reconcile starts, because caches are not complete",
        "waited=15s",
        "sources=\"widgets.example.com in all namespaces\"",
    ]];
    check_lines(&lines.take(&["INFO", "WARN", "ERROR"]), &waiting);

    world.until(30.0).await;
    let told = lines.take(&["INFO", "WARN", "ERROR", "DEBUG"]);
    let runs: Vec<String> = told
        .iter()
        .filter(|line| line.contains("outcome="))
        .cloned()
        .collect();
    let others: Vec<String> = told
        .into_iter()
        .filter(|line| line.starts_with("INFO"))
        .collect();
    check_lines(
        &others,
        &[&["caches are complete", "objects=2", "waited=25"]],
    );
    check_lines(
        &runs,
        &[
            &[
                "object.ref=Widget.v1.example.com/a.default",
                "outcome=\"failed\"",
                "error=\"not yet\"",
                "next_run_in=1s",
            ],
            &[
                "object.ref=Widget.v1.example.com/b.default",
                "outcome=\"succeeded\"",
                "requests=0",
            ],
            &[
                "error policy requested retry",
                "outcome=\"succeeded\"",
                "next_run_in=3600s",
            ],
        ],
    );

    let guard = world.inject(Rule::any().resource("configmaps"), Fault::Unavailable);
    world.server.faults().drop_watches();
    world.until(100.0).await;
    drop(guard);
    world.until(180.0).await;
    check_lines(
        &lines.take(&["INFO", "WARN", "ERROR"]),
        &[
            &[
                "INFO",
                "a watch fails",
                "configmaps in all namespaces, labels app=web",
                "error=",
            ],
            &["WARN", "the API server does not answer"],
            &["INFO", "a watch works again", "configmaps", "failed_for="],
            &["INFO", "the API server answers again", "after="],
        ],
    );

    world.set_value("b", 1).await;
    world.until(210.0).await;
    assert!(running.has_ended());
    check_lines(
        &lines.take(&["INFO", "WARN", "ERROR"]),
        &[
            &[
                "INFO",
                "controller stops: no reconcile starts any more",
                "running=1",
                "timeout=5s",
            ],
            &["WARN", "reconciles were cancelled", "cancelled=1"],
            &["INFO", "controller stopped"],
        ],
    );
}

/// Section 2: with a client that is not tracked nothing can be refused, so the log warns, once for each store. The run is
/// repeated all the same.
#[tokio::test(start_paused = true)]
async fn an_early_read_without_a_tracked_client() {
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_writer(move || written.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::new(&["a", "b", "c"]).await;
    let _slow = world.inject(
        Rule::any().resource("configmaps"),
        Fault::Delay(30 * SECOND),
    );
    let (maps, writer) = reflector::store::<ConfigMap>();
    let watch =
        homeostat::watcher(world.all::<ConfigMap>(), watcher::Config::default()).reflect(writer);
    tokio::spawn(watch.for_each(|_| std::future::ready(())));
    let running = world.run(world.controller(), move |_, _| {
        let _read = maps.len();
        async { idle() }
    });
    world.until(100.0).await;
    assert_eq!(running.successes(), 3);
    let early = running.of("a");
    assert_eq!(early, [0, 30], "the first run does not count");
    let lines = lines.take(&["WARN"]);
    let warned = lines
        .iter()
        .filter(|line| line.contains("nothing kept it from writing"));
    let warned: Vec<_> = warned.collect();
    assert_eq!(warned.len(), 1, "{lines:#?}");
    assert!(
        warned[0].contains("configmaps in all namespaces"),
        "{warned:?}"
    );
}
