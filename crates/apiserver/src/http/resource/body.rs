//! Bodies of requests.

use serde_json::{Value, json};

use super::duplicates;
use crate::config::Config;
use crate::http::incoming::Incoming;
use crate::http::protobuf;
use crate::registry::PatchKind;
use crate::status::Status;

/// Media types of bodies that are objects.
const OBJECT_TYPES: [&str; 3] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// How much of a body that cannot be read is shown.
const SHOWN_BYTES: usize = 30;

/// The object in a body. Adds the paths of members that occur more than once.
///
/// # Errors
///
/// 415 for a media type that is not known, 400 for what cannot be parsed.
pub(super) fn object(
    config: &Config,
    request: &Incoming,
    kind: &str,
    duplicates: &mut Vec<String>,
) -> Result<Value, Status> {
    let parsed = parse_object(config, request, duplicates);
    // Null is an object about which nothing is said.
    let parsed = parsed.map(|value| if value.is_null() { json!({}) } else { value });
    parsed.map_err(|problem| match problem {
        Problem::MediaType => Status::unsupported_media_type(&OBJECT_TYPES),
        Problem::Text(why) => {
            let text = String::from_utf8_lossy(&request.body);
            let start: String = text.chars().take(SHOWN_BYTES).collect();
            let shown = if start.len() < text.len() {
                format!("{start:?} ...")
            } else {
                format!("{start:?}")
            };
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get \
                 version/kind; json parse error: {why} ({shown})"
            ))
        }
    })
}

/// The options in the body of a deletion, if there is one.
///
/// # Errors
///
/// 400 for what is no such options.
pub(super) fn delete_options(config: &Config, request: &Incoming) -> Result<Option<Value>, Status> {
    if request.body.is_empty() {
        return Ok(None);
    }
    let body = parse_object(config, request, &mut Vec::new()).map_err(|problem| match problem {
        Problem::MediaType => Status::unsupported_media_type(&OBJECT_TYPES),
        Problem::Text(why) => Status::bad_request(format!(
            "couldn't get version/kind; json parse error: {why}"
        )),
    })?;
    let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        let version = &body["apiVersion"];
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {version} in scheme \
             \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\""
        )));
    }
    Ok(Some(body))
}

/// The patch in a body.
///
/// # Errors
///
/// 400 for what cannot be parsed.
pub(super) fn patch(config: &Config, request: &Incoming, kind: PatchKind) -> Result<Value, Status> {
    let parsed = match kind {
        PatchKind::Apply => yaml(config, &request.body),
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => {
            json(config, &request.body, &mut Vec::new())
        }
    };
    parsed.map_err(|why| Status::bad_request(format!("error decoding patch: {why}")))
}

enum Problem {
    MediaType,
    Text(String),
}

fn parse_object(
    config: &Config,
    request: &Incoming,
    duplicates: &mut Vec<String>,
) -> Result<Value, Problem> {
    match request.media_type().as_str() {
        "application/json" | "" => json(config, &request.body, duplicates).map_err(Problem::Text),
        "application/yaml" => yaml(config, &request.body).map_err(Problem::Text),
        "application/vnd.kubernetes.protobuf" => {
            protobuf::object(&request.body, config.max_json_depth).map_err(Problem::Text)
        }
        _ => Err(Problem::MediaType),
    }
}

fn json(config: &Config, body: &[u8], duplicates: &mut Vec<String>) -> Result<Value, String> {
    let (value, found) = duplicates::read(body).map_err(|error| {
        if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        }
    })?;
    duplicates.extend(found);
    check_depth(config, &value)?;
    Ok(value)
}

fn yaml(config: &Config, body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let value: Value = serde_saphyr::from_str(text).map_err(|error| format!("yaml: {error}"))?;
    check_depth(config, &value)?;
    Ok(value)
}

/// Bounds how deep a value nests; the parsers have bounds of their own, so this cannot overflow.
fn check_depth(config: &Config, value: &Value) -> Result<(), String> {
    fn depth(value: &Value) -> usize {
        let inner = |values: &mut dyn Iterator<Item = &Value>| values.map(depth).max().unwrap_or(0);
        if let Some(members) = value.as_object() {
            1 + inner(&mut members.values())
        } else if let Some(elements) = value.as_array() {
            1 + inner(&mut elements.iter())
        } else {
            0
        }
    }
    if depth(value) > config.max_json_depth {
        return Err(format!("exceeded max depth of {}", config.max_json_depth));
    }
    Ok(())
}
