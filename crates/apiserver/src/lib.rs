//! An embedded Kubernetes API server.
//!
//! It answers as a Kubernetes 1.36 API server does, as far as controllers can see: versions and
//! conflicts, finalizers and garbage collection, generations and subresources, watches and lists
//! with their ways to expire. Custom resource definitions are served as soon as they are created.
//!
//! ```
//! # async fn example() -> Result<(), kube::Error> {
//! use homeostat_apiserver::ApiServer;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::Api;
//!
//! let server = ApiServer::builder().build();
//! let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
//! assert!(maps.get_opt("settings").await?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! [`ApiServer::faults`] makes requests fail, [`ApiServer::requests`] tells which came in,
//! [`ApiServer::changes_after`] what was stored, and [`ApiServer::compact`] forgets the history.
//!
//! Nothing runs here. With [`workloads(true)`](ApiServerBuilder::workloads) Deployments, `StatefulSet`s, Jobs and Pods fare
//! as in a cluster all the same, as far as objects and statuses show, and [`ApiServer::workloads`] makes them fail.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod access;
mod actors;
mod base64;
mod cel;
mod config;
mod environment;
mod fate;
mod faults;
mod fingerprint;
mod http;
mod journal;
mod listening;
mod managed;
mod object;
mod pattern;
mod place;
mod quantity;
mod quoted;
mod registry;
mod requests;
mod resource;
mod schema;
mod server;
mod stack;
mod state;
mod status;
mod storage;
mod task;
mod tls;
mod workloads;

pub use self::access::{Attributes, Authorizer, Decision, User};
pub use self::config::Config;
pub use self::environment::{Clock, SystemClock, TokioClock};
pub use self::fate::{Fate, PodRule, Workload};
pub use self::faults::{Fault, FaultGuard, Faults, Rule};
pub use self::http::{ResponseBody, Service, TransportError};
pub use self::journal::{ChangeView, ObjectView, StoredChange, StoredObject};
pub use self::listening::Listening;
pub use self::requests::{Request, Requests, Verb};
pub use self::server::{ApiServer, ApiServerBuilder};
pub use self::tls::random_token;
pub use self::workloads::{FateGuard, Held, Workloads};
