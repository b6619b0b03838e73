//! What is wrong with the schemas of large definitions, found before the registry is held for them.
//!
//! A schema of a megabyte takes long to look through. What is found depends on the schema alone, so
//! it is found on a thread of its own while other requests go on; the write that follows finds it here.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::fingerprint::fingerprint;
use crate::status::Cause;

/// How many bytes a schema has at least for which this is worth the trouble.
const LARGE: usize = 32 * 1024;

/// How many schemas are remembered.
const MAX_REMEMBERED: usize = 16;

/// A schema, and what is wrong with it.
struct Checked {
    digest: String,
    causes: Vec<Cause>,
}

static CHECKED: Mutex<VecDeque<Checked>> = Mutex::new(VecDeque::new());

/// What is wrong with a schema: what was found before, or else what is found now.
pub(super) fn causes(
    schema: &Value,
    place: &str,
    has_status: bool,
    find: fn(&Value, &str, bool) -> Vec<Cause>,
) -> Vec<Cause> {
    let text = schema.to_string();
    if text.len() < LARGE {
        return find(schema, place, has_status);
    }
    let digest = format!(
        "{} {has_status} {}",
        text.len(),
        fingerprint([place, &text])
    );
    drop(text);
    let remembered = lock();
    if let Some(found) = remembered.iter().find(|one| one.digest == digest) {
        return found.causes.clone();
    }
    drop(remembered);
    let causes = find(schema, place, has_status);
    let mut remembered = lock();
    if remembered.len() >= MAX_REMEMBERED {
        remembered.pop_front();
    }
    remembered.push_back(Checked {
        digest,
        causes: causes.clone(),
    });
    causes
}

fn lock() -> MutexGuard<'static, VecDeque<Checked>> {
    CHECKED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_large_schema_is_looked_through_once_for_each_place() {
        static LOOKS: AtomicUsize = AtomicUsize::new(0);
        fn find(_: &Value, place: &str, _: bool) -> Vec<Cause> {
            LOOKS.fetch_add(1, Ordering::Relaxed);
            vec![Cause::forbidden(place, "it is")]
        }
        let large = json!({ "description": "x".repeat(LARGE) });
        let other = json!({ "description": "y".repeat(LARGE) });
        let small = json!({ "description": "x" });
        for (schema, place, looks) in [
            (&large, "a", 1),
            (&large, "a", 1),
            (&large, "b", 2),
            (&other, "a", 3),
            (&small, "a", 4),
            (&small, "a", 5),
        ] {
            assert_eq!(
                causes(schema, place, true, find),
                [Cause::forbidden(place, "it is")]
            );
            assert_eq!(LOOKS.load(Ordering::Relaxed), looks, "{place}");
        }
    }
}
