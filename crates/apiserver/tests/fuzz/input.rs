//! Turns any bytes into requests and JSON that look enough like Kubernetes' to get past the first
//! checks.

use serde_json::{Map, Number, Value};

/// Bytes that decisions are drawn from. When they are used up, each decision is its first choice.
#[derive(Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

/// Member names that mean something to the server.
const MEMBERS: [&str; 48] = [
    "metadata",
    "name",
    "spec",
    "status",
    "data",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "deletionTimestamp",
    "creationTimestamp",
    "generateName",
    "namespace",
    "apiVersion",
    "kind",
    "template",
    "containers",
    "image",
    "env",
    "value",
    "ports",
    "containerPort",
    "protocol",
    "replicas",
    "selector",
    "matchLabels",
    "conditions",
    "type",
    "items",
    "manager",
    "operation",
    "fieldsType",
    "fieldsV1",
    "f:metadata",
    "k:{\"name\":\"a\"}",
    "v:\"a\"",
    ".",
    "$patch",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "$retainKeys",
    "controller",
    "op",
    "path",
];

/// Texts that mean something to the server.
const TEXTS: [&str; 28] = [
    "a",
    "b",
    "",
    "1",
    "-1",
    "ConfigMap",
    "Deployment",
    "Thing",
    "v1",
    "apps/v1",
    "fuzz.example.com/v1",
    "default",
    "example.com/x",
    "foregroundDeletion",
    "delete",
    "replace",
    "merge",
    "add",
    "remove",
    "test",
    "move",
    "copy",
    "/metadata/labels",
    "/metadata/labels/a",
    "/spec/items/-",
    "2026-01-01T00:00:00Z",
    "99999999999999999999",
    "\u{0}\u{ffff}é",
];

// === impl Input ===

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of some choices, of which there is at least one.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Any text, most often one that means something.
    pub(crate) fn text(&mut self) -> String {
        if self.below(8) > 0 {
            return self.one_of(&TEXTS).to_owned();
        }
        let length = self.below(40).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    /// Any JSON value that is nested at most so deep.
    pub(crate) fn json(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 5 } else { 9 };
        match self.below(kinds) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 1),
            2 => Value::Number(i64::from(i8::from_le_bytes([self.byte()])).into()),
            3 => Value::Number(self.one_of(&[i64::MAX, i64::MIN, 1 << 32, 0]).into()),
            4 => self.number_or_text(),
            5 | 6 => {
                let length = self.below(4);
                (0..length).map(|_| self.json(depth - 1)).collect()
            }
            _ => Value::Object(self.members(depth - 1)),
        }
    }

    /// The members of an object whose values are nested at most so deep.
    pub(crate) fn members(&mut self, depth: usize) -> Map<String, Value> {
        let length = self.below(5);
        let member = |input: &mut Self| {
            let name = match input.below(16) {
                0 => input.text(),
                _ => input.one_of(&MEMBERS).to_owned(),
            };
            (name, input.json(depth))
        };
        (0..length).map(|_| member(self)).collect()
    }

    fn number_or_text(&mut self) -> Value {
        if self.below(4) == 0 {
            let number = Number::from_f64(self.one_of(&[0.5, -1e300, 1e19]));
            return number.map_or(Value::Null, Value::Number);
        }
        Value::String(self.text())
    }
}
