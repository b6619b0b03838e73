//! The types that pods are not made of.

use super::super::checks::Check;
use super::super::{networking, policies, services, storage, webhooks, workloads};
use super::{Special, both, members, rule};
use crate::registry::forms;

use Check::{
    Address, Between, Count, Form, Labels, Needed, NeededList, Nothing, OneOf, Port, PortOrName,
    PortOrZero, QualifiedName, Unseen,
};

const POSITIVE: &str = "must be greater than 0";

const DAY: &str = "must be greater than 0 and less than 86400";

const POSITIVE_PART: &str = "must be greater than zero";

const AUTOSCALER: &[(&str, &[Check])] = &[("minReplicas", &[]), ("maxReplicas", &[])];

/// The types of what makes pods and counts them.
pub(super) static WORKLOADS: [Special; 18] = [
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
            // The server does not look at it either.
            ("template", &[Unseen]),
            ("replicas", &[Count]),
            ("minReadySeconds", &[Count]),
            ("revisionHistoryLimit", &[Count]),
        ],
    ),
    members("apps.v1.StatefulSetUpdateStrategy", &[("type", &[Nothing])]),
    members(
        "autoscaling.v2.HPAScalingPolicy",
        &[
            ("type", &[]),
            ("value", &[Between(1, i64::MAX, POSITIVE_PART)]),
            (
                "periodSeconds",
                &[
                    Between(1, i64::MAX, POSITIVE_PART),
                    Between(i64::MIN, 1800, "must be less than or equal to 1800"),
                ],
            ),
        ],
    ),
    both(
        "autoscaling.v2.HPAScalingRules",
        workloads::scaling_rules,
        &[(
            "stabilizationWindowSeconds",
            &[
                Between(0, i64::MAX, "must be greater than or equal to zero"),
                Between(i64::MIN, 3600, "must be less than or equal to 3600"),
            ],
        )],
    ),
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
pub(super) static NETWORKS: [Special; 20] = [
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
            (
                "trafficDistribution",
                &[OneOf(&["PreferClose", "PreferSameZone", "PreferSameNode"])],
            ),
        ],
    ),
    members(
        "discovery.v1.Endpoint",
        &[(
            "addresses",
            &[NeededList("must contain at least 1 address")],
        )],
    ),
    members(
        "discovery.v1.EndpointPort",
        &[("port", &[Nothing]), ("appProtocol", &[QualifiedName])],
    ),
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
        &[("name", &[Needed(""), Form(forms::label)])],
    ),
    rule("networking.v1.IngressRule", networking::rule),
    both(
        "networking.v1.IngressSpec",
        networking::ingress,
        &[
            ("defaultBackend", &[]),
            ("rules", &[]),
            ("tls", &[]),
            ("ingressClassName", &[Form(forms::subdomain)]),
        ],
    ),
    both(
        "networking.v1.IngressTLS",
        networking::secured,
        &[("secretName", &[Form(forms::subdomain)])],
    ),
    both(
        "networking.v1.IPBlock",
        policies::block,
        &[("cidr", &[Nothing])],
    ),
    rule("networking.v1.NetworkPolicyPeer", policies::peer),
    both(
        "networking.v1.NetworkPolicyPort",
        policies::port,
        &[("port", &[Nothing]), ("protocol", &[Nothing])],
    ),
    both(
        "networking.v1.NetworkPolicySpec",
        policies::spec,
        &[
            ("podSelector", &[]),
            ("ingress", &[]),
            ("egress", &[]),
            ("policyTypes", &[Nothing]),
        ],
    ),
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
