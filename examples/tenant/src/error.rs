//! What can go wrong, and what follows from it.

use homeostat::Classify;

/// What can go wrong in a reconcile. A namespace that is taken is no error: everything else goes on.
#[derive(Debug, thiserror::Error, Classify)]
pub enum Error {
    /// The API server is away, busy, or somebody else was faster.
    #[error("Kubernetes API error: {0}")]
    KubeApi(#[from] kube::Error),
    /// A child could not be made as it should be.
    #[error(transparent)]
    Child(#[from] homeostat::children::Error),
}
