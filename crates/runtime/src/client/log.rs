//! The write log of a run.

use super::{
    answer::Answer,
    request::Target,
    texts::Part,
    write::{Known, Write},
};
use bytes::Bytes;
use homeostat_core::loops::Sight;

/// What a run has written, in the order of the answers.
///
/// Answers are read some at a time, and when the run ends. What reads them is not in the processor's caches any
/// more after a request has been under way, so that one by one they cost more.
#[derive(Default)]
pub(super) struct Log {
    writes: Vec<Write>,
    unread: Vec<(Box<Begun>, Bytes)>,
    /// How many bytes the unread answers have.
    held: usize,
    /// How many answers there were.
    answers: usize,
}

/// How many answers are held unread, and how many bytes of them.
const HELD: (usize, usize) = (8, 64 << 10);

/// A write that is under way. It goes about in a box, since every future of a request has room for it.
pub(super) struct Begun {
    pub(super) target: Target,
    /// How many answers there were before it, and up to which version all of its kind was known. If it changes
    /// anything, its version is a later one.
    answers: usize,
    reached: Option<u64>,
    /// How the object looked before, if the run is observed.
    pub(super) sight: Option<Box<Sight>>,
}

// === impl Log ===

impl Log {
    /// Takes note that a write is about to be sent.
    pub(super) fn begin(&self, target: Target, known: Option<&dyn Known>) -> Box<Begun> {
        let part = |part| target.texts.get(part).unwrap_or_default();
        let reached =
            known.and_then(|known| known.reached(part(Part::Group), part(Part::Resource)));
        Box::new(Begun {
            target,
            answers: self.answers,
            reached,
            sight: None,
        })
    }

    /// Records a write, which the server has accepted with this answer.
    pub(super) fn end(&mut self, begun: Box<Begun>, answer: Bytes) {
        self.answers += 1;
        self.held += answer.len();
        self.unread.push((begun, answer));
        if self.unread.len() >= HELD.0 || self.held >= HELD.1 {
            self.read();
        }
    }

    /// Takes out the writes so far.
    pub(super) fn take(&mut self) -> Vec<Write> {
        self.read();
        std::mem::take(&mut self.writes)
    }

    fn read(&mut self) {
        let Self {
            writes,
            unread,
            held,
            answers,
        } = self;
        let first = *answers - unread.len();
        writes.reserve(unread.len());
        for (answer, (begun, body)) in (first..).zip(unread.drain(..)) {
            begun.read(answer, &body, writes);
        }
        *held = 0;
    }
}

// === impl Begun ===

impl Begun {
    /// Adds to `writes` what answer number `number` tells; nothing if a server of Kubernetes gives no such.
    fn read(self, number: usize, body: &[u8], writes: &mut Vec<Write>) {
        let Some(Answer { object, items }) = Answer::read(body) else {
            return;
        };
        let Some(object) = object else {
            // The items of a deleted collection come in the state before or with their deletion
            // marked, which is not told apart.
            let each = items.iter();
            let each = each.filter_map(|item| Write::new(self.target.clone(), number, None, item));
            writes.extend(each);
            return;
        };
        let reached = self.reached(writes);
        let Some(mut write) = Write::new(self.target, number, reached, &object) else {
            return;
        };
        if let Some(sight) = self.sight {
            let after = (!write.is_gone()).then(|| serde_json::from_slice(body).ok());
            write.set_sight(Sight {
                after: after.flatten(),
                ..*sight
            });
        }
        writes.push(write);
    }

    /// The version that the write is later than if it changes anything, as far as that is known.
    fn reached(&self, writes: &[Write]) -> Option<u64> {
        let part = |part| self.target.texts.get(part).unwrap_or_default();
        let kind = (part(Part::Resource), part(Part::Group));
        let before = writes.iter().filter(|write| {
            write.answer() < self.answers && (write.resource(), write.group()) == kind
        });
        before.filter_map(Write::number).max().max(self.reached)
    }
}

#[cfg(test)]
mod tests {
    use super::{Begun, HELD, Log};
    use crate::client::request::Target;
    use http::Request;

    fn begin(log: &Log, name: &str) -> Box<Begun> {
        let path = format!("/api/v1/namespaces/a/configmaps/{name}");
        let request = Request::patch(path).body(()).unwrap();
        log.begin(Target::of(&request).unwrap(), None)
    }

    fn end(log: &mut Log, begun: Box<Begun>, version: u64) {
        let body =
            format!(r#"{{"kind":"ConfigMap","metadata":{{"resourceVersion":"{version}"}}}}"#);
        log.end(begun, body.into());
    }

    #[test]
    fn a_write_is_compared_with_those_that_were_over_when_it_began() {
        let mut log = Log::default();
        let first = begin(&log, "a");
        end(&mut log, first, 5);
        let (slow, quick) = (begin(&log, "a"), begin(&log, "b"));
        end(&mut log, quick, 7);
        let (again, other) = (begin(&log, "b"), begin(&log, "c"));
        // What the server did before version 7 is answered after it.
        end(&mut log, slow, 6);
        end(&mut log, again, 7);
        end(&mut log, other, 8);
        let changed: Vec<_> = log
            .take()
            .iter()
            .map(|write| (write.number().unwrap(), write.changed()))
            .collect();
        let expected = [
            (5, None),
            (7, Some(true)),
            (6, Some(true)),
            (7, Some(false)),
            (8, Some(true)),
        ];
        assert_eq!(changed, expected);
    }

    #[test]
    fn few_answers_are_held_however_many_come() {
        let mut log = Log::default();
        let (most, bytes) = HELD;
        for number in 0..1000 {
            let begun = begin(&log, &format!("object-{number}"));
            if number % 100 == 50 {
                log.end(begun, vec![b' '; bytes].into());
            } else {
                end(&mut log, begun, number);
            }
            assert!(log.unread.len() < most && log.held < bytes, "{number}");
        }
        let names: Vec<_> = log
            .take()
            .iter()
            .map(|write| write.name().to_owned())
            .collect();
        let expected: Vec<_> = (0..1000)
            .filter(|number| number % 100 != 50)
            .map(|number| format!("object-{number}"))
            .collect();
        assert_eq!(names, expected);
        assert!(log.take().is_empty());
    }
}
