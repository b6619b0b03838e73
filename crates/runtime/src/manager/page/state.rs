//! What the page shows, as JSON.

use super::Handle;
use crate::{
    controller::{About, KeyStatus, Overview},
    manager::UnitStatus,
};
use futures::future::join_all;
use homeostat_core::queue::State;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// How many keys of a kind are shown for each controller.
const KEYS: usize = 100;

pub(super) async fn state(
    handle: &Handle,
    controllers: Vec<(String, Arc<OnceLock<About>>)>,
    samples: Value,
    has_token: bool,
) -> Value {
    let status = handle.status();
    let overviews = controllers.into_iter().map(|(name, about)| async move {
        let about = about.get()?;
        let overview = about.asker.ask(|desk| desk.overview(KEYS)).await?;
        Some((name, about.kind.clone(), overview))
    });
    let overviews: Vec<_> = join_all(overviews).await;
    let units = status.units.iter().map(|unit| {
        let overview = overviews
            .iter()
            .flatten()
            .find(|(name, ..)| *name == unit.name);
        unit_value(unit, overview)
    });
    let units: Vec<Value> = units.collect();
    let leadership = status
        .leadership
        .as_ref()
        .map(|leadership| json!({ "leads": leadership.leads, "holder": leadership.holder }));
    json!({
        "ready": status.ready,
        "stopping": status.stopping,
        "waits_for": status.waits_for,
        "leadership": leadership,
        "watches": status.watches,
        "units": units,
        "samples": samples,
        "actions": has_token,
    })
}

fn unit_value(unit: &UnitStatus, overview: Option<&(String, String, Overview)>) -> Value {
    let counts = unit.counts.as_ref().map(|counts| {
        json!({
            "runs": counts.runs,
            "failures": counts.failures,
            "requests": counts.requests,
            "writes": counts.writes,
            "vain_writes": counts.vain_writes,
            "self_triggered_runs": counts.self_triggered_runs,
            "loops": counts.loops,
            "outages": counts.outages,
        })
    });
    let overview = overview.map(|(_, kind, overview)| {
        let queue = overview.counts;
        let keys = |keys: &[KeyStatus]| keys.iter().map(key_value).collect::<Vec<_>>();
        let incidents = overview.incidents.iter();
        let incidents = incidents.map(|(key, told)| json!({ "object": place(key), "told": told }));
        json!({
            "kind": kind,
            "objects": overview.objects,
            "queue": {
                "waiting": queue.waiting,
                "backing_off": queue.backing_off,
                "parked": queue.parked,
                "ready": queue.ready,
                "running": queue.running,
            },
            "failing": overview.failing,
            "failed": keys(&overview.failed),
            "running": keys(&overview.running),
            "loops": incidents.collect::<Vec<_>>(),
        })
    });
    json!({
        "name": unit.name,
        "phase": unit.phase.to_string(),
        "waits_for": unit.waits_for,
        "counts": counts,
        "overview": overview,
    })
}

fn place(key: &crate::reflector::ObjectKey) -> Value {
    json!({ "namespace": key.namespace_if_any(), "name": key.name() })
}

pub(super) fn key_value(status: &KeyStatus) -> Value {
    let KeyStatus {
        key,
        state,
        run_in,
        running_for,
        failures,
        error,
        reason,
    } = status;
    let state = match state {
        None => "at rest",
        Some(State::Waiting) => "waits for its time",
        Some(State::BackingOff) => "backs off",
        Some(State::Parked) => "waits for a change",
        Some(State::Ready) => "waits for a slot",
        Some(State::Running) => "runs",
    };
    json!({
        "object": place(key),
        "state": state,
        "run_in_s": run_in.map(|time| time.as_secs_f64()),
        "running_for_s": running_for.map(|time| time.as_secs_f64()),
        "failures": failures,
        "error": error.as_deref(),
        "reason": reason,
    })
}
