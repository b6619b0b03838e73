//! Failures in the form in which the API reports them.

use serde_json::{Map, Value, json};

use crate::quoted::quoted;

/// A failure, as the body of kind `Status` describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    /// Empty where the server knows no reason (code 500).
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Boxed, because a failure is an answer of nearly every function.
    pub(crate) details: Option<Box<Details>>,
    /// A token to go on with after a continue token expired.
    pub(crate) fresh_continue: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// What failed, and why.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after_seconds: Option<u32>,
}

/// One of the causes of a failure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// The group and the resource (or kind) that a failure names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

// === impl Status ===

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            fresh_continue: None,
            warnings: Vec::new(),
        }
    }

    fn about(mut self, subject: Subject<'_>) -> Self {
        self.details = Some(Box::new(Details {
            name: subject.name.to_owned(),
            group: subject.group.to_owned(),
            kind: subject.kind.to_owned(),
            ..Details::default()
        }));
        self
    }

    pub(crate) fn with_cause(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    pub(crate) fn with_empty_details(mut self) -> Self {
        self.details = Some(Box::default());
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn forbidden(subject: Subject<'_>, why: &str) -> Self {
        let message = format!(
            "{} {:?} is forbidden: {why}",
            subject.qualified(),
            subject.name
        );
        Self::new(403, "Forbidden", message).about(subject)
    }

    /// The requester may not do that.
    pub(crate) fn not_allowed(subject: Subject<'_>, why: &str) -> Self {
        let message = match (subject.kind, subject.name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", subject.qualified()),
            _ => return Self::forbidden(subject, why),
        };
        Self::new(403, "Forbidden", message).about(subject)
    }

    /// Nobody knows who the requester is.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// Everything that the server may store is stored.
    pub(crate) fn storage_is_full() -> Self {
        Self::internal("etcdserver: mvcc: database space exceeded")
    }

    pub(crate) fn not_found(subject: Subject<'_>) -> Self {
        let message = format!("{} {:?} not found", subject.qualified(), subject.name);
        Self::new(404, "NotFound", message).about(subject)
    }

    /// No resource is served under the path.
    pub(crate) fn no_such_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_empty_details()
    }

    /// The resource does not know the method.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_empty_details()
    }

    /// The custom resource does not know the verb.
    pub(crate) fn verb_not_supported(subject: Subject<'_>, verb: &str) -> Self {
        let kind = subject.qualified();
        let message = format!("{verb} is not supported on resources of kind {kind:?}");
        Self::new(405, "MethodNotAllowed", message).about(subject)
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn already_exists(subject: Subject<'_>, being_deleted: bool) -> Self {
        let prefix = if being_deleted {
            "object is being deleted: "
        } else {
            ""
        };
        let message = format!(
            "{prefix}{} {:?} already exists",
            subject.qualified(),
            subject.name
        );
        Self::new(409, "AlreadyExists", message).about(subject)
    }

    /// The name is taken though it was to be generated, or could have been.
    pub(crate) fn not_unique(subject: Subject<'_>, being_deleted: bool) -> Self {
        let mut status = Self::already_exists(subject, being_deleted);
        status.message += ", the server was not able to generate a unique name for the object";
        status.details.get_or_insert_default().retry_after_seconds = Some(1);
        status
    }

    pub(crate) fn conflict(subject: Subject<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            subject.qualified(),
            subject.name
        );
        Self::new(409, "Conflict", message).about(subject)
    }

    /// The request was made for a version of the object that is no longer the present one.
    pub(crate) fn modified(subject: Subject<'_>) -> Self {
        Self::conflict(
            subject,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        )
    }

    /// Other managers own fields that an apply wants to change.
    pub(crate) fn apply_conflict(causes: Vec<Cause>) -> Self {
        let count = causes.len();
        let noun = if count == 1 { "conflict" } else { "conflicts" };
        let mut status = Self::new(409, "Conflict", format!("Apply failed with {count} {noun}"));
        status.details = Some(Box::new(Details {
            causes,
            ..Details::default()
        }));
        status
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large(why: &str) -> Self {
        let message = format!("Request entity too large: {why}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// What was asked for may be done later.
    pub(crate) fn too_many_requests(message: &str, cause: Cause, wait_seconds: u32) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message).with_cause(cause);
        status.details.get_or_insert_default().retry_after_seconds =
            (wait_seconds > 0).then_some(wait_seconds);
        status
    }

    /// The object breaks rules. `causes` must not be empty.
    pub(crate) fn invalid(subject: Subject<'_>, causes: Vec<Cause>) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for cause in &causes {
            let line = format!("{}: {}", cause.field, cause.message);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let list = if lines.len() == 1 {
            lines.remove(0)
        } else {
            format!("[{}]", lines.join(", "))
        };
        let message = format!(
            "{} {:?} is invalid: {list}",
            subject.qualified(),
            subject.name
        );
        let mut status = Self::new(422, "Invalid", message).about(subject);
        status.details.get_or_insert_default().causes = causes;
        status
    }

    /// A patch whose outcome cannot be taken in.
    pub(crate) fn bad_patch(why: &str) -> Self {
        let subject = Subject {
            group: "",
            kind: "",
            name: "",
        };
        let cause = Cause::invalid("patch", &Value::Null, why);
        let mut status = Self::invalid(subject, vec![cause]);
        status.message = format!(" \"\" is invalid: patch: Invalid value: {why}");
        status
    }

    /// Shows the outcome of a patch that cannot be taken in.
    pub(crate) fn with_shown_patch(mut self, shown: &str) -> Self {
        let before = "Invalid value: ";
        let after = format!("Invalid value: {shown}: ");
        self.message = self.message.replacen(before, &after, 1);
        for cause in &mut self.details.get_or_insert_default().causes {
            cause.message = cause.message.replacen("Invalid value: null: ", &after, 1);
        }
        self
    }

    /// A patch that cannot be applied.
    pub(crate) fn rejected() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .with_empty_details()
    }

    /// The failure of something inside the server.
    pub(crate) fn internal_error(why: &str) -> Self {
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {why}"),
        )
        .with_cause(Cause::plain(why))
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    pub(crate) fn unsupported_patch_type() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with_empty_details()
    }

    /// Only an apply can take fields from other managers.
    pub(crate) fn force_without_apply() -> Self {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        let subject = Subject {
            group: "meta.k8s.io",
            kind: "PatchOptions",
            name: "",
        };
        Self::invalid(subject, vec![cause])
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// A resourceVersion that the server has not reached in time.
    pub(crate) fn future_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message).with_cause(Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        status.details.get_or_insert_default().retry_after_seconds = Some(1);
        status
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// The body of kind `Status`.
    pub(crate) fn body(&self) -> Value {
        let Self {
            code,
            reason,
            message,
            details,
            fresh_continue,
            warnings: _,
        } = self;
        let mut metadata = Map::new();
        if let Some(token) = fresh_continue {
            metadata.insert("continue".to_owned(), json!(token));
        }
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": message,
            "code": code,
        });
        if !reason.is_empty() {
            body["reason"] = json!(reason);
        }
        if let Some(details) = details {
            body["details"] = details.body();
        }
        body
    }
}

// === impl Details ===

impl Details {
    fn body(&self) -> Value {
        let Self {
            name,
            group,
            kind,
            uid,
            causes,
            retry_after_seconds,
        } = self;
        let mut body = Map::new();
        for (member, text) in [
            ("name", name),
            ("group", group),
            ("kind", kind),
            ("uid", uid),
        ] {
            if !text.is_empty() {
                body.insert(member.to_owned(), json!(text));
            }
        }
        if !causes.is_empty() {
            let causes = causes.iter().map(Cause::body).collect();
            body.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = retry_after_seconds {
            body.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(body)
    }
}

// === impl Cause ===

impl Cause {
    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        Self {
            reason,
            message,
            field: field.into(),
        }
    }

    /// `value` is shown as JSON.
    pub(crate) fn wrong_type(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self::new("FieldValueTypeInvalid", field, message)
    }

    pub(crate) fn too_long(field: impl Into<String>, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {max} {unit}");
        Self::new("FieldValueTooLong", field, message)
    }

    pub(crate) fn too_many(field: impl Into<String>, found: u64, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        let message = format!("Too many: {found}: must have at most {max} {unit}");
        Self::new("FieldValueTooMany", field, message)
    }

    /// `value` is shown as JSON.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {value}"),
        )
    }

    /// `value` is shown as it is.
    pub(crate) fn duplicate_shown(field: impl Into<String>, value: &str) -> Self {
        Self::new(
            "FieldValueDuplicate",
            field,
            format!("Duplicate value: {value}"),
        )
    }

    /// The value names something that is not there.
    pub(crate) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    /// A cause that only says why.
    pub(crate) fn plain(message: &str) -> Self {
        Self::new("", "", message.to_owned())
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {why}")
        };
        Self::new("FieldValueRequired", field, message)
    }

    /// `value` is shown as JSON.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self::new(
            "FieldValueInvalid",
            field,
            format!("Invalid value: {}: {why}", shown(value)),
        )
    }

    /// `value` is shown as it is.
    pub(crate) fn invalid_shown(field: impl Into<String>, value: &str, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self::new("FieldValueInvalid", field, message)
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// `value` is shown as JSON.
    pub(crate) fn not_supported(
        field: impl Into<String>,
        value: &Value,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            supported.join(", ")
        );
        Self::new("FieldValueNotSupported", field, message)
    }

    fn body(&self) -> Value {
        let Self {
            reason,
            message,
            field,
        } = self;
        let mut body = json!({ "message": message });
        if !reason.is_empty() {
            body["reason"] = json!(reason);
        }
        if !field.is_empty() {
            body["field"] = json!(field);
        }
        body
    }
}

/// A value as causes show it: texts as Go quotes them, others as JSON.
fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(text) => quoted(text),
        None => value.to_string(),
    }
}

// === impl Subject ===

impl Subject<'_> {
    /// `widgets.example.com`, or `configmaps` in the core group.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}
