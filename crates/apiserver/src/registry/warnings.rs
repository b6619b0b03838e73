//! What a server warns about in objects of built-in kinds: members that have no effect, or that are on
//! their way out.

mod pods;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{addresses, forms, has_generation};
use crate::object;
use crate::quantity;
use crate::resource::Resource;
use crate::schema::is_known_format;

/// Kinds whose names are those of pods and hosts.
const NAMES_OF_PODS: [(&str, &str); 5] = [
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("", "replicationcontrollers"),
];

const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// What to warn about an object that is taken; `old` is the state before an update.
pub(super) fn of(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if resource.is_custom() {
        return warnings;
    }
    if let Some(what) = not_executed(resource, object) {
        tracing::warn!(
            target: "homeostat_apiserver",
            "{} {}: {what}",
            resource.kind,
            object::name(object)
        );
        warnings.push(what);
    }
    if resource.is_definition() {
        warnings.extend(unknown_formats(object));
    }
    if old.is_none() {
        warnings.extend(name_warning(resource, object));
    }
    // What makes pods is looked at again when what it makes changes.
    let changed = old.is_none_or(|old| {
        !has_generation(resource, old) || object::generation(object) != object::generation(old)
    });
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::of(object, "", &mut warnings),
        ("", "podtemplates") => pods::of(&object["template"], "template", &mut warnings),
        ("apps", "deployments" | "daemonsets" | "replicasets" | "statefulsets")
        | ("batch", "jobs")
        | ("", "replicationcontrollers")
            if changed =>
        {
            let template = &object["spec"]["template"];
            pods::of(template, "spec.template", &mut warnings);
            stateful(resource, object, &mut warnings);
        }
        ("batch", "cronjobs") if changed => {
            let way = "spec.jobTemplate.spec.template";
            let template = &object["spec"]["jobTemplate"]["spec"]["template"];
            pods::of(template, way, &mut warnings);
        }
        ("", "services") => service(object, &mut warnings),
        ("", "persistentvolumeclaims") => {
            annotation(
                object,
                STORAGE_CLASS,
                "deprecated since v1.8; use \"storageClassName\" attribute instead",
                &mut warnings,
            );
            claim(&object["spec"], "spec", &mut warnings);
        }
        ("", "persistentvolumes") => volume(object, &mut warnings),
        ("", "serviceaccounts") => annotation(
            object,
            "kubernetes.io/enforce-mountable-secrets",
            "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
            &mut warnings,
        ),
        ("networking.k8s.io", "ingresses") if old.is_none() => {
            let name = "kubernetes.io/ingress.class";
            if object["metadata"]["annotations"].get(name).is_some() {
                warnings.push(format!(
                    "annotation {name:?} is deprecated, please use 'spec.ingressClassName' instead"
                ));
            }
        }
        _ => {}
    }
    warnings
}

/// What this server only stores, though a cluster acts on it.
fn not_executed(resource: &Resource, object: &Value) -> Option<String> {
    let what = match (resource.group.as_str(), resource.plural.as_str()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            if object["spec"]["conversion"]["strategy"] != "Webhook" {
                return None;
            }
            "the conversion webhook is not called: objects are shown in other versions with the \
             members that these have too"
        }
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations" | "mutatingwebhookconfigurations",
        ) => "the webhooks are not called",
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicies" | "mutatingadmissionpolicies",
        ) => "the policy is not evaluated",
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings",
        ) => "the bound policy is not evaluated",
        ("apiregistration.k8s.io", "apiservices") => {
            if object["spec"]["service"].is_null() {
                return None;
            }
            "requests for the group are not passed on to the service"
        }
        _ => return None,
    };
    Some(format!(
        "the embedded API server stores this object and does not act on it as a cluster does: {what}"
    ))
}

/// Formats that say nothing to a server, each once.
fn unknown_formats(definition: &Value) -> Vec<String> {
    fn collect<'a>(schema: &'a Value, found: &mut BTreeSet<&'a str>) {
        let format = schema["format"].as_str();
        found.extend(format.filter(|format| !is_known_format(format)));
        for (_, property) in schema["properties"].as_object().into_iter().flatten() {
            collect(property, found);
        }
        for keyword in ["items", "additionalProperties", "not"] {
            if schema[keyword].is_object() {
                collect(&schema[keyword], found);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for schema in object::elements(schema, keyword) {
                collect(schema, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    for version in object::elements(&definition["spec"], "versions") {
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_object() {
            collect(schema, &mut found);
        }
    }
    let warning = |format: &&str| format!("unrecognized format {format:?}");
    found.iter().map(warning).collect()
}

/// The name of a pod is that of a host.
fn name_warning(resource: &Resource, object: &Value) -> Option<String> {
    let what = if resource.is("", "pods") {
        "the Pod's hostname"
    } else if NAMES_OF_PODS
        .iter()
        .any(|(group, plural)| resource.is(group, plural))
    {
        "Pod names and hostnames"
    } else {
        return None;
    };
    let problems = forms::label(object::name(object)).join(" ");
    (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS \
             label is recommended: [{problems}]"
        )
    })
}

fn annotation(object: &Value, name: &str, why: &str, warnings: &mut Vec<String>) {
    if object["metadata"]["annotations"].get(name).is_some() {
        warnings.push(format!("metadata.annotations[{name}]: {why}"));
    }
}

fn service(service: &Value, warnings: &mut Vec<String>) {
    let spec = &service["spec"];
    let text = |member: &str| spec[member].as_str().unwrap_or_default();
    let has_addresses = object::elements(spec, "externalIPs").next().is_some();
    let is_external = text("type") == "ExternalName";
    if text("clusterIP") == "None" {
        if !text("loadBalancerIP").is_empty() {
            warnings.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if has_addresses {
            warnings.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if !["", "None"].contains(&text("sessionAffinity")) {
            warnings.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    for list in ["clusterIPs", "externalIPs"] {
        let values = object::elements(spec, list).enumerate();
        warnings.extend(values.filter_map(|(index, address)| {
            addresses::unusual(&format!("spec.{list}[{index}]"), address.as_str()?)
        }));
    }
    warnings.extend(addresses::unusual(
        "spec.loadBalancerIP",
        text("loadBalancerIP"),
    ));
    if is_external && has_addresses {
        let why = "spec.externalIPs is ignored when spec.type is \"ExternalName\"";
        warnings.push(why.to_owned());
    } else if has_addresses && text("clusterIP") != "None" {
        let why =
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(why.to_owned());
    }
    if !is_external && !text("externalName").is_empty() {
        let why = "spec.externalName is ignored when spec.type is not \"ExternalName\"";
        warnings.push(why.to_owned());
    }
    if text("trafficDistribution") == "PreferClose" {
        let why = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        warnings.push(why.to_owned());
    }
}

/// A claim is for whole bytes.
fn claim(spec: &Value, way: &str, warnings: &mut Vec<String>) {
    for kind in ["requests", "limits"] {
        let amount = &spec["resources"][kind]["storage"];
        fraction(
            amount,
            &format!("{way}.resources.{kind}[storage]"),
            warnings,
        );
    }
}

/// An amount of bytes is a whole number.
fn fraction(amount: &Value, field: &str, warnings: &mut Vec<String>) {
    let text = amount.as_str().unwrap_or_default();
    if !text.is_empty() && !quantity::is_whole(text) {
        let shown = quantity::canonical(text).unwrap_or_default();
        warnings.push(format!(
            "{field}: fractional byte value {shown:?} is invalid, must be an integer"
        ));
    }
}

fn volume(volume: &Value, warnings: &mut Vec<String>) {
    for (name, why) in [
        (
            STORAGE_CLASS,
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ] {
        annotation(volume, name, why, warnings);
    }
    if volume["spec"]["persistentVolumeReclaimPolicy"] == "Recycle" {
        let why = "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
                   Instead, the recommended approach is to use dynamic provisioning.";
        warnings.push(why.to_owned());
    }
    let required = &volume["spec"]["nodeAffinity"]["required"];
    let way = "spec.nodeAffinity.required.nodeSelectorTerms";
    for (index, term) in object::elements(required, "nodeSelectorTerms").enumerate() {
        pods::node_term(term, &format!("{way}[{index}]"), warnings);
    }
    pods::volume(&volume["spec"], "spec", warnings);
}

fn stateful(resource: &Resource, object: &Value, warnings: &mut Vec<String>) {
    if !resource.is("apps", "statefulsets") {
        return;
    }
    let spec = &object["spec"];
    for (index, template) in object::elements(spec, "volumeClaimTemplates").enumerate() {
        // As the server writes it.
        let way = format!("spec.volumeClaimTemplates[{index}].Spec");
        claim(&template["spec"], &way, warnings);
    }
    if spec["revisionHistoryLimit"]
        .as_i64()
        .is_some_and(|limit| limit < 0)
    {
        let why = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
                   value >= 0 is recommended";
        warnings.push(why.to_owned());
    }
}
