//! Tells by tracing which reconcile a request belongs to, and keeps what the operator logs.
//!
//! Controllers of homeostat and of `kube::runtime` run each reconcile in a span of one name, so both are
//! known in the same way.

use crate::{log::Event, recorder::Recorder};
use std::{
    cell::RefCell,
    fmt::{self, Write as _},
};
use tracing::{
    Level, Metadata,
    field::{Field, Visit},
    span::{Attributes, Id},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

/// The span in which controllers run reconciles.
const SPAN: &str = "reconciling object";

thread_local! {
    /// The runs whose spans this thread is in, the innermost last.
    static RUNS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

struct Runs(Recorder);

/// The number of a run, kept by its span.
struct Number(u32);

/// The fields of a span or event as text.
#[derive(Default)]
struct Fields {
    object: String,
    reason: String,
    message: String,
    others: String,
}

/// Notes what this thread's operator does, until the guard is dropped.
pub(crate) fn note_in(recorder: Recorder) -> DefaultGuard {
    RUNS.with(|runs| runs.borrow_mut().clear());
    tracing::subscriber::set_default(Registry::default().with(Runs(recorder)))
}

/// The run that the present code belongs to.
pub(crate) fn current_run() -> Option<u32> {
    RUNS.with(|runs| runs.borrow().last().copied())
}

// === impl Runs ===

impl<S> Layer<S> for Runs
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        if metadata.is_span() {
            return metadata.name() == SPAN;
        }
        *metadata.level() <= Level::INFO && !metadata.target().starts_with("homeostat_apiserver")
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::INFO)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let number = self.0.begin_run(fields.object, fields.reason);
        if let Some(span) = ctx.span(id) {
            span.extensions_mut().insert(Number(number));
        }
    }

    fn on_enter(&self, id: &Id, ctx: Context<'_, S>) {
        let number = ctx.span(id);
        let number = number.and_then(|span| span.extensions().get::<Number>().map(|n| n.0));
        if let Some(number) = number {
            RUNS.with(|runs| runs.borrow_mut().push(number));
        }
    }

    fn on_exit(&self, id: &Id, ctx: Context<'_, S>) {
        let known = ctx.span(id);
        if known.is_some_and(|span| span.extensions().get::<Number>().is_some()) {
            RUNS.with(|runs| runs.borrow_mut().pop());
        }
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let (level, target) = (metadata.level(), metadata.target());
        let Fields {
            message, others, ..
        } = fields;
        let text = format!("{level} {target}: {message}{others}");
        self.0.note(Event::Said(text));
    }
}

// === impl Fields ===

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "object.ref" => &mut self.object,
            "object.reason" => &mut self.reason,
            "message" => &mut self.message,
            name => {
                // Writing to a text does not fail.
                let _ = write!(self.others, " {name}={value:?}");
                return;
            }
        };
        *text = format!("{value:?}");
    }
}
