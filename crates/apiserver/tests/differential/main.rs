//! Random sequences of requests, against the server and against models of the API machinery that are
//! as naive as can be. They have to agree on status codes and reasons, on what every object looks
//! like afterwards, on which writes were none, on the order of versions, and on the events. One model
//! has kinds that differ in their rules, the other one kind whose fields have owners.

mod apply;
mod model;
mod play;
mod server;
mod step;

use std::future::Future;

use play::Play;
use proptest::prelude::*;
use step::{Step, step};

/// Runs a play from an empty server on.
fn run(play: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(play)
}

async fn play(steps: &[Step]) -> Result<(), String> {
    let mut play = Play::begin().await?;
    for (number, step) in steps.iter().enumerate() {
        play.step(step)
            .await
            .map_err(|error| format!("step {number}, {step:?}: {error}"))?;
    }
    play.end().await
}

async fn play_apply(steps: &[apply::step::Step]) -> Result<(), String> {
    let mut play = apply::play::Play::begin().await?;
    for (number, step) in steps.iter().enumerate() {
        play.step(step)
            .await
            .map_err(|error| format!("step {number}, {step:?}: {error}"))?;
    }
    play.end().await
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_server_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        run(play(&steps)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn the_server_agrees_on_who_owns_what(steps in apply::step::steps()) {
        run(play_apply(&steps)).map_err(TestCaseError::fail)?;
    }
}
