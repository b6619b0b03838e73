//! The rules of types beside those that the data tells.

mod others;
mod pods;

use super::Rule;
use super::checks::Check;
use crate::schema::Schema;

/// The rules of one type.
pub(super) struct Special {
    /// Package and name, without what all packages begin with.
    pub(super) name: &'static str,
    pub(super) rule: Option<Rule>,
    /// The checks of members take the place of the data's, but for the texts that a member can be.
    /// In the order in which the server looks at them.
    pub(super) members: &'static [(&'static str, &'static [Check])],
}

/// What the names of packages begin with.
const PACKAGES: [&str; 2] = ["io.k8s.api.", "io.k8s.apimachinery.pkg.apis."];

/// All of them.
pub(super) static TYPES: [&[Special]; 5] = [
    &pods::PODS,
    &pods::SCHEDULING,
    &others::WORKLOADS,
    &others::NETWORKS,
    &others::OTHERS,
];

pub(super) const fn members(
    name: &'static str,
    members: &'static [(&'static str, &'static [Check])],
) -> Special {
    Special {
        name,
        rule: None,
        members,
    }
}

pub(super) const fn rule(name: &'static str, rule: Rule) -> Special {
    both(name, rule, &[])
}

pub(super) const fn both(
    name: &'static str,
    rule: Rule,
    members: &'static [(&'static str, &'static [Check])],
) -> Special {
    Special {
        name,
        rule: Some(rule),
        members,
    }
}

// === impl Special ===

impl Special {
    /// Whether nothing below a member is looked at.
    pub(super) fn hides(&self, member: &str) -> bool {
        let is_unseen = |checks: &[Check]| matches!(checks, [Check::Unseen]);
        self.members
            .iter()
            .any(|(name, checks)| *name == member && is_unseen(checks))
    }
}

/// The rules of a type by its full name.
pub(super) fn of(name: &str) -> Option<&'static Special> {
    let short = PACKAGES
        .iter()
        .find_map(|package| name.strip_prefix(package))?;
    TYPES
        .into_iter()
        .flatten()
        .find(|special| special.name == short)
}

/// The checks of a member of a type.
pub(super) fn checks_of(
    type_name: &str,
    schema: &'static Schema,
    member: &str,
    field: &'static Schema,
) -> Vec<Check> {
    let special = of(type_name);
    let special =
        special.and_then(|special| special.members.iter().find(|(name, _)| *name == member));
    let mut checks: Vec<Check> = special.map_or_else(Vec::new, |(_, checks)| checks.to_vec());
    let says = |wanted: fn(&Check) -> bool| special.is_some_and(|(_, all)| all.iter().any(wanted));
    if says(|check| matches!(check, Check::Nothing | Check::Unseen)) {
        return Vec::new();
    }
    let is_text = field.has_type("string") && field.reference.is_none();
    // A member that only has a place in the order is checked as the data says.
    let is_plain = special.is_none_or(|(_, checks)| checks.is_empty());
    if is_text && is_plain && schema.required.iter().any(|name| name == member) {
        checks.push(Check::Needed(""));
    }
    if !field.one_of.is_empty() && !says(|check| matches!(check, Check::OneOf(_))) {
        checks.push(Check::Allowed(&field.one_of));
    }
    checks
}
