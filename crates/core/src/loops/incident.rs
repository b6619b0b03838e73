//! What is reported.

use super::{Config, Delay, Manager, Object, Path};
use std::fmt;
use std::time::Duration;

/// A loop that was found, with the proof.
///
/// Its `Display` is a report of several lines for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// How many runs of the key were counted until it was found.
    pub runs: u32,
    /// How long these took.
    pub time: Duration,
    /// What was found, the most telling first; never empty.
    pub findings: Vec<Finding>,
    /// Whether the runs of the key are delayed from now on.
    pub damped: bool,
}

/// What was found out about the writes to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The object that is written.
    pub object: Object,
    /// What is wrong.
    pub verdict: Verdict,
    /// Where it is seen; at most [`Finding::CHANGES`]. In case of [`Verdict::Unchanged`], the place that holds
    /// all that is sent.
    pub changes: Vec<Change>,
    /// At how many more places it is seen.
    pub omitted: usize,
}

/// What is wrong with the writes to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A run changes something and changes it back.
    FlipFlop,
    /// A place has one value in one run and another in the next, and then the first again.
    Alternation,
    /// Somebody else undoes what the reconciler writes, and it writes it again.
    Fight {
        /// Who writes the same fields, by name; `None` if the server does not say.
        with: Option<String>,
        /// Whether that is the name that the reconciler itself writes by.
        own_name: bool,
    },
    /// A list, or what is listed in a text, has the same elements in another order each time.
    Order,
    /// A value is another one in each run.
    NotDeterministic,
    /// The server does not keep what is sent: it drops it, or puts its own value in its place.
    Reverted,
    /// The writes change nothing.
    Unchanged,
    /// Each run writes, but the sights show nothing that is the same in all of them.
    Unexplained,
    /// Something changes whenever the key runs and only then, and nobody tells what the runs write.
    Untracked,
}

/// A change that each run makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: Path,
    /// What was there before, or was sent in case of [`Verdict::Reverted`]; as JSON, shortened.
    /// `None` if there was nothing, and for a Secret always.
    pub old: Option<String>,
    /// What was there after it; likewise.
    pub new: Option<String>,
    /// Whether the values are left out because it is a Secret.
    pub secret: bool,
    /// Whom the server names as owners of the field, in order of their names.
    pub managers: Vec<Manager>,
    /// The field manager that the reconciler itself writes by, if that is known.
    pub writer: Option<String>,
    /// In case of [`Verdict::Alternation`], the values that take turns.
    pub turns: Vec<Turn>,
}

/// One of the values that take turns at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The value as JSON, shortened; `None` if there was nothing, and for a Secret always.
    pub value: Option<String>,
    /// What the runs had as causes that wrote it.
    pub causes: Vec<String>,
}

// === impl Incident ===

impl Incident {
    /// What is wrong, above all.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        self.findings
            .first()
            .map_or(&Verdict::Unexplained, |finding| &finding.verdict)
    }

    /// What is wrong and what to do, in one line, for a log or an event.
    #[must_use]
    pub fn summary(&self) -> String {
        let Some(finding) = self.findings.first() else {
            return Verdict::Unexplained.to_string();
        };
        let Finding {
            object,
            verdict,
            changes,
            ..
        } = finding;
        let place = changes.first().map(|change| format!(" ({})", change.path));
        let place = place.unwrap_or_default();
        format!("{object}{place}: {verdict}; {}", verdict.advice())
    }

    pub(super) fn is_fight(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| matches!(finding.verdict, Verdict::Fight { .. }))
    }

    pub(super) fn delay(&self, delays: u32, config: &Config) -> Delay {
        Delay {
            time: config.damping.delay(delays, 0.0),
            firm: self.is_fight(),
        }
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            time,
            findings,
            damped,
        } = self;
        let time = Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        // Where time is virtual, none passes in a loop.
        let during = if time.is_zero() {
            "within a millisecond".to_owned()
        } else {
            format!("in {time:?}")
        };
        if *damped {
            write!(f, "reconcile loop: {runs} runs {during}, and no end")?;
        } else {
            write!(f, "needless writes: {runs} runs {during} changed nothing")?;
        }
        for finding in findings {
            write!(f, "\n{finding}")?;
        }
        if *damped {
            f.write_str("\nUntil this ends, the object is reconciled less and less often.")?;
        }
        Ok(())
    }
}

// === impl Finding ===

impl Finding {
    /// How many places are named. A fault seldom has more, and a report with more is not read.
    pub const CHANGES: usize = 8;
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            object,
            verdict,
            changes,
            omitted,
        } = self;
        writeln!(f, "{object}: {verdict}")?;
        for change in changes {
            writeln!(f, "  {change}")?;
        }
        if *omitted > 0 {
            writeln!(f, "  and {omitted} more")?;
        }
        write!(f, "  What to do: {}.", verdict.advice())
    }
}

// === impl Verdict ===

impl Verdict {
    /// A short name that stays the same, for metrics and filters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FlipFlop => "flip-flop",
            Self::Alternation => "alternation",
            Self::Fight { .. } => "fight",
            Self::Order => "order",
            Self::NotDeterministic => "nondeterministic",
            Self::Reverted => "reverted",
            Self::Unchanged => "unchanged",
            Self::Unexplained => "unexplained",
            Self::Untracked => "untracked",
        }
    }

    /// What to do about it, in one sentence without its full stop.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::FlipFlop => {
                "collect all that a run wants of an object, and write it once at the end"
            }
            Self::Alternation => {
                "derive the value from the observed state alone, the same whatever has caused the run; where two \
                 sources disagree, decide which of them counts"
            }
            Self::Fight { own_name: true, .. } => {
                "let one object, or one controller, own the field, and give each controller a field \
                 manager of its own"
            }
            Self::Fight {
                own_name: false, ..
            } => {
                "let one of the two own the field: apply only the fields that are yours, and leave \
                 out those that others set"
            }
            Self::Order => {
                "sort the elements, or take them from a BTreeMap instead of a HashMap, before you \
                 write them"
            }
            Self::NotDeterministic => {
                "derive the value from what is observed, or write it only when something else has \
                 changed"
            }
            Self::Reverted => {
                "compare only the fields that you set, as the server stores them, and do not send \
                 what its schema does not have"
            }
            Self::Unchanged => {
                "compare with the live object first, and send nothing if it is as wanted"
            }
            Self::Unexplained => {
                "find out why a run that only its own writes have caused has something to write"
            }
            Self::Untracked => {
                "make the client with homeostat::client::Tracked, and the next report says what is \
                 written, and by whom"
            }
        }
    }
}

/// What is wrong, in a few words and what that means.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FlipFlop => "flip-flop within a run: it changes something and changes it back",
            Self::Alternation => {
                "flip-flop across runs: each run puts back what the one before has changed"
            }
            Self::Fight { with, own_name } => {
                let with = with
                    .as_deref()
                    .unwrap_or("somebody whom the server does not name");
                let own = if *own_name { ", by its own name" } else { "" };
                return write!(
                    f,
                    "fight with {with}{own}: each undoes what the other writes"
                );
            }
            Self::Order => "same set in another order each time",
            Self::NotDeterministic => "nondeterministic value: it is another one in each run",
            Self::Reverted => "reverted by the server: it does not keep what is sent",
            Self::Unchanged => "unchanged write: it is sent, and nothing is new",
            Self::Unexplained => {
                "endless writes: each run has something to write, and nothing is the same in all"
            }
            Self::Untracked => {
                "it changes whenever it is reconciled and only then, through a client that does not \
                 tell of writes"
            }
        })
    }
}

/// A turn, and whether its value is not to be shown.
struct Told<'t>(&'t Turn, bool);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Turn { value, causes }, secret) = self;
        match (secret, value) {
            (true, _) => f.write_str("(not shown)")?,
            (false, value) => f.write_str(value.as_deref().unwrap_or("nothing"))?,
        }
        if causes.is_empty() {
            return Ok(());
        }
        write!(f, " (after {})", causes.join(" and "))
    }
}

// === impl Change ===

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            old,
            new,
            secret,
            managers,
            writer,
            turns,
        } = self;
        write!(f, "{path}")?;
        if !turns.is_empty() {
            for (at, turn) in turns.iter().enumerate() {
                write!(
                    f,
                    "{} {}",
                    if at == 0 { ":" } else { ", then" },
                    Told(turn, *secret)
                )?;
            }
        } else if *secret {
            f.write_str(": (not shown)")?;
        } else if old.is_some() || new.is_some() {
            let [old, new] = [old, new].map(|value| value.as_deref().unwrap_or("nothing"));
            write!(f, ": {old} -> {new}")?;
        }
        for (at, manager) in managers.iter().enumerate() {
            let before = if at == 0 { ", written by " } else { " and " };
            write!(f, "{before}{manager}")?;
        }
        match writer {
            Some(writer) if managers.iter().all(|manager| manager.name != *writer) => {
                write!(f, ", sent by {writer}")
            }
            Some(_) | None => Ok(()),
        }
    }
}
