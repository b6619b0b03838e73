//! The programs, and what has to happen when they run.

use super::{HOMEOSTAT, runtime};

mod applier;
mod await_condition;
mod configmap_generator;
mod crd_reflector;
mod custom_mapper;
mod debounced;
mod dynamic_owner;
mod dynamic_watcher;
mod error_without_sync;
mod event_recorder;
mod expiring;
mod filtered_stream;
mod graceful_shutdown;
mod improvements;
mod late_definition;
mod metadata_only;
mod multi_watcher;
mod namespaced_fields;
mod node_reflector;
mod reconcile_all;
mod reconcile_on;
mod scheduler;
mod secret_syncer;
mod shared_streams;
mod watch_object;
