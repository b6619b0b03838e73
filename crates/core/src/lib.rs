//! Decisions of a controller runtime as plain values.

pub mod backoff;
pub mod cache;
pub mod children;
pub mod compare;
pub mod conditions;
pub mod finalizer;
pub mod lease;
pub mod loops;
pub mod outage;
pub mod queue;
pub mod readable;
pub mod series;
pub mod shard;
pub mod telling;
pub mod time;
pub mod unseen;
pub mod watch;
pub mod wedge;
