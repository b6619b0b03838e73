//! Drives the machine that decides who leads.

use super::{Command, Status, lease::Record};
use crate::term::Term;
use futures::future::BoxFuture;
use homeostat_core::lease::{Action, Answer, Config, Input, Machine, Output};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until, timeout_at},
};

/// Takes part in the election for as long as it [runs](Self::run). When it is dropped, the lease is not renewed any
/// more, and it is not released either.
#[must_use = "an elector does nothing unless it runs"]
pub struct Elector {
    machine: Machine,
    term: Term,
    status: watch::Sender<Status>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// The lease, while no request is on its way.
    lease: Option<Record>,
    request: Option<BoxFuture<'static, Answered>>,
    /// The number of the request that was sent last.
    sent: u64,
    /// Whether all handles are gone.
    orphaned: bool,
}

/// An answer, and the lease to ask again.
struct Answered {
    lease: Record,
    attempt: u64,
    result: Result<Answer, String>,
}

enum Event {
    Answered(Box<Answered>),
    Due,
    Command(Command),
    /// Nobody can give commands any more.
    Orphaned,
}

// === impl Elector ===

impl Elector {
    pub(super) fn new(
        lease: Record,
        identity: String,
        config: Config,
        term: Term,
        status: watch::Sender<Status>,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self {
            machine: Machine::new(term.now(), config, identity),
            term,
            status,
            commands,
            lease: Some(lease),
            request: None,
            sent: 0,
            orphaned: false,
        }
    }

    /// Takes part until [`Leadership::stop`](super::Leadership::stop), or until all handles are dropped.
    pub async fn run(mut self) {
        while self.machine.action() != Action::End {
            self.ask();
            let event = self.next_event().await;
            let now = self.term.now();
            let input = match event {
                Event::Answered(answered) => self.take_in(*answered),
                Event::Due => Input::Awake,
                Event::Command(Command::Resign) => Input::Resign,
                Event::Command(Command::Stop) => Input::Stop,
                Event::Command(Command::Idle) => Input::Idle,
                Event::Orphaned => {
                    self.orphaned = true;
                    let outputs = self.machine.on(now, Input::Stop, fastrand::f64());
                    self.publish(&outputs);
                    Input::Idle
                }
            };
            let outputs = self.machine.on(now, input, fastrand::f64());
            self.publish(&outputs);
        }
        self.status.send_modify(|status| status.ended = true);
    }

    /// Sends what the machine asks for, if that was not sent yet.
    fn ask(&mut self) {
        let (attempt, deadline, draft) = match self.machine.action() {
            Action::Read { attempt, deadline } => (attempt, deadline, None),
            Action::Write {
                attempt,
                deadline,
                draft,
            } => (attempt, deadline, Some(draft)),
            Action::Sleep { .. } | Action::End => return,
        };
        if attempt == self.sent {
            return;
        }
        let Some(mut lease) = self.lease.take() else {
            // The answer to an earlier request comes first. There are two only while the program ends.
            return;
        };
        self.sent = attempt;
        let deadline = self.term.instant(deadline);
        self.request = Some(Box::pin(async move {
            let request = async {
                match &draft {
                    None => lease.read().await,
                    Some(draft) => lease.write(draft).await,
                }
            };
            let result = match timeout_at(deadline, request).await {
                Ok(result) => result.map_err(|error| describe(&error)),
                Err(_) => Err("the server did not answer in time".into()),
            };
            Answered {
                lease,
                attempt,
                result,
            }
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
        tokio::select! {
            biased;
            command = self.commands.recv(), if !self.orphaned => {
                command.map_or(Event::Orphaned, Event::Command)
            }
            answered = answered => Event::Answered(Box::new(answered)),
            () = sleep_until(due) => Event::Due,
        }
    }

    /// When the machine wants to be told the time.
    fn due(&self) -> Instant {
        let wanted = match self.machine.action() {
            Action::Sleep { until } => until,
            // The request ends by itself, with an answer.
            Action::Read { deadline, .. } | Action::Write { deadline, .. } => {
                deadline + std::time::Duration::from_secs(1)
            }
            Action::End => self.term.now(),
        };
        let until = self.machine.leads_until();
        let wanted = until.map_or(wanted, |until| until.min(wanted));
        self.term.instant(wanted)
    }

    fn take_in(&mut self, answered: Answered) -> Input {
        let Answered {
            lease,
            attempt,
            result,
        } = answered;
        self.request = None;
        self.lease = Some(lease);
        let answer = match result {
            Ok(answer) => {
                self.status
                    .send_if_modified(|status| status.last_error.take().is_some());
                answer
            }
            Err(error) => {
                tracing::debug!(error, "a request for the lease failed");
                self.status
                    .send_modify(|status| status.last_error = Some(error));
                Answer::Failed
            }
        };
        Input::Answered { attempt, answer }
    }

    fn publish(&mut self, outputs: &[Output]) {
        for _ in outputs.iter().filter(|output| **output == Output::Leads) {
            self.term.begin();
        }
        // Asking for the time comes first: whoever wakes up sees it.
        self.term.set(self.machine.leads_until());
        for output in outputs {
            match output {
                Output::Leads => tracing::info!("this replica leads"),
                Output::Lost(loss) => tracing::info!(?loss, "this replica leads no more"),
            }
            self.status.send_modify(|status| match output {
                Output::Leads => {
                    status.leads = true;
                    status.terms += 1;
                    status.loss = None;
                }
                Output::Lost(loss) => {
                    status.leads = false;
                    status.loss = Some(*loss);
                }
            });
        }
        let holder = self.machine.holder();
        self.status.send_if_modified(|status| {
            let differs = status.holder.as_deref() != holder;
            if differs {
                status.holder = holder.map(Into::into);
            }
            differs
        });
    }
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector")
            .field("machine", &self.machine)
            .finish_non_exhaustive()
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
