//! A lease server with versions, and candidates that talk to it.

mod interleavings;
mod scripts;
mod seeds;

use super::{Action, Answer, Config, Draft, Input, Machine, Output, Record};
use crate::time::Time;
use std::time::Duration;

/// Keeps one lease as an API server does: a write must name the version that is there.
#[derive(Clone, Debug, Default)]
struct Server {
    revision: u64,
    lease: Option<(u64, Record)>,
}

/// A request on its way.
#[derive(Clone, Debug)]
enum Request {
    Read,
    Write(Draft),
}

impl Server {
    fn answer(&mut self, request: &Request) -> Answer {
        match (request, &self.lease) {
            (Request::Read, Some((version, record))) => Answer::Found {
                version: version.to_string(),
                record: record.clone(),
            },
            (
                Request::Read
                | Request::Write(Draft {
                    version: Some(_), ..
                }),
                None,
            ) => Answer::Missing,
            (Request::Write(draft), lease) => {
                let present = lease.as_ref().map(|(version, _)| version.to_string());
                if draft.version != present {
                    return Answer::Conflict;
                }
                self.revision += 1;
                self.lease = Some((self.revision, draft.record.clone()));
                Answer::Written {
                    version: self.revision.to_string(),
                }
            }
        }
    }
}

/// What the machine asks for, if it is a request.
fn request(action: &Action) -> Option<(u64, Time, Request)> {
    match action {
        Action::Read { attempt, deadline } => Some((*attempt, *deadline, Request::Read)),
        Action::Write {
            attempt,
            deadline,
            draft,
        } => Some((*attempt, *deadline, Request::Write(draft.clone()))),
        Action::Sleep { .. } | Action::End => None,
    }
}

fn secs(secs: u64) -> Time {
    Time::ORIGIN + Duration::from_secs(secs)
}

fn leads(machine: &Machine, now: Time) -> bool {
    machine.leads_until().is_some_and(|until| now < until)
}

/// Carries out what the machine asks for, at once and without faults, until it sleeps or ends.
fn settle(machine: &mut Machine, server: &mut Server, now: Time) -> Vec<Output> {
    let mut outputs = Vec::new();
    for _ in 0..10 {
        let action = machine.action();
        let input = if let Some((attempt, _, request)) = request(&action) {
            Input::Answered {
                attempt,
                answer: server.answer(&request),
            }
        } else if matches!(action, Action::Sleep { until } if until <= now) {
            Input::Awake
        } else {
            return outputs;
        };
        outputs.extend(machine.on(now, input, 0.0));
    }
    panic!("it never rests: {machine:?}");
}
