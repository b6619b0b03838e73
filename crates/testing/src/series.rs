//! Which plans share a world: from rest to rest there is room for one, and then for the next.
//!
//! A world in which everything is as in the reference is as good for a plan as a new one. So a plan that is about a
//! request is played in the part that has it, and the next plan in the next part; when what was given is deleted, it
//! is given again. What happens at rest follows each other. A plan that is about a whole run has a world of its own.

use crate::{
    log::{Entry, Request},
    plan::Plan,
    trace::{Part, Trace},
    wire::{Asked, Mark},
    world::Leg,
};
use std::collections::{BTreeMap, VecDeque};

/// Plans that may share a world, by their places among all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    family: Family,
    indices: Vec<usize>,
}

/// What a world must be like for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    /// The plan is about a request in one of the parts.
    OnTheWay,
    /// All steps were made.
    AtRest,
    /// What was given is there for the second time.
    SecondLife,
    /// It is about all of a run.
    Whole,
}

/// A way through the parts on which all plans of a group have their place.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) legs: Vec<Leg>,
    /// The places of the plans, in the order of the legs that have one.
    pub(crate) indices: Vec<usize>,
}

/// The parts of a life, from what is given to its deletion, with the plans that wait for each.
#[derive(Default)]
struct Waiting {
    /// Plans after which the part ends as in the reference.
    passing: VecDeque<usize>,
    /// Plans after which nothing is there.
    deleting: VecDeque<usize>,
}

/// How many plans share a world at most. There must be enough worlds for all threads, and what is wrong with one must
/// not spoil too many others.
const MOST: usize = 16;

// === impl Group ===

impl Group {
    pub(crate) fn first(&self) -> Option<usize> {
        self.indices.first().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    pub(crate) fn remove(&mut self, done: impl IntoIterator<Item = usize>) {
        for done in done {
            self.indices.retain(|index| *index != done);
        }
    }
}

/// All plans in groups.
pub(crate) fn groups(plans: &[Plan], reference: &Trace) -> Vec<Group> {
    let mut families: BTreeMap<Family, Vec<usize>> = BTreeMap::new();
    for (index, plan) in plans.iter().enumerate() {
        families.entry(family(plan)).or_default().push(index);
    }
    let mut groups = Vec::new();
    for (family, indices) in families {
        let parts: Vec<Vec<usize>> = match family {
            Family::OnTheWay => {
                let lives = lives(&indices, plans, reference);
                let lives = lives.iter().map(|life| life.indices().collect());
                // Without a deletion there is one life in a world.
                let most = if reference.end(Part::Deleted).is_some() {
                    MOST
                } else {
                    1
                };
                joined(lives, most)
            }
            Family::AtRest | Family::SecondLife => {
                indices.chunks(MOST).map(<[usize]>::to_vec).collect()
            }
            Family::Whole => indices.into_iter().map(|index| vec![index]).collect(),
        };
        groups.extend(parts.into_iter().map(|indices| Group { family, indices }));
    }
    groups
}

fn joined(lives: impl Iterator<Item = Vec<usize>>, most: usize) -> Vec<Vec<usize>> {
    let mut joined: Vec<Vec<usize>> = Vec::new();
    for life in lives {
        match joined.last_mut() {
            Some(last) if last.len() + life.len() <= most => last.extend(life),
            Some(_) | None => joined.push(life),
        }
    }
    joined
}

fn family(plan: &Plan) -> Family {
    match plan {
        Plan::Request(..)
        | Plan::Delete(_)
        | Plan::DeleteWhileDown(_)
        | Plan::DeleteNamespace(_) => Family::OnTheWay,
        Plan::Idle
        | Plan::Noise
        | Plan::Relist
        | Plan::Restart(..)
        | Plan::Lose(_)
        | Plan::Edit(_) => Family::AtRest,
        Plan::Stale(_) => Family::SecondLife,
        Plan::Nothing
        | Plan::Reversed
        | Plan::Late
        | Plan::Missed(_)
        | Plan::Replaced
        | Plan::Direct
        | Plan::Lag(_)
        | Plan::Batched(_)
        | Plan::LateCollector
        | Plan::Scaled(_)
        | Plan::Foreign => Family::Whole,
    }
}

// === impl Series ===

impl Series {
    pub(crate) fn of(group: &Group, plans: &[Plan], reference: &Trace) -> Self {
        let indices = group.indices.clone();
        let before = |last: Part| {
            let ends = reference.ends.iter().map(|end| end.part);
            ends.take_while(move |part| *part != last).map(Leg::way)
        };
        let probes = indices
            .iter()
            .map(|index| Leg::probe(plans[*index].clone()));
        match group.family {
            Family::OnTheWay => {
                let lives = lives(&indices, plans, reference);
                let indices = lives.iter().flat_map(Life::indices).collect();
                let legs = lives.into_iter().flat_map(|life| life.legs);
                let mut legs: Vec<Leg> = legs.map(|(leg, _)| leg).collect();
                while legs.last().is_some_and(|leg| leg.plan.is_none()) {
                    legs.pop();
                }
                Self { legs, indices }
            }
            Family::AtRest | Family::Whole => {
                let legs = before(Part::Deleted).chain(probes).collect();
                Self { legs, indices }
            }
            Family::SecondLife => {
                let again = Leg::way(Part::Again);
                let way = before(Part::Again).chain([again]);
                let legs = way.chain(probes).collect();
                Self { legs, indices }
            }
        }
    }
}

/// From nothing to nothing: what is given, changed and deleted.
#[derive(Default)]
struct Life {
    /// Each with the place of its plan, if it has one.
    legs: Vec<(Leg, Option<usize>)>,
}

impl Life {
    fn indices(&self) -> impl Iterator<Item = usize> {
        self.legs.iter().filter_map(|(_, index)| *index)
    }
}

/// Lives in which each of the plans has its place, at most one in each part.
fn lives(indices: &[usize], plans: &[Plan], reference: &Trace) -> Vec<Life> {
    let parts = reference.ends.iter().map(|end| end.part);
    let parts: Vec<Part> = parts.filter(|part| *part != Part::Again).collect();
    let places = places(reference);
    let mut marks: BTreeMap<usize, (Part, Mark)> = BTreeMap::new();
    let mut waiting: Vec<Waiting> = parts.iter().map(|_| Waiting::default()).collect();
    for index in indices {
        let plan = &plans[*index];
        // Plans are made of the requests of the reference's parts.
        let place = plan.number().and_then(|number| places.get(&number));
        let Some((part, mark)) = place.cloned() else {
            continue;
        };
        // What is given again is given as for the first time.
        let in_first_life = if part == Part::Again {
            Part::Given
        } else {
            part
        };
        let Some(at) = parts.iter().position(|part| *part == in_first_life) else {
            continue;
        };
        marks.insert(*index, (part, mark));
        if plan.deletes() {
            waiting[at].deleting.push_back(*index);
        } else {
            waiting[at].passing.push_back(*index);
        }
    }
    let mut lives = Vec::new();
    while waiting.iter().any(|waiting| !waiting.is_empty()) {
        let mut life = Life::default();
        for at in 0..parts.len() {
            let goes_on = waiting.iter().skip(at + 1).any(|later| !later.is_empty());
            let Waiting { passing, deleting } = &mut waiting[at];
            let next = if goes_on {
                passing.pop_front()
            } else {
                deleting.pop_front().or_else(|| passing.pop_front())
            };
            let leg = next.and_then(|index| {
                let (part, mark) = marks.remove(&index)?;
                Some(Leg {
                    part,
                    plan: Some(plans[index].clone()),
                    mark: Some(mark),
                })
            });
            let ends = leg.as_ref().is_some_and(Leg::is_deleting);
            life.legs
                .push((leg.unwrap_or_else(|| Leg::way(parts[at])), next));
            if ends {
                break;
            }
            if !goes_on {
                // The next life begins with nothing.
                if parts[at] != Part::Deleted && parts.contains(&Part::Deleted) {
                    life.legs.push((Leg::way(Part::Deleted), None));
                }
                break;
            }
        }
        lives.push(life);
    }
    lives
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.passing.is_empty() && self.deleting.is_empty()
    }
}

/// The requests of the reference by their numbers: the part of each, and which of those of the part it is.
fn places(reference: &Trace) -> BTreeMap<u32, (Part, Mark)> {
    let mut places = BTreeMap::new();
    for end in &reference.ends {
        let mut counts: BTreeMap<Asked, u32> = BTreeMap::new();
        let requests = reference.entries_of(end).iter().filter_map(Entry::request);
        for request in requests {
            let Some(number) = request.number else {
                continue;
            };
            let asked = asked(request);
            let count = counts.entry(asked.clone()).or_default();
            *count += 1;
            places.insert(number, (end.part, Mark::Like(asked, *count)));
        }
    }
    places
}

fn asked(request: &Request) -> Asked {
    Asked {
        verb: request.verb,
        object: request.object.clone(),
        subresource: request.subresource.clone(),
        in_run: request.run.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::{Actor, Event},
        object::ObjectId,
        plan::Injection,
        state::State,
        trace::{End, Rest},
    };
    use std::time::Duration;

    fn request(number: u32, name: &str) -> Entry {
        let request = Request {
            number: Some(number),
            actor: Actor::Operator,
            run: Some(1),
            verb: "get",
            object: ObjectId::new("", "secrets", "check", name),
            subresource: String::new(),
            query: String::new(),
            manager: String::new(),
            status: Some(200),
            injected: None,
            changes: Vec::new(),
        };
        Entry {
            at: Duration::ZERO,
            event: Event::Request(request),
        }
    }

    /// Two requests in each part, of which the second of the first part asks for the same as the first.
    fn reference(deletion: bool) -> Trace {
        let mut parts = vec![Part::Given, Part::Step(0)];
        if deletion {
            parts.extend([Part::Deleted, Part::Again]);
        }
        let mut entries = Vec::new();
        let mut ends = Vec::new();
        for (part, phase) in parts.into_iter().zip(1..) {
            let from = entries.len();
            let second = if part == Part::Given { "a" } else { "b" };
            entries.push(request(phase * 10_000 + 1, "a"));
            entries.push(request(phase * 10_000 + 2, second));
            ends.push(End {
                part,
                name: String::new(),
                from,
                to: entries.len(),
                state: State::default(),
                rest: Rest::Calm,
                failing: Vec::new(),
                revision: 0,
            });
        }
        Trace {
            plan: Plan::Nothing,
            seed: 1,
            entries,
            ends,
            finals: Vec::new(),
            external: None,
            fired: false,
            remarks: Vec::new(),
        }
    }

    fn plans(deletion: bool) -> Vec<Plan> {
        let fault = |number| Plan::Request(number, Injection::Refused);
        let mut plans = vec![
            fault(10_001),
            fault(10_002),
            Plan::Idle,
            fault(20_002),
            Plan::Lag("secrets".into()),
        ];
        if deletion {
            plans.extend([
                Plan::Delete(10_002),
                Plan::DeleteWhileDown(20_001),
                fault(30_001),
                fault(40_002),
                Plan::Stale(7),
            ]);
        }
        plans
    }

    #[test]
    fn requests_that_ask_for_the_same_are_counted_in_each_part() {
        let places = places(&reference(true));
        let found = [10_001, 10_002, 20_001].map(|number| match &places[&number] {
            (part, Mark::Like(asked, count)) => (*part, asked.object.name.clone(), *count),
            (part, Mark::Number(_)) => (*part, String::new(), 0),
        });
        let expected = [
            (Part::Given, "a".to_owned(), 1),
            (Part::Given, "a".to_owned(), 2),
            (Part::Step(0), "a".to_owned(), 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_plan_is_in_one_group() {
        for deletion in [false, true] {
            let (plans, reference) = (plans(deletion), reference(deletion));
            let groups = groups(&plans, &reference);
            let indices = groups.iter().flat_map(|group| group.indices.clone());
            let mut indices: Vec<usize> = indices.collect();
            indices.sort_unstable();
            assert!(indices.into_iter().eq(0..plans.len()), "{groups:?}");
            let on_the_way = groups.iter().filter(|it| it.family == Family::OnTheWay);
            // With a deletion all can be in one world.
            assert_eq!(on_the_way.count(), if deletion { 1 } else { 2 });
        }
    }

    /// All subsets of the plans about requests: each has its place once, and the parts follow each other as in the
    /// scenario.
    #[test]
    fn all_ways_are_ways_through_the_scenario() {
        let (plans, reference) = (plans(true), reference(true));
        let about_requests = plans.iter().enumerate();
        let about_requests = about_requests.filter(|(_, plan)| plan.number().is_some());
        let about_requests: Vec<usize> = about_requests.map(|(index, _)| index).collect();
        for subset in 1_u32..(1 << about_requests.len()) {
            let chosen = about_requests.iter().enumerate();
            let chosen = chosen.filter(|(bit, _)| subset & (1 << bit) != 0);
            let group = Group {
                family: Family::OnTheWay,
                indices: chosen.map(|(_, index)| *index).collect(),
            };
            let series = Series::of(&group, &plans, &reference);
            let mut indices = series.indices.clone();
            indices.sort_unstable();
            assert_eq!(indices, group.indices);
            let of_legs = series.legs.iter().filter_map(|leg| leg.plan.as_ref());
            assert!(of_legs.eq(series.indices.iter().map(|index| &plans[*index])));
            assert!(series.legs.last().is_some_and(|leg| leg.plan.is_some()));

            let mut there: Option<Part> = None;
            for leg in &series.legs {
                let follows = match leg.part {
                    Part::Given | Part::Again => there.is_none(),
                    Part::Step(_) => matches!(there, Some(Part::Given | Part::Again)),
                    Part::Deleted => there.is_some(),
                    Part::Probe => false,
                };
                assert!(follows, "{:?} after {there:?}", leg.part);
                let is_gone = leg.is_deleting() || leg.part == Part::Deleted;
                there = (!is_gone).then_some(leg.part);
            }
        }
    }

    #[test]
    fn what_happens_at_rest_comes_behind_the_parts() {
        let (plans, reference) = (plans(true), reference(true));
        for (family, plan, way) in [
            (Family::AtRest, 2, vec![Part::Given, Part::Step(0)]),
            (
                Family::SecondLife,
                9,
                vec![Part::Given, Part::Step(0), Part::Deleted, Part::Again],
            ),
        ] {
            let group = Group {
                family,
                indices: vec![plan],
            };
            let series = Series::of(&group, &plans, &reference);
            let parts = series.legs.iter().map(|leg| leg.part);
            assert!(parts.eq(way.into_iter().chain([Part::Probe])));
        }
    }
}
