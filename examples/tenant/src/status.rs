//! What to tell the user. Pure functions of the tenant and of what the reconciler observed.

use crate::{Tenant, TenantStatus};
use homeostat::conditions::{self, NewCondition};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

/// The condition that says whether the tenant has all its namespaces.
pub const READY: &str = "Ready";

/// Whose a namespace is that a tenant should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is the tenant's.
    Ours,
    /// It was the tenant's, is being deleted, and will be made anew.
    Leaving,
    /// It belongs to somebody else, or to nobody that we know of.
    Taken,
}

/// The status that a tenant should have. It is the present one if there is nothing new to tell.
#[must_use]
pub fn desired(tenant: &Tenant, places: &BTreeMap<String, Place>, now: Timestamp) -> TenantStatus {
    let generation = tenant.metadata.generation;
    let mut status = tenant.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    status.namespaces = named(places, Place::Ours);
    let (leaving, taken) = (named(places, Place::Leaving), named(places, Place::Taken));
    let ready = if !taken.is_empty() {
        let message = format!(
            "These namespaces belong to somebody else: {}",
            taken.join(", ")
        );
        NewCondition::new(READY, false, "NamespaceTaken").message(&message)
    } else if !leaving.is_empty() {
        let message = format!("These namespaces are being deleted: {}", leaving.join(", "));
        NewCondition::new(READY, false, "NamespaceLeaving").message(&message)
    } else {
        NewCondition::new(READY, true, "Enclosed").message("All namespaces are as they should be")
    };
    conditions::set(
        &mut status.conditions,
        ready.observed_generation(generation),
        now,
    );
    status
}

fn named(places: &BTreeMap<String, Place>, wanted: Place) -> Vec<String> {
    let found = places.iter().filter(|(_, place)| **place == wanted);
    found.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_told() {
        let tenant: Tenant = serde_saphyr::from_str(crate::SAMPLE).unwrap();
        for (places, expected) in [
            (&[][..], "Enclosed"),
            (&[Place::Ours, Place::Ours], "Enclosed"),
            (&[Place::Ours, Place::Leaving], "NamespaceLeaving"),
            (&[Place::Taken, Place::Leaving], "NamespaceTaken"),
        ] {
            let places = places.iter().enumerate();
            let places = places
                .map(|(number, place)| (number.to_string(), *place))
                .collect();
            let status = desired(&tenant, &places, Timestamp::UNIX_EPOCH);
            let ready = conditions::get(&status.conditions, READY).unwrap();
            assert_eq!(ready.reason, expected, "{places:?}");
        }
    }
}
