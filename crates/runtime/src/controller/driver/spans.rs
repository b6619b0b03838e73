//! The spans of runs, and of the events that they answer.
//!
//! A run answers all events that have come since the one before. Whoever follows a change through the system wants to see
//! the event, the run and its requests as one trace. So the span of a run is inside of the span of the first of its
//! events, and follows from the others.

use crate::{
    controller::{Error, history::Record},
    reflector::ObjectKey,
};
use homeostat_core::queue::Causes;
use std::{collections::BTreeMap, fmt::Display, time::Duration};
use tracing::{Span, debug, field, info_span, trace_span};

/// The target of the spans of events. They have one of their own because few people want them: they cost memory for each
/// event that waits for its run, and without a collector of traces they only make lines of the log longer.
const EVENTS: &str = "homeostat::events";

/// The spans of events that no run has answered yet. A span lasts until the run starts, so its duration is how
/// long the event has waited.
#[derive(Default)]
pub(super) struct Events(BTreeMap<ObjectKey, Vec<Span>>);

impl Events {
    /// How many events of a run are kept apart, as of its causes.
    const LIMIT: usize = Causes::<()>::LIMIT;

    /// An event asks for a run.
    pub(super) fn heard(&mut self, key: &ObjectKey, reason: &dyn Display) {
        let span = trace_span!(target: EVENTS, "event", object.key = %key, object.reason = %reason);
        if span.is_disabled() {
            return;
        }
        let spans = self.0.entry(key.clone()).or_default();
        if spans.len() < Self::LIMIT {
            spans.push(span);
        }
    }

    /// Nobody waits any more for a run of this key.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        self.0.remove(key);
    }

    /// The span of a run that answers what has been heard.
    pub(super) fn answer<O: Display>(
        &mut self,
        key: &ObjectKey,
        object: impl Fn() -> O,
        reason: impl Fn() -> String,
        attempt: u32,
    ) -> Span {
        let make = || {
            info_span!(
                "reconciling object",
                object.ref = %object(),
                object.reason = %reason(),
                attempt,
                outcome = field::Empty,
                otel.status_code = field::Empty,
            )
        };
        let events = self.0.remove(key).unwrap_or_default();
        let Some((first, others)) = events.split_first() else {
            return make();
        };
        let span = first.in_scope(make);
        for other in others {
            span.follows_from(other);
        }
        span
    }
}

/// Tells of a run in its span, for those who debug, and notes there how it ended.
pub(super) fn tell_run(span: &Span, outcome: &str, record: &Record, next_run: Option<Duration>) {
    span.in_scope(|| {
        debug!(
            outcome,
            error = record.error,
            duration = ?record.ended.since(record.started),
            requests = record.requests,
            writes = record.writes.len(),
            next_run_in = next_run.map(field::debug),
            "reconciled"
        );
    });
    span.record("outcome", outcome);
    if record.error.is_some() {
        // The name by which OpenTelemetry knows that a span has failed.
        span.record("otel.status_code", "ERROR");
    }
}

/// How a run ended, in a word.
pub(super) fn outcome<T, E, Q>(item: &Result<T, Error<E, Q>>) -> &'static str {
    match item {
        Ok(_) => "succeeded",
        Err(Error::ReconcilerPanicked(..)) => "panicked",
        Err(Error::ReconcileTimeout(..)) => "timed out",
        Err(
            Error::ReconcilerFailed(..)
            | Error::ObjectNotFound(_)
            | Error::QueueError(_)
            | Error::RunnerError(_)
            | Error::ReconcileCancelled(_),
        ) => "failed",
    }
}
