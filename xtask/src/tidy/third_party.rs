//! What others' packages may come in: `deny.toml`, without the tool that it is written for.
//!
//! `cargo deny` takes minutes to build and checks more. This rule reads the same file and checks
//! licences, bans and sources wherever the tests run.

use serde::Deserialize;

use super::tree::{Package, Tree};
use super::{Finding, Rule};

pub(crate) const THIRD_PARTY: Rule = Rule {
    name: "third-party",
    why: "dependencies have the licences and sources that deny.toml allows; users ship them",
    check: third_party,
};

const POLICY: &str = "deny.toml";

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
    /// The only packages that may depend on it.
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

fn third_party(tree: &Tree) -> Vec<Finding> {
    let finding = |advice| Finding {
        path: POLICY.to_owned(),
        line: 1,
        advice,
    };
    let Some(file) = tree.file(POLICY) else {
        return vec![finding(
            "write the file: it says what dependencies are allowed".to_owned(),
        )];
    };
    let Policy {
        licenses,
        bans,
        sources,
    } = match toml::from_str(&file.text) {
        Ok(policy) => policy,
        Err(error) => return vec![finding(format!("cannot be read: {}", error.message()))],
    };
    let mut advices = Vec::new();
    for package in &tree.graph.packages {
        let Package {
            name,
            version,
            license,
            source,
            ..
        } = package;
        let Some(source) = source else { continue };
        let advice = |text: &str| format!("{name} {version}: {text}");
        if !sources.allows(source) {
            advices.push(advice(&format!(
                "its source {source} is not allowed; replace it"
            )));
        }
        match license.as_deref() {
            None => advices.push(advice("has no licence expression; replace it")),
            Some(license) if !licenses.allows(name, license) => {
                advices.push(advice(&format!(
                    "its licence {license} is not allowed; replace it"
                )));
            }
            Some(_) => {}
        }
        if let Some(ban) = bans.deny.iter().find(|ban| ban.name == *name) {
            let users = tree.graph.users(package).map(|user| &user.name);
            for user in users.filter(|user| !ban.wrappers.contains(user)) {
                advices.push(advice(&format!("{user} must not use it: {}", ban.reason)));
            }
        }
    }
    advices.into_iter().map(finding).collect()
}

// === impl Licenses ===

impl Licenses {
    /// Whether the expression can be fulfilled with allowed licences only.
    fn allows(&self, name: &str, expression: &str) -> bool {
        // Old packages write `MIT/Apache-2.0`.
        let Ok(expression) = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX) else {
            return false;
        };
        let excepted = self
            .exceptions
            .iter()
            .filter(|exception| exception.name == name);
        let allowed: Vec<&String> = self
            .allow
            .iter()
            .chain(excepted.flat_map(|exception| &exception.allow))
            .collect();
        expression.evaluate(|required| allowed.iter().any(|name| **name == required.to_string()))
    }
}

// === impl Sources ===

impl Sources {
    fn allows(&self, source: &str) -> bool {
        self.allow_registry.iter().any(|registry| {
            source
                .strip_prefix("registry+")
                .is_some_and(|address| address == registry)
                || source == registry
        })
    }
}
