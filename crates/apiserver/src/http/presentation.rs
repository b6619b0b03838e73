//! How a client wants to see objects.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::http::Answer;
use crate::http::incoming::Incoming;
use crate::http::media::{MEDIA_TYPES, Media, Range, ranges};
use crate::http::table::{Include, TableForm};
use crate::resource::Resource;
use crate::status::Status;
use crate::storage::Object;

/// A form in which objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presentation {
    Object,
    /// The metadata alone, in this version of its group.
    Metadata(&'static str),
    Table(TableForm),
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Object,
    List,
    Stream,
    /// The answer to a write.
    Reply,
}

// === impl Presentation ===

impl Presentation {
    /// Takes the first of the accepted forms that the server knows. Streams are JSON alone.
    ///
    /// # Errors
    ///
    /// 406 if there is none, 400 for a table that is to include what is not known.
    pub(super) fn choose(
        resource: &Resource,
        request: &Incoming,
        wanted: Wanted,
    ) -> Result<Self, Status> {
        let ranges = ranges(&request.accept);
        let mut usable = ranges.iter().filter(|range| match range.media() {
            Some(Media::Json) => true,
            Some(Media::Yaml) => wanted != Wanted::Stream,
            None => false,
        });
        let found = usable.find_map(|range| Some((range, Self::of_range(range)?)));
        let Some((range, mut chosen)) = found else {
            return Err(not_acceptable(resource, wanted));
        };
        let is_single = wanted == Wanted::Object && !resource.is_custom();
        if is_single && range.kind == "PartialObjectMetadataList" {
            let Resource { group, kind, .. } = resource;
            let package = match group.split('.').next() {
                None | Some("" | "events") => "core",
                Some(package) => package,
            };
            return Err(Status::not_acceptable(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list \
                 (*{package}.{kind})"
            )));
        }
        if let Self::Table(form) = &mut chosen {
            form.include = Include::parse(request.query.get("includeObject"))?;
        }
        Ok(chosen)
    }

    /// The form that one range of an Accept header asks for, if it is known.
    fn of_range(range: &Range<'_>) -> Option<Self> {
        if range.kind.is_empty() {
            return Some(Self::Object);
        }
        let api_version = match (range.group, range.version) {
            ("meta.k8s.io", "v1") => "meta.k8s.io/v1",
            ("meta.k8s.io", "v1beta1") => "meta.k8s.io/v1beta1",
            _ => return None,
        };
        match range.kind {
            "PartialObjectMetadata" | "PartialObjectMetadataList" => {
                Some(Self::Metadata(api_version))
            }
            "Table" => Some(Self::Table(TableForm {
                api_version,
                include: Include::Metadata,
            })),
            _ => None,
        }
    }

    /// Answers with one object.
    pub(super) fn object(
        self,
        resource: &Resource,
        object: &Object,
        code: u16,
        warnings: Vec<String>,
        now: Timestamp,
    ) -> Answer {
        if self == Self::Object {
            return Answer::Object {
                code,
                object: object.clone(),
                warnings,
            };
        }
        Answer::Json {
            code,
            body: self.of_event(resource, object, now),
            warnings,
        }
    }

    /// Answers with a list.
    pub(super) fn list(self, resource: &Resource, mut list: Value, now: Timestamp) -> Answer {
        if self != Self::Object
            && let Some(metadata) = list["metadata"].as_object_mut()
        {
            metadata.retain(|_, value| *value != "");
        }
        let body = match self {
            Self::Object => list,
            Self::Metadata(api_version) => {
                list["apiVersion"] = json!(api_version);
                list["kind"] = json!("PartialObjectMetadataList");
                for item in list["items"].as_array_mut().into_iter().flatten() {
                    *item = self.of_event(resource, item, now);
                }
                list
            }
            Self::Table(form) => form.of_list(resource, list, now),
        };
        Answer::Json {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }

    /// An object as an answer or an event shows it.
    pub(super) fn of_event(self, resource: &Resource, object: &Value, now: Timestamp) -> Value {
        if object["kind"] == "Status" {
            return object.clone();
        }
        match self {
            Self::Object => object.clone(),
            Self::Metadata(api_version) => json!({
                "apiVersion": api_version,
                "kind": "PartialObjectMetadata",
                "metadata": object["metadata"],
            }),
            Self::Table(form) => form.of_object(resource, object, now),
        }
    }
}

/// How streams are shown, too.
const STREAM_TYPES: &str = ", application/json;stream=watch, \
                            application/vnd.kubernetes.protobuf;stream=watch";

fn not_acceptable(resource: &Resource, wanted: Wanted) -> Status {
    if resource.is_custom() {
        let message = format!("only the following media types are accepted: {MEDIA_TYPES}");
        Status::not_acceptable(message)
    } else {
        let streams = match wanted {
            Wanted::List | Wanted::Stream => STREAM_TYPES,
            Wanted::Object | Wanted::Reply => "",
        };
        let message =
            format!("406: Not Acceptable\n\nAvailable representations: {MEDIA_TYPES}{streams}");
        Status::not_acceptable(message).with_empty_details()
    }
}
