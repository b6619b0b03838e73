//! Runs a scenario once: controller, server and time in one thread, everything drawn from one seed.

mod operator;
mod probe;
mod rest;
mod series;

pub(crate) use self::series::Leg;
use self::{operator::Operator, rest::still_failing};
use crate::{
    hand::{FINALIZER, Hand, as_given},
    log::Event,
    object::ObjectId,
    panics,
    plan::Plan,
    recorder::Recorder,
    setup::Setup,
    spans,
    state::{State, Varying},
    task::Task,
    trace::{End, Part, Rest, Trace},
    wire::{Deed, NAMESPACE, Wire},
};
use homeostat_apiserver::{ApiServer, Config, TokioClock};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::{cell::Cell, collections::BTreeMap, mem, rc::Rc, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    task::LocalSet,
    time::{sleep, timeout},
};

/// What a run may know of the reference.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    /// What was given, as it is after the last step.
    pub(crate) finals: Vec<Value>,
    /// The operator's objects after the last step: under the name of the run and the one of every run.
    pub(crate) children: Vec<(ObjectId, ObjectId)>,
    /// How each part ends in the reference, and how long it was at most without a write before that.
    pub(crate) ends: BTreeMap<Part, (State, Duration)>,
    pub(crate) varying: Varying,
}

/// A run of a scenario.
struct World<X> {
    setup: Arc<Setup<X>>,
    seed: u64,
    /// What is done to the operator; in a series, at present.
    plan: Plan,
    /// Whether what was given is deleted while the operator is down.
    deletes: Rc<Cell<bool>>,
    hints: Arc<Hints>,
    server: ApiServer,
    recorder: Recorder,
    wire: Wire,
    hand: Rc<Hand>,
    external: Arc<X>,
    operator: Option<Operator>,
    processes: u32,
    phases: Cell<u32>,
    ends: Vec<End>,
    finals: Vec<Value>,
    fired: bool,
    remarks: Vec<String>,
    /// The uids of what another manager has annotated.
    annotated: Vec<String>,
}

/// What fails this short before the end of a part still fails.
const STILL: Duration = Duration::from_secs(400);

/// How long a step of the user's may take.
const LONGEST_STEP: Duration = Duration::from_secs(3600);

/// The same while the operator is down.
const ALONE: Duration = Duration::from_secs(60);

/// When time begins. Each seed begins at another second, so that no date is always the same.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Runs a scenario once.
///
/// # Errors
///
/// The scenario itself cannot be run.
pub(crate) fn play<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    seed: u64,
    plan: &Plan,
    hints: &Arc<Hints>,
) -> Result<Trace, String> {
    in_world(setup, seed, plan, hints, async |mut world| {
        world.course().await?;
        Ok(world.into_trace())
    })
}

/// Runs a series of plans in one world, and tells of each as if it had been run alone. It ends early if the world is
/// not as it has to be for the next one, or if `heard` says so.
///
/// # Errors
///
/// The scenario itself cannot be run.
pub(crate) fn play_series<X: Send + Sync + 'static>(
    setup: &Arc<Setup<X>>,
    seed: u64,
    legs: &[Leg],
    hints: &Arc<Hints>,
    mut heard: impl FnMut(&Leg, Trace) -> bool,
) -> Result<(), String> {
    in_world(setup, seed, &Plan::Nothing, hints, async |mut world| {
        world.series(legs, &mut heard).await
    })
}

/// Does something with a new world of this seed, in a thread that has no other.
fn in_world<X: Send + Sync + 'static, T>(
    setup: &Arc<Setup<X>>,
    seed: u64,
    plan: &Plan,
    hints: &Arc<Hints>,
    work: impl AsyncFnOnce(World<X>) -> Result<T, String>,
) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| format!("tokio does not start: {error}"))?;
    let local = LocalSet::new();
    let (setup, plan, hints) = (Arc::clone(setup), plan.clone(), Arc::clone(hints));
    local.block_on(&runtime, async move {
        fastrand::seed(seed);
        let begin = EPOCH + SignedDuration::from_secs(i64::try_from(seed % 86_400).unwrap_or(0));
        let _time = homeostat::clock::start_at(begin);
        let mut limits = Config::default();
        // They tell nothing, and would fill the log.
        limits.bookmark_interval = Duration::from_secs(3_600);
        let server = ApiServer::builder()
            .config(limits)
            .clock(TokioClock::starting_at(begin))
            .seed(seed)
            .workloads(setup.workloads)
            // Where a mistake is built in, nobody needs the rights for it.
            .notes_requests(setup.until.is_none())
            .garbage_collection(plan != Plan::LateCollector)
            .build();
        let recorder = Recorder::new(&server);
        let _panics = panics::note_in(recorder.clone());
        let _spans = spans::note_in(recorder.clone());
        let world = World::new(setup, seed, plan, hints, server, recorder);
        work(world).await
    })
}

impl<X: Send + Sync + 'static> World<X> {
    fn new(
        setup: Arc<Setup<X>>,
        seed: u64,
        plan: Plan,
        hints: Arc<Hints>,
        server: ApiServer,
        recorder: Recorder,
    ) -> Self {
        let (deeds, asked) = mpsc::unbounded_channel();
        let wire = Wire::new(&server, recorder.clone(), plan.clone(), deeds);
        let hand = Rc::new(Hand::new(wire.users_client()));
        let external = Arc::new((setup.external)());
        let deletes = matches!(plan, Plan::DeleteWhileDown(_));
        let world = Self {
            setup,
            seed,
            plan,
            deletes: Rc::new(Cell::new(deletes)),
            hints,
            server,
            recorder,
            wire,
            hand,
            external,
            operator: None,
            processes: 0,
            phases: Cell::new(0),
            ends: Vec::new(),
            finals: Vec::new(),
            fired: false,
            remarks: Vec::new(),
            annotated: Vec::new(),
        };
        world.obey(asked);
        world
    }

    /// Does what the plan wants done at a request of the operator.
    fn obey(&self, mut asked: mpsc::UnboundedReceiver<Deed>) {
        let (hand, setup) = (Rc::clone(&self.hand), Arc::clone(&self.setup));
        // It ends with the world, whose wire asks it.
        Task::start(async move {
            while let Some(Deed { whole, done }) = asked.recv().await {
                if whole {
                    hand.delete_namespace().await;
                } else {
                    hand.delete(&setup.given).await;
                }
                // The operator may have ended meanwhile.
                let _ = done.send(());
            }
        })
        .let_go();
    }

    async fn course(&mut self) -> Result<(), String> {
        self.install().await?;
        if self.plan == Plan::Late {
            return self.late().await;
        }
        self.start(None);
        if self.plan == Plan::Direct {
            self.give(&self.hints.finals).await?;
            self.end(Part::Probe, "the last state is given", 0).await;
            return Ok(());
        }
        self.parts().await
    }

    async fn install(&self) -> Result<(), String> {
        self.create_namespace().await?;
        self.hand.create(&self.setup.definitions).await?;
        // Definitions are served a moment later.
        sleep(Duration::from_secs(5)).await;
        self.hand.create(&self.setup.existing).await?;
        self.watch_invariants();
        Ok(())
    }

    async fn create_namespace(&self) -> Result<(), String> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": NAMESPACE } });
        self.hand.create(&[namespace]).await
    }

    fn watch_invariants(&self) {
        // What these plans do is against any property by itself.
        let breaks = matches!(
            self.plan,
            Plan::Lose(_) | Plan::Edit(_) | Plan::Scaled(_) | Plan::DeleteNamespace(_)
        );
        let has_none = self.setup.invariants.is_empty() && self.setup.transitions.is_empty();
        if breaks || has_none {
            self.recorder.set_watchdog(None);
            return;
        }
        let mut before = self.state();
        let (server, recorder) = (self.server.clone(), self.recorder.clone());
        let (setup, external) = (Arc::clone(&self.setup), Arc::clone(&self.external));
        self.recorder.set_watchdog(Some(Box::new(move || {
            let ledger = setup.ledger.as_ref().map(|ledger| ledger(&external));
            let state = State::of(&server, &recorder, ledger);
            let broken = |name: &str, held: Result<(), String>| {
                let why = held.err()?;
                Some(format!("{name}: {why}"))
            };
            let invariants = setup.invariants.iter();
            let invariants = invariants.filter_map(|(name, holds)| broken(name, holds(&state)));
            let transitions = setup.transitions.iter();
            let transitions =
                transitions.filter_map(|(name, holds)| broken(name, holds(&before, &state)));
            let barks = invariants.chain(transitions).collect();
            before = state;
            barks
        })));
    }

    /// All parts that the plan needs, and what it does at the end of them.
    async fn parts(&mut self) -> Result<(), String> {
        let from = self.begin("the objects are given");
        let given = self.setup.given.clone();
        self.give(&given).await?;
        self.end(Part::Given, "the objects are given", from).await;
        if self.plan == Plan::Foreign {
            self.interfere().await;
        }
        for index in 0..self.setup.steps.len() {
            if self.wire.has_fired() {
                return Ok(());
            }
            let name = self.setup.steps[index].name.clone();
            let from = self.begin(&name);
            let missed = self.plan == Plan::Missed(index);
            if missed {
                self.fired = true;
                self.operator = None;
            }
            self.step(index, missed).await?;
            if missed {
                sleep(Duration::from_secs(30)).await;
                self.start(None);
            }
            self.end(Part::Step(index), &name, from).await;
            if missed {
                return Ok(());
            }
        }
        self.note_finals().await;
        if self.wire.has_fired() || self.is_stopped() {
            return Ok(());
        }
        if !self.goes_through_deletion() {
            self.probe().await;
            return Ok(());
        }
        if self.setup.deletion {
            let from = self.begin("what was given is deleted");
            self.hand.delete(&given).await;
            self.end(Part::Deleted, "what was given is deleted", from)
                .await;
            if self.wire.has_fired() || self.is_stopped() {
                return Ok(());
            }
            let from = self.begin("the same is given again");
            if let Err(text) = self.hand.create(&given).await {
                self.remarks.push(format!("cannot be given again: {text}"));
            }
            self.end(Part::Again, "the same is given again", from).await;
        }
        if matches!(self.plan, Plan::Stale(_)) {
            self.probe().await;
        }
        Ok(())
    }

    fn goes_through_deletion(&self) -> bool {
        matches!(
            self.plan,
            Plan::Nothing
                | Plan::Request(..)
                | Plan::Lag(_)
                | Plan::Batched(_)
                | Plan::LateCollector
                | Plan::Stale(_)
        )
    }

    /// The user makes all steps before the operator starts.
    async fn late(&mut self) -> Result<(), String> {
        let name = "the operator starts after all steps";
        let from = self.begin(name);
        let given = self.setup.given.clone();
        self.give(&given).await?;
        for step in &self.setup.steps {
            let deed = (step.deed)(self.wire.users_client(), Arc::clone(&self.external));
            // What a step waits for may need the operator.
            let _ = timeout(ALONE, deed).await;
        }
        self.start(None);
        self.end(Part::Probe, name, from).await;
        Ok(())
    }

    async fn give(&self, objects: &[Value]) -> Result<(), String> {
        self.hand.create(objects).await
    }

    async fn step(&mut self, index: usize, alone: bool) -> Result<(), String> {
        let step = &self.setup.steps[index];
        let deed = (step.deed)(self.wire.users_client(), Arc::clone(&self.external));
        let name = &step.name;
        // What a step waits for may need the operator.
        let longest = if alone { ALONE } else { LONGEST_STEP };
        let failed = match timeout(longest, deed).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(text)) => format!("step {name:?} failed: {text}"),
            Err(_) => format!("step {name:?} did not end within an hour"),
        };
        if self.plan == Plan::Nothing {
            return Err(failed);
        }
        // The plan may have taken away what the step needs; the state tells whether that matters.
        self.recorder.deed(failed);
        Ok(())
    }

    /// Notes what was given as it is now, as a user would give it.
    async fn note_finals(&mut self) {
        if self.plan == Plan::Nothing {
            let objects = self.hand.read(&self.setup.given).await;
            self.finals = objects.iter().map(as_given).collect();
        }
    }

    fn is_stopped(&self) -> bool {
        self.ends.last().is_some_and(|end| end.rest != Rest::Calm)
    }

    fn start(&mut self, snapshot: Option<u64>) {
        let (hand, setup) = (Rc::clone(&self.hand), Arc::clone(&self.setup));
        let deletes = Rc::clone(&self.deletes);
        let down: operator::Down = Rc::new(move || {
            let (hand, setup) = (Rc::clone(&hand), Arc::clone(&setup));
            let deletes = deletes.get();
            Box::pin(async move {
                if deletes {
                    hand.delete(&setup.given).await;
                }
            })
        });
        if snapshot.is_some() {
            self.wire.let_go_on(false);
        }
        self.processes += 1;
        self.operator = Some(Operator::start(
            &self.setup,
            &self.external,
            &self.wire,
            &self.recorder,
            operator::Birth {
                number: self.processes * 100,
                snapshot,
            },
            down,
        ));
    }

    /// Stops the operator for a while and starts it anew.
    async fn restart(&mut self, pause: Duration, snapshot: Option<u64>) {
        self.operator = None;
        sleep(pause).await;
        self.start(snapshot);
    }

    /// Begins a part. Answers where in the log.
    fn begin(&self, name: &str) -> usize {
        self.recorder.note_cluster();
        let from = self.recorder.len();
        self.recorder.note(Event::Phase(name.to_owned()));
        self.phases.set(self.phases.get() + 1);
        self.wire.begin_phase(self.phases.get());
        from
    }

    /// Waits for rest, and takes down the state.
    async fn end(&mut self, part: Part, name: &str, from: usize) {
        let (rest, state) = self.settle(Some((part, from))).await;
        self.recorder.note_cluster();
        let since = self.recorder.now().saturating_sub(STILL);
        let failing = self
            .recorder
            .with(from, |entries| still_failing(entries, since));
        self.ends.push(End {
            part,
            name: name.to_owned(),
            from,
            to: self.recorder.len(),
            state: state.unwrap_or_else(|| self.state()),
            rest,
            failing,
            revision: self.server.revision(),
        });
    }

    fn state(&self) -> State {
        let ledger = self.setup.ledger.as_ref();
        let ledger = ledger.map(|ledger| ledger(&self.external));
        State::of(&self.server, &self.recorder, ledger)
    }

    fn into_trace(mut self) -> Trace {
        self.operator = None;
        self.recorder.set_watchdog(None);
        let ledger = self.setup.ledger.as_ref();
        let external = ledger.map(|look| look(&(self.setup.external)()));
        let finals = mem::take(&mut self.finals);
        Trace {
            finals,
            external,
            ..self.cut()
        }
    }

    /// What has happened since this was asked last.
    fn cut(&mut self) -> Trace {
        Trace {
            plan: self.plan.clone(),
            seed: self.seed,
            entries: self.recorder.take(),
            ends: mem::take(&mut self.ends),
            finals: Vec::new(),
            external: None,
            fired: self.fired || self.wire.has_fired(),
            remarks: mem::take(&mut self.remarks),
        }
    }

    /// Whether somebody else's finalizer is still on what was given.
    async fn is_held(&self) -> bool {
        let objects = self.hand.read(&self.setup.given).await;
        objects.len() == self.setup.given.len()
            && objects.iter().all(|object| {
                let finalizers = object["metadata"]["finalizers"].as_array();
                finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
            })
    }
}
