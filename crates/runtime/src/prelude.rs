//! The traits that programs need in scope, and nothing that has a name of its own.
//!
//! `kube::prelude` has [`WatchStreamExt`](crate::WatchStreamExt) only with kube's feature `runtime`,
//! which a program that uses this crate does without. This prelude has it, with all of kube's:
//!
//! ```
//! use homeostat::{prelude::*, watcher};
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::Api;
//!
//! fn names(pods: Api<Pod>) -> impl futures::Stream<Item = String> {
//!     use futures::{StreamExt, TryStreamExt};
//!     let pods = watcher(pods, watcher::Config::default()).applied_objects();
//!     pods.map_ok(|pod| pod.name_any()).filter_map(async |name| name.ok())
//! }
//! ```
//!
//! Use it in place of `kube::prelude`, or beside it.

pub use self::traits_of_kube::*;
pub use crate::{Classify as _, Predicate as _, WatchStreamExt as _};

pub(crate) mod traits_of_kube {
    pub use kube::{
        Resource as _, ResourceExt as _,
        client::ConfigExt as _,
        core::{CustomResourceExt as _, PartialObjectMetaExt as _, SelectorExt as _},
    };
}
