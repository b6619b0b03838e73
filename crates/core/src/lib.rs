//! Decisions of a controller runtime as plain values.
