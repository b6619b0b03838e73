//! The lease as an object.

use crate::{client::identity, clock};
use homeostat_core::lease::{Answer, Draft, Record as Content};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, api::PostParams};
use std::time::Duration;

/// Reads and writes a lease.
#[derive(Debug)]
pub(super) struct Record {
    leases: Api<Lease>,
    name: String,
    /// As it was last read or written. A write changes only what the election is about: labels and fields of others
    /// stay.
    known: Option<Lease>,
}

/// A name that no other life of a program has: the program's name, the host's, which is the pod's, and a random part.
pub(crate) fn unique_identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let (program, random) = (identity(), fastrand::u64(..));
    if host.is_empty() {
        format!("{program}_{random:016x}")
    } else {
        format!("{program}_{host}_{random:016x}")
    }
}

// === impl Record ===

impl Record {
    pub(super) fn new(leases: Api<Lease>, name: String) -> Self {
        Self {
            leases,
            name,
            known: None,
        }
    }

    pub(super) async fn read(&mut self) -> Result<Answer, kube::Error> {
        let Some(lease) = self.leases.get_opt(&self.name).await? else {
            self.known = None;
            return Ok(Answer::Missing);
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let record = content(lease.spec.as_ref());
        self.known = Some(lease);
        Ok(Answer::Found { version, record })
    }

    pub(super) async fn write(&mut self, draft: &Draft) -> Result<Answer, kube::Error> {
        let mut lease = self.known.clone().unwrap_or_default();
        let now = MicroTime(clock::now());
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.resource_version = draft.version.clone();
        lease.metadata.managed_fields = None;
        fill(lease.spec.get_or_insert_default(), draft, now);
        let params = PostParams::default();
        let written = if draft.version.is_some() {
            self.leases.replace(&self.name, &params, &lease).await
        } else {
            lease.metadata.uid = None;
            self.leases.create(&params, &lease).await
        };
        match written {
            Ok(lease) => {
                let version = lease.metadata.resource_version.clone().unwrap_or_default();
                self.known = Some(lease);
                Ok(Answer::Written { version })
            }
            // Both what was changed by somebody else and what exists already.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Answer::Conflict),
            Err(kube::Error::Api(status)) if status.code == 404 && draft.version.is_some() => {
                self.known = None;
                Ok(Answer::Missing)
            }
            Err(error) => Err(error),
        }
    }
}

fn content(spec: Option<&LeaseSpec>) -> Content {
    let Some(spec) = spec else {
        return Content::default();
    };
    let seconds = spec.lease_duration_seconds;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let transitions = spec.lease_transitions.unwrap_or_default();
    Content {
        holder: spec.holder_identity.clone().unwrap_or_default(),
        duration: seconds.map(Duration::from_secs),
        transitions: transitions.try_into().unwrap_or_default(),
    }
}

fn fill(spec: &mut LeaseSpec, draft: &Draft, now: MicroTime) {
    let Draft {
        version: _,
        record:
            Content {
                holder,
                duration,
                transitions,
            },
        acquired,
    } = draft;
    spec.holder_identity = Some(holder.clone());
    // Whole seconds, and never fewer than meant.
    let seconds =
        duration.map(|duration| duration.as_secs() + u64::from(duration.subsec_nanos() > 0));
    spec.lease_duration_seconds = seconds.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX));
    spec.lease_transitions = Some(i32::try_from(*transitions).unwrap_or(i32::MAX));
    if *acquired || spec.acquire_time.is_none() {
        spec.acquire_time = Some(now.clone());
    }
    spec.renew_time = Some(now);
}
