//! What must not be reported.
