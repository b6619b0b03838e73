//! What to do next, and what it means.

use super::{Action, Change, Config, Fault, Input, Output, Phase, Streaming};
use crate::time::Time;
use std::time::Duration;

/// The list+watch protocol for one collection. The module says what it guarantees.
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    state: State,
    /// Up to where the collection is known: the version of the last complete list, then that of the
    /// last event. Empty before the first list.
    version: String,
    /// No watch from the last list has come to anything yet.
    unproven: bool,
    /// Lists come in one answer: one in pages took so long that its version expired.
    whole: bool,
    /// Initial lists are not streamed any more.
    refused: bool,
    /// Streaming lists in a row that began and did not end.
    unfinished: u32,
    /// Failures in a row.
    failures: u32,
    /// Since when watches go on without trouble.
    healthy_since: Option<Time>,
    /// Nothing happens before this moment.
    pause: Option<Time>,
    /// The pause is there because the server did not answer, and it has asked for no more than this.
    not_before: Option<Time>,
}

#[derive(Clone, Debug)]
enum State {
    /// There is no list. A streaming list is asked for.
    Unlisted,
    /// A streaming list is open and its end has not come.
    Streaming {
        /// When something last came.
        active: Time,
    },
    /// A page is asked for: the first one, or the one after those that came.
    Paging(Option<Resume>),
    /// The collection is known up to `version`. A watch from there is asked for.
    Listed,
    /// A watch is open.
    Watching {
        opened: Time,
        /// When something last came.
        active: Time,
        /// Whether an event of this watch changed `version`.
        moved: bool,
    },
}

/// Where a list in pages goes on.
#[derive(Clone, Debug)]
struct Resume {
    token: String,
    /// The version of the first page. Conforming servers give all pages the same one; where they
    /// do not, nothing is missed by watching from the earliest.
    version: String,
}

/// Streaming lists that break off in a row before the next list comes in pages.
const UNFINISHED_LIMIT: u32 = 2;

// === impl Machine ===

impl Machine {
    /// A machine that knows nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let refused = config.streaming == Streaming::Never;
        let mut machine = Self {
            config,
            state: State::Unlisted,
            version: String::new(),
            unproven: false,
            whole: false,
            refused,
            unfinished: 0,
            failures: 0,
            healthy_since: None,
            pause: None,
            not_before: None,
        };
        machine.start_over();
        machine
    }

    /// What to do next. It stays the same until the next [input](Self::on).
    #[must_use]
    pub fn action(&self) -> Action {
        if let Some(until) = self.pause {
            return Action::Sleep { until };
        }
        match &self.state {
            State::Unlisted => self.watch(self.list_version().unwrap_or_default(), true),
            State::Listed => self.watch(self.version.clone(), false),
            State::Streaming { active } => Action::Read {
                deadline: *active + self.config.streaming_idle,
            },
            State::Watching {
                opened: _,
                active,
                moved: _,
            } => Action::Read {
                deadline: *active + self.config.watch_timeout + self.config.idle_margin,
            },
            State::Paging(resume) => Action::List {
                limit: self
                    .config
                    .page_size
                    .filter(|_| !self.whole && !self.config.any_version),
                continue_token: resume.as_ref().map(|resume| resume.token.clone()),
                resource_version: match resume {
                    Some(_) => None,
                    None => self.list_version(),
                },
                timeout: self.config.list_timeout,
            },
        }
    }

    /// Takes in what came of the [action](Self::action) and says what it means.
    ///
    /// `random` is a number drawn evenly from `[0, 1)`. An input that is no answer to the action is
    /// a mistake of the driver; it changes nothing.
    pub fn on(&mut self, now: Time, input: Input<'_>, random: f64) -> &'static [Output] {
        match input {
            Input::Page {
                version,
                continue_token,
            } => self.on_page(version, continue_token),
            Input::Opened => self.on_opened(now),
            Input::Event { change, version } => self.on_event(now, change, version),
            Input::Bookmark {
                version,
                initial_events_end,
            } => self.on_bookmark(now, version, initial_events_end),
            Input::Closed => {
                self.not_before = Some(now);
                self.on_closed(now, random)
            }
            Input::Failed(fault) => {
                self.not_before = match fault {
                    Fault::Silent => Some(now),
                    Fault::Other { retry_after } => Some(now + self.floor(retry_after)),
                    Fault::Refused | Fault::Forbidden | Fault::Missing | Fault::Expired => None,
                };
                self.on_failed(now, fault, random)
            }
            Input::Awake => {
                self.pause = None;
                self.not_before = None;
                &[]
            }
        }
    }

    /// Up to where the collection is known, which is what the follower has come to when it has taken
    /// in all outputs so far. Empty if nothing is known, or no longer.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// When a sleep may end before its time, because there is reason to believe that the server answers again.
    /// `None` if the server did answer, and waiting is what there is to do.
    #[must_use]
    pub fn not_before(&self) -> Option<Time> {
        self.not_before
    }

    fn on_page(&mut self, version: &str, continue_token: Option<&str>) -> &'static [Output] {
        use Output::{Init, InitDone, Objects};
        let State::Paging(resume) = &mut self.state else {
            return self.misplaced();
        };
        let first = resume.is_none();
        let version = match resume.take() {
            Some(resume) => resume.version,
            None => version.to_owned(),
        };
        if let Some(token) = continue_token {
            *resume = Some(Resume {
                token: token.to_owned(),
                version,
            });
            return if first { &[Init, Objects] } else { &[Objects] };
        }
        self.listed(version);
        self.state = State::Listed;
        if first {
            &[Init, Objects, InitDone]
        } else {
            &[Objects, InitDone]
        }
    }

    fn on_opened(&mut self, now: Time) -> &'static [Output] {
        match self.state {
            State::Unlisted => {
                self.state = State::Streaming { active: now };
                &[Output::Init]
            }
            State::Listed => {
                self.watching(now);
                &[]
            }
            State::Streaming { .. } | State::Paging(_) | State::Watching { .. } => self.misplaced(),
        }
    }

    fn on_event(&mut self, now: Time, change: Change, version: &str) -> &'static [Output] {
        match (&mut self.state, change) {
            (State::Streaming { active }, change) => {
                *active = now;
                match change {
                    Change::Applied => &[Output::InitApply],
                    Change::Deleted => &[Output::Hold],
                }
            }
            (
                State::Watching {
                    opened: _,
                    active,
                    moved,
                },
                change,
            ) => {
                *active = now;
                *moved |= self.version != version;
                self.reached(version);
                match change {
                    Change::Applied => &[Output::Apply],
                    Change::Deleted => &[Output::Delete],
                }
            }
            (State::Unlisted | State::Paging(_) | State::Listed, _) => self.misplaced(),
        }
    }

    fn on_bookmark(&mut self, now: Time, version: &str, end: bool) -> &'static [Output] {
        match &mut self.state {
            State::Streaming { .. } if end => {
                self.watching(now);
                self.unfinished = 0;
                self.listed(version.to_owned());
                &[Output::InitDone]
            }
            // A server that streams lists sends no other bookmark before their end.
            State::Streaming { .. } => {
                self.stop_streaming();
                &[]
            }
            State::Watching {
                opened: _,
                active,
                moved: _,
            } => {
                *active = now;
                self.reached(version);
                &[]
            }
            State::Unlisted | State::Paging(_) | State::Listed => self.misplaced(),
        }
    }

    fn on_closed(&mut self, now: Time, random: f64) -> &'static [Output] {
        match self.state {
            State::Streaming { .. } => self.streaming_broke_off(now, None, random),
            State::Watching { .. } => {
                if !self.leave_watch(now) {
                    self.back_off(now, None, random);
                }
            }
            State::Unlisted | State::Paging(_) | State::Listed => return self.misplaced(),
        }
        &[]
    }

    fn on_failed(&mut self, now: Time, fault: Fault, random: f64) -> &'static [Output] {
        match self.state {
            State::Unlisted => self.on_streaming_failed(now, fault, random, false),
            State::Streaming { .. } => self.on_streaming_failed(now, fault, random, true),
            State::Paging(_) => self.on_list_failed(now, fault, random),
            State::Listed => self.on_watch_failed(now, fault, random, Phase::WatchStart),
            State::Watching { .. } => {
                self.leave_watch(now);
                self.on_watch_failed(now, fault, random, Phase::Watch)
            }
        }
    }

    /// A streaming list failed, after it had begun or before.
    fn on_streaming_failed(
        &mut self,
        now: Time,
        fault: Fault,
        random: f64,
        begun: bool,
    ) -> &'static [Output] {
        match (fault, begun) {
            // Silence means that the server sent all objects and does not know that an end is due.
            (Fault::Refused, _) | (Fault::Silent, true) => {
                self.stop_streaming();
                return &[];
            }
            // Who may not watch may be allowed to list, and what cannot be watched may be there to be listed.
            (Fault::Forbidden | Fault::Missing, false) => {
                self.state = State::Paging(None);
                return &[];
            }
            (Fault::Expired, _) => self.version.clear(),
            (Fault::Forbidden | Fault::Missing | Fault::Silent | Fault::Other { .. }, _) => {}
        }
        if begun {
            self.streaming_broke_off(now, fault.retry_after(), random);
        } else {
            self.back_off(now, fault.retry_after(), random);
        }
        if fault == Fault::Expired {
            &[]
        } else {
            &[Output::Report(Phase::List)]
        }
    }

    /// A page failed. Whatever can be cured by waiting is asked for again; it delivered nothing.
    fn on_list_failed(&mut self, now: Time, fault: Fault, random: f64) -> &'static [Output] {
        let started = matches!(self.state, State::Paging(Some(_)));
        match fault {
            Fault::Expired => {
                // The snapshot is gone because the pages took too long. One answer takes less; only
                // if that does not help either is it time to wait.
                if self.whole || !started {
                    self.back_off(now, None, random);
                }
                if !started {
                    self.version.clear();
                }
                self.whole = true;
                self.state = State::Paging(None);
                return &[];
            }
            // A page that the server does not take never comes; the first one may.
            Fault::Refused => self.state = State::Paging(None),
            // Once it is served, it may be as a stream.
            Fault::Missing => self.start_over(),
            Fault::Forbidden | Fault::Silent | Fault::Other { .. } => {}
        }
        self.back_off(now, fault.retry_after(), random);
        &[Output::Report(Phase::List)]
    }

    /// A watch failed, and the state is `Listed`.
    fn on_watch_failed(
        &mut self,
        now: Time,
        fault: Fault,
        random: f64,
        phase: Phase,
    ) -> &'static [Output] {
        match fault {
            Fault::Expired => {
                // Once, this is the normal end of a long absence. Again, the list took longer than
                // the server remembers.
                if self.unproven {
                    self.whole = true;
                    self.back_off(now, None, random);
                }
                self.start_over();
                return &[];
            }
            // Only another version can help against that.
            Fault::Refused => self.start_over(),
            // It was listed and cannot be watched, so lists are all that there is.
            Fault::Missing if self.unproven => self.state = State::Paging(None),
            Fault::Forbidden | Fault::Missing | Fault::Silent | Fault::Other { .. } => {}
        }
        self.back_off(now, fault.retry_after(), random);
        match phase {
            Phase::List => &[Output::Report(Phase::List)],
            Phase::WatchStart => &[Output::Report(Phase::WatchStart)],
            Phase::Watch => &[Output::Report(Phase::Watch)],
        }
    }

    /// A list of this version is complete.
    fn listed(&mut self, version: String) {
        self.version = version;
        self.unproven = true;
    }

    /// A watch is open, and the collection is known up to where it begins.
    fn watching(&mut self, now: Time) {
        self.state = State::Watching {
            opened: now,
            active: now,
            moved: false,
        };
        self.healthy_since.get_or_insert(now);
    }

    /// A watch ended; says whether it was of use.
    fn leave_watch(&mut self, now: Time) -> bool {
        let State::Watching {
            opened,
            active: _,
            moved,
        } = self.state
        else {
            return false;
        };
        self.state = State::Listed;
        let useful = moved || now.since(opened) >= self.config.short_watch;
        if useful {
            self.prove();
        }
        useful
    }

    /// The collection is known up to `version`. Getting further than the list shows that its
    /// version was of use; the same version again shows nothing.
    fn reached(&mut self, version: &str) {
        if self.version != version {
            self.version.clear();
            self.version.push_str(version);
            self.prove();
        }
    }

    fn prove(&mut self) {
        self.unproven = false;
        self.whole = false;
    }

    /// The next thing to do is an initial list.
    fn start_over(&mut self) {
        let streams = self.config.bookmarks && !self.refused;
        self.state = if streams {
            State::Unlisted
        } else {
            State::Paging(None)
        };
    }

    /// This list comes in pages, and unless streaming is to be tried always, so do all others.
    fn stop_streaming(&mut self) {
        self.refused = self.config.streaming != Streaming::Always;
        self.unfinished = 0;
        self.state = State::Paging(None);
    }

    /// A streaming list ended before its end. The next one starts anew.
    fn streaming_broke_off(&mut self, now: Time, retry_after: Option<Duration>, random: f64) {
        self.unfinished += 1;
        if self.unfinished >= UNFINISHED_LIMIT {
            self.stop_streaming();
        } else {
            self.start_over();
        }
        self.back_off(now, retry_after, random);
    }

    /// One more failure: nothing happens for a while. What the server asks for is a floor, in bounds.
    fn back_off(&mut self, now: Time, retry_after: Option<Duration>, random: f64) {
        let healthy = self.healthy_since.take();
        if healthy.is_some_and(|since| now.since(since) >= self.config.healthy) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let delay = self.config.backoff.delay(self.failures, random);
        self.pause = Some(now + delay.max(self.floor(retry_after)));
    }

    /// What the server asks for, in bounds.
    fn floor(&self, retry_after: Option<Duration>) -> Duration {
        let asked = retry_after.unwrap_or_default();
        asked.min(self.config.longest_retry_after)
    }

    /// The `resourceVersion` of an initial list; `None`: not sent.
    fn list_version(&self) -> Option<String> {
        match (self.config.any_version, self.version.as_str()) {
            (false, _) => None,
            (true, "") => Some("0".to_owned()),
            // Never back in time.
            (true, seen) => Some(seen.to_owned()),
        }
    }

    fn watch(&self, resource_version: String, send_initial_events: bool) -> Action {
        Action::Watch {
            resource_version,
            send_initial_events,
            bookmarks: self.config.bookmarks,
            timeout: self.config.watch_timeout,
            start_timeout: self.config.start_timeout,
        }
    }

    fn misplaced(&self) -> &'static [Output] {
        debug_assert!(false, "this input is no answer to {:?}", self.action());
        &[]
    }
}
