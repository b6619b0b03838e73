//! A sample operator.
