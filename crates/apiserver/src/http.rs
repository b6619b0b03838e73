//! The API over HTTP: one tower service, for a client in the same process and for hyper.

mod answer;
mod debug;
mod discovery;
mod incoming;
mod media;
mod openapi;
mod presentation;
mod protobuf;
mod query;
mod resource;
mod route;
mod service;
mod table;
mod watch;

pub(crate) use self::answer::{Answer, Body};
pub(crate) use self::query::Query;
pub(crate) use self::route::{ResourcePath, Route};
pub use self::service::{ResponseBody, Service, TransportError};
