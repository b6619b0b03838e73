//! Checking custom objects against the structural schema of their definition.

mod combine;
mod format;
mod lists;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

pub(crate) use self::format::is_known as is_known_format;
pub(crate) use self::lists::duplicates;

use crate::pattern::Patterns;
use crate::place::Place;
use crate::status::Cause;

/// Checks a value. What an update leaves as it was is not checked again: a schema may have become
/// stricter since the value was stored.
///
/// `field` is the path of the value in the object, and `shown` its name in messages. The members named by `fitting`
/// are known to fit. The patterns are those of the definition.
pub(crate) fn validate(
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    [field, shown]: [&str; 2],
    fitting: &[&str],
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
        fitting,
    };
    check.value(schema, value, old, &Place::At(field));
    let mut causes = check.causes;
    // What is told twice in the same words is told once.
    let mut told = BTreeSet::new();
    causes.retain(|cause| told.insert((cause.field.clone(), cause.message.clone())));
    causes
}

/// Checks the default of a schema, which has no name of its own in messages.
pub(super) fn validate_default(schema: &Value, value: &Value, field: &str) -> Vec<Cause> {
    let mut check = Check {
        causes: Vec::new(),
        hidden: field.len() + 1,
        patterns: &Patterns::default(),
        nameless: true,
        fitting: &[],
    };
    check.value(schema, value, None, &Place::At(field));
    check.causes
}

struct Check<'p> {
    patterns: &'p Patterns,
    causes: Vec<Cause>,
    /// So many characters of a field's path are not shown in messages.
    hidden: usize,
    /// The value itself has no name in messages.
    nameless: bool,
    /// Members of the value itself that are not looked at.
    fitting: &'p [&'p str],
}

// === impl Check ===

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, old: Option<&Value>, field: &Place<'_>) {
        if old == Some(value) {
            return;
        }
        self.kind(schema, value, field);
        if value.is_null() {
            self.choice(schema, value, field);
            return;
        }
        self.combined(schema, value, old, field);
        if let Some(text) = value.as_str() {
            self.text(schema, text, field);
        } else if value.is_number() {
            self.number(schema, value, field);
        } else if let Some(list) = value.as_array() {
            self.list(schema, list, old, field);
        }
        self.choice(schema, value, field);
        if let Some(members) = value.as_object() {
            self.object(schema, members, old, field);
        }
    }

    /// The value must be one of those that are listed. Null never is.
    fn choice(&mut self, schema: &Value, value: &Value, field: &Place<'_>) {
        let Some(choices) = schema["enum"].as_array() else {
            return;
        };
        if choices.iter().any(|choice| is_choice(value, choice)) {
            return;
        }
        let names: Vec<String> = choices
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.causes.push(Cause::not_supported(field, value, &names));
    }

    /// Checks the JSON type.
    fn kind(&mut self, schema: &Value, value: &Value, field: &Place<'_>) {
        let (found, found_format) = type_of(value);
        let own = schema["type"].as_str();
        let types: &[&str] = match &own {
            _ if schema["x-kubernetes-int-or-string"] == true => &["integer", "string"],
            Some(own) => std::slice::from_ref(own),
            None => &[],
        };
        if value.is_null() {
            if !types.is_empty() && schema["nullable"] != true {
                self.wrong_type(field, &types.join(","), found);
            }
            return;
        }
        // A number without a fraction is an integer, as long as a double holds it exactly.
        let counts_as = match found {
            "number" if is_whole(value) => "integer",
            "integer" => "number",
            found => found,
        };
        let fits = types.contains(&found) || types.contains(&counts_as);
        let format = format::checked(schema);
        let has_text = value.is_string() || value.is_array();
        let is_number = types.contains(&"integer") || types.contains(&"number");
        if !has_text && !format.is_empty() && !fits {
            self.wrong_type(field, format, found_format);
        } else if (format.is_empty() || is_number || !has_text) && !fits && !types.is_empty() {
            self.wrong_type(field, &types.join(","), found);
        }
    }

    fn wrong_type(&mut self, field: &Place<'_>, wanted: &str, found: &str) {
        let shown = self.shown(field);
        self.causes.push(Cause::wrong_type(
            field,
            &json!(found),
            &format!("{shown} in body must be of type {wanted}: {found:?}"),
        ));
    }

    fn shown(&self, field: &Place<'_>) -> String {
        let whole = field.to_string();
        match whole.get(self.hidden..) {
            Some(shown) => shown.to_owned(),
            None if self.nameless => String::new(),
            None => whole,
        }
    }

    fn broken(&mut self, field: &Place<'_>, value: &Value, rule: &str) {
        let why = format!("{} in body {rule}", self.shown(field));
        self.causes.push(Cause::invalid(field, value, &why));
    }

    fn object(
        &mut self,
        schema: &Value,
        members: &Map<String, Value>,
        old: Option<&Value>,
        field: &Place<'_>,
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
                self.causes
                    .push(Cause::required(Place::Member(field, name), ""));
            }
        }
        let fitting: &[&str] = match field {
            Place::At(_) => self.fitting,
            Place::Member(..) | Place::Key(..) | Place::Element(..) => &[],
        };
        for (name, value) in members {
            if fitting.contains(&name.as_str()) {
                continue;
            }
            let additional = &schema["additionalProperties"];
            let inner = schema["properties"].get(name).unwrap_or(additional);
            if inner.is_object() {
                let old = old.and_then(|old| old.get(name));
                self.value(inner, value, old, &Place::Member(field, name));
            }
        }
    }

    fn list(&mut self, schema: &Value, list: &[Value], old: Option<&Value>, field: &Place<'_>) {
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
        // As text, so that it can be looked up: lists are long.
        let identity = |element: &Value| match kind {
            "map" => {
                let keys = keys.iter().map(|key| (*key, element[*key].clone()));
                Some(keys.collect::<Value>().to_string())
            }
            "set" => Some(element.to_string()),
            _ => None,
        };
        let mut known = BTreeMap::new();
        for element in old.and_then(Value::as_array).into_iter().flatten() {
            // Only elements that can be told apart can be found again in the old list.
            if let Some(own) = identity(element) {
                known.entry(own).or_insert(element);
            }
        }
        for (index, element) in list.iter().enumerate() {
            let before = if known.is_empty() {
                None
            } else {
                identity(element).and_then(|own| known.get(&own).copied())
            };
            self.value(
                &schema["items"],
                element,
                before,
                &Place::Element(field, index),
            );
        }
    }

    fn text(&mut self, schema: &Value, text: &str, field: &Place<'_>) {
        let value = || json!(text);
        let length = text.chars().count() as u64;
        // Of these only the first that is broken is told.
        if let Some(max) = schema["maxLength"].as_u64().filter(|max| length > *max) {
            self.causes.push(Cause::too_long(field, max));
        } else if let Some(min) = schema["minLength"].as_u64().filter(|min| length < *min) {
            let rule = format!("should be at least {min} chars long");
            self.broken(field, &value(), &rule);
        } else if let Some(pattern) = schema["pattern"].as_str() {
            self.pattern(pattern, text, field);
        }
        let format = format::checked(schema);
        if !format::fits(format, text) {
            let value = value();
            let why = format!(
                "{} in body must be of type {format}: {value}",
                self.shown(field)
            );
            self.causes.push(Cause::wrong_type(field, &value, &why));
        }
    }

    fn pattern(&mut self, pattern: &str, text: &str, field: &Place<'_>) {
        let rule = match self.patterns.get(pattern) {
            Ok(compiled) if compiled.is_match(text) => return,
            Ok(_) => format!("should match '{pattern}'"),
            // A definition that an older server let pass can have such a pattern.
            Err(why) => format!("should match '{pattern}, but pattern is invalid: {why}'"),
        };
        self.broken(field, &json!(text), &rule);
    }

    fn number(&mut self, schema: &Value, value: &Value, field: &Place<'_>) {
        let Some(number) = value.as_f64() else { return };
        self.range(schema, value, "Checked", field);
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
            self.range(schema, &schema["multipleOf"], "MultipleOf", field);
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
            self.range(schema, &schema["minimum"], "Minimum boundary", field);
            if schema["exclusiveMinimum"] == true && number <= min {
                self.broken(field, value, &format!("should be greater than {shown}"));
            } else if number < min {
                let rule = format!("should be greater than or equal to {shown}");
                self.broken(field, value, &rule);
            }
        }
        if let Some((max, shown)) = bound("maximum") {
            self.range(schema, &schema["maximum"], "Maximum boundary", field);
            if schema["exclusiveMaximum"] == true && number >= max {
                self.broken(field, value, &format!("should be less than {shown}"));
            } else if number > max {
                let rule = format!("should be less than or equal to {shown}");
                self.broken(field, value, &rule);
            }
        }
    }

    /// A number, and each bound of it, must be one of the schema's type and format.
    fn range(&mut self, schema: &Value, value: &Value, which: &str, field: &Place<'_>) {
        let own = schema["type"].as_str().unwrap_or_default();
        let format = format::checked(schema);
        let fits = match (own, format) {
            _ if schema["x-kubernetes-int-or-string"] == true => true,
            ("integer", "int32") => {
                integral(value).is_some_and(|number| i32::try_from(number).is_ok())
            }
            ("integer", _) => integral(value).is_some(),
            ("number", "float") => {
                let most = f64::from(f32::MAX);
                value.as_f64().is_none_or(|number| number.abs() <= most)
            }
            _ => true,
        };
        if !fits {
            let format = match format {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            let shown = self.shown(field);
            let why = format!("{which} value must be of type {own} {format} in {shown}");
            self.causes.push(Cause::invalid("<nil>", &json!(""), &why));
        }
    }
}

/// How far a number may be from a whole one to count as it.
const NEARLY: f64 = 1e-9;

/// The largest number up to which a double holds every whole one.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a number has no fraction, or next to none, and is held exactly.
fn is_whole(value: &Value) -> bool {
    let number = value.as_f64().filter(|_| value.is_f64());
    number.is_some_and(|number| {
        let (size, off) = (number.abs(), (number - number.trunc()).abs());
        let is_near = number.trunc() != 0.0 && off / (size + number.trunc().abs()) < NEARLY;
        (off == 0.0 || is_near) && size <= MAX_EXACT
    })
}

/// A number that has no fraction and fits 64 bits.
fn integral(value: &Value) -> Option<i64> {
    if !value.is_f64() {
        return value.as_i64();
    }
    let limit = 9_223_372_036_854_775_808.0;
    let number = value.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is a whole number that fits"
    )]
    (number.fract() == 0.0 && (-limit..limit).contains(&number)).then_some(number as i64)
}

/// Whether a value is the same as one of those that are listed, once it has the type of that one.
fn is_choice(value: &Value, choice: &Value) -> bool {
    match (value, choice) {
        (Value::Number(number), Value::Number(known)) if known.is_f64() => {
            number.as_f64() == known.as_f64()
        }
        (Value::Number(_), Value::Number(_)) => match value.as_f64() {
            Some(number) if value.is_f64() => Some(number.trunc()) == choice.as_f64(),
            _ => value == choice,
        },
        // A whole number becomes the character with its code.
        (Value::Number(number), Value::String(known)) => {
            let code = number.as_i64().and_then(|code| u32::try_from(code).ok());
            let character = code.and_then(char::from_u32);
            character.is_some_and(|character| known.chars().eq([character]))
        }
        (Value::Null, _) => false,
        _ => value == choice,
    }
}

/// The name of a value's JSON type in messages, and that of its format.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_f64() || !number.is_i64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, value: &Value, expected: &[&str]) {
        let causes = validate(schema, value, None, ["x", "x"], &[], &Patterns::default());
        let found: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        assert_eq!(found, expected, "{schema} {value}");
    }

    #[test]
    fn numbers_of_their_types() {
        let small = json!({ "type": "integer", "format": "int32" });
        let too_large = "<nil>: Invalid value: \"\": Checked value must be of type integer with format \
                         int32 in x";
        check(&small, &json!(2_147_483_648_i64), &[too_large]);
        check(&small, &json!(3.0), &[]);
        let bound = json!({ "type": "integer", "format": "int32", "maximum": 4_294_967_295_i64 });
        let no_bound = "<nil>: Invalid value: \"\": Maximum boundary value must be of type integer with \
                        format int32 in x";
        check(&bound, &json!(5), &[no_bound]);
        let whole = json!({ "type": "integer" });
        check(&whole, &json!(1e3), &[]);
        check(
            &whole,
            &json!(1.5),
            &[
                "x: Invalid value: \"number\": x in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in x",
            ],
        );
        check(
            &json!({ "type": "number", "format": "int32" }),
            &json!(2_147_483_648_i64),
            &[],
        );
        check(
            &json!({ "type": "number", "format": "float" }),
            &json!(3.5e38),
            &[
                "<nil>: Invalid value: \"\": Checked value must be of type number with format float in x",
            ],
        );
    }

    #[test]
    fn values_of_another_type() {
        let time = json!({ "type": "string", "format": "date-time" });
        check(
            &time,
            &json!(5),
            &["x: Invalid value: \"int64\": x in body must be of type date-time: \"int64\""],
        );
        check(
            &json!({ "type": "string", "format": "uuid" }),
            &json!(["a"]),
            &[],
        );
        check(
            &json!({ "type": "string", "format": "unknown" }),
            &json!(true),
            &["x: Invalid value: \"boolean\": x in body must be of type string: \"boolean\""],
        );
        // A value of the wrong type is held against the rest all the same.
        check(
            &json!({ "type": "integer", "enum": [3, 5] }),
            &json!("3"),
            &[
                "x: Invalid value: \"string\": x in body must be of type integer: \"string\"",
                "x: Unsupported value: \"3\": supported values: \"3\", \"5\"",
            ],
        );
    }

    #[test]
    fn choices() {
        let choice = json!({ "type": "string", "nullable": true, "enum": ["a"] });
        check(&choice, &json!("a"), &[]);
        check(
            &choice,
            &Value::Null,
            &["x: Unsupported value: null: supported values: \"a\""],
        );
        let numbers = json!({ "type": "number", "enum": [1, 2.5] });
        for (value, expected) in [(json!(1.0), true), (json!(2.5), true), (json!(3), false)] {
            let causes = validate(
                &numbers,
                &value,
                None,
                ["x", "x"],
                &[],
                &Patterns::default(),
            );
            assert_eq!(causes.is_empty(), expected, "{value}");
        }
        let port = json!({ "x-kubernetes-int-or-string": true, "enum": ["A"] });
        check(&port, &json!(65), &[]);
        check(
            &json!({ "type": "string" }),
            &Value::Null,
            &["x: Invalid value: \"null\": x in body must be of type string: \"null\""],
        );
    }
}
