//! The operator as a program, for any cluster that a kubeconfig leads to.

#![expect(
    clippy::print_stdout,
    reason = "the definition goes to standard output"
)]

use homeostat::{Manager, client::Tracked, leadership::LeaderElection, manager::Unit};
use std::{error::Error, net::SocketAddr, sync::Arc};
use tenant::{Context, children::MANAGER};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--crd") {
        print!("{}", tenant::resource::crd_yaml()?);
        return Ok(());
    }
    tracing_subscriber::fmt::init();
    let client = Tracked::named(MANAGER).try_default().await?;
    let tenants = tenant::controller(Arc::new(Context::new(client.clone())));
    let probes = SocketAddr::from(([127, 0, 0, 1], 8080));
    Manager::new(client)
        .add(Unit::new(tenants).named(MANAGER))
        .leader_election(LeaderElection::try_default(MANAGER).await?)
        .serve(probes)
        .run()
        .await?;
    Ok(())
}
