//! The two ways to play cases: in process, and over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use futures::{StreamExt, stream};
use homeostat_apiserver::ApiServer;

use crate::corpus::Case;
use crate::player::{Names, play};
use crate::stage::Stage;

/// How the cases went, by `area/name`. A failure says which step differs and how.
pub(crate) type Outcomes = BTreeMap<String, Result<(), String>>;

/// How many cases are played on one server at the same time.
const AT_ONCE: usize = 16;

/// Plays the cases in process, each on a server of its own and under paused time.
pub(crate) fn in_process(cases: &BTreeMap<String, Case>) -> Outcomes {
    let play_one = |case: &Case| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let server = ApiServer::builder().seed(1);
            let server = server.namespace_defaults(case.furnished);
            let server = server.rbac(case.guarded).build();
            play(&case.text, &Stage::InProcess(server), &Names::new(0)).await
        })
    };
    cases
        .iter()
        .map(|(name, case)| (name.clone(), play_one(case)))
        .collect()
}

/// Plays the cases on servers that listen: one that puts something into every namespace, and one that
/// does not.
pub(crate) async fn on_a_socket(cases: &BTreeMap<String, Case>) -> Result<Outcomes, String> {
    let mut outcomes = Outcomes::new();
    for furnished in [false, true] {
        let server = ApiServer::builder().debug(true);
        let server = server.namespace_defaults(furnished).build();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listening = server.serve(address).await;
        let listening =
            listening.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        outcomes.extend(over_http(listening.address(), furnished, cases).await);
        listening.stop().await;
    }
    Ok(outcomes)
}

/// Plays the cases for this kind of server on one, many at once, and those that need the server for
/// themselves afterwards.
pub(crate) async fn over_http(
    address: SocketAddr,
    furnished: bool,
    cases: &BTreeMap<String, Case>,
) -> Outcomes {
    let stage = &Stage::Http(address);
    // Where roles decide, a client on a socket needs a token, which the recordings do not have.
    let fitting = cases
        .iter()
        .filter(|(_, case)| case.furnished == furnished && !case.guarded);
    let numbered = fitting.enumerate();
    let (exclusive, shared): (Vec<_>, Vec<_>) = numbered.partition(|(_, (_, case))| case.exclusive);
    let play_one = |(number, (name, case)): (usize, (&String, &Case))| {
        let (name, text) = (name.clone(), case.text.clone());
        async move { (name, play(&text, stage, &Names::new(number)).await) }
    };
    let mut outcomes: Outcomes = stream::iter(shared)
        .map(play_one)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let alone: Outcomes = stream::iter(exclusive).then(play_one).collect().await;
    outcomes.extend(alone);
    outcomes
}
