//! Which runs are driven where they are started.
//!
//! Many runs have nothing to do and end when they are polled for the first time. A task for each would cost more than
//! the run. Those that wait for something are better off in a task from the start, and those that compute for long
//! must not hold up the controller.

use crate::task::{Completion, Guarded};
use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::Instant;

/// How long the beginning of a run may take before the next ones get tasks.
const SHORT: Duration = Duration::from_micros(200);
/// After how many runs in a row that did not end at once the next ones get tasks.
const IN_VAIN: u32 = 4;
/// How many runs get tasks before it is tried again.
const TASKS: u32 = 64;

/// Learns from the runs so far.
#[derive(Debug, Default)]
pub(super) struct AtOnce {
    /// Runs in a row that were polled and did not end.
    in_vain: u32,
    /// How many of the next runs get tasks.
    tasks: u32,
}

// === impl AtOnce ===

impl AtOnce {
    /// Polls the next run once, if that is likely to be all. `None` if it has not ended: it goes on in a task, whose
    /// waker it asks for then.
    pub(super) fn poll<F: Future>(
        &mut self,
        run: &mut Guarded<F>,
    ) -> Option<Completion<F::Output>> {
        if let Some(left) = self.tasks.checked_sub(1) {
            self.tasks = left;
            return None;
        }
        let begin = Instant::now();
        let polled = Pin::new(run).poll(&mut Context::from_waker(Waker::noop()));
        let was_short = begin.elapsed() < SHORT;
        let completion = match polled {
            Poll::Ready(completion) => Some(completion),
            Poll::Pending => None,
        };
        self.in_vain = match completion {
            Some(_) => 0,
            None => self.in_vain + 1,
        };
        if !was_short || self.in_vain >= IN_VAIN {
            self.tasks = TASKS;
        }
        completion
    }
}

#[cfg(test)]
mod tests {
    use super::{AtOnce, IN_VAIN, TASKS};
    use crate::task::{Completion, Guarded};
    use std::future;

    fn poll(at_once: &mut AtOnce, future: impl Future<Output = u8>) -> bool {
        let mut run = Guarded::new(future, None);
        matches!(at_once.poll(&mut run), Some(Completion::Returned(1)))
    }

    #[tokio::test(start_paused = true)]
    async fn runs_that_wait_get_tasks() {
        let mut at_once = AtOnce::default();
        for _ in 0..100 {
            assert!(poll(&mut at_once, future::ready(1)));
        }
        for _ in 0..IN_VAIN {
            assert!(!poll(&mut at_once, future::pending()));
        }
        for _ in 0..TASKS {
            assert!(!poll(&mut at_once, future::ready(1)), "it is not polled");
        }
        assert!(poll(&mut at_once, future::ready(1)), "it is tried again");
    }
}
