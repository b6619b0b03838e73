//! How commands end that cannot go on.

use std::process::ExitCode;

/// Why a command ends.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller did something wrong.
    Usage(String),
    /// Something else did.
    Other(String),
}

// === impl Failure ===

impl Failure {
    /// Tells people, and answers the exit status.
    pub(crate) fn report(&self, command: &str) -> ExitCode {
        let (problem, code) = match self {
            Self::Usage(problem) => (problem, 2),
            Self::Other(problem) => (problem, 1),
        };
        eprintln!("homeostat {command}: {problem}");
        ExitCode::from(code)
    }
}

/// What an error of the API says to people.
pub(crate) fn text(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        status.message.clone()
    } else {
        error.to_string()
    }
}
