//! What the environment says about a check.

use crate::setup::Setup;
use std::path::PathBuf;

/// The variables, by what they say.
const REPLAY: &str = "HOMEOSTAT_REPLAY";
const SEED: &str = "HOMEOSTAT_SEED";
const SEEDS: &str = "HOMEOSTAT_SEEDS";
const BUDGET: &str = "HOMEOSTAT_BUDGET";
const SAVE: &str = "HOMEOSTAT_SAVE";

/// What the environment wants otherwise than the test.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    replay: Option<String>,
    seed: Option<String>,
    seeds: Option<String>,
    budget: Option<String>,
    save: Option<String>,
}

impl Told {
    pub(crate) fn by_environment() -> Self {
        // An empty variable says nothing.
        let read = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        Self {
            replay: read(REPLAY),
            seed: read(SEED),
            seeds: read(SEEDS),
            budget: read(BUDGET),
            save: read(SAVE),
        }
    }

    /// Changes a scenario accordingly.
    ///
    /// # Errors
    ///
    /// A variable says no number.
    pub(crate) fn apply<X>(self, setup: &mut Setup<X>) -> Result<(), String> {
        let Self {
            replay,
            seed,
            seeds,
            budget,
            save,
        } = self;
        setup.replay = setup.replay.take().or(replay);
        setup.save = setup.save.take().or(save.map(PathBuf::from));
        if let Some(text) = seed {
            setup.seed = number(SEED, &text)?;
        }
        if let Some(text) = seeds {
            setup.seeds = number(SEEDS, &text)?;
        }
        if let Some(text) = budget {
            let budget = number(BUDGET, &text)?;
            setup.budget = usize::try_from(budget).unwrap_or(usize::MAX);
        }
        Ok(())
    }
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{name}={text:?} is no number"))
}
