//! `homeostat rbac`: the rights that an operator needs, from the requests that it makes in its tests.

mod compare;
mod manifest;
mod requests;
mod rights;

use self::compare::Comparison;
pub(crate) use self::{
    manifest::yaml,
    rights::{Place, Right, Rights},
};
use crate::{check::cargo, failure::Failure};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

/// Arguments of `homeostat rbac`.
#[derive(clap::Args, Debug)]
#[command(
    about = "Write the smallest roles with which the operator of this project can work, or check those that it has",
    long_about = "Runs the tests of this project. The embedded API server notes what the operator's requests need, and \
    from that this prints a ServiceAccount, roles and bindings as YAML: the rights that are needed and no others.\n\n\
    The operator's requests are those of a client with homeostat::client::Tracked. Requests of the tests themselves, and \
    those of operators into which a test builds a mistake (Scenario::catches), do not count. So the roles are as \
    complete as the tests: what no test lets the operator do, it may not do.\n\n\
    Two rights are added. Whoever may watch may list, for clusters that cannot stream lists. Whoever sets \
    blockOwnerDeletion in an object may update the finalizers of its owner, for clusters with \
    OwnerReferencesPermissionEnforcement.\n\n\
    What the operator does in one namespace alone goes into a Role, and so do its leases; all else goes into a \
    ClusterRole.\n\n\
    Exit status: 0 if the roles were written or, with --check, are as they should be; 1 if they are not, or if a test \
    fails; 2 for a bad argument or if no operator made a request.",
    after_long_help = "Examples:
  homeostat rbac --name website-operator > deploy/rbac.yaml
  homeostat rbac --check deploy/rbac.yaml          fails if it grants less or more than is needed
  homeostat rbac deploy reconcile --check deploy/rbac.yaml
                                                   only tests with `deploy` or `reconcile` in their names
  homeostat rbac -p website --json                 one package, for programs

  HOMEOSTAT_REQUESTS=$PWD/target/requests cargo test
  homeostat rbac --requests target/requests        without running the tests again"
)]
pub(crate) struct Args {
    /// Only tests with one of these in their name
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
    /// Compare with the roles in these files, and print what they grant too little or too much
    #[arg(long, value_name = "FILE", num_args = 1..)]
    check: Vec<PathBuf>,
    /// Only this package
    #[arg(short, long, value_name = "NAME")]
    package: Option<String>,
    /// The project's Cargo.toml [default: the one of this folder or above]
    #[arg(long, value_name = "FILE")]
    manifest_path: Option<PathBuf>,
    /// Take the requests that tests have noted in this folder, and run none
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["tests", "package", "manifest_path"])]
    requests: Option<PathBuf>,
    /// Only requests with this in their user agent
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
    /// The name of the account, roles and bindings
    #[arg(long, default_value = "operator")]
    name: String,
    /// The namespace of the operator itself [default: NAME-system]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
}

/// Names the folder where the servers of a process note what requests need.
const FOLDER: &str = "HOMEOSTAT_REQUESTS";

pub(crate) fn run(args: &Args) -> ExitCode {
    match rbac(args) {
        Ok(code) => code,
        Err(failure) => failure.report("rbac"),
    }
}

fn rbac(args: &Args) -> Result<ExitCode, Failure> {
    // Before anything takes long.
    let granted = manifest::granted(&args.check)?;
    let needs = match &args.requests {
        Some(folder) => requests::read(folder, args.user_agent.as_deref())?,
        None => of_tests(args)?,
    };
    if needs.is_empty() {
        let text = "no operator made a request to homeostat's API server. Its client is one of homeostat::client::Tracked, \
            or --user-agent names it; docs/guide/testing.md shows tests";
        return Err(Failure::Usage(text.to_owned()));
    }
    let rights = Rights::of(&needs);
    if args.check.is_empty() {
        let namespace = args.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| format!("{}-system", args.name));
        if args.json {
            let objects = manifest::objects(&rights, &args.name, &namespace);
            println!("{}", json!({ "objects": objects }));
        } else {
            print!("{}", manifest::yaml(&rights, &args.name, &namespace));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let comparison = Comparison::new(&rights, &granted);
    if args.json {
        println!("{}", comparison.to_json());
    } else {
        print!("{comparison}");
    }
    Ok(if comparison.is_exact() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the tests, and answers what the operator's requests needed.
fn of_tests(args: &Args) -> Result<Vec<requests::Need>, Failure> {
    let folder = std::env::temp_dir().join(format!("homeostat-rbac-{}", std::process::id()));
    let tested = test(args, &folder);
    let needs = tested.and_then(|()| requests::read(&folder, args.user_agent.as_deref()));
    // It is the system's to remove otherwise.
    let _ = fs::remove_dir_all(&folder);
    needs
}

fn test(args: &Args, folder: &Path) -> Result<(), Failure> {
    let mut command = Command::new(cargo());
    command.args(["test", "--tests"]);
    if let Some(package) = &args.package {
        command.arg("--package").arg(package);
    }
    if let Some(manifest) = &args.manifest_path {
        command.arg("--manifest-path").arg(manifest);
    }
    command.arg("--").args(&args.tests);
    command.env(FOLDER, folder).stdin(Stdio::null());
    // Cargo tells on standard error how far it is, and people see it.
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::Other(format!("cannot run cargo: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
    Err(Failure::Other(
        "the tests fail, so it is not known what the operator needs".to_owned(),
    ))
}
