//! The operator as a program, for any cluster that a kubeconfig leads to.

#![expect(clippy::print_stderr, reason = "it talks to the person who started it")]

mod options;

use self::options::{Args, Election};
use clap::Parser;
use homeostat::{
    Manager,
    client::Tracked,
    leadership::{InvalidConfig, LeaderElection},
    manager::{
        Server, Task,
        rustls::{
            self,
            pki_types::{
                CertificateDer, PrivateKeyDer,
                pem::{self, PemObject},
            },
        },
    },
    sharding::Sharding,
};
use kube::{Api, Client, api::ListParams, config::InferConfigError};
use std::{
    convert::Infallible,
    error::Error as _,
    io::{IsTerminal, Write},
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::Duration,
};
use tokio::time::{sleep, timeout};
use tracing_subscriber::EnvFilter;
use website::{Config, Context, Website, children::MANAGER, dns::InMemoryDns};

/// How long a cluster may take to say that it is there.
const GREETING: Duration = Duration::from_secs(10);

/// How often the definition of the custom resource is looked for while it is missing.
const DEFINITION: Duration = Duration::from_secs(1);

/// Why the operator does not start, or did not end as it should.
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
    #[error("the times of the lease do not fit together: {0}")]
    Lease(#[source] InvalidConfig),
    #[error("{0} cannot be used for HTTPS: {1}")]
    Tls(String, String),
    #[error("cannot print the definition: {0}")]
    NoOutput(String),
    #[error(transparent)]
    Ended(homeostat::manager::Error),
}

fn main() -> ExitCode {
    match start(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("website: {trouble}");
            match trouble {
                Trouble::NoConfig(_) | Trouble::Lease(_) => ExitCode::from(2),
                Trouble::NoClient(_)
                | Trouble::Unreachable { .. }
                | Trouble::Tls(..)
                | Trouble::NoOutput(_)
                | Trouble::Ended(_) => ExitCode::FAILURE,
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
        .with_ansi(std::io::stderr().is_terminal())
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
    // Before anything is asked for, because wrong arguments are wrong without a cluster, too.
    let together = together(&args.election, &config)?;
    let server = server(args)?;
    let url = config.cluster_url.to_string();
    // The controller knows what the operator writes by this client: runs wait until they can read it, and loops are
    // found.
    let client = Tracked::named(MANAGER)
        .client(config)
        .map_err(Trouble::NoClient)?;
    if args.serve.is_none() {
        greet(&client, url).await?;
    }
    let config = Config {
        domain: args.domain.clone(),
        ..Config::default()
    };
    // Your provider goes here.
    let dns = Arc::new(InMemoryDns::default());
    let ctx = Arc::new(Context::new(client.clone(), dns, config));
    let definition = Task::new("definition", move |stopping| {
        let client = client.clone();
        async move {
            tokio::select! {
                () = stopping.requested() => {}
                () = await_definition(&client) => {}
            }
            Ok::<_, Infallible>(())
        }
    });
    let manager = website::manager(&ctx, server).task(definition.on_every_replica());
    eprintln!("website: watching websites in all namespaces; Ctrl+C ends it");
    together(manager).run().await.map_err(Trouble::Ended)
}

/// What answers probes, if something is to.
fn server(args: &Args) -> Result<Option<Server>, Trouble> {
    let Some(address) = args.serve else {
        return Ok(None);
    };
    let mut server = Server::on(address);
    if let Some(token) = &args.token {
        server = server.token(token);
    }
    let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(Some(server));
    };
    let unreadable = |file: &Path, error: pem::Error| {
        Trouble::Tls(file.display().to_string(), error.to_string())
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unreadable(cert, error))?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key_der);
    let config =
        config.map_err(|error| Trouble::Tls(cert.display().to_string(), error.to_string()))?;
    Ok(Some(server.tls(config)))
}

/// How it works with its other replicas, if there are any.
fn together(
    args: &Election,
    config: &kube::Config,
) -> Result<impl FnOnce(Manager) -> Manager + use<>, Trouble> {
    let durations = args.durations().map_err(Trouble::Lease)?;
    let namespace = args.leader_elect_resource_namespace.as_ref();
    let namespace = namespace.unwrap_or(&config.default_namespace);
    let name = args.leader_elect_resource_name.as_str();
    // A client of its own, so that a busy operator renews its lease in time.
    let client = Tracked::named(MANAGER).client(config.clone());
    let client = client.map_err(Trouble::NoClient)?;
    let sharding = args
        .shard
        .then(|| Sharding::new(client.clone(), namespace, name).config(durations));
    let election = args
        .leader_elect
        .then(|| LeaderElection::new(client, namespace, name).config(durations));
    Ok(|manager: Manager| match (sharding, election) {
        (Some(sharding), _) => manager.sharded(sharding),
        (None, Some(election)) => manager.leader_election(election),
        (None, None) => manager,
    })
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

/// Waits until the custom resource is served, and says what to do for that. The controller waits for it, too, and takes
/// up to 45 s to notice; all other trouble is its own to report.
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
