//! Adapters for watch streams, and the backoff that they share.

mod backoff;
mod changes;
mod event_decode;
mod event_modify;
mod predicate_filter;
mod reflect;
mod stream_backoff;
mod watch_ext;

pub use self::{
    backoff::{Backoff, ResetTimerBackoff},
    changes::{Change, Changes},
    event_decode::EventDecode,
    event_modify::EventModify,
    predicate_filter::{EventFilter, PredicateFilter, WatchItem},
    reflect::Reflect,
    stream_backoff::StreamBackoff,
    watch_ext::WatchStreamExt,
};
pub use crate::{
    predicate::{Predicate, PredicateConfig, predicates},
    task::CancelableJoinHandle,
};
