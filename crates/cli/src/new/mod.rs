//! `homeostat new`: a project that builds, with everything that an operator has in production.

mod ask;
mod names;
mod owned;
mod roles;
mod template;

use self::{names::Names, owned::Owned, template::Template};
use crate::failure::Failure;
use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

/// Arguments of `homeostat new`.
#[derive(clap::Args, Debug)]
#[command(
    about = "Make the project of a new operator",
    long_about = "Makes a folder with an operator that builds and works at once: a custom resource, a reconciler, errors \
    with their classes, a program with leader election, probes and metrics, tests on the embedded API server, a test of \
    the checker, roles that are just enough, manifests, a Dockerfile and a workflow for GitHub.\n\n\
    On a terminal it asks for what the arguments do not say. Otherwise it takes the defaults. It never changes a file \
    that is there.\n\n\
    Exit status: 0 when the project is made, 1 if it cannot be written, 2 for a bad argument or a folder that is there.",
    after_long_help = "Examples:
  homeostat new cache-operator
  homeostat new cache-operator --group caches.example.com --kind Cache --owns Deployment Service --status
  cd cache-operator && cargo test && cargo run -- --dev"
)]
pub(crate) struct Args {
    /// The name of the project, which is made in a folder of this name
    #[arg(value_name = "NAME")]
    name: String,
    /// The group of the custom resource [default: example.com]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// The kind of the custom resource [default: from the name of the project]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// The version of the custom resource [default: v1alpha1]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    #[arg(long, value_name = "KIND", num_args = 1.., help = owned::help())]
    owns: Vec<String>,
    /// Clean up outside of the cluster before an object goes
    #[arg(long)]
    finalizer: bool,
    /// Tell in a status with conditions how an object is
    #[arg(long)]
    status: bool,
    /// Take homeostat from a clone in this folder
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

/// Everything that a project depends on.
#[derive(Debug)]
struct Plan {
    names: Names,
    owned: Vec<&'static Owned>,
    finalizer: bool,
    status: bool,
    /// Where a clone of homeostat is.
    clone: Option<PathBuf>,
}

/// The files of a project, and what becomes of them.
const FILES: [(&str, &str); 23] = [
    ("Cargo.toml", include_str!("templates/Cargo.toml.tmpl")),
    (".gitignore", include_str!("templates/gitignore.tmpl")),
    (".dockerignore", include_str!("templates/dockerignore.tmpl")),
    ("README.md", include_str!("templates/README.md.tmpl")),
    ("Dockerfile", include_str!("templates/Dockerfile.tmpl")),
    (
        ".github/workflows/ci.yaml",
        include_str!("templates/ci.yaml.tmpl"),
    ),
    ("sample.yaml", include_str!("templates/sample.yaml.tmpl")),
    (
        "deploy/kustomization.yaml",
        include_str!("templates/kustomization.yaml.tmpl"),
    ),
    (
        "deploy/namespace.yaml",
        include_str!("templates/namespace.yaml.tmpl"),
    ),
    ("deploy/crd.yaml", include_str!("templates/crd.yaml.tmpl")),
    ("deploy/rbac.yaml", "{{rbac}}"),
    (
        "deploy/deployment.yaml",
        include_str!("templates/deployment.yaml.tmpl"),
    ),
    (
        "deploy/podmonitor.yaml",
        include_str!("templates/podmonitor.yaml.tmpl"),
    ),
    ("src/main.rs", include_str!("templates/main.rs.tmpl")),
    ("src/lib.rs", include_str!("templates/lib.rs.tmpl")),
    (
        "src/resource.rs",
        include_str!("templates/resource.rs.tmpl"),
    ),
    (
        "src/reconcile.rs",
        include_str!("templates/reconcile.rs.tmpl"),
    ),
    (
        "src/children.rs",
        include_str!("templates/children.rs.tmpl"),
    ),
    ("src/error.rs", include_str!("templates/error.rs.tmpl")),
    ("src/status.rs", include_str!("templates/status.rs.tmpl")),
    (
        "tests/operator.rs",
        include_str!("templates/tests_operator.rs.tmpl"),
    ),
    (
        "tests/sound.rs",
        include_str!("templates/tests_sound.rs.tmpl"),
    ),
    (
        "tests/roles.rs",
        include_str!("templates/tests_roles.rs.tmpl"),
    ),
];

/// What only projects with a status have.
const STATUS: &str = "src/status.rs";

pub(crate) fn run(args: Args) -> ExitCode {
    match make(args) {
        Ok(folder) => {
            let folder = folder.display();
            println!("{folder} is made. Try: cd {folder} && cargo test && cargo run -- --dev");
            ExitCode::SUCCESS
        }
        Err(failure) => failure.report("new"),
    }
}

fn make(args: Args) -> Result<PathBuf, Failure> {
    let folder = PathBuf::from(&args.name);
    names::check_project(&args.name).map_err(Failure::Usage)?;
    check_is_free(&folder)?;
    let is_asking = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let plan = if is_asking {
        ask::plan(args)?
    } else {
        Plan::of(args).map_err(Failure::Usage)?
    };
    plan.write(&folder)
        .map_err(|error| Failure::Other(format!("cannot write {}: {error}", folder.display())))?;
    format(&folder);
    Ok(folder)
}

/// A folder in which nothing can be lost.
fn check_is_free(folder: &Path) -> Result<(), Failure> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if is_empty {
        return Ok(());
    }
    let folder = folder.display();
    Err(Failure::Usage(format!(
        "{folder} is there already, and nothing in it is changed: take another name, or remove it"
    )))
}

/// Breaks lines as rustfmt does, where it is installed: how long they are depends on the names. Not by cargo, which
/// refuses that where the folder is in a workspace of which the project is no member yet.
fn format(folder: &Path) {
    let program = std::env::var_os("RUSTFMT").unwrap_or_else(|| "rustfmt".into());
    let mut command = Command::new(program);
    command.args(["--edition", "2024"]).current_dir(folder);
    // These bring the other files with them.
    let roots = FILES.iter().map(|(file, _)| *file);
    let roots = roots
        .filter(|file| ["src/lib.rs", "src/main.rs"].contains(file) || file.starts_with("tests/"));
    command.args(roots);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // The code is the same without it.
    let _ = command.status();
}

// === impl Plan ===

impl Plan {
    /// What the arguments say, and the defaults for what they do not.
    ///
    /// # Errors
    ///
    /// A name that cannot be used, with what would do.
    fn of(args: Args) -> Result<Self, String> {
        let Args {
            name,
            group,
            kind,
            version,
            owns,
            finalizer,
            status,
            path,
        } = args;
        let names = Names::new(
            &name,
            group.unwrap_or_else(|| names::GROUP.to_owned()),
            kind.unwrap_or_else(|| names::kind_of(&name)),
            version.unwrap_or_else(|| names::VERSION.to_owned()),
        )?;
        let owned = owned::find(&owns)?;
        if let Some(same) = owned.iter().find(|owned| owned.kind == names.kind) {
            let kind = same.kind;
            return Err(format!(
                "--kind {kind}: this is the name of a kind that it owns"
            ));
        }
        let clone = path.map(|path| clone_at(&path)).transpose()?;
        Ok(Self {
            names,
            owned,
            finalizer,
            status,
            clone,
        })
    }

    fn write(&self, folder: &Path) -> std::io::Result<()> {
        let template = Template::of(self);
        for (file, text) in FILES {
            if file == STATUS && !self.status {
                continue;
            }
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap_or(folder))?;
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).open(file)?;
            std::io::Write::write_all(&mut file, template.fill(text).as_bytes())?;
        }
        Ok(())
    }
}

/// A clone of homeostat, as a path that holds from everywhere.
fn clone_at(path: &Path) -> Result<PathBuf, String> {
    let wrong = |why: &str| format!("--path {}: {why}", path.display());
    let path = path
        .canonicalize()
        .map_err(|error| wrong(&error.to_string()))?;
    if path.join("crates/runtime/Cargo.toml").is_file() {
        Ok(path)
    } else {
        Err(wrong(
            "this is no clone of homeostat, which has crates/runtime",
        ))
    }
}
