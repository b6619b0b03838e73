//! Every sequence of up to six steps of a small world: a server with three objects, writes, losses
//! of history, connections that fail or close, and a machine whose outputs a follower keeps in a
//! map. After the steps all goes well; then the follower's map must equal the server's objects.

use super::{Action, Change, Config, Fault, Input, Machine, Output};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};

/// With a page size of one these are a first page, one in the middle, and a last one.
const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(&'static str),
    Delete(&'static str),
    /// The server forgets its history.
    Compact,
    /// The server sends a bookmark.
    Bookmark,
    /// The machine's action is carried out.
    Turn,
    /// The machine's action fails.
    Fail,
    /// The open watch comes to its end.
    Close,
}

const STEPS: [Step; 8] = [
    Step::Put("a"),
    Step::Delete("a"),
    Step::Delete("b"),
    Step::Compact,
    Step::Bookmark,
    Step::Turn,
    Step::Fail,
    Step::Close,
];

/// What the server makes of `sendInitialEvents`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Streams {
    Yes,
    Refuses,
    Ignores,
}

#[derive(Clone)]
struct Server {
    streams: Streams,
    /// Whether it tells of an expired version in the stream, or instead of it.
    expires_in_stream: bool,
    revision: u64,
    /// Nothing before this revision is known any more.
    compacted: u64,
    log: Vec<Write>,
    connection: Option<Connection>,
}

#[derive(Clone, Copy)]
struct Write {
    revision: u64,
    change: Change,
    name: &'static str,
}

#[derive(Clone, Default)]
struct Connection {
    queue: VecDeque<Message>,
    /// The end of the initial events is still due.
    initial: bool,
}

#[derive(Clone, Copy)]
enum Message {
    Write(Write),
    Bookmark(u64),
    Expired,
}

type Objects = BTreeMap<&'static str, u64>;

/// Follows as users of kube do: what a list mentions is collected and replaces the map at its end.
#[derive(Clone, Default)]
struct Follower {
    objects: Objects,
    list: Option<Objects>,
    held: Vec<&'static str>,
}

#[derive(Clone)]
struct World {
    server: Server,
    machine: Machine,
    follower: Follower,
    now: Time,
}

// === impl Server ===

impl Server {
    fn write(&mut self, change: Change, name: &'static str) {
        self.revision += 1;
        let write = Write {
            revision: self.revision,
            change,
            name,
        };
        self.log.push(write);
        if let Some(connection) = &mut self.connection {
            connection.queue.push_back(Message::Write(write));
        }
    }

    fn objects_at(&self, revision: u64) -> Objects {
        let mut objects = Objects::new();
        for write in self
            .log
            .iter()
            .take_while(|write| write.revision <= revision)
        {
            match write.change {
                Change::Applied => objects.insert(write.name, write.revision),
                Change::Deleted => objects.remove(write.name),
            };
        }
        objects
    }

    fn objects(&self) -> Objects {
        self.objects_at(self.revision)
    }

    /// The objects of a page, the version, and the next token: the snapshot and the last name.
    fn list(&self, limit: Option<u32>, token: Option<&str>) -> Result<Page, Fault> {
        let (revision, after) = match token {
            Some(token) => token.split_once(':').unwrap(),
            None => ("", ""),
        };
        let revision = revision.parse().unwrap_or(self.revision);
        if revision < self.compacted {
            return Err(Fault::Expired);
        }
        let mut rest = self
            .objects_at(revision)
            .into_iter()
            .filter(|(name, _)| *name > after);
        let page: Vec<_> = rest
            .by_ref()
            .take(limit.map_or(9, |limit| limit as usize))
            .collect();
        let token = rest
            .next()
            .is_some()
            .then(|| format!("{revision}:{}", page[page.len() - 1].0));
        Ok((page, revision.to_string(), token))
    }

    fn watch(&mut self, version: &str, initial: bool) -> Result<(), Fault> {
        if initial && self.streams == Streams::Refuses {
            return Err(Fault::Refused);
        }
        let mut queue = VecDeque::new();
        if initial {
            let added = |(name, revision)| Write {
                revision,
                change: Change::Applied,
                name,
            };
            queue.extend(self.objects().into_iter().map(added).map(Message::Write));
        } else {
            let version: u64 = version.parse().unwrap();
            if version < self.compacted && !self.expires_in_stream {
                return Err(Fault::Expired);
            } else if version < self.compacted {
                queue.push_back(Message::Expired);
            } else {
                let later = self.log.iter().filter(|write| write.revision > version);
                queue.extend(later.copied().map(Message::Write));
            }
        }
        self.connection = Some(Connection { queue, initial });
        Ok(())
    }
}

type Page = (Vec<(&'static str, u64)>, String, Option<String>);

// === impl Follower ===

impl Follower {
    fn follow(&mut self, outputs: &[Output], page: &[(&'static str, u64)], event: Option<Write>) {
        for output in outputs {
            match output {
                Output::Init => {
                    self.list = Some(Objects::new());
                    self.held.clear();
                }
                Output::Objects => self.list.as_mut().unwrap().extend(page.iter().copied()),
                Output::InitApply => {
                    let event = event.unwrap();
                    self.held.retain(|name| *name != event.name);
                    self.list
                        .as_mut()
                        .unwrap()
                        .insert(event.name, event.revision);
                }
                Output::Hold => {
                    assert!(self.list.is_some());
                    self.held.push(event.unwrap().name);
                }
                Output::InitDone => {
                    self.objects = self.list.take().unwrap();
                    for name in self.held.drain(..) {
                        self.objects.remove(name);
                    }
                }
                Output::Apply => {
                    assert!(self.list.is_none());
                    self.objects
                        .insert(event.unwrap().name, event.unwrap().revision);
                }
                Output::Delete => {
                    assert!(self.list.is_none());
                    self.objects.remove(event.unwrap().name);
                }
                Output::Report(_) => {}
            }
        }
    }
}

// === impl World ===

impl World {
    fn new(streams: Streams, expires_in_stream: bool) -> Self {
        let mut server = Server {
            streams,
            expires_in_stream,
            revision: 0,
            compacted: 0,
            log: Vec::new(),
            connection: None,
        };
        for name in NAMES {
            server.write(Change::Applied, name);
        }
        let config = Config {
            page_size: Some(1),
            ..Config::default()
        };
        Self {
            server,
            machine: Machine::new(config),
            follower: Follower::default(),
            now: Time::ORIGIN,
        }
    }

    /// Takes a step; false if there is nothing that it could do.
    fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Put(name) => self.server.write(Change::Applied, name),
            Step::Delete(name) if self.server.objects().contains_key(name) => {
                self.server.write(Change::Deleted, name);
            }
            Step::Compact if self.server.compacted < self.server.revision => {
                self.server.compacted = self.server.revision;
            }
            Step::Bookmark => {
                let revision = self.server.revision;
                let streams = self.server.streams == Streams::Yes;
                match &mut self.server.connection {
                    Some(connection) if !(connection.initial && streams) => {
                        connection.queue.push_back(Message::Bookmark(revision));
                    }
                    _ => return false,
                }
            }
            Step::Turn => return self.turn(),
            Step::Fail if !matches!(self.machine.action(), Action::Sleep { .. }) => {
                let fault = Fault::Other { retry_after: None };
                let outputs = self.fail(fault);
                assert!(matches!(outputs, [Output::Report(_)]));
            }
            Step::Close if matches!(self.machine.action(), Action::Read { .. }) => {
                self.on(Input::Closed, &[], None);
            }
            Step::Delete(_) | Step::Compact | Step::Fail | Step::Close => return false,
        }
        true
    }

    /// Carries out the machine's action; false if it reads a watch on which nothing comes any more.
    fn turn(&mut self) -> bool {
        match self.machine.action() {
            Action::Sleep { until } => {
                self.now = until;
                self.on(Input::Awake, &[], None);
            }
            Action::List {
                limit,
                continue_token,
                ..
            } => match self.server.list(limit, continue_token.as_deref()) {
                Ok((page, version, token)) => {
                    let input = Input::Page {
                        version: &version,
                        continue_token: token.as_deref(),
                    };
                    self.on(input, &page, None);
                }
                Err(fault) => _ = self.fail(fault),
            },
            Action::Watch {
                resource_version,
                send_initial_events,
                ..
            } => match self.server.watch(&resource_version, send_initial_events) {
                Ok(()) => _ = self.on(Input::Opened, &[], None),
                Err(fault) => _ = self.fail(fault),
            },
            Action::Read { deadline } => return self.read(deadline),
        }
        true
    }

    fn read(&mut self, deadline: Time) -> bool {
        let connection = self.server.connection.as_mut().unwrap();
        let initial_events_end = connection.initial;
        match connection.queue.pop_front() {
            Some(Message::Write(write)) => {
                let version = write.revision.to_string();
                let input = Input::Event {
                    change: write.change,
                    version: &version,
                };
                self.on(input, &[], Some(write));
            }
            Some(Message::Bookmark(revision)) => {
                let version = revision.to_string();
                let input = Input::Bookmark {
                    version: &version,
                    initial_events_end: false,
                };
                self.on(input, &[], None);
            }
            Some(Message::Expired) => _ = self.fail(Fault::Expired),
            None if initial_events_end && self.server.streams == Streams::Ignores => {
                self.now = deadline;
                self.fail(Fault::Silent);
            }
            None if initial_events_end => {
                connection.initial = false;
                let version = self.server.revision.to_string();
                self.on(
                    Input::Bookmark {
                        version: &version,
                        initial_events_end,
                    },
                    &[],
                    None,
                );
            }
            None => return false,
        }
        true
    }

    fn fail(&mut self, fault: Fault) -> &'static [Output] {
        let outputs = self.on(Input::Failed(fault), &[], None);
        let silent = outputs
            .iter()
            .all(|output| !matches!(output, Output::Report(_)));
        assert!(
            silent || fault != Fault::Expired,
            "an expired version is nobody's business"
        );
        outputs
    }

    fn on(
        &mut self,
        input: Input<'_>,
        page: &[(&'static str, u64)],
        event: Option<Write>,
    ) -> &'static [Output] {
        let outputs = self.machine.on(self.now, input, 0.5);
        self.follower.follow(outputs, page, event);
        if !matches!(self.machine.action(), Action::Read { .. }) {
            self.server.connection = None;
        }
        outputs
    }

    /// Lets all go well until the watch has caught up, and compares. `steps` went before.
    fn settle(&mut self, steps: &[Step]) {
        for _ in 0..40 {
            if !self.turn() {
                assert_eq!(
                    self.follower.objects,
                    self.server.objects(),
                    "after {steps:?}"
                );
                assert!(self.follower.list.is_none(), "after {steps:?}");
                return;
            }
        }
        panic!("the watch does not catch up after {steps:?}");
    }
}

/// Takes every sequence of `left` further steps and of less. Returns how many sequences there were.
fn explore(world: &World, left: usize, steps: &mut Vec<Step>) -> usize {
    let mut sequences = 1;
    world.clone().settle(steps);
    if left > 0 {
        for step in STEPS {
            let mut next = world.clone();
            if next.step(step) {
                steps.push(step);
                sequences += explore(&next, left - 1, steps);
                steps.pop();
            }
        }
    }
    sequences
}

// T13, T15, T16, T17, T21, T23, T28: no ghosts, nothing missing, no endless round.
#[test]
fn follower_always_converges() {
    let mut sequences = 0;
    for streams in [Streams::Yes, Streams::Refuses, Streams::Ignores] {
        for expires_in_stream in [false, true] {
            let mut world = World::new(streams, expires_in_stream);
            sequences += explore(&world, 6, &mut Vec::new());
            world.settle(&[]);
            sequences += explore(&world, 6, &mut Vec::new());
        }
    }
    assert!(
        sequences > 400_000,
        "only {sequences} sequences were possible"
    );
}
