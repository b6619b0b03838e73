//! What is done to an operator in one run. Plain values with a text form, so that a line replays one.

use std::{fmt, str::FromStr, time::Duration};

/// What happens to one request of the operator, or at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Injection {
    /// 409 with a Status of reason `Conflict`; the request is not carried out.
    Conflict,
    /// 429 in plain text with `Retry-After`, as flow control answers.
    Busy,
    /// 429 with a Status, as an eviction or a cache that is not ready answers.
    BusyStatus,
    /// 500 with a Status of reason `InternalError`.
    ServerError,
    /// 504 with a Status of reason `Timeout`, after the request was carried out.
    LateTimeout,
    /// The connection fails and nothing is carried out.
    Refused,
    /// The connection fails after the request was carried out.
    AnswerLost,
    /// The process ends before the request is carried out.
    CrashBefore,
    /// The process ends when the request is carried out, before it sees the answer.
    CrashAfter,
    /// The process ends after it saw the answer, before its next request.
    CrashSeen,
}

/// How the lists and watches of one resource behave while an operator starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// They are answered 20 seconds late.
    Slow,
    /// They fail with 500 for 40 seconds.
    Failing,
    /// They are forbidden for 40 seconds.
    Forbidden,
    /// They hang for a minute, and then the connection fails.
    Silent,
}

/// What is done to the operator in one run of the scenario.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Plan {
    /// Nothing: the reference.
    Nothing,
    /// When all is done, the operator starts anew several times, with the clock further on each time.
    Idle,
    /// When all is done, somebody else annotates everything.
    Noise,
    /// When all is done, all watches end and their versions are expired, so that everything is listed again.
    Relist,
    /// When all is done, the operator starts anew while the lists of a resource misbehave.
    Restart(String, Trouble),
    /// Every list is answered in the opposite order, and the operator starts anew when all is done.
    Reversed,
    /// Something happens to the operator's request of this number.
    Request(u32, Injection),
    /// The user deletes what was given right after the operator's request of this number.
    Delete(u32),
    /// The operator crashes before its request of this number is carried out, and the user deletes what was given
    /// while it is down.
    DeleteWhileDown(u32),
    /// The namespace is deleted right after the operator's request of this number.
    DeleteNamespace(u32),
    /// The operator only starts when the user has made all steps.
    Late,
    /// The operator is down while the user makes this step, counted from 0.
    Missed(usize),
    /// The operator is down while the user deletes what was given, and creates it again under the same names.
    Replaced,
    /// The last state is given at once, without the steps before it.
    Direct,
    /// All watches of a resource lag by some seconds in the whole run.
    Lag(String),
    /// The watches of a resource tell in batches in the whole run: of each object only the last of some seconds, and
    /// that twice.
    Batched(String),
    /// The garbage collector only works when the operator rests.
    LateCollector,
    /// An autoscaler changes the replicas of this one of the operator's objects, which the operator leaves to it.
    Scaled(String),
    /// At the end the operator starts with what its watches would have shown at this place of the log of changes.
    Stale(u64),
    /// Somebody deletes this one of the operator's objects.
    Lose(String),
    /// Somebody edits this one of the operator's objects.
    Edit(String),
    /// Another manager has annotations on everything and a finalizer on what was given, from the beginning.
    Foreign,
}

/// A text that names no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no plan of the checker")]
pub struct UnknownPlan(String);

// === impl Injection ===

impl Injection {
    const ALL: [(Self, &'static str, &'static str); 10] = [
        (Self::Conflict, "conflict", "is answered 409 Conflict"),
        (Self::Busy, "busy", "is answered 429 in plain text"),
        (
            Self::BusyStatus,
            "busy-status",
            "is answered 429 with a Status",
        ),
        (Self::ServerError, "error", "is answered 500"),
        (
            Self::LateTimeout,
            "late-timeout",
            "is carried out, and answered 504",
        ),
        (Self::Refused, "refused", "fails: the connection is refused"),
        (
            Self::AnswerLost,
            "answer-lost",
            "is carried out, and the connection fails before the answer",
        ),
        (
            Self::CrashBefore,
            "crash-before",
            "never arrives: the operator crashes before it",
        ),
        (
            Self::CrashAfter,
            "crash-after",
            "is carried out, and the operator crashes before it sees the answer",
        ),
        (
            Self::CrashSeen,
            "crash-seen",
            "is answered, and the operator crashes before its next request",
        ),
    ];

    fn row(self) -> (&'static str, &'static str) {
        let found = Self::ALL.into_iter().find(|(this, ..)| *this == self);
        found.map_or(("", ""), |(_, word, text)| (word, text))
    }

    /// Whether the process ends.
    #[must_use]
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter | Self::CrashSeen)
    }

    /// Whether the request is carried out.
    #[must_use]
    pub fn is_carried_out(self) -> bool {
        matches!(
            self,
            Self::LateTimeout | Self::AnswerLost | Self::CrashAfter | Self::CrashSeen
        )
    }
}

// === impl Trouble ===

impl Trouble {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Slow, "slow", "are answered 20 s late"),
        (Self::Failing, "failing", "fail with 500 for 40 s"),
        (Self::Forbidden, "forbidden", "are forbidden for 40 s"),
        (Self::Silent, "silent", "hang for a minute"),
    ];

    /// Each of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(this, ..)| this)
    }

    fn row(self) -> (&'static str, &'static str) {
        let found = Self::ALL.into_iter().find(|(this, ..)| *this == self);
        found.map_or(("", ""), |(_, word, text)| (word, text))
    }

    /// How long it lasts.
    pub(crate) fn lasts(self) -> Duration {
        Duration::from_secs(match self {
            Self::Slow => 20,
            Self::Failing | Self::Forbidden => 40,
            Self::Silent => 60,
        })
    }
}

// === impl Plan ===

impl Plan {
    /// What was done, as a sentence for people. `request` describes the request of a number.
    #[must_use]
    pub fn sentence(&self, request: impl Fn(u32) -> String) -> String {
        let Some(number) = self.number() else {
            return self.sentence_of_run();
        };
        let request = request(number);
        if let Self::Request(_, injection) = self {
            format!("{request} {}.", injection.row().1)
        } else if matches!(self, Self::DeleteWhileDown(_)) {
            format!(
                "The operator crashes before this, and the user deletes what was given while it is \
                 down: {request}."
            )
        } else if matches!(self, Self::DeleteNamespace(_)) {
            format!("The namespace is deleted right after this: {request}.")
        } else {
            format!("The user deletes what was given right after this: {request}.")
        }
    }

    /// The sentence of a plan that is about no request.
    fn sentence_of_run(&self) -> String {
        let text = match self {
            Self::Restart(resource, trouble) => {
                return format!(
                    "The operator started anew while lists and watches of {resource} {}. There was \
                     nothing to do for it.",
                    trouble.row().1
                );
            }
            Self::Missed(step) => {
                let step = step + 1;
                return format!("The operator was down while the user made step {step}.");
            }
            Self::Lag(resource) => return format!("The watches of {resource} lagged by 7 s."),
            Self::Batched(resource) => {
                return format!(
                    "The watches of {resource} told of each object only the last state of 3 s, and \
                     that twice."
                );
            }
            Self::Scaled(object) => {
                return format!("An autoscaler changed the replicas of {object}.");
            }
            Self::Stale(revision) => {
                return format!(
                    "The operator started anew with an old state in its caches, that of version \
                     {revision}, and heard of the rest 30 s later."
                );
            }
            Self::Lose(object) => return format!("Somebody deleted {object}."),
            Self::Edit(object) => return format!("Somebody edited {object}."),
            Self::Idle => {
                "The operator started anew when all was done, several times, with the clock up to a \
                 day further on. There was nothing to do for it."
            }
            Self::Noise => {
                "Somebody annotated what was given. There was nothing to do for the operator."
            }
            Self::Relist => {
                "All watches were lost and everything was listed again. There was nothing to do for \
                 the operator."
            }
            Self::Reversed => {
                "Lists came in the opposite order. When all was done the operator started anew, and \
                 there was nothing to do for it."
            }
            Self::Late => "The operator started after the user had made all steps.",
            Self::Replaced => {
                "The operator was down while the user deleted what was given and created it again \
                 under the same names."
            }
            Self::Direct => "The last state was given at once, without the steps that led to it.",
            Self::LateCollector => "The garbage collector worked only when the operator rested.",
            Self::Foreign => {
                "Another manager had annotations on the objects and a finalizer on what was given."
            }
            Self::Nothing
            | Self::Request(..)
            | Self::Delete(_)
            | Self::DeleteWhileDown(_)
            | Self::DeleteNamespace(_) => "Nothing was done to the operator.",
        };
        text.to_owned()
    }

    /// The request that it is about, if it is about one.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Request(number, _)
            | Self::Delete(number)
            | Self::DeleteWhileDown(number)
            | Self::DeleteNamespace(number) => Some(*number),
            Self::Nothing
            | Self::Idle
            | Self::Noise
            | Self::Relist
            | Self::Restart(..)
            | Self::Reversed
            | Self::Late
            | Self::Missed(_)
            | Self::Replaced
            | Self::Direct
            | Self::Lag(_)
            | Self::Batched(_)
            | Self::LateCollector
            | Self::Scaled(_)
            | Self::Stale(_)
            | Self::Lose(_)
            | Self::Edit(_)
            | Self::Foreign => None,
        }
    }

    /// What happens to the request that it is about, if something does.
    pub(crate) fn injection(&self) -> Option<Injection> {
        if let Self::Request(_, injection) = self {
            return Some(*injection);
        }
        // The operator's end does the rest.
        matches!(self, Self::DeleteWhileDown(_)).then_some(Injection::CrashBefore)
    }

    /// Whether the user deletes what was given, or all there is, in the middle of a part.
    pub(crate) fn deletes(&self) -> bool {
        matches!(
            self,
            Self::Delete(_) | Self::DeleteWhileDown(_) | Self::DeleteNamespace(_)
        )
    }

    /// Whether it leaves the operator nothing to do.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(
            self,
            Self::Idle | Self::Noise | Self::Relist | Self::Reversed | Self::Restart(..)
        )
    }

    /// The name of this kind of plan, which [`Scenario::without`](crate::Scenario::without) takes.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Idle => "idle",
            Self::Noise => "noise",
            Self::Relist => "relist",
            Self::Restart(..) => "restart",
            Self::Reversed => "reversed",
            Self::Request(_, injection) if injection.is_crash() => "crash",
            Self::Request(_, injection) if injection.is_carried_out() => "fault-applied",
            Self::Request(..) => "fault",
            Self::Delete(_) => "delete",
            Self::DeleteWhileDown(_) => "delete-while-down",
            Self::DeleteNamespace(_) => "delete-namespace",
            Self::Late => "late",
            Self::Missed(_) => "missed",
            Self::Replaced => "replaced",
            Self::Direct => "direct",
            Self::Lag(_) => "lag",
            Self::Batched(_) => "batched",
            Self::LateCollector => "late-collector",
            Self::Scaled(_) => "scaled",
            Self::Stale(_) => "stale",
            Self::Lose(_) => "lose",
            Self::Edit(_) => "edit",
            Self::Foreign => "foreign",
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Idle => f.write_str("idle"),
            Self::Noise => f.write_str("noise"),
            Self::Relist => f.write_str("relist"),
            Self::Restart(resource, trouble) => write!(f, "restart={}={resource}", trouble.row().0),
            Self::Reversed => f.write_str("reversed"),
            Self::Request(number, injection) => write!(f, "{}={number}", injection.row().0),
            Self::Delete(number) => write!(f, "delete={number}"),
            Self::DeleteWhileDown(number) => write!(f, "delete-while-down={number}"),
            Self::DeleteNamespace(number) => write!(f, "delete-namespace={number}"),
            Self::Late => f.write_str("late"),
            Self::Missed(step) => write!(f, "missed={step}"),
            Self::Replaced => f.write_str("replaced"),
            Self::Direct => f.write_str("direct"),
            Self::Lag(resource) => write!(f, "lag={resource}"),
            Self::Batched(resource) => write!(f, "batched={resource}"),
            Self::LateCollector => f.write_str("late-collector"),
            Self::Scaled(object) => write!(f, "scaled={object}"),
            Self::Stale(revision) => write!(f, "stale={revision}"),
            Self::Lose(object) => write!(f, "lose={object}"),
            Self::Edit(object) => write!(f, "edit={object}"),
            Self::Foreign => f.write_str("foreign"),
        }
    }
}

impl FromStr for Plan {
    type Err = UnknownPlan;

    fn from_str(text: &str) -> Result<Self, UnknownPlan> {
        let (word, rest) = text.split_once('=').unwrap_or((text, ""));
        let unknown = || UnknownPlan(text.to_owned());
        let number = || rest.parse().map_err(|_| unknown());
        let injection = Injection::ALL.into_iter().find(|row| row.1 == word);
        if let Some((injection, ..)) = injection {
            return Ok(Self::Request(number()?, injection));
        }
        Ok(match word {
            "nothing" => Self::Nothing,
            "idle" => Self::Idle,
            "noise" => Self::Noise,
            "relist" => Self::Relist,
            "restart" => {
                let (trouble, resource) = rest.split_once('=').ok_or_else(unknown)?;
                let mut troubles = Trouble::ALL.into_iter();
                let found = troubles.find(|row| row.1 == trouble).ok_or_else(unknown)?;
                Self::Restart(resource.to_owned(), found.0)
            }
            "reversed" => Self::Reversed,
            "delete" => Self::Delete(number()?),
            "delete-while-down" => Self::DeleteWhileDown(number()?),
            "delete-namespace" => Self::DeleteNamespace(number()?),
            "late" => Self::Late,
            "missed" => Self::Missed(rest.parse().map_err(|_| unknown())?),
            "replaced" => Self::Replaced,
            "direct" => Self::Direct,
            "lag" => Self::Lag(rest.to_owned()),
            "batched" => Self::Batched(rest.to_owned()),
            "late-collector" => Self::LateCollector,
            "scaled" => Self::Scaled(rest.to_owned()),
            "stale" => Self::Stale(rest.parse().map_err(|_| unknown())?),
            "lose" => Self::Lose(rest.to_owned()),
            "edit" => Self::Edit(rest.to_owned()),
            "foreign" => Self::Foreign,
            _ => return Err(unknown()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_a_text_that_reads_as_itself() {
        let mut plans = vec![
            Plan::Nothing,
            Plan::Idle,
            Plan::Noise,
            Plan::Relist,
            Plan::Reversed,
            Plan::Delete(3),
            Plan::DeleteWhileDown(4),
            Plan::DeleteNamespace(5),
            Plan::Late,
            Plan::Missed(1),
            Plan::Replaced,
            Plan::Direct,
            Plan::Lag("secrets".into()),
            Plan::Batched("secrets".into()),
            Plan::LateCollector,
            Plan::Scaled("deployments.apps check/web".into()),
            Plan::Stale(17),
            Plan::Lose("deployments.apps check/web".into()),
            Plan::Edit("configmaps check/a=b".into()),
            Plan::Foreign,
        ];
        plans.extend(Injection::ALL.map(|(injection, ..)| Plan::Request(12, injection)));
        plans.extend(Trouble::all().map(|trouble| Plan::Restart("pods".into(), trouble)));
        for plan in plans {
            assert_eq!(plan.to_string().parse(), Ok(plan));
        }
        assert!("crash-after=x".parse::<Plan>().is_err());
        assert!("nonsense".parse::<Plan>().is_err());
    }
}
