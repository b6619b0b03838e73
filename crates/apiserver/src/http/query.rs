use bytes::Bytes;
use std::borrow::Cow;

use serde_json::{Value, json};

use crate::access::Requester;
use crate::config::Config;
use crate::registry::{
    DeleteOptions, FieldValidation, ListOptions, Selection, VersionMatch, WriteOptions,
};
use crate::resource::Resource;
use crate::status::{Cause, Status, Subject};

/// The longest name of a field manager.
const MAX_MANAGER_LENGTH: usize = 128;

/// The parameters of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

// === impl Query ===

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self {
            pairs: pairs
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        }
    }

    /// The first value of a parameter; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.pairs.iter().find(|(one, _)| one == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(one, _)| one == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether a parameter says yes: it is there, and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.values(name)
            .next()
            .is_some_and(|value| !["false", "0"].contains(&value))
    }

    fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Status::bad_request(format!(
                    "strconv.ParseInt: parsing {text:?}: invalid syntax"
                ))
            }),
        }
    }

    /// The options of a list or watch.
    ///
    /// A server that does not shard ignores what it is asked for of that.
    pub(crate) fn list_options(
        &self,
        resource: &Resource,
        config: &Config,
    ) -> Result<ListOptions, Status> {
        let limit = self.number("limit")?.unwrap_or_default();
        let timeout = self.number("timeoutSeconds")?;
        let (labels, fields) = (self.get("labelSelector"), self.get("fieldSelector"));
        let mut selection = Selection::parse(resource, labels, fields)?;
        if config.sharded_list_and_watch
            && let Some(shards) = self.values("shardSelector").next()
        {
            selection.of_shards(shards)?;
        }
        Ok(ListOptions {
            selection,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: self.get("continue").to_owned(),
            resource_version: self.get("resourceVersion").to_owned(),
            version_match: match self.get("resourceVersionMatch") {
                "" => None,
                "Exact" => Some(VersionMatch::Exact),
                "NotOlderThan" => Some(VersionMatch::NotOlderThan),
                other => Some(VersionMatch::Other(other.to_owned())),
            },
            allow_bookmarks: self.flag("allowWatchBookmarks"),
            send_initial_events: match self.get("sendInitialEvents") {
                "" => None,
                _ => Some(self.flag("sendInitialEvents")),
            },
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()),
        })
    }

    /// The options of a write. `kind` names them in failures: `CreateOptions` and so on.
    pub(crate) fn write_options(
        &self,
        kind: &str,
        requester: &Requester,
        user_agent: &str,
    ) -> Result<WriteOptions, Status> {
        let mut causes = Vec::new();
        let dry_run: Vec<&str> = self
            .values("dryRun")
            .filter(|value| !value.is_empty())
            .collect();
        if dry_run.iter().any(|value| *value != "All") {
            causes.push(Cause::not_supported("dryRun", &json!(dry_run), &["All"]));
        }
        let manager = self.get("fieldManager");
        let position = manager.chars().position(char::is_control);
        if let Some((position, c)) = position.and_then(|at| Some((at, manager.chars().nth(at)?))) {
            let why = format!(
                "invalid character U+{:04X} (at position {position})",
                u32::from(c)
            );
            causes.push(Cause::invalid("fieldManager", &json!(manager), &why));
        }
        if manager.chars().count() > MAX_MANAGER_LENGTH {
            causes.push(Cause::too_long("fieldManager", MAX_MANAGER_LENGTH as u64));
        }
        let validation = match self.get("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                causes.push(Cause::not_supported(
                    "fieldValidation",
                    &json!(other),
                    &supported,
                ));
                FieldValidation::Warn
            }
        };
        if !causes.is_empty() {
            return Err(Status::invalid(
                Subject {
                    group: "meta.k8s.io",
                    kind,
                    name: "",
                },
                causes,
            ));
        }
        let given = !manager.is_empty();
        let manager = if given {
            manager.into()
        } else {
            Cow::from(default_manager(user_agent))
        };
        Ok(WriteOptions {
            body: Bytes::new(),
            dry_run: !dry_run.is_empty(),
            requester: requester.clone(),
            manager: manager.into_owned(),
            manager_is_given: given,
            validation,
            duplicates: Vec::new(),
            vouched: None,
        })
    }

    /// The options of a deletion, which a body replaces.
    pub(crate) fn delete_options(&self, body: Option<&Value>) -> Result<DeleteOptions, Status> {
        if let Some(body) = body {
            return DeleteOptions::from_body(body);
        }
        let mut options = json!({});
        let dry_run: Vec<&str> = self
            .values("dryRun")
            .filter(|value| !value.is_empty())
            .collect();
        if !dry_run.is_empty() {
            options["dryRun"] = json!(dry_run);
        }
        if let Some(seconds) = self.number("gracePeriodSeconds")? {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        if !self.get("propagationPolicy").is_empty() {
            options["propagationPolicy"] = json!(self.get("propagationPolicy"));
        }
        if !self.get("orphanDependents").is_empty() {
            options["orphanDependents"] = json!(self.flag("orphanDependents"));
        }
        DeleteOptions::from_body(&options)
    }
}

/// A client that names no field manager is named after its program, and if it does not name that either,
/// it is unknown.
fn default_manager(user_agent: &str) -> String {
    let program = user_agent.split('/').next().unwrap_or_default();
    let manager: String = program
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_MANAGER_LENGTH)
        .collect();
    if manager.is_empty() {
        "unknown".to_owned()
    } else {
        manager
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MANAGER_LENGTH, default_manager};

    #[test]
    fn whoever_names_no_manager_is_named_after_the_program() {
        assert_eq!(default_manager("kubectl/v1.36 (linux)"), "kubectl");
        assert_eq!(default_manager("a\u{7}b"), "ab");
        for nobody in ["", "/1.0", "\u{7}"] {
            assert_eq!(default_manager(nobody), "unknown", "{nobody:?}");
        }
        let long = "a".repeat(MAX_MANAGER_LENGTH + 1);
        assert_eq!(default_manager(&long).len(), MAX_MANAGER_LENGTH);
    }
}
