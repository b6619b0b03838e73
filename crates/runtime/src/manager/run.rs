//! The life of a manager: start, changes while it runs, and end.

mod groups;

use super::{
    Error,
    handle::{Command, Known, Shared},
    steps::{STEPS, What},
    unit::{Body, Role, Unit},
    worker::Worker,
};
use crate::{
    client,
    controller::{Stage, Surroundings},
    leadership::{LeaderElection, Leadership},
    sharding::Sharding,
    task::{self, Completion, Guarded},
    term::Duty,
};
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{BoxStream, FuturesUnordered},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};
use tracing::{info, warn};

/// How long something that was cancelled has to come to its next `await`.
const GRACE: Duration = Duration::from_secs(2);

/// A manager that runs.
pub(super) struct Running {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    election: Option<LeaderElection>,
    sharding: Option<Sharding>,
    shutdown_timeout: Duration,
    stops: BoxStream<'static, ()>,
    next_id: u64,
    live: BTreeMap<u64, Live>,
    ended: FuturesUnordered<BoxFuture<'static, (u64, End)>>,
    /// The election, while it goes on.
    elector: Option<task::Task<()>>,
    /// The membership in a group that shares the objects, while it goes on.
    registrar: Option<task::Task<()>>,
    /// Until when those that make room for another replica have time.
    yields_until: Option<Instant>,
    overdue: Vec<String>,
}

/// How a controller or task has ended.
type End = Completion<Result<(), String>>;

/// A controller or task that has not ended.
struct Live {
    role: Role,
    is_controller: bool,
    stage: watch::Sender<Stage>,
    /// Until when it has time to end, and who waits for that.
    removal: Option<(Instant, Vec<oneshot::Sender<()>>)>,
}

enum Event {
    Command(Command),
    Ended(u64, Completion<Result<(), String>>),
    /// Something about leadership has changed.
    Leadership,
    /// Something has ended that holds up the hand-over, or the time for it is over.
    Yielded,
    /// The time of one that is removed is over.
    Overdue,
    Stop,
}

// === impl Running ===

impl Running {
    pub(super) fn new(
        shared: Arc<Shared>,
        commands: mpsc::UnboundedReceiver<Command>,
        (election, sharding): (Option<LeaderElection>, Option<Sharding>),
        shutdown_timeout: Duration,
        stops: BoxStream<'static, ()>,
    ) -> Self {
        Self {
            shared,
            commands,
            election,
            sharding,
            shutdown_timeout,
            stops,
            next_id: 0,
            live: BTreeMap::new(),
            ended: FuturesUnordered::new(),
            elector: None,
            registrar: None,
            yields_until: None,
            overdue: Vec::new(),
        }
    }

    pub(super) async fn run(mut self, units: Vec<Unit>) -> Result<(), Error> {
        let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).collect();
        for step in STEPS {
            info!(step = ?step.what, because = step.start, "manager starts");
            self.start(step.what, &mut units).await;
        }
        self.work().await;
        self.shared.stopping.send_replace(true);
        let deadline = Instant::now() + self.shutdown_timeout;
        let result = self.end(deadline).await;
        self.shared.watches.close();
        info!("manager stopped");
        result
    }

    async fn start(&mut self, what: What, units: &mut [Option<Unit>]) {
        match what {
            What::Servers => drop(self.start_all(units, |unit| unit.role == Role::Server)),
            What::Election => {
                self.start_election();
                self.start_sharding();
            }
            What::Controllers => {
                let is_controller = |unit: &Unit| matches!(unit.body, Body::Controller(_));
                // Equal watches are found when all have said what they watch.
                for joined in self.start_all(units, is_controller) {
                    let _ended = joined.await;
                }
                self.shared.watches.open();
            }
            What::Tasks => drop(self.start_all(units, |_| true)),
        }
    }

    fn start_all(
        &mut self,
        units: &mut [Option<Unit>],
        which: impl Fn(&Unit) -> bool,
    ) -> Vec<oneshot::Receiver<()>> {
        let chosen: Vec<Unit> = units
            .iter_mut()
            .filter_map(|unit| unit.take_if(|unit| which(unit)))
            .collect();
        chosen
            .into_iter()
            .map(|unit| self.start_one(unit))
            .collect()
    }

    fn start_one(&mut self, unit: Unit) -> oneshot::Receiver<()> {
        let Unit { name, role, body } = unit;
        let id = self.next_id;
        self.next_id += 1;
        let about = Arc::<OnceLock<_>>::default();
        let is_controller = matches!(body, Body::Controller(_));
        let name = name.map(|name| self.shared.name(&name)).unwrap_or_default();
        let known = Known {
            name,
            role,
            about: Arc::clone(&about),
            is_controller,
            works: false,
            ended: None,
        };
        self.shared.units().insert(id, known);
        let (stage, seen) = watch::channel(Stage::Run);
        let leading = (role == Role::Leader).then(|| self.leading(is_controller));
        let leading = leading.flatten();
        let (tell, joined) = oneshot::channel();
        let worker = Worker {
            id,
            shared: Arc::clone(&self.shared),
            surroundings: Surroundings {
                watches: self.shared.watches.clone(),
                stage: seen,
                leading,
                about,
            },
            joined: tell,
        };
        let traffic = Arc::clone(self.shared.watches.traffic());
        let work = client::counted(traffic, worker.work(body));
        let work = task::start(Guarded::new(work, None));
        self.ended
            .push(work.map(move |completion| (id, completion)).boxed());
        let live = Live {
            role,
            is_controller,
            stage,
            removal: None,
        };
        self.live.insert(id, live);
        joined
    }

    /// Does what it is told until it is to stop.
    async fn work(&mut self) {
        loop {
            match self.next_event().await {
                Event::Stop | Event::Command(Command::Stop) => return,
                Event::Command(Command::Add(unit)) => drop(self.start_one(*unit)),
                Event::Command(Command::Remove(name, reply)) => self.remove(&name, reply),
                Event::Command(Command::StepDown) => self.step_down(),
                Event::Ended(id, completion) => self.note_end(id, completion),
                Event::Leadership => self.follow_leadership(),
                Event::Yielded => self.finish_yield(),
                Event::Overdue => self.end_overdue(),
            }
        }
    }

    async fn next_event(&mut self) -> Event {
        let leadership = self.shared.leadership.get().cloned();
        let before = *self.shared.duty.borrow();
        let changed = async {
            match &leadership {
                Some(leadership) => changed(leadership, before).await,
                None => std::future::pending().await,
            }
        };
        let yields_until = self.yields_until;
        let mut busy = self.shared.busy.subscribe();
        let yielded = async {
            match yields_until {
                None => std::future::pending().await,
                Some(until) => tokio::select! {
                    _ = busy.wait_for(|busy| *busy == 0) => {}
                    () = sleep_until(until) => {}
                },
            }
        };
        let removals = self
            .live
            .values()
            .filter(|live| *live.stage.borrow() < Stage::End);
        let overdue = removals
            .filter_map(|live| live.removal.as_ref().map(|(at, _)| *at))
            .min();
        let late = overdue.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            // Without signals it is a handle that stops it.
            Some(()) = self.stops.next() => Event::Stop,
            () = changed => Event::Leadership,
            () = yielded => Event::Yielded,
            Some((id, completion)) = self.ended.next() => Event::Ended(id, completion),
            Some(command) = self.commands.recv() => Event::Command(command),
            () = sleep_until(late), if overdue.is_some() => Event::Overdue,
        }
    }

    /// Takes in that this replica leads, or leads no more.
    fn follow_leadership(&mut self) {
        // Runs look at the clock as well; this is what the election has told.
        let leadership = self.shared.leadership.get();
        let leads = leadership.is_some_and(|leadership| leadership.watch().borrow().leads);
        let duty = if leads { Duty::Work } else { Duty::Standby };
        self.shared.duty.send_replace(duty);
        if !leads {
            self.yields_until = None;
        }
    }

    fn step_down(&mut self) {
        let Some(leadership) = self.shared.leadership.get() else {
            return;
        };
        if !leadership.is_leader() || self.yields_until.is_some() {
            return;
        }
        info!("this replica makes room for another one, because it was asked to");
        leadership.resign();
        self.shared.duty.send_replace(Duty::Yield);
        self.yields_until = Some(Instant::now() + self.shutdown_timeout);
    }

    /// Nothing runs any more that needs the lease, or its time is over.
    fn finish_yield(&mut self) {
        self.yields_until = None;
        self.shared.duty.send_replace(Duty::Standby);
        if let Some(leadership) = self.shared.leadership.get() {
            leadership.idle();
        }
    }

    fn remove(&mut self, name: &str, reply: oneshot::Sender<()>) {
        let found = {
            let units = self.shared.units();
            let mut found = units.iter().filter(|(_, known)| known.name == name);
            found.next().map(|(id, _)| *id)
        };
        let Some(id) = found else {
            return;
        };
        let Some(live) = self.live.get_mut(&id) else {
            // It has ended before.
            self.shared.units().remove(&id);
            let _told = reply.send(());
            return;
        };
        let until = Instant::now() + self.shutdown_timeout;
        let (_, replies) = live.removal.get_or_insert_with(|| (until, Vec::new()));
        replies.push(reply);
        live.stage
            .send_if_modified(|stage| advance(stage, Stage::Drain));
    }

    /// Cancels what is removed and has not ended in its time.
    fn end_overdue(&mut self) {
        let now = Instant::now();
        for live in self.live.values() {
            if live
                .removal
                .as_ref()
                .is_some_and(|(until, _)| *until <= now)
            {
                live.stage
                    .send_if_modified(|stage| advance(stage, Stage::End));
            }
        }
    }

    fn note_end(&mut self, id: u64, completion: Completion<Result<(), String>>) {
        let Some(live) = self.live.remove(&id) else {
            return;
        };
        let result = match completion {
            Completion::Returned(result) => result,
            Completion::Panicked(panic) => Err(format!("it panicked: {panic}")),
            Completion::TimedOut(_) | Completion::Deposed => Ok(()),
        };
        let mut units = self.shared.units();
        let Some(known) = units.get_mut(&id) else {
            return;
        };
        match &result {
            Ok(()) => info!(name = known.name, "ended"),
            Err(why) => {
                warn!(
                    name = known.name,
                    why, "a part of the manager has failed; the others go on"
                );
            }
        }
        known.ended = Some(result);
        if let Some((_, replies)) = live.removal {
            units.remove(&id);
            for reply in replies {
                let _told = reply.send(());
            }
        }
    }

    /// Stops everything, from the last step to the first.
    async fn end(&mut self, deadline: Instant) -> Result<(), Error> {
        if let Some(leadership) = self.shared.leadership.get() {
            // From here on it is not taken anew, and given up when nothing runs any more.
            leadership.stop();
        }
        if let Some(membership) = self.shared.membership.get() {
            membership.stop();
        }
        for step in STEPS.iter().rev() {
            info!(step = ?step.what, because = step.stop, "manager stops");
            let ended = match step.what {
                What::Tasks => {
                    self.tell(Stage::Drain, |live| live.role != Role::Server);
                    self.await_end(deadline, |live| {
                        live.role != Role::Server && !live.is_controller
                    })
                    .await
                }
                What::Controllers => {
                    self.await_end(deadline, |live| live.role != Role::Server)
                        .await
                }
                What::Election => self.release().await && self.leave().await,
                What::Servers => {
                    self.tell(Stage::Drain, |_| true);
                    self.await_end(Instant::now() + GRACE, |_| true).await
                }
            };
            if !ended {
                return Err(Error::Aborted);
            }
        }
        if self.overdue.is_empty() {
            return Ok(());
        }
        Err(Error::Overdue {
            units: std::mem::take(&mut self.overdue),
            timeout: self.shutdown_timeout,
        })
    }

    fn tell(&self, wanted: Stage, which: impl Fn(&Live) -> bool) {
        for live in self.live.values().filter(|live| which(live)) {
            live.stage.send_if_modified(|stage| advance(stage, wanted));
        }
    }

    /// Waits until those have ended, and cancels them when `deadline` is over. False if it is to stop at once.
    async fn await_end(&mut self, deadline: Instant, which: impl Fn(&Live) -> bool) -> bool {
        let mut until = deadline;
        while self.live.values().any(&which) {
            match timeout(
                until.saturating_duration_since(Instant::now()),
                self.next_event(),
            )
            .await
            {
                Ok(Event::Stop | Event::Command(Command::Stop)) => return false,
                Ok(Event::Ended(id, completion)) => self.note_end(id, completion),
                Ok(Event::Leadership) => self.follow_leadership(),
                Ok(Event::Yielded) => self.yields_until = None,
                Ok(Event::Overdue) => self.end_overdue(),
                // Nothing is added any more, and what is to be removed is about to end.
                Ok(Event::Command(Command::Add(_) | Command::StepDown)) => {}
                Ok(Event::Command(Command::Remove(name, reply))) => self.remove(&name, reply),
                Err(_) if until > deadline => break,
                Err(_) => {
                    self.note_overdue(&which);
                    self.tell(Stage::End, &which);
                    until = Instant::now() + GRACE;
                }
            }
        }
        true
    }

    fn note_overdue(&mut self, which: &impl Fn(&Live) -> bool) {
        let units = self.shared.units();
        let late = self
            .live
            .iter()
            .filter(|(_, live)| which(live) && live.role != Role::Server);
        let names = late.filter_map(|(id, _)| Some(units.get(id)?.name.clone()));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            warn!(
                names = names.join(", "),
                "time to end is over: what still runs is cancelled"
            );
        }
        self.overdue.extend(names);
    }
}

/// Completes when whoever leads is not as `before` says.
async fn changed(leadership: &Leadership, before: Duty) {
    if before == Duty::Standby {
        leadership.acquired().await;
    } else {
        leadership.lost().await;
    }
}

/// Goes on to a later stage, never back.
fn advance(stage: &mut Stage, wanted: Stage) -> bool {
    let goes_on = *stage < wanted;
    *stage = (*stage).max(wanted);
    goes_on
}
