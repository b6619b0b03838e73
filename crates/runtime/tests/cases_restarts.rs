//! How controllers stop, start again, and what is left of what was: a whole controller against the
//! embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{
    Failure, MINUTE, SECOND, Widget, World, even_backoff, idle, rule, running::Running,
};
use futures::StreamExt;
use homeostat::{
    Action, Config, Controller, WatchStreamExt, error_policy,
    reflector::{self, ObjectRef},
    watcher,
};
use homeostat_apiserver::{Fault, Rule, Verb};
use kube::ResourceExt;
use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::sleep;

/// A controller that is told to stop after ten seconds, and whose runs have this long to end then.
fn stopping(world: &World, timeout: Duration) -> Controller<Widget> {
    world
        .controller()
        .with_config(Config::default().shutdown_timeout(timeout))
        .graceful_shutdown_on(sleep(10 * SECOND))
}

/// Counts the runs that came to their end.
#[derive(Debug, Clone, Default)]
struct Ended(Arc<AtomicUsize>);

impl Ended {
    fn note(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// T62: runs have until the deadline; what ends before is a result, what does not is cancelled and
/// named, and nothing is started meanwhile.
#[tokio::test(start_paused = true)]
async fn runs_have_until_the_deadline() {
    let world = World::new(&["quick", "slow"]).await;
    let ended = Ended::default();
    let controller = stopping(&world, 20 * SECOND);
    let handle = controller.handle();
    let running = {
        let ended = ended.clone();
        world.run(controller, move |obj, _| {
            let ended = ended.clone();
            async move {
                let quick = obj.name_any() == "quick";
                sleep(if quick { 15 * SECOND } else { MINUTE }).await;
                ended.note();
                Ok::<_, Failure>(Action::requeue(Duration::ZERO))
            }
        })
    };
    world.until(12.0).await;
    world.set_value("quick", 1).await;
    world.create("late").await;
    world.until(29.9).await;
    assert_eq!((running.successes(), ended.count()), (1, 1));
    assert!(!running.has_ended(), "slow still has time");
    let slow = ObjectRef::new("slow").within("default");
    assert!(handle.explain(&slow).running_for.is_some());
    world.until(30.1).await;
    assert!(running.has_ended());
    assert_eq!(handle.explain(&slow).running_for, None);
    assert_eq!(running.order(), ["quick", "slow"]);
    let (at, error) = running.timed_errors().remove(0);
    assert_eq!(at.as_secs(), 30);
    assert!(
        error.contains("Widget.v1.example.com/slow.default was cancelled"),
        "{error}"
    );
    world.until(200.0).await;
    assert_eq!(ended.count(), 1, "what was cancelled does not go on");
}

/// T62: without runs there is nothing to wait for.
#[tokio::test(start_paused = true)]
async fn a_quiet_controller_stops_at_once() {
    let world = World::new(&["a"]).await;
    let running = world.run(stopping(&world, MINUTE), |_, _| async {
        Ok::<_, Failure>(Action::requeue(60 * MINUTE))
    });
    world.until(10.1).await;
    assert!(running.has_ended());
    assert_eq!(running.errors(), [""; 0]);
}

/// T62: without a deadline runs end by themselves, a deadline may be at once or never, and being told
/// to stop once more changes nothing.
#[tokio::test(start_paused = true)]
async fn deadlines_at_both_ends() {
    let world = World::new(&["a"]).await;
    let run = |config: Config| {
        let controller = world.controller().with_config(config);
        let controller = controller
            .graceful_shutdown_on(sleep(10 * SECOND))
            .graceful_shutdown_on(sleep(15 * SECOND));
        world.run(controller, |_, _| async {
            sleep(60 * MINUTE).await;
            idle()
        })
    };
    let within = |timeout| Config::default().shutdown_timeout(timeout);
    let patient = [run(Config::default()), run(within(Duration::MAX))];
    let (at_once, once) = (run(within(Duration::ZERO)), run(within(10 * SECOND)));
    world.until(10.1).await;
    assert_eq!(at_once.errors().len(), 1);
    assert!(at_once.has_ended());
    world.until(20.1).await;
    assert!(once.has_ended(), "the first order counts");
    world.until(3599.0).await;
    assert!(!patient.iter().any(Running::has_ended));
    world.until(3601.0).await;
    for running in patient {
        assert!(running.has_ended());
        assert_eq!((running.successes(), running.errors()), (1, vec![]));
    }
}

/// Section A 13: what waited, backed off or was cut off when a controller stopped is done by the next
/// one, which finds it in its first list. Delays are not kept.
#[tokio::test(start_paused = true)]
async fn the_next_controller_takes_over() {
    let world = World::new(&["backs-off", "cut", "off", "waits"]).await;
    let controller = stopping(&world, SECOND)
        .with_config(even_backoff().concurrency(2).shutdown_timeout(SECOND));
    let first = world.run(controller, |obj, _| async move {
        if obj.name_any() == "backs-off" {
            return Err(Failure("not yet"));
        }
        sleep(60 * MINUTE).await;
        idle()
    });
    world.until(12.0).await;
    assert!(first.has_ended());
    assert_eq!(first.order(), ["backs-off", "cut", "off"]);
    let second = world.run(world.controller(), |_, _| async { idle() });
    world.until(13.0).await;
    assert_eq!(second.order(), ["backs-off", "cut", "off", "waits"]);
    assert_eq!(second.runs()[0].at.as_secs(), 12);
}

/// Section A 8: orders to stop that come before the first list do not hang.
#[tokio::test(start_paused = true)]
async fn stopping_before_the_first_list() {
    let world = World::new(&["a"]).await;
    let _silence = world.inject(rule(Verb::Watch, "widgets"), Fault::Hang);
    let running = world.run(stopping(&world, MINUTE), |_, _| async { idle() });
    world.until(10.1).await;
    assert!(running.has_ended());
    assert_eq!(running.of("a"), [0; 0]);
}

/// Section F 68: a controller that starts again runs as soon as its list is there, however slow the
/// server and however many objects: after as many answers as the list has pages, and one more.
#[tokio::test(start_paused = true)]
async fn the_first_run_after_a_restart() {
    let names: Vec<String> = (0..1001).map(|number| format!("w{number:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (streamed, answers) in [(true, 1), (false, 4)] {
        let world = World::new(&names).await;
        if !streamed {
            world.wire.refuse_streaming();
        }
        let _slow = world.inject(Rule::any(), Fault::Delay(SECOND));
        for start in [0.0, 100.0, 200.0] {
            world.until(start).await;
            let running = world.run(world.controller(), |_, _| async { idle() });
            world.until(start + 50.0).await;
            let runs = running.runs();
            let after = runs.iter().map(|run| run.at.as_secs_f64() - start);
            let (first, last) = after.fold((f64::MAX, 0.0), |(first, last), at| {
                (at.min(first), at.max(last))
            });
            assert_eq!(runs.len(), 1001, "streamed {streamed}");
            assert!(
                last < f64::from(answers) + 0.1,
                "streamed {streamed}: {last} s"
            );
            assert!(first >= 0.9, "streamed {streamed}: {first} s");
        }
    }
}

/// Section F 68: churn leaves nothing: objects that are gone are freed, however often they come and go,
/// with runs, failures, requeues and children of theirs.
#[tokio::test(start_paused = true)]
async fn churn_leaves_nothing() {
    let world = World::new(&["stays"]).await;
    let seen: Arc<Mutex<Vec<Weak<Widget>>>> = Arc::default();
    let noting = Arc::clone(&seen);
    let running = world.run(world.controller_of_both(), move |obj: Arc<Widget>, nth| {
        noting.lock().unwrap().push(Arc::downgrade(&obj));
        async move {
            match nth % 3 {
                0 => idle(),
                1 => Err(Failure("not yet")),
                _ => Ok(Action::requeue(MINUTE)),
            }
        }
    });
    for round in 0..50 {
        for nth in 0..10 {
            let name = format!("goes-{nth}");
            world.create(&name).await;
            world.create_child(&name, &format!("{name}-{round}")).await;
        }
        sleep(5 * SECOND).await;
        for nth in 0..10 {
            world.delete(&format!("goes-{nth}")).await;
        }
        sleep(5 * SECOND).await;
    }
    let alive = seen
        .lock()
        .unwrap()
        .iter()
        .filter_map(Weak::upgrade)
        .count();
    let runs = running.runs();
    assert!(runs.len() > 1000, "{} runs", runs.len());
    let stays = runs.iter().filter(|run| run.name == "stays").count();
    // The one that stays has not changed, so each of its runs saw the same.
    assert_eq!(alive, stays);
    assert_eq!(running.stored(), ["stays"]);
}

/// Section 10: a shared watch with two controllers ends at a signal, as documented at `for_shared_stream`.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_shared_watch_ends_with_its_controllers() {
    let world = World::new(&["a"]).await;
    let (reader, writer) = reflector::store::<Widget>();
    let watch = watcher(world.all::<Widget>(), watcher::Config::default()).reflect(writer);
    let runs = Arc::new(AtomicUsize::new(0));
    let controller = || {
        let runs = Arc::clone(&runs);
        let controller = Controller::for_shared_stream(reader.subscribe(), reader.clone());
        controller.shutdown_on_signal().run(
            move |_, _| {
                runs.fetch_add(1, Ordering::SeqCst);
                async { idle() }
            },
            error_policy::backoff,
            Arc::new(()),
        )
    };
    let controllers = futures::future::join(
        controller().for_each(|_| std::future::ready(())),
        controller().for_each(|_| std::future::ready(())),
    );
    let program = tokio::spawn(async move {
        tokio::select! {
            _ = controllers => {}
            () = watch.for_each(|_| std::future::ready(())) => {}
        }
    });
    world.until(5.0).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert!(!program.is_finished());
    let kill = format!("kill -TERM {}", std::process::id());
    let killed = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(killed.unwrap().success());
    // A signal takes real time to arrive, in which virtual time flies.
    for _ in 0..100_000 {
        if program.is_finished() {
            break;
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert!(program.is_finished());
}
