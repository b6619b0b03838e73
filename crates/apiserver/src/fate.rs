//! What becomes of the pods that nobody runs, and who looks after them.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use crate::object;

/// One of the actors behind [`workloads`](crate::ApiServerBuilder::workloads), in the order in which they have their
/// turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Workload {
    /// The scheduler and the kubelets: pods get a node, run and end, and nodes are ready.
    Pods,
    /// The provisioner of volumes: a `PersistentVolumeClaim` is bound to a `PersistentVolume`.
    Claims,
    /// `ReplicaSet`s have the pods that they want.
    ReplicaSets,
    /// `StatefulSet`s have their pods and claims in order.
    StatefulSets,
    /// `DaemonSet`s have a pod on each node.
    DaemonSets,
    /// Jobs run their pods to the end.
    Jobs,
    /// Deployments roll out by way of `ReplicaSet`s.
    Deployments,
    /// `CronJob`s make Jobs by the server's clock.
    CronJobs,
    /// `PodDisruptionBudget`s say how many pods can go.
    Budgets,
}

/// What becomes of a pod. By default it is ready at once, ends at once when it is deleted, and runs until then; a pod of a
/// Job has done its work at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It runs, and its containers are never ready.
    NeverReady,
    /// Its images cannot be pulled: it is `Pending`, and its containers wait because of `ErrImagePull`, and then
    /// `ImagePullBackOff`.
    ImagePullError,
    /// Its containers end with an error whenever they are started, and wait because of `CrashLoopBackOff`: 10 s at first,
    /// then twice as long each time, 5 minutes at most.
    CrashLoop,
    /// No node has room for it.
    Unschedulable,
    /// Its containers end with exit code 1. If its restart policy starts them again, this is a crash loop.
    Fail,
    /// Its containers end with exit code 0. If its restart policy is `Always`, they run on.
    Complete,
    /// It is ready this long after it has started.
    ReadyAfter(Duration),
    /// It runs for so long before it completes or fails.
    RunFor(Duration),
    /// It takes so long to end when it is deleted, but never longer than its grace period.
    EndAfter(Duration),
}

/// Which pods a [`Fate`] is for. An empty rule is for all; each method narrows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRule {
    namespace: Option<String>,
    name_start: Option<String>,
    labels: Vec<(String, String)>,
    image: Option<String>,
}

/// All that was said of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conduct {
    pub(crate) outcome: Outcome,
    pub(crate) ready_after: SignedDuration,
    pub(crate) run_for: SignedDuration,
    pub(crate) end_after: SignedDuration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Runs,
    NeverReady,
    ImagePullError,
    CrashLoop,
    Unschedulable,
    Fails,
    Completes,
}

/// The annotation that says how a pod fares, on the pod or on what makes it.
const OUTCOME: &str = "homeostat.dev/pod";

/// Annotations with lengths of time.
const READY_AFTER: &str = "homeostat.dev/ready-after";
const RUN_FOR: &str = "homeostat.dev/run-for";
const END_AFTER: &str = "homeostat.dev/end-after";

// === impl PodRule ===

impl PodRule {
    /// A rule for every pod.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Only pods of this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only pods whose names start with this: the name of a pod, or of what makes it.
    #[must_use]
    pub fn name_start(mut self, start: &str) -> Self {
        self.name_start = Some(start.to_owned());
        self
    }

    /// Only pods with this label; called again, with both.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Only pods with a container of this image.
    #[must_use]
    pub fn image(mut self, image: &str) -> Self {
        self.image = Some(image.to_owned());
        self
    }

    pub(crate) fn fits(&self, pod: &Value) -> bool {
        let Self {
            namespace,
            name_start,
            labels,
            image,
        } = self;
        let has_image = |image: &String| {
            object::elements(&pod["spec"], "containers").any(|one| one["image"] == **image)
        };
        namespace
            .as_deref()
            .is_none_or(|one| object::namespace(pod) == one)
            && name_start
                .as_deref()
                .is_none_or(|start| object::name(pod).starts_with(start))
            && labels
                .iter()
                .all(|(key, value)| object::label(pod, key) == Some(value))
            && image.as_ref().is_none_or(has_image)
    }
}

// === impl Conduct ===

impl Conduct {
    /// How a pod fares of which nothing was said.
    pub(crate) fn usual(of_job: bool) -> Self {
        Self {
            outcome: if of_job {
                Outcome::Completes
            } else {
                Outcome::Runs
            },
            ready_after: SignedDuration::ZERO,
            run_for: SignedDuration::ZERO,
            end_after: SignedDuration::ZERO,
        }
    }

    pub(crate) fn take(&mut self, fate: Fate) {
        let signed = |time| SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
        match fate {
            Fate::NeverReady => self.outcome = Outcome::NeverReady,
            Fate::ImagePullError => self.outcome = Outcome::ImagePullError,
            Fate::CrashLoop => self.outcome = Outcome::CrashLoop,
            Fate::Unschedulable => self.outcome = Outcome::Unschedulable,
            Fate::Fail => self.outcome = Outcome::Fails,
            Fate::Complete => self.outcome = Outcome::Completes,
            Fate::ReadyAfter(time) => self.ready_after = signed(time),
            Fate::RunFor(time) => {
                self.run_for = signed(time);
                if self.outcome == Outcome::Runs {
                    self.outcome = Outcome::Completes;
                }
            }
            Fate::EndAfter(time) => self.end_after = signed(time),
        }
    }

    /// Takes what the annotations of a pod, or of what makes it, say. What cannot be read says nothing.
    pub(crate) fn take_annotations(&mut self, object: &Value) {
        let text = |name: &str| object["metadata"]["annotations"][name].as_str();
        let time = |name: &str| text(name)?.parse::<SignedDuration>().ok()?.try_into().ok();
        let outcome = text(OUTCOME).and_then(|text| match text {
            "never-ready" => Some(Fate::NeverReady),
            "image-pull-error" => Some(Fate::ImagePullError),
            "crash-loop" => Some(Fate::CrashLoop),
            "unschedulable" => Some(Fate::Unschedulable),
            "fail" => Some(Fate::Fail),
            "complete" => Some(Fate::Complete),
            _ => None,
        });
        let fates = [
            outcome,
            time(READY_AFTER).map(Fate::ReadyAfter),
            time(RUN_FOR).map(Fate::RunFor),
            time(END_AFTER).map(Fate::EndAfter),
        ];
        fates.into_iter().flatten().for_each(|fate| self.take(fate));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules() {
        let pod = json!({
            "metadata": { "name": "web-1", "namespace": "n", "labels": { "a": "b" } },
            "spec": { "containers": [{ "image": "i" }] },
        });
        let any = PodRule::any;
        for (rule, fits) in [
            (any(), true),
            (any().namespace("n").name_start("web-"), true),
            (any().label("a", "b").image("i"), true),
            (any().namespace("m"), false),
            (any().name_start("we-"), false),
            (any().label("a", "c"), false),
            (any().image("j"), false),
        ] {
            assert_eq!(rule.fits(&pod), fits, "{rule:?}");
        }
    }

    #[test]
    fn annotations() {
        let conduct = |of_job: bool, annotations: Value| {
            let mut conduct = Conduct::usual(of_job);
            conduct.take_annotations(&json!({ "metadata": { "annotations": annotations } }));
            (conduct.outcome, conduct.run_for.as_secs())
        };
        for (of_job, annotations, expected) in [
            (false, json!({}), (Outcome::Runs, 0)),
            (true, json!({}), (Outcome::Completes, 0)),
            (
                true,
                json!({ OUTCOME: "fail", RUN_FOR: "1m 30s" }),
                (Outcome::Fails, 90),
            ),
            (false, json!({ RUN_FOR: "90s" }), (Outcome::Completes, 90)),
            (
                false,
                json!({ OUTCOME: "crash-loop" }),
                (Outcome::CrashLoop, 0),
            ),
            (
                false,
                json!({ OUTCOME: "?", RUN_FOR: "-1s" }),
                (Outcome::Runs, 0),
            ),
        ] {
            assert_eq!(
                conduct(of_job, annotations.clone()),
                expected,
                "{annotations}"
            );
        }
    }
}
