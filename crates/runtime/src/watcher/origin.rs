//! Which watch the events of a stream come from.
//!
//! A stream of events goes through adapters of anybody's, and none of them knows the watch at its other end. But
//! a poll of the stream polls the watch, so the watch says who it is then, to whoever wants to hear it.

use super::{Config, source::Target};
use std::{
    cell::RefCell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

tokio::task_local! {
    /// The watches that were polled.
    static HEARD: RefCell<Heard>;
}

/// What a watch asks for, and whether it gets it.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) target: Target,
    pub(crate) label_selector: Option<String>,
    pub(crate) field_selector: Option<String>,
    failing: AtomicBool,
}

/// The watches that a poll came to.
#[derive(Debug)]
pub(crate) enum Heard {
    /// No watch of this crate.
    Nothing,
    One(Arc<Origin>),
    /// What they deliver together, no selector tells.
    Several,
}

/// Polls a stream with `poll`, and tells which watches that came to.
pub(crate) fn hear<T>(poll: impl FnOnce() -> T) -> (T, Heard) {
    HEARD.sync_scope(RefCell::new(Heard::Nothing), || {
        let output = poll();
        let heard = HEARD.with(|heard| heard.replace(Heard::Nothing));
        (output, heard)
    })
}

// === impl Origin ===

impl Origin {
    pub(crate) fn new(target: Target, config: &Config) -> Self {
        Self {
            target,
            label_selector: config.label_selector.clone(),
            field_selector: config.field_selector.clone(),
            failing: AtomicBool::new(false),
        }
    }

    /// Tells whoever listens that this watch is polled.
    pub(super) fn announce(self: &Arc<Self>) {
        let heard = |heard: &RefCell<Heard>| heard.borrow_mut().add(self);
        // Mostly nobody listens.
        HEARD.try_with(heard).unwrap_or_default();
    }

    /// Takes in whether requests fail, and returns whether they did before.
    pub(super) fn set_failing(&self, failing: bool) -> bool {
        self.failing.swap(failing, Relaxed)
    }

    /// Whether the last request failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Relaxed)
    }
}

/// As in `pods in all namespaces, labels app=web`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            label_selector,
            field_selector,
            failing: _,
        } = self;
        write!(f, "{target}")?;
        for (what, selector) in [("labels", label_selector), ("fields", field_selector)] {
            if let Some(selector) = selector {
                write!(f, ", {what} {selector}")?;
            }
        }
        Ok(())
    }
}

// === impl Heard ===

impl Heard {
    fn add(&mut self, origin: &Arc<Origin>) {
        match self {
            Self::Nothing => *self = Self::One(Arc::clone(origin)),
            Self::One(other) if Arc::ptr_eq(other, origin) => {}
            Self::One(_) | Self::Several => *self = Self::Several,
        }
    }
}
