//! The kinds that a new operator can own.

/// A kind, and what an object of it is in a new project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) kind: &'static str,
    pub(super) group: &'static str,
    pub(super) plural: &'static str,
    /// Where k8s-openapi has it.
    pub(super) module: &'static str,
    /// The function that makes one, and what it is called where it is used.
    pub(super) function: &'static str,
    /// What one is, for documentation.
    pub(super) about: &'static str,
    /// The content, as Rust.
    content: &'static str,
    /// Whether it has replicas, whose roll-out the status tells.
    pub(super) workload: bool,
}

const TABLE: [Owned; 7] = [
    Owned {
        kind: "ConfigMap",
        group: "",
        plural: "configmaps",
        module: "core::v1",
        function: "config_map",
        about: "The message.",
        content: r#"json!({ "data": { "message": object.spec.message } })"#,
        workload: false,
    },
    Owned {
        kind: "CronJob",
        group: "batch",
        plural: "cronjobs",
        module: "batch::v1",
        function: "cron_job",
        about: "Says the message once a month.",
        content: r#"json!({ "spec": {
            "schedule": "0 3 15 * *",
            "jobTemplate": { "spec": { "template": { "spec": {
                "restartPolicy": "OnFailure",
                "containers": [{ "name": "main", "image": "busybox:1", "command": ["echo", object.spec.message] }],
            } } } },
        } })"#,
        workload: false,
    },
    Owned {
        kind: "Deployment",
        group: "apps",
        plural: "deployments",
        module: "apps::v1",
        function: "deployment",
        about: "Pods that have the message in their environment.",
        content: r#"json!({ "spec": {
            "replicas": object.spec.replicas,
            "selector": { "matchLabels": labels(object) },
            "template": {
                "metadata": { "labels": labels(object) },
                "spec": { "containers": [{
                    "name": "main",
                    "image": "nginx:1-alpine",
                    "env": [{ "name": "MESSAGE", "value": object.spec.message }],
                }] },
            },
        } })"#,
        workload: true,
    },
    Owned {
        kind: "Secret",
        group: "",
        plural: "secrets",
        module: "core::v1",
        function: "secret",
        about: "The message, for those only who may read Secrets.",
        content: r#"json!({ "data": {
            "message": k8s_openapi::ByteString(object.spec.message.clone().into_bytes()),
        } })"#,
        workload: false,
    },
    Owned {
        kind: "Service",
        group: "",
        plural: "services",
        module: "core::v1",
        function: "service",
        about: "One address for all pods.",
        content: r#"json!({ "spec": {
            "selector": labels(object),
            "ports": [{ "name": "http", "port": 80 }],
        } })"#,
        workload: false,
    },
    Owned {
        kind: "ServiceAccount",
        group: "",
        plural: "serviceaccounts",
        module: "core::v1",
        function: "service_account",
        about: "Who the pods are.",
        content: "json!({})",
        workload: false,
    },
    Owned {
        kind: "StatefulSet",
        group: "apps",
        plural: "statefulsets",
        module: "apps::v1",
        function: "stateful_set",
        about: "Pods with names that stay, which have the message in their environment.",
        content: r#"json!({ "spec": {
            "serviceName": object.name_any(),
            "replicas": object.spec.replicas,
            "selector": { "matchLabels": labels(object) },
            "template": {
                "metadata": { "labels": labels(object) },
                "spec": { "containers": [{
                    "name": "main",
                    "image": "nginx:1-alpine",
                    "env": [{ "name": "MESSAGE", "value": object.spec.message }],
                }] },
            },
        } })"#,
        workload: true,
    },
];

/// What is owned if nobody says.
pub(super) const DEFAULT: &str = "ConfigMap";

/// The kinds of these names, each once, in the order of the table.
///
/// # Errors
///
/// A kind that is not known here.
pub(super) fn find(kinds: &[String]) -> Result<Vec<&'static Owned>, String> {
    let default = [DEFAULT.to_owned()];
    let kinds = if kinds.is_empty() { &default } else { kinds };
    if let Some(unknown) = kinds
        .iter()
        .find(|kind| TABLE.iter().all(|it| it.kind != **kind))
    {
        return Err(format!(
            "--owns {unknown}: take some of {}; others you add in src/children.rs",
            all()
        ));
    }
    let wanted = |owned: &&Owned| kinds.iter().any(|kind| *kind == owned.kind);
    Ok(TABLE.iter().filter(wanted).collect())
}

/// The names of all kinds.
pub(super) fn all() -> String {
    TABLE.map(|owned| owned.kind).join(", ")
}

pub(super) fn help() -> String {
    format!(
        "The kinds of the objects that it owns: some of {} [default: {DEFAULT}]",
        all()
    )
}

// === impl Owned ===

impl Owned {
    /// The function that makes an object, for `src/children.rs`.
    pub(super) fn code(&self, parent: &str) -> String {
        let Self {
            kind,
            function,
            about,
            content,
            ..
        } = self;
        format!(
            "/// {about}\n#[must_use]\npub fn {function}(object: &{parent}) -> {kind} {{\n    child(object, {content})\n}}\n\n"
        )
    }
}
