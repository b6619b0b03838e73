//! Conditions: what is observed of an object, as statements like `Ready=False, because InvalidSpec`.
//!
//! Two kinds of thing are here. [`set`], [`get`] and [`is_true`] keep the list in
//! `status.conditions` as the conventions of the API want it. The functions that return an
//! `impl Condition` ask about an object, for
//! [`await_condition`](crate::wait::await_condition).
//!
//! ```
//! use homeostat::{clock, conditions::{self, NewCondition, Status}};
//! use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
//!
//! let mut list: Vec<Condition> = Vec::new();
//! let ready = NewCondition::new("Ready", Status::True, "Available").message("3 of 3 run");
//!
//! let monday = Timestamp::from_second(1_767_571_200).unwrap();
//! assert!(conditions::set(&mut list, ready.clone(), monday));
//!
//! // To say the same again changes nothing, not even the time.
//! assert!(!conditions::set(&mut list, ready, clock::now()));
//! assert_eq!(conditions::get(&list, "Ready").unwrap().last_transition_time, monday.into());
//! assert!(conditions::is_true(&list, "Ready"));
//! ```

pub use crate::wait::conditions::*;

use homeostat_core::conditions::{self as rules, Form};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time},
    jiff::Timestamp,
};

/// Whether what a condition is called holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell.
    Unknown,
}

/// What is to be said in a condition; its time comes from [`set`].
///
/// Texts are made to fit the API: letters in a type or a reason that it does not take become `_`, and
/// what is too long is cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition {
    type_: String,
    status: Status,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

/// Conditions as the API types have them.
enum Typed {}

/// Puts a condition in the place of the one of its type, or adds it. Returns whether that changed
/// anything; only then there is something to write.
///
/// - The time of the last transition is `now` if the status is another one than before. Otherwise it
///   stays, whatever else changes.
/// - There is one condition of this type afterwards, and the list is sorted by type.
///
/// ```
/// use homeostat::{clock, conditions::{self, NewCondition, Status}};
///
/// let mut list = Vec::new();
/// let absent = NewCondition::new("Ready", Status::False, "NoImage").message("the image is not there");
/// assert!(conditions::set(&mut list, absent.clone(), clock::now()));
/// assert!(!conditions::set(&mut list, absent, clock::now()), "nothing to write");
///
/// let ready = NewCondition::new("Ready", Status::True, "Available");
/// assert!(conditions::set(&mut list, ready, clock::now()));
/// assert_eq!(list.len(), 1);
/// ```
pub fn set(conditions: &mut Vec<MetaCondition>, new: NewCondition, now: impl Into<Time>) -> bool {
    rules::set::<Typed, _>(conditions, new.at(now.into().0))
}

/// The condition of this type.
#[must_use]
pub fn get<'a>(conditions: &'a [MetaCondition], type_: &str) -> Option<&'a MetaCondition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is there and its status is `True`.
#[must_use]
pub fn is_true(conditions: &[MetaCondition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == Status::True.as_str())
}

// === impl Status ===

impl Status {
    /// As it stands in a condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

// === impl NewCondition ===

impl NewCondition {
    /// A condition without a message.
    ///
    /// `type_` is what holds or does not, as `Ready`. `reason` is a word in CamelCase for programs;
    /// it should be one of a few.
    #[must_use]
    pub fn new(type_: &str, status: impl Into<Status>, reason: &str) -> Self {
        Self {
            type_: rules::fit_type(type_).into_owned(),
            status: status.into(),
            reason: rules::fit_reason(reason).into_owned(),
            message: String::new(),
            observed_generation: None,
        }
    }

    /// What there is to say for people.
    ///
    /// Leave out of it what changes although nothing happens: times, counters, versions. Each
    /// change is a write, and each write may wake the controller.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.message = rules::fit_message(message).into_owned();
        self
    }

    /// The `metadata.generation` of the object that was looked at, so that everybody can see whether
    /// the condition is about the present spec.
    #[must_use]
    pub fn observed_generation(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }

    /// The condition of the API, if the status has been so since `now`.
    pub(crate) fn at(self, now: Timestamp) -> MetaCondition {
        let Self {
            type_,
            status,
            reason,
            message,
            observed_generation,
        } = self;
        // The API has whole seconds, and what is in memory should be what comes back.
        let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
        MetaCondition {
            type_,
            status: status.as_str().to_owned(),
            reason,
            message,
            observed_generation,
            last_transition_time: seconds.into(),
        }
    }
}

// === impl Typed ===

impl Form<MetaCondition> for Typed {
    fn type_of(entry: &MetaCondition) -> &str {
        &entry.type_
    }

    fn same_status(one: &MetaCondition, other: &MetaCondition) -> bool {
        one.status == other.status
    }

    fn same_statement(one: &MetaCondition, other: &MetaCondition) -> bool {
        let MetaCondition {
            last_transition_time: _,
            message,
            observed_generation,
            reason,
            status,
            type_,
        } = one;
        *message == other.message
            && *observed_generation == other.observed_generation
            && *reason == other.reason
            && *status == other.status
            && *type_ == other.type_
    }

    fn keep_transition(new: &mut MetaCondition, old: &MetaCondition) {
        new.last_transition_time = old.last_transition_time.clone();
    }
}
