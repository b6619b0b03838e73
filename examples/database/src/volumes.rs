//! How large the volumes are to be, and which of them is not needed any more. Pure functions of the database and of the
//! claims that are there.

use crate::{Database, children, quantity::bytes};
use k8s_openapi::{
    api::core::v1::PersistentVolumeClaim, apimachinery::pkg::api::resource::Quantity,
};
use kube::ResourceExt;
use std::collections::BTreeMap;

/// What a claim asks for, or has.
const STORAGE: &str = "storage";

/// The claims of a database, by the number of the member.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Volumes(BTreeMap<i32, PersistentVolumeClaim>);

/// What is said about the size of the volumes.
#[derive(Debug, Clone, PartialEq)]
pub enum Sizes {
    /// All have the wanted size.
    Right,
    /// Some of them are being enlarged.
    Growing,
    /// Some of them are larger already, but their file systems are not, because no pod runs with them.
    AwaitingPod,
    /// They have this size, and a smaller one is wanted.
    TooLarge(Quantity),
}

/// What is done about a volume that is not needed any more. The number is that of its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Every volume is needed.
    Nothing,
    /// The member stays until a backup is made.
    AwaitingBackup(i32),
    /// The same, and the backup has failed. It will be made again.
    BackupFailed(i32),
    /// There is a backup: the member can go, and then its volume.
    BackedUp(i32),
}

// === impl Volumes ===

impl Volumes {
    /// Takes the claims of a database out of those of its namespace that have its labels.
    #[must_use]
    pub fn new(db: &Database, claims: Vec<PersistentVolumeClaim>) -> Self {
        let numbered = claims
            .into_iter()
            .filter_map(|claim| Some((children::ordinal(db, &claim.name_any())?, claim)));
        Self(numbered.collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The volume that goes next because there are more than members: the last one.
    #[must_use]
    pub fn surplus(&self, db: &Database) -> Option<(i32, &PersistentVolumeClaim)> {
        let (ordinal, claim) = self.0.last_key_value()?;
        (*ordinal >= db.spec.replicas).then_some((*ordinal, claim))
    }

    /// The size to ask for: the wanted one, or the present one if that is larger, because a volume cannot shrink. It is
    /// the same for all members, also for new ones: each has all data.
    #[must_use]
    pub fn size<'a>(&'a self, db: &'a Database) -> &'a Quantity {
        let present = self.0.values().filter_map(request);
        let all = present.chain([&db.spec.storage]);
        all.max_by_key(|size| bytes(size))
            .unwrap_or(&db.spec.storage)
    }

    /// The claim of a member as it should be now.
    #[must_use]
    pub fn claim(&self, db: &Database, ordinal: i32) -> PersistentVolumeClaim {
        let there = self.0.get(&ordinal);
        // A claim can only be enlarged when it has a volume. Until then it stays as it is.
        let kept = there.filter(|claim| !is_bound(claim)).and_then(request);
        children::claim(db, ordinal, kept.unwrap_or_else(|| self.size(db)))
    }

    /// How the sizes of the members' volumes are.
    #[must_use]
    pub fn sizes(&self, db: &Database) -> Sizes {
        let size = self.size(db);
        if bytes(size) > bytes(&db.spec.storage) {
            return Sizes::TooLarge(size.clone());
        }
        let small = self
            .members(db)
            .filter(|claim| claim.and_then(capacity).and_then(bytes) < bytes(size));
        let small: Vec<_> = small.collect();
        let waits = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| has_condition(claim, "FileSystemResizePending"))
        };
        if small.is_empty() {
            Sizes::Right
        } else if small.iter().copied().all(waits) {
            Sizes::AwaitingPod
        } else {
            Sizes::Growing
        }
    }

    /// The size that each member's volume has at least.
    #[must_use]
    pub fn capacity(&self, db: &Database) -> Option<Quantity> {
        let capacities: Option<Vec<&Quantity>> = self
            .members(db)
            .map(|claim| claim.and_then(capacity))
            .collect();
        let smallest = capacities?.into_iter().min_by_key(|size| bytes(size));
        smallest.cloned()
    }

    /// The claim of each member; none for one that is not there yet.
    fn members(&self, db: &Database) -> impl Iterator<Item = Option<&PersistentVolumeClaim>> {
        (0..db.spec.replicas).map(|ordinal| self.0.get(&ordinal))
    }
}

// === impl Removal ===

impl Removal {
    /// How many members there are to be.
    #[must_use]
    pub fn members(self, db: &Database) -> i32 {
        match self {
            Self::Nothing => db.spec.replicas,
            Self::AwaitingBackup(ordinal) | Self::BackupFailed(ordinal) => ordinal + 1,
            Self::BackedUp(ordinal) => ordinal,
        }
    }
}

fn request(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    let resources = claim.spec.as_ref()?.resources.as_ref()?;
    resources.requests.as_ref()?.get(STORAGE)
}

fn capacity(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.status.as_ref()?.capacity.as_ref()?.get(STORAGE)
}

fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let status = claim.status.as_ref();
    status.and_then(|status| status.phase.as_deref()) == Some("Bound")
}

fn has_condition(claim: &PersistentVolumeClaim, type_: &str) -> bool {
    let conditions = claim
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one.type_ == type_ && one.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A database of so many members and such a size.
    fn database(replicas: i32, storage: &str) -> Database {
        let mut db: Database = serde_saphyr::from_str(crate::SAMPLE).unwrap();
        db.spec.replicas = replicas;
        db.spec.storage = Quantity(storage.into());
        db
    }

    /// Claims that ask for the first size and have the second; without one they are not bound. `+` says that the file
    /// system is still to grow.
    fn volumes(db: &Database, claims: &[(&str, &str)]) -> Volumes {
        let claims = claims.iter().enumerate().map(|(ordinal, (asked, has))| {
            let ordinal = i32::try_from(ordinal).unwrap();
            let mut claim = children::claim(db, ordinal, &Quantity((*asked).into()));
            let capacity = has.trim_end_matches('+');
            let status = if capacity.is_empty() {
                json!({ "phase": "Pending" })
            } else if *has == capacity {
                json!({ "phase": "Bound", "capacity": { "storage": capacity } })
            } else {
                json!({
                    "phase": "Bound", "capacity": { "storage": capacity },
                    "conditions": [{ "type": "FileSystemResizePending", "status": "True" }],
                })
            };
            claim.status = serde_json::from_value(status).unwrap();
            claim
        });
        Volumes::new(db, claims.collect())
    }

    #[test]
    fn volumes_grow_and_never_shrink() {
        for (wanted, claims, asked, sizes, capacity) in [
            ("10Gi", &[][..], "10Gi", Sizes::Growing, None),
            (
                "10Gi",
                &[("10Gi", ""), ("10Gi", "")],
                "10Gi",
                Sizes::Growing,
                None,
            ),
            (
                "10Gi",
                &[("10Gi", "10Gi"), ("10240Mi", "10Gi")],
                "10Gi",
                Sizes::Right,
                Some("10Gi"),
            ),
            (
                "20Gi",
                &[("10Gi", "10Gi"), ("20Gi", "10Gi")],
                "20Gi",
                Sizes::Growing,
                Some("10Gi"),
            ),
            (
                "20Gi",
                &[("20Gi", "20Gi"), ("20Gi", "10Gi+")],
                "20Gi",
                Sizes::AwaitingPod,
                Some("10Gi"),
            ),
            (
                "20Gi",
                &[("20Gi", "10Gi"), ("20Gi", "10Gi+")],
                "20Gi",
                Sizes::Growing,
                Some("10Gi"),
            ),
            (
                "5Gi",
                &[("10Gi", "10Gi"), ("10Gi", "10Gi")],
                "10Gi",
                Sizes::TooLarge(Quantity("10Gi".into())),
                Some("10Gi"),
            ),
        ] {
            let db = database(2, wanted);
            let volumes = volumes(&db, claims);
            let what = format!("{wanted} of {claims:?}");
            assert_eq!(request(&volumes.claim(&db, 1)).unwrap().0, asked, "{what}");
            assert_eq!(volumes.sizes(&db), sizes, "{what}");
            assert_eq!(
                volumes.capacity(&db),
                capacity.map(|size: &str| Quantity(size.into())),
                "{what}"
            );
        }
        // One that has no volume yet cannot be changed.
        let db = database(1, "20Gi");
        let unbound = volumes(&db, &[("10Gi", "")]);
        assert_eq!(request(&unbound.claim(&db, 0)).unwrap().0, "10Gi");
    }

    #[test]
    fn the_last_volume_goes_first() {
        let claims = [("1Gi", "1Gi"); 3];
        for (replicas, surplus) in [(1, Some(2)), (2, Some(2)), (3, None), (4, None)] {
            let db = database(replicas, "1Gi");
            let volumes = volumes(&db, &claims);
            let found = volumes.surplus(&db).map(|(ordinal, _)| ordinal);
            assert_eq!(found, surplus, "{replicas} members");
        }
    }
}
