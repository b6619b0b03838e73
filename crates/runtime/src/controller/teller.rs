//! Who tells of reconcile loops.

use crate::{
    Identity,
    events::{Recorder, Reporter},
};
use kube::Client;

/// Who tells of reconcile loops.
pub(super) enum Teller {
    Nobody,
    /// The program, with this client.
    With(Client),
    Given(Recorder),
}

// === impl Teller ===

impl Teller {
    pub(super) fn recorder(self, identity: Option<&Identity>) -> Option<Recorder> {
        match self {
            Self::Nobody => None,
            Self::With(client) => {
                let reporter = identity.map_or_else(Reporter::default, Reporter::from);
                Some(Recorder::new(client, reporter))
            }
            Self::Given(recorder) => Some(recorder),
        }
    }
}
