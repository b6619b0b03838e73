//! What was seen at one place of an object.

use super::difference::{digest, likeness};
use super::managed::{self, Manager};
use super::path::{Path, Segment};
use super::{Cause, Form, Object, Sight, Turn};
use crate::compare::Shape;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many characters of a value are shown.
const TEXT: usize = 80;

/// Who has caused a run, for what its writes prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It failed, or it tries again.
    Excused,
    /// Somebody else has changed the desired state.
    Desired,
    /// Something else happened that is not the key's doing.
    Foreign,
    /// The program wanted it.
    Planned,
    /// Only the key's own writes: their events, and what others did at once to the objects named.
    Own { echoes: Vec<Object> },
}

/// What was seen at a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// What the last run left there; the outer `None` if that is not known.
    pub(super) last: Option<Mark>,
    /// What somebody else put there in its stead.
    pub(super) theirs: Option<Mark>,
    /// In how many runs that only own events have caused it changed.
    pub(super) pure: u32,
    /// In how many that only own events and echoes of this very object have caused.
    pub(super) own: u32,
    /// In how many of these only the order changed.
    pub(super) reordered: u32,
    /// In how many of the key's own runs it changed and changed back.
    pub(super) flipped: u32,
    /// How often it was put back after somebody else's change.
    pub(super) put_back: u32,
    /// In how many runs the server did not keep what was sent for it.
    pub(super) not_kept: u32,
    /// Whether the server has put something there that was not sent.
    pub(super) by_server: bool,
    /// In which direction a number has gone; `None` once it was no number or has turned.
    pub(super) course: Option<Ordering>,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) managers: BTreeSet<Manager>,
    /// The values that it has had, while they are few.
    turns: Turns,
    /// Who else wrote there, if anybody did.
    pub(super) opponent: Option<String>,
    /// Whether the opponent goes by the same name.
    pub(super) own_name: bool,
}

/// The values that a place has had in runs that the key itself has caused.
#[derive(Clone, Debug, Default)]
struct Turns {
    values: Vec<Stage>,
    /// How often one came back that was there before.
    returns: u32,
    /// Whether there were more than are kept.
    many: bool,
}

/// A value, and what has led to it.
#[derive(Clone, Debug)]
struct Stage {
    exact: Option<u64>,
    text: Option<String>,
    causes: BTreeSet<String>,
}

/// How many values may take turns.
const TURNS: usize = 3;
/// How often one of them must come back.
const RETURNS: u32 = 2;

/// A value, as far as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// `None` if there was nothing.
    pub(super) exact: Option<u64>,
    /// Without what times say.
    pub(super) like: Option<u64>,
}

/// What the writes of a run to an object look like, taken together.
pub(super) struct Seen<'a> {
    pub(super) kind: &'a Kind,
    pub(super) before: Option<&'a Value>,
    pub(super) after: Option<&'a Value>,
    /// Who has written.
    pub(super) manager: Option<&'a Arc<str>>,
    pub(super) secret: bool,
    pub(super) fight: Fight,
    /// Whether somebody else's change of this object is among the causes of the run.
    pub(super) echoed: bool,
    /// Whether the run makes something new, of whichever object.
    pub(super) answers: bool,
    /// What has caused the run.
    pub(super) causes: &'a [Cause],
    /// Who else has written the object since the last run, if the server tells.
    pub(super) suspect: Option<&'a Manager>,
}

// === impl Mark ===

impl Mark {
    pub(super) fn of(path: &Path, object: Option<&Value>) -> Self {
        let value = object.and_then(|object| path.find(object));
        if path.segments().is_empty() {
            // Of the object as a whole it only counts whether it is there.
            let there = value.map(|_| 0);
            return Self {
                exact: there,
                like: there,
            };
        }
        Self {
            exact: value.map(digest),
            like: value.map(likeness),
        }
    }
}

/// Whether putting something back may be part of a fight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fight {
    /// What caused the run may be the very change that it undoes.
    Possible,
    /// The object has a new generation. If the change that is undone is not what made it, the write
    /// is the answer to what did.
    OverSpec,
    /// Something else caused the run.
    Impossible,
}

// === impl Seen ===

impl Seen<'_> {
    /// A value as it is shown.
    pub(super) fn text(&self, value: Option<&Value>) -> Option<String> {
        let text = value.filter(|_| !self.secret)?.to_string();
        Some(match text.char_indices().nth(TEXT) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        })
    }
}

// === impl Trace ===

impl Trace {
    /// Looks whether somebody else has changed what the last run left.
    pub(super) fn notice_others(&mut self, path: &Path, seen: &Seen<'_>) {
        let now = Mark::of(path, seen.before);
        let changed = self.last.is_some_and(|last| last.exact != now.exact);
        if !changed {
            return;
        }
        let own = seen.manager.map(|name| &**name);
        let opponent = seen.before.and_then(|before| {
            let owners = managed::owners(before, path);
            self.managers.extend(owners.iter().cloned());
            let other = owners.iter().find(|owner| Some(&*owner.name) != own);
            // Nobody owns what is not there, so it is whoever has written.
            let suspect = || seen.suspect.cloned().filter(|_| now.exact.is_none());
            let same = || owners.first().cloned();
            other.cloned().or_else(suspect).or_else(same)
        });
        if let Some(Manager { name, .. }) = opponent {
            self.own_name = own == Some(&*name);
            self.opponent = Some(name);
        }
    }

    /// Takes in that the run has changed the place.
    pub(super) fn changed(
        &mut self,
        path: &Path,
        reordered: bool,
        sights: &[&Sight],
        seen: &Seen<'_>,
    ) {
        let (before, after) = (Mark::of(path, seen.before), Mark::of(path, seen.after));
        let flipped = before.exact == after.exact;
        let pure = matches!(seen.kind, Kind::Own { echoes } if echoes.is_empty());
        let own = pure || seen.echoed;

        self.put_back += u32::from(self.is_put_back(path, before, after, seen));
        if self.last.is_some_and(|last| last.exact != before.exact) {
            self.theirs = Some(before);
        }
        if flipped {
            self.flipped += u32::from(matches!(seen.kind, Kind::Own { .. }));
        } else {
            if own {
                self.turns.take(path, seen, before, after);
            }
            self.turn(path, seen, self.pure + self.own == 0);
            self.pure += u32::from(pure);
            self.own += u32::from(own);
            self.reordered += u32::from(reordered && own);
        }
        let change = sights.iter().find(|sight| {
            let [before, after] = [&sight.before, &sight.after];
            Mark::of(path, before.as_ref()) != Mark::of(path, after.as_ref())
        });
        if let Some(sight) = change
            && !path.segments().is_empty()
        {
            let find = |object: &'_ Option<Value>| seen.text(path.find(object.as_ref()?));
            self.old = find(&sight.before);
            self.new = find(&sight.after);
            self.by_server = is_by_server(path, sight);
        }
        if let Some(after) = seen.after {
            self.managers.extend(managed::owners(after, path));
        }
    }

    /// Whether the run has put back what somebody else had changed.
    fn is_put_back(&self, path: &Path, before: Mark, after: Mark, seen: &Seen<'_>) -> bool {
        let Some(last) = self.last else { return false };
        let changed = last.exact != before.exact;
        let again = last.like == after.like && before.exact != after.exact;
        let possible = match seen.fight {
            Fight::Possible => true,
            Fight::OverSpec => !is_answer(path),
            Fight::Impossible => false,
        };
        // Who takes away what others add may just do what they ask for: if it is another thing each time, or if
        // there is something to show for it.
        let same_fight = after.exact.is_some()
            || !seen.answers && self.theirs.is_none_or(|theirs| theirs.like == before.like);
        changed && again && same_fight && possible
    }

    /// The values that take turns, if that is what happens.
    pub(super) fn turns(&self) -> Vec<Turn> {
        let Turns {
            values,
            returns,
            many,
        } = &self.turns;
        if *many || *returns < RETURNS {
            return Vec::new();
        }
        let turn = |value: &Stage| Turn {
            value: value.text.clone(),
            causes: value.causes.iter().cloned().collect(),
        };
        values.iter().map(turn).collect()
    }

    /// Follows a number, if it is one.
    fn turn(&mut self, path: &Path, seen: &Seen<'_>, first: bool) {
        let number = |object: Option<&Value>| path.find(object?)?.as_f64();
        let (old, new) = (number(seen.before), number(seen.after));
        let course = match (old, new) {
            (Some(old), Some(new)) => old.partial_cmp(&new),
            _ => None,
        };
        self.course = course.filter(|course| first || self.course == Some(*course));
    }
}

// === impl Turns ===

impl Turns {
    fn take(&mut self, path: &Path, seen: &Seen<'_>, before: Mark, after: Mark) {
        let text = |object: Option<&Value>| {
            if path.segments().is_empty() {
                object.map(|_| "there".to_owned())
            } else {
                seen.text(path.find(object?))
            }
        };
        if self.values.is_empty() {
            self.values.push(Stage {
                exact: before.exact,
                text: text(seen.before),
                causes: BTreeSet::new(),
            });
        }
        let causes = seen.causes.iter().map(ToString::to_string);
        let mut known = self.values.iter_mut();
        if let Some(value) = known.find(|value| value.exact == after.exact) {
            value.causes.extend(causes);
            self.returns += 1;
        } else if self.values.len() < TURNS {
            self.values.push(Stage {
                exact: after.exact,
                text: text(seen.after),
                causes: causes.collect(),
            });
        } else {
            self.many = true;
        }
    }
}

/// Whether the server put something there that the request did not say.
fn is_by_server(path: &Path, sight: &Sight) -> bool {
    let after = sight.after.as_ref().and_then(|after| path.find(after));
    let Some(after) = after.filter(|_| sight.form != Form::Other) else {
        return false;
    };
    match path.find(&sight.sent) {
        Some(sent) => !Shape::plain().equal(sent, after),
        // The element must be recognized in the request to say that it lacks something.
        None => {
            path.list()
                .is_none_or(|list| list.find(&sight.sent).is_some())
                && !is_string_data(path, &sight.sent)
        }
    }
}

/// Whether the request names a member of a Secret's `data` in `stringData`.
fn is_string_data(path: &Path, sent: &Value) -> bool {
    match path.segments() {
        [Segment::Member(data), Segment::Member(name)] if data == "data" => {
            !sent["stringData"][name].is_null()
        }
        _ => false,
    }
}

/// Whether it is in a part of the object that a write may answer a new generation in.
pub(super) fn is_answer(path: &Path) -> bool {
    let first = path.segments().first();
    matches!(first, Some(Segment::Member(name)) if name == "status" || name == "metadata")
}
