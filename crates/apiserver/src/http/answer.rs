use std::convert::Infallible;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::media::Media;
use crate::status::Status;
use crate::storage::Object;

/// A body: whole, or a stream of watch events.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// An answer before it becomes bytes.
#[derive(Debug)]
pub(crate) enum Answer {
    Json {
        code: u16,
        body: Value,
        warnings: Vec<String>,
    },
    /// An object as it is stored: it may be encoded already.
    Object {
        code: u16,
        object: Object,
        warnings: Vec<String>,
    },
    /// A list that is written already.
    List { text: Bytes, warnings: Vec<String> },
    /// A JSON document of a media type of its own.
    Document {
        content_type: &'static str,
        body: Value,
    },
    /// A document that is not JSON.
    Bytes {
        content_type: &'static str,
        bytes: Bytes,
    },
    Text {
        code: u16,
        text: String,
        retry_after: Option<u32>,
    },
    /// Events, one JSON value on a line.
    Events(Body),
}

// === impl Answer ===

impl Answer {
    pub(crate) fn ok(body: Value) -> Self {
        Self::Json {
            code: 200,
            body,
            warnings: Vec::new(),
        }
    }

    /// Adds a warning in front of the others. Only answers that show objects or a status carry any.
    pub(crate) fn warn(&mut self, warning: String) {
        match self {
            Self::Json { warnings, .. }
            | Self::Object { warnings, .. }
            | Self::List { warnings, .. } => warnings.insert(0, warning),
            Self::Document { .. } | Self::Bytes { .. } | Self::Text { .. } | Self::Events(_) => {}
        }
    }

    /// What a mux answers that serves nothing under the path.
    pub(crate) fn page_not_found() -> Self {
        Self::Text {
            code: 404,
            text: "404 page not found\n".to_owned(),
            retry_after: None,
        }
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Json { code, .. } | Self::Object { code, .. } | Self::Text { code, .. } => *code,
            Self::List { .. } | Self::Document { .. } | Self::Bytes { .. } | Self::Events(_) => 200,
        }
    }

    /// Turns the answer into bytes. What has no media type of its own is written in `media`.
    pub(crate) fn into_response(self, media: Media) -> Response<Body> {
        let code = StatusCode::from_u16(self.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (content_type, retry_after, warnings, body) = match self {
            Self::Json {
                code: _,
                body,
                warnings,
            } => {
                let retry = body["details"]["retryAfterSeconds"].as_u64();
                let retry = retry.filter(|_| body["kind"] == "Status");
                let text = media.write(&body);
                (media.content_type(), retry, warnings, whole(text))
            }
            Self::Object {
                code: _,
                object,
                warnings,
            } => {
                let body = match media {
                    Media::Json => whole(object.text().whole().clone()),
                    Media::Yaml => whole(media.write(&object)),
                };
                (media.content_type(), None, warnings, body)
            }
            Self::List { text, warnings } => {
                (Media::Json.content_type(), None, warnings, whole(text))
            }
            Self::Text {
                code: _,
                text,
                retry_after,
            } => (
                "text/plain; charset=utf-8",
                retry_after.map(u64::from),
                Vec::new(),
                whole(text),
            ),
            Self::Document { content_type, body } => {
                (content_type, None, Vec::new(), whole(body.to_string()))
            }
            Self::Bytes {
                content_type,
                bytes,
            } => (content_type, None, Vec::new(), whole(bytes)),
            Self::Events(body) => ("application/json", None, Vec::new(), body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        for warning in warnings {
            let text = format!("299 - {}", quoted(&warning));
            if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::Json {
            code: status.code,
            body: status.body(),
            warnings: status.warnings,
        }
    }
}

fn whole(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

/// A quoted string of HTTP: backslashes and quotation marks are escaped, line breaks are not allowed.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace(['\n', '\r'], " ");
    format!("\"{escaped}\"")
}
