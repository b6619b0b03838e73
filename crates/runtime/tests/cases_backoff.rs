//! When an object is tried again: a whole controller against the embedded server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{Failure, MINUTE, SECOND, Widget, World, delay, even_backoff, idle};
use homeostat::{Action, Config, RateLimit, error_policy};
use kube::ResourceExt;
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::sleep;

const NEVER: Result<Action, Failure> = Err(Failure("never"));

/// T01: each object has delays of its own; they grow, and a success resets them.
#[tokio::test(start_paused = true)]
async fn backoff_grows_for_each_object_by_itself() {
    let world = World::new(&["bad", "good"]).await;
    let controller = world.controller().with_config(even_backoff());
    let running = world.run(controller, |obj, nth| async move {
        match (obj.name_any().as_str(), nth) {
            ("bad", 5) => Ok(Action::requeue(100 * SECOND)),
            ("bad", _) => NEVER,
            _ => Ok(Action::requeue(10 * SECOND)),
        }
    });
    world.until(120.0).await;
    // Four failures with 1, 2, 4 and 8 s between; a success; then failures from the start again.
    assert_eq!(running.of("bad"), [0, 1, 3, 7, 15, 115, 116, 118]);
    let good: Vec<u64> = (0..12).map(|nth| nth * 10).collect();
    assert_eq!(running.of("good"), good);
}

/// T02, section A 14: without any settings the delays go from 1 s to 5 min, and never end.
#[tokio::test(start_paused = true)]
async fn the_defaults_suit() {
    let world = World::new(&["a"]).await;
    let running = world.run(world.controller(), |_, _| async { NEVER });
    world.until(24.0 * 3600.0).await;
    let runs: Vec<Duration> = running.runs().iter().map(|run| run.at).collect();
    for (nth, pair) in runs.windows(2).enumerate() {
        let least = f64::from(1_u32 << nth.min(16)).min(300.0);
        let delay = delay(pair[0], pair[1]);
        let range = least..least * 1.2 + 0.005;
        assert!(
            range.contains(&delay.as_secs_f64()),
            "delay {nth} is {delay:?}"
        );
    }
    // A day has 288 times 5 min.
    assert!((240..300).contains(&runs.len()), "{} runs", runs.len());
    assert_eq!(running.errors().len(), runs.len());
}

/// T09: jitter takes effect, so what failed together is not tried again together.
#[tokio::test(start_paused = true)]
async fn objects_that_fail_together_drift_apart() {
    let names: Vec<String> = (0..16).map(|number| format!("w{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&names).await;
    let running = world.run(world.controller(), |_, _| async { NEVER });
    world.until(1.5).await;
    let runs = running.runs();
    let (first, second) = runs.split_at(16);
    assert!(first.iter().all(|run| run.at == Duration::ZERO));
    assert_eq!(second.len(), 16);
    let times: BTreeSet<Duration> = second.iter().map(|run| run.at).collect();
    assert!(times.len() > 8, "{times:?}");
}

/// T11, section A 1: whatever happens to an object while it backs off neither shortens the delay nor
/// raises the count, unless the desired state changed.
#[tokio::test(start_paused = true)]
async fn only_a_change_of_the_desired_state_ends_a_backoff() {
    let world = World::new(&["a"]).await;
    let controller = world.controller().with_config(even_backoff());
    let running = world.run(controller, |_, _| async { NEVER });
    world.until(3.5).await;
    for seen in 1..=20 {
        world.set_seen("a", seen).await;
    }
    world.until(9.5).await;
    assert_eq!(running.of("a"), [0, 1, 3, 7], "20 status changes at 3.5 s");
    world.set_value("a", 1).await;
    world.until(50.0).await;
    // The spec changed at 9.5 s; that run failed too, and the sequence went on: 16 s, 32 s.
    assert_eq!(running.of("a"), [0, 1, 3, 7, 9, 25]);
    assert_eq!(running.values("a"), [0, 0, 0, 0, 1, 1]);
    assert_eq!(
        running.runs()[4].at,
        Duration::from_millis(9500),
        "at once, when the spec changed"
    );
}

/// T11, R5: what happens to a child runs it early, spaced. The delays go on where they stood, and the count is not raised.
#[tokio::test(start_paused = true)]
async fn changes_of_a_child_do_not_inflate_a_backoff() {
    let world = World::new(&["a"]).await;
    world.create_child("a", "child").await;
    let controller = world.controller_of_both().with_config(even_backoff());
    let running = world.run(controller, |_, _| async { NEVER });
    world.until(3.5).await;
    for value in 1..=20 {
        world.touch_child("child", value).await;
    }
    world.until(40.0).await;
    // After three failures the delay is 4 s, also after the two early runs at 3.5 s and 4.5 s; then it is 8 s and 16 s.
    assert_eq!(running.of("a"), [0, 1, 3, 3, 4, 8, 16, 32]);
}

/// T11: labels, annotations and finalizers are part of what somebody wants.
#[tokio::test(start_paused = true)]
async fn what_counts_as_desired_state() {
    let world = World::new(&["a"]).await;
    let controller = world.controller().with_config(even_backoff());
    let running = world.run(controller, |_, _| async { NEVER });
    let changes = [
        json!({ "labels": { "example.com/l": "x" } }),
        json!({ "annotations": { "example.com/a": "x" } }),
        json!({ "finalizers": ["example.com/f"] }),
    ];
    // The delays after 7 s are 8, 16 and 32 s, and each change comes half a second into one.
    let mut moment = 7.5;
    for metadata in changes {
        world.until(moment).await;
        world.patch("a", json!({ "metadata": metadata })).await;
        moment += 0.5;
    }
    world.until(8.9).await;
    world.delete("a").await;
    world.until(20.0).await;
    // Three changes, and the mark of the deletion.
    assert_eq!(running.of("a"), [0, 1, 3, 7, 7, 8, 8, 8]);
}

/// T11: a reconcile that fails and writes status in every run follows the backoff all the same,
/// with a policy of a fixed interval too.
#[tokio::test(start_paused = true)]
async fn a_loop_through_the_own_status_follows_the_policy() {
    for policy in [Action::backoff(), Action::requeue(10 * SECOND)] {
        let world = Arc::new(World::new(&["a"]).await);
        let expected: &[u64] = if policy.is_backoff() {
            &[0, 1, 3, 7, 15, 31]
        } else {
            &[0, 10, 20, 30, 40, 50]
        };
        let controller = world.controller().with_config(even_backoff());
        let writer = Arc::clone(&world);
        let reconcile = move |obj: Arc<Widget>, nth: usize| {
            let world = Arc::clone(&writer);
            async move {
                let nth = u32::try_from(nth).unwrap();
                // A loop without delays would have no end: the clock stands still in it.
                if nth < 100 {
                    world.set_seen(&obj.name_any(), nth).await;
                }
                NEVER
            }
        };
        let error_policy = move |_: Arc<Widget>, _: &Failure, _: Arc<()>| policy.clone();
        let running = world.run_with(controller, reconcile, error_policy);
        world.until(59.5).await;
        assert_eq!(running.of("a"), expected);
        let seen = running.runs().last().and_then(|run| run.seen);
        assert_eq!(seen, Some(5), "each run sees what the one before wrote");
    }
}

/// Section A 2: one object that is triggered all the time costs others nothing, also where starts
/// are limited.
#[tokio::test(start_paused = true)]
async fn a_busy_object_does_not_delay_others() {
    let world = World::new(&["busy", "calm"]).await;
    let limit = RateLimit {
        per_second: 1.0,
        burst: 1,
    };
    let controller = world
        .controller()
        .with_config(Config::default().rate_limit(limit));
    let running = world.run(controller, |_, _| async { idle() });
    for tenth in 0..200 {
        world.until(5.05 + f64::from(tenth) / 10.0).await;
        world.set_value("busy", tenth).await;
        if tenth == 105 {
            sleep(Duration::from_millis(20)).await;
            world.set_value("calm", 1).await;
        }
    }
    // It changed at 15.57 s, and waits for the one before it.
    assert_eq!(running.of("calm"), [1, 17]);
    assert_eq!(running.of("busy").len(), 20);
}

/// Section A 3: a success that asks for a requeue, and a permanent error, reset the count.
#[tokio::test(start_paused = true)]
async fn what_resets_the_count() {
    let world = World::new(&["a"]).await;
    let controller = world.controller().with_config(even_backoff());
    let reconcile = |_, nth| async move {
        match nth {
            3 => Ok(Action::requeue(10 * SECOND)),
            6 => Err(Failure("permanent")),
            _ => NEVER,
        }
    };
    let policy = |_: Arc<Widget>, error: &Failure, _: Arc<()>| match error.0 {
        "permanent" => Action::await_change(),
        _ => Action::backoff(),
    };
    let running = world.run_with(controller, reconcile, policy);
    world.until(100.5).await;
    world.set_value("a", 1).await;
    world.until(105.0).await;
    // Failures at 0 and 1 s, a success at 3 s; failures at 13 and 14 s, a permanent one at 16 s.
    assert_eq!(running.of("a"), [0, 1, 3, 13, 14, 16, 100, 101, 103]);
}

/// Section A 4: objects of the initial list let others pass, and run within a bound all the same.
#[tokio::test(start_paused = true)]
async fn the_initial_list_does_not_starve() {
    let world = World::new(&["a", "b", "z"]).await;
    let controller = world
        .controller()
        .with_config(Config::default().concurrency(1));
    let running = world.run(controller, |_, _| async {
        sleep(SECOND).await;
        Ok::<_, Failure>(Action::requeue(Duration::ZERO))
    });
    // These two are changes, and come again and again.
    world.until(0.5).await;
    world.set_value("a", 1).await;
    world.set_value("b", 1).await;
    world.until(60.0).await;
    assert_eq!(running.order()[..5], ["a", "b", "a", "b", "a"]);
    // Ten seconds of ageing, and what was before it.
    assert_eq!(running.of("z"), [12, 25, 38, 51]);
}

/// Section A 5: an object of the initial list that fails is one of the initial list when it is tried
/// again.
#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority() {
    let world = World::new(&["bad", "m", "n"]).await;
    let controller = world
        .controller()
        .with_config(even_backoff().concurrency(1));
    let running = world.run(controller, |obj: Arc<Widget>, nth| async move {
        match (obj.name_any().as_str(), nth) {
            ("bad", 1) => NEVER,
            ("m", 2) => {
                sleep(2 * SECOND).await;
                Ok(Action::await_change())
            }
            _ => Ok(Action::await_change()),
        }
    });
    world.until(0.5).await;
    world.set_value("m", 1).await;
    // While m runs, the retry becomes due at 1 s, and n changes at 2 s.
    world.until(2.0).await;
    world.set_value("n", 1).await;
    world.until(5.0).await;
    assert_eq!(running.order(), ["bad", "m", "n", "m", "n", "bad"]);
}

/// Section A 17: many timers that fire at once do not hold up a change.
#[tokio::test(start_paused = true)]
async fn timers_do_not_hold_up_changes() {
    let names: Vec<String> = (0..300).map(|number| format!("w{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::new(&names).await;
    let controller = world
        .controller()
        .with_config(Config::default().concurrency(1));
    let running = world.run(controller, |_, nth| async move {
        if nth > 1 {
            sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, Failure>(Action::requeue(MINUTE))
    });
    world.until(61.0).await;
    let before = running.of("w299");
    world.set_value("w299", 1).await;
    world.until(61.1).await;
    assert_eq!(before, [0], "it is the last of those whose timers fired");
    assert_eq!(running.of("w299"), [0, 61]);
}

/// T32: nothing is remembered of an object that was deleted while it backed off: the next one under
/// its name is a new one.
#[tokio::test(start_paused = true)]
async fn a_new_object_starts_over() {
    let world = World::new(&["a"]).await;
    let controller = world.controller().with_config(even_backoff());
    let running = world.run_with(controller, |_, _| async { NEVER }, error_policy::backoff);
    world.until(20.5).await;
    world.delete("a").await;
    world.until(22.5).await;
    assert_eq!(running.of("a"), [0, 1, 3, 7, 15]);
    // The other would have been tried again at 31 s.
    world.create("a").await;
    world.until(40.0).await;
    assert_eq!(running.of("a")[5..], [22, 23, 25, 29, 37]);
}
