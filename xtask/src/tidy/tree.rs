//! The repository as a value: its files, and what cargo says about its packages.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::source::Source;

/// Everything that a rule may look at.
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
    pub(crate) graph: Graph,
}

/// A tracked file.
pub(crate) struct File {
    /// Relative to the root of the repository, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) bytes: usize,
    /// The content, with a replacement character for whatever is not UTF-8.
    pub(crate) text: String,
    /// Set for Rust files.
    pub(crate) source: Option<Source>,
}

/// What `cargo metadata` says: the packages and which of them use which.
#[derive(Deserialize, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) packages: Vec<Package>,
    workspace_root: String,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    id: String,
    manifest_path: String,
    pub(crate) license: Option<String>,
    /// The oldest Rust that it says it compiles with.
    pub(crate) rust_version: Option<String>,
    /// The registries that it may go to; an empty list for none, nothing for any.
    publish: Option<Vec<String>>,
    /// Whatever its manifest says for other tools.
    #[serde(default)]
    pub(crate) metadata: serde_json::Value,
    /// Where it comes from; nothing for packages of this repository.
    pub(crate) source: Option<String>,
    #[serde(default)]
    targets: Vec<Target>,
    /// As declared in the manifest.
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(default, deserialize_with = "normal_if_null")]
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) features: Vec<String>,
    /// Set for packages of this repository.
    pub(crate) path: Option<String>,
}

#[derive(Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Normal,
    Build,
    Dev,
}

#[derive(Deserialize, Debug)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize, Debug, Default)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize, Debug)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

// === impl Tree ===

impl Tree {
    /// A tree of these files: pairs of a path and a content.
    pub(crate) fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>, graph: Graph) -> Self {
        let mut files: BTreeMap<String, File> = files
            .into_iter()
            .map(|(path, bytes)| (path.clone(), File::new(path, &bytes)))
            .collect();
        // A module that its parent declares under `#[cfg(test)]` is test code as a whole.
        let tests: Vec<String> = files.values().flat_map(File::test_modules).collect();
        for (path, file) in &mut files {
            let stem = path.strip_suffix(".rs").unwrap_or(path);
            let declared = tests
                .iter()
                .any(|test| stem == test || stem.starts_with(&format!("{test}/")));
            if let Some(source) = &mut file.source
                && (declared || is_test_path(path))
            {
                source.mark_as_test();
            }
        }
        Self { files, graph }
    }

    /// Reads the repository that this program was built from.
    pub(crate) fn of_repository() -> anyhow::Result<Self> {
        let root = root();
        let mut files = Vec::new();
        for path in tracked(root)? {
            match std::fs::read(root.join(&path)) {
                Ok(bytes) => files.push((path, bytes)),
                // Deleted, and not committed yet; or a link to a folder.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
                    ) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
            }
        }
        Ok(Self::new(files, Graph::of_repository(root)?))
    }

    /// In the order of their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// Rust files, in the order of their paths.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.files()
            .filter_map(|file| Some((file.path.as_str(), file.source.as_ref()?)))
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// Whether the path is a file, or a folder with a file in it.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }

    /// The line of the file that starts with the word, or 1.
    pub(crate) fn line_starting_with(&self, path: &str, word: &str) -> usize {
        let starts = |line: &str| {
            let rest = line.trim_start().strip_prefix(word)?;
            Some(!rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_'))
        };
        self.file(path)
            .and_then(|file| {
                file.text
                    .lines()
                    .position(|line| starts(line) == Some(true))
            })
            .map_or(1, |index| index + 1)
    }
}

/// The folder of this workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package is in a folder of the root")
}

/// The paths of the tracked files, or of all files where there is no git to ask.
fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    // A repository of another owner is fine: nothing of its configuration is run.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .current_dir(root)
        .output();
    if let Ok(output) = output
        && output.status.success()
    {
        let paths = String::from_utf8(output.stdout).context("git names a file not in UTF-8")?;
        return Ok(paths.split_terminator('\0').map(str::to_owned).collect());
    }
    // An unpacked release has no history.
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let Some(name) = path.to_str() else {
                bail!("{} is not UTF-8", path.display())
            };
            if entry.file_type()?.is_file() {
                paths.push(name.replace('\\', "/"));
            } else if entry.file_type()?.is_dir() && !matches!(name, "target" | ".git") {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}

/// What cargo prints.
fn cargo(root: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(args)
        .current_dir(root)
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("cargo {} failed:\n{complaint}", args.join(" "));
    }
    Ok(output.stdout)
}

/// Whether a file by its place holds nothing but tests.
fn is_test_path(path: &str) -> bool {
    path.split('/')
        .any(|part| matches!(part, "tests" | "tests.rs"))
}

// === impl File ===

impl File {
    fn new(path: String, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut file = Self {
            path,
            bytes: bytes.len(),
            text,
            source: None,
        };
        file.source = file.has_ending("rs").then(|| Source::new(&file.text));
        file
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        self.name()
            .rsplit_once('.')
            .is_some_and(|(_, found)| found == ending)
    }

    /// The modules that this file declares under `#[cfg(test)]`, as paths without ending.
    fn test_modules(&self) -> Vec<String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let parent = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => format!("{folder}/{}", name.trim_end_matches(".rs")),
        };
        let declared = self.source.iter().flat_map(|source| &source.test_modules);
        declared
            .map(|module| format!("{parent}/{module}"))
            .collect()
    }
}

// === impl Graph ===

impl Graph {
    pub(crate) fn of_repository(root: &Path) -> anyhow::Result<Self> {
        // Packages for other platforms only are not asked for: cargo would have to download them,
        // and a test must not need the network.
        let version = cargo(root, &["--version", "--verbose"])?;
        let version = String::from_utf8(version).context("cargo's version is not UTF-8")?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("cargo does not say its host")?;
        let metadata = cargo(
            root,
            &[
                "metadata",
                "--format-version",
                "1",
                "--filter-platform",
                host,
            ],
        )?;
        serde_json::from_slice(&metadata).context("cargo metadata has an unknown format")
    }

    /// The packages of this repository.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The libraries of this repository that users depend on.
    pub(crate) fn published_libraries(&self) -> impl Iterator<Item = &Package> {
        self.members()
            .filter(|package| package.is_library() && package.publish.as_deref() != Some(&[]))
    }

    /// The folder of a package, relative to the root.
    pub(crate) fn folder<'a>(&self, package: &'a Package) -> &'a str {
        let manifest = package.manifest_path.as_str();
        let relative = manifest
            .strip_prefix(&self.workspace_root)
            .unwrap_or(manifest);
        relative
            .trim_start_matches(['/', '\\'])
            .trim_end_matches("Cargo.toml")
            .trim_end_matches('/')
    }

    /// The packages that use this one in the resolved graph.
    pub(crate) fn users(&self, package: &Package) -> impl Iterator<Item = &Package> {
        let nodes = self
            .resolve
            .nodes
            .iter()
            .filter(|node| node.dependencies.contains(&package.id));
        nodes.filter_map(|node| self.packages.iter().find(|user| user.id == node.id))
    }
}

// === impl Package ===

impl Package {
    /// Whether it has a library, so that others can use it.
    pub(crate) fn is_library(&self) -> bool {
        self.targets
            .iter()
            .flat_map(|target| &target.kind)
            .any(|kind| matches!(kind.as_str(), "lib" | "rlib" | "proc-macro"))
    }

    /// Whether what it needs in its users' builds includes this package.
    pub(crate) fn needs(&self, name: &str) -> bool {
        self.dependencies
            .iter()
            .any(|dependency| dependency.name == name && dependency.kind == Kind::Normal)
    }
}

// === impl Kind ===

/// Cargo writes the kind of a normal dependency as null.
fn normal_if_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Kind, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
