//! Each fault of a reconciler, as small as it can be, and its report.

use super::{World, deployment, object, site};
use crate::loops::{Cause, Config, Form, Object, Verdict};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::time::Duration;

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better at the many calls"
)]
fn check(world: &World, expected: Expect) {
    expected.assert_eq(&world.report());
}

/// Runs a reconciler that writes one object in each run, and nobody else does anything: `state` is
/// what the object is after the n-th run, and `sent` what was sent for it.
fn alone(
    runs: u64,
    object: &Object,
    form: Form,
    state: impl Fn(u64) -> Value,
    sent: impl Fn(u64) -> Value,
) -> World {
    let mut world = World::new(Config::default());
    for n in 1..=runs {
        let (before, after) = (state(n - 1), state(n));
        world.write(object.clone(), form, sent(n), Some(&before), Some(&after));
        world.run(&[Cause::Own]);
    }
    world
}

/// H1, H2: the time of each run in the status.
fn time_in_the_status() -> World {
    let fields = json!({ "f:status": { "f:lastUpdated": {}, "f:phase": {} } });
    let content = |n: u64| json!({ "status": { "phase": "Ready", "lastUpdated": format!("2026-01-01T00:00:{n:02}Z") } });
    let state = |n| object(&content(n), &[("site-operator", fields.clone())]);
    alone(100, &site(), Form::Merge, state, content)
}

/// R4a: to fail is no excuse where no delay follows from it, and neither is a timer that is none.
#[test]
fn failing_and_polling_without_a_delay() {
    let now = Some(Duration::ZERO);
    let endings: [(Cause, bool, Option<Duration>); 4] = [
        // An error policy that waits for a change, and an own write that counts as one.
        (Cause::Own, true, None),
        // One that tries again at once.
        (Cause::Retry, true, now),
        // A reconciler that does.
        (Cause::Timer, false, now),
        (Cause::Timer, false, Some(Config::default().instant)),
    ];
    for (cause, failed, after) in endings {
        let mut world = World::new(Config::default());
        for n in 1..=40 {
            let content = |n: u64| json!({ "status": { "lastError": format!("no route to {n}") } });
            let (before, after_write) = (content(n - 1), content(n));
            let (before, after_write) = (Some(&before), Some(&after_write));
            world.write(site(), Form::Merge, content(n), before, after_write);
            world.end_until(std::slice::from_ref(&cause), failed, after);
        }
        assert_eq!(world.reports.len(), 1, "{cause:?}");
        assert_eq!(*world.reports[0].verdict(), Verdict::NotDeterministic);
        let delayed = world.delays.iter().filter(|answer| answer.delay.is_some());
        assert!(delayed.count() > 10, "{cause:?}");
    }
}

#[test]
fn a_time_in_the_status() {
    check(
        &time_in_the_status(),
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Site default/blog: nondeterministic value: it is another one in each run
              .status.lastUpdated: "2026-01-01T00:00:23Z" -> "2026-01-01T00:00:24Z", written by site-operator (Update)
              What to do: derive the value from what is observed, or write it only when something else has changed.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// H4: the condition is built anew in each run, with the time of the run.
#[test]
fn a_time_in_a_condition() {
    let content = |n: u64| {
        json!({ "status": { "conditions": [
            { "type": "Synced", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            { "type": "Ready", "status": "True", "lastTransitionTime": format!("2026-01-01T00:00:{n:02}Z") },
        ] } })
    };
    check(
        &alone(30, &site(), Form::Merge, content, content),
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Site default/blog: nondeterministic value: it is another one in each run
              .status.conditions[type=Ready].lastTransitionTime: "2026-01-01T00:00:23Z" -> "2026-01-01T00:00:24Z", sent by site-operator
              What to do: derive the value from what is observed, or write it only when something else has changed.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// H10: the variables of a container come from a map, and a hash of the template goes with them.
fn order_of_a_map() -> World {
    let content = |n: u64| {
        let mut env = vec![
            json!({ "name": "A", "value": "1" }),
            json!({ "name": "B", "value": "2" }),
            json!({ "name": "C", "value": "3" }),
        ];
        env.rotate_left(usize::try_from(n % 3).expect("small"));
        json!({ "spec": { "template": {
            "metadata": { "annotations": { "example.com/hash": format!("{n:x}") } },
            "spec": { "containers": [{ "name": "app", "env": env }] },
        } } })
    };
    let mut world = World::new(Config::default());
    for n in 1..=30 {
        let (before, after) = (content(n - 1), content(n));
        world.write(
            deployment(),
            Form::Merge,
            content(n),
            Some(&before),
            Some(&after),
        );
        // The Deployment's own controller answers each change.
        world.run(&[Cause::Own, Cause::Foreign(Some(deployment()))]);
    }
    world
}

#[test]
fn the_order_of_a_map() {
    check(
        &order_of_a_map(),
        expect![[r#"
            reconcile loop: 14 runs in 330ms, and no end
            Deployment default/blog: same set in another order each time
              .spec.template.spec.containers[name=app].env: [{"name":"B","value":"2"},{"name":"C","value":"3"},{"name":"A","value":"1"}] -> [{"name":"C","value":"3"},{"name":"A","value":"1"},{"name":"B","value":"2"}], sent by site-operator
              What to do: sort the elements, or take them from a BTreeMap instead of a HashMap, before you write them.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// The same, where the list is a text.
#[test]
fn the_order_of_a_map_in_a_text() {
    let content = |n: u64| {
        let text = if n.is_multiple_of(2) {
            r#"{"a":1,"b":2}"#
        } else {
            r#"{"b":2,"a":1}"#
        };
        json!({ "metadata": { "annotations": { "example.com/config": text } } })
    };
    check(
        &alone(30, &site(), Form::Merge, content, content),
        expect![[r#"
            reconcile loop: 14 runs in 330ms, and no end
            Site default/blog: same set in another order each time
              .metadata.annotations["example.com/config"]: "{\"b\":2,\"a\":1}" -> "{\"a\":1,\"b\":2}", sent by site-operator
              What to do: sort the elements, or take them from a BTreeMap instead of a HashMap, before you write them.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// A Secret's values are in no report (H17: a password that is made in each run).
#[test]
fn a_new_password() {
    let secret = Object::new("Secret", Some("default"), "blog");
    let state = |n: u64| json!({ "data": { "password": format!("aHVudGVy{n}") } });
    let sent = |n: u64| json!({ "stringData": { "password": format!("hunter{n}") } });
    let world = alone(30, &secret, Form::Whole, state, sent);
    let debug = format!("{:?}", world.reports);
    assert!(
        !debug.contains("aHVudGVy") && !debug.contains("hunter"),
        "{debug}"
    );
    check(
        &world,
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Secret default/blog: nondeterministic value: it is another one in each run
              .data.password: (not shown), sent by site-operator
              What to do: derive the value from what is observed, or write it only when something else has changed.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// F3: an autoscaler sets the number of replicas, and the operator sets its own.
fn fight_over_replicas() -> World {
    let fields = || json!({ "f:spec": { "f:replicas": {} } });
    let ours = object(
        &json!({ "spec": { "replicas": 3 } }),
        &[("site-operator", fields())],
    );
    let theirs = object(
        &json!({ "spec": { "replicas": 5 } }),
        &[("site-operator", json!({})), ("autoscaler", fields())],
    );
    let mut world = World::new(Config::default());
    for _ in 0..30 {
        world.write(
            deployment(),
            Form::Merge,
            json!({ "spec": { "replicas": 3 } }),
            Some(&theirs),
            Some(&ours),
        );
        world.run(&[Cause::Foreign(Some(deployment()))]);
        world.run(&[Cause::Own]);
    }
    world
}

#[test]
fn a_fight_over_replicas() {
    check(
        &fight_over_replicas(),
        expect![[r#"
            reconcile loop: 14 runs in 655ms, and no end
            Deployment default/blog: fight with autoscaler: each undoes what the other writes
              .spec.replicas: 5 -> 3, written by autoscaler (Update) and site-operator (Update)
              What to do: let one of the two own the field: apply only the fields that are yours, and leave out those that others set.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// Two controllers overwrite each other's annotation, each with the time.
#[test]
fn a_fight_over_an_annotation() {
    let fields = || json!({ "f:metadata": { "f:annotations": { "f:example.com/owner": {} } } });
    let content = |who: &str, n: u64| json!({ "metadata": { "annotations": { "example.com/owner": format!("{who} since 2026-01-01T00:00:{n:02}Z") } } });
    let mut world = World::new(Config::default());
    for n in 0..30 {
        let ours = object(&content("site", n + 1), &[("site-operator", fields())]);
        let theirs = object(&content("other", n), &[("other-operator", fields())]);
        world.write(
            site(),
            Form::Merge,
            content("site", n + 1),
            Some(&theirs),
            Some(&ours),
        );
        // An annotation is desired state.
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 14 runs in 655ms, and no end
            Site default/blog: fight with other-operator: each undoes what the other writes
              .metadata.annotations["example.com/owner"]: "other since 2026-01-01T00:00:13Z" -> "site since 2026-01-01T00:00:14Z", written by other-operator (Update) and site-operator (Update)
              What to do: let one of the two own the field: apply only the fields that are yours, and leave out those that others set.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// F6: somebody resets a field that the operator fills in its own object, so that each has a new
/// generation.
#[test]
fn a_fight_over_the_own_spec() {
    let state = |colour: &str, generation: u64| json!({ "metadata": { "generation": generation }, "spec": { "colour": colour } });
    let mut world = World::new(Config::default());
    for n in 0..30 {
        let (theirs, ours) = (state("", 2 * n), state("red", 2 * n + 1));
        world.write(
            site(),
            Form::Merge,
            json!({ "spec": { "colour": "red" } }),
            Some(&theirs),
            Some(&ours),
        );
        world.run(&[Cause::Desired]);
        world.run(&[Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 14 runs in 655ms, and no end
            Site default/blog: fight with somebody whom the server does not name: each undoes what the other writes
              .spec.colour: "" -> "red", sent by site-operator
              What to do: let one of the two own the field: apply only the fields that are yours, and leave out those that others set.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// F2, H13: the operator replaces the whole template, and somebody injects a container.
#[test]
fn a_fight_over_a_container() {
    let app = json!({ "name": "app" });
    let ours = json!({ "spec": { "containers": [app] } });
    let theirs = object(
        &json!({ "spec": { "containers": [app, { "name": "proxy" }] } }),
        &[(
            "injector",
            json!({ "f:spec": { "f:containers": { "k:{\"name\":\"proxy\"}": { ".": {}, "f:name": {} } } } }),
        )],
    );
    let mut world = World::new(Config::default());
    for _ in 0..30 {
        world.write(
            deployment(),
            Form::Whole,
            ours.clone(),
            Some(&theirs),
            Some(&ours),
        );
        world.run(&[Cause::Foreign(Some(deployment())), Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 14 runs in 330ms, and no end
            Deployment default/blog: fight with injector: each undoes what the other writes
              .spec.containers[name=proxy]: {"name":"proxy"} -> nothing, written by injector (Update), sent by site-operator
              What to do: let one of the two own the field: apply only the fields that are yours, and leave out those that others set.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// An annotation that somebody else puts there is removed each time, and nothing else is done. What follows from a
/// new generation or is put back as well is nothing to show for it.
#[test]
fn a_fight_over_what_is_added() {
    for also in [false, true] {
        let state = |theirs: bool, generation: u64| {
            let mut object =
                json!({ "metadata": { "generation": generation, "labels": { "side": "ours" } } });
            if theirs {
                object["metadata"]["labels"]["side"] = json!("theirs");
                object["metadata"]["annotations"]["policy"] = json!("strict");
            }
            if also {
                object["spec"]["colour"] = json!(if theirs { "blue" } else { "red" });
                object["status"]["observed"] = json!(generation);
            }
            object
        };
        let mut world = World::new(Config::default());
        for n in 1..30 {
            let [theirs, ours] = if also { [2 * n - 1, 2 * n] } else { [1, 1] };
            let (before, after) = (state(true, theirs), state(false, ours));
            world.write(
                site(),
                Form::Whole,
                after.clone(),
                Some(&before),
                Some(&after),
            );
            world.run(&[Cause::Desired]);
            world.run(&[Cause::Own]);
        }
        let [report] = &*world.reports else {
            panic!("{}", world.report());
        };
        let changes = report.findings[0].changes.iter();
        let paths: Vec<String> = changes.map(|change| change.path.to_string()).collect();
        assert!(
            matches!(report.verdict(), Verdict::Fight { .. }),
            "{report}"
        );
        // A new generation may be what is answered in the metadata.
        let expected: &[&str] = if also {
            &[".spec.colour"]
        } else {
            &[".metadata.annotations.policy", ".metadata.labels.side"]
        };
        assert_eq!(paths, expected);
    }
}

/// F4: two controllers go by the same name.
#[test]
fn a_fight_with_oneself() {
    let fields = || json!({ "f:data": { "f:owner": {} } });
    let shared = Object::new("ConfigMap", Some("default"), "shared");
    let [ours, theirs] = ["blog", "shop"].map(|name| {
        object(
            &json!({ "data": { "owner": name } }),
            &[("site-operator", fields())],
        )
    });
    let mut world = World::new(Config::default());
    for _ in 0..30 {
        world.write(
            shared.clone(),
            Form::Whole,
            ours.clone(),
            Some(&theirs),
            Some(&ours),
        );
        world.run(&[Cause::Foreign(Some(shared.clone()))]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 14 runs in 330ms, and no end
            ConfigMap default/shared: fight with site-operator, by its own name: each undoes what the other writes
              .data.owner: "shop" -> "blog", written by site-operator (Update)
              What to do: let one object, or one controller, own the field, and give each controller a field manager of its own.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// The same from the side of the one who takes away what the other sets: nobody owns what is not there.
#[test]
fn a_fight_with_oneself_about_what_is_not_there() {
    let shared = Object::new("ConfigMap", Some("default"), "shared");
    let managers = |fields: Value| {
        [
            ("kubectl-create", json!({ "f:data": { "f:base": {} } })),
            ("site-operator", fields),
        ]
    };
    let with = object(
        &json!({ "data": { "base": "1", "owner": "blog" } }),
        &managers(json!({ "f:data": { "f:owner": {} } })),
    );
    let without = object(
        &json!({ "data": { "base": "1" } }),
        &managers(json!({ "f:data": {} })),
    );
    for (ours, theirs) in [(&with, &without), (&without, &with)] {
        let mut world = World::new(Config::default());
        for _ in 0..30 {
            world.write(
                shared.clone(),
                Form::Whole,
                ours.clone(),
                Some(theirs),
                Some(ours),
            );
            world.run(&[Cause::Foreign(Some(shared.clone()))]);
        }
        let report = world.report();
        assert!(
            report.contains("fight with site-operator, by its own name"),
            "{report}"
        );
        assert!(report.contains(".data.owner: "), "{report}");
    }
}

/// One value in one run and another in the next: two rules of one reconciler disagree.
#[test]
fn values_that_take_turns() {
    let child = Object::new("ConfigMap", Some("default"), "blog");
    let state = |size: &str, second: u64| json!({ "status": { "size": size, "since": format!("2026-01-01T00:00:{second:02}Z") } });
    let mut world = World::new(Config::default());
    for n in 0..30 {
        let size = |n: u64| {
            if n.is_multiple_of(2) {
                "small"
            } else {
                "large"
            }
        };
        let (before, after) = (state(size(n), n), state(size(n + 1), n + 1));
        world.write(
            site(),
            Form::Merge,
            after.clone(),
            Some(&before),
            Some(&after),
        );
        if n.is_multiple_of(2) {
            world.run(&[Cause::Own]);
        } else {
            world.write(
                child.clone(),
                Form::Merge,
                json!({}),
                Some(&json!({})),
                Some(&json!({})),
            );
            world.run(&[Cause::Own, Cause::Timer]);
        }
    }
    assert_eq!(world.report(), "", "timers are no loop");

    let mut world = World::new(Config::default());
    for n in 0..30 {
        let size = |n: u64| {
            if n.is_multiple_of(2) {
                "small"
            } else {
                "large"
            }
        };
        let (before, after) = (state(size(n), n), state(size(n + 1), n + 1));
        world.write(
            site(),
            Form::Merge,
            after.clone(),
            Some(&before),
            Some(&after),
        );
        if n.is_multiple_of(2) {
            world.run(&[Cause::Own]);
        } else {
            world.run(&[Cause::Own, Cause::Foreign(Some(site()))]);
        }
    }
    check(
        &world,
        expect![[r#"
        reconcile loop: 24 runs in 580ms, and no end
        Site default/blog: flip-flop across runs: each run puts back what the one before has changed
          .status.size: "small" (after a change of Site default/blog and its own write), then "large" (after its own write), sent by site-operator
          What to do: derive the value from the observed state alone, the same whatever has caused the run; where two sources disagree, decide which of them counts.
        Until this ends, the object is reconciled less and less often."#]],
    );
}

/// A Secret's values are not shown when they take turns either; and three are as many as can.
#[test]
fn secrets_that_take_turns() {
    let secret = Object::new("Secret", Some("default"), "blog");
    for values in [2, 3] {
        let state = |n: u64| json!({ "data": { "password": format!("aHVudGVy{}", n % values) } });
        let world = alone(30, &secret, Form::Whole, state, state);
        let debug = format!("{:?}{}", world.reports, world.report());
        assert!(!debug.contains("aHVudGVy"), "{debug}");
        assert!(debug.contains("flip-flop across runs"), "{debug}");
        assert!(
            debug.contains("(not shown) (after its own write)"),
            "{debug}"
        );
    }
    let state = |n: u64| json!({ "data": { "password": format!("{}", n % 4) } });
    let world = alone(30, &secret, Form::Whole, state, state);
    assert!(
        world.report().contains("nondeterministic value"),
        "{}",
        world.report()
    );
}

/// A needless request at each poll is told after a time, however long the pauses are, and nothing is slowed down.
fn polled(pause: Duration, object_: &Object, sent: &Value, live: &Value, runs: u32) -> World {
    let mut world = World::new(Config::default());
    for _ in 0..runs {
        world.rest(pause);
        world.write(
            object_.clone(),
            Form::Whole,
            sent.clone(),
            Some(live),
            Some(live),
        );
        let answer = world.run(&[Cause::Timer]);
        assert_eq!(answer.delay, None);
    }
    world
}

#[test]
fn a_needless_write_per_poll() {
    let live = json!({
        "metadata": { "annotations": { "deployment.kubernetes.io/revision": "4", "team": "x" } },
        "spec": { "replicas": 1 },
    });
    let mut sent = live.clone();
    for seconds in [10, 300, 36_000] {
        let pause = Duration::from_secs(seconds);
        assert_eq!(polled(pause, &deployment(), &sent, &live, 19).report(), "");
        let world = polled(pause, &deployment(), &sent, &live, 500);
        assert_eq!(world.reports.len(), 1);
        assert_eq!(*world.reports[0].verdict(), Verdict::Unchanged);
    }
    // A whole object that lacks what others keep there: that place is what it tries to change.
    sent["metadata"]["annotations"] = json!({ "team": "x" });
    check(
        &polled(Duration::from_secs(300), &deployment(), &sent, &live, 100),
        expect![[r#"
            needless writes: 20 runs in 5700.48s changed nothing
            Deployment default/blog: reverted by the server: it does not keep what is sent
              .metadata.annotations["deployment.kubernetes.io/revision"]: nothing -> "4", sent by site-operator
              What to do: compare only the fields that you set, as the server stores them, and do not send what its schema does not have."#]],
    );
}

/// What changes something now and then is no write in vain, and events that come at once are a roll-out.
#[test]
fn polls_that_are_not_needless() {
    let live = json!({ "spec": { "replicas": 1 } });
    let other = json!({ "spec": { "replicas": 2 } });
    let mut world = World::new(Config::default());
    for n in 0..500 {
        world.rest(Duration::from_secs(300));
        let after = if n % 15 == 0 { &other } else { &live };
        world.write(
            deployment(),
            Form::Merge,
            live.clone(),
            Some(&live),
            Some(after),
        );
        world.run(&[Cause::Timer]);
    }
    for _ in 0..40 {
        world.write(
            deployment(),
            Form::Merge,
            live.clone(),
            Some(&live),
            Some(&live),
        );
        world.run(&[Cause::Foreign(Some(deployment()))]);
    }
    assert_eq!(world.report(), "");
}

/// The objects of one kind have one fault, which is told once.
#[test]
fn one_fault_of_many_keys() {
    let live = json!({ "spec": { "replicas": 1 } });
    let mut detector = crate::loops::Detector::new(Config::default());
    let mut reports = 0;
    for run in 0..40_u64 {
        for key in 0..100 {
            let object = Object::new("Deployment", Some("default"), &format!("web-{key}"));
            let sight = detector.observes(&key).then(|| crate::loops::Sight {
                form: Form::Merge,
                sent: live.clone(),
                before: Some(live.clone()),
                after: Some(live.clone()),
            });
            let started = crate::time::Time::ORIGIN + Duration::from_secs(run * 60);
            let write = crate::loops::Write {
                object: object.clone(),
                manager: None,
                changed: Some(false),
                sight: sight.map(Box::new),
            };
            let run = crate::loops::Run {
                object,
                started,
                causes: vec![Cause::Timer],
                failed: false,
                after: None,
                writes: vec![write],
            };
            reports += u32::from(detector.finished(started, &key, &run).report.is_some());
        }
    }
    assert_eq!(reports, 1);
}

/// A run says that it begins, and then that it is done.
#[test]
fn a_flip_flop() {
    let state = |phase: &str| json!({ "status": { "phase": phase } });
    let mut world = World::new(Config::default());
    for _ in 0..30 {
        let (ready, working) = (state("Ready"), state("Working"));
        world.write(
            site(),
            Form::Merge,
            working.clone(),
            Some(&ready),
            Some(&working),
        );
        world.write(
            site(),
            Form::Merge,
            ready.clone(),
            Some(&working),
            Some(&ready),
        );
        world.run(&[Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Site default/blog: flip-flop within a run: it changes something and changes it back
              .status.phase: "Ready" -> "Working", sent by site-operator
              What to do: collect all that a run wants of an object, and write it once at the end.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// H19: the object is deleted and created again in each run.
#[test]
fn delete_and_create() {
    let content = json!({ "spec": { "replicas": 1 } });
    let live = json!({ "spec": { "replicas": 1 }, "status": { "replicas": 1 } });
    let mut world = World::new(Config::default());
    for _ in 0..30 {
        world.write(deployment(), Form::Other, Value::Null, Some(&live), None);
        world.write(
            deployment(),
            Form::Whole,
            content.clone(),
            None,
            Some(&live),
        );
        world.run(&[Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Deployment default/blog: flip-flop within a run: it changes something and changes it back
              the whole object, sent by site-operator
              What to do: collect all that a run wants of an object, and write it once at the end.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// A child with another name in each run.
#[test]
fn a_child_for_each_run() {
    let mut world = World::new(Config::default());
    for n in 0..30 {
        let child = Object::new("Job", Some("default"), &format!("blog-{n:05}"));
        world.write(child, Form::Whole, json!({}), None, Some(&json!({})));
        world.run(&[Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Job default/blog-00023: nondeterministic value: it is another one in each run
              .metadata.name: "blog-00022" -> "blog-00023", sent by site-operator
              What to do: derive the value from what is observed, or write it only when something else has changed.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// H26: what the server allocates is cleared in each run.
#[test]
fn cleared_and_allocated_again() {
    let service = Object::new("Service", Some("default"), "blog");
    let fields = || json!({ "f:spec": { "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } } } });
    let content = |n: u64| json!({ "spec": { "ports": [{ "port": 80, "protocol": "TCP", "nodePort": 30000 + n * 7 % 31 }] } });
    let state = |n: u64| object(&content(n), &[("site-operator", fields())]);
    let sent = |_| json!({ "spec": { "ports": [{ "port": 80 }] } });
    check(
        &alone(30, &service, Form::Whole, state, sent),
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Service default/blog: reverted by the server: it does not keep what is sent
              .spec.ports[port=80,protocol=TCP].nodePort: 30006 -> 30013, sent by site-operator
              What to do: compare only the fields that you set, as the server stores them, and do not send what its schema does not have.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// H11, and the canonical form of quantities: what is desired is never what is stored, so each event
/// leads to a write that changes nothing.
#[test]
fn never_as_it_was_sent() {
    let live = json!({ "spec": { "cpu": "1", "replicas": 1 } });
    let sent = json!({ "spec": { "cpu": "1000m", "replicas": null, "colour": "red" } });
    let mut world = World::new(Config::default());
    for _ in 0..100 {
        world.write(
            deployment(),
            Form::Merge,
            sent.clone(),
            Some(&live),
            Some(&live),
        );
        world.run(&[Cause::Foreign(Some(Object::new(
            "Pod",
            Some("default"),
            "blog-1",
        )))]);
    }
    check(
        &world,
        expect![[r#"
            needless writes: 54 runs in 1.33s changed nothing
            Deployment default/blog: reverted by the server: it does not keep what is sent
              .spec.colour: "red" -> nothing, sent by site-operator
              .spec.cpu: "1000m" -> "1", sent by site-operator
              .spec.replicas: nothing -> 1, sent by site-operator
              What to do: compare only the fields that you set, as the server stores them, and do not send what its schema does not have."#]],
    );
}

/// The same, by one who sends the whole object: a default that is left out is put back.
#[test]
fn a_default_that_is_left_out() {
    let fields = || json!({ "f:spec": { "f:replicas": {}, "f:colour": {} } });
    let live = object(
        &json!({ "spec": { "replicas": 1, "colour": "red" } }),
        &[("site-operator", fields())],
    );
    let mut world = World::new(Config::default());
    for _ in 0..100 {
        world.write(
            deployment(),
            Form::Whole,
            json!({ "spec": { "colour": "red" } }),
            Some(&live),
            Some(&live),
        );
        world.run(&[Cause::Foreign(None)]);
    }
    check(
        &world,
        expect![[r#"
            needless writes: 54 runs in 1.33s changed nothing
            Deployment default/blog: reverted by the server: it does not keep what is sent
              .spec.replicas: nothing -> 1, written by site-operator (Update)
              What to do: compare only the fields that you set, as the server stores them, and do not send what its schema does not have."#]],
    );
}

/// H27: nothing is compared before it is sent.
#[test]
fn an_unchanged_write() {
    let live = json!({ "spec": { "replicas": 1 } });
    let mut world = World::new(Config::default());
    for _ in 0..100 {
        world.write(
            deployment(),
            Form::Merge,
            live.clone(),
            Some(&live),
            Some(&live),
        );
        let answer = world.run(&[Cause::Foreign(None)]);
        assert_eq!(answer.delay, None, "others cause the runs");
    }
    check(
        &world,
        expect![[r#"
            needless writes: 54 runs in 1.33s changed nothing
            Deployment default/blog: unchanged write: it is sent, and nothing is new
              .spec.replicas, sent by site-operator
              What to do: compare with the live object first, and send nothing if it is as wanted."#]],
    );
}

/// A1: an empty list that is there or not makes a new version, and nothing else.
#[test]
fn a_new_version_of_the_same() {
    let state = |n: u64| json!({ "metadata": { "resourceVersion": n.to_string() }, "spec": {} });
    let sent = |_| json!({ "spec": {} });
    check(
        &alone(30, &site(), Form::Merge, state, sent),
        expect![[r#"
            reconcile loop: 24 runs in 580ms, and no end
            Site default/blog: unchanged write: it is sent, and nothing is new
              .spec, sent by site-operator
              What to do: compare with the live object first, and send nothing if it is as wanted.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// A number that only grows is given more time, since it may be progress.
#[test]
fn a_counter() {
    let content = |n: u64| json!({ "status": { "runs": n } });
    assert_eq!(
        alone(150, &site(), Form::Merge, content, content).report(),
        ""
    );
    check(
        &alone(300, &site(), Form::Merge, content, content),
        expect![[r#"
            reconcile loop: 220 runs in 5.48s, and no end
            Site default/blog: nondeterministic value: it is another one in each run
              .status.runs: 219 -> 220, sent by site-operator
              What to do: derive the value from what is observed, or write it only when something else has changed.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// Without sights it is still known that something is wrong, and slowed down.
#[test]
fn a_driver_that_shows_nothing() {
    let mut world = World::new(Config::default());
    for n in 0..120 {
        world.write(site(), Form::Merge, json!({}), None, Some(&json!(n)));
        for write in &mut world.writes {
            write.sight = None;
        }
        world.run(&[Cause::Own]);
    }
    check(
        &world,
        expect![[r#"
            reconcile loop: 108 runs in 2.68s, and no end
            Site default/blog: endless writes: each run has something to write, and nothing is the same in all
              What to do: find out why a run that only its own writes have caused has something to write.
            Until this ends, the object is reconciled less and less often."#]],
    );
}

/// What the guide shows is what is reported.
#[test]
fn the_guide() {
    let guide = include_str!("../../../../../docs/guide/loops.md");
    for world in [
        time_in_the_status(),
        order_of_a_map(),
        fight_over_replicas(),
    ] {
        let report = world.report();
        assert!(guide.contains(&report), "{report}");
    }
    let Config {
        runs,
        again,
        unchanged,
        progress,
        sights,
        ..
    } = Config::default();
    for default in [runs, again, unchanged, progress, sights] {
        assert!(guide.contains(&format!("| {default} |")), "{default}");
    }
}
