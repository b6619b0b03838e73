//! When a condition that one program keeps is written anew.
//!
//! A condition says how things are, so it is written when that changes. But an error may come in other words each
//! time, and two errors may take turns for hours. Whoever writes all of that makes an event of each attempt. So a
//! statement (a status and a reason) is told once for each generation of the object, and after that only when it has
//! lasted; and a change from bad to good is told at once unless it has come too often lately.

use crate::conditions::same_but_numbers;
use crate::time::Time;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a statement that was told before, or one in other words, must have been the only one until it is told.
pub const STEADY: Duration = Duration::from_secs(300);
/// How long nothing may have been told for changes to good to be told at once again.
const CALM: Duration = Duration::from_secs(600);
/// How many statements of a generation are told as soon as they come.
const STATEMENTS: usize = 16;
/// How often somebody is asked to look again whether a statement lasts.
const LOOKS: u32 = 3;

/// What a condition says, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The generation of the object that it is about.
    pub generation: Option<i64>,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// What is to be done about a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write it.
    Tell,
    /// Nothing: it says this already, or is not to be written again.
    Keep,
    /// Nothing yet, but look again after this time: what it says is not true any more.
    Later(Duration),
}

/// What was told of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    generation: Option<i64>,
    /// Since all was well for the last time.
    told: BTreeSet<(String, String)>,
    /// When something was told for the last time.
    last: Time,
    /// How often it was told that all is well again, without a long time of calm.
    turns: u32,
    /// What would have been told, and since when it is the same.
    other: Option<(Said, Time)>,
    looks: u32,
}

// === impl Telling ===

impl Telling {
    /// What is to be done about a condition that is there as `live` and should be `new`.
    pub fn decide(&mut self, now: Time, live: Option<&Said>, new: &Said) -> Verdict {
        let Some(live) = live.filter(|live| live.generation == new.generation) else {
            return Verdict::Tell;
        };
        if self.told.is_empty() || self.generation != new.generation {
            // Another process has told it.
            *self = Self {
                generation: new.generation,
                told: [live.statement()].into(),
                ..Self::default()
            };
        }
        if live.is_like(new) {
            self.other = None;
            return Verdict::Keep;
        }
        let is_news = !self.told.contains(&new.statement()) && self.told.len() < STATEMENTS;
        if is_news {
            return Verdict::Tell;
        }
        if live.is_good() != new.is_good() {
            let rest = pause(self.turns).saturating_sub(now.since(self.last));
            return if rest.is_zero() {
                Verdict::Tell
            } else {
                Verdict::Later(rest)
            };
        }
        let since = match &self.other {
            Some((other, since)) if other.is_like(new) => *since,
            Some(_) | None => now,
        };
        let rest = STEADY.saturating_sub(now.since(since));
        self.other = Some((new.clone(), since));
        if rest.is_zero() {
            Verdict::Tell
        } else if self.looks < LOOKS {
            self.looks += 1;
            Verdict::Later(rest)
        } else {
            Verdict::Keep
        }
    }

    /// Takes in that a condition was written that said `before` and says `new` now.
    pub fn told(&mut self, now: Time, before: Option<&Said>, new: &Said) {
        let before = before.filter(|before| before.generation == new.generation);
        let is_same = before.is_some() && self.generation == new.generation;
        let turned = before.is_some_and(|before| new.is_good() && !before.is_good());
        let calm = now.since(self.last) >= CALM;
        let turns = if is_same && !calm { self.turns } else { 0 };
        let mut told = std::mem::take(&mut self.told);
        if !is_same || new.is_good() {
            told.clear();
        }
        told.insert(new.statement());
        *self = Self {
            generation: new.generation,
            told,
            last: now,
            turns: turns + u32::from(turned),
            other: None,
            looks: 0,
        };
    }

    /// Whether something would be decided otherwise if this were forgotten.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.told.len() > 1 || self.turns > 0 || self.other.is_some()
    }
}

/// How long it takes until all is well again, when it was told so often.
fn pause(turns: u32) -> Duration {
    match turns.checked_sub(1) {
        None => Duration::ZERO,
        Some(doubled) => Duration::from_secs(1 << doubled.min(10)).min(STEADY),
    }
}

// === impl Said ===

impl Said {
    fn statement(&self) -> (String, String) {
        (self.status.clone(), self.reason.clone())
    }

    fn is_good(&self) -> bool {
        self.status == "True"
    }

    fn is_like(&self, other: &Self) -> bool {
        self.statement() == other.statement() && same_but_numbers(&self.message, &other.message)
    }
}

#[cfg(test)]
mod tests {
    use super::{STEADY, Said, Telling, Verdict};
    use crate::time::Time;
    use std::time::Duration;

    /// A condition in a world where what is decided is done.
    #[derive(Default)]
    struct World {
        telling: Telling,
        live: Option<Said>,
        now: Time,
        writes: u32,
        later: u32,
    }

    fn said(text: &str, generation: i64) -> Said {
        let mut parts = text.split(' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        Said {
            generation: Some(generation),
            status: next(),
            reason: next(),
            message: next(),
        }
    }

    impl World {
        /// A run `seconds` after the one before.
        fn run(&mut self, seconds: u64, new: &Said) -> Verdict {
            self.now += Duration::from_secs(seconds);
            let verdict = self.telling.decide(self.now, self.live.as_ref(), new);
            match verdict {
                Verdict::Tell => {
                    self.telling.told(self.now, self.live.as_ref(), new);
                    self.live = Some(new.clone());
                    self.writes += 1;
                }
                Verdict::Later(_) => self.later += 1,
                Verdict::Keep => {}
            }
            verdict
        }
    }

    const GOOD: &str = "True Reconciled fine";

    #[test]
    fn a_statement_is_told_once_for_each_generation() {
        let mut world = World::default();
        for generation in 1..4 {
            for text in ["False A x", "Unknown B y", "False A z", "Unknown B w"]
                .into_iter()
                .cycle()
                .take(40)
            {
                world.run(1, &said(text, generation));
            }
            assert_eq!(i64::from(world.writes), 2 * generation);
        }
    }

    /// Three host names in turn, a thousand times, however fast.
    #[test]
    fn other_words_are_no_news() {
        for pause in [0, 1, 600] {
            let mut world = World::default();
            for text in ["False A one", "False A two", "False A three"]
                .into_iter()
                .cycle()
                .take(1000)
            {
                world.run(pause, &said(text, 1));
            }
            assert_eq!((world.writes, world.later), (1, 3));
        }
    }

    #[test]
    fn what_lasts_is_told() {
        for text in ["False A other", "Unknown B y"] {
            let mut world = World::default();
            for text in ["False A x", "Unknown B y", "False A x"] {
                world.run(1, &said(text, 1));
            }
            world.live = Some(said("False A x", 1));
            let writes = world.writes;
            assert_eq!(world.run(1, &said(text, 1)), Verdict::Later(STEADY));
            assert_eq!(
                world.run(200, &said(text, 1)),
                Verdict::Later(Duration::from_secs(100))
            );
            assert_eq!(world.run(100, &said(text, 1)), Verdict::Tell);
            assert_eq!(world.run(1, &said(text, 1)), Verdict::Keep);
            assert_eq!(world.writes, writes + 1);
        }
    }

    /// Nobody has to wait who was down and is up, and nobody who was up and is down. Only one who is both all the
    /// time is told about less often.
    #[test]
    fn good_and_bad_in_turn() {
        let mut world = World::default();
        for text in [GOOD, "Unknown A x", GOOD] {
            assert_eq!(world.run(0, &said(text, 1)), Verdict::Tell);
        }
        for hour in 0..24 {
            for text in ["Unknown A x", GOOD] {
                assert_eq!(world.run(1800, &said(text, 1)), Verdict::Tell, "{hour}");
            }
        }
        let mut world = World::default();
        for text in ["Unknown A x", GOOD].into_iter().cycle().take(60_000) {
            world.now += Duration::from_millis(10);
            world.run(0, &said(text, 1));
        }
        assert!(world.writes <= 22, "{} writes in ten minutes", world.writes);
        // In the end it says what is.
        let verdict = world.run(0, &said(GOOD, 1));
        let Verdict::Later(rest) = verdict else {
            return assert_eq!(verdict, Verdict::Keep);
        };
        assert_eq!(world.run(rest.as_secs() + 1, &said(GOOD, 1)), Verdict::Tell);
    }

    /// A program that starts anew knows nothing, and does not tell everything again.
    #[test]
    fn a_restart() {
        for text in ["False A x", GOOD] {
            let mut world = World {
                live: Some(said(text, 1)),
                ..World::default()
            };
            assert_eq!(world.run(1, &said(text, 1)), Verdict::Keep);
            assert!(!world.telling.counts());
            assert_eq!(world.run(1, &said(text, 2)), Verdict::Tell);
            assert_eq!(world.run(1, &said("Unknown B y", 2)), Verdict::Tell);
            assert!(world.telling.counts());
        }
    }

    /// Reasons that are made up are bounded, too.
    #[test]
    fn endless_reasons() {
        let mut world = World::default();
        for n in 0..1000 {
            world.run(1, &said(&format!("Unknown R{n} x"), 1));
        }
        assert_eq!(world.writes, 16);
    }
}
