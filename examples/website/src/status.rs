//! What to tell the user. Pure functions of the site and of what the reconciler observed.

use crate::{Website, WebsiteStatus};
use homeostat::conditions::{self, NewCondition};
use k8s_openapi::{api::apps::v1::Deployment, jiff::Timestamp};

/// The condition that says whether the pods serve the newest page. It follows from the deployment.
pub const READY: &str = "Ready";

/// What a reconcile observed that has written everything that the spec asks for.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The deployment as it is now.
    pub deployment: &'a Deployment,
    /// Whether a child is still on its way out, and will be made anew.
    pub leaving: bool,
}

/// The status that a site should have. It is the present one if there is nothing new to tell.
#[must_use]
pub fn desired(site: &Website, observed: &Observed<'_>, now: Timestamp) -> WebsiteStatus {
    let generation = site.metadata.generation;
    let mut status = site.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    let live = observed.deployment.status.as_ref();
    let ready_replicas = live.and_then(|live| live.ready_replicas).unwrap_or(0);
    status.url = Some(format!("http://{}/", site.spec.host));
    status.ready_replicas = Some(ready_replicas);
    let ready = ready(observed, site.spec.replicas).observed_generation(generation);
    conditions::set(&mut status.conditions, ready, now);
    status
}

fn ready(observed: &Observed<'_>, wanted: i32) -> NewCondition {
    let (ready, reason, message) = if observed.leaving {
        let message = "A child is being deleted and will be made anew".into();
        (false, "Replacing", message)
    } else if is_rolled_out(observed.deployment) {
        let message = format!("{wanted} of {wanted} replicas serve the page");
        (true, "Serving", message)
    } else {
        let message = format!("{wanted} replicas are being rolled out");
        (false, "Progressing", message)
    };
    NewCondition::new(READY, ready, reason).message(&message)
}

/// Whether all replicas that the deployment wants run its newest template, and none runs an older one.
///
/// A deployment whose status is about an earlier generation says nothing about this one.
fn is_rolled_out(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else {
        return false;
    };
    let wanted = spec.replicas.unwrap_or(1);
    let counts = [
        status.updated_replicas,
        status.replicas,
        status.ready_replicas,
    ];
    status.observed_generation >= deployment.metadata.generation
        && counts.iter().all(|count| count.unwrap_or(0) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn site(generation: i64) -> Website {
        let mut site: Website = serde_saphyr::from_str(include_str!("../site.yaml")).unwrap();
        site.metadata.generation = Some(generation);
        site
    }

    /// A deployment of so many replicas, in its first generation: the one that its status is about, and
    /// how many replicas there are, are updated, and are ready.
    fn deployment(wanted: i32, observed: i64, [all, updated, ready]: [i32; 3]) -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "generation": 1 },
            "spec": { "replicas": wanted, "selector": {}, "template": {} },
            "status": {
                "observedGeneration": observed, "replicas": all,
                "updatedReplicas": updated, "readyReplicas": ready,
            },
        }))
        .unwrap()
    }

    /// `status reason` of the Ready condition.
    fn ready(site: &Website, deployment: &Deployment, leaving: bool) -> String {
        let observed = Observed {
            deployment,
            leaving,
        };
        let status = desired(site, &observed, Timestamp::UNIX_EPOCH);
        let condition = status.condition(READY).unwrap();
        format!("{} {}", condition.status, condition.reason)
    }

    #[test]
    fn readiness_is_that_of_the_newest_template() {
        let new = Deployment::default();
        assert_eq!(ready(&site(1), &new, false), "False Progressing");
        for (wanted, observed, replicas, expected) in [
            (2, 0, [2, 2, 2], "False Progressing"),
            (2, 1, [2, 2, 1], "False Progressing"),
            (2, 1, [3, 2, 2], "False Progressing"),
            (2, 1, [2, 1, 2], "False Progressing"),
            (2, 1, [2, 2, 2], "True Serving"),
            (2, 2, [2, 2, 2], "True Serving"),
            (0, 1, [0, 0, 0], "True Serving"),
        ] {
            let live = deployment(wanted, observed, replicas);
            assert_eq!(ready(&site(1), &live, false), expected, "{:?}", live.status);
        }
        let leaving = ready(&site(1), &deployment(2, 1, [2, 2, 2]), true);
        assert_eq!(leaving, "False Replacing");
    }
}
