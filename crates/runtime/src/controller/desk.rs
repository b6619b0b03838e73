//! What a controller that runs is asked from outside.
//!
//! The controller answers by itself between two events, so questions cost nothing while nobody asks, and an answer is of
//! one moment.

use super::history::Explanation;
use crate::reflector::ObjectKey;
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

/// How long a controller may take to answer. One that takes longer is blocked, which the health check says.
const PATIENCE: Duration = Duration::from_secs(2);

/// Something to ask a controller.
pub(super) struct Question(Ask);

type Ask = Box<dyn FnOnce(&mut dyn Desk) + Send>;

/// Where a controller is asked.
pub(crate) struct Asker(mpsc::UnboundedSender<Question>);

/// A controller, to those who ask.
pub(crate) trait Desk {
    /// The keys that wait after a failure, and those that run, at most so many of each, those first that have failed
    /// most often or run for the longest time.
    fn overview(&self, limit: usize) -> Overview;

    /// The objects whose `namespace/name` has this text in it, in their order, at most so many.
    fn find(&self, text: &str, limit: usize) -> Vec<KeyStatus>;

    /// What is known of an object. `None` if there is none of this name.
    fn look_up(&self, namespace: Option<&str>, name: &str) -> Option<(KeyStatus, Explanation)>;

    /// Lets an object run as soon as a slot is free, whatever it waits for. False if there is none of this name.
    fn run_now(&mut self, namespace: Option<&str>, name: &str) -> bool;
}

/// What is going on in a controller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overview {
    /// How many objects the controller's cache has.
    pub(crate) objects: usize,
    pub(crate) counts: homeostat_core::queue::Counts,
    /// How many keys wait after a failure.
    pub(crate) failing: usize,
    pub(crate) failed: Vec<KeyStatus>,
    pub(crate) running: Vec<KeyStatus>,
    /// The loops that were found lately, each as text.
    pub(crate) incidents: Vec<(ObjectKey, String)>,
}

/// How a key is.
#[derive(Debug, Clone)]
pub(crate) struct KeyStatus {
    pub(crate) key: ObjectKey,
    /// `None` while nothing is planned and nothing runs: it rests until something changes.
    pub(crate) state: Option<homeostat_core::queue::State>,
    /// In how long it runs by itself.
    pub(crate) run_in: Option<Duration>,
    pub(crate) running_for: Option<Duration>,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// Of the last run, if it failed.
    pub(crate) error: Option<Arc<str>>,
    /// Why it is to run, or runs.
    pub(crate) reason: String,
}

// === impl Question ===

impl Question {
    pub(super) fn put_to(self, desk: &mut dyn Desk) {
        (self.0)(desk);
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Question")
    }
}

// === impl Asker ===

impl Asker {
    /// One who asks, and where the questions come out.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (sender, questions) = mpsc::unbounded_channel();
        (Self(sender), questions)
    }

    /// Asks, and waits for the answer. `None` if the controller has ended, or takes nothing in at this time.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Desk) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let question = move |desk: &mut dyn Desk| drop(reply.send(question(desk)));
        self.0.send(Question(Box::new(question))).ok()?;
        timeout(PATIENCE, answer).await.ok()?.ok()
    }
}
