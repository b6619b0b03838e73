//! Files that commands read and write, and what they say when they cannot.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Reads what an option such as `--manifest` names.
///
/// # Errors
///
/// The file cannot be read.
pub(crate) fn read_manifest(option: &str, file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| {
        let name = file.display();
        format!("cannot read {name}: {error}. {option} takes a YAML or JSON file")
    })
}

/// Writes a kubeconfig, which only its owner may read because there may be a token in it. One that is
/// there from an earlier time is replaced at once: nobody sees half of it.
///
/// # Errors
///
/// There is another file, or it cannot be written.
pub(crate) fn write_kubeconfig(file: &Path, text: &str) -> Result<(), String> {
    check_is_ours(file)?;
    let beside = beside(file);
    let written = write_private(&beside, text).and_then(|()| fs::rename(&beside, file));
    written.map_err(|error| {
        // It may not be there at all.
        drop(fs::remove_file(&beside));
        format!("cannot write {}: {error}", file.display())
    })
}

/// A kubeconfig that names nothing but a server of ours, or nothing at all.
///
/// # Errors
///
/// There is something else: somebody's clusters may be in it.
pub(crate) fn check_is_ours(file: &Path) -> Result<(), String> {
    let found = match fs::read(file) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot write {}: {error}", file.display())),
    };
    let text = String::from_utf8_lossy(&found);
    let mut names = text
        .lines()
        .filter_map(|line| line.strip_prefix("- name: "));
    let is_ours = text
        .lines()
        .any(|line| line == "current-context: homeostat")
        && names.all(|name| name == "homeostat");
    if found.is_empty() || is_ours {
        return Ok(());
    }
    Err(format!(
        "{} is there already, and homeostat did not write it: it stays as it is. --kubeconfig takes the \
         name of a new file",
        file.display()
    ))
}

/// A file in the same folder, that no other process writes.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    file.with_file_name(name)
}

fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}
