//! What a member does, step by step.

use super::super::{Loss, Share, hash};
use super::*;

fn settle_all(nodes: &mut [Node], server: &mut Server, from: u64, to: u64) {
    for second in from..=to {
        for node in &mut *nodes {
            settle(node, server, secs(second));
        }
        let counts = runners(nodes.iter().map(|node| node.running(secs(second))));
        assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
    }
}

fn all_run_once(nodes: &[Node], now: Time) -> bool {
    let counts = runners(nodes.iter().map(|node| node.running(now)));
    counts.iter().all(|count| *count == 1)
}

#[test]
fn the_hash_is_the_one_that_is_published() {
    // From the page of its authors.
    assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn owners_are_the_same_in_each_version() {
    let names = ["web-0", "web-1", "web-2"];
    let share = Share::new(Slots::default(), 1, "web-1", names);
    let owners: String = (0..24_u64)
        .map(|key| share.owner(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).name())
        .map(|name| name.rsplit('-').next().unwrap_or_default().to_owned())
        .collect();
    expect_test::expect!["222120111120101010222120"].assert_eq(&owners);
}

#[test]
fn slots_are_ranges_of_hashes() {
    for count in [1, 2, 8, 1024, 1 << 20] {
        let slots = Slots::new(count).expect("a power of two");
        assert_eq!(slots.count(), count);
        let last = u64::from(count) - 1;
        assert_eq!(slots.range(0).start, 0);
        assert_eq!(slots.range(last).last, u64::MAX);
        for slot in [0, last / 2, last] {
            let range = slots.range(slot);
            assert_eq!((slots.of(range.start), slots.of(range.last)), (slot, slot));
        }
    }
    for count in [0, 3, 1 << 21] {
        assert!(Slots::new(count).is_err());
    }
}

#[test]
fn ranges_are_what_is_owned() {
    let share = Share::new(Slots::default(), 1, "b", ["a", "b", "c"]);
    let ranges = share.ranges();
    for slot in 0..1024_u64 {
        let hash = slot << 54 | 0xff;
        let inside = ranges
            .iter()
            .any(|range| (range.start..=range.last).contains(&hash));
        assert_eq!(inside, share.owns(hash), "slot {slot}");
    }
    for pair in ranges.windows(2) {
        assert!(pair[0].last + 1 < pair[1].start, "they are merged");
    }
    let alone = Share::new(Slots::default(), 1, "b", []);
    assert_eq!(alone.ranges().len(), 1);
    assert_eq!(alone.ranges()[0].last, u64::MAX);
}

#[test]
fn a_member_that_is_alone_runs_all_at_once() {
    let mut server = Server::default();
    let mut node = Node::new(0, secs(0));
    let outputs = settle(&mut node, &mut server, secs(0));
    assert_eq!(outputs, [Output::Runs]);
    assert_eq!(node.running(secs(0)).len(), SLOTS as usize);
    assert_eq!(node.machine.runs_until(), Some(secs(10)));
}

#[test]
fn a_new_member_waits_for_those_who_were_there() {
    let mut server = Server::default();
    let mut old = Node::new(0, secs(0));
    settle(&mut old, &mut server, secs(0));
    let mut new = Node::new(1, secs(1));
    settle(&mut new, &mut server, secs(1));
    assert_eq!(new.machine.runs_until(), None);
    assert_eq!(new.machine.awaited().collect::<Vec<_>>(), ["member-0"]);
    // The old one sees it, and what has moved still runs.
    let now = secs(2);
    let (attempt, _, _) = {
        old.tell(now, Input::Awake, 0.0);
        old.request().expect("it renews its lease")
    };
    let answer = server.answer(&old.request().expect("it writes").2);
    old.tell(now, Input::Answered { attempt, answer }, 0.0);
    let (attempt, _, request) = old.request().expect("it lists");
    let answer = server.answer(&request);
    let outputs = old.tell(now, Input::Answered { attempt, answer }, 0.0);
    assert_eq!(outputs, [Output::Moved]);
    assert_eq!(old.running(now).len(), SLOTS as usize, "runs are not over");
    settle(&mut new, &mut server, secs(3));
    assert_eq!(new.machine.runs_until(), None);
    // They are over.
    old.stop_moved(now);
    settle(&mut old, &mut server, secs(3));
    settle(&mut new, &mut server, secs(4));
    assert!(all_run_once(&[old, new], secs(4)));
}

#[test]
fn who_leaves_is_followed_at_once_and_cleaned_up_after() {
    let mut server = Server::default();
    let mut nodes: Vec<Node> = (0..3).map(|index| Node::new(index, secs(0))).collect();
    settle_all(&mut nodes, &mut server, 0, 6);
    assert!(all_run_once(&nodes, secs(6)));
    let mut gone = nodes.pop().expect("there are three");
    gone.tell(secs(6), Input::Stop, 0.0);
    gone.running.clear();
    let outputs = gone.tell(secs(6), Input::Idle, 0.0);
    assert_eq!(outputs, [Output::Lost(Loss::Released)]);
    settle(&mut gone, &mut server, secs(6));
    assert_eq!(gone.machine.action(), Action::End);
    settle_all(&mut nodes, &mut server, 7, 9);
    assert!(all_run_once(&nodes, secs(9)));
    settle_all(&mut nodes, &mut server, 10, 40);
    assert_eq!(server.leases.len(), 2, "{server:?}");
}

#[test]
fn who_crashes_is_followed_after_its_lease() {
    let mut server = Server::default();
    let mut nodes: Vec<Node> = (0..3).map(|index| Node::new(index, secs(0))).collect();
    settle_all(&mut nodes, &mut server, 0, 6);
    nodes.pop();
    settle_all(&mut nodes, &mut server, 7, 20);
    assert!(!all_run_once(&nodes, secs(20)), "it may live");
    settle_all(&mut nodes, &mut server, 21, 26);
    assert!(all_run_once(&nodes, secs(26)));
}

#[test]
fn a_member_that_cannot_list_takes_nobody_for_gone_and_ends_its_epoch() {
    let mut server = Server::default();
    let mut nodes: Vec<Node> = (0..2).map(|index| Node::new(index, secs(0))).collect();
    settle_all(&mut nodes, &mut server, 0, 6);
    let mut node = nodes.pop().expect("there are two");
    let mut losses = Vec::new();
    for second in 7..40 {
        let now = secs(second);
        let input = match node.request() {
            Some((attempt, _, Request::List)) => Input::Answered {
                attempt,
                answer: Answer::Failed,
            },
            Some((attempt, _, request)) => Input::Answered {
                attempt,
                answer: server.answer(&request),
            },
            None => Input::Awake,
        };
        losses.extend(node.tell(now, input, 0.0));
        assert_eq!(node.machine.share().members().len(), 2);
    }
    assert_eq!(losses, [Output::Lost(Loss::NotListed)]);
    assert_eq!(node.machine.lasts_until(), None, "it does not join blindly");
}

#[test]
fn a_late_answer_does_not_revive_an_epoch() {
    let mut server = Server::default();
    let mut node = Node::new(0, secs(0));
    settle(&mut node, &mut server, secs(0));
    node.tell(secs(2), Input::Awake, 0.0);
    let (attempt, _, request) = node.request().expect("it renews");
    let answer = server.answer(&request);
    let outputs = node.tell(secs(10), Input::Answered { attempt, answer }, 0.0);
    assert_eq!(outputs, [Output::Lost(Loss::NotRenewed)]);
    settle(&mut node, &mut server, secs(11));
    assert_eq!(node.machine.runs_until(), None, "something may still run");
    node.tell(secs(11), Input::Idle, 0.0);
    settle(&mut node, &mut server, secs(12));
    settle(&mut node, &mut server, secs(14));
    assert_eq!(node.machine.epoch(), 2);
    assert_eq!(node.running(secs(14)).len(), SLOTS as usize);
}

#[test]
fn a_lease_that_is_taken_away_ends_the_epoch() {
    let mut server = Server::default();
    let mut nodes: Vec<Node> = (0..2).map(|index| Node::new(index, secs(0))).collect();
    settle_all(&mut nodes, &mut server, 0, 6);
    server.leases.remove("lease-1");
    let outputs = settle(&mut nodes[1], &mut server, secs(8));
    assert_eq!(outputs, [Output::Lost(Loss::Deleted)]);
    nodes[1].tell(secs(8), Input::Idle, 0.0);
    settle_all(&mut nodes, &mut server, 9, 16);
    assert!(all_run_once(&nodes, secs(16)));
    assert_eq!(nodes[1].machine.epoch(), 2);
}

#[test]
fn members_with_other_slots_do_not_join() {
    let mut server = Server::default();
    let mut old = Node::new(0, secs(0));
    settle(&mut old, &mut server, secs(0));
    let slots = Slots::new(SLOTS * 2).expect("a power of two");
    let mut new = Node::new(1, secs(0));
    let (name, lease) = ("member-1".into(), "lease-1".into());
    new.machine = Machine::new(secs(0), Config::default(), slots, name, lease);
    settle(&mut new, &mut server, secs(1));
    let obstacle = new.machine.obstacle().unwrap_or_default();
    assert_eq!(
        obstacle,
        "the member member-0 has 8 slots, and this one 16: all members must have the same number"
    );
    settle(&mut old, &mut server, secs(2));
    assert_eq!(old.running(secs(2)).len(), SLOTS as usize);
}

#[test]
fn the_time_of_a_renewal_counts_from_when_it_was_sent() {
    let mut server = Server::default();
    let mut node = Node::new(0, secs(0));
    settle(&mut node, &mut server, secs(0));
    node.tell(secs(2), Input::Awake, 0.0);
    for sent in [2, 5] {
        let (attempt, _, request) = node.request().expect("it renews, then it lists");
        let answer = server.answer(&request);
        node.tell(secs(sent + 3), Input::Answered { attempt, answer }, 0.0);
    }
    assert_eq!(node.machine.runs_until(), Some(secs(12)));
}

#[test]
fn a_list_that_is_answered_late_takes_nobody_for_gone() {
    let mut server = Server::default();
    let mut nodes: Vec<Node> = (0..2).map(|index| Node::new(index, secs(0))).collect();
    settle_all(&mut nodes, &mut server, 0, 6);
    let (on_time, late) = nodes.split_at_mut(1);
    let (on_time, late) = (&mut on_time[0], &mut late[0]);
    late.tell(secs(8), Input::Awake, 0.0);
    for answered in [8, 40] {
        let (attempt, _, request) = late.request().expect("it renews, then it lists");
        let answer = server.answer(&request);
        for second in 8..answered {
            settle(on_time, &mut server, secs(second));
        }
        late.tell(secs(answered), Input::Answered { attempt, answer }, 0.0);
    }
    // It was paused for so long that it has to join anew, and knows that the other one has not gone.
    late.tell(secs(40), Input::Idle, 0.0);
    for second in [40, 42] {
        settle(late, &mut server, secs(second));
    }
    assert_eq!(late.machine.runs_until(), None);
    assert_eq!(late.machine.awaited().collect::<Vec<_>>(), ["member-0"]);
}
