//! An object as a value and as text.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use serde_json::Value;

/// A stored object. Shared by the map, the history and every answer that shows it.
///
/// It is decoded and encoded when that is first needed, and at most once each.
#[derive(Clone)]
pub(crate) struct Object(Arc<Forms>);

/// An object, if somebody still uses it.
#[derive(Debug)]
pub(super) struct WeakObject(Weak<Forms>);

#[derive(Debug)]
struct Forms {
    value: OnceLock<Value>,
    text: OnceLock<Text>,
}

/// An object as JSON. What it is stands first: `{"apiVersion":"v1","kind":"ConfigMap","data":..`.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    bytes: Bytes,
    /// Where the members behind `kind` begin.
    rest: usize,
}

thread_local! {
    /// Where texts are written before their length is known.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How much of it is kept, in bytes.
const MAX_SCRATCH: usize = 64 * 1024;

// === impl Object ===

impl Object {
    pub(crate) fn new(value: Value) -> Self {
        Self(Arc::new(Forms {
            value: OnceLock::from(value),
            text: OnceLock::new(),
        }))
    }

    /// The object that this text says.
    pub(super) fn encoded(text: Text) -> Self {
        Self(Arc::new(Forms {
            value: OnceLock::new(),
            text: OnceLock::from(text),
        }))
    }

    pub(super) fn downgrade(&self) -> WeakObject {
        WeakObject(Arc::downgrade(&self.0))
    }

    pub(crate) fn text(&self) -> &Text {
        self.0.text.get_or_init(|| Text::of(self))
    }

    /// Whether the object is shown in this version. Known without decoding it.
    pub(crate) fn has_version(&self, api_version: &str) -> bool {
        match (self.0.value.get(), self.0.text.get()) {
            (None, Some(text)) => text.has_version(api_version),
            (Some(_) | None, _) => self["apiVersion"] == api_version,
        }
    }
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.0.value.get_or_init(|| {
            let text = self.0.text.get().map_or(&b""[..], |text| &text.bytes);
            serde_json::from_slice(text).expect("what was encoded here can be decoded")
        })
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// === impl WeakObject ===

impl WeakObject {
    pub(super) fn upgrade(&self) -> Option<Object> {
        self.0.upgrade().map(Object)
    }
}

// === impl Text ===

impl Text {
    fn of(object: &Value) -> Self {
        const WHAT_IT_IS: [&str; 2] = ["apiVersion", "kind"];

        SCRATCH.with_borrow_mut(|bytes| {
            bytes.clear();
            bytes.push(b'{');
            let mut rest = bytes.len();
            for name in WHAT_IT_IS {
                if let Some(value) = object.get(name) {
                    write_member(bytes, name, value);
                }
                rest = bytes.len();
            }
            for (name, value) in object.as_object().into_iter().flatten() {
                if !WHAT_IT_IS.contains(&name.as_str()) {
                    write_member(bytes, name, value);
                }
            }
            // In the place of the last comma, if there is one.
            bytes.pop_if(|last| *last == b',');
            bytes.push(b'}');
            let rest = rest.min(bytes.len() - 1);
            // As much memory as it needs, for as long as it is kept.
            let kept = Bytes::copy_from_slice(bytes);
            bytes.shrink_to(MAX_SCRATCH);
            Self { bytes: kept, rest }
        })
    }

    /// The whole object.
    pub(crate) fn whole(&self) -> &Bytes {
        &self.bytes
    }

    /// The object without `apiVersion` and `kind`, and without its first brace.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.rest..]
    }

    fn has_version(&self, api_version: &str) -> bool {
        let found = self.bytes.strip_prefix(br#"{"apiVersion":""#);
        let behind = found.and_then(|found| found.strip_prefix(api_version.as_bytes()));
        behind.is_some_and(|behind| behind.first() == Some(&b'"'))
    }
}

fn write_member(bytes: &mut Vec<u8>, name: &str, value: &Value) {
    serde_json::to_writer(&mut *bytes, name).expect("a text can be written as JSON");
    bytes.push(b':');
    serde_json::to_writer(&mut *bytes, value).expect("a JSON value can be written as JSON");
    bytes.push(b',');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(value: &Value, whole: &str, rest: &str) {
        let object = Object::new(value.clone());
        let text = object.text().clone();
        assert_eq!(text.whole(), whole);
        assert_eq!(text.rest(), rest.as_bytes());
        let again = Object::encoded(text);
        assert_eq!(again.has_version("v1"), value["apiVersion"] == "v1");
        assert!(!again.has_version("v"));
        assert_eq!(*again, *value);
        assert_eq!(again.has_version("v1"), value["apiVersion"] == "v1");
    }

    #[test]
    fn what_an_object_is_stands_first_and_can_be_left_out() {
        check(
            &json!({ "apiVersion": "v1", "kind": "A", "aaa": 1, "metadata": {} }),
            r#"{"apiVersion":"v1","kind":"A","aaa":1,"metadata":{}}"#,
            r#""aaa":1,"metadata":{}}"#,
        );
        check(
            &json!({ "apiVersion": "v1", "kind": "A" }),
            r#"{"apiVersion":"v1","kind":"A"}"#,
            "}",
        );
        check(&json!({ "x": "\"}," }), r#"{"x":"\"},"}"#, r#""x":"\"},"}"#);
        check(&json!({}), "{}", "}");
    }

    #[test]
    fn numbers_come_back_as_they_were() {
        let numbers = json!([
            0.1,
            1e300,
            -0.0,
            u64::MAX,
            i64::MIN,
            123_456_789.123_456_79,
            5e-324
        ]);
        let object = Object::new(json!({ "n": numbers }));
        let again = Object::encoded(object.text().clone());
        assert_eq!(*again, *object);
    }
}
