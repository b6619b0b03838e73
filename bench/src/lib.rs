//! What homeostat costs, next to `kube::runtime` in the same run.
//!
//! - `benches/compare`: CPU, memory and latency of both against one server that sends prepared bytes. `cargo xtask bench`
//!   runs it; docs/performance.md has the figures.
