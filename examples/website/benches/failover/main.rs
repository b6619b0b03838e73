//! Whether the operator changes hands without a change lost and without two that work at once: real processes over HTTP,
//! in real time, the leader killed and the next one paused. `cargo xtask failover` runs it. With `--shards` all operators work,
//! and divide the sites: `cargo xtask shards`.
//!
//! There is a server process, three operator processes of which two run at a time, and this one, which changes sites,
//! sends signals, and judges by the server's log of requests.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it reports on its standard streams"
)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "it cannot go on then")]

mod load;
mod log;
mod process;
mod report;
mod server;
mod shards;
mod sites;

use self::{
    load::Load,
    process::{Operator, Server},
    report::Report,
};
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{Api, Client};
use std::{process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// How long it is before the leader is killed, and between the first hand-over and the pause.
const CALM: Duration = Duration::from_secs(3);
/// How long anything may take that this waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long changes are made.
const LENGTH: Duration = Duration::from_secs(30);
/// What lets one operator of several work.
const ELECT: &str = "--leader-elect";

/// The times of the lease, in seconds. They are shorter than by default, so that two hand-overs fit into the time of the
/// load.
const LEASE: u64 = 6;
const RENEW: u64 = 4;
const RETRY: u64 = 1;

/// Where the lease is.
const NAMESPACE: &str = "website-system";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if has("--server") {
        runtime.block_on(server::run());
        return ExitCode::SUCCESS;
    }
    if has("--shards") {
        return shards::report(&runtime.block_on(shards::play()), has("--json"));
    }
    let report = runtime.block_on(play());
    if has("--json") {
        println!("{}", report.json());
    } else {
        println!("{}", report.text());
    }
    if report.is_well() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn play() -> Report {
    let mut server = Server::start().await;
    let client = server.client(server::PERSON);
    sites::create(&client, NAMESPACE).await;
    let [first, second, third, _] = log::OPERATORS;
    let first = Operator::start(&server, first, ELECT);
    assert_eq!(until_led(&client, "").await, first.name);
    assert_eq!(
        sites::until_settled(&client, PATIENCE).await,
        0,
        "nothing has begun yet"
    );
    let second = Operator::start(&server, second, ELECT);
    second.until_ready().await;
    eprintln!(
        "{} leads, {} stands by, and changes begin",
        first.name, second.name
    );

    let load = Load::start(&client, LENGTH);
    sleep(CALM).await;
    let killed = (first.name, Timestamp::now());
    first.signal("KILL");
    eprintln!("killed {}", first.name);
    let third = Operator::start(&server, third, ELECT);
    let next = until_led(&client, first.name).await;
    eprintln!("{next} leads");
    third.until_ready().await;
    sleep(CALM).await;

    let (old, other) = if next == second.name {
        (&second, &third)
    } else {
        (&third, &second)
    };
    let paused = (old.name, Timestamp::now());
    let since = Instant::now();
    old.signal("STOP");
    eprintln!("paused {}", old.name);
    assert_eq!(until_led(&client, old.name).await, other.name);
    // The next one works, and the old one still believes that it leads, if it trusts anything but its clock.
    sleep(Duration::from_secs(LEASE).saturating_sub(since.elapsed())).await;
    sleep(Duration::from_secs(1)).await;
    old.signal("CONT");
    let length = since.elapsed().as_secs_f64();
    eprintln!(
        "{} leads, and {} goes on after {length:.1} s",
        other.name, old.name
    );

    let (changes, refused) = load.ended().await;
    let end = Instant::now();
    let lost = sites::until_settled(&client, PATIENCE).await;
    let settled = end.elapsed();
    let log = server.log().await;
    Report {
        lost,
        doubled: log.doubled(),
        handovers: [killed, paused].map(|(old, at)| log.handover(old, at)),
        changes,
        refused,
        writes: log.writes(),
        settled,
    }
}

/// Waits until an operator other than `old` holds the lease, and gives its name.
async fn until_led(client: &Client, old: &str) -> String {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let led = async {
        loop {
            // Its identity is the program's name, the host's name and a random part.
            let lease = leases.get_opt("website").await.unwrap();
            let holder = lease.and_then(|lease| lease.spec?.holder_identity);
            let name = holder
                .as_deref()
                .and_then(|holder| holder.split('_').nth(1));
            match name {
                Some(name) if name != old => return name.to_owned(),
                Some(_) | None => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let led = timeout(PATIENCE, led).await;
    led.unwrap_or_else(|_| panic!("nobody took over from {old:?} within {PATIENCE:?}"))
}
