//! What keeps a member from joining.

use super::{Machine, Phase};
use crate::shard::{Loss, Output};

impl Machine {
    /// Members with other slots cannot divide keys with this one.
    pub(super) fn check_slots(&mut self, outputs: &mut Vec<Output>) {
        let differs = self.others.values().find(|other| {
            let slots = other.record.slots;
            other.is_alive() && slots.is_some_and(|slots| slots != self.slots.count())
        });
        let obstacle = differs.map(|other| {
            format!(
                "the member {} has {} slots, and this one {}: all members must have the same number",
                other.record.name,
                other.record.slots.unwrap_or_default(),
                self.slots.count()
            )
        });
        // Those that are members already go on, so that a wrong number in a new one harms only that.
        let waits = match &self.phase {
            Phase::In(membership) => !membership.ready,
            Phase::Out { .. } => true,
        };
        if obstacle.is_some() && waits {
            self.lose(Loss::SlotsDiffer, outputs);
        }
        self.obstacle = obstacle;
    }
}
