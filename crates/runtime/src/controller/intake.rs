//! Drives the sources of a controller and gathers what they say.

use super::source::{Signal, Source};
use crate::{
    task::{self, Task},
    utils::Backoff,
};
use futures::{Stream, StreamExt};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::mpsc,
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
    joining: mpsc::UnboundedReceiver<Source>,
    tasks: Vec<Task<()>>,
    pauses: Option<Pauses>,
}

/// The pauses after failures that the user wants, instead of none but the sources' own.
#[derive(Clone)]
pub(super) struct Pauses(Arc<Mutex<dyn Backoff>>);

// === impl Intake ===

impl Intake {
    /// Starts the sources. Must be called in a tokio runtime.
    pub(super) fn start(
        sources: Vec<Source>,
        joining: mpsc::UnboundedReceiver<Source>,
        pauses: Option<Pauses>,
    ) -> Self {
        let (sender, signals) = mpsc::channel(SIGNALS);
        let mut intake = Self {
            signals,
            sender: Some(sender),
            joining,
            tasks: Vec::new(),
            pauses,
        };
        for source in sources {
            intake.join(source);
        }
        intake
    }

    /// Starts a source and gives it its number.
    fn join(&mut self, source: Source) -> usize {
        let number = self.tasks.len();
        if let Some(sender) = self.sender.clone() {
            let forward = forward(number, source, sender, self.pauses.clone());
            self.tasks.push(task::start(forward));
        }
        number
    }
}

impl Stream for Intake {
    type Item = (usize, Signal);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
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
) {
    while let Some(signal) = source.signals.next().await {
        let pause = pauses.as_ref().and_then(|pauses| pauses.after(&signal));
        if sender.send((number, signal)).await.is_err() {
            return;
        }
        if let Some(until) = pause {
            sleep_until(until).await;
        }
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
            | Signal::TriggerAll
            | Signal::Gone(_)
            | Signal::ObjectFailed(_)
            | Signal::StoreLost(_)
            | Signal::Joined { .. } => None,
        }
    }
}
