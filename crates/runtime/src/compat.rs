//! Everything of this crate, with the exact signatures of kube-runtime 5 where ours differ.
//!
//! What compiles with `kube::runtime` compiles with `homeostat::compat` in its place:
//!
//! ```
//! use homeostat::compat::{self as runtime, PredicateConfig, WatchStreamExt, predicates, watcher};
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::Api;
//!
//! fn follow(pods: Api<Pod>) -> impl futures::Stream<Item = watcher::Result<Pod>> {
//!     runtime::watcher(pods, watcher::Config::default())
//!         .default_backoff()
//!         .applied_objects()
//!         .predicate_filter(predicates::generation, PredicateConfig::default())
//! }
//! ```
//!
//! Names that this module does not define are those of the crate itself, so one program may use both:
//! `homeostat::compat` in the files that are not ported yet, and `homeostat` in the others.
//!
//! # What differs from the crate itself
//!
//! [`WatchStreamExt`], and [`utils::EventDecode`] that it makes: [`WatchStreamExt::predicate_filter`] takes
//! a configuration, and its type is [`PredicateFilter`](crate::utils::PredicateFilter) on every stream.
//! What it lets pass is the same: a deletion always passes, which a predicate could hide in kube. The trait has
//! kube's methods and no others, so that the methods of your own extension traits keep their names;
//! [`changes`](crate::WatchStreamExt::changes) and [`deleted_objects`](crate::WatchStreamExt::deleted_objects)
//! are in the crate's own.
//!
//! # What compat cannot hide
//!
//! The enums of errors have more variants than kube's, which the compiler says where a `match` names
//! them all. What behaves differently at run time does so here as well.

mod streams;

pub use self::streams::WatchStreamExt;
pub use crate::*;

/// As [`homeostat::utils`](crate::utils), with the signatures of kube-runtime 5.
pub mod utils {
    pub use super::streams::{EventDecode, WatchStreamExt};
    pub use crate::utils::*;
}

/// As [`homeostat::prelude`](crate::prelude), with the signatures of kube-runtime 5.
pub mod prelude {
    pub use super::WatchStreamExt as _;
    pub use crate::prelude::traits_of_kube::*;
}
