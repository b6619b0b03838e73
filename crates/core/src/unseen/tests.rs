use super::{Expected, Sight, Source, Unseen};
use crate::time::Time;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

type Write = (Source, Sight, u8);

fn expected(writes: &[Write]) -> Vec<Expected<u8>> {
    let expect = |&(source, sight, object): &Write| Expected {
        source,
        object,
        sight,
    };
    writes.iter().map(expect).collect()
}

fn at(seconds: u64) -> Time {
    Time::ORIGIN + Duration::from_secs(seconds)
}

const GONE: Sight = Sight::Gone;

fn version(version: u64) -> Sight {
    Sight::Version(version)
}

/// What is still kept of waits that are over.
fn leftovers(unseen: &Unseen<char, u8>) -> usize {
    let versions: usize = unseen.versions.values().map(BTreeSet::len).sum();
    let gone: usize = unseen.gone.values().map(BTreeSet::len).sum();
    versions + gone + unseen.ends.len()
}

#[test]
fn a_wait_is_over_when_every_cache_has_seen_every_write() {
    let mut unseen = Unseen::default();
    unseen.expect(
        &'a',
        at(5),
        expected(&[(0, version(10), 0), (1, version(12), 1)]),
    );
    assert_eq!(unseen.reached(1, 11), []);
    assert_eq!(unseen.reached(0, 12), [], "that is another cache");
    assert_eq!(unseen.missing(&'a').len(), 1);
    assert_eq!(unseen.reached(1, 12), ['a']);
    assert!(unseen.is_empty());
    assert_eq!(unseen.expire(at(9)), []);
}

/// Row 37: nobody waits for the writes of others.
#[test]
fn each_key_waits_for_its_own_writes() {
    let mut unseen = Unseen::default();
    unseen.expect(&'a', at(5), expected(&[(0, version(10), 0)]));
    unseen.expect(&'b', at(5), expected(&[(0, version(11), 1)]));
    unseen.expect(&'c', at(5), expected(&[(0, version(10), 2)]));
    assert_eq!(unseen.reached(0, 10), ['a', 'c']);
    assert_eq!(unseen.reached(0, 1000), ['b']);
}

/// Row 33: a delete is seen when the object is gone, whatever the version.
#[test]
fn a_delete_is_seen_when_the_object_is_gone() {
    let mut unseen = Unseen::default();
    unseen.expect(
        &'a',
        at(5),
        expected(&[(0, GONE, 7), (0, GONE, 8), (1, GONE, 7)]),
    );
    assert_eq!(unseen.reached(0, 1000), []);
    assert_eq!(unseen.recheck(0, |object| *object == 7), []);
    assert_eq!(unseen.recheck(0, |object| *object == 8), []);
    assert_eq!(unseen.recheck(1, |_| false), []);
    assert_eq!(unseen.recheck(1, |object| *object == 7), ['a']);
    assert!(unseen.is_empty());
}

/// Row 31: what never comes is not waited for without end, and leaves nothing behind.
#[test]
fn a_wait_ends_with_its_time() {
    let mut unseen = Unseen::default();
    unseen.expect(&'a', at(5), expected(&[(0, version(10), 0), (0, GONE, 1)]));
    unseen.expect(&'b', at(6), expected(&[(0, version(10), 2)]));
    assert_eq!(unseen.expire(at(4)), []);
    let [(key, missing)] = &unseen.expire(at(5))[..] else {
        panic!("one wait is over")
    };
    assert_eq!((*key, missing.len()), ('a', 2));
    assert_eq!(
        unseen.reached(0, 10),
        ['b'],
        "what is over is not over again"
    );
    assert_eq!(leftovers(&unseen), 0);
}

#[test]
fn the_last_run_counts() {
    let mut unseen = Unseen::default();
    unseen.expect(&'a', at(5), expected(&[(0, version(10), 0)]));
    unseen.expect(&'a', at(7), expected(&[(0, version(20), 0)]));
    assert_eq!(unseen.reached(0, 10), []);
    assert_eq!(unseen.expire(at(5)), []);
    unseen.expect(&'a', at(9), Vec::new());
    assert!(unseen.is_empty());
    assert_eq!(leftovers(&unseen), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Expect(u8, u64, Vec<Write>),
    Reached(Source, u64),
    /// These objects are gone.
    Recheck(Source, u8),
    Expire(u64),
    Forget(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let sight = prop_oneof![3 => (0_u64..8).prop_map(Sight::Version), 1 => Just(Sight::Gone)];
    let writes = prop::collection::vec((0_usize..3, sight, 0_u8..4), 0..4);
    prop_oneof![
        3 => (0_u8..4, 0_u64..9, writes).prop_map(|(key, until, writes)| Step::Expect(key, until, writes)),
        3 => (0_usize..3, 0_u64..8).prop_map(|(source, version)| Step::Reached(source, version)),
        2 => (0_usize..3, any::<u8>()).prop_map(|(source, objects)| Step::Recheck(source, objects)),
        1 => (0_u64..9).prop_map(Step::Expire),
        1 => (0_u8..4).prop_map(Step::Forget),
    ]
}

proptest! {
    /// Against a list that is searched from end to end.
    #[test]
    fn agrees_with_a_list(steps in prop::collection::vec(step(), 1..60)) {
        let mut unseen = Unseen::default();
        let mut model: BTreeMap<u8, (u64, Vec<Write>)> = BTreeMap::new();
        for step in steps {
            let mut seen: Box<dyn Fn(&Write) -> bool> = Box::new(|_| false);
            let released = match step {
                Step::Expect(key, until, writes) => {
                    unseen.expect(&key, at(until), expected(&writes));
                    model.remove(&key);
                    if !writes.is_empty() {
                        model.insert(key, (until, writes));
                    }
                    Vec::new()
                }
                Step::Reached(source, version) => {
                    seen = Box::new(move |write| {
                        write.0 == source && matches!(write.1, Sight::Version(at) if at <= version)
                    });
                    unseen.reached(source, version)
                }
                Step::Recheck(source, objects) => {
                    let is_gone = move |object: u8| objects >> object & 1 == 1;
                    seen = Box::new(move |write| {
                        write.0 == source && write.1 == Sight::Gone && is_gone(write.2)
                    });
                    unseen.recheck(source, |object| is_gone(*object))
                }
                Step::Expire(now) => {
                    let expired = unseen.expire(at(now)).into_iter();
                    let mut expired: Vec<_> = expired.map(|(key, _)| key).collect();
                    expired.sort_unstable();
                    let over: Vec<u8> = model.iter().filter(|(_, wait)| wait.0 <= now)
                        .map(|(key, _)| *key).collect();
                    model.retain(|_, wait| wait.0 > now);
                    prop_assert_eq!(expired, over);
                    Vec::new()
                }
                Step::Forget(key) => {
                    unseen.forget(&key);
                    model.remove(&key);
                    Vec::new()
                }
            };
            for (_, writes) in model.values_mut() {
                writes.retain(|write| !seen(write));
            }
            let over: Vec<u8> = model.iter().filter(|(_, wait)| wait.1.is_empty())
                .map(|(key, _)| *key).collect();
            model.retain(|_, wait| !wait.1.is_empty());
            let mut released = released;
            released.sort_unstable();
            prop_assert_eq!(released, over);
            prop_assert_eq!(unseen.waits.len(), model.len());
            for (key, (_, writes)) in &model {
                prop_assert_eq!(unseen.missing(key), expected(writes));
            }
        }
    }
}
