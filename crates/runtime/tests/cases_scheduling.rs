//! When runs start: a whole controller against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{Failure, SECOND, Widget, World, even_backoff, idle, rule};
use futures::{StreamExt, stream};
use homeostat::{Action, Config, Controller, error_policy, reflector::ObjectRef, watcher};
use homeostat_apiserver::{Fault, Verb};
use kube::ResourceExt;
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// T52: never two runs of an object at once; any number of events during a run lead to one more.
#[tokio::test(start_paused = true)]
async fn events_during_a_run_lead_to_one_more() {
    let world = World::new(&["a"]).await;
    world.create_child("a", "child").await;
    let running = world.run(world.controller_of_both(), |_, _| async {
        sleep(10 * SECOND).await;
        idle()
    });
    for nth in 1..=50 {
        sleep(Duration::from_millis(100)).await;
        world.set_value("a", nth).await;
        world.set_seen("a", nth).await;
        world.touch_child("child", nth).await;
    }
    world.until(100.0).await;
    assert_eq!(running.of("a"), [0, 10]);
    assert_eq!(running.values("a"), [0, 50], "with the last change");
    assert_eq!(running.doubled(), [""; 0]);
}

/// T52: the same while runs fail, are late, and ask to run again at once.
#[tokio::test(start_paused = true)]
async fn no_two_runs_at_once_whatever_they_return() {
    let world = World::new(&["a", "b"]).await;
    let controller = world.controller().with_config(even_backoff());
    let running = world.run(controller, |_, nth| async move {
        sleep(Duration::from_millis(700)).await;
        match nth % 4 {
            0 => Ok(Action::requeue(Duration::ZERO)),
            1 => Err(Failure("not yet")),
            2 => Ok(Action::requeue(Duration::from_millis(300))),
            _ => Ok(Action::backoff()),
        }
    });
    for nth in 1..=300 {
        sleep(Duration::from_millis(97)).await;
        world.set_value(["a", "b"][nth as usize % 2], nth).await;
    }
    assert_eq!(running.doubled(), [""; 0]);
    // A change comes during each run, so one run follows the other.
    for name in ["a", "b"] {
        let runs = running.of(name).len();
        assert!((40..=42).contains(&runs), "{runs} runs in 29 s");
    }
}

/// T54: first come, first served: nobody waits for longer than all others once.
#[tokio::test(start_paused = true)]
async fn no_object_waits_for_others_twice() {
    let names: Vec<String> = (0..20).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&names).await;
    let controller = world
        .controller()
        .with_config(Config::default().concurrency(1));
    let running = world.run(controller, |_, _| async {
        sleep(SECOND).await;
        Ok::<_, Failure>(Action::requeue(Duration::ZERO))
    });
    world.until(100.5).await;
    let order = running.order();
    assert_eq!(order.len(), 101);
    for round in order.chunks_exact(names.len()) {
        assert_eq!(round, names);
    }
}

/// T55: a steady stream of events puts a run off, but not for ever; a requeue is not put off.
#[tokio::test(start_paused = true)]
async fn debounce_has_a_longest_wait() {
    let world = World::new(&["a"]).await;
    let controller = world
        .controller()
        .with_config(Config::default().debounce(2 * SECOND));
    let running = world.run(controller, |_, _| async {
        Ok::<_, Failure>(Action::requeue(30 * SECOND))
    });
    world.until(2.5).await;
    assert_eq!(running.of("a"), [2]);
    for nth in 1..=26 {
        world.set_value("a", nth).await;
        sleep(SECOND).await;
    }
    assert_eq!(
        running.of("a"),
        [2, 22],
        "changes each second from 2.5 s to 27.5 s"
    );
    world.until(70.0).await;
    // Quiet for 2 s at 29.5 s; then the requeue, 30 s later.
    assert_eq!(running.of("a"), [2, 22, 29, 59]);
}

/// T56, section A 16: a panic, in the future, in the call, or in the error policy, concerns one
/// object alone, which is tried again after its backoff.
#[tokio::test(start_paused = true)]
async fn a_panic_concerns_one_object() {
    let world = World::new(&["call", "good", "late", "policy"]).await;
    let controller = world.controller().with_config(even_backoff());
    let reconcile = |obj: Arc<Widget>, _| {
        let name = obj.name_any();
        assert_ne!(name, "call", "the call panics");
        async move {
            tokio::task::yield_now().await;
            match name.as_str() {
                "late" => panic!("the future panics"),
                "policy" => Err(Failure("ask the policy")),
                _ => Ok(Action::requeue(5 * SECOND)),
            }
        }
    };
    let policy = |_: Arc<Widget>, _: &Failure, _: Arc<()>| -> Action { panic!("the policy") };
    let running = world.run_with(controller, reconcile, policy);
    world.until(7.5).await;
    assert_eq!(running.of("good"), [0, 5]);
    let errors = running.errors();
    for (name, panic) in [
        ("call", "the call panics"),
        ("late", "the future panics"),
        ("policy", "the policy"),
    ] {
        assert_eq!(running.of(name), [0, 1, 3, 7], "{name}");
        let about = format!("Widget.v1.example.com/{name}.default panicked");
        let said = errors
            .iter()
            .filter(|error| error.contains(&about) && error.contains(panic));
        assert_eq!(said.count(), 4, "{errors:?}");
    }
    assert_eq!(errors.len(), 12, "{errors:?}");
}

/// T58, section A 19: a requeue after years or centuries never comes, and harms nobody.
#[tokio::test(start_paused = true)]
async fn the_longest_requeue_is_never() {
    let world = World::new(&["longest", "years"]).await;
    let running = world.run(world.controller(), |obj: Arc<Widget>, _| async move {
        let years = Duration::from_secs(3 * 366 * 24 * 3600);
        Ok::<_, Failure>(match obj.name_any().as_str() {
            "years" => Action::requeue(years),
            _ => Action::requeue(Duration::MAX),
        })
    });
    world.until(7200.0).await;
    for name in ["longest", "years"] {
        world.set_value(name, 1).await;
    }
    world.until(7300.0).await;
    for name in ["longest", "years"] {
        assert_eq!(running.of(name), [0, 7200], "{name}");
    }
    assert_eq!(running.errors(), [""; 0]);
}

/// T59: a run that takes too long is dropped, reported, and tried again after its backoff.
#[tokio::test(start_paused = true)]
async fn a_run_may_only_take_so_long() {
    struct Dropped(Arc<Mutex<u32>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let world = World::new(&["quick", "slow"]).await;
    let controller = world
        .controller()
        .with_config(even_backoff().reconcile_timeout(5 * SECOND));
    let dropped = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&dropped);
    let running = world.run(controller, move |obj: Arc<Widget>, nth| {
        let counter = Arc::clone(&counter);
        async move {
            if obj.name_any() == "slow" && nth < 3 {
                let _dropped = Dropped(counter);
                std::future::pending::<()>().await;
            }
            idle()
        }
    });
    world.until(60.0).await;
    // 5 s until the timeout and 1 s of backoff; 5 s and 2 s.
    assert_eq!(running.of("slow"), [0, 6, 13]);
    assert_eq!(running.of("quick"), [0]);
    assert_eq!(
        running.errors(),
        vec![
            "reconciler for object Widget.v1.example.com/slow.default did not finish within 5s";
            2
        ]
    );
    assert_eq!((*dropped.lock().unwrap(), running.successes()), (2, 2));
}

/// T60: a reader of the stream that takes long for each item neither stops the watch nor loses a
/// change, and does not make objects wait for one item each.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_stall_the_controller() {
    let names: Vec<String> = (0..48).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&names).await;
    let runs: Arc<Mutex<Vec<(u64, String, u32)>>> = Arc::default();
    let start = Instant::now();
    let reconcile = move |obj: Arc<Widget>, runs: Arc<Mutex<Vec<(u64, String, u32)>>>| async move {
        let run = (start.elapsed().as_secs(), obj.name_any(), obj.spec.value);
        runs.lock().unwrap().push(run);
        sleep(Duration::from_millis(10)).await;
        idle()
    };
    let run = world
        .controller()
        .run(reconcile, error_policy::backoff, Arc::clone(&runs));
    tokio::spawn(run.for_each(|_| sleep(10 * SECOND)));
    world.until(35.0).await;
    // What fits at once, each time that the reader comes.
    let mut expected = vec![0; 16];
    expected.extend([10; 16]);
    expected.extend([20; 16]);
    let times: Vec<u64> = runs.lock().unwrap().iter().map(|run| run.0).collect();
    assert_eq!(times, expected);
    world.set_value("w00", 7).await;
    world.until(45.0).await;
    let last = runs.lock().unwrap().last().cloned();
    assert_eq!(last, Some((40, "w00".to_owned(), 7)));
}

/// R15: nothing is reconciled before every cache is complete, and readiness tells which is not.
#[tokio::test(start_paused = true)]
async fn nothing_runs_before_every_cache_is_complete() {
    for late in ["configmaps", "widgets"] {
        let world = World::new(&["a"]).await;
        world.create_child("a", "child").await;
        let _delay = world.inject(rule(Verb::Watch, late), Fault::Delay(5 * SECOND));
        let running = world.run(world.controller_of_both(), |_, _| async { idle() });
        let is_synced = |kind| running.source(kind).synced;
        assert!(!running.readiness.is_ready(), "it has not even begun");
        world.until(4.9).await;
        assert_eq!(running.order(), [""; 0], "{late} are late");
        assert_eq!(is_synced("configmaps"), late != "configmaps");
        assert_eq!(is_synced("widgets"), late != "widgets");
        assert!(!running.readiness.is_ready());
        world.until(5.1).await;
        assert_eq!(running.of("a"), [5]);
        assert!(is_synced("configmaps") && is_synced("widgets"));
        assert!(running.readiness.is_ready());
    }
}

/// R15: a page is no list. What was listed is not reconciled before the rest is there.
#[tokio::test(start_paused = true)]
async fn nothing_runs_between_pages() {
    let world = World::new(&["a", "b", "c"]).await;
    world.wire.refuse_streaming();
    let _delay = world.inject(
        rule(Verb::List, "widgets").after(1),
        Fault::Delay(5 * SECOND),
    );
    let controller =
        Controller::<Widget>::new(world.all(), watcher::Config::default().page_size(2));
    let running = world.run(controller, |_, _| async { idle() });
    world.until(4.9).await;
    assert_eq!(world.asked(Verb::List, "widgets").len(), 1);
    assert_eq!(running.order(), [""; 0]);
    world.until(5.1).await;
    assert_eq!(running.order(), ["a", "b", "c"]);
}

/// R9: an object that is gone is not run any more, and that is no item: neither when it waits for
/// its requeue or its backoff, nor when it runs as it is deleted.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_no_item() {
    let world = World::new(&["backoff", "requeue", "runs"]).await;
    let controller = world.controller().with_config(even_backoff());
    let running = world.run(controller, |obj: Arc<Widget>, _| async move {
        match obj.name_any().as_str() {
            "backoff" => Err(Failure("not yet")),
            "requeue" => Ok(Action::requeue(10 * SECOND)),
            _ => {
                sleep(8 * SECOND).await;
                Ok(Action::requeue(SECOND))
            }
        }
    });
    world.until(5.0).await;
    for name in ["backoff", "requeue", "runs"] {
        world.delete(name).await;
    }
    world.until(600.0).await;
    assert_eq!(running.of("backoff"), [0, 1, 3]);
    assert_eq!(running.of("requeue"), [0]);
    assert_eq!(running.of("runs"), [0]);
    // One for each run that was.
    assert_eq!((running.successes(), running.errors().len()), (2, 3));
}

/// R9: an object that waits for its finalizers still runs; when they are gone, so is it.
#[tokio::test(start_paused = true)]
async fn an_object_that_is_being_deleted_runs() {
    let world = World::new(&["a"]).await;
    world
        .patch(
            "a",
            json!({ "metadata": { "finalizers": ["example.com/f"] } }),
        )
        .await;
    let running = world.run(world.controller(), |_, _| async { idle() });
    world.until(5.0).await;
    world.delete("a").await;
    world.until(10.0).await;
    assert_eq!(running.of("a"), [0, 5]);
    world
        .patch("a", json!({ "metadata": { "finalizers": null } }))
        .await;
    world.until(20.0).await;
    assert_eq!((running.of("a"), running.stored()), (vec![0, 5], vec![]));
}

/// Section F 57: nothing is left of a controller that was stopped or dropped.
#[tokio::test(start_paused = true)]
async fn a_hundred_controllers_leave_nothing() {
    let world = World::new(&["a"]).await;
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let run = |controller: Controller<Widget>| {
        let controller = controller.with_config(even_backoff());
        world.run(controller, |_, _| async { Err(Failure("not yet")) })
    };
    sleep(SECOND).await;
    let before = tasks();
    for nth in 0..100 {
        let controller = world.controller_of_both();
        let running = if nth % 2 == 0 {
            run(controller)
        } else {
            run(controller.graceful_shutdown_on(sleep(SECOND)))
        };
        sleep(2 * SECOND).await;
        assert_eq!(running.has_ended(), nth % 2 == 1);
        drop(running);
        sleep(SECOND).await;
        assert_eq!(tasks(), before, "after {nth} controllers");
    }
    let quiet = world.server.requests().all().len();
    sleep(1000 * SECOND).await;
    assert_eq!(world.server.requests().all().len(), quiet);
}

/// Section F 58: a source that ends is no work, and the others go on.
#[tokio::test(start_paused = true)]
async fn a_source_that_ends_does_not_spin() {
    let world = World::new(&["a"]).await;
    let controller = world
        .controller()
        .reconcile_on(stream::empty())
        .reconcile_all_on(stream::empty());
    let running = world.run(controller, |_, _| async { idle() });
    // The paused clock only moves when nobody has anything to do.
    world.until(1000.0).await;
    world.set_value("a", 1).await;
    world.until(1001.0).await;
    assert_eq!(running.of("a"), [0, 1000]);
    assert!(!running.has_ended());
}

/// Section A 20: a run that hangs is seen, with how long it has been going on; what waits for its turn
/// or its delay is seen too, and the time that a run took does not include how long it waited.
#[tokio::test(start_paused = true)]
async fn what_hangs_and_what_waits_is_seen() {
    let world = World::new(&["fails", "hangs", "quick"]).await;
    let controller = world
        .controller()
        .with_config(even_backoff().concurrency(1));
    let handle = controller.handle();
    let running = world.run(controller, |obj: Arc<Widget>, nth| async move {
        match (obj.name_any().as_str(), nth) {
            ("fails", _) => Err(Failure("not yet")),
            ("hangs", 1) => {
                sleep(100 * SECOND).await;
                idle()
            }
            _ => {
                sleep(2 * SECOND).await;
                Ok(Action::requeue(1000 * SECOND))
            }
        }
    });
    let told = |name| handle.explain(&ObjectRef::new(name).within("default"));
    world.until(50.0).await;
    let (fails, hangs, quick) = (told("fails"), told("hangs"), told("quick"));
    assert_eq!(hangs.running_for.map(|time| time.as_secs()), Some(50));
    assert!(hangs.to_string().starts_with("has been running for 50.0s"));
    // Its delay is over, and its turn has not come.
    assert_eq!(fails.next.run_in, Some(Duration::ZERO));
    assert!(fails.next.backing_off);
    assert!(quick.runs.is_empty() && quick.running_for.is_none());
    world.until(110.0).await;
    assert_eq!(running.of("quick"), [100]);
    let quick = told("quick");
    assert_eq!(quick.runs[0].duration.as_secs(), 2);
    assert_eq!(quick.next.run_in.map(|time| time.as_secs()), Some(992));
    assert_eq!(told("hangs").runs[0].duration.as_secs(), 100);
}
