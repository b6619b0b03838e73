//! Drives the machine that decides what this member runs.

use super::{Command, Status, ledger::Ledger, record::Records};
use crate::term::{Duty, Term};
use futures::future::BoxFuture;
use homeostat_core::shard::{Action, Answer, Config, Input, Machine, Member, Output, Share, Slots};
use std::sync::Arc;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout_at},
};

/// Keeps a replica in its group for as long as it [runs](Self::run). When it is dropped, the lease is not renewed any more,
/// and it is not released either.
#[must_use = "a registrar does nothing unless it runs"]
pub struct Registrar {
    machine: Machine,
    records: Records,
    term: Term,
    ledger: Ledger,
    tells: Tells,
    commands: mpsc::UnboundedReceiver<Command>,
    request: Option<BoxFuture<'static, (u64, Result<Answer, String>)>>,
    /// The number of the request that was sent last.
    sent: u64,
    /// The view of which it is waited until nothing runs besides.
    releases: Option<u64>,
    /// Whether it is waited until nothing runs.
    empties: bool,
    /// Whether all handles are gone.
    orphaned: bool,
}

/// Whom a registrar tells what.
pub(super) struct Tells {
    pub(super) status: watch::Sender<Status>,
    pub(super) duty: watch::Sender<Duty>,
    pub(super) share: watch::Sender<Arc<Share>>,
}

enum Event {
    Answered(u64, Result<Answer, String>),
    Due,
    Command(Command),
    /// What has moved does not run any more.
    Released(u64),
    /// Nothing runs any more.
    Emptied,
    /// Nobody can give commands any more.
    Orphaned,
}

pub(super) fn machine(
    term: &Term,
    config: Config,
    slots: Slots,
    identity: String,
    lease: String,
) -> Machine {
    Machine::new(term.now(), config, slots, identity, lease)
}

// === impl Registrar ===

impl Registrar {
    pub(super) fn new(
        machine: Machine,
        records: Records,
        term: Term,
        ledger: Ledger,
        tells: Tells,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self {
            machine,
            records,
            term,
            ledger,
            tells,
            commands,
            request: None,
            sent: 0,
            releases: None,
            empties: false,
            orphaned: false,
        }
    }

    /// Takes part until the manager has stopped, or until all handles are dropped.
    pub async fn run(mut self) {
        while self.machine.action() != Action::End {
            self.ask();
            let event = self.next_event().await;
            let input = match event {
                Event::Answered(attempt, result) => self.take_in(attempt, result),
                Event::Due => Input::Awake,
                Event::Command(Command::Stop) => Input::Stop,
                Event::Command(Command::Idle) => Input::Idle,
                Event::Released(view) => {
                    self.releases = None;
                    Input::Released { view }
                }
                Event::Emptied => {
                    self.empties = false;
                    Input::Idle
                }
                Event::Orphaned => {
                    self.orphaned = true;
                    self.tell(Input::Stop);
                    Input::Idle
                }
            };
            self.tell(input);
        }
        self.tells.status.send_modify(|status| status.ended = true);
    }

    fn tell(&mut self, input: Input) {
        let now = self.term.now();
        let outputs = self.machine.on(now, input, fastrand::f64());
        self.publish(&outputs);
    }

    /// Sends what the machine asks for, if that was not sent yet.
    fn ask(&mut self) {
        let action = self.machine.action();
        let (Action::List { attempt, deadline }
        | Action::Write {
            attempt, deadline, ..
        }
        | Action::Bury {
            attempt, deadline, ..
        }
        | Action::Remove {
            attempt, deadline, ..
        }) = action
        else {
            return;
        };
        if attempt == self.sent {
            return;
        }
        self.sent = attempt;
        let deadline = self.term.instant(deadline);
        let records = self.records.clone();
        // An earlier request is given up with this. Whatever it does, it does not count.
        self.request = Some(Box::pin(async move {
            let result = match timeout_at(deadline, send(&records, action)).await {
                Ok(result) => result.map_err(|error| describe(&error)),
                Err(_) => Err("the server did not answer in time".into()),
            };
            (attempt, result)
        }));
    }

    async fn next_event(&mut self) -> Event {
        let due = self.due();
        let request = &mut self.request;
        let answered = async {
            match request {
                Some(request) => request.await,
                None => std::future::pending().await,
            }
        };
        let (awaited, ledger) = (self.releases, &self.ledger);
        let released = async {
            match awaited {
                Some(view) => {
                    ledger.released(view).await;
                    view
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            command = self.commands.recv(), if !self.orphaned => {
                command.map_or(Event::Orphaned, Event::Command)
            }
            () = ledger.idle(), if self.empties => Event::Emptied,
            (attempt, result) = answered => Event::Answered(attempt, result),
            view = released => Event::Released(view),
            () = sleep_until(due) => Event::Due,
        }
    }

    /// When the machine wants to be told the time.
    fn due(&self) -> Instant {
        let wanted = match self.machine.action() {
            Action::Sleep { until } => until,
            // The request ends by itself, with an answer.
            Action::List { deadline, .. }
            | Action::Write { deadline, .. }
            | Action::Bury { deadline, .. }
            | Action::Remove { deadline, .. } => deadline + std::time::Duration::from_secs(1),
            Action::End => self.term.now(),
        };
        let until = self.machine.lasts_until();
        let wanted = until.map_or(wanted, |until| until.min(wanted));
        self.term.instant(wanted)
    }

    fn take_in(&mut self, attempt: u64, result: Result<Answer, String>) -> Input {
        self.request = None;
        let answer = match result {
            Ok(answer) => {
                self.tells
                    .status
                    .send_if_modified(|status| status.last_error.take().is_some());
                answer
            }
            Err(error) => {
                tracing::debug!(error, "a request for the leases of the shards failed");
                self.tells
                    .status
                    .send_modify(|status| status.last_error = Some(error));
                Answer::Failed
            }
        };
        Input::Answered { attempt, answer }
    }

    fn publish(&mut self, outputs: &[Output]) {
        let share = self.machine.share();
        let is_new = self.tells.share.borrow().view() != share.view();
        if is_new {
            self.tells.share.send_replace(Arc::clone(share));
        }
        for output in outputs {
            match output {
                Output::Runs => {
                    tracing::info!(?share, "this replica reconciles its share");
                    self.term.begin();
                    self.releases = Some(share.view());
                    self.tells.status.send_modify(|status| {
                        status.runs = true;
                        status.loss = None;
                    });
                }
                Output::Moved => {
                    if is_new {
                        tracing::info!(?share, "the share of this replica has changed");
                    }
                    self.releases = Some(share.view());
                }
                Output::Lost(loss) => {
                    tracing::info!(?loss, "this replica reconciles nothing any more");
                    self.releases = None;
                    self.empties = true;
                    self.tells.status.send_modify(|status| {
                        status.runs = false;
                        status.loss = Some(*loss);
                    });
                }
            }
        }
        let until = self.machine.runs_until();
        self.term.set(until);
        // Whoever hears of this finds the share and the term as they are.
        let duty = if until.is_some() {
            Duty::Work
        } else {
            Duty::Standby
        };
        self.tells
            .duty
            .send_if_modified(|before| std::mem::replace(before, duty) != duty);
        self.tell_status();
    }

    fn tell_status(&self) {
        let machine = &self.machine;
        let share = machine.share();
        let members = share.members().iter().map(Member::name);
        let members: Vec<String> = members.map(Into::into).collect();
        let awaits: Vec<String> = machine.awaited().map(Into::into).collect();
        self.tells.status.send_if_modified(|status| {
            let before = status.clone();
            status.members = members;
            status.awaits = awaits;
            status.epoch = machine.epoch();
            status.view = share.view();
            status.obstacle = machine.obstacle().map(Into::into);
            if status.obstacle.is_some() && before.obstacle != status.obstacle {
                tracing::warn!(
                    obstacle = status.obstacle,
                    "a member of the group is not as the others"
                );
            }
            *status != before
        });
    }
}

impl std::fmt::Debug for Registrar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registrar")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

async fn send(records: &Records, action: Action) -> Result<Answer, kube::Error> {
    match action {
        Action::List { .. } => records.list().await,
        Action::Write {
            version, record, ..
        } => records.write(version, &record).await,
        Action::Bury {
            lease,
            version,
            record,
            ..
        } => records.put(&lease, Some(version), &record).await,
        Action::Remove { lease, version, .. } => records.remove(&lease, version).await,
        Action::Sleep { .. } | Action::End => Ok(Answer::Failed),
    }
}

/// An error without the body of an answer.
fn describe(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        format!("{} ({})", status.message, status.code)
    } else {
        error.to_string()
    }
}
