//! What a server warns about in pods, and in what pods are made from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{addresses, claim, fraction};
use crate::object;

/// Labels of nodes that have other names now.
const OLD_LABELS: [(&str, &str); 5] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
];

/// Annotations without an effect.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Sorts of volumes that are going or gone.
const OLD_VOLUMES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

const SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A pod or a template of pods, and where in the object it is.
struct Pod<'a> {
    spec: &'a Value,
    annotations: &'a Value,
    /// With a dot at its end, or empty.
    way: String,
}

/// What to warn about a pod, or about the template at `way`.
pub(super) fn of(pod: &Value, way: &str, warnings: &mut Vec<String>) {
    let pod = Pod {
        spec: &pod["spec"],
        annotations: &pod["metadata"]["annotations"],
        way: if way.is_empty() {
            String::new()
        } else {
            format!("{way}.")
        },
    };
    pod.nodes(warnings);
    for (name, why) in OLD_ANNOTATIONS {
        pod.annotation(name, why, warnings);
    }
    for (index, one) in object::elements(pod.spec, "volumes").enumerate() {
        volume(one, &pod.at(&format!("volumes[{index}]")), warnings);
    }
    pod.twice(warnings);
    for name in ["memory", "ephemeral-storage"] {
        let place = pod.at(&format!("overhead[{name}]"));
        fraction(&pod.spec["overhead"][name], &place, warnings);
    }
    pod.profile(pod.spec, SECCOMP_OF_POD, warnings);
    for (container, place) in pod.containers() {
        pod.container(container, &place, warnings);
    }
    pod.ports(warnings);
    pod.port_names(warnings);
    pod.selectors(warnings);
    pod.addresses(warnings);
}

/// What to warn about a volume of an old sort.
pub(super) fn volume(volume: &Value, field: &str, warnings: &mut Vec<String>) {
    for (name, why) in OLD_VOLUMES {
        if !volume[name].is_null() {
            let shown = if name == "storageos" {
                "storageOS"
            } else {
                name
            };
            warnings.push(format!("{field}.{shown}: {why}"));
        }
    }
    let template = &volume["ephemeral"]["volumeClaimTemplate"];
    let way = format!("{field}.ephemeral.volumeClaimTemplate.spec");
    claim(&template["spec"], &way, warnings);
}

/// What to warn about a term that selects nodes.
pub(super) fn node_term(term: &Value, field: &str, warnings: &mut Vec<String>) {
    for (index, expression) in object::elements(term, "matchExpressions").enumerate() {
        let key = expression["key"].as_str().unwrap_or_default();
        if let Some(why) = old_label(key) {
            warnings.push(format!(
                "{field}.matchExpressions[{index}].key: {key} is {why}"
            ));
        }
    }
}

fn old_label(name: &str) -> Option<&'static str> {
    let found = OLD_LABELS.iter().find(|(old, _)| *old == name);
    found.map(|(_, why)| *why)
}

// === impl Pod ===

impl<'a> Pod<'a> {
    fn at(&self, place: &str) -> String {
        format!("{}spec.{place}", self.way)
    }

    fn list(&self, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
        object::elements(self.spec, name).enumerate()
    }

    /// All containers, in the order in which the server visits them.
    fn containers(&self) -> impl Iterator<Item = (&'a Value, String)> {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |name| {
                let place = move |index| self.at(&format!("{name}[{index}]"));
                self.list(name)
                    .map(move |(index, container)| (container, place(index)))
            })
    }

    fn annotation(&self, name: &str, why: &str, warnings: &mut Vec<String>) {
        if self.annotations.get(name).is_some() {
            let way = &self.way;
            warnings.push(format!("{way}metadata.annotations[{name}]: {why}"));
        }
    }

    /// Old names of labels of nodes.
    fn nodes(&self, warnings: &mut Vec<String>) {
        for (name, _) in self.spec["nodeSelector"].as_object().into_iter().flatten() {
            if let Some(why) = old_label(name) {
                let place = self.at(&format!("nodeSelector[{name}]"));
                warnings.push(format!("{place}: {why}"));
            }
        }
        let affinity = &self.spec["affinity"]["nodeAffinity"];
        let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
        let way = self.at("affinity.nodeAffinity");
        for (index, term) in object::elements(required, "nodeSelectorTerms").enumerate() {
            let place = format!(
                "{way}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
            );
            node_term(term, &place, warnings);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (index, term) in object::elements(affinity, preferred).enumerate() {
            let place = format!("{way}.{preferred}[{index}].preference");
            node_term(&term["preference"], &place, warnings);
        }
        for (index, constraint) in self.list("topologySpreadConstraints") {
            let place = self.at(&format!("topologySpreadConstraints[{index}]"));
            let key = constraint["topologyKey"].as_str().unwrap_or_default();
            if let Some(why) = old_label(key) {
                warnings.push(format!("{place}.topologyKey: {key} is {why}"));
            }
            no_selector(constraint, &place, warnings);
        }
    }

    /// Aliases and secrets that are named twice or not at all.
    fn twice(&self, warnings: &mut Vec<String>) {
        for (list, member, word) in [
            ("hostAliases", "ip", "ip"),
            ("imagePullSecrets", "name", "name"),
        ] {
            let mut known = BTreeSet::new();
            for (index, value) in self.list(list) {
                let text = value[member].as_str().unwrap_or_default();
                if !known.insert(text) {
                    let place = self.at(&format!("{list}[{index}].{member}"));
                    warnings.push(format!("{place}: duplicate {word} {text:?}"));
                }
            }
        }
        for (index, secret) in self.list("imagePullSecrets") {
            if secret["name"].as_str().is_none_or(str::is_empty) {
                let place = self.at(&format!("imagePullSecrets[{index}].name"));
                warnings.push(format!("{place}: invalid empty name \"\""));
            }
        }
    }

    /// The annotation that was there before the field was.
    fn profile(&self, owner: &Value, name: &str, warnings: &mut Vec<String>) {
        if owner["securityContext"]["seccompProfile"].is_null() {
            let why = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
            self.annotation(name, why, warnings);
        }
    }

    fn container(&self, container: &Value, place: &str, warnings: &mut Vec<String>) {
        let name = container["name"].as_str().unwrap_or_default();
        self.profile(container, &format!("{SECCOMP}{name}"), warnings);
        let has_profile = |owner: &Value| !owner["securityContext"]["appArmorProfile"].is_null();
        if !has_profile(self.spec) && !has_profile(container) {
            let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            self.annotation(&format!("{APP_ARMOR}{name}"), why, warnings);
        }
        for resource in ["memory", "ephemeral-storage"] {
            for kind in ["limits", "requests"] {
                let amount = &container["resources"][kind][resource];
                let place = format!("{place}.resources.{kind}[{resource}]");
                fraction(amount, &place, warnings);
            }
        }
        let mut known = BTreeSet::new();
        for (index, variable) in object::elements(container, "env").enumerate() {
            let name = variable["name"].as_str().unwrap_or_default();
            let value = variable["value"].as_str().unwrap_or_default();
            let reference = format!("$({name})");
            // A value that adds to the one before hides nothing.
            let hides = !variable["valueFrom"].is_null()
                || value == reference
                || !value.contains(&reference);
            if !known.insert(name) && hides {
                warnings.push(format!(
                    "{place}.env[{index}]: hides previous definition of {name:?}, which may be \
                     dropped when using apply"
                ));
            }
        }
    }

    /// Ports that are the same, or nearly.
    fn ports(&self, warnings: &mut Vec<String>) {
        let mut known: BTreeMap<String, Vec<(String, &Value)>> = BTreeMap::new();
        let host = |port: &Value| port["hostPort"].as_i64().unwrap_or_default();
        for (container, place) in self.containers() {
            for (index, port) in object::elements(container, "ports").enumerate() {
                let text = |member: &str| port[member].as_str().unwrap_or_default();
                let place = format!("{place}.ports[{index}]");
                if !text("hostIP").is_empty() && host(port) == 0 {
                    warnings.push(format!(
                        "{place}: hostIP set without hostPort: {{Name:{} HostPort:0 \
                         ContainerPort:{} Protocol:{} HostIP:{}}}",
                        text("name"),
                        port["containerPort"],
                        text("protocol"),
                        text("hostIP"),
                    ));
                }
                let key = format!("{}/{}", port["containerPort"], text("protocol"));
                let others = known.entry(key).or_default();
                for (other_place, other) in &*others {
                    let other_address = other["hostIP"].as_str().unwrap_or_default();
                    let same_port = host(port) == host(other);
                    let how = if text("hostIP") == other_address && same_port {
                        "duplicate"
                    } else if host(port) == 0 || host(other) == 0 {
                        "overlapping"
                    } else if same_port && (text("hostIP").is_empty() != other_address.is_empty()) {
                        "dangerously ambiguous"
                    } else {
                        continue;
                    };
                    warnings.push(format!("{place}: {how} port definition with {other_place}"));
                }
                others.push((place, port));
            }
        }
    }

    /// A name leads to the first port that has it. Containers that end before are not counted.
    fn port_names(&self, warnings: &mut Vec<String>) {
        let mut known: BTreeMap<&str, String> = BTreeMap::new();
        for (container, place) in self.containers() {
            let ends =
                place.contains("spec.initContainers[") && container["restartPolicy"] != "Always";
            if ends || place.contains("spec.ephemeralContainers[") {
                continue;
            }
            for (index, port) in object::elements(container, "ports").enumerate() {
                let name = port["name"].as_str().unwrap_or_default();
                let place = format!("{place}.ports[{index}]");
                if name.is_empty() {
                    continue;
                }
                if let Some(other) = known.get(name) {
                    warnings.push(format!(
                        "{place}: duplicate port name {name:?} with {other}, services and probes \
                         that select ports by name will use {other}"
                    ));
                } else {
                    known.insert(name, place);
                }
            }
        }
    }

    /// Terms that find no pod.
    fn selectors(&self, warnings: &mut Vec<String>) {
        for member in ["podAffinity", "podAntiAffinity"] {
            let affinity = &self.spec["affinity"][member];
            let required = "requiredDuringSchedulingIgnoredDuringExecution";
            for (index, term) in object::elements(affinity, required).enumerate() {
                let place = self.at(&format!("affinity.{member}.{required}[{index}]"));
                no_selector(term, &place, warnings);
            }
            let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
            for (index, term) in object::elements(affinity, preferred).enumerate() {
                let place = format!("affinity.{member}.{preferred}[{index}].podAffinityTerm");
                no_selector(&term["podAffinityTerm"], &self.at(&place), warnings);
            }
        }
    }

    fn addresses(&self, warnings: &mut Vec<String>) {
        let config = &self.spec["dnsConfig"];
        for (index, server) in object::elements(config, "nameservers").enumerate() {
            let place = self.at(&format!("dnsConfig.nameservers[{index}]"));
            let text = server.as_str().unwrap_or_default();
            warnings.extend(addresses::unusual(&place, text));
        }
        for (index, alias) in self.list("hostAliases") {
            let place = self.at(&format!("hostAliases[{index}].ip"));
            let text = alias["ip"].as_str().unwrap_or_default();
            warnings.extend(addresses::unusual(&place, text));
        }
    }
}

fn no_selector(term: &Value, place: &str, warnings: &mut Vec<String>) {
    if term["labelSelector"].is_null() {
        warnings.push(format!(
            "{place}.labelSelector: a null labelSelector results in matching no pod"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(pod: &Value, expected: &[&str]) {
        let mut warnings = Vec::new();
        of(pod, "", &mut warnings);
        assert_eq!(warnings, expected);
    }

    #[test]
    fn ports_of_a_node_and_of_all_its_addresses() {
        let port = |address: &str, host: i64| json!({ "containerPort": 80, "protocol": "TCP", "hostIP": address, "hostPort": host });
        let pod = |ports: &[Value]| json!({ "spec": { "containers": [{ "ports": ports }] } });
        check(&pod(&[port("10.0.0.1", 80), port("10.0.0.2", 80)]), &[]);
        check(
            &pod(&[port("10.0.0.1", 80), port("", 80)]),
            &[
                "spec.containers[0].ports[1]: dangerously ambiguous port definition with \
               spec.containers[0].ports[0]",
            ],
        );
        check(
            &pod(&[port("", 80), port("", 0)]),
            &[
                "spec.containers[0].ports[1]: overlapping port definition with \
               spec.containers[0].ports[0]",
            ],
        );
        check(
            &pod(&[port("10.0.0.1", 0)]),
            &[
                "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 \
               ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}",
            ],
        );
    }

    #[test]
    fn variables_that_hide_others() {
        let pod = |second: &Value| {
            let mut second = second.clone();
            second["name"] = json!("A");
            json!({ "spec": { "containers": [{ "env": [{ "name": "A", "value": "1" }, second] }] } })
        };
        check(&pod(&json!({ "value": "$(A)2" })), &[]);
        let hides = "spec.containers[0].env[1]: hides previous definition of \"A\", which may be \
                     dropped when using apply";
        for second in [
            json!({}),
            json!({ "value": "$(A)" }),
            json!({ "value": "2" }),
            json!({ "valueFrom": {} }),
        ] {
            check(&pod(&second), &[hides]);
        }
    }

    #[test]
    fn selectors_that_find_nothing() {
        let term = json!({ "topologyKey": "k" });
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let pod = json!({ "spec": { "affinity": { "podAntiAffinity": { required: [term] } } } });
        check(
            &pod,
            &[
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]\
               .labelSelector: a null labelSelector results in matching no pod",
            ],
        );
    }
}
