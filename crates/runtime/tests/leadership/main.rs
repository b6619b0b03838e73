//! Leader election over the embedded server, under paused time.

#![allow(
    clippy::unwrap_used,
    reason = "an error here fails the test, which is all it can do"
)]

mod managers;
mod shards;

use homeostat::leadership::{Config, LeaderElection, Leadership, Loss};
use homeostat_apiserver::{ApiServer, Fault, Rule, Verb};
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{Api, api::PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::{
    task::{JoinHandle, yield_now},
    time::{Instant, advance, timeout},
};

const SECOND: Duration = Duration::from_secs(1);

struct Replica {
    leadership: Leadership,
    task: JoinHandle<()>,
}

fn replica(server: &ApiServer, name: &str) -> Replica {
    let election = LeaderElection::new(server.client(), "default", "operator").identity(name);
    let (leadership, elector) = election.start();
    Replica {
        leadership,
        task: tokio::spawn(elector.run()),
    }
}

fn leases(server: &ApiServer) -> Api<Lease> {
    Api::namespaced(server.client(), "default")
}

async fn holder(server: &ApiServer) -> String {
    let lease = leases(server).get("operator").await.unwrap();
    lease.spec.unwrap().holder_identity.unwrap()
}

/// How long it takes until `replica` leads.
async fn until_it_leads(replica: &Replica) -> Duration {
    let start = Instant::now();
    let leads = timeout(120 * SECOND, replica.leadership.acquired()).await;
    leads.expect("it leads within two minutes");
    start.elapsed()
}

/// Lets time pass in small steps, so that nothing is skipped.
async fn pass(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        advance(Duration::from_millis(100)).await;
        for _ in 0..20 {
            yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_writes_the_lease_as_client_go_does() {
    let server = ApiServer::builder().build();
    let a = replica(&server, "a");
    assert!(until_it_leads(&a).await < SECOND);
    let lease = leases(&server).get("operator").await.unwrap();
    let spec = lease.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    assert_eq!(spec.lease_transitions, Some(0));
    assert_eq!(spec.acquire_time, spec.renew_time);
    pass(5 * SECOND).await;
    let later = leases(&server).get("operator").await.unwrap().spec.unwrap();
    assert_eq!(later.acquire_time, spec.acquire_time);
    assert!(later.renew_time > spec.renew_time);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_hands_over_within_a_retry() {
    let server = ApiServer::builder().build();
    let a = replica(&server, "a");
    until_it_leads(&a).await;
    let b = replica(&server, "b");
    pass(30 * SECOND).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    assert_eq!(b.leadership.status().holder.as_deref(), Some("a"));
    a.leadership.stop();
    pass(20 * SECOND).await;
    // It still drains, so it still holds the lease.
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    a.leadership.idle();
    a.task.await.unwrap();
    assert!(until_it_leads(&b).await <= 2 * SECOND);
    assert_eq!(a.leadership.status().loss, Some(Loss::Released));
    assert!(a.leadership.status().ended && !a.leadership.is_leader());
    let spec = leases(&server).get("operator").await.unwrap().spec.unwrap();
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_transitions),
        (Some("b"), Some(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_gone_without_a_word_is_followed_after_its_lease() {
    let server = ApiServer::builder().build();
    let a = replica(&server, "a");
    until_it_leads(&a).await;
    let b = replica(&server, "b");
    pass(30 * SECOND).await;
    a.task.abort();
    let took = until_it_leads(&b).await;
    assert!(took <= 17 * SECOND, "{took:?}");
    assert!(took >= 10 * SECOND, "{took:?}");
    assert!(!a.leadership.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_anybody_else_starts() {
    for fault in [
        Fault::Unavailable,
        Fault::Refuse,
        Fault::Hang,
        Fault::LostAnswer,
        Fault::Forbidden,
    ] {
        let server = ApiServer::builder().build();
        let a = replica(&server, "a");
        until_it_leads(&a).await;
        let rule = Rule::any().resource("leases").verb(Verb::Update);
        let fault = server.faults().inject(rule, fault);
        let start = Instant::now();
        timeout(120 * SECOND, a.leadership.lost()).await.unwrap();
        let lost = start.elapsed();
        assert!((8 * SECOND..=10 * SECOND).contains(&lost), "{lost:?}");
        assert!(!a.leadership.is_leader());
        let status = a.leadership.status();
        assert!(status.last_error.is_some(), "{status:?}");
        drop(fault);
        assert!(until_it_leads(&a).await <= 6 * SECOND);
        assert_eq!(a.leadership.status().terms, 2);
        assert_eq!(a.leadership.status().last_error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn the_clocks_of_others_do_not_count() {
    for renewed in ["1990-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"] {
        let server = ApiServer::builder().build();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "operator", "labels": {"team": "a"}},
            "spec": {
                "holderIdentity": "written-in-go", "leaseDurationSeconds": 15, "leaseTransitions": 6,
                "acquireTime": renewed, "renewTime": renewed,
            },
        });
        let lease = serde_json::from_value(lease).unwrap();
        leases(&server)
            .create(&PostParams::default(), &lease)
            .await
            .unwrap();
        let a = replica(&server, "a");
        let took = until_it_leads(&a).await;
        assert!((15 * SECOND..=16 * SECOND).contains(&took), "{took:?}");
        let lease = leases(&server).get("operator").await.unwrap();
        let spec = lease.spec.unwrap();
        assert_eq!(spec.lease_transitions, Some(7));
        assert!(
            spec.renew_time.unwrap().0
                < Timestamp::now() + k8s_openapi::jiff::SignedDuration::from_hours(1)
        );
        assert_eq!(lease.metadata.labels.unwrap()["team"], "a");
    }
}

#[tokio::test(start_paused = true)]
async fn who_resigns_lets_others_go_first() {
    let server = ApiServer::builder().build();
    let a = replica(&server, "a");
    until_it_leads(&a).await;
    let b = replica(&server, "b");
    pass(3 * SECOND).await;
    a.leadership.resign();
    a.leadership.idle();
    a.leadership.lost().await;
    assert!(until_it_leads(&b).await <= 2 * SECOND);
    pass(60 * SECOND).await;
    assert_eq!(holder(&server).await, "b");
    b.leadership.resign();
    b.leadership.idle();
    assert!(until_it_leads(&a).await <= 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_election_ends_with_its_last_handle_and_releases_the_lease() {
    let server = ApiServer::builder().build();
    let Replica { leadership, task } = replica(&server, "a");
    leadership.acquired().await;
    drop(leadership);
    timeout(5 * SECOND, task).await.unwrap().unwrap();
    assert_eq!(holder(&server).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_standby_stops_at_once_even_if_the_server_is_silent() {
    let server = ApiServer::builder().build();
    let _silent = server.faults().inject(Rule::any(), Fault::Hang);
    let Replica { leadership, task } = replica(&server, "a");
    pass(SECOND).await;
    let start = Instant::now();
    leadership.stop();
    task.await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_standby_asks_once_each_two_seconds_at_the_most_often_and_never_twice_at_once() {
    let server = ApiServer::builder().build();
    let a = replica(&server, "a");
    until_it_leads(&a).await;
    let before = server.requests().all().len();
    pass(60 * SECOND).await;
    let asked = server.requests().all().len() - before;
    assert!((28..=38).contains(&asked), "{asked}");
}

#[test]
fn durations_that_cannot_work_are_refused() {
    assert!(Config::new(10 * SECOND, 15 * SECOND, 2 * SECOND).is_err());
    let fast = Config::new(3 * SECOND, 2 * SECOND, SECOND);
    assert_eq!(fast.unwrap().duration(), 3 * SECOND);
}
