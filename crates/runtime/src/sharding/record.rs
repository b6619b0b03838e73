//! The leases of members as objects.

use crate::clock;
use homeostat_core::shard::{Answer, Found, Life, Record};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};
use std::{collections::BTreeMap, time::Duration};

/// Whose leases they are.
const GROUP: &str = "homeostat.dev/shards";
/// How many slots there are.
const SLOTS: &str = "homeostat.dev/slots";
/// Whether the member runs keys.
const READY: &str = "homeostat.dev/ready";
/// The members that it knows, of those that wait: pairs of a name and an epoch, as JSON.
const KNOWS: &str = "homeostat.dev/knows";

/// Reads and writes the leases of a group.
#[derive(Debug, Clone)]
pub(super) struct Records {
    leases: Api<Lease>,
    group: String,
    /// The name of the own lease.
    own: String,
}

// === impl Records ===

impl Records {
    pub(super) fn new(leases: Api<Lease>, group: String, own: String) -> Self {
        Self { leases, group, own }
    }

    /// All leases of the group, in their latest state.
    pub(super) async fn list(&self) -> Result<Answer, kube::Error> {
        let params = ListParams::default().labels(&format!("{GROUP}={}", self.group));
        let leases = self.leases.list(&params).await?;
        Ok(Answer::Listed(
            leases.items.into_iter().map(found).collect(),
        ))
    }

    /// Writes the own lease.
    pub(super) async fn write(
        &self,
        version: Option<String>,
        record: &Record,
    ) -> Result<Answer, kube::Error> {
        self.put(&self.own, version, record).await
    }

    /// Writes a lease, which must have this version, or not exist.
    pub(super) async fn put(
        &self,
        name: &str,
        version: Option<String>,
        record: &Record,
    ) -> Result<Answer, kube::Error> {
        let exists = version.is_some();
        let lease = self.lease(name, version, record);
        let params = PostParams::default();
        let written = if exists {
            self.leases.replace(name, &params, &lease).await
        } else {
            self.leases.create(&params, &lease).await
        };
        match written {
            Ok(lease) => Ok(Answer::Written {
                version: lease.metadata.resource_version.unwrap_or_default(),
            }),
            // Both what was changed by somebody else and what exists already.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Answer::Conflict),
            Err(kube::Error::Api(status)) if status.code == 404 && exists => Ok(Answer::Missing),
            Err(error) => Err(error),
        }
    }

    /// Deletes the lease of a member that is gone.
    pub(super) async fn remove(&self, name: &str, version: String) -> Result<Answer, kube::Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: Some(version),
                uid: None,
            }),
            ..DeleteParams::default()
        };
        match self.leases.delete(name, &params).await {
            Ok(_) => Ok(Answer::Removed),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Answer::Removed),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Answer::Conflict),
            Err(error) => Err(error),
        }
    }

    fn lease(&self, name: &str, version: Option<String>, record: &Record) -> Lease {
        let Record {
            name: holder,
            epoch,
            duration,
            slots,
            ready,
            knows,
        } = record;
        let mut annotations = BTreeMap::new();
        annotations.insert(READY.to_owned(), ready.to_string());
        if let Some(slots) = slots {
            annotations.insert(SLOTS.to_owned(), slots.to_string());
        }
        if !knows.is_empty() {
            let knows: Vec<_> = knows.iter().map(|life| (&life.name, life.epoch)).collect();
            let knows = serde_json::json!(knows);
            annotations.insert(KNOWS.to_owned(), knows.to_string());
        }
        // Whole seconds, and never fewer than meant.
        let seconds = duration
            .map(|duration| duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
            .map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
        Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                resource_version: version,
                labels: Some([(GROUP.to_owned(), self.group.clone())].into()),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.clone()),
                lease_duration_seconds: seconds,
                lease_transitions: Some(i32::try_from(*epoch).unwrap_or(i32::MAX)),
                renew_time: Some(MicroTime(clock::now())),
                ..LeaseSpec::default()
            }),
        }
    }
}

fn found(lease: Lease) -> Found {
    let Lease { metadata, spec } = lease;
    let annotations = metadata.annotations.unwrap_or_default();
    let text = |key: &str| annotations.get(key).map(String::as_str);
    let spec = spec.unwrap_or_default();
    let seconds = spec.lease_duration_seconds;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let epoch = spec.lease_transitions.unwrap_or_default();
    // Whatever cannot be read says that nobody is known, which is safe.
    let knows: Option<Vec<(String, u32)>> =
        text(KNOWS).and_then(|knows| serde_json::from_str(knows).ok());
    let knows = knows.unwrap_or_default().into_iter();
    Found {
        lease: metadata.name.unwrap_or_default(),
        version: metadata.resource_version.unwrap_or_default(),
        record: Record {
            name: spec.holder_identity.unwrap_or_default(),
            epoch: epoch.try_into().unwrap_or_default(),
            duration: seconds.map(Duration::from_secs),
            slots: text(SLOTS).and_then(|slots| slots.parse().ok()),
            ready: text(READY) == Some("true"),
            knows: knows.map(|(name, epoch)| Life { name, epoch }).collect(),
        },
    }
}
