//! JSON with an eye on members that occur twice: the last one counts, and the client is told.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::place::Place;

/// Reads JSON. Answers the value and the paths of members that occur more than once.
pub(super) fn read(text: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    let reader = Reader {
        place: Place::At(""),
        duplicates: &mut duplicates,
    };
    let value = reader.deserialize(&mut json)?;
    json.end()?;
    Ok((value, duplicates))
}

/// Reads the value in a place.
struct Reader<'a> {
    place: Place<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let element = Reader {
                place: Place::Element(&self.place, list.len()),
                duplicates: self.duplicates,
            };
            match elements.next_element_seed(element)? {
                Some(element) => list.push(element),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let place = Place::Member(&self.place, &name);
            if map.contains_key(&name) {
                let path = place.to_string();
                if !self.duplicates.contains(&path) {
                    self.duplicates.push(path);
                }
            }
            let member = Reader {
                place,
                duplicates: self.duplicates,
            };
            let value = members.next_value_seed(member)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_one_counts_and_each_place_is_told_once() {
        let text = br#"{"a":1,"a":2,"a":3,"b":{"c":[{"d":1,"d":null}]},"e":[-1,1.5,true,"x"]}"#;
        let (value, duplicates) = read(text).unwrap();
        let expected = json!({ "a": 3, "b": { "c": [{ "d": null }] }, "e": [-1, 1.5, true, "x"] });
        assert_eq!(value, expected);
        assert_eq!(duplicates, ["a", "b.c[0].d"]);
    }

    #[test]
    fn what_is_no_json_is_refused_as_ever() {
        for text in ["", "{", "{}{}", "[1,]", "{\"a\"}", "nul"] {
            let read = read(text.as_bytes()).unwrap_err().to_string();
            let plain = serde_json::from_slice::<Value>(text.as_bytes()).unwrap_err();
            assert_eq!(read, plain.to_string());
        }
    }
}
