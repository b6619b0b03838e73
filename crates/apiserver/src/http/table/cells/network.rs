use serde_json::{Value, json};

use super::{Row, first_few, joined, or_none};

/// How many endpoints, hosts or ports a cell shows.
const SHOWN: usize = 3;

pub(super) fn service(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Type" => row.text_or("spec.type", ""),
        "Cluster-IP" => row.text_or("spec.clusterIP", "<none>"),
        "External-IP" => json!(external_address(row)),
        "Port(s)" => {
            let ports = row.list("spec.ports").iter().map(service_port);
            json!(or_none(ports.collect::<Vec<_>>().join(",")))
        }
        "Selector" => row.pairs("spec.selector"),
        _ => return None,
    };
    Some(cell)
}

fn service_port(port: &Value) -> String {
    let number = port["port"].as_i64().unwrap_or_default();
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    match port["nodePort"].as_i64() {
        Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_address(row: Row<'_>) -> String {
    let fixed = joined(row.at("spec.externalIPs"), ",");
    match row.text("spec.type") {
        "LoadBalancer" => {
            let mut all = addresses(row);
            if !fixed.is_empty() {
                all.push(fixed);
            }
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => row.text("spec.externalName").to_owned(),
        _ => or_none(fixed),
    }
}

/// Where a load balancer can be reached.
fn addresses(row: Row<'_>) -> Vec<String> {
    let points = row.list("status.loadBalancer.ingress").iter();
    points
        .filter_map(|point| point["ip"].as_str().or(point["hostname"].as_str()))
        .map(str::to_owned)
        .collect()
}

pub(super) fn endpoints(column: &str, row: Row<'_>) -> Option<Value> {
    if column != "Endpoints" {
        return None;
    }
    let mut all = Vec::new();
    for subset in row.list("subsets") {
        let ips = subset["addresses"].as_array().into_iter().flatten();
        let ips: Vec<&str> = ips.filter_map(|one| one["ip"].as_str()).collect();
        let ports = subset["ports"].as_array().map_or(&[][..], Vec::as_slice);
        if ports.is_empty() {
            all.extend(ips.iter().map(|ip| (*ip).to_owned()));
        }
        for port in ports {
            let port = port["port"].as_i64().unwrap_or_default();
            all.extend(ips.iter().map(|ip| with_port(ip, port)));
        }
    }
    Some(json!(first_few(all, SHOWN, ",")))
}

/// An address with a port; one that has colons of its own is put in brackets.
fn with_port(ip: &str, port: i64) -> String {
    if ip.contains(':') {
        format!("[{ip}]:{port}")
    } else {
        format!("{ip}:{port}")
    }
}

pub(super) fn endpoint_slice(column: &str, row: Row<'_>) -> Option<Value> {
    let unset = |text: String| json!(text.replace("<none>", "<unset>"));
    let cell = match column {
        "AddressType" => row.text_or("addressType", ""),
        "Ports" => {
            let ports = row.list("ports").iter();
            let ports = ports.map(|one| match (one["port"].as_i64(), one["name"].as_str()) {
                (Some(port), _) => port.to_string(),
                (None, Some(name)) if !name.is_empty() => name.to_owned(),
                (None, _) => "*".to_owned(),
            });
            unset(first_few(ports.collect(), SHOWN, ","))
        }
        "Endpoints" => {
            let addresses = row
                .list("endpoints")
                .iter()
                .filter_map(|one| one["addresses"].as_array())
                .flatten()
                .filter_map(|address| address.as_str().map(str::to_owned));
            unset(first_few(addresses.collect(), SHOWN, ","))
        }
        _ => return None,
    };
    Some(cell)
}

pub(super) fn ingress(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Class" => row.text_or("spec.ingressClassName", "<none>"),
        "Hosts" => {
            let rules = row.list("spec.rules").iter();
            let hosts: Vec<String> = rules
                .filter_map(|rule| rule["host"].as_str().map(str::to_owned))
                .collect();
            json!(if hosts.is_empty() {
                "*".to_owned()
            } else {
                first_few(hosts, SHOWN, ",")
            })
        }
        "Address" => json!(addresses(row).join(",")),
        "Ports" if row.list("spec.tls").is_empty() => json!("80"),
        "Ports" => json!("80, 443"),
        _ => return None,
    };
    Some(cell)
}

pub(super) fn ingress_class(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Controller" => row.text_or("spec.controller", ""),
        "Parameters" => {
            let parameters = row.at("spec.parameters");
            let text = |member: &str| parameters[member].as_str().unwrap_or_default();
            json!(match text("apiGroup") {
                _ if parameters.is_null() => "<none>".to_owned(),
                "" => format!("{}/{}", text("kind"), text("name")),
                group => format!("{}.{group}/{}", text("kind"), text("name")),
            })
        }
        _ => return None,
    };
    Some(cell)
}

pub(super) fn network_policy(column: &str, row: Row<'_>) -> Option<Value> {
    (column == "Pod-Selector").then(|| row.selector("spec.podSelector"))
}

pub(super) fn ip_address(column: &str, row: Row<'_>) -> Option<Value> {
    if column != "ParentRef" {
        return None;
    }
    let parts = ["group", "resource", "namespace", "name"].map(|member| {
        row.at("spec.parentRef")[member]
            .as_str()
            .unwrap_or_default()
    });
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Some(json!(parts.join("/")))
}

pub(super) fn service_cidr(column: &str, row: Row<'_>) -> Option<Value> {
    (column == "CIDRs").then(|| json!(joined(row.at("spec.cidrs"), ",")))
}
