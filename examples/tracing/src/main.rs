//! The operator as a program, for any cluster that a kubeconfig leads to.

#![expect(clippy::print_stderr, reason = "it talks to the person who started it")]

use homeostat::client::Tracked;
use kube::Config;
use std::{env, error::Error, process::ExitCode};
use tracing_subscriber::util::SubscriberInitExt;

/// Where the standard expects a collector, if the environment does not say otherwise.
const COLLECTOR: &str = "http://localhost:4318";

#[tokio::main]
async fn main() -> ExitCode {
    match start().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tracing-example: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start() -> Result<(), Box<dyn Error>> {
    let collector = env::var("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_else(|_| COLLECTOR.into());
    let provider = tracing_example::provider(&collector)?;
    tracing_example::subscriber(&provider).init();
    let client = Tracked::client(Config::infer().await?)?;
    tracing_example::run(client, async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("tracing-example: cannot listen for Ctrl+C: {error}");
        }
    })
    .await;
    // It waits for the collector, in a thread where that holds up nothing.
    tokio::task::spawn_blocking(move || provider.shutdown()).await??;
    Ok(())
}
