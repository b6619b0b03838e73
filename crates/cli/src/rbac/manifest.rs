//! Roles as manifests have them.

use super::rights::{Place, Right, Rights};
use crate::{failure::Failure, file};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::PathBuf,
};

/// A right, and the role that grants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) right: Right,
    /// As in `ClusterRole website-operator`.
    pub(super) role: String,
}

/// A rule of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
    paths: Vec<String>,
    verbs: Vec<String>,
}

const GROUP: &str = "rbac.authorization.k8s.io";

/// The order in which people write verbs.
const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// What the roles in these files grant: those that are bound there, or all if none is.
///
/// # Errors
///
/// A file that cannot be read, is no YAML or JSON, or none with a role in it.
pub(super) fn granted(files: &[PathBuf]) -> Result<Vec<Grant>, Failure> {
    let mut objects: Vec<Value> = Vec::new();
    for file in files {
        let text = file::read_manifest("--check", file).map_err(Failure::Usage)?;
        let found: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| {
            let name = file.display();
            Failure::Usage(format!("{name}: this is neither YAML nor JSON: {error}"))
        })?;
        objects.extend(found);
    }
    let grants = grants(&objects);
    if grants.is_empty() && !files.is_empty() {
        let text = "no Role or ClusterRole with rules is in the files of --check";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(grants)
}

fn grants(objects: &[Value]) -> Vec<Grant> {
    let of_kinds = |kinds: [&'static str; 2]| {
        let fits = move |object: &&Value| {
            kinds.contains(&text(object, "kind")) && text(object, "apiVersion").starts_with(GROUP)
        };
        objects.iter().filter(fits)
    };
    let bound: BTreeSet<(&str, &str)> = of_kinds(["RoleBinding", "ClusterRoleBinding"])
        .map(|binding| &binding["roleRef"])
        .map(|role| (text(role, "kind"), text(role, "name")))
        .collect();
    // A cluster role may be given in one namespace alone.
    let narrowed: BTreeSet<&str> = of_kinds(["RoleBinding", "RoleBinding"])
        .map(|binding| &binding["roleRef"])
        .filter(|role| role["kind"] == "ClusterRole")
        .map(|role| text(role, "name"))
        .collect();
    let mut grants = Vec::new();
    for role in of_kinds(["Role", "ClusterRole"]) {
        let (kind, name) = (text(role, "kind"), text(&role["metadata"], "name"));
        if !bound.is_empty() && !bound.contains(&(kind, name)) {
            continue;
        }
        let place = if kind == "Role" || narrowed.contains(name) {
            Place::Own
        } else {
            Place::Everywhere
        };
        for rule in role["rules"].as_array().into_iter().flatten() {
            for right in rights_of(rule, place) {
                let role = format!("{kind} {name}");
                grants.push(Grant { right, role });
            }
        }
    }
    grants
}

/// The rights in a rule, one by one.
fn rights_of(rule: &Value, place: Place) -> Vec<Right> {
    let texts = |member: &str| -> Vec<String> {
        let all = rule[member].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (groups, resources) = (texts("apiGroups"), texts("resources"));
    let names: Vec<Option<String>> = match texts("resourceNames") {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    let mut rights = Vec::new();
    for verb in texts("verbs") {
        let right = Right {
            place,
            group: String::new(),
            resource: String::new(),
            name: None,
            path: String::new(),
            verb,
        };
        for path in texts("nonResourceURLs") {
            rights.push(Right {
                path,
                ..right.clone()
            });
        }
        for group in &groups {
            for resource in &resources {
                rights.extend(names.iter().map(|name| Right {
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    ..right.clone()
                }));
            }
        }
    }
    rights
}

/// The rules that grant these rights at a place: as few as there can be with one group each.
fn rules(rights: &BTreeSet<Right>, place: Place) -> Vec<Rule> {
    let mut verbs: BTreeMap<(&str, &str, &str, Option<&str>), Vec<&str>> = BTreeMap::new();
    for right in rights.iter().filter(|right| right.place == place) {
        let key = (
            &*right.path,
            &*right.group,
            &*right.resource,
            right.name.as_deref(),
        );
        verbs.entry(key).or_default().push(&right.verb);
    }
    let rank = |verb: &str| {
        VERBS
            .iter()
            .position(|known| *known == verb)
            .unwrap_or(VERBS.len())
    };
    let mut of_verbs: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for ((path, group, resource, name), mut verbs) in verbs {
        verbs.sort_by_key(|verb| (rank(verb), *verb));
        let names = of_verbs
            .entry((path, group, resource, name.is_some(), verbs))
            .or_default();
        names.extend(name);
    }
    let mut merged: BTreeMap<_, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for ((path, group, resource, _, verbs), names) in of_verbs {
        let (resources, paths) = merged
            .entry((!path.is_empty(), group, verbs, names))
            .or_default();
        if path.is_empty() {
            resources.push(resource);
        } else {
            paths.push(path);
        }
    }
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
    let mut rules: Vec<Rule> = merged
        .into_iter()
        .map(|((_, group, verbs, names), (resources, paths))| Rule {
            group: group.to_owned(),
            resources: owned(resources),
            names: owned(names),
            paths: owned(paths),
            verbs: owned(verbs),
        })
        .collect();
    rules.sort_by(|one, other| {
        let key = |rule: &Rule| {
            (
                rule.paths.clone(),
                rule.group.clone(),
                rule.resources.clone(),
                rule.names.clone(),
            )
        };
        key(one).cmp(&key(other))
    });
    rules
}

/// Account, roles and bindings as YAML.
pub(crate) fn yaml(rights: &Rights, name: &str, namespace: &str) -> String {
    let mut text = format!(
        "# What the operator may do, and no more. `homeostat rbac` writes this from the requests of its tests.\n\
         apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
    );
    let all = rights.all();
    for (kind, place) in [("ClusterRole", Place::Everywhere), ("Role", Place::Own)] {
        let rules = rules(&all, place);
        if rules.is_empty() {
            continue;
        }
        let within = if place == Place::Own {
            format!("\n  namespace: {namespace}")
        } else {
            String::new()
        };
        let head = |kind: &str| {
            format!(
                "---\napiVersion: {GROUP}/v1\nkind: {kind}\nmetadata:\n  name: {name}{within}\n"
            )
        };
        text.push_str(&head(kind));
        text.push_str("rules:\n");
        for rule in &rules {
            rule.write(&mut text);
        }
        text.push_str(&head(&format!("{kind}Binding")));
        write!(
            text,
            "roleRef:\n  apiGroup: {GROUP}\n  kind: {kind}\n  name: {name}\nsubjects:\n  - kind: ServiceAccount\n    \
             name: {name}\n    namespace: {namespace}\n"
        )
        .expect("a string takes any text");
    }
    text
}

/// The same as values.
pub(super) fn objects(rights: &Rights, name: &str, namespace: &str) -> Vec<Value> {
    let of_namespace = json!({ "name": name, "namespace": namespace });
    let mut objects =
        vec![json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": of_namespace })];
    let all = rights.all();
    for (kind, place) in [("ClusterRole", Place::Everywhere), ("Role", Place::Own)] {
        let rules: Vec<Value> = rules(&all, place).iter().map(Rule::value).collect();
        if rules.is_empty() {
            continue;
        }
        let metadata = match place {
            Place::Own => of_namespace.clone(),
            Place::Everywhere => json!({ "name": name }),
        };
        let version = format!("{GROUP}/v1");
        objects.push(json!({
            "apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules,
        }));
        objects.push(json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": { "apiGroup": GROUP, "kind": kind, "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
        }));
    }
    objects
}

// === impl Rule ===

impl Rule {
    fn write(&self, text: &mut String) {
        let list = |texts: &[String]| {
            let quoted = texts.iter().map(|text| {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
                if text.is_empty() || !text.chars().all(plain) || text.starts_with('-') {
                    format!("{text:?}")
                } else {
                    text.clone()
                }
            });
            quoted.collect::<Vec<_>>().join(", ")
        };
        let group = [self.group.clone()];
        let members: [(&str, &[String]); 5] = if self.paths.is_empty() {
            [
                ("apiGroups", &group),
                ("resources", &self.resources),
                ("resourceNames", &self.names),
                ("nonResourceURLs", &[]),
                ("verbs", &self.verbs),
            ]
        } else {
            [
                ("apiGroups", &[]),
                ("resources", &[]),
                ("resourceNames", &[]),
                ("nonResourceURLs", &self.paths),
                ("verbs", &self.verbs),
            ]
        };
        let mut begin = "  - ";
        for (member, texts) in members {
            if !texts.is_empty() {
                writeln!(text, "{begin}{member}: [{}]", list(texts))
                    .expect("a string takes any text");
                begin = "    ";
            }
        }
    }

    fn value(&self) -> Value {
        if !self.paths.is_empty() {
            return json!({ "nonResourceURLs": self.paths, "verbs": self.verbs });
        }
        let mut value =
            json!({ "apiGroups": [self.group], "resources": self.resources, "verbs": self.verbs });
        if !self.names.is_empty() {
            value["resourceNames"] = json!(self.names);
        }
        value
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(place: Place, group: &str, resource: &str, name: Option<&str>, verb: &str) -> Right {
        Right {
            place,
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
            path: String::new(),
            verb: verb.to_owned(),
        }
    }

    fn sample() -> Rights {
        use Place::{Everywhere, Own};
        let leases = "coordination.k8s.io";
        let mut needed = BTreeSet::from([
            right(Everywhere, "x.io", "sites", None, "watch"),
            right(Everywhere, "x.io", "sites", None, "get"),
            right(Everywhere, "", "configmaps", None, "patch"),
            right(Everywhere, "", "services", None, "patch"),
            right(Everywhere, "", "secrets", None, "create"),
            right(Own, leases, "leases", None, "create"),
            right(Own, leases, "leases", Some("a"), "update"),
            right(Own, leases, "leases", Some("a"), "get"),
        ]);
        needed.insert(Right {
            path: "/metrics".to_owned(),
            ..right(Everywhere, "", "", None, "get")
        });
        let optional = BTreeSet::from([right(
            Everywhere,
            "x.io",
            "sites/finalizers",
            None,
            "update",
        )]);
        Rights { needed, optional }
    }

    #[test]
    fn what_can_share_a_rule_does() {
        let text = yaml(&sample(), "op", "op-system");
        for expected in [
            "rules:\n  - apiGroups: [\"\"]\n    resources: [configmaps, services]\n    verbs: [patch]\n",
            "  - apiGroups: [x.io]\n    resources: [sites]\n    verbs: [get, watch]\n",
            "  - nonResourceURLs: [/metrics]\n    verbs: [get]\n",
            "    resources: [leases]\n    resourceNames: [a]\n    verbs: [get, update]\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn what_is_written_grants_what_was_asked_for() {
        let rights = sample();
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&yaml(&rights, "op", "op-system")).unwrap();
        assert_eq!(objects, super::objects(&rights, "op", "op-system"));
        let found: BTreeSet<Right> = grants(&objects).into_iter().map(|it| it.right).collect();
        assert_eq!(found, rights.all());
    }

    #[test]
    fn roles_that_nobody_is_given_do_not_count() {
        let rights = sample();
        let mut objects = objects(&rights, "op", "op-system");
        let viewer = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "viewer" },
            "rules": [{ "apiGroups": ["x.io"], "resources": ["*"], "verbs": ["*"] }],
        });
        objects.push(viewer.clone());
        assert!(grants(&objects).iter().all(|grant| grant.right.verb != "*"));
        assert_eq!(grants(&[viewer]).len(), 1);
    }
}
