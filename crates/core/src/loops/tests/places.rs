//! Paths, owners and differences.
