//! The rules of types beside those that the data tells.

mod others;
mod pods;

use super::Rule;
use super::checks::Check;

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
