//! Programs that are compiled twice from one source, against `kube::runtime` and against homeostat,
//! and run against the embedded server with the same assertions on what happened.
//!
//! A program sees one of the two as `super::runtime`. `on_kube` and `on_homeostat` each include
//! `programs` and `names`; the latter names everything that `kube::runtime` has, so that a missing
//! name does not compile. `names/bounds.rs` uses everything with the weakest bounds with which kube's compiles, so
//! that a stricter bound does not compile either.
//!
//! Where a program has to be written differently, each of the two has a line for it, and
//! docs/porting.md has a row:
//!
//! - `predicate_filter!`: the configuration is an argument there, and there is a method for it here.
//!
//! `signatures` holds programs that need kube's exact signatures: they are compiled against `kube::runtime`
//! and against `homeostat::compat`, which has all `names` too.
//!
//! Where the two behave differently on purpose, a program asks for `HOMEOSTAT`: in
//! `programs/improvements.rs`, and for the `Display` of events in `programs/dynamic_watcher.rs`.

#![cfg_attr(
    test,
    expect(
        clippy::duplicate_mod,
        reason = "that a program is compiled twice is what this is for"
    )
)]
#![cfg_attr(
    test,
    allow(
        clippy::large_futures,
        clippy::needless_pass_by_value,
        clippy::redundant_closure_for_method_calls,
        reason = "the programs are written as people write them for kube::runtime"
    )
)]

#[cfg(test)]
mod cluster;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod on_compat;
#[cfg(test)]
mod on_homeostat;
#[cfg(test)]
mod on_kube;
#[cfg(test)]
mod scripted;
