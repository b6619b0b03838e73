//! `homeostat dev`: an API server to develop against.

mod manifest;
mod stop;

use self::stop::Stop;
use crate::{failure::Failure, file};
use futures::FutureExt;
use homeostat_apiserver::{ApiServer, Listening, TokioClock, User, random_token};
use std::{
    io::Write,
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    process::ExitCode,
};
use tokio::{runtime::Runtime, sync::oneshot};

/// Arguments of `homeostat dev`.
#[derive(clap::Args, Debug)]
#[command(
    about = "Run an embedded Kubernetes API server to develop against",
    long_about = "Starts an embedded Kubernetes API server to develop against: objects, watches, custom resources, \
    garbage collection and namespaces as in a cluster, but no etcd, no containers, and nothing that runs. Everything \
    is in memory and gone when it ends.\n\n\
    Prints `listening on URL` when it is ready, and ends with Ctrl+C or SIGTERM.\n\n\
    Without --kubeconfig it speaks plain HTTP and lets everybody do everything who can connect; it listens on the \
    loopback interface alone. With --kubeconfig it speaks HTTPS and answers only those who have the token in the \
    file.\n\n\
    Exit status: 0 when it was told to end, 1 if it cannot listen, 2 for a bad argument or manifest.",
    after_long_help = "Examples:\n  \
    homeostat dev --listen 127.0.0.1:8001\n  \
    homeostat dev --kubeconfig dev.yaml --manifest crds.yaml samples/*.yaml --workloads --log requests\n  \
    homeostat dev --kubeconfig dev.yaml --rbac --manifest deploy/*.yaml\n  \
    kubectl --kubeconfig dev.yaml get all"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// Apply the objects of these YAML or JSON files, in order, before the server is ready
    #[arg(long, value_name = "FILE", num_args = 1..)]
    manifest: Vec<PathBuf>,
    /// Write a kubeconfig for this server to FILE, which its owner alone can read, and speak HTTPS
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Let Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and Pods fare as in a cluster, though nothing runs
    #[arg(long)]
    workloads: bool,
    /// Let roles and bindings decide who may do what, and answer to the tokens of service accounts
    ///
    /// The token in the kubeconfig is the administrator's. `kubectl create token NAME` makes one of a service account.
    #[arg(long, requires = "kubeconfig")]
    rbac: bool,
    /// Print to standard error what comes in
    #[arg(long, value_name = "WHAT")]
    log: Option<Log>,
    /// Serve `POST /debug/compact`, which forgets the history, and where time is virtual
    /// `POST /debug/advance?ms=N`; both want the header `X-Homeostat-Debug: yes`, which forms on web pages cannot send
    #[arg(long)]
    debug: bool,
    /// Answer to these names in `Host`, besides localhost and the addresses of the loopback interface
    ///
    /// Over plain HTTP, a request that came to the loopback interface with another name is answered with 421: a web
    /// page can make a name of its own point there.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    allow_host: Vec<String>,
    /// Let the server's time begin at 2026-01-01 and stand still until `POST /debug/advance?ms=N`
    #[arg(long, requires = "debug")]
    virtual_time: bool,
}

/// What can be logged.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Log {
    /// Method, URL, status, user and user agent of each request
    Requests,
}

/// Who has the token in the kubeconfig.
const USER: &str = "kubernetes-admin";

// === impl Args ===

impl Args {
    /// What is to be logged besides what `RUST_LOG` asks for.
    pub(crate) fn log_directive(&self) -> Option<&'static str> {
        self.log
            .map(|Log::Requests| "homeostat_apiserver::requests=debug")
    }
}

pub(crate) fn run(args: Args) -> ExitCode {
    match start(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("dev"),
    }
}

fn start(args: Args) -> Result<(), Failure> {
    if args.kubeconfig.is_none() && !args.listen.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "{} can be reached from other machines: add --kubeconfig FILE, with which only those who \
             have the token get an answer, or listen on 127.0.0.1",
            args.listen
        )));
    }
    let objects = manifest::read(&args.manifest).map_err(Failure::Usage)?;
    let runtime = runtime(args.virtual_time)
        .map_err(|error| Failure::Other(format!("cannot start a runtime: {error}")))?;
    // As long as something blocks, paused time does not go on by itself.
    let (ended, until_ended) = oneshot::channel::<()>();
    if args.virtual_time {
        runtime.spawn_blocking(move || drop(until_ended.blocking_recv()));
    }
    let outcome = runtime.block_on(serve(args, objects));
    drop(ended);
    outcome
}

fn runtime(virtual_time: bool) -> std::io::Result<Runtime> {
    if virtual_time {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build()
    } else {
        Runtime::new()
    }
}

async fn serve(args: Args, objects: Vec<manifest::Object>) -> Result<(), Failure> {
    let Args {
        listen,
        manifest: _,
        kubeconfig,
        workloads,
        rbac,
        log: _,
        debug,
        allow_host,
        virtual_time,
    } = args;
    // From here on a signal ends the server in good order, however early it comes.
    let mut stop = Stop::new().map_err(Failure::Other)?;
    let mut builder = ApiServer::builder()
        .workloads(workloads)
        .rbac(rbac)
        .namespace_defaults(rbac)
        .debug(debug);
    for name in allow_host {
        builder = builder.allow_host(name);
    }
    builder = if virtual_time {
        builder
            .clock(TokioClock::default())
            .advance_with(|by| tokio::time::advance(by).boxed())
    } else {
        builder
    };
    let secured = match kubeconfig {
        Some(file) => {
            let token = random_token()
                .map_err(|error| Failure::Other(format!("cannot make a token: {error}")))?;
            let user = User::new(USER).group("system:masters");
            builder = builder.https(true).token(token.clone(), user);
            Some((file, token))
        }
        None => None,
    };
    let server = builder.build();
    manifest::apply(&server.client(), &objects)
        .await
        .map_err(Failure::Usage)?;
    let listening = server.serve(listen).await.map_err(|error| {
        Failure::Other(format!(
            "cannot listen on {listen}: {error}. --listen takes another address; port 0 is a free one"
        ))
    })?;
    if let Some((file, token)) = &secured {
        file::write_kubeconfig(file, &listening.kubeconfig_with_token(token))
            .map_err(Failure::Usage)?;
    }
    announce(&listening);
    stop.wait().await;
    tokio::select! {
        () = listening.stop() => {}
        // Whoever asks twice does not want to wait for clients.
        () = stop.wait() => {}
    }
    Ok(())
}

/// Tells whoever started this that it is ready.
fn announce(listening: &Listening) {
    let mut stdout = std::io::stdout();
    // Whoever closed the other end does not want to know.
    drop(writeln!(stdout, "listening on {}", listening.url()).and_then(|()| stdout.flush()));
}

/// An address and a port; a name is looked up.
fn address(text: &str) -> Result<SocketAddr, String> {
    let wanted = "ADDR:PORT is wanted, as in 127.0.0.1:8001 or [::1]:0";
    let mut found = text
        .to_socket_addrs()
        .map_err(|error| format!("{error}. {wanted}"))?;
    found.next().ok_or_else(|| wanted.to_owned())
}
