//! Programs with kube's exact signatures, and all names, with `homeostat::compat`.

pub(crate) use homeostat::compat as runtime;

macro_rules! predicate_filter {
    ($stream:expr, $predicate:expr) => {
        $stream.predicate_filter(
            $predicate,
            crate::on_compat::runtime::PredicateConfig::default(),
        )
    };
}

#[path = "names/mod.rs"]
mod names;
#[path = "signatures/mod.rs"]
mod signatures;
