//! Conditions: what is observed of an object, as a list of statements of which each has a type.
//!
//! The list is a map by `type`. The time in an entry says since when its *status* is what it is, so
//! whoever repeats a statement, or tells it in other words, does not touch the time.

use crate::compare::Shape;
use serde_json::Value;
use std::borrow::Cow;

/// The longest `type` that the API takes, in characters.
pub const MAX_TYPE: usize = 316;

/// The longest `reason` that the API takes, in characters.
pub const MAX_REASON: usize = 1024;

/// The longest `message` that the API takes, in characters.
pub const MAX_MESSAGE: usize = 32_768;

/// How to look at a condition that is an `E`.
///
/// It is a trait of its own, and not one of `E`, so that a crate can implement it for a type of
/// another one.
pub trait Form<E> {
    /// The `type`, which tells conditions of one object apart.
    fn type_of(entry: &E) -> &str;

    /// Whether both have the same status.
    fn same_status(one: &E, other: &E) -> bool;

    /// Whether both say the same, apart from the time of the last transition.
    fn same_statement(one: &E, other: &E) -> bool;

    /// Takes over the time of the last transition from `old`.
    fn keep_transition(new: &mut E, old: &E);
}

/// Conditions as JSON.
#[derive(Clone, Copy, Debug)]
pub enum Json {}

/// Puts a condition in the place of the one of its type, or adds it. Returns whether that changed
/// anything.
///
/// The time of the last transition stays if the status does. Afterwards the list is sorted by type,
/// and of the type that was set there is one condition; that the order was another one before is
/// no change.
pub fn set<F: Form<E>, E>(conditions: &mut Vec<E>, mut new: E) -> bool {
    let is_of_type = |entry: &E| F::type_of(entry) == F::type_of(&new);
    let mut old: Vec<E> = conditions
        .extract_if(.., |entry| is_of_type(entry))
        .collect();
    let unique = old.len() == 1;
    let mut changed = true;
    if !old.is_empty() {
        // The first counts, as for those who read the list.
        let old = old.swap_remove(0);
        if F::same_status(&new, &old) {
            F::keep_transition(&mut new, &old);
            changed = !(unique && F::same_statement(&new, &old));
        }
    }
    conditions.push(new);
    conditions.sort_by(|one, other| F::type_of(one).cmp(F::type_of(other)));
    changed
}

/// The conditions of an object when somebody says `desired` of it: those of other types stay, and
/// times stay where the status does.
///
/// `None` if one of the lists is no list of conditions.
#[must_use]
pub fn overlaid(live: &Value, desired: &Value) -> Option<Value> {
    let list = |value: &Value| match value {
        Value::Null => Some(Vec::new()),
        Value::Array(entries) => {
            let are_conditions = entries.iter().all(|entry| entry["type"].is_string());
            are_conditions.then(|| entries.clone())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    };
    let (mut conditions, desired) = (list(live)?, list(desired)?);
    for condition in desired {
        set::<Json, _>(&mut conditions, condition);
    }
    Some(conditions.into())
}

/// What is left of [`overlaid`] if only the types that `desired` names count: the conditions of one who
/// only speaks of his own.
#[must_use]
pub fn carried(live: &Value, desired: &Value) -> Option<Value> {
    let all = overlaid(live, desired)?;
    let named = |condition: &&Value| {
        let mut named = desired.as_array().into_iter().flatten();
        named.any(|named| named["type"] == condition["type"])
    };
    let all = all.as_array().into_iter().flatten();
    Some(all.filter(named).cloned().collect())
}

/// A text as a `type` that the API takes: letters, digits and `-_.`, perhaps after the name of a
/// domain and `/`. What does not fit becomes `_`, and what is too long is cut off.
#[must_use]
pub fn fit_type(text: &str) -> Cow<'_, str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = |name: &str, is_allowed: &dyn Fn(char) -> bool| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.ends_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(is_allowed)
    };
    let is_domain = |domain: &str| {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        domain.split('.').all(|label| fits(label, &is_allowed))
    };
    let valid = match text.split_once('/') {
        Some((domain, name)) => is_domain(domain) && fits(name, &is_name),
        None => fits(text, &is_name),
    };
    if valid && text.len() <= MAX_TYPE {
        return Cow::Borrowed(text);
    }
    let fitted = |c: char| if is_name(c) { c } else { '_' };
    let text: String = text.chars().map(fitted).collect();
    let text = text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let text = &text[..text.len().min(MAX_TYPE)];
    named(text.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// A text as a `reason` that the API takes: letters, digits and `_,:`, of which a letter comes first
/// and no `,` or `:` last. What does not fit becomes `_`, and what is too long is cut off.
#[must_use]
pub fn fit_reason(text: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_,:".contains(c);
    let valid = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with([',', ':'])
        && text.chars().all(is_allowed);
    if valid && text.len() <= MAX_REASON {
        return Cow::Borrowed(text);
    }
    let fitted = |c: char| if is_allowed(c) { c } else { '_' };
    let text: String = text.chars().map(fitted).collect();
    let text = text.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let text = &text[..text.len().min(MAX_REASON)];
    named(text.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
}

/// A text as a `message` that the API takes. What is too long is cut off, and ends in `…`.
#[must_use]
pub fn fit_message(text: &str) -> Cow<'_, str> {
    // A text has at most as many characters as bytes, so most need not be counted.
    if text.len() <= MAX_MESSAGE || text.chars().count() <= MAX_MESSAGE {
        return Cow::Borrowed(text);
    }
    let kept = text.chars().take(MAX_MESSAGE - 1);
    Cow::Owned(kept.chain(['…']).collect())
}

/// Whether two messages differ at most in words with digits in them: in counters, times, addresses
/// and names that are made up.
///
/// Such words change from run to run although nothing happens. Who writes a message whenever they
/// do, and runs whenever something is written, never comes to rest.
#[must_use]
pub fn same_but_numbers(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split_inclusive(|c: char| !c.is_alphanumeric());
        let plain = |word: &str| match word.strip_suffix(|c: char| !c.is_alphanumeric()) {
            Some(stem) if has_digit(stem) => word[stem.len()..].to_owned(),
            None if has_digit(word) => String::new(),
            Some(_) | None => word.to_owned(),
        };
        words.map(plain).collect()
    };
    one == other || words(one) == words(other)
}

fn has_digit(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit())
}

fn named(text: &str) -> Cow<'static, str> {
    match text {
        "" => Cow::Borrowed("Unknown"),
        text => Cow::Owned(text.to_owned()),
    }
}

// === impl Json ===

impl Form<Value> for Json {
    fn type_of(entry: &Value) -> &str {
        entry["type"].as_str().unwrap_or_default()
    }

    fn same_status(one: &Value, other: &Value) -> bool {
        one["status"] == other["status"]
    }

    fn same_statement(one: &Value, other: &Value) -> bool {
        let timeless = |entry: &Value| {
            let mut entry = entry.clone();
            if let Value::Object(members) = &mut entry {
                members.remove(TRANSITION);
            }
            entry
        };
        Shape::plain().equal(&timeless(one), &timeless(other))
    }

    fn keep_transition(new: &mut Value, old: &Value) {
        if let (Value::Object(new), Some(time)) = (new, old.get(TRANSITION)) {
            new.insert(TRANSITION.to_owned(), time.clone());
        }
    }
}

const TRANSITION: &str = "lastTransitionTime";

#[cfg(test)]
mod tests;
