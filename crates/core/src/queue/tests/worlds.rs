//! Every script in some small worlds.

use super::model::{Pair, Step};
use crate::backoff::Backoff;
use crate::queue::{Action, Class, Config, Outcome, Priority, RateLimit};
use std::fmt::Write;
use std::time::Duration;

const KEYS: [char; 3] = ['a', 'b', 'c'];

/// Three keys and six steps.
const WIDE: (usize, usize) = (3, 6);
/// One key, for what takes more steps to come about.
const DEEP: (usize, usize) = (1, 8);

/// What can happen in a world.
struct World {
    /// How many keys there are, and how many steps each script has.
    size: (usize, usize),
    config: Config,
    triggers: &'static [(&'static str, Class, Priority)],
    outcomes: &'static [Outcome],
    /// After how many seconds runs are asked for.
    schedules: &'static [u64],
    /// For how many seconds the gates of running keys are closed, if they are at all.
    gates: &'static [u64],
    /// In seconds.
    pauses: &'static [u64],
}

const SPEC: (&str, Class, Priority) = ("spec", Class::Desired, Priority::Normal);
const CHILD: (&str, Class, Priority) = ("child", Class::Own, Priority::Normal);
const RELATED: (&str, Class, Priority) = ("related", Class::Related, Priority::Normal);
const STATUS: (&str, Class, Priority) = ("status", Class::Status, Priority::Normal);
const LIST: (&str, Class, Priority) = ("list", Class::Own, Priority::Low);

const AWAIT: Outcome = Outcome::success(Action::AwaitChange);
const REQUEUE: Outcome = Outcome::success(Action::Requeue(Duration::from_secs(2)));
const BACKOFF: Outcome = Outcome::failure(Action::Backoff { at_least: None });
const GIVE_UP: Outcome = Outcome::failure(Action::AwaitChange);
const SOON: Outcome = Outcome::failure(Action::Soon);
const FIXED: Outcome = Outcome::failure(Action::Requeue(Duration::from_secs(2)));

impl World {
    /// Takes every sequence of steps that the world allows, and returns how many there are (which
    /// tells a test that its world is as large as it was).
    ///
    /// The keys are alike, so a key is only named after those before it. Asking for a run where
    /// there is none changes nothing: it is done everywhere, and is no step. Nothing is done to
    /// keys that are not there, and two pauses in a row are one pause.
    fn explore(&self) -> usize {
        let mut path = Vec::new();
        let pair = Pair::new(&self.config);
        self.explore_from(&pair, 0, &mut path)
    }

    fn explore_from(
        &self,
        pair: &Pair<'static>,
        named: usize,
        path: &mut Vec<Step<'static>>,
    ) -> usize {
        let mut count = 1;
        if path.len() == self.size.1 {
            return count;
        }
        for step in self.steps(pair, named, path.last()) {
            path.push(step);
            let mut pair = pair.clone();
            let taken = pair.take(step).map(drop).and_then(|()| {
                if !pair.model.would_run(pair.now) {
                    pair.take(Step::Next)?;
                }
                pair.compare(KEYS)
            });
            if let Err(error) = taken {
                panic!("{}{error}", script(path));
            }
            let named = match step {
                Step::Add { key, .. } | Step::Schedule { key, .. } => {
                    named.max(KEYS.iter().take_while(|&&other| other <= key).count())
                }
                Step::Next
                | Step::Done { .. }
                | Step::Forget { .. }
                | Step::Gate { .. }
                | Step::Open { .. }
                | Step::Damp { .. }
                | Step::Pass { .. } => named,
                Step::Close | Step::Drain => unreachable!("no world comes to its end"),
            };
            count += self.explore_from(&pair, named, path);
            path.pop();
        }
        count
    }

    fn steps(&self, pair: &Pair<'_>, named: usize, last: Option<&Step<'_>>) -> Vec<Step<'static>> {
        let mut steps = Vec::new();
        for &key in &KEYS[..self.size.0.min(named + 1)] {
            for &(cause, class, priority) in self.triggers {
                steps.push(Step::Add {
                    key,
                    cause,
                    class,
                    priority,
                });
            }
            for &secs in self.schedules {
                let after = Duration::from_secs(secs);
                steps.push(Step::Schedule { key, after });
            }
        }
        for &key in &KEYS[..named] {
            let Some(known) = pair.known(key) else {
                continue;
            };
            steps.push(Step::Forget { key });
            if known.state == crate::queue::State::Running {
                let done = |&outcome: &Outcome| Step::Done {
                    key,
                    outcome,
                    random: 0.0,
                };
                steps.extend(self.outcomes.iter().map(done));
                for &secs in self.gates {
                    let time = Duration::from_secs(secs);
                    steps.push(Step::Gate { key, time });
                    let firm = false;
                    steps.push(Step::Damp { key, time, firm });
                }
            } else if known.gate.is_some() {
                steps.push(Step::Open { key });
            }
        }
        if pair.model.would_run(pair.now) {
            steps.push(Step::Next);
        }
        if !matches!(last, None | Some(Step::Pass { .. })) {
            steps.extend(self.pauses.iter().map(|&secs| Step::Pass {
                time: Duration::from_secs(secs),
            }));
        }
        steps
    }
}

fn script(path: &[Step<'_>]) -> String {
    path.iter().fold(String::new(), |mut script, step| {
        writeln!(script, "{step:?}").expect("a string takes all");
        script
    })
}

fn config() -> Config {
    Config::default().backoff(Backoff::default().jitter(0.0))
}

/// T11, T52: triggers of both classes against all outcomes.
#[test]
fn outcomes() {
    let world = World {
        size: WIDE,
        config: config(),
        triggers: &[SPEC, CHILD],
        outcomes: &[AWAIT, REQUEUE, BACKOFF, FIXED],
        schedules: &[],
        gates: &[],
        pauses: &[1, 2],
    };
    assert_eq!(world.explore(), 162_247);
}

/// R5: what others do reaches a key that is held, with a timer or without.
#[test]
fn wakeups() {
    let world = World {
        size: DEEP,
        config: config(),
        triggers: &[RELATED, CHILD],
        outcomes: &[AWAIT, GIVE_UP, BACKOFF],
        schedules: &[],
        gates: &[],
        pauses: &[1],
    };
    assert_eq!(world.explore(), 183_375);
}

/// The same with triggers of all classes.
#[test]
fn classes() {
    let world = World {
        size: (1, 7),
        config: config(),
        triggers: &[SPEC, RELATED, STATUS, CHILD],
        outcomes: &[GIVE_UP, BACKOFF],
        schedules: &[],
        gates: &[],
        pauses: &[1],
    };
    assert_eq!(world.explore(), 494_241);
}

/// The same next to debounce and gates.
#[test]
fn wakeups_that_wait() {
    let world = World {
        size: (2, 6),
        config: config()
            .concurrency(1)
            .debounce(Duration::from_secs(2))
            .debounce_max_wait(Duration::from_secs(3)),
        triggers: &[SPEC, RELATED],
        outcomes: &[GIVE_UP, FIXED],
        schedules: &[],
        gates: &[3],
        pauses: &[1, 4],
    };
    assert_eq!(world.explore(), 43_555);
}

/// T54, A4, A5, A7: priorities, with one worker and soon aged.
#[test]
fn priorities() {
    let world = World {
        size: WIDE,
        config: config().concurrency(1).ageing(Duration::from_secs(2)),
        triggers: &[SPEC, CHILD, LIST],
        outcomes: &[AWAIT, BACKOFF],
        schedules: &[],
        gates: &[],
        pauses: &[1, 3],
    };
    assert_eq!(world.explore(), 738_505);
}

/// T55: debounce next to timers.
#[test]
fn debounce() {
    let world = World {
        size: WIDE,
        config: config()
            .debounce(Duration::from_secs(2))
            .debounce_max_wait(Duration::from_secs(3)),
        triggers: &[SPEC, CHILD],
        outcomes: &[REQUEUE, BACKOFF],
        schedules: &[],
        gates: &[],
        pauses: &[1, 2],
    };
    assert_eq!(world.explore(), 84_907);
}

/// G69: moments between failures and successes.
#[test]
fn moments() {
    let world = World {
        size: WIDE,
        config: config(),
        triggers: &[SPEC, CHILD],
        outcomes: &[AWAIT, BACKOFF, SOON],
        schedules: &[],
        gates: &[],
        pauses: &[1],
    };
    assert_eq!(world.explore(), 104_345);
}

#[test]
fn rate_limit() {
    let world = World {
        size: WIDE,
        config: config().rate_limit(RateLimit {
            per_second: 0.5,
            burst: 2,
        }),
        triggers: &[SPEC],
        outcomes: &[AWAIT, REQUEUE],
        schedules: &[],
        gates: &[],
        pauses: &[1, 2],
    };
    assert_eq!(world.explore(), 11_772);
}

/// Runs at a time that somebody asks for, next to debounced triggers and all kinds of timers.
#[test]
fn schedules() {
    let world = World {
        size: WIDE,
        config: config().debounce(Duration::from_secs(2)),
        triggers: &[SPEC],
        outcomes: &[REQUEUE, BACKOFF],
        schedules: &[1, 3],
        gates: &[],
        pauses: &[1],
    };
    assert_eq!(world.explore(), 358_854);
}

/// Gates that are closed while a key runs, and opened before or after their time.
#[test]
fn gates() {
    let world = World {
        size: WIDE,
        config: config(),
        triggers: &[SPEC, CHILD],
        outcomes: &[AWAIT, REQUEUE, BACKOFF],
        schedules: &[],
        gates: &[3],
        pauses: &[1, 2],
    };
    assert_eq!(world.explore(), 185_327);
}
