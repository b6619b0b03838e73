//! Several operators that divide the sites.

use super::{
    LEASE, PATIENCE, RETRY,
    load::Load,
    log::{Entry, Log, OPERATORS},
    process::{Operator, Server},
    report::seconds,
    server, sites,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// What lets all operators work.
const SHARD: &str = "--shard";
/// How long it takes until the others have what belonged to one that is gone, and until one that came has what it gets.
/// Both with some time to spare.
const GONE: Duration = Duration::from_secs(LEASE + 2 * RETRY + 4);
const CAME: Duration = Duration::from_secs(2 * RETRY + 6);
/// How long changes are made.
const LENGTH: Duration =
    Duration::from_secs(2 * GONE.as_secs() + 2 * CAME.as_secs() + CALM.as_secs());
/// How long all is as it was, at first.
const CALM: Duration = Duration::from_secs(4);

/// What came of it.
pub(crate) struct Outcome {
    /// Sites that are not as they should be at the end.
    lost: usize,
    /// How often somebody wrote about a site that had moved to another operator before.
    doubled: usize,
    /// Sites that moved when an operator came, and those of them that it did not get.
    moved: usize,
    moved_elsewhere: usize,
    /// Of how many sites that is known.
    known: usize,
    changes: usize,
    refused: usize,
    writes: BTreeMap<String, usize>,
    settled: Duration,
}

/// Three operators work. One is killed and another one takes its place; then one is paused beyond its lease, and goes on.
pub(crate) async fn play() -> Outcome {
    let mut server = Server::start().await;
    let client = server.client(server::PERSON);
    sites::create(&client, super::NAMESPACE).await;
    let [first, second, third, fourth] = OPERATORS;
    let start = |name| Operator::start(&server, name, SHARD);
    let (first, second, third) = (start(first), start(second), start(third));
    for operator in [&first, &second, &third] {
        operator.until_ready().await;
    }
    let lacking = sites::until_settled(&client, PATIENCE).await;
    assert_eq!(lacking, 0, "nothing has begun yet");
    sleep(CAME).await;
    eprintln!("three operators share the sites, and changes begin");

    let load = Load::start(&client, LENGTH);
    let mut marks = vec![Timestamp::now()];
    sleep(CALM).await;
    marks.push(Timestamp::now());
    first.signal("KILL");
    eprintln!("killed {}", first.name);
    sleep(GONE).await;
    marks.push(Timestamp::now());
    let fourth = start(fourth);
    eprintln!("{} comes", fourth.name);
    fourth.until_ready().await;
    sleep(CAME).await;
    marks.push(Timestamp::now());
    second.signal("STOP");
    eprintln!("paused {}", second.name);
    sleep(GONE).await;
    marks.push(Timestamp::now());
    second.signal("CONT");
    eprintln!("{} goes on", second.name);
    sleep(CAME).await;

    let (changes, refused) = load.ended().await;
    let end = Instant::now();
    let lost = sites::until_settled(&client, PATIENCE).await;
    let settled = end.elapsed();
    let log = server.log().await;
    let history = History::of(&log, &marks);
    let moves = history.moves(COMES, first.name, fourth.name);
    Outcome {
        lost,
        doubled: history.doubled(),
        moved: moves.len(),
        moved_elsewhere: moves.iter().filter(|to_new| !**to_new).count(),
        known: history.pairs(COMES, first.name).count(),
        changes,
        refused,
        writes: log.writes(),
        settled,
    }
}

/// In which part of the history an operator comes.
const COMES: usize = 2;

/// Who wrote about each site, one after the other, from one change of the group to the next.
struct History<'a>(Vec<BTreeMap<&'a str, Vec<&'a str>>>);

// === impl History ===

impl<'a> History<'a> {
    fn of(log: &'a Log, marks: &[Timestamp]) -> Self {
        let mut parts = vec![BTreeMap::<&str, Vec<&str>>::new(); marks.len()];
        for Entry { at, user, name, .. } in log.of_sites() {
            // What was before the first change belongs to the calm.
            let part = marks.iter().filter(|mark| *mark <= at).count().max(1) - 1;
            let writers = parts[part].entry(name).or_default();
            if writers.last() != Some(&user.as_str()) {
                writers.push(user);
            }
        }
        Self(parts)
    }

    /// A change of the group moves a site once at the most. Whoever writes about one that has moved away makes it change
    /// hands more often.
    fn doubled(&self) -> usize {
        let (calm, later) = (&self.0[..1], &self.0[1..]);
        let surplus = |parts: &[BTreeMap<&str, Vec<&str>>], hands: usize| -> usize {
            let writers = parts.iter().flat_map(BTreeMap::values);
            writers.map(|all| all.len().saturating_sub(hands)).sum()
        };
        // The operators came one after the other, before the changes began.
        surplus(calm, OPERATORS.len() - 1) + surplus(later, 2)
    }

    /// For each site that moved in a part, whether `new` has it.
    fn moves(&self, part: usize, gone: &str, new: &str) -> Vec<bool> {
        let pairs = self.pairs(part, gone);
        let moved = pairs.filter(|(before, after)| before != after);
        moved.map(|(_, after)| after == new).collect()
    }

    /// Who had each site before a part and after it, where that is known. What `gone` had, which was killed before, moves
    /// in any case.
    fn pairs(&self, part: usize, gone: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (before, after) = (&self.0[part - 1], &self.0[part]);
        let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        names.into_iter().filter_map(move |name| {
            let last = |part: &BTreeMap<&'a str, Vec<&'a str>>| part.get(name)?.last().copied();
            let (before, after) = last(before).zip(last(after))?;
            (before != gone).then_some((before, after))
        })
    }
}

// === impl Outcome ===

impl Outcome {
    fn is_well(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.moved > 0 && self.moved_elsewhere == 0
    }

    /// The share of the sites that moved when an operator came.
    #[expect(clippy::cast_precision_loss, reason = "there are not so many sites")]
    fn moved_share(&self) -> f64 {
        let share = self.moved as f64 / self.known.max(1) as f64;
        (share * 1000.0).round() / 1000.0
    }
}

/// Prints what came of it.
pub(crate) fn report(outcome: &Outcome, as_json: bool) -> ExitCode {
    let Outcome {
        lost,
        doubled,
        moved_elsewhere,
        known,
        changes,
        refused,
        writes,
        settled,
        ..
    } = outcome;
    let (share, settled) = (outcome.moved_share(), seconds(*settled));
    if as_json {
        let report = json!({
            "converged": *lost == 0,
            "doubled": doubled,
            "lost": lost,
            "moved_share": share,
            "moved_elsewhere": moved_elsewhere,
            "known": known,
            "lease_s": LEASE,
            "changes": changes,
            "changes_refused": refused,
            "settled_s": settled,
            "writes": writes,
        });
        println!("{report}");
    } else {
        let verdict = if outcome.is_well() {
            "well"
        } else {
            "NOT WELL"
        };
        println!(
            "{verdict}: {changes} changes in {} s, of which {refused} were refused\n\
             {lost} sites are not as they should be; the others were after {settled} s\n\
             {doubled} writes about a site that had moved to another operator\n\
             {share} of {known} sites moved when an operator came, {moved_elsewhere} of them not to it\n\
             writes: {writes:?}",
            LENGTH.as_secs()
        );
    }
    if outcome.is_well() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
