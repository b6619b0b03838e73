//! What roles grant, held against what is needed.

use super::{
    manifest::Grant,
    rights::{Right, Rights},
};
use serde_json::{Value, json};
use std::fmt;

/// Where roles differ from what is needed.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    /// What is needed and not granted.
    missing: Vec<&'a Right>,
    /// What is granted and not needed, or not so widely.
    surplus: Vec<(&'a Grant, bool)>,
    granted: usize,
}

// === impl Comparison ===

impl<'a> Comparison<'a> {
    pub(super) fn new(rights: &'a Rights, granted: &'a [Grant]) -> Self {
        let is_granted = |right: &&Right| granted.iter().any(|grant| grant.right.covers(right));
        let surplus = granted.iter().filter(|Grant { right, .. }| {
            !rights.needed.contains(right) && !rights.optional.contains(right)
        });
        let is_too_wide = |grant: &Grant| {
            let mut needed = rights.needed.iter();
            needed.any(|right| grant.right.covers(right))
        };
        Self {
            missing: rights
                .needed
                .iter()
                .filter(|right| !is_granted(right))
                .collect(),
            surplus: surplus.map(|grant| (grant, is_too_wide(grant))).collect(),
            granted: granted.len(),
        }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty()
    }

    pub(super) fn to_json(&self) -> Value {
        let shown = |right: &Right| {
            json!({
                "verb": right.verb, "group": right.group, "resource": right.resource,
                "name": right.name, "path": right.path, "text": right.to_string(),
            })
        };
        let surplus = self.surplus.iter().map(|(grant, wide)| {
            let mut value = shown(&grant.right);
            value["role"] = json!(grant.role);
            value["tooWide"] = json!(wide);
            value
        });
        json!({
            "exact": self.is_exact(),
            "missing": self.missing.iter().map(|right| shown(right)).collect::<Vec<_>>(),
            "surplus": surplus.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for right in &self.missing {
            writeln!(f, "missing: {right}")?;
        }
        for (Grant { right, role }, wide) in &self.surplus {
            let why = if *wide {
                "more than is needed"
            } else {
                "not needed"
            };
            writeln!(f, "surplus: {right}, in {role}: {why}")?;
        }
        if self.is_exact() {
            writeln!(
                f,
                "the roles grant {} rights, and each is needed",
                self.granted
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbac::rights::Place;
    use std::collections::BTreeSet;

    fn right(resource: &str, verb: &str) -> Right {
        Right {
            place: Place::Everywhere,
            group: String::new(),
            resource: resource.to_owned(),
            name: None,
            path: String::new(),
            verb: verb.to_owned(),
        }
    }

    fn compared(granted: &[Right]) -> String {
        let rights = Rights {
            needed: BTreeSet::from([right("pods", "get"), right("pods", "list")]),
            optional: BTreeSet::from([right("pods/finalizers", "update")]),
        };
        let granted: Vec<Grant> = granted
            .iter()
            .map(|right| Grant {
                right: right.clone(),
                role: "Role a".to_owned(),
            })
            .collect();
        Comparison::new(&rights, &granted).to_string()
    }

    #[test]
    fn less_and_more_are_told() {
        let exact = [right("pods", "get"), right("pods", "list")];
        let text = "the roles grant 2 rights, and each is needed\n";
        assert_eq!(compared(&exact), text);
        let [get, list] = exact;
        let text = "missing: list pods in the whole cluster\n";
        assert_eq!(compared(std::slice::from_ref(&get)), text);
        let more = [
            get,
            list,
            right("pods/finalizers", "update"),
            right("pods", "delete"),
            right("*", "get"),
        ];
        let text = "surplus: delete pods in the whole cluster, in Role a: not needed\n\
            surplus: get * in the whole cluster, in Role a: more than is needed\n";
        assert_eq!(compared(&more), text);
    }
}
