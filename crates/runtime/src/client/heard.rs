//! What a run hears of the server: which of its requests are under way, and how the last one ended.

use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use std::time::Duration;
use tokio::time::Instant;

/// What a run has heard of the server.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pending: Vec<Pending>,
    next: u32,
    last: Option<Ending>,
}

/// A request that is under way.
#[derive(Debug)]
struct Pending {
    id: u32,
    method: Method,
    uri: Uri,
    since: Instant,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) at: Instant,
    pub(crate) how: How,
}

/// Whether a server answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Answered,
    /// It was not reached, or is not able to do its work now; and when it wants to be asked again.
    Unavailable(Option<Duration>),
}

/// A figure that is out of all proportion would stop an object for good.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);

// === impl Heard ===

impl Heard {
    /// Takes note of a request that is about to be sent, and gives it a number.
    pub(super) fn depart<B>(&mut self, request: &Request<B>) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.pending.push(Pending {
            id: self.next,
            method: request.method().clone(),
            uri: request.uri().clone(),
            since: Instant::now(),
        });
        self.next
    }

    /// Takes note that a request is over.
    pub(super) fn arrive(&mut self, id: u32) {
        self.pending.retain(|pending| pending.id != id);
    }

    /// Takes note of how a request ended, or how it goes so far.
    pub(super) fn note(&mut self, how: How) {
        let at = Instant::now();
        self.last = Some(Ending { at, how });
    }

    /// How the last request ended. If the run took too long, one that is still under way was waited for in vain.
    pub(super) fn last(&self, timed_out: bool) -> Option<Ending> {
        if timed_out && !self.pending.is_empty() {
            return Some(Ending {
                at: Instant::now(),
                how: How::Unavailable(None),
            });
        }
        self.last
    }

    /// What is waited for, for people.
    pub(super) fn waits(&self) -> Vec<String> {
        let waits = self.pending.iter().map(|pending| {
            let Pending {
                method, uri, since, ..
            } = pending;
            format!("{method} {} for {}s", uri.path(), since.elapsed().as_secs())
        });
        waits.collect()
    }
}

// === impl How ===

impl How {
    /// What an answer says of the server.
    pub(super) fn of(path: &str, status: StatusCode, headers: &HeaderMap) -> Self {
        // An eviction is refused with 429 when a budget forbids it, however well the server is.
        if !is_unavailable(status.as_u16()) || path.ends_with("/eviction") {
            return Self::Answered;
        }
        let text = headers.get(header::RETRY_AFTER).map(|value| value.to_str());
        let seconds = text.and_then(|text| text.ok()?.parse().ok());
        Self::Unavailable(
            seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER)),
        )
    }
}

/// Whether a status says that a server, or what stands before it, is not able to do its work now.
pub(crate) fn is_unavailable(code: u16) -> bool {
    matches!(code, 429 | 502 | 503 | 504)
}

#[cfg(test)]
mod tests {
    use super::How;
    use http::{HeaderMap, StatusCode, header};
    use std::time::Duration;

    #[test]
    fn what_an_answer_says_of_the_server() {
        let unavailable = |seconds: u64| How::Unavailable(Some(Duration::from_secs(seconds)));
        for (path, code, retry_after, expected) in [
            ("/api/v1/pods/a", 200, None, How::Answered),
            ("/api/v1/pods/a", 409, None, How::Answered),
            ("/api/v1/pods/a", 500, None, How::Answered),
            ("/api/v1/pods/a", 503, None, How::Unavailable(None)),
            ("/api/v1/pods/a", 502, Some("soon"), How::Unavailable(None)),
            ("/api/v1/pods/a", 429, Some("7"), unavailable(7)),
            ("/api/v1/pods/a", 429, Some("999999999"), unavailable(3600)),
            ("/api/v1/pods/a/eviction", 429, Some("7"), How::Answered),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = retry_after {
                headers.insert(header::RETRY_AFTER, value.parse().unwrap());
            }
            let status = StatusCode::from_u16(code).unwrap();
            assert_eq!(How::of(path, status, &headers), expected, "{path} {code}");
        }
    }
}
