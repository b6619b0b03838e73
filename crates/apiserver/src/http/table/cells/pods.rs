use jiff::Timestamp;
use serde_json::{Value, json};

use super::Row;
use crate::http::table::age;

pub(super) fn pod(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Ready" => ready(row),
        "Status" => json!(status(row)),
        "Restarts" => json!(restarts(row)),
        "IP" => {
            let first = row.list("status.podIPs").first();
            let ip = first.and_then(|ip| ip["ip"].as_str());
            json!(ip.unwrap_or(row.text("status.podIP")))
        }
        "Node" => row.text_or("spec.nodeName", "<none>"),
        "Nominated Node" => row.text_or("status.nominatedNodeName", "<none>"),
        "Readiness Gates" => gates(row),
        _ => return None,
    };
    // Where a Pod has no address yet, the column says so.
    Some(if cell == "" { json!("<none>") } else { cell })
}

/// Init containers that go on running beside the others.
fn sidecars(row: Row<'_>) -> impl Iterator<Item = &str> {
    let all = row.list("spec.initContainers").iter();
    all.filter(|one| one["restartPolicy"] == "Always")
        .filter_map(|one| one["name"].as_str())
}

fn ready(row: Row<'_>) -> Value {
    let total = row.list("spec.containers").len() + sidecars(row).count();
    let is_ready =
        |status: &&Value| status["ready"] == true && status["state"]["running"].is_object();
    let containers = row.list("status.containerStatuses").iter();
    let init = row.list("status.initContainerStatuses").iter();
    let init = init.filter(|status| sidecars(row).any(|name| status["name"] == name));
    let ready = containers.chain(init).filter(is_ready).count();
    json!(format!("{ready}/{total}"))
}

/// The reason of a container's state, where there is one.
fn state_reason(status: &Value) -> Option<String> {
    let state = &status["state"];
    let text = |value: &Value| {
        let text = value.as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    if let Some(reason) = text(&state["waiting"]["reason"]) {
        return Some(reason);
    }
    let ended = state["terminated"].as_object()?;
    let reason = ended.get("reason").and_then(text);
    reason.or_else(|| {
        let number = |name: &str| ended.get(name).and_then(Value::as_i64).unwrap_or_default();
        Some(match number("signal") {
            0 => format!("ExitCode:{}", number("exitCode")),
            signal => format!("Signal:{signal}"),
        })
    })
}

/// What holds the Pod up in its init containers.
fn init_status(row: Row<'_>) -> Option<String> {
    let total = row.list("spec.initContainers").len();
    let statuses = row.list("status.initContainerStatuses").iter();
    for (index, status) in statuses.enumerate() {
        let ended = &status["state"]["terminated"];
        if ended.is_object() && ended["exitCode"] == 0 {
            continue;
        }
        if sidecars(row).any(|name| status["name"] == name) && status["started"] == true {
            continue;
        }
        let waiting = status["state"]["waiting"]["reason"].as_str();
        if ended.is_object() || waiting.is_some_and(|reason| reason != "PodInitializing") {
            return state_reason(status).map(|reason| format!("Init:{reason}"));
        }
        return Some(format!("Init:{index}/{total}"));
    }
    None
}

fn status(row: Row<'_>) -> String {
    let phase = row.text("status.phase");
    let mut reason = row.text("status.reason").to_owned();
    if reason.is_empty() {
        phase.clone_into(&mut reason);
    }
    let conditions = row.list("status.conditions").iter();
    if conditions
        .clone()
        .any(|one| one["type"] == "PodScheduled" && one["reason"] == "SchedulingGated")
    {
        "SchedulingGated".clone_into(&mut reason);
    }
    if let Some(init) = init_status(row) {
        reason = init;
    } else {
        let mut running = false;
        for status in row.list("status.containerStatuses").iter().rev() {
            if let Some(found) = state_reason(status) {
                reason = found;
            } else if status["ready"] == true && status["state"]["running"].is_object() {
                running = true;
            }
        }
        // Some containers are done, others still run.
        if reason == "Completed" && running {
            let ready = row.condition("Ready") == "True";
            if ready { "Running" } else { "NotReady" }.clone_into(&mut reason);
        }
    }
    if row.is_being_deleted() {
        if row.text("status.reason") == "NodeLost" {
            return "Unknown".to_owned();
        }
        if !["Succeeded", "Failed"].contains(&phase) {
            return "Terminating".to_owned();
        }
    }
    reason
}

/// How often containers were restarted, and how long ago the last time was.
fn restarts(row: Row<'_>) -> String {
    let containers = row.list("status.containerStatuses").iter();
    let init = row.list("status.initContainerStatuses").iter();
    let init = init.filter(|status| sidecars(row).any(|name| status["name"] == name));
    let mut count = 0;
    let mut last: Option<Timestamp> = None;
    for status in containers.chain(init) {
        count += status["restartCount"].as_i64().unwrap_or_default();
        let ended = &status["lastState"]["terminated"]["finishedAt"];
        let ended = ended.as_str().and_then(|text| text.parse().ok());
        last = last.max(ended);
    }
    match last {
        Some(last) if count > 0 => {
            let ago = age::span(row.now.as_second() - last.as_second());
            format!("{count} ({ago} ago)")
        }
        _ => count.to_string(),
    }
}

fn gates(row: Row<'_>) -> Value {
    let gates = row.list("spec.readinessGates");
    if gates.is_empty() {
        return json!("<none>");
    }
    let open = gates
        .iter()
        .filter_map(|gate| gate["conditionType"].as_str())
        .filter(|kind| row.condition(kind) == "True")
        .count();
    json!(format!("{open}/{}", gates.len()))
}
