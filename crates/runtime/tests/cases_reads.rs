//! Stores that reconcilers read: none of their runs acts on one that is not complete (rule R15, design D6).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use futures::{FutureExt, StreamExt};
use homeostat::{
    Action, Classify, Config, Controller, ErrorClass, WatchStreamExt,
    client::Refused,
    controller::Handle,
    error_policy,
    reflector::{self, ObjectRef, Store, store::FirstListError},
    watcher,
};
use homeostat_apiserver::{Fault, FaultGuard, Rule, Verb};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::json;
use std::{
    fmt::Debug,
    hash::Hash,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::time::sleep;
use world::{Failure, MINUTE, SECOND, Widget, World, even_backoff, idle, running::Running};

/// How a reconciler finds out whether a secret is there.
type Look = Arc<dyn Fn(&Widget) -> bool + Send + Sync>;

#[derive(Debug, thiserror::Error, Classify)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// What can be wrong with the list of secrets, for a minute.
const TROUBLES: [Fault; 5] = [
    Fault::Delay(MINUTE),
    Fault::InternalError,
    Fault::Forbidden,
    Fault::Refuse,
    Fault::Hang,
];

/// A widget with a secret of its name, which holds what must not be lost.
async fn world_with_secrets(names: &[&str]) -> World {
    let world = World::new(names).await;
    for name in names {
        create_secret(&world, name).await;
    }
    world
}

async fn create_secret(world: &World, name: &str) {
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some((*name).into()),
            ..ObjectMeta::default()
        },
        string_data: Some([("password".to_owned(), "kept".to_owned())].into()),
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::default_namespaced(world.client.clone());
    let params = PostParams::default();
    secrets.create(&params, &secret).await.unwrap();
}

/// Lets a fault meet all lists and watches of a kind.
fn trouble(world: &World, plural: &str, fault: Fault) -> FaultGuard {
    let rule = Rule::any().resource(plural);
    world.inject(rule.verb(Verb::List).verb(Verb::Watch), fault)
}

/// A store of its own, which a task of its own fills.
fn reflected<K>(api: Api<K>, dyntype: K::DynamicType) -> Store<K>
where
    K: Resource + Clone + Debug + Send + Sync + serde::de::DeserializeOwned + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let writer = reflector::store::Writer::new(dyntype);
    let store = writer.as_reader();
    let watch = watcher(api, watcher::Config::default()).default_backoff();
    let watch = watch.reflect(writer);
    tokio::spawn(watch.for_each(|_| std::future::ready(())));
    store
}

fn secrets_of(world: &World) -> Store<Secret> {
    reflected(world.all(), ())
}

/// Writes a secret with another password, whether there is one or not.
async fn generate(client: &Client, name: &str) -> Result<(), kube::Error> {
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let generated = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name },
        "stringData": { "password": "generated" },
    });
    let params = PatchParams::apply("test").force();
    secrets
        .patch(name, &params, &Patch::Apply(generated))
        .await
        .map(drop)
}

/// Runs a reconciler that generates what is missing.
fn run_generator(world: &World, controller: Controller<Widget>, look: Look) -> Running {
    let client = world.wire.tracked();
    world.run(controller, move |widget, _| {
        let (client, look) = (client.clone(), Arc::clone(&look));
        async move {
            if !look(&widget) {
                generate(&client, &widget.name_any()).await?;
            }
            Ok::<_, Error>(Action::await_change())
        }
    })
}

/// Writes to secrets that reached the server.
fn writes(world: &World) -> usize {
    let verbs = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];
    let of_verb = verbs.map(|verb| world.asked(verb, "secrets").len());
    of_verb.iter().sum()
}

fn reference(widget: &Widget) -> ObjectRef<Secret> {
    ObjectRef::new(&widget.name_any()).within("default")
}

fn tracked_controller(world: &World) -> Controller<Widget> {
    let widgets = Api::all(world.wire.tracked());
    Controller::new(widgets, watcher::Config::default())
}

/// The five restarts, for reads like `look`: nothing is written, and nothing is told but the wait.
async fn check_restarts(look: impl Fn(&World) -> Look) {
    for fault in TROUBLES {
        let world = world_with_secrets(&["a", "b"]).await;
        let guard = trouble(&world, "secrets", fault.clone());
        let controller = tracked_controller(&world);
        let handle = controller.handle();
        let running = run_generator(&world, controller, look(&world));
        world.until(50.0).await;
        assert_eq!(writes(&world), 0, "{fault:?}");
        assert_eq!(running.successes(), 0, "{fault:?}: no run counts");
        assert_eq!(running.errors(), [""; 0], "{fault:?}: and none is an error");
        assert!(!running.readiness.is_ready(), "{fault:?}");
        assert!(!running.source("store of secrets").synced, "{fault:?}");
        let runs = running.runs().len();
        assert!(
            runs <= 2,
            "{fault:?}: {runs} runs, each object once at most"
        );

        drop(guard);
        world.until(400.0).await;
        assert_eq!(writes(&world), 0, "{fault:?}");
        assert_eq!(running.successes(), 2, "{fault:?}: now each counts, once");
        assert_eq!(running.errors(), [""; 0], "{fault:?}");
        assert!(running.readiness.is_ready(), "{fault:?}");
        let counts = handle.counts();
        assert_eq!(counts.failures, 0, "{fault:?}");
        assert_eq!(
            usize::try_from(counts.early_runs).unwrap(),
            runs,
            "{fault:?}"
        );
        let a = handle.explain(&ObjectRef::new("a").within("default"));
        assert_eq!(a.next.failures, 0, "{fault:?}");
    }
}

/// Section 2: a reflector of the program's own, which no controller was told of.
#[tokio::test(start_paused = true)]
async fn restarts_with_a_standalone_reflector() {
    check_restarts(|world| {
        let secrets = secrets_of(world);
        Arc::new(move |widget| secrets.get(&reference(widget)).is_some())
    })
    .await;
}

/// Section 2: every other way to read.
#[tokio::test(start_paused = true)]
async fn restarts_with_other_reads() {
    let reads: [fn(&Store<Secret>, &Widget) -> bool; 5] = [
        |secrets, widget| {
            secrets
                .state()
                .iter()
                .any(|it| it.name_any() == widget.name_any())
        },
        |secrets, widget| {
            secrets
                .find(|it| it.name_any() == widget.name_any())
                .is_some()
        },
        |secrets, _| !secrets.is_empty(),
        |secrets, _| !secrets.in_namespace("default").is_empty(),
        |secrets, widget| {
            let key = reference(widget);
            // What is owned by nobody is asked for as well, so that this read counts too.
            secrets.owned_by(widget).is_empty() && secrets.get(&key).is_some()
        },
    ];
    for read in reads {
        check_restarts(|world| {
            let secrets = secrets_of(world);
            Arc::new(move |widget| read(&secrets, widget))
        })
        .await;
    }
}

/// Section 2: an index of a store.
#[tokio::test(start_paused = true)]
async fn restarts_with_an_index() {
    for counts in [false, true] {
        check_restarts(|world| {
            let by_name = secrets_of(world).index(|secret| Some(secret.name_any()));
            Arc::new(move |widget| {
                if counts {
                    by_name.count(&widget.name_any()) > 0
                } else {
                    !by_name.get(&widget.name_any()).is_empty()
                }
            })
        })
        .await;
    }
}

/// Section 2: objects of a type known at run time.
#[tokio::test(start_paused = true)]
async fn restarts_with_a_dynamic_type() {
    check_restarts(|world| {
        let kind = ApiResource::erase::<Secret>(&());
        let api: Api<DynamicObject> = Api::all_with(world.wire.client(), &kind);
        let secrets = reflected(api, kind.clone());
        Arc::new(move |widget| {
            let key = ObjectRef::new_with(&widget.name_any(), kind.clone()).within("default");
            secrets.get(&key).is_some()
        })
    })
    .await;
}

/// Section 2: a store that two controllers share, one of which is also woken by it. That one waits from the start.
#[tokio::test(start_paused = true)]
async fn restarts_with_a_shared_store() {
    for fault in TROUBLES {
        let world = world_with_secrets(&["a", "b"]).await;
        let guard = trouble(&world, "secrets", fault.clone());
        let secrets = secrets_of(&world);
        let look: Look = {
            let secrets = secrets.clone();
            Arc::new(move |widget| secrets.get(&reference(widget)).is_some())
        };
        let woken = tracked_controller(&world).owns_shared_stream(secrets.subscribe());
        let first = run_generator(&world, woken, Arc::clone(&look));
        let second = run_generator(&world, tracked_controller(&world), look);
        world.until(50.0).await;
        assert_eq!(
            first.runs().len(),
            0,
            "{fault:?}: a stream that is consumed counts at once"
        );
        assert!(second.runs().len() <= 2, "{fault:?}");
        for running in [&first, &second] {
            assert_eq!(writes(&world), 0, "{fault:?}");
            assert_eq!(running.successes(), 0, "{fault:?}");
            assert!(!running.readiness.is_ready(), "{fault:?}");
        }
        drop(guard);
        world.until(400.0).await;
        assert_eq!(writes(&world), 0, "{fault:?}");
        for running in [&first, &second] {
            assert_eq!(
                (running.successes(), running.errors()),
                (2, vec![]),
                "{fault:?}"
            );
            assert!(running.readiness.is_ready(), "{fault:?}");
        }
        assert_eq!(first.runs().len(), 2, "{fault:?}");
    }
}

/// Section 11: a second reflector beside `owns_stream`, whose list takes 30 s. A stream that fills a store on its way
/// to the controller is waited for, too.
#[tokio::test(start_paused = true)]
async fn a_second_reflector_beside_an_owned_stream() {
    for one_watch in [false, true] {
        let world = world_with_secrets(&["a"]).await;
        let _slow = trouble(&world, "secrets", Fault::Delay(30 * SECOND));
        let all = watcher::Config::default;
        let (store, writer) = reflector::store::<Secret>();
        let watch = watcher(world.all(), all()).default_backoff();
        let controller = if one_watch {
            tracked_controller(&world).owns_stream(watch.reflect(writer).touched_objects())
        } else {
            let reflecting = watcher(world.all(), all())
                .default_backoff()
                .reflect(writer);
            tokio::spawn(reflecting.for_each(|_| std::future::ready(())));
            tracked_controller(&world).owns_stream(watch.touched_objects())
        };
        let secrets = store.clone();
        let look = Arc::new(move |widget: &Widget| secrets.get(&reference(widget)).is_some());
        let running = run_generator(&world, controller, look);
        world.until(29.0).await;
        assert_eq!(running.successes(), 0);
        if one_watch {
            assert_eq!(running.runs().len(), 0, "it counts from the start");
        }
        world.until(40.0).await;
        assert!(store.wait_until_ready().now_or_never().is_some());
        assert!(running.successes() >= 1);
        assert_eq!((writes(&world), running.errors()), (0, vec![]));
    }
}

/// What a run that reads too early returns does not matter: it counts for nothing, and the object runs again when the
/// store is complete. Neither the policy nor the condition of the status hears of it.
#[tokio::test(start_paused = true)]
async fn whatever_an_early_run_returns_it_does_not_count() {
    type End = fn(Result<(), kube::Error>) -> Result<Action, Failure>;
    let ends: [End; 5] = [
        |write| {
            write
                .map(|()| Action::await_change())
                .map_err(|_| Failure("refused"))
        },
        |_| Ok(Action::await_change()),
        |_| Ok(Action::requeue(60 * MINUTE)),
        |_| Err(Failure("something else")),
        |write| {
            write.expect("a reconciler that is not prepared");
            idle()
        },
    ];
    // What panics says so on the console otherwise.
    std::panic::set_hook(Box::new(|_| {}));
    for end in ends {
        let world = world_with_secrets(&["a"]).await;
        let _slow = trouble(&world, "secrets", Fault::Delay(30 * SECOND));
        let (secrets, client) = (secrets_of(&world), world.wire.tracked());
        let asked = Arc::new(AtomicUsize::new(0));
        let policy = {
            let asked = Arc::clone(&asked);
            move |_: Arc<Widget>, _: &Failure, _| {
                asked.fetch_add(1, SeqCst);
                Action::await_change()
            }
        };
        let reconcile = move |widget: Arc<Widget>, _| {
            let (secrets, client) = (secrets.clone(), client.clone());
            async move {
                if secrets.get(&reference(&widget)).is_some() {
                    return idle();
                }
                end(generate(&client, &widget.name_any()).await)
            }
        };
        let running = world.run_with(tracked_controller(&world), reconcile, policy);
        world.until(29.0).await;
        assert_eq!(running.runs().len(), 1);
        world.until(31.0).await;
        assert_eq!(
            running.of("a"),
            [0, 30],
            "again as soon as the store is complete"
        );
        world.until(8000.0).await;
        assert_eq!(running.of("a"), [0, 30]);
        assert_eq!((running.successes(), running.errors()), (1, vec![]));
        assert_eq!((asked.load(SeqCst), writes(&world)), (0, 0));
    }
}

/// The error of a write that was refused names the store, and is one that passes.
#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_store() {
    let world = world_with_secrets(&["a"]).await;
    let _slow = trouble(&world, "secrets", Fault::Delay(30 * SECOND));
    let (secrets, client) = (secrets_of(&world), world.wire.tracked());
    let errors: Arc<Mutex<Vec<kube::Error>>> = Arc::default();
    let noted = Arc::clone(&errors);
    let _running = world.run(tracked_controller(&world), move |_, nth| {
        let (secrets, client, noted) = (secrets.clone(), client.clone(), Arc::clone(&noted));
        async move {
            let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
            let mut map = ConfigMap::default();
            map.metadata.generate_name = Some("before-".into());
            if nth == 1 {
                maps.create(&PostParams::default(), &map).await.unwrap();
                assert!(secrets.is_empty());
                // Reads go on, and what only tries out a write is none.
                maps.list(&ListParams::default()).await.unwrap();
                let trial = PostParams {
                    dry_run: true,
                    ..PostParams::default()
                };
                maps.create(&trial, &map).await.unwrap();
                let refused = maps.create(&PostParams::default(), &map).await;
                let second = generate(&client, "a").await;
                let both = refused.err().into_iter().chain(second.err());
                noted.lock().unwrap().extend(both);
            }
            idle()
        }
    });
    world.until(60.0).await;
    let errors = std::mem::take(&mut *errors.lock().unwrap());
    assert_eq!(errors.len(), 2);
    for error in &errors {
        assert_eq!(error.classify(), ErrorClass::Transient);
        let kube::Error::Service(source) = error else {
            panic!("{error:?}");
        };
        let refused = source.downcast_ref::<Refused>().unwrap();
        assert_eq!(refused.store(), "secrets in all namespaces");
        assert!(
            error.to_string().contains("secrets in all namespaces"),
            "{error}"
        );
    }
    let made = world.maps.list(&ListParams::default()).await.unwrap().items;
    let made = made
        .iter()
        .filter(|map| map.name_any().starts_with("before-"));
    assert_eq!(made.count(), 1, "what was written before the read stands");
}

/// A row of failures is neither lengthened nor ended by a run that reads too early.
#[tokio::test(start_paused = true)]
async fn a_row_of_failures_goes_on() {
    let world = world_with_secrets(&["a"]).await;
    let _slow = trouble(&world, "secrets", Fault::Delay(20 * SECOND));
    let secrets = secrets_of(&world);
    let controller = tracked_controller(&world).with_config(even_backoff());
    let handle: Handle<Widget> = controller.handle();
    let running = world.run(controller, move |_, nth| {
        let secrets = secrets.clone();
        async move {
            // Fails at 0, 1 and 3 s; the read is at 7 s, and again at 20 s.
            let found = nth < 4 || !secrets.is_empty();
            if found { Err(Failure("no")) } else { idle() }
        }
    });
    world.until(27.0).await;
    assert_eq!(running.of("a"), [0, 1, 3, 7, 20]);
    let a = handle.explain(&ObjectRef::new("a").within("default"));
    assert_eq!(a.next.failures, 4);
    assert_eq!(running.errors().len(), 4);
    let early = a.runs.iter().filter_map(|run| run.not_ready.clone());
    assert_eq!(early.collect::<Vec<_>>(), ["secrets in all namespaces"]);
    world.until(28.1).await;
    assert_eq!(
        running.of("a"),
        [0, 1, 3, 7, 20, 28],
        "8 s after the fourth failure"
    );
}

/// However many objects there are, only those that ran at the same time have read too early, and nobody is told of
/// an error.
#[tokio::test(start_paused = true)]
async fn few_runs_are_early() {
    let names: Vec<String> = (0..100).map(|nth| format!("w{nth:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = world_with_secrets(&names).await;
    let guard = trouble(&world, "secrets", Fault::Forbidden);
    let secrets = secrets_of(&world);
    let look: Look = Arc::new(move |widget| secrets.get(&reference(widget)).is_some());
    let controller = tracked_controller(&world).with_config(Config::default().concurrency(4));
    let running = run_generator(&world, controller, look);
    world.until(300.0).await;
    let early = running.runs().len();
    assert!(early <= 4, "{early}");
    drop(guard);
    world.until(600.0).await;
    assert_eq!(running.runs().len(), 100 + early);
    assert_eq!((running.successes(), running.errors()), (100, vec![]));
    assert_eq!(writes(&world), 0);
}

/// The condition that the runtime keeps says nothing of a run that does not count, also with a client that is not
/// tracked.
#[tokio::test(start_paused = true)]
async fn an_early_run_leaves_no_condition() {
    for tracked in [true, false] {
        let world = world_with_secrets(&["a"]).await;
        let _slow = trouble(&world, "secrets", Fault::Delay(30 * SECOND));
        let secrets = secrets_of(&world);
        let client = if tracked {
            world.wire.tracked()
        } else {
            world.wire.client()
        };
        let widgets = Api::<Widget>::all(client);
        let run = Controller::new(widgets, watcher::Config::default())
            .status_conditions("Reconciled")
            .run(
                move |_, _| {
                    let found = !secrets.is_empty();
                    async move {
                        let invalid = kube::Error::TlsRequired;
                        let found = found.then(Action::await_change);
                        found.ok_or(Error::Kube(invalid))
                    }
                },
                error_policy::classified,
                Arc::new(()),
            );
        let items = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&items);
        tokio::spawn(run.for_each(move |item| {
            item.unwrap();
            count.fetch_add(1, SeqCst);
            std::future::ready(())
        }));
        world.until(29.0).await;
        let conditions = || world.asked(Verb::Patch, "widgets").len();
        assert_eq!(
            (items.load(SeqCst), conditions()),
            (0, 0),
            "tracked: {tracked}"
        );
        world.until(40.0).await;
        assert!(items.load(SeqCst) > 0, "tracked: {tracked}");
        assert!(conditions() > 0, "tracked: {tracked}");
    }
}

/// Reads in tasks of the run count as well.
#[tokio::test(start_paused = true)]
async fn reads_in_tasks_of_the_run_count() {
    let world = world_with_secrets(&["a"]).await;
    let _slow = trouble(&world, "secrets", Fault::Delay(30 * SECOND));
    let (secrets, client) = (secrets_of(&world), world.wire.tracked());
    let running = world.run(tracked_controller(&world), move |widget, _| {
        let (secrets, client) = (secrets.clone(), client.clone());
        async move {
            let name = widget.name_any();
            let found = homeostat::spawn(async move { secrets.get(&reference(&widget)) });
            if found.await.unwrap().is_none() {
                let write = homeostat::spawn(async move { generate(&client, &name).await });
                write.await.unwrap()?;
            }
            Ok::<_, Error>(Action::await_change())
        }
    });
    world.until(60.0).await;
    assert_eq!(running.of("a"), [0, 30]);
    assert_eq!((writes(&world), running.errors()), (0, vec![]));
}

/// The way out for those who mean it: nothing waits, nothing is refused, and nothing is shown.
#[tokio::test(start_paused = true)]
async fn reads_that_do_not_mind() {
    let world = world_with_secrets(&["a"]).await;
    let _slow = trouble(&world, "secrets", Fault::Delay(30 * SECOND));
    let secrets = secrets_of(&world).even_if_incomplete();
    let by_name = secrets.index(|secret| Some(secret.name_any()));
    let look = Arc::new(move |widget: &Widget| {
        secrets.clone().get(&reference(widget)).is_some() && by_name.count(&widget.name_any()) > 0
    });
    let running = run_generator(&world, tracked_controller(&world), look);
    world.until(10.0).await;
    assert_eq!((running.successes(), writes(&world)), (1, 1));
    assert_eq!(running.readiness.sources().len(), 1);
    assert!(running.readiness.is_ready());
}

/// A store that is complete when it is first read changes nothing for the run. From then on it is shown, and runs wait
/// for it to see what they wrote, also a child with a name that nobody knows before.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_read_is_waited_for_after_writes() {
    let world = World::new(&["a"]).await;
    let maps = reflected(world.all::<ConfigMap>(), ());
    world.until(1.0).await;
    world.wire.delay("configmaps", 2 * SECOND);
    let api: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let controller = tracked_controller(&world);
    let handle = controller.handle();
    let running = world.run(controller, move |widget, _| {
        let (maps, api) = (maps.clone(), api.clone());
        async move {
            if maps.owned_by(&*widget).is_empty() {
                let mut map = ConfigMap::default();
                map.metadata.generate_name = Some("child-".into());
                map.metadata.owner_references = widget.owner_ref(&()).map(|owner| vec![owner]);
                api.create(&PostParams::default(), &map).await?;
            }
            Ok::<_, Error>(Action::await_change())
        }
    });
    for value in 1..10 {
        tokio::time::sleep(SECOND / 2).await;
        world.set_value("a", value).await;
    }
    world.until(60.0).await;
    let children = world.maps.list(&ListParams::default()).await.unwrap().items;
    let owned = children
        .iter()
        .filter(|map| map.metadata.owner_references.is_some());
    assert_eq!(owned.count(), 1);
    let counts = handle.counts();
    assert_eq!(
        (counts.waits, counts.overdue_waits, counts.early_runs),
        (1, 0, 0)
    );
    let source = running.source("store of configmaps in all namespaces");
    assert_eq!((source.synced, source.last_error), (true, None));
}

/// What a watch does not select is not waited for, and what is gone is waited for until the store shows it no more.
#[tokio::test(start_paused = true)]
async fn the_scope_of_a_store_that_is_read_is_known() {
    let world = World::new(&["a"]).await;
    let (maps, writer) = reflector::store::<ConfigMap>();
    let selected = watcher::Config::default().labels("app=web");
    let watch = watcher(world.all::<ConfigMap>(), selected).default_backoff();
    tokio::spawn(watch.reflect(writer).for_each(|_| std::future::ready(())));
    world.until(1.0).await;
    world.wire.delay("configmaps", 2 * SECOND);
    let api: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let controller = tracked_controller(&world);
    let handle = controller.handle();
    let _running = world.run(controller, move |_, nth| {
        let (maps, api) = (maps.clone(), api.clone());
        async move {
            let _read = maps.len();
            let mut map = ConfigMap::default();
            match nth {
                1 => {
                    map.metadata.name = Some("other".into());
                    api.create(&PostParams::default(), &map).await?;
                }
                2 => {
                    map.metadata.name = Some("web".into());
                    map.metadata.labels = Some([("app".into(), "web".into())].into());
                    api.create(&PostParams::default(), &map).await?;
                }
                3 => {
                    api.delete("web", &DeleteParams::default()).await?;
                }
                _ => {}
            }
            Ok::<_, Error>(Action::requeue(10 * SECOND))
        }
    });
    for (until, waits) in [(6.0, 0), (16.0, 1), (26.0, 2)] {
        world.until(until).await;
        assert_eq!(
            (handle.counts().waits, handle.counts().overdue_waits),
            (waits, 0),
            "{until}"
        );
    }
}

/// A store whose writer is gone does not hold the controller up. Those that read it are told, again and again with
/// growing delays, and still do no harm; the others run.
#[tokio::test(start_paused = true)]
async fn a_store_whose_writer_is_gone() {
    let world = world_with_secrets(&["a", "b"]).await;
    let (secrets, writer) = reflector::store::<Secret>();
    tokio::spawn(async move {
        sleep(30 * SECOND).await;
        drop(writer);
    });
    let look = Arc::new(move |widget: &Widget| {
        widget.name_any() == "b" || secrets.get(&reference(widget)).is_some()
    });
    let controller = tracked_controller(&world).with_config(even_backoff());
    let running = run_generator(&world, controller, look);
    world.until(29.0).await;
    assert_eq!(running.errors(), [""; 0]);
    world.set_value("b", 1).await;
    world.until(29.9).await;
    assert_eq!(
        running.values("b"),
        [0; 0],
        "everything waits, as long as there is hope"
    );
    world.until(44.0).await;
    assert_eq!(running.values("b"), [1]);
    assert_eq!(running.of("a"), [0, 30, 31, 33, 37]);
    let errors = running.errors();
    assert_eq!(errors.len(), 4);
    for error in errors {
        assert!(
            error.contains("the writer of the store of secrets was dropped"),
            "{error}"
        );
    }
    assert_eq!(writes(&world), 0);
    assert!(!running.readiness.is_ready());
    let error = running.source("store of secrets").last_error.unwrap();
    assert!(
        error.contains("was dropped before its first list"),
        "{error}"
    );
}

/// Of a store that was complete and whose writer is gone nobody need know until it is read. Then it is told.
#[tokio::test(start_paused = true)]
async fn a_complete_store_whose_writer_is_gone() {
    let world = world_with_secrets(&["a"]).await;
    let (secrets, writer) = reflector::store::<Secret>();
    let watch = watcher(world.all::<Secret>(), watcher::Config::default()).reflect(writer);
    let filling = tokio::spawn(watch.for_each(|_| std::future::ready(())));
    world.until(1.0).await;
    let look = Arc::new(move |widget: &Widget| secrets.get(&reference(widget)).is_some());
    let running = run_generator(&world, tracked_controller(&world), look);
    world.until(2.0).await;
    assert!(running.readiness.is_ready());
    filling.abort();
    world.until(3.0).await;
    assert!(
        running.readiness.is_ready(),
        "it may be that nobody needs it any more"
    );
    world.set_value("a", 1).await;
    world.until(4.0).await;
    assert!(!running.readiness.is_ready());
    let error = running.source("store of secrets").last_error.unwrap();
    assert!(error.contains("stays as it is"), "{error}");
    assert_eq!((running.successes(), writes(&world)), (2, 0));
}

/// A mapper that looks into an incomplete store may name too few. When the store is complete, all run.
#[tokio::test(start_paused = true)]
async fn a_mapper_that_reads_too_early_loses_nothing() {
    let world = world_with_secrets(&["a", "b"]).await;
    let (secrets, writer) = reflector::store::<Secret>();
    let started = Arc::new(AtomicBool::new(false));
    let (begun, store) = (Arc::clone(&started), secrets.clone());
    let mapper = move |map: ConfigMap| {
        // Before that it does not read the store.
        let found = begun
            .load(SeqCst)
            .then(|| store.find(|it| it.name_any() == map.name_any()));
        found
            .flatten()
            .map(|found| ObjectRef::<Widget>::new(&found.name_any()).within("default"))
    };
    let controller = tracked_controller(&world);
    let controller =
        controller.watches(world.all::<ConfigMap>(), watcher::Config::default(), mapper);
    let running = world.run(controller, |_, _| async { idle() });
    world.until(1.0).await;
    assert_eq!(running.runs().len(), 2);
    started.store(true, SeqCst);
    world.create_child("a", "a").await;
    world.until(2.0).await;
    assert_eq!(running.runs().len(), 2, "the store is empty");
    assert!(!running.readiness.is_ready());
    let watch = watcher(world.all::<Secret>(), watcher::Config::default()).reflect(writer);
    tokio::spawn(watch.for_each(|_| std::future::ready(())));
    world.until(5.0).await;
    assert_eq!(
        running.runs().len(),
        4,
        "each may be the one that was not found"
    );
    world.touch_child("a", 1).await;
    world.until(6.0).await;
    assert_eq!(running.of("a").len(), 3);
    assert_eq!(secrets.len(), 2);
}

/// Section 11: a reflector that is started on demand and whose list is refused says why, and its waiters are told
/// when it is given up.
#[tokio::test(start_paused = true)]
async fn a_reflector_on_demand_that_is_refused() {
    let world = world_with_secrets(&["a"]).await;
    let guard = trouble(&world, "secrets", Fault::Forbidden);
    let (secrets, writer) = reflector::store::<Secret>();
    let watch = watcher(world.all::<Secret>(), watcher::Config::default()).default_backoff();
    let filling = tokio::spawn(watch.reflect(writer).for_each(|_| std::future::ready(())));
    assert_eq!(secrets.last_error(), None);
    let error = secrets.wait_until_ready_or_failed().await.unwrap_err();
    assert!(matches!(error, FirstListError::Failed { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("secrets in all namespaces") && text.contains("forbidden"),
        "{text}"
    );
    assert_eq!(secrets.last_error(), Some(text));

    let waiting = tokio::spawn({
        let secrets = secrets.clone();
        async move { secrets.wait_until_ready().await }
    });
    sleep(MINUTE).await;
    assert!(!waiting.is_finished());
    filling.abort();
    let error = waiting.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("was dropped") && error.contains("forbidden"),
        "{error}"
    );
    let error = secrets.wait_until_ready_or_failed().await.unwrap_err();
    assert!(
        matches!(error, FirstListError::WriterDropped(_)),
        "{error:?}"
    );
    drop(guard);

    let secrets = secrets_of(&world);
    secrets.wait_until_ready_or_failed().await.unwrap();
    assert_eq!((secrets.len(), secrets.last_error()), (1, None));
}

/// A store shows that its watch fails, and that it works again although nothing happens in it.
#[tokio::test(start_paused = true)]
async fn a_store_tells_that_its_watch_works_again() {
    let world = world_with_secrets(&["a"]).await;
    let secrets = secrets_of(&world);
    let store = secrets.clone();
    let look = Arc::new(move |widget: &Widget| store.get(&reference(widget)).is_some());
    let running = run_generator(&world, tracked_controller(&world), look);
    world.until(1.0).await;
    assert!(running.readiness.is_ready());
    let guard = trouble(&world, "secrets", Fault::Unavailable);
    world.server.faults().drop_watches();
    world.until(60.0).await;
    let error = running.source("store of secrets").last_error.unwrap();
    assert_eq!(secrets.last_error(), Some(error));
    assert!(!running.readiness.is_ready());
    drop(guard);
    world.until(160.0).await;
    assert_eq!(secrets.last_error(), None);
    assert!(running.readiness.is_ready());
}
