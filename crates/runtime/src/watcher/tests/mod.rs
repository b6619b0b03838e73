//! Streams against a scripted server, under paused time.

mod errors;
mod protocol;
mod recovery;
mod server;
