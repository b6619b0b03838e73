use serde_json::{Value, json};

use super::workloads::access_modes;
use super::{Row, joined, or_none, scalar};

/// `ConfigMap`s and Secrets.
pub(super) fn data(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "Type" => Some(row.text_or("type", "")),
        "Data" => {
            let size = |path| row.at(path).as_object().map_or(0, serde_json::Map::len);
            Some(json!(size("data") + size("binaryData")))
        }
        _ => None,
    }
}

pub(super) fn namespace(column: &str, row: Row<'_>) -> Option<Value> {
    (column == "Status").then(|| row.text_or("status.phase", ""))
}

pub(super) fn node(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Status" => {
            let ready = match row.condition("Ready") {
                "True" => "Ready",
                "" => "Unknown",
                _ => "NotReady",
            };
            json!(if row.at("spec.unschedulable") == true {
                format!("{ready},SchedulingDisabled")
            } else {
                ready.to_owned()
            })
        }
        "Roles" => {
            let labels = row.at("metadata.labels").as_object().into_iter().flatten();
            let roles: Vec<&str> = labels
                .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
                .collect();
            json!(or_none(roles.join(",")))
        }
        "Version" => row.text_or("status.nodeInfo.kubeletVersion", ""),
        "Internal-IP" => address(row, "InternalIP"),
        "External-IP" => address(row, "ExternalIP"),
        "OS-Image" => row.text_or("status.nodeInfo.osImage", "<unknown>"),
        "Kernel-Version" => row.text_or("status.nodeInfo.kernelVersion", "<unknown>"),
        "Container-Runtime" => row.text_or("status.nodeInfo.containerRuntimeVersion", "<unknown>"),
        _ => return None,
    };
    Some(cell)
}

fn address(row: Row<'_>, kind: &str) -> Value {
    let all = row.list("status.addresses").iter();
    let found = all.clone().find(|one| one["type"] == kind);
    let found = found.and_then(|one| one["address"].as_str());
    json!(found.unwrap_or("<none>"))
}

/// Events of both groups: the newer one calls some members differently.
pub(super) fn event(column: &str, row: Row<'_>) -> Option<Value> {
    let either = |first, second| {
        let found = row.at(first);
        if found.is_null() {
            row.at(second)
        } else {
            found
        }
    };
    let about = either("involvedObject", "regarding");
    let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
    let event_time = row.at("eventTime");
    let ago = |time: &Value| {
        let time = if time.is_null() { event_time } else { time };
        json!(super::age::since(time, row.now))
    };
    let cell = match column {
        "Last Seen" if row.at("series").is_object() => ago(row.at("series.lastObservedTime")),
        "Last Seen" => ago(either("lastTimestamp", "deprecatedLastTimestamp")),
        "First Seen" => ago(either("firstTimestamp", "deprecatedFirstTimestamp")),
        "Type" => row.text_or("type", ""),
        "Reason" => row.text_or("reason", ""),
        "Object" => {
            let (kind, name) = (text(&about["kind"]).to_lowercase(), text(&about["name"]));
            json!(if name.is_empty() {
                kind
            } else {
                format!("{kind}/{name}")
            })
        }
        "Subobject" => json!(text(&about["fieldPath"])),
        "Source" => {
            let source = either("source", "deprecatedSource");
            let mut component = text(&source["component"]);
            if component.is_empty() {
                component = text(either("reportingComponent", "reportingController"));
            }
            let host = text(&source["host"]);
            json!(if host.is_empty() {
                component
            } else {
                format!("{component}, {host}")
            })
        }
        "Message" => json!(text(either("message", "note"))),
        "Count" => {
            let count = row.at("series.count").as_i64();
            let single = either("count", "deprecatedCount").as_i64();
            json!(count.or(single).unwrap_or(1).max(1))
        }
        _ => return None,
    };
    Some(cell)
}

/// What a claim or a volume says about its class of attributes and its mode.
fn volume_traits(column: &str, row: Row<'_>) -> Option<Value> {
    match column {
        "VolumeAttributesClass" => Some(row.text_or("spec.volumeAttributesClassName", "<unset>")),
        "VolumeMode" => Some(row.text_or("spec.volumeMode", "<unset>")),
        _ => None,
    }
}

fn phase(row: Row<'_>) -> Value {
    if row.is_being_deleted() {
        json!("Terminating")
    } else {
        row.text_or("status.phase", "")
    }
}

pub(super) fn volume(column: &str, row: Row<'_>) -> Option<Value> {
    let cell = match column {
        "Capacity" => row.scalar_or("spec.capacity.storage", ""),
        "Access Modes" => json!(access_modes(row.at("spec.accessModes"))),
        "Reclaim Policy" => row.text_or("spec.persistentVolumeReclaimPolicy", ""),
        "Status" => phase(row),
        "Claim" => {
            let claim = row.at("spec.claimRef");
            let text = |member: &str| claim[member].as_str().unwrap_or_default();
            json!(if claim.is_null() {
                String::new()
            } else {
                format!("{}/{}", text("namespace"), text("name"))
            })
        }
        "StorageClass" => row.text_or("spec.storageClassName", ""),
        "Reason" => row.text_or("status.reason", ""),
        _ => return volume_traits(column, row),
    };
    Some(cell)
}

pub(super) fn claim(column: &str, row: Row<'_>) -> Option<Value> {
    let bound = !row.text("spec.volumeName").is_empty();
    let cell = match column {
        "Status" => phase(row),
        "Volume" => row.text_or("spec.volumeName", ""),
        "Capacity" if bound => row.scalar_or("status.capacity.storage", ""),
        "Access Modes" if bound => json!(access_modes(row.at("status.accessModes"))),
        "Capacity" | "Access Modes" => json!(""),
        "StorageClass" => row.text_or("spec.storageClassName", ""),
        _ => return volume_traits(column, row),
    };
    Some(cell)
}

/// Requests are whatever is not a limit.
pub(super) fn quota(column: &str, row: Row<'_>) -> Option<Value> {
    let limits = match column {
        "Request" => false,
        "Limit" => true,
        _ => return None,
    };
    let hard = row.at("status.hard").as_object().into_iter().flatten();
    let used: Vec<String> = hard
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = scalar(&row.at("status.used")[name]).unwrap_or_else(|| "0".to_owned());
            format!("{name}: {used}/{}", scalar(hard).unwrap_or_default())
        })
        .collect();
    Some(json!(used.join(", ")))
}

pub(super) fn lease(column: &str, row: Row<'_>) -> Option<Value> {
    (column == "Holder").then(|| row.text_or("spec.holderIdentity", ""))
}

/// The kinds of `storage.k8s.io`, whose columns do not collide.
pub(super) fn storage(column: &str, row: Row<'_>) -> Option<Value> {
    let flag = |path| json!(row.at(path).as_bool().unwrap_or_default());
    let cell = match column {
        "Name" => {
            let name = row.text("metadata.name");
            let default = "storageclass.kubernetes.io/is-default-class";
            let annotations = row.at("metadata.annotations");
            json!(if annotations[default] == "true" {
                format!("{name} (default)")
            } else {
                name.to_owned()
            })
        }
        "Provisioner" => row.text_or("provisioner", ""),
        "ReclaimPolicy" => row.text_or("reclaimPolicy", "Delete"),
        "VolumeBindingMode" => row.text_or("volumeBindingMode", "Immediate"),
        "AllowVolumeExpansion" => flag("allowVolumeExpansion"),
        "AttachRequired" => json!(row.at("spec.attachRequired").as_bool().unwrap_or(true)),
        "PodInfoOnMount" => flag("spec.podInfoOnMount"),
        "StorageCapacity" => flag("spec.storageCapacity"),
        "RequiresRepublish" => flag("spec.requiresRepublish"),
        "TokenRequests" => {
            let requests = row.list("spec.tokenRequests").iter();
            let audiences: Vec<&str> = requests
                .filter_map(|request| request["audience"].as_str())
                .collect();
            json!(if audiences.is_empty() {
                "<unset>".to_owned()
            } else {
                audiences.join(",")
            })
        }
        "Modes" => json!(joined(row.at("spec.volumeLifecycleModes"), ",")),
        "Drivers" => json!(row.list("spec.drivers").len()),
        "Attacher" => row.text_or("spec.attacher", ""),
        "PV" => row.text_or("spec.source.persistentVolumeName", ""),
        "Node" => row.text_or("spec.nodeName", ""),
        "Attached" => flag("status.attached"),
        "DriverName" => row.text_or("driverName", ""),
        _ => return None,
    };
    Some(cell)
}
