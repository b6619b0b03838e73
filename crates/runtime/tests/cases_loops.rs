//! Reconcilers that do not converge, and their correct twins: section B, T40.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use homeostat::{
    Action, Config,
    controller::{Explanation, Handle},
    loops::{Incident, Verdict},
    reflector::ObjectRef,
};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use world::{Failure, SECOND, Widget, World, idle, running::Running};

/// What a run wants to write, by what it sees and how often its object ran before.
type Wish = fn(&Widget, usize) -> Option<Value>;

/// How often somebody changes the object of a correct reconciler. With those of the reconciler itself it
/// is twice as many events.
const CHANGES: u32 = 2_000;

/// Runs a controller that applies what `wish` says as a merge patch, to the status if that is named.
fn run(world: &World, config: Config, wish: Wish) -> (Running, Handle<Widget>) {
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let controller = world.controller().with_config(config);
    let handle = controller.handle();
    let running = world.run(controller, move |widget, nth| {
        let widgets = widgets.clone();
        async move {
            // As long as a request to a real server takes.
            tokio::time::sleep(Duration::from_millis(10)).await;
            if let Some(wish) = wish(&widget, nth) {
                write(&widgets, &widget.name_any(), "loops-test", wish).await;
            }
            idle()
        }
    });
    (running, handle)
}

async fn write(widgets: &Api<Widget>, name: &str, manager: &str, patch: Value) {
    let params = PatchParams {
        field_manager: Some(manager.into()),
        ..PatchParams::default()
    };
    let of_status = patch.get("status").is_some();
    let patch = Patch::Merge(patch);
    if of_status {
        widgets.patch_status(name, &params, &patch).await.unwrap();
    } else {
        widgets.patch(name, &params, &patch).await.unwrap();
    }
}

fn explained(handle: &Handle<Widget>) -> Explanation {
    handle.explain(&ObjectRef::new("a").within("default"))
}

fn incident(handle: &Handle<Widget>) -> Arc<Incident> {
    let told = explained(handle).incident;
    told.expect("a loop was found")
}

/// The places that a report names, each with those who write it.
fn places(incident: &Incident) -> Vec<String> {
    let changes = incident.findings[0].changes.iter();
    changes
        .map(|change| {
            let managers: Vec<_> = change.managers.iter().map(|by| by.name.as_str()).collect();
            format!("{} by {}", change.path, managers.join(" and "))
        })
        .collect()
}

/// T40, row 22: a status that is another one in each run, found, blamed and slowed down.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_always_new() {
    let world = World::new(&["a"]).await;
    let (running, handle) = run(&world, Config::default(), |_, nth| {
        // Like a hash of the time: it neither grows nor shrinks.
        let value = u32::try_from(nth).unwrap().wrapping_mul(2_654_435_761) >> 1;
        Some(json!({ "status": { "seen": value } }))
    });
    world.until(10.0).await;
    let incident = incident(&handle);
    assert_eq!(*incident.verdict(), Verdict::NotDeterministic, "{incident}");
    assert_eq!(places(&incident), [".status.seen by loops-test"]);
    assert_eq!(handle.counts().loops, 1);
    // Without damping it were hundreds of runs each second.
    let runs = running.runs().len();
    assert!(runs < 60, "{runs}");
    world.until(300.0).await;
    assert!(running.runs().len() < runs + 12, "{}", running.runs().len());
    assert!(explained(&handle).next.damped_for.is_some());

    // Somebody else's change is answered at once.
    world.set_value("a", 1).await;
    world.until(300.5).await;
    assert_eq!(running.first_since(300.0).unwrap().value, 1);

    // The object tells of it.
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let [event] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(event.reason.as_deref(), Some("ReconcileLoop"));
    assert!(
        event.note.as_ref().unwrap().contains(".status.seen"),
        "{event:?}"
    );
}

/// Its twin writes the status when something has changed.
#[tokio::test(start_paused = true)]
async fn a_value_that_follows_what_is_observed() {
    check_twin(|widget, _| {
        let seen = widget.status.as_ref().map(|status| status.seen);
        (seen != Some(widget.spec.value))
            .then(|| json!({ "status": { "seen": widget.spec.value } }))
    })
    .await;
}

/// A reconciler with these wishes takes thousands of changes without a report.
async fn check_twin(wish: Wish) {
    let world = World::new(&["a"]).await;
    let (running, handle) = run(&world, Config::default(), wish);
    for value in 1..=CHANGES {
        // Each of these is an event, and so is each status that is written for it.
        world.set_value("a", value).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(10 * SECOND).await;
    assert!(
        explained(&handle).incident.is_none(),
        "{}",
        explained(&handle)
    );
    let runs = running.runs().len();
    assert!(runs >= CHANGES as usize, "{runs}");
    tokio::time::sleep(100 * SECOND).await;
    assert_eq!(running.runs().len(), runs, "it is quiet");
}

/// Row 27: two controllers that overwrite each other's annotation.
#[tokio::test(start_paused = true)]
async fn a_fight() {
    let world = World::new(&["a"]).await;
    let (running, handle) = run(&world, Config::default(), |widget, _| {
        let ours = widget
            .annotations()
            .get("owner")
            .is_some_and(|owner| owner == "us");
        (!ours).then(|| json!({ "metadata": { "annotations": { "owner": "us" } } }))
    });
    // The other one looks ten times a second.
    let others = world.widgets.clone();
    let other = tokio::spawn(async move {
        loop {
            let widget = others.get("a").await.unwrap();
            if widget
                .annotations()
                .get("owner")
                .is_none_or(|owner| owner != "them")
            {
                let patch = json!({ "metadata": { "annotations": { "owner": "them" } } });
                write(&others, "a", "other-operator", patch).await;
            }
            tokio::time::sleep(SECOND / 10).await;
        }
    });
    world.until(20.0).await;
    other.abort();
    let incident = incident(&handle);
    let Verdict::Fight { with, own_name } = incident.verdict() else {
        panic!("{incident}")
    };
    assert_eq!(
        (with.as_deref(), own_name),
        (Some("other-operator"), &false)
    );
    assert!(
        places(&incident)[0].starts_with(".metadata.annotations.owner"),
        "{incident}"
    );
    assert!(running.runs().len() < 100, "{}", running.runs().len());
}

/// Its twin has an annotation of its own.
#[tokio::test(start_paused = true)]
async fn an_annotation_of_its_own() {
    check_twin(|widget, _| {
        let value = widget.spec.value.to_string();
        let ours = widget.annotations().get("us") == Some(&value);
        (!ours).then(|| json!({ "metadata": { "annotations": { "us": value } } }))
    })
    .await;
}

/// Row 23: the same elements in another order each time.
#[tokio::test(start_paused = true)]
async fn another_order() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run(&world, Config::default(), |_, nth| {
        let orders = ["x,y,z", "z,x,y", "y,z,x", "z,y,x"];
        let order = orders[nth % 4];
        Some(json!({ "metadata": { "annotations": { "hosts": order } } }))
    });
    world.until(10.0).await;
    let incident = incident(&handle);
    assert_eq!(*incident.verdict(), Verdict::Order, "{incident}");
    assert!(
        places(&incident)[0].starts_with(".metadata.annotations.hosts"),
        "{incident}"
    );
}

/// A run that changes something and changes it back.
#[tokio::test(start_paused = true)]
async fn a_flip_flop() {
    let world = World::new(&["a"]).await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let controller = world.controller();
    let handle = controller.handle();
    let _running = world.run(controller, move |_, _| {
        let widgets = widgets.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            for phase in ["progressing", "ready"] {
                let patch = json!({ "metadata": { "annotations": { "phase": phase } } });
                write(&widgets, "a", "loops-test", patch).await;
            }
            idle()
        }
    });
    world.until(10.0).await;
    let incident = incident(&handle);
    assert_eq!(*incident.verdict(), Verdict::FlipFlop, "{incident}");
    assert!(
        places(&incident)[0].starts_with(".metadata.annotations.phase"),
        "{incident}"
    );
}

/// Row 21: an unconditional write that changes nothing, at each event.
#[tokio::test(start_paused = true)]
async fn writes_that_change_nothing() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run(&world, Config::default(), |_, _| {
        Some(json!({ "metadata": { "annotations": { "us": "here" } } }))
    });
    for seen in 1..200 {
        world.set_seen("a", seen).await;
        tokio::time::sleep(SECOND / 10).await;
    }
    assert_eq!(*incident(&handle).verdict(), Verdict::Unchanged);
}

/// Row 26: the server does not keep what is sent. The schema does not have the field, and each run
/// finds it missing.
#[tokio::test(start_paused = true)]
async fn what_the_server_drops() {
    let world = World::new(&["a"]).await;
    let (_running, handle) = run(&world, Config::default(), |_, nth| {
        // It writes something new each time, so that the object has a new version.
        Some(
            json!({ "spec": { "vlaue": 1 }, "metadata": { "labels": { "round": (nth % 2).to_string() } } }),
        )
    });
    world.until(10.0).await;
    let incident = incident(&handle);
    let found: Vec<_> = incident
        .findings
        .iter()
        .map(|finding| finding.verdict.name())
        .collect();
    assert!(incident.to_string().contains("round"), "{incident}");
    assert!(!found.is_empty());
}

/// What is not looked for is not found.
#[tokio::test(start_paused = true)]
async fn detection_can_be_switched_off() {
    let world = World::new(&["a"]).await;
    let (running, handle) = run(&world, Config::default().loops(None), |_, nth| {
        Some(json!({ "status": { "seen": nth % 2 } }))
    });
    world.until(10.0).await;
    assert!(explained(&handle).incident.is_none());
    assert!(
        running.runs().len() > 500,
        "nothing slows it down: {}",
        running.runs().len()
    );
}

/// Progress that ends, periodic looks and retries are no loops.
#[tokio::test(start_paused = true)]
async fn what_ends_by_itself_is_no_loop() {
    let world = World::new(&["a", "b", "c"]).await;
    let widgets: Api<Widget> = Api::default_namespaced(world.wire.tracked());
    let maps: Api<ConfigMap> = Api::default_namespaced(world.wire.tracked());
    let controller = world.controller();
    let handle = controller.handle();
    let _running = world.run(controller, move |widget, nth| {
        let (widgets, maps) = (widgets.clone(), maps.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let name = widget.name_any();
            match name.as_str() {
                // Step by step, as many as there are replicas.
                "a" if nth <= 100 => {
                    let patch = json!({ "status": { "seen": nth } });
                    write(&widgets, &name, "loops-test", patch).await;
                    idle()
                }
                // A look at the world outside each second.
                "b" => {
                    let map = json!({ "metadata": { "name": "outside" }, "data": { "at": nth.to_string() },
                        "apiVersion": "v1", "kind": "ConfigMap" });
                    let params = PatchParams::apply("loops-test").force();
                    maps.patch("outside", &params, &Patch::Apply(map)).await.unwrap();
                    Ok(Action::requeue(SECOND))
                }
                "c" => {
                    let patch = json!({ "status": { "seen": nth } });
                    write(&widgets, &name, "loops-test", patch).await;
                    Err(Failure("not yet"))
                }
                _ => idle(),
            }
        }
    });
    world.until(600.0).await;
    for name in ["a", "b", "c"] {
        let told = handle.explain(&ObjectRef::new(name).within("default"));
        assert!(told.incident.is_none(), "{name}: {told}");
    }
}
