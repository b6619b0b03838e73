//! Who makes what.

use serde_json::Value;

use super::step::{
    Around, CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, Kind, POD, Plan, REPLICA_SET, REVISION,
    STATEFUL_SET,
};
use super::{cron_jobs, daemon_sets, deployments, jobs, replica_sets, stateful_sets};
use crate::fate::Workload;

/// Who makes something: their objects, what they make, and what they do about it.
pub(super) struct Maker {
    pub(super) workload: Workload,
    pub(super) kind: Kind,
    pub(super) makes: &'static [Kind],
    pub(super) sees: Sees,
    pub(super) plan: fn(&Value, &Around<'_>) -> Plan,
}

/// What a maker looks at beside what it has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sees {
    Nothing,
    Claims,
    Nodes,
}

pub(super) const MAKERS: [Maker; 6] = [
    Maker {
        workload: Workload::ReplicaSets,
        kind: REPLICA_SET,
        makes: &[POD],
        sees: Sees::Nothing,
        plan: |object, around| replica_sets::plan(object, around.own, around.now),
    },
    Maker {
        workload: Workload::StatefulSets,
        kind: STATEFUL_SET,
        makes: &[POD, REVISION],
        sees: Sees::Claims,
        plan: stateful_sets::plan,
    },
    Maker {
        workload: Workload::DaemonSets,
        kind: DAEMON_SET,
        makes: &[POD, REVISION],
        sees: Sees::Nodes,
        plan: daemon_sets::plan,
    },
    Maker {
        workload: Workload::Jobs,
        kind: JOB,
        makes: &[POD],
        sees: Sees::Nothing,
        plan: jobs::plan,
    },
    Maker {
        workload: Workload::Deployments,
        kind: DEPLOYMENT,
        makes: &[REPLICA_SET],
        sees: Sees::Nothing,
        plan: |object, around| deployments::plan(object, around.own, around.now),
    },
    Maker {
        workload: Workload::CronJobs,
        kind: CRON_JOB,
        makes: &[JOB],
        sees: Sees::Nothing,
        plan: cron_jobs::plan,
    },
];
