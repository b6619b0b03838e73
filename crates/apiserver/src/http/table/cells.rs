//! The cells of a row.

mod cluster;
mod network;
mod pods;
mod policy;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::environment::seconds;
use crate::object;
use crate::resource::{Column, Resource};

/// One object that is shown as a row.
#[derive(Clone, Copy)]
struct Row<'a> {
    object: &'a Value,
    now: Timestamp,
}

/// The cell of an object in a column. Null where nothing is known.
pub(super) fn cell(resource: &Resource, column: &Column, object: &Value, now: Timestamp) -> Value {
    let row = Row { object, now };
    if resource.is_custom() {
        return custom(column, row);
    }
    let name = column.name.as_str();
    builtin(resource, name, row)
        .or_else(|| shared(name, row))
        .unwrap_or_default()
}

/// A cell of a custom resource: what its path leads to, if it has the type of the column.
fn custom(column: &Column, row: Row<'_>) -> Value {
    let found = column.path.as_ref().and_then(|path| path.first(row.object));
    let Some(found) = found.filter(|found| !found.is_null()) else {
        // Every row has a name.
        return if column.format == "name" {
            json!("")
        } else {
            Value::Null
        };
    };
    match column.kind.as_str() {
        "integer" => found
            .as_i64()
            .or_else(|| found.as_f64()?.trunc().to_string().parse().ok())
            .map_or(Value::Null, Value::from),
        "number" if found.is_number() => found.clone(),
        "boolean" if found.is_boolean() => found.clone(),
        "string" => match found.as_str() {
            Some(text) => json!(text),
            None => json!(found.to_string()),
        },
        "date" if found.is_string() => json!(age::since(found, row.now)),
        _ => Value::Null,
    }
}

fn builtin(resource: &Resource, column: &str, row: Row<'_>) -> Option<Value> {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::pod(column, row),
        ("apps", "deployments") => workloads::deployment(column, row),
        ("apps", "replicasets") | ("", "replicationcontrollers") => {
            workloads::replica_set(column, row)
        }
        ("apps", "statefulsets") => workloads::stateful_set(column, row),
        ("apps", "daemonsets") => workloads::daemon_set(column, row),
        ("apps", "controllerrevisions") => workloads::controller_revision(column, row),
        ("batch", "jobs") => workloads::job(column, row),
        ("batch", "cronjobs") => workloads::cron_job(column, row),
        ("autoscaling", "horizontalpodautoscalers") => workloads::autoscaler(column, row),
        ("", "podtemplates") => workloads::pod_template(column, row),
        ("", "services") => network::service(column, row),
        ("", "endpoints") => network::endpoints(column, row),
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice(column, row),
        ("networking.k8s.io", "ingresses") => network::ingress(column, row),
        ("networking.k8s.io", "ingressclasses") => network::ingress_class(column, row),
        ("networking.k8s.io", "networkpolicies") => network::network_policy(column, row),
        ("networking.k8s.io", "ipaddresses") => network::ip_address(column, row),
        ("networking.k8s.io", "servicecidrs") => network::service_cidr(column, row),
        ("", "configmaps" | "secrets") => cluster::data(column, row),
        ("", "namespaces") => cluster::namespace(column, row),
        ("", "nodes") => cluster::node(column, row),
        ("" | "events.k8s.io", "events") => cluster::event(column, row),
        ("", "persistentvolumes") => cluster::volume(column, row),
        ("", "persistentvolumeclaims") => cluster::claim(column, row),
        ("", "resourcequotas") => cluster::quota(column, row),
        ("coordination.k8s.io", "leases") => cluster::lease(column, row),
        ("storage.k8s.io", _) => cluster::storage(column, row),
        ("policy", _) => policy::disruption_budget(column, row),
        ("rbac.authorization.k8s.io", _) => policy::binding(column, row),
        ("scheduling.k8s.io", _) => policy::priority_class(column, row),
        ("admissionregistration.k8s.io", _) => policy::admission(column, row),
        ("apiregistration.k8s.io", _) => policy::api_service(column, row),
        _ => None,
    }
}

/// Columns that mean the same for every kind.
fn shared(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Name" => json!(object::name(row.object)),
        "Age" => json!(row.age("metadata.creationTimestamp")),
        "Created At" => {
            let created = row.text("metadata.creationTimestamp");
            let time = created.parse::<Timestamp>().ok()?;
            json!(seconds(time))
        }
        _ => return None,
    };
    Some(cell)
}

// === impl Row ===

impl<'a> Row<'a> {
    /// The value at a path of members; null if there is none.
    fn at(self, path: &str) -> &'a Value {
        static NOTHING: Value = Value::Null;
        object::at(self.object, path).unwrap_or(&NOTHING)
    }

    fn text(self, path: &str) -> &'a str {
        self.at(path).as_str().unwrap_or_default()
    }

    /// A text, or what stands for its absence.
    fn text_or(self, path: &str, absent: &str) -> Value {
        let text = self.text(path);
        json!(if text.is_empty() { absent } else { text })
    }

    fn count(self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    fn list(self, path: &str) -> &'a [Value] {
        self.at(path).as_array().map_or(&[], Vec::as_slice)
    }

    fn age(self, path: &str) -> String {
        age::since(self.at(path), self.now)
    }

    /// A number or a text as it is; what stands for its absence otherwise.
    fn scalar_or(self, path: &str, absent: &str) -> Value {
        json!(scalar(self.at(path)).unwrap_or_else(|| absent.to_owned()))
    }

    /// `k=v,l=w`
    fn pairs(self, path: &str) -> Value {
        let pairs: Vec<String> = self
            .at(path)
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        json!(or_none(pairs.join(",")))
    }

    fn is_being_deleted(self) -> bool {
        object::is_being_deleted(self.object)
    }

    /// The status of a condition; empty if it is not there.
    fn condition(self, kind: &str) -> &'a str {
        let conditions = self.list("status.conditions");
        let found = conditions.iter().find(|one| one["type"] == kind);
        found
            .and_then(|one| one["status"].as_str())
            .unwrap_or_default()
    }

    /// Names or images of the containers of a Pod's template.
    fn containers(self, path: &str, member: &str) -> Value {
        let containers = self.list(path).iter();
        let found: Vec<&str> = containers.filter_map(|one| one[member].as_str()).collect();
        json!(found.join(","))
    }

    /// A label selector as one writes it.
    fn selector(self, path: &str) -> Value {
        let selector = self.at(path);
        let mut parts: Vec<String> = selector["matchLabels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        let expressions = selector["matchExpressions"].as_array();
        for one in expressions.into_iter().flatten() {
            let key = one["key"].as_str().unwrap_or_default();
            let values = joined(&one["values"], ",");
            parts.push(match one["operator"].as_str().unwrap_or_default() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            });
        }
        json!(or_none(parts.join(",")))
    }
}

/// A number or a text; None for anything else.
fn scalar(value: &Value) -> Option<String> {
    match value.as_str() {
        Some(text) => Some(text.to_owned()),
        None if value.is_number() || value.is_boolean() => Some(value.to_string()),
        None => None,
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    }
}

/// The texts of a list with something between them.
fn joined(list: &Value, between: &str) -> String {
    let texts = list.as_array().into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
    texts.join(between)
}

/// The first few of a list, and how many more there are.
fn first_few(mut all: Vec<String>, shown: usize, between: &str) -> String {
    let more = all.len().saturating_sub(shown);
    all.truncate(shown);
    let text = all.join(between);
    if more > 0 {
        format!("{text} + {more} more...")
    } else {
        or_none(text)
    }
}

#[cfg(test)]
mod tests;
