//! Random sequences of requests, against the server and against a model of the API machinery that is
//! as naive as can be. The two have to agree on status codes and reasons, on what every object looks
//! like afterwards, on which writes were none, on the order of versions, and on the events.

mod model;
mod play;
mod step;

use play::Play;
use proptest::prelude::*;
use step::{Step, step};

/// Plays the steps from an empty server on.
fn play(steps: &[Step]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut play = Play::begin().await?;
        for (number, step) in steps.iter().enumerate() {
            play.step(step)
                .await
                .map_err(|error| format!("step {number}, {step:?}: {error}"))?;
        }
        play.end().await
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_server_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        play(&steps).map_err(TestCaseError::fail)?;
    }
}
