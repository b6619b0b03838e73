//! What an event is, and what a server gets to see of it.

use super::{Event, EventType, Reporter};
use crate::predicate::hash;
use homeostat_core::series::Write;
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event as Body, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::api::ObjectMeta;
use std::sync::Arc;

/// What makes two reports the same event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    pub(super) regarding: Arc<Subject>,
    related: Option<Subject>,
    type_: EventType,
    reason: String,
    action: String,
    note: Option<String>,
}

/// An object, in whatever version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Subject {
    name: Option<String>,
    namespace: Option<String>,
    kind: Option<String>,
    api_version: Option<String>,
    uid: Option<String>,
    field_path: Option<String>,
}

/// What is told of a single occurrence.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    pub(super) time: Timestamp,
    /// The version of the object that it is about.
    pub(super) resource_version: Option<String>,
}

/// Bytes of a reason, an action and an instance that servers take.
const WORD: usize = 128;

/// Bytes of a note that servers take.
const NOTE: usize = 1024;

/// Bytes of a name of an object.
const NAME: usize = 253;

/// What a series is, for the journal.
pub(super) type Told = Write<Arc<Identity>, Occurrence>;

// === impl Identity ===

impl Identity {
    pub(super) fn new(event: &Event, regarding: &ObjectReference) -> Self {
        let Event {
            type_,
            reason,
            note,
            action,
            secondary,
        } = event;
        Self {
            regarding: Arc::new(Subject::new(regarding)),
            related: secondary.as_ref().map(Subject::new),
            type_: *type_,
            reason: cut(reason, WORD),
            action: cut(action, WORD),
            note: note.as_ref().map(|note| cut(note, NOTE)),
        }
    }

    /// Where the event is. Those about an object of the cluster have to be in this namespace.
    pub(super) fn namespace(&self) -> &str {
        let namespace = self
            .regarding
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty());
        namespace.unwrap_or("default")
    }
}

// === impl Subject ===

impl Subject {
    fn new(reference: &ObjectReference) -> Self {
        let ObjectReference {
            api_version,
            field_path,
            kind,
            name,
            namespace,
            resource_version: _,
            uid,
        } = reference.clone();
        Self {
            name,
            namespace,
            kind,
            api_version,
            uid,
            field_path,
        }
    }

    fn reference(&self, resource_version: Option<String>) -> ObjectReference {
        let Self {
            name,
            namespace,
            kind,
            api_version,
            uid,
            field_path,
        } = self.clone();
        ObjectReference {
            api_version,
            field_path,
            kind,
            name,
            namespace,
            resource_version,
            uid,
        }
    }
}

/// As in `Pod default/web`, for the log.
impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let (kind, name) = (text(&self.kind), text(&self.name));
        match &self.namespace {
            Some(namespace) => write!(f, "{kind} {namespace}/{name}"),
            None => write!(f, "{kind} {name}"),
        }
    }
}

/// The event as a server is told of it. `since` is when the recorder began to tell.
pub(super) fn body(told: &Told, reporter: &Reporter, since: Timestamp) -> Body {
    let Identity {
        regarding,
        related,
        type_,
        reason,
        action,
        note,
    } = &*told.key;
    let instance = reporter.instance.as_ref().unwrap_or(&reporter.controller);
    Body {
        metadata: ObjectMeta {
            name: Some(name(told, reporter, since)),
            namespace: Some(told.key.namespace().into()),
            ..ObjectMeta::default()
        },
        regarding: Some(regarding.reference(told.first.resource_version.clone())),
        related: related.as_ref().map(|related| related.reference(None)),
        type_: Some(type_.as_str().into()),
        reason: Some(reason.clone()),
        action: Some(action.clone()),
        note: note.clone(),
        event_time: Some(MicroTime(told.first.time)),
        reporting_controller: Some(reporter.controller.clone()),
        reporting_instance: Some(cut(instance, WORD)),
        series: series(told),
        ..Body::default()
    }
}

/// How often the event occurred. Once is no series: servers want two.
pub(super) fn series(told: &Told) -> Option<EventSeries> {
    (told.count > 1).then(|| EventSeries {
        count: i32::try_from(told.count).unwrap_or(i32::MAX),
        last_observed_time: MicroTime(told.last.time),
    })
}

/// The name of the event: that of its object, and a number that the event, its reporter and when the
/// reporter began make unlikely to be taken. If it is, there is another serial.
pub(super) fn name(told: &Told, reporter: &Reporter, since: Timestamp) -> String {
    let Reporter {
        controller,
        instance,
    } = reporter;
    let begun = since.as_nanosecond();
    let number = hash(&(controller, instance, begun, told.serial, &*told.key));
    let suffix = format!(".{number:016x}");
    // Some kinds have names that are no names for an event, like roles with a colon.
    let object = told.key.regarding.name.as_deref().unwrap_or_default();
    let object: String = object
        .chars()
        .map(|letter| match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9' | '.' | '-') => letter,
            _ => '-',
        })
        .take(NAME - suffix.len())
        .collect();
    let labels = object.split('.').map(|label| label.trim_matches('-'));
    let labels: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    match labels.as_slice() {
        [] => format!("event{suffix}"),
        labels => labels.join(".") + &suffix,
    }
}

/// The text, or as much of it as fits into `limit` bytes.
fn cut(text: &str, limit: usize) -> String {
    const MARK: &str = "...";
    if text.len() <= limit {
        return text.into();
    }
    let end = (0..=limit - MARK.len())
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned() + MARK
}

#[cfg(test)]
mod tests;
