//! Serves the API on a socket, for kubectl and clients in other languages.
//!
//! ```text
//! cargo run -p homeostat-apiserver --example serve -- --listen 127.0.0.1:8001 --kubeconfig kubeconfig.yaml
//! KUBECONFIG=kubeconfig.yaml kubectl get namespaces
//! ```

#![expect(
    clippy::print_stdout,
    reason = "the address on standard output is what whoever started this waits for"
)]

use std::net::SocketAddr;
use std::path::PathBuf;

use homeostat_apiserver::{ApiServer, SystemClock};

const USAGE: &str = "usage: serve [--listen ADDRESS] [--kubeconfig FILE] [--workloads]

  --listen ADDRESS    where to listen; 127.0.0.1:0 by default, which takes a free port
  --kubeconfig FILE   write a kubeconfig for the server to FILE
  --workloads         let Deployments become available and Pods run, though nothing runs";

struct Arguments {
    listen: SocketAddr,
    kubeconfig: Option<PathBuf>,
    workloads: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        kubeconfig: None,
        workloads: false,
    };
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or(format!("{word} needs a value\n\n{USAGE}"))
        };
        match word.as_str() {
            "--listen" => {
                let text = value()?;
                arguments.listen = text
                    .parse()
                    .map_err(|error| format!("--listen {text}: {error}\n\n{USAGE}"))?;
            }
            "--kubeconfig" => arguments.kubeconfig = Some(value()?.into()),
            "--workloads" => arguments.workloads = true,
            other => return Err(format!("{other} is not known\n\n{USAGE}")),
        }
    }
    Ok(arguments)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(why) => {
            println!("{why}");
            std::process::exit(2);
        }
    };
    let server = ApiServer::builder()
        .clock(SystemClock)
        .workloads(arguments.workloads)
        .build();
    let listening = server.serve(arguments.listen).await?;
    if let Some(file) = arguments.kubeconfig {
        std::fs::write(file, listening.kubeconfig())?;
    }
    println!("listening on {}", listening.url());
    tokio::signal::ctrl_c().await?;
    listening.stop().await;
    Ok(())
}
