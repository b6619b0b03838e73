use bytes::Bytes;
use http::Method;

use super::Query;
use crate::access::Requester;

/// What a request says, its body read.
pub(super) struct Incoming {
    pub(super) method: Method,
    pub(super) query: Query,
    pub(super) requester: Requester,
    pub(super) user_agent: String,
    pub(super) accept: String,
    pub(super) content_type: String,
    /// Whether a form on a web page can have sent it.
    pub(super) may_be_form: bool,
    pub(super) body: Bytes,
    /// Whether it came in over a socket, and not from a program that steps through paused time.
    pub(super) from_outside: bool,
}

// === impl Incoming ===

impl Incoming {
    /// The media type of the body, without parameters.
    pub(super) fn media_type(&self) -> String {
        let media_type = self.content_type.split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    }
}
