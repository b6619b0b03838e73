//! Replicas that divide objects among them, in real time.

use std::process::ExitCode;

use crate::failover;

/// Arguments of `cargo xtask shards`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print one JSON object, with `converged`, `doubled` (writes about a site that had moved to another operator before),
    /// `lost` (sites that are not as they should be at the end), `moved_share` (of the sites, when an operator came), and
    /// what it was measured with
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    failover::play(args.json, &["--shards"])
}
