//! A description in `OpenAPI` 2 as kubectl asks for it: a protobuf message of the library gnostic, of which
//! the numbers of the fields are a part of.

use serde_json::{Map, Value};

/// What clients accept. kubectl says the first, which is no media type: no such name may have an `@`.
pub(in crate::http) const ACCEPTED: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    MEDIA_TYPE,
];

/// What they are told. kubectl reads this header, and takes no answer whose type is none.
pub(in crate::http) const MEDIA_TYPE: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

/// Writes a document.
pub(in crate::http) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.inner(2, &info);
    let mut paths = Message::default();
    for (name, item) in members(&document["paths"]) {
        paths.inner(2, &named(name, &path(item)));
    }
    message.inner(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in members(&document["definitions"]) {
        definitions.inner(1, &named(name, &schema(definition)));
    }
    message.inner(9, &definitions);
    message.0
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A value with a name.
fn named(name: &str, value: &Message) -> Message {
    let mut pair = Message::default();
    pair.bytes(1, name.as_bytes());
    pair.inner(2, value);
    pair
}

/// Any value, as YAML. JSON is YAML, too.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, value.to_string().as_bytes());
    message
}

/// Adds the extensions among the members of an object.
fn extensions(message: &mut Message, number: u64, object: &Value) {
    for (name, value) in members(object).filter(|(name, _)| name.starts_with("x-")) {
        message.inner(number, &named(name, &any(value)));
    }
}

/// The methods of a path, by the numbers of their fields.
const METHODS: [(&str, u64); 7] = [
    ("get", 2),
    ("put", 3),
    ("post", 4),
    ("delete", 5),
    ("options", 6),
    ("head", 7),
    ("patch", 8),
];

fn path(item: &Value) -> Message {
    let mut message = Message::default();
    for (method, number) in METHODS {
        if item[method].is_object() {
            message.inner(number, &operation(&item[method]));
        }
    }
    for one in elements(&item["parameters"]) {
        message.inner(9, &parameter(one));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    for tag in elements(&operation["tags"]) {
        message.text(1, tag);
    }
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    for produced in elements(&operation["produces"]) {
        message.text(6, produced);
    }
    for consumed in elements(&operation["consumes"]) {
        message.text(7, consumed);
    }
    for one in elements(&operation["parameters"]) {
        message.inner(8, &parameter(one));
    }
    let mut responses = Message::default();
    for (code, response) in members(&operation["responses"]) {
        let mut described = Message::default();
        described.text(1, &response["description"]);
        if response["schema"].is_object() {
            let mut item = Message::default();
            item.inner(1, &schema(&response["schema"]));
            described.inner(2, &item);
        }
        let mut value = Message::default();
        value.inner(1, &described);
        responses.inner(1, &named(code, &value));
    }
    message.inner(9, &responses);
    extensions(&mut message, 13, operation);
    message
}

fn parameter(parameter: &Value) -> Message {
    let mut one = Message::default();
    if parameter["in"] == "body" {
        let mut body = Message::default();
        body.text(1, &parameter["description"]);
        body.text(2, &parameter["name"]);
        body.text(3, &parameter["in"]);
        body.flag(4, &parameter["required"]);
        body.inner(5, &schema(&parameter["schema"]));
        one.inner(1, &body);
    } else {
        let mut own = Message::default();
        own.flag(1, &parameter["required"]);
        own.text(2, &parameter["in"]);
        own.text(3, &parameter["description"]);
        own.text(4, &parameter["name"]);
        let is_query = parameter["in"] == "query";
        // Of a query the value may be empty, which takes a number.
        own.text(if is_query { 6 } else { 5 }, &parameter["type"]);
        let mut place = Message::default();
        place.inner(if is_query { 3 } else { 4 }, &own);
        one.inner(2, &place);
    }
    let mut item = Message::default();
    item.inner(1, &one);
    item
}

fn schema(described: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &described["$ref"]);
    message.text(2, &described["format"]);
    message.text(3, &described["title"]);
    message.text(4, &described["description"]);
    if !described["default"].is_null() {
        message.inner(5, &any(&described["default"]));
    }
    message.text(13, &described["pattern"]);
    message.flag(16, &described["uniqueItems"]);
    for name in elements(&described["required"]) {
        message.text(19, name);
    }
    for value in elements(&described["enum"]) {
        message.inner(20, &any(value));
    }
    let values = &described["additionalProperties"];
    if values.is_object() {
        let mut item = Message::default();
        item.inner(1, &schema(values));
        message.inner(21, &item);
    }
    if described["type"].is_string() {
        let mut item = Message::default();
        item.text(1, &described["type"]);
        message.inner(22, &item);
    }
    if described["items"].is_object() {
        let mut item = Message::default();
        item.inner(1, &schema(&described["items"]));
        message.inner(23, &item);
    }
    for one in elements(&described["allOf"]) {
        message.inner(24, &schema(one));
    }
    if described["properties"]
        .as_object()
        .is_some_and(|all| !Map::is_empty(all))
    {
        let mut properties = Message::default();
        for (name, property) in members(&described["properties"]) {
            properties.inner(1, &named(name, &schema(property)));
        }
        message.inner(25, &properties);
    }
    extensions(&mut message, 31, described);
    message
}

// === impl Message ===

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            // Seven bits are taken, and one says that more follow.
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "seven bits are left")]
        self.0.push(number as u8);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A text that is not empty.
    fn text(&mut self, number: u64, text: &Value) {
        if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    /// A switch that is on.
    fn flag(&mut self, number: u64, flag: &Value) {
        if *flag == true {
            self.varint(number << 3);
            self.varint(1);
        }
    }

    fn inner(&mut self, number: u64, message: &Self) {
        self.bytes(number, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_lengths() {
        let document = json!({ "swagger": "2.0", "info": { "title": "t", "version": "v" } });
        let expected: &[u8] = &[
            0x0a, 3, b'2', b'.', b'0', 0x12, 6, 0x0a, 1, b't', 0x12, 1, b'v', 0x42, 0, 0x4a, 0,
        ];
        assert_eq!(encode(&document), expected);
        let mut message = Message::default();
        message.varint(300);
        assert_eq!(message.0, [0xac, 0x02]);
    }
}
