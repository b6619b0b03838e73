//! What a manager has to do with other replicas: the election of a leader, and the group that shares the objects.

use super::{GRACE, Running};
use crate::{client, controller::Leading, task, term::Duty};
use futures::StreamExt;
use std::sync::Arc;
use tokio::time::timeout;
use tracing::warn;

impl Running {
    pub(super) fn start_election(&mut self) {
        match self.election.take() {
            None => drop(self.shared.duty.send_replace(Duty::Work)),
            Some(election) => {
                let (leadership, elector) = election.start();
                let traffic = Arc::clone(self.shared.watches.traffic());
                self.elector = Some(task::start(client::counted(traffic, elector.run())));
                // It is set once, here.
                let _set = self.shared.leadership.set(leadership);
            }
        }
    }

    pub(super) fn start_sharding(&mut self) {
        if let Some(sharding) = self.sharding.take() {
            let (membership, registrar) = sharding.start();
            let traffic = Arc::clone(self.shared.watches.traffic());
            self.registrar = Some(task::start(client::counted(traffic, registrar.run())));
            // It is set once, here.
            let _set = self.shared.membership.set(membership);
        }
    }

    /// What a unit is bound to that does not work on every replica.
    pub(super) fn leading(&self, is_controller: bool) -> Option<Leading> {
        let membership = self.shared.membership.get();
        if let Some(membership) = membership.filter(|_| is_controller) {
            return Some(Leading {
                term: membership.term().clone(),
                duty: membership.duty(),
                running: membership.running(),
                account: Some(membership.account()),
            });
        }
        self.shared.leadership.get().map(|leadership| Leading {
            term: leadership.term().clone(),
            duty: self.shared.duty.subscribe(),
            running: self.shared.busy.clone(),
            account: None,
        })
    }

    /// Gives the lease up, and waits until that is done, but not for long. False if it is to stop at once.
    pub(super) async fn release(&mut self) -> bool {
        self.shared.duty.send_replace(Duty::Standby);
        let Some(leadership) = self.shared.leadership.get() else {
            return true;
        };
        leadership.idle();
        let Some(elector) = self.elector.take() else {
            return true;
        };
        let mut status = leadership.watch();
        let over = async {
            // An elector that is gone has nothing to give up.
            let _gone = status.wait_for(|status| status.ended).await;
        };
        tokio::select! {
            biased;
            Some(()) = self.stops.next() => return false,
            released = timeout(GRACE, over) => {
                if released.is_err() {
                    warn!("the lease could not be given up in time: another replica leads when it is over");
                }
            }
        }
        drop(elector);
        true
    }

    /// Leaves the group, and waits until that is done, but not for long. False if it is to stop at once.
    pub(super) async fn leave(&mut self) -> bool {
        let (Some(membership), Some(registrar)) =
            (self.shared.membership.get(), self.registrar.take())
        else {
            return true;
        };
        membership.idle();
        let mut status = membership.watch();
        let over = async {
            // A registrar that is gone has nothing to give up.
            let _gone = status.wait_for(|status| status.ended).await;
        };
        tokio::select! {
            biased;
            Some(()) = self.stops.next() => return false,
            left = timeout(GRACE, over) => {
                if left.is_err() {
                    warn!("the group could not be left in time: others take over when the lease is over");
                }
            }
        }
        drop(registrar);
        true
    }
}
