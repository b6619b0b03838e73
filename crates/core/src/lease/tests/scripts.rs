//! What candidates do, one case after the other.

use super::super::{InvalidConfig, Loss};
use super::*;

const SOON: f64 = 0.0;

fn candidate(name: &str, now: Time) -> Machine {
    Machine::new(now, Config::default(), name.into())
}

fn failed(machine: &Machine) -> Input {
    let (attempt, ..) = request(&machine.action()).expect("a request is due");
    Input::Answered {
        attempt,
        answer: Answer::Failed,
    }
}

/// A leader and a standby that has seen it, at the origin.
fn pair() -> (Server, Machine, Machine) {
    let mut server = Server::default();
    let mut a = candidate("a", secs(0));
    assert_eq!(settle(&mut a, &mut server, secs(0)), [Output::Leads]);
    let mut b = candidate("b", secs(0));
    assert_eq!(settle(&mut b, &mut server, secs(0)), []);
    assert_eq!(b.holder(), Some("a"));
    (server, a, b)
}

/// Advances a machine second by second while its requests are answered.
fn run(machine: &mut Machine, server: &mut Server, from: u64, to: u64) -> Vec<(u64, Output)> {
    let mut outputs = Vec::new();
    for second in from..=to {
        let made = machine.on(secs(second), Input::Awake, SOON);
        outputs.extend(made.into_iter().map(|output| (second, output)));
        let made = settle(machine, server, secs(second));
        outputs.extend(made.into_iter().map(|output| (second, output)));
    }
    outputs
}

#[test]
fn the_first_candidate_leads_and_writes_what_client_go_writes() {
    let (server, a, _) = pair();
    let (version, record) = server.lease.expect("the lease exists");
    assert_eq!((version, record.holder.as_str()), (1, "a"));
    assert_eq!(record.duration, Some(Duration::from_secs(15)));
    assert_eq!(record.transitions, 0);
    assert_eq!(a.leads_until(), Some(secs(10)));
}

#[test]
fn a_leader_renews_every_two_seconds_and_keeps_its_number_of_transitions() {
    let (mut server, mut a, _) = pair();
    assert_eq!(run(&mut a, &mut server, 1, 60), []);
    assert_eq!(server.revision, 31);
    assert_eq!(server.lease.expect("the lease exists").1.transitions, 0);
    assert_eq!(a.leads_until(), Some(secs(70)));
}

#[test]
fn a_standby_takes_a_lease_that_is_not_renewed_the_moment_that_it_runs_out() {
    let (mut server, _, mut b) = pair();
    assert_eq!(run(&mut b, &mut server, 1, 20), [(15, Output::Leads)]);
    let record = server.lease.expect("the lease exists").1;
    assert_eq!((record.holder.as_str(), record.transitions), ("b", 1));
}

#[test]
fn a_standby_counts_from_when_it_saw_a_version_and_by_the_holders_duration() {
    let mut server = Server::default();
    let long = Config::new(
        Duration::from_secs(60),
        Duration::from_secs(40),
        Duration::from_secs(5),
    );
    let mut a = Machine::new(secs(0), long.expect("valid"), "a".into());
    settle(&mut a, &mut server, secs(0));
    let mut b = candidate("b", secs(7));
    settle(&mut b, &mut server, secs(7));
    assert_eq!(run(&mut b, &mut server, 8, 80), [(67, Output::Leads)]);
}

#[test]
fn a_leader_whose_renewals_fail_stops_before_anybody_else_may_start() {
    let (_, mut a, _) = pair();
    let mut now = 2;
    let lost = loop {
        let mut outputs = a.on(secs(now), Input::Awake, SOON);
        if request(&a.action()).is_some() {
            let failed = failed(&a);
            outputs.extend(a.on(secs(now), failed, SOON));
        }
        if !outputs.is_empty() {
            break outputs;
        }
        now += 2;
    };
    assert_eq!((now, lost), (10, vec![Output::Lost(Loss::NotRenewed)]));
    assert_eq!(a.leads_until(), None);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_made_again_with_the_new_version() {
    let (mut server, mut a, _) = pair();
    a.on(secs(2), Input::Awake, SOON);
    let (_, _, lost) = request(&a.action()).expect("a renewal");
    server.answer(&lost);
    let failed = failed(&a);
    assert_eq!(a.on(secs(3), failed, SOON), []);
    assert_eq!(run(&mut a, &mut server, 4, 12), []);
    assert!(leads(&a, secs(12)));
}

#[test]
fn an_answer_that_took_longer_than_the_deadline_makes_nobody_lead() {
    let mut server = Server::default();
    let mut a = candidate("a", secs(0));
    let (attempt, _, read) = request(&a.action()).expect("a read");
    let answer = server.answer(&read);
    a.on(secs(0), Input::Answered { attempt, answer }, SOON);
    let (attempt, _, write) = request(&a.action()).expect("a claim");
    let answer = server.answer(&write);
    let late = a.on(secs(10), Input::Answered { attempt, answer }, SOON);
    assert_eq!((late, a.leads_until()), (vec![], None));
    assert_eq!(settle(&mut a, &mut server, secs(10)), [Output::Leads]);
}

#[test]
fn a_leader_that_finds_another_holder_is_none() {
    let (mut server, mut a, _) = pair();
    server.revision += 1;
    let thief = Record {
        holder: "thief".into(),
        ..Record::default()
    };
    server.lease = Some((server.revision, thief));
    let expected = [(2, Output::Lost(Loss::Taken)), (17, Output::Leads)];
    assert_eq!(run(&mut a, &mut server, 1, 20), expected);
}

#[test]
fn a_lease_that_a_person_cleared_goes_on_for_its_leader() {
    let (mut server, mut a, _) = pair();
    server.revision += 1;
    server.lease = Some((server.revision, Record::default()));
    assert_eq!(run(&mut a, &mut server, 1, 20), []);
    assert!(leads(&a, secs(20)));
}

#[test]
fn a_lease_that_was_deleted_is_made_again_by_its_leader_and_waited_for_by_others() {
    let (mut server, mut a, mut b) = pair();
    server.lease = None;
    assert_eq!(run(&mut b, &mut server, 1, 14), []);
    assert_eq!(run(&mut a, &mut server, 1, 9), []);
    assert!(leads(&a, secs(9)));
    assert_eq!(run(&mut b, &mut server, 15, 20), []);
}

#[test]
fn a_lease_that_was_deleted_and_is_not_made_again_is_taken_when_its_time_is_over() {
    let (mut server, _, mut b) = pair();
    server.lease = None;
    assert_eq!(run(&mut b, &mut server, 1, 20), [(15, Output::Leads)]);
}

#[test]
fn who_resigns_renews_until_nothing_runs_then_releases_and_lets_others_go_first() {
    let (mut server, mut a, mut b) = pair();
    assert_eq!(a.on(secs(1), Input::Resign, SOON), []);
    assert_eq!(run(&mut a, &mut server, 1, 30), []);
    assert!(leads(&a, secs(30)));
    let released = vec![Output::Lost(Loss::Released)];
    assert_eq!(a.on(secs(30), Input::Idle, SOON), released);
    assert!(!leads(&a, secs(30)));
    settle(&mut a, &mut server, secs(30));
    assert_eq!(server.lease.as_ref().expect("it stays").1.holder, "");
    assert_eq!(run(&mut b, &mut server, 31, 44), [(31, Output::Leads)]);
    assert_eq!(run(&mut a, &mut server, 31, 50), []);
    assert_eq!(a.holder(), Some("b"));
}

#[test]
fn who_resigned_leads_again_if_nobody_else_wants_to() {
    let (mut server, mut a, _) = pair();
    a.on(secs(1), Input::Resign, SOON);
    a.on(secs(1), Input::Idle, SOON);
    settle(&mut a, &mut server, secs(1));
    assert_eq!(run(&mut a, &mut server, 2, 20), [(16, Output::Leads)]);
}

/// The moment at which the lease runs out is nothing to wait for once it has come.
#[test]
fn a_claim_that_fails_is_made_again_after_a_pause() {
    let (mut server, _, mut b) = pair();
    b.on(secs(15), Input::Awake, SOON);
    let (attempt, _, read) = request(&b.action()).expect("it looks first");
    let answer = server.answer(&read);
    b.on(secs(15), Input::Answered { attempt, answer }, SOON);
    assert!(matches!(b.action(), Action::Write { .. }));
    let failed = failed(&b);
    b.on(secs(15), failed, SOON);
    assert_eq!(b.action(), Action::Sleep { until: secs(17) });
}

/// Whoever was asked to make room gives others the time of a lease. Whoever was not looks again at once.
#[test]
fn who_loses_the_lease_gives_way_if_it_was_asked_to() {
    let (_, mut a, _) = pair();
    a.on(secs(12), Input::Awake, SOON);
    assert!(matches!(a.action(), Action::Read { .. }));

    let (_, mut a, _) = pair();
    a.on(secs(1), Input::Resign, SOON);
    a.on(secs(12), Input::Awake, SOON);
    assert_eq!(a.action(), Action::Sleep { until: secs(27) });
}

/// Nobody tells it that nothing runs any more: what needed the lease has ended with it.
#[test]
fn who_loses_the_lease_while_it_resigns_leads_again_if_nobody_else_wants_to() {
    let (mut server, mut a, _) = pair();
    a.on(secs(1), Input::Resign, SOON);
    let lost = a.on(secs(12), Input::Awake, SOON);
    assert_eq!(lost, [Output::Lost(Loss::NotRenewed)]);
    assert_eq!(run(&mut a, &mut server, 13, 60).len(), 1);
    assert!(leads(&a, secs(60)));

    // Here somebody else has it meanwhile, and lets it run out.
    let (mut server, mut a, mut b) = pair();
    a.on(secs(1), Input::Resign, SOON);
    a.on(secs(12), Input::Awake, SOON);
    assert_eq!(run(&mut b, &mut server, 1, 20), [(15, Output::Leads)]);
    assert_eq!(run(&mut a, &mut server, 21, 60).len(), 1);
}

#[test]
fn a_leader_that_stops_releases_the_lease_and_ends() {
    let (mut server, mut a, _) = pair();
    a.on(secs(1), Input::Stop, SOON);
    a.on(secs(1), Input::Idle, SOON);
    settle(&mut a, &mut server, secs(1));
    assert_eq!(a.action(), Action::End);
    assert_eq!(server.lease.expect("it stays").1.holder, "");
}

#[test]
fn a_release_that_nobody_answers_is_not_tried_for_ever() {
    let (_, mut a, _) = pair();
    a.on(secs(1), Input::Stop, SOON);
    a.on(secs(1), Input::Idle, SOON);
    let failed = failed(&a);
    a.on(secs(6), failed, SOON);
    assert_eq!(a.action(), Action::End);
}

#[test]
fn a_standby_that_stops_ends_at_once_and_touches_nothing() {
    let (server, _, mut b) = pair();
    b.on(secs(1), Input::Stop, SOON);
    assert_eq!(b.action(), Action::End);
    let mut c = candidate("c", secs(1));
    c.on(secs(1), Input::Stop, SOON);
    assert_eq!((c.action(), server.revision), (Action::End, 1));
}

#[test]
fn a_candidate_that_stops_while_it_claims_the_lease_releases_what_it_got() {
    let mut server = Server::default();
    let mut a = candidate("a", secs(0));
    let (attempt, _, read) = request(&a.action()).expect("a read");
    let answer = server.answer(&read);
    a.on(secs(0), Input::Answered { attempt, answer }, SOON);
    assert_eq!(a.on(secs(0), Input::Stop, SOON), []);
    assert_eq!(settle(&mut a, &mut server, secs(0)), []);
    assert_eq!(a.action(), Action::End);
    assert_eq!(server.lease.expect("it stays").1.holder, "");
}

#[test]
fn a_stop_while_resigning_wins() {
    let (mut server, mut a, _) = pair();
    a.on(secs(1), Input::Resign, SOON);
    a.on(secs(1), Input::Stop, SOON);
    a.on(secs(1), Input::Idle, SOON);
    settle(&mut a, &mut server, secs(1));
    assert_eq!(a.action(), Action::End);
}

#[test]
fn a_leader_that_lost_its_lease_while_it_stopped_ends_without_releasing_it() {
    let (mut server, mut a, mut b) = pair();
    a.on(secs(1), Input::Stop, SOON);
    let lost = a.on(secs(12), Input::Awake, SOON);
    assert_eq!(lost, [Output::Lost(Loss::NotRenewed)]);
    run(&mut b, &mut server, 1, 16);
    let mut outputs = settle(&mut a, &mut server, secs(16));
    outputs.extend(a.on(secs(16), Input::Idle, SOON));
    outputs.extend(settle(&mut a, &mut server, secs(16)));
    assert_eq!((outputs, a.action()), (vec![], Action::End));
    assert_eq!(server.lease.expect("it stays").1.holder, "b");
}

#[test]
fn an_answer_that_comes_twice_changes_nothing() {
    let (mut server, mut a, _) = pair();
    a.on(secs(2), Input::Awake, SOON);
    let (attempt, _, renewal) = request(&a.action()).expect("a renewal");
    let answer = server.answer(&renewal);
    let answered = Input::Answered { attempt, answer };
    a.on(secs(2), answered.clone(), SOON);
    a.on(secs(4), Input::Awake, SOON);
    let before = format!("{a:?}");
    assert_eq!(a.on(secs(4), answered, SOON), []);
    assert_eq!(format!("{a:?}"), before);
}

#[test]
fn durations_that_cannot_work_are_refused() {
    let config = |duration, deadline, retry| {
        Config::new(
            Duration::from_secs(duration),
            Duration::from_secs(deadline),
            Duration::from_secs(retry),
        )
    };
    assert_eq!(config(15, 10, 2), Ok(Config::default()));
    assert_eq!(config(10, 10, 2), Err(InvalidConfig::DurationTooShort));
    assert_eq!(config(15, 3, 2), Err(InvalidConfig::DeadlineTooShort));
    assert_eq!(
        config(15, 4, 2).map(|config| config.retry()),
        Ok(Duration::from_secs(2))
    );
    assert_eq!(config(0, 0, 0), Err(InvalidConfig::TooFast));
    assert_eq!(config(15, 10, 0), Err(InvalidConfig::TooFast));
}
