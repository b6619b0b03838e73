//! The types that pods are made of.

use super::super::checks::Check;
use super::super::{containers, dns, pods, security, selectors, storage};
use super::{Special, both, members, rule};
use crate::registry::forms;

use Check::{
    Address, AnyForm, Between, Count, Form, Labels, Needed, NeededList, NeededPort, Nothing, OneOf,
    Port, PortOrName, PortOrZero, QualifiedName,
};

const POSITIVE: &str = "must be greater than 0";

const POSITIVE_SKEW: &str = "must be greater than zero";

const DEADLINE: &str = "must be between 1 and 2147483647, inclusive";

const WEIGHT: &str = "must be in the range 1-100";

const CONTAINER: &[(&str, &[Check])] = &[
    ("name", &[Needed(""), Form(forms::label)]),
    ("image", &[Needed(""), Form(forms::unpadded)]),
    (
        "terminationMessagePolicy",
        &[OneOf(&["File", "FallbackToLogsOnError"])],
    ),
    ("ports", &[]),
    ("env", &[]),
    ("envFrom", &[]),
    ("volumeMounts", &[]),
    ("volumeDevices", &[]),
    ("imagePullPolicy", &[]),
    ("resources", &[]),
    ("restartPolicy", &[OneOf(&["Always", "Never", "OnFailure"])]),
];

const KEY: &[(&str, &[Check])] = &[
    ("name", &[AnyForm(forms::subdomain)]),
    ("key", &[Needed(""), Form(forms::config_key)]),
];

const NAMED_SOURCE: &[(&str, &[Check])] = &[("name", &[Needed(""), Form(forms::subdomain)])];

/// The types of pods.
pub(super) static PODS: [Special; 32] = [
    both(
        "core.v1.AppArmorProfile",
        security::app_armor,
        &[("type", &[Nothing])],
    ),
    members("core.v1.ConfigMapEnvSource", NAMED_SOURCE),
    members("core.v1.ConfigMapKeySelector", KEY),
    members("core.v1.ConfigMapVolumeSource", &[("name", &[Needed("")])]),
    both("core.v1.Container", containers::container, CONTAINER),
    members(
        "core.v1.ContainerPort",
        &[
            ("name", &[Form(forms::port_name)]),
            ("containerPort", &[NeededPort]),
            ("hostPort", &[PortOrZero]),
        ],
    ),
    members(
        "core.v1.ContainerResizePolicy",
        &[("resourceName", &[Nothing]), ("restartPolicy", &[Nothing])],
    ),
    both(
        "core.v1.EnvVar",
        containers::variable,
        &[("name", &[Needed(""), Form(forms::env_name)])],
    ),
    members("core.v1.EphemeralContainer", CONTAINER),
    members("core.v1.ExecAction", &[("command", &[NeededList("")])]),
    members("core.v1.GRPCAction", &[("port", &[Port])]),
    both(
        "core.v1.HTTPGetAction",
        containers::http_get,
        &[
            ("path", &[Needed("")]),
            ("port", &[PortOrName]),
            ("httpHeaders", &[]),
            ("scheme", &[OneOf(&["HTTP", "HTTPS"])]),
        ],
    ),
    members(
        "core.v1.HTTPHeader",
        &[("name", &[Nothing]), ("value", &[Nothing])],
    ),
    members("core.v1.HostAlias", &[("ip", &[Address])]),
    rule("core.v1.LifecycleHandler", containers::handler),
    members(
        "core.v1.PodAffinityTerm",
        &[("topologyKey", &[Needed("can not be empty")])],
    ),
    members(
        "core.v1.PodReadinessGate",
        &[("conditionType", &[QualifiedName])],
    ),
    members("core.v1.PodSchedulingGate", &[("name", &[QualifiedName])]),
    both(
        "core.v1.PodSpec",
        pods::spec,
        &[
            ("volumes", &[]),
            ("containers", &[NeededList("")]),
            ("initContainers", &[]),
            ("ephemeralContainers", &[]),
            ("restartPolicy", &[OneOf(&["Always", "OnFailure", "Never"])]),
            (
                "dnsPolicy",
                &[OneOf(&[
                    "ClusterFirstWithHostNet",
                    "ClusterFirst",
                    "Default",
                    "None",
                ])],
            ),
            ("nodeSelector", &[Labels]),
            ("securityContext", &[]),
            ("affinity", &[]),
            ("serviceAccountName", &[Form(forms::subdomain)]),
            ("nodeName", &[Form(forms::subdomain)]),
            (
                "activeDeadlineSeconds",
                &[Between(1, 2_147_483_647, DEADLINE)],
            ),
            ("hostname", &[Form(forms::label)]),
            ("subdomain", &[Form(forms::label)]),
            ("priorityClassName", &[Form(forms::subdomain)]),
            ("runtimeClassName", &[Form(forms::subdomain)]),
            (
                "preemptionPolicy",
                &[OneOf(&["PreemptLowerPriority", "Never"])],
            ),
        ],
    ),
    rule("core.v1.PodDNSConfig", dns::config),
    members("core.v1.PodOS", &[("name", &[Nothing])]),
    rule("core.v1.PodSecurityContext", security::of_pods),
    rule("core.v1.PodTemplateSpec", pods::template),
    members(
        "core.v1.PreferredSchedulingTerm",
        &[("weight", &[Between(1, 100, WEIGHT)])],
    ),
    both(
        "core.v1.Probe",
        containers::handler,
        &[
            ("initialDelaySeconds", &[Count]),
            ("timeoutSeconds", &[Count]),
            ("periodSeconds", &[Count]),
            ("successThreshold", &[Count]),
            ("failureThreshold", &[Count]),
            (
                "terminationGracePeriodSeconds",
                &[Between(1, i64::MAX, POSITIVE)],
            ),
        ],
    ),
    rule("core.v1.ResourceRequirements", containers::resources),
    both(
        "core.v1.SeccompProfile",
        security::seccomp,
        &[("type", &[Nothing])],
    ),
    members("core.v1.SecretEnvSource", NAMED_SOURCE),
    members("core.v1.SecretKeySelector", KEY),
    members(
        "core.v1.SecretVolumeSource",
        &[("secretName", &[Needed("")])],
    ),
    rule("core.v1.SecurityContext", security::of_containers),
    members(
        "core.v1.Sysctl",
        &[("name", &[Nothing]), ("value", &[Nothing])],
    ),
];

/// More types of pods, and selectors.
pub(super) static SCHEDULING: [Special; 11] = [
    members("core.v1.TCPSocketAction", &[("port", &[PortOrName])]),
    members(
        "core.v1.Taint",
        &[
            ("key", &[QualifiedName]),
            (
                "effect",
                &[
                    Needed(""),
                    OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"]),
                ],
            ),
        ],
    ),
    both(
        "core.v1.Toleration",
        pods::toleration,
        &[
            ("operator", &[Nothing]),
            (
                "effect",
                &[OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"])],
            ),
        ],
    ),
    members(
        "core.v1.TopologySpreadConstraint",
        &[
            ("maxSkew", &[Between(1, i64::MAX, POSITIVE_SKEW)]),
            ("topologyKey", &[Needed("can not be empty")]),
            ("whenUnsatisfiable", &[]),
        ],
    ),
    both(
        "core.v1.Volume",
        storage::volume,
        &[("name", &[Needed(""), Form(forms::label)])],
    ),
    // Whether a mount fits depends on the pod.
    members(
        "core.v1.VolumeMount",
        &[
            ("name", &[Nothing]),
            ("mountPath", &[Nothing]),
            ("mountPropagation", &[Nothing]),
        ],
    ),
    members(
        "core.v1.WeightedPodAffinityTerm",
        &[("weight", &[Between(1, 100, WEIGHT)])],
    ),
    members(
        "core.v1.NodeSelector",
        &[(
            "nodeSelectorTerms",
            &[NeededList("must have at least one node selector term")],
        )],
    ),
    both(
        "core.v1.NodeSelectorRequirement",
        selectors::of_nodes,
        &[("key", &[QualifiedName]), ("operator", &[Nothing])],
    ),
    members(
        "meta.v1.LabelSelector",
        &[("matchLabels", &[Labels]), ("matchExpressions", &[])],
    ),
    both(
        "meta.v1.LabelSelectorRequirement",
        selectors::of_labels,
        &[("key", &[QualifiedName]), ("operator", &[Nothing])],
    ),
];
