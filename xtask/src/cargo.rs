//! Starting cargo.

use std::process::{Command, ExitCode, ExitStatus, Stdio};

use crate::tidy;

/// The cargo that runs this program, in the root of the repository.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(tidy::root())
        .stdin(Stdio::null());
    // Cargo describes this package to this program. Build scripts of dependencies that look at
    // these variables would run again, with everything that depends on them.
    for (name, _) in std::env::vars_os() {
        let described = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name
            .to_str()
            .is_some_and(|name| described.iter().any(|start| name.starts_with(start)))
        {
            command.env_remove(name);
        }
    }
    command
}

/// The same status; 1 for a program that a signal ended.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        None => ExitCode::FAILURE,
    }
}
