//! What the functions do. The arguments are those that the types promise, or anything where the
//! types are not known before: then there may be no such overload.

mod convert;
mod format;
mod formats;
mod lists;
mod network;
mod numbers;
mod operators;
mod optionals;
mod texts;
mod times;
mod urls;

use super::fault::Fault;
use super::value::{Outcome, Value};
use crate::pattern::Patterns;

/// A call of a function; the value in front of the dot is the first argument.
#[derive(Debug)]
pub(crate) struct Call<'a, 'c> {
    pub(crate) function: &'c str,
    pub(crate) args: &'c [Value<'a>],
    pub(crate) patterns: &'c Patterns,
}

pub(crate) type Function = for<'a, 'c> fn(&Call<'a, 'c>) -> Outcome<'a>;

/// Functions by their names.
type Room = (&'static [&'static str], Function);

const ROOMS: [&[Room]; 11] = [
    &operators::ROOM,
    &convert::ROOM,
    &texts::ROOM,
    &format::ROOM,
    &lists::ROOM,
    &times::ROOM,
    &optionals::ROOM,
    &network::ROOM,
    &urls::ROOM,
    &numbers::ROOM,
    &formats::ROOM,
];

/// What the function of a name does. None if nothing is here by that name.
pub(crate) fn function_of(name: &str) -> Option<Function> {
    let mut rooms = ROOMS.iter().copied().flatten();
    let found = rooms.find(|(names, _)| names.contains(&name));
    found.map(|(_, function)| *function)
}

// === impl Call ===

impl<'a> Call<'a, '_> {
    /// There is no way to call the function with these arguments.
    fn no_overload(&self) -> Outcome<'a> {
        if self.function.contains(['_', '@']) {
            return Err(Fault::no_overload());
        }
        Err(Fault::new(format!("no such overload: {}", self.function)))
    }
}
