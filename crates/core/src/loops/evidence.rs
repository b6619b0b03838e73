//! What the sights of a key's runs show.
//!
//! No bodies are kept: of each place that a run has changed there is a [`Trace`], with the digests
//! and the shortened text of what stood there.

use super::difference::{Difference, differences, not_kept, place, put_back};
use super::managed::{self, Manager};
use super::path::Path;
use super::trace::{Fight, Kind, Mark, Seen, Trace, is_answer};
use super::{Cause, Change, Config, Finding, Form, Object, Run, Sight, Verdict, Write};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of how many objects that a key writes there are traces, and of how many places in each. Whoever
/// writes more has a loop that shows in these, too.
const OBJECTS: usize = 8;
const PATHS: usize = 64;
/// How many times the runs of [`Config::runs`] may pass before a loop is reported that nothing
/// explains.
const PATIENCE: u32 = 4;

/// All that was seen of a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    objects: BTreeMap<Object, Watched>,
    /// What the key's own runs have created.
    created: Vec<Object>,
    /// How many of the key's own runs have created something.
    creations: u32,
}

/// What was seen of an object.
#[derive(Clone, Debug, Default)]
struct Watched {
    traces: BTreeMap<Path, Trace>,
    /// How many runs wrote it and changed no content.
    unchanged: u32,
    /// In how many of its own runs it did that and yet got a new version.
    own_unchanged: u32,
    /// How many runs wrote it.
    runs: u32,
    /// The generation when it was last written.
    generation: Option<Value>,
    /// By which name it is written.
    writer: Option<Arc<str>>,
    /// When each manager had written when it was last written.
    times: BTreeMap<Manager, String>,
    /// Where all is that was sent in vain, and who owns something there.
    in_vain: Option<(Path, Vec<Manager>)>,
}

/// What it takes to be found guilty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standard<'a> {
    pub(super) config: &'a Config,
    /// How many runs in a row the key itself has caused.
    pub(super) own: u32,
    /// Whether writes in vain are a fault by now, whoever causes the runs.
    pub(super) wasteful: bool,
}

// === impl Standard ===

impl Standard<'_> {
    /// In how many runs a fault must have been seen: the first sight only says how it was.
    fn proof(self) -> u32 {
        self.config.sights() - 1
    }

    /// Whether the key is in a loop of its own doing, as far as counting goes.
    fn is_looping(self) -> bool {
        self.own >= self.config.runs
    }

    /// Whether numbers with a direction are no progress any more.
    fn progress_is_over(self) -> bool {
        self.own >= self.config.progress
    }

    /// Whether no sight is going to explain it any more.
    fn is_unexplained(self) -> bool {
        self.own >= self.config.runs.saturating_mul(PATIENCE)
    }
}

// === impl Evidence ===

impl Evidence {
    /// Takes in the writes of a run.
    pub(super) fn take(&mut self, kind: &Kind, run: &Run) {
        let mut written: BTreeMap<&Object, Vec<&Write>> = BTreeMap::new();
        for write in &run.writes {
            written.entry(&write.object).or_default().push(write);
        }
        let answers = written.iter().any(|(object, writes)| {
            let watched = self.objects.get(*object);
            is_news(watched, kind, run, object, writes)
        });
        let mut creates = false;
        for (object, writes) in written {
            if let Kind::Own { .. } = kind
                && let Some(sight) = writes.first().and_then(|write| write.sight.as_ref())
                && sight.before.is_none()
            {
                creates |= !self.created.contains(object);
                if self.created.len() < OBJECTS {
                    self.created.push(object.clone());
                }
            }
            if self.objects.contains_key(object) || self.objects.len() < OBJECTS {
                let watched = self.objects.entry(object.clone()).or_default();
                watched.take(kind, run, object, &writes, answers);
            }
        }
        self.creations += u32::from(creates);
    }

    /// What they prove.
    pub(super) fn judge(&self, standard: Standard<'_>) -> Vec<Finding> {
        let objects = self.objects.iter();
        let mut findings: Vec<Finding> = objects
            .filter_map(|(object, watched)| watched.judge(object, standard))
            .collect();
        findings.sort_by_key(|finding| rank(&finding.verdict));
        if findings.is_empty() && standard.is_looping() && self.creations >= standard.proof() {
            findings.extend(self.another_name());
        }
        // What comes of writing in vain is no news if there is a reason to write.
        let best = findings.first().map_or(0, |finding| rank(&finding.verdict));
        let in_vain = rank(&Verdict::Reverted);
        findings.retain(|finding| rank(&finding.verdict) < in_vain.max(best + 1));
        let progress =
            |watched: &Watched| watched.traces.values().any(|trace| trace.course.is_some());
        if findings.is_empty()
            && standard.is_unexplained()
            && (standard.progress_is_over() || !self.objects.values().any(progress))
        {
            let finding = |object: &Object| Finding {
                object: object.clone(),
                verdict: Verdict::Unexplained,
                changes: Vec::new(),
                omitted: 0,
            };
            findings.extend(self.objects.keys().map(finding));
        }
        findings
    }

    /// Each run creates an object with another name.
    fn another_name(&self) -> Option<Finding> {
        let [.., before, last] = &*self.created else {
            return None;
        };
        let text = |object: &Object| Some(format!("{:?}", object.name));
        Some(Finding {
            object: last.clone(),
            verdict: Verdict::NotDeterministic,
            changes: vec![Change {
                path: Path::default().member("metadata").member("name"),
                old: text(before),
                new: text(last),
                secret: false,
                managers: Vec::new(),
                writer: self
                    .created
                    .iter()
                    .rev()
                    .find_map(|object| self.objects.get(object)?.writer()),
                turns: Vec::new(),
            }],
            omitted: 0,
        })
    }
}

fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Fight { .. } => 0,
        Verdict::FlipFlop => 1,
        Verdict::Order => 2,
        Verdict::Alternation | Verdict::NotDeterministic => 3,
        Verdict::Reverted => 4,
        Verdict::Unchanged => 5,
        Verdict::Unexplained => 6,
        Verdict::Untracked => 7,
    }
}

// === impl Watched ===

impl Watched {
    fn take(&mut self, kind: &Kind, run: &Run, object: &Object, writes: &[&Write], answers: bool) {
        let sights: Option<Vec<&Sight>> = writes.iter().map(|w| w.sight.as_deref()).collect();
        let (Some(sights), Some(write)) = (sights, writes.last()) else {
            // What was written unseen is not to be taken for somebody else's change.
            for trace in self.traces.values_mut() {
                trace.last = None;
            }
            return;
        };
        let (Some(first), Some(last)) = (sights.first(), sights.last()) else {
            return;
        };
        self.runs += 1;
        self.writer.clone_from(&write.manager);
        let own = write.manager.as_deref();
        let before = first.before.as_ref().filter(|_| !self.times.is_empty());
        let suspect = before.and_then(|before| managed::since(&self.times, before, own));
        let seen = Seen {
            kind,
            before: first.before.as_ref(),
            after: last.after.as_ref(),
            manager: write.manager.as_ref(),
            secret: object.is_secret(),
            fight: fight(kind, run, object, Some(self), first),
            answers,
            echoed: matches!(kind, Kind::Own { echoes } if echoes.contains(object)),
            causes: &run.causes,
            suspect: suspect.as_ref(),
        };
        for (path, trace) in &mut self.traces {
            trace.notice_others(path, &seen);
        }
        let mut touched: BTreeMap<Path, bool> = BTreeMap::new();
        for sight in &sights {
            for Difference { path, reordered } in
                differences(sight.before.as_ref(), sight.after.as_ref())
            {
                *touched.entry(path).or_insert(reordered) &= reordered;
            }
        }
        let unchanged = touched.is_empty();
        self.unchanged += u32::from(unchanged);
        if unchanged {
            self.take_in_vain(&sights, last);
        }
        // An object that has no new version has not woken anybody.
        let woke = writes.iter().any(|write| write.changed != Some(false));
        let own = matches!(kind, Kind::Own { .. });
        self.own_unchanged += u32::from(unchanged && woke && own);
        for (path, reordered) in touched {
            if let Some(trace) = self.trace(&path) {
                trace.changed(&path, reordered, &sights, &seen);
            }
        }
        self.take_not_kept(&sights, &seen, unchanged);
        for (path, trace) in &mut self.traces {
            trace.last = Some(Mark::of(path, seen.after));
        }
        self.generation = generation(seen.after).cloned();
        self.times = seen.after.map_or_else(BTreeMap::new, managed::times);
    }

    fn trace(&mut self, path: &Path) -> Option<&mut Trace> {
        let known = self.traces.contains_key(path);
        (known || self.traces.len() < PATHS).then(|| self.traces.entry(path.clone()).or_default())
    }

    fn take_not_kept(&mut self, sights: &[&Sight], seen: &Seen<'_>, unchanged: bool) {
        let mut found: BTreeMap<Path, (&Value, &Value)> = BTreeMap::new();
        for sight in sights.iter().filter(|sight| sight.form != Form::Other) {
            let Some(after) = &sight.after else { continue };
            let mut paths = not_kept(&sight.sent, after);
            // A default that is left out of a whole object is put back. That matters if nothing else was changed.
            if let Some(before) = &sight.before
                && sight.form == Form::Whole
                && unchanged
            {
                paths.extend(put_back(&sight.sent, before, after));
            }
            found.extend(paths.into_iter().map(|path| (path, (&sight.sent, after))));
        }
        for (path, (sent, after)) in found {
            if let Some(trace) = self.trace(&path) {
                trace.not_kept += 1;
                trace.old = seen.text(path.find(sent));
                trace.new = seen.text(path.find(after));
                trace.managers.extend(managed::owners(after, &path));
            }
        }
    }

    /// Takes in that the last of these writes has changed nothing, nor did those before it.
    fn take_in_vain(&mut self, sights: &[&Sight], last: &Sight) {
        let mut sent = sights
            .iter()
            .filter(|sight| sight.form != Form::Other)
            .map(|sight| place(&sight.sent));
        let Some(first) = sent.next() else { return };
        let before = self.in_vain.take().map_or(first.clone(), |(path, _)| path);
        let path = sent.fold(before.common(&first), |path, sent| path.common(&sent));
        let owners = last.after.as_ref();
        let owners = owners.map_or_else(Vec::new, |after| managed::owners(after, &path));
        self.in_vain = Some((path, owners));
    }

    fn judge(&self, object: &Object, standard: Standard<'_>) -> Option<Finding> {
        let (proof, looping) = (standard.proof(), standard.is_looping());
        let select = |guilty: &dyn Fn(&Trace) -> bool| -> Vec<(&Path, &Trace)> {
            self.traces
                .iter()
                .filter(|(_, trace)| guilty(trace))
                .collect()
        };
        let own = |trace: &Trace| trace.pure >= proof || trace.own >= proof;

        let fought = select(&|trace| trace.put_back >= proof);
        if let Some((_, first)) = fought.first() {
            let verdict = Verdict::Fight {
                with: first.opponent.clone(),
                own_name: first.own_name,
            };
            return Some(self.finding(object, verdict, &fought));
        }
        let reordered = select(&|trace| trace.reordered >= proof);
        if looping {
            let flipped = select(&|trace| trace.flipped >= proof);
            if !flipped.is_empty() {
                return Some(self.finding(object, Verdict::FlipFlop, &flipped));
            }
        }
        if !reordered.is_empty() {
            return Some(self.finding(object, Verdict::Order, &reordered));
        }
        if looping {
            let new = select(&|trace| own(trace) && !trace.by_server);
            let progress = new.iter().all(|(_, trace)| trace.course.is_some());
            // A time that goes with what flips is no other fault.
            let turning = new.iter().copied();
            let turning: Vec<_> = turning
                .filter(|(_, trace)| !trace.turns().is_empty())
                .collect();
            if !turning.is_empty() {
                return Some(self.finding(object, Verdict::Alternation, &turning));
            }
            if !new.is_empty() && (!progress || standard.progress_is_over()) {
                return Some(self.finding(object, Verdict::NotDeterministic, &new));
            }
            if !new.is_empty() {
                return None;
            }
        }
        let in_vain = self.own_unchanged >= proof && looping
            || standard.wasteful && self.unchanged >= proof && self.unchanged == self.runs;
        let by_server = select(&|trace| own(trace) && trace.by_server);
        if in_vain || looping && !by_server.is_empty() {
            let mut reverted = select(&|trace| trace.not_kept >= proof);
            reverted.extend(by_server);
            return Some(if reverted.is_empty() {
                self.unchanged(object)
            } else {
                reverted.sort_by_key(|(path, _)| *path);
                reverted.dedup_by_key(|(path, _)| *path);
                self.finding(object, Verdict::Reverted, &reverted)
            });
        }
        None
    }

    fn finding(&self, object: &Object, verdict: Verdict, traces: &[(&Path, &Trace)]) -> Finding {
        let turning = verdict == Verdict::Alternation;
        let change = |(path, trace): &(&Path, &Trace)| Change {
            path: (*path).clone(),
            old: trace.old.clone(),
            new: trace.new.clone(),
            secret: object.is_secret(),
            managers: trace.managers.iter().cloned().collect(),
            writer: self.writer(),
            turns: if turning { trace.turns() } else { Vec::new() },
        };
        Finding {
            object: object.clone(),
            verdict,
            changes: traces.iter().take(Finding::CHANGES).map(change).collect(),
            omitted: traces.len().saturating_sub(Finding::CHANGES),
        }
    }

    /// No place has changed, so it is told where the request wanted to.
    fn unchanged(&self, object: &Object) -> Finding {
        let writer = self.writer();
        let change = |(path, owners): &(Path, Vec<Manager>)| Change {
            path: path.clone(),
            old: None,
            new: None,
            secret: object.is_secret(),
            // What others own there is not what this is about.
            managers: owners
                .iter()
                .filter(|owner| Some(&owner.name) == writer.as_ref())
                .cloned()
                .collect(),
            writer: writer.clone(),
            turns: Vec::new(),
        };
        Finding {
            object: object.clone(),
            verdict: Verdict::Unchanged,
            changes: self.in_vain.iter().map(change).collect(),
            omitted: 0,
        }
    }

    fn writer(&self) -> Option<String> {
        self.writer.as_deref().map(Into::into)
    }
}

/// Whether these writes make something that the last run did not leave so, besides what they take away from the
/// object and what follows from a new generation.
fn is_news(
    watched: Option<&Watched>,
    kind: &Kind,
    run: &Run,
    object: &Object,
    writes: &[&Write],
) -> bool {
    let mut sights = writes.iter().filter_map(|write| write.sight.as_deref());
    sights.any(|sight| {
        let fight = fight(kind, run, object, watched, sight);
        let (before, after) = (sight.before.as_ref(), sight.after.as_ref());
        differences(before, after)
            .iter()
            .any(|Difference { path, .. }| {
                let last = watched.and_then(|watched| watched.traces.get(path)?.last);
                let came_or_went = path.segments().is_empty();
                let is_there = after.is_some_and(|after| path.find(after).is_some());
                let is_put_back =
                    || last.is_some_and(|last| last.exact == Mark::of(path, after).exact);
                (came_or_went || is_there)
                    && match fight {
                        Fight::Possible => !is_put_back(),
                        Fight::OverSpec => !is_answer(path) && !is_put_back(),
                        Fight::Impossible => true,
                    }
            })
    })
}

/// Whether what somebody else did to the object may be what has caused the run. If it was the change
/// of something else, the write is the answer to that.
fn fight(
    kind: &Kind,
    run: &Run,
    object: &Object,
    watched: Option<&Watched>,
    first: &Sight,
) -> Fight {
    let same_generation = watched.and_then(|watched| watched.generation.as_ref())
        == generation(first.before.as_ref());
    let own_event = |cause: &Cause| match cause {
        Cause::Foreign(whose) => whose.as_ref().is_none_or(|whose| whose == object),
        Cause::First | Cause::Desired | Cause::Timer | Cause::Retry | Cause::Own => false,
    };
    match kind {
        Kind::Planned | Kind::Own { .. } => Fight::Possible,
        Kind::Foreign if run.causes.iter().any(own_event) => Fight::Possible,
        Kind::Desired if *object == run.object && same_generation => Fight::Possible,
        Kind::Desired if *object == run.object => Fight::OverSpec,
        Kind::Excused | Kind::Foreign | Kind::Desired => Fight::Impossible,
    }
}

fn generation(object: Option<&Value>) -> Option<&Value> {
    object?.get("metadata")?.get("generation")
}
