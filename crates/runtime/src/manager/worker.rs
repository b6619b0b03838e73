//! Drives one controller or task until it has ended.

use super::{
    Stopping,
    handle::Shared,
    unit::{Body, Start},
};
use crate::{
    controller::{About, Leading, Stage, Surroundings, managed},
    task::{Completion, Guarded},
    term::{Duty, Term},
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use std::sync::{Arc, OnceLock};
use tokio::sync::{oneshot, watch};

/// What one worker is told, and whom it tells.
pub(super) struct Worker {
    pub(super) id: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) surroundings: Surroundings,
    /// Told when it has joined the watches that it follows.
    pub(super) joined: oneshot::Sender<()>,
}

/// Counts a task that is bound to leadership, for as long as it runs.
struct Busy(watch::Sender<usize>);

// === impl Worker ===

impl Worker {
    pub(super) async fn work(self, body: Body) -> Result<(), String> {
        match body {
            Body::Controller(items) => {
                let surroundings = self.surroundings.clone();
                managed(surroundings, self.control(items)).await
            }
            Body::Task(start) => self.run_task(start).await,
        }
    }

    async fn control(self, items: BoxStream<'static, Result<(), String>>) -> Result<(), String> {
        let mut items = watched(items, Arc::clone(&self.surroundings.about));
        let first = futures::poll!(items.next());
        if let Some(about) = self.surroundings.about.get() {
            let mut units = self.shared.units();
            if let Some(known) = units.get(&self.id)
                && known.name.is_empty()
            {
                let kind = about.kind.to_lowercase();
                drop(units);
                let name = self.shared.name(&kind);
                units = self.shared.units();
                if let Some(known) = units.get_mut(&self.id) {
                    known.name = name;
                }
            }
        }
        // Nobody waits for one that is added later.
        let _told = self.joined.send(());
        let mut next = match first {
            std::task::Poll::Ready(item) => item,
            std::task::Poll::Pending => items.next().await,
        };
        while let Some(item) = next {
            if let Err(error) = item {
                let units = self.shared.units();
                let name = units.get(&self.id).map_or("", |known| &known.name);
                tracing::warn!(controller = name, error, "a controller reports an error");
            }
            next = items.next().await;
        }
        if *self.surroundings.stage.borrow() == Stage::Run {
            return Err("it ended by itself".into());
        }
        Ok(())
    }

    async fn run_task(self, mut start: Start) -> Result<(), String> {
        let Self {
            id,
            shared,
            surroundings,
            joined,
        } = self;
        // A task has no watches that others share.
        drop(joined);
        let Surroundings {
            mut stage, leading, ..
        } = surroundings;
        loop {
            let busy = tokio::select! {
                biased;
                () = at_least(&mut stage, Stage::Drain) => return Ok(()),
                busy = begin(leading.as_ref()) => busy,
            };
            set_works(&shared, id, true);
            let (stop, stopping) = Stopping::new();
            let mut told = stage.clone();
            let tell = async {
                tokio::select! {
                    () = at_least(&mut told, Stage::Drain) => {}
                    () = asked_to_yield(leading.as_ref()) => {}
                }
                stop.send_replace(true);
                std::future::pending::<()>().await;
            };
            let ended = tokio::select! {
                biased;
                () = at_least(&mut stage, Stage::End) => return Ok(()),
                () = deposed(leading.as_ref()) => None,
                completion = guarded(start(stopping), leading.as_ref()) => match completion {
                    Completion::Returned(result) => Some(result.map_err(|error| error.to_string())),
                    Completion::Panicked(panic) => Some(Err(format!("it panicked: {panic}"))),
                    Completion::Deposed | Completion::TimedOut(_) => None,
                },
                () = tell => None,
            };
            set_works(&shared, id, false);
            drop(busy);
            let may_begin_again = leading.is_some() && *stop.borrow();
            match ended {
                Some(Err(error)) => return Err(error),
                // It was told to make room for another replica, and did.
                Some(Ok(())) if may_begin_again && *stage.borrow() == Stage::Run => {
                    deposed(leading.as_ref()).await;
                }
                Some(Ok(())) => return Ok(()),
                None => {}
            }
        }
    }
}

/// The same stream, and its controller can tell for how long it is being polled.
fn watched(
    mut items: BoxStream<'static, Result<(), String>>,
    about: Arc<OnceLock<About>>,
) -> BoxStream<'static, Result<(), String>> {
    stream::poll_fn(move |cx| {
        let tell = |polled| {
            if let Some(about) = about.get() {
                about.meter().set_polled(polled);
            }
        };
        tell(true);
        let item = items.poll_next_unpin(cx);
        tell(false);
        item
    })
    .boxed()
}

fn set_works(shared: &Shared, id: u64, works: bool) {
    if let Some(known) = shared.units().get_mut(&id) {
        known.works = works;
    }
}

/// A task that goes no further than its term of leadership.
fn guarded<F: Future>(task: F, leading: Option<&Leading>) -> Guarded<F> {
    Guarded::new(task, None).within(leading.map(|leading| leading.term.fence()))
}

/// Waits until it is its turn.
async fn begin(leading: Option<&Leading>) -> Option<Busy> {
    let leading = leading?;
    let mut duty = leading.duty.clone();
    if duty.wait_for(|duty| *duty == Duty::Work).await.is_err() {
        std::future::pending::<()>().await;
    }
    leading.running.send_modify(|running| *running += 1);
    Some(Busy(leading.running.clone()))
}

/// Completes when this replica does not lead.
async fn deposed(leading: Option<&Leading>) {
    let Some(Leading { duty, term, .. }) = leading else {
        return std::future::pending().await;
    };
    let (mut duty, term): (_, &Term) = (duty.clone(), term);
    // Nothing goes on when the time is over, even if nobody could tell yet.
    if term.holds() && duty.wait_for(|duty| *duty == Duty::Standby).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Completes when this replica is to make room for another one.
async fn asked_to_yield(leading: Option<&Leading>) {
    let Some(leading) = leading else {
        return std::future::pending().await;
    };
    let mut duty = leading.duty.clone();
    if duty.wait_for(|duty| *duty != Duty::Work).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Completes when it is to stop so far.
async fn at_least(stage: &mut watch::Receiver<Stage>, wanted: Stage) {
    // When the manager is gone, everything is to end.
    let _gone = stage.wait_for(|stage| *stage >= wanted).await;
}

// === impl Busy ===

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}
