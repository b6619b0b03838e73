//! Reads the Website that the demo begins with.

use crate::file::read_manifest;
use std::{fmt::Display, path::Path};
use website::Website;

/// Reads a manifest, or the sample.
///
/// # Errors
///
/// What is wrong with the file, and what would be right.
pub(super) fn read(file: Option<&Path>) -> Result<Website, String> {
    let Some(file) = file else {
        return parse("examples/website/site.yaml", website::SAMPLE);
    };
    parse(file.display(), &read_manifest("--manifest", file)?)
}

fn parse(name: impl Display, text: &str) -> Result<Website, String> {
    let wrong = |problem: String| {
        format!("{name}: {problem}\nA Website is expected; examples/website/site.yaml is one.")
    };
    let value: serde_json::Value = serde_saphyr::from_str(text)
        .map_err(|error| wrong(format!("this is not one YAML document: {error}")))?;
    let member = |name: &str| {
        value
            .get(name)
            .and_then(serde_json::Value::as_str)
            .unwrap_or("")
    };
    let (version, kind) = (member("apiVersion"), member("kind"));
    if (version, kind) != ("demo.homeostat.dev/v1", "Website") {
        let found = match (version, kind) {
            ("", "") => "it has no apiVersion and kind".to_owned(),
            _ => format!("it is a {kind:?} of {version:?}"),
        };
        let wanted = "apiVersion: demo.homeostat.dev/v1 and kind: Website";
        return Err(wrong(format!("{found}, not {wanted}")));
    }
    // Read again from the text, so that an error has its line.
    let mut site: Website = serde_saphyr::from_str(text)
        .map_err(|error| wrong(format!("this is no complete Website: {error}")))?;
    if site.metadata.name.is_none() {
        return Err(wrong("metadata.name is missing".into()));
    }
    site.metadata
        .namespace
        .get_or_insert_with(|| "default".into());
    Ok(site)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse("site.yaml", text).unwrap_err()
    }

    #[test]
    fn the_sample_is_a_website() {
        let site = read(None).unwrap();
        assert_eq!(site.metadata.name.as_deref(), Some("blog"));
        assert_eq!(site.metadata.namespace.as_deref(), Some("default"));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_file_and_what_is_expected() {
        for (text, expected) in [
            ("a: [1", "not one YAML document"),
            ("", "no apiVersion and kind"),
            ("just text", "no apiVersion and kind"),
            ("apiVersion: v1\nkind: Pod", r#"it is a "Pod" of "v1""#),
            (
                "apiVersion: demo.homeostat.dev/v1\nkind: Website\nmetadata: {name: a}\nspec: {}",
                "no complete Website",
            ),
            (
                "apiVersion: demo.homeostat.dev/v1\nkind: Website\nmetadata: {}\nspec: {host: a, html: b}",
                "metadata.name is missing",
            ),
        ] {
            let problem = problem(text);
            assert!(problem.contains(expected), "{text:?}: {problem}");
            assert!(problem.starts_with("site.yaml: "), "{problem}");
            assert!(problem.contains("examples/website/site.yaml"), "{problem}");
        }
    }

    #[test]
    fn several_documents_are_refused() {
        let two = format!("{0}---\n{0}", website::SAMPLE);
        assert!(problem(&two).contains("not one YAML document"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let problem = read(Some(Path::new("no/such/file.yaml"))).unwrap_err();
        assert!(problem.contains("no/such/file.yaml"), "{problem}");
    }
}
