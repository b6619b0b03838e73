//! What can go wrong, and what follows from it.

use homeostat::{Classify, children};

/// What can go wrong in a reconcile. Each error says how it is answered.
#[derive(Debug, thiserror::Error, Classify)]
pub enum Error {
    /// The API server is away, busy, or somebody else was faster.
    #[error("Kubernetes API error: {0}")]
    KubeApi(#[from] kube::Error),
    /// A child could not be made as it should be.
    #[error(transparent)]
    Child(#[from] children::Error),
    /// The name of a backup is taken by a Job that is not ours. It may go.
    #[error("the Job {0} was made by somebody else")]
    #[classify(transient, reason = "NameTaken")]
    Foreign(String),
    /// The database is being deleted, and its last backup has failed. It will be made again.
    #[error("the last backup has failed; set spec.backup.onDeletion to false to do without it")]
    #[classify(transient, reason = "FinalBackupFailed")]
    FinalBackup,
}
