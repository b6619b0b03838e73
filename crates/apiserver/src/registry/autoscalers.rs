//! Horizontal pod autoscalers: both versions show one object, which is stored as `autoscaling/v2`.

use serde_json::{Map, Value, json};

use crate::object;
use crate::resource::Resource;

/// Where the old version keeps what it has no members for: the place in the new version, and the
/// annotation. The annotations' values are written as the new version writes them.
const ANNOTATIONS: [(&str, &str, &str); 4] = [
    ("spec", "metrics", "autoscaling.alpha.kubernetes.io/metrics"),
    (
        "spec",
        "behavior",
        "autoscaling.alpha.kubernetes.io/behavior",
    ),
    (
        "status",
        "conditions",
        "autoscaling.alpha.kubernetes.io/conditions",
    ),
    (
        "status",
        "currentMetrics",
        "autoscaling.alpha.kubernetes.io/current-metrics",
    ),
];

/// Members of the old version that say in one number what a metric says in the new one: where they
/// are, where the metrics are, and what holds the number.
const NUMBERS: [(&str, &str, &str, &str); 2] = [
    (
        "spec",
        "targetCPUUtilizationPercentage",
        "metrics",
        "target",
    ),
    (
        "status",
        "currentCPUUtilizationPercentage",
        "currentMetrics",
        "current",
    ),
];

/// Whether the resource is the old version.
pub(super) fn is_old(resource: &Resource) -> bool {
    resource.version == "v1" && resource.is("autoscaling", "horizontalpodautoscalers")
}

/// Turns an object of the old version into one of the new version.
pub(super) fn to_new(object: &mut Value) {
    for (parent, member, annotation) in ANNOTATIONS {
        let text = object["metadata"]
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
            .and_then(|annotations| annotations.remove(annotation));
        let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
        // What cannot be read was written by somebody else and is lost, as in the recorded server.
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            object::member_mut(object, parent).insert(member.to_owned(), value);
        }
    }
    drop_empty_annotations(object);
    for (parent, number, list, holder) in NUMBERS {
        let members = object::member_mut(object, parent);
        let Some(number) = members.remove(number) else {
            continue;
        };
        let mut value = json!({ "averageUtilization": number });
        if holder == "target" {
            value["type"] = json!("Utilization");
        }
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", (holder): value } });
        if let Some(metrics) = list_mut(members, list) {
            metrics.push(metric);
        }
    }
    let spec = object::member_mut(object, "spec");
    if list_mut(spec, "metrics").is_some_and(|metrics| metrics.is_empty()) {
        spec.insert("metrics".to_owned(), default_metrics());
    }
    let status = object::member_mut(object, "status");
    status.entry("currentMetrics").or_insert(Value::Null);
    if status.get("currentReplicas") == Some(&json!(0)) {
        status.remove("currentReplicas");
    }
}

/// Turns an object of the new version into one of the old version.
pub(super) fn to_old(object: &mut Value) {
    for (parent, number, list, holder) in NUMBERS {
        let members = object::member_mut(object, parent);
        let Some(metrics) = members.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        let utilization = |metric: &Value| {
            let shown = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
            let value = &metric["resource"][holder]["averageUtilization"];
            (shown && !value.is_null()).then(|| value.clone())
        };
        let Some((index, value)) = metrics
            .iter()
            .enumerate()
            .find_map(|(index, metric)| Some((index, utilization(metric)?)))
        else {
            continue;
        };
        metrics.remove(index);
        members.insert(number.to_owned(), value);
    }
    for (parent, member, annotation) in ANNOTATIONS {
        let value = object::member_mut(object, parent).remove(member);
        let is_empty =
            |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if let Some(value) = value.filter(|value| !is_empty(value)) {
            object::metadata_mut(object);
            object::member_mut(&mut object["metadata"], "annotations")
                .insert(annotation.to_owned(), json!(value.to_string()));
        }
    }
    object::member_mut(object, "status")
        .entry("currentReplicas")
        .or_insert(json!(0));
}

/// The metric of whoever names none.
fn default_metrics() -> Value {
    json!([{
        "type": "Resource",
        "resource": {
            "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 },
        },
    }])
}

fn drop_empty_annotations(object: &mut Value) {
    let metadata = object::metadata_mut(object);
    if metadata.get("annotations") == Some(&json!({})) {
        metadata.remove("annotations");
    }
}

fn list_mut<'a>(members: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Vec<Value>> {
    let list = members.entry(name).or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that both forms lead to the other one.
    #[track_caller]
    fn check(old: &Value, new: &Value) {
        let mut shown = old.clone();
        to_new(&mut shown);
        assert_eq!(shown, *new);
        to_old(&mut shown);
        assert_eq!(shown, *old);
    }

    #[test]
    fn cpu_is_a_member() {
        check(
            &json!({
                "metadata": {},
                "spec": { "maxReplicas": 3, "targetCPUUtilizationPercentage": 60 },
                "status": { "currentReplicas": 0, "desiredReplicas": 0 },
            }),
            &json!({
                "metadata": {},
                "spec": { "maxReplicas": 3, "metrics": [{
                    "type": "Resource",
                    "resource": {
                        "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 60 },
                    },
                }] },
                "status": { "currentMetrics": null, "desiredReplicas": 0 },
            }),
        );
    }

    #[test]
    fn the_rest_is_in_annotations() {
        let metrics = json!([{ "type": "Pods", "pods": { "metric": { "name": "m" } } }]);
        let conditions = json!([{ "type": "AbleToScale", "status": "True" }]);
        check(
            &json!({
                "metadata": { "annotations": {
                    "autoscaling.alpha.kubernetes.io/metrics": metrics.to_string(),
                    "autoscaling.alpha.kubernetes.io/conditions": conditions.to_string(),
                    "own": "a",
                } },
                "spec": {},
                "status": { "currentCPUUtilizationPercentage": 40, "currentReplicas": 2 },
            }),
            &json!({
                "metadata": { "annotations": { "own": "a" } },
                "spec": { "metrics": metrics },
                "status": {
                    "conditions": conditions,
                    "currentReplicas": 2,
                    "currentMetrics": [{
                        "type": "Resource",
                        "resource": { "name": "cpu", "current": { "averageUtilization": 40 } },
                    }],
                },
            }),
        );
    }

    #[test]
    fn who_names_no_metric_gets_one() {
        let mut object = json!({ "metadata": {}, "spec": {}, "status": {} });
        to_new(&mut object);
        assert_eq!(object["spec"]["metrics"], default_metrics());
    }
}
