//! A request of a run that is under way.

use super::{heard::How, run::Run};
use http::Request;
use std::sync::Arc;

/// A request of a run. It is under way until this is dropped.
pub(super) struct Flight {
    run: Arc<Run>,
    id: u32,
}

// === impl Flight ===

impl Flight {
    /// Takes note that a request of `run` is about to be sent.
    pub(super) fn begin<B>(run: Arc<Run>, request: &Request<B>) -> Self {
        let id = run.heard().depart(request);
        Self { run, id }
    }

    /// Takes note of how the request ended, or how it goes so far.
    pub(super) fn note(&self, how: How) {
        self.run.heard().note(how);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.run.heard().arrive(self.id);
    }
}
