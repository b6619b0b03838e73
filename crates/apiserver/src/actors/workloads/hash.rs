//! Names for templates, as clusters give them: short, and without vowels.

use serde_json::Value;

/// The letters of a name.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name of a template. Equal ones have the same; it is not the one that a cluster would give.
pub(super) fn name(template: &Value) -> String {
    // Members of objects are sorted, so equal templates are equal texts.
    let number = fnv(template.to_string().as_bytes()).to_string();
    let letters = number.bytes().map(|digit| {
        let index = usize::from(digit) % ALPHABET.len();
        char::from(ALPHABET[index])
    });
    letters.collect()
}

/// FNV-1a with 32 bits.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_templates() {
        assert_eq!(fnv(b""), 0x811c_9dc5);
        assert_eq!(fnv(b"foobar"), 0xbf9c_f968);
        let one = name(&json!({ "a": 1 }));
        assert_eq!(one, name(&json!({ "a": 1 })));
        assert_ne!(one, name(&json!({ "a": 2 })));
        assert!(one.bytes().all(|letter| ALPHABET.contains(&letter)));
    }
}
