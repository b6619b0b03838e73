//! The programs with homeostat.

pub(crate) use homeostat as runtime;

pub(crate) use homeostat::prelude;

pub(crate) const HOMEOSTAT: bool = true;

/// "nearly everybody used the default"
macro_rules! predicate_filter {
    ($stream:expr, $predicate:expr) => {
        $stream.predicate_filter($predicate)
    };
}

#[path = "names/mod.rs"]
mod names;
#[path = "programs/mod.rs"]
mod programs;
