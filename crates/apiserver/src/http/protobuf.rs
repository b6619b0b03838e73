//! Bodies in protobuf, as clients written in Go send them for built-in kinds: read with the numbers
//! in `data/k8s-protobuf` and the types in `data/k8s-schema`.

mod wire;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

use self::wire::{Field, Fields, Wire};
use crate::base64;
use crate::environment::seconds;
use crate::schema::Schema;
use crate::schema::builtin_types_raw;

/// What every body begins with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// The package of types that belong to every group.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Where numbers lead to: the members of a message, the one with number 1 first.
type Message = Vec<Option<String>>;

/// Reads an object.
///
/// # Errors
///
/// Why it cannot be read: it is no protobuf, of a kind without numbers, or nests too deeply.
pub(super) fn object(body: &[u8], max_depth: usize) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    )?;
    let (mut kind, mut raw) = (None, &[][..]);
    for field in Fields::of(envelope) {
        match field? {
            Field {
                number: 1,
                wire: Wire::Bytes(bytes),
            } => kind = Some(type_meta(bytes)?),
            Field {
                number: 2,
                wire: Wire::Bytes(bytes),
            } => raw = bytes,
            _ => {}
        }
    }
    let (api_version, kind) = kind.ok_or("the envelope does not say what is in it")?;
    let name = type_of(&api_version, &kind)
        .ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?}"))?;
    let schema = Schema::reference_to(name.to_owned());
    let reader = Reader { depth: max_depth };
    let mut object = reader.message(raw, name, &schema)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// apiVersion and kind of what is in the envelope.
fn type_meta(bytes: &[u8]) -> Result<(String, String), String> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    for field in Fields::of(bytes) {
        let Field { number, wire } = field?;
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => api_version = text(bytes)?,
            (2, Wire::Bytes(bytes)) => kind = text(bytes)?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

/// The full name of a kind's type, if its members have numbers.
fn type_of(api_version: &str, kind: &str) -> Option<&'static str> {
    static KINDS: OnceLock<BTreeMap<(String, String), &'static str>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let mut kinds = BTreeMap::new();
        for (name, raw) in builtin_types_raw() {
            for gvk in raw["gvk"].as_array().into_iter().flatten() {
                let part = |index: usize| gvk[index].as_str().unwrap_or_default();
                let api_version = crate::resource::api_version(part(0), part(1));
                kinds.insert((api_version, part(2).to_owned()), name.as_str());
            }
        }
        kinds
    });
    // Options are of every group.
    let options = format!("{META}{kind}");
    let common = messages()
        .get_key_value(&options)
        .map(|(name, _)| name.as_str());
    let own = kinds
        .get(&(api_version.to_owned(), kind.to_owned()))
        .copied();
    own.or(common).filter(|name| messages().contains_key(*name))
}

fn messages() -> &'static BTreeMap<String, Message> {
    static MESSAGES: OnceLock<BTreeMap<String, Message>> = OnceLock::new();
    MESSAGES.get_or_init(|| {
        serde_json::from_str(include_str!("../../data/k8s-protobuf/messages.json"))
            .expect("a test reads the embedded file, and it cannot change afterwards")
    })
}

/// Reads messages.
#[derive(Clone, Copy)]
struct Reader {
    /// How many more levels there may be.
    depth: usize,
}

// === impl Reader ===

impl Reader {
    fn deeper(self) -> Result<Self, String> {
        let depth = self.depth.checked_sub(1).ok_or("exceeded max depth")?;
        Ok(Self { depth })
    }

    /// The members of a message of a type, which the schema describes.
    fn message(
        self,
        bytes: &[u8],
        type_name: &str,
        schema: &Schema,
    ) -> Result<Map<String, Value>, String> {
        let reader = self.deeper()?;
        let numbers = messages()
            .get(type_name)
            .ok_or_else(|| format!("{type_name} cannot be read from protobuf"))?;
        let mut object = Map::new();
        for field in Fields::of(bytes) {
            let Field { number, wire } = field?;
            // Members that are not known are skipped, as protobuf wants it.
            let entry = number
                .checked_sub(1)
                .and_then(|index| numbers.get(index)?.as_deref());
            let Some(entry) = entry else { continue };
            if let (Some(inline), Wire::Bytes(bytes)) = (entry.strip_prefix('+'), wire) {
                object.extend(reader.message(bytes, inline, schema)?);
                continue;
            }
            let (name, keeps_zero) = match entry.strip_prefix('*') {
                Some(name) => (name, true),
                None => (entry, false),
            };
            let Some(member) = schema.resolved().fields.get(name) else {
                continue;
            };
            reader.member(&mut object, name, member, wire, keeps_zero)?;
        }
        Ok(object)
    }

    /// Adds what one field says about a member; lists and maps come in parts.
    fn member(
        self,
        object: &mut Map<String, Value>,
        name: &str,
        schema: &Schema,
        wire: Wire<'_>,
        keeps_zero: bool,
    ) -> Result<(), String> {
        let resolved = schema.resolved();
        if let Some(items) = &resolved.items {
            let list = object.entry(name).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                self.elements(list, items, wire)?;
            }
        } else if let (Some(values), Wire::Bytes(bytes)) = (&resolved.values, wire) {
            let (key, value) = self.entry(bytes, values)?;
            object.entry(name).or_insert_with(|| json!({}))[key] = value;
        } else {
            let value = self.value(schema, wire)?;
            let empty = value == "" || value == 0 || value == false || value.is_null();
            if keeps_zero || !empty {
                object.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// Elements of a list: one, or several numbers that are packed together.
    fn elements(self, list: &mut Vec<Value>, items: &Schema, wire: Wire<'_>) -> Result<(), String> {
        match wire {
            Wire::Bytes(packed) if items.has_type("integer") && !items.has_type("string") => {
                for number in wire::varints(packed) {
                    list.push(self.value(items, Wire::Varint(number?))?);
                }
            }
            Wire::Bytes(_) | Wire::Varint(_) | Wire::Fixed64(_) | Wire::Fixed32(_) => {
                list.push(self.value(items, wire)?);
            }
        }
        Ok(())
    }

    /// An entry of a map: a message with the key as 1 and the value as 2.
    fn entry(self, bytes: &[u8], values: &Schema) -> Result<(String, Value), String> {
        let mut key = String::new();
        let mut value = None;
        for field in Fields::of(bytes) {
            let Field { number, wire } = field?;
            match (number, wire) {
                (1, Wire::Bytes(bytes)) => key = text(bytes)?,
                (2, wire) => value = Some(self.map_value(values, wire)?),
                _ => {}
            }
        }
        let value = value.map_or_else(|| self.value(values, Wire::Bytes(&[])), Ok)?;
        Ok((key, value))
    }

    /// The value of a map's entry. A list there is a message with its elements as 1.
    fn map_value(self, schema: &Schema, wire: Wire<'_>) -> Result<Value, String> {
        let (Some(items), Wire::Bytes(bytes)) = (&schema.resolved().items, wire) else {
            return self.value(schema, wire);
        };
        let mut list = Vec::new();
        for field in Fields::of(bytes) {
            self.elements(&mut list, items, field?.wire)?;
        }
        Ok(Value::Array(list))
    }

    fn value(self, schema: &Schema, wire: Wire<'_>) -> Result<Value, String> {
        if let (Some(name), Wire::Bytes(bytes)) = (&schema.reference, wire) {
            return match special(name, bytes) {
                Some(value) => value,
                None => self.message(bytes, name, schema).map(Value::Object),
            };
        }
        match wire {
            Wire::Varint(number) if schema.has_type("boolean") => Ok(json!(number != 0)),
            Wire::Varint(number) => Ok(json!(number.cast_signed())),
            Wire::Fixed64(bits) => {
                let number = Number::from_f64(f64::from_bits(bits));
                number
                    .map(Value::Number)
                    .ok_or_else(|| "not a number".to_owned())
            }
            Wire::Fixed32(_) => Err("no member is a 32-bit number of fixed size".to_owned()),
            Wire::Bytes(bytes) if schema.format.as_deref() == Some("byte") => {
                Ok(json!(base64::encode(bytes)))
            }
            Wire::Bytes(bytes) => text(bytes).map(Value::String),
        }
    }
}

/// Values that have a form of their own in JSON. None for the name of any other type.
fn special(name: &str, bytes: &[u8]) -> Option<Result<Value, String>> {
    let read: fn(&[u8]) -> Result<Value, String> = match name.rsplit('.').next()? {
        "Time" => |bytes| Ok(time(bytes)?.map_or(Value::Null, |time| json!(seconds(time)))),
        "MicroTime" => |bytes| {
            let shown =
                |time: Timestamp| json!(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string());
            Ok(time(bytes)?.map_or(Value::Null, shown))
        },
        "Quantity" => |bytes| match Fields::of(bytes).next().transpose()? {
            Some(Field {
                wire: Wire::Bytes(bytes),
                ..
            }) => text(bytes).map(Value::String),
            _ => Ok(json!("0")),
        },
        "IntOrString" => int_or_string,
        "FieldsV1" | "RawExtension" => |bytes| match Fields::of(bytes).next().transpose()? {
            Some(Field {
                wire: Wire::Bytes(raw),
                ..
            }) if !raw.is_empty() => serde_json::from_slice(raw).map_err(|error| error.to_string()),
            _ => Ok(Value::Null),
        },
        _ => return None,
    };
    Some(read(bytes))
}

/// Seconds and nanoseconds since 1970; nothing at all is no time.
fn time(bytes: &[u8]) -> Result<Option<Timestamp>, String> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in Fields::of(bytes) {
        let Field { number, wire } = field?;
        match (number, wire) {
            (1, Wire::Varint(number)) => seconds = number.cast_signed(),
            (2, Wire::Varint(number)) => nanoseconds = i32::try_from(number).unwrap_or(0),
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    Timestamp::new(seconds, nanoseconds)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// 1 says whether it is the number in 2 or the text in 3.
fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut shown) = (false, 0, String::new());
    for field in Fields::of(bytes) {
        let Field {
            number: member,
            wire,
        } = field?;
        match (member, wire) {
            (1, Wire::Varint(kind)) => is_text = kind != 0,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => shown = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_text { json!(shown) } else { json!(number) })
}

#[cfg(test)]
mod tests;
