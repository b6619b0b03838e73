//! The functions that expressions can call, with their signatures.

mod signature;
mod table;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::types::{Opaque, Type};
use signature::read;

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    /// Whether it is called behind a dot; the value in front of it is the first argument.
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// How many types it is free in.
    pub(crate) params: u32,
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<&'static str, Vec<Overload>> = BTreeMap::new();
    for (name, overloads) in table::ALL.iter().copied().flatten() {
        let known = functions.entry(name).or_default();
        known.extend(overloads.iter().map(|(id, signature)| read(id, signature)));
    }
    functions
});

/// The ways to call a function. None if there is no such function.
pub(crate) fn overloads_of(function: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(function).map(Vec::as_slice)
}

/// The names of all functions.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// The types that expressions can name.
pub(crate) fn named_type(name: &str) -> Option<Type> {
    let kind = match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "type" => Type::type_of(Type::Dyn),
        "dyn" => Type::Dyn,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "net.IP" => Type::Opaque(Opaque::Ip),
        "net.CIDR" => Type::Opaque(Opaque::Cidr),
        "kubernetes.URL" => Type::Opaque(Opaque::Url),
        "kubernetes.Quantity" => Type::Opaque(Opaque::Quantity),
        "kubernetes.Semver" => Type::Opaque(Opaque::Semver),
        "kubernetes.NamedFormat" => Type::Opaque(Opaque::Format),
        _ => return None,
    };
    Some(Type::type_of(kind))
}
