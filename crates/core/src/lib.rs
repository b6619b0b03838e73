//! Decisions of a controller runtime as plain values.

pub mod backoff;
pub mod cache;
pub mod queue;
pub mod time;
pub mod watch;
