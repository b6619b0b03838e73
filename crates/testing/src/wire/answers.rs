//! Answers that are not the server's, or not as the server gave them.

use crate::{object::ObjectId, plan::Injection};
use bytes::Bytes;
use homeostat_apiserver::ResponseBody;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::{Value, json};
use std::io;

/// The body of any answer.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, io::Error>;

/// The server's answer as it is.
pub(super) fn passed(answer: Response<ResponseBody>) -> Response<AnyBody> {
    answer.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

/// What a request hears that meets a fault; none if the connection fails.
pub(super) fn faulty(injection: Injection, object: &ObjectId) -> Option<Response<AnyBody>> {
    let (code, reason, message) = match injection {
        Injection::Conflict => (
            StatusCode::CONFLICT,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply \
                 your changes to the latest version and try again",
                object.resource, object.name
            ),
        ),
        Injection::Busy => {
            let text = "Too many requests, please try again later.\n";
            let mut answer = response(StatusCode::TOO_MANY_REQUESTS, text.into());
            let headers = answer.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
            return Some(answer);
        }
        Injection::BusyStatus => (
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequests",
            "the server is busy".to_owned(),
        ),
        Injection::ServerError => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "Internal error occurred: injected by the checker".to_owned(),
        ),
        Injection::LateTimeout => (
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout".to_owned(),
        ),
        Injection::Refused
        | Injection::AnswerLost
        | Injection::CrashBefore
        | Injection::CrashAfter
        | Injection::CrashSeen => return None,
    };
    Some(status(code, reason, &message))
}

/// What a user hears who may not do it.
pub(super) fn forbidden(object: &ObjectId) -> Response<AnyBody> {
    let message = format!("{} is forbidden: by the checker", object.resource);
    status(StatusCode::FORBIDDEN, "Forbidden", &message)
}

/// What a server says that does not know `sendInitialEvents`.
pub(super) fn streaming_is_unknown() -> Response<AnyBody> {
    let message = "sendInitialEvents is forbidden for watch";
    status(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
}

/// A list with its items in the opposite order.
pub(super) async fn backwards(answer: Response<ResponseBody>) -> Response<AnyBody> {
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap_or_else(|never| match never {});
    let bytes = bytes.to_bytes();
    let turned = serde_json::from_slice::<Value>(&bytes)
        .ok()
        .map(|mut list| {
            if let Some(items) = list["items"].as_array_mut() {
                items.reverse();
            }
            Bytes::from(list.to_string())
        });
    let mut answer = Response::from_parts(parts, full(turned.unwrap_or(bytes)));
    answer.headers_mut().remove(header::CONTENT_LENGTH);
    answer
}

fn status(code: StatusCode, reason: &str, message: &str) -> Response<AnyBody> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "code": code.as_u16(),
        "message": message,
    });
    let mut answer = response(code, status.to_string().into());
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}

fn response(code: StatusCode, body: Bytes) -> Response<AnyBody> {
    let mut answer = Response::new(full(body));
    *answer.status_mut() = code;
    answer
}

fn full(bytes: Bytes) -> AnyBody {
    Full::from(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}
