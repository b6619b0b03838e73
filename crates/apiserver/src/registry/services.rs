//! Services: their defaults, and the addresses and ports that they are given.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Registry, Target};
use crate::object;
use crate::status::{Cause, Status};
use crate::storage::Object;

/// How many ports of nodes there are for services, and the first one.
const NODE_PORTS: u64 = 2768;
const FIRST_NODE_PORT: u64 = 30_000;

/// How long a client stays with a pod, where it does.
const AFFINITY_SECONDS: u32 = 10_800;

/// Fills in what depends on other members.
pub(super) fn complete(spec: &mut Value) {
    for port in object::elements_mut(spec, "ports") {
        if port["targetPort"].is_null() {
            port["targetPort"] = port["port"].clone();
        }
    }
    let Some(members) = spec.as_object_mut() else {
        return;
    };
    let text = |member: &str| members.get(member).and_then(Value::as_str);
    let kind = Kind::of(members);
    let affine = text("sessionAffinity") == Some("ClientIP");
    let mut defaults = Vec::new();
    if kind != Kind::ExternalName {
        defaults.push(("internalTrafficPolicy", json!("Cluster")));
    }
    if kind.has_node_ports() {
        defaults.push(("externalTrafficPolicy", json!("Cluster")));
    }
    if kind == Kind::LoadBalancer {
        defaults.push(("allocateLoadBalancerNodePorts", json!(true)));
    }
    if affine {
        let config = json!({ "clientIP": { "timeoutSeconds": AFFINITY_SECONDS } });
        defaults.push(("sessionAffinityConfig", config));
    }
    for (member, default) in defaults {
        members.entry(member).or_insert(default);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ClusterIp,
    NodePort,
    LoadBalancer,
    ExternalName,
}

// === impl Kind ===

impl Kind {
    fn of(spec: &Map<String, Value>) -> Self {
        match spec.get("type").and_then(Value::as_str) {
            Some("NodePort") => Self::NodePort,
            Some("LoadBalancer") => Self::LoadBalancer,
            Some("ExternalName") => Self::ExternalName,
            Some(_) | None => Self::ClusterIp,
        }
    }

    fn has_node_ports(self) -> bool {
        match self {
            Self::NodePort | Self::LoadBalancer => true,
            Self::ClusterIp | Self::ExternalName => false,
        }
    }
}

/// The rules that an update of a service breaks: it keeps its address.
pub(super) fn causes(service: &Value, old: &Value) -> Vec<Cause> {
    let (new, old) = (&service["spec"], &old["spec"]);
    if new["type"] == "ExternalName" || old["type"] == "ExternalName" {
        return Vec::new();
    }
    let (addresses, had) = (&new["clusterIPs"], &old["clusterIPs"]);
    if had[0].is_null() || addresses[0] == had[0] {
        return Vec::new();
    }
    let why = "may not change once set";
    vec![Cause::invalid("spec.clusterIPs[0]", addresses, why)]
}

/// Takes over what an update left out, and lets go of what its type has no use for.
fn carry_over(spec: &mut Map<String, Value>, old: &Value) {
    let kind = Kind::of(spec);
    let kept = |member: &str| old.get(member).filter(|value| !value.is_null());
    if kind == Kind::ExternalName {
        for member in [
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "internalTrafficPolicy",
        ] {
            if spec.get(member) == kept(member) {
                spec.remove(member);
            }
        }
    } else {
        let says = |member: &str| spec.get(member).is_some_and(|value| *value != "");
        let (one, all) = (says("clusterIP"), says("clusterIPs"));
        let changed = |member: &str| spec.get(member) != kept(member);
        if !one && !all {
            for member in ["clusterIP", "clusterIPs"] {
                if let Some(value) = kept(member) {
                    spec.insert(member.to_owned(), value.clone());
                }
            }
        } else if one && changed("clusterIP") && !changed("clusterIPs") {
            spec.remove("clusterIPs");
        }
    }
    let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) else {
        return;
    };
    for port in ports {
        let same = object::elements(old, "ports")
            .find(|one| one["port"] == port["port"] && one["protocol"] == port["protocol"]);
        let had = same
            .map(|one| &one["nodePort"])
            .filter(|had| !had.is_null());
        if !kind.has_node_ports() {
            if had == port.get("nodePort")
                && let Some(members) = port.as_object_mut()
            {
                members.remove("nodePort");
            }
        } else if let Some(had) = had
            && port["nodePort"].is_null()
        {
            port["nodePort"] = had.clone();
        }
    }
    for (member, has_use) in [
        ("externalTrafficPolicy", kind.has_node_ports()),
        ("allocateLoadBalancerNodePorts", kind == Kind::LoadBalancer),
    ] {
        if !has_use && spec.get(member) == kept(member) {
            spec.remove(member);
        }
    }
}

impl Registry {
    /// Gives a service the addresses and ports that it needs.
    ///
    /// # Errors
    ///
    /// 422 for an address or a port that another service has, and for a port that no service can have.
    pub(super) fn allocate_for_service(
        &mut self,
        target: &Target,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let spec = object::member_mut(service, "spec");
        if let Some(old) = old {
            carry_over(spec, &old["spec"]);
        }
        let kind = Kind::of(spec);
        if kind == Kind::ExternalName {
            return Ok(());
        }
        let had = old.map(|old| &old["spec"]["clusterIP"]);
        let address = self.allocate_address(target, spec, had);
        let mut causes: Vec<Cause> = address.into_iter().collect();
        let wants_ports = kind == Kind::NodePort
            || (kind == Kind::LoadBalancer
                && spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)));
        // A service that may have none is told so, whatever the number is.
        if kind.has_node_ports() {
            causes.extend(self.allocate_node_ports(target, spec, wants_ports));
        }
        if causes.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(
            target.resource.kind_subject(object::name(service)),
            causes,
        ))
    }

    fn allocate_address(
        &mut self,
        target: &Target,
        spec: &mut Map<String, Value>,
        had: Option<&Value>,
    ) -> Option<Cause> {
        let one = spec.get("clusterIP").and_then(Value::as_str);
        let first = || spec.get("clusterIPs")?[0].as_str();
        let given = one.filter(|text| !text.is_empty()).or_else(first);
        let address = match given {
            Some(given) => given.to_owned(),
            None => self.free_address(target),
        };
        let is_new = had.is_none_or(|had| *had != address.as_str());
        if given.is_some() && address != "None" && is_new && self.has_address(target, &address) {
            let why = format!("failed to allocate IP {address}: provided IP is already allocated");
            return Some(Cause::invalid("spec.clusterIPs", &json!([address]), &why));
        }
        spec.entry("clusterIPs").or_insert_with(|| json!([address]));
        // A headless service without a selector is for every family.
        let anywhere = address == "None" && !spec.contains_key("selector");
        let (families, policy) = if anywhere {
            (json!(["IPv4", "IPv6"]), "RequireDualStack")
        } else {
            (json!(["IPv4"]), "SingleStack")
        };
        spec.insert("clusterIP".to_owned(), json!(address));
        spec.entry("ipFamilies").or_insert(families);
        spec.entry("ipFamilyPolicy").or_insert(json!(policy));
        None
    }

    /// An address of 10.96.0.0/12 that no service has.
    fn free_address(&mut self, target: &Target) -> String {
        loop {
            let host = self.entropy.below(1 << 20);
            let address = format!(
                "10.{}.{}.{}",
                96 + (host >> 16),
                (host >> 8) & 0xff,
                host & 0xff
            );
            if !self.has_address(target, &address) {
                return address;
            }
        }
    }

    fn has_address(&self, target: &Target, address: &str) -> bool {
        self.others(target)
            .any(|service| service["spec"]["clusterIP"] == address)
    }

    /// Gives every port a port on the nodes, if it wants one, and checks those that were asked for.
    fn allocate_node_ports(
        &mut self,
        target: &Target,
        spec: &mut Map<String, Value>,
        wanted: bool,
    ) -> Vec<Cause> {
        let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) else {
            return Vec::new();
        };
        if !wanted && ports.iter().all(|port| port["nodePort"].is_null()) {
            return Vec::new();
        }
        let mut taken = BTreeSet::new();
        for service in self.others(target) {
            let ports = object::elements(&service["spec"], "ports");
            taken.extend(ports.filter_map(|port| port["nodePort"].as_u64()));
        }
        let mut causes = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let Some(number) = port["nodePort"].as_u64() else {
                continue;
            };
            let field = format!("spec.ports[{index}].nodePort");
            let in_range = (FIRST_NODE_PORT..FIRST_NODE_PORT + NODE_PORTS).contains(&number);
            let why = if !in_range {
                "provided port is not in the valid range. The range of valid ports is 30000-32767"
            } else if taken.contains(&number) {
                "provided port is already allocated"
            } else {
                continue;
            };
            causes.push(Cause::invalid(field, &port["nodePort"], why));
        }
        if !causes.is_empty() {
            return causes;
        }
        taken.extend(ports.iter().filter_map(|port| port["nodePort"].as_u64()));
        for port in ports
            .iter_mut()
            .filter(|port| wanted && port["nodePort"].is_null())
        {
            if taken.len() as u64 >= NODE_PORTS {
                break;
            }
            let mut number = FIRST_NODE_PORT + self.entropy.below(NODE_PORTS);
            while !taken.insert(number) {
                number = FIRST_NODE_PORT + self.entropy.below(NODE_PORTS);
            }
            port["nodePort"] = json!(number);
        }
        Vec::new()
    }

    /// All other services.
    fn others<'a>(&'a self, target: &Target) -> impl Iterator<Item = Object> + use<'a> {
        let own = target.key();
        let revision = self.store.revision();
        self.store
            .scan(&target.resource.storage, None, revision, None)
            .filter(move |(key, _)| **key != own)
            .map(|(_, service)| service)
    }
}
