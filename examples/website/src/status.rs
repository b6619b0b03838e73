//! What to tell the user. Pure functions of the site and of what the reconciler observed.

use crate::{Website, WebsiteStatus};
use k8s_openapi::{
    api::apps::v1::Deployment,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// The condition that says whether a site is as its spec wants it.
pub const READY: &str = "Ready";

/// What a reconcile observed.
#[derive(Debug, Clone)]
pub enum Observed<'a> {
    /// Everything that the spec asks for was written.
    Applied {
        /// The deployment as it is now.
        deployment: &'a Deployment,
        /// Whether a child is still on its way out, and will be made anew.
        leaving: bool,
    },
    /// Something was in the way.
    Failed {
        /// One word for programs.
        reason: &'a str,
        /// One sentence for people. The same for each attempt that fails in the same way.
        message: &'a str,
    },
}

/// The status that a site should have. It is the present one if there is nothing new to tell, so
/// whoever compares the two writes only news.
#[must_use]
pub fn desired(site: &Website, observed: &Observed<'_>, now: Timestamp) -> WebsiteStatus {
    let generation = site.metadata.generation;
    let mut status = site.status.clone().unwrap_or_default();
    status.observed_generation = generation;
    let (ready, reason, message) = match observed {
        Observed::Applied {
            deployment,
            leaving,
        } => {
            let live = deployment.status.as_ref();
            let ready = live.and_then(|live| live.ready_replicas).unwrap_or(0);
            status.url = Some(format!("http://{}/", site.spec.host));
            status.ready_replicas = Some(ready);
            let wanted = site.spec.replicas;
            if *leaving {
                (
                    false,
                    "Replacing",
                    "A child is being deleted and will be made anew".into(),
                )
            } else if is_rolled_out(deployment) {
                (
                    true,
                    "Serving",
                    format!("{wanted} of {wanted} replicas serve the page"),
                )
            } else {
                (
                    false,
                    "Progressing",
                    format!("{wanted} replicas are being rolled out"),
                )
            }
        }
        // The last good state goes on: what could not be changed is still there, and its URL too.
        Observed::Failed { reason, message } => (false, *reason, (*message).into()),
    };
    let condition = Condition {
        type_: READY.into(),
        status: if ready { "True" } else { "False" }.into(),
        reason: reason.into(),
        message,
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    set_condition(&mut status.conditions, condition);
    status
}

/// Sets a condition. The time of its last transition changes only if its status does: it says since
/// when, and a time that moved with every look would be written with every look.
fn set_condition(conditions: &mut Vec<Condition>, mut condition: Condition) {
    let same_type = |old: &&mut Condition| old.type_ == condition.type_;
    match conditions.iter_mut().find(same_type) {
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time.clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

/// Whether all replicas that the deployment wants run its newest template, and none runs an older one.
///
/// A deployment whose status is about an earlier generation says nothing about this one.
fn is_rolled_out(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else {
        return false;
    };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.ready_replicas.unwrap_or(0) == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStatus};

    fn site(generation: i64) -> Website {
        let mut site: Website = serde_saphyr::from_str(include_str!("../site.yaml")).unwrap();
        site.metadata.generation = Some(generation);
        site
    }

    /// A deployment of two replicas: its generation, the one that its status is about, and how many
    /// replicas there are, are updated, and are ready.
    fn deployment(generation: i64, observed: i64, [all, updated, ready]: [i32; 3]) -> Deployment {
        let mut deployment = Deployment {
            spec: Some(DeploymentSpec {
                replicas: Some(2),
                ..DeploymentSpec::default()
            }),
            status: Some(DeploymentStatus {
                observed_generation: Some(observed),
                replicas: Some(all),
                updated_replicas: Some(updated),
                ready_replicas: Some(ready),
                ..DeploymentStatus::default()
            }),
            ..Deployment::default()
        };
        deployment.metadata.generation = Some(generation);
        deployment
    }

    fn applied(deployment: &Deployment) -> Observed<'_> {
        Observed::Applied {
            deployment,
            leaving: false,
        }
    }

    const FAILED: Observed<'_> = Observed::Failed {
        reason: "InvalidSpec",
        message: "the host is wrong",
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// `status reason since generation` of the Ready condition.
    fn ready(status: &WebsiteStatus) -> String {
        let condition = status.condition(READY).unwrap();
        format!(
            "{} {} {} {}",
            condition.status,
            condition.reason,
            condition.last_transition_time.0.as_second(),
            condition.observed_generation.unwrap()
        )
    }

    #[test]
    fn readiness_is_that_of_the_newest_template() {
        let new = desired(&site(1), &applied(&Deployment::default()), at(5));
        assert_eq!(ready(&new), "False Progressing 5 1");
        for (generation, observed, replicas, expected) in [
            (1, 0, [2, 2, 2], "False Progressing 5 1"),
            (1, 1, [2, 2, 1], "False Progressing 5 1"),
            (1, 1, [3, 2, 2], "False Progressing 5 1"),
            (1, 1, [2, 1, 2], "False Progressing 5 1"),
            (1, 1, [2, 2, 2], "True Serving 5 1"),
            (1, 2, [2, 2, 2], "True Serving 5 1"),
        ] {
            let deployment = deployment(generation, observed, replicas);
            let status = desired(&site(1), &applied(&deployment), at(5));
            assert_eq!(ready(&status), expected, "{:?}", deployment.status);
        }
        let status = desired(
            &site(1),
            &Observed::Applied {
                deployment: &deployment(1, 1, [2, 2, 2]),
                leaving: true,
            },
            at(5),
        );
        assert_eq!(ready(&status), "False Replacing 5 1");
    }

    #[test]
    fn no_replicas_wanted_is_ready() {
        let mut none = deployment(1, 1, [0, 0, 0]);
        none.spec.as_mut().unwrap().replicas = Some(0);
        none.status = Some(DeploymentStatus {
            observed_generation: Some(1),
            ..DeploymentStatus::default()
        });
        assert_eq!(
            ready(&desired(&site(1), &applied(&none), at(5))),
            "True Serving 5 1"
        );
    }

    /// The same site over time: what is written when.
    #[test]
    fn the_time_of_the_transition_moves_only_with_the_status() {
        let rolling = deployment(1, 1, [2, 1, 1]);
        let done = deployment(1, 1, [2, 2, 2]);
        let mut site = site(1);
        for (second, generation, observed, expected) in [
            (1, 1, applied(&rolling), "False Progressing 1 1"),
            (2, 1, applied(&rolling), "False Progressing 1 1"),
            (3, 1, applied(&done), "True Serving 3 1"),
            (4, 1, applied(&done), "True Serving 3 1"),
            (5, 2, applied(&done), "True Serving 3 2"),
            (6, 3, FAILED, "False InvalidSpec 6 3"),
            (7, 3, FAILED, "False InvalidSpec 6 3"),
            (8, 3, applied(&rolling), "False Progressing 6 3"),
            (9, 3, applied(&done), "True Serving 9 3"),
        ] {
            site.metadata.generation = Some(generation);
            let status = desired(&site, &observed, at(second));
            assert_eq!(ready(&status), expected, "at {second}");
            assert_eq!(status.observed_generation, Some(generation));
            site.status = Some(status);
        }
    }

    #[test]
    fn nothing_new_is_no_difference() {
        let done = deployment(1, 1, [2, 2, 2]);
        let mut site = site(1);
        for observed in [applied(&done), FAILED] {
            site.status = Some(desired(&site, &observed, at(1)));
            let later = desired(&site, &observed, at(1_000_000));
            assert_eq!(site.status, Some(later));
        }
    }

    #[test]
    fn a_failure_keeps_what_is_still_true_and_the_conditions_of_others() {
        let mut site = site(1);
        site.status = Some(desired(
            &site,
            &applied(&deployment(1, 1, [2, 2, 2])),
            at(1),
        ));
        let others = Condition {
            type_: "Certified".into(),
            status: "True".into(),
            reason: "ByHand".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(at(1)),
        };
        let status = site.status.as_mut().unwrap();
        status.conditions.insert(0, others.clone());
        let status = desired(&site, &FAILED, at(2));
        assert_eq!(status.url.as_deref(), Some("http://blog.example.com/"));
        assert_eq!(status.ready_replicas, Some(2));
        assert_eq!(status.condition("Certified"), Some(&others));
        assert_eq!(
            status.condition(READY).unwrap().message,
            "the host is wrong"
        );
    }
}
