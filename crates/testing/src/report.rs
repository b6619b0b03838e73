//! What the checker tells.

use crate::{
    log::{Entry, Event, Timeline},
    oracle::{Problem, advice, detector},
    plan::Plan,
    trace::Trace,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

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
    /// Which kinds of plans have found what, by the name of the detector, the kind and the oracles.
    pub(crate) evidence: BTreeSet<(&'static str, &'static str, Vec<&'static str>)>,
    /// How many seeds were tried.
    pub(crate) seeds: u64,
    /// How many runs of the scenario there were: one run can be of several plans.
    pub(crate) plays: usize,
    /// How long the check took, by the machine's clock.
    pub(crate) took: Duration,
    pub(crate) threads: usize,
}

/// One way in which the operator does not converge.
#[derive(Debug)]
pub struct Finding {
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
    pub(crate) sentence: String,
    pub(crate) problems: Vec<Problem>,
    pub(crate) log: String,
    /// What the operator has logged from then on.
    pub(crate) said: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) again: usize,
    pub(crate) test: String,
}

/// How many lines of the log a report shows for each finding.
const LINES: usize = 30;

/// How many lines of the operator's own log.
const LOGGED: usize = 12;

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
            evidence: BTreeSet::new(),
            seeds: 1,
            plays: 0,
            took: Duration::ZERO,
            threads: 1,
        }
    }

    /// Counts a run of one plan.
    pub(crate) fn played(&mut self) {
        self.run += 1;
        self.plays += 1;
    }

    /// Takes in what was found. Findings that look the same are one.
    pub(crate) fn found(&mut self, finding: Finding) {
        let mut names: Vec<&'static str> = finding
            .problems
            .iter()
            .map(|problem| problem.fault.name())
            .collect();
        names.sort_unstable();
        names.dedup();
        self.evidence
            .insert((finding.detector(), finding.plan.kind(), names));
        let key = finding.key();
        let known = self.findings.iter_mut().find(|known| known.key() == key);
        match known {
            Some(known) => known.again += 1,
            None => self.findings.push(finding),
        }
    }

    /// Adds what was found with another seed.
    pub(crate) fn take_in(&mut self, other: Self) {
        self.run += other.run;
        self.plays += other.plays;
        self.repairs += other.repairs;
        self.reconciles = self.reconciles.max(other.reconciles);
        self.writes = self.writes.max(other.writes);
        for finding in other.findings {
            self.found(finding);
        }
        if let Some(error) = other.error {
            let seed = other.seed;
            self.error
                .get_or_insert(format!("with seed {seed}: {error}"));
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

    /// How often the scenario was run. This is less than [`plans`](Self::plans): one run can be of several plans.
    #[must_use]
    pub fn plays(&self) -> usize {
        self.plays
    }

    /// Who has found something: the name of the detector, the [kind](Plan::kind) of the plan, and the
    /// [names](crate::Fault::name) of what was wrong in one run.
    pub fn evidence(&self) -> impl Iterator<Item = (&str, &str, &[&'static str])> {
        let all = self.evidence.iter();
        all.map(|(detector, kind, faults)| (*detector, *kind, faults.as_slice()))
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
            "seeds": self.seeds,
            "plans": { "run": self.run, "plays": self.plays, "inapplicable": self.inapplicable, "dropped": self.dropped },
            "reference": { "reconciles": self.reconciles, "writes": self.writes },
            "repairs": self.repairs,
            "seconds": self.took.as_secs_f64(),
            "threads": self.threads,
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
        if self.seeds > 1 {
            writeln!(f, "{} seeds were tried.", self.seeds)?;
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
        Self {
            plan: trace.plan.clone(),
            seed: trace.seed,
            sentence: trace.plan.sentence(describe),
            problems,
            log: excerpt(trace),
            said: said(trace),
            entries: trace.entries.clone(),
            again: 0,
            test: test_name(),
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

    /// The whole log of the run.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
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
            "said": self.said,
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
        if !self.said.is_empty() {
            writeln!(f, "   What it logged:")?;
            for line in &self.said {
                writeln!(f, "   | {line}")?;
            }
        }
        let quoted = format!("'{}'", self.replay());
        write!(
            f,
            "   Again: HOMEOSTAT_REPLAY={quoted} cargo test {}",
            self.test
        )
    }
}

/// What the operator has logged, from the checker's deed on: warnings and errors, or if there are none whatever it said.
fn said(trace: &Trace) -> Vec<String> {
    let from = trace.entries.get(begin(trace)..).unwrap_or_default();
    let lines = from.iter().filter_map(|entry| match &entry.event {
        Event::Said(text) => Some((text, entry)),
        Event::Started { .. }
        | Event::Stopped { .. }
        | Event::Run { .. }
        | Event::Outcome(_)
        | Event::Request(_)
        | Event::Delivery { .. }
        | Event::Cluster(_)
        | Event::Phase(_)
        | Event::Deed(_)
        | Event::Panic(_)
        | Event::Violation(_) => None,
    });
    let lines: Vec<(&String, &Entry)> = lines.collect();
    let is_grave = |text: &str| text.starts_with("ERROR") || text.starts_with("WARN");
    let has_grave = lines.iter().any(|(text, _)| is_grave(text));
    let lines = lines
        .into_iter()
        .filter(|(text, _)| !has_grave || is_grave(text));
    lines
        .take(LOGGED)
        .map(|(_, entry)| entry.to_string())
        .collect()
}

/// Where the checker's deed is in the log; without one, where the last part begins.
fn begin(trace: &Trace) -> usize {
    let is_deed = |entry: &Entry| {
        let number = entry.request().and_then(|request| request.number);
        matches!(entry.event, Event::Deed(_)) || (number.is_some() && number == trace.plan.number())
    };
    let deed = trace.entries.iter().position(is_deed);
    deed.unwrap_or_else(|| trace.ends.last().map_or(0, |end| end.from))
}

/// The name of the test that this thread runs; empty if it is none.
pub(crate) fn test_name() -> String {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.unwrap_or_default().to_owned()
}

/// What tells most of a run: from shortly before the checker's deed on, what was written, what failed
/// and when the operator started.
fn excerpt(trace: &Trace) -> String {
    let begin = begin(trace);
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
