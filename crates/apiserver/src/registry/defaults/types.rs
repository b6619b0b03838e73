//! Defaults of types, wherever they occur: those that the schema states, and those that only the
//! recorded server's code knows.

use serde_json::{Map, Value, json};

use crate::schema::Schema;

/// What objects of a type get.
struct TypeDefaults {
    /// Its full name.
    name: &'static str,
    members: &'static [(&'static str, Default)],
    /// What depends on other members.
    rest: Option<fn(&mut Map<String, Value>)>,
}

/// The value of a member that is left out.
enum Default {
    /// The empty text counts as left out.
    Text(&'static str),
    /// Zero counts as left out.
    Count(u32),
    /// Zero is a number like others.
    Number(u32),
}

use Default::{Count, Number, Text};

const CONTAINER: &[(&str, Default)] = &[
    ("terminationMessagePath", Text("/dev/termination-log")),
    ("terminationMessagePolicy", Text("File")),
];

const FILE_MODE: &[(&str, Default)] = &[("defaultMode", Number(0o644))];

const HTTPS_PORT: &[(&str, Default)] = &[("port", Number(443))];

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// Sorted by name.
const TYPES: [TypeDefaults; 23] = [
    plain(
        "io.k8s.api.admissionregistration.v1.ServiceReference",
        HTTPS_PORT,
    ),
    with(
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior",
        &[],
        behavior,
    ),
    plain("io.k8s.api.core.v1.ConfigMapVolumeSource", FILE_MODE),
    with("io.k8s.api.core.v1.Container", CONTAINER, pull_policy),
    plain("io.k8s.api.core.v1.DownwardAPIVolumeSource", FILE_MODE),
    plain(
        "io.k8s.api.core.v1.EndpointPort",
        &[("protocol", Text("TCP"))],
    ),
    with(
        "io.k8s.api.core.v1.EphemeralContainer",
        CONTAINER,
        pull_policy,
    ),
    plain(
        "io.k8s.api.core.v1.HTTPGetAction",
        &[("path", Text("/")), ("scheme", Text("HTTP"))],
    ),
    plain(
        "io.k8s.api.core.v1.ObjectFieldSelector",
        &[("apiVersion", Text("v1"))],
    ),
    plain(
        "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
        &[("volumeMode", Text("Filesystem"))],
    ),
    plain(
        "io.k8s.api.core.v1.PersistentVolumeClaimStatus",
        &[("phase", Text("Pending"))],
    ),
    with("io.k8s.api.core.v1.PodSpec", &[], account),
    plain(
        "io.k8s.api.core.v1.Probe",
        &[
            ("failureThreshold", Count(3)),
            ("periodSeconds", Count(10)),
            ("successThreshold", Count(1)),
            ("timeoutSeconds", Count(1)),
        ],
    ),
    plain("io.k8s.api.core.v1.ProjectedVolumeSource", FILE_MODE),
    plain(
        "io.k8s.api.core.v1.ResourceFieldSelector",
        &[("divisor", Text("0"))],
    ),
    plain("io.k8s.api.core.v1.SecretVolumeSource", FILE_MODE),
    plain(
        "io.k8s.api.core.v1.ServiceAccountTokenProjection",
        &[("expirationSeconds", Number(3600))],
    ),
    with("io.k8s.api.core.v1.Volume", &[], volume_source),
    plain(
        "io.k8s.api.discovery.v1.EndpointPort",
        &[("protocol", Text("TCP"))],
    ),
    plain(
        "io.k8s.api.networking.v1.IngressClassParametersReference",
        &[("scope", Text("Cluster"))],
    ),
    plain(
        "io.k8s.api.networking.v1.NetworkPolicyPort",
        &[("protocol", Text("TCP"))],
    ),
    plain(
        "io.k8s.api.rbac.v1.RoleRef",
        &[("apiGroup", Text(RBAC_GROUP))],
    ),
    with("io.k8s.api.rbac.v1.Subject", &[], subject_group),
];

const fn plain(name: &'static str, members: &'static [(&'static str, Default)]) -> TypeDefaults {
    TypeDefaults {
        name,
        members,
        rest: None,
    }
}

const fn with(
    name: &'static str,
    members: &'static [(&'static str, Default)],
    rest: fn(&mut Map<String, Value>),
) -> TypeDefaults {
    TypeDefaults {
        name,
        members,
        rest: Some(rest),
    }
}

/// Fills in the defaults of a value's type, and of the types in it.
pub(super) fn fill_types(schema: &Schema, value: &mut Value) {
    let resolved = schema.resolved();
    if let Some(elements) = value.as_array_mut() {
        if let Some(items) = &resolved.items {
            for element in elements {
                fill_types(items, element);
            }
        }
        return;
    }
    let Some(members) = value.as_object_mut() else {
        return;
    };
    for (name, field) in &resolved.fields {
        if let Some(value) = members.get_mut(name) {
            fill_types(field, value);
        } else if let Some(default) = &field.default
            && !is_zero(default)
        {
            members.insert(name.clone(), default.clone());
        }
    }
    if let Some(defaults) = schema.reference.as_deref().and_then(of_type) {
        defaults.fill(members);
    }
}

fn of_type(name: &str) -> Option<&'static TypeDefaults> {
    let place = TYPES.binary_search_by(|defaults| defaults.name.cmp(name));
    place.ok().map(|place| &TYPES[place])
}

/// A stated default that only tells that the member is always written.
fn is_zero(default: &Value) -> bool {
    default.as_object().is_some_and(Map::is_empty)
        || default == ""
        || default == 0
        || default == false
}

// === impl TypeDefaults ===

impl TypeDefaults {
    fn fill(&self, members: &mut Map<String, Value>) {
        for (name, default) in self.members {
            let is_absent = match (members.get(*name), default) {
                (None, _) => true,
                (Some(value), Text(_)) => value == "",
                (Some(value), Count(_)) => *value == 0,
                (Some(_), Number(_)) => false,
            };
            if is_absent {
                members.insert((*name).to_owned(), default.value());
            }
        }
        if let Some(rest) = self.rest {
            rest(members);
        }
    }
}

// === impl Default ===

impl Default {
    fn value(&self) -> Value {
        match self {
            Text(text) => json!(text),
            Count(number) | Number(number) => json!(number),
        }
    }
}

/// An image without a tag, or with the tag `latest`, is always pulled.
fn pull_policy(container: &mut Map<String, Value>) {
    if container.contains_key("imagePullPolicy") {
        return;
    }
    let image = container.get("image").and_then(Value::as_str);
    let is_readable = image.is_some_and(is_image);
    let last = image.and_then(|image| image.rsplit('/').next());
    let last = last.unwrap_or_default();
    // What cannot be read has no tag that could float.
    let floating = is_readable
        && !last.contains('@')
        && last.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    let policy = if floating { "Always" } else { "IfNotPresent" };
    container.insert("imagePullPolicy".to_owned(), json!(policy));
}

/// Whether a text is the name of an image.
fn is_image(text: &str) -> bool {
    let text = match text.split_once('@') {
        Some((name, digest)) => {
            let hex = digest.split_once(':').map(|(_, hex)| hex);
            let is_hex = |hex: &str| hex.len() >= 32 && hex.bytes().all(|c| c.is_ascii_hexdigit());
            if !hex.is_some_and(is_hex) {
                return false;
            }
            name
        }
        None => text,
    };
    let (path, last) = text.rsplit_once('/').unwrap_or(("", text));
    let (last, tag) = last.split_once(':').unwrap_or((last, "latest"));
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_tag =
        (1..=128).contains(&tag.len()) && tag.chars().all(fits) && !tag.starts_with(['.', '-']);
    let mut parts = path.split('/').filter(|_| !path.is_empty()).peekable();
    let is_host = |part: &&str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        (part.contains(['.', ':']) || *part == "localhost") && part.chars().all(fits)
    };
    parts.next_if(is_host);
    let is_part = |part: &str| {
        let edge =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
        edge(part.chars().next()) && edge(part.chars().next_back()) && part.chars().all(fits)
    };
    is_tag && parts.all(is_part) && is_part(last)
}

/// A service account has two names, one of them old.
fn account(spec: &mut Map<String, Value>) {
    for (from, to) in [
        ("serviceAccountName", "serviceAccount"),
        ("serviceAccount", "serviceAccountName"),
    ] {
        if let Some(name) = spec.get(from).cloned() {
            spec.insert(to.to_owned(), name);
            return;
        }
    }
}

/// A volume of nothing is an empty directory.
fn volume_source(volume: &mut Map<String, Value>) {
    if volume.keys().all(|member| member == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

/// Users and groups are of the group of RBAC, service accounts are not.
fn subject_group(subject: &mut Map<String, Value>) {
    let kind = subject.get("kind").and_then(Value::as_str);
    if kind.is_some_and(|kind| ["User", "Group"].contains(&kind)) {
        let group = subject.entry("apiGroup").or_insert_with(|| json!(""));
        if group == "" {
            *group = json!(RBAC_GROUP);
        }
    }
}

/// Whoever says something about scaling gets the rest of the rules.
fn behavior(behavior: &mut Map<String, Value>) {
    let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
    let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
    let up = json!({
        "policies": [pods, percent], "selectPolicy": "Max", "stabilizationWindowSeconds": 0,
    });
    let down = json!({ "policies": [percent], "selectPolicy": "Max" });
    for (direction, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        let rules = behavior.entry(direction).or_insert_with(|| json!({}));
        if let (Some(rules), Value::Object(defaults)) = (rules.as_object_mut(), defaults) {
            for (name, default) in defaults {
                rules.entry(name).or_insert(default);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin_type;

    #[test]
    fn the_table_is_sorted_and_names_types_that_exist() {
        assert!(TYPES.is_sorted_by_key(|defaults| defaults.name));
        for TypeDefaults { name, members, .. } in &TYPES {
            let schema = builtin_type(name).expect("the type is part of the data");
            for (member, _) in *members {
                assert!(schema.fields.contains_key(*member), "{name}.{member}");
            }
        }
    }

    #[track_caller]
    fn check(type_name: &str, mut value: Value, expected: &Value) {
        let name = format!("io.k8s.api.{type_name}");
        fill_types(&Schema::reference_to(name), &mut value);
        assert_eq!(value, *expected);
    }

    #[test]
    fn what_types_add() {
        check(
            "core.v1.Probe",
            json!({ "periodSeconds": 0, "timeoutSeconds": 5 }),
            &json!({
                "failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1,
                "timeoutSeconds": 5,
            }),
        );
        check(
            "core.v1.SecretVolumeSource",
            json!({ "defaultMode": 0 }),
            &json!({ "defaultMode": 0 }),
        );
        check(
            "core.v1.Volume",
            json!({ "name": "v" }),
            &json!({ "name": "v", "emptyDir": {} }),
        );
        check(
            "rbac.v1.Subject",
            json!({ "kind": "ServiceAccount", "name": "a" }),
            &json!({ "kind": "ServiceAccount", "name": "a" }),
        );
        check(
            "rbac.v1.RoleRef",
            json!({ "apiGroup": "", "kind": "Role" }),
            &json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role" }),
        );
        check(
            "core.v1.PodSpec",
            json!({ "serviceAccount": "a" }),
            &json!({ "serviceAccount": "a", "serviceAccountName": "a" }),
        );
    }

    #[test]
    fn images_decide_when_they_are_pulled() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1", "IfNotPresent"),
            ("host:5000/nginx", "Always"),
            ("host:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:0", "IfNotPresent"),
            ("é", "IfNotPresent"),
            ("Nginx", "IfNotPresent"),
            ("", "IfNotPresent"),
            ("localhost/a_b/c-d", "Always"),
        ] {
            let mut container = json!({ "image": image });
            pull_policy(container.as_object_mut().expect("it is an object"));
            assert_eq!(container["imagePullPolicy"], policy, "{image}");
        }
    }
}
