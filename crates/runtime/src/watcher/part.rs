//! A part of a collection, which the server selects if it can.

use homeostat_core::shard::Share;
use http::{Request, StatusCode, Uri};
use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// How many ranges are asked for at the most. Each takes about 90 bytes of the address. More than this are not selected by
/// the server, so that the address stays below the 64 KiB that clients and servers take.
const RANGES: usize = 512;

/// Which part of a collection is asked for, with `shardSelector` (KEP-5866).
///
/// A server that does not know the parameter ignores it and shows all objects, so whoever follows must leave out what it does
/// not want. One that refuses it is asked for all objects.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The parameter, ready for an address; empty if all objects are asked for.
    query: Arc<str>,
    server: Arc<Server>,
}

/// What is known of the server.
#[derive(Debug, Default)]
pub(crate) struct Server {
    /// Whether a list that was asked for a part has not said that it is one.
    ignores: AtomicBool,
    refuses: AtomicBool,
}

// === impl Part ===

impl Part {
    /// What a member owns.
    pub(crate) fn of(share: &Share, server: Arc<Server>) -> Self {
        let ranges = share.ranges();
        let mut query = String::new();
        let is_all = share.members().len() == 1;
        if !is_all && !ranges.is_empty() && ranges.len() <= RANGES {
            query.push_str("shardSelector=");
            for (index, range) in ranges.iter().enumerate() {
                let or = if index == 0 { "" } else { "%7C%7C" };
                let end = u128::from(range.last) + 1;
                // A text takes all that is written.
                let _written = write!(
                    query,
                    "{or}shardRange(object.metadata.uid,%27{:#018x}%27,%27{end:#018x}%27)",
                    range.start
                );
            }
        }
        Self {
            query: query.into(),
            server,
        }
    }

    /// Whether it is the same part.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.query == other.query
    }

    /// The same request for this part; `None` if all objects are asked for.
    pub(super) fn select(&self, request: &Request<Vec<u8>>) -> Option<Request<Vec<u8>>> {
        if self.query.is_empty() || self.server.refuses.load(Ordering::Relaxed) {
            return None;
        }
        let uri = request.uri();
        let joint = if uri.query().is_none() { '?' } else { '&' };
        let uri: Uri = format!("{uri}{joint}{}", self.query).parse().ok()?;
        let mut request = request.clone();
        *request.uri_mut() = uri;
        Some(request)
    }

    /// Takes in how a request for a part was answered. Whether the server does not want to be asked so.
    pub(super) fn is_refused(&self, status: StatusCode) -> bool {
        let refused = matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::URI_TOO_LONG
                | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        );
        if refused && !self.server.refuses.swap(true, Ordering::Relaxed) {
            tracing::info!(
                %status,
                "the server does not select by shards: all objects are watched, and those of others are left out here"
            );
        }
        refused
    }

    /// Takes in whether a list says that it is of a part.
    pub(super) fn note(&self, is_part: bool) {
        if !self.query.is_empty() {
            self.server.ignores.store(!is_part, Ordering::Relaxed);
        }
    }
}

// === impl Server ===

impl Server {
    /// Whether another part is worth being asked for. Before the first one nobody knows.
    pub(crate) fn may_select(&self) -> bool {
        let known = [&self.ignores, &self.refuses];
        known.iter().all(|one| !one.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::Part;
    use homeostat_core::shard::{Share, Slots};
    use http::{Request, StatusCode};
    use std::sync::Arc;

    fn part(slots: u32) -> Part {
        let slots = Slots::new(slots).unwrap();
        Part::of(&Share::new(slots, 1, "a", ["b"]), Arc::default())
    }

    #[test]
    fn ranges_are_a_parameter() {
        let request = Request::new(Vec::new());
        let part = part(2);
        let query = part
            .select(&request)
            .unwrap()
            .uri()
            .query()
            .unwrap()
            .to_owned();
        let halves = [
            "%270x0000000000000000%27,%270x8000000000000000%27",
            "%270x8000000000000000%27,%270x10000000000000000%27",
        ];
        assert!(
            halves.iter().any(
                |half| query == format!("shardSelector=shardRange(object.metadata.uid,{half})")
            ),
            "{query}"
        );
    }

    #[test]
    fn an_address_is_never_too_long() {
        let request = Request::builder().uri("/api/v1/pods?limit=500");
        let request = request.body(Vec::new()).unwrap();
        let longest = [1024, 2048, 4096].map(|slots| {
            let selected = part(slots).select(&request);
            selected.map(|request| request.uri().to_string().len())
        });
        assert!(
            longest[0].is_some_and(|length| length > 10_000),
            "{longest:?}"
        );
        assert!(
            longest.iter().flatten().all(|length| *length < 60_000),
            "{longest:?}"
        );
        assert_eq!(
            longest[2], None,
            "the server is not asked to select so finely"
        );
    }

    #[test]
    fn who_is_alone_asks_for_all() {
        let share = Share::new(Slots::default(), 1, "a", []);
        let part = Part::of(&share, Arc::default());
        assert!(part.select(&Request::new(Vec::new())).is_none());
    }

    #[test]
    fn a_server_that_refuses_is_asked_for_all() {
        let part = part(1024);
        let request = Request::new(Vec::new());
        assert!(!part.is_refused(StatusCode::GONE) && part.select(&request).is_some());
        assert!(part.is_refused(StatusCode::URI_TOO_LONG) && part.select(&request).is_none());
        assert!(!part.server.may_select());
    }

    #[test]
    fn a_server_that_ignores_it_is_not_asked_for_another_part() {
        let part = part(1024);
        assert!(part.server.may_select());
        part.note(true);
        assert!(part.server.may_select());
        part.note(false);
        assert!(!part.server.may_select());
    }
}
