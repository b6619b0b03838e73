//! The programs with `kube::runtime`.

pub(crate) use kube_runtime as runtime;

/// As with the feature `runtime` of kube.
pub(crate) mod prelude {
    pub(crate) use kube_runtime::WatchStreamExt as _;
}

pub(crate) const HOMEOSTAT: bool = false;

/// There the configuration has to be said.
macro_rules! predicate_filter {
    ($stream:expr, $predicate:expr) => {
        $stream.predicate_filter(
            $predicate,
            crate::on_kube::runtime::PredicateConfig::default(),
        )
    };
}

#[path = "names/mod.rs"]
mod names;
#[path = "programs/mod.rs"]
mod programs;
#[path = "signatures/mod.rs"]
mod signatures;
