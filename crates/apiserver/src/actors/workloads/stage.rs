//! How far a pod has come, by what is to become of it and by the time.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::pods::{condition, time};
use crate::fate::{Conduct, Outcome};
use crate::object;

/// How far a pod has come on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The images cannot be pulled; later it is tried again less often.
    Pulling { again: bool },
    /// The containers that come first have begun.
    Initializing,
    /// The containers run.
    Running { ready: bool, gates_open: bool },
    /// The containers ended with an error, so often, and wait for the next start.
    Crashed { times: i64 },
    /// The containers ended, and are not started again.
    Ended { well: bool, deadline: bool },
}

/// The first and the longest pause before a container is started again, in seconds.
const FIRST_PAUSE: i64 = 10;
const LONGEST_PAUSE: i64 = 300;

/// After how many seconds a pull that failed counts as put off.
const PUT_OFF_SECONDS: i64 = 10;

// === impl Stage ===

impl Stage {
    /// The stage of a pod that was started at a time, and when the next one begins.
    pub(super) fn of(
        pod: &Value,
        conduct: Conduct,
        started: Timestamp,
        now: Timestamp,
    ) -> (Self, Option<Timestamp>) {
        let since = now.duration_since(started);
        let (stage, left) = Self::after(pod, conduct, since);
        let deadline = pod["spec"]["activeDeadlineSeconds"].as_i64();
        let deadline = deadline.map(SignedDuration::from_secs);
        let ended = matches!(stage, Self::Ended { .. });
        match deadline {
            Some(deadline) if !ended && since >= deadline => (
                Self::Ended {
                    well: false,
                    deadline: true,
                },
                None,
            ),
            Some(deadline) if !ended => {
                let left = left.map_or(deadline, |left| left.min(deadline));
                (stage, started.checked_add(left).ok())
            }
            Some(_) | None => (stage, left.and_then(|left| started.checked_add(left).ok())),
        }
    }

    /// The stage after so long, and how long after the start the next one begins.
    fn after(
        pod: &Value,
        conduct: Conduct,
        since: SignedDuration,
    ) -> (Self, Option<SignedDuration>) {
        let gates_open = object::elements(&pod["spec"], "readinessGates").all(|gate| {
            let kind = gate["conditionType"].as_str().unwrap_or_default();
            condition(pod, kind).is_some_and(|condition| condition["status"] == "True")
        });
        let runs = |ready: bool| Self::Running { ready, gates_open };
        let starts_again = |well: bool| match pod["spec"]["restartPolicy"].as_str() {
            Some("Never") => false,
            Some("OnFailure") => !well,
            Some(_) | None => true,
        };
        let Conduct {
            outcome,
            ready_after,
            run_for,
            end_after: _,
        } = conduct;
        let becomes_ready = || {
            if since >= ready_after {
                (runs(true), None)
            } else {
                (runs(false), Some(ready_after))
            }
        };
        let runs_on = || {
            let (stage, left) = becomes_ready();
            (stage, Some(left.map_or(run_for, |left| left.min(run_for))))
        };
        match outcome {
            Outcome::ImagePullError => {
                let put_off = SignedDuration::from_secs(PUT_OFF_SECONDS);
                let again = since >= put_off;
                (Self::Pulling { again }, (!again).then_some(put_off))
            }
            Outcome::NeverReady => (runs(false), None),
            Outcome::Runs | Outcome::Unschedulable => becomes_ready(),
            Outcome::Completes if starts_again(true) => becomes_ready(),
            Outcome::Completes | Outcome::Fails if since < run_for => runs_on(),
            Outcome::Completes => (
                Self::Ended {
                    well: true,
                    deadline: false,
                },
                None,
            ),
            Outcome::CrashLoop | Outcome::Fails if starts_again(false) => {
                let (times, next) = crashes(since - run_for);
                (Self::Crashed { times }, Some(run_for + next))
            }
            Outcome::CrashLoop | Outcome::Fails => (
                Self::Ended {
                    well: false,
                    deadline: false,
                },
                None,
            ),
        }
    }
}

/// How often a container has crashed that does so at once, and how long after the first time it does so next.
fn crashes(since: SignedDuration) -> (i64, SignedDuration) {
    let (mut times, mut next, mut pause) = (1, FIRST_PAUSE, FIRST_PAUSE);
    while since.as_secs() >= next {
        times += 1;
        // Later ones are as far from each other as they get.
        if pause == LONGEST_PAUSE {
            let more = (since.as_secs() - next) / LONGEST_PAUSE;
            times += more;
            next += more * LONGEST_PAUSE;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
        next += pause;
    }
    (times, SignedDuration::from_secs(next))
}

/// When a pod that is told to end has ended.
pub(super) fn end_of(pod: &Value, conduct: Conduct) -> Option<Timestamp> {
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64()?;
    let grace = SignedDuration::from_secs(grace);
    let told = time(&pod["metadata"]["deletionTimestamp"])?.checked_sub(grace);
    told.ok()?.checked_add(conduct.end_after.min(grace)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(policy: &str, conduct: Conduct, expected: &[(i64, Stage, Option<i64>)]) {
        let pod = json!({ "spec": { "restartPolicy": policy, "activeDeadlineSeconds": 5000 } });
        let start = Timestamp::UNIX_EPOCH;
        for (seconds, stage, next) in expected {
            let now = Timestamp::from_second(*seconds).expect("it is in range");
            let next = next.map(|next| Timestamp::from_second(next).expect("it is in range"));
            assert_eq!(
                Stage::of(&pod, conduct, start, now),
                (*stage, next),
                "after {seconds}"
            );
        }
    }

    fn conduct(outcome: Outcome, ready_after: i64, run_for: i64) -> Conduct {
        Conduct {
            outcome,
            ready_after: SignedDuration::from_secs(ready_after),
            run_for: SignedDuration::from_secs(run_for),
            end_after: SignedDuration::ZERO,
        }
    }

    fn running(ready: bool) -> Stage {
        Stage::Running {
            ready,
            gates_open: true,
        }
    }

    fn ended(well: bool) -> Stage {
        Stage::Ended {
            well,
            deadline: false,
        }
    }

    #[test]
    fn what_becomes_of_pods() {
        let late = Stage::Ended {
            well: false,
            deadline: true,
        };
        check(
            "Always",
            conduct(Outcome::Runs, 5, 0),
            &[
                (0, running(false), Some(5)),
                (5, running(true), Some(5000)),
                (5000, late, None),
            ],
        );
        check(
            "Always",
            conduct(Outcome::NeverReady, 0, 0),
            &[(9, running(false), Some(5000))],
        );
        check(
            "Always",
            conduct(Outcome::Completes, 0, 5),
            &[(9, running(true), Some(5000))],
        );
        check(
            "Never",
            conduct(Outcome::Completes, 3, 5),
            &[
                (0, running(false), Some(3)),
                (3, running(true), Some(5)),
                (5, ended(true), None),
            ],
        );
        check(
            "Never",
            conduct(Outcome::CrashLoop, 0, 0),
            &[(0, ended(false), None)],
        );
        check(
            "OnFailure",
            conduct(Outcome::Fails, 0, 5),
            &[
                (0, running(true), Some(5)),
                (5, Stage::Crashed { times: 1 }, Some(15)),
                (15, Stage::Crashed { times: 2 }, Some(35)),
            ],
        );
        check(
            "Always",
            conduct(Outcome::ImagePullError, 0, 0),
            &[
                (0, Stage::Pulling { again: false }, Some(10)),
                (10, Stage::Pulling { again: true }, Some(5000)),
            ],
        );
    }

    #[test]
    fn gates() {
        let mut pod = json!({ "spec": { "readinessGates": [{ "conditionType": "a" }] } });
        let usual = Conduct::usual(false);
        let start = Timestamp::UNIX_EPOCH;
        let (stage, _) = Stage::of(&pod, usual, start, start);
        let closed = Stage::Running {
            ready: true,
            gates_open: false,
        };
        assert_eq!(stage, closed);
        pod["status"]["conditions"] = json!([{ "type": "a", "status": "True" }]);
        let (stage, _) = Stage::of(&pod, usual, start, start);
        assert_eq!(stage, running(true));
    }

    #[test]
    fn crashes_become_rarer() {
        for (seconds, times, next) in [
            (0, 1, 10),
            (10, 2, 30),
            (29, 2, 30),
            (30, 3, 70),
            (310, 6, 610),
            (609, 6, 610),
            (610, 7, 910),
            (30_610, 107, 30_910),
        ] {
            let found = crashes(SignedDuration::from_secs(seconds));
            assert_eq!(
                found,
                (times, SignedDuration::from_secs(next)),
                "after {seconds}"
            );
        }
    }
}
