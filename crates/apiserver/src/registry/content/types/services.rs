//! Services.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::field::Field;
use crate::object;
use crate::registry::{addresses, forms};
use crate::status::Cause;

pub(super) fn spec(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let kind = spec["type"].as_str().unwrap_or_default();
    let is_headless = spec["clusterIPs"][0] == "None" || spec["clusterIP"] == "None";
    let ports = field.member("ports");
    if object::elements(spec, "ports").next().is_none() && !is_headless && kind != "ExternalName" {
        causes.push(Cause::required(ports, ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let place = field.member("clusterIPs");
            let why = format!("may not be set to 'None' for {kind} services");
            causes.push(Cause::invalid(place.element(0), &json!("None"), &why));
        }
        "ExternalName" => external(spec, field, causes),
        _ => {}
    }
    port_names(spec, &ports, causes);
    affinity(spec, field, causes);
    for (index, port) in object::elements(spec, "ports").enumerate() {
        if kind == "ClusterIP" && port["nodePort"].as_u64().is_some_and(|number| number != 0) {
            let place = ports.element(index);
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(place.member("nodePort"), why));
        }
    }
    different_ports(spec, &ports, causes);
    if kind != "LoadBalancer" && !spec["allocateLoadBalancerNodePorts"].is_null() {
        let why = "may only be used when `type` is 'LoadBalancer'";
        causes.push(Cause::forbidden(
            field.member("allocateLoadBalancerNodePorts"),
            why,
        ));
    }
    balanced(spec, kind, field, causes);
    let is_reachable = ["LoadBalancer", "NodePort"].contains(&kind)
        || (kind == "ClusterIP" && object::elements(spec, "externalIPs").next().is_some());
    let policy = &spec["externalTrafficPolicy"];
    if !is_reachable && policy.as_str().is_some_and(|policy| !policy.is_empty()) {
        let why = "may only be set for externally-accessible services";
        causes.push(Cause::invalid(
            field.member("externalTrafficPolicy"),
            policy,
            why,
        ));
    }
}

/// What only a service with a balancer in front has.
fn balanced(spec: &Value, kind: &str, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let is_balanced = kind == "LoadBalancer";
    let why = "may only be used when `type` is 'LoadBalancer'";
    // As the server writes it.
    let place = field.member("LoadBalancerSourceRanges");
    let mut ranges = object::elements(spec, "loadBalancerSourceRanges").peekable();
    if ranges.peek().is_some() && !is_balanced {
        causes.push(Cause::forbidden(place, why));
    }
    for (index, range) in ranges.enumerate() {
        let problems = addresses::range(range.as_str().unwrap_or_default());
        let cause = |why| Cause::invalid(place.element(index), range, why);
        causes.extend(problems.into_iter().map(cause));
    }
    let class = &spec["loadBalancerClass"];
    let place = field.member("loadBalancerClass");
    if let (true, Some(name)) = (is_balanced, class.as_str()) {
        let problems = forms::qualified_name(name);
        causes.extend(problems.iter().map(|why| Cause::invalid(place, class, why)));
    } else if !class.is_null() {
        causes.push(Cause::forbidden(place, why));
    }
    let port = &spec["healthCheckNodePort"];
    let is_checked = is_balanced && spec["externalTrafficPolicy"] == "Local";
    if port.as_i64().is_some_and(|port| port != 0) && !is_checked {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                   'Local'";
        causes.push(Cause::invalid(
            field.member("healthCheckNodePort"),
            port,
            why,
        ));
    }
}

/// A name for what is elsewhere.
fn external(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !spec[member].is_null() {
            let why = "may not be set for ExternalName services";
            causes.push(Cause::forbidden(field.member(member), why));
        }
    }
    let place = field.member("externalName");
    let name = spec["externalName"].as_str().unwrap_or_default();
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        causes.push(Cause::required(place, ""));
    } else {
        let cause = |why| Cause::invalid(place, &json!(name), why);
        causes.extend(forms::subdomain(name).into_iter().map(cause));
    }
}

/// Several ports have names, and different ones.
fn port_names(spec: &Value, ports: &Field<'_>, causes: &mut Vec<Cause>) {
    let several = object::elements(spec, "ports").count() > 1;
    let mut known = BTreeSet::new();
    for (index, port) in object::elements(spec, "ports").enumerate() {
        let place = ports.element(index);
        let place = place.member("name");
        match port["name"].as_str().unwrap_or_default() {
            "" if several => causes.push(Cause::required(place, "")),
            "" => {}
            name => {
                if !known.insert(name) {
                    causes.push(Cause::duplicate(place, &json!(name)));
                }
            }
        }
    }
}

fn affinity(spec: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
    let place = field.member("sessionAffinityConfig");
    let config = &spec["sessionAffinityConfig"];
    if spec["sessionAffinity"] == "None" && !config.is_null() {
        let why = "must not be set when session affinity is None";
        causes.push(Cause::forbidden(place, why));
    }
    if spec["sessionAffinity"] == "ClientIP" && config["clientIP"]["timeoutSeconds"].is_null() {
        let client = place.member("clientIP");
        let why = "when session affinity type is ClientIP";
        causes.push(Cause::required(client.member("timeoutSeconds"), why));
    }
}

/// A port of the service or of the nodes leads to one place.
fn different_ports(spec: &Value, ports: &Field<'_>, causes: &mut Vec<Cause>) {
    let mut known = [BTreeSet::new(), BTreeSet::new()];
    let [of_nodes, of_service] = &mut known;
    let all = || object::elements(spec, "ports").enumerate();
    let key = |port: &Value, member: &str| {
        let protocol = port["protocol"].as_str().unwrap_or_default().to_owned();
        port[member].as_u64().map(|number| (protocol, number))
    };
    for (index, port) in all() {
        let Some(key) = key(port, "nodePort").filter(|(_, number)| *number != 0) else {
            continue;
        };
        if !of_nodes.insert(key) {
            let place = ports.element(index);
            causes.push(Cause::duplicate(
                place.member("nodePort"),
                &port["nodePort"],
            ));
        }
    }
    for (index, port) in all() {
        let Some((protocol, number)) = key(port, "port") else {
            continue;
        };
        // As the server shows what it compares.
        let shown = format!(
            "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\
             \"TargetPort\":0,\"NodePort\":0}}"
        );
        if !of_service.insert((protocol, number)) {
            causes.push(Cause::duplicate_shown(ports.element(index), &shown));
        }
    }
}
