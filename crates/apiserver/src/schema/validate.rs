//! Checking custom objects against the structural schema of their definition.

mod combine;
mod format;
mod lists;

pub(crate) use self::format::is_known as is_known_format;
pub(crate) use self::lists::duplicates;
use serde_json::{Map, Value, json};

use crate::pattern::Patterns;
use crate::status::Cause;

/// Checks a value. What an update leaves as it was is not checked again: a schema may have become
/// stricter since the value was stored.
///
/// `field` is the path of the value in the object, and `shown` its name in messages. The patterns are
/// those of the definition.
pub(crate) fn validate(
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    [field, shown]: [&str; 2],
    patterns: &Patterns,
) -> Vec<Cause> {
    // Without a name of its own the value's path is not shown, and the dot behind it neither.
    let hidden = match shown {
        "" if !field.is_empty() => field.len() + 1,
        _ => field.len().saturating_sub(shown.len()),
    };
    let mut check = Check {
        causes: Vec::new(),
        hidden,
        patterns,
        nameless: false,
    };
    check.value(schema, value, old, field);
    check.causes
}

/// Checks the default of a schema, which has no name of its own in messages.
pub(super) fn validate_default(schema: &Value, value: &Value, field: &str) -> Vec<Cause> {
    let mut check = Check {
        causes: Vec::new(),
        hidden: field.len() + 1,
        patterns: &Patterns::default(),
        nameless: true,
    };
    check.value(schema, value, None, field);
    check.causes
}

struct Check<'p> {
    patterns: &'p Patterns,
    causes: Vec<Cause>,
    /// So many characters of a field's path are not shown in messages.
    hidden: usize,
    /// The value itself has no name in messages.
    nameless: bool,
}

// === impl Check ===

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, old: Option<&Value>, field: &str) {
        if old == Some(value) || (value.is_null() && schema["nullable"] == true) {
            return;
        }
        let fits = self.kind(schema, value, field);
        self.combined(schema, value, old, field);
        if !fits {
            return;
        }
        if let Some(members) = value.as_object() {
            self.object(schema, members, old, field);
        } else if let Some(list) = value.as_array() {
            self.list(schema, list, old, field);
        } else if let Some(text) = value.as_str() {
            self.text(schema, text, field);
        } else if value.is_number() {
            self.number(schema, value, field);
        }
        let allowed = schema["enum"].as_array();
        if let Some(allowed) = allowed.filter(|allowed| !allowed.contains(value)) {
            let names: Vec<String> = allowed
                .iter()
                .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            self.causes.push(Cause::not_supported(field, value, &names));
        }
    }

    /// Checks the JSON type. False if it is wrong: nothing else is checked then.
    fn kind(&mut self, schema: &Value, value: &Value, field: &str) -> bool {
        let found = type_of(value);
        // A number without a fraction is an integer, as long as a double holds it exactly.
        let found = if found == "number" && is_whole(value) {
            "integer"
        } else {
            found
        };
        if schema["x-kubernetes-int-or-string"] == true {
            let fits = ["integer", "string"].contains(&found);
            if !fits {
                self.wrong_type(field, "integer,string", found);
            }
            return fits;
        }
        let Some(wanted) = schema["type"].as_str() else {
            return true;
        };
        let format = schema["format"].as_str().unwrap_or_default();
        let format = ["int32", "int64"]
            .into_iter()
            .find(|known| *known == format);
        if wanted == found || (wanted == "number" && found == "integer") {
            let too_large = wanted == "integer"
                && format == Some("int32")
                && value
                    .as_i64()
                    .is_some_and(|number| i32::try_from(number).is_err());
            if too_large {
                self.no_integer(format, field);
            }
            return !too_large;
        }
        match (wanted, found, format) {
            ("integer", "number", Some(format)) => {
                self.wrong_type(field, format, "float64");
                self.no_integer(Some(format), field);
            }
            ("integer", "number", None) => {
                self.wrong_type(field, wanted, found);
                // A number without a fraction that 64 bits hold is one, after all.
                if !is_integral(value) {
                    self.no_integer(None, field);
                }
            }
            _ => self.wrong_type(field, wanted, found),
        }
        false
    }

    fn no_integer(&mut self, format: Option<&str>, field: &str) {
        let format = match format {
            Some(format) => format!("with format {format}"),
            None => "(default format)".to_owned(),
        };
        let shown = self.shown(field);
        let why = format!("Checked value must be of type integer {format} in {shown}");
        self.causes.push(Cause::invalid("<nil>", &json!(""), &why));
    }

    fn wrong_type(&mut self, field: &str, wanted: &str, found: &str) {
        let shown = self.shown(field);
        self.causes.push(Cause::wrong_type(
            field,
            &json!(found),
            &format!("{shown} in body must be of type {wanted}: {found:?}"),
        ));
    }

    fn shown<'a>(&self, field: &'a str) -> &'a str {
        let whole = if self.nameless { "" } else { field };
        field.get(self.hidden..).unwrap_or(whole)
    }

    fn broken(&mut self, field: &str, value: &Value, rule: &str) {
        let why = format!("{} in body {rule}", self.shown(field));
        self.causes.push(Cause::invalid(field, value, &why));
    }

    fn object(
        &mut self,
        schema: &Value,
        members: &Map<String, Value>,
        old: Option<&Value>,
        field: &str,
    ) {
        let count = members.len() as u64;
        if let Some(max) = schema["maxProperties"].as_u64().filter(|max| count > *max) {
            self.causes.push(Cause::too_many(field, count, max));
        }
        if let Some(min) = schema["minProperties"].as_u64().filter(|min| count < *min) {
            self.broken(
                field,
                &json!(count),
                &format!("should have at least {min} properties"),
            );
        }
        let embedded: &[&str] = if schema["x-kubernetes-embedded-resource"] == true {
            &["apiVersion", "kind"]
        } else {
            &[]
        };
        let required = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        for name in required.chain(embedded.iter().copied()) {
            if !members.contains_key(name) {
                self.causes.push(Cause::required(joined(field, name), ""));
            }
        }
        for (name, value) in members {
            let additional = &schema["additionalProperties"];
            let inner = schema["properties"].get(name).unwrap_or(additional);
            if inner.is_object() {
                let old = old.and_then(|old| old.get(name));
                self.value(inner, value, old, &joined(field, name));
            }
        }
    }

    fn list(&mut self, schema: &Value, list: &[Value], old: Option<&Value>, field: &str) {
        let count = list.len() as u64;
        if let Some(max) = schema["maxItems"].as_u64().filter(|max| count > *max) {
            self.causes.push(Cause::too_many(field, count, max));
        }
        if let Some(min) = schema["minItems"].as_u64().filter(|min| count < *min) {
            self.broken(
                field,
                &json!(count),
                &format!("should have at least {min} items"),
            );
        }
        let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let kind = schema["x-kubernetes-list-type"]
            .as_str()
            .unwrap_or_default();
        let identity = |element: &Value| match kind {
            "map" => Some(
                keys.iter()
                    .map(|key| (*key, element[*key].clone()))
                    .collect::<Value>(),
            ),
            "set" => Some(element.clone()),
            _ => None,
        };
        for (index, element) in list.iter().enumerate() {
            let place = format!("{field}[{index}]");
            let own = identity(element);
            // Only elements that can be told apart can be found again in the old list.
            let before = own.as_ref().and_then(|own| {
                let old = old?.as_array()?;
                old.iter()
                    .find(|element| identity(element).as_ref() == Some(own))
            });
            self.value(&schema["items"], element, before, &place);
        }
    }

    fn text(&mut self, schema: &Value, text: &str, field: &str) {
        let value = json!(text);
        let length = text.chars().count() as u64;
        // Of these only the first that is broken is told.
        if let Some(max) = schema["maxLength"].as_u64().filter(|max| length > *max) {
            self.causes.push(Cause::too_long(field, max));
        } else if let Some(min) = schema["minLength"].as_u64().filter(|min| length < *min) {
            let rule = format!("should be at least {min} chars long");
            self.broken(field, &value, &rule);
        } else if let Some(pattern) = schema["pattern"].as_str() {
            self.pattern(pattern, text, field);
        }
        let format = schema["format"].as_str();
        if let Some(format) = format.filter(|format| !format::fits(format, text)) {
            let why = format!(
                "{} in body must be of type {format}: {value}",
                self.shown(field)
            );
            self.causes.push(Cause::wrong_type(field, &value, &why));
        }
    }

    fn pattern(&mut self, pattern: &str, text: &str, field: &str) {
        let rule = match self.patterns.get(pattern) {
            Ok(compiled) if compiled.is_match(text) => return,
            Ok(_) => format!("should match '{pattern}'"),
            // A definition that an older server let pass can have such a pattern.
            Err(why) => format!("should match '{pattern}, but pattern is invalid: {why}'"),
        };
        self.broken(field, &json!(text), &rule);
    }

    fn number(&mut self, schema: &Value, value: &Value, field: &str) {
        let Some(number) = value.as_f64() else { return };
        // Whole numbers are held against whole bounds.
        let is_integer = !value.is_f64();
        let bound = |name: &str| {
            let bound = schema[name].as_f64()?;
            let whole = is_integer && bound.fract() != 0.0;
            let bound = if whole { bound.trunc() } else { bound };
            let shown = if whole {
                json!(format!("{bound:.0}"))
            } else {
                schema[name].clone()
            };
            let shown = shown
                .as_str()
                .map_or_else(|| shown.to_string(), str::to_owned);
            // No minus zero.
            Some((bound, if shown == "-0" { "0".to_owned() } else { shown }))
        };
        if let Some((step, shown)) = bound("multipleOf") {
            let times = if step < 1.0 {
                1.0 / step * number
            } else {
                number / step
            };
            if step <= 0.0 {
                let why = format!(
                    "factor MultipleOf declared for {} must be positive: {shown}",
                    self.shown(field)
                );
                self.causes.push(Cause::invalid(field, &json!(0), &why));
            } else if (times - times.round()).abs() > NEARLY {
                self.broken(field, value, &format!("should be a multiple of {shown}"));
            }
        }
        if let Some((min, shown)) = bound("minimum") {
            if schema["exclusiveMinimum"] == true && number <= min {
                self.broken(field, value, &format!("should be greater than {shown}"));
            } else if number < min {
                self.broken(
                    field,
                    value,
                    &format!("should be greater than or equal to {shown}"),
                );
            }
        }
        if let Some((max, shown)) = bound("maximum") {
            if schema["exclusiveMaximum"] == true && number >= max {
                self.broken(field, value, &format!("should be less than {shown}"));
            } else if number > max {
                self.broken(
                    field,
                    value,
                    &format!("should be less than or equal to {shown}"),
                );
            }
        }
    }
}

/// How far a number may be from a whole one to count as it.
const NEARLY: f64 = 1e-9;

/// The largest number up to which a double holds every whole one.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a number has no fraction and is held exactly.
fn is_whole(value: &Value) -> bool {
    let number = value.as_f64().filter(|_| value.is_f64());
    number.is_some_and(|number| number.fract() == 0.0 && number.abs() <= MAX_EXACT)
}

/// Whether a number has no fraction and fits 64 bits.
fn is_integral(value: &Value) -> bool {
    let limit = 9_223_372_036_854_775_808.0;
    let fits = |number: f64| number.fract() == 0.0 && (-limit..limit).contains(&number);
    value.is_f64() && value.as_f64().is_some_and(fits)
}

/// The name of a value's JSON type in messages.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() || !number.is_i64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn joined(field: &str, name: &str) -> String {
    if field.is_empty() {
        name.to_owned()
    } else {
        format!("{field}.{name}")
    }
}
