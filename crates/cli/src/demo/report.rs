//! What came of the demo.

use super::{scenario::Outcome, stage::Stage};
use serde_json::json;
use std::fmt;

/// What came of the demo.
#[derive(Debug)]
pub(super) struct Report {
    converged: bool,
    reconciles: u64,
    failures: u64,
    forced: usize,
    forced_writes: usize,
    requests: usize,
    writes: usize,
    seconds: f64,
}

// === impl Report ===

impl Report {
    pub(super) fn new(stage: &Stage, outcome: &Outcome) -> Self {
        let requests = stage.operator_requests();
        let forced = outcome.as_ref().ok().copied().unwrap_or_default();
        Self {
            converged: outcome.is_ok() && forced.writes == 0,
            reconciles: stage.ctx.metrics.reconciles.get(),
            failures: stage.ctx.metrics.failures.get(),
            forced: forced.runs,
            forced_writes: forced.writes,
            writes: requests.iter().filter(|request| request.changed).count(),
            requests: requests.len(),
            seconds: stage.narrator.seconds(),
        }
    }

    pub(super) fn converged(&self) -> bool {
        self.converged
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let Self {
            converged,
            reconciles,
            failures,
            forced,
            forced_writes,
            requests,
            writes,
            seconds,
        } = self;
        json!({
            "converged": converged,
            "reconciles": reconciles,
            "failures": failures,
            "requests": requests,
            "writes": writes,
            "reconciles_after_convergence": forced,
            "writes_after_convergence": forced_writes,
            "seconds": (seconds * 1000.0).round() / 1000.0,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            converged: _,
            reconciles,
            failures,
            forced,
            forced_writes,
            requests,
            writes,
            seconds,
        } = self;
        writeln!(
            f,
            "   {reconciles} reconciles, {failures} of them failed on purpose"
        )?;
        writeln!(
            f,
            "   {requests} requests of the operator, {writes} of them changed something"
        )?;
        writeln!(
            f,
            "   the last {forced} reconciles, which were forced, made {forced_writes} writes"
        )?;
        write!(f, "   {seconds:.1} s")
    }
}
