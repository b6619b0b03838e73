//! Watches that break, are refused, or fall silent: a whole controller against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{
    Asked, SECOND, Widget, World, delay, even_backoff, gaps, idle, is_delay, rule, wire::Cut,
};
use expect_test::expect;
use futures::StreamExt;
use homeostat::{Controller, WatchStreamExt, reflector, watcher};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, Secret, Service, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, CustomResource, CustomResourceExt, Resource,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};

/// Another kind, which widgets own and which is not always served.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Gadget", namespaced)]
struct GadgetSpec {}

/// What was asked for at this moment or later.
fn since(asked: &[Asked], seconds: f64) -> Vec<Asked> {
    let since = Duration::from_secs_f64(seconds);
    let late = asked.iter().filter(|asked| asked.at >= since);
    late.cloned().collect()
}

const SEVEN: [&str; 7] = [
    "widgets",
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "deployments",
    "jobs",
];

fn controller_of_seven(world: &World) -> Controller<Widget> {
    let wc = watcher::Config::default;
    world
        .controller_of_both()
        .owns(world.all::<Secret>(), wc())
        .owns(world.all::<Service>(), wc())
        .owns(world.all::<ServiceAccount>(), wc())
        .owns(world.all::<Deployment>(), wc())
        .owns(world.all::<Job>(), wc())
}

/// T03: seven watches lose their connections at once, and the first attempt of each fails. All are
/// open again within one delay, not after seven.
#[tokio::test(start_paused = true)]
async fn seven_watches_are_back_within_one_delay() {
    let world = World::new(&["a"]).await;
    let running = world.run(controller_of_seven(&world), |_, _| async { idle() });
    world.until(100.0).await;
    let refused = |kind| world.inject(rule(Verb::Watch, kind).times(1), Fault::Refuse);
    let _guards = SEVEN.map(refused);
    world.server.faults().drop_watches();
    world.create_child("a", "child").await;
    world.until(110.0).await;
    for kind in SEVEN {
        let asked = since(&world.asked(Verb::Watch, kind), 100.0);
        let statuses: Vec<_> = asked.iter().map(|asked| asked.status).collect();
        assert_eq!(statuses, [None, Some(200)], "{kind}");
        assert!(is_delay(gaps(&asked)[0], 0.8), "{kind}: {asked:?}");
    }
    assert_eq!(running.errors().len(), 7);
    assert!(running.readiness.is_ready());
    assert_eq!(
        running.order(),
        ["a", "a"],
        "what happened meanwhile is seen"
    );
    assert!(is_delay(delay(100 * SECOND, running.runs()[1].at), 0.8));
}

/// T03: the same when the connections themselves break.
#[tokio::test(start_paused = true)]
async fn seven_connections_break_at_once() {
    let world = World::new(&["a"]).await;
    let running = world.run(controller_of_seven(&world), |_, _| async { idle() });
    world.until(100.0).await;
    world.wire.cut_watches(Cut::Broken);
    world.set_value("a", 1).await;
    world.until(110.0).await;
    for kind in SEVEN {
        let asked = since(&world.asked(Verb::Watch, kind), 100.0);
        assert_eq!(asked.len(), 1, "{kind}");
        assert!(is_delay(delay(100 * SECOND, asked[0].at), 0.8), "{asked:?}");
    }
    let errors = running.errors();
    assert_eq!(errors.len(), 7, "{errors:?}");
    assert!(
        errors
            .iter()
            .all(|error| error.contains("connection reset"))
    );
    assert_eq!(running.values("a"), [0, 1]);
    assert!(running.readiness.is_ready());
}

/// T03: after a longer outage, too, nobody waits for another's delays.
#[tokio::test(start_paused = true)]
async fn seven_watches_are_back_after_an_outage() {
    let world = World::new(&["a"]).await;
    let running = world.run(controller_of_seven(&world), |_, _| async { idle() });
    world.until(100.0).await;
    let outage = world.inject(Rule::any().verb(Verb::Watch), Fault::Refuse);
    world.server.faults().drop_watches();
    world.until(110.0).await;
    drop(outage);
    world.until(130.0).await;
    for kind in SEVEN {
        let asked = since(&world.asked(Verb::Watch, kind), 100.0);
        // Attempts after 0, 0.8, 2.4 and 5.6 s, or up to half as much later, and one or two more.
        assert!((5..=6).contains(&asked.len()), "{kind}: {asked:?}");
        let least = [0.8, 1.6, 3.2, 6.4, 12.8];
        for (gap, least) in gaps(&asked).into_iter().zip(least) {
            assert!(is_delay(gap, least), "{kind}: {asked:?}");
        }
        assert_eq!(asked.last().unwrap().status, Some(200), "{kind}");
    }
    assert!(running.readiness.is_ready());
    assert_eq!(running.of("a"), [0]);
}

/// T04: a kind that is forbidden for ever costs the others nothing, and its errors name it.
#[tokio::test(start_paused = true)]
async fn a_forbidden_kind_does_not_delay_others() {
    let world = World::new(&["a"]).await;
    let _forbidden = world.inject(Rule::any().resource("configmaps"), Fault::Forbidden);
    let running = world.run(world.controller_of_both(), |_, _| async { idle() });
    let latency = Duration::from_millis(50);
    world.until(0.049).await;
    assert_eq!(running.values("a"), [0], "it is not waited for");
    for nth in 1..=60 {
        world.until(f64::from(nth) * 10.0).await;
        world.set_value("a", nth).await;
        tokio::time::sleep(latency).await;
        assert_eq!(running.values("a").last(), Some(&nth));
    }
    let opened = world.asked(Verb::Watch, "widgets").len();
    assert_eq!(opened, 3, "at 0, 290 and 580 s");
    let errors = running.errors();
    // The delays grow to 30 s, and up to half as much more.
    assert!((16..=26).contains(&errors.len()), "{errors:?}");
    for error in errors {
        assert!(
            error.starts_with("event queue error: list configmaps in all namespaces: ")
                && error.contains("allow the verbs list and watch by a role"),
            "{error}"
        );
    }
    assert!(running.source("configmaps").last_error.is_some());
    assert_eq!(running.source("widgets").last_error, None);
}

/// T05: an error says of which kind and scope it is, and what was being done.
#[tokio::test(start_paused = true)]
async fn errors_say_kind_scope_and_phase() {
    let world = World::new(&["a"]).await;
    let _list = world.inject(rule(Verb::Watch, "widgets").times(1), Fault::Unavailable);
    let maps: Api<ConfigMap> = Api::namespaced(world.wire.client(), "default");
    let controller = world.controller().owns(maps, watcher::Config::default());
    let running = world.run(controller, |_, _| async { idle() });
    world.until(100.0).await;
    let _start = world.inject(rule(Verb::Watch, "configmaps").times(1), Fault::Unavailable);
    world.wire.cut_next("widgets", 0, Cut::Broken);
    world.server.faults().drop_watches();
    world.until(200.0).await;
    world.set_value("a", 1).await;
    world.until(210.0).await;
    expect![[r"
        event queue error: list widgets.example.com in all namespaces: an injected fault; if this lasts, check the health of the API server; it is tried again
        event queue error: start to watch configmaps in namespace default: an injected fault; if this lasts, check the health of the API server; it is tried again
        event queue error: watch widgets.example.com in all namespaces: connection reset; check the connection to the API server; it is tried again
    "]]
    .assert_eq(&(running.errors().join("\n") + "\n"));
    assert_eq!(running.values("a"), [0, 1]);
}

/// T06: a kind that may be listed and not watched is listed, and the reason why nothing follows is
/// seen in errors and readiness until it is gone.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_forbidden_is_told() {
    for kind in ["configmaps", "widgets"] {
        let world = World::new(&["a"]).await;
        world.create_child("a", "child").await;
        let forbidden = world.inject(rule(Verb::Watch, kind), Fault::Forbidden);
        let running = world.run(world.controller_of_both(), |_, _| async { idle() });
        world.until(60.0).await;
        assert_eq!(running.of("a"), [0], "the list is there");
        let errors = running.errors();
        assert!((5..=8).contains(&errors.len()), "{errors:?}");
        let expected = format!("event queue error: start to watch {kind}");
        assert!(
            errors.iter().all(|error| error.starts_with(&expected)),
            "{errors:?}"
        );
        let source = running.source(kind);
        let last_error = source.last_error.unwrap();
        assert!(last_error.contains("may watch") || last_error.contains("forbidden"));
        assert!(source.synced && !running.readiness.is_ready());
        drop(forbidden);
        world.set_value("a", 1).await;
        world.touch_child("child", 1).await;
        world.until(106.0).await;
        assert!(running.readiness.is_ready());
        assert_eq!(running.values("a").last(), Some(&1));
        assert!(running.of("a").len() > 1);
        assert_eq!(running.errors().len(), errors.len());
    }
}

/// T07: a server that closes each watch at once is asked less and less often, and not reported.
#[tokio::test(start_paused = true)]
async fn watches_that_close_at_once_are_opened_less_often() {
    let world = World::new(&["a"]).await;
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(100.0).await;
    let closing = world.inject(rule(Verb::Watch, "widgets").times(100), Fault::CloseWatch);
    world.server.faults().drop_watches();
    world.until(700.0).await;
    let asked = since(&world.asked(Verb::Watch, "widgets"), 100.0);
    let delays = gaps(&asked);
    // After five delays that double from 0.8 s, 30 s and up to half as much more.
    for (nth, delay) in delays.iter().enumerate() {
        let least = (0.8 * f64::from(1_u32 << nth.min(10))).min(30.0);
        assert!(is_delay(*delay, least), "delay {nth} is {delay:?}");
    }
    assert!((17..=26).contains(&asked.len()), "{} requests", asked.len());
    assert_eq!(world.asked(Verb::List, "widgets").len(), 0);
    drop(closing);
    world.set_value("a", 1).await;
    world.until(746.0).await;
    assert_eq!(running.values("a"), [0, 1]);
    assert_eq!(running.errors(), [""; 0]);
}

/// T07: the same when not even the list comes to its end.
#[tokio::test(start_paused = true)]
async fn lists_that_close_at_once_are_asked_for_less_often() {
    let world = World::new(&["a"]).await;
    let closing = world.inject(rule(Verb::Watch, "widgets").times(100), Fault::CloseWatch);
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(600.0).await;
    let watches = world.asked(Verb::Watch, "widgets");
    let streamed = watches.iter().filter(|asked| asked.streams).count();
    // Two attempts to stream the list; then it comes in pages.
    assert_eq!((streamed, world.asked(Verb::List, "widgets").len()), (2, 1));
    assert!(
        (18..=27).contains(&watches.len()),
        "{} requests",
        watches.len()
    );
    let start = running.runs()[0].at;
    assert!(start < 4 * SECOND, "the list came at {start:?}");
    drop(closing);
    world.set_value("a", 1).await;
    world.until(646.0).await;
    assert_eq!(running.values("a"), [0, 1]);
}

/// T08: a thousand errors in a row do not end a watch.
#[tokio::test(start_paused = true)]
async fn a_thousand_errors_do_not_end_a_watch() {
    let world = World::new(&["a"]).await;
    let fault = world.inject(
        Rule::any().resource("widgets").times(1000),
        Fault::Unavailable,
    );
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(50_000.0).await;
    assert_eq!((fault.hits(), running.errors().len()), (1000, 1000));
    assert_eq!(running.of("a").len(), 1);
    assert!(running.readiness.is_ready());
    let last = &running.timed_errors()[999];
    let run = &running.runs()[0];
    assert!(is_delay(delay(last.0, run.at), 30.0), "{last:?}, {run:?}");
}

/// T09: the delays of a watch are stretched by chance, by up to a half.
#[tokio::test(start_paused = true)]
async fn delays_of_a_watch_have_jitter() {
    let world = World::new(&["a"]).await;
    let _fault = world.inject(Rule::any().resource("widgets"), Fault::Unavailable);
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(3600.0).await;
    let delays = gaps(&world.asked(Verb::Watch, "widgets"));
    for (nth, delay) in delays.iter().enumerate() {
        let least = (0.8 * f64::from(1_u32 << nth.min(10))).min(30.0);
        assert!(is_delay(*delay, least), "delay {nth} is {delay:?}");
    }
    let longest: BTreeSet<Duration> = delays[6..].iter().copied().collect();
    assert!(longest.len() > 50, "{longest:?}");
    let spread = delay(*longest.first().unwrap(), *longest.last().unwrap());
    assert!(spread > 10 * SECOND, "{longest:?}");
    assert!(!running.readiness.is_ready());
}

/// T10: half a minute without trouble, and the next delay is the first again; a few seconds are not
/// enough.
#[tokio::test(start_paused = true)]
async fn a_healthy_watch_starts_over() {
    let world = World::new(&["a"]).await;
    let _running = world.run(world.controller(), |_, _| async { idle() });
    let break_off = async |moment, times| {
        world.until(moment).await;
        let guard = world.inject(rule(Verb::Watch, "widgets").times(times), Fault::Refuse);
        world.server.faults().drop_watches();
        guard
    };
    let _first = break_off(100.0, 4).await;
    // 0.8 + 1.6 + 3.2 + 6.4 s, and up to half as much more: open at 118 s at the latest.
    let _healthy = break_off(160.0, 3).await;
    // 0.8 + 1.6 + 3.2 s: open between 165.6 and 168.4 s, so it was good for 16 s at most.
    let _soon = break_off(180.0, 1).await;
    world.until(200.0).await;
    let asked = world.asked(Verb::Watch, "widgets");
    let delays = |from: f64, to: f64| -> Vec<Duration> {
        let all = since(&asked, from).into_iter();
        let some: Vec<Asked> = all
            .filter(|asked| asked.at < Duration::from_secs_f64(to))
            .collect();
        gaps(&some)
    };
    for (found, expected) in [
        (delays(100.0, 160.0), vec![0.8, 1.6, 3.2, 6.4]),
        (delays(160.0, 180.0), vec![0.8, 1.6, 3.2]),
        (delays(180.0, 200.0), vec![6.4]),
    ] {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (delay, least) in found.iter().zip(&expected) {
            assert!(is_delay(*delay, *least), "{found:?}, {expected:?}");
        }
    }
}

/// T12: a controller whose own kind is not served says so, and starts when the kind appears.
#[tokio::test(start_paused = true)]
async fn the_own_kind_is_not_served_at_first() {
    let world = World::bare(ApiServer::builder().build());
    let running = world.run(world.controller_of_both(), |_, _| async { idle() });
    world.until(100.0).await;
    let errors = running.errors();
    assert!((6..=9).contains(&errors.len()), "{errors:?}");
    for error in &errors {
        assert_eq!(
            error,
            "event queue error: list widgets.example.com in all namespaces: the server does not \
             serve widgets.example.com/v1; is its CustomResourceDefinition installed, with this \
             version? it is tried again"
        );
    }
    assert!(!running.has_ended() && !running.readiness.is_ready());
    assert!(
        running.source("configmaps").synced,
        "the other kind is there"
    );
    world.install().await;
    world.create("a").await;
    world.until(146.0).await;
    assert_eq!(running.of("a").len(), 1);
    assert!(running.readiness.is_ready());
}

/// T12, section F 59: an owned kind that is not served holds up nobody. It is followed when it
/// appears, when it goes, and when it comes back.
#[tokio::test(start_paused = true)]
async fn an_owned_kind_comes_and_goes() {
    let world = World::new(&["a"]).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let gadgets: Api<Gadget> = Api::default_namespaced(world.client.clone());
    let install = async || {
        let params = PostParams::default();
        definitions.create(&params, &Gadget::crd()).await.unwrap();
        let owner = world.widgets.get("a").await.unwrap();
        let gadget = Gadget {
            metadata: ObjectMeta {
                name: Some("g".into()),
                owner_references: owner.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: GadgetSpec {},
        };
        gadgets.create(&params, &gadget).await.unwrap();
    };
    let controller = world
        .controller()
        .owns(world.all::<Gadget>(), watcher::Config::default());
    let running = world.run(controller, |_, _| async { idle() });
    world.until(10.0).await;
    world.set_value("a", 1).await;
    world.until(100.0).await;
    assert_eq!(running.of("a"), [0, 10]);
    let missing = running.errors().len();
    assert!((6..=9).contains(&missing), "{:?}", running.errors());

    install().await;
    world.until(146.0).await;
    assert_eq!(running.of("a").len(), 3, "its gadget appears");
    assert!(running.readiness.is_ready());

    world.until(300.0).await;
    let params = DeleteParams::default();
    let name = "gadgets.example.com";
    definitions.delete(name, &params).await.unwrap();
    world.until(301.0).await;
    assert_eq!(running.of("a")[3..], [300], "its gadget vanishes");
    // At the latest when the watch is to be taken up again, the kind is missed.
    world.until(700.0).await;
    assert!(running.errors().len() > missing);
    assert!(
        running
            .errors()
            .iter()
            .all(|error| error.contains("does not serve gadgets.example.com/v1")),
        "{:?}",
        running.errors()
    );
    assert!(!running.readiness.is_ready());

    install().await;
    world.until(746.0).await;
    assert_eq!(running.of("a").len(), 5, "another gadget appears");
    assert!(running.readiness.is_ready());
}

/// T15, section F 62: a watch that is taken up again goes on where it was, and does not list.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_goes_on() {
    let world = World::new(&["a", "b"]).await;
    let running = world.run(world.controller(), |_, _| async { idle() });
    for (nth, moment) in (1..).zip([100.0, 400.0, 1000.0]) {
        world.until(moment).await;
        world.set_value("a", nth).await;
        world.create_child("a", &format!("child-{nth}")).await;
    }
    world.until(1200.0).await;
    let asked = world.asked(Verb::Watch, "widgets");
    let times: Vec<u64> = asked.iter().map(|asked| asked.at.as_secs()).collect();
    assert_eq!(times, [0, 290, 580, 870, 1160]);
    let streams: Vec<bool> = asked.iter().map(|asked| asked.streams).collect();
    assert_eq!(streams, [true, false, false, false, false]);
    let versions: Vec<u64> = asked[1..]
        .iter()
        .map(|asked| asked.parameter("resourceVersion").parse().unwrap())
        .collect();
    // The config maps are no widgets; bookmarks tell of them.
    let increase: Vec<u64> = versions.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(increase, [2, 0, 2], "{versions:?}");
    assert_eq!(world.asked(Verb::List, "widgets").len(), 0);
    assert_eq!(running.of("a"), [0, 100, 400, 1000]);
    assert_eq!(running.of("b"), [0]);
}

/// T19, section F 61: a watch that says nothing any more is noticed and replaced, and what it did
/// not tell is seen then.
#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_noticed() {
    let world = World::new(&["a", "b"]).await;
    world.create_child("b", "child").await;
    let running = world.run(world.controller_of_both(), |_, _| async { idle() });
    world.until(100.0).await;
    world.wire.silence("configmaps");
    world.wire.silence("widgets");
    world.set_value("a", 1).await;
    world.create("c").await;
    world.delete_child("child").await;
    world.until(354.0).await;
    assert_eq!(running.errors(), [""; 0]);
    assert_eq!(running.order(), ["a", "b"]);
    // The last bookmark came at 60 s. A watch lasts for 290 s, and 5 s more are granted.
    world.until(357.0).await;
    let errors = running.timed_errors();
    assert_eq!(errors.len(), 2);
    for (at, error) in errors {
        assert_eq!(at.as_secs(), 355);
        assert!(error.contains("nothing came within 295s"), "{error}");
    }
    for kind in ["configmaps", "widgets"] {
        let delays = gaps(&world.asked(Verb::Watch, kind));
        assert_eq!(delays.len(), 1, "{kind}");
        assert!(is_delay(delay(355 * SECOND, delays[0]), 0.8), "{delays:?}");
    }
    let mut late: Vec<String> = running.order()[2..].to_vec();
    late.sort();
    assert_eq!(late, ["a", "b", "c"]);
    assert_eq!(running.values("a"), [0, 1]);
}

/// T19: a list that is never answered is noticed, as a stream and in pages, and so is a watch that
/// does not begin.
#[tokio::test(start_paused = true)]
async fn a_silent_list_is_noticed() {
    for (paged, verb, patience, phase) in [
        (false, Verb::Watch, 30, "list"),
        (true, Verb::List, 70, "list"),
        (true, Verb::Watch, 30, "start to watch"),
    ] {
        let world = World::new(&["a"]).await;
        if paged {
            world.wire.refuse_streaming();
        }
        let hang = world.inject(rule(verb, "widgets").times(1), Fault::Hang);
        let running = world.run(world.controller(), |_, _| async { idle() });
        world.until(100.0).await;
        world.set_value("a", 1).await;
        world.until(101.0).await;
        let expected = format!(
            "event queue error: {phase} widgets.example.com in all namespaces: nothing came within \
             {patience}s; "
        );
        let errors = running.timed_errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].0.as_secs(), patience);
        assert!(errors[0].1.starts_with(&expected), "{errors:?}");
        assert_eq!((hang.hits(), running.values("a")), (1, vec![0, 1]));
        assert!(running.readiness.is_ready());
    }
}

/// T19: time after time, and nothing piles up.
#[tokio::test(start_paused = true)]
async fn silence_leaves_nothing_behind() {
    let world = World::new(&["a"]).await;
    let controller = world.controller_of_both().with_config(even_backoff());
    let running = world.run(controller, |_, _| async { idle() });
    world.until(10.0).await;
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = tasks();
    for nth in 1..=20 {
        world.wire.silence("widgets");
        world.set_value("a", nth).await;
        world.until(10.0 + f64::from(nth) * 400.0).await;
        assert_eq!(running.values("a").last(), Some(&nth));
    }
    assert_eq!(running.errors().len(), 20);
    assert_eq!(tasks(), before);
}

/// Section 11: idle watches that the server ends ten times, a minute apart, and no event in all that time: the controller
/// is ready at every moment, runs nothing, and has nothing to tell.
#[tokio::test(start_paused = true)]
async fn idle_watches_that_end_leave_a_controller_ready() {
    let world = World::new(&["a"]).await;
    let (secrets, writer) = reflector::store::<Secret>();
    let watch = watcher(world.all::<Secret>(), watcher::Config::default());
    tokio::spawn(watch.reflect(writer).for_each(|_| std::future::ready(())));
    let running = world.run(world.controller_of_both(), move |_, _| {
        let _read = secrets.len();
        async { idle() }
    });
    world.until(5.0).await;
    assert_eq!(running.readiness.sources().len(), 3);
    for minute in 1..=10 {
        for second in 0..60 {
            world.until(f64::from(minute * 60 + second)).await;
            if second == 0 {
                world.wire.cut_watches(Cut::Cleanly);
            }
            assert!(running.readiness.is_ready(), "{minute}:{second}");
        }
    }
    let watches = world.asked(Verb::Watch, "widgets").len();
    assert!(watches >= 11, "{watches}");
    assert_eq!((running.successes(), running.errors()), (1, vec![]));
}
