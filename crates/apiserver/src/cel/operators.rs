//! The names of the functions that operators stand for.

pub(crate) const CONDITIONAL: &str = "_?_:_";
pub(crate) const AND: &str = "_&&_";
pub(crate) const OR: &str = "_||_";
pub(crate) const NOT: &str = "!_";
pub(crate) const NEGATE: &str = "-_";
pub(crate) const EQUALS: &str = "_==_";
pub(crate) const NOT_EQUALS: &str = "_!=_";
pub(crate) const LESS: &str = "_<_";
pub(crate) const LESS_EQUALS: &str = "_<=_";
pub(crate) const GREATER: &str = "_>_";
pub(crate) const GREATER_EQUALS: &str = "_>=_";
pub(crate) const ADD: &str = "_+_";
pub(crate) const SUBTRACT: &str = "_-_";
pub(crate) const MULTIPLY: &str = "_*_";
pub(crate) const DIVIDE: &str = "_/_";
pub(crate) const MODULO: &str = "_%_";
pub(crate) const IN: &str = "@in";
pub(crate) const INDEX: &str = "_[_]";
pub(crate) const OPTIONAL_INDEX: &str = "_[?_]";
pub(crate) const OPTIONAL_SELECT: &str = "_?._";
/// True for everything but false: an error does not end a loop.
pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
/// Adds an entry to the map that a loop makes.
pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
pub(crate) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

/// The name of the variable in which a loop gathers its result. No source can name it.
pub(crate) const ACCUMULATOR: &str = "@result";
