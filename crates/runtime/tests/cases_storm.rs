//! T64: a whole controller under every fault at random, from one seed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod world;

use self::world::{
    MINUTE, SECOND, Widget, World, even_backoff,
    running::Running,
    wire::{Cut, Noise},
};
use homeostat::{Action, client::Tracked};
use homeostat_apiserver::{Fault, FaultGuard, Rule, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const KINDS: [&str; 2] = ["configmaps", "widgets"];

/// Keeps a config map with the value of each widget, and tells in the status what it has seen.
async fn converge(widget: Arc<Widget>, client: Client) -> Result<Action, kube::Error> {
    if widget.meta().deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let name = widget.name_any();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let data = json!({ "value": widget.spec.value.to_string() });
    match maps.get_opt(&name).await? {
        // What is made for an object that is gone would be removed at once, and made again. That it
        // is gone may be one of the faults, so it is looked at again.
        None if !is_alive(&widget, &widgets).await? => return Ok(Action::requeue(5 * SECOND)),
        None => {
            let map: ConfigMap = serde_json::from_value(json!({ "data": data })).unwrap();
            let map = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    owner_references: widget.owner_ref(&()).map(|owner| vec![owner]),
                    ..ObjectMeta::default()
                },
                ..map
            };
            maps.create(&PostParams::default(), &map).await?;
        }
        // That of an object of the same name, which the garbage collector is about to remove.
        Some(map) if !is_owned(&map, &widget) => return Ok(Action::requeue(5 * SECOND)),
        Some(map) if json!(map.data) != data => {
            let patch = Patch::Merge(json!({ "data": data }));
            maps.patch(&name, &PatchParams::default(), &patch).await?;
        }
        Some(_) => {}
    }
    let seen = widget.status.as_ref().map(|status| status.seen);
    if seen != Some(widget.spec.value) {
        let patch = Patch::Merge(json!({ "status": { "seen": widget.spec.value } }));
        widgets
            .patch_status(&name, &PatchParams::default(), &patch)
            .await?;
    }
    Ok(Action::await_change())
}

/// Whether an object of the cache is still there.
async fn is_alive(widget: &Widget, widgets: &Api<Widget>) -> Result<bool, kube::Error> {
    let live = widgets.get_opt(&widget.name_any()).await?;
    Ok(live.is_some_and(|live| live.uid() == widget.uid()))
}

fn is_owned(map: &ConfigMap, widget: &Widget) -> bool {
    let mut owners = map.owner_references().iter();
    owners.any(|owner| Some(&owner.uid) == widget.meta().uid.as_ref())
}

/// The world, and what decides what happens in it.
struct Storm {
    world: World,
    random: Arc<Mutex<fastrand::Rng>>,
    /// Faults in force, and until when.
    faults: Vec<(Instant, FaultGuard)>,
    /// How many requests met one that is over.
    hits: u32,
    value: u32,
}

// === impl Storm ===

impl Storm {
    async fn new(seed: u64) -> Self {
        let world = World::new(&NAMES).await;
        // The delays come from the seed, too.
        fastrand::seed(seed);
        Self {
            world,
            random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))),
            faults: Vec::new(),
            hits: 0,
            value: 0,
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.lock().unwrap().usize(0..bound)
    }

    fn pick<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Something happens.
    async fn step(&mut self) {
        let over = Instant::now();
        for (_, guard) in self.faults.extract_if(.., |(until, _)| *until <= over) {
            self.hits += guard.hits();
        }
        match self.below(16) {
            0..6 => self.somebody_acts().await,
            6..12 => self.something_fails(),
            12 => self.cut_watches(),
            13 => self.world.server.compact(),
            14 => self.world.wire.silence(self.pick(&KINDS)),
            _ => {
                self.cut_watches();
                self.somebody_acts().await;
                self.world.server.compact();
            }
        }
    }

    /// The connections of all watches end.
    fn cut_watches(&self) {
        let how = self.pick(&[Cut::Cleanly, Cut::Midway, Cut::Broken]);
        self.world.wire.cut_watches(how);
    }

    /// Somebody creates, changes or deletes something.
    async fn somebody_acts(&mut self) {
        let world = &self.world;
        let name = self.pick(&NAMES);
        let (widgets, maps) = (&world.widgets, &world.maps);
        self.value += 1;
        let exists = widgets.get_opt(name).await.unwrap().is_some();
        match self.below(8) {
            _ if !exists => {
                world.create(name).await;
            }
            0..4 => world.set_value(name, self.value).await,
            4 => world.delete(name).await,
            5 => {
                world.delete(name).await;
                world.create(name).await;
            }
            action => {
                let exists = maps.get_opt(name).await.unwrap().is_some();
                if exists && action == 6 {
                    let params = DeleteParams::default();
                    maps.delete(name, &params).await.unwrap();
                } else if exists {
                    world.touch_child(name, 1_000_000).await;
                }
            }
        }
    }

    /// Some requests fail for a while.
    fn something_fails(&mut self) {
        let mut rule = match self.below(6) {
            0 => Rule::any(),
            1 => Rule::any().verb(Verb::Watch),
            2 => Rule::any().verb(Verb::List).verb(Verb::Watch),
            3 => Rule::any().verb(Verb::Get),
            4 => Rule::any().verb(Verb::Create).verb(Verb::Patch),
            _ => Rule::any().resource(self.pick(&KINDS)),
        };
        let times = self.below(6);
        if times > 0 {
            rule = rule.times(u32::try_from(times).unwrap());
        }
        let faults = [
            Fault::Forbidden,
            Fault::NotServed,
            Fault::NotFound,
            Fault::Conflict,
            Fault::Expired,
            Fault::TooManyRequests { retry_after: 3 },
            Fault::InternalError,
            Fault::Unavailable,
            Fault::Timeout,
            Fault::Delay(4 * SECOND),
            Fault::Hang,
            Fault::Refuse,
            Fault::CloseWatch,
        ];
        let fault = faults[self.below(faults.len())].clone();
        let until = Instant::now() + Duration::from_secs(self.below(60) as u64);
        self.faults.push((until, self.world.inject(rule, fault)));
    }

    fn begin(&self) {
        self.world.wire.set_noise(Some(Noise {
            random: Arc::clone(&self.random),
            late: 200,
            twice: 100,
            cut: 20,
            silent: 5,
            lost: 50,
        }));
    }

    /// From now on all goes well. Returns how many requests met a fault.
    fn end(&mut self) -> u32 {
        self.world.wire.set_noise(None);
        let hits = self.faults.drain(..).map(|(_, guard)| guard.hits());
        self.hits += hits.sum::<u32>();
        self.hits
    }

    /// What is not as it should be.
    async fn faults_of_the_end(&self) -> Vec<String> {
        let params = ListParams::default();
        let widgets = self.world.widgets.list(&params).await.unwrap().items;
        let maps = self.world.maps.list(&params).await.unwrap().items;
        let mut wrong = Vec::new();
        for widget in &widgets {
            let name = widget.name_any();
            let value = widget.spec.value;
            if widget.status.as_ref().map(|status| status.seen) != Some(value) {
                wrong.push(format!("{name}: the status is {:?}", widget.status));
            }
            let map = maps.iter().find(|map| map.name_any() == name);
            let data = map.and_then(|map| map.data.as_ref()?.get("value"));
            if data != Some(&value.to_string()) {
                wrong.push(format!("{name}: its map says {data:?} and not {value}"));
            }
            if !map.is_some_and(|map| is_owned(map, widget)) {
                wrong.push(format!("{name}: its map is another's"));
            }
        }
        if maps.len() != widgets.len() {
            wrong.push(format!("{} maps, {} widgets", maps.len(), widgets.len()));
        }
        wrong
    }
}

fn run(world: &World) -> Running {
    let config = even_backoff().reconcile_timeout(30 * SECOND);
    let controller = world.controller_of_both().with_config(config);
    // What a run makes and somebody removes before any watch tells of it is known from the run's own writes alone.
    let client = Tracked::wrap(world.wire.client());
    world.run(controller, move |widget, _| {
        converge(widget, client.clone())
    })
}

async fn survive(seed: u64) {
    let mut storm = Storm::new(seed).await;
    let running = run(&storm.world);
    storm.begin();
    let end = Instant::now() + 20 * MINUTE;
    while Instant::now() < end {
        storm.step().await;
        let pause = storm.below(10_000) as u64;
        sleep(Duration::from_millis(pause)).await;
    }
    let hits = storm.end();
    assert!(hits > 50, "seed {seed}: only {hits} requests met a fault");
    assert!(running.errors().len() > 20, "seed {seed}");

    // The longest that anything takes to recover: a watch that fell silent, and its delay.
    sleep(6 * MINUTE).await;
    let wrong = storm.faults_of_the_end().await;
    assert_eq!(wrong, [""; 0], "seed {seed}: it does not converge");
    assert_eq!(running.doubled(), [""; 0], "seed {seed}: two runs at once");
    assert!(running.readiness.is_ready(), "seed {seed}");
    assert!(!running.has_ended(), "seed {seed}");

    // At rest: no runs and no writes.
    let (runs, writes) = (running.runs().len(), storm.world.server.requests().writes());
    let errors = running.errors().len();
    sleep(30 * MINUTE).await;
    assert_eq!(running.runs().len(), runs, "seed {seed}: it is not quiet");
    assert_eq!(
        storm.world.server.requests().writes(),
        writes,
        "seed {seed}"
    );
    assert_eq!(running.errors().len(), errors, "seed {seed}");
}

/// T64: whatever happens to a controller for twenty minutes, it converges, and is quiet then.
#[tokio::test(start_paused = true)]
async fn a_controller_survives_everything() {
    for seed in 0..12 {
        println!("seed {seed}");
        survive(seed).await;
    }
}

/// T64: the same seed leads to the same story.
#[tokio::test(start_paused = true)]
async fn a_storm_can_be_repeated() {
    let mut stories = Vec::new();
    for _ in 0..2 {
        let mut storm = Storm::new(3).await;
        let running = run(&storm.world);
        storm.begin();
        for _ in 0..100 {
            storm.step().await;
            let pause = storm.below(10_000) as u64;
            sleep(Duration::from_millis(pause)).await;
        }
        let runs: Vec<_> = running
            .runs()
            .into_iter()
            .map(|run| (run.at, run.name, run.value))
            .collect();
        stories.push((runs, running.timed_errors()));
    }
    assert!(stories[0].0.len() > 50, "{} runs", stories[0].0.len());
    assert_eq!(stories[0], stories[1]);
}
