//! The pod of a number, and its claims.

use serde_json::{Value, json};

use super::super::pods::{controller_reference, from_template, number};
use super::super::revisions::{self, LABEL};
use crate::object;
use crate::storage::Object;

/// What is made for one number.
pub(super) struct Template {
    pub(super) pod: Value,
    pub(super) claims: Vec<Value>,
}

// === impl Template ===

impl Template {
    /// Below the partition pods are of the old revision.
    pub(super) fn of(
        set: &Value,
        ordinal: i64,
        old: Option<&Object>,
        new: Option<&Object>,
    ) -> Self {
        let strategy = &set["spec"]["updateStrategy"];
        let partition = number(&strategy["rollingUpdate"], "partition", 0);
        let first = number(&set["spec"]["ordinals"], "start", 0);
        let is_old = strategy["type"] != "OnDelete" && ordinal < first + partition;
        let revision = if is_old { old.or(new) } else { new };
        let template = revision.map_or_else(
            || set["spec"]["template"].clone(),
            |revision| revisions::template(revision),
        );
        let name = format!("{}-{ordinal}", object::name(set));
        let mut pod = from_template(set, &template);
        pod["metadata"]["name"] = json!(name);
        let labels = object::member_mut(&mut pod["metadata"], "labels");
        let revision = revision.map_or("", |one| object::name(one));
        for (label, value) in [
            ("statefulset.kubernetes.io/pod-name", &*name),
            ("apps.kubernetes.io/pod-index", &*ordinal.to_string()),
            (LABEL, revision),
        ] {
            labels.insert(label.to_owned(), json!(value));
        }
        pod["spec"]["hostname"] = json!(name);
        let service = set["spec"]["serviceName"].as_str().unwrap_or_default();
        if !service.is_empty() {
            pod["spec"]["subdomain"] = json!(service);
        }
        mount_claims(set, ordinal, &mut pod["spec"]);
        Self {
            pod,
            claims: claims(set, ordinal),
        }
    }
}

/// Puts the claims in the place of the volumes with their names.
fn mount_claims(set: &Value, ordinal: i64, spec: &mut Value) {
    let templates = || object::elements(&set["spec"], "volumeClaimTemplates");
    let is_claimed =
        |volume: &Value| templates().any(|one| one["metadata"]["name"] == volume["name"]);
    let others = object::elements(spec, "volumes").filter(|volume| !is_claimed(volume));
    let mut volumes: Vec<Value> = others.cloned().collect();
    for (template, claim) in templates().zip(claim_names(set, ordinal)) {
        volumes.push(json!({
            "name": template["metadata"]["name"],
            "persistentVolumeClaim": { "claimName": claim },
        }));
    }
    if !volumes.is_empty() {
        spec["volumes"] = json!(volumes);
    }
}

/// The names of the claims of a number, in the order of their templates.
pub(super) fn claim_names(set: &Value, ordinal: i64) -> Vec<String> {
    object::elements(&set["spec"], "volumeClaimTemplates")
        .map(|template| format!("{}-{}-{ordinal}", object::name(template), object::name(set)))
        .collect()
}

fn claims(set: &Value, ordinal: i64) -> Vec<Value> {
    let selected = set["spec"]["selector"]["matchLabels"].as_object();
    let policy = &set["spec"]["persistentVolumeClaimRetentionPolicy"];
    object::elements(&set["spec"], "volumeClaimTemplates")
        .zip(claim_names(set, ordinal))
        .map(|(template, name)| {
            let mut metadata = json!({ "name": name });
            if let Some(annotations) = template["metadata"].get("annotations") {
                metadata["annotations"] = annotations.clone();
            }
            if let Some(labels) = template["metadata"].get("labels") {
                metadata["labels"] = labels.clone();
            }
            let labels = object::member_mut(&mut metadata, "labels");
            for (label, value) in selected.into_iter().flatten() {
                labels.insert(label.clone(), value.clone());
            }
            if policy["whenDeleted"] == "Delete" {
                metadata["ownerReferences"] = json!([controller_reference(set)]);
            }
            json!({ "metadata": metadata, "spec": template["spec"] })
        })
        .collect()
}
