//! The roles that every cluster with RBAC has, as far as clients and operators meet them.

use serde_json::{Value, json};

use super::{Registry, WriteOptions};

/// What a role allows: groups, resources and verbs, with spaces between them. `core` is the group without a name.
type Rule = (&'static str, &'static str, &'static str);

/// A role that is collected into another one.
struct Part {
    name: &'static str,
    /// The role that collects it.
    into: &'static str,
    rules: &'static [Rule],
}

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const BOTH: &str = "create delete deletecollection get list patch update watch";

/// Whoever has `edit` has `view`, and whoever has `admin` has both.
const COLLECTED: [(&str, Option<&str>); 3] = [
    ("admin", None),
    ("edit", Some("admin")),
    ("view", Some("edit")),
];

const PARTS: [Part; 3] = [
    Part {
        name: "system:aggregate-to-admin",
        into: "admin",
        rules: &[
            (
                "authorization.k8s.io",
                "localsubjectaccessreviews",
                "create",
            ),
            ("rbac.authorization.k8s.io", "rolebindings roles", BOTH),
        ],
    },
    Part {
        name: "system:aggregate-to-edit",
        into: "edit",
        rules: &[
            (
                "core",
                "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
                READ,
            ),
            ("core", "serviceaccounts", "impersonate"),
            (
                "core",
                "pods pods/attach pods/exec pods/portforward pods/proxy",
                WRITE,
            ),
            ("core", "pods/eviction", "create"),
            (
                "core",
                "configmaps events persistentvolumeclaims replicationcontrollers \
                 replicationcontrollers/scale secrets serviceaccounts services services/proxy",
                WRITE,
            ),
            ("core", "serviceaccounts/token", "create"),
            (
                "apps",
                "daemonsets deployments deployments/rollback deployments/scale replicasets \
                 replicasets/scale statefulsets statefulsets/scale",
                WRITE,
            ),
            ("autoscaling", "horizontalpodautoscalers", WRITE),
            ("batch", "cronjobs jobs", WRITE),
            ("policy", "poddisruptionbudgets", WRITE),
            ("networking.k8s.io", "ingresses networkpolicies", WRITE),
            ("coordination.k8s.io", "leases", BOTH),
        ],
    },
    Part {
        name: "system:aggregate-to-view",
        into: "view",
        rules: &[
            (
                "core",
                "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
                 replicationcontrollers replicationcontrollers/scale serviceaccounts services \
                 services/status",
                READ,
            ),
            (
                "core",
                "bindings events limitranges namespaces/status pods/log pods/status \
                 replicationcontrollers/status resourcequotas resourcequotas/status",
                READ,
            ),
            ("core", "namespaces", READ),
            ("discovery.k8s.io", "endpointslices", READ),
            (
                "apps",
                "controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
                 deployments/status replicasets replicasets/scale replicasets/status statefulsets \
                 statefulsets/scale statefulsets/status",
                READ,
            ),
            (
                "autoscaling",
                "horizontalpodautoscalers horizontalpodautoscalers/status",
                READ,
            ),
            ("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
            (
                "policy",
                "poddisruptionbudgets poddisruptionbudgets/status",
                READ,
            ),
            (
                "networking.k8s.io",
                "ingresses ingresses/status networkpolicies",
                READ,
            ),
        ],
    },
];

/// What everybody who is known may do: ask what there is, who they are, and what they may do.
const BASIC: [Rule; 2] = [
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews selfsubjectrulesreviews",
        "create",
    ),
    ("authentication.k8s.io", "selfsubjectreviews", "create"),
];

/// For servers that ask whether their callers may do something.
const DELEGATOR: [Rule; 2] = [
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
];

/// Where clients find out what is served.
const DISCOVERY: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];

/// What even those may see who are not known.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Which role is given to which groups.
const BINDINGS: [(&str, &[&str]); 4] = [
    ("cluster-admin", &["system:masters"]),
    ("system:basic-user", &["system:authenticated"]),
    ("system:discovery", &["system:authenticated"]),
    (
        "system:public-info-viewer",
        &["system:authenticated", "system:unauthenticated"],
    ),
];

const GROUP: &str = "rbac.authorization.k8s.io";

impl Registry {
    /// Makes the default roles and bindings.
    pub(crate) fn make_default_roles(&mut self) {
        for role in roles() {
            self.make_default("clusterroles", role);
        }
        for (role, groups) in BINDINGS {
            let subjects: Vec<Value> = groups
                .iter()
                .map(|group| json!({ "apiGroup": GROUP, "kind": "Group", "name": group }))
                .collect();
            let binding = json!({
                "metadata": metadata(role, None),
                "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": role },
                "subjects": subjects,
            });
            self.make_default("clusterrolebindings", binding);
        }
    }

    fn make_default(&mut self, plural: &str, object: Value) {
        let Some(target) = self.target(GROUP, "v1", plural, "", "") else {
            return;
        };
        let options = WriteOptions {
            manager: "kube-apiserver".to_owned(),
            ..WriteOptions::default()
        };
        self.create(&target, object, &options)
            .expect("a role that every cluster has can be created on an empty server");
    }
}

/// The rules of whoever may do everything.
pub(super) fn everything() -> Vec<Value> {
    vec![
        json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }),
        json!({ "nonResourceURLs": ["*"], "verbs": ["*"] }),
    ]
}

fn roles() -> Vec<Value> {
    let plain =
        |name: &str, rules: Vec<Value>| json!({ "metadata": metadata(name, None), "rules": rules });
    let urls = |urls: &[&str]| vec![json!({ "nonResourceURLs": urls, "verbs": ["get"] })];
    let mut roles = vec![
        plain("cluster-admin", everything()),
        plain("system:discovery", urls(&DISCOVERY)),
        plain("system:public-info-viewer", urls(&PUBLIC)),
        plain("system:basic-user", BASIC.iter().map(rule).collect()),
        plain(
            "system:auth-delegator",
            DELEGATOR.iter().map(rule).collect(),
        ),
    ];
    for Part { name, into, rules } in PARTS {
        let allowed: Vec<Value> = rules.iter().map(rule).collect();
        roles.push(json!({ "metadata": metadata(name, Some(into)), "rules": allowed }));
    }
    for (name, into) in COLLECTED {
        let labels = json!({ (label(name)): "true" });
        roles.push(json!({
            "metadata": metadata(name, into),
            "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": labels }] },
        }));
    }
    roles
}

fn label(role: &str) -> String {
    format!("{GROUP}/aggregate-to-{role}")
}

fn metadata(name: &str, into: Option<&str>) -> Value {
    let mut labels = json!({ "kubernetes.io/bootstrapping": "rbac-defaults" });
    if let Some(role) = into {
        labels[label(role)] = json!("true");
    }
    json!({
        "name": name,
        "labels": labels,
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    })
}

fn rule((groups, resources, verbs): &Rule) -> Value {
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let groups = words(groups).into_iter();
    let groups = groups.map(|group| {
        if group == "core" {
            String::new()
        } else {
            group
        }
    });
    json!({
        "apiGroups": groups.collect::<Vec<_>>(),
        "resources": words(resources),
        "verbs": words(verbs),
    })
}
