//! The operator as a program, for any cluster that a kubeconfig leads to.

#![expect(clippy::print_stderr, reason = "it talks to the person who started it")]

use clap::Parser;
use homeostat::client::Tracked;
use kube::{Api, Client, api::ListParams, config::InferConfigError};
use std::{error::Error as _, io::Write, process::ExitCode, sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};
use tracing_subscriber::EnvFilter;
use website::{Config, Context, Website, dns::InMemoryDns};

/// How long a cluster may take to say that it is there.
const GREETING: Duration = Duration::from_secs(10);

/// How often the definition of the custom resource is looked for while it is missing.
const DEFINITION: Duration = Duration::from_secs(1);

/// A sample operator: a Website owns a config map, a deployment and a service, and has a host name.
///
/// It works in the cluster of the current context of the kubeconfig (or of its own pod), in all
/// namespaces, until Ctrl+C. Host names are registered in memory, not in a real DNS.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Args {
    /// Print the definition of the custom resource, and exit
    #[arg(long)]
    crd: bool,

    /// The domain in which hosts can be registered
    #[arg(long, default_value = "example.com")]
    domain: String,
}

const AFTER_HELP: &str = "\
Try it:
  website --crd | kubectl apply -f -
  website &
  kubectl apply -f examples/website/site.yaml
  kubectl get websites

Environment:
  KUBECONFIG  where the cluster is; ~/.kube/config by default
  RUST_LOG    what is logged, as in RUST_LOG=website=debug

Exit status: 0 after Ctrl+C, 1 if the cluster cannot be used, 2 for wrong arguments or no kubeconfig.";

/// Why the operator does not start.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(
        "no cluster to work in: {0}\n\
         Set KUBECONFIG to the path of a kubeconfig, or run this in a pod with a service account."
    )]
    NoConfig(#[source] InferConfigError),
    #[error("cannot make a client from the kubeconfig: {0}")]
    NoClient(#[source] kube::Error),
    #[error(
        "cannot reach {url}: {why}. Is the cluster running? \
         `kubectl cluster-info` uses the same kubeconfig."
    )]
    Unreachable { url: String, why: String },
    #[error("cannot print the definition: {0}")]
    NoOutput(String),
}

fn main() -> ExitCode {
    match start(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("website: {trouble}");
            match trouble {
                Trouble::NoConfig(_) => ExitCode::from(2),
                Trouble::NoClient(_) | Trouble::Unreachable { .. } | Trouble::NoOutput(_) => {
                    ExitCode::FAILURE
                }
            }
        }
    }
}

fn start(args: &Args) -> Result<(), Trouble> {
    if args.crd {
        return print_definition();
    }
    let filter = EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new("website=info,homeostat=info")))
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Trouble::Unreachable {
        url: "the cluster".into(),
        why: format!("this process cannot start threads: {error}"),
    })?;
    runtime.block_on(operate(args))
}

fn print_definition() -> Result<(), Trouble> {
    let yaml = website::crd_yaml().map_err(|error| Trouble::NoOutput(error.to_string()))?;
    let written = std::io::stdout().write_all(yaml.as_bytes());
    written.map_err(|error| Trouble::NoOutput(error.to_string()))
}

async fn operate(args: &Args) -> Result<(), Trouble> {
    let config = kube::Config::infer().await.map_err(Trouble::NoConfig)?;
    let url = config.cluster_url.to_string();
    // The controller knows what the operator writes by this client: runs wait until they can read it, and loops are
    // found.
    let named = Tracked::named(website::children::MANAGER);
    let client = named.client(config).map_err(Trouble::NoClient)?;
    greet(&client, url).await?;
    await_definition(&client).await;
    let config = Config {
        domain: args.domain.clone(),
        ..Config::default()
    };
    // Your provider goes here.
    let dns = Arc::new(InMemoryDns::default());
    eprintln!("website: watching websites in all namespaces; Ctrl+C ends it");
    website::run(Arc::new(Context::new(client, dns, config))).await;
    Ok(())
}

/// Asks the server for its version, because an operator that only logs "connection refused" now and
/// then helps nobody who has just started it.
async fn greet(client: &Client, url: String) -> Result<(), Trouble> {
    let why = match timeout(GREETING, client.apiserver_version()).await {
        Ok(Ok(version)) => {
            tracing::info!(url, version = version.git_version, "connected");
            return Ok(());
        }
        Ok(Err(kube::Error::Api(status))) => format!("{} {}", status.code, status.reason),
        Ok(Err(error)) => innermost(&error),
        Err(_) => format!("no answer within {} s", GREETING.as_secs()),
    };
    Err(Trouble::Unreachable { url, why })
}

/// The cause of an error that has no cause itself, as `Connection refused`.
fn innermost(error: &kube::Error) -> String {
    let mut cause = error.source();
    while let Some(next) = cause.and_then(|cause| cause.source()) {
        cause = Some(next);
    }
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Waits until the custom resource is served, and says what to do for that. All other trouble is
/// left to the controller, which reports it and goes on.
async fn await_definition(client: &Client) {
    let sites = Api::<Website>::all(client.clone());
    let mut told = false;
    while let Err(kube::Error::Api(status)) =
        sites.list_metadata(&ListParams::default().limit(1)).await
        // Not `is_not_found()`: for a path that nobody serves the answer is no Status.
        && status.code == 404
    {
        if !told {
            eprintln!(
                "website: the cluster does not know websites yet. Install their definition:\n\
                 \n    website --crd | kubectl apply -f -\n\n\
                 website: waiting for it"
            );
            told = true;
        }
        sleep(DEFINITION).await;
    }
}
