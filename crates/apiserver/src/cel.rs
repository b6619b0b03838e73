//! The Common Expression Language as servers of Kubernetes 1.36 have it: from the text of a rule to
//! its types, its cost, and its value. It knows schemas only through [`declared`].

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "there are many kinds of nodes, types and values, and most functions speak of a few"
)]

pub(crate) mod ast;
pub(crate) mod check;
pub(crate) mod cost;
pub(crate) mod declared;
pub(crate) mod evaluate;
pub(crate) mod fault;
mod format_string;
mod functions;
mod lexer;
mod library;
mod names;
mod operators;
pub(crate) mod parser;
pub(crate) mod program;
mod semver;
mod source;
#[cfg(test)]
mod tests;
pub(crate) mod times;
pub(crate) mod types;
mod url;
pub(crate) mod value;

pub(crate) use parser::parse;
