//! What the checker tells.

use crate::{
    log::{Entry, Event, Timeline},
    oracle::{Problem, advice, detector},
    plan::Plan,
    trace::Trace,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt};

/// What a check has found.
#[derive(Debug)]
pub struct Report {
    pub(crate) seed: u64,
    pub(crate) findings: Vec<Finding>,
    /// How many more runs showed the same as each finding.
    pub(crate) planned: usize,
    pub(crate) run: usize,
    pub(crate) inapplicable: usize,
    pub(crate) dropped: BTreeMap<&'static str, usize>,
    pub(crate) reconciles: usize,
    pub(crate) writes: usize,
    pub(crate) repairs: usize,
    pub(crate) notes: Vec<String>,
    pub(crate) error: Option<String>,
    /// The whole run that was asked for, if one was.
    pub(crate) replayed: Option<String>,
}

/// One way in which the operator does not converge.
#[derive(Debug)]
pub struct Finding {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
    pub(crate) sentence: String,
    pub(crate) problems: Vec<Problem>,
    pub(crate) log: String,
    pub(crate) again: usize,
    pub(crate) test: String,
}

/// How many lines of the log a report shows for each finding.
const LINES: usize = 30;

/// How many findings a report shows.
const FINDINGS: usize = 5;

// === impl Report ===

impl Report {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            findings: Vec::new(),
            planned: 0,
            run: 0,
            inapplicable: 0,
            dropped: BTreeMap::new(),
            reconciles: 0,
            writes: 0,
            repairs: 0,
            notes: Vec::new(),
            error: None,
            replayed: None,
        }
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.error.is_none()
    }

    /// What was found, the simplest plan first.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many plans were run.
    #[must_use]
    pub fn plans(&self) -> usize {
        self.run
    }

    /// How many plans were left out because they cannot show anything else, or because of the budget.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped.values().sum()
    }

    /// What is worth knowing and is no fault.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Does nothing if the operator is sound.
    ///
    /// # Panics
    ///
    /// It is not, or the scenario could not be run. The message is the report.
    #[track_caller]
    pub fn assert_sound(&self) {
        assert!(self.is_sound(), "{self}");
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let findings = self.findings.iter().map(Finding::to_json);
        json!({
            "sound": self.is_sound(),
            "seed": self.seed,
            "plans": { "run": self.run, "inapplicable": self.inapplicable, "dropped": self.dropped },
            "reference": { "reconciles": self.reconciles, "writes": self.writes },
            "repairs": self.repairs,
            "notes": self.notes,
            "error": self.error,
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            return write!(f, "the scenario cannot be run: {error}");
        }
        if let Some(replayed) = &self.replayed {
            writeln!(f, "{replayed}")?;
        }
        let kinds = self.findings.len();
        let (run, dropped) = (self.run, self.dropped());
        if kinds == 0 {
            writeln!(f, "The operator is sound: {run} plans, seed {}.", self.seed)?;
        } else {
            let faults = if kinds == 1 { "fault" } else { "faults" };
            writeln!(
                f,
                "The operator is not sound: {kinds} {faults} in {run} plans, seed {}.",
                self.seed
            )?;
        }
        writeln!(
            f,
            "In the reference {} reconciles ran and {} requests changed something; {} lost or edited \
             objects were repaired.",
            self.reconciles, self.writes, self.repairs
        )?;
        if dropped > 0 {
            writeln!(f, "{dropped} plans were left out:")?;
            for (reason, count) in &self.dropped {
                writeln!(f, "  {count:>5} {reason}")?;
            }
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for (index, finding) in self.findings.iter().take(FINDINGS).enumerate() {
            writeln!(f, "\n{}. {finding}", index + 1)?;
        }
        if kinds > FINDINGS {
            writeln!(f, "\nand {} more", kinds - FINDINGS)?;
        }
        Ok(())
    }
}

// === impl Finding ===

impl Finding {
    pub(crate) fn new(reference: Option<&Trace>, trace: &Trace, problems: Vec<Problem>) -> Self {
        let describe = |number: u32| {
            let requests = reference.into_iter().flat_map(|trace| &trace.entries);
            let requests = requests.chain(&trace.entries).filter_map(Entry::request);
            let mut found = requests.filter(|request| request.number == Some(number));
            match found.next() {
                Some(request) => {
                    let what = format!("{} {}", request.verb, request.object);
                    match request.subresource.as_str() {
                        "" => format!("Request {number} ({what})"),
                        sub => format!("Request {number} ({what}/{sub})"),
                    }
                }
                None => format!("Request {number}"),
            }
        };
        let thread = std::thread::current();
        let test = thread
            .name()
            .filter(|name| *name != "main")
            .unwrap_or_default();
        Self {
            plan: trace.plan.clone(),
            seed: trace.seed,
            sentence: trace.plan.sentence(describe),
            problems,
            log: excerpt(trace),
            again: 0,
            test: test.to_owned(),
        }
    }

    /// What was done to the operator.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is wrong, the most telling first.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The name of the check that found it: `CRASH`, `STALE`, `IDEM`, `LOOP` and so on.
    #[must_use]
    pub fn detector(&self) -> &'static str {
        let first = self.problems.first();
        first.map_or("", |problem| detector(&self.plan, problem.fault))
    }

    /// What sets `HOMEOSTAT_REPLAY` so that exactly this is run again.
    #[must_use]
    pub fn replay(&self) -> String {
        format!("{}:{}", self.seed, self.plan)
    }

    /// Findings with the same key are one fault.
    pub(crate) fn key(&self) -> (&'static str, String) {
        let first = self.problems.first();
        let text = first.map(|problem| {
            // Versions and times differ from plan to plan.
            let digits = |c: &char| !c.is_ascii_digit();
            problem.text.chars().filter(digits).collect()
        });
        (self.detector(), text.unwrap_or_default())
    }

    fn to_json(&self) -> Value {
        json!({
            "detector": self.detector(),
            "plan": self.plan.to_string(),
            "sentence": self.sentence,
            "problems": self.problems,
            "alsoIn": self.again,
            "replay": self.replay(),
            "log": self.log,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.detector(), self.sentence)?;
        for problem in &self.problems {
            writeln!(f, "   - {}", problem.text)?;
        }
        if let Some(problem) = self.problems.first() {
            writeln!(f, "   Probably: {}", advice(&self.plan, problem.fault))?;
        }
        if self.again > 0 {
            writeln!(f, "   {} other plans show the same.", self.again)?;
        }
        writeln!(f, "   What the operator did:")?;
        for line in self.log.lines() {
            writeln!(f, "   | {line}")?;
        }
        let quoted = format!("'{}'", self.replay());
        write!(
            f,
            "   Again: HOMEOSTAT_REPLAY={quoted} cargo test {}",
            self.test
        )
    }
}

/// What tells most of a run: from shortly before the checker's deed on, what was written, what failed
/// and when the operator started.
fn excerpt(trace: &Trace) -> String {
    let is_deed = |entry: &Entry| {
        let number = entry.request().and_then(|request| request.number);
        matches!(entry.event, Event::Deed(_)) || (number.is_some() && number == trace.plan.number())
    };
    let deed = trace.entries.iter().position(is_deed);
    let begin = deed.unwrap_or_else(|| trace.ends.last().map_or(0, |end| end.from));
    let tells = |entry: &&Entry| match &entry.event {
        Event::Request(request) => !request.changes.is_empty() || request.injected.is_some(),
        Event::Started { .. }
        | Event::Stopped { .. }
        | Event::Outcome(Err(_))
        | Event::Cluster(_)
        | Event::Phase(_)
        | Event::Deed(_)
        | Event::Panic(_)
        | Event::Violation(_) => true,
        Event::Run { .. } | Event::Outcome(Ok(_)) | Event::Delivery { .. } | Event::Said(_) => {
            false
        }
    };
    let before = trace.entries.get(..begin).unwrap_or_default();
    let mut lines: Vec<Entry> = before.iter().filter(tells).rev().take(5).cloned().collect();
    lines.reverse();
    let after = trace.entries.get(begin..).unwrap_or_default();
    let room = LINES - lines.len();
    lines.extend(after.iter().filter(tells).take(room).cloned());
    Timeline(&lines).to_string()
}
