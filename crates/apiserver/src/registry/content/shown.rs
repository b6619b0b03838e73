//! Values in messages that a server shows with the names of the members of its own types.

use serde_json::Value;

/// The members of a type: the name that is shown, the name in objects, and what is shown.
#[derive(Debug)]
pub(super) struct Shape(&'static [(&'static str, &'static str, Member)]);

#[derive(Debug)]
enum Member {
    /// `null` without a value.
    Optional,
    /// The empty text without a value.
    Text,
    /// Zero without a value.
    Number,
    Inside(&'static Shape),
}

use Member::{Inside, Number, Optional, Text};

pub(super) const BUDGET: Shape = Shape(&[
    ("MinAvailable", "minAvailable", Optional),
    ("Selector", "selector", Optional),
    ("MaxUnavailable", "maxUnavailable", Optional),
    (
        "UnhealthyPodEvictionPolicy",
        "unhealthyPodEvictionPolicy",
        Optional,
    ),
]);

pub(super) const STATEFUL_STRATEGY: Shape = Shape(&[
    ("Type", "type", Text),
    ("RollingUpdate", "rollingUpdate", Inside(&ROLLING_STATEFUL)),
]);

const ROLLING_STATEFUL: Shape = Shape(&[
    ("Partition", "partition", Number),
    ("MaxUnavailable", "maxUnavailable", Optional),
]);

/// What an event is about.
pub(super) const REFERENCE: Shape = Shape(&[
    ("Kind", "kind", Text),
    ("Namespace", "namespace", Text),
    ("Name", "name", Text),
    ("UID", "uid", Text),
    ("APIVersion", "apiVersion", Text),
    ("ResourceVersion", "resourceVersion", Text),
    ("FieldPath", "fieldPath", Text),
]);

pub(super) const EVENT_SOURCE: Shape =
    Shape(&[("Component", "component", Text), ("Host", "host", Text)]);

pub(super) const SECURITY: Shape = Shape(&[
    ("Capabilities", "capabilities", Inside(&CAPABILITIES)),
    ("Privileged", "privileged", Optional),
    ("SELinuxOptions", "seLinuxOptions", Inside(&SE_LINUX)),
    ("WindowsOptions", "windowsOptions", Inside(&WINDOWS)),
    ("RunAsUser", "runAsUser", Optional),
    ("RunAsGroup", "runAsGroup", Optional),
    ("RunAsNonRoot", "runAsNonRoot", Optional),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Optional),
    (
        "AllowPrivilegeEscalation",
        "allowPrivilegeEscalation",
        Optional,
    ),
    ("ProcMount", "procMount", Optional),
    ("SeccompProfile", "seccompProfile", Inside(&PROFILE)),
    ("AppArmorProfile", "appArmorProfile", Inside(&PROFILE)),
]);

const CAPABILITIES: Shape = Shape(&[("Add", "add", Optional), ("Drop", "drop", Optional)]);

const SE_LINUX: Shape = Shape(&[
    ("User", "user", Text),
    ("Role", "role", Text),
    ("Type", "type", Text),
    ("Level", "level", Text),
]);

const WINDOWS: Shape = Shape(&[
    ("GMSACredentialSpecName", "gmsaCredentialSpecName", Optional),
    ("GMSACredentialSpec", "gmsaCredentialSpec", Optional),
    ("RunAsUserName", "runAsUserName", Optional),
    ("HostProcess", "hostProcess", Optional),
]);

pub(super) const PROFILE: Shape = Shape(&[
    ("Type", "type", Text),
    ("LocalhostProfile", "localhostProfile", Optional),
]);

// === impl Shape ===

impl Shape {
    /// A value as it is shown.
    pub(super) fn of(&self, value: &Value) -> String {
        let members = self.0.iter().map(|(shown, name, member)| {
            let value = &value[*name];
            let text = match (member, value) {
                (Inside(shape), Value::Object(_)) => shape.of(value),
                (Text, Value::Null) => "\"\"".to_owned(),
                (Number, Value::Null) => "0".to_owned(),
                (Optional | Text | Number | Inside(_), value) => value.to_string(),
            };
            format!("{shown:?}:{text}")
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_have_their_own_names() {
        let strategy = json!({ "type": "Foo" });
        assert_eq!(
            STATEFUL_STRATEGY.of(&strategy),
            r#"{"Type":"Foo","RollingUpdate":null}"#
        );
        let strategy = json!({ "rollingUpdate": { "maxUnavailable": "1%" } });
        assert_eq!(
            STATEFUL_STRATEGY.of(&strategy),
            r#"{"Type":"","RollingUpdate":{"Partition":0,"MaxUnavailable":"1%"}}"#
        );
    }
}
