//! What the servers of tests have noted.

use crate::failure::Failure;
use serde::Deserialize;
use std::{fs, path::Path};

/// What a request needed.
#[derive(Deserialize, Debug, Clone, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Need {
    pub(super) user_agent: String,
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    /// Empty for all of them, and for what is in none.
    pub(super) namespace: String,
    /// Empty for a collection.
    pub(super) name: String,
    /// The path of a request that is about no resource.
    pub(super) path: String,
    /// `asked`, or `owner reference` for what only some clusters want.
    pub(super) why: String,
}

/// How clients with `Tracked` name themselves: after the program, and after this crate.
const TRACKED: &str = "/homeostat-";

/// What the operator's requests needed: those with this text in their user agent, or with that of a tracked client.
///
/// # Errors
///
/// There is no such folder, or something else is in it.
pub(super) fn read(folder: &Path, agent: Option<&str>) -> Result<Vec<Need>, Failure> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        Failure::Usage(format!("{}: {why}", path.display()))
    };
    let mut needs = Vec::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(needs),
        Err(error) => return Err(wrong(folder, &error)),
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let notes = files
        .iter()
        .filter(|file| file.extension().is_some_and(|it| it == "jsonl"));
    for file in notes {
        let text = fs::read_to_string(file).map_err(|error| wrong(file, &error))?;
        needs.extend(parse(&text, agent).map_err(|error| wrong(file, &error))?);
    }
    Ok(needs)
}

fn parse(text: &str, agent: Option<&str>) -> Result<Vec<Need>, serde_json::Error> {
    let mut needs = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<Vec<Need>, _>>()?;
    needs.retain(|need| need.user_agent.contains(agent.unwrap_or(TRACKED)));
    Ok(needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_operators_requests_count() {
        let text = r#"{"verb":"get","userAgent":"site/homeostat-0.1.0"}
{"verb":"list","userAgent":""}
{"verb":"patch","userAgent":"other/homeostat-0.1.0","allowed":false}
"#;
        let verbs = |agent| {
            let needs = parse(text, agent).unwrap();
            needs.into_iter().map(|need| need.verb).collect::<Vec<_>>()
        };
        assert_eq!(verbs(None), ["get", "patch"]);
        assert_eq!(verbs(Some("site/")), ["get"]);
        assert!(parse("{", None).is_err());
    }
}
