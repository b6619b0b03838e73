//! What the program can be told.

use clap::Parser;
use homeostat::leadership::{Config, InvalidConfig};
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// A sample operator: a Website owns a config map, a deployment and a service, and has a host name.
///
/// It works in the cluster of the current context of the kubeconfig (or of its own pod), in all
/// namespaces, until Ctrl+C or SIGTERM. Host names are registered in memory, not in a real DNS.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Print the definition of the custom resource, and exit
    #[arg(long)]
    pub(crate) crd: bool,

    /// The domain in which hosts can be registered
    #[arg(long, default_value = "example.com")]
    pub(crate) domain: String,

    /// Answer probes (/healthz, /readyz), scrapes (/metrics) and people (/) on this address, and go on when the cluster
    /// cannot be reached at the start
    #[arg(long, value_name = "ADDR:PORT", env = "WEBSITE_SERVE")]
    pub(crate) serve: Option<SocketAddr>,

    /// What people have to know for actions on the page, and to read it from other machines
    #[arg(
        long,
        value_name = "TOKEN",
        env = "WEBSITE_TOKEN",
        hide_env_values = true,
        requires = "serve"
    )]
    pub(crate) token: Option<String>,

    /// Speak HTTPS there, with the certificates in this file (PEM)
    #[arg(long, value_name = "FILE", requires = "serve", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the first of them (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) election: Election,
}

// The flags have the names that Kubernetes' own components give them. (This is no documentation comment, because those
// are texts of `--help`.)
#[derive(Debug, clap::Args)]
pub(crate) struct Election {
    /// Let only one of several replicas work, and the others stand by
    #[arg(long, env = "WEBSITE_LEADER_ELECT")]
    pub(crate) leader_elect: bool,

    /// Let all replicas work, and divide the sites among them; with the same options for the leases
    #[arg(long, env = "WEBSITE_SHARD", conflicts_with = "leader_elect")]
    pub(crate) shard: bool,

    /// The name of the lease, or of the group of replicas
    #[arg(long, value_name = "NAME", default_value = "website")]
    pub(crate) leader_elect_resource_name: String,

    /// The namespace of the lease [default: that of the pod, or of the kubeconfig's context]
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: Option<String>,

    /// How long a lease is valid without being renewed
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    leader_elect_lease_duration: Duration,

    /// How long a leader works without having renewed its lease
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    leader_elect_renew_deadline: Duration,

    /// The time between attempts to get or renew the lease
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    leader_elect_retry_period: Duration,
}

const AFTER_HELP: &str = "\
Try it:
  website --crd | kubectl apply -f -
  website &
  kubectl apply -f examples/website/site.yaml
  kubectl get websites

Environment:
  KUBECONFIG            where the cluster is; ~/.kube/config by default
  RUST_LOG              what is logged, as in RUST_LOG=website=debug
  WEBSITE_SERVE         the same as --serve
  WEBSITE_TOKEN         the same as --token
  WEBSITE_LEADER_ELECT  the same as --leader-elect: true or false
  WEBSITE_SHARD         the same as --shard: true or false

Exit status: 0 after Ctrl+C or SIGTERM, 1 if the cluster cannot be used or something had to be cancelled at the end,
2 for wrong arguments or no kubeconfig.";

// === impl Election ===

impl Election {
    /// The durations of the lease.
    ///
    /// # Errors
    ///
    /// They do not fit together.
    pub(crate) fn durations(&self) -> Result<Config, InvalidConfig> {
        Config::new(
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )
    }
}

/// Seconds or milliseconds, as in `15s` and `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wanted = || format!("{text:?} is no time such as 15s or 500ms");
    let (number, unit) = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .map_or((text, ""), |place| text.split_at(place));
    let number: u64 = number.parse().map_err(|_| wanted())?;
    match unit {
        "s" => Ok(Duration::from_secs(number)),
        "ms" => Ok(Duration::from_millis(number)),
        _ => Err(wanted()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, Config, duration};
    use clap::Parser;
    use std::time::Duration;

    #[test]
    fn times_have_a_unit() {
        for (text, expected) in [
            ("15s", Some(Duration::from_secs(15))),
            ("500ms", Some(Duration::from_millis(500))),
            ("15", None),
            ("s", None),
            ("-1s", None),
            ("15 s", None),
            ("15m", None),
        ] {
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_lease_is_client_gos_by_default() {
        let args = Args::parse_from(["website", "--leader-elect"]);
        assert!(args.election.leader_elect);
        assert_eq!(args.election.durations().unwrap(), Config::default());
        let args = Args::parse_from(["website", "--leader-elect-lease-duration=5s"]);
        assert!(!args.election.leader_elect);
        let why = args.election.durations().unwrap_err().to_string();
        assert!(why.contains("renew deadline"), "{why}");
    }
}
