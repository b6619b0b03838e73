//! The connection between the operator and the server: it notes what goes over it, and spoils it by plan.

mod answers;
mod mark;
mod watched;

pub(crate) use self::mark::{Armed, Asked, Mark};
use self::{
    answers::{AnyBody, backwards, faulty, passed},
    watched::Watched,
};
use crate::{
    address::Address,
    log::{Actor, Change, Event, Request as Noted},
    plan::{Injection, Plan, Trouble},
    recorder::Recorder,
    spans::current_run,
};
use homeostat_apiserver::{ApiServer, ResponseBody, Service};
use http::{Request, Response, Uri, uri::PathAndQuery};
use kube::{Client, client::Body};
use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{Instant, sleep, sleep_until},
};
use tower::ServiceExt;

/// The namespace of the scenario, and of clients that name none.
pub(crate) const NAMESPACE: &str = "check";

/// How many requests an operator may make in one part of the scenario. More than a hundred objects
/// with ten children each need, and few enough that a loop without a pause is stopped soon.
const MOST_REQUESTS: u32 = 6_000;

/// Requests of one part have numbers of their own, so that it does not matter how long the part before was.
const NUMBERS: u32 = 10_000;

/// The same for requests that change something.
const MOST_WRITES: u32 = 400;

/// How much later each message of a watch that lags arrives.
const LAG: Duration = Duration::from_secs(7);

/// How long a watch that tells in batches keeps what it has. Watchers wait a few seconds beyond the end of a watch, and
/// the bookmark with which it ends must reach them by then.
const BATCH: Duration = Duration::from_secs(3);

/// The connection. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Inner>);

struct Inner {
    server: Service,
    recorder: Recorder,
    plan: Plan,
    state: Mutex<State>,
    /// Tells that the process has crashed.
    crashed: Notify,
    /// Asks for what the plan does beside the operator, and waits until it is done.
    deeds: mpsc::UnboundedSender<Deed>,
    /// Whether watches of a process with old caches go on.
    goes_on: watch::Sender<bool>,
}

/// What a plan does beside the operator.
#[derive(Debug)]
pub(crate) struct Deed {
    /// Whether the namespace is deleted, and not what was given alone.
    pub(crate) whole: bool,
    /// Told when it is done.
    pub(crate) done: oneshot::Sender<()>,
}

#[derive(Default)]
struct State {
    numbered: u32,
    requests: u32,
    writes: u32,
    /// The plan that waits for its request.
    armed: Option<Armed>,
    fired: bool,
    overrun: bool,
    trouble: Option<(String, Trouble, Instant)>,
}

/// One life of the operator.
pub(crate) struct Process {
    pub(crate) number: u32,
    dead: AtomicBool,
    /// The version that its caches show at first.
    snapshot: Option<u64>,
}

// === impl Process ===

impl Process {
    pub(crate) fn new(number: u32, snapshot: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            number,
            dead: AtomicBool::new(false),
            snapshot,
        })
    }

    pub(crate) fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }
}

// === impl Wire ===

impl Wire {
    pub(crate) fn new(
        server: &ApiServer,
        recorder: Recorder,
        plan: Plan,
        deeds: mpsc::UnboundedSender<Deed>,
    ) -> Self {
        let mark = plan.number().map(Mark::Number);
        let armed = mark.map(|mark| Armed {
            plan: plan.clone(),
            mark,
        });
        let state = State {
            armed,
            ..State::default()
        };
        Self(Arc::new(Inner {
            server: server.service(),
            recorder,
            plan,
            state: Mutex::new(state),
            crashed: Notify::new(),
            deeds,
            goes_on: watch::Sender::new(false),
        }))
    }

    /// The operator's client in one life of it.
    pub(crate) fn client(&self, process: &Arc<Process>) -> Client {
        let (wire, process) = (self.clone(), Arc::clone(process));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (wire, process) = (wire.clone(), Arc::clone(&process));
            async move { wire.carry(&process, request).await }
        });
        Client::new(service, NAMESPACE)
    }

    /// A client of somebody else's, which nothing happens to.
    pub(crate) fn users_client(&self) -> Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let wire = wire.clone();
            async move {
                let address = Address::of(request.method(), request.uri());
                let (answer, changes) = wire.forward(request, Actor::User).await?;
                let status = answer.status().as_u16();
                if Address::is_write(address.verb) {
                    wire.note(
                        &address,
                        Actor::User,
                        None,
                        None,
                        Some(status),
                        None,
                        changes,
                    );
                }
                Ok::<_, io::Error>(passed(answer))
            }
        });
        Client::new(service, NAMESPACE)
    }

    /// Completes when the operator's process has crashed.
    pub(crate) async fn crashed(&self) {
        self.0.crashed.notified().await;
    }

    /// Whether what the plan is about has happened.
    pub(crate) fn has_fired(&self) -> bool {
        self.lock().fired
    }

    /// From now on this plan waits for its request, in place of the one before.
    pub(crate) fn arm(&self, armed: Option<Armed>) {
        let mut state = self.lock();
        state.armed = armed;
        state.fired = false;
    }

    /// Whether the operator made more requests than any needs.
    pub(crate) fn is_overrun(&self) -> bool {
        self.lock().overrun
    }

    /// Begins to count anew. The numbers tell the part: those of the second begin with 20,001.
    pub(crate) fn begin_phase(&self, phase: u32) {
        let mut state = self.lock();
        state.numbered = phase * NUMBERS;
        state.requests = 0;
        state.writes = 0;
    }

    /// From now on lists and watches of a resource misbehave for a while.
    pub(crate) fn trouble(&self, resource: &str, trouble: Trouble) {
        let until = Instant::now() + trouble.lasts();
        self.lock().trouble = Some((resource.to_owned(), trouble, until));
    }

    /// Lets the watches of processes with old caches go on, or holds those of the next one.
    pub(crate) fn let_go_on(&self, goes_on: bool) {
        self.0.goes_on.send_replace(goes_on);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(
        &self,
        process: &Arc<Process>,
        request: Request<Body>,
    ) -> io::Result<Response<AnyBody>> {
        let address = Address::of(request.method(), request.uri());
        let run = current_run();
        let number = self.admit(process, &address).await;
        let plan = self.plan_of(number, &address, run);
        let injection = plan.as_ref().and_then(Plan::injection);
        let cached = address.is_of_collection() && run.is_none();
        if cached && let Some(answer) = self.meet_trouble(&address).await? {
            self.note_answer(
                &address,
                run,
                number,
                Some(answer.status().as_u16()),
                "trouble",
            );
            return Ok(answer);
        }
        let request = match self.prepared(process, &address, cached, request) {
            Ok(request) => request,
            Err(answer) => return Ok(*answer),
        };
        if let Some(injection) = injection.filter(|injection| !injection.is_carried_out()) {
            let answer = faulty(injection, &address.object);
            let status = answer.as_ref().map(|answer| answer.status().as_u16());
            self.note_answer(&address, run, number, status, &injection_name(injection));
            return match answer {
                Some(answer) => Ok(answer),
                None => self.broken(process, injection).await,
            };
        }
        self.carry_out(process, &address, run, number, plan, request)
            .await
    }

    /// Lets the server carry out a request, and gives its answer to the operator unless that is lost.
    async fn carry_out(
        &self,
        process: &Arc<Process>,
        address: &Address,
        run: Option<u32>,
        number: Option<u32>,
        plan: Option<Plan>,
        request: Request<Body>,
    ) -> io::Result<Response<AnyBody>> {
        let injection = plan.as_ref().and_then(Plan::injection);
        let (answer, changes) = self.forward(request, Actor::Operator).await?;
        if !changes.is_empty() {
            self.lock().writes += 1;
        }
        let heard = match injection {
            Some(Injection::LateTimeout) => faulty(Injection::LateTimeout, &address.object),
            Some(Injection::AnswerLost | Injection::CrashAfter) => None,
            Some(_) | None => Some(self.presented(process, address, answer).await),
        };
        let status = heard.as_ref().map(|answer| answer.status().as_u16());
        let injected = injection.map(injection_name);
        self.note(
            address,
            Actor::Operator,
            run,
            number,
            status,
            injected,
            changes,
        );
        self.do_deed(plan.as_ref()).await;
        match (heard, injection) {
            (Some(answer), Some(Injection::CrashSeen)) => {
                self.crash_soon(process);
                Ok(answer)
            }
            (Some(answer), _) => Ok(answer),
            (None, injection) => {
                let injection = injection.unwrap_or(Injection::AnswerLost);
                self.broken(process, injection).await
            }
        }
    }

    /// Counts a request of the operator. What is dead or runs away does not go on.
    async fn admit(&self, process: &Process, address: &Address) -> Option<u32> {
        let stopped = {
            let mut state = self.lock();
            state.requests += 1;
            let too_many = state.requests > MOST_REQUESTS || state.writes > MOST_WRITES;
            if too_many && !state.overrun {
                state.overrun = true;
                drop(state);
                self.0
                    .recorder
                    .deed("The operator makes requests without end. It is stopped.");
                state = self.lock();
            }
            state.overrun || process.is_dead()
        };
        if stopped {
            std::future::pending::<()>().await;
        }
        (!address.is_watch()).then(|| {
            let mut state = self.lock();
            state.numbered += 1;
            state.numbered
        })
    }

    /// The plan that has waited for this request.
    fn plan_of(&self, number: Option<u32>, address: &Address, run: Option<u32>) -> Option<Plan> {
        let mut state = self.lock();
        let armed = state.armed.as_mut()?;
        if !armed.meets(number?, address, run.is_some()) {
            return None;
        }
        let plan = state.armed.take()?.plan;
        state.fired = plan.injection().is_some();
        Some(plan)
    }

    /// What lists and watches of a resource in trouble hear, if they hear anything of their own.
    async fn meet_trouble(&self, address: &Address) -> io::Result<Option<Response<AnyBody>>> {
        let trouble = self.lock().trouble.clone();
        let Some((resource, trouble, until)) = trouble else {
            return Ok(None);
        };
        if resource != address.object.resource || Instant::now() >= until {
            return Ok(None);
        }
        match trouble {
            Trouble::Slow => {
                sleep_until(until).await;
                Ok(None)
            }
            Trouble::Failing => Ok(faulty(Injection::ServerError, &address.object)),
            Trouble::Forbidden => Ok(Some(answers::forbidden(&address.object))),
            Trouble::Silent => {
                sleep_until(until).await;
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
    }

    /// The request as the server gets it, or what is answered in its place.
    fn prepared(
        &self,
        process: &Process,
        address: &Address,
        cached: bool,
        mut request: Request<Body>,
    ) -> Result<Request<Body>, Box<Response<AnyBody>>> {
        let streams = address.is_watch() && address.query.contains("sendInitialEvents=true");
        let old = process.snapshot.filter(|_| cached);
        if streams && (old.is_some() || self.0.plan == Plan::Reversed) {
            // Servers without this feature answer so, and clients list.
            return Err(Box::new(answers::streaming_is_unknown()));
        }
        let pages_on = address.query.contains("continue=");
        if let Some(revision) = old.filter(|_| address.verb == "list" && !pages_on) {
            let revision = revision.to_string();
            let exact = [
                ("resourceVersion", revision.as_str()),
                ("resourceVersionMatch", "Exact"),
            ];
            let query = address.query_with(&exact, &[]);
            *request.uri_mut() = with_query(request.uri(), &query);
        }
        Ok(request)
    }

    /// An answer as the operator sees it.
    async fn presented(
        &self,
        process: &Arc<Process>,
        address: &Address,
        answer: Response<ResponseBody>,
    ) -> Response<AnyBody> {
        if !answer.status().is_success() {
            return passed(answer);
        }
        if address.is_watch() {
            let lags =
                matches!(&self.0.plan, Plan::Lag(resource) if *resource == address.object.resource);
            let batches = matches!(
                &self.0.plan,
                Plan::Batched(resource) if *resource == address.object.resource
            );
            let waits = process.snapshot.is_some();
            let watched = Watched {
                recorder: self.0.recorder.clone(),
                process: Arc::clone(process),
                resource: address.object.resource.clone(),
                lag: lags.then_some(LAG),
                batch: batches.then_some(BATCH),
                goes_on: waits.then(|| self.0.goes_on.subscribe()),
            };
            return answer.map(|body| watched.body(body));
        }
        if address.verb == "list" && self.0.plan == Plan::Reversed {
            return backwards(answer).await;
        }
        passed(answer)
    }

    /// Lets the server answer, and finds out what it stored because of that.
    async fn forward(
        &self,
        request: Request<Body>,
        actor: Actor,
    ) -> io::Result<(Response<ResponseBody>, Vec<Change>)> {
        let recorder = &self.0.recorder;
        let mut answer = Box::pin(self.0.server.clone().oneshot(request));
        let mut changes = Vec::new();
        let answer = std::future::poll_fn(|cx| {
            // One thread runs everything, so what changes within this poll is this request's doing.
            recorder.note_cluster();
            let polled = answer.as_mut().poll(cx);
            changes.extend(recorder.take_changes(actor));
            polled
        })
        .await;
        let answer = answer.map_err(|error| io::Error::other(error.to_string()))?;
        Ok((answer, changes))
    }

    /// The connection fails, or the process is no more.
    async fn broken(
        &self,
        process: &Process,
        injection: Injection,
    ) -> io::Result<Response<AnyBody>> {
        if injection.is_crash() {
            self.crash(process);
            std::future::pending::<()>().await;
        }
        Err(io::ErrorKind::ConnectionReset.into())
    }

    fn crash(&self, process: &Process) {
        process.kill();
        self.0.crashed.notify_one();
    }

    /// Lets the process come as far as its next request at most.
    fn crash_soon(&self, process: &Arc<Process>) {
        let (wire, process) = (self.clone(), Arc::clone(process));
        process.kill();
        crate::task::detached(async move {
            sleep(Duration::from_millis(1)).await;
            wire.crash(&process);
        });
    }

    /// What the plan of a request does beside the operator, right after it.
    async fn do_deed(&self, plan: Option<&Plan>) {
        let whole = match plan {
            Some(Plan::Delete(_)) => false,
            Some(Plan::DeleteNamespace(_)) => true,
            Some(_) | None => return,
        };
        self.lock().fired = true;
        let (done, is_done) = oneshot::channel();
        if self.0.deeds.send(Deed { whole, done }).is_ok() {
            // It is only dropped with the world.
            let _ = is_done.await;
        }
    }

    fn note_answer(
        &self,
        address: &Address,
        run: Option<u32>,
        number: Option<u32>,
        status: Option<u16>,
        injected: &str,
    ) {
        let injected = Some(injected.to_owned());
        self.note(
            address,
            Actor::Operator,
            run,
            number,
            status,
            injected,
            Vec::new(),
        );
    }

    #[expect(clippy::too_many_arguments, reason = "they are the columns of the log")]
    fn note(
        &self,
        address: &Address,
        actor: Actor,
        run: Option<u32>,
        number: Option<u32>,
        status: Option<u16>,
        injected: Option<String>,
        changes: Vec<Change>,
    ) {
        let Address {
            verb,
            object,
            subresource,
            query,
            manager,
        } = address.clone();
        self.0.recorder.note(Event::Request(Noted {
            number,
            actor,
            run,
            verb,
            object,
            subresource,
            query,
            manager,
            status,
            injected,
            changes,
        }));
    }
}

fn injection_name(injection: Injection) -> String {
    let plan = Plan::Request(0, injection).to_string();
    plan.trim_end_matches("=0").to_owned()
}

/// The same address with another query.
fn with_query(uri: &Uri, query: &str) -> Uri {
    let path = format!("{}?{query}", uri.path());
    let mut parts = uri.clone().into_parts();
    match path.parse::<PathAndQuery>() {
        Ok(path) => {
            parts.path_and_query = Some(path);
            Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
        }
        Err(_) => uri.clone(),
    }
}
