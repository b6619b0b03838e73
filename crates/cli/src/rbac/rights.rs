//! Rights, one by one.

use super::requests::Need;
use std::{collections::BTreeSet, fmt};

/// Where a right holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// In the whole cluster.
    Everywhere,
    /// In the namespace of the operator itself.
    Own,
}

/// One verb on one resource, or on one path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(crate) place: Place,
    pub(crate) group: String,
    /// With the subresource, as `pods/status`; empty for a path.
    pub(crate) resource: String,
    /// The only object that it is for.
    pub(crate) name: Option<String>,
    /// Empty for a resource.
    pub(crate) path: String,
    pub(crate) verb: String,
}

/// What an operator needs.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    pub(crate) needed: BTreeSet<Right>,
    /// What only some clusters want.
    pub(crate) optional: BTreeSet<Right>,
}

/// Verbs of requests that name no object.
const OF_COLLECTIONS: [&str; 4] = ["create", "list", "watch", "deletecollection"];

/// What every account may read anyhow.
const DISCOVERY: [&str; 7] = [
    "/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version",
];

/// What every account may ask anyhow.
const QUESTIONS: [&str; 3] = [
    "selfsubjectaccessreviews",
    "selfsubjectreviews",
    "selfsubjectrulesreviews",
];

// === impl Rights ===

impl Rights {
    pub(super) fn of(needs: &[Need]) -> Self {
        // Whoever reads a kind in all namespaces writes in all of them.
        let is_wide = needs
            .iter()
            .any(|need| need.namespace.is_empty() && !need.resource.is_empty());
        let mut rights = Self::default();
        for need in needs.iter().filter(|need| !is_for_everybody(need)) {
            let right = Right::of(need, is_wide);
            if need.why != "asked" {
                rights.optional.insert(right);
                continue;
            }
            if right.verb == "watch" {
                // For clusters that cannot stream lists.
                let verb = "list".to_owned();
                rights.needed.insert(Right {
                    verb,
                    ..right.clone()
                });
            }
            rights.needed.insert(right);
        }
        rights.optional = &rights.optional - &rights.needed;
        rights
    }

    /// All of them.
    pub(super) fn all(&self) -> BTreeSet<Right> {
        &self.needed | &self.optional
    }
}

fn is_for_everybody(need: &Need) -> bool {
    if need.resource.is_empty() {
        let under = |path: &&str| {
            let rest = need.path.strip_prefix(*path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        return need.verb == "get" && DISCOVERY.iter().any(under);
    }
    need.verb == "create" && QUESTIONS.contains(&need.resource.as_str())
}

// === impl Right ===

impl Right {
    fn of(need: &Need, is_wide: bool) -> Self {
        let is_lease = need.group == "coordination.k8s.io" && need.resource == "leases";
        let place = if is_lease && !need.namespace.is_empty() || !is_wide {
            Place::Own
        } else {
            Place::Everywhere
        };
        let slash = if need.subresource.is_empty() { "" } else { "/" };
        // A lease has one name wherever the operator runs. Other names come from those who use it.
        let has_name = is_lease && !OF_COLLECTIONS.contains(&need.verb.as_str());
        Self {
            place: if need.resource.is_empty() {
                Place::Everywhere
            } else {
                place
            },
            group: need.group.clone(),
            resource: format!("{}{slash}{}", need.resource, need.subresource),
            name: has_name.then(|| need.name.clone()),
            path: need.path.clone(),
            verb: need.verb.clone(),
        }
    }

    /// Whether whoever has this has the other one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let fits = |own: &str, wanted: &str| own == "*" || own == wanted;
        let verb = fits(&self.verb, &other.verb);
        if !self.path.is_empty() || !other.path.is_empty() {
            let path = match self.path.strip_suffix('*') {
                Some(start) => other.path.starts_with(start),
                None => self.path == other.path,
            };
            return verb && path && !other.path.is_empty();
        }
        let sub = other.resource.split_once('/').map(|(_, sub)| sub);
        verb && (self.place == Place::Everywhere || self.place == other.place)
            && fits(&self.group, &other.group)
            && (fits(&self.resource, &other.resource)
                || sub.is_some_and(|sub| self.resource == format!("*/{sub}")))
            && (self.name.is_none() || self.name == other.name)
    }
}

/// As in `get leases.coordination.k8s.io "website" in the operator's namespace`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            group,
            resource,
            name,
            path,
            verb,
        } = self;
        if !path.is_empty() {
            return write!(f, "{verb} {path}");
        }
        let dot = if group.is_empty() { "" } else { "." };
        // As `kubectl auth can-i` names it: the group before the subresource.
        match resource.split_once('/') {
            Some((resource, sub)) => write!(f, "{verb} {resource}{dot}{group}/{sub}")?,
            None => write!(f, "{verb} {resource}{dot}{group}")?,
        }
        if let Some(name) = name {
            write!(f, " {name:?}")?;
        }
        f.write_str(match place {
            Place::Everywhere => " in the whole cluster",
            Place::Own => " in the operator's namespace",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Place::{Everywhere, Own},
        *,
    };

    fn need(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Need {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let [verb, group, resource, subresource, namespace, name] =
            [verb, group, resource, subresource, namespace, name].map(str::to_owned);
        Need {
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            why: "asked".to_owned(),
            ..Need::default()
        }
    }

    #[track_caller]
    fn check(needs: &[Need], expected: &[&str]) {
        let rights = Rights::of(needs);
        let found: Vec<String> = rights.all().iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn whoever_watches_all_namespaces_writes_in_all_of_them() {
        check(
            &[
                need("watch", "x.io", "sites", "", ""),
                need("patch", "x.io", "sites/status", "default", "blog"),
                need("update", "coordination.k8s.io", "leases", "default", "site"),
            ],
            &[
                "list sites.x.io in the whole cluster",
                "watch sites.x.io in the whole cluster",
                "patch sites.x.io/status in the whole cluster",
                "update leases.coordination.k8s.io \"site\" in the operator's namespace",
            ],
        );
    }

    #[test]
    fn an_operator_of_one_namespace_needs_nothing_elsewhere() {
        let all = [
            need("watch", "", "configmaps", "a", ""),
            need("create", "", "events", "a", ""),
        ];
        check(
            &all,
            &[
                "list configmaps in the operator's namespace",
                "watch configmaps in the operator's namespace",
                "create events in the operator's namespace",
            ],
        );
    }

    #[test]
    fn what_everybody_may_is_no_right() {
        let path = |path: &str| Need {
            path: path.to_owned(),
            ..need("get", "", "", "", "")
        };
        let review = need(
            "create",
            "authorization.k8s.io",
            "selfsubjectaccessreviews",
            "",
            "",
        );
        let all = [
            path("/apis/apps/v1"),
            path("/version"),
            path("/metrics"),
            path("/apish"),
            review,
        ];
        check(&all, &["get /apish", "get /metrics"]);
    }

    #[test]
    fn stars_cover_and_names_do_not() {
        let right = |place, group: &str, resource: &str, name: Option<&str>, verb: &str| Right {
            place,
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
            path: String::new(),
            verb: verb.to_owned(),
        };
        let wanted = right(Everywhere, "apps", "deployments/scale", None, "get");
        for (held, expected) in [
            (
                right(Everywhere, "apps", "deployments/scale", None, "get"),
                true,
            ),
            (right(Everywhere, "*", "*", None, "*"), true),
            (right(Everywhere, "apps", "*/scale", None, "get"), true),
            (right(Everywhere, "apps", "deployments", None, "get"), false),
            (right(Own, "*", "*", None, "*"), false),
            (right(Everywhere, "apps", "*", Some("a"), "get"), false),
        ] {
            assert_eq!(held.covers(&wanted), expected, "{held}");
        }
    }
}
