//! Drives the sources of a controller and gathers what they say.

use super::{
    desk::Question,
    draft::Draft,
    shared::Joint,
    source::{Signal, Source},
};
use crate::{
    client::{self, Noted},
    recovery,
    reflector::{Reader, Registry, reading},
    task::{self, Task},
    utils::Backoff,
};
use futures::{Stream, StreamExt};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, Once, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

/// How many signals wait between the sources and the controller. Sources that are faster wait; the
/// queue merges what it takes in, so more would only cost memory.
const SIGNALS: usize = 1024;

/// The signals of several sources, each with the number of its source. The sources are driven in
/// tasks of their own, which end with this.
pub(super) struct Intake {
    signals: mpsc::Receiver<(usize, Signal)>,
    /// For sources that join; `None` when none can any more.
    sender: Option<mpsc::Sender<(usize, Signal)>>,
    joining: mpsc::UnboundedReceiver<Draft>,
    /// What is asked from outside, which keeps nothing running.
    questions: mpsc::UnboundedReceiver<Question>,
    tasks: Vec<Task<()>>,
    /// Where the caches of sources are entered, and it is noted which stores they read.
    joint: Joint,
    pauses: Option<Pauses>,
    /// How sources are told that the server may answer again.
    back: Arc<Notify>,
    /// Whether the log has told of the client.
    told: Arc<Once>,
}

/// The pauses after failures that the user wants, instead of none but the sources' own.
#[derive(Clone)]
pub(super) struct Pauses(Arc<Mutex<dyn Backoff>>);

// === impl Intake ===

impl Intake {
    /// Starts the sources. Must be called in a tokio runtime.
    pub(super) fn start(
        sources: Vec<Draft>,
        joining: mpsc::UnboundedReceiver<Draft>,
        questions: mpsc::UnboundedReceiver<Question>,
        pauses: Option<Pauses>,
        joint: Joint,
        back: Arc<Notify>,
    ) -> Self {
        let (sender, signals) = mpsc::channel(SIGNALS);
        let mut intake = Self {
            signals,
            sender: Some(sender),
            joining,
            questions,
            tasks: Vec::new(),
            joint,
            pauses,
            back,
            told: Arc::new(Once::new()),
        };
        for source in sources {
            intake.join(source);
        }
        intake
    }

    /// Starts a source and gives it its number.
    fn join(&mut self, draft: Draft) -> usize {
        let mut source = draft.start(&self.joint);
        let number = self.joint.covers.number();
        if let Some(store) = &source.store {
            self.joint.registry.know(store);
        }
        if let Some(cover) = source.cover.take() {
            self.joint.covers.add(number, cover);
        }
        if let Some(sender) = self.sender.clone() {
            let told = Arc::clone(&self.told);
            let registry = Arc::clone(&self.joint.registry);
            let forward = forward(number, source, sender, self.pauses.clone(), told, registry);
            let reader = Reader::of_source(Arc::clone(&self.joint.registry));
            let forward = reading(Arc::new(reader), client::noting_requests(forward));
            let forward = recovery::told_by(Arc::clone(&self.back), forward);
            self.tasks.push(task::start(forward));
        }
        number
    }
}

impl Stream for Intake {
    type Item = (usize, Signal);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(question)) = self.questions.poll_recv(cx) {
            return Poll::Ready(Some((0, Signal::Asked(question))));
        }
        if self.sender.is_some() {
            match self.joining.poll_recv(cx) {
                Poll::Ready(Some(source)) => {
                    let joined = Signal::Joined {
                        label: source.label.clone(),
                        syncs: source.syncs,
                    };
                    let number = self.join(source);
                    return Poll::Ready(Some((number, joined)));
                }
                Poll::Ready(None) => self.sender = None,
                Poll::Pending => {}
            }
        }
        self.signals.poll_recv(cx)
    }
}

/// Passes on what a source says until it ends, or nobody listens.
async fn forward(
    number: usize,
    mut source: Source,
    sender: mpsc::Sender<(usize, Signal)>,
    pauses: Option<Pauses>,
    told: Arc<Once>,
    registry: Arc<Registry>,
) {
    // A poll comes to the stores that the source follows, and from then on they are waited for.
    let mut first = Some(futures::poll!(source.signals.next()));
    if !source.syncs && sender.send((number, Signal::Started)).await.is_err() {
        return;
    }
    loop {
        let signal = match first.take() {
            Some(Poll::Ready(signal)) => signal,
            Some(Poll::Pending) | None => source.signals.next().await,
        };
        let Some(signal) = signal else {
            return;
        };
        if source.asks && !matches!(client::requests_noted(), Noted::Nothing) {
            registry.set_tracked();
        }
        if source.asks && matches!(signal, Signal::Synced) {
            tell_client(&source.label, client::requests_noted(), &told);
        }
        let pause = pauses.as_ref().and_then(|pauses| pauses.after(&signal));
        if sender.send((number, signal)).await.is_err() {
            return;
        }
        if let Some(until) = pause {
            sleep_until(until).await;
        }
    }
}

/// Warns once of a client that does less for the controller than it could.
fn tell_client(label: &str, noted: Noted, told: &Once) {
    match noted {
        Noted::Settled => {}
        Noted::Tracked => told.call_once(|| {
            tracing::warn!(
                source = label,
                "it is not known whether the client of a controller sends requests again by itself, which can take \
                 minutes when the server does not answer; make the client with homeostat::client::Tracked::client, or \
                 say that you know with a layer of homeostat::client::Settings"
            );
        }),
        Noted::Nothing => told.call_once(|| {
            tracing::warn!(
                source = label,
                "the client of a controller does not record what reconcilers write, so their next runs do not wait \
                 for it, and reports of reconcile loops cannot say what it is; it may send requests again by itself for minutes, and wait \
                 without end for a server that says nothing; make the client with homeostat::client::Tracked"
            );
        }),
    }
}

// === impl Pauses ===

impl Pauses {
    pub(super) fn new(backoff: impl Backoff + 'static) -> Self {
        Self(Arc::new(Mutex::new(backoff)))
    }

    /// Until when a source that said `signal` is left alone.
    fn after(&self, signal: &Signal) -> Option<Instant> {
        /// What a backoff that gives up is taken to mean: a source is never given up.
        const LONGEST: Duration = Duration::from_secs(300);
        let mut backoff = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match signal {
            Signal::Failed(_) => Some(Instant::now() + backoff.next().unwrap_or(LONGEST)),
            Signal::Synced | Signal::Recovered => {
                backoff.reset();
                None
            }
            Signal::Trigger { .. }
            | Signal::Passed(_)
            | Signal::TriggerAll
            | Signal::Gone(_)
            | Signal::ObjectFailed(_)
            | Signal::StoreLost(_)
            | Signal::Started
            | Signal::Asked(_)
            | Signal::Joined { .. } => None,
        }
    }
}
