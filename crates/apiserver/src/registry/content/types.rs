//! What is checked wherever a built-in type occurs, so that a pod is held to the same rules as the
//! template of one. Most of it is read off the recorded data: texts that must be there, and those that
//! can only be one of a few. The table adds the forms of texts and numbers, and what concerns several
//! members.

mod checks;
mod containers;
mod dns;
mod networking;
mod pods;
mod policies;
mod security;
mod selectors;
mod services;
mod storage;
mod table;
mod webhooks;
mod workloads;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use self::checks::Check;
use super::field::Field;
use crate::object;
use crate::resource::Resource;
use crate::schema::{Schema, builtin_types};
use crate::status::Cause;

/// Members with rules of their own, or none.
const SKIPPED: [&str; 2] = ["metadata", "status"];

/// Packages of types with rules of their own.
const OTHERS: [&str; 4] = [
    ".apiextensions.v1.",
    ".authentication.v1.",
    ".authorization.v1.",
    ".rbac.v1.",
];

/// A rule that concerns several members of an object.
type Rule = fn(&Value, &Field<'_>, &mut Vec<Cause>);

/// What is checked of objects of one type.
#[derive(Debug, Default)]
struct Plan {
    rule: Option<Rule>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: &'static str,
    checks: Vec<Check>,
    /// The type of what is below that has checks, too.
    below: Option<usize>,
}

/// The plans of all types that have checks.
struct Plans {
    plans: Vec<Plan>,
    places: BTreeMap<&'static str, usize>,
}

/// The rules that an object breaks wherever a type occurs in it.
pub(super) fn causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let plans = plans();
    if let Some(name) = &resource.schema.reference
        && let Some(place) = plans.places.get(name.as_str())
    {
        plans.check(*place, object, &Field::Object, &mut causes);
    }
    causes
}

/// Mounts of volumes that the pods of an object do not have.
pub(super) fn mount_causes(resource: &Resource, object: &Value) -> Vec<Cause> {
    let place = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => "spec",
        ("", "podtemplates") => "template.spec",
        ("batch", "cronjobs") => "spec.jobTemplate.spec.template.spec",
        // The server does not look at what a stateful set's pods are made of.
        ("apps", "controllerrevisions" | "statefulsets") => return Vec::new(),
        ("apps", _) | ("batch", "jobs") | ("", "replicationcontrollers") => "spec.template.spec",
        _ => return Vec::new(),
    };
    let mut causes = Vec::new();
    if let Some(spec) = object::at(object, place) {
        pods::mounts(spec, &Field::Object.member(place), &mut causes);
    }
    causes
}

/// What is looked at in pods and not in templates of pods.
pub(super) fn own_pod_causes(pod: &Value) -> Vec<Cause> {
    pods::own(pod)
}

fn plans() -> &'static Plans {
    static PLANS: OnceLock<Plans> = OnceLock::new();
    PLANS.get_or_init(Plans::new)
}

// === impl Plans ===

impl Plans {
    fn new() -> Self {
        let mut all = Self {
            plans: Vec::new(),
            places: BTreeMap::new(),
        };
        let types = builtin_types();
        // A type has a plan if it has checks or leads to one that has.
        let mut known: Vec<&'static str> = Vec::new();
        loop {
            let is_known =
                |schema: &Schema| below(schema).is_some_and(|name| known.contains(&name));
            let found: Vec<&'static str> = types
                .iter()
                .filter(|(name, _)| !known.contains(&name.as_str()) && !is_other(name))
                .filter(|(name, schema)| {
                    has_checks(name, schema) || members(schema).any(|(_, member)| is_known(member))
                })
                .map(|(name, _)| name.as_str())
                .collect();
            if found.is_empty() {
                break;
            }
            known.extend(found);
        }
        for (place, name) in known.iter().enumerate() {
            all.places.insert(*name, place);
        }
        for name in known {
            let plan = all.plan(name, &types[name]);
            all.plans.push(plan);
        }
        all
    }

    fn plan(&self, name: &str, schema: &'static Schema) -> Plan {
        let special = table::of(name);
        let mut found: Vec<Member> = members(schema)
            .map(|(member, field)| Member {
                name: member,
                checks: table::checks_of(name, schema, member, field),
                below: below(field)
                    .filter(|_| !special.is_some_and(|special| special.hides(member)))
                    .and_then(|name| self.places.get(name).copied()),
            })
            .filter(|member| !member.checks.is_empty() || member.below.is_some())
            .collect();
        // In the order in which the server looks at them, as far as that is known.
        let order = |member: &Member| {
            let named = special.and_then(|special| {
                special
                    .members
                    .iter()
                    .position(|(name, _)| *name == member.name)
            });
            let required = schema.required.iter().position(|name| name == member.name);
            (
                named.unwrap_or(usize::MAX),
                required.unwrap_or(usize::MAX),
                member.name,
            )
        };
        found.sort_by_key(order);
        Plan {
            rule: special.and_then(|special| special.rule),
            members: found,
        }
    }

    fn check(&self, place: usize, object: &Value, field: &Field<'_>, causes: &mut Vec<Cause>) {
        let Plan { rule, members } = &self.plans[place];
        if let Some(rule) = rule {
            rule(object, field, causes);
        }
        let nothing = Map::new();
        let object = object.as_object().unwrap_or(&nothing);
        for member in members {
            let field = field.member(member.name);
            let value = object.get(member.name);
            for check in &member.checks {
                check.apply(value, &field, causes);
            }
            let (Some(place), Some(value)) = (member.below, value) else {
                continue;
            };
            match value {
                Value::Array(list) => {
                    for (index, value) in list.iter().enumerate() {
                        self.check(place, value, &field.element(index), causes);
                    }
                }
                Value::Object(_) => self.check(place, value, &field, causes),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }
}

/// The members of a type, as far as they are checked here.
fn members(schema: &'static Schema) -> impl Iterator<Item = (&'static str, &'static Schema)> {
    // What the whole object is was checked before.
    let is_object = schema.fields.contains_key("metadata");
    let fields = schema.fields.iter();
    fields
        .filter(|(name, _)| !SKIPPED.contains(&name.as_str()))
        .filter(move |(name, _)| !is_object || !["apiVersion", "kind"].contains(&name.as_str()))
        .map(|(name, field)| (name.as_str(), field))
}

/// The type of a member, or of its elements.
fn below(field: &Schema) -> Option<&str> {
    let items = || field.items.as_deref()?.reference.as_deref();
    field.reference.as_deref().or_else(items)
}

fn has_checks(name: &str, schema: &'static Schema) -> bool {
    table::of(name).is_some_and(|special| special.rule.is_some())
        || members(schema)
            .any(|(member, field)| !table::checks_of(name, schema, member, field).is_empty())
}

/// Whether the type belongs to a package with rules of its own.
fn is_other(name: &str) -> bool {
    OTHERS.iter().any(|package| name.contains(package))
}

#[cfg(test)]
mod tests;
