//! The task that sends events, and what it shares with those who publish them.

use super::{
    Reporter,
    body::{Identity, Occurrence, Subject, Told, body, name, series},
};
use crate::{
    client::{Outbox, Run},
    clock,
    task::spawn_detached,
};
use futures::{FutureExt, future::BoxFuture};
use homeostat_core::{
    series::{Config, Journal, Next, Outcome},
    time::Time,
};
use k8s_openapi::{api::events::v1::Event as Body, jiff::Timestamp};
use kube::{
    Client, Resource,
    api::{Patch, PatchParams, PostParams},
    core::{Request, Status},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until, timeout},
};
use tracing::{debug, warn};

/// What publishers and the worker have in common.
pub(super) struct Shared {
    client: Client,
    reporter: Reporter,
    /// When this was made, by tokio's clock and by the wall's.
    origin: Instant,
    since: Timestamp,
    state: Mutex<State>,
    /// Tells the worker that there may be something to send.
    added: Notify,
    /// Tells those who wait for it that there may be nothing left to send.
    sent: Notify,
}

struct State {
    journal: Journal<Arc<Identity>, Arc<Subject>, Occurrence>,
    random: fastrand::Rng,
    /// Whether a worker runs, or will in a moment. It keeps what it shares with the publishers alive
    /// until all is sent.
    working: bool,
    /// The kinds of failure that the log knows of.
    warned: BTreeSet<Failure>,
}

/// An event whose publisher waits for it, between its claim and the answer.
struct Claim {
    shared: Arc<Shared>,
    key: Arc<Identity>,
    /// That of its first write.
    serial: u64,
    told: bool,
}

/// The worker's side of the [`Shared`]. Whatever ends the worker, even the end of its runtime, leaves
/// the events to the next one.
struct Shift {
    shared: Arc<Shared>,
    sending: Option<Arc<Identity>>,
    over: bool,
}

enum Step {
    Send(Told),
    Sleep(Instant),
}

/// A kind of failure. It says nothing that a server can make up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    /// The server answered with this HTTP status.
    Status(u16),
    /// The event makes no request, so it was not sent.
    NoRequest,
    /// There was no answer, or none that makes sense.
    NoAnswer,
    /// There are more events than may be sent.
    TooMany,
}

/// How long a request may take, with the attempts that kube's client makes by itself. In this time
/// nothing else is sent.
const PATIENCE: Duration = Duration::from_secs(30);

// === impl Shared ===

impl Outbox for Shared {
    fn flushed(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move { self.settled().await }.boxed()
    }
}

impl Shared {
    pub(super) fn new(client: Client, reporter: Reporter) -> Self {
        Self {
            client,
            reporter,
            origin: Instant::now(),
            since: clock::now(),
            state: Mutex::new(State {
                journal: Journal::new(Config::default()),
                random: fastrand::Rng::new(),
                working: false,
                warned: BTreeSet::new(),
            }),
            added: Notify::new(),
            sent: Notify::new(),
        }
    }

    pub(super) fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lock().journal.dropped()
    }

    /// Takes in an occurrence of an event, and sees to it that it is sent.
    pub(super) fn take_in(self: &Arc<Self>, identity: Identity, resource_version: Option<String>) {
        let regarding = Arc::clone(&identity.regarding);
        let occurrence = Occurrence {
            time: clock::now(),
            resource_version,
        };
        let mut state = self.lock();
        let dropped = state.journal.dropped();
        state.journal.add(
            self.now(),
            Arc::new(identity),
            Arc::clone(&regarding),
            occurrence,
        );
        if state.journal.dropped() > dropped && state.warned.insert(Failure::TooMany) {
            warn!(
                object = %regarding,
                "more events than can be sent; some are dropped, from now on without a word"
            );
        }
        drop(state);
        // Whoever stops the controller of this run waits for it.
        if let Some(run) = Run::current() {
            run.leaves_in(Arc::clone(self) as Arc<dyn Outbox>);
        }
        self.ensure_worker();
    }

    /// Sends an event now, and tells what came of it. It goes on when nobody waits for that any more.
    pub(super) async fn publish(
        self: &Arc<Self>,
        identity: Identity,
        resource_version: Option<String>,
    ) -> Result<(), kube::Error> {
        let (answer, answered) = oneshot::channel();
        let (shared, key) = (Arc::clone(self), Arc::new(identity));
        // Not in the caller's task: an event is none of the writes of its run.
        spawn_detached(async move {
            let result = shared.tell(&key, resource_version).await;
            // Nobody has to wait.
            let _unheard = answer.send(result);
        });
        answered
            .await
            .unwrap_or_else(|_| Err(no_answer("the runtime has ended")))
    }

    async fn tell(
        self: &Arc<Self>,
        key: &Arc<Identity>,
        resource_version: Option<String>,
    ) -> Result<(), kube::Error> {
        let (mut claim, mut told) = self.claim(key, resource_version).await;
        loop {
            let Err(error) = self.attempt(&told).await else {
                claim.told = true;
                return Ok(());
            };
            let anew = if let kube::Error::Api(status) = &error {
                matches!(outcome(told.known, status), Outcome::Exists | Outcome::Gone)
            } else {
                false
            };
            // A name that is new and taken has been taken by an attempt of which the client heard nothing.
            let renewed = told.serial != claim.serial;
            if !anew || renewed {
                return Err(error);
            }
            let Some(next) = self.lock().journal.renew(key) else {
                return Err(error);
            };
            told = next;
        }
    }

    /// Waits until nobody else tells of the same event, and begins to.
    async fn claim(
        self: &Arc<Self>,
        key: &Arc<Identity>,
        resource_version: Option<String>,
    ) -> (Claim, Told) {
        loop {
            let mut sent = pin!(self.sent.notified());
            // What happens after this line is not missed.
            sent.as_mut().enable();
            let occurrence = Occurrence {
                time: clock::now(),
                resource_version: resource_version.clone(),
            };
            let told = self
                .lock()
                .journal
                .claim(self.now(), key, &key.regarding, occurrence);
            if let Some(told) = told {
                let claim = Claim {
                    shared: Arc::clone(self),
                    key: Arc::clone(key),
                    serial: told.serial,
                    told: false,
                };
                return (claim, told);
            }
            self.ensure_worker();
            sent.await;
        }
    }

    /// Waits until there is nothing that could be sent now.
    pub(super) async fn settled(self: &Arc<Self>) {
        loop {
            let mut sent = pin!(self.sent.notified());
            // What happens after this line is not missed.
            sent.as_mut().enable();
            if self.lock().journal.is_settled() {
                return;
            }
            self.ensure_worker();
            sent.await;
        }
    }

    fn ensure_worker(self: &Arc<Self>) {
        self.added.notify_one();
        if std::mem::replace(&mut self.lock().working, true) {
            return;
        }
        let shift = Shift {
            shared: Arc::clone(self),
            sending: None,
            over: false,
        };
        // Not under the lock: a runtime that is shutting down drops the task at once.
        spawn_detached(shift.work());
    }

    /// Sends what is to be told.
    async fn send(&self, told: &Told) -> Outcome {
        match self.attempt(told).await {
            Ok(()) => Outcome::Told,
            Err(kube::Error::BuildRequest(_) | kube::Error::SerdeError(_)) => {
                self.warn(Failure::NoRequest);
                Outcome::Refused
            }
            Err(kube::Error::Api(status)) => {
                let outcome = outcome(told.known, &status);
                if !matches!(outcome, Outcome::Exists | Outcome::Gone) && !is_terminating(&status) {
                    self.warn(Failure::Status(status.code));
                }
                outcome
            }
            Err(_) => {
                self.warn(Failure::NoAnswer);
                Outcome::Failed { retry_after: None }
            }
        }
    }

    /// Makes one request. The answer is not looked at: that the server says yes is enough.
    async fn attempt(&self, told: &Told) -> Result<(), kube::Error> {
        let request = self.request(told)?;
        match timeout(PATIENCE, self.client.request_text(request)).await {
            Ok(answer) => answer.map(drop),
            Err(_) => Err(no_answer("the server does not answer")),
        }
    }

    fn request(&self, told: &Told) -> Result<http::Request<Vec<u8>>, kube::Error> {
        let request = Request::new(Body::url_path(&(), Some(told.key.namespace())));
        let request = if told.known {
            let patch = Patch::Merge(json!({ "series": series(told) }));
            let name = name(told, &self.reporter, self.since);
            let params = PatchParams {
                field_manager: Some(self.manager()),
                ..PatchParams::default()
            };
            request.patch(&name, &params, &patch)
        } else {
            let body = serde_json::to_vec(&body(told, &self.reporter, self.since));
            request.create(
                &PostParams {
                    field_manager: Some(self.manager()),
                    ..PostParams::default()
                },
                body.map_err(kube::Error::SerdeError)?,
            )
        };
        request.map_err(kube::Error::BuildRequest)
    }

    /// Who writes the events.
    fn manager(&self) -> String {
        crate::Identity::new(&self.reporter.controller)
            .name()
            .to_owned()
    }

    fn warn(&self, failure: Failure) {
        let text = match failure {
            Failure::Status(401 | 403) => {
                "events are not allowed; a role has to allow create and patch of events in the group \
                 events.k8s.io"
            }
            Failure::Status(400 | 422) => {
                "the server does not accept an event; reason and action must not be empty, and the \
                 name of the controller must be a name"
            }
            Failure::Status(_) => "events cannot be sent",
            Failure::NoRequest => "an event cannot be sent: the namespace of its object is no name",
            Failure::NoAnswer => "events cannot be sent: the server does not answer",
            Failure::TooMany => return,
        };
        let code = match failure {
            Failure::Status(code) => Some(code),
            Failure::NoRequest | Failure::NoAnswer | Failure::TooMany => None,
        };
        if self.lock().warned.insert(failure) {
            warn!(code, "{text}; this is said once");
        } else {
            debug!(code, "{text}");
        }
    }

    fn now(&self) -> Time {
        Time::ORIGIN + self.origin.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Claim ===

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        if self.told {
            state.journal.done(now, &self.key, Outcome::Told, 0.0);
        } else {
            state.journal.withdraw(now, &self.key);
        }
        drop(state);
        self.shared.sent.notify_waiters();
        // What was queued meanwhile may wait for this one. A runtime that ends starts nothing more.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.shared.ensure_worker();
        }
    }
}

// === impl Shift ===

impl Shift {
    /// Sends until there is nothing left.
    async fn work(mut self) {
        while let Some(step) = self.next() {
            match step {
                Step::Send(told) => {
                    let outcome = self.shared.send(&told).await;
                    self.done(&told.key, outcome);
                }
                Step::Sleep(until) => {
                    tokio::select! {
                        () = self.shared.added.notified() => {}
                        () = sleep_until(until) => {}
                    }
                }
            }
        }
    }

    fn next(&mut self) -> Option<Step> {
        let mut state = self.shared.lock();
        match state.journal.next(self.shared.now()) {
            Next::Send(told) => {
                self.sending = Some(Arc::clone(&told.key));
                Some(Step::Send(told))
            }
            Next::WaitUntil(time) => {
                Some(Step::Sleep(self.shared.origin + time.since(Time::ORIGIN)))
            }
            Next::Idle => {
                state.working = false;
                self.over = true;
                None
            }
        }
    }

    fn done(&mut self, key: &Arc<Identity>, outcome: Outcome) {
        self.sending = None;
        let mut state = self.shared.lock();
        let random = state.random.f64();
        state.journal.done(self.shared.now(), key, outcome, random);
        drop(state);
        self.shared.sent.notify_waiters();
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let mut state = self.shared.lock();
        if let Some(key) = self.sending.take() {
            state
                .journal
                .done(self.shared.now(), &key, Outcome::Interrupted, 0.0);
        }
        state.working = false;
        drop(state);
        // Whoever waits starts the next worker.
        self.shared.sent.notify_waiters();
    }
}

/// An error of kube's for an event of which the server has said nothing.
fn no_answer(text: &'static str) -> kube::Error {
    kube::Error::Service(format!("the event was not published: {text}").into())
}

/// What an answer that is no success means for an event that the server knows or does not know.
fn outcome(known: bool, status: &Status) -> Outcome {
    match status.code {
        404 if known => Outcome::Gone,
        409 if !known => Outcome::Exists,
        408 | 409 | 429 | 500..=599 => {
            let seconds = status
                .details
                .as_ref()
                .map_or(0, |details| details.retry_after_seconds);
            let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
            Outcome::Failed { retry_after }
        }
        _ => Outcome::Refused,
    }
}

/// Whether nothing can be created because the namespace is being deleted.
fn is_terminating(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests;
