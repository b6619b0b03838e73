//! Comparing answers with recorded ones.

use serde_json::{Map, Value};

use crate::bindings::Bindings;

/// How exactly a step compares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rigour {
    /// Messages count.
    pub(crate) strict: bool,
    /// The recording holds only a part.
    pub(crate) subset: bool,
    /// The order of managedFields counts.
    pub(crate) ordered: bool,
}

/// Compares a value; on failure the bindings are as before, and the answer says where and what.
pub(crate) fn compare(
    recorded: &Value,
    found: &Value,
    rigour: Rigour,
    bindings: &mut Bindings,
) -> Result<(), String> {
    let before = bindings.clone();
    let outcome = value(recorded, found, rigour, bindings, "");
    if outcome.is_err() {
        *bindings = before;
    }
    outcome
}

fn value(
    recorded: &Value,
    found: &Value,
    rigour: Rigour,
    bindings: &mut Bindings,
    path: &str,
) -> Result<(), String> {
    let differs = || Err(format!("{path}: recorded {recorded}, found {found}"));
    if let Some(members) = recorded.as_object() {
        let Some(found) = found.as_object() else {
            return differs();
        };
        return object(members, found, rigour, bindings, path);
    }
    if let Some(list) = recorded.as_array() {
        let Some(found) = found.as_array() else {
            return differs();
        };
        return elements(list, found, rigour, bindings, path);
    }
    if let Some(text) = recorded.as_str() {
        let fits = match found.as_str() {
            Some(found) => bindings.text_fits(text, found),
            None => bindings.value_fits(text, found),
        };
        return if fits || bindings.value_fits(text, found) {
            Ok(())
        } else {
            differs()
        };
    }
    let equal = match (recorded.as_f64(), found.as_f64()) {
        (Some(recorded), Some(found)) => (recorded - found).abs() < f64::EPSILON,
        _ => recorded == found,
    };
    if equal { Ok(()) } else { differs() }
}

fn object(
    recorded: &Map<String, Value>,
    found: &Map<String, Value>,
    rigour: Rigour,
    bindings: &mut Bindings,
    path: &str,
) -> Result<(), String> {
    let mut matched = Vec::new();
    for (name, expected) in recorded {
        let mut scratch = bindings.clone();
        let member = found.get_key_value(name).or_else(|| {
            found
                .iter()
                .find(|(found, _)| scratch.clone().text_fits(name, found))
        });
        let path = format!("{path}.{name}");
        let Some((found_name, actual)) = member else {
            return Err(format!("{path}: recorded {expected}, found nothing"));
        };
        scratch = bindings.clone();
        matched.push(found_name);
        if name == "message" && !rigour.strict && expected.is_string() {
            let empty = |value: &Value| value.as_str().is_none_or(str::is_empty);
            if empty(expected) != empty(actual) {
                return Err(format!("{path}: recorded {expected}, found {actual}"));
            }
        } else if name == "managedFields" && !rigour.ordered {
            managed_fields(expected, actual, rigour, &mut scratch, &path)?;
            *bindings = scratch;
        } else {
            value(expected, actual, rigour, bindings, &path)?;
        }
    }
    if !rigour.subset
        && let Some((name, value)) = found.iter().find(|(name, _)| !matched.contains(name))
    {
        return Err(format!("{path}.{name}: recorded nothing, found {value}"));
    }
    Ok(())
}

fn elements(
    recorded: &[Value],
    found: &[Value],
    rigour: Rigour,
    bindings: &mut Bindings,
    path: &str,
) -> Result<(), String> {
    if !rigour.subset {
        if recorded.len() != found.len() {
            return Err(format!(
                "{path}: recorded {} elements, found {}: {}",
                recorded.len(),
                found.len(),
                Value::Array(found.to_vec())
            ));
        }
        let mut pairs = recorded.iter().zip(found).enumerate();
        return pairs.try_for_each(|(index, (recorded, found))| {
            value(
                recorded,
                found,
                rigour,
                bindings,
                &format!("{path}[{index}]"),
            )
        });
    }
    let mut rest = found.iter();
    for expected in recorded {
        let fits = rest.any(|actual| compare(expected, actual, rigour, bindings).is_ok());
        if !fits {
            let found = Value::Array(found.to_vec());
            return Err(format!("{path}: no element is {expected} in {found}"));
        }
    }
    Ok(())
}

/// Compares managedFields as a set.
fn managed_fields(
    recorded: &Value,
    found: &Value,
    rigour: Rigour,
    bindings: &mut Bindings,
    path: &str,
) -> Result<(), String> {
    let (Some(expected), Some(actual)) = (recorded.as_array(), found.as_array()) else {
        return value(recorded, found, rigour, bindings, path);
    };
    let identity = |entry: &Value| {
        ["manager", "operation", "apiVersion", "subresource"].map(|member| entry[member].clone())
    };
    for entry in expected {
        let Some(other) = actual
            .iter()
            .find(|other| identity(other) == identity(entry))
        else {
            return Err(format!("{path}: recorded {entry}, found {found}"));
        };
        let name = entry["manager"].as_str().unwrap_or_default();
        value(entry, other, rigour, bindings, &format!("{path}[{name}]"))?;
    }
    if !rigour.subset && expected.len() != actual.len() {
        return Err(format!("{path}: recorded {recorded}, found {found}"));
    }
    Ok(())
}
