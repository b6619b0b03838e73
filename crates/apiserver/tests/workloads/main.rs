//! What a cluster makes of workloads, as clients see it: objects, owners, statuses, and each step on the way.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by a panic"
)]

mod cron_jobs;
mod daemon_sets;
mod deployments;
mod jobs;
mod stateful_sets;
mod world;
