//! Which specs nobody can make so.
//!
//! These are permanent errors: only a change of the spec mends them, so they go into the status and
//! the operator waits. What stands here depends on the operator's configuration or on more than one
//! field; everything else belongs into the schema.

use crate::Website;
use kube::ResourceExt;

/// What is wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidSpec {
    /// The path of the field, as `spec.host`.
    pub field: &'static str,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

/// Checks a site. Only hosts in `domain` can be registered.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn site(site: &Website, domain: &str) -> Result<(), InvalidSpec> {
    let invalid = |field, problem| Err(InvalidSpec { field, problem });

    // All children have the site's name, and services take the fewest names of all kinds.
    let name = site.name_any();
    if !is_label(&name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        let problem = format!(
            "{name:?} cannot be the name of a service: it takes at most 63 lower-case letters, \
             digits and '-', starting with a letter"
        );
        return invalid("metadata.name", problem);
    }

    let host = &site.spec.host;
    if host.len() > 253 || !host.split('.').all(is_label) {
        return invalid(
            "spec.host",
            format!("{host:?} is no host name, as blog.{domain} is"),
        );
    }
    let in_domain = host
        .strip_suffix(domain)
        .is_some_and(|rest| rest.ends_with('.'));
    if !in_domain {
        return invalid(
            "spec.host",
            format!("{host:?} is not in the domain {domain}"),
        );
    }
    Ok(())
}

/// Whether this can stand between two dots of a host name.
fn is_label(label: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&label.len())
        && label.chars().all(fits)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Theme, WebsiteSpec};

    fn check(name: &str, host: &str) -> Result<(), &'static str> {
        let spec = WebsiteSpec {
            host: host.into(),
            html: String::new(),
            replicas: 1,
            theme: Theme::Light,
        };
        site(&Website::new(name, spec), "example.com").map_err(|invalid| invalid.field)
    }

    #[test]
    fn hosts() {
        let long_label = format!("{}.example.com", "a".repeat(64));
        let long_name = format!("{}example.com", "a.".repeat(130));
        for (host, expected) in [
            ("blog.example.com", Ok(())),
            ("a.b-2.example.com", Ok(())),
            ("example.com", Err("spec.host")),
            ("blogexample.com", Err("spec.host")),
            ("blog.example.org", Err("spec.host")),
            ("Blog.example.com", Err("spec.host")),
            ("no host.example.com", Err("spec.host")),
            ("-blog.example.com", Err("spec.host")),
            ("blog-.example.com", Err("spec.host")),
            ("..example.com", Err("spec.host")),
            (".example.com", Err("spec.host")),
            ("", Err("spec.host")),
            (long_label.as_str(), Err("spec.host")),
            (long_name.as_str(), Err("spec.host")),
        ] {
            assert_eq!(check("blog", host), expected, "{host}");
        }
    }

    #[test]
    fn names() {
        let longest = "a".repeat(63);
        let too_long = "a".repeat(64);
        for (name, expected) in [
            ("blog", Ok(())),
            ("b2-x", Ok(())),
            (longest.as_str(), Ok(())),
            ("2b", Err("metadata.name")),
            ("my.blog", Err("metadata.name")),
            (too_long.as_str(), Err("metadata.name")),
        ] {
            assert_eq!(check(name, "blog.example.com"), expected, "{name}");
        }
    }

    #[test]
    fn the_message_names_the_field_and_says_what_would_be_right() {
        let spec = WebsiteSpec {
            host: "blog.example.org".into(),
            html: String::new(),
            replicas: 1,
            theme: Theme::Light,
        };
        let invalid = site(&Website::new("blog", spec), "example.com").unwrap_err();
        assert_eq!(
            invalid.to_string(),
            r#"spec.host "blog.example.org" is not in the domain example.com"#
        );
    }
}
