//! Server-side apply, and who owns what, of a kind with every sort of list and map.

pub(crate) mod fields;
pub(crate) mod managers;
pub(crate) mod model;
pub(crate) mod play;
pub(crate) mod step;
