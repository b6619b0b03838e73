//! The names of a project and of its kind.

/// Every name that a project has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    /// Of the package, as `cache-operator`.
    pub(super) project: String,
    /// Of the library, as `cache_operator`.
    pub(super) library: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) singular: String,
    pub(super) plural: String,
}

pub(super) const GROUP: &str = "example.com";
pub(super) const VERSION: &str = "v1alpha1";

/// So that `NAME-system` and names of pods are no longer than a cluster takes.
const LONGEST: usize = 40;

/// What the code of a project calls something else, and kinds that Rust's prelude has.
const TAKEN_KINDS: [&str; 22] = [
    "Action",
    "Api",
    "Arc",
    "Args",
    "Box",
    "Client",
    "Clone",
    "Condition",
    "Context",
    "Controller",
    "Debug",
    "Duration",
    "Error",
    "Manager",
    "Ok",
    "Option",
    "Result",
    "Run",
    "Self",
    "Set",
    "String",
    "Vec",
];

/// Rust's words, what cargo refuses, and what a project depends on.
const TAKEN_PROJECTS: [&str; 68] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "clap",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "futures",
    "gen",
    "homeostat",
    "if",
    "impl",
    "in",
    "incremental",
    "k8s-openapi",
    "kube",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "schemars",
    "self",
    "serde",
    "serde-json",
    "serde-saphyr",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "thiserror",
    "tokio",
    "tracing",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "use",
    "where",
];

// === impl Names ===

impl Names {
    /// # Errors
    ///
    /// A name that cannot be used.
    pub(super) fn new(
        project: &str,
        group: String,
        kind: String,
        version: String,
    ) -> Result<Self, String> {
        check_project(project)?;
        check_group(&group)?;
        check_kind(&kind)?;
        check_version(&version)?;
        let singular = kind.to_ascii_lowercase();
        Ok(Self {
            project: project.to_owned(),
            library: project.replace('-', "_"),
            group,
            version,
            plural: plural(&singular),
            singular,
            kind,
        })
    }
}

/// # Errors
///
/// A name that no package or no object can have.
pub(super) fn check_project(name: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{name:?} cannot be the name of a project: {why}"));
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return wrong(
            "take lower-case letters, digits and `-`, with a letter first, as in cache-operator",
        );
    }
    if name.len() > LONGEST {
        return wrong("it has more than 40 characters, and names of pods come from it");
    }
    if TAKEN_PROJECTS.contains(&name) || name.starts_with("homeostat-") {
        return wrong(
            "Rust, cargo or a crate that it depends on has it; cache-operator is one that is free",
        );
    }
    Ok(())
}

pub(super) fn check_group(group: &str) -> Result<(), String> {
    let wrong = |why: &str| {
        Err(format!(
            "{group:?} cannot be the group of a custom resource: {why}"
        ))
    };
    if !group.contains('.') || !group.split('.').all(is_label) || group.len() > 200 {
        return wrong("take a domain of yours, as in caches.example.com");
    }
    if ["k8s.io", "kubernetes.io"].iter().any(|of| {
        let rest = group.strip_suffix(of);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }) {
        return wrong("only Kubernetes itself may use it");
    }
    Ok(())
}

pub(super) fn check_kind(kind: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{kind:?} cannot be a kind: {why}"));
    let is_word = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_word || kind.len() > LONGEST {
        return wrong("take up to 40 letters and digits, with a capital letter first, as in Cache");
    }
    if TAKEN_KINDS.contains(&kind) {
        return wrong("Rust or the code of the project calls something else so");
    }
    Ok(())
}

pub(super) fn check_version(version: &str) -> Result<(), String> {
    let is_number = |text: &str| {
        !text.starts_with('0') && !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
    };
    let fits = version.strip_prefix('v').is_some_and(|rest| {
        let stage = ["alpha", "beta"]
            .iter()
            .find_map(|stage| rest.split_once(stage));
        match stage {
            Some((major, minor)) => is_number(major) && is_number(minor),
            None => is_number(rest),
        }
    });
    if fits {
        return Ok(());
    }
    Err(format!(
        "{version:?} is no version of an API: take one such as v1, v1beta1 or v1alpha1"
    ))
}

/// Part of a domain.
fn is_label(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(fits)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// `cache-operator` is about a `Cache`.
pub(super) fn kind_of(project: &str) -> String {
    let name = ["-operator", "-controller"]
        .iter()
        .find_map(|end| project.strip_suffix(end))
        .unwrap_or(project);
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

fn plural(singular: &str) -> String {
    let ends = |ends: &[&str]| ends.iter().any(|end| singular.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{singular}es");
    }
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        Some(_) | None => format!("{singular}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_from_projects_and_plurals_from_kinds() {
        for (project, kind, many) in [
            ("cache-operator", "Cache", "caches"),
            ("toy", "Toy", "toys"),
            ("web-proxy-controller", "WebProxy", "webproxies"),
            ("bus", "Bus", "buses"),
            ("display", "Display", "displays"),
        ] {
            assert_eq!(kind_of(project), kind);
            assert_eq!(plural(&kind.to_ascii_lowercase()), many);
        }
    }

    #[test]
    fn names_that_cannot_be_used_are_told() {
        type Check = fn(&str) -> Result<(), String>;
        let table: [(Check, &[&str], &[&str]); 4] = [
            (
                check_project,
                &["a", "cache-operator", "a1"],
                &[
                    "",
                    "1a",
                    "-a",
                    "a-",
                    "A",
                    "a_b",
                    "../a",
                    "test",
                    "tokio",
                    "homeostat-testing",
                ],
            ),
            (
                check_group,
                &["example.com", "a.b.c"],
                &[
                    "",
                    "example",
                    ".com",
                    "Example.com",
                    "apps.k8s.io",
                    "k8s.io",
                    "a..b",
                    "a b.c",
                ],
            ),
            (
                check_kind,
                &["Cache", "A1"],
                &["", "cache", "Ca-che", "Context", "Größe"],
            ),
            (
                check_version,
                &["v1", "v2beta3", "v10alpha1"],
                &["", "1", "v", "v0", "v1alpha", "v1gamma1", "v01", "V1"],
            ),
        ];
        for (check, good, bad) in table {
            for name in good {
                assert_eq!(check(name), Ok(()), "{name}");
            }
            for name in bad {
                assert!(check(name).is_err(), "{name}");
            }
        }
    }
}
