//! Lists: which state they show, in pages or whole.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Registry, Selection, Target, present};
use crate::base64;
use crate::resource::Resource;
use crate::status::{Cause, Status, Subject};
use crate::storage::{Key, Object};

/// What a list or watch asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    pub(crate) selection: Selection,
    /// 0: no limit.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    /// As the client sent it.
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) allow_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
    /// What is not known.
    Other(String),
}

/// Which state a list wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListWant {
    /// The present one, which must not be older than this revision.
    NotOlderThan(u64),
    Exact(u64),
}

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Object>,
    revision: u64,
    next: Option<String>,
    remaining: Option<usize>,
    /// The shards that it is of, if not of all.
    shards: Option<String>,
}

/// Where a page starts and which state it shows.
struct Start {
    at: u64,
    /// The revision that the list names: that of the first page.
    shown: u64,
    after: Option<Key>,
}

const EXPIRED_TOKEN: &str = "The provided continue parameter is too old to display a consistent \
    list result. You can start a new list without the continue parameter, or use the continue \
    token in this response to retrieve the remainder of the results. Continuing with the provided \
    token results in an inconsistent list - objects that were created, modified, or deleted between \
    the time the first chunk was returned and now may show up in the list.";

const EXPIRED_VERSION: &str = "The resourceVersion for the provided list is too old.";

/// Marks a token that goes on in whatever state is newest.
const INCONSISTENT: i64 = -1;

// === impl ListOptions ===

impl ListOptions {
    /// Checks the combination of parameters of a list.
    ///
    /// # Errors
    ///
    /// 422 for combinations that mean nothing, 400 for a version that is no number.
    pub(crate) fn check_list(&self) -> Result<(), Status> {
        let mut causes = Vec::new();
        if self.send_initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            causes.push(Cause::forbidden("sendInitialEvents", why));
        }
        if let Some(version_match) = &self.version_match {
            let field = "resourceVersionMatch";
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                causes.push(Cause::forbidden(field, why));
            }
            if !self.continue_token.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                causes.push(Cause::forbidden(field, why));
            }
            if let VersionMatch::Other(name) = version_match {
                let supported = ["Exact", "NotOlderThan", ""];
                causes.push(Cause::not_supported(field, &json!(name), &supported));
            }
            if *version_match == VersionMatch::Exact && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                causes.push(Cause::forbidden(field, why));
            }
        }
        invalid_options(causes)?;
        self.want().map(|_| ())
    }

    /// Checks the combination of parameters of a watch.
    ///
    /// # Errors
    ///
    /// 422 for combinations that mean nothing, 500 for a version that is no number.
    pub(crate) fn check_watch(&self) -> Result<(), Status> {
        let mut causes = Vec::new();
        let field = "resourceVersionMatch";
        match (&self.version_match, self.send_initial_events) {
            (Some(VersionMatch::NotOlderThan), Some(_)) | (None, None) => {}
            (None, Some(_)) => {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                causes.push(Cause::forbidden(field, why));
            }
            (Some(_), None) => {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                causes.push(Cause::forbidden(field, why));
            }
            (Some(VersionMatch::Exact | VersionMatch::Other(_)), Some(_)) => {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                causes.push(Cause::forbidden(field, why));
                let name = self.match_name();
                causes.push(Cause::not_supported(field, &json!(name), &["NotOlderThan"]));
            }
        }
        invalid_options(causes)?;
        parse_version(&self.resource_version)
            .map(|_| ())
            .map_err(Status::internal)
    }

    fn match_name(&self) -> &str {
        match &self.version_match {
            Some(VersionMatch::Exact) => "Exact",
            Some(VersionMatch::NotOlderThan) => "NotOlderThan",
            Some(VersionMatch::Other(name)) => name,
            None => "",
        }
    }

    /// Which state the list wants to see.
    ///
    /// # Errors
    ///
    /// 400 for a version that is no number.
    pub(crate) fn want(&self) -> Result<ListWant, Status> {
        let version = parse_version(&self.resource_version)
            .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        // Without a match, a page of a version means exactly that version.
        let exact = match self.version_match {
            Some(VersionMatch::Exact) => true,
            None => self.limit > 0 && version > 0,
            Some(VersionMatch::NotOlderThan | VersionMatch::Other(_)) => false,
        };
        Ok(if exact {
            ListWant::Exact(version)
        } else {
            ListWant::NotOlderThan(version)
        })
    }
}

/// A resourceVersion as a number; the empty one is 0.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid \
             syntax"
        )
    })
}

fn invalid_options(causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() {
        return Ok(());
    }
    let subject = Subject {
        group: "meta.k8s.io",
        kind: "ListOptions",
        name: "",
    };
    Err(Status::invalid(subject, causes))
}

// === impl Registry ===

impl Registry {
    /// Lists objects.
    ///
    /// # Errors
    ///
    /// 400 and 422 for parameters that cannot be understood, 410 for a state that is forgotten, 504
    /// for one that is not there yet.
    pub(crate) fn list(&self, target: &Target, options: &ListOptions) -> Result<Value, Status> {
        Ok(self.page(target, options)?.into_body(&target.resource))
    }

    /// Lists objects, as JSON.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub(crate) fn list_text(
        &self,
        target: &Target,
        options: &ListOptions,
    ) -> Result<Bytes, Status> {
        Ok(self.page(target, options)?.into_text(&target.resource))
    }

    pub(super) fn page(&self, target: &Target, options: &ListOptions) -> Result<Page, Status> {
        options.check_list()?;
        let start = self.start(target, options)?;
        let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
        let storage = &target.resource.storage;
        // With a version of 0 a real server answers from memory, where a limit means nothing.
        let limit = if options.limit == 0 || options.resource_version == "0" {
            usize::MAX
        } else {
            options.limit
        };
        let mut stored = self
            .store
            .scan(storage, namespace, start.at, start.after.as_ref());
        let mut items = Vec::new();
        let mut last: Option<&Key> = None;
        while items.len() < limit
            && let Some((key, object)) = stored.next()
        {
            let shown = present(&target.resource, &object);
            if options.selection.takes(&target.resource, &shown) {
                last = Some(key);
                items.push(shown);
            }
        }
        // The server does not look whether one of the rest matches.
        let rest = match last {
            Some(last) if items.len() == limit => {
                self.store.count(storage, namespace, start.at, Some(last))
            }
            // There is nothing behind the end.
            Some(_) | None => 0,
        };
        let next = last.filter(|_| rest > 0).map(|key| {
            token(
                i64::try_from(start.shown).unwrap_or(i64::MAX),
                &key.namespace,
                &key.name,
            )
        });
        let remaining = (rest > 0 && options.selection.is_everything()).then_some(rest);
        Ok(Page {
            items,
            revision: start.shown,
            next,
            remaining,
            shards: options.selection.shards().map(str::to_owned),
        })
    }

    fn start(&self, target: &Target, options: &ListOptions) -> Result<Start, Status> {
        let current = self.store.revision();
        if !options.continue_token.is_empty() {
            return self.resume(target, options, current);
        }
        match options.want()? {
            ListWant::NotOlderThan(version) | ListWant::Exact(version) if version > current => {
                Err(Status::future_version(version, current))
            }
            ListWant::NotOlderThan(_) => Ok(Start {
                at: current,
                shown: current,
                after: None,
            }),
            ListWant::Exact(version) if version < self.store.compacted() => {
                Err(Status::expired(EXPIRED_VERSION))
            }
            ListWant::Exact(version) => Ok(Start {
                at: version,
                shown: version,
                after: None,
            }),
        }
    }

    fn resume(
        &self,
        target: &Target,
        options: &ListOptions,
        current: u64,
    ) -> Result<Start, Status> {
        if !["", "0"].contains(&options.resource_version.as_str()) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let Some((revision, namespace, name)) = read_token(&options.continue_token) else {
            return Err(Status::bad_request(
                "invalid continue token: continue key is not valid",
            ));
        };
        let after = Some(Key::new(&target.resource.storage, &namespace, &name));
        if revision == INCONSISTENT {
            return Ok(Start {
                at: current,
                shown: current,
                after,
            });
        }
        let revision = u64::try_from(revision).unwrap_or(current);
        if revision < self.store.compacted() {
            let mut status = Status::expired(EXPIRED_TOKEN);
            status.fresh_continue = Some(token(INCONSISTENT, &namespace, &name));
            return Err(status);
        }
        Ok(Start {
            at: revision.min(current),
            shown: revision,
            after,
        })
    }
}

// === impl Page ===

impl Page {
    /// The list as the API shows it.
    pub(super) fn into_body(self, resource: &Resource) -> Value {
        let metadata = self.metadata(resource);
        let items = self.items.iter().map(|object| {
            let mut item = Value::clone(object);
            // Items of a built-in list do not repeat what the list says.
            if let Some(members) = item.as_object_mut().filter(|_| !resource.is_custom()) {
                members.remove("apiVersion");
                members.remove("kind");
            }
            item
        });
        json!({
            "apiVersion": resource.api_version(),
            "kind": resource.list_kind,
            "metadata": metadata,
            "items": items.collect::<Vec<_>>(),
        })
    }

    /// The same as JSON, from the text of the items: none of them is decoded for it.
    fn into_text(self, resource: &Resource) -> Bytes {
        let head = json!({ "apiVersion": resource.api_version(), "kind": resource.list_kind });
        let mut head = head.to_string();
        head.pop();
        let head = format!(
            "{head},\"metadata\":{},\"items\":[",
            self.metadata(resource)
        );
        let length: usize = self
            .items
            .iter()
            .map(|object| object.text().whole().len())
            .sum();
        let mut bytes = Vec::with_capacity(head.len() + length + self.items.len() + 2);
        bytes.extend_from_slice(head.as_bytes());
        for (index, object) in self.items.iter().enumerate() {
            if index > 0 {
                bytes.push(b',');
            }
            if resource.is_custom() {
                bytes.extend_from_slice(object.text().whole());
            } else {
                bytes.push(b'{');
                bytes.extend_from_slice(object.text().rest());
            }
        }
        bytes.extend_from_slice(b"]}");
        Bytes::from(bytes)
    }

    fn metadata(&self, resource: &Resource) -> Value {
        let Self {
            items: _,
            revision,
            next,
            remaining,
            shards,
        } = self;
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if let Some(remaining) = remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        match next {
            Some(token) => metadata["continue"] = json!(token),
            // Lists of custom resources always have the member.
            None if resource.is_custom() => metadata["continue"] = json!(""),
            None => {}
        }
        if let Some(shards) = shards {
            metadata["shardInfo"] = json!({ "selector": shards });
        }
        metadata
    }
}

/// A token that goes on behind a key. Opaque to clients; the form is that of a real server.
fn token(revision: i64, namespace: &str, name: &str) -> String {
    let start = format!("{namespace}/{name}\u{0}");
    let text = json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": start }).to_string();
    base64::encode_url(text.as_bytes())
}

fn read_token(token: &str) -> Option<(i64, String, String)> {
    let text = String::from_utf8(base64::decode_url(token)?).ok()?;
    let parsed: Value = serde_json::from_str(&text).ok()?;
    let start = parsed["start"].as_str()?.trim_end_matches('\u{0}');
    let (namespace, name) = start.split_once('/')?;
    Some((
        parsed["rv"].as_i64()?,
        namespace.to_owned(),
        name.to_owned(),
    ))
}
