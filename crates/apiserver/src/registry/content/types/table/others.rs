//! The types that pods are not made of.

use super::super::checks::Check;
use super::super::{networking, services, storage, webhooks, workloads};
use super::{Special, both, members, rule};
use crate::registry::forms;

use Check::{
    Address, Between, Count, Form, Labels, Needed, NeededList, Nothing, Port, PortOrName,
    PortOrZero, QualifiedName,
};

const POSITIVE: &str = "must be greater than 0";

const DAY: &str = "must be greater than 0 and less than 86400";

const AUTOSCALER: &[(&str, &[Check])] = &[
    ("minReplicas", &[Between(1, i64::MAX, POSITIVE)]),
    ("maxReplicas", &[Between(1, i64::MAX, POSITIVE)]),
];

/// The types of what makes pods and counts them.
pub(super) static WORKLOADS: [Special; 16] = [
    both(
        "apps.v1.DaemonSetSpec",
        workloads::daemon_set,
        &[
            ("minReadySeconds", &[Count]),
            ("revisionHistoryLimit", &[Count]),
        ],
    ),
    both(
        "apps.v1.DeploymentSpec",
        workloads::deployment,
        &[
            ("replicas", &[Count]),
            ("selector", &[]),
            ("template", &[]),
            ("strategy", &[]),
            ("minReadySeconds", &[Count]),
            ("revisionHistoryLimit", &[Count]),
            ("progressDeadlineSeconds", &[Count]),
        ],
    ),
    both(
        "apps.v1.DeploymentStrategy",
        workloads::strategy,
        &[("type", &[Nothing])],
    ),
    both(
        "apps.v1.ReplicaSetSpec",
        workloads::replica_set,
        &[("replicas", &[Count]), ("minReadySeconds", &[Count])],
    ),
    rule("apps.v1.RollingUpdateDaemonSet", workloads::rolling_daemons),
    rule("apps.v1.RollingUpdateDeployment", workloads::rolling_update),
    members(
        "apps.v1.RollingUpdateStatefulSetStrategy",
        &[("partition", &[Count])],
    ),
    both(
        "apps.v1.StatefulSetSpec",
        workloads::stateful_set,
        &[
            ("podManagementPolicy", &[Nothing]),
            ("replicas", &[Count]),
            ("minReadySeconds", &[Count]),
            ("revisionHistoryLimit", &[Count]),
        ],
    ),
    members("apps.v1.StatefulSetUpdateStrategy", &[("type", &[Nothing])]),
    both(
        "autoscaling.v1.HorizontalPodAutoscalerSpec",
        workloads::autoscaler,
        AUTOSCALER,
    ),
    both(
        "autoscaling.v2.HorizontalPodAutoscalerSpec",
        workloads::autoscaler,
        AUTOSCALER,
    ),
    members(
        "batch.v1.CronJobSpec",
        &[
            ("schedule", &[Nothing]),
            ("startingDeadlineSeconds", &[Count]),
            ("concurrencyPolicy", &[]),
            ("jobTemplate", &[]),
            ("successfulJobsHistoryLimit", &[Count]),
            ("failedJobsHistoryLimit", &[Count]),
        ],
    ),
    members(
        "batch.v1.JobSpec",
        &[
            ("parallelism", &[Count]),
            ("completions", &[Count]),
            ("activeDeadlineSeconds", &[Count]),
            ("backoffLimit", &[Count]),
            ("ttlSecondsAfterFinished", &[Count]),
            ("backoffLimitPerIndex", &[Count]),
            ("maxFailedIndexes", &[Count]),
        ],
    ),
    members(
        "batch.v1.PodFailurePolicyOnExitCodesRequirement",
        &[("operator", &[])],
    ),
    rule("policy.v1.PodDisruptionBudgetSpec", workloads::budget),
    both(
        "core.v1.ReplicationControllerSpec",
        workloads::replication_controller,
        &[
            ("minReadySeconds", &[Count]),
            ("selector", &[Labels]),
            ("replicas", &[Count]),
        ],
    ),
];

/// The types of the network.
pub(super) static NETWORKS: [Special; 15] = [
    members(
        "core.v1.ClientIPConfig",
        &[("timeoutSeconds", &[Between(1, 86_400, DAY)])],
    ),
    members("core.v1.EndpointAddress", &[("ip", &[Address])]),
    members("core.v1.EndpointPort", &[("port", &[Port])]),
    members(
        "core.v1.ServicePort",
        &[
            ("name", &[Form(forms::label)]),
            ("port", &[Port]),
            ("protocol", &[]),
            ("targetPort", &[PortOrName]),
            ("appProtocol", &[QualifiedName]),
        ],
    ),
    both(
        "core.v1.ServiceSpec",
        services::spec,
        &[
            ("ports", &[]),
            ("selector", &[Labels]),
            ("sessionAffinity", &[]),
            ("sessionAffinityConfig", &[]),
            ("externalIPs", &[]),
            ("type", &[]),
            ("externalTrafficPolicy", &[]),
            ("internalTrafficPolicy", &[]),
        ],
    ),
    members(
        "discovery.v1.Endpoint",
        &[(
            "addresses",
            &[NeededList("must contain at least 1 address")],
        )],
    ),
    members("discovery.v1.EndpointPort", &[("port", &[PortOrZero])]),
    members(
        "networking.v1.HTTPIngressRuleValue",
        &[("paths", &[NeededList("")])],
    ),
    both(
        "networking.v1.HTTPIngressPath",
        networking::path,
        &[
            ("pathType", &[Needed("pathType must be specified")]),
            ("backend", &[]),
        ],
    ),
    rule("networking.v1.IngressBackend", networking::backend),
    members(
        "networking.v1.IngressServiceBackend",
        &[("name", &[Needed("")])],
    ),
    rule("networking.v1.IngressSpec", networking::ingress),
    members("networking.v1.NetworkPolicyPort", &[("port", &[])]),
    members(
        "networking.v1.ServiceBackendPort",
        &[("number", &[PortOrZero])],
    ),
    members(
        "networking.v1.IngressClassParametersReference",
        &[
            ("kind", &[Needed("kind is required")]),
            ("name", &[Needed("name is required")]),
        ],
    ),
];

/// All other types.
pub(super) static OTHERS: [Special; 12] = [
    both(
        "admissionregistration.v1.MutatingWebhook",
        webhooks::webhook,
        webhooks::MEMBERS,
    ),
    both(
        "admissionregistration.v1.ValidatingWebhook",
        webhooks::webhook,
        webhooks::MEMBERS,
    ),
    members(
        "admissionregistration.v1.ServiceReference",
        &[
            ("name", &[Needed("service name is required")]),
            ("namespace", &[Needed("service namespace is required")]),
            ("port", &[PortOrZero]),
        ],
    ),
    rule(
        "admissionregistration.v1.WebhookClientConfig",
        webhooks::client,
    ),
    members(
        "coordination.v1.LeaseSpec",
        &[
            ("leaseDurationSeconds", &[Between(1, i64::MAX, POSITIVE)]),
            ("leaseTransitions", &[Count]),
        ],
    ),
    both(
        "core.v1.PersistentVolumeClaimSpec",
        storage::claim,
        &[
            (
                "accessModes",
                &[NeededList("at least 1 access mode is required")],
            ),
            ("selector", &[]),
            ("volumeMode", &[]),
            ("storageClassName", &[Form(forms::subdomain)]),
        ],
    ),
    both(
        "core.v1.PersistentVolumeSpec",
        storage::persistent_volume,
        &[
            ("accessModes", &[NeededList("")]),
            ("persistentVolumeReclaimPolicy", &[]),
        ],
    ),
    members("core.v1.LimitRangeItem", &[("type", &[Nothing])]),
    members(
        "core.v1.ScopedResourceSelectorRequirement",
        &[("scopeName", &[Nothing]), ("operator", &[Nothing])],
    ),
    members(
        "core.v1.TopologySelectorLabelRequirement",
        &[("key", &[QualifiedName])],
    ),
    members(
        "storage.v1.CSIStorageCapacity",
        &[("storageClassName", &[Nothing])],
    ),
    members("storage.v1.TokenRequest", &[("audience", &[Nothing])]),
];
