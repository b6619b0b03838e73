//! Bringing what a client sent into the form in which it is stored.

mod times;

use std::fmt;

use serde_json::{Map, Number, Value};

use super::Schema;
use crate::{base64, quantity};

/// What came of taking in an object.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// Paths of members that the schema does not know; they were dropped.
    pub(crate) unknown: Vec<String>,
    /// The first member that has the wrong type.
    pub(crate) problem: Option<String>,
    /// Defaults are not filled in.
    without_defaults: bool,
    /// Null is kept where nothing takes its place.
    keeps_null: bool,
}

/// Where a value is in its object, for messages.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    Object,
    /// A member of a type, with the short name of the type.
    Field(&'a Place<'a>, &'a str, &'a str),
    /// A member of anything else.
    Member(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

/// Members that every object has beside those of its schema.
const TYPE_MEMBERS: [&str; 2] = ["apiVersion", "kind"];

/// Takes in an object of a built-in kind: what the schema does not know is dropped, and so are null
/// and empty lists and maps, which a typed server reads as absent.
pub(crate) fn decode_builtin(object: &mut Value, schema: &Schema) -> Decoded {
    let mut decoded = Decoded::default();
    builtin(object, schema, Place::Object, &mut decoded);
    decoded
}

fn builtin(value: &mut Value, schema: &Schema, place: Place<'_>, decoded: &mut Decoded) {
    if let Err(problem) = scalar(value, schema, place) {
        decoded.problem.get_or_insert(problem);
        return;
    }
    if let Some(members) = value.as_object_mut() {
        if schema.is_struct() || has_no_members(schema) {
            builtin_struct(members, schema, place, decoded);
        } else if let Some(values) = &schema.resolved().values {
            for (name, value) in members.iter_mut() {
                if value.is_null() && values.has_type("string") && values.reference.is_none() {
                    *value = Value::from("");
                }
                builtin(value, values, Place::Member(&place, name), decoded);
            }
        }
    } else if let (Some(elements), Some(items)) = (value.as_array_mut(), &schema.resolved().items) {
        for (index, element) in elements.iter_mut().enumerate() {
            builtin(element, items, Place::Element(&place, index), decoded);
        }
    }
}

/// Checks the type of a value, and writes times as they are stored.
fn scalar(value: &mut Value, schema: &Schema, place: Place<'_>) -> Result<(), String> {
    if value.is_null() || !schema.has_types() {
        return Ok(());
    }
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        // A number that is too large or no whole one is shown.
        Value::Number(number) if schema.has_type("integer") => format!("number {number}"),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    let fits = match value {
        Value::Null => true,
        Value::Bool(_) => schema.has_type("boolean"),
        Value::Number(number) => {
            schema.has_type("number")
                || (schema.has_type("integer") && fits_integer(number, schema))
        }
        Value::String(_) => schema.has_type("string"),
        Value::Array(_) => schema.has_type("array"),
        Value::Object(_) => schema.has_type("object"),
    };
    if !fits {
        return Err(format!(
            "json: cannot unmarshal {found} into Go struct field {} of type {}",
            place.of_type(),
            go_type(schema)
        ));
    }
    canonical(value, schema)
}

fn fits_integer(number: &Number, schema: &Schema) -> bool {
    match schema.resolved().format.as_deref() {
        Some("int32") => number
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok()),
        // Text or number: a number has 32 bits.
        Some(_) | None => number.is_i64(),
    }
}

/// The type of a value as the server names it.
fn go_type(schema: &Schema) -> String {
    if let Some(reference) = &schema.reference
        && schema.is_struct()
    {
        let mut parts = reference.rsplit('.');
        let (name, package) = (parts.next(), parts.next());
        return format!(
            "{}.{}",
            package.unwrap_or_default(),
            name.unwrap_or_default()
        );
    }
    let resolved = schema.resolved();
    let format = resolved.format.as_deref();
    if let Some(items) = &resolved.items {
        format!("[]{}", go_type(items))
    } else if let Some(values) = &resolved.values {
        format!("map[string]{}", go_type(values))
    } else if schema.has_type("integer") {
        format.unwrap_or("int64").to_owned()
    } else if schema.has_type("number") {
        "float64".to_owned()
    } else if schema.has_type("boolean") {
        "bool".to_owned()
    } else if format == Some("byte") {
        "[]uint8".to_owned()
    } else {
        "string".to_owned()
    }
}

/// Writes texts that mean something as they are stored.
fn canonical(value: &mut Value, schema: &Schema) -> Result<(), String> {
    let reference = schema.reference.as_deref().unwrap_or_default();
    if reference.ends_with(".Quantity") {
        let text = match value.as_str() {
            Some(text) => quantity::canonical(text.trim()),
            None => quantity::canonical(&value.to_string()),
        };
        *value = Value::String(text.ok_or(quantity::PROBLEM)?);
        return Ok(());
    }
    let Some(text) = value.as_str() else {
        return Ok(());
    };
    match schema.resolved().format.as_deref() {
        Some("date-time") => {
            *value = Value::String(times::stored(text, reference.ends_with("MicroTime"))?);
        }
        Some("byte") => {
            if let Some(place) = base64::first_illegal(text) {
                return Err(format!("illegal base64 data at input byte {place}"));
            }
        }
        Some(_) | None => {}
    }
    Ok(())
}

fn builtin_struct(
    members: &mut Map<String, Value>,
    schema: &Schema,
    place: Place<'_>,
    decoded: &mut Decoded,
) {
    let fields = &schema.resolved().fields;
    let owner = schema.reference.as_deref().unwrap_or_default();
    let owner = owner.rsplit('.').next().unwrap_or_default();
    members.retain(|name, value| {
        let Some(field) = fields.get(name) else {
            decoded
                .unknown
                .push(Place::Member(&place, name).to_string());
            return false;
        };
        builtin(value, field, Place::Field(&place, owner, name), decoded);
        if is_raw(field) {
            return !value.is_null();
        }
        !(value.is_null()
            || (is_empty(value, field) && !field.null_when_empty && !tells_empty(field))
            || is_omitted_zero(name, value, field))
    });
    for (name, field) in fields {
        if let Some(mut zero) = field.zero()
            && !members.contains_key(name)
        {
            builtin(&mut zero, field, Place::Object, decoded);
            members.insert(name.clone(), zero);
        }
    }
}

/// A type without members of its own: whatever stands there is not known.
fn has_no_members(schema: &Schema) -> bool {
    let reference = schema.reference.as_deref();
    reference.is_some_and(|name| name.ends_with(".CustomResourceSubresourceStatus"))
}

/// A value that is kept as it was written.
fn is_raw(field: &Schema) -> bool {
    let reference = field.reference.as_deref();
    reference.is_some_and(|name| name.ends_with(".apiextensions.v1.JSON"))
}

/// A list that a typed server tells apart from none while it checks it.
fn tells_empty(field: &Schema) -> bool {
    let items = field
        .items
        .as_deref()
        .and_then(|items| items.reference.as_deref());
    items.is_some_and(|name| name.ends_with(".HPAScalingPolicy"))
}

/// Optional texts that a typed server tells apart from the empty one; others it leaves out when they
/// are empty.
const TEXTS_WITH_EMPTY: [&str; 8] = [
    "holderIdentity",
    "preferredHolder",
    "strategy",
    "storageClassName",
    "volumeAttributesClassName",
    "ingressClassName",
    "apiGroup",
    "namespace",
];

/// Optional numbers and switches that a typed server cannot tell apart from their zero.
const NOTHING_WHEN_ZERO: [&str; 8] = [
    "minReadySeconds",
    "paused",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "stdin",
    "stdinOnce",
    "tty",
];

/// A zero that is not written.
fn is_omitted_zero(name: &str, value: &Value, field: &Schema) -> bool {
    if field.omitted_when_empty && value == "" {
        return true;
    }
    if field.default.is_some() {
        return false;
    }
    if value == "" {
        let reference = field.reference.as_deref().unwrap_or_default();
        // The empty text is another value than the number zero.
        return !TEXTS_WITH_EMPTY.contains(&name) && !reference.ends_with(".IntOrString");
    }
    (*value == 0 || *value == false) && NOTHING_WHEN_ZERO.contains(&name)
}

/// An empty list or map, which a typed server does not write.
fn is_empty(value: &Value, field: &Schema) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
        || (value.as_object().is_some_and(Map::is_empty) && field.is_map())
}

/// An object of a built-in kind of which nothing is known, as a typed server writes it: members that it
/// cannot leave out are there.
pub(crate) fn blank_builtin(schema: &Schema) -> Value {
    let mut object = Value::Object(Map::new());
    decode_builtin(&mut object, schema);
    add_nulls(&mut object, schema);
    object
}

fn add_nulls(value: &mut Value, schema: &Schema) {
    let schema = schema.resolved();
    let Some(members) = value.as_object_mut() else {
        return;
    };
    for (name, field) in &schema.fields {
        let is_written =
            field.null_when_empty || (schema.required.contains(name) && field.reference.is_some());
        match members.get_mut(name) {
            Some(value) => add_nulls(value, field),
            None if is_written => {
                members.insert(name.clone(), Value::Null);
            }
            None => {}
        }
    }
}

/// Brings an object of a built-in kind into the form that comes back from storage, where an empty
/// list cannot be told from none.
pub(crate) fn finish_builtin(value: &mut Value, schema: &Schema) {
    let fields = &schema.resolved().fields;
    for (name, value) in value.as_object_mut().into_iter().flatten() {
        let Some(field) = fields.get(name) else {
            continue;
        };
        if field.null_when_empty && is_empty(value, field) {
            *value = Value::Null;
        }
        finish_builtin(value, field);
    }
}

/// Takes in a custom object: what the schema does not know is dropped, null is dropped where it is
/// not allowed, and defaults are filled in.
pub(crate) fn decode_custom(object: &mut Value, schema: &Schema) -> Decoded {
    let mut decoded = Decoded::default();
    if let Some(members) = object.as_object_mut() {
        custom_struct(members, schema, Place::Object, true, &mut decoded);
    }
    decoded
}

/// Takes in a custom object that a configuration was merged into: null stays, so that it is found where
/// it is not allowed.
pub(crate) fn decode_applied(object: &mut Value, schema: &Schema) -> Decoded {
    let mut decoded = Decoded {
        keeps_null: true,
        ..Decoded::default()
    };
    if let Some(members) = object.as_object_mut() {
        custom_struct(members, schema, Place::Object, true, &mut decoded);
    }
    decoded
}

/// Drops what the schema does not know. Answers what that was.
pub(crate) fn prune_custom(object: &mut Value, schema: &Schema) -> Decoded {
    let mut decoded = Decoded {
        without_defaults: true,
        ..Decoded::default()
    };
    if let Some(members) = object.as_object_mut() {
        custom_struct(members, schema, Place::Object, true, &mut decoded);
    }
    decoded
}

/// Whether a value has members that its schema does not know.
pub(super) fn has_unknown(value: &Value, schema: &Schema) -> bool {
    let mut decoded = Decoded {
        without_defaults: true,
        ..Decoded::default()
    };
    custom(&mut value.clone(), schema, Place::Object, &mut decoded);
    !decoded.unknown.is_empty()
}

fn custom(value: &mut Value, schema: &Schema, place: Place<'_>, decoded: &mut Decoded) {
    if let Some(members) = value.as_object_mut() {
        custom_struct(members, schema, place, schema.embedded, decoded);
    } else if let (Some(elements), Some(items)) = (value.as_array_mut(), &schema.items) {
        for (index, element) in elements.iter_mut().enumerate() {
            custom(element, items, Place::Element(&place, index), decoded);
        }
    }
}

fn custom_struct(
    members: &mut Map<String, Value>,
    schema: &Schema,
    place: Place<'_>,
    embedded: bool,
    decoded: &mut Decoded,
) {
    let own = |name: &str| embedded && (TYPE_MEMBERS.contains(&name) || name == "metadata");
    members.retain(|name, value| {
        let known = schema.fields.get(name).or(schema.values.as_deref());
        if known.is_some_and(|field| value.is_null() && !field.nullable && field.default.is_some())
        {
            // Dropped so that the default takes its place.
            return false;
        }
        if known.is_some_and(|field| value.is_null() && !field.nullable && !decoded.keeps_null) {
            return false;
        }
        if known.is_some() || schema.preserve_unknown || own(name) {
            return true;
        }
        decoded
            .unknown
            .push(Place::Member(&place, name).to_string());
        false
    });
    for (name, field) in &schema.fields {
        if let Some(default) = &field.default
            && !decoded.without_defaults
            && !members.contains_key(name)
        {
            members.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in members.iter_mut() {
        if embedded && name == "metadata" {
            builtin(
                value,
                &Schema::object_meta(),
                Place::Field(&place, "ObjectMeta", name),
                decoded,
            );
            continue;
        }
        if own(name) {
            continue;
        }
        if let Some(field) = schema.fields.get(name).or(schema.values.as_deref()) {
            custom(value, field, Place::Member(&place, name), decoded);
        }
    }
}

// === impl Place ===

impl Place<'_> {
    /// The place in the type that it belongs to, as in `Container.spec.containers.name`.
    fn of_type(&self) -> String {
        match self {
            Self::Object => String::new(),
            Self::Field(_, owner, _) => format!("{owner}.{}", self.plain()),
            // The values of a map and the elements of a list have the place of these.
            Self::Member(place, _) | Self::Element(place, _) => place.of_type(),
        }
    }

    /// The place without keys of maps and numbers of elements.
    fn plain(&self) -> String {
        match self {
            Self::Object => String::new(),
            Self::Field(place, _, name) => match place.plain() {
                parent if parent.is_empty() => (*name).to_owned(),
                parent => format!("{parent}.{name}"),
            },
            Self::Member(place, _) | Self::Element(place, _) => place.plain(),
        }
    }
}

/// As in `spec.containers[0].name`.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => Ok(()),
            Self::Field(Self::Object, _, name) | Self::Member(Self::Object, name) => {
                f.write_str(name)
            }
            Self::Field(place, _, name) | Self::Member(place, name) => write!(f, "{place}.{name}"),
            Self::Element(place, index) => write!(f, "{place}[{index}]"),
        }
    }
}
