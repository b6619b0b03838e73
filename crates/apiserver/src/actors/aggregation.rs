//! Cluster roles that collect the rules of others, which they select by labels.

use std::sync::Arc;

use serde_json::{Value, json};

use super::write_options;
use crate::object;
use crate::registry::{Registry, WriteOptions, selects};
use crate::storage::Key;

/// Looks at all cluster roles when one has changed.
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    seen: u64,
}

const ROLES: &str = "rbac.authorization.k8s.io/clusterroles";

// === impl Aggregation ===

impl Aggregation {
    /// Makes the next write, if there is one to make.
    pub(super) fn step(&mut self, registry: &mut Registry) -> bool {
        let roles: Arc<str> = ROLES.into();
        let is_same = match registry.store.changes_after(&roles, self.seen) {
            Ok(changes) => changes.len() == 0,
            // Some are forgotten already.
            Err(_) => false,
        };
        if !is_same {
            for (key, rules) in outdated(registry, &roles) {
                let options = WriteOptions {
                    manager: "clusterrole-aggregation-controller".to_owned(),
                    ..write_options()
                };
                if registry.edit(&key, &options, |role| role["rules"] = json!(rules)) {
                    return true;
                }
            }
        }
        self.seen = registry.store.revision();
        false
    }
}

/// The roles that should have other rules than they have, with those.
fn outdated(registry: &Registry, roles: &Arc<str>) -> Vec<(Key, Vec<Value>)> {
    let store = &registry.store;
    let all: Vec<_> = store.scan(roles, None, store.revision(), None).collect();
    let mut outdated = Vec::new();
    for (key, role) in &all {
        if role["aggregationRule"].is_null() {
            continue;
        }
        let mut collected: Vec<Value> = Vec::new();
        for selector in object::elements(&role["aggregationRule"], "clusterRoleSelectors") {
            for (other_key, other) in &all {
                if other_key == key || !selects(selector, other) {
                    continue;
                }
                for rule in object::elements(other, "rules") {
                    if !collected.contains(rule) {
                        collected.push(rule.clone());
                    }
                }
            }
        }
        if !object::elements(role, "rules").eq(collected.iter()) {
            outdated.push(((*key).clone(), collected));
        }
    }
    outdated
}
