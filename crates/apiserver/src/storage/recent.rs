//! What was read or written last.

use std::collections::VecDeque;

use super::Object;

/// Objects that are kept decoded. What was used lately is used again, and a decoded object takes
/// several times the memory of its text.
#[derive(Debug, Default)]
pub(super) struct Recent {
    objects: VecDeque<(Object, usize)>,
    /// How long their texts are together.
    bytes: usize,
}

/// How many objects are kept, and how long their texts may be together, so that a few hundred large
/// definitions do not fill the memory.
const MAX_OBJECTS: usize = 1_000;
const MAX_BYTES: usize = 2 * 1024 * 1024;

// === impl Recent ===

impl Recent {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn push(&mut self, object: Object) {
        let bytes = object.text().whole().len();
        self.bytes += bytes;
        self.objects.push_back((object, bytes));
        while self.objects.len() > MAX_OBJECTS || self.bytes > MAX_BYTES {
            let Some((_, bytes)) = self.objects.pop_front() else {
                return;
            };
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_are_kept_within_two_limits() {
        for (text, count, kept) in [(10, 2_000, MAX_OBJECTS), (500_000, 9, 4), (3_000_000, 2, 0)] {
            let mut recent = Recent::default();
            for number in 0..count {
                recent.push(Object::new(
                    json!({ "number": number, "text": "x".repeat(text) }),
                ));
            }
            let numbers = recent
                .objects
                .iter()
                .map(|(object, _)| object["number"].as_u64());
            let last = (count - kept as u64..count).map(Some);
            assert!(numbers.eq(last), "{text}");
            let bytes: usize = recent.objects.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(recent.bytes, bytes);
        }
    }
}
