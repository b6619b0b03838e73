//! The order in which a manager starts and stops what it has.

/// What one step starts and stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// [Servers](super::Task::server).
    Servers,
    /// The election of a leader.
    Election,
    /// Controllers, with their watches.
    Controllers,
    /// Background tasks.
    Tasks,
}

/// A step of the start, and the same of the end.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Step {
    /// What is started and stopped.
    pub what: What,
    /// Why it starts after the steps before.
    pub start: &'static str,
    /// Why it stops before the steps before.
    pub stop: &'static str,
}

/// The steps of the start, from first to last. The end goes through them from last to first.
///
/// ```
/// use homeostat::manager::{STEPS, What};
///
/// assert_eq!(STEPS[0].what, What::Servers);
/// for step in STEPS {
///     println!("{:?}: {} / {}", step.what, step.start, step.stop);
/// }
/// ```
pub const STEPS: &[Step] = &[
    Step {
        what: What::Servers,
        start: "probes and metrics tell of the start while it goes on",
        stop: "they tell of the end until it is there",
    },
    Step {
        what: What::Election,
        start: "it takes seconds that the caches need too, and nothing runs before both are there",
        stop: "the lease is given up when nothing runs any more that needs it, so that no other replica starts before",
    },
    Step {
        what: What::Controllers,
        start: "their caches are kept up to date whoever leads, and equal watches begin together as one",
        stop: "their runs end first, and may need what tasks do for them no more",
    },
    Step {
        what: What::Tasks,
        start: "they may ask for controllers and stores, which are there by now",
        stop: "they are told at the same moment as controllers, which share their time to end",
    },
];
