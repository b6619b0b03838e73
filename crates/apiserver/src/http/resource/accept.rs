//! How a client wants to see objects.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::http::service::Incoming;
use crate::resource::Resource;
use crate::status::Status;
use crate::storage::Object;

/// A form in which objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Presentation {
    Object,
    /// The metadata alone.
    Metadata,
}

/// What can be had.
const MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

// === impl Presentation ===

impl Presentation {
    /// Takes the first of the accepted forms that the server knows.
    ///
    /// # Errors
    ///
    /// 406 if there is none.
    pub(super) fn choose(resource: &Resource, request: &Incoming) -> Result<Self, Status> {
        let accept = request.accept.trim();
        if accept.is_empty() {
            return Ok(Self::Object);
        }
        accept.split(',').find_map(Self::of_range).ok_or_else(|| {
            if resource.is_custom() {
                let message = format!("only the following media types are accepted: {MEDIA_TYPES}");
                Status::not_acceptable(message)
            } else {
                let message =
                    format!("406: Not Acceptable\n\nAvailable representations: {MEDIA_TYPES}");
                Status::not_acceptable(message).with_empty_details()
            }
        })
    }

    /// The form that one range of an Accept header asks for, if it is known.
    fn of_range(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        if ![
            "application/json",
            "application/yaml",
            "application/*",
            "*/*",
        ]
        .contains(&media_type)
        {
            return None;
        }
        let wanted = parts.find_map(|part| part.strip_prefix("as="));
        match wanted {
            None => Some(Self::Object),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Self::Metadata),
            Some(_) => None,
        }
    }

    /// Answers with one object.
    pub(super) fn object(
        self,
        resource: &Resource,
        object: Object,
        code: u16,
        warnings: Vec<String>,
    ) -> Answer {
        let body = self.of_event(resource, &object);
        Answer::Json {
            code,
            body,
            warnings,
        }
    }

    /// Answers with a list.
    pub(super) fn list(self, resource: &Resource, mut list: Value) -> Answer {
        if self == Self::Metadata {
            list["apiVersion"] = json!("meta.k8s.io/v1");
            list["kind"] = json!("PartialObjectMetadataList");
            if let Some(metadata) = list["metadata"].as_object_mut() {
                metadata.retain(|_, value| *value != "");
            }
            for item in list["items"].as_array_mut().into_iter().flatten() {
                *item = self.of_event(resource, item);
            }
        }
        let custom = resource.custom.as_ref();
        let warnings = custom
            .and_then(|custom| custom.deprecation.clone())
            .into_iter()
            .collect();
        Answer::Json {
            code: 200,
            body: list,
            warnings,
        }
    }

    /// An object in a watch event.
    pub(in crate::http) fn of_event(self, _resource: &Resource, object: &Value) -> Value {
        if self == Self::Object || object["kind"] == "Status" {
            return object.clone();
        }
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": object["metadata"],
        })
    }
}
