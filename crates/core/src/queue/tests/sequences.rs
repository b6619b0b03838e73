//! Long random sequences.

use super::model::{Pair, Said, Step};
use crate::backoff::Backoff;
use crate::queue::{Action, Class, Config, Outcome, Priority, RateLimit, State};
use crate::time::Time;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const KEYS: std::ops::RangeInclusive<char> = 'a'..='h';

/// More than a run keeps.
const CAUSES: [&str; 20] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20",
];

/// A step, or which of the running keys is done.
#[derive(Clone, Debug)]
enum Wish {
    Step(Step<'static>),
    Gate {
        which: Index,
        time: Duration,
    },
    Damp {
        which: Index,
        time: Duration,
        firm: bool,
    },
    Done {
        which: Index,
        outcome: Outcome,
        random: f64,
    },
}

/// What the queue has promised, from what went in and came out alone.
#[derive(Debug, Default)]
struct Promises {
    running: BTreeSet<char>,
    /// Keys whose object is gone since their run started.
    forgotten: BTreeSet<char>,
    /// Keys that were triggered since their last start.
    triggered: BTreeSet<char>,
    failures: BTreeMap<char, u32>,
}

impl Promises {
    fn take(&mut self, step: Step<'_>) {
        match step {
            Step::Add { key, .. } => {
                self.triggered.insert(key);
            }
            Step::Forget { key } => {
                self.triggered.remove(&key);
                self.failures.remove(&key);
                if self.running.contains(&key) {
                    self.forgotten.insert(key);
                }
            }
            Step::Done {
                key,
                outcome,
                random: _,
            } => {
                self.running.remove(&key);
                let more = match outcome.action {
                    Action::Backoff { .. } => Some(1),
                    Action::Requeue(_) => outcome.failed.then_some(1),
                    Action::AwaitChange => None,
                    Action::Soon => Some(0),
                };
                let forgotten = self.forgotten.remove(&key);
                match more.filter(|_| !forgotten) {
                    Some(more) => *self.failures.entry(key).or_default() += more,
                    None => drop(self.failures.remove(&key)),
                }
            }
            Step::Schedule { .. }
            | Step::Next
            | Step::Gate { .. }
            | Step::Open { .. }
            | Step::Damp { .. }
            | Step::Pass { .. }
            | Step::Close
            | Step::Drain => {}
        }
    }

    fn running_one(&self, which: Index) -> char {
        let running: Vec<char> = self.running.iter().copied().collect();
        *which.get(&running)
    }

    /// Never two runs of a key at once, and never a failure counted that was none.
    fn started(&mut self, key: char, failures: u32) -> Result<(), TestCaseError> {
        prop_assert!(self.running.insert(key), "{key} runs twice");
        // Runs that come early do not count, unless there is nothing else.
        let promised = self.failures.get(&key).copied().unwrap_or(0);
        prop_assert!(failures <= promised && (failures == 0) == (promised == 0));
        self.triggered.remove(&key);
        Ok(())
    }
}

/// T54: whoever starts has not overtaken anybody by more than the ageing.
fn assert_fair(pair: &Pair<'_>, started: Time, ageing: Duration) -> Result<(), TestCaseError> {
    for (key, entry) in pair.queue.entries() {
        if let (State::Ready, Some(since)) = (entry.state, entry.next_run) {
            prop_assert!(started <= since + ageing, "{key} is ready since {since:?}");
        }
    }
    Ok(())
}

fn take(
    pair: &mut Pair<'static>,
    promises: &mut Promises,
    step: Step<'static>,
    config: &Config,
) -> Result<Option<Said<'static>>, TestCaseError> {
    let said = pair.take(step).map_err(TestCaseError::fail)?;
    pair.compare(KEYS).map_err(TestCaseError::fail)?;
    promises.take(step);
    if let Some(Said::Run {
        key,
        failures,
        ready_since,
        ..
    }) = said
    {
        promises.started(key, failures)?;
        assert_fair(pair, ready_since, config.ageing)?;
    }
    Ok(said)
}

/// No trigger is lost: when nothing new comes in and every run succeeds, every key that was
/// triggered runs, and in the end nothing is left but what is held without end.
fn drain(
    pair: &mut Pair<'static>,
    promises: &mut Promises,
    config: &Config,
) -> Result<(), TestCaseError> {
    let end = Outcome::success(Action::AwaitChange);
    loop {
        while let Some(key) = promises.running.first().copied() {
            take(
                pair,
                promises,
                Step::Done {
                    key,
                    outcome: end,
                    random: 0.0,
                },
                config,
            )?;
        }
        match take(pair, promises, Step::Next, config)? {
            Some(Said::Run { .. }) => {}
            Some(Said::WaitUntil(time)) => {
                prop_assert!(time > pair.now, "what is due needs no timer");
                pair.now = time;
            }
            Some(Said::Idle) | None => break,
        }
    }
    for (key, entry) in pair.queue.entries() {
        prop_assert_eq!((entry.state, entry.next_run), (State::Parked, None));
        promises.triggered.remove(key);
    }
    prop_assert!(
        promises.triggered.is_empty(),
        "lost: {:?}",
        promises.triggered
    );
    Ok(())
}

fn config() -> impl Strategy<Value = Config> {
    let debounce = select(&[0, 0, 300][..]);
    let rate_limit = prop::option::of((0.5..20.0, 1_u32..5));
    let max_wait = prop::option::of(0_u64..1000);
    (
        0_u32..4,
        debounce,
        max_wait,
        0.0..1.0,
        rate_limit,
        0_u64..3000,
    )
        .prop_map(
            |(concurrency, debounce, max_wait, jitter, rate_limit, ageing)| {
                let mut config = Config::default()
                    .concurrency(concurrency)
                    .debounce(Duration::from_millis(debounce))
                    .ageing(Duration::from_millis(ageing));
                config.backoff =
                    Backoff::exponential(Duration::from_secs(1), Duration::from_secs(20));
                config.backoff = config.backoff.jitter(jitter);
                config.debounce_max_wait = max_wait.map(Duration::from_millis);
                config.rate_limit =
                    rate_limit.map(|(per_second, burst)| RateLimit { per_second, burst });
                config
            },
        )
}

fn wish() -> impl Strategy<Value = Wish> {
    let key = || prop::char::range(*KEYS.start(), *KEYS.end());
    let classes = [Class::Own, Class::Status, Class::Related, Class::Desired];
    let class = select(classes.to_vec());
    let priority = select(&[Priority::Normal, Priority::Low][..]);
    let add =
        (key(), select(&CAUSES[..]), class, priority).prop_map(|(key, cause, class, priority)| {
            Step::Add {
                key,
                cause,
                class,
                priority,
            }
        });
    let after =
        prop_oneof![9 => (0_u64..3000).prop_map(Duration::from_millis), 1 => Just(Duration::MAX)];
    let schedule = (key(), after).prop_map(|(key, after)| Step::Schedule { key, after });
    let forget = key().prop_map(|key| Step::Forget { key });
    let pass = (0_u64..1500).prop_map(|millis| Step::Pass {
        time: Duration::from_millis(millis),
    });
    let done =
        (any::<Index>(), outcome(), 0.0..1.0).prop_map(|(which, outcome, random)| Wish::Done {
            which,
            outcome,
            random,
        });
    let millis = || (0_u64..5000).prop_map(Duration::from_millis);
    let gate = (any::<Index>(), millis()).prop_map(|(which, time)| Wish::Gate { which, time });
    let damp = (any::<Index>(), millis(), any::<bool>())
        .prop_map(|(which, time, firm)| Wish::Damp { which, time, firm });
    let open = key().prop_map(|key| Step::Open { key });
    prop_oneof![
        2 => gate,
        1 => damp,
        1 => open.prop_map(Wish::Step),
        6 => add.prop_map(Wish::Step),
        2 => schedule.prop_map(Wish::Step),
        6 => Just(Wish::Step(Step::Next)),
        4 => done,
        1 => forget.prop_map(Wish::Step),
        3 => pass.prop_map(Wish::Step),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let delay =
        prop_oneof![9 => (0_u64..5000).prop_map(Duration::from_millis), 1 => Just(Duration::MAX)];
    let at_least = prop::option::of((0_u64..5000).prop_map(Duration::from_millis));
    let action = prop_oneof![
        delay.prop_map(Action::Requeue),
        Just(Action::AwaitChange),
        Just(Action::Soon),
        at_least.prop_map(|at_least| Action::Backoff { at_least }),
    ];
    (action, any::<bool>()).prop_map(|(action, failed)| Outcome { action, failed })
}

proptest! {
    /// T01, T11, T52, T54, T55, A1, A3, A4, A9, A16.
    #[test]
    fn random_sequences_agree_with_the_model(
        config in config(),
        wishes in prop::collection::vec(wish(), 1..400),
    ) {
        let mut pair = Pair::new(&config);
        let mut promises = Promises::default();
        for wish in wishes {
            let step = match wish {
                Wish::Step(step) => step,
                _ if promises.running.is_empty() => continue,
                Wish::Done { which, outcome, random } => {
                    Step::Done { key: promises.running_one(which), outcome, random }
                }
                Wish::Gate { which, time } => {
                    Step::Gate { key: promises.running_one(which), time }
                }
                Wish::Damp { which, time, firm } => {
                    Step::Damp { key: promises.running_one(which), time, firm }
                }
            };
            take(&mut pair, &mut promises, step, &config)?;
        }
        drain(&mut pair, &mut promises, &config)?;
    }
}
