use serde_json::{Value, json};

use super::{Row, joined, scalar};
use crate::http::table::age;
use crate::resource::group_of;

/// Where most workloads have their containers.
const CONTAINERS: &str = "spec.template.spec.containers";

/// Columns of everything that makes Pods from a template.
fn template(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Containers" => Some(row.containers(CONTAINERS, "name")),
        "Images" => Some(row.containers(CONTAINERS, "image")),
        "Selector" => Some(row.selector("spec.selector")),
        _ => None,
    }
}

/// `ready/desired`
fn of_desired(row: Row<'_>) -> Value {
    let ready = row.count("status.readyReplicas");
    json!(format!("{ready}/{}", row.count("spec.replicas")))
}

pub(super) fn deployment(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Ready" => of_desired(row),
        "Up-to-date" => json!(row.count("status.updatedReplicas")),
        "Available" => json!(row.count("status.availableReplicas")),
        _ => return template(column, row),
    };
    Some(cell)
}

/// `ReplicaSet`s, and `ReplicationController`s, whose selector is a map.
pub(super) fn replica_set(column: &str, row: Row<'_>) -> Option<Value> {
    let selector = row.at("spec.selector");
    let cell = match column {
        "Desired" => json!(row.count("spec.replicas")),
        "Current" => json!(row.count("status.replicas")),
        "Ready" => json!(row.count("status.readyReplicas")),
        "Selector"
            if selector["matchLabels"].is_null() && selector["matchExpressions"].is_null() =>
        {
            row.pairs("spec.selector")
        }
        _ => return template(column, row),
    };
    Some(cell)
}

pub(super) fn stateful_set(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Ready" => Some(of_desired(row)),
        _ => template(column, row),
    }
}

pub(super) fn daemon_set(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Desired" => json!(row.count("status.desiredNumberScheduled")),
        "Current" => json!(row.count("status.currentNumberScheduled")),
        "Ready" => json!(row.count("status.numberReady")),
        "Up-to-date" => json!(row.count("status.updatedNumberScheduled")),
        "Available" => json!(row.count("status.numberAvailable")),
        "Node Selector" => row.pairs("spec.template.spec.nodeSelector"),
        _ => return template(column, row),
    };
    Some(cell)
}

pub(super) fn controller_revision(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Controller" => {
            let owners = row.list("metadata.ownerReferences").iter();
            let controller = owners.clone().find(|owner| owner["controller"] == true);
            let shown = controller.map_or_else(
                || "<none>".to_owned(),
                |owner| {
                    let text = |member: &str| owner[member].as_str().unwrap_or_default();
                    let kind = text("kind").to_lowercase();
                    match group_of(text("apiVersion")) {
                        "" => format!("{kind}/{}", text("name")),
                        group => format!("{kind}.{group}/{}", text("name")),
                    }
                },
            );
            Some(json!(shown))
        }
        "Revision" => Some(json!(row.count("revision"))),
        _ => None,
    }
}

pub(super) fn job(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Status" => json!(job_status(row)),
        "Completions" => {
            let succeeded = row.count("status.succeeded");
            let parallel = row.count("spec.parallelism");
            json!(match row.at("spec.completions").as_i64() {
                Some(wanted) => format!("{succeeded}/{wanted}"),
                None if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
                None => format!("{succeeded}/1"),
            })
        }
        "Duration" => {
            let start = row.at("status.startTime");
            let end = row.at("status.completionTime");
            json!(match age::between(start, end) {
                Some(took) => took,
                None if start.is_string() => age::since(start, row.now),
                None => String::new(),
            })
        }
        _ => return template(column, row),
    };
    Some(cell)
}

fn job_status(row: Row<'_>) -> &'static str {
    let is = |kind| row.condition(kind) == "True";
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if row.is_being_deleted() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

pub(super) fn cron_job(column: &str, row: Row<'_>) -> Option<Value> {
    let containers = "spec.jobTemplate.spec.template.spec.containers";
    let cell = match column {
        "Schedule" => row.text_or("spec.schedule", ""),
        "Timezone" => row.text_or("spec.timeZone", "<none>"),
        "Suspend" => json!(match row.at("spec.suspend").as_bool() {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        }),
        "Active" => json!(row.list("status.active").len()),
        "Last Schedule" if row.at("status.lastScheduleTime").is_null() => json!("<none>"),
        "Last Schedule" => json!(row.age("status.lastScheduleTime")),
        "Containers" => row.containers(containers, "name"),
        "Images" => row.containers(containers, "image"),
        "Selector" => row.selector("spec.jobTemplate.spec.selector"),
        _ => return None,
    };
    Some(cell)
}

pub(super) fn pod_template(column: &str, row: Row<'_>) -> Option<Value> {
    let containers = "template.spec.containers";
    match column {
        "Containers" => Some(row.containers(containers, "name")),
        "Images" => Some(row.containers(containers, "image")),
        "Pod Labels" => Some(row.pairs("template.metadata.labels")),
        _ => None,
    }
}

pub(super) fn autoscaler(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Reference" => {
            let (kind, name) = ("spec.scaleTargetRef.kind", "spec.scaleTargetRef.name");
            json!(format!("{}/{}", row.text(kind), row.text(name)))
        }
        "Targets" => json!(targets(row)),
        "MinPods" => row.scalar_or("spec.minReplicas", "<unset>"),
        "MaxPods" => json!(row.count("spec.maxReplicas")),
        "Replicas" => json!(row.count("status.currentReplicas")),
        _ => return None,
    };
    Some(cell)
}

/// What the autoscaler sees and what it aims at, metric by metric.
fn targets(row: Row<'_>) -> String {
    if let Some(aim) = row.at("spec.targetCPUUtilizationPercentage").as_i64() {
        let current = row.at("status.currentCPUUtilizationPercentage").as_i64();
        let current = current.map_or("<unknown>".to_owned(), |seen| format!("{seen}%"));
        return format!("cpu: {current}/{aim}%");
    }
    let current = row.list("status.currentMetrics");
    let metrics: Vec<String> = row
        .list("spec.metrics")
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    super::first_few(metrics, 2, ", ")
}

fn target(metric: &Value, current: &Value) -> String {
    let kind = metric["type"].as_str().unwrap_or_default();
    let member = match kind {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let (aim, seen) = (&metric[member]["target"], &current[member]["current"]);
    let found = ["averageUtilization", "averageValue", "value"]
        .into_iter()
        .find_map(|name| Some((name, scalar(&aim[name])?)));
    let Some((name, aim)) = found else {
        return "<unknown>/<auto>".to_owned();
    };
    let unit = if name == "averageUtilization" {
        "%"
    } else {
        ""
    };
    let seen = scalar(&seen[name]).map_or("<unknown>".to_owned(), |seen| format!("{seen}{unit}"));
    let pair = format!("{seen}/{aim}{unit}");
    match metric[member]["name"].as_str() {
        Some(name) => format!("{name}: {pair}"),
        None if name == "averageValue" && kind != "Pods" => format!("{pair} (avg)"),
        None => pair,
    }
}

/// The modes in which a volume can be mounted, shortened.
pub(super) fn access_modes(modes: &Value) -> String {
    joined(modes, ",")
        .replace("ReadWriteOncePod", "RWOP")
        .replace("ReadWriteOnce", "RWO")
        .replace("ReadOnlyMany", "ROX")
        .replace("ReadWriteMany", "RWX")
}
