//! The usual questions about objects.

pub use super::Condition;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{Pod, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::Resource;

/// A text in a condition. Which of them are optional depends on the version of Kubernetes that the
/// program chose for `k8s-openapi`: in a `DeploymentCondition` of 1.37 all are.
trait Text {
    fn text(&self) -> Option<&str>;
}

impl Text for String {
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl Text for Option<String> {
    fn text(&self) -> Option<&str> {
        self.as_deref()
    }
}

/// See [`Condition::not`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Not<A>(pub(super) A);

/// See [`Condition::and`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct And<A, B>(pub(super) A, pub(super) B);

/// See [`Condition::or`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Or<A, B>(pub(super) A, pub(super) B);

impl<K, A: Condition<K>> Condition<K> for Not<A> {
    fn matches_object(&self, obj: Option<&K>) -> bool {
        !self.0.matches_object(obj)
    }
}

impl<K, A: Condition<K>, B: Condition<K>> Condition<K> for And<A, B> {
    fn matches_object(&self, obj: Option<&K>) -> bool {
        let Self(first, second) = self;
        first.matches_object(obj) && second.matches_object(obj)
    }
}

impl<K, A: Condition<K>, B: Condition<K>> Condition<K> for Or<A, B> {
    fn matches_object(&self, obj: Option<&K>) -> bool {
        let Self(first, second) = self;
        first.matches_object(obj) || second.matches_object(obj)
    }
}

/// The object with this uid is gone. Another one of the same name may have taken its place.
#[must_use]
pub fn is_deleted<K: Resource>(uid: &str) -> impl Condition<K> {
    move |obj: Option<&K>| obj.is_none_or(|obj| obj.meta().uid.as_deref() != Some(uid))
}

/// The object exists.
#[must_use]
pub fn is_created<K: Resource>() -> impl Condition<K> {
    |obj: Option<&K>| obj.is_some()
}

/// The names of a kind are accepted and it is served: `Established` is `True`.
#[must_use]
pub fn is_crd_established() -> impl Condition<CustomResourceDefinition> {
    |crd: Option<&CustomResourceDefinition>| {
        let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
        let established = (Some("Established"), Some("True"));
        conditions
            .into_iter()
            .flatten()
            .any(|condition| (condition.type_.text(), condition.status.text()) == established)
    }
}

/// All containers of the pod were started: its phase is `Running`.
#[must_use]
pub fn is_pod_running() -> impl Condition<Pod> {
    |pod: Option<&Pod>| {
        let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
        phase == Some("Running")
    }
}

/// The job has succeeded: `Complete` is `True`. For one that fails this waits for ever.
#[must_use]
pub fn is_job_completed() -> impl Condition<Job> {
    |job: Option<&Job>| {
        let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref());
        let complete = (Some("Complete"), Some("True"));
        conditions
            .into_iter()
            .flatten()
            .any(|condition| (condition.type_.text(), condition.status.text()) == complete)
    }
}

/// The latest rollout of the deployment is complete: `Progressing` is `True` because of
/// `NewReplicaSetAvailable`, and its controller has seen the latest change of the spec.
#[must_use]
pub fn is_deployment_completed() -> impl Condition<Deployment> {
    |deployment: Option<&Deployment>| {
        let Some((deployment, status)) =
            deployment.and_then(|deployment| Some((deployment, deployment.status.as_ref()?)))
        else {
            return false;
        };
        // The conditions of an older generation are about the rollout before.
        let current = status.observed_generation >= deployment.metadata.generation;
        let complete = (
            Some("Progressing"),
            Some("True"),
            Some("NewReplicaSetAvailable"),
        );
        current
            && status.conditions.iter().flatten().any(|condition| {
                let reason = condition.reason.as_deref();
                (condition.type_.text(), condition.status.text(), reason) == complete
            })
    }
}

/// The load balancer of the service has an address. A service of another type than `LoadBalancer`
/// has none to wait for.
#[must_use]
pub fn is_service_loadbalancer_provisioned() -> impl Condition<Service> {
    |service: Option<&Service>| {
        let Some(service) = service else {
            return false;
        };
        let type_ = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
        if type_ != Some("LoadBalancer") {
            return true;
        }
        let balancer = service
            .status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref());
        let points = balancer.and_then(|balancer| balancer.ingress.as_deref());
        points.is_some_and(|points| {
            let addressed = |point: &k8s_openapi::api::core::v1::LoadBalancerIngress| {
                point.ip.is_some() || point.hostname.is_some()
            };
            !points.is_empty() && points.iter().all(addressed)
        })
    }
}

/// The load balancer of the ingress has an address.
#[must_use]
pub fn is_ingress_provisioned() -> impl Condition<Ingress> {
    |ingress: Option<&Ingress>| {
        let status = ingress.and_then(|ingress| ingress.status.as_ref());
        let balancer = status.and_then(|status| status.load_balancer.as_ref());
        let points = balancer.and_then(|balancer| balancer.ingress.as_deref());
        points.is_some_and(|points| {
            let addressed =
                |point: &k8s_openapi::api::networking::v1::IngressLoadBalancerIngress| {
                    point.ip.is_some() || point.hostname.is_some()
                };
            !points.is_empty() && points.iter().all(addressed)
        })
    }
}
