//! Why an expression has no value.

use std::fmt;

/// An error of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// What `&&`, `||` and their like can absorb.
    Error(String),
    /// The expression takes more steps than it may: nothing goes on.
    Cost,
}

// === impl Fault ===

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Error(message.into())
    }

    pub(crate) fn no_overload() -> Self {
        Self::new("no such overload")
    }

    pub(crate) fn no_key(key: impl fmt::Display) -> Self {
        Self::Error(format!("no such key: {key}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(message) => f.write_str(message),
            Self::Cost => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}
