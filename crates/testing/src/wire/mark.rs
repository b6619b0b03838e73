//! Which request of the operator a plan is about.

use crate::{address::Address, object::ObjectId, plan::Plan};

/// What the operator asks for with a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    pub(crate) object: ObjectId,
    pub(crate) subresource: String,
    /// Whether a reconcile asks.
    pub(crate) in_run: bool,
}

/// Which request of the operator a plan is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// That of this number.
    Number(u32),
    /// The one of these that asks for this, counted from 1.
    Like(Asked, u32),
}

/// A plan that waits for its request.
#[derive(Debug)]
pub(crate) struct Armed {
    pub(crate) plan: Plan,
    pub(crate) mark: Mark,
}

impl Asked {
    fn is(&self, address: &Address, in_run: bool) -> bool {
        let Self {
            verb,
            object,
            subresource,
            in_run: wanted,
        } = self;
        *wanted == in_run
            && *verb == address.verb
            && *object == address.object
            && *subresource == address.subresource
    }
}

impl Armed {
    /// Whether this is the request. Requests that ask for the same are counted.
    pub(crate) fn meets(&mut self, number: u32, address: &Address, in_run: bool) -> bool {
        match &mut self.mark {
            Mark::Number(wanted) => *wanted == number,
            Mark::Like(asked, count) if asked.is(address, in_run) => {
                *count = count.saturating_sub(1);
                *count == 0
            }
            Mark::Like(..) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    #[test]
    fn requests_that_ask_for_the_same_are_counted() {
        let address = |uri: &str| Address::of(&Method::GET, &uri.parse().unwrap());
        let (secret, other) = ("/api/v1/namespaces/a/secrets/b", "/api/v1/pods");
        let asked = Asked {
            verb: "get",
            object: address(secret).object,
            subresource: String::new(),
            in_run: true,
        };
        let mut armed = Armed {
            plan: Plan::Nothing,
            mark: Mark::Like(asked, 2),
        };
        for (uri, in_run, expected) in [
            (secret, true, false),
            (secret, false, false),
            (other, true, false),
            (secret, true, true),
        ] {
            assert_eq!(armed.meets(7, &address(uri), in_run), expected, "{uri}");
        }
        armed.mark = Mark::Number(7);
        assert!(armed.meets(7, &address(other), false));
        assert!(!armed.meets(8, &address(other), false));
    }
}
