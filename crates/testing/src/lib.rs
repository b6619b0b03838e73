//! Checks that an operator converges, whatever happens in between.
//!
//! A [`Scenario`] says what the operator is and what its users do. [`Scenario::check`] runs it as a
//! reference, and then under each way in which a cluster can be unkind: the operator crashes after
//! this write, that request is answered 500, the watch of Secrets lags, the object is deleted in the
//! middle, somebody edits a child. Each time it must come to rest, and end as the reference does.
//!
//! What leaves the world as it was is followed by the next in the same run. What is wrong then is run alone, and only
//! that counts.
//!
//! ```
//! # use homeostat::{Action, Controller, error_policy, watcher};
//! # use homeostat_testing::Scenario;
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use kube::{Api, Client, ResourceExt, api::{Patch, PatchParams}};
//! # use serde_json::json;
//! # use std::sync::Arc;
//! # async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> kube::Result<Action> {
//! #     let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &map.namespace().unwrap_or_default());
//! #     let data = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "made": "today" } });
//! #     let params = PatchParams::apply("greeter").force();
//! #     maps.patch(&map.name_any(), &params, &Patch::Apply(data)).await?;
//! #     Ok(Action::await_change())
//! # }
//! let report = Scenario::new()
//!     .controller(|client| {
//!         Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
//!             .run(reconcile, error_policy::backoff, Arc::new(client))
//!     })
//!     .given("{ apiVersion: v1, kind: ConfigMap, metadata: { name: a } }")
//!     .check();
//! report.assert_sound();
//! assert!(report.plans() > 20);
//! ```
//!
//! # Guarantees
//!
//! - Controller, server, garbage collector and time are in one thread under tokio's paused time. Everything
//!   random comes from one seed, which the report prints: the same seed gives the same log.
//! - A report names the shortest plan of each fault, and a line that runs exactly this again.
//! - A check that showed nothing fails: the operator must have written something.
//!
//! # What escapes it
//!
//! What your code takes from outside of its client and of tokio: the machine's clock (call
//! [`homeostat::clock::now`] in its place), threads, the network, the seeds of `std`'s hash maps. Such a run
//! may differ from the one before, and its replay too.
//!
//! Controllers of `kube::runtime` are checked in the same way. Their delays of the wall clock do not
//! follow the paused time.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/testing.md")]
mod documents {}

mod address;
mod check;
mod generate;
mod hand;
pub mod log;
mod object;
mod oracle;
mod panics;
mod plan;
mod recorder;
mod reference;
mod report;
mod save;
mod scenario;
mod series;
mod setup;
mod spans;
mod state;
mod task;
mod told;
mod trace;
mod verdict;
mod wire;
mod world;

pub use self::{
    object::ObjectId,
    oracle::{Fault, Problem},
    plan::{Injection, Plan, Trouble, UnknownPlan},
    report::{Finding, Report},
    scenario::Scenario,
    state::{Difference, State},
};
